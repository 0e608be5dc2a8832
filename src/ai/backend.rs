//! Asks models: a question in, the text of an answer out, or a [`Failure`] that says why there is none.
//!
//! Every provider is one file that knows its words, and one line in [`DIALECTS`]; how a request is sent, tried
//! again and given up is the same for all of them (`crate::http`), and so is the conversation with tools
//! (`talk`). The Claude Code command line stands beside them (`claude`). Nothing here believes an answer.

mod anthropic;
mod claude;
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

use crate::ai::ask::{Answer, Ask, Cause, Failure};
use crate::ai::tree::Tree;
use crate::env::Env;
use crate::policy;
use crate::policy::{Api, BackendKind};
use crate::stop::Stop;
use std::path::Path;
use std::time::Instant;
use talk::Dialect;

/// The providers that are spoken to over HTTP.
static DIALECTS: [(BackendKind, &Dialect); 3] = [
    (BackendKind::Anthropic, &anthropic::DIALECT),
    (BackendKind::Google, &google::DIALECT),
    (BackendKind::OpenAi, &openai::DIALECT),
];

/// Something that answers questions, as policy configures it. Shared by all requests of a run.
#[derive(Debug)]
pub struct Backend {
    name: String,
    kind: BackendKind,
    speaker: Speaker,
}

/// How it is spoken to.
#[derive(Debug)]
enum Speaker {
    Http(Box<http::Http>),
    Claude(Box<claude::Claude>),
}

impl Backend {
    /// Makes a backend ready to be asked. Opens no connection and runs no program.
    ///
    /// `repo_top` is the top of the repository under review: no program inside of it is ever run.
    ///
    /// # Errors
    ///
    /// `Setup`, with what to set: a withheld backend, a missing key or program, a proxy that cannot be used.
    pub fn open(policy: &policy::Backend, env: &Env, repo_top: Option<&Path>, pool: &Pool) -> Result<Self, Failure> {
        if let Some(key) = &policy.withheld {
            let message = format!("{key} comes from a file that is not trusted");
            return Err(Failure::new(Cause::Setup, message).hint("run `claude-reviewer policy trust`"));
        }
        let Some(kind) = policy.kind else {
            let hint = format!("add to [backend.{}]: kind = \"openai\"", policy.name);
            return Err(Failure::new(Cause::Setup, "its kind is not known").hint(hint));
        };
        let dialect = match policy.api {
            Some(Api::Responses) => Some(&responses::DIALECT),
            Some(Api::Chat) | None => DIALECTS.iter().find(|(k, _)| *k == kind).map(|(_, dialect)| *dialect),
        };
        let speaker = match dialect {
            Some(dialect) => Speaker::Http(Box::new(http::Http::open(policy, dialect, env, repo_top, pool)?)),
            None => Speaker::Claude(Box::new(claude::Claude::open(policy, env, repo_top)?)),
        };
        Ok(Self { name: policy.name.clone(), kind, speaker })
    }

    /// Returns the name in the policy.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns how it is spoken to.
    pub fn kind(&self) -> BackendKind {
        self.kind
    }

    /// Returns the model that is asked, once it is known: from the policy, or after [`ready`](Self::ready).
    pub fn model(&self) -> Option<&str> {
        match &self.speaker {
            Speaker::Http(http) => http.model(),
            Speaker::Claude(claude) => claude.model(),
        }
    }

    /// Returns true if the provider itself is asked, not a compatible server or a gateway.
    pub fn is_own(&self) -> bool {
        matches!(&self.speaker, Speaker::Http(http) if http.is_own())
    }

    /// Returns true if every answer says what it cost.
    pub fn reports_cost(&self) -> bool {
        matches!(self.speaker, Speaker::Claude(_))
    }

    /// Returns where it is asked, for people: an address without a key, or a program.
    pub fn endpoint(&self) -> String {
        match &self.speaker {
            Speaker::Http(http) => http.endpoint(),
            Speaker::Claude(claude) => claude.endpoint(),
        }
    }

    /// Returns how many bytes of prompt one request may have.
    pub fn capacity(&self) -> usize {
        match &self.speaker {
            Speaker::Http(http) => http.capacity(),
            Speaker::Claude(claude) => claude.capacity(),
        }
    }

    /// Returns how many requests one question takes at most, retries apart; `looks_around`: it may use tools.
    pub fn most_requests(&self, looks_around: bool) -> u32 {
        match (&self.speaker, looks_around) {
            (Speaker::Http(_), true) => talk::MOST_REQUESTS,
            (Speaker::Claude(_), true) => claude::TURNS_AROUND,
            (Speaker::Claude(_), false) => claude::TURNS,
            (Speaker::Http(_), false) => 1,
        }
    }

    /// Finds out what asking needs and policy does not say: the key from its command, the model from the
    /// provider's list. Returns the model. [`ask`](Self::ask) does it too; only the first call costs anything.
    pub async fn ready(&self, deadline: Instant, stop: &Stop) -> Result<&str, Failure> {
        match &self.speaker {
            Speaker::Http(http) => http.ready(deadline, stop).await,
            Speaker::Claude(claude) => claude.ready(deadline, stop).await,
        }
    }

    /// Asks a program for its version, and whether it is new enough; `None`: it is no program, or does not say.
    pub async fn version(&self, deadline: Instant, stop: &Stop) -> Result<Option<String>, Failure> {
        match &self.speaker {
            Speaker::Http(_) => Ok(None),
            Speaker::Claude(claude) => claude.version(deadline, stop).await,
        }
    }

    /// Asks. `around`: the tree that the model may look around in; `None`: it sees the prompt alone.
    ///
    /// Ends at the question's deadline, and at once when the run is stopped. Dropping the future closes its
    /// connection.
    pub async fn ask(&self, ask: &Ask<'_>, around: Option<&Tree<'_>>) -> Result<Answer, Failure> {
        match &self.speaker {
            Speaker::Http(http) => http.ask(ask, around).await,
            Speaker::Claude(claude) => claude.ask(ask, around).await,
        }
    }

    /// Lists the models that the account offers, as the provider orders them.
    pub async fn models(&self) -> Result<Vec<String>, Failure> {
        match &self.speaker {
            Speaker::Http(http) => http.models().await,
            Speaker::Claude(claude) => claude.models().await,
        }
    }
}
