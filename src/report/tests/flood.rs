//! Reviews with thousands of findings: what each format lists, and how it counts the rest.

use super::super::ReportFormat;
use super::super::Style;
use super::super::sample::{sketch, warned};
use super::formats::{commands, json};
use super::text;
use crate::diff::RepoPath;
use crate::error::ExitStatus;
use crate::finding::listing::Unlisted;
use crate::finding::{Category, Severity, arrange};
use crate::review::Review;
use crate::verdict::{CoverageFailure, FailureCause, Verdict};

pub(super) fn flood(n: usize) -> Review {
    let findings = (0..n).map(|n| {
        let severity = match n % 3 {
            0 => Severity::Critical,
            1 => Severity::Minor,
            _ => Severity::Suggestion,
        };
        sketch(
            "noise",
            severity,
            Category::Style,
            &format!("noise {n}"),
            "Too much of it.",
        )
        .code(format!("src/{:04}.rs", n / 10), 1, 1, "x", &[b"+x"])
        .done()
    });
    let mut review = warned();
    review.findings = arrange(findings.collect());
    for f in &mut review.findings {
        f.blocking = f.severity() == Severity::Critical;
    }
    review.verdict = Verdict::Block;
    review.exit = ExitStatus::Block;
    review
}

#[test]
fn ci_09_six_thousand_findings_fit_into_every_format() {
    let mut review = flood(6_000);
    for incomplete in [false, true] {
        if incomplete {
            review.coverage.failed = (0..6_000)
                .map(|n| {
                    let cause = FailureCause::Other("gone".to_owned());
                    CoverageFailure::in_file(RepoPath::new(format!("f{n}")), cause)
                })
                .collect();
        }
        let told = commands(&review);
        for kind in ["error", "warning", "notice"] {
            assert_eq!(
                told.iter().filter(|c| c.name == kind).count(),
                if kind == "warning" && incomplete {
                    9
                } else {
                    10
                }
            );
        }
        let count = told
            .iter()
            .find(|c| c.property("title") == Some("More findings"))
            .unwrap();
        assert!(
            count.data.contains("of 6000 findings are annotated"),
            "{count:?}"
        );
        let log = text(&review, ReportFormat::Github, &Style::default());
        assert!(log.len() < 200_000, "{}", log.len());
        assert!(
            log.contains("2000 of 6000 findings block this change"),
            "{}",
            &log[log.len() - 900..]
        );
        let xml = text(&review, ReportFormat::Junit, &Style::default());
        assert!(
            xml.len() < 30_000_000 && xml.contains("5000 of 6000 findings are listed"),
            "{}",
            xml.len()
        );
    }
    assert_eq!(
        json(&review, ReportFormat::Gitlab)
            .as_array()
            .unwrap()
            .len(),
        6_001
    );
    assert_eq!(
        json(&review, ReportFormat::Rdjson)["diagnostics"]
            .as_array()
            .unwrap()
            .len(),
        6_001
    );
    assert!(
        text(&review, ReportFormat::Dotenv, &Style::default())
            .contains("findings=6000\nblocking=2000\n")
    );
}

#[test]
fn slo_02_every_format_that_lists_findings_says_how_many_it_does_not_list() {
    let mut review = flood(300);
    review.unlisted = Unlisted {
        counting: [190_000, 0, 9_700, 0],
        blocking: [190_000, 0, 0, 0],
        warning: 9_700,
        suppressed: 7,
    };
    let style = Style {
        width: 400,
        ..Style::default()
    };
    for format in ReportFormat::ALL {
        let text = text(&review, format, &style).replace("\\_", "_");
        // JUnit counts suppressed findings too: they are skipped cases.
        let total = [
            "200,000 findings",
            "200000 findings",
            "200007 findings",
            "findings=200000",
        ];
        assert!(
            total.iter().any(|t| text.contains(t)),
            "{format:?}: {}",
            &text[text.len().saturating_sub(900)..]
        );
    }
    let report = json(&review, ReportFormat::Json);
    let summary = &report["summary"];
    assert_eq!(
        (&summary["critical"], &summary["minor"]),
        (&190_100.into(), &9_800.into())
    );
    assert_eq!(
        (&summary["unlisted"]["blocking"], &summary["suppressed"]),
        (&190_000.into(), &7.into())
    );
    assert!(
        text(&review, ReportFormat::Dotenv, &style).contains("findings=200000\nblocking=190100\n")
    );
    assert!(super::super::summary_line(&review).contains("findings=200000"));
}

#[test]
fn ten_annotations_of_a_kind_need_no_count() {
    let told = commands(&flood(30));
    assert_eq!(told.iter().filter(|c| c.name == "notice").count(), 10);
    assert!(
        !told
            .iter()
            .any(|c| c.property("title") == Some("More findings")),
        "{told:?}"
    );
}
