//! The shape of Go files.
//!
//! - `x, err := f()`: `x` gets the result of `f`, and a last name such as `err` or `ok` gets an
//!   unknown value without data.
//! - `T{Field: x}`: a call of `T` with keywords if `T` belongs to a package, `new T` if this file
//!   declares it.
//! - `fmt.Sprintf("…%s", x)`: the parts of one text. An argument of a verb for numbers is a number.

mod compare;
pub(super) mod foreign;
mod literal;
mod tag;
mod text;

use super::super::declared::CHECKED;
use super::super::shape::{
    Arg, Class, ClassId, CodeBlock, CollectionItem, ExprId, ExprKind, Field, Function, FunctionId,
    Op, Param, Stmt, StmtKind, SwitchCase, Sym,
};
use super::{Lower, child, children, field, fields, integer, span, stmt};
use std::collections::{HashMap, HashSet};
use tree_sitter::Node;

/// State of the lowering of a Go file.
struct Go<'l, 't> {
    l: &'l mut Lower<'t>,
    /// Functions and methods that this file declares.
    local: HashSet<String>,
    /// Structs that this file declares, with the names of their fields in order.
    structs: HashMap<String, Vec<String>>,
    /// Names of the results of the function that is being lowered.
    results: Vec<Sym>,
    /// Methods by the name of their type.
    methods: Vec<(String, FunctionId)>,
    classes: Vec<Class>,
    /// The file sets a content type somewhere.
    has_content_type: bool,
}

/// Lowers a file.
pub(super) fn file(l: &mut Lower<'_>, root: Node<'_>) -> CodeBlock {
    let mut go = Go {
        l,
        local: HashSet::new(),
        structs: HashMap::new(),
        results: Vec::new(),
        methods: Vec::new(),
        classes: Vec::new(),
        has_content_type: false,
    };
    go.has_content_type = go.l.text(root).contains("ontent-");
    let nodes = children(root);
    for node in &nodes {
        go.collect(*node);
    }
    let mut body = CodeBlock::new();
    for node in &nodes {
        go.statement(*node, &mut body);
    }
    let mut out = go.finish(root);
    out.append(&mut body);
    out
}

