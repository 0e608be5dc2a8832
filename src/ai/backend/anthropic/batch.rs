//! Anthropic's Message Batches
//! (<https://platform.claude.com/docs/en/api/messages/batches/create>, and its siblings `list`,
//! `cancel` and `results`).
//!
//! The address of the results is built from the ID of the batch: the `results_url` of an answer is
//! not followed, because a hostile server could name any host there, and the key would be sent to
//! it.

use crate::ai::backend::batch::{
    BatchApi, BatchState, LineResult, ListedBatch, Submission, Unprocessed,
};
use serde_json::{Value, json};

/// Limits: 100,000 requests or 256 MB
/// (<https://platform.claude.com/docs/en/build-with-claude/batch-processing>).
pub(in crate::ai::backend) static API: BatchApi = BatchApi {
    most_requests: 100_000,
    most_bytes: 256_000_000,
    path: &["messages", "batches"],
    takes_file: false,
    page: 1000,
    cursor: "after_id",
    has_metadata: false,
    request,
    submission,
    listed,
    state,
    result,
};

fn request(id: &str, _path: &str, body: &str) -> String {
    format!("{{\"custom_id\":{},\"params\":{body}}}", json!(id))
}

fn submission(parts: &Submission<'_>) -> String {
    format!("{{\"requests\":[{}]}}", parts.requests.join(","))
}

/// Names of the counts of requests, of which each request is in one.
const COUNTS: [&str; 5] = ["processing", "succeeded", "errored", "canceled", "expired"];

fn listed(batch: &Value) -> Option<ListedBatch> {
    let created: jiff::Timestamp = batch["created_at"].as_str()?.parse().ok()?;
    let counts = COUNTS
        .iter()
        .map(|name| batch["request_counts"][name].as_u64());
    let has_ended = batch["processing_status"] == "ended";
    Some(ListedBatch {
        id: batch["id"].as_str()?.to_owned(),
        created: created.as_second(),
        requests: counts.flatten().fold(0, u64::saturating_add),
        token: None,
        has_results: has_ended && batch["archived_at"].is_null(),
        has_ended,
    })
}

fn state(batch: &Value) -> Result<BatchState, String> {
    let Some(id) = batch["id"].as_str() else {
        return Err("the batch has no ID".to_owned());
    };
    match batch["processing_status"].as_str() {
        Some("ended") => Ok(BatchState::Ended {
            results: vec![
                ["messages", "batches", id, "results"]
                    .map(str::to_owned)
                    .to_vec(),
            ],
        }),
        Some("in_progress" | "canceling") => {
            let counts = &batch["request_counts"];
            let done = COUNTS[1..]
                .iter()
                .filter_map(|name| counts[name].as_u64())
                .fold(0, u64::saturating_add);
            Ok(BatchState::Working { done })
        }
        Some(other) => Err(format!("unknown status {other:.40}")),
        None => Err("the batch has no status".to_owned()),
    }
}

fn result(line: &Value) -> Option<(String, LineResult)> {
    let id = line["custom_id"].as_str()?.to_owned();
    let result = &line["result"];
    let outcome = match result["type"].as_str()? {
        "succeeded" => LineResult::Answer(result["message"].clone()),
        "errored" => LineResult::Error {
            status: None,
            body: result["error"].clone(),
        },
        "expired" => LineResult::Unprocessed(Unprocessed::Expired),
        "canceled" => LineResult::Unprocessed(Unprocessed::Canceled),
        _ => return None,
    };
    Some((id, outcome))
}
