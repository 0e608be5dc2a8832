//! A model server on this machine: real HTTP, scripted answers, and a record of everything that
//! reached it.
//!
//! ```ignore
//! let server = Server::start(|request| request.review(&[finding("src/a.rs", 3, "let x = 1;")]));
//! repo.write(".claude-reviewer.toml", server.policy("openai"));
//! ```
//!
//! It speaks Messages, Chat Completions, Responses and `streamGenerateContent`, selected by path,
//! and streamed on request. An answer is a list of [`Step`]s, so that it can also be slow, invalid,
//! endless or cut off.

mod reply;
mod streams;

use claude_reviewer::policy::BackendKind;
pub use reply::{chunk, event, head};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
pub use streams::{chat_events, events, google_events, responses_events};

/// The kinds of backends whose dialects the server speaks.
pub const KINDS: [BackendKind; 3] = [
    BackendKind::Anthropic,
    BackendKind::OpenAi,
    BackendKind::Google,
];
/// Bytes of a request, at most; more ends the connection.
const MAX_REQUEST: usize = 64 << 20;

/// A running server; it ends when it is dropped.
pub struct Server {
    address: SocketAddr,
    shared: Arc<Shared>,
}

/// A request.
#[derive(Clone, Debug)]
pub struct Request {
    /// Index of the request.
    pub number: usize,
    /// Index of its connection.
    pub connection: usize,
    pub at: Instant,
    pub method: String,
    /// Path with the query.
    pub path: String,
    /// Headers; names in lower case.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

/// The reaction of a server to a request.
#[derive(Clone, Debug, Default)]
pub struct Reply(pub Vec<Step>);

/// A part of an answer.
#[derive(Clone, Debug)]
pub enum Step {
    Send(Vec<u8>),
    Wait(Duration),
    /// Sends the bytes this number of times, with a pause before each.
    Repeat(Vec<u8>, usize, Duration),
    /// Closes the connection normally.
    Close,
    /// Resets the connection.
    Reset,
}

struct Shared {
    handler: Box<dyn Fn(&Request) -> Reply + Send + Sync>,
    tls: Option<Arc<rustls::ServerConfig>>,
    requests: Mutex<Vec<Request>>,
    connections: AtomicUsize,
    in_flight: AtomicUsize,
    most_in_flight: AtomicUsize,
    ended: AtomicBool,
}

impl Server {
    /// Starts a server on a free port of 127.0.0.1 that answers each request with the handler.
    pub fn start(handler: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> Self {
        Self::launch(Box::new(handler), None)
    }

    /// Starts a server that answers the requests in order; the last answer is repeated.
    pub fn script(replies: Vec<Reply>) -> Self {
        Self::start(move |request| replies[request.number.min(replies.len() - 1)].clone())
    }

    /// Starts a server with TLS.
    pub fn tls(
        config: rustls::ServerConfig,
        handler: impl Fn(&Request) -> Reply + Send + Sync + 'static,
    ) -> Self {
        Self::launch(Box::new(handler), Some(Arc::new(config)))
    }

    fn launch(
        handler: Box<dyn Fn(&Request) -> Reply + Send + Sync>,
        tls: Option<Arc<rustls::ServerConfig>>,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared {
            handler,
            tls,
            requests: Mutex::default(),
            connections: AtomicUsize::new(0),
            in_flight: AtomicUsize::new(0),
            most_in_flight: AtomicUsize::new(0),
            ended: AtomicBool::new(false),
        });
        let server = Arc::clone(&shared);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                if server.ended.load(Ordering::SeqCst) {
                    return;
                }
                let Ok(stream) = stream else { continue };
                let number = server.connections.fetch_add(1, Ordering::SeqCst);
                let server = Arc::clone(&server);
                std::thread::spawn(move || server.accept(&stream, number));
            }
        });
        Self { address, shared }
    }

    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// Returns the address to configure: `http://127.0.0.1:PORT`.
    pub fn url(&self) -> String {
        let scheme = if self.shared.tls.is_some() {
            "https"
        } else {
            "http"
        };
        format!("{scheme}://127.0.0.1:{}", self.port())
    }

    /// Returns a policy that enables this server as `anthropic`, `openai` or `google`, with one
    /// retry. More keys of that backend can be appended.
    pub fn policy(&self, kind: &str) -> String {
        format!(
            "version = 1\n[review]\nbackends = [\"{kind}\"]\n[backend.{kind}]\nbase_url = \"{}\"\nmodel = \"stub\"\n\
             max_retries = 1\n",
            self.url()
        )
    }

    /// Returns the requests so far, without those for lists of models.
    pub fn questions(&self) -> Vec<Request> {
        self.requests()
            .into_iter()
            .filter(|r| r.method == "POST")
            .collect()
    }

    /// Returns the requests so far.
    pub fn requests(&self) -> Vec<Request> {
        self.shared.requests.lock().unwrap().clone()
    }

    pub fn connections(&self) -> usize {
        self.shared.connections.load(Ordering::SeqCst)
    }

    /// Returns the largest number of concurrent requests.
    pub fn most_in_flight(&self) -> usize {
        self.shared.most_in_flight.load(Ordering::SeqCst)
    }

    /// Returns true if a text occurs in any request: in a path, a header or a body.
    pub fn saw(&self, text: &str) -> bool {
        self.requests().iter().any(|r| {
            r.path.contains(text)
                || r.headers
                    .iter()
                    .any(|(name, value)| name.contains(text) || value.contains(text))
                || String::from_utf8_lossy(&r.body).contains(text)
        })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shared.ended.store(true, Ordering::SeqCst);
        // Wakes the thread that accepts connections.
        let _ = TcpStream::connect(self.address);
    }
}

