//! The shape of C# files.
//!
//! Attributes become marks, and also calls of `Attribute.Name` in the body of the class, so that
//! structural rules see them. An object initializer becomes assignments to the members of a new
//! variable. `__number` and `__service` are calls around parameters that carry no text of a client.

mod call;
mod idiom;
mod value;

use super::super::shape::{
    Annotation, Arg, Catch, Class, CodeBlock, ExprId, ExprKind, Field, Function, FunctionId, Op,
    Param, StmtKind, SwitchCase, Sym,
};
use super::{Lower, child, children, field, fields, has_token, span, stmt};
use tree_sitter::Node;

/// The state of the lowering of a C# file.
struct CSharp<'l, 't> {
    l: &'l mut Lower<'t>,
    /// Receivers of `?.` around the current expression.
    bindings: Vec<ExprId>,
    /// The number of the next variable that the lowering makes.
    fresh: u32,
    /// The file belongs to a web page, so that labels and literals are HTML.
    is_web: bool,
    /// True if the file uses Entity Framework 6, whose `SqlQuery` takes an interpolated text
    /// literally.
    is_old_entity: bool,
}

/// Lowers a file.
pub(super) fn file(l: &mut Lower<'_>, root: Node<'_>) -> CodeBlock {
    let text = l.text(root);
    let is_web = text.contains("System.Web")
        || text.contains("Page_Load")
        || !text.contains("System.Windows");
    let is_old_entity =
        text.contains("System.Data.Entity") && !text.contains("EntityFrameworkCore");
    let mut c = CSharp {
        l,
        bindings: Vec::new(),
        fresh: 0,
        is_web,
        is_old_entity,
    };
    c.body(root)
}

/// Nodes that only contain other parts of a type, a namespace or a block.
const TRANSPARENT: [&str; 14] = [
    "compilation_unit",
    "namespace_declaration",
    "file_scoped_namespace_declaration",
    "declaration_list",
    "global_statement",
    "ERROR",
    "preproc_if",
    "preproc_else",
    "preproc_elif",
    "unsafe_statement",
    "checked_statement",
    "fixed_statement",
    "labeled_statement",
    "enum_declaration",
];

