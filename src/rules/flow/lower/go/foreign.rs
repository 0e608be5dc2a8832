//! Calls of functions of other files that look up or change stored objects.
//!
//! `store.GetAttachment(id)` returns the content of a store, not the text of `id`. Such a call is
//! evaluated with its arguments, and its value is the same call without them: data of the receiver
//! passes, data of the arguments does not. The PHP lowering uses the same words.

use super::super::super::FlowLanguage;
use super::super::super::table::Table;
use super::Go;
use tree_sitter::Node;

/// First words, or words between `_`, of the names of such functions.
const VERBS: [&str; 36] = [
    "get",
    "find",
    "list",
    "load",
    "fetch",
    "create",
    "update",
    "delete",
    "save",
    "search",
    "count",
    "lookup",
    "auth",
    "authenticate",
    "register",
    "insert",
    "publish",
    "clone",
    "match",
    "resolve",
    "store",
    "add",
    "remove",
    "upsert",
    "persist",
    "import",
    "export",
    "login",
    "compute",
    "dispatch",
    "send",
    "retrieve",
    "query",
    "copy",
    "duplicate",
    "restore",
];
/// Endings of the names of receivers that hold stored objects.
const HOLDERS: [&str; 14] = [
    "store",
    "repo",
    "repository",
    "cache",
    "service",
    "svc",
    "client",
    "dao",
    "manager",
    "database",
    "storage",
    "registry",
    "cloner",
    "model",
];

/// Returns true if the name of a function shows that it looks up or changes stored objects.
pub(in super::super) fn is_lookup(
    language: FlowLanguage,
    receiver: Option<&str>,
    name: &str,
) -> bool {
    let has_verb = words(name).iter().any(|w| VERBS.contains(&w.as_str()));
    if !has_verb {
        return false;
    }
    let is_held = receiver.is_some_and(|r| {
        let r = r.to_ascii_lowercase();
        HOLDERS.iter().any(|h| r.ends_with(h))
    });
    is_held || !Table::of(language).ending(name).iter().any(|p| p.call)
}

/// Returns the words of a name in lower case: all of `snake_case`, the first of `camelCase`.
fn words(name: &str) -> Vec<String> {
    if name.contains('_') {
        return name.split('_').map(str::to_ascii_lowercase).collect();
    }
    let end = name
        .char_indices()
        .skip(1)
        .find(|(_, c)| c.is_ascii_uppercase())
        .map_or(name.len(), |(i, _)| i);
    vec![name.get(..end).unwrap_or_default().to_ascii_lowercase()]
}

impl Go<'_, '_> {
    /// Returns true for a call whose result does not derive from its arguments.
    pub(super) fn is_foreign(&self, function: Node<'_>) -> bool {
        if function.kind() != "selector_expression" {
            return false;
        }
        let (Some(of), Some(name)) = (
            function.child_by_field_name("operand"),
            function.child_by_field_name("field"),
        ) else {
            return false;
        };
        let (receiver, name) = (self.l.text(of), self.l.text(name));
        let root = receiver.split(['.', '(', '[']).next().unwrap_or_default();
        if self.local.contains(name) || self.is_standard(root) || name.starts_with("MatchString") {
            return false;
        }
        is_lookup(FlowLanguage::Go, Some(receiver), name)
    }

    /// Returns true for a package of the standard library.
    fn is_standard(&self, name: &str) -> bool {
        let path = self
            .l
            .module
            .imports
            .iter()
            .find(|i| self.l.module.word(i.alias) == name)
            .map(|i| i.path);
        match path {
            Some(path) => !self
                .l
                .module
                .word(path)
                .split('/')
                .next()
                .unwrap_or_default()
                .contains('.'),
            None => Table::of(FlowLanguage::Go)
                .usual
                .iter()
                .any(|u| !u.contains('.') && u.rsplit('/').next() == Some(name)),
        }
    }
}
