//! Tests of the pre-push hook: which commits of a push are reviewed.

use super::{CLEAN, aws_key, executable, hook_path, hooked, passes, stops};
use crate::support::Repo;
use std::fs;

/// A hooked repository with an empty remote.
fn with_remote() -> Repo {
    let repo = hooked();
    repo.git(&["init", "-q", "--bare", repo.outside().to_str().unwrap()]);
    repo.git(&["remote", "add", "origin", repo.outside().to_str().unwrap()]);
    passes(&repo, &["push", "-q", "origin", "main"]);
    repo
}

fn remote_refs(repo: &Repo) -> String {
    repo.git(&["ls-remote", "origin"])
}

#[test]
fn hok_06_a_new_branch_is_stopped_even_where_a_later_commit_removes_the_key() {
    let repo = with_remote();
    repo.git(&["checkout", "-q", "-b", "topic"]);
    repo.stage("app.ini", aws_key()).commit("in");
    let added = repo.git(&["rev-parse", "--short=7", "HEAD"]);
    repo.stage("app.ini", CLEAN).commit("out");
    let said = stops(&repo, &["push", "-q", "origin", "topic"]);
    assert!(
        said.contains("app.ini") && said.contains(added.trim()),
        "{said}"
    );
    assert!(!remote_refs(&repo).contains("topic"));
}

#[test]
fn hok_06_a_clean_branch_passes_and_what_the_remote_has_is_not_asked_again() {
    let repo = Repo::new();
    repo.stage("old.ini", aws_key())
        .commit("a key from before the hook");
    repo.git(&["init", "-q", "--bare", repo.outside().to_str().unwrap()]);
    repo.git(&["remote", "add", "origin", repo.outside().to_str().unwrap()]);
    repo.git(&["push", "-q", "origin", "main"]);
    repo.reviewer(&["install-hooks", "--pre-push"]).run(0);
    repo.stage("new.ini", CLEAN).commit("clean");
    passes(&repo, &["push", "-q", "origin", "main"]);
    passes(&repo, &["push", "-q", "origin", "main:refs/heads/other"]);
    assert!(passes(&repo, &["push", "origin", "main"]).contains("up-to-date"));
}

#[test]
fn hok_06_a_second_remote_has_nothing_of_the_first() {
    let repo = Repo::new();
    repo.stage("old.ini", aws_key())
        .commit("for the first remote only");
    for name in ["first", "second"] {
        let path = repo.home().join(name);
        repo.git(&["init", "-q", "--bare", path.to_str().unwrap()]);
        repo.git(&["remote", "add", name, path.to_str().unwrap()]);
    }
    repo.git(&["push", "-q", "first", "main"]);
    repo.reviewer(&["install-hooks", "--pre-push"]).run(0);
    assert!(stops(&repo, &["push", "-q", "second", "main"]).contains("old.ini"));
}

#[test]
fn hok_06_a_deletion_passes() {
    let repo = with_remote();
    repo.git(&[
        "push",
        "-q",
        "--no-verify",
        "origin",
        "main:refs/heads/gone",
    ]);
    passes(&repo, &["push", "-q", "origin", ":gone"]);
    assert!(!remote_refs(&repo).contains("gone"));
}

#[test]
fn hok_06_tags_are_followed_to_their_commits() {
    let repo = with_remote();
    repo.git(&["checkout", "-q", "--detach"]);
    repo.stage("app.ini", aws_key()).commit("tagged only");
    repo.git(&["tag", "light"]);
    repo.git(&["tag", "-a", "-m", "heavy", "heavy"]);
    for tag in ["light", "heavy"] {
        assert!(
            stops(&repo, &["push", "-q", "origin", tag]).contains("app.ini"),
            "{tag}"
        );
    }
    repo.git(&["tag", "clean", "main"]);
    passes(&repo, &["push", "-q", "origin", "clean"]);
}

#[test]
fn hok_06_a_forced_push_is_judged_from_where_the_histories_part() {
    let repo = with_remote();
    repo.stage("one.ini", CLEAN).commit("one");
    passes(&repo, &["push", "-q", "origin", "main"]);
    repo.git(&["reset", "-q", "--hard", "HEAD~1"]);
    repo.stage("two.ini", CLEAN).commit("two");
    passes(&repo, &["push", "-q", "--force", "origin", "main"]);
    repo.git(&["reset", "-q", "--hard", "HEAD~1"]);
    repo.stage("three.ini", aws_key()).commit("three");
    assert!(stops(&repo, &["push", "-q", "--force", "origin", "main"]).contains("three.ini"));
}

