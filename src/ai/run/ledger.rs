//! Records which backend finished which file, in every part and under every lens.

use super::{ReviewSession, Team};
use crate::ai::plan::Chunk;
use std::collections::{BTreeMap, HashMap, HashSet};

/// Position of a group, and of a file in it.
pub(super) type FileKey = (usize, usize);

/// The result of one question for one file: the name of the backend whose answer covers it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LedgerEntry {
    pub(super) file: FileKey,
    pub(super) by: Option<String>,
}

/// The answers of a run, by file.
#[derive(Debug, Default)]
pub(super) struct FileLedger {
    /// Entries of each team, by its position.
    teams: Vec<Vec<LedgerEntry>>,
}

impl LedgerEntry {
    /// Builds the entries of a question without an answer.
    pub(super) fn unanswered(chunk: &Chunk) -> Vec<Self> {
        chunk
            .pieces
            .iter()
            .map(|p| Self {
                file: (chunk.group, p.file),
                by: None,
            })
            .collect()
    }
}

impl FileLedger {
    /// Creates a ledger with the files that the plan of each team leaves out.
    pub(super) fn new(teams: &[Team<'_>]) -> Self {
        let teams = teams.iter().map(|t| {
            t.left_out
                .iter()
                .map(|file| LedgerEntry {
                    file: *file,
                    by: None,
                })
                .collect()
        });
        Self {
            teams: teams.collect(),
        }
    }

    pub(super) fn add(&mut self, team: usize, entries: Vec<LedgerEntry>) {
        if let Some(all) = self.teams.get_mut(team) {
            all.extend(entries);
        }
    }

    /// Returns the files that at least one team did not finish.
    pub(super) fn missed(&self) -> HashSet<FileKey> {
        self.teams
            .iter()
            .flatten()
            .filter(|e| e.by.is_none())
            .map(|e| e.file)
            .collect()
    }

    /// Returns the files that each backend finished by itself.
    pub(super) fn finished(&self) -> BTreeMap<String, HashSet<FileKey>> {
        let mut out: BTreeMap<String, HashSet<FileKey>> = BTreeMap::new();
        for team in &self.teams {
            let mut by_file: HashMap<FileKey, HashSet<Option<&str>>> = HashMap::new();
            for e in team {
                by_file.entry(e.file).or_default().insert(e.by.as_deref());
            }
            for (file, by) in by_file {
                if let [Some(name)] = by.into_iter().collect::<Vec<_>>().as_slice() {
                    out.entry((*name).to_owned()).or_default().insert(file);
                }
            }
        }
        out
    }
}

impl ReviewSession<'_> {
    /// Returns the files with these paths in all groups.
    pub(super) fn keys_of<'p>(
        &self,
        paths: impl Iterator<Item = &'p crate::diff::RepoPath>,
    ) -> Vec<FileKey> {
        let wanted: HashSet<_> = paths.collect();
        let files = self.groups.iter().enumerate().flat_map(|(g, group)| {
            group
                .files
                .iter()
                .enumerate()
                .map(move |(f, file)| ((g, f), file.path()))
        });
        files
            .filter(|(_, path)| wanted.contains(path))
            .map(|(key, _)| key)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(file: usize, by: &str) -> LedgerEntry {
        LedgerEntry {
            file: (0, file),
            by: (!by.is_empty()).then(|| by.to_owned()),
        }
    }

    #[test]
    fn ver_02_a_file_is_finished_when_every_question_about_it_is() {
        let ledger = FileLedger {
            teams: vec![
                // Two lenses: file 1 was left out of one, and file 2 was answered by two backends.
                vec![
                    entry(0, "a"),
                    entry(0, "a"),
                    entry(1, "a"),
                    entry(1, ""),
                    entry(2, "a"),
                    entry(2, "b"),
                ],
                vec![entry(0, "c"), entry(1, "c"), entry(2, "")],
            ],
        };
        assert_eq!(ledger.missed(), HashSet::from([(0, 1), (0, 2)]));
        let finished = ledger.finished();
        assert_eq!(finished["a"], HashSet::from([(0, 0)]));
        assert_eq!(finished["c"], HashSet::from([(0, 0), (0, 1)]));
        assert!(!finished.contains_key("b"), "it saw only a part");
    }
}
