//! Tests of commits, ranges, branches and pushes.

use super::{git_patch, open, patch, paths};
use crate::support::Repo;
use claude_reviewer::error::Kind;
use claude_reviewer::git::{ConfigScope, State};
use claude_reviewer::request::PushRange;

fn range(local: &str, remote: &str, to: Option<&str>) -> PushRange {
    PushRange {
        local: local.into(),
        remote: remote.into(),
        name: "refs/heads/x".into(),
        to: to.map(str::to_owned),
    }
}

const ZEROS: &str = "0000000000000000000000000000000000000000";

/// `main` with two commits, `feature` with two more, a merge of both on `merged`.
fn branches() -> Repo {
    let repo = Repo::new();
    repo.stage("a", "1\n").commit("first");
    repo.git(&["checkout", "-q", "-b", "feature"]);
    repo.stage("f", "1\n").commit("feature one");
    repo.stage("f", "2\n").commit("feature two");
    repo.git(&["checkout", "-q", "main"]);
    repo.stage("a", "2\n").commit("second");
    repo.git(&["checkout", "-q", "-b", "merged"]);
    repo.git(&["merge", "-q", "--no-ff", "-m", "merge", "feature"]);
    repo
}

#[test]
fn a_merge_is_compared_with_the_parent_that_is_asked_for() {
    let repo = branches();
    let r = open(&repo);
    let id = r.resolve("HEAD").unwrap();
    assert_eq!(paths(&r.commit(id, None).unwrap()), ["f"]);
    assert_eq!(paths(&r.commit(id, Some(1)).unwrap()), ["f"]);
    assert_eq!(paths(&r.commit(id, Some(2)).unwrap()), ["a"]);
    for parent in [0, 3] {
        assert_eq!(r.commit(id, Some(parent)).unwrap_err().kind, Kind::Usage);
    }
    let root = r.resolve("HEAD~2").unwrap();
    assert_eq!(r.commit(root, None).unwrap().base, State::Empty);
    assert_eq!(r.commit(root, Some(1)).unwrap_err().kind, Kind::Usage);
}

#[test]
fn a_merge_alone_brings_only_what_no_parent_has() {
    let repo = branches();
    let r = open(&repo);
    let mut reader = r.reader();
    let mut alone = |rev: &str| paths(&reader.alone(r.resolve(rev).unwrap()).unwrap());
    assert_eq!(alone("HEAD"), [""; 0]);
    assert_eq!(alone("feature"), ["f"]);
    assert_eq!(alone("main~1"), ["a"]);
    let mut touched = |rev: &str, path: &str| {
        let ends = reader
            .touched(r.resolve(rev).unwrap(), &path.into())
            .unwrap();
        ends.map(|(base, head)| {
            (
                base.commit().map(|c| c.to_string()),
                head.commit().unwrap().to_string(),
            )
        })
    };
    let id = |rev: &str| repo.git(&["rev-parse", rev]).trim().to_owned();
    assert_eq!(touched("main", "a"), Some((Some(id("main~1")), id("main"))));
    assert_eq!(touched("main~1", "a"), Some((None, id("main~1"))));
    assert_eq!(touched("main~1", "f"), None);
    assert_eq!(touched("feature", "a"), None);
    assert_eq!(touched("HEAD", "a"), None);
    assert_eq!(touched("HEAD", "f"), None);
    // A line that was added to the merge by hand.
    repo.stage("f", "by hand\n").stage("sneaked in", "x\n");
    repo.git(&["commit", "-q", "--amend", "--no-edit"]);
    let r = open(&repo);
    assert_eq!(
        paths(&r.reader().alone(r.resolve("HEAD").unwrap()).unwrap()),
        ["f", "sneaked in"]
    );
}

#[test]
fn a_range_is_walked_from_the_oldest() {
    let repo = branches();
    let r = open(&repo);
    let ids: Vec<_> = r
        .range("main~1", "merged")
        .unwrap()
        .iter()
        .map(ToString::to_string)
        .collect();
    let git: Vec<_> = repo
        .git(&["rev-list", "--reverse", "--date-order", "main~1..merged"])
        .lines()
        .map(str::to_owned)
        .collect();
    assert_eq!(ids, git);
    assert!(r.range("merged", "main").unwrap().is_empty());
    assert_eq!(r.range("main", "main").unwrap(), []);
}

