//! Comparisons of secrets, and hashes of passwords, of Go.

use super::super::super::shape::{ExprId, ExprKind, StmtKind};
use super::super::words::{has_secret_name, hashes_password, last_word};
use super::super::{field, stmt};
use super::{Go, text};
use tree_sitter::Node;

/// Calls that read a value of the request.
const READS: [&str; 9] = [
    "Header.Get(",
    "GetHeader(",
    ".FormValue(",
    ".PostFormValue(",
    ".Query().Get(",
    ".URL.Query()",
    ".Param(",
    ".Query(",
    ".Cookie(",
];

impl<'t> Go<'_, 't> {
    pub(super) fn binary(&mut self, node: Node<'_>) -> ExprId {
        let operator = field(node, "operator")
            .map(|o| self.l.text(o))
            .unwrap_or_default();
        if operator == "+" {
            let parts = self.l.chain(node, "binary_expression", "+");
            if parts.iter().any(|n| {
                matches!(
                    n.kind(),
                    "interpreted_string_literal" | "raw_string_literal"
                )
            }) {
                let parts = parts.into_iter().map(|n| self.expr(n)).collect();
                return self.l.expr(node, ExprKind::Concat(parts));
            }
        }
        let is_secret = matches!(operator, "==" | "!=") && self.is_secret_comparison(node);
        let (left, right) = (self.part(node, "left"), self.part(node, "right"));
        let id = self.l.expr(
            node,
            ExprKind::Binary {
                op: text::operator(operator),
                left,
                right,
            },
        );
        if !is_secret {
            return id;
        }
        self.noted(node, "__secret_compare", id)
    }

    /// Returns an expression preceded by a call whose name has an entry in the table.
    pub(super) fn noted(&mut self, node: Node<'_>, name: &str, value: ExprId) -> ExprId {
        let call = self.l.call(node, name, Vec::new());
        let body = vec![stmt(node, StmtKind::Expr(call))];
        self.l.expr(
            node,
            ExprKind::Block {
                body,
                value: Some(value),
            },
        )
    }

    /// Returns true if a function that hashes a password uses a fast hash.
    pub(super) fn is_password_hash(&self, node: Node<'_>, callee: &str) -> bool {
        matches!(callee, "md5.New" | "sha1.New" | "sha256.New" | "sha512.New")
            && hashes_password(self.around(node))
    }

    /// Returns true if `==` compares a secret of the program with a value of the request, or two
    /// signatures.
    fn is_secret_comparison(&self, node: Node<'_>) -> bool {
        let (Some(left), Some(right)) = (field(node, "left"), field(node, "right")) else {
            return false;
        };
        if is_constant(left) || is_constant(right) {
            return false;
        }
        let (a, b) = (self.l.text(left), self.l.text(right));
        let (from_a, from_b) = (
            self.is_of_request(node, left),
            self.is_of_request(node, right),
        );
        if from_a != from_b {
            let (given, own) = if from_a { (a, b) } else { (b, a) };
            return has_secret_name(last_word(own))
                && (has_secret_name(last_word(given)) || is_secret_read(given));
        }
        is_signature(a) && is_signature(b) && self.around(node).contains("hmac.")
    }

    /// Returns true for a value of the request: a call that reads one, or a variable that the
    /// function sets to one.
    fn is_of_request(&self, node: Node<'_>, value: Node<'_>) -> bool {
        let name = self.l.text(value);
        if READS.iter().any(|r| name.contains(r)) {
            return true;
        }
        if value.kind() != "identifier" {
            return false;
        }
        let set = format!("{name} := ");
        let mut lines = self.around(node).lines().map(str::trim_start);
        lines.any(|line| {
            line.strip_prefix(&set)
                .is_some_and(|rest| READS.iter().any(|r| rest.contains(r)))
        })
    }

    /// Returns the text of the enclosing function.
    fn around(&self, node: Node<'_>) -> &'t str {
        let mut at = node;
        while let Some(parent) = at.parent() {
            at = parent;
            if matches!(
                at.kind(),
                "function_declaration" | "method_declaration" | "func_literal"
            ) {
                return self.l.text_around(self.l.text(at));
            }
        }
        ""
    }
}

/// Returns true for a literal.
fn is_constant(node: Node<'_>) -> bool {
    node.kind().ends_with("_literal") || matches!(node.kind(), "nil" | "true" | "false")
}

/// Returns true if the last word of an expression names a signature.
fn is_signature(text: &str) -> bool {
    let lower = last_word(text).to_ascii_lowercase();
    ["signature", "hmac", "mac", "sig", "digest"]
        .iter()
        .any(|w| lower.ends_with(w))
}

/// Returns true if a call reads a secret by its name: `r.Header.Get("X-Api-Token")`.
fn is_secret_read(text: &str) -> bool {
    let quoted = text.split('"').nth(1).unwrap_or_default();
    has_secret_name(&quoted.replace('-', "")) || quoted.eq_ignore_ascii_case("Authorization")
}
