//! Answers, read in chunks and within limits.

use super::{CONNECT, Cause, Failure, Server, Trouble, retry};
use reqwest::header::{CONTENT_TYPE, HeaderMap};
use reqwest::{Response, StatusCode};
use std::time::{Duration, SystemTime};
use tokio::time::timeout;

/// Time limit between two chunks of a body.
pub const IDLE: Duration = Duration::from_secs(60);
/// Time limit for the end of a stream after its last event.
const TRAILER: Duration = Duration::from_millis(100);
/// Bytes of an error's body that are read, at most.
const MAX_ERROR: usize = 64 << 10;

/// An answer with a success status, whose body is not read yet.
#[derive(Debug)]
pub struct Reply<'a> {
    server: &'a Server,
    response: Response,
}

/// An answer with an error status.
#[derive(Debug)]
pub struct Refusal {
    pub status: StatusCode,
    pub headers: HeaderMap,
    /// The wait that the server asks for.
    pub after: Option<Duration>,
    /// The start of the body.
    pub body: Vec<u8>,
}

impl<'a> Reply<'a> {
    pub(super) fn new(server: &'a Server, response: Response) -> Self {
        Self { server, response }
    }

    /// Returns the status.
    pub fn status(&self) -> StatusCode {
        self.response.status()
    }

    /// Returns the headers.
    pub fn headers(&self) -> &HeaderMap {
        self.response.headers()
    }

    /// Returns true if the body is of a type, such as `text/event-stream`.
    pub fn is_type(&self, kind: &str) -> bool {
        let value = self
            .headers()
            .get(CONTENT_TYPE)
            .and_then(|v| v.to_str().ok());
        value.is_some_and(|v| {
            v.split(';')
                .next()
                .unwrap_or_default()
                .trim()
                .eq_ignore_ascii_case(kind)
        })
    }

    /// Reads a body of at most `most` decompressed bytes.
    ///
    /// # Errors
    ///
    /// `Malformed`: the body is larger. `Unreachable`: the connection was lost, or is too slow.
    pub async fn body(mut self, most: usize) -> Result<Vec<u8>, Trouble> {
        let mut bytes = Vec::new();
        while let Some(chunk) = self.chunk(IDLE).await? {
            if bytes.len() + chunk.len() > most {
                return Err(Trouble::malformed(format!(
                    "the answer is larger than {} MiB",
                    most >> 20
                )));
            }
            bytes.extend_from_slice(&chunk);
        }
        Ok(bytes)
    }

    /// Reads the next chunk of a body. A server that sends no data for as long as `idle` counts as
    /// unreachable.
    ///
    /// # Errors
    ///
    /// `Unreachable`.
    pub async fn chunk(&mut self, idle: Duration) -> Result<Option<Vec<u8>>, Trouble> {
        match timeout(idle, self.response.chunk()).await {
            Ok(Ok(chunk)) => Ok(chunk.map(Into::into)),
            Ok(Err(e)) => Err(self.server.broken(&e, "lost the connection to")),
            Err(_) => {
                let message = format!("no data for {} s", idle.as_secs());
                Err(Trouble::passing(Failure::new(Cause::Unreachable, message)))
            }
        }
    }

    /// Waits for the end of a stream after its last chunk. A connection can be used again only
    /// after its answer was read to the end.
    pub async fn finish(mut self) {
        let _ = timeout(TRAILER, self.response.chunk()).await;
    }
}

impl Refusal {
    /// Reads the start of an error body, and ignores a lost connection.
    pub(super) async fn of(mut response: Response) -> Self {
        let after = retry::retry_after(response.headers(), SystemTime::now());
        let mut body = Vec::new();
        while body.len() < MAX_ERROR
            && let Ok(Ok(Some(chunk))) = timeout(CONNECT, response.chunk()).await
        {
            body.extend_from_slice(&chunk[..chunk.len().min(MAX_ERROR - body.len())]);
        }
        Self {
            status: response.status(),
            headers: response.headers().clone(),
            after,
            body,
        }
    }
}

impl Server {
    /// Returns the failure of a request. `what` precedes the name of the server: `cannot reach`.
    pub(super) fn broken(&self, error: &reqwest::Error, what: &str) -> Trouble {
        let why = chain(error);
        if why.contains("proxy authorization required") {
            let failure = Failure::new(Cause::Refused, "the proxy requires credentials (407)");
            let hint = format!(
                "set {} to http://USER:PASSWORD@HOST:PORT",
                self.proxies.variable()
            );
            return Trouble::last(failure.hint(hint));
        }
        if let Some(tls) = tls_error(error) {
            let message = format!("TLS connection failed: {}", self.shown(&tls.to_string()));
            return Trouble::last(Failure::new(Cause::Unreachable, message));
        }
        let shown = self.shown(&why);
        let message = if error.is_timeout() && error.is_connect() {
            format!(
                "{what} {}: no connection within {} s",
                self.name,
                CONNECT.as_secs()
            )
        } else {
            format!("{what} {}: {shown}", self.name)
        };
        let failure = Failure::new(Cause::Unreachable, message);
        if error.is_connect()
            || error.is_request()
            || error.is_body()
            || error.is_decode()
            || error.is_timeout()
        {
            Trouble {
                maybe_done: !error.is_connect(),
                ..Trouble::passing(failure)
            }
        } else {
            Trouble::last(failure)
        }
    }
}

/// Joins an error and its causes, without the address, which the message names.
pub(super) fn chain(error: &reqwest::Error) -> String {
    let mut parts: Vec<String> = Vec::new();
    let mut next = std::error::Error::source(error);
    while let Some(e) = next {
        let text = e.to_string();
        if parts.last() != Some(&text) {
            parts.push(text);
        }
        next = e.source();
    }
    if parts.is_empty() {
        "the connection failed".to_owned()
    } else {
        parts.join(": ")
    }
}

/// Returns the TLS error in a chain of causes; a retry does not help then. An I/O error hides its
/// content from `source`, and one can be inside of another.
fn tls_error<'e>(error: &'e (dyn std::error::Error + 'static)) -> Option<&'e rustls::Error> {
    if let Some(tls) = error.downcast_ref::<rustls::Error>() {
        return Some(tls);
    }
    let held = error
        .downcast_ref::<std::io::Error>()
        .and_then(std::io::Error::get_ref);
    held.and_then(|e| tls_error(e))
        .or_else(|| error.source().and_then(tls_error))
}
