//! Determines how much of an earlier change a round shows. Pure.
//!
//! The caller chooses the source of a follow-up, so a source that does not include a finding's
//! position must not count as a fix: a missing finding counts only if the round would have shown
//! it.

use crate::wire::{ReviewedSource, SourceKind};

/// How much the change of a round shows of an earlier round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cover {
    /// Nothing.
    Nothing,
    /// It starts where the earlier one ended, or elsewhere: only lines that it shows as replaced
    /// are known.
    Onward,
    /// A change passed by the caller: it is authoritative for the files in it.
    Given,
    /// It starts at the earlier one's base and includes the current work: files that it does not
    /// show equal the base.
    Whole,
}

/// The state of the repository.
#[derive(Clone, Debug, Default)]
pub struct Here {
    /// The commit that is checked out.
    pub head: Option<String>,
    /// Whether the index differs from it.
    pub staged: bool,
    /// Whether the worktree differs from it.
    pub changed: bool,
    /// Whether the session is about the checked-out revision, whichever it is.
    pub follows_head: bool,
    /// Whether the round requests the revision of the session by its name.
    pub same_rev: bool,
    /// Both rounds are about the same pull request.
    pub same_pull: bool,
    /// Whether the head of the earlier round is the new head or an ancestor of it.
    pub descends: bool,
    /// Whether the head of the earlier round is the checked-out commit or an ancestor of it.
    pub has_earlier_head: bool,
    /// Whether the round requests the unstaged change without an untracked file of the earlier
    /// round.
    pub hides_untracked: bool,
}

/// Returns true if two changes start from the same state. Unstaged changes start from the index,
/// which has no ID.
pub fn same_base(one: &ReviewedSource, other: &ReviewedSource) -> bool {
    [one, other].iter().all(|s| s.kind != SourceKind::Unstaged) && from_same_commit(one, other)
}

/// Returns true if two changes have the same base commit, or both have none.
fn from_same_commit(one: &ReviewedSource, other: &ReviewedSource) -> bool {
    has_known_start(one) && has_known_start(other) && one.base == other.base
}

/// Returns true if the start of a change is known. Without a base it starts from nothing, or its
/// start is unknown (a patch, a push of several references).
fn has_known_start(source: &ReviewedSource) -> bool {
    use SourceKind::{Branch, Changes, Commit, Staged, Unstaged};
    source.base.is_some()
        || matches!(source.kind, Staged | Unstaged | Changes | Commit)
        || source.kind == Branch && source.head.is_some()
}

