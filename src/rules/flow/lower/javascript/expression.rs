//! Expressions and patterns.

use super::super::super::shape::{Arg, CodeBlock, CollectionItem, Op, StmtKind};
use super::super::{Lower, children, field, integer, plain, slow, stmt, unescape};
use super::{
    ExprId, ExprKind, callback, class, function, markup, named_value, notice, output, validated,
    waited,
};
use tree_sitter::Node;

/// Lowers an expression, or a pattern that is assigned to.
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
        "identifier"
        | "shorthand_property_identifier"
        | "shorthand_property_identifier_pattern"
        | "import" => {
            return l.name(node);
        }
        "this" => ExprKind::This,
        "super" => ExprKind::Super,
        "undefined" | "null" => ExprKind::Null,
        "true" => ExprKind::Bool(true),
        "false" => ExprKind::Bool(false),
        "number" => number(l, node),
        "string" => text(l, node),
        "template_string" => return template(l, node),
        "regex" => {
            let pattern = field(node, "pattern")
                .map(|n| l.text(n))
                .unwrap_or_default();
            return regex(l, node, pattern);
        }
        "array" | "array_pattern" | "object" | "object_pattern" => {
            ExprKind::Collection(items(l, node))
        }
        "await_expression" => match children(node).first() {
            Some(n) => ExprKind::Pass(waited::value(l, *n)),
            None => ExprKind::Unknown(Vec::new()),
        },
        "parenthesized_expression"
        | "yield_expression"
        | "non_null_expression"
        | "as_expression"
        | "satisfies_expression"
        | "rest_pattern"
        | "spread_element" => ExprKind::Pass(first(l, node)),
        "type_assertion" => ExprKind::Pass(last(l, node)),
        "sequence_expression" => return sequence(l, node),
        "member_expression" => return member(l, node),
        "subscript_expression" => return subscript(l, node),
        "call_expression" => return call(l, node),
        "new_expression" if table(l, node).is_some() => return table_of(l, node),
        "new_expression" => {
            let class = field_expr(l, node, "constructor");
            let args = field(node, "arguments")
                .map(|a| arguments(l, a))
                .unwrap_or_default();
            let value = l.expr(node, ExprKind::New { class, args });
            return built_regex(l, node, value);
        }
        "binary_expression" => return binary(l, node),
        "unary_expression" => return unary(l, node),
        "update_expression" => {
            let target = field_expr(l, node, "argument");
            let value = l.expr(node, ExprKind::Int(1));
            ExprKind::Assign {
                target,
                op: Some(Op::Bits),
                value,
            }
        }
        "ternary_expression" => {
            let test = field_expr(l, node, "condition");
            let yes = field_expr(l, node, "consequence");
            ExprKind::Conditional {
                test,
                yes,
                no: field_expr(l, node, "alternative"),
            }
        }
        "assignment_expression" | "augmented_assignment_expression" => return assign(l, node),
        // A pattern with a default: `{ a = 1 }`.
        "assignment_pattern" | "object_assignment_pattern" => return field_expr(l, node, "left"),
        "arrow_function" | "function_expression" | "generator_function" => {
            return function::literal(l, node, None);
        }
        "class" => {
            let id = class::class(l, node, &[]);
            let body = vec![stmt(node, StmtKind::Class(id))];
            let value = field(node, "name").map(|n| l.name(n));
            ExprKind::Block { body, value }
        }
        "jsx_element" | "jsx_self_closing_element" => return markup::element(l, node),
        // `const x: T` in `for (const x of xs)`.
        "lexical_declaration"
        | "variable_declaration"
        | "variable_declarator"
        | "expression_statement" => {
            return first(l, node);
        }
        _ => ExprKind::Unknown(all(l, node)),
    };
    l.expr(node, kind)
}

/// Returns the literal of `new Map([["a", 1]])` and `new Set(["a"])`.
fn table<'n>(l: &Lower<'_>, node: Node<'n>) -> Option<Node<'n>> {
    let class = field(node, "constructor")?;
    if !matches!(l.text(class), "Map" | "Set") {
        return None;
    }
    let first = children(field(node, "arguments")?).first().copied()?;
    Some(first).filter(|f| f.kind() == "array")
}

