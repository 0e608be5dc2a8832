//! Compares whole reports with the files in `fixtures/reports`, and checks the properties that all
//! reports have.

mod commits;
mod flood;
mod formats;
mod human;
mod markdown;
mod sarif;

use super::sample::{clean, empty, full, incomplete, sharded, sketch, warned};
use super::{ReportFormat, Style, render, summary_line};
use crate::env::Env;
use crate::error::ExitStatus;
use crate::finding::{Category, Finding, Severity, arrange};
use crate::review::Review;
use crate::untrusted;
use crate::verdict::Verdict;
use crate::wire;
use std::path::PathBuf;

/// Set it to `1` to rewrite the files: `UPDATE=1 cargo test --lib report::`. The run fails, so that
/// the author reads `git diff`.
const UPDATE: &str = "UPDATE";

fn text(review: &Review, format: ReportFormat, style: &Style) -> String {
    let mut out = Vec::new();
    render(review, format, style, &mut out).unwrap();
    String::from_utf8(out).expect("reports are UTF-8")
}

fn human(review: &Review, width: usize) -> String {
    text(
        review,
        ReportFormat::Human,
        &Style {
            width,
            ..Style::default()
        },
    )
}

/// Compares files with their expected content, in which `VERSION` replaces the version of the
/// program.
#[track_caller]
fn compare(files: &[(&str, String)]) {
    let top = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let update = Env::of_process().unwrap().var(UPDATE) == Some("1");
    let mut rewritten = Vec::new();
    for (name, actual) in files {
        let actual = actual.replace(
            concat!("\"", env!("CARGO_PKG_VERSION"), "\""),
            "\"VERSION\"",
        );
        let path = top.join(name);
        let expected = std::fs::read_to_string(&path).unwrap_or_default();
        if expected == actual {
            continue;
        }
        assert!(
            update,
            "{name} differs; {UPDATE}=1 cargo test --lib report:: rewrites it\n{actual}"
        );
        std::fs::write(&path, actual).unwrap();
        rewritten.push(*name);
    }
    assert!(
        rewritten.is_empty(),
        "rewrote {rewritten:?}: look at git diff and run again without {UPDATE}"
    );
}

#[test]
fn reports_for_people_look_as_recorded() {
    let full = full();
    let warned = warned();
    compare(&[
        ("fixtures/reports/full-80.txt", human(&full, 80)),
        ("fixtures/reports/full-40.txt", human(&full, 40)),
        ("fixtures/reports/full-200.txt", human(&full, 200)),
        (
            "fixtures/reports/full-quiet.txt",
            text(
                &full,
                ReportFormat::Human,
                &Style {
                    quiet: true,
                    ..Style::default()
                },
            ),
        ),
        (
            "fixtures/reports/full-color-verbose.txt",
            text(
                &full,
                ReportFormat::Human,
                &Style {
                    color: true,
                    unicode: true,
                    verbose: true,
                    width: 100,
                    ..Style::default()
                },
            ),
        ),
        (
            "fixtures/reports/warned-in-ci.txt",
            text(
                &warned,
                ReportFormat::Human,
                &Style {
                    in_ci: true,
                    ..Style::default()
                },
            ),
        ),
        ("fixtures/reports/clean.txt", human(&clean(), 80)),
        ("fixtures/reports/empty.txt", human(&empty(), 80)),
        (
            "fixtures/reports/incomplete.txt",
            human(&incomplete(ExitStatus::Incomplete), 80),
        ),
        (
            "fixtures/reports/incomplete-let-through.txt",
            human(&incomplete(ExitStatus::Pass), 80),
        ),
        (
            "fixtures/reports/full.github.txt",
            text(&full, ReportFormat::Github, &Style::default()),
        ),
    ]);
}

#[test]
fn pages_look_as_recorded() {
    compare(&[
        ("fixtures/reports/full.html", page(&full())),
        ("fixtures/reports/empty.html", page(&empty())),
    ]);
}

