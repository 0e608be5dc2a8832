//! Idioms of .NET that are recognised by words of the code.

use super::super::super::shape::{CodeBlock, StmtKind};
use super::super::words::{has_secret_name, hashes_password};
use super::super::{child, children, field, stmt};
use super::CSharp;
use tree_sitter::Node;

/// Types whose values cannot contain text of a client.
const NUMBERS: [&str; 36] = [
    "int",
    "long",
    "short",
    "byte",
    "sbyte",
    "uint",
    "ulong",
    "ushort",
    "double",
    "float",
    "decimal",
    "bool",
    "Int32",
    "Int64",
    "Int16",
    "Byte",
    "Double",
    "Single",
    "Decimal",
    "Boolean",
    "Guid",
    "DateTime",
    "DateTimeOffset",
    "DateOnly",
    "TimeOnly",
    "TimeSpan",
    "System.Guid",
    "System.Int32",
    "System.DateTime",
    "CancellationToken",
    "nint",
    "Half",
    "BigInteger",
    "HttpStatusCode",
    "Version",
    "Enum",
];

/// Interfaces that carry the data of a request.
const DATA: [&str; 8] = [
    "IFormFile",
    "IFormCollection",
    "IEnumerable",
    "IList",
    "ICollection",
    "IDictionary",
    "IReadOnlyList",
    "IFormFileCollection",
];

/// Returns true for a type whose values cannot contain text of a client.
pub(super) fn is_number(ty: &str) -> bool {
    NUMBERS.contains(&ty)
}

/// Returns true for the type of a service that a framework passes in: `IUserService`,
/// `AppDbContext`, `ILogger`. `HttpContext` and `HttpRequest` have their own sources.
pub(super) fn is_service(ty: &str) -> bool {
    let ty = ty.rsplit('.').next().unwrap_or_default();
    let mut chars = ty.chars();
    let is_interface = chars.next() == Some('I')
        && chars.next().is_some_and(char::is_uppercase)
        && !DATA.contains(&ty);
    let ends = [
        "Context",
        "Service",
        "Repository",
        "Manager",
        "Factory",
        "Provider",
        "Connection",
        "HttpClient",
        "Cache",
        "Options",
        "Encoder",
    ];
    (is_interface && !ty.starts_with("IHttpRequest") && ty != "ILogger")
        || ends.iter().any(|e| ty.ends_with(e))
}

