//! Input and output lines: one JSON-RPC message each, in bounded memory for any input.
//!
//! One thread reads standard input and one writes standard output; no other code writes there. An
//! invalid message is rejected by its ID if the ID is readable. Without one, only a few rejections
//! in a row are sent, because a client that sends garbage may answer every error with more garbage.
//! Messages that are too large, too many at once, or that reuse an open ID are rejected here and
//! never reach the server.
//!
//! # Why not the transport of the SDK
//!
//! `AsyncRwTransport` of rmcp 3.9 bounds the length of a line, too. These rows of the behaviour
//! contract need more:
//!
//! | row | `AsyncRwTransport` | this module |
//! |---|---|---|
//! | MCP-02 | ignores a request that is not valid JSON, and answers every JSON value that is not a message | rejects the request by its ID, and sends few rejections without an ID ([`PATIENCE`]) |
//! | MCP-12 | waits up to 5 s for open requests after the input has ended, and without end for a client that does not read | waits for [`GRACE`], then stops the runs |
//! | MCP-13 | starts a task for each request, also for an ID that is open | bounds the number and the bytes of open requests ([`Calls`]) |
//! | MCP-14 | drops a long line without an answer, and parses any number of values | rejects both by their ID ([`MessageScan`]) |
//!
//! It also takes no batches, which versions up to 2025-03-26 of the protocol have.

use super::batch::Batches;
use super::calls::{Calls, Refused};
use super::log::Log;
use super::scan::MessageScan;
use crate::stop::Signal;
use rmcp::RoleServer;
use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, ClientRequest, ErrorCode, ErrorData, GetMeta as _,
    NumberOrString, ProtocolVersion, RequestId, ServerJsonRpcMessage, ServerResult,
};
use rmcp::transport::Transport;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

/// Bytes of a message, at most. A longer one is discarded while it is read.
pub(super) const MOST: usize = 16 << 20;
/// Values in a message, at most. They can be small as text and large as parsed values.
const MOST_VALUES: usize = 100_000;
/// Messages without an ID that get an error in a row, at most. A valid message resets the count.
const PATIENCE: u32 = 3;
/// Lines that wait for the writing thread, at most.
const WAITING: usize = 16;
/// Messages on one line, at most, in protocol versions with batches.
const MOST_MEMBERS: usize = 64;
/// Lines that are queued for a client that does not read, at most.
const MOST_REFUSALS: usize = 256;
/// Time that open requests have to end after the input has ended.
const GRACE: Duration = Duration::from_millis(250);

/// An input line, as the reading thread sends it.
#[derive(Debug)]
enum InputLine {
    /// A message, without its line end.
    Whole(Vec<u8>, MessageScan),
    TooLong(MessageScan),
}

/// Both directions of the connection.
#[derive(Debug)]
pub(super) struct LineConnection {
    incoming: mpsc::Receiver<InputLine>,
    outgoing: mpsc::Sender<Vec<u8>>,
    /// Set to true when standard output is closed, or when the program ends.
    gone: watch::Receiver<bool>,
    calls: Arc<Calls>,
    log: Log,
    /// Rejections that are not written yet.
    refusals: VecDeque<Vec<u8>>,
    patience: u32,
    /// Messages of a batch that the server has not received yet.
    waiting: VecDeque<ClientJsonRpcMessage>,
    batches: Batches,
    /// The protocol version of the session has batches.
    has_batches: bool,
    /// A session has begun. The server accepts notifications only after that.
    begun: bool,
    /// The time when the open requests are abandoned; set when the input has ended.
    until: Option<Instant>,
}

/// The handles of [`LineConnection`] for the code that ends the program.
#[derive(Debug)]
pub(super) struct ConnectionEnds {
    /// Set to true to stop reading.
    pub(super) gone: watch::Sender<bool>,
    /// Closed when all output is written.
    pub(super) written: tokio::sync::oneshot::Receiver<()>,
}

/// Starts both threads.
///
/// # Errors
///
/// A thread cannot be started.
pub(super) fn open(
    input: impl Read + Send + 'static,
    output: impl Write + Send + 'static,
    calls: Arc<Calls>,
    log: Log,
) -> io::Result<(LineConnection, ConnectionEnds)> {
    // One message waits for the server while the next one is read.
    let (to_server, incoming) = mpsc::channel(1);
    let (outgoing, to_client) = mpsc::channel(WAITING);
    let (gone_tx, gone) = watch::channel(false);
    let (done, written) = tokio::sync::oneshot::channel();
    let is_gone = gone_tx.clone();
    std::thread::Builder::new()
        .name("mcp-read".to_owned())
        .spawn(move || read(input, &to_server))?;
    std::thread::Builder::new()
        .name("mcp-write".to_owned())
        .spawn(move || {
            write(output, to_client, &is_gone);
            drop(done);
        })?;
    let lines = LineConnection {
        incoming,
        outgoing,
        gone,
        calls,
        log,
        refusals: VecDeque::new(),
        patience: PATIENCE,
        waiting: VecDeque::new(),
        batches: Batches::default(),
        has_batches: false,
        begun: false,
        until: None,
    };
    Ok((
        lines,
        ConnectionEnds {
            gone: gone_tx,
            written,
        },
    ))
}

