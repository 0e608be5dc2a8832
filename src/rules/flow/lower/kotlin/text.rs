//! Texts of Kotlin with `$name` and `${expression}`.
//!
//! The grammar finds `$name` only in some texts, so it is searched here too.

use super::super::super::shape::{ExprId, ExprKind};
use super::super::{Lower, children, unescape};
use tree_sitter::Node;

/// Replaces `\$`, which does not start a name.
const DOLLAR: char = '\u{0}';

/// Lowers a text. `expr` lowers an expression inside.
pub(super) fn lower(
    l: &mut Lower<'_>,
    node: Node<'_>,
    expr: fn(&mut Lower<'_>, Node<'_>) -> ExprId,
) -> ExprId {
    let mut parts = Vec::new();
    let mut pending = String::new();
    for n in children(node) {
        match n.kind() {
            "string_content" => pending.push_str(l.text(n)),
            "escape_sequence" if l.text(n) == "\\$" => pending.push(DOLLAR),
            "escape_sequence" => pending.push_str(&unescape(l.text(n))),
            "interpolation" => {
                split(l, node, &pending, &mut parts);
                pending.clear();
                if let Some(inside) = children(n).first() {
                    parts.push(expr(l, *inside));
                }
            }
            _ => {}
        }
    }
    split(l, node, &pending, &mut parts);
    match parts.as_slice() {
        [] => l.constant(node, ""),
        [one] if matches!(l.module.expr(*one).kind, ExprKind::Text(_)) => *one,
        _ => l.expr(node, ExprKind::Concat(parts)),
    }
}

/// Splits a text at `$name`.
fn split(l: &mut Lower<'_>, node: Node<'_>, text: &str, parts: &mut Vec<ExprId>) {
    let mut rest = text;
    while let Some(at) = name_at(rest) {
        let (before, after) = rest.split_at(at);
        constant(l, node, before, parts);
        let after = after.get(1..).unwrap_or_default();
        let end = after
            .find(|c: char| !c.is_alphanumeric() && c != '_')
            .unwrap_or(after.len());
        let (name, after) = after.split_at(end);
        parts.push(l.named(node, name));
        rest = after;
    }
    constant(l, node, rest, parts);
}

/// Returns the offset of a `$` that starts a name.
fn name_at(text: &str) -> Option<usize> {
    let begins = |at: &usize| {
        text.get(at + 1..)
            .is_some_and(|t| t.starts_with(|c: char| c.is_alphabetic() || c == '_'))
    };
    text.match_indices('$').map(|(at, _)| at).find(begins)
}

fn constant(l: &mut Lower<'_>, node: Node<'_>, text: &str, parts: &mut Vec<ExprId>) {
    if !text.is_empty() {
        parts.push(l.constant(node, &text.replace(DOLLAR, "$")));
    }
}
