//! What a model is asked to say of a fix: a plan first, then what it did. The edits themselves come by tools.

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
    /// What to do, in order.
    pub steps: Vec<PlanStep>,
}

/// One step of a plan.
#[derive(Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
pub struct PlanStep {
    /// What to change and why.
    pub text: String,
    /// Paths of the files that the step changes or creates, from the top folder.
    pub files: Vec<String>,
}

/// What a model says that it did.
#[derive(Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
pub struct FixReport {
    /// The value of the prompt's last line.
    pub nonce: String,
    /// What was changed, in one or two sentences.
    pub summary: String,
    /// Why a finding is not fixed; null if all are.
    pub problem: Option<String>,
}

/// Returns the form of a [`FixPlan`]: always the same text.
pub fn plan_schema() -> &'static ask::Schema {
    static SCHEMA: LazyLock<ask::Schema> =
        LazyLock::new(|| ask::Schema { name: "fix_plan", value: strict_schema_of::<FixPlan>() });
    &SCHEMA
}

/// Returns the form of a [`FixReport`]: always the same text.
pub fn report_schema() -> &'static ask::Schema {
    static SCHEMA: LazyLock<ask::Schema> =
        LazyLock::new(|| ask::Schema { name: "fix_report", value: strict_schema_of::<FixReport>() });
    &SCHEMA
}
