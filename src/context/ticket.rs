//! A ticket or page in the form of its source, parsed from the answer of a tool. Pure.

use crate::text::one_line;
use serde_json::Value;

/// A ticket or page. All text is untrusted and not redacted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ticket {
    /// Key of the ticket at the source; empty if the source has none.
    pub key: String,
    /// Space of a page; empty if the source has none.
    pub space: String,
    pub title: String,
    pub version: String,
    pub text: String,
}

/// Common text fields of a ticket, in the order in which they are shown.
const TEXTS: [&str; 4] = ["description", "acceptance_criteria", "body", "content"];
/// Other short fields that are shown.
const FACTS: [&str; 4] = ["status", "issue_type", "issuetype", "priority"];
/// Characters of a custom field that is shown, at least: shorter ones are numbers, names and flags.
const LEAST: usize = 20;

impl Ticket {
    /// Parses the text of a tool's answer: a JSON document, or text.
    pub fn of_answer(text: &str) -> Self {
        match serde_json::from_str::<Value>(text) {
            Ok(Value::Object(object)) => Self::of_value(&Value::Object(object)),
            _ => Self::of_text(text),
        }
    }

    /// Uses the first line as the title.
    fn of_text(text: &str) -> Self {
        let title = text
            .lines()
            .map(|l| l.trim_start_matches('#').trim())
            .find(|l| !l.is_empty());
        Self {
            title: one_line(title.unwrap_or_default()),
            text: text.trim().to_owned(),
            ..Self::default()
        }
    }

    /// Parses documents of Jira and Confluence, and of servers that flatten them.
    fn of_value(value: &Value) -> Self {
        // `mcp-atlassian` puts a page below `metadata`, Jira's API the fields of a ticket below
        // `fields`.
        let inner = ["metadata", "issue", "page", "result"]
            .iter()
            .find_map(|k| value.get(k).filter(|v| v.is_object()));
        let whole = inner.unwrap_or(value);
        let fields = whole
            .get("fields")
            .filter(|f| f.is_object())
            .unwrap_or(whole);
        let space = whole
            .get("space")
            .and_then(|s| text_of(s.get("key").unwrap_or(s)));
        let mut ticket = Self {
            key: one_line(
                &text_of(&whole["key"])
                    .or_else(|| text_of(&whole["id"]))
                    .unwrap_or_default(),
            ),
            space: one_line(&space.unwrap_or_default()),
            title: first_line_of(&["summary", "title", "name"], fields, whole),
            version: first_line_of(
                &["updated", "updated_at", "version", "lastModified"],
                fields,
                whole,
            ),
            text: String::new(),
        };
        ticket.text = body(fields);
        ticket
    }
}

/// Returns the first text under some keys of a document's fields, on one line; an empty one if
/// there is none. If a field has no text, the same key of the whole document counts.
fn first_line_of(keys: &[&str], fields: &Value, whole: &Value) -> String {
    let found = keys
        .iter()
        .find_map(|k| text_of(fields.get(k)?).or_else(|| text_of(whole.get(k)?)));
    one_line(&found.unwrap_or_default())
}

/// Returns the parts of a document that describe the task.
fn body(fields: &Value) -> String {
    let mut parts = Vec::new();
    for name in FACTS {
        if let Some(text) = fields.get(name).and_then(text_of) {
            parts.push(format!("{}: {}", name.replace('_', " "), one_line(&text)));
        }
    }
    let facts = parts.join("\n");
    let mut parts: Vec<String> = if facts.is_empty() {
        Vec::new()
    } else {
        vec![facts]
    };
    parts.extend(
        TEXTS
            .iter()
            .filter_map(|name| fields.get(name).and_then(text_of)),
    );
    for (name, value) in fields.as_object().into_iter().flatten() {
        // Acceptance criteria are often in a custom field of the site.
        if !name.starts_with("customfield_") && !name.contains("criteria")
            || TEXTS.contains(&name.as_str())
        {
            continue;
        }
        if let Some(text) = text_of(value).filter(|t| t.chars().count() >= LEAST) {
            let label = value.get("name").and_then(Value::as_str).unwrap_or(name);
            parts.push(format!("{}:\n{text}", one_line(label)));
        }
    }
    parts.retain(|p| !p.trim().is_empty());
    parts.join("\n\n")
}

