//! Resources: stored reviews (`review://latest`, `review://<id>`) and the complete schemas of
//! answers (`schema://TOOL`).

use super::tools::{McpTool, ToolCall};
use crate::error::Result;
use crate::history::SessionId;
use crate::wire::stored::Overview;
use rmcp::model::{Resource, ResourceContents, ResourceTemplate};

/// The tool with the same data as the stored reviews. Without it, a client sees none of them.
const HISTORY: &str = "get_review_history";
const SCHEME: &str = "review://";
const SCHEMA: &str = "schema://";
const KIND: &str = "application/json";
/// Number of sessions in the list.
const LISTED: usize = 20;

/// Returns the newest reviews; empty outside a repository, or if the policy does not offer them.
///
/// # Errors
///
/// The store cannot be read.
pub(super) fn list(call: &ToolCall<'_>, offered: &[&McpTool]) -> Result<Vec<Resource>> {
    if !offers(offered, HISTORY) || !call.fence.home(call.env)?.is_repository() {
        return Ok(Vec::new());
    }
    let (_, Some(store)) = call.store()? else {
        return Ok(Vec::new());
    };
    let sessions = store.list(LISTED)?.sessions;
    let latest = sessions.first().map(|_| {
        Resource::new(format!("{SCHEME}latest"), "latest")
            .with_title("The newest review")
            .with_description("The newest review with all its rounds")
            .with_mime_type(KIND)
    });
    Ok(latest.into_iter().chain(sessions.iter().map(one)).collect())
}

fn one(s: &Overview) -> Resource {
    let status = crate::wire::name(&s.status);
    let label = crate::untrusted::Inert::new(&s.label);
    Resource::new(format!("{SCHEME}{}", s.review_id), s.review_id.clone())
        .with_title(format!("Review {}", s.review_id))
        .with_description(format!("{label}: {status}, {} rounds", s.rounds))
        .with_mime_type(KIND)
}

fn offers(offered: &[&McpTool], name: &str) -> bool {
    offered.iter().any(|t| t.name == name)
}

/// Returns the URI templates.
pub(super) fn templates(offered: &[&McpTool]) -> Vec<ResourceTemplate> {
    let review = ResourceTemplate::new(format!("{SCHEME}{{review_id}}"), "review")
        .with_title("A stored review")
        .with_description("A review with all its rounds, by its ID (2026-01-31-001) or latest")
        .with_mime_type(KIND);
    let schema = ResourceTemplate::new(format!("{SCHEMA}{{tool}}"), "schema")
        .with_title("The answer of a tool")
        .with_description(
            "The complete JSON schema of a tool's answer; tools/list has a short form",
        )
        .with_mime_type("application/schema+json");
    offers(offered, HISTORY)
        .then_some(review)
        .into_iter()
        .chain([schema])
        .collect()
}

/// Reads a resource; `None` if the address has another form, or the policy does not offer the tool
/// behind it.
///
/// # Errors
///
/// The review does not exist or cannot be read.
pub(super) fn read(
    call: &ToolCall<'_>,
    offered: &[&McpTool],
    uri: &str,
) -> Result<Option<ResourceContents>> {
    if let Some(name) = uri.strip_prefix(SCHEMA).map(|t| t.trim_end_matches('/')) {
        let tool = offered.iter().find(|t| t.name == name);
        let schema = tool.map(|t| format!("{:#}", (t.answers)()));
        return Ok(schema
            .map(|s| ResourceContents::text(s, uri).with_mime_type("application/schema+json")));
    }
    let Some(name) = uri.strip_prefix(SCHEME).map(|n| n.trim_end_matches('/')) else {
        return Ok(None);
    };
    if !offers(offered, HISTORY) {
        return Ok(None);
    }
    if name != "latest" && SessionId::parse(name).is_none() {
        return Ok(None);
    }
    let (_, store, id) = call.session(name)?;
    let session = store.session(&id)?;
    let mut text = Vec::new();
    // Writing to memory does not fail.
    let _ = crate::wire::write(&session, &mut text);
    let text = String::from_utf8_lossy(&text).into_owned();
    Ok(Some(ResourceContents::text(text, uri).with_mime_type(KIND)))
}
