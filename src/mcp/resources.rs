//! Resources: stored reviews (`review://latest`, `review://<id>`) and the complete schemas of answers (`schema://TOOL`).

use super::tools::{self, Call};
use crate::error::Result;
use crate::history::SessionId;
use crate::wire::stored::Overview;
use rmcp::model::{Resource, ResourceContents, ResourceTemplate};

/// The tool with the same data. If the policy does not offer it, there are no resources.
pub(super) const TOOL: &str = "get_review_history";
const SCHEME: &str = "review://";
const SCHEMA: &str = "schema://";
const KIND: &str = "application/json";
/// Number of sessions in the list.
const LISTED: usize = 20;

/// Returns the newest reviews; none outside a repository.
///
/// # Errors
///
/// The store cannot be read.
pub(super) fn list(call: &Call<'_>) -> Result<Vec<Resource>> {
    if !call.fence.home(call.env)?.is_repository() {
        return Ok(Vec::new());
    }
    let (_, Some(store)) = call.store()? else { return Ok(Vec::new()) };
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

/// Returns the templates of addresses.
pub(super) fn templates() -> Vec<ResourceTemplate> {
    vec![
        ResourceTemplate::new(format!("{SCHEME}{{review_id}}"), "review")
            .with_title("A stored review")
            .with_description("A review with all its rounds, by its ID (2026-01-31-001) or latest")
            .with_mime_type(KIND),
        ResourceTemplate::new(format!("{SCHEMA}{{tool}}"), "schema")
            .with_title("The answer of a tool")
            .with_description("The complete JSON schema of a tool's answer; tools/list has a short form")
            .with_mime_type("application/schema+json"),
    ]
}

/// Reads a resource; `None` if the address has another form.
///
/// # Errors
///
/// The review does not exist or cannot be read.
pub(super) fn read(call: &Call<'_>, uri: &str) -> Result<Option<ResourceContents>> {
    if let Some(tool) = uri.strip_prefix(SCHEMA).map(|t| t.trim_end_matches('/')) {
        let schema = tools::complete_schema(tool).map(|s| format!("{s:#}"));
        return Ok(schema.map(|s| ResourceContents::text(s, uri).with_mime_type("application/schema+json")));
    }
    let Some(name) = uri.strip_prefix(SCHEME).map(|n| n.trim_end_matches('/')) else { return Ok(None) };
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
