//! The second review: each severe claim is sent alone, with the instruction to refute it. At depth
//! quick, only claims that would block; at depth thorough, also others and findings of the rules.

use super::answer::{NoAnswer, ParsedAnswer, Query};
use super::chunk::ChunkReview;
use super::member::Member;
use super::{Remark, ReviewSession, RunOutcome, Team, described, foreign};
use crate::ai::anchor::{
    self, ClaimCandidate, Dispute, PositionCertainty, Unfounded, check_refutation,
};
use crate::ai::ask::{Prompt, Read};
use crate::ai::claim::{self, Rebuttal};
use crate::ai::tree::Tree;
use crate::ai::{prompt, reply};
use crate::finding::{Confidence, Draft, Finding, Location, Severity};
use crate::request::Depth;
use futures_util::stream::{FuturesUnordered, StreamExt as _};

/// Findings of rules that are verified, at most.
const DOUBTS: usize = 10;

/// A claim or finding to refute.
enum Doubted {
    /// Positions of the candidates that make this claim.
    Claim(Vec<usize>),
    /// Position of the finding of a rule.
    Rule(usize),
}

/// One question to refute a claim.
struct Challenge<'g> {
    prompt: Prompt,
    /// Position of the group.
    group: usize,
    /// Lines of the prompt that a refutation can quote.
    code: Vec<&'g str>,
    location: Option<Location>,
}

/// The result of a question to refute a claim.
enum Refuted {
    /// Refuted by this backend, with this reason.
    By(String, String),
    Stands,
    /// Refuted by this backend without a valid quote, which does not count.
    Unfounded(String, Unfounded),
}

impl<'a> ReviewSession<'a> {
    /// Returns true if the second review includes a claim.
    fn is_severe(&self, c: &ClaimCandidate) -> bool {
        if self.job.policy.review.depth == Depth::Thorough {
            return c.draft.severity >= Severity::Major;
        }
        let t = self
            .job
            .policy
            .thresholds(c.draft.location.as_ref().map(|l| &l.file));
        let is_believed =
            c.certainty >= PositionCertainty::Likely || t.min_confidence == Confidence::Low;
        is_believed && t.block_on.iter().any(|s| c.severity() >= *s)
    }

    /// Requests a refutation of each severe claim, and at depth thorough also of findings of the
    /// rules.
    pub(super) async fn second_look(
        &self,
        teams: &[Team<'a>],
        all: &mut ChunkReview,
        floor: &[Finding],
        out: &mut RunOutcome,
    ) {
        // Ask only once about a claim that one backend made under several lenses.
        let claims = anchor::alike(&mut all.candidates);
        let doubted: Vec<(usize, &Finding)> = floor
            .iter()
            .enumerate()
            .filter(|(_, f)| f.counts() && f.severity() >= Severity::Major && can_be_shown(f))
            .take(if self.job.policy.review.depth == Depth::Thorough {
                DOUBTS
            } else {
                0
            })
            .collect();
        let mut looks = FuturesUnordered::new();
        for same in claims {
            let severe = same
                .iter()
                .map(|i| &all.candidates[*i])
                .filter(|c| self.is_severe(c));
            let mut shown = severe.filter_map(|c| {
                let member = judge(teams, &c.backend)?;
                Some((
                    member,
                    self.challenge(&c.draft, c.group, member.capacity())?,
                ))
            });
            let Some((member, challenge)) = shown.next() else {
                continue;
            };
            drop(shown);
            looks.push(self.rebut(member, challenge, Doubted::Claim(same)));
        }
        for (i, f) in doubted {
            let Some(member) = judge(teams, "") else {
                continue;
            };
            // A finding of a rule does not identify its group if several have no commit: take the
            // first that contains the line.
            let mut groups = self
                .groups
                .iter()
                .enumerate()
                .filter(|(_, g)| g.commit == f.commit);
            let Some(challenge) =
                groups.find_map(|(g, _)| self.challenge(f.draft(), g, member.capacity()))
            else {
                continue;
            };
            looks.push(self.rebut(member, challenge, Doubted::Rule(i)));
        }
        self.expect(looks.len());
        self.tell();
        let mut refuted = Vec::new();
        while let Some((what, place, answer)) = looks.next().await {
            let text = match answer {
                Ok(Refuted::By(backend, reason)) => {
                    refuted.push((what, (backend, reason)));
                    continue;
                }
                Ok(Refuted::Stands) => continue,
                // The claim is kept.
                Ok(Refuted::Unfounded(backend, why)) => {
                    format!(
                        "a refutation by {backend} does not count: {}",
                        why.describe()
                    )
                }
                Err(text) => text,
            };
            out.remarks.push(Remark {
                line: place.as_ref().and_then(|l| l.lines).map(|l| l.first),
                file: place.map(|l| l.file),
                ..Remark::of_the_run(text)
            });
        }
        drop(looks);
        for (what, (backend, reason)) in refuted {
            match what {
                Doubted::Claim(same) => {
                    for i in same {
                        all.candidates[i].disputed = Some(format!("{backend}: {reason}"));
                    }
                }
                Doubted::Rule(rule) => out.claims.disputes.push(Dispute {
                    rule,
                    backend,
                    reason,
                }),
            }
        }
        out.claims.disputes.sort_by_key(|d| d.rule);
    }

    /// Builds the question to refute a claim of a group, with at most `capacity` bytes. Returns
    /// `None` if its code cannot be shown.
    fn challenge(&self, draft: &Draft, group: usize, capacity: usize) -> Option<Challenge<'_>> {
        let shown = self.groups.get(group)?;
        let prompt = prompt::refute(self.brief, draft, shown, capacity, &self.nonce)?;
        let code = prompt::refutable_lines(self.brief, draft, shown, capacity);
        Some(Challenge {
            prompt,
            group,
            code,
            location: draft.location.clone(),
        })
    }

