//! Parameters and local variables of functions: inside of a function, these names do not refer to
//! definitions of a file.

use std::ops::RangeInclusive;
use tree_sitter::Node;

/// Names of one parameter or pattern, at most.
const MOST: usize = 32;
/// Nodes of one parameter or pattern that are visited, at most.
const MOST_NODES: usize = 200;

/// A parameter or local variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Binding {
    pub name: String,
    /// Lines of the innermost function or closure that contains it.
    pub lines: RangeInclusive<u32>,
}

/// Returns true for the kind of a node that contains parameters and local variables.
pub(super) fn is_scope(kind: &str) -> bool {
    const KINDS: [&str; 20] = [
        "anonymous_function",
        "arrow_function",
        "block",
        "closure_expression",
        "constructor_declaration",
        "do_block",
        "func_literal",
        "function_declaration",
        "function_definition",
        "function_expression",
        "function_item",
        "generator_function",
        "generator_function_declaration",
        "lambda",
        "lambda_expression",
        "lambda_literal",
        "local_function_statement",
        "method",
        "method_declaration",
        "method_definition",
    ];
    KINDS.contains(&kind) || kind == "singleton_method"
}

/// Returns true for the kind of a node that binds names.
pub(super) fn binds(kind: &str) -> bool {
    is_list(kind) || part_of(kind).is_some()
}

/// Returns true for lists of parameters, in which each child binds names.
fn is_list(kind: &str) -> bool {
    const KINDS: [&str; 11] = [
        "block_parameters",
        "closure_parameters",
        "formal_parameters",
        "function_value_parameters",
        "inferred_parameters",
        "lambda_parameters",
        "method_parameters",
        "parameter_list",
        "parameters",
        "bracketed_parameter_list",
        "as_pattern_target",
    ];
    KINDS.contains(&kind)
}

/// Returns the field in which a node binds names; empty for children of the kind
/// `variable_declaration`.
fn part_of(kind: &str) -> Option<&'static str> {
    Some(match kind {
        "variable_declarator" | "var_spec" | "named_expression" | "enhanced_for_statement" => {
            "name"
        }
        "assignment"
        | "short_var_declaration"
        | "range_clause"
        | "for_in_statement"
        | "for_in_clause"
        | "for_statement"
        | "foreach_statement" => "left",
        "let_declaration" | "for_expression" => "pattern",
        "init_declarator" => "declarator",
        "arrow_function" | "catch_clause" => "parameter",
        "lambda_expression" => "parameters",
        "property_declaration" => "",
        _ => return None,
    })
}

/// Returns the leaves that a node binds.
pub(super) fn names(node: Node<'_>) -> Vec<Node<'_>> {
    let mut found = Vec::new();
    let mut cursor = node.walk();
    if is_list(node.kind()) {
        // In Kotlin, default values are siblings of the parameters.
        let is_alone = node.kind() == "function_value_parameters";
        node.named_children(&mut cursor)
            .filter(|child| !is_alone || child.kind() == "parameter")
            .for_each(|child| add(child, &mut found));
    } else if let Some(field) = part_of(node.kind()) {
        match node.child_by_field_name(field) {
            // `self.x = 1` does not bind a name.
            Some(pattern) if is_pattern(pattern) => add(pattern, &mut found),
            Some(_) => {}
            None => node
                .named_children(&mut cursor)
                .filter(|child| child.kind() == "variable_declaration")
                .for_each(|child| add(child, &mut found)),
        }
    }
    found
}

/// Returns true for a name, and for a pattern that unpacks several names.
fn is_pattern(node: Node<'_>) -> bool {
    let kind = node.kind();
    kind.ends_with("identifier")
        || kind.contains("pattern")
        || kind.ends_with("_list")
        || kind.contains("parameter")
        || kind.ends_with("_declarator")
}

/// Adds the names in a parameter or pattern, without types, default values and annotations.
fn add<'n>(node: Node<'n>, found: &mut Vec<Node<'n>>) {
    const FIELDS: [&str; 7] = [
        "type",
        "default_value",
        "right",
        "return_type",
        "default",
        "key",
        "parameters",
    ];
    let mut open = vec![node];
    for _ in 0..MOST_NODES {
        let Some(node) = open.pop().filter(|_| found.len() < MOST) else {
            return;
        };
        if node.named_child_count() == 0 {
            if node.kind().contains("identifier") && !node.kind().starts_with("type") {
                found.push(node);
            }
            continue;
        }
        if is_beside_name(node.kind()) {
            continue;
        }
        // In C#, the default value is a sibling of the name.
        if let Some(name) = node
            .child_by_field_name("name")
            .filter(|_| node.kind() == "parameter")
        {
            open.push(name);
            continue;
        }
        let mut cursor = node.walk();
        if !cursor.goto_first_child() {
            continue;
        }
        loop {
            let (child, field) = (cursor.node(), cursor.field_name());
            // The value of a parameter is its default; the value of a pair is the pattern that it
            // is unpacked into.
            let is_default = field == Some("value") && node.kind() != "pair_pattern";
            if child.is_named()
                && !is_default
                && !field.is_some_and(|field| FIELDS.contains(&field))
            {
                open.push(child);
            }
            if !cursor.goto_next_sibling() {
                break;
            }
        }
    }
}

/// Returns true for types, annotations and values that are siblings of a parameter's name.
fn is_beside_name(kind: &str) -> bool {
    const KINDS: [&str; 8] = [
        "annotation",
        "attribute",
        "attribute_item",
        "attribute_list",
        "decorator",
        "equals_value_clause",
        "modifiers",
        "parameter_modifiers",
    ];
    KINDS.contains(&kind)
        || kind.ends_with("_type")
        || kind.ends_with("expression")
        || kind == "call"
        || kind == "type_annotation"
}
