//! Expressions of Python.

use super::super::super::shape::{Arg, CollectionItem, ExprId, ExprKind, Function, Op, StmtKind};
use super::super::{
    Lower, child, children, field, fields, integer, plain, slow, span, stmt, unescape,
};
use super::{compare, parameters};
use tree_sitter::Node;

pub(super) fn arguments(l: &mut Lower<'_>, node: Node<'_>) -> Vec<Arg> {
    if node.kind() == "generator_expression" {
        return vec![plain(expr(l, node))];
    }
    let mut out = Vec::new();
    for a in children(node) {
        let arg = match (a.kind(), field(a, "name"), field(a, "value")) {
            ("keyword_argument", Some(name), Some(value)) => Arg {
                keyword: Some(l.sym_of(name)),
                value: expr(l, value),
                is_spread: false,
            },
            ("list_splat" | "dictionary_splat", ..) => Arg {
                keyword: None,
                value: first(l, a),
                is_spread: true,
            },
            _ => plain(expr(l, a)),
        };
        out.push(arg);
    }
    out
}

/// Lowers the first child.
fn first(l: &mut Lower<'_>, node: Node<'_>) -> ExprId {
    match children(node).first() {
        Some(n) => expr(l, *n),
        None => l.unknown(node, Vec::new()),
    }
}

fn all(l: &mut Lower<'_>, node: Node<'_>) -> Vec<ExprId> {
    children(node).into_iter().map(|n| expr(l, n)).collect()
}

pub(super) fn expr(l: &mut Lower<'_>, node: Node<'_>) -> ExprId {
    if !l.enter() {
        return l.unknown(node, Vec::new());
    }
    let id = expr_inside(l, node);
    l.leave();
    id
}

fn expr_inside(l: &mut Lower<'_>, node: Node<'_>) -> ExprId {
    let kind = match node.kind() {
        "identifier" => return l.name(node),
        "string" => return string(l, node),
        "concatenated_string" => ExprKind::Concat(all(l, node)),
        "integer" => match integer(l.text(node)) {
            Some(n) => ExprKind::Int(n),
            None => ExprKind::Float(0.0),
        },
        "float" => ExprKind::Float(l.text(node).parse().unwrap_or_default()),
        "true" => ExprKind::Bool(true),
        "false" => ExprKind::Bool(false),
        "none" => ExprKind::Null,
        "attribute" => return attribute(l, node),
        "subscript" => return subscript(l, node),
        "call" => return call(l, node),
        "binary_operator" => return binary(l, node),
        "boolean_operator" => {
            let op = if has(l, node, "and") { Op::And } else { Op::Or };
            return two(l, node, op);
        }
        "comparison_operator" => return comparison(l, node),
        "not_operator" => ExprKind::Not(first(l, node)),
        "unary_operator" => ExprKind::Negate(first(l, node)),
        "conditional_expression" => {
            let parts = all(l, node);
            match parts.as_slice() {
                [yes, test, no] => ExprKind::Conditional {
                    test: *test,
                    yes: *yes,
                    no: *no,
                },
                _ => ExprKind::Unknown(parts),
            }
        }
        "list" | "tuple" | "set" | "dictionary" | "expression_list" | "pattern_list"
        | "tuple_pattern" | "list_pattern" => ExprKind::Collection(items(l, node)),
        "parenthesized_expression"
        | "await"
        | "yield"
        | "list_splat"
        | "dictionary_splat"
        | "list_splat_pattern"
        | "type" => ExprKind::Pass(first(l, node)),
        "lambda" => {
            let params = field(node, "parameters")
                .map(|p| parameters(l, p))
                .unwrap_or_default();
            let value = field(node, "body").map(|b| expr(l, b));
            let body = vec![stmt(node, StmtKind::Return(value))];
            let function = Function {
                span: span(node),
                params,
                body,
                ..Default::default()
            };
            ExprKind::Function(l.module.add_function(function))
        }
        "assignment" | "named_expression" => return assign(l, node, None),
        "augmented_assignment" => {
            let op = field(node, "operator")
                .map(|o| l.text(o).trim_end_matches('='))
                .and_then(operator);
            return assign(l, node, Some(op.unwrap_or(Op::Bits)));
        }
        "list_comprehension"
        | "set_comprehension"
        | "generator_expression"
        | "dictionary_comprehension" => {
            return comprehension(l, node);
        }
        "pair" => {
            let value = field(node, "value").map(|v| expr(l, v));
            let key = field(node, "key").map(|v| expr(l, v));
            ExprKind::Unknown(key.into_iter().chain(value).collect())
        }
        _ => ExprKind::Unknown(all(l, node)),
    };
    l.expr(node, kind)
}

