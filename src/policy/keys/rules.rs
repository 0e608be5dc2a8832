//! The keys of `[rules]`.

use super::{PolicyKey, ReceiptBinding, Trust, Weaker};
use crate::finding::Severity;
use crate::policy::kind::ValueKind;
use crate::policy::value::PolicyValue;
use crate::policy::{Policy, RuleProfile};

/// In the order of the documentation.
const PROFILES: &[&str] = &["default", "audit"];
/// The same profiles, for the comparison of two policies.
const STRICTEST_FIRST: &[&str] = &["audit", "default"];

pub(in crate::policy) static RULES: &[PolicyKey<Policy>] = &[
    PolicyKey {
        name: "disable",
        about: "IDs of rules that do not run. `claude-reviewer rules list` lists the IDs.",
        kind: ValueKind::RuleIds,
        trust: Trust::Open,
        weaker: Weaker::EntryAdded,
        receipt: ReceiptBinding::Bound,
        get: |p| PolicyValue::List(p.rules.disable.clone()),
        set: |p, v| p.rules.disable = v.list().to_vec(),
    },
    PolicyKey {
        name: "severity",
        about: "Severities that replace those of rules, by rule ID: { \"todo-comment\" = \"minor\" }.",
        kind: ValueKind::SeverityTable,
        trust: Trust::Open,
        weaker: Weaker::RuleSeverityLower,
        receipt: ReceiptBinding::Bound,
        get: |p| {
            let rows = p
                .rules
                .severity
                .iter()
                .map(|(id, s)| (id.clone(), PolicyValue::Text(s.name().to_owned())));
            PolicyValue::Table(rows.collect())
        },
        set: |p, v| {
            let rows = v
                .table()
                .iter()
                .filter_map(|(id, s)| Severity::parse(s.text()).map(|s| (id.clone(), s)));
            p.rules.severity = rows.collect();
        },
    },
    PolicyKey {
        name: "paths",
        about: "Folders of the repository that contain team rules.",
        kind: ValueKind::Files,
        trust: Trust::Open,
        weaker: Weaker::EntryRemoved,
        receipt: ReceiptBinding::Bound,
        get: |p| PolicyValue::List(p.rules.paths.clone()),
        set: |p, v| p.rules.paths = v.list().to_vec(),
    },
    PolicyKey {
        name: "profile",
        about: "With audit, rules run that report opinions and possible problems too, and a finding about a value of unknown origin is minor instead of a suggestion.",
        kind: ValueKind::Choice(PROFILES),
        trust: Trust::Open,
        weaker: Weaker::Later(STRICTEST_FIRST),
        receipt: ReceiptBinding::Bound,
        get: |p| PolicyValue::Text(p.rules.profile.name().to_owned()),
        set: |p, v| p.rules.profile = RuleProfile::parse(v.text()),
    },
];

impl RuleProfile {
    /// Returns the name in policy files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::Audit => "audit",
        }
    }

    fn parse(name: &str) -> Self {
        if name == "audit" {
            Self::Audit
        } else {
            Self::Default
        }
    }
}