/// Reads lines until the input or the receiver is closed.
fn read(mut input: impl Read, to: &mpsc::Sender<InputLine>) {
    let mut buffer = vec![0; 64 << 10];
    let (mut line, mut scan, mut too_long) = (Vec::new(), MessageScan::default(), false);
    loop {
        let got = match input.read(&mut buffer) {
            Ok(0) => return,
            Ok(n) => n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            Err(_) => return,
        };
        for piece in buffer[..got].split_inclusive(|b| *b == b'\n') {
            let (text, ends) = match piece.strip_suffix(b"\n") {
                Some(text) => (text, true),
                None => (piece, false),
            };
            scan.feed(text);
            if too_long || line.len() + text.len() > MOST {
                too_long = true;
                line = Vec::new();
            } else {
                line.extend_from_slice(text);
            }
            if !ends {
                continue;
            }
            let scan = std::mem::take(&mut scan);
            let whole = std::mem::take(&mut line);
            let next = if std::mem::take(&mut too_long) {
                InputLine::TooLong(scan)
            } else {
                InputLine::Whole(whole, scan)
            };
            if to.blocking_send(next).is_err() {
                return;
            }
        }
    }
}

/// Writes lines until the channel or the output is closed.
fn write(mut output: impl Write, mut from: mpsc::Receiver<Vec<u8>>, gone: &watch::Sender<bool>) {
    while let Some(line) = from.blocking_recv() {
        if output
            .write_all(&line)
            .and_then(|()| output.flush())
            .is_err()
        {
            gone.send_replace(true);
            return;
        }
    }
}

/// Returns a message as a line. Control characters that a terminal would act on are escaped, as in
/// every report.
fn line_of(message: &ServerJsonRpcMessage) -> Vec<u8> {
    let mut line = crate::wire::line(message).unwrap_or_default();
    line.push(b'\n');
    line
}

/// Returns a rejection as a line. JSON-RPC requires a null for an unknown ID; rmcp leaves the ID
/// out.
fn refusal(error: &ErrorData, id: Option<&RequestId>) -> Vec<u8> {
    let mut line =
        crate::wire::line(&json!({"jsonrpc": "2.0", "id": id, "error": error})).unwrap_or_default();
    line.push(b'\n');
    line
}

/// The result of parsing a line.
enum Taken {
    Message(Box<ClientJsonRpcMessage>),
    Refuse(Option<RequestId>, ErrorData),
    Ignore(&'static str),
}

impl LineConnection {
    /// Parses a line.
    fn take(&mut self, line: InputLine) -> Taken {
        let (bytes, scan) = match line {
            InputLine::Whole(bytes, scan) => (bytes, scan),
            InputLine::TooLong(scan) => {
                let why = format!("the message is longer than {} MiB", MOST >> 20);
                return Taken::Refuse(id_of(&scan), ErrorData::invalid_request(why, None));
            }
        };
        let text = bytes
            .strip_prefix(b"\xef\xbb\xbf")
            .unwrap_or(&bytes)
            .trim_ascii();
        if text.is_empty() {
            return Taken::Ignore("an empty line");
        }
        if scan.values() > MOST_VALUES {
            let why = format!("the message has more than {MOST_VALUES} values");
            return Taken::Refuse(id_of(&scan), ErrorData::invalid_request(why, None));
        }
        if self.has_batches && text.starts_with(b"[") {
            return self.batch(text);
        }
        self.message(text, &scan)
    }

