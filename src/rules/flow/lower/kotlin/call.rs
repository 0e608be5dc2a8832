//! Calls of Kotlin.

use super::super::super::shape::{Arg, CodeBlock, CollectionItem, ExprId, ExprKind, Op};
use super::super::java::{hints, secret};
use super::super::{Lower, child, children, field, plain};
use super::{all, arguments, expr, first};
use std::rc::Rc;
use tree_sitter::Node;

/// Functions that make a list or a set of their arguments.
const LISTS: &[&str] = &[
    "listOf",
    "mutableListOf",
    "arrayListOf",
    "arrayOf",
    "setOf",
    "mutableSetOf",
    "hashSetOf",
    "linkedSetOf",
    "sequenceOf",
    "listOfNotNull",
];
/// Functions that make a map of pairs.
const MAPS: &[&str] = &[
    "mapOf",
    "mutableMapOf",
    "hashMapOf",
    "linkedMapOf",
    "sortedMapOf",
];

pub(super) fn call(l: &mut Lower<'_>, node: Node<'_>) -> ExprId {
    let mut at = node;
    let mut lambda = None;
    let parts = children(node);
    // A lambda after the arguments is a call around the call.
    if let ([inner, .., last], Some(block)) = (parts.as_slice(), child(node, "annotated_lambda")) {
        lambda = Some(block);
        if inner.kind() == "call_expression"
            && child(*inner, "value_arguments").is_some()
            && last.kind() == "annotated_lambda"
        {
            at = *inner;
        }
    }
    let Some(callee) = children(at).first().copied() else {
        return first(l, node);
    };
    let mut args = child(at, "value_arguments")
        .map(|a| arguments(l, a))
        .unwrap_or_default();
    if let Some(lambda) = lambda {
        args.push(plain(expr(l, lambda)));
    }
    if callee.kind() == "identifier" {
        let name = l.text(callee);
        if LISTS.contains(&name) {
            let items = args
                .into_iter()
                .map(|a| CollectionItem {
                    key: None,
                    value: a.value,
                    is_spread: a.is_spread,
                })
                .collect();
            return l.expr(node, ExprKind::Collection(items));
        }
        if MAPS.contains(&name) {
            let items = args.into_iter().map(|a| pair(l, a.value)).collect();
            return l.expr(node, ExprKind::Collection(items));
        }
    }
    let written = l.text(callee).trim_start_matches('!');
    if let Some(known) = special(l, node, written, &args) {
        return known;
    }
    if written == "buildString"
        && let Some(lambda) = lambda
    {
        return built(l, node, lambda);
    }
    let last = written.rsplit('.').next().unwrap_or_default();
    if last == "append" && children(callee).first().is_some_and(|c| is_append(l, *c)) {
        return chained(l, node);
    }
    let is_safe = last == "Yaml"
        && child(at, "value_arguments").is_some_and(|a| l.text(a).contains("SafeConstructor"));
    let is_hardened = last == "apply" && lambda.is_some_and(|b| hints::is_hardening(l.text(b)));
    let is_resolve = last == "resolve" && callee.kind() == "navigation_expression";
    let has_dots = child(at, "value_arguments").is_some_and(|a| hints::finds_dots(last, l.text(a)));
    let is_program = matches!(last, "command" | "exec") && callee.kind() == "navigation_expression";
    let searched = if is_resolve || is_program {
        last
    } else {
        written
    };
    let changed =
        hints::checked_name(l, node, searched).or_else(|| hints::shell_name(l, node, searched));
    let callee = match changed {
        Some(name) if is_resolve || is_program => {
            let of = first(l, callee);
            let name = l.sym(name);
            l.expr(callee_node(callee), ExprKind::Member { of, name })
        }
        Some(name) => l.path(callee, name),
        None if is_safe => l.named(callee, "SafeYaml"),
        None if has_dots => {
            let of = first(l, callee);
            let name = l.sym("containsDots");
            l.expr(callee_node(callee), ExprKind::Member { of, name })
        }
        None => expr(l, callee),
    };
    // A class is called like a function. By convention only its name is in upper case.
    let name = match l.module.expr(callee).kind {
        ExprKind::Name(n) | ExprKind::Member { name: n, .. } => l.module.word(n),
        _ => "",
    };
    let is_new = name.starts_with(|c: char| c.is_ascii_uppercase());
    let is_lookup = !args.is_empty()
        && written
            .rsplit_once('.')
            .is_some_and(|(of, name)| hints::is_lookup(of, name));
    let kind = if is_new {
        ExprKind::New {
            class: callee,
            args,
        }
    } else {
        ExprKind::Call { callee, args }
    };
    let call = l.expr(node, kind);
    let compares = written.rsplit_once('.').is_some_and(|(of, name)| {
        let args = child(at, "value_arguments")
            .map(|a| l.text(a))
            .unwrap_or_default();
        secret::is_comparison(l, node, Some(of), name, args)
    });
    if compares {
        return secret::noted(l, node, "java.secret-compare", call);
    }
    if is_lookup {
        return hints::looked_up(l, node, call, callee);
    }
    if is_hardened {
        return l.call(node, "java.hardened", vec![call]);
    }
    call
}

