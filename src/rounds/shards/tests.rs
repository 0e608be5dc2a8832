//! Merges the reports of divided sample reviews, and compares them with those of the whole review.

use super::*;
use crate::diff::RepoPath;
use crate::error::ExitStatus;
use crate::finding::listing::{Floor, Unlisted};
use crate::finding::{Category, Severity, arrange, joined};
use crate::report::sample::{clean, empty, full, incomplete, sketch, warned};
use crate::report::{self, ReportFormat, Style, json};
use crate::request::Shard;
use crate::review::Note;
use crate::verdict::Share;

/// Returns the number of the shard that has a file, from 1. What is about the whole change is in the
/// first one.
fn shard_of(file: Option<&RepoPath>, of: u32) -> u32 {
    let sum: u32 = file.map_or(0, |f| f.as_bytes().iter().map(|b| u32::from(*b)).sum());
    sum % of + 1
}

/// Returns the part of a number that shard `index` of `of` has.
fn part(all: usize, index: u32, of: u32) -> usize {
    let (index, of) = (index as usize, of as usize);
    all / of + usize::from(index <= all % of)
}

/// Returns the review as a single run has it: without what a merge does not know.
fn single(mut review: Review) -> Review {
    review.session = None;
    review.context.clear();
    // A report has whole milliseconds.
    review.duration = std::time::Duration::from_millis(12);
    Note::arrange(&mut review.notes);
    if !review.findings.is_empty() {
        // Each shard with a finding has a file.
        review.coverage.files_total += 10;
        review.coverage.files_reviewed += 10;
    }
    review.coverage.tidy();
    review.judge_again(OnBlock::Fail);
    let files = review.record.iter().flat_map(|r| r.files().enumerate());
    review.merge_inputs.order = files.map(|(i, _)| (0, i)).collect();
    review
}

/// Returns how many files of a shard are not reviewed: each is skipped or failed in its own shard.
/// Those that are not named are in the first shard.
fn unreviewed(review: &Review, index: u32, of: u32) -> usize {
    let c = &review.coverage;
    let left = c.files_total - c.files_reviewed;
    let skipped = c.skipped.iter().map(|(file, _)| file);
    let failed = c.failed.iter().filter_map(|f| f.file.as_ref());
    let named: Vec<u32> = skipped
        .chain(failed)
        .map(|file| shard_of(Some(file), of))
        .collect();
    let up_to = |last: u32| named.iter().filter(|i| **i <= last).count().min(left);
    let unnamed = left - up_to(of);
    up_to(index) - up_to(index - 1) + if index == 1 { unnamed } else { 0 }
}

/// Returns the review of one shard of a change.
fn shard(review: &Review, index: u32, of: u32) -> Review {
    let mut out = review.clone();
    let is_own = |file: Option<&RepoPath>| shard_of(file, of) == index;
    out.source.shard = Shard::new(index, of);
    out.findings.retain(|f| is_own(f.file()));
    out.notes.retain(|n| is_own(n.file.as_ref()));
    out.first_change = out.first_change.filter(|l| is_own(Some(&l.file)));
    let c = &mut out.coverage;
    c.skipped.retain(|(file, _)| is_own(Some(file)));
    c.failed.retain(|f| is_own(f.file.as_ref()));
    for n in [
        &mut c.files_total,
        &mut c.files_reviewed,
        &mut c.hunks_total,
        &mut c.hunks_reviewed,
        &mut c.cached,
        &mut c.records,
        &mut out.stat.added,
        &mut out.stat.removed,
        &mut out.stat.shown,
    ] {
        *n = part(*n, index, of);
    }
    c.files_total = c.files_reviewed + unreviewed(review, index, of);
    for share in c.by_reviewer.values_mut() {
        let Share {
            files_reviewed,
            files_total,
        } = *share;
        *share = Share {
            files_reviewed: part(files_reviewed, index, of),
            files_total: part(files_total, index, of),
        };
    }
    if index > 1 {
        out.models = Default::default();
        out.unlisted = Unlisted::default();
        out.tests = None;
    }
    divide_record(&mut out, index, of);
    if out.outcome == Outcome::Incomplete && out.coverage.is_complete() {
        out.outcome = Outcome::Reviewed;
    }
    out.judge_again(OnBlock::Fail);
    out
}

