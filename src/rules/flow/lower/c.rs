//! The shape of C and C++ files.
//!
//! `c/memory.rs` recognises memory errors that the text of one function shows: a pointer that is
//! used after `free`, an index past the end of an array, the size of the wrong object. They become
//! calls of names that start with two underscores; the table has rules for these names.

mod freed;
mod locals;
mod memory;
mod value;

use super::super::shape::{
    Catch, Class, CodeBlock, ExprId, ExprKind, Field, Function, FunctionId, Param, StmtKind,
    SwitchCase, Sym,
};
use super::{Lower, child, children, field, fields, has_token, integer, span, stmt};
use locals::Locals;
use std::collections::HashMap;
use tree_sitter::Node;

/// The state of the lowering of a C file.
struct C<'l, 't> {
    l: &'l mut Lower<'t>,
    /// Numbers that the file defines with `#define`.
    macros: HashMap<String, i64>,
    /// Variables of the function that is being lowered.
    locals: Locals<'t>,
}

/// Lowers a file.
pub(super) fn file(l: &mut Lower<'_>, root: Node<'_>) -> CodeBlock {
    let mut c = C {
        l,
        macros: HashMap::new(),
        locals: Locals::default(),
    };
    c.collect(root);
    c.body(root)
}

impl<'n, 't> C<'_, 't> {
    /// Collects the macros that are numbers.
    fn collect(&mut self, root: Node<'n>) {
        for n in children(root) {
            match n.kind() {
                "preproc_def" => {
                    let (Some(name), Some(value)) = (field(n, "name"), field(n, "value")) else {
                        continue;
                    };
                    let value = integer(self.l.text(value).trim().trim_matches(['(', ')']));
                    if let Some(value) = value {
                        self.macros.insert(self.l.text(name).to_owned(), value);
                    }
                }
                "preproc_if" | "preproc_ifdef" => self.collect(n),
                _ => {}
            }
        }
    }

    fn body(&mut self, node: Node<'n>) -> CodeBlock {
        let mut out = Vec::new();
        self.statements(&children(node), &mut out);
        out
    }

    fn body_of(&mut self, node: Node<'n>, name: &'static str) -> CodeBlock {
        let mut out = Vec::new();
        if let Some(n) = field(node, name) {
            self.statement(n, &mut out);
        }
        out
    }

