//! Renders a chunk of the change.

use super::related::{self, Picked};
use super::unchanged::unchanged;
use crate::ai::material::{Group, Shown, ShownHunk};
use crate::ai::plan::{Chunk, FilePiece};
use crate::ai::section::Language;
use crate::diff::{ChangeKind, FileMode, LineKind};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::ops::Range;

/// Lines above a part of a hunk that are searched for its section.
const LOOK_BACK: usize = 2_000;

/// Appends the files of a chunk.
pub(super) fn chunk(group: &Group, chunk: &Chunk, picked: &Picked<'_>, out: &mut String) {
    for (i, piece) in chunk.pieces.iter().enumerate() {
        if i > 0 {
            out.push('\n');
        }
        self::piece(&group.files[piece.file], piece, picked, out);
    }
}

fn piece(file: &Shown, piece: &FilePiece, picked: &Picked<'_>, out: &mut String) {
    heading(file, piece.split, out);
    let nothing = BTreeMap::new();
    let around = picked.around(piece.file).unwrap_or(&nothing);
    // Lines of hunks in another part are marked as added.
    let added = picked.added(&file.name);
    let mut last = 0;
    for part in &piece.hunks {
        let hunk = &file.hunks[part.hunk];
        let mut numbers = hunk.lines[part.lines.clone()]
            .iter()
            .filter_map(|l| l.new.map(|n| n.get()));
        let first = numbers.clone().next();
        let before = first.map_or_else(Vec::new, |first| related::between(around, last, first));
        // Lines that directly follow the previous hunk belong to its section.
        let (after, before) = before.split_at(continuing(&before, last));
        unchanged(after, added, out);
        let end = after.last().map_or(last, |(number, _)| *number);
        let is_next = last > 0 && before.is_empty() && first == Some(end + 1);
        if !is_next {
            section(file, hunk, part.lines.start, out);
        }
        unchanged(before, added, out);
        lines(hunk, part.lines.clone(), out);
        last = numbers.next_back().unwrap_or(last);
    }
    let beyond = related::between(around, last, u32::MAX);
    unchanged(&beyond, added, out);
}

/// Counts the consecutive lines that directly follow the line `last`. Returns 0 if `last` is 0.
fn continuing(lines: &[(u32, &str)], last: u32) -> usize {
    match last {
        0 => 0,
        _ => lines
            .iter()
            .zip(last + 1..)
            .take_while(|((number, _), next)| number == next)
            .count(),
    }
}

/// Appends the first line of a file, with only its name, and a second line if the file was added,
/// deleted, renamed or similar.
pub(super) fn heading(file: &Shown, split: bool, out: &mut String) {
    let entry = &file.change.entry;
    let _ = writeln!(out, "file: {}", file.name);
    let mut about = Vec::new();
    match (entry.kind, &file.old_name) {
        (ChangeKind::Added, _) => about.push("added".to_owned()),
        (ChangeKind::Deleted, _) => about.push("deleted".to_owned()),
        (ChangeKind::Renamed { .. }, Some(old)) => about.push(format!("renamed from {old}")),
        (ChangeKind::Copied { .. }, Some(old)) => about.push(format!("copied from {old}")),
        _ => {}
    }
    match (
        entry.old.as_ref().map(|s| s.mode),
        entry.new.as_ref().map(|s| s.mode),
    ) {
        (_, Some(FileMode::Symlink)) => about.push("a symbolic link".to_owned()),
        (Some(FileMode::Regular) | None, Some(FileMode::Executable)) => {
            about.push("executable".to_owned());
        }
        (Some(FileMode::Executable), Some(FileMode::Regular)) => {
            about.push("no longer executable".to_owned());
        }
        _ => {}
    }
    if split {
        about.push("a part".to_owned());
    }
    if !about.is_empty() {
        let _ = writeln!(out, "({})", about.join("; "));
    }
}

/// Appends the section line for the lines from `start`. Inside a hunk, the section is the last one
/// that starts above in it.
pub(super) fn section(file: &Shown, hunk: &ShownHunk, start: usize, out: &mut String) {
    let language = Language::of(file.path());
    // If all lines of the hunk are removed, use the removed lines above.
    let is_gone = !hunk.lines.iter().any(|l| l.kind != LineKind::Removed);
    let above = hunk.lines[..start].iter().rev().take(LOOK_BACK);
    let mut above = above.filter(|l| is_gone || l.kind != LineKind::Removed);
    let inside = above.find_map(|l| {
        language
            .start(l.text.as_bytes())
            .and_then(|r| l.text.get(r))
    });
    match inside.unwrap_or(&hunk.section) {
        "" => out.push_str("@@\n"),
        section => {
            let _ = writeln!(out, "@@ {section}");
        }
    }
}

/// Appends lines of a hunk, each with its number on the new side.
pub(super) fn lines(hunk: &ShownHunk, range: Range<usize>, out: &mut String) {
    for line in &hunk.lines[range] {
        match (line.kind, line.new) {
            (LineKind::Added, Some(n)) => {
                let _ = write!(out, "{n}+");
            }
            (LineKind::Context, Some(n)) => {
                let _ = write!(out, "{n} ");
            }
            _ => out.push('-'),
        }
        out.push_str(&line.text);
        out.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ai::material::{ShownLine, SideSymbols};
    use crate::diff::{Attribute, Body, Entry, FileChange, RepoPath, Side};
    use std::time::{Duration, Instant};

    fn removed(text: &str) -> ShownLine {
        ShownLine {
            kind: LineKind::Removed,
            old: None,
            new: None,
            text: text.to_owned(),
        }
    }

    fn hunk(lines: Vec<ShownLine>) -> ShownHunk {
        ShownHunk {
            section: "def above():".to_owned(),
            lines,
        }
    }

    #[test]
    fn a_part_of_a_long_deletion_is_shown_in_time_that_grows_with_its_lines() {
        let lines = (0..200_000).map(|_| removed("    x()")).collect();
        let file = Shown {
            name: "a.py".to_owned(),
            old_name: None,
            hunks: Vec::new(),
            change: FileChange {
                entry: Entry {
                    kind: ChangeKind::Deleted,
                    old: Some(Side {
                        path: RepoPath::from("a.py"),
                        mode: FileMode::Regular,
                        id: None,
                    }),
                    new: None,
                },
                body: Body::between(Some(b"x\n".to_vec()), None, Attribute::Unset),
            },
            guidelines: Vec::new(),
            redacted: Vec::new(),
            cut: Vec::new(),
            symbols: SideSymbols::default(),
        };
        let (mut out, begun) = (String::new(), Instant::now());
        section(&file, &hunk(lines), 200_000, &mut out);
        assert_eq!(out, "@@ def above():\n");
        assert!(
            begun.elapsed() < Duration::from_secs(5),
            "{:?}",
            begun.elapsed()
        );
        out.clear();
        section(
            &file,
            &hunk(vec![removed("def gone():"), removed("    x()")]),
            2,
            &mut out,
        );
        assert_eq!(out, "@@ def gone():\n");
    }
}
