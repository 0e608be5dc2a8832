//! Splits files that are too large for one request: between hunks, then between the lines of a
//! hunk.

use super::{Chunk, ChunkWeight, FilePiece, HunkPart, Limits};
use crate::ai::material::{Group, Shown, ShownHunk, ShownLine};
use crate::diff::LineKind;
use std::ops::Add as _;
use std::ops::Range;

/// Lines before a required cut that are searched for a better position.
const LOOK_BACK: usize = 60;

/// Splits a file into parts that fit, each as large as possible. A line that exceeds the limits is
/// a part of its own.
pub(super) fn parts(file: &Shown, limits: &Limits) -> Vec<Vec<HunkPart>> {
    let head = ChunkWeight::of_file(file);
    let mut out = Vec::new();
    let (mut open, mut weight) = (Vec::new(), head);
    for (hunk, shown) in file.hunks.iter().enumerate() {
        let all = ChunkWeight::of_lines(shown, 0..shown.lines.len());
        if !weight.add(all).fits(limits) && !open.is_empty() {
            out.push(std::mem::take(&mut open));
            weight = head;
        }
        if weight.add(all).fits(limits) {
            open.push(HunkPart {
                hunk,
                lines: 0..shown.lines.len(),
            });
            weight = weight.add(all);
            continue;
        }
        let mut ranges = ranges(shown, head, limits);
        // The rest of a hunk can share a request with the next one.
        if let Some(last) = ranges.pop() {
            out.extend(
                ranges
                    .into_iter()
                    .map(|lines| vec![HunkPart { hunk, lines }]),
            );
            weight = head.add(ChunkWeight::of_lines(shown, last.clone()));
            open.push(HunkPart { hunk, lines: last });
        }
    }
    if !open.is_empty() {
        out.push(open);
    }
    out
}

/// Splits a hunk into ranges of lines that fit.
fn ranges(hunk: &ShownHunk, head: ChunkWeight, limits: &Limits) -> Vec<Range<usize>> {
    let mut out = Vec::new();
    let mut start = 0;
    let fixed = head.add(ChunkWeight::of_lines(hunk, 0..0));
    let mut weight = fixed;
    let mut end = 0;
    while end < hunk.lines.len() {
        let line = ChunkWeight {
            files: 0,
            lines: 1,
            bytes: hunk.lines[end].text.len() + ChunkWeight::LINE,
        };
        if weight.add(line).fits(limits) || end == start {
            weight = weight.add(line);
            end += 1;
            continue;
        }
        let cut = best_cut(hunk, start, end);
        out.push(start..cut);
        (start, end, weight) = (cut, cut, fixed);
    }
    out.push(start..end);
    out
}

/// Finds a position to cut at or before `end`: preferably at a blank or unchanged line, or else at
/// the start of an edit.
fn best_cut(hunk: &ShownHunk, start: usize, end: usize) -> usize {
    let from = (start + 1)
        .max(end.saturating_sub(LOOK_BACK))
        .max(start + (end - start) / 2);
    let lines = &hunk.lines;
    (from..=end)
        .max_by_key(|at| {
            if *at < lines.len() {
                cut_quality(&lines[*at - 1], &lines[*at])
            } else {
                0
            }
        })
        .unwrap_or(end)
}

/// Returns the quality of a cut between two lines. A higher number is better.
fn cut_quality(before: &ShownLine, after: &ShownLine) -> u8 {
    // Keep removed lines together with the lines that replace them.
    let inside = before.kind == LineKind::Removed && after.kind == LineKind::Added;
    match (inside, before.text.trim().is_empty(), after.kind) {
        (true, _, _) => 0,
        (false, true, _) => 4,
        (false, false, LineKind::Context) => 3,
        (false, false, LineKind::Removed) => 2,
        (false, false, LineKind::Added) => 1,
    }
}

/// Splits a chunk that was too large for a model into two. Returns `None` if it cannot be split
/// further.
pub fn halve(chunk: &Chunk, groups: &[Group]) -> Option<(Chunk, Chunk)> {
    let files = &groups.get(chunk.group)?.files;
    let (first, second) = match &chunk.pieces[..] {
        [piece] => {
            let (first, second) = halve_piece(&files[piece.file], piece)?;
            (vec![first], vec![second])
        }
        pieces => {
            let weights: Vec<usize> = pieces
                .iter()
                .map(|p| ChunkWeight::of_piece(&files[p.file], p).bytes)
                .collect();
            let (first, second) = pieces.split_at(middle(&weights)?);
            (first.to_vec(), second.to_vec())
        }
    };
    let (group, room) = (chunk.group, chunk.room / 2);
    Some((
        Chunk {
            group,
            pieces: first,
            room,
        },
        Chunk {
            group,
            pieces: second,
            room,
        },
    ))
}

fn halve_piece(file: &Shown, piece: &FilePiece) -> Option<(FilePiece, FilePiece)> {
    let (first, second) = match &piece.hunks[..] {
        [HunkPart { hunk, lines }] => {
            let shown = &file.hunks[*hunk];
            let weights: Vec<usize> = shown.lines[lines.clone()]
                .iter()
                .map(|l| l.text.len() + ChunkWeight::LINE)
                .collect();
            let at = best_cut(shown, lines.start, lines.start + middle(&weights)?);
            let (above, below) = (lines.start..at, at..lines.end);
            (
                vec![HunkPart {
                    hunk: *hunk,
                    lines: above,
                }],
                vec![HunkPart {
                    hunk: *hunk,
                    lines: below,
                }],
            )
        }
        parts => {
            let weights: Vec<usize> = parts
                .iter()
                .map(|p| ChunkWeight::of_lines(&file.hunks[p.hunk], p.lines.clone()).bytes)
                .collect();
            let (first, second) = parts.split_at(middle(&weights)?);
            (first.to_vec(), second.to_vec())
        }
    };
    let file = piece.file;
    Some((
        FilePiece {
            file,
            hunks: first,
            split: true,
        },
        FilePiece {
            file,
            hunks: second,
            split: true,
        },
    ))
}

/// Returns the position that splits a list into two parts of about the same weight, neither of them
/// empty.
fn middle(weights: &[usize]) -> Option<usize> {
    let total: usize = weights.iter().sum();
    let mut first = 0;
    let at = weights.iter().position(|w| {
        first += w;
        first * 2 >= total
    });
    (weights.len() > 1).then(|| at.map_or(1, |i| i + 1).clamp(1, weights.len() - 1))
}
