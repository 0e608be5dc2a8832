//! Tests of limits on searching and listing: a match is found or the review is incomplete, and
//! every finding counts.

use crate::support::{Repo, line_with_key};
use serde_json::Value;

/// Returns the findings of a rule that count.
fn counting<'r>(report: &'r Value, rule: &str) -> Vec<&'r Value> {
    let all = report["findings"].as_array().unwrap().iter();
    all.filter(|f| f["rule_id"] == rule && f["suppressed"].is_null())
        .collect()
}

/// Returns a repository with a file on the base branch, and another version of it on a branch `t`.
fn branch(path: &str, before: &str, after: &str) -> Repo {
    let repo = Repo::new();
    repo.stage(path, before).commit("first");
    repo.git(&["checkout", "-q", "-b", "t"]);
    repo.stage(path, after).commit("second");
    repo
}

const GATE: [&str; 6] = ["branch", "t", "--base", "main", "--gate", "--no-save"];

#[test]
fn hid_07_the_last_match_of_a_line_is_found_however_many_come_before() {
    // The rule reports nothing in strings, but the code after them.
    for decoys in [255, 256, 257, 3_000] {
        let decoy = "\"requests.get(url, verify=False)\", ".repeat(decoys);
        let repo = branch(
            "a.py",
            "x = 1\n",
            &format!("x = [{decoy}]; requests.get(url, verify=False)\n"),
        );
        let report = repo.review_json(&GATE, 1);
        assert_eq!(
            counting(&report, "python-tls-verify-off").len(),
            1,
            "{decoys}"
        );
    }
    // Values that are not keys, and then a real one.
    for decoys in [300, 5_000] {
        let line = format!(
            "{} {}",
            format!("AKIA{} ", "A".repeat(16)).repeat(decoys),
            line_with_key()
        );
        let repo = branch("a.txt", "x\n", &line);
        assert_eq!(
            counting(&repo.review_json(&GATE, 1), "aws-access-key-id").len(),
            1,
            "{decoys}"
        );
    }
}

#[test]
fn hid_07_suppressed_findings_take_no_place_in_the_count_of_a_rule() {
    let key = line_with_key();
    let known = format!(
        "{} # claude-reviewer: ignore[aws-access-key-id] known\n",
        key.trim_end()
    )
    .repeat(1_200);
    let repo = Repo::new();
    repo.stage("c.py", format!("{known}y = 1\n{key}"));
    let report = repo.review_json(&["staged", "--no-save"], 1);
    assert_eq!(counting(&report, "aws-access-key-id").len(), 1);
    assert_eq!(report["summary"]["suppressed"], 1_200);
    assert!(
        report["notes"]
            .as_array()
            .unwrap()
            .iter()
            .all(|n| !n["text"].as_str().unwrap().contains("not listed"))
    );
    assert_eq!(report["summary"]["unlisted"]["suppressed"], 200);
}

#[test]
fn hid_08_a_password_is_found_on_a_line_of_any_length() {
    let value = ["xK9v", "vLq2"].concat();
    for padding in [0, 900, 1_100, 5_000, 20_000, 300_000] {
        let pad = "/* padding */ ".repeat(padding / 14);
        for (path, line) in [
            (
                "src/app.js",
                format!("const password = \"{value}\"; {pad}\n"),
            ),
            (
                "src/app.js",
                format!("{pad} const password = \"{value}\";\n"),
            ),
            (
                "src/app.py",
                format!(
                    "{} ; db_password = '{value}'\n",
                    "x = 1;".repeat(padding / 6 + 1)
                ),
            ),
            (
                "deploy.sh",
                format!(
                    "export DB_PASSWORD={value} {}\n",
                    "A=1 ".repeat(padding / 4)
                ),
            ),
        ] {
            let repo = branch(path, "// nothing\n", &line);
            let report = repo.review_json(&GATE, 1);
            let found = report["findings"].as_array().unwrap();
            assert!(
                found.iter().any(|f| f["category"] == "security"),
                "{path} {padding}: {found:?}"
            );
            assert!(!report.to_string().contains(&value), "{path} {padding}");
        }
    }
}