/// Keeps the files of the record that a shard has.
fn divide_record(review: &mut Review, index: u32, of: u32) {
    let Some(record) = &mut review.record else {
        return;
    };
    let order = review.merge_inputs.order.iter().copied();
    let own: Vec<_> = order
        .zip(record.files())
        .filter(|((_, i), _)| u32::try_from(*i).unwrap() % of + 1 == index)
        .map(|(order, text)| (order, text.to_vec()))
        .collect();
    review.merge_inputs.order = own.iter().map(|(order, _)| *order).collect();
    record.text = own.into_iter().flat_map(|(_, text)| text).collect();
}

/// Returns a review as its JSON report is parsed.
fn given(review: &Review, file: &str) -> GivenReport {
    GivenReport::parse(file, &written(review, ReportFormat::Json)).unwrap()
}

fn written(review: &Review, format: ReportFormat) -> Vec<u8> {
    let mut out = Vec::new();
    report::render(review, format, &Style::default(), &mut out).unwrap();
    out
}

/// Returns the reports of all shards, the last one first.
fn reports(review: &Review, of: u32) -> Vec<GivenReport> {
    let reports = (1..=of).rev();
    reports
        .map(|i| given(&shard(review, i, of), &format!("shard-{i}.json")))
        .collect()
}

fn assert_same(expected: &Review, merged: &Review, what: &str) {
    for format in ReportFormat::ALL {
        let [a, b] = [expected, merged].map(|r| {
            let text = written(r, format);
            String::from_utf8_lossy(&text).into_owned()
        });
        let differs = a.lines().zip(b.lines()).find(|(a, b)| a != b);
        assert!(a == b, "{what}: {}: {differs:#?}", format.name());
    }
    assert_eq!(expected.exit, merged.exit, "{what}");
}

#[test]
fn flt_01_shards_merge_to_the_reports_of_a_single_run_in_every_format() {
    for (name, review) in [
        ("empty", empty()),
        ("clean", clean()),
        ("warned", warned()),
        ("incomplete", incomplete(ExitStatus::Incomplete)),
        ("full", full()),
        ("many", many(300)),
    ] {
        let expected = single(review);
        for of in [1, 2, 3, 5] {
            let merged = merge(reports(&expected, of)).unwrap();
            assert_same(&expected, &merged, &format!("{name} of {of}"));
        }
    }
}

/// Returns a review with many findings: of every severity, suppressed ones, and equal text in many
/// files.
fn many(n: u32) -> Review {
    let severities = Severity::ALL;
    let findings = (0..n).map(|i| {
        let line = i % 97 + 1;
        let text = format!("+call({});", i % 13);
        let mut f = sketch(
            "tls-verify-off",
            severities[(i % 4) as usize],
            Category::Security,
            "Certificate verification disabled",
            "Anyone on the path can read it.",
        )
        .code(
            format!("src/f{}.py", i % 41),
            line,
            line,
            "call",
            &[text.as_bytes()],
        )
        .done();
        if i % 11 == 0 {
            f.suppressed = Some(crate::finding::Suppression {
                by: "inline",
                reason: format!("known {i}"),
            });
        }
        f
    });
    let mut review = clean();
    review.findings = arrange(findings.collect());
    review
}

#[test]
fn flt_01_the_cap_on_listed_findings_is_that_of_a_single_run() {
    let mut whole = many(0);
    let all = (0..11_000u32).map(|i| {
        sketch(
            "tls-verify-off",
            Severity::ALL[(i % 4) as usize],
            Category::Security,
            "title",
            "message",
        )
        .code(format!("f{}.py", i % 50), i + 1, i + 1, "", &[b"+x"])
        .done()
    });
    let all: Vec<_> = all.collect();
    let of_all = single(Review {
        findings: arrange(all.clone()),
        ..many(0)
    });
    let mut listed = all;
    let thresholds = whole.judged_by.thresholds(None);
    Floor::default().cut(&mut listed, 0, |f| {
        let at = Severity::ALL
            .iter()
            .position(|s| *s == f.severity())
            .unwrap();
        whole.unlisted.counting[at] += 1;
        match thresholds.effect_of(f.severity()) {
            crate::finding::listing::Effect::Blocks => whole.unlisted.blocking[at] += 1,
            crate::finding::listing::Effect::Warns => whole.unlisted.warning += 1,
            _ => {}
        }
    });
    whole.findings = arrange(listed);
    let expected = single(whole);
    assert_eq!(expected.unlisted.total(), 1_000);
    let merged = merge(reports(&of_all, 3)).unwrap();
    assert_eq!(
        json::report(&merged).summary,
        json::report(&expected).summary
    );
    let ids = |r: &Review| -> Vec<String> {
        let f = r.findings.iter();
        f.map(|f| format!("{:?} {}", f.lines(), f.fingerprint()))
            .collect()
    };
    assert_eq!(ids(&merged), ids(&expected));
}

