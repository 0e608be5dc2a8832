//! Tests of `--shard`: each file is in exactly one shard, and each finding too.

use super::{BAD, tree};
use crate::support::{Repo, line_with_key};
use serde_json::Value;
use std::collections::BTreeMap;

/// Returns a committed repository with files of different sizes, and a finding in every third.
fn sample() -> Repo {
    let repo = Repo::new();
    for i in 0..30 {
        let text = if i % 3 == 0 { BAD } else { "fine\n" };
        repo.write(&format!("d{}/f{i}.txt", i % 4), text.repeat(1 + i % 7));
    }
    repo.git(&["add", "."]);
    repo.commit("files");
    repo
}

/// Returns the findings of a report by file and line, without what is numbered in the report.
fn findings(report: &Value) -> Vec<Value> {
    let mut all = report["findings"].as_array().unwrap().clone();
    for finding in &mut all {
        finding.as_object_mut().unwrap().remove("id");
    }
    all.sort_by_key(ToString::to_string);
    all
}

/// Asserts that the shards of a review add up to the review without shards.
fn assert_divided(repo: &Repo, args: &[&str], of: u32) -> Vec<Value> {
    let whole = repo.reviewer(&[&["review", "--format", "json"], args].concat());
    let whole = whole.run_any().json();
    let shards: Vec<Value> = (1..=of)
        .map(|i| {
            let shard = format!("{i}/{of}");
            let args = [&["review", "--format", "json", "--shard", &shard], args].concat();
            let report = repo.reviewer(&args).run_any().json();
            assert_eq!(report["shard"]["index"], i);
            assert_eq!(report["shard"]["of"], of);
            report
        })
        .collect();
    for count in [
        "files_total",
        "files_reviewed",
        "hunks_total",
        "hunks_reviewed",
    ] {
        let sum: u64 = shards
            .iter()
            .map(|s| s["coverage"][count].as_u64().unwrap())
            .sum();
        assert_eq!(whole["coverage"][count], sum, "{count}");
    }
    let mut all: Vec<Value> = shards.iter().flat_map(findings).collect();
    all.sort_by_key(ToString::to_string);
    assert_eq!(all, findings(&whole));
    shards
}

#[test]
fn the_shards_of_a_tree_are_the_tree() {
    let repo = sample();
    for of in [1, 2, 4, 7] {
        let shards = assert_divided(&repo, &["tree"], of);
        let reviewed: Vec<u64> = shards
            .iter()
            .map(|s| s["coverage"]["files_total"].as_u64().unwrap())
            .collect();
        assert!(reviewed.iter().all(|n| *n > 0), "{reviewed:?}");
    }
    assert_divided(&repo, &["tree", "--rev", "HEAD"], 3);
    assert_divided(&repo, &["tree", "d1", "d2"], 3);
}

#[test]
fn one_shard_of_one_is_the_review_with_its_shard() {
    let repo = sample();
    let mut whole = tree(&repo, &[], 1);
    let mut one = tree(&repo, &["--shard", "1/1"], 1);
    assert_eq!(one["shard"], serde_json::json!({"index": 1, "of": 1}));
    for report in [&mut whole, &mut one] {
        let report = report.as_object_mut().unwrap();
        for key in ["shard", "merge", "timestamp", "duration_ms"] {
            report.remove(key);
        }
    }
    assert_eq!(one, whole);
}

#[test]
fn a_file_stays_in_its_shard_when_its_text_changes() {
    let repo = sample();
    // Sizes stay the same.
    let before: BTreeMap<u32, Vec<Value>> =
        (1..=3).map(|i| (i, findings(&tree_of(&repo, i)))).collect();
    for i in (0..30).step_by(3) {
        let path = format!("d{}/f{i}.txt", i % 4);
        let text = BAD.replace("\na\n", "\nc\n").repeat(1 + i % 7);
        repo.write(&path, text);
    }
    for (i, before) in before {
        let files =
            |all: &[Value]| -> Vec<Value> { all.iter().map(|f| f["file"].clone()).collect() };
        assert_eq!(
            files(&findings(&tree_of(&repo, i))),
            files(&before),
            "shard {i}"
        );
    }
}

/// Returns the report of one of three shards of the worktree.
fn tree_of(repo: &Repo, index: u32) -> Value {
    let shard = format!("{index}/3");
    repo.reviewer(&["review", "tree", "--shard", &shard, "--format", "json"])
        .run_any()
        .json()
}

