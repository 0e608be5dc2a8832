//! Formats and literals of Go.

use super::super::super::shape::{Arg, CollectionItem, ExprId, ExprKind};
use super::super::{children, field, plain};
use super::{Go, item, text};
use tree_sitter::Node;

impl Go<'_, '_> {
    /// Lowers the arguments of a function that formats. An argument of a verb for numbers is a
    /// number.
    pub(super) fn formatted_args(&mut self, arguments: &[Node<'_>], at: usize) -> Vec<Arg> {
        let format = arguments
            .get(at)
            .filter(|n| n.kind().ends_with("string_literal"));
        let verbs = format.and_then(|n| text::verbs(&text::literal(self.l.text(*n))));
        let mut out = Vec::new();
        for (index, node) in arguments.iter().enumerate() {
            let mut arg = self.arg(*node);
            let verb = verbs
                .as_ref()
                .and_then(|v| v.get(index.checked_sub(at + 1)?))
                .map(|v| v.1);
            if let Some(verb) = verb {
                arg.value = self.verb(*node, arg.value, verb);
            }
            out.push(arg);
        }
        out
    }

    /// Returns the parts of a formatted text. None: the format is not constant.
    pub(super) fn formatted(
        &mut self,
        format: Node<'_>,
        values: &[Node<'_>],
    ) -> Option<Vec<ExprId>> {
        if !format.kind().ends_with("string_literal") {
            return None;
        }
        let constant = text::literal(self.l.text(format));
        let verbs = text::verbs(&constant)?;
        if values.iter().any(|n| n.kind() == "variadic_argument") || verbs.len() != values.len() {
            return None;
        }
        let mut out = Vec::new();
        let mut at = 0;
        for (value, (range, verb)) in values.iter().zip(verbs) {
            let before = text::percent(constant.get(at..range.start)?);
            if !before.is_empty() {
                out.push(self.l.constant(format, &before));
            }
            let id = self.expr(*value);
            out.push(self.verb(*value, id, verb));
            at = range.end;
        }
        let rest = text::percent(constant.get(at..)?);
        if !rest.is_empty() || out.is_empty() {
            out.push(self.l.constant(format, &rest));
        }
        Some(out)
    }

    /// Returns a value in the notation of a verb.
    pub(super) fn verb(&mut self, node: Node<'_>, of: ExprId, verb: char) -> ExprId {
        match verb {
            'd' | 'b' | 'o' | 'x' | 'X' | 'e' | 'f' | 'g' | 't' | 'U' | 'p' | 'c' | 'T' => {
                let ty = self.l.sym("int");
                self.l.expr(node, ExprKind::Cast { of, ty })
            }
            'q' => {
                let callee = self.l.path(node, "strconv.Quote");
                self.l.expr(
                    node,
                    ExprKind::Call {
                        callee,
                        args: vec![plain(of)],
                    },
                )
            }
            _ => of,
        }
    }

    /// Lowers `T{…}`.
    pub(super) fn literal(&mut self, node: Node<'_>) -> ExprId {
        let (Some(ty), Some(body)) = (field(node, "type"), field(node, "body")) else {
            return self.l.unknown(node, Vec::new());
        };
        let ty = if ty.kind() == "generic_type" {
            field(ty, "type").unwrap_or(ty)
        } else {
            ty
        };
        match ty.kind() {
            "qualified_type" => {
                let callee = self.member(ty);
                let mut args = self.keywords(body, &[]);
                if self.l.text(ty) == "http.Cookie" {
                    self.later_flags(node, &mut args);
                }
                self.l.expr(node, ExprKind::Call { callee, args })
            }
            "type_identifier" => {
                let Some(names) = self.structs.get(self.l.text(ty)).cloned() else {
                    return if self.is_keyed(body) {
                        self.elements(body)
                    } else {
                        self.named_elements(body)
                    };
                };
                let class = self.l.name(ty);
                let args = self.keywords(body, &names);
                self.l.expr(node, ExprKind::New { class, args })
            }
            _ => self.elements(body),
        }
    }

    /// Adds the flags that the enclosing function sets after the literal of a cookie. A cookie that
    /// is deleted needs none.
    fn later_flags(&mut self, node: Node<'_>, args: &mut Vec<Arg>) {
        let mut at = node;
        while let Some(parent) = at.parent() {
            at = parent;
            if matches!(
                at.kind(),
                "function_declaration" | "method_declaration" | "func_literal"
            ) {
                break;
            }
        }
        let (text, own) = (self.l.text(at), self.l.text(node));
        let is_deletion = own.contains("MaxAge: -1")
            || own.contains("Expires: time.Unix(0")
            || own.contains("MaxAge:   -1");
        for flag in ["Secure", "HttpOnly"] {
            if is_deletion || text.contains(&format!(".{flag} =")) {
                let value = self.l.unknown(node, Vec::new());
                let keyword = Some(self.l.sym(flag));
                args.push(Arg {
                    keyword,
                    value,
                    is_spread: false,
                });
            }
        }
    }

    /// Returns true if a key of a literal is not the name of a field.
    pub(super) fn is_keyed(&self, body: Node<'_>) -> bool {
        let keys = children(body).into_iter().filter_map(|n| field(n, "key"));
        keys.into_iter().any(|k| {
            !self
                .l
                .text(k)
                .chars()
                .all(|c| c.is_alphanumeric() || c == '_')
        })
    }

    /// Returns the elements of a literal as arguments. Keys become keywords.
    pub(super) fn keywords(&mut self, body: Node<'_>, names: &[String]) -> Vec<Arg> {
        let mut out = Vec::new();
        for (index, element) in children(body).into_iter().enumerate() {
            if let (Some(key), Some(value)) = (field(element, "key"), field(element, "value")) {
                let key = self.l.text(key).trim_matches(['"', '`']).to_owned();
                let keyword = Some(self.l.sym(&key));
                out.push(Arg {
                    keyword,
                    value: self.expr(value),
                    is_spread: false,
                });
            } else {
                let keyword = names.get(index).map(|n| self.l.sym(n));
                out.push(Arg {
                    keyword,
                    value: self.expr(element),
                    is_spread: false,
                });
            }
        }
        out
    }

    /// Returns the elements of a slice, array or map.
    pub(super) fn elements(&mut self, body: Node<'_>) -> ExprId {
        let mut items = Vec::new();
        for element in children(body) {
            if let (Some(key), Some(value)) = (field(element, "key"), field(element, "value")) {
                let key = self.expr(key);
                items.push(CollectionItem {
                    key: Some(key),
                    value: self.expr(value),
                    is_spread: false,
                });
            } else {
                items.push(item(self.expr(element)));
            }
        }
        self.l.expr(body, ExprKind::Collection(items))
    }

    /// Returns the fields of a struct that another file declares.
    fn named_elements(&mut self, body: Node<'_>) -> ExprId {
        let mut items = Vec::new();
        for element in children(body) {
            if let (Some(key), Some(value)) = (field(element, "key"), field(element, "value")) {
                let name = self.l.text(key);
                let key = self.l.constant(key, name);
                items.push(CollectionItem {
                    key: Some(key),
                    value: self.expr(value),
                    is_spread: false,
                });
            } else {
                items.push(item(self.expr(element)));
            }
        }
        self.l.expr(body, ExprKind::Collection(items))
    }
}
