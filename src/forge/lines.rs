//! Finds the lines that a pull request's page shows, and so can be commented on. Pure.

use crate::diff::{LineKind, RepoPath};
use crate::finding::LineSpan;
use crate::review::{Numbers, Record, Run};
use std::collections::HashMap;

/// The lines of a change that are shown: the lines of its hunks.
#[derive(Clone, Debug, Default)]
pub struct ShownLines(HashMap<String, ShownFile>);

#[derive(Clone, Debug)]
struct ShownFile {
    old: Option<String>,
    /// Lines of each hunk on the new side, in order.
    hunks: Vec<Vec<NewSideLine>>,
}

/// A line of the new side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewSideLine {
    /// From 1.
    pub new: u32,
    /// `None`: the line was added.
    pub old: Option<u32>,
    /// Preceding line in the old file, 0 at the top; for an unchanged line, its own number there.
    pub behind: u32,
}

/// The position of a comment: lines of one hunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommentSpot {
    /// Path on the new side.
    pub path: String,
    /// Path on the old side; `None` if the file is new.
    pub old_path: Option<String>,
    pub first: NewSideLine,
    /// Never above `first`.
    pub last: NewSideLine,
    /// Whether all requested lines are included.
    pub whole: bool,
}

impl ShownLines {
    /// Adds lines whose text is not in a record.
    #[must_use]
    pub fn and(mut self, all: &[Numbers]) -> Self {
        for numbers in all {
            let Some(path) = text_of(&numbers.new) else {
                continue;
            };
            let hunks = numbers
                .hunks
                .iter()
                .map(|runs| runs.iter().flat_map(lines_of).collect())
                .collect();
            self.0.insert(
                path,
                ShownFile {
                    old: numbers.old.as_ref().and_then(text_of),
                    hunks,
                },
            );
        }
        self
    }

    /// Reads the lines of a recorded change. An unreadable record has none.
    pub fn of(record: &Record) -> Self {
        let mut out = HashMap::new();
        let all = Record::read(&record.text).unwrap_or_default();
        // A pull request shows the net change.
        for (_, change) in all.into_iter().filter(|(commit, _)| commit.is_none()) {
            let (Some(text), Some(new)) = (change.text(), &change.entry.new) else {
                continue;
            };
            let Ok(path) = String::from_utf8(new.path.as_bytes().to_vec()) else {
                continue;
            };
            let old = change
                .entry
                .old
                .as_ref()
                .and_then(|s| String::from_utf8(s.path.as_bytes().to_vec()).ok());
            let mut hunks = Vec::new();
            for hunk in &text.hunks {
                let mut lines = Vec::new();
                let mut behind = hunk.old.start.saturating_sub(1);
                for line in text.lines(hunk) {
                    if let Some(old) = line.old {
                        behind = old.get();
                    }
                    if let Some(new) = line.new {
                        let old = line
                            .old
                            .filter(|_| line.kind == LineKind::Context)
                            .map(|n| n.get());
                        lines.push(NewSideLine {
                            new: new.get(),
                            old,
                            behind,
                        });
                    }
                }
                hunks.push(lines);
            }
            out.insert(path, ShownFile { old, hunks });
        }
        Self(out)
    }

    /// Finds the position for a comment on lines of a file: as many of them as one hunk shows,
    /// preferring added lines. Returns `None` if none of the lines is shown.
    pub fn spot(&self, path: &str, span: LineSpan) -> Option<CommentSpot> {
        let file = self.0.get(path)?;
        let (first, last) = (span.first.get(), span.last.get());
        let shown = file.hunks.iter().map(|h| {
            h.iter()
                .filter(|at| (first..=last).contains(&at.new))
                .copied()
                .collect::<Vec<_>>()
        });
        let best = shown
            .filter(|h| !h.is_empty())
            .max_by_key(|h| h.iter().filter(|at| at.old.is_none()).count())?;
        let (from, to) = (*best.first()?, *best.last()?);
        let whole = from.new == first && to.new == last;
        Some(CommentSpot {
            path: path.to_owned(),
            old_path: file.old.clone(),
            first: from,
            last: to,
            whole,
        })
    }
}

/// Returns a path as text; `None` if it is not UTF-8, so that a forge cannot name it.
fn text_of(path: &RepoPath) -> Option<String> {
    String::from_utf8(path.as_bytes().to_vec()).ok()
}

/// Returns the lines of a run.
fn lines_of(run: &Run) -> impl Iterator<Item = NewSideLine> {
    (0..run.count).map(|i| match run.is_added {
        true => NewSideLine {
            new: run.new + i,
            old: None,
            behind: run.old,
        },
        false => NewSideLine {
            new: run.new + i,
            old: Some(run.old + i),
            behind: run.old + i,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::{NewSideLine, ShownLines};
    use crate::diff::LineNo;
    use crate::finding::LineSpan;
    use crate::review::Record;

    const CHANGE: &str = "diff --git a/old.rs b/new.rs\nsimilarity index 80%\nrename from old.rs\nrename to new.rs\n\
        --- a/old.rs\n+++ b/new.rs\n@@ -10,4 +10,5 @@\n a\n-b\n+B\n+C\n d\n e\n@@ -50,2 +51,3 @@\n x\n+y\n z\n\
        diff --git a/add.rs b/add.rs\nnew file mode 100644\n--- /dev/null\n+++ b/add.rs\n@@ -0,0 +1,2 @@\n+one\n+two\n\
        diff --git a/gone.rs b/gone.rs\ndeleted file mode 100644\n--- a/gone.rs\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n";

    fn spot(path: &str, first: u32, last: u32) -> Option<(NewSideLine, NewSideLine, bool)> {
        let lines = ShownLines::of(&Record {
            text: CHANGE.as_bytes().to_vec(),
            left_out: Vec::new(),
        });
        let (first, last) = (LineNo::new(first).unwrap(), LineNo::new(last).unwrap());
        let spot = lines.spot(
            path,
            LineSpan {
                first,
                last,
                columns: None,
            },
        )?;
        Some((spot.first, spot.last, spot.whole))
    }

    #[test]
    fn comments_go_to_lines_that_a_hunk_shows() {
        fn at(new: u32, old: Option<u32>, behind: u32) -> NewSideLine {
            NewSideLine { new, old, behind }
        }
        assert_eq!(
            spot("new.rs", 11, 11),
            Some((at(11, None, 11), at(11, None, 11), true))
        );
        assert_eq!(
            spot("new.rs", 10, 12),
            Some((at(10, Some(10), 10), at(12, None, 11), true))
        );
        assert_eq!(
            spot("new.rs", 13, 13),
            Some((at(13, Some(12), 12), at(13, Some(12), 12), true))
        );
        // Limited to shown lines; of two hunks, the one with more added lines.
        assert_eq!(
            spot("new.rs", 5, 11).map(|s| (s.0.new, s.1.new, s.2)),
            Some((10, 11, false))
        );
        assert_eq!(
            spot("new.rs", 12, 60).map(|s| (s.0.new, s.1.new, s.2)),
            Some((51, 53, false))
        );
        assert_eq!(
            spot("add.rs", 2, 2),
            Some((at(2, None, 0), at(2, None, 0), true))
        );
    }

    #[test]
    fn what_is_not_shown_has_no_place() {
        for (path, line) in [
            ("new.rs", 9),
            ("new.rs", 30),
            ("old.rs", 10),
            ("gone.rs", 1),
            ("other.rs", 1),
        ] {
            assert_eq!(spot(path, line, line), None, "{path}:{line}");
        }
    }
}
