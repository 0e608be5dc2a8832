//! The streamable HTTP transport of MCP
//! (<https://modelcontextprotocol.io/specification/2025-06-18/basic/transports>), limited to a
//! client that sends one request at a time: each message is a POST, and its answer is a JSON
//! document or a stream of events. No stream for messages of the server is opened.

use super::pipe::{Closed, MAX_MESSAGE, PipeInput};
use crate::ai::backend::sse::Events;
use crate::http::{
    self, Cause, Failure, IDLE, Limits, Method, Protocol, Refusal, Repeat, Reply, Request, Server,
    Trouble, Url,
};
use crate::stop::Stop;
use serde_json::Value;
use std::time::Instant;
use tokio::io::{
    AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, WriteHalf, split,
};

/// Headers of every request.
pub(super) const HEADERS: &[(&str, &str)] = &[("accept", "application/json, text/event-stream")];
const SESSION: &str = "mcp-session-id";
const VERSION: &str = "mcp-protocol-version";

/// Forwards messages until the client disconnects or the server fails.
pub(super) async fn run(
    server: Server,
    url: Url,
    pipe: DuplexStream,
    deadline: Instant,
    stop: Stop,
) -> Closed {
    let (input, mut output) = split(pipe);
    let limits = Limits::new(deadline, &stop);
    let closed = match server.ready(&limits).await {
        Ok(()) => carry(&server, &url, input, &mut output, &limits).await,
        Err(failure) => of_failure(&failure),
    };
    let _ = output.shutdown().await;
    closed
}

async fn carry(
    server: &Server,
    url: &Url,
    input: PipeInput,
    output: &mut WriteHalf<DuplexStream>,
    limits: &Limits<'_>,
) -> Closed {
    let mut lines = BufReader::new(input).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        let request = Request {
            method: Method::POST,
            url: url.clone(),
            body: Some(line.as_bytes()),
            content_type: None,
            repeat: Repeat::Makes,
        };
        let answers = match server
            .send(
                &request,
                &Messages {
                    server,
                    sent: &line,
                },
                limits,
                &mut http::admit_all,
            )
            .await
        {
            Ok(answers) => answers,
            Err(failure) => return of_failure(&failure),
        };
        for answer in answers {
            // All further requests send the negotiated version.
            if let Some(version) = answer
                .pointer("/result/protocolVersion")
                .and_then(Value::as_str)
            {
                server.grant(VERSION, version);
            }
            if output
                .write_all(format!("{answer}\n").as_bytes())
                .await
                .is_err()
            {
                return Closed::new("the connection was closed", true);
            }
        }
    }
    Closed::new("the connection was closed", true)
}

fn of_failure(failure: &Failure) -> Closed {
    let is_passing = matches!(failure.cause, Cause::Unreachable) || failure.status == Some(404);
    let hint = failure
        .hint
        .as_ref()
        .map(|h| format!(" ({h})"))
        .unwrap_or_default();
    Closed::new(format!("{}{hint}", failure.message), is_passing)
}

/// Reads the messages that answer a message.
struct Messages<'a> {
    server: &'a Server,
    sent: &'a str,
}

impl Messages<'_> {
    /// Returns true for the answer to the sent message.
    fn is_answer(&self, message: &Value) -> bool {
        let sent: Option<Value> = serde_json::from_str(self.sent).ok();
        sent.is_some_and(|s| s.get("id").is_some() && s.get("id") == message.get("id"))
            && (message.get("result").is_some() || message.get("error").is_some())
    }

    async fn events(&self, mut reply: Reply<'_>) -> Result<Vec<Value>, Trouble> {
        let (mut events, mut out, mut size) = (Events::default(), Vec::new(), 0);
        while let Some(chunk) = reply.chunk(IDLE).await? {
            size += chunk.len();
            if size > MAX_MESSAGE {
                return Err(too_large());
            }
            events.push(&chunk, |data| out.extend(http::json(data)));
            // The server may keep the stream open after its answer.
            if out.iter().any(|m| self.is_answer(m)) {
                break;
            }
        }
        Ok(out)
    }
}

fn too_large() -> Trouble {
    Trouble::malformed(format!(
        "the answer is larger than {} MiB",
        MAX_MESSAGE >> 20
    ))
}

impl Protocol for Messages<'_> {
    type Answer = Vec<Value>;

    async fn read(&self, reply: Reply<'_>) -> Result<Vec<Value>, Trouble> {
        if let Some(session) = reply.headers().get(SESSION).and_then(|v| v.to_str().ok()) {
            self.server.grant(SESSION, session);
        }
        if reply.is_type("text/event-stream") {
            return self.events(reply).await;
        }
        let bytes = reply.body(MAX_MESSAGE).await?;
        if bytes.trim_ascii().is_empty() {
            return Ok(Vec::new());
        }
        match http::json(&bytes) {
            Some(Value::Array(all)) => Ok(all),
            Some(value) => Ok(vec![value]),
            None => Err(Trouble::malformed("the answer is not JSON")),
        }
    }

    fn refused(&self, refusal: &Refusal) -> Trouble {
        let code = refusal.status.as_u16();
        let said = self.server.shown(&String::from_utf8_lossy(&refusal.body));
        let message = http::named(refusal.status);
        let message = if said.is_empty() {
            message
        } else {
            format!("{message}: {said}")
        };
        let cause = if code >= 500 {
            Cause::Unreachable
        } else {
            Cause::Refused
        };
        let mut failure = Failure::new(cause, message);
        failure.status = Some(code);
        if matches!(code, 401 | 403) {
            failure = failure.hint("set token_env to a variable with a valid token");
        }
        Trouble::last(failure)
    }
}