    /// Opens a batch and queues its messages.
    fn batch(&mut self, text: &[u8]) -> Taken {
        let members = match serde_json::from_slice(text) {
            Ok(Value::Array(members)) => members,
            // Reject the whole line: after invalid JSON, the end of a member cannot be found.
            Err(e) => return Taken::Refuse(None, no_json(&e)),
            Ok(_) => return Taken::Ignore("not a list"),
        };
        if members.is_empty() || members.len() > MOST_MEMBERS {
            let why = format!("a batch has from 1 to {MOST_MEMBERS} messages");
            return Taken::Refuse(None, ErrorData::invalid_request(why, None));
        }
        let (mut open, mut answers, mut cancelled) = (Vec::new(), Vec::new(), Vec::new());
        for member in members {
            let text = member.to_string();
            let mut scan = MessageScan::default();
            scan.feed(text.as_bytes());
            match self.message(text.as_bytes(), &scan) {
                Taken::Message(message) => {
                    match message.as_ref() {
                        ClientJsonRpcMessage::Request(request) => open.push(request.id.clone()),
                        ClientJsonRpcMessage::Notification(n) => {
                            cancelled.extend(cancels(&n.notification).cloned());
                        }
                        _ => {}
                    }
                    self.waiting.push_back(*message);
                }
                Taken::Refuse(id, error) => {
                    let id = self.unused(id);
                    answers.push(refusal(&error, id.as_ref()).trim_ascii_end().to_vec());
                }
                Taken::Ignore(_) => {}
            }
        }
        // A request that is cancelled on the same line gets no answer.
        open.retain(|id| !cancelled.contains(id));
        let line = self.batches.begin(open, answers);
        self.queue(line);
        Taken::Ignore("a batch, taken apart")
    }

    /// Parses a message, and opens it if it is a request.
    fn message(&mut self, text: &[u8], scan: &MessageScan) -> Taken {
        let parsed = serde_json::from_slice::<ClientJsonRpcMessage>(text);
        match parsed {
            Ok(ClientJsonRpcMessage::Request(request)) => {
                let is_call = matches!(request.request, ClientRequest::CallToolRequest(_));
                match self.calls.begin(&request.id, text.len(), is_call) {
                    Ok(()) => {}
                    Err(Refused::Taken) => {
                        let why = "the id belongs to a request that is not answered yet";
                        return Taken::Refuse(None, ErrorData::invalid_request(why, None));
                    }
                    Err(Refused::Busy) => {
                        let why = "too many requests are open; wait for answers, then ask again";
                        return Taken::Refuse(
                            Some(request.id),
                            ErrorData::new(ErrorCode(-32000), why, None),
                        );
                    }
                }
                self.begun |= begins(&request.request);
                self.patience = PATIENCE;
                Taken::Message(Box::new(ClientJsonRpcMessage::Request(request)))
            }
            Ok(_) if !self.begun => Taken::Ignore("a message before the session"),
            Ok(ClientJsonRpcMessage::Notification(n)) => {
                if let Some(id) = cancels(&n.notification) {
                    self.calls.cancel(id);
                    let line = self.batches.forget(id);
                    self.queue(line);
                }
                Taken::Message(Box::new(ClientJsonRpcMessage::Notification(n)))
            }
            Ok(other) => Taken::Message(Box::new(other)),
            Err(_) => no_message(text, scan),
        }
    }

    /// Queues a rejection.
    fn refuse(&mut self, id: Option<RequestId>, error: &ErrorData) {
        self.log.say(1, || format!("refused: {}", error.message));
        let id = self.unused(id);
        if id.is_none() {
            if self.patience == 0 {
                return;
            }
            self.patience -= 1;
        }
        self.queue(Some(refusal(error, id.as_ref())));
    }

    /// Returns the ID of a rejected message, unless an open request has the same ID: the client
    /// would take that request for rejected.
    fn unused(&self, id: Option<RequestId>) -> Option<RequestId> {
        id.filter(|id| !self.calls.is_open(id))
    }

