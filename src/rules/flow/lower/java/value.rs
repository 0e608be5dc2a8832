//! Expressions of Java.

use super::super::super::shape::{
    Arg, Class, CollectionItem, ExprId, ExprKind, Function, FunctionId, Op, Param, StmtKind,
};
use super::super::{
    Lower, child, children, field, has_token, integer, plain, span, stmt, unescape,
};
use super::declare::{annotation_arguments, function, members, parameters};
use super::{body, choice, hints, secret, type_name};
use tree_sitter::Node;

fn arguments(l: &mut Lower<'_>, node: Node<'_>) -> Vec<Arg> {
    field(node, "arguments")
        .map(|a| all(l, a))
        .unwrap_or_default()
        .into_iter()
        .map(plain)
        .collect()
}

fn argument_text<'t>(l: &Lower<'t>, node: Node<'_>) -> &'t str {
    field(node, "arguments")
        .map(|a| l.text(a))
        .unwrap_or_default()
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
        "identifier" | "type_identifier" => return l.name(node),
        "scoped_identifier" | "scoped_type_identifier" => {
            let path = l.text(node).to_owned();
            return l.path(node, &path);
        }
        "this" => ExprKind::This,
        "super" => ExprKind::Super,
        "string_literal" => return string(l, node),
        "character_literal" => ExprKind::Text(unescape(l.text(node).trim_matches('\'')).into()),
        "decimal_integer_literal"
        | "hex_integer_literal"
        | "octal_integer_literal"
        | "binary_integer_literal" => {
            integer(l.text(node)).map_or(ExprKind::Float(0.0), ExprKind::Int)
        }
        "decimal_floating_point_literal" | "hex_floating_point_literal" => ExprKind::Float(
            l.text(node)
                .trim_end_matches(['f', 'F', 'd', 'D'])
                .parse()
                .unwrap_or_default(),
        ),
        "true" => ExprKind::Bool(true),
        "false" => ExprKind::Bool(false),
        "null_literal" => ExprKind::Null,
        "parenthesized_expression" => ExprKind::Pass(first(l, node)),
        "field_access" => return access(l, node),
        "array_access" => match (field(node, "array"), field(node, "index")) {
            (Some(of), Some(key)) => ExprKind::Index {
                of: expr(l, of),
                key: expr(l, key),
            },
            _ => ExprKind::Unknown(all(l, node)),
        },
        "method_invocation" => return call(l, node),
        "explicit_constructor_invocation" => {
            let is_this = field(node, "constructor").is_some_and(|c| c.kind() == "this");
            let callee = l.expr(
                node,
                if is_this {
                    ExprKind::This
                } else {
                    ExprKind::Super
                },
            );
            ExprKind::Call {
                callee,
                args: arguments(l, node),
            }
        }
        "object_creation_expression" => return creation(l, node),
        "array_creation_expression" => match field(node, "value") {
            Some(value) => return expr(l, value),
            None => ExprKind::Collection(Vec::new()),
        },
        "array_initializer" | "element_value_array_initializer" => {
            ExprKind::Collection(items(l, node))
        }
        "binary_expression" => return binary(l, node),
        "unary_expression" => return unary(l, node),
        "update_expression" => return update(l, node),
        "assignment_expression" => return assign(l, node),
        "ternary_expression" => {
            match (
                field(node, "condition"),
                field(node, "consequence"),
                field(node, "alternative"),
            ) {
                (Some(test), Some(yes), Some(no)) => ExprKind::Conditional {
                    test: expr(l, test),
                    yes: expr(l, yes),
                    no: expr(l, no),
                },
                _ => ExprKind::Unknown(all(l, node)),
            }
        }
        "cast_expression" => match (
            field(node, "value"),
            field(node, "type").and_then(|t| type_name(l, t)),
        ) {
            (Some(of), Some(ty)) => ExprKind::Cast {
                of: expr(l, of),
                ty,
            },
            _ => ExprKind::Pass(first(l, node)),
        },
        "instanceof_expression" => return instance(l, node),
        "lambda_expression" => ExprKind::Function(lambda(l, node)),
        "method_reference" => return reference(l, node),
        "class_literal" => {
            let of = children(node)
                .first()
                .map(|n| l.text(*n).to_owned())
                .unwrap_or_default();
            let of = l.path(node, &of);
            ExprKind::Member {
                of,
                name: l.sym("class"),
            }
        }
        "switch_expression" => return choice(l, node),
        "annotation" | "marker_annotation" => {
            let args = field(node, "arguments")
                .map(|n| annotation_arguments(l, n))
                .unwrap_or_default();
            ExprKind::Unknown(args.into_iter().map(|a| a.value).collect())
        }
        _ => ExprKind::Unknown(all(l, node)),
    };
    l.expr(node, kind)
}

