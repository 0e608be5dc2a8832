//! Reads names from nodes: of definitions, of their qualifiers, scopes and base types.

use super::{LINE, NodeReader};
use crate::symbols::grammar::NameIn;
use tree_sitter::Node;

/// Levels of a name such as `a.b.c` that are followed, at most.
const DEPTH: usize = 12;
/// Bytes of a name, at most.
const NAME: usize = 120;
/// Fields of a type that name its base types.
const BASE_FIELDS: [&str; 3] = ["superclasses", "superclass", "trait"];
/// Kinds of nodes that list the base types of a type.
const BASE_LISTS: [&str; 16] = [
    "base_class_clause",
    "base_clause",
    "base_list",
    "class_heritage",
    "class_interface_clause",
    "constructor_invocation",
    "delegation_specifier",
    "delegation_specifiers",
    "explicit_delegation",
    "extends_clause",
    "extends_interfaces",
    "extends_type_clause",
    "implements_clause",
    "primary_constructor_base_type",
    "super_interfaces",
    "type_list",
];
/// Base types of one type, at most.
const MOST_BASES: usize = 32;

/// A name, and its first byte in the file.
pub(super) struct FoundName {
    pub(super) text: String,
    pub(super) at: usize,
}

impl NodeReader<'_> {
    /// Returns the name of a node, from where the grammar has it.
    pub(super) fn name(&self, node: Node<'_>, name: NameIn) -> Option<FoundName> {
        match name {
            NameIn::Field(field) => self.last_name(node.child_by_field_name(field)?),
            NameIn::Declarator => {
                let mut at = node;
                for _ in 0..DEPTH {
                    let inner = at.child_by_field_name("declarator");
                    // A reference, `Foo& get()`, has its declarator without a field.
                    match inner.or_else(|| {
                        at.named_child(0)
                            .filter(|_| at.kind() == "reference_declarator")
                    }) {
                        Some(inner) => at = inner,
                        None => break,
                    }
                }
                if at == node { None } else { self.last_name(at) }
            }
            NameIn::Assigned { left, .. } => self.last_name(node.child_by_field_name(left)?),
            NameIn::Child(kinds) => {
                let mut cursor = node.walk();
                let child = node
                    .named_children(&mut cursor)
                    .find(|c| kinds.contains(&c.kind()))?;
                self.last_name(child)
            }
        }
    }

    /// Returns the last part of a name: `c` of `a.b.c`, `a::b::c`, `a->c`, `c<T>`.
    pub(super) fn last_name(&self, node: Node<'_>) -> Option<FoundName> {
        /// Fields with the last part of a qualified name.
        const LAST: [&str; 8] = [
            "property",
            "attribute",
            "field",
            "name",
            "function",
            "method",
            "suffix",
            "operand",
        ];
        let mut at = node;
        for _ in 0..DEPTH {
            if at.named_child_count() == 0 {
                return self.leaf(at);
            }
            let inner = LAST.iter().find_map(|f| at.child_by_field_name(f));
            at = inner.or_else(|| last_named(at))?;
        }
        None
    }

    /// Returns the text of a leaf if it is a name.
    pub(super) fn leaf(&self, node: Node<'_>) -> Option<FoundName> {
        let text = name_of(self.text.get(node.byte_range())?)?;
        Some(FoundName {
            text,
            at: node.start_byte(),
        })
    }

    /// Returns the start of a node's text, on one line.
    pub(super) fn shown(&self, node: Node<'_>) -> String {
        let text = self.text.get(node.byte_range()).unwrap_or_default();
        let text = String::from_utf8_lossy(&text[..text.len().min(NAME)]);
        text.split_whitespace()
            .collect::<Vec<_>>()
            .join(" ")
            .trim_matches(['"', '\'', '`'])
            .to_owned()
    }

    /// Returns the first name of the path before a name; empty if there is none, or if something
    /// other than a name precedes it.
    pub(super) fn qualifier(&self, at: usize) -> String {
        let marks: &[&[u8]] = match self.grammar.family {
            "rust" => &[b"::"],
            _ => &[b"::", b"?.", b"&.", b"->", b"."],
        };
        let from = at.saturating_sub(LINE);
        let mut before = self.text.get(from..at).unwrap_or_default();
        let mut found: &[u8] = &[];
        while let Some(rest) = marks.iter().find_map(|mark| before.strip_suffix(*mark)) {
            // `...names.all()` spreads a value, and `1..count.get()` is a range.
            if before.ends_with(b"..") {
                break;
            }
            let rest = rest.trim_ascii_end();
            let start = rest
                .iter()
                .rposition(|b| !is_part_of_qualifier(*b))
                .map_or(0, |at| at + 1);
            // A call, an index, or the start of the bytes that are read.
            if start == rest.len() || start == 0 && from > 0 {
                return String::new();
            }
            found = &rest[start..];
            before = rest[..start].trim_ascii_end();
        }
        // The path continues to the left: a namespace of PHP, the root of C++.
        let is_cut = ["\\", "::"]
            .iter()
            .any(|mark| before.ends_with(mark.as_bytes()));
        if is_cut {
            String::new()
        } else {
            name_of(found).unwrap_or_default()
        }
    }

    /// Returns the type in the qualified name of a function; empty without one.
    pub(super) fn scope(&self, node: Node<'_>) -> String {
        let mut at = node;
        let mut scope = None;
        for _ in 0..DEPTH {
            let inner = at.child_by_field_name("declarator");
            let inner = inner.or_else(|| {
                at.named_child(0)
                    .filter(|_| at.kind() == "reference_declarator")
            });
            let inner = inner.or_else(|| {
                at.child_by_field_name("name")
                    .filter(|_| at.kind() == "qualified_identifier")
            });
            scope = at.child_by_field_name("scope").or(scope);
            let Some(next) = inner else { break };
            at = next;
        }
        scope
            .and_then(|n| self.last_name(n))
            .map_or(String::new(), |name| name.text)
    }

    /// Returns the base types of a type, in order.
    pub(super) fn bases(&self, node: Node<'_>) -> Vec<String> {
        let mut found: Vec<(usize, String)> = Vec::new();
        let mut open: Vec<Node<'_>> = BASE_FIELDS
            .iter()
            .filter_map(|f| node.child_by_field_name(f))
            .collect();
        let mut cursor = node.walk();
        open.extend(
            node.named_children(&mut cursor)
                .filter(|n| BASE_LISTS.contains(&n.kind())),
        );
        while let Some(list) = open.pop().filter(|_| found.len() < MOST_BASES) {
            if self.table.is_name(list.kind_id())
                || list.kind().ends_with("_type") && !BASE_LISTS.contains(&list.kind())
            {
                found.extend(self.last_name(list).map(|name| (name.at, name.text)));
                continue;
            }
            // In `D by value`, the name after the type is a value.
            let most = if list.kind() == "explicit_delegation" {
                1
            } else {
                MOST_BASES
            };
            let mut cursor = list.walk();
            let types = list
                .named_children(&mut cursor)
                .filter(|n| !n.kind().contains("argument") && n.kind() != "access_specifier");
            for child in types.take(most) {
                // In `Generic[T]`, the first part is the name.
                let named = child
                    .child_by_field_name("value")
                    .filter(|_| child.kind() == "subscript")
                    .unwrap_or(child);
                match BASE_LISTS.contains(&child.kind()) {
                    true => open.push(child),
                    false => found.extend(self.last_name(named).map(|name| (name.at, name.text))),
                }
            }
        }
        found.sort();
        found.dedup();
        found.into_iter().map(|(_, name)| name).collect()
    }
}

/// Returns the last child of a node that is a name or a type.
fn last_named(node: Node<'_>) -> Option<Node<'_>> {
    (0..node.named_child_count()).rev().find_map(|i| {
        let child = node.named_child(i as u32)?;
        let is_name = ["identifier", "name", "constant", "word"]
            .iter()
            .any(|k| child.kind().ends_with(k));
        (is_name || child.kind() == "user_type").then_some(child)
    })
}

/// Returns true if a byte can be part of a name before another name.
fn is_part_of_qualifier(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b"_$@".contains(&b) || !b.is_ascii()
}

/// Returns a text if it is a name.
pub(super) fn name_of(text: &[u8]) -> Option<String> {
    let is_name = !text.is_empty()
        && text.len() <= NAME
        && text
            .iter()
            .all(|b| b.is_ascii_alphanumeric() || b"_$!?=-~#@.".contains(b) || !b.is_ascii());
    is_name.then(|| String::from_utf8_lossy(text).into_owned())
}