    /// Queues a line. Lines past the limit are dropped, for a client that does not read.
    fn queue(&mut self, line: Option<Vec<u8>>) {
        if self.refusals.len() < MOST_REFUSALS {
            self.refusals.extend(line);
        }
    }
}

/// Waits until standard output is closed, or the program ends.
async fn gone(gone: &mut watch::Receiver<bool>) {
    // The sender is dropped only when the program ends.
    let _ = gone.wait_for(|gone| *gone).await;
}

/// Returns the ID of the request that a notification cancels.
fn cancels(notification: &ClientNotification) -> Option<&RequestId> {
    match notification {
        ClientNotification::CancelledNotification(c) => c.params.request_id.as_ref(),
        _ => None,
    }
}

/// Returns an ID in the type of the protocol.
fn id_of(scan: &MessageScan) -> Option<RequestId> {
    match scan.id()? {
        Value::String(s) => Some(NumberOrString::String(s.into())),
        Value::Number(n) => n.as_i64().map(NumberOrString::Number),
        _ => None,
    }
}

/// Returns true if a request begins a session: the handshake, or a request that names its protocol
/// version itself.
fn begins(request: &ClientRequest) -> bool {
    let meta = request.get_meta();
    match request {
        ClientRequest::InitializeRequest(_) => true,
        ClientRequest::DiscoverRequest(_) => false,
        _ => {
            meta.missing_required_keys(&ProtocolVersion::V_2026_07_28)
                .is_empty()
                && meta
                    .protocol_version()
                    .is_some_and(|v| ProtocolVersion::KNOWN_VERSIONS.contains(&v))
        }
    }
}

/// Returns the error for text that is not JSON, or that has values that this program does not
/// support (numbers as large as 1e400, unpaired surrogates, a thousand levels). It does not repeat
/// the text.
fn no_json(why: &serde_json::Error) -> ErrorData {
    ErrorData::parse_error(format!("the message cannot be read as JSON: {why}"), None)
}

/// Returns the result for a line that is not a message of the protocol.
fn no_message(text: &[u8], scan: &MessageScan) -> Taken {
    let value = match serde_json::from_slice::<Value>(text) {
        Ok(value) => value,
        // Responses and notifications get no answer, also if they are invalid.
        Err(_) if scan.answers() => return Taken::Ignore("a response that is not valid JSON"),
        Err(_) if scan.notifies() => return Taken::Ignore("a notification that is not valid JSON"),
        Err(e) => return Taken::Refuse(id_of(scan).filter(|_| scan.asks()), no_json(&e)),
    };
    match &value {
        Value::Array(_) => Taken::Refuse(
            None,
            ErrorData::invalid_request(
                "batches are not taken: send each message on a line of its own",
                None,
            ),
        ),
        Value::Object(o) if o.contains_key("result") || o.contains_key("error") => {
            Taken::Ignore("an invalid response")
        }
        Value::Object(o) if o.contains_key("method") && !o.contains_key("id") => {
            Taken::Ignore("an invalid notification")
        }
        _ => {
            let why = "no JSON-RPC 2.0 message: jsonrpc, id and method are needed, and params is an object";
            Taken::Refuse(id_of(scan), ErrorData::invalid_request(why, None))
        }
    }
}

impl Transport<RoleServer> for LineConnection {
    type Error = io::Error;

    fn send(
        &mut self,
        item: ServerJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let answered = match &item {
            ServerJsonRpcMessage::Response(r) => {
                if let ServerResult::InitializeResult(hello) = &r.result {
                    self.begun = true;
                    self.has_batches = hello.protocol_version <= ProtocolVersion::V_2025_03_26;
                }
                Some(r.id.clone())
            }
            ServerJsonRpcMessage::Error(e) => e.id.clone(),
            ServerJsonRpcMessage::Request(_) | ServerJsonRpcMessage::Notification(_) => None,
        };
        // Serialize a message only when the channel has room for it: a client that does not read
        // must not cost that work.
        let line = match &answered {
            Some(id) if self.batches.holds(id) => self
                .batches
                .answer(id, line_of(&item))
                .unwrap_or_else(Some)
                .map(Ok),
            _ => Some(Err(item)),
        };
        let outgoing = self.outgoing.clone();
        let calls = Arc::clone(&self.calls);
        async move {
            let sent = match line {
                Some(line) => outgoing
                    .reserve()
                    .await
                    .map(|room| room.send(line.unwrap_or_else(|item| line_of(&item)))),
                None => Ok(()),
            };
            if let Some(id) = answered {
                calls.end(&id);
            }
            sent.map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe))
        }
    }

    /// Returns the next message. No message is lost if the future is dropped and created again.
    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        loop {
            if let Some(message) = self.waiting.pop_front() {
                return Some(message);
            }
            while let Some(line) = self.refusals.pop_front() {
                match self.outgoing.try_send(line) {
                    Ok(()) => {}
                    Err(TrySendError::Full(line)) => {
                        self.refusals.push_front(line);
                        break;
                    }
                    Err(TrySendError::Closed(_)) => return None,
                }
            }
            if let Some(until) = self.until {
                tokio::select! {
                    () = self.calls.idle() => {}
                    () = tokio::time::sleep_until(until) => {}
                    () = gone(&mut self.gone) => {}
                }
                self.calls.stop(Signal::Interrupt);
                return None;
            }
            let line = tokio::select! {
                line = self.incoming.recv() => line,
                // Keep reading from a client that does not read: it may disconnect.
                room = self.outgoing.reserve(), if !self.refusals.is_empty() => {
                    if let (Ok(room), Some(line)) = (room, self.refusals.pop_front()) {
                        room.send(line);
                    }
                    continue;
                }
                () = gone(&mut self.gone) => {
                    self.calls.stop(Signal::Interrupt);
                    return None;
                }
            };
            let Some(line) = line else {
                self.log.say(1, || "standard input is closed".to_owned());
                self.until = Some(Instant::now() + GRACE);
                continue;
            };
            match self.take(line) {
                Taken::Message(message) => return Some(*message),
                Taken::Refuse(id, error) => self.refuse(id, &error),
                Taken::Ignore(what) => self.log.say(1, || format!("not answered: {what}")),
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        Ok(())
    }
}
