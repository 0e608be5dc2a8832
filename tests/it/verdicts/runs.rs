//! Tests of runs that pass without a review, and of reports that cannot be written: rows VER-04 to
//! VER-06.

use super::last_line;
use crate::support::{Repo, binary, line_with_key};
use serde_json::json;
use std::process::{Command, Stdio};

fn repo() -> Repo {
    let repo = Repo::new();
    repo.stage("README.md", "# Sample\n")
        .stage("lib/a.py", "x = 1\n")
        .commit("first");
    repo.stage("b.py", "y = 1\n");
    repo
}

#[test]
fn ver_04_flags_for_models_without_a_backend_are_an_error() {
    let flags: &[&[&str]] = &[
        &["--model", "m"],
        &["--depth", "quick"],
        &["--depth", "thorough"],
        &["--focus", "security"],
        &["--max-cost", "1"],
        &["--max-tokens", "1000"],
        &["--timeout", "1m"],
        &["--doc", "README.md"],
        &["--no-cache"],
        &["--debug-prompts", "prompts.txt"],
        &["--summary", "what was done", "--no-save"],
    ];
    let repo = repo();
    for flag in flags {
        let run = repo.review(&[&["staged"], *flag].concat(), 2);
        assert!(
            run.stderr.contains(&format!(
                "{} is for models, and no backend is named",
                flag[0]
            )),
            "{}",
            run.stderr
        );
        assert!(
            run.stderr.contains("hint:") && run.stderr.contains("--backend NAME"),
            "{}",
            run.stderr
        );
        let offline = repo.review(&[&["staged", "--offline"], *flag].concat(), 2);
        assert!(offline.stderr.contains("no backend"), "{}", offline.stderr);
    }
    // A review of nothing does not make them valid, and a summary is stored with a stored review.
    repo.review(&["commit", "HEAD", "--depth", "quick", "--no-save"], 2);
    repo.review(&["staged", "--summary", "what was done"], 0);
    assert!(!repo.path().join("prompts.txt").exists());
}

#[test]
fn ver_04_files_that_match_neither_the_change_nor_a_tracked_path_are_an_error() {
    let repo = repo();
    repo.write("untracked.py", "z = 1\n");
    for patterns in [
        &["missing.py"][..],
        &["srv/**"],
        &["untracked.py"],
        &["b.py", "missing.py"],
        &["lib/a.py", "*.rs"],
    ] {
        for gate in ["--gate", "--no-gate"] {
            let args = [&["staged", "--no-save", gate, "--files"], patterns].concat();
            let run = repo.review(&args, 2);
            let named = patterns
                .iter()
                .find(|p| !["b.py", "lib/a.py"].contains(p))
                .unwrap();
            assert!(
                run.stderr
                    .contains(&format!("--files matches no file: {named}")),
                "{}",
                run.stderr
            );
        }
    }
    for patterns in [
        &["README.md"][..],
        &["lib/**"],
        &["lib"],
        &["*.md", "lib/a.py"],
    ] {
        let report = repo.review_json(&[&["staged", "--no-save", "--files"], patterns].concat(), 0);
        assert_eq!(
            (&report["outcome"], &report["verdict"]),
            (&json!("nothing_to_review"), &json!("pass"))
        );
    }
    let report = repo.review_json(&["staged", "--no-save", "--files", "README.md", "b.py"], 0);
    assert_eq!(
        (&report["outcome"], &report["coverage"]["files_total"]),
        (&json!("reviewed"), &json!(1))
    );
}

#[test]
fn ver_04_files_are_looked_up_in_every_source() {
    let repo = repo();
    repo.git(&["mv", "lib/a.py", "lib/new.py"]);
    std::os::unix::fs::symlink("README.md", repo.path().join("link")).unwrap();
    repo.git(&["add", "link"]);
    repo.commit("second");
    repo.git(&["rm", "-q", "b.py"]);
    repo.commit("third");
    for source in [
        &["commit", "HEAD~1..HEAD"][..],
        &["commit", "HEAD"],
        &["branch", "HEAD", "--base", "HEAD~2"],
    ] {
        for (pattern, code) in [
            ("b.py", 0),
            ("README.md", 0),
            ("link", 0),
            ("lib/new.py", 0),
            ("nothing.py", 2),
        ] {
            repo.review(&[source, &["--no-save", "--files", pattern]].concat(), code);
        }
    }
    let patch = repo.git(&["diff", "HEAD~2", "HEAD"]);
    for (pattern, code) in [("lib/new.py", 0), ("README.md", 0), ("nothing.py", 2)] {
        repo.reviewer(&["review", "patch", "--no-save", "--files", pattern])
            .stdin(patch.clone())
            .run(code);
    }
    // The unstaged change of a clean worktree.
    repo.review(&["unstaged", "--no-save", "--files", "README.md"], 0);
    repo.review(&["unstaged", "--no-save", "--files", "nothing.py"], 2);
}

