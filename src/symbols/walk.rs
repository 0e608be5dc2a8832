//! Walks a syntax tree once and collects definitions and uses.

mod extent;
mod names;

use super::grammar::{Grammar, NameIn, NodeRole, NodeTable};
use super::modules::{self, Module};
use super::{
    Binding, Definition, Kind, NamedValue, StatementBlock, Symbols, Usage, Use, bindings, depth,
    imports, standard, whole,
};
use extent::{attributes, first, last};
use names::{FoundName, name_of};
use std::collections::HashSet;
use std::ops::ControlFlow;
use std::ops::Range;
use std::time::{Duration, Instant};
use tree_sitter::{Node, ParseOptions, Parser, Tree};

/// Parser steps for one file, at most: this number, and one more for each `BYTES_PER_STEP`. A step
/// is about 100 operations; usual files take one for some hundred bytes. The bound is the same on
/// slow and fast machines.
const STEPS: usize = 5_000;
const BYTES_PER_STEP: usize = 20;
/// Time limit for one file, in case steps take very long. Usual files take a few milliseconds.
const TIME: Duration = Duration::from_secs(3);
/// Definitions and uses of one file, at most of each.
const MOST: usize = 50_000;
/// Bytes of a line that are read around a name, at most.
const LINE: usize = 400;
/// Kinds of nodes whose statements belong to the enclosing level.
const TRANSPARENT: [&str; 8] = [
    "preproc_if",
    "preproc_ifdef",
    "preproc_else",
    "preproc_elif",
    "preproc_elifdef",
    "linkage_specification",
    "declaration_list",
    "program",
];
/// Lines of a signature, at most.
const SIGNATURE: u32 = 25;

/// Reads the symbols of a text; `None` if parsing took too long.
pub(super) fn read(grammar: &Grammar, text: &[u8]) -> Option<Symbols> {
    let table = grammar.table();
    let tree = parse(table, text)?;
    let outer = HashSet::from([tree.root_node().id()]);
    let mut reader = SymbolReader {
        nodes: NodeReader {
            grammar,
            table,
            text,
        },
        symbols: Symbols::default(),
        outer,
        taken: HashSet::new(),
        standard_from: None,
        module: None,
    };
    reader.walk(&tree);
    reader
        .symbols
        .blocks
        .sort_by_key(|b| (*b.lines.start(), std::cmp::Reverse(*b.lines.end())));
    reader
        .symbols
        .definitions
        .sort_by_key(|d| (*d.lines.start(), std::cmp::Reverse(*d.lines.end())));
    reader.symbols.uses.sort_by_key(|u| u.line);
    mark_local(&mut reader.symbols.definitions);
    Some(reader.symbols)
}

fn parse(table: &NodeTable, text: &[u8]) -> Option<Tree> {
    if depth::is_too_deep(text) {
        return None;
    }
    let mut parser = Parser::new();
    parser.set_language(&table.language).ok()?;
    let end = Instant::now() + TIME;
    let mut steps = STEPS + text.len() / BYTES_PER_STEP;
    parser.parse_with_options(
        &mut |at, _| text.get(at..).unwrap_or_default(),
        None,
        Some(ParseOptions::new().progress_callback(&mut |_| {
            steps = steps.saturating_sub(1);
            if steps > 0 && Instant::now() < end {
                ControlFlow::Continue(())
            } else {
                ControlFlow::Break(())
            }
        })),
    )
}

/// The text and the grammar of a file, to read the names and lines of its nodes.
#[derive(Clone, Copy)]
struct NodeReader<'t> {
    grammar: &'t Grammar,
    table: &'t NodeTable,
    text: &'t [u8],
}

/// Collects the symbols of one file.
struct SymbolReader<'t> {
    nodes: NodeReader<'t>,
    symbols: Symbols,
    /// Nodes whose children are outside of functions: the file, and the bodies of types and groups.
    outer: HashSet<usize>,
    /// First bytes of the names of definitions, calls and types, which are not mentions.
    taken: HashSet<usize>,
    /// First byte of the names of the current import, if it imports from the standard library.
    standard_from: Option<usize>,
    /// The module of the current import.
    module: Option<Module>,
}

