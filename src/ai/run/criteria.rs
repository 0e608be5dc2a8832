//! Evaluates the criteria of a contract in addition to the review: models give the state of each,
//! and their quotes are checked.

use super::answer::{NoAnswer, ParsedAnswer, Query};
use super::member::Member;
use super::turns::{AskedPart, PartResult};
use super::{ReviewSession, Team, foreign};
use crate::ai::anchor;
use crate::ai::ask::Cause;
use crate::ai::claim::criteria as form;
use crate::ai::plan::Chunk;
use crate::ai::{EvidenceSpot, JudgedCriterion};
use crate::ai::{prompt, reply};
use crate::diff::RepoPath;
use crate::request::Criterion;
use crate::text::first_bytes;
use crate::verdict::{CoverageFailure, FailureCause};
use futures_util::stream::{FuturesUnordered, StreamExt as _};

/// Bytes of a reason that are stored, at most.
const REASON: usize = 2_000;

/// The evaluation of one criterion by one backend, for a part of the change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Vote {
    /// Position of the criterion.
    criterion: usize,
    backend: String,
    /// Result as stated by the model; `None` if unknown.
    met: Option<bool>,
    /// Position of the quote in the change, if it was found.
    spot: Option<EvidenceSpot>,
    reason: String,
}

/// The results of all these questions.
#[derive(Debug, Default)]
pub(super) struct Votes {
    all: Vec<Vote>,
    pub(super) failed: Vec<CoverageFailure>,
    pub(super) cut: Vec<(RepoPath, String)>,
}

impl Votes {
    fn merge(&mut self, other: Self) {
        self.all.extend(other.all);
        self.failed.extend(other.failed);
        self.cut.extend(other.cut);
    }

    /// Determines the state of each criterion. `whole` is true if no limit excluded a part of the
    /// change.
    pub(super) fn count(mut self, criteria: &[Criterion], whole: bool) -> Vec<JudgedCriterion> {
        // The order of the answers must not affect the result.
        self.all.sort_by(|a, b| {
            (a.criterion, &a.backend, &a.reason).cmp(&(b.criterion, &b.backend, &b.reason))
        });
        let whole = whole && self.failed.is_empty() && self.cut.is_empty();
        let criteria = criteria.iter().enumerate().map(|(i, criterion)| {
            let votes: Vec<&Vote> = self.all.iter().filter(|v| v.criterion == i).collect();
            decide(criterion, &votes, whole)
        });
        criteria.collect()
    }
}

/// Determines the state of one criterion.
fn decide(criterion: &Criterion, votes: &[&Vote], whole: bool) -> JudgedCriterion {
    let shown = votes
        .iter()
        .find(|v| v.met == Some(true) && v.spot.is_some());
    let unmet = votes.iter().find(|v| v.met == Some(false));
    let claimed = votes.iter().find(|v| v.met == Some(true));
    let unknown = votes.iter().find(|v| !v.reason.is_empty());
    let (met, vote, reason) = match (shown, unmet) {
        (Some(yes), Some(no)) => {
            let both = format!(
                "answers differ: {}: met ({}); {}: unmet ({})",
                yes.backend, yes.reason, no.backend, no.reason
            );
            (None, Some(yes), both)
        }
        (Some(yes), None) => (Some(true), Some(yes), yes.reason.clone()),
        (None, Some(no)) if whole => (Some(false), Some(no), no.reason.clone()),
        (None, Some(no)) => (
            None,
            Some(no),
            format!("not all of the change was asked about; {}", no.reason),
        ),
        (None, None) => match (claimed, unknown) {
            (Some(claim), _) => {
                let why = format!(
                    "reported as met, but without a quote of a changed line: {}",
                    claim.reason
                );
                (None, Some(claim), why)
            }
            (None, Some(vote)) => (None, Some(vote), vote.reason.clone()),
            (None, None) => (None, None, "no backend answered".to_owned()),
        },
    };
    JudgedCriterion {
        id: criterion.id.clone(),
        met,
        reason,
        evidence: vote
            .and_then(|v| v.spot.clone())
            .filter(|_| met != Some(false)),
        backend: vote.map(|v| v.backend.clone()),
    }
}

