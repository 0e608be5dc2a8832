//! Tests of patches and hidden text, through the binary.

use super::*;

/// Code that a rule reports on its line.
const BAD: &str = "eval(input())\n";

/// Returns file and line of each finding about [`BAD`].
fn found(report: &serde_json::Value) -> Vec<(String, u64)> {
    let findings = report["findings"].as_array().unwrap();
    let eval = findings
        .iter()
        .filter(|f| f["rule_id"] == "python-eval-input");
    eval.map(|f| {
        (
            f["file"].as_str().unwrap().to_owned(),
            f["line"].as_u64().unwrap(),
        )
    })
    .collect()
}

/// Runs `review patch -` outside of any repository.
fn review_patch(patch: impl Into<Vec<u8>>, code: i32) -> crate::support::Run {
    let repo = Repo::new();
    let outside = repo.outside();
    std::fs::create_dir(&outside).unwrap();
    crate::support::reviewer(
        &outside,
        &repo.home(),
        &["review", "patch", "-", "--format", "json"],
    )
    .stdin(patch)
    .run(code)
}

#[test]
fn dif_03_the_review_finds_the_line_in_every_encoding() {
    let repo = Repo::new();
    let text = format!("import os\r\nx = 1\r\n{BAD}");
    repo.stage("le.py", utf16(&text, Encoding::Utf16Le, true));
    repo.stage("be.py", utf16(&text, Encoding::Utf16Be, true));
    repo.stage("bare.py", utf16(&text, Encoding::Utf16Le, false));
    repo.stage(
        "latin.py",
        [b"# caf\xe9\r\nx = 1\n", BAD.as_bytes()].concat(),
    );
    repo.stage(
        "broken.py",
        [b"# \xff\xfe\xfd\n\xc3(\n", BAD.as_bytes()].concat(),
    );
    repo.stage("nul.py", format!("# \0\nx = 1\n{BAD}"));
    let report = repo.review_json(&["staged"], 1);
    let mut files = found(&report);
    files.sort();
    let want = [
        "bare.py",
        "be.py",
        "broken.py",
        "latin.py",
        "le.py",
        "nul.py",
    ];
    assert_eq!(files, want.map(|f| (f.to_owned(), 3)));
    assert_eq!(report["coverage"]["files_reviewed"], 6);
}

#[test]
fn dif_06_names_are_right_in_the_report() {
    let repo = Repo::new();
    for name in [
        "with space.py",
        "t\tab.py",
        "new\nline.py",
        "quo\"te.py",
        "x b/y.py",
        "caf\u{e9}.py",
    ] {
        repo.stage(name, BAD);
    }
    let latin = repo.path().join(OsStr::from_bytes(b"latin-\xe9.py"));
    std::fs::write(latin, BAD).unwrap();
    repo.git(&["add", "-A"]);
    let mut staged = found(&repo.review_json(&["staged"], 1));
    staged.sort();
    let mut want = [
        "with space.py",
        "t\tab.py",
        "new\nline.py",
        "quo\"te.py",
        "x b/y.py",
        "caf\u{e9}.py",
        "\"latin-\\351.py\"",
    ]
    .map(|name| (name.to_owned(), 1));
    want.sort();
    assert_eq!(staged, want);
    // The same change as a patch.
    let patch = git_bytes(&repo, &["diff", "--cached"]);
    let report: serde_json::Value = serde_json::from_str(&review_patch(patch, 1).stdout).unwrap();
    let mut patched = found(&report);
    patched.sort();
    assert_eq!(patched, want);
}

#[test]
fn dif_06_no_name_reaches_the_terminal_raw() {
    let repo = Repo::new();
    repo.stage("esc\u{1b}[31m.py", BAD);
    let run = repo.review(&["staged"], 1);
    assert!(run.stdout.contains("[31m.py"), "{}", run.stdout);
    assert!(!run.stdout.contains("\u{1b}[31m.py"), "{}", run.stdout);
}

