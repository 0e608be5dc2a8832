//! The answer of a tool: an object for programs and a short text for the agent. After a failure,
//! the text keeps the agent from repeating the same call.

use crate::ai::Retry;
use crate::error::{Error, Kind};
use crate::untrusted::Inert;
use crate::wire;
use crate::wire::answer::{CallFailure, CallStatus};
use rmcp::model::{CallToolResult, ContentBlock};
use serde_json::{Map, Value};

/// Bytes of the text, at most.
const MOST: usize = 24 << 10;

/// An answer of a tool.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ToolAnswer {
    pub(super) content: Map<String, Value>,
    /// Lines of text; control characters are escaped when the answer is sent.
    pub(super) text: String,
    pub(super) is_error: bool,
}

impl ToolAnswer {
    /// Creates a successful answer.
    pub(super) fn new(content: Map<String, Value>, text: impl Into<String>) -> Self {
        Self {
            content,
            text: text.into(),
            is_error: false,
        }
    }

    /// Creates the answer to a call that failed.
    pub(super) fn error(e: &Error) -> Self {
        let retryable = e.kind == Kind::Incomplete;
        let message = e.on_one_line();
        let hint = (!e.for_agents.is_empty()).then(|| e.for_agents.join("; "));
        let again = match retryable {
            true => {
                "A later retry may succeed. Do not call this tool in a loop: retry once, then report to the user."
            }
            false => {
                "Do not call this tool again with the same arguments: the answer would be the same."
            }
        };
        let mut text = format!("error: {message}\n");
        if let Some(hint) = &hint {
            text.push_str(&format!("hint: {hint}\n"));
        }
        text.push_str(again);
        let content = CallFailure {
            status: CallStatus::Error,
            outcome: CallStatus::Error,
            retryable,
            retry_after_s: None,
            message: inert(&message),
            hint: hint.as_deref().map(inert),
        };
        Self {
            content: object(wire::value(&content)),
            text,
            is_error: true,
        }
    }

    /// Creates the answer to a call that failed by a defect of this program.
    pub(super) fn internal() -> Self {
        Self::error(
            &Error::usage("an internal error ended the call")
                .hint("standard error of serve-mcp says where; please report it"),
        )
    }

    /// Returns the answer in the type of the protocol.
    pub(super) fn into_result(self) -> CallToolResult {
        let mut text: String = Inert::lines(&self.text).map(|l| format!("{l}\n")).collect();
        if text.len() > MOST {
            text.truncate(text.floor_char_boundary(MOST));
            text.push_str("\n[the rest is in the structured content]\n");
        }
        let content = vec![ContentBlock::text(text.trim_end())];
        let mut result = if self.is_error {
            CallToolResult::error(content)
        } else {
            CallToolResult::success(content)
        };
        result.structured_content = Some(Value::Object(self.content));
        result
    }
}

/// Returns untrusted text with control characters escaped.
fn inert(text: &str) -> String {
    Inert::new(text).to_string()
}

/// Returns the members of an object; empty for any other value.
pub(super) fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(o) => o,
        _ => Map::new(),
    }
}

