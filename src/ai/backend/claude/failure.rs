//! Failures of the program, with messages for people.

use super::{Key, MAX_PROMPT, too_old, word};
use crate::ai::ask::{Cause, Failure};
use crate::process::{End, Output};
use crate::text::shortened;
use crate::untrusted::Inert;
use serde_json::Value;
use std::io;
use std::path::Path;

/// Characters of output of the program that a message shows, at most.
const MAX_SHOWN: usize = 200;

const LOG_IN: &str = "log in: run `claude` and then /login; or set ANTHROPIC_API_KEY";

/// Returns the failure of a program that could not be started.
pub(super) fn start(path: &Path, error: &io::Error) -> Failure {
    let path = path.display();
    if error.kind() == io::ErrorKind::ArgumentListTooLong {
        return Failure::new(
            Cause::TooLarge,
            "the instructions are longer than a command line may be",
        );
    }
    let why = match error.kind() {
        io::ErrorKind::NotFound => "its interpreter is missing".to_owned(),
        // ENOEXEC
        _ if error.raw_os_error() == Some(8) => {
            "it is built for another operating system or processor".to_owned()
        }
        _ => error.to_string(),
    };
    Failure::new(Cause::Setup, format!("{path} cannot be run: {why}"))
}

/// Returns the failure of a program that ended without an answer.
pub(super) fn ended(out: &Output, secrets: &[Key]) -> Failure {
    let stderr = String::from_utf8_lossy(&out.stderr);
    let last = stderr
        .lines()
        .rev()
        .find(|l| !l.trim().is_empty())
        .unwrap_or_default();
    // An error about its arguments comes first, followed by an explanation.
    let wrong = stderr
        .lines()
        .find(|l| l.contains("unknown option") || l.starts_with("error: option"));
    if let Some(wrong) = wrong {
        return too_old(&shown(wrong, secrets));
    }
    if stderr.contains("input exceeds") {
        return Failure::new(
            Cause::TooLarge,
            format!("the prompt is larger than the {MAX_PROMPT} bytes that it takes"),
        );
    }
    let said = if last.is_empty() {
        String::new()
    } else {
        format!(": {}", shown(last, secrets))
    };
    match out.end {
        End::Exit(0) => Failure::new(Cause::Malformed, "it ended without a result"),
        End::Exit(code) => {
            Failure::new(Cause::Unreachable, format!("exited with code {code}{said}"))
        }
        End::Signal(number) => Failure::new(
            Cause::Unreachable,
            format!("ended by signal {number}{said}"),
        ),
        End::TimedOut => Failure::new(Cause::TimedOut, "it took too long"),
        End::Stopped(_) => Failure::new(Cause::Stopped, "the run was ended"),
        End::TooMuch | End::OutOfMemory | End::Ended => {
            Failure::new(Cause::Malformed, "it wrote more than it may")
        }
    }
}