fn access(l: &mut Lower<'_>, node: Node<'_>) -> ExprId {
    let (Some(of), Some(name)) = (field(node, "object"), field(node, "field")) else {
        return first(l, node);
    };
    if name.kind() == "this" {
        return l.expr(node, ExprKind::This);
    }
    let of = expr(l, of);
    let name = l.sym_of(name);
    l.expr(node, ExprKind::Member { of, name })
}

fn call(l: &mut Lower<'_>, node: Node<'_>) -> ExprId {
    let Some(name) = field(node, "name") else {
        return first(l, node);
    };
    let word = l.text(name);
    let class = field(node, "object")
        .map(|o| l.text(o))
        .filter(|t| t.len() < 40);
    let args = arguments(l, node);
    if let Some(known) = special(l, node, class, word, &args) {
        return known;
    }
    if word == "append" && field(node, "object").is_some_and(|o| is_append(l, o)) {
        return appended(l, node);
    }
    let written = class.map(|c| format!("{c}.{word}")).unwrap_or_default();
    if let Some(path) = hints::checked_name(l, node, &written) {
        let callee = l.path(name, path);
        return l.expr(node, ExprKind::Call { callee, args });
    }
    let changed = hints::checked_name(l, node, word).or_else(|| hints::shell_name(l, node, word));
    let mut word = changed.unwrap_or(word);
    if field(node, "arguments").is_some_and(|a| hints::finds_dots(word, l.text(a))) {
        word = "containsDots";
    }
    let callee = match field(node, "object") {
        Some(of) => {
            let of = expr(l, of);
            let name_of = l.sym(word);
            l.expr(name, ExprKind::Member { of, name: name_of })
        }
        None => l.named(name, word),
    };
    let is_lookup = !args.is_empty() && class.is_some_and(|c| hints::is_lookup(c, word));
    let call = l.expr(node, ExprKind::Call { callee, args });
    if secret::is_comparison(l, node, class, word, argument_text(l, node)) {
        return secret::noted(l, node, "java.secret-compare", call);
    }
    if hints::is_default_parser(l, node, word, argument_text(l, node)) {
        return secret::noted(l, node, "java.default-parser", call);
    }
    if is_lookup {
        hints::looked_up(l, node, call, callee)
    } else {
        call
    }
}

fn is_append(l: &Lower<'_>, node: Node<'_>) -> bool {
    node.kind() == "method_invocation" && field(node, "name").is_some_and(|n| l.text(n) == "append")
}

/// Lowers `b.append(x).append(y)` to one call with all arguments, because each call changes `b`.
fn appended(l: &mut Lower<'_>, node: Node<'_>) -> ExprId {
    let mut calls = Vec::new();
    let mut at = node;
    while is_append(l, at) {
        calls.push(at);
        match field(at, "object") {
            Some(of) => at = of,
            None => break,
        }
    }
    let of = expr(l, at);
    let name = l.sym("append");
    let callee = l.expr(node, ExprKind::Member { of, name });
    let args = calls
        .into_iter()
        .rev()
        .flat_map(|c| arguments(l, c))
        .collect();
    l.expr(node, ExprKind::Call { callee, args })
}

