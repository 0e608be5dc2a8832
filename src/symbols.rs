//! Definitions and calls in a source file, read with tree-sitter.
//!
//! Used only for the context of models. Every name and line comes from the file itself; this module
//! does not resolve which definition a name refers to.

mod bindings;
mod cache;
mod depth;
mod grammar;
mod imports;
mod modules;
mod standard;
mod walk;
mod whole;

use crate::diff::RepoPath;
use grammar::Grammar;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Range, RangeInclusive};

pub use bindings::Binding;
pub use cache::Cache;
pub(crate) use depth::is_too_deep;
pub(crate) use standard::is_module_of_node as is_of_node;

/// Bytes of a file that is parsed, at most.
pub const MAX_BYTES: usize = 1 << 20;

/// Bytes of the heading of a definition, at most, as in git.
const MAX_HEADING: usize = 80;

/// Definitions of one name in a file that are considered for a use, at most.
const MOST_OF_A_NAME: usize = 20;

/// The kind of a definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A function, method, constructor or macro.
    Function,
    /// A class, struct, enum, interface, trait or type alias.
    Type,
    /// A test case that is a call with a description: `it("…", () => …)`.
    Test,
    /// A namespace, a module, an `impl` block: a group of definitions without a type of its own.
    Group,
}

/// A definition with its lines, counted from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Definition {
    /// Name without qualifiers: `load` of `Store::load`.
    pub name: String,
    pub kind: Kind,
    /// Lines with attributes and decorators, without comments before them.
    pub lines: RangeInclusive<u32>,
    /// Lines from the name or an attribute before it to the line in which the body starts.
    pub signature: RangeInclusive<u32>,
    /// The line with the name, in bytes of the file: without white space around it, at most
    /// [`MAX_HEADING`] bytes.
    pub heading: Range<usize>,
    /// The definition is in a function and not a member of an object: other files cannot name it.
    pub is_local: bool,
    /// The type in a qualified name: `Store` of `int Store::load() {}`; empty without one.
    pub scope: String,
    /// The types that a type extends or implements, without qualifiers.
    pub bases: Vec<String>,
}

/// The name of a variable, constant or field, where it is assigned or declared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedValue {
    pub name: String,
    /// Line number, 1-based.
    pub line: u32,
    /// The value is assigned as a member: `self.limit = 1`.
    pub is_member: bool,
}

/// A statement of several lines outside of functions: a table, a route with its handler, a guard
/// such as `if __name__ == "__main__"`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatementBlock {
    pub lines: RangeInclusive<u32>,
    /// The first line, in bytes of the file: without white space around it, at most [`MAX_HEADING`]
    /// bytes.
    pub heading: Range<usize>,
}

/// How a name is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Usage {
    Call,
    Type,
    /// Any other use: a function as an argument, a decorator, a field, a constant, a call inside of
    /// a macro.
    Mention,
}

/// The use of a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Use {
    /// Name without qualifiers: `load` of `store.load()`.
    pub name: String,
    /// The first name before the used one: `store` of `store.cache.load()`. Empty if there is none,
    /// or if something other than names precedes it. In Rust, only for paths.
    pub qualifier: String,
    pub usage: Usage,
    /// Line number, 1-based.
    pub line: u32,
}

/// The symbols of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Symbols {
    /// Definitions in order of their first lines; an outer one comes before those inside it.
    pub definitions: Vec<Definition>,
    /// Blocks in order; an outer one comes before those inside it. A definition can also be a
    /// block.
    pub blocks: Vec<StatementBlock>,
    /// Calls and names of types, in order.
    pub uses: Vec<Use>,
    /// The other uses of names outside of imports, in order.
    pub mentions: Vec<Use>,
    /// Variables, constants and fields, in order.
    pub values: Vec<NamedValue>,
    /// Names in imports; for a path, its last part without an extension.
    pub imports: BTreeSet<String>,
    /// Imported names that the file renames: `read_config` for `from x import load as read_config`,
    /// mapped to the name at the definition.
    pub renamed: BTreeMap<String, String>,
    /// Names that the file imports from the standard library, as defined there.
    pub standard: BTreeSet<String>,
    /// Modules that names are imported from, as written in imports: `requests.adapters`,
    /// `./config`, `org.junit.Test`. The keys are the name at the definition and the name in the
    /// file.
    pub modules: BTreeMap<String, BTreeSet<String>>,
    /// Modules that names of the file refer to as a whole: `numpy` by `np`. In the form of
    /// [`Symbols::modules`].
    pub whole: BTreeMap<String, BTreeSet<String>>,
    /// Parameters and local variables of functions.
    pub bindings: Vec<Binding>,
}

/// Returns the grammar of a file, by its name.
#[must_use]
pub fn language(path: &RepoPath) -> Option<tree_sitter::Language> {
    Grammar::of(path).map(|grammar| grammar.table().language.clone())
}

impl Symbols {
    /// Parses a file. `None` if there is no grammar for the language, the file is too large, or
    /// parsing took too long.
    pub fn read(path: &RepoPath, text: &[u8]) -> Option<Self> {
        let grammar = Grammar::of(path).filter(|_| text.len() <= MAX_BYTES)?;
        walk::read(grammar, text)
    }

    /// Returns the name at the definition: an import can rename it.
    pub fn original<'n>(&'n self, name: &'n str) -> &'n str {
        self.renamed.get(name).map_or(name, String::as_str)
    }

