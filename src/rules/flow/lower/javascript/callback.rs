//! Functions that are called later: promises, events, elements of arrays.

use super::super::super::shape::{Annotation, Arg, CollectionItem, Op};
use super::super::{Lower, children, field, plain};
use super::expression::expr;
use super::notice::mentions;
use super::{ExprId, ExprKind, function, waited};
use tree_sitter::Node;

/// Lowers calls that the shape can express directly. None: an ordinary call.
pub(super) fn special(
    l: &mut Lower<'_>,
    node: Node<'_>,
    callee: Node<'_>,
    args: Node<'_>,
) -> Option<ExprId> {
    let args = children(args);
    let first = args.first().copied();
    if let ("promisify" | "util.promisify" | "promises.promisify", [of]) =
        (l.text(callee), args.as_slice())
    {
        let of = expr(l, *of);
        return Some(l.expr(node, ExprKind::Pass(of)));
    }
    let (object, name) = (field(callee, "object")?, l.text(field(callee, "property")?));
    if name == "bind" && object.kind() != "call_expression" {
        let of = expr(l, object);
        return Some(l.expr(node, ExprKind::Pass(of)));
    }
    // The interpreter runs the function passed to `use` and `all` with an element, as in Kotlin and
    // Ruby.
    if matches!(name, "use" | "all") && args.iter().any(|a| function::is_literal(*a)) {
        let of = expr(l, object);
        let get = l.sym("get");
        let callee = l.expr(callee, ExprKind::Member { of, name: get });
        let args = args.iter().map(|a| plain(expr(l, *a))).collect();
        return Some(l.expr(node, ExprKind::Call { callee, args }));
    }
    let first = first?;
    match name {
        // The function receives each value of a stream.
        "then" | "subscribe" | "tap" if name == "then" || function::is_literal(first) => {
            let of = waited::value(l, object);
            let then = l.sym("then");
            let callee = l.expr(callee, ExprKind::Member { of, name: then });
            let args = args.iter().map(|a| plain(expr(l, *a))).collect();
            Some(l.expr(node, ExprKind::Call { callee, args }))
        }
        "map" | "flatMap" if function::is_literal(first) => Some(map(l, node, object, first)),
        "startsWith" if is_text(l, first, "//") => {
            Some(named_test(l, node, "is other host", object))
        }
        "includes" | "startsWith" | "indexOf" if is_text(l, first, "..") => {
            Some(named_test(l, node, "has dots", object))
        }
        "includes" if l.text(object).contains("__proto__") => {
            Some(named_test(l, node, "is prototype key", first))
        }
        "includes" | "has" if is_origin(l, first) => {
            let (of, value) = (expr(l, callee), expr(l, first));
            let test = l.expr(
                node,
                ExprKind::Call {
                    callee: of,
                    args: vec![plain(value)],
                },
            );
            let checked = named_test(l, node, "checked origin", field(first, "object")?);
            Some(l.expr(
                node,
                ExprKind::Binary {
                    op: Op::And,
                    left: test,
                    right: checked,
                },
            ))
        }
        _ => None,
    }
}

/// Lowers `xs.map(f)` to a list with the result of `f` for an element of `xs`.
fn map(l: &mut Lower<'_>, node: Node<'_>, object: Node<'_>, first: Node<'_>) -> ExprId {
    let (of, function) = (expr(l, object), expr(l, first));
    let position = l.unknown(node, Vec::new());
    let element = l.expr(object, ExprKind::Index { of, key: position });
    let value = l.expr(
        node,
        ExprKind::Call {
            callee: function,
            args: vec![plain(element)],
        },
    );
    l.expr(
        node,
        ExprKind::Collection(vec![CollectionItem {
            key: None,
            value,
            is_spread: false,
        }]),
    )
}

/// Lowers a test to a call whose name is not an identifier, so that a guard of the table can match
/// it.
pub(super) fn named_test(l: &mut Lower<'_>, node: Node<'_>, name: &str, of: Node<'_>) -> ExprId {
    let of = expr(l, of);
    let callee = l.named(node, name);
    l.expr(
        node,
        ExprKind::Call {
            callee,
            args: vec![plain(of)],
        },
    )
}

/// Returns true for a constant text with this start.
fn is_text(l: &Lower<'_>, node: Node<'_>, start: &str) -> bool {
    node.kind() == "string"
        && l.text(node)
            .trim_start_matches(['"', '\''])
            .starts_with(start)
}

fn is_origin(l: &Lower<'_>, node: Node<'_>) -> bool {
    node.kind() == "member_expression"
        && field(node, "property").is_some_and(|p| matches!(l.text(p), "origin" | "source"))
}

/// Events of sockets without data of the peer.
const QUIET: [&str; 14] = [
    "connect",
    "connection",
    "disconnect",
    "disconnecting",
    "error",
    "close",
    "end",
    "drain",
    "timeout",
    "open",
    "ready",
    "listening",
    "finish",
    "lookup",
];

