//! Tickets and pages that a change refers to: selection and content.
//!
//! [`reference`] finds the references in the names and texts of a change, [`allow`] decides which
//! may be read, and [`gather()`] reads them: issues through a [`Tracker`] of the forge layer,
//! tickets and pages from MCP servers ([`server`]) that the operator configures. This code makes
//! every call; no model does. The results are data: redacted, bounded, and never instructions.

mod allow;
mod gather;
mod keep;
mod link;
mod pipe;
mod program;
mod quote;
pub mod reference;
mod server;
mod ticket;
mod web;

pub use allow::{Allowed, projects_of};
pub use gather::{GatherJob, Gathered, gather, recall};
pub use quote::Quotes;
pub use reference::{ChangeTexts, Home, Reference};
pub use server::{Probe, probe};
pub use ticket::Ticket;

use crate::env::Env;
use crate::policy::ForgePolicy;
use crate::stop::Stop;
use std::fmt::Debug;
use std::path::Path;
use std::time::Instant;

/// A ticket or page that was read for a change. All text is redacted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GatheredItem {
    /// The name in citations: `PROJ-12`, `#12`, `page 123`.
    pub reference: String,
    pub title: String,
    /// `jira`, `confluence`, the name of a forge such as `github`, or the name of a server.
    pub source: String,
    /// Time of the last change, or a version, in the form of the source; empty if the source has
    /// none.
    pub version: String,
    /// SHA-256 of `text`, in hexadecimal digits.
    pub digest: String,
    /// The text that models see. Empty in a stored review, which does not contain it.
    pub text: String,
}

impl GatheredItem {
    /// Returns true if models saw a text that is unknown here, as in a stored review.
    pub fn is_unknown(&self) -> bool {
        self.text.is_empty() && self.digest != gather::digest(&self.title, "")
    }
}

/// Finds the tracker of the repository under review. Implemented above this layer, where forges are
/// known.
pub trait Trackers: Debug + Sync {
    /// Returns the tracker of the project that one of the addresses belongs to; `None` if no known
    /// forge has it.
    ///
    /// # Errors
    /// A lowercase fragment: why the forge cannot be contacted.
    fn open(&self, desk: &TrackerDesk<'_>) -> Result<Option<Box<dyn Tracker>>, String>;
}

/// The environment in which a tracker is opened.
#[derive(Clone, Copy, Debug)]
pub struct TrackerDesk<'a> {
    /// The policy that governs the review.
    pub policy: &'a ForgePolicy,
    pub env: &'a Env,
    /// The top of the repository.
    pub top: Option<&'a Path>,
    /// Addresses of the remote, the best one first.
    pub remotes: &'a [String],
}

/// The issues of a forge.
pub trait Tracker: Debug {
    /// Returns the project under review.
    fn home(&self) -> &Home;

    /// Returns true if a token for the forge is configured.
    fn has_token(&self) -> bool;

    /// Reads an issue; `None` if the number is that of a pull request.
    ///
    /// # Errors
    /// A lowercase fragment: why it cannot be read.
    fn read(&self, wanted: &WantedIssue<'_>) -> Result<Option<Ticket>, String>;
}

/// An issue to read, with a deadline.
#[derive(Clone, Copy, Debug)]
pub struct WantedIssue<'a> {
    /// Another project of the same forge; `None`: the project under review.
    pub project: Option<&'a str>,
    pub number: u64,
    pub deadline: Instant,
    pub stop: &'a Stop,
}
