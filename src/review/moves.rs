//! Finds out which findings of a change are on code that the change moved from another file.

use super::resolved::ChangePart;
use super::scan::RuleScan;
use crate::diff::{Entry, FileChange, RepoPath};
use crate::finding::Finding;
use crate::git::Change;
use crate::rules::Scope;
use std::collections::BTreeSet;

/// Files with removed lines that are read for moved code, at most, and their bytes.
const MOST_SOURCES: usize = 64;
const MOST_BYTES: usize = 8 << 20;

impl RuleScan<'_> {
    /// Lowers the findings of a part that are on moved code to suggestions. Nothing is read unless
    /// there is a finding that can be on moved code, and a file of its kind has removed lines.
    pub(super) fn lower_moved(&self, part: &ChangePart, change: &Change, findings: &mut [Finding]) {
        let Some(repo) = self
            .repo
            .filter(|_| part.scope == Scope::All && !self.is_tree)
        else {
            return;
        };
        let mut moved: Vec<&mut Finding> = findings
            .iter_mut()
            .filter(|f| f.commit == part.commit && self.rules.may_be_moved(f))
            .collect();
        let paths: BTreeSet<RepoPath> = moved.iter().filter_map(|f| f.file().cloned()).collect();
        let kinds: BTreeSet<&[u8]> = paths.iter().map(extension).collect();
        let is_source = |entry: &Entry| {
            let old = entry.old.as_ref().map(|old| extension(&old.path));
            old.is_some_and(|old| kinds.contains(old))
        };
        // A file whose lines moved within it was compared when it was scanned.
        let has_other = change
            .entries
            .iter()
            .any(|e| is_source(e) && (paths.len() > 1 || !paths.contains(e.path())));
        if moved.is_empty() || !has_other {
            return;
        }
        let mut reader = repo.reader();
        let mut files: Vec<FileChange> = Vec::new();
        let (mut sources, mut bytes) = (0, 0);
        for (index, entry) in change.entries.iter().enumerate() {
            let is_target = paths.contains(entry.path());
            let is_read = is_source(entry) && sources < MOST_SOURCES && bytes < MOST_BYTES;
            if !(is_target || is_read) || self.is_aside(entry) {
                continue;
            }
            // A file that cannot be read was reported when it was scanned.
            let Ok(file) = reader.load(change, index) else {
                continue;
            };
            bytes += file
                .text()
                .map_or(0, |t| t.new.known().len() + t.old.known().len());
            sources += usize::from(is_source(entry));
            files.push(file);
        }
        self.rules.lower_moved(&files, &mut moved);
    }
}

/// Returns what follows the last dot in the name of a file; empty without a dot.
fn extension(path: &RepoPath) -> &[u8] {
    let name = path.file_name();
    memchr::memrchr(b'.', name).map_or(&[], |at| &name[at + 1..])
}
