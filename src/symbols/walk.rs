//! Walks a syntax tree once and collects definitions and uses.

use super::grammar::{Grammar, NameIn, Role, Table};
use super::{Definition, Kind, MAX_HEADING, Symbols, Usage, Use};
use std::ops::ControlFlow;
use std::ops::Range;
use std::time::{Duration, Instant};
use tree_sitter::{Node, ParseOptions, Parser, Tree};

/// The longest time that one file may take. Usual files take a few milliseconds.
const TIME: Duration = Duration::from_millis(500);
/// Levels of a name such as `a.b.c` that are looked into.
const DEPTH: usize = 12;
/// Definitions and uses of one file, at most of each.
const MOST: usize = 50_000;
/// Bytes of a name.
const NAME: usize = 120;
/// Bytes of a line that are looked at around a name.
const LINE: usize = 400;
/// Lines of a signature.
const SIGNATURE: u32 = 25;

/// A name, and its first byte in the file.
struct Name {
    text: String,
    at: usize,
}

/// Reads the symbols of a text. `None`: parsing took too long.
pub(super) fn read(grammar: &Grammar, text: &[u8]) -> Option<Symbols> {
    let table = grammar.table();
    let tree = parse(table, text)?;
    let mut reader = Reader { grammar, table, text, symbols: Symbols::default() };
    reader.walk(&tree);
    reader.symbols.definitions.sort_by_key(|d| (*d.lines.start(), std::cmp::Reverse(*d.lines.end())));
    reader.symbols.uses.sort_by_key(|u| u.line);
    Some(reader.symbols)
}

fn parse(table: &Table, text: &[u8]) -> Option<Tree> {
    let mut parser = Parser::new();
    parser.set_language(&table.language).ok()?;
    let end = Instant::now() + TIME;
    let mut stop = |_: &tree_sitter::ParseState| match Instant::now() < end {
        true => ControlFlow::Continue(()),
        false => ControlFlow::Break(()),
    };
    let options = ParseOptions::new().progress_callback(&mut stop);
    parser.parse_with_options(&mut |at, _| text.get(at..).unwrap_or_default(), None, Some(options))
}

struct Reader<'t> {
    grammar: &'t Grammar,
    table: &'t Table,
    text: &'t [u8],
    symbols: Symbols,
}

