//! Responses whose type is not HTML.

use super::super::{Lower, field};
use super::function;
use tree_sitter::Node;

/// Bytes before a call that are searched for a content type.
const SEARCHED: usize = 4_000;

/// Returns true if a call writes a response after its function has set a content type other than
/// HTML: `res.type("json")`, `res.setHeader("Content-Type", "text/plain")`.
pub(super) fn is_plain(l: &Lower<'_>, call: Node<'_>, callee: Node<'_>) -> bool {
    let name = field(callee, "property")
        .map(|p| l.text(p))
        .unwrap_or_default();
    if !matches!(name, "send" | "end" | "write" | "response") {
        return false;
    }
    let Some(around) = function_around(call) else {
        return false;
    };
    let start = around
        .start_byte()
        .max(callee.end_byte().saturating_sub(SEARCHED));
    let before = l.text.get(start..callee.end_byte()).unwrap_or_default();
    let before = before.utf8_chunks().last().map_or("", |c| c.valid());
    last_type(before).is_some_and(|t| !t.contains("html"))
}

fn function_around(node: Node<'_>) -> Option<Node<'_>> {
    let mut at = node.parent()?;
    loop {
        if function::is_literal(at)
            || matches!(at.kind(), "function_declaration" | "method_definition")
        {
            // A short callback belongs to the enclosing function.
            match at
                .parent()
                .filter(|_| at.kind() == "arrow_function" || at.kind() == "function_expression")
            {
                Some(parent) if parent.kind() == "arguments" && is_inside(parent) => at = parent,
                _ => return Some(at),
            }
        } else {
            at = at.parent()?;
        }
    }
}

/// Returns true if a node is inside a function.
fn is_inside(node: Node<'_>) -> bool {
    let mut at = node.parent();
    while let Some(n) = at {
        if function::is_literal(n)
            || matches!(n.kind(), "function_declaration" | "method_definition")
        {
            return true;
        }
        at = n.parent();
    }
    false
}

/// Returns the content type that a text sets last.
fn last_type(text: &str) -> Option<String> {
    const SETTERS: [&str; 8] = [
        "content-type",
        "contenttype(",
        ".type(",
        ".attachment(",
        ".type =",
        "content_type",
        "'content-disposition'",
        "\"content-disposition\"",
    ];
    let lower = text.to_ascii_lowercase();
    let at = SETTERS
        .iter()
        .filter_map(|s| lower.rfind(s).map(|i| (i, s.len())))
        .max()?;
    let rest = lower.get(at.0..)?;
    if rest.starts_with(".attachment") || rest.contains("disposition") {
        return Some("attachment".to_owned());
    }
    // Read the first text after the name: `'Content-Type', 'text/plain'`, `'Content-Type':
    // 'text/plain'`, `type('json')`.
    let rest = rest
        .get(at.1..)?
        .trim_start_matches(['"', '\'', ' ', ',', ':', ']', '=', '`', '\n']);
    Some(
        rest.chars()
            .take_while(|c| !matches!(c, '"' | '\'' | '`' | ')' | '\n'))
            .collect(),
    )
}