impl SymbolReader<'_> {
    /// Visits every node, parents first, without recursion: hostile files can nest without limit.
    fn walk(&mut self, tree: &Tree) {
        let mut cursor = tree.walk();
        // First line of the outermost wrapper, for each open level.
        let mut wrapped: Vec<Option<u32>> = vec![None];
        let mut parents: Vec<usize> = Vec::new();
        // Number of parents of the open import.
        let mut importing: Option<usize> = None;
        // The open functions: the number of parents of each, and its lines.
        let mut scopes: Vec<(usize, Range<u32>)> = Vec::new();
        loop {
            let node = cursor.node();
            let outer = wrapped.last().copied().flatten();
            self.block(node, parents.last().copied());
            importing = importing.filter(|depth| parents.len() > *depth);
            scopes.retain(|(depth, _)| parents.len() > *depth);
            let local = self.nodes.table.local(node.kind_id());
            if local.is_scope {
                scopes.push((parents.len(), first(node)..last(node) + 1));
            }
            if let Some((_, lines)) = scopes.last().filter(|_| local.binds) {
                self.bind(node, lines);
            }
            if self.nodes.table.role(node.kind_id()) == Some(NodeRole::Import)
                && importing.is_none()
            {
                importing = Some(parents.len());
                self.standard_from = standard::names_from(node, self.nodes.text);
                self.module = modules::of(node, self.nodes.text);
                self.keep_whole(node);
            }
            let inner = match importing {
                Some(_) => self.import(node),
                None => self.visit(node, outer),
            };
            if cursor.goto_first_child() {
                parents.push(node.id());
                wrapped.push(inner);
                continue;
            }
            while !cursor.goto_next_sibling() {
                wrapped.pop();
                parents.pop();
                if !cursor.goto_parent() {
                    return;
                }
            }
        }
    }

    /// Collects a statement of several lines outside of functions. Preprocessor conditions and
    /// `extern "C"` are not statements, but contain some.
    fn block(&mut self, node: Node<'_>, parent: Option<usize>) {
        if !node.is_named() || parent.is_none_or(|id| !self.outer.contains(&id)) {
            return;
        }
        if TRANSPARENT.contains(&node.kind()) {
            self.outer.insert(node.id());
        } else if last(node) > first(node)
            && !node.kind().contains("comment")
            && self.symbols.blocks.len() < MOST
        {
            let heading = self.nodes.line_at(node.start_byte());
            self.symbols.blocks.push(StatementBlock {
                lines: first(node)..=last(node),
                heading,
            });
        }
    }

    /// Collects the symbols of a node. Returns the first line of the wrapper of its children.
    fn visit(&mut self, node: Node<'_>, wrapper: Option<u32>) -> Option<u32> {
        match self.nodes.table.role(node.kind_id()) {
            Some(NodeRole::Wrapper) => return Some(wrapper.unwrap_or_else(|| first(node))),
            Some(NodeRole::Define(kind, NameIn::Assigned { left, right })) => {
                self.require(node);
                if let Some(kind) = assigned(node, right, kind)
                    && let Some(name) = node
                        .child_by_field_name(left)
                        .and_then(|n| self.nodes.last_name(n))
                {
                    self.define(node, name, kind, wrapper);
                } else if node.kind() != "pair" {
                    self.value(node, node.child_by_field_name(left));
                }
                // In `const a = 1, b = () => {}` both declarations have the wrapper.
                return wrapper;
            }
            Some(NodeRole::Define(kind, name)) => {
                if has_content(node)
                    && let Some(name) = self.nodes.name(node, name)
                {
                    self.define(node, name, kind, wrapper);
                }
            }
            Some(NodeRole::Use(usage, name)) => {
                if let Some(path) = imports::sourced(node, self.nodes.text) {
                    self.keep_import(path);
                }
                if let Some(name) = self.nodes.name(node, name) {
                    self.refer(name, usage, first(node));
                }
            }
            Some(NodeRole::Value(NameIn::Field(field))) => {
                self.value(node, node.child_by_field_name(field));
            }
            Some(NodeRole::Value(name)) => {
                if let Some(name) = self.nodes.name(node, name) {
                    self.keep_value(&name, first(node), false);
                }
            }
            Some(NodeRole::TypeName) => {
                if let Some(name) = self.nodes.leaf(node) {
                    self.refer(name, Usage::Type, first(node));
                }
            }
            Some(NodeRole::Case { function, names }) => self.case(node, function, names, wrapper),
            Some(NodeRole::Import) => {}
            None => self.mention(node),
        }
        None
    }

    /// Collects a leaf that is a name, unless it is a definition, a call or a type.
    fn mention(&mut self, node: Node<'_>) {
        if node.child_count() > 0
            || !self.nodes.table.is_name(node.kind_id())
            || self.taken.contains(&node.start_byte())
        {
            return;
        }
        let name = self
            .nodes
            .text
            .get(node.byte_range())
            .map(|text| text.strip_prefix(b":").unwrap_or(text));
        let Some(text) = name
            .and_then(name_of)
            .filter(|_| self.symbols.mentions.len() < MOST)
        else {
            return;
        };
        let qualifier = self.nodes.qualifier(node.start_byte());
        self.symbols.mentions.push(Use {
            name: text,
            qualifier,
            usage: Usage::Mention,
            line: first(node),
        });
    }

    /// Collects the leaves of an import.
    fn import(&mut self, node: Node<'_>) -> Option<u32> {
        if node.child_count() == 0 && node.is_named() {
            self.keep_import(node);
            let is_name = !node.kind().contains("string");
            if is_name
                && self
                    .standard_from
                    .is_some_and(|first| node.start_byte() >= first)
            {
                self.keep_standard(node);
            }
            let module = self.module.take_if(|_| is_name);
            if let Some(module) = module {
                self.keep_module(node, &module);
                self.module = Some(module);
            }
        }
        if let Some(names) = imports::renamed(node) {
            self.rename(names);
        }
        None
    }

    /// Collects the names that a declaration takes from `require("…")`.
    fn require(&mut self, declaration: Node<'_>) {
        imports::required(declaration, self.nodes.text)
            .into_iter()
            .for_each(|names| self.rename(names));
        if standard::names_from(declaration, self.nodes.text).is_some() {
            standard::required_names(declaration)
                .into_iter()
                .for_each(|name| self.keep_standard(name));
        }
        self.keep_whole(declaration);
        if let Some(module) = modules::of(declaration, self.nodes.text) {
            standard::required_names(declaration)
                .into_iter()
                .for_each(|name| self.keep_module(name, &module));
        }
    }

    /// Records the names that an import gives to whole modules.
    fn keep_whole(&mut self, import: Node<'_>) {
        for (name, module) in whole::names(import, self.nodes.text) {
            if let Some(name) = name_of(name.as_bytes()).filter(|_| self.symbols.whole.len() < MOST)
            {
                self.symbols.whole.entry(name).or_default().insert(module);
            }
        }
    }

    /// Records the parameters and local variables that a node binds in a function. Imported names
    /// are not variables.
    fn bind(&mut self, node: Node<'_>, lines: &Range<u32>) {
        let value = node.child_by_field_name("value");
        let value = value.map(|v| v.child_by_field_name("object").unwrap_or(v));
        if value.is_some_and(|value| imports::is_require(value, self.nodes.text)) {
            return;
        }
        for name in bindings::names(node) {
            if let Some(name) = self
                .nodes
                .leaf(name)
                .filter(|_| self.symbols.bindings.len() < MOST)
            {
                let lines = lines.start..=lines.end.saturating_sub(1);
                self.symbols.bindings.push(Binding {
                    name: name.text,
                    lines,
                });
            }
        }
    }

    /// Records a name that the standard library defines.
    fn keep_standard(&mut self, node: Node<'_>) {
        let name = self.nodes.text.get(node.byte_range()).and_then(name_of);
        self.symbols
            .standard
            .extend(name.filter(|_| self.symbols.standard.len() < MOST));
    }

    /// Records the module that a name is imported from.
    fn keep_module(&mut self, node: Node<'_>, module: &Module) {
        let name = self
            .nodes
            .text
            .get(node.byte_range())
            .and_then(name_of)
            .filter(|_| node.start_byte() >= module.first);
        if let Some(name) = name.filter(|_| self.symbols.modules.len() < MOST) {
            self.symbols
                .modules
                .entry(name)
                .or_default()
                .insert(module.name.clone());
        }
    }

    /// Records the alias that an import gives to a name.
    fn rename(&mut self, (original, alias): imports::Renamed<'_>) {
        let names = self
            .nodes
            .last_name(original)
            .zip(self.nodes.leaf(alias).filter(|_| alias.child_count() == 0));
        if let Some((original, alias)) =
            names.filter(|(original, alias)| original.text != alias.text)
            && self.symbols.renamed.len() < MOST
        {
            self.symbols.renamed.insert(alias.text, original.text);
        }
    }

    /// Records the name that a leaf imports: a name, or the last part of a path without its
    /// extension.
    fn keep_import(&mut self, node: Node<'_>) {
        let text = self.nodes.text.get(node.byte_range()).unwrap_or_default();
        let text = String::from_utf8_lossy(&text[..text.len().min(LINE)]);
        let path = text.trim_matches(['"', '\'', '`', '<', '>']);
        let last = path
            .rsplit(['/', '\\'])
            .find(|part| !part.is_empty())
            .unwrap_or_default();
        let stem = last
            .split('.')
            .find(|part| !part.is_empty())
            .unwrap_or_default();
        if let Some(name) = name_of(stem.as_bytes()).filter(|_| self.symbols.imports.len() < MOST) {
            self.symbols.imports.insert(name);
        }
    }

    /// Collects a variable, constant or field from the node with its name.
    fn value(&mut self, node: Node<'_>, named: Option<Node<'_>>) {
        let Some(named) = named else { return };
        let receiver = ["object", "left", "operand"]
            .iter()
            .find_map(|field| named.child_by_field_name(field));
        let receiver = receiver.and_then(|n| self.nodes.text.get(n.byte_range()));
        let is_member =
            named.kind() == "instance_variable" || matches!(receiver, Some(b"self" | b"this"));
        if named.child_count() > 0
            && !is_member
            && !matches!(receiver, Some(b"exports" | b"module.exports"))
        {
            return;
        }
        if let Some(name) = self.nodes.last_name(named) {
            self.keep_value(&name, first(node), is_member);
        }
    }

    fn keep_value(&mut self, name: &FoundName, line: u32, is_member: bool) {
        self.taken.insert(name.at);
        if self.symbols.values.len() < MOST {
            let name = name.text.trim_start_matches('@').to_owned();
            self.symbols.values.push(NamedValue {
                name,
                line,
                is_member,
            });
        }
    }

    /// Collects a call, which may be a test case.
    fn case(&mut self, node: Node<'_>, function: &str, names: &[&str], wrapper: Option<u32>) {
        let Some(called) = node.child_by_field_name(function) else {
            return;
        };
        // `test.each(…)` and `it.only` are test cases too.
        let base = called.child_by_field_name("object").unwrap_or(called);
        let is_case = self
            .nodes
            .leaf(base)
            .is_some_and(|n| names.contains(&n.text.as_str()));
        let title = node
            .child_by_field_name("arguments")
            .and_then(|a| a.named_child(0));
        if is_case && let Some(title) = title.filter(|t| t.kind().contains("string")) {
            let name = FoundName {
                text: self.nodes.shown(title),
                at: node.start_byte(),
            };
            return self.define(node, name, Kind::Test, wrapper);
        }
        let path = title.filter(|t| t.kind().contains("string"));
        if let (Some("require" | "require_relative"), Some(path)) = (
            self.nodes.leaf(called).as_ref().map(|n| n.text.as_str()),
            path,
        ) {
            self.keep_import(path);
        }
        if let Some(name) = self.nodes.last_name(called) {
            self.refer(name, Usage::Call, called.end_position().row as u32 + 1);
        }
    }

    fn define(&mut self, node: Node<'_>, name: FoundName, kind: Kind, wrapper: Option<u32>) {
        if self.symbols.definitions.len() >= MOST || name.text.is_empty() {
            return;
        }
        let start = wrapper.unwrap_or_else(|| first(node)).min(attributes(node));
        let end = last(node).max(start);
        let body = if kind == Kind::Test {
            callback(node)
        } else {
            self.nodes.body(node)
        };
        if let (Kind::Type | Kind::Group, Some(body)) = (kind, body) {
            self.outer.insert(body.id());
        }
        let signature = match body {
            Some(body) => self.nodes.before(body).max(first(node)),
            None => end,
        };
        let signature = signature
            .clamp(start, end)
            .min(first(node) + SIGNATURE)
            .max(start);
        let heading = self.nodes.line_at(name.at);
        let (lines, signature) = (start..=end, start..=signature);
        self.taken.insert(name.at);
        // A first guess from the node itself; `mark_local` corrects it with the surrounding
        // definitions.
        let is_local = !is_member(node);
        let scope = if kind == Kind::Function {
            self.nodes.scope(node)
        } else {
            String::new()
        };
        let bases = if kind == Kind::Function {
            Vec::new()
        } else {
            self.nodes.bases(node)
        };
        let name = name.text;
        self.symbols.definitions.push(Definition {
            name,
            kind,
            lines,
            signature,
            heading,
            is_local,
            scope,
            bases,
        });
    }

    fn refer(&mut self, name: FoundName, usage: Usage, line: u32) {
        if self.symbols.uses.len() < MOST && !name.text.is_empty() && self.taken.insert(name.at) {
            let qualifier = self.nodes.qualifier(name.at);
            self.symbols.uses.push(Use {
                name: name.text,
                qualifier,
                usage,
                line,
            });
        }
    }
}

