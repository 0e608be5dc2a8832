//! The lines that the model received, and the numbers in other views of the change that it may have
//! used for them.

use crate::ai::material::{Group, Shown, ShownLine};
use crate::ai::plan::Chunk;
use crate::diff::LineKind;
use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::HashMap;

/// A line of the change.
#[derive(Clone, Copy, Debug)]
pub(super) struct LineEntry<'a> {
    /// Position in [`Group::files`].
    pub(super) file: usize,
    /// Position in [`Shown::hunks`].
    pub(super) hunk: usize,
    pub(super) shown: &'a ShownLine,
    /// Text without surrounding white space.
    pub(super) text: &'a str,
    views: Views,
}

/// Consecutive entries of a chunk: positions of the first and the last one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct EntryRange {
    pub(super) first: usize,
    pub(super) last: usize,
}

impl EntryRange {
    /// Returns the range of one entry.
    pub(super) fn of_entry(entry: usize) -> Self {
        Self {
            first: entry,
            last: entry,
        }
    }

    /// Returns true if it is one line.
    pub(super) fn is_one_line(self) -> bool {
        self.first == self.last
    }
}

/// Positions of a line in views of the change that number lines differently.
#[derive(Clone, Copy, Debug, Default)]
struct Views {
    /// Position in its hunk, from 0.
    in_hunk: u32,
    /// Start lines of the old and the new side, from the header of the hunk.
    old_start: u32,
    new_start: u32,
    /// Position in all hunks of the file, from 1, and the number of hunk headers before it.
    in_file: u32,
    heads_in_file: u32,
    /// Position in the chunk, from 1 (0 if the chunk does not contain it), with the number of
    /// headers and files before it.
    in_chunk: u32,
    heads_in_chunk: u32,
    files_before: u32,
}

/// Bytes of a file that is searched for code outside the chunk, at most.
const SEARCHED: usize = 2 << 20;

/// Lines before the first hunk of a file in a unified diff, at most (`diff --git`, `index`, `---`,
/// `+++`, a mode).
const FILE_HEAD: u32 = 6;

impl LineEntry<'_> {
    /// Returns the number on the new side.
    pub(super) fn number(&self) -> Option<u32> {
        self.shown.new.map(|n| n.get())
    }

    /// Returns the number on the old side.
    pub(super) fn old(&self) -> Option<u32> {
        self.shown.old.map(|n| n.get())
    }

    /// Returns true if the change adds the line.
    pub(super) fn is_added(&self) -> bool {
        self.shown.kind == LineKind::Added
    }

    /// Returns true if both lines are in the same hunk.
    pub(super) fn is_in_hunk_of(&self, other: &LineEntry<'_>) -> bool {
        self.file == other.file && self.hunk == other.hunk
    }

    /// Returns the distance of a number from the line on the new side. A removed line has the
    /// largest distance.
    pub(super) fn distance(&self, n: u32) -> u32 {
        self.number().map_or(u32::MAX, |own| own.abs_diff(n))
    }

    /// Returns true if the number is a position of this line in a view other than the new side: its
    /// number on the old side, an offset from the hunk header, or a position in the hunk, in the
    /// diff of the file or in the chunk.
    pub(super) fn is_seen_as(&self, n: u32) -> bool {
        let v = &self.views;
        let counted = [
            v.in_hunk,
            v.in_hunk + 1,
            v.old_start + v.in_hunk,
            v.new_start + v.in_hunk,
        ];
        self.old() == Some(n)
            || counted.contains(&n)
            || may_count(n, v.in_file, v.heads_in_file + FILE_HEAD)
            || may_count(
                n,
                v.in_chunk,
                v.heads_in_chunk + FILE_HEAD * (v.files_before + 1),
            )
    }
}

/// Returns true if a number can be the position of a line in a text: `position` among the lines of
/// the hunks, from 1 (0 if the text does not contain the line), with at most `heads` further lines
/// before it.
fn may_count(n: u32, position: u32, heads: u32) -> bool {
    position > 0 && (position..=position + heads).contains(&n)
}

/// The lines of the files of a chunk, in order.
#[derive(Debug)]
pub(super) struct ChunkLines<'a> {
    group: &'a Group,
    pub(super) entries: Vec<LineEntry<'a>>,
    /// Folded text of each entry; computed at the first search for a quote.
    folded: OnceCell<Vec<String>>,
    /// Positions of the entries by their folded text, without empty ones.
    by_folded: OnceCell<HashMap<String, Vec<usize>>>,
    /// Folded lines on the new side of each file of the group; computed at the first search in the
    /// file.
    whole: Vec<OnceCell<Vec<String>>>,
}

