//! Requests over HTTP: one pool of connections, deadlines, bounds, and what is tried again.
//!
//! A request ends in a JSON document or in a [`Failure`]. Nothing else of an answer goes on: not its headers, and
//! of an error no more than a little text, without keys, escaped.

use super::key;
use super::proxy::Proxies;
use super::retry;
use super::sse::Events;
use super::talk::{self, Complaint, Dialect, Said, Talk};
use super::url::{Address, bytes_of};
use crate::ai::ask::{Answer, Ask, Cause, Failure, Spent};
use crate::ai::tree::Tree;
use crate::env::Env;
use crate::policy;
use crate::stop::Stop;
use crate::untrusted::Inert;
use reqwest::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use reqwest::{Client, Response, StatusCode, Url};
use serde_json::Value;
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant, SystemTime};
use tokio::sync::OnceCell;
use tokio::time::{sleep_until, timeout, timeout_at};

/// To the end of the handshakes.
const CONNECT: Duration = Duration::from_secs(10);
/// Between two looks whether a connection still lives.
const ALIVE: Duration = Duration::from_secs(30);
/// Between two pieces of a body.
const IDLE: Duration = Duration::from_secs(60);
/// For the end of a stream behind its last event.
const TRAILER: Duration = Duration::from_millis(100);
/// For the list of models.
const LIST_TIME: Duration = Duration::from_secs(20);
/// Bytes of a body, unpacked.
const MAX_BODY: usize = 16 << 20;
/// Bytes of an error's body that are read.
const MAX_ERROR: usize = 64 << 10;
/// Characters of what a server says that are shown.
const MAX_SHOWN: usize = 200;
/// Models that a failure names.
const MAX_NAMED: usize = 8;

/// The connections of a run, shared by its backends. Opens none before the first request.
#[derive(Clone, Debug, Default)]
pub struct Pool(Arc<Clients>);

#[derive(Debug, Default)]
struct Clients {
    /// Asks this machine, in the clear: knows no roots of trust, which take milliseconds to load, and no proxies.
    plain: OnceLock<Client>,
    secure: OnceLock<Client>,
}

/// A backend that is asked over HTTP.
#[derive(Debug)]
pub(super) struct Http {
    dialect: &'static Dialect,
    address: Address,
    key: key::Source,
    /// The variable to set where the server asks for a key.
    key_name: String,
    name: String,
    model: OnceCell<String>,
    capacity: usize,
    max_retries: u32,
    proxies: Proxies,
    pool: Pool,
    /// Until then the server does not want to be asked.
    quiet: Mutex<Option<Instant>>,
}

/// When a question ends.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits<'a> {
    started: Instant,
    deadline: Instant,
    stop: &'a Stop,
}

/// A try that failed.
struct Trouble {
    failure: Failure,
    /// It can be tried again.
    passing: bool,
    /// Not before.
    floor: Option<Duration>,
}

/// What one request is made of.
struct Request<'a> {
    url: Url,
    /// `None`: it asks for something that is there (GET).
    body: Option<&'a [u8]>,
}

impl Limits<'_> {
    pub(super) fn new(deadline: Instant, stop: &Stop) -> Limits<'_> {
        Limits { started: Instant::now(), deadline, stop }
    }

    /// Waits for something until the run is stopped or the deadline passes.
    async fn hold<T>(&self, what: impl Future<Output = T>) -> Result<T, Failure> {
        tokio::select! {
            biased;
            _ = self.stop.wait() => Err(stopped()),
            done = timeout_at(self.deadline.into(), what) => done.map_err(|_| self.late()),
        }
    }

    /// Fails if the run was stopped or the deadline has passed.
    pub(super) fn check(&self) -> Result<(), Failure> {
        match self.stop.signal() {
            Some(_) => Err(stopped()),
            None if Instant::now() >= self.deadline => Err(self.late()),
            None => Ok(()),
        }
    }

    fn left(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }

    fn late(&self) -> Failure {
        let waited = self.started.elapsed().as_secs_f64();
        Failure::new(Cause::TimedOut, format!("no answer within {waited:.0} s"))
    }
}

