//! Servers with the batch interfaces of Anthropic and OpenAI, as the providers document them. Every
//! request is checked; one that the documentation does not allow is recorded as a violation and
//! rejected.
//!
//! Sources: <https://platform.claude.com/docs/en/api/creating-message-batches>,
//! <https://platform.openai.com/docs/api-reference/batch>,
//! <https://platform.openai.com/docs/api-reference/files/create>.

use crate::loopback::{Reply, Request, Says, Server};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// The provider that a server imitates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Anthropic,
    /// OpenAI, with the path of the interface that the requests use.
    OpenAi(&'static str),
}

pub const CHAT: Kind = Kind::OpenAi("/v1/chat/completions");
pub const RESPONSES: Kind = Kind::OpenAi("/v1/responses");

/// One request of a batch.
#[derive(Clone, Debug)]
pub struct Line {
    pub id: String,
    /// The same request in the ordinary interface.
    pub request: Request,
}

/// A submitted batch.
#[derive(Clone, Debug)]
pub struct Batch {
    pub id: String,
    pub lines: Vec<Line>,
    pub metadata: Value,
    /// Looks at the batch so far.
    pub looks: usize,
    /// Time of the submission, in seconds since 1970.
    pub created: i64,
    /// Looks at the time of its cancellation.
    pub canceled_at: Option<usize>,
}

impl Batch {
    /// Returns true if the batch has ended. A canceled one ends some looks later, since
    /// a run that waits for it looks at it too, before the command that cancels it does.
    fn is_over(&self, script: &Script) -> bool {
        self.looks > script.unfinished || self.canceled_at.is_some_and(|at| self.looks > at + 8)
    }
}

#[derive(Default)]
pub struct State {
    pub batches: Vec<Batch>,
    files: Vec<(String, Vec<Line>)>,
    pub violations: Vec<String>,
    /// Looks that were rejected so far.
    rejected: usize,
    /// Requests for results that were refused so far.
    refused: usize,
    /// Submissions that were not answered so far, and lists that were refused.
    withheld: usize,
    unlisted: usize,
    /// True if the batches were deleted.
    is_deleted: bool,
}

/// A function that returns the result of a request of a batch, by its position.
type ResultOf = Box<dyn Fn(&Batch, usize) -> Outcome + Send + Sync>;
/// A function that returns other bytes for the results of a batch.
type ChangedResults = Box<dyn Fn(&Batch, String) -> Vec<u8> + Send + Sync>;

/// The deviations of a server from the ordinary one.
pub struct Script {
    /// Looks at a batch that find it unfinished; `usize::MAX` for a batch that never ends.
    pub unfinished: usize,
    /// Returns the result of a request, by its position: the body of an answer, or a raw line.
    pub result: ResultOf,
    /// Changes the bytes of the results.
    pub results: ChangedResults,
    /// Looks at a batch that the server rejects as temporarily impossible.
    pub busy: usize,
    /// Requests for the results of Anthropic's batches that are refused.
    pub refused_results: usize,
    /// The status of an OpenAI batch that has ended.
    pub ended: &'static str,
    /// An answer in place of the one to a submission, which is accepted nevertheless.
    pub submitted: Option<Reply>,
    /// Submissions that are accepted, but never answered.
    pub withheld: usize,
    /// Submissions that are neither accepted nor answered.
    pub dropped: usize,
    /// Requests for the list of batches that are refused.
    pub unlisted: usize,
    /// Batches of one page of the list, at most.
    pub page: usize,
    /// Requests of a batch that have an answer when it is canceled.
    pub answered_first: usize,
    /// The address that Anthropic's batches name for their results.
    pub results_url: Option<String>,
}

/// The result of a request.
pub enum Outcome {
    Answer(Value),
    Error(&'static str, &'static str),
    Expired,
    Canceled,
    Missing,
}

