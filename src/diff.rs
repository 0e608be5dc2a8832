//! The change model: the differing lines of files, with the same line numbers as git.
//!
//! Pure: no repository, no files, no rules. `git` and the patch parser create these values,
//! everything else reads them. Line numbers are 1-based; only `\n` ends a line, as in git.

use crate::hex;
use std::fmt;
use std::num::NonZeroU32;
use std::ops::Range;
use std::sync::OnceLock;

/// A path inside the reviewed tree: bytes, `/`-separated, relative, never empty.
///
/// Git paths need not be UTF-8, so this is not a string.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RepoPath(Box<[u8]>);

impl RepoPath {
    /// Creates a path from git's bytes.
    pub fn new(bytes: impl Into<Vec<u8>>) -> Self {
        Self(bytes.into().into_boxed_slice())
    }

    /// Returns the raw bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Returns the last component.
    pub fn file_name(&self) -> &[u8] {
        match memchr::memrchr(b'/', &self.0) {
            Some(i) => &self.0[i + 1..],
            None => &self.0,
        }
    }

    /// Returns what follows the last dot of the file name; `None` for `Makefile` and `.env`.
    pub fn extension(&self) -> Option<&[u8]> {
        let name = self.file_name();
        match memchr::memrchr(b'.', name) {
            Some(i) if i > 0 => Some(&name[i + 1..]),
            _ => None,
        }
    }

    /// Returns the path as it appears in JSON and SARIF: valid UTF-8 as it is, anything else in
    /// git's C-quoted form (`"caf\351.txt"`), so that different paths stay distinguishable.
    pub fn to_wire(&self) -> String {
        match std::str::from_utf8(&self.0) {
            Ok(s) => s.to_owned(),
            Err(_) => String::from_utf8_lossy(&unified::quote(b"", &self.0)).into_owned(),
        }
    }
}

impl fmt::Debug for RepoPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", String::from_utf8_lossy(&self.0))
    }
}

impl From<&str> for RepoPath {
    fn from(s: &str) -> Self {
        Self::new(s.as_bytes())
    }
}

/// A 1-based line number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LineNo(NonZeroU32);

impl LineNo {
    /// The first line.
    pub const FIRST: Self = Self(NonZeroU32::MIN);

    /// Creates a line number; `None` for 0.
    pub fn new(n: u32) -> Option<Self> {
        NonZeroU32::new(n).map(Self)
    }

    /// Returns the 1-based number.
    pub fn get(self) -> u32 {
        self.0.get()
    }

    /// Returns the number `n` lines further down; saturates.
    #[must_use]
    pub fn plus(self, n: u32) -> Self {
        Self(self.0.saturating_add(n))
    }
}

impl fmt::Display for LineNo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The name of a git object, SHA-1 (20 bytes) or SHA-256 (32 bytes).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectId {
    len: u8,
    bytes: [u8; 32],
}

impl ObjectId {
    /// Creates an ID from 20 or 32 raw bytes.
    pub fn from_raw(raw: &[u8]) -> Option<Self> {
        let mut bytes = [0; 32];
        match raw.len() {
            20 | 32 => {
                bytes[..raw.len()].copy_from_slice(raw);
                Some(Self {
                    len: raw.len() as u8,
                    bytes,
                })
            }
            _ => None,
        }
    }

    /// Parses 40 or 64 hexadecimal digits.
    pub fn from_hex(digits: &str) -> Option<Self> {
        Self::from_raw(&hex::decode(digits)?)
    }

    /// Returns the raw bytes, 20 or 32.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }

    /// Returns the null id of the same length.
    #[must_use]
    pub fn null_like(self) -> Self {
        Self {
            len: self.len,
            bytes: [0; 32],
        }
    }

    /// Returns true if all bytes are zero, which git uses for a missing object.
    pub fn is_null(&self) -> bool {
        self.as_bytes().iter().all(|b| *b == 0)
    }

    /// Returns the first 12 digits, for display.
    pub fn short(&self) -> String {
        self.to_string()[..12].to_owned()
    }
}

impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.as_bytes()))
    }
}

impl fmt::Debug for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The type of an entry, from git's tree modes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FileMode {
    /// 100644.
    Regular,
    /// 100755.
    Executable,
    /// 120000: the content is the target.
    Symlink,
    /// 160000: the id is a commit of another repository.
    Submodule,
}

impl FileMode {
    /// Returns the octal digits that git prints.
    pub fn octal(self) -> &'static str {
        match self {
            Self::Regular => "100644",
            Self::Executable => "100755",
            Self::Symlink => "120000",
            Self::Submodule => "160000",
        }
    }
}

