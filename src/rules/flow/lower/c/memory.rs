//! Memory errors that the text of one function shows.

use super::super::super::shape::{CodeBlock, StmtKind};
use super::super::words::{has_secret_name, is_word};
use super::super::{child, children, field, fields, integer, stmt};
use super::C;
use std::collections::{HashMap, HashSet};
use tree_sitter::Node;

/// Pairs of a freed pointer and a later statement of the same block that are compared, at most.
const MOST_PAIRS: usize = 20_000;

/// Variables of a function.
#[derive(Debug, Default)]
pub(super) struct Locals<'t> {
    /// The text of the function.
    text: &'t str,
    /// Arrays and their lengths in elements, if known.
    arrays: HashMap<&'t str, Option<i64>>,
    /// Arrays of characters, whose length is their size.
    bytes: HashSet<&'t str>,
    /// Arrays whose lifetime ends with the function.
    automatic: HashSet<&'t str>,
    pointers: HashSet<&'t str>,
    params: HashSet<&'t str>,
    /// Pointers to memory of a known size: `char *p = malloc(8)`.
    heaps: HashMap<&'t str, Option<i64>>,
    /// Other variables whose lifetime ends with the function.
    scalars: HashSet<&'t str>,
}

/// The use of a pointer by a statement after the pointer was freed.
enum UseAfterFree<'n> {
    /// The statement does not name the pointer.
    None,
    /// The statement assigns the pointer, or its effect is unknown.
    Other,
    /// The statement frees the pointer again.
    Free(Node<'n>),
    /// The statement reads or writes the data behind the pointer.
    Read(Node<'n>),
}

impl<'n, 't> C<'_, 't> {
    pub(super) fn locals_of(&self, function: Node<'n>, params: Option<Node<'n>>) -> Locals<'t> {
        let mut locals = Locals {
            text: self.l.text(function),
            ..Default::default()
        };
        for p in params.map(children).unwrap_or_default() {
            let Some(d) = field(p, "declarator") else {
                continue;
            };
            let Some(name) = self.declared(d).map(|n| self.l.text(n)) else {
                continue;
            };
            locals.params.insert(name);
            if matches!(d.kind(), "pointer_declarator" | "array_declarator") {
                locals.pointers.insert(name);
            }
        }
        let Some(body) = field(function, "body") else {
            return locals;
        };
        let mut cursor = body.walk();
        let mut is_inside = true;
        while is_inside {
            let node = cursor.node();
            if node.kind() == "declaration" {
                self.declare(node, &mut locals);
            }
            if cursor.goto_first_child() {
                continue;
            }
            while !cursor.goto_next_sibling() {
                if !cursor.goto_parent() || cursor.node().id() == body.id() {
                    is_inside = false;
                    break;
                }
            }
        }
        locals
    }

    fn declare(&self, node: Node<'n>, locals: &mut Locals<'t>) {
        let ty = field(node, "type")
            .map(|t| self.l.text(t))
            .unwrap_or_default();
        let is_byte = matches!(
            ty,
            "char"
                | "unsigned char"
                | "signed char"
                | "uint8_t"
                | "int8_t"
                | "u_char"
                | "BYTE"
                | "u8"
        );
        let is_static =
            child(node, "storage_class_specifier").is_some_and(|s| self.l.text(s) == "static");
        for d in fields(node, "declarator") {
            let inner = if d.kind() == "init_declarator" {
                field(d, "declarator").unwrap_or(d)
            } else {
                d
            };
            let Some(name) = self.declared(inner).map(|n| self.l.text(n)) else {
                continue;
            };
            match inner.kind() {
                "array_declarator" => {
                    let is_nested =
                        field(inner, "declarator").is_some_and(|i| i.kind() != "identifier");
                    let size = field(inner, "size")
                        .and_then(|s| self.number(s))
                        .filter(|_| !is_nested);
                    // The size is unknown if two arrays in different blocks have the same name.
                    let known = locals.arrays.insert(name, size);
                    if known.is_some_and(|k| k != size) {
                        locals.arrays.insert(name, None);
                    }
                    if is_byte && !is_nested {
                        locals.bytes.insert(name);
                    }
                    if !is_static {
                        locals.automatic.insert(name);
                    }
                }
                "pointer_declarator" if self.l.text(inner).contains('[') => {
                    locals.arrays.insert(name, None);
                }
                "pointer_declarator" => {
                    locals.pointers.insert(name);
                    if let Some(size) = self.allocated(d).filter(|_| is_byte) {
                        let known = locals.heaps.insert(name, Some(size));
                        if known.is_some() {
                            locals.heaps.insert(name, None);
                        }
                    }
                }
                "identifier" if !is_static => {
                    locals.scalars.insert(name);
                }
                _ => {}
            }
        }
    }

    /// Returns the number of bytes that `char *p = malloc(8)` allocates.
    fn allocated(&self, declarator: Node<'n>) -> Option<i64> {
        let mut value = field(declarator, "value")?;
        if value.kind() == "cast_expression" {
            value = field(value, "value")?;
        }
        let name = self.l.text(field(value, "function")?);
        let size = children(field(value, "arguments")?)
            .first()
            .copied()
            .filter(|_| name == "malloc")?;
        self.number(size)
    }

    /// Returns the value of a number, a macro, a sum or a product.
    fn number(&self, node: Node<'n>) -> Option<i64> {
        match node.kind() {
            "number_literal" => integer(self.l.text(node)),
            "identifier" => self.macros.get(self.l.text(node)).copied(),
            "parenthesized_expression" => children(node).first().and_then(|n| self.number(*n)),
            "sizeof_expression" => {
                let of = field(node, "value").or_else(|| field(node, "type"))?;
                let name = self.l.text(of).trim_matches(['(', ')', ' ']);
                self.locals
                    .bytes
                    .contains(name)
                    .then(|| self.locals.arrays.get(name).copied().flatten())
                    .flatten()
            }
            "binary_expression" => {
                let (a, b) = (
                    self.number(field(node, "left")?)?,
                    self.number(field(node, "right")?)?,
                );
                match self.l.text(field(node, "operator")?) {
                    "+" => a.checked_add(b),
                    "-" => a.checked_sub(b),
                    "*" => a.checked_mul(b),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    fn note(&mut self, node: Node<'n>, name: &str, out: &mut CodeBlock) {
        let id = self.l.call(node, name, Vec::new());
        out.push(stmt(node, StmtKind::Expr(id)));
    }

    /// Adds a call if statements of one block use or free a pointer after they freed it.
    pub(super) fn frees(&mut self, nodes: &[Node<'n>], out: &mut CodeBlock) {
        let mut pairs = 0;
        for (i, node) in nodes.iter().enumerate() {
            let Some(name) = self.freed(*node).or_else(|| self.freed_in_branch(*node)) else {
                continue;
            };
            let is_sure = self.freed(*node).is_some();
            let rest = nodes.get(i + 1..).unwrap_or_default();
            for later in rest {
                pairs += 1;
                if pairs > MOST_PAIRS {
                    return;
                }
                if matches!(
                    later.kind(),
                    "labeled_statement" | "case_statement" | "preproc_else" | "preproc_elif"
                ) {
                    break;
                }
                if self.freed(*later) == Some(name) {
                    self.note(*later, "__double_free", out);
                    break;
                }
                match self.use_of(*later, name) {
                    UseAfterFree::None => {}
                    UseAfterFree::Other => break,
                    UseAfterFree::Free(at) => self.note(at, "__double_free", out),
                    UseAfterFree::Read(at) => {
                        // After a branch that frees the pointer, another condition may guard the
                        // use.
                        if is_sure {
                            self.note(at, "__use_after_free", out);
                        }
                        break;
                    }
                }
                if matches!(
                    later.kind(),
                    "return_statement"
                        | "break_statement"
                        | "goto_statement"
                        | "continue_statement"
                ) {
                    break;
                }
            }
        }
    }

    /// Returns the pointer that a branch frees before execution continues: `if (failed) { free(p);
    /// }`.
    fn freed_in_branch(&self, node: Node<'n>) -> Option<&'t str> {
        if node.kind() != "if_statement" || field(node, "alternative").is_some() {
            return None;
        }
        let body = field(node, "consequence").filter(|b| b.kind() == "compound_statement")?;
        let name = children(body).last().and_then(|last| self.freed(*last))?;
        // The text does not show enough if the condition checks the pointer, as in `if (p)
        // free(p);`.
        let test = field(node, "condition")
            .map(|t| self.l.text(t))
            .unwrap_or_default();
        (!test.contains(name)).then_some(name)
    }

    /// Returns the pointer that a statement frees: `free(p);`, `delete p;`.
    fn freed(&self, node: Node<'n>) -> Option<&'t str> {
        let inner = if node.kind() == "expression_statement" {
            children(node).first().copied()?
        } else {
            node
        };
        let pointer = match inner.kind() {
            "call_expression"
                if matches!(
                    self.l.text(field(inner, "function")?),
                    "free" | "std::free" | "kfree" | "g_free"
                ) =>
            {
                children(field(inner, "arguments")?).first().copied()?
            }
            "delete_expression" => children(inner).last().copied()?,
            _ => return None,
        };
        matches!(pointer.kind(), "identifier" | "field_expression").then(|| self.l.text(pointer))
    }

    /// Returns how a statement uses a pointer that was freed before.
    fn use_of(&self, node: Node<'n>, name: &str) -> UseAfterFree<'n> {
        let text = self.l.text(node);
        let mut from = 0;
        while let Some(at) = text.get(from..).and_then(|t| t.find(name)) {
            let start = from + at;
            let end = start + name.len();
            let before = text.get(..start).unwrap_or_default();
            let after = text.get(end..).unwrap_or_default();
            let is_whole = !before.ends_with(is_word)
                && !after.starts_with(is_word)
                && !before.ends_with("->")
                && !before.ends_with('.');
            from = end;
            if !is_whole {
                continue;
            }
            let rest = after.trim_start();
            if rest.starts_with('=') && !rest.starts_with("==") && !before.ends_with('*') {
                // `p = p->next` reads the pointer before it assigns it.
                let code = rest.split(';').next().unwrap_or_default();
                let code = code
                    .replace("sizeof(*", "sizeof(?")
                    .replace("sizeof *", "sizeof ?");
                let reads = [format!("{name}->"), format!("{name}["), format!("*{name}")];
                let read = reads.iter().filter_map(|r| code.find(r.as_str())).min();
                let offset = node.start_byte() + end + (after.len() - rest.len());
                let read =
                    read.and_then(|r| node.descendant_for_byte_range(offset + r, offset + r + 1));
                return read.map_or(UseAfterFree::Other, UseAfterFree::Read);
            }
            // An address or a size does not read the data behind the pointer.
            let is_address = before.ends_with('&') && !before.ends_with("&&");
            if is_address || before.ends_with("sizeof(") || before.ends_with("sizeof ") {
                return UseAfterFree::Other;
            }
            let offset = node.start_byte() + start;
            let Some(place) = node.descendant_for_byte_range(offset, offset + name.len()) else {
                return UseAfterFree::Other;
            };
            if before.ends_with("free(") && node.kind() == "if_statement" {
                return UseAfterFree::Free(place);
            }
            return if self.is_dereferenced(place) {
                UseAfterFree::Read(place)
            } else {
                UseAfterFree::Other
            };
        }
        UseAfterFree::None
    }

    /// Returns true if the data behind a pointer is used: `*p`, `p->x`, `p[i]`, or an argument of a
    /// call.
    fn is_dereferenced(&self, place: Node<'n>) -> bool {
        let mut at = place;
        for _ in 0..3 {
            let Some(p) = at.parent() else { return false };
            match p.kind() {
                "subscript_expression" => {
                    return field(p, "argument").is_some_and(|a| a.id() == at.id());
                }
                "pointer_expression" => return self.l.text(p).starts_with('*'),
                "field_expression" => {
                    if self.l.text(p).contains("->") {
                        return true;
                    }
                    at = p;
                }
                "argument_list" => {
                    let call = p
                        .parent()
                        .and_then(|c| field(c, "function"))
                        .map(|f| self.l.text(f))
                        .unwrap_or_default();
                    let reads = [
                        "printf", "puts", "str", "mem", "write", "send", "fputs", "atoi",
                        "fprintf", "sprintf",
                    ];
                    return reads.iter().any(|w| call.starts_with(w))
                        && !call.starts_with("memset_free");
                }
                "return_statement" => return true,
                _ => return false,
            }
        }
        false
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
        let text = self.locals.text;
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
        let text = self.locals.text;
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
        self.locals.text.matches(text).count()
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
                let words = ["hmac", "mac", "token", "signature", "expected_tag"];
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
