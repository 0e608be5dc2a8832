//! Batches of a backend: submits requests together, and reads the state and the results.
//!
//! All requests go to the address of the backend. Nothing that a server sends becomes an address,
//! except for IDs, which are checked.

pub(in crate::ai::backend) mod lost;

use super::{Exchange, Http};
use crate::ai::ask::{Cause, Failure};
use crate::ai::backend::batch::{BatchApi, BatchState, LineResult, Submission, Unprocessed};
use crate::ai::batch::queue::BatchedAnswer;
use crate::ai::batch::record::{BatchRecord, is_provider_id};
use crate::hex;
use crate::http::{
    self, Limits, Method, Protocol, Refusal, Repeat, Reply, Request, StatusCode, Trouble, Url,
    retry,
};
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use std::collections::{HashMap, HashSet};
use std::time::{Duration, SystemTime};

/// Bytes of one result, at most.
const MAX_LINE: usize = 4 << 20;
/// Bytes of all results of a batch, at most, for each of its requests and for one more.
const MAX_SHARE: usize = 1 << 20;
/// Bytes of all results of a batch, at most.
const MAX_RESULTS: usize = 1 << 30;
/// Bytes of the state of a batch or of a list of them, at most.
const MAX_STATE: usize = 4 << 20;
/// The first pause between two polls of a batch, and the longest one, in pauses before a first
/// retry: 5 s and 60 s by default.
const PAUSES: (u32, u32) = (10, 120);

/// The batch interface of a backend.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BatchService<'a> {
    http: &'a Http,
    api: &'static BatchApi,
}

/// The state of a batch, with the time that the server asks to wait.
#[derive(Clone, Debug)]
pub(crate) struct BatchView {
    pub(crate) state: BatchState,
    pub(crate) wait: Option<Duration>,
}

/// The results of a batch.
#[derive(Debug, Default)]
pub(crate) struct BatchResults {
    /// Results by the ID of the request. A request with two results has a failure.
    pub(crate) answers: HashMap<String, BatchedAnswer>,
    /// Results whose ID is not one of the batch.
    pub(crate) foreign: usize,
    /// Lines that are not results.
    pub(crate) unreadable: usize,
}

impl Http {
    /// Returns the batch interface, if the provider has one.
    pub(in crate::ai::backend) fn batch(&self) -> Option<BatchService<'_>> {
        let api = self.dialect.batch?;
        Some(BatchService { http: self, api })
    }

    /// Returns the digest of a request that can be in a batch: of everything except the nonce of
    /// the run and the limit of the answer, which differ between runs.
    pub(super) fn digest(&self, model: &str, body: &Value, nonce: &str) -> String {
        let mut hash = Sha256::new();
        hash.update(self.request_url(model).as_str());
        // Lengths separate the parts, so that no text can imitate the gap of another.
        for part in body.to_string().split(nonce) {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        hex::encode(&hash.finalize())
    }

    fn request_url(&self, model: &str) -> Url {
        let path = (self.dialect.path)(model);
        let path: Vec<_> = path.iter().map(String::as_str).collect();
        self.url(&path, self.dialect.query)
    }
}

impl<'a> BatchService<'a> {
    /// Returns the address of the interface that the requests of a batch use.
    pub(crate) fn endpoint(&self) -> String {
        self.http.request_url("").to_string()
    }

    /// Returns the path of that interface at the provider: `/v1/chat/completions`.
    fn path(&self) -> String {
        format!("/v1/{}", (self.http.dialect.path)("").join("/"))
    }

    /// Returns the position after the last request of the first batch, for requests with these
    /// sizes of their bodies. A request that is too large for any batch is in one alone.
    pub(crate) fn first_part(&self, sizes: &[usize]) -> usize {
        first_part(sizes, self.api.most_requests, self.api.most_bytes)
    }

    /// Uploads the requests of a batch if the provider takes a file. Returns its ID.
    ///
    /// # Errors
    ///
    /// The provider rejected it, or cannot be reached.
    pub(crate) async fn upload(
        &self,
        record: &BatchRecord,
        bodies: &[&str],
        limits: &Limits<'_>,
    ) -> Result<Option<String>, Failure> {
        if !self.api.takes_file {
            return Ok(None);
        }
        let lines = self.requests(record, bodies).concat();
        // The token is random and unknown outside of this machine, so no text contains it.
        let boundary = format!("claude-reviewer-{}", record.token);
        let form = form(&boundary, &lines);
        let kind = format!("multipart/form-data; boundary={boundary}");
        let request = Request {
            method: Method::POST,
            url: self.http.url(&["files"], ""),
            body: Some(form.as_bytes()),
            content_type: Some(&kind),
            // A second file would not be used: only the batch that names it counts.
            repeat: Repeat::Harmless,
        };
        let file = self.send(&request, limits).await?;
        self.id_of(&file.body).map(Some)
    }

