//! Tests of the patch reader.

use super::*;
use crate::diff::{Attribute, ChangeKind, LineKind, LineNo, RepoPath, Side, unified};
use crate::error::Kind;

/// Returns a short form of a change: kind, names, modes, hunk ranges, lines with their numbers.
fn show(change: &FileChange) -> String {
    let mut out = match change.entry.kind {
        ChangeKind::Added => "A".to_owned(),
        ChangeKind::Deleted => "D".to_owned(),
        ChangeKind::Modified => "M".to_owned(),
        ChangeKind::Renamed { similarity } => format!("R{similarity}"),
        ChangeKind::Copied { similarity } => format!("C{similarity}"),
    };
    for side in change.entry.sides() {
        let name = String::from_utf8_lossy(side.path.as_bytes()).into_owned();
        out.push_str(&format!(" {name}:{}", &side.mode.octal()[2..]));
    }
    match &change.body {
        Body::Same => out.push_str(" same"),
        Body::Binary(b) => out.push_str(&format!(" binary {:?}..{:?}", b.old_size, b.new_size)),
        Body::Submodule { dirty } => out.push_str(if *dirty {
            " submodule dirty"
        } else {
            " submodule"
        }),
        Body::Text(t) => {
            for h in &t.hunks {
                out.push_str(&format!(
                    "\n@ -{},{} +{},{}",
                    h.old.start, h.old.count, h.new.start, h.new.count
                ));
                for line in t.lines(h) {
                    let (mark, n) = match line.kind {
                        LineKind::Context => (' ', line.new),
                        LineKind::Removed => ('-', line.old),
                        LineKind::Added => ('+', line.new),
                    };
                    let n = n.map_or(0, LineNo::get);
                    out.push_str(&format!(
                        "\n{mark}{n}:{:?}",
                        String::from_utf8_lossy(line.text)
                    ));
                }
            }
        }
    }
    out
}

fn read(patch: &str) -> Vec<String> {
    match parse(patch.as_bytes()) {
        Ok(changes) => changes.iter().map(show).collect(),
        Err(e) => panic!("{e}\n{patch}"),
    }
}

#[track_caller]
fn refuse(patch: &str, what: &str) {
    match parse(patch.as_bytes()) {
        Ok(changes) => panic!("read {changes:?} from\n{patch}"),
        Err(e) => {
            assert_eq!(e.kind, Kind::Usage);
            assert!(
                e.message.contains(what),
                "{:?} does not say {what:?} of\n{patch}",
                e.message
            );
        }
    }
}

const SMALL: &str = "--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@ fn a()\n one\n-two\n+2\n";

