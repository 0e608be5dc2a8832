//! Tests of `review tree`: all files of a state, as if they were new.

mod audit;
mod outputs;
mod shards;

use crate::support::{Repo, line_with_key, reviewer};
use serde_json::Value;
use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

/// A line that a rule reports in any state of a file.
const BAD: &str = "<<<<<<< HEAD\na\n=======\nb\n>>>>>>> other\n";

/// Returns a committed repository with a finding in `a/bad.txt`, and files without one.
fn sample() -> Repo {
    let repo = Repo::new();
    repo.write("a/bad.txt", BAD);
    repo.write("a/good.txt", "fine\n");
    repo.write("b/good.txt", "fine\n");
    repo.git(&["add", "."]);
    repo.commit("files");
    repo
}

/// Returns the report of `review tree` with these arguments.
pub(super) fn tree(repo: &Repo, args: &[&str], code: i32) -> Value {
    repo.review_json(&[&["tree"], args].concat(), code)
}

/// Returns the files of the findings of a report.
fn files(report: &Value) -> BTreeSet<&str> {
    let findings = report["findings"].as_array().unwrap();
    findings.iter().filter_map(|f| f["file"].as_str()).collect()
}

/// Returns the rules of the findings of a report.
fn rules(report: &Value) -> BTreeSet<&str> {
    let findings = report["findings"].as_array().unwrap();
    findings
        .iter()
        .filter_map(|f| f["rule_id"].as_str())
        .collect()
}

#[test]
fn a_tree_is_every_tracked_file_as_it_is_on_disk() {
    let repo = sample();
    let report = tree(&repo, &[], 1);
    assert_eq!(report["source"]["kind"], "tree");
    assert_eq!(report["source"]["base"], Value::Null);
    assert_eq!(report["shard"], Value::Null);
    assert_eq!(files(&report), BTreeSet::from(["a/bad.txt"]));
    assert_eq!(report["coverage"]["files_total"], 3);
    assert_eq!(report["coverage"]["files_reviewed"], 3);
    // The file on disk counts, and not the one in the index.
    repo.write("a/bad.txt", "fine\n");
    repo.write("b/good.txt", BAD);
    assert_eq!(files(&tree(&repo, &[], 1)), BTreeSet::from(["b/good.txt"]));
    // A deleted file is not a file of the worktree.
    std::fs::remove_file(repo.path().join("b/good.txt")).unwrap();
    assert_eq!(tree(&repo, &[], 0)["coverage"]["files_total"], 2);
}

#[test]
fn new_files_are_only_in_a_tree_that_asks_for_them() {
    let repo = sample();
    repo.write(".gitignore", "ignored.txt\n");
    repo.write("new.txt", BAD);
    repo.write("ignored.txt", BAD);
    assert_eq!(files(&tree(&repo, &[], 1)), BTreeSet::from(["a/bad.txt"]));
    let report = tree(&repo, &["--untracked"], 1);
    assert_eq!(files(&report), BTreeSet::from(["a/bad.txt", "new.txt"]));
}

#[test]
fn the_index_and_a_revision_are_trees_too() {
    let repo = sample();
    let first = repo.git(&["rev-parse", "HEAD"]);
    let first = first.trim();
    repo.stage("a/bad.txt", "fine\n");
    repo.write("a/bad.txt", BAD);
    let report = tree(&repo, &["--index"], 0);
    assert_eq!(report["coverage"]["files_total"], 3);
    let report = tree(&repo, &["--rev", first], 1);
    assert_eq!(report["source"]["head"], first);
    assert_eq!(files(&report), BTreeSet::from(["a/bad.txt"]));
    repo.reviewer(&["review", "tree", "--index", "--rev", "HEAD"])
        .run(2);
}

#[test]
fn paths_limit_a_tree() {
    let repo = sample();
    assert_eq!(tree(&repo, &["a"], 1)["coverage"]["files_total"], 2);
    assert_eq!(
        tree(&repo, &["b/", "a/good.txt"], 0)["coverage"]["files_total"],
        2
    );
    assert_eq!(
        tree(&repo, &["**/good.txt"], 0)["coverage"]["files_total"],
        2
    );
    let args = ["review", "tree", ".", "--format", "json"];
    let run = repo.reviewer(&args).dir(repo.path().join("b")).run(0);
    assert_eq!(run.json()["coverage"]["files_total"], 1);
    let args = ["review", "tree", "../a", "--format", "json"];
    let run = repo.reviewer(&args).dir(repo.path().join("b")).run(1);
    assert_eq!(run.json()["coverage"]["files_total"], 2);
    // A path of a revision need not exist in the worktree.
    repo.git(&["mv", "a", "c"]);
    repo.commit("move");
    let report = tree(&repo, &["a", "--rev", "HEAD~1"], 1);
    assert_eq!(report["coverage"]["files_total"], 2);
}