impl<'n> CSharp<'_, '_> {
    /// Adds a call if an assignment stores a number of `Random` as a secret.
    pub(super) fn idiom_of_assignment(
        &mut self,
        target: Node<'n>,
        value: Node<'n>,
        out: &mut CodeBlock,
    ) {
        let text = self.l.text(value);
        let name = self.l.text(target);
        let name = name.rsplit('.').next().unwrap_or_default();
        let words = [
            "new Random(",
            "Random.Shared",
            "random.Next",
            "rnd.Next",
            "rand.Next",
            "rng.Next",
            "Random.Next",
            "_random.Next",
        ];
        if has_secret_name(name) && words.iter().any(|w| text.contains(w)) {
            let id = self.l.call(value, "__secret_from_random", Vec::new());
            out.push(stmt(value, StmtKind::Expr(id)));
        }
    }

    /// Returns the text of the enclosing method.
    fn method_around(&self, node: Node<'n>) -> Option<&str> {
        let mut at = node;
        while let Some(p) = at.parent() {
            at = p;
            if matches!(
                at.kind(),
                "method_declaration" | "local_function_statement" | "constructor_declaration"
            ) {
                return Some(self.l.text_around(self.l.text(at)));
            }
        }
        None
    }

    /// Adds a call if a method reads the claims of a token without checking its signature.
    pub(super) fn unverified_token(&mut self, node: Node<'n>, name: &str, out: &mut CodeBlock) {
        if !matches!(name, "ReadJwtToken" | "ReadJsonWebToken") {
            return;
        }
        let text = self.method_around(node).unwrap_or_default();
        let is_used = [".Claims", ".Subject", ".Payload", "GetClaim"]
            .iter()
            .any(|w| text.contains(w));
        let is_checked = ["Validat", "Verif", ".Header", "Kid"]
            .iter()
            .any(|w| text.contains(w));
        if is_used && !is_checked {
            let id = self.l.call(node, "__unverified_token", Vec::new());
            out.push(stmt(node, StmtKind::Expr(id)));
        }
    }

    /// Adds a call if a method that hashes a password uses a fast hash.
    pub(super) fn password_hash(&mut self, node: Node<'n>, name: &str, out: &mut CodeBlock) {
        let name = name.rsplit("Cryptography.").next().unwrap_or_default();
        let class = name
            .strip_suffix(".Create")
            .or(name.strip_suffix(".HashData"))
            .unwrap_or(name);
        let ends = ["", "Managed", "CryptoServiceProvider", "Cng"];
        let is_fast = ["MD5", "SHA1", "SHA256", "SHA384", "SHA512"]
            .iter()
            .any(|h| class.strip_prefix(h).is_some_and(|end| ends.contains(&end)));
        if !is_fast {
            return;
        }
        if self.method_around(node).is_some_and(hashes_password) {
            let id = self.l.call(node, "__password_hash", Vec::new());
            out.push(stmt(node, StmtKind::Expr(id)));
        }
    }

    /// Returns true if `==` compares a secret with a value of the request.
    pub(super) fn is_secret_comparison(
        &self,
        node: Node<'n>,
        left: Node<'n>,
        right: Node<'n>,
    ) -> bool {
        let (a, b) = (self.l.text(left), self.l.text(right));
        if node.kind() != "binary_expression" || is_constant(left) || is_constant(right) {
            return false;
        }
        // `expected == signature` in a method that computes a MAC.
        let is_expected = is_expected(a) && is_signature(b) && ends_with_secret(b)
            || is_expected(b) && is_signature(a) && ends_with_secret(a);
        is_expected && self.is_in_mac(node)
            || ends_with_secret(a)
                && ends_with_secret(b)
                && (is_input(a) || is_input(b) || (is_signature(a) && is_signature(b)))
    }

    /// Returns true if the method around a node computes a message authentication code.
    fn is_in_mac(&self, node: Node<'n>) -> bool {
        let mut at = node;
        while let Some(parent) = at.parent() {
            if parent.kind() == "method_declaration" {
                return self.l.text(parent).contains("HMACSHA");
            }
            at = parent;
        }
        false
    }

    /// Adds a call for each `[HttpPost]` action of an MVC controller without an antiforgery token.
    pub(super) fn missing_antiforgery(&mut self, node: Node<'n>, out: &mut CodeBlock) {
        let Some(bases) = child(node, "base_list") else {
            return;
        };
        let bases = self.l.text(bases);
        let own = self.attributes_of(node);
        if !bases.contains("Controller")
            || ["ControllerBase", "ApiController", "OData"]
                .iter()
                .any(|w| bases.contains(w))
            || ["ntiforgery", "ntiForgery", "ApiController", "Route(\"api"]
                .iter()
                .any(|w| own.contains(w))
        {
            return;
        }
        let text = self.l.text(node);
        let mut root = node;
        while let Some(p) = root.parent() {
            root = p;
        }
        let whole = self.l.text(root);
        // ASP.NET Core checks the token in a filter of the application, which this file does not
        // show.
        let is_old = whole.contains("System.Web.Mvc")
            || !(whole.contains("using ") || whole.contains("IActionResult"));
        if !is_old && !text.contains("[ValidateAntiForgeryToken") {
            return;
        }
        for method in field(node, "body").map(children).unwrap_or_default() {
            if method.kind() != "method_declaration" {
                continue;
            }
            let marks = self.attributes_of(method);
            let is_form = marks.contains("HttpPost")
                && !marks.contains("ntiForgery")
                && !marks.contains("ntiforgery");
            let ty = field(method, "returns")
                .map(|t| self.l.text(t))
                .unwrap_or_default();
            if is_form
                && ty.contains("Result")
                && !ty.contains("JsonResult")
                && !marks.contains("AllowAnonymous")
            {
                let Some(name) = field(method, "name") else {
                    continue;
                };
                let id = self.l.call(name, "__post_without_antiforgery", Vec::new());
                out.push(stmt(name, StmtKind::Expr(id)));
            }
        }
    }

    /// Returns the text of the attributes of a class or a method.
    fn attributes_of(&self, node: Node<'n>) -> String {
        children(node)
            .into_iter()
            .filter(|a| a.kind() == "attribute_list")
            .map(|a| self.l.text(a))
            .collect()
    }

    /// Returns true for a call that looks up a record in a service of the class:
    /// `_users.FindByName(name)`. Its result is a record and not the text of the client.
    pub(super) fn is_lookup(&self, function: Node<'n>) -> bool {
        let (Some(of), Some(name)) = (field(function, "expression"), field(function, "name"))
        else {
            return false;
        };
        let (of, name) = (self.l.text(of), self.l.text(name));
        let is_service = of
            .strip_prefix('_')
            .is_some_and(|r| r.chars().all(|c| c.is_alphanumeric()))
            && ![
                "client",
                "http",
                "request",
                "context",
                "accessor",
                "encod",
                "sanitiz",
                "protector",
            ]
            .iter()
            .any(|w| of.to_ascii_lowercase().contains(w));
        let verbs = [
            "Get", "Find", "Load", "Fetch", "Lookup", "Resolve", "List", "Search", "First",
            "Single", "Create", "Open",
        ];
        is_service && verbs.iter().any(|v| name.starts_with(v))
    }

    /// Returns true if an enclosing condition checks for the development environment.
    pub(super) fn is_in_development(&self, node: Node<'n>) -> bool {
        let mut at = node;
        while let Some(p) = at.parent() {
            let test = if p.kind() == "if_statement" {
                field(p, "condition")
            } else {
                None
            };
            if test.is_some_and(|t| {
                ["Development", "DEBUG", "Debug"]
                    .iter()
                    .any(|w| self.l.text(t).contains(w))
            }) {
                return true;
            }
            at = p;
        }
        false
    }

    /// Returns true if the enclosing block sets a member of the variable that holds a new object.
    pub(super) fn is_set_later(&self, node: Node<'n>, member: &str) -> bool {
        let mut name = None;
        let mut at = node;
        while let Some(p) = at.parent() {
            match p.kind() {
                "variable_declarator" => name = name.or_else(|| field(p, "name")),
                "assignment_expression" => name = name.or_else(|| field(p, "left")),
                "block" | "compilation_unit" | "declaration_list" => {
                    let Some(name) = name else { return false };
                    let target = format!("{}.{member}", self.l.text(name));
                    return self.l.text(p).contains(&target);
                }
                "argument" | "lambda_expression" => return false,
                _ => {}
            }
            at = p;
        }
        false
    }
}

