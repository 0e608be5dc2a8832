//! OpenAI's Batch API (<https://platform.openai.com/docs/api-reference/batch>), for Chat
//! Completions and Responses.

use crate::ai::backend::batch::{
    BatchApi, BatchState, LineResult, ListedBatch, Submission, Unprocessed,
};
use serde_json::{Value, json};

/// Key of the metadata with the name of a batch.
const TOKEN: &str = "claude_reviewer_batch";
/// Characters of a provider's reason that are kept.
const MAX_REASON: usize = 200;

/// Limits: 50,000 requests or 200 MB (<https://platform.openai.com/docs/guides/batch>).
pub(in crate::ai::backend) static API: BatchApi = BatchApi {
    most_requests: 50_000,
    most_bytes: 200_000_000,
    path: &["batches"],
    takes_file: true,
    page: 100,
    cursor: "after",
    has_metadata: true,
    request,
    submission,
    listed,
    state,
    result,
};

/// Renders a line of the file, with its end.
fn request(id: &str, path: &str, body: &str) -> String {
    let (id, path) = (json!(id), json!(path));
    format!("{{\"custom_id\":{id},\"method\":\"POST\",\"url\":{path},\"body\":{body}}}\n")
}

fn submission(parts: &Submission<'_>) -> String {
    let metadata = json!({ TOKEN: parts.token });
    json!({
        "input_file_id": parts.file_id,
        "endpoint": parts.path,
        "completion_window": "24h",
        "metadata": metadata,
    })
    .to_string()
}

fn listed(batch: &Value) -> Option<ListedBatch> {
    let total = &batch["request_counts"]["total"];
    let status = batch["status"].as_str()?;
    let has_ended = matches!(status, "completed" | "expired" | "cancelled" | "failed");
    Some(ListedBatch {
        id: batch["id"].as_str()?.to_owned(),
        created: batch["created_at"].as_i64()?,
        requests: total.as_u64().unwrap_or(0),
        token: batch["metadata"][TOKEN].as_str().map(str::to_owned),
        has_results: has_ended && status != "failed",
        has_ended,
    })
}

fn state(batch: &Value) -> Result<BatchState, String> {
    match batch["status"].as_str() {
        Some("validating" | "in_progress" | "finalizing" | "cancelling") => {
            let counts = &batch["request_counts"];
            let done = ["completed", "failed"]
                .iter()
                .filter_map(|name| counts[name].as_u64())
                .fold(0, u64::saturating_add);
            Ok(BatchState::Working { done })
        }
        // A batch that expired or was cancelled has the results up to then.
        Some("completed" | "expired" | "cancelled") => {
            let files = [&batch["output_file_id"], &batch["error_file_id"]];
            let named = files.into_iter().filter_map(Value::as_str);
            let results = named.map(|id| ["files", id, "content"].map(str::to_owned).to_vec());
            Ok(BatchState::Ended {
                results: results.collect(),
            })
        }
        Some("failed") => Ok(BatchState::Rejected {
            why: reasons(&batch["errors"]["data"]),
        }),
        Some(other) => Err(format!("unknown status {other:.40}")),
        None => Err("the batch has no status".to_owned()),
    }
}

/// Joins the reasons why a batch was rejected.
fn reasons(errors: &Value) -> String {
    let errors = errors.as_array().into_iter().flatten().take(3);
    let texts: Vec<&str> = errors.filter_map(|e| e["message"].as_str()).collect();
    texts.join("; ").chars().take(MAX_REASON).collect()
}

fn result(line: &Value) -> Option<(String, LineResult)> {
    let id = line["custom_id"].as_str()?.to_owned();
    let error = &line["error"];
    let outcome = match error["code"].as_str() {
        Some("batch_expired") => LineResult::Unprocessed(Unprocessed::Expired),
        Some("batch_cancelled") => LineResult::Unprocessed(Unprocessed::Canceled),
        _ if !error.is_null() => LineResult::Error {
            status: None,
            body: json!({ "error": error }),
        },
        _ => {
            let response = &line["response"];
            let status = u16::try_from(response["status_code"].as_u64()?).ok()?;
            let body = response["body"].clone();
            match status {
                200..300 => LineResult::Answer(body),
                _ => LineResult::Error {
                    status: Some(status),
                    body,
                },
            }
        }
    };
    Some((id, outcome))
}