/// Returns the page of a review without its style and script.
fn page(review: &Review) -> String {
    super::html::bare(&text(review, ReportFormat::Html, &Style::default()))
}

#[test]
fn reports_for_programs_look_as_recorded() {
    let style = Style::default();
    compare(&[
        (
            "fixtures/reports/full.json",
            text(&full(), ReportFormat::Json, &style),
        ),
        (
            "fixtures/reports/empty.json",
            text(&empty(), ReportFormat::Json, &style),
        ),
        (
            "fixtures/reports/sharded.json",
            text(&sharded(), ReportFormat::Json, &style),
        ),
        (
            "fixtures/reports/full.sarif",
            text(&full(), ReportFormat::Sarif, &style),
        ),
        (
            "fixtures/reports/empty.sarif",
            text(&empty(), ReportFormat::Sarif, &style),
        ),
        (
            "fixtures/reports/full.summary.md",
            text(&full(), ReportFormat::Summary, &style),
        ),
        (
            "fixtures/reports/full.comment.md",
            text(&full(), ReportFormat::Markdown, &style),
        ),
        (
            "fixtures/reports/full.comment-bitbucket.md",
            super::markdown::comment_for(&full(), super::markdown::Flavor::Bitbucket, 4_000),
        ),
        (
            "fixtures/reports/full.codequality.json",
            text(&full(), ReportFormat::Gitlab, &style),
        ),
        (
            "fixtures/reports/full.rdjson",
            text(&full(), ReportFormat::Rdjson, &style),
        ),
        (
            "fixtures/reports/full.junit.xml",
            text(&full(), ReportFormat::Junit, &style),
        ),
        (
            "fixtures/reports/full.env",
            text(&full(), ReportFormat::Dotenv, &style),
        ),
    ]);
}

#[test]
fn the_published_schema_is_the_one_of_the_types() {
    compare(&[("schemas/report.schema.json", wire::schema())]);
}

#[test]
fn a_json_report_reads_back_as_it_was() {
    let report = super::json::report(&full());
    let read: wire::Report =
        serde_json::from_str(&text(&full(), ReportFormat::Json, &Style::default())).unwrap();
    assert_eq!(read, report);
}

#[test]
fn ci_11_no_line_is_wider_than_the_terminal() {
    for width in [20, 30, 40, 60, 80, 100, 200] {
        for review in [
            full(),
            clean(),
            empty(),
            warned(),
            incomplete(ExitStatus::Pass),
        ] {
            for unicode in [false, true] {
                let style = Style {
                    width,
                    unicode,
                    in_ci: true,
                    ..Style::default()
                };
                for line in text(&review, ReportFormat::Human, &style).lines() {
                    assert!(untrusted::width(line) <= width, "{width}: {line:?}");
                }
            }
        }
    }
}

#[test]
fn ci_11_without_colour_there_is_not_one_escape() {
    for format in ReportFormat::ALL {
        let out = text(&full(), format, &Style::default());
        let active: Vec<char> = out
            .chars()
            .filter(|c| *c != '\n' && untrusted::is_active(*c))
            .collect();
        assert!(active.is_empty(), "{format:?}: {active:?}");
    }
}

#[test]
fn inj_10_colour_is_the_only_escape_sequence() {
    let out = text(
        &full(),
        ReportFormat::Human,
        &Style {
            color: true,
            ..Style::default()
        },
    );
    for after in out.split('\x1b').skip(1) {
        let (code, _) = after
            .strip_prefix('[')
            .and_then(|r| r.split_once('m'))
            .expect("a colour code");
        assert!(
            code.bytes().all(|b| b.is_ascii_digit() || b == b';'),
            "{code:?}"
        );
    }
    assert!(out.contains("\\x1b]0;owned\\x07"));
}

