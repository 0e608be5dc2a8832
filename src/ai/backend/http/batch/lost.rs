//! Finds a batch whose submission was recorded, but not its ID, in the provider's list of batches.
//!
//! Batches of OpenAI carry the random token of their record. Batches of Anthropic carry nothing,
//! but the IDs of their requests do, and results show these IDs. Before a batch has results, only
//! its time and its number of requests can match.

use super::{BatchService, get, refused};
use crate::ai::ask::{Cause, Failure};
use crate::ai::backend::batch::ListedBatch;
use crate::ai::batch::record::{BatchRecord, is_provider_id};
use crate::http::{self, Limits, Protocol, Refusal, Reply, Trouble};
use crate::text::series;
use std::collections::HashSet;

/// Seconds by which the clocks of this machine and of the provider can differ. Both ends of the
/// time in which a batch can have been created are extended by it.
const CLOCKS: i64 = 3600;
/// Seconds from the record to the end of a submission, at most: the time limit of a submission in
/// `drive`, twice, since an upload comes before it.
const SUBMISSION: i64 = 1200;
/// Pages of the list that are read, at most: 20,000 batches of Anthropic, 2,000 of OpenAI.
const MAX_PAGES: usize = 20;
/// Batches whose first result is read, at most: those whose creation is nearest to the record.
const MAX_PEEKS: usize = 32;
/// Bytes up to the end of the first result, at most.
const MAX_FIRST: usize = 4 << 20;
/// IDs that a message lists, at most.
const LISTED: usize = 4;

/// The batch of a record without an ID.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LostBatch {
    /// It carries the token of the record.
    Proven(String),
    /// The only batch without results whose time and number of requests match.
    Likely(String),
    /// The provider has no such batch.
    Absent,
}

