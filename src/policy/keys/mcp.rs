//! The keys of `[mcp]`.

use super::{PolicyKey, ReceiptBinding, Trust, Weaker};
use crate::policy::kind::ValueKind;
use crate::policy::value::PolicyValue;
use crate::policy::{AgentReview, Policy};

/// Strictest first.
const AGENT_REVIEWS: &[&str] = &["adds", "counts"];

pub(in crate::policy) static MCP: &[PolicyKey<Policy>] = &[
    PolicyKey {
        name: "tools",
        about: "Tools that serve-mcp offers. Unset: all.",
        kind: ValueKind::Tools,
        trust: Trust::Narrows,
        weaker: Weaker::Never,
        receipt: ReceiptBinding::Unbound,
        get: |p| {
            p.mcp
                .tools
                .as_ref()
                .map_or(PolicyValue::Unset, |t| PolicyValue::List(t.clone()))
        },
        set: |p, v| p.mcp.tools = Some(v.list().to_vec()),
    },
    PolicyKey {
        name: "agent_review",
        about: "What submit_findings is worth if backends have to review: adds its findings, or counts as the review of the backends.",
        kind: ValueKind::Choice(AGENT_REVIEWS),
        trust: Trust::Operator,
        weaker: Weaker::Later(AGENT_REVIEWS),
        receipt: ReceiptBinding::Unbound,
        get: |p| PolicyValue::Text(p.mcp.agent_review.name().to_owned()),
        set: |p, v| {
            p.mcp.agent_review = if v.text() == "counts" {
                AgentReview::Counts
            } else {
                AgentReview::Adds
            };
        },
    },
];
