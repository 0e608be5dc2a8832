//! A line of text input: characters and a cursor. Pure.

use super::key::KeyPress;

/// Characters of a line, at most.
const MOST: usize = 1_000;

/// A line with a cursor.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InputLine {
    chars: Vec<char>,
    /// Index of the character after the cursor.
    cursor: usize,
}

impl InputLine {
    /// Creates a line with the cursor at its end.
    pub fn new(text: &str) -> Self {
        let chars: Vec<char> = text.chars().take(MOST).collect();
        Self {
            cursor: chars.len(),
            chars,
        }
    }

    /// Returns the text of the line.
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
                self.chars
                    .insert(self.cursor, if c.is_control() { ' ' } else { c });
                self.cursor += 1;
            }
        }
    }

    /// Applies an editing key. Returns false for other keys.
    pub fn press(&mut self, key: KeyPress) -> bool {
        match key {
            KeyPress::Char(c) => self.insert(c.encode_utf8(&mut [0; 4])),
            KeyPress::Backspace => self.delete(self.cursor.saturating_sub(1)..self.cursor),
            KeyPress::Delete => self.delete(self.cursor..(self.cursor + 1).min(self.chars.len())),
            KeyPress::Left => self.cursor = self.cursor.saturating_sub(1),
            KeyPress::Right => self.cursor = (self.cursor + 1).min(self.chars.len()),
            KeyPress::Home | KeyPress::Ctrl('a') => self.cursor = 0,
            KeyPress::End | KeyPress::Ctrl('e') => self.cursor = self.chars.len(),
            KeyPress::Ctrl('u') => self.delete(0..self.cursor),
            KeyPress::Ctrl('k') => self.delete(self.cursor..self.chars.len()),
            KeyPress::Ctrl('w') => self.delete(self.word()..self.cursor),
            _ => return false,
        }
        true
    }

    /// Deletes characters, and moves the cursor to their start.
    fn delete(&mut self, range: std::ops::Range<usize>) {
        self.cursor = range.start;
        self.chars.drain(range);
    }

    /// Returns the start of the word before the cursor.
    fn word(&self) -> usize {
        let before = &self.chars[..self.cursor];
        let end = before
            .iter()
            .rposition(|c| !c.is_whitespace())
            .map_or(0, |i| i + 1);
        before[..end]
            .iter()
            .rposition(|c| c.is_whitespace())
            .map_or(0, |i| i + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_edit_the_line() {
        let mut line = InputLine::default();
        for key in ['o', 'n', 'e', ' ', 't', 'w', 'o'].map(KeyPress::Char) {
            assert!(line.press(key));
        }
        for (key, parts) in [
            (KeyPress::Left, ("one tw", "o")),
            (KeyPress::Backspace, ("one t", "o")),
            (KeyPress::Delete, ("one t", "")),
            (KeyPress::Ctrl('w'), ("one ", "")),
            (KeyPress::Home, ("", "one ")),
            (KeyPress::Right, ("o", "ne ")),
            (KeyPress::Ctrl('k'), ("o", "")),
            (KeyPress::Ctrl('u'), ("", "")),
            (KeyPress::Backspace, ("", "")),
            (KeyPress::Delete, ("", "")),
            (KeyPress::Left, ("", "")),
        ] {
            line.press(key);
            assert_eq!(
                line.parts(),
                (parts.0.to_owned(), parts.1.to_owned()),
                "{key:?}"
            );
        }
        assert!(!line.press(KeyPress::Enter));
    }

    #[test]
    fn pasted_line_ends_are_spaces_and_a_line_has_a_bound() {
        let mut line = InputLine::new("a");
        line.insert("b\nc\x1b\r\n");
        assert_eq!(line.text(), "ab c ");
        line.insert(&"x".repeat(5_000));
        assert_eq!(line.text().chars().count(), MOST);
    }
}
