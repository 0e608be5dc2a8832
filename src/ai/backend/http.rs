//! A backend with an HTTP API: sends requests and interprets the answers.
//!
//! A request returns a JSON document or a [`Failure`]. Headers of an answer are dropped. Of an
//! error, only a short text is kept, escaped and without keys. [`crate::http`] handles connections,
//! deadlines and retries.

pub(super) mod batch;

use super::dialect::{Complaint, Dialect, ModelMessage, Talk};
use super::key;
use super::openai;
use super::sse::Events;
use super::url::{BackendAddress, bytes_of, room_for_answer};
use crate::ai::ask::{Begun, Cause, Failure, Spent};
use crate::ai::batch::queue::BatchBody;
use crate::ai::budget::LONGEST;
use crate::ai::quota::Quota;
use crate::env::Env;
use crate::http;
use crate::http::{
    Limits, Method, Pool, Protocol, Proxies, Refusal, Repeat, Reply, Request, Server, StatusCode,
    Trouble, Url,
};
use crate::policy;
use crate::policy::{BackendKind, Effort, KeyHeader};
use crate::stop::Stop;
use serde_json::Value;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::OnceCell;

/// Timeout for the list of models.
const LIST_TIME: Duration = Duration::from_secs(20);
/// Bytes of a decompressed body, at most.
const MAX_BODY: usize = 16 << 20;
/// Models that a failure message lists, at most.
const MAX_NAMED: usize = 8;

/// A backend with an HTTP API.
#[derive(Debug)]
pub(super) struct Http {
    dialect: &'static Dialect,
    address: BackendAddress,
    server: Server,
    /// Name of the variable for the key, for hints.
    key_name: String,
    name: String,
    model: OnceCell<String>,
    capacity: usize,
    effort: Option<Effort>,
    /// Tokens of an answer, at most.
    longest: u64,
    /// Tokens of prompt and answer together, at most. `None` if only the provider's own limits
    /// apply.
    context: Option<u64>,
    /// The value of `api-version` in every address (Azure).
    api_version: Option<String>,
    /// True if the server rejected a streaming request.
    is_unstreamed: AtomicBool,
}

/// One request, with the handling of its answer.
struct Exchange<'a> {
    http: &'a Http,
    /// Set when the answer begins.
    begun: Option<&'a Begun>,
}

impl Http {
    /// Sets up a backend for a dialect. Opens no connection.
    pub(super) fn open(
        policy: &policy::Backend,
        dialect: &'static Dialect,
        env: &Env,
        top: Option<&Path>,
        pool: &Pool,
    ) -> Result<Self, Failure> {
        let address = BackendAddress::of(policy.base_url.as_deref(), dialect)?;
        let key = key::source(policy, address.is_own(), env, top)?;
        let usual = policy
            .kind
            .and_then(policy::BackendKind::key_variable)
            .unwrap_or_default();
        let server = Server::new(http::Setup {
            address: address.url().clone(),
            setting: "base_url",
            carries: carries(policy, dialect, &address),
            headers: dialect.headers,
            key,
            max_retries: policy.max_retries,
            retry_delay: policy.retry_delay,
            is_patient: true,
            proxies: if address.is_secure() {
                Proxies::of(env)?
            } else {
                Proxies::default()
            },
            pool: pool.clone(),
        });
        Ok(Self {
            dialect,
            server,
            key_name: policy
                .api_key_env
                .clone()
                .unwrap_or_else(|| usual.to_owned()),
            name: policy.name.clone(),
            model: OnceCell::new_with(policy.model.clone()),
            capacity: policy
                .context_tokens
                .map_or_else(|| address.capacity(dialect), bytes_of),
            effort: policy.effort,
            longest: longest(policy.effort),
            context: context(policy, &address),
            api_version: policy.api_version.clone(),
            is_unstreamed: AtomicBool::new(false),
            address,
        })
    }

    pub(super) fn model(&self) -> Option<&str> {
        self.model.get().map(String::as_str)
    }