impl Default for Script {
    fn default() -> Self {
        Self {
            unfinished: 2,
            result: Box::new(|batch, i| Outcome::Answer(answer(&batch.lines[i].request, &[]))),
            results: Box::new(|_, lines| lines.into_bytes()),
            busy: 0,
            refused_results: 0,
            ended: "completed",
            submitted: None,
            withheld: 0,
            dropped: 0,
            unlisted: 0,
            page: usize::MAX,
            answered_first: 0,
            results_url: None,
        }
    }
}

/// Returns the body of an ordinary answer with these findings, or one that upholds a claim.
pub fn answer(request: &Request, findings: &[Value]) -> Value {
    let text = match request.is_refutation() {
        true => {
            json!({ "nonce": request.nonce(), "refuted": false, "reason": "Looked at it again.", "quote": "" })
        }
        false => {
            let shown = request.files();
            let theirs: Vec<Value> = findings
                .iter()
                .filter(|f| shown.iter().any(|s| f["file"] == s.as_str()))
                .cloned()
                .collect();
            request.document(&theirs)
        }
    };
    request.body_of(&Says {
        text: text.to_string(),
        tokens: (100_000, 0, 1_000),
        ..Says::default()
    })
}

/// A server with a batch interface.
pub struct Vendor {
    pub server: Server,
    pub state: Arc<Mutex<State>>,
    pub kind: Kind,
}

impl Vendor {
    /// Starts a server.
    pub fn start(kind: Kind, script: Script) -> Self {
        let state = Arc::new(Mutex::new(State::default()));
        let shared = Arc::clone(&state);
        let server = Server::start(move |request| {
            let mut state = shared.lock().unwrap();
            let reply = match kind {
                Kind::Anthropic => anthropic(&mut state, &script, request),
                Kind::OpenAi(path) => openai(&mut state, &script, path, request),
            };
            reply.unwrap_or_else(|violation| {
                if state.is_deleted && violation.starts_with("no batch") {
                    return Reply::error(404, "not_found_error", "not found");
                }
                let what = format!("{} {}: {violation}", request.method, request.path);
                state.violations.push(what);
                Reply::error(400, "invalid_request_error", &violation)
            })
        });
        Self {
            server,
            state,
            kind,
        }
    }

    /// Returns the name of the backend.
    pub fn name(&self) -> &'static str {
        match self.kind {
            Kind::Anthropic => "anthropic",
            Kind::OpenAi(_) => "openai",
        }
    }

    /// Returns the batches that were submitted. Fails if a request broke the documentation.
    #[track_caller]
    pub fn batches(&self) -> Vec<Batch> {
        let state = self.state.lock().unwrap();
        assert_eq!(state.violations, Vec::<String>::new());
        state.batches.clone()
    }

    /// Adds a batch of another program: like the first one, with other IDs. `count` is the number
    /// of its requests.
    pub fn add_foreign(&self, name: &str, lines: &[Line], has_ended: bool) {
        let mut state = self.state.lock().unwrap();
        let lines = lines.iter().enumerate().map(|(i, line)| Line {
            id: format!("foreign-{i}"),
            request: line.request.clone(),
        });
        state.batches.push(Batch {
            id: name.to_owned(),
            lines: lines.collect(),
            metadata: Value::Null,
            looks: if has_ended { usize::MAX } else { 0 },
            created: now(),
            canceled_at: None,
        });
    }

    /// Moves the creation of the batches of other programs by a number of seconds.
    pub fn postpone_foreign(&self, seconds: i64) {
        let mut state = self.state.lock().unwrap();
        let foreign = |b: &&mut Batch| b.id.starts_with("foreign");
        let batches = state.batches.iter_mut().filter(foreign);
        batches.for_each(|b| b.created += seconds);
    }

    /// Deletes all batches. The server answers 404 when it is asked about one.
    pub fn delete_all(&self) {
        let mut state = self.state.lock().unwrap();
        state.batches.clear();
        state.is_deleted = true;
    }

    /// Ends all batches.
    pub fn end_all(&self) {
        let mut state = self.state.lock().unwrap();
        state.batches.iter_mut().for_each(|b| b.looks = usize::MAX);
    }

    pub fn looks(&self) -> usize {
        let state = self.state.lock().unwrap();
        let looks = state.batches.iter().map(|b| b.looks);
        looks.fold(0, usize::saturating_add)
    }
}

