//! Lowers classes of JavaScript and TypeScript: fields, methods and their decorators.

use super::super::super::shape::{Annotation, Class, ClassId, Field, FunctionId, Stmt, StmtKind};
use super::super::{Lower, child, children, field, fields, has_token, span, stmt};
use super::expression::expr;
use super::function::{self, mark, type_name};
use super::{ExprKind, statement};
use tree_sitter::Node;

/// Lowers a class. `outer`: decorators outside of the node.
pub(super) fn class(l: &mut Lower<'_>, node: Node<'_>, outer: &[Node<'_>]) -> ClassId {
    let name = field(node, "name").map(|n| l.sym_of(n));
    let mut marks: Vec<Annotation> = outer.iter().map(|d| mark(l, *d)).collect();
    marks.extend(fields(node, "decorator").into_iter().map(|d| mark(l, d)));
    let mut class = Class {
        span: span(node),
        name,
        marks,
        ..Default::default()
    };
    if let Some(heritage) = child(node, "class_heritage") {
        bases(l, heritage, &mut class);
    }
    let mut pending: Vec<Annotation> = Vec::new();
    for member in field(node, "body").map(children).unwrap_or_default() {
        if member.kind() == "decorator" {
            pending.push(mark(l, member));
            continue;
        }
        let mut marks = std::mem::take(&mut pending);
        marks.extend(fields(member, "decorator").into_iter().map(|d| mark(l, d)));
        self::member(l, member, marks, &mut class);
    }
    l.module.add_class(class)
}

fn bases(l: &mut Lower<'_>, node: Node<'_>, class: &mut Class) {
    for part in children(node) {
        match part.kind() {
            "extends_clause" => {
                let names = fields(part, "value");
                class.bases.extend(names.into_iter().map(|n| l.sym_of(n)));
            }
            "implements_clause" => {
                let names = children(part);
                class
                    .bases
                    .extend(names.into_iter().filter_map(|n| type_name(l, n)));
            }
            _ => class.bases.push(l.sym_of(part)),
        }
    }
}

fn member(l: &mut Lower<'_>, node: Node<'_>, marks: Vec<Annotation>, class: &mut Class) {
    match node.kind() {
        "method_definition" => {
            let id = method(l, node, marks);
            constructor_fields(l, node, id, class);
            class.methods.push(id);
        }
        "field_definition" | "public_field_definition" => property(l, node, marks, class),
        "class_static_block" => statement(l, node, &mut class.body),
        _ => {}
    }
}

/// Lowers a method.
pub(super) fn method(l: &mut Lower<'_>, node: Node<'_>, marks: Vec<Annotation>) -> FunctionId {
    let id = function::function(l, node, None);
    let is_constructor = field(node, "name").is_some_and(|n| l.text(n) == "constructor");
    let (is_static, is_getter) = (has_token(node, "static"), has_token(node, "get"));
    if let Some(f) = l.module.functions.get_mut(id.0 as usize) {
        f.marks = marks;
        f.is_constructor = is_constructor;
        f.is_static = is_static;
        f.is_getter = is_getter;
    }
    id
}

/// Lowers `constructor(private readonly db: Pool)` of TypeScript, which declares a field and
/// assigns it.
fn constructor_fields(l: &mut Lower<'_>, node: Node<'_>, id: FunctionId, class: &mut Class) {
    let mut assigned: Vec<Stmt> = Vec::new();
    for p in field(node, "parameters").map(children).unwrap_or_default() {
        if child(p, "accessibility_modifier").is_none() && !has_token(p, "readonly") {
            continue;
        }
        let Some(name) = field(p, "pattern").filter(|n| n.kind() == "identifier") else {
            continue;
        };
        let ty = field(p, "type").and_then(|t| type_name(l, t));
        let word = l.sym_of(name);
        class.fields.push(Field {
            name: word,
            ty,
            value: None,
            marks: Vec::new(),
        });
        let this = l.expr(p, ExprKind::This);
        let target = l.expr(
            p,
            ExprKind::Member {
                of: this,
                name: word,
            },
        );
        let value = l.name(name);
        assigned.push(l.assign(p, target, value));
    }
    if let Some(f) = l.module.functions.get_mut(id.0 as usize) {
        assigned.append(&mut f.body);
        f.body = assigned;
    }
}

fn property(l: &mut Lower<'_>, node: Node<'_>, marks: Vec<Annotation>, class: &mut Class) {
    let Some(name) = field(node, "property").or_else(|| field(node, "name")) else {
        return;
    };
    let value = field(node, "value");
    if let Some(v) = value.filter(|v| function::is_literal(*v)) {
        // `handle = async (req, res) => {…}` is a bound method.
        let word = l.text(name);
        let id = function::function(l, v, Some(word));
        if let Some(f) = l.module.functions.get_mut(id.0 as usize) {
            f.marks = marks;
        }
        class.methods.push(id);
        return;
    }
    let ty = field(node, "type").and_then(|t| type_name(l, t));
    let value = value.map(|v| expr(l, v));
    if name.kind() == "computed_property_name" {
        if let Some(value) = value {
            class.body.push(stmt(node, StmtKind::Expr(value)));
        }
        return;
    }
    let word = l.text(name).trim_matches(['"', '\'']);
    let name = l.sym(word);
    class.fields.push(Field {
        name,
        ty,
        value,
        marks,
    });
}