#[test]
fn reads_a_git_patch_with_every_header() {
    let patch = "\
diff --git a/m b/m
old mode 100644
new mode 100755
index 1111111111111111111111111111111111111111..2222222222222222222222222222222222222222
--- a/m
+++ b/m
@@ -1,2 +1,3 @@ section
 a
-b
+B
+c
diff --git a/old name b/new name
similarity index 97%
rename from old name
rename to new name
index 1111111..2222222 100644
--- a/old name\t
+++ b/new name\t
@@ -9 +9 @@
-x
+y
diff --git a/pure b/moved
similarity index 100%
rename from pure
rename to moved
diff --git a/c b/d
similarity index 80%
copy from c
copy to d
index 1111111..2222222 100644
--- a/c
+++ b/d
@@ -0,0 +1 @@
+z
\\ No newline at end of file
diff --git a/bin b/bin
index 1111111..2222222 100644
Binary files a/bin and b/bin differ
diff --git a/new b/new
new file mode 100644
index 0000000..e69de29
diff --git a/gone b/gone
deleted file mode 100644
index 3333333..0000000
--- a/gone
+++ /dev/null
@@ -1,2 +0,0 @@
-l1
-l2
diff --git a/link b/link
new file mode 120000
index 0000000..4444444
--- /dev/null
+++ b/link
@@ -0,0 +1 @@
+target
\\ No newline at end of file
diff --git a/sub b/sub
index 5555555..6666666 160000
--- a/sub
+++ b/sub
@@ -1 +1 @@
-Subproject commit 5555555555555555555555555555555555555555
+Subproject commit 6666666666666666666666666666666666666666-dirty
";
    let want = [
        "M m:0644 m:0755\n@ -1,2 +1,3\n 1:\"a\\n\"\n-2:\"b\\n\"\n+2:\"B\\n\"\n+3:\"c\\n\"",
        "R97 old name:0644 new name:0644\n@ -9,1 +9,1\n-9:\"x\\n\"\n+9:\"y\\n\"",
        "R100 pure:0644 moved:0644 same",
        "C80 c:0644 d:0644\n@ -1,0 +1,1\n+1:\"z\"",
        "M bin:0644 bin:0644 binary None..None",
        "A new:0644 same",
        "D gone:0644\n@ -1,2 +1,0\n-1:\"l1\\n\"\n-2:\"l2\\n\"",
        "A link:0000\n@ -1,0 +1,1\n+1:\"target\"",
        "M sub:0000 sub:0000 submodule dirty",
    ];
    assert_eq!(read(patch), want);
    let changes = parse(patch.as_bytes()).unwrap();
    assert_eq!(
        changes[0]
            .entry
            .old
            .as_ref()
            .unwrap()
            .id
            .unwrap()
            .to_string(),
        "1".repeat(40)
    );
    assert_eq!(
        changes[8]
            .entry
            .new
            .as_ref()
            .unwrap()
            .id
            .unwrap()
            .to_string(),
        "6".repeat(40)
    );
    assert_eq!(changes[0].text().unwrap().hunks[0].section, b"section");
    assert_eq!(changes[7].text().unwrap().new.whole(), Some(&b"target"[..]));
    assert_eq!(changes[0].text().unwrap().new.whole(), None);
}

#[test]
fn reads_patches_of_other_tools() {
    let hunk = "@@ -1 +1 @@\n-a\n+b\n";
    let lines = "\n@ -1,1 +1,1\n-1:\"a\\n\"\n+1:\"b\\n\"";
    for (head, want) in [
        // GNU diff, with and without -r.
        (
            "--- x.c.orig\t2024-01-01 10:00:00.000000000 +0100\n+++ x.c\t2024-01-01 10:00:01.000000000 +0100\n",
            "x.c",
        ),
        (
            "diff -ru old/src/x.c new/src/x.c\n--- old/src/x.c\t2024-01-01\n+++ new/src/x.c\t2024-01-01\n",
            "src/x.c",
        ),
        // Subversion.
        (
            "Index: trunk/x.c\n=====\n--- trunk/x.c\t(revision 3)\n+++ trunk/x.c\t(working copy)\n",
            "trunk/x.c",
        ),
        // Mercurial, both styles.
        (
            "diff -r 0123456789ab x.c\n--- a/x.c\tThu Jan 01 10:00:00 2024 +0000\n+++ b/x.c\tThu Jan\n",
            "x.c",
        ),
        ("diff --git a/x.c b/x.c\n--- a/x.c\n+++ b/x.c\n", "x.c"),
        // Git with other prefixes.
        (
            "diff --git src/x.c src/x.c\nindex 1234567..89abcde 100644\n--- src/x.c\n+++ src/x.c\n",
            "src/x.c",
        ),
        (
            "diff --git i/x.c w/x.c\nindex 1234567..89abcde 100644\n--- i/x.c\n+++ w/x.c\n",
            "x.c",
        ),
        ("diff --git c/x.c i/x.c\n--- c/x.c\n+++ i/x.c\n", "x.c"),
        ("diff --git o/x.c w/x.c\n--- o/x.c\n+++ w/x.c\n", "x.c"),
        ("--- \"a/t\\tb\"\n+++ \"b/t\\tb\"\n", "t\tb"),
        // Mail.
        (
            "From 0123 Mon Sep 17\nSubject: [PATCH] x\n\ntext\n---\n x | 2 +-\n\ndiff --git a/x b/x\n--- a/x\n+++ b/x\n",
            "x",
        ),
    ] {
        let patch = format!("{head}{hunk}-- \n2.40.0\n");
        assert_eq!(
            read(&patch),
            [format!("M {want}:0644 {want}:0644{lines}")],
            "{head}"
        );
    }
}