#[test]
fn revisions_are_understood_as_git_does() {
    let repo = branches();
    repo.git(&["tag", "-a", "-m", "t", "v1", "feature~1"]);
    let r = open(&repo);
    for rev in [
        "HEAD",
        "feature",
        "refs/heads/feature",
        "v1",
        "HEAD^2",
        "HEAD~2",
        "merged^2~1",
        "@",
        "main^{commit}",
    ] {
        let git = repo.git(&["rev-parse", &format!("{rev}^{{commit}}")]);
        assert_eq!(r.resolve(rev).unwrap().to_string(), git.trim(), "{rev}");
    }
    let short = &repo.git(&["rev-parse", "feature"])[..10];
    assert_eq!(r.resolve(short).unwrap(), r.resolve("feature").unwrap());
}

#[test]
fn a_branch_is_its_net_change() {
    let repo = branches();
    let r = open(&repo);
    let b = r.branch(Some("feature"), Some("main")).unwrap();
    assert_eq!(b.base_name, "main");
    assert_eq!(b.merge_base, r.resolve("main~1").unwrap());
    assert_eq!(b.commits.len(), 2);
    assert_eq!(
        patch(&r, &b.change),
        git_patch(&repo, &["diff", "main...feature"])
    );
    // It has no commits of its own.
    let b = r.branch(Some("main~1"), Some("main")).unwrap();
    assert!(b.change.entries.is_empty() && b.commits.is_empty());
    repo.git(&["checkout", "-q", "--orphan", "alone"]);
    repo.commit("alone");
    let r = open(&repo);
    let e = r.branch(None, Some("main")).unwrap_err();
    assert!(
        e.kind == Kind::Usage && e.message.contains("no commit in common"),
        "{e}"
    );
}

#[test]
fn a_base_that_nobody_names_is_found_and_said() {
    let origin = branches();
    origin.git(&["checkout", "-q", "main"]);
    let clone = Repo::new();
    clone.git(&["remote", "add", "origin", origin.path().to_str().unwrap()]);
    clone.git(&["fetch", "-q"]);
    clone.git(&["checkout", "-q", "-b", "main", "origin/main"]);
    let base = |clone: &Repo| {
        open(clone)
            .branch(None, None)
            .map(|b| b.base_name)
            .unwrap_or_else(|e| e.message)
    };
    assert_eq!(base(&clone), "upstream origin/main");
    // No upstream: the default branch.
    clone.git(&["checkout", "-q", "--no-track", "-b", "topic"]);
    clone.stage("t", "t\n").commit("topic");
    assert_eq!(base(&clone), "default branch origin/main");
    clone.git(&["remote", "set-head", "origin", "feature"]);
    assert_eq!(base(&clone), "default branch origin/feature");
    clone.git(&["remote", "set-head", "origin", "main"]);
    // Its own remote-tracking branch is not a base: pushed commits still have to be reviewed.
    clone.git(&["push", "-q", "-u", "origin", "topic"]);
    assert_eq!(base(&clone), "default branch origin/main");
    let b = open(&clone).branch(None, None).unwrap();
    assert_eq!(paths(&b.change), ["t"]);
    // Any other upstream is a base.
    clone.git(&["branch", "-q", "-u", "origin/feature"]);
    assert_eq!(base(&clone), "upstream origin/feature");
    let alone = Repo::init(&["-b", "odd"]);
    alone.stage("a", "a\n").commit("first");
    assert!(
        base(&alone).contains("the branch has no upstream, and there is no default branch"),
        "{}",
        base(&alone)
    );
}

#[test]
fn the_base_of_a_branch_is_that_of_the_branch_that_is_named() {
    let origin = branches();
    let clone = Repo::new();
    clone.git(&["remote", "add", "origin", origin.path().to_str().unwrap()]);
    clone.git(&["fetch", "-q"]);
    clone.git(&["checkout", "-q", "-b", "main", "origin/main"]);
    clone.git(&["checkout", "-q", "-b", "topic", "--track", "origin/feature"]);
    clone.stage("t", "t\n").commit("topic");
    clone.git(&["checkout", "-q", "main"]);
    let base = |head: Option<&str>| {
        let b = open(&clone).branch(head, None).unwrap();
        (b.base_name, paths(&b.change))
    };
    let feature = ("upstream origin/feature".to_owned(), vec!["t".to_owned()]);
    for name in ["topic", "heads/topic", "refs/heads/topic"] {
        assert_eq!(base(Some(name)), feature, "{name}");
    }
    assert_eq!(base(None).0, "upstream origin/main");
    assert_eq!(base(Some("HEAD")), base(None));
    assert_eq!(base(Some("@")), base(None));
    // A revision that is not a branch has no upstream, whichever branch is checked out.
    clone.git(&["checkout", "-q", "topic"]);
    assert_eq!(base(None), feature);
    assert_eq!(base(Some("topic~0")).0, "default branch origin/main");
    assert_eq!(base(Some("origin/feature")).0, "default branch origin/main");
    // A tag takes precedence over a branch of the same name.
    clone.git(&["tag", "topic"]);
    assert_eq!(base(Some("topic")).0, "default branch origin/main");
    assert_eq!(base(Some("heads/topic")), feature);
}

