//! Classes, records and methods of Java, and their annotations.

use super::super::super::shape::{
    Annotation, Arg, Class, CodeBlock, ExprKind, Field, Function, FunctionId, Param, StmtKind, Sym,
};
use super::super::{Lower, child, children, field, fields, has_token, plain, span, stmt};
use super::{body_of, expr, spring, statement, type_name};
use tree_sitter::Node;

/// Lowers the annotations of a declaration.
fn marks(l: &mut Lower<'_>, node: Node<'_>) -> Vec<Annotation> {
    let mut out = Vec::new();
    let Some(modifiers) = child(node, "modifiers") else {
        return out;
    };
    for a in children(modifiers)
        .into_iter()
        .filter(|n| matches!(n.kind(), "annotation" | "marker_annotation"))
    {
        let Some(name) = field(a, "name") else {
            continue;
        };
        let path = l.text(name).to_owned();
        let name = l.path(name, &path);
        let args = field(a, "arguments")
            .map(|n| annotation_arguments(l, n))
            .unwrap_or_default();
        out.push(Annotation { name, args });
    }
    out
}

pub(super) fn annotation_arguments(l: &mut Lower<'_>, node: Node<'_>) -> Vec<Arg> {
    let mut out = Vec::new();
    for a in children(node) {
        let arg = match (a.kind(), field(a, "key"), field(a, "value")) {
            ("element_value_pair", Some(key), Some(value)) => Arg {
                keyword: Some(l.sym_of(key)),
                value: expr(l, value),
                is_spread: false,
            },
            _ => plain(expr(l, a)),
        };
        out.push(arg);
    }
    out
}

fn has_modifier(node: Node<'_>, word: &str) -> bool {
    child(node, "modifiers").is_some_and(|m| has_token(m, word))
}

/// Lowers a method or constructor. `around`: the annotations of its class.
pub(super) fn function(l: &mut Lower<'_>, node: Node<'_>, around: &[Annotation]) -> FunctionId {
    let name = field(node, "name").map(|n| l.sym_of(n));
    let ty = field(node, "type").and_then(|n| type_name(l, n));
    let marks = marks(l, node);
    let params = field(node, "parameters")
        .map(|p| parameters(l, p))
        .unwrap_or_default();
    let mut body = body_of(l, node, "body");
    if let Some(block) = field(node, "body") {
        spring::responses(l, &mut body, &marks, around, ty, block);
        trust_all(l, node, &params, block, &mut body);
    }
    let is_constructor = node.kind() != "method_declaration";
    let is_static = has_modifier(node, "static");
    let function = Function {
        span: span(node),
        name,
        params,
        body,
        marks,
        ty,
        is_constructor,
        is_static,
        ..Default::default()
    };
    l.module.add_function(function)
}

/// Adds calls to methods that accept every certificate or every host name: `checkServerTrusted`
/// with an empty body, and a `verify` that only returns `true`. The table has these calls.
fn trust_all(
    l: &mut Lower<'_>,
    node: Node<'_>,
    params: &[Param],
    block: Node<'_>,
    body: &mut CodeBlock,
) {
    let Some(name) = field(node, "name") else {
        return;
    };
    let statements = children(block);
    let callee = match (l.text(name), statements.as_slice()) {
        ("checkServerTrusted", []) if params.len() > 1 => "java.trust-all",
        ("verify", [one]) if is_verifier(l, params) && is_true(l, *one) => "java.verify-all",
        _ => return,
    };
    let call = l.call(name, callee, Vec::new());
    body.insert(0, stmt(name, StmtKind::Expr(call)));
}

/// Returns true for the parameters of `HostnameVerifier.verify`.
fn is_verifier(l: &Lower<'_>, params: &[Param]) -> bool {
    matches!(params, [_, Param { ty: Some(ty), .. }] if l.module.word(*ty).ends_with("SSLSession"))
}

fn is_true(l: &Lower<'_>, node: Node<'_>) -> bool {
    node.kind() == "return_statement"
        && l.text(node)
            .trim_start_matches("return")
            .trim_matches([' ', ';'])
            == "true"
}