#[test]
fn inj_11_no_format_prints_a_workflow_command() {
    for format in ReportFormat::ALL {
        for width in [20, 40, 80, 200] {
            for color in [false, true] {
                let out = text(
                    &full(),
                    format,
                    &Style {
                        width,
                        color,
                        ..Style::default()
                    },
                );
                for line in out
                    .lines()
                    .filter(|l| format != ReportFormat::Github || !formats::is_ours(l))
                {
                    let bare = strip(line);
                    assert!(
                        !bare.trim_start().starts_with("::"),
                        "{format:?} {width}: {line:?}"
                    );
                    assert!(!bare.contains("##["), "{format:?} {width}: {line:?}");
                }
            }
        }
    }
}

#[test]
fn any_bytes_anywhere_stay_inert_and_in_the_width() {
    let mut dice = Dice(7);
    for round in 0..150 {
        let mut review = warned();
        let findings = (0..3).map(|_| {
            let (path, first) = (dice.bytes(30), 1 + dice.below(2_000) as u32);
            let lines: Vec<Vec<u8>> = (0..3)
                .map(|_| [b"+".to_vec(), dice.bytes(120)].concat())
                .collect();
            let lines: Vec<&[u8]> = lines.iter().map(Vec::as_slice).collect();
            let mark = String::from_utf8_lossy(&lines[1][1..])
                .chars()
                .skip(dice.below(20))
                .take(9)
                .collect::<String>();
            sketch(
                "any",
                Severity::Major,
                Category::Bug,
                &dice.text(50),
                &dice.text(300),
            )
            .code(
                [b"p".to_vec(), path].concat(),
                first,
                first + 1,
                &mark,
                &lines,
            )
            .skipped(dice.below(2) as u32 * 50)
            .suggest(&dice.text(90))
            .done()
        });
        review.findings = arrange(findings.collect());
        let width = 20 + dice.below(120);
        let style = Style {
            width,
            unicode: round % 2 == 0,
            in_ci: true,
            ..Style::default()
        };
        for format in ReportFormat::ALL {
            let out = text(&review, format, &style);
            assert!(
                !out.chars()
                    .any(|c| c != '\n' && untrusted::is_active(c) && !honest(c)),
                "{format:?}: {out:?}"
            );
            for line in out.lines() {
                let ours = format == ReportFormat::Github && formats::is_ours(line);
                assert!(
                    ours || !line.trim_start().starts_with("::"),
                    "{format:?}: {line:?}"
                );
                assert!(!line.contains("##["), "{format:?}: {line:?}");
                assert!(
                    format != ReportFormat::Human || untrusted::width(line) <= width,
                    "{width}: {line:?}"
                );
            }
        }
        let read: wire::Report =
            serde_json::from_str(&text(&review, ReportFormat::Json, &style)).unwrap();
        assert_eq!(read, super::json::report(&review));
    }
}

/// Joiners that are allowed inside an emoji or a word.
fn honest(c: char) -> bool {
    matches!(c, '\u{fe0f}' | '\u{200c}' | '\u{200d}')
}

/// A random number generator with a fixed seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % bound
    }

    fn bytes(&mut self, most: usize) -> Vec<u8> {
        const PARTS: [&[u8]; 24] = [
            b"a",
            b"word",
            b" ",
            b" ",
            b"\t",
            b"::",
            b"::error::",
            b"##[",
            b"#",
            b"[",
            b"]",
            b"`",
            b"\x1b[31m",
            b"\r",
            b"\xff\xc3",
            b"\x00",
            "日本".as_bytes(),
            "👩\u{200d}👧".as_bytes(),
            "❤\u{fe0f}".as_bytes(),
            "e\u{301}\u{301}".as_bytes(),
            "\u{202e}".as_bytes(),
            "\u{2028}".as_bytes(),
            "…".as_bytes(),
            b"\\",
        ];
        let n = self.below(most);
        (0..n)
            .flat_map(|_| PARTS[self.below(PARTS.len())])
            .copied()
            .collect()
    }

    fn text(&mut self, most: usize) -> String {
        let mut text = String::from_utf8_lossy(&self.bytes(most)).into_owned();
        if self.below(3) == 0 {
            text = text.replace('a', "\n");
        }
        text
    }
}

