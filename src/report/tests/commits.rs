//! Findings in a commit of the range that is not its head: each format names the commit and no line
//! of the head.

use super::super::sample::{full, sketch};
use super::super::{ReportFormat, Style};
use super::formats::{commands, json};
use super::text;
use crate::finding::{Category, Severity, arrange};
use crate::review::Review;
use serde_json::Value;

#[test]
fn lines_of_an_earlier_commit_are_not_taken_for_lines_of_the_head() {
    let mut review = full();
    review.source.head = Some("f".repeat(40));
    let result = json(&review, ReportFormat::Rdjson);
    let all = result["diagnostics"].as_array().unwrap();
    let earlier = all
        .iter()
        .find(|d| d["code"]["value"] == "sample-generic-password")
        .unwrap();
    assert_eq!(
        earlier["location"],
        serde_json::json!({ "path": "deploy.sh" })
    );
    let told = commands(&review);
    let earlier = told
        .iter()
        .find(|c| c.property("file") == Some("deploy.sh"))
        .unwrap();
    assert_eq!(earlier.property("line"), None);
}

/// Returns the sample with a frame for the finding of a commit that is not the head, and a finding
/// in the head's file of the same name.
fn with_an_inner_commit() -> Review {
    let mut review = full();
    review.source.head = Some("f".repeat(40));
    for commit in [
        crate::diff::ObjectId::from_hex(&"1a2b3c4d5e".repeat(4)),
        None,
    ] {
        let mut f = sketch(
            "inner",
            Severity::Critical,
            Category::Security,
            "password",
            "Readable for good.",
        )
        .code(
            "conf.py",
            2,
            3,
            "********",
            &[b" a = 1", b"+P = '********'", b" b = 2"],
        )
        .done();
        f.commit = commit;
        f.blocking = true;
        review.findings.push(f);
    }
    review.findings = arrange(review.findings);
    review
}

#[test]
fn sarif_names_no_line_of_the_head_for_what_an_earlier_commit_holds() {
    let log = json(&with_an_inner_commit(), ReportFormat::Sarif);
    let all = log["runs"][0]["results"].as_array().unwrap();
    let own = all.iter().filter(|r| r["ruleId"] == "sample-inner");
    let (inner, of_head): (Vec<&Value>, Vec<&Value>) =
        own.partition(|r| r["properties"].get("commit").is_some());
    let place = &inner[0]["locations"][0]["physicalLocation"];
    assert_eq!(place["artifactLocation"]["uri"], "conf.py");
    // GitHub rejects a result without a line.
    assert_eq!(place["region"], serde_json::json!({ "startLine": 1 }));
    assert!(place.get("contextRegion").is_none(), "{place}");
    let place = &of_head[0]["locations"][0]["physicalLocation"];
    assert_eq!(
        (
            &place["region"]["startLine"],
            &place["contextRegion"]["startLine"]
        ),
        (&3.into(), &2.into())
    );
    assert_eq!(place["region"]["snippet"]["text"], "********");
}

/// Returns the number of entries about `conf.py` with a text in a field.
fn count_saying(entries: &Value, field: &str, said: &str) -> usize {
    let own = entries
        .as_array()
        .unwrap()
        .iter()
        .filter(|e| e.to_string().contains("conf.py"));
    own.filter(|e| e[field].to_string().contains(said)).count()
}

#[test]
fn every_format_names_the_commit_of_what_is_not_in_the_head() {
    let review = with_an_inner_commit();
    let said = "In commit 1a2b3c4d5e1a, not in the head.";
    let told = commands(&review);
    let annotations: Vec<_> = told
        .iter()
        .filter(|c| c.property("file") == Some("conf.py"))
        .collect();
    assert_eq!(
        annotations.iter().filter(|c| c.data.contains(said)).count(),
        1,
        "{annotations:?}"
    );
    assert_eq!(
        count_saying(&json(&review, ReportFormat::Gitlab), "description", said),
        1
    );
    assert_eq!(
        count_saying(
            &json(&review, ReportFormat::Rdjson)["diagnostics"],
            "message",
            said
        ),
        1
    );
    assert_eq!(
        count_saying(
            &json(&review, ReportFormat::Sarif)["runs"][0]["results"],
            "message",
            said
        ),
        1
    );
    let xml = text(&review, ReportFormat::Junit, &Style::default());
    let document = roxmltree::Document::parse(&xml).unwrap();
    let cases: Vec<_> = document
        .descendants()
        .filter(|n| n.attribute("classname") == Some("conf.py"))
        .collect();
    let names: Vec<_> = cases.iter().filter_map(|n| n.attribute("name")).collect();
    assert!(
        names.contains(&"sample-inner: password (line 3)"),
        "{names:?}"
    );
    assert!(
        names.contains(&"sample-inner: password (commit 1a2b3c4d5e1a)"),
        "{names:?}"
    );
    let bodies: Vec<_> = cases
        .iter()
        .filter_map(|n| n.first_element_child()?.text())
        .collect();
    assert_eq!(
        bodies.iter().filter(|b| b.contains(said)).count(),
        1,
        "{xml}"
    );
    // The findings are in the head, or in a commit that need not be mentioned.
    let own = full();
    for format in [
        ReportFormat::Github,
        ReportFormat::Gitlab,
        ReportFormat::Rdjson,
        ReportFormat::Junit,
        ReportFormat::Sarif,
    ] {
        assert!(
            !text(&own, format, &Style::default()).contains("not in the head"),
            "{format:?}"
        );
    }
}
