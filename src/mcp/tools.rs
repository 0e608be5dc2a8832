//! The tools: descriptions, arguments, answers and effects. One file for each group.
//!
//! Clients give context, not instructions: every argument that reaches a model is fenced as data,
//! on the same path as a review from the command line.

mod answers;
mod brief;
mod delegate;
mod fix;
mod judge;
pub(super) mod review_words;
pub(super) mod session;
pub(super) mod stateless;

use super::answer::ToolAnswer;
use super::args::{self, Arg, GivenArgs};
use super::fence::{Fence, Served};
use crate::env::Env;
use crate::error::{Error, Result};
use crate::forge::Issues;
use crate::policy::{self, Policy, PolicyFile, Sources};
use crate::progress::Progress;
use crate::request::{Authority, Overrides, ReviewRequest, Source};
use crate::review::{self, World};
use crate::stop::Stop;
use rmcp::model::ToolAnnotations;
use serde_json::Value;
use std::path::Path;
use std::sync::{Arc, LazyLock};

/// A tool.
#[derive(Clone, Copy)]
pub(super) struct McpTool {
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    pub(super) about: &'static str,
    pub(super) args: &'static [Arg],
    pub(super) answers: fn() -> Value,
    pub(super) effect: ToolEffect,
    /// The tool may ask a model.
    pub(super) asks: bool,
    pub(super) run: fn(&ToolCall<'_>) -> Result<ToolAnswer>,
    /// Handles a call that was rejected for its arguments. The call has only the valid ones.
    pub(super) refused: Option<fn(&ToolCall<'_>, &Error) -> Result<()>>,
}

/// The effect of a tool on files and on the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ToolEffect {
    /// None.
    Reads,
    /// Adds to the store of reviews, or writes reports.
    Adds,
    /// The same, but a repeated call adds nothing.
    Settles,
    /// Changes files of the worktree.
    Edits,
}

impl std::fmt::Debug for McpTool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("McpTool")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// The inputs of a tool.
pub(super) struct ToolCall<'a> {
    pub(super) given: &'a GivenArgs,
    pub(super) fence: &'a Fence,
    pub(super) env: &'a Env,
    /// A policy file that the operator named.
    pub(super) config: Option<&'a Path>,
    pub(super) progress: &'a dyn Progress,
    pub(super) stop: &'a Stop,
    pub(super) now: jiff::Timestamp,
}

impl std::fmt::Debug for ToolCall<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ToolCall")
            .field("given", &self.given)
            .finish_non_exhaustive()
    }
}

/// All tools, in the order in which clients see them.
pub(super) const ALL: &[&[McpTool]] = &[
    session::TOOLS,
    stateless::TOOLS,
    judge::TOOLS,
    delegate::TOOLS,
    fix::TOOLS,
];

impl McpTool {
    /// Returns the tool in the type of the protocol.
    pub(super) fn listed(&self) -> rmcp::model::Tool {
        /// Built once: building the schemas takes longer than the rest of a list.
        static LISTED: LazyLock<Vec<rmcp::model::Tool>> = LazyLock::new(|| {
            ALL.iter()
                .copied()
                .flatten()
                .map(McpTool::described)
                .collect()
        });
        LISTED
            .iter()
            .find(|t| t.name == self.name)
            .cloned()
            .unwrap_or_else(|| self.described())
    }

    fn described(&self) -> rmcp::model::Tool {
        let annotations = ToolAnnotations::with_title(self.title)
            .read_only(self.effect == ToolEffect::Reads)
            .destructive(self.effect == ToolEffect::Edits)
            .idempotent(matches!(
                self.effect,
                ToolEffect::Reads | ToolEffect::Settles
            ))
            .open_world(self.asks);
        let output = super::answer::object(brief::brief(&(self.answers)()));
        rmcp::model::Tool::new(self.name, self.about, Arc::new(args::schema(self.args)))
            .with_title(self.title)
            .with_raw_output_schema(Arc::new(output))
            .with_annotations(annotations)
    }
}

impl ToolCall<'_> {
    /// Returns the environment of a review.
    pub(super) fn world(&self) -> World<'_> {
        World {
            env: self.env,
            progress: self.progress,
            now: self.now,
            stop: self.stop,
            script: None,
            agent: None,
            findings: None,
            trackers: Some(&Issues),
        }
    }

    /// Creates the request of a client. The policy is the one at HEAD, because the change under
    /// review can edit its own.
    pub(super) fn request(&self, source: Source, served: &Served) -> ReviewRequest {
        request(source, served, self.config)
    }

    /// Validates the client's choice of a backend: the policy must enable it. Without a choice, the
    /// policy selects the backends.
    ///
    /// # Errors
    ///
    /// The policy does not enable the backend.
    pub(super) fn provider(&self, served: &Served) -> Result<Vec<String>> {
        let Some(name) = self.given.text("provider") else {
            return Ok(Vec::new());
        };
        let enabled = policy_of(served, self.config, self.env)?.review.backends;
        if enabled.iter().any(|b| b == name) {
            return Ok(vec![name.to_owned()]);
        }
        let error = Error::usage(format!("provider {} is not enabled", args::shown(name)));
        Err(match enabled.is_empty() {
            true => error.hint(
                "leave provider out: the policy enables no backend, and the built-in rules review",
            ),
            false => error.hint(format!(
                "the policy enables {}; leave provider out for its choice",
                enabled.join(", ")
            )),
        })
    }
}

/// Creates the request of a client; see [`ToolCall::request`].
fn request(source: Source, served: &Served, config: Option<&Path>) -> ReviewRequest {
    let config = config.map(Path::to_owned);
    ReviewRequest {
        authority: Authority::Head,
        config,
        ..ReviewRequest::new(source, served.dir().to_owned())
    }
}

/// Returns the policy that applies to a client's calls in a folder: the one at HEAD, or the user's
/// outside a repository.
///
/// # Errors
///
/// A malformed policy, or a repository that cannot be read.
pub(super) fn policy_of(served: &Served, config: Option<&Path>, env: &Env) -> Result<Policy> {
    if served.is_repository() {
        return review::store_location(&request(Source::Auto, served, config), env)
            .map(|(_, policy)| policy);
    }
    let user = PolicyFile::user(env)?;
    let project = config
        .map(|c| policy::ProjectFile::from_flag(c, served.dir()))
        .transpose()?;
    let overrides = Overrides::default();
    let sources = Sources {
        user: user.as_ref(),
        project: project.as_ref(),
        env,
        overrides: &overrides,
    };
    Ok(policy::load(&sources)?.policy)
}

/// Returns true if a text is a path or a glob that selects only files below a folder.
pub(super) fn is_pattern(text: &str) -> bool {
    let leads_out = text.starts_with(['/', '~', '-']) || text.split('/').any(|p| p == "..");
    !text.is_empty() && text.len() <= 4096 && !leads_out && !text.chars().any(char::is_control)
}