#[test]
fn reads_files_that_other_tools_add_and_delete() {
    let added =
        "--- a/x\t1970-01-01 01:00:00.000000000 +0100\n+++ b/x\t2024-01-01\n@@ -0,0 +1 @@\n+a\n";
    assert_eq!(read(added), ["A x:0644\n@ -1,0 +1,1\n+1:\"a\\n\""]);
    let svn = "Index: x\n====\n--- x\t(nonexistent)\n+++ x\t(working copy)\n@@ -0,0 +1 @@\n+a\n";
    assert_eq!(read(svn), ["A x:0644\n@ -1,0 +1,1\n+1:\"a\\n\""]);
    let gone = "--- a/x\t2024\n+++ /dev/null\t1970\n@@ -1 +0,0 @@\n-a\n";
    assert_eq!(read(gone), ["D x:0644\n@ -1,1 +1,0\n-1:\"a\\n\""]);
    // A change of a file that was empty is not an addition.
    let empty = "--- a/x\t2024-01-01\n+++ b/x\t2024-01-01\n@@ -0,0 +1 @@\n+a\n";
    assert_eq!(read(empty), ["M x:0644 x:0644\n@ -1,0 +1,1\n+1:\"a\\n\""]);
}

#[test]
fn lists_binary_files_of_every_tool() {
    let both_deltas = "diff --git a/x b/x\nindex 1..2 100644\nGIT binary patch\ndelta 3\nKcmZQzWMT#Y01f~L\n\ndelta 3\nKcmZQzWMT#Y01f~L\n\n";
    refuse(
        both_deltas,
        "line 3 of the patch: cannot decode the data of the binary patch",
    );
    // Above the size limit of decoding: listed with its size.
    let huge = "diff --git a/x b/x\nindex 1..2 100644\nGIT binary patch\nliteral 999999999999\nKcmZQzWMT#Y01f~L\n\n";
    assert_eq!(
        read(huge),
        ["M x:0644 x:0644 binary None..Some(999999999999)"]
    );
    assert_eq!(
        read("Binary files old/x.png and new/x.png differ\n"),
        ["M x.png:0644 x.png:0644 binary None..None"]
    );
    let svn = "Index: x.png\n=====\nCannot display: file marked as a binary type.\nsvn:mime-type = image/png\n";
    assert_eq!(read(svn), ["M x.png:0644 x.png:0644 binary None..None"]);
    refuse(
        "diff --git a/x b/x\nGIT binary patch\nliteral 3\nnot data\n",
        "line 4 of the patch",
    );
    refuse(
        "diff --git a/x b/x\nGIT binary patch\ngarbage\n",
        "line 3 of the patch",
    );
}

#[test]
fn dif_02_text_in_a_binary_patch_is_decoded() {
    // The output of `git diff --binary` for "one\n\0\n" that becomes "two\n\0\nthree\n".
    let head = "diff --git a/x b/x\nindex 1..2 100644\nGIT binary patch\n";
    let (new, old) = (
        "literal 12\nTcmXRZ&*x&`D#<8HP2~ar7#ahS\n\n",
        "literal 6\nNcmd1LOXXtV0ssbr0apM3\n\n",
    );
    let want = "\n@ -1,2 +1,3\n-1:\"one\\n\"\n+1:\"two\\n\"\n 2:\"\\0\\n\"\n+3:\"three\\n\"";
    assert_eq!(
        read(&format!("{head}{new}{old}")),
        [format!("M x:0644 x:0644{want}")]
    );
    let changes = parse(format!("{head}{new}{old}").as_bytes()).unwrap();
    assert_eq!(
        changes[0].text().unwrap().hidden,
        Some(crate::diff::Hidden::Nul)
    );
    // Without the reverse part, every line counts as new.
    let whole = "\n@ -1,0 +1,3\n+1:\"two\\n\"\n+2:\"\\0\\n\"\n+3:\"three\\n\"";
    assert_eq!(
        read(&format!("{head}{new}")),
        [format!("M x:0644 x:0644{whole}")]
    );
}

