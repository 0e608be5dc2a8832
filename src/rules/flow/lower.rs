//! Turns a syntax tree into a [`Module`]: one file for each language, and shared functions.

mod c;
mod csharp;
mod go;
mod java;
mod javascript;
mod kotlin;
mod php;
mod python;
mod ruby;
mod slow;
mod words;

use super::FlowLanguage;
use super::shape::{
    Arg, ByteSpan, CodeBlock, ExprId, ExprKind, Import, Module, Stmt, StmtKind, Sym,
};
use foldhash::{HashMap, HashMapExt as _};
use std::cell::{Cell, RefCell};
use std::num::NonZeroU16;
use tree_sitter::{Language, Node};

/// Depth of nested expressions and statements, at most.
const DEPTH: u32 = 120;
/// Nodes of the shape of one file.
const MOST: usize = 400_000;

/// Returns the shape of a file.
pub(super) fn module(language: FlowLanguage, root: Node<'_>, text: &[u8]) -> Module {
    let mut l = Lower {
        text,
        module: Module::default(),
        depth: 0,
        language,
        searches: Cell::new(MOST_SEARCHED),
        surroundings: Cell::new(MOST_AROUND + AROUND_SHARE * text.len()),
    };
    let body = match language {
        FlowLanguage::Python => python::file(&mut l, root),
        FlowLanguage::JavaScript | FlowLanguage::TypeScript | FlowLanguage::Tsx => {
            javascript::file(&mut l, root)
        }
        FlowLanguage::Java => java::file(&mut l, root),
        FlowLanguage::Kotlin => kotlin::file(&mut l, root),
        FlowLanguage::Go => go::file(&mut l, root),
        FlowLanguage::Php => php::file(&mut l, root),
        FlowLanguage::Ruby => ruby::file(&mut l, root),
        FlowLanguage::CSharp => csharp::file(&mut l, root),
        FlowLanguage::C | FlowLanguage::Cpp => c::file(&mut l, root),
    };
    l.module.body = body;
    l.module.is_partial |= l.surroundings.get() == 0;
    l.module
}

/// The state of a lowering.
pub(super) struct Lower<'t> {
    text: &'t [u8],
    pub(super) module: Module,
    depth: u32,
    pub(super) language: FlowLanguage,
    /// Nodes that searches for declarations may still read.
    searches: Cell<usize>,
    /// Bytes that searches of the text around calls may still read.
    surroundings: Cell<usize>,
}

/// Nodes that searches for declarations read in a file, at most.
const MOST_SEARCHED: usize = 200_000;
/// Bytes that are read in the text around calls, at most: in a file of any length, and for each byte
/// of a file. Facts about the function of a call are read for each call, so a function of a megabyte
/// with tens of thousands of calls needs a bound.
const MOST_AROUND: usize = 1 << 30;
const AROUND_SHARE: usize = 64;

impl<'t> Lower<'t> {
    /// Returns true if a search may read so many nodes more.
    pub(super) fn may_search(&self, nodes: usize) -> bool {
        let left = self.searches.get();
        self.searches.set(left.saturating_sub(nodes));
        left > nodes
    }

