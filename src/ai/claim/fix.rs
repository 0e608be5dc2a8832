//! Schemas of the answers during a fix: first a plan, then a report. The edits themselves are made
//! through tools.

use super::strict_schema_of;
use crate::ai::ask;
use schemars::JsonSchema;
use std::sync::LazyLock;

/// How findings are to be fixed.
#[derive(Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
pub struct FixPlan {
    /// The value of the prompt's last line.
    pub nonce: String,
    /// The idea of the fix, in one or two sentences.
    pub summary: String,
    /// The steps, in order.
    pub steps: Vec<PlanStep>,
}

/// One step of a plan.
#[derive(Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
pub struct PlanStep {
    /// The change and its reason.
    pub text: String,
    /// Paths of the files that the step changes or creates, from the top folder.
    pub files: Vec<String>,
}

/// The changes that a model reports.
#[derive(Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
pub struct FixReport {
    /// The value of the prompt's last line.
    pub nonce: String,
    /// The change, in one or two sentences.
    pub summary: String,
    /// Why a finding is not fixed; null if all are.
    pub problem: Option<String>,
}

/// Returns the schema of a [`FixPlan`]. It never changes during a run.
pub fn plan_schema() -> &'static ask::Schema {
    static SCHEMA: LazyLock<ask::Schema> = LazyLock::new(|| ask::Schema {
        name: "fix_plan",
        value: strict_schema_of::<FixPlan>(),
    });
    &SCHEMA
}

/// Returns the schema of a [`FixReport`]. It never changes during a run.
pub fn report_schema() -> &'static ask::Schema {
    static SCHEMA: LazyLock<ask::Schema> = LazyLock::new(|| ask::Schema {
        name: "fix_report",
        value: strict_schema_of::<FixReport>(),
    });
    &SCHEMA
}
