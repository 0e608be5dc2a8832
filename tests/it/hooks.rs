//! Tests of hooks in real repositories: installed by the binary, run by git.

mod install;
mod push;
mod signals;

use crate::support::{Repo, binary};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// Returns a file with an AWS key pair in its real format, generated so that the sources do not
/// contain it.
fn aws_key() -> String {
    let pick = |alphabet: &[u8], count: usize, mut state: u64| -> String {
        let mut next = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            alphabet[(state >> 33) as usize % alphabet.len()] as char
        };
        (0..count).map(|_| next()).collect()
    };
    let id = pick(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", 16, 7);
    let secret = pick(
        b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/",
        40,
        11,
    );
    format!("[default]\naws_access_key_id = AKIA{id}\naws_secret_access_key = {secret}\n")
}

const CLEAN: &str = "region = eu-central-1\n";

/// Creates a repository with one commit and both hooks.
fn hooked() -> Repo {
    let repo = Repo::new();
    repo.stage("README.md", "# A project\n").commit("first");
    repo.reviewer(&["install-hooks"]).run(0);
    repo
}

fn text(out: &Output) -> String {
    format!(
        "{}{}",
        String::from_utf8_lossy(&out.stdout),
        String::from_utf8_lossy(&out.stderr)
    )
}

#[track_caller]
fn stops(repo: &Repo, args: &[&str]) -> String {
    let head = || {
        repo.try_git(&["rev-parse", "-q", "--verify", "HEAD"])
            .stdout
    };
    let before = head();
    let out = repo.try_git(args);
    assert!(
        !out.status.success(),
        "git {args:?} went through:\n{}",
        text(&out)
    );
    assert_eq!(head(), before, "git {args:?} made a commit");
    text(&out)
}

#[track_caller]
fn passes(repo: &Repo, args: &[&str]) -> String {
    let out = repo.try_git(args);
    assert!(
        out.status.success(),
        "git {args:?} was stopped:\n{}",
        text(&out)
    );
    text(&out)
}

fn executable(path: &Path, content: impl AsRef<[u8]>) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

fn hook_path(repo: &Repo, hook: &str) -> PathBuf {
    repo.path().join(".git/hooks").join(hook)
}

#[test]
fn a_staged_aws_key_is_stopped_however_it_is_committed() {
    let repo = hooked();
    repo.stage("app.ini", CLEAN);
    passes(&repo, &["commit", "-q", "-m", "a clean file"]);

    repo.stage("app.ini", aws_key());
    let said = stops(&repo, &["commit", "-q", "-m", "plain"]);
    assert!(
        said.contains("app.ini") && said.contains("exit=1"),
        "{said}"
    );
    repo.git(&["reset", "-q"]);
    stops(&repo, &["commit", "-q", "-a", "-m", "all"]);
    stops(&repo, &["commit", "-q", "-m", "by path", "--", "app.ini"]);
    stops(
        &repo,
        &["commit", "-q", "-m", "added by path", "-i", "app.ini"],
    );
    let patch = repo.try_git(&["diff", "--quiet"]);
    assert_eq!(patch.status.code(), Some(1), "the worktree keeps the edit");

    repo.write("app.ini", "region = us-east-1\n");
    passes(&repo, &["commit", "-q", "-a", "-m", "without the key"]);
}

#[test]
fn a_partial_commit_is_judged_by_what_it_takes() {
    let repo = hooked();
    repo.stage("good.ini", CLEAN)
        .stage("bad.ini", CLEAN)
        .commit("both");
    repo.write("good.ini", "region = us-east-1\n")
        .stage("bad.ini", aws_key());
    passes(
        &repo,
        &["commit", "-q", "-m", "only the good one", "--", "good.ini"],
    );
    stops(&repo, &["commit", "-q", "-m", "the bad one"]);
}

