//! Secrets in Java and Kotlin, recognised by the names around a call: hashes of passwords,
//! comparisons of signatures, tokens of a predictable generator, tokens that are read without a
//! check, vectors of zeros.

use super::super::super::shape::{ExprId, ExprKind, StmtKind};
use super::super::words::{has_secret_name, hashes_password, is_word};
use super::super::{Lower, children, field, stmt};
use tree_sitter::Node;

/// Names of random numbers that are not secrets, in lower case.
const HARMLESS: &[&str] = &[
    "jitter", "delay", "backoff", "sleep", "millis", "second", "wait", "timeout", "interval",
    "retry", "percent", "shard", "port", "sample", "color", "offset", "weight",
];
/// Endings of the names of signatures, in lower case.
const SIGNATURES: &[&str] = &[
    "signature",
    "hmac",
    "mac",
    "digest",
    "sig",
    "expected",
    "computed",
];

/// Returns true if the enclosing method hashes a password.
pub(in super::super) fn is_password(l: &Lower<'_>, node: Node<'_>) -> bool {
    hashes_password(around(l, node))
}

/// Returns true if the value is stored under a name that does not suggest a secret, such as
/// `jitterMillis`.
pub(in super::super) fn has_harmless_target(l: &Lower<'_>, node: Node<'_>) -> bool {
    target(l, node).is_some_and(|name| {
        let lower = name.to_ascii_lowercase();
        HARMLESS.iter().any(|w| lower.contains(w))
    })
}

/// Returns true if the variable that is set, or the method, has the name of a secret.
pub(in super::super) fn has_secret_target(l: &Lower<'_>, node: Node<'_>) -> bool {
    if let Some(name) = target(l, node)
        && has_secret_name(name)
    {
        return true;
    }
    let mut at = node;
    while let Some(parent) = at.parent() {
        if matches!(parent.kind(), "method_declaration" | "function_declaration") {
            return field(parent, "name").is_some_and(|n| has_secret_name(l.text(n)));
        }
        at = parent;
    }
    false
}

/// Returns the name of the variable that a statement declares or sets.
fn target<'t>(l: &Lower<'t>, node: Node<'_>) -> Option<&'t str> {
    let mut at = node;
    while let Some(parent) = at.parent() {
        match parent.kind() {
            "variable_declarator" => return field(parent, "name").map(|n| l.text(n)),
            "assignment_expression" | "assignment" => {
                return children(parent).first().map(|n| l.text(*n));
            }
            "property_declaration" => {
                let name = children(parent)
                    .into_iter()
                    .find(|n| n.kind() == "variable_declaration");
                return name.map(|n| l.text(n).split(':').next().unwrap_or_default().trim());
            }
            "block"
            | "function_body"
            | "method_declaration"
            | "function_declaration"
            | "class_body" => return None,
            _ => {}
        }
        at = parent;
    }
    None
}

/// Returns true for a number of `java.util.Random` or `kotlin.random.Random` that becomes a secret:
/// `random.nextLong()`.
pub(in super::super) fn is_random_secret(
    l: &Lower<'_>,
    node: Node<'_>,
    class: Option<&str>,
    method: &str,
    args: &str,
) -> bool {
    let Some(of) = class else { return false };
    let is_next = method.starts_with("next")
        && method
            .get(4..)
            .is_some_and(|m| m.starts_with(char::is_uppercase));
    let is_choice = method == "random" && args == "()" && is_kotlin(l) && !is_class(of);
    if !is_next && !is_choice || !has_secret_target(l, node) {
        return false;
    }
    is_choice
        || matches!(of, "Random" | "Random.Default" | "kotlin.random.Random")
        || is_field_of_random(l, node, of)
}

fn is_kotlin(l: &Lower<'_>) -> bool {
    l.language == super::super::super::FlowLanguage::Kotlin
}

/// Returns true for the name of a class: `Uuid.random()` is not a choice of a list.
fn is_class(name: &str) -> bool {
    let last = name.rsplit('.').next().unwrap_or_default();
    last.starts_with(|c: char| c.is_ascii_uppercase())
        && last.contains(|c: char| c.is_ascii_lowercase())
}

/// Returns true for a variable of the file that holds a `Random`, unless the enclosing method
/// assigns it: that may be another generator, and the creation of a `Random` is reported itself.
fn is_field_of_random(l: &Lower<'_>, node: Node<'_>, name: &str) -> bool {
    let name = name.strip_prefix("this.").unwrap_or(name);
    name.chars().all(is_word)
        && makes_random(whole(l, node), name)
        && !around(l, node).contains(&format!(" {name} = "))
}

/// Returns true if a text assigns a new weak generator to a variable.
fn makes_random(text: &str, name: &str) -> bool {
    let made = [
        "new Random(",
        "new java.util.Random(",
        "Random(",
        "java.util.Random(",
    ];
    made.iter()
        .any(|m| text.contains(&format!(" {name} = {m}")))
}

fn whole<'t>(l: &Lower<'t>, node: Node<'_>) -> &'t str {
    let mut at = node;
    while let Some(parent) = at.parent() {
        at = parent;
    }
    l.text_around(l.text(at))
}

