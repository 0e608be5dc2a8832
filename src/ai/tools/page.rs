//! Builds a result of limited size, and records the lines that it contains.

use crate::ai::ask::Read;
use crate::diff::{LineNo, RepoPath};
use std::borrow::Cow;

/// Bytes that are reserved for the last line, which states the omissions.
const LAST: usize = 240;

/// A result under construction.
#[derive(Debug)]
pub(super) struct ResultPage {
    text: String,
    /// Bytes of the result, at most.
    room: usize,
    read: Vec<Read>,
}

impl ResultPage {
    /// Creates a result of at most `room` bytes.
    pub(super) fn new(room: usize) -> Self {
        Self {
            text: String::new(),
            room,
            read: Vec::new(),
        }
    }

    /// Adds a line that is not from a file. Returns false if it does not fit.
    #[must_use]
    pub(super) fn say(&mut self, line: &str) -> bool {
        if self.text.len() + line.len() + 1 + LAST > self.room {
            return false;
        }
        self.text.push_str(line);
        self.text.push('\n');
        true
    }

    /// Adds a line of a file, and records it. Returns false if it does not fit. The text must not
    /// contain a line end, or a character that readers treat as one.
    #[must_use]
    pub(super) fn show(&mut self, path: &RepoPath, line: LineNo, text: &str) -> bool {
        let shown = self.say(&format!("{line}: {text}"));
        if shown {
            match self.read.last_mut() {
                Some(r) if r.path == *path && r.last.get() + 1 == line.get() => r.last = line,
                Some(r) if r.path == *path && (r.first..=r.last).contains(&line) => {}
                _ => self.read.push(Read {
                    path: path.clone(),
                    first: line,
                    last: line,
                }),
            }
        }
        shown
    }

    /// Adds the last line, truncated to the remaining room.
    pub(super) fn close(&mut self, line: &str) {
        let left = self.room.saturating_sub(self.text.len());
        self.text.push_str(&cut(line, left));
    }

    /// Returns the result and the recorded lines.
    pub(super) fn finish(mut self) -> (String, Vec<Read>) {
        if self.text.ends_with('\n') {
            self.text.pop();
        }
        (self.text, self.read)
    }
}

/// Truncates a line to about `max` bytes, and appends the number of omitted bytes.
pub(super) fn cut(line: &str, max: usize) -> Cow<'_, str> {
    if line.len() <= max {
        return Cow::Borrowed(line);
    }
    let end = line.floor_char_boundary(max.saturating_sub(omitted(line.len()).len()));
    Cow::Owned(format!("{}{}", &line[..end], omitted(line.len() - end)))
}

/// Formats the number of omitted bytes.
fn omitted(bytes: usize) -> String {
    format!(" … ({bytes} bytes more)")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_line_stays_within_its_bytes_and_says_what_is_left_out() {
        assert_eq!(cut("short", 5), "short");
        let long = "é".repeat(100);
        let shown = cut(&long, 61);
        assert!(
            shown.len() <= 61 && shown.ends_with(" bytes more)"),
            "{shown}"
        );
    }

    #[test]
    fn neighbours_become_one_range_and_an_answer_keeps_its_bound() {
        let path = RepoPath::from("a");
        let line = |n| LineNo::new(n).unwrap_or(LineNo::FIRST);
        let mut page = ResultPage::new(300);
        for n in [1, 2, 3, 7] {
            assert!(page.show(&path, line(n), "x"));
        }
        assert!(!page.show(&path, line(8), &"y".repeat(100)));
        page.close(&"z".repeat(1000));
        let (text, read) = page.finish();
        assert!(text.len() <= 300);
        let ranges: Vec<_> = read.iter().map(|r| (r.first.get(), r.last.get())).collect();
        assert_eq!(ranges, [(1, 3), (7, 7)]);
    }
}
