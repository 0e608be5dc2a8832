//! Writes the replacements of findings into the worktree.
//!
//! Lines are replaced only if they are unmodified since the review. All contents are computed
//! before the first file is written, so that an error leaves the worktree unmodified. The index is
//! not changed.

mod edits;
mod merge;
mod target;

pub use edits::{Edits, Rewrite};
pub use target::Target;

use super::named::select;
use super::recall;
use super::region::changes;
use super::reviewed::{self, MASK, ReviewedFiles, find, text_lines};
use crate::diff::{self, ObjectId, RepoPath};
use crate::error::{Error, Result};
use crate::finding::{Confidence, Finding, Origin};
use crate::review::Review;
use crate::untrusted;
use crate::wire;
use edits::FileEdit;
use std::collections::BTreeMap;
use std::path::PathBuf;
use target::{place, read};

/// Start of a text in UTF-8 that some editors write.
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

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

/// The findings to apply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FindingsToApply {
    /// IDs such as `F3`, or prefixes of fingerprints. Each has to apply.
    Named(Vec<String>),
    /// Every finding that counts, has medium or high confidence, is not disputed, and whose
    /// replacement applies.
    AllSafe,
}

/// The reason why a finding is not applied, and the remedy.
#[derive(Debug)]
struct Refusal {
    why: String,
    remedy: Remedy,
}

impl Refusal {
    /// Creates a refusal with its remedy.
    fn new(why: impl Into<String>, remedy: Remedy) -> Self {
        let why = why.into();
        Self { why, remedy }
    }
}

/// The remedy for a finding that is not applied.
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
        Self::new(why, Remedy::Review)
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
    let mut plan = ApplyPlan {
        target,
        reviewed,
        wanted,
        files: changes(reviewed.change).unwrap_or_default(),
        texts: BTreeMap::new(),
        patches: BTreeMap::new(),
        left_out: Vec::new(),
    };
    if let FindingsToApply::Named(names) = wanted {
        names
            .iter()
            .try_for_each(|name| select(reviewed.findings, name, reviewed.id).map(|_| ()))?;
    }
    let all = recall::findings(reviewed.findings, b"");
    for (found, finding) in reviewed.findings.iter().zip(&all) {
        if plan.is_wanted(found, finding)? {
            plan.add(found, finding)?;
        }
    }
    Ok(plan.edits())
}

/// The replacements of findings, while they are collected.
struct ApplyPlan<'a> {
    target: &'a Target,
    reviewed: &'a Reviewed<'a>,
    wanted: &'a FindingsToApply,
    /// The files of the stored change.
    files: ReviewedFiles,
    /// The current files of the worktree: place and content.
    texts: BTreeMap<RepoPath, (PathBuf, Vec<u8>)>,
    patches: BTreeMap<RepoPath, Vec<Patch>>,
    /// IDs of findings that were left out, with the reason.
    left_out: Vec<(String, String)>,
}