type Checked = Result<Reply, String>;

fn check(holds: bool, violation: impl Into<String>) -> Result<(), String> {
    if holds { Ok(()) } else { Err(violation.into()) }
}

/// Checks that an object has exactly these keys.
fn keys(object: &Value, expected: &[&str]) -> Result<(), String> {
    let found: BTreeSet<&str> = object
        .as_object()
        .ok_or("not an object")?
        .keys()
        .map(String::as_str)
        .collect();
    let expected: BTreeSet<&str> = expected.iter().copied().collect();
    check(found == expected, format!("keys {found:?}"))
}

/// Checks that an object has no other keys than these.
fn only_keys(object: &Value, known: &[&str]) -> Result<(), String> {
    let object = object.as_object().ok_or("not an object")?;
    let unknown: Vec<_> = object
        .keys()
        .filter(|k| !known.contains(&k.as_str()))
        .collect();
    check(unknown.is_empty(), format!("unknown keys {unknown:?}"))
}

/// Checks an ID of a request: `^[a-zA-Z0-9_-]{1,64}$`, and unique.
fn custom_id(value: &Value, seen: &mut BTreeSet<String>) -> Result<String, String> {
    let id = value.as_str().ok_or("custom_id is not a string")?;
    let is_valid = (1..=64).contains(&id.len())
        && id
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
    check(is_valid, format!("custom_id {id}"))?;
    check(seen.insert(id.to_owned()), format!("custom_id {id} twice"))?;
    Ok(id.to_owned())
}

fn is_json(request: &Request) -> bool {
    request.header("content-type") == Some("application/json")
}

/// Returns a request in the ordinary interface.
fn ordinary(number: usize, path: &str, body: &Value) -> Request {
    Request {
        number,
        connection: 0,
        at: Instant::now(),
        method: "POST".to_owned(),
        path: path.to_owned(),
        headers: Vec::new(),
        body: body.to_string().into_bytes(),
    }
}

