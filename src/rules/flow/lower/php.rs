//! The shape of PHP files.
//!
//! - `echo`, `<?= … ?>`, `print`, `exit`, `include`, `eval` and backticks are calls of functions
//!   with these names (backticks: `shell_exec`).
//! - A name of a class is its last word: `\Illuminate\Http\Request` is `Request`.
//! - A call of a function in a namespace has the last word of its name: `\exec()` is `exec()`.

mod call;
mod declare;
mod value;

use super::super::shape::{Catch, CodeBlock, StmtKind, SwitchCase, Sym};
use super::{Lower, children, field, fields, stmt};
use tree_sitter::Node;
use value::{args, expr, member, part};

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
