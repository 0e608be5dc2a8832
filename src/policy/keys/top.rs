//! The keys of the top level: scope and thresholds of a review.

use super::{CONFIDENCES, PolicyKey, ReceiptBinding, Trust, Weaker};
use crate::policy::Policy;
use crate::policy::kind::ValueKind;
use crate::policy::value::PolicyValue;
use crate::request::OnIncomplete;

/// Strictest first.
const COMPLETION: &[&str] = &["fail", "warn"];

pub(in crate::policy) static TOP: &[PolicyKey<Policy>] = &[
    PolicyKey {
        name: "ignore",
        about: "Path patterns of files that are not reviewed. Every report counts them.",
        kind: ValueKind::Patterns,
        trust: Trust::Open,
        weaker: Weaker::MatchesMore,
        receipt: ReceiptBinding::Bound,
        get: |p| PolicyValue::List(p.ignore.clone()),
        set: |p, v| p.ignore = v.list().to_vec(),
    },
    PolicyKey {
        name: "block_on",
        about: "Severities of findings that block. The lowest severity in the list counts, and all above it.",
        kind: ValueKind::Severities,
        trust: Trust::Open,
        weaker: Weaker::BlocksLess,
        receipt: ReceiptBinding::Bound,
        get: |p| PolicyValue::severities(&p.block_on),
        set: |p, v| p.block_on = v.to_severities(),
    },
    PolicyKey {
        name: "warn_on",
        about: "Severities of findings that make the verdict a warning. The lowest severity in the list counts, and all above it.",
        kind: ValueKind::Severities,
        trust: Trust::Open,
        weaker: Weaker::WarnsLess,
        receipt: ReceiptBinding::Bound,
        get: |p| PolicyValue::severities(&p.warn_on),
        set: |p, v| p.warn_on = v.to_severities(),
    },
    PolicyKey {
        name: "min_confidence",
        about: "Confidence that a model's finding needs to block. Findings below it can only warn; findings of rules are exempt.",
        kind: ValueKind::Choice(CONFIDENCES),
        trust: Trust::Open,
        weaker: Weaker::Later(CONFIDENCES),
        receipt: ReceiptBinding::Bound,
        get: |p| PolicyValue::Text(p.min_confidence.name().to_owned()),
        set: |p, v| p.min_confidence = v.to_confidence(),
    },
    PolicyKey {
        name: "on_incomplete",
        about: "Exit code of an incomplete review: 3 (fail) or 0 (warn). The verdict stays incomplete.",
        kind: ValueKind::Choice(COMPLETION),
        trust: Trust::Open,
        weaker: Weaker::Later(COMPLETION),
        receipt: ReceiptBinding::Bound,
        get: |p| completion(p.on_incomplete),
        set: |p, v| p.on_incomplete = to_completion(v),
    },
    PolicyKey {
        name: "on_truncated",
        about: "Effect of a limit on requests, cost or time that cuts a model's review short: incomplete (fail) or a warning with the number of reviewed files (warn).",
        kind: ValueKind::Choice(COMPLETION),
        trust: Trust::Open,
        weaker: Weaker::Later(COMPLETION),
        receipt: ReceiptBinding::Bound,
        get: |p| completion(p.on_truncated),
        set: |p, v| p.on_truncated = to_completion(v),
    },
];

fn completion(v: OnIncomplete) -> PolicyValue {
    PolicyValue::Text(
        if v == OnIncomplete::Fail {
            "fail"
        } else {
            "warn"
        }
        .to_owned(),
    )
}

fn to_completion(v: &PolicyValue) -> OnIncomplete {
    if v.text() == "warn" {
        OnIncomplete::Warn
    } else {
        OnIncomplete::Fail
    }
}
