//! Triage in the terminal: decisions on the findings of a stored review, and the menu of sensible
//! next commands.
//!
//! State machines over `(State, Event) -> (State, Effects)` and views over
//! `(&State, Size) -> Buffer`, both pure. The edge (`cli/triage`, `cli/screen`) reads keys, runs
//! effects and draws. Untrusted text reaches a cell only through [`crate::untrusted`], in
//! [`paper`].

pub mod code;
pub mod filter;
pub mod key;
pub mod line;
pub mod menu;
pub mod paper;
mod prompt;
#[cfg(test)]
mod sample;
mod scroll;
pub mod state;
pub mod step;
pub mod view;

use crate::diff::{FileChange, ObjectId};
use crate::disposition::DecisionEntry;
use crate::wire::{self, Disposition};
use jiff::civil::Date;

/// The size of a terminal in cells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Size {
    pub width: u16,
    pub height: u16,
}

impl Size {
    /// The smallest terminal that triage and the menu are drawn on.
    pub const LEAST: Self = Self {
        width: 40,
        height: 10,
    };

    /// Returns true if the terminal is too small to draw on.
    pub fn is_too_small(self) -> bool {
        self.width < Self::LEAST.width || self.height < Self::LEAST.height
    }
}

/// A stored review in the form that triage shows.
#[derive(Clone, Debug)]
pub struct TriageSubject {
    /// ID of the stored review.
    pub id: String,
    /// Display label: `the staged change`.
    pub label: String,
    /// Number of the reviewed pull request.
    pub pull: Option<u64>,
    pub round: u32,
    pub verdict: wire::Verdict,
    /// In the order of the report.
    pub items: Vec<TriageItem>,
    /// The stored change, secrets masked.
    pub files: Vec<(Option<ObjectId>, FileChange)>,
    /// The current day, for dates that a user types.
    pub today: Date,
}

/// A finding with the decisions about it.
#[derive(Clone, Debug)]
pub struct TriageItem {
    pub finding: wire::Finding,
    /// The decision that applies.
    pub entry: Option<DecisionEntry>,
    /// A decision that an agent proposes.
    pub proposal: Option<DecisionEntry>,
    /// True if its replacement was written during this session.
    pub is_applied: bool,
}

impl TriageItem {
    /// Returns true if the finding needs a decision.
    pub fn is_pending(&self) -> bool {
        self.finding.is_pending()
    }

    /// Returns true if the finding has a status. A suppressed or waived finding is not pending.
    pub fn has_status(&self, of: Disposition) -> bool {
        self.finding.disposition == of && (of != Disposition::Pending || self.is_pending())
    }

    /// Returns true if the finding of an earlier round is fixed, so that no decision is possible.
    pub fn is_fixed(&self) -> bool {
        self.finding.disposition == Disposition::Fixed
    }
}

/// Returns the name of a severity.
pub fn severity(severity: wire::Severity) -> &'static str {
    match severity {
        wire::Severity::Critical => "critical",
        wire::Severity::Major => "major",
        wire::Severity::Minor => "minor",
        wire::Severity::Suggestion => "suggestion",
    }
}

/// Returns the name of a confidence.
pub fn confidence(confidence: wire::Confidence) -> &'static str {
    match confidence {
        wire::Confidence::High => "high",
        wire::Confidence::Medium => "medium",
        wire::Confidence::Low => "low",
    }
}

/// Returns the name of a status.
pub fn status(status: Disposition) -> &'static str {
    match status {
        Disposition::Pending => "pending",
        Disposition::Accepted => "accepted",
        Disposition::Rejected => "rejected",
        Disposition::Deferred => "deferred",
        Disposition::Fixed => "fixed",
    }
}
