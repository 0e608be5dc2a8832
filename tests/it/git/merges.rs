//! Tests of truncated histories, and of merges that revert changes.

use crate::support::{Repo, Run, line_with_key, reviewer};
use std::path::{Path, PathBuf};

/// A topic whose second commit removes the key of its first one; `main` has moved on since.
fn added_and_removed() -> Repo {
    let repo = Repo::new();
    repo.stage("a.txt", "zero\n").commit("zero");
    repo.stage("a.txt", "one\n").commit("one");
    repo.git(&["checkout", "-q", "-b", "topic"]);
    repo.stage("b.ini", line_with_key()).commit("a key");
    repo.stage("b.ini", "none = 1\n").commit("no key");
    repo.stage("c.txt", "three\n").commit("more");
    repo.git(&["checkout", "-q", "main"]);
    repo.stage("d.txt", "four\n").commit("main goes on");
    repo
}

fn clone(repo: &Repo, name: &str, args: &[&str]) -> PathBuf {
    let to = repo.outside().join(name);
    let from = format!("file://{}", repo.path().display());
    repo.git(
        &[
            &["clone", "-q", "--no-local"],
            args,
            &[&from, to.to_str().unwrap()],
        ]
        .concat(),
    );
    to
}

fn in_clone(repo: &Repo, clone: &Path, args: &[&str]) {
    repo.git(&[&["-C", clone.to_str().unwrap()], args].concat());
}

#[track_caller]
fn review(repo: &Repo, clone: &Path, args: &[&str], code: i32) -> Run {
    reviewer(
        clone,
        &repo.home(),
        &[&["review"], args, &["--no-save"]].concat(),
    )
    .run(code)
}

const BRANCH: &[&str] = &["branch", "origin/topic", "--base", "origin/main", "--gate"];
const RANGE: &[&str] = &["commit", "origin/main..origin/topic", "--gate"];

#[test]
fn ver_07_a_shallow_fetch_into_a_full_clone_hides_no_commit() {
    let repo = added_and_removed();
    let full = clone(&repo, "full", &[]);
    for source in [BRANCH, RANGE] {
        review(&repo, &full, source, 1);
    }
    // All objects are still there, but git's history ends at a later commit.
    for (depth, branch) in [("1", "topic"), ("2", "topic"), ("1", "main")] {
        let cut = clone(&repo, &format!("{branch}-{depth}"), &[]);
        in_clone(
            &repo,
            &cut,
            &["fetch", "-q", "--depth", depth, "origin", branch],
        );
        let run = review(&repo, &cut, BRANCH, 3);
        assert!(
            run.stderr.contains("shallow clone") && run.stderr.contains("git fetch --unshallow"),
            "{}",
            run.stderr
        );
        if branch == "topic" {
            review(&repo, &cut, RANGE, 3);
            review(&repo, &cut, &RANGE[..2], 3);
        }
    }
}

#[test]
fn ver_07_a_shallow_clone_with_all_that_decides_is_complete() {
    let repo = added_and_removed();
    // The history ends at the common commit.
    let deep = clone(&repo, "deep", &["--depth", "4", "--no-single-branch"]);
    assert!(review(&repo, &deep, BRANCH, 1).stderr.contains("complete"));
    let short = clone(&repo, "short", &["--depth", "2", "--no-single-branch"]);
    review(&repo, &short, BRANCH, 3);
}

/// `main` fixed a defect of its first commit; `topic` merges a branch that is older than the fix,
/// and takes its version.
fn reverting_merge() -> Repo {
    let repo = Repo::new();
    repo.stage("a.ini", line_with_key())
        .stage("b.txt", "one\n")
        .commit("old");
    repo.git(&["branch", "side"]);
    repo.stage("a.ini", "none = 1\n").commit("the fix");
    repo.git(&["checkout", "-q", "side"]);
    repo.stage("b.txt", "two\n").commit("work");
    repo.git(&["checkout", "-q", "-b", "topic", "main"]);
    repo.git(&["merge", "-q", "--no-ff", "--no-commit", "side"]);
    repo.git(&["checkout", "-q", "side", "--", "a.ini"]);
    repo.commit("Merge branch 'side'");
    repo
}

