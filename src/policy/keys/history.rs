//! The keys of `[history]`.

use super::{PolicyKey, ReceiptBinding, Trust, Weaker};
use crate::policy::Policy;
use crate::policy::kind::ValueKind;
use crate::policy::value::PolicyValue;

pub(in crate::policy) static HISTORY: &[PolicyKey<Policy>] = &[
    PolicyKey {
        name: "path",
        about: "Folder of stored reviews.",
        kind: ValueKind::Storage,
        trust: Trust::Operator,
        weaker: Weaker::Different,
        receipt: ReceiptBinding::Unbound,
        get: |p| PolicyValue::Text(p.history.path.clone()),
        set: |p, v| v.text().clone_into(&mut p.history.path),
    },
    PolicyKey {
        name: "commit",
        about: "Whether stored reviews can be committed. If false, git ignores the folder.",
        kind: ValueKind::Flag,
        trust: Trust::Open,
        weaker: Weaker::Never,
        receipt: ReceiptBinding::Unbound,
        get: |p| PolicyValue::Flag(p.history.commit),
        set: |p, v| p.history.commit = v.flag(),
    },
];