#[test]
fn a_path_outside_or_without_files_is_a_usage_error() {
    let repo = sample();
    let outside = repo.outside();
    for path in ["..", "../x", outside.to_str().unwrap()] {
        let run = repo.reviewer(&["review", "tree", path]).run(2);
        assert!(
            run.stderr.contains("is outside of the repository"),
            "{}",
            run.stderr
        );
    }
    for path in ["nope", "a/nope.txt", "*.rs"] {
        let run = repo.reviewer(&["review", "tree", path]).run(2);
        let text = format!("PATH matches no file: {path}");
        assert!(run.stderr.contains(&text), "{}", run.stderr);
    }
    let run = repo
        .reviewer(&["review", "tree", "a", "--files", "b"])
        .run(2);
    assert!(run.stderr.contains("not both"), "{}", run.stderr);
}

#[test]
fn a_bare_repository_needs_a_revision() {
    let repo = sample();
    let bare = repo.outside().join("bare.git");
    repo.git(&["clone", "-q", "--bare", ".", bare.to_str().unwrap()]);
    for args in [&["review", "tree"][..], &["review", "tree", "--index"]] {
        let run = repo.reviewer(args).dir(&bare).env("GIT_DIR", &bare).run(2);
        assert!(
            run.stderr.contains("is a bare repository"),
            "{}",
            run.stderr
        );
        assert!(
            run.stderr.contains("review tree --rev HEAD"),
            "{}",
            run.stderr
        );
    }
    let args = ["review", "tree", "--rev", "HEAD", "a", "--format", "json"];
    let run = repo.reviewer(&args).dir(&bare).env("GIT_DIR", &bare).run(1);
    let report = run.json();
    assert_eq!(files(&report), BTreeSet::from(["a/bad.txt"]));
    assert_eq!(report["coverage"]["files_total"], 2);
}

#[test]
fn an_unknown_revision_is_a_usage_error() {
    let repo = sample();
    let run = repo.reviewer(&["review", "tree", "--rev", "nope"]).run(2);
    assert!(run.stderr.contains("nope"), "{}", run.stderr);
}

#[test]
fn coverage_accounts_for_every_file_of_a_tree() {
    let repo = sample();
    let inner = Repo::new();
    inner.stage("x.txt", BAD);
    inner.commit("inner");
    let from = inner.path();
    let (url, allow) = (from.to_str().unwrap(), "protocol.file.allow=always");
    repo.git(&["-c", allow, "submodule", "add", "-q", url, "sub"]);
    repo.write(
        "data.png",
        b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01".as_slice(),
    );
    repo.write("vendor/bad.txt", BAD);
    std::os::unix::fs::symlink("a/good.txt", repo.path().join("link")).unwrap();
    repo.write(".claude-reviewer.toml", "ignore = [\"vendor/**\"]\n");
    repo.git(&["add", "."]);
    repo.commit("all kinds");
    for args in [&[][..], &["--index"], &["--rev", "HEAD"]] {
        let report = tree(&repo, args, 1);
        let coverage = &report["coverage"];
        let mut skipped: Vec<_> = coverage["skipped"]
            .as_array()
            .unwrap()
            .iter()
            .map(|s| (s["file"].as_str().unwrap(), s["reason"].as_str().unwrap()))
            .collect();
        skipped.sort_unstable();
        let names: Vec<_> = skipped.iter().map(|(file, _)| *file).collect();
        assert_eq!(names, ["data.png", "sub", "vendor/bad.txt"], "{skipped:?}");
        // .claude-reviewer.toml, .gitmodules, a/bad.txt, a/good.txt, b/good.txt, link.
        assert_eq!(coverage["files_reviewed"], 6, "{args:?}");
        assert_eq!(coverage["files_total"], 9, "{args:?}");
        assert_eq!(files(&report), BTreeSet::from(["a/bad.txt"]));
        // No file of the submodule is reviewed.
        assert_eq!(report["outcome"], "reviewed");
    }
}