impl Shared {
    fn accept(&self, stream: &TcpStream, connection: usize) {
        // The answers of a dropped server end; a closed client ends them too.
        stream
            .set_read_timeout(Some(Duration::from_secs(120)))
            .unwrap();
        stream.set_nodelay(true).unwrap();
        match &self.tls {
            None => self.serve(&mut { stream }, stream, connection),
            Some(config) => {
                let mut session = rustls::ServerConnection::new(Arc::clone(config)).unwrap();
                let mut socket = stream;
                self.serve(
                    &mut rustls::Stream::new(&mut session, &mut socket),
                    stream,
                    connection,
                );
            }
        }
    }

    /// Answers requests until either side closes the connection.
    fn serve<S: Read + Write>(&self, stream: &mut S, socket: &TcpStream, connection: usize) {
        while let Some((mut request, rest)) = read_head(stream) {
            request.connection = connection;
            if request.header("expect").is_some() {
                let _ = stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n");
            }
            if !read_body(stream, &mut request, rest) {
                return;
            }
            let now = self.in_flight.fetch_add(1, Ordering::SeqCst) + 1;
            self.most_in_flight.fetch_max(now, Ordering::SeqCst);
            {
                let mut all = self.requests.lock().unwrap();
                request.number = all.len();
                all.push(request.clone());
            }
            let reply = (self.handler)(&request);
            let goes_on = reply.0.iter().all(|step| self.step(stream, socket, step));
            self.in_flight.fetch_sub(1, Ordering::SeqCst);
            if !goes_on {
                return;
            }
        }
    }

    /// Performs one step; returns true if more can follow.
    fn step<S: Read + Write>(&self, stream: &mut S, socket: &TcpStream, step: &Step) -> bool {
        match step {
            Step::Send(bytes) => stream
                .write_all(bytes)
                .and_then(|()| stream.flush())
                .is_ok(),
            Step::Wait(time) => self.wait(*time),
            Step::Repeat(bytes, times, pause) => (0..*times).all(|_| {
                self.wait(*pause)
                    && stream
                        .write_all(bytes)
                        .and_then(|()| stream.flush())
                        .is_ok()
            }),
            Step::Close => {
                let _ = stream.flush();
                let _ = socket.shutdown(std::net::Shutdown::Both);
                false
            }
            Step::Reset => {
                // Buffered data is discarded, and the client gets a reset.
                let _ = rustix::net::sockopt::set_socket_linger(socket, Some(Duration::ZERO));
                false
            }
        }
    }

    /// Waits; returns true if the server still runs.
    fn wait(&self, time: Duration) -> bool {
        let until = Instant::now() + time;
        while let Some(left) = until
            .checked_duration_since(Instant::now())
            .filter(|l| !l.is_zero())
        {
            if self.ended.load(Ordering::SeqCst) {
                return false;
            }
            std::thread::sleep(left.min(Duration::from_millis(20)));
        }
        true
    }
}