    pub(super) fn endpoint(&self) -> String {
        self.address.to_string()
    }

    pub(super) fn capacity(&self) -> usize {
        self.capacity
    }

    /// Returns true if requests go to the provider itself, not to a compatible server.
    pub(super) fn is_own(&self) -> bool {
        self.address.is_own()
    }

    pub(super) fn schema_beside_tools(&self) -> bool {
        self.dialect.schema_beside_tools && self.is_own()
    }

    /// Returns true if the server may silently truncate the prompt.
    pub(super) fn may_drop(&self) -> bool {
        self.dialect.drops && !self.is_own()
    }

    /// Determines the key and the model.
    pub(super) async fn ready(&self, deadline: Instant, stop: &Stop) -> Result<&str, Failure> {
        let limits = Limits::new(deadline, stop);
        self.server.ready(&limits).await?;
        self.model
            .get_or_try_init(|| self.choose(&limits))
            .await
            .map(String::as_str)
    }

    /// Chooses a model if none is configured: the first of a list that starts with the newest, or
    /// the only one.
    async fn choose(&self, limits: &Limits<'_>) -> Result<String, Failure> {
        let mut offered = self.list(limits).await?;
        let key = format!("model in [backend.{}]", self.name);
        if offered.is_empty() {
            let failure = Failure::new(
                Cause::Setup,
                "no model is configured, and the server lists none",
            );
            return Err(failure.hint(format!("set {key}")));
        }
        if self.dialect.newest_first || offered.len() == 1 {
            return Ok(offered.swap_remove(0));
        }
        let shown: Vec<_> = offered
            .iter()
            .take(MAX_NAMED)
            .map(|m| self.shown(m))
            .collect();
        let more = if offered.len() > MAX_NAMED {
            ", …"
        } else {
            ""
        };
        let message = format!(
            "no model is configured; the server offers {}{more}",
            shown.join(", ")
        );
        Err(Failure::new(Cause::Setup, message).hint(format!("set {key}")))
    }

    pub(super) async fn models(&self) -> Result<Vec<String>, Failure> {
        let stop = Stop::default();
        let limits = Limits::new(Instant::now() + LIST_TIME, &stop);
        self.server.ready(&limits).await?;
        self.list(&limits).await
    }

    async fn list(&self, limits: &Limits<'_>) -> Result<Vec<String>, Failure> {
        let url = self.url(&["models"], self.dialect.models_query);
        let request = Request {
            method: Method::GET,
            url,
            body: None,
            content_type: None,
            repeat: Repeat::Harmless,
        };
        let exchange = Exchange {
            http: self,
            begun: None,
        };
        let list = self
            .server
            .send(&request, &exchange, limits, &mut http::admit_all)
            .await?;
        Ok((self.dialect.models)(&list))
    }

    /// Returns the URL of a resource below the version.
    fn url(&self, path: &[&str], query: &str) -> Url {
        let mut url = self.address.join(path);
        url.set_query(Some(query).filter(|q| !q.is_empty()));
        if let Some(version) = &self.api_version {
            url.query_pairs_mut().append_pair("api-version", version);
        }
        url
    }