    /// Submits a batch, once. Returns its ID.
    ///
    /// # Errors
    ///
    /// The provider rejected it, or the submission may or may not have arrived
    /// ([`is_ambiguous`]).
    pub(crate) async fn submit(
        &self,
        record: &BatchRecord,
        bodies: &[&str],
        limits: &Limits<'_>,
    ) -> Result<String, Failure> {
        let path = self.path();
        let requests = match record.file_id {
            Some(_) => Vec::new(),
            None => self.requests(record, bodies),
        };
        let body = (self.api.submission)(&Submission {
            file_id: record.file_id.as_deref().unwrap_or_default(),
            requests: &requests,
            path: &path,
            token: &record.token,
        });
        drop(requests);
        let request = Request {
            method: Method::POST,
            url: self.http.url(self.api.path, ""),
            body: Some(body.as_bytes()),
            content_type: None,
            repeat: Repeat::Makes,
        };
        let batch = self.send(&request, limits).await?;
        self.id_of(&batch.body)
    }

    /// Renders the requests of a batch.
    fn requests(&self, record: &BatchRecord, bodies: &[&str]) -> Vec<String> {
        let path = self.path();
        let requests = record.requests.iter().zip(bodies);
        requests
            .map(|(r, body)| (self.api.request)(&r.custom_id, &path, body))
            .collect()
    }

    /// Asks the provider to cancel a batch. Requests that have a result keep it. Returns the state
    /// afterwards, also of a batch that had ended before.
    ///
    /// # Errors
    ///
    /// The provider rejected the request, cannot be reached, or sent something else.
    pub(crate) async fn cancel(&self, id: &str, limits: &Limits<'_>) -> Result<BatchView, Failure> {
        let path: Vec<&str> = self
            .api
            .path
            .iter()
            .copied()
            .chain([id, "cancel"])
            .collect();
        let request = Request {
            method: Method::POST,
            // A batch that is canceled twice is canceled once.
            repeat: Repeat::Harmless,
            ..get(self.http.url(&path, ""))
        };
        match self.send(&request, limits).await {
            Ok(_) => self.view(id, limits).await,
            // Providers reject the request for a batch that has ended.
            Err(failure) if failure.status.is_some_and(|s| (400..500).contains(&s)) => {
                let view = self.view(id, limits).await?;
                match view.state {
                    BatchState::Working { .. } => Err(failure.into()),
                    _ => Ok(view),
                }
            }
            Err(failure) => Err(failure.into()),
        }
    }

    /// Reads the state of a batch.
    ///
    /// # Errors
    ///
    /// The provider rejected the request, cannot be reached, or sent something else.
    pub(crate) async fn view(&self, id: &str, limits: &Limits<'_>) -> Result<BatchView, Failure> {
        let path: Vec<&str> = self.api.path.iter().copied().chain([id]).collect();
        let request = get(self.http.url(&path, ""));
        let Document { body, wait } = match self.send(&request, limits).await {
            Ok(document) => document,
            // A later run submits the requests again.
            Err(failure) if failure.status == Some(404) => {
                let why = "the provider does not know it (404)".to_owned();
                return Ok(BatchView {
                    state: BatchState::Rejected { why },
                    wait: None,
                });
            }
            Err(failure) => return Err(failure.into()),
        };
        let state = (self.api.state)(&body).map_err(|why| self.malformed(&why))?;
        if body["id"] != id {
            return Err(self.malformed("the server answered with another batch"));
        }
        let state = match state {
            BatchState::Rejected { why } => BatchState::Rejected {
                why: self.http.shown(&why),
            },
            BatchState::Ended { results }
                if results.iter().flatten().any(|p| !is_provider_id(p)) =>
            {
                return Err(self.malformed("the file of the results has an invalid ID"));
            }
            other => other,
        };
        Ok(BatchView { state, wait })
    }

    /// Reads the results of a batch, in any order. `nonce` is the one of this run, which replaces
    /// the one of the run that submitted the batch.
    ///
    /// # Errors
    ///
    /// The provider rejected the request, cannot be reached, or sent too much.
    pub(crate) async fn results(
        &self,
        record: &BatchRecord,
        paths: &[Vec<String>],
        nonce: &str,
        limits: &Limits<'_>,
    ) -> Result<BatchResults, Failure> {
        let mut all = BatchResults::default();
        let known: HashSet<&str> = record
            .requests
            .iter()
            .map(|r| r.custom_id.as_str())
            .collect();
        for path in paths {
            let path: Vec<&str> = path.iter().map(String::as_str).collect();
            let request = get(self.http.url(&path, ""));
            let reader = ResultReader {
                service: *self,
                known: &known,
                nonces: (&record.nonce, nonce),
            };
            let server = &self.http.server;
            let part = server
                .send(&request, &reader, limits, &mut http::admit_all)
                .await?;
            all.merge(part);
        }
        Ok(all)
    }

