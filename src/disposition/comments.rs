//! Comments of people in a file of decisions, which stay when the program writes the file.

use std::collections::BTreeMap;

/// The comments of a file, by their subject.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Comments {
    /// Comments on the file, before its version.
    pub(super) head: Vec<String>,
    /// Comments on entries, by fingerprint.
    pub(super) of_entries: BTreeMap<String, Vec<String>>,
    /// Comments after the last entry.
    pub(super) foot: Vec<String>,
}

impl Comments {
    /// Collects the comments of a valid file. `fingerprints` has those of its entries, in the order
    /// of the file; `own` has the lines that the program writes.
    pub(super) fn of(text: &str, fingerprints: &[&str], own: &[&str]) -> Self {
        let mut reader = CommentReader {
            out: Self::default(),
            fingerprints,
            current: None,
            pending: Vec::new(),
        };
        let mut is_after_blank = false;
        for line in lines(text) {
            let is_own = line.comment.is_some_and(|c| own.contains(&c));
            let comment = line.comment.filter(|_| !is_own).map(str::to_owned);
            match (line.kind, comment) {
                (CodeKind::Blank, None) => is_after_blank |= line.comment.is_none(),
                (CodeKind::Blank, Some(comment)) => reader.pending.push((comment, is_after_blank)),
                (kind, comment) => {
                    reader.code(kind == CodeKind::Entry);
                    is_after_blank = false;
                    reader.here().extend(comment);
                }
            }
        }
        reader.end()
    }
}

/// The state of [`Comments::of`].
struct CommentReader<'a> {
    out: Comments,
    fingerprints: &'a [&'a str],
    /// Index of the current entry; `None` before the first.
    current: Option<usize>,
    /// Comments on separate lines whose subject is not known yet, and whether a blank line
    /// separates them from the code above.
    pending: Vec<(String, bool)>,
}

impl CommentReader<'_> {
    /// Handles a line of code. A comment above the first line of an entry is about it, unless it
    /// directly follows another entry.
    fn code(&mut self, is_entry: bool) {
        let pending = std::mem::take(&mut self.pending);
        let was_before = self.current.is_none();
        let (next, here): (Vec<_>, Vec<_>) = pending
            .into_iter()
            .partition(|(_, is_apart)| is_entry && (*is_apart || was_before));
        self.here()
            .extend(here.into_iter().map(|(comment, _)| comment));
        if is_entry {
            self.current = Some(self.current.map_or(0, |at| at + 1));
        }
        self.here()
            .extend(next.into_iter().map(|(comment, _)| comment));
    }

    /// Returns the comments of the current entry.
    fn here(&mut self) -> &mut Vec<String> {
        match self.current.and_then(|at| self.fingerprints.get(at)) {
            Some(fingerprint) => self
                .out
                .of_entries
                .entry((*fingerprint).to_owned())
                .or_default(),
            None => &mut self.out.head,
        }
    }

    /// Returns the comments; those after the last entry belong to the file.
    fn end(mut self) -> Comments {
        let pending = std::mem::take(&mut self.pending);
        for (comment, is_apart) in pending {
            let place = if is_apart {
                &mut self.out.foot
            } else {
                self.here()
            };
            place.push(comment);
        }
        self.out
            .of_entries
            .retain(|_, comments| !comments.is_empty());
        self.out
    }
}

/// The kind of code on a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CodeKind {
    Blank,
    /// The first line of an entry.
    Entry,
    Other,
}

/// A line, and its comment from `#` on.
#[derive(Debug)]
struct TomlLine<'t> {
    kind: CodeKind,
    comment: Option<&'t str>,
}

/// Splits a TOML text into lines. A `#` inside a string does not start a comment, and strings can
/// have several lines.
fn lines(text: &str) -> Vec<TomlLine<'_>> {
    let mut inside: Option<&'static str> = None;
    text.lines().map(|line| read(line, &mut inside)).collect()
}

/// Parses one line. `inside` is the mark that ends the string in which the line starts.
fn read<'t>(line: &'t str, inside: &mut Option<&'static str>) -> TomlLine<'t> {
    let starts_inside = inside.is_some();
    let mut at = 0;
    let mut comment = None;
    while at < line.len() {
        let rest = &line[at..];
        at += match *inside {
            Some(mark) if rest.starts_with(mark) => {
                *inside = None;
                mark.len()
            }
            // An escape includes the next character.
            Some("\"" | "\"\"\"") if rest.starts_with('\\') => {
                1 + rest[1..].chars().next().map_or(0, char::len_utf8)
            }
            None if rest.starts_with('#') => {
                comment = Some(rest.trim_end());
                break;
            }
            None => match ["\"\"\"", "'''", "\"", "'"]
                .into_iter()
                .find(|mark| rest.starts_with(mark))
            {
                Some(mark) => {
                    *inside = Some(mark);
                    mark.len()
                }
                None => rest.chars().next().map_or(1, char::len_utf8),
            },
            Some(_) => rest.chars().next().map_or(1, char::len_utf8),
        };
    }
    // Strings with a single mark end with their line.
    *inside = inside.filter(|mark| mark.len() > 1);
    let code = line[..line.len() - comment.map_or(0, |_| line.len() - at)].trim();
    let kind = match code {
        _ if starts_inside => CodeKind::Other,
        "" => CodeKind::Blank,
        code if code.starts_with("[[") => CodeKind::Entry,
        _ => CodeKind::Other,
    };
    TomlLine { kind, comment }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_are_about_the_entry_below_or_around_them() {
        let text = "# own\n# of the file\nversion = 1 # beside\n\n# first\n[[disposition]]\nline = \"# \\\" no\" # in it\n# in it too\nreason = \"\"\"\n# no\n\"\"\"\n# after\n\n# second\n[[disposition]]\nline = '# no'\n\n# end\n";
        let comments = Comments::of(text, &["a", "b"], &["# own"]);
        assert_eq!(comments.head, ["# of the file", "# beside"]);
        assert_eq!(
            comments.of_entries["a"],
            ["# first", "# in it", "# in it too", "# after"]
        );
        assert_eq!(comments.of_entries["b"], ["# second"]);
        assert_eq!(comments.foot, ["# end"]);
    }

    #[test]
    fn a_file_without_comments_has_none() {
        assert_eq!(
            Comments::of(
                "version = 1\n\n[[disposition]]\nline = \"a # b\"\n",
                &["a"],
                &[]
            ),
            Comments::default()
        );
    }
}