/// Returns what the change `now` shows of the change `before`.
pub fn cover(before: &ReviewedSource, now: &ReviewedSource, here: &Here) -> Cover {
    use SourceKind::{Branch, Changes, Code, Commit, Patch, Pr, Staged, Tree, Unstaged};
    let same = from_same_commit(before, now);
    let onward = before.head.is_some() && now.base == before.head;
    let at_head = now.head.is_some() && now.head == here.head;
    match (before.kind, now.kind) {
        (Patch, Patch | Changes) | (Code, Code | Changes) => Cover::Given,
        // Both changes are from the merge base to the head.
        (Pr, Pr) if here.same_pull => {
            if same {
                Cover::Whole
            } else {
                Cover::Onward
            }
        }
        // A checked-out pull request, with later changes.
        (Pr, Changes) if here.has_earlier_head && same => Cover::Whole,
        (Patch | Code | Pr | Tree, _) | (_, Patch | Code | Pr | Tree) => Cover::Nothing,
        (_, Changes) | (Staged, Staged) if same => Cover::Whole,
        (_, Changes) if onward => Cover::Onward,
        (Unstaged, Unstaged) if same && !here.staged && !here.hides_untracked => Cover::Whole,
        (Changes | Unstaged, Unstaged) => Cover::Onward,
        (Commit | Branch, Commit | Branch)
            if here.same_rev || here.descends || here.follows_head && at_head =>
        {
            match (same, onward) {
                (true, _) => Cover::Whole,
                (_, true) => Cover::Onward,
                _ => Cover::Nothing,
            }
        }
        // Without other differences, the index and the worktree equal the checked-out commit.
        (Staged, Commit | Branch) if same && at_head && !here.staged => Cover::Whole,
        (Changes | Unstaged, Commit | Branch) if same && at_head && !here.changed => Cover::Whole,
        _ => Cover::Nothing,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use SourceKind::{Branch, Changes, Code, Commit, Patch, Pr, Staged, Unstaged};

    fn source(kind: SourceKind, base: &str, head: &str) -> ReviewedSource {
        let [base, head] = [base, head].map(|id| Some(id.to_owned()).filter(|id| !id.is_empty()));
        ReviewedSource {
            kind,
            base,
            head,
            tree: None,
            checked_out: None,
            history: false,
            label: None,
        }
    }

    #[test]
    fn a_source_shows_what_it_reaches() {
        let clean = Here {
            head: Some("h".to_owned()),
            follows_head: true,
            ..Here::default()
        };
        let dirty = Here {
            changed: true,
            ..clean.clone()
        };
        let staged = Here {
            staged: true,
            ..dirty.clone()
        };
        let other = Here {
            follows_head: false,
            ..clean.clone()
        };
        let later = Here {
            descends: true,
            ..other.clone()
        };
        let named = Here {
            same_rev: true,
            ..other.clone()
        };
        let hidden = Here {
            hides_untracked: true,
            ..clean.clone()
        };
        let (worktree, index) = (source(Changes, "b", ""), source(Staged, "b", ""));
        let (unstaged, branch) = (source(Unstaged, "b", ""), source(Branch, "b", "x"));
        let unborn = source(Staged, "", "");
        let pull = Here {
            same_pull: true,
            ..other.clone()
        };
        let checked_out = Here {
            has_earlier_head: true,
            ..dirty.clone()
        };
        for (before, now, here, expected) in [
            (&worktree, &worktree, &dirty, Cover::Whole),
            (&worktree, &source(Changes, "c", ""), &dirty, Cover::Nothing),
            (&worktree, &index, &dirty, Cover::Nothing),
            (&worktree, &unstaged, &staged, Cover::Onward),
            (&worktree, &source(Commit, "b", "h"), &dirty, Cover::Nothing),
            (&worktree, &source(Commit, "b", "h"), &clean, Cover::Whole),
            (&worktree, &source(Branch, "b", "y"), &clean, Cover::Nothing),
            (&worktree, &source(Branch, "h", "h"), &clean, Cover::Nothing),
            (&worktree, &source(Patch, "", ""), &clean, Cover::Nothing),
            (&index, &index, &staged, Cover::Whole),
            (&index, &source(Staged, "c", ""), &clean, Cover::Nothing),
            (&index, &worktree, &staged, Cover::Whole),
            (&index, &unstaged, &staged, Cover::Nothing),
            (&index, &source(Commit, "b", "h"), &dirty, Cover::Whole),
            (&index, &source(Commit, "b", "h"), &staged, Cover::Nothing),
            (&unborn, &unborn, &staged, Cover::Whole),
            (&unborn, &source(Changes, "", ""), &clean, Cover::Whole),
            (&unborn, &source(Changes, "h", ""), &clean, Cover::Nothing),
            (&unstaged, &unstaged, &dirty, Cover::Whole),
            (&unstaged, &unstaged, &staged, Cover::Onward),
            (&unstaged, &unstaged, &hidden, Cover::Onward),
            (&unstaged, &worktree, &staged, Cover::Whole),
            (&branch, &worktree, &dirty, Cover::Whole),
            (&branch, &source(Changes, "x", ""), &dirty, Cover::Onward),
            (&branch, &index, &clean, Cover::Nothing),
            (&branch, &source(Branch, "b", "h"), &clean, Cover::Whole),
            (&branch, &source(Branch, "b", "h"), &other, Cover::Nothing),
            (&branch, &source(Branch, "b", "y"), &clean, Cover::Nothing),
            (&branch, &source(Branch, "b", "y"), &later, Cover::Whole),
            (&branch, &source(Branch, "b", "y"), &named, Cover::Whole),
            (&branch, &source(Branch, "x", "x"), &later, Cover::Onward),
            (&branch, &source(Commit, "x", "y"), &later, Cover::Onward),
            (&branch, &source(Commit, "c", "y"), &later, Cover::Nothing),
            (
                &source(Branch, "", ""),
                &source(Changes, "", ""),
                &clean,
                Cover::Nothing,
            ),
            (
                &source(Patch, "", ""),
                &source(Patch, "", ""),
                &clean,
                Cover::Given,
            ),
            (
                &source(Code, "", ""),
                &source(Patch, "", ""),
                &clean,
                Cover::Nothing,
            ),
            (
                &source(Code, "", ""),
                &source(Changes, "b", ""),
                &clean,
                Cover::Given,
            ),
            (
                &source(Pr, "b", "x"),
                &source(Pr, "b", "y"),
                &pull,
                Cover::Whole,
            ),
            (
                &source(Pr, "b", "x"),
                &source(Pr, "c", "y"),
                &pull,
                Cover::Onward,
            ),
            (
                &source(Pr, "b", "x"),
                &source(Pr, "b", "y"),
                &clean,
                Cover::Nothing,
            ),
            (
                &source(Pr, "b", "x"),
                &source(Branch, "b", "y"),
                &pull,
                Cover::Nothing,
            ),
            (&source(Pr, "b", "x"), &worktree, &checked_out, Cover::Whole),
            (&source(Pr, "b", "x"), &worktree, &dirty, Cover::Nothing),
            (
                &source(Pr, "c", "x"),
                &worktree,
                &checked_out,
                Cover::Nothing,
            ),
        ] {
            assert_eq!(
                cover(before, now, here),
                expected,
                "{before:?} then {now:?}, {here:?}"
            );
        }
    }
}