    /// Returns the pause before the next poll of a batch after `polls` polls: from 5 s to 60 s,
    /// spread by a quarter in both directions. `random` is in 0..1.
    pub(crate) fn pause(&self, polls: u32, wait: Option<Duration>, random: f64) -> Duration {
        let (first, most) = PAUSES;
        let unit = self.http.server.retry_delay();
        let grown = unit
            .mul_f64(f64::from(first) * 1.5_f64.powi(i32::try_from(polls.min(20)).unwrap_or(20)));
        let pause = grown
            .min(unit.saturating_mul(most))
            .mul_f64(0.75 + random / 2.0);
        pause.max(wait.unwrap_or_default())
    }

    async fn send(
        &self,
        request: &Request<'_>,
        limits: &Limits<'_>,
    ) -> Result<Document, http::Failure> {
        self.http.server.ready(limits).await?;
        let reader = DocumentReader(self.http);
        let server = &self.http.server;
        let mut admit = http::admit_all;
        server.send(request, &reader, limits, &mut admit).await
    }

    /// Returns the ID of an object.
    ///
    /// # Errors
    ///
    /// It has none, or one that is not the ID of an object.
    fn id_of(&self, object: &Value) -> Result<String, Failure> {
        match object["id"].as_str() {
            Some(id) if is_provider_id(id) => Ok(id.to_owned()),
            _ => Err(self.malformed("the answer has no valid ID")),
        }
    }

    fn malformed(&self, why: &str) -> Failure {
        Failure::new(Cause::Malformed, format!("batch: {}", self.http.shown(why)))
    }

    /// Returns the answer of a request, or its failure.
    fn answer(&self, result: LineResult) -> BatchedAnswer {
        match result {
            LineResult::Answer(body) if body.is_object() && body["error"].is_null() => Ok(body),
            LineResult::Answer(body) if body["error"].is_null() => {
                Err(self.malformed("the result of the request is not an answer"))
            }
            LineResult::Answer(body) => Err(self.http.complained(&body, None).failure.into()),
            LineResult::Error { status, body } => {
                let status = status.and_then(|s| StatusCode::from_u16(s).ok());
                Err(self.http.complained(&body, status).failure.into())
            }
            LineResult::Unprocessed(Unprocessed::Expired) => Err(Failure::new(
                Cause::TimedOut,
                "the batch expired before the provider processed the request",
            )),
            LineResult::Unprocessed(Unprocessed::Canceled) => Err(Failure::new(
                Cause::Refused,
                "the batch was canceled before the provider processed the request",
            )),
        }
    }
}

/// Builds a request that reads.
fn get(url: Url) -> Request<'static> {
    Request {
        method: Method::GET,
        url,
        body: None,
        content_type: None,
        repeat: Repeat::Harmless,
    }
}

/// Returns true if the provider may have accepted a submission although it failed here.
pub(crate) fn is_ambiguous(failure: &Failure) -> bool {
    matches!(
        failure.cause,
        Cause::Unreachable | Cause::TimedOut | Cause::Stopped | Cause::Malformed
    )
}

/// Returns the number of leading requests that fit in a batch, at least 1.
fn first_part(sizes: &[usize], most_requests: usize, most_bytes: usize) -> usize {
    /// Bytes of a request in addition to its body, at most: its ID, path and field names.
    const AROUND: usize = 256;
    let mut bytes = AROUND;
    let fitting = sizes.iter().take(most_requests).take_while(|size| {
        bytes = bytes.saturating_add(**size).saturating_add(AROUND);
        bytes <= most_bytes
    });
    fitting.count().max(1)
}

/// Renders the form that uploads a file of requests (RFC 7578).
fn form(boundary: &str, lines: &str) -> String {
    format!(
        "--{boundary}\r\ncontent-disposition: form-data; name=\"purpose\"\r\n\r\nbatch\r\n\
         --{boundary}\r\ncontent-disposition: form-data; name=\"file\"; filename=\"batch.jsonl\"\r\n\
         content-type: application/jsonl\r\n\r\n{lines}\r\n--{boundary}--\r\n"
    )
}

