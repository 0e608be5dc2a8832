//! New contents of files, computed before the first one is written.

use super::merge::merged;
use super::target::{Target, free_place, place, read};
use crate::diff::{self, Attribute, Body, ChangeKind, FileChange, FileMode, RepoPath, Side};
use crate::error::{Error, Result};
use crate::policy::RulesPolicy;
use crate::rules::RuleSet;
use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// New contents of files that are not written yet.
#[derive(Debug, Default)]
pub struct Edits {
    pub(super) files: Vec<FileEdit>,
    /// IDs of the findings whose replacements are in the files.
    pub applied: Vec<String>,
    /// IDs of findings that were left out, with the reason.
    pub left_out: Vec<(String, String)>,
}

/// One changed or new file.
#[derive(Debug)]
pub(super) struct FileEdit {
    pub(super) path: RepoPath,
    pub(super) place: PathBuf,
    /// `None` if the file is new.
    pub(super) before: Option<Vec<u8>>,
    pub(super) after: Vec<u8>,
}

/// A new content of a file, with the content that it was computed from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rewrite {
    pub path: RepoPath,
    /// Content that it was computed from; `None` if there was no file.
    pub base: Option<Vec<u8>>,
    pub after: Vec<u8>,
}

impl Edits {
    /// Merges rewrites with the current files: edits of other lines are preserved. Writes nothing.
    ///
    /// # Errors
    /// Usage: edits of the same lines, a conflict in a file, unsaved changes, or an existing file
    /// at the path of a new one.
    pub fn of_rewrites(
        target: &Target,
        rewrites: impl IntoIterator<Item = Rewrite>,
    ) -> Result<Self> {
        let mut out = Self::default();
        for rewrite in rewrites {
            let edit = merge(target, rewrite).map_err(|why| {
                let error = Error::usage(format!(
                    "the fix is not applied: {why}; nothing was written"
                ));
                error.hint_person(
                    "write it as a patch instead: claude-reviewer fix --patch fix.patch",
                )
            })?;
            out.files.extend(edit);
        }
        Ok(out)
    }

    /// Returns rewrites without merging them, for a patch.
    pub fn unmerged(top: &Path, rewrites: impl IntoIterator<Item = Rewrite>) -> Self {
        let files = rewrites
            .into_iter()
            .map(|r| FileEdit {
                place: top.to_owned(),
                path: r.path,
                before: r.base,
                after: r.after,
            })
            .collect();
        Self {
            files,
            ..Self::default()
        }
    }

    /// Returns true if no file changes.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// Returns the paths of the changed files.
    pub fn paths(&self) -> impl Iterator<Item = &RepoPath> {
        self.files.iter().map(|e| &e.path)
    }

    /// Returns the edits as a patch for `git apply`.
    pub fn patch(&self) -> Vec<u8> {
        let mut out = Vec::new();
        for edit in &self.files {
            let body = Body::of_file(
                &edit.path,
                edit.before.clone(),
                Some(edit.after.clone()),
                Attribute::Text,
            );
            let (kind, old) = match edit.before {
                Some(_) => (ChangeKind::Modified, Some(edit.side())),
                None => (ChangeKind::Added, None),
            };
            let entry = diff::Entry {
                kind,
                old,
                new: Some(edit.side()),
            };
            diff::unified::write(&FileChange { entry, body }, &mut out);
        }
        out
    }

    /// Returns the patch for display: secrets are masked.
    ///
    /// # Errors
    /// Incomplete: the rules that find secrets cannot be built.
    pub fn shown_patch(&self) -> Result<String> {
        Ok(self.masked_patch(&RuleSet::new(&RulesPolicy::default(), &[])?))
    }

    /// Returns the patch with secrets masked. They are detected in the files, because a patch can
    /// hide a secret of several lines.
    pub fn masked_patch(&self, rules: &RuleSet) -> String {
        let texts: Vec<&[u8]> = self
            .files
            .iter()
            .flat_map(|e| [e.before.as_deref(), Some(e.after.as_slice())])
            .flatten()
            .collect();
        let masked: BTreeMap<&[u8], Vec<u8>> = texts
            .into_iter()
            .flat_map(|text| masked_lines(rules, text))
            .collect();
        let patch = self.patch();
        let mut out = Vec::with_capacity(patch.len());
        for line in patch.split_inclusive(|b| *b == b'\n') {
            let (mark, rest) = line.split_at(line.len().min(1));
            let content = rest.strip_suffix(b"\n").unwrap_or(rest);
            match masked.get(content) {
                Some(masked) => out.extend([mark, masked, &rest[content.len()..]].concat()),
                None => out.extend_from_slice(line),
            }
        }
        String::from_utf8_lossy(&rules.mask(&out)).into_owned()
    }

