//! HTTP requests: a connection pool, deadlines, limits, proxies, and retries.
//!
//! The only module that opens connections: backends and forges send requests through a [`Server`],
//! and interpret answers with a [`Protocol`]. Redirects are not followed. Text of a server reaches
//! users only through [`Server::shown`]: without keys, escaped, and short.

pub mod key;
mod pace;
mod proxy;
mod reply;
pub mod resp;
pub mod retry;
#[cfg(feature = "object-stores")]
pub mod transfer;

pub use proxy::Proxies;
pub use reply::{IDLE, Refusal, Reply};
pub use reqwest::header::HeaderMap;
pub use reqwest::{Method, StatusCode, Url};

use self::pace::Pace;
use crate::log::millis;
use crate::stop::Stop;
use crate::text::shortened;
use crate::untrusted::Inert;
use reqwest::Client;
use reqwest::header::{CONTENT_TYPE, HeaderName, HeaderValue, LOCATION};
use serde_json::Value;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};
use tokio::time::{sleep_until, timeout_at};

/// Time limit for connecting, including the handshakes.
const CONNECT: Duration = Duration::from_secs(10);
/// Interval of keep-alive checks.
const ALIVE: Duration = Duration::from_secs(30);
/// Tries after which the pause in addition to the server's own doubles.
const PATIENT_TRIES: u32 = 4;
/// Type of a body without another one.
const JSON: &str = "application/json";
/// Characters of a server's text that are shown, at most.
const MAX_SHOWN: usize = 200;

/// The connections of a run, shared by all clients. Opens none before the first request.
#[derive(Clone, Debug, Default)]
pub struct Pool(Arc<Clients>);

#[derive(Debug, Default)]
struct Clients {
    /// Client for unencrypted connections to this machine: it loads no root certificates, which
    /// take milliseconds, and uses no proxies.
    plain: OnceLock<Client>,
    secure: OnceLock<Client>,
}

/// The reason why a request failed. Its text is for people: one line, no key, and at most a short
/// part of the answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    pub cause: Cause,
    /// A lowercase fragment without the server's name: `429 Too Many Requests; retry after 3600 s`.
    pub message: String,
    /// How to fix the problem, if the user can.
    pub hint: Option<String>,
    /// When the server allows the next request.
    pub retry_after: Option<Duration>,
    /// The status of the answer, if it reports an error.
    pub status: Option<u16>,
}

/// The kinds of failures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The server cannot be asked: no key, no address, or an unknown path.
    Setup,
    /// The server cannot be reached, or the connection was lost.
    Unreachable,
    /// The server rejected the request: an invalid key, no credit, a rate limit.
    Refused,
    /// The request is too large for the server.
    TooLarge,
    /// The response is malformed.
    Malformed,
    /// The deadline passed.
    TimedOut,
    /// The run was stopped.
    Stopped,
    /// The caller must not send further requests.
    Limit,
}

/// A failed attempt.
#[derive(Debug)]
pub struct Trouble {
    pub failure: Failure,
    /// A retry can succeed.
    pub passing: bool,
    /// Time to wait before the next attempt, at least.
    pub floor: Option<Duration>,
    /// The server may have processed the request without answering.
    pub maybe_done: bool,
}

/// The time limit and the stop signal of a question.
#[derive(Clone, Copy, Debug)]
pub struct Limits<'a> {
    started: Instant,
    deadline: Instant,
    /// Latest time to wait for, if a server asks for a pause.
    patience: Instant,
    stop: &'a Stop,
}

/// One request.
#[derive(Clone, Debug)]
pub struct Request<'a> {
    pub method: Method,
    pub url: Url,
    pub body: Option<&'a [u8]>,
    /// Type of the body. `None` for JSON.
    pub content_type: Option<&'a str>,
    pub repeat: Repeat,
}