/// Removes colour codes.
fn strip(line: &str) -> String {
    let mut parts = line.split('\x1b');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, p| {
        text + p.split_once('m').map_or("", |(_, rest)| rest)
    })
}

/// Removes hyperlinks.
fn unlinked(text: &str) -> String {
    let mut parts = text.split("\x1b]8;;");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, p| {
        text + p.split_once("\x1b\\").map_or("", |(_, rest)| rest)
    })
}

#[test]
fn carets_stand_under_what_they_mark() {
    let out = human(&full(), 80);
    let lines: Vec<&str> = out.lines().collect();
    for (marked, shown) in [
        ("AKIA****************", "AKIA****************"),
        (
            "exec.Command(\"sh\"",
            "exec.Command(\"sh\", \"-c\", \"ls \"+dir)",
        ),
        ("eval(location.hash)", "eval(location.hash)"),
        ("yaml.load(text)", "yaml.load(text)"),
    ] {
        let at = lines
            .iter()
            .position(|l| l.starts_with('>') && l.contains(marked))
            .expect(marked);
        let before = lines[at].split(marked).next().unwrap();
        let carets = lines[at + 1];
        let start = untrusted::width(carets.split('^').next().unwrap());
        assert_eq!(start, untrusted::width(before), "{}\n{carets}", lines[at]);
        assert_eq!(
            carets.matches('^').count(),
            untrusted::width(shown),
            "{}\n{carets}",
            lines[at]
        );
    }
}

#[test]
fn quiet_prints_findings_and_nothing_else() {
    let quiet = Style {
        quiet: true,
        ..Style::default()
    };
    assert_eq!(text(&clean(), ReportFormat::Human, &quiet), "");
    assert_eq!(text(&empty(), ReportFormat::Human, &quiet), "");
    assert!(!text(&warned(), ReportFormat::Human, &quiet).contains("PASS"));
}

#[test]
fn a_flood_of_findings_is_bounded_and_counted() {
    let findings = (0..6_000u32).map(|n| {
        let severity = if n == 5_999 {
            Severity::Critical
        } else {
            Severity::Minor
        };
        sketch(
            "noise",
            severity,
            Category::Style,
            "noise",
            "Too much of it.",
        )
        .file(format!("src/{n:04}.rs"))
        .done()
    });
    let mut review = warned();
    review.findings = arrange(findings.collect());
    let out = human(&review, 80);
    assert!(out.lines().count() < 500, "{} lines", out.lines().count());
    assert!(out.contains("src/5999.rs"), "the worst is shown");
    assert!(
        out.contains("and 5860 more findings"),
        "{}",
        &out[out.len() - 600..]
    );
    let verbose = text(
        &review,
        ReportFormat::Human,
        &Style {
            verbose: true,
            ..Style::default()
        },
    );
    assert_eq!(verbose.matches("Too much of it.").count(), 6_000);
}

#[test]
fn what_blocks_is_named_beside_the_verdict_where_much_else_is_shown() {
    let mut review = warned();
    review.findings = (1..=12).map(|n| of_a_rule(n, Severity::Minor)).collect();
    review.verdict = Verdict::Block;
    review.findings[6] = of_a_rule(7, Severity::Major);
    review.findings[8] = of_a_rule(9, Severity::Critical);
    for n in [6, 8] {
        review.findings[n].blocking = true;
    }
    assert_eq!(
        beside_the_verdict(&review),
        [
            "critical  f09:9:1  sample-a-rule",
            "major  f07:7:1  sample-a-rule"
        ]
    );
    // A short list of findings fits on a screen, and if all of them block, a second list would
    // repeat the first.
    let rest = review.findings.split_off(10);
    assert!(beside_the_verdict(&review).is_empty());
    review.findings.extend(rest);
    review.findings.iter_mut().for_each(|f| f.blocking = true);
    assert!(beside_the_verdict(&review).is_empty());
    review.findings.push(of_a_rule(13, Severity::Suggestion));
    assert_eq!(beside_the_verdict(&review).len(), 10);
    assert!(human(&review, 80).contains("and 2 more"));
}