#[test]
fn dif_07_lines_that_look_like_headers_stay_content() {
    let patch = "\
diff --git a/x b/x
index 1111111..2222222 100644
--- a/x
+++ b/x
@@ -1,2 +1,7 @@
--- a/old
+++ b/evil
+@@ -1 +1 @@
+diff --git a/y b/y
+-- \n+\\ No newline at end of file
+GIT binary patch
 last
";
    let got = read(patch);
    assert_eq!(got.len(), 1, "{got:?}");
    assert!(
        got[0].contains("-1:\"-- a/old\\n\"\n+1:\"++ b/evil\\n\"\n+2:\"@@ -1 +1 @@\\n\""),
        "{}",
        got[0]
    );
    assert!(
        got[0].ends_with("+6:\"GIT binary patch\\n\"\n 7:\"last\\n\""),
        "{}",
        got[0]
    );
}

#[test]
fn dif_08_line_ends_stay_as_they_are() {
    // A patch of a file with carriage returns keeps them.
    assert_eq!(
        read("--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\r\n+b\r\n"),
        ["M x:0644 x:0644\n@ -1,1 +1,1\n-1:\"a\\r\\n\"\n+1:\"b\\r\\n\""]
    );
    // A patch with converted line ends loses all carriage returns.
    assert_eq!(read(&SMALL.replace('\n', "\r\n")), read(SMALL));
    let git = format!("diff --git a/x b/x\nindex 1111111..2222222 100644\n{SMALL}");
    assert_eq!(read(&git.replace('\n', "\r\n")), read(&git));
    // Form feed, a lone carriage return, U+2028 and U+0085 do not end a line.
    let odd = "--- a/x\n+++ b/x\n@@ -1 +1,2 @@\n-a\n+b\u{c}\u{2028}c\rd\u{85}e\n+f\n";
    assert!(read(odd)[0].ends_with("\n+2:\"f\\n\""));
    // Neither side ends with a line end, then only one.
    let both = "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+b\n\\ No newline at end of file\n";
    assert_eq!(
        read(both),
        ["M x:0644 x:0644\n@ -1,1 +1,1\n-1:\"a\"\n+1:\"b\""]
    );
    let context = "--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n-a\n+b\n c\n\\ No newline at end of file\n";
    assert_eq!(
        read(context),
        ["M x:0644 x:0644\n@ -1,2 +1,2\n-1:\"a\\n\"\n+1:\"b\\n\"\n 2:\"c\""]
    );
}

#[test]
fn reads_mangled_but_whole_patches() {
    // A mailer removed the blank of an empty context line, and the last line end is missing.
    assert_eq!(
        read("--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n\n-a\n+b"),
        ["M x:0644 x:0644\n@ -1,2 +1,2\n 1:\"\\n\"\n-2:\"a\\n\"\n+2:\"b\\n\""]
    );
    let utf16: Vec<u8> = std::iter::once(0xfeff)
        .chain(SMALL.encode_utf16())
        .flat_map(u16::to_le_bytes)
        .collect();
    assert_eq!(
        parse(&utf16).unwrap().iter().map(show).collect::<Vec<_>>(),
        read(SMALL)
    );
    assert_eq!(read(&format!("\u{feff}{SMALL}")), read(SMALL));
}

#[test]
fn added_before_removed_is_one_edit() {
    let changes = parse(b"--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n+b\n-a\n c\n").unwrap();
    let text = changes[0].text().unwrap();
    assert_eq!(text.hunks[0].edits.len(), 1);
    assert_eq!(text.stat(), (1, 1));
}

#[test]
fn an_empty_patch_is_no_change_and_other_text_is_none() {
    for empty in [
        "",
        "\n\n",
        "commit 0123456789012345678901234567890123456789\nAuthor: x\n\n    nothing\n",
    ] {
        assert!(read(empty).is_empty());
    }
    for text in [
        "hello\n",
        "1c1\n< a\n---\n> b\n",
        "--- a/x\n+++ b/x\n",
        "{\"json\": 1}",
    ] {
        refuse(text, "not a patch");
    }
}

