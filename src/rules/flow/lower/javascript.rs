//! The shape of JavaScript, TypeScript and TSX files.

mod callback;
mod class;
mod expression;
mod function;
mod markup;
mod notice;
mod output;
mod validated;
mod waited;

use super::super::shape::{
    Catch, CodeBlock, CollectionItem, ExprId, ExprKind, Stmt, StmtKind, SwitchCase,
};
use super::{Lower, block, child, children, field, fields, stmt};
use expression::expr;
use tree_sitter::Node;

/// Lowers a file.
pub(super) fn file(l: &mut Lower<'_>, root: Node<'_>) -> CodeBlock {
    body(l, root)
}

fn body(l: &mut Lower<'_>, node: Node<'_>) -> CodeBlock {
    block(l, &children(node), statement)
}

/// Lowers a block, or the single statement in its place.
fn body_of(l: &mut Lower<'_>, node: Node<'_>, name: &'static str) -> CodeBlock {
    let mut out = Vec::new();
    if let Some(n) = field(node, name) {
        statement(l, n, &mut out);
    }
    out
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
        "statement_block"
        | "ERROR"
        | "program"
        | "else_clause"
        | "class_static_block"
        | "ambient_declaration" => {
            return out.extend(body(l, node));
        }
        "expression_statement" => return expression_statement(l, node, out),
        "import_statement" => return import(l, node),
        "import_alias"
        | "interface_declaration"
        | "type_alias_declaration"
        | "function_signature"
        | "comment"
        | "empty_statement"
        | "debugger_statement"
        | "hash_bang_line" => return,
        "lexical_declaration" | "variable_declaration" | "using_declaration" => {
            return declarations(l, node, out);
        }
        "export_statement" => return export(l, node, out),
        "return_statement" => StmtKind::Return(children(node).first().map(|n| expr(l, *n))),
        "throw_statement" => StmtKind::Throw(children(node).first().map(|n| expr(l, *n))),
        "break_statement" => StmtKind::Break,
        "continue_statement" => StmtKind::Continue,
        "if_statement" => {
            let test = field_expr(l, node, "condition");
            let then = body_of(l, node, "consequence");
            StmtKind::If {
                test,
                then,
                otherwise: body_of(l, node, "alternative"),
            }
        }
        "while_statement" | "do_statement" => {
            let test = Some(field_expr(l, node, "condition"));
            let body = body_of(l, node, "body");
            StmtKind::While {
                test,
                body,
                update: Vec::new(),
                is_post_test: node.kind() == "do_statement",
            }
        }
        "for_statement" => return counted(l, node, out),
        "for_in_statement" => {
            let target = field_expr(l, node, "left");
            let iterable = field_expr(l, node, "right");
            StmtKind::Each {
                target,
                key: None,
                iterable,
                body: body_of(l, node, "body"),
            }
        }
        "switch_statement" => choice(l, node),
        "try_statement" => attempt(l, node),
        "labeled_statement" => return out.extend(body_of(l, node, "body")),
        "with_statement" => {
            let of = field_expr(l, node, "object");
            out.push(stmt(node, StmtKind::Expr(of)));
            return out.extend(body_of(l, node, "body"));
        }
        "function_declaration" | "generator_function_declaration" => {
            StmtKind::Function(function::function(l, node, None))
        }
        "class_declaration" | "abstract_class_declaration" => {
            StmtKind::Class(class::class(l, node, &[]))
        }
        "enum_declaration" => return enumeration(l, node, out),
        "internal_module" | "module" => return out.extend(body_of(l, node, "body")),
        "finally_clause" => return out.extend(body_of(l, node, "body")),
        _ => StmtKind::Expr(expr(l, node)),
    };
    out.push(stmt(node, kind));
}

/// Lowers a field as an expression. A missing field becomes an unknown value.
fn field_expr(l: &mut Lower<'_>, node: Node<'_>, name: &'static str) -> ExprId {
    match field(node, name) {
        Some(n) => expr(l, n),
        None => l.unknown(node, Vec::new()),
    }
}

fn expression_statement(l: &mut Lower<'_>, node: Node<'_>, out: &mut CodeBlock) {
    for n in children(node) {
        if n.kind() == "internal_module" {
            out.extend(body_of(l, n, "body"));
            continue;
        }
        let id = expr(l, n);
        out.push(stmt(node, StmtKind::Expr(id)));
        if notice::is_end(l, n) {
            out.push(stmt(node, StmtKind::Throw(None)));
        }
    }
}

fn declarations(l: &mut Lower<'_>, node: Node<'_>, out: &mut CodeBlock) {
    for d in children(node)
        .into_iter()
        .filter(|n| n.kind() == "variable_declarator")
    {
        let Some(name) = field(d, "name") else {
            continue;
        };
        let value = field(d, "value").map(|v| named_value(l, v, name));
        let target = expr(l, name);
        let ty = field(d, "type").and_then(|t| function::type_name(l, t));
        match (value, ty) {
            (Some(value), None) => out.push(l.assign(d, target, value)),
            (value, ty) => out.push(stmt(d, StmtKind::Declare { target, ty, value })),
        }
    }
}