    fn statements(&mut self, nodes: &[Node<'n>], out: &mut CodeBlock) {
        self.frees(nodes, out);
        for n in nodes {
            self.statement(*n, out);
        }
    }

    fn statement(&mut self, node: Node<'n>, out: &mut CodeBlock) {
        if self.l.enter() {
            self.statement_inside(node, out);
            self.l.leave();
        }
    }

    fn statement_inside(&mut self, node: Node<'n>, out: &mut CodeBlock) {
        let kind = match node.kind() {
            "translation_unit"
            | "ERROR"
            | "compound_statement"
            | "preproc_if"
            | "preproc_ifdef"
            | "preproc_else"
            | "preproc_elif"
            | "linkage_specification"
            | "declaration_list"
            | "labeled_statement"
            | "else_clause"
            | "attributed_statement"
            | "namespace_definition"
            | "template_declaration"
            | "seh_try_statement"
            | "expression_statement"
            | "field_declaration_list" => return out.extend(self.body(node)),
            "declaration" => return self.declaration(node, out),
            "function_definition" => {
                let id = self.function(node);
                StmtKind::Function(id)
            }
            "class_specifier" | "struct_specifier" if field(node, "body").is_some() => {
                self.class(node)
            }
            "return_statement" | "co_return_statement" => {
                let value = children(node).first().copied();
                self.return_of_stack(node, value, out);
                StmtKind::Return(value.map(|n| self.expr(n)))
            }
            "throw_statement" => StmtKind::Throw(children(node).first().map(|n| self.expr(*n))),
            "goto_statement" => StmtKind::Return(None),
            "break_statement" => StmtKind::Break,
            "continue_statement" => StmtKind::Continue,
            "if_statement" => self.branches(node),
            "while_statement" | "do_statement" => {
                let test = field(node, "condition").map(|n| self.expr(n));
                let is_post_test = node.kind() == "do_statement";
                StmtKind::While {
                    test,
                    body: self.body_of(node, "body"),
                    update: Vec::new(),
                    is_post_test,
                }
            }
            "for_statement" => {
                if let Some(n) = field(node, "initializer") {
                    self.statement(n, out);
                }
                self.loop_past_end(node, out);
                let test = field(node, "condition").map(|n| self.expr(n));
                let update = self.body_of(node, "update");
                StmtKind::While {
                    test,
                    body: self.body_of(node, "body"),
                    update,
                    is_post_test: false,
                }
            }
            "for_range_loop" => {
                let (target, iterable) = (self.declarator_of(node), self.expr_of(node, "right"));
                StmtKind::Each {
                    target,
                    key: None,
                    iterable,
                    body: self.body_of(node, "body"),
                }
            }
            "switch_statement" => self.switch(node),
            "try_statement" => self.attempt(node),
            "comment"
            | "preproc_include"
            | "preproc_def"
            | "preproc_function_def"
            | "preproc_call"
            | "type_definition"
            | "using_declaration"
            | "alias_declaration"
            | "access_specifier"
            | "preproc_directive" => return,
            "identifier" | "type_identifier" => return,
            "call_expression" => return self.call_statement(node, out),
            "delete_expression" => return,
            _ => StmtKind::Expr(self.expr(node)),
        };
        out.push(stmt(node, kind));
    }

    /// Lowers a chain of `else if` from its end, so that a long chain is not deep.
    fn branches(&mut self, node: Node<'n>) -> StmtKind {
        let mut chain = vec![node];
        let mut last = field(node, "alternative");
        while let Some(next) = last.and_then(|a| child(a, "if_statement")) {
            chain.push(next);
            last = field(next, "alternative");
        }
        let mut otherwise = CodeBlock::new();
        if let Some(last) = last {
            self.statement(last, &mut otherwise);
        }
        let mut kind = StmtKind::Block(Vec::new());
        for n in chain.into_iter().rev() {
            let (test, then) = (self.expr_of(n, "condition"), self.body_of(n, "consequence"));
            kind = StmtKind::If {
                test,
                then,
                otherwise: std::mem::take(&mut otherwise),
            };
            if n.id() != node.id() {
                otherwise.push(stmt(n, std::mem::replace(&mut kind, StmtKind::Break)));
            }
        }
        kind
    }

    fn call_statement(&mut self, node: Node<'n>, out: &mut CodeBlock) {
        let name = field(node, "function")
            .map(|f| self.l.text(f))
            .unwrap_or_default();
        let name = name.trim_start_matches("std::");
        if matches!(
            name,
            "setuid" | "seteuid" | "setgid" | "setegid" | "setreuid" | "setresuid" | "setregid"
        ) {
            let id = self.l.call(node, "__privilege_drop_unchecked", Vec::new());
            out.push(stmt(node, StmtKind::Expr(id)));
        }
        let id = self.expr(node);
        out.push(stmt(node, StmtKind::Expr(id)));
        if matches!(
            name,
            "exit" | "_exit" | "abort" | "_Exit" | "longjmp" | "quick_exit" | "errx" | "err"
        ) {
            out.push(stmt(node, StmtKind::Throw(None)));
        }
    }

    /// Returns the name inside a declarator, without pointers, arrays and parentheses.
    fn declared<'a>(&self, node: Node<'a>) -> Option<Node<'a>> {
        let mut at = node;
        loop {
            match at.kind() {
                "identifier"
                | "field_identifier"
                | "qualified_identifier"
                | "operator_name"
                | "destructor_name"
                | "type_identifier" => return Some(at),
                _ => at = field(at, "declarator").or_else(|| children(at).first().copied())?,
            }
        }
    }

    fn declarator_of(&mut self, node: Node<'n>) -> ExprId {
        match field(node, "declarator").and_then(|d| self.declared(d)) {
            Some(n) => self.l.name(n),
            None => self.l.unknown(node, Vec::new()),
        }
    }

    /// Returns the name of a class or structure. Numbers and characters have no type here: their
    /// data matters for sizes.
    fn type_name(&mut self, node: Node<'n>) -> Option<Sym> {
        let ty = field(node, "type")?;
        if matches!(
            ty.kind(),
            "primitive_type" | "sized_type_specifier" | "placeholder_type_specifier"
        ) {
            return None;
        }
        let text = self.l.text(ty).replace("::", ".");
        let name = text
            .split('<')
            .next()
            .unwrap_or_default()
            .trim_start_matches("struct ")
            .trim()
            .to_owned();
        let is_number =
            name.ends_with("_t") || matches!(name.as_str(), "DWORD" | "UINT" | "BOOL" | "auto");
        (!is_number).then(|| self.l.sym(&name))
    }

    fn declaration(&mut self, node: Node<'n>, out: &mut CodeBlock) {
        let ty = self.type_name(node);
        for d in fields(node, "declarator") {
            if d.kind() == "function_declarator" && !self.is_construction(d) {
                continue;
            }
            let Some(name) = self.declared(d) else {
                continue;
            };
            let (inner, value) = match d.kind() {
                "init_declarator" => (field(d, "declarator").unwrap_or(d), field(d, "value")),
                _ => (d, None),
            };
            let target = self.l.name(name);
            self.variable_length(inner, out);
            let value = match value {
                Some(v) if v.kind() == "argument_list" => Some(self.construction(node, v)),
                Some(v) => {
                    self.idiom_of_assignment(name, v, out);
                    Some(self.expr(v))
                }
                None => None,
            };
            out.push(stmt(d, StmtKind::Declare { target, ty, value }));
        }
        if let Some(ty) = field(node, "type")
            .filter(|t| matches!(t.kind(), "struct_specifier" | "class_specifier"))
        {
            self.statement(ty, out);
        }
    }

    /// `std::ifstream in(path);` parses as a function when `path` looks like a type.
    fn is_construction(&self, node: Node<'n>) -> bool {
        let text = self.l.text(node);
        text.contains('.') || text.contains('"')
    }

    /// Lowers `std::ifstream in(path)` to a call of the type.
    fn construction(&mut self, node: Node<'n>, list: Node<'n>) -> ExprId {
        let path = field(node, "type")
            .map(|t| self.l.text(t).replace("::", "."))
            .unwrap_or_default();
        let args = children(list).into_iter().map(|n| self.expr(n)).collect();
        let path = path.split('<').next().unwrap_or_default().to_owned();
        self.l.call(list, &path, args)
    }

    fn switch(&mut self, node: Node<'n>) -> StmtKind {
        let subject = field(node, "condition").map(|n| self.expr(n));
        let mut cases = Vec::new();
        for part in field(node, "body").map(children).unwrap_or_default() {
            if part.kind() != "case_statement" {
                continue;
            }
            let value = field(part, "value");
            let tests = value.map(|v| self.expr(v)).into_iter().collect();
            let inside: Vec<Node<'n>> = children(part)
                .into_iter()
                .filter(|n| value.is_none_or(|v| v.id() != n.id()))
                .collect();
            let mut body = Vec::new();
            self.statements(&inside, &mut body);
            cases.push(SwitchCase { tests, body });
        }
        StmtKind::Switch {
            subject,
            cases,
            falls_through: true,
        }
    }

    fn attempt(&mut self, node: Node<'n>) -> StmtKind {
        let body = self.body_of(node, "body");
        let mut catches = Vec::new();
        for part in children(node)
            .into_iter()
            .filter(|n| n.kind() == "catch_clause")
        {
            catches.push(Catch {
                name: None,
                ty: None,
                body: self.body_of(part, "body"),
            });
        }
        StmtKind::Try {
            body,
            catches,
            finally: Vec::new(),
        }
    }

    fn class(&mut self, node: Node<'n>) -> StmtKind {
        let name = field(node, "name").map(|n| self.l.sym_of(n));
        let mut class = Class {
            span: span(node),
            name,
            ..Default::default()
        };
        for n in field(node, "body").map(children).unwrap_or_default() {
            match n.kind() {
                "function_definition" => {
                    let id = self.function(n);
                    class.methods.push(id);
                }
                "field_declaration" => {
                    let ty = self.type_name(n);
                    for d in fields(n, "declarator") {
                        let Some(name) = self.declared(d).map(|n| self.l.sym_of(n)) else {
                            continue;
                        };
                        class.fields.push(Field {
                            name,
                            ty,
                            value: None,
                            marks: Vec::new(),
                        });
                    }
                }
                _ => {}
            }
        }
        StmtKind::Class(self.l.module.add_class(class))
    }

    fn function(&mut self, node: Node<'n>) -> FunctionId {
        let mut declarator = field(node, "declarator");
        while let Some(d) = declarator.filter(|d| d.kind() != "function_declarator") {
            declarator = field(d, "declarator");
        }
        let name = declarator
            .and_then(|d| field(d, "declarator"))
            .and_then(|d| self.declared(d));
        let name = name.map(|n| {
            self.l
                .text(n)
                .rsplit("::")
                .next()
                .unwrap_or_default()
                .to_owned()
        });
        let name = name.map(|n| self.l.sym(&n));
        let outside = std::mem::take(&mut self.locals);
        let list = declarator.and_then(|d| field(d, "parameters"));
        self.locals = self.locals_of(node, list);
        let params = list.map(|p| self.parameters(p)).unwrap_or_default();
        let body = self.body_of(node, "body");
        self.locals = outside;
        let ty = self.type_name(node);
        let function = Function {
            span: span(node),
            name,
            params,
            body,
            ty,
            ..Default::default()
        };
        self.l.module.add_function(function)
    }

    fn parameters(&mut self, node: Node<'n>) -> Vec<Param> {
        let mut out = Vec::new();
        for p in children(node) {
            if !matches!(
                p.kind(),
                "parameter_declaration" | "optional_parameter_declaration"
            ) {
                continue;
            }
            let name = field(p, "declarator")
                .and_then(|d| self.declared(d))
                .map(|n| self.l.sym_of(n));
            let ty = self.type_name(p);
            let default = field(p, "default_value").map(|v| self.expr(v));
            let is_variadic = has_token(p, "...");
            out.push(Param {
                span: span(p),
                name,
                ty,
                default,
                is_variadic,
                ..Default::default()
            });
        }
        out
    }

    /// Lowers a C++ lambda.
    fn lambda(&mut self, node: Node<'n>) -> ExprId {
        let list = child(node, "abstract_function_declarator").and_then(|d| field(d, "parameters"));
        let params = list.map(|p| self.parameters(p)).unwrap_or_default();
        let body = self.body_of(node, "body");
        let function = Function {
            span: span(node),
            params,
            body,
            ..Default::default()
        };
        let id = self.l.module.add_function(function);
        self.l.expr(node, ExprKind::Function(id))
    }
}
