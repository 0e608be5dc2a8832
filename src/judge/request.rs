//! The review that a judgement needs: the change and the files that its contract names.

use super::{Bench, PAGE, RECORD, Task};
use crate::ai::context;
use crate::diff::RepoPath;
use crate::error::Result;
use crate::git::Repo;
use crate::request::{Authority, Contract, Input, ReviewRequest, Source};
use std::path::{Path, PathBuf};

/// Files of the contract that a note lists, at most.
const NAMED: usize = 20;

/// The files that the contract names, compared with the change.
#[derive(Default)]
struct NamedFiles {
    /// Existing files that are not part of the change, relative to the root.
    unchanged: Vec<String>,
    /// Files that must not be read.
    refused: Vec<String>,
}

impl Bench<'_> {
    /// Builds the request for the review; `None` if there is nothing to review.
    pub(super) fn request(&self, task: &Task) -> Result<(Option<ReviewRequest>, Vec<String>)> {
        let root = &self.ask.root;
        let repo = Repo::find(root, self.world.env)?;
        let top = repo.as_ref().and_then(Repo::worktree);
        let own = prefix(root, top);
        let file = rooted_patterns(&own, task.file.as_bytes());
        let written =
            [PAGE, RECORD].map(|name| rooted_patterns(&own, self.way.file(name).as_bytes()));
        let apart: Vec<RepoPath> = std::iter::once(file.clone()).chain(written).collect();
        let changed: Vec<RepoPath> = match &repo {
            Some(repo) if top.is_some() => {
                let (change, _) = repo.changes(None)?;
                change
                    .entries
                    .iter()
                    .map(|e| e.path().clone())
                    .filter(|p| !apart.contains(p))
                    .collect()
            }
            _ => Vec::new(),
        };
        let named = self.named(task, &changed, &own);
        let source = match (changed.is_empty(), named.unchanged.is_empty()) {
            (true, true) => return Ok((None, Vec::new())),
            (true, false) => Source::Code(
                named
                    .unchanged
                    .iter()
                    .map(|f| Input::File(PathBuf::from(f)))
                    .collect(),
            ),
            (false, _) => Source::Changes { base: None },
        };
        let mut notes = Vec::new();
        match source {
            Source::Code(_) => {
                notes.push(
                    "the change is empty: reviewed the complete files that the contract names"
                        .to_owned(),
                );
            }
            _ if !named.unchanged.is_empty() => {
                notes.push(format!(
                    "the contract names files that do not differ: {}",
                    list(&named.unchanged)
                ));
            }
            _ => {}
        }
        if !named.refused.is_empty() {
            notes.push(format!(
                "the contract names files that were not read: {}",
                list(&named.refused)
            ));
        }
        let mut request = ReviewRequest::new(source, root.clone());
        request.authority = Authority::Head;
        request.config = self.ask.config.clone();
        request.backends = self.ask.backends.clone();
        request.cache = self.ask.cache;
        request.overrides.timeout = Some(self.ask.timeout);
        let criteria = task.contract.criteria().to_vec();
        request.brief.contract = Some(Contract {
            file,
            text: task.contract.document(),
            criteria,
            apart,
        });
        Ok((Some(request), notes))
    }

    /// Compares the files that the contract names with the change.
    fn named(&self, task: &Task, changed: &[RepoPath], own: &[u8]) -> NamedFiles {
        let mut out = NamedFiles::default();
        for name in &task.contract.files {
            match context::locate(Path::new(name), &self.ask.root, &self.ask.root) {
                Ok((full, path)) => {
                    let rooted_patterns = [own, path.as_bytes()].concat();
                    let is_there = full.is_file() && path != task.file;
                    if is_there && !changed.iter().any(|c| c.as_bytes() == rooted_patterns) {
                        out.unchanged
                            .push(String::from_utf8_lossy(path.as_bytes()).into_owned());
                    }
                }
                // A deleted file is part of the change and does not exist.
                Err(_)
                    if changed
                        .iter()
                        .any(|c| c.as_bytes() == [own, name.as_bytes()].concat()) => {}
                Err(why) => out.refused.push(format!("{name} ({why})")),
            }
        }
        out.unchanged.sort();
        out.unchanged.dedup();
        out
    }
}

/// Returns the path of the root relative to the top of the worktree, with a trailing slash; empty
/// if they are the same.
fn prefix(root: &Path, top: Option<&Path>) -> Vec<u8> {
    let below = top.and_then(|top| below(root, top)).unwrap_or_default();
    match below.as_os_str().as_encoded_bytes() {
        b"" => Vec::new(),
        path => [path, b"/"].concat(),
    }
}

/// Returns a canonical path relative to the top of the worktree; `None` if it is not below it.
fn below(path: &Path, top: &Path) -> Option<PathBuf> {
    path.canonicalize()
        .ok()?
        .strip_prefix(top.canonicalize().ok()?)
        .ok()
        .map(Path::to_owned)
}

/// Returns the path of a file relative to the top of the worktree, from the prefix of the root.
fn rooted_patterns(prefix: &[u8], path: &[u8]) -> RepoPath {
    RepoPath::new([prefix, path].concat())
}

/// Lists the first names, with the number of the others.
fn list(names: &[String]) -> String {
    let more = names.len().saturating_sub(NAMED);
    let shown = names[..names.len() - more].join(", ");
    if more > 0 {
        format!("{shown} and {more} more")
    } else {
        shown
    }
}