impl Reader<'_> {
    /// Visits every node, parents first, without recursion: nesting has no limit in hostile files.
    fn walk(&mut self, tree: &Tree) {
        let mut cursor = tree.walk();
        // The first line of the outermost wrapper, for each level that is open.
        let mut wrapped: Vec<Option<u32>> = vec![None];
        loop {
            let node = cursor.node();
            let outer = wrapped.last().copied().flatten();
            let inner = self.visit(node, outer);
            if cursor.goto_first_child() {
                wrapped.push(inner);
                continue;
            }
            while !cursor.goto_next_sibling() {
                wrapped.pop();
                if !cursor.goto_parent() {
                    return;
                }
            }
        }
    }

    /// Collects what a node says. Returns the first line of the wrapper that its children are in.
    fn visit(&mut self, node: Node<'_>, wrapper: Option<u32>) -> Option<u32> {
        match self.table.role(node.kind_id()) {
            Some(Role::Wrapper) => return Some(wrapper.unwrap_or_else(|| first(node))),
            Some(Role::Define(kind, NameIn::Assigned { left, right })) => {
                if let Some(kind) = assigned(node, right, kind)
                    && let Some(name) = node.child_by_field_name(left).and_then(|n| self.last_name(n))
                {
                    self.define(node, name, kind, wrapper);
                }
                // In `const a = 1, b = () => {}` the wrapper is that of each.
                return wrapper;
            }
            Some(Role::Define(kind, name)) => {
                if has_content(node)
                    && let Some(name) = self.name(node, name)
                {
                    self.define(node, name, kind, wrapper);
                }
            }
            Some(Role::Use(usage, name)) => {
                if let Some(name) = self.name(node, name) {
                    self.refer(name, usage, first(node));
                }
            }
            Some(Role::TypeName) => {
                if let Some(name) = self.leaf(node) {
                    self.refer(name, Usage::Type, first(node));
                }
            }
            Some(Role::Case { function, names }) => self.case(node, function, names, wrapper),
            None => {}
        }
        None
    }

    /// Collects a call, which may be a test case.
    fn case(&mut self, node: Node<'_>, function: &str, names: &[&str], wrapper: Option<u32>) {
        let Some(called) = node.child_by_field_name(function) else { return };
        // `test.each(…)` and `it.only` are test cases, too.
        let base = called.child_by_field_name("object").unwrap_or(called);
        let is_case = self.leaf(base).is_some_and(|n| names.contains(&n.text.as_str()));
        let title = node.child_by_field_name("arguments").and_then(|a| a.named_child(0));
        if is_case && let Some(title) = title.filter(|t| t.kind().contains("string")) {
            let name = Name { text: self.shown(title), at: node.start_byte() };
            return self.define(node, name, Kind::Test, wrapper);
        }
        if let Some(name) = self.last_name(called) {
            self.refer(name, Usage::Call, called.end_position().row as u32 + 1);
        }
    }

    fn define(&mut self, node: Node<'_>, name: Name, kind: Kind, wrapper: Option<u32>) {
        if self.symbols.definitions.len() >= MOST || name.text.is_empty() {
            return;
        }
        let start = wrapper.unwrap_or_else(|| first(node)).min(attributes(node));
        let end = last(node).max(start);
        let signature = match self.body(node) {
            Some(body) => self.before(body).max(first(node)),
            None => end,
        };
        let signature = signature.clamp(start, end).min(first(node) + SIGNATURE).max(start);
        let heading = self.line_at(name.at);
        let (lines, signature) = (start..=end, start..=signature);
        self.symbols.definitions.push(Definition { name: name.text, kind, lines, signature, heading });
    }

    /// Returns the line that contains a byte, without white space around it, at most [`MAX_HEADING`] bytes.
    fn line_at(&self, at: usize) -> Range<usize> {
        // Of a long line, such as a minified file, only the part from the name on.
        let start = self.line_start(at).unwrap_or(at);
        let rest = &self.text[start..self.text.len().min(start + LINE)];
        let line = &rest[..memchr::memchr(b'\n', rest).unwrap_or(rest.len())];
        let start = start + (line.len() - line.trim_ascii_start().len());
        let line = line.trim_ascii();
        let is_start = |end: &usize| line.get(*end).is_none_or(|b| b & 0xc0 != 0x80);
        let end = (0..=line.len().min(MAX_HEADING)).rev().find(is_start).unwrap_or(0);
        start..start + line[..end].trim_ascii_end().len()
    }

    /// Returns the start of the line of a byte; `None` if it is more than [`LINE`] bytes before it.
    fn line_start(&self, at: usize) -> Option<usize> {
        let from = at.saturating_sub(LINE);
        match memchr::memrchr(b'\n', &self.text[from..at]) {
            Some(i) => Some(from + i + 1),
            None => (from == 0).then_some(0),
        }
    }

    fn refer(&mut self, name: Name, usage: Usage, line: u32) {
        if self.symbols.uses.len() < MOST && !name.text.is_empty() {
            self.symbols.uses.push(Use { name: name.text, usage, line });
        }
    }

    /// Returns the body of a definition, or that of the function that is assigned.
    fn body<'n>(&self, node: Node<'n>) -> Option<Node<'n>> {
        let direct = node.child_by_field_name("body");
        let value = || {
            ["value", "right", "type"].iter().find_map(|f| {
                let value = node.child_by_field_name(f)?;
                if self.grammar.bodies.contains(&value.kind()) {
                    return Some(value);
                }
                value.child_by_field_name("body")
            })
        };
        let child = || {
            let mut cursor = node.walk();
            node.named_children(&mut cursor).find(|c| self.grammar.bodies.contains(&c.kind()))
        };
        direct.or_else(value).or_else(child)
    }

    /// Returns the last line of what stands before a body.
    fn before(&self, body: Node<'_>) -> u32 {
        let line = first(body);
        let start = self.line_start(body.start_byte());
        let is_alone = start.is_some_and(|s| self.text[s..body.start_byte()].iter().all(u8::is_ascii_whitespace));
        // A brace on a line of its own belongs to the signature in no style.
        if is_alone { line.saturating_sub(1).max(1) } else { line }
    }

    fn name(&self, node: Node<'_>, name: NameIn) -> Option<Name> {
        match name {
            NameIn::Field(field) => self.last_name(node.child_by_field_name(field)?),
            NameIn::Declarator => {
                let mut at = node;
                for _ in 0..DEPTH {
                    match at.child_by_field_name("declarator") {
                        Some(inner) => at = inner,
                        None => break,
                    }
                }
                if at == node { None } else { self.last_name(at) }
            }
            NameIn::Assigned { left, .. } => self.last_name(node.child_by_field_name(left)?),
            NameIn::Child(kinds) => {
                let mut cursor = node.walk();
                let child = node.named_children(&mut cursor).find(|c| kinds.contains(&c.kind()))?;
                self.last_name(child)
            }
        }
    }

    /// Returns the last part of a name: `c` of `a.b.c`, `a::b::c`, `a->c`, `c<T>`.
    fn last_name(&self, node: Node<'_>) -> Option<Name> {
        /// Fields in which qualified names have their last part.
        const LAST: [&str; 8] = ["property", "attribute", "field", "name", "function", "method", "suffix", "operand"];
        let mut at = node;
        for _ in 0..DEPTH {
            if at.named_child_count() == 0 {
                return self.leaf(at);
            }
            let inner = LAST.iter().find_map(|f| at.child_by_field_name(f));
            let last = || {
                (0..at.named_child_count()).rev().find_map(|i| {
                    let child = at.named_child(i as u32)?;
                    let is_name = ["identifier", "name", "constant", "word"].iter().any(|k| child.kind().ends_with(k));
                    (is_name || child.kind() == "user_type").then_some(child)
                })
            };
            at = inner.or_else(last)?;
        }
        None
    }

    /// Returns the text of a leaf if it is a name.
    fn leaf(&self, node: Node<'_>) -> Option<Name> {
        let text = self.text.get(node.byte_range())?;
        let is_name = |b: &u8| b.is_ascii_alphanumeric() || b"_$!?=-~#@.".contains(b) || !b.is_ascii();
        if text.is_empty() || text.len() > NAME || !text.iter().all(is_name) {
            return None;
        }
        Some(Name { text: String::from_utf8_lossy(text).into_owned(), at: node.start_byte() })
    }

    /// Returns the start of a text, on one line.
    fn shown(&self, node: Node<'_>) -> String {
        let text = self.text.get(node.byte_range()).unwrap_or_default();
        let text = String::from_utf8_lossy(&text[..text.len().min(NAME)]);
        text.split_whitespace().collect::<Vec<_>>().join(" ").trim_matches(['"', '\'', '`']).to_owned()
    }
}

