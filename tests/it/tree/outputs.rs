//! Tests of the outputs of `review tree`: a stopped audit in every format, long paths, and trees of
//! many files.

use super::{BAD, sample};
use crate::support::{Repo, report_formats};
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::Stdio;

/// Stops a review of a tree after its first finding. Returns its report in every format.
fn stopped(repo: &Repo) -> BTreeMap<&'static str, String> {
    // More than the buffers of a pipe and of the reader, so that the program waits for the test.
    for i in 0..600 {
        repo.write(&format!("c/f{i}.txt"), BAD);
    }
    let folder = repo.outside();
    std::fs::create_dir(&folder).unwrap();
    let file_of = |format: &str| folder.join(format).display().to_string();
    let mut args = [
        "review",
        "tree",
        "--untracked",
        "--jobs",
        "1",
        "--format",
        "jsonl",
    ]
    .map(str::to_owned)
    .to_vec();
    for format in report_formats() {
        args.extend([
            "--report".to_owned(),
            format!("{format}={}", file_of(format)),
        ]);
    }
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let mut command = repo.reviewer(&args).command();
    command.stderr(Stdio::null());
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert_eq!(lines.by_ref().take(2).map(Result::unwrap).count(), 2);
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    assert!(lines.map(Result::unwrap).last().is_some());
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let read = |format| {
        (
            format,
            std::fs::read_to_string(Path::new(&file_of(format))).unwrap(),
        )
    };
    report_formats().map(read).collect()
}

#[test]
fn a_stopped_tree_is_incomplete_in_every_format_with_the_findings_so_far() {
    let reports = stopped(&sample());
    for (format, text) in &reports {
        // `dotenv` and `summary` have totals, and every other format the findings too.
        let is_total = ["dotenv", "summary"].contains(format);
        assert!(
            is_total || text.contains("a/bad.txt"),
            "{format}: {text:.2000}"
        );
        let lower = text.to_lowercase();
        assert!(
            [
                "cancelled",
                "interrupted",
                "stopped",
                "incomplete",
                "not reviewed"
            ]
            .iter()
            .any(|word| lower.contains(word)),
            "{format}: {text:.2000}"
        );
    }
    let json = |format: &str| -> Value { serde_json::from_str(&reports[format]).unwrap() };
    let report = json("json");
    assert_eq!(report["exit_code"], 130);
    assert!(!report["coverage"]["failed"].as_array().unwrap().is_empty());
    let run = &json("sarif")["runs"][0]["invocations"][0];
    assert_eq!(run["executionSuccessful"], false);
    assert_eq!(run["exitCode"], 130);
    let entries = json("gitlab");
    let entries = entries.as_array().unwrap();
    assert!(
        entries
            .iter()
            .any(|e| e["check_name"] == "incomplete-review")
    );
    let diagnostics = json("rdjson")["diagnostics"].clone();
    let mut diagnostics = diagnostics.as_array().unwrap().iter();
    assert!(diagnostics.any(|d| d["code"]["value"] == "incomplete-review"));
    assert!(reports["junit"].contains("type=\"incomplete\""));
    let last = reports["jsonl"].lines().last().unwrap();
    let last: Value = serde_json::from_str(last).unwrap();
    assert_eq!(last["report"]["exit_code"], 130);
}

#[test]
fn ci_11_a_path_that_is_wider_than_the_terminal_is_divided_and_complete() {
    let repo = Repo::new();
    let folders: Vec<String> = (0..12).map(|n| format!("folder-number-{n}")).collect();
    let path = format!("{}/bad.txt", folders.join("/"));
    repo.stage(&path, BAD).commit("long");
    for columns in ["40", "60", "80"] {
        let run = repo
            .reviewer(&["review", "tree"])
            .env("COLUMNS", columns)
            .run(1);
        let width: usize = columns.parse().unwrap();
        for line in run.stdout.lines() {
            assert!(line.chars().count() <= width, "{columns}: {line:?}");
        }
        let text: String = run.stdout.split_whitespace().collect();
        assert!(
            text.contains(&format!("{path}:1")),
            "{columns}: {}",
            run.stdout
        );
    }
}

#[test]
fn an_index_of_300_000_files_is_divided_and_reviewed() {
    let repo = Repo::new();
    repo.stage("a/bad.txt", BAD);
    repo.stage("b/good.txt", "fine\n");
    let blob = repo.git(&["rev-parse", ":b/good.txt"]).trim().to_owned();
    let mut entries = String::new();
    for n in 0..300_000 {
        entries.push_str(&format!("100644 {blob}\td/{}/f{n}.txt\n", n % 500));
    }
    let mut command = repo.git_command();
    command.args(["update-index", "--index-info"]);
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(entries.as_bytes()).unwrap();
    drop(input);
    assert!(child.wait().unwrap().success());
    let report = super::tree(&repo, &["--index", "--shard", "1/1000"], 0);
    let files = report["coverage"]["files_total"].as_u64().unwrap();
    // 65,536 buckets of 4 or 5 files are dealt to 1,000 shards.
    assert!((250..350).contains(&files), "{files}");
    assert_eq!(report["coverage"]["files_reviewed"], files);
    let report = super::tree(&repo, &["--index", "a", "d/7"], 1);
    assert_eq!(report["coverage"]["files_reviewed"], 601);
}
