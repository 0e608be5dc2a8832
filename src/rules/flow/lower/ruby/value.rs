//! Expressions of Ruby.

use super::super::super::shape::{Arg, CollectionItem, ExprId, ExprKind, Op};
use super::super::{children, field, integer, plain, unescape};
use super::{Ruby, effect, operator};
use tree_sitter::Node;

/// Methods whose first argument is a text or an array of a text and its values.
const SQL: [&str; 10] = [
    "where",
    "not",
    "find_by_sql",
    "having",
    "order",
    "joins",
    "rewhere",
    "update_all",
    "exists?",
    "find_by",
];
/// Methods that only return a part of their object. They become members, so that paths such as
/// `request.headers` are known.
const PARTS: [&str; 46] = [
    "connection",
    "lease_connection",
    "logger",
    "params",
    "headers",
    "cookies",
    "env",
    "signed",
    "permanent",
    "encrypted",
    "session",
    "body",
    "root",
    "request",
    "response",
    "db",
    "query_parameters",
    "request_parameters",
    "path_parameters",
    "GET",
    "POST",
    "raw_post",
    "query_string",
    "referer",
    "referrer",
    "user_agent",
    "url",
    "original_url",
    "fullpath",
    "original_fullpath",
    "path",
    "path_info",
    "host",
    "host_with_port",
    "media_type",
    "content_type",
    "original_filename",
    "application",
    "config",
    "credentials",
    "action_controller",
    "active_record",
    "action_dispatch",
    "active_support",
    "parameters",
    "binding",
];
/// Names that Rails or the core defines. They are neither local variables nor methods of the file.
const GLOBAL: [&str; 9] = [
    "params", "request", "session", "cookies", "response", "headers", "flash", "logger", "env",
];

