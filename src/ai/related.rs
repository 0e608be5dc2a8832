//! Unchanged code that helps to judge a change: the functions around its hunks, the definitions of what it calls, and
//! the callers and tests of what it changes.
//!
//! Names are matched, not resolved: an excerpt says which name it is about, and a model judges whether it is the same.
//! All texts come from [`Tree`], which replaces secrets and shows hidden characters.

mod constants;
mod head;
mod project;
mod search;
mod touched;

use super::material::Group;
use super::redact;
use super::tree::Tree;
use crate::diff::{FileChange, RepoPath};
use crate::rules::RuleSet;
use std::collections::BTreeSet;
use std::ops::RangeInclusive;

pub(super) use search::{distance, imports, stem};
pub use touched::Touched;

/// What is known about the surroundings of a change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Related {
    /// The names that each file's change touches, in order; by position in [`Group::files`].
    pub changed: Vec<Vec<String>>,
    /// In the order of the change.
    pub excerpts: Vec<Excerpt>,
    /// Uses and tests beyond the number of each that is kept.
    pub beyond: Vec<Beyond>,
    /// The search ended at one of its limits: there can be more.
    pub is_cut: bool,
    /// Files that could not be read, and were not searched.
    pub unread: Unread,
    /// Changed files without changed lines.
    pub bare: Vec<Bare>,
}

/// A changed file without changed lines: renamed, empty, or with another mode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bare {
    pub path: RepoPath,
    /// The path as it is shown.
    pub name: String,
    /// The path on the old side as it is shown, if it was another one.
    pub old_name: Option<String>,
}

impl Bare {
    /// Names a changed file.
    pub fn of(change: &FileChange, rules: &RuleSet) -> Self {
        let path = change.path().clone();
        let old = change.entry.old.as_ref().filter(|old| old.path != path);
        Self { name: redact::path(rules, &path), old_name: old.map(|old| redact::path(rules, &old.path)), path }
    }
}

/// Overrides, uses or tests of a changed name that no excerpt shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Beyond {
    /// As in [`Excerpt`].
    pub file: usize,
    pub hunks: RangeInclusive<usize>,
    pub name: String,
    /// [`Why::Override`], [`Why::Test`] or [`Why::Call`].
    pub why: Why,
    pub count: usize,
}

/// Files of the tree that the search could not read: a partial clone can lack their content.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unread {
    /// The nearest to the change, as they are shown; at most [`MAX_UNREAD`].
    pub names: Vec<String>,
    /// All of them.
    pub count: usize,
    /// Why the first one could not be read.
    pub reason: String,
}

impl Unread {
    /// Lists the files; `None` if there are none.
    pub fn list(&self) -> Option<String> {
        let more = match self.count.saturating_sub(self.names.len()) {
            0 => String::new(),
            n => format!(" and {n} more"),
        };
        (self.count > 0).then(|| format!("{}{more}", self.names.join(", ")))
    }
}

/// Why an excerpt is shown. In the order of their worth, the most useful first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Why {
    /// The function or type that contains changed lines, or a part of it.
    Around,
    /// The whole file, which is short.
    File,
    /// The definition of a name that added lines call or name as a type, in the same file.
    DefinitionHere,
    /// The call of a name whose definition is removed or has a new signature.
    CallOfNew,
    /// The type that a changed function belongs to, or names in its signature.
    Owner,
    /// The definition of a name that added lines use, elsewhere.
    Definition,
    /// A method of a subtype with the name of a changed one.
    Override,
    /// A test that uses a changed name.
    Test,
    /// The signature of a function that only unchanged lines around the changed ones call.
    Nearby,
    /// The use of a name whose body is changed.
    Call,
}