#[test]
fn ver_05_nothing_staged_in_ci_without_an_event_is_an_error_that_names_the_flags() {
    let repo = repo();
    repo.commit("second");
    for args in [
        &["--hook", "auto"][..],
        &["--hook", "pre-commit"],
        &["staged"],
    ] {
        let args = [&["review"], args, &["--no-save"]].concat();
        let run = repo.reviewer(&args).env("CI", "true").run(2);
        assert!(
            run.stderr
                .contains("claude-reviewer review branch HEAD --base REV"),
            "{}",
            run.stderr
        );
        // GIT-03 covers this elsewhere.
        repo.reviewer(&args).run(0);
    }
    // Staged files are reviewed, in CI too.
    repo.stage("deploy.ini", line_with_key());
    for args in [&["--hook", "pre-commit"][..], &["staged"]] {
        repo.reviewer(&[&["review"], args, &["--no-save"]].concat())
            .env("CI", "true")
            .run(1);
    }
}

/// Runs the binary with a standard output that cannot be written.
fn unwritable(repo: &Repo, args: &[&str], stdout: Stdio) -> (i32, String) {
    let out = Command::new(binary())
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .env("HOME", repo.home())
        .args([&["review"], args].concat())
        .current_dir(repo.path())
        .stdin(Stdio::null())
        .stdout(stdout)
        .stderr(Stdio::piped())
        .output()
        .unwrap();
    (
        out.status.code().unwrap(),
        String::from_utf8_lossy(&out.stderr).into_owned(),
    )
}

fn full() -> Stdio {
    std::fs::OpenOptions::new()
        .write(true)
        .open("/dev/full")
        .unwrap()
        .into()
}

/// Returns a pipe without a reader.
fn closed() -> Stdio {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    writer.into()
}

#[test]
fn ver_06_a_report_that_cannot_be_written_hides_no_block() {
    let fine = repo();
    let bad = repo();
    bad.stage("deploy.ini", line_with_key());
    let targets = [
        "--report=json=/dev/full",
        "--report=json=no/such/folder/x.json",
        "--output=/dev/full",
        "--output=no/such/folder/x.txt",
    ];
    for target in targets {
        let run = bad.review(&["staged", "--no-save", target], 1);
        assert!(
            run.stderr.contains("cannot write the report"),
            "{}",
            run.stderr
        );
        assert_eq!(
            last_line(&run.stderr),
            "review: complete files=2/2 backend=rules findings=1 exit=1"
        );
        let run = fine.review(&["staged", "--no-save", target], 2);
        assert_eq!(
            last_line(&run.stderr),
            "review: complete files=1/1 backend=rules findings=0 exit=2"
        );
        let run = bad.review(&["staged", "--no-save", "--exit-zero", target], 2);
        assert!(
            last_line(&run.stderr).ends_with("findings=1 exit=2"),
            "{}",
            run.stderr
        );
    }
    // The others are written.
    let targets = [
        "--report",
        "json=/dev/full",
        "--report",
        "sarif=out.sarif",
        "--output",
        "out.txt",
    ];
    bad.review(&[&["staged", "--no-save"], &targets[..]].concat(), 1);
    assert!(bad.path().join("out.sarif").exists() && bad.path().join("out.txt").exists());
}

#[test]
fn ver_06_a_full_or_closed_standard_output_hides_no_block() {
    let fine = repo();
    let bad = repo();
    bad.stage("deploy.ini", line_with_key());
    for format in ["human", "json", "sarif"] {
        for stdout in [full, closed] {
            let args = ["staged", "--no-save", "--format", format];
            let (code, stderr) = unwritable(&bad, &args, stdout());
            assert_eq!(code, 1, "{format}: {stderr}");
            assert_eq!(
                last_line(&stderr),
                "review: complete files=2/2 backend=rules findings=1 exit=1"
            );
            let (code, stderr) = unwritable(&fine, &args, stdout());
            assert_eq!(code, 3, "{format}: {stderr}");
            assert_eq!(
                last_line(&stderr),
                "review: complete files=1/1 backend=rules findings=0 exit=3"
            );
        }
    }
}
