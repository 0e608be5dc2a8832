//! Orders the files of a tree for models by their risk.

use super::material::Material;
use super::{Asking, ModelResults};
use crate::ai::material::{Group, Shown};
use crate::ai::risk::{BLOCKING_FINDING, FINDING, FileFacts, FileRisk};
use crate::ai::run::RunOutcome;
use crate::diff::RepoPath;
use crate::finding::{Finding, Severity};
use crate::git::YearOfChanges;
use crate::review::Note;
use crate::review::audit::{Audit, Unfinished, year_of};
use crate::review::resolved::ChangePart;
use std::collections::{HashMap, HashSet};

impl Asking<'_> {
    /// Counts the commits of the last year for the files of the tree under review.
    pub(super) fn year(&self, asked: &mut ModelResults) -> YearOfChanges {
        let mut parts = self.prepared.resolved.parts.iter();
        let change = parts.find_map(ChangePart::change);
        let year = change
            .map(|change| year_of(self.scan.repo, change))
            .unwrap_or_default();
        if let Some(gap) = year.gap {
            let text = format!("files are ordered by a part of the last year only: {gap}");
            asked.notes.push(Note::general("review", text));
        }
        year
    }

    /// Returns the risk of each file of each group. `found`: the findings of the rules.
    pub(super) fn risks(
        &self,
        groups: &[Group],
        year: &YearOfChanges,
        found: &[Finding],
    ) -> Vec<Vec<FileRisk>> {
        let mut points: HashMap<RepoPath, u32> = HashMap::new();
        for (path, findings) in &self.prepared.request.past_findings {
            add(&mut points, path.clone(), FINDING.saturating_mul(*findings));
        }
        for finding in found.iter().filter(|f| f.suppressed.is_none()) {
            let is_severe = finding.severity() >= Severity::Major;
            let worth = if is_severe { BLOCKING_FINDING } else { FINDING };
            if let Some(path) = finding.file() {
                add(&mut points, path.clone(), worth);
            }
        }
        let risk = |file: &Shown| {
            let path = file.path();
            FileRisk::of(&FileFacts {
                path,
                text: file.change.text().map_or(&[], |text| text.new.known()),
                commits: year.commits.get(path).copied().unwrap_or_default(),
                findings: points.get(path).copied().unwrap_or_default(),
            })
        };
        groups
            .iter()
            .map(|group| group.files.iter().map(risk).collect())
            .collect()
    }

    /// Removes the journal of a complete audit, or adds a note with the command that continues it.
    pub(super) fn end_audit(
        &self,
        audit: Option<&Audit>,
        (material, outcome): (&Material, &RunOutcome),
        asked: &mut ModelResults,
    ) {
        let Some(audit) = audit else { return };
        let mut unfinished = Unfinished {
            failed: outcome.failed.len(),
            is_stopped: self.scan.stop.signal().is_some(),
            ..Unfinished::default()
        };
        let unread: HashSet<&RepoPath> = material.unread.iter().collect();
        let late = material.cut.iter();
        let late = late.filter(|(path, _)| unread.contains(path));
        let mut seen = HashSet::new();
        for (path, limit) in outcome.cut.iter().chain(late) {
            if seen.insert(path) {
                *unfinished.by_limit.entry(limit.clone()).or_default() += 1;
            }
        }
        asked.notes.extend(audit.end(&unfinished));
    }
}

/// Adds points to a path.
fn add(points: &mut HashMap<RepoPath, u32>, path: RepoPath, more: u32) {
    let all = points.entry(path).or_default();
    *all = all.saturating_add(more);
}