impl BatchService<'_> {
    /// Returns false if the provider cannot have the batch of a record without an ID: it takes a
    /// file first, whose ID is recorded before the submission.
    pub(crate) fn can_have(&self, record: &BatchRecord) -> bool {
        !self.api.takes_file || record.file_id.is_some()
    }

    /// Finds the batch of a record that has no ID. `taken` are the IDs of batches that belong to
    /// other records.
    ///
    /// # Errors
    ///
    /// The provider did not list its batches, or several ones match.
    pub(crate) async fn find(
        &self,
        record: &BatchRecord,
        taken: &HashSet<String>,
        limits: &Limits<'_>,
    ) -> Result<LostBatch, Failure> {
        if !self.can_have(record) {
            return Ok(LostBatch::Absent);
        }
        let since = record.created.saturating_sub(CLOCKS);
        let batches = self.list(since, limits).await?;
        if self.api.has_metadata {
            let token = Some(record.token.as_str());
            let ours = batches.into_iter().find(|b| b.token.as_deref() == token);
            return Ok(ours.map_or(LostBatch::Absent, |b| LostBatch::Proven(b.id)));
        }
        let until = record.created.saturating_add(SUBMISSION + CLOCKS);
        let count = record.requests.len() as u64;
        let fits =
            |b: &ListedBatch| b.created <= until && b.requests == count && !taken.contains(&b.id);
        let (ended, open): (Vec<_>, Vec<_>) = batches
            .into_iter()
            .filter(fits)
            .partition(|batch| batch.has_ended);
        let mut ended: Vec<_> = ended.into_iter().filter(|b| b.has_results).collect();
        ended.sort_by_key(|b| b.created.abs_diff(record.created));
        let unread = ended.split_off(MAX_PEEKS.min(ended.len()));
        for batch in ended {
            if self.is_of(record, &batch.id, limits).await? {
                return Ok(LostBatch::Proven(batch.id));
            }
        }
        if !unread.is_empty() {
            return Err(self.ambiguous(record, &unread));
        }
        match open.as_slice() {
            [] => Ok(LostBatch::Absent),
            [only] => Ok(LostBatch::Likely(only.id.clone())),
            _ => Err(self.ambiguous(record, &open)),
        }
    }

    /// Lists the batches of the account that were created since a time, the newest first.
    ///
    /// # Errors
    ///
    /// The provider rejected the request, cannot be reached, sent something else, or has too many
    /// batches.
    async fn list(&self, since: i64, limits: &Limits<'_>) -> Result<Vec<ListedBatch>, Failure> {
        let mut batches = Vec::new();
        let mut after: Option<String> = None;
        for _ in 0..MAX_PAGES {
            let mut url = self.http.url(self.api.path, "");
            let page = self.api.page.to_string();
            url.query_pairs_mut().append_pair("limit", &page);
            if let Some(id) = &after {
                url.query_pairs_mut().append_pair(self.api.cursor, id);
            }
            let list = self.send(&get(url), limits).await?.body;
            let Some(data) = list["data"].as_array() else {
                return Err(self.malformed("the answer is not a list of batches"));
            };
            let page: Vec<_> = data.iter().filter_map(self.api.listed).collect();
            if page.len() != data.len() || page.iter().any(|b| !is_provider_id(&b.id)) {
                return Err(self.malformed("the list has an entry that is not a batch"));
            }
            let is_last = list["has_more"] != true || page.iter().any(|b| b.created < since);
            let last = page.last().map(|b| b.id.clone());
            batches.extend(page.into_iter().filter(|b| b.created >= since));
            match last {
                Some(id) if !is_last => after = Some(id),
                _ => return Ok(batches),
            }
        }
        let message = format!("the account has more than {} newer batches", batches.len());
        Err(Failure::new(Cause::Malformed, message))
    }

    /// Returns true if the results of a batch belong to the requests of a record.
    ///
    /// # Errors
    ///
    /// The provider rejected the request or cannot be reached.
    async fn is_of(
        &self,
        record: &BatchRecord,
        id: &str,
        limits: &Limits<'_>,
    ) -> Result<bool, Failure> {
        let path = self.api.path.iter().copied().chain([id, "results"]);
        let request = get(self.http.url(&path.collect::<Vec<_>>(), ""));
        let server = &self.http.server;
        let mut admit = http::admit_all;
        let reader = FirstResult(self);
        let first = server.send(&request, &reader, limits, &mut admit).await?;
        let first = first.filter(|id| id.starts_with(&record.mark()));
        Ok(first.is_some_and(|id| record.requests.iter().any(|r| r.custom_id == id)))
    }

    /// Returns the failure about several batches that can each be the one of a record.
    fn ambiguous(&self, record: &BatchRecord, batches: &[ListedBatch]) -> Failure {
        let ids: Vec<String> = batches.iter().map(|b| b.id.clone()).collect();
        let count = record.requests.len();
        Failure::new(
            Cause::Refused,
            format!(
                "{} batches of {count} requests can each be the one that an earlier run submitted: {}",
                ids.len(),
                self.http.shown(&series(&ids, LISTED))
            ),
        )
    }
}

/// Reads the ID of the first result.
struct FirstResult<'r, 'a>(&'r BatchService<'a>);

impl Protocol for FirstResult<'_, '_> {
    type Answer = Option<String>;

    async fn read(&self, mut reply: Reply<'_>) -> Result<Option<String>, Trouble> {
        let mut line = Vec::new();
        while let Some(chunk) = reply.chunk(http::IDLE).await? {
            let end = chunk.iter().position(|b| *b == b'\n');
            line.extend_from_slice(&chunk[..end.unwrap_or(chunk.len())]);
            if end.is_some() || line.len() > MAX_FIRST {
                break;
            }
        }
        let result = http::json(&line).and_then(|value| (self.0.api.result)(&value));
        Ok(result.map(|(id, _)| id))
    }

    fn refused(&self, refusal: &Refusal) -> Trouble {
        refused(self.0.http, refusal)
    }
}
