//! Functions that are called later: promises, events, elements of arrays.

use super::super::super::shape::{Arg, Item, Mark, Op, StmtKind};
use super::super::{Lower, children, field, plain, stmt};
use super::expression::expr;
use super::{ExprId, ExprKind, function};
use tree_sitter::Node;

/// Lowers calls that the shape has a better form for. None: an ordinary call.
pub(super) fn special(l: &mut Lower<'_>, node: Node<'_>, callee: Node<'_>, args: Node<'_>) -> Option<ExprId> {
    let args = children(args);
    let first = args.first().copied();
    if let ("promisify" | "util.promisify" | "promises.promisify", [of]) = (l.text(callee), args.as_slice()) {
        let of = expr(l, *of);
        return Some(l.expr(node, ExprKind::Pass(of)));
    }
    let (object, name) = (field(callee, "object")?, l.text(field(callee, "property")?));
    if name == "bind" && object.kind() != "call_expression" {
        let of = expr(l, object);
        return Some(l.expr(node, ExprKind::Pass(of)));
    }
    let first = first?;
    let is_literal = function::is_literal(first);
    let is_name = matches!(first.kind(), "identifier" | "member_expression");
    match name {
        "then" if is_literal || is_name => Some(then(l, node, object, &args)),
        "subscribe" | "tap" if is_literal => Some(then(l, node, object, &args)),
        "forEach" | "map" | "flatMap" | "filter" | "some" | "every" | "find" | "findIndex" if is_literal => {
            Some(each(l, node, callee, object, name, first))
        }
        _ => None,
    }
}

/// `p.then(f)` is `f(p)`.
fn then(l: &mut Lower<'_>, node: Node<'_>, object: Node<'_>, args: &[Node<'_>]) -> ExprId {
    let of = expr(l, object);
    let mut functions: Vec<ExprId> = args.iter().map(|a| expr(l, *a)).collect();
    let first = if functions.is_empty() { of } else { functions.remove(0) };
    let mut body = Vec::new();
    for other in functions {
        body.push(stmt(node, StmtKind::Expr(other)));
    }
    let call = l.expr(node, ExprKind::Call { callee: first, args: vec![plain(of)] });
    l.expr(node, ExprKind::Block { body, value: Some(call) })
}

/// `xs.map(f)` calls `f` with an element of `xs`.
fn each(l: &mut Lower<'_>, node: Node<'_>, callee: Node<'_>, object: Node<'_>, name: &str, first: Node<'_>) -> ExprId {
    let of = expr(l, object);
    let function = expr(l, first);
    let position = l.unknown(node, Vec::new());
    let element = l.expr(object, ExprKind::Index { of, key: position });
    let call = l.expr(node, ExprKind::Call { callee: function, args: vec![plain(element)] });
    let mut body = Vec::new();
    if l.text(first).starts_with("async") {
        // The call itself, for what the table says about functions that are not waited for.
        let callee = expr(l, callee);
        let plain_call = l.expr(node, ExprKind::Call { callee, args: vec![plain(function)] });
        body.push(stmt(node, StmtKind::Expr(plain_call)));
    }
    let value = match name {
        "map" | "flatMap" => {
            let items = vec![Item { key: None, value: call, is_spread: false }];
            return l.expr(node, ExprKind::Collection(items));
        }
        "filter" => Some(of),
        "find" => Some(element),
        _ => None,
    };
    body.push(stmt(callee, StmtKind::Expr(call)));
    l.expr(node, ExprKind::Block { body, value })
}

/// Events of sockets that carry no data of the peer.
const QUIET: [&str; 14] = [
    "connect", "connection", "disconnect", "disconnecting", "error", "close", "end", "drain", "timeout", "open",
    "ready", "listening", "finish", "lookup",
];

/// Gives the parameters of a handler of events their types and marks.
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
    if !matches!(method.as_str(), "on" | "once" | "handle" | "addListener" | "handleOnce") {
        return;
    }
    let Some(event) = args.first().and_then(|a| constant(l, a.value)) else { return };
    let receiver = last_word(l, of);
    match (method.as_str(), event.as_str(), receiver.as_str()) {
        (_, "entry", _) => set_type(l, args, 0, "archive.Entry"),
        (_, "data", "req" | "request" | "_req") => set_mark(l, args, 0, "request chunk"),
        ("on" | "once" | "handle" | "handleOnce", _, "ipcMain") => {
            for i in 1..4 {
                set_mark(l, args, i, "socket message");
            }
        }
        (_, event, "socket" | "ws" | "sock" | "peer" | "connection" | "conn" | "client")
            if !QUIET.contains(&event) && (event == "message" || receiver == "socket" || event == "data") =>
        {
            set_mark(l, args, 0, "socket message");
        }
        _ => {}
    }
}

fn listener(l: &mut Lower<'_>, args: &[Arg]) {
    if args.first().and_then(|a| constant(l, a.value)).as_deref() == Some("message") {
        set_type(l, args, 0, "dom.MessageEvent");
    }
}

/// `window.onmessage = (event) => …`.
pub(super) fn assigned_handler(l: &mut Lower<'_>, target: Node<'_>, value: ExprId) {
    if matches!(l.text(target), "onmessage" | "window.onmessage" | "self.onmessage" | "globalThis.onmessage") {
        set_type(l, &[plain(value)], 0, "dom.MessageEvent");
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

/// Returns the function literal that is the last argument.
fn function_of(l: &Lower<'_>, args: &[Arg]) -> Option<usize> {
    let found = args.iter().rev().find_map(|a| match l.module.expr(a.value).kind {
        ExprKind::Function(id) => Some(id),
        _ => None,
    });
    found.map(|id| id.0 as usize)
}

fn set_type(l: &mut Lower<'_>, args: &[Arg], position: usize, ty: &str) {
    let ty = l.sym(ty);
    let Some(i) = function_of(l, args) else { return };
    if let Some(p) = l.module.functions.get_mut(i).and_then(|f| f.params.get_mut(position)) {
        p.ty = Some(ty);
    }
}

fn set_mark(l: &mut Lower<'_>, args: &[Arg], position: usize, word: &str) {
    let name = l.sym(word);
    let Some(i) = function_of(l, args) else { return };
    let Some(function) = args.last().map(|a| a.value) else { return };
    let name = l.module.add(l.module.expr(function).span, ExprKind::Name(name));
    if let Some(p) = l.module.functions.get_mut(i).and_then(|f| f.params.get_mut(position)) {
        p.marks.push(Mark { name, args: Vec::new() });
    }
}

/// `event.origin === "https://…"` also says that the event is one that is trusted: the test `checked origin`(event).
pub(super) fn origin_test(l: &mut Lower<'_>, node: Node<'_>, test: ExprId, sides: [Node<'_>; 2], op: Op) -> ExprId {
    let is_origin = |n: &Node<'_>| {
        n.kind() == "member_expression" && field(*n, "property").is_some_and(|p| matches!(l.text(p), "origin" | "source"))
    };
    let Some(object) = sides.iter().find(|n| is_origin(n)).and_then(|n| field(*n, "object")) else { return test };
    let of = expr(l, object);
    let checked = l.named(node, "checked origin");
    let checked = l.expr(node, ExprKind::Call { callee: checked, args: vec![plain(of)] });
    if op == Op::Equal {
        return l.expr(node, ExprKind::Binary { op: Op::And, left: test, right: checked });
    }
    let checked = l.expr(node, ExprKind::Not(checked));
    l.expr(node, ExprKind::Binary { op: Op::Or, left: test, right: checked })
}