#[test]
fn what_is_staged_decides_and_not_the_worktree() {
    let repo = hooked();
    repo.stage("app.ini", aws_key()).write("app.ini", CLEAN);
    stops(&repo, &["commit", "-q", "-m", "the key is staged"]);
    repo.stage("app.ini", CLEAN).write("app.ini", aws_key());
    passes(&repo, &["commit", "-q", "-m", "the key is not staged"]);
}

#[test]
fn the_first_commit_of_a_repository_is_reviewed_too() {
    let repo = Repo::new();
    repo.reviewer(&["install-hooks", "--pre-commit"]).run(0);
    repo.stage("app.ini", aws_key());
    let out = repo.try_git(&["commit", "-q", "-m", "root"]);
    assert!(!out.status.success(), "{}", text(&out));
    repo.stage("app.ini", CLEAN);
    passes(&repo, &["commit", "-q", "-m", "root"]);
}

#[test]
fn policy_says_what_each_hook_demands() {
    let repo = hooked();
    repo.git(&["init", "-q", "--bare", repo.outside().to_str().unwrap()]);
    repo.git(&["remote", "add", "origin", repo.outside().to_str().unwrap()]);
    repo.stage(
        ".claude-reviewer.toml",
        "version = 1\n[review]\nbackends = [\"claude\"]\n",
    );
    passes(
        &repo,
        &["commit", "-q", "-m", "the rules are enough for a commit"],
    );
    let said = stops(&repo, &["push", "-q", "origin", "main"]);
    assert!(said.contains("exit=3"), "a push wants the backend: {said}");

    repo.stage(
        ".claude-reviewer.toml",
        "version = 1\n[hooks]\npre_commit = \"off\"\npre_push = \"rules\"\n",
    );
    repo.stage("app.ini", aws_key());
    let said = passes(&repo, &["commit", "-q", "-m", "not asked"]);
    assert!(said.contains("nothing was reviewed"), "{said}");
    assert!(stops(&repo, &["push", "-q", "origin", "main"]).contains("app.ini"));
}

#[test]
fn hok_04_works_without_terminal_input_and_path() {
    let repo = hooked();
    let git = std::env::split_paths(&std::env::var_os("PATH").unwrap())
        .find(|d| d.join("git").is_file())
        .unwrap();
    let path = std::env::join_paths([git, "/usr/bin".into(), "/bin".into()]).unwrap();
    let commit = || {
        let mut c = Command::new("/bin/sh");
        c.args(["-c", "exec setsid -w git commit -q -m x <&- 2>&1"])
            .current_dir(repo.path())
            .env_clear()
            .envs(
                repo.git_command()
                    .get_envs()
                    .filter_map(|(k, v)| Some((k, v?))),
            )
            .env("PATH", &path)
            .stdin(Stdio::null());
        c.output().unwrap()
    };
    repo.stage("app.ini", aws_key());
    let out = commit();
    assert!(
        !out.status.success() && text(&out).contains("exit=1"),
        "{}",
        text(&out)
    );
    repo.stage("app.ini", CLEAN);
    let out = commit();
    assert!(out.status.success(), "{}", text(&out));
}

#[test]
fn hok_05_amend_and_fixup_are_judged_by_what_they_add() {
    let repo = hooked();
    repo.stage("old.ini", aws_key())
        .commit("a key from before the hook");
    repo.stage("new.ini", CLEAN);
    passes(&repo, &["commit", "-q", "--amend", "--no-edit"]);
    repo.stage("new.ini", aws_key());
    stops(&repo, &["commit", "-q", "--amend", "--no-edit"]);
    stops(&repo, &["commit", "-q", "--fixup", "HEAD"]);
    repo.stage("new.ini", CLEAN).git(&["rm", "-q", "old.ini"]);
    passes(&repo, &["commit", "-q", "--amend", "--no-edit"]);
}