impl<'a> ReviewSession<'a> {
    /// Asks every team about every chunk. Sends no request without criteria.
    pub(super) async fn judged(&self, teams: &[Team<'a>]) -> Votes {
        let mut votes = Votes::default();
        let mut asked: FuturesUnordered<_> = teams
            .iter()
            .filter(|_| !self.brief.criteria.is_empty())
            .flat_map(|team| team.chunks.iter().map(move |c| self.judge(team, c.clone())))
            .collect();
        while let Some(part) = asked.next().await {
            votes.merge(part);
        }
        votes
    }

    /// Asks one team about one chunk, in several parts if it is too large.
    async fn judge(&self, team: &Team<'a>, chunk: Chunk) -> Votes {
        let asked = self.ask_in_turn(
            team,
            chunk,
            |failure, _| failure.cause == Cause::TooLarge,
            async |member, part| self.judge_with(member, part).await,
        );
        let mut votes = Votes::default();
        for part in asked.await {
            votes.merge(self.votes_of(part));
        }
        votes
    }

    /// Returns the votes about one part, or why there are none.
    fn votes_of(&self, AskedPart { chunk, result }: AskedPart<Vec<Vote>>) -> Votes {
        let mut votes = Votes::default();
        match result {
            PartResult::Answered { answer, .. } => votes.all = answer,
            PartResult::Limit(limit) => {
                let paths = self.paths(&chunk).into_iter();
                votes.cut = paths.map(|p| (p, limit.clone())).collect();
            }
            PartResult::Failed(failures) => {
                let why = format!("the criteria were not judged: {}", failures.join("; "));
                votes
                    .failed
                    .push(CoverageFailure::whole(FailureCause::Other(why)));
            }
        }
        votes
    }

    /// Asks one backend about one chunk, and returns its vote on each criterion that it names.
    async fn judge_with(&self, member: &Member<'a>, chunk: &Chunk) -> Result<Vec<Vote>, NoAnswer> {
        let group = &self.groups[chunk.group];
        let prompt = prompt::criteria(self.brief, group, chunk, &self.nonce);
        let around = self.around(chunk.group);
        let asked = self
            .question(
                member,
                &Query::new(&prompt, form::schema(), around),
                reply::criteria,
            )
            .await?;
        let ParsedAnswer { value, keep, .. } = asked;
        let criteria = &self.brief.criteria;
        let mut votes = Vec::new();
        for stand in &value.criteria {
            let Some(criterion) = criteria.iter().position(|c| c.id == stand.id.trim()) else {
                continue;
            };
            let met = stand.met().flatten();
            let quote = stand.quote.as_deref().filter(|_| met == Some(true));
            let reason = foreign(stand.reason.trim(), self.job.rules);
            votes.push(Vote {
                criterion,
                backend: member.name().to_owned(),
                met,
                spot: quote.and_then(|q| anchor::spot(q, stand.file.as_deref(), group, chunk)),
                reason: first_bytes(&reason, REASON).to_owned(),
            });
        }
        self.store_if(votes.len() == criteria.len(), keep).await;
        Ok(votes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spot() -> EvidenceSpot {
        EvidenceSpot {
            file: RepoPath::from("a.rs"),
            line: None,
            quote: "x".to_owned(),
        }
    }

    /// Builds a vote: `+` met with a found quote, `~` met without one, `-` unmet, `?` unknown.
    fn vote(sign: char) -> Vote {
        Vote {
            criterion: 0,
            backend: "one".to_owned(),
            met: match sign {
                '+' | '~' => Some(true),
                '-' => Some(false),
                _ => None,
            },
            spot: (sign == '+').then(spot),
            reason: sign.to_string(),
        }
    }

    fn decided(signs: &str, whole: bool) -> JudgedCriterion {
        let criterion = Criterion {
            id: "AC1".to_owned(),
            text: "it works".to_owned(),
        };
        let votes = Votes {
            all: signs.chars().map(vote).collect(),
            ..Votes::default()
        };
        votes.count(&[criterion], whole).remove(0)
    }

    #[test]
    fn a_criterion_is_met_by_a_quote_and_unmet_by_a_word_that_nothing_contradicts() {
        for (signs, met) in [
            ("+", Some(true)),
            ("+?", Some(true)),
            ("++~", Some(true)),
            ("-", Some(false)),
            ("-?", Some(false)),
            ("-~", Some(false)),
            ("+-", None),
            ("~", None),
            ("?", None),
            ("", None),
        ] {
            let judged = decided(signs, true);
            assert_eq!(judged.met, met, "{signs}");
            assert_eq!(judged.evidence.is_some(), signs.contains('+'), "{signs}");
            assert!(!judged.reason.is_empty(), "{signs}");
        }
    }

    #[test]
    fn what_was_not_all_asked_about_proves_nothing_missing() {
        assert_eq!(decided("-", false).met, None);
        assert_eq!(decided("+", false).met, Some(true));
    }

    #[test]
    fn answers_are_counted_alike_in_any_order() {
        assert_eq!(decided("?~", true), decided("~?", true));
        assert_eq!(decided("-+", true), decided("+-", true));
    }
}