#[test]
fn a_gated_range_is_judged_by_its_net_change_too() {
    let repo = reverting_merge();
    repo.review(
        &["branch", "topic", "--base", "main", "--gate", "--no-save"],
        1,
    );
    let report = repo.review_json(&["commit", "main..topic", "--gate", "--no-save"], 1);
    let findings = report["findings"].as_array().unwrap();
    assert_eq!(findings.len(), 1, "{report}");
    assert_eq!(findings[0]["rule_id"], "aws-access-key-id");
    // It belongs to no commit: the merge adds nothing that its parents lack.
    assert!(findings[0]["commit"].is_null(), "{report}");
    repo.review(&["commit", "main..topic", "--no-gate", "--no-save"], 0);
    // Files are counted with the commits that add them.
    let plain = repo.review_json(&["commit", "main..topic", "--no-gate", "--no-save"], 0);
    assert_eq!(
        report["coverage"]["files_total"],
        plain["coverage"]["files_total"]
    );
}

#[test]
fn the_net_change_of_a_gated_range_repeats_no_finding() {
    let repo = Repo::new();
    repo.stage("a.txt", "one\n").commit("one");
    repo.git(&["checkout", "-q", "-b", "topic"]);
    let first = repo.stage("b.ini", line_with_key()).commit("a key");
    repo.stage("c.txt", "two\n").commit("more");
    let report = repo.review_json(&["commit", "main..topic", "--gate", "--no-save"], 1);
    let findings = report["findings"].as_array().unwrap();
    assert_eq!(findings.len(), 1, "{report}");
    assert_eq!(findings[0]["commit"], first.as_str());
}

/// Two branches, each merged into the other: both are best common ancestors. `main` has the fix of
/// one of them.
fn crossing(fix_is_first: bool, takes_it_back: bool) -> Repo {
    let repo = Repo::new();
    repo.stage("a.ini", line_with_key()).commit("old");
    repo.git(&["branch", "x"]);
    repo.git(&["branch", "y"]);
    let fix = |branch: &str| {
        repo.git(&["checkout", "-q", branch]);
        repo.stage("a.ini", "none = 1\n").commit("the fix");
    };
    let work = |branch: &str| {
        repo.git(&["checkout", "-q", branch]);
        repo.stage("x.txt", "work\n").commit("work");
    };
    if fix_is_first {
        fix("y");
        work("x");
    } else {
        work("x");
        fix("y");
    }
    repo.git(&["checkout", "-q", "-B", "main", "y"]);
    repo.git(&["merge", "-q", "--no-ff", "-m", "Merge x", "x"]);
    repo.git(&["checkout", "-q", "-b", "topic", "x"]);
    repo.git(&["merge", "-q", "--no-ff", "--no-commit", "y"]);
    if takes_it_back {
        repo.git(&["checkout", "-q", "x", "--", "a.ini"]);
    }
    repo.stage("z.txt", "more\n").commit("Merge y");
    repo
}

#[test]
fn a_fix_that_only_one_of_several_merge_bases_has_cannot_be_taken_back() {
    for fix_is_first in [true, false] {
        let repo = crossing(fix_is_first, true);
        let bases = repo.git(&["merge-base", "--all", "main", "topic"]);
        assert_eq!(bases.lines().count(), 2, "{bases}");
        repo.review(
            &["branch", "topic", "--base", "main", "--gate", "--no-save"],
            1,
        );
        repo.review(&["commit", "main..topic", "--gate", "--no-save"], 1);
        let honest = crossing(fix_is_first, false);
        honest.review(
            &["branch", "topic", "--base", "main", "--gate", "--no-save"],
            0,
        );
        honest.review(&["commit", "main..topic", "--gate", "--no-save"], 0);
    }
}