#[test]
fn a_base_that_cannot_be_read_is_no_missing_one() {
    let origin = branches();
    let clone = Repo::new();
    clone.git(&["remote", "add", "origin", origin.path().to_str().unwrap()]);
    clone.git(&["fetch", "-q"]);
    clone.git(&[
        "checkout",
        "-q",
        "--no-track",
        "-b",
        "topic",
        "origin/feature",
    ]);
    let head = clone.git(&["rev-parse", "HEAD"]).trim().to_owned();
    let main = clone.path().join(".git/refs/remotes/origin/main");
    let right = std::fs::read(&main).unwrap();
    let missing = "1234567890123456789012345678901234567890\n";
    for wrong in ["", "no id at all\n", missing] {
        std::fs::write(&main, wrong).unwrap();
        let r = open(&clone);
        for e in [
            r.branch(None, None).unwrap_err(),
            r.changes(None).unwrap_err(),
        ] {
            assert_eq!(e.kind, Kind::Incomplete, "{wrong:?}: {e}");
        }
        let e = r.push(&range(&head, ZEROS, Some("origin"))).unwrap_err();
        assert_eq!(e.kind, Kind::Incomplete, "{wrong:?}: {e}");
    }
    std::fs::write(&main, right).unwrap();
    // A reference to a pruned branch is invalid, as in git.
    let head_of_origin = clone.path().join(".git/refs/remotes/origin/HEAD");
    std::fs::write(head_of_origin, "ref: refs/remotes/origin/pruned\n").unwrap();
    let r = open(&clone);
    assert_eq!(
        r.branch(None, None).unwrap().base_name,
        "default branch origin/main"
    );
    assert!(
        r.push(&range(&head, ZEROS, Some("origin")))
            .unwrap()
            .unwrap()
            .commits
            .is_empty()
    );
}

#[test]
fn changes_without_a_base_start_where_the_branch_did() {
    let repo = Repo::new();
    repo.stage("a", "1\n").commit("first");
    repo.stage("b", "1\n").commit("second");
    let label = |repo: &Repo| {
        let r = open(repo);
        let (change, label) = r.changes(None).unwrap();
        (label, paths(&change))
    };
    // On the default branch without changes: the newest commit.
    let (said, found) = label(&repo);
    assert!(said.contains("the parent of HEAD"), "{said}");
    assert_eq!(found, ["b"]);
    repo.write("c", "1\n");
    assert_eq!(label(&repo), ("HEAD".to_owned(), vec!["c".to_owned()]));
    repo.git(&["checkout", "-q", "-b", "topic"]);
    repo.stage("d", "1\n").commit("topic");
    let (said, found) = label(&repo);
    assert_eq!(said, "the merge base with default branch main");
    assert_eq!(found, ["c", "d"]);
    let r = open(&repo);
    assert_eq!(paths(&r.changes(Some("HEAD")).unwrap().0), ["c"]);
}

