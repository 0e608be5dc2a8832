//! Sends requests to models. Each request returns the text of an answer, or a [`Failure`] with the
//! reason.
//!
//! Each provider has one file with its wire format, and one line in [`dialect`]. Sending, retries
//! and deadlines (`crate::http`) and the conversation with tools (`talk`) are the same for all of
//! them. The Claude Code command line (`claude`) is a separate implementation. No answer is trusted
//! here.

mod anthropic;
mod batch;
mod claude;
mod dialect;
mod google;
mod http;
mod key;
mod openai;
mod responses;
mod schema;
pub(crate) mod sse;
mod talk;
mod url;

pub use crate::http::Pool;
pub(crate) use batch::BatchState;
pub(crate) use http::batch::lost::LostBatch;
pub(crate) use http::batch::{BatchService, BatchView, is_ambiguous};

use crate::ai::ask::{Ask, Cause, Failure, ModelAnswer};
use crate::ai::tree::Tree;
use crate::env::Env;
use crate::policy;
use crate::policy::{Api, BackendKind};
use crate::stop::Stop;
use dialect::Dialect;
use std::path::Path;
use std::time::Instant;

/// Returns the wire format of a provider with an HTTP API. Returns `None` for a program.
fn dialect(kind: BackendKind, api: Option<Api>) -> Option<&'static Dialect> {
    match (api, kind) {
        (Some(Api::Responses), _) => Some(&responses::DIALECT),
        (_, BackendKind::Anthropic) => Some(&anthropic::DIALECT),
        (_, BackendKind::Google) => Some(&google::DIALECT),
        (_, BackendKind::OpenAi) => Some(&openai::DIALECT),
        (_, BackendKind::Claude) => None,
    }
}

/// Returns true if requests to a backend can be sent in batches: its provider has a batch
/// interface, and it is not another service with the same API.
pub fn takes_batches(policy: &policy::Backend) -> bool {
    let dialect = policy.kind.and_then(|kind| dialect(kind, policy.api));
    let is_other = policy.preset().is_some() || policy.api_version.is_some();
    dialect.is_some_and(|d| d.batch.is_some()) && !is_other
}

/// A model provider as configured in the policy. Shared by all requests of a run.
#[derive(Debug)]
pub struct Backend {
    name: String,
    kind: BackendKind,
    speaker: Speaker,
}

/// The transport of a backend.
#[derive(Debug)]
enum Speaker {
    Http(Box<http::Http>),
    Claude(Box<claude::Claude>),
}

impl Backend {
    /// Sets up a backend. Opens no connection and runs no program.
    ///
    /// `repo_top` is the root of the repository under review. No program inside it is ever run.
    ///
    /// # Errors
    ///
    /// Returns `Setup`, with a hint about the setting: a withheld backend, a missing key or
    /// program, an unusable proxy.
    pub fn open(
        policy: &policy::Backend,
        env: &Env,
        repo_top: Option<&Path>,
        pool: &Pool,
    ) -> Result<Self, Failure> {
        if let Some(key) = &policy.withheld {
            let message = format!("{key} comes from a file that is not trusted");
            return Err(
                Failure::new(Cause::Setup, message).hint("run `claude-reviewer policy trust`")
            );
        }
        let Some(kind) = policy.kind else {
            let hint = format!("add to [backend.{}]: kind = \"openai\"", policy.name);
            return Err(Failure::new(Cause::Setup, "its kind is not known").hint(hint));
        };
        let speaker = match dialect(kind, policy.api) {
            Some(dialect) => Speaker::Http(Box::new(http::Http::open(
                policy, dialect, env, repo_top, pool,
            )?)),
            None => Speaker::Claude(Box::new(claude::Claude::open(policy, env, repo_top)?)),
        };
        Ok(Self {
            name: policy.name.clone(),
            kind,
            speaker,
        })
    }

    /// Returns the name in the policy.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the kind of the provider.
    pub fn kind(&self) -> BackendKind {
        self.kind
    }

    /// Returns the model, if the policy names it or [`ready`](Self::ready) has determined it.
    pub fn model(&self) -> Option<&str> {
        match &self.speaker {
            Speaker::Http(http) => http.model(),
            Speaker::Claude(claude) => claude.model(),
        }
    }

    /// Returns true if requests go to the provider itself, not to a compatible server or a gateway.
    pub fn is_own(&self) -> bool {
        matches!(&self.speaker, Speaker::Http(http) if http.is_own())
    }

    /// Returns true if every answer contains its cost.
    pub fn reports_cost(&self) -> bool {
        matches!(self.speaker, Speaker::Claude(_))
    }

    /// Returns the endpoint for display: an address without a key, or a program.
    pub fn endpoint(&self) -> String {
        match &self.speaker {
            Speaker::Http(http) => http.endpoint(),
            Speaker::Claude(claude) => claude.endpoint(),
        }
    }

    /// Returns the maximum size of a prompt in bytes.
    pub fn capacity(&self) -> usize {
        match &self.speaker {
            Speaker::Http(http) => http.capacity(),
            Speaker::Claude(claude) => claude.capacity(),
        }
    }

    /// Returns the maximum number of requests for one question, without retries. `looks_around` is
    /// true if it may use tools.
    pub fn most_requests(&self, looks_around: bool) -> u32 {
        match (&self.speaker, looks_around) {
            (Speaker::Http(_), true) => talk::MOST_REQUESTS,
            (Speaker::Claude(_), true) => claude::TURNS_AROUND,
            (Speaker::Claude(_), false) => claude::TURNS,
            (Speaker::Http(_), false) => 1,
        }
    }

    /// Returns the batch interface, if the provider has one.
    pub(crate) fn batch(&self) -> Option<BatchService<'_>> {
        match &self.speaker {
            Speaker::Http(http) => http.batch(),
            Speaker::Claude(_) => None,
        }
    }

    /// Determines the values that the policy does not set: the key from its command, the model from
    /// the provider's list. Returns the model. [`ask`](Self::ask) calls this too; only the first
    /// call has a cost.
    pub async fn ready(&self, deadline: Instant, stop: &Stop) -> Result<&str, Failure> {
        match &self.speaker {
            Speaker::Http(http) => http.ready(deadline, stop).await,
            Speaker::Claude(claude) => claude.ready(deadline, stop).await,
        }
    }

    /// Returns the version of the program, after checking that it is new enough. Returns `None` if
    /// the backend is not a program or reports no version.
    pub async fn version(&self, deadline: Instant, stop: &Stop) -> Result<Option<String>, Failure> {
        match &self.speaker {
            Speaker::Http(_) => Ok(None),
            Speaker::Claude(claude) => claude.version(deadline, stop).await,
        }
    }

    /// Sends a question. `around` is the tree that the model can read through tools; with `None` it
    /// sees only the prompt.
    ///
    /// Ends at the deadline of the question, and immediately when the run is stopped. Dropping the
    /// future closes its connection.
    pub async fn ask(
        &self,
        ask: &Ask<'_>,
        around: Option<&Tree<'_>>,
    ) -> Result<ModelAnswer, Failure> {
        match &self.speaker {
            Speaker::Http(http) => talk::hold(http, ask, around).await,
            Speaker::Claude(claude) => claude.ask(ask, around).await,
        }
    }

    /// Lists the models that the account offers, in the order of the provider.
    pub async fn models(&self) -> Result<Vec<String>, Failure> {
        match &self.speaker {
            Speaker::Http(http) => http.models().await,
            Speaker::Claude(claude) => claude.models().await,
        }
    }
}
