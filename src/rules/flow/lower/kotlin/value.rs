//! Expressions of Kotlin.

use super::super::super::shape::{
    Arg, Class, CollectionItem, ExprId, ExprKind, Function, FunctionId, Op, Param, StmtKind,
};
use super::super::{
    Lower, block, child, children, field, has_token, integer, plain, span, stmt, unescape,
};
use super::call::{call, generic};
use super::declare::{bases, function, members};
use super::{
    attempt_value, branch, branches, choice, condition, several, statement, text, type_name,
    variable,
};
use tree_sitter::Node;

pub(super) fn arguments(l: &mut Lower<'_>, node: Node<'_>) -> Vec<Arg> {
    let mut out = Vec::new();
    for a in children(node) {
        let parts = children(a);
        let arg = match parts.as_slice() {
            [name, value] if has_token(a, "=") => Arg {
                keyword: Some(l.sym_of(*name)),
                value: expr(l, *value),
                is_spread: false,
            },
            [.., value] => Arg {
                keyword: None,
                value: expr(l, *value),
                is_spread: has_token(a, "*"),
            },
            [] => continue,
        };
        out.push(arg);
    }
    out
}

pub(super) fn all(l: &mut Lower<'_>, node: Node<'_>) -> Vec<ExprId> {
    children(node).into_iter().map(|n| expr(l, n)).collect()
}

/// Lowers the first child.
pub(super) fn first(l: &mut Lower<'_>, node: Node<'_>) -> ExprId {
    match children(node).first() {
        Some(n) => expr(l, *n),
        None => l.unknown(node, Vec::new()),
    }
}

pub(super) fn expr(l: &mut Lower<'_>, node: Node<'_>) -> ExprId {
    if !l.enter() {
        return l.unknown(node, Vec::new());
    }
    let mut id = expr_inside(l, node);
    if is_postfix(node) && !is_first_of_postfix(node) && has_negated_start(l, node) {
        id = l.expr(node, ExprKind::Not(id));
    }
    l.leave();
    id
}

fn is_postfix(node: Node<'_>) -> bool {
    matches!(
        node.kind(),
        "navigation_expression" | "call_expression" | "index_expression"
    )
}

/// Returns true if the node is the object of a call, member or index.
fn is_first_of_postfix(node: Node<'_>) -> bool {
    node.parent()
        .is_some_and(|p| is_postfix(p) && children(p).first() == Some(&node))
}

/// Returns true for `!a.b()`, which the grammar reads as `(!a).b()`.
fn has_negated_start(l: &Lower<'_>, node: Node<'_>) -> bool {
    let mut at = node;
    while is_postfix(at) {
        match children(at).first() {
            Some(n) => at = *n,
            None => return false,
        }
    }
    at.kind() == "unary_expression" && field(at, "operator").is_some_and(|o| l.text(o) == "!")
}

