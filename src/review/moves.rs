//! Finds out which findings of a change are on code that the change moved from another file.

use super::resolved::ChangePart;
use super::scan::RuleScan;
use crate::diff::{Entry, FileChange, RepoPath};
use crate::finding::Finding;
use crate::git::Change;
use crate::rules::Scope;
use std::collections::BTreeSet;

/// Files with removed lines that are read for moved code, at most.
const MOST_SOURCES: usize = 64;
/// Bytes of all files that are read for it, at most. Findings in further files keep their severity.
const MOST_BYTES: usize = 8 << 20;

impl RuleScan<'_> {
    /// Lowers the findings of a part that are on moved code to suggestions. Nothing is read unless
    /// there is a finding that can be on moved code, and another file of its kind has an old side.
    pub(super) fn lower_moved(&self, part: &ChangePart, change: &Change, findings: &mut [Finding]) {
        let is_change = part.scope == Scope::All && !self.is_tree;
        let Some(repo) = self.repo.filter(|_| is_change) else {
            return;
        };
        let mut found: Vec<&mut Finding> = findings
            .iter_mut()
            .filter(|f| f.commit == part.commit && self.rules.may_be_moved(f))
            .collect();
        let targets: BTreeSet<RepoPath> = found.iter().filter_map(|f| f.file().cloned()).collect();
        let kinds: BTreeSet<Option<&[u8]>> = targets.iter().map(RepoPath::extension).collect();
        let is_source = |entry: &Entry| {
            let old = entry.old.as_ref();
            old.is_some_and(|old| kinds.contains(&old.path.extension()))
        };
        let has_other = change
            .entries
            .iter()
            .any(|e| is_source(e) && (targets.len() > 1 || !targets.contains(e.path())));
        if !has_other {
            return;
        }
        let mut reader = repo.reader();
        let mut files: Vec<FileChange> = Vec::new();
        let (mut sources, mut bytes) = (0, 0);
        for (index, entry) in change.entries.iter().enumerate() {
            if bytes >= MOST_BYTES {
                break;
            }
            let is_source = is_source(entry) && sources < MOST_SOURCES;
            if !(is_source || targets.contains(entry.path())) || self.is_aside(entry) {
                continue;
            }
            // A file that cannot be read was reported when it was scanned.
            let Ok(file) = reader.load(change, index) else {
                continue;
            };
            sources += usize::from(is_source);
            bytes += file
                .text()
                .map_or(0, |t| t.new.known().len() + t.old.known().len());
            files.push(file);
        }
        self.rules.lower_moved(&files, &mut found);
    }
}
