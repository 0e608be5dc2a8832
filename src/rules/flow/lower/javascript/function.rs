//! Functions, their parameters and types.

use super::super::super::shape::{Annotation, Function, FunctionId, Param, StmtKind, Sym};
use super::super::{Lower, children, field, fields, span, stmt};
use super::expression::{arguments, expr};
use super::notice::mentions;
use super::{ExprId, ExprKind, body_of};
use tree_sitter::Node;

/// Returns true if the node is a function literal.
pub(super) fn is_literal(node: Node<'_>) -> bool {
    matches!(
        node.kind(),
        "arrow_function" | "function_expression" | "generator_function"
    )
}

/// Lowers a function literal as an expression.
pub(super) fn literal(l: &mut Lower<'_>, node: Node<'_>, name: Option<&str>) -> ExprId {
    let id = function(l, node, name);
    l.expr(node, ExprKind::Function(id))
}

/// Lowers a function, method or function literal.
pub(super) fn function(l: &mut Lower<'_>, node: Node<'_>, name: Option<&str>) -> FunctionId {
    let name = match (field(node, "name"), name) {
        (_, Some(name)) => Some(l.sym(name)),
        (Some(n), None) => Some(l.sym_of(n)),
        (None, None) => None,
    };
    let params = match (field(node, "parameters"), field(node, "parameter")) {
        (Some(p), _) => parameters(l, p),
        (None, Some(p)) => vec![Param {
            span: span(p),
            name: Some(l.sym_of(p)),
            ..Default::default()
        }],
        (None, None) => Vec::new(),
    };
    let body = match field(node, "body") {
        Some(b) if b.kind() != "statement_block" => {
            let value = expr(l, b);
            vec![stmt(b, StmtKind::Return(Some(value)))]
        }
        _ => body_of(l, node, "body"),
    };
    let ty = field(node, "return_type").and_then(|t| type_name(l, t));
    l.module.add_function(Function {
        span: span(node),
        name,
        params,
        body,
        ty,
        ..Default::default()
    })
}

/// Lowers the parameters of a function.
pub(super) fn parameters(l: &mut Lower<'_>, node: Node<'_>) -> Vec<Param> {
    let parts = children(node);
    parts
        .into_iter()
        .filter(|p| p.kind() != "ERROR" && p.kind() != "this")
        .map(|p| parameter(l, p))
        .collect()
}

fn parameter(l: &mut Lower<'_>, node: Node<'_>) -> Param {
    let ty = field(node, "type").and_then(|t| type_name(l, t));
    let mut marks: Vec<Annotation> = fields(node, "decorator")
        .into_iter()
        .map(|d| mark(l, d))
        .collect();
    let (mut inner, mut default) = (node, None);
    if let Some(n) = field(node, "pattern").or_else(|| field(node, "name")) {
        inner = n;
        default = field(node, "value").map(|v| expr(l, v));
    }
    if let ("assignment_pattern", Some(left)) = (inner.kind(), field(inner, "left")) {
        default = field(inner, "right").map(|v| expr(l, v));
        inner = left;
    }
    let is_variadic = inner.kind() == "rest_pattern";
    if is_variadic {
        inner = children(inner).first().copied().unwrap_or(inner);
    }
    let is_scalar =
        ty.is_some_and(|t| matches!(l.module.word(t), "number" | "boolean" | "bigint" | "Date"));
    if is_scalar || marks.iter().any(|m| has_pipe(l, m)) {
        marks.clear();
    }
    let (name, pattern) = match inner.kind() {
        "identifier" => (Some(l.sym_of(inner)), None),
        _ => (None, Some(expr(l, inner))),
    };
    let ty = if is_lambda_event(l, inner, ty) {
        Some(l.sym("aws.Event"))
    } else {
        ty
    };
    Param {
        span: span(node),
        name,
        pattern,
        ty,
        default,
        marks,
        is_variadic,
    }
}

/// Returns true for the event of an AWS Lambda function, whose file responds with `{ statusCode,
/// body }`.
fn is_lambda_event(l: &Lower<'_>, name: Node<'_>, ty: Option<Sym>) -> bool {
    ty.is_none_or(|t| l.module.word(t) == "any")
        && l.text(name) == "event"
        && ["statusCode:", "event.body"].iter().all(|w| mentions(l, w))
}

/// Returns true if a decorator of a parameter has a pipe that accepts only numbers, UUIDs and
/// similar values.
fn has_pipe(l: &Lower<'_>, mark: &Annotation) -> bool {
    const PIPES: [&str; 6] = [
        "ParseIntPipe",
        "ParseFloatPipe",
        "ParseBoolPipe",
        "ParseUUIDPipe",
        "ParseEnumPipe",
        "ParseDatePipe",
    ];
    mark.args
        .iter()
        .any(|a| match &l.module.expr(a.value).kind {
            ExprKind::Name(n) => PIPES.contains(&l.module.word(*n)),
            ExprKind::New { class, .. } => match l.module.expr(*class).kind {
                ExprKind::Name(n) => PIPES.contains(&l.module.word(n)),
                _ => false,
            },
            _ => false,
        })
}

/// Lowers a decorator.
pub(super) fn mark(l: &mut Lower<'_>, node: Node<'_>) -> Annotation {
    let inner = children(node).first().copied().unwrap_or(node);
    match (
        inner.kind(),
        field(inner, "function"),
        field(inner, "arguments"),
    ) {
        ("call_expression", Some(name), Some(args)) => Annotation {
            name: expr(l, name),
            args: arguments(l, args),
        },
        _ => Annotation {
            name: expr(l, inner),
            args: Vec::new(),
        },
    }
}

/// Returns the name of a declared type without type arguments, arrays and `null`: `Request<P>` is
/// `Request`. Returns None for types without a name.
pub(super) fn type_name(l: &mut Lower<'_>, node: Node<'_>) -> Option<Sym> {
    let mut at = node;
    // A type with a name has only a few levels.
    for _ in 0..8 {
        match at.kind() {
            "type_identifier" | "nested_type_identifier" | "predefined_type" | "identifier" => {
                let text = l.text(at);
                return Some(l.sym(text));
            }
            "generic_type" => {
                let name = field(at, "name").or_else(|| children(at).first().copied())?;
                let is_wrapper = matches!(
                    l.text(name),
                    "Promise" | "Readonly" | "Partial" | "Required" | "NonNullable"
                );
                let inner = field(at, "type_arguments").and_then(|a| children(a).first().copied());
                at = inner.filter(|_| is_wrapper).unwrap_or(name);
            }
            "union_type" => {
                let parts = children(at);
                let named = parts
                    .into_iter()
                    .find(|n| !matches!(l.text(*n), "null" | "undefined"));
                at = named?;
            }
            "type_annotation" | "parenthesized_type" | "readonly_type" | "intersection_type"
            | "array_type" => {
                at = children(at).first().copied()?;
            }
            _ => return None,
        }
    }
    None
}
