//! Selects the lines around the hunks of a file: the functions, statements or types that contain
//! changed lines.

use super::{Edits, TouchedLines};
use crate::ai::related::Why;
use crate::symbols::{Definition, Kind, Symbols};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

/// Lines of a function or type that is included in full, at most.
const WHOLE: u32 = 120;
/// Lines of a file that is included in full, at most.
const WHOLE_FILE: usize = 100;
/// Lines before and after a changed line that are included of a longer function.
const AROUND: u32 = 25;

/// Selects the lines around each hunk.
pub(super) fn spans(
    file: usize,
    new: &[u8],
    symbols: &Symbols,
    edits: &[Edits],
) -> Vec<TouchedLines> {
    let count = memchr::memchr_iter(b'\n', new).count()
        + usize::from(!new.is_empty() && !new.ends_with(b"\n"));
    if count > 0 && count <= WHOLE_FILE && !edits.is_empty() {
        let lines = 1..=u32::try_from(count).unwrap_or(u32::MAX);
        return vec![TouchedLines {
            file,
            hunks: 0..=edits.len() - 1,
            why: Why::File,
            lines,
        }];
    }
    // By line range: a hunk may be in several functions, and a function may contain several hunks.
    let mut wanted: BTreeMap<(u32, u32), RangeInclusive<usize>> = BTreeMap::new();
    for (hunk, edits) in edits.iter().enumerate() {
        for place in edits.places() {
            for lines in around(symbols, *place) {
                let hunks = wanted
                    .entry((*lines.start(), *lines.end()))
                    .or_insert(hunk..=hunk);
                *hunks = *hunks.start()..=hunk;
            }
        }
    }
    let mut spans: Vec<TouchedLines> = Vec::new();
    for ((first, last), hunks) in wanted {
        match spans.last_mut().filter(|s| first <= s.lines.end() + 1) {
            Some(span) => {
                span.lines = *span.lines.start()..=last.max(*span.lines.end());
                span.hunks =
                    *span.hunks.start().min(hunks.start())..=*span.hunks.end().max(hunks.end());
            }
            None => spans.push(TouchedLines {
                file,
                hunks,
                why: Why::Around,
                lines: first..=last,
            }),
        }
    }
    spans
}

/// Returns the lines to include around a changed line: its function, statement or type, or if that
/// is long, its first lines and those near the change. Also returns the signatures of outer
/// functions and tests.
pub(super) fn around(symbols: &Symbols, line: u32) -> Vec<RangeInclusive<u32>> {
    let Some((lines, signature)) = scope(symbols, line) else {
        return Vec::new();
    };
    let (start, end) = (*lines.start(), *lines.end());
    let outer = functions_around(symbols, line)
        .filter(|d| *d.lines.start() < start && *d.lines.end() >= end);
    let mut shown: Vec<RangeInclusive<u32>> = outer.map(|d| d.signature.clone()).collect();
    match end - start < WHOLE {
        true => shown.push(lines),
        false => shown.extend([
            signature,
            line.saturating_sub(AROUND).max(start)..=(line + AROUND).min(end),
        ]),
    }
    shown
}

/// Returns the functions and tests that contain a line, the innermost first.
pub(super) fn functions_around(symbols: &Symbols, line: u32) -> impl Iterator<Item = &Definition> {
    symbols
        .enclosing(line)
        .filter(|d| matches!(d.kind, Kind::Function | Kind::Test))
}

/// Returns the lines of the signatures of the functions and tests around changed lines.
pub(super) fn signatures(symbols: &Symbols, edits: &[Edits]) -> BTreeSet<u32> {
    let around = edits
        .iter()
        .flat_map(Edits::places)
        .flat_map(|line| functions_around(symbols, *line));
    around.flat_map(|d| d.signature.clone()).collect()
}

/// Returns the lines and the signature of the function around a line, or else of the innermost
/// statement or type.
fn scope(symbols: &Symbols, line: u32) -> Option<(RangeInclusive<u32>, RangeInclusive<u32>)> {
    let container = symbols
        .enclosing(line)
        .find(|d| matches!(d.kind, Kind::Type | Kind::Group));
    let statement = symbols
        .block_at(line)
        .map(|b| (b.lines.clone(), *b.lines.start()..=*b.lines.start()));
    let function = symbols.function_at(line).map(extent);
    function.or_else(|| match (statement, container.map(extent)) {
        (Some(statement), Some(container)) if statement.0.start() > container.0.start() => {
            Some(statement)
        }
        (statement, container) => container.or(statement),
    })
}

/// Returns the lines and the signature of a definition.
fn extent(definition: &Definition) -> (RangeInclusive<u32>, RangeInclusive<u32>) {
    (definition.lines.clone(), definition.signature.clone())
}