/// Returns the causes of a merged review that is not complete.
fn causes(merged: &Review) -> Vec<String> {
    merged.coverage.failed.iter().map(|f| f.reason()).collect()
}

#[test]
fn flt_01_a_missing_shard_is_named_and_makes_the_merge_incomplete() {
    let mut all = reports(&single(clean()), 4);
    all.retain(|g| g.shard().unwrap().index() != 2);
    let merged = merge(all).unwrap();
    assert_eq!(causes(&merged), ["shard 2 of 4 is missing"]);
    assert_eq!(merged.verdict, Verdict::Incomplete);
    assert_eq!(merged.outcome, Outcome::Incomplete);
    assert_eq!(merged.exit, ExitStatus::Incomplete);
}

#[test]
fn flt_01_a_missing_shard_does_not_hide_what_blocks() {
    let mut all = reports(&single(full()), 3);
    let blocks = |g: &GivenReport| g.report.verdict == wire::Verdict::Block;
    assert!(all.iter().any(blocks));
    let other = all.iter().position(|g| !blocks(g)).unwrap_or(2);
    all.remove(other);
    let merged = merge(all).unwrap();
    assert_eq!(merged.exit, ExitStatus::Block);
    assert!(causes(&merged).iter().any(|c| c.ends_with("is missing")));
}

#[test]
fn flt_01_a_second_report_of_a_shard_is_named_with_its_file() {
    let mut all = reports(&single(many(50)), 2);
    let mut again = all[0].clone();
    again.file = "again.json".to_owned();
    let index = again.shard().unwrap().index();
    all.push(again.clone());
    let expected = format!("shard {index} of 2 was given a second time: again.json");
    let merged = merge(all.clone()).unwrap();
    assert_eq!(causes(&merged), std::slice::from_ref(&expected));
    // Its findings are not counted twice.
    assert_eq!(merged.findings.len(), single(many(50)).findings.len());

    // A second report that differs does not hide what blocks in one of the two.
    all.pop();
    let all: Vec<_> = all
        .into_iter()
        .map(|mut g| {
            g.report.findings.clear();
            g.report.merge.as_mut().unwrap().findings.clear();
            g.report.verdict = wire::Verdict::Pass;
            g
        })
        .chain([again])
        .collect();
    let merged = merge(all).unwrap();
    assert_eq!(causes(&merged), [expected]);
    assert_eq!(merged.exit, ExitStatus::Block);
    assert!(merged.findings.iter().any(|f| f.blocking));
}

#[test]
fn flt_01_a_shard_of_another_review_is_named_with_what_differs() {
    type Change = fn(&mut wire::Report);
    fn facts(r: &mut wire::Report) -> &mut wire::merging::MergeFacts {
        r.merge.as_mut().unwrap()
    }
    let changes: [(&str, Change); 11] = [
        ("other files", |r| facts(r).state = "f".repeat(40)),
        ("other paths", |r| facts(r).selection = "f".repeat(40)),
        ("other options", |r| facts(r).options = "f".repeat(40)),
        ("other options", |r| {
            facts(r).rules_only = !facts(r).rules_only;
        }),
        ("other gate mode", |r| facts(r).gate = !facts(r).gate),
        ("other revision", |r| r.source.head = Some("f".repeat(40))),
        ("other policy", |r| r.policy.hash = "f".repeat(16)),
        ("other rules", |r| r.tool.rules_hash = "f".repeat(16)),
        ("other version", |r| r.tool.version = "0.0.0".to_owned()),
        ("other source", |r| r.source.kind = wire::SourceKind::Tree),
        ("not a shard", |r| {
            r.shard = None;
            r.merge = None;
        }),
    ];
    for (what, change) in changes {
        let mut all = reports(&single(clean()), 3);
        change(&mut all[2].report);
        let file = all[2].file.clone();
        let index = all.iter().take(2).map(|g| g.shard().unwrap().index());
        let missing = 6 - index.sum::<u32>();
        let merged = merge(all).unwrap();
        assert_eq!(
            causes(&merged),
            [
                format!("a shard of another review was given ({what}): {file}"),
                format!("shard {missing} of 3 is missing"),
            ]
        );
        assert_eq!(merged.exit, ExitStatus::Incomplete);
    }
}