impl Request<'_> {
    /// Logs the result of an attempt. The address has no query and no user name, and no header is
    /// logged.
    fn log(&self, attempt: u32, sent: Instant, trouble: Option<&Trouble>) {
        let ms = millis(sent, Instant::now());
        let host = Inert::new(self.url.host_str().unwrap_or_default());
        let path = Inert::new(self.url.path());
        let bytes = self.body.map_or(0, <[u8]>::len);
        match trouble {
            None => {
                tracing::debug!(method = %self.method, %host, %path, bytes, attempt, ms, "answered");
            }
            Some(trouble) => {
                let cause = trouble.failure.cause;
                tracing::debug!(method = %self.method, %host, %path, bytes, attempt, ms, ?cause, "request failed");
            }
        }
    }
}

/// Whether a request that the server may have processed may be sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repeat {
    /// Sending the request twice has the same effect as once.
    Harmless,
    /// The request creates something: send it again only if the server certainly did not process
    /// it.
    Makes,
}

/// A server that requests are sent to.
#[derive(Debug)]
pub struct Server {
    /// The part of its address that may be shown.
    name: String,
    secure: bool,
    /// The setting with the address: `base_url`.
    setting: &'static str,
    /// The header for the key, and the prefix of its value.
    carries: (&'static str, &'static str),
    /// The key may consist of a name and a password.
    takes_pairs: bool,
    headers: &'static [(&'static str, &'static str)],
    /// Headers that the server issued, such as a session ID.
    granted: Mutex<HeaderMap>,
    key: key::KeySource,
    max_retries: u32,
    retry_delay: Duration,
    is_patient: bool,
    proxies: Proxies,
    pool: Pool,
    pace: Pace,
}

/// A try of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Try {
    First,
    /// A retry after a failure.
    Retry,
    /// A retry after the server rejected the request with a time to come back.
    Again,
}

/// Called before each try of a request; an error ends the request.
pub type Admit<'a> = dyn FnMut(Try) -> Result<(), Failure> + 'a;

/// Admits every try.
pub fn admit_all(_: Try) -> Result<(), Failure> {
    Ok(())
}

/// The settings of a [`Server`].
#[derive(Debug)]
pub struct Setup {
    /// The address; `http` only for this machine ([`is_local`]).
    pub address: Url,
    pub setting: &'static str,
    pub carries: (&'static str, &'static str),
    /// Headers of every request; names in lower case.
    pub headers: &'static [(&'static str, &'static str)],
    pub key: key::KeySource,
    pub max_retries: u32,
    /// Longest pause before the first retry; it doubles with every retry.
    pub retry_delay: Duration,
    /// Tries that the server rejected with a time to come back do not count as retries.
    pub is_patient: bool,
    pub proxies: Proxies,
    pub pool: Pool,
}

/// The interpretation of answers, which only the client of the server knows.
pub trait Protocol {
    type Answer;

    /// Reads an answer with a success status.
    fn read(&self, reply: Reply<'_>) -> impl Future<Output = Result<Self::Answer, Trouble>>;

    /// Interprets an answer with an error status that is not a redirect.
    fn refused(&self, refusal: &Refusal) -> Trouble;

    /// Returns the hint for a redirect to another path of the same server; `None` if the address
    /// must be changed.
    fn moved(&self, _path: &str) -> Option<String> {
        None
    }
}

impl Failure {
    /// Creates a failure.
    pub fn new(cause: Cause, message: impl Into<String>) -> Self {
        Self {
            cause,
            message: message.into(),
            hint: None,
            retry_after: None,
            status: None,
        }
    }

    /// Adds a hint.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl<'a> Limits<'a> {
    /// Creates limits that start now.
    pub fn new(deadline: Instant, stop: &'a Stop) -> Self {
        Limits {
            started: Instant::now(),
            deadline,
            patience: deadline,
            stop,
        }
    }

    /// Limits the wait for a server that asks for a pause.
    #[must_use]
    pub fn patient_until(self, patience: Instant) -> Self {
        Limits {
            patience: patience.min(self.deadline),
            ..self
        }
    }

    /// Returns the deadline.
    pub fn deadline(&self) -> Instant {
        self.deadline
    }

    /// Returns the stop signal of the run.
    pub fn stop(&self) -> &'a Stop {
        self.stop
    }