#[test]
fn hok_06_one_bad_reference_among_several_stops_them_all() {
    let repo = with_remote();
    repo.stage("good.ini", CLEAN).commit("good");
    repo.git(&["checkout", "-q", "-b", "bad"]);
    repo.stage("bad.ini", aws_key()).commit("bad");
    repo.git(&[
        "push",
        "-q",
        "--no-verify",
        "origin",
        "main~1:refs/heads/gone",
    ]);
    let before = remote_refs(&repo);
    assert!(stops(&repo, &["push", "-q", "origin", "main", "bad", ":gone"]).contains("bad.ini"));
    assert_eq!(remote_refs(&repo), before);
    passes(&repo, &["push", "-q", "origin", "main", ":gone"]);
}

#[test]
fn hok_06_a_kept_hook_gets_the_same_arguments_and_input() {
    let repo = Repo::new();
    repo.stage("README.md", "# A project\n").commit("first");
    repo.git(&["init", "-q", "--bare", repo.outside().to_str().unwrap()]);
    repo.git(&["remote", "add", "origin", repo.outside().to_str().unwrap()]);
    let record = repo.home().join("record");
    let theirs = format!(
        "#!/bin/sh\nprintf '%s\\n' \"$@\" > '{0}'\ncat >> '{0}'\n",
        record.display()
    );
    executable(&hook_path(&repo, "pre-push"), theirs);
    repo.git(&["push", "-q", "origin", "main:refs/heads/plain"]);
    let plain = fs::read_to_string(&record).unwrap();
    repo.reviewer(&["install-hooks", "--pre-push"]).run(0);
    let said = passes(&repo, &["push", "origin", "main:refs/heads/chain"]);
    assert!(said.contains("exit=0"), "{said}");
    assert_eq!(
        fs::read_to_string(&record).unwrap(),
        plain.replace("plain", "chain")
    );
    passes(&repo, &["push", "origin", "main:refs/heads/chain"]);
    let nothing = fs::read_to_string(&record).unwrap();
    assert_eq!(
        nothing.lines().count(),
        2,
        "no line where nothing is pushed: {nothing}"
    );
}

#[test]
fn hok_06_the_range_of_pre_commit_is_understood() {
    let repo = hooked();
    repo.stage("app.ini", aws_key()).commit("bad");
    let push = |from: &str, to: &str, code: i32| {
        let run = repo.reviewer(&["review", "--hook", "auto"]);
        run.env("PRE_COMMIT", "1")
            .env("PRE_COMMIT_FROM_REF", from)
            .env("PRE_COMMIT_TO_REF", to)
            .run(code)
    };
    push("HEAD~1", "HEAD", 1);
    push(
        repo.git(&["rev-parse", "main~1"]).trim(),
        repo.git(&["rev-parse", "main"]).trim(),
        1,
    );
    push("HEAD", "HEAD", 0);
    push("nope", "HEAD", 2);
    let whole = repo.reviewer(&["review", "--hook", "auto"]);
    whole
        .env("PRE_COMMIT", "1")
        .env("PRE_COMMIT_LOCAL_BRANCH", "refs/heads/main")
        .run(1);
}

#[test]
fn hok_06_the_password_in_an_address_is_not_shown() {
    let repo = hooked();
    let word = ["hunter", "2222"].concat();
    let url = format!("https://me:{word}@example.com/x.git");
    repo.git(&["remote", "add", "there", &url]);
    repo.git(&["update-ref", "refs/remotes/there/main", "HEAD"]);
    let base = repo.git(&["rev-parse", "HEAD"]);
    repo.stage("app.ini", CLEAN).commit("more");
    let line = format!(
        "refs/heads/main {} refs/heads/new {}\n",
        repo.git(&["rev-parse", "HEAD"]).trim(),
        "0".repeat(40)
    );
    for format in ["human", "json"] {
        let args = [
            "review",
            "--hook",
            "pre-push",
            "--format",
            format,
            "-v",
            "--hook-args",
            &url,
            &url,
        ];
        let run = repo.reviewer(&args).stdin(line.clone()).run(0);
        assert!(
            !run.stdout.contains(&word) && !run.stderr.contains(&word),
            "{}{}",
            run.stdout,
            run.stderr
        );
        assert!(
            run.stderr.contains("files=1/1"),
            "measured from {base}: {}",
            run.stderr
        );
    }
}

#[test]
fn hok_06_input_that_git_never_writes_is_refused() {
    let repo = hooked();
    let run = repo
        .reviewer(&["review", "--hook", "pre-push"])
        .stdin("refs/heads/main --output=x refs/heads/main y\n");
    assert!(run.run(2).stderr.contains("line 1 of the pre-push input"));
    assert!(!repo.path().join("x").exists());
}