#[test]
fn dif_07_a_patch_cannot_move_its_lines_to_another_file() {
    let patch = format!(
        "diff --git a/x.py b/x.py\n--- a/x.py\n+++ b/x.py\n@@ -1,2 +1,5 @@\n--- a/innocent\n+++ b/innocent.txt\n\
         +@@ -1 +1 @@\n+diff --git a/y b/y.txt\n+{BAD} end\n"
    );
    let report: serde_json::Value = serde_json::from_str(&review_patch(patch, 1).stdout).unwrap();
    assert_eq!(found(&report), [("x.py".to_owned(), 4)]);
    assert_eq!(report["coverage"]["files_total"], 1);
}

#[test]
fn dif_08_findings_have_gits_line_numbers() {
    let repo = Repo::new();
    repo.stage(
        "crlf.py",
        format!("a = 1\r\nb = 2\r\n{}", BAD.replace('\n', "\r\n")),
    );
    repo.stage(
        "odd.py",
        format!("a = 1\u{c}\nb = '\u{2028}\u{85}\u{b}'\n{BAD}"),
    );
    repo.stage("open.py", format!("a = 1\nb = 2\n{}", BAD.trim_end()));
    repo.stage(
        "cr.py",
        format!("a = 1\rb = 2\r{}", BAD.replace('\n', "\r")),
    );
    let mut files = found(&repo.review_json(&["staged"], 1));
    files.sort();
    assert_eq!(
        files,
        [("cr.py", 1), ("crlf.py", 3), ("odd.py", 3), ("open.py", 3)]
            .map(|(f, n)| (f.to_owned(), n))
    );
}

#[test]
fn dif_12_a_patch_that_does_not_fit_together_is_a_usage_error() {
    let file = |hunks: &str| format!("--- a/x.py\n+++ b/x.py\n{hunks}");
    for (patch, what) in [
        (file("@@ -1,9 +1 @@\n-a\n+b\n"), "line 6 of the patch"),
        (file("@@ -1 +1 @@\n-a\n+b\n+c\n"), "line 6 of the patch"),
        (
            file("@@ -1 +1 @@\n-a\n+b\n@@ -1 +1 @@\n-a\n+b\n"),
            "line 6 of the patch: hunk overlaps",
        ),
        (
            file("@@ -9223372036854775808,1 +1 @@\n-a\n+b\n"),
            "line 3 of the patch",
        ),
        (
            file("@@ -1 +18446744073709551615 @@\n-a\n+b\n"),
            "line 3 of the patch",
        ),
        ("no patch at all\n".to_owned(), "not a patch"),
    ] {
        let run = review_patch(patch.clone(), 2);
        assert!(run.stderr.contains(what), "{patch}\n{}", run.stderr);
        assert!(!run.stderr.contains("panicked"), "{}", run.stderr);
    }
}

#[test]
fn dif_01_code_that_a_patch_withholds_does_not_pass() {
    let repo = Repo::new();
    repo.stage(".gitattributes", "*.py -diff\n")
        .commit("attributes");
    repo.stage("x.py", BAD);
    let report: serde_json::Value =
        serde_json::from_str(&review_patch(git_bytes(&repo, &["diff", "--cached"]), 3).stdout)
            .unwrap();
    assert_eq!(report["verdict"], "incomplete");
    assert_eq!(report["coverage"]["failed"][0]["file"], "x.py");
    // With its content, the file is scanned.
    let report: serde_json::Value = serde_json::from_str(
        &review_patch(git_bytes(&repo, &["diff", "--cached", "--binary"]), 1).stdout,
    )
    .unwrap();
    assert_eq!(found(&report), [("x.py".to_owned(), 1)]);
    // A picture is not expected to be readable text.
    repo.git(&["rm", "-q", "-f", "x.py"]);
    repo.stage("logo.png", png(1));
    review_patch(git_bytes(&repo, &["diff", "--cached"]), 0);
}

#[test]
fn an_empty_patch_is_nothing_to_review() {
    let report: serde_json::Value = serde_json::from_str(&review_patch("", 0).stdout).unwrap();
    assert_eq!(report["outcome"], "nothing_to_review");
}