fn expr_inside(l: &mut Lower<'_>, node: Node<'_>) -> ExprId {
    let kind = match node.kind() {
        "identifier" => match l.text(node) {
            "true" => ExprKind::Bool(true),
            "false" => ExprKind::Bool(false),
            "null" => ExprKind::Null,
            _ => return l.name(node),
        },
        "string_literal" | "multiline_string_literal" => return text::lower(l, node, expr),
        "character_literal" => ExprKind::Text(unescape(l.text(node).trim_matches('\'')).into()),
        "number_literal" => integer(l.text(node)).map_or(ExprKind::Float(0.0), ExprKind::Int),
        "float_literal" => ExprKind::Float(
            l.text(node)
                .trim_end_matches(['f', 'F'])
                .parse()
                .unwrap_or_default(),
        ),
        "this_expression" => ExprKind::This,
        "super_expression" => ExprKind::Super,
        "parenthesized_expression" => ExprKind::Pass(first(l, node)),
        "annotated_expression" | "labeled_expression" | "spread_expression" => {
            match children(node).last() {
                Some(n) => ExprKind::Pass(expr(l, *n)),
                None => ExprKind::Unknown(Vec::new()),
            }
        }
        "navigation_expression" => return navigation(l, node),
        "index_expression" => {
            let parts = all(l, node);
            match parts.as_slice() {
                [of, key] => ExprKind::Index { of: *of, key: *key },
                _ => ExprKind::Unknown(parts),
            }
        }
        "call_expression" => return call(l, node),
        "binary_expression" => return binary(l, node),
        "unary_expression" => return unary(l, node),
        "infix_expression" => return infix(l, node),
        "in_expression" => {
            let op = if has_token(node, "!in") {
                Op::NotIn
            } else {
                Op::In
            };
            return two(l, node, op);
        }
        "is_expression" => return instance(l, node),
        "as_expression" => match (field(node, "left"), field(node, "right")) {
            (Some(of), Some(ty)) => ExprKind::Cast {
                of: expr(l, of),
                ty: type_name(l, ty),
            },
            _ => ExprKind::Pass(first(l, node)),
        },
        "assignment" => return assign(l, node),
        "if_expression" => {
            let test = condition(l, node);
            match branches(node) {
                (Some(yes), Some(no)) => ExprKind::Conditional {
                    test,
                    yes: branch(l, yes),
                    no: branch(l, no),
                },
                (yes, _) => ExprKind::Unknown(yes.map(|n| branch(l, n)).into_iter().collect()),
            }
        }
        "when_expression" => return choice(l, node),
        "try_expression" => return attempt_value(l, node),
        "return_expression" | "throw_expression" => {
            let mut body = Vec::new();
            statement(l, node, &mut body);
            ExprKind::Block { body, value: None }
        }
        "lambda_literal" | "annotated_lambda" | "anonymous_function" => {
            ExprKind::Function(lambda(l, node))
        }
        "object_literal" => return object(l, node),
        "collection_literal" => ExprKind::Collection(items(l, node)),
        "callable_reference" => match children(node).as_slice() {
            [name] => return expr(l, *name),
            [of, name] => {
                let of = l.text(*of).to_owned();
                let of = l.path(node, &of);
                ExprKind::Member {
                    of,
                    name: l.sym_of(*name),
                }
            }
            _ => ExprKind::Unknown(Vec::new()),
        },
        "range_expression" => {
            let parts = all(l, node);
            let sum = l.unknown(node, parts);
            ExprKind::Negate(sum)
        }
        _ => ExprKind::Unknown(all(l, node)),
    };
    l.expr(node, kind)
}

fn navigation(l: &mut Lower<'_>, node: Node<'_>) -> ExprId {
    let parts = children(node);
    let [of, name] = parts.as_slice() else {
        return first(l, node);
    };
    let of = expr(l, *of);
    let name = l.sym_of(*name);
    l.expr(node, ExprKind::Member { of, name })
}

fn items(l: &mut Lower<'_>, node: Node<'_>) -> Vec<CollectionItem> {
    all(l, node)
        .into_iter()
        .map(|value| CollectionItem {
            key: None,
            value,
            is_spread: false,
        })
        .collect()
}

fn two(l: &mut Lower<'_>, node: Node<'_>, op: Op) -> ExprId {
    let (Some(left), Some(right)) = (field(node, "left"), field(node, "right")) else {
        return first(l, node);
    };
    let (left, right) = (expr(l, left), expr(l, right));
    l.expr(node, ExprKind::Binary { op, left, right })
}

fn operator(text: &str) -> Op {
    match text {
        "+" => Op::Add,
        "-" => Op::Sub,
        "*" => Op::Mul,
        "/" => Op::Div,
        "%" => Op::Rem,
        "&&" => Op::And,
        "||" => Op::Or,
        "==" | "===" => Op::Equal,
        "!=" | "!==" => Op::NotEqual,
        "<" => Op::Less,
        "<=" => Op::LessEqual,
        ">" => Op::Greater,
        ">=" => Op::GreaterEqual,
        "?:" => Op::Else,
        _ => Op::Bits,
    }
}

