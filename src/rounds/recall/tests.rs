//! Tests of converting reports back to reviews.

use super::*;
use crate::finding::arrange;
use crate::report::{ReportFormat, Style, json, render, sample};

fn written(review: &Review, format: ReportFormat) -> String {
    let mut out = Vec::new();
    let style = Style {
        verbose: true,
        ..Style::default()
    };
    render(review, format, &style, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn a_recalled_review_says_the_same_again() {
    let samples = [
        sample::empty(),
        sample::clean(),
        sample::sharded(),
        sample::warned(),
        sample::full(),
        sample::incomplete(ExitStatus::Pass),
        sample::incomplete(ExitStatus::Incomplete),
    ];
    for mut known in samples {
        known.session = Some(SessionRef {
            id: "2026-01-31-001".to_owned(),
            round: 3,
        });
        let report = json::report(&known);
        let recalled = review(&report, b"");
        assert_eq!(json::report(&recalled), report);
        assert_eq!(
            written(&recalled, ReportFormat::Json),
            written(&known, ReportFormat::Json)
        );
        for (a, b) in recalled.findings.iter().zip(&known.findings) {
            assert_eq!(
                (a.fingerprint(), a.evidence(), a.lines().map(|l| l.last)),
                (b.fingerprint(), b.evidence(), b.lines().map(|l| l.last))
            );
        }
        for format in [ReportFormat::Human, ReportFormat::Sarif] {
            assert!(!written(&recalled, format).is_empty());
        }
    }
}

#[test]
fn fingerprints_are_those_that_were_stored_until_findings_are_arranged_anew() {
    let mut report = json::report(&sample::full());
    report.findings[0].fingerprint = "0".repeat(32);
    let recalled = review(&report, b"");
    assert_eq!(recalled.findings[0].fingerprint().as_str(), "0".repeat(32));
    // Arranging assigns the same fingerprints to the same findings.
    let known = sample::full();
    let again = arrange(review(&json::report(&known), b"").findings);
    fn prints(all: &[Finding]) -> Vec<String> {
        all.iter().map(|f| f.fingerprint().to_string()).collect()
    }
    assert_eq!(prints(&again), prints(&known.findings));
}

#[test]
fn the_code_of_a_finding_is_that_of_the_stored_change() {
    let report = json::report(&sample::warned());
    let f = &report.findings[0];
    assert_eq!((f.file.as_deref(), f.line), (Some("web/cart.ts"), Some(8)));
    let change = b"diff --git a/web/cart.ts b/web/cart.ts\n--- a/web/cart.ts\n+++ b/web/cart.ts\n\
                   @@ -6,3 +6,4 @@\n }\n export function total(cart: Cart) {\n+  debugger;\n   return sum(cart);\n";
    let recalled = review(&report, change);
    let frame = recalled.findings[0].frame.as_ref().unwrap();
    let lines: Vec<_> = frame
        .lines
        .iter()
        .map(|l| (l.added, String::from_utf8_lossy(&l.text).into_owned()))
        .collect();
    assert_eq!(frame.first.get(), 7);
    assert_eq!(
        lines,
        [
            (false, "export function total(cart: Cart) {".to_owned()),
            (true, "  debugger;".to_owned()),
            (false, "  return sum(cart);".to_owned()),
        ]
    );
    let human = written(&recalled, ReportFormat::Human);
    assert!(
        human.contains("debugger;") && human.contains("web/cart.ts:8"),
        "{human}"
    );
    assert_eq!(recalled.first_change.unwrap().lines.unwrap().first.get(), 8);
    // Without a readable change there is no code, and everything else is restored.
    for damaged in [&b""[..], b"@@ -1 +1 @@\n"] {
        let recalled = review(&report, damaged);
        assert!(
            recalled.findings[0].frame.is_none()
                && written(&recalled, ReportFormat::Human).contains("web/cart.ts:8")
        );
    }
}

#[test]
fn a_shard_that_cannot_exist_is_not_recalled() {
    let mut report = json::report(&sample::sharded());
    assert_eq!(
        review(&report, b"").source.shard,
        sample::sharded().source.shard
    );
    report.shard = Some(wire::Shard { index: 5, of: 4 });
    assert_eq!(review(&report, b"").source.shard, None);
}
