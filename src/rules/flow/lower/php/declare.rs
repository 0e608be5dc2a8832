//! Declarations of PHP: imports, functions, classes, constants, attributes.

use super::super::super::shape::{
    Annotation, Class, ClassId, CodeBlock, ExprKind, Field, Function, FunctionId, Param, StmtKind,
    Sym,
};
use super::super::{Lower, child, children, field, has_token, span, stmt};
use super::{args, block, class_name, expr, statement};
use tree_sitter::Node;

/// Lowers `use A\B\C as D;`.
pub(super) fn uses(l: &mut Lower<'_>, node: Node<'_>) {
    let prefix = child(node, "namespace_name")
        .map(|n| l.text(n))
        .unwrap_or_default()
        .to_owned();
    let clauses = field(node, "body").map_or_else(|| children(node), children);
    for clause in clauses
        .into_iter()
        .filter(|n| n.kind() == "namespace_use_clause")
    {
        let Some(name) = children(clause)
            .into_iter()
            .find(|n| matches!(n.kind(), "name" | "qualified_name"))
        else {
            continue;
        };
        let name = l.text(name).trim_start_matches('\\');
        let path = if prefix.is_empty() {
            name.to_owned()
        } else {
            format!("{prefix}\\{name}")
        };
        // The tables name classes by their last word.
        let last = path.rsplit('\\').next().unwrap_or(&path).to_owned();
        let alias = field(clause, "alias").map(|a| l.text(a).to_owned());
        if let Some(alias) = alias.filter(|a| *a != last) {
            l.import(&alias, &last);
        }
    }
}

/// Lowers a function, method, closure or arrow function.
pub(super) fn function(l: &mut Lower<'_>, node: Node<'_>) -> FunctionId {
    let mut function = Function {
        span: span(node),
        marks: marks(l, node),
        ..Function::default()
    };
    function.name = field(node, "name").map(|n| l.sym_of(n));
    function.is_constructor =
        field(node, "name").is_some_and(|n| l.text(n).eq_ignore_ascii_case("__construct"));
    function.is_static = child(node, "static_modifier").is_some();
    function.ty = field(node, "return_type").and_then(|t| ty(l, t));
    let mut promoted = CodeBlock::new();
    if let Some(list) = field(node, "parameters") {
        for parameter in children(list) {
            function.params.extend(param(l, parameter));
            if parameter.kind() == "property_promotion_parameter" {
                promote(l, parameter, &mut promoted);
            }
        }
    }
    match field(node, "body") {
        Some(body) if node.kind() == "arrow_function" => {
            let value = expr(l, body);
            function.body = vec![stmt(body, StmtKind::Return(Some(value)))];
        }
        Some(body) => function.body = block(l, body),
        None => {}
    }
    if !promoted.is_empty() {
        promoted.append(&mut function.body);
        function.body = promoted;
    }
    l.module.add_function(function)
}

/// Lowers `__construct(private Db $db)` to a write to the property.
fn promote(l: &mut Lower<'_>, node: Node<'_>, out: &mut CodeBlock) {
    let Some(name) = field(node, "name") else {
        return;
    };
    let value = expr(l, name);
    let this = l.expr(name, ExprKind::This);
    let word = l.text(name).trim_start_matches(['&', '$']);
    let word = l.sym(word);
    let target = l.expr(
        name,
        ExprKind::Member {
            of: this,
            name: word,
        },
    );
    out.push(l.assign(name, target, value));
}

fn param(l: &mut Lower<'_>, node: Node<'_>) -> Option<Param> {
    let name = field(node, "name")?;
    let word = l.text(name).trim_start_matches('&').trim();
    let word = l.sym(word);
    Some(Param {
        span: span(name),
        name: Some(word),
        ty: field(node, "type").and_then(|t| ty(l, t)),
        default: field(node, "default_value").map(|v| expr(l, v)),
        marks: marks(l, node),
        is_variadic: node.kind() == "variadic_parameter",
        ..Param::default()
    })
}

/// Returns the name of a type. Of a union, returns the first name other than `null`.
fn ty(l: &mut Lower<'_>, node: Node<'_>) -> Option<Sym> {
    match node.kind() {
        "named_type" | "primitive_type" | "name" | "qualified_name" => Some(class_name(l, node))
            .filter(|s| {
                let word = l.module.word(*s);
                !word.is_empty() && word != "null"
            }),
        _ => children(node).into_iter().find_map(|n| ty(l, n)),
    }
}