    /// Sends one request of a conversation, after reserving it.
    pub(super) async fn say(
        &self,
        talk: &Talk<'_>,
        quota: &Quota<'_>,
        limits: &Limits<'_>,
        spent: &mut Spent,
    ) -> Result<ModelMessage, Failure> {
        let mut body = (self.dialect.body)(talk);
        if let Some(effort) = self.effort {
            (self.dialect.effort)(&mut body, effort, talk.model);
        }
        let batched = talk.batch.map(|queue| {
            // Batches cannot stream.
            openai::unstream(&mut body);
            let nonce = talk.prompt.nonce.as_str();
            (queue, self.digest(talk.model, &body, nonce))
        });
        let size = body.to_string().len();
        let longest = self.context.map_or(self.longest, |context| {
            room_for_answer(context, size).min(self.longest)
        });
        let grant = quota.reserve(size, longest, limits).await?;
        let tokens = grant.output().map_or(longest, |tokens| tokens.min(longest));
        (self.dialect.bound)(&mut body, tokens, self.is_own());
        let answer = match batched {
            Some((queue, digest)) => {
                let request = BatchBody {
                    backend: self.name.clone(),
                    digest,
                    body: body.to_string(),
                };
                spent.requests += 1;
                queue.ask(request, limits).await?
            }
            None => {
                let answer = self.post_streamed(talk, body, quota, limits, spent);
                answer.await?
            }
        };
        let said = (self.dialect.read)(&answer);
        let said = said.map_err(|failure| Failure {
            message: self.shown(&failure.message),
            ..failure
        });
        grant.settle(&said.as_ref().map(|s| s.usage).unwrap_or_default());
        let mut said = said?;
        // This text also comes from the server.
        said.stopped = said
            .stopped
            .map(|(cause, words)| (cause, self.shown(&words)));
        said.model = said.model.map(|model| self.shown(&model));
        Ok(said)
    }

    /// Sends the body of a request. If the server does not support streaming, sends it once more
    /// without.
    async fn post_streamed(
        &self,
        talk: &Talk<'_>,
        mut body: Value,
        quota: &Quota<'_>,
        limits: &Limits<'_>,
        spent: &mut Spent,
    ) -> Result<Value, http::Failure> {
        let is_streamed =
            !self.is_unstreamed.load(Ordering::Relaxed) || !(self.dialect.unstream)(&mut body);
        let mut answer = self
            .post(talk, &body, http::Try::First, quota, limits, spent)
            .await;
        if is_streamed && refuses_stream(&answer) && (self.dialect.unstream)(&mut body) {
            self.is_unstreamed.store(true, Ordering::Relaxed);
            answer = self
                .post(talk, &body, http::Try::Retry, quota, limits, spent)
                .await;
        }
        answer
    }

    /// Sends the body of a request. `first` is the kind that its first attempt counts as.
    async fn post(
        &self,
        talk: &Talk<'_>,
        body: &Value,
        first: http::Try,
        quota: &Quota<'_>,
        limits: &Limits<'_>,
        spent: &mut Spent,
    ) -> Result<Value, http::Failure> {
        let path = (self.dialect.path)(talk.model);
        let path: Vec<_> = path.iter().map(String::as_str).collect();
        let body = body.to_string();
        let request = Request {
            method: Method::POST,
            url: self.url(&path, self.dialect.query),
            body: Some(body.as_bytes()),
            content_type: None,
            repeat: Repeat::Harmless,
        };
        let mut tries = 0;
        let mut admit = |attempt: http::Try| {
            tries += 1;
            let attempt = if attempt == http::Try::First {
                first
            } else {
                attempt
            };
            // The grant covers the first attempt. An attempt that the server turned away was not
            // processed and costs nothing.
            let admitted = if attempt == http::Try::Retry {
                quota.take_retry()
            } else {
                Ok(())
            };
            admitted.map_err(|limit| http::Failure::new(http::Cause::Limit, limit.message))
        };
        let exchange = Exchange {
            http: self,
            begun: talk.begun,
        };
        let answer = self
            .server
            .send(&request, &exchange, limits, &mut admit)
            .await;
        // An attempt that was not admitted was not sent.
        let refused = matches!(&answer, Err(failure) if failure.cause == http::Cause::Limit);
        spent.requests += tries - u64::from(refused);
        answer
    }

