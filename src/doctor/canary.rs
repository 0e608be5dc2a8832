//! Small changes through the real pipeline: one with a known bug must be blocked, a clean one must
//! pass, and an unreviewed one must not pass.
//!
//! They are reviewed like any other change, under the policy that applies here. Only the model is
//! replaced by a script, so that the test is about the gate and not about the model.

use super::{CheckSection, CheckState, DoctorCheck, Patient};
use crate::ai::Script;
use crate::ai::ask::Read;
use crate::diff::{LineNo, RepoPath};
use crate::error::{Error, ExitStatus, Result};
use crate::finding::{Finding, Origin};
use crate::policy::Backend;
use crate::progress::Silent;
use crate::request::{CacheUse, Input, ReviewRequest, Source};
use crate::review::{self, Review, World};
use crate::stop::Stop;
use crate::verdict::Verdict;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;

/// The file that the canaries add.
const PATH: &str = "src/claude_reviewer_canary.py";

/// A bug that a reader sees and no rule reports: the index is always out of range.
const SEEDED: &[&str] = &[
    "def last(items):",
    "    \"\"\"Returns the last of the items, of which there is at least one.\"\"\"",
    "    return items[len(items)]",
];
/// Line of the bug, 1-based.
const BUG: u32 = 3;

const CLEAN: &[&str] = &[
    "def last(items):",
    "    \"\"\"Returns the last of the items, of which there is at least one.\"\"\"",
    "    return items[-1]",
];

/// The answer of the script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Says {
    /// Reports the bug.
    Bug,
    Nothing,
    /// An invalid answer: prose.
    Prose,
}

/// A change, the answer about it, and the expected result.
struct Trial {
    name: &'static str,
    lines: Vec<String>,
    says: Says,
    /// Checks the review: `Ok` describes the success, `Err` the failure.
    judge: fn(&Review) -> std::result::Result<String, String>,
}

/// Tests the gate.
pub(super) fn examine(patient: &Patient<'_>) -> CheckSection {
    let mut section = CheckSection::new("self-test");
    let trials = [
        Trial {
            name: "model's finding",
            lines: owned(SEEDED),
            says: Says::Bug,
            judge: bug_blocks,
        },
        Trial {
            name: "rules' finding",
            lines: leak(),
            says: Says::Nothing,
            judge: leak_blocks,
        },
        Trial {
            name: "clean change",
            lines: owned(CLEAN),
            says: Says::Nothing,
            judge: passes,
        },
        Trial {
            name: "no review",
            lines: owned(CLEAN),
            says: Says::Prose,
            judge: is_incomplete,
        },
    ];
    for trial in trials {
        section.checks.push(match run(patient, &trial) {
            Ok(review) => match (trial.judge)(&review) {
                Ok(right) => DoctorCheck::good(trial.name, right),
                Err(wrong) => {
                    DoctorCheck::bad(trial.name, wrong).hint("claude-reviewer policy show --origin")
                }
            },
            Err(e) => failed(trial.name, &e),
        });
    }
    section
}

/// Returns the lines of a program as a trial takes them.
fn owned(lines: &[&str]) -> Vec<String> {
    lines.iter().map(|l| (*l).to_owned()).collect()
}

fn failed(name: &'static str, e: &Error) -> DoctorCheck {
    let check = DoctorCheck::bad(name, format!("cannot run the review: {}", e.message));
    DoctorCheck {
        hint: e.hints.first().cloned(),
        ..check
    }
}

/// Returns a program with a generated private key.
fn leak() -> Vec<String> {
    let body = "MIIEowIBAAKCAQEAx7K2pQ9vT4mWc8bYz1RfLd6NhGjXsE3uA5oVtCqPwJyHkBrM";
    vec![
        format!("KEY = \"\"\"{}", boundary("BEGIN")),
        body.to_owned(),
        body.chars().rev().collect(),
        boundary("END") + "\"\"\"",
    ]
}

/// Returns the first or the last line of a private key, in two parts: this file must not have a key
/// itself.
fn boundary(word: &str) -> String {
    format!("-----{word} RSA PRIVATE {}-----", "KEY")
}