/// One side of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Side {
    pub path: RepoPath,
    pub mode: FileMode,
    /// ID of the blob, or of the commit of a submodule. `None` if the source does not have it: a
    /// patch without an index line, or a worktree file that is not read yet.
    pub id: Option<ObjectId>,
}

/// How a path changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeKind {
    Added,
    Deleted,
    /// The content or the mode. A change of type is a `Deleted` followed by an `Added`, as git
    /// prints it.
    Modified,
    /// Similarity in percent, 50 to 100.
    Renamed {
        similarity: u8,
    },
    Copied {
        similarity: u8,
    },
}

/// A changed path without its content, which makes listing cheap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub kind: ChangeKind,
    pub old: Option<Side>,
    pub new: Option<Side>,
}

impl Entry {
    /// Returns the path on the new side, or the old one of a deletion.
    pub fn path(&self) -> &RepoPath {
        match (&self.new, &self.old) {
            (Some(s), _) | (None, Some(s)) => &s.path,
            (None, None) => unreachable!("an entry has a side"),
        }
    }

    /// Returns the sides that exist, the old one first.
    pub fn sides(&self) -> impl Iterator<Item = &Side> {
        self.old.iter().chain(&self.new)
    }
}

/// A changed path with its content.
#[derive(Clone, Debug)]
pub struct FileChange {
    pub entry: Entry,
    pub body: Body,
}

impl FileChange {
    /// Returns the path on the new side, or the old one of a deletion.
    pub fn path(&self) -> &RepoPath {
        self.entry.path()
    }

    /// Returns the text change; `None` for other kinds of content.
    pub fn text(&self) -> Option<&TextChange> {
        match &self.body {
            Body::Text(t) => Some(t),
            _ => None,
        }
    }
}

/// The content of a changed path.
#[derive(Clone, Debug)]
pub enum Body {
    /// Only names or modes changed, or an empty file was added or deleted.
    Same,
    Text(TextChange),
    Binary(BinaryChange),
    Submodule {
        /// The checked-out submodule is modified (worktree sources only).
        dirty: bool,
    },
}

/// A change of binary content.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BinaryChange {
    /// Sizes in bytes; `None` if the source does not have them (a patch), or if the side does not
    /// exist.
    pub old_size: Option<u64>,
    pub new_size: Option<u64>,
    /// Content of both sides; empty if the source does not have it.
    pub(in crate::diff) old: Vec<u8>,
    pub(in crate::diff) new: Vec<u8>,
    /// Reason why the content after a checkout is unknown.
    pub undecoded: Option<Undecoded>,
}

impl BinaryChange {
    /// Returns the content of the old side; empty if it is unknown.
    pub fn old_bytes(&self) -> &[u8] {
        &self.old
    }

    /// Returns the content of the new side; empty if it is unknown.
    pub fn new_bytes(&self) -> &[u8] {
        &self.new
    }

    /// Returns the first bytes of the new side, for recognizing its format.
    pub fn head(&self) -> &[u8] {
        const HEAD: usize = 512;
        &self.new[..self.new.len().min(HEAD)]
    }

    /// Returns true if the source names the file without its content: a patch made without
    /// `--binary`.
    pub fn is_withheld(&self) -> bool {
        self.old_size.is_none() && self.new_size.is_none() && self.new.is_empty()
    }
}

/// The encoding that the new side was decoded from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// UTF-8, or bytes that are not decoded.
    Bytes,
    Utf16Le,
    Utf16Be,
    Utf32Le,
    Utf32Be,
}

/// The reason why git, with the attributes of the change, would not show this text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Hidden {
    /// A NUL byte, which makes git treat the file as binary.
    Nul,
    /// UTF-16 or UTF-32, which git treats as binary too.
    Utf16,
    /// `-diff` or `binary` in the attributes.
    Attribute,
    /// Git treats only the old side as binary: a program that became a pointer file, or a file that
    /// lost its NUL. The new lines have no such problem.
    OldSide,
}

/// A change of text.
#[derive(Clone, Debug)]
pub struct TextChange {
    pub old: Text,
    pub new: Text,
    pub hunks: Vec<Hunk>,
    pub encoding: Encoding,
    pub hidden: Option<Hidden>,
    /// Reason why a part of the new side could not be decoded. The rules read its raw bytes.
    pub undecoded: Option<Undecoded>,
    /// The same change as other programs decode it; see [`TextChange::further_readings`].
    pub(in crate::diff) readings: Vec<TextChange>,
}

