//! Writes the replacements of findings into the worktree.
//!
//! Lines are replaced only if they are unmodified since the review. All contents are computed
//! before the first file is written, so that an error leaves the worktree unmodified. The index is
//! not changed.

use super::decide::select;
use super::fix::merged;
use super::recall;
use super::region::changes;
use crate::diff::{
    self, Attribute, Body, ChangeKind, FileChange, FileMode, LineNo, ObjectId, RepoPath, Side,
};
use crate::error::{Error, Result};
use crate::finding::{Confidence, Finding, Origin};
use crate::git::Repo;
use crate::policy::RulesPolicy;
use crate::review::Review;
use crate::rules::RuleSet;
use crate::untrusted;
use crate::wire;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};

/// Bytes of a file that is changed, at most.
const MAX_FILE: u64 = 64 << 20;
/// Number of `<` or `>` in a conflict marker, at least: git's default. `conflict-marker-size` can
/// set a larger number.
const MARKER: usize = 7;
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";
/// Replaces each byte of a secret in a stored change.
const MASK: u8 = b'*';
/// Offset and value of the flag for unsaved changes in a Vim swap file: `b0_dirty` in Vim's
/// memline.c.
const VIM_DIRTY: (usize, u8) = (1007, 0x55);

/// The review whose findings are applied.
#[derive(Clone, Copy, Debug)]
pub struct Reviewed<'a> {
    /// ID of the stored review.
    pub id: &'a str,
    /// The findings as stored.
    pub findings: &'a [wire::Finding],
    /// The stored change of the round.
    pub change: &'a [u8],
    /// Commit that was reviewed; `None` for the index or the worktree.
    pub head: Option<&'a str>,
    /// Commit that is checked out; `None` before the first commit.
    pub checked_out: Option<&'a str>,
}

impl Reviewed<'_> {
    /// Returns the reviewed commit of a finding, or of all with `None`, if it is not checked out.
    pub fn elsewhere(&self, found: Option<&wire::Finding>) -> Option<String> {
        let commit = found.and_then(|f| f.commit.as_deref()).or(self.head)?;
        let id = ObjectId::from_hex(commit)?;
        (Some(commit) != self.checked_out).then(|| id.short())
    }
}

/// The worktree that replacements are written into.
#[derive(Clone, Debug)]
pub struct Target {
    top: PathBuf,
    /// Paths that git lists as unmerged.
    unmerged: BTreeSet<RepoPath>,
}

impl Target {
    /// Reads the state of the worktree at `top`.
    ///
    /// # Errors
    /// Incomplete: the index cannot be read.
    pub fn of(repo: &Repo, top: &Path) -> Result<Self> {
        Ok(Self {
            top: top.to_owned(),
            unmerged: repo.unmerged()?,
        })
    }

    /// Rejects a file with a conflict, or with unsaved changes in an editor.
    fn refuse_busy(
        &self,
        path: &RepoPath,
        place: &Path,
        bytes: &[u8],
    ) -> std::result::Result<(), String> {
        if self.unmerged.contains(path) || has_conflict(bytes) {
            return Err(format!("{} has an unresolved conflict", path.to_wire()));
        }
        match is_unsaved(place) {
            true => Err(format!(
                "an editor has unsaved changes of {}",
                path.to_wire()
            )),
            false => Ok(()),
        }
    }
}

/// The findings to apply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FindingsToApply {
    /// IDs such as `F3`, or prefixes of fingerprints. Each has to apply.
    Named(Vec<String>),
    /// Every finding that counts, has medium or high confidence, is not disputed, and whose
    /// replacement applies.
    AllSafe,
}

/// New contents of files that are not written yet.
#[derive(Debug, Default)]
pub struct Edits {
    files: Vec<FileEdit>,
    /// IDs of the findings whose replacements are in the files.
    pub applied: Vec<String>,
    /// IDs of findings that were left out, with the reason.
    pub left_out: Vec<(String, String)>,
}

/// One changed or new file.
#[derive(Debug)]
struct FileEdit {
    path: RepoPath,
    place: PathBuf,
    /// `None` if the file is new.
    before: Option<Vec<u8>>,
    after: Vec<u8>,
}

/// A new content of a file, with the content that it was computed from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rewrite {
    pub path: RepoPath,
    /// Content that it was computed from; `None` if there was no file.
    pub base: Option<Vec<u8>>,
    pub after: Vec<u8>,
}