/// Lowers attributes: `#[Route('/x')]`.
fn marks(l: &mut Lower<'_>, node: Node<'_>) -> Vec<Annotation> {
    let mut out = Vec::new();
    let groups = field(node, "attributes").map(children).unwrap_or_default();
    for attribute in groups.into_iter().flat_map(children) {
        let Some(name) = children(attribute).first().copied() else {
            continue;
        };
        let name = expr(l, name);
        let args = field(attribute, "parameters")
            .map(|_| args(l, attribute))
            .unwrap_or_default();
        out.push(Annotation { name, args });
    }
    out
}

/// Lowers a class, interface, trait, enum or anonymous class.
pub(super) fn class(l: &mut Lower<'_>, node: Node<'_>) -> ClassId {
    let mut class = Class {
        span: span(node),
        marks: marks(l, node),
        ..Class::default()
    };
    class.name = field(node, "name").map(|n| l.sym_of(n));
    for part in children(node) {
        if matches!(part.kind(), "base_clause" | "class_interface_clause") {
            class
                .bases
                .extend(children(part).into_iter().map(|n| class_name(l, n)));
        }
    }
    for part in field(node, "body").map(children).unwrap_or_default() {
        match part.kind() {
            "method_declaration" => {
                let id = function(l, part);
                let is_constructor = l
                    .module
                    .functions
                    .get(id.0 as usize)
                    .is_some_and(|f| f.is_constructor);
                if is_constructor {
                    promoted_fields(l, part, &mut class);
                }
                class.methods.push(id);
            }
            "property_declaration" => property(l, part, &mut class),
            "const_declaration" => {
                for element in children(part)
                    .into_iter()
                    .filter(|n| n.kind() == "const_element")
                {
                    if let [name, value] = children(element).as_slice() {
                        let (name, value) = (l.sym_of(*name), expr(l, *value));
                        class.fields.push(Field {
                            name,
                            ty: None,
                            value: Some(value),
                            marks: Vec::new(),
                        });
                    }
                }
            }
            "enum_case" => {
                if let Some(name) = field(part, "name") {
                    let name = l.sym_of(name);
                    let value = field(part, "value").map(|v| expr(l, v));
                    class.fields.push(Field {
                        name,
                        ty: None,
                        value,
                        marks: Vec::new(),
                    });
                }
            }
            "use_declaration" => class
                .bases
                .extend(children(part).into_iter().map(|n| class_name(l, n))),
            _ => statement(l, part, &mut class.body),
        }
    }
    l.module.add_class(class)
}

/// Adds the properties that a constructor declares.
fn promoted_fields(l: &mut Lower<'_>, method: Node<'_>, class: &mut Class) {
    let list = field(method, "parameters")
        .map(children)
        .unwrap_or_default();
    for parameter in list
        .into_iter()
        .filter(|p| p.kind() == "property_promotion_parameter")
    {
        let Some(name) = field(parameter, "name") else {
            continue;
        };
        let word = l.text(name).trim_start_matches(['&', '$']);
        let name = l.sym(word);
        let ty = field(parameter, "type").and_then(|t| ty(l, t));
        class.fields.push(Field {
            name,
            ty,
            value: None,
            marks: Vec::new(),
        });
    }
}

fn property(l: &mut Lower<'_>, node: Node<'_>, class: &mut Class) {
    let ty = field(node, "type").and_then(|t| ty(l, t));
    for element in children(node)
        .into_iter()
        .filter(|n| n.kind() == "property_element")
    {
        let Some(name) = field(element, "name") else {
            continue;
        };
        let word = l.text(name).trim_start_matches('$');
        let name = l.sym(word);
        let value = field(element, "default_value").map(|v| expr(l, v));
        class.fields.push(Field {
            name,
            ty,
            value,
            marks: Vec::new(),
        });
    }
}

/// Lowers `const A = 1;` outside a class.
pub(super) fn constants(l: &mut Lower<'_>, node: Node<'_>, out: &mut CodeBlock) {
    if has_token(node, "const") {
        for element in children(node)
            .into_iter()
            .filter(|n| n.kind() == "const_element")
        {
            if let [name, value] = children(element).as_slice() {
                let (target, value) = (l.name(*name), expr(l, *value));
                out.push(l.assign(element, target, value));
            }
        }
    }
}
