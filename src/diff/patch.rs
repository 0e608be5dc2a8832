//! Patches of any origin: git, mail, GNU diff, Subversion, Mercurial.
//!
//! Text between the changed files is skipped, as `git apply` does. A changed file must be complete:
//! counts that do not match, hunks that overlap, and missing content are usage errors with the line
//! in the patch, because a review of half a patch would be worthless.
//!
//! Names that are absolute, contain `..`, or lie in `.git` are errors too: `git apply` rejects
//! them, and a report would name a file that the patch does not mean. Needs about twice the memory
//! of the patch.

mod binary;
mod head;
mod hunks;
mod names;

use super::content;
use super::{Body, Entry, FileChange, FileMode, ObjectId};
use crate::error::{Error, Result};
use head::GitHead;
use hunks::Hunks;
use names::{pair_of_git_line, pair_of_names};

/// Parses a patch.
///
/// An empty patch has no changes. Text without any part of a patch, a combined diff and a context
/// diff are usage errors.
pub fn parse(patch: &[u8]) -> Result<Vec<FileChange>> {
    read(patch, Heads::Refused)
}

/// Parses a patch that this program wrote, in which some files have only a header, without their
/// lines.
///
/// # Errors
///
/// Same as [`parse`], except for missing content.
pub fn parse_kept(patch: &[u8]) -> Result<Vec<FileChange>> {
    read(patch, Heads::Taken)
}

/// The handling of a file whose content differs and is not in the patch.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Heads {
    Refused,
    Taken,
}

fn read(patch: &[u8], heads: Heads) -> Result<Vec<FileChange>> {
    let decoded;
    let patch = match content::marked(patch) {
        // PowerShell writes `git diff > x.patch` in UTF-16.
        Some(encoding) => {
            decoded = content::decode(patch.to_vec(), encoding);
            &decoded[..]
        }
        None => patch.strip_prefix(b"\xef\xbb\xbf").unwrap_or(patch),
    };
    let mut reader = PatchReader {
        rest: patch,
        number: 1,
        budget: binary::BUDGET,
        heads,
    };
    let mut changes = Vec::new();
    while let Some(line) = reader.peek() {
        match reader.next_file(line)? {
            Some(change) => changes.push(change),
            None => drop(reader.next()),
        }
    }
    if changes.is_empty() && !may_be_without_changes(patch) {
        return Err(Error::usage("not a patch: no changed file found")
            .hint_person("git diff | claude-reviewer review patch -"));
    }
    Ok(changes)
}

/// Returns true if a text without changed files can be git's output for no changes: empty, or only
/// commits.
fn may_be_without_changes(patch: &[u8]) -> bool {
    patch.trim_ascii().is_empty()
        || patch
            .strip_prefix(b"commit ")
            .or_else(|| patch.strip_prefix(b"From "))
            .is_some_and(|rest| rest.len() >= 40 && rest[..40].iter().all(u8::is_ascii_hexdigit))
}

/// The lines of a patch that are not parsed yet.
struct PatchReader<'a> {
    rest: &'a [u8],
    /// The number of the next line, for errors.
    number: usize,
    /// Bytes of binary contents that may still be decoded.
    budget: usize,
    heads: Heads,
}