fn table_of(l: &mut Lower<'_>, node: Node<'_>) -> ExprId {
    let Some(list) = table(l, node) else {
        return l.unknown(node, Vec::new());
    };
    let is_map = field(node, "constructor").is_some_and(|c| l.text(c) == "Map");
    if !is_map {
        return expr(l, list);
    }
    let mut items = Vec::new();
    for entry in children(list) {
        let parts = children(entry);
        match (entry.kind(), parts.as_slice()) {
            ("array", [key, value]) => {
                let (key, value) = (expr(l, *key), expr(l, *value));
                items.push(CollectionItem {
                    key: Some(key),
                    value,
                    is_spread: false,
                });
            }
            _ => return expr(l, list),
        }
    }
    l.expr(node, ExprKind::Collection(items))
}

/// Lowers a field. A missing field becomes an unknown value.
fn field_expr(l: &mut Lower<'_>, node: Node<'_>, name: &'static str) -> ExprId {
    match field(node, name) {
        Some(n) => expr(l, n),
        None => l.unknown(node, Vec::new()),
    }
}

fn first(l: &mut Lower<'_>, node: Node<'_>) -> ExprId {
    match children(node).first() {
        Some(n) => expr(l, *n),
        None => l.unknown(node, Vec::new()),
    }
}

fn last(l: &mut Lower<'_>, node: Node<'_>) -> ExprId {
    match children(node).last() {
        Some(n) => expr(l, *n),
        None => l.unknown(node, Vec::new()),
    }
}

fn all(l: &mut Lower<'_>, node: Node<'_>) -> Vec<ExprId> {
    children(node).into_iter().map(|n| expr(l, n)).collect()
}

fn number(l: &Lower<'_>, node: Node<'_>) -> ExprKind {
    let text = l.text(node);
    match integer(text) {
        Some(n) => ExprKind::Int(n),
        None => ExprKind::Float(text.parse().unwrap_or_default()),
    }
}

fn regex(l: &mut Lower<'_>, node: Node<'_>, pattern: &str) -> ExprId {
    let value = l.expr(node, ExprKind::Regex(pattern.into()));
    shown_if_slow(l, node, pattern, value)
}

/// Returns a value that is preceded by a call which marks a slow regular expression.
fn shown_if_slow(l: &mut Lower<'_>, node: Node<'_>, pattern: &str, value: ExprId) -> ExprId {
    if !slow::is_slow(pattern) {
        return value;
    }
    let shown = l.call(node, "slow regex", Vec::new());
    let body = vec![stmt(node, StmtKind::Expr(shown))];
    l.expr(
        node,
        ExprKind::Block {
            body,
            value: Some(value),
        },
    )
}

/// Lowers `new RegExp("…")`.
fn built_regex(l: &mut Lower<'_>, node: Node<'_>, value: ExprId) -> ExprId {
    let ExprKind::New { class, args } = &l.module.expr(value).kind else {
        return value;
    };
    let pattern = args
        .first()
        .and_then(|a| match &l.module.expr(a.value).kind {
            ExprKind::Text(text) => Some(text.to_string()),
            _ => None,
        });
    let is_regex =
        matches!(l.module.expr(*class).kind, ExprKind::Name(n) if l.module.word(n) == "RegExp");
    match pattern.filter(|_| is_regex) {
        Some(pattern) => shown_if_slow(l, node, &pattern, value),
        None => value,
    }
}

/// Returns the text between the quotes.
fn text(l: &Lower<'_>, node: Node<'_>) -> ExprKind {
    let text = l.text(node);
    let inner = text
        .get(1..text.len().saturating_sub(1))
        .unwrap_or_default();
    ExprKind::Text(unescape(inner).into())
}

fn template(l: &mut Lower<'_>, node: Node<'_>) -> ExprId {
    let mut parts = Vec::new();
    let mut constant = String::new();
    for n in children(node) {
        if n.kind() == "template_substitution" {
            if !constant.is_empty() {
                let text = std::mem::take(&mut constant);
                parts.push(l.constant(node, &text));
            }
            parts.push(first(l, n));
        } else {
            constant.push_str(&unescape(l.text(n)));
        }
    }
    if !constant.is_empty() || parts.is_empty() {
        let text = l.constant(node, &constant);
        if parts.is_empty() {
            return text;
        }
        parts.push(text);
    }
    l.expr(node, ExprKind::Concat(parts))
}

