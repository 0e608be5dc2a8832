//! What to do after a round, and whether another one would help. Pure.
//!
//! An agent reads these sentences and does what they say, so each names one thing to do and where it ends.

use super::compare::{Again, Earlier};
use crate::ai::Retry;
use crate::finding::Origin;
use crate::history::owed::{self, Owed};
use crate::verdict::Skip;
use crate::wire::stored::{Action, Advice, Since, State};
use crate::wire::{Finding, Outcome, Report, Severity, Verdict};

/// Names of findings that a sentence tells.
const NAMES: usize = 5;
/// Rounds over which blocking findings should become fewer.
const TREND: usize = 3;
/// Characters of a reason that is not ours.
const REASON: usize = 200;

/// What the advice is taken from.
#[derive(Clone, Copy, Debug)]
pub struct Told<'a> {
    /// The finished report of this round.
    pub report: &'a Report,
    /// `None` in the first round.
    pub since: Option<&'a Since>,
    pub again: &'a [Again],
    /// The rounds before, oldest first.
    pub earlier: &'a [Earlier<'a>],
    pub max_rounds: u32,
    /// Whether what kept a backend from answering passes by itself.
    pub retry: Retry,
}

/// Says what to do next.
pub fn advice(told: &Told<'_>) -> Advice {
    let report = told.report;
    let blocking: Vec<&Finding> = report.findings.iter().filter(|f| f.blocking).collect();
    let mut circling = told.circling(&blocking);
    let say = |action, text: String| (action, text);
    let (action, text) = match (report.outcome, report.verdict) {
        (Outcome::NothingToReview, _) if told.is_unread() => told.unanswered().unwrap_or_else(Told::unread),
        (Outcome::NothingToReview, _) => told.unanswered().unwrap_or_else(|| {
            say(
                Action::Nothing,
                "Nothing changed, so nothing was reviewed. This is not an approval. Request a review only after a change."
                    .to_owned(),
            )
        }),
        (Outcome::Cancelled, _) => say(
            Action::RetryLater,
            "The review was stopped before it ended. It says nothing about the change; request it again when it can run \
             to its end."
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
    Advice { action, text, circling }
}

impl Told<'_> {
    fn is_last(&self) -> bool {
        self.report.round >= self.max_rounds
    }

    /// Says why rounds do not converge.
    fn circling(&self, blocking: &[&Finding]) -> Vec<String> {
        let mut out = Vec::new();
        for a in self.again.iter().take(NAMES) {
            let at = a.line.map_or_else(String::new, |l| format!(":{l}"));
            out.push(format!("{} is at {}{at}, where {} of round {} was fixed", a.id, a.file, a.previous_id, a.round));
        }
        let before = self.earlier.last().and_then(|e| Some((e.review.since.as_ref()?, &e.review.report)));
        if let (Some(now), Some((before, report))) = (self.since, before)
            && introduced(now, self.report) > 0
            && introduced(before, report) > 0
        {
            out.push("the fixes of two rounds running brought new findings".to_owned());
        }
        let counts = self.earlier.iter().map(|e| e.review.report.findings.iter().filter(|f| f.blocking).count());
        let counts: Vec<usize> = counts.chain([blocking.len()]).collect();
        if let Some(trend) = counts.len().checked_sub(TREND).map(|from| &counts[from..])
            && trend[0] > 0
            && trend.is_sorted()
        {
            let numbers: Vec<_> = trend.iter().map(usize::to_string).collect();
            out.push(format!("the number of blocking findings does not fall: {}", numbers.join(", ")));
        }
        if self.is_last() && !blocking.is_empty() {
            out.push(format!("round {} of {} is used up", self.report.round, self.max_rounds));
        }
        out
    }

    fn blocked(&self, blocking: &[&Finding], circling: &[String]) -> (Action, String) {
        let tests = self.report.test_results.as_ref().filter(|t| !t.passed && t.blocking);
        if let (true, Some(tests)) = (blocking.is_empty(), tests) {
            let action = if self.is_last() { Action::AskAPerson } else { Action::Fix };
            let text = format!(
                "The project's tests failed ({}): see test_results. Fix them, then request one follow-up of this \
                 session and say what you did.",
                tests.summary
            );
            return (action, text);
        }
        let names = names(blocking.iter().map(|f| f.id.as_str()));
        let verb = if blocking.len() == 1 { "blocks" } else { "block" };
        if !circling.is_empty() {
            let text = format!(
                "Stop here: {names} still {verb}, and another round is not likely to end it. Show the findings to a \
                 person, who decides; do not ask for another review of this session on your own."
            );
            return (Action::AskAPerson, text);
        }
        let mut text = format!(
            "{names} {verb}. Fix the findings you agree with, then request a follow-up review of this session and describe the fixes."
        );
        // What a rule found is not talked about; what is critical, neither.
        let is_arguable = |f: &&&Finding| f.origin != Origin::Rules.name() && f.severity != Severity::Critical;
        if blocking.iter().any(|f| is_arguable(&f)) {
            let arguable = self::names(blocking.iter().filter(is_arguable).map(|f| f.id.as_str()));
            text.push_str(&format!(" If {arguable} is wrong, keep the code and explain why in the response."));
        }
        if blocking.iter().any(|f| !is_arguable(&f)) {
            text.push_str(
                " A finding of a rule, and a critical finding, needs a code change, or a waiver from a person.",
            );
        }
        let carried: Vec<&str> = blocking.iter().filter(|f| is_carried(f)).map(|f| f.id.as_str()).collect();
        if !carried.is_empty() {
            let carried = self::names(carried.into_iter());
            text.push_str(&format!(
                " {carried} was not found again, but its lines did not change, so it still counts."
            ));
        }
        if let Some(tests) = tests {
            text.push_str(&format!(" The project's tests failed, too ({}).", tests.summary));
        }
        if self.report.outcome == Outcome::Incomplete {
            text.push_str(" Part of the change was not reviewed: see coverage.failed.");
        }
        (Action::Fix, text)
    }

    fn incomplete(&self) -> (Action, String) {
        let failed = &self.report.coverage.failed;
        let reason = |text: &str| {
            let text: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
            let cut: String = text.chars().take(REASON).collect();
            if cut.len() < text.len() { format!("{cut}…") } else { cut }
        };
        // What speaks of the whole change is a backend's failure sooner than what speaks of a file.
        let failure = failed.iter().find(|f| f.file.is_none()).or(failed.first());
        if let (true, Some(f)) = (self.retry.retryable, failure) {
            let text = format!(
                "No complete review: {}. This is neither an approval nor a finding about the change. Do not \
                 retry at once: continue with other work, retry later, and report to a person if it fails again.",
                reason(&f.reason)
            );
            return (Action::RetryLater, text);
        }
        let first = failed.first().map_or_else(String::new, |f| {
            let file = f.file.as_ref().map_or_else(String::new, |f| format!("{f}: "));
            format!(" ({file}{})", reason(&f.reason))
        });
        let text = format!(
            "No complete review: part of the change was not reviewed{first}. A retry alone changes nothing by \
             itself; show coverage.failed to a person, who removes the cause or decides without it."
        );
        (Action::AskAPerson, text)
    }

    /// Returns what blocked before and was not looked for.
    fn unchecked(&self) -> Vec<&str> {
        let entries = self.since.iter().flat_map(|s| &s.entries);
        entries
            .filter(|e| e.state == State::Unchecked && e.blocked(self.earlier.iter().map(|e| e.review)))
            .filter_map(|e| e.previous_id.as_deref())
            .collect()
    }

    /// Says what to do where the round did not look for what blocked.
    fn unlooked(names: Vec<&str>) -> (Action, String) {
        let text = format!(
            "Nothing blocks in this round, but it did not check {}, which blocked before. Do not close the session \
             yet: request a follow-up without a source and without files, so that it reviews the session's first source, \
             with the backends that found it; if that does not help, a person decides.",
            self::names(names.into_iter())
        );
        (Action::RetryLater, text)
    }

    /// Says what to do where nothing blocks in this round and the session is not to be approved all the same: what
    /// refuses an approval is told here, so that nobody is sent to ask for one.
    fn unanswered(&self) -> Option<(Action, String)> {
        let told = |report, since| owed::Told { report, since };
        let earlier = self.earlier.iter().map(|e| told(&e.review.report, e.review.since.as_ref()));
        let rounds: Vec<owed::Told<'_>> = earlier.chain([told(self.report, self.since)]).collect();
        let owed = owed::owed(&rounds);
        let (through, unseen): (Vec<Owed<'_>>, Vec<Owed<'_>>) = owed.into_iter().partition(|o| o.now.is_some());
        if owed::is_blind(&rounds) {
            let text = "This round reviewed none of the files of the change (see coverage.skipped), and an \
                        earlier round blocked. This is not an approval; a person decides.";
            return Some((Action::AskAPerson, text.to_owned()));
        }
        if !through.is_empty() {
            let text = format!(
                "Nothing blocks, but only because the policy changed: {} still exists. Do not close the \
                 session as approved. Fix it and request a follow-up review, or let a person decide.",
                owed::names(&through)
            );
            return Some((if self.is_last() { Action::AskAPerson } else { Action::Fix }, text));
        }
        if unseen.iter().any(|o| o.other_policy) {
            let text = format!(
                "Nothing blocks, but the policy changed, and this round did not check {}. Do not close \
                 the session as approved: a person decides, or restores the policy for a follow-up without a \
                 source and without files.",
                owed::names(&unseen)
            );
            return Some((Action::AskAPerson, text));
        }
        let mut names: Vec<&str> = unseen.iter().map(|o| o.finding.id.as_str()).collect();
        names.extend(self.unchecked());
        names.sort_unstable();
        names.dedup();
        (!names.is_empty()).then(|| Self::unlooked(names))
    }

    /// Returns true if the change has files, and none of them was reviewed.
    fn is_unread(&self) -> bool {
        self.report.coverage.files_reviewed == 0 && self.report.coverage.files_total > 0
    }

    fn unread() -> (Action, String) {
        let text = "No file of this change could be reviewed: see coverage.skipped. This is not an approval; a person \
                    decides.";
        (Action::AskAPerson, text.to_owned())
    }

    /// Says why a person decides though nothing blocks: tests that failed, which the policy makes a warning, and a
    /// limit that kept files from a model.
    fn warned(&self) -> Option<String> {
        let failed = self.report.test_results.as_ref().filter(|t| !t.passed);
        if let Some(tests) = failed {
            let text = format!(
                "Nothing blocks, but the project's tests failed ({}). Fix them and request one follow-up; without \
                 that, only a person can approve the session.",
                tests.summary
            );
            return Some(text);
        }
        let coverage = &self.report.coverage;
        let cut = coverage.skipped.iter().filter(|s| s.reason == Skip::Limit.name()).count();
        (cut > 0).then(|| {
            format!(
                "Nothing blocks in what was reviewed, but a limit cut the review short: {} of {} files were reviewed. \
                 This is not an approval; a person decides.",
                coverage.files_reviewed, coverage.files_total
            )
        })
    }

    /// Says how a round ends in which nothing blocks, and why another one would not help.
    fn passed(&self) -> (Action, String, Option<String>) {
        if let Some((action, text)) = self.unanswered() {
            return (action, text, None);
        }
        let left: Vec<&Finding> =
            self.report.findings.iter().filter(|f| f.suppressed.is_none() && f.waived.is_none()).collect();
        if left.is_empty() && self.is_unread() {
            let (action, text) = Self::unread();
            return (action, text, None);
        }
        if let Some(text) = self.warned() {
            return (Action::AskAPerson, text, None);
        }
        if left.is_empty() {
            return (Action::Complete, "Nothing was found. Close the session as approved.".to_owned(), None);
        }
        let small = left.iter().all(|f| !matches!(f.severity, Severity::Critical | Severity::Major));
        let names = names(left.iter().map(|f| f.id.as_str()));
        let text = format!(
            "Nothing blocks. The remaining findings ({names}) are optional: fix them if that is worth it, but do not request \
             another round because of it. Close the session as approved."
        );
        let nits = small && self.report.round > 1;
        (Action::Complete, text, nits.then(|| "only small findings are left".to_owned()))
    }
}

/// Tells whether nobody found it in this round.
fn is_carried(f: &Finding) -> bool {
    f.evidence.iter().any(|e| e.starts_with("carried:"))
}

/// Counts the findings of some weight that a fix brought.
fn introduced(since: &Since, report: &Report) -> usize {
    let new = since.entries.iter().filter(|e| e.state == State::IntroducedByFix && e.severity != Severity::Suggestion);
    let counts = |id: &String| {
        let mut all = report.findings.iter();
        all.any(|f| f.id == *id && f.suppressed.is_none() && f.waived.is_none())
    };
    new.filter(|e| e.id.as_ref().is_some_and(counts)).count()
}

/// Joins names: `F1`, `F1 and F2`, `F1, F2, F3, F4, F5 and 3 more`.
fn names<'n>(all: impl Iterator<Item = &'n str>) -> String {
    let all: Vec<&str> = all.collect();
    match all.as_slice() {
        [one] => (*one).to_owned(),
        [first @ .., last] if all.len() <= NAMES => format!("{} and {last}", first.join(", ")),
        _ => format!("{} and {} more", all[..NAMES.min(all.len())].join(", "), all.len().saturating_sub(NAMES)),
    }
}

#[cfg(test)]
mod tests;
