//! The file filter of `--files`, and which of its patterns matched.

use super::resolved::{ChangePart, PartContent};
use crate::diff::{Entry, RepoPath};
use crate::error::{Error, Result};
use crate::git::{Change, Repo, State};
use crate::policy::glob::Globs;
use crate::rules::{RuleSet, Scope};
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

/// Files of a tree that are matched against the patterns, at most.
const MOST: usize = 1_000_000;

/// The patterns of a file filter, in the syntax of the policy, relative to the folder in which they
/// were given.
#[derive(Debug)]
pub(crate) struct Files {
    globs: Globs,
    /// Name of the option in errors: `--files`.
    name: &'static str,
    /// The patterns relative to the top.
    rooted_patterns: Vec<String>,
    /// The patterns as given, and whether each one matched.
    patterns: Vec<(String, AtomicBool)>,
}

impl Files {
    /// Compiles the patterns. `dir` is the folder that they are relative to, `top` the one of the
    /// worktree.
    ///
    /// # Errors
    /// Usage: a pattern is invalid. Secrets in it are masked.
    pub(crate) fn new(
        (name, patterns): (&'static str, &[String]),
        dir: &Path,
        top: Option<&Path>,
        rules: &RuleSet,
    ) -> Result<Self> {
        let top = top.filter(|_| !patterns.is_empty());
        let folder = top.and_then(|top| below(dir, top)).unwrap_or_default();
        let rooted_patterns: Vec<String> = patterns
            .iter()
            .map(|p| rooted_pattern(p, dir, &folder))
            .collect();
        Self::compiled((name, patterns), &rooted_patterns, rules)
    }

    /// Compiles paths and patterns of files in a tree. Unlike a pattern of [`Self::new`], one
    /// without special characters is the path of a file or folder, also if it exists only in the
    /// reviewed state.
    ///
    /// # Errors
    /// Usage: a path is outside of the worktree, or a pattern is invalid.
    pub(super) fn of_paths(
        (name, paths): (&'static str, &[String]),
        dir: &Path,
        top: Option<&Path>,
        rules: &RuleSet,
    ) -> Result<Self> {
        let folder = top.and_then(|top| below(dir, top)).unwrap_or_default();
        let mut patterns = Vec::new();
        for path in paths {
            let Some(inside) = inside_of(path, dir, top, &folder) else {
                let text = format!("{path} is outside of the repository");
                let top = top.map_or_else(|| ".".to_owned(), |top| top.display().to_string());
                return Err(Error::usage(rules.masked(&text)).hint(format!(
                    "paths are below {top}, relative to the current folder"
                )));
            };
            patterns.push(inside);
        }
        Self::compiled((name, paths), &patterns, rules)
    }

    /// Compiles patterns that are relative to the top. `given` has the patterns as in the request.
    fn compiled(
        (name, given): (&'static str, &[String]),
        rooted_patterns: &[String],
        rules: &RuleSet,
    ) -> Result<Self> {
        let globs = Globs::new(rooted_patterns)
            .map_err(|e| Error::usage(rules.masked(&format!("{name}: {e}"))))?;
        Ok(Self {
            globs,
            name,
            rooted_patterns: rooted_patterns.to_owned(),
            patterns: given
                .iter()
                .map(|p| (p.clone(), AtomicBool::new(false)))
                .collect(),
        })
    }

    /// Returns the name of the option in messages.
    pub(super) fn name(&self) -> &'static str {
        self.name
    }

    /// Returns the patterns relative to the top of the worktree.
    pub(super) fn rooted_patterns(&self) -> &[String] {
        &self.rooted_patterns
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

    /// Rejects patterns that match neither a path of the change nor a tracked one: a misspelled
    /// pattern must not look like a part of the repository without changes. Each pattern is checked
    /// on its own.
    ///
    /// # Errors
    /// Usage: such a pattern, with its secrets masked. Incomplete: a tree cannot be read.
    pub(super) fn refuse_unknown(
        &self,
        rules: &RuleSet,
        repo: Option<&Repo>,
        parts: &[ChangePart],
    ) -> Result<()> {
        if self.is_everything() {
            return Ok(());
        }
        let probe = self.probe();
        for part in parts {
            probe.match_change(part);
        }
        if let Some(repo) = repo.filter(|_| probe.unmatched().next().is_some()) {
            probe.match_tracked(repo, parts)?;
        }
        let unknown: Vec<&str> = probe.unmatched().collect();
        if unknown.is_empty() {
            return Ok(());
        }
        let text = format!("{} matches no file: {}", self.name, unknown.join(", "));
        let error = Error::usage(rules.masked(&text));
        if let Some(range) = unknown
            .iter()
            .find(|p| p.contains("..") && !p.contains('/'))
        {
            let range = rules.masked(range);
            return Err(error
                .hint_person(format!("a range goes before --files: claude-reviewer review commit {range} --files GLOB"))
                .hint_agent("name files in file_list; review_commit and review_branch take commits and branches"));
        }
        Err(error.hint(
            "patterns are relative to the current folder; `git ls-files` lists the tracked files",
        ))
    }

    /// Returns the same patterns with the matches reset: a match of a tracked file outside the
    /// change must not count as a match in the change.
    fn probe(&self) -> Self {
        let patterns = self
            .patterns
            .iter()
            .map(|(pattern, _)| (pattern.clone(), AtomicBool::new(false)));
        Self {
            globs: self.globs.clone(),
            name: self.name,
            rooted_patterns: self.rooted_patterns.clone(),
            patterns: patterns.collect(),
        }
    }

    /// Matches the patterns against the paths of a part.
    pub(super) fn match_change(&self, part: &ChangePart) {
        match &part.content {
            PartContent::Change(change) => self.match_entries(change),
            PartContent::Given(files) => {
                files.iter().for_each(|file| self.match_entry(&file.entry));
            }
            // Its tree is read below.
            PartContent::Commit(_) => {}
        }
    }

    fn match_entries(&self, change: &Change) {
        change
            .entries
            .iter()
            .for_each(|entry| self.match_entry(entry));
    }

    fn match_entry(&self, entry: &Entry) {
        for side in entry.sides() {
            self.select(&side.path);
        }
    }

    /// Matches the patterns against the trees of the change, or against the index if the change has
    /// none.
    fn match_tracked(&self, repo: &Repo, parts: &[ChangePart]) -> Result<()> {
        let mut reader = repo.reader();
        let mut states = Vec::new();
        for part in parts {
            match &part.content {
                PartContent::Change(change) => {
                    states.extend([change.head.clone(), change.base.clone()]);
                }
                PartContent::Commit(id) => {
                    let change = reader.alone(*id)?;
                    self.match_entries(&change);
                    // The commits inside a branch are searched only for secrets. Only the trees of
                    // its two ends count.
                    if part.scope == Scope::All {
                        states.extend([change.head, change.base]);
                    }
                }
                PartContent::Given(_) => {}
            }
        }
        if states.is_empty() {
            states.push(State::Index);
        }
        states.dedup();
        for state in states {
            if self.unmatched().next().is_none() {
                return Ok(());
            }
            let (paths, more) = reader.files(&state, MOST)?;
            paths.iter().for_each(|path| {
                self.select(path);
            });
            for path in self.literal() {
                // The list of files has no links or submodules.
                if reader.has_entry(&state, &path)? {
                    self.select(&path);
                }
            }
            if more {
                // The list is truncated, and the patterns may match files past its end.
                self.patterns
                    .iter()
                    .for_each(|(_, hit)| hit.store(true, Ordering::Relaxed));
            }
        }
        Ok(())
    }

    /// Returns the unmatched patterns that are plain paths.
    fn literal(&self) -> Vec<RepoPath> {
        let plain = self
            .unmatched()
            .filter(|p| !p.contains(['*', '?', '[', '{', '\\', '!']));
        plain
            .map(|p| RepoPath::from(p.trim_start_matches("./").trim_matches('/')))
            .collect()
    }

    /// Returns the patterns without a match.
    pub(super) fn unmatched(&self) -> impl Iterator<Item = &str> {
        self.patterns
            .iter()
            .filter(|(_, hit)| !hit.load(Ordering::Relaxed))
            .map(|(p, _)| p.as_str())
    }
}

/// Returns the path of a folder relative to the top of the worktree; `None` if it is not below it.
fn below(dir: &Path, top: &Path) -> Option<PathBuf> {
    dir.canonicalize()
        .ok()?
        .strip_prefix(top.canonicalize().ok()?)
        .ok()
        .map(Path::to_owned)
}

/// Rewrites a pattern that is relative to `folder` as a pattern relative to the top.
///
/// The name of an existing file or folder matches exactly that. Any other pattern without `/`
/// matches at any depth below the folder.
fn rooted_pattern(pattern: &str, dir: &Path, folder: &Path) -> String {
    let named = dir.join(pattern).symlink_metadata().is_ok();
    let mut parts: Vec<String> = folder
        .iter()
        .map(|p| escape(&p.to_string_lossy()))
        .collect();
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
    if parts.is_empty() {
        "**".to_owned()
    } else {
        format!("/{}", parts.join("/"))
    }
}

/// Returns a path or pattern as a pattern relative to the top; `None` if it leads out of the
/// repository. `folder` is the current folder, relative to the top.
fn inside_of(path: &str, dir: &Path, top: Option<&Path>, folder: &Path) -> Option<String> {
    let is_pattern = path.contains(['*', '?', '[', '{', '\\', '!'])
        && dir.join(path).symlink_metadata().is_err();
    let path = Path::new(path);
    let relative = match (path.is_absolute(), top) {
        (true, Some(top)) => {
            below(path, top).or_else(|| path.strip_prefix(top).ok().map(Path::to_owned))?
        }
        (true, None) => return None,
        (false, _) => folder.join(path),
    };
    // The current folder is a name also where the path is a pattern.
    let of_folder = match path.is_absolute() {
        true => 0,
        false => folder.components().count(),
    };
    let mut parts: Vec<String> = Vec::new();
    for (at, part) in relative.components().enumerate() {
        match part {
            Component::Normal(p) if is_pattern && at >= of_folder => {
                parts.push(p.to_string_lossy().into_owned());
            }
            Component::Normal(p) => parts.push(escape(&p.to_string_lossy())),
            Component::ParentDir => drop(parts.pop()?),
            Component::CurDir | Component::RootDir | Component::Prefix(_) => {}
        }
    }
    let is_anywhere = is_pattern && parts.len() == 1 && path.components().count() == 1;
    Some(match parts.as_slice() {
        [] => "**".to_owned(),
        [name] if is_anywhere => name.clone(),
        _ => format!("/{}", parts.join("/")),
    })
}

/// Escapes the special characters of patterns.
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
    fn a_path_of_a_tree_is_below_the_top_or_refused() {
        let top = tempfile::tempdir().unwrap();
        let top = top.path();
        std::fs::create_dir_all(top.join("s/t")).unwrap();
        std::fs::write(top.join("s/[x].py"), "").unwrap();
        let whole = |path: &str| top.join(path).to_string_lossy().into_owned();
        for (folder, path, expected) in [
            ("", "src", Some("/src")),
            ("", "*.py", Some("*.py")),
            ("", "s/*.py", Some("/s/*.py")),
            ("", ".", Some("**")),
            ("", "..", None),
            ("", "s/../..", None),
            ("s", "..", Some("**")),
            ("s", "../other", Some("/other")),
            ("s", "../../other", None),
            ("s", "[x].py", Some("/s/\\[x\\].py")),
            ("[x]", "*.py", Some("/\\[x\\]/*.py")),
            ("[x]/{y}", "z/*.py", Some("/\\[x\\]/\\{y\\}/z/*.py")),
            ("[x]", "../*.py", Some("/*.py")),
            ("[x]", "../[x]/?.py", Some("/[x]/?.py")),
            ("", &whole("s/t"), Some("/s/t")),
            ("", &whole("gone"), Some("/gone")),
            ("", "/etc/passwd", None),
        ] {
            assert_eq!(
                inside_of(path, &top.join(folder), Some(top), Path::new(folder)).as_deref(),
                expected,
                "{folder:?} {path}"
            );
        }
    }

    #[test]
    fn patterns_count_from_the_folder_they_were_given_in() {
        let rules = RuleSet::new(&crate::policy::RulesPolicy::default(), &[]).unwrap();
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
            let files = Files::new(
                ("--files", &[pattern.to_owned()]),
                &top.path().join(dir),
                Some(top.path()),
                &rules,
            )
            .unwrap();
            assert_eq!(
                files.select(&RepoPath::from(path)),
                selected,
                "{dir:?} {pattern} {path}"
            );
            assert_eq!(files.unmatched().count(), usize::from(!selected));
        }
    }
}
