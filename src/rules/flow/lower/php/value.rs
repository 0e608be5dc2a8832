//! Expressions of PHP.

use super::super::super::shape::{Arg, Arm, CollectionItem, ExprId, ExprKind, Op, StmtKind};
use super::super::{Lower, child, children, field, has_token, integer, plain, stmt, unescape};
use super::{call, class_name, declare};
use tree_sitter::Node;

/// Lowers the child with a field name.
pub(super) fn part(l: &mut Lower<'_>, node: Node<'_>, name: &'static str) -> ExprId {
    match field(node, name) {
        Some(n) => expr(l, n),
        None => l.unknown(node, Vec::new()),
    }
}

/// Lowers an expression.
pub(super) fn expr(l: &mut Lower<'_>, node: Node<'_>) -> ExprId {
    if !l.enter() {
        return l.unknown(node, Vec::new());
    }
    let id = expr_inside(l, node);
    l.leave();
    id
}

fn expr_inside(l: &mut Lower<'_>, node: Node<'_>) -> ExprId {
    match node.kind() {
        "variable_name" if l.text(node) == "$this" => l.expr(node, ExprKind::This),
        "variable_name" => l.name(node),
        "name" | "qualified_name" | "relative_name" => {
            let sym = class_name(l, node);
            l.expr(node, ExprKind::Name(sym))
        }
        "relative_scope" => match l.text(node) {
            "parent" => l.expr(node, ExprKind::Super),
            _ => l.expr(node, ExprKind::This),
        },
        "string" | "string_content" | "escape_sequence" => {
            let text = quoted(l.text(node));
            l.constant(node, &text)
        }
        "nowdoc" => {
            let text = field(node, "value").map(|v| l.text(v)).unwrap_or_default();
            l.constant(node, text)
        }
        "encapsed_string" => {
            let parts = children(node).into_iter().map(|n| expr(l, n)).collect();
            l.expr(node, ExprKind::Concat(parts))
        }
        "heredoc" => {
            let parts = field(node, "value").map(children).unwrap_or_default();
            let parts = parts.into_iter().map(|n| expr(l, n)).collect();
            l.expr(node, ExprKind::Concat(parts))
        }
        "shell_command_expression" => {
            let parts = children(node).into_iter().map(|n| expr(l, n)).collect();
            let text = l.expr(node, ExprKind::Concat(parts));
            l.call(node, "shell_exec", vec![text])
        }
        "integer" => match integer(l.text(node)) {
            Some(n) => l.expr(node, ExprKind::Int(n)),
            None => l.unknown(node, Vec::new()),
        },
        "float" => {
            let value = l.text(node).parse().unwrap_or_default();
            l.expr(node, ExprKind::Float(value))
        }
        "boolean" => {
            let is_true = l.text(node).eq_ignore_ascii_case("true");
            l.expr(node, ExprKind::Bool(is_true))
        }
        "null" => l.expr(node, ExprKind::Null),
        "parenthesized_expression"
        | "error_suppression_expression"
        | "by_ref"
        | "clone_expression"
        | "argument"
        | "variadic_unpacking" => {
            let of = last_child(l, node);
            l.expr(node, ExprKind::Pass(of))
        }
        "array_creation_expression" | "list_literal" => collection(l, node),
        "array_element_initializer" => last_child(l, node),
        "subscript_expression" => subscript(l, node),
        "member_access_expression" | "nullsafe_member_access_expression" => {
            member(l, node, "object")
        }
        "scoped_property_access_expression" => member(l, node, "scope"),
        "class_constant_access_expression" => constant_of_class(l, node),
        "function_call_expression"
        | "member_call_expression"
        | "nullsafe_member_call_expression"
        | "scoped_call_expression" => call::call(l, node),
        "object_creation_expression" => call::created(l, node),
        "anonymous_function" | "arrow_function" => {
            let id = declare::function(l, node);
            l.expr(node, ExprKind::Function(id))
        }
        "assignment_expression" | "reference_assignment_expression" => {
            let value = part(l, node, "right");
            let target = part(l, node, "left");
            l.expr(
                node,
                ExprKind::Assign {
                    target,
                    op: None,
                    value,
                },
            )
        }
        "augmented_assignment_expression" => augmented(l, node),
        "binary_expression" => binary(l, node),
        "unary_op_expression" => {
            let of = last_child(l, node);
            let kind = if has_token(node, "!") {
                ExprKind::Not(of)
            } else {
                ExprKind::Negate(of)
            };
            l.expr(node, kind)
        }
        "update_expression" => {
            let target = part(l, node, "argument");
            let value = l.expr(node, ExprKind::Int(1));
            l.expr(
                node,
                ExprKind::Assign {
                    target,
                    op: Some(Op::Sub),
                    value,
                },
            )
        }
        "conditional_expression" => conditional(l, node),
        "cast_expression" => {
            let of = part(l, node, "value");
            let ty = field(node, "type")
                .map(|t| l.text(t).trim_matches(['(', ')', ' ']).to_ascii_lowercase());
            let ty = ty.unwrap_or_default();
            if ty == "string" {
                return l.call(node, "strval", vec![of]);
            }
            let ty = l.sym(&ty);
            l.expr(node, ExprKind::Cast { of, ty })
        }
        "match_expression" => matched(l, node),
        "print_intrinsic" => word(l, node, "print"),
        "include_expression"
        | "include_once_expression"
        | "require_expression"
        | "require_once_expression" => word(l, node, "include"),
        "exit_statement" => word(l, node, "exit"),
        "pair" => last_child(l, node),
        _ => {
            let parts = children(node).into_iter().map(|n| expr(l, n)).collect();
            l.unknown(node, parts)
        }
    }
}

