//! Expressions of Go.

use super::super::super::shape::{Arg, ExprId, ExprKind, StmtKind};
use super::super::{children, field, integer, stmt};
use super::{Go, item, text};
use tree_sitter::Node;

impl Go<'_, '_> {
    /// Returns one value, or a list of them.
    pub(super) fn list(&mut self, node: Node<'_>, values: Vec<ExprId>) -> ExprId {
        match values.as_slice() {
            [one] => *one,
            _ => {
                let items = values.into_iter().map(item).collect();
                self.l.expr(node, ExprKind::Collection(items))
            }
        }
    }

    /// Lowers an expression.
    pub(super) fn expr(&mut self, node: Node<'_>) -> ExprId {
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
    pub(super) fn part(&mut self, node: Node<'_>, name: &'static str) -> ExprId {
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

    pub(super) fn member(&mut self, node: Node<'_>) -> ExprId {
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

    pub(super) fn call(&mut self, node: Node<'_>) -> ExprId {
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

    pub(super) fn arg(&mut self, node: Node<'_>) -> Arg {
        Arg {
            keyword: None,
            value: self.expr(node),
            is_spread: node.kind() == "variadic_argument",
        }
    }
}