impl ApplyPlan<'_> {
    /// Returns true if a finding is to be applied.
    ///
    /// # Errors
    /// Usage: a name of a finding is unknown.
    fn is_wanted(&self, found: &wire::Finding, finding: &Finding) -> Result<bool> {
        let FindingsToApply::Named(names) = self.wanted else {
            return Ok(is_safe(finding));
        };
        for name in names {
            if select(self.reviewed.findings, name, self.reviewed.id)?.id == found.id {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Adds the replacement of a finding.
    ///
    /// # Errors
    /// Usage: it does not apply, and the finding was named.
    fn add(&mut self, found: &wire::Finding, finding: &Finding) -> Result<()> {
        let (path, patch) = match self.patch(found, finding) {
            Ok(done) => done,
            Err(why) => return self.refuse(found, why),
        };
        let own = self.patches.entry(path).or_default();
        match own.iter().find(|p| overlap(&p.lines, &patch.lines)) {
            Some(other) => {
                let why = format!("{} is about the same lines", other.id);
                self.refuse(found, why.into())
            }
            None => {
                own.push(patch);
                Ok(())
            }
        }
    }

    /// Finds the position of a replacement in the worktree.
    ///
    /// # Errors
    /// The reason why it cannot be applied.
    fn patch(
        &mut self,
        found: &wire::Finding,
        finding: &Finding,
    ) -> std::result::Result<(RepoPath, Patch), Refusal> {
        let text = replacement(finding)?;
        let (path, span) = finding
            .file()
            .zip(finding.lines())
            .ok_or("it has no lines")?;
        if !self.texts.contains_key(path) {
            let place = place(&self.target.top, path)?;
            let bytes = read(&place)?;
            self.texts.insert(path.clone(), (place, bytes));
        }
        let (place, bytes) = &self.texts[path];
        self.target
            .refuse_busy(path, place, bytes)
            .map_err(|why| Refusal::new(why, Remedy::Settle))?;
        let reviewed = reviewed::lines(&self.files, found, finding)
            .ok_or("its lines are not in the stored change")?;
        let lines: Vec<&[u8]> = text_lines(bytes).collect();
        let first = span.first.get() as usize - 1;
        let Some(at) = find(&lines, &reviewed, first) else {
            return Err(without_lines(path, bytes, &reviewed, first));
        };
        let end = at + reviewed.len();
        refuse_masked(&lines[at..end], &reviewed, text)?;
        let patch = Patch {
            id: found.id.clone(),
            lines: at..end,
            text: text.to_owned(),
        };
        Ok((path.clone(), patch))
    }

    /// Records that a finding is left out, or fails if it was named.
    fn refuse(&mut self, found: &wire::Finding, refusal: Refusal) -> Result<()> {
        if *self.wanted == FindingsToApply::AllSafe {
            self.left_out.push((found.id.clone(), refusal.why));
            return Ok(());
        }
        Err(not_applied(self.reviewed, found, refusal))
    }

    /// Returns the new contents of the files.
    fn edits(mut self) -> Edits {
        let mut out = Edits {
            left_out: self.left_out,
            ..Edits::default()
        };
        for (path, own) in self.patches {
            let Some((place, before)) = self.texts.remove(&path) else {
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
        out
    }
}

/// Returns the error for a named finding that is not applied.
fn not_applied(
    reviewed: &Reviewed<'_>,
    found: &wire::Finding,
    Refusal { why, remedy }: Refusal,
) -> Error {
    let id = &found.id;
    let error = Error::usage(format!("{id} is not applied: {why}"));
    let elsewhere = reviewed
        .elsewhere(Some(found))
        .filter(|_| remedy == Remedy::Review);
    if let Some(commit) = elsewhere {
        let how = format!("the reviewed commit is not checked out: git checkout {commit}");
        return error
            .hint_person(format!(
                "{how} && {} apply {id} --session {}",
                crate::NAME,
                reviewed.id
            ))
            .hint_agent(format!("{how}; then call apply_finding again"));
    }
    match remedy {
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
    }
}

/// Returns true if a finding is applied without being named.
fn is_safe(f: &Finding) -> bool {
    f.counts()
        && f.disputed.is_none()
        && f.confidence() >= Confidence::Medium
        && f.replacement().is_some()
}

/// Returns the replacement of a finding.
///
/// # Errors
/// The reason why it cannot be applied.
fn replacement(finding: &Finding) -> std::result::Result<&str, Refusal> {
    let Some(text) = finding.replacement() else {
        return Err(Refusal::new("it has no replacement", Remedy::Fix));
    };
    match untrusted::has_active(text) {
        true => Err(Refusal::new(
            "its replacement has hidden characters",
            Remedy::Edit,
        )),
        false => Ok(text),
    }
}

/// Returns the reason why a file does not have the reviewed lines. `first` is the index of the
/// first one.
fn without_lines(path: &RepoPath, bytes: &[u8], reviewed: &[Vec<u8>], first: usize) -> Refusal {
    let shown = path.to_wire();
    if is_converted(path, bytes, reviewed, first) {
        let why =
            format!("{shown} is not in UTF-8, and a replacement is written into UTF-8 files only");
        return Refusal::new(why, Remedy::Edit);
    }
    let number = first + 1;
    format!("its lines at {shown}:{number} have changed since the review").into()
}

/// Refuses a replacement with a masked secret for lines that have one: it would write the mask.
fn refuse_masked(
    lines: &[&[u8]],
    reviewed: &[Vec<u8>],
    text: &str,
) -> std::result::Result<(), Refusal> {
    let has_secret = lines.iter().zip(reviewed).any(|(line, one)| line != one);
    if has_secret && text.as_bytes().windows(2).any(|pair| pair == [MASK, MASK]) {
        let why = "its lines have a secret, which its replacement has masked";
        return Err(Refusal::new(why, Remedy::Edit));
    }
    Ok(())
}

/// Returns true if a file contains the reviewed lines only after conversion to UTF-8.
fn is_converted(path: &RepoPath, bytes: &[u8], reviewed: &[Vec<u8>], first: usize) -> bool {
    let text = diff::code::text_of(path, bytes.to_vec()).filter(|text| text != bytes);
    text.is_some_and(|text| find(&text_lines(&text).collect::<Vec<_>>(), reviewed, first).is_some())
}

/// Returns true if two ranges of lines share a line.
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
    fn several_replacements_do_not_move_each_other() {
        assert_eq!(after("a\nb\nc\n", both()), "1\n2\n3\nb\nx\n");
        assert_eq!(
            after("a\nb\nc\n", both().into_iter().rev().collect()),
            "1\n2\n3\nb\nx\n"
        );
    }
}