#[test]
fn the_shards_of_a_branch_are_the_branch() {
    let repo = sample();
    repo.git(&["checkout", "-q", "-b", "topic"]);
    for i in 0..12 {
        repo.write(&format!("new/g{i}.txt"), BAD);
        repo.write(&format!("new/n{i}.txt"), "bread\n");
    }
    // A secret that the branch adds and removes again, and one that it keeps.
    repo.write("new/gone.py", line_with_key());
    repo.write("new/kept.py", line_with_key());
    repo.git(&["add", "."]);
    // Many files that become executable are one finding about the change.
    for i in 0..12 {
        repo.git(&["update-index", "--chmod=+x", &format!("new/n{i}.txt")]);
    }
    repo.commit("one");
    repo.git(&["reset", "-q", "--hard"]);
    repo.write("new/gone.py", "x = 1\n");
    repo.write(
        "package.json",
        "{\n  \"dependencies\": {\n    \"a\": \"1\"\n  }\n}\n",
    );
    repo.write(".claude-reviewer.toml", "block_on = [\"critical\"]\n");
    repo.git(&["add", "."]);
    repo.commit("two");
    for args in [
        &["branch", "topic", "--base", "main", "--no-save"][..],
        &["branch", "topic", "--base", "main", "--no-save", "--gate"],
    ] {
        let shards = assert_divided(&repo, args, 4);
        let of_the_change = |report: &Value| {
            let all = findings(report);
            all.iter()
                .filter(|f| f["rule_id"] == "executable-bit" || f["rule_id"] == "policy-weakened")
                .count()
        };
        assert!(of_the_change(&shards[0]) > 0);
        assert_eq!(shards[1..].iter().map(of_the_change).sum::<usize>(), 0);
    }
}

#[test]
fn shards_are_balanced_by_bytes() {
    let repo = Repo::new();
    repo.write("large.txt", "x\n".repeat(50_000));
    for i in 0..40 {
        repo.write(&format!("f{i}.txt"), "x\n".repeat(2_500));
    }
    repo.git(&["add", "."]);
    repo.commit("files");
    let counts: Vec<u64> = (1..=3)
        .map(|i| {
            tree_of(&repo, i)["coverage"]["files_total"]
                .as_u64()
                .unwrap()
        })
        .collect();
    // The large file has as many bytes as 20 of the others: each shard has the bytes of 20.
    let mut sorted = counts.clone();
    sorted.sort_unstable();
    assert_eq!(sorted, [1, 20, 20], "{counts:?}");
}

#[test]
fn files_that_are_not_reviewed_have_no_weight() {
    let repo = Repo::new();
    repo.write(
        ".claude-reviewer.toml",
        "version = 1\nignore = [\"vendor/**\"]\n",
    );
    for i in 0..3 {
        repo.write(&format!("vendor/{i}.txt"), "x\n".repeat(200_000));
    }
    for i in 0..40 {
        repo.write(&format!("src/f{i}.txt"), "x\n".repeat(2_500));
    }
    repo.git(&["add", "."]);
    repo.commit("files");
    for i in 1..=3 {
        let report = tree_of(&repo, i);
        let reviewed = report["coverage"]["files_reviewed"].as_u64().unwrap();
        // 41 files, of which the policy is small.
        assert!((13..=15).contains(&reviewed), "shard {i}: {reviewed}");
    }
}

#[test]
fn a_shard_that_cannot_exist_is_a_usage_error() {
    let repo = sample();
    for (shard, reason) in [
        ("0/4", "shards are counted from 1 to 4"),
        ("5/4", "shards are counted from 1 to 4"),
        ("1/0", "the number of shards must be at least 1"),
        ("a/b", "expected I/N, such as 1/4"),
        ("3", "expected I/N, such as 1/4"),
    ] {
        let run = repo.reviewer(&["review", "tree", "--shard", shard]).run(2);
        assert!(run.stderr.contains(reason), "{shard}: {}", run.stderr);
    }
    let run = repo
        .reviewer(&["review", "staged", "--shard", "1/2"])
        .run(2);
    let text = "--shard needs `review tree` or `review branch`";
    assert!(run.stderr.contains(text), "{}", run.stderr);
    let run = repo
        .reviewer(&["review", "tree", "--history", "--shard", "1/2"])
        .run(2);
    let text = "--history cannot be combined with --shard";
    assert!(run.stderr.contains(text), "{}", run.stderr);
}

#[test]
fn a_shard_is_named_in_the_text_and_is_not_stored() {
    let repo = sample();
    let run = repo
        .reviewer(&["review", "tree", "--shard", "2/4"])
        .run_any();
    assert!(run.stdout.contains("shard 2 of 4"), "{}", run.stdout);
    assert!(!repo.path().join(".reviews").exists());
    let args = ["review", "branch", "HEAD", "--base", "HEAD~1"];
    let args = [&args[..], &["--shard", "1/2", "--require-history"]].concat();
    let run = repo.reviewer(&args).run(2);
    let text = "a shard is a part of a review";
    assert!(run.stderr.contains(text), "{}", run.stderr);
}

#[test]
fn a_file_of_unknown_size_stops_a_shard() {
    let repo = sample();
    let id = repo.git(&["rev-parse", "HEAD:d1/f1.txt"]);
    let (folder, name) = id.trim().split_at(2);
    let object = repo.path().join(".git/objects").join(folder).join(name);
    std::fs::remove_file(object).unwrap();
    let args = ["review", "tree", "--rev", "HEAD", "--shard", "1/2"];
    let run = repo.reviewer(&args).run(3);
    assert!(
        run.stderr.contains("divided by the sizes of files"),
        "{}",
        run.stderr
    );
}
