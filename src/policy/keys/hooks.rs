//! The keys of `[hooks]`.

use super::{PolicyKey, ReceiptBinding, Trust, Weaker};
use crate::policy::kind::ValueKind;
use crate::policy::value::PolicyValue;
use crate::policy::{HookMode, Policy, PostCommit};

/// Strictest first.
const HOOK_MODES: &[&str] = &["full", "rules", "off"];
const POST_COMMITS: &[&str] = &["off", "background"];

pub(in crate::policy) static HOOKS: &[PolicyKey<Policy>] = &[
    PolicyKey {
        name: "pre_commit",
        about: "Mode of the pre-commit hook: rules only, backends too (full), or off.",
        kind: ValueKind::Choice(HOOK_MODES),
        trust: Trust::Open,
        weaker: Weaker::Later(HOOK_MODES),
        receipt: ReceiptBinding::Unbound,
        get: |p| PolicyValue::Text(p.hooks.pre_commit.name().to_owned()),
        set: |p, v| p.hooks.pre_commit = HookMode::parse(v.text()),
    },
    PolicyKey {
        name: "pre_push",
        about: "Mode of the pre-push hook: rules only, backends too (full), or off.",
        kind: ValueKind::Choice(HOOK_MODES),
        trust: Trust::Open,
        weaker: Weaker::Later(HOOK_MODES),
        receipt: ReceiptBinding::Unbound,
        get: |p| PolicyValue::Text(p.hooks.pre_push.name().to_owned()),
        set: |p, v| p.hooks.pre_push = HookMode::parse(v.text()),
    },
    PolicyKey {
        name: "post_commit",
        about: "What follows a commit: nothing (off), or a detached review by the backends (background).",
        kind: ValueKind::Choice(POST_COMMITS),
        trust: Trust::Operator,
        weaker: Weaker::Never,
        receipt: ReceiptBinding::Unbound,
        get: |p| PolicyValue::Text(p.hooks.post_commit.name().to_owned()),
        set: |p, v| p.hooks.post_commit = PostCommit::parse(v.text()),
    },
    PolicyKey {
        name: "max_cost_per_day",
        about: "US dollars that all background reviews of a user may cost in a day (UTC).",
        kind: ValueKind::Number(0.0, 10_000.0),
        trust: Trust::Operator,
        weaker: Weaker::Never,
        receipt: ReceiptBinding::Unbound,
        get: |p| PolicyValue::Number(p.hooks.max_cost_per_day),
        set: |p, v| p.hooks.max_cost_per_day = v.number(),
    },
];

impl HookMode {
    /// Returns the name in policy files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Rules => "rules",
            Self::Full => "full",
            Self::Off => "off",
        }
    }
    fn parse(name: &str) -> Self {
        match name {
            "rules" => Self::Rules,
            "off" => Self::Off,
            _ => Self::Full,
        }
    }
}

impl PostCommit {
    /// Returns the name in policy files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Background => "background",
        }
    }

    fn parse(name: &str) -> Self {
        match name {
            "background" => Self::Background,
            _ => Self::Off,
        }
    }
}
