//! Lists sessions, newest first, and reads only the sessions that are shown.

use super::document::{SEAL, document, required, round_name, stored_fixes};
use super::read::{chain_end, completion, not_listed, request, review, rounds, status};
use super::trouble::{Result, Trouble};
use super::{SessionId, Store};
use crate::error;
use crate::wire::stored::{History, Overview, Review, STORED_VERSION, Seal};
use std::collections::BinaryHeap;

/// Damaged sessions that one listing reports, at most.
const MOST_DAMAGED: usize = 100;

impl Store {
    /// Lists the newest sessions, at most `limit`. Reports unreadable ones and moves damaged ones
    /// to `.corrupt`; reports earlier ones there too, newest first.
    ///
    /// # Errors
    ///
    /// Incomplete if the store cannot be read.
    pub fn list(&self, limit: usize) -> error::Result<History> {
        let aside = self.aside().map_err(not_listed)?;
        let ids = self.ids().map_err(not_listed)?;
        // A heap sorts only as many as are needed.
        let mut ids = BinaryHeap::from(ids);
        let mut history = History {
            schema_version: STORED_VERSION,
            sessions: Vec::new(),
            damaged: Vec::new(),
        };
        let mut movable = true;
        while history.sessions.len() < limit && history.damaged.len() < MOST_DAMAGED {
            let Some(id) = ids.pop() else { break };
            match self.overview(id).map_err(|t| self.damage_or_absence(id, t)) {
                Ok(overview) => history.sessions.push(overview),
                // Removed since the names were listed.
                Err(Trouble::Absent) => {}
                Err(t) => {
                    let damaged = self.damaged(id, &t, movable);
                    // An operation that failed once is not repeated a hundred times.
                    movable &= damaged.moved_to.is_some() || !matches!(t, Trouble::Damaged(..));
                    history.damaged.push(damaged);
                }
            }
        }
        let room = MOST_DAMAGED.saturating_sub(history.damaged.len());
        history.damaged.extend(
            aside
                .names
                .iter()
                .take(room)
                .map(|name| self.damaged_aside(name)),
        );
        Ok(history)
    }

    /// Reads the last rounds of the newest sessions, at most `limit`. Skips unreadable sessions, and
    /// moves nothing.
    pub fn last_rounds(&self, limit: usize) -> Vec<Review> {
        let mut ids = self.ids().unwrap_or_default();
        ids.sort_unstable_by(|a, b| b.cmp(a));
        let newest = ids.into_iter().take(limit);
        newest.filter_map(|id| self.last_round(id).ok()).collect()
    }

    /// Reads the review of the last round of a session.
    fn last_round(&self, id: SessionId) -> Result<Review> {
        let folder = self.sessions()?.folder(&id.to_string())?;
        let count = rounds(&folder)?;
        review(&folder.folder(&round_name(count))?, id, count)
    }

    /// Reads the parts of a session that a listing shows.
    fn overview(&self, id: SessionId) -> Result<Overview> {
        let folder = self.sessions()?.folder(&id.to_string())?;
        // Read before the rounds, because no round follows a closing.
        let completion = completion(&folder, id)?;
        let request = request(&folder, id)?;
        let count = rounds(&folder)?;
        let round = folder.folder(&round_name(count))?;
        let review = review(&round, id, count)?;
        let seal: Seal = required(document(&round, SEAL), &round, SEAL)?;
        self.still_this(id, &folder)?;
        Ok(Overview {
            review_id: id.to_string(),
            status: status(completion.as_ref(), &review),
            head: chain_end(completion.as_ref(), &seal, stored_fixes(&folder).as_ref()),
            timestamp: request.timestamp,
            rounds: count,
            outcome: review.outcome,
            verdict: review.verdict,
            summary: review.summary,
            author: request.author,
            via: request.via,
            source: request.source,
            pull: request.pull,
            label: request.label,
        })
    }
}