#[test]
fn dif_12_refuses_what_does_not_fit_together() {
    for (hunks, what) in [
        (
            "@@ -1,2 +1 @@\n-a\n+b\n",
            "line 6 of the patch: hunk of line 3 is too short",
        ),
        (
            "@@ -1 +1 @@\n-a\n+b\n+c\n",
            "line 6 of the patch: hunk of line 3 has more lines than its header declares",
        ),
        (
            "@@ -1 +1 @@\n-a\n+b\n c\n",
            "line 6 of the patch: hunk of line 3 has more lines",
        ),
        (
            "@@ -1 +1 @@\n-a\n+b\n-c\n",
            "line 6 of the patch: hunk of line 3 has more lines",
        ),
        (
            "@@ -1,2 +1,2 @@\n-a\ngarbage\n",
            "line 5 of the patch: hunk of line 3",
        ),
        (
            "@@ -1 +1 @@\n-a\n+b\n@@ -1 +1 @@\n-a\n+b\n",
            "line 6 of the patch: hunk overlaps",
        ),
        (
            "@@ -9 +9 @@\n-a\n+b\n@@ -1 +1 @@\n-a\n+b\n",
            "line 6 of the patch: hunk overlaps",
        ),
        (
            "@@ -9223372036854775808 +1 @@\n-a\n+b\n",
            "line 3 of the patch: invalid hunk header",
        ),
        (
            "@@ -4294967295 +1 @@\n-a\n+b\n",
            "line 3 of the patch: line number out of range",
        ),
        (
            "@@ -2147483647,9 +1 @@\n-a\n+b\n",
            "line 3 of the patch: line number out of range",
        ),
        (
            "@@ -1,4294967295 +1 @@\n-a\n+b\n",
            "line 3 of the patch: line number out of range",
        ),
        (
            "@@ -0 +1 @@\n-a\n+b\n",
            "line 3 of the patch: invalid line number 0",
        ),
        (
            "@@ -1 +1 @@\n-a\n\\ No newline at end of file\n\\ No newline at end of file\n+b\n",
            "line 6 of the patch",
        ),
        (
            "@@ -1 +1,2 @@\n-a\n+b\n\\ No newline at end of file\n+c\n",
            "line 7 of the patch: line after the end",
        ),
        (
            "@@ -1 +1 @@\n\\ No newline at end of file\n-a\n+b\n",
            "line 4 of the patch: end of file",
        ),
        (
            "@@ -1,2 +1,2 @@\n a\n-b\n",
            "line 6 of the patch: hunk of line 3 is too short: 0 old and 1 new",
        ),
        ("@@ -a +1 @@\n", "line 3 of the patch: invalid hunk header"),
    ] {
        refuse(&format!("--- a/x\n+++ b/x\n{hunks}"), what);
    }
    refuse(
        "@@ -1 +1 @@\n-a\n+b\n",
        "line 1 of the patch: hunk without file names",
    );
    refuse(
        "diff --git a/x b/x\nnew file mode 100644\n--- /dev/null\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n",
        "old lines",
    );
    refuse(
        "diff --git a/x b/x\ndeleted file mode 100644\n--- a/x\n+++ /dev/null\n@@ -1 +1 @@\n-a\n+b\n",
        "new lines",
    );
    refuse(
        "diff --git a/x b/y\nindex 1111111..2222222 100644\n",
        "cannot separate",
    );
    refuse(
        "diff --git a/x b/x\nindex 1111111..2222222 100644\n",
        "lacks the content",
    );
    refuse(
        "diff --git a/x b/x\nnew file mode 100644\nindex 0000000..2222222\n",
        "lacks the content",
    );
    refuse("diff --git a/x b/x\nold mode 190000\n", "file mode");
    refuse("diff --git a/x b/x\nsimilarity index 101%\n", "percentage");
    refuse("diff --git a/x b/x\nrename from x\n", "only one file name");
    refuse(
        "diff --git a/.. b/..\nold mode 100644\nnew mode 100755\n",
        "name",
    );
    refuse("diff --git a/x b/x\n--- a/x\n+++ b/x\n", "expected a hunk");
}

