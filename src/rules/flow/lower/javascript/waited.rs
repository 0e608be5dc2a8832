//! Results of `await`.
//!
//! `await store.load(req.params.id)` returns the content of a store, not the text of the argument.
//! A function of this file, or a decoder, returns data of its arguments.

use super::super::{Lower, children, field, stmt};
use super::expression::expr;
use super::{ExprId, ExprKind, StmtKind};
use tree_sitter::Node;

/// Functions whose awaited result derives from their arguments.
const DECODERS: [&str; 40] = [
    "json",
    "text",
    "formdata",
    "blob",
    "arraybuffer",
    "buffer",
    "body",
    "parse",
    "parsebody",
    "parseform",
    "parsestring",
    "parsestringpromise",
    "readbody",
    "getbody",
    "all",
    "allsettled",
    "race",
    "any",
    "resolve",
    "decode",
    "unescape",
    "format",
    "marked",
    "markdown",
    "normalize",
    "join",
    "map",
    "transform",
    "convert",
    "stringify",
    "tostring",
    "concat",
    "from",
    "validate",
    "validateasync",
    "parseasync",
    "inflate",
    "gunzip",
    "unzip",
    "decompress",
];
/// Functions whose result is a connection or a similar object.
const MAKERS: [&str; 12] = [
    "connect",
    "createconnection",
    "createpool",
    "createclient",
    "createtransport",
    "launch",
    "newpage",
    "open",
    "getconnection",
    "loadasync",
    "headers",
    "createbrowsercontext",
];

/// Bytes of a file that is searched for the definition of a function, at most.
const SEARCHED: usize = 300_000;

/// Lowers the value of `await`, or the object of `.then`.
pub(super) fn value(l: &mut Lower<'_>, node: Node<'_>) -> ExprId {
    let id = expr(l, node);
    if node.kind() != "call_expression" || !is_foreign(l, node) {
        return id;
    }
    let body = vec![stmt(node, StmtKind::Expr(id))];
    l.expr(node, ExprKind::Block { body, value: None })
}

/// Returns true for a call of a function of another file that is not known to pass data through.
fn is_foreign(l: &Lower<'_>, call: Node<'_>) -> bool {
    let (Some(callee), Some(args)) = (field(call, "function"), field(call, "arguments")) else {
        return false;
    };
    if args.kind() == "template_string"
        || children(args)
            .iter()
            .all(|n| matches!(n.kind(), "string" | "number" | "true" | "false" | "null"))
    {
        return false;
    }
    let (object, name) = match callee.kind() {
        "identifier" => (None, callee),
        "member_expression" => match (field(callee, "object"), field(callee, "property")) {
            (Some(object), Some(name)) => (Some(object), name),
            _ => return false,
        },
        _ => return false,
    };
    if object.is_some_and(|o| matches!(o.kind(), "this" | "super")) {
        return false;
    }
    let word = l.text(name);
    let lower = word.to_ascii_lowercase();
    let is_known = DECODERS.contains(&lower.as_str()) || MAKERS.contains(&lower.as_str());
    !is_known && !is_defined(l, word)
}

/// Returns true if the file seems to define a function with this name.
fn is_defined(l: &Lower<'_>, word: &str) -> bool {
    let text = l.text;
    // Names in bundles are too short to search, and bundles are too long.
    if word.len() < 3 || text.len() > SEARCHED {
        return true;
    }
    memchr::memmem::find_iter(text, word.as_bytes()).any(|at| {
        let before = text.get(at.saturating_sub(10)..at).unwrap_or_default();
        let end = at + word.len();
        let after = text.get(end..text.len().min(end + 14)).unwrap_or_default();
        let is_function = [&b"function "[..], b"function* ", b"async "]
            .iter()
            .any(|b| before.ends_with(b));
        let is_value = [
            &b" = ("[..],
            b" = async",
            b" = function",
            b": async",
            b": function",
            b" = promisify",
            b" = util.",
        ]
        .iter()
        .any(|a| after.starts_with(a));
        is_function || is_value
    })
}
