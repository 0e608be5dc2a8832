#![cfg(unix)]
//! Tests of shards and of `report merge` with the real binary: the merged reports are those of a
//! single run, and whatever is missing, given twice or foreign is named.

use crate::support::{Repo, Run, line_with_key, report_formats, reviewer};
use regex::Regex;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

/// Replaces the times of a report, and nothing else.
fn without_times(text: &str) -> String {
    let times = [
        // JSON and SARIF.
        r#""duration_ms": ?\d+"#,
        r#""(timestamp|startTimeUtc|endTimeUtc)": ?"[^"]*""#,
        // JUnit.
        r#" time="[\d.]+""#,
        r#" timestamp="[^"]*""#,
        // Text, Markdown and HTML.
        r"<time datetime=[^<]*</time>",
        r"(<1|\d+) ms\b",
        r"\b\d+\.\d s\b",
        r"\b\d+ min \d+ s\b",
    ];
    let mut text = text.to_owned();
    for time in times {
        let pattern = Regex::new(time).unwrap();
        text = pattern.replace_all(&text, "TIME").into_owned();
    }
    text
}

/// Returns a report without its times. The lines of `jsonl` are sorted and have no numbers: they
/// come in the order in which threads finish the files of a tree.
fn comparable(format: &str, text: &str) -> String {
    let text = without_times(text);
    if format != "jsonl" {
        return text;
    }
    let id = Regex::new(r#""id":"F\d+","#).unwrap();
    let mut lines: Vec<String> = text
        .lines()
        .map(|line| id.replace(line, "").into_owned())
        .collect();
    lines.sort();
    lines.join("\n")
}

/// A repository with a branch of findings of all kinds: in many files, in commits, suppressed,
/// ignored, of a path with other thresholds, of the change as a whole, binary files and renames.
fn large(policy: &str) -> Repo {
    let repo = Repo::new();
    repo.stage(".claude-reviewer.toml", policy)
        .stage("moved/old.py", "import os\nx = 1\ny = 2\nz = 3\n")
        .stage("gone.py", "x = 1\n")
        .stage("vendor/lib.js", "var a = 1;\n");
    for n in 0..8 {
        repo.stage(&format!("bin/tool{n}"), "#!/bin/sh\necho\n");
    }
    repo.commit("base");
    repo.git(&["checkout", "-q", "-b", "topic"]);
    for n in 0..30 {
        let text = format!(
            "import os, yaml, requests\n# file {n}\ndef f{n}(request):\n    doc = yaml.load(request.text)\n    \
             os.system(\"rm \" + request.args[\"x{n}\"])\n    requests.get(\"http://x\", verify=False)\n"
        );
        repo.stage(&format!("src/part{}/f{n}.py", n % 4), text);
    }
    repo.stage("deploy.tf", line_with_key()).commit("a key");
    repo.stage("deploy.tf", "nothing = 1\n");
    repo.stage("web/a.js", "eval(location.hash)\ndebugger;\n")
        .stage(
            "web/b.js",
            "// TODO: later\n<<<<<<< HEAD\na\n=======\nb\n>>>>>>> x\n",
        )
        .stage(
            "raw.py",
            b"name = \"caf\xe9\"\nimport yaml\nyaml.load(name)\n",
        )
        .stage("logo.png", b"\x89PNG\r\n\x1a\n\0\0\0\0")
        .stage("vendor/lib.js", "eval(x)\n")
        .stage(".gitattributes", "*.py -diff\n")
        .stage(
            "tests/t.py",
            "import requests\nrequests.get(u, verify=False)\n",
        );
    repo.git(&["mv", "moved/old.py", "moved/new.py"]);
    repo.git(&["rm", "-q", "gone.py"]);
    for n in 0..8 {
        let path = repo.path().join(format!("bin/tool{n}"));
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    repo.git(&["add", "-A"]);
    repo.commit("the rest");
    repo
}

const POLICY: &str = "version = 1\nignore = [\"vendor/**\"]\n[[path]]\nglob = \"tests/**\"\nblock_on = []\nwarn_on = []\n";

/// Runs the review of a source, or of a shard of it, and returns the path of its JSON report.
fn json_report(repo: &Repo, source: &[&str], shard: &str) -> PathBuf {
    let file = repo
        .home()
        .join(format!("{}.json", shard.replace('/', "-of-")));
    let output = file.display().to_string();
    let options = ["--shard", shard, "--format", "json", "--output", &output];
    let args = [&["review"], source, &options].concat();
    let run = repo.reviewer(&args).run_any();
    assert!(matches!(run.code, 0 | 1 | 3), "{}", run.stderr);
    file
}

fn shards(repo: &Repo, source: &[&str], of: usize) -> Vec<String> {
    let names = (1..=of).map(|i| format!("{i}/{of}"));
    names
        .map(|s| json_report(repo, source, &s).display().to_string())
        .collect()
}

/// Returns a folder outside of the repository.
fn elsewhere(repo: &Repo) -> PathBuf {
    let folder = repo.outside().join("elsewhere");
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// Runs `report merge` outside of the repository.
fn merge(repo: &Repo, args: &[&str]) -> Run {
    let args = [&["report", "merge"], args].concat();
    reviewer(&elsewhere(repo), &repo.home(), &args).run_any()
}

fn as_strs(of: &[String]) -> Vec<&str> {
    of.iter().map(String::as_str).collect()
}

/// Compares the reports of a single run with those of merged shards, in every format.
fn assert_merges(repo: &Repo, source: &[&str], numbers: &[usize]) {
    let single: Vec<Run> = report_formats()
        .map(|format| {
            let options = ["--no-save", "--format", format];
            let args = [&["review"], source, &options].concat();
            repo.reviewer(&args).run_any()
        })
        .collect();
    for of in numbers {
        let mut files = shards(repo, source, *of);
        files.reverse();
        for (format, single) in report_formats().zip(&single) {
            let mut args = as_strs(&files);
            args.extend(["--format", format]);
            let merged = merge(repo, &args);
            assert_eq!(
                merged.code, single.code,
                "{format} of {of}: {}",
                merged.stderr
            );
            let [a, b] = [&single.stdout, &merged.stdout].map(|text| comparable(format, text));
            let differs = a.lines().zip(b.lines()).find(|(a, b)| a != b);
            assert!(a == b, "{source:?} {format} of {of}: {differs:#?}");
            let last = |run: &Run| run.stderr.lines().last().unwrap_or_default().to_owned();
            assert_eq!(last(&merged), last(single), "{format} of {of}");
        }
    }
}

#[test]
fn flt_01_the_merged_shards_of_a_branch_are_a_single_run_byte_for_byte() {
    let repo = large(POLICY);
    assert_merges(&repo, &["branch", "--base", "main"], &[2, 3, 5]);
}

#[test]
fn flt_01_the_merged_shards_of_a_tree_are_a_single_run_byte_for_byte() {
    let repo = large(POLICY);
    assert_merges(&repo, &["tree", "--rev", "HEAD"], &[2, 5]);
}

#[test]
fn flt_01_waivers_gates_and_missing_models_merge_as_in_a_single_run() {
    let policy = format!(
        "{POLICY}[review]\nbackends = [\"local\"]\n[backend.local]\nkind = \"openai\"\nbase_url = \"http://127.0.0.1:1/v1\"\nmodel = \"m\"\n"
    );
    let repo = large(&policy);
    let report = repo.reviewer(&[
        "review",
        "branch",
        "--base",
        "main",
        "--offline",
        "--no-save",
        "--format",
        "json",
    ]);
    let report: Value = serde_json::from_str(&report.run_any().stdout).unwrap();
    let fingerprint = report["findings"][3]["fingerprint"].as_str().unwrap();
    let waiver = format!("{fingerprint}=known");
    let unused = format!("{}=gone", "0".repeat(32));
    assert_merges(
        &repo,
        &[
            "branch",
            "--base",
            "main",
            "--offline",
            "--gate",
            "--waive",
            &waiver,
            "--waive",
            &unused,
        ],
        &[3],
    );
    assert_merges(
        &repo,
        &["branch", "--base", "main", "--offline", "--exit-zero"],
        &[2],
    );
}

#[test]
fn flt_01_a_change_without_findings_passes_also_in_more_shards_than_files() {
    let repo = Repo::new();
    repo.stage("a.py", "x = 1\n").commit("base");
    repo.git(&["checkout", "-q", "-b", "topic"]);
    repo.stage("b.py", "y = 1\n").commit("more");
    assert_merges(&repo, &["branch", "--base", "main"], &[1, 4]);
    let files = shards(&repo, &["branch", "--base", "main"], 4);
    let run = merge(&repo, &as_strs(&files));
    assert_eq!(run.code, 0, "{}", run.stderr);
}

/// Merges reports, and returns the JSON report with the exit code.
fn merged_json(repo: &Repo, files: &[&str]) -> (Value, i32) {
    let mut args = files.to_vec();
    args.extend(["--format", "json"]);
    let run = merge(repo, &args);
    let report = serde_json::from_str(&run.stdout);
    let report = report.unwrap_or_else(|e| panic!("{e}: {}{}", run.stdout, run.stderr));
    (report, run.code)
}

#[test]
fn flt_01_missing_duplicate_and_foreign_shards_are_named_and_never_pass() {
    let repo = Repo::new();
    repo.stage("a.py", "x = 1\n").commit("base");
    repo.git(&["checkout", "-q", "-b", "topic"]);
    repo.stage("b.py", "y = 1\n")
        .stage("c.py", "z = 1\n")
        .commit("more");
    let source = ["branch", "--base", "main"];
    let files = shards(&repo, &source, 3);
    let foreign = repo.home().join("foreign.json");
    std::fs::rename(
        json_report(&repo, &["tree", "--rev", "HEAD"], "3/3"),
        &foreign,
    )
    .unwrap();
    let foreign = foreign.display().to_string();
    // The report of the tree has replaced that of the last shard.
    let files = [shards(&repo, &source, 3), files].concat();
    let files = [&files[0], &files[1], &files[2]].map(String::as_str);

    let (report, code) = merged_json(&repo, &files[..2]);
    assert_eq!(code, 3);
    assert_eq!(report["verdict"], "incomplete");
    assert_eq!(
        report["coverage"]["failed"],
        json!([{ "file": null, "reason": "shard 3 of 3 is missing" }])
    );

    let twice = [files[0], files[1], files[2], files[1]];
    let (report, code) = merged_json(&repo, &twice);
    assert_eq!(code, 3);
    let reason = format!("shard 2 of 3 was given a second time: {}", files[1]);
    assert_eq!(
        report["coverage"]["failed"],
        json!([{ "file": null, "reason": reason }])
    );

    let (report, code) = merged_json(&repo, &[files[0], files[1], files[2], &foreign]);
    assert_eq!(code, 3);
    let reason =
        format!("a shard of another review was given (other source, other revision): {foreign}");
    assert_eq!(
        report["coverage"]["failed"],
        json!([{ "file": null, "reason": reason }])
    );
}

#[test]
fn flt_01_shards_at_hand_that_block_win_over_a_missing_one() {
    let repo = large(POLICY);
    let files = shards(&repo, &["branch", "--base", "main"], 3);
    let (report, code) = merged_json(&repo, &as_strs(&files[..2]));
    assert_eq!((report["verdict"].as_str(), code), (Some("block"), 1));
    assert_eq!(report["outcome"], "incomplete");
}

#[test]
fn a_report_that_cannot_be_merged_is_one_error_that_names_the_file() {
    let repo = Repo::new();
    repo.stage("a.py", "x = 1\n").commit("base");
    let whole = repo.home().join("whole.json");
    let output = whole.display().to_string();
    repo.review(
        &[
            "commit",
            "HEAD",
            "--no-save",
            "--format",
            "json",
            "--output",
            &output,
        ],
        0,
    );
    let text = std::fs::read_to_string(&whole).unwrap();
    let file = repo.home().join("cut.json");
    let cut = file.display().to_string();
    for (content, reason) in [
        (text[..text.len() / 2].to_owned(), "truncated"),
        (String::new(), "it is empty"),
        ("<html>".to_owned(), "not JSON"),
        (
            "{\"version\": \"2.1.0\", \"runs\": []}".to_owned(),
            "not a report of claude-reviewer",
        ),
        (
            text.replace("\"schema_version\": 1", "\"schema_version\": 7"),
            "schema_version is 7",
        ),
        (
            text.replace("\"exit_code\": 0", r#""exit_code": "\u001b[2J""#),
            "not a report as",
        ),
    ] {
        std::fs::write(&file, content).unwrap();
        let run = merge(&repo, &[&output, &cut]);
        assert_eq!(run.code, 2, "{}", run.stderr);
        assert_eq!(run.stdout, "");
        let first = run.stderr.lines().next().unwrap();
        assert!(
            first.starts_with("error: cannot read the report "),
            "{first}"
        );
        assert!(
            first.contains("cut.json") && first.contains(reason),
            "{first}"
        );
        assert!(!run.stderr.contains('\u{1b}'));
    }
    let missing = merge(&repo, &["no/such.json"]);
    assert_eq!(missing.code, 2);
    assert!(
        missing
            .stderr
            .contains("cannot read the report no/such.json"),
        "{}",
        missing.stderr
    );
    assert_eq!(merge(&repo, &[]).code, 2);
    assert_eq!(merge(&repo, &["-", "-"]).code, 2);
}

#[test]
fn reports_of_several_repositories_are_shown_together_with_the_worst_exit_code() {
    let bad = large(POLICY);
    let report = bad.home().join("bad.json").display().to_string();
    bad.review(
        &[
            "branch",
            "--base",
            "main",
            "--no-save",
            "--format",
            "json",
            "--output",
            &report,
        ],
        1,
    );
    let good = Repo::new();
    good.stage("a.py", "x = 1\n").commit("base");
    let text = good
        .review(&["commit", "HEAD", "--no-save", "--format", "json"], 0)
        .stdout;

    // A file, standard input with a name, and the shards of a third repository.
    let mut args = vec![
        "report".to_owned(),
        "merge".to_owned(),
        report,
        "good/one=-".to_owned(),
    ];
    let shards = shards(&bad, &["tree", "--rev", "HEAD"], 2);
    args.extend(shards.iter().map(|file| format!("all={file}")));
    let run = |format: &str, code| {
        let mut args = as_strs(&args);
        args.extend(["--format", format]);
        let run = reviewer(&elsewhere(&bad), &bad.home(), &args).stdin(text.clone());
        run.run(code)
    };
    let json: Value = serde_json::from_str(&run("json", 1).stdout).unwrap();
    let names: Vec<&str> = json["reports"]
        .as_array()
        .unwrap()
        .iter()
        .map(|r| r["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["bad", "good/one", "all"]);
    assert_eq!(json["verdict"], "block");
    assert_eq!(
        json["reports"][1]["report"],
        serde_json::from_str::<Value>(&text).unwrap()
    );
    let sarif: Value = serde_json::from_str(&run("sarif", 1).stdout).unwrap();
    assert_eq!(sarif["runs"].as_array().unwrap().len(), 3);
    let page = run("html", 1).stdout;
    for name in names {
        assert!(page.contains(&format!(">{name}</a>")), "{name}");
    }
    let human = run("human", 1);
    assert!(
        human.stdout.contains("3 repositories: 2 blocked, 1 passed"),
        "{}",
        human.stdout
    );
    assert!(human.stderr.contains("repositories=3"), "{}", human.stderr);
    let refused = run("gitlab", 2);
    assert!(
        refused
            .stderr
            .contains("the format gitlab shows one repository"),
        "{}",
        refused.stderr
    );
}

/// Writes the report of a shard to a file of its own, and returns its path.
fn report_at(repo: &Repo, name: &str, args: &[&str]) -> String {
    let file = repo.home().join(name).display().to_string();
    let args = [&["review"], args, &["--format", "json", "--output", &file]].concat();
    let run = repo.reviewer(&args).run_any();
    assert!(matches!(run.code, 0 | 1 | 3), "{}", run.stderr);
    file
}

/// Merges the first shard of one review with the second one of another, and asserts that the
/// second one is foreign.
fn assert_foreign(repo: &Repo, files: [&str; 2], what: &str) {
    let (report, code) = merged_json(repo, &files);
    let expected = if report["verdict"] == "block" { 1 } else { 3 };
    assert_eq!(code, expected, "{what}: {report}");
    let reason = format!("a shard of another review was given ({what}): {}", files[1]);
    assert_eq!(
        report["coverage"]["failed"],
        json!([
            { "file": null, "reason": reason },
            { "file": null, "reason": "shard 2 of 2 is missing" },
        ])
    );
}

/// Returns a repository with a few files that have no findings.
fn quiet() -> Repo {
    let repo = Repo::new();
    for n in 0..9 {
        repo.stage(&format!("d{}/f{n}.py", n % 3), format!("x = {n}\n"));
    }
    repo.commit("files");
    repo
}

#[test]
fn flt_01_shards_of_the_worktree_and_of_the_index_are_of_one_state() {
    let repo = quiet();
    let other = quiet();
    other.write("d1/f4.py", "x = 5\n");
    other.git(&["add", "."]);
    for source in [&["tree"][..], &["tree", "--index"]] {
        let shard = |of: &Repo, name: &str, shard: &str| {
            report_at(of, name, &[source, &["--shard", shard]].concat())
        };
        let first = shard(&repo, "first.json", "1/2");
        // Equal files, in another clone.
        let clone = quiet();
        let same = shard(&clone, "same.json", "2/2");
        let second = shard(&repo, "second.json", "2/2");
        let copied = repo.home().join("same.json");
        std::fs::copy(&same, &copied).unwrap();
        for second in [second, copied.display().to_string()] {
            let (report, code) = merged_json(&repo, &[&first, &second]);
            assert_eq!(code, 0, "{report}");
        }
        // Other content of the same size in one file.
        let foreign = shard(&other, "foreign.json", "2/2");
        assert_foreign(&repo, [&first, &foreign], "other files");
    }
    // The file changes between two shards. Its size stays.
    let first = report_at(&repo, "first.json", &["tree", "--shard", "1/2"]);
    repo.write("d2/f5.py", "x = 6\n");
    let second = report_at(&repo, "second.json", &["tree", "--shard", "2/2"]);
    assert_foreign(&repo, [&first, &second], "other files");
    let first = report_at(&repo, "first.json", &["tree", "--shard", "1/2"]);
    assert_eq!(merged_json(&repo, &[&first, &second]).1, 0);
    repo.write("d2/f5.py", "x = 7\n");
    let second = report_at(&repo, "second.json", &["tree", "--shard", "2/2"]);
    assert_foreign(&repo, [&first, &second], "other files");
    // A new file.
    let untracked = ["tree", "--untracked", "--shard"];
    let first = report_at(&repo, "first.json", &[&untracked[..], &["1/2"]].concat());
    repo.write("new.py", "x = 1\n");
    let second = report_at(&repo, "second.json", &[&untracked[..], &["2/2"]].concat());
    assert_foreign(&repo, [&first, &second], "other files");
}

#[test]
fn flt_01_shards_are_of_one_selection_and_of_one_set_of_options() {
    let repo = quiet();
    repo.git(&["checkout", "-q", "-b", "topic"]);
    repo.stage("d0/more.py", "y = 1\n")
        .stage("d1/more.py", "z = 1\n")
        .commit("more");
    let tree = &["tree", "--rev", "HEAD"][..];
    let branch = &["branch", "--base", "main"][..];
    let model = &["--backend", "local", "--offline"][..];
    let policy = "version = 1\n[backend.local]\nkind = \"openai\"\nbase_url = \"http://127.0.0.1:1/v1\"\nmodel = \"m\"\n";
    let config = repo.home().join("policy.toml");
    std::fs::write(&config, policy).unwrap();
    let config = ["--config", config.to_str().unwrap()];
    let waiver = format!("{}=known", "0".repeat(32));
    for (source, first, second, what) in [
        (tree, &[][..], &["d1/f1.py"][..], "other paths"),
        (tree, &["d1"], &["d0", "d1"], "other paths"),
        (branch, &[], &["--files", "d1/**"], "other paths"),
        (branch, &["--gate"], &["--no-gate"], "other gate mode"),
        (branch, &[], &["--waive", &waiver], "other options"),
    ] {
        let first = [source, first, &config, &["--shard", "1/2"]].concat();
        let second = [source, second, &config, &["--shard", "2/2"]].concat();
        let first = report_at(&repo, "first.json", &first);
        let second = report_at(&repo, "second.json", &second);
        assert_foreign(&repo, [&first, &second], what);
    }
    // Of a review with a model, and of one without.
    let first = [tree, &config, &["--shard", "1/2"]].concat();
    let second = [tree, &config, model, &["--shard", "2/2"]].concat();
    let first = report_at(&repo, "first.json", &first);
    let second = report_at(&repo, "second.json", &second);
    let (report, code) = merged_json(&repo, &[&first, &second]);
    assert_eq!(code, 3, "{report}");
    let reason = report["coverage"]["failed"][0]["reason"].as_str().unwrap();
    assert!(reason.contains("other options"), "{reason}");
    // The order of paths is of no meaning, nor is the effect on the exit code.
    let first = [tree, &["d0", "d1", "--shard", "1/2"]].concat();
    let second = [tree, &["d1", "d0", "--exit-zero", "--shard", "2/2"]].concat();
    let first = report_at(&repo, "first.json", &first);
    let second = report_at(&repo, "second.json", &second);
    assert_eq!(merged_json(&repo, &[&first, &second]).1, 0);
}

#[test]
fn two_repositories_cannot_have_one_name() {
    let repo = quiet();
    let a = report_at(&repo, "a.json", &["commit", "HEAD", "--no-save"]);
    let b = report_at(&repo, "b.json", &["commit", "HEAD", "--no-save"]);
    std::fs::copy(&a, elsewhere(&repo).join("a.json")).unwrap();
    let named = format!("a={b}");
    for args in [[&a[..], &a], [&named, "a.json"]] {
        let run = merge(&repo, &args);
        let is_refused = run.stderr.contains("is a second repository with the name");
        assert_eq!((run.code, is_refused), (2, true), "{}", run.stderr);
    }
    assert_eq!(merge(&repo, &[&a, &b]).code, 0);
}

#[test]
fn the_last_line_of_several_repositories_states_the_exit_code_of_the_process() {
    let repo = quiet();
    let a = report_at(&repo, "a.json", &["commit", "HEAD", "--no-save"]);
    let b = report_at(&repo, "b.json", &["commit", "HEAD", "--no-save"]);
    let run = merge(&repo, &[&a, &b, "--output", "no/such/folder/x"]);
    assert_ne!(run.code, 0);
    let last = run.stderr.lines().last().unwrap();
    assert!(last.ends_with(&format!(" exit={}", run.code)), "{last}");
}

#[test]
fn a_finding_in_a_file_that_was_not_reviewed_is_no_contradiction() {
    // A weaker policy is reported although `--files` selects no file of the change.
    let repo = quiet();
    repo.git(&["checkout", "-q", "-b", "topic"]);
    repo.stage(".claude-reviewer.toml", "version = 1\nblock_on = []\n")
        .commit("weaken");
    let gate = [
        "branch",
        "--base",
        "main",
        "--gate",
        "--no-save",
        "--files",
        "d0/**",
    ];
    let single = report_at(&repo, "single.json", &gate);
    let (report, code) = merged_json(&repo, &[&single]);
    assert_eq!(
        report["findings"][0]["rule_id"], "policy-weakened",
        "{report}"
    );
    assert_eq!(report["coverage"]["files_total"], 0);
    assert_eq!(code, 1);
    // The first shard reports a manifest without its lockfile, which the other shard has.
    let repo = quiet();
    let lock = r#"{ "name": "a", "lockfileVersion": 3, "packages": {} }"#;
    repo.stage("pkg/package.json", "{ \"name\": \"a\" }\n")
        .stage("pkg/package-lock.json", lock)
        .stage("big.txt", "x\n".repeat(9_000))
        .commit("package");
    repo.git(&["checkout", "-q", "-b", "topic"]);
    repo.stage(
        "pkg/package.json",
        "{ \"name\": \"a\", \"dependencies\": { \"b\": \"^1.0.0\" } }\n",
    )
    .stage("big.txt", "y\n".repeat(9_000))
    .commit("change");
    assert_merges(&repo, &["branch", "--base", "main"], &[2, 3]);
    assert_merges(
        &repo,
        &["branch", "--base", "main", "--files", "pkg/**"],
        &[2, 3],
    );
}

#[test]
fn flt_01_a_report_with_a_better_exit_code_for_its_merge_is_rejected() {
    let repo = quiet();
    repo.stage("d0/run.py", "eval(input())\n")
        .commit("a finding");
    let file = report_at(&repo, "one.json", &["tree", "--shard", "1/1"]);
    let text = std::fs::read_to_string(&file).unwrap();
    let mut report: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        (&report["exit_code"], &report["merge"]["exit_zero"]),
        (&json!(1), &json!(false))
    );
    report["merge"]["exit_zero"] = json!(true);
    std::fs::write(&file, report.to_string()).unwrap();
    let run = merge(&repo, &[&file]);
    assert_eq!(run.code, 2, "{}", run.stderr);
    assert!(run.stderr.contains("another exit code"), "{}", run.stderr);
}

#[test]
fn flt_01_shards_are_of_one_set_of_decisions() {
    let repo = quiet();
    repo.stage("d0/run.py", "eval(input())\n")
        .commit("a finding");
    let tree = ["tree", "--rev", "HEAD", "--shard"];
    let first = report_at(&repo, "first.json", &[&tree[..], &["1/2"]].concat());
    repo.reviewer(&["baseline", "create"]).run(0);
    let second = report_at(&repo, "second.json", &[&tree[..], &["2/2"]].concat());
    assert_foreign(&repo, [&first, &second], "other options");
}

#[test]
fn the_page_of_several_repositories_has_the_worst_findings_of_each_first() {
    let mut files = Vec::new();
    let repos: Vec<Repo> = (0..2).map(|_| Repo::new()).collect();
    for (n, repo) in repos.iter().enumerate() {
        repo.stage("a.py", "def f(a):\n    return a is 1\n");
        repo.stage("z.py", crate::support::line_with_key());
        repo.commit("files");
        files.push(report_at(repo, &format!("r{n}.json"), &["tree"]));
    }
    let page = merge(&repos[0], &[&files[0], &files[1], "--format", "html"]).stdout;
    let rank = |name: &str| {
        ["critical", "major", "minor", "suggestion"]
            .iter()
            .position(|s| *s == name)
    };
    for (file, repo) in files.iter().zip(["r0", "r1"]) {
        let report: Value = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
        let mut worst: BTreeMap<String, usize> = BTreeMap::new();
        for f in report["findings"].as_array().unwrap() {
            let severity = rank(f["severity"].as_str().unwrap()).unwrap();
            let file = f["file"].as_str().unwrap().to_owned();
            let known = worst.entry(file).or_insert(severity);
            *known = severity.min(*known);
        }
        assert!(worst["z.py"] < worst["a.py"], "{worst:?}");
        let section = &page[page.find(&format!(">{repo}</h3>")).unwrap()..];
        let at = |name: &str| section.find(name).unwrap();
        assert!(at("z.py") < at("a.py"), "{section:.3000}");
    }
}
