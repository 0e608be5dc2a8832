//! The shape of Ruby files.
//!
//! `::` is a member. A bare word that is not a local variable and that the file defines as a method
//! is a call. `ruby/idiom.rs` recognises idioms in the text (a secret from `rand`, privileged
//! attributes in `permit`). An idiom becomes a call of a name that starts with two underscores; the
//! table has rules for these names.

mod idiom;
mod value;

use super::super::shape::{
    Catch, Class, CodeBlock, ExprId, ExprKind, Field, Function, FunctionId, Op, Param, Stmt,
    StmtKind, SwitchCase,
};
use super::{Lower, children, field, fields, span, stmt};
use std::collections::{HashMap, HashSet};
use tree_sitter::Node;

/// The state of the lowering of a Ruby file.
struct Ruby<'l, 't, 'n> {
    l: &'l mut Lower<'t>,
    /// Names of methods that the file defines.
    methods: HashSet<String>,
    /// Bodies of heredocs by the first byte of their opening.
    heredocs: HashMap<usize, Node<'n>>,
    /// Methods of the class that is being lowered.
    members: Vec<FunctionId>,
    /// Local variables of the methods that are being lowered.
    locals: Vec<HashSet<String>>,
    /// Number of the next variable that the lowering makes.
    fresh: u32,
}

/// Lowers a file.
pub(super) fn file(l: &mut Lower<'_>, root: Node<'_>) -> CodeBlock {
    let mut r = Ruby {
        l,
        methods: HashSet::new(),
        heredocs: HashMap::new(),
        members: Vec::new(),
        locals: vec![HashSet::new()],
        fresh: 0,
    };
    r.collect(root);
    r.body(root)
}

impl<'n> Ruby<'_, '_, 'n> {
    /// Collects the names of methods, and pairs the openings of heredocs with their bodies, which
    /// have the same order.
    fn collect(&mut self, root: Node<'n>) {
        let (mut begins, mut bodies) = (Vec::new(), Vec::new());
        let mut cursor = root.walk();
        loop {
            let node = cursor.node();
            match node.kind() {
                "heredoc_beginning" => begins.push(node.start_byte()),
                "heredoc_body" => bodies.push(node),
                "method" | "singleton_method" => {
                    if let Some(name) = field(node, "name") {
                        self.methods.insert(self.l.text(name).to_owned());
                    }
                }
                _ => {}
            }
            if cursor.goto_first_child() {
                continue;
            }
            while !cursor.goto_next_sibling() {
                if !cursor.goto_parent() {
                    self.heredocs = begins.into_iter().zip(bodies).collect();
                    return;
                }
            }
        }
    }

    /// Lowers all statements inside a node.
    fn body(&mut self, node: Node<'n>) -> CodeBlock {
        let mut out = Vec::new();
        self.statements(&children(node), &mut out);
        out
    }

    fn body_of(&mut self, node: Node<'n>, name: &'static str) -> CodeBlock {
        field(node, name).map(|n| self.body(n)).unwrap_or_default()
    }

