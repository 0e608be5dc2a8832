//! Anthropic's Message Batches
//! (<https://platform.claude.com/docs/en/api/creating-message-batches>).
//!
//! The address of the results is built from the ID of the batch: the `results_url` of an answer is
//! not followed, because a hostile server could name any host there, and the key would be sent to
//! it.

use crate::ai::backend::batch::{BatchApi, BatchState, LineResult, Submission, Unprocessed};
use serde_json::{Value, json};

/// Limits: 100,000 requests or 256 MB
/// (<https://platform.claude.com/docs/en/build-with-claude/batch-processing>).
pub(in crate::ai::backend) static API: BatchApi = BatchApi {
    most_requests: 100_000,
    most_bytes: 256_000_000,
    path: &["messages", "batches"],
    takes_file: false,
    // Batches have no metadata, so a list does not show which one is ours.
    list_query: None,
    request,
    submission,
    has_token: |_, _| false,
    state,
    result,
};

fn request(id: &str, _path: &str, body: &str) -> String {
    format!("{{\"custom_id\":{},\"params\":{body}}}", json!(id))
}

fn submission(parts: &Submission<'_>) -> String {
    format!("{{\"requests\":[{}]}}", parts.requests.join(","))
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
            let done = ["succeeded", "errored", "canceled", "expired"]
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