#[test]
fn a_push_reviews_what_the_remote_does_not_have() {
    let origin = branches();
    origin.git(&["checkout", "-q", "merged"]);
    let repo = Repo::new();
    repo.git(&["remote", "add", "origin", origin.path().to_str().unwrap()]);
    repo.git(&["remote", "add", "fork", "https://example.invalid/fork.git"]);
    repo.git(&["fetch", "-q"]);
    repo.git(&["checkout", "-q", "-b", "topic", "origin/main"]);
    let one = repo.stage("t", "1\n").commit("one");
    let two = repo.stage("t", "2\n").commit("two");
    let main = repo.git(&["rev-parse", "origin/main"]).trim().to_owned();
    let push = |local: &str, remote: &str, to: Option<&str>| {
        let r = open(&repo);
        let b = r.push(&range(local, remote, to)).unwrap()?;
        Some((
            paths(&b.change),
            b.commits
                .iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>(),
            b.merge_base.to_string(),
        ))
    };
    let new = (
        vec!["t".to_owned()],
        vec![one.clone(), two.clone()],
        main.clone(),
    );
    // A deletion, a new branch, an update, the same again.
    assert_eq!(push(ZEROS, &main, None), None);
    assert_eq!(push(&two, ZEROS, Some("origin")), Some(new.clone()));
    assert_eq!(push(&two, ZEROS, None), Some(new.clone()));
    assert_eq!(
        push(&two, ZEROS, Some(origin.path().to_str().unwrap())),
        Some(new.clone())
    );
    assert_eq!(push(&two, &one, Some("origin")).unwrap().1, [&*two]);
    assert_eq!(push(&two, &two, Some("origin")).unwrap().1, [""; 0]);
    // A name, in the form of pre-commit.
    assert_eq!(push("HEAD", "origin/main", None), Some(new.clone()));
    // An empty remote gets everything.
    let (files, commits, base) = push(&two, ZEROS, Some("fork")).unwrap();
    assert_eq!(files, ["a", "t"]);
    assert_eq!(commits.len(), 4);
    assert_eq!(base, ZEROS);
    // A tag, an annotated one, and one that does not point to a commit.
    repo.git(&["tag", "-a", "-m", "t", "v1"]);
    let tag = repo.git(&["rev-parse", "v1"]).trim().to_owned();
    assert_ne!(tag, two);
    assert_eq!(push(&tag, ZEROS, Some("origin")), Some(new));
    let blob = repo.git(&["rev-parse", "HEAD:t"]).trim().to_owned();
    assert_eq!(
        open(&repo)
            .push(&range(&blob, ZEROS, None))
            .unwrap_err()
            .kind,
        Kind::Usage
    );
    // A force push: the remote's old commit is not an ancestor.
    repo.git(&["reset", "-q", "--hard", "HEAD~1"]);
    let other = repo.stage("t", "3\n").commit("other");
    let (files, commits, base) = push(&other, &two, Some("origin")).unwrap();
    assert_eq!(
        (files, commits, base),
        (vec!["t".to_owned()], vec![other.clone()], one.clone())
    );
    // The remote's commit was never fetched, so the reference is treated as new.
    let unknown = "1234567890123456789012345678901234567890";
    assert_eq!(
        push(&other, unknown, Some("origin")).unwrap().1,
        [one, other]
    );
    for (local, remote) in [("nope", ZEROS), ("--all", ZEROS), ("HEAD", "nope")] {
        assert_eq!(
            open(&repo)
                .push(&range(local, remote, None))
                .unwrap_err()
                .kind,
            Kind::Usage,
            "{local} {remote}"
        );
    }
}

#[test]
fn the_hooks_folder_is_the_one_git_uses() {
    let repo = Repo::new();
    repo.stage("a", "a\n").commit("first");
    let hooks = || open(&repo).hooks().unwrap();
    let common = repo.path().join(".git");
    assert_eq!(
        (hooks().path, hooks().configured, hooks().inside),
        (common.join("hooks"), None, true)
    );
    let tree = repo.path().with_file_name("tree");
    repo.git(&["worktree", "add", "-q", tree.to_str().unwrap()]);
    let linked = super::open_in(&repo, &tree, &[]).unwrap();
    assert_eq!(
        std::fs::canonicalize(linked.hooks().unwrap().path.parent().unwrap()).unwrap(),
        std::fs::canonicalize(&common).unwrap()
    );
    repo.git(&["config", "core.hooksPath", ".husky/_"]);
    assert_eq!(
        (hooks().path, hooks().configured, hooks().inside),
        (repo.path().join(".husky/_"), Some(ConfigScope::Local), true)
    );
    repo.git(&["config", "core.hooksPath", "/elsewhere/hooks"]);
    assert_eq!(
        (hooks().configured, hooks().inside),
        (Some(ConfigScope::Local), false)
    );
    repo.git(&["config", "--unset", "core.hooksPath"]);
    repo.git(&["config", "extensions.worktreeConfig", "true"]);
    repo.git(&["config", "--worktree", "core.hooksPath", "own"]);
    assert_eq!(hooks().configured, Some(ConfigScope::Worktree));
}

#[test]
fn identity_and_remotes_come_from_the_configuration() {
    let repo = Repo::new();
    let r = open(&repo);
    assert!(r.remotes().is_empty());
    assert_eq!(r.head().unwrap(), None);
    repo.git(&["config", "user.name", "Somebody"]);
    repo.git(&["remote", "add", "b", "x"]);
    repo.git(&["remote", "add", "a", "y"]);
    let id = repo.stage("a", "a\n").commit("first");
    let r = open(&repo);
    assert_eq!(r.identity().0.as_deref(), Some("Somebody"));
    assert_eq!(r.remotes(), ["a", "b"]);
    assert_eq!(r.head().unwrap().unwrap().to_string(), id);
    let tree = repo.git(&["rev-parse", "HEAD^{tree}"]);
    assert_eq!(
        r.tree_of(r.head().unwrap().unwrap()).unwrap().to_string(),
        tree.trim()
    );
    assert_eq!(r.common_dir(), repo.path().join(".git"));
}