fn binary(l: &mut Lower<'_>, node: Node<'_>) -> ExprId {
    let text = field(node, "operator")
        .map(|o| l.text(o))
        .unwrap_or_default();
    let op = operator(text);
    if op == Op::Else {
        return otherwise(l, node);
    }
    if let Some(call) = generic(l, node, op) {
        return call;
    }
    let mut left: Option<ExprId> = None;
    // The innermost operands come first, so that a long chain is not deep.
    for part in l.chain(node, "binary_expression", text) {
        let right = expr(l, part);
        left = Some(match left {
            Some(left) => l.expr(node, ExprKind::Binary { op, left, right }),
            None => right,
        });
    }
    left.unwrap_or_else(|| l.unknown(node, Vec::new()))
}

/// Lowers `a ?: b`. If `b` leaves the function, it is a branch.
pub(super) fn otherwise(l: &mut Lower<'_>, node: Node<'_>) -> ExprId {
    let leaves = field(node, "right")
        .is_some_and(|r| matches!(r.kind(), "return_expression" | "throw_expression"));
    let is_jump = field(node, "right").is_some_and(|r| matches!(l.text(r), "break" | "continue"));
    if is_jump {
        return first(l, node);
    }
    if !leaves {
        return two(l, node, Op::Else);
    }
    let (Some(left), Some(right)) = (field(node, "left"), field(node, "right")) else {
        return first(l, node);
    };
    let (yes, no) = (expr(l, left), expr(l, right));
    let null = l.expr(node, ExprKind::Null);
    let test = l.expr(
        node,
        ExprKind::Binary {
            op: Op::NotEqual,
            left: yes,
            right: null,
        },
    );
    l.expr(node, ExprKind::Conditional { test, yes, no })
}

/// Returns true for a statement in the block of `unsafe { … }`.
fn is_in_unsafe(l: &Lower<'_>, node: Node<'_>) -> bool {
    let mut at = node;
    for _ in 0..6 {
        let Some(parent) = at.parent() else {
            return false;
        };
        if parent.kind() == "call_expression" {
            return children(parent)
                .first()
                .is_some_and(|callee| l.text(*callee) == "unsafe");
        }
        at = parent;
    }
    false
}

fn unary(l: &mut Lower<'_>, node: Node<'_>) -> ExprId {
    let Some(operand) = field(node, "argument") else {
        return first(l, node);
    };
    let sign = field(node, "operator")
        .map(|o| l.text(o))
        .unwrap_or_default();
    let of = expr(l, operand);
    if sign == "!" && is_first_of_postfix(node) {
        return of;
    }
    // `unsafe { +text }` of kotlinx.html.
    if sign == "+" && is_in_unsafe(l, node) {
        let name = l.sym("unsafe");
        let tag = l.named(node, "HTMLTag");
        let callee = l.expr(node, ExprKind::Member { of: tag, name });
        return l.expr(
            node,
            ExprKind::Call {
                callee,
                args: vec![plain(of)],
            },
        );
    }
    let kind = match (sign, &l.module.expr(of).kind) {
        ("!", _) => ExprKind::Not(of),
        ("-", ExprKind::Int(n)) => ExprKind::Int(n.wrapping_neg()),
        ("-", _) => ExprKind::Negate(of),
        ("++" | "--", _) => {
            let op = Some(if sign == "++" { Op::Add } else { Op::Sub });
            let value = l.expr(node, ExprKind::Int(1));
            ExprKind::Assign {
                target: of,
                op,
                value,
            }
        }
        _ => ExprKind::Pass(of),
    };
    l.expr(node, kind)
}

