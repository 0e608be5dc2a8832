//! Memory errors that the text of one function shows.

use super::super::super::shape::{CodeBlock, StmtKind};
use super::super::words::has_secret_name;
use super::super::{field, stmt};
use super::C;
use tree_sitter::Node;

impl<'n, 't> C<'_, 't> {
    pub(super) fn note(&mut self, node: Node<'n>, name: &str, out: &mut CodeBlock) {
        let id = self.l.call(node, name, Vec::new());
        out.push(stmt(node, StmtKind::Expr(id)));
    }

    pub(super) fn return_of_stack(
        &mut self,
        node: Node<'n>,
        value: Option<Node<'n>>,
        out: &mut CodeBlock,
    ) {
        let Some(value) = value else { return };
        let text = self.l.text(value);
        let is_array = value.kind() == "identifier" && self.locals.automatic.contains(text);
        let is_address = text
            .strip_prefix('&')
            .is_some_and(|n| self.locals.scalars.contains(n) || self.locals.automatic.contains(n));
        if is_array || is_address {
            self.note(node, "__return_of_stack", out);
        }
    }

    /// Adds a call with the size of `char buf[n]`, which the interpreter checks.
    pub(super) fn variable_length(&mut self, declarator: Node<'n>, out: &mut CodeBlock) {
        if declarator.kind() != "array_declarator" {
            return;
        }
        let Some(size) = field(declarator, "size").filter(|s| s.kind() == "identifier") else {
            return;
        };
        if self.macros.contains_key(self.l.text(size)) || self.is_compared(self.l.text(size)) {
            return;
        }
        let id = self.expr(size);
        let call = self.l.call(declarator, "__vla", vec![id]);
        out.push(stmt(declarator, StmtKind::Expr(call)));
    }

    /// Adds a call for an index past the end: `buf[10]` of `char buf[10]`, `buf[sizeof(buf)]`.
    pub(super) fn past_end(&mut self, node: Node<'n>, key: Node<'n>, out: &mut CodeBlock) {
        let Some(array) = field(node, "argument").filter(|a| a.kind() == "identifier") else {
            return;
        };
        let Some(size) = self
            .locals
            .arrays
            .get(self.l.text(array))
            .copied()
            .flatten()
        else {
            return;
        };
        let is_address = node
            .parent()
            .is_some_and(|p| p.kind() == "pointer_expression" || p.kind() == "sizeof_expression");
        if self.number(key).is_some_and(|k| k >= size) && !is_address {
            self.note(node, "__off_by_one", out);
        }
    }

    /// Adds a call for a loop past the end: `for (i = 0; i <= N; i++) buf[i] = …` with `buf[N]`.
    pub(super) fn loop_past_end(&mut self, node: Node<'n>, out: &mut CodeBlock) {
        let Some(test) = field(node, "condition").filter(|c| c.kind() == "binary_expression")
        else {
            return;
        };
        let operator = field(test, "operator")
            .map(|o| self.l.text(o))
            .unwrap_or_default();
        let (Some(left), Some(right)) = (field(test, "left"), field(test, "right")) else {
            return;
        };
        let Some(limit) = self.number(right) else {
            return;
        };
        let last = match operator {
            "<=" => limit,
            "<" => limit - 1,
            _ => return,
        };
        let Some(body) = field(node, "body") else {
            return;
        };
        let index = self.l.text(left);
        let arrays: Vec<(&str, i64)> = self
            .locals
            .arrays
            .iter()
            .filter_map(|(n, s)| s.map(|s| (*n, s)))
            .collect();
        for (name, size) in arrays {
            let access = format!("{name}[{index}]");
            if last < size || !self.l.text(node).contains(&access) {
                continue;
            }
            let Some(at) = self.l.text(body).find(&access) else {
                continue;
            };
            let at = body.start_byte() + at;
            if let Some(place) = body.descendant_for_byte_range(at, at + access.len()) {
                self.note(place, "__off_by_one", out);
            }
        }
    }

