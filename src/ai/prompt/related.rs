//! Selects the related code that fits in a request with a chunk, and renders it.

use super::unchanged::unchanged;
use crate::ai::material::{Group, Shown};
use crate::ai::plan::Chunk;
use crate::ai::related::{Beyond, Excerpt, Why};
use crate::diff::LineKind;
use crate::rules::is_test_path;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::ops::{Range, RangeInclusive};

/// Names whose further uses are counted, at most.
const MAX_NAMES: usize = 10;
/// Distance in lines from a hunk that is included if the whole function does not fit: 25 lines
/// around its changed lines, of which the hunk itself has three.
const NEAR: u32 = 22;

/// Lines of a file with their numbers.
type NumberedLines<'g> = Vec<(u32, &'g str)>;

/// The selected related code for a chunk.
#[derive(Debug, Default)]
pub(super) struct Picked<'g> {
    /// Lines around hunks, by file and number.
    around: BTreeMap<usize, BTreeMap<u32, &'g str>>,
    /// The other excerpts in order, each with the lines that no earlier excerpt includes.
    others: Vec<(&'g Excerpt, NumberedLines<'g>)>,
    left_out: Vec<&'g Excerpt>,
    beyond: Vec<&'g Beyond>,
    is_cut: bool,
    /// List of files that could not be searched.
    unread: Option<String>,
    /// Numbers of the lines that the change adds, by path.
    added: BTreeMap<&'g str, BTreeSet<u32>>,
}

/// The lines of the change in a prompt: file, hunk, and positions in the hunk.
pub(super) type ShownParts = Vec<(usize, usize, Range<usize>)>;

impl<'g> Picked<'g> {
    /// Selects the most useful related code that fits in the room of the chunk.
    pub(super) fn of(group: &'g Group, chunk: &Chunk) -> Self {
        let parts = chunk
            .pieces
            .iter()
            .flat_map(|p| p.hunks.iter().map(|h| (p.file, h.hunk, h.lines.clone())));
        Self::fit(group, &parts.collect(), chunk.room)
    }

    /// Selects the excerpts about some hunks, without the lines of the hunks, the most useful
    /// first, while they fit.
    pub(super) fn fit(group: &'g Group, parts: &ShownParts, room: usize) -> Self {
        let all = &group.related;
        let mut wanted: Vec<&Excerpt> = all
            .excerpts
            .iter()
            .filter(|e| has_hunk(parts, e.file, &e.hunks))
            .collect();
        wanted.sort_by_key(|e| {
            let is_of_test =
                e.why > Why::File && is_test_path(group.files[e.file].path().as_bytes());
            (is_of_test, e.why.max(Why::File))
        });
        // An excerpt with the definition includes the signature.
        let defined: BTreeSet<(&str, u32)> = wanted
            .iter()
            .filter(|e| is_definition(e))
            .map(|e| place(e))
            .collect();
        wanted.retain(|e| e.why != Why::Nearby || !defined.contains(&place(e)));
        let mut picked = Self {
            beyond: all
                .beyond
                .iter()
                .filter(|b| has_hunk(parts, b.file, &b.hunks))
                .collect(),
            is_cut: all.is_cut,
            unread: all.unread.list(),
            added: group
                .files
                .iter()
                .map(|f| (f.name.as_str(), added(f)))
                .collect(),
            ..Self::default()
        };
        let mut seen: BTreeMap<&str, BTreeSet<u32>> = BTreeMap::new();
        for (file, hunk, lines) in parts {
            let file = &group.files[*file];
            let numbers = file.hunks[*hunk].lines[lines.clone()]
                .iter()
                .filter_map(|l| l.new.map(|n| n.get()));
            seen.entry(&file.name).or_default().extend(numbers);
        }
        let hunks = seen.clone();
        let mut left = room;
        // Include the signatures of long functions before short functions in full.
        for excerpt in wanted.iter().filter(|e| is_around(e)) {
            let seen = seen.entry(&excerpt.path).or_default();
            let Some(mut lines) = unseen(excerpt, seen) else {
                continue;
            };
            lines.retain(|(number, _)| excerpt.first.contains(number));
            picked.take(excerpt, lines, &mut left, seen);
        }
        for excerpt in wanted {
            let seen = seen.entry(&excerpt.path).or_default();
            let Some(lines) = unseen(excerpt, seen) else {
                continue;
            };
            let near = near(excerpt, &lines, hunks.get(excerpt.path.as_str()));
            if !picked.take(excerpt, lines, &mut left, seen) {
                picked.left_out.push(excerpt);
                picked.take(excerpt, near, &mut left, seen);
            }
        }
        picked
    }

