//! The shape of Kotlin files.

mod value;

use super::super::shape::{
    Annotation, Arm, Catch, CodeBlock, CollectionItem, ExprId, ExprKind, Op, Stmt, StmtKind,
    SwitchCase, Sym,
};
use super::{Lower, block, child, children, field, fields, plain, stmt};
use call::{change, is_requirement, required};
use declare::{class, function, mark};
use tree_sitter::Node;
use value::{all, arguments, expr, first};

mod call;
mod declare;
mod text;

/// Lowers a file.
pub(super) fn file(l: &mut Lower<'_>, root: Node<'_>) -> CodeBlock {
    let mut out = Vec::new();
    declarations(l, &children(root), &mut out);
    out
}

/// Lowers statements. The grammar reads an annotation before a class at the top of a file as an
/// expression of its own.
fn declarations(l: &mut Lower<'_>, nodes: &[Node<'_>], out: &mut CodeBlock) {
    let mut before = Vec::new();
    for n in nodes {
        match n.kind() {
            "annotated_expression" if loose(l, *n, &mut before) => {}
            "class_declaration" | "object_declaration" => {
                let kind = class(l, *n, std::mem::take(&mut before));
                out.push(stmt(*n, kind));
            }
            "function_declaration" => {
                let id = function(l, *n, std::mem::take(&mut before), &[]);
                out.push(stmt(*n, StmtKind::Function(id)));
            }
            _ => statement(l, *n, out),
        }
    }
}

/// Collects the annotations of an expression that consists of annotations only.
fn loose(l: &mut Lower<'_>, node: Node<'_>, out: &mut Vec<Annotation>) -> bool {
    let mut at = node;
    let mut found = Vec::new();
    loop {
        let mut next = None;
        for n in children(at) {
            match n.kind() {
                "annotation" => found.push((n, None)),
                "annotated_expression" => next = Some(n),
                "parenthesized_expression" => {
                    if let Some(last) = found.last_mut() {
                        last.1 = Some(n);
                    }
                }
                _ => return false,
            }
        }
        match next {
            Some(n) => at = n,
            None => break,
        }
    }
    for (annotation, args) in found {
        let mut made = mark(l, annotation);
        if let (Some(m), Some(args)) = (made.as_mut(), args) {
            m.args.extend(all(l, args).into_iter().map(plain));
        }
        out.extend(made);
    }
    true
}

fn body(l: &mut Lower<'_>, node: Node<'_>) -> CodeBlock {
    match node.kind() {
        "block" => block(l, &children(node), statement),
        _ => block(l, &[node], statement),
    }
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
        "source_file" | "ERROR" => return declarations(l, &children(node), out),
        "block" => StmtKind::Block(body(l, node)),
        "import" => return import(l, node),
        "package_header" | "file_annotation" | "type_alias" | "shebang" | "modifiers"
        | "user_type" => return,
        "property_declaration" => return property(l, node, out),
        "function_declaration" => StmtKind::Function(function(l, node, Vec::new(), &[])),
        "class_declaration" | "object_declaration" | "companion_object" => {
            class(l, node, Vec::new())
        }
        "anonymous_initializer" => {
            return children(node)
                .into_iter()
                .for_each(|n| out.extend(body(l, n)));
        }
        "return_expression" => StmtKind::Return(value_of(l, node)),
        "throw_expression" => StmtKind::Throw(value_of(l, node)),
        "identifier" if l.text(node) == "break" => StmtKind::Break,
        "identifier" if l.text(node) == "continue" => StmtKind::Continue,
        "if_expression" => {
            let test = condition(l, node);
            let (then, otherwise) = branches(node);
            let then = then.map(|n| body(l, n)).unwrap_or_default();
            StmtKind::If {
                test,
                then,
                otherwise: otherwise.map(|n| body(l, n)).unwrap_or_default(),
            }
        }
        "while_statement" | "do_while_statement" => {
            let test = Some(condition(l, node));
            let main = children(node)
                .into_iter()
                .rfind(|n| Some(*n) != field(node, "condition") && n.kind() != "label");
            let main = main.map(|n| body(l, n)).unwrap_or_default();
            StmtKind::While {
                test,
                body: main,
                update: Vec::new(),
                is_post_test: node.kind() == "do_while_statement",
            }
        }
        "for_statement" => return each(l, node, out),
        "when_expression" => return choice_statement(l, node, out),
        "try_expression" => attempt(l, node),
        "labeled_expression" | "annotated_expression" => {
            return children(node).last().map_or((), |n| statement(l, *n, out));
        }
        "call_expression" => match required(node).filter(|_| is_requirement(l, node)) {
            Some(test) => StmtKind::Assert(expr(l, test)),
            None => StmtKind::Expr(expr(l, node)),
        },
        _ => StmtKind::Expr(expr(l, node)),
    };
    out.push(stmt(node, kind));
    if node.kind() == "call_expression" {
        change(l, node, out);
    }
}

