//! The keys of `[forge]`.

use super::{PolicyKey, ReceiptBinding, Trust, Weaker};
use crate::policy::Policy;
use crate::policy::kind::ValueKind;
use crate::policy::value::PolicyValue;

pub(in crate::policy) static FORGE: &[PolicyKey<Policy>] = &[
    PolicyKey {
        name: "github_api",
        about: "API URL of a GitHub Enterprise Server.",
        kind: ValueKind::Url,
        trust: Trust::Operator,
        weaker: Weaker::Different,
        receipt: ReceiptBinding::Unbound,
        get: |p| PolicyValue::optional(p.forge.github_api.as_ref()),
        set: |p, v| p.forge.github_api = v.to_optional(),
    },
    PolicyKey {
        name: "gitlab_api",
        about: "API URL of a self-managed GitLab.",
        kind: ValueKind::Url,
        trust: Trust::Operator,
        weaker: Weaker::Different,
        receipt: ReceiptBinding::Unbound,
        get: |p| PolicyValue::optional(p.forge.gitlab_api.as_ref()),
        set: |p, v| p.forge.gitlab_api = v.to_optional(),
    },
    PolicyKey {
        name: "bitbucket_api",
        about: "API URL of a Bitbucket Data Center.",
        kind: ValueKind::Url,
        trust: Trust::Operator,
        weaker: Weaker::Different,
        receipt: ReceiptBinding::Unbound,
        get: |p| PolicyValue::optional(p.forge.bitbucket_api.as_ref()),
        set: |p, v| p.forge.bitbucket_api = v.to_optional(),
    },
    PolicyKey {
        name: "token_command",
        about: "Command that prints the token for the host in its variable FORGE_HOST, if no environment variable contains a token. A command that does not use FORGE_HOST runs only for the single host that [forge] names.",
        kind: ValueKind::Line(4096),
        trust: Trust::Operator,
        weaker: Weaker::Different,
        receipt: ReceiptBinding::Unbound,
        get: |p| PolicyValue::optional(p.forge.token_command.as_ref()),
        set: |p, v| p.forge.token_command = v.to_optional(),
    },
    PolicyKey {
        name: "comment_commands",
        about: "Whether replies of maintainers to comments on findings (/accept, /reject REASON, /defer DATE) waive a finding for the head under review. Critical findings are never waived.",
        kind: ValueKind::Flag,
        trust: Trust::Operator,
        weaker: Weaker::Later(&["false", "true"]),
        receipt: ReceiptBinding::Unbound,
        get: |p| PolicyValue::Flag(p.forge.comment_commands),
        set: |p, v| p.forge.comment_commands = v.flag(),
    },
];