/// Returns the failure that a result reports, or `None` if it is a success.
pub(super) fn of_result(result: &Value, secrets: &[Key]) -> Option<Failure> {
    let subtype = word(result, "subtype");
    if subtype == "success" && result.get("is_error") == Some(&Value::Bool(false)) {
        // Some versions report these cases as success.
        return of_stop(word(result, "stop_reason"))
            .or_else(|| of_ending(word(result, "terminal_reason")));
    }
    let errors = result
        .get("errors")
        .and_then(Value::as_array)
        .and_then(|e| e.first())
        .and_then(Value::as_str);
    let text = Some(word(result, "result"))
        .filter(|t| !t.is_empty())
        .or(errors)
        .unwrap_or_default();
    let status = result.get("api_error_status").and_then(Value::as_u64);
    let lower = text.to_ascii_lowercase();
    let (cause, hint) = match (subtype, status) {
        ("error_max_turns", _) => (Cause::CutOff, None),
        ("error_max_budget_usd", _) => (
            Cause::Refused,
            Some("raise --max-cost, or max_cost_usd in the policy"),
        ),
        ("error_max_structured_output_retries", _) => (Cause::Malformed, None),
        _ if word(result, "stop_reason") == "refusal" => (Cause::Declined, None),
        _ if lower.contains("prompt is too long")
            || word(result, "terminal_reason") == "prompt_too_long" =>
        {
            (Cause::TooLarge, None)
        }
        (_, Some(413)) => (Cause::TooLarge, None),
        _ if word(result, "api_error") == "max_output_tokens"
            || lower.contains("output token maximum") =>
        {
            (Cause::CutOff, None)
        }
        _ if lower.contains("credit balance") => (
            Cause::Refused,
            Some("add credit to the account, or log in with another"),
        ),
        _ if lower.contains("not logged in") || lower.contains("/login") => {
            (Cause::Setup, Some(LOG_IN))
        }
        (_, Some(401)) => (Cause::Refused, Some(LOG_IN)),
        (_, Some(403)) => (Cause::Refused, None),
        (_, Some(404)) => (
            Cause::Setup,
            Some("name a model that the account has: --model, or model in the policy"),
        ),
        (_, Some(429)) => (Cause::Refused, Some("use an account with higher limits")),
        (_, Some(408 | 409 | 500..=599)) => (Cause::Unreachable, None),
        (_, Some(400..=499)) => (Cause::Refused, None),
        _ => (Cause::Unreachable, None),
    };
    let message = match (shown(text, secrets), status) {
        (text, Some(status)) if text.is_empty() => format!("status {status}"),
        (text, None) if text.is_empty() => format!("it failed ({})", shown(subtype, secrets)),
        (text, Some(status)) if !text.contains(&status.to_string()) => {
            format!("status {status}: {text}")
        }
        (text, _) => text,
    };
    let failure = Failure::new(cause, message);
    Some(match hint {
        Some(hint) => failure.hint(hint),
        None => failure,
    })
}

/// Returns the failure for a stop reason of a message, or `None` if the message can be an answer.
pub(super) fn of_stop(reason: &str) -> Option<Failure> {
    Some(match reason {
        "" | "end_turn" | "tool_use" | "stop_sequence" => return None,
        "refusal" => Failure::new(Cause::Declined, "the model refused to answer"),
        "max_tokens" => Failure::new(Cause::CutOff, "the answer reached the limit of its length"),
        "model_context_window_exceeded" => Failure::new(
            Cause::TooLarge,
            "prompt and answer do not fit the model's context",
        ),
        other => Failure::new(
            Cause::Malformed,
            format!("the answer stopped with {}", shown(other, &[])),
        ),
    })
}

/// Returns the failure for the reason why a run ended. Unknown reasons are ignored, because
/// versions differ.
fn of_ending(reason: &str) -> Option<Failure> {
    let cause = match reason {
        "prompt_too_long" => Cause::TooLarge,
        "max_turns" => Cause::CutOff,
        "budget_exhausted" | "blocking_limit" => Cause::Refused,
        "api_error" | "model_error" | "image_error" | "aborted_streaming" | "aborted_tools" => {
            Cause::Unreachable
        }
        "structured_output_retry_exhausted"
        | "stop_hook_prevented"
        | "hook_stopped"
        | "tool_deferred" => Cause::Malformed,
        _ => return None,
    };
    Some(Failure::new(cause, format!("it ended with {reason}")))
}

/// Prepares output of the program for a message: masks secrets, and keeps one line of limited
/// length.
pub(super) fn shown(text: &str, secrets: &[Key]) -> String {
    let masked = secrets
        .iter()
        .fold(text.trim().to_owned(), |text, key| key.mask(&text));
    let line = masked
        .lines()
        .find(|l| !l.trim().is_empty())
        .unwrap_or_default();
    let inert = Inert::new(line.trim());
    shortened(inert.as_str(), MAX_SHOWN).into_owned()
}
