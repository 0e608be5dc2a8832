//! Expressions of C#.

use super::super::super::shape::{
    Arm, CollectionItem, ExprId, ExprKind, Function, Op, Param, StmtKind,
};
use super::super::{child, children, field, integer, span, stmt, unescape};
use super::{CSharp, operator};
use tree_sitter::Node;

impl<'n> CSharp<'_, '_> {
    pub(super) fn expr_of(&mut self, node: Node<'n>, name: &'static str) -> ExprId {
        match field(node, name) {
            Some(n) => self.expr(n),
            None => self.l.unknown(node, Vec::new()),
        }
    }

    pub(super) fn expr(&mut self, node: Node<'n>) -> ExprId {
        if !self.l.enter() {
            return self.l.unknown(node, Vec::new());
        }
        let id = self.expr_inside(node);
        self.l.leave();
        id
    }

    fn all(&mut self, node: Node<'n>) -> Vec<ExprId> {
        children(node).into_iter().map(|n| self.expr(n)).collect()
    }

    pub(super) fn first(&mut self, node: Node<'n>) -> ExprId {
        match children(node).first() {
            Some(n) => self.expr(*n),
            None => self.l.unknown(node, Vec::new()),
        }
    }

    /// Returns the target of a declaration.
    pub(super) fn target(&mut self, node: Node<'n>) -> ExprId {
        match node.kind() {
            "tuple_pattern" | "parenthesized_variable_designation" | "tuple_expression" => {
                let items = children(node).into_iter().map(|n| self.target(n));
                let items = items
                    .map(|value| CollectionItem {
                        key: None,
                        value,
                        is_spread: false,
                    })
                    .collect();
                self.l.expr(node, ExprKind::Collection(items))
            }
            "argument" => match children(node).last() {
                Some(n) => self.target(*n),
                None => self.l.unknown(node, Vec::new()),
            },
            "declaration_expression" => match field(node, "name") {
                Some(n) => self.target(n),
                None => self.l.unknown(node, Vec::new()),
            },
            "identifier" => self.l.name(node),
            _ => self.expr(node),
        }
    }

    fn expr_inside(&mut self, node: Node<'n>) -> ExprId {
        let kind = match node.kind() {
            "identifier" | "predefined_type" => return self.l.name(node),
            "generic_name" => return self.generic(node),
            "qualified_name" | "alias_qualified_name" => {
                let text = self.l.text(node).replace("global::", "").replace("::", ".");
                return self
                    .l
                    .path(node, text.split('<').next().unwrap_or_default());
            }
            "this" | "this_expression" => ExprKind::This,
            "base" | "base_expression" => ExprKind::Super,
            "string_literal"
            | "verbatim_string_literal"
            | "raw_string_literal"
            | "character_literal" => {
                let text = self.string(node);
                return self.l.constant(node, &text);
            }
            "interpolated_string_expression" => return self.interpolated(node),
            "integer_literal" => match integer(self.l.text(node)) {
                Some(n) => ExprKind::Int(n),
                None => ExprKind::Float(0.0),
            },
            "real_literal" => ExprKind::Float(self.l.text(node).parse().unwrap_or_default()),
            "boolean_literal" => ExprKind::Bool(self.l.text(node) == "true"),
            "null_literal" | "default_expression" => ExprKind::Null,
            "member_access_expression" => return self.member(node),
            "member_binding_expression" | "element_binding_expression" => {
                return self.binding(node);
            }
            "conditional_access_expression" => return self.conditional_access(node),
            "element_access_expression" => return self.element(node),
            "invocation_expression" => return self.call(node),
            "object_creation_expression" | "implicit_object_creation_expression" => {
                return self.creation(node);
            }
            "assignment_expression" => return self.assignment(node),
            "binary_expression" => return self.binary(node),
            "prefix_unary_expression" | "unary_expression" | "postfix_unary_expression" => {
                let id = self.first(node);
                let text = self.l.text(node);
                let is_step = ["++", "--"]
                    .iter()
                    .any(|s| text.starts_with(s) || text.ends_with(s));
                if is_step {
                    let value = self.l.expr(node, ExprKind::Int(1));
                    let assign = ExprKind::Assign {
                        target: id,
                        op: Some(Op::Sub),
                        value,
                    };
                    return self.l.expr(node, assign);
                }
                match text.as_bytes().first() {
                    Some(b'!') => ExprKind::Not(id),
                    Some(b'-' | b'~' | b'+') => ExprKind::Negate(id),
                    _ => ExprKind::Pass(id),
                }
            }
            "conditional_expression" => {
                let (test, yes) = (
                    self.expr_of(node, "condition"),
                    self.expr_of(node, "consequence"),
                );
                ExprKind::Conditional {
                    test,
                    yes,
                    no: self.expr_of(node, "alternative"),
                }
            }
            "cast_expression" => {
                let of = self.expr_of(node, "value");
                match field(node, "type").and_then(|t| self.type_name(t)) {
                    Some(ty) => ExprKind::Cast { of, ty },
                    None => ExprKind::Pass(of),
                }
            }
            "as_expression" => ExprKind::Pass(self.expr_of(node, "left")),
            "is_expression" => {
                let of = self.expr_of(node, "left");
                match field(node, "right").and_then(|t| self.type_name(t)) {
                    Some(ty) => ExprKind::IsType { of, ty },
                    None => ExprKind::Not(of),
                }
            }
            "is_pattern_expression" => return self.is_pattern(node),
            "lambda_expression" | "anonymous_method_expression" => return self.lambda(node),
            "switch_expression" => return self.switch_expression(node),
            "array_creation_expression"
            | "implicit_array_creation_expression"
            | "stackalloc_expression" => match child(node, "initializer_expression") {
                Some(i) => return self.collection(i),
                None => ExprKind::Collection(Vec::new()),
            },
            "initializer_expression" | "collection_expression" | "tuple_expression" => {
                return self.collection(node);
            }
            "anonymous_object_creation_expression" => return self.anonymous(node),
            "argument" | "expression_element" | "spread_element" => match children(node).last() {
                Some(n) => return self.expr(*n),
                None => ExprKind::Unknown(Vec::new()),
            },
            "parenthesized_expression"
            | "await_expression"
            | "checked_expression"
            | "ref_expression"
            | "arrow_expression_clause"
            | "constant_pattern"
            | "interpolation" => ExprKind::Pass(self.first(node)),
            "declaration_expression" => return self.target(node),
            "typeof_expression" | "sizeof_expression" => {
                let text = self.l.text(node).to_owned();
                return self.l.constant(node, &text);
            }
            "throw_expression" => {
                let value = Some(self.first(node));
                let body = vec![stmt(node, StmtKind::Throw(value))];
                ExprKind::Block { body, value: None }
            }
            _ => ExprKind::Unknown(self.all(node)),
        };
        self.l.expr(node, kind)
    }

    fn generic(&mut self, node: Node<'n>) -> ExprId {
        match children(node).first() {
            Some(n) => self.l.name(*n),
            None => self.l.name(node),
        }
    }

    fn string(&self, node: Node<'n>) -> String {
        let text = self.l.text(node);
        match node.kind() {
            "verbatim_string_literal" => text
                .trim_start_matches('@')
                .trim_matches('"')
                .replace("\"\"", "\""),
            "raw_string_literal" => text.trim_matches('"').to_owned(),
            _ => unescape(text.trim_end_matches("u8").trim_matches(['"', '\''])),
        }
    }

    fn interpolated(&mut self, node: Node<'n>) -> ExprId {
        let mut parts = Vec::new();
        for n in children(node) {
            match n.kind() {
                "string_content" | "escape_sequence" => {
                    let text = unescape(self.l.text(n))
                        .replace("{{", "{")
                        .replace("}}", "}");
                    parts.push(self.l.constant(n, &text));
                }
                "interpolation" => {
                    if let Some(e) = children(n)
                        .into_iter()
                        .find(|c| !c.kind().starts_with("interpolation_"))
                    {
                        parts.push(self.expr(e));
                    }
                }
                _ => {}
            }
        }
        self.l.expr(node, ExprKind::Concat(parts))
    }

    fn member(&mut self, node: Node<'n>) -> ExprId {
        let (Some(of), Some(name)) = (field(node, "expression"), field(node, "name")) else {
            return self.first(node);
        };
        let name = if name.kind() == "generic_name" {
            children(name).first().copied().unwrap_or(name)
        } else {
            name
        };
        let word = self.l.text(name);
        let control = self.l.text(of).trim_start_matches("this.");
        let of = if matches!(word, "Text" | "Value")
            && has_prefix(control, &["txt", "tb", "textBox", "hdn", "hid"])
        {
            self.l.named(of, "__textbox")
        } else if word == "Text"
            && self.is_web
            && has_prefix(control, &["lbl", "lit", "ltl", "label", "literal"])
        {
            self.l.named(of, "__label")
        } else {
            self.expr(of)
        };
        let name = self.l.sym_of(name);
        self.l.expr(node, ExprKind::Member { of, name })
    }

    fn binding(&mut self, node: Node<'n>) -> ExprId {
        let Some(of) = self.bindings.last().copied() else {
            return self.l.unknown(node, Vec::new());
        };
        if node.kind() == "element_binding_expression" {
            let key = self.first(node);
            return self.l.expr(node, ExprKind::Index { of, key });
        }
        let Some(name) = field(node, "name") else {
            return of;
        };
        let name = if name.kind() == "generic_name" {
            children(name).first().copied().unwrap_or(name)
        } else {
            name
        };
        let name = self.l.sym_of(name);
        self.l.expr(node, ExprKind::Member { of, name })
    }

    fn conditional_access(&mut self, node: Node<'n>) -> ExprId {
        let Some(condition) = field(node, "condition") else {
            return self.first(node);
        };
        let of = self.expr(condition);
        self.bindings.push(of);
        let rest = children(node)
            .into_iter()
            .rfind(|n| n.id() != condition.id());
        let id = match rest {
            Some(n) => self.expr(n),
            None => of,
        };
        self.bindings.pop();
        id
    }

    fn element(&mut self, node: Node<'n>) -> ExprId {
        let Some(object) = field(node, "expression") else {
            return self.first(node);
        };
        let text = self.l.text(object);
        let mut of = self.expr(object);
        if text == "Request" || text.ends_with(".Request") {
            let name = self.l.sym("Item");
            of = self.l.expr(object, ExprKind::Member { of, name });
        }
        let keys = field(node, "subscript")
            .map(|s| self.all(s))
            .unwrap_or_default();
        match keys.as_slice() {
            [key] => {
                let key = *key;
                self.l.expr(node, ExprKind::Index { of, key })
            }
            _ => self.l.unknown(node, vec![of]),
        }
    }

    fn collection(&mut self, node: Node<'n>) -> ExprId {
        let mut items = Vec::new();
        for n in children(node) {
            match (n.kind(), field(n, "left"), field(n, "right")) {
                ("assignment_expression", Some(key), Some(value)) => {
                    let key = self.expr(key);
                    items.push(CollectionItem {
                        key: Some(key),
                        value: self.expr(value),
                        is_spread: false,
                    });
                }
                _ => items.push(CollectionItem {
                    key: None,
                    value: self.expr(n),
                    is_spread: n.kind() == "spread_element",
                }),
            }
        }
        self.l.expr(node, ExprKind::Collection(items))
    }

    /// Lowers `new { id, Name = n }`.
    fn anonymous(&mut self, node: Node<'n>) -> ExprId {
        let mut items = Vec::new();
        let parts = children(node);
        let mut i = 0;
        while let Some(n) = parts.get(i) {
            let is_name = n.kind() == "identifier"
                && n.next_sibling().is_some_and(|s| s.kind() == "=")
                && parts.get(i + 1).is_some();
            let (key, value) = match parts.get(i + 1) {
                Some(value) if is_name => (*n, *value),
                _ => (*n, *n),
            };
            i += if is_name { 2 } else { 1 };
            let text = self.l.text(key);
            let text = text.rsplit('.').next().unwrap_or_default();
            let key = self.l.constant(key, text);
            items.push(CollectionItem {
                key: Some(key),
                value: self.expr(value),
                is_spread: false,
            });
        }
        self.l.expr(node, ExprKind::Collection(items))
    }

    fn assignment(&mut self, node: Node<'n>) -> ExprId {
        let (Some(left), Some(right)) = (field(node, "left"), field(node, "right")) else {
            return self.first(node);
        };
        let value = self.expr(right);
        let target = self.expr(left);
        let text = field(node, "operator")
            .map(|o| self.l.text(o))
            .unwrap_or("=");
        // `callback += delegate { … }` sets an event.
        let op = match text {
            "=" => None,
            "+=" if matches!(
                right.kind(),
                "lambda_expression" | "anonymous_method_expression"
            ) =>
            {
                None
            }
            _ => Some(operator(text.trim_end_matches('='))),
        };
        let id = self.l.expr(node, ExprKind::Assign { target, op, value });
        let mut body = Vec::new();
        self.idiom_of_assignment(left, right, &mut body);
        if left.kind() == "element_access_expression" && self.l.text(left).contains("Session[") {
            let key = field(left, "subscript").map(|s| self.first(s));
            let args = key.into_iter().chain([value]).collect();
            let call = self.l.call(node, "Session.[]=", args);
            body.push(stmt(node, StmtKind::Expr(call)));
        }
        if body.is_empty() {
            id
        } else {
            self.l.expr(
                node,
                ExprKind::Block {
                    body,
                    value: Some(id),
                },
            )
        }
    }

    fn binary(&mut self, node: Node<'n>) -> ExprId {
        let (Some(left), Some(right)) = (field(node, "left"), field(node, "right")) else {
            return self.first(node);
        };
        let op = field(node, "operator")
            .map(|o| operator(self.l.text(o)))
            .unwrap_or(Op::Bits);
        if op == Op::Add {
            let mut sum: Option<ExprId> = None;
            for part in self.l.chain(node, "binary_expression", "+") {
                let right = self.expr(part);
                sum = Some(match sum {
                    Some(left) => self.l.expr(node, ExprKind::Binary { op, left, right }),
                    None => right,
                });
            }
            return sum.unwrap_or_else(|| self.l.unknown(node, Vec::new()));
        }
        let is_secret =
            matches!(op, Op::Equal | Op::NotEqual) && self.is_secret_comparison(node, left, right);
        let (a, b) = (self.expr(left), self.expr(right));
        let id = self.l.expr(
            node,
            ExprKind::Binary {
                op,
                left: a,
                right: b,
            },
        );
        if !is_secret {
            return id;
        }
        let call = self.l.call(node, "__secret_compare", Vec::new());
        let body = vec![stmt(node, StmtKind::Expr(call))];
        self.l.expr(
            node,
            ExprKind::Block {
                body,
                value: Some(id),
            },
        )
    }

    /// Lowers `x is string s`, `x is null`, `x is "a" or "b"`.
    fn is_pattern(&mut self, node: Node<'n>) -> ExprId {
        let of = self.expr_of(node, "expression");
        let Some(pattern) = field(node, "pattern") else {
            return of;
        };
        match pattern.kind() {
            "constant_pattern" => {
                let right = self.first(pattern);
                self.l.expr(
                    node,
                    ExprKind::Binary {
                        op: Op::Equal,
                        left: of,
                        right,
                    },
                )
            }
            "negated_pattern" => {
                let inside = children(pattern).first().copied();
                let right = match inside {
                    Some(n) if n.kind() == "constant_pattern" => self.first(n),
                    _ => self.l.unknown(pattern, Vec::new()),
                };
                self.l.expr(
                    node,
                    ExprKind::Binary {
                        op: Op::NotEqual,
                        left: of,
                        right,
                    },
                )
            }
            "or_pattern" => {
                let mut tests = Vec::new();
                self.alternatives(pattern, &mut tests);
                let items = tests
                    .into_iter()
                    .map(|value| CollectionItem {
                        key: None,
                        value,
                        is_spread: false,
                    })
                    .collect();
                let right = self.l.expr(pattern, ExprKind::Collection(items));
                self.l.expr(
                    node,
                    ExprKind::Binary {
                        op: Op::In,
                        left: of,
                        right,
                    },
                )
            }
            _ => {
                let not = self.l.expr(node, ExprKind::Not(of));
                let Some(name) = field(pattern, "name") else {
                    return not;
                };
                let target = self.target(name);
                let body = vec![self.l.assign(node, target, of)];
                self.l.expr(
                    node,
                    ExprKind::Block {
                        body,
                        value: Some(not),
                    },
                )
            }
        }
    }

    fn lambda(&mut self, node: Node<'n>) -> ExprId {
        let params: Vec<Param> = field(node, "parameters")
            .map(|p| self.parameters(p))
            .unwrap_or_default();
        let mut body = self.harmless(node, &params);
        match field(node, "body").or_else(|| child(node, "block")) {
            Some(b) if b.kind() == "block" => body.extend(self.body(b)),
            Some(b) => {
                let value = Some(self.expr(b));
                body.push(stmt(b, StmtKind::Return(value)));
            }
            None => {}
        }
        let function = Function {
            span: span(node),
            params,
            body,
            ..Default::default()
        };
        let id = self.l.module.add_function(function);
        self.l.expr(node, ExprKind::Function(id))
    }

    fn switch_expression(&mut self, node: Node<'n>) -> ExprId {
        let mut subject = None;
        let mut arms = Vec::new();
        for n in children(node) {
            if n.kind() != "switch_expression_arm" {
                subject = Some(self.expr(n));
                continue;
            }
            let parts = children(n);
            let (Some(pattern), Some(value)) = (parts.first(), parts.last()) else {
                continue;
            };
            let mut tests = Vec::new();
            match pattern.kind() {
                "discard" | "var_pattern" => {}
                "constant_pattern" => tests.push(self.first(*pattern)),
                "or_pattern" => self.alternatives(*pattern, &mut tests),
                _ => tests.push(self.l.unknown(*pattern, Vec::new())),
            }
            arms.push(Arm {
                tests,
                value: self.expr(*value),
            });
        }
        self.l.expr(node, ExprKind::Match { subject, arms })
    }
}

/// Returns true if the name of a control has one of the prefixes, which a word follows.
fn has_prefix(control: &str, prefixes: &[&str]) -> bool {
    prefixes
        .iter()
        .any(|p| control.strip_prefix(p).is_some_and(begins_word))
}

/// Returns true if the text after a prefix of a name begins a new word: `Name` of `txtName`,
/// nothing, or `_1`.
fn begins_word(rest: &str) -> bool {
    rest.chars()
        .next()
        .is_none_or(|c| c.is_uppercase() || c == '_' || c.is_ascii_digit())
}
