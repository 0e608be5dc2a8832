//! What blocked in an earlier round, does no longer, and was answered by nothing that is recorded. Pure.
//!
//! A finding is answered where its code was mended, where a person waived it, where a comment suppresses it, and
//! where a model's finding is disputed; also where it weighs less under the very policy under which it blocked. It is
//! not where another policy let it through, or where nobody looked for it.

use crate::finding::Origin;
use crate::wire::stored::{Entry, Since, State};
use crate::wire::{Disposition, Finding, Report};

/// Names of findings that a sentence tells.
const NAMES: usize = 5;

/// A round, as far as it tells what became of findings.
#[derive(Clone, Copy, Debug)]
pub struct Told<'r> {
    pub report: &'r Report,
    /// `None` in the first round.
    pub since: Option<&'r Since>,
}

/// A finding that nothing answered.
#[derive(Clone, Copy, Debug)]
pub struct Owed<'r> {
    /// As it was when it last blocked.
    pub finding: &'r Finding,
    /// When that was.
    pub round: u32,
    /// Where it is now, in the last round; `None`: that round did not look for it.
    pub now: Option<&'r Finding>,
    /// Whether the last round had another policy.
    pub other_policy: bool,
    /// The policy under which it blocked.
    policy: &'r str,
    /// As it was last known.
    last: &'r Finding,
}

impl Owed<'_> {
    /// Returns its name for people: `F1 of round 1 (eval-call at a.py:3)`.
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

/// Returns the names of findings for people.
pub fn names(all: &[Owed<'_>]) -> String {
    let some: Vec<String> = all.iter().take(NAMES).map(Owed::name).collect();
    match (some.as_slice(), all.len().saturating_sub(NAMES)) {
        ([first @ .., last], 0) if !first.is_empty() => format!("{} and {last}", first.join(", ")),
        (some, 0) => some.join(", "),
        (some, more) => format!("{} and {more} more", some.join(", ")),
    }
}

/// Follows what blocked through the rounds of a session, oldest first, and returns what the last one owes an answer
/// to. What blocks in the last round is not in it.
pub fn owed<'r>(rounds: &[Told<'r>]) -> Vec<Owed<'r>> {
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

/// Returns true if the last round looked at none of the files that it was about, though an earlier one blocked.
pub fn is_blind(rounds: &[Told<'_>]) -> bool {
    let Some((last, earlier)) = rounds.split_last() else { return false };
    let coverage = &last.report.coverage;
    let unread = coverage.files_reviewed == 0 && coverage.files_total > 0;
    unread && earlier.iter().any(|r| r.report.findings.iter().any(|f| f.blocking))
}

/// Returns true if an entry of the round after speaks of this finding.
fn became(before: &Owed<'_>, entry: &Entry) -> bool {
    let known = before.last;
    match entry.state {
        // Named as it was.
        State::Fixed | State::Unchecked => entry.fingerprint == known.fingerprint && entry.title == known.title,
        // Named as it is: the same lines may be told in other words.
        State::StillThere | State::Moved => {
            let is_named = entry.previous_id.as_ref() == Some(&known.id) && entry.previous_line == known.line;
            is_named && entry.rule_id == known.rule_id
        }
        State::Reopened | State::New | State::IntroducedByFix => false,
    }
}

/// Returns what is left of a finding after a round.
fn after<'r>(before: &Owed<'r>, entry: &Entry, report: &'r Report) -> Option<Owed<'r>> {
    let other_policy = before.policy != report.policy.hash;
    match entry.state {
        State::Unchecked => Some(Owed { now: None, other_policy, ..*before }),
        State::StillThere | State::Moved | State::Reopened => {
            let now = report.findings.iter().find(|f| Some(&f.id) == entry.id.as_ref())?;
            // One that blocks again is owed as it is now.
            let let_through = !now.blocking && other_policy && !is_answered(now);
            let_through.then_some(Owed { now: Some(now), last: now, other_policy, ..*before })
        }
        State::Fixed | State::New | State::IntroducedByFix => None,
    }
}

/// Returns what came back and blocked before it was mended.
fn returned<'r>(entry: &Entry, earlier: &[Told<'r>], report: &'r Report) -> Option<Owed<'r>> {
    let now = report.findings.iter().find(|f| Some(&f.id) == entry.id.as_ref())?;
    let before = earlier.iter().rev().find_map(|r| {
        let is_it = |f: &&Finding| {
            f.blocking
                && Some(&f.id) == entry.previous_id.as_ref()
                && f.rule_id == now.rule_id
                && f.origin == now.origin
        };
        Some((r, r.report.findings.iter().find(is_it)?))
    });
    let (round, finding) = before?;
    let policy = round.report.policy.hash.as_str();
    let before = Owed { finding, round: round.report.round, now: None, other_policy: false, policy, last: finding };
    after(&before, entry, report)
}

/// Returns true if something that is recorded with a finding says why it does not block.
fn is_answered(f: &Finding) -> bool {
    // What a model doubts of a rule's finding takes nothing from it.
    let is_disputed = f.disputed.is_some() && f.origin != Origin::Rules.name();
    let is_decided = matches!(f.disposition, Disposition::Rejected | Disposition::Deferred);
    f.waived.is_some() || is_decided || f.suppressed.as_ref().is_some_and(|s| s.by == "inline") || is_disputed
}

#[cfg(test)]
mod tests;
