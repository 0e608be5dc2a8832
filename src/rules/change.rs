//! Rules over the change itself: modes, attributes, workflows, lockfiles, deleted tests.
//!
//! The rules are pure: they turn entries and contents into sightings. `catalog/change.toml` has the
//! texts of the rules. The code here decides only whether they match, where, and with which detail.

mod attributes;
mod config;
mod crowd;
mod file;
mod links;
mod lockfile;
mod syntax;
mod vanished;
mod workflow;

pub(crate) use crowd::RULE as GATHERED;
pub(super) use crowd::gather;

use super::report::{Reporter, Sighting};
use crate::diff::{Entry, FileChange, LineBlock, LineNo, RepoPath, TextChange, trim_line_end};
use crate::finding::LineSpan;

/// Access to the reviewed tree, beyond the entries of the change.
pub struct Tree<'a> {
    /// Reads the entry with an index. `None` if that fails, which the scan has already reported.
    pub load: &'a dyn Fn(usize) -> Option<FileChange>,
    /// Returns true if the new side has a file with a path.
    pub exists: &'a dyn Fn(&RepoPath) -> bool,
    /// Returns the target of the link at a path of the new side. `None`: there is no link.
    pub target: &'a dyn Fn(&RepoPath) -> Option<Vec<u8>>,
    /// Lists the files below a folder of the new side. The second value is true if there are more.
    pub below: &'a dyn Fn(&RepoPath) -> (Vec<RepoPath>, bool),
    /// Returns true if policy ignores a path.
    pub ignores: &'a dyn Fn(&RepoPath) -> bool,
}

impl<'a> Tree<'a> {
    /// Returns a tree that knows only the entries of the change.
    pub fn of_entries(
        load: &'a dyn Fn(usize) -> Option<FileChange>,
        exists: &'a dyn Fn(&RepoPath) -> bool,
    ) -> Self {
        Self {
            load,
            exists,
            target: &|_| None,
            below: &|_| (Vec::new(), false),
            ignores: &|_| false,
        }
    }
}

impl std::fmt::Debug for Tree<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tree").finish_non_exhaustive()
    }
}

/// Rules whose finding is a step from one state to another. A file that exists has taken the step
/// already, so that they say nothing about a tree.
const STEPS: &[&str] = &[
    "policy-weakened",
    "executable-bit",
    "manifest-without-lockfile",
    "lockfile-without-manifest",
    "lockfile-new-source",
    "test-deleted",
    "test-disabled",
    "submodule-url-changed",
    "syntax-broken",
];

/// Returns true if a rule is about a step from one state to another: a rule of [`STEPS`], or about
/// the effect of a migration while it runs. Migrations of a tree have run.
pub(super) fn is_step(id: &str) -> bool {
    let is_of_migration = id.contains("-migration-") || id.contains("concurrent-index");
    STEPS.contains(&id) || is_of_migration
}

/// Scans one changed file, after the text rules.
pub(super) fn scan(file: &FileChange, out: &mut Reporter<'_>) {
    file::scan(file, out);
    let Some(text) = file.text() else { return };
    let path = file.path();
    match path.file_name() {
        b".gitattributes" => attributes::scan(path, text, out),
        // Git reads the one at the top only.
        b".gitmodules" if path.as_bytes() == b".gitmodules" => config::submodules(path, text, out),
        _ => {}
    }
    workflow::scan(path, text, out);
    config::scan(path, text, out);
    lockfile::scan(path, text, out);
    syntax::scan(path, text, out);
}

/// Reports findings that only the whole change shows.
pub(super) fn scan_change(entries: &[Entry], tree: &Tree<'_>, out: &mut Reporter<'_>) {
    links::scan_change(entries, tree, out);
    if out.rules.is_of_a_tree() {
        // The other rules compare entries with what they were, and read many files for that.
        return;
    }
    lockfile::scan_change(entries, tree, out);
    vanished::scan_change(entries, tree, out);
}

/// An added line: its number and its text without the line end.
#[derive(Clone, Copy, Debug)]
struct Added<'a> {
    number: LineNo,
    text: &'a [u8],
}

/// Returns the added lines of a change.
fn added(text: &TextChange) -> impl Iterator<Item = Added<'_>> {
    text.added().flat_map(lines)
}

/// Returns the removed lines of a change, numbered on the old side.
fn removed(text: &TextChange) -> impl Iterator<Item = Added<'_>> {
    text.removed().flat_map(lines)
}

fn lines(block: LineBlock<'_>) -> impl Iterator<Item = Added<'_>> {
    block
        .text
        .split_inclusive(|b| *b == b'\n')
        .zip(0..)
        .map(move |(line, i)| Added {
            number: block.first.plus(i),
            text: trim_line_end(line),
        })
}

/// Reports a rule at a line.
fn at_line(
    out: &mut Reporter<'_>,
    id: &str,
    path: &RepoPath,
    number: LineNo,
    quote: &[u8],
    detail: Option<&str>,
) {
    let lines = Some(LineSpan {
        first: number,
        last: number,
        columns: None,
    });
    out.report(
        id,
        Sighting {
            file: Some(path),
            lines,
            quote,
            detail,
            ..Sighting::default()
        },
    );
}

/// Reports a rule at a file as a whole.
fn at_file(out: &mut Reporter<'_>, id: &str, path: &RepoPath, quote: &[u8], detail: Option<&str>) {
    out.report(
        id,
        Sighting {
            file: Some(path),
            quote,
            detail,
            ..Sighting::default()
        },
    );
}

/// Returns the folder of a path with its `/`. Empty for the top folder.
fn folder(path: &[u8]) -> &[u8] {
    memchr::memrchr(b'/', path).map_or(&[], |i| &path[..=i])
}

#[cfg(test)]
mod tests;
