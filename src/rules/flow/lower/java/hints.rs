//! Facts about a call in Java and Kotlin that the surrounding text shows: a parser is hardened,
//! only the name of a file is used, a random number becomes a secret. The lowering writes them as
//! calls that the table names.

use super::super::super::shape::{CodeBlock, ExprId, ExprKind, StmtKind};
use super::super::{Lower, stmt};
use super::secret::{self, around};
use tree_sitter::Node;

/// Settings that keep a parser from resolving external entities.
const HARDENING: &[&str] = &[
    "disallow-doctype-decl",
    "external-general-entities",
    "external-parameter-entities",
    "load-external-dtd",
    "FEATURE_SECURE_PROCESSING",
    "feature/secure-processing",
    "SUPPORT_DTD",
    "supportDTD",
    "IS_SUPPORTING_EXTERNAL_ENTITIES",
    "isSupportingExternalEntities",
    "ACCESS_EXTERNAL",
    "accessExternal",
];
/// Methods that parse, and calls that create a parser whose defaults resolve external entities.
const PARSERS: &[(&str, &[&str])] = &[
    (
        "parse",
        &[
            "DocumentBuilderFactory.newInstance()",
            "SAXParserFactory.newInstance()",
            ".createXMLReader()",
        ],
    ),
    (
        "createXMLStreamReader",
        &[
            "XMLInputFactory.newInstance()",
            "XMLInputFactory.newFactory()",
        ],
    ),
    (
        "createXMLEventReader",
        &[
            "XMLInputFactory.newInstance()",
            "XMLInputFactory.newFactory()",
        ],
    ),
    ("transform", &["TransformerFactory.newInstance()"]),
    ("read", &["new SAXReader()"]),
    ("build", &["new SAXBuilder()"]),
];
/// Endings of the names of XML that a caller passes, in lower case.
const INPUTS: &[&str] = &[
    "body", "payload", "request", "xml", "soap", "response", "message", "upload", "input",
    "stream", "reader", "content", "feed", "data", "in", "is",
];
/// Words of methods that make secrets, in lower case.
const SECRETS: &[&str] = &[
    "token",
    "passw",
    "secret",
    "csrf",
    "nonce",
    "rememberme",
    "apikey",
    "api_key",
    "salt",
    "signature",
    "credential",
    "captcha",
    "sessionid",
    "session_id",
    "sessionkey",
    "verificationcode",
    "otp(",
    "new cookie(",
];
/// Classes whose `valueOf` does not convert to an enum.
const NOT_ENUMS: &[&str] = &[
    "String",
    "Integer",
    "Long",
    "Double",
    "Float",
    "Short",
    "Byte",
    "Boolean",
    "Character",
    "BigDecimal",
    "BigInteger",
    "Date",
    "Timestamp",
    "Time",
    "MediaType",
    "MimeType",
    "JsonValue",
    "Value",
    "Struct",
    "Uri",
];

/// Endings of the names of objects that hold stored data.
const HOLDERS: &[&str] = &[
    "store",
    "repo",
    "repository",
    "repositories",
    "service",
    "manager",
    "mgr",
    "dao",
    "cache",
    "registry",
    "provider",
    "client",
    "facade",
    "gateway",
    "finder",
    "storage",
    "api",
    "loader",
    "resolver",
    "template",
    "entitymanager",
    "session",
    "index",
];
/// First words of methods that look up or change stored objects.
const VERBS: &[&str] = &[
    "get",
    "find",
    "load",
    "fetch",
    "lookup",
    "search",
    "query",
    "list",
    "select",
    "retrieve",
    "read",
    "count",
    "save",
    "update",
    "delete",
    "create",
    "insert",
    "add",
    "remove",
    "store",
    "register",
    "authenticate",
    "resolve",
    "exists",
    "merge",
    "persist",
    "send",
    "post",
    "put",
    "exchange",
    "execute",
];

/// Returns true for a call such as `users.findByName(x)`, whose result is not the text of its
/// argument.
pub(in super::super) fn is_lookup(receiver: &str, method: &str) -> bool {
    let last = receiver.rsplit('.').next().unwrap_or_default();
    let lower = last.trim_end_matches("()").to_ascii_lowercase();
    let is_holder = last.starts_with(|c: char| c.is_ascii_lowercase())
        && HOLDERS.iter().any(|h| lower.ends_with(h));
    is_holder && VERBS.iter().any(|v| has_first_word(method, v))
}