/// Reason why a file could not be decoded completely.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Undecoded {
    /// The file name is that of a text format, but the bytes are not text.
    Bytes,
    /// The file declares an encoding that is not a superset of ASCII.
    Declared(String),
    /// The attributes name an encoding for the checkout that is unsupported.
    Checkout(String),
}

impl fmt::Display for Undecoded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes => {
                f.write_str("the name is that of a text format, but parts of the file cannot be decoded as text")
            }
            Self::Declared(name) => write!(f, "the file declares the unsupported encoding {name}"),
            Self::Checkout(name) => {
                write!(f, "a checkout writes the file in the unsupported encoding {name} (working-tree-encoding)")
            }
        }
    }
}

/// The text of one side: the whole file, or the parts in a patch.
#[derive(Clone, Debug, Default)]
pub struct Text {
    pub(in crate::diff) bytes: Vec<u8>,
    /// Runs of consecutive lines, ordered by line and by byte. A whole file is one run that starts
    /// at line 1.
    pub(in crate::diff) runs: Vec<TextRun>,
    /// The text is the whole file.
    pub(in crate::diff) complete: bool,
    /// Start of every [`STRIDE`]th line of each run; computed on first use.
    pub(in crate::diff) index: OnceLock<Box<[Vec<usize>]>>,
    /// Byte ranges of secrets; searched when a part is first shown. See [`Text::masked_part`].
    pub(in crate::diff) hidden: OnceLock<Box<[Range<usize>]>>,
    /// Present in a reading with joined lines. Boxed, because few texts have it.
    pub(in crate::diff) joints: Option<Box<reading::Joints>>,
}

/// Lines between two entries of a text's index.
const STRIDE: usize = 64;

/// Consecutive lines of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::diff) struct TextRun {
    /// 1-based number of the first line.
    pub(in crate::diff) first: u32,
    pub(in crate::diff) bytes: Range<usize>,
}

/// A group of edits with the unchanged lines around them, as in a unified diff.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hunk {
    pub old: LineRange,
    pub new: LineRange,
    /// The edits, in order; they do not touch each other.
    pub edits: Vec<LineEdit>,
    /// The text after the second `@@`, if the source has one.
    pub section: Vec<u8>,
}

/// A position at which lines were replaced, added or removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineEdit {
    /// Removed lines; may be empty.
    pub old: LineRange,
    /// Added lines; may be empty.
    pub new: LineRange,
}

/// A range of lines of one text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineRange {
    /// 1-based number of the first line. For an empty range, the number of the line after it.
    pub start: u32,
    pub count: u32,
    /// Position of the lines in [`Text::bytes`].
    pub(in crate::diff) bytes: Range<usize>,
}

/// Consecutive lines with the number of the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineBlock<'a> {
    pub first: LineNo,
    /// The lines with their line ends; the last one may lack it.
    pub text: &'a [u8],
}

/// The role of a line in a hunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineKind {
    Context,
    Added,
    Removed,
}

/// A line of a hunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HunkLine<'a> {
    pub kind: LineKind,
    pub old: Option<LineNo>,
    pub new: Option<LineNo>,
    /// The bytes with the line end; the last line of a file may lack it.
    pub text: &'a [u8],
}

impl Text {
    /// Returns the number of known bytes.
    pub fn size(&self) -> usize {
        self.bytes.len()
    }

    /// Creates the text of a whole file.
    pub(in crate::diff) fn of_file(bytes: Vec<u8>) -> Self {
        let runs = vec![TextRun {
            first: 1,
            bytes: 0..bytes.len(),
        }];
        Self {
            bytes,
            runs,
            complete: true,
            ..Self::default()
        }
    }

