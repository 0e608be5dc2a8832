//! The keys of `[context]`.

use super::{PolicyKey, ReceiptBinding, Trust, Weaker};
use crate::policy::Policy;
use crate::policy::context::{ContextPolicy, MAX_CALLS};
use crate::policy::kind::ValueKind;
use crate::policy::value::PolicyValue;

/// `[context]`. A key that has its default is unset, so that the hash of such a policy does not
/// change.
pub(in crate::policy) static CONTEXT: &[PolicyKey<Policy>] = &[
    PolicyKey {
        name: "projects",
        about: "Ticket projects and page spaces that may be read (\"PROJ\"), and further projects of the forge whose issues may be read (\"owner/name\"). Unset: ticket projects and spaces that commit messages of the base name, and issues of the repository itself.",
        kind: ValueKind::Projects,
        trust: Trust::Operator,
        weaker: Weaker::EntryAdded,
        receipt: ReceiptBinding::Unbound,
        get: |p| PolicyValue::list_or_unset(&p.context.projects),
        set: |p, v| p.context.projects = v.list().to_vec(),
    },
    PolicyKey {
        name: "pattern",
        about: "Regular expression that replaces the built-in pattern of ticket keys such as PROJ-12. Its first group, or else the whole match, is the key. Without projects, every match may be read.",
        kind: ValueKind::Pattern,
        trust: Trust::Operator,
        weaker: Weaker::Different,
        receipt: ReceiptBinding::Unbound,
        get: |p| PolicyValue::optional(p.context.pattern.as_ref()),
        set: |p, v| p.context.pattern = v.to_optional(),
    },
    PolicyKey {
        name: "issues",
        about: "Whether issues of the forge are read: with a token for the forge, or in a review of a pull request. Default: true.",
        kind: ValueKind::Flag,
        trust: Trust::Operator,
        weaker: Weaker::Never,
        receipt: ReceiptBinding::Unbound,
        get: |p| {
            if p.context.issues {
                PolicyValue::Unset
            } else {
                PolicyValue::Flag(false)
            }
        },
        set: |p, v| p.context.issues = v.flag(),
    },
    PolicyKey {
        name: "max_calls",
        about: "Most calls of one review to servers and forges. 0 reads nothing. Default: 5.",
        kind: ValueKind::Count(0, MAX_CALLS),
        trust: Trust::Operator,
        weaker: Weaker::Never,
        receipt: ReceiptBinding::Unbound,
        get: |p| {
            if p.context.max_calls == MAX_CALLS {
                PolicyValue::Unset
            } else {
                PolicyValue::Count(p.context.max_calls)
            }
        },
        set: |p, v| p.context.max_calls = v.count(),
    },
    PolicyKey {
        name: "timeout",
        about: "Time limit for everything that one review reads, with the start of the servers. Default: 1m.",
        kind: ValueKind::Span(1, 600),
        trust: Trust::Operator,
        weaker: Weaker::Never,
        receipt: ReceiptBinding::Unbound,
        get: |p| match p.context.timeout == ContextPolicy::default().timeout {
            true => PolicyValue::Unset,
            false => PolicyValue::Span(p.context.timeout),
        },
        set: |p, v| p.context.timeout = v.span(),
    },
    PolicyKey {
        name: "required",
        about: "Whether a ticket that cannot be read makes the review incomplete. Default: false, which reports it as a note.",
        kind: ValueKind::Flag,
        trust: Trust::Open,
        weaker: Weaker::Later(&["true", "false"]),
        receipt: ReceiptBinding::Bound,
        get: |p| {
            if p.context.required {
                PolicyValue::Flag(true)
            } else {
                PolicyValue::Unset
            }
        },
        set: |p, v| p.context.required = v.flag(),
    },
    PolicyKey {
        name: "servers",
        about: "MCP servers that read tickets and pages, each a table [context.servers.NAME]: command (a program and its arguments) with env (names of variables that it gets besides PATH and HOME), or url (streamable HTTP) with token_env (variable with a bearer token); and tool, argument and reads (tickets or pages) for a tool that is neither jira_get_issue nor confluence_get_page.",
        kind: ValueKind::Servers,
        trust: Trust::Operator,
        weaker: Weaker::Different,
        receipt: ReceiptBinding::Unbound,
        get: |p| ContextPolicy::to_value(&p.context.servers),
        set: |p, v| p.context.servers = ContextPolicy::of_value(v),
    },
];
