//! Lines in, lines out: one JSON-RPC message each, in bounded memory, whatever the other side sends.
//!
//! One thread reads standard input, one writes standard output, and nothing else writes there. What is no message is
//! refused by its id where that can be told; where not, a few times in a row and then no more: whoever sends garbage may
//! be answering garbage with garbage. What cannot be taken up (too large, too many at once, an id that is taken) is
//! refused here and never reaches the server.

use super::batch::Batches;
use super::calls::{Calls, Refused};
use super::log::Log;
use super::scan::Scan;
use crate::stop::Signal;
use rmcp::RoleServer;
use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, ClientRequest, ErrorCode, ErrorData, GetMeta as _, NumberOrString,
    ProtocolVersion, RequestId, ServerJsonRpcMessage, ServerResult,
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

/// Bytes of a message; what is longer is thrown away while it streams by.
pub(super) const MOST: usize = 16 << 20;
/// Values in a message: as text they are small, as values they are not.
const MOST_VALUES: usize = 100_000;
/// Messages without an id that are answered, until a proper one comes.
const PATIENCE: u32 = 3;
/// What is written before the reader of it has to take some.
const WAITING: usize = 16;
/// Messages of one line, where that may hold several.
const MOST_MEMBERS: usize = 64;
/// Lines that are kept for a client that does not read.
const MOST_REFUSALS: usize = 256;
/// How long requests may still take when nothing more will come.
const GRACE: Duration = Duration::from_millis(250);

/// What the reading thread hands over.
#[derive(Debug)]
enum Line {
    /// A message, without its line end.
    Whole(Vec<u8>, Scan),
    TooLong(Scan),
}

/// Both directions.
#[derive(Debug)]
pub(super) struct Lines {
    incoming: mpsc::Receiver<Line>,
    outgoing: mpsc::Sender<Vec<u8>>,
    /// Nobody reads standard output any more, or the program is to end.
    gone: watch::Receiver<bool>,
    calls: Arc<Calls>,
    log: Log,
    /// Refusals that are still to be written.
    refusals: VecDeque<Vec<u8>>,
    patience: u32,
    /// Messages of a line that held several.
    waiting: VecDeque<ClientJsonRpcMessage>,
    batches: Batches,
    /// The session is of a generation that has them.
    has_batches: bool,
    /// A session has begun: the server takes notifications.
    begun: bool,
    /// Since when nothing more comes, and what is open gets no longer than this.
    until: Option<Instant>,
}

/// What is left of [`Lines`] for whoever ends the program.
#[derive(Debug)]
pub(super) struct Ends {
    /// Set to true: nothing more is read.
    pub(super) gone: watch::Sender<bool>,
    /// Closed when everything was written.
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
) -> io::Result<(Lines, Ends)> {
    // One message waits, one is read.
    let (to_server, incoming) = mpsc::channel(1);
    let (outgoing, to_client) = mpsc::channel(WAITING);
    let (gone_tx, gone) = watch::channel(false);
    let (done, written) = tokio::sync::oneshot::channel();
    let is_gone = gone_tx.clone();
    std::thread::Builder::new().name("mcp-read".to_owned()).spawn(move || read(input, &to_server))?;
    std::thread::Builder::new().name("mcp-write".to_owned()).spawn(move || {
        write(output, to_client, &is_gone);
        drop(done);
    })?;
    let lines = Lines {
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
    Ok((lines, Ends { gone: gone_tx, written }))
}

/// Reads lines until there are no more, or nobody wants them.
fn read(mut input: impl Read, to: &mpsc::Sender<Line>) {
    let mut buffer = vec![0; 64 << 10];
    let (mut line, mut scan, mut too_long) = (Vec::new(), Scan::default(), false);
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
            let next = if std::mem::take(&mut too_long) { Line::TooLong(scan) } else { Line::Whole(whole, scan) };
            if to.blocking_send(next).is_err() {
                return;
            }
        }
    }
}

/// Writes lines until there are no more, or nobody reads them.
fn write(mut output: impl Write, mut from: mpsc::Receiver<Vec<u8>>, gone: &watch::Sender<bool>) {
    while let Some(line) = from.blocking_recv() {
        if output.write_all(&line).and_then(|()| output.flush()).is_err() {
            gone.send_replace(true);
            return;
        }
    }
}

/// Puts a message on a line. What a terminal would act on stands escaped, as in every report.
fn line_of(message: &ServerJsonRpcMessage) -> Vec<u8> {
    let mut line = crate::wire::line(message).unwrap_or_default();
    line.push(b'\n');
    line
}

/// Puts a refusal on a line. JSON-RPC wants a null where nobody knows which request it is about; rmcp leaves it out.
fn refusal(error: &ErrorData, id: Option<&RequestId>) -> Vec<u8> {
    let mut line = crate::wire::line(&json!({"jsonrpc": "2.0", "id": id, "error": error})).unwrap_or_default();
    line.push(b'\n');
    line
}

/// What becomes of a line.
enum Taken {
    Message(Box<ClientJsonRpcMessage>),
    Refuse(Option<RequestId>, ErrorData),
    Ignore(&'static str),
}

impl Lines {
    /// Finds out what a line is.
    fn take(&mut self, line: Line) -> Taken {
        let (bytes, scan) = match line {
            Line::Whole(bytes, scan) => (bytes, scan),
            Line::TooLong(scan) => {
                let why = format!("the message is longer than {} MiB", MOST >> 20);
                return Taken::Refuse(id_of(&scan), ErrorData::invalid_request(why, None));
            }
        };
        let text = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&bytes).trim_ascii();
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