/// The reason why a finding is not applied, and the remedy.
#[derive(Debug)]
struct Refusal {
    why: String,
    remedy: Remedy,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Remedy {
    /// A new review, which finds the current lines.
    Review,
    /// A fix by a model, which writes the missing replacement.
    Fix,
    /// Resolving the conflict, or saving the file.
    Settle,
    /// A manual edit.
    Edit,
}

impl From<String> for Refusal {
    fn from(why: String) -> Self {
        Self {
            why,
            remedy: Remedy::Review,
        }
    }
}

impl From<&str> for Refusal {
    fn from(why: &str) -> Self {
        why.to_owned().into()
    }
}

/// A replacement and its position in a file: indices of lines, end excluded.
#[derive(Debug)]
struct Patch {
    id: String,
    lines: std::ops::Range<usize>,
    text: String,
}

/// Computes the new contents of files. Writes nothing.
///
/// # Errors
/// Usage: an unknown finding, a finding without a replacement, lines that changed since the review,
/// a file with a conflict, two findings on the same lines.
pub fn plan(target: &Target, reviewed: &Reviewed<'_>, wanted: &FindingsToApply) -> Result<Edits> {
    let Reviewed {
        id: review,
        findings: recorded,
        change,
        ..
    } = *reviewed;
    let mut out = Edits::default();
    let files = changes(change).unwrap_or_default();
    let all = recall::findings(recorded, b"");
    if let FindingsToApply::Named(names) = wanted {
        names
            .iter()
            .try_for_each(|name| select(recorded, name, review).map(|_| ()))?;
    }
    let mut patches: BTreeMap<RepoPath, Vec<Patch>> = BTreeMap::new();
    let mut texts: BTreeMap<RepoPath, (PathBuf, Vec<u8>)> = BTreeMap::new();
    for (found, finding) in recorded.iter().zip(&all) {
        let is_wanted = match wanted {
            FindingsToApply::Named(names) => is_named(recorded, names, found, review)?,
            FindingsToApply::AllSafe => is_safe(finding),
        };
        if !is_wanted {
            continue;
        }
        match patch(target, (found, finding), &files, &mut texts) {
            Ok((path, patch)) => {
                let own = patches.entry(path).or_default();
                match own.iter().find(|p| overlap(&p.lines, &patch.lines)) {
                    None => own.push(patch),
                    Some(other) => {
                        let why = format!("{} is about the same lines", other.id);
                        refuse(&mut out, wanted, (reviewed, found), why.into())?;
                    }
                }
            }
            Err(why) => refuse(&mut out, wanted, (reviewed, found), why)?,
        }
    }
    for (path, own) in patches {
        let Some((place, before)) = texts.remove(&path) else {
            continue;
        };
        out.applied.extend(own.iter().map(|p| p.id.clone()));
        let after = replaced(&before, own);
        out.files.push(FileEdit {
            path,
            place,
            before: Some(before),
            after,
        });
    }
    Ok(out)
}

/// Records that a finding is left out, or fails if it was named.
fn refuse(
    out: &mut Edits,
    wanted: &FindingsToApply,
    (reviewed, found): (&Reviewed<'_>, &wire::Finding),
    Refusal { why, remedy }: Refusal,
) -> Result<()> {
    let id = &found.id;
    if *wanted == FindingsToApply::AllSafe {
        out.left_out.push((id.clone(), why));
        return Ok(());
    }
    let error = Error::usage(format!("{id} is not applied: {why}"));
    let elsewhere = reviewed
        .elsewhere(Some(found))
        .filter(|_| remedy == Remedy::Review);
    if let Some(commit) = elsewhere {
        let how = format!("the reviewed commit is not checked out: git checkout {commit}");
        return Err(error
            .hint_person(format!(
                "{how} && {} apply {id} --session {}",
                crate::NAME,
                reviewed.id
            ))
            .hint_agent(format!("{how}; then call apply_finding again")));
    }
    Err(match remedy {
        Remedy::Review => error
            .hint_person("review again, and apply a new finding: claude-reviewer review")
            .hint_agent("call request_review, and apply a finding of the new round"),
        Remedy::Fix => error
            .hint_person(format!(
                "let a model write the fix: claude-reviewer fix {id}"
            ))
            .hint_agent("edit the lines, then call verify_fix"),
        Remedy::Settle => {
            error.hint("resolve the conflict or save the file, then apply again: git status")
        }
        Remedy::Edit => error
            .hint_person(format!(
                "edit the file, then run: {} review changes --follow-up {}",
                crate::NAME,
                reviewed.id
            ))
            .hint_agent("edit the lines, then call verify_fix"),
    })
}

fn is_named(
    recorded: &[wire::Finding],
    names: &[String],
    found: &wire::Finding,
    review: &str,
) -> Result<bool> {
    for name in names {
        if select(recorded, name, review)?.id == found.id {
            return Ok(true);
        }
    }
    Ok(false)
}

fn is_safe(f: &Finding) -> bool {
    f.counts()
        && f.disputed.is_none()
        && f.confidence() >= Confidence::Medium
        && f.replacement().is_some()
}

/// Creates a temporary file with the permissions of a new file.
fn new_file(folder: &Path) -> std::io::Result<tempfile::NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    #[cfg(unix)]
    builder
        .permissions(<std::fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode(0o666));
    builder.prefix(".claude-reviewer-").tempfile_in(folder)
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

/// Returns the path for a new file: nothing exists there, and no parent folder is a link.
fn free_place(top: &Path, path: &RepoPath) -> std::result::Result<PathBuf, String> {
    let shown = path.to_wire();
    let relative =
        std::str::from_utf8(path.as_bytes()).map_err(|_| format!("{shown} is not UTF-8"))?;
    let mut place = top.to_owned();
    let mut parts = Path::new(relative).components().peekable();
    while let Some(part) = parts.next() {
        let std::path::Component::Normal(name) = part else {
            return Err(format!("{shown} is not a path of the worktree"));
        };
        place.push(name);
        match std::fs::symlink_metadata(&place) {
            Ok(meta) if parts.peek().is_some() && meta.is_dir() => {}
            Ok(_) => return Err(format!("something is in the place of the new file {shown}")),
            Err(_) => {}
        }
    }
    Ok(place)
}

/// Finds the position of a replacement in the worktree.
///
/// # Errors
/// The reason why it cannot be applied.
fn patch(
    target: &Target,
    (found, finding): (&wire::Finding, &Finding),
    files: &[(Option<String>, FileChange)],
    texts: &mut BTreeMap<RepoPath, (PathBuf, Vec<u8>)>,
) -> std::result::Result<(RepoPath, Patch), Refusal> {
    let text = finding.replacement().ok_or_else(|| Refusal {
        why: "it has no replacement".to_owned(),
        remedy: Remedy::Fix,
    })?;
    let text = text.to_owned();
    if untrusted::has_active(&text) {
        return Err(Refusal {
            why: "its replacement has hidden characters".to_owned(),
            remedy: Remedy::Edit,
        });
    }
    let (path, span) = finding
        .file()
        .zip(finding.lines())
        .ok_or("it has no lines")?;
    if !texts.contains_key(path) {
        let place = place(&target.top, path)?;
        let bytes = read(&place)?;
        texts.insert(path.clone(), (place, bytes));
    }
    let (place, bytes) = &texts[path];
    target
        .refuse_busy(path, place, bytes)
        .map_err(|why| Refusal {
            why,
            remedy: Remedy::Settle,
        })?;
    let reviewed =
        reviewed(files, found, finding).ok_or("its lines are not in the stored change")?;
    let lines: Vec<&[u8]> = lines(bytes).collect();
    let first = span.first.get() as usize - 1;
    let Some(at) = find(&lines, &reviewed, first) else {
        return Err(if is_converted(path, bytes, &reviewed, first) {
            let why = format!(
                "{} is not in UTF-8, and a replacement is written into UTF-8 files only",
                path.to_wire()
            );
            Refusal {
                why,
                remedy: Remedy::Edit,
            }
        } else {
            format!(
                "its lines at {}:{} have changed since the review",
                path.to_wire(),
                span.first
            )
            .into()
        });
    };
    let has_secret = lines[at..at + reviewed.len()]
        .iter()
        .zip(&reviewed)
        .any(|(line, reviewed)| line != reviewed);
    if has_secret && text.as_bytes().windows(2).any(|pair| pair == [MASK, MASK]) {
        let why = "its lines have a secret, which its replacement has masked".to_owned();
        return Err(Refusal {
            why,
            remedy: Remedy::Edit,
        });
    }
    let patch = Patch {
        id: found.id.clone(),
        lines: at..at + reviewed.len(),
        text,
    };
    Ok((path.clone(), patch))
}

/// Returns true if a file contains the reviewed lines only after conversion to UTF-8.
fn is_converted(path: &RepoPath, bytes: &[u8], reviewed: &[Vec<u8>], first: usize) -> bool {
    let text = diff::code::text_of(path, bytes.to_vec()).filter(|text| text != bytes);
    text.is_some_and(|text| find(&lines(&text).collect::<Vec<_>>(), reviewed, first).is_some())
}

/// Returns the file of a path: a regular file in the worktree, with no link among its parent
/// folders.
fn place(top: &Path, path: &RepoPath) -> std::result::Result<PathBuf, String> {
    let shown = path.to_wire();
    let relative =
        std::str::from_utf8(path.as_bytes()).map_err(|_| format!("{shown} is not UTF-8"))?;
    let mut place = top.to_owned();
    for part in Path::new(relative).components() {
        let std::path::Component::Normal(name) = part else {
            return Err(format!("{shown} is not a path of the worktree"));
        };
        place.push(name);
        let meta = std::fs::symlink_metadata(&place)
            .map_err(|_| format!("{shown} is not in the worktree"))?;
        if meta.file_type().is_symlink() {
            return Err(format!("{shown} is a symbolic link, or behind one"));
        }
    }
    let meta =
        std::fs::symlink_metadata(&place).map_err(|_| format!("{shown} is not in the worktree"))?;
    if meta.is_file() && meta.len() <= MAX_FILE {
        Ok(place)
    } else {
        Err(format!("{shown} is not a regular file"))
    }
}

fn read(place: &Path) -> std::result::Result<Vec<u8>, String> {
    std::fs::read(place).map_err(|e| format!("{} cannot be read: {e}", place.display()))
}

/// Returns the lines of a text without line endings; a final line ending does not start another
/// line.
fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let text = text.strip_suffix(b"\n").unwrap_or(text);
    text.split(|b| *b == b'\n')
        .map(|line| line.strip_suffix(b"\r").unwrap_or(line))
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

fn has_conflict(text: &[u8]) -> bool {
    lines(text).any(is_marker)
}

/// Returns true for the first or last line that git writes around a conflict.
fn is_marker(line: &[u8]) -> bool {
    let Some(first @ (b'<' | b'>')) = line.first() else {
        return false;
    };
    let size = line.iter().take_while(|b| *b == first).count();
    size >= MARKER && line.get(size).is_none_or(|b| *b == b' ')
}

/// Returns true if an editor has unsaved changes of a file: Emacs has a lock file then, Vim a flag
/// in its swap file.
fn is_unsaved(place: &Path) -> bool {
    let (Some(folder), Some(name)) = (place.parent(), place.file_name()) else {
        return false;
    };
    let lock = folder.join(affixed(".#", name, ""));
    let is_locked = std::fs::symlink_metadata(lock).is_ok_and(|m| m.file_type().is_symlink());
    let mut head = [0; VIM_DIRTY.0 + 1];
    let swap = std::fs::File::open(folder.join(affixed(".", name, ".swp")));
    let is_swap =
        swap.is_ok_and(|mut file| file.read_exact(&mut head).is_ok()) && head.starts_with(b"b0");
    is_locked || is_swap && head[VIM_DIRTY.0] == VIM_DIRTY.1
}

/// Returns the name of a file with a prefix and a suffix.
fn affixed(prefix: &str, name: &OsStr, suffix: &str) -> OsString {
    let mut out = OsString::from(prefix);
    out.push(name);
    out.push(suffix);
    out
}

/// Returns the lines of a finding from the stored change, with secrets masked.
pub(super) fn reviewed(
    files: &[(Option<String>, FileChange)],
    found: &wire::Finding,
    finding: &Finding,
) -> Option<Vec<Vec<u8>>> {
    let (path, span) = finding.file().zip(finding.lines())?;
    let text = &change_of(files, found, path)?.text()?.new;
    (span.first.get()..=span.last.get())
        .map(|number| text.line(LineNo::new(number)?).map(<[u8]>::to_vec))
        .collect()
}

/// Returns the last stored change of a file in the commit of a finding.
pub(super) fn change_of<'f>(
    files: &'f [(Option<String>, FileChange)],
    found: &wire::Finding,
    path: &RepoPath,
) -> Option<&'f FileChange> {
    let mut changes = files
        .iter()
        .rev()
        .filter(|(commit, _)| *commit == found.commit)
        .map(|(_, change)| change);
    changes.find(|change| change.path() == path)
}

