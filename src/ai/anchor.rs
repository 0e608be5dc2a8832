//! Finds claims again in the change. Pure.
//!
//! A claim becomes a [`Candidate`] only where its quote or its line stands in what was shown; what supports it
//! decides how far it is believed, and nothing that the model says of itself does.

mod also;
mod cite;
mod draft;
mod lines;
pub(crate) mod path;
mod place;
mod quote;
mod refer;
mod refutation;
mod replace;
mod same;
mod seal;
mod spot;
mod text;
mod tied;

use super::ask::Read;
use super::claim::Reply;
use super::material::{Document, Group};
use super::plan::Chunk;
use super::tree::Tree;
use super::{Compliance, Missing, Violation};
use crate::diff::{LineNo, ObjectId, RepoPath};
use crate::finding::{Draft, Evidence, Reproduction, Severity};
use crate::rules::RuleSet;
use crate::symbols::Symbols;
pub(super) use cite::section_of;
use draft::{Documented, Drafter};
pub use refutation::{Unfounded, check_refutation};
pub use seal::{Dispute, Echo, Noted, Sealed, alike, seal};
pub use spot::{empty_sections, line_of, says, spot, titles};
use std::fmt::Debug;
use std::rc::Rc;
use std::sync::Arc;

/// What a reply was asked about.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    pub group: &'a Group,
    /// What of the group was shown.
    pub chunk: &'a Chunk,
    /// The conventions that the model was given.
    pub conventions: &'a [Document],
    /// The other documents that it was given.
    pub documents: &'a [Document],
    /// The tickets and pages that it was given.
    pub tickets: &'a [Document],
    /// What it read with tools, as our own log tells.
    pub read: &'a [Read],
    /// The backend's configured name.
    pub backend: &'a str,
    /// For masking what a claim says.
    pub rules: &'a RuleSet,
    /// The tree under review; `None` for a patch or files outside a repository.
    pub tree: Option<&'a dyn Files>,
}

/// The files of the tree under review, as models see them.
pub trait Files: Debug {
    /// Returns the text of a file, with secrets replaced and hidden characters visible. `None`: it cannot be shown.
    fn text(&self, path: &RepoPath) -> Option<Rc<str>>;
    /// Returns the paths of all files, in byte order.
    fn paths(&self) -> &[RepoPath];
    /// Returns the definitions and imports of a file. `None`: it cannot be shown, or its language has no grammar.
    fn symbols(&self, path: &RepoPath) -> Option<Arc<Symbols>> {
        Symbols::read(path, self.text(path)?.as_bytes()).map(Arc::new)
    }
}

impl Files for Tree<'_> {
    fn text(&self, path: &RepoPath) -> Option<Rc<str>> {
        Tree::text(self, path).ok()
    }

    fn paths(&self) -> &[RepoPath] {
        Tree::paths(self).unwrap_or_default()
    }

    fn symbols(&self, path: &RepoPath) -> Option<Arc<Symbols>> {
        Tree::symbols(self, path, Tree::text(self, path).ok()?.as_bytes())
    }
}

/// What became of a claim.
#[derive(Clone, Debug)]
pub enum Anchored {
    Candidate(Box<Candidate>),
    /// True or not, it is not about the change: unchanged code, a file that is not part of it.
    Remark {
        file: Option<RepoPath>,
        line: Option<LineNo>,
        text: String,
    },
    /// Tied to nothing; said with `-v`, and counted.
    Dropped {
        claim: String,
        why: &'static str,
    },
}

/// A claim with a place in the change.
#[derive(Clone, Debug)]
pub struct Candidate {
    pub draft: Draft,
    /// Position of the [`Group`] it is about: groups may have the same commit, or none.
    pub group: usize,
    pub commit: Option<ObjectId>,
    /// The backend's configured name.
    pub backend: String,
    pub quoted: Quoted,
    /// Tool calls that read the lines.
    pub evidence: Vec<Evidence>,
    /// Why another look refuted it.
    pub disputed: Option<String>,
    /// The test that shows it.
    pub reproduction: Option<Reproduction>,
    /// What has to be said about how it was read (an unknown severity).
    pub notes: Vec<String>,
}

impl Candidate {
    /// Returns the severity: a listed weakness is critical if the claim is tied to its lines.
    pub fn severity(&self) -> Severity {
        seal::severity(&self.draft, self.quoted >= Quoted::AsNumbered)
    }
}

/// How well the quote of a claim fits the change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Quoted {
    /// There is none, it is ambiguous, or merely similar.
    Loosely,
    /// Equal, on the line with the claimed number, and others like it are nearby; or a part of the line with the
    /// claimed number, or of one changed line only. Medium, and no more unless another backend names the same line.
    AsNumbered,
    /// Equal up to white space, typographic characters and a diff marker, and in no other line that may be meant.
    Exactly,
}

/// Finds every claim of a reply again in the change: its findings, its design violations, its missing requirements.
/// What the reply says beside them is a remark.
pub fn claims(reply: &Reply, cx: &Context<'_>) -> Vec<Anchored> {
    let mut drafter = Drafter::new(*cx);
    let mut out: Vec<Anchored> = reply.findings.iter().map(|claim| drafter.anchor(claim)).collect();
    let note = |text: &String| text::clean(cx.rules, text, text::REMARK);
    out.extend(reply.notes.iter().map(|n| Anchored::Remark { file: None, line: None, text: note(n) }));
    let violations = reply.design_compliance.iter().flat_map(|c| &c.violations);
    out.extend(violations.map(|v| drafter.documented(&Documented::of_violation(v))));
    out.extend(reply.missing_requirements.iter().map(|m| drafter.documented(&Documented::of_missing(m))));
    out
}

/// Returns what a reply says of the change against the documents, for the report: what cites a place that exists.
pub fn documented(reply: &Reply, cx: &Context<'_>) -> (Option<Compliance>, Vec<Missing>) {
    let clean = |text: &str| text::clean(cx.rules, text, text::BODY);
    let severity = |said: &str| draft::severity(said).0;
    let compliance = reply.design_compliance.as_ref().map(|c| {
        let violations = c.violations.iter().filter_map(|v| {
            let place = draft::cited(cx, v.reference.as_deref()?, &[], None)?;
            Some(Violation {
                issue: clean(&v.issue),
                description: clean(&v.description),
                impact: severity(&v.impact),
                reference: Some(place.label),
                recommendation: text::some(cx.rules, v.recommendation.as_deref(), text::BODY),
            })
        });
        let violations: Vec<_> = violations.collect();
        Compliance { follows: c.follows_architecture && violations.is_empty(), violations }
    });
    let has_documents = !cx.documents.is_empty() || !cx.conventions.is_empty();
    let missing = reply.missing_requirements.iter().filter_map(|m| {
        let place = draft::cited(cx, m.reference.as_deref()?, &[], None)?;
        Some(Missing {
            requirement: clean(&m.requirement),
            reference: Some(place.label),
            severity: severity(&m.severity),
        })
    });
    (compliance.filter(|_| has_documents), missing.collect())
}

#[cfg(test)]
mod tests;