fn has_first_word(name: &str, word: &str) -> bool {
    name.strip_prefix(word)
        .is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_lowercase()))
}

/// Lowers such a call: it is evaluated with its arguments, and its value is the same call without
/// them. Data of the receiver passes and data of the arguments does not.
pub(in super::super) fn looked_up(
    l: &mut Lower<'_>,
    node: Node<'_>,
    call: ExprId,
    callee: ExprId,
) -> ExprId {
    let body = vec![stmt(node, StmtKind::Expr(call))];
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

/// Returns the call that represents the effect of a method on its receiver: it hardens a parser, or
/// secures a cookie.
pub(in super::super) fn change(method: &str, args: &str) -> Option<&'static str> {
    match method {
        "setFeature" | "setProperty" | "setAttribute" | "setParameter" => {
            is_hardening(args).then_some("java.hardened")
        }
        "setEntityResolver" | "setXMLResolver" if !args.contains("null") => Some("java.hardened"),
        // A filter or a list of the classes that data may contain.
        "setObjectInputFilter" if !args.contains("null") => Some("java.hardened"),
        "allowTypes" | "allowTypesByWildcard" | "allowTypesByRegExp" | "allowTypeHierarchy" => {
            Some("java.hardened")
        }
        "addPermission" if !args.contains("AnyTypePermission") => Some("java.hardened"),
        // `setSecure(false)` is reported at its call. A cookie that is deleted needs no attribute.
        "setSecure" => Some("java.secured"),
        "setMaxAge" if args == "(0)" => Some("java.secured"),
        _ => None,
    }
}

/// Returns true if arguments switch external entities off.
pub(in super::super) fn is_hardening(args: &str) -> bool {
    let Some(word) = HARDENING.iter().find(|w| args.contains(**w)) else {
        return false;
    };
    let turns_on = matches!(
        *word,
        "disallow-doctype-decl" | "FEATURE_SECURE_PROCESSING" | "feature/secure-processing"
    );
    let is_off = args.contains("false") || args.contains("FALSE");
    let is_on = args.contains("true") || args.contains("TRUE");
    if turns_on { !is_off } else { !is_on }
}

/// Returns true if a method creates a parser with its defaults, and parses a stream or text whose
/// origin is not fixed.
pub(in super::super) fn is_default_parser(
    l: &Lower<'_>,
    node: Node<'_>,
    method: &str,
    args: &str,
) -> bool {
    let Some((_, makers)) = PARSERS.iter().find(|(name, _)| *name == method) else {
        return false;
    };
    let first = args
        .trim_start_matches('(')
        .split(',')
        .next()
        .unwrap_or_default();
    let first = first
        .trim_end_matches([')', ' '])
        .rsplit(['(', ' '])
        .next()
        .unwrap_or_default()
        .to_ascii_lowercase();
    let is_name = first.chars().all(|c| c.is_alphanumeric() || c == '_');
    if !is_name || !INPUTS.iter().any(|w| first.ends_with(w)) || args.contains("new File(") {
        return false;
    }
    let text = around(l, node);
    let is_made = makers.iter().any(|m| text.contains(m));
    let lower = text.to_ascii_lowercase();
    // Words of a hardened parser, or of a file that belongs to the program itself.
    let is_careful = [
        "setfeature",
        "resolver",
        "secur",
        "harden",
        "safe",
        "getresource",
        "xxe",
        "config",
        "menu",
        "theme",
        "manifest",
    ];
    is_made
        && !HARDENING.iter().any(|w| text.contains(w))
        && !is_careful.iter().any(|w| lower.contains(w))
}

/// Adds a call after a statement: `f = java.hardened(f)`.
pub(in super::super) fn changed(
    l: &mut Lower<'_>,
    node: Node<'_>,
    name: &str,
    target: ExprId,
    out: &mut CodeBlock,
) {
    let value = l.call(node, name, vec![target]);
    out.push(l.assign(node, target, value));
}