impl<'a> ChunkLines<'a> {
    /// Collects all hunks of the files of a chunk, and those of one more file that a claim names.
    pub(super) fn new(group: &'a Group, chunk: &'a Chunk, further: Option<usize>) -> Self {
        let mut files: Vec<usize> = chunk.pieces.iter().map(|p| p.file).chain(further).collect();
        let mut seen = vec![false; group.files.len()];
        files.retain(|f| {
            seen.get_mut(*f)
                .is_some_and(|s| !std::mem::replace(s, true))
        });
        let shown = Places::of(chunk);
        let mut entries = Vec::new();
        for file in files {
            let Some(of) = group.files.get(file) else {
                continue;
            };
            let mut in_file = 0;
            for (hunk, of_hunk) in of.hunks.iter().enumerate() {
                let starts = starts(of, hunk);
                for (at, line) in of_hunk.lines.iter().enumerate() {
                    in_file += 1;
                    let (in_chunk, heads_in_chunk, files_before) = shown.of_line(file, hunk, at);
                    let views = Views {
                        in_hunk: at as u32,
                        old_start: starts.0,
                        new_start: starts.1,
                        in_file,
                        heads_in_file: hunk as u32 + 1,
                        in_chunk,
                        heads_in_chunk,
                        files_before,
                    };
                    entries.push(LineEntry {
                        file,
                        hunk,
                        shown: line,
                        text: bare(&line.text),
                        views,
                    });
                }
            }
        }
        let whole = vec![OnceCell::new(); group.files.len()];
        Self {
            group,
            entries,
            folded: OnceCell::new(),
            by_folded: OnceCell::new(),
            whole,
        }
    }

    /// Returns the text of each entry as folded by [`fold`].
    pub(super) fn folded(&self) -> &[String] {
        self.folded
            .get_or_init(|| self.entries.iter().map(|e| fold(e.text)).collect())
    }

    /// Returns the entries whose folded text equals the given one.
    pub(super) fn equal_to(&self, folded: &str) -> &[usize] {
        let by_folded = self.by_folded.get_or_init(|| {
            let mut all: HashMap<String, Vec<usize>> = HashMap::new();
            for (i, text) in self
                .folded()
                .iter()
                .enumerate()
                .filter(|(_, text)| !text.is_empty())
            {
                all.entry(text.clone()).or_default().push(i);
            }
            all
        });
        by_folded.get(folded).map_or(&[], Vec::as_slice)
    }

    /// Returns the folded lines on the new side of a file, without blank lines, including those
    /// that the model did not receive. Returns an empty slice for a file without a new side or with
    /// more than [`SEARCHED`] bytes.
    pub(super) fn whole(&self, file: usize) -> &[String] {
        let Some(whole) = self.whole.get(file) else {
            return &[];
        };
        whole.get_or_init(|| {
            let text = self.new_text(file).unwrap_or_default();
            text.lines()
                .map(|line| fold(bare(line)))
                .filter(|line| !line.is_empty())
                .collect()
        })
    }

    /// Returns the text on the new side of a file, including the lines that the model did not
    /// receive. Returns `None` for a file without a new side or with more than [`SEARCHED`] bytes.
    pub(super) fn new_text(&self, file: usize) -> Option<Cow<'a, str>> {
        let whole = self
            .file(file)
            .change
            .text()?
            .new
            .whole()
            .filter(|whole| whole.len() <= SEARCHED)?;
        Some(String::from_utf8_lossy(whole))
    }

    /// Returns a file of the group by its position.
    pub(super) fn file(&self, file: usize) -> &'a Shown {
        &self.group.files[file]
    }

    /// Returns the lines of a file, with their positions.
    pub(super) fn of_file(&self, file: usize) -> impl Iterator<Item = (usize, &LineEntry<'a>)> {
        self.entries
            .iter()
            .enumerate()
            .filter(move |(_, e)| e.file == file)
    }

    /// Returns the line of a file that has a number on the new side.
    pub(super) fn numbered(&self, file: usize, n: u32) -> Option<usize> {
        self.of_file(file)
            .find(|(_, e)| e.number() == Some(n))
            .map(|(i, _)| i)
    }

    /// Returns the line on the new side that represents a removed line: the first line that
    /// replaced it, or else the line after it, or else the line before it.
    pub(super) fn stand_in(&self, removed: usize) -> Option<usize> {
        let own = self.entries[removed];
        let after =
            (removed + 1..self.entries.len()).take_while(|i| self.entries[*i].is_in_hunk_of(&own));
        let before = (0..removed)
            .rev()
            .take_while(|i| self.entries[*i].is_in_hunk_of(&own));
        let mut both = after.chain(before);
        both.find(|i| self.entries[*i].shown.kind != LineKind::Removed)
    }

    /// Returns the position of the file that contains a range.
    pub(super) fn file_of(&self, o: EntryRange) -> usize {
        self.entries[o.first].file
    }

    /// Returns true if at least one of the lines is on the new side.
    pub(super) fn is_on_new_side(&self, o: EntryRange) -> bool {
        (o.first..=o.last).any(|i| self.entries[i].number().is_some())
    }

    /// Returns true if the change adds at least one of the lines.
    pub(super) fn is_added(&self, o: EntryRange) -> bool {
        (o.first..=o.last).any(|i| self.entries[i].is_added())
    }

    /// Returns the ranges on the new side, or all if there are none there. A moved or
    /// re-indented line is on both sides, and a claim is about the new one.
    pub(super) fn newest(&self, all: &[EntryRange]) -> Vec<EntryRange> {
        let new = all.iter().copied().filter(|o| self.is_on_new_side(*o));
        let new: Vec<EntryRange> = new.collect();
        if new.is_empty() { all.to_vec() } else { new }
    }

    /// Returns the only range that contains an added line.
    pub(super) fn only_added(&self, all: &[EntryRange]) -> Option<EntryRange> {
        let mut added = all.iter().copied().filter(|o| self.is_added(*o));
        added.next().filter(|_| added.next().is_none())
    }

    /// Returns the distance of a number from the lines. Removed lines are compared by their old
    /// number and by the line that represents them; see [`ChunkLines::stand_in`].
    pub(super) fn distance(&self, o: EntryRange, n: u32) -> u32 {
        let numbers = (o.first..=o.last).flat_map(|i| {
            let entry = &self.entries[i];
            match entry.number() {
                Some(new) => [Some(new), None],
                None => [
                    entry.old(),
                    self.stand_in(i).and_then(|s| self.entries[s].number()),
                ],
            }
        });
        let distances = numbers.flatten().map(|m| m.abs_diff(n));
        distances.min().unwrap_or(u32::MAX)
    }

    /// Returns the last line on the new side of the same hunk that is at most `further` lines below
    /// the first.
    pub(super) fn reach(&self, first: usize, further: u32) -> usize {
        let start = self.entries[first];
        let Some(from) = start.number() else {
            return first;
        };
        (first..self.entries.len())
            .take_while(|i| self.entries[*i].is_in_hunk_of(&start))
            .filter(|i| {
                let number = self.entries[*i].number();
                number.is_some_and(|n| n - from.min(n) <= further)
            })
            .last()
            .unwrap_or(first)
    }
}

