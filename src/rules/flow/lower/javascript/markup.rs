//! Elements of JSX.

use super::super::super::shape::{CodeBlock, StmtKind};
use super::super::{Lower, child, children, field, fields, stmt};
use super::expression::expr;
use super::{ExprId, ExprKind};
use tree_sitter::Node;

/// Attributes whose value is executed as a script if it starts with `javascript:`.
const ADDRESSES: [(&str, &str); 12] = [
    ("a", "href"),
    ("area", "href"),
    ("base", "href"),
    ("iframe", "src"),
    ("iframe", "srcDoc"),
    ("frame", "src"),
    ("embed", "src"),
    ("script", "src"),
    ("object", "data"),
    ("form", "action"),
    ("button", "formAction"),
    ("input", "formAction"),
];

/// Lowers an element. Its value is harmless: React escapes its children.
pub(super) fn element(l: &mut Lower<'_>, node: Node<'_>) -> ExprId {
    let mut body: CodeBlock = Vec::new();
    inside(l, node, &mut body);
    l.expr(node, ExprKind::Block { body, value: None })
}

fn inside(l: &mut Lower<'_>, node: Node<'_>, out: &mut CodeBlock) {
    if !l.enter() {
        return;
    }
    match node.kind() {
        "jsx_element" => {
            for n in children(node) {
                inside(l, n, out);
            }
        }
        "jsx_opening_element" | "jsx_self_closing_element" => {
            let tag = field(node, "name").map(|n| l.text(n)).unwrap_or_default();
            for a in fields(node, "attribute") {
                attribute(l, tag, a, out);
            }
        }
        "jsx_expression" => {
            for n in children(node) {
                let id = expr(l, n);
                out.push(stmt(n, StmtKind::Expr(id)));
            }
        }
        _ => {}
    }
    l.leave();
}

fn attribute(l: &mut Lower<'_>, tag: &str, node: Node<'_>, out: &mut CodeBlock) {
    if node.kind() != "jsx_attribute" {
        return inside(l, node, out);
    }
    let parts = children(node);
    let (Some(name), Some(value)) = (parts.first(), parts.get(1)) else {
        return;
    };
    let word = l.text(*name);
    let inner = match value.kind() {
        "jsx_expression" => children(*value).first().copied(),
        _ => Some(*value),
    };
    let Some(mut inner) = inner else { return };
    let is_html = word == "dangerouslySetInnerHTML";
    if is_html && let Some(html) = html_of(l, inner) {
        inner = html;
    }
    let value = if matches!(inner.kind(), "jsx_element" | "jsx_self_closing_element") {
        element(l, inner)
    } else {
        expr(l, inner)
    };
    if is_html || ADDRESSES.contains(&(tag, word)) {
        let of = l.unknown(node, Vec::new());
        let name = l.sym(if is_html { word } else { "jsx-address" });
        let target = l.expr(node, ExprKind::Member { of, name });
        out.push(l.assign(node, target, value));
    } else {
        out.push(stmt(node, StmtKind::Expr(value)));
    }
}

/// Returns `x` of `{ __html: x }`.
fn html_of<'n>(l: &Lower<'_>, node: Node<'n>) -> Option<Node<'n>> {
    if node.kind() != "object" {
        return None;
    }
    let pair = child(node, "pair").filter(|p| {
        field(*p, "key").is_some_and(|k| l.text(k).trim_matches(['"', '\'']) == "__html")
    })?;
    field(pair, "value")
}
