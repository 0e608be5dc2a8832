//! Paths of names, such as `flask.request.args.get()`, and the table entries that match them.
//!
//! A path is created once and its matches are searched once; values refer to it by number.

use super::FlowLanguage;
use super::table::{Pattern, Role, Table};
use foldhash::{HashMap, HashMapExt as _};
use std::rc::Rc;

/// Index into [`Paths`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct PathId(u32);

/// The start of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Root {
    /// A value of unknown origin. The path starts with `?`.
    Unknown,
    /// A name that the file neither defines nor imports.
    Free,
    /// An import, a usual module or a type.
    Known,
}

/// The use of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Calling {
    /// The path is read.
    Not,
    Plain,
    New,
}

/// A role of a path, and whether the pattern names only the last word.
#[derive(Clone, Copy, Debug)]
pub(super) struct PatternHit {
    pub(super) role: Role,
    pub(super) is_wild: bool,
    pub(super) write: bool,
}

struct PathNode {
    prefix: Rc<str>,
    last: Rc<str>,
    calling: Calling,
    root: Root,
    hits: Option<Rc<[PatternHit]>>,
}

/// All paths of a run.
pub(super) struct Paths {
    nodes: Vec<PathNode>,
    /// The paths with each text.
    numbers: HashMap<Rc<str>, Vec<(Calling, Root, PathId)>>,
    children: HashMap<(PathId, u32), PathId>,
    calls: HashMap<(PathId, Calling), PathId>,
    table: &'static Table,
    language: FlowLanguage,
    /// True if the file declares the modules it uses, so that a bare `exec` is not `os/exec`.
    is_strict: bool,
}

impl Paths {
    pub(super) fn new(language: FlowLanguage, is_strict: bool) -> Self {
        Self {
            nodes: Vec::new(),
            numbers: HashMap::new(),
            children: HashMap::new(),
            calls: HashMap::new(),
            table: Table::of(language),
            language,
            is_strict,
        }
    }

    /// Returns the path of a dotted text that is read: an import, a type, a free name.
    pub(super) fn root(&mut self, text: &str, root: Root) -> PathId {
        self.make(text, Calling::Not, root)
    }

    fn make(&mut self, text: &str, calling: Calling, root: Root) -> PathId {
        let same = self.numbers.get(text);
        let mut same = same.into_iter().flatten();
        if let Some((.., id)) = same.find(|(c, r, _)| (*c, *r) == (calling, root)) {
            return *id;
        }
        let (prefix, last) = text
            .rsplit_once('.')
            .filter(|(p, l)| !p.is_empty() && !l.is_empty())
            .unwrap_or(("", text));
        let id = PathId(u32::try_from(self.nodes.len()).unwrap_or(u32::MAX));
        self.nodes.push(PathNode {
            prefix: prefix.into(),
            last: last.into(),
            calling,
            root,
            hits: None,
        });
        self.numbers
            .entry(text.into())
            .or_default()
            .push((calling, root, id));
        id
    }

    /// Returns the path of a member. `None`: a member of an unknown value.
    pub(super) fn member(
        &mut self,
        of: Option<PathId>,
        name: super::shape::Sym,
        word: &str,
    ) -> PathId {
        let key = (of.unwrap_or(PathId(u32::MAX)), name.0);
        if let Some(id) = self.children.get(&key) {
            return *id;
        }
        let (text, root) = match of {
            Some(of) => (self.text(of), self.root_of(of)),
            None => ("?".to_owned(), Root::Unknown),
        };
        // Limit a path that grows in a loop.
        let text = if text.len() > 200 {
            "?".to_owned()
        } else {
            text
        };
        let root = if text == "?" { Root::Unknown } else { root };
        let id = self.make(&format!("{text}.{word}"), Calling::Not, root);
        self.children.insert(key, id);
        id
    }

    /// Returns the path of a member whose name is a text: `config["DEBUG"]`.
    pub(super) fn member_word(&mut self, of: PathId, word: &str) -> PathId {
        let text = self.text(of);
        if text.len() > 200 || word.len() > 100 || word.contains('.') {
            return of;
        }
        let root = self.root_of(of);
        self.make(&format!("{text}.{word}"), Calling::Not, root)
    }

    /// Returns true for the result of a call.
    pub(super) fn is_call(&self, id: PathId) -> bool {
        self.node(id).is_some_and(|n| n.calling != Calling::Not)
    }

    /// Returns the path of a call of a path.
    pub(super) fn call(&mut self, of: PathId, calling: Calling) -> PathId {
        if let Some(id) = self.calls.get(&(of, calling)) {
            return *id;
        }
        let text = match self.nodes.get(of.0 as usize) {
            Some(n) if n.calling == Calling::Not => self.text(of),
            _ => format!("{}.apply", self.text(of)),
        };
        let root = self.root_of(of);
        let id = self.make(&text, calling, root);
        self.calls.insert((of, calling), id);
        id
    }