fn run(patient: &Patient<'_>, trial: &Trial) -> Result<Review> {
    // The script replaces the backends of the policy, or any known backend if the policy enables
    // none.
    let known = patient.policy.backends.first().map(|b| b.name.clone());
    let names: Vec<String> = if asked(patient).is_empty() {
        known.into_iter().collect()
    } else {
        asked(patient).to_vec()
    };
    review(patient, &trial.lines, &names, Some(&script(trial.says)))
}

/// Returns the names of the backends to ask.
fn asked<'a>(patient: &'a Patient<'_>) -> &'a [String] {
    if patient.backends.is_empty() {
        &patient.policy.review.backends
    } else {
        patient.backends
    }
}

/// Reviews an added file as a patch, so that no repository is needed.
fn review(
    patient: &Patient<'_>,
    lines: &[String],
    backends: &[String],
    script: Option<&Script>,
) -> Result<Review> {
    let folder = tempfile::tempdir().map_err(|e| no_room(&e))?;
    let path = folder.path().join("canary.patch");
    write_patch(&path, lines).map_err(|e| no_room(&e))?;
    let mut request = ReviewRequest::new(Source::Patch(Input::File(path)), patient.dir.to_owned());
    request.config = patient.config.cloned();
    request.cache = CacheUse::Refused;
    request.backends = backends.to_vec();
    let stop = Stop::default();
    let world = World {
        env: patient.env,
        progress: &Silent,
        now: jiff::Timestamp::now(),
        stop: &stop,
        script,
        agent: None,
        findings: None,
        trackers: None,
    };
    review::run(&request, &world)
}

fn no_room(e: &std::io::Error) -> Error {
    Error::incomplete("cannot create a temporary folder")
        .caused_by(e)
        .hint("set TMPDIR")
}

fn write_patch(path: &Path, lines: &[String]) -> std::io::Result<()> {
    let mut patch = format!(
        "diff --git a/{PATH} b/{PATH}\nnew file mode 100644\n--- /dev/null\n+++ b/{PATH}\n"
    );
    let _ = writeln!(patch, "@@ -0,0 +1,{} @@", lines.len());
    for line in lines {
        let _ = writeln!(patch, "+{line}");
    }
    std::fs::File::create(path)?.write_all(patch.as_bytes())
}

/// Returns the answer of a model that did or did not notice the bug.
fn script(says: Says) -> Script {
    let review = json!({
        "nonce": "NONCE",
        "summary": "Adds a function.",
        "files_reviewed": [PATH],
        "findings": if says == Says::Bug { vec![claim()] } else { Vec::new() },
        "design_compliance": null,
        "missing_requirements": [],
    });
    let verdict =
        json!({"nonce": "NONCE", "refuted": false, "reason": "The last index is one less."});
    // With a read of the lines, so that the finding has the best possible evidence.
    let read = LineNo::new(BUG).map(|line| Read {
        path: RepoPath::from(PATH),
        first: line,
        last: line,
    });
    Script {
        review: if says == Says::Prose {
            "Looks good to me!".to_owned()
        } else {
            review.to_string()
        },
        verdict: verdict.to_string(),
        read: read.into_iter().collect(),
    }
}

fn claim() -> Value {
    json!({
        "file": PATH,
        "line": BUG,
        "end_line": BUG,
        "quote": SEEDED[BUG as usize - 1],
        "severity": "critical",
        "category": "bug",
        "cwe": null,
        "title": "The last index is one too far",
        "message": "len(items) is one past the last index, so this raises IndexError for every list.",
        "failure": "last([1]) raises IndexError.",
        "suggestion": "Use items[-1].",
        "replacement": null,
        "convention": null,
    })
}

fn is_models(f: &Finding) -> bool {
    !matches!(f.origin(), Origin::Rules)
}

