//! Calls and objects of PHP.

use super::super::super::FlowLanguage;
use super::super::super::shape::{Arg, CollectionItem, ExprId, ExprKind, StmtKind};
use super::super::go::foreign::is_lookup;
use super::super::{Lower, children, field, plain, stmt};
use super::{ONE_CLASS, args, declare, expr, member, part};
use tree_sitter::Node;

/// Returns true for a call of a function of another file that looks up or changes stored objects.
fn is_foreign(l: &Lower<'_>, node: Node<'_>) -> bool {
    let object = field(node, "object").or_else(|| field(node, "scope"));
    let receiver = object.map(|o| l.text(o));
    if receiver.is_some_and(|r| matches!(r, "$this" | "self" | "static" | "parent")) {
        return false;
    }
    let Some(name) = field(node, "name").or_else(|| field(node, "function")) else {
        return false;
    };
    let name = l.text(name);
    // A property holds an object of another class.
    let is_property =
        receiver.is_some_and(|r| r.starts_with("$this->")) && l.module.find(ONE_CLASS).is_some();
    let is_declared = !is_property && l.module.find(&format!(" {name}")).is_some();
    let is_builtin = receiver.is_none()
        && (name.starts_with("array_") || name.starts_with("mb_") || !name.contains('_'));
    !is_declared && !is_builtin && is_lookup(FlowLanguage::Php, receiver, name)
}

pub(super) fn call(l: &mut Lower<'_>, node: Node<'_>) -> ExprId {
    let id = call_inside(l, node);
    let ExprKind::Call { callee, args } = &l.module.expr(id).kind else {
        return id;
    };
    let callee = *callee;
    if args.is_empty() || !is_foreign(l, node) {
        return id;
    }
    let body = vec![stmt(node, StmtKind::Expr(id))];
    let value = l.expr(
        node,
        ExprKind::Call {
            callee,
            args: Vec::new(),
        },
    );
    l.expr(
        node,
        ExprKind::Block {
            body,
            value: Some(value),
        },
    )
}

fn call_inside(l: &mut Lower<'_>, node: Node<'_>) -> ExprId {
    let args = args(l, node);
    let callee = match node.kind() {
        "function_call_expression" => part(l, node, "function"),
        "scoped_call_expression" => member(l, node, "scope"),
        _ => member(l, node, "object"),
    };
    let function = field(node, "function")
        .map(|f| f.kind())
        .unwrap_or_default();
    if matches!(function, "variable_name" | "subscript_expression") {
        // In `$function(…)`, the name of a function is data.
        let check = l.call(node, "call_user_func", vec![callee]);
        let body = vec![stmt(node, StmtKind::Expr(check))];
        let value = l.expr(node, ExprKind::Call { callee, args });
        return l.expr(
            node,
            ExprKind::Block {
                body,
                value: Some(value),
            },
        );
    }
    if let ExprKind::Name(name) = l.module.expr(callee).kind {
        let name = l.module.word(name).to_ascii_lowercase();
        if matches!(name.as_str(), "sprintf" | "printf")
            && let Some(parts) = formatted(l, node, &args)
        {
            let text = l.expr(node, ExprKind::Concat(parts));
            return if name == "printf" {
                l.call(node, "echo", vec![text])
            } else {
                text
            };
        }
        if name == "compact" {
            return compact(l, node, &args);
        }
    }
    if let Some(values) = validated(l, node, callee, &args) {
        return values;
    }
    l.expr(node, ExprKind::Call { callee, args })
}

/// Rules of Laravel that only harmless texts pass, without their parameters.
const STRICT: [&str; 16] = [
    "integer",
    "numeric",
    "decimal",
    "digits",
    "boolean",
    "accepted",
    "uuid",
    "ulid",
    "date",
    "date_format",
    "in",
    "alpha",
    "alpha_num",
    "ip",
    "ipv4",
    "timezone",
];