    /// Returns true if the function compares a variable with a value.
    pub(super) fn is_compared(&self, name: &str) -> bool {
        let text = self.l.text_around(self.locals.text);
        ["<", ">", "<=", ">="].iter().any(|o| {
            [
                format!("{name} {o}"),
                format!("{name}{o}"),
                format!("{o} {name}"),
                format!("{o}{name}"),
            ]
            .iter()
            .any(|w| text.contains(w.as_str()))
        }) || ["min(", "MIN(", "clamp("].iter().any(|w| text.contains(w))
    }

    /// Returns true if an index or size is a number from input that the function does not check.
    pub(super) fn is_number_of_input(&self, key: Node<'n>) -> bool {
        let name = self.l.text(key);
        let text = self.l.text_around(self.locals.text);
        let reads = [
            "atoi(", "atol(", "strtol(", "strtoul(", "scanf(", "ntohl(", "ntohs(", "recv(",
            "fread(", "read(",
        ];
        reads.iter().any(|w| text.contains(w)) && !self.is_compared(name)
    }

    /// Returns true if the function measures the source of a copy.
    pub(super) fn is_measured(&self, list: &[Node<'n>]) -> bool {
        let Some(source) = list.get(1).map(|n| self.l.text(*n)) else {
            return false;
        };
        if list
            .get(2)
            .is_some_and(|n| n.kind() == "identifier" && self.is_compared(self.l.text(*n)))
        {
            return true;
        }
        list.len() == 2 && self.has_measured(source)
    }

    /// Returns true if the function measures a text for a purpose other than the size of a copy.
    fn has_measured(&self, source: &str) -> bool {
        let sizes = self.count_of(&format!(", strlen({source})"));
        self.count_of(&format!("strlen({source})")) > sizes
            || self.count_of(&format!("strnlen({source}")) > 0
    }

    /// Returns how often a text occurs in the function.
    fn count_of(&self, text: &str) -> usize {
        let all = self.l.text_around(self.locals.text).as_bytes();
        memchr::memmem::find_iter(all, text.as_bytes()).count()
    }

    /// Checks the sizes and targets of a call of libc.
    pub(super) fn memory_of_call(
        &mut self,
        node: Node<'n>,
        name: &str,
        list: &[Node<'n>],
        out: &mut CodeBlock,
    ) {
        match name {
            "strcpy" | "strcat" | "stpcpy" => self.copy(node, list, out),
            "sprintf" | "vsprintf" => self.format(node, list, out),
            "strncpy" | "strncat" | "memcpy" | "memmove" | "snprintf" | "fgets" | "read"
            | "recv" | "memset" => {
                self.sized(node, name, list, out);
            }
            "fread" => self.items(node, list, out),
            "malloc" | "calloc" | "realloc" | "alloca" => self.allocation(node, name, list, out),
            "free" => {
                let is_stack = list
                    .first()
                    .is_some_and(|a| self.locals.automatic.contains(self.l.text(*a)));
                if is_stack {
                    self.note(node, "__free_of_stack", out);
                }
            }
            "access" => {
                let Some(path) = list.first().map(|n| self.l.text(*n)) else {
                    return;
                };
                let opens = ["open(", "fopen(", "chmod(", "chown("];
                let is_right = list
                    .get(1)
                    .is_some_and(|m| self.l.text(*m).contains("_OK") && self.l.text(*m) != "F_OK");
                if is_right
                    && opens
                        .iter()
                        .any(|w| self.locals.text.contains(&format!("{w}{path}")))
                {
                    self.note(node, "__access_then_open", out);
                }
            }
            "rand" | "random" if self.makes_secret() => self.note(node, "__secret_from_rand", out),
            "memcmp" | "strcmp" | "strncmp" => {
                let words = [
                    "hmac",
                    "mac",
                    "token",
                    "signature",
                    "sig",
                    "auth_tag",
                    "expected_tag",
                ];
                let secrets = list.iter().take(2).filter(|n| {
                    let t = self.l.text(**n).to_ascii_lowercase();
                    words.iter().any(|w| t.ends_with(w))
                });
                if secrets.count() == 2 {
                    self.note(node, "__secret_compare", out);
                }
            }
            _ => {}
        }
    }

    /// Returns true if the name of the function suggests a secret, such as `session_token`.
    fn makes_secret(&self) -> bool {
        let head = self.locals.text.split('(').next().unwrap_or_default();
        has_secret_name(
            head.rsplit(|c: char| !c.is_alphanumeric() && c != '_')
                .next()
                .unwrap_or_default(),
        )
    }

    fn copy(&mut self, node: Node<'n>, list: &[Node<'n>], out: &mut CodeBlock) {
        let [target, source] = list else { return };
        let (target, text) = (self.l.text(*target), self.l.text(*source));
        let known = self
            .locals
            .arrays
            .get(target)
            .or_else(|| self.locals.heaps.get(target).filter(|s| s.is_some()));
        let Some(size) = known.copied() else { return };
        if source.kind() == "string_literal" {
            let length = i64::try_from(
                text.trim_matches('"')
                    .chars()
                    .filter(|c| *c != '\\')
                    .count(),
            )
            .unwrap_or(0);
            if size.is_some_and(|s| length + 1 > s) {
                self.note(node, "__larger_than_buffer", out);
            }
            return;
        }
        if self.locals.params.contains(text) && !self.is_measured(list) {
            self.note(node, "__unsafe_copy", out);
        }
    }

    fn format(&mut self, node: Node<'n>, list: &[Node<'n>], out: &mut CodeBlock) {
        let Some(format) = list.get(1).filter(|f| f.kind() == "string_literal") else {
            return;
        };
        let text = self.l.text(*format);
        if !text.contains("%s") {
            return;
        }
        let measures = list
            .iter()
            .skip(2)
            .any(|a| self.has_measured(self.l.text(*a)));
        if measures {
            return;
        }
        let target = list.first().map(|t| self.l.text(*t)).unwrap_or_default();
        let is_array = self.locals.arrays.contains_key(target);
        if is_array
            && list.iter().skip(2).any(|a| {
                self.locals.params.contains(self.l.text(*a))
                    && self.locals.pointers.contains(self.l.text(*a))
            })
        {
            self.note(node, "__unsafe_copy", out);
        }
        let mut args = Vec::new();
        for a in list.iter().skip(2) {
            args.push(self.expr(*a));
        }
        let first = self.l.unknown(node, Vec::new());
        args.insert(0, first);
        let id = self.l.call(node, "__sprintf_text", args);
        out.push(stmt(node, StmtKind::Expr(id)));
    }