    /// Reads a streamed answer to its end.
    async fn stream(&self, mut reply: Reply<'_>, begun: Option<&Begun>) -> Result<Value, Trouble> {
        let mut events = Events::default();
        let mut answer = Value::Null;
        let mut read = 0;
        while let Some(chunk) = reply.chunk(self.dialect.idle).await? {
            read += chunk.len();
            if read > MAX_BODY {
                return Err(Trouble::malformed(format!(
                    "the answer has more than {} MiB",
                    MAX_BODY >> 20
                )));
            }
            if let Some(begun) = begun {
                begun.set();
            }
            let mut end = Ok(false);
            events.push(&chunk, |data| {
                if matches!(end, Ok(false)) {
                    end = self.event(&mut answer, data);
                }
            });
            if end? {
                reply.finish().await;
                return Ok(answer);
            }
        }
        // Some servers do not mark the end of a stream.
        if (self.dialect.is_whole)(&answer) {
            return Ok(answer);
        }
        Err(Trouble::passing(http::Failure::new(
            http::Cause::Unreachable,
            "the answer broke off",
        )))
    }

    /// Merges an event into an answer. Returns true if it is the last event.
    fn event(&self, answer: &mut Value, data: &[u8]) -> Result<bool, Trouble> {
        let Some(event) = http::json(data) else {
            // The last event of OpenAI and compatible servers.
            if data == b"[DONE]" {
                return Ok(true);
            }
            let said = self.shown(&String::from_utf8_lossy(data));
            return Err(Trouble::malformed(format!(
                "an event of the answer is not JSON: {said}"
            )));
        };
        if !event["error"].is_null() {
            return Err(self.complained(&event, None));
        }
        (self.dialect.stream)(answer, &event);
        match &answer["error"] {
            Value::Null => Ok((self.dialect.is_over)(answer)),
            _ => Err(self.complained(answer, None)),
        }
    }

    /// Merges a list of events into an answer. Returns the first error instead, if there is one.
    fn folded(&self, events: &[Value]) -> Value {
        let mut answer = Value::Null;
        for event in events {
            if !event["error"].is_null() {
                return event.clone();
            }
            (self.dialect.stream)(&mut answer, event);
        }
        answer
    }

    /// Interprets an error in a body. `status` is the one that came with it, unless it is a success.
    fn complained(&self, body: &Value, status: Option<StatusCode>) -> Trouble {
        let complaint = (self.dialect.complaint)(body);
        let said = if complaint.message.is_empty() {
            body["error"].to_string()
        } else {
            complaint.message.clone()
        };
        let named = complaint.status.and_then(|s| StatusCode::from_u16(s).ok());
        let status = status.or(named);
        let status = status
            .filter(|s| s.as_u16() >= 400)
            .unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        self.judged(status, None, &complaint, &said)
    }

    fn judged(
        &self,
        status: StatusCode,
        after: Option<Duration>,
        complaint: &Complaint,
        said: &str,
    ) -> Trouble {
        let code = status.as_u16();
        let after = after.max(complaint.retry_after);
        let cause = match code {
            _ if complaint.too_large => http::Cause::TooLarge,
            413 => http::Cause::TooLarge,
            404 => http::Cause::Setup,
            408 | 409 | 500.. => http::Cause::Unreachable,
            _ => http::Cause::Refused,
        };
        let mut message = http::named(status);
        if let Some(after) = after {
            message.push_str(&format!("; retry after {} s", http::ceil(after)));
        }
        let said = [complaint.kind.as_str(), said]
            .into_iter()
            .filter(|s| !s.trim().is_empty())
            .collect::<Vec<_>>();
        if !said.is_empty() {
            message.push_str(": ");
            message.push_str(&self.shown(&said.join(": ")));
        }
        let mut failure = http::Failure::new(cause, message);
        failure.retry_after = after;
        failure.status = Some(code);
        failure.hint = match code {
            401 | 403 => Some(format!("check the key in {}", self.key_name)),
            402 | 429 if complaint.spent => {
                Some("check the account's credit and limits".to_owned())
            }
            404 => Some(format!(
                "check model and base_url in [backend.{}]; `claude-reviewer doctor` lists the models",
                self.name
            )),
            _ => None,
        };
        let passing =
            http::retry::is_passing(code, after) && !complaint.spent && !complaint.too_large;
        Trouble {
            failure,
            passing,
            floor: after.filter(|_| passing),
            maybe_done: true,
        }
    }

