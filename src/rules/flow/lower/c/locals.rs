//! The variables of a function, and the sizes of their memory.

use super::super::{child, children, field, fields, integer};
use super::C;
use std::collections::{HashMap, HashSet};
use tree_sitter::Node;

/// Variables of a function.
#[derive(Debug, Default)]
pub(super) struct Locals<'t> {
    /// The text of the function.
    pub(super) text: &'t str,
    /// Arrays and their lengths in elements, if known.
    pub(super) arrays: HashMap<&'t str, Option<i64>>,
    /// Arrays of characters, whose length is their size.
    pub(super) bytes: HashSet<&'t str>,
    /// Arrays whose lifetime ends with the function.
    pub(super) automatic: HashSet<&'t str>,
    pub(super) pointers: HashSet<&'t str>,
    pub(super) params: HashSet<&'t str>,
    /// Pointers to memory of a known size: `char *p = malloc(8)`.
    pub(super) heaps: HashMap<&'t str, Option<i64>>,
    /// Other variables whose lifetime ends with the function.
    pub(super) scalars: HashSet<&'t str>,
}
impl<'n, 't> C<'_, 't> {
    pub(super) fn locals_of(&self, function: Node<'n>, params: Option<Node<'n>>) -> Locals<'t> {
        let mut locals = Locals {
            text: self.l.text(function),
            ..Default::default()
        };
        for p in params.map(children).unwrap_or_default() {
            let Some(d) = field(p, "declarator") else {
                continue;
            };
            let Some(name) = self.declared(d).map(|n| self.l.text(n)) else {
                continue;
            };
            locals.params.insert(name);
            if matches!(d.kind(), "pointer_declarator" | "array_declarator") {
                locals.pointers.insert(name);
            }
        }
        let Some(body) = field(function, "body") else {
            return locals;
        };
        let mut cursor = body.walk();
        let mut is_inside = true;
        while is_inside {
            let node = cursor.node();
            if node.kind() == "declaration" {
                self.declare(node, &mut locals);
            }
            if cursor.goto_first_child() {
                continue;
            }
            while !cursor.goto_next_sibling() {
                if !cursor.goto_parent() || cursor.node().id() == body.id() {
                    is_inside = false;
                    break;
                }
            }
        }
        locals
    }

    fn declare(&self, node: Node<'n>, locals: &mut Locals<'t>) {
        let ty = field(node, "type")
            .map(|t| self.l.text(t))
            .unwrap_or_default();
        let is_byte = matches!(
            ty,
            "char"
                | "unsigned char"
                | "signed char"
                | "uint8_t"
                | "int8_t"
                | "u_char"
                | "BYTE"
                | "u8"
        );
        let is_static =
            child(node, "storage_class_specifier").is_some_and(|s| self.l.text(s) == "static");
        for d in fields(node, "declarator") {
            let inner = if d.kind() == "init_declarator" {
                field(d, "declarator").unwrap_or(d)
            } else {
                d
            };
            let Some(name) = self.declared(inner).map(|n| self.l.text(n)) else {
                continue;
            };
            match inner.kind() {
                "array_declarator" => {
                    let is_nested =
                        field(inner, "declarator").is_some_and(|i| i.kind() != "identifier");
                    let size = field(inner, "size")
                        .and_then(|s| self.number(s))
                        .filter(|_| !is_nested);
                    // The size is unknown if two arrays in different blocks have the same name.
                    let known = locals.arrays.insert(name, size);
                    if known.is_some_and(|k| k != size) {
                        locals.arrays.insert(name, None);
                    }
                    if is_byte && !is_nested {
                        locals.bytes.insert(name);
                    }
                    if !is_static {
                        locals.automatic.insert(name);
                    }
                }
                "pointer_declarator" if self.l.text(inner).contains('[') => {
                    locals.arrays.insert(name, None);
                }
                "pointer_declarator" => {
                    locals.pointers.insert(name);
                    if let Some(size) = self.allocated(d).filter(|_| is_byte) {
                        let known = locals.heaps.insert(name, Some(size));
                        if known.is_some() {
                            locals.heaps.insert(name, None);
                        }
                    }
                }
                "identifier" if !is_static => {
                    locals.scalars.insert(name);
                }
                _ => {}
            }
        }
    }

    /// Returns the number of bytes that `char *p = malloc(8)` allocates.
    fn allocated(&self, declarator: Node<'n>) -> Option<i64> {
        let mut value = field(declarator, "value")?;
        if value.kind() == "cast_expression" {
            value = field(value, "value")?;
        }
        let name = self.l.text(field(value, "function")?);
        let size = children(field(value, "arguments")?)
            .first()
            .copied()
            .filter(|_| name == "malloc")?;
        self.number(size)
    }

    /// Returns the value of a number, a macro, a sum or a product.
    pub(super) fn number(&self, node: Node<'n>) -> Option<i64> {
        match node.kind() {
            "number_literal" => integer(self.l.text(node)),
            "identifier" => self.macros.get(self.l.text(node)).copied(),
            "parenthesized_expression" => children(node).first().and_then(|n| self.number(*n)),
            "sizeof_expression" => {
                let of = field(node, "value").or_else(|| field(node, "type"))?;
                let name = self.l.text(of).trim_matches(['(', ')', ' ']);
                self.locals
                    .bytes
                    .contains(name)
                    .then(|| self.locals.arrays.get(name).copied().flatten())
                    .flatten()
            }
            "binary_expression" => {
                let (a, b) = (
                    self.number(field(node, "left")?)?,
                    self.number(field(node, "right")?)?,
                );
                match self.l.text(field(node, "operator")?) {
                    "+" => a.checked_add(b),
                    "-" => a.checked_sub(b),
                    "*" => a.checked_mul(b),
                    _ => None,
                }
            }
            _ => None,
        }
    }
}