/// Creates a repository with a changed and a new file, at the top and in a folder.
fn changed_worktree() -> Repo {
    let repo = Repo::new();
    repo.stage("a.txt", "one\n")
        .stage("sub/b.txt", "one\n")
        .commit("first");
    repo.write("a.txt", "two\n")
        .write("sub/b.txt", "two\n")
        .write("new.txt", "new\n")
        .write("sub/new.txt", "new\n");
    repo
}

/// Expects an error that names a file, quickly and with little memory.
#[track_caller]
fn refuses(repo: &Repo, args: &[&str], named: &str) {
    let path = repo.home().join("stderr");
    let script = "ulimit -v 4000000; exec timeout 10 \"$0\" review \"$@\"";
    let mut command = std::process::Command::new("bash");
    command
        .arg("-c")
        .arg(script)
        .arg(crate::support::binary())
        .args(args)
        .current_dir(repo.path());
    command
        .env("HOME", repo.home())
        .stdout(std::process::Stdio::null());
    command.stderr(std::fs::File::create(&path).unwrap());
    let status = command.status().unwrap();
    let said = std::fs::read_to_string(path).unwrap();
    assert_eq!(status.code(), Some(2), "{args:?} {named}: {said}");
    let reason = ["is not a regular file", "is a named pipe"]
        .iter()
        .any(|words| said.contains(words));
    assert!(said.contains(named) && reason, "{args:?} {named}: {said}");
}

#[test]
fn a_pipe_in_place_of_attributes_or_ignore_rules_is_refused_and_never_waited_for() {
    const UNSTAGED: &[&str] = &["unstaged"];
    const UNTRACKED: &[&str] = &["unstaged", "--untracked"];
    const CHANGES: &[&str] = &["changes"];
    for (file, runs) in [
        (".gitattributes", &[UNSTAGED, UNTRACKED, CHANGES][..]),
        ("sub/.gitattributes", &[UNSTAGED, UNTRACKED, CHANGES]),
        (".git/info/attributes", &[UNSTAGED, UNTRACKED, CHANGES]),
        (".gitignore", &[UNTRACKED, CHANGES]),
        ("sub/.gitignore", &[UNTRACKED, CHANGES]),
        (".git/info/exclude", &[UNTRACKED, CHANGES]),
    ] {
        let repo = changed_worktree();
        let path = repo.path().join(file);
        let _ = std::fs::remove_file(&path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        assert!(
            std::process::Command::new("mkfifo")
                .arg(&path)
                .status()
                .unwrap()
                .success()
        );
        for args in runs {
            refuses(&repo, args, file);
        }
        // A file in the repository's git folder is rejected before it is opened, for any source.
        repo.review(&["staged"], if file.starts_with(".git/") { 2 } else { 0 });
    }
}

#[test]
fn a_device_that_the_configuration_names_as_attributes_or_ignore_rules_is_refused() {
    for (key, args) in [
        ("core.attributesFile", &["unstaged"][..]),
        ("core.excludesFile", &["unstaged", "--untracked"]),
        ("core.excludesFile", &["changes"]),
    ] {
        let repo = changed_worktree();
        repo.git(&["config", key, "/dev/zero"]);
        refuses(&repo, args, "/dev/zero");
        repo.git(&["config", key, "nowhere"]);
        repo.review(args, 0);
    }
}

#[test]
fn a_patch_that_names_a_file_outside_the_repository_is_refused_as_git_refuses_it() {
    let repo = Repo::new();
    for name in [
        "b/../../../../tmp/x",
        "b/.git/hooks/pre-commit",
        "/etc/passwd",
    ] {
        let patch = format!("--- /dev/null\n+++ {name}\n@@ -0,0 +1 @@\n+<<<<<<< HEAD\n");
        let run = repo
            .reviewer(&["review", "patch", "-", "--format", "sarif"])
            .stdin(patch)
            .run(2);
        assert!(
            run.stderr.contains(": line 2 of the patch: file name"),
            "{name}: {}",
            run.stderr
        );
        assert_eq!(run.stdout, "", "{name}");
    }
}
