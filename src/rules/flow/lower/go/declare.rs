//! Types, methods and functions of Go.

use super::super::super::declared::CHECKED;
use super::super::super::shape::{Class, Field, Function, FunctionId, Param, Sym};
use super::super::{child, children, field, fields, span};
use super::{Go, tag, text};
use tree_sitter::Node;

impl Go<'_, '_> {
    /// Collects the declarations of the file.
    pub(super) fn collect(&mut self, node: Node<'_>) {
        match node.kind() {
            "function_declaration" | "method_declaration" => {
                if let Some(name) = field(node, "name") {
                    let name = self.l.text(name).to_owned();
                    self.local.insert(name);
                }
            }
            "type_declaration" => {
                for spec in children(node) {
                    self.collect_type(spec);
                }
            }
            _ => {}
        }
    }

    /// Collects a struct.
    fn collect_type(&mut self, spec: Node<'_>) {
        let (Some(name), Some(ty)) = (field(spec, "name"), field(spec, "type")) else {
            return;
        };
        let name = self.l.text(name).to_owned();
        let mut names = Vec::new();
        if ty.kind() == "struct_type" {
            let list = child(ty, "field_declaration_list");
            for declaration in list.map(children).unwrap_or_default() {
                names.extend(
                    fields(declaration, "name")
                        .into_iter()
                        .map(|n| self.l.text(n).to_owned()),
                );
            }
        } else if ty.kind() == "interface_type" {
            return;
        }
        self.structs.insert(name, names);
    }

    /// Lowers a declared type: a struct, or another type with a name.
    pub(super) fn class(&mut self, spec: Node<'_>) {
        let (Some(name), Some(ty)) = (field(spec, "name"), field(spec, "type")) else {
            return;
        };
        let mut class = Class {
            span: span(spec),
            name: Some(self.l.sym_of(name)),
            ..Class::default()
        };
        match ty.kind() {
            "struct_type" => {
                let list = child(ty, "field_declaration_list");
                for declaration in list.map(children).unwrap_or_default() {
                    self.struct_field(declaration, &mut class);
                }
            }
            "interface_type" => return,
            _ => class.bases.extend(self.ty(ty)),
        }
        self.classes.push(class);
    }

    /// Adds the fields of one declaration of a struct. A field without a name is a base.
    fn struct_field(&mut self, declaration: Node<'_>, class: &mut Class) {
        let Some(ty) = field(declaration, "type") else {
            return;
        };
        let tag = field(declaration, "tag")
            .map(|tag| self.l.text(tag))
            .unwrap_or_default();
        let ty = if tag::is_checked(tag) {
            Some(self.l.sym(CHECKED))
        } else {
            self.ty(ty)
        };
        let names = fields(declaration, "name");
        if names.is_empty() {
            class.bases.extend(ty);
        }
        for name in names {
            let name = self.l.sym_of(name);
            class.fields.push(Field {
                name,
                ty,
                value: None,
                marks: Vec::new(),
            });
        }
    }

    /// Returns the name of a type without pointers and type arguments. Slices, maps and functions
    /// have none.
    pub(super) fn ty(&mut self, node: Node<'_>) -> Option<Sym> {
        match node.kind() {
            "pointer_type" | "parenthesized_type" => {
                children(node).first().copied().and_then(|n| self.ty(n))
            }
            "generic_type" => field(node, "type").and_then(|n| self.ty(n)),
            "type_identifier" | "qualified_type" | "identifier" | "selector_expression" => {
                Some(self.l.sym_of(node))
            }
            _ => None,
        }
    }

    pub(super) fn method(&mut self, node: Node<'_>) {
        let id = self.function(node);
        let receiver = field(node, "receiver").and_then(|r| children(r).first().copied());
        let ty = receiver
            .and_then(|r| field(r, "type"))
            .and_then(|t| self.ty(t));
        let name = receiver
            .and_then(|r| field(r, "name"))
            .map(|n| self.l.sym_of(n));
        if let Some(f) = self.l.module.functions.get_mut(id.0 as usize) {
            f.receiver = name;
        }
        let ty = ty
            .map(|t| self.l.module.word(t).to_owned())
            .unwrap_or_default();
        self.methods.push((ty, id));
    }

    /// Lowers a function, method or function literal.
    pub(super) fn function(&mut self, node: Node<'_>) -> FunctionId {
        let mut function = Function {
            span: span(node),
            ..Function::default()
        };
        function.name = field(node, "name").map(|n| self.l.sym_of(n));
        if let Some(list) = field(node, "parameters") {
            function.params = self.params(list);
            let is_plain = self.sets_plain_type(node);
            for param in function.params.iter_mut().filter(|_| is_plain) {
                self.without_html(param);
            }
        }
        let outer = std::mem::take(&mut self.results);
        if let Some(result) = field(node, "result") {
            if result.kind() == "parameter_list" {
                let list = self.params(result);
                function.ty = list.first().and_then(|p| p.ty);
                self.results = list.iter().filter_map(|p| p.name).collect();
            } else {
                function.ty = self.ty(result);
            }
        }
        if let Some(body) = field(node, "body") {
            function.body = self.block(body);
        }
        self.results = outer;
        self.l.module.add_function(function)
    }

    /// Returns true if a function sets a content type, and none of its content types is HTML.
    fn sets_plain_type(&self, node: Node<'_>) -> bool {
        let text = self.l.text(node);
        self.has_content_type && text.contains("ontent-") && text::is_plain_response(text)
    }

    /// Gives a response whose content type is not HTML a type that no sink knows.
    fn without_html(&mut self, param: &mut Param) {
        if param
            .ty
            .is_some_and(|t| self.l.module.word(t).ends_with("ResponseWriter"))
        {
            param.ty = Some(self.l.sym("http.PlainResponse"));
        }
    }

    fn params(&mut self, list: Node<'_>) -> Vec<Param> {
        let mut out = Vec::new();
        for declaration in children(list) {
            let ty = field(declaration, "type").and_then(|t| self.ty(t));
            let is_variadic = declaration.kind() == "variadic_parameter_declaration";
            let names = fields(declaration, "name");
            if names.is_empty() {
                out.push(Param {
                    span: span(declaration),
                    ty,
                    is_variadic,
                    ..Param::default()
                });
            }
            for name in names {
                let sym = self.l.sym_of(name);
                out.push(Param {
                    span: span(name),
                    name: Some(sym),
                    ty,
                    is_variadic,
                    ..Param::default()
                });
            }
        }
        out
    }
}