fn has(l: &Lower<'_>, node: Node<'_>, word: &str) -> bool {
    field(node, "operator").is_some_and(|o| l.text(o) == word)
}

fn two(l: &mut Lower<'_>, node: Node<'_>, op: Op) -> ExprId {
    let (Some(left), Some(right)) = (field(node, "left"), field(node, "right")) else {
        return first(l, node);
    };
    let (left, right) = (expr(l, left), expr(l, right));
    l.expr(node, ExprKind::Binary { op, left, right })
}

fn assign(l: &mut Lower<'_>, node: Node<'_>, op: Option<Op>) -> ExprId {
    let left = field(node, "left").or_else(|| field(node, "name"));
    let right = field(node, "right").or_else(|| field(node, "value"));
    let (Some(left), Some(right)) = (left, right) else {
        return first(l, node);
    };
    let value = expr(l, right);
    let target = expr(l, left);
    l.expr(node, ExprKind::Assign { target, op, value })
}

fn attribute(l: &mut Lower<'_>, node: Node<'_>) -> ExprId {
    let (Some(of), Some(name)) = (field(node, "object"), field(node, "attribute")) else {
        return first(l, node);
    };
    let of = expr(l, of);
    let name = l.sym_of(name);
    l.expr(node, ExprKind::Member { of, name })
}

fn subscript(l: &mut Lower<'_>, node: Node<'_>) -> ExprId {
    let Some(of) = field(node, "value") else {
        return first(l, node);
    };
    let of = expr(l, of);
    let keys: Vec<ExprId> = fields(node, "subscript")
        .into_iter()
        .map(|n| expr(l, n))
        .collect();
    match keys.as_slice() {
        [key] => {
            let key = *key;
            l.expr(node, ExprKind::Index { of, key })
        }
        _ => l.unknown(node, vec![of]),
    }
}

fn call(l: &mut Lower<'_>, node: Node<'_>) -> ExprId {
    let Some(function) = field(node, "function") else {
        return first(l, node);
    };
    let args = field(node, "arguments")
        .map(|a| arguments(l, a))
        .unwrap_or_default();
    if l.text(function) == "super" {
        return l.expr(node, ExprKind::Super);
    }
    if l.text(function) == "isinstance"
        && let [of, ty] = args.as_slice()
        && let ExprKind::Name(ty) = l.module.expr(ty.value).kind
    {
        let of = of.value;
        return l.expr(node, ExprKind::IsType { of, ty });
    }
    let pattern = slow_pattern(l, function, &args);
    let callee = expr(l, function);
    let id = l.expr(node, ExprKind::Call { callee, args });
    if !pattern {
        return id;
    }
    let shown = l.call(node, "slow regex", Vec::new());
    let body = vec![stmt(node, StmtKind::Expr(shown))];
    l.expr(
        node,
        ExprKind::Block {
            body,
            value: Some(id),
        },
    )
}

/// Returns true for a call of `re` with a pattern that can take exponential time.
fn slow_pattern(l: &Lower<'_>, function: Node<'_>, args: &[Arg]) -> bool {
    const CALLS: [&str; 8] = [
        "re.compile",
        "re.match",
        "re.search",
        "re.fullmatch",
        "re.sub",
        "re.findall",
        "re.split",
        "re.finditer",
    ];
    let Some(ExprKind::Text(pattern)) = args.first().map(|a| &l.module.expr(a.value).kind) else {
        return false;
    };
    CALLS.contains(&l.text(function)) && slow::is_slow(pattern)
}

fn operator(text: &str) -> Option<Op> {
    Some(match text {
        "+" => Op::Add,
        "-" => Op::Sub,
        "*" => Op::Mul,
        "/" | "//" => Op::Div,
        "%" => Op::Rem,
        "<" => Op::Less,
        "<=" => Op::LessEqual,
        ">" => Op::Greater,
        ">=" => Op::GreaterEqual,
        "==" | "is" => Op::Equal,
        "!=" | "is not" | "<>" => Op::NotEqual,
        "in" => Op::In,
        "not in" => Op::NotIn,
        "@" | "**" | "&" | "|" | "^" | "<<" | ">>" => Op::Bits,
        _ => return None,
    })
}