/// Returns the node whose bytes become the span of a callee.
fn callee_node(node: Node<'_>) -> Node<'_> {
    children(node).last().copied().unwrap_or(node)
}

fn text_of(l: &Lower<'_>, id: ExprId) -> Option<Rc<str>> {
    match &l.module.expr(id).kind {
        ExprKind::Text(t) => Some(Rc::clone(t)),
        _ => None,
    }
}

/// Lowers calls whose result is known from their text, as in Java.
fn special(l: &mut Lower<'_>, node: Node<'_>, written: &str, args: &[Arg]) -> Option<ExprId> {
    let written_args = child(node, "value_arguments")
        .map(|a| l.text(a))
        .unwrap_or_default();
    let is_random = match written.rsplit_once('.') {
        Some((class, method))
            if secret::is_random_secret(l, node, Some(class), method, written_args) =>
        {
            return Some(l.call(node, "java.secret-random", Vec::new()));
        }
        Some((class, method)) => hints::is_weak_random(Some(class), method, written_args),
        None => false,
    };
    if written == "Regex"
        && let Some(pattern) = args.first().and_then(|a| text_of(l, a.value))
    {
        return Some(l.expr(node, ExprKind::Regex(pattern)));
    }
    if (is_random || hints::is_weak_random(Some(written), "new", written_args))
        && hints::is_secret(l, node)
    {
        return Some(l.call(node, "java.secret-random", Vec::new()));
    }
    let (class, method) = written.rsplit_once('.')?;
    match args {
        [_, default] if method == "getProperty" && class != "System" => {
            let default = default.value;
            Some(l.expr(node, ExprKind::Pass(default)))
        }
        [one] if hints::is_enum(class, method) => {
            let arg = one.value;
            Some(l.call(node, "java.checked", vec![arg]))
        }
        _ => None,
    }
}

fn is_append(l: &Lower<'_>, node: Node<'_>) -> bool {
    let callee = children(node)
        .first()
        .copied()
        .filter(|c| c.kind() == "navigation_expression");
    node.kind() == "call_expression" && callee.is_some_and(|c| l.text(callee_node(c)) == "append")
}

/// Lowers `b.append(x).append(y)` to one call with all arguments, as in Java.
fn chained(l: &mut Lower<'_>, node: Node<'_>) -> ExprId {
    let mut lists = Vec::new();
    let mut at = node;
    while is_append(l, at) {
        lists.extend(child(at, "value_arguments"));
        match child(at, "navigation_expression").and_then(|c| children(c).first().copied()) {
            Some(of) => at = of,
            None => break,
        }
    }
    let of = expr(l, at);
    let name = l.sym("append");
    let callee = l.expr(node, ExprKind::Member { of, name });
    let args = lists
        .into_iter()
        .rev()
        .flat_map(|a| arguments(l, a))
        .collect();
    l.expr(node, ExprKind::Call { callee, args })
}

/// Lowers `buildString { append(a); append(b) }` to the text of all appended parts.
fn built(l: &mut Lower<'_>, node: Node<'_>, lambda: Node<'_>) -> ExprId {
    let mut parts = Vec::new();
    appended(l, lambda, 0, &mut parts);
    l.expr(node, ExprKind::Concat(parts))
}

fn appended(l: &mut Lower<'_>, node: Node<'_>, level: u32, parts: &mut Vec<ExprId>) {
    if level > 12 {
        return;
    }
    let callee = children(node)
        .first()
        .map(|c| l.text(*c))
        .unwrap_or_default();
    if node.kind() == "call_expression" && matches!(callee, "append" | "appendLine") {
        let args = child(node, "value_arguments")
            .map(|a| arguments(l, a))
            .unwrap_or_default();
        parts.extend(args.into_iter().map(|a| a.value));
        return;
    }
    for n in children(node) {
        appended(l, n, level + 1, parts);
    }
}

/// Returns the map item of `key to value`.
fn pair(l: &Lower<'_>, id: ExprId) -> CollectionItem {
    if let ExprKind::Collection(items) = &l.module.expr(id).kind
        && let [key, value] = items.as_slice()
    {
        return CollectionItem {
            key: Some(key.value),
            value: value.value,
            is_spread: false,
        };
    }
    CollectionItem {
        key: None,
        value: id,
        is_spread: true,
    }
}

/// Lowers `f<T>(x)`, which the grammar reads as two comparisons.
pub(super) fn generic(l: &mut Lower<'_>, node: Node<'_>, op: Op) -> Option<ExprId> {
    let (left, right) = (field(node, "left")?, field(node, "right")?);
    let ty = field(left, "right")?;
    let is_type =
        ty.kind() == "identifier" && l.text(ty).starts_with(|c: char| c.is_ascii_uppercase());
    let callee = field(left, "left")?;
    let is_call = op == Op::Greater
        && left.kind() == "binary_expression"
        && right.kind() == "parenthesized_expression";
    if !is_call || !is_type || !matches!(callee.kind(), "navigation_expression" | "identifier") {
        return None;
    }
    let args = all(l, right).into_iter().map(plain).collect();
    let callee = expr(l, callee);
    Some(l.expr(node, ExprKind::Call { callee, args }))
}

/// Adds the change that a call makes to its receiver.
pub(super) fn change(l: &mut Lower<'_>, node: Node<'_>, out: &mut CodeBlock) {
    let (Some(callee), Some(args)) = (
        child(node, "navigation_expression"),
        child(node, "value_arguments"),
    ) else {
        return;
    };
    let parts = children(callee);
    let [of, name] = parts.as_slice() else { return };
    if of.kind() == "identifier"
        && let Some(call) = hints::change(l.text(*name), l.text(args))
    {
        let target = l.name(*of);
        hints::changed(l, node, call, target, out);
    }
}

/// Returns true for `require(test)` and `check(test)`, with a lambda for the message or without.
pub(super) fn is_requirement(l: &Lower<'_>, node: Node<'_>) -> bool {
    let name = children(node).first().copied();
    let name = name.map(|n| {
        if n.kind() == "call_expression" {
            children(n).first().copied().unwrap_or(n)
        } else {
            n
        }
    });
    name.is_some_and(|n| matches!(l.text(n), "require" | "check" | "assert"))
}

/// Returns the first argument of a call.
pub(super) fn required<'n>(node: Node<'n>) -> Option<Node<'n>> {
    let args = child(node, "value_arguments")
        .or_else(|| child(child(node, "call_expression")?, "value_arguments"))?;
    let first = children(args).into_iter().next()?;
    children(first).last().copied()
}
