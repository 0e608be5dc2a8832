//! Cuts what is too large for one request: between hunks, then between the lines of a hunk.

use super::{Chunk, HunkPart, Limits, Piece, Weight};
use crate::ai::material::{Group, Shown, ShownHunk};
use crate::diff::LineKind;
use std::ops::Add as _;
use std::ops::Range;

/// Lines before a cut that has to be made in which a better one is looked for.
const LOOK_BACK: usize = 60;

/// Cuts a file into parts that fit, each one as large as it can be. A line that fits nowhere is a part of its own.
pub(super) fn parts(file: &Shown, limits: &Limits) -> Vec<Vec<HunkPart>> {
    let head = Weight::of_file(file);
    let mut out = Vec::new();
    let (mut open, mut weight) = (Vec::new(), head);
    for (hunk, shown) in file.hunks.iter().enumerate() {
        let all = Weight::of_lines(shown, 0..shown.lines.len());
        if !weight.add(all).fits(limits) && !open.is_empty() {
            out.push(std::mem::take(&mut open));
            weight = head;
        }
        if weight.add(all).fits(limits) {
            open.push(HunkPart { hunk, lines: 0..shown.lines.len() });
            weight = weight.add(all);
            continue;
        }
        let mut ranges = ranges(shown, head, limits);
        // The rest of a hunk can share a request with the next one.
        if let Some(last) = ranges.pop() {
            out.extend(ranges.into_iter().map(|lines| vec![HunkPart { hunk, lines }]));
            weight = head.add(Weight::of_lines(shown, last.clone()));
            open.push(HunkPart { hunk, lines: last });
        }
    }
    if !open.is_empty() {
        out.push(open);
    }
    out
}

/// Cuts a hunk into ranges of lines that fit.
fn ranges(hunk: &ShownHunk, head: Weight, limits: &Limits) -> Vec<Range<usize>> {
    let mut out = Vec::new();
    let mut start = 0;
    let fixed = head.add(Weight::of_lines(hunk, 0..0));
    let mut weight = fixed;
    let mut end = 0;
    while end < hunk.lines.len() {
        let line = Weight { files: 0, lines: 1, bytes: hunk.lines[end].text.len() + Weight::LINE };
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

/// Finds where to cut before `end`: at an unchanged or an empty line, else where an edit begins, else there.
fn best_cut(hunk: &ShownHunk, start: usize, end: usize) -> usize {
    let from = (start + 1).max(end.saturating_sub(LOOK_BACK)).max(start + (end - start) / 2);
    let lines = &hunk.lines;
    let quality = |at: usize| {
        let (before, after) = (&lines[at - 1], &lines[at]);
        // What is removed stays with what takes its place.
        let inside = before.kind == LineKind::Removed && after.kind == LineKind::Added;
        match (inside, before.text.trim().is_empty(), after.kind) {
            (true, _, _) => 0,
            (false, true, _) => 4,
            (false, false, LineKind::Context) => 3,
            (false, false, LineKind::Removed) => 2,
            (false, false, LineKind::Added) => 1,
        }
    };
    (from..=end).max_by_key(|at| if *at < lines.len() { quality(*at) } else { 0 }).unwrap_or(end)
}

/// Cuts a chunk that turned out too large for a model in two; `None`: there is nothing left to cut.
pub fn halve(chunk: &Chunk, groups: &[Group]) -> Option<(Chunk, Chunk)> {
    let files = &groups.get(chunk.group)?.files;
    let two = |first: Vec<Piece>, second: Vec<Piece>| {
        let of = |pieces| Chunk { group: chunk.group, pieces, room: chunk.room / 2 };
        Some((of(first), of(second)))
    };
    if let [piece] = &chunk.pieces[..] {
        let (first, second) = halve_piece(&files[piece.file], piece)?;
        return two(vec![first], vec![second]);
    }
    let weights: Vec<usize> = chunk.pieces.iter().map(|p| Weight::of_piece(&files[p.file], p).bytes).collect();
    let at = middle(&weights)?;
    two(chunk.pieces[..at].to_vec(), chunk.pieces[at..].to_vec())
}

fn halve_piece(file: &Shown, piece: &Piece) -> Option<(Piece, Piece)> {
    let of = |hunks| Piece { file: piece.file, hunks, split: true };
    if let [part] = &piece.hunks[..] {
        let hunk = &file.hunks[part.hunk];
        let weights: Vec<usize> = hunk.lines[part.lines.clone()].iter().map(|l| l.text.len() + Weight::LINE).collect();
        let at = best_cut(hunk, part.lines.start, part.lines.start + middle(&weights)?);
        let cut = |lines| of(vec![HunkPart { hunk: part.hunk, lines }]);
        return Some((cut(part.lines.start..at), cut(at..part.lines.end)));
    }
    let weights: Vec<usize> =
        piece.hunks.iter().map(|p| Weight::of_lines(&file.hunks[p.hunk], p.lines.clone()).bytes).collect();
    let at = middle(&weights)?;
    Some((of(piece.hunks[..at].to_vec()), of(piece.hunks[at..].to_vec())))
}

/// Returns where to cut a list so that both ends weigh about the same and neither is empty.
fn middle(weights: &[usize]) -> Option<usize> {
    let total: usize = weights.iter().sum();
    let mut first = 0;
    let at = weights.iter().position(|w| {
        first += w;
        first * 2 >= total
    });
    (weights.len() > 1).then(|| at.map_or(1, |i| i + 1).clamp(1, weights.len() - 1))
}