fn condition(l: &mut Lower<'_>, node: Node<'_>) -> ExprId {
    match field(node, "condition") {
        Some(n) => expr(l, n),
        None => l.unknown(node, Vec::new()),
    }
}

/// Returns the branches of an `if`: for a true test, and for a false one.
fn branches<'n>(node: Node<'n>) -> (Option<Node<'n>>, Option<Node<'n>>) {
    let test = field(node, "condition");
    let mut rest = children(node).into_iter().filter(|n| Some(*n) != test);
    (rest.next(), rest.next())
}

/// Lowers the value of `return` or `throw`.
fn value_of(l: &mut Lower<'_>, node: Node<'_>) -> Option<ExprId> {
    let label = field(node, "label");
    let value = children(node)
        .into_iter()
        .rfind(|n| Some(*n) != label && n.kind() != "label");
    value.map(|n| expr(l, n))
}

fn import(l: &mut Lower<'_>, node: Node<'_>) {
    let parts = children(node);
    let Some(path) = parts.first() else { return };
    let path = l.text(*path).to_owned();
    let alias = match parts.get(1) {
        Some(alias) => l.text(*alias).to_owned(),
        None if l.text(node).trim_end().ends_with(".*") => "*".to_owned(),
        None => path.rsplit('.').next().unwrap_or_default().to_owned(),
    };
    l.import(&alias, &path);
}

/// Returns the name of a type without its arguments and `?`.
fn type_name(l: &mut Lower<'_>, node: Node<'_>) -> Sym {
    let text = l.text(node).split('<').next().unwrap_or_default();
    l.sym(text.trim_matches(['?', ' ', '(', ')', '!']))
}

fn is_type(node: Node<'_>) -> bool {
    matches!(
        node.kind(),
        "user_type"
            | "nullable_type"
            | "parenthesized_type"
            | "non_nullable_type"
            | "function_type"
    )
}

/// Returns the name and the type of a declared variable.
fn variable(l: &mut Lower<'_>, node: Node<'_>) -> (Option<ExprId>, Option<Sym>) {
    let name = child(node, "identifier").map(|n| l.name(n));
    let ty = children(node)
        .into_iter()
        .find(|n| is_type(*n))
        .map(|n| type_name(l, n));
    (name, ty)
}

/// Lowers `(a, b)` to a collection of targets.
fn several(l: &mut Lower<'_>, node: Node<'_>) -> ExprId {
    let mut items = Vec::new();
    for n in children(node) {
        if let (Some(value), _) = variable(l, n) {
            items.push(CollectionItem {
                key: None,
                value,
                is_spread: false,
            });
        }
    }
    l.expr(node, ExprKind::Collection(items))
}