    /// Returns the known bytes: the whole file, or the parts in a patch.
    pub fn known(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the bytes if the whole file is known.
    pub fn whole(&self) -> Option<&[u8]> {
        self.complete.then_some(&self.bytes[..])
    }

    /// Returns the bytes of a line without its line end; `None` if the line is unknown.
    pub fn line(&self, n: LineNo) -> Option<&[u8]> {
        let run = self
            .runs
            .partition_point(|r| r.first <= n.get())
            .checked_sub(1)?;
        let ahead = (n.get() - self.runs[run].first) as usize;
        let start = *self.strides().get(run)?.get(ahead / STRIDE)?;
        let mut rest = &self.bytes[start..self.runs[run].bytes.end];
        for _ in 0..ahead % STRIDE {
            rest = &rest[line_len(rest)..];
        }
        (!rest.is_empty()).then(|| trim_line_end(&rest[..line_len(rest)]))
    }

    /// Returns the start of every [`STRIDE`]th line of each run.
    fn strides(&self) -> &[Vec<usize>] {
        self.index
            .get_or_init(|| self.runs.iter().map(|r| self.every_stride(r)).collect())
    }

    fn every_stride(&self, run: &TextRun) -> Vec<usize> {
        let ends = memchr::memchr_iter(b'\n', &self.bytes[run.bytes.clone()]);
        let starts = ends.map(|i| run.bytes.start + i + 1);
        std::iter::once(run.bytes.start)
            .chain(starts.skip(STRIDE - 1).step_by(STRIDE))
            .collect()
    }

    /// Returns the number of the line that contains a byte of [`Self::known`].
    pub fn line_number(&self, at: usize) -> Option<LineNo> {
        let of = self
            .runs
            .partition_point(|r| r.bytes.start <= at)
            .checked_sub(1)?;
        let run = &self.runs[of];
        // Only the lines since the last entry of the index are counted: a file can have a finding on
        // each line.
        let at = at.min(run.bytes.end);
        let known = self.strides().get(of)?;
        let entry = known.partition_point(|start| *start <= at).checked_sub(1)?;
        let before = self.bytes.get(known[entry]..at)?;
        let ends = entry * STRIDE + memchr::memchr_iter(b'\n', before).count();
        let ends = u32::try_from(ends).ok()?;
        LineNo::new(run.first).map(|first| first.plus(ends))
    }

    /// Returns the bytes of a range of lines.
    pub fn slice(&self, lines: &LineRange) -> &[u8] {
        &self.bytes[lines.bytes.clone()]
    }

    /// Returns the continuous part of the text that contains `inner`, and the offset of `inner` in
    /// it, so that a caller can read the lines around it.
    ///
    /// `inner` must be a slice of this text; otherwise the result is `None`.
    pub fn around<'a>(&'a self, inner: &'a [u8]) -> Option<(&'a [u8], usize)> {
        let at = (inner.as_ptr() as usize).checked_sub(self.bytes.as_ptr() as usize)?;
        let run = &self.runs[self
            .runs
            .partition_point(|r| r.bytes.start <= at)
            .checked_sub(1)?];
        let end = at.checked_add(inner.len())?;
        (end <= run.bytes.end).then(|| (&self.bytes[run.bytes.clone()], at - run.bytes.start))
    }
}

impl LineRange {
    /// Returns the number of bytes of the lines.
    pub fn size(&self) -> usize {
        self.bytes.len()
    }

    /// Returns the 0-based range of the lines.
    fn indexes(&self) -> Range<u32> {
        self.start - 1..self.start - 1 + self.count
    }
}

impl Hunk {
    fn reversed(&self) -> Self {
        let edits = self
            .edits
            .iter()
            .map(|edit| LineEdit {
                old: edit.new.clone(),
                new: edit.old.clone(),
            })
            .collect();
        Self {
            old: self.new.clone(),
            new: self.old.clone(),
            edits,
            section: self.section.clone(),
        }
    }
}

impl TextChange {
    /// Returns the runs of consecutive added lines, from top to bottom.
    pub fn added(&self) -> impl Iterator<Item = LineBlock<'_>> {
        self.blocks(|e| &e.new, &self.new)
    }

    /// Returns the runs of consecutive removed lines, from top to bottom, numbered on the old side.
    pub fn removed(&self) -> impl Iterator<Item = LineBlock<'_>> {
        self.blocks(|e| &e.old, &self.old)
    }

    /// Returns the change in the other direction: from the new side to the old one.
    pub(crate) fn reversed(&self) -> Self {
        Self {
            old: self.new.clone(),
            new: self.old.clone(),
            hunks: self.hunks.iter().map(Hunk::reversed).collect(),
            ..self.clone()
        }
    }

    /// Returns the old number of an unchanged line of the new side.
    pub fn old_line(&self, new: LineNo) -> Option<LineNo> {
        let above = self
            .hunks
            .iter()
            .flat_map(|h| &h.edits)
            .take_while(|e| e.new.start + e.new.count <= new.get());
        let Some(edit) = above.last() else {
            return Some(new);
        };
        LineNo::new(new.get() - (edit.new.start + edit.new.count) + edit.old.start + edit.old.count)
    }

    fn blocks<'a>(
        &'a self,
        side: impl Fn(&LineEdit) -> &LineRange + 'a,
        text: &'a Text,
    ) -> impl Iterator<Item = LineBlock<'a>> {
        self.hunks
            .iter()
            .flat_map(|h| &h.edits)
            .filter_map(move |e| {
                let lines = side(e);
                let first = LineNo::new(lines.start)?;
                (lines.count > 0).then(|| LineBlock {
                    first,
                    text: text.slice(lines),
                })
            })
    }

    /// Returns the lines of a hunk in the order a unified diff shows them.
    pub fn lines<'a>(&'a self, hunk: &'a Hunk) -> HunkLines<'a> {
        HunkLines {
            change: self,
            hunk,
            edits: hunk.edits.iter(),
            parts: [const { (LineKind::Context, &[]) }; 3],
            at: hunk.new.bytes.start,
            old: hunk.old.start,
            new: hunk.new.start,
            ended: false,
        }
    }

    /// Returns the numbers of added and removed lines.
    pub fn stat(&self) -> (u32, u32) {
        self.hunks
            .iter()
            .flat_map(|h| &h.edits)
            .fold((0, 0), |(a, r), e| (a + e.new.count, r + e.old.count))
    }
}