/// Sets the types and marks of the parameters of an event handler.
pub(super) fn note(l: &mut Lower<'_>, callee: ExprId, args: &[Arg]) {
    let ExprKind::Member { of, name } = l.module.expr(callee).kind else {
        if let ExprKind::Name(name) = l.module.expr(callee).kind
            && l.module.word(name) == "addEventListener"
        {
            listener(l, args);
        }
        return;
    };
    let method = l.module.word(name).to_owned();
    if method == "addEventListener" {
        return listener(l, args);
    }
    if !matches!(
        method.as_str(),
        "on" | "once" | "handle" | "addListener" | "handleOnce"
    ) {
        return;
    }
    let Some(event) = args.first().and_then(|a| constant(l, a.value)) else {
        return;
    };
    let receiver = last_word(l, of);
    match (method.as_str(), event.as_str(), receiver.as_str()) {
        (_, "entry", _) if !mentions(l, "yauzl") => set_type(l, args, 0, "archive.Entry"),
        (_, "data", "req" | "request" | "_req") => set_mark(l, args, 0, "request chunk"),
        ("on" | "once" | "handle" | "handleOnce", _, "ipcMain") => {
            for i in 1..4 {
                set_mark(l, args, i, "socket message");
            }
        }
        (_, event, "socket" | "ws" | "sock" | "peer" | "connection" | "conn" | "client")
            if !QUIET.contains(&event)
                && (event == "message" || receiver == "socket" || event == "data")
                && is_server(l) =>
        {
            set_mark(l, args, 0, "socket message");
        }
        _ => {}
    }
}

/// Returns true if the file seems to belong to a socket server. The messages that a page receives
/// are from its server.
fn is_server(l: &Lower<'_>) -> bool {
    [
        "'connection'",
        "\"connection\"",
        "WebSocketServer",
        "WebSocket.Server",
        "ws.Server",
        "io.of(",
        "net.createServer",
    ]
    .iter()
    .any(|w| mentions(l, w))
        || mentions(l, "require('ws')")
        || !mentions(l, "socket")
}

fn listener(l: &mut Lower<'_>, args: &[Arg]) {
    if args.first().and_then(|a| constant(l, a.value)).as_deref() == Some("message") {
        set_mark(l, args, 0, "window message");
    }
}

/// Lowers `window.onmessage = (event) => …`.
pub(super) fn assigned_handler(l: &mut Lower<'_>, target: Node<'_>, value: ExprId) {
    if matches!(
        l.text(target),
        "onmessage" | "window.onmessage" | "self.onmessage" | "globalThis.onmessage"
    ) {
        set_mark(l, &[plain(value)], 0, "window message");
    }
}

/// Marks the arguments of the resolvers of GraphQL: `{ Query: { user: (parent, args) => … } }`.
pub(super) fn resolvers(l: &mut Lower<'_>, key: ExprId, value: ExprId) {
    if !constant(l, key)
        .is_some_and(|k| matches!(k.as_str(), "Query" | "Mutation" | "Subscription"))
    {
        return;
    }
    let ExprKind::Collection(items) = &l.module.expr(value).kind else {
        return;
    };
    for function in items.iter().map(|i| i.value).collect::<Vec<_>>() {
        set_mark(l, &[plain(function)], 1, "graphql arguments");
    }
}

fn constant(l: &Lower<'_>, id: ExprId) -> Option<String> {
    match &l.module.expr(id).kind {
        ExprKind::Text(text) => Some(text.to_string()),
        _ => None,
    }
}

fn last_word(l: &Lower<'_>, id: ExprId) -> String {
    match l.module.expr(id).kind {
        ExprKind::Name(name) | ExprKind::Member { name, .. } => l.module.word(name).to_owned(),
        _ => String::new(),
    }
}

/// Returns the index of the last function literal among the arguments.
fn function_of(l: &Lower<'_>, args: &[Arg]) -> Option<usize> {
    let found = args
        .iter()
        .rev()
        .find_map(|a| match l.module.expr(a.value).kind {
            ExprKind::Function(id) => Some(id),
            _ => None,
        });
    found.map(|id| id.0 as usize)
}

fn set_type(l: &mut Lower<'_>, args: &[Arg], position: usize, ty: &str) {
    let ty = l.sym(ty);
    let Some(i) = function_of(l, args) else {
        return;
    };
    if let Some(p) = l
        .module
        .functions
        .get_mut(i)
        .and_then(|f| f.params.get_mut(position))
    {
        p.ty = Some(ty);
    }
}

fn set_mark(l: &mut Lower<'_>, args: &[Arg], position: usize, word: &str) {
    let name = l.sym(word);
    let Some(i) = function_of(l, args) else {
        return;
    };
    let Some(function) = args.last().map(|a| a.value) else {
        return;
    };
    let name = l
        .module
        .add(l.module.expr(function).span, ExprKind::Name(name));
    if let Some(p) = l
        .module
        .functions
        .get_mut(i)
        .and_then(|f| f.params.get_mut(position))
    {
        p.marks.push(Annotation {
            name,
            args: Vec::new(),
        });
    }
}

/// Lowers `event.origin === "https://…"` to the test `checked origin`(event), because it also makes
/// the event trusted.
pub(super) fn origin_test(
    l: &mut Lower<'_>,
    node: Node<'_>,
    test: ExprId,
    sides: [Node<'_>; 2],
    op: Op,
) -> ExprId {
    let Some(object) = sides
        .iter()
        .find(|n| is_origin(l, **n))
        .and_then(|n| field(*n, "object"))
    else {
        return test;
    };
    let checked = named_test(l, node, "checked origin", object);
    if op == Op::Equal {
        return l.expr(
            node,
            ExprKind::Binary {
                op: Op::And,
                left: test,
                right: checked,
            },
        );
    }
    let checked = l.expr(node, ExprKind::Not(checked));
    l.expr(
        node,
        ExprKind::Binary {
            op: Op::Or,
            left: test,
            right: checked,
        },
    )
}