impl<'a> PatchReader<'a> {
    /// Returns the next line with its line end.
    fn peek(&self) -> Option<&'a [u8]> {
        (!self.rest.is_empty()).then(|| &self.rest[..super::line_len(self.rest)])
    }

    /// Returns the line `n` lines further down.
    fn peek_at(&self, n: usize) -> Option<&'a [u8]> {
        let mut rest = self.rest;
        for _ in 0..n {
            rest = &rest[super::line_len(rest)..];
        }
        (!rest.is_empty()).then(|| &rest[..super::line_len(rest)])
    }

    /// Returns true if the line `n` lines further down starts with a mark.
    fn line_starts(&self, n: usize, mark: &[u8]) -> bool {
        self.peek_at(n).is_some_and(|line| line.starts_with(mark))
    }

    fn next(&mut self) -> Option<&'a [u8]> {
        let line = self.peek()?;
        self.rest = &self.rest[line.len()..];
        self.number += 1;
        Some(line)
    }

    /// Returns a usage error about the next line.
    fn wrong(&self, what: impl std::fmt::Display) -> Error {
        wrong(self.number, what)
    }

    /// Parses a changed file if one starts at the next line, which is `line`.
    fn next_file(&mut self, line: &'a [u8]) -> Result<Option<FileChange>> {
        match line.first() {
            Some(b'd') if line.starts_with(b"diff --git ") => self.git_file().map(Some),
            Some(b'd')
                if line.starts_with(b"diff --cc ") || line.starts_with(b"diff --combined ") =>
            {
                Err(combined(self.number))
            }
            Some(b'-')
                if line.starts_with(b"--- ")
                    && self.line_starts(1, b"+++ ")
                    && self.line_starts(2, b"@@ -") =>
            {
                self.plain_file().map(Some)
            }
            Some(b'@') if line.starts_with(b"@@@ -") => Err(combined(self.number)),
            Some(b'@') if hunks::Header::parse(line).is_some() => {
                Err(self.wrong("hunk without file names before it"))
            }
            Some(b'*')
                if line.starts_with(b"*** ")
                    && self.line_starts(1, b"--- ")
                    && self.line_starts(2, b"***************") =>
            {
                Err(self.wrong("unsupported context diff").hint_person(
                    "make a unified diff: diff -u OLD NEW | claude-reviewer review patch -",
                ))
            }
            Some(b'B') => self.plain_binary(line).transpose(),
            Some(b'I') if line.starts_with(b"Index: ") => self.subversion_binary(line).transpose(),
            Some(b'S') if line.starts_with(b"Submodule ") => self.submodule_log(line).transpose(),
            Some(b'C') => match line
                .to_ascii_lowercase()
                .strip_prefix(b"content-transfer-encoding:")
            {
                Some(how) if matches!(how.trim_ascii(), b"quoted-printable" | b"base64") => {
                    Err(self
                        .wrong("cannot read the patch in an encoded mail")
                        .hint_person(
                            "git mailinfo msg patch < MAIL && claude-reviewer review patch patch",
                        ))
                }
                _ => Ok(None),
            },
            Some(0x1b) if coloured(line) => Err(self
                .wrong("the patch contains colour codes")
                .hint_person("git diff --no-color | claude-reviewer review patch -")),
            _ => Ok(None),
        }
    }

    /// Parses a file of a git patch, from its `diff --git` line on.
    fn git_file(&mut self) -> Result<FileChange> {
        let number = self.number;
        let Some(first) = self.next() else {
            return Err(self.wrong("missing file header"));
        };
        let crlf = first.ends_with(b"\r\n");
        let names = trim(&first[b"diff --git ".len()..]);
        let mut head = GitHead::default();
        while let Some(line) = self.peek() {
            if !head.take(trim(line)).map_err(|e| self.wrong(e))? {
                break;
            }
            self.next();
        }
        let line = self.peek().unwrap_or_default();
        let mut labels = None;
        let mut content = PatchContent::Nothing;
        if line.starts_with(b"--- ") && self.line_starts(1, b"+++ ") {
            labels = self.labels()?;
            content = PatchContent::Lines(Hunks::read(self, crlf)?);
        } else if is_binary_line(trim(line)) {
            self.next();
            content = PatchContent::Binary(binary::Contents::default());
        } else if trim(line) == b"GIT binary patch" {
            content = PatchContent::Binary(binary::read(self)?);
        }
        let pair = head
            .names()
            .or_else(|| pair_of_git_line(names))
            .or_else(|| labels.map(|(old, new)| pair_of_names(old, new)))
            .ok_or_else(|| wrong(number, "cannot separate the two file names"))?;
        let added = head.added || labels.is_some_and(|(old, _)| names::is_null(old));
        let deleted = head.deleted || labels.is_some_and(|(_, new)| names::is_null(new));
        let entry = head
            .entry(&pair, added, deleted)
            .map_err(|e| invalid_header(number, e))?;
        let is_whole = self.heads == Heads::Taken || !matches!(content, PatchContent::Nothing);
        if !is_whole && head.content_is_missing(&entry) {
            return Err(wrong(number, "the patch lacks the content of the file"));
        }
        finish(entry, content).map_err(|e| wrong(number, e))
    }

    /// Parses a file of a patch without git's header, from its `---` line on.
    fn plain_file(&mut self) -> Result<FileChange> {
        let number = self.number;
        let crlf = self.peek().is_some_and(|l| l.ends_with(b"\r\n"));
        let stamps =
            [self.peek(), self.peek_at(1)].map(|l| names::is_nothing(trim(l.unwrap_or_default())));
        let Some((old, new)) = self.labels()? else {
            return Err(self.wrong("missing file header"));
        };
        let hunks = Hunks::read(self, crlf)?;
        let pair = pair_of_names(old, new);
        let added = stamps[0] && hunks.new_side_only();
        let deleted = stamps[1] && hunks.old_side_only();
        let entry = GitHead::default()
            .entry(&pair, added, deleted)
            .map_err(|e| invalid_header(number, e))?;
        finish(entry, PatchContent::Lines(hunks)).map_err(|e| wrong(number, e))
    }

    /// Parses the `---` and `+++` lines.
    fn labels(&mut self) -> Result<Option<(&'a [u8], &'a [u8])>> {
        Ok(self.label(b"--- ")?.zip(self.label(b"+++ ")?))
    }

    /// Parses a line that consists of a mark and a name; returns `None` if it has another mark.
    fn label(&mut self, mark: &[u8]) -> Result<Option<&'a [u8]>> {
        let number = self.number;
        let Some(label) = self.next().and_then(|l| l.strip_prefix(mark)).map(trim) else {
            return Ok(None);
        };
        names::refuse_label(label).map_err(|e| invalid_header(number, e))?;
        Ok(Some(label))
    }

    /// Parses `Binary files A and B differ`, as GNU diff prints it for a tree.
    fn plain_binary(&mut self, line: &[u8]) -> Option<Result<FileChange>> {
        let names = trim(line)
            .strip_prefix(b"Binary files ")?
            .strip_suffix(b" differ")?;
        let at = memchr::memmem::find(names, b" and ")?;
        let pair = pair_of_names(&names[..at], &names[at + b" and ".len()..]);
        let number = self.number;
        self.next();
        let labels = [&names[..at], &names[at + b" and ".len()..]].map(names::refuse_label);
        let entry = labels.into_iter().collect::<std::result::Result<(), _>>();
        let entry = entry
            .and_then(|()| GitHead::default().entry(&pair, names::is_null(&names[..at]), false));
        Some(without_content(number, entry))
    }

    /// Parses the lines that Subversion prints for a file that it treats as binary.
    fn subversion_binary(&mut self, line: &[u8]) -> Option<Result<FileChange>> {
        let path = trim(line).strip_prefix(b"Index: ")?;
        if !self.peek_at(2)?.starts_with(b"Cannot display: ") {
            return None;
        }
        let number = self.number;
        self.next();
        Some(without_content(
            number,
            GitHead::default().entry(&pair_of_names(path, path), false, false),
        ))
    }

    /// Parses the heading of `git diff --submodule=log`: `Submodule PATH OLD..NEW:`.
    fn submodule_log(&mut self, line: &[u8]) -> Option<Result<FileChange>> {
        let mut words = trim(line)
            .strip_prefix(b"Submodule ")?
            .splitn(2, |b| *b == b' ');
        let (path, range) = (words.next()?, words.next()?);
        let range = range.split(|b| matches!(b, b':' | b' ')).next()?;
        let at = memchr::memmem::find(range, b"..")?;
        let dots = range[at..].iter().take_while(|b| **b == b'.').count();
        let ids = [&range[..at], &range[at + dots..]];
        if !ids
            .iter()
            .all(|id| id.len() >= 7 && id.iter().all(u8::is_ascii_hexdigit))
        {
            return None;
        }
        let entry = GitHead::of_submodule().entry(&pair_of_names(path, path), false, false);
        let number = self.number;
        self.next();
        let change = entry.map(|entry| FileChange {
            entry,
            body: Body::Submodule { dirty: false },
        });
        Some(change.map_err(|e| invalid_header(number, e)))
    }
}