/// Returns true for a definition that is a member of an object: a method, or
/// `store.load = () => {}`.
fn is_member(node: Node<'_>) -> bool {
    let left = node.child_by_field_name("left");
    matches!(node.kind(), "pair" | "method_definition")
        || left.is_some_and(|n| n.kind() == "member_expression")
}

/// Sets [`Definition::is_local`] for definitions inside of functions, in order of their first
/// lines.
fn mark_local(definitions: &mut [Definition]) {
    let mut open: Vec<usize> = Vec::new();
    for at in 0..definitions.len() {
        let start = *definitions[at].lines.start();
        open.retain(|outer| *definitions[*outer].lines.end() >= start);
        let outer = open.last().map(|outer| &definitions[*outer]);
        let is_inside = outer.is_some_and(|outer| match outer.kind {
            Kind::Function | Kind::Test => true,
            // A method of a local class is as local as the class.
            Kind::Type | Kind::Group => outer.is_local,
        });
        definitions[at].is_local &= is_inside;
        open.push(at);
    }
}

/// Returns the kind of definition that an assignment makes, if its right side is a function or a
/// class.
fn assigned(node: Node<'_>, right: &str, kind: Kind) -> Option<Kind> {
    match node.child_by_field_name(right)?.kind() {
        "arrow_function" | "function_expression" | "generator_function" => Some(kind),
        "class" => Some(Kind::Type),
        _ => None,
    }
}

/// Returns the body of the function that is the last argument of a call, or of its block.
fn callback(node: Node<'_>) -> Option<Node<'_>> {
    let arguments = node.child_by_field_name("arguments");
    let last =
        arguments.and_then(|a| a.named_child((a.named_child_count() as u32).checked_sub(1)?));
    last.and_then(|function| function.child_by_field_name("body"))
        .or_else(|| node.child_by_field_name("block"))
}

/// Returns false for a declaration without a body: `struct point` in C is a use of the type.
fn has_content(node: Node<'_>) -> bool {
    !node.kind().ends_with("_specifier") || node.child_by_field_name("body").is_some()
}