    /// Returns the modules of a use's qualifier: the module that it refers to, or those from which
    /// the file imports the type of this name.
    pub fn modules_of(&self, path: &RepoPath, symbol: &Use) -> Option<BTreeSet<String>> {
        let name = symbol.qualifier.as_str();
        if name.is_empty() || self.is_bound(name, symbol.line) {
            return None;
        }
        let is_type = name.starts_with(|c: char| c.is_uppercase());
        let is_in_path =
            Grammar::of(path).is_some_and(|grammar| matches!(grammar.family, "rust" | "c"));
        self.whole
            .get(name)
            .cloned()
            .or_else(|| {
                self.modules
                    .get(name)
                    .filter(|_| is_type != is_in_path)
                    .cloned()
            })
            // A crate or a namespace.
            .or_else(|| (is_in_path && !is_type).then(|| BTreeSet::from([name.to_owned()])))
    }

    /// Returns the functions and types of this name that a line of the file can use.
    pub fn defined_for<'n>(
        &'n self,
        name: &'n str,
        line: u32,
    ) -> impl Iterator<Item = &'n Definition> {
        let named = self.definitions.iter().filter(move |d| d.name == name);
        let kinds = named
            .filter(|d| matches!(d.kind, Kind::Function | Kind::Type))
            .take(MOST_OF_A_NAME);
        kinds.filter(move |d| {
            !d.is_local
                || self
                    .function_around(d)
                    .is_none_or(|outer| outer.lines.contains(&line))
        })
    }

    /// Returns the innermost function or test around a definition.
    fn function_around(&self, definition: &Definition) -> Option<&Definition> {
        let mut outer = self.enclosing(*definition.lines.start());
        outer.find(|o| matches!(o.kind, Kind::Function | Kind::Test) && o.lines != definition.lines)
    }

    /// Returns true if a use refers to a parameter or local variable. In Java, Kotlin and Ruby, the
    /// name in a call is always a method.
    pub fn is_local(&self, path: &RepoPath, symbol: &Use) -> bool {
        let has_methods =
            Grammar::of(path).is_some_and(|grammar| matches!(grammar.family, "jvm" | "ruby"));
        let is_variable = match symbol.usage {
            Usage::Call => !has_methods,
            Usage::Mention => true,
            Usage::Type => false,
        };
        is_variable && symbol.qualifier.is_empty() && self.is_bound(&symbol.name, symbol.line)
    }

    /// Returns true if a name is that of a parameter or local variable at a line.
    pub fn is_bound(&self, name: &str, line: u32) -> bool {
        self.bindings
            .iter()
            .any(|b| b.name == name && b.lines.contains(&line))
    }

    /// Returns the innermost function or test that contains a line.
    pub fn function_at(&self, line: u32) -> Option<&Definition> {
        self.enclosing(line)
            .find(|d| matches!(d.kind, Kind::Function | Kind::Test))
    }

    /// Returns the heading for a hunk whose first line is `first` and whose first changed line is
    /// `about`: the heading of the innermost definition or block that contains `about` and starts
    /// at or above `first`, else of the one that contains `first`, else of the one that starts
    /// between them. A declaration without a body does not count.
    pub fn heading_of(&self, first: u32, about: u32) -> Option<Range<usize>> {
        let found = self
            .heading_around(about, first)
            .or_else(|| self.heading_around(first, first));
        // A definition that starts at the changed line is new.
        found
            .or_else(|| self.heading_around(about, about.saturating_sub(1)))
            .cloned()
    }

    /// Returns the heading of the innermost definition or block that contains a line and starts at
    /// or above `last_start`.
    fn heading_around(&self, line: u32, last_start: u32) -> Option<&Range<usize>> {
        let blocks = self.blocks.iter().map(|b| (&b.lines, &b.heading));
        let definitions = self
            .definitions
            .iter()
            .filter(|d| d.kind != Kind::Function || d.signature.end() < d.lines.end());
        let scopes = blocks.chain(definitions.map(|d| (&d.lines, &d.heading)));
        let around =
            scopes.filter(|(lines, _)| lines.contains(&line) && *lines.start() <= last_start);
        // With equal lines, the last one is used: a definition, whose heading has the name.
        around
            .max_by_key(|(lines, _)| (*lines.start(), std::cmp::Reverse(*lines.end())))
            .map(|(_, heading)| heading)
    }

    /// Returns the innermost block that contains a line.
    pub fn block_at(&self, line: u32) -> Option<&StatementBlock> {
        self.blocks.iter().rev().find(|b| b.lines.contains(&line))
    }

    /// Returns the definitions that contain a line, the innermost first.
    pub fn enclosing(&self, line: u32) -> impl Iterator<Item = &Definition> {
        self.definitions
            .iter()
            .rev()
            .filter(move |d| d.lines.contains(&line))
    }
}

/// Returns true if files of this name have symbols.
pub fn is_supported(path: &RepoPath) -> bool {
    Grammar::of(path).is_some()
}

/// Returns true if each file of the language has its own namespace, and gets other names only by
/// imports.
pub fn has_own_names(path: &RepoPath) -> bool {
    Grammar::of(path).is_some_and(|grammar| matches!(grammar.family, "python" | "script"))
}

/// Returns true if one file can use the names that the other one defines.
pub fn share_names(one: &RepoPath, other: &RepoPath) -> bool {
    match (Grammar::of(one), Grammar::of(other)) {
        (Some(one), Some(other)) => one.family == other.family,
        _ => false,
    }
}

#[cfg(test)]
mod tests;
