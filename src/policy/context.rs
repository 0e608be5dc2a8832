//! `[context]`: tickets and pages that models get in addition to a change.

use super::value::PolicyValue;
use std::time::Duration;

/// Calls of one review, at most.
pub const MAX_CALLS: u32 = 5;

/// `[context]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContextPolicy {
    /// A regular expression that replaces the built-in pattern of ticket keys.
    pub pattern: Option<String>,
    /// Ticket projects, page spaces and further forge projects (`group/project`) that may be read.
    pub projects: Vec<String>,
    /// True if issues of the forge are read.
    pub issues: bool,
    /// Calls of one review, at most [`MAX_CALLS`].
    pub max_calls: u32,
    /// Time limit for all tickets and pages of one review.
    pub timeout: Duration,
    /// True if a reference that cannot be read makes the review incomplete.
    pub required: bool,
    /// Servers, sorted by name.
    pub servers: Vec<ContextServer>,
}

/// `[context.servers.NAME]`: an MCP server that reads tickets or pages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ContextServer {
    pub name: String,
    /// A program and its arguments; empty if `url` is set.
    pub command: Vec<String>,
    /// Variables that the program gets in addition to `PATH` and `HOME`.
    pub env: Vec<String>,
    /// The endpoint of a server with streamable HTTP.
    pub url: Option<String>,
    /// The variable that contains the bearer token for `url`.
    pub token_env: Option<String>,
    /// Name of the tool, if it is not a known one.
    pub tool: Option<String>,
    /// The argument of `tool` that takes the key.
    pub argument: Option<String>,
    pub reads: Reads,
}

/// The kind of content that the `tool` of a server reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reads {
    #[default]
    Tickets,
    Pages,
}

impl Reads {
    /// Returns the name in policy files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tickets => "tickets",
            Self::Pages => "pages",
        }
    }
}

impl Default for ContextPolicy {
    fn default() -> Self {
        Self {
            pattern: None,
            projects: Vec::new(),
            issues: true,
            max_calls: MAX_CALLS,
            timeout: Duration::from_secs(60),
            required: false,
            servers: Vec::new(),
        }
    }
}

impl ContextPolicy {
    /// Returns the servers as a value; unset if there are none.
    pub(super) fn to_value(servers: &[ContextServer]) -> PolicyValue {
        match servers {
            [] => PolicyValue::Unset,
            all => PolicyValue::Table(all.iter().map(|s| (s.name.clone(), s.to_value())).collect()),
        }
    }

    /// Reads the servers from a value that [`ValueKind`](super::kind::ValueKind) validated.
    pub(super) fn of_value(value: &PolicyValue) -> Vec<ContextServer> {
        let mut servers: Vec<_> = value
            .table()
            .iter()
            .map(|(name, v)| ContextServer::of_value(name, v))
            .collect();
        servers.sort_by(|a, b| a.name.cmp(&b.name));
        servers
    }
}

impl ContextServer {
    fn to_value(&self) -> PolicyValue {
        let reads = (self.reads != Reads::default()).then(|| self.reads.name().to_owned());
        let rows = [
            ("command", PolicyValue::list_or_unset(&self.command)),
            ("env", PolicyValue::list_or_unset(&self.env)),
            ("url", PolicyValue::optional(self.url.as_ref())),
            ("token_env", PolicyValue::optional(self.token_env.as_ref())),
            ("tool", PolicyValue::optional(self.tool.as_ref())),
            ("argument", PolicyValue::optional(self.argument.as_ref())),
            ("reads", PolicyValue::optional(reads.as_ref())),
        ];
        let set = rows.into_iter().filter(|(_, v)| *v != PolicyValue::Unset);
        PolicyValue::Table(set.map(|(name, v)| (name.to_owned(), v)).collect())
    }

