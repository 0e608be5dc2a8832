//! The batch interface of a provider, in terms that are the same for all providers.

use serde_json::Value;

/// The wire format of the batch interface of a provider. Like a
/// [`Dialect`](super::dialect::Dialect), it only translates.
#[derive(Debug)]
pub(super) struct BatchApi {
    /// Requests of one batch, at most.
    pub(super) most_requests: usize,
    /// Bytes of one batch, at most.
    pub(super) most_bytes: usize,
    /// Path of batches below the version.
    pub(super) path: &'static [&'static str],
    /// True if the requests are uploaded as a file first.
    pub(super) takes_file: bool,
    /// Batches that one page of the list has, at most: the value of `limit`.
    pub(super) page: usize,
    /// Name of the parameter with the ID after which the next page of the list begins.
    pub(super) cursor: &'static str,
    /// True if batches carry the token of their submission as metadata.
    pub(super) has_metadata: bool,
    /// Renders one request: its ID, the path of its interface, and its body as JSON text.
    pub(super) request: fn(&str, &str, &str) -> String,
    /// Renders the body of a submission.
    pub(super) submission: fn(&Submission<'_>) -> String,
    /// Parses a batch of a list; `None` if it is not one.
    pub(super) listed: fn(&Value) -> Option<ListedBatch>,
    /// Parses the state of a batch.
    ///
    /// # Errors
    ///
    /// The reason why it is not one.
    pub(super) state: fn(&Value) -> Result<BatchState, String>,
    /// Parses a line of results; `None` if it is not one.
    pub(super) result: fn(&Value) -> Option<(String, LineResult)>,
}

/// The parts of a submission.
#[derive(Clone, Copy, Debug)]
pub(super) struct Submission<'a> {
    /// ID of the file with the requests; empty if the provider takes none.
    pub(super) file_id: &'a str,
    /// Rendered requests.
    pub(super) requests: &'a [String],
    /// Path of the interface that the requests use, such as `/v1/responses`.
    pub(super) path: &'a str,
    /// Name of the batch, for providers with metadata.
    pub(super) token: &'a str,
}

/// A batch in the provider's list of batches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ListedBatch {
    /// ID as the provider sent it, not checked.
    pub(super) id: String,
    /// Time of its submission, in seconds since 1970 by the provider's clock.
    pub(super) created: i64,
    /// Number of its requests.
    pub(super) requests: u64,
    /// Token in its metadata, if it has one.
    pub(super) token: Option<String>,
    /// True if its results can be read.
    pub(super) has_results: bool,
    /// True if no further results follow.
    pub(super) has_ended: bool,
}

/// The state of a batch at the provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum BatchState {
    /// Requests that have a result, if the provider counts them before the end.
    Working { done: u64 },
    /// No further results follow. Each path below the version has a part of them.
    Ended { results: Vec<Vec<String>> },
    /// The provider rejected the batch as a whole.
    Rejected { why: String },
}

/// The result of one request.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum LineResult {
    /// The body of the answer.
    Answer(Value),
    /// An error of the provider: its status, if it has one, and its body.
    Error { status: Option<u16>, body: Value },
    /// The batch ended before the request was processed.
    Unprocessed(Unprocessed),
}

/// The reason why a request was not processed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unprocessed {
    Expired,
    Canceled,
}
