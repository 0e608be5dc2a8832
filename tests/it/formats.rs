#![cfg(unix)]
//! Tests of the formats for CI from the real binary: their destinations and readers.

use crate::support::Repo;
use serde_json::Value;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

const FORMATS: [&str; 7] = [
    "github", "gitlab", "rdjson", "junit", "dotenv", "summary", "markdown",
];

/// Returns a change with a finding that blocks, one that warns, and a file name that is a command.
fn repo() -> Repo {
    let repo = Repo::new();
    repo.stage("src/a b.py", "import yaml\ndoc = yaml.load(text)\n");
    repo.stage("web/cart.js", "export function total() {\n  debugger;\n}\n");
    // Colons at the start of a path have a meaning for git.
    repo.write("::error::x.py", "import yaml\ndoc = yaml.load(text)\n")
        .git(&["add", "-A"]);
    repo
}

fn schema(name: &str) -> jsonschema::Validator {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/schemas")
        .join(name);
    let schema: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    jsonschema::validator_for(&schema).unwrap()
}

#[track_caller]
fn valid(schema: &jsonschema::Validator, document: &str) -> Value {
    let document: Value = serde_json::from_str(document).unwrap();
    let errors: Vec<String> = schema
        .iter_errors(&document)
        .map(|e| format!("{}: {e}", e.instance_path()))
        .collect();
    assert!(errors.is_empty(), "{errors:?}\n{document}");
    document
}

#[test]
fn every_format_goes_where_it_is_sent() {
    let repo = repo();
    let mut reports = Vec::new();
    for format in FORMATS {
        let printed = repo
            .review(&["staged", "--no-save", "--format", format], 1)
            .stdout;
        assert!(!printed.is_empty(), "{format}");
        repo.review(
            &["staged", "--no-save", "--format", format, "--output", "out"],
            1,
        );
        let written = std::fs::read_to_string(repo.path().join("out")).unwrap();
        assert_eq!(steady(&written), steady(&printed), "{format}");
        reports.push(format!("--report={format}=r.{format}"));
    }
    let args: Vec<&str> = ["staged", "--no-save"]
        .into_iter()
        .chain(reports.iter().map(String::as_str))
        .collect();
    assert!(repo.review(&args, 1).stdout.contains("BLOCK"));
    for format in FORMATS {
        assert!(
            repo.path()
                .join(format!("r.{format}"))
                .metadata()
                .unwrap()
                .len()
                > 0,
            "{format}"
        );
    }
}

/// Removes values that differ from run to run, or with the width of a terminal.
fn steady(report: &str) -> String {
    let timed = |l: &&str| !l.contains(" ms") && !l.contains("time=") && !l.contains(" reviewed, ");
    report.lines().filter(timed).collect::<Vec<_>>().join("\n")
}

#[test]
fn code_quality_and_rdjson_are_what_their_readers_ask_for() {
    let repo = repo();
    let quality = schema("code-quality.schema.json");
    let entries = valid(
        &quality,
        &repo.review(&["staged", "--format", "gitlab"], 1).stdout,
    );
    assert!(entries.as_array().unwrap().len() >= 3, "{entries}");
    let rdjson = schema("rdjson.schema.json");
    let result = valid(
        &rdjson,
        &repo.review(&["staged", "--format", "rdjson"], 1).stdout,
    );
    let paths: Vec<_> = result["diagnostics"]
        .as_array()
        .unwrap()
        .iter()
        .map(|d| &d["location"]["path"])
        .collect();
    assert!(paths.contains(&&"::error::x.py".into()), "{paths:?}");
    repo.commit("all of it");
    assert_eq!(
        valid(
            &quality,
            &repo.review(&["staged", "--format", "gitlab"], 0).stdout
        ),
        serde_json::json!([])
    );
    valid(
        &rdjson,
        &repo.review(&["staged", "--format", "rdjson"], 0).stdout,
    );
    for file in ["full.codequality.json", "full.rdjson"] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("fixtures/reports")
            .join(file);
        valid(
            if file.ends_with("rdjson") {
                &rdjson
            } else {
                &quality
            },
            &std::fs::read_to_string(path).unwrap(),
        );
    }
    assert!(
        !quality.is_valid(&serde_json::json!([{ "description": "x" }])),
        "the schema refuses something"
    );
    assert!(!rdjson.is_valid(&serde_json::json!({ "diagnostics": [{}] })));
}