/// Finds reviewed lines in a file: at their old position, or else at the only other position that
/// has them.
fn find(lines: &[&[u8]], reviewed: &[Vec<u8>], first: usize) -> Option<usize> {
    if is_at(lines, reviewed, first) {
        return Some(first);
    }
    let mut others = (0..lines.len()).filter(|at| is_at(lines, reviewed, *at));
    others.next().filter(|_| others.next().is_none())
}

/// Returns true if the reviewed lines are in a file from the line with index `at` on.
fn is_at(lines: &[&[u8]], reviewed: &[Vec<u8>], at: usize) -> bool {
    let there = lines.get(at..at + reviewed.len());
    there.is_some_and(|there| {
        there
            .iter()
            .zip(reviewed)
            .all(|(line, reviewed)| is_same(line, reviewed))
    })
}

/// Returns true if a text contains the reviewed lines anywhere. Ignores white space at both ends of
/// a line.
pub(super) fn has(text: &[u8], reviewed: &[Vec<u8>]) -> bool {
    let lines: Vec<&[u8]> = text
        .split(|b| *b == b'\n')
        .map(<[u8]>::trim_ascii)
        .collect();
    reviewed.is_empty()
        || lines.windows(reviewed.len()).any(|there| {
            there
                .iter()
                .zip(reviewed)
                .all(|(line, one)| is_same(line, one.trim_ascii()))
        })
}