impl<'n> Ruby<'_, '_, 'n> {
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
            "identifier" => return self.identifier(node),
            "constant" | "global_variable" => return self.l.name(node),
            "instance_variable" | "class_variable" => {
                let of = self.l.expr(node, ExprKind::This);
                let text = self.l.text(node).trim_start_matches('@');
                let name = self.l.sym(text);
                ExprKind::Member { of, name }
            }
            "self" => ExprKind::This,
            "super" => ExprKind::Super,
            "scope_resolution" => return self.scoped(node),
            "string" | "bare_string" | "heredoc_body" | "delimited_symbol" | "bare_symbol" => {
                return self.text(node);
            }
            "simple_symbol" => return self.symbol(node),
            "hash_key_symbol" | "character" => return self.plain_text(node),
            "heredoc_beginning" => match self.heredocs.get(&node.start_byte()).copied() {
                Some(body) => return self.text(body),
                None => ExprKind::Unknown(Vec::new()),
            },
            "chained_string" => ExprKind::Concat(self.all(node)),
            "subshell" => {
                let text = self.text(node);
                return self.l.call(node, "`", vec![text]);
            }
            "regex" => return self.regex(node),
            "integer" => match integer(self.l.text(node)) {
                Some(n) => ExprKind::Int(n),
                None => ExprKind::Float(0.0),
            },
            "float" => ExprKind::Float(self.l.text(node).parse().unwrap_or_default()),
            "true" => ExprKind::Bool(true),
            "false" => ExprKind::Bool(false),
            "nil" => ExprKind::Null,
            "call" => return self.call(node),
            "element_reference" => return self.index(node),
            "assignment" => return self.assignment(node),
            "operator_assignment" => return self.operator_assignment(node),
            "binary" => return self.binary(node),
            "unary" => return self.unary(node),
            "conditional" => {
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
            "array"
            | "string_array"
            | "symbol_array"
            | "left_assignment_list"
            | "right_assignment_list"
            | "destructured_left_assignment"
            | "destructured_parameter" => {
                let items = children(node).into_iter().map(|n| self.item(n)).collect();
                ExprKind::Collection(items)
            }
            "hash" => {
                let items = children(node).into_iter().map(|n| self.item(n)).collect();
                ExprKind::Collection(items)
            }
            "parenthesized_statements" => return self.parenthesized(node),
            "lambda" => return self.closure(node, node),
            "if" | "unless" | "case" | "case_match" | "begin" | "if_modifier"
            | "unless_modifier" => {
                return self.valued(node);
            }
            "rescue_modifier" => ExprKind::Unknown(self.all(node)),
            "method" | "singleton_method" => {
                let id = self.method(node);
                self.members.push(id);
                ExprKind::Unknown(Vec::new())
            }
            "class" | "module" | "singleton_class" | "while" | "until" | "for" | "return"
            | "next" | "break" | "while_modifier" | "until_modifier" => {
                let mut body = Vec::new();
                self.statement(node, &mut body);
                ExprKind::Block { body, value: None }
            }
            "splat_argument"
            | "hash_splat_argument"
            | "block_argument"
            | "rest_assignment"
            | "interpolation"
            | "pattern" => ExprKind::Pass(self.first(node)),
            "pair" => ExprKind::Pass(self.expr_of(node, "value")),
            _ => ExprKind::Unknown(self.all(node)),
        };
        self.l.expr(node, kind)
    }

    pub(super) fn collection(&mut self, node: Node<'n>, values: Vec<ExprId>) -> ExprId {
        let items = values
            .into_iter()
            .map(|value| CollectionItem {
                key: None,
                value,
                is_spread: false,
            })
            .collect();
        self.l.expr(node, ExprKind::Collection(items))
    }

    /// Lowers a local variable, or a call without arguments of a method that the file defines.
    fn identifier(&mut self, node: Node<'n>) -> ExprId {
        let name = self.l.text(node);
        if !self.is_local(name) && !GLOBAL.contains(&name) && self.methods.contains(name) {
            return self.l.call(node, name, Vec::new());
        }
        if !self.is_local(name) && (name.ends_with("_path") || name.ends_with("_url")) {
            return self.l.call(node, "__route", Vec::new());
        }
        self.l.name(node)
    }

    fn scoped(&mut self, node: Node<'n>) -> ExprId {
        let Some(name) = field(node, "name") else {
            return self.first(node);
        };
        match field(node, "scope") {
            Some(scope) => {
                let of = self.expr(scope);
                let name = self.l.sym_of(name);
                self.l.expr(node, ExprKind::Member { of, name })
            }
            None => self.l.name(name),
        }
    }

    fn symbol(&mut self, node: Node<'n>) -> ExprId {
        let text = self.l.text(node).trim_start_matches(':');
        self.l.constant(node, text)
    }

    fn plain_text(&mut self, node: Node<'n>) -> ExprId {
        let text = self.l.text(node);
        self.l.constant(node, text)
    }

    /// Lowers a string, symbol or heredoc with its interpolations.
    fn text(&mut self, node: Node<'n>) -> ExprId {
        let mut parts: Vec<ExprId> = Vec::new();
        for n in children(node) {
            match n.kind() {
                "string_content" | "heredoc_content" => {
                    let text = self.l.text(n).to_owned();
                    parts.push(self.l.constant(n, &text));
                }
                "escape_sequence" => {
                    let text = unescape(self.l.text(n));
                    parts.push(self.l.constant(n, &text));
                }
                "interpolation" => parts.push(self.first(n)),
                _ => {}
            }
        }
        match parts.as_slice() {
            [] => self.l.constant(node, ""),
            [one] => match self.l.module.expr(*one).kind.clone() {
                // The span covers the whole literal.
                text @ ExprKind::Text(_) => self.l.expr(node, text),
                _ => self.l.expr(node, ExprKind::Concat(parts)),
            },
            _ => self.l.expr(node, ExprKind::Concat(parts)),
        }
    }

    fn regex(&mut self, node: Node<'n>) -> ExprId {
        let parts = children(node);
        if parts.iter().any(|n| n.kind() == "interpolation") {
            let text = self.text(node);
            return self.l.call(node, "__regex", vec![text]);
        }
        let inside: String = parts.iter().map(|n| self.l.text(*n)).collect();
        let literal = self.l.expr(node, ExprKind::Regex(inside.as_str().into()));
        if super::super::words::is_exponential(&inside) {
            let call = self.l.call(node, "__nested_quantifier", Vec::new());
            let body = vec![effect(node, call)];
            return self.l.expr(
                node,
                ExprKind::Block {
                    body,
                    value: Some(literal),
                },
            );
        }
        literal
    }

    fn parenthesized(&mut self, node: Node<'n>) -> ExprId {
        let parts = children(node);
        match parts.as_slice() {
            [one] => {
                let id = self.expr(*one);
                self.l.expr(node, ExprKind::Pass(id))
            }
            _ => self.valued(node),
        }
    }

    fn index(&mut self, node: Node<'n>) -> ExprId {
        let Some(object) = field(node, "object") else {
            return self.first(node);
        };
        let of = self.expr(object);
        let parts: Vec<Node<'n>> = children(node)
            .into_iter()
            .filter(|n| n.id() != object.id())
            .collect();
        let is_text = parts
            .first()
            .is_some_and(|n| matches!(n.kind(), "string" | "identifier" | "binary"));
        let keys: Vec<ExprId> = parts.into_iter().map(|n| self.expr(n)).collect();
        // Sequel: `DB["SELECT …", value]` is a query.
        if is_text && matches!(self.l.text(object), "DB" | "@db" | "db") {
            let name = self.l.sym("[]");
            let callee = self.l.expr(node, ExprKind::Member { of, name });
            let args = keys.into_iter().map(plain).collect();
            return self.l.expr(node, ExprKind::Call { callee, args });
        }
        match keys.as_slice() {
            [key] => {
                let key = *key;
                self.l.expr(node, ExprKind::Index { of, key })
            }
            _ => self.l.unknown(node, vec![of]),
        }
    }

    fn item(&mut self, node: Node<'n>) -> CollectionItem {
        match (node.kind(), field(node, "key")) {
            ("pair", Some(key)) => {
                let name = self.expr(key);
                let value = match field(node, "value") {
                    Some(v) => self.expr(v),
                    None => self.shorthand(key),
                };
                CollectionItem {
                    key: Some(name),
                    value,
                    is_spread: false,
                }
            }
            ("splat_argument" | "hash_splat_argument" | "rest_assignment", _) => CollectionItem {
                key: None,
                value: self.first(node),
                is_spread: true,
            },
            _ => CollectionItem {
                key: None,
                value: self.expr(node),
                is_spread: false,
            },
        }
    }

    /// Lowers `f(name:)` to `f(name: name)`.
    fn shorthand(&mut self, key: Node<'n>) -> ExprId {
        let name = self.l.text(key).trim_end_matches(':');
        self.l.named(key, name)
    }

    fn assignment(&mut self, node: Node<'n>) -> ExprId {
        let (Some(left), Some(right)) = (field(node, "left"), field(node, "right")) else {
            return self.first(node);
        };
        let value = self.expr(right);
        self.bind(left);
        let extra = self.idioms_of_assignment(left, right, value);
        let target = self.target(left);
        let assign = match self.setter(left, target, right, value) {
            Some(call) => call,
            None => self.l.expr(
                node,
                ExprKind::Assign {
                    target,
                    op: None,
                    value,
                },
            ),
        };
        if extra.is_empty() {
            return assign;
        }
        let body = extra.into_iter().map(|id| effect(node, id)).collect();
        self.l.expr(
            node,
            ExprKind::Block {
                body,
                value: Some(assign),
            },
        )
    }

    /// Lowers `@record.attributes = value` and `self.name = value` to calls, unless the value is
    /// fixed: an action stores data in a record, and another action reads a different member of
    /// another record.
    fn setter(
        &mut self,
        left: Node<'n>,
        target: ExprId,
        right: Node<'n>,
        value: ExprId,
    ) -> Option<ExprId> {
        let receiver = field(left, "receiver").filter(|_| left.kind() == "call")?;
        let is_kept = matches!(receiver.kind(), "instance_variable" | "self");
        let is_fixed = matches!(
            right.kind(),
            "true"
                | "false"
                | "nil"
                | "integer"
                | "string"
                | "simple_symbol"
                | "scope_resolution"
                | "constant"
                | "hash"
        );
        if !is_kept || is_fixed {
            return None;
        }
        let ExprKind::Member { of, name } = self.l.module.expr(target).kind else {
            return None;
        };
        let name = format!("{}=", self.l.module.word(name));
        let name = self.l.sym(&name);
        let callee = self.l.expr(left, ExprKind::Member { of, name });
        Some(self.l.expr(
            left,
            ExprKind::Call {
                callee,
                args: vec![plain(value)],
            },
        ))
    }

    /// Lowers the left side of an assignment: `a.b = v` is a member here, not a call.
    fn target(&mut self, node: Node<'n>) -> ExprId {
        if node.kind() == "call"
            && let (Some(of), Some(name)) = (field(node, "receiver"), field(node, "method"))
        {
            let of = self.expr(of);
            let name = self.l.sym_of(name);
            return self.l.expr(node, ExprKind::Member { of, name });
        }
        match node.kind() {
            "identifier" => self.l.name(node),
            _ => self.expr(node),
        }
    }

    fn operator_assignment(&mut self, node: Node<'n>) -> ExprId {
        let (Some(left), Some(right)) = (field(node, "left"), field(node, "right")) else {
            return self.first(node);
        };
        let value = self.expr(right);
        self.bind(left);
        let target = self.target(left);
        let text = field(node, "operator")
            .map(|o| self.l.text(o))
            .unwrap_or_default();
        let op = match text {
            "<<=" => Op::Add,
            _ => operator(text.trim_end_matches('=')),
        };
        self.l.expr(
            node,
            ExprKind::Assign {
                target,
                op: Some(op),
                value,
            },
        )
    }

    fn unary(&mut self, node: Node<'n>) -> ExprId {
        let id = self.expr_of(node, "operand");
        let text = field(node, "operator")
            .map(|o| self.l.text(o))
            .unwrap_or_default();
        let kind = match text {
            "!" | "not" | "defined?" => ExprKind::Not(id),
            _ => ExprKind::Negate(id),
        };
        self.l.expr(node, kind)
    }

    fn binary(&mut self, node: Node<'n>) -> ExprId {
        let (Some(left), Some(right)) = (field(node, "left"), field(node, "right")) else {
            return self.first(node);
        };
        let text = field(node, "operator")
            .map(|o| self.l.text(o))
            .unwrap_or_default();
        if text == "+" {
            return self.sum(node);
        }
        let call = self.idiom_of_comparison(node, text);
        let (a, b) = (self.expr(left), self.expr(right));
        let kind = match text {
            "<<" if matches!(
                left.kind(),
                "identifier" | "instance_variable" | "element_reference"
            ) =>
            {
                ExprKind::Assign {
                    target: a,
                    op: Some(Op::Add),
                    value: b,
                }
            }
            "<<" => ExprKind::Concat(vec![a, b]),
            "!~" => {
                let id = self.l.expr(
                    node,
                    ExprKind::Binary {
                        op: Op::Matches,
                        left: a,
                        right: b,
                    },
                );
                ExprKind::Not(id)
            }
            _ => ExprKind::Binary {
                op: operator(text),
                left: a,
                right: b,
            },
        };
        let id = self.l.expr(node, kind);
        match call {
            Some(call) => self.l.expr(
                node,
                ExprKind::Block {
                    body: vec![effect(node, call)],
                    value: Some(id),
                },
            ),
            None => id,
        }
    }

    fn sum(&mut self, node: Node<'n>) -> ExprId {
        let mut sum: Option<ExprId> = None;
        for part in self.l.chain(node, "binary", "+") {
            let right = self.expr(part);
            sum = Some(match sum {
                Some(left) => self.l.expr(
                    node,
                    ExprKind::Binary {
                        op: Op::Add,
                        left,
                        right,
                    },
                ),
                None => right,
            });
        }
        sum.unwrap_or_else(|| self.l.unknown(node, Vec::new()))
    }

    fn call(&mut self, node: Node<'n>) -> ExprId {
        if let Some(kind) = self.loop_call(node) {
            let body = vec![super::stmt(node, kind)];
            return self.l.expr(node, ExprKind::Block { body, value: None });
        }
        let receiver = field(node, "receiver");
        let name = field(node, "method")
            .map(|m| self.l.text(m))
            .unwrap_or("call");
        let mut args = field(node, "arguments")
            .map(|a| self.arguments(a, name))
            .unwrap_or_default();
        if let Some(block) = field(node, "block") {
            let closure = self.closure(block, block);
            args.push(plain(closure));
            self.idiom_of_block(node, name, block, closure);
        }
        if name == "super" {
            return self.l.expr(node, ExprKind::Super);
        }
        if let Some(id) = self.idiom_of_call(node, receiver, name, &args) {
            return id;
        }
        let callee = match receiver {
            Some(of) => {
                let is_part =
                    PARTS.contains(&name) && args.is_empty() && field(node, "arguments").is_none();
                let of = self.expr(of);
                let name = self.l.sym(name);
                let member = self.l.expr(node, ExprKind::Member { of, name });
                if is_part {
                    return member;
                }
                member
            }
            None => self.l.named(node, name),
        };
        let is_record = self.is_record(receiver, name, &args);
        let id = self.l.expr(node, ExprKind::Call { callee, args });
        if is_record {
            self.l.call(node, "__record", vec![id])
        } else {
            id
        }
    }

    fn arguments(&mut self, node: Node<'n>, name: &str) -> Vec<Arg> {
        let mut parts = children(node);
        // `where(["a = ?", x])` is `where("a = ?", x)`, `popen(["ls", x])` is `popen("ls", x)`.
        let unpacks =
            SQL.contains(&name) || matches!(name, "popen" | "popen3" | "capture2" | "capture3");
        if unpacks && parts.first().is_some_and(|n| n.kind() == "array") {
            let first = parts.remove(0);
            let mut inside = children(first);
            inside.extend(parts);
            parts = inside;
        }
        // The environment of a new process precedes the command.
        let starts = matches!(
            name,
            "system" | "exec" | "spawn" | "popen" | "capture2" | "capture3" | "popen3"
        );
        if starts && parts.len() > 1 && parts.first().is_some_and(|n| n.kind() == "hash") {
            parts.remove(0);
        }
        let mut out: Vec<Arg> = Vec::new();
        let last = parts.len().saturating_sub(1);
        for (i, a) in parts.iter().enumerate() {
            match a.kind() {
                "hash"
                    if i == last
                        || SQL.contains(&name)
                        || matches!(name, "link_to" | "button_to") =>
                {
                    for n in children(*a) {
                        out.push(self.argument(n));
                    }
                }
                _ => out.push(self.argument(*a)),
            }
        }
        if name.starts_with("render") {
            self.hide_data(node, &mut out);
        }
        out
    }

    /// Hides the keys of `json: { file: x }` and `locals: { template: x }`, because they are not
    /// options of `render`.
    fn hide_data(&mut self, node: Node<'n>, args: &mut [Arg]) {
        for a in args {
            let keyword = a.keyword.map(|k| self.l.module.word(k)).unwrap_or_default();
            if matches!(
                keyword,
                "json" | "xml" | "locals" | "plain" | "js" | "object" | "collection" | "assigns"
            ) {
                a.value = self.l.unknown(node, vec![a.value]);
            }
        }
    }

    fn argument(&mut self, node: Node<'n>) -> Arg {
        match (node.kind(), field(node, "key")) {
            ("pair", Some(key)) => {
                let name = self.l.text(key).trim_matches([':', '"', '\'']).to_owned();
                let keyword = Some(self.l.sym(&name));
                let value = match field(node, "value") {
                    Some(v) => self.expr(v),
                    None => self.shorthand(key),
                };
                Arg {
                    keyword,
                    value,
                    is_spread: false,
                }
            }
            ("splat_argument" | "hash_splat_argument", _) => Arg {
                keyword: None,
                value: self.first(node),
                is_spread: true,
            },
            // `&block` is not an argument by position.
            ("block_argument", _) => {
                let keyword = Some(self.l.sym("&"));
                Arg {
                    keyword,
                    value: self.first(node),
                    is_spread: false,
                }
            }
            _ => plain(self.expr(node)),
        }
    }
}