/// Normalizes a text for comparison: keeps one space between two words, drops all other white
/// space, and replaces typographic characters by their ASCII equivalents.
pub(super) fn fold(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut after_space = false;
    for c in text.chars() {
        if c.is_whitespace() {
            after_space = true;
            continue;
        }
        // Without this space, `for got` would equal `forgot`.
        if after_space && is_of_word(c) && out.chars().next_back().is_some_and(is_of_word) {
            out.push(' ');
        }
        after_space = false;
        match c {
            '…' => out.push_str("..."),
            other => out.push(plain(other)),
        }
    }
    out
}

/// Returns true if the character can be part of a word or number.
pub(super) fn is_of_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Returns the ASCII equivalent of a typographic character.
fn plain(c: char) -> char {
    match c {
        '‘' | '’' | '‚' | '‛' | '′' => '\'',
        '“' | '”' | '„' | '‟' | '″' => '"',
        '‐' | '‑' | '‒' | '–' | '—' | '−' => '-',
        other => other,
    }
}

/// Removes surrounding white space, and the `\u{d}` that marks a carriage return where line ends
/// differ.
pub(super) fn bare(text: &str) -> &str {
    let text = text.trim();
    text.strip_suffix("\\u{d}").map_or(text, str::trim_end)
}

/// Returns the start lines of both sides from the header of a hunk.
fn starts(file: &Shown, hunk: usize) -> (u32, u32) {
    match file.change.text().and_then(|t| t.hunks.get(hunk)) {
        Some(h) => (h.old.start, h.new.start),
        None => (0, 0),
    }
}

/// Positions of the hunk parts in a chunk.
struct Places(HashMap<(usize, usize), Vec<ChunkPart>>);

/// A line range of a hunk, with the number of lines, headers (including its own) and files before
/// it in the chunk.
type ChunkPart = (std::ops::Range<usize>, u32, u32, u32);

impl Places {
    fn of(chunk: &Chunk) -> Self {
        let mut places: HashMap<_, Vec<_>> = HashMap::new();
        let (mut lines, mut heads) = (0u32, 0u32);
        for (files, piece) in chunk.pieces.iter().enumerate() {
            for part in &piece.hunks {
                heads += 1;
                let place = (part.lines.clone(), lines, heads, files as u32);
                places
                    .entry((piece.file, part.hunk))
                    .or_default()
                    .push(place);
                lines += part.lines.len() as u32;
            }
        }
        Self(places)
    }

    /// Returns the position of a line in the chunk, from 1, with the number of headers and files
    /// before it. Returns zeros if the chunk does not contain the line.
    fn of_line(&self, file: usize, hunk: usize, at: usize) -> (u32, u32, u32) {
        let parts = self.0.get(&(file, hunk)).map_or(&[][..], Vec::as_slice);
        let part = parts.iter().find(|(range, ..)| range.contains(&at));
        part.map_or((0, 0, 0), |(range, lines, heads, files)| {
            (lines + (at - range.start) as u32 + 1, *heads, *files)
        })
    }
}
