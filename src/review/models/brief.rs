//! Builds the context of a prompt: texts that a model gets in addition to the change. They are
//! redacted, and searched for instructions to the model.

use super::material::Material;
use super::{Asking, ModelResults, tickets};
use crate::ai::context;
use crate::ai::kept::ExcludedFile;
use crate::ai::prompt::{Brief, Rejection};
use crate::diff::RepoPath;
use crate::finding::Finding;
use crate::git::Repo;
use crate::request::Previous;
use crate::review::{Note, TestResults};
use crate::rules::RuleSet;
use crate::verdict::{CoverageFailure, FailureCause, TestOutcome};

impl Asking<'_> {
    /// Builds the context of the prompt, and scans all of it for instructions to the model.
    pub(super) fn brief(&self, material: &Material, asked: &mut ModelResults) -> Brief {
        let rules = self.scan.rules;
        let review = &self.policy().review;
        let given = &self.prepared.request.brief;
        let mut brief = Brief {
            depth: review.depth,
            summary: given.summary.as_deref().map(|s| context::summary(s, rules)),
            focus: review.focus.clone(),
            areas: given
                .focus
                .iter()
                .map(|t| context::summary(t, rules))
                .collect(),
            previous: given
                .previous
                .iter()
                .map(|p| Previous {
                    text: context::summary(&p.text, rules),
                    ..p.clone()
                })
                .collect(),
            tests: asked.tests.as_ref().map(|t| told(t, rules)),
            kept: material
                .skipped
                .iter()
                .map(|(path, why)| ExcludedFile::new(path.clone(), *why, rules))
                .collect(),
            ..Brief::default()
        };
        self.add_conventions(material, asked, &mut brief);
        self.add_documents(asked, &mut brief);
        self.add_rejections(asked, &mut brief);
        search_documents(rules, &brief, &mut asked.beside);
        self.add_tickets(asked, &mut brief);
        self.add_contract(asked, &mut brief);
        search_author_texts(rules, &brief, material, &mut asked.beside);
        brief
    }

    /// Adds the documents that describe the conventions of the team.
    fn add_conventions(&self, material: &Material, asked: &mut ModelResults, brief: &mut Brief) {
        let (Some(repo), Some(state)) = (self.scan.repo, &self.prepared.governing.state) else {
            return;
        };
        if material.groups.is_empty() {
            return;
        }
        let found = context::conventions(
            &mut repo.reader(),
            state,
            &self.policy().review.conventions,
            material.paths(),
            self.scan.rules,
        );
        asked
            .notes
            .extend(found.notes.into_iter().map(|n| Note::general("review", n)));
        brief.conventions = found.documents;
        asked.models.no_conventions = found.missing;
    }

    /// Adds the documents that the user named. The user asked for a review against them, so a
    /// missing one makes the review incomplete.
    fn add_documents(&self, asked: &mut ModelResults, brief: &mut Brief) {
        let request = self.prepared.request;
        let top = self.scan.repo.and_then(Repo::worktree);
        let documents = &request.brief.documents;
        let found = context::documents(documents, &request.dir, top, self.scan.rules);
        let missing = found.notes.into_iter().map(FailureCause::Other);
        asked
            .coverage
            .failed
            .extend(missing.map(CoverageFailure::whole));
        brief.documents = found.documents;
    }

    /// Adds the findings of models that a person rejected, with the reasons.
    fn add_rejections(&self, asked: &mut ModelResults, brief: &mut Brief) {
        let rules = self.scan.rules;
        let entries = &self.prepared.decisions.entries;
        for entry in entries.rejected_claims(self.prepared.today()) {
            let Some(path) = entry.path.clone().filter(|_| !entry.line.is_empty()) else {
                continue;
            };
            let file = RepoPath::from(path.as_str());
            rules.scan_beside(
                "the reason of a rejected finding",
                Some(&file),
                entry.reason.as_bytes(),
                &mut asked.beside,
            );
            brief.rejections.push(Rejection {
                path,
                rule: context::summary(&entry.rule, rules),
                line: context::summary(&entry.line, rules),
                reason: context::summary(&entry.reason, rules),
            });
        }
    }

    fn add_tickets(&self, asked: &mut ModelResults, brief: &mut Brief) {
        brief.tickets = asked.context.iter().map(tickets::document).collect();
        for d in &brief.tickets {
            self.scan.rules.scan_beside(
                "a ticket that a model is given",
                None,
                d.text.as_bytes(),
                &mut asked.beside,
            );
        }
    }

    /// Adds the task that the change must fulfil, and its criteria.
    fn add_contract(&self, asked: &mut ModelResults, brief: &mut Brief) {
        let rules = self.scan.rules;
        let Some(contract) = &self.prepared.request.brief.contract else {
            return;
        };
        let document = context::contract(contract, rules);
        // Line numbers in the redacted text are not those of the file.
        rules.scan_beside(
            "the contract of the task",
            None,
            document.text.as_bytes(),
            &mut asked.beside,
        );
        brief.documents.push(document);
        brief.criteria = context::criteria(contract, rules);
    }
}

/// Searches the documents for instructions to the model.
fn search_documents(rules: &RuleSet, brief: &Brief, beside: &mut Vec<Finding>) {
    for d in brief.conventions.iter().chain(&brief.documents) {
        let file = RepoPath::from(d.name.as_str());
        rules.scan_beside(
            "a document that a model is given",
            Some(&file),
            d.text.as_bytes(),
            beside,
        );
    }
}

/// Searches the texts of the author, and the names of the files, for instructions to the model.
fn search_author_texts(
    rules: &RuleSet,
    brief: &Brief,
    material: &Material,
    beside: &mut Vec<Finding>,
) {
    if let Some(text) = &brief.summary {
        rules.scan_beside("the summary of the change", None, text.as_bytes(), beside);
    }
    for text in &brief.areas {
        rules.scan_beside("the review areas", None, text.as_bytes(), beside);
    }
    for message in material.groups.iter().flat_map(|g| &g.messages) {
        rules.scan_beside("a commit message", None, message.as_bytes(), beside);
    }
    for path in material.paths() {
        rules.scan_beside("the name of a file", Some(path), path.as_bytes(), beside);
    }
}

/// Returns the summary of the tests for the prompt.
fn told(tests: &TestResults, rules: &RuleSet) -> String {
    let text = match tests.outcome {
        TestOutcome::Passed | TestOutcome::Failed => {
            format!("{}: {}", tests.outcome.name(), tests.summary)
        }
        _ => format!("not finished: {}", tests.summary),
    };
    context::summary(&text, rules)
}
