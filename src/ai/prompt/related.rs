//! Picks the related code that fits beside a chunk, and writes it.

use super::show;
use crate::ai::material::{Group, Shown};
use crate::ai::plan::Chunk;
use crate::ai::related::{Excerpt, Why};
use crate::rules::is_test_path;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// The related code of a chunk.
#[derive(Debug, Default)]
pub(super) struct Picked<'g> {
    /// Lines around hunks, by file and number.
    around: BTreeMap<usize, BTreeMap<u32, &'g str>>,
    /// The other excerpts, in order.
    others: Vec<&'g Excerpt>,
    left_out: Vec<&'g Excerpt>,
}

impl<'g> Picked<'g> {
    /// Picks what is worth most, as far as the chunk's room goes.
    pub(super) fn of(group: &'g Group, chunk: &Chunk) -> Self {
        let is_about = |e: &&Excerpt| {
            let piece = chunk.pieces.iter().find(|p| p.file == e.file);
            piece.is_some_and(|p| p.hunks.iter().any(|h| e.hunks.contains(&h.hunk)))
        };
        let mut wanted: Vec<&Excerpt> = group.related.excerpts.iter().filter(is_about).collect();
        let is_of_test = |e: &Excerpt| is_test_path(group.files[e.file].path().as_bytes());
        wanted.sort_by_key(|e| (e.why > Why::File && is_of_test(e), e.why.max(Why::File)));
        Self::fit(group, wanted, chunk.room)
    }

    /// Takes excerpts in order while they fit.
    pub(super) fn fit(group: &'g Group, wanted: Vec<&'g Excerpt>, room: usize) -> Self {
        let mut picked = Self::default();
        let mut left = room;
        for excerpt in wanted {
            let lines = match excerpt.why {
                Why::Around | Why::File => unseen(&group.files[excerpt.file], excerpt),
                _ => Vec::new(),
            };
            let size = match excerpt.why {
                Why::Around | Why::File => lines.iter().map(|(_, text)| text.len() + 9).sum(),
                _ => excerpt.size(),
            };
            match left.checked_sub(size) {
                None => picked.left_out.push(excerpt),
                Some(rest) => {
                    left = rest;
                    match excerpt.why {
                        Why::Around | Why::File => picked.around.entry(excerpt.file).or_default().extend(lines),
                        _ => picked.others.push(excerpt),
                    }
                }
            }
        }
        picked
    }

    /// Returns the lines of a file to show around the hunks of a piece, by number.
    pub(super) fn around(&self, file: usize) -> Option<&BTreeMap<u32, &'g str>> {
        self.around.get(&file)
    }

    /// Returns the lines of the excerpts that are not part of the change's own files.
    pub(super) fn lines(&self) -> impl Iterator<Item = &'g str> + use<'g, '_> {
        self.others.iter().flat_map(|e| &e.lines).map(|(_, text)| text.as_str())
    }

    /// Writes the excerpts that are not part of the change's own files; empty if there are none.
    pub(super) fn write(&self) -> String {
        let mut out = String::new();
        for excerpt in &self.others {
            heading(excerpt, &mut out);
            let lines: Vec<(u32, &str)> = excerpt.lines.iter().map(|(n, text)| (*n, text.as_str())).collect();
            show::unchanged(&lines, &mut out);
            out.push('\n');
        }
        if !self.left_out.is_empty() {
            let _ = writeln!(out, "(left out for lack of room: {})", counted(&self.left_out));
        }
        out
    }
}

/// Returns the lines of an excerpt that no hunk of the file shows.
fn unseen<'g>(file: &Shown, excerpt: &'g Excerpt) -> Vec<(u32, &'g str)> {
    let seen: BTreeSet<u32> = file.hunks.iter().flat_map(|h| &h.lines).filter_map(|l| l.new.map(|n| n.get())).collect();
    let lines = excerpt.lines.iter().map(|(number, text)| (*number, text.as_str()));
    lines.filter(|(number, _)| !seen.contains(number)).collect()
}

fn heading(e: &Excerpt, out: &mut String) {
    let (first, last) = e.ends();
    let place = format!("{}:{first}-{last}", e.path);
    let inside = if e.inside.is_empty() { String::new() } else { format!(" in {}", e.inside) };
    let _ = match e.why {
        Why::Around | Why::File => writeln!(out, "{place}"),
        Why::DefinitionHere | Why::Owner | Why::Definition => writeln!(out, "{place}: definition of {}", e.name),
        Why::CallOfNew | Why::Call => writeln!(out, "{place}: use of {}{inside}", e.name),
        Why::Test => writeln!(out, "{place}: test of {}{inside}", e.name),
    };
}

/// Counts excerpts by kind.
fn counted(excerpts: &[&Excerpt]) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for e in excerpts {
        let kind = match e.why {
            Why::Around | Why::File => "functions around hunks",
            Why::DefinitionHere | Why::Owner | Why::Definition => "definitions",
            Why::CallOfNew | Why::Call => "uses",
            Why::Test => "tests",
        };
        *counts.entry(kind).or_default() += 1;
    }
    counts.iter().map(|(kind, n)| format!("{n} {kind}")).collect::<Vec<_>>().join(", ")
}

/// Returns the lines of a file that stand before a line and behind another one; both are left out.
pub(super) fn between<'g>(lines: &BTreeMap<u32, &'g str>, after: u32, before: u32) -> Vec<(u32, &'g str)> {
    if after >= before {
        return Vec::new();
    }
    lines.range(after + 1..before).map(|(number, text)| (*number, *text)).collect()
}