    /// Writes the files atomically, and only if all are unmodified since they were read.
    ///
    /// # Errors
    /// Usage: a file changed meanwhile; nothing is written. Incomplete: a file cannot be written;
    /// the message lists the files that were.
    pub fn write(&self) -> Result<()> {
        let mut files = Vec::new();
        for edit in &self.files {
            files.push((edit, edit.beside().map_err(|e| edit.unwritten(&[], &e))?));
        }
        for edit in &self.files {
            let is_same = match &edit.before {
                Some(before) => read(&edit.place).ok().as_ref() == Some(before),
                None => edit.place.symlink_metadata().is_err(),
            };
            if !is_same {
                return Err(Error::usage(format!(
                    "{} changed meanwhile; nothing was written",
                    edit.path.to_wire()
                ))
                .hint("apply again when no editor or program writes to the file"));
            }
        }
        let mut done = Vec::new();
        for (edit, file) in files {
            edit.persist(file).map_err(|e| edit.unwritten(&done, &e))?;
            done.push(edit.path.to_wire());
        }
        Ok(())
    }
}

impl FileEdit {
    /// Returns the file as a side of a patch, which has no object IDs.
    fn side(&self) -> Side {
        Side {
            path: self.path.clone(),
            mode: FileMode::Regular,
            id: None,
        }
    }

    /// Returns the error for a file that cannot be written after the files in `done` were.
    fn unwritten(&self, done: &[String], e: &std::io::Error) -> Error {
        let done = if done.is_empty() {
            "nothing".to_owned()
        } else {
            done.join(", ")
        };
        let message = format!(
            "{} cannot be written; {done} was written",
            self.path.to_wire()
        );
        Error::incomplete(message).caused_by(e)
    }

    /// Writes the new content to a temporary file in the same folder, with the permissions of the
    /// old one.
    fn beside(&self) -> std::io::Result<tempfile::NamedTempFile> {
        // The folder of a new file may be missing; `persist` creates it.
        let folder = self
            .place
            .ancestors()
            .skip(1)
            .find(|folder| folder.is_dir())
            .unwrap_or(&self.place);
        let mut file = new_file(folder)?;
        file.write_all(&self.after)?;
        if self.before.is_some() {
            file.as_file()
                .set_permissions(std::fs::metadata(&self.place)?.permissions())?;
        }
        file.as_file().sync_all()?;
        Ok(file)
    }

    /// Moves the temporary file to its final path.
    fn persist(&self, file: tempfile::NamedTempFile) -> std::io::Result<()> {
        if self.before.is_some() {
            return file.persist(&self.place).map(drop).map_err(|e| e.error);
        }
        if let Some(folder) = self.place.parent() {
            std::fs::create_dir_all(folder)?;
        }
        file.persist_noclobber(&self.place)
            .map(drop)
            .map_err(|e| e.error)
    }
}

/// Merges a rewrite with the current file. Returns `None` if the file has the new content already.
///
/// # Errors
/// The reason why it cannot be merged.
fn merge(target: &Target, rewrite: Rewrite) -> std::result::Result<Option<FileEdit>, String> {
    let Rewrite { path, base, after } = rewrite;
    let shown = path.to_wire();
    let Some(base) = base else {
        let place = free_place(&target.top, &path)?;
        target.refuse_busy(&path, &place, b"")?;
        return Ok(Some(FileEdit {
            path,
            place,
            before: None,
            after,
        }));
    };
    let place = place(&target.top, &path)?;
    let before = read(&place)?;
    target.refuse_busy(&path, &place, &before)?;
    let after = merged(&base, &before, &after)
        .ok_or_else(|| format!("{shown} was edited in the same lines meanwhile"))?;
    Ok((after != before).then_some(FileEdit {
        path,
        place,
        before: Some(before),
        after,
    }))
}

/// Creates a temporary file with the permissions of a new file.
fn new_file(folder: &Path) -> std::io::Result<tempfile::NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    #[cfg(unix)]
    builder
        .permissions(<std::fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode(0o666));
    builder.prefix(".claude-reviewer-").tempfile_in(folder)
}

/// Returns the lines of a text that contain a secret, each with its masked form.
fn masked_lines<'t>(rules: &RuleSet, text: &'t [u8]) -> Vec<(&'t [u8], Vec<u8>)> {
    let masked = rules.mask(text);
    let pairs = text
        .split(|b| *b == b'\n')
        .zip(masked.split(|b| *b == b'\n'));
    pairs
        .filter(|(line, masked)| line != masked)
        .map(|(line, masked)| (line, masked.to_vec()))
        .collect()
}