pub(super) fn parameters(l: &mut Lower<'_>, node: Node<'_>) -> Vec<Param> {
    let mut out = Vec::new();
    for p in children(node) {
        let is_variadic = p.kind() == "spread_parameter";
        let name = match p.kind() {
            "identifier" => Some(p),
            _ => field(p, "name")
                .or_else(|| child(p, "variable_declarator").and_then(|d| field(d, "name"))),
        };
        let Some(name) = name else { continue };
        let ty = field(p, "type").or_else(|| is_variadic.then(|| spread_type(p)).flatten());
        let ty = ty.and_then(|t| type_name(l, t));
        let marks = marks(l, p);
        let ty = if spring::is_injected(l, &marks) {
            Some(l.sym("Principal"))
        } else {
            ty
        };
        out.push(Param {
            span: span(p),
            name: Some(l.sym_of(name)),
            ty,
            marks,
            is_variadic,
            ..Default::default()
        });
    }
    out
}

fn spread_type(node: Node<'_>) -> Option<Node<'_>> {
    children(node)
        .into_iter()
        .find(|n| !matches!(n.kind(), "modifiers" | "variable_declarator"))
}

fn bases(l: &mut Lower<'_>, node: Node<'_>) -> Vec<Sym> {
    let mut out = Vec::new();
    for part in [
        field(node, "superclass"),
        field(node, "interfaces"),
        child(node, "extends_interfaces"),
    ] {
        for n in part.map(children).unwrap_or_default() {
            let types = if n.kind() == "type_list" {
                children(n)
            } else {
                vec![n]
            };
            out.extend(types.into_iter().filter_map(|t| type_name(l, t)));
        }
    }
    out
}

pub(super) fn class(l: &mut Lower<'_>, node: Node<'_>) -> StmtKind {
    let name = field(node, "name").map(|n| l.sym_of(n));
    let mut class = Class {
        span: span(node),
        name,
        bases: bases(l, node),
        marks: marks(l, node),
        ..Default::default()
    };
    class.is_enum = node.kind() == "enum_declaration";
    if node.kind() == "record_declaration" {
        record(l, node, &mut class);
    }
    if let Some(body) = field(node, "body") {
        members(l, body, &mut class);
    }
    StmtKind::Class(l.module.add_class(class))
}

pub(super) fn members(l: &mut Lower<'_>, node: Node<'_>, class: &mut Class) {
    for n in children(node) {
        match n.kind() {
            "method_declaration" | "constructor_declaration" => {
                let id = function(l, n, &class.marks);
                class.methods.push(id);
            }
            "field_declaration" | "constant_declaration" => member_fields(l, n, class),
            "enum_body_declarations" => members(l, n, class),
            "enum_constant" | "compact_constructor_declaration" => {}
            _ => statement(l, n, &mut class.body),
        }
    }
}

fn member_fields(l: &mut Lower<'_>, node: Node<'_>, class: &mut Class) {
    let ty = field(node, "type").and_then(|t| type_name(l, t));
    let marks = marks(l, node);
    for d in fields(node, "declarator") {
        let Some(name) = field(d, "name") else {
            continue;
        };
        let value = field(d, "value").map(|v| expr(l, v));
        let name = l.sym_of(name);
        class.fields.push(Field {
            name,
            ty,
            value,
            marks: marks.clone(),
        });
    }
}

/// Adds the constructor and the accessors of a record.
fn record(l: &mut Lower<'_>, node: Node<'_>, class: &mut Class) {
    let params = field(node, "parameters")
        .map(|p| parameters(l, p))
        .unwrap_or_default();
    let mut body = Vec::new();
    for p in &params {
        let Some(name) = p.name else { continue };
        class.fields.push(Field {
            name,
            ty: p.ty,
            value: None,
            marks: Vec::new(),
        });
        let this = l.expr(node, ExprKind::This);
        let target = l.expr(node, ExprKind::Member { of: this, name });
        let value = l.expr(node, ExprKind::Name(name));
        body.push(l.assign(node, target, value));
        let back = vec![stmt(node, StmtKind::Return(Some(target)))];
        let accessor = Function {
            span: p.span,
            name: Some(name),
            body: back,
            ty: p.ty,
            ..Default::default()
        };
        class.methods.push(l.module.add_function(accessor));
    }
    let constructor = Function {
        span: span(node),
        name: class.name,
        params,
        body,
        is_constructor: true,
        ..Default::default()
    };
    class.methods.push(l.module.add_function(constructor));
}