fn property(l: &mut Lower<'_>, node: Node<'_>, out: &mut CodeBlock) {
    let value = property_value(l, node);
    if let Some(n) = child(node, "multi_variable_declaration") {
        let target = several(l, n);
        if let Some(value) = value {
            out.push(l.assign(node, target, value));
        }
    } else if let Some((Some(target), ty)) =
        child(node, "variable_declaration").map(|n| variable(l, n))
    {
        out.push(stmt(node, StmtKind::Declare { target, ty, value }));
    }
}

fn property_value(l: &mut Lower<'_>, node: Node<'_>) -> Option<ExprId> {
    for n in children(node) {
        match n.kind() {
            "modifiers"
            | "multi_variable_declaration"
            | "variable_declaration"
            | "type_parameters"
            | "type_constraints"
            | "setter" => {}
            "getter" => return child(n, "function_body").map(|b| first(l, b)),
            "property_delegate" => return Some(first(l, n)),
            _ if is_type(n) => {}
            _ => return Some(expr(l, n)),
        }
    }
    None
}

fn each(l: &mut Lower<'_>, node: Node<'_>, out: &mut CodeBlock) {
    let parts: Vec<_> = children(node)
        .into_iter()
        .filter(|n| !matches!(n.kind(), "annotation" | "label"))
        .collect();
    let [target, iterable, rest @ ..] = parts.as_slice() else {
        return;
    };
    let iterable = expr(l, *iterable);
    let target = match target.kind() {
        "multi_variable_declaration" => several(l, *target),
        _ => match variable(l, *target) {
            (Some(name), _) => name,
            (None, _) => return,
        },
    };
    let body = rest.first().map(|n| body(l, *n)).unwrap_or_default();
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

fn subject(l: &mut Lower<'_>, node: Node<'_>) -> Option<ExprId> {
    let subject = child(node, "when_subject")?;
    let parts = children(subject);
    let value = expr(l, *parts.last()?);
    match child(subject, "variable_declaration").map(|n| variable(l, n)) {
        Some((Some(target), _)) => Some(l.expr(
            subject,
            ExprKind::Assign {
                target,
                op: None,
                value,
            },
        )),
        _ => Some(value),
    }
}

/// Lowers the tests of a branch. `else` has none.
fn tests(l: &mut Lower<'_>, entry: Node<'_>) -> Vec<ExprId> {
    let mut out = Vec::new();
    for n in fields(entry, "condition") {
        let test = match n.kind() {
            "type_test" | "range_test" => {
                let inside = children(n)
                    .into_iter()
                    .filter(|c| !is_type(*c))
                    .collect::<Vec<_>>();
                let inside = inside.into_iter().map(|c| expr(l, c)).collect();
                l.unknown(n, inside)
            }
            _ => expr(l, n),
        };
        out.push(test);
    }
    out
}

/// Returns the body of a branch of `when`.
fn entry_body<'n>(entry: Node<'n>) -> Option<Node<'n>> {
    let tests = fields(entry, "condition");
    children(entry).into_iter().rfind(|n| !tests.contains(n))
}

fn entries<'n>(node: Node<'n>) -> Vec<Node<'n>> {
    children(node)
        .into_iter()
        .filter(|n| n.kind() == "when_entry")
        .collect()
}

fn choice_statement(l: &mut Lower<'_>, node: Node<'_>, out: &mut CodeBlock) {
    if child(node, "when_subject").is_none() {
        let mut otherwise: CodeBlock = Vec::new();
        for entry in entries(node).into_iter().rev() {
            let then = entry_body(entry).map(|n| body(l, n)).unwrap_or_default();
            otherwise = match any(l, entry) {
                Some(test) => vec![stmt(
                    entry,
                    StmtKind::If {
                        test,
                        then,
                        otherwise,
                    },
                )],
                None => then,
            };
        }
        return out.extend(otherwise);
    }
    let subject = subject(l, node);
    let mut cases = Vec::new();
    for entry in entries(node) {
        let tests = tests(l, entry);
        let body = entry_body(entry).map(|n| body(l, n)).unwrap_or_default();
        cases.push(SwitchCase { tests, body });
    }
    out.push(stmt(
        node,
        StmtKind::Switch {
            subject,
            cases,
            falls_through: false,
        },
    ));
}