    /// Adds lines of an excerpt if they fit in the remaining room.
    fn take(
        &mut self,
        of: &'g Excerpt,
        lines: NumberedLines<'g>,
        left: &mut usize,
        seen: &mut BTreeSet<u32>,
    ) -> bool {
        let size = lines.iter().map(|(_, text)| text.len() + 9).sum::<usize>();
        let size = size + if is_around(of) { 0 } else { of.head_size() };
        let Some(rest) = left.checked_sub(size).filter(|_| !lines.is_empty()) else {
            return false;
        };
        *left = rest;
        seen.extend(lines.iter().map(|(number, _)| *number));
        match is_around(of) {
            true => self.around.entry(of.file).or_default().extend(lines),
            false => self.others.push((of, lines)),
        }
        true
    }

    /// Returns the lines of a file around the hunks of a piece, by number.
    pub(super) fn around(&self, file: usize) -> Option<&BTreeMap<u32, &'g str>> {
        self.around.get(&file)
    }

    /// Returns the numbers of the lines that the change adds to a file.
    pub(super) fn added(&self, path: &str) -> Option<&BTreeSet<u32>> {
        self.added.get(path)
    }

    /// Returns the lines of the excerpts that are not around hunks.
    pub(super) fn lines(&self) -> impl Iterator<Item = &'g str> + use<'g, '_> {
        self.others
            .iter()
            .flat_map(|(_, lines)| lines)
            .map(|(_, text)| *text)
    }

    /// Renders the excerpts that are not around hunks, and the counts of omitted ones. Empty if
    /// there are none.
    pub(super) fn write(&self) -> String {
        let mut out = String::new();
        for (excerpt, lines) in &self.others {
            heading(excerpt, lines, &mut out);
            unchanged(lines, self.added(&excerpt.path), &mut out);
            out.push('\n');
        }
        if !self.left_out.is_empty() {
            let _ = writeln!(
                out,
                "(left out for lack of room: {})",
                counted(&self.left_out)
            );
        }
        if !self.beyond.is_empty() {
            let _ = writeln!(out, "(not shown: {})", further(&self.beyond));
        }
        if let Some(files) = &self.unread {
            let _ = writeln!(
                out,
                "(not searched for definitions and uses, since they could not be read: {files})"
            );
        }
        if self.is_cut {
            out.push_str(
                "(the repository is larger than what is searched: there can be more uses)\n",
            );
        }
        out
    }
}

/// Returns true if one of the parts is in one of these hunks of a file.
fn has_hunk(parts: &ShownParts, file: usize, hunks: &RangeInclusive<usize>) -> bool {
    parts
        .iter()
        .any(|(of, hunk, _)| *of == file && hunks.contains(hunk))
}

fn is_definition(excerpt: &Excerpt) -> bool {
    matches!(
        excerpt.why,
        Why::DefinitionHere | Why::Owner | Why::Definition
    )
}

/// Returns the path and the first line number of an excerpt.
fn place(excerpt: &Excerpt) -> (&str, u32) {
    (&excerpt.path, excerpt.ends().0)
}

fn is_around(excerpt: &Excerpt) -> bool {
    matches!(excerpt.why, Why::Around | Why::File)
}

/// Returns the lines of an excerpt that are near its hunks. Empty for an excerpt that is not around
/// hunks.
fn near<'g>(
    excerpt: &Excerpt,
    lines: &NumberedLines<'g>,
    hunks: Option<&BTreeSet<u32>>,
) -> NumberedLines<'g> {
    let Some(hunks) = hunks.filter(|_| is_around(excerpt)) else {
        return Vec::new();
    };
    let lines = lines.iter().copied();
    lines
        .filter(|(n, _)| {
            hunks
                .range(n.saturating_sub(NEAR)..=n.saturating_add(NEAR))
                .next()
                .is_some()
        })
        .collect()
}