    /// Takes up several messages at once.
    fn batch(&mut self, text: &[u8]) -> Taken {
        let members = match serde_json::from_slice(text) {
            Ok(Value::Array(members)) => members,
            // None of it is taken up: which member is the bad one, and where the next begins, nobody can tell.
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
            let mut scan = Scan::default();
            scan.feed(text.as_bytes());
            match self.message(text.as_bytes(), &scan) {
                Taken::Message(message) => {
                    match message.as_ref() {
                        ClientJsonRpcMessage::Request(request) => open.push(request.id.clone()),
                        ClientJsonRpcMessage::Notification(n) => cancelled.extend(cancels(&n.notification).cloned()),
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
        // What was asked for and given up on the same line is not answered.
        open.retain(|id| !cancelled.contains(id));
        let line = self.batches.begin(open, answers);
        self.queue(line);
        Taken::Ignore("a batch, taken apart")
    }

    /// Finds out what a message is.
    fn message(&mut self, text: &[u8], scan: &Scan) -> Taken {
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
                        return Taken::Refuse(Some(request.id), ErrorData::new(ErrorCode(-32000), why, None));
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

    /// Keeps a refusal for writing.
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

    /// Returns the id of something that is refused, unless a request has it that is still to be answered: that would
    /// seem to be refused.
    fn unused(&self, id: Option<RequestId>) -> Option<RequestId> {
        id.filter(|id| !self.calls.is_open(id))
    }

    /// Keeps a line for writing. A client that reads nothing does not get everything.
    fn queue(&mut self, line: Option<Vec<u8>>) {
        if self.refusals.len() < MOST_REFUSALS {
            self.refusals.extend(line);
        }
    }
}

/// Waits until nobody reads what is written, or the program is to end.
async fn gone(gone: &mut watch::Receiver<bool>) {
    // The sender is gone only when the program ends.
    let _ = gone.wait_for(|gone| *gone).await;
}

/// Returns the id of the request that a notification gives up.
fn cancels(notification: &ClientNotification) -> Option<&RequestId> {
    match notification {
        ClientNotification::CancelledNotification(c) => c.params.request_id.as_ref(),
        _ => None,
    }
}

/// Returns an id as the protocol has it.
fn id_of(scan: &Scan) -> Option<RequestId> {
    match scan.id()? {
        Value::String(s) => Some(NumberOrString::String(s.into())),
        Value::Number(n) => n.as_i64().map(NumberOrString::Number),
        _ => None,
    }
}

/// Returns true if a request begins a session: the handshake, or a request that says itself which protocol it speaks.
fn begins(request: &ClientRequest) -> bool {
    let meta = request.get_meta();
    match request {
        ClientRequest::InitializeRequest(_) => true,
        ClientRequest::DiscoverRequest(_) => false,
        _ => {
            meta.missing_required_keys(&ProtocolVersion::V_2026_07_28).is_empty()
                && meta.protocol_version().is_some_and(|v| ProtocolVersion::KNOWN_VERSIONS.contains(&v))
        }
    }
}

/// Says why something is not read: no JSON, or JSON with what this program does not hold (numbers as large as 1e400,
/// halves of characters, a thousand levels). Nothing of the text is repeated.
fn no_json(why: &serde_json::Error) -> ErrorData {
    ErrorData::parse_error(format!("the message cannot be read as JSON: {why}"), None)
}

/// Says what is wrong with a line that is no message of the protocol.
fn no_message(text: &[u8], scan: &Scan) -> Taken {
    let value = match serde_json::from_slice::<Value>(text) {
        Ok(value) => value,
        // What answers or notifies is not answered, however broken it is.
        Err(_) if scan.answers() => return Taken::Ignore("a response that is not valid JSON"),
        Err(_) if scan.notifies() => return Taken::Ignore("a notification that is not valid JSON"),
        Err(e) => return Taken::Refuse(id_of(scan).filter(|_| scan.asks()), no_json(&e)),
    };
    match &value {
        Value::Array(_) => Taken::Refuse(
            None,
            ErrorData::invalid_request("batches are not taken: send each message on a line of its own", None),
        ),
        Value::Object(o) if o.contains_key("result") || o.contains_key("error") => Taken::Ignore("an invalid response"),
        Value::Object(o) if o.contains_key("method") && !o.contains_key("id") => {
            Taken::Ignore("an invalid notification")
        }
        _ => {
            let why = "no JSON-RPC 2.0 message: jsonrpc, id and method are needed, and params is an object";
            Taken::Refuse(id_of(scan), ErrorData::invalid_request(why, None))
        }
    }
}

impl Transport<RoleServer> for Lines {
    type Error = io::Error;

    fn send(&mut self, item: ServerJsonRpcMessage) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
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
        // A line is made when there is room for it: what a client does not read is not worth making.
        let line = match &answered {
            Some(id) if self.batches.holds(id) => self.batches.answer(id, line_of(&item)).unwrap_or_else(Some).map(Ok),
            _ => Some(Err(item)),
        };
        let outgoing = self.outgoing.clone();
        let calls = Arc::clone(&self.calls);
        async move {
            let sent = match line {
                Some(line) => {
                    outgoing.reserve().await.map(|room| room.send(line.unwrap_or_else(|item| line_of(&item))))
                }
                None => Ok(()),
            };
            if let Some(id) = answered {
                calls.end(&id);
            }
            sent.map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe))
        }
    }

    /// Returns the next message. Nothing is lost when the future is dropped and made again.
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
                // A client that does not read is heard nevertheless: it may go away.
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
