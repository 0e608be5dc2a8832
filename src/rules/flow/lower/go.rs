//! The shape of Go files.
//!
//! - `x, err := f()`: `x` gets the result of `f`, and a last name such as `err` or `ok` gets an
//!   unknown value without data.
//! - `T{Field: x}`: a call of `T` with keywords if `T` belongs to a package, `new T` if this file
//!   declares it.
//! - `fmt.Sprintf("…%s", x)`: the parts of one text. An argument of a verb for numbers is a number.

mod compare;
mod declare;
pub(super) mod foreign;
mod literal;
mod tag;
mod text;
mod value;

use super::super::shape::{
    Class, ClassId, CodeBlock, CollectionItem, ExprId, ExprKind, FunctionId, Op, Stmt, StmtKind,
    SwitchCase, Sym,
};
use super::{Lower, child, children, field, fields, span, stmt};
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
                self.switch(node, out);
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
}

/// Returns an item without a key.
fn item(value: ExprId) -> CollectionItem {
    CollectionItem {
        key: None,
        value,
        is_spread: false,
    }
}
