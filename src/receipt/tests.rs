//! What a receipt counts for, and what is none.

use super::{MAX_LINE, parse, weigh};
use crate::policy::Mode;
use crate::wire::Verdict;
use crate::wire::receipt::{RECEIPT_VERSION, Receipt, Reviewer, Signed, Terms};
use serde_json::json;

fn terms() -> Terms {
    let text = |s: &str| s.to_owned();
    Terms { base_tree: text("a"), head_tree: text("b"), change: text("c"), policy: text("d"), rules: text("e") }
}

fn receipt() -> Receipt {
    let summary = json!({
        "text": "", "critical": 0, "major": 0, "minor": 1, "suggestion": 0, "suppressed": 0, "dropped": 0
    });
    Receipt {
        schema_version: RECEIPT_VERSION,
        tool: "claude-reviewer 0".to_owned(),
        timestamp: "2026-01-01T00:00:00Z".to_owned(),
        terms: terms(),
        verdict: Verdict::Warn,
        summary: serde_json::from_value(summary).unwrap(),
        backends: vec![Reviewer { name: "local".to_owned(), model: "m".to_owned() }],
    }
}

#[test]
fn a_receipt_counts_only_for_its_own_terms_verdict_and_backends() {
    let wanted = ["local".to_owned()];
    assert_eq!(weigh(&receipt(), &terms(), &wanted, Mode::All), Ok(()));
    let changes: [fn(&mut Terms); 5] = [
        |t| t.base_tree.push('x'),
        |t| t.head_tree.push('x'),
        |t| t.change.push('x'),
        |t| t.policy.push('x'),
        |t| t.rules.push('x'),
    ];
    let mut reasons: Vec<String> = changes
        .iter()
        .map(|change| {
            let mut other = terms();
            change(&mut other);
            weigh(&receipt(), &other, &wanted, Mode::All).unwrap_err()
        })
        .collect();
    reasons.sort();
    reasons.dedup();
    assert_eq!(reasons.len(), 5, "{reasons:?}");
    for verdict in [Verdict::Block, Verdict::Incomplete] {
        assert!(weigh(&Receipt { verdict, ..receipt() }, &terms(), &wanted, Mode::All).is_err());
    }
    let two = ["local".to_owned(), "claude".to_owned()];
    assert!(weigh(&receipt(), &terms(), &two, Mode::All).unwrap_err().contains("claude"));
    assert_eq!(weigh(&receipt(), &terms(), &two, Mode::First), Ok(()));
    assert!(weigh(&receipt(), &terms(), &["claude".to_owned()], Mode::First).is_err());
}

#[test]
fn a_line_that_is_no_receipt_is_named_and_one_of_a_newer_version_by_it() {
    let line = |receipt: serde_json::Value| {
        serde_json::to_vec(&Signed { receipt: receipt.to_string(), signature: "s".to_owned() }).unwrap()
    };
    let good = serde_json::to_value(receipt()).unwrap();
    assert_eq!(parse(&line(good.clone())).unwrap().0, receipt());
    let mut newer = good.clone();
    newer["schema_version"] = json!(RECEIPT_VERSION + 1);
    newer["terms"] = json!("of another shape");
    assert!(parse(&line(newer)).unwrap_err().contains(&format!("version {}", RECEIPT_VERSION + 1)));
    for damaged in [&b"{"[..], b"null", b"\xff\xfe", b"{\"receipt\": \"{\", \"signature\": \"\"}"] {
        assert!(parse(damaged).unwrap_err().contains("no receipt"), "{damaged:?}");
    }
    let mut large = good;
    large["tool"] = json!("x".repeat(MAX_LINE));
    assert!(parse(&line(large)).unwrap_err().contains("KiB"));
}