#[test]
fn a_tree_has_no_findings_of_rules_about_changes() {
    let repo = Repo::new();
    repo.write("notes.txt", "bread\n");
    repo.write(
        "package.json",
        "{\n  \"dependencies\": {\n    \"a\": \"1\"\n  }\n}\n",
    );
    repo.write("go.sum", "x v1 h1:a\n");
    repo.write(
        "tests/test_a.py",
        "import pytest\n\n@pytest.mark.skip\ndef test_a():\n    assert a() == 1\n",
    );
    repo.write("db/migrations/001_drop.sql", "DROP TABLE users;\n");
    repo.write(".claude-reviewer.toml", "block_on = []\n");
    repo.git(&["add", "."]);
    repo.git(&["update-index", "--chmod=+x", "notes.txt"]);
    repo.commit("files");
    let changes = repo.review_json(&["commit", "HEAD", "--no-save", "--gate"], 1);
    let of_change = rules(&changes);
    for id in [
        "executable-bit",
        "test-disabled",
        "policy-weakened",
        "sql-migration-drops-data",
    ] {
        assert!(of_change.contains(id), "{id} is not in {of_change:?}");
    }
    for args in [&["--rev", "HEAD"][..], &["--rev", "HEAD", "--gate"]] {
        let report = tree(&repo, args, 0);
        assert_eq!(rules(&report), BTreeSet::new(), "{args:?}");
    }
}

#[test]
fn rules_about_content_find_what_is_in_a_tree() {
    let repo = Repo::new();
    repo.write("app.py", format!("x = 1\n{}", line_with_key()));
    std::os::unix::fs::symlink("/etc/passwd", repo.path().join("link")).unwrap();
    repo.write(
        ".github/workflows/a.yml",
        "on: pull_request\npermissions: write-all\njobs:\n  a:\n    steps:\n      - run: make\n",
    );
    repo.git(&["add", "."]);
    repo.commit("files");
    let report = tree(&repo, &[], 1);
    let found = rules(&report);
    for id in ["symlink-outside-tree", "workflow-write-all"] {
        assert!(found.contains(id), "{id} is not in {found:?}");
    }
    assert!(files(&report).contains("app.py"), "{found:?}");
}

#[test]
fn policy_suppressions_and_decisions_apply_to_a_tree() {
    let repo = sample();
    let before = tree(&repo, &[], 1);
    let rule = before["findings"][0]["rule_id"].as_str().unwrap();
    repo.write(
        ".claude-reviewer.toml",
        format!("[rules]\ndisable = [\"{rule}\"]\n"),
    );
    assert_eq!(files(&tree(&repo, &[], 0)), BTreeSet::new());
    // In gate mode, the policy of the checked-out commit applies, or that of the revision.
    assert_eq!(
        files(&tree(&repo, &["--gate"], 1)),
        BTreeSet::from(["a/bad.txt"])
    );
    repo.git(&["add", "."]);
    repo.commit("policy");
    assert_eq!(files(&tree(&repo, &["--gate"], 0)), BTreeSet::new());
    let earlier = tree(&repo, &["--gate", "--rev", "HEAD~1"], 1);
    assert_eq!(files(&earlier), BTreeSet::from(["a/bad.txt"]));
    // A baseline defers what is there.
    std::fs::remove_file(repo.path().join(".claude-reviewer.toml")).unwrap();
    repo.git(&["add", "-A"]);
    repo.commit("no policy");
    repo.reviewer(&["baseline", "create"]).run(0);
    let report = tree(&repo, &[], 0);
    assert_eq!(report["summary"]["dispositioned"], 1);
}

#[test]
fn suppressions_of_a_tree_count_in_gate_mode() {
    let repo = Repo::new();
    let key = line_with_key();
    let line = key.trim_end();
    repo.write("app.py", format!("{line}\n"));
    repo.git(&["add", "."]);
    repo.commit("files");
    let report = tree(&repo, &["--gate"], 1);
    let rule = report["findings"][0]["rule_id"]
        .as_str()
        .unwrap()
        .to_owned();
    repo.write(
        "app.py",
        format!("{line}  # claude-reviewer: ignore[{rule}] an example in a test\n"),
    );
    repo.git(&["add", "."]);
    repo.commit("suppressed");
    let report = tree(&repo, &["--gate"], 0);
    assert_eq!(report["summary"]["suppressed"], 1, "{report}");
}

