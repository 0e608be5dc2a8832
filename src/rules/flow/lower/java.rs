//! The shape of Java files.

mod declare;
mod value;

use super::super::shape::{Arm, Catch, CodeBlock, ExprId, ExprKind, StmtKind, SwitchCase, Sym};
use super::{Lower, block, child, children, field, fields, has_token, stmt};
use declare::{class, function};
use tree_sitter::Node;
use value::expr;

pub(super) mod hints;
pub(super) mod secret;
pub(super) mod spring;

/// Lowers a file.
pub(super) fn file(l: &mut Lower<'_>, root: Node<'_>) -> CodeBlock {
    body(l, root)
}

fn body(l: &mut Lower<'_>, node: Node<'_>) -> CodeBlock {
    block(l, &children(node), statement)
}

/// Lowers a statement that may be a block.
fn body_of(l: &mut Lower<'_>, node: Node<'_>, name: &'static str) -> CodeBlock {
    field(node, name)
        .map(|n| block(l, &[n], statement))
        .unwrap_or_default()
}

fn statement(l: &mut Lower<'_>, node: Node<'_>, out: &mut CodeBlock) {
    if !l.enter() {
        return;
    }
    statement_inside(l, node, out);
    l.leave();
}

fn statement_inside(l: &mut Lower<'_>, node: Node<'_>, out: &mut CodeBlock) {
    let kind = match node.kind() {
        "block"
        | "program"
        | "constructor_body"
        | "static_initializer"
        | "labeled_statement"
        | "ERROR"
        | "expression_statement" => return inner(l, node, out),
        "synchronized_statement" => StmtKind::Block(body_of(l, node, "body")),
        "import_declaration" => return import(l, node),
        "package_declaration"
        | "identifier"
        | "type_identifier"
        | "modifiers"
        | "line_comment"
        | "block_comment" => {
            return;
        }
        "local_variable_declaration" | "field_declaration" | "constant_declaration" => {
            return declaration(l, node, out);
        }
        "method_declaration" | "constructor_declaration" | "compact_constructor_declaration" => {
            StmtKind::Function(function(l, node, &[]))
        }
        "class_declaration"
        | "interface_declaration"
        | "enum_declaration"
        | "record_declaration" => class(l, node),
        "return_statement" => StmtKind::Return(first_of(l, node)),
        "yield_statement" => StmtKind::Return(first_of(l, node)),
        "throw_statement" => StmtKind::Throw(first_of(l, node)),
        "break_statement" => StmtKind::Break,
        "continue_statement" => StmtKind::Continue,
        "assert_statement" => return,
        "if_statement" => {
            let test = condition(l, node);
            let then = body_of(l, node, "consequence");
            StmtKind::If {
                test,
                then,
                otherwise: body_of(l, node, "alternative"),
            }
        }
        "while_statement" | "do_statement" => {
            let test = Some(condition(l, node));
            let is_post_test = node.kind() == "do_statement";
            StmtKind::While {
                test,
                body: body_of(l, node, "body"),
                update: Vec::new(),
                is_post_test,
            }
        }
        "for_statement" => return counted(l, node, out),
        "enhanced_for_statement" => return each(l, node, out),
        "switch_expression" => switch(l, node),
        "try_statement" | "try_with_resources_statement" => attempt(l, node),
        _ => StmtKind::Expr(expr(l, node)),
    };
    out.push(stmt(node, kind));
    if node.kind() == "method_invocation" {
        change(l, node, out);
    }
}

/// Adds the change that a call makes to its receiver.
fn change(l: &mut Lower<'_>, node: Node<'_>, out: &mut CodeBlock) {
    let (Some(of), Some(name), Some(args)) = (
        field(node, "object"),
        field(node, "name"),
        field(node, "arguments"),
    ) else {
        return;
    };
    if matches!(of.kind(), "identifier" | "field_access")
        && let Some(call) = hints::change(l.text(name), l.text(args))
    {
        let target = expr(l, of);
        hints::changed(l, node, call, target, out);
    }
}

/// Lowers the children as statements of the enclosing block.
fn inner(l: &mut Lower<'_>, node: Node<'_>, out: &mut CodeBlock) {
    for n in children(node) {
        statement(l, n, out);
    }
}

/// Lowers the condition in parentheses.
fn condition(l: &mut Lower<'_>, node: Node<'_>) -> ExprId {
    match field(node, "condition") {
        Some(n) => expr(l, n),
        None => l.unknown(node, Vec::new()),
    }
}

fn first_of(l: &mut Lower<'_>, node: Node<'_>) -> Option<ExprId> {
    children(node).first().map(|n| expr(l, *n))
}

fn import(l: &mut Lower<'_>, node: Node<'_>) {
    let Some(path) = child(node, "scoped_identifier").or_else(|| child(node, "identifier")) else {
        return;
    };
    let path = l.text(path).to_owned();
    let last = path.rsplit('.').next().unwrap_or_default().to_owned();
    let alias = if child(node, "asterisk").is_some() {
        "*"
    } else {
        last.as_str()
    };
    l.import(alias, &path);
}

fn declaration(l: &mut Lower<'_>, node: Node<'_>, out: &mut CodeBlock) {
    let ty = field(node, "type").and_then(|t| type_name(l, t));
    for d in fields(node, "declarator") {
        let Some(name) = field(d, "name") else {
            continue;
        };
        let value = field(d, "value").map(|v| expr(l, v));
        let target = l.name(name);
        out.push(stmt(d, StmtKind::Declare { target, ty, value }));
    }
}