/// The content of a file in a patch.
enum PatchContent {
    Nothing,
    Lines(Hunks),
    Binary(binary::Contents),
}

/// Returns the change of a binary file without content in the patch.
fn without_content(
    number: usize,
    entry: std::result::Result<Entry, HeaderFault>,
) -> Result<FileChange> {
    entry
        .and_then(|entry| {
            finish(entry, PatchContent::Binary(binary::Contents::default()))
                .map_err(HeaderFault::Other)
        })
        .map_err(|e| invalid_header(number, e))
}

/// Returns the error for a line of the patch.
fn wrong(number: usize, what: impl std::fmt::Display) -> Error {
    Error::usage(format!("line {number} of the patch: {what}"))
}

/// Reason why a file header is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HeaderFault {
    /// A problem with a file name, which another command can avoid.
    Name(&'static str),
    Other(&'static str),
}

impl From<&'static str> for HeaderFault {
    fn from(what: &'static str) -> Self {
        Self::Other(what)
    }
}

/// Returns the error for a file header.
fn invalid_header(number: usize, fault: HeaderFault) -> Error {
    match fault {
        HeaderFault::Other(what) => wrong(number, what),
        HeaderFault::Name(what) => wrong(number, what).hint(
            "make the patch with names relative to the top of the repository: git diff, or in a folder above both: \
             diff -ru -x .git OLD NEW",
        ),
    }
}

