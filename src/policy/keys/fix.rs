//! The keys of `[fix]`. A key that has its default is unset, so that the hash of such a policy does
//! not change.

use super::{PolicyKey, ReceiptBinding, Trust, Weaker};
use crate::policy::kind::ValueKind;
use crate::policy::value::PolicyValue;
use crate::policy::{MAX_ATTEMPTS, Policy};

pub(in crate::policy) static FIX: &[PolicyKey<Policy>] = &[
    PolicyKey {
        name: "max_attempts",
        about: "Most attempts of one fix. The next one learns why the one before failed. The default is 3.",
        kind: ValueKind::Count(1, 10),
        trust: Trust::Operator,
        weaker: Weaker::Never,
        receipt: ReceiptBinding::Unbound,
        get: |p| {
            if p.fix.max_attempts == MAX_ATTEMPTS {
                PolicyValue::Unset
            } else {
                PolicyValue::Count(p.fix.max_attempts)
            }
        },
        set: |p, v| p.fix.max_attempts = v.count(),
    },
    PolicyKey {
        name: "backend",
        about: "Backend that plans and writes fixes. Unset: the backends of the review, in their order, until one answers.",
        kind: ValueKind::Line(64),
        trust: Trust::Operator,
        weaker: Weaker::Never,
        receipt: ReceiptBinding::Unbound,
        get: |p| PolicyValue::optional(p.fix.backend.as_ref()),
        set: |p, v| p.fix.backend = v.to_optional(),
    },
];