impl Go<'_, '_> {
    /// Collects the declarations of the file.
    fn collect(&mut self, node: Node<'_>) {
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

    /// Adds the classes with their methods.
    fn finish(&mut self, root: Node<'_>) -> CodeBlock {
        let mut classes = std::mem::take(&mut self.classes);
        for (ty, method) in std::mem::take(&mut self.methods) {
            let name = self.l.sym(&ty);
            match classes.iter_mut().find(|c| c.name == Some(name)) {
                Some(class) => class.methods.push(method),
                None => classes.push(Class {
                    span: span(root),
                    name: Some(name),
                    methods: vec![method],
                    ..Class::default()
                }),
            }
        }
        let mut out = CodeBlock::new();
        for class in classes {
            let at = class.span;
            let id: ClassId = self.l.module.add_class(class);
            out.push(Stmt {
                span: at,
                kind: StmtKind::Class(id),
            });
        }
        out
    }

    /// Lowers the statements of a block, a case or a file.
    fn block(&mut self, node: Node<'_>) -> CodeBlock {
        let mut out = CodeBlock::new();
        for part in children(node) {
            self.statement(part, &mut out);
        }
        out
    }

    /// Lowers a statement.
    fn statement(&mut self, node: Node<'_>, out: &mut CodeBlock) {
        if !self.l.enter() {
            return;
        }
        self.statement_inside(node, out);
        self.l.leave();
    }

    fn statement_inside(&mut self, node: Node<'_>, out: &mut CodeBlock) {
        match node.kind() {
            "package_clause"
            | "comment"
            | "empty_statement"
            | "goto_statement"
            | "fallthrough_statement"
            | "label_name" => {}
            "import_declaration" => self.imports(node, out),
            "function_declaration" => {
                let id = self.function(node);
                out.push(stmt(node, StmtKind::Function(id)));
            }
            "method_declaration" => self.method(node),
            "type_declaration" => {
                for spec in children(node) {
                    self.class(spec);
                }
            }
            "const_declaration" | "var_declaration" | "var_spec_list" => {
                for spec in children(node) {
                    self.statement(spec, out);
                }
            }
            "const_spec" | "var_spec" => self.declare(node, out),
            "short_var_declaration" | "assignment_statement" => self.assignment(node, out),
            "inc_statement" | "dec_statement" => {
                if let Some(of) = children(node).first() {
                    let target = self.expr(*of);
                    let value = self.l.expr(node, ExprKind::Int(1));
                    let id = self.l.expr(
                        node,
                        ExprKind::Assign {
                            target,
                            op: Some(Op::Sub),
                            value,
                        },
                    );
                    out.push(stmt(node, StmtKind::Expr(id)));
                }
            }
            "block" | "statement_list" | "ERROR" => {
                let mut inner = self.block(node);
                out.append(&mut inner);
            }
            "labeled_statement" => {
                for part in children(node) {
                    self.statement(part, out);
                }
            }
            "expression_statement" | "go_statement" | "defer_statement" => {
                if let Some(of) = children(node).first() {
                    self.expression_statement(*of, out);
                }
            }
            "send_statement" => self.send(node, out),
            "receive_statement" => self.receive(node, out),
            "if_statement" => self.choice(node, out),
            "for_statement" => self.repeat(node, out),
            "expression_switch_statement" | "type_switch_statement" | "select_statement" => {
                self.switch(node, out)
            }
            "return_statement" => self.returned(node, out),
            "break_statement" => out.push(stmt(node, StmtKind::Break)),
            "continue_statement" => out.push(stmt(node, StmtKind::Continue)),
            _ => self.expression_statement(node, out),
        }
    }

    /// Lowers an expression as a statement. A call that ends the program or the function ends the
    /// branch.
    fn expression_statement(&mut self, node: Node<'_>, out: &mut CodeBlock) {
        let id = self.expr(node);
        out.push(stmt(node, StmtKind::Expr(id)));
        let callee = field(node, "function")
            .map(|f| self.l.text(f))
            .unwrap_or_default();
        let ends = [
            "panic",
            "os.Exit",
            "log.Fatal",
            "log.Fatalf",
            "log.Fatalln",
            "log.Panic",
            "log.Panicf",
            "runtime.Goexit",
        ];
        if node.kind() == "call_expression" && ends.contains(&callee) {
            out.push(stmt(node, StmtKind::Throw(None)));
        }
    }

    /// Lowers imports. The version of a module is not part of the path.
    fn imports(&mut self, node: Node<'_>, out: &mut CodeBlock) {
        for part in children(node) {
            if part.kind() == "import_spec_list" {
                self.imports(part, out);
            } else if let Some(path) = field(part, "path") {
                let path = text::module_path(self.l.text(path).trim_matches(['"', '`']));
                match field(part, "name").map(|n| self.l.text(n)) {
                    // A package that is imported for its effects, as a call: `pprof()`.
                    Some("_") => {
                        let name = path.rsplit('/').next().unwrap_or_default();
                        let value = self.l.constant(part, &path);
                        let call = self.l.call(part, name, vec![value]);
                        out.push(stmt(part, StmtKind::Expr(call)));
                    }
                    Some(".") => self.l.import("*", &path),
                    Some(name) => self.l.import(name, &path),
                    None => {
                        for name in text::package_names(&path) {
                            self.l.import(&name, &path);
                        }
                    }
                }
            }
        }
    }

    /// Lowers a declared type: a struct, or another type with a name.
    fn class(&mut self, spec: Node<'_>) {
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
    fn ty(&mut self, node: Node<'_>) -> Option<Sym> {
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

    fn method(&mut self, node: Node<'_>) {
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
    fn function(&mut self, node: Node<'_>) -> FunctionId {
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

    /// Lowers `var x T = y` and `const x = y`.
    fn declare(&mut self, node: Node<'_>, out: &mut CodeBlock) {
        let names: Vec<Node<'_>> = fields(node, "name")
            .into_iter()
            .filter(|n| n.kind() == "identifier")
            .collect();
        let ty = field(node, "type").and_then(|t| self.ty(t));
        let values = field(node, "value").map(children).unwrap_or_default();
        if values.len() == 1 && names.len() > 1 {
            if let Some(value) = values.first() {
                self.results_of(node, &names, *value, out);
            }
            return;
        }
        for (index, name) in names.iter().enumerate() {
            let value = values.get(index).map(|v| self.expr(*v));
            let target = self.l.name(*name);
            out.push(stmt(node, StmtKind::Declare { target, ty, value }));
        }
    }

    /// Lowers `a, b = c, d`, `a := b` and `a += b`.
    fn assignment(&mut self, node: Node<'_>, out: &mut CodeBlock) {
        let left = field(node, "left").map(children).unwrap_or_default();
        let right = field(node, "right").map(children).unwrap_or_default();
        match (left.as_slice(), right.as_slice()) {
            ([target], [value]) => {
                let op = field(node, "operator")
                    .and_then(|o| text::operator_of_assignment(self.l.text(o)));
                let is_error = value.kind() == "call_expression"
                    && matches!(self.l.text(*target), "err" | "_");
                let mut value = self.expr(*value);
                let target = self.expr(*target);
                if is_error {
                    // Data is not followed into an error.
                    out.push(stmt(node, StmtKind::Expr(value)));
                    value = self.l.unknown(node, Vec::new());
                }
                let id = self.l.expr(node, ExprKind::Assign { target, op, value });
                out.push(stmt(node, StmtKind::Expr(id)));
            }
            (targets, [value]) if targets.len() > 1 => self.results_of(node, targets, *value, out),
            (targets, values) => {
                let mut sides = Vec::new();
                for items in [targets, values] {
                    let list = items.iter().map(|n| self.expr(*n)).map(item).collect();
                    sides.push(self.l.expr(node, ExprKind::Collection(list)));
                }
                if let [target, value] = sides.as_slice() {
                    let id = self.l.expr(
                        node,
                        ExprKind::Assign {
                            target: *target,
                            op: None,
                            value: *value,
                        },
                    );
                    out.push(stmt(node, StmtKind::Expr(id)));
                }
            }
        }
    }

    /// Lowers `a, b, err := value`.
    fn results_of(
        &mut self,
        node: Node<'_>,
        targets: &[Node<'_>],
        value: Node<'_>,
        out: &mut CodeBlock,
    ) {
        let is_local = self.is_local_call(value);
        let value_id = self.expr(value);
        let has_flag = targets
            .last()
            .is_some_and(|n| text::is_flag(self.l.text(*n)));
        let data = if has_flag {
            targets.get(..targets.len() - 1).unwrap_or_default()
        } else {
            targets
        };
        if is_local {
            let list = targets.iter().map(|n| self.expr(*n)).map(item).collect();
            let target = self.l.expr(node, ExprKind::Collection(list));
            out.push(self.l.assign(node, target, value_id));
        } else if let Some((first, others)) = data.split_first() {
            let target = self.expr(*first);
            out.push(self.l.assign(node, target, value_id));
            for other in others {
                let (of, target) = (self.expr(*first), self.expr(*other));
                let of = if self.l.text(*first) == "_" {
                    value_id
                } else {
                    of
                };
                let same = self.l.unknown(*other, vec![of]);
                out.push(self.l.assign(node, target, same));
            }
        }
        if let (true, Some(flag)) = (has_flag, targets.last()) {
            let target = self.expr(*flag);
            let outcome = match value.kind() {
                // `_, ok := allowed[key]`
                "index_expression" => {
                    let (left, right) = (self.part(value, "index"), self.part(value, "operand"));
                    self.l.expr(
                        *flag,
                        ExprKind::Binary {
                            op: Op::In,
                            left,
                            right,
                        },
                    )
                }
                _ => self.l.unknown(*flag, Vec::new()),
            };
            out.push(self.l.assign(node, target, outcome));
        }
    }

    /// Returns true for a call of a function or method that this file declares.
    fn is_local_call(&self, node: Node<'_>) -> bool {
        let Some(callee) = field(node, "function") else {
            return false;
        };
        match callee.kind() {
            "identifier" => self.local.contains(self.l.text(callee)),
            "selector_expression" => {
                field(callee, "field").is_some_and(|f| self.local.contains(self.l.text(f)))
            }
            "func_literal" => true,
            _ => false,
        }
    }

    /// Lowers `channel <- value`.
    fn send(&mut self, node: Node<'_>, out: &mut CodeBlock) {
        let (Some(channel), Some(value)) = (field(node, "channel"), field(node, "value")) else {
            return;
        };
        let (of, value) = (self.expr(channel), self.expr(value));
        let key = self.l.unknown(channel, Vec::new());
        let target = self.l.expr(channel, ExprKind::Index { of, key });
        out.push(self.l.assign(node, target, value));
    }

    fn receive(&mut self, node: Node<'_>, out: &mut CodeBlock) {
        let Some(right) = field(node, "right") else {
            return;
        };
        let left = field(node, "left").map(children).unwrap_or_default();
        if left.len() > 1 {
            self.results_of(node, &left, right, out);
        } else {
            let value = self.expr(right);
            match left.first() {
                Some(target) => {
                    let target = self.expr(*target);
                    out.push(self.l.assign(node, target, value));
                }
                None => out.push(stmt(node, StmtKind::Expr(value))),
            }
        }
    }

    fn choice(&mut self, node: Node<'_>, out: &mut CodeBlock) {
        if let Some(first) = field(node, "initializer") {
            self.statement(first, out);
        }
        let test = match field(node, "condition") {
            Some(c) => self.expr(c),
            None => self.l.unknown(node, Vec::new()),
        };
        let then = field(node, "consequence")
            .map(|b| self.block(b))
            .unwrap_or_default();
        let mut otherwise = CodeBlock::new();
        match field(node, "alternative") {
            Some(other) if other.kind() == "block" => otherwise = self.block(other),
            Some(other) => self.statement(other, &mut otherwise),
            None => {}
        }
        out.push(stmt(
            node,
            StmtKind::If {
                test,
                then,
                otherwise,
            },
        ));
    }

    fn repeat(&mut self, node: Node<'_>, out: &mut CodeBlock) {
        let head = children(node).into_iter().find(|n| n.kind() != "block");
        match head {
            Some(clause) if clause.kind() == "range_clause" => {
                let names = field(clause, "left").map(children).unwrap_or_default();
                let iterable = match field(clause, "right") {
                    Some(of) => self.expr(of),
                    None => self.l.unknown(clause, Vec::new()),
                };
                let key = names.first().map(|n| self.expr(*n));
                let target = match names.get(1) {
                    Some(n) => self.expr(*n),
                    None => self.l.named(clause, "_"),
                };
                let body = self.body_of(node);
                out.push(stmt(
                    node,
                    StmtKind::Each {
                        target,
                        key,
                        iterable,
                        body,
                    },
                ));
            }
            Some(clause) if clause.kind() == "for_clause" => {
                if let Some(first) = field(clause, "initializer") {
                    self.statement(first, out);
                }
                let test = field(clause, "condition").map(|c| self.expr(c));
                let body = self.body_of(node);
                let mut update = CodeBlock::new();
                if let Some(last) = field(clause, "update") {
                    self.statement(last, &mut update);
                }
                out.push(stmt(
                    node,
                    StmtKind::While {
                        test,
                        body,
                        update,
                        is_post_test: false,
                    },
                ));
            }
            other => {
                let test = other.map(|c| self.expr(c));
                let body = self.body_of(node);
                out.push(stmt(
                    node,
                    StmtKind::While {
                        test,
                        body,
                        update: CodeBlock::new(),
                        is_post_test: false,
                    },
                ));
            }
        }
    }

    /// Lowers the body of a loop, which is empty where the code has an error.
    fn body_of(&mut self, node: Node<'_>) -> CodeBlock {
        field(node, "body")
            .map(|b| self.block(b))
            .unwrap_or_default()
    }

    fn switch(&mut self, node: Node<'_>, out: &mut CodeBlock) {
        if let Some(first) = field(node, "initializer") {
            self.statement(first, out);
        }
        let mut subject = field(node, "value").map(|v| self.expr(v));
        let mut typed = None;
        if node.kind() == "type_switch_statement" {
            typed = subject.take();
            let alias = field(node, "alias").and_then(|a| children(a).first().copied());
            if let (Some(alias), Some(value)) = (alias, typed) {
                let target = self.l.name(alias);
                out.push(self.l.assign(node, target, value));
                typed = Some(self.l.name(alias));
            }
        }
        let mut cases = Vec::new();
        for part in children(node) {
            match part.kind() {
                "expression_case" | "type_case" | "communication_case" | "default_case" => {
                    cases.push(self.case(part, typed));
                }
                _ => {}
            }
        }
        out.push(stmt(
            node,
            StmtKind::Switch {
                subject,
                cases,
                falls_through: false,
            },
        ));
    }

    fn case(&mut self, node: Node<'_>, typed: Option<ExprId>) -> SwitchCase {
        let mut case = SwitchCase {
            tests: Vec::new(),
            body: CodeBlock::new(),
        };
        match (node.kind(), typed) {
            ("expression_case", _) => {
                let values = field(node, "value").map(children).unwrap_or_default();
                case.tests = values.into_iter().map(|v| self.expr(v)).collect();
            }
            ("type_case", Some(of)) => {
                for ty in fields(node, "type").into_iter().filter(Node::is_named) {
                    let sym = self.ty(ty).unwrap_or_else(|| self.l.sym_of(ty));
                    case.tests
                        .push(self.l.expr(ty, ExprKind::IsType { of, ty: sym }));
                }
            }
            ("default_case", _) => {}
            _ => case.tests.push(self.l.unknown(node, Vec::new())),
        }
        if let Some(communication) = field(node, "communication") {
            self.statement(communication, &mut case.body);
        }
        if let Some(list) = child(node, "statement_list") {
            self.statement(list, &mut case.body);
        }
        case
    }

    fn returned(&mut self, node: Node<'_>, out: &mut CodeBlock) {
        let values = children(node)
            .first()
            .map(|n| children(*n))
            .unwrap_or_default();
        let value = match values.as_slice() {
            [] if self.results.is_empty() => None,
            [] => {
                let names = self.results.clone();
                let list: Vec<ExprId> = names
                    .into_iter()
                    .map(|n| self.l.expr(node, ExprKind::Name(n)))
                    .collect();
                Some(self.list(node, list))
            }
            [one] => Some(self.expr(*one)),
            many => {
                let list = many.iter().map(|n| self.expr(*n)).collect();
                Some(self.list(node, list))
            }
        };
        out.push(stmt(node, StmtKind::Return(value)));
    }

    /// Returns one value, or a list of them.
    fn list(&mut self, node: Node<'_>, values: Vec<ExprId>) -> ExprId {
        match values.as_slice() {
            [one] => *one,
            _ => {
                let items = values.into_iter().map(item).collect();
                self.l.expr(node, ExprKind::Collection(items))
            }
        }
    }

    /// Lowers an expression.
    fn expr(&mut self, node: Node<'_>) -> ExprId {
        if !self.l.enter() {
            return self.l.unknown(node, Vec::new());
        }
        let id = self.expr_inside(node);
        self.l.leave();
        id
    }

    fn expr_inside(&mut self, node: Node<'_>) -> ExprId {
        match node.kind() {
            "identifier" | "type_identifier" | "field_identifier" | "package_identifier" => {
                self.l.name(node)
            }
            "nil" => self.l.expr(node, ExprKind::Null),
            "true" | "false" => {
                let is_true = node.kind() == "true";
                self.l.expr(node, ExprKind::Bool(is_true))
            }
            "int_literal" => match integer(self.l.text(node)) {
                Some(n) => self.l.expr(node, ExprKind::Int(n)),
                None => self.l.unknown(node, Vec::new()),
            },
            "float_literal" => {
                let value = self.l.text(node).parse().unwrap_or_default();
                self.l.expr(node, ExprKind::Float(value))
            }
            "interpreted_string_literal" | "raw_string_literal" | "rune_literal" => {
                let value = text::literal(self.l.text(node));
                self.l.constant(node, &value)
            }
            "selector_expression" | "qualified_type" => self.member(node),
            "index_expression" if self.l.text(node) == "os.Args[0]" => {
                self.l.unknown(node, Vec::new())
            }
            "index_expression" => {
                let (of, key) = (self.part(node, "operand"), self.part(node, "index"));
                self.l.expr(node, ExprKind::Index { of, key })
            }
            "slice_expression" => {
                let of = self.part(node, "operand");
                self.l.expr(node, ExprKind::Pass(of))
            }
            "parenthesized_expression" | "literal_element" | "variadic_argument" => {
                self.only_child(node)
            }
            "unary_expression" => self.unary(node),
            "binary_expression" => self.binary(node),
            "call_expression" => self.call(node),
            "composite_literal" => self.literal(node),
            "literal_value" => self.elements(node),
            "func_literal" => {
                let id = self.function(node);
                self.l.expr(node, ExprKind::Function(id))
            }
            "type_assertion_expression" | "type_conversion_expression" => {
                let of = self.part(node, "operand");
                match field(node, "type").and_then(|t| self.ty(t)) {
                    Some(ty) => self.l.expr(node, ExprKind::Cast { of, ty }),
                    None => self.l.expr(node, ExprKind::Pass(of)),
                }
            }
            _ => {
                let parts = children(node).into_iter().map(|n| self.expr(n)).collect();
                self.l.unknown(node, parts)
            }
        }
    }

    /// Lowers the child with a field name.
    fn part(&mut self, node: Node<'_>, name: &str) -> ExprId {
        match field(node, name) {
            Some(n) => self.expr(n),
            None => self.l.unknown(node, Vec::new()),
        }
    }

    fn only_child(&mut self, node: Node<'_>) -> ExprId {
        let of = match children(node).first() {
            Some(n) => self.expr(*n),
            None => self.l.unknown(node, Vec::new()),
        };
        self.l.expr(node, ExprKind::Pass(of))
    }

    fn member(&mut self, node: Node<'_>) -> ExprId {
        let (of, name) = match node.kind() {
            "qualified_type" => (field(node, "package"), field(node, "name")),
            _ => (field(node, "operand"), field(node, "field")),
        };
        let (Some(of), Some(name)) = (of, name) else {
            return self.l.unknown(node, Vec::new());
        };
        let (of, name) = (self.expr(of), self.l.sym_of(name));
        self.l.expr(node, ExprKind::Member { of, name })
    }

    fn unary(&mut self, node: Node<'_>) -> ExprId {
        let of = self.part(node, "operand");
        let kind = match field(node, "operator").map(|o| self.l.text(o)) {
            Some("!") => ExprKind::Not(of),
            Some("-" | "+" | "^") => ExprKind::Negate(of),
            Some("<-") => {
                let key = self.l.unknown(node, Vec::new());
                ExprKind::Index { of, key }
            }
            _ => ExprKind::Pass(of),
        };
        self.l.expr(node, kind)
    }

    fn call(&mut self, node: Node<'_>) -> ExprId {
        let Some(function) = field(node, "function") else {
            return self.l.unknown(node, Vec::new());
        };
        let arguments = field(node, "arguments").map(children).unwrap_or_default();
        let name = self.l.text(function);
        match (name, arguments.as_slice()) {
            ("string", [of]) => {
                let of = self.expr(*of);
                return self.l.expr(node, ExprKind::Pass(of));
            }
            ("new", [ty]) => {
                let class = self.expr(*ty);
                return self.l.expr(
                    node,
                    ExprKind::New {
                        class,
                        args: Vec::new(),
                    },
                );
            }
            ("make", [_, sizes @ ..]) => {
                for size in sizes {
                    self.expr(*size);
                }
                return self.l.expr(node, ExprKind::Collection(Vec::new()));
            }
            ("regexp.MustCompile", [pattern]) if pattern.kind().ends_with("string_literal") => {
                let pattern = text::literal(self.l.text(*pattern));
                return self.l.expr(node, ExprKind::Regex(pattern.into()));
            }
            ("fmt.Sprint" | "fmt.Sprintln", parts) => {
                let parts = parts.iter().map(|n| self.expr(*n)).collect();
                return self.l.expr(node, ExprKind::Concat(parts));
            }
            ("fmt.Sprintf", [format, values @ ..]) => {
                if let Some(parts) = self.formatted(*format, values) {
                    return self.l.expr(node, ExprKind::Concat(parts));
                }
            }
            _ => {}
        }
        let is_type = function.kind() == "type_identifier"
            || matches!(
                name,
                "int" | "int64" | "int32" | "uint" | "uint64" | "float64"
            );
        if let (true, [of]) = (is_type, arguments.as_slice())
            && let Some(ty) = self.ty(function)
        {
            let of = self.expr(*of);
            return self.l.expr(node, ExprKind::Cast { of, ty });
        }
        let callee = self.expr(function);
        let args = match text::format_argument(name) {
            Some(at) => self.formatted_args(&arguments, at),
            None => arguments.iter().map(|n| self.arg(*n)).collect(),
        };
        let is_foreign = !arguments.is_empty() && self.is_foreign(function);
        let id = self.l.expr(node, ExprKind::Call { callee, args });
        if self.is_password_hash(node, name) {
            return self.noted(node, "__password_hash", id);
        }
        if !is_foreign {
            return id;
        }
        let body = vec![stmt(node, StmtKind::Expr(id))];
        let value = self.l.expr(
            node,
            ExprKind::Call {
                callee,
                args: Vec::new(),
            },
        );
        self.l.expr(
            node,
            ExprKind::Block {
                body,
                value: Some(value),
            },
        )
    }

    fn arg(&mut self, node: Node<'_>) -> Arg {
        Arg {
            keyword: None,
            value: self.expr(node),
            is_spread: node.kind() == "variadic_argument",
        }
    }
}

/// Returns an item without a key.
fn item(value: ExprId) -> CollectionItem {
    CollectionItem {
        key: None,
        value,
        is_spread: false,
    }
}