impl BatchResults {
    /// Adds a result. A second one makes the request fail, because either may be wrong.
    fn add(&mut self, id: String, answer: BatchedAnswer) {
        let twice = || {
            Err(Failure::new(
                Cause::Malformed,
                "the batch has several results for the request",
            ))
        };
        self.answers
            .entry(id)
            .and_modify(|known| *known = twice())
            .or_insert(answer);
    }

    fn merge(&mut self, other: Self) {
        self.foreign += other.foreign;
        self.unreadable += other.unreadable;
        other
            .answers
            .into_iter()
            .for_each(|(id, answer)| self.add(id, answer));
    }
}

/// A JSON document of the server.
struct Document {
    body: Value,
    /// The time that the server asks to wait.
    wait: Option<Duration>,
}

/// Reads a document.
struct DocumentReader<'a>(&'a Http);

impl Protocol for DocumentReader<'_> {
    type Answer = Document;

    async fn read(&self, reply: Reply<'_>) -> Result<Document, Trouble> {
        let wait = retry::retry_after(reply.headers(), SystemTime::now());
        let bytes = reply.body(MAX_STATE).await?;
        match http::json(&bytes) {
            Some(body) if body.is_object() => Ok(Document { body, wait }),
            _ => Err(Trouble::malformed("batch: the answer is not a JSON object")),
        }
    }

    fn refused(&self, refusal: &Refusal) -> Trouble {
        refused(self.0, refusal)
    }
}

/// Interprets an error status in the same way as for ordinary requests.
fn refused(http: &Http, refusal: &Refusal) -> Trouble {
    let exchange = Exchange { http, begun: None };
    exchange.refused(refusal)
}

/// Reads lines of results.
struct ResultReader<'r, 'a> {
    service: BatchService<'a>,
    /// The IDs of the batch.
    known: &'r HashSet<&'r str>,
    /// The nonce of the run that submitted the batch, and the one of this run.
    nonces: (&'r str, &'r str),
}

impl ResultReader<'_, '_> {
    /// Adds the result in a line.
    fn line(&self, line: &[u8], results: &mut BatchResults) {
        let line = line.trim_ascii();
        if line.is_empty() {
            return;
        }
        let (old, new) = self.nonces;
        let text = std::str::from_utf8(line).ok();
        let value: Option<Value> = text.and_then(|text| match old == new {
            true => http::json(text.as_bytes()),
            false => http::json(text.replace(old, new).as_bytes()),
        });
        match value.as_ref().and_then(self.service.api.result) {
            None => results.unreadable += 1,
            Some((id, _)) if !self.known.contains(id.as_str()) => results.foreign += 1,
            Some((id, result)) => results.add(id, self.service.answer(result)),
        }
    }
}

impl Protocol for ResultReader<'_, '_> {
    type Answer = BatchResults;

    async fn read(&self, mut reply: Reply<'_>) -> Result<BatchResults, Trouble> {
        let most = MAX_SHARE
            .saturating_mul(self.known.len() + 1)
            .clamp(MAX_LINE, MAX_RESULTS);
        let (mut results, mut rest, mut read) = (BatchResults::default(), Vec::new(), 0);
        while let Some(chunk) = reply.chunk(http::IDLE).await? {
            read += chunk.len();
            if read > most {
                let message = format!("the results of the batch exceed {} MiB", most >> 20);
                return Err(Trouble::malformed(message));
            }
            let mut lines = chunk.split(|b| *b == b'\n');
            rest.extend_from_slice(lines.next().unwrap_or_default());
            for line in lines {
                self.line(&rest, &mut results);
                rest.clear();
                rest.extend_from_slice(line);
            }
            if rest.len() > MAX_LINE {
                let message = format!("a result of the batch exceeds {} MiB", MAX_LINE >> 20);
                return Err(Trouble::malformed(message));
            }
        }
        self.line(&rest, &mut results);
        Ok(results)
    }

    fn refused(&self, refusal: &Refusal) -> Trouble {
        refused(self.service.http, refusal)
    }
}

#[cfg(test)]
mod tests {
    use super::first_part;

    #[test]
    fn requests_are_split_at_both_limits_and_none_is_left_out() {
        assert_eq!(first_part(&[10; 5], 3, 1 << 20), 3);
        assert_eq!(first_part(&[10; 3], 3, 1 << 20), 3);
        // Each request counts with its ID, path and field names.
        assert_eq!(first_part(&[1000; 5], 100, 256 + 2 * 1256), 2);
        assert_eq!(first_part(&[1000; 5], 100, 256 + 2 * 1256 - 1), 1);
        // One that fits nowhere is sent alone, and the provider says why it is too large.
        assert_eq!(first_part(&[1 << 20, 1], 100, 1000), 1);
    }
}
