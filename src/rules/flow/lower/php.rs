//! The shape of PHP files.
//!
//! - `echo`, `<?= … ?>`, `print`, `exit`, `include`, `eval` and backticks are calls of functions
//!   with these names (backticks: `shell_exec`).
//! - A name of a class is its last word: `\Illuminate\Http\Request` is `Request`.
//! - A call of a function in a namespace has the last word of its name: `\exec()` is `exec()`.

mod call;
mod declare;

use super::super::shape::{
    Arg, Arm, Catch, CodeBlock, CollectionItem, ExprId, ExprKind, Op, StmtKind, SwitchCase, Sym,
};
use super::{Lower, child, children, field, fields, has_token, integer, plain, stmt, unescape};
use tree_sitter::Node;

/// A word that marks a file that sends a content type. A name in a file cannot have a space.
const CONTENT_TYPE: &str = "content type";
/// A word that marks a file with at most one class.
const ONE_CLASS: &str = "one class";
/// Bytes of a function that are searched for a content type, at most.
const MOST_BYTES: usize = 50_000;

/// Lowers a file.
pub(super) fn file(l: &mut Lower<'_>, root: Node<'_>) -> CodeBlock {
    let text = l.text(root);
    if text.contains("ontent-Type:") || text.contains("ontent-type:") {
        l.sym(CONTENT_TYPE);
    }
    if text
        .lines()
        .filter(|t| t.contains("class ") && !t.trim_start().starts_with(['*', '/', '#']))
        .count()
        < 2
    {
        l.sym(ONE_CLASS);
    }
    for after in text.split("function ").skip(1) {
        let end = after
            .find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
            .unwrap_or(after.len());
        let name = format!(" {}", after.get(..end).unwrap_or_default());
        l.sym(&name);
    }
    block(l, root)
}

/// Lowers the statements inside a node.
fn block(l: &mut Lower<'_>, node: Node<'_>) -> CodeBlock {
    let mut out = CodeBlock::new();
    for part in children(node) {
        statement(l, part, &mut out);
    }
    out
}

/// Lowers a statement that is a block or a single statement.
fn body(l: &mut Lower<'_>, node: Option<Node<'_>>) -> CodeBlock {
    let mut out = CodeBlock::new();
    if let Some(node) = node {
        statement(l, node, &mut out);
    }
    out
}

fn statement(l: &mut Lower<'_>, node: Node<'_>, out: &mut CodeBlock) {
    if l.enter() {
        statement_inside(l, node, out);
        l.leave();
    }
}

fn statement_inside(l: &mut Lower<'_>, node: Node<'_>, out: &mut CodeBlock) {
    match node.kind() {
        "php_tag"
        | "text"
        | "text_interpolation"
        | "empty_statement"
        | "comment"
        | "goto_statement"
        | "named_label_statement" => {}
        "compound_statement"
        | "colon_block"
        | "ERROR"
        | "declare_statement"
        | "namespace_use_group" => {
            out.append(&mut block(l, node));
        }
        "namespace_definition" => {
            if let Some(inner) = field(node, "body") {
                out.append(&mut block(l, inner));
            }
        }
        "namespace_use_declaration" => declare::uses(l, node),
        "expression_statement" if is_echo(l, node) => echo(l, node, out),
        "expression_statement" => {
            if let Some(of) = children(node).first() {
                expression_statement(l, *of, out);
            }
        }
        "echo_statement" => echo(l, node, out),
        "exit_statement" => {
            let args = children(node).into_iter().map(|n| expr(l, n)).collect();
            let call = l.call(node, "exit", args);
            out.push(stmt(node, StmtKind::Expr(call)));
            out.push(stmt(node, StmtKind::Throw(None)));
        }
        "return_statement" => {
            let value = children(node).first().map(|n| expr(l, *n));
            out.push(stmt(node, StmtKind::Return(value)));
        }
        "break_statement" => out.push(stmt(node, StmtKind::Break)),
        "continue_statement" => out.push(stmt(node, StmtKind::Continue)),
        "if_statement" => choice(l, node, out),
        "while_statement" | "do_statement" => {
            let test = field(node, "condition").map(|c| expr(l, c));
            let body = body(l, field(node, "body"));
            let is_post_test = node.kind() == "do_statement";
            out.push(stmt(
                node,
                StmtKind::While {
                    test,
                    body,
                    update: CodeBlock::new(),
                    is_post_test,
                },
            ));
        }
        "for_statement" => repeat(l, node, out),
        "foreach_statement" => each(l, node, out),
        "switch_statement" => switch(l, node, out),
        "try_statement" => attempt(l, node, out),
        "function_definition" => {
            let id = declare::function(l, node);
            out.push(stmt(node, StmtKind::Function(id)));
        }
        "class_declaration"
        | "interface_declaration"
        | "trait_declaration"
        | "enum_declaration" => {
            let id = declare::class(l, node);
            out.push(stmt(node, StmtKind::Class(id)));
        }
        "const_declaration" => declare::constants(l, node, out),
        "function_static_declaration" => {
            for part in children(node) {
                if let (Some(name), Some(value)) = (field(part, "name"), field(part, "value")) {
                    let (target, value) = (expr(l, name), expr(l, value));
                    out.push(l.assign(part, target, value));
                }
            }
        }
        "global_declaration" | "unset_statement" => {}
        _ => expression_statement(l, node, out),
    }
}