#[test]
fn a_tree_is_not_stored_and_says_so() {
    let repo = sample();
    let report = tree(&repo, &[], 1);
    assert_eq!(report["review_id"], Value::Null);
    assert!(!repo.path().join(".reviews").exists());
    for flags in [
        &["--require-history"][..],
        &["--follow-up", "latest"],
        &["--receipt"],
        &["--post", "comments"],
    ] {
        let args = [&["review", "tree"][..], flags].concat();
        let run = repo.reviewer(&args).run(2);
        assert!(
            run.stderr.contains("`review tree` reviews no change"),
            "{}",
            run.stderr
        );
    }
}

#[test]
fn every_format_shows_a_tree() {
    let repo = sample();
    let run = repo.reviewer(&["review", "tree"]).run(1);
    assert!(run.stdout.contains("a/bad.txt"), "{}", run.stdout);
    for format in ["sarif", "html", "markdown", "junit", "github"] {
        let run = repo
            .reviewer(&["review", "tree", "--format", format])
            .run(1);
        assert!(run.stdout.contains("a/bad.txt"), "{format}: {}", run.stdout);
    }
}

/// Returns the lines of `review tree --format jsonl`.
fn lines(repo: &Repo, args: &[&str], code: i32) -> Vec<Value> {
    let args = [&["review", "tree", "--format", "jsonl"], args].concat();
    let run = repo.reviewer(&args).run(code);
    let lines = run.stdout.lines();
    lines.map(|l| serde_json::from_str(l).unwrap()).collect()
}

#[test]
fn the_lines_of_a_tree_are_its_report() {
    let repo = sample();
    for i in 0..60 {
        repo.write(&format!("c/f{i}.py"), line_with_key().repeat(1 + i % 3));
    }
    std::os::unix::fs::symlink("/etc/passwd", repo.path().join("link")).unwrap();
    repo.git(&["add", "."]);
    repo.commit("more");
    repo.reviewer(&["baseline", "create", "c/f1.py"]).run(0);
    let report = tree(&repo, &[], 1);
    let lines = lines(&repo, &[], 1);
    let (start, rest) = lines.split_first().unwrap();
    let (end, found) = rest.split_last().unwrap();
    assert_eq!(start["type"], "start");
    assert_eq!(start["source"], report["source"]);
    assert_eq!(start["policy"], report["policy"]);
    assert_eq!(end["type"], "end");
    assert_eq!(end["report"]["coverage"], report["coverage"]);
    assert_eq!(end["report"]["summary"], report["summary"]);
    assert_eq!(end["report"]["verdict"], report["verdict"]);
    assert_eq!(end["report"]["findings"], serde_json::json!([]));
    let numbered = |i: usize| Value::from(format!("F{}", i + 1));
    for (i, line) in found.iter().enumerate() {
        assert_eq!(line["type"], "finding");
        assert_eq!(line["finding"]["id"], numbered(i));
    }
    let without_id = |finding: &Value| {
        let mut finding = finding.clone();
        finding.as_object_mut().unwrap().remove("id");
        finding.to_string()
    };
    let printed = found.iter().map(|line| without_id(&line["finding"]));
    let reported = report["findings"].as_array().unwrap().iter();
    let printed: BTreeSet<String> = printed.collect();
    assert_eq!(printed.len(), found.len(), "a finding is printed twice");
    assert_eq!(printed, reported.map(without_id).collect());
    assert!(report["summary"]["dispositioned"].as_u64().unwrap() > 0);
}

#[test]
fn a_finding_of_a_tree_is_printed_before_the_last_file_is_read() {
    let repo = sample();
    // More than the buffers of a pipe and of the reader, so that the program waits for the test.
    for i in 0..600 {
        repo.write(&format!("c/f{i}.txt"), BAD);
    }
    repo.write("z/last.txt", BAD);
    let args = [
        "review",
        "tree",
        "--untracked",
        "--jobs",
        "1",
        "--format",
        "jsonl",
    ];
    let mut command = repo.reviewer(&args).command();
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut first = lines.by_ref().take(2).map(Result::unwrap);
    assert!(first.next().unwrap().contains("\"start\""));
    assert!(first.next().unwrap().contains("\"a/bad.txt\""));
    repo.write("z/last.txt", "fine\n");
    let rest: Vec<String> = lines.map(Result::unwrap).collect();
    assert_eq!(rest.len(), 601);
    assert!(rest[..600].iter().all(|line| !line.contains("z/last.txt")));
    assert!(rest[600].starts_with("{\"type\":\"end\""), "{}", rest[600]);
    assert_eq!(child.wait().unwrap().code(), Some(1));
}

