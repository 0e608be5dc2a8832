//! Findings that are final before the review is.

use super::prepare::Prepared;
use super::{PolicyInfo, SourceInfo};
use crate::finding::listing::Unlisted;
use crate::finding::{Finding, arrange};
use crate::policy::Policy;
use crate::verdict::{Coverage, judge};

/// The facts about a review before the first file is read.
#[derive(Clone, Copy, Debug)]
pub struct ReviewStart<'a> {
    pub source: &'a SourceInfo,
    pub policy: &'a PolicyInfo,
    pub rules_hash: &'a str,
    pub timestamp: jiff::Timestamp,
    /// The policy that decides what a finding does to the verdict.
    pub judged_by: &'a Policy,
}

/// Receives findings as soon as they are final. Called from several threads.
pub trait FindingSink: Sync {
    /// The review starts. Called at most once, before all findings.
    fn start(&self, start: &ReviewStart<'_>);

    /// The findings of one file are final.
    fn found(&self, findings: &[Finding]);
}

impl Prepared<'_> {
    /// Returns true if the findings of a file are final once it has been scanned: the rules alone
    /// review a tree. In a history, a finding has all versions of a file; in a change, findings of
    /// several commits and files are joined, and a model can add evidence to a finding or dispute
    /// it.
    pub(super) fn is_streamed(&self) -> bool {
        let is_final =
            self.is_tree() && self.resolved.history.is_none() && self.asked_backends().is_empty();
        is_final && self.world.findings.is_some()
    }

    /// Announces the start of the review to the sink.
    pub(super) fn stream_start(&self) {
        if let Some(sink) = self.world.findings.filter(|_| self.is_streamed()) {
            sink.start(&ReviewStart {
                source: &self.resolved.info,
                policy: &self.governing.info,
                rules_hash: self.rules.hash(),
                timestamp: self.world.now,
                judged_by: self.policy(),
            });
        }
    }

    /// Passes the findings of one scanned file to the sink, judged as in the finished review.
    pub(super) fn stream(&self, findings: &[Finding]) {
        let Some(sink) = self.world.findings.filter(|_| !findings.is_empty()) else {
            return;
        };
        let mut findings = self.dismiss(arrange(findings.to_vec()));
        // Sets which findings block. The verdict needs the whole review.
        let _ = judge(
            &mut findings,
            &Unlisted::default(),
            &Coverage::default(),
            None,
            self.policy(),
        );
        sink.found(&findings);
    }
}
