//! Asks the backends of a team in turn about a chunk, until one of them answers. Splits a chunk
//! that is too large for a backend.

use super::answer::NoAnswer;
use super::member::Member;
use super::{ReviewSession, Team, described};
use crate::ai::Setback;
use crate::ai::ask::{Cause, Failure};
use crate::ai::plan::{self, Chunk};

/// A part of a chunk that was asked about, and the result.
pub(super) struct AskedPart<T> {
    pub(super) chunk: Chunk,
    pub(super) result: PartResult<T>,
}

/// The result of the question about one part of a chunk.
pub(super) enum PartResult<T> {
    /// The answer of the first backend that gave one, and the failures of those that were asked
    /// before, as `NAME: REASON`.
    Answered { answer: T, failures: Vec<String> },
    /// The limit that the question would have exceeded.
    Limit(String),
    /// The failures of all backends that were asked, as `NAME: REASON`.
    Failed(Vec<String>),
}

impl<'a> ReviewSession<'a> {
    /// Asks the members of a team about a chunk, one after the other, until one of them answers.
    ///
    /// If a member fails and `is_too_large` holds for its failure, each half of the chunk becomes a
    /// question of its own, which starts again at the first member. The failures so far are
    /// discarded then. The results are in the order of the change.
    pub(super) async fn ask_in_turn<T>(
        &self,
        team: &Team<'a>,
        chunk: Chunk,
        is_too_large: fn(&Failure, &Chunk) -> bool,
        ask: impl AsyncFn(&Member<'a>, &Chunk) -> Result<T, NoAnswer>,
    ) -> Vec<AskedPart<T>> {
        let mut parts = Vec::new();
        let mut left = vec![chunk];
        while let Some(chunk) = left.pop() {
            match self.ask_members(team, &chunk, is_too_large, &ask).await {
                Ok(result) => {
                    self.step();
                    parts.push(AskedPart { chunk, result });
                }
                Err(Halves(one, other)) => {
                    // One question was replaced by two.
                    self.planned.set(self.planned.get() + 1);
                    self.ledger.plan(2);
                    left.extend([other, one]);
                }
            }
        }
        parts
    }

    /// Asks the members about one part.
    ///
    /// # Errors
    ///
    /// Returns the halves of the part if it is too large for a member.
    async fn ask_members<T>(
        &self,
        team: &Team<'a>,
        chunk: &Chunk,
        is_too_large: fn(&Failure, &Chunk) -> bool,
        ask: &impl AsyncFn(&Member<'a>, &Chunk) -> Result<T, NoAnswer>,
    ) -> Result<PartResult<T>, Halves> {
        let (mut failures, mut setbacks) = (Vec::new(), Vec::new());
        for member in &team.members {
            let failure = match ask(member, chunk).await {
                Ok(answer) => return Ok(PartResult::Answered { answer, failures }),
                Err(NoAnswer::Limit(limit)) => return Ok(PartResult::Limit(limit)),
                Err(NoAnswer::Failed(failure)) => failure,
            };
            if is_too_large(&failure, chunk)
                && let Some((one, other)) = plan::halve(chunk, self.groups)
            {
                return Err(Halves(one, other));
            }
            failures.push(format!("{}: {}", member.name(), described(&failure)));
            setbacks.push(Setback::of(member.name(), &failure));
            if failure.cause == Cause::Stopped {
                break;
            }
        }
        self.setbacks.borrow_mut().extend(setbacks);
        Ok(PartResult::Failed(failures))
    }
}

/// The two parts that replace a part that is too large.
struct Halves(Chunk, Chunk);