/// Lowers a word with an expression after it, as a call.
fn word(l: &mut Lower<'_>, node: Node<'_>, name: &str) -> ExprId {
    let args = children(node).into_iter().map(|n| expr(l, n)).collect();
    l.call(node, name, args)
}

fn last_child(l: &mut Lower<'_>, node: Node<'_>) -> ExprId {
    match children(node).last() {
        Some(n) => expr(l, *n),
        None => l.unknown(node, Vec::new()),
    }
}

/// Returns the text of a literal or of a part of one.
fn quoted(text: &str) -> String {
    match text.as_bytes() {
        [b'\'', .., b'\''] | [b'"', .., b'"'] if text.len() > 1 => {
            unescape(text.get(1..text.len() - 1).unwrap_or_default())
        }
        _ => unescape(text),
    }
}

fn collection(l: &mut Lower<'_>, node: Node<'_>) -> ExprId {
    let mut items = Vec::new();
    if node.kind() == "list_literal" {
        // In `list('a' => $x, $y)`, a key, `=>` and a target are consecutive children.
        let mut cursor = node.walk();
        let mut key = None;
        let mut before = None;
        for part in node.children(&mut cursor).filter(|n| !n.is_extra()) {
            match part.kind() {
                "=>" => key = before.take(),
                "," | ")" | "]" => {
                    if let Some(value) = before.take() {
                        items.push(CollectionItem {
                            key: key.take(),
                            value,
                            is_spread: false,
                        });
                    }
                }
                _ if part.is_named() => before = Some(expr(l, part)),
                _ => {}
            }
        }
        return l.expr(node, ExprKind::Collection(items));
    }
    for element in children(node) {
        let parts = children(element);
        let is_spread = parts
            .first()
            .is_some_and(|n| n.kind() == "variadic_unpacking");
        match parts.as_slice() {
            [key, value] => {
                let key = match key.kind() {
                    // A constant such as `CURLOPT_URL` is represented by its name.
                    "name" => {
                        let name = l.text(*key);
                        l.constant(*key, name)
                    }
                    _ => expr(l, *key),
                };
                items.push(CollectionItem {
                    key: Some(key),
                    value: expr(l, *value),
                    is_spread,
                });
            }
            [value] => items.push(CollectionItem {
                key: None,
                value: expr(l, *value),
                is_spread,
            }),
            _ => {}
        }
    }
    l.expr(node, ExprKind::Collection(items))
}

