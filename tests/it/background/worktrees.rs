//! Tests of reviews in linked worktrees, from other folders, and in bare repositories.

use super::*;

#[test]
fn worktrees_of_a_repository_share_one_review_at_a_time() {
    let desk = Desk::gated();
    let other = desk.repo.outside().join("linked");
    desk.repo.git(&[
        "worktree",
        "add",
        "-q",
        "-b",
        "linked",
        other.to_str().unwrap(),
    ]);
    let first = desk.commit("a.py");
    assert_eq!(desk.running()["order"]["commit"], first.as_str());
    fs::write(other.join("b.py"), "B = 1\n").unwrap();
    let at = other.to_str().unwrap();
    desk.repo.git(&["-C", at, "add", "b.py"]);
    desk.repo.git(&["-C", at, "commit", "-q", "-m", "b"]);
    let second = desk
        .repo
        .git(&["-C", at, "rev-parse", "HEAD"])
        .trim()
        .to_owned();
    let status = desk.status();
    assert_eq!(
        status["pending"]["order"]["commit"],
        second.as_str(),
        "{status:#}"
    );
    desk.gate.open();
    let status = desk.settled();
    assert_eq!(status["last"]["commit"], second.as_str(), "{status:#}");
    assert_eq!(status["last"]["verdict"], "pass", "{status:#}");
    assert_eq!(desk.server.most_in_flight(), 1);
    assert!(
        other.join(".reviews").is_dir(),
        "the review is stored in the worktree that made the commit"
    );
}

#[test]
fn a_worktree_that_is_deleted_meanwhile_is_not_made_again() {
    let desk = Desk::gated();
    let other = desk.repo.outside().join("linked");
    desk.repo.git(&[
        "worktree",
        "add",
        "-q",
        "-b",
        "linked",
        other.to_str().unwrap(),
    ]);
    fs::write(other.join("b.py"), "B = 1\n").unwrap();
    let at = other.to_str().unwrap();
    desk.repo.git(&["-C", at, "add", "b.py"]);
    desk.repo.git(&["-C", at, "commit", "-q", "-m", "b"]);
    desk.asking();
    desk.repo.git(&["worktree", "remove", "--force", at]);
    desk.gate.open();
    let status = desk.settled();
    assert_eq!(status["last"]["ending"], "reviewed", "{status:#}");
    assert!(
        status["last"]["note"]
            .as_str()
            .unwrap()
            .starts_with("not stored: "),
        "{status:#}"
    );
    assert!(!other.exists());
}

#[test]
fn a_commit_from_another_folder_is_reviewed() {
    let desk = Desk::new();
    let (top, git_dir) = (desk.repo.path(), desk.repo.path().join(".git"));
    let (top, git_dir) = (top.to_str().unwrap(), git_dir.to_str().unwrap());
    for (i, start) in [
        vec!["-C", top],
        vec!["--git-dir", git_dir, "--work-tree", top],
    ]
    .into_iter()
    .enumerate()
    {
        desk.repo.stage("a.py", format!("A = {i}\n"));
        let args = [start, vec!["commit", "-q", "-m", "a"]].concat();
        let out = desk
            .repo
            .git_command()
            .current_dir(desk.repo.home())
            .args(args)
            .output()
            .unwrap();
        assert!(out.status.success(), "{}", text(&out));
        let head = desk.head();
        assert_eq!(desk.settled()["last"]["commit"], head.as_str());
    }
}

#[test]
fn a_bare_repository_has_no_background_reviews() {
    let desk = Desk::new();
    let bare = desk.repo.outside().join("remote.git");
    let run = desk
        .repo
        .reviewer(&["review", "--hook", "post-commit"])
        .dir(&bare)
        .env("GIT_DIR", &bare)
        .run(0);
    assert_eq!((run.stdout.as_str(), run.stderr.as_str()), ("", ""));
}
