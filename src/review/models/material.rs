//! Reads the parts of the change that models may see, redacted, within limits of time and memory.

use super::Asking;
use super::order::reading_order;
use crate::ai::context;
use crate::ai::material::{Group, Shown};
use crate::ai::related::{Bare, Related};
use crate::diff::{FileChange, RepoPath};
use crate::git::{Change, Reader, Repo, YearOfChanges};
use crate::review::resolved::{ChangePart, PartContent};
use crate::rules::Scope;
use crate::verdict::{CoverageFailure, FailureCause, Skip};
use std::sync::Arc;
use std::time::Instant;

/// Bytes of a shown line in addition to its text.
const LINE: usize = 96;

/// The parts of the change that models may see.
pub(super) struct Material {
    pub(super) groups: Vec<Group>,
    pub(super) skipped: Vec<(RepoPath, Skip)>,
    pub(super) failed: Vec<CoverageFailure>,
    /// Files that are not shown, or not completely, with the limit that was reached.
    pub(super) cut: Vec<(RepoPath, String)>,
    /// Files of `cut` that are not in a group.
    pub(super) unread: Vec<RepoPath>,
    bytes: usize,
    /// The limit of `bytes`.
    room: usize,
    deadline: Instant,
    /// The commits of the last year, for a tree: its riskiest files are read first.
    year: Option<Arc<YearOfChanges>>,
}

impl Asking<'_> {
    /// Reads the parts of the change that models may see. Files that cannot be read are reported
    /// here again, after the rules, and deduplicated later.
    pub(super) fn gather(
        &self,
        deadline: Instant,
        room: usize,
        year: Option<Arc<YearOfChanges>>,
    ) -> Material {
        let mut out = Material {
            groups: Vec::new(),
            skipped: Vec::new(),
            failed: Vec::new(),
            cut: Vec::new(),
            unread: Vec::new(),
            bytes: 0,
            room,
            deadline,
            year,
        };
        let mut reader = self.scan.repo.map(Repo::reader);
        for part in self
            .prepared
            .resolved
            .parts
            .iter()
            .filter(|p| p.scope == Scope::All && !p.is_repeat)
        {
            match (&part.content, reader.as_mut()) {
                (PartContent::Change(change), Some(reader)) => {
                    self.change(part, change, reader, &mut out);
                }
                (PartContent::Commit(id), Some(reader)) => match reader.alone(*id) {
                    Ok(change) => self.change(part, &change, reader, &mut out),
                    Err(e) => {
                        let text = format!("commit {}: {e}", id.short());
                        let cause = FailureCause::Other(text);
                        out.failed.push(CoverageFailure::whole(cause));
                    }
                },
                (PartContent::Given(files), _) => {
                    let mut group = Group {
                        commit: part.commit,
                        tree: None,
                        messages: Vec::new(),
                        files: Vec::new(),
                        related: Related::default(),
                    };
                    for file in files.iter().filter(|f| self.scan.is_wanted(&f.entry)) {
                        match self.is_enough(&out) {
                            Some(why) => out.leave_unread(file.path(), why),
                            None => self.show(file.clone(), None, &mut group, &mut out),
                        }
                    }
                    out.push(group);
                }
                (PartContent::Change(_) | PartContent::Commit(_), None) => {}
            }
        }
        out
    }

    fn change(
        &self,
        part: &ChangePart,
        change: &Change,
        reader: &mut Reader<'_>,
        out: &mut Material,
    ) {
        let mut group = Group {
            commit: part.commit,
            tree: Some(change.head.clone()),
            messages: context::messages(reader, change, part.commit, self.scan.rules),
            files: Vec::new(),
            related: Related::default(),
        };
        let order = match &out.year {
            Some(year) => reading_order(change, year),
            None => (0..change.entries.len()).collect(),
        };
        for index in order {
            let path = change.entries[index].path();
            if !self.scan.is_wanted(&change.entries[index]) {
                continue;
            }
            if let Some(why) = self.is_enough(out) {
                out.leave_unread(path, why);
                continue;
            }
            match self.scan.load(change, index, reader) {
                Ok(file) => {
                    // `None` if the attributes are not set, or cannot be read.
                    let generated = reader.generated(&change.base, file.path()).ok().flatten();
                    self.show(file, generated, &mut group, out);
                }
                Err(e) => {
                    let cause = FailureCause::Other(e.on_one_line());
                    out.failed
                        .push(CoverageFailure::in_file(path.clone(), cause));
                }
            }
        }
        if out.year.is_some() {
            // Requests have neighbours in one folder together.
            group.files.sort_by(|a, b| a.path().cmp(b.path()));
        }
        out.push(group);
    }

    /// Returns the reason to read nothing more, if there is one.
    fn is_enough(&self, out: &Material) -> Option<String> {
        if self.scan.stop.signal().is_some() {
            return Some("the review was stopped".to_owned());
        }
        if Instant::now() >= out.deadline {
            return Some(format!("timeout = {:?}", self.policy().review.timeout));
        }
        (out.bytes > out.room).then(|| format!("more than {} MiB of changed files", out.room >> 20))
    }

    fn show(
        &self,
        file: FileChange,
        generated: Option<bool>,
        group: &mut Group,
        out: &mut Material,
    ) {
        let path = file.path().clone();
        if self
            .prepared
            .request
            .brief
            .contract
            .as_ref()
            .is_some_and(|c| c.apart.contains(&path))
        {
            return out.skipped.push((path, Skip::Contract));
        }
        let bare = Bare::of(&file, self.scan.rules);
        match Shown::marked(
            file,
            generated,
            self.scan.rules,
            self.policy(),
            &self.symbols,
        ) {
            Ok(Some(shown)) => {
                out.bytes += size(&shown);
                if let Some(line) = shown.cut.first() {
                    out.cut
                        .push((path, format!("line {line} is too long to be shown")));
                }
                group.files.push(shown);
            }
            Ok(None) => group.related.bare.push(bare),
            Err(why) => out.skipped.push((path, why)),
        }
    }
}

impl Material {
    /// Returns true if a model has to see a part of the change, or if that is unknown.
    pub(super) fn is_owed(&self) -> bool {
        !(self.groups.is_empty() && self.cut.is_empty() && self.failed.is_empty())
    }

    /// Returns the paths of the files that models see.
    pub(super) fn paths(&self) -> impl Iterator<Item = &RepoPath> + Clone {
        self.groups.iter().flat_map(|g| &g.files).map(Shown::path)
    }

    /// Records a file that was not read because of a limit.
    fn leave_unread(&mut self, path: &RepoPath, why: String) {
        self.unread.push(path.clone());
        self.cut.push((path.clone(), why));
    }

    fn push(&mut self, group: Group) {
        if !group.files.is_empty() {
            self.groups.push(group);
        }
    }
}

/// Returns the approximate memory of a shown file: both of its sides, and its lines.
fn size(file: &Shown) -> usize {
    let sides = file
        .change
        .text()
        .map_or(0, |t| t.old.size() + t.new.size());
    sides
        + file
            .hunks
            .iter()
            .flat_map(|h| &h.lines)
            .map(|l| l.text.len() + LINE)
            .sum::<usize>()
}