/// The runner created them before the step started, and reads them by name or through its own
/// handles.
#[test]
fn the_files_of_a_runner_are_added_to_and_stay_the_same_files() {
    let repo = repo();
    let outside = repo.outside();
    std::fs::create_dir_all(&outside).unwrap();
    let (summary, output) = (outside.join("step_summary"), outside.join("set_output"));
    std::fs::write(&summary, "").unwrap();
    std::fs::write(&output, "earlier=1").unwrap();
    let inodes = || [&summary, &output].map(|f| f.metadata().unwrap().ino());
    let before = inodes();
    let named = |format: &str, file: &Path| format!("{format}={}", file.display());
    for _ in 0..2 {
        repo.reviewer(&[
            "review",
            "staged",
            "--no-gate",
            "--report",
            &named("summary", &summary),
        ])
        .env("GITHUB_STEP_SUMMARY", &summary)
        .env("GITHUB_OUTPUT", &output)
        .run(1);
        repo.reviewer(&[
            "review",
            "staged",
            "--no-gate",
            "--format",
            "dotenv",
            "--output",
            output.to_str().unwrap(),
        ])
        .env("GITHUB_STEP_SUMMARY", &summary)
        .env("GITHUB_OUTPUT", &output)
        .run(1);
    }
    assert_eq!(inodes(), before);
    let output = std::fs::read_to_string(&output).unwrap();
    assert!(
        output.starts_with("earlier=1\nverdict=block\n"),
        "what stands there stays, on a line of its own: {output}"
    );
    assert_eq!(output.matches("exit_code=1\n").count(), 2);
    assert_eq!(
        std::fs::read_to_string(&summary)
            .unwrap()
            .matches("## claude-reviewer: BLOCK")
            .count(),
        2
    );
}

#[test]
fn a_file_that_others_hold_is_written_in_its_place() {
    let repo = repo();
    let path = |name: &str| repo.path().join(name);
    repo.write("empty", "").write("linked", "old\n");
    std::fs::hard_link(path("linked"), path("other-name")).unwrap();
    let inode = |name: &str| path(name).metadata().unwrap().ino();
    let before = ["empty", "linked"].map(inode);
    for name in ["empty", "linked"] {
        repo.review(&["staged", "--format", "gitlab", "--output", name], 1);
    }
    assert_eq!(["empty", "linked"].map(inode), before);
    let written = std::fs::read_to_string(path("other-name")).unwrap();
    assert!(
        serde_json::from_str::<Value>(&written).is_ok(),
        "nothing of the old text is left: {written}"
    );
    // An earlier report is replaced atomically, so that no reader gets a partial one.
    let earlier = inode("empty");
    repo.review(&["staged", "--format", "gitlab", "--output", "empty"], 1);
    assert_ne!(inode("empty"), earlier);
}

#[test]
fn ci_09_six_thousand_findings_go_through_every_format() {
    let repo = Repo::new();
    let file: String = (0..200)
        .map(|n| format!("doc{n} = yaml.load(text{n})\n"))
        .collect();
    for n in 0..30 {
        repo.write(&format!("load{n}.py"), format!("import yaml\n{file}"));
    }
    repo.git(&["add", "-A"]);
    let reports = FORMATS.map(|f| format!("--report={f}=../outside/r.{f}"));
    std::fs::create_dir_all(repo.outside()).unwrap();
    let args: Vec<&str> = ["staged", "--no-save"]
        .into_iter()
        .chain(reports.iter().map(String::as_str))
        .collect();
    repo.review(&args, 1);
    let read =
        |format: &str| std::fs::read_to_string(repo.outside().join(format!("r.{format}"))).unwrap();
    assert_eq!(
        valid(&schema("code-quality.schema.json"), &read("gitlab"))
            .as_array()
            .unwrap()
            .len(),
        6_000
    );
    assert_eq!(
        valid(&schema("rdjson.schema.json"), &read("rdjson"))["diagnostics"]
            .as_array()
            .unwrap()
            .len(),
        6_000
    );
    assert!(read("dotenv").contains("\nfindings=6000\n"));
    assert!(read("junit").contains("5000 of 6000 findings are listed"));
    assert!(read("github").contains("10 of 6000 findings are annotated"));
    let (summary, comment) = (read("summary"), read("markdown"));
    assert!(
        summary.len() < 1 << 20 && summary.contains("of 6000 findings are shown"),
        "{}",
        summary.len()
    );
    assert!(
        comment.len() <= 65_536 && comment.contains("of 6000 findings are shown"),
        "{}",
        comment.len()
    );
}