/// Joins the tests of a branch without subject by `||`. `else`: None.
fn any(l: &mut Lower<'_>, entry: Node<'_>) -> Option<ExprId> {
    let mut tests = tests(l, entry).into_iter();
    let mut test = tests.next()?;
    for right in tests {
        test = l.expr(
            entry,
            ExprKind::Binary {
                op: Op::Or,
                left: test,
                right,
            },
        );
    }
    Some(test)
}

/// Lowers a `when` with a value.
fn choice(l: &mut Lower<'_>, node: Node<'_>) -> ExprId {
    if child(node, "when_subject").is_none() {
        let mut value = l.expr(node, ExprKind::Null);
        for entry in entries(node).into_iter().rev() {
            let yes = entry_body(entry).map(|n| branch(l, n)).unwrap_or(value);
            value = match any(l, entry) {
                Some(test) => l.expr(
                    entry,
                    ExprKind::Conditional {
                        test,
                        yes,
                        no: value,
                    },
                ),
                None => yes,
            };
        }
        return value;
    }
    let subject = subject(l, node);
    let mut arms = Vec::new();
    for entry in entries(node) {
        let tests = tests(l, entry);
        if let Some(value) = entry_body(entry).map(|n| branch(l, n)) {
            arms.push(Arm { tests, value });
        }
    }
    l.expr(node, ExprKind::Match { subject, arms })
}

/// Lowers a branch that has a value: an expression, or a block whose last expression is the value.
fn branch(l: &mut Lower<'_>, node: Node<'_>) -> ExprId {
    if node.kind() != "block" {
        return expr(l, node);
    }
    let mut body = body(l, node);
    let value = last_value(&mut body);
    l.expr(node, ExprKind::Block { body, value })
}

/// Takes the last expression out of a block.
fn last_value(body: &mut CodeBlock) -> Option<ExprId> {
    match body.pop() {
        Some(Stmt {
            kind: StmtKind::Expr(id),
            ..
        }) => Some(id),
        Some(other) => {
            body.push(other);
            None
        }
        None => None,
    }
}

fn attempt(l: &mut Lower<'_>, node: Node<'_>) -> StmtKind {
    let mut main = Vec::new();
    let mut catches = Vec::new();
    let mut finally = Vec::new();
    for part in children(node) {
        let inside = child(part, "block");
        match part.kind() {
            "block" => main = body(l, part),
            "finally_block" => finally = inside.map(|b| body(l, b)).unwrap_or_default(),
            "catch_block" => {
                let name = child(part, "identifier").map(|n| l.sym_of(n));
                let ty = children(part)
                    .into_iter()
                    .find(|n| is_type(*n))
                    .map(|n| type_name(l, n));
                catches.push(Catch {
                    name,
                    ty,
                    body: inside.map(|b| body(l, b)).unwrap_or_default(),
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

/// Lowers `try` with a value: the value of the block, or the value of a `catch`.
fn attempt_value(l: &mut Lower<'_>, node: Node<'_>) -> ExprId {
    let mut values = Vec::new();
    for part in children(node) {
        let block = if part.kind() == "block" {
            Some(part)
        } else {
            child(part, "block")
        };
        if part.kind() != "finally_block"
            && let Some(block) = block
        {
            values.push(branch(l, block));
        }
    }
    let mut values = values.into_iter().rev();
    let Some(mut value) = values.next() else {
        return l.unknown(node, Vec::new());
    };
    for yes in values {
        let test = l.unknown(node, Vec::new());
        value = l.expr(
            node,
            ExprKind::Conditional {
                test,
                yes,
                no: value,
            },
        );
    }
    value
}