fn anthropic(state: &mut State, script: &Script, request: &Request) -> Checked {
    check(
        request.header("x-api-key") == Some(&super::key()),
        "x-api-key",
    )?;
    check(
        request.header("anthropic-version") == Some("2023-06-01"),
        "anthropic-version",
    )?;
    check(request.header("authorization").is_none(), "authorization")?;
    let (path, query) = request.path.split_once('?').unwrap_or((&request.path, ""));
    let path: Vec<&str> = path.trim_start_matches('/').split('/').collect();
    let is_list = request.method == "GET" && path == ["v1", "messages", "batches"];
    check(is_list || query.is_empty(), "query")?;
    match (request.method.as_str(), path.as_slice()) {
        ("POST", ["v1", "messages", "batches"]) if !is_accepted(state, script) => Ok(silence()),
        ("GET", ["v1", "messages", "batches"]) if state.unlisted < script.unlisted => {
            state.unlisted += 1;
            Ok(Reply::error(403, "permission_error", "no list"))
        }
        ("GET", ["v1", "messages", "batches"]) => {
            let list = listed(state, script, (query, 1000, "after_id"))?;
            Ok(Reply::json(200, &list(&|b| message_batch(b, script))))
        }
        ("POST", ["v1", "messages", "batches", id, "cancel"]) => {
            check(request.body.is_empty(), "a body")?;
            match cancel(state, script, id)? {
                Some(batch) => Ok(Reply::json(200, &message_batch(&batch, script))),
                None => Ok(Reply::error(
                    400,
                    "invalid_request_error",
                    "the batch has ended",
                )),
            }
        }
        ("POST", ["v1", "messages", "batches"]) => {
            check(is_json(request), "content-type")?;
            let body = request.json();
            keys(&body, &["requests"])?;
            let requests = body["requests"].as_array().ok_or("requests")?;
            check(
                (1..=100_000).contains(&requests.len()) && request.body.len() <= 256_000_000,
                "size",
            )?;
            let (mut seen, mut lines) = (BTreeSet::new(), Vec::new());
            for (i, one) in requests.iter().enumerate() {
                keys(one, &["custom_id", "params"])?;
                let params = &one["params"];
                only_keys(
                    params,
                    &["model", "max_tokens", "messages", "system", "output_config"],
                )?;
                check(params["model"].is_string(), "model")?;
                check(params["max_tokens"].as_u64() > Some(0), "max_tokens")?;
                check(params["messages"][0]["role"] == "user", "messages")?;
                lines.push(Line {
                    id: custom_id(&one["custom_id"], &mut seen)?,
                    request: ordinary(i, "/v1/messages", params),
                });
            }
            let batch = submitted(state, "msgbatch_01", lines, Value::Null);
            let reply = Reply::json(200, &message_batch(&batch, script));
            Ok(answered(state, script, reply))
        }
        ("GET", ["v1", "messages", "batches", _]) if state.rejected < script.busy => {
            state.rejected += 1;
            let header = ("retry-after-ms", "3");
            Ok(Reply::error_with(503, header, "api_error", "try later"))
        }
        ("GET", ["v1", "messages", "batches", id]) => {
            let batch = look(state, id)?;
            Ok(Reply::json(200, &message_batch(&batch, script)))
        }
        ("GET", ["v1", "messages", "batches", _, "results"])
            if state.refused < script.refused_results =>
        {
            state.refused += 1;
            Ok(Reply::error(403, "permission_error", "not now"))
        }
        ("GET", ["v1", "messages", "batches", id, "results"]) => {
            let batch = find(state, id)?;
            check(batch.is_over(script), "results before the end")?;
            let lines: String = outcomes(&batch, script, |outcome| match outcome {
                Outcome::Answer(message) => json!({ "type": "succeeded", "message": message }),
                Outcome::Error(kind, message) => json!({
                    "type": "errored",
                    "error": {
                        "type": "error", "request_id": null,
                        "error": { "type": kind, "message": message },
                    },
                }),
                Outcome::Expired => json!({ "type": "expired" }),
                Outcome::Canceled => json!({ "type": "canceled" }),
                Outcome::Missing => Value::Null,
            })
            .into_iter()
            .map(|(id, result)| format!("{}\n", json!({ "custom_id": id, "result": result })))
            .collect();
            let lines = (script.results)(&batch, lines);
            let kind = ("content-type", "application/x-jsonl");
            Ok(Reply::with(200, &[kind], &lines))
        }
        _ => Err("not a request of the batch interface".to_owned()),
    }
}

/// Returns the results of a batch in reverse order: providers promise none.
fn outcomes(
    batch: &Batch,
    script: &Script,
    render: impl Fn(Outcome) -> Value,
) -> Vec<(String, Value)> {
    let lines = batch.lines.iter().enumerate().rev();
    lines
        .map(|(i, line)| {
            let is_canceled = batch.canceled_at.is_some() && i >= script.answered_first;
            let outcome = match is_canceled {
                true => Outcome::Canceled,
                false => (script.result)(batch, i),
            };
            (line.id.clone(), render(outcome))
        })
        .filter(|(_, result)| !result.is_null())
        .collect()
}

fn submitted(state: &mut State, prefix: &str, lines: Vec<Line>, metadata: Value) -> Batch {
    let batch = Batch {
        id: format!("{prefix}{}", state.batches.len()),
        lines,
        metadata,
        looks: 0,
        created: now(),
        canceled_at: None,
    };
    state.batches.push(batch.clone());
    batch
}

fn find(state: &mut State, id: &str) -> Result<Batch, String> {
    let found = state.batches.iter().find(|b| b.id == id);
    found.cloned().ok_or(format!("no batch {id}"))
}

/// Returns the time in seconds since 1970.
fn now() -> i64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    i64::try_from(now.unwrap().as_secs()).unwrap()
}

/// Returns an answer that never comes.
fn silence() -> Reply {
    Reply::raw(Vec::new()).after(std::time::Duration::from_secs(3600))
}