/// Reads up to the empty line; returns the part of the body that was read with it.
fn read_head<S: Read>(stream: &mut S) -> Option<(Request, Vec<u8>)> {
    let mut bytes = Vec::new();
    let mut buffer = [0; 16 << 10];
    let end = loop {
        if let Some(end) = bytes.windows(4).position(|w| w == b"\r\n\r\n") {
            break end;
        }
        match stream.read(&mut buffer) {
            Ok(n) if n > 0 && bytes.len() < MAX_REQUEST => bytes.extend_from_slice(&buffer[..n]),
            _ => return None,
        }
    };
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let mut lines = head.split("\r\n");
    let mut first = lines.next()?.split(' ');
    let request = Request {
        number: 0,
        connection: 0,
        at: Instant::now(),
        method: first.next()?.to_owned(),
        path: first.next()?.to_owned(),
        headers: lines
            .filter_map(|l| l.split_once(':'))
            .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
            .collect(),
        body: Vec::new(),
    };
    Some((request, bytes[end + 4..].to_vec()))
}

fn read_body<S: Read>(stream: &mut S, request: &mut Request, rest: Vec<u8>) -> bool {
    let length: usize = request
        .header("content-length")
        .and_then(|l| l.parse().ok())
        .unwrap_or(0);
    request.body = rest;
    let mut buffer = [0; 64 << 10];
    while request.body.len() < length {
        match stream.read(&mut buffer) {
            Ok(n) if n > 0 && length <= MAX_REQUEST => request.body.extend_from_slice(&buffer[..n]),
            _ => return false,
        }
    }
    true
}

/// The API of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    Anthropic,
    OpenAi,
    /// OpenAI's Responses.
    Responses,
    Google,
}

/// An answer of a model, for [`Request::answer`].
#[derive(Clone, Debug)]
pub struct Says {
    pub text: String,
    /// Calls of tools: name and arguments.
    pub calls: Vec<(String, Value)>,
    /// Stop reason in the dialect's terms; `None` for a normal end.
    pub stop: Option<String>,
    /// Input tokens (including cached ones), cached ones among them, and output tokens.
    pub tokens: (u64, u64, u64),
}

impl Default for Says {
    fn default() -> Self {
        Self {
            text: String::new(),
            calls: Vec::new(),
            stop: None,
            tokens: (1000, 0, 100),
        }
    }
}

