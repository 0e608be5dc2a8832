//! The keys of `[[path]]` and `[[guideline]]`.

use super::{CONFIDENCES, PolicyKey, ReceiptBinding, Trust, Weaker};
use crate::policy::kind::ValueKind;
use crate::policy::value::PolicyValue;
use crate::policy::{Guideline, PathRule};

/// `[[path]]`.
pub(in crate::policy) static PATH: &[PolicyKey<PathRule>] = &[
    PolicyKey {
        name: "glob",
        about: "Paths that the entry applies to: a pattern or a list of patterns. Required.",
        kind: ValueKind::PatternOrPatterns,
        trust: Trust::Open,
        weaker: Weaker::Never,
        receipt: ReceiptBinding::Bound,
        get: |r| PolicyValue::List(r.glob.clone()),
        set: |r, v| r.glob = v.list().to_vec(),
    },
    PolicyKey {
        name: "block_on",
        about: "Severities that block in these paths.",
        kind: ValueKind::Severities,
        trust: Trust::Open,
        weaker: Weaker::Never,
        receipt: ReceiptBinding::Bound,
        get: |r| {
            r.block_on
                .as_ref()
                .map_or(PolicyValue::Unset, |l| PolicyValue::severities(l))
        },
        set: |r, v| r.block_on = Some(v.to_severities()),
    },
    PolicyKey {
        name: "warn_on",
        about: "Severities that warn in these paths.",
        kind: ValueKind::Severities,
        trust: Trust::Open,
        weaker: Weaker::Never,
        receipt: ReceiptBinding::Bound,
        get: |r| {
            r.warn_on
                .as_ref()
                .map_or(PolicyValue::Unset, |l| PolicyValue::severities(l))
        },
        set: |r, v| r.warn_on = Some(v.to_severities()),
    },
    PolicyKey {
        name: "min_confidence",
        about: "Confidence that a model's finding needs to block in these paths.",
        kind: ValueKind::Choice(CONFIDENCES),
        trust: Trust::Open,
        weaker: Weaker::Never,
        receipt: ReceiptBinding::Bound,
        get: |r| {
            r.min_confidence.map_or(PolicyValue::Unset, |c| {
                PolicyValue::Text(c.name().to_owned())
            })
        },
        set: |r, v| r.min_confidence = Some(v.to_confidence()),
    },
];

/// `[[guideline]]`.
pub(in crate::policy) static GUIDELINE: &[PolicyKey<Guideline>] = &[
    PolicyKey {
        name: "glob",
        about: "Paths that the guideline applies to: a pattern or a list of patterns. Required.",
        kind: ValueKind::PatternOrPatterns,
        trust: Trust::Open,
        weaker: Weaker::Never,
        receipt: ReceiptBinding::Bound,
        get: |g| PolicyValue::List(g.glob.clone()),
        set: |g, v| g.glob = v.list().to_vec(),
    },
    PolicyKey {
        name: "text",
        about: "Instruction for models that review a matching file. Required.",
        kind: ValueKind::Text(8192),
        trust: Trust::Open,
        weaker: Weaker::Never,
        receipt: ReceiptBinding::Bound,
        get: |g| PolicyValue::Text(g.text.clone()),
        set: |g, v| v.text().clone_into(&mut g.text),
    },
];