fn binary(l: &mut Lower<'_>, node: Node<'_>) -> ExprId {
    let op = field(node, "operator")
        .map(|o| l.text(o))
        .and_then(operator)
        .unwrap_or(Op::Bits);
    if op != Op::Add {
        return two(l, node, op);
    }
    // The innermost operands come first, so that a long chain does not nest deeply.
    let parts = l.chain(node, "binary_operator", "+");
    let mut left: Option<ExprId> = None;
    for part in parts {
        let right = expr(l, part);
        left = Some(match left {
            Some(left) => l.expr(node, ExprKind::Binary { op, left, right }),
            None => right,
        });
    }
    left.unwrap_or_else(|| l.unknown(node, Vec::new()))
}

fn comparison(l: &mut Lower<'_>, node: Node<'_>) -> ExprId {
    let operands = children(node);
    let operators = fields(node, "operators");
    if let ([left, right], Some(first)) = (operands.as_slice(), operators.first()) {
        let mut text = l.text(*first).to_owned();
        if let ("not" | "is", Some(second)) = (text.as_str(), operators.get(1)) {
            text = format!("{text} {}", l.text(*second));
        }
        let op = operator(&text).unwrap_or(Op::Less);
        if matches!(op, Op::Equal | Op::NotEqual) && compare::secret(l, [*left, *right]) {
            return l.call(node, "compare secret", Vec::new());
        }
        let (left, right) = (expr(l, *left), expr(l, *right));
        return l.expr(node, ExprKind::Binary { op, left, right });
    }
    // The result of `a < b < c` is a truth value.
    for n in operands {
        expr(l, n);
    }
    let zero = l.expr(node, ExprKind::Unknown(Vec::new()));
    l.expr(node, ExprKind::Not(zero))
}

fn items(l: &mut Lower<'_>, node: Node<'_>) -> Vec<CollectionItem> {
    let mut out = Vec::new();
    for n in children(node) {
        let item = match (n.kind(), field(n, "key"), field(n, "value")) {
            ("pair", Some(key), Some(value)) => CollectionItem {
                key: Some(expr(l, key)),
                value: expr(l, value),
                is_spread: false,
            },
            ("list_splat" | "dictionary_splat" | "list_splat_pattern", ..) => CollectionItem {
                key: None,
                value: first(l, n),
                is_spread: true,
            },
            _ => CollectionItem {
                key: None,
                value: expr(l, n),
                is_spread: false,
            },
        };
        out.push(item);
    }
    out
}

fn comprehension(l: &mut Lower<'_>, node: Node<'_>) -> ExprId {
    let mut element = match field(node, "body") {
        Some(b) => expr(l, b),
        None => l.unknown(node, Vec::new()),
    };
    let clauses: Vec<Node<'_>> = children(node).into_iter().skip(1).collect();
    let mut tests = Vec::new();
    for clause in clauses.into_iter().rev() {
        if clause.kind() == "if_clause" {
            tests.push(first(l, clause));
        } else if let (Some(left), Some(right)) = (field(clause, "left"), field(clause, "right")) {
            let (target, iterable) = (expr(l, left), expr(l, right));
            let tests = std::mem::take(&mut tests);
            element = l.expr(
                node,
                ExprKind::Comprehension {
                    target,
                    iterable,
                    tests,
                    element,
                },
            );
        }
    }
    element
}

fn string(l: &mut Lower<'_>, node: Node<'_>) -> ExprId {
    let is_raw = child_text(l, node, "string_start").is_some_and(|s| s.contains(['r', 'R']));
    let is_format = child_text(l, node, "string_start").is_some_and(|s| s.contains(['f', 'F']));
    let mut parts = Vec::new();
    for n in children(node) {
        match n.kind() {
            "string_content" => content(l, n, is_raw, is_format, &mut parts),
            "interpolation" => parts.extend(field(n, "expression").map(|e| expr(l, e))),
            _ => {}
        }
    }
    match parts.as_slice() {
        [] => l.constant(node, ""),
        [one] if matches!(l.module.expr(*one).kind, ExprKind::Text(_)) => *one,
        _ => l.expr(node, ExprKind::Concat(parts)),
    }
}

fn child_text<'t>(l: &Lower<'t>, node: Node<'_>, kind: &str) -> Option<&'t str> {
    child(node, kind).map(|n| l.text(n))
}

fn content(
    l: &mut Lower<'_>,
    node: Node<'_>,
    is_raw: bool,
    is_format: bool,
    parts: &mut Vec<ExprId>,
) {
    let text = l.text(node);
    let mut text = if is_raw {
        text.to_owned()
    } else {
        unescape(text)
    };
    if is_format {
        text = text.replace("{{", "{").replace("}}", "}");
    }
    parts.push(l.constant(node, &text));
}
