//! Unchanged code that helps to judge a change: the functions around its hunks, the definitions of
//! the names that it uses, and the callers and tests of the definitions that it changes.
//!
//! Names are matched, not resolved. An excerpt states the name that it is about, and the model
//! judges whether it is the same. All texts come from [`Tree`], which replaces secrets and makes
//! hidden characters visible.

mod constants;
mod head;
mod paths;
mod project;
mod search;
mod touched;

use super::material::Group;
use super::redact;
use super::tree::Tree;
use crate::diff::{FileChange, RepoPath};
use crate::rules::RuleSet;
use crate::text::{first_bytes, listed};
use std::collections::BTreeSet;
use std::ops::RangeInclusive;

pub(super) use paths::{distance, imports, stem};
pub use touched::Touched;

/// Related code of a change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Related {
    /// Names that the change of each file touches, in order; by position in [`Group::files`].
    pub changed: Vec<Vec<String>>,
    /// Excerpts in the order of the change.
    pub excerpts: Vec<Excerpt>,
    /// Counts of uses and tests beyond the limits.
    pub beyond: Vec<Beyond>,
    /// True if the search reached a limit, so that more related code may exist.
    pub is_cut: bool,
    /// Files that could not be read, and were not searched.
    pub unread: UnreadFiles,
    /// Changed files without changed lines.
    pub bare: Vec<Bare>,
}

/// A changed file without changed lines: renamed, empty, or with another mode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bare {
    pub path: RepoPath,
    /// Redacted path.
    pub name: String,
    /// Redacted path on the old side, if it differs.
    pub old_name: Option<String>,
}

impl Bare {
    /// Builds the entry of a changed file.
    pub fn of(change: &FileChange, rules: &RuleSet) -> Self {
        let path = change.path().clone();
        let old = change.entry.old.as_ref().filter(|old| old.path != path);
        Self {
            name: redact::path(rules, &path),
            old_name: old.map(|old| redact::path(rules, &old.path)),
            path,
        }
    }
}

/// Overrides, uses or tests of a changed name that are not in an excerpt.
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

/// Files of the tree that the search could not read. A partial clone can lack their content.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnreadFiles {
    /// Redacted paths of the files nearest to the change; at most [`MAX_UNREAD`].
    pub names: Vec<String>,
    /// Number of all such files.
    pub count: usize,
    /// Reason why the first file could not be read.
    pub reason: String,
}

impl UnreadFiles {
    /// Formats the list of files. Returns `None` if it is empty.
    pub fn list(&self) -> Option<String> {
        (self.count > 0).then(|| listed(&self.names, self.count))
    }
}

/// The reason why an excerpt is included. Ordered by usefulness, the most useful first.
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

/// Lines of a file, as sent to a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Excerpt {
    pub why: Why,
    /// Position in [`Group::files`] of the changed file that the excerpt is about.
    pub file: usize,
    /// Hunks that the excerpt is about: positions in
    /// [`Shown::hunks`](super::material::Shown::hunks).
    pub hunks: RangeInclusive<usize>,
    /// Redacted path of the excerpt.
    pub path: String,
    /// Name that it defines, calls or contains.
    pub name: String,
    /// Alias that an import gives to the name; empty if it has none.
    pub alias: String,
    /// Function or test that contains it; empty if it has none or the excerpt includes it.
    pub inside: String,
    /// Lines with their numbers, ascending; at least one.
    pub lines: Vec<(u32, String)>,
    /// Numbers of the lines that are included first if not all of them fit: signatures of the
    /// functions around hunks.
    pub first: BTreeSet<u32>,
}

impl Excerpt {
    /// Returns the numbers of the first and the last line.
    pub fn ends(&self) -> (u32, u32) {
        match self.lines.as_slice() {
            [] => (0, 0),
            [(only, _)] => (*only, *only),
            [(first, _), .., (last, _)] => (*first, *last),
        }
    }

    /// Returns the maximum size in bytes without the lines.
    pub fn head_size(&self) -> usize {
        self.path.len() + self.name.len() + self.alias.len() + self.inside.len() + 48
    }

    /// Returns the names by which code refers to the subject of the excerpt.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let alias = Some(self.alias.as_str()).filter(|alias| !alias.is_empty());
        self.name.split(", ").chain(alias)
    }
}

/// Files that are listed as unreadable, at most.
const MAX_UNREAD: usize = 10;
/// Bytes of a line of an excerpt, at most.
const MAX_LINE: usize = 240;

/// Finds the related code for the change of a group. Reads the tree under review, within fixed
/// limits.
pub fn find(group: &Group, tree: &Tree<'_>) -> Related {
    let touched: Vec<Touched> = group
        .files
        .iter()
        .enumerate()
        .map(|(file, shown)| Touched::of(file, shown))
        .collect();
    let mut excerpts = Vec::new();
    for (file, touched) in group.files.iter().zip(&touched) {
        if let Ok(text) = tree.text(file.path()) {
            let lines: Vec<&str> = text.lines().collect();
            let spans = touched.spans.iter();
            excerpts.extend(
                spans.filter_map(|span| span.excerpt(&file.name, &lines, &touched.signatures)),
            );
        }
    }
    let search::FoundCode {
        excerpts: found,
        beyond,
        is_cut,
        unread,
    } = search::find(group, &touched, tree);
    excerpts.extend(found);
    let changed = touched
        .into_iter()
        .map(|t| t.changed.into_iter().map(|c| c.name).collect())
        .collect();
    let mut related = Related {
        changed,
        excerpts,
        beyond,
        is_cut,
        unread,
        bare: Vec::new(),
    };
    related.redact(tree);
    related
}

/// Length in bytes from which the description of a test may be truncated. A truncated secret would
/// not be recognized.
const WHOLE: usize = 100;

/// Redacts the name of a symbol, which can be any text, such as the description of a test.
fn label(tree: &Tree<'_>, name: &mut String) {
    let is_identifier = name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    *name = if is_identifier || name.len() < WHOLE {
        tree.label(name)
    } else {
        String::new()
    };
}

impl Related {
    /// Redacts names and makes hidden characters in them visible. The lines of excerpts are already
    /// redacted.
    fn redact(&mut self, tree: &Tree<'_>) {
        let excerpts = self
            .excerpts
            .iter_mut()
            .flat_map(|e| [&mut e.name, &mut e.alias, &mut e.inside]);
        let beyond = self.beyond.iter_mut().map(|b| &mut b.name);
        let changed = self.changed.iter_mut().flatten();
        excerpts
            .chain(beyond)
            .chain(changed)
            .for_each(|name| label(tree, name));
    }
}

/// Returns lines of a file with their numbers, each truncated to [`MAX_LINE`] bytes. Returns an
/// empty list if the range is outside the file.
fn lines_of(lines: &[&str], range: &RangeInclusive<u32>) -> Vec<(u32, String)> {
    let (first, last) = (*range.start() as usize, *range.end() as usize);
    let shown = lines
        .get(first.saturating_sub(1)..last.min(lines.len()))
        .unwrap_or_default();
    (*range.start()..)
        .zip(shown.iter().map(|line| cut(line)))
        .collect()
}

fn cut(line: &str) -> String {
    match line.len() > MAX_LINE {
        true => format!("{}…", first_bytes(line, MAX_LINE - 3)),
        false => line.to_owned(),
    }
}
