//! Keys that move in a list or a text. Pure.

use super::key::KeyPress;

/// Returns the number of rows by which a key moves; `None` for other keys. `page` is the distance
/// of a page key.
pub(super) fn rows(key: KeyPress, page: usize) -> Option<isize> {
    let page = isize::try_from(page).unwrap_or(isize::MAX);
    match key {
        KeyPress::Down | KeyPress::Char('j') => Some(1),
        KeyPress::Up | KeyPress::Char('k') => Some(-1),
        KeyPress::PageDown | KeyPress::Ctrl('d' | 'f') => Some(page),
        KeyPress::PageUp | KeyPress::Ctrl('u' | 'b') => Some(-page),
        KeyPress::End | KeyPress::Char('G') => Some(isize::MAX),
        KeyPress::Home | KeyPress::Char('g') => Some(-isize::MAX),
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
            (KeyPress::Down, 6),
            (KeyPress::Char('k'), 4),
            (KeyPress::PageDown, 8),
            (KeyPress::Ctrl('d'), 8),
            (KeyPress::PageUp, 2),
            (KeyPress::End, 9),
            (KeyPress::Char('g'), 0),
        ] {
            assert_eq!(
                rows(key, 3).map(|by| moved(5, by, 9)),
                Some(expected),
                "{key:?}"
            );
        }
        assert_eq!(rows(KeyPress::Char('x'), 3), None);
        assert_eq!(
            rows(KeyPress::PageUp, usize::MAX).map(|by| moved(5, by, 9)),
            Some(0)
        );
        assert_eq!(moved(3, 1, 0), 0);
    }
}