/// Returns the numbers of the lines that a change adds.
fn added(file: &Shown) -> BTreeSet<u32> {
    let lines = file
        .hunks
        .iter()
        .flat_map(|h| &h.lines)
        .filter(|l| l.kind == LineKind::Added);
    lines.filter_map(|l| l.new.map(|n| n.get())).collect()
}

/// Returns the lines of an excerpt that are not included yet. Returns `None` if they are useless:
/// blank, or without the name that the excerpt is about.
fn unseen<'g>(excerpt: &'g Excerpt, seen: &BTreeSet<u32>) -> Option<NumberedLines<'g>> {
    let lines = excerpt
        .lines
        .iter()
        .map(|(number, text)| (*number, text.as_str()));
    let lines: NumberedLines<'_> = lines.filter(|(number, _)| !seen.contains(number)).collect();
    let says_something = match excerpt.why {
        Why::Call | Why::CallOfNew | Why::Test if lines.len() < excerpt.lines.len() => lines
            .iter()
            .any(|(_, text)| excerpt.names().any(|name| text.contains(name))),
        _ => lines
            .iter()
            .any(|(_, text)| text.chars().any(char::is_alphanumeric)),
    };
    says_something.then_some(lines)
}

fn heading(e: &Excerpt, lines: &[(u32, &str)], out: &mut String) {
    let (first, last) = match lines {
        [] => (0, 0),
        [(only, _)] => (*only, *only),
        [(first, _), .., (last, _)] => (*first, *last),
    };
    let place = format!("{}:{first}-{last}", e.path);
    let alias = if e.alias.is_empty() {
        String::new()
    } else {
        format!(" (imported as {})", e.alias)
    };
    let inside = if e.inside.is_empty() {
        String::new()
    } else {
        format!(" in {}", e.inside)
    };
    let _ = match e.why {
        Why::Around | Why::File => writeln!(out, "{place}"),
        Why::DefinitionHere | Why::Owner | Why::Definition => {
            writeln!(out, "{place}: definition of {}{alias}", e.name)
        }
        Why::Override => writeln!(out, "{place}: override of {}{inside}", e.name),
        Why::Nearby => writeln!(out, "{place}: signature of {}{alias}", e.name),
        Why::CallOfNew | Why::Call => writeln!(out, "{place}: use of {}{alias}{inside}", e.name),
        Why::Test => writeln!(out, "{place}: test of {}{alias}{inside}", e.name),
    };
}

/// Counts excerpts by kind.
fn counted(excerpts: &[&Excerpt]) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for e in excerpts {
        let kind = match e.why {
            Why::Around | Why::File => "functions around hunks",
            Why::DefinitionHere | Why::Owner | Why::Definition => "definitions",
            Why::Override => "overrides",
            Why::Nearby => "signatures",
            Why::CallOfNew | Why::Call => "uses",
            Why::Test => "tests",
        };
        *counts.entry(kind).or_default() += 1;
    }
    counts
        .iter()
        .map(|(kind, n)| format!("{n} {kind}"))
        .collect::<Vec<_>>()
        .join(", ")
}

/// Lists the numbers of omitted overrides, uses and tests for each name.
fn further(all: &[&Beyond]) -> String {
    let named = all.iter().take(MAX_NAMES);
    let mut named: Vec<String> = named
        .map(|b| format!("{} more {} of {}", b.count, use_kind(b.why), b.name))
        .collect();
    let rest: usize = all.iter().skip(MAX_NAMES).map(|b| b.count).sum();
    if rest > 0 {
        named.push(format!("{rest} of other names"));
    }
    named.join(", ")
}

/// Returns the plural name of the kind of omitted excerpts.
fn use_kind(why: Why) -> &'static str {
    match why {
        Why::Override => "overrides",
        Why::Test => "tests",
        _ => "uses",
    }
}

/// Returns the lines of a file between two line numbers, exclusive.
pub(super) fn between<'g>(
    lines: &BTreeMap<u32, &'g str>,
    after: u32,
    before: u32,
) -> Vec<(u32, &'g str)> {
    if after >= before {
        return Vec::new();
    }
    lines
        .range(after + 1..before)
        .map(|(number, text)| (*number, *text))
        .collect()
}