#[test]
fn flt_01_the_policy_lets_an_incomplete_shard_through_and_not_a_missing_one() {
    let mut review = clean();
    review.judged_by.on_incomplete = OnIncomplete::Warn;
    review.coverage.fail(FailureCause::Stopped);
    review.outcome = Outcome::Incomplete;
    let all = reports(&single(review), 2);
    let merged = merge(all.clone()).unwrap();
    assert_eq!(
        (merged.verdict, merged.exit),
        (Verdict::Incomplete, ExitStatus::Pass)
    );
    let merged = merge(all[..1].to_vec()).unwrap();
    assert_eq!(merged.exit, ExitStatus::Incomplete);
}

#[test]
fn reports_of_another_version_are_an_error_and_not_a_pass() {
    let mut all = reports(&single(clean()), 2);
    for g in &mut all {
        g.report.tool.version = "0.0.1".to_owned();
    }
    let error = merge(all).unwrap_err();
    assert!(error.message.contains("version 0.0.1 wrote it"), "{error}");
    assert!(merge(Vec::new()).is_err());
}

#[test]
fn a_report_that_is_not_one_is_named_with_the_reason() {
    let report = String::from_utf8(written(&single(clean()), ReportFormat::Json)).unwrap();
    let change = |from: &str, to: &str| {
        assert!(report.contains(from), "{from}");
        report.replacen(from, to, 1)
    };
    for (text, reason) in [
        (String::new(), "it is empty"),
        (
            report[..report.len() / 2].to_owned(),
            "it is truncated after",
        ),
        ("{} x".to_owned(), "not JSON: "),
        ("[1]".to_owned(), "not JSON: "),
        (
            "{\"schema_version\": 1}".to_owned(),
            "not a report of claude-reviewer",
        ),
        (
            change("\"schema_version\": 1", "\"schema_version\": 2"),
            "its schema_version is 2",
        ),
        (
            change("\"schema_version\": 1", "\"schema_version\": \"x\""),
            "its schema_version is \"x\"",
        ),
        (
            change("\"round\": 1", "\"round\": \"one\""),
            "not a report as",
        ),
        (
            change("\"verdict\": \"pass\"", "\"verdict\": \"fine\""),
            "not a report as",
        ),
        (
            change("\"verdict\": \"pass\"", "\"verdict\": \"incomplete\""),
            "the verdict is incomplete",
        ),
        (
            change("\"exit_code\": 0", "\"exit_code\": 1"),
            "the exit code is 1",
        ),
        (
            change("\"major\": 0", "\"major\": 1"),
            "the summary counts 1 major findings",
        ),
    ] {
        let error = GivenReport::parse("out/a.json", text.as_bytes()).unwrap_err();
        assert!(
            error
                .message
                .starts_with("cannot read the report out/a.json: "),
            "{error}"
        );
        assert!(error.message.contains(reason), "{reason}: {error}");
    }
}

#[test]
fn a_report_that_hides_what_blocks_is_rejected() {
    let blocked = single(full());
    let report = json::report(&blocked);
    type Change = fn(&mut wire::Report);
    let changes: [Change; 4] = [
        |r| r.verdict = wire::Verdict::Pass,
        |r| r.exit_code = 2,
        |r| r.outcome = wire::Outcome::NothingToReview,
        |r| r.shard = Some(wire::Shard { index: 5, of: 4 }),
    ];
    for change in changes {
        let mut report = report.clone();
        change(&mut report);
        let text = serde_json::to_vec(&report).unwrap();
        assert!(GivenReport::parse("a.json", &text).is_err());
    }
}

#[test]
fn flt_01_the_order_of_the_reports_does_not_decide_which_version_merges() {
    let all = reports(&single(clean()), 2);
    let mut foreign = all.clone();
    for g in &mut foreign {
        g.report.tool.version = "0.0.1".to_owned();
        g.file = format!("old-{}", g.file);
    }
    let expected = merge([all.clone(), foreign.clone()].concat()).unwrap();
    assert_eq!(expected.exit, ExitStatus::Incomplete);
    let mut merged = merge([foreign.clone(), all.clone()].concat()).unwrap();
    assert_eq!(causes(&merged), causes(&expected));
    // Also where the other version has more reports.
    foreign.push(foreign[0].clone());
    merged = merge([foreign, all].concat()).unwrap();
    assert!(
        causes(&merged)
            .iter()
            .all(|c| c.contains("(other version): old-"))
    );
}