impl Request {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(n, _)| n == name)
            .map(|(_, v)| v.as_str())
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    pub fn dialect(&self) -> Dialect {
        match self.path.split('?').next().unwrap_or_default() {
            p if p.ends_with("/messages") => Dialect::Anthropic,
            p if p.ends_with(":streamGenerateContent") => Dialect::Google,
            p if p.ends_with("/responses") => Dialect::Responses,
            _ => Dialect::OpenAi,
        }
    }

    /// Returns the text of the prompt, instructions first, one part a line.
    pub fn prompt(&self) -> String {
        let body = self.json();
        let mut parts = Vec::new();
        for key in [
            "system",
            "systemInstruction",
            "instructions",
            "messages",
            "contents",
            "input",
        ] {
            texts(&body[key], &mut parts);
        }
        parts.join("\n")
    }

    /// Returns the value of the last line `nonce: VALUE` of the prompt.
    pub fn nonce(&self) -> String {
        let prompt = self.prompt();
        let line = prompt.lines().rev().find_map(|l| l.strip_prefix("nonce: "));
        line.unwrap_or_default().trim().to_owned()
    }

    /// Returns the paths of the files in the prompt.
    pub fn files(&self) -> Vec<String> {
        files_of(&self.prompt())
    }

    /// Returns the document that a well-behaved model answers: the nonce, the files of the prompt,
    /// and findings.
    pub fn document(&self, findings: &[Value]) -> Value {
        json!({
            "nonce": self.nonce(), "summary": "Looked at everything.", "files_reviewed": self.files(),
            "not_reviewed": [], "findings": findings, "design_compliance": null, "missing_requirements": [],
        })
    }

    /// Returns true if the request asks about one claim, not for a review.
    pub fn is_refutation(&self) -> bool {
        // In the schema of the answer, or in the prompt if there are tools.
        String::from_utf8_lossy(&self.body).contains("\"refuted\"")
            || self.prompt().contains("\"refuted\"")
    }

    /// Answers whether a claim is disputed.
    pub fn verdict(&self, refuted: bool) -> Reply {
        let quote = if refuted {
            self.claimed_line()
        } else {
            String::new()
        };
        let reason = "Looked at it again.";
        self.text(
            &json!({ "nonce": self.nonce(), "refuted": refuted, "reason": reason, "quote": quote })
                .to_string(),
        )
    }

    /// Returns the line of code that a claim quotes.
    pub fn claimed_line(&self) -> String {
        let prompt = self.prompt();
        prompt
            .lines()
            .rev()
            .find_map(|l| l.strip_prefix("quote: "))
            .unwrap_or_default()
            .to_owned()
    }

    /// Answers with a review that has those findings that are in the shown files; upholds a single
    /// claim.
    pub fn review(&self, findings: &[Value]) -> Reply {
        if self.is_refutation() {
            return self.verdict(false);
        }
        let shown = self.files();
        let findings: Vec<_> = findings
            .iter()
            .filter(|f| {
                f["file"]
                    .as_str()
                    .is_none_or(|f| shown.iter().any(|s| s == f))
            })
            .cloned()
            .collect();
        let findings = findings.as_slice();
        self.text(&self.document(findings).to_string())
    }

    /// Answers with any text.
    pub fn text(&self, text: &str) -> Reply {
        self.answer(&Says {
            text: text.to_owned(),
            ..Says::default()
        })
    }

    /// Answers with calls of tools: name and arguments.
    pub fn calls(&self, calls: &[(&str, Value)]) -> Reply {
        let calls = calls
            .iter()
            .map(|(name, arguments)| ((*name).to_owned(), arguments.clone()))
            .collect();
        self.answer(&Says {
            calls,
            ..Says::default()
        })
    }

    /// Answers in the dialect of the request; streamed on request.
    pub fn answer(&self, says: &Says) -> Reply {
        let body = self.body_of(says);
        match self.dialect() {
            Dialect::Google => Reply::events(&google_events(&body)),
            _ if self.json()["stream"] != true => Reply::json(200, &body),
            Dialect::Anthropic => Reply::events(&events(&body)),
            Dialect::OpenAi => Reply::events(&chat_events(&body)),
            Dialect::Responses => Reply::events(&responses_events(&body)),
        }
    }

    /// Returns the body of an unstreamed answer.
    pub fn body_of(&self, says: &Says) -> Value {
        let (input, cached, output) = says.tokens;
        // No provider counts fewer tokens than the prompt needs.
        let input = if input == Says::default().tokens.0 {
            input.max(self.body.len() as u64 / 12 + 1)
        } else {
            input
        };
        let stop = |done: &str, calls: &str| {
            let usual = if says.calls.is_empty() { done } else { calls };
            says.stop.clone().unwrap_or_else(|| usual.to_owned())
        };
        match self.dialect() {
            Dialect::Anthropic => {
                let mut content = Vec::new();
                if !says.text.is_empty() {
                    content.push(json!({ "type": "text", "text": says.text }));
                }
                content.extend(says.calls.iter().enumerate().map(|(i, (name, input))| {
                    json!({ "type": "tool_use", "id": format!("toolu_{}_{i}", self.number), "name": name, "input": input })
                }));
                json!({
                    "id": "msg_1", "type": "message", "role": "assistant", "model": "stub-1", "content": content,
                    "stop_reason": stop("end_turn", "tool_use"),
                    "usage": {
                        "input_tokens": input - cached, "cache_creation_input_tokens": 0,
                        "cache_read_input_tokens": cached, "output_tokens": output,
                    },
                })
            }
            Dialect::OpenAi => {
                let mut message =
                    json!({ "role": "assistant", "content": says.text, "refusal": null });
                if !says.calls.is_empty() {
                    let calls = says.calls.iter().enumerate().map(|(i, (name, arguments))| {
                        json!({
                            "id": format!("call_{}_{i}", self.number), "type": "function",
                            "function": { "name": name, "arguments": arguments.to_string() },
                        })
                    });
                    message["content"] = Value::Null;
                    message["tool_calls"] = calls.collect();
                }
                json!({
                    "id": "c1", "object": "chat.completion", "model": "stub-1",
                    "choices": [{ "index": 0, "message": message, "finish_reason": stop("stop", "tool_calls") }],
                    "usage": {
                        "prompt_tokens": input, "completion_tokens": output, "total_tokens": input + output,
                        "prompt_tokens_details": { "cached_tokens": cached },
                    },
                })
            }
            Dialect::Responses => {
                let mut items = vec![json!({ "type": "reasoning", "id": "rs_1", "summary": [] })];
                if !says.text.is_empty() {
                    let content =
                        json!([{ "type": "output_text", "text": says.text, "annotations": [] }]);
                    items.push(json!({ "type": "message", "id": "msg_1", "role": "assistant", "content": content }));
                }
                items.extend(says.calls.iter().enumerate().map(|(i, (name, arguments))| {
                    let id = format!("call_{}_{i}", self.number);
                    json!({ "type": "function_call", "id": format!("fc_{i}"), "call_id": id, "name": name, "arguments": arguments.to_string() })
                }));
                let (status, why) = match &says.stop {
                    None => ("completed", Value::Null),
                    Some(reason) => ("incomplete", json!({ "reason": reason })),
                };
                json!({
                    "id": "resp_1", "object": "response", "model": "stub-1", "error": null, "output": items,
                    "status": status, "incomplete_details": why,
                    "usage": {
                        "input_tokens": input, "input_tokens_details": { "cached_tokens": cached },
                        "output_tokens": output,
                    },
                })
            }
            Dialect::Google => {
                let mut parts = vec![json!({ "text": "thinking about it", "thought": true })];
                if !says.text.is_empty() {
                    parts.push(json!({ "text": says.text }));
                }
                let call = |(name, args): &(String, Value)| json!({ "functionCall": { "name": name, "args": args }, "thoughtSignature": "c2ln" });
                parts.extend(says.calls.iter().map(call));
                json!({
                    "candidates": [{
                        "content": { "role": "model", "parts": parts }, "finishReason": stop("STOP", "STOP"),
                    }],
                    "modelVersion": "stub-1",
                    "usageMetadata": {
                        "promptTokenCount": input, "cachedContentTokenCount": cached,
                        "candidatesTokenCount": output - 10, "thoughtsTokenCount": 10,
                    },
                })
            }
        }
    }
}