/// Lowers calls whose result is known from their text: a property with a default becomes the
/// default, and a value of an enum is one of a few texts.
fn special(
    l: &mut Lower<'_>,
    node: Node<'_>,
    class: Option<&str>,
    method: &str,
    args: &[Arg],
) -> Option<ExprId> {
    match args {
        [_, default] if method == "getProperty" && class != Some("System") => {
            let default = default.value;
            Some(l.expr(node, ExprKind::Pass(default)))
        }
        [one] if class.is_some_and(|c| hints::is_enum(c, method)) => {
            let arg = one.value;
            Some(l.call(node, "java.checked", vec![arg]))
        }
        // The bytes of a constant are constant. An uploaded file has a method of this name too,
        // without arguments.
        args if matches!(method, "getBytes" | "toCharArray")
            && class.is_some_and(|c| !args.is_empty() || is_constant(c)) =>
        {
            let of = field(node, "object").map(|o| expr(l, o))?;
            Some(l.expr(node, ExprKind::Pass(of)))
        }
        _ if hints::is_weak_random(class, method, argument_text(l, node))
            && hints::is_secret(l, node) =>
        {
            Some(l.call(node, "java.secret-random", Vec::new()))
        }
        _ if secret::is_random_secret(l, node, class, method, argument_text(l, node)) => {
            Some(l.call(node, "java.secret-random", Vec::new()))
        }
        _ => None,
    }
}

/// Returns true for a text in quotes and for the name of a constant.
fn is_constant(text: &str) -> bool {
    let name = text.rsplit('.').next().unwrap_or_default();
    text.starts_with('"')
        || name
            .chars()
            .all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')
}