#[test]
fn flt_01_missing_shards_that_follow_each_other_are_one_failure() {
    let review = single(clean());
    let one = given(&shard(&review, 4, 10_000), "a.json");
    let merged = merge(vec![one]).unwrap();
    assert_eq!(
        causes(&merged),
        [
            "shards 1 to 3 of 10000 are missing",
            "shards 5 to 10000 of 10000 are missing",
        ]
    );
    let mut all = reports(&review, 5);
    all.retain(|g| [1, 3].contains(&g.shard().unwrap().index()));
    assert_eq!(
        causes(&merge(all).unwrap()),
        ["shard 2 of 5 is missing", "shards 4 to 5 of 5 are missing"]
    );
}

/// Returns the error of a report after a change.
fn refused(report: &wire::Report, change: fn(&mut wire::Report)) -> String {
    let mut report = report.clone();
    change(&mut report);
    let text = serde_json::to_vec(&report).unwrap();
    let parsed = GivenReport::parse("a.json", &text);
    parsed.map_or_else(|e| e.message, |_| String::new())
}

#[test]
fn flt_01_a_verdict_that_is_better_than_the_content_is_rejected() {
    fn unlisted(r: &mut wire::Report) -> &mut wire::UnlistedCounts {
        r.summary.unlisted.get_or_insert_default()
    }
    fn tests(r: &mut wire::Report, blocking: bool) {
        r.test_results = Some(wire::TestResults {
            passed: false,
            outcome: None,
            blocking,
            summary: String::new(),
            failing_tests: Vec::new(),
            coverage: None,
        });
    }
    type Change = fn(&mut wire::Report);
    let changes: [(&str, Change); 10] = [
        ("a finding blocks", |r| {
            r.summary.critical += 5;
            unlisted(r).critical = 5;
            unlisted(r).blocking = 5;
        }),
        ("there is a warning", |r| {
            r.summary.minor += 5;
            unlisted(r).minor = 5;
            unlisted(r).warning = 5;
        }),
        ("failed tests block", |r| tests(r, true)),
        ("there is a warning", |r| tests(r, false)),
        ("there is a warning", |r| {
            r.coverage.skipped.push(wire::Skipped {
                file: "a".to_owned(),
                reason: "limit".to_owned(),
            });
        }),
        ("the outcome is incomplete", |r| {
            r.outcome = wire::Outcome::Incomplete;
        }),
        ("the review was cancelled", |r| {
            r.outcome = wire::Outcome::Cancelled;
        }),
        ("were neither reviewed nor skipped", |r| {
            r.coverage.skipped.clear();
            r.coverage.files_total = 12;
            r.coverage.files_reviewed = 0;
        }),
        ("more files were reviewed", |r| {
            r.coverage.files_reviewed = r.coverage.files_total + 1;
        }),
        ("the verdict does not say so", |r| {
            r.coverage.failed.push(wire::Failed {
                file: None,
                reason: "x".to_owned(),
            });
        }),
    ];
    let whole = single(clean());
    for report in [&whole, &shard(&whole, 1, 1)] {
        let report = json::report(report);
        assert_eq!(refused(&report, |_| {}), "");
        for (reason, change) in changes {
            let error = refused(&report, change);
            assert!(error.contains(reason), "{reason}: {error}");
        }
    }
    let report = json::report(&shard(&single(many(20)), 1, 1));
    let error = refused(&report, |r| r.exit_code = 0);
    assert!(error.contains("another exit code"), "{error}");
}

#[test]
fn flt_01_facts_that_hide_what_blocks_are_rejected() {
    let report = json::report(&shard(&single(many(20)), 1, 1));
    assert_eq!(refused(&report, |_| {}), "");
    let error = refused(&report, |r| {
        r.findings.iter_mut().for_each(|f| f.blocking = false);
        r.verdict = wire::Verdict::Warn;
        r.exit_code = 0;
    });
    assert!(error.contains("another effect of F"), "{error}");
    let report = json::report(&shard(&single(clean()), 1, 1));
    let error = refused(&report, |r| {
        r.merge.as_mut().unwrap().unlisted_blocking = [1, 0, 0, 0];
    });
    assert!(error.contains("number of blocking findings"), "{error}");
}