/// Returns true if a line is the reviewed one, ignoring masked bytes.
fn is_same(line: &[u8], reviewed: &[u8]) -> bool {
    line.len() == reviewed.len()
        && line
            .iter()
            .zip(reviewed)
            .all(|(one, other)| one == other || *other == MASK)
}

fn overlap(a: &std::ops::Range<usize>, b: &std::ops::Range<usize>) -> bool {
    a.start < b.end && b.start < a.end
}

/// Replaces lines of a text, last ones first. New lines get the ending of the first replaced line.
/// Preserves a byte order mark.
fn replaced(before: &[u8], mut patches: Vec<Patch>) -> Vec<u8> {
    let (mark, before) = match before.strip_prefix(BYTE_ORDER_MARK) {
        Some(rest) => (BYTE_ORDER_MARK, rest),
        None => (&b""[..], before),
    };
    patches.sort_by_key(|p| std::cmp::Reverse(p.lines.start));
    let mut lines: Vec<Vec<u8>> = before
        .split_inclusive(|b| *b == b'\n')
        .map(<[u8]>::to_vec)
        .collect();
    for patch in patches {
        let end: &[u8] = if lines[patch.lines.start].ends_with(b"\r\n") {
            b"\r\n"
        } else {
            b"\n"
        };
        let ends = lines[patch.lines.end - 1].ends_with(b"\n");
        let mut new: Vec<Vec<u8>> = patch
            .text
            .lines()
            .map(|line| [line.as_bytes(), end].concat())
            .collect();
        if let Some(last) = new.last_mut().filter(|_| !ends) {
            // The file did not end with a newline.
            last.truncate(last.len() - end.len());
        }
        lines.splice(patch.lines, new);
    }
    [mark, &lines.concat()].concat()
}