#[test]
fn refuses_kinds_of_patches_that_cannot_be_reviewed() {
    refuse(
        "diff --cc x\nindex 1,2..3\n--- a/x\n+++ b/x\n@@@ -1,1 -1,1 +1,1 @@@\n- a\n",
        "combined",
    );
    refuse(
        "*** a/x\t2024\n--- b/x\t2024\n***************\n*** 1 ****\n! a\n--- 1 ----\n! b\n",
        "context diff",
    );
    refuse("\x1b[1mdiff --git a/x b/x\x1b[m\n", "colour codes");
    refuse(
        "Subject: x\nContent-Transfer-Encoding: quoted-printable\n\ndiff --git a/x b/x\n",
        "encoded",
    );
}

#[test]
fn long_lines_of_blanks_and_slashes_take_no_long_time() {
    let start = std::time::Instant::now();
    for piece in [
        " ",
        "/",
        " /",
        "a/ ",
        "/dev/null ",
        " and ",
        "\"",
        "\\0",
        "\t",
    ] {
        let line = piece.repeat((256 << 10) / piece.len());
        for head in [
            "diff --git ",
            "diff --git a/",
            "Binary files ",
            "Submodule ",
            "Index: ",
            "--- ",
        ] {
            let _ = parse(format!("{head}{line}\n{head}x\n").as_bytes());
        }
        let _ = parse(format!("--- {line}\n+++ {line}\n@@ -1 +1 @@\n-a\n+b\n").as_bytes());
    }
    // It would take much longer if the line were read again for every blank.
    assert!(start.elapsed().as_secs() < 20, "{:?}", start.elapsed());
}

#[test]
fn never_panics_on_damaged_patches() {
    let whole = format!(
        "diff --git \"a/t\\tb\" \"b/t\\tb\"\nold mode 100644\nnew mode 100755\nindex 1111111..2222222\n--- \"a/t\\tb\"\n\
         +++ \"b/t\\tb\"\n@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+c\n{SMALL}diff --git a/b b/b\n\
         GIT binary patch\nliteral 3\nKcmZQzWMT#Y01f~L\n\nBinary files a and b differ\nIndex: x\nSubmodule x 1..2:\n"
    );
    let mut random = crate::diff::tests::Random(7);
    for _ in 0..20_000 {
        let mut bytes = whole.clone().into_bytes();
        for _ in 0..=random.below(4) {
            let at = random.below(bytes.len());
            match random.below(4) {
                0 => bytes.truncate(at),
                1 => drop(bytes.remove(at)),
                2 => bytes[at] = b"\n+- @\\\"0\xff9a/"[random.below(12)],
                _ => bytes.insert(at, b"\n+- @\\\"0\xff9a/"[random.below(12)]),
            }
            if bytes.is_empty() {
                break;
            }
        }
        if let Ok(changes) = parse(&bytes) {
            for change in &changes {
                show(change);
                unified::write(change, &mut Vec::new());
            }
        }
    }
}

#[test]
fn what_is_written_reads_back_the_same() {
    let mut random = crate::diff::tests::Random(11);
    for round in 0..400 {
        let (old, new) = crate::diff::tests::random_edit(&mut random);
        let (kind, sides) = match round % 4 {
            0 => (ChangeKind::Added, (None, side("dir/new file"))),
            1 => (ChangeKind::Deleted, (side("gone\t\u{e9}"), None)),
            2 => (
                ChangeKind::Renamed { similarity: 60 },
                (side("from"), side("to b/x")),
            ),
            _ => (ChangeKind::Modified, (side("a/x"), side("a/x"))),
        };
        let body = Body::between(
            sides.0.is_some().then(|| old.clone()),
            sides.1.is_some().then(|| new.clone()),
            Attribute::Text,
        );
        let change = FileChange {
            entry: Entry {
                kind,
                old: sides.0,
                new: sides.1,
            },
            body,
        };
        let mut text = Vec::new();
        unified::write(&change, &mut text);
        if change.text().is_none() && kind == ChangeKind::Modified {
            continue;
        }
        let again =
            parse(&text).unwrap_or_else(|e| panic!("{e}\n{}", String::from_utf8_lossy(&text)));
        assert_eq!(again.len(), 1);
        assert_eq!(
            show(&again[0]),
            show(&change),
            "{}",
            String::from_utf8_lossy(&text)
        );
        let mut twice = Vec::new();
        unified::write(&again[0], &mut twice);
        assert_eq!(
            String::from_utf8_lossy(&twice),
            String::from_utf8_lossy(&text)
        );
        if let (Some(a), Some(b)) = (change.text(), again[0].text()) {
            for hunk in &a.hunks {
                for line in a.lines(hunk) {
                    for (n, t, u) in [(line.old, &a.old, &b.old), (line.new, &a.new, &b.new)] {
                        assert_eq!(n.and_then(|n| u.line(n)), n.and_then(|n| t.line(n)));
                    }
                }
            }
        }
    }
}

