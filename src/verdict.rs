//! The verdict: a pure function of findings, coverage and policy.

use crate::diff::RepoPath;
use crate::error::ExitStatus;
use crate::finding::listing::Unlisted;
use crate::finding::{Finding, Origin, Severity};
use crate::policy::Policy;
use crate::request::{OnBlock, OnIncomplete, OnTestFailure};
use std::collections::{BTreeMap, BTreeSet};

/// What the gate says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Pass,
    Warn,
    Block,
    Incomplete,
}

impl Verdict {
    /// Returns the name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Warn => "warn",
            Self::Block => "block",
            Self::Incomplete => "incomplete",
        }
    }

    /// Returns the assessment in the words of the review format; `None` where nothing was assessed.
    pub fn assessment(self, outcome: Outcome) -> Option<Assessment> {
        match (outcome, self) {
            (Outcome::NothingToReview, _) | (_, Self::Incomplete) => None,
            (_, Self::Pass) => Some(Assessment::Lgtm),
            (_, Self::Warn) => Some(Assessment::LgtmWithSuggestions),
            (_, Self::Block) => Some(Assessment::NeedsChanges),
        }
    }
}

/// The verdict in the words of a reviewer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Assessment {
    Lgtm,
    LgtmWithSuggestions,
    NeedsChanges,
}

/// What became of the review.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Reviewed,
    Incomplete,
    NothingToReview,
    Cancelled,
}

impl Outcome {
    /// Returns the name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Reviewed => "reviewed",
            Self::Incomplete => "incomplete",
            Self::NothingToReview => "nothing_to_review",
            Self::Cancelled => "cancelled",
        }
    }
}

/// Declares [`Skip`] with its names: one list, so that none of them can lack a variant.
macro_rules! skips {
    ($($(#[$about:meta])* $variant:ident = $name:literal,)+) => {
        /// Why a file was left out, with the policy's consent.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Skip {
            $($(#[$about])* $variant,)+
        }

        impl Skip {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            /// Returns the name in reports.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }
        }
    };
}

skips! {
    /// Matches the governing policy's `ignore`.
    Ignored = "ignored",
    /// No text.
    Binary = "binary",
    /// Another repository's commit.
    Submodule = "submodule",
    /// Made by a program: kept from models, read by the rules.
    Generated = "generated",
    /// A lockfile: kept from models, read by the rules.
    Lockfile = "lockfile",
    /// A file that holds secrets by its name (`.env`, a private key): kept from models, read by the rules.
    Sensitive = "sensitive",
    /// Beyond what one review may send, where policy lets that pass.
    Limit = "limit",
    /// The task by which the change is judged, or a report of that: kept from models as a part of the change, read
    /// by the rules.
    Contract = "contract",
}

/// How the project's own tests ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TestOutcome {
    Passed,
    Failed,
    /// The command could not be started: no shell, no such program, no worktree.
    NotStarted,
    TimedOut,
    /// The run was stopped, or printed more than is read.
    Stopped,
}

impl TestOutcome {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Passed, Self::Failed, Self::NotStarted, Self::TimedOut, Self::Stopped];

    /// Returns the name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed => "failed",
            Self::NotStarted => "not_started",
            Self::TimedOut => "timed_out",
            Self::Stopped => "stopped",
        }
    }
}

/// How the reason begins of a file that a limit kept from being reviewed as a whole.
pub const CUT_OFF: &str = "not all of it was asked about:";

/// What one reviewer finished.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Share {
    /// Files of which the reviewer finished every part, under every lens.
    pub files_reviewed: usize,
    /// Files that it was to review: for the rules those of the change, for a backend those that it may be shown.
    pub files_total: usize,
}

/// What the rules finished and a backend did not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lost {
    /// Each file with the number of its hunks; a path may occur once for each commit.
    Files(Vec<(RepoPath, usize)>),
    Everything,
}

/// What was reviewed, and what was not, and why.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Coverage {
    pub files_total: usize,
    /// Files that the rules and every backend that was to review them finished.
    pub files_reviewed: usize,
    /// By the name of the reviewer: `rules`, and each backend that was to review.
    pub by_reviewer: BTreeMap<String, Share>,
    pub hunks_total: usize,
    pub hunks_reviewed: usize,
    /// Hunks that the rules finished, whatever became of the backends.
    pub hunks_by_rules: usize,
    /// Hunks whose model review came from the cache.
    pub cached: usize,
    /// Stored reviews that the change brings along: read by the rules for secrets, and counted nowhere else.
    pub records: usize,
    pub skipped: Vec<(RepoPath, Skip)>,
    /// What should have been reviewed and was not. No path: the whole change (a backend that did not answer).
    pub failed: Vec<(Option<RepoPath>, String)>,
}

impl Coverage {
    /// Returns true if everything that policy asks for was reviewed.
    pub fn is_complete(&self) -> bool {
        self.failed.is_empty()
    }

    /// Returns true if a limit kept part of the change from a model, and the policy lets that pass.
    pub fn is_truncated(&self) -> bool {
        self.skipped.iter().any(|(_, why)| *why == Skip::Limit)
    }

