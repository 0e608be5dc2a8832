//! The next step after a round, and signs that another round would not help. Pure.
//!
//! An agent follows these sentences literally. Each text therefore names one action and when to
//! stop.

use super::compare::{Again, Earlier};
use super::recall::carried_from;
use crate::ai::Retry;
use crate::finding::Origin;
use crate::history::owed::{self, Owed};
use crate::text;
use crate::verdict::Skip;
use crate::wire::stored::{Action, Advice, Since, State};
use crate::wire::{Finding, Outcome, Report, Severity, Verdict};

/// Finding IDs that a sentence lists before it counts the rest.
const NAMES: usize = 5;
/// Number of rounds over which the number of blocking findings must fall.
const TREND: usize = 3;
/// Characters kept of a reason that comes from a backend or another program.
const REASON: usize = 200;

/// Input of the advice.
#[derive(Clone, Copy, Debug)]
pub struct Told<'a> {
    /// The finished report of this round.
    pub report: &'a Report,
    /// `None` in the first round.
    pub since: Option<&'a Since>,
    pub again: &'a [Again],
    /// Earlier rounds, oldest first.
    pub earlier: &'a [Earlier<'a>],
    pub max_rounds: u32,
    /// The command that reviews the pull request of the session again.
    pub pull: Option<&'a str>,
    /// Whether the failure of a backend is temporary.
    pub retry: Retry,
}

/// Returns the next step for the caller of a review.
pub fn advice(told: &Told<'_>) -> Advice {
    let report = told.report;
    let blocking: Vec<&Finding> = report.findings.iter().filter(|f| f.blocking).collect();
    let mut circling = told.circling(&blocking);
    let (action, text) = match (report.outcome, report.verdict) {
        (Outcome::NothingToReview, _) if told.is_unread() => told.unanswered().unwrap_or_else(Told::unread),
        (Outcome::NothingToReview, _) => told.unanswered().unwrap_or_else(|| {
            (
                Action::Nothing,
                "The change is empty, so nothing was reviewed. This is not an approval. Request another review only \
                 after the code has changed."
                    .to_owned(),
            )
        }),
        (Outcome::Cancelled, _) => (
            Action::RetryLater,
            "The review was cancelled before it finished. It has no result. Request another review when it can run \
             to the end."
                .to_owned(),
        ),
        (_, Verdict::Block) => told.blocked(&blocking, &circling),
        (_, Verdict::Incomplete) => told.incomplete(),
        (_, Verdict::Pass | Verdict::Warn) => {
            let (action, text, nits) = told.passed();
            circling.extend(nits);
            (action, text)
        }
    };
    Advice {
        action,
        text,
        circling,
    }
}

