//! Keys that move in a list or a text. Pure.

use super::key::Key;

/// Returns the number of rows by which a key moves; `None` for other keys. `page` is the distance of a page key.
pub(super) fn rows(key: Key, page: usize) -> Option<isize> {
    let page = isize::try_from(page).unwrap_or(isize::MAX);
    match key {
        Key::Down | Key::Char('j') => Some(1),
        Key::Up | Key::Char('k') => Some(-1),
        Key::PageDown | Key::Ctrl('d' | 'f') => Some(page),
        Key::PageUp | Key::Ctrl('u' | 'b') => Some(-page),
        Key::End | Key::Char('G') => Some(isize::MAX),
        Key::Home | Key::Char('g') => Some(-isize::MAX),
        _ => None,
    }
}

/// Returns a row after a move, limited to the first and the last one.
pub(super) fn moved(row: usize, by: isize, last: usize) -> usize {
    row.saturating_add_signed(by).min(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_moves_by_a_row_a_page_or_to_an_end() {
        for (key, expected) in [
            (Key::Down, 6),
            (Key::Char('k'), 4),
            (Key::PageDown, 8),
            (Key::Ctrl('d'), 8),
            (Key::PageUp, 2),
            (Key::End, 9),
            (Key::Char('g'), 0),
        ] {
            assert_eq!(rows(key, 3).map(|by| moved(5, by, 9)), Some(expected), "{key:?}");
        }
        assert_eq!(rows(Key::Char('x'), 3), None);
        assert_eq!(rows(Key::PageUp, usize::MAX).map(|by| moved(5, by, 9)), Some(0));
        assert_eq!(moved(3, 1, 0), 0);
    }
}
