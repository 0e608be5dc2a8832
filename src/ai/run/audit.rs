//! Orders and bounds the requests about a whole tree: the riskiest parts first, and without a
//! request for an answer that is there.

use super::member::Member;
use super::{ReviewSession, Team};
use crate::ai::claim;
use crate::ai::journal::Journal;
use crate::ai::plan::{self, Chunk, Limits, ReviewPlan};
use crate::ai::prompt::{self, Lens};
use crate::ai::risk::FileRisk;
use std::cell::Cell;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The parts of a job that only a review of a tree has.
#[derive(Clone, Copy, Debug)]
pub struct AuditRun<'a> {
    /// The risk of each file of each group.
    pub risks: &'a [Vec<FileRisk>],
    pub journal: Option<&'a Journal>,
}

/// The turn of a chunk of a tree. With several lenses, only as many chunks as there are concurrent
/// requests are open at a time: otherwise a budget would end after the first lens of every chunk,
/// and no chunk would be complete.
#[derive(Default)]
pub(super) struct ChunkTurn {
    /// `None` if chunks do not wait for each other.
    open: Option<Arc<Semaphore>>,
    /// Lenses of the chunk that are not finished.
    lenses: Cell<usize>,
    /// Holds the permit until the last lens ends.
    held: Cell<Option<OwnedSemaphorePermit>>,
}

impl ChunkTurn {
    /// Waits for the turn of the chunk. Chunks that wait get it in their order.
    pub(super) async fn begin(&self) {
        if let Some(open) = &self.open {
            // This cannot fail, because the semaphore is never closed.
            self.held.set(Arc::clone(open).acquire_owned().await.ok());
        }
    }

    /// Records that a lens is finished. The last one ends the turn.
    pub(super) fn end_lens(&self) {
        let left = self.lenses.get().saturating_sub(1);
        self.lenses.set(left);
        if left == 0 {
            self.held.take();
        }
    }
}

impl<'a> ReviewSession<'a> {
    /// Returns the turns of the chunks of a team, in their order.
    pub(super) fn turns_of(&self, team: &Team<'a>) -> Vec<ChunkTurn> {
        let lenses = self.job.lenses().len();
        let jobs = self.job.policy.review.jobs.max(1) as usize;
        let waits = self.job.audit.is_some() && lenses > 1;
        let open = waits.then(|| Arc::new(Semaphore::new(jobs)));
        let turn = |_: &Chunk| ChunkTurn {
            open: open.clone(),
            lenses: Cell::new(lenses),
            held: Cell::default(),
        };
        team.chunks.iter().map(turn).collect()
    }

    /// Plans the chunks of a tree by their risk. Chunks that the journal or the user's cache answers
    /// need no request, so they do not count in the limit. The first chunk that exceeds it ends the
    /// requests: no chunk is asked about while a riskier one is left out.
    pub(super) fn plan_by_risk(
        &self,
        audit: &AuditRun<'_>,
        members: &[Member<'a>],
        limits: &Limits,
    ) -> ReviewPlan {
        let all = plan::by_risk(self.groups, audit.risks, (self.job.symbols, limits));
        if all.len() <= limits.requests {
            return ReviewPlan {
                chunks: all,
                left_out: Vec::new(),
            };
        }
        let mut left = limits.requests * self.job.lenses().len();
        let (mut chunks, mut beyond) = (Vec::new(), Vec::new());
        for chunk in all {
            let open = self.open_lenses(members, &chunk);
            if open == 0 {
                chunks.push(chunk);
            } else if open <= left {
                left -= open;
                chunks.push(chunk);
            } else {
                left = 0;
                beyond.push(chunk);
            }
        }
        let left_out = plan::left_out(&chunks, beyond);
        ReviewPlan { chunks, left_out }
    }

    /// Returns the number of lenses under which a chunk has no answer yet.
    fn open_lenses(&self, members: &[Member<'a>], chunk: &Chunk) -> usize {
        let lenses = self.job.lenses().iter();
        // The other members are only asked if the first one fails.
        let Some(first) = members.first() else {
            return lenses.len();
        };
        lenses
            .filter(|lens| !self.is_answered(first, chunk, **lens))
            .count()
    }

    /// Returns true if the journal or the user's cache has an answer about a chunk. Neither reads
    /// it, nor asks the shared cache.
    fn is_answered(&self, member: &Member<'a>, chunk: &Chunk, lens: Lens) -> bool {
        let group = &self.groups[chunk.group];
        let (brief, nonce) = (self.brief, &self.nonce);
        let depth = self.job.policy.review.depth;
        let has_tools = self.around(chunk.group).is_some();
        let prompts = prompt::earlier(brief, group, chunk, lens, nonce)
            .into_iter()
            .chain([prompt::review(brief, group, chunk, lens, nonce)]);
        prompts
            .filter_map(|p| member.key(&p, claim::schema(), depth, has_tools))
            .any(|key| {
                self.job.journal().is_some_and(|j| j.has(&key))
                    || self.cache.as_ref().is_some_and(|c| c.has(&key))
            })
    }
}
