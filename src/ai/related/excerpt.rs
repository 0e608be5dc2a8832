//! Excerpts of related code, and what is missing from them. Data only.

use crate::ai::redact;
use crate::diff::{FileChange, RepoPath};
use crate::rules::RuleSet;
use std::collections::BTreeSet;
use std::ops::RangeInclusive;

/// Files that are listed as unreadable, at most.
pub(super) const MAX_UNREAD: usize = 10;

/// Related code of a change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Related {
    /// Names that the change of each file touches, in order; by position in
    /// [`Group::files`](crate::ai::material::Group::files).
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
        let more = match self.count.saturating_sub(self.names.len()) {
            0 => String::new(),
            n => format!(" and {n} more"),
        };
        (self.count > 0).then(|| format!("{}{more}", self.names.join(", ")))
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
    /// Position in [`Group::files`](crate::ai::material::Group::files) of the changed file that the
    /// excerpt is about.
    pub file: usize,
    /// Hunks that the excerpt is about: positions in
    /// [`Shown::hunks`](crate::ai::material::Shown::hunks).
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