fn combined(number: usize) -> Error {
    wrong(number, "unsupported combined diff of a merge")
        .hint_person("git show -m --first-parent MERGE | claude-reviewer review patch -")
}

/// Returns true if a line belongs to a coloured patch.
fn coloured(line: &[u8]) -> bool {
    let text = line.split(|b| *b == b'm').nth(1).unwrap_or_default();
    [&b"diff --git"[..], b"--- ", b"+++ ", b"@@ -"]
        .iter()
        .any(|start| text.starts_with(start))
}

/// Removes the line end, and a carriage return before it.
fn trim(line: &[u8]) -> &[u8] {
    super::trim_line_end(line)
}

/// Returns true if a line of a git patch marks a binary file.
fn is_binary_line(line: &[u8]) -> bool {
    (line.starts_with(b"Binary files ") || line.starts_with(b"Files "))
        && line.ends_with(b" differ")
}

/// Combines a file's names and content.
fn finish(entry: Entry, content: PatchContent) -> std::result::Result<FileChange, &'static str> {
    let submodule = entry.sides().any(|s| s.mode == FileMode::Submodule);
    let body = match content {
        PatchContent::Lines(hunks) if submodule => return Ok(submodule_change(entry, &hunks)),
        PatchContent::Lines(hunks) if entry.old.is_none() && !hunks.new_side_only() => {
            return Err("new file with old lines");
        }
        PatchContent::Lines(hunks) if entry.new.is_none() && !hunks.old_side_only() => {
            return Err("deleted file with new lines");
        }
        PatchContent::Lines(hunks) => {
            let mut change = hunks.into_change(entry.old.is_some(), entry.new.is_some());
            if entry.new.is_some() {
                change.undecoded = content::flaw(&change.new.bytes, entry.path().as_bytes());
            }
            Body::Text(change)
        }
        PatchContent::Binary(contents) => contents.into_body(&entry),
        PatchContent::Nothing if submodule => Body::Submodule { dirty: false },
        PatchContent::Nothing => Body::Same,
    };
    Ok(FileChange { entry, body })
}

/// Parses the commits of a submodule from its two lines.
fn submodule_change(mut entry: Entry, hunks: &Hunks) -> FileChange {
    let mut dirty = false;
    for (side, text) in [
        (&mut entry.old, hunks.old_bytes()),
        (&mut entry.new, hunks.new_bytes()),
    ] {
        let Some(side) = side else { continue };
        let Some(commit) = text.strip_prefix(b"Subproject commit ").map(trim) else {
            continue;
        };
        let clean = commit.strip_suffix(b"-dirty").unwrap_or(commit);
        dirty = clean.len() < commit.len();
        side.id = std::str::from_utf8(clean)
            .ok()
            .and_then(ObjectId::from_hex)
            .or(side.id);
    }
    FileChange {
        entry,
        body: Body::Submodule { dirty },
    }
}

#[cfg(test)]
mod tests;