    /// Takes away what a backend that was to review did not finish.
    pub fn lose(&mut self, lost: Lost) {
        match lost {
            Lost::Everything => (self.files_reviewed, self.hunks_reviewed) = (0, 0),
            Lost::Files(files) => {
                // What the rules could not read is not counted as reviewed.
                let failed: BTreeSet<&RepoPath> = self.failed.iter().filter_map(|(path, _)| path.as_ref()).collect();
                for (_, hunks) in files.iter().filter(|(path, _)| !failed.contains(path)) {
                    self.files_reviewed = self.files_reviewed.saturating_sub(1);
                    self.hunks_reviewed = self.hunks_reviewed.saturating_sub(*hunks);
                }
            }
        }
    }

    /// Counts what the rules finished as reviewed, where a receipt stands for these backends.
    pub fn regain(&mut self, backends: &[String]) {
        self.by_reviewer.retain(|name, _| !backends.contains(name));
        let rules = self.by_reviewer.get(Origin::Rules.name()).map(|s| s.files_reviewed);
        self.files_reviewed = rules.unwrap_or(self.files_reviewed);
        self.hunks_reviewed = self.hunks_by_rules;
    }

    /// Adds what was seen of another part, or by another reviewer.
    pub fn add(&mut self, other: Self) {
        self.files_total += other.files_total;
        self.files_reviewed += other.files_reviewed;
        self.hunks_total += other.hunks_total;
        self.hunks_reviewed += other.hunks_reviewed;
        self.cached += other.cached;
        self.records += other.records;
        self.by_reviewer.extend(other.by_reviewer);
        self.skipped.extend(other.skipped);
        self.failed.extend(other.failed);
    }

    /// Puts the lists in order and drops repeats.
    pub fn tidy(&mut self) {
        self.skipped.sort();
        self.skipped.dedup();
        self.failed.sort();
        self.failed.dedup();
    }
}

/// Marks the findings that block, and computes the verdict.
///
/// A finding blocks when it counts (not suppressed, not waived), its severity is at or above one in `block_on`
/// for its path, and, for a model's finding, its confidence reaches `min_confidence` and no second look refuted
/// it. `tests` says how the project's tests ended, where they ran: failed ones block unless the policy makes them a
/// warning. A review that a limit cut short is at least a warning. Blocking wins over incompleteness, and
/// incompleteness over warnings.
///
/// Findings that are not listed count like those that are.
pub fn judge(
    findings: &mut [Finding],
    unlisted: &Unlisted,
    coverage: &Coverage,
    tests: Option<TestOutcome>,
    policy: &Policy,
) -> Verdict {
    let failed = tests == Some(TestOutcome::Failed);
    let mut block = unlisted.total_blocking() > 0 || failed && policy.tests.on_failure == OnTestFailure::Block;
    let mut warn = unlisted.warning > 0 || failed || coverage.is_truncated();
    for f in findings.iter_mut() {
        let t = policy.thresholds(f.file());
        let proven = f.disputed.is_none() && f.confidence() >= t.min_confidence;
        let trusted = matches!(f.origin(), Origin::Rules) || proven;
        let reaches = |list: &[Severity]| list.iter().any(|s| f.severity() >= *s);
        let severe = reaches(&t.block_on);
        let warns = severe || reaches(&t.warn_on);
        f.blocking = f.counts() && severe && trusted;
        block |= f.blocking;
        warn |= f.counts() && !f.blocking && warns;
    }
    match (block, coverage.is_complete(), warn) {
        (true, _, _) => Verdict::Block,
        (false, false, _) => Verdict::Incomplete,
        (false, true, true) => Verdict::Warn,
        (false, true, false) => Verdict::Pass,
    }
}