    fn of_value(name: &str, value: &PolicyValue) -> Self {
        Self {
            name: name.to_owned(),
            command: list_of(value, "command"),
            env: list_of(value, "env"),
            url: text_of(value, "url"),
            token_env: text_of(value, "token_env"),
            tool: text_of(value, "tool"),
            argument: text_of(value, "argument"),
            reads: if text_of(value, "reads").as_deref() == Some("pages") {
                Reads::Pages
            } else {
                Reads::Tickets
            },
        }
    }
}

/// Returns the text of a row of a table.
fn text_of(table: &PolicyValue, key: &str) -> Option<String> {
    table.row(key).and_then(PolicyValue::to_optional)
}

/// Returns the list of a row of a table; an empty one if the row is missing.
fn list_of(table: &PolicyValue, key: &str) -> Vec<String> {
    table
        .row(key)
        .map(|v| v.list().to_vec())
        .unwrap_or_default()
}

/// Returns true if the name of a tool means that it only reads. The server's description of its
/// tools does not count: an operator who configures a tool must see its effect from its name.
pub fn is_read_only(tool: &str) -> bool {
    const READS: [&str; 10] = [
        "get", "read", "fetch", "view", "show", "lookup", "describe", "retrieve", "load", "find",
    ];
    const WRITES: [&str; 34] = [
        "create",
        "update",
        "delete",
        "remove",
        "add",
        "set",
        "write",
        "edit",
        "put",
        "post",
        "patch",
        "transition",
        "move",
        "assign",
        "send",
        "execute",
        "exec",
        "run",
        "comment",
        "link",
        "unlink",
        "upload",
        "close",
        "open",
        "merge",
        "approve",
        "publish",
        "archive",
        "restore",
        "rename",
        "insert",
        "append",
        "replace",
        "drop",
    ];
    let words = words(tool);
    words.iter().any(|w| READS.contains(&w.as_str()))
        && !words.iter().any(|w| WRITES.contains(&w.as_str()))
}

/// Splits a name at `_`, `-`, `.`, `/` and before capitals, in lower case.
fn words(name: &str) -> Vec<String> {
    let mut out = vec![String::new()];
    let mut after_small = false;
    for c in name.chars() {
        let splits = !c.is_ascii_alphanumeric() || (after_small && c.is_ascii_uppercase());
        if splits {
            out.push(String::new());
        }
        if let (true, Some(last)) = (c.is_ascii_alphanumeric(), out.last_mut()) {
            last.push(c.to_ascii_lowercase());
        }
        after_small = c.is_ascii_lowercase() || c.is_ascii_digit();
    }
    out.retain(|w| !w.is_empty());
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_tool_says_whether_it_only_reads() {
        for tool in [
            "jira_get_issue",
            "confluence_get_page",
            "getTicket",
            "read-issue",
            "linear.fetch",
            "show_story",
        ] {
            assert!(is_read_only(tool), "{tool}");
        }
        for tool in [
            "jira_update_issue",
            "get_or_create_issue",
            "getAndDelete",
            "issue",
            "transition",
            "fetchThenPost",
            "",
        ] {
            assert!(!is_read_only(tool), "{tool}");
        }
    }

    #[test]
    fn servers_are_read_back_as_they_are_written() {
        let servers = vec![
            ContextServer {
                name: "a".to_owned(),
                command: vec!["x".to_owned(), "x".to_owned()],
                env: vec!["TOKEN".to_owned()],
                ..ContextServer::default()
            },
            ContextServer {
                name: "b".to_owned(),
                url: Some("https://b.example/mcp".to_owned()),
                tool: Some("get_doc".to_owned()),
                argument: Some("id".to_owned()),
                reads: Reads::Pages,
                ..ContextServer::default()
            },
        ];
        assert_eq!(
            ContextPolicy::of_value(&ContextPolicy::to_value(&servers)),
            servers
        );
        assert_eq!(ContextPolicy::to_value(&[]), PolicyValue::Unset);
    }
}
