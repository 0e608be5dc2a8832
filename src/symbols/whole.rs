//! Names that refer to a whole module in a file: `np` after `import numpy as np`, `http` after
//! `import "net/http"`.

use super::imports;
use tree_sitter::Node;

/// Bytes of a module name, at most.
const MOST: usize = 200;

/// A name in the file, and its module as written in the import.
pub(super) type Whole = (String, String);

/// Returns the names that an import gives to whole modules. `import` is the whole statement, or the
/// declaration of a variable with the value `require("…")`.
pub(super) fn names(import: Node<'_>, text: &[u8]) -> Vec<Whole> {
    let mut found = match import.kind() {
        "import_statement" => match source_of(import) {
            Some(source) => script(import, source, text),
            None => each(import, text, &["dotted_name", "aliased_import"], python),
        },
        "variable_declarator" => required(import, text).into_iter().collect(),
        "import_declaration" => go(import, text),
        _ => Vec::new(),
    };
    found.retain(|(name, module)| !name.is_empty() && !module.is_empty() && module.len() <= MOST);
    found
}

/// Returns the module of an import of JavaScript or TypeScript.
fn source_of(import: Node<'_>) -> Option<Node<'_>> {
    let mut cursor = import.walk();
    let clause = import
        .named_children(&mut cursor)
        .find(|child| child.kind() == "import_require_clause");
    clause.unwrap_or(import).child_by_field_name("source")
}

/// Reads the children of some kinds with `read`.
fn each(
    node: Node<'_>,
    text: &[u8],
    kinds: &[&str],
    read: fn(Node<'_>, &[u8]) -> Vec<Whole>,
) -> Vec<Whole> {
    let mut cursor = node.walk();
    let children = node
        .named_children(&mut cursor)
        .filter(|child| kinds.contains(&child.kind()));
    children.flat_map(|child| read(child, text)).collect()
}

/// Reads `a.b` or `a.b as c` of Python.
fn python(part: Node<'_>, text: &[u8]) -> Vec<Whole> {
    let Some(alias) = part.child_by_field_name("alias") else {
        let module = shown(part, text);
        return vec![(
            module.split('.').next().unwrap_or_default().to_owned(),
            module,
        )];
    };
    part.child_by_field_name("name")
        .map(|name| (shown(alias, text), shown(name, text)))
        .into_iter()
        .collect()
}

/// Reads `import a from "m"`, `import * as a from "m"` and `import a = require("m")`.
fn script(import: Node<'_>, source: Node<'_>, text: &[u8]) -> Vec<Whole> {
    let module = shown(source, text);
    let mut names = Vec::new();
    let mut open: Vec<Node<'_>> = vec![import];
    while let Some(node) = open.pop() {
        let mut cursor = node.walk();
        for child in node.named_children(&mut cursor) {
            match child.kind() {
                "identifier" => names.push((shown(child, text), module.clone())),
                "import_clause" | "namespace_import" | "import_require_clause" => open.push(child),
                _ => {}
            }
        }
    }
    names
}

/// Reads `const a = require("m")` and `const a = await import("m")`.
fn required(declaration: Node<'_>, text: &[u8]) -> Option<Whole> {
    let name = declaration
        .child_by_field_name("name")
        .filter(|name| name.kind() == "identifier")?;
    let value = declaration
        .child_by_field_name("value")
        .filter(|value| imports::is_require(*value, text))?;
    let call = if value.kind() == "await_expression" {
        value.named_child(0)?
    } else {
        value
    };
    let module = call
        .child_by_field_name("arguments")?
        .named_child(0)
        .filter(|module| module.kind() == "string")?;
    Some((shown(name, text), shown(module, text)))
}

/// Reads an import of Go. That of Java and Kotlin has other children.
fn go(import: Node<'_>, text: &[u8]) -> Vec<Whole> {
    let mut found = each(import, text, &["import_spec"], go_package);
    let mut cursor = import.walk();
    for list in import
        .named_children(&mut cursor)
        .filter(|child| child.kind() == "import_spec_list")
    {
        found.extend(each(list, text, &["import_spec"], go_package));
    }
    found
}

/// Reads a package of Go. Without an alias, its name is uncertain: usually it is the last part of
/// the path, without a version and without the `go` of `go-redis`.
fn go_package(import: Node<'_>, text: &[u8]) -> Vec<Whole> {
    let module = import
        .child_by_field_name("path")
        .map_or(String::new(), |path| shown(path, text));
    if let Some(alias) = import.child_by_field_name("name") {
        return vec![(shown(alias, text), module)];
    }
    let mut parts = module.rsplit('/');
    let mut last = parts.next().unwrap_or_default();
    if is_version(last) {
        last = parts.next().unwrap_or_default();
    }
    // The version of `gopkg.in/yaml.v3`.
    let last = last
        .rsplit_once('.')
        .filter(|(_, version)| is_version(version))
        .map_or(last, |(name, _)| name);
    let bare = last.strip_prefix("go-").unwrap_or(last);
    let bare = bare
        .strip_suffix("-go")
        .or_else(|| bare.strip_suffix(".go"))
        .unwrap_or(bare);
    vec![(bare.to_owned(), module.clone())]
}

/// Returns true if a part of a path is a version of Go's modules, such as `v3`.
fn is_version(part: &str) -> bool {
    part.strip_prefix('v')
        .is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()))
}

/// Returns the text of a node without the quotes around it.
fn shown(node: Node<'_>, text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text.get(node.byte_range()).unwrap_or_default());
    text.trim_matches(['"', '\'', '`']).to_owned()
}
