//! Expressions of C and C++.

use super::super::super::shape::{Arg, CodeBlock, CollectionItem, ExprId, ExprKind, Op, StmtKind};
use super::super::{children, field, integer, plain, stmt, unescape};
use super::C;
use tree_sitter::Node;

impl<'n> C<'_, '_> {
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

    fn first(&mut self, node: Node<'n>) -> ExprId {
        match children(node).first() {
            Some(n) => self.expr(*n),
            None => self.l.unknown(node, Vec::new()),
        }
    }

    fn expr_inside(&mut self, node: Node<'n>) -> ExprId {
        let kind = match node.kind() {
            "identifier" | "type_identifier" | "field_identifier" | "namespace_identifier" => {
                return self.l.name(node);
            }
            "this" => ExprKind::This,
            "qualified_identifier" => {
                let text = self.l.text(node).replace("::", ".");
                return self
                    .l
                    .path(node, text.split('<').next().unwrap_or_default());
            }
            "template_function" | "template_method" => return self.expr_of(node, "name"),
            "string_literal" | "raw_string_literal" | "char_literal" => {
                let text = self.l.text(node);
                let text = text.trim_start_matches(['L', 'u', 'U', '8', 'R']);
                let text = unescape(text.trim_matches(['"', '\'']));
                return self.l.constant(node, &text);
            }
            "concatenated_string" => ExprKind::Concat(self.all(node)),
            "number_literal" => match integer(self.l.text(node)) {
                Some(n) => ExprKind::Int(n),
                None => ExprKind::Float(0.0),
            },
            "true" => ExprKind::Bool(true),
            "false" => ExprKind::Bool(false),
            "null" => ExprKind::Null,
            "field_expression" => {
                let (Some(of), Some(name)) = (field(node, "argument"), field(node, "field")) else {
                    return self.first(node);
                };
                let of = self.expr(of);
                let name = self.l.sym_of(name);
                ExprKind::Member { of, name }
            }
            "subscript_expression" => return self.index(node),
            "call_expression" => return self.call(node),
            "new_expression" => ExprKind::Unknown(self.all(node)),
            "assignment_expression" => return self.assignment(node),
            "init_declarator" => return self.assignment(node),
            "binary_expression" => return self.binary(node),
            "unary_expression" => {
                let id = self.expr_of(node, "argument");
                match field(node, "operator").map(|o| self.l.text(o)) {
                    Some("!") => ExprKind::Not(id),
                    _ => ExprKind::Negate(id),
                }
            }
            "conditional_expression" => {
                let (test, no) = (
                    self.expr_of(node, "condition"),
                    self.expr_of(node, "alternative"),
                );
                match field(node, "consequence") {
                    Some(yes) => ExprKind::Conditional {
                        test,
                        yes: self.expr(yes),
                        no,
                    },
                    None => ExprKind::Binary {
                        op: Op::Else,
                        left: test,
                        right: no,
                    },
                }
            }
            // A cast to a number keeps the data, because data matters for sizes.
            "cast_expression" | "static_cast_expression" => {
                ExprKind::Pass(self.expr_of(node, "value"))
            }
            "update_expression" => {
                let target = self.expr_of(node, "argument");
                if !matches!(self.l.module.expr(target).kind, ExprKind::Name(_)) {
                    return target;
                }
                // A counter is not constant, and a pointer keeps its data.
                let value = self.l.unknown(node, vec![target]);
                ExprKind::Assign {
                    target,
                    op: None,
                    value,
                }
            }
            "pointer_expression" => ExprKind::Pass(self.expr_of(node, "argument")),
            "parenthesized_expression"
            | "condition_clause"
            | "extension_expression"
            | "initializer_pair"
            | "compound_literal_expression" => match children(node).last() {
                Some(n) => ExprKind::Pass(self.expr(*n)),
                None => ExprKind::Unknown(Vec::new()),
            },
            "comma_expression" => {
                let first = self.expr_of(node, "left");
                let value = Some(self.expr_of(node, "right"));
                ExprKind::Block {
                    body: vec![stmt(node, StmtKind::Expr(first))],
                    value,
                }
            }
            "initializer_list" | "argument_list" => {
                let values = self.all(node);
                let items = values
                    .into_iter()
                    .map(|value| CollectionItem {
                        key: None,
                        value,
                        is_spread: false,
                    })
                    .collect();
                ExprKind::Collection(items)
            }
            "sizeof_expression" | "alignof_expression" | "offsetof_expression" => ExprKind::Int(8),
            "lambda_expression" => return self.lambda(node),
            _ => ExprKind::Unknown(self.all(node)),
        };
        self.l.expr(node, kind)
    }

    fn index(&mut self, node: Node<'n>) -> ExprId {
        let of = self.expr_of(node, "argument");
        let Some(key) = field(node, "index").or_else(|| field(node, "indices")) else {
            return of;
        };
        let mut body: CodeBlock = Vec::new();
        self.past_end(node, key, &mut body);
        let id = self.expr(key);
        if key.kind() == "identifier" && self.is_number_of_input(key) {
            let call = self.l.call(node, "__index", vec![id]);
            body.push(stmt(node, StmtKind::Expr(call)));
        }
        let index = self.l.expr(node, ExprKind::Index { of, key: id });
        self.after(node, body, index)
    }

    /// Returns an expression that runs statements before its value is evaluated.
    fn after(&mut self, node: Node<'n>, body: CodeBlock, value: ExprId) -> ExprId {
        if body.is_empty() {
            return value;
        }
        self.l.expr(
            node,
            ExprKind::Block {
                body,
                value: Some(value),
            },
        )
    }

    fn assignment(&mut self, node: Node<'n>) -> ExprId {
        let left = field(node, "left").or_else(|| field(node, "declarator"));
        let right = field(node, "right").or_else(|| field(node, "value"));
        let (Some(left), Some(right)) = (left, right) else {
            return self.first(node);
        };
        let value = self.expr(right);
        let mut body = Vec::new();
        self.idiom_of_assignment(left, right, &mut body);
        let target = self.place(left, &mut body);
        let text = field(node, "operator")
            .map(|o| self.l.text(o))
            .unwrap_or("=");
        let op = if text == "=" {
            None
        } else {
            Some(operator(text.trim_end_matches('=')))
        };
        let id = self.l.expr(node, ExprKind::Assign { target, op, value });
        self.after(node, body, id)
    }

    /// Returns the target of an assignment. `*p = x` and `buf[i] = x` change the contents of `p`
    /// and `buf`.
    fn place(&mut self, node: Node<'n>, body: &mut CodeBlock) -> ExprId {
        match node.kind() {
            "subscript_expression" => {
                let of = self.expr_of(node, "argument");
                let Some(key) = field(node, "index").or_else(|| field(node, "indices")) else {
                    return of;
                };
                self.past_end(node, key, body);
                let id = self.expr(key);
                if key.kind() == "identifier" && self.is_number_of_input(key) {
                    let call = self.l.call(node, "__index", vec![id]);
                    body.push(stmt(node, StmtKind::Expr(call)));
                }
                self.l.expr(node, ExprKind::Index { of, key: id })
            }
            "pointer_expression" => {
                let of = self.expr_of(node, "argument");
                let key = self.l.expr(node, ExprKind::Int(0));
                self.l.expr(node, ExprKind::Index { of, key })
            }
            "init_declarator" | "pointer_declarator" | "array_declarator" => {
                match self.declared(node) {
                    Some(n) => self.l.name(n),
                    None => self.l.unknown(node, Vec::new()),
                }
            }
            _ => self.expr(node),
        }
    }

    fn binary(&mut self, node: Node<'n>) -> ExprId {
        let (Some(left), Some(right)) = (field(node, "left"), field(node, "right")) else {
            return self.first(node);
        };
        let text = field(node, "operator")
            .map(|o| self.l.text(o))
            .unwrap_or_default();
        if text == ">>" && self.is_stream(left) {
            // `std::cin >> name`
            let (from, to) = (self.expr(left), self.expr(right));
            let mut body = Vec::new();
            self.stream_into(node, right, &mut body);
            let id = self.l.expr(
                node,
                ExprKind::Assign {
                    target: to,
                    op: None,
                    value: from,
                },
            );
            return self.after(node, body, id);
        }
        if text == "<<" && self.l.language == super::super::super::FlowLanguage::Cpp {
            let parts = self.l.chain(node, "binary_expression", "<<");
            let ids: Vec<ExprId> = parts.into_iter().map(|n| self.expr(n)).collect();
            if let [target, values @ ..] = ids.as_slice()
                && matches!(self.l.module.expr(*target).kind, ExprKind::Name(_))
                && !values.is_empty()
            {
                let (target, values) = (*target, values.to_vec());
                let value = self.l.expr(node, ExprKind::Concat(values));
                return self.l.expr(
                    node,
                    ExprKind::Assign {
                        target,
                        op: Some(Op::Add),
                        value,
                    },
                );
            }
            return self.l.unknown(node, ids);
        }
        let op = operator(text);
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
        let (left, right) = (self.expr(left), self.expr(right));
        self.l.expr(node, ExprKind::Binary { op, left, right })
    }

    fn is_stream(&self, node: Node<'n>) -> bool {
        let text = self.l.text(node);
        text.starts_with("std::cin") || text.starts_with("cin")
    }

    fn call(&mut self, node: Node<'n>) -> ExprId {
        let Some(function) = field(node, "function") else {
            return self.first(node);
        };
        let list = field(node, "arguments").map(children).unwrap_or_default();
        let name = self
            .l
            .text(function)
            .trim_start_matches("std::")
            .trim_start_matches("::");
        let mut body: CodeBlock = Vec::new();
        self.memory_of_call(node, name, &list, &mut body);
        let writes = matches!(
            name,
            "fgets"
                | "recv"
                | "read"
                | "fread"
                | "recvfrom"
                | "strcpy"
                | "strcat"
                | "strncpy"
                | "strncat"
                | "memcpy"
                | "memmove"
                | "sprintf"
                | "snprintf"
                | "scanf"
                | "fscanf"
                | "sscanf"
                | "gets"
                | "pread"
                | "SSL_read"
        );
        let mut args: Vec<Arg> = Vec::new();
        let size = match name {
            "malloc" | "alloca" | "xmalloc" => 0,
            "realloc" | "calloc" => 1,
            "memcpy" | "memmove" | "strncpy" | "strncat" => 2,
            _ => usize::MAX,
        };
        let whole = node;
        for (i, a) in list.iter().enumerate() {
            let node = if writes { base(*a) } else { *a };
            let id = self.expr(node);
            if i == size && a.kind() == "identifier" && self.is_number_of_input(*a) {
                let sink = match name {
                    "alloca" => "__stack_size",
                    "malloc" | "xmalloc" | "realloc" | "calloc" => "__heap_size",
                    _ => "__copy_size",
                };
                let call = self.l.call(whole, sink, vec![id]);
                body.push(stmt(whole, StmtKind::Expr(call)));
            }
            args.push(plain(id));
        }
        let callee = match name {
            // The size of the target is derived from the source.
            "strcpy" | "strcat" | "memcpy" | "memmove" if self.is_measured(&list) => {
                self.l.named(function, &format!("__measured_{name}"))
            }
            // `mask = umask(0)` reads the mask.
            "umask"
                if node
                    .parent()
                    .is_some_and(|p| p.kind() != "expression_statement") =>
            {
                self.l.named(function, "__umask_read")
            }
            "getenv" if list.first().is_some_and(|a| is_cgi(self.l.text(*a))) => {
                self.l.named(function, "__cgi_getenv")
            }
            "getline"
                if list
                    .first()
                    .is_some_and(|a| a.kind() != "pointer_expression") =>
            {
                self.l.path(function, "std.getline")
            }
            _ if function.kind() == "qualified_identifier" => {
                self.l.path(function, &name.replace("::", "."))
            }
            _ => self.expr(function),
        };
        let text = self.built(node, name, &list, &args);
        let id = self.l.expr(node, ExprKind::Call { callee, args });
        if let Some(text) = text {
            body.push(stmt(node, StmtKind::Expr(id)));
            return self.after(node, body, text);
        }
        self.after(node, body, id)
    }

    /// Returns the assignment that a call of a libc function makes if the function builds a text:
    /// `sprintf(t, "…%s", x)`, `strcat(t, x)`.
    fn built(
        &mut self,
        node: Node<'n>,
        name: &str,
        list: &[Node<'n>],
        args: &[Arg],
    ) -> Option<ExprId> {
        let first = match name {
            "sprintf" | "asprintf" => 1,
            "snprintf" => 2,
            "strcpy" | "strncpy" | "strlcpy" | "stpcpy" | "strcat" | "strncat" | "strlcat" => 1,
            _ => return None,
        };
        let mut target = base(*list.first()?);
        if target.kind() == "pointer_expression" {
            target = field(target, "argument")?;
        }
        let source = args.get(first)?.value;
        let (op, value) = match name {
            "sprintf" | "asprintf" | "snprintf" => {
                let items = args.get(first + 1..)?.iter().map(|a| CollectionItem {
                    key: None,
                    value: a.value,
                    is_spread: false,
                });
                let items = items.collect();
                let values = self.l.expr(node, ExprKind::Collection(items));
                (
                    None,
                    self.l.expr(
                        node,
                        ExprKind::Binary {
                            op: Op::Rem,
                            left: source,
                            right: values,
                        },
                    ),
                )
            }
            "strcat" | "strncat" | "strlcat" => (Some(Op::Add), source),
            _ => (None, source),
        };
        let mut ignored = Vec::new();
        let target = self.place(target, &mut ignored);
        Some(self.l.expr(node, ExprKind::Assign { target, op, value }))
    }
}

/// Returns true for the name of a variable that a web server sets from the request.
fn is_cgi(text: &str) -> bool {
    let name = text.trim_matches('"');
    name.starts_with("HTTP_")
        || matches!(
            name,
            "QUERY_STRING" | "PATH_INFO" | "REQUEST_URI" | "CONTENT_LENGTH" | "REMOTE_USER"
        )
}

/// Returns the buffer in `buf + n`, `&buf[n]`, `(char *)buf`.
fn base(node: Node<'_>) -> Node<'_> {
    let next = match node.kind() {
        "binary_expression" => field(node, "left"),
        "pointer_expression" | "subscript_expression" => field(node, "argument"),
        "cast_expression" => field(node, "value"),
        "parenthesized_expression" => children(node).first().copied(),
        _ => None,
    };
    match next {
        Some(n) if n.kind() != "number_literal" && n.kind() != "string_literal" => base(n),
        _ => node,
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
        "==" => Op::Equal,
        "!=" => Op::NotEqual,
        "<" => Op::Less,
        "<=" => Op::LessEqual,
        ">" => Op::Greater,
        ">=" => Op::GreaterEqual,
        _ => Op::Bits,
    }
}
