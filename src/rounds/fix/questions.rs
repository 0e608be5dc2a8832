//! The two questions of a fix: to plan it, and to execute the plan. Findings, plan and failures are
//! data for the model.

use crate::ai::claim::fix::{FixPlan, FixReport, plan_schema, report_schema};
use crate::ai::material::Document;
use crate::ai::prompt::Exhibit;
use crate::ai::redact;
use crate::ai::reply;
use crate::ai::run::Question;
use crate::rules::RuleSet;
use crate::text::first_bytes;
use crate::wire;
use crate::wire::fixing::StoredPlan;

/// Bytes of a failure that a model gets, at most.
const MOST_FAILURE: usize = 16 << 10;

/// The reasons why an attempt failed, for the next one.
#[derive(Clone, Debug, Default)]
pub(super) struct FailedAttempt {
    pub(super) reasons: Vec<String>,
    /// The change of the attempt as a patch, with secrets masked.
    pub(super) patch: String,
}

/// Returns the question for a plan.
pub(super) fn plan(
    findings: &[wire::Finding],
    allowed: &[String],
    rules: &RuleSet,
) -> Question<FixPlan> {
    Question {
        system: include_str!("plan.md"),
        task: "Plan how to fix the findings above.",
        exhibits: vec![
            exhibit("findings", &told(findings), rules),
            exhibit("allowed", &allowed.join("\n"), rules),
        ],
        schema: plan_schema(),
        parse: reply::fix_plan,
    }
}

/// Returns the question that executes a plan. `failure` has the reasons why the previous attempt
/// failed.
pub(super) fn execute(
    findings: &[wire::Finding],
    plan: &StoredPlan,
    allowed: &[String],
    failure: Option<&FailedAttempt>,
    rules: &RuleSet,
) -> Question<FixReport> {
    let mut exhibits = vec![
        exhibit("findings", &told(findings), rules),
        exhibit("allowed", &allowed.join("\n"), rules),
        exhibit("plan", &plan_text(plan), rules),
    ];
    if let Some(failure) = failure {
        exhibits.push(exhibit(
            "failure",
            &head(&failure.reasons.join("\n")),
            rules,
        ));
        exhibits.push(exhibit("failed_change", &head(&failure.patch), rules));
    }
    Question {
        system: include_str!("execute.md"),
        task: match failure {
            None => "Execute the plan above in the private copy.",
            Some(_) => {
                "An attempt to execute the plan above failed, and its changes are gone. Execute the plan again in the \
                private copy, without the mistake."
            }
        },
        exhibits,
        schema: report_schema(),
        parse: reply::fix_report,
    }
}

/// Formats a plan as text, which people read and edit, and models execute.
pub(super) fn plan_text(plan: &StoredPlan) -> String {
    let mut text = format!("{}\n", plan.summary);
    for (i, step) in plan.steps.iter().enumerate() {
        text.push_str(&format!("\n{}. {}\n", i + 1, step.text));
        step.files
            .iter()
            .for_each(|file| text.push_str(&format!("   file: {file}\n")));
    }
    text
}

/// Formats the findings as text.
fn told(findings: &[wire::Finding]) -> String {
    let mut text = String::new();
    for f in findings {
        let place = match (&f.file, f.line) {
            (Some(file), Some(line)) => format!("{file}:{line}"),
            (Some(file), None) => file.clone(),
            (None, _) => "the whole change".to_owned(),
        };
        text.push_str(&format!(
            "{} {} {} at {place}\n",
            f.id,
            wire::name(&f.severity),
            f.rule_id
        ));
        let parts = [
            ("title", Some(&f.title)),
            ("message", Some(&f.message)),
            ("failure", f.failure.as_ref()),
            ("suggestion", f.suggestion.as_ref()),
            ("code", Some(&f.quote)),
            ("replacement", f.replacement.as_ref()),
        ];
        for (name, value) in parts {
            if let Some(value) = value.filter(|v| !v.trim().is_empty()) {
                text.push_str(&format!(
                    "  {name}: {}\n",
                    value.trim_end().replace('\n', "\n    ")
                ));
            }
        }
    }
    text
}

/// Returns a text as data for the model, with secrets masked.
fn exhibit(kind: &'static str, text: &str, rules: &RuleSet) -> Exhibit {
    let text = redact::text(rules, text.as_bytes()).text;
    (
        kind,
        Document {
            name: String::new(),
            text,
            folder: Vec::new(),
        },
    )
}

/// Truncates a text to its first bytes.
fn head(text: &str) -> String {
    first_bytes(text, MOST_FAILURE).to_owned()
}