/// Returns how the process ends. The same for every output format.
pub fn exit_status(verdict: Verdict, on_incomplete: OnIncomplete, on_block: OnBlock) -> ExitStatus {
    match verdict {
        Verdict::Pass | Verdict::Warn => ExitStatus::Pass,
        Verdict::Block => match on_block {
            OnBlock::Fail => ExitStatus::Block,
            OnBlock::ExitZero => ExitStatus::Pass,
        },
        Verdict::Incomplete => match on_incomplete {
            OnIncomplete::Fail => ExitStatus::Incomplete,
            OnIncomplete::Warn => ExitStatus::Pass,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::{Category, Confidence, Draft, Proof, Suppression};

    /// Judges a review that lists every finding.
    fn judge(findings: &mut [Finding], coverage: &Coverage, tests: Option<TestOutcome>, policy: &Policy) -> Verdict {
        super::judge(findings, &Unlisted::default(), coverage, tests, policy)
    }

    #[test]
    fn slo_02_findings_that_are_not_listed_count() {
        let verdict = |u: Unlisted| super::judge(&mut [], &u, &coverage(false), None, &Policy::default());
        assert_eq!(verdict(Unlisted { blocking: [0, 1, 0, 0], ..Unlisted::default() }), Verdict::Block);
        assert_eq!(verdict(Unlisted { warning: 1, ..Unlisted::default() }), Verdict::Warn);
        assert_eq!(verdict(Unlisted { suppressed: 5, ..Unlisted::default() }), Verdict::Pass);
    }

    fn finding(severity: Severity) -> Finding {
        let draft = Draft {
            rule_id: "rule".to_owned(),
            location: None,
            severity,
            category: Category::Bug,
            title: "title".to_owned(),
            message: "message".to_owned(),
            failure: None,
            suggestion: None,
            replacement: None,
            quote: "quote".to_owned(),
            cwe: None,
            convention: None,
            also: Vec::new(),
            flow: Vec::new(),
            references: Vec::new(),
        };
        Finding::new(Proof::rule("rule", Confidence::Low), draft)
    }

    fn coverage(failed: bool) -> Coverage {
        let failed = if failed { vec![(None, "no answer".to_owned())] } else { Vec::new() };
        Coverage { failed, ..Coverage::default() }
    }

    #[test]
    fn the_verdict_follows_from_severity_coverage_and_policy() {
        use Severity::{Critical, Major, Minor, Suggestion};
        let default = Policy::default();
        for (severities, failed, verdict) in [
            (&[][..], false, Verdict::Pass),
            (&[Suggestion], false, Verdict::Pass),
            (&[Suggestion, Minor], false, Verdict::Warn),
            (&[Minor, Major], false, Verdict::Block),
            (&[], true, Verdict::Incomplete),
            (&[Minor], true, Verdict::Incomplete),
            (&[Critical], true, Verdict::Block),
        ] {
            let mut findings: Vec<_> = severities.iter().copied().map(finding).collect();
            assert_eq!(judge(&mut findings, &coverage(failed), None, &default), verdict, "{severities:?} {failed}");
            for f in &findings {
                assert_eq!(f.blocking, f.severity() >= Major);
            }
        }
    }

    #[test]
    fn what_is_worse_than_a_named_severity_blocks_too() {
        let blocking = |block_on: Vec<Severity>| {
            let mut policy = Policy::default();
            policy.block_on = block_on;
            policy
        };
        let only_major = blocking(vec![Severity::Major]);
        assert_eq!(judge(&mut [finding(Severity::Critical)], &coverage(false), None, &only_major), Verdict::Block);
        let nothing = blocking(Vec::new());
        assert_eq!(judge(&mut [finding(Severity::Critical)], &coverage(false), None, &nothing), Verdict::Warn);
    }

    #[test]
    fn ver_01_failed_tests_block_unless_policy_makes_them_a_warning() {
        use OnTestFailure::{Block, Warn};
        use TestOutcome::{Failed, Passed};
        for (tests, on_failure, failed, verdict) in [
            (None, Block, false, Verdict::Pass),
            (Some(Passed), Block, false, Verdict::Pass),
            (Some(Failed), Block, false, Verdict::Block),
            (Some(Failed), Block, true, Verdict::Block),
            (Some(Failed), Warn, false, Verdict::Warn),
            (Some(Failed), Warn, true, Verdict::Incomplete),
        ] {
            let mut policy = Policy::default();
            policy.tests.on_failure = on_failure;
            assert_eq!(judge(&mut [], &coverage(failed), tests, &policy), verdict, "{tests:?} {on_failure:?} {failed}");
        }
    }

    #[test]
    fn ver_02_what_a_limit_cut_off_is_at_least_a_warning() {
        let mut cut = coverage(false);
        cut.skipped.push((RepoPath::from("a.rs"), Skip::Limit));
        let policy = Policy::default();
        assert_eq!(judge(&mut [], &cut, None, &policy), Verdict::Warn);
        assert_eq!(judge(&mut [finding(Severity::Critical)], &cut, None, &policy), Verdict::Block);
        assert_ne!(Verdict::Warn.assessment(Outcome::Reviewed), Some(Assessment::Lgtm));
    }

    #[test]
    fn what_does_not_count_neither_blocks_nor_warns() {
        let mut f = finding(Severity::Critical);
        f.suppressed = Some(Suppression { by: "inline", reason: "a sample".to_owned() });
        let mut findings = [f];
        assert_eq!(judge(&mut findings, &coverage(false), None, &Policy::default()), Verdict::Pass);
        assert!(!findings[0].blocking);
    }

    #[test]
    fn only_blocking_is_let_through_by_exit_zero() {
        use OnIncomplete::{Fail, Warn};
        for (verdict, on, on_block, code) in [
            (Verdict::Pass, Fail, OnBlock::Fail, 0),
            (Verdict::Warn, Fail, OnBlock::Fail, 0),
            (Verdict::Block, Fail, OnBlock::Fail, 1),
            (Verdict::Block, Warn, OnBlock::ExitZero, 0),
            (Verdict::Incomplete, Fail, OnBlock::ExitZero, 3),
            (Verdict::Incomplete, Warn, OnBlock::Fail, 0),
        ] {
            assert_eq!(exit_status(verdict, on, on_block).code(), code, "{verdict:?} {on:?} {on_block:?}");
        }
    }
}