#[test]
fn slo_02_findings_beyond_the_cap_are_counted_and_judged() {
    const FILES: usize = 24;
    const LINES: usize = 1_100;
    let repo = Repo::new();
    repo.stage("a.txt", "a\n").commit("first");
    repo.git(&["checkout", "-q", "-b", "t"]);
    for n in 0..FILES {
        repo.write(&format!("src/m{n:02}.py"), line_with_key().repeat(LINES));
    }
    repo.git(&["add", "."]);
    repo.commit("second");
    let report = repo.review_json(&GATE, 1);
    let listed = report["findings"].as_array().unwrap().len();
    let summary = &report["summary"];
    let all: u64 = ["critical", "major", "minor", "suggestion"]
        .iter()
        .map(|s| summary[s].as_u64().unwrap())
        .sum();
    assert_eq!((listed, all), (10_000, (FILES * LINES) as u64), "{summary}");
    let blocking = report["findings"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|f| f["blocking"] == true)
        .count() as u64;
    let unlisted = &summary["unlisted"];
    assert_eq!(
        blocking + unlisted["blocking"].as_u64().unwrap(),
        all,
        "{summary}"
    );
    assert!(
        summary["text"]
            .as_str()
            .unwrap()
            .contains("10,000 of 26,400 findings are listed"),
        "{summary}"
    );
    // Every run lists the same findings, independent of the threads.
    let again = repo.review_json(&GATE, 1);
    assert_eq!(again["findings"], report["findings"]);
    let human = repo.review(&GATE, 1);
    assert!(
        human
            .stdout
            .contains("10,000 of 26,400 findings are listed"),
        "{}",
        human.stdout
    );
    assert!(human.stderr.contains("findings=26400"), "{}", human.stderr);
}

#[test]
fn slo_02_a_secret_that_is_not_listed_is_counted_once_for_the_branch_and_its_commits() {
    let key = |i: usize| {
        let n = (i * 7_919_317 + 12_345) % 20usize.pow(6);
        let digits: String = (0..6)
            .map(|p| char::from(b'A' + (n / 20usize.pow(p) % 20) as u8))
            .collect();
        format!("k{i} = AKIA{}{digits}{}\n", "Q3EGRN", "LK5V")
    };
    let keys: String = (0..1_300).map(key).collect();
    let repo = branch("a.txt", "x\n", &keys);
    let report = repo.review_json(&GATE, 1);
    let listed = counting(&report, "aws-access-key-id").len();
    let total = report["summary"]["critical"].as_u64().unwrap();
    assert!(listed >= 900, "{listed}");
    let unlisted = report["summary"]["unlisted"]["critical"]
        .as_u64()
        .unwrap_or_default();
    assert_eq!(listed as u64 + unlisted, total);
    assert!(total <= 1_300, "{total}");
}

#[test]
fn slo_01_comments_that_name_thousands_of_unknown_rules_cost_a_few_remarks() {
    let ids: String = (0..60_000).map(|i| format!("a{i},")).collect();
    let lines: String = ids
        .as_bytes()
        .chunks(500)
        .map(|ids| {
            format!(
                "# claude-reviewer: ignore[{}] reason\n",
                String::from_utf8_lossy(ids)
            )
        })
        .collect();
    let repo = Repo::new();
    repo.stage("a.py", format!("{lines}\nx = 1\n"));
    let report = repo.review_json(&["staged", "--no-save"], 0);
    let notes = report["notes"].as_array().unwrap();
    assert_eq!(notes.len(), 51, "{}", notes.len());
    assert!(
        notes[50]["text"]
            .as_str()
            .unwrap()
            .ends_with("more remarks about suppressions in this file are not listed")
    );
}
