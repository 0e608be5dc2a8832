//! The modules in imports, as written. Other code decides whether a module is a file of the
//! repository.

use tree_sitter::Node;

/// Bytes of a module name, at most.
const MOST: usize = 200;

/// A module, and the first byte of the names that the import takes from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Module {
    pub(super) name: String,
    pub(super) first: usize,
}

/// Returns the module of an import; `None` if it has no names, has several modules, or the language
/// has no modules. `import` is the whole statement, or the declaration of a variable with the value
/// `require("…")`.
pub(super) fn of(import: Node<'_>, text: &[u8]) -> Option<Module> {
    let (node, first) = match import.kind() {
        // Python.
        "import_from_statement" => {
            let module = import.child_by_field_name("module_name")?;
            (module, module.end_byte())
        }
        // JavaScript and TypeScript. Python's statement of this kind has no source.
        "import_statement" => (import.child_by_field_name("source")?, 0),
        "variable_declarator" => (super::standard::required(import)?, 0),
        // Java and Kotlin. Go's node of this kind has other children.
        "import_declaration" | "import" => {
            let path = path_of(import)?;
            (path, last_child(path)?.start_byte())
        }
        // Rust.
        "use_declaration" => (import.child_by_field_name("argument")?, 0),
        // PHP: `use A\B\C;`, `use A\B\C as D;`.
        "namespace_use_declaration" => {
            let clause = only_clause(import)?;
            let path = clause
                .named_child(0)
                .filter(|path| path.kind() == "qualified_name")?;
            (path, last_child(path)?.start_byte())
        }
        _ => return None,
    };
    let name = String::from_utf8_lossy(text.get(node.byte_range())?);
    let name = name
        .trim_matches(['"', '\'', '`'])
        .trim_start_matches(['\\', ':']);
    // A use tree of Rust is about one crate, unless it begins with a list.
    let is_rust = import.kind() == "use_declaration";
    let end = name
        .find(|c: char| is_rust && !(c.is_alphanumeric() || c == '_'))
        .unwrap_or(name.len());
    let name = &name[..end];
    (!name.is_empty() && name.len() <= MOST).then(|| Module {
        name: name.to_owned(),
        first,
    })
}

/// Returns the path of an import of Java or Kotlin.
fn path_of(import: Node<'_>) -> Option<Node<'_>> {
    let mut cursor = import.walk();
    // `import a.b.*;` has no names.
    if import
        .named_children(&mut cursor)
        .any(|child| child.kind() == "asterisk")
    {
        return None;
    }
    import
        .named_children(&mut cursor)
        .find(|child| {
            matches!(
                child.kind(),
                "scoped_identifier" | "qualified_identifier" | "identifier"
            )
        })
        .filter(|path| path.named_child_count() > 1)
}

/// Returns the clause of a PHP `use` with a single clause. A group has several names below one
/// prefix.
fn only_clause(import: Node<'_>) -> Option<Node<'_>> {
    let mut cursor = import.walk();
    let mut clauses = import
        .named_children(&mut cursor)
        .filter(|child| child.kind() == "namespace_use_clause");
    clauses.next().filter(|_| clauses.next().is_none())
}

fn last_child(node: Node<'_>) -> Option<Node<'_>> {
    let mut cursor = node.walk();
    node.named_children(&mut cursor).last()
}