    fn sized(&mut self, node: Node<'n>, name: &str, list: &[Node<'n>], out: &mut CodeBlock) {
        let at = match name {
            "snprintf" | "fgets" => 1,
            _ => 2,
        };
        let to = if matches!(name, "read" | "recv") {
            1
        } else {
            0
        };
        let (Some(target), Some(size)) = (list.get(to), list.get(at)) else {
            return;
        };
        let (target, text) = (self.l.text(*target), self.l.text(*size));
        if let Some(Some(length)) = self.locals.arrays.get(target).copied()
            && self.locals.bytes.contains(target)
            && self.number(*size).is_some_and(|n| n > length)
        {
            self.note(node, "__larger_than_buffer", out);
            return;
        }
        let source = list.get(1).map(|s| self.l.text(*s)).unwrap_or_default();
        let is_copy = matches!(name, "strncpy" | "strncat" | "memcpy");
        if is_copy && self.locals.arrays.contains_key(target) {
            let measure = format!("strlen({source})");
            let checks = self.locals.text.matches(measure.as_str()).count() > 1;
            if (text == measure
                || text == format!("{measure} + 1")
                || text == format!("{measure}+1"))
                && !checks
            {
                self.note(node, "__length_of_source", out);
                return;
            }
        }
        let is_length = size.kind() == "identifier"
            && self.locals.params.contains(text)
            && !self.is_compared(text);
        if name == "memcpy"
            && is_length
            && self.locals.arrays.contains_key(target)
            && !self.locals.text.contains("assert")
        {
            self.note(node, "__unchecked_length", out);
            return;
        }
        let whole = text.replace(' ', "");
        if name == "strncat"
            && (whole == format!("sizeof({target})") || whole == format!("sizeof{target}"))
        {
            self.note(node, "__size_of_target", out);
            return;
        }
        let pointer = text
            .trim_start_matches("sizeof")
            .trim_matches(['(', ')', ' ']);
        if text.starts_with("sizeof")
            && pointer == target
            && self.locals.pointers.contains(target)
            && !self.locals.arrays.contains_key(target)
            && name != "read"
        {
            self.note(node, "__sizeof_pointer", out);
        }
    }

    /// Adds a call for `fread(buf, size, count, file)` that reads more bytes than `buf` has.
    fn items(&mut self, node: Node<'n>, list: &[Node<'n>], out: &mut CodeBlock) {
        let [target, size, count, ..] = list else {
            return;
        };
        let target = self.l.text(*target);
        let Some(Some(length)) = self.locals.arrays.get(target).copied() else {
            return;
        };
        let Some(bytes) = self
            .number(*size)
            .zip(self.number(*count))
            .and_then(|(a, b)| a.checked_mul(b))
        else {
            return;
        };
        if self.locals.bytes.contains(target) && bytes > length {
            self.note(node, "__larger_than_buffer", out);
        }
    }

    /// Adds a call for `std::cin >> buf` into an array of characters.
    pub(super) fn stream_into(&mut self, node: Node<'n>, target: Node<'n>, out: &mut CodeBlock) {
        if self.locals.bytes.contains(self.l.text(target)) {
            self.note(node, "__unsafe_copy", out);
        }
    }

    fn allocation(&mut self, node: Node<'n>, name: &str, list: &[Node<'n>], out: &mut CodeBlock) {
        let Some(size) = list.last() else { return };
        let text = self.l.text(*size);
        let around = node.parent().map(|p| self.l.text(p)).unwrap_or_default();
        if name == "malloc"
            && text.starts_with("strlen(")
            && text.matches('(').count() == 1
            && text.ends_with(')')
        {
            let source = text.trim_start_matches("strlen(").trim_end_matches(')');
            if self.locals.text.contains(&format!(", {source})"))
                && self.locals.text.contains("strcpy(")
            {
                self.note(node, "__malloc_without_terminator", out);
            }
        }
        if name == "realloc"
            && list.first().is_some_and(|p| {
                around
                    .trim_start_matches('*')
                    .starts_with(&format!("{} =", self.l.text(*p)))
            })
        {
            self.note(node, "__realloc_lost", out);
        }
        if name == "malloc" && size.kind() == "binary_expression" {
            for part in factors(*size) {
                if self.is_number_of_input(part) {
                    let id = self.expr(part);
                    let call = self.l.call(node, "__product", vec![id]);
                    out.push(stmt(node, StmtKind::Expr(call)));
                }
            }
        }
    }

    /// Adds a call if a secret is assigned from `rand`.
    pub(super) fn idiom_of_assignment(
        &mut self,
        target: Node<'n>,
        value: Node<'n>,
        out: &mut CodeBlock,
    ) {
        let text = self.l.text(value);
        let name = self.l.text(target);
        let name = name.split('[').next().unwrap_or_default();
        let name = name.rsplit(['.', '>']).next().unwrap_or_default();
        let words = ["rand()", "random()", "drand48()", "lrand48()"];
        let text = text.trim_start_matches("std::");
        // In `key = name_of(rand())`, the random number only selects a name from a table.
        let is_number = words.iter().any(|w| text.starts_with(w));
        if words.iter().any(|w| text.contains(w))
            && (has_secret_name(name) || (is_number && matches!(name, "key" | "iv" | "seed_key")))
        {
            self.note(value, "__secret_from_rand", out);
        }
    }
}

/// Returns the names in a product such as `w * h * sizeof(x)`, or in a sum of two parts.
fn factors(size: Node<'_>) -> Vec<Node<'_>> {
    let mut out = Vec::new();
    let mut at = size;
    loop {
        out.extend(field(at, "right").filter(|p| p.kind() == "identifier"));
        let Some(left) = field(at, "left") else { break };
        if left.kind() != "binary_expression" {
            out.extend(Some(left).filter(|p| p.kind() == "identifier"));
            break;
        }
        at = left;
    }
    out
}