/// Returns true for the expression of `<?= … ?>`.
fn is_echo(l: &Lower<'_>, node: Node<'_>) -> bool {
    let before = node.prev_sibling();
    before.is_some_and(|n| {
        matches!(n.kind(), "php_tag" | "text_interpolation")
            && l.text(n).trim_end().ends_with("<?=")
    })
}

/// Returns true if the enclosing function, or the file outside functions, sends a content type that
/// is not HTML.
fn is_plain_output(l: &Lower<'_>, node: Node<'_>) -> bool {
    if l.module.find(CONTENT_TYPE).is_none() {
        return false;
    }
    let mut at = node;
    while let Some(parent) = at.parent() {
        at = parent;
        if matches!(
            at.kind(),
            "function_definition" | "method_declaration" | "anonymous_function"
        ) {
            break;
        }
    }
    let text = l.text(at);
    if text.len() > MOST_BYTES {
        return false;
    }
    let text = text.to_ascii_lowercase();
    let Some((_, after)) = text.split_once("content-type:") else {
        return false;
    };
    let kind = after.trim_start();
    !kind.starts_with("text/html")
        && !text.contains("text/html")
        && kind.starts_with(|c: char| c.is_ascii_alphabetic())
}

/// Lowers `echo a, b;`: one call for each.
fn echo(l: &mut Lower<'_>, node: Node<'_>, out: &mut CodeBlock) {
    let parts: Vec<Node<'_>> = children(node).into_iter().flat_map(sequence).collect();
    let name = if is_plain_output(l, node) {
        "plain_output"
    } else {
        "echo"
    };
    for part in parts {
        let value = expr(l, part);
        let call = l.call(part, name, vec![value]);
        out.push(stmt(part, StmtKind::Expr(call)));
    }
}

/// Lowers an expression as a statement. A call that never returns ends the branch.
fn expression_statement(l: &mut Lower<'_>, node: Node<'_>, out: &mut CodeBlock) {
    if node.kind() == "throw_expression" {
        let value = children(node).first().map(|n| expr(l, *n));
        out.push(stmt(node, StmtKind::Throw(value)));
        return;
    }
    let id = expr(l, node);
    out.push(stmt(node, StmtKind::Expr(id)));
    let callee = field(node, "function")
        .map(|f| l.text(f).trim_start_matches('\\'))
        .unwrap_or_default();
    let ends = [
        "exit",
        "die",
        "abort",
        "wp_die",
        "wp_send_json",
        "wp_send_json_error",
        "wp_send_json_success",
        "dd",
    ];
    if ends.contains(&callee) {
        out.push(stmt(node, StmtKind::Throw(None)));
    }
}

/// Returns the expressions of `a, b`.
fn sequence(node: Node<'_>) -> Vec<Node<'_>> {
    if node.kind() == "sequence_expression" {
        children(node).into_iter().flat_map(sequence).collect()
    } else {
        vec![node]
    }
}

fn choice(l: &mut Lower<'_>, node: Node<'_>, out: &mut CodeBlock) {
    let test = part(l, node, "condition");
    let then = body(l, field(node, "body"));
    let others = fields(node, "alternative");
    let otherwise = alternatives(l, &others);
    out.push(stmt(
        node,
        StmtKind::If {
            test,
            then,
            otherwise,
        },
    ));
}

/// Lowers consecutive `elseif` and `else` branches.
fn alternatives(l: &mut Lower<'_>, nodes: &[Node<'_>]) -> CodeBlock {
    let Some((first, rest)) = nodes.split_first() else {
        return CodeBlock::new();
    };
    if first.kind() != "else_if_clause" {
        return body(l, field(*first, "body"));
    }
    if !l.enter() {
        return CodeBlock::new();
    }
    let test = part(l, *first, "condition");
    let then = body(l, field(*first, "body"));
    let otherwise = alternatives(l, rest);
    l.leave();
    vec![stmt(
        *first,
        StmtKind::If {
            test,
            then,
            otherwise,
        },
    )]
}

