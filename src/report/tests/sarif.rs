//! Results, replacements and fingerprints in SARIF.

use super::super::sample::{clean, full, sketch, warned};
use super::super::{ReportFormat, Style};
use super::formats::json;
use super::text;
use crate::diff::RepoPath;
use crate::finding::{Category, Finding, Severity, Waiver, arrange};
use crate::review::Review;
use crate::verdict::{CoverageFailure, FailureCause};
use serde_json::Value;
use std::collections::HashSet;

/// Returns true if SARIF has a result for a finding.
fn is_result(f: &Finding) -> bool {
    f.counts() || f.is_set_aside()
}

#[test]
fn sarif_holds_no_result_that_was_let_through_and_tells_of_it() {
    let review = full();
    let log = json(&review, ReportFormat::Sarif);
    let run = &log["runs"][0];
    let results = run["results"].as_array().unwrap();
    assert_eq!(
        results.len(),
        review.findings.iter().filter(|f| is_result(f)).count()
    );
    let deferred = "deferred by a.thor until 2026-04-01: after the migration";
    let suppression = serde_json::json!([{ "kind": "external", "status": "accepted", "justification": deferred }]);
    for r in results {
        let is_deferred = r["ruleId"] == "sample-weak-digest";
        assert_eq!(
            r["suppressions"],
            if is_deferred {
                suppression.clone()
            } else {
                serde_json::json!([])
            }
        );
    }
    for f in review.findings.iter().filter(|f| !is_result(f)) {
        // There is no result or rule: GitHub does not read suppressions and would open an alert.
        assert!(results.iter().all(|r| r["ruleId"] != f.rule_id()));
        assert!(
            run["tool"]["driver"]["rules"]
                .as_array()
                .unwrap()
                .iter()
                .all(|r| r["id"] != f.rule_id())
        );
    }
    assert_eq!(
        (
            &run["properties"]["suppressed"],
            &run["properties"]["waived"]
        ),
        (&1.into(), &1.into())
    );
    let told = run["invocations"][0]["toolExecutionNotifications"]
        .as_array()
        .unwrap();
    let waived = "Waived by a.thor: loopback only, INC-7 (sample-tls-verify-off: Certificate verification disabled)";
    let told = told
        .iter()
        .find(|n| n["message"]["text"] == waived)
        .unwrap_or_else(|| panic!("{told:?}"));
    assert_eq!(told["level"], "note");
}

/// Returns the replacement in SARIF of a finding on lines 2 and 3 of `a.py`.
fn sarif_replacement(code: &str) -> Value {
    let mut review = clean();
    let finding = sketch(
        "loader",
        Severity::Critical,
        Category::Security,
        "Unsafe loader",
        "It runs code.",
    )
    .code("a.py", 2, 2, "", &[b"+load(", b"+    text)"])
    .until(3)
    .replace(code);
    review.findings.push(finding.done());
    let log = json(&review, ReportFormat::Sarif);
    let result = &log["runs"][0]["results"][0];
    let change = &result["fixes"][0]["artifactChanges"][0];
    assert_eq!(
        change["artifactLocation"],
        result["locations"][0]["physicalLocation"]["artifactLocation"]
    );
    change["replacements"][0].clone()
}

#[test]
fn a_replacement_is_a_fix_in_sarif_and_deleted_lines_include_their_line_ends() {
    assert_eq!(
        sarif_replacement("x = 1"),
        serde_json::json!({ "deletedRegion": { "startLine": 2, "endLine": 3 }, "insertedContent": { "text": "x = 1" } })
    );
    let whole_lines =
        serde_json::json!({ "startLine": 2, "startColumn": 1, "endLine": 4, "endColumn": 1 });
    assert_eq!(
        sarif_replacement(""),
        serde_json::json!({ "deletedRegion": whole_lines, "insertedContent": { "text": "" } })
    );
}

#[test]
fn sarif_has_at_most_a_thousand_replacements() {
    let mut review = clean();
    for n in 0..1_200 {
        let finding = sketch(
            "loader",
            Severity::Critical,
            Category::Security,
            "Unsafe loader",
            "It runs code.",
        )
        .code(format!("a{n:04}.py"), 1, 1, "", &[b"+load(text)"])
        .replace("safe_load(text)");
        review.findings.push(finding.done());
    }
    let log = json(&review, ReportFormat::Sarif);
    let results = log["runs"][0]["results"].as_array().unwrap();
    let with = results.iter().filter(|r| r.get("fixes").is_some()).count();
    assert_eq!((results.len(), with), (1_200, 1_000));
}

/// Returns a finding of a key on a line.
fn key(n: u32, commit: Option<&str>) -> Finding {
    let mut f = sketch(
        "key",
        Severity::Critical,
        Category::Security,
        "a key",
        "Revoke it.",
    )
    .code("k.py", n, n, "AKIA****", &[b"+AKIA****"])
    .done();
    f.commit = commit.and_then(crate::diff::ObjectId::from_hex);
    f
}

/// Returns the hashes of the results of SARIF.
fn hashes(review: &Review) -> Vec<String> {
    let log = json(review, ReportFormat::Sarif);
    let all = log["runs"][0]["results"].as_array().unwrap();
    all.iter()
        .map(|r| {
            r["partialFingerprints"]["primaryLocationLineHash"]
                .as_str()
                .unwrap()
                .to_owned()
        })
        .collect()
}

#[test]
fn what_has_one_fingerprint_stays_apart_in_sarif_and_junit() {
    let mut review = warned();
    let (one, two) = ("1a".repeat(20), "2b".repeat(20));
    review.findings = arrange(vec![
        key(1, None),
        key(1, Some(&one)),
        key(1, Some(&two)),
        key(2, Some(&two)),
    ]);
    let all = hashes(&review);
    assert_eq!(all.iter().collect::<HashSet<_>>().len(), 4, "{all:?}");
    assert_eq!(all[0], format!("{}:1", review.findings[0].fingerprint()));
    assert_eq!(all[1], format!("{}:2", review.findings[0].fingerprint()));
    review.findings[0].waived = Some(Waiver {
        reason: "old".to_owned(),
        actor: "a".to_owned(),
        link: None,
    });
    assert_eq!(hashes(&review), all[1..], "the others keep theirs");

    // The name of the last twin equals a numbered name.
    let long = "x".repeat(450);
    review.findings = ["a", "a", "a (2)", "a", &long, &format!("{long}y")]
        .map(|title| {
            sketch("t", Severity::Minor, Category::Bug, title, title)
                .file("a.py")
                .done()
        })
        .to_vec();
    review.coverage.failed = ["one", "two"]
        .map(|why| {
            let cause = FailureCause::Other(why.to_owned());
            CoverageFailure::in_file(RepoPath::from("a.py"), cause)
        })
        .to_vec();
    let xml = text(&review, ReportFormat::Junit, &Style::default());
    let document = roxmltree::Document::parse(&xml).unwrap();
    let cases: Vec<_> = document
        .descendants()
        .filter(|n| n.has_tag_name("testcase"))
        .collect();
    let names: HashSet<_> = cases
        .iter()
        .map(|n| (n.attribute("classname"), n.attribute("name")))
        .collect();
    assert_eq!((names.len(), cases.len()), (8, 8), "{xml}");
    assert!(
        names.contains(&(Some("a.py"), Some("sample-t: a"))),
        "the first keeps its name: {names:?}"
    );
}