fn subscript(l: &mut Lower<'_>, node: Node<'_>) -> ExprId {
    let parts = children(node);
    let Some(of) = parts.first() else {
        return l.unknown(node, Vec::new());
    };
    let key = parts
        .get(1)
        .map(|k| l.text(*k).trim_matches(['\'', '"']))
        .unwrap_or_default();
    if is_server_side(l.text(*of), key) {
        return l.unknown(node, Vec::new());
    }
    let of = expr(l, *of);
    let key = match parts.get(1) {
        // `"$row[name]"` inside a text.
        Some(key) if key.kind() == "name" => {
            let text = l.text(*key);
            l.constant(*key, text)
        }
        Some(key) => expr(l, *key),
        None => l.unknown(node, Vec::new()),
    };
    l.expr(node, ExprKind::Index { of, key })
}

/// Returns true for values of superglobals that the server chooses. A name that is not in the list
/// is the client's, such as a header of the request.
fn is_server_side(of: &str, key: &str) -> bool {
    const SERVER: [&str; 20] = [
        "SERVER_PROTOCOL",
        "DOCUMENT_ROOT",
        "REMOTE_ADDR",
        "REQUEST_METHOD",
        "SERVER_NAME",
        "SERVER_ADDR",
        "SERVER_PORT",
        "SCRIPT_FILENAME",
        "SCRIPT_NAME",
        "REQUEST_TIME",
        "REQUEST_TIME_FLOAT",
        "HTTPS",
        "SERVER_SOFTWARE",
        "REMOTE_PORT",
        "GATEWAY_INTERFACE",
        "argc",
        "REQUEST_SCHEME",
        "SERVER_ADMIN",
        "PATH_TRANSLATED",
        "REDIRECT_STATUS",
    ];
    (of == "$_SERVER" && SERVER.contains(&key))
        || (key == "tmp_name" || of.starts_with("$_FILES") && matches!(key, "size" | "error"))
}

pub(super) fn member(l: &mut Lower<'_>, node: Node<'_>, object: &'static str) -> ExprId {
    let of = part(l, node, object);
    let Some(name) = field(node, "name") else {
        return of;
    };
    match name.kind() {
        "name" if object == "object" && is_input(l, node) => {
            let key = l.text(name);
            let (key, method) = (l.constant(name, key), l.sym("input"));
            let callee = l.expr(node, ExprKind::Member { of, name: method });
            l.expr(
                node,
                ExprKind::Call {
                    callee,
                    args: vec![plain(key)],
                },
            )
        }
        "name" => {
            let name = l.sym_of(name);
            l.expr(node, ExprKind::Member { of, name })
        }
        "variable_name" if object == "scope" => {
            let name = l.text(name).trim_start_matches('$');
            let name = l.sym(name);
            l.expr(node, ExprKind::Member { of, name })
        }
        _ => {
            let key = expr(l, name);
            l.expr(node, ExprKind::Index { of, key })
        }
    }
}

/// Returns true for `$request->name`, which reads the input `name` of a request of Laravel.
fn is_input(l: &Lower<'_>, node: Node<'_>) -> bool {
    const OWN: [&str; 8] = [
        "query",
        "request",
        "attributes",
        "cookies",
        "headers",
        "files",
        "server",
        "get",
    ];
    matches!(
        node.kind(),
        "member_access_expression" | "nullsafe_member_access_expression"
    ) && field(node, "object").is_some_and(|o| l.text(o) == "$request")
        && field(node, "name").is_some_and(|n| !OWN.contains(&l.text(n)))
}