/// The state of applied findings in a review by the rules.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ApplyEffect {
    /// IDs of applied findings of rules that are gone.
    pub gone: Vec<String>,
    /// IDs of applied findings that the rules still report.
    pub still_there: Vec<String>,
    /// IDs of applied claims of models, which the rules cannot check.
    pub unchecked: Vec<String>,
    /// Findings in the changed files that are not in the earlier review, as `rule at file:line`.
    pub new: Vec<String>,
}

/// Compares the findings of a review with those of a review of the edited worktree.
pub fn effect(edits: &Edits, before: &[wire::Finding], after: &Review) -> ApplyEffect {
    let mut out = ApplyEffect::default();
    for f in before.iter().filter(|f| edits.applied.contains(&f.id)) {
        let list = match f.origin.as_str() == Origin::Rules.name() {
            false => &mut out.unchecked,
            true if after
                .findings
                .iter()
                .any(|a| a.fingerprint().as_str() == f.fingerprint) =>
            {
                &mut out.still_there
            }
            true => &mut out.gone,
        };
        list.push(f.id.clone());
    }
    let paths: Vec<&RepoPath> = edits.paths().collect();
    let counting = after.findings.iter().filter(|f| f.counts());
    for f in counting.filter(|f| {
        before
            .iter()
            .all(|b| b.fingerprint != f.fingerprint().as_str())
    }) {
        if let Some(path) = f.file().filter(|path| paths.contains(path)) {
            let line = f
                .lines()
                .map(|l| format!(":{}", l.first))
                .unwrap_or_default();
            out.new
                .push(format!("{} at {}{line}", f.rule_id(), path.to_wire()));
        }
    }
    out
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

#[cfg(test)]
mod tests {
    //! Positions and line endings; the command is tested in `tests/it/apply.rs`.

    use super::*;

    fn patch(lines: std::ops::Range<usize>, text: &str) -> Patch {
        Patch {
            id: "F1".to_owned(),
            lines,
            text: text.to_owned(),
        }
    }

    fn after(before: &str, patches: Vec<Patch>) -> String {
        String::from_utf8(replaced(before.as_bytes(), patches)).unwrap()
    }

    /// Returns replacements of the first and the third line.
    fn both() -> Vec<Patch> {
        vec![patch(0..1, "1\n2\n3"), patch(2..3, "x")]
    }

    fn bytes_of(reviewed: &[&str]) -> Vec<Vec<u8>> {
        reviewed.iter().map(|l| l.as_bytes().to_vec()).collect()
    }

    fn at(text: &str, reviewed: &[&str], first: usize) -> Option<usize> {
        find(
            &lines(text.as_bytes()).collect::<Vec<_>>(),
            &bytes_of(reviewed),
            first,
        )
    }

    fn has(text: &str, reviewed: &[&str]) -> bool {
        super::has(text.as_bytes(), &bytes_of(reviewed))
    }

    #[test]
    fn lines_end_as_those_that_they_replace() {
        assert_eq!(
            after("a\nb\nc\n", vec![patch(1..2, "x\ny")]),
            "a\nx\ny\nc\n"
        );
        assert_eq!(
            after("a\r\nb\r\nc", vec![patch(1..2, "x\ny")]),
            "a\r\nx\r\ny\r\nc"
        );
        assert_eq!(after("a\nb", vec![patch(1..2, "x\ny")]), "a\nx\ny");
        assert_eq!(after("a\nb\nc\n", vec![patch(0..2, "")]), "c\n");
        assert_eq!(
            after("\u{feff}a\r\nb\r\n", vec![patch(0..1, "x")]),
            "\u{feff}x\r\nb\r\n"
        );
    }

    #[test]
    fn markers_of_every_size_are_a_conflict() {
        for line in [
            "<<<<<<< HEAD",
            ">>>>>>> topic",
            "<<<<<<<<<<<<< HEAD",
            ">>>>>>>>",
            "<<<<<<<",
        ] {
            assert!(
                has_conflict(format!("a\n{line}\r\nb\n").as_bytes()),
                "{line}"
            );
        }
        for line in [
            "=======",
            "<<<<<< a",
            ">>> x",
            " <<<<<<< a",
            "<<<<<<<a",
            "<<<<<>>> a",
            "",
        ] {
            assert!(
                !has_conflict(format!("a\n{line}\nb\n").as_bytes()),
                "{line}"
            );
        }
    }

    #[test]
    fn several_replacements_do_not_move_each_other() {
        assert_eq!(after("a\nb\nc\n", both()), "1\n2\n3\nb\nx\n");
        assert_eq!(
            after("a\nb\nc\n", both().into_iter().rev().collect()),
            "1\n2\n3\nb\nx\n"
        );
    }

    #[test]
    fn lines_are_found_where_they_were_or_in_one_other_place() {
        assert_eq!(at("a\nb\na\n", &["a"], 2), Some(2));
        assert_eq!(at("a\nb\na\n", &["a"], 1), None, "two places");
        assert_eq!(at("x\na\r\nb\n", &["a", "b"], 0), Some(1));
        assert_eq!(at("a\n", &["a", "b"], 0), None);
        assert_eq!(at("key = 1234\n", &["key = ****"], 0), Some(0), "masked");
        assert_eq!(at("key = 12345\n", &["key = ****"], 0), None);
        assert_eq!(at("", &["a"], 7), None);
    }

    #[test]
    fn reviewed_lines_are_whole_lines() {
        assert!(
            has("x\n\ta\r\nb\n", &["  a", "b"]) && has("", &[]) && has("key = 12\n", &["key = **"])
        );
        for text in ["a = 1 if n else 0\n", "b\na = 1\n", ""] {
            assert!(
                !has(text, &["a = 1", "b"]) && !has(text, &["a ="]),
                "{text}"
            );
        }
    }
}
