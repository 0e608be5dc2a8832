//! The verdict of a judgement: a pure function of the review and the criteria.

use crate::ai::JudgedCriterion;
use crate::finding::Severity;
use crate::verdict;
use crate::wire::judge::JudgeVerdict;

/// The properties of a finding that decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FindingWeight {
    pub(super) severity: Severity,
    /// The finding is neither suppressed nor waived.
    pub(super) counts: bool,
    /// The finding blocks under the policy that applies.
    pub(super) blocking: bool,
    /// The finding is from a rule, or reaches the confidence that the policy requires.
    pub(super) is_trusted: bool,
}

impl FindingWeight {
    /// Returns true for a critical finding of the rules, or of a model with the confidence that the
    /// policy requires, even if the policy does not make it block.
    pub(super) fn halts(self) -> bool {
        self.counts && self.severity == Severity::Critical && self.is_trusted
    }
}

/// Returns the verdict for a review and its criteria; `None` if the review is incomplete or
/// reviewed nothing.
pub(super) fn verdict(
    outcome: verdict::Outcome,
    complete: bool,
    said: verdict::Verdict,
    findings: impl IntoIterator<Item = FindingWeight>,
    criteria: &[JudgedCriterion],
) -> Option<JudgeVerdict> {
    if outcome != verdict::Outcome::Reviewed || !complete {
        return None;
    }
    let (mut halts, mut blocks) = (false, said == verdict::Verdict::Block);
    for f in findings {
        halts |= f.halts();
        blocks |= f.counts && f.blocking;
    }
    Some(match () {
        () if halts => JudgeVerdict::CriticalHalt,
        () if blocks || has_criterion(criteria, Some(false)) => JudgeVerdict::Fail,
        () if said != verdict::Verdict::Pass || has_criterion(criteria, None) => {
            JudgeVerdict::Conditional
        }
        () => JudgeVerdict::Pass,
    })
}

/// Returns true if a criterion has this judgement.
fn has_criterion(criteria: &[JudgedCriterion], met: Option<bool>) -> bool {
    criteria.iter().any(|c| c.met == met)
}

#[cfg(test)]
mod tests {
    use super::*;
    use verdict::{Outcome, Verdict};

    fn judged(met: &[Option<bool>]) -> Vec<JudgedCriterion> {
        met.iter()
            .map(|met| JudgedCriterion {
                met: *met,
                ..JudgedCriterion::default()
            })
            .collect()
    }

    fn weight(severity: Severity, counts: bool, blocking: bool) -> FindingWeight {
        FindingWeight {
            severity,
            counts,
            blocking,
            is_trusted: blocking,
        }
    }

    #[test]
    fn the_worst_decides() {
        let critical = weight(Severity::Critical, true, true);
        let major = weight(Severity::Major, true, true);
        let unproven = weight(Severity::Critical, true, false);
        let waived = weight(Severity::Critical, false, false);
        let minor = weight(Severity::Minor, true, false);
        let (yes, no, open) = (Some(true), Some(false), None);
        for (said, findings, criteria, expected) in [
            (Verdict::Pass, vec![], vec![yes, yes], JudgeVerdict::Pass),
            (Verdict::Pass, vec![], vec![], JudgeVerdict::Pass),
            (Verdict::Pass, vec![waived], vec![yes], JudgeVerdict::Pass),
            (
                Verdict::Pass,
                vec![],
                vec![yes, open],
                JudgeVerdict::Conditional,
            ),
            (
                Verdict::Warn,
                vec![minor],
                vec![yes],
                JudgeVerdict::Conditional,
            ),
            (
                Verdict::Warn,
                vec![unproven],
                vec![yes],
                JudgeVerdict::Conditional,
            ),
            (
                Verdict::Pass,
                vec![],
                vec![yes, no, open],
                JudgeVerdict::Fail,
            ),
            (Verdict::Block, vec![major], vec![yes], JudgeVerdict::Fail),
            (
                Verdict::Block,
                vec![major, critical],
                vec![no],
                JudgeVerdict::CriticalHalt,
            ),
            (
                Verdict::Block,
                vec![critical],
                vec![yes],
                JudgeVerdict::CriticalHalt,
            ),
            // The policy makes nothing block.
            (
                Verdict::Pass,
                vec![FindingWeight {
                    is_trusted: true,
                    ..unproven
                }],
                vec![yes],
                JudgeVerdict::CriticalHalt,
            ),
            (
                Verdict::Pass,
                vec![FindingWeight {
                    is_trusted: true,
                    ..waived
                }],
                vec![yes],
                JudgeVerdict::Pass,
            ),
        ] {
            let found = verdict(
                Outcome::Reviewed,
                true,
                said,
                findings.clone(),
                &judged(&criteria),
            );
            assert_eq!(found, Some(expected), "{said:?} {findings:?} {criteria:?}");
        }
    }

    #[test]
    fn what_was_not_reviewed_completely_has_no_verdict() {
        let critical = [weight(Severity::Critical, true, true)];
        for (outcome, complete) in [
            (Outcome::Incomplete, false),
            (Outcome::Reviewed, false),
            (Outcome::NothingToReview, true),
            (Outcome::Cancelled, true),
        ] {
            let found = verdict(
                outcome,
                complete,
                Verdict::Block,
                critical,
                &judged(&[Some(true)]),
            );
            assert_eq!(found, None, "{outcome:?}");
        }
    }
}