impl<'n> CSharp<'_, '_> {
    fn body(&mut self, node: Node<'n>) -> CodeBlock {
        let mut out = Vec::new();
        for n in children(node) {
            self.statement(n, &mut out);
        }
        out
    }

    fn body_of(&mut self, node: Node<'n>, name: &'static str) -> CodeBlock {
        let mut out = Vec::new();
        if let Some(n) = field(node, name) {
            self.statement(n, &mut out);
        }
        out
    }

    fn statement(&mut self, node: Node<'n>, out: &mut CodeBlock) {
        if self.l.enter() {
            self.statement_inside(node, out);
            self.l.leave();
        }
    }

    fn statement_inside(&mut self, node: Node<'n>, out: &mut CodeBlock) {
        let kind = match node.kind() {
            kind if TRANSPARENT.contains(&kind) => return out.extend(self.body(node)),
            "block" => return out.extend(self.body(node)),
            "using_directive" => return self.import(node),
            "expression_statement" => return out.extend(self.body(node)),
            "local_declaration_statement"
            | "variable_declaration"
            | "field_declaration"
            | "event_field_declaration" => {
                return self.declaration(node, out);
            }
            "return_statement" | "yield_statement" => {
                StmtKind::Return(children(node).first().map(|n| self.expr(*n)))
            }
            "throw_statement" => StmtKind::Throw(children(node).first().map(|n| self.expr(*n))),
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
            "for_statement" => self.counted(node, out),
            "foreach_statement" => {
                let (target, iterable) = (self.expr_of(node, "left"), self.expr_of(node, "right"));
                StmtKind::Each {
                    target,
                    key: None,
                    iterable,
                    body: self.body_of(node, "body"),
                }
            }
            "switch_statement" => self.switch(node),
            "try_statement" => self.attempt(node),
            "using_statement" | "lock_statement" => {
                for n in children(node) {
                    self.statement(n, out);
                }
                return;
            }
            "method_declaration"
            | "local_function_statement"
            | "constructor_declaration"
            | "operator_declaration"
            | "conversion_operator_declaration"
            | "destructor_declaration" => {
                let id = self.function(node);
                self.attribute_calls(node, out);
                StmtKind::Function(id)
            }
            "class_declaration"
            | "struct_declaration"
            | "record_declaration"
            | "interface_declaration" => {
                self.attribute_calls(node, out);
                self.class(node)
            }
            "property_declaration" | "indexer_declaration" | "event_declaration" => {
                return self.property(node, out);
            }
            "comment"
            | "empty_statement"
            | "delegate_declaration"
            | "identifier"
            | "qualified_name"
            | "modifier"
            | "attribute_list"
            | "goto_statement"
            | "extern_alias_directive" => return,
            _ => StmtKind::Expr(self.expr(node)),
        };
        out.push(stmt(node, kind));
    }

    /// Lowers a chain of `else if` from its end, so that a long chain is not deep.
    fn branches(&mut self, node: Node<'n>) -> StmtKind {
        let mut chain = vec![node];
        let mut last = field(node, "alternative");
        while let Some(next) = last.filter(|a| a.kind() == "if_statement") {
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

    fn import(&mut self, node: Node<'n>) {
        let Some(path) = children(node).last().map(|n| self.l.text(*n).to_owned()) else {
            return;
        };
        match field(node, "name") {
            Some(alias) => {
                let alias = self.l.text(alias).to_owned();
                self.l.import(&alias, &path);
            }
            None => self.l.import("*", &path),
        }
    }

    /// Returns the name of a type without type arguments, `?` and arrays.
    fn type_name(&mut self, node: Node<'n>) -> Option<Sym> {
        let text = self.l.text(node).trim_start_matches("global::");
        let text = [
            "Task<",
            "ValueTask<",
            "ActionResult<",
            "Nullable<",
            "System.Threading.Tasks.Task<",
        ]
        .iter()
        .fold(text, |t, p| {
            t.strip_prefix(p).map_or(t, |r| {
                if *p == "ActionResult<" {
                    "ActionResult"
                } else {
                    r
                }
            })
        });
        let name = text
            .split(['<', '?', '[', '>', ' ', '*'])
            .next()
            .unwrap_or_default();
        (!name.is_empty() && name != "var").then(|| self.l.sym(name))
    }

    fn declaration(&mut self, node: Node<'n>, out: &mut CodeBlock) {
        let inside = if node.kind() == "variable_declaration" {
            Some(node)
        } else {
            child(node, "variable_declaration")
        };
        let Some(declaration) = inside else {
            return out.extend(self.body(node));
        };
        let ty = field(declaration, "type").and_then(|t| self.type_name(t));
        for d in children(declaration)
            .into_iter()
            .filter(|n| n.kind() == "variable_declarator")
        {
            let Some(name) = field(d, "name").or_else(|| child(d, "tuple_pattern")) else {
                continue;
            };
            let value = children(d)
                .into_iter()
                .rfind(|n| n.id() != name.id() && n.kind() != "bracketed_argument_list");
            let lowered = value.map(|v| self.expr(v));
            let target = self.target(name);
            if let Some(value) = value {
                self.idiom_of_assignment(name, value, out);
            }
            out.push(stmt(
                d,
                StmtKind::Declare {
                    target,
                    ty,
                    value: lowered,
                },
            ));
        }
    }

    fn counted(&mut self, node: Node<'n>, out: &mut CodeBlock) -> StmtKind {
        for n in fields(node, "initializer") {
            self.statement(n, out);
        }
        let test = field(node, "condition").map(|n| self.expr(n));
        let mut update = Vec::new();
        for n in fields(node, "update") {
            self.statement(n, &mut update);
        }
        StmtKind::While {
            test,
            body: self.body_of(node, "body"),
            update,
            is_post_test: false,
        }
    }

    fn switch(&mut self, node: Node<'n>) -> StmtKind {
        let subject = field(node, "value").map(|n| self.expr(n));
        let mut cases = Vec::new();
        for section in field(node, "body").map(children).unwrap_or_default() {
            let (mut tests, mut body) = (Vec::new(), Vec::new());
            for n in children(section) {
                match n.kind() {
                    "constant_pattern" => {
                        tests.extend(children(n).into_iter().map(|n| self.expr(n)));
                    }
                    "or_pattern" => self.alternatives(n, &mut tests),
                    kind if kind.ends_with("_pattern") => tests.push(self.l.unknown(n, Vec::new())),
                    "when_clause" => {}
                    kind if kind.ends_with("statement") || kind == "block" => {
                        self.statement(n, &mut body);
                    }
                    _ => tests.push(self.expr(n)),
                }
            }
            cases.push(SwitchCase { tests, body });
        }
        StmtKind::Switch {
            subject,
            cases,
            falls_through: true,
        }
    }

    /// Adds the constants of `"a" or "b"` as tests.
    fn alternatives(&mut self, node: Node<'n>, tests: &mut Vec<ExprId>) {
        for n in children(node) {
            match n.kind() {
                "or_pattern" => self.alternatives(n, tests),
                "constant_pattern" => tests.extend(children(n).into_iter().map(|n| self.expr(n))),
                _ => tests.push(self.l.unknown(n, Vec::new())),
            }
        }
    }

    fn attempt(&mut self, node: Node<'n>) -> StmtKind {
        let body = self.body_of(node, "body");
        let (mut catches, mut finally) = (Vec::new(), Vec::new());
        for part in children(node) {
            match part.kind() {
                "catch_clause" => {
                    let declared = child(part, "catch_declaration");
                    let name = declared
                        .and_then(|d| field(d, "name"))
                        .map(|n| self.l.sym_of(n));
                    let ty = declared
                        .and_then(|d| field(d, "type"))
                        .map(|n| self.l.sym_of(n));
                    catches.push(Catch {
                        name,
                        ty,
                        body: self.body_of(part, "body"),
                    });
                }
                "finally_clause" => finally = self.body(part),
                _ => {}
            }
        }
        StmtKind::Try {
            body,
            catches,
            finally,
        }
    }

    fn class(&mut self, node: Node<'n>) -> StmtKind {
        let name = field(node, "name").map(|n| self.l.sym_of(n));
        let mut class = Class {
            span: span(node),
            name,
            marks: self.marks(node),
            ..Default::default()
        };
        for base in child(node, "base_list").map(children).unwrap_or_default() {
            class.bases.extend(self.type_name(base));
        }
        if let Some(p) = child(node, "parameter_list") {
            for p in self.parameters(p) {
                let Some(name) = p.name else { continue };
                class.fields.push(Field {
                    name,
                    ty: p.ty,
                    value: None,
                    marks: Vec::new(),
                });
            }
        }
        let mut body = Vec::new();
        if let Some(b) = field(node, "body") {
            for n in children(b) {
                self.statement(n, &mut body);
            }
        }
        let is_handler = class.bases.is_empty()
            || class.bases.iter().any(|b| {
                let base = self.l.module.word(*b);
                ["Controller", "Page", "Hub", "Endpoint", "Api"]
                    .iter()
                    .any(|w| base.contains(w))
            });
        let is_handler = is_handler && !self.has_modifier(node, "static");
        for s in body {
            match s.kind {
                StmtKind::Function(id) => {
                    class.methods.push(id);
                    // Only methods of a controller are actions, regardless of their return types.
                    if let Some(f) = self.l.module.functions.get_mut(id.0 as usize)
                        && !is_handler
                    {
                        f.ty = None;
                    }
                }
                StmtKind::Declare { target, ty, value } => {
                    if let ExprKind::Name(name) = self.l.module.expr(target).kind {
                        class.fields.push(Field {
                            name,
                            ty,
                            value,
                            marks: Vec::new(),
                        });
                    }
                    // A value that runs statements is also a statement of the class.
                    if value.is_some_and(|v| {
                        matches!(self.l.module.expr(v).kind, ExprKind::Block { .. })
                    }) {
                        class.body.push(s);
                    }
                }
                _ => class.body.push(s),
            }
        }
        self.missing_antiforgery(node, &mut class.body);
        StmtKind::Class(self.l.module.add_class(class))
    }

    fn property(&mut self, node: Node<'n>, out: &mut CodeBlock) {
        let Some(name) = field(node, "name") else {
            return;
        };
        let name_sym = self.l.sym_of(name);
        let ty = field(node, "type").and_then(|t| self.type_name(t));
        if let Some(value) = field(node, "value") {
            if value.kind() == "arrow_expression_clause" {
                let body = self.arrow(value);
                let id = self.getter(node, name_sym, ty, body);
                out.push(stmt(node, StmtKind::Function(id)));
                return;
            }
            let (target, value) = (self.l.name(name), Some(self.expr(value)));
            out.push(stmt(node, StmtKind::Declare { target, ty, value }));
            return;
        }
        let mut has_body = false;
        for accessor in field(node, "accessors").map(children).unwrap_or_default() {
            let Some(body) = field(accessor, "body") else {
                continue;
            };
            has_body = true;
            let is_get = field(accessor, "name").is_some_and(|n| self.l.text(n) == "get");
            let body = if body.kind() == "arrow_expression_clause" {
                self.arrow(body)
            } else {
                self.body(body)
            };
            if is_get {
                let id = self.getter(node, name_sym, ty, body);
                out.push(stmt(node, StmtKind::Function(id)));
            } else {
                let value = self.l.sym("value");
                let params = vec![Param {
                    span: span(accessor),
                    name: Some(value),
                    ty,
                    ..Default::default()
                }];
                let function = Function {
                    span: span(accessor),
                    params,
                    body,
                    ..Default::default()
                };
                let id = self.l.module.add_function(function);
                out.push(stmt(accessor, StmtKind::Function(id)));
            }
        }
        if !has_body {
            let target = self.l.name(name);
            out.push(stmt(
                node,
                StmtKind::Declare {
                    target,
                    ty,
                    value: None,
                },
            ));
        }
    }

    fn getter(
        &mut self,
        node: Node<'n>,
        name: Sym,
        ty: Option<Sym>,
        body: CodeBlock,
    ) -> FunctionId {
        let is_static = self.has_modifier(node, "static");
        let function = Function {
            span: span(node),
            name: Some(name),
            ty,
            body,
            is_getter: true,
            is_static,
            ..Default::default()
        };
        self.l.module.add_function(function)
    }

    fn arrow(&mut self, node: Node<'n>) -> CodeBlock {
        let value = children(node).first().map(|n| self.expr(*n));
        vec![stmt(node, StmtKind::Return(value))]
    }

    fn has_modifier(&self, node: Node<'n>, word: &str) -> bool {
        children(node)
            .iter()
            .any(|n| n.kind() == "modifier" && self.l.text(*n) == word)
    }

    fn function(&mut self, node: Node<'n>) -> FunctionId {
        let name = field(node, "name").map(|n| self.l.sym_of(n));
        let ty = field(node, "returns")
            .or_else(|| field(node, "type"))
            .and_then(|t| self.type_name(t));
        let is_hidden = ["private", "protected", "internal"]
            .iter()
            .any(|w| self.has_modifier(node, w));
        // A method that returns nothing is an action only if the framework can call it.
        let ty = ty.filter(|t| !is_hidden || !matches!(self.l.module.word(*t), "void" | "Task"));
        let params = field(node, "parameters")
            .map(|p| self.parameters(p))
            .unwrap_or_default();
        let mut body = self.harmless(node, &params);
        for n in children(node)
            .into_iter()
            .filter(|n| n.kind() == "constructor_initializer")
        {
            out_of_initializer(self, n, &mut body);
        }
        match field(node, "body").or_else(|| child(node, "arrow_expression_clause")) {
            Some(b) if b.kind() == "arrow_expression_clause" => {
                let arrow = self.arrow(b);
                body.extend(arrow);
            }
            Some(b) => body.extend(self.body(b)),
            None => {}
        }
        let function = Function {
            span: span(node),
            name,
            params,
            body,
            ty,
            marks: self.marks(node),
            is_static: self.has_modifier(node, "static"),
            is_constructor: node.kind() == "constructor_declaration",
            ..Default::default()
        };
        self.l.module.add_function(function)
    }

    /// Returns statements that remove the data of parameters that are numbers or services of the
    /// framework.
    fn harmless(&mut self, node: Node<'n>, params: &[Param]) -> CodeBlock {
        let mut out = Vec::new();
        for p in params {
            let (Some(name), Some(ty)) = (p.name, p.ty) else {
                continue;
            };
            let word = self.l.module.word(ty);
            let callee = if idiom::is_number(word) {
                "__number"
            } else if idiom::is_service(word) {
                "__service"
            } else {
                continue;
            };
            let target = self.l.expr(node, ExprKind::Name(name));
            let value = Some(self.l.call(node, callee, vec![target]));
            out.push(stmt(
                node,
                StmtKind::Declare {
                    target,
                    ty: p.ty,
                    value,
                },
            ));
        }
        out
    }

    fn parameters(&mut self, node: Node<'n>) -> Vec<Param> {
        if node.kind() == "identifier" || node.kind() == "implicit_parameter" {
            let name = Some(self.l.sym_of(node));
            return vec![Param {
                span: span(node),
                name,
                ..Default::default()
            }];
        }
        let mut out = Vec::new();
        for p in children(node)
            .into_iter()
            .filter(|n| n.kind() == "parameter" || n.kind() == "identifier")
        {
            let name = field(p, "name").unwrap_or(p);
            let default = children(p).into_iter().rfind(|n| {
                n.id() != name.id()
                    && !matches!(n.kind(), "attribute_list" | "modifier")
                    && field(p, "type") != Some(*n)
            });
            let param = Param {
                span: span(p),
                name: Some(self.l.sym_of(name)),
                ty: field(p, "type").and_then(|t| self.type_name(t)),
                default: default.filter(|d| d.id() != p.id()).map(|d| self.expr(d)),
                marks: self.marks(p),
                is_variadic: has_token(p, "params"),
                ..Default::default()
            };
            out.push(param);
        }
        out
    }

    fn marks(&mut self, node: Node<'n>) -> Vec<Annotation> {
        let mut out = Vec::new();
        for list in children(node)
            .into_iter()
            .filter(|n| n.kind() == "attribute_list")
        {
            for a in children(list)
                .into_iter()
                .filter(|n| n.kind() == "attribute")
            {
                let Some(name) = field(a, "name") else {
                    continue;
                };
                let text = self.l.text(name).trim_end_matches("Attribute").to_owned();
                let (name, args) = (self.l.path(name, &text), self.attribute_arguments(a));
                out.push(Annotation { name, args });
            }
        }
        out
    }

    fn attribute_arguments(&mut self, node: Node<'n>) -> Vec<Arg> {
        let mut out = Vec::new();
        for a in child(node, "attribute_argument_list")
            .map(children)
            .unwrap_or_default()
        {
            let keyword = field(a, "name").map(|n| self.l.sym_of(n));
            let Some(value) = children(a).last().map(|n| self.expr(*n)) else {
                continue;
            };
            // `origins: "*"` and `Name = "x"` are assignments or named arguments.
            out.push(Arg {
                keyword,
                value,
                is_spread: false,
            });
        }
        out
    }

    /// Adds a call of `Attribute.Name` for every attribute.
    fn attribute_calls(&mut self, node: Node<'n>, out: &mut CodeBlock) {
        for list in children(node)
            .into_iter()
            .filter(|n| n.kind() == "attribute_list")
        {
            for a in children(list)
                .into_iter()
                .filter(|n| n.kind() == "attribute")
            {
                let Some(name) = field(a, "name") else {
                    continue;
                };
                let text = self.l.text(name).trim_end_matches("Attribute");
                let path = format!("Attribute.{}", text.rsplit('.').next().unwrap_or_default());
                let args = self.attribute_arguments(a);
                let callee = self.l.path(a, &path);
                let id = self.l.expr(a, ExprKind::Call { callee, args });
                out.push(stmt(a, StmtKind::Expr(id)));
            }
        }
    }
}

/// Lowers the arguments of `: base(x)`.
fn out_of_initializer<'n>(c: &mut CSharp<'_, '_>, node: Node<'n>, out: &mut CodeBlock) {
    for list in children(node) {
        for a in children(list) {
            let id = c.expr(a);
            out.push(stmt(a, StmtKind::Expr(id)));
        }
    }
}

/// Returns the operator of a binary expression.
fn operator(text: &str) -> Op {
    match text {
        "+" => Op::Add,
        "-" => Op::Sub,
        "*" => Op::Mul,
        "/" => Op::Div,
        "%" => Op::Rem,
        "&&" => Op::And,
        "||" => Op::Or,
        "??" => Op::Else,
        "==" => Op::Equal,
        "!=" => Op::NotEqual,
        "<" => Op::Less,
        "<=" => Op::LessEqual,
        ">" => Op::Greater,
        ">=" => Op::GreaterEqual,
        _ => Op::Bits,
    }
}
