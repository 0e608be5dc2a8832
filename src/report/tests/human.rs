//! Properties of the terminal report in addition to its recorded texts: order, carets, hints and
//! links.

use super::super::sample::{full, sketch, warned};
use super::super::{Links, ReportFormat, Style};
use super::{human, text};
use crate::ai::UnmetRequirement;
use crate::error::ExitStatus;
use crate::finding::{Category, Finding, Severity, arrange};
use crate::policy::Policy;
use crate::review::{Review, StoreLocation};
use crate::untrusted;
use crate::verdict::Verdict;
use std::path::PathBuf;

fn on_line(severity: Severity, path: &str, line: u32, title: &str) -> Finding {
    sketch("x", severity, Category::Bug, title, title)
        .code(path, line, line, "x", &[b"+  x"])
        .done()
}

/// Returns a review that these findings block.
fn blocked(findings: Vec<Finding>) -> Review {
    let mut review = warned();
    review.findings = arrange(findings);
    review.findings.iter_mut().for_each(|f| f.blocking = true);
    (review.verdict, review.exit) = (Verdict::Block, ExitStatus::Block);
    review
}

/// Returns the position of each text; all of them must occur.
#[track_caller]
fn order(report: &str, texts: &[&str]) -> Vec<usize> {
    texts
        .iter()
        .map(|t| {
            report
                .find(t)
                .unwrap_or_else(|| panic!("{t} is missing: {report}"))
        })
        .collect()
}

#[test]
fn findings_of_a_file_are_worst_first_and_then_in_the_order_of_their_lines() {
    let mut review = warned();
    review.findings = arrange(vec![
        on_line(Severity::Minor, "b.py", 1, "first-minor"),
        on_line(Severity::Critical, "b.py", 9, "critical"),
        on_line(Severity::Minor, "b.py", 5, "second-minor"),
        on_line(Severity::Suggestion, "a.py", 1, "other-file"),
    ]);
    let texts = ["other-file", "critical", "first-minor", "second-minor"];
    assert!(order(&human(&review, 80), &texts).is_sorted());
    let html = text(&review, ReportFormat::Html, &Style::default());
    assert!(
        order(&html[html.find("<main").unwrap()..], &texts[1..]).is_sorted(),
        "{html}"
    );
    let markdown = text(&review, ReportFormat::Markdown, &Style::default());
    assert!(
        order(
            &markdown,
            &["critical", "first-minor", "second-minor", "other-file"]
        )
        .is_sorted()
    );
}

#[test]
fn carets_start_and_end_at_visible_characters() {
    for (line, mark, column, carets) in [
        ("\t  call(a)  ", "\t  call(a)  ", 4, "^^^^^^^"),
        ("  日本 = 1", " 日本 ", 3, "^^^^"),
        ("a    b", "    ", 2, "^^^^"),
    ] {
        let mut review = warned();
        review.findings = vec![
            sketch("x", Severity::Minor, Category::Bug, "t", "m")
                .code("a.py", 1, 1, mark, &[format!("+{line}").as_bytes()])
                .done(),
        ];
        let report = human(&review, 80);
        assert!(report.contains(&format!("a.py:1:{column}  ")), "{report}");
        let row = report.lines().find(|l| l.contains('^')).unwrap();
        assert_eq!(row.trim_start_matches([' ', '|']), carets, "{report}");
    }
}

#[test]
fn the_heading_of_a_file_fills_the_line_in_every_width() {
    let path = "a/very/long/path/that/takes/more/than/forty/columns/in/total.py";
    let review = blocked(vec![
        on_line(Severity::Major, path, 1, "one"),
        on_line(Severity::Major, path, 2, "two"),
    ]);
    // Prose and headings have at most 100 columns.
    for (width, expected) in [(40, 40), (80, 80), (120, 100)] {
        let report = human(&review, width);
        let heading = report.lines().next().unwrap();
        assert_eq!(untrusted::width(heading), expected, "{heading}");
        assert!(
            heading.ends_with(" 2 findings") && heading.starts_with("a/"),
            "{heading}"
        );
    }
}