/// Lowers `$request->validate(['id' => 'integer'])` to an array with the input of each key. `None`:
/// the call is another one.
fn validated(l: &mut Lower<'_>, node: Node<'_>, callee: ExprId, args: &[Arg]) -> Option<ExprId> {
    let ExprKind::Member { of, name } = l.module.expr(callee).kind else {
        return None;
    };
    if l.module.word(name) != "validate" || node.kind() == "scoped_call_expression" {
        return None;
    }
    let ExprKind::Collection(rules) = &l.module.expr(args.first()?.value).kind else {
        return None;
    };
    let keyed = rules
        .iter()
        .map(|rule| Some((rule.key?, is_strict(l, rule.value))))
        .collect::<Option<Vec<_>>>()?;
    let mut items = Vec::new();
    for (key, is_strict) in keyed {
        let input = l.sym("input");
        let callee = l.expr(node, ExprKind::Member { of, name: input });
        let mut value = l.expr(
            node,
            ExprKind::Call {
                callee,
                args: vec![plain(key)],
            },
        );
        if is_strict {
            value = l.call(node, "validated value", vec![value]);
        }
        items.push(CollectionItem {
            key: Some(key),
            value,
            is_spread: false,
        });
    }
    (!items.is_empty()).then(|| l.expr(node, ExprKind::Collection(items)))
}

/// Returns true if one of the rules of a value is strict: `required|in:name,date`,
/// `['required', 'integer']`.
fn is_strict(l: &Lower<'_>, rules: ExprId) -> bool {
    match &l.module.expr(rules).kind {
        ExprKind::Text(text) => text
            .split('|')
            .any(|rule| STRICT.contains(&rule.split(':').next().unwrap_or_default())),
        ExprKind::Collection(items) => items.iter().any(|item| is_strict(l, item.value)),
        _ => false,
    }
}

/// Lowers `compact('a', 'b')` to `['a' => $a, 'b' => $b]`.
fn compact(l: &mut Lower<'_>, node: Node<'_>, args: &[Arg]) -> ExprId {
    let mut items = Vec::new();
    for arg in args {
        let ExprKind::Text(name) = l.module.expr(arg.value).kind.clone() else {
            continue;
        };
        let value = l.named(node, &format!("${name}"));
        items.push(CollectionItem {
            key: Some(arg.value),
            value,
            is_spread: false,
        });
    }
    l.expr(node, ExprKind::Collection(items))
}

/// Returns the parts of `sprintf('…%s', $x)`. None: the format is not constant or has an
/// unsupported form.
fn formatted(l: &mut Lower<'_>, node: Node<'_>, args: &[Arg]) -> Option<Vec<ExprId>> {
    let (format, values) = args.split_first()?;
    if values.iter().any(|a| a.is_spread) {
        return None;
    }
    let ExprKind::Text(format) = l.module.expr(format.value).kind.clone() else {
        return None;
    };
    let mut out = Vec::new();
    let mut next = values.iter();
    let mut rest = format.as_ref();
    while let Some((before, after)) = rest.split_once('%') {
        if !before.is_empty() {
            out.push(l.constant(node, before));
        }
        let end = after.find(|c: char| c.is_ascii_alphabetic() || c == '%')?;
        let verb = after.get(end..)?.chars().next()?;
        let flags = after.get(..end)?;
        rest = after.get(end + 1..)?;
        if verb == '%' {
            out.push(l.constant(node, "%"));
            continue;
        }
        let value = match flags.split_once('$') {
            Some((number, _)) => {
                values
                    .get(number.parse::<usize>().ok()?.checked_sub(1)?)?
                    .value
            }
            None => next.next()?.value,
        };
        out.push(match verb {
            's' => value,
            _ => {
                let ty = l.sym("int");
                l.expr(node, ExprKind::Cast { of: value, ty })
            }
        });
    }
    if !rest.is_empty() || out.is_empty() {
        out.push(l.constant(node, rest));
    }
    Some(out)
}

pub(super) fn created(l: &mut Lower<'_>, node: Node<'_>) -> ExprId {
    let args = args(l, node);
    let first = children(node).into_iter().find(|n| n.kind() != "arguments");
    let class = match first {
        Some(n) if n.kind() == "anonymous_class" => {
            let id = declare::class(l, n);
            let body = vec![stmt(n, StmtKind::Class(id))];
            return l.expr(node, ExprKind::Block { body, value: None });
        }
        // `new $class(…)`
        Some(n) if matches!(n.kind(), "variable_name" | "subscript_expression") => {
            let class = expr(l, n);
            let mut all = vec![plain(class)];
            all.extend(args);
            let callee = l.named(n, "instantiate");
            return l.expr(node, ExprKind::Call { callee, args: all });
        }
        Some(n) => expr(l, n),
        None => l.unknown(node, Vec::new()),
    };
    l.expr(node, ExprKind::New { class, args })
}