/// Lowers `Class::NAME` and `Class::class`.
fn constant_of_class(l: &mut Lower<'_>, node: Node<'_>) -> ExprId {
    let parts = children(node);
    let (Some(of), Some(name)) = (parts.first(), parts.get(1)) else {
        return l.unknown(node, Vec::new());
    };
    let of = expr(l, *of);
    let name = l.sym_of(*name);
    l.expr(node, ExprKind::Member { of, name })
}

fn augmented(l: &mut Lower<'_>, node: Node<'_>) -> ExprId {
    let operator = field(node, "operator")
        .map(|o| l.text(o))
        .unwrap_or_default();
    let (target, value) = (part(l, node, "left"), part(l, node, "right"));
    let op = match operator {
        ".=" => Op::Add,
        "??=" => Op::Else,
        "+=" | "-=" | "*=" | "/=" | "**=" => Op::Sub,
        _ => Op::Bits,
    };
    l.expr(
        node,
        ExprKind::Assign {
            target,
            op: Some(op),
            value,
        },
    )
}

fn binary(l: &mut Lower<'_>, node: Node<'_>) -> ExprId {
    let operator = field(node, "operator")
        .map(|o| l.text(o))
        .unwrap_or_default();
    if operator == "." {
        let parts = l.chain(node, "binary_expression", ".");
        let parts = parts.into_iter().map(|n| expr(l, n)).collect();
        return l.expr(node, ExprKind::Concat(parts));
    }
    let left = part(l, node, "left");
    if operator.eq_ignore_ascii_case("instanceof") {
        let ty = match field(node, "right") {
            Some(n) => class_name(l, n),
            None => l.sym(""),
        };
        return l.expr(node, ExprKind::IsType { of: left, ty });
    }
    if let Some(id) = contains_dots(l, node, operator) {
        return id;
    }
    let right = part(l, node, "right");
    if let Some(id) = compared(l, node, operator, (left, right)) {
        return id;
    }
    let op = match operator.to_ascii_lowercase().as_str() {
        "&&" | "and" => Op::And,
        "||" | "or" => Op::Or,
        "??" => Op::Else,
        "==" | "===" => Op::Equal,
        "!=" | "!==" | "<>" => Op::NotEqual,
        "<" => Op::Less,
        "<=" => Op::LessEqual,
        ">" => Op::Greater,
        ">=" => Op::GreaterEqual,
        // `+` adds numbers, or joins arrays.
        "+" => Op::Add,
        "-" => Op::Sub,
        "*" | "**" => Op::Mul,
        "/" => Op::Div,
        "%" => Op::Bits,
        _ => Op::Bits,
    };
    l.expr(node, ExprKind::Binary { op, left, right })
}

/// Returns true if a side of a comparison is a call that computes a digest.
fn is_digest(l: &Lower<'_>, node: Node<'_>, side: &'static str) -> bool {
    let function = field(node, side).and_then(|n| field(n, "function"));
    function.is_some_and(|f| matches!(l.text(f), "md5" | "sha1" | "hash" | "hash_hmac" | "crypt"))
}

/// Returns true if a side of an operator is a variable.
fn is_variable(node: Node<'_>, side: &'static str) -> bool {
    field(node, side).is_some_and(|n| n.kind() == "variable_name")
}

