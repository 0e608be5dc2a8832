//! A filter for words: it rejects most of those that are not in a table before the table is
//! searched. The build script uses it, too.

/// Bits of a filter.
pub(super) const SLOTS: usize = 8192;

/// Returns the bit of a word.
pub(super) fn slot(word: &[u8]) -> usize {
    let last = word.len().saturating_sub(1);
    (byte(word, 0)
        + 31 * byte(word, last)
        + 131 * byte(word, last / 2)
        + 1009 * byte(word, last / 3)
        + 257 * word.len())
        % SLOTS
}

/// Returns a byte of a word, or 0 after its end.
fn byte(word: &[u8], at: usize) -> usize {
    word.get(at).copied().map_or(0, usize::from)
}