/// Lowers a value that is assigned to a name. A function literal takes the name.
fn named_value(l: &mut Lower<'_>, value: Node<'_>, target: Node<'_>) -> ExprId {
    if !function::is_literal(value) {
        let id = expr(l, value);
        let word = l.text(target);
        return match notice::secret(l, value, word, value) {
            Some(shown) => {
                let body = vec![stmt(value, StmtKind::Expr(shown))];
                l.expr(
                    value,
                    ExprKind::Block {
                        body,
                        value: Some(id),
                    },
                )
            }
            None => id,
        };
    }
    let name = match target.kind() {
        "identifier" | "property_identifier" => Some(l.text(target)),
        "member_expression" => field(target, "property").map(|p| l.text(p)),
        "string" => Some(l.text(target).trim_matches(['"', '\''])),
        _ => None,
    };
    function::literal(l, value, name)
}

fn export(l: &mut Lower<'_>, node: Node<'_>, out: &mut CodeBlock) {
    let marks = fields(node, "decorator");
    match (field(node, "declaration"), field(node, "value")) {
        (Some(d), _) if matches!(d.kind(), "class_declaration" | "abstract_class_declaration") => {
            let id = class::class(l, d, &marks);
            out.push(stmt(d, StmtKind::Class(id)));
        }
        (Some(d), _) => statement(l, d, out),
        (None, Some(v)) => {
            let value = expr(l, v);
            out.push(stmt(node, StmtKind::Expr(value)));
        }
        (None, None) => {
            for n in children(node)
                .into_iter()
                .filter(|n| n.kind() == "expression")
            {
                let value = expr(l, n);
                out.push(stmt(node, StmtKind::Expr(value)));
            }
        }
    }
}

fn counted(l: &mut Lower<'_>, node: Node<'_>, out: &mut CodeBlock) {
    if let Some(first) = field(node, "initializer") {
        statement(l, first, out);
    }
    let test = field(node, "condition").filter(|n| n.is_named() && n.kind() != "empty_statement");
    let test = test.map(|n| expr(l, n));
    let mut update = Vec::new();
    if let Some(n) = field(node, "increment") {
        statement(l, n, &mut update);
    }
    let body = body_of(l, node, "body");
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

fn choice(l: &mut Lower<'_>, node: Node<'_>) -> StmtKind {
    let subject = field(node, "value").map(|n| expr(l, n));
    let mut cases = Vec::new();
    for part in field(node, "body").map(children).unwrap_or_default() {
        let tests = field(part, "value")
            .map(|v| expr(l, v))
            .into_iter()
            .collect();
        let body = block(l, &fields(part, "body"), statement);
        cases.push(SwitchCase { tests, body });
    }
    StmtKind::Switch {
        subject,
        cases,
        falls_through: true,
    }
}

fn attempt(l: &mut Lower<'_>, node: Node<'_>) -> StmtKind {
    let body = body_of(l, node, "body");
    let mut catches = Vec::new();
    if let Some(handler) = field(node, "handler") {
        let name = field(handler, "parameter")
            .filter(|p| p.kind() == "identifier")
            .map(|p| l.sym_of(p));
        catches.push(Catch {
            name,
            ty: None,
            body: body_of(l, handler, "body"),
        });
    }
    StmtKind::Try {
        body,
        catches,
        finally: body_of(l, node, "finalizer"),
    }
}

/// Lowers an enumeration to an object of constants.
fn enumeration(l: &mut Lower<'_>, node: Node<'_>, out: &mut CodeBlock) {
    let (Some(name), Some(body)) = (field(node, "name"), field(node, "body")) else {
        return;
    };
    let mut items = Vec::new();
    for member in children(body) {
        let word = field(member, "name").unwrap_or(member);
        let text = l.text(word).trim_matches(['"', '\'']).to_owned();
        let key = l.constant(word, &text);
        let value = match field(member, "value") {
            Some(v) => expr(l, v),
            None => l.expr(member, ExprKind::Int(0)),
        };
        items.push(CollectionItem {
            key: Some(key),
            value,
            is_spread: false,
        });
    }
    let value = l.expr(body, ExprKind::Collection(items));
    let target = l.name(name);
    let assigned: Stmt = l.assign(node, target, value);
    out.push(assigned);
}

fn import(l: &mut Lower<'_>, node: Node<'_>) {
    if let Some(clause) = child(node, "import_require_clause") {
        return import_require(l, clause);
    }
    let Some(source) = field(node, "source") else {
        return;
    };
    let path = l.text(source).trim_matches(['"', '\'']).to_owned();
    let Some(clause) = child(node, "import_clause") else {
        return;
    };
    for part in children(clause) {
        match part.kind() {
            "identifier" => {
                let alias = l.text(part).to_owned();
                l.import(&alias, &path);
            }
            "namespace_import" => {
                let alias = children(part).first().map(|n| l.text(*n).to_owned());
                l.import(&alias.unwrap_or_default(), &path);
            }
            "named_imports" => import_names(l, part, &path),
            _ => {}
        }
    }
}

fn import_names(l: &mut Lower<'_>, node: Node<'_>, path: &str) {
    for specifier in children(node) {
        let Some(name) = field(specifier, "name").map(|n| l.text(n)) else {
            continue;
        };
        let alias = field(specifier, "alias")
            .map_or(name, |a| l.text(a))
            .to_owned();
        if name == "default" {
            l.import(&alias, path);
        } else {
            l.import(&alias, &format!("{path}.{name}"));
        }
    }
}

/// Lowers `import fs = require("fs")` of TypeScript.
fn import_require(l: &mut Lower<'_>, clause: Node<'_>) {
    let (Some(name), Some(source)) = (child(clause, "identifier"), field(clause, "source")) else {
        return;
    };
    let path = l.text(source).trim_matches(['"', '\'']).to_owned();
    let alias = l.text(name).to_owned();
    l.import(&alias, &path);
}
