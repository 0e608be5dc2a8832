//! A line of text input: characters and a cursor. Pure.

use super::key::Key;

/// Characters of a line, at most.
const MOST: usize = 1_000;

/// A line with a cursor.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Line {
    chars: Vec<char>,
    /// Index of the character after the cursor.
    cursor: usize,
}

impl Line {
    /// Creates a line with the cursor at its end.
    pub fn new(text: &str) -> Self {
        let chars: Vec<char> = text.chars().take(MOST).collect();
        Self { cursor: chars.len(), chars }
    }

    pub fn text(&self) -> String {
        self.chars.iter().collect()
    }

    /// Returns the text before the cursor, and the rest.
    pub fn parts(&self) -> (String, String) {
        let (before, after) = self.chars.split_at(self.cursor);
        (before.iter().collect(), after.iter().collect())
    }

    /// Inserts text at the cursor. Line ends and other control characters become spaces.
    pub fn insert(&mut self, text: &str) {
        for c in text.trim_end_matches(['\r', '\n']).chars() {
            if self.chars.len() < MOST {
                self.chars.insert(self.cursor, if c.is_control() { ' ' } else { c });
                self.cursor += 1;
            }
        }
    }

    /// Applies an editing key. Returns false for other keys.
    pub fn press(&mut self, key: Key) -> bool {
        match key {
            Key::Char(c) => self.insert(c.encode_utf8(&mut [0; 4])),
            Key::Backspace => self.delete(self.cursor.saturating_sub(1)..self.cursor),
            Key::Delete => self.delete(self.cursor..(self.cursor + 1).min(self.chars.len())),
            Key::Left => self.cursor = self.cursor.saturating_sub(1),
            Key::Right => self.cursor = (self.cursor + 1).min(self.chars.len()),
            Key::Home | Key::Ctrl('a') => self.cursor = 0,
            Key::End | Key::Ctrl('e') => self.cursor = self.chars.len(),
            Key::Ctrl('u') => self.delete(0..self.cursor),
            Key::Ctrl('k') => self.delete(self.cursor..self.chars.len()),
            Key::Ctrl('w') => self.delete(self.word()..self.cursor),
            _ => return false,
        }
        true
    }

    fn delete(&mut self, range: std::ops::Range<usize>) {
        self.cursor = range.start;
        self.chars.drain(range);
    }

    /// Returns the start of the word before the cursor.
    fn word(&self) -> usize {
        let before = &self.chars[..self.cursor];
        let end = before.iter().rposition(|c| !c.is_whitespace()).map_or(0, |i| i + 1);
        before[..end].iter().rposition(|c| c.is_whitespace()).map_or(0, |i| i + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_edit_the_line() {
        let mut line = Line::default();
        for key in ['o', 'n', 'e', ' ', 't', 'w', 'o'].map(Key::Char) {
            assert!(line.press(key));
        }
        for (key, parts) in [
            (Key::Left, ("one tw", "o")),
            (Key::Backspace, ("one t", "o")),
            (Key::Delete, ("one t", "")),
            (Key::Ctrl('w'), ("one ", "")),
            (Key::Home, ("", "one ")),
            (Key::Right, ("o", "ne ")),
            (Key::Ctrl('k'), ("o", "")),
            (Key::Ctrl('u'), ("", "")),
            (Key::Backspace, ("", "")),
            (Key::Delete, ("", "")),
            (Key::Left, ("", "")),
        ] {
            line.press(key);
            assert_eq!(line.parts(), (parts.0.to_owned(), parts.1.to_owned()), "{key:?}");
        }
        assert!(!line.press(Key::Enter));
    }

    #[test]
    fn pasted_line_ends_are_spaces_and_a_line_has_a_bound() {
        let mut line = Line::new("a");
        line.insert("b\nc\x1b\r\n");
        assert_eq!(line.text(), "ab c ");
        line.insert(&"x".repeat(5_000));
        assert_eq!(line.text().chars().count(), MOST);
    }
}
