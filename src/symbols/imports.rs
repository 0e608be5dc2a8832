//! Imports: aliases, and the scripts that a shell script reads.

use tree_sitter::Node;

/// A name at its definition, and its name in this file.
pub(super) type Renamed<'n> = (Node<'n>, Node<'n>);

/// Returns the two names of a renaming import: `load as read_config`, `readConfig: load`.
pub(super) fn renamed(node: Node<'_>) -> Option<Renamed<'_>> {
    match node.kind() {
        // Python and JavaScript.
        "aliased_import" | "import_specifier" => Some((
            node.child_by_field_name("name")?,
            node.child_by_field_name("alias")?,
        )),
        // Rust.
        "use_as_clause" => Some((
            node.child_by_field_name("path")?,
            node.child_by_field_name("alias")?,
        )),
        // PHP.
        "namespace_use_clause" => {
            let alias = node.child_by_field_name("alias")?;
            Some((
                node.named_child(0).filter(|original| *original != alias)?,
                alias,
            ))
        }
        // C#: `using Config = App.Settings;`.
        "using_directive" => {
            let alias = node.child_by_field_name("name")?;
            let mut cursor = node.walk();
            let original = node
                .named_children(&mut cursor)
                .find(|child| *child != alias)?;
            Some((original, alias))
        }
        // Kotlin.
        "import" => {
            let alias = node
                .named_child(1)
                .filter(|child| child.kind() == "identifier")?;
            Some((node.named_child(0)?, alias))
        }
        _ => None,
    }
}

/// Returns the pairs of names of a renaming CommonJS import:
/// `const { load: readConfig } = require("./config")`,
/// `const readConfig = require("./config").load`.
pub(super) fn required<'n>(node: Node<'n>, text: &[u8]) -> Vec<Renamed<'n>> {
    let pair = node
        .child_by_field_name("name")
        .zip(node.child_by_field_name("value"));
    let Some((name, value)) = pair.filter(|_| node.kind() == "variable_declarator") else {
        return Vec::new();
    };
    if value.kind() == "member_expression" {
        let property = value.child_by_field_name("property");
        let object = value
            .child_by_field_name("object")
            .filter(|object| is_require(*object, text));
        return object
            .and(property)
            .map(|property| (property, name))
            .into_iter()
            .collect();
    }
    if name.kind() != "object_pattern" || !is_require(value, text) {
        return Vec::new();
    }
    let mut cursor = name.walk();
    let pairs = name
        .named_children(&mut cursor)
        .filter(|child| child.kind() == "pair_pattern");
    pairs
        .filter_map(|pair| {
            Some((
                pair.child_by_field_name("key")?,
                pair.child_by_field_name("value")?,
            ))
        })
        .collect()
}

/// Returns true for `require(…)` and `await import(…)`.
pub(super) fn is_require(node: Node<'_>, text: &[u8]) -> bool {
    let call = if node.kind() == "await_expression" {
        node.named_child(0)
    } else {
        Some(node)
    };
    let function = call.and_then(|call| call.child_by_field_name("function"));
    function.is_some_and(|f| matches!(text.get(f.byte_range()), Some(b"require" | b"import")))
}

/// Returns the path of the script that a command of a shell script reads: `source lib.sh`,
/// `. ./lib.sh`.
pub(super) fn sourced<'n>(node: Node<'n>, text: &[u8]) -> Option<Node<'n>> {
    let name = node
        .child_by_field_name("name")
        .filter(|_| node.kind() == "command")?;
    let is_source = matches!(text.get(name.byte_range()), Some(b"source" | b"."));
    node.child_by_field_name("argument").filter(|_| is_source)
}
