//! Anchors claims to the change. Pure.
//!
//! A claim that states a quote, or a line of a file, becomes a [`ClaimCandidate`] only if the quote
//! or the line matches text that the model received, or read with a tool. A claim that states
//! neither is about a file or the whole change, and has low confidence. A design violation or a
//! missing requirement needs a citation that exists instead. The confidence of a claim follows from
//! the evidence, and never from the model's own statements about it. The path from a claim to a
//! finding:
//!
//! 1. `draft` reads the file, the line and the quote that the claim states. `path` finds the file,
//!    and `quote` parses the quote.
//! 2. `position` finds the lines of the change that the claim is about, and how certain that is:
//!    [`PositionCertainty`]. A claim about unchanged code that the model read is moved to the
//!    changed line that it depends on (`tied`). A claim without a position is dropped or becomes a
//!    remark.
//! 3. `draft` writes the candidate: location, severity (`rating`), replacement (`replace`),
//!    citation (`cite`), further lines (`also`), and the tool call that read the lines. Its texts
//!    are masked (`text`).
//! 4. `merging` groups the candidates that report the same problem, merges each group into one
//!    finding, and compares it with the findings of rules. The confidence follows from
//!    [`PositionCertainty`], and from other evidence: another backend, a rule, a tool call, a test
//!    that reproduces the problem.
//!
//! Other files:
//!
//! - `lines` has the lines of the change that the model received.
//! - `refer` finds the changed definition that an unchanged line names.
//! - `same` compares the words of two texts that may describe the same problem.
//! - `spot` finds quotes that a model gives as evidence, in the change or in a document.
//! - `refutation` checks whether a refutation has a reason and a quote.

mod also;
mod cite;
mod draft;
mod lines;
mod merging;
pub(crate) mod path;
mod position;
mod quote;
mod rating;
mod refer;
mod refutation;
mod replace;
mod same;
mod spot;
mod text;
mod tied;

use super::ask::Read;
use super::claim::Reply;
use super::material::{Document, Group};
use super::plan::Chunk;
use super::tree::Tree;
use super::{Compliance, DesignViolation, UnmetRequirement};
use crate::diff::{LineNo, ObjectId, RepoPath};
use crate::finding::{Draft, Evidence, Reproduction, Severity};
use crate::rules::RuleSet;
use crate::symbols::Symbols;
pub(super) use cite::section_of;
use draft::{Documented, Drafter};
pub use merging::{Dispute, Echo, MergedClaims, Noted, alike, merge_claims};
pub use refutation::{Unfounded, check_refutation};
pub use spot::{empty_sections, line_of, says, spot, titles};
use std::fmt::Debug;
use std::rc::Rc;
use std::sync::Arc;

/// The input of the request that a reply answers.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    pub group: &'a Group,
    /// The part of the group that the model received.
    pub chunk: &'a Chunk,
    /// Convention documents that the model received.
    pub conventions: &'a [Document],
    /// Other documents that the model received.
    pub documents: &'a [Document],
    /// Tickets and pages that the model received.
    pub tickets: &'a [Document],
    /// Lines that the model read through tools, from the log of this process.
    pub read: &'a [Read],
    /// The backend's configured name.
    pub backend: &'a str,
    /// Rules that mask secrets in the text of a claim.
    pub rules: &'a RuleSet,
    /// The tree under review; `None` for a patch or files outside a repository.
    pub tree: Option<&'a dyn TreeFiles>,
}

/// The files of the tree under review, as models see them.
pub trait TreeFiles: Debug {
    /// Returns the text of a file with secrets replaced and hidden characters made visible. Returns
    /// `None` if the file cannot be shown.
    fn text(&self, path: &RepoPath) -> Option<Rc<str>>;
    /// Returns the paths of all files, in byte order.
    fn paths(&self) -> &[RepoPath];
    /// Returns the definitions and imports of a file. Returns `None` if it cannot be shown or its
    /// language has no grammar.
    fn symbols(&self, path: &RepoPath) -> Option<Arc<Symbols>> {
        Symbols::read(path, self.text(path)?.as_bytes()).map(Arc::new)
    }
}

impl TreeFiles for Tree<'_> {
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

/// The result of anchoring a claim.
#[derive(Clone, Debug)]
pub enum Anchored {
    Candidate(Box<ClaimCandidate>),
    /// The claim is not about the change, whether it is true or not: it concerns unchanged code, or
    /// a file outside the change.
    Remark {
        file: Option<RepoPath>,
        line: Option<LineNo>,
        text: String,
    },
    /// The claim could not be anchored. It is counted, and printed with `-v`.
    Dropped {
        claim: String,
        why: &'static str,
    },
}

