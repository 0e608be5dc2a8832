//! Idioms of Ruby and Rails that are recognised by words of the code.

use super::super::super::shape::{Arg, ExprId, ExprKind};
use super::super::words::{has_secret_name, last_word};
use super::super::{children, field, plain};
use super::{Ruby, effect};
use tree_sitter::Node;

/// Attributes that control a user's permissions.
const PRIVILEGED: [&str; 9] = [
    "admin",
    "is_admin",
    "role",
    "role_id",
    "roles",
    "superuser",
    "banned",
    "account_id",
    "permissions",
];

/// Modules of the core, of Rails and of gems that the table describes or that pass text through.
const LIBRARIES: [&str; 72] = [
    "ActionController",
    "ActionDispatch",
    "ActionView",
    "ActiveModel",
    "ActiveRecord",
    "ActiveStorage",
    "ActiveSupport",
    "Arel",
    "Array",
    "Base64",
    "BCrypt",
    "BigDecimal",
    "CGI",
    "CSV",
    "Curl",
    "DB",
    "Date",
    "Digest",
    "Dir",
    "Down",
    "ERB",
    "Erubi",
    "Erubis",
    "Excon",
    "FTP",
    "Faraday",
    "File",
    "FileUtils",
    "HTTP",
    "HTTParty",
    "HTTPClient",
    "Haml",
    "Hash",
    "IO",
    "Integer",
    "JSON",
    "JWT",
    "Kernel",
    "LDAP",
    "LibXML",
    "Liquid",
    "Logger",
    "Loofah",
    "Marshal",
    "Mongo",
    "Mustache",
    "Mysql2",
    "Net",
    "Nokogiri",
    "Object",
    "Oj",
    "Open3",
    "OpenSSL",
    "OpenURI",
    "PG",
    "PTY",
    "Pathname",
    "Process",
    "Psych",
    "REXML",
    "Rack",
    "Rails",
    "Regexp",
    "RestClient",
    "SQLite3",
    "Sequel",
    "Shellwords",
    "String",
    "Tilt",
    "Typhoeus",
    "URI",
    "YAML",
];

impl<'n> Ruby<'_, '_, 'n> {
    /// Returns the calls that an assignment implies: writes to the session and headers, weak
    /// secrets.
    pub(super) fn idioms_of_assignment(
        &mut self,
        left: Node<'n>,
        right: Node<'n>,
        value: ExprId,
    ) -> Vec<ExprId> {
        let mut out = Vec::new();
        let text = self.l.text(right);
        let is_random = [
            "rand(",
            "Random.rand",
            "Random.new",
            "Kernel.rand",
            ".sample",
            ".shuffle",
        ];
        if has_secret_name(last_word(self.l.text(left)))
            && !text.contains("SecureRandom")
            && !text.contains("random: ")
            && (is_random.iter().any(|w| text.contains(w)) || text == "rand")
        {
            out.push(self.l.call(right, "__secret_from_rand", Vec::new()));
        }
        if left.kind() == "element_reference"
            && let Some(object) = field(left, "object")
            && is_store(self.l.text(object))
        {
            let key = children(left).into_iter().find(|n| n.id() != object.id());
            let of = self.expr(object);
            let name = self.l.sym("[]=");
            let callee = self.l.expr(left, ExprKind::Member { of, name });
            let mut args: Vec<Arg> = key.map(|k| plain(self.expr(k))).into_iter().collect();
            args.push(plain(value));
            if right.kind() == "hash" {
                for n in children(right) {
                    args.push(self.pair(n));
                }
            }
            out.push(self.l.expr(left, ExprKind::Call { callee, args }));
        }
        out
    }

    fn pair(&mut self, node: Node<'n>) -> Arg {
        let key =
            field(node, "key").map(|k| self.l.text(k).trim_matches([':', '"', '\'']).to_owned());
        let keyword = key.map(|k| self.l.sym(&k));
        let value = self.expr_of(node, "value");
        Arg {
            keyword,
            value,
            is_spread: false,
        }
    }