fn infix(l: &mut Lower<'_>, node: Node<'_>) -> ExprId {
    let parts = children(node);
    let [left, name, right] = parts.as_slice() else {
        return first(l, node);
    };
    let word = l.text(*name);
    let (left, right) = (expr(l, *left), expr(l, *right));
    let kind = match word {
        "to" => {
            let items = [left, right].map(|value| CollectionItem {
                key: None,
                value,
                is_spread: false,
            });
            ExprKind::Collection(items.into())
        }
        "until" | "downTo" | "step" | "shl" | "shr" | "ushr" | "and" | "or" | "xor" => {
            ExprKind::Binary {
                op: Op::Bits,
                left,
                right,
            }
        }
        _ => {
            let name = l.sym(word);
            let callee = l.expr(node, ExprKind::Member { of: left, name });
            ExprKind::Call {
                callee,
                args: vec![plain(right)],
            }
        }
    };
    l.expr(node, kind)
}

fn instance(l: &mut Lower<'_>, node: Node<'_>) -> ExprId {
    let (Some(of), Some(ty)) = (field(node, "left"), field(node, "right")) else {
        return first(l, node);
    };
    let of = expr(l, of);
    let ty = type_name(l, ty);
    let test = l.expr(node, ExprKind::IsType { of, ty });
    if has_token(node, "!is") {
        l.expr(node, ExprKind::Not(test))
    } else {
        test
    }
}

fn assign(l: &mut Lower<'_>, node: Node<'_>) -> ExprId {
    let (Some(left), Some(right)) = (field(node, "left"), field(node, "right")) else {
        return first(l, node);
    };
    let text = field(node, "operator")
        .map(|o| l.text(o))
        .unwrap_or_default();
    let op = (text != "=").then(|| operator(text.trim_end_matches('=')));
    let value = expr(l, right);
    let target = expr(l, left);
    l.expr(node, ExprKind::Assign { target, op, value })
}

fn lambda(l: &mut Lower<'_>, node: Node<'_>) -> FunctionId {
    if node.kind() == "anonymous_function" {
        return function(l, node, Vec::new(), &[]);
    }
    let node = child(node, "lambda_literal").unwrap_or(node);
    let mut params = Vec::new();
    match child(node, "lambda_parameters") {
        Some(list) => {
            for p in children(list) {
                params.push(lambda_parameter(l, p));
            }
        }
        None => params.push(Param {
            span: span(node),
            name: Some(l.sym("it")),
            ..Default::default()
        }),
    }
    let nodes: Vec<_> = children(node)
        .into_iter()
        .filter(|n| n.kind() != "lambda_parameters")
        .collect();
    let body = block(l, &nodes, statement);
    let function = Function {
        span: span(node),
        params,
        body,
        returns_last: true,
        ..Default::default()
    };
    l.module.add_function(function)
}

fn lambda_parameter(l: &mut Lower<'_>, node: Node<'_>) -> Param {
    if node.kind() == "multi_variable_declaration" {
        return Param {
            span: span(node),
            pattern: Some(several(l, node)),
            ..Default::default()
        };
    }
    let name = child(node, "identifier").map(|n| l.sym_of(n));
    let (_, ty) = variable(l, node);
    Param {
        span: span(node),
        name,
        ty,
        ..Default::default()
    }
}

/// Lowers `object : Base { … }`. With one method, it is a function that sees the variables around
/// it.
fn object(l: &mut Lower<'_>, node: Node<'_>) -> ExprId {
    let inside = child(node, "class_body");
    if let Some(inside) = inside
        && let [method] = children(inside).as_slice()
        && method.kind() == "function_declaration"
    {
        let id = function(l, *method, Vec::new(), &[]);
        return l.expr(node, ExprKind::Function(id));
    }
    let bases = bases(l, node);
    let base = bases
        .first()
        .map(|s| l.module.word(*s).to_owned())
        .unwrap_or_default();
    let mut class = Class {
        span: span(node),
        bases,
        ..Default::default()
    };
    if let Some(inside) = inside {
        members(l, inside, &mut class, false);
    }
    let id = l.module.add_class(class);
    let body = vec![stmt(node, StmtKind::Class(id))];
    let class = l.path(node, &base);
    let new = l.expr(
        node,
        ExprKind::New {
            class,
            args: Vec::new(),
        },
    );
    l.expr(
        node,
        ExprKind::Block {
            body,
            value: Some(new),
        },
    )
}
