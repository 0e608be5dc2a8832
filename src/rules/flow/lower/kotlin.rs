//! The shape of Kotlin files.

use super::super::shape::{
    Annotation, Arg, Arm, Catch, Class, CodeBlock, CollectionItem, ExprId, ExprKind, Function,
    FunctionId, Op, Param, Stmt, StmtKind, SwitchCase, Sym,
};
use super::{
    Lower, block, child, children, field, fields, has_token, integer, plain, span, stmt, unescape,
};
use call::{call, change, generic, is_requirement, required};
use declare::{bases, class, function, mark, members};
use tree_sitter::Node;

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

fn arguments(l: &mut Lower<'_>, node: Node<'_>) -> Vec<Arg> {
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

fn all(l: &mut Lower<'_>, node: Node<'_>) -> Vec<ExprId> {
    children(node).into_iter().map(|n| expr(l, n)).collect()
}

/// Lowers the first child.
fn first(l: &mut Lower<'_>, node: Node<'_>) -> ExprId {
    match children(node).first() {
        Some(n) => expr(l, *n),
        None => l.unknown(node, Vec::new()),
    }
}

fn expr(l: &mut Lower<'_>, node: Node<'_>) -> ExprId {
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
fn otherwise(l: &mut Lower<'_>, node: Node<'_>) -> ExprId {
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