fn side(path: &str) -> Option<Side> {
    Some(Side {
        path: RepoPath::from(path),
        mode: FileMode::Regular,
        id: None,
    })
}

#[test]
fn refuses_names_outside_the_tree_and_in_gits_own_data() {
    for (old, new, line) in [
        ("a/tmp/x", "b/../../../../tmp/x", 2),
        ("/dev/null", "b/../../../../tmp/x", 2),
        ("a/../x", "/dev/null", 1),
        ("/etc/passwd", "/etc/passwd", 1),
        ("a/etc/passwd", "/etc/passwd", 2),
        ("/dev/null", "/etc/passwd", 2),
        ("/tmp/old/x", "/tmp/new/x", 1),
        ("a/.git/hooks/pre-commit", "b/.git/hooks/pre-commit", 1),
        ("/dev/null", "b/sub/.GIT/config", 2),
        ("a//x", "b//x", 1),
        ("a/./x", "b/./x", 1),
        ("\"a/\\056\\056/x\"", "\"b/\\056\\056/x\"", 1),
    ] {
        refuse(
            &plain(old, new),
            &format!("line {line} of the patch: file name"),
        );
        let git = format!("diff --git {old} {new}\n{}", plain(old, new));
        refuse(&git, &format!("line {} of the patch: file name", line + 1));
        // A valid `diff --git` line does not excuse the other two.
        refuse(
            &format!("diff --git a/x b/x\n{}", plain(old, new)),
            &format!("line {} of the patch: file name", line + 1),
        );
    }
    refuse(
        &plain("../../x", "../../x"),
        "line 1 of the patch: file name with ..",
    );
    for (old, new) in [("a/../x", "b/../x"), ("/x", "/x"), ("a/.git/x", "b/.git/x")] {
        refuse(
            &format!("diff --git {old} {new}\nold mode 100644\nnew mode 100755\n"),
            "line 1 of the patch: file name",
        );
    }
    refuse(
        "diff --git a/x b/y\nsimilarity index 100%\nrename from x\nrename to ../y\n",
        "line 1 of the patch: file name with ..",
    );
    refuse(
        "diff --git a/x b/y\nsimilarity index 100%\ncopy from /x\ncopy to y\n",
        "line 1 of the patch: file name is absolute",
    );
    refuse(
        "\nBinary files /tmp/a/x.png and /tmp/b/x.png differ\n",
        "line 2 of the patch: file name is absolute",
    );
    refuse(
        "Binary files a/../x.png and b/../x.png differ\n",
        "line 1 of the patch: file name with ..",
    );
    refuse(
        "Index: ../x\n=====\nCannot display: file marked as a binary type.\n",
        "line 1 of the patch: file name with ..",
    );
    refuse(
        "Submodule ../x 1234567..89abcde:\n",
        "line 1 of the patch: file name with ..",
    );
    let hint = parse(plain("/tmp/old/x", "/tmp/new/x").as_bytes())
        .unwrap_err()
        .hints
        .concat();
    assert!(hint.contains("diff -ru -x .git OLD NEW"), "{hint}");
    // A valid file before it does not excuse the rest.
    refuse(
        &format!("{SMALL}{}", plain("/etc/x", "/etc/x")),
        "line 7 of the patch",
    );
}

/// Returns a patch without git's header, with these names.
fn plain(old: &str, new: &str) -> String {
    format!("--- {old}\n+++ {new}\n@@ -1 +1 @@\n-a\n+b\n")
}