#[test]
fn hok_05_a_merge_is_judged_by_its_resolution() {
    let repo = hooked();
    repo.stage("app.ini", "a = 1\n").commit("base");
    repo.git(&["checkout", "-q", "-b", "side"]);
    repo.stage("app.ini", "a = 2\n")
        .stage("side.ini", CLEAN)
        .commit("side");
    repo.git(&["checkout", "-q", "main"]);
    repo.stage("app.ini", "a = 3\n").commit("main");
    assert!(!repo.try_git(&["merge", "-q", "side"]).status.success());
    let said = stops(&repo, &["commit", "-q", "-a", "-m", "with markers"]);
    assert!(said.contains("app.ini"), "{said}");
    repo.git(&["reset", "-q", "--merge"]);
    assert!(!repo.try_git(&["merge", "-q", "side"]).status.success());
    repo.stage("app.ini", aws_key());
    stops(&repo, &["commit", "-q", "-m", "a key in the resolution"]);
    repo.stage("app.ini", "a = 4\n");
    passes(&repo, &["commit", "-q", "-m", "resolved"]);
    assert_eq!(
        repo.git(&["rev-list", "--parents", "-1", "HEAD"])
            .split_whitespace()
            .count(),
        3
    );
}

#[test]
fn hok_05_rebase_and_cherry_pick_go_through() {
    let repo = hooked();
    repo.git(&["checkout", "-q", "-b", "topic"]);
    repo.stage("one.ini", CLEAN);
    passes(&repo, &["commit", "-q", "-m", "one"]);
    repo.stage("two.ini", CLEAN);
    passes(&repo, &["commit", "-q", "-m", "two"]);
    repo.stage("one.ini", "region = us-east-1\n");
    passes(&repo, &["commit", "-q", "--fixup", "HEAD~1"]);
    let rebase = |todo: &str| {
        let mut c = repo.git_command();
        c.args([
            "rebase",
            "-q",
            "-i",
            "--autosquash",
            "--force-rebase",
            "main",
        ])
        .env("GIT_SEQUENCE_EDITOR", todo)
        .env("GIT_EDITOR", "true")
        .output()
        .unwrap()
    };
    let out = rebase("sed -i '2s/^pick/reword/'");
    assert!(out.status.success(), "{}", text(&out));
    let out = rebase("sed -i '1s/^pick/edit/'");
    assert!(out.status.success(), "{}", text(&out));
    repo.stage("one.ini", aws_key());
    stops(&repo, &["commit", "-q", "--amend", "--no-edit"]);
    repo.stage("one.ini", "region = us-west-2\n");
    passes(&repo, &["commit", "-q", "--amend", "--no-edit"]);
    passes(&repo, &["rebase", "--continue"]);
    repo.git(&["checkout", "-q", "main"]);
    passes(&repo, &["cherry-pick", "topic~1"]);
    passes(&repo, &["cherry-pick", "--no-commit", "topic"]);
    passes(&repo, &["commit", "-q", "-m", "picked"]);
}

#[test]
fn hok_05_both_ways_around_the_review_work_and_one_says_so() {
    let repo = Repo::new();
    repo.stage("README.md", "# A project\n").commit("first");
    executable(
        &hook_path(&repo, "pre-commit"),
        "#!/bin/sh\necho theirs ran\n",
    );
    repo.reviewer(&["install-hooks"]).run(0);
    repo.stage("app.ini", aws_key());
    let skip = |value: &str| {
        repo.git_command()
            .args(["commit", "-q", "-m", "x"])
            .env("CLAUDE_REVIEWER_SKIP", value)
            .output()
            .unwrap()
    };
    assert!(!skip("0").status.success());
    let out = skip("1");
    let said = text(&out);
    assert!(out.status.success(), "{said}");
    assert!(
        said.contains("theirs ran") && said.contains("CLAUDE_REVIEWER_SKIP"),
        "{said}"
    );
    repo.stage("more.ini", aws_key());
    passes(&repo, &["commit", "-q", "--no-verify", "-m", "x"]);
    let help = repo.reviewer(&["install-hooks", "--help"]).run(0).stdout;
    assert!(
        help.contains("CLAUDE_REVIEWER_SKIP=1") && help.contains("--no-verify"),
        "{help}"
    );
}

