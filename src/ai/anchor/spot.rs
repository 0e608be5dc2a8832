//! Finds the quotes that a model gives as evidence, in the change or in a document.

use super::cite;
use super::lines::ChunkLines;
use super::path::ChangedPaths;
use super::quote::{Quote, QuoteFit};
use crate::ai::EvidenceSpot;
use crate::ai::material::Group;
use crate::ai::plan::Chunk;
use crate::diff::LineKind;

/// Lines of a quote that are stored, at most.
const KEPT: usize = 10;

/// Finds a quote in the text sent to the model. It must be equal except for white space,
/// typographic characters and a diff marker, be long enough to identify a line, and contain an
/// added or removed line. If `file` is given, the quote must be in that file.
pub fn spot(quote: &str, file: Option<&str>, group: &Group, chunk: &Chunk) -> Option<EvidenceSpot> {
    let quote = Quote::new(quote).filter(Quote::identifies_a_line)?;
    let lines = ChunkLines::new(group, chunk, None);
    let found = quote
        .find_equal(&lines, None)
        .filter(|f| f.fit == QuoteFit::Equal)?;
    let named = match file.map(str::trim).filter(|f| !f.is_empty()) {
        Some(name) => Some(ChangedPaths::new(&group.files).find(name)?),
        None => None,
    };
    let in_file = found
        .all
        .iter()
        .filter(|o| named.is_none_or(|f| lines.entries[o.first].file == f));
    let mut all = in_file.map(|o| &lines.entries[o.first..=o.last]);
    let entries = all.find(|entries| entries.iter().any(|e| e.shown.kind != LineKind::Context))?;
    let text: Vec<&str> = entries.iter().take(KEPT).map(|e| e.text).collect();
    Some(EvidenceSpot {
        file: lines.file(entries.first()?.file).path().clone(),
        line: entries.iter().find_map(|e| e.shown.new),
        quote: text.join("\n"),
    })
}

/// Returns true if a text contains the words, and they are long enough. Ignores white space, markup
/// and case.
pub fn says(text: &str, words: &str) -> bool {
    cite::holds(text, words)
}

/// Returns the number of the line, from 1, that contains the words. Returns `None` if they span
/// several lines.
pub fn line_of(text: &str, words: &str) -> Option<u32> {
    (1..)
        .zip(text.lines())
        .find(|(_, line)| says(line, words))
        .map(|(n, _)| n)
}

/// Returns the headings of a text, in order.
pub fn titles(text: &str) -> Vec<&str> {
    cite::outline(text)
        .into_iter()
        .map(|(title, _)| title)
        .collect()
}

/// Returns the headings of sections without content, not even a subsection.
pub fn empty_sections(text: &str) -> Vec<&str> {
    cite::outline(text)
        .into_iter()
        .filter(|(_, under)| under.trim().is_empty())
        .map(|(title, _)| title)
        .collect()
}