    /// Waits for a future until the run is stopped or the deadline passes.
    pub(crate) async fn hold<T>(&self, what: impl Future<Output = T>) -> Result<T, Failure> {
        tokio::select! {
            biased;
            _ = self.stop.wait() => Err(stopped()),
            done = timeout_at(self.deadline.into(), what) => done.map_err(|_| self.late()),
        }
    }

    /// Fails if the run was stopped or the deadline has passed.
    pub fn check(&self) -> Result<(), Failure> {
        match self.stop.signal() {
            Some(_) => Err(stopped()),
            None if Instant::now() >= self.deadline => Err(self.late()),
            None => Ok(()),
        }
    }

    fn left(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }

    /// Returns the remaining time to wait for a server that asks for a pause.
    fn patience_left(&self) -> Duration {
        self.patience.saturating_duration_since(Instant::now())
    }

    fn late(&self) -> Failure {
        let waited = self.started.elapsed().as_secs_f64();
        Failure::new(Cause::TimedOut, format!("no answer within {waited:.0} s"))
    }
}

fn stopped() -> Failure {
    Failure::new(Cause::Stopped, "the run was stopped")
}

impl Trouble {
    /// Returns a failure that is not retried.
    pub fn last(failure: Failure) -> Self {
        Self {
            failure,
            passing: false,
            floor: None,
            maybe_done: false,
        }
    }

    /// Returns a failure that is retried.
    pub fn passing(failure: Failure) -> Self {
        Self {
            failure,
            passing: true,
            floor: None,
            maybe_done: true,
        }
    }

    /// Returns the failure for a malformed response.
    pub fn malformed(message: impl Into<String>) -> Self {
        Self::last(Failure::new(Cause::Malformed, message))
    }
}