    fn statements(&mut self, nodes: &[Node<'n>], out: &mut CodeBlock) {
        if nodes
            .iter()
            .any(|n| matches!(n.kind(), "rescue" | "ensure" | "else"))
        {
            if let Some(first) = nodes.first() {
                let kind = self.attempt(nodes);
                out.push(stmt(*first, kind));
            }
            return;
        }
        for node in nodes {
            self.statement(*node, out);
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
            "ERROR"
            | "program"
            | "block_body"
            | "body_statement"
            | "parenthesized_statements"
            | "then"
            | "do"
            | "begin" => return out.extend(self.body(node)),
            "comment" | "heredoc_body" | "empty_statement" | "uninterpreted" | "alias"
            | "undef" | "else" => return,
            "begin_block" | "end_block" => StmtKind::Block(self.body(node)),
            "if" | "elsif" | "unless" => self.condition(node),
            "if_modifier" | "unless_modifier" => self.modified(node),
            "while" | "until" | "while_modifier" | "until_modifier" => self.repeat(node),
            "for" => self.each_in(node),
            "case" => self.choice(node),
            "case_match" => self.matching(node),
            "return" | "next" => StmtKind::Return(self.argument_of(node)),
            "break" | "retry" | "redo" => StmtKind::Break,
            "class" | "module" | "singleton_class" => self.class(node),
            "method" | "singleton_method" => {
                let id = self.method(node);
                if self.is_in_class(node) {
                    self.members.push(id);
                    return;
                }
                StmtKind::Function(id)
            }
            "binary" => return self.short_circuit(node, out),
            "call" => return self.call_statement(node, out),
            _ => StmtKind::Expr(self.expr(node)),
        };
        out.push(stmt(node, kind));
    }

    fn is_in_class(&self, node: Node<'n>) -> bool {
        let mut at = node.parent();
        while let Some(n) = at {
            match n.kind() {
                "class" | "module" | "singleton_class" => return true,
                "method" | "singleton_method" => return false,
                _ => at = n.parent(),
            }
        }
        false
    }

    /// Lowers a call as a statement: a loop, or a call that does not return.
    fn call_statement(&mut self, node: Node<'n>, out: &mut CodeBlock) {
        if let Some(kind) = self.loop_call(node) {
            out.push(stmt(node, kind));
            return;
        }
        let id = self.expr(node);
        out.push(stmt(node, StmtKind::Expr(id)));
        if field(node, "receiver").is_none() && self.is_ending(node) {
            out.push(stmt(node, StmtKind::Throw(None)));
        }
    }

    fn is_ending(&self, node: Node<'n>) -> bool {
        let name = field(node, "method")
            .map(|m| self.l.text(m))
            .unwrap_or_default();
        matches!(
            name,
            "raise"
                | "fail"
                | "abort"
                | "exit"
                | "exit!"
                | "halt"
                | "not_found"
                | "throw"
                | "error!"
        )
    }

    /// Lowers `a and return`, `a or raise "…"` and `a && b` to a branch.
    fn short_circuit(&mut self, node: Node<'n>, out: &mut CodeBlock) {
        let operator = field(node, "operator")
            .map(|o| self.l.text(o))
            .unwrap_or_default();
        let parts = (field(node, "left"), field(node, "right"));
        let ("and" | "or" | "&&" | "||", (Some(left), Some(right))) = (operator, parts) else {
            let id = self.expr(node);
            out.push(stmt(node, StmtKind::Expr(id)));
            return;
        };
        let is_and = matches!(operator, "and" | "&&");
        let responds = [
            "redirect_to",
            "render",
            "head",
            "redirect_back",
            "send_file",
            "send_data",
            "redirect",
        ];
        if is_and && responds.iter().any(|w| self.l.text(left).starts_with(w)) {
            self.statement(left, out);
            self.statement(right, out);
            return;
        }
        let test = self.expr(left);
        let test = if is_and {
            test
        } else {
            self.l.expr(left, ExprKind::Not(test))
        };
        let mut then = Vec::new();
        self.statement(right, &mut then);
        out.push(stmt(
            node,
            StmtKind::If {
                test,
                then,
                otherwise: Vec::new(),
            },
        ));
    }

    /// Returns the argument of `return`, `next` or `break`.
    fn argument_of(&mut self, node: Node<'n>) -> Option<ExprId> {
        let list = children(node).first().copied()?;
        let parts = children(list);
        match parts.as_slice() {
            [] => None,
            [one] => Some(self.expr(*one)),
            many => {
                let items: Vec<ExprId> = many.iter().map(|n| self.expr(*n)).collect();
                Some(self.collection(list, items))
            }
        }
    }

    fn test_of(&mut self, node: Node<'n>, is_negated: bool) -> ExprId {
        let Some(test) = field(node, "condition") else {
            return self.l.unknown(node, Vec::new());
        };
        let id = self.expr(test);
        if is_negated {
            self.l.expr(test, ExprKind::Not(id))
        } else {
            id
        }
    }

    fn condition(&mut self, node: Node<'n>) -> StmtKind {
        let test = self.test_of(node, node.kind() == "unless");
        let then = self.body_of(node, "consequence");
        let mut otherwise = Vec::new();
        if let Some(part) = field(node, "alternative") {
            match part.kind() {
                "elsif" => self.statement(part, &mut otherwise),
                _ => otherwise = self.body(part),
            }
        }
        StmtKind::If {
            test,
            then,
            otherwise,
        }
    }

    fn modified(&mut self, node: Node<'n>) -> StmtKind {
        let test = self.test_of(node, node.kind() == "unless_modifier");
        let mut then = Vec::new();
        if let Some(body) = field(node, "body") {
            self.statement(body, &mut then);
        }
        StmtKind::If {
            test,
            then,
            otherwise: Vec::new(),
        }
    }

    fn repeat(&mut self, node: Node<'n>) -> StmtKind {
        let test = Some(self.test_of(node, node.kind().starts_with("until")));
        let mut body = Vec::new();
        if let Some(part) = field(node, "body") {
            self.statement(part, &mut body);
        }
        StmtKind::While {
            test,
            body,
            update: Vec::new(),
            is_post_test: false,
        }
    }

    fn each_in(&mut self, node: Node<'n>) -> StmtKind {
        let target = self.expr_of(node, "pattern");
        let iterable = match field(node, "value").and_then(|v| children(v).first().copied()) {
            Some(v) => self.expr(v),
            None => self.l.unknown(node, Vec::new()),
        };
        let body = self.body_of(node, "body");
        StmtKind::Each {
            target,
            key: None,
            iterable,
            body,
        }
    }

    /// Lowers `xs.each { |x| … }` and similar calls to a loop.
    fn loop_call(&mut self, node: Node<'n>) -> Option<StmtKind> {
        let block = field(node, "block")?;
        let of = field(node, "receiver")?;
        let name = self.l.text(field(node, "method")?);
        let is_loop = matches!(
            name,
            "each"
                | "each_with_index"
                | "each_pair"
                | "each_key"
                | "each_value"
                | "each_line"
                | "reverse_each"
                | "find_each"
                | "each_entry"
                | "each_char"
                | "each_child"
        );
        if !is_loop {
            return None;
        }
        let iterable = self.expr(of);
        let names = field(block, "parameters").map(children).unwrap_or_default();
        for n in &names {
            self.bind(*n);
        }
        let mut targets = names
            .iter()
            .map(|n| self.expr(*n))
            .collect::<Vec<_>>()
            .into_iter();
        let (first, second) = (targets.next(), targets.next());
        let (target, key) = match (first, second) {
            (Some(key), Some(value)) if name != "each_with_index" => (value, Some(key)),
            (Some(target), _) => (target, None),
            (None, _) => (self.l.unknown(node, Vec::new()), None),
        };
        let body = self.body_of(block, "body");
        Some(StmtKind::Each {
            target,
            key,
            iterable,
            body,
        })
    }

    fn choice(&mut self, node: Node<'n>) -> StmtKind {
        let subject = field(node, "value").map(|v| self.expr(v));
        let mut cases = Vec::new();
        for part in children(node) {
            match part.kind() {
                "when" => {
                    let tests = fields(part, "pattern");
                    let tests = tests
                        .into_iter()
                        .filter_map(|p| children(p).first().copied())
                        .collect::<Vec<_>>();
                    let tests = tests.into_iter().map(|t| self.expr(t)).collect();
                    cases.push(SwitchCase {
                        tests,
                        body: self.body_of(part, "body"),
                    });
                }
                "else" => cases.push(SwitchCase {
                    tests: Vec::new(),
                    body: self.body(part),
                }),
                _ => {}
            }
        }
        StmtKind::Switch {
            subject,
            cases,
            falls_through: false,
        }
    }

    fn matching(&mut self, node: Node<'n>) -> StmtKind {
        let subject = field(node, "value").map(|v| self.expr(v));
        let mut cases = Vec::new();
        for part in fields(node, "clauses") {
            let test = field(part, "pattern").map(|p| self.expr(p));
            cases.push(SwitchCase {
                tests: test.into_iter().collect(),
                body: self.body_of(part, "body"),
            });
        }
        if let Some(part) = field(node, "else") {
            cases.push(SwitchCase {
                tests: Vec::new(),
                body: self.body(part),
            });
        }
        StmtKind::Switch {
            subject,
            cases,
            falls_through: false,
        }
    }

    fn attempt(&mut self, nodes: &[Node<'n>]) -> StmtKind {
        let (mut body, mut catches, mut finally) = (Vec::new(), Vec::new(), Vec::new());
        for part in nodes {
            match part.kind() {
                "rescue" => {
                    let name = field(*part, "variable").and_then(|v| children(v).first().copied());
                    let name = name.map(|n| self.l.sym_of(n));
                    catches.push(Catch {
                        name,
                        ty: None,
                        body: self.body_of(*part, "body"),
                    });
                }
                "else" => body.extend(self.body(*part)),
                "ensure" => finally = self.body(*part),
                _ => self.statement(*part, &mut body),
            }
        }
        StmtKind::Try {
            body,
            catches,
            finally,
        }
    }

    fn class(&mut self, node: Node<'n>) -> StmtKind {
        let name = field(node, "name").map(|n| self.l.text(n).replace("::", "."));
        let name = name.map(|n| self.l.sym(n.rsplit('.').next().unwrap_or_default()));
        let mut bases = Vec::new();
        if let Some(base) = field(node, "superclass").and_then(|s| children(s).first().copied()) {
            let text = self.l.text(base).replace("::", ".");
            bases.push(self.l.sym(&text));
        }
        let outside = std::mem::take(&mut self.members);
        self.locals.push(HashSet::new());
        let body = self.body_of(node, "body");
        self.locals.pop();
        let methods = std::mem::replace(&mut self.members, outside);
        let mut class = Class {
            span: span(node),
            name,
            bases,
            methods,
            ..Default::default()
        };
        for s in body {
            match self.constant_of(&s.kind) {
                Some(field) => class.fields.push(field),
                None => class.body.push(s),
            }
        }
        StmtKind::Class(self.l.module.add_class(class))
    }

    /// Returns the field of `NAME = value`.
    fn constant_of(&self, kind: &StmtKind) -> Option<Field> {
        let StmtKind::Expr(id) = kind else {
            return None;
        };
        let ExprKind::Assign {
            target,
            op: None,
            value,
        } = self.l.module.expr(*id).kind
        else {
            return None;
        };
        let ExprKind::Name(name) = self.l.module.expr(target).kind else {
            return None;
        };
        if matches!(self.l.module.expr(value).kind, ExprKind::Block { .. }) {
            return None;
        }
        Some(Field {
            name,
            ty: None,
            value: Some(value),
            marks: Vec::new(),
        })
    }

    fn method(&mut self, node: Node<'n>) -> FunctionId {
        let text = field(node, "name")
            .map(|n| self.l.text(n))
            .unwrap_or_default();
        let name = Some(self.l.sym(text));
        let outside = std::mem::take(&mut self.members);
        self.locals.push(HashSet::new());
        let params = field(node, "parameters")
            .map(|p| self.parameters(p))
            .unwrap_or_default();
        let mut body = match field(node, "body") {
            Some(b) if b.kind() == "body_statement" => self.body(b),
            Some(b) => {
                let mut out = Vec::new();
                self.statement(b, &mut out);
                out
            }
            None => Vec::new(),
        };
        self.locals.pop();
        self.members = outside;
        return_last(&mut body);
        let function = Function {
            span: span(node),
            name,
            params,
            body,
            is_static: node.kind() == "singleton_method",
            is_constructor: text == "initialize",
            ..Default::default()
        };
        self.l.module.add_function(function)
    }

    fn parameters(&mut self, node: Node<'n>) -> Vec<Param> {
        let mut out = Vec::new();
        for p in children(node) {
            self.bind(p);
            let name = field(p, "name").unwrap_or(p);
            let mut param = Param {
                span: span(p),
                ..Default::default()
            };
            match p.kind() {
                "identifier" | "optional_parameter" | "keyword_parameter" => {
                    param.name = Some(self.l.sym_of(name));
                    param.default = field(p, "value").map(|v| self.expr(v));
                }
                "splat_parameter" | "hash_splat_parameter" => {
                    param.name = field(p, "name").map(|n| self.l.sym_of(n));
                    param.is_variadic = true;
                }
                "destructured_parameter" => {
                    let targets = children(p).into_iter().map(|n| self.expr(n)).collect();
                    param.pattern = Some(self.collection(p, targets));
                }
                _ => continue,
            }
            out.push(param);
        }
        out
    }

    /// Lowers a block, `->(x) { … }` or `lambda { … }` as a function literal.
    fn closure(&mut self, node: Node<'n>, body_at: Node<'n>) -> ExprId {
        let params = field(node, "parameters")
            .map(|p| self.parameters(p))
            .unwrap_or_default();
        let mut body = match field(body_at, "body") {
            Some(b) if matches!(b.kind(), "block" | "do_block") => self.body_of(b, "body"),
            Some(b) => self.body(b),
            None => Vec::new(),
        };
        return_last(&mut body);
        let function = Function {
            span: span(node),
            params,
            body,
            ..Default::default()
        };
        let id = self.l.module.add_function(function);
        self.l.expr(node, ExprKind::Function(id))
    }

    /// Records the local variables in a pattern or a parameter.
    fn bind(&mut self, node: Node<'n>) {
        match node.kind() {
            "identifier" => {
                let name = self.l.text(node).to_owned();
                if let Some(locals) = self.locals.last_mut() {
                    locals.insert(name);
                }
            }
            "call" | "element_reference" => {}
            "optional_parameter" | "keyword_parameter" => {
                if let Some(name) = field(node, "name") {
                    self.bind(name);
                }
            }
            _ => children(node).into_iter().for_each(|n| self.bind(n)),
        }
    }

    fn is_local(&self, name: &str) -> bool {
        self.locals.last().is_some_and(|l| l.contains(name))
    }

    /// Lowers statements whose last value is the value of an expression, and stores that value in a
    /// new variable.
    fn valued(&mut self, node: Node<'n>) -> ExprId {
        self.fresh += 1;
        let name = format!("__value{}", self.fresh);
        let mut body = Vec::new();
        self.statement(node, &mut body);
        let target = self.l.named(node, &name);
        store_last(self.l, node, target, &mut body);
        let value = Some(target);
        self.l.expr(node, ExprKind::Block { body, value })
    }
}

/// Turns the last expressions of a body into its result.
fn return_last(body: &mut CodeBlock) {
    let Some(last) = body.last_mut() else { return };
    match &mut last.kind {
        StmtKind::Expr(id) => last.kind = StmtKind::Return(Some(*id)),
        StmtKind::If {
            then, otherwise, ..
        } => {
            return_last(then);
            return_last(otherwise);
        }
        StmtKind::Switch { cases, .. } => cases.iter_mut().for_each(|c| return_last(&mut c.body)),
        StmtKind::Try { body, catches, .. } => {
            return_last(body);
            catches.iter_mut().for_each(|c| return_last(&mut c.body));
        }
        StmtKind::Block(inside) => return_last(inside),
        _ => {}
    }
}

/// Stores the last expressions of a body in a variable.
fn store_last(l: &mut Lower<'_>, node: Node<'_>, target: ExprId, body: &mut CodeBlock) {
    let Some(last) = body.last_mut() else { return };
    match &mut last.kind {
        StmtKind::Expr(id) => {
            let id = l.expr(
                node,
                ExprKind::Assign {
                    target,
                    op: None,
                    value: *id,
                },
            );
            last.kind = StmtKind::Expr(id);
        }
        StmtKind::If {
            then, otherwise, ..
        } => {
            store_last(l, node, target, then);
            store_last(l, node, target, otherwise);
        }
        StmtKind::Switch { cases, .. } => cases
            .iter_mut()
            .for_each(|c| store_last(l, node, target, &mut c.body)),
        StmtKind::Try { body, catches, .. } => {
            store_last(l, node, target, body);
            catches
                .iter_mut()
                .for_each(|c| store_last(l, node, target, &mut c.body));
        }
        StmtKind::Block(inside) => store_last(l, node, target, inside),
        _ => {}
    }
}

/// Returns a statement with an expression that the lowering adds.
fn effect(node: Node<'_>, id: ExprId) -> Stmt {
    stmt(node, StmtKind::Expr(id))
}

/// Returns the operator of a binary expression.
fn operator(text: &str) -> Op {
    match text {
        "+" => Op::Add,
        "-" => Op::Sub,
        "*" => Op::Mul,
        "/" => Op::Div,
        "%" => Op::Rem,
        "&&" | "and" => Op::And,
        "||" | "or" => Op::Else,
        "==" | "===" | "eql?" => Op::Equal,
        "!=" => Op::NotEqual,
        "<" => Op::Less,
        "<=" => Op::LessEqual,
        ">" => Op::Greater,
        ">=" => Op::GreaterEqual,
        "=~" => Op::Matches,
        _ => Op::Bits,
    }
}