/// The lines of a hunk; see [`TextChange::lines`].
#[derive(Clone, Debug)]
pub struct HunkLines<'a> {
    change: &'a TextChange,
    hunk: &'a Hunk,
    edits: std::slice::Iter<'a, LineEdit>,
    /// The rest of the current edit: the context before it, its removed lines, its added lines.
    parts: [(LineKind, &'a [u8]); 3],
    /// Position on the new side at which the next context starts.
    at: usize,
    old: u32,
    new: u32,
    ended: bool,
}

impl<'a> HunkLines<'a> {
    /// Loads the next edit, or the context after the last one; returns false at the end.
    fn refill(&mut self) -> bool {
        let (change, none) = (self.change, (LineKind::Context, &[][..]));
        let text = &change.new.bytes;
        self.parts = match self.edits.next() {
            Some(edit) => {
                let before = (LineKind::Context, &text[self.at..edit.new.bytes.start]);
                self.at = edit.new.bytes.end;
                let removed = (LineKind::Removed, change.old.slice(&edit.old));
                [
                    before,
                    removed,
                    (LineKind::Added, change.new.slice(&edit.new)),
                ]
            }
            None if self.ended => return false,
            None => {
                self.ended = true;
                [
                    (LineKind::Context, &text[self.at..self.hunk.new.bytes.end]),
                    none,
                    none,
                ]
            }
        };
        true
    }
}

impl<'a> Iterator for HunkLines<'a> {
    type Item = HunkLine<'a>;

    fn next(&mut self) -> Option<HunkLine<'a>> {
        let part = loop {
            match self.parts.iter().position(|(_, rest)| !rest.is_empty()) {
                Some(part) => break part,
                None if !self.refill() => return None,
                None => {}
            }
        };
        let (kind, rest) = self.parts[part];
        let (text, rest) = rest.split_at(line_len(rest));
        self.parts[part].1 = rest;
        let old = (kind != LineKind::Added)
            .then_some(self.old)
            .and_then(LineNo::new);
        let new = (kind != LineKind::Removed)
            .then_some(self.new)
            .and_then(LineNo::new);
        self.old = self.old.saturating_add(u32::from(old.is_some()));
        self.new = self.new.saturating_add(u32::from(new.is_some()));
        Some(HunkLine {
            kind,
            old,
            new,
            text,
        })
    }
}

/// Returns the length of the first line with its line end.
fn line_len(text: &[u8]) -> usize {
    memchr::memchr(b'\n', text).map_or(text.len(), |i| i + 1)
}

/// Removes `\n` or `\r\n` from the end of a line.
pub fn trim_line_end(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

mod between;
pub mod code;
mod containers;
mod content;
mod declared;
mod hunks;
mod masked;
mod names;
pub mod patch;
mod reading;
mod slide;
pub mod unified;
mod utf7;

pub use between::{Attribute, Sides};
pub use content::encode_wide;
pub(crate) use masked::blank_all;
pub use reading::readings_of;

/// Returns true if the file name is that of a language or a configuration format, which is always
/// text.
pub fn is_text_name(path: &RepoPath) -> bool {
    names::NameKind::of(path.as_bytes()) == names::NameKind::Text
}

/// Returns the line ranges of `old` and the ranges of `new` that replace them: 0-based and in
/// order; one of a pair may be empty.
pub fn replaced(old: &[u8], new: &[u8]) -> Vec<(Range<u32>, Range<u32>)> {
    let hunks = hunks::between(old, new);
    hunks
        .iter()
        .flat_map(|h| &h.edits)
        .map(|e| (e.old.indexes(), e.new.indexes()))
        .collect()
}

#[cfg(test)]
pub(crate) mod tests;
