//! GitHub's GraphQL API: one request, and lists page by page.

use crate::forge::session::ForgeSession;
use crate::forge::{PullRequest, Reads as _};
use crate::http::{Cause, Failure, Method};
use serde_json::{Value, json};

/// Sends a GraphQL request, whose errors have a successful HTTP status.
pub(super) fn graphql(
    session: &ForgeSession<'_>,
    query: &str,
    variables: &Value,
) -> Result<Value, Failure> {
    let body = json!({ "query": query, "variables": variables });
    let answer = session.change(Method::POST, &["graphql"], &body)?;
    if let Some(error) = answer["errors"].as_array().and_then(|e| e.first()) {
        let said = error.text_at("/message", 1000);
        let mut failure = Failure::new(Cause::Refused, session.shown(&said));
        failure.status = (error["type"] == "FORBIDDEN").then_some(403);
        return Err(failure);
    }
    Ok(answer["data"].clone())
}

/// Runs a query about the pull request page by page. `take` handles each page and returns its
/// `pageInfo`, or `None` if no more pages are to be read.
pub(super) fn pull_pages(
    session: &ForgeSession<'_>,
    pull: &PullRequest,
    query: &str,
    mut take: impl FnMut(&Value) -> Option<Value>,
) -> Result<(), Failure> {
    let project = session.project;
    let mut after = Value::Null;
    loop {
        let variables = json!({
            "owner": project.owner(), "name": project.name(), "number": pull.number, "after": after,
        });
        let data = graphql(session, query, &variables)?;
        let Some(info) = take(&data["repository"]["pullRequest"]) else {
            return Ok(());
        };
        after = info["endCursor"].clone();
        if info["hasNextPage"] != true || !after.is_string() {
            return Ok(());
        }
    }
}