#[test]
fn a_stopped_tree_counts_the_files_that_were_left_out_and_names_no_ignored_ones() {
    let repo = sample();
    repo.write(".claude-reviewer.toml", "ignore = [\"d/**\"]\n");
    repo.git(&["add", "."]);
    repo.commit("policy");
    // More than the buffers of a pipe and of the reader, so that the program waits for the test.
    for i in 0..600 {
        repo.write(&format!("c/f{i}.txt"), BAD);
        repo.write(&format!("d/f{i}.txt"), BAD);
    }
    let args = [
        "review",
        "tree",
        "--untracked",
        "--jobs",
        "1",
        "--format",
        "jsonl",
    ];
    let mut command = repo.reviewer(&args).command();
    command.stderr(Stdio::null());
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert_eq!(lines.by_ref().take(2).map(Result::unwrap).count(), 2);
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let last = lines.map(Result::unwrap).last().unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let end: Value = serde_json::from_str(&last).unwrap();
    let report = &end["report"];
    let coverage = &report["coverage"];
    let files = |part: &str| -> Vec<&str> {
        let listed = coverage[part].as_array().unwrap().iter();
        listed.map(|f| f["file"].as_str().unwrap()).collect()
    };
    let (failed, skipped) = (files("failed"), files("skipped"));
    assert!(failed.iter().any(|file| file.starts_with("c/")));
    assert!(!failed.iter().any(|file| file.starts_with("d/")));
    assert_eq!(skipped.len(), 600);
    assert!(skipped.iter().all(|file| file.starts_with("d/")));
    let reviewed = coverage["files_reviewed"].as_u64().unwrap() as usize;
    // Four files are committed.
    assert_eq!(coverage["files_total"], 1204);
    assert_eq!(reviewed + failed.len() + skipped.len(), 1204);
    let text = report["summary"]["text"].as_str().unwrap();
    assert!(text.starts_with("Cancelled: "), "{text}");
}

#[test]
fn the_lines_of_a_change_come_when_it_is_reviewed() {
    let repo = sample();
    repo.stage("a/other.txt", BAD);
    let run = repo.review(&["staged", "--no-save", "--format", "jsonl"], 1);
    let kinds: Vec<Value> = run
        .stdout
        .lines()
        .map(|l| serde_json::from_str::<Value>(l).unwrap()["type"].clone())
        .collect();
    assert_eq!(kinds.first(), Some(&Value::from("start")));
    assert_eq!(kinds.last(), Some(&Value::from("end")));
    assert!(kinds.len() > 2, "{kinds:?}");
}

#[test]
fn a_pattern_selects_below_the_current_folder_whatever_its_name_is() {
    for folder in ["[x]", "{x,y}", "x*", "!x", "x?"] {
        let repo = Repo::new();
        repo.write(&format!("{folder}/own.txt"), BAD);
        for other in ["x", "xa", "y"] {
            repo.write(&format!("{other}/other.txt"), BAD);
        }
        repo.git(&["add", "."]);
        repo.commit("files");
        let dir = repo.path().join(folder);
        let args = ["review", "tree", "./*.txt", "--format", "json"];
        let run = reviewer(&dir, &repo.home(), &args).run_any();
        let report: Value = serde_json::from_str(&run.stdout).unwrap_or_default();
        let own = format!("{folder}/own.txt");
        assert_eq!(files(&report), BTreeSet::from([own.as_str()]), "{folder}");
    }
}

#[test]
fn a_pattern_without_a_match_is_named_with_its_option() {
    let repo = sample();
    for (args, name) in [(&["--files", "zz"][..], "--files"), (&["zz"], "PATH")] {
        let run = repo.reviewer(&[&["review", "tree"], args].concat()).run(2);
        let text = format!("{name} matches no file: zz");
        assert!(run.stderr.contains(&text), "{}", run.stderr);
    }
}
