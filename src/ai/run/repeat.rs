//! Decides whether a cached answer is still valid: the lookups of its model must have the same
//! results in the tree under review.

use super::ReviewSession;
use crate::ai::ask::{Lookup, LookupSubject};
use crate::ai::cache::KeptReply;
use crate::ai::tools::Replay;
use crate::ai::tree::Tree;
use std::time::{Duration, Instant};

/// Time that a run spends on repeated lookups, at most. After that, models are asked.
const LONGEST: Duration = Duration::from_secs(120);
/// Tools whose results depend on more than the tree: on the base of the change, and on earlier
/// commits.
const BESIDE_THE_TREE: [&str; 2] = ["diff_of", "history"];

impl<'a> ReviewSession<'a> {
    /// Returns true if every lookup of an answer has the same result in a tree. Sends no request.
    pub(super) async fn still_holds(&self, kept: &KeptReply, around: Option<&Tree<'a>>) -> bool {
        if kept.lookups.is_empty() {
            return true;
        }
        let Some(tree) = around else { return false };
        let is_same_tree = kept.tree.is_some() && kept.tree.as_deref() == tree.id();
        if is_same_tree && kept.lookups.iter().all(is_about_the_tree) {
            return true;
        }
        let mut replay = Replay::new(tree);
        for lookup in &kept.lookups {
            if self.is_late() || !self.timed(|| replay.is_same(lookup)) {
                return false;
            }
            // A search can take a while, and other questions share this thread.
            tokio::task::yield_now().await;
        }
        true
    }

    /// Returns true if this run must not repeat further lookups.
    fn is_late(&self) -> bool {
        let job = self.job;
        job.stop.signal().is_some()
            || Instant::now() >= job.deadline
            || self.repeated.get() >= LONGEST
    }

    /// Runs some work and adds its duration to the time of all repeated lookups.
    fn timed<T>(&self, work: impl FnOnce() -> T) -> T {
        let start = Instant::now();
        let done = work();
        self.repeated.set(self.repeated.get() + start.elapsed());
        done
    }
}

fn is_about_the_tree(lookup: &Lookup) -> bool {
    match &lookup.subject {
        LookupSubject::Call { name, .. } => !BESIDE_THE_TREE.contains(&name.as_str()),
        LookupSubject::File(_) | LookupSubject::Tree => true,
    }
}