fn sequence(l: &mut Lower<'_>, node: Node<'_>) -> ExprId {
    let mut parts = all(l, node);
    let value = parts.pop();
    let body: CodeBlock = parts
        .into_iter()
        .map(|p| stmt(node, StmtKind::Expr(p)))
        .collect();
    l.expr(node, ExprKind::Block { body, value })
}

fn items(l: &mut Lower<'_>, node: Node<'_>) -> Vec<CollectionItem> {
    let mut out = Vec::new();
    for n in children(node) {
        let item = match n.kind() {
            "pair" | "pair_pattern" => pair(l, n),
            "method_definition" => method(l, n),
            "shorthand_property_identifier" | "shorthand_property_identifier_pattern" => {
                shorthand(l, n, n)
            }
            "object_assignment_pattern" => match field(n, "left") {
                Some(left) => shorthand(l, left, left),
                None => continue,
            },
            "spread_element" | "rest_pattern" => CollectionItem {
                key: None,
                value: first(l, n),
                is_spread: true,
            },
            "comment" => continue,
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

fn shorthand(l: &mut Lower<'_>, name: Node<'_>, value: Node<'_>) -> CollectionItem {
    let word = l.text(name).to_owned();
    let key = l.constant(name, &word);
    CollectionItem {
        key: Some(key),
        value: expr(l, value),
        is_spread: false,
    }
}

fn pair(l: &mut Lower<'_>, node: Node<'_>) -> CollectionItem {
    let key = field(node, "key").map(|k| property_key(l, k));
    let value = match field(node, "value") {
        Some(v) => expr(l, v),
        None => l.unknown(node, Vec::new()),
    };
    if let Some(key) = key {
        callback::resolvers(l, key, value);
    }
    CollectionItem {
        key,
        value,
        is_spread: false,
    }
}

fn method(l: &mut Lower<'_>, node: Node<'_>) -> CollectionItem {
    let key = field(node, "name").map(|k| property_key(l, k));
    let id = class::method(l, node, Vec::new());
    let value = l.expr(node, ExprKind::Function(id));
    CollectionItem {
        key,
        value,
        is_spread: false,
    }
}

fn property_key(l: &mut Lower<'_>, node: Node<'_>) -> ExprId {
    match node.kind() {
        "computed_property_name" => first(l, node),
        "string" | "number" => expr(l, node),
        _ => {
            // Interns the name as a member that is read: `{ exec: run } = module` reads
            // `module.exec`.
            l.sym_of(node);
            let word = l.text(node).to_owned();
            l.constant(node, &word)
        }
    }
}

fn member(l: &mut Lower<'_>, node: Node<'_>) -> ExprId {
    let of = field_expr(l, node, "object");
    let Some(property) = field(node, "property") else {
        return of;
    };
    let name = l.sym_of(property);
    let value = l.expr(node, ExprKind::Member { of, name });
    validated::member(l, node, value)
}

fn subscript(l: &mut Lower<'_>, node: Node<'_>) -> ExprId {
    let of = field_expr(l, node, "object");
    let key = field_expr(l, node, "index");
    l.expr(node, ExprKind::Index { of, key })
}

/// Lowers arguments, or the template of a tagged template.
pub(super) fn arguments(l: &mut Lower<'_>, node: Node<'_>) -> Vec<Arg> {
    let mut out = Vec::new();
    for a in children(node) {
        let is_spread = a.kind() == "spread_element";
        let value = if is_spread { first(l, a) } else { expr(l, a) };
        out.push(Arg {
            keyword: None,
            value,
            is_spread,
        });
    }
    out
}

fn call(l: &mut Lower<'_>, node: Node<'_>) -> ExprId {
    let Some(function) = field(node, "function") else {
        return first(l, node);
    };
    let Some(args) = field(node, "arguments") else {
        return expr(l, function);
    };
    if args.kind() == "template_string" {
        return tagged(l, node, function, args);
    }
    if let Some(id) =
        callback::special(l, node, function, args).or_else(|| validated::parsed(l, node))
    {
        return id;
    }
    let callee = match (function.kind(), children(args).first().map(|a| a.kind())) {
        // A module is imported by its constant name, as with `require`.
        ("import", Some("string")) => l.named(function, "require"),
        ("member_expression", _) if output::is_plain(l, node, function) => {
            let of = field_expr(l, function, "object");
            let name = l.sym("send as other type");
            l.expr(function, ExprKind::Member { of, name })
        }
        _ => expr(l, function),
    };
    let args = arguments(l, args);
    callback::note(l, callee, &args);
    let id = l.expr(node, ExprKind::Call { callee, args });
    chosen_method(l, node, function, id)
}

/// Lowers `table[name](x)`: a value selects the method, which the call `[]` shows.
fn chosen_method(l: &mut Lower<'_>, node: Node<'_>, function: Node<'_>, call: ExprId) -> ExprId {
    let index = field(function, "index")
        .filter(|i| function.kind() == "subscript_expression" && !is_constant(*i));
    let Some(index) = index else { return call };
    let key = expr(l, index);
    let shown = l.call(function, "[]", vec![key]);
    let body = vec![stmt(node, StmtKind::Expr(shown))];
    l.expr(
        node,
        ExprKind::Block {
            body,
            value: Some(call),
        },
    )
}

fn is_constant(node: Node<'_>) -> bool {
    matches!(node.kind(), "string" | "number")
}

/// Lowers a tagged template to a call of the tag, written with a backtick, with the values:
/// sql`…${x}` is "sql`"(x).
fn tagged(l: &mut Lower<'_>, node: Node<'_>, tag: Node<'_>, quoted: Node<'_>) -> ExprId {
    if l.text(tag) == "String.raw" {
        return expr(l, quoted);
    }
    let values = children(quoted)
        .into_iter()
        .filter(|n| n.kind() == "template_substitution");
    let values: Vec<ExprId> = values.map(|n| first(l, n)).collect();
    let callee = match tag.kind() {
        "identifier" => {
            let word = format!("{}`", l.text(tag));
            l.named(tag, &word)
        }
        "member_expression" => {
            let of = field_expr(l, tag, "object");
            let word = field(tag, "property")
                .map(|p| format!("{}`", l.text(p)))
                .unwrap_or_default();
            let name = l.sym(&word);
            l.expr(tag, ExprKind::Member { of, name })
        }
        _ => {
            let mut parts = vec![expr(l, tag)];
            parts.extend(values);
            return l.unknown(node, parts);
        }
    };
    let args = values.into_iter().map(plain).collect();
    l.expr(node, ExprKind::Call { callee, args })
}

fn operator(text: &str) -> Option<Op> {
    Some(match text {
        "+" | "+=" => Op::Add,
        "-" | "-=" => Op::Sub,
        "*" | "*=" => Op::Mul,
        "/" | "/=" => Op::Div,
        "%" | "%=" => Op::Rem,
        "&&" | "&&=" => Op::And,
        "||" | "||=" => Op::Or,
        "??" | "??=" => Op::Else,
        "<" => Op::Less,
        "<=" => Op::LessEqual,
        ">" => Op::Greater,
        ">=" => Op::GreaterEqual,
        "==" | "===" => Op::Equal,
        "!=" | "!==" => Op::NotEqual,
        "in" => Op::In,
        _ => return None,
    })
}

fn binary(l: &mut Lower<'_>, node: Node<'_>) -> ExprId {
    let text = field(node, "operator")
        .map(|o| l.text(o))
        .unwrap_or_default();
    let op = operator(text).unwrap_or(Op::Bits);
    if op == Op::Add {
        return sum(l, node);
    }
    let (Some(left), Some(right)) = (field(node, "left"), field(node, "right")) else {
        return first(l, node);
    };
    if text == "instanceof" {
        let of = expr(l, left);
        let ty = l.sym_of(right);
        return l.expr(node, ExprKind::IsType { of, ty });
    }
    if matches!(op, Op::Equal | Op::NotEqual)
        && let Some(id) = special_test(l, node, left, right)
    {
        return if op == Op::NotEqual {
            l.expr(node, ExprKind::Not(id))
        } else {
            id
        };
    }
    let (a, b) = (expr(l, left), expr(l, right));
    let id = l.expr(
        node,
        ExprKind::Binary {
            op,
            left: a,
            right: b,
        },
    );
    if !matches!(op, Op::Equal | Op::NotEqual) {
        return id;
    }
    let id = callback::origin_test(l, node, id, [left, right], op);
    match notice::comparison(l, node, [left, right]) {
        Some(shown) => {
            let body = vec![stmt(node, StmtKind::Expr(shown))];
            l.expr(
                node,
                ExprKind::Block {
                    body,
                    value: Some(id),
                },
            )
        }
        None => id,
    }
}

/// Lowers `typeof x === "string"` to the test `typeof string`(x), and `x === "__proto__"` to the
/// test `is prototype key`(x).
fn special_test(
    l: &mut Lower<'_>,
    node: Node<'_>,
    left: Node<'_>,
    right: Node<'_>,
) -> Option<ExprId> {
    let (name, other) = if right.kind() == "string" {
        (right, left)
    } else {
        (left, right)
    };
    if name.kind() != "string" {
        return None;
    }
    let word = l.text(name).trim_matches(['"', '\'']);
    if matches!(word, "__proto__" | "constructor" | "prototype") {
        return Some(callback::named_test(l, node, "is prototype key", other));
    }
    let is_typeof = other.kind() == "unary_expression"
        && field(other, "operator").is_some_and(|o| l.text(o) == "typeof");
    if !is_typeof {
        return None;
    }
    Some(callback::named_test(
        l,
        node,
        &format!("typeof {word}"),
        field(other, "argument")?,
    ))
}

fn sum(l: &mut Lower<'_>, node: Node<'_>) -> ExprId {
    // The innermost operands come first, so that a long chain does not nest deeply.
    let parts = l.chain(node, "binary_expression", "+");
    let mut left: Option<ExprId> = None;
    for part in parts {
        let right = expr(l, part);
        left = Some(match left {
            Some(left) => l.expr(
                node,
                ExprKind::Binary {
                    op: Op::Add,
                    left,
                    right,
                },
            ),
            None => right,
        });
    }
    left.unwrap_or_else(|| l.unknown(node, Vec::new()))
}

fn unary(l: &mut Lower<'_>, node: Node<'_>) -> ExprId {
    let of = field_expr(l, node, "argument");
    let text = field(node, "operator")
        .map(|o| l.text(o))
        .unwrap_or_default();
    let kind = match text {
        "!" => ExprKind::Not(of),
        "-" | "+" | "~" => ExprKind::Negate(of),
        // The results of `typeof x`, `void x` and `delete x` do not contain x.
        _ => ExprKind::Block {
            body: vec![stmt(node, StmtKind::Expr(of))],
            value: None,
        },
    };
    l.expr(node, kind)
}

fn assign(l: &mut Lower<'_>, node: Node<'_>) -> ExprId {
    let (Some(left), Some(right)) = (field(node, "left"), field(node, "right")) else {
        return first(l, node);
    };
    let op = field(node, "operator").map(|o| operator(l.text(o)).unwrap_or(Op::Bits));
    let value = named_value(l, right, left);
    callback::assigned_handler(l, left, value);
    let target = expr(l, left);
    let id = l.expr(node, ExprKind::Assign { target, op, value });
    two_keys(l, node, left, value, id)
}

/// Lowers `a[k][n] = v` to a call `[][]=`: with keys from outside, it changes the prototype of all
/// objects.
fn two_keys(
    l: &mut Lower<'_>,
    node: Node<'_>,
    left: Node<'_>,
    value: ExprId,
    assign: ExprId,
) -> ExprId {
    let inner = field(left, "object").filter(|o| {
        [left, *o]
            .iter()
            .all(|n| n.kind() == "subscript_expression")
    });
    let Some(inner) = inner else { return assign };
    let (Some(first), Some(second)) = (field(inner, "index"), field(left, "index")) else {
        return assign;
    };
    if is_constant(first) || is_constant(second) {
        return assign;
    }
    let (first, second) = (expr(l, first), expr(l, second));
    let shown = l.call(left, "[][]=", vec![first, second, value]);
    let body = vec![stmt(node, StmtKind::Expr(shown))];
    l.expr(
        node,
        ExprKind::Block {
            body,
            value: Some(assign),
        },
    )
}