/// Collects the texts below `text` and `content`, and texts of messages, in order.
fn texts(value: &Value, out: &mut Vec<String>) {
    match value {
        Value::String(text) => out.push(text.clone()),
        Value::Array(list) => list.iter().for_each(|v| texts(v, out)),
        Value::Object(object) => {
            for key in ["text", "content", "parts"] {
                if let Some(value) = object.get(key) {
                    texts(value, out);
                }
            }
        }
        _ => {}
    }
}

/// Returns the paths of the files in a prompt: lines `file: NAME`, with the state in brackets.
pub fn files_of(prompt: &str) -> Vec<String> {
    let marks = [
        " (added)",
        " (deleted)",
        " (a symbolic link)",
        " (executable)",
        " (no longer executable)",
        " (a part)",
    ];
    let mut files = Vec::new();
    for line in prompt.lines() {
        let Some(mut path) = line.strip_prefix("file: ") else {
            continue;
        };
        while let Some(rest) = marks.iter().find_map(|m| path.strip_suffix(m)) {
            path = rest;
        }
        let path = path
            .split(" (renamed from ")
            .next()
            .unwrap()
            .split(" (copied from ")
            .next()
            .unwrap();
        if !files.iter().any(|f| f == path) {
            files.push(path.to_owned());
        }
    }
    files
}

/// Returns a finding in the form of a model, which tests modify.
pub fn finding(file: &str, line: u32, quote: &str) -> Value {
    json!({
        "file": file, "line": line, "end_line": null, "quote": quote, "severity": "major", "category": "bug",
        "cwe": null, "title": "Wrong result", "message": "This gives a wrong result.", "failure": "input 0 → a panic",
        "suggestion": "Check it first.", "replacement": null, "convention": null,
    })
}

/// Returns a port of this machine that refuses connections. It stays bound, so that no server of
/// another test gets it.
pub fn closed_port() -> u16 {
    use rustix::net::{AddressFamily, SocketType, bind, getsockname, socket};
    let taken = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    bind(&taken, &SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
    let port = SocketAddr::try_from(getsockname(&taken).unwrap())
        .unwrap()
        .port();
    std::mem::forget(taken);
    port
}
