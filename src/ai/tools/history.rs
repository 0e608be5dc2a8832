//! `history`: the commits that last changed lines of a file.
//!
//! Lines are traced back through the versions of the file, as in `git log -L`, along the parents
//! with the same version. A file is not traced to an earlier name.

use super::argument;
use super::page::{ResultPage, cut};
use crate::ai::tree::{Tree, Unread};
use crate::diff::{LineNo, RepoPath, replaced};
use crate::git::FileCommit;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::Value;
use std::ops::Range;

/// Lines that are traced, at most.
const MAX_LINES: u32 = 200;
/// Commits that are read, at most. Other requests wait meanwhile.
const MAX_COMMITS: u32 = 5_000;
/// Commits that a result shows, at most.
const MAX_SHOWN: usize = 8;
/// Removed lines, and added lines, of one commit that a result shows, at most.
const MAX_SIDE: usize = 12;
/// Bytes of a line, at most.
const MAX_LINE: usize = 300;

pub(super) fn call(
    tree: &Tree<'_>,
    arguments: &Value,
    mut page: ResultPage,
) -> Result<ResultPage, String> {
    let path = argument::file(tree, arguments)?;
    let name = tree.name(path);
    let now = tree
        .text(path)
        .map_err(|why: Unread| format!("`{name}` is not shown: {why}"))?;
    let count = u32::try_from(now.lines().count()).unwrap_or(u32::MAX);
    let first = argument::line(arguments, "first")?.unwrap_or(LineNo::FIRST);
    let last = argument::line(arguments, "last")?.unwrap_or(first);
    let (first, last) = (first.min(last).get(), first.max(last).get().min(count));
    if first > count {
        return Err(format!("`{name}` has only {count} lines"));
    }
    let last = last.min(first.saturating_add(MAX_LINES - 1));
    let tip = tree.tip();
    let Some((newest, state)) = tip.and_then(|tip| Some((tip.commit()?, tip))) else {
        return Err("the repository has no commits".to_owned());
    };
    if !page.say(&format!(
        "{name}, lines {first} to {last}, newest commit first:"
    )) {
        return Err("no room is left to show it: answer now".to_owned());
    }
    let mut past = Past {
        tree,
        path,
        text: now.to_string(),
        lines: first - 1..last,
        most: MAX_COMMITS,
    };
    // The worktree and the index can differ from the commit.
    let committed = tree.version(&state, path).map_err(|e| e.on_one_line())?;
    let end = match committed {
        None => Err("(no commit has the file)".to_owned()),
        Some(text) => past
            .back_to(text)
            .map_err(|()| "(no commit has these lines)".to_owned()),
    };
    let end = end.and_then(|()| past.walk(newest, &mut page));
    if let Err(end) = end {
        page.close(&end);
    }
    Ok(page)
}

/// Lines that are traced back through the versions of a file.
struct Past<'t, 'r> {
    tree: &'t Tree<'r>,
    path: &'t RepoPath,
    /// Text of the current version.
    text: String,
    /// Range in the current version, counted from 0.
    lines: Range<u32>,
    /// Commits that may still be read.
    most: u32,
}

impl Past<'_, '_> {
    /// Writes the commits that changed the lines, starting at a commit.
    ///
    /// # Errors
    ///
    /// Returns the line that explains why no more commits are listed.
    fn walk(
        &mut self,
        mut from: crate::diff::ObjectId,
        page: &mut ResultPage,
    ) -> Result<(), String> {
        let mut shown = 0;
        loop {
            let edit = self.tree.last_edit(from, self.path, &mut self.most);
            let edit = edit.map_err(|e| format!("(the history ends here: {})", e.on_one_line()))?;
            let Some(edit) = edit else {
                return Err("(no earlier commit was searched)".to_owned());
            };
            let before = self
                .tree
                .version(&edit.before, self.path)
                .map_err(|e| format!("({})", e.on_one_line()))?;
            let Some(before) = before else {
                let line = format!("{}: brought the file, or renamed it", self.heading(&edit));
                let _ = page.say(&line);
                return Ok(());
            };
            let touched = self.touched(&before);
            if !touched.is_empty() {
                shown += 1;
                if shown > MAX_SHOWN || !self.show(&edit, &before, &touched, page) {
                    return Err("(earlier commits are not shown)".to_owned());
                }
            }
            self.back_to(before)
                .map_err(|()| "(these lines have no earlier version)".to_owned())?;
            let Some(parent) = edit.before.commit() else {
                return Ok(());
            };
            from = parent;
        }
    }