fn stopped() -> Failure {
    Failure::new(Cause::Stopped, "the run was ended")
}

impl Pool {
    /// Returns the client for an address; makes it when the first request needs it.
    fn client(&self, secure: bool, proxies: &Proxies) -> Result<&Client, Failure> {
        let cell = if secure { &self.0.secure } else { &self.0.plain };
        if let Some(client) = cell.get() {
            return Ok(client);
        }
        let client = build(secure, proxies).map_err(|e| {
            let failure = Failure::new(Cause::Setup, format!("TLS cannot be set up: {}", chain(&e)));
            failure.hint("install the system's CA certificates, or set SSL_CERT_FILE")
        })?;
        Ok(cell.get_or_init(|| client))
    }
}

fn build(secure: bool, proxies: &Proxies) -> Result<Client, reqwest::Error> {
    let base = Client::builder()
        .user_agent(concat!("claude-reviewer/", env!("CARGO_PKG_VERSION")))
        .redirect(reqwest::redirect::Policy::none())
        .retry(reqwest::retry::never())
        .referer(false)
        .connect_timeout(CONNECT)
        // A connection that is gone is noticed while an answer is waited for, which can take minutes.
        .http2_keep_alive_interval(ALIVE)
        .http2_keep_alive_timeout(CONNECT)
        .no_proxy();
    // An error only says that a provider is there already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    if secure {
        let proxied = proxies.for_client()?.into_iter().fold(base.https_only(true), reqwest::ClientBuilder::proxy);
        return proxied.build();
    }
    let nobody = rustls::RootCertStore::empty();
    let config = rustls::ClientConfig::builder().with_root_certificates(nobody).with_no_client_auth();
    base.tls_backend_preconfigured(config).build()
}