fn bug_blocks(review: &Review) -> std::result::Result<String, String> {
    let Some(found) = review.findings.iter().find(|f| is_models(f)) else {
        return Err(format!(
            "a seeded bug that the model reported is missing from the findings{}",
            why(review)
        ));
    };
    let line = found.lines().map(|l| l.first.get());
    if line != Some(BUG) {
        return Err(format!(
            "a seeded bug in line {BUG} is reported in line {}",
            line.unwrap_or_default()
        ));
    }
    blocked(review, "a critical bug that a model reports", is_models)
}

fn leak_blocks(review: &Review) -> std::result::Result<String, String> {
    blocked(review, "a private key that a rule reports", |f| {
        !is_models(f)
    })
}

fn blocked(
    review: &Review,
    what: &str,
    by: impl Fn(&Finding) -> bool,
) -> std::result::Result<String, String> {
    let blocking = review.findings.iter().filter(|f| f.blocking).any(by);
    if review.verdict == Verdict::Block && review.exit == ExitStatus::Block && blocking {
        return Ok(format!("{what} blocks (exit {})", review.exit.code()));
    }
    let (verdict, exit) = (review.verdict.name(), review.exit.code());
    Err(format!(
        "{what} does not block under this policy: verdict {verdict}, exit {exit}{}",
        why(review)
    ))
}

fn passes(review: &Review) -> std::result::Result<String, String> {
    if review.exit == ExitStatus::Pass && matches!(review.verdict, Verdict::Pass | Verdict::Warn) {
        return Ok(format!("passes (exit {})", review.exit.code()));
    }
    let (verdict, exit) = (review.verdict.name(), review.exit.code());
    Err(format!(
        "a change without findings does not pass: verdict {verdict}, exit {exit}{}",
        why(review)
    ))
}

fn is_incomplete(review: &Review) -> std::result::Result<String, String> {
    if review.verdict == Verdict::Incomplete {
        return Ok(format!(
            "an invalid reply makes the review incomplete (exit {})",
            review.exit.code()
        ));
    }
    Err(format!(
        "an invalid reply was accepted: verdict {}",
        review.verdict.name()
    ))
}

/// Returns the first failure of a review.
fn why(review: &Review) -> String {
    review
        .coverage
        .failed
        .first()
        .map(|f| format!(" ({})", f.cause))
        .unwrap_or_default()
}

/// Asks every backend of the policy to review the seeded bug.
pub(super) fn probe(patient: &Patient<'_>) -> Vec<CheckSection> {
    let known = asked(patient)
        .iter()
        .filter_map(|n| patient.policy.backend(n));
    known.map(|backend| ask(patient, backend)).collect()
}

fn ask(patient: &Patient<'_>, backend: &Backend) -> CheckSection {
    let mut section = CheckSection::new(format!("probe of {}", backend.name));
    let lines: Vec<_> = SEEDED.iter().map(|l| (*l).to_owned()).collect();
    let review = match review(patient, &lines, std::slice::from_ref(&backend.name), None) {
        Ok(review) => review,
        Err(e) => {
            section.checks.push(failed("review", &e));
            return section;
        }
    };
    let took = review.duration.as_secs_f64();
    if !review.coverage.is_complete() {
        for failure in &review.coverage.failed {
            let text = failure.reason();
            section.checks.push(DoctorCheck::bad("review", &text));
        }
        return section;
    }
    section.checks.push(DoctorCheck::good(
        "review",
        format!("complete after {took:.1} s"),
    ));
    for usage in &review.models.usage {
        let spent = &usage.spent;
        let cost = spent
            .cost_usd
            .map(|usd| format!(", ${usd:.4}"))
            .unwrap_or_default();
        let text = format!(
            "{}: {} tokens in ({} cached), {} out{cost}",
            usage.model, spent.input_tokens, spent.cached_tokens, spent.output_tokens
        );
        section.checks.push(DoctorCheck::told("usage", text));
    }
    section
        .checks
        .push(if review.findings.iter().any(is_models) {
            DoctorCheck::good("bug", "found the seeded bug")
        } else {
            // A model that misses the bug is not a defect of the gate.
            DoctorCheck::new(
                "bug",
                CheckState::Doubtful,
                "the seeded bug was not found: a stronger model would see it",
            )
        });
    section
}