/// Returns the name of a call that reads a token, if the method uses the token's claims without
/// checking a signature.
pub(in super::super) fn unverified(
    l: &Lower<'_>,
    node: Node<'_>,
    written: &str,
) -> Option<&'static str> {
    let name = match written {
        "JWT.decode" => "JWT.decodeUnverified",
        "SignedJWT.parse" => "SignedJWT.parseUnverified",
        "JWTParser.parse" => "JWTParser.parseUnverified",
        _ => return None,
    };
    let text = around(l, node).to_ascii_lowercase();
    let is_checked = ["verif", "keyid", "validat", "getalgorithm"]
        .iter()
        .any(|w| text.contains(w));
    let is_used = ["getclaim", "getsubject", "claimsset", ".claims", ".subject"]
        .iter()
        .any(|w| text.contains(w));
    (is_used && !is_checked).then_some(name)
}

/// Returns true for a vector of zeros: `new IvParameterSpec(iv)` with an array that is never
/// filled.
pub(in super::super) fn is_zeros(l: &Lower<'_>, node: Node<'_>) -> bool {
    let args = field(node, "arguments").or_else(|| {
        children(node)
            .into_iter()
            .find(|n| n.kind() == "value_arguments")
    });
    let last = args.and_then(|a| children(a).last().copied());
    let Some(name) = last.map(|n| l.text(n)).filter(|t| t.chars().all(is_word)) else {
        return false;
    };
    let text = around(l, node);
    let made = [
        format!("byte[] {name} = new byte["),
        format!("val {name} = ByteArray("),
    ];
    let uses = text.split(|c| !is_word(c)).filter(|w| *w == name).count();
    let is_filled =
        text.contains("ByteArray(") && text.split(&made[1]).nth(1).is_some_and(is_computed);
    uses == 2 && made.iter().any(|m| text.contains(m)) && !is_filled
}

/// Returns true if an array is made with a lambda, or is changed in the same statement:
/// `ByteArray(16).also { … }`.
fn is_computed(rest: &str) -> bool {
    rest.split('\n')
        .next()
        .is_some_and(|line| line.contains('{') || line.contains(")."))
}

/// Returns true if two signatures are compared in a time that depends on their bytes.
pub(in super::super) fn is_comparison(
    l: &Lower<'_>,
    node: Node<'_>,
    class: Option<&str>,
    word: &str,
    args: &str,
) -> bool {
    let is_equals = matches!(
        word,
        "equals" | "equalsIgnoreCase" | "contentEquals" | "compareTo"
    );
    let Some(of) = class.filter(|_| is_equals && !args.contains('"')) else {
        return false;
    };
    if of.starts_with('"') || matches!(of, "MessageDigest" | "Objects" | "super") {
        return false;
    }
    let args = args.trim_matches(['(', ')']);
    let of_arrays = of == "Arrays" || of.ends_with(".Arrays");
    let has_name = if of_arrays {
        args.split(',').any(is_signature)
    } else {
        is_signature(of) || is_signature(args)
    };
    if of_arrays && args.split(',').all(is_signature) && args.split(',').any(is_keyed) {
        return true;
    }
    let text = around(l, node).to_ascii_lowercase();
    has_name
        && ["hmac", "mac.getinstance", "mac.dofinal"]
            .iter()
            .any(|w| text.contains(w))
}

/// Returns true for the name of a code that only the owner of a key can compute, such as
/// `expectedMac`.
fn is_keyed(text: &str) -> bool {
    let lower = text.trim().to_ascii_lowercase();
    ["mac", "signature"]
        .iter()
        .any(|word| lower.ends_with(word))
}

fn is_signature(text: &str) -> bool {
    let name = text.split('(').next().unwrap_or_default().trim();
    let lower = name
        .rsplit('.')
        .next()
        .unwrap_or_default()
        .to_ascii_lowercase();
    SIGNATURES.iter().any(|w| lower.ends_with(w))
        || lower.starts_with("hmac")
        || lower.starts_with("expected")
}

/// Returns an expression preceded by a call whose name has an entry in the table.
pub(in super::super) fn noted(
    l: &mut Lower<'_>,
    node: Node<'_>,
    name: &str,
    call: ExprId,
) -> ExprId {
    let note = l.call(node, name, Vec::new());
    let body = vec![stmt(node, StmtKind::Expr(note))];
    l.expr(
        node,
        ExprKind::Block {
            body,
            value: Some(call),
        },
    )
}

/// Returns the text of the enclosing method, or of the enclosing lambda if it has several
/// statements.
pub(super) fn around<'t>(l: &Lower<'t>, node: Node<'_>) -> &'t str {
    let mut at = node;
    while let Some(parent) = at.parent() {
        let is_whole = match parent.kind() {
            "method_declaration" | "constructor_declaration" | "function_declaration" => true,
            "lambda_literal" => parent.named_child_count() > 2,
            _ => false,
        };
        if is_whole {
            return l.text_around(l.text(parent));
        }
        at = parent;
    }
    l.text_around(l.text(at))
}