    fn node(&self, id: PathId) -> Option<&PathNode> {
        self.nodes.get(id.0 as usize)
    }

    /// Returns the path as text.
    pub(super) fn text(&self, id: PathId) -> String {
        let Some(n) = self.node(id) else {
            return "?".to_owned();
        };
        let call = if n.calling == Calling::Not { "" } else { "()" };
        let dot = if n.prefix.is_empty() { "" } else { "." };
        format!("{}{dot}{}{call}", n.prefix, n.last)
    }

    /// Returns the text of a path without a call if its last word is one of these.
    pub(super) fn text_ending_with(&self, id: PathId, last: &[&str]) -> Option<String> {
        let n = self.node(id)?;
        let is_one = n.calling == Calling::Not && last.contains(&&*n.last);
        is_one.then(|| self.text(id))
    }

    /// Returns the first word of a path, and whether a slash is in it. The result of a call of a
    /// module is in none: the word is empty.
    pub(super) fn module_of(&self, id: PathId) -> (&str, bool) {
        let Some(n) = self.node(id) else {
            return ("?", false);
        };
        if n.prefix.is_empty() && n.calling != Calling::Not {
            return ("", n.last.contains('/'));
        }
        let whole = if n.prefix.is_empty() {
            &n.last
        } else {
            &n.prefix
        };
        let first = whole.split('.').next().unwrap_or_default();
        (first, n.prefix.contains('/') || n.last.contains('/'))
    }

    /// Returns the start of a path.
    pub(super) fn root_of(&self, id: PathId) -> Root {
        self.node(id).map_or(Root::Unknown, |n| n.root)
    }

    /// Returns the entries that match a path.
    pub(super) fn hits(&mut self, id: PathId) -> Rc<[PatternHit]> {
        let Some(node) = self.nodes.get(id.0 as usize) else {
            return Rc::from([]);
        };
        if let Some(hits) = &node.hits {
            return Rc::clone(hits);
        }
        let mut hits = Vec::new();
        for p in self.table.ending(&node.last) {
            if self.matches(p, node) {
                hits.push(PatternHit {
                    role: p.role,
                    is_wild: p.any && p.prefix.is_empty(),
                    write: p.write,
                });
            }
        }
        // The patterns with a receiver come first.
        hits.sort_by_key(|h| h.is_wild);
        let hits: Rc<[PatternHit]> = hits.into();
        if let Some(node) = self.nodes.get_mut(id.0 as usize) {
            node.hits = Some(Rc::clone(&hits));
        }
        hits
    }

    fn matches(&self, p: &Pattern, n: &PathNode) -> bool {
        let fits = match n.calling {
            Calling::Not => !p.call,
            Calling::New => p.call,
            Calling::Plain => p.call && (!p.new || self.language == FlowLanguage::Kotlin),
        };
        fits && self.prefix_matches(p.prefix, p.any, n)
    }

    fn prefix_matches(&self, prefix: &str, any: bool, n: &PathNode) -> bool {
        if any {
            return !n.prefix.is_empty() && (prefix.is_empty() || ends_with(&n.prefix, prefix));
        }
        if prefix.is_empty() {
            let is_package = n.calling == Calling::New
                && !n.prefix.starts_with('?')
                && !n.prefix.ends_with("()");
            return (n.prefix.is_empty() || is_package) && n.root != Root::Unknown;
        }
        if n.prefix.is_empty() {
            return n.root == Root::Free
                && prefix == "Kernel"
                && self.language == FlowLanguage::Ruby;
        }
        if n.root == Root::Unknown {
            return false;
        }
        if ends_with(&n.prefix, prefix) {
            return true;
        }
        let is_type = n.prefix.starts_with(|c: char| c.is_ascii_uppercase());
        ends_with(prefix, &n.prefix) && (is_type || (n.root == Root::Free && !self.is_strict))
    }

    /// Returns true if a path that is read matches a pattern of a handler, such as `*.route`.
    pub(super) fn is(&self, id: PathId, pattern: &str) -> bool {
        let Some(n) = self.node(id) else { return false };
        let pattern = pattern.trim_end_matches("()");
        let (prefix, last) = pattern.rsplit_once('.').unwrap_or(("", pattern));
        if *n.last != *last {
            return false;
        }
        match prefix.strip_prefix('*') {
            Some(rest) => self.prefix_matches(rest.trim_start_matches('.'), true, n),
            // Annotations and types are often written without their package.
            None if n.prefix.is_empty() => !prefix.is_empty() || n.root != Root::Unknown,
            None if prefix.is_empty() => n.root != Root::Unknown,
            None => self.prefix_matches(prefix, false, n),
        }
    }
}

/// Returns true if the text ends with whole words of a path.
fn ends_with(text: &str, end: &str) -> bool {
    text.strip_suffix(end)
        .is_some_and(|before| before.is_empty() || before.ends_with(['.', '/']))
}
