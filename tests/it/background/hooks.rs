//! Tests of the hook that starts reviews in the background.

use super::*;

#[test]
fn hok_01_a_post_commit_hook_is_chained_and_comes_back_byte_for_byte() {
    let desk = Desk::new();
    desk.repo.reviewer(&["install-hooks", "--uninstall"]).run(0);
    let hook = desk.repo.path().join(".git/hooks/post-commit");
    let theirs = b"#!/bin/sh\necho theirs \xff\nexit 7\n";
    fs::write(&hook, theirs).unwrap();
    fs::set_permissions(&hook, fs::Permissions::from_mode(0o750)).unwrap();
    let run = desk.repo.reviewer(&["install-hooks"]).run(0);
    assert!(
        run.stdout
            .contains("kept as .git/hooks/post-commit.chained"),
        "{}",
        run.stdout
    );
    desk.repo.stage("a.py", "A = 1\n");
    let out = desk.repo.try_git(&["commit", "-q", "-m", "a"]);
    assert!(text(&out).contains("theirs"), "{}", text(&out));
    // The user's hook fails, but the commit is reviewed.
    let head = desk.head();
    assert_eq!(desk.settled()["last"]["commit"], head.as_str());
    desk.repo.reviewer(&["install-hooks", "--uninstall"]).run(0);
    assert_eq!(fs::read(&hook).unwrap(), theirs);
    assert_eq!(
        fs::metadata(&hook).unwrap().permissions().mode() & 0o7777,
        0o750
    );
}

#[test]
fn hok_01_the_post_commit_hook_is_installed_only_where_it_is_used() {
    let repo = Repo::new();
    repo.stage("README.md", "# A project\n").commit("first");
    let run = repo.reviewer(&["install-hooks"]).run(0);
    assert!(!run.stdout.contains("post-commit"), "{}", run.stdout);
    let run = repo.reviewer(&["install-hooks", "--uninstall"]).run(0);
    assert!(!run.stdout.contains("post-commit"), "{}", run.stdout);
    let run = repo.reviewer(&["install-hooks", "--post-commit"]).run(0);
    assert!(
        run.stdout.contains("installed .git/hooks/post-commit"),
        "{}",
        run.stdout
    );
    assert!(run.stdout.contains("does nothing until"), "{}", run.stdout);
    repo.stage("a.py", "A = 1\n");
    let out = repo.try_git(&["commit", "-q", "-m", "a"]);
    assert!(
        out.status.success() && text(&out).is_empty(),
        "{}",
        text(&out)
    );
    let run = repo.reviewer(&["status"]).run(0);
    assert!(
        run.stdout.starts_with("background reviews: off"),
        "{}",
        run.stdout
    );
}

#[test]
fn hok_01_hook_managers_are_told_the_line_of_the_post_commit_hook() {
    let repo = Repo::new();
    repo.write(".husky/_/h", "generated");
    let run = repo.reviewer(&["install-hooks", "--post-commit"]).run(2);
    let line = "echo 'claude-reviewer review --hook post-commit' >> .husky/post-commit";
    assert!(run.stderr.contains(line), "{}", run.stderr);
    let repo = Repo::new();
    repo.write("lefthook.yml", "");
    let run = repo.reviewer(&["install-hooks", "--post-commit"]).run(2);
    assert!(
        run.stderr.contains("below post-commit, commands, add"),
        "{}",
        run.stderr
    );
}

#[test]
fn the_program_of_a_review_is_the_one_under_test() {
    let desk = Desk::gated();
    desk.commit("a.py");
    let pid = desk.running()["pid"].as_u64().unwrap();
    assert_eq!(
        fs::read_link(format!("/proc/{pid}/exe")).unwrap(),
        fs::canonicalize(binary()).unwrap()
    );
}
