//! The keys of `[cache]`.

use super::{PolicyKey, ReceiptBinding, Trust, Weaker};
use crate::policy::Policy;
use crate::policy::cache::{CachePolicy, MAX_AGE_SECONDS};
use crate::policy::kind::ValueKind;
use crate::policy::value::PolicyValue;

/// `[cache]`. A key that has its default is unset, so that the hash of such a policy does not
/// change. A change must not decide where answers come from or whose answers count, so every key is
/// the operator's.
pub(in crate::policy) static CACHE: &[PolicyKey<Policy>] = &[
    PolicyKey {
        name: "url",
        about: "Store of answers that several machines share: s3://BUCKET/PREFIX, gs://BUCKET/PREFIX, azblob://CONTAINER/PREFIX, rediss://HOST:PORT/DB, redis:// for this machine only, or file:///FOLDER. The credentials are those of the store's own variables and files. Unset: no shared cache.",
        kind: ValueKind::StoreUrl,
        trust: Trust::Operator,
        weaker: Weaker::Different,
        receipt: ReceiptBinding::Unbound,
        get: |p| PolicyValue::optional(p.cache.url.as_ref()),
        set: |p, v| p.cache.url = v.to_optional(),
    },
    PolicyKey {
        name: "write",
        about: "Whether new answers are signed and stored. Only for jobs whose program no change can choose. Default: false.",
        kind: ValueKind::Flag,
        trust: Trust::Operator,
        weaker: Weaker::Later(&["false", "true"]),
        receipt: ReceiptBinding::Unbound,
        get: |p| match p.cache.write {
            true => PolicyValue::Flag(true),
            false => PolicyValue::Unset,
        },
        set: |p, v| p.cache.write = v.flag(),
    },
    PolicyKey {
        name: "signers",
        about: "Whose stored answers count: lines with a name and an Ed25519 public key, \"ci ssh-ed25519 AAAA…\". Unset: no stored answer counts.",
        kind: ValueKind::CacheSigners,
        trust: Trust::Operator,
        weaker: Weaker::EntryAdded,
        receipt: ReceiptBinding::Unbound,
        get: |p| PolicyValue::list_or_unset(&p.cache.signers),
        set: |p, v| p.cache.signers = v.list().to_vec(),
    },
    PolicyKey {
        name: "sign_key_command",
        about: "Command that prints the private key for new entries: an Ed25519 key of ssh-keygen without a passphrase. Runs only with write = true.",
        kind: ValueKind::Line(4096),
        trust: Trust::Operator,
        weaker: Weaker::Different,
        receipt: ReceiptBinding::Unbound,
        get: |p| PolicyValue::optional(p.cache.sign_key_command.as_ref()),
        set: |p, v| p.cache.sign_key_command = v.to_optional(),
    },
    PolicyKey {
        name: "timeout",
        about: "Time that a store without an accepted answer costs one review, at most. Afterwards the store is not asked again in that review. Waits for the answers of other runs are not part of it. Default: 2s.",
        kind: ValueKind::Span(1, 30),
        trust: Trust::Operator,
        weaker: Weaker::Never,
        receipt: ReceiptBinding::Unbound,
        get: |p| span(p.cache.timeout, CachePolicy::default().timeout),
        set: |p, v| p.cache.timeout = v.span(),
    },
    PolicyKey {
        name: "max_age",
        about: "Age above which a stored answer does not count. Default: 14d.",
        kind: ValueKind::Span(60, 90 * 24 * 3600),
        trust: Trust::Operator,
        weaker: Weaker::Longer(MAX_AGE_SECONDS),
        receipt: ReceiptBinding::Unbound,
        get: |p| span(p.cache.max_age, CachePolicy::default().max_age),
        set: |p, v| p.cache.max_age = v.span(),
    },
    PolicyKey {
        name: "max_entry_kib",
        about: "Most KiB of one stored answer. A larger one is neither read nor stored. Default: 256.",
        kind: ValueKind::Count(1, 1024),
        trust: Trust::Operator,
        weaker: Weaker::Never,
        receipt: ReceiptBinding::Unbound,
        get: |p| match p.cache.max_entry_kib == CachePolicy::default().max_entry_kib {
            true => PolicyValue::Unset,
            false => PolicyValue::Count(p.cache.max_entry_kib),
        },
        set: |p, v| p.cache.max_entry_kib = v.count(),
    },
];

/// Returns a duration as a value; unset for the default.
fn span(value: std::time::Duration, default: std::time::Duration) -> PolicyValue {
    match value == default {
        true => PolicyValue::Unset,
        false => PolicyValue::Span(value),
    }
}