    /// Returns the text around a call, which a number of words is searched in. After too many of
    /// them, it is empty and the analysis is not complete.
    pub(super) fn text_around(&self, text: &'t str) -> &'t str {
        /// Words that are searched in such a text.
        const WORDS: usize = 8;
        let left = self.surroundings.get().saturating_sub(WORDS * text.len());
        self.surroundings.set(left);
        if left > 0 { text } else { "" }
    }

    /// Returns the text of a node. Returns an empty text if it is not UTF-8.
    pub(super) fn text(&self, node: Node<'_>) -> &'t str {
        self.text
            .get(node.byte_range())
            .and_then(|t| std::str::from_utf8(t).ok())
            .unwrap_or_default()
    }

    /// Interns a word.
    pub(super) fn sym(&mut self, word: &str) -> Sym {
        self.module.sym(word)
    }

    /// Interns the text of a node.
    pub(super) fn sym_of(&mut self, node: Node<'_>) -> Sym {
        let text = self.text(node);
        self.module.sym(text)
    }

    /// Adds an expression with the bytes of a node.
    pub(super) fn expr(&mut self, node: Node<'_>, kind: ExprKind) -> ExprId {
        if self.module.exprs.len() > MOST {
            self.module.is_partial = true;
            return ExprId(0);
        }
        self.module.add(span(node), kind)
    }

    /// Adds a name.
    pub(super) fn name(&mut self, node: Node<'_>) -> ExprId {
        let sym = self.sym_of(node);
        self.expr(node, ExprKind::Name(sym))
    }

    /// Adds a name that is not the text of the node.
    pub(super) fn named(&mut self, node: Node<'_>, word: &str) -> ExprId {
        let sym = self.sym(word);
        self.expr(node, ExprKind::Name(sym))
    }

    /// Adds a name, or members of members for a dotted path: `a.b.c`.
    pub(super) fn path(&mut self, node: Node<'_>, path: &str) -> ExprId {
        let mut words = path.split('.').filter(|w| !w.is_empty());
        let first = words.next().unwrap_or_default();
        let mut of = self.named(node, first);
        for word in words {
            let name = self.sym(word);
            of = self.expr(node, ExprKind::Member { of, name });
        }
        of
    }

    /// Adds a constant text.
    pub(super) fn constant(&mut self, node: Node<'_>, text: &str) -> ExprId {
        self.expr(node, ExprKind::Text(text.into()))
    }

    /// Adds an expression that only passes data on.
    pub(super) fn unknown(&mut self, node: Node<'_>, of: Vec<ExprId>) -> ExprId {
        self.expr(node, ExprKind::Unknown(of))
    }

    /// Adds a call of a callee by its path with plain arguments.
    pub(super) fn call(&mut self, node: Node<'_>, path: &str, args: Vec<ExprId>) -> ExprId {
        let callee = self.path(node, path);
        let args = args.into_iter().map(plain).collect();
        self.expr(node, ExprKind::Call { callee, args })
    }

    /// Adds an assignment as a statement.
    pub(super) fn assign(&mut self, node: Node<'_>, target: ExprId, value: ExprId) -> Stmt {
        let id = self.expr(
            node,
            ExprKind::Assign {
                target,
                op: None,
                value,
            },
        );
        stmt(node, StmtKind::Expr(id))
    }

    /// Adds an import.
    pub(super) fn import(&mut self, alias: &str, path: &str) {
        let (alias, path) = (self.sym(alias), self.sym(path));
        self.module.imports.push(Import { alias, path });
    }

    /// Enters a level. Returns false if the nesting is too deep, and the caller must return without
    /// descending. Every `true` requires a [`Self::leave`].
    pub(super) fn enter(&mut self) -> bool {
        if self.depth >= DEPTH || self.module.exprs.len() > MOST {
            self.module.is_partial = true;
            return false;
        }
        self.depth += 1;
        true
    }

    /// Leaves a level.
    pub(super) fn leave(&mut self) {
        self.depth = self.depth.saturating_sub(1);
    }

    /// Flattens a chain of left-nested binary nodes of one operator, such as `a + b + c`, into its
    /// operands in order. A text of a thousand parts would otherwise be a thousand levels deep.
    pub(super) fn chain<'n>(&self, node: Node<'n>, kind: &str, operator: &str) -> Vec<Node<'n>> {
        let mut out = Vec::new();
        let mut at = node;
        loop {
            let is_op = at
                .child_by_field_name("operator")
                .is_some_and(|o| self.text(o) == operator);
            let (left, right) = (
                at.child_by_field_name("left"),
                at.child_by_field_name("right"),
            );
            match (left, right) {
                (Some(left), Some(right)) if at.kind() == kind && is_op => {
                    out.push(right);
                    at = left;
                }
                _ => break,
            }
        }
        out.push(at);
        out.reverse();
        out
    }
}

/// Returns the bytes of a node.
pub(super) fn span(node: Node<'_>) -> ByteSpan {
    ByteSpan {
        start: offset(node.start_byte()),
        end: offset(node.end_byte()),
    }
}

/// Returns an offset as it is stored. Texts of 4 GiB are not parsed.
fn offset(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}

/// Returns an argument without a keyword.
pub(super) fn plain(value: ExprId) -> Arg {
    Arg {
        keyword: None,
        value,
        is_spread: false,
    }
}