/// Lowers `strpos($path, '..') !== false` to `str_contains($path, '..')`.
fn contains_dots(l: &mut Lower<'_>, node: Node<'_>, operator: &str) -> Option<ExprId> {
    let call = field(node, "left").filter(|c| c.kind() == "function_call_expression")?;
    let is_search = field(call, "function")
        .is_some_and(|f| matches!(l.text(f), "strpos" | "stripos" | "strstr" | "mb_strpos"));
    let is_false = field(node, "right").is_some_and(|r| l.text(r).eq_ignore_ascii_case("false"));
    if !is_search || !is_false || !matches!(operator, "===" | "!==" | "==" | "!=") {
        return None;
    }
    let args = args(l, call);
    let needle = args.get(1).map(|a| &l.module.expr(a.value).kind);
    if !matches!(needle, Some(ExprKind::Text(t)) if t.contains("..")) {
        return None;
    }
    let callee = l.named(call, "str_contains");
    let found = l.expr(call, ExprKind::Call { callee, args });
    Some(if operator.starts_with('!') {
        found
    } else {
        l.expr(node, ExprKind::Not(found))
    })
}

/// Lowers the comparison of a digest, or of two variables: a call of `loose_equal` or
/// `strict_equal` precedes it, which structural entries match.
fn compared(
    l: &mut Lower<'_>,
    node: Node<'_>,
    operator: &str,
    sides: (ExprId, ExprId),
) -> Option<ExprId> {
    let (op, name) = match operator {
        "==" => (Op::Equal, "loose_equal"),
        "!=" | "<>" => (Op::NotEqual, "loose_equal"),
        "===" => (Op::Equal, "strict_equal"),
        "!==" => (Op::NotEqual, "strict_equal"),
        _ => return None,
    };
    let compared = match (is_digest(l, node, "left"), is_digest(l, node, "right")) {
        (true, _) => vec![sides.0],
        (false, true) => vec![sides.1],
        (false, false) if is_variable(node, "left") && is_variable(node, "right") => {
            vec![sides.0, sides.1]
        }
        _ => return None,
    };
    let call = l.call(node, name, compared);
    let body = vec![stmt(node, StmtKind::Expr(call))];
    let value = l.expr(
        node,
        ExprKind::Binary {
            op,
            left: sides.0,
            right: sides.1,
        },
    );
    Some(l.expr(
        node,
        ExprKind::Block {
            body,
            value: Some(value),
        },
    ))
}

fn conditional(l: &mut Lower<'_>, node: Node<'_>) -> ExprId {
    let (test, no) = (part(l, node, "condition"), part(l, node, "alternative"));
    match field(node, "body") {
        Some(yes) => {
            let yes = expr(l, yes);
            l.expr(node, ExprKind::Conditional { test, yes, no })
        }
        None => l.expr(
            node,
            ExprKind::Binary {
                op: Op::Else,
                left: test,
                right: no,
            },
        ),
    }
}

fn matched(l: &mut Lower<'_>, node: Node<'_>) -> ExprId {
    let condition = field(node, "condition");
    let is_true = condition.is_some_and(|c| l.text(c).eq_ignore_ascii_case("(true)"));
    let subject = condition.filter(|_| !is_true).map(|c| expr(l, c));
    let mut arms = Vec::new();
    for part_node in field(node, "body").map(children).unwrap_or_default() {
        let tests = field(part_node, "conditional_expressions")
            .map(children)
            .unwrap_or_default();
        let tests = tests.into_iter().map(|t| expr(l, t)).collect();
        let value = part(l, part_node, "return_expression");
        arms.push(Arm { tests, value });
    }
    l.expr(node, ExprKind::Match { subject, arms })
}

/// Lowers the arguments of a call or an attribute.
pub(super) fn args(l: &mut Lower<'_>, node: Node<'_>) -> Vec<Arg> {
    let mut out = Vec::new();
    let list = field(node, "arguments").or_else(|| child(node, "arguments"));
    for argument in list.map(children).unwrap_or_default() {
        if argument.kind() != "argument" {
            continue;
        }
        let keyword = field(argument, "name").map(|n| l.sym_of(n));
        let is_spread = child(argument, "variadic_unpacking").is_some();
        let value = match children(argument).last() {
            Some(n) => expr(l, *n),
            None => continue,
        };
        out.push(Arg {
            keyword,
            value,
            is_spread,
        });
    }
    out
}