fn repeat(l: &mut Lower<'_>, node: Node<'_>, out: &mut CodeBlock) {
    for first in fields(node, "initialize").into_iter().flat_map(sequence) {
        expression_statement(l, first, out);
    }
    let tests: Vec<Node<'_>> = fields(node, "condition")
        .into_iter()
        .flat_map(sequence)
        .collect();
    let test = tests.last().map(|t| expr(l, *t));
    let mut update = CodeBlock::new();
    for last in fields(node, "update").into_iter().flat_map(sequence) {
        expression_statement(l, last, &mut update);
    }
    let mut inner = CodeBlock::new();
    for part in fields(node, "body") {
        statement(l, part, &mut inner);
    }
    out.push(stmt(
        node,
        StmtKind::While {
            test,
            body: inner,
            update,
            is_post_test: false,
        },
    ));
}

fn each(l: &mut Lower<'_>, node: Node<'_>, out: &mut CodeBlock) {
    let inner = field(node, "body");
    let heads: Vec<Node<'_>> = children(node)
        .into_iter()
        .filter(|n| Some(*n) != inner)
        .collect();
    let [iterable, names, ..] = heads.as_slice() else {
        return;
    };
    let iterable = expr(l, *iterable);
    let (key, value) = match (names.kind(), children(*names).as_slice()) {
        ("pair", [key, value]) => (Some(expr(l, *key)), *value),
        _ => (None, *names),
    };
    let target = expr(l, value);
    let body = body(l, inner);
    out.push(stmt(
        node,
        StmtKind::Each {
            target,
            key,
            iterable,
            body,
        },
    ));
}

fn switch(l: &mut Lower<'_>, node: Node<'_>, out: &mut CodeBlock) {
    let subject = field(node, "condition").map(|c| expr(l, c));
    let mut cases = Vec::new();
    for part in field(node, "body").map(children).unwrap_or_default() {
        let value = field(part, "value");
        let tests = value.map(|v| expr(l, v)).into_iter().collect();
        let mut body = CodeBlock::new();
        for inner in children(part).into_iter().filter(|n| Some(*n) != value) {
            statement(l, inner, &mut body);
        }
        cases.push(SwitchCase { tests, body });
    }
    // `switch (true) { case $x > 1: … }` tests the cases.
    let is_true =
        field(node, "condition").is_some_and(|c| l.text(c).eq_ignore_ascii_case("(true)"));
    let subject = if is_true { None } else { subject };
    out.push(stmt(
        node,
        StmtKind::Switch {
            subject,
            cases,
            falls_through: true,
        },
    ));
}

fn attempt(l: &mut Lower<'_>, node: Node<'_>, out: &mut CodeBlock) {
    let inner = body(l, field(node, "body"));
    let (mut catches, mut finally) = (Vec::new(), CodeBlock::new());
    for part in children(node) {
        match part.kind() {
            "catch_clause" => {
                let name = field(part, "name").map(|n| l.sym_of(n));
                let ty = field(part, "type")
                    .and_then(|t| children(t).first().copied())
                    .map(|t| class_name(l, t));
                catches.push(Catch {
                    name,
                    ty,
                    body: body(l, field(part, "body")),
                });
            }
            "finally_clause" => finally = body(l, field(part, "body")),
            _ => {}
        }
    }
    out.push(stmt(
        node,
        StmtKind::Try {
            body: inner,
            catches,
            finally,
        },
    ));
}

/// Returns the last word of a name with a namespace.
fn class_name(l: &mut Lower<'_>, node: Node<'_>) -> Sym {
    let text = l.text(node).trim_start_matches('?');
    let last = text.rsplit('\\').next().unwrap_or(text);
    l.sym(last)
}

/// Lowers the child with a field name.
fn part(l: &mut Lower<'_>, node: Node<'_>, name: &str) -> ExprId {
    match field(node, name) {
        Some(n) => expr(l, n),
        None => l.unknown(node, Vec::new()),
    }
}

/// Lowers an expression.
fn expr(l: &mut Lower<'_>, node: Node<'_>) -> ExprId {
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

/// Returns true for values of superglobals that the server chooses.
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

fn member(l: &mut Lower<'_>, node: Node<'_>, object: &str) -> ExprId {
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
fn is_digest(l: &Lower<'_>, node: Node<'_>, side: &str) -> bool {
    let function = field(node, side).and_then(|n| field(n, "function"));
    function.is_some_and(|f| matches!(l.text(f), "md5" | "sha1" | "hash" | "hash_hmac" | "crypt"))
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

/// Lowers the comparison of a digest: a call of `loose_equal` or `strict_equal` precedes it, which
/// structural entries match.
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
    let digest = match (is_digest(l, node, "left"), is_digest(l, node, "right")) {
        (true, _) => sides.0,
        (false, true) => sides.1,
        _ => return None,
    };
    let call = l.call(node, name, vec![digest]);
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
fn args(l: &mut Lower<'_>, node: Node<'_>) -> Vec<Arg> {
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
