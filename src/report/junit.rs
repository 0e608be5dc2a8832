//! JUnit XML for Jenkins, GitLab and Azure: a suite for each file, a case for each finding.
//!
//! A blocking finding is a failure, a file that was not reviewed is an error, and a finding that
//! does not count is a skipped case. Other findings are passed cases with output. A review without
//! findings has one case, because Jenkins rejects a report without cases; it passed, or was skipped
//! if there was nothing to review. Case names are unique, because GitLab keeps only the first case
//! of a name.

use super::finding_text::{self, paragraphs, placed};
use super::source_words::SourceWords;
use super::words;
use crate::finding::Finding;
use crate::review::Review;
use crate::untrusted::{self, Inert, junit};
use crate::verdict::{Outcome, TestOutcome};
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::io::{self, Write};

/// Cases in the report, at most; the worst ones are kept. GitLab reads no file above 30 MB.
const MAX_CASES: usize = 5_000;
/// Bytes of a name and of an attribute, at most.
const MAX_NAME: usize = 400;

/// How a case ended.
enum CaseEnd {
    Passed(String),
    Failed(&'static str, String),
    Error(String),
    Skipped(String),
}

/// A case of a suite.
struct JunitCase {
    name: String,
    end: CaseEnd,
}

/// The cases of one file, or of one kind of remark about the review.
struct Suite {
    name: String,
    cases: Vec<JunitCase>,
}

impl Suite {
    /// Returns a suite of one case.
    fn of_one(suite: &str, name: String, end: CaseEnd) -> Self {
        Self {
            name: suite.to_owned(),
            cases: vec![JunitCase { name, end }],
        }
    }
}

/// Writes the document.
pub fn render(review: &Review, out: &mut dyn Write) -> io::Result<()> {
    write(vec![(suites(review), review)], out)
}

/// Writes the document of several repositories: the name of each suite starts with that of its
/// repository.
pub(super) fn render_all(
    reviews: &[(&str, Cow<'_, Review>)],
    out: &mut dyn Write,
) -> io::Result<()> {
    let named = reviews.iter().map(|(name, review)| {
        let mut suites = suites(review);
        for suite in &mut suites {
            suite.name = format!("{name}: {}", suite.name);
        }
        (suites, review.as_ref())
    });
    write(named.collect(), out)
}

/// Writes the document of these suites, each with its review.
fn write(reviews: Vec<(Vec<Suite>, &Review)>, out: &mut dyn Write) -> io::Result<()> {
    let mut out = io::BufWriter::new(out);
    let times = reviews.iter().map(|(_, review)| review.duration);
    let time = times.max().unwrap_or_default().as_secs_f64();
    let mut moments = Vec::new();
    let mut suites: Vec<Suite> = Vec::new();
    for (of_one, review) in reviews {
        let moment = review.timestamp.strftime("%Y-%m-%dT%H:%M:%S").to_string();
        moments.resize(moments.len() + of_one.len(), moment);
        suites.extend(of_one);
    }
    tell_apart(&mut suites);
    writeln!(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>")?;
    // Jenkins' schema has no count of skipped cases here.
    let all = counts(suites.iter().flat_map(|s| &s.cases));
    writeln!(
        out,
        "<testsuites name=\"{}\" {all} time=\"{time:.3}\">",
        crate::NAME
    )?;
    for (suite, moment) in suites.iter().zip(&moments) {
        let name = exact(&suite.name);
        let counts = counts(suite.cases.iter());
        let skipped = suite
            .cases
            .iter()
            .filter(|c| matches!(c.end, CaseEnd::Skipped(_)))
            .count();
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

/// Returns the attributes that count cases.
fn counts<'c>(cases: impl Iterator<Item = &'c JunitCase> + Clone) -> String {
    let failures = cases
        .clone()
        .filter(|c| matches!(c.end, CaseEnd::Failed(..)))
        .count();
    let errors = cases
        .clone()
        .filter(|c| matches!(c.end, CaseEnd::Error(_)))
        .count();
    format!(
        "tests=\"{}\" failures=\"{failures}\" errors=\"{errors}\"",
        cases.count()
    )
}

/// Writes a case. `class` is the escaped name of its suite.
fn write_case(out: &mut impl Write, class: &str, case: &JunitCase) -> io::Result<()> {
    let head = format!(
        "    <testcase classname=\"{class}\" name=\"{}\" time=\"0.000\"",
        exact(&case.name)
    );
    match &case.end {
        CaseEnd::Passed(text) if text.is_empty() => writeln!(out, "{head}/>"),
        CaseEnd::Passed(text) => {
            writeln!(
                out,
                "{head}>\n      <system-out>{}</system-out>\n    </testcase>",
                junit(text)
            )
        }
        CaseEnd::Skipped(why) => {
            writeln!(
                out,
                "{head}>\n      <skipped message=\"{}\"/>\n    </testcase>",
                attribute(why)
            )
        }
        CaseEnd::Failed(kind, text) => {
            let (message, text) = (first_line(text), junit(text));
            writeln!(
                out,
                "{head}>\n      <failure message=\"{message}\" type=\"{kind}\">{text}</failure>\n    </testcase>"
            )
        }
        CaseEnd::Error(text) => {
            let (message, text) = (first_line(text), junit(text));
            writeln!(
                out,
                "{head}>\n      <error message=\"{message}\" type=\"incomplete\">{text}</error>\n    </testcase>"
            )
        }
    }
}

/// Escapes the first line of a text for an attribute, truncated to a length.
fn first_line(text: &str) -> String {
    attribute(text.lines().next().unwrap_or_default())
}

/// Escapes text for an attribute, on one line, truncated to a length.
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

/// Returns the suites in the order of the document: what is incomplete, the tests, the findings by
/// file, and remarks.
fn suites(review: &Review) -> Vec<Suite> {
    let mut suites = Vec::new();
    suites.extend(unreviewed(review));
    suites.extend(tests(review));
    suites.extend(words::truncated(review).map(|text| {
        let end = CaseEnd::Skipped(text.clone());
        Suite::of_one("review truncated", text, end)
    }));
    let kept = finding_text::worst(&review.findings, MAX_CASES);
    suites.extend(
        kept.chunk_by(|a, b| a.file() == b.file())
            .map(|group| of_file(group, review)),
    );
    suites.extend(unlisted(review, kept.len()));
    if suites.is_empty() {
        suites.push(without_findings(review));
    }
    suites.extend(context(review));
    suites
}

/// Returns the parts of the change that were not reviewed, `MAX_CASES` at most.
fn unreviewed(review: &Review) -> Option<Suite> {
    let failed = &review.coverage.failed;
    let words = SourceWords::of(&review.source);
    let mut cases: Vec<_> = failed
        .iter()
        .take(MAX_CASES)
        .map(|f| JunitCase {
            name: f
                .file
                .as_ref()
                .map_or_else(|| words.whole.to_owned(), shown),
            end: CaseEnd::Error(format!(
                "Not reviewed: {}",
                untrusted::clipped(&f.reason(), finding_text::PROSE)
            )),
        })
        .collect();
    if failed.len() > MAX_CASES {
        let text = format!(
            "{} more {} were not reviewed",
            failed.len() - MAX_CASES,
            words.parts
        );
        cases.push(JunitCase {
            name: text.clone(),
            end: CaseEnd::Error(text),
        });
    }
    (!cases.is_empty()).then(|| Suite {
        name: "not reviewed".to_owned(),
        cases,
    })
}

/// Returns the findings in one file, or about the change as a whole.
fn of_file(group: &[&Finding], review: &Review) -> Suite {
    let file = group.first().and_then(|f| f.file());
    let whole = SourceWords::of(&review.source).whole;
    Suite {
        name: file.map_or_else(|| whole.to_owned(), shown),
        cases: group.iter().map(|f| case(f, review)).collect(),
    }
}

/// Returns how many findings have no case. `kept` is the number of those that have one.
fn unlisted(review: &Review, kept: usize) -> Option<Suite> {
    let all = review.findings.len() + review.unlisted.total() + review.unlisted.suppressed;
    let left = all - kept;
    (left > 0).then(|| {
        let text = format!("the worst {kept} of {all} findings are listed; {left} are left out");
        Suite::of_one("not listed", text.clone(), CaseEnd::Passed(text))
    })
}

/// Returns the one case of a review without findings.
fn without_findings(review: &Review) -> Suite {
    let (word, text) = words::verdict(review);
    let name = format!("{word}: {text}");
    let end = if review.outcome == Outcome::NothingToReview {
        CaseEnd::Skipped(text)
    } else {
        CaseEnd::Passed(String::new())
    };
    Suite::of_one("review", name, end)
}

/// Returns the tickets and pages that models saw in addition to the change.
fn context(review: &Review) -> Option<Suite> {
    let given = words::context(review).into_iter();
    let cases: Vec<_> = given
        .map(|name| JunitCase {
            name,
            end: CaseEnd::Passed(String::new()),
        })
        .collect();
    (!cases.is_empty()).then(|| Suite {
        name: "context".to_owned(),
        cases,
    })
}

/// Returns the project's tests: a case for each failed one that is named, else one for all of them.
fn tests(review: &Review) -> Option<Suite> {
    let t = review.tests.as_ref()?;
    let summary = format!("{}: {}", words::tests_word(t.outcome), t.summary);
    let mut cases = vec![JunitCase {
        name: "the project's tests".to_owned(),
        end: end_of_test(review, t.outcome, summary),
    }];
    cases.extend(t.failing.iter().map(|name| {
        let text = format!("Test failed: {name}");
        JunitCase {
            name: name.clone(),
            end: end_of_test(review, t.outcome, text),
        }
    }));
    Some(Suite {
        name: "tests".to_owned(),
        cases,
    })
}

/// Returns how the case of a test ended.
fn end_of_test(review: &Review, outcome: TestOutcome, text: String) -> CaseEnd {
    match outcome {
        TestOutcome::Passed => CaseEnd::Passed(text),
        TestOutcome::Failed if words::tests_block(review) => CaseEnd::Failed("tests", text),
        TestOutcome::Failed => CaseEnd::Passed(text),
        // The coverage lists the missing tests as not reviewed.
        TestOutcome::NotStarted | TestOutcome::TimedOut | TestOutcome::Stopped => {
            CaseEnd::Skipped(text)
        }
    }
}

/// Returns a path for display.
fn shown(path: &crate::diff::RepoPath) -> String {
    Inert::new(path.as_bytes()).to_string()
}

/// Returns the case of a finding.
fn case(f: &Finding, review: &Review) -> JunitCase {
    let at = placed(f, review);
    let line = at
        .as_ref()
        .and_then(|at| at.lines)
        .map(|l| format!(" (line {})", l.first));
    let commit = f
        .commit
        .filter(|c| finding_text::is_inside(Some(*c), review))
        .map(|c| format!(" (commit {})", c.short()));
    let name = format!(
        "{}: {}{}",
        f.rule_id(),
        f.title(),
        line.or(commit).unwrap_or_default()
    );
    let end = match finding_text::aside(f) {
        Some(aside) => CaseEnd::Skipped(format!("{}: {}", aside.label, aside.reason)),
        None => {
            let mut text = paragraphs(f, review).join("\n");
            if let Some(at) = at {
                let line = at
                    .lines
                    .map(|l| format!(":{}", l.first))
                    .unwrap_or_default();
                text.push_str(&format!("\n{}{line}", shown(&at.file)));
            }
            let text = format!("{}: {text}\nfingerprint: {}", f.severity(), f.fingerprint());
            if f.blocking {
                CaseEnd::Failed(f.severity().name(), text)
            } else {
                CaseEnd::Passed(text)
            }
        }
    };
    JunitCase { name, end }
}
