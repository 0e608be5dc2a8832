//! The reviews of several repositories, and their totals.

use crate::error::ExitStatus;
use crate::report::{blocking, totals};
use crate::review::Review;
use crate::verdict::Verdict;
use crate::wire;

/// The reviews of several repositories, in the order in which they were given.
#[derive(Debug)]
pub struct Fleet {
    pub members: Vec<FleetMember>,
}

/// The review of one repository.
#[derive(Debug)]
pub struct FleetMember {
    pub name: String,
    pub review: Review,
    /// The report as it was given, or that of the merged review.
    pub report: wire::Report,
}

impl Fleet {
    /// Returns the worst verdict: block, incomplete, warn, pass.
    pub fn verdict(&self) -> Verdict {
        let rank = |v: &Verdict| match v {
            Verdict::Block => 3,
            Verdict::Incomplete => 2,
            Verdict::Warn => 1,
            Verdict::Pass => 0,
        };
        let verdicts = self.members.iter().map(|m| m.review.verdict);
        verdicts.max_by_key(rank).unwrap_or(Verdict::Incomplete)
    }

    /// Returns the worst exit status: block, incomplete, pass. A review that a signal ended is
    /// incomplete.
    pub fn exit(&self) -> ExitStatus {
        let is = |status| self.members.iter().any(|m| m.review.exit == status);
        if is(ExitStatus::Block) {
            return ExitStatus::Block;
        }
        match self
            .members
            .iter()
            .all(|m| m.review.exit == ExitStatus::Pass)
        {
            true if !self.members.is_empty() => ExitStatus::Pass,
            _ => ExitStatus::Incomplete,
        }
    }

    /// Returns the number of repositories with a verdict.
    pub(super) fn number(&self, verdict: Verdict) -> usize {
        let all = self.members.iter();
        all.filter(|m| m.review.verdict == verdict).count()
    }

    /// Returns `3 repositories: 1 blocked, 1 incomplete, 1 passed`.
    pub(in crate::report) fn sentence(&self) -> String {
        let counts = [
            (self.number(Verdict::Block), "blocked"),
            (self.number(Verdict::Incomplete), "incomplete"),
            (self.number(Verdict::Warn), "passed with warnings"),
            (self.number(Verdict::Pass), "passed"),
        ];
        let counts: Vec<String> = counts
            .into_iter()
            .filter(|(n, _)| *n > 0)
            .map(|(n, what)| format!("{n} {what}"))
            .collect();
        format!(
            "{}: {}",
            repositories(self.members.len()),
            counts.join(", ")
        )
    }

    /// Returns the members, those with the worst verdict first.
    pub(in crate::report) fn by_verdict(&self) -> Vec<&FleetMember> {
        let order = [
            Verdict::Block,
            Verdict::Incomplete,
            Verdict::Warn,
            Verdict::Pass,
        ];
        let of = |v| self.members.iter().filter(move |m| m.review.verdict == v);
        order.into_iter().flat_map(of).collect()
    }

    pub(super) fn files_reviewed(&self) -> usize {
        saturating_sum(
            self.members
                .iter()
                .map(|m| m.review.coverage.files_reviewed),
        )
    }

    pub(super) fn files_total(&self) -> usize {
        saturating_sum(self.members.iter().map(|m| m.review.coverage.files_total))
    }
}

impl FleetMember {
    /// Returns the number of findings that count, by severity, worst first.
    pub(in crate::report) fn totals(&self) -> [usize; 4] {
        totals(&self.review).map(|(_, n)| n)
    }

    pub(in crate::report) fn blocking(&self) -> usize {
        saturating_sum(blocking(&self.review).iter().map(|(_, n)| *n))
    }
}

/// Adds numbers that come from files of other jobs.
pub(in crate::report) fn saturating_sum(numbers: impl Iterator<Item = usize>) -> usize {
    numbers.fold(0, usize::saturating_add)
}

pub(super) fn repositories(n: usize) -> String {
    match n {
        1 => "1 repository".to_owned(),
        n => format!("{n} repositories"),
    }
}