/// Returns what an assignment defines, if its right side is a function or a class.
fn assigned(node: Node<'_>, right: &str, kind: Kind) -> Option<Kind> {
    match node.child_by_field_name(right)?.kind() {
        "arrow_function" | "function_expression" | "generator_function" => Some(kind),
        "class" => Some(Kind::Type),
        _ => None,
    }
}

/// Returns false for a mention without content: `struct point` in C is a use of the type.
fn has_content(node: Node<'_>) -> bool {
    !node.kind().ends_with("_specifier") || node.child_by_field_name("body").is_some()
}

fn first(node: Node<'_>) -> u32 {
    node.start_position().row as u32 + 1
}

/// Returns the last line; an end at the start of a line is the line before.
fn last(node: Node<'_>) -> u32 {
    let end = node.end_position();
    if end.column == 0 && end.row > node.start_position().row { end.row as u32 } else { end.row as u32 + 1 }
}

/// Returns the first line of the attributes that stand directly before a definition, or its own.
fn attributes(node: Node<'_>) -> u32 {
    let mut line = first(node);
    let mut before = node.prev_sibling();
    while let Some(attribute) = before.filter(|n| n.kind() == "attribute_item" && last(*n) + 1 >= line) {
        line = first(attribute);
        before = attribute.prev_sibling();
    }
    line
}