#[test]
fn hok_08_a_missing_binary_stops_the_commit_with_one_line() {
    let repo = Repo::new();
    repo.stage("README.md", "# A project\n").commit("first");
    let copy = repo.home().join("bin/claude-reviewer");
    fs::create_dir(copy.parent().unwrap()).unwrap();
    // In another process: a file that this process has open for writing is also open, for a moment,
    // in every child that another test starts, and cannot be executed.
    assert!(
        Command::new("cp")
            .arg(binary())
            .arg(&copy)
            .status()
            .unwrap()
            .success()
    );
    let out = Command::new(&copy)
        .arg("install-hooks")
        .current_dir(repo.path())
        .output()
        .unwrap();
    assert!(out.status.success(), "{}", text(&out));
    repo.stage("app.ini", CLEAN);
    passes(&repo, &["commit", "-q", "-m", "with the binary"]);
    fs::remove_file(&copy).unwrap();
    repo.stage("app.ini", "region = us-east-1\n");
    let said = stops(&repo, &["commit", "-q", "-m", "without"]);
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(
        said.contains("claude-reviewer is gone, so nothing was reviewed"),
        "{said}"
    );
    let skip = repo
        .git_command()
        .args(["commit", "-q", "-m", "x"])
        .env("CLAUDE_REVIEWER_SKIP", "1")
        .output()
        .unwrap();
    assert!(skip.status.success(), "{}", text(&skip));

    repo.git(&["init", "-q", "--bare", repo.outside().to_str().unwrap()]);
    let out = repo.try_git(&["push", "-q", repo.outside().to_str().unwrap(), "main"]);
    assert!(
        !out.status.success() && text(&out).contains("nothing was reviewed"),
        "{}",
        text(&out)
    );

    // It is found elsewhere in PATH; a program of that name in the repository is not used.
    executable(
        &repo.path().join("claude-reviewer"),
        "#!/bin/sh\ntouch planted\n",
    );
    repo.stage("app.ini", aws_key());
    let with_path = |dir: &Path| {
        let old = std::env::var_os("PATH").unwrap();
        let path = std::env::join_paths(
            [dir.to_owned()]
                .into_iter()
                .chain(std::env::split_paths(&old)),
        )
        .unwrap();
        repo.git_command()
            .args(["commit", "-q", "-m", "x"])
            .env("PATH", path)
            .output()
            .unwrap()
    };
    let out = with_path(Path::new("."));
    assert!(
        !out.status.success() && text(&out).contains("nothing was reviewed"),
        "{}",
        text(&out)
    );
    assert!(!repo.path().join("planted").exists());
    let out = with_path(Path::new(binary()).parent().unwrap());
    assert!(
        !out.status.success() && text(&out).contains("exit=1"),
        "{}",
        text(&out)
    );
}

#[test]
fn ci_10_a_reader_that_goes_away_changes_no_exit_code() {
    let repo = Repo::new();
    repo.stage("app.ini", aws_key());
    for format in ["human", "json", "sarif"] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let child = Command::new(binary())
            .args(["review", "staged", "--format", format])
            .current_dir(repo.path())
            .stdout(writer)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let out = child.wait_with_output().unwrap();
        assert_eq!(out.status.code(), Some(1), "{format}: {}", text(&out));
        assert!(!text(&out).contains("panicked"), "{}", text(&out));
    }
    for args in [
        &["completions", "bash"][..],
        &["man"],
        &["rules", "list"],
        &["--help"],
    ] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let (err_reader, err_writer) = std::io::pipe().unwrap();
        drop(err_reader);
        let mut command = Command::new(binary());
        let status = command
            .args(args)
            .current_dir(repo.path())
            .stdout(writer)
            .stderr(err_writer)
            .status()
            .unwrap();
        assert_eq!(status.code(), Some(0), "{args:?}");
    }
}
