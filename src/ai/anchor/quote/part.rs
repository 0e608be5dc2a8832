//! Parts of lines that identify the line.

use super::readings::without_ellipsis;
use crate::ai::anchor::lines::{fold, is_of_word};

/// Characters of a part that identifies its line, at least, with one space after each word.
const MIN_LENGTH: usize = 9;
/// Characters of all pieces of a part with omissions in the middle, at least.
const MIN_PIECES_LENGTH: usize = 12;

/// A folded part of a line that identifies the line.
#[derive(Debug)]
pub(super) struct IdentifyingPart {
    whole: String,
    /// Pieces between ellipses, in order; empty if nothing is omitted in the middle.
    pieces: Vec<String>,
}

impl IdentifyingPart {
    /// Parses a reading of a quote. Returns `None` if it is too short to identify a line.
    pub(super) fn of(reading: &str) -> Option<Self> {
        let bare = without_ellipsis(reading);
        if !is_identifying(bare) {
            return None;
        }
        let pieces = folded_pieces(bare);
        let has_pieces = pieces.len() > 1 && split(bare).any(is_identifying);
        Some(Self {
            whole: fold(bare),
            pieces: if has_pieces { pieces } else { Vec::new() },
        })
    }

    /// Returns true if a folded line contains the part, or its pieces in order.
    pub(super) fn is_in(&self, line: &str) -> bool {
        line.contains(&self.whole) || !self.pieces.is_empty() && has_in_order(line, &self.pieces)
    }
}

/// Returns true if a part of a line is long enough, and has two tokens, including a word. Brackets
/// and dashed rules are in many lines.
fn is_identifying(text: &str) -> bool {
    let words = text.split_whitespace();
    let length: usize = words.map(|word| word.chars().count() + 1).sum();
    length >= MIN_LENGTH && text.chars().any(is_of_word) && count_tokens(text) >= 2
}

/// Counts the tokens of a text: words, and runs of one punctuation character.
fn count_tokens(text: &str) -> usize {
    let mut previous = None;
    let mut count = 0;
    for c in text.chars() {
        let kind = if is_of_word(c) { 'a' } else { c };
        count += usize::from(!c.is_whitespace() && previous != Some(kind));
        previous = Some(kind);
    }
    count
}

/// Returns the pieces between ellipses.
fn split(text: &str) -> impl Iterator<Item = &str> {
    text.split("...").flat_map(|p| p.split('…'))
}

/// Returns the folded pieces between ellipses.
pub(super) fn folded_pieces(text: &str) -> Vec<String> {
    split(text).map(fold).collect()
}

/// Returns true if a folded line contains the pieces in order, and they are long enough to identify
/// it.
pub(super) fn has_in_order(line: &str, pieces: &[String]) -> bool {
    let mut rest = line;
    for piece in pieces {
        match rest.find(piece.as_str()) {
            Some(at) => rest = &rest[at + piece.len()..],
            None => return false,
        }
    }
    pieces.iter().map(|p| p.chars().count()).sum::<usize>() >= MIN_PIECES_LENGTH
}
