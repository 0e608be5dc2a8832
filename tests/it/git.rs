//! Tests of reading changes from real repositories.

mod merges;
mod names;
mod revisions;
mod rows;
mod special;
mod states;
mod untrusted;

use crate::support::Repo;
use claude_reviewer::diff::unified;
use claude_reviewer::env::Env;
use claude_reviewer::error::Error;
use claude_reviewer::git::{self, Change};
use std::ffi::OsString;
use std::path::Path;

/// Opens a repository like the binary in its top folder.
fn open(repo: &Repo) -> git::Repo {
    open_in(repo, &repo.path(), &[]).unwrap()
}

#[expect(
    clippy::disallowed_methods,
    reason = "the git program is found where the tests find it"
)]
fn open_in(repo: &Repo, dir: &Path, vars: &[(&str, &str)]) -> Result<git::Repo, Error> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut all = vec![
        (OsString::from("PATH"), path),
        ("HOME".into(), repo.home().into()),
    ];
    all.extend(
        vars.iter()
            .map(|(k, v)| (OsString::from(k), OsString::from(v))),
    );
    git::Repo::open(dir, &Env::from_pairs(dir.to_owned(), all))
}

/// Prints a change as a patch.
fn patch(repo: &git::Repo, change: &Change) -> String {
    let mut reader = repo.reader();
    let mut out = Vec::new();
    for i in 0..change.entries.len() {
        unified::write(&reader.load(change, i).unwrap(), &mut out);
    }
    String::from_utf8_lossy(&out).into_owned()
}

fn paths(change: &Change) -> Vec<String> {
    change.entries.iter().map(|e| e.path().to_wire()).collect()
}

/// Returns git's own output.
fn git_patch(repo: &Repo, args: &[&str]) -> String {
    repo.git(
        &[
            &["-c", "core.fsmonitor=false"],
            args,
            &["--full-index", "--no-ext-diff", "--no-textconv"],
        ]
        .concat(),
    )
}

/// Creates a repository with every kind of change, staged on top of a first commit.
fn one_of_everything() -> Repo {
    let repo = Repo::new();
    let long: String = (0..60)
        .map(|i| format!("line {i} of some text\n"))
        .collect();
    repo.stage("kept.txt", "kept\n")
        .stage("changed.txt", "one\ntwo\nthree\n")
        .stage("dir/moved.txt", &long)
        .stage("dir/sub/gone.txt", "gone\n")
        .stage("run.sh", "#!/bin/sh\n")
        .stage("type", "to be a link\n")
        .stage("file-then-folder", "a\n")
        .stage("crlf.txt", "a\r\nb\r\n")
        .stage("empty", "")
        .stage("b in name", "x\n")
        .stage("no newline", "a\nb");
    symlink("kept.txt", &repo.path().join("link"));
    repo.git(&["add", "-A"]);
    repo.commit("first");
    repo.stage("changed.txt", "one\n2\nthree\n")
        .stage("crlf.txt", "a\r\nc\r\n")
        .stage("no newline", "a\nc")
        .stage("tab\tand \"quote\".txt", "t\n")
        .stage("new/folder/file.rs", "fn main() {}\n");
    repo.git(&["mv", "dir/moved.txt", "moved far.txt"]);
    repo.stage("moved far.txt", format!("{long}and one more\n"));
    repo.git(&["rm", "-q", "dir/sub/gone.txt", "file-then-folder", "empty"]);
    repo.stage("file-then-folder/inside", "b\n");
    repo.git(&["update-index", "--chmod=+x", "run.sh"]);
    std::fs::remove_file(repo.path().join("type")).unwrap();
    std::fs::remove_file(repo.path().join("link")).unwrap();
    symlink("elsewhere", &repo.path().join("type"));
    symlink("changed.txt", &repo.path().join("link"));
    repo.git(&["add", "type", "link"]);
    set_executable(&repo.path().join("run.sh"));
    repo
}

fn symlink(target: &str, at: &Path) {
    std::os::unix::fs::symlink(target, at).unwrap();
}

fn set_executable(at: &Path) {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(at, std::fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn dif_05_staged_changes_of_every_kind_equal_gits() {
    let repo = one_of_everything();
    let r = open(&repo);
    assert_eq!(
        patch(&r, &r.staged().unwrap()),
        git_patch(&repo, &["diff", "--cached"])
    );
}

#[test]
fn dif_05_committed_changes_of_every_kind_equal_gits() {
    let repo = one_of_everything();
    let id = repo.commit("second");
    let r = open(&repo);
    let id = r.resolve(&id).unwrap();
    assert_eq!(
        patch(&r, &r.commit(id, None).unwrap()),
        git_patch(&repo, &["diff", "HEAD~1", "HEAD"])
    );
    let root = r.resolve("HEAD~1").unwrap();
    let change = r.commit(root, None).unwrap();
    assert_eq!(change.base, git::State::Empty);
    assert_eq!(
        patch(&r, &change),
        git_patch(&repo, &["show", "--format=", "HEAD~1"])
    );
}

#[test]
fn dif_05_unstaged_changes_equal_gits() {
    let repo = one_of_everything();
    repo.commit("second");
    let path = repo.path();
    repo.write("changed.txt", "one\n3\nthree\n")
        .write("added later", "new\n");
    std::fs::remove_file(path.join("kept.txt")).unwrap();
    std::fs::remove_dir_all(path.join("new")).unwrap();
    std::fs::remove_file(path.join("type")).unwrap();
    repo.write("type", "a file again\n");
    repo.git(&["add", "-N", "added later"]);
    // Touched, but unmodified.
    let same = std::fs::read(path.join("crlf.txt")).unwrap();
    std::fs::write(path.join("crlf.txt"), same).unwrap();
    let r = open(&repo);
    assert_eq!(
        patch(&r, &r.unstaged(false).unwrap()),
        git_patch(&repo, &["diff"])
    );
    repo.write("untracked", "u\n")
        .write(".gitignore", "ignored\n")
        .write("ignored", "i\n");
    let r = open(&repo);
    let change = r.unstaged(true).unwrap();
    assert!(
        paths(&change).contains(&"untracked".to_owned()),
        "{:?}",
        paths(&change)
    );
    assert!(
        !paths(&change).contains(&"ignored".to_owned()),
        "{:?}",
        paths(&change)
    );
}
