//! Functions and classes of Kotlin.

use super::super::super::shape::{
    Annotation, Class, CodeBlock, ExprKind, Field, Function, FunctionId, Param, StmtKind, Sym,
};
use super::super::java::spring;
use super::super::{Lower, child, children, field, span, stmt};
use super::{arguments, body, expr, is_type, property_value, statement, type_name, variable};
use tree_sitter::Node;

pub(super) fn mark(l: &mut Lower<'_>, node: Node<'_>) -> Option<Annotation> {
    let call = child(node, "constructor_invocation");
    let ty = children(call.unwrap_or(node))
        .into_iter()
        .find(|n| is_type(*n))?;
    let path = l.text(ty).to_owned();
    let name = l.path(ty, &path);
    let args = call
        .and_then(|c| child(c, "value_arguments"))
        .map(|a| arguments(l, a))
        .unwrap_or_default();
    Some(Annotation { name, args })
}

pub(super) fn marks(l: &mut Lower<'_>, node: Option<Node<'_>>) -> Vec<Annotation> {
    let annotations = node
        .map(children)
        .unwrap_or_default()
        .into_iter()
        .filter(|n| n.kind() == "annotation");
    annotations.filter_map(|a| mark(l, a)).collect()
}

pub(super) fn function(
    l: &mut Lower<'_>,
    node: Node<'_>,
    before: Vec<Annotation>,
    around: &[Annotation],
) -> FunctionId {
    let name = field(node, "name").map(|n| l.sym_of(n));
    let mut own = before;
    own.extend(marks(l, child(node, "modifiers")));
    let list = child(node, "function_value_parameters");
    let params = list.map(|p| parameters(l, p)).unwrap_or_default();
    let after = children(node)
        .into_iter()
        .skip_while(|n| n.kind() != "function_value_parameters");
    let ty = after
        .into_iter()
        .find(|n| is_type(*n))
        .map(|n| type_name(l, n));
    let written = child(node, "function_body");
    let mut main = written.map(|b| function_body(l, b)).unwrap_or_default();
    if let Some(written) = written {
        let text = ty.unwrap_or_else(|| l.sym("String"));
        spring::responses(l, &mut main, &own, around, Some(text), written);
        trust_all(l, node, &params, written, &mut main);
    }
    let function = Function {
        span: span(node),
        name,
        params,
        body: main,
        marks: own,
        ty,
        ..Default::default()
    };
    l.module.add_function(function)
}

/// Lowers `{ … }` or `= expression`.
fn function_body(l: &mut Lower<'_>, node: Node<'_>) -> CodeBlock {
    let Some(inside) = children(node).first().copied() else {
        return Vec::new();
    };
    if inside.kind() == "block" {
        return body(l, inside);
    }
    let value = expr(l, inside);
    vec![stmt(inside, StmtKind::Return(Some(value)))]
}

/// Adds calls to methods that accept every certificate or every host name. The table has these
/// calls.
fn trust_all(
    l: &mut Lower<'_>,
    node: Node<'_>,
    params: &[Param],
    written: Node<'_>,
    main: &mut CodeBlock,
) {
    let Some(name) = field(node, "name") else {
        return;
    };
    let text = l
        .text(written)
        .trim_matches(['=', '{', '}', ' ', '\n', '\t', '\r']);
    let callee = match (l.text(name), text) {
        ("checkServerTrusted", "" | "Unit") if params.len() > 1 => "java.trust-all",
        ("verify", "true" | "return true") if params.len() == 2 => "java.verify-all",
        _ => return,
    };
    let call = l.call(name, callee, Vec::new());
    main.insert(0, stmt(name, StmtKind::Expr(call)));
}