    /// Prepares text from a server for display: without keys, on one line, escaped, truncated.
    fn shown(&self, text: &str) -> String {
        self.server.shown(text)
    }
}

/// Returns the header for the key, and the prefix of its value.
///
/// Azure accepts its own keys in `api-key`, and tokens from a command in the usual header
/// (<https://learn.microsoft.com/azure/ai-services/openai/reference>).
fn carries(
    policy: &policy::Backend,
    dialect: &Dialect,
    address: &BackendAddress,
) -> (&'static str, &'static str) {
    let is_azure = address
        .url()
        .host_str()
        .is_some_and(|host| host.ends_with(".azure.com"));
    match policy.key_header {
        Some(header) => (
            header.name(),
            if header == KeyHeader::Authorization {
                "Bearer "
            } else {
                ""
            },
        ),
        None if is_azure && policy.api_key_command.is_none() => (KeyHeader::ApiKey.name(), ""),
        None => dialect.key,
    }
}

/// Returns true if a server rejected a request because of a streaming field. Not every compatible
/// server supports `stream_options`.
fn refuses_stream(answer: &Result<Value, http::Failure>) -> bool {
    let Err(failure) = answer else { return false };
    let mut words = failure
        .message
        .split(|c: char| !c.is_alphanumeric() && c != '_');
    let names_it = words.any(|word| ["stream", "stream_options", "streaming"].contains(&word));
    matches!(failure.status, Some(400 | 422)) && names_it
}

/// Returns the maximum number of tokens of an answer. Higher effort needs more, because providers
/// count thinking tokens.
fn longest(effort: Option<Effort>) -> u64 {
    match effort {
        None | Some(Effort::Low) => LONGEST,
        Some(Effort::Medium) => 2 * LONGEST,
        Some(Effort::High) => 4 * LONGEST,
    }
}

/// Returns the token limit for prompt and answer together, if the server may reject a request that
/// exceeds it: the configured limit, or the default for servers that are compatible with OpenAI's.
fn context(policy: &policy::Backend, address: &BackendAddress) -> Option<u64> {
    let is_compatible = !address.is_own() && policy.kind == Some(BackendKind::OpenAi);
    policy
        .context_tokens
        .or_else(|| is_compatible.then(|| address.context_tokens()))
        .map(u64::from)
}

impl Protocol for Exchange<'_> {
    type Answer = Value;

    async fn read(&self, reply: Reply<'_>) -> Result<Value, Trouble> {
        if reply.is_type("text/event-stream") {
            return self.http.stream(reply, self.begun).await;
        }
        if let Some(begun) = self.begun {
            begun.set();
        }
        let bytes = reply.body(MAX_BODY).await?;
        let Some(value) = http::json(&bytes) else {
            let said = self.http.shown(&String::from_utf8_lossy(&bytes));
            return Err(Trouble::malformed(format!(
                "the answer is not JSON: {said}"
            )));
        };
        // Google sends the events of a stream as one list if server-sent events are not requested.
        let value = match value {
            Value::Array(events) => self.http.folded(&events),
            value => value,
        };
        match &value["error"] {
            Value::Null => Ok(value),
            _ => Err(self.http.complained(&value, None)),
        }
    }

    fn refused(&self, refusal: &Refusal) -> Trouble {
        let insists = refusal
            .headers
            .get("x-should-retry")
            .is_some_and(|v| v == "false");
        let (complaint, said) = match http::json(&refusal.body) {
            Some(value) if value.is_object() || value.is_array() => {
                let complaint = (self.http.dialect.complaint)(&value);
                let said = if complaint.message.is_empty() {
                    value.to_string()
                } else {
                    complaint.message.clone()
                };
                (complaint, said)
            }
            _ => (
                Complaint::default(),
                String::from_utf8_lossy(&refusal.body).into_owned(),
            ),
        };
        let mut trouble = self
            .http
            .judged(refusal.status, refusal.after, &complaint, &said);
        trouble.passing &= !insists;
        trouble
    }
}
