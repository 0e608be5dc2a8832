//! Converts issues of forges to tickets.

use super::{MOST_OF_A_TEXT, Reads as _};
use crate::context::Ticket;
use crate::http::Failure;
use crate::text::{first_bytes, one_line};
use serde_json::Value;

/// Converts an issue's document to a ticket. `body` and `updated` are the paths of its text and its
/// time.
pub(super) fn ticket(issue: &Value, body: &str, updated: &str) -> Result<Ticket, Failure> {
    let mut facts = vec![format!("status: {}", issue.name_at("/state"))];
    let names = issue["labels"].as_array().into_iter().flatten();
    let names = names
        .filter_map(|l| l.as_str().or_else(|| l["name"].as_str()))
        .take(20);
    let labels = names.map(one_line).collect::<Vec<_>>().join(", ");
    if !labels.is_empty() {
        facts.push(format!("labels: {}", first_bytes(&labels, 500)));
    }
    let text = format!(
        "{}\n\n{}",
        facts.join("\n"),
        issue.text_at(body, MOST_OF_A_TEXT)
    );
    Ok(Ticket {
        key: String::new(),
        space: String::new(),
        title: issue.name_at("/title"),
        version: issue.name_at(updated),
        text: text.trim().to_owned(),
    })
}
