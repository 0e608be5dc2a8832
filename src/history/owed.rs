//! Finds unresolved findings: they blocked in an earlier round, no longer do, and no record
//! explains why. Pure.
//!
//! A finding is resolved if its code was fixed, a person waived it, a comment suppresses it, or a
//! model's finding is disputed; also if it weighs less under the same policy under which it
//! blocked. It is unresolved if another policy no longer blocks on it, or the last round did not
//! check it.

use crate::finding::Origin;
use crate::text::series;
use crate::wire::stored::{ComparedFinding, Review, Since, State};
use crate::wire::{Disposition, Finding, Report};

/// Findings that a sentence names, at most.
const NAMES: usize = 5;

/// A round and the fate of earlier findings in it.
#[derive(Clone, Copy, Debug)]
pub struct RoundRecord<'r> {
    pub report: &'r Report,
    /// `None` in the first round.
    pub since: Option<&'r Since>,
}

impl<'r> RoundRecord<'r> {
    /// Returns the record of a stored round.
    pub fn of(review: &'r Review) -> Self {
        Self {
            report: &review.report,
            since: review.since.as_ref(),
        }
    }
}

/// An unresolved finding.
#[derive(Clone, Copy, Debug)]
pub struct Owed<'r> {
    /// The finding when it last blocked.
    pub finding: &'r Finding,
    /// Round in which it last blocked.
    pub round: u32,
    /// The finding in the last round; `None` if that round did not check it.
    pub now: Option<&'r Finding>,
    /// Whether the last round had another policy.
    pub other_policy: bool,
    /// Policy under which it blocked.
    policy: &'r str,
    /// Last known state of the finding.
    last: &'r Finding,
}

impl Owed<'_> {
    /// Returns its name to display, such as `F1 of round 1 (eval-call at a.py:3)`.
    pub fn name(&self) -> String {
        let f = self.finding;
        let at = match (&f.file, f.line) {
            (Some(file), Some(line)) => format!(" at {file}:{line}"),
            (Some(file), None) => format!(" in {file}"),
            (None, _) => String::new(),
        };
        format!("{} of round {} ({}{at})", f.id, self.round, f.rule_id)
    }
}

/// Returns the names of findings to display.
pub fn names(all: &[Owed<'_>]) -> String {
    series(&all.iter().map(Owed::name).collect::<Vec<_>>(), NAMES)
}

/// Tracks blocking findings through the rounds of a session, oldest first, and returns those that
/// are unresolved in the last round. Excludes findings that block in the last round.
pub fn owed<'r>(rounds: &[RoundRecord<'r>]) -> Vec<Owed<'r>> {
    let mut open: Vec<Owed<'r>> = Vec::new();
    for (n, round) in rounds.iter().enumerate() {
        let mut next: Vec<Owed<'r>> = Vec::new();
        for entry in round.since.iter().flat_map(|s| &s.entries) {
            for before in open.iter().filter(|o| became(o, entry)) {
                next.extend(after(before, entry, round.report));
            }
            if entry.state == State::Reopened {
                next.extend(returned(entry, &rounds[..n], round.report));
            }
        }
        let blocking = round.report.findings.iter().filter(|f| f.blocking);
        next.extend(blocking.map(|f| Owed {
            finding: f,
            round: round.report.round,
            now: Some(f),
            other_policy: false,
            policy: &round.report.policy.hash,
            last: f,
        }));
        let mut seen = Vec::new();
        next.retain(|o| {
            let key = (o.round, &o.finding.id);
            let fresh = !seen.contains(&key);
            seen.push(key);
            fresh
        });
        open = next;
    }
    open.retain(|o| o.now.is_none_or(|f| !f.blocking));
    open
}

/// Returns true if the last round reviewed none of its files, although an earlier one blocked.
pub fn is_blind(rounds: &[RoundRecord<'_>]) -> bool {
    let Some((last, earlier)) = rounds.split_last() else {
        return false;
    };
    let coverage = &last.report.coverage;
    let unread = coverage.files_reviewed == 0 && coverage.files_total > 0;
    unread
        && earlier
            .iter()
            .any(|r| r.report.findings.iter().any(|f| f.blocking))
}

/// Returns true if an entry of the following round is about this finding.
fn became(before: &Owed<'_>, entry: &ComparedFinding) -> bool {
    let known = before.last;
    match entry.state {
        // Has the name from before.
        State::Fixed | State::Unchecked => {
            entry.fingerprint == known.fingerprint && entry.title == known.title
        }
        // Has the current name: a model may describe the same lines in other words.
        State::StillThere | State::Moved => {
            let is_named =
                entry.previous_id.as_ref() == Some(&known.id) && entry.previous_line == known.line;
            is_named && entry.rule_id == known.rule_id
        }
        State::Reopened | State::New | State::IntroducedByFix => false,
    }
}

/// Returns the state of a finding after a round, if it is unresolved.
fn after<'r>(before: &Owed<'r>, entry: &ComparedFinding, report: &'r Report) -> Option<Owed<'r>> {
    let other_policy = before.policy != report.policy.hash;
    match entry.state {
        State::Unchecked => Some(Owed {
            now: None,
            other_policy,
            ..*before
        }),
        State::StillThere | State::Moved | State::Reopened => {
            let now = report
                .findings
                .iter()
                .find(|f| Some(&f.id) == entry.id.as_ref())?;
            // A finding that blocks again is added in its current state.
            let let_through = !now.blocking && other_policy && !is_answered(now);
            let_through.then_some(Owed {
                now: Some(now),
                last: now,
                other_policy,
                ..*before
            })
        }
        State::Fixed | State::New | State::IntroducedByFix => None,
    }
}

/// Returns a reopened finding that blocked before it was fixed.
fn returned<'r>(
    entry: &ComparedFinding,
    earlier: &[RoundRecord<'r>],
    report: &'r Report,
) -> Option<Owed<'r>> {
    let now = report
        .findings
        .iter()
        .find(|f| Some(&f.id) == entry.id.as_ref())?;
    let before = earlier.iter().rev().find_map(|r| {
        let mut blocking = r.report.findings.iter().filter(|f| f.blocking);
        let finding = blocking.find(|f| {
            Some(&f.id) == entry.previous_id.as_ref()
                && f.rule_id == now.rule_id
                && f.origin == now.origin
        });
        Some((r, finding?))
    });
    let (round, finding) = before?;
    let policy = round.report.policy.hash.as_str();
    let before = Owed {
        finding,
        round: round.report.round,
        now: None,
        other_policy: false,
        policy,
        last: finding,
    };
    after(&before, entry, report)
}

/// Returns true if a record explains why a finding does not block.
fn is_answered(f: &Finding) -> bool {
    // A model's dispute does not affect a rule's finding.
    let is_disputed = f.disputed.is_some() && f.origin != Origin::Rules.name();
    let is_decided = matches!(f.disposition, Disposition::Rejected | Disposition::Deferred);
    f.waived.is_some()
        || is_decided
        || f.suppressed.as_ref().is_some_and(|s| s.by == "inline")
        || is_disputed
}

#[cfg(test)]
mod tests;
