//! What `--files` selects, and which of its patterns did.

use super::source::{Content, Part};
use crate::diff::RepoPath;
use crate::error::{Error, Result};
use crate::git::{Repo, State};
use crate::policy::glob::Globs;
use crate::rules::Scope;
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

/// Files of a tree that are looked at for a pattern.
const MOST: usize = 1_000_000;

/// Patterns as in policy, but relative to the folder they were given in, as a shell would expand them.
#[derive(Debug)]
pub(crate) struct Files {
    globs: Globs,
    /// As given, and whether it selected something.
    patterns: Vec<(String, AtomicBool)>,
}

impl Files {
    /// Compiles the patterns. `dir` is the folder they were given in, `top` the worktree's.
    ///
    /// # Errors
    /// Usage: a pattern that is none.
    pub(crate) fn new(patterns: &[String], dir: &Path, top: Option<&Path>) -> Result<Self> {
        let below = || dir.canonicalize().ok()?.strip_prefix(top?.canonicalize().ok()?).ok().map(Path::to_owned);
        let folder = if patterns.is_empty() { PathBuf::new() } else { below().unwrap_or_default() };
        let from_top: Vec<String> = patterns.iter().map(|p| from_top(p, dir, &folder)).collect();
        let globs = Globs::new(&from_top).map_err(|e| Error::usage(format!("--files: {e}")))?;
        Ok(Self { globs, patterns: patterns.iter().map(|p| (p.clone(), AtomicBool::new(false))).collect() })
    }

    pub(crate) fn is_everything(&self) -> bool {
        self.patterns.is_empty()
    }

    pub(crate) fn select(&self, path: &RepoPath) -> bool {
        if self.is_everything() {
            return true;
        }
        let matching = self.globs.matching(path);
        for m in &matching {
            self.patterns[*m].1.store(true, Ordering::Relaxed);
        }
        !matching.is_empty()
    }

    /// Says which patterns select nothing of the change nor of what it leaves as it was: mistakes, which a gate must
    /// not take for a part of the repository in which nothing changed.
    ///
    /// # Errors
    /// Incomplete: a tree cannot be read.
    pub(super) fn of_nothing(&self, repo: &Repo, parts: &[Part]) -> Result<Vec<String>> {
        let mut reader = repo.reader();
        for part in parts.iter().filter(|p| p.scope == Scope::All) {
            let states = match &part.content {
                Content::Change(change) => [change.head.clone(), change.base.clone()],
                Content::Commit(id) => [repo.state_of(*id)?, State::Empty],
                Content::Given(_) => continue,
            };
            for state in states {
                let (paths, more) = reader.files(&state, MOST)?;
                for path in &paths {
                    self.select(path);
                }
                // Of more, nobody can tell.
                if more || self.unmatched().next().is_none() {
                    return Ok(Vec::new());
                }
            }
        }
        Ok(self.unmatched().map(|pattern| format!("--files {pattern} selects no file at all")).collect())
    }

    /// Returns the patterns that selected nothing.
    pub(super) fn unmatched(&self) -> impl Iterator<Item = &str> {
        self.patterns.iter().filter(|(_, hit)| !hit.load(Ordering::Relaxed)).map(|(p, _)| p.as_str())
    }
}

/// Rewrites a pattern of the folder `folder` (from the top) as one of the top.
///
/// A name that exists there is that file or folder. Else a pattern without `/` means any depth below.
fn from_top(pattern: &str, dir: &Path, folder: &Path) -> String {
    let named = dir.join(pattern).symlink_metadata().is_ok();
    let mut parts: Vec<String> = folder.iter().map(|p| escape(&p.to_string_lossy())).collect();
    if !named && !pattern.contains('/') {
        if parts.is_empty() {
            return pattern.to_owned();
        }
        return format!("/{}/**/{pattern}", parts.join("/"));
    }
    for part in Path::new(pattern).components() {
        match part {
            Component::Normal(p) if named => parts.push(escape(&p.to_string_lossy())),
            Component::Normal(p) => parts.push(p.to_string_lossy().into_owned()),
            Component::ParentDir => {
                parts.pop();
            }
            Component::RootDir => parts.clear(),
            Component::CurDir | Component::Prefix(_) => {}
        }
    }
    if parts.is_empty() { "**".to_owned() } else { format!("/{}", parts.join("/")) }
}

/// Takes the meaning of pattern signs away.
fn escape(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for c in name.chars() {
        if matches!(c, '*' | '?' | '[' | ']' | '{' | '}' | '\\' | '!') {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_count_from_the_folder_they_were_given_in() {
        let top = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(top.path().join("s/t")).unwrap();
        std::fs::write(top.path().join("s/a.py"), "").unwrap();
        std::fs::write(top.path().join("s/[x].py"), "").unwrap();
        for (dir, pattern, path, selected) in [
            ("", "*.py", "s/a.py", true),
            ("", "s", "s/t/b.py", true),
            ("", "s/*.py", "s/t/b.py", false),
            ("", "./s/a.py", "s/a.py", true),
            ("s", "a.py", "s/a.py", true),
            ("s", "a.py", "a.py", false),
            ("s", "a.py", "s/t/a.py", false),
            ("s", "*.py", "s/t/b.py", true),
            ("s", "*.py", "b.py", false),
            ("s", "[x].py", "s/[x].py", true),
            ("s", "[x].py", "s/x.py", false),
            ("s/t", "../a.py", "s/a.py", true),
            ("s", ".", "s/t/b.py", true),
            ("s", "gone/*.py", "s/gone/b.py", true),
        ] {
            let files = Files::new(&[pattern.to_owned()], &top.path().join(dir), Some(top.path())).unwrap();
            assert_eq!(files.select(&RepoPath::from(path)), selected, "{dir:?} {pattern} {path}");
            assert_eq!(files.unmatched().count(), usize::from(!selected));
        }
    }
}