#[test]
fn flt_01_a_review_that_was_stopped_at_its_end_is_read_and_does_not_pass() {
    for outcome in [wire::Outcome::Reviewed, wire::Outcome::Cancelled] {
        let mut all = reports(&single(clean()), 2);
        all[0].report.exit_code = 130;
        all[0].report.outcome = outcome;
        let text = serde_json::to_vec(&all[0].report).unwrap();
        all[0] = GivenReport::parse("a.json", &text).unwrap();
        let merged = merge(all).unwrap();
        // The findings are known if only the report was late.
        let expected = match outcome {
            wire::Outcome::Reviewed => ExitStatus::Pass,
            _ => ExitStatus::Incomplete,
        };
        assert_eq!(merged.exit, expected);
    }
}

#[test]
fn flt_01_numbers_that_no_review_has_are_rejected() {
    type Change = fn(&mut wire::Report);
    let changes: [Change; 15] = [
        |r| r.summary.dropped = 3_000_000_000,
        |r| r.summary.critical = usize::MAX,
        |r| r.summary.suppressed = usize::MAX,
        |r| r.summary.unlisted.get_or_insert_default().blocking = usize::MAX,
        |r| r.coverage.files_total = usize::MAX,
        |r| r.coverage.hunks_total = usize::MAX,
        |r| r.usage[0].input_tokens = u64::MAX,
        |r| r.usage[0].cost_usd = Some(-1.0),
        |r| r.usage[0].cost_usd = Some(1e300),
        |r| r.usage[0].earlier_usd = Some(-1.0),
        |r| r.duration_ms = u64::MAX,
        |r| r.findings[0].line = Some(u32::MAX),
        |r| r.findings[0].end_line = Some(u32::MAX),
        |r| r.merge.as_mut().unwrap().unlisted_blocking = [usize::MAX; 4],
        |r| r.merge.as_mut().unwrap().findings[0].columns = Some((u32::MAX, u32::MAX)),
    ];
    let report = json::report(&shard(&single(full()), 1, 1));
    assert!(!report.usage.is_empty());
    assert_eq!(refused(&report, |_| {}), "");
    for (i, change) in changes.into_iter().enumerate() {
        let error = refused(&report, change);
        assert!(error.contains("is too large or negative"), "{i}: {error}");
    }
    let error = refused(&report, |r| {
        let code = wire::merging::CodeFrame {
            first: u32::MAX,
            lines: Vec::new(),
        };
        r.merge.as_mut().unwrap().findings[0].frame = Some(code);
    });
    assert!(error.contains("is too large or negative"), "{error}");
}

#[test]
fn a_report_of_another_version_or_format_is_named_as_such() {
    let report = String::from_utf8(written(&single(clean()), ReportFormat::Json)).unwrap();
    let own = format!("\"version\": \"{}\"", env!("CARGO_PKG_VERSION"));
    let old = report
        .replace(&own, "\"version\": \"0.0.1\"")
        .replace("\"round\": 1", "\"round\": \"one\"");
    let lines = written(&single(clean()), ReportFormat::Jsonl);
    for (text, reason) in [
        (old.as_bytes(), "version 0.0.1 wrote it"),
        (&lines[..], "it has the format jsonl"),
    ] {
        let error = GivenReport::parse("a.json", text).unwrap_err();
        assert!(error.message.contains(reason), "{reason}: {error}");
    }
}

#[test]
fn flt_01_findings_of_one_list_stay_and_those_of_several_lists_stay_once() {
    let f = full().findings.remove(0);
    let blocking = |blocking| {
        let mut f = f.clone();
        f.blocking = blocking;
        f
    };
    let times = |n: usize| vec![blocking(false); n];
    assert_eq!(joined::join(vec![times(5)]).len(), 5);
    assert_eq!(joined::join(vec![times(5), times(3)]).len(), 5);
    assert_eq!(joined::join(vec![times(1), times(1), times(1)]).len(), 1);
    // A blocking one is preferred, from whichever list.
    for lists in [
        vec![times(1), vec![blocking(true)]],
        vec![vec![blocking(true)], times(1)],
        vec![times(2), times(1), vec![blocking(true)]],
    ] {
        assert!(joined::join(lists).iter().any(|f| f.blocking));
    }
}