    /// Returns a call if a secret from a request is compared with `==`.
    pub(super) fn idiom_of_comparison(&mut self, node: Node<'n>, operator: &str) -> Option<ExprId> {
        let (left, right) = (field(node, "left")?, field(node, "right")?);
        if !matches!(operator, "==" | "!=") {
            return None;
        }
        let (a, b) = (self.l.text(left), self.l.text(right));
        let has_input = is_input(a) || is_input(b);
        let made = ["hexdigest", "OpenSSL::HMAC", "signature"];
        // A verifier compares the signature itself, in constant time, and returns the message.
        let is_message = [left, right]
            .into_iter()
            .any(|n| self.is_call_of(n, "verify"));
        if is_message || is_input(a) && is_input(b) {
            return None;
        }
        let is_made = made.iter().any(|w| a.contains(w)) && made.iter().any(|w| b.contains(w));
        // `digest == request.headers["X-Signature"]`.
        let is_signed = is_signature_header(a) && is_digest_name(b)
            || is_signature_header(b) && is_digest_name(a);
        if is_constant(left)
            || is_constant(right)
            || !((has_input && is_secret(a) && is_secret(b)) || is_made || is_signed)
        {
            return None;
        }
        Some(self.l.call(node, "__secret_compare", Vec::new()))
    }

    /// Returns true if a node is a call of a method of an object.
    fn is_call_of(&self, node: Node<'n>, method: &str) -> bool {
        node.kind() == "call"
            && field(node, "receiver").is_some()
            && field(node, "method").is_some_and(|name| self.l.text(name) == method)
    }

    /// Rewrites calls that their names do not describe completely.
    pub(super) fn idiom_of_call(
        &mut self,
        node: Node<'n>,
        receiver: Option<Node<'n>>,
        name: &str,
        args: &[Arg],
    ) -> Option<ExprId> {
        let arguments = field(node, "arguments");
        let parts = arguments.map(children).unwrap_or_default();
        if receiver.is_none()
            && (name.ends_with("_path") || name.ends_with("_url"))
            && !self.methods.contains(name)
        {
            let callee = self.l.named(node, "__route");
            return Some(self.l.expr(
                node,
                ExprKind::Call {
                    callee,
                    args: args.to_vec(),
                },
            ));
        }
        let extra = match name {
            "permit" | "attr_accessible"
                if parts
                    .iter()
                    .any(|n| PRIVILEGED.contains(&self.l.text(*n).trim_start_matches(':'))) =>
            {
                "__permit_privileged"
            }
            "validates" | "validates_format_of"
                if has_line_anchors(arguments.map(|a| self.l.text(a))) =>
            {
                "__validates_line_anchors"
            }
            "rand" | "sample" if self.is_number_of_secret(node, receiver, name, &parts) => {
                "__secret_from_rand"
            }
            "new" | "create" | "create!" | "update" | "update!"
                if self.is_model_of_params(receiver, &parts) =>
            {
                "__model_from_params"
            }
            _ => return None,
        };
        let of = receiver.map(|r| self.expr(r));
        let callee = match of {
            Some(of) => {
                let name = self.l.sym(name);
                self.l.expr(node, ExprKind::Member { of, name })
            }
            None => self.l.named(node, name),
        };
        let call = self.l.expr(
            node,
            ExprKind::Call {
                callee,
                args: args.to_vec(),
            },
        );
        let callee = self.l.named(node, extra);
        let extra = self.l.expr(
            node,
            ExprKind::Call {
                callee,
                args: args.to_vec(),
            },
        );
        let body = vec![effect(node, extra)];
        Some(self.l.expr(
            node,
            ExprKind::Block {
                body,
                value: Some(call),
            },
        ))
    }

    /// Returns true for a class method of the application, such as
    /// `User.authenticate(params[:name])`: its result is a record and not the text of the client.
    pub(super) fn is_record(&self, receiver: Option<Node<'n>>, name: &str, args: &[Arg]) -> bool {
        let Some(receiver) =
            receiver.filter(|r| matches!(r.kind(), "constant" | "scope_resolution"))
        else {
            return false;
        };
        let path = self.l.text(receiver).trim_start_matches("::");
        let first = path.split("::").next().unwrap_or_default();
        let is_fixed = path
            .chars()
            .all(|c| c.is_ascii_uppercase() || c == '_' || c.is_ascii_digit());
        !args.is_empty()
            && !is_fixed
            && !name.ends_with('?')
            && !LIBRARIES.contains(&first)
            && !self.methods.contains(name)
            && !path.ends_with("Error")
    }