fn of_a_rule(n: u32, severity: Severity) -> Finding {
    let lines: &[&[u8]] = &[b"+x"];
    sketch("a-rule", severity, Category::Bug, "t", "m")
        .code(format!("f{n:02}"), n, n, "x", lines)
        .done()
}

/// Returns the lines about findings of the rule from the verdict on.
fn beside_the_verdict(review: &Review) -> Vec<String> {
    let text = human(review, 80);
    let end = &text[text.find("BLOCK").unwrap()..];
    end.lines()
        .filter(|l| l.contains("sample-a-rule"))
        .map(|l| l.trim().to_owned())
        .collect()
}

#[test]
fn ci_09_sarif_keeps_the_5000_worst_and_says_so() {
    let findings = (0..6_000u32).map(|n| {
        let severity = if n >= 5_990 {
            Severity::Critical
        } else {
            Severity::Minor
        };
        sketch(
            "noise",
            severity,
            Category::Style,
            "noise",
            "Too much of it.",
        )
        .file(format!("src/{n:04}.rs"))
        .done()
    });
    let mut review = warned();
    review.findings = arrange(findings.collect());
    let log: serde_json::Value =
        serde_json::from_str(&text(&review, ReportFormat::Sarif, &Style::default())).unwrap();
    let run = &log["runs"][0];
    let results = run["results"].as_array().unwrap();
    assert_eq!(results.len(), 5_000);
    assert_eq!(results.iter().filter(|r| r["level"] == "error").count(), 10);
    let told = run["invocations"][0]["toolExecutionNotifications"][0]["message"]["text"]
        .as_str()
        .unwrap();
    assert_eq!(
        told,
        "The worst 5000 of 6000 findings are listed; 1000 are left out."
    );
}

#[test]
fn the_context_in_sarif_is_more_than_the_finding() {
    let mut review = full();
    // The frame of a long finding ends before the finding does.
    review.findings.extend([3, 40].map(|last| {
        sketch(
            "long",
            Severity::Minor,
            Category::Bug,
            "long",
            "Many lines.",
        )
        .code("src/long.rs", 1, 2, "", &[b" a", b"+b", b"+c"])
        .until(last)
        .done()
    }));
    let log: serde_json::Value =
        serde_json::from_str(&text(&review, ReportFormat::Sarif, &Style::default())).unwrap();
    let mut contexts = 0;
    for r in log["runs"][0]["results"].as_array().unwrap() {
        let place = &r["locations"][0]["physicalLocation"];
        if let Some(context) = place.get("contextRegion") {
            let ((first, last), (own_first, own_last)) =
                (lines_of(context), lines_of(&place["region"]));
            assert!(
                first <= own_first && own_last <= last && last - first > own_last - own_first,
                "{place}"
            );
            contexts += 1;
        }
    }
    assert!(contexts > 5, "{contexts} results have a context");
}

/// Returns the first and the last line of a region.
fn lines_of(region: &serde_json::Value) -> (u64, u64) {
    let first = region["startLine"].as_u64().unwrap();
    (first, region["endLine"].as_u64().unwrap_or(first))
}

#[test]
fn the_last_line_says_how_it_went() {
    assert_eq!(
        summary_line(&full()),
        "review: incomplete files=11/14 backend=rules,claude,local findings=16 exit=1"
    );
    assert_eq!(
        summary_line(&empty()),
        "review: complete files=0/0 backend=rules findings=0 exit=0"
    );
    let let_through = incomplete(ExitStatus::Pass);
    assert_eq!(
        summary_line(&let_through),
        "review: incomplete files=2/3 backend=rules findings=0 exit=0"
    );
}

#[test]
fn formats_are_told_by_name() {
    for f in ReportFormat::ALL {
        assert_eq!(ReportFormat::parse(f.name()), Ok(f));
    }
    assert_eq!(
        ReportFormat::parse("xml").unwrap_err(),
        "unknown format \"xml\", expected one of human, json, sarif, github, summary, markdown, gitlab, rdjson, junit, dotenv, html"
    );
}