    /// Requests a refutation of one claim, and checks its quote.
    async fn rebut(
        &self,
        member: &Member<'a>,
        challenge: Challenge<'_>,
        what: Doubted,
    ) -> (Doubted, Option<Location>, Result<Refuted, String>) {
        let around = self.around(challenge.group);
        let query = Query::new(&challenge.prompt, claim::rebuttal_schema(), around);
        let answer = self.question(member, &query, reply::rebuttal).await;
        self.step();
        let answer = match answer {
            Ok(ParsedAnswer {
                value, keep, read, ..
            }) => {
                self.store(keep).await;
                Ok(self.weigh(member.name(), &value, &challenge.code, around, &read))
            }
            // The agent can still answer; until then the claim is kept.
            Err(NoAnswer::Failed(_)) if member.is_agent() => Ok(Refuted::Stands),
            Err(NoAnswer::Failed(f)) => Err(format!(
                "a second look was not had: {}: {}",
                member.name(),
                described(&f)
            )),
            Err(NoAnswer::Limit(limit)) => Err(format!("a second look was not had: {limit}")),
        };
        (what, challenge.location, answer)
    }

    /// Evaluates an answer. A refutation must quote code that the model received or read.
    fn weigh(
        &self,
        backend: &str,
        rebuttal: &Rebuttal,
        shown: &[&str],
        around: Option<&Tree<'a>>,
        read: &[Read],
    ) -> Refuted {
        if !rebuttal.refuted {
            return Refuted::Stands;
        }
        let looked_up: Vec<String> = around
            .map(|tree| lines_read(tree, read))
            .unwrap_or_default();
        let code = shown
            .iter()
            .copied()
            .chain(looked_up.iter().map(String::as_str));
        match check_refutation(rebuttal, code) {
            Ok(()) => Refuted::By(
                backend.to_owned(),
                foreign(&rebuttal.reason, self.job.rules),
            ),
            Err(why) => Refuted::Unfounded(backend.to_owned(), why),
        }
    }
}

/// Returns the member for the second review of a claim: the one that made it, or else the first
/// one.
fn judge<'m, 'a>(teams: &'m [Team<'a>], backend: &str) -> Option<&'m Member<'a>> {
    let mut members = teams.iter().flat_map(|t| &t.members);
    members
        .clone()
        .find(|m| m.name() == backend)
        .or_else(|| members.next())
}

/// Returns the lines that the model read through tools.
fn lines_read(tree: &Tree<'_>, read: &[Read]) -> Vec<String> {
    let mut lines = Vec::new();
    for range in read {
        let Ok(text) = tree.text(&range.path) else {
            continue;
        };
        let (first, last) = (range.first.get() as usize, range.last.get() as usize);
        let count = last.saturating_sub(first) + 1;
        lines.extend(
            text.lines()
                .skip(first.saturating_sub(1))
                .take(count)
                .map(str::to_owned),
        );
    }
    lines
}

/// Returns true if the code of a rule's finding may be sent to a model. A secret must not.
fn can_be_shown(f: &Finding) -> bool {
    !matches!(f.cwe(), Some(798 | 522 | 321)) && f.lines().is_some()
}
