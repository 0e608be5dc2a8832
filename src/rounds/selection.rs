//! Selects the findings of a review to publish to a forge, by the decisions of the publishing
//! person.
//!
//! Once a person has decided on a finding of a session, only accepted ones are published. Rejected
//! and deferred ones never are. The decisions of this machine change the published findings; in
//! gate mode they change no verdict.

use super::decide;
use crate::error::{Error, Result};
use crate::finding::{Disposition, Finding};
use crate::git::Repo;
use crate::review::decided;
use crate::review::{Review, StoreLocation, today};
use crate::rules::RuleSet;
use crate::verdict::{TestOutcome, Verdict};
use crate::wire::Report;
use crate::wire::stored::{Since, State};
use std::collections::{BTreeMap, BTreeSet};

/// The findings to publish.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// Whether only accepted findings are published.
    pub accepted_only: bool,
    /// Valid decisions by fingerprint, with masked reasons.
    pub decided: BTreeMap<String, Disposition>,
    /// Fingerprints of fixed findings, by the comparisons of the session.
    pub fixed: BTreeSet<String>,
}

/// The publishing person, identified by the files of this machine.
#[derive(Clone, Copy, Debug)]
pub struct Person<'a> {
    pub repo: &'a Repo,
    pub place: &'a StoreLocation,
    pub rules: &'a RuleSet,
    pub now: jiff::Timestamp,
}

impl Selection {
    /// Returns the selection without the decisions of this machine: every finding that counts.
    pub fn of_review(review: &Review, since: Option<&Since>, rules: &RuleSet) -> Self {
        let held = review
            .findings
            .iter()
            .filter_map(|f| Some((f.fingerprint().as_str(), f.disposition.as_ref()?)));
        let decided = held
            .map(|(fingerprint, d)| (fingerprint.to_owned(), masked(d, rules)))
            .collect();
        let fixed = since
            .iter()
            .flat_map(|s| &s.entries)
            .filter(|e| e.state == State::Fixed);
        let fixed = fixed.map(|e| e.fingerprint.clone()).collect();
        Self {
            accepted_only: false,
            decided,
            fixed,
        }
    }

    /// Adds the decisions of the publishing person. `reports` are the rounds of the session, the
    /// published one last. With `all`, findings without a decision are published too.
    ///
    /// # Errors
    /// Usage: a file of decisions is invalid.
    pub fn decided_by(
        mut self,
        person: &Person<'_>,
        reports: &[&Report],
        all: bool,
    ) -> Result<Self> {
        let Some(last) = reports.last() else {
            return Ok(self);
        };
        let listed = decide::held(person.repo, person.place, last, today(person.now))?;
        let held = listed
            .iter()
            .filter_map(|l| Some((&l.finding.fingerprint, l.entry.as_ref()?)));
        self.decided.extend(
            held.map(|(fingerprint, e)| {
                (fingerprint.clone(), masked(&e.disposition(), person.rules))
            }),
        );
        self.accepted_only = !all && is_decided(person, reports)?;
        Ok(self)
    }

    /// Returns the decision on a finding.
    fn decision(&self, finding: &Finding) -> Option<&Disposition> {
        self.decided.get(finding.fingerprint().as_str())
    }

    /// Returns the decision that hides a finding, unless it is waived or suppressed.
    pub fn sets_aside(&self, finding: &Finding) -> Option<&Disposition> {
        let is_open = finding.waived.is_none() && finding.suppressed.is_none();
        self.decision(finding)
            .filter(|d| is_open && d.decision.sets_aside())
    }

    /// Returns true if the finding counts, but needs to be accepted before it is published.
    pub fn is_pending(&self, finding: &Finding) -> bool {
        self.accepted_only && finding.counts() && self.decision(finding).is_none()
    }

    /// Returns true if the finding is published.
    pub fn posts(&self, finding: &Finding) -> bool {
        finding.counts() && self.sets_aside(finding).is_none() && !self.is_pending(finding)
    }
}

/// Returns true if the person has decided on a finding of any round since the first one. Older
/// decisions, on another review, do not show that the person read this one.
fn is_decided(person: &Person<'_>, reports: &[&Report]) -> Result<bool> {
    let day = today(person.now);
    let begun = reports
        .first()
        .and_then(|r| r.timestamp.parse().ok())
        .map_or(day, today);
    let own = decided::own(&mut person.repo.reader(), person.place, &mut Vec::new())?;
    let own: BTreeSet<(&str, &str)> = own
        .iter()
        .filter(|e| e.created >= begun && e.expires.is_none_or(|date| date > day))
        .map(|e| (e.fingerprint.as_str(), e.rule.as_str()))
        .collect();
    let mut found = reports.iter().flat_map(|report| &report.findings);
    Ok(found.any(|f| own.contains(&(f.fingerprint.as_str(), f.rule_id.as_str()))))
}

/// Masks the secrets in the reason of a decision.
fn masked(disposition: &Disposition, rules: &RuleSet) -> Disposition {
    Disposition {
        reason: rules.masked(&disposition.reason),
        ..disposition.clone()
    }
}

/// Applies the decisions of this machine to a stored review that was not run in gate mode, and
/// recomputes the verdict. It can only improve: the thresholds of the policy are not stored.
///
/// # Errors
/// Usage: a finding counts that did not count in the review.
pub fn settle(review: &mut Review, selection: &Selection, again: &str) -> Result<()> {
    for finding in &mut review.findings {
        let was_aside = finding.is_set_aside();
        finding.disposition = selection
            .decided
            .get(finding.fingerprint().as_str())
            .cloned();
        if was_aside && finding.counts() {
            let name = finding.rule_id();
            return Err(
                Error::usage(format!("a finding of {name} counts again since the review"))
                    .hint(again),
            );
        }
        finding.blocking &= finding.counts();
    }
    let blocks_by_tests = review
        .tests
        .as_ref()
        .is_some_and(|t| t.outcome == TestOutcome::Failed)
        && review.judged_by.tests.on_failure == crate::request::OnTestFailure::Block;
    let blocks = blocks_by_tests
        || review.unlisted.total_blocking() > 0
        || review.findings.iter().any(|f| f.blocking);
    if review.verdict == Verdict::Block && !blocks {
        review.verdict = match (
            review.coverage.is_complete(),
            review.findings.iter().any(Finding::counts),
        ) {
            (false, _) => Verdict::Incomplete,
            (true, true) => Verdict::Warn,
            (true, false) => Verdict::Pass,
        };
    }
    Ok(())
}