/// A claim that is anchored to the change.
#[derive(Clone, Debug)]
pub struct ClaimCandidate {
    pub draft: Draft,
    /// Position of its [`Group`]. The commit cannot replace it: several groups may have the same
    /// commit, or none.
    pub group: usize,
    pub commit: Option<ObjectId>,
    /// The backend's configured name.
    pub backend: String,
    pub certainty: PositionCertainty,
    /// Tool calls that read the lines.
    pub evidence: Vec<Evidence>,
    /// Reason why a second request refuted it.
    pub disputed: Option<String>,
    /// Test that reproduces it.
    pub reproduction: Option<Reproduction>,
    /// Messages about how the claim was parsed, such as an unknown severity.
    pub notes: Vec<String>,
}

impl ClaimCandidate {
    /// Returns the severity. A weakness that is always critical ([`merge_claims`]) counts as such if
    /// the position of the claim is at least likely.
    pub fn severity(&self) -> Severity {
        merging::severity(&self.draft, self.certainty >= PositionCertainty::Likely)
    }
}

/// How certain the position of a claim is.
///
/// A claim without a quote from the change can have any of them: a verified citation counts as
/// [`PositionCertainty::Certain`], and a claim about unchanged code is moved to a changed line
/// without a quote from that line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PositionCertainty {
    /// The quote is missing, ambiguous, or only similar to the line.
    Doubtful,
    /// Medium confidence, unless another backend reports the same problem. For example:
    ///
    /// - The quote equals the line with the claimed number, but equal lines are nearby.
    /// - The quote equals only one line of the named file, and also a line of another file.
    /// - The quote is a part of the line with the claimed number, or of only one changed line.
    /// - The claim is about unchanged code, and a name connects that code with the line (`tied`).
    Likely,
    /// The quote equals the line, except for white space, typographic characters and a diff marker,
    /// and no other line can be meant. Or the claim is a design violation or a missing requirement,
    /// and its citation exists in a document: such a claim has no line.
    Certain,
}

impl PositionCertainty {
    /// Returns this certainty if the condition holds, and the lowest one otherwise.
    fn doubtful_unless(self, is_sure: bool) -> Self {
        if is_sure { self } else { Self::Doubtful }
    }
}

/// Anchors each finding, design violation and missing requirement of a reply. The notes of the
/// reply become remarks.
pub fn claims(reply: &Reply, cx: &Context<'_>) -> Vec<Anchored> {
    let mut drafter = Drafter::new(*cx);
    let mut out: Vec<Anchored> = reply
        .findings
        .iter()
        .map(|claim| drafter.anchor(claim))
        .collect();
    out.extend(reply.notes.iter().map(|note| Anchored::Remark {
        file: None,
        line: None,
        text: text::clean(cx.rules, note, text::REMARK),
    }));
    let violations = reply.design_compliance.iter().flat_map(|c| &c.violations);
    out.extend(violations.map(|v| drafter.documented(&Documented::of_violation(v))));
    out.extend(
        reply
            .missing_requirements
            .iter()
            .map(|m| drafter.documented(&Documented::of_missing(m))),
    );
    out
}

/// Returns the compliance statement and the missing requirements of a reply, for the report. Omits
/// an entry whose citation does not exist.
pub fn documented(reply: &Reply, cx: &Context<'_>) -> (Option<Compliance>, Vec<UnmetRequirement>) {
    let compliance = reply.design_compliance.as_ref().map(|c| {
        let violations = c.violations.iter().filter_map(|v| {
            let place = draft::cited(cx, v.reference.as_deref()?, &[], None)?;
            Some(DesignViolation {
                issue: text::clean(cx.rules, &v.issue, text::BODY),
                description: text::clean(cx.rules, &v.description, text::BODY),
                impact: rating::severity(&v.impact).0,
                reference: Some(place.label),
                recommendation: text::some(cx.rules, v.recommendation.as_deref(), text::BODY),
            })
        });
        let violations: Vec<_> = violations.collect();
        Compliance {
            follows: c.follows_architecture && violations.is_empty(),
            violations,
        }
    });
    let has_documents = !cx.documents.is_empty() || !cx.conventions.is_empty();
    let missing = reply.missing_requirements.iter().filter_map(|m| {
        let place = draft::cited(cx, m.reference.as_deref()?, &[], None)?;
        Some(UnmetRequirement {
            requirement: text::clean(cx.rules, &m.requirement, text::BODY),
            reference: Some(place.label),
            severity: rating::severity(&m.severity).0,
        })
    });
    (compliance.filter(|_| has_documents), missing.collect())
}

#[cfg(test)]
mod tests;
