//! Responses of Java and Kotlin web frameworks: a handler returns a page or a redirect.
//!
//! The table describes calls, and a `return` is not a call. So `return x` of a handler becomes
//! `return java.html-body(x)` or `return java.redirect-view(x)`, and the table has sinks with these
//! names.

use super::super::super::shape::{Annotation, CodeBlock, ExprId, ExprKind, Op, StmtKind, Sym};
use super::super::{Lower, plain};
use tree_sitter::Node;

/// Annotations of methods that write the returned text into the response.
const BODY: &[&str] = &["ResponseBody"];
/// Annotations of classes whose handlers all write the returned text into the response.
const BODY_CLASS: &[&str] = &["RestController", "ResponseBody", "Path"];
/// Annotations of handlers.
const HANDLER: &[&str] = &[
    "GetMapping",
    "PostMapping",
    "PutMapping",
    "DeleteMapping",
    "PatchMapping",
    "RequestMapping",
    "ExceptionHandler",
    "GET",
    "POST",
    "PUT",
    "DELETE",
];
/// Annotations of classes whose handlers return the name of a view.
const VIEWS: &[&str] = &["Controller"];
/// Types of results that are written unchanged.
const TEXT: &[&str] = &["String", "ResponseEntity", "Response", "Mono", "HttpEntity"];

/// Annotations of parameters that the framework does not fill from the request.
const INJECTED: &[&str] = &[
    "AuthenticationPrincipal",
    "CurrentUser",
    "CurrentUsername",
    "CurrentSecurityContext",
    "LoggedInUser",
    "SessionAttribute",
    "RequestAttribute",
    "Value",
    "Autowired",
    "Qualifier",
    "Context",
    "Suspended",
    "Inject",
    "Auth",
];

/// Returns true for a parameter that is not request data, such as the name of the user who is
/// logged in.
pub(in super::super) fn is_injected(l: &Lower<'_>, marks: &[Annotation]) -> bool {
    has(l, marks, INJECTED)
}

/// Rewrites the `return` statements of a method.
pub(in super::super) fn responses(
    l: &mut Lower<'_>,
    body: &mut CodeBlock,
    marks: &[Annotation],
    around: &[Annotation],
    ty: Option<Sym>,
    block: Node<'_>,
) {
    let is_handler = has(l, marks, HANDLER);
    let is_text = ty.is_some_and(|t| TEXT.contains(&l.module.word(t)));
    let is_page = is_handler
        && is_text
        && (has(l, marks, BODY) || has(l, around, BODY_CLASS))
        && is_markup(l, marks, around, block);
    let text = l.text(block);
    let is_redirect = text.contains("\"redirect:");
    let is_string = ty.is_some_and(|t| l.module.word(t) == "String");
    let is_view = is_handler
        && is_string
        && has(l, around, VIEWS)
        && !has(l, marks, BODY)
        && !has(l, around, BODY_CLASS);
    let result = match (is_page, is_view) {
        (true, _) => Returned::Page,
        (false, true) => Returned::View,
        (false, false) => Returned::Other,
    };
    if is_redirect || result != Returned::Other {
        returns(l, body, result);
    }
}

/// The kind of a handler's result, apart from redirects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Returned {
    /// Markup.
    Page,
    /// The name of a view.
    View,
    Other,
}

fn has(l: &Lower<'_>, marks: &[Annotation], names: &[&str]) -> bool {
    marks
        .iter()
        .any(|m| last(l, m.name).is_some_and(|n| names.contains(&n)))
}

fn last<'l>(l: &'l Lower<'_>, id: ExprId) -> Option<&'l str> {
    match l.module.expr(id).kind {
        ExprKind::Name(s) | ExprKind::Member { name: s, .. } => Some(l.module.word(s)),
        _ => None,
    }
}

/// Returns true if the method writes markup: `produces` declares it, or a text of its body has a
/// tag.
fn is_markup(l: &Lower<'_>, marks: &[Annotation], around: &[Annotation], block: Node<'_>) -> bool {
    let mut produced = marks.iter().chain(around).filter_map(|m| produces(l, m));
    match produced.next() {
        Some(is_html) => is_html,
        None => has_tag(l.text(block)),
    }
}

/// Returns true if an annotation names HTML as the type of the response, false if it names another
/// one.
fn produces(l: &Lower<'_>, mark: &Annotation) -> Option<bool> {
    let is_type = last(l, mark.name) == Some("Produces");
    let keyword = l.module.find("produces");
    let arg = mark
        .args
        .iter()
        .find(|a| is_type || (keyword.is_some() && a.keyword == keyword))?;
    let words = match &l.module.expr(arg.value).kind {
        ExprKind::Text(t) => t.to_string(),
        ExprKind::Member { name, .. } | ExprKind::Name(name) => l.module.word(*name).to_owned(),
        _ => return None,
    };
    Some(words.to_ascii_lowercase().contains("html"))
}

