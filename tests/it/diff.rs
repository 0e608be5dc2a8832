//! Compares the change model with git: the same patches, byte for byte, and every patch can be
//! parsed again.

mod random;
mod through;

use crate::support::Repo;
use claude_reviewer::diff::{
    Body, ChangeKind, Encoding, FileChange, Hidden, LineKind, LineNo, patch, unified,
};
use claude_reviewer::env::Env;
use claude_reviewer::git::{self, Change};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

/// Opens the repository as the program does.
fn open(repo: &Repo) -> git::Repo {
    let env = Env::from_pairs(repo.path(), [("HOME", repo.home())]);
    git::Repo::open(&repo.path(), &env).unwrap()
}

fn load(reader: &mut git::Reader<'_>, change: &Change) -> Vec<FileChange> {
    (0..change.entries.len())
        .map(|i| reader.load(change, i).unwrap())
        .collect()
}

fn write(changes: &[FileChange]) -> Vec<u8> {
    let mut out = Vec::new();
    changes.iter().for_each(|c| unified::write(c, &mut out));
    out
}

/// Runs git and returns its bytes.
#[track_caller]
fn git_bytes(repo: &Repo, args: &[&str]) -> Vec<u8> {
    let out = repo.try_git(args);
    assert!(
        out.status.success(),
        "git {args:?}: {}",
        String::from_utf8_lossy(&out.stderr)
    );
    out.stdout
}

