//! The keys of `[receipt]`.

use super::{PolicyKey, ReceiptBinding, Trust, Weaker};
use crate::policy::Policy;
use crate::policy::kind::ValueKind;
use crate::policy::value::PolicyValue;

pub(in crate::policy) static RECEIPT: &[PolicyKey<Policy>] = &[
    PolicyKey {
        name: "signers",
        about: "Accepted signers of receipts, as lines of an OpenSSH allowed-signers file: \"alice@example.com ssh-ed25519 AAAA…\". Unset: no receipt is accepted.",
        kind: ValueKind::Signers,
        trust: Trust::Open,
        weaker: Weaker::EntryAdded,
        receipt: ReceiptBinding::Unbound,
        // Without signers the key is unset, so that the hash of such a policy does not change.
        get: |p| PolicyValue::list_or_unset(&p.receipt.signers),
        set: |p, v| p.receipt.signers = v.list().to_vec(),
    },
    PolicyKey {
        name: "key",
        about: "SSH key that `review --receipt` signs with: the path of a private key, or of a public key whose private key is in the SSH agent.",
        kind: ValueKind::Line(4096),
        trust: Trust::Operator,
        weaker: Weaker::Never,
        receipt: ReceiptBinding::Unbound,
        get: |p| PolicyValue::optional(p.receipt.key.as_ref()),
        set: |p, v| p.receipt.key = v.to_optional(),
    },
];