/// Returns the name of a type without its arguments and dimensions. `var` and arrays of bytes:
/// None.
fn type_name(l: &mut Lower<'_>, node: Node<'_>) -> Option<Sym> {
    let text = l.text(node);
    let text = text.split(['<', '[']).next().unwrap_or_default().trim();
    let text = text.rsplit([' ', '\n']).next().unwrap_or_default();
    // `byte[]` is data, and not a number.
    let is_data = node.kind() == "array_type" && matches!(text, "byte" | "char");
    (!text.is_empty() && text != "var" && !is_data).then(|| l.sym(text))
}

fn counted(l: &mut Lower<'_>, node: Node<'_>, out: &mut CodeBlock) {
    for n in fields(node, "init") {
        statement(l, n, out);
    }
    let test = field(node, "condition").map(|n| expr(l, n));
    let body = body_of(l, node, "body");
    let update = block(l, &fields(node, "update"), statement);
    out.push(stmt(
        node,
        StmtKind::While {
            test,
            body,
            update,
            is_post_test: false,
        },
    ));
}

fn each(l: &mut Lower<'_>, node: Node<'_>, out: &mut CodeBlock) {
    let (Some(name), Some(value)) = (field(node, "name"), field(node, "value")) else {
        return;
    };
    let ty = field(node, "type").and_then(|t| type_name(l, t));
    let iterable = expr(l, value);
    let target = l.name(name);
    let mut body = body_of(l, node, "body");
    if ty.is_some() {
        // This declares only the type of the variable. The loop assigns its value.
        body.insert(
            0,
            stmt(
                name,
                StmtKind::Declare {
                    target,
                    ty,
                    value: Some(target),
                },
            ),
        );
    }
    out.push(stmt(
        node,
        StmtKind::Each {
            target,
            key: None,
            iterable,
            body,
        },
    ));
}

/// Lowers the labels of a case. `default`: no tests.
fn tests(l: &mut Lower<'_>, labels: &[Node<'_>]) -> Vec<ExprId> {
    let mut out = Vec::new();
    for label in labels {
        if has_token(*label, "default") {
            return Vec::new();
        }
        for n in children(*label).into_iter().filter(|n| n.kind() != "guard") {
            out.push(expr(l, n));
        }
    }
    out
}

fn switch(l: &mut Lower<'_>, node: Node<'_>) -> StmtKind {
    let subject = Some(condition(l, node));
    let mut cases = Vec::new();
    let mut falls_through = false;
    for part in field(node, "body").map(children).unwrap_or_default() {
        let (labels, rest): (Vec<_>, Vec<_>) = children(part)
            .into_iter()
            .partition(|n| n.kind() == "switch_label");
        falls_through |= part.kind() == "switch_block_statement_group";
        let tests = tests(l, &labels);
        cases.push(SwitchCase {
            tests,
            body: block(l, &rest, statement),
        });
    }
    StmtKind::Switch {
        subject,
        cases,
        falls_through,
    }
}

/// Lowers a `switch` with a value.
fn choice(l: &mut Lower<'_>, node: Node<'_>) -> ExprId {
    let subject = Some(condition(l, node));
    let mut arms = Vec::new();
    for part in field(node, "body").map(children).unwrap_or_default() {
        let (labels, rest): (Vec<_>, Vec<_>) = children(part)
            .into_iter()
            .partition(|n| n.kind() == "switch_label");
        let tests = tests(l, &labels);
        let value = arm(l, part, &rest);
        arms.push(Arm { tests, value });
    }
    l.expr(node, ExprKind::Match { subject, arms })
}

/// Lowers the value of a case: an expression, or a block that ends with `yield`.
fn arm(l: &mut Lower<'_>, part: Node<'_>, rest: &[Node<'_>]) -> ExprId {
    if let [one] = rest
        && one.kind() == "expression_statement"
        && let Some(value) = first_of(l, *one)
    {
        return value;
    }
    let mut body = block(l, rest, statement);
    let value = match body.last().map(|s| &s.kind) {
        Some(StmtKind::Return(value)) => *value,
        _ => None,
    };
    if value.is_some() {
        body.pop();
    }
    l.expr(part, ExprKind::Block { body, value })
}

fn attempt(l: &mut Lower<'_>, node: Node<'_>) -> StmtKind {
    let mut main = Vec::new();
    for r in field(node, "resources").map(children).unwrap_or_default() {
        resource(l, r, &mut main);
    }
    main.extend(body_of(l, node, "body"));
    let mut catches = Vec::new();
    let mut finally = Vec::new();
    for part in children(node) {
        match part.kind() {
            "finally_clause" => finally = block(l, &children(part), statement),
            "catch_clause" => {
                let param = child(part, "catch_formal_parameter");
                let name = param.and_then(|p| field(p, "name")).map(|n| l.sym_of(n));
                let ty = param
                    .and_then(|p| child(p, "catch_type"))
                    .map(|n| l.sym_of(n));
                catches.push(Catch {
                    name,
                    ty,
                    body: body_of(l, part, "body"),
                });
            }
            _ => {}
        }
    }
    StmtKind::Try {
        body: main,
        catches,
        finally,
    }
}

fn resource(l: &mut Lower<'_>, node: Node<'_>, out: &mut CodeBlock) {
    let (Some(name), Some(value)) = (field(node, "name"), field(node, "value")) else {
        return;
    };
    let ty = field(node, "type").and_then(|t| type_name(l, t));
    let value = Some(expr(l, value));
    let target = l.name(name);
    out.push(stmt(node, StmtKind::Declare { target, ty, value }));
}
