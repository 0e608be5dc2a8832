//! Answers of the server as bytes: documents, errors, and streams of events.

use super::{Reply, Step};
use serde_json::{Value, json};
use std::time::Duration;

impl Reply {
    /// Answers with a document.
    pub fn json(status: u16, body: &Value) -> Self {
        Self::with(
            status,
            &[("content-type", "application/json")],
            body.to_string().as_bytes(),
        )
    }

    /// Answers with headers and a body of the right length.
    pub fn with(status: u16, headers: &[(&str, &str)], body: &[u8]) -> Self {
        let length = body.len().to_string();
        Self(vec![Step::Send(
            [
                &head(status, &[headers, &[("content-length", &length)]].concat()),
                body,
            ]
            .concat(),
        )])
    }

    /// Answers with an error in the form of all three dialects.
    pub fn error(status: u16, kind: &str, message: &str) -> Self {
        Self::json(
            status,
            &json!({ "type": "error", "error": { "type": kind, "message": message } }),
        )
    }

    /// Answers with an error that has an additional header.
    pub fn error_with(status: u16, header: (&str, &str), kind: &str, message: &str) -> Self {
        let body =
            json!({ "type": "error", "error": { "type": kind, "message": message } }).to_string();
        Self::with(
            status,
            &[("content-type", "application/json"), header],
            body.as_bytes(),
        )
    }

    /// Answers with a stream of events, one chunk each.
    pub fn events(events: &[Value]) -> Self {
        let mut steps = vec![Step::Send(Self::stream_head())];
        steps.extend(events.iter().map(|e| Step::Send(chunk(&event(e)))));
        steps.push(Step::Send(b"0\r\n\r\n".to_vec()));
        Self(steps)
    }

    /// Returns the head of a stream of events.
    pub fn stream_head() -> Vec<u8> {
        head(
            200,
            &[
                ("content-type", "text/event-stream"),
                ("transfer-encoding", "chunked"),
            ],
        )
    }

    /// Sends raw bytes.
    pub fn raw(bytes: impl Into<Vec<u8>>) -> Self {
        Self(vec![Step::Send(bytes.into())])
    }

    /// Waits before the following steps.
    #[must_use]
    pub fn after(mut self, time: Duration) -> Self {
        self.0.insert(0, Step::Wait(time));
        self
    }

    /// Appends a step.
    #[must_use]
    pub fn then(mut self, step: Step) -> Self {
        self.0.push(step);
        self
    }

    /// Returns all bytes of the answer.
    pub fn bytes(&self) -> Vec<u8> {
        let sent = self.0.iter().filter_map(|s| {
            if let Step::Send(bytes) = s {
                Some(bytes.as_slice())
            } else {
                None
            }
        });
        sent.collect::<Vec<_>>().concat()
    }
}

/// Returns the status line and headers of an answer, with the empty line after them.
pub fn head(status: u16, headers: &[(&str, &str)]) -> Vec<u8> {
    let mut head = format!("HTTP/1.1 {status} Scripted\r\n");
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str("\r\n");
    head.into_bytes()
}

/// Returns an encoded event.
pub fn event(data: &Value) -> Vec<u8> {
    if data == "[DONE]" {
        return b"data: [DONE]\n\n".to_vec();
    }
    format!(
        "event: {}\ndata: {data}\n\n",
        data["type"].as_str().unwrap_or("message")
    )
    .into_bytes()
}

/// Returns an encoded chunk.
pub fn chunk(bytes: &[u8]) -> Vec<u8> {
    [format!("{:x}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat()
}