    /// Returns true for `rand(36)` or `CHARS.sample` in a method whose name suggests a secret.
    /// Assignments to a secret are reported by `idioms_of_assignment`.
    fn is_number_of_secret(
        &self,
        node: Node<'n>,
        receiver: Option<Node<'n>>,
        name: &str,
        args: &[Node<'n>],
    ) -> bool {
        let of = receiver.map(|r| self.l.text(r));
        let is_weak = match name {
            "rand" => of.is_none_or(|of| matches!(of, "Random" | "Kernel")),
            _ => args.is_empty(),
        };
        let mut at = node;
        while let Some(parent) = at.parent() {
            match parent.kind() {
                "assignment"
                    if field(parent, "left")
                        .is_some_and(|l| has_secret_name(last_word(self.l.text(l)))) =>
                {
                    return false;
                }
                "method" | "singleton_method" => {
                    return is_weak
                        && field(parent, "name").is_some_and(|n| has_secret_name(self.l.text(n)));
                }
                _ => {}
            }
            at = parent;
        }
        false
    }

    /// Returns true for `User.new(params[:user])` and `@user.update(params[:user])`, in which the
    /// key names the record.
    fn is_model_of_params(&self, receiver: Option<Node<'n>>, parts: &[Node<'n>]) -> bool {
        let (Some(receiver), [arg]) = (receiver, parts) else {
            return false;
        };
        let arg = self.l.text(*arg);
        let Some(key) = arg
            .strip_prefix("params[")
            .and_then(|a| a.strip_suffix(']'))
        else {
            return false;
        };
        let key = key
            .trim_matches([':', '"', '\''])
            .replace('_', "")
            .to_lowercase();
        let name = last_word(self.l.text(receiver))
            .replace('_', "")
            .to_lowercase();
        !key.is_empty() && (name == key || name == format!("{key}s"))
    }

    /// Marks the result of a route of Sinatra as the body of an HTML page.
    pub(super) fn idiom_of_block(
        &mut self,
        node: Node<'n>,
        name: &str,
        block: Node<'n>,
        closure: ExprId,
    ) {
        let is_route = matches!(name, "get" | "post" | "put" | "delete" | "patch");
        let first = field(node, "arguments").and_then(|a| children(a).first().copied());
        if !is_route
            || field(node, "receiver").is_some()
            || first.is_none_or(|n| !matches!(n.kind(), "string" | "regex"))
        {
            return;
        }
        let text = self.l.text(block);
        if [
            "content_type :json",
            "content_type 'text/plain",
            "content_type :text",
            "content_type \"text/plain",
            "to_json",
        ]
        .iter()
        .any(|w| text.contains(w))
        {
            return;
        }
        let ExprKind::Function(id) = self.l.module.expr(closure).kind else {
            return;
        };
        let Some(last) = self
            .l
            .module
            .functions
            .get(id.0 as usize)
            .and_then(|f| f.body.last().cloned())
        else {
            return;
        };
        let super::StmtKind::Return(Some(value)) = last.kind else {
            return;
        };
        if !matches!(
            self.l.module.expr(value).kind,
            ExprKind::Concat(_) | ExprKind::Binary { .. } | ExprKind::Index { .. }
        ) {
            return;
        }
        let callee = self.l.named(node, "__sinatra_body");
        let span = self.l.module.expr(value).span;
        let call = self.l.module.add(
            span,
            ExprKind::Call {
                callee,
                args: vec![plain(value)],
            },
        );
        if let Some(f) = self.l.module.functions.get_mut(id.0 as usize)
            && let Some(last) = f.body.last_mut()
        {
            last.kind = super::StmtKind::Return(Some(call));
        }
    }
}

/// Returns true if an expression reads data of a request.
fn is_input(text: &str) -> bool {
    text.contains("params[") || text.contains("request.") || text.contains("headers[")
}

/// Returns true if an expression reads a header with a signature.
fn is_signature_header(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    is_input(text) && ["signature", "hmac"].iter().any(|w| lower.contains(w))
}

/// Returns true for a variable that holds a digest.
fn is_digest_name(text: &str) -> bool {
    const NAMES: [&str; 6] = [
        "digest",
        "hexdigest",
        "expected",
        "computed",
        "calculated",
        "mac",
    ];
    NAMES.contains(&text.trim_start_matches('@'))
}

/// Returns true if an expression ends with the name of a secret.
fn is_secret(text: &str) -> bool {
    has_secret_name(last_word(text))
}

/// Returns true for a literal.
fn is_constant(node: Node<'_>) -> bool {
    matches!(
        node.kind(),
        "string" | "nil" | "simple_symbol" | "integer" | "true" | "false"
    )
}

/// Returns true for an object of a request or response to which keys are written.
fn is_store(text: &str) -> bool {
    let words = ["session", "headers", "response", "response.headers"];
    words.contains(&text) || text == "cookies" || text.starts_with("cookies.")
}

/// Returns true if a validation has a regular expression that matches a line instead of the whole
/// text.
fn has_line_anchors(arguments: Option<&str>) -> bool {
    let text = arguments.unwrap_or_default();
    let Some(at) = text.find("with:").or_else(|| text.find(":with")) else {
        return false;
    };
    let rest = text.get(at..).unwrap_or_default();
    rest.contains("/^") || rest.contains("$/")
}