/// Returns false for a submission that is neither accepted nor answered.
fn is_accepted(state: &mut State, script: &Script) -> bool {
    if state.withheld >= script.dropped {
        return true;
    }
    state.withheld += 1;
    false
}

/// Returns the answer to a submission that was accepted.
fn answered(state: &mut State, script: &Script, reply: Reply) -> Reply {
    if state.withheld < script.withheld {
        state.withheld += 1;
        return silence();
    }
    script.submitted.clone().unwrap_or(reply)
}

/// A function that renders a list of batches by a function that renders one.
type RenderList = Box<dyn Fn(&dyn Fn(&Batch) -> Value) -> Value>;

/// Returns a page of the list of batches, the newest first. The query is `limit` with the largest
/// allowed value, and the ID of the last batch of the page before.
fn listed(
    state: &State,
    script: &Script,
    (query, limit, cursor): (&str, usize, &str),
) -> Result<RenderList, String> {
    let rest = query
        .strip_prefix(&format!("limit={limit}"))
        .ok_or(format!("query {query}"))?;
    let after = rest.strip_prefix(&format!("&{cursor}="));
    check(rest.is_empty() || after.is_some(), format!("query {query}"))?;
    let mut all: Vec<Batch> = state.batches.iter().rev().cloned().collect();
    if let Some(after) = after {
        let position = all.iter().position(|b| b.id == after).ok_or("cursor")?;
        all.drain(..=position);
    }
    let has_more = all.len() > limit.min(script.page);
    all.truncate(limit.min(script.page));
    let id = |batch: Option<&Batch>| batch.map(|b| b.id.clone());
    let (first, last) = (id(all.first()), id(all.last()));
    Ok(Box::new(move |render| {
        let data: Vec<Value> = all.iter().map(render).collect();
        json!({ "object": "list", "data": data, "has_more": has_more, "first_id": first, "last_id": last })
    }))
}

/// Cancels a batch; `None` if it has ended.
fn cancel(state: &mut State, script: &Script, id: &str) -> Result<Option<Batch>, String> {
    let found = state.batches.iter_mut().find(|b| b.id == id);
    let batch = found.ok_or(format!("no batch {id}"))?;
    if batch.is_over(script) {
        return Ok(None);
    }
    batch.canceled_at = batch.canceled_at.or(Some(batch.looks));
    Ok(Some(batch.clone()))
}

/// Counts a look at a batch. Returns the batch.
fn look(state: &mut State, id: &str) -> Result<Batch, String> {
    let found = state.batches.iter_mut().find(|b| b.id == id);
    let batch = found.ok_or(format!("no batch {id}"))?;
    batch.looks = batch.looks.saturating_add(1);
    Ok(batch.clone())
}

fn message_batch(batch: &Batch, script: &Script) -> Value {
    let (count, is_over) = (batch.lines.len(), batch.is_over(script));
    let (processing, succeeded) = if is_over { (0, count) } else { (count, 0) };
    let created = jiff::Timestamp::from_second(batch.created)
        .unwrap()
        .to_string();
    let status = match (is_over, batch.canceled_at) {
        (true, _) => "ended",
        (false, Some(_)) => "canceling",
        (false, None) => "in_progress",
    };
    let url = format!(
        "https://api.anthropic.com/v1/messages/batches/{}/results",
        batch.id
    );
    json!({
        "id": batch.id, "type": "message_batch",
        "processing_status": status,
        "request_counts": {
            "processing": processing, "succeeded": succeeded, "errored": 0, "canceled": 0, "expired": 0,
        },
        "ended_at": null, "created_at": created, "expires_at": created,
        "archived_at": null, "cancel_initiated_at": batch.canceled_at.map(|_| created),
        "results_url": is_over.then(|| script.results_url.clone().unwrap_or(url)),
    })
}

