//! Determines whether another change replaced the uncommitted change of an earlier round, for
//! example after it was moved to a patch file or to another worktree, or discarded. Then its
//! findings are gone without a fix. Pure.

use super::compare::look::{UnshownFile, UnshownFiles};
use crate::diff::{FileChange, LineKind, RepoPath, patch};
use crate::wire::SourceKind;
use std::collections::HashSet;

/// Note about a change that was replaced.
pub(super) const NOTE: &str = "no file and no line of the change that was reviewed before is in this one. Its findings are gone with \
    it, which does not fix them. Bring the change back, or review this one by itself, without --follow-up";

/// Bytes of a line that identifies a change, at least: a brace or `else` is in every change.
const MIN_LINE: usize = 8;

/// Returns true for a change without a commit.
pub(super) fn is_uncommitted(kind: SourceKind) -> bool {
    matches!(
        kind,
        SourceKind::Staged | SourceKind::Unstaged | SourceKind::Changes
    )
}

/// Returns true if a change has none of the files and none of the lines of an earlier one. Both are
/// stored changes with the same base. An empty change replaces nothing: the earlier one was
/// reverted.
pub(super) fn is_replaced(before: &[u8], now: &[u8], look: &dyn UnshownFiles) -> bool {
    let (Ok(before), Ok(now)) = (patch::parse_kept(before), patch::parse_kept(now)) else {
        return false;
    };
    if before.is_empty() || now.is_empty() {
        return false;
    }
    // A new file may have been renamed and fixed, or is ignored now.
    if added(&before).next().is_some()
        && (added(&now).next().is_some() || added(&before).any(|path| is_there(path, look)))
    {
        return false;
    }
    let (old, new) = (paths(&before), paths(&now));
    let are_selected = old.iter().all(|path| look.selects(&path.to_wire()));
    are_selected && old.is_disjoint(&new) && lines(&before).is_disjoint(&lines(&now))
}

/// Returns the paths of new files.
fn added(files: &[FileChange]) -> impl Iterator<Item = &RepoPath> {
    let new = files.iter().filter(|file| file.entry.old.is_none());
    new.filter_map(|file| file.entry.new.as_ref())
        .map(|side| &side.path)
}

/// Returns true if a file outside of the change exists in the worktree.
fn is_there(path: &RepoPath, look: &dyn UnshownFiles) -> bool {
    !matches!(look.file(&path.to_wire(), false), UnshownFile::Nothing)
}

/// Returns the paths of both sides of all files.
fn paths(files: &[FileChange]) -> HashSet<&RepoPath> {
    let sides = files.iter().flat_map(|file| file.entry.sides());
    sides.map(|side| &side.path).collect()
}

/// Returns the significant changed lines, without white space around them.
fn lines(files: &[FileChange]) -> HashSet<&[u8]> {
    let texts = files.iter().filter_map(FileChange::text);
    let all = texts.flat_map(|text| text.hunks.iter().flat_map(|hunk| text.lines(hunk)));
    let changed = all
        .filter(|line| line.kind != LineKind::Context)
        .map(|line| line.text.trim_ascii());
    changed.filter(|text| text.len() >= MIN_LINE).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Finding;

    /// A request for all files.
    #[derive(Debug)]
    struct All;

    impl UnshownFiles for All {
        fn selects(&self, _: &str) -> bool {
            true
        }

        fn left_out(&self) -> &[u8] {
            b""
        }

        fn file(&self, _: &str, _: bool) -> UnshownFile {
            UnshownFile::Nothing
        }

        fn is_secret(&self, _: &Finding) -> bool {
            false
        }
    }

    /// Returns a change that adds lines to a file.
    fn change(path: &str, lines: &[&str]) -> String {
        let added: String = lines.iter().map(|line| format!("+{line}\n")).collect();
        format!(
            "--- a/{path}\n+++ b/{path}\n@@ -1,1 +1,{} @@\n a = 1\n{added}",
            lines.len() + 1
        )
    }

    /// Returns a change that adds a new file.
    fn new(path: &str) -> String {
        change(path, &["count = 1"])
            .replace(&format!("--- a/{path}"), "--- /dev/null")
            .replace("@@ -1,1 +1,2 @@\n a = 1\n", "@@ -0,0 +1,1 @@\n")
    }

    fn is_replaced_by(before: &str, now: &str) -> bool {
        is_replaced(before.as_bytes(), now.as_bytes(), &All)
    }

    #[test]
    fn a_change_with_other_files_and_other_lines_replaces_one() {
        let before = change("a.py", &["config = load(text)", "}"]);
        assert!(is_replaced_by(
            &before,
            &change("b.py", &["count = 1", "}"])
        ));
        // An edit of the file, code that was moved, and a change that was reverted.
        assert!(!is_replaced_by(&before, &change("a.py", &["count = 1"])));
        assert!(!is_replaced_by(
            &before,
            &change("b.py", &["  config = load(text)"])
        ));
        assert!(!is_replaced_by(&before, ""));
        assert!(is_replaced_by(&before, &new("b.py")));
        // A new file that was renamed and fixed.
        assert!(!is_replaced_by(
            &new("a.py"),
            &new("b.py").replace("count", "total")
        ));
        assert!(is_replaced_by(
            &new("a.py"),
            &change("b.py", &["total = 12"])
        ));
    }
}
