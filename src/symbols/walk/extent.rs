//! Reads the lines of nodes: where a definition starts, where its signature ends, and the line that
//! describes it.

use super::{LINE, NodeReader};
use crate::symbols::MAX_HEADING;
use std::ops::Range;
use tree_sitter::Node;

impl NodeReader<'_> {
    /// Returns the line that contains a byte, without white space around it, at most
    /// [`MAX_HEADING`] bytes.
    pub(super) fn line_at(&self, at: usize) -> Range<usize> {
        // In a long line, such as in a minified file, only the part from the name on.
        let start = self.line_start(at).unwrap_or(at);
        let rest = &self.text[start..self.text.len().min(start + LINE)];
        let line = &rest[..memchr::memchr(b'\n', rest).unwrap_or(rest.len())];
        let start = start + (line.len() - line.trim_ascii_start().len());
        let line = line.trim_ascii();
        // The end of a character.
        let mut ends = (0..=line.len().min(MAX_HEADING)).rev();
        let end = ends
            .find(|end| line.get(*end).is_none_or(|b| b & 0xc0 != 0x80))
            .unwrap_or(0);
        start..start + line[..end].trim_ascii_end().len()
    }

    /// Returns the start of the line of a byte; `None` if it is more than [`LINE`] bytes before it.
    fn line_start(&self, at: usize) -> Option<usize> {
        let from = at.saturating_sub(LINE);
        match memchr::memrchr(b'\n', &self.text[from..at]) {
            Some(i) => Some(from + i + 1),
            None => (from == 0).then_some(0),
        }
    }

    /// Returns the body of a definition, or of the assigned function.
    pub(super) fn body<'n>(&self, node: Node<'n>) -> Option<Node<'n>> {
        node.child_by_field_name("body")
            .or_else(|| self.body_of_value(node))
            .or_else(|| {
                let mut cursor = node.walk();
                node.named_children(&mut cursor)
                    .find(|c| self.grammar.bodies.contains(&c.kind()))
            })
    }

    /// Returns the body of the function that a definition assigns.
    fn body_of_value<'n>(&self, node: Node<'n>) -> Option<Node<'n>> {
        ["value", "right", "type"].iter().find_map(|f| {
            let value = node.child_by_field_name(f)?;
            if self.grammar.bodies.contains(&value.kind()) {
                return Some(value);
            }
            value.child_by_field_name("body")
        })
    }

    /// Returns the last line before a body.
    pub(super) fn before(&self, body: Node<'_>) -> u32 {
        let line = first(body);
        let start = self.line_start(body.start_byte());
        let is_alone = start.is_some_and(|s| {
            self.text[s..body.start_byte()]
                .iter()
                .all(u8::is_ascii_whitespace)
        });
        if !is_alone {
            return line;
        }
        // A brace on its own line is not part of the signature in any style, and neither are
        // comments before the first statement.
        let mut before = body.prev_sibling();
        while let Some(comment) = before.filter(|n| n.kind().contains("comment")) {
            before = comment.prev_sibling();
        }
        before.map_or(1, last).max(1).min(line)
    }
}

/// Returns the first line of a node.
pub(super) fn first(node: Node<'_>) -> u32 {
    node.start_position().row as u32 + 1
}

/// Returns the last line of a node. If the node ends at the start of a line, that is the line
/// before.
pub(super) fn last(node: Node<'_>) -> u32 {
    let end = node.end_position();
    if end.column == 0 && end.row > node.start_position().row {
        end.row as u32
    } else {
        end.row as u32 + 1
    }
}

/// Returns the first line of the attributes directly before a definition, or its own first line.
pub(super) fn attributes(node: Node<'_>) -> u32 {
    let mut line = first(node);
    let mut before = node.prev_sibling();
    while let Some(attribute) =
        before.filter(|n| n.kind() == "attribute_item" && last(*n) + 1 >= line)
    {
        line = first(attribute);
        before = attribute.prev_sibling();
    }
    line
}