    fn heading(&self, edit: &FileCommit) -> String {
        let date = Timestamp::from_second(edit.seconds)
            .map(|t| t.to_zoned(TimeZone::UTC).date().to_string());
        let subject = self.tree.subject(edit.commit);
        format!(
            "{} {} {}",
            edit.commit.short(),
            date.unwrap_or_default(),
            cut(&subject, MAX_LINE)
        )
        .trim_end()
        .to_owned()
    }

    /// Returns the edits since an older version that affect the lines: the ranges in the older and
    /// in the current version.
    fn touched(&self, before: &str) -> Vec<(Range<u32>, Range<u32>)> {
        let edits = replaced(before.as_bytes(), self.text.as_bytes());
        edits
            .into_iter()
            .filter(|(_, new)| concerns(new, &self.lines))
            .collect()
    }

    /// Traces the lines to an older version.
    ///
    /// # Errors
    ///
    /// Returns an error if all of the lines are new.
    fn back_to(&mut self, before: String) -> Result<(), ()> {
        let edits = replaced(before.as_bytes(), self.text.as_bytes());
        self.lines = back(&edits, &self.lines);
        self.text = before;
        if self.lines.is_empty() {
            Err(())
        } else {
            Ok(())
        }
    }

    /// Writes a commit with the lines that it removed and added. Returns false if they do not fit.
    fn show(
        &self,
        edit: &FileCommit,
        before: &str,
        touched: &[(Range<u32>, Range<u32>)],
        page: &mut ResultPage,
    ) -> bool {
        let mut has_room = page.say(&self.heading(edit));
        for (old, new) in touched {
            for (sign, text, lines) in [('-', before, old), ('+', self.text.as_str(), new)] {
                let all = text.lines().skip(lines.start as usize).take(lines.len());
                for line in all.clone().take(MAX_SIDE) {
                    has_room = has_room && page.say(&format!("{sign}{}", cut(line, MAX_LINE)));
                }
                let more = lines.len().saturating_sub(MAX_SIDE);
                if more > 0 {
                    has_room = has_room && page.say(&format!("{sign}({more} more lines)"));
                }
            }
        }
        has_room
    }
}

/// Returns true if an edit changes lines of a range, or removes lines inside it.
fn concerns(new: &Range<u32>, lines: &Range<u32>) -> bool {
    match new.is_empty() {
        true => lines.start < new.start && new.start < lines.end,
        false => new.start < lines.end && lines.start < new.end,
    }
}

/// Returns the range of the lines in the older version. For lines inside an edit, it covers all
/// lines that the edit replaced.
fn back(edits: &[(Range<u32>, Range<u32>)], lines: &Range<u32>) -> Range<u32> {
    let last = lines.end.saturating_sub(1);
    let around_start = edits.iter().find(|(_, new)| new.contains(&lines.start));
    let start = around_start.map_or_else(|| moved_back(edits, lines.start), |(old, _)| old.start);
    let around_last = edits.iter().find(|(_, new)| new.contains(&last));
    let end = around_last.map_or_else(|| moved_back(edits, last) + 1, |(old, _)| old.end);
    start..end.max(start)
}

/// Returns the number in the older version of a line outside all edits, which the edits before it
/// moved.
fn moved_back(edits: &[(Range<u32>, Range<u32>)], line: u32) -> u32 {
    let before = edits.iter().rfind(|(_, new)| new.end <= line);
    before.map_or(line, |(old, new)| line - new.end + old.end)
}

#[cfg(test)]
mod tests {
    use super::{back, concerns};

    #[test]
    fn lines_are_followed_through_edits_before_around_and_within_them() {
        // Edits of 20 lines: one became three, two were removed, one was added.
        let edits = [(2..3, 2..5), (10..12, 12..12), (15..15, 15..16)];
        for (lines, expected) in [
            (0..2, 0..2),
            (2..5, 2..3),
            (3..4, 2..3),
            (5..8, 3..6),
            (11..13, 9..13),
            (12..14, 12..14),
            (15..16, 15..15),
            (16..18, 15..17),
            (1..18, 1..17),
        ] {
            assert_eq!(back(&edits, &lines), expected, "{lines:?}");
        }
    }

    #[test]
    fn removed_lines_concern_a_range_that_they_were_within() {
        let cases = [
            (5..5, 5..8, false),
            (6..6, 5..8, true),
            (8..8, 5..8, false),
            (7..9, 5..8, true),
            (8..9, 5..8, false),
        ];
        for (edit, lines, expected) in cases {
            assert_eq!(concerns(&edit, &lines), expected, "{edit:?} {lines:?}");
        }
    }
}