fn parameters(l: &mut Lower<'_>, node: Node<'_>) -> Vec<Param> {
    let mut out: Vec<Param> = Vec::new();
    let mut before = None;
    for p in children(node) {
        match p.kind() {
            "parameter_modifiers" | "modifiers" => before = Some(p),
            "parameter" | "class_parameter" => {
                let own = before.take().or_else(|| child(p, "modifiers"));
                let Some(name) = child(p, "identifier") else {
                    continue;
                };
                let is_variadic = own.is_some_and(|m| l.text(m).contains("vararg"));
                let marks = marks(l, own);
                let ty = children(p)
                    .into_iter()
                    .find(|n| is_type(*n))
                    .map(|n| type_name(l, n));
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
            _ => {
                let value = expr(l, p);
                if let Some(last) = out.last_mut() {
                    last.default = Some(value);
                }
            }
        }
    }
    out
}

pub(super) fn class(l: &mut Lower<'_>, node: Node<'_>, before: Vec<Annotation>) -> StmtKind {
    let name = field(node, "name").map(|n| l.sym_of(n));
    let mut own = before;
    own.extend(marks(l, child(node, "modifiers")));
    let mut class = Class {
        span: span(node),
        name,
        bases: bases(l, node),
        marks: own,
        ..Default::default()
    };
    if let Some(c) = child(node, "primary_constructor") {
        constructor(l, c, &mut class);
    }
    if let Some(body) = child(node, "class_body").or_else(|| child(node, "enum_class_body")) {
        members(l, body, &mut class, false);
    }
    StmtKind::Class(l.module.add_class(class))
}

pub(super) fn bases(l: &mut Lower<'_>, node: Node<'_>) -> Vec<Sym> {
    let mut out = Vec::new();
    for d in child(node, "delegation_specifiers")
        .map(children)
        .unwrap_or_default()
    {
        let d = child(d, "constructor_invocation").unwrap_or(d);
        out.extend(
            children(d)
                .into_iter()
                .find(|n| is_type(*n))
                .map(|n| type_name(l, n)),
        );
    }
    out
}

/// Adds the properties and the constructor that `class A(val b: B)` declares.
fn constructor(l: &mut Lower<'_>, node: Node<'_>, class: &mut Class) {
    let params = child(node, "class_parameters")
        .map(|p| parameters(l, p))
        .unwrap_or_default();
    let mut main = Vec::new();
    for p in &params {
        let Some(name) = p.name else { continue };
        class.fields.push(Field {
            name,
            ty: p.ty,
            value: None,
            marks: p.marks.clone(),
        });
        let of = l.expr(node, ExprKind::This);
        let target = l.expr(node, ExprKind::Member { of, name });
        let value = l.expr(node, ExprKind::Name(name));
        main.push(l.assign(node, target, value));
    }
    let function = Function {
        span: span(node),
        name: class.name,
        params,
        body: main,
        is_constructor: true,
        ..Default::default()
    };
    class.methods.push(l.module.add_function(function));
}

pub(super) fn members(l: &mut Lower<'_>, node: Node<'_>, class: &mut Class, is_static: bool) {
    for n in children(node) {
        match n.kind() {
            "function_declaration" => {
                let id = function(l, n, Vec::new(), &class.marks);
                if is_static && let Some(f) = l.module.functions.get_mut(id.0 as usize) {
                    f.is_static = true;
                }
                class.methods.push(id);
            }
            "secondary_constructor" => secondary(l, n, class),
            "property_declaration" => member_property(l, n, class),
            "companion_object" => child(n, "class_body").map_or((), |b| members(l, b, class, true)),
            "enum_entry" => {}
            _ => statement(l, n, &mut class.body),
        }
    }
}

fn secondary(l: &mut Lower<'_>, node: Node<'_>, class: &mut Class) {
    let params = child(node, "function_value_parameters")
        .map(|p| parameters(l, p))
        .unwrap_or_default();
    let main = child(node, "block").map(|b| body(l, b)).unwrap_or_default();
    let function = Function {
        span: span(node),
        name: class.name,
        params,
        body: main,
        is_constructor: true,
        ..Default::default()
    };
    class.methods.push(l.module.add_function(function));
}

fn member_property(l: &mut Lower<'_>, node: Node<'_>, class: &mut Class) {
    let Some(declared) = child(node, "variable_declaration") else {
        return;
    };
    let Some(name) = child(declared, "identifier").map(|n| l.sym_of(n)) else {
        return;
    };
    let (_, ty) = variable(l, declared);
    let marks = marks(l, child(node, "modifiers"));
    if let Some(getter) = child(node, "getter").and_then(|g| child(g, "function_body")) {
        let main = function_body(l, getter);
        let function = Function {
            span: span(node),
            name: Some(name),
            body: main,
            ty,
            is_getter: true,
            ..Default::default()
        };
        class.methods.push(l.module.add_function(function));
        return;
    }
    let value = property_value(l, node);
    class.fields.push(Field {
        name,
        ty,
        value,
        marks,
    });
}
