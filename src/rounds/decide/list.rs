//! Lists the findings of a stored review with the decisions that are valid on a day.

use super::super::recall;
use super::Here;
use super::content::{ReviewedContent, current};
use crate::disposition::{DecidedContent, DecisionEntries, DecisionEntry};
use crate::error::Result;
use crate::finding::Finding;
use crate::git::{Repo, State};
use crate::review::{StoreLocation, decided, remembered, today};
use crate::wire;
use crate::wire::stored::{Session, State as FindingState};
use jiff::civil::Date;

/// A finding of a session, with the current decision on it.
#[derive(Clone, Debug)]
pub struct ListedFinding {
    /// The stored finding, with the current decision.
    pub finding: wire::Finding,
    /// Entry of the decision, to display.
    pub entry: Option<DecisionEntry>,
    /// Valid decision that an agent proposes.
    pub proposal: Option<DecisionEntry>,
}

/// Lists the findings of the last round of a session with the valid decisions, and earlier findings
/// that are fixed.
///
/// # Errors
/// Usage: a file of decisions is invalid.
pub fn list(here: &Here<'_>, session: &Session) -> Result<Vec<ListedFinding>> {
    let Some(last) = session.rounds.last() else {
        return Ok(Vec::new());
    };
    remembered::recall(here.env, here.repo.worktree(), here.now);
    let mut all = held(here.repo, here.place, &last.review.report, today(here.now))?;
    remembered::save(here.env, here.repo.worktree());
    let fixed = last
        .review
        .since
        .iter()
        .flat_map(|s| &s.entries)
        .filter(|e| e.state == FindingState::Fixed);
    for entry in fixed {
        let mut earlier = session
            .rounds
            .iter()
            .rev()
            .skip(1)
            .flat_map(|r| &r.review.report.findings);
        if let Some(found) = earlier.find(|f| f.fingerprint == entry.fingerprint) {
            let finding = wire::Finding {
                disposition: wire::Disposition::Fixed,
                decided: None,
                ..found.clone()
            };
            all.push(ListedFinding {
                finding,
                entry: None,
                proposal: None,
            });
        }
    }
    Ok(all)
}

/// Lists the findings of a report with the decisions that are valid on a day.
///
/// # Errors
/// As [`list`].
pub fn held(
    repo: &Repo,
    place: &StoreLocation,
    report: &wire::Report,
    day: Date,
) -> Result<Vec<ListedFinding>> {
    let mut reader = repo.reader();
    let shared = decided::shared(&mut reader, &State::Worktree)?;
    let own = decided::own(&mut reader, place, &mut Vec::new())?;
    let entries = decided::joined(own, shared);
    let proposals = DecisionEntries::new(decided::proposed(&mut reader, place)?);
    let held = HeldDecisions {
        entries: &entries,
        proposals: &proposals,
        day,
    };
    let mut all = Vec::new();
    let mut batch: Vec<ListedCandidate<'_>> = Vec::new();
    let mut bytes = 0;
    for found in &report.findings {
        let Some(finding) = recall::findings(std::slice::from_ref(found), b"").pop() else {
            continue;
        };
        let is_named = entries.names(&finding) || proposals.names(&finding);
        let lines = if is_named {
            current(repo, &mut reader, &finding, &report.source)
        } else {
            ReviewedContent::Changed
        };
        bytes += lines.content().map_or(0, |content| content.text.len());
        batch.push(ListedCandidate {
            found,
            finding,
            lines,
        });
        if bytes > decided::BATCH {
            all.extend(held.listed(&batch));
            batch.clear();
            bytes = 0;
        }
    }
    all.extend(held.listed(&batch));
    Ok(all)
}

/// A finding with its content.
struct ListedCandidate<'r> {
    found: &'r wire::Finding,
    finding: Finding,
    lines: ReviewedContent,
}

/// The decisions and proposals that are valid on a day.
struct HeldDecisions<'e> {
    entries: &'e DecisionEntries,
    proposals: &'e DecisionEntries,
    day: Date,
}

impl HeldDecisions<'_> {
    /// Lists findings with the valid decisions. Computes their digests in one batch.
    fn listed(&self, batch: &[ListedCandidate<'_>]) -> Vec<ListedFinding> {
        let pairs: Vec<(&Finding, &DecidedContent)> = batch
            .iter()
            .filter_map(|c| Some((&c.finding, c.lines.content()?)))
            .collect();
        self.entries.prepare(&pairs, self.day);
        self.proposals.prepare(&pairs, self.day);
        batch.iter().map(|candidate| self.one(candidate)).collect()
    }

    /// Lists one finding, whose digests were computed.
    fn one(&self, candidate: &ListedCandidate<'_>) -> ListedFinding {
        let ListedCandidate {
            found,
            finding,
            lines,
        } = candidate;
        let holds = lines.entry(finding, self.entries, self.day).cloned();
        let proposal = lines.entry(finding, self.proposals, self.day).cloned();
        let mut listed = (*found).clone();
        listed.disposition = holds
            .as_ref()
            .map_or(wire::Disposition::Pending, |e| e.decision.into());
        listed.decided = holds.as_ref().map(decision);
        ListedFinding {
            finding: listed,
            entry: holds,
            proposal,
        }
    }
}

/// Converts an entry for reports.
pub fn decision(entry: &DecisionEntry) -> wire::Decided {
    wire::Decided {
        reason: entry.reason.clone(),
        owner: entry.owner.clone(),
        expires: entry.expires.map(|date| date.to_string()),
    }
}
