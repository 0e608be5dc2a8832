//! Calls of C#, and the creation of objects.

use super::super::super::shape::{Arg, CodeBlock, ExprId, ExprKind, StmtKind};
use super::super::words::is_exponential;
use super::super::{child, children, field, plain, stmt};
use super::CSharp;
use tree_sitter::Node;

/// Methods that turn the values in an interpolated text into parameters.
const PARAMETERIZED: [&str; 9] = [
    "FromSql",
    "FromSqlInterpolated",
    "SqlQuery",
    "ExecuteSql",
    "ExecuteSqlAsync",
    "ExecuteSqlInterpolated",
    "ExecuteSqlInterpolatedAsync",
    "ExecuteSqlCommand",
    "ExecuteSqlCommandAsync",
];
/// Classes whose rules check the absence of a member.
const OPTIONS: [&str; 2] = ["CookieOptions", "HttpCookie"];
impl<'n> CSharp<'_, '_> {
    pub(super) fn call(&mut self, node: Node<'n>) -> ExprId {
        let Some(function) = field(node, "function") else {
            return self.first(node);
        };
        let list = field(node, "arguments");
        if self.l.text(function) == "nameof" {
            let text = list
                .map(|l| self.l.text(l).trim_matches(['(', ')']).to_owned())
                .unwrap_or_default();
            return self.l.constant(node, &text);
        }
        let args = list.map(|l| self.arguments(l)).unwrap_or_default();
        let first = list.and_then(|l| {
            children(l)
                .first()
                .and_then(|a| children(*a).last().copied())
        });
        let mut callee = self.expr(function);
        let name = self.l.text(function);
        let name = name
            .split('<')
            .next()
            .unwrap_or_default()
            .rsplit(['.', '?'])
            .next()
            .unwrap_or_default();
        let is_raw =
            self.is_old_entity || (name.starts_with("ExecuteSqlCommand") && !self.is_core());
        if PARAMETERIZED.contains(&name)
            && first.is_some_and(|n| n.kind() == "interpolated_string_expression")
            && (!is_raw || name.contains("Interpolated"))
        {
            callee = self.l.named(function, "__interpolated_sql");
        }
        let mut body: CodeBlock = Vec::new();
        if name == "TryGetValue"
            && let ExprKind::Member { of, .. } = self.l.module.expr(callee).kind
            && let Some(target) = args.get(1).map(|a| a.value)
        {
            body.push(self.l.assign(node, target, of));
        }
        if name == "UseDeveloperExceptionPage" && !self.is_in_development(node) {
            let id = self.l.call(node, "__developer_page", Vec::new());
            body.push(stmt(node, StmtKind::Expr(id)));
        }
        if name == "IsMatch" || name == "Match" || name == "Matches" || name == "Replace" {
            self.exponential(list, &mut body);
        }
        self.password_hash(node, self.l.text(function), &mut body);
        self.unverified_token(node, name, &mut body);
        let mut id = self.l.expr(node, ExprKind::Call { callee, args });
        if self.is_lookup(function) {
            id = self.l.call(node, "__record", vec![id]);
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

    fn is_core(&self) -> bool {
        let words = ["Microsoft.EntityFrameworkCore"];
        self.l
            .module
            .imports
            .iter()
            .any(|i| words.contains(&self.l.module.word(i.path)))
    }

    /// Adds a call for each argument that is a regular expression with a nested quantifier.
    fn exponential(&mut self, list: Option<Node<'n>>, body: &mut CodeBlock) {
        for a in list.map(children).unwrap_or_default() {
            let Some(text) = children(a).last().copied() else {
                continue;
            };
            if matches!(text.kind(), "string_literal" | "verbatim_string_literal")
                && is_exponential(self.l.text(text).trim_start_matches('@').trim_matches('"'))
                && !self.l.text(list.unwrap_or(a)).contains("TimeSpan")
            {
                let id = self.l.call(text, "__nested_quantifier", Vec::new());
                body.push(stmt(text, StmtKind::Expr(id)));
            }
        }
    }

    fn arguments(&mut self, node: Node<'n>) -> Vec<Arg> {
        let mut out = Vec::new();
        for a in children(node) {
            let Some(value) = children(a).last().copied() else {
                continue;
            };
            let keyword = field(a, "name").map(|n| self.l.sym_of(n));
            let value = if a.kind() == "argument" {
                self.expr(value)
            } else {
                self.expr(a)
            };
            out.push(Arg {
                keyword,
                value,
                is_spread: false,
            });
        }
        out
    }

    pub(super) fn creation(&mut self, node: Node<'n>) -> ExprId {
        let ty = match field(node, "type") {
            Some(t) => self.type_name(t),
            None => self.type_around(node),
        };
        let word = ty
            .map(|t| self.l.module.word(t).to_owned())
            .unwrap_or_default();
        let class = self.l.path(node, &word);
        let list = field(node, "arguments").or_else(|| child(node, "argument_list"));
        let mut args = list.map(|l| self.arguments(l)).unwrap_or_default();
        let mut body: CodeBlock = Vec::new();
        if word == "Regex" {
            self.exponential(list, &mut body);
        }
        self.password_hash(node, &word, &mut body);
        let initializer =
            field(node, "initializer").or_else(|| child(node, "initializer_expression"));
        let sets: Vec<Node<'n>> = initializer.map(children).unwrap_or_default();
        let is_object = sets.iter().any(|n| n.kind() == "assignment_expression");
        let mut writes = Vec::new();
        for n in sets.iter().filter(|n| n.kind() == "assignment_expression") {
            let (Some(left), Some(right)) = (field(*n, "left"), field(*n, "right")) else {
                continue;
            };
            if left.kind() != "identifier" {
                args.push(plain(self.expr(right)));
                continue;
            }
            let keyword = self.l.sym_of(left);
            let value = self.expr(right);
            args.push(Arg {
                keyword: Some(keyword),
                value,
                is_spread: false,
            });
            writes.push((*n, keyword, value));
        }
        if OPTIONS.contains(&word.rsplit('.').next().unwrap_or_default()) {
            for member in ["Secure", "HttpOnly"] {
                if self.is_set_later(node, member) {
                    let keyword = Some(self.l.sym(member));
                    args.push(Arg {
                        keyword,
                        value: self.l.unknown(node, Vec::new()),
                        is_spread: false,
                    });
                }
            }
        }
        if !is_object {
            for n in &sets {
                args.push(plain(self.expr(*n)));
            }
        }
        let mut id = self.l.expr(node, ExprKind::New { class, args });
        if !writes.is_empty() {
            self.fresh += 1;
            let target = self.l.named(node, &format!("__new{}", self.fresh));
            body.push(stmt(
                node,
                StmtKind::Declare {
                    target,
                    ty,
                    value: Some(id),
                },
            ));
            for (n, name, value) in writes {
                let member = self.l.expr(n, ExprKind::Member { of: target, name });
                body.push(self.l.assign(n, member, value));
            }
            id = target;
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

    /// Returns the type of `new()`: the declared type of the variable or property.
    fn type_around(&mut self, node: Node<'n>) -> Option<super::Sym> {
        let mut at = node.parent();
        while let Some(n) = at {
            match n.kind() {
                "variable_declarator" | "equals_value_clause" => at = n.parent(),
                "variable_declaration" | "property_declaration" => {
                    return field(n, "type").and_then(|t| self.type_name(t));
                }
                _ => return None,
            }
        }
        None
    }
}