/// Returns a statement with the bytes of a node.
pub(super) fn stmt(node: Node<'_>, kind: StmtKind) -> Stmt {
    Stmt {
        span: span(node),
        kind,
    }
}

/// Returns the named children that are not comments.
pub(super) fn children<'n>(node: Node<'n>) -> Vec<Node<'n>> {
    let mut cursor = node.walk();
    node.named_children(&mut cursor)
        .filter(|n| !n.is_extra())
        .collect()
}

thread_local! {
    /// The numbers of the fields of each grammar, by the address of the name. A grammar compares a
    /// name with those of all its fields, which took 5 % of the time of large changes.
    static FIELDS: RefCell<HashMap<(Language, *const str), Option<NonZeroU16>>> =
        RefCell::new(HashMap::new());
}

/// Returns the number of a field of a node's grammar.
fn field_id(node: Node<'_>, name: &'static str) -> Option<NonZeroU16> {
    let language = node.language();
    let key = (language.clone(), std::ptr::from_ref(name));
    let known = FIELDS.with_borrow(|fields| fields.get(&key).copied());
    known.unwrap_or_else(|| {
        let id = language.field_id_for_name(name);
        FIELDS.with_borrow_mut(|fields| fields.insert(key, id));
        id
    })
}

/// Returns the children with a field name.
pub(super) fn fields<'n>(node: Node<'n>, field: &'static str) -> Vec<Node<'n>> {
    let Some(id) = field_id(node, field) else {
        return Vec::new();
    };
    let mut cursor = node.walk();
    node.children_by_field_id(id, &mut cursor)
        .filter(|n| !n.is_extra())
        .collect()
}

/// Returns the child with a field name.
pub(super) fn field<'n>(node: Node<'n>, field: &'static str) -> Option<Node<'n>> {
    node.child_by_field_id(field_id(node, field)?.get())
}

/// Returns the first named child of a kind.
pub(super) fn child<'n>(node: Node<'n>, kind: &str) -> Option<Node<'n>> {
    let mut cursor = node.walk();
    node.named_children(&mut cursor).find(|n| n.kind() == kind)
}

/// Returns true if the node has a child that is this keyword or sign, such as `static`.
pub(super) fn has_token(node: Node<'_>, token: &str) -> bool {
    let mut cursor = node.walk();
    node.children(&mut cursor).any(|n| n.kind() == token)
}

/// Decodes the usual escapes of a quoted text. Unknown escapes remain unchanged.
pub(super) fn unescape(text: &str) -> String {
    if !text.contains('\\') {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        match chars.next() {
            Some('n') => out.push('\n'),
            Some('r') => out.push('\r'),
            Some('t') => out.push('\t'),
            Some('0') => out.push('\0'),
            Some(c @ ('\\' | '\'' | '"' | '`' | '$' | '/')) => out.push(c),
            Some('\n') => {}
            Some(c) => {
                out.push('\\');
                out.push(c);
            }
            None => out.push('\\'),
        }
    }
    out
}

/// Reads an integer: decimal, `0x`, `0o`, `0b`, with `_` and a suffix such as `L`.
pub(super) fn integer(text: &str) -> Option<i64> {
    let text: String = text.chars().filter(|c| *c != '_').collect();
    let text = text.trim_end_matches(['l', 'L', 'u', 'U', 'n']);
    let lower = text.to_ascii_lowercase();
    let (digits, radix) = match lower.get(..2) {
        Some("0x") => (lower.get(2..)?, 16),
        Some("0o") => (lower.get(2..)?, 8),
        Some("0b") => (lower.get(2..)?, 2),
        _ if lower.len() > 1
            && lower.starts_with('0')
            && lower.bytes().all(|b| b.is_ascii_digit()) =>
        {
            (lower.get(1..)?, 8)
        }
        _ => (lower.as_str(), 10),
    };
    i64::from_str_radix(digits, radix).ok()
}

/// Lowers every child that is a statement with a function of the language.
pub(super) fn block(
    l: &mut Lower<'_>,
    nodes: &[Node<'_>],
    each: fn(&mut Lower<'_>, Node<'_>, &mut CodeBlock),
) -> CodeBlock {
    let mut out = Vec::new();
    for node in nodes {
        each(l, *node, &mut out);
    }
    out
}