/// Lines of a file, as a model sees them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Excerpt {
    pub why: Why,
    /// The file whose change it is about: position in [`Group::files`].
    pub file: usize,
    /// The hunks that it is about: positions in [`Shown::hunks`](super::material::Shown::hunks).
    pub hunks: RangeInclusive<usize>,
    /// The path of the excerpt, as it is shown.
    pub path: String,
    /// The name that it defines, calls or contains.
    pub name: String,
    /// The name that an import gives to it where it is used; empty: the same.
    pub alias: String,
    /// The function or test that contains it; empty: none, or the excerpt shows it.
    pub inside: String,
    /// With their numbers, ascending; at least one.
    pub lines: Vec<(u32, String)>,
    /// The numbers of those that are shown first if not all of them fit: signatures of the functions around hunks.
    pub first: BTreeSet<u32>,
}

impl Excerpt {
    /// Returns the numbers of the first and the last line.
    pub fn ends(&self) -> (u32, u32) {
        let number = |line: Option<&(u32, String)>| line.map_or(0, |(number, _)| *number);
        (number(self.lines.first()), number(self.lines.last()))
    }

    /// Returns how many bytes it takes at most, without its lines.
    pub fn head_size(&self) -> usize {
        self.path.len() + self.name.len() + self.alias.len() + self.inside.len() + 48
    }

    /// Returns the names by which code uses what it is about.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let alias = Some(self.alias.as_str()).filter(|alias| !alias.is_empty());
        self.name.split(", ").chain(alias)
    }
}

/// Files that could not be read and are named.
const MAX_UNREAD: usize = 10;
/// Bytes of a line of an excerpt.
const MAX_LINE: usize = 240;

/// Finds what is related to the change of a group. Reads the tree under review, within fixed limits.
pub fn find(group: &Group, tree: &Tree<'_>) -> Related {
    let touched: Vec<Touched> = group.files.iter().enumerate().map(|(file, shown)| Touched::of(file, shown)).collect();
    let mut excerpts = Vec::new();
    for (file, touched) in group.files.iter().zip(&touched) {
        if let Ok(text) = tree.text(file.path()) {
            let lines: Vec<&str> = text.lines().collect();
            let of = |span: &touched::Span| span.excerpt(&file.name, &lines, &touched.signatures);
            excerpts.extend(touched.spans.iter().filter_map(of));
        }
    }
    let search::Found { excerpts: found, beyond, is_cut, unread } = search::find(group, &touched, tree);
    excerpts.extend(found);
    let changed = touched.into_iter().map(|t| t.changed.into_iter().map(|c| c.name).collect()).collect();
    let mut related = Related { changed, excerpts, beyond, is_cut, unread, bare: Vec::new() };
    related.redact(tree);
    related
}

/// Bytes of the description of a test, from which on it may be cut: a part of a secret is not recognized as one.
const WHOLE: usize = 100;

/// Makes the name of a symbol fit to be shown: it can be any text, such as the description of a test.
fn label(tree: &Tree<'_>, name: &mut String) {
    let is_identifier = name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    *name = if is_identifier || name.len() < WHOLE { tree.label(name) } else { String::new() };
}

impl Related {
    /// Replaces secrets in names and shows what they hide. The lines of excerpts are redacted already.
    fn redact(&mut self, tree: &Tree<'_>) {
        let excerpts = self.excerpts.iter_mut().flat_map(|e| [&mut e.name, &mut e.alias, &mut e.inside]);
        let beyond = self.beyond.iter_mut().map(|b| &mut b.name);
        let changed = self.changed.iter_mut().flatten();
        excerpts.chain(beyond).chain(changed).for_each(|name| label(tree, name));
    }
}

/// Returns lines of a file, numbered from 1, each cut to [`MAX_LINE`] bytes; empty if there are none.
fn lines_of(lines: &[&str], range: &RangeInclusive<u32>) -> Vec<(u32, String)> {
    let (first, last) = (*range.start() as usize, *range.end() as usize);
    let shown = lines.get(first.saturating_sub(1)..last.min(lines.len())).unwrap_or_default();
    (*range.start()..).zip(shown.iter().map(|line| cut(line))).collect()
}

fn cut(line: &str) -> String {
    match line.len() > MAX_LINE {
        true => format!("{}…", &line[..line.floor_char_boundary(MAX_LINE - 3)]),
        false => line.to_owned(),
    }
}