#[test]
fn findings_that_block_show_their_fingerprints_and_others_do_not() {
    let review = full();
    let report = human(&review, 100);
    for f in &review.findings {
        assert_eq!(
            report.contains(&format!("fingerprint: {}", f.fingerprint())),
            f.blocking,
            "{}",
            f.rule_id()
        );
    }
}

#[test]
fn the_hint_is_a_comment_that_can_be_pasted() {
    let report = human(
        &blocked(vec![on_line(Severity::Major, "web/a.ts", 7, "t")]),
        80,
    );
    let hint = "  hint: to suppress a false positive, add a comment above web/a.ts:7:3:\n    \
                // claude-reviewer: ignore[sample-x] reason\n";
    assert!(report.contains(hint), "{report}");
    assert!(!report.contains("--waive"), "{report}");
}

#[test]
fn secrets_and_what_a_comment_cannot_suppress_get_a_waiver_for_a_hint() {
    let secret = sketch("x", Severity::Critical, Category::Security, "t", "m")
        .rule("aws-access-key-id")
        .code(
            "a.py",
            1,
            1,
            "AKIA****************",
            &[b"+k = 'AKIA****************'"],
        )
        .done();
    let whole = sketch("x", Severity::Critical, Category::Bug, "t", "m")
        .file("data.bin")
        .done();
    for f in [
        secret.clone(),
        whole,
        on_line(Severity::Critical, "package.json", 1, "t"),
    ] {
        let report = human(&blocked(vec![f.clone()]), 120);
        assert!(
            report.contains(&format!(", pass --waive {}=REASON\n", f.fingerprint())),
            "{report}"
        );
        assert!(!report.contains("ignore["), "{report}");
    }
    // With an additional finding that a comment can suppress, both hints are shown.
    let both = human(
        &blocked(vec![secret, on_line(Severity::Major, "b.py", 2, "t")]),
        80,
    );
    assert!(
        both.contains("    # claude-reviewer: ignore[sample-x] reason\n")
            && both.contains("--waive "),
        "{both}"
    );
    assert!(both.contains("hint: to waive a.py:1:6"), "{both}");
}

#[test]
fn in_a_gate_no_comment_is_offered() {
    let review = blocked(vec![on_line(Severity::Major, "a.py", 1, "t")]);
    let report = text(
        &review,
        ReportFormat::Human,
        &Style {
            in_ci: true,
            ..Style::default()
        },
    );
    assert!(
        report.contains("--waive ") && !report.contains("ignore["),
        "{report}"
    );
}

/// Returns the targets of all OSC 8 sequences, except the closing ones. Fails on other escape
/// sequences.
fn targets(report: &str) -> Vec<&str> {
    let mut out = Vec::new();
    for (i, after) in report.split("\x1b]8;;").enumerate().skip(1) {
        let (target, _) = after
            .split_once("\x1b\\")
            .expect("the sequence is terminated");
        let mut bytes = target.bytes();
        assert!(
            bytes.all(|b| b.is_ascii_alphanumeric() || b"-._~/:?#&=%+@*".contains(&b)),
            "{target:?}"
        );
        assert_eq!(
            target.is_empty(),
            i % 2 == 0,
            "links open and close in turn: {report:?}"
        );
        out.extend(Some(target).filter(|t| !t.is_empty()));
    }
    let rest = report.replace("\x1b]8;;", "").replace("\x1b\\", "");
    assert!(!rest.contains('\x1b'), "{rest:?}");
    out
}

fn linked(review: &mut Review, top: &str, host: &str, width: usize) -> String {
    let history = Policy::default().history;
    review.place = Some(StoreLocation {
        top: PathBuf::from(top),
        history,
        max_rounds: 1,
        actor: String::new(),
        head: None,
        branch: None,
        remotes: Vec::new(),
    });
    let links = Some(Links {
        host: host.to_owned(),
    });
    text(
        review,
        ReportFormat::Human,
        &Style {
            links,
            width,
            ..Style::default()
        },
    )
}