/// Returns true if a text in quotes has the start of a tag.
fn has_tag(text: &str) -> bool {
    let mut quoted = false;
    let mut before = ' ';
    for c in text.chars() {
        match c {
            '"' if before != '\\' => quoted = !quoted,
            'a'..='z' | 'A'..='Z' | '/' | '!' if quoted && before == '<' => return true,
            _ => {}
        }
        before = c;
    }
    false
}

fn returns(l: &mut Lower<'_>, body: &mut CodeBlock, result: Returned) {
    for s in body {
        match &mut s.kind {
            StmtKind::Return(Some(value)) => *value = wrapped(l, *value, result),
            StmtKind::If {
                then, otherwise, ..
            } => {
                returns(l, then, result);
                returns(l, otherwise, result);
            }
            StmtKind::While { body, .. } | StmtKind::Each { body, .. } | StmtKind::Block(body) => {
                returns(l, body, result);
            }
            StmtKind::Switch { cases, .. } => cases
                .iter_mut()
                .for_each(|c| returns(l, &mut c.body, result)),
            StmtKind::Try {
                body,
                catches,
                finally,
            } => {
                returns(l, body, result);
                catches
                    .iter_mut()
                    .for_each(|c| returns(l, &mut c.body, result));
                returns(l, finally, result);
            }
            _ => {}
        }
    }
}

fn wrapped(l: &mut Lower<'_>, value: ExprId, result: Returned) -> ExprId {
    if let Some(target) = redirect(l, value) {
        return named(l, value, "redirect-view", target);
    }
    match result {
        Returned::Page => named(l, value, "html-body", value),
        Returned::View if is_joined(l, value) => named(l, value, "view-name", value),
        Returned::View | Returned::Other => value,
    }
}

/// Returns true for a text with a value in it, such as `"user/" + lang`. The text after `forward:`
/// is not the name of a view.
fn is_joined(l: &Lower<'_>, value: ExprId) -> bool {
    let mut at = value;
    loop {
        at = match &l.module.expr(at).kind {
            ExprKind::Binary {
                op: Op::Add, left, ..
            } => *left,
            ExprKind::Pass(of) => *of,
            ExprKind::Concat(parts) => match parts.first() {
                Some(first) => *first,
                None => return false,
            },
            ExprKind::Text(t) => return at != value && !t.starts_with("forward:"),
            _ => return at != value,
        };
    }
}

fn named(l: &mut Lower<'_>, at: ExprId, name: &str, arg: ExprId) -> ExprId {
    let span = l.module.expr(at).span;
    let (java, name) = (l.sym("java"), l.sym(name));
    let of = l.module.add(span, ExprKind::Name(java));
    let callee = l.module.add(span, ExprKind::Member { of, name });
    l.module.add(
        span,
        ExprKind::Call {
            callee,
            args: vec![plain(arg)],
        },
    )
}

/// Returns the address of `"redirect:" + address` or of a template that starts with `redirect:`.
fn redirect(l: &mut Lower<'_>, value: ExprId) -> Option<ExprId> {
    let span = l.module.expr(value).span;
    match l.module.expr(value).kind.clone() {
        ExprKind::Pass(of) => redirect(l, of),
        ExprKind::Text(t) => {
            let rest = t.strip_prefix("redirect:")?;
            Some(l.module.add(span, ExprKind::Text(rest.into())))
        }
        ExprKind::Binary {
            op: Op::Add,
            left,
            right,
        } => {
            let left = redirect(l, left)?;
            Some(l.module.add(
                span,
                ExprKind::Binary {
                    op: Op::Add,
                    left,
                    right,
                },
            ))
        }
        ExprKind::Concat(mut parts) => {
            let first = redirect(l, *parts.first()?)?;
            *parts.first_mut()? = first;
            Some(l.module.add(span, ExprKind::Concat(parts)))
        }
        ExprKind::Conditional { test, yes, no } => {
            let (a, b) = (redirect(l, yes), redirect(l, no));
            if a.is_none() && b.is_none() {
                return None;
            }
            let (yes, no) = (a.unwrap_or(yes), b.unwrap_or(no));
            Some(l.module.add(span, ExprKind::Conditional { test, yes, no }))
        }
        _ => None,
    }
}