/// Returns the name of a constructor or function for a path of which only the last name is used,
/// and for a hash of a secret.
pub(in super::super) fn checked_name(
    l: &Lower<'_>,
    node: Node<'_>,
    name: &str,
) -> Option<&'static str> {
    let checked = match name {
        "File" | "java.io.File" => "CheckedFile",
        "Paths.get" => "CheckedPaths.get",
        "Path.of" => "CheckedPath.of",
        "resolve" => "resolveChecked",
        "MessageDigest.getInstance" if secret::is_password(l, node) => {
            return Some("PasswordDigest.getInstance");
        }
        "MessageDigest.getInstance" => {
            return is_secret(l, node).then_some("SecretDigest.getInstance");
        }
        "IvParameterSpec" | "GCMParameterSpec" => {
            return secret::is_zeros(l, node).then_some("ZeroIvParameterSpec");
        }
        _ => return secret::unverified(l, node, name),
    };
    is_name_taken(l, node).then_some(checked)
}

/// Returns the table name of a call that starts a program in a method that names a shell.
pub(in super::super) fn shell_name(
    l: &Lower<'_>,
    node: Node<'_>,
    name: &str,
) -> Option<&'static str> {
    let named = match name {
        "ProcessBuilder" | "java.lang.ProcessBuilder" => "ShellBuilder",
        "command" => "commandShell",
        "exec" => "execShell",
        _ => return None,
    };
    let text = around(l, node);
    let shells = [
        "\"sh\"",
        "\"bash\"",
        "\"/bin/sh\"",
        "\"/bin/bash\"",
        "\"cmd\"",
        "\"cmd.exe\"",
        "\"powershell",
    ];
    shells.iter().any(|s| text.contains(s)).then_some(named)
}

/// Returns true if only the last name of the path is used: `new File(x).getName()`.
fn is_name_taken(l: &Lower<'_>, node: Node<'_>) -> bool {
    let Some(parent) = node.parent() else {
        return false;
    };
    let after = l
        .text(parent)
        .get(node.end_byte().saturating_sub(parent.start_byte())..)
        .unwrap_or_default();
    let after = after.trim_start().trim_start_matches('.');
    [
        "getName()",
        "getFileName()",
        "name",
        "fileName",
        "extension",
        "nameWithoutExtension",
    ]
    .iter()
    .any(|n| {
        after.starts_with(n)
            && !after
                .get(n.len()..)
                .is_some_and(|r| r.starts_with(char::is_alphanumeric))
    }) && matches!(parent.kind(), "method_invocation" | "navigation_expression")
}

/// Returns true if a random number is created in code that creates a secret.
pub(in super::super) fn is_secret(l: &Lower<'_>, node: Node<'_>) -> bool {
    if secret::has_harmless_target(l, node) {
        return false;
    }
    let mut at = node;
    while let Some(parent) = at.parent() {
        match parent.kind() {
            "method_declaration" | "constructor_declaration" | "function_declaration"
                if has_secret(l.text_around(l.text(parent))) =>
            {
                return true;
            }
            "field_declaration" | "property_declaration" if has_secret(l.text(parent)) => {
                return true;
            }
            "class_declaration" | "object_declaration" => {
                return parent
                    .child_by_field_name("name")
                    .is_some_and(|n| has_secret(l.text(n)));
            }
            _ => {}
        }
        at = parent;
    }
    at.kind() == "program" && has_secret(l.text(at))
}

fn has_secret(text: &str) -> bool {
    let lower = text.to_ascii_lowercase().replace("tokeniz", "");
    SECRETS.iter().any(|w| lower.contains(w))
}

/// Returns true for a generator that can be predicted. One with a fixed seed is for a test or a
/// simulation.
pub(in super::super) fn is_weak_random(class: Option<&str>, method: &str, args: &str) -> bool {
    let is_fixed = args.len() > 2
        && args
            .bytes()
            .all(|b| b.is_ascii_digit() || matches!(b, b'(' | b')' | b'L'));
    if is_fixed && method == "new" || args.contains("SecureRandom") {
        return false;
    }
    match (class, method) {
        (Some("Random" | "java.util.Random"), "new")
        | (Some("Math" | "java.lang.Math"), "random") => true,
        (Some("ThreadLocalRandom"), "current") => true,
        (Some("RandomStringUtils"), m) => m.starts_with("random"),
        _ => false,
    }
}

/// Returns true for `x.contains("..")`.
pub(in super::super) fn finds_dots(method: &str, args: &str) -> bool {
    method == "contains" && args.starts_with("(\"") && args.contains("..")
}

/// Returns true for `Color.valueOf(x)`.
pub(in super::super) fn is_enum(class: &str, method: &str) -> bool {
    method == "valueOf"
        && class.starts_with(|c: char| c.is_ascii_uppercase())
        && !NOT_ENUMS.contains(&class)
}
