//! Stored reviews as resources: `review://latest` and `review://<id>`, whole sessions as JSON.

use super::tools::Call;
use crate::error::Result;
use crate::history::SessionId;
use crate::wire::stored::Overview;
use rmcp::model::{Resource, ResourceContents, ResourceTemplate};

/// The tool that tells the same: where policy does not offer it, there are no resources.
pub(super) const TOOL: &str = "get_review_history";
const SCHEME: &str = "review://";
const KIND: &str = "application/json";
/// Sessions that the list names.
const LISTED: usize = 20;

/// Returns the newest reviews; none where there is no repository.
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

/// Returns the forms of addresses.
pub(super) fn templates() -> Vec<ResourceTemplate> {
    vec![
        ResourceTemplate::new(format!("{SCHEME}{{review_id}}"), "review")
            .with_title("A stored review")
            .with_description("A review with all its rounds, by its id (2026-01-31-001) or latest")
            .with_mime_type(KIND),
    ]
}

/// Reads a review; `None` where the address is none of ours.
///
/// # Errors
///
/// There is no such review, or it cannot be read.
pub(super) fn read(call: &Call<'_>, uri: &str) -> Result<Option<ResourceContents>> {
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