fn openai(state: &mut State, script: &Script, endpoint: &str, request: &Request) -> Checked {
    let bearer = format!("Bearer {}", super::key());
    check(
        request.header("authorization") == Some(&bearer),
        "authorization",
    )?;
    let (path, query) = request.path.split_once('?').unwrap_or((&request.path, ""));
    let path: Vec<&str> = path.trim_start_matches('/').split('/').collect();
    match (request.method.as_str(), path.as_slice(), query) {
        ("POST", ["v1", "files"], "") => {
            let lines = uploaded(request, endpoint)?;
            let id = format!("file-in{}", state.files.len());
            state.files.push((id.clone(), lines));
            Ok(Reply::json(
                200,
                &json!({
                    "id": id, "object": "file", "bytes": 1, "created_at": 1, "filename": "batch.jsonl",
                    "purpose": "batch",
                }),
            ))
        }
        ("POST", ["v1", "batches"], "") if !is_accepted(state, script) => Ok(silence()),
        ("POST", ["v1", "batches", id, "cancel"], "") => {
            check(request.body.is_empty(), "a body")?;
            match cancel(state, script, id)? {
                Some(batch) => Ok(Reply::json(200, &openai_batch(&batch, script))),
                None => Ok(Reply::error(
                    409,
                    "invalid_request_error",
                    "the batch has ended",
                )),
            }
        }
        ("POST", ["v1", "batches"], "") => {
            check(is_json(request), "content-type")?;
            let body = request.json();
            keys(
                &body,
                &["input_file_id", "endpoint", "completion_window", "metadata"],
            )?;
            check(body["endpoint"] == endpoint, "endpoint")?;
            check(body["completion_window"] == "24h", "completion_window")?;
            let metadata = body["metadata"].as_object().ok_or("metadata")?;
            let is_small = |(key, value): (&String, &Value)| {
                key.len() <= 64 && value.as_str().is_some_and(|v| v.len() <= 512)
            };
            check(
                metadata.len() <= 16 && metadata.iter().all(is_small),
                "metadata",
            )?;
            let file = state
                .files
                .iter()
                .find(|(id, _)| body["input_file_id"] == id.as_str());
            let lines = file.ok_or("input_file_id")?.1.clone();
            let batch = submitted(state, "batch_", lines, body["metadata"].clone());
            let reply = Reply::json(200, &openai_batch(&batch, script));
            Ok(answered(state, script, reply))
        }
        ("GET", ["v1", "batches"], _) if state.unlisted < script.unlisted => {
            state.unlisted += 1;
            Ok(Reply::error(403, "permission_error", "no list"))
        }
        ("GET", ["v1", "batches"], query) => {
            let list = listed(state, script, (query, 100, "after"))?;
            Ok(Reply::json(200, &list(&|b| openai_batch(b, script))))
        }
        ("GET", ["v1", "batches", id], "") => {
            let batch = look(state, id)?;
            Ok(Reply::json(200, &openai_batch(&batch, script)))
        }
        ("GET", ["v1", "files", id, "content"], "") => {
            let name = id.trim_start_matches("file-");
            let (is_error, id) = match name.strip_prefix("err-") {
                Some(id) => (true, id),
                None => (false, name.trim_start_matches("out-")),
            };
            let batch = find(state, id)?;
            let lines: String = outcomes(&batch, script, |outcome| openai_line(outcome, is_error))
                .into_iter()
                .map(|(id, mut line)| {
                    line["id"] = format!("batch_req_{id}").into();
                    line["custom_id"] = id.into();
                    format!("{line}\n")
                })
                .collect();
            let lines = (script.results)(&batch, lines);
            let kind = ("content-type", "application/octet-stream");
            Ok(Reply::with(200, &[kind], &lines))
        }
        _ => Err("not a request of the batch interface".to_owned()),
    }
}