/// Returns true if an expression ends with the name of a secret. `SignaturesNeeded` and
/// `TokensTotal` are numbers of secrets, and `NoSignatureId` names something else.
fn ends_with_secret(text: &str) -> bool {
    const OTHERS: [&str; 5] = [
        "Signatures",
        "Secrets",
        "Passwords",
        "NoSignature",
        "Nonces",
    ];
    let text = text
        .trim_end_matches(|c: char| !c.is_alphanumeric())
        .replace('-', "");
    let name = text
        .rsplit(|c: char| !c.is_alphanumeric() && c != '_')
        .next()
        .unwrap_or_default();
    let is_other = OTHERS
        .iter()
        .any(|word| name.contains(word) || name.starts_with(&word.to_ascii_lowercase()));
    // The name of a variable starts in lower case.
    has_secret_name(name) && !is_other && !name.starts_with("noSignature")
}

/// Returns true for a literal.
fn is_constant(node: Node<'_>) -> bool {
    node.kind().ends_with("literal") || node.kind() == "null_literal"
}

/// Returns true if an expression reads data of a request.
fn is_input(text: &str) -> bool {
    text.contains("Request.") || text.contains("Request[") || text.contains("Headers[")
}

/// Returns true for a variable with the value that a signature should have.
fn is_expected(text: &str) -> bool {
    const NAMES: [&str; 4] = ["expected", "computed", "calculated", "actual"];
    let lower = text.to_ascii_lowercase();
    let rest = NAMES.iter().find_map(|n| lower.strip_prefix(n));
    matches!(
        rest,
        Some("" | "hash" | "mac" | "digest" | "hex" | "base64")
    )
}

/// Returns true if an expression names a signature.
fn is_signature(text: &str) -> bool {
    text.contains("hmac")
        || text.contains("signature")
        || text.contains("Signature")
        || text.contains("Hmac")
}
