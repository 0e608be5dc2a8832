//! Merges the results of the rules and of the models, and accounts for every reviewer that the
//! policy requires.

use super::models::{self, ModelResults};
use super::prepare::Prepared;
use super::record::RecordPiece;
use super::rule_results::RuleResults;
use super::waiving::unused_waivers;
use super::{Note, Stat, TestResults};
use crate::ai::{Models, agent};
use crate::context::GatheredItem;
use crate::diff::{ObjectId, RepoPath};
use crate::finding::listing::Unlisted;
use crate::finding::{Finding, Location, Origin, arrange};
use crate::policy::AgentReview;
use crate::verdict::{Coverage, FailureCause, Lost, Share};

/// The results of all reviewers, before the verdict.
pub(super) struct MergedResults {
    /// Arranged findings. Those that a waiver or a decision of a person dismisses are marked.
    pub(super) findings: Vec<Finding>,
    pub(super) unlisted: Unlisted,
    pub(super) coverage: Coverage,
    pub(super) notes: Vec<Note>,
    pub(super) models: Models,
    pub(super) tests: Option<TestResults>,
    pub(super) context: Vec<GatheredItem>,
    pub(super) stat: Stat,
    pub(super) first_change: Option<Location>,
    /// The change as text, if a record is requested.
    pub(super) pieces: Vec<RecordPiece>,
    /// True if no content was read: ignored and binary files are counted only.
    pub(super) is_nothing: bool,
    /// The part that the rules completed.
    of_rules: Share,
}

/// Merges the results of the rules with those of the models, if any were asked. Takes the notes and
/// the reasons for missing tests out of `prepared`, and stores the digests of decisions that all
/// stages have computed.
pub(super) fn merge(
    prepared: &mut Prepared<'_>,
    found: RuleResults,
    asked: Option<ModelResults>,
) -> MergedResults {
    let seen = found.seen;
    let mut notes = std::mem::take(&mut prepared.notes);
    notes.extend(found.notes);
    let coverage = found.coverage;
    let mut merged = MergedResults {
        is_nothing: coverage.files_reviewed == 0
            && found.findings.is_empty()
            && coverage.is_complete(),
        of_rules: Share {
            files_reviewed: coverage.files_reviewed,
            files_total: coverage.files_total,
        },
        findings: found.findings,
        unlisted: found.unlisted,
        coverage,
        notes,
        models: Models::default(),
        tests: None,
        context: Vec::new(),
        stat: found.stat,
        first_change: found.first_change,
        pieces: found.pieces,
    };
    merged.count_rules();
    merged.account_for_skipped_backends(prepared);
    if let Some(asked) = asked {
        merged.add_models(prepared, asked, seen);
    }
    prepared.save_digests();
    merged.account_for_agent(prepared);
    merged
        .notes
        .extend(unused_waivers(&merged.findings, &prepared.waivers));
    merged.account_for_tests(prepared);
    merged.coverage.tidy();
    Note::arrange(&mut merged.notes);
    merged
}

impl MergedResults {
    /// Records the part that the rules completed.
    fn count_rules(&mut self) {
        let rules = Origin::Rules.name().to_owned();
        self.coverage.by_reviewer.insert(rules, self.of_rules);
        self.coverage.hunks_by_rules = self.coverage.hunks_reviewed;
    }

    /// Records that `--offline` kept the review from asking the required backends.
    fn account_for_skipped_backends(&mut self, prepared: &Prepared<'_>) {
        let backends = prepared.required_backends();
        if !prepared.request.offline
            || self.is_nothing
            || backends.is_empty()
            || prepared.is_without_models()
        {
            return;
        }
        // Names, modes, binary files and generated files are not shown to models, so a backend owes
        // no reply for them.
        self.models.owed = models::is_owed(prepared);
        if !self.models.owed {
            return;
        }
        for name in backends {
            let backend = name.clone();
            self.record_missing_backend(name, FailureCause::NotAsked { backend });
        }
    }

    /// Adds the results of the models. `seen` has the worktree files that the rules read, with the
    /// IDs of their content.
    fn add_models(
        &mut self,
        prepared: &Prepared<'_>,
        asked: ModelResults,
        seen: Vec<(RepoPath, ObjectId)>,
    ) {
        asked.claims.annotate_rule_findings(&mut self.findings);
        self.coverage.lose(asked.lost);
        // The rules and the models read the worktree independently, at the same time. A file can
        // change between the two reads.
        let changed = seen
            .into_iter()
            .filter(|(path, id)| asked.shown.get(path).is_some_and(|theirs| theirs != id));
        for (path, _) in changed {
            self.coverage.fail_file(path, FailureCause::Modified);
        }
        let mut findings = std::mem::take(&mut self.findings);
        findings.extend(asked.claims.findings);
        findings.extend(asked.beside);
        self.findings = prepared.dismiss(arrange(findings));
        self.coverage.add(asked.coverage);
        self.notes.extend(asked.notes);
        self.models = Models {
            owed: self.models.owed || asked.models.owed,
            ..asked.models
        };
        self.tests = asked.tests;
        self.context = asked.context;
    }

    /// Records that the author's own agent reviewed, and which backends it does not replace.
    fn account_for_agent(&mut self, prepared: &Prepared<'_>) {
        if prepared.world.agent.is_none() || !self.models.owed {
            return;
        }
        self.notes.push(Note::general(
            agent::NAME,
            "the author's own agent reviewed this change",
        ));
        if prepared.policy().mcp.agent_review == AgentReview::Counts {
            return;
        }
        for name in prepared.required_backends() {
            let backend = name.clone();
            self.record_missing_backend(name, FailureCause::AgentReviewed { backend });
        }
    }

    /// Records that a required backend reviewed nothing.
    fn record_missing_backend(&mut self, name: &str, cause: FailureCause) {
        self.coverage.fail(cause);
        let nothing = Share {
            files_reviewed: 0,
            ..self.of_rules
        };
        self.coverage.by_reviewer.insert(name.to_owned(), nothing);
        self.coverage.lose(Lost::Everything);
    }

    /// Records why the project's tests did not run to the end, if the policy requires them.
    fn account_for_tests(&mut self, prepared: &mut Prepared<'_>) {
        let untested = std::mem::take(&mut prepared.untested);
        if !self.is_nothing {
            untested
                .into_iter()
                .for_each(|cause| self.coverage.fail(cause));
        }
        let missing = self.tests.as_ref().and_then(TestResults::missing);
        if let Some(why) = missing {
            self.coverage.fail(FailureCause::Other(why));
        }
    }
}