/// Returns a line of the output file or of the error file; null if it is in the other one.
fn openai_line(outcome: Outcome, is_error: bool) -> Value {
    let line = match outcome {
        Outcome::Answer(body) => (
            false,
            json!({ "response": { "status_code": 200, "request_id": "r", "body": body }, "error": null }),
        ),
        Outcome::Error(kind, message) => (
            true,
            json!({
                "response": {
                    "status_code": 400, "request_id": "r",
                    "body": { "error": { "type": kind, "message": message, "param": null, "code": null } },
                },
                "error": null,
            }),
        ),
        Outcome::Expired => (
            true,
            json!({
                "response": null,
                "error": {
                    "code": "batch_expired",
                    "message": "This request could not be executed before the completion window expired.",
                },
            }),
        ),
        Outcome::Canceled => (
            true,
            json!({ "response": null, "error": { "code": "batch_cancelled", "message": "cancelled" } }),
        ),
        Outcome::Missing => (true, Value::Null),
    };
    if line.0 == is_error {
        line.1
    } else {
        Value::Null
    }
}

fn openai_batch(batch: &Batch, script: &Script) -> Value {
    let is_over = batch.is_over(script);
    let status = match (is_over, batch.canceled_at) {
        (true, None) => script.ended,
        (true, Some(_)) => "cancelled",
        (false, Some(_)) => "cancelling",
        (false, None) => "in_progress",
    };
    let has_files = is_over && script.ended != "failed";
    let errors = json!({ "object": "list", "data": [{ "code": "x", "message": "line 1 is \u{1b}[31m wrong", "line": 1 }] });
    json!({
        "id": batch.id, "object": "batch", "endpoint": "/v1/x", "input_file_id": "file-in0",
        "completion_window": "24h", "status": status, "created_at": batch.created,
        "errors": if is_over && script.ended == "failed" { errors } else { Value::Null },
        "output_file_id": has_files.then(|| format!("file-out-{}", batch.id)),
        "error_file_id": has_files.then(|| format!("file-err-{}", batch.id)),
        "request_counts": { "total": batch.lines.len(), "completed": 0, "failed": 0 },
        "metadata": batch.metadata,
    })
}

/// Parses an uploaded file of requests: `multipart/form-data` with `purpose` and `file`.
fn uploaded(request: &Request, endpoint: &str) -> Result<Vec<Line>, String> {
    let kind = request.header("content-type").unwrap_or_default();
    let boundary = kind.strip_prefix("multipart/form-data; boundary=");
    let boundary = boundary.ok_or(format!("content-type {kind}"))?;
    let text = String::from_utf8(request.body.clone()).map_err(|e| e.to_string())?;
    let separator = format!("--{boundary}");
    let mut parts = text.split(&separator);
    check(parts.next() == Some(""), "text before the first part")?;
    let (mut purpose, mut file) = (None, None);
    for part in parts {
        if part.trim() == "--" {
            break;
        }
        let part = part.strip_prefix("\r\n").ok_or("no line end")?;
        let part = part.strip_suffix("\r\n").ok_or("no line end")?;
        let (head, body) = part.split_once("\r\n\r\n").ok_or("no head")?;
        let head = head.to_ascii_lowercase();
        if head.contains("name=\"purpose\"") {
            purpose = Some(body.to_owned());
        } else if head.contains("name=\"file\"; filename=\"batch.jsonl\"") {
            file = Some(body.to_owned());
        } else {
            return Err(format!("unknown part {head}"));
        }
    }
    check(purpose.as_deref() == Some("batch"), "purpose")?;
    let file = file.ok_or("no file")?;
    check(file.len() <= 200_000_000, "size")?;
    let (mut seen, mut lines) = (BTreeSet::new(), Vec::new());
    for (i, line) in file.lines().enumerate() {
        let line: Value = serde_json::from_str(line).map_err(|e| format!("line {i}: {e}"))?;
        keys(&line, &["custom_id", "method", "url", "body"])?;
        check(line["method"] == "POST", "method")?;
        check(line["url"] == endpoint, "url")?;
        let body = &line["body"];
        check(body["model"].is_string(), "model")?;
        check(body.get("stream").is_none(), "stream")?;
        check(body.get("stream_options").is_none(), "stream_options")?;
        lines.push(Line {
            id: custom_id(&line["custom_id"], &mut seen)?,
            request: ordinary(i, endpoint, body),
        });
    }
    check((1..=50_000).contains(&lines.len()), "number of requests")?;
    Ok(lines)
}