fn creation(l: &mut Lower<'_>, node: Node<'_>) -> ExprId {
    let Some(ty) = field(node, "type") else {
        return first(l, node);
    };
    let name = type_name(l, ty)
        .map(|s| l.module.word(s).to_owned())
        .unwrap_or_default();
    let body = child(node, "class_body");
    // An anonymous class with one method is a function that sees the variables around it.
    if let Some(body) = body
        && let [method] = children(body).as_slice()
        && method.kind() == "method_declaration"
    {
        let id = function(l, *method, &[]);
        return l.expr(node, ExprKind::Function(id));
    }
    let is_safe = name == "Yaml"
        && field(node, "arguments").is_some_and(|a| l.text(a).contains("SafeConstructor"));
    let is_secret = hints::is_weak_random(Some(&name), "new", argument_text(l, node))
        && hints::is_secret(l, node);
    let written = match is_safe {
        true => "SafeYaml",
        false if is_secret => "SecretRandom",
        false => hints::checked_name(l, node, &name)
            .or_else(|| hints::shell_name(l, node, &name))
            .unwrap_or(&name),
    };
    let class = l.path(ty, written);
    let args = arguments(l, node);
    let new = l.expr(node, ExprKind::New { class, args });
    let Some(body) = body else { return new };
    let base = l.sym(&name);
    let mut class = Class {
        span: span(node),
        bases: vec![base],
        ..Default::default()
    };
    members(l, body, &mut class);
    let id = l.module.add_class(class);
    let body = vec![stmt(node, StmtKind::Class(id))];
    l.expr(
        node,
        ExprKind::Block {
            body,
            value: Some(new),
        },
    )
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

fn operator(text: &str) -> Op {
    match text {
        "+" => Op::Add,
        "-" => Op::Sub,
        "*" => Op::Mul,
        "/" => Op::Div,
        "%" => Op::Rem,
        "&&" => Op::And,
        "||" => Op::Or,
        "==" => Op::Equal,
        "!=" => Op::NotEqual,
        "<" => Op::Less,
        "<=" => Op::LessEqual,
        ">" => Op::Greater,
        ">=" => Op::GreaterEqual,
        _ => Op::Bits,
    }
}

fn binary(l: &mut Lower<'_>, node: Node<'_>) -> ExprId {
    let text = field(node, "operator")
        .map(|o| l.text(o))
        .unwrap_or_default();
    let op = operator(text);
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

fn unary(l: &mut Lower<'_>, node: Node<'_>) -> ExprId {
    let Some(operand) = field(node, "operand") else {
        return first(l, node);
    };
    let sign = field(node, "operator")
        .map(|o| l.text(o))
        .unwrap_or_default();
    let of = expr(l, operand);
    let kind = match (sign, &l.module.expr(of).kind) {
        ("!", _) => ExprKind::Not(of),
        ("-", ExprKind::Int(n)) => ExprKind::Int(n.wrapping_neg()),
        ("+", _) => ExprKind::Pass(of),
        _ => ExprKind::Negate(of),
    };
    l.expr(node, kind)
}

fn update(l: &mut Lower<'_>, node: Node<'_>) -> ExprId {
    let target = first(l, node);
    let op = Some(if has_token(node, "--") {
        Op::Sub
    } else {
        Op::Add
    });
    let value = l.expr(node, ExprKind::Int(1));
    l.expr(node, ExprKind::Assign { target, op, value })
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

/// Lowers `x instanceof T`, and `x instanceof T name`, which also binds the name.
fn instance(l: &mut Lower<'_>, node: Node<'_>) -> ExprId {
    let Some(left) = field(node, "left") else {
        return first(l, node);
    };
    let of = expr(l, left);
    let Some(ty) = field(node, "right").and_then(|t| type_name(l, t)) else {
        return l.unknown(node, vec![of]);
    };
    let test = l.expr(node, ExprKind::IsType { of, ty });
    let Some(name) = field(node, "name") else {
        return test;
    };
    let target = l.name(name);
    let body = vec![stmt(
        name,
        StmtKind::Declare {
            target,
            ty: Some(ty),
            value: Some(of),
        },
    )];
    l.expr(
        node,
        ExprKind::Block {
            body,
            value: Some(test),
        },
    )
}

fn lambda(l: &mut Lower<'_>, node: Node<'_>) -> FunctionId {
    let params = match field(node, "parameters") {
        Some(p) if p.kind() == "identifier" => {
            vec![Param {
                span: span(p),
                name: Some(l.sym_of(p)),
                ..Default::default()
            }]
        }
        Some(p) => parameters(l, p),
        None => Vec::new(),
    };
    let body = match field(node, "body") {
        Some(b) if b.kind() == "block" => body(l, b),
        Some(b) => {
            let value = expr(l, b);
            vec![stmt(b, StmtKind::Return(Some(value)))]
        }
        None => Vec::new(),
    };
    l.module.add_function(Function {
        span: span(node),
        params,
        body,
        ..Default::default()
    })
}

/// Lowers `a::b` to the member. A constructor, `A::new`, is the class.
fn reference(l: &mut Lower<'_>, node: Node<'_>) -> ExprId {
    let of = first(l, node);
    let text = l.text(node).to_owned();
    match text.rsplit("::").next() {
        Some(name) if name != "new" => {
            let name = l.sym(name.trim());
            l.expr(node, ExprKind::Member { of, name })
        }
        _ => of,
    }
}

fn string(l: &mut Lower<'_>, node: Node<'_>) -> ExprId {
    let text = l.text(node);
    let text = match text.strip_prefix("\"\"\"") {
        Some(block) => block
            .strip_suffix("\"\"\"")
            .unwrap_or(block)
            .trim_start_matches([' ', '\r'])
            .trim_start_matches('\n'),
        None => text
            .trim_start_matches('"')
            .strip_suffix('"')
            .unwrap_or(text),
    };
    let text = unescape(text);
    l.constant(node, &text)
}