/// Compares two patches file by file, so that a failure shows the file.
#[track_caller]
fn same_patch(ours: &[u8], gits: &[u8]) {
    let files = |patch: &[u8]| {
        let text = String::from_utf8_lossy(patch).into_owned();
        text.split("diff --git ")
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    for (ours, gits) in files(ours).iter().zip(&files(gits)) {
        assert_eq!(ours, gits);
    }
    assert!(
        ours == gits,
        "ours:\n{}\ngit's:\n{}",
        String::from_utf8_lossy(ours),
        String::from_utf8_lossy(gits)
    );
}

fn utf16(text: &str, encoding: Encoding, mark: bool) -> Vec<u8> {
    let units = mark
        .then_some(0xfeff)
        .into_iter()
        .chain(text.encode_utf16());
    match encoding {
        Encoding::Utf16Be => units.flat_map(u16::to_be_bytes).collect(),
        _ => units.flat_map(u16::to_le_bytes).collect(),
    }
}

/// Returns a small picture: a real signature and binary bytes.
fn png(seed: u8) -> Vec<u8> {
    let noise = (0..400u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8 ^ seed);
    [
        &b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"[..],
        &noise.collect::<Vec<_>>(),
    ]
    .concat()
}

/// Returns a source file of `n` functions, with the lines of `marked` changed.
fn source(n: usize, marked: &[usize]) -> String {
    (0..n)
        .map(|i| {
            let mark = if marked.contains(&i) {
                "changed"
            } else {
                "kept"
            };
            format!("fn function_{i}() {{\n    let x = {i};\n\n    // {mark}\n    call(x);\n}}\n\n")
        })
        .collect()
}

/// Names that git quotes, or that look like other syntax.
const ODD_NAMES: [&[u8]; 14] = [
    b"with space.txt",
    b"tab\there.txt",
    b"new\nline.txt",
    b"quo\"te.txt",
    b"quo\"te and space.txt",
    b"back\\slash.txt",
    b"esc\x1b[31m.txt",
    b"x b/y.txt",
    b"a/a.txt",
    b"caf\xc3\xa9.txt",
    b"latin-\xe9.txt",
    b"-dash.txt",
    b"trailing ",
    b"::error::.txt",
];

/// Writes every edge case, before or after the change.
fn edge_cases(repo: &Repo, after: bool) {
    let pick = |before: &'static [u8], now: &'static [u8]| if after { now } else { before };
    let put = |name: &[u8], content: &[u8]| {
        let path: PathBuf = repo.path().join(OsStr::from_bytes(name));
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let _ = std::fs::remove_file(&path);
        std::fs::write(path, content).unwrap();
    };
    let remove = |name: &str| std::fs::remove_file(repo.path().join(name)).unwrap();
    let link = |name: &str, target: &str| {
        let path = repo.path().join(name);
        let _ = std::fs::remove_file(&path);
        std::os::unix::fs::symlink(target, path).unwrap();
    };
    let executable = |name: &str, on: bool| {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = if on { 0o755 } else { 0o644 };
        std::fs::set_permissions(
            repo.path().join(name),
            std::fs::Permissions::from_mode(mode),
        )
        .unwrap();
    };
    for name in ODD_NAMES {
        put(name, pick(b"one\ntwo\n", b"one\n2\n"));
    }
    put(
        b".gitattributes",
        b"*.hid -diff\n*.bin binary\n*.shown diff\n",
    );
    put(
        b"source.rs",
        source(40, if after { &[3, 4, 20, 39] } else { &[] }).as_bytes(),
    );
    put(
        b"long-section.c",
        &[
            &[b'f'; 100][..],
            b"\n\t1\n\t2\n\t3\n\t4\n\t",
            pick(b"5", b"five"),
            b"\n",
        ]
        .concat(),
    );
    put(
        b"slide.txt",
        pick(
            b"a {\n  x\n}\n\nb {\n  x\n}\n",
            b"a {\n  x\n}\n\nc {\n  x\n}\n\nb {\n  x\n}\n",
        ),
    );
    // Ends of lines and of files.
    put(b"open-both.txt", pick(b"a\nb", b"a\nc"));
    put(b"open-before.txt", pick(b"a\nb", b"a\nb\n"));
    put(b"open-after.txt", pick(b"a\nb\n", b"a\nb"));
    put(
        b"open-far.txt",
        pick(b"1\n2\n3\n4\n5\nend", b"one\n2\n3\n4\n5\nend"),
    );
    put(b"crlf.txt", pick(b"a\r\nb\r\nc\r\n", b"a\r\nB\r\nc\r\n"));
    put(b"to-crlf.txt", pick(b"a\nb\n", b"a\r\nb\r\n"));
    put(b"cr.txt", pick(b"a\rb\rc\r", b"a\rB\rc\r"));
    put(
        b"odd-ends.txt",
        pick(
            "a\u{c}\u{2028}b\u{85}\u{b}c\n".as_bytes(),
            "a\u{c}\u{2028}B\u{85}\u{b}c\n\u{2029}\n".as_bytes(),
        ),
    );
    put(
        b"headers.txt",
        pick(
            b"-- a/x\n++ b/x\n",
            b"@@ -1 +1 @@\n++ b/x\ndiff --git a/x b/x\n\\ No newline at end of file\n",
        ),
    );
    // Contents that are not UTF-8.
    put(
        b"latin1.txt",
        pick(b"caf\xe9\nna\xefve\n", b"caf\xe9\nna\xefve!\n"),
    );
    put(
        b"invalid.txt",
        pick(b"\xff\xfe\xfd\n\xc3(\n", b"\xff\xfe\xfd\n\xc3)\n\xe2\x82\n"),
    );
    for (name, encoding, mark) in [
        (&b"le.ps1"[..], Encoding::Utf16Le, true),
        (b"be.ps1", Encoding::Utf16Be, true),
        (b"le-bare.ps1", Encoding::Utf16Le, false),
        (b"be-bare.ps1", Encoding::Utf16Be, false),
    ] {
        let text = if after {
            "one\r\ntwo\r\nthree\r\n"
        } else {
            "one\r\n2\r\nthree\r\n"
        };
        put(name, &utf16(text, encoding, mark));
    }
    put(
        b"nul.php",
        pick(b"<?php\n// one\n\0\n", b"<?php\nsystem($_GET['c']);\n\0\n"),
    );
    put(
        b"late-nul.txt",
        &[&[b'x'; 8000][..], b"\n\0", pick(b"a", b"b"), b"\n"].concat(),
    );
    put(b"no-more-nul.txt", pick(b"a\0\nb\n", b"a\nb\n"));
    put(b"script.hid", pick(b"a\nb\n", b"a\nc\n"));
    put(b"pictures/logo.png", &png(u8::from(after)));
    put(b"data.bin", &png(2 + u8::from(after)));
    put(b"forced.shown", pick(b"a\0\n", b"b\0\n"));
    // Empty files, and files that are added or deleted.
    put(b"emptied.txt", pick(b"a\n", b""));
    put(b"filled.txt", pick(b"", b"a\n"));
    if after {
        remove("gone.txt");
        remove("gone-empty.txt");
        remove("gone-picture.png");
        remove("folder/inside.txt");
        std::fs::remove_dir(repo.path().join("folder")).unwrap();
    } else {
        put(b"gone.txt", b"a\nb\nopen");
        put(b"gone-empty.txt", b"");
        put(b"gone-picture.png", &png(9));
        put(b"folder/inside.txt", b"what only this file holds\n");
        put(b"becomes-folder", b"what only that file holds\n");
    }
    if after {
        put(b"new.txt", b"a\nb\n");
        put(b"new-empty.txt", b"");
        put(b"new-open.txt", b"a\nb");
        put(b"new-picture.png", &png(200));
        put(b"new.sh", b"#!/bin/sh\nexit 0\n");
        executable("new.sh", true);
        put(b"folder", b"a folder before\n");
        remove("becomes-folder");
        put(b"becomes-folder/inside", b"a file before\n");
    }
    // Renames, modes and types.
    let moved = |name: &str| source(12, if name == "edited" { &[5] } else { &[] });
    if after {
        for name in ["pure", "edited", "mode"] {
            remove(&format!("from-{name}.rs"));
            put(
                format!("dir/to {name}.rs").as_bytes(),
                format!("// {name}\n{}", moved(name)).as_bytes(),
            );
        }
        executable("dir/to mode.rs", true);
    } else {
        for name in ["pure", "edited", "mode"] {
            put(
                format!("from-{name}.rs").as_bytes(),
                format!("// {name}\n{}", source(12, &[])).as_bytes(),
            );
        }
    }
    put(b"mode-only.sh", b"exit 0\n");
    executable("mode-only.sh", after);
    put(b"mode-and-text.sh", pick(b"exit 0\n", b"exit 1\n"));
    executable("mode-and-text.sh", !after);
    link("link", if after { "elsewhere/target" } else { "target" });
    if after {
        link("to-link", "target");
        put(b"to-file", b"target");
    } else {
        put(b"to-link", b"a file\n");
        link("to-file", "target");
    }
}

/// Stages submodules at commits that depend on the side.
fn submodules(repo: &Repo, after: bool) {
    let stage = |name: &str, digit: &str| {
        let entry = format!("160000,{},{name}", digit.repeat(40));
        repo.git(&["update-index", "--add", "--cacheinfo", &entry]);
        std::fs::create_dir_all(repo.path().join(name)).unwrap();
    };
    stage("sub moved", if after { "2" } else { "1" });
    if after {
        stage("sub-new", "3");
        repo.git(&["update-index", "--force-remove", "sub-gone"]);
        std::fs::remove_dir(repo.path().join("sub-gone")).unwrap();
    } else {
        stage("sub-gone", "4");
    }
}

/// Creates a repository with a root commit and one that changes every edge case.
fn two_commits() -> (Repo, String, String) {
    let repo = Repo::new();
    edge_cases(&repo, false);
    repo.git(&["add", "-A", "-f"]);
    submodules(&repo, false);
    let first = repo.commit("before");
    edge_cases(&repo, true);
    repo.git(&["add", "-A", "-f"]);
    submodules(&repo, true);
    let second = repo.commit("after");
    (repo, first, second)
}

#[test]
fn dif_05_commits_read_as_git_show_prints_them() {
    let (repo, first, second) = two_commits();
    let opened = open(&repo);
    let mut reader = opened.reader();
    for commit in [&first, &second] {
        let change = opened
            .commit(opened.resolve(commit).unwrap(), None)
            .unwrap();
        let gits = git_bytes(&repo, &["show", "--full-index", "--format=", commit]);
        same_patch(&write(&load(&mut reader, &change)), &gits);
    }
}

#[test]
fn dif_05_staged_and_unstaged_changes_read_as_git_diff_prints_them() {
    let repo = Repo::new();
    edge_cases(&repo, false);
    repo.git(&["add", "-A", "-f"]);
    submodules(&repo, false);
    repo.commit("before");
    edge_cases(&repo, true);
    let opened = open(&repo);
    let change = opened.unstaged(false).unwrap();
    same_patch(
        &write(&load(&mut opened.reader(), &change)),
        &git_bytes(&repo, &["diff", "--full-index"]),
    );
    repo.git(&["add", "-A", "-f"]);
    submodules(&repo, true);
    let opened = open(&repo);
    let change = opened.staged().unwrap();
    let gits = git_bytes(&repo, &["diff", "--cached", "--full-index"]);
    same_patch(&write(&load(&mut opened.reader(), &change)), &gits);
    // Staged in an unborn repository, everything is new.
    repo.git(&["update-ref", "-d", "HEAD"]);
    let opened = open(&repo);
    let change = opened.staged().unwrap();
    let gits = git_bytes(&repo, &["diff", "--cached", "--full-index"]);
    same_patch(&write(&load(&mut opened.reader(), &change)), &gits);
}

/// Returns the change of a path in the second commit.
fn of_path(repo: &Repo, commit: &str, path: &[u8]) -> FileChange {
    let opened = open(repo);
    let change = opened
        .commit(opened.resolve(commit).unwrap(), None)
        .unwrap();
    let changes = load(&mut opened.reader(), &change);
    let found = changes
        .into_iter()
        .filter(|c| c.path().as_bytes() == path)
        .last();
    found.unwrap_or_else(|| panic!("no change of {}", String::from_utf8_lossy(path)))
}

/// Returns the added lines, with the number of the first one.
fn added(change: &FileChange) -> Vec<(u32, String)> {
    let text = change
        .text()
        .unwrap_or_else(|| panic!("no text: {change:?}"));
    text.added()
        .map(|b| (b.first.get(), String::from_utf8_lossy(b.text).into_owned()))
        .collect()
}

#[test]
fn dif_01_text_under_a_no_diff_attribute_is_read() {
    let (repo, _, second) = two_commits();
    let change = of_path(&repo, &second, b"script.hid");
    assert_eq!(change.text().unwrap().hidden, Some(Hidden::Attribute));
    assert_eq!(added(&change), [(2, "c\n".to_owned())]);
    assert!(matches!(
        of_path(&repo, &second, b"data.bin").body,
        Body::Binary(_)
    ));
}

#[test]
fn dif_02_text_behind_a_nul_is_read() {
    let (repo, _, second) = two_commits();
    let change = of_path(&repo, &second, b"nul.php");
    assert_eq!(change.text().unwrap().hidden, Some(Hidden::Nul));
    assert_eq!(added(&change), [(2, "system($_GET['c']);\n".to_owned())]);
    // A NUL past git's first 8000 bytes hides nothing, and neither does the removal of a NUL.
    assert_eq!(
        of_path(&repo, &second, b"late-nul.txt")
            .text()
            .unwrap()
            .hidden,
        None
    );
    assert_eq!(
        of_path(&repo, &second, b"no-more-nul.txt")
            .text()
            .unwrap()
            .hidden,
        Some(Hidden::OldSide)
    );
}

#[test]
fn dif_03_utf16_latin1_and_invalid_utf8_keep_their_lines() {
    let (repo, _, second) = two_commits();
    for (name, encoding) in [
        (&b"le.ps1"[..], Encoding::Utf16Le),
        (b"be.ps1", Encoding::Utf16Be),
        (b"le-bare.ps1", Encoding::Utf16Le),
        (b"be-bare.ps1", Encoding::Utf16Be),
    ] {
        let change = of_path(&repo, &second, name);
        let text = change.text().unwrap();
        assert_eq!(
            (text.encoding, text.hidden),
            (encoding, Some(Hidden::Utf16))
        );
        assert_eq!(added(&change), [(2, "two\r\n".to_owned())]);
        assert_eq!(text.new.line(LineNo::new(3).unwrap()), Some(&b"three"[..]));
    }
    let latin = of_path(&repo, &second, b"latin1.txt");
    assert_eq!(
        latin.text().unwrap().added().next().unwrap().text,
        b"na\xefve!\n"
    );
    let invalid = of_path(&repo, &second, b"invalid.txt");
    let blocks: Vec<_> = invalid
        .text()
        .unwrap()
        .added()
        .map(|b| (b.first.get(), b.text))
        .collect();
    assert_eq!(blocks, [(2, &b"\xc3)\n\xe2\x82\n"[..])]);
}

#[test]
fn dif_04_a_picture_is_listed_with_its_sizes() {
    let (repo, _, second) = two_commits();
    let Body::Binary(picture) = of_path(&repo, &second, b"new-picture.png").body else {
        panic!("no binary")
    };
    assert_eq!((picture.old_size, picture.new_size), (None, Some(416)));
    assert!(picture.head().starts_with(b"\x89PNG"));
    assert!(matches!(
        of_path(&repo, &second, b"pictures/logo.png").body,
        Body::Binary(_)
    ));
}

#[test]
fn dif_06_every_name_is_read_from_the_repository_and_from_a_patch() {
    let (repo, _, second) = two_commits();
    let mut patches = vec![git_bytes(
        &repo,
        &["show", "--full-index", "--binary", &second],
    )];
    for option in [
        "--no-prefix",
        "--src-prefix=old/",
        "-U0",
        "-U9",
        "--find-copies-harder",
        "--no-renames",
        "--text",
    ] {
        patches.push(git_bytes(
            &repo,
            &["-c", "core.quotePath=false", "show", option, &second],
        ));
    }
    patches.push(git_bytes(
        &repo,
        &["-c", "diff.mnemonicPrefix=true", "show", &second],
    ));
    patches.push(git_bytes(
        &repo,
        &["format-patch", "--stdout", "-1", &second],
    ));
    for gits in patches {
        let changes = patch::parse(&gits)
            .unwrap_or_else(|e| panic!("{e}\n{}", String::from_utf8_lossy(&gits)));
        for name in ODD_NAMES {
            let change = changes.iter().find(|c| c.path().as_bytes() == name);
            let change = change
                .unwrap_or_else(|| panic!("no {} in {changes:?}", String::from_utf8_lossy(name)));
            assert_eq!(change.entry.kind, ChangeKind::Modified);
            assert_eq!(added(change), [(2, "2\n".to_owned())]);
        }
    }
}

#[test]
fn dif_07_added_lines_that_look_like_headers_stay_in_their_file() {
    let (repo, _, second) = two_commits();
    let gits = git_bytes(&repo, &["show", &second, "--", "headers.txt"]);
    let changes = patch::parse(&gits).unwrap();
    assert_eq!(changes.len(), 1);
    let want = [
        (1, "@@ -1 +1 @@\n".to_owned()),
        (
            3,
            "diff --git a/x b/x\n\\ No newline at end of file\n".to_owned(),
        ),
    ];
    assert_eq!(added(&changes[0]), want);
    assert_eq!(added(&of_path(&repo, &second, b"headers.txt")), want);
}

#[test]
fn dif_08_line_numbers_equal_gits() {
    let (repo, _, second) = two_commits();
    for (name, want) in [
        (&b"open-both.txt"[..], &[(2, "c")][..]),
        (b"open-before.txt", &[(2, "b\n")]),
        (b"open-after.txt", &[(2, "b")]),
        (b"crlf.txt", &[(2, "B\r\n")]),
        (b"cr.txt", &[(1, "a\rB\rc\r")]),
        (
            b"odd-ends.txt",
            &[(1, "a\u{c}\u{2028}B\u{85}\u{b}c\n\u{2029}\n")],
        ),
    ] {
        let got = added(&of_path(&repo, &second, name));
        let want: Vec<_> = want.iter().map(|(n, t)| (*n, (*t).to_owned())).collect();
        assert_eq!(got, want, "{}", String::from_utf8_lossy(name));
    }
}

/// Returns the content of a change as a review gets it from any source.
fn seen(change: &FileChange) -> String {
    let mut out = format!("{:?} {:?}", change.entry.kind, change.path());
    match &change.body {
        Body::Text(text) if text.hidden.is_none() => {
            for hunk in &text.hunks {
                for line in text.lines(hunk).filter(|l| l.kind != LineKind::Context) {
                    let text = String::from_utf8_lossy(line.text);
                    out.push_str(&format!(
                        "\n{:?} {:?} {:?} {text:?}",
                        line.kind, line.old, line.new
                    ));
                }
            }
        }
        Body::Text(_) | Body::Binary(_) => out.push_str(" binary"),
        Body::Same => out.push_str(" same"),
        Body::Submodule { .. } => out.push_str(" submodule"),
    }
    out
}

#[test]
fn a_patch_of_git_reads_as_the_commit_it_came_from() {
    let (repo, first, second) = two_commits();
    let opened = open(&repo);
    for commit in [&first, &second] {
        let change = opened
            .commit(opened.resolve(commit).unwrap(), None)
            .unwrap();
        let changes = load(&mut opened.reader(), &change);
        let want: Vec<_> = changes.iter().map(seen).collect();
        let base = if commit == &first { "--root" } else { "HEAD~1" };
        for args in [
            &["show", "--full-index", commit][..],
            &["show", "--full-index", "-U0", commit],
            &["show", "--format=email", "--stat", "-p", commit],
            &["-c", "diff.noprefix=true", "show", commit],
            &["-c", "diff.mnemonicPrefix=true", "show", commit],
            &["log", "-p", "-1", commit],
            &["format-patch", "--stdout", base, commit][..if commit == &first { 4 } else { 3 }],
        ] {
            let gits = git_bytes(&repo, args);
            let read = patch::parse(&gits).unwrap_or_else(|e| panic!("{args:?}: {e}"));
            let read: Vec<_> = read.iter().map(seen).collect();
            for (read, want) in read.iter().zip(&want) {
                assert_eq!(read, want, "{args:?}");
            }
            assert_eq!(read.len(), want.len(), "{args:?}");
        }
        let whole = git_bytes(&repo, &["show", "--full-index", "--format=", commit]);
        same_patch(&write(&patch::parse(&whole).unwrap()), &whole);
    }
}

#[test]
fn dif_02_a_binary_patch_reads_as_the_commit_it_came_from() {
    let (repo, first, second) = two_commits();
    let opened = open(&repo);
    let mut decoded = 0;
    for commit in [&first, &second] {
        let change = opened
            .commit(opened.resolve(commit).unwrap(), None)
            .unwrap();
        let gits = git_bytes(&repo, &["show", "--binary", commit]);
        let read = patch::parse(&gits).unwrap();
        for (want, got) in load(&mut opened.reader(), &change).iter().zip(&read) {
            assert_eq!(want.path(), got.path());
            match (&want.body, &got.body) {
                (Body::Text(want), Body::Text(got)) if want.hidden.is_some() => {
                    assert_eq!(
                        (want.hidden, want.encoding, &want.hunks),
                        (got.hidden, got.encoding, &got.hunks)
                    );
                    assert_eq!(
                        (want.old.whole(), want.new.whole()),
                        (got.old.whole(), got.new.whole())
                    );
                    decoded += 1;
                }
                // Similar pictures become two deltas.
                (Body::Binary(want), Body::Binary(got)) => {
                    assert!(got.new_size.is_none_or(|size| want.new_size == Some(size)));
                }
                (want, got) => {
                    assert_eq!(std::mem::discriminant(want), std::mem::discriminant(got));
                }
            }
        }
    }
    assert!(decoded >= 12, "{decoded}");
}

#[test]
fn a_combined_diff_of_a_merge_is_refused() {
    let repo = Repo::new();
    repo.stage("x", "1\n2\n3\n").commit("base");
    repo.git(&["checkout", "-q", "-b", "side"]);
    repo.stage("x", "one\n2\n3\n").commit("side");
    repo.git(&["checkout", "-q", "main"]);
    repo.stage("x", "1\n2\nthree\n").commit("main");
    repo.git(&["merge", "-q", "--no-commit", "side"]);
    repo.stage("x", "one\n2!\nthree\n").commit("merge");
    let error = patch::parse(&git_bytes(&repo, &["show", "HEAD"])).unwrap_err();
    assert!(error.message.contains("combined diff"), "{error}");
    assert!(
        !patch::parse(&git_bytes(&repo, &["show", "-m", "HEAD"]))
            .unwrap()
            .is_empty()
    );
}