/// Returns the text of a value: a string, `{value}`, `{name}`, `{number}`, or a document of
/// Atlassian's editor.
fn text_of(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.trim().to_owned()).filter(|t| !t.is_empty()),
        Value::Number(n) => Some(n.to_string()),
        Value::Object(object) if object.get("type").is_some_and(|t| t == "doc") => {
            let mut out = String::new();
            editor_text(value, 0, &mut out);
            Some(out.trim().to_owned()).filter(|t| !t.is_empty())
        }
        Value::Object(object) => ["value", "name", "number", "when", "key"]
            .iter()
            .find_map(|k| text_of(object.get(*k)?)),
        _ => None,
    }
}

/// Appends the text of a document of Atlassian's editor
/// (<https://developer.atlassian.com/cloud/jira/platform/apis/document/structure/>).
fn editor_text(node: &Value, depth: usize, out: &mut String) {
    const DEEPEST: usize = 32;
    if depth > DEEPEST {
        return;
    }
    if let Some(text) = node.get("text").and_then(Value::as_str) {
        out.push_str(text);
    }
    let kind = node.get("type").and_then(Value::as_str).unwrap_or_default();
    match kind {
        "hardBreak" => out.push('\n'),
        "listItem" => out.push_str("- "),
        "heading" => out.push_str("## "),
        _ => {}
    }
    for inner in node
        .get("content")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
        editor_text(inner, depth + 1, out);
    }
    if matches!(kind, "paragraph" | "heading" | "codeBlock") {
        out.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_ticket_of_mcp_atlassian_is_read() {
        let answer = json!({
            "id": "10001", "key": "PROJ-12", "summary": "Limit \n retries", "description": "At most three retries.",
            "status": { "name": "Open", "category": "To Do" }, "issue_type": { "name": "Story" },
            "updated": "2026-01-02T03:04:05.000+0000", "customfield_10100": { "value": "Given a failing call, retries stop." },
            "customfield_10101": { "value": "7" },
        });
        let ticket = Ticket::of_answer(&answer.to_string());
        assert_eq!(
            (ticket.key.as_str(), ticket.title.as_str()),
            ("PROJ-12", "Limit retries")
        );
        assert_eq!(ticket.version, "2026-01-02T03:04:05.000+0000");
        assert_eq!(
            ticket.text,
            "status: Open\nissue type: Story\n\nAt most three retries.\n\ncustomfield_10100:\nGiven a failing call, retries stop."
        );
    }

    #[test]
    fn a_page_of_mcp_atlassian_and_a_ticket_of_the_rest_interface_are_read() {
        let page = json!({ "metadata": {
            "id": "123", "title": "Retries", "space": { "key": "DEV", "name": "Development" }, "version": 4,
            "content": { "value": "# Limits\nThree.", "format": "markdown" },
        }});
        let page = Ticket::of_answer(&page.to_string());
        assert_eq!(
            (
                page.key.as_str(),
                page.space.as_str(),
                page.version.as_str()
            ),
            ("123", "DEV", "4")
        );
        assert_eq!(page.text, "# Limits\nThree.");
        let document = json!({ "type": "doc", "content": [
            { "type": "heading", "content": [{ "type": "text", "text": "Why" }] },
            { "type": "paragraph", "content": [{ "type": "text", "text": "Calls never end." }] },
        ]});
        let issue = json!({ "key": "A-1", "fields": { "summary": "T", "description": document, "updated": "u" } });
        let issue = Ticket::of_answer(&issue.to_string());
        assert_eq!((issue.title.as_str(), issue.version.as_str()), ("T", "u"));
        assert_eq!(issue.text, "## Why\nCalls never end.");
    }

    #[test]
    fn text_that_is_no_document_keeps_its_first_line_as_the_title() {
        let ticket = Ticket::of_answer("\n# The title\n\nBody.\n");
        assert_eq!(
            (ticket.title.as_str(), ticket.text.as_str()),
            ("The title", "# The title\n\nBody.")
        );
        assert_eq!(Ticket::of_answer("[1, 2]").text, "[1, 2]");
        assert_eq!(Ticket::of_answer(""), Ticket::default());
    }
}