impl Told<'_> {
    /// Returns true if the policy allows no further round.
    fn is_last(&self) -> bool {
        self.report.round >= self.max_rounds
    }

    /// Returns the signs that the rounds do not converge.
    fn circling(&self, blocking: &[&Finding]) -> Vec<String> {
        let mut out = Vec::new();
        for a in self.again.iter().take(NAMES) {
            let at = a.line.map_or_else(String::new, |l| format!(":{l}"));
            out.push(format!(
                "{} is at {}{at}, where {} of round {} was fixed",
                a.id, a.file, a.previous_id, a.round
            ));
        }
        let before = self
            .earlier
            .last()
            .and_then(|e| Some((e.review.since.as_ref()?, &e.review.report)));
        if let (Some(now), Some((before, report))) = (self.since, before)
            && introduced(now, self.report) > 0
            && introduced(before, report) > 0
        {
            out.push("the fixes of two consecutive rounds introduced new findings".to_owned());
        }
        let counts = self.earlier.iter().map(|e| {
            e.review
                .report
                .findings
                .iter()
                .filter(|f| f.blocking)
                .count()
        });
        let counts: Vec<usize> = counts.chain([blocking.len()]).collect();
        if let Some(trend) = counts.len().checked_sub(TREND).map(|from| &counts[from..])
            && trend[0] > 0
            && trend.is_sorted()
        {
            let numbers: Vec<_> = trend.iter().map(usize::to_string).collect();
            out.push(format!(
                "the number of blocking findings is not falling: {}",
                numbers.join(", ")
            ));
        }
        if self.is_last() && !blocking.is_empty() {
            out.push(format!(
                "round {} of {} was the last one",
                self.report.round, self.max_rounds
            ));
        }
        out
    }

    /// Returns the instruction for the next round. A pull request is read from the forge, not from
    /// the worktree.
    fn next_round(&self, request: &str) -> String {
        match self.pull {
            None => format!("{request} and list your changes in the response"),
            Some(command) => format!("push them and review the pull request again: {command}"),
        }
    }

    /// Returns the next step and its text if findings block.
    fn blocked(&self, blocking: &[&Finding], circling: &[String]) -> (Action, String) {
        let tests = self
            .report
            .test_results
            .as_ref()
            .filter(|t| !t.passed && t.blocking);
        if let (true, Some(tests)) = (blocking.is_empty(), tests) {
            let action = if self.is_last() {
                Action::AskAPerson
            } else {
                Action::Fix
            };
            let text = format!(
                "The project's tests failed ({}); see test_results. Fix the cause, then {}.",
                tests.summary,
                self.next_round("request one follow-up review")
            );
            return (action, text);
        }
        let names = names(blocking.iter().map(|f| f.id.as_str()));
        let verb = if blocking.len() == 1 {
            "blocks"
        } else {
            "block"
        };
        if !circling.is_empty() {
            let text = format!(
                "Stop: {names} still {verb} the change, and another round is unlikely to resolve this. Show the \
                 findings to the user and wait for a decision. Do not request another review of this session yourself."
            );
            return (Action::AskAPerson, text);
        }
        let next = self.next_round("request a follow-up review");
        let mut text = format!("{names} {verb}. Fix the findings you agree with, then {next}.");
        // An explanation cannot clear a finding of a rule or a critical finding.
        let (arguable, firm): (Vec<&Finding>, Vec<&Finding>) = blocking
            .iter()
            .copied()
            .partition(|f| f.origin != Origin::Rules.name() && f.severity != Severity::Critical);
        if !arguable.is_empty() {
            let ids = self::names(arguable.iter().map(|f| f.id.as_str()));
            text.push_str(&format!(
                " If you disagree with {ids}, keep the code and explain why in the response."
            ));
        }
        if !firm.is_empty() {
            let ids = self::names(firm.iter().map(|f| f.id.as_str()));
            let verb = if firm.len() == 1 { "needs" } else { "need" };
            text.push_str(&format!(
                " {ids} {verb} a code change, or a waiver from a person."
            ));
        }
        let carried: Vec<&str> = blocking
            .iter()
            .filter(|f| carried_from(f).is_some())
            .map(|f| f.id.as_str())
            .collect();
        if !carried.is_empty() {
            let carried = self::names(carried.into_iter());
            text.push_str(&format!(
                " This round did not report {carried} again, but the lines are unmodified: {carried} still counts."
            ));
        }
        if let Some(tests) = tests {
            text.push_str(&format!(
                " The project's tests also failed ({}).",
                tests.summary
            ));
        }
        if self.report.outcome == Outcome::Incomplete {
            text.push_str(" Part of the change was not reviewed; see coverage.failed.");
        }
        (Action::Fix, text)
    }

    /// Returns the next step and its text if the round is incomplete.
    fn incomplete(&self) -> (Action, String) {
        let failed = &self.report.coverage.failed;
        // An entry without a file is usually the failure of a backend, which explains more than
        // that of one file.
        let failure = failed.iter().find(|f| f.file.is_none()).or(failed.first());
        if let (true, Some(f)) = (self.retry.retryable, failure) {
            let text = format!(
                "The review is incomplete: {}. This is not an approval. The cause is temporary and not in the change. \
                 Do not retry immediately: continue with other work and retry later. If it keeps failing, ask the \
                 user.",
                shortened(&f.reason)
            );
            return (Action::RetryLater, text);
        }
        let first = failed.first().map_or_else(String::new, |f| {
            let file = f
                .file
                .as_ref()
                .map_or_else(String::new, |f| format!("{f}: "));
            format!(" ({file}{})", shortened(&f.reason))
        });
        let text = format!(
            "The review is incomplete: part of the change was not reviewed{first}. A retry alone does not help. Show \
             coverage.failed to the user, who can remove the cause or decide without a complete review."
        );
        (Action::AskAPerson, text)
    }

    /// Returns the IDs of findings that blocked earlier and that this round did not check.
    fn unchecked(&self) -> Vec<&str> {
        let entries = self.since.iter().flat_map(|s| &s.entries);
        entries
            .filter(|e| {
                e.state == State::Unchecked && e.blocked(self.earlier.iter().map(|e| e.review))
            })
            .filter_map(|e| e.previous_id.as_deref())
            .collect()
    }

    /// Returns the next step if the round did not check earlier blocking findings.
    fn unlooked(names: Vec<&str>) -> (Action, String) {
        let text = format!(
            "Nothing blocks in this round, but it did not check {}, which blocked earlier. Do not close the session \
             yet. Request a follow-up without a source and without files: it reviews the change from the start of \
             the session with the same backends. If that does not check it either, ask the user.",
            self::names(names.into_iter())
        );
        (Action::RetryLater, text)
    }

    /// Returns the next step if the change with earlier blocking findings is gone, and this round
    /// reviewed another one.
    fn replaced(names: Vec<&str>) -> (Action, String) {
        let text = format!(
            "Nothing blocks in this round, but it reviewed another change: that of {}, which blocked earlier, was moved \
             away or taken back. That does not fix a finding. Do not close the session as approved. Bring the change \
             back and request one follow-up review, or ask the user whether to close this session as abandoned and to \
             review the new change by itself.",
            self::names(names.into_iter())
        );
        (Action::AskAPerson, text)
    }

    /// Returns the next step if nothing blocks in this round and the session still cannot be
    /// approved. `complete` refuses the approval for the same reasons, so the advice must not send
    /// an agent there.
    fn unanswered(&self) -> Option<(Action, String)> {
        let earlier = self.earlier.iter();
        let earlier = earlier.map(|e| owed::RoundRecord::of(e.review));
        let now = owed::RoundRecord {
            report: self.report,
            since: self.since,
        };
        let rounds: Vec<owed::RoundRecord<'_>> = earlier.chain([now]).collect();
        let owed = owed::owed(&rounds);
        let (through, unseen): (Vec<Owed<'_>>, Vec<Owed<'_>>) =
            owed.into_iter().partition(|o| o.now.is_some());
        if owed::is_blind(&rounds) {
            let text = "This round reviewed no file of the change (see coverage.skipped), and an earlier round \
                        blocked. This is not an approval. Ask the user.";
            return Some((Action::AskAPerson, text.to_owned()));
        }
        if !through.is_empty() {
            let text = format!(
                "Nothing blocks, but only because the policy changed: {} {} unresolved. Do not close the session as \
                 approved. Fix the code and request one follow-up review, or ask the user.",
                owed::names(&through),
                if through.len() == 1 { "is" } else { "are" }
            );
            return Some((
                if self.is_last() {
                    Action::AskAPerson
                } else {
                    Action::Fix
                },
                text,
            ));
        }
        if unseen.iter().any(|o| o.other_policy) {
            let text = format!(
                "Nothing blocks, but the policy changed and this round did not check {}. Do not close the session as \
                 approved. Ask the user, who can decide, or restore the policy and request a follow-up without a \
                 source and without files.",
                owed::names(&unseen)
            );
            return Some((Action::AskAPerson, text));
        }
        let mut names: Vec<&str> = unseen.iter().map(|o| o.finding.id.as_str()).collect();
        names.extend(self.unchecked());
        names.sort_unstable();
        names.dedup();
        let is_replaced = self.since.is_some_and(|since| since.is_replaced);
        (!names.is_empty()).then(|| {
            if is_replaced {
                Self::replaced(names)
            } else {
                Self::unlooked(names)
            }
        })
    }

    /// Returns true if the change has files, and none of them was reviewed.
    fn is_unread(&self) -> bool {
        self.report.coverage.files_reviewed == 0 && self.report.coverage.files_total > 0
    }

    /// Returns the next step and its text if no file was reviewed.
    fn unread() -> (Action, String) {
        let text = "No file of this change was reviewed; see coverage.skipped. This is not an approval. Ask the user.";
        (Action::AskAPerson, text.to_owned())
    }

    /// Returns why a person has to decide although nothing blocks: failed tests that the policy
    /// reports as a warning, or a limit that kept files from a model.
    fn warned(&self) -> Option<String> {
        let failed = self.report.test_results.as_ref().filter(|t| !t.passed);
        if let Some(tests) = failed {
            let text = format!(
                "Nothing blocks, but the project's tests failed ({}). Fix them and request one follow-up review. \
                 Until they pass, only a person can approve the session.",
                tests.summary
            );
            return Some(text);
        }
        let coverage = &self.report.coverage;
        let cut = coverage
            .skipped
            .iter()
            .filter(|s| s.reason == Skip::Limit.name())
            .count();
        (cut > 0).then(|| {
            format!(
                "Nothing blocks in the reviewed files, but a limit stopped the review after {} of {} files. This is \
                 not an approval. Ask the user.",
                coverage.files_reviewed, coverage.files_total
            )
        })
    }

    /// Returns the next step after a round in which nothing blocks, and why another round would not
    /// help.
    fn passed(&self) -> (Action, String, Option<String>) {
        if let Some((action, text)) = self.unanswered() {
            return (action, text, None);
        }
        let left: Vec<&Finding> = self.report.findings.iter().filter(|f| f.counts()).collect();
        if left.is_empty() && self.is_unread() {
            let (action, text) = Self::unread();
            return (action, text, None);
        }
        if let Some(text) = self.warned() {
            return (Action::AskAPerson, text, None);
        }
        if left.is_empty() {
            return (
                Action::Complete,
                "No findings. Close the session as approved.".to_owned(),
                None,
            );
        }
        let (verb, them) = if left.len() == 1 {
            ("is", "it")
        } else {
            ("are", "them")
        };
        let small = left
            .iter()
            .all(|f| !matches!(f.severity, Severity::Critical | Severity::Major));
        let names = names(left.iter().map(|f| f.id.as_str()));
        let text = format!(
            "Nothing blocks. {names} {verb} optional: fix {them} if it is worth the effort, but do not request \
             another round for {them}. Close the session as approved."
        );
        let nits = small && self.report.round > 1;
        (
            Action::Complete,
            text,
            nits.then(|| "only minor findings are left".to_owned()),
        )
    }
}

/// Counts the findings above `suggestion` that a fix introduced.
fn introduced(since: &Since, report: &Report) -> usize {
    let new = since
        .entries
        .iter()
        .filter(|e| e.state == State::IntroducedByFix && e.severity != Severity::Suggestion);
    let ids = new.filter_map(|e| e.id.as_ref());
    ids.filter(|id| report.findings.iter().any(|f| f.id == **id && f.counts()))
        .count()
}

/// Returns a text on one line, truncated.
fn shortened(text: &str) -> String {
    text::shortened(&text::one_line(text), REASON).into_owned()
}

/// Joins names: `F1`, `F1 and F2`, `F1, F2, F3, F4, F5 and 3 more`.
fn names<'n>(all: impl Iterator<Item = &'n str>) -> String {
    text::series(&all.collect::<Vec<_>>(), NAMES)
}

#[cfg(test)]
mod tests;