impl Pool {
    /// Returns the client for an address; created with the first request.
    fn client(&self, secure: bool, proxies: &Proxies) -> Result<&Client, Failure> {
        let cell = if secure {
            &self.0.secure
        } else {
            &self.0.plain
        };
        if let Some(client) = cell.get() {
            return Ok(client);
        }
        let client = build(secure, proxies).map_err(|e| {
            let failure = Failure::new(
                Cause::Setup,
                format!("cannot set up TLS: {}", reply::chain(&e)),
            );
            failure.hint("install the CA certificates of the system, or set SSL_CERT_FILE")
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
        // Detects a lost connection during the wait for an answer, which can take minutes.
        .http2_keep_alive_interval(ALIVE)
        .http2_keep_alive_timeout(CONNECT)
        .no_proxy();
    // An error only means that a provider is already installed.
    let _ = rustls::crypto::ring::default_provider().install_default();
    if secure {
        let proxied = proxies
            .for_client()?
            .into_iter()
            .fold(base.https_only(true), reqwest::ClientBuilder::proxy);
        return proxied.build();
    }
    let nobody = rustls::RootCertStore::empty();
    let config = rustls::ClientConfig::builder()
        .with_root_certificates(nobody)
        .with_no_client_auth();
    base.tls_backend_preconfigured(config).build()
}

impl Server {
    /// Creates a server. Opens no connection.
    pub fn new(setup: Setup) -> Self {
        let Setup {
            address,
            setting,
            carries,
            headers,
            key,
            max_retries,
            retry_delay,
            is_patient,
            proxies,
            pool,
        } = setup;
        Self {
            name: address.to_string(),
            secure: address.scheme() == "https",
            setting,
            carries,
            takes_pairs: false,
            headers,
            granted: Mutex::new(HeaderMap::new()),
            key,
            max_retries,
            retry_delay,
            is_patient,
            proxies,
            pool,
            pace: Pace::default(),
        }
    }

    /// Sends a key of the form `name:password` as `Authorization: Basic` (RFC 7617), and any other
    /// in the usual way.
    #[must_use]
    pub fn taking_pairs(mut self) -> Self {
        self.takes_pairs = true;
        self
    }

    /// Sends a header with all further requests. Ignores an invalid header value.
    pub fn grant(&self, name: &'static str, value: &str) {
        if let (Ok(value), Ok(mut granted)) = (HeaderValue::from_str(value), self.granted.lock()) {
            granted.insert(name, value);
        }
    }

    /// Returns the key encoded for `Basic`, if it is a name and a password.
    fn pair(&self) -> Option<key::Key> {
        self.key.known().filter(|_| self.takes_pairs)?.pair()
    }

    /// Determines the key. Only the first call can take time.
    ///
    /// # Errors
    ///
    /// Errors of [`key::KeySource::get`].
    pub async fn ready(&self, limits: &Limits<'_>) -> Result<(), Failure> {
        self.key.get(limits.deadline, limits.stop).await.map(drop)
    }

    /// Returns true if requests have no key.
    pub fn is_keyless(&self) -> bool {
        matches!(self.key, key::KeySource::Keyless)
    }

    /// Returns the longest pause before a first retry.
    pub fn retry_delay(&self) -> Duration {
        self.retry_delay
    }

    /// Returns the key, if there is one and it is known already.
    pub fn key(&self) -> Option<&key::Key> {
        self.key.known()
    }

    /// Sends a request, with retries, and returns the answer that the protocol reads. Calls `admit`
    /// before each try, which can reject it.
    ///
    /// A patient server that answers 429 or 529 with a time to come back gets the request again
    /// while `limits` permits it. `max_retries` bounds the other tries.
    ///
    /// # Errors
    ///
    /// The failure of the last try or of `admit`, a passed deadline, or the end of the run.
    pub async fn send<P: Protocol>(
        &self,
        request: &Request<'_>,
        protocol: &P,
        limits: &Limits<'_>,
        admit: &mut Admit<'_>,
    ) -> Result<P::Answer, Failure> {
        let (mut tries, mut retries) = (0_u32, 0_u32);
        let mut next = Try::First;
        loop {
            let place = self.place(limits).await?;
            limits.check()?;
            admit(next)?;
            tries += 1;
            let sent = Instant::now();
            let outcome = limits.hold(self.attempt(request, protocol)).await?;
            request.log(tries, sent, outcome.as_ref().err());
            let trouble = match outcome {
                Ok(value) => {
                    self.pace.answered();
                    return Ok(value);
                }
                Err(trouble) => trouble,
            };
            if let Some(floor) = trouble.floor {
                self.pace.pause(floor);
            }
            drop(place);
            let is_turned_away =
                trouble.floor.is_some() && matches!(trouble.failure.status, Some(429 | 529));
            next = if self.is_patient && is_turned_away {
                Try::Again
            } else {
                Try::Retry
            };
            retries += u32::from(next == Try::Retry);
            let twice = trouble.maybe_done && request.repeat == Repeat::Makes;
            if !trouble.passing || twice || retries > self.max_retries {
                return Err(trouble.failure);
            }
            // A server with a time to come back needs less extra delay: it gets one request at a
            // time then.
            let step = if trouble.floor.is_some() {
                tries.div_ceil(PATIENT_TRIES)
            } else {
                tries
            };
            let pause = retry::pause(self.retry_delay, step, trouble.floor, fastrand::f64());
            // Only the server's own time counts here: jitter must not cost a try for which there is
            // time.
            let left = if next == Try::Again {
                limits.patience_left()
            } else {
                limits.left()
            };
            if trouble.floor.unwrap_or(pause) >= left {
                return Err(trouble.failure);
            }
            limits
                .hold(tokio::time::sleep(pause))
                .await
                .map_err(|late| match late.cause {
                    Cause::TimedOut => trouble.failure,
                    _ => late,
                })?;
        }
    }

    /// Waits for a slot among the concurrent requests to the server.
    ///
    /// # Errors
    ///
    /// The server asks for a longer pause than the limit, the deadline passed, or the run ended.
    async fn place(&self, limits: &Limits<'_>) -> Result<pace::RequestSlot<'_>, Failure> {
        loop {
            match self.pace.take() {
                Ok(place) => return Ok(place),
                Err(pace::Wait::ForOthers) => limits.hold(self.pace.freed()).await?,
                Err(pace::Wait::Until(until)) if until < limits.patience => {
                    limits.hold(sleep_until(until.into())).await?;
                }
                Err(pace::Wait::Until(until)) => {
                    let wait = until.saturating_duration_since(Instant::now());
                    let message = format!(
                        "the server rejected another request; retry after {} s",
                        ceil(wait)
                    );
                    let mut failure = Failure::new(Cause::Refused, message);
                    failure.retry_after = Some(wait);
                    return Err(failure);
                }
            }
        }
    }

    /// Sends a request once.
    async fn attempt<P: Protocol>(
        &self,
        request: &Request<'_>,
        protocol: &P,
    ) -> Result<P::Answer, Trouble> {
        let client = self
            .pool
            .client(self.secure, &self.proxies)
            .map_err(Trouble::last)?;
        let mut builder = client.request(request.method.clone(), request.url.clone());
        if let Some(body) = request.body {
            builder = builder
                .header(CONTENT_TYPE, request.content_type.unwrap_or(JSON))
                .body(body.to_vec());
        }
        for (name, value) in self.headers {
            builder = builder.header(
                HeaderName::from_static(name),
                HeaderValue::from_static(value),
            );
        }
        if let Ok(granted) = self.granted.lock() {
            builder = builder.headers(granted.clone());
        }
        let (name, prefix) = self.carries;
        let value = match self.pair() {
            Some(pair) => pair.header("Basic "),
            None => self.key.known().and_then(|key| key.header(prefix)),
        };
        if let Some(value) = value {
            builder = builder.header(HeaderName::from_static(name), value);
        }
        let response = builder
            .send()
            .await
            .map_err(|e| self.broken(&e, "cannot reach"))?;
        let status = response.status();
        if status.is_success() {
            return protocol.read(Reply::new(self, response)).await;
        }
        if status.is_redirection() || status.is_informational() {
            let message = format!("{}: redirects are not followed", named(status));
            let failure = Failure::new(Cause::Refused, message);
            let to = response
                .headers()
                .get(LOCATION)
                .and_then(|to| request.url.join(to.to_str().ok()?).ok());
            let inside = to.filter(|to| {
                to.origin() == request.url.origin() && to.path() != request.url.path()
            });
            let hint = inside.and_then(|to| protocol.moved(to.path()));
            return Err(Trouble::last(failure.hint(hint.unwrap_or_else(|| {
                format!("set {} to the new address", self.setting)
            }))));
        }
        Err(protocol.refused(&Refusal::of(response).await))
    }

    /// Returns text of a server for display: without keys, on one line, escaped, short.
    pub fn shown(&self, text: &str) -> String {
        let masked = self.proxies.mask(self.key.mask(text.trim().to_owned()));
        let masked = match self.pair() {
            Some(pair) => pair.mask(&masked),
            None => masked,
        };
        let inert = Inert::new(masked);
        shortened(inert.as_str(), MAX_SHOWN).into_owned()
    }
}

/// Parses a JSON document; ignores a byte order mark.
pub fn json(bytes: &[u8]) -> Option<Value> {
    serde_json::from_slice(bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes)).ok()
}

/// Formats a status: `429 Too Many Requests`.
pub fn named(status: StatusCode) -> String {
    let reason = match status.as_u16() {
        529 => "Overloaded",
        _ => status.canonical_reason().unwrap_or("unknown status"),
    };
    format!("{} {reason}", status.as_u16())
}

/// Returns whole seconds, rounded up.
pub fn ceil(time: Duration) -> u64 {
    time.as_secs() + u64::from(time.subsec_nanos() > 0)
}

/// Returns true for an address of this machine, without resolving names.
pub fn is_local(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let ip = host
        .trim_start_matches('[')
        .trim_end_matches(']')
        .parse::<IpAddr>();
    host.eq_ignore_ascii_case("localhost") || ip.is_ok_and(|ip| ip.is_loopback())
}
