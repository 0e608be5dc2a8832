//! JUnit XML for Jenkins, GitLab and Azure: a suite for each file, a case for each finding.
//!
//! A blocking finding is a failure, a file that was not reviewed is an error, and a finding that does not count is a
//! skipped case. Other findings are passed cases with output. A review without findings has one case, because Jenkins
//! rejects a report without cases; it passed, or was skipped if there was nothing to review. Case names are unique,
//! because GitLab keeps only the first case of a name.

use super::words::{self, paragraphs, placed};
use crate::finding::Finding;
use crate::review::Review;
use crate::untrusted::{self, Inert, junit};
use crate::verdict::{Outcome, TestOutcome};
use std::collections::{HashMap, HashSet};
use std::io::{self, Write};

/// Cases in the report, at most; the worst ones are kept. GitLab reads no file above 30 MB.
const MAX_CASES: usize = 5_000;
/// Bytes of a name and of an attribute, at most.
const MAX_NAME: usize = 400;

/// How a case ended.
enum End {
    Passed(String),
    Failed(&'static str, String),
    Error(String),
    Skipped(String),
}

struct Case {
    name: String,
    end: End,
}

struct Suite {
    name: String,
    cases: Vec<Case>,
}

/// Writes the document.
pub fn render(review: &Review, out: &mut dyn Write) -> io::Result<()> {
    let mut suites = suites(review);
    tell_apart(&mut suites);
    let mut out = io::BufWriter::new(out);
    let time = review.duration.as_secs_f64();
    writeln!(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>")?;
    let all = || suites.iter().flat_map(|s| &s.cases);
    // Jenkins' schema has no count of skipped cases here.
    writeln!(out, "<testsuites name=\"{}\" {} time=\"{time:.3}\">", crate::NAME, counts(all))?;
    let moment = review.timestamp.strftime("%Y-%m-%dT%H:%M:%S");
    for suite in &suites {
        let name = exact(&suite.name);
        let counts = counts(|| suite.cases.iter());
        let skipped = suite.cases.iter().filter(|c| matches!(c.end, End::Skipped(_))).count();
        writeln!(
            out,
            "  <testsuite name=\"{name}\" {counts} skipped=\"{skipped}\" time=\"0.000\" timestamp=\"{moment}\">"
        )?;
        for case in &suite.cases {
            write_case(&mut out, &name, case)?;
        }
        writeln!(out, "  </testsuite>")?;
    }
    writeln!(out, "</testsuites>")?;
    out.flush()
}

fn counts<'c, I: Iterator<Item = &'c Case>>(cases: impl Fn() -> I) -> String {
    let count = |which: fn(&End) -> bool| cases().filter(|c| which(&c.end)).count();
    format!(
        "tests=\"{}\" failures=\"{}\" errors=\"{}\"",
        cases().count(),
        count(|e| matches!(e, End::Failed(..))),
        count(|e| matches!(e, End::Error(_))),
    )
}

fn write_case(out: &mut impl Write, class: &str, case: &Case) -> io::Result<()> {
    let head = format!("    <testcase classname=\"{class}\" name=\"{}\" time=\"0.000\"", exact(&case.name));
    let first = |text: &str| attribute(text.lines().next().unwrap_or_default());
    match &case.end {
        End::Passed(text) if text.is_empty() => writeln!(out, "{head}/>"),
        End::Passed(text) => writeln!(out, "{head}>\n      <system-out>{}</system-out>\n    </testcase>", junit(text)),
        End::Skipped(why) => writeln!(out, "{head}>\n      <skipped message=\"{}\"/>\n    </testcase>", attribute(why)),
        End::Failed(kind, text) => {
            let (message, text) = (first(text), junit(text));
            writeln!(
                out,
                "{head}>\n      <failure message=\"{message}\" type=\"{kind}\">{text}</failure>\n    </testcase>"
            )
        }
        End::Error(text) => {
            let (message, text) = (first(text), junit(text));
            writeln!(
                out,
                "{head}>\n      <error message=\"{message}\" type=\"incomplete\">{text}</error>\n    </testcase>"
            )
        }
    }
}

/// Escapes text for an attribute, on one line, cut to a length.
fn attribute(text: &str) -> String {
    exact(&untrusted::clipped(text, MAX_NAME))
}

/// Escapes text for an attribute, on one line.
fn exact(text: &str) -> String {
    junit(Inert::new(text).as_str())
}

/// Truncates names, and numbers cases with equal names: `… (2)`.
fn tell_apart(suites: &mut [Suite]) {
    let mut taken: HashSet<(String, String)> = HashSet::new();
    let mut numbers: HashMap<(String, String), usize> = HashMap::new();
    for suite in suites {
        suite.name = untrusted::clipped(&suite.name, MAX_NAME).into_owned();
        let class = exact(&suite.name);
        for case in &mut suite.cases {
            let own = untrusted::clipped(&case.name, MAX_NAME).into_owned();
            case.name.clone_from(&own);
            let n = numbers.entry((class.clone(), exact(&own))).or_insert(1);
            while !taken.insert((class.clone(), exact(&case.name))) {
                *n += 1;
                case.name = format!("{own} ({n})");
            }
        }
    }
}

fn suites(review: &Review) -> Vec<Suite> {
    let mut suites = Vec::new();
    let failed = &review.coverage.failed;
    if !failed.is_empty() {
        let mut cases: Vec<_> = failed
            .iter()
            .take(MAX_CASES)
            .map(|(path, reason)| Case {
                name: path.as_ref().map_or_else(|| "the change as a whole".to_owned(), shown),
                end: End::Error(format!("Not reviewed: {}", untrusted::clipped(reason, words::PROSE))),
            })
            .collect();
        if failed.len() > MAX_CASES {
            let text = format!("{} more parts of the change were not reviewed", failed.len() - MAX_CASES);
            cases.push(Case { name: text.clone(), end: End::Error(text) });
        }
        suites.push(Suite { name: "not reviewed".to_owned(), cases });
    }
    suites.extend(tests(review));
    if let Some(text) = words::truncated(review) {
        let case = Case { name: text.clone(), end: End::Skipped(text) };
        suites.push(Suite { name: "review truncated".to_owned(), cases: vec![case] });
    }
    let kept = words::worst(&review.findings, MAX_CASES);
    for group in kept.chunk_by(|a, b| a.file() == b.file()) {
        let name = group.first().and_then(|f| f.file()).map_or_else(|| "the change as a whole".to_owned(), shown);
        suites.push(Suite { name, cases: group.iter().map(|f| case(f, review)).collect() });
    }
    let all = review.findings.len() + review.unlisted.total() + review.unlisted.suppressed;
    let left = all - kept.len();
    if left > 0 {
        let text = format!("the worst {} of {all} findings are listed; {left} are left out", kept.len());
        suites.push(Suite {
            name: "not listed".to_owned(),
            cases: vec![Case { name: text.clone(), end: End::Passed(text) }],
        });
    }
    if suites.is_empty() {
        let (word, text) = words::verdict(review);
        let name = format!("{word}: {text}");
        let is_empty = review.outcome == Outcome::NothingToReview;
        let end = if is_empty { End::Skipped(text) } else { End::Passed(String::new()) };
        suites.push(Suite { name: "review".to_owned(), cases: vec![Case { name, end }] });
    }
    let given = words::context(review);
    if !given.is_empty() {
        let cases = given.into_iter().map(|text| Case { name: text, end: End::Passed(String::new()) }).collect();
        suites.push(Suite { name: "context".to_owned(), cases });
    }
    suites
}

/// Returns the project's tests: a case for each failed one that is named, else one for all of them.
fn tests(review: &Review) -> Option<Suite> {
    let t = review.tests.as_ref()?;
    let end = |text: String| match t.outcome {
        TestOutcome::Passed => End::Passed(text),
        TestOutcome::Failed if words::tests_block(review) => End::Failed("tests", text),
        TestOutcome::Failed => End::Passed(text),
        // The coverage lists the missing tests as not reviewed.
        TestOutcome::NotStarted | TestOutcome::TimedOut | TestOutcome::Stopped => End::Skipped(text),
    };
    let summary = format!("{}: {}", words::tests_word(t.outcome), t.summary);
    let mut cases = vec![Case { name: "the project's tests".to_owned(), end: end(summary) }];
    let failed = |name: &String| Case { name: name.clone(), end: end(format!("Test failed: {name}")) };
    cases.extend(t.failing.iter().map(failed));
    Some(Suite { name: "tests".to_owned(), cases })
}

fn shown(path: &crate::diff::RepoPath) -> String {
    Inert::new(path.as_bytes()).to_string()
}

fn case(f: &Finding, review: &Review) -> Case {
    let at = placed(f, review);
    let line = at.as_ref().and_then(|at| at.lines).map(|l| format!(" (line {})", l.first));
    let commit = f.commit.filter(|c| words::is_inside(Some(*c), review)).map(|c| format!(" (commit {})", c.short()));
    let name = format!("{}: {}{}", f.rule_id(), f.title(), line.or(commit).unwrap_or_default());
    let end = match words::aside(f) {
        Some(aside) => End::Skipped(format!("{}: {}", aside.label, aside.reason)),
        None => {
            let mut text = paragraphs(f, review).join("\n");
            if let Some(at) = at {
                let line = at.lines.map(|l| format!(":{}", l.first)).unwrap_or_default();
                text.push_str(&format!("\n{}{line}", shown(&at.file)));
            }
            let text = format!("{}: {text}\nfingerprint: {}", f.severity(), f.fingerprint());
            if f.blocking { End::Failed(f.severity().name(), text) } else { End::Passed(text) }
        }
    };
    Case { name, end }
}