impl Http {
    /// Makes a backend of a dialect. Opens no connection.
    pub(super) fn open(
        policy: &policy::Backend,
        dialect: &'static Dialect,
        env: &Env,
        top: Option<&Path>,
        pool: &Pool,
    ) -> Result<Self, Failure> {
        let address = Address::of(policy.base_url.as_deref(), dialect)?;
        let key = key::Source::of(policy, address.is_own(), env, top)?;
        let usual = policy.kind.and_then(policy::BackendKind::key_variable).unwrap_or_default();
        Ok(Self {
            dialect,
            key,
            key_name: policy.api_key_env.clone().unwrap_or_else(|| usual.to_owned()),
            name: policy.name.clone(),
            model: OnceCell::new_with(policy.model.clone()),
            capacity: policy.context_tokens.map_or_else(|| address.capacity(dialect), bytes_of),
            max_retries: policy.max_retries,
            proxies: if address.is_secure() { Proxies::of(env)? } else { Proxies::default() },
            address,
            pool: pool.clone(),
            quiet: Mutex::new(None),
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

    /// Tells whether the provider itself is asked, not a server that is compatible.
    pub(super) fn is_own(&self) -> bool {
        self.address.is_own()
    }

    pub(super) fn schema_beside_tools(&self) -> bool {
        self.dialect.schema_beside_tools && self.is_own()
    }

    /// Tells whether the server may read less than it is sent.
    pub(super) fn may_drop(&self) -> bool {
        self.dialect.drops && !self.is_own()
    }

    pub(super) async fn ask(&self, ask: &Ask<'_>, around: Option<&Tree<'_>>) -> Result<Answer, Failure> {
        talk::hold(self, ask, around).await
    }

    /// Finds out the key and the model.
    pub(super) async fn ready(&self, deadline: Instant, stop: &Stop) -> Result<&str, Failure> {
        self.key.get(deadline, stop).await?;
        let limits = Limits::new(deadline, stop);
        self.model.get_or_try_init(|| self.choose(&limits)).await.map(String::as_str)
    }

    /// Chooses the model where none is configured: the newest of a list that is ordered, or the only one.
    async fn choose(&self, limits: &Limits<'_>) -> Result<String, Failure> {
        let mut offered = self.list(limits).await?;
        let key = format!("model in [backend.{}]", self.name);
        if offered.is_empty() {
            let failure = Failure::new(Cause::Setup, "no model is configured, and the server lists none");
            return Err(failure.hint(format!("set {key}")));
        }
        if self.dialect.newest_first || offered.len() == 1 {
            return Ok(offered.swap_remove(0));
        }
        let shown: Vec<_> = offered.iter().take(MAX_NAMED).map(|m| self.shown(m)).collect();
        let more = if offered.len() > MAX_NAMED { ", …" } else { "" };
        let message = format!("no model is configured; the server offers {}{more}", shown.join(", "));
        Err(Failure::new(Cause::Setup, message).hint(format!("set {key}")))
    }

    pub(super) async fn models(&self) -> Result<Vec<String>, Failure> {
        let stop = Stop::default();
        let limits = Limits::new(Instant::now() + LIST_TIME, &stop);
        self.key.get(limits.deadline, &stop).await?;
        self.list(&limits).await
    }

    async fn list(&self, limits: &Limits<'_>) -> Result<Vec<String>, Failure> {
        let mut url = self.address.join(&["models"]);
        url.set_query(Some(self.dialect.models_query).filter(|q| !q.is_empty()));
        let list = self.fetch(&Request { url, body: None }, limits, &mut Spent::default()).await?;
        Ok((self.dialect.models)(&list))
    }

    /// Sends one question of a conversation.
    pub(super) async fn say(&self, talk: &Talk<'_>, limits: &Limits<'_>, spent: &mut Spent) -> Result<Said, Failure> {
        let path = (self.dialect.path)(talk.model);
        let path: Vec<_> = path.iter().map(String::as_str).collect();
        let body = (self.dialect.body)(talk).to_string();
        let request = Request { url: self.address.join(&path), body: Some(body.as_bytes()) };
        let answer = self.fetch(&request, limits, spent).await?;
        let clean = |mut failure: Failure| {
            failure.message = self.shown(&failure.message);
            failure
        };
        let mut said = (self.dialect.read)(&answer).map_err(clean)?;
        // A server chooses these words too.
        said.stopped = said.stopped.map(|(cause, words)| (cause, self.shown(&words)));
        said.model = said.model.map(|model| self.shown(&model));
        Ok(said)
    }

    /// Sends a request as often as it makes sense, and returns the JSON document that comes back.
    async fn fetch(&self, request: &Request<'_>, limits: &Limits<'_>, spent: &mut Spent) -> Result<Value, Failure> {
        let mut tries = 0;
        loop {
            self.wait(limits).await?;
            limits.check()?;
            tries += 1;
            spent.requests += 1;
            let trouble = match limits.hold(self.attempt(request)).await? {
                Ok(value) => return Ok(value),
                Err(trouble) => trouble,
            };
            if let Some(floor) = trouble.floor {
                self.be_quiet(floor);
            }
            if !trouble.passing || tries > self.max_retries {
                return Err(trouble.failure);
            }
            let pause = retry::pause(tries, trouble.floor, fastrand::f64());
            // Of the pause only the floor counts here: jitter must not cost a try that there is time for.
            if trouble.floor.unwrap_or(pause) >= limits.left() {
                return Err(trouble.failure);
            }
            limits.hold(tokio::time::sleep(pause)).await.map_err(|late| match late.cause {
                Cause::TimedOut => trouble.failure,
                _ => late,
            })?;
        }
    }

    /// Waits while the server wants to be left alone: what it told one request holds for all.
    async fn wait(&self, limits: &Limits<'_>) -> Result<(), Failure> {
        let quiet =
            || self.quiet.lock().unwrap_or_else(PoisonError::into_inner).filter(|until| *until > Instant::now());
        while let Some(until) = quiet() {
            if until >= limits.deadline {
                let wait = until.saturating_duration_since(Instant::now());
                let message = format!("the server turned another request away; retry after {} s", ceil(wait));
                let mut failure = Failure::new(Cause::Refused, message);
                failure.retry_after = Some(wait);
                return Err(failure);
            }
            limits.hold(sleep_until(until.into())).await?;
        }
        Ok(())
    }

    fn be_quiet(&self, floor: Duration) {
        let mut quiet = self.quiet.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(until) = Instant::now().checked_add(floor) {
            *quiet = (*quiet).max(Some(until));
        }
    }

    /// Sends a request once.
    async fn attempt(&self, request: &Request<'_>) -> Result<Value, Trouble> {
        let client = self.pool.client(self.address.is_secure(), &self.proxies).map_err(Trouble::last)?;
        let mut builder = match request.body {
            Some(body) => client.post(request.url.clone()).header(CONTENT_TYPE, "application/json").body(body.to_vec()),
            None => client.get(request.url.clone()),
        };
        for (name, value) in self.dialect.headers {
            builder = builder.header(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        let (name, prefix) = self.dialect.key;
        if let Some(value) = self.key.known().and_then(|key| key.header(prefix)) {
            builder = builder.header(HeaderName::from_static(name), value);
        }
        let response = builder.send().await.map_err(|e| self.broken(&e, "cannot be reached"))?;
        let status = response.status();
        if !status.is_success() {
            return Err(self.refused(status, response).await);
        }
        if is_type(&response, "text/event-stream") {
            return self.stream(response).await;
        }
        let bytes = self.body(response, MAX_BODY).await?;
        let Some(value) = json(&bytes) else {
            let said = self.shown(&String::from_utf8_lossy(&bytes));
            return Err(Trouble::malformed(format!("the answer is not JSON: {said}")));
        };
        match &value["error"] {
            Value::Null => Ok(value),
            _ => Err(self.complained(&value)),
        }
    }

    /// Reads a body to its end.
    async fn body(&self, mut response: Response, most: usize) -> Result<Vec<u8>, Trouble> {
        let mut bytes = Vec::new();
        while let Some(chunk) = self.chunk(&mut response).await? {
            if bytes.len() + chunk.len() > most {
                return Err(Trouble::malformed(format!("the answer has more than {} MiB", most >> 20)));
            }
            bytes.extend_from_slice(&chunk);
        }
        Ok(bytes)
    }

    /// Reads the next piece of a body; a server that says nothing for too long has broken off.
    async fn chunk(&self, response: &mut Response) -> Result<Option<Vec<u8>>, Trouble> {
        match timeout(IDLE, response.chunk()).await {
            Ok(Ok(chunk)) => Ok(chunk.map(Into::into)),
            Ok(Err(e)) => Err(self.broken(&e, "broke off")),
            Err(_) => {
                let message = format!("it said nothing for {} s", IDLE.as_secs());
                Err(Trouble::passing(Failure::new(Cause::Unreachable, message)))
            }
        }
    }

    /// Reads a streamed answer to its end.
    async fn stream(&self, mut response: Response) -> Result<Value, Trouble> {
        let mut events = Events::default();
        let mut answer = Value::Null;
        let mut read = 0;
        while let Some(chunk) = self.chunk(&mut response).await? {
            read += chunk.len();
            if read > MAX_BODY {
                return Err(Trouble::malformed(format!("the answer has more than {} MiB", MAX_BODY >> 20)));
            }
            let mut trouble = None;
            events.push(&chunk, |data| match json(data) {
                _ if trouble.is_some() => {}
                Some(event) if !event["error"].is_null() => trouble = Some(self.complained(&event)),
                Some(event) => (self.dialect.stream)(&mut answer, &event),
                // Some servers end a stream with this word.
                None if data == b"[DONE]" => {}
                None => {
                    let said = self.shown(&String::from_utf8_lossy(data));
                    trouble = Some(Trouble::malformed(format!("an event of the answer is not JSON: {said}")));
                }
            });
            if let Some(trouble) = trouble {
                return Err(trouble);
            }
            if (self.dialect.is_whole)(&answer) {
                // Only a connection whose answer was read to its end can be used again.
                let _ = timeout(TRAILER, response.chunk()).await;
                return Ok(answer);
            }
        }
        Err(Trouble::passing(Failure::new(Cause::Unreachable, "the answer broke off")))
    }

    /// Says why a request did not come through.
    fn broken(&self, error: &reqwest::Error, what: &str) -> Trouble {
        let why = chain(error);
        if why.contains("proxy authorization required") {
            let failure = Failure::new(Cause::Refused, "the proxy asks for credentials (407)");
            let hint = format!("put them into {}: http://USER:PASSWORD@HOST:PORT", self.proxies.variable());
            return Trouble::last(failure.hint(hint));
        }
        if let Some(tls) = tls_error(error) {
            let message = format!("the secure connection failed: {}", self.shown(&tls.to_string()));
            return Trouble::last(Failure::new(Cause::Unreachable, message));
        }
        let shown = self.shown(&why);
        let message = if error.is_timeout() && error.is_connect() {
            format!("{} {what}: no connection within {} s", self.address, CONNECT.as_secs())
        } else {
            format!("{} {what}: {shown}", self.address)
        };
        let failure = Failure::new(Cause::Unreachable, message);
        if error.is_connect() || error.is_request() || error.is_body() || error.is_decode() || error.is_timeout() {
            Trouble::passing(failure)
        } else {
            Trouble::last(failure)
        }
    }

    /// Says what an answer means that is no good one.
    async fn refused(&self, status: StatusCode, response: Response) -> Trouble {
        if status.is_redirection() || status.is_informational() {
            let message = format!("{} points to another address, which is not followed", named(status));
            return Trouble::last(Failure::new(Cause::Refused, message).hint("put the right address into base_url"));
        }
        let after = retry::retry_after(response.headers(), SystemTime::now());
        let insists = response.headers().get("x-should-retry").is_some_and(|v| v == "false");
        let bytes = self.start_of(response).await;
        let (complaint, said) = match json(&bytes) {
            Some(value) if value.is_object() || value.is_array() => {
                let complaint = (self.dialect.complaint)(&value);
                let said = if complaint.message.is_empty() { value.to_string() } else { complaint.message.clone() };
                (complaint, said)
            }
            _ => (Complaint::default(), String::from_utf8_lossy(&bytes).into_owned()),
        };
        let mut trouble = self.judged(status, after, &complaint, &said);
        trouble.passing &= !insists;
        trouble
    }

    /// Reads as much of an error as is worth it; that it breaks off changes nothing.
    async fn start_of(&self, mut response: Response) -> Vec<u8> {
        let mut bytes = Vec::new();
        while bytes.len() < MAX_ERROR
            && let Ok(Ok(Some(chunk))) = timeout(CONNECT, response.chunk()).await
        {
            bytes.extend_from_slice(&chunk[..chunk.len().min(MAX_ERROR - bytes.len())]);
        }
        bytes
    }

    /// Says what an error means that came inside of an answer with a good status.
    fn complained(&self, body: &Value) -> Trouble {
        let complaint = (self.dialect.complaint)(body);
        let said = if complaint.message.is_empty() { body["error"].to_string() } else { complaint.message.clone() };
        let status = complaint.status.and_then(|s| StatusCode::from_u16(s).ok());
        let status = status.filter(|s| s.as_u16() >= 400).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        self.judged(status, None, &complaint, &said)
    }

    fn judged(&self, status: StatusCode, after: Option<Duration>, complaint: &Complaint, said: &str) -> Trouble {
        let code = status.as_u16();
        let after = after.max(complaint.retry_after);
        let cause = match code {
            _ if complaint.too_large => Cause::TooLarge,
            413 => Cause::TooLarge,
            404 => Cause::Setup,
            408 | 409 | 500.. => Cause::Unreachable,
            _ => Cause::Refused,
        };
        let mut message = named(status);
        if let Some(after) = after {
            message.push_str(&format!("; retry after {} s", ceil(after)));
        }
        let said = [complaint.kind.as_str(), said].into_iter().filter(|s| !s.trim().is_empty()).collect::<Vec<_>>();
        if !said.is_empty() {
            message.push_str(": ");
            message.push_str(&self.shown(&said.join(": ")));
        }
        let mut failure = Failure::new(cause, message);
        failure.retry_after = after;
        failure.hint = match code {
            401 | 403 => Some(format!("check the key in {}", self.key_name)),
            402 | 429 if complaint.spent => Some("check the account's credit and limits".to_owned()),
            404 => Some(format!(
                "check model and base_url in [backend.{}]; `claude-reviewer doctor` lists what there is",
                self.name
            )),
            _ => None,
        };
        let passing = retry::is_passing(code, after) && !complaint.spent && !complaint.too_large;
        Trouble { failure, passing, floor: after.filter(|_| passing) }
    }

    /// Makes text of a server fit for people: without keys, on one line, escaped, short.
    fn shown(&self, text: &str) -> String {
        let masked = self.proxies.mask(self.key.mask(text.trim().to_owned()));
        let inert = Inert::new(masked);
        match inert.as_str().char_indices().nth(MAX_SHOWN) {
            Some((end, _)) => format!("{}…", &inert.as_str()[..end]),
            None => inert.as_str().to_owned(),
        }
    }
}

impl Trouble {
    fn last(failure: Failure) -> Self {
        Self { failure, passing: false, floor: None }
    }

    fn passing(failure: Failure) -> Self {
        Self { failure, passing: true, floor: None }
    }

    fn malformed(message: String) -> Self {
        Self::last(Failure::new(Cause::Malformed, message))
    }
}

/// Reads a document; a byte order mark in front of it does no harm.
fn json(bytes: &[u8]) -> Option<Value> {
    serde_json::from_slice(bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes)).ok()
}

fn is_type(response: &Response, kind: &str) -> bool {
    let value = response.headers().get(CONTENT_TYPE).and_then(|v| v.to_str().ok());
    value.is_some_and(|v| v.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case(kind))
}

/// Names a status: `429 Too Many Requests`.
fn named(status: StatusCode) -> String {
    let reason = match status.as_u16() {
        529 => "Overloaded",
        _ => status.canonical_reason().unwrap_or("an unknown status"),
    };
    format!("{} {reason}", status.as_u16())
}

fn ceil(time: Duration) -> u64 {
    time.as_secs() + u64::from(time.subsec_nanos() > 0)
}

/// Joins an error and what caused it, without the address: it stands elsewhere.
fn chain(error: &reqwest::Error) -> String {
    let mut parts: Vec<String> = Vec::new();
    let mut next = std::error::Error::source(error);
    while let Some(e) = next {
        let text = e.to_string();
        if parts.last() != Some(&text) {
            parts.push(text);
        }
        next = e.source();
    }
    if parts.is_empty() { "the connection failed".to_owned() } else { parts.join(": ") }
}

/// Finds what TLS said is wrong: trying again does not help then. An error of input and output hides what it holds
/// from `source`, and there can be one inside of another.
fn tls_error<'e>(error: &'e (dyn std::error::Error + 'static)) -> Option<&'e rustls::Error> {
    if let Some(tls) = error.downcast_ref::<rustls::Error>() {
        return Some(tls);
    }
    let held = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
    held.and_then(|e| tls_error(e)).or_else(|| error.source().and_then(tls_error))
}