#[test]
fn inj_10_file_positions_are_links_that_no_name_escapes() {
    let mut review = blocked(vec![on_line(Severity::Major, "src/ä b.py", 7, "t")]);
    let report = linked(&mut review, "/home/me/re po", "box", 80);
    let link = "file://box/home/me/re%20po/src/%C3%A4%20b.py";
    assert!(
        report.contains(&format!("\x1b]8;;{link}\x1b\\src/ä b.py:7:3\x1b]8;;\x1b\\")),
        "{report:?}"
    );
    assert!(targets(&report).iter().all(|t| *t == link));

    for hostile in [
        "a\x1b\\b.py",
        "a\x07;b.py",
        "::error::x.py",
        "a\u{202e}.py",
        "a\n::warning::b.py",
    ] {
        let mut review = blocked(vec![on_line(Severity::Major, hostile, 7, "t")]);
        for width in [20, 40, 120] {
            let report = linked(&mut review, "/r", "host\x1b\\evil/../x", width);
            assert!(!targets(&report).is_empty(), "{report:?}");
            for line in super::unlinked(&report).lines() {
                assert!(
                    untrusted::width(line) <= width && !line.trim_start().starts_with("::"),
                    "{width}: {line:?}"
                );
            }
        }
    }
}

#[test]
fn there_is_no_link_without_a_worktree_to_an_earlier_commit_or_with_a_long_target() {
    let mut review = blocked(vec![on_line(Severity::Major, "a.py", 7, "t")]);
    let links = Some(Links {
        host: "box".to_owned(),
    });
    let report = text(
        &review,
        ReportFormat::Human,
        &Style {
            links,
            ..Style::default()
        },
    );
    assert_eq!(targets(&report), Vec::<&str>::new());
    review.findings[0].commit =
        crate::diff::ObjectId::from_hex("1a2b3c4d5e6f708192a3b4c5d6e7f8091a2b3c4d");
    assert_eq!(
        targets(&linked(&mut review, "/r", "box", 80)),
        Vec::<&str>::new()
    );
    let mut long = blocked(vec![on_line(Severity::Major, &"日".repeat(300), 7, "t")]);
    assert_eq!(
        targets(&linked(&mut long, "/r", "box", 80)),
        Vec::<&str>::new()
    );
}

#[test]
fn a_secret_in_the_name_of_a_file_is_masked_in_its_link() {
    let key = format!("AKIA{}", "Z7QW3RTY5PLM2KJH");
    let mut review = blocked(vec![on_line(Severity::Major, &format!("{key}.py"), 1, "t")]);
    let report = linked(&mut review, "/r", "box", 80);
    assert!(
        !report.contains(&key[4..]) && targets(&report)[0].starts_with("file://box/r/AKIA"),
        "{report:?}"
    );
}

#[test]
fn a_missing_requirement_that_is_a_finding_is_written_once_in_reports_for_people() {
    let requirement = "The export has a date column";
    let mut review = full();
    review.findings.push(
        sketch(
            "gap",
            Severity::Major,
            Category::MissingRequirement,
            requirement,
            &format!("{requirement}."),
        )
        .done(),
    );
    let listed = review.models.missing[0].requirement.clone();
    review.models.missing.push(UnmetRequirement {
        requirement: format!("{requirement}."),
        reference: Some("SHOP-12".to_owned()),
        severity: Severity::Major,
    });
    for format in [ReportFormat::Human, ReportFormat::Markdown] {
        let report = text(&review, format, &Style::default());
        assert_eq!(
            report.matches(requirement).count(),
            1,
            "{format:?}: {report}"
        );
        assert!(
            report.contains(&listed),
            "{format:?}: a requirement that is not a finding is listed: {report}"
        );
    }
}
