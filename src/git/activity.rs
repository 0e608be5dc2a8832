//! Counts the commits of the last year of a history that changed each file.

use super::graph::Commit;
use super::{Repo, gix_id, own, tree};
use crate::diff::{ObjectId, RepoPath};
use gix::revision::walk::Sorting;
use gix::traverse::commit::simple::CommitTimeOrder;
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// Seconds of a year.
const YEAR: i64 = 365 * 24 * 3600;

/// Limits of the walk over a history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WalkLimits {
    /// Commits that are compared, at most.
    pub commits: usize,
    /// Time that the walk takes, at most, up to the end of one comparison.
    pub time: Duration,
}

/// The number of commits that changed each file in the year before the newest commit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct YearOfChanges {
    pub commits: HashMap<RepoPath, u32>,
    /// Why not all commits of the year were counted.
    pub gap: Option<WalkGap>,
}

/// Why a walk did not count all commits of the year.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WalkGap {
    /// The limit of commits was reached.
    Commits(usize),
    /// The limit of time was reached, after this number of commits.
    Time(usize),
    /// The clone lacks commits or trees, or they cannot be read.
    Missing,
}

impl std::fmt::Display for WalkGap {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Commits(n) => write!(f, "only the newest {n} commits of the year were counted"),
            Self::Time(n) => write!(
                f,
                "counting the commits of the year took too long: only the newest {n} were counted"
            ),
            Self::Missing => f.write_str("the clone lacks commits of the year"),
        }
    }
}

impl Repo {
    /// Counts the commits that changed each file, from `tip` back to one year before it. The year
    /// ends with the newest commit and not now, so that the result depends on the history alone.
    ///
    /// A commit is compared with its only parent. Merges and root commits are not counted: the
    /// commits of a merge are, and a root commit adds every file.
    pub fn changes_of_the_year(&self, tip: ObjectId, limits: &WalkLimits) -> YearOfChanges {
        let repo = self.local();
        let mut year = YearOfChanges::default();
        let Ok(newest) = Commit::read(&repo, tip) else {
            year.gap = Some(WalkGap::Missing);
            return year;
        };
        let sorting = Sorting::ByCommitTimeCutoff {
            order: CommitTimeOrder::NewestFirst,
            seconds: newest.seconds.saturating_sub(YEAR),
        };
        let Ok(walk) = repo.rev_walk([gix_id(&tip)]).sorting(sorting).all() else {
            year.gap = Some(WalkGap::Missing);
            return year;
        };
        let began = Instant::now();
        for (count, info) in walk.enumerate() {
            if count >= limits.commits {
                year.gap = Some(WalkGap::Commits(count));
                break;
            }
            if began.elapsed() >= limits.time {
                year.gap = Some(WalkGap::Time(count));
                break;
            }
            let counted = info.ok().and_then(|info| year.add(&repo, own(&info.id)));
            if counted.is_none() {
                year.gap = Some(WalkGap::Missing);
            }
        }
        if self.is_shallow() && year.gap.is_none() {
            year.gap = Some(WalkGap::Missing);
        }
        year
    }
}

impl YearOfChanges {
    /// Counts one commit. Returns `None` if it cannot be compared with its parent.
    fn add(&mut self, repo: &gix::Repository, id: ObjectId) -> Option<()> {
        let commit = Commit::read(repo, id).ok()?;
        let [parent] = &commit.parents[..] else {
            return Some(());
        };
        let parent = tree::state(repo, *parent).ok()?;
        for pair in commit.changes_since(repo, &parent).ok()? {
            let count = self.commits.entry(RepoPath::new(pair.path())).or_default();
            *count = count.saturating_add(1);
        }
        Some(())
    }
}