/// Marks an answer as an incomplete review and states whether a retry can help. Returns the text of
/// the answer with that notice. Blocking findings come first: they block also if other parts of the
/// review are missing.
pub(super) fn partly(
    retry: Retry,
    blocks: bool,
    content: &mut Map<String, Value>,
    text: &str,
) -> String {
    if blocks {
        content
            .entry("status")
            .or_insert_with(|| "needs_changes".into());
    } else {
        content.insert("status".to_owned(), "incomplete".into());
    }
    content.insert("retryable".to_owned(), retry.retryable.into());
    content.insert("retry_after_s".to_owned(), retry.after.into());
    let (text, again) = (text.trim_end(), retry.words());
    let stop = "Do not call this tool in a loop: report to the user what was not reviewed.";
    match blocks {
        true => format!(
            "BLOCKED: fix what blocks first.\n{text}\nINCOMPLETE, too: there may be more to find, since not everything \
             was reviewed. {again} {stop}\n"
        ),
        false => {
            format!(
                "INCOMPLETE: not everything was reviewed, so this is not an approval. {again} {stop}\n{text}\n"
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_missing_hides_no_block() {
        let retry = Retry {
            retryable: false,
            after: None,
        };
        let mut content = object(json!({"status": "needs_changes"}));
        let text = partly(retry, true, &mut content, "F1 major\n");
        assert_eq!(
            (&content["status"], &content["retryable"]),
            (&json!("needs_changes"), &json!(false))
        );
        assert!(
            text.starts_with("BLOCKED") && text.find("F1") < text.find("INCOMPLETE"),
            "{text}"
        );
        let mut content = object(json!({"status": "pending"}));
        assert!(partly(retry, false, &mut content, "F1 minor\n").starts_with("INCOMPLETE"));
        assert_eq!(content["status"], "incomplete");
    }

    /// Checks that the text and the fields agree on whether a retry can help, and when.
    #[track_caller]
    fn agree(content: &Map<String, Value>, text: &str) {
        let said = format!("{content:?}: {text}");
        let (again, after) = (
            content["retryable"] == true,
            content["retry_after_s"].as_u64(),
        );
        assert!(again || after.is_none(), "{said}");
        assert_eq!(
            text.contains("A retry will not succeed") || text.contains("would be the same"),
            !again,
            "{said}"
        );
        assert_eq!(
            text.contains("A retry may succeed after "),
            after.is_some(),
            "{said}"
        );
        assert_eq!(
            text.contains("A later retry may succeed"),
            again && after.is_none(),
            "{said}"
        );
        assert!(
            after.is_none_or(|s| text.contains(&format!(" {s} s, not earlier"))),
            "{said}"
        );
        let error = content["status"] == "error";
        assert!(
            text.contains("Do not call this tool in a loop") || error && !again,
            "{said}"
        );
        assert_eq!(
            text.starts_with("BLOCKED"),
            content["status"] == "needs_changes",
            "{said}"
        );
        assert_eq!(
            text.starts_with("INCOMPLETE"),
            content["status"] == "incomplete",
            "{said}"
        );
        assert_eq!(text.starts_with("error"), error, "{said}");
    }

    #[test]
    fn mcp_15_words_and_fields_agree_whatever_went_wrong() {
        use crate::ai::Setback;
        use crate::ai::ask::Cause::*;
        use std::time::Duration;
        let all = [
            Setup,
            Unreachable,
            Refused,
            TooLarge,
            CutOff,
            Declined,
            Malformed,
            TimedOut,
            Stopped,
            Limit,
        ];
        let afters = [
            None,
            Some(Duration::from_millis(1500)),
            Some(Duration::from_secs(3600)),
        ];
        for cause in all {
            for retry_after in afters {
                let setback = Setback {
                    backend: "b".to_owned(),
                    cause,
                    retry_after,
                };
                for setbacks in [
                    vec![setback.clone()],
                    Vec::new(),
                    vec![setback.clone(), setback.clone()],
                ] {
                    let retry = Retry::of(&setbacks);
                    for blocks in [false, true] {
                        let mut content = Map::new();
                        let text = partly(retry, blocks, &mut content, "F1 major\n");
                        agree(&content, &text);
                    }
                }
                // A quota without a known end does not justify a retry.
                let expected = match cause {
                    Unreachable | TimedOut | Malformed | CutOff => true,
                    Refused => retry_after.is_some(),
                    Setup | TooLarge | Declined | Stopped | Limit => false,
                };
                assert_eq!(
                    Retry::of(&[setback]).retryable,
                    expected,
                    "{cause:?} {retry_after:?}"
                );
            }
        }
        for e in [
            Error::usage("x"),
            Error::incomplete("x").hint("y"),
            Error::usage("x").hint_person("z"),
        ] {
            let answer = ToolAnswer::error(&e);
            agree(&answer.content, &answer.text);
        }
    }

    #[test]
    fn hints_for_people_are_not_told_to_agents() {
        let error = Error::usage("x")
            .hint_person("claude-reviewer history")
            .hint_agent("get_review_history");
        let answer = ToolAnswer::error(&error.hint("both"));
        assert_eq!(answer.content["hint"], "get_review_history; both");
        assert!(!answer.text.contains("claude-reviewer"), "{}", answer.text);
    }

    #[test]
    fn an_error_says_not_to_ask_the_same_again() {
        let answer = ToolAnswer::error(&Error::usage("no \u{1b}[31mrepository").hint("git init"));
        assert_eq!(answer.content["status"], "error");
        assert_eq!(answer.content["retryable"], false);
        assert!(
            !answer.content["message"]
                .as_str()
                .unwrap()
                .contains('\u{1b}')
        );
        let result = answer.into_result();
        assert_eq!(result.is_error, Some(true));
        let text = serde_json::to_string(&result.content).unwrap();
        assert!(
            text.contains("again with the same arguments") && !text.contains("\\u001b"),
            "{text}"
        );
    }
}
