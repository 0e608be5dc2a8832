//! JUnit XML for Jenkins, GitLab and Azure: a suite for each file, a case for each finding.
//!
//! A blocking finding is a failure, a file that was not reviewed is an error, and a finding that
//! does not count is a skipped case. Other findings are passed cases with output. A review without
//! findings has one case, because Jenkins rejects a report without cases; it passed, or was skipped
//! if there was nothing to review. Case names are unique, because GitLab keeps only the first case
//! of a name.

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
enum CaseEnd {
    Passed(String),
    Failed(&'static str, String),
    Error(String),
    Skipped(String),
}

struct JunitCase {
    name: String,
    end: CaseEnd,
}

struct Suite {
    name: String,
    cases: Vec<JunitCase>,
}

/// Writes the document.
pub fn render(review: &Review, out: &mut dyn Write) -> io::Result<()> {
    let mut suites = suites(review);
    tell_apart(&mut suites);
    let mut out = io::BufWriter::new(out);
    let time = review.duration.as_secs_f64();
    writeln!(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>")?;
    // Jenkins' schema has no count of skipped cases here.
    let all = counts(suites.iter().flat_map(|s| &s.cases));
    writeln!(
        out,
        "<testsuites name=\"{}\" {all} time=\"{time:.3}\">",
        crate::NAME
    )?;
    let moment = review.timestamp.strftime("%Y-%m-%dT%H:%M:%S");
    for suite in &suites {
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

fn suites(review: &Review) -> Vec<Suite> {
    let mut suites = Vec::new();
    let failed = &review.coverage.failed;
    if !failed.is_empty() {
        let mut cases: Vec<_> = failed
            .iter()
            .take(MAX_CASES)
            .map(|f| JunitCase {
                name: f
                    .file
                    .as_ref()
                    .map_or_else(|| "the change as a whole".to_owned(), shown),
                end: CaseEnd::Error(format!(
                    "Not reviewed: {}",
                    untrusted::clipped(&f.reason(), words::PROSE)
                )),
            })
            .collect();
        if failed.len() > MAX_CASES {
            let text = format!(
                "{} more parts of the change were not reviewed",
                failed.len() - MAX_CASES
            );
            cases.push(JunitCase {
                name: text.clone(),
                end: CaseEnd::Error(text),
            });
        }
        suites.push(Suite {
            name: "not reviewed".to_owned(),
            cases,
        });
    }
    suites.extend(tests(review));
    if let Some(text) = words::truncated(review) {
        let case = JunitCase {
            name: text.clone(),
            end: CaseEnd::Skipped(text),
        };
        suites.push(Suite {
            name: "review truncated".to_owned(),
            cases: vec![case],
        });
    }
    let kept = words::worst(&review.findings, MAX_CASES);
    for group in kept.chunk_by(|a, b| a.file() == b.file()) {
        let name = group
            .first()
            .and_then(|f| f.file())
            .map_or_else(|| "the change as a whole".to_owned(), shown);
        suites.push(Suite {
            name,
            cases: group.iter().map(|f| case(f, review)).collect(),
        });
    }
    let all = review.findings.len() + review.unlisted.total() + review.unlisted.suppressed;
    let left = all - kept.len();
    if left > 0 {
        let text = format!(
            "the worst {} of {all} findings are listed; {left} are left out",
            kept.len()
        );
        suites.push(Suite {
            name: "not listed".to_owned(),
            cases: vec![JunitCase {
                name: text.clone(),
                end: CaseEnd::Passed(text),
            }],
        });
    }
    if suites.is_empty() {
        let (word, text) = words::verdict(review);
        let name = format!("{word}: {text}");
        let is_empty = review.outcome == Outcome::NothingToReview;
        let end = if is_empty {
            CaseEnd::Skipped(text)
        } else {
            CaseEnd::Passed(String::new())
        };
        suites.push(Suite {
            name: "review".to_owned(),
            cases: vec![JunitCase { name, end }],
        });
    }
    let given = words::context(review);
    if !given.is_empty() {
        let cases = given
            .into_iter()
            .map(|text| JunitCase {
                name: text,
                end: CaseEnd::Passed(String::new()),
            })
            .collect();
        suites.push(Suite {
            name: "context".to_owned(),
            cases,
        });
    }
    suites
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

fn shown(path: &crate::diff::RepoPath) -> String {
    Inert::new(path.as_bytes()).to_string()
}

fn case(f: &Finding, review: &Review) -> JunitCase {
    let at = placed(f, review);
    let line = at
        .as_ref()
        .and_then(|at| at.lines)
        .map(|l| format!(" (line {})", l.first));
    let commit = f
        .commit
        .filter(|c| words::is_inside(Some(*c), review))
        .map(|c| format!(" (commit {})", c.short()));
    let name = format!(
        "{}: {}{}",
        f.rule_id(),
        f.title(),
        line.or(commit).unwrap_or_default()
    );
    let end = match words::aside(f) {
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
