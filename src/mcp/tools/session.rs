//! Stored reviews: the tools that request a round, list the history, and close a session.

use super::answers::{kind, schema};
use super::review_words as words;
use super::{McpTool, ToolCall, ToolEffect};
use crate::ai::Retry;
use crate::ai::context;
use crate::error::{Error, Result};
use crate::finding::Category;
use crate::history::{Closing, SessionId, Store};
use crate::mcp::answer::{self, ToolAnswer, object};
use crate::mcp::args::{Arg, ArgType, TEXT, shown};
use crate::mcp::fence::revision;
use crate::policy::RulesPolicy;
use crate::report;
use crate::request::{ReviewRequest, Source};
use crate::review::StoreLocation;
use crate::rounds::response::GivenResponse as Response;
use crate::rounds::{self, Ask, Done, Save};
use crate::rules::RuleSet;
use crate::wire;
use crate::wire::answer::{Completed, RefusedDocument, Reviewed};
use crate::wire::stored::{self, Status};
use crate::wire::{Outcome, Verdict};
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};

/// Sessions in one list, at most.
const MOST_LISTED: i64 = 100;
const SOURCES: &[&str] = &["changes", "staged", "unstaged", "commit", "branch"];

const ID: ArgType = ArgType::Text(64);

pub(super) const TOOLS: &[McpTool] = &[
    McpTool {
        name: "request_review",
        title: "Request a review",
        about: "Reviews your current changes and stores the review. The call returns when the review is done. In \
                summary, describe the task and your work. After you fix the findings, call it again with \
                previous_review_id and response: the answer lists which findings are fixed, open or new. Follow advice.",
        args: &[
            Arg {
                name: "summary",
                about: "The task, the work done, and the decisions made.",
                kind: ArgType::Text(TEXT),
                required: true,
            },
            Arg {
                name: "relevant_docs",
                about: "Design documents that the change should follow: paths in the repository.",
                kind: ArgType::Texts {
                    most: 50,
                    bytes: 4096,
                },
                required: false,
            },
            Arg {
                name: "focus_areas",
                about: "Focus of the review: categories (bugs, security, performance, style, architecture, design, \
                        missing-requirements, best-practices, tests) or your own words.",
                kind: ArgType::Texts {
                    most: 30,
                    bytes: 1000,
                },
                required: false,
            },
            Arg {
                name: "previous_review_id",
                about: "The review_id of the previous round, for a follow-up.",
                kind: ID,
                required: false,
            },
            Arg {
                name: "response",
                about: "Your response to the findings of the previous round: addressed findings (F1 or fingerprint), \
                        explanations for the others, changed files, questions.",
                kind: ArgType::TextOrObject(response_schema),
                required: false,
            },
            Arg {
                name: "source",
                about: "The change to review. Default: changes, which is everything since the default branch, \
                        including new files; in a follow-up, the source of the first round.",
                kind: ArgType::TextOrObject(source_schema),
                required: false,
            },
        ],
        answers: || schema(&[kind::<Reviewed>]),
        effect: ToolEffect::Adds,
        asks: true,
        run: request_review,
        refused: None,
    },
    McpTool {
        name: "get_review_history",
        title: "List past reviews",
        about: "Lists stored reviews, newest first, or shows one with all its rounds.",
        args: &[
            Arg {
                name: "limit",
                about: "Number of reviews to list.",
                kind: ArgType::Number {
                    from: 1,
                    to: MOST_LISTED,
                    default: 5,
                },
                required: false,
            },
            Arg {
                name: "review_id",
                about: "ID of the review to show, or latest.",
                kind: ID,
                required: false,
            },
        ],
        answers: || schema(&[kind::<stored::History>, kind::<stored::Session>]),
        // Damaged sessions are moved aside.
        effect: ToolEffect::Settles,
        asks: false,
        run: history,
        refused: None,
    },
    McpTool {
        name: "mark_review_complete",
        title: "Close a review",
        about: "Closes a stored review. Refuses an approval if findings block or the last round is incomplete.",
        args: &[
            Arg {
                name: "review_id",
                about: "ID of the review to close.",
                kind: ID,
                required: true,
            },
            Arg {
                name: "final_status",
                about: "Final status.",
                kind: ArgType::Choice {
                    of: &["approved", "abandoned", "merged"],
                    default: None,
                },
                required: true,
            },
            Arg {
                name: "notes",
                about: "Notes to store with the review.",
                kind: ArgType::Text(16 << 10),
                required: false,
            },
        ],
        answers: || schema(&[kind::<Completed>]),
        effect: ToolEffect::Settles,
        asks: false,
        run: complete,
        refused: None,
    },
];

/// Requests to the store.
impl ToolCall<'_> {
    /// Returns a request for the served repository.
    pub(super) fn stored(&self) -> Result<ReviewRequest> {
        let served = self.fence.repository(None, self.env)?.whole();
        Ok(self.request(Source::Auto, &served))
    }

    /// Returns the store, if it exists.
    pub(in crate::mcp) fn store(&self) -> Result<(StoreLocation, Option<Store>)> {
        rounds::open(&self.stored()?, self.env)
    }

    /// Finds the session that a client names.
    pub(in crate::mcp) fn session(&self, name: &str) -> Result<(StoreLocation, Store, SessionId)> {
        let (place, store) = self.store()?;
        let store = store.ok_or_else(|| unknown_review(name))?;
        let id = match name {
            "latest" => store.latest()?,
            _ => SessionId::parse(name),
        };
        Ok((place, store, id.ok_or_else(|| unknown_review(name))?))
    }
}

fn unknown_review(name: &str) -> Error {
    Error::usage(format!("review {} not found", shown(name)))
        .hint("get_review_history lists them; review_id is as 2026-01-31-001")
}

fn request_review(call: &ToolCall<'_>) -> Result<ToolAnswer> {
    let summary = call.given.text("summary").unwrap_or_default().trim();
    if summary.is_empty() {
        return Err(
            Error::usage("summary is empty").hint("say what was asked for and what you did")
        );
    }
    let mut request = call.stored()?;
    let follow_up = call
        .given
        .text("previous_review_id")
        .map(|id| call.session(id).map(|(.., id)| id))
        .transpose()?;
    let response = call.given.value("response").map(answered).transpose()?;
    if response.is_some() && follow_up.is_none() {
        return Err(
            Error::usage("response answers an earlier round, and none is named")
                .hint("give previous_review_id, or leave response out"),
        );
    }
    let (documents, refused) = documents(call, &request.dir);
    let (areas, words): (Vec<_>, Vec<_>) = call
        .given
        .texts("focus_areas")
        .into_iter()
        .partition(|f| Category::parse(f).is_some());
    let areas: Vec<_> = areas.into_iter().filter_map(Category::parse).collect();
    request.overrides.focus = (!areas.is_empty()).then_some(areas);
    request.brief.summary = Some(summary.to_owned());
    request.brief.documents = documents;
    request.brief.focus = words
        .into_iter()
        .filter(|w| !w.trim().is_empty())
        .map(str::to_owned)
        .collect();
    match call.given.value("source") {
        Some(value) => (request.source, request.files) = source(value)?,
        None if follow_up.is_none() => request.source = Source::Changes { base: None },
        None => {}
    }
    let done = rounds::review(
        &Ask {
            request,
            follow_up,
            response,
            save: Save::Yes,
            pull: None,
            via: "mcp",
        },
        &call.world(),
    )?;
    Ok(reviewed(&done, &refused))
}

/// Parses the coder's response.
fn answered(value: &Value) -> Result<Response> {
    match value {
        Value::String(text) => Response::parse(text),
        other => Response::from_json(other),
    }
}

/// Returns the documents that a backend may get, relative to the top, and the rejected ones with
/// the reason.
fn documents(call: &ToolCall<'_>, top: &Path) -> (Vec<PathBuf>, Vec<RefusedDocument>) {
    let (mut fine, mut refused) = (Vec::new(), Vec::new());
    for name in call.given.texts("relevant_docs") {
        let inside = call.fence.document(name, top).and_then(|full| {
            let inside = full.strip_prefix(top).map(Path::to_owned);
            inside.map_err(|_| {
                Error::usage(format!("{} lies outside of the repository", shown(name)))
            })
        });
        match inside {
            Ok(path) => fine.push(path),
            Err(e) => {
                let path = shown(name).trim_matches('"').to_owned();
                refused.push(RefusedDocument {
                    path,
                    reason: e.message,
                });
            }
        }
    }
    (fine, refused)
}

/// Returns the error for an invalid source.
fn bad_source(what: &str) -> Error {
    Error::usage(format!("source: {what}")).hint(format!(
        "one of {}, or an object with kind and, as it needs them, base, head, commit, files",
        SOURCES.join(", ")
    ))
}

/// Returns a member of a source that names a revision.
fn revision_of(members: &Map<String, Value>, name: &str) -> Result<Option<String>> {
    match members.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(s)) => {
            revision(&format!("source.{name}"), s).map(|s| Some(s.to_owned()))
        }
        Some(_) => Err(bad_source(&format!("{name} is not a string"))),
    }
}

/// Parses the source of a review and its file filter.
pub(super) fn source(value: &Value) -> Result<(Source, Vec<String>)> {
    let empty = Map::new();
    let (kind, members) = match value {
        Value::String(kind) => (kind.as_str(), &empty),
        Value::Object(o) => (
            o.get("kind")
                .and_then(Value::as_str)
                .ok_or_else(|| bad_source("kind is missing"))?,
            o,
        ),
        _ => return Err(bad_source("it is neither a string nor an object")),
    };
    let takes: &[&str] = match kind {
        "changes" => &["kind", "base", "files"],
        "staged" => &["kind", "files"],
        "unstaged" => &["kind", "untracked", "files"],
        "commit" => &["kind", "commit", "files"],
        "branch" => &["kind", "head", "base", "files"],
        other => return Err(bad_source(&format!("{} not found", shown(other)))),
    };
    if let Some(unknown) = members.keys().find(|k| !takes.contains(&k.as_str())) {
        return Err(bad_source(&format!(
            "{kind} does not take {}",
            shown(unknown)
        )));
    }
    let files = match members.get("files") {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(list)) if list.len() <= 1000 => list
            .iter()
            .map(|f| {
                f.as_str()
                    .filter(|f| super::is_pattern(f))
                    .map(str::to_owned)
            })
            .collect::<Option<Vec<_>>>()
            .ok_or_else(|| {
                bad_source(
                    "files contains an entry that is not a path relative to the repository's root",
                )
            })?,
        Some(_) => return Err(bad_source("files is not a list of at most 1000 paths")),
    };
    let source = match kind {
        "staged" => Source::Staged,
        "unstaged" => {
            let untracked = match members.get("untracked") {
                None | Some(Value::Null) => false,
                Some(Value::Bool(b)) => *b,
                Some(_) => return Err(bad_source("untracked is neither true nor false")),
            };
            Source::Unstaged { untracked }
        }
        "commit" => {
            let rev =
                revision_of(members, "commit")?.ok_or_else(|| bad_source("commit is missing"))?;
            Source::Commit { rev, parent: None }
        }
        "branch" => Source::Branch {
            head: revision_of(members, "head")?,
            base: revision_of(members, "base")?,
        },
        _ => Source::Changes {
            base: revision_of(members, "base")?,
        },
    };
    Ok((source, files))
}

/// Creates the answer for a round.
fn reviewed(done: &Done, refused: &[RefusedDocument]) -> ToolAnswer {
    let stored = &done.stored;
    let unsaved = done.unsaved.clone();
    let (review, refused_docs) = (stored.clone(), refused.to_vec());
    let whole = Reviewed {
        review,
        refused_docs,
        unsaved,
        retryable: None,
        retry_after_s: None,
    };
    let mut content = object(wire::value(&whole));
    let mut text = words::report(&stored.report);
    if stored.review_id.is_empty() {
        content.insert("review_id".to_owned(), Value::Null);
    } else {
        text = format!(
            "review_id {}, round {}\n{text}",
            stored.review_id, stored.round
        );
    }
    if stored.outcome == Outcome::Incomplete || stored.verdict == Verdict::Incomplete {
        let retry = Retry::of(&done.review.models.setbacks);
        text = answer::partly(retry, stored.verdict == Verdict::Block, &mut content, &text);
    }
    if let Some(since) = &stored.since {
        text.push_str(&format!(
            "since round {}: {}\n",
            since.round,
            report::changes(since)
        ));
    }
    for doc in refused {
        text.push_str(&format!(
            "document not given to the reviewer: {}\n",
            doc.reason
        ));
    }
    if let Some(why) = &done.unsaved {
        text.push_str(&format!(
            "the review is not stored, so it cannot be followed up: {why}\n"
        ));
    }
    text.push_str(&format!(
        "advice ({}): {}\n",
        wire::name(&stored.advice.action),
        stored.advice.text
    ));
    for why in &stored.advice.circling {
        text.push_str(&format!("- {why}\n"));
    }
    ToolAnswer::new(content, text)
}

fn history(call: &ToolCall<'_>) -> Result<ToolAnswer> {
    if let Some(name) = call.given.text("review_id") {
        let (_, store, id) = call.session(name)?;
        let session = store.session(&id)?;
        let text = session_words(&session);
        return Ok(ToolAnswer::new(object(wire::value(&session)), text));
    }
    let limit = usize::try_from(call.given.number("limit").unwrap_or(5)).unwrap_or(5);
    let (_, store) = call.store()?;
    let history = match store {
        Some(store) => store.list(limit)?,
        None => stored::History {
            schema_version: stored::STORED_VERSION,
            sessions: Vec::new(),
            damaged: Vec::new(),
        },
    };
    let mut text = String::new();
    for s in &history.sessions {
        text.push_str(&format!(
            "{}  {}  verdict {}  rounds {}  {} by {}\n",
            s.review_id,
            wire::name(&s.status),
            wire::name(&s.verdict),
            s.rounds,
            s.label,
            s.author
        ));
    }
    if history.sessions.is_empty() {
        text.push_str("no review is stored here yet\n");
    }
    for d in &history.damaged {
        text.push_str(&format!("{} cannot be read: {}\n", d.review_id, d.why));
    }
    Ok(ToolAnswer::new(object(wire::value(&history)), text))
}

/// Describes the state of a session.
fn session_words(session: &stored::Session) -> String {
    let mut text = format!(
        "{}  {}  rounds {}\n",
        session.review_id,
        wire::name(&session.status),
        session.rounds.len()
    );
    if let Some(last) = session.rounds.last() {
        text.push_str(&words::report(&last.review.report));
        text.push_str(&format!("advice: {}\n", last.review.advice.text));
    }
    text
}

fn complete(call: &ToolCall<'_>) -> Result<ToolAnswer> {
    let (place, store, id) = call.session(call.given.text("review_id").unwrap_or_default())?;
    let status = match call.given.text("final_status") {
        Some("approved") => Status::Approved,
        Some("merged") => Status::Merged,
        _ => Status::Abandoned,
    };
    // Redact the notes, as all stored text of an agent.
    let rules = RuleSet::new(&RulesPolicy::default(), &[])?;
    let notes = call
        .given
        .text("notes")
        .map(|n| context::summary(n, &rules))
        .filter(|n| !n.is_empty());
    let actor = context::summary(&place.actor, &rules);
    let closing = Closing {
        status,
        notes,
        actor,
        via: "mcp",
        now: call.now,
    };
    let session = store.complete(&id, closing, false)?;
    let text = format!(
        "review {} is {}",
        session.review_id,
        wire::name(&session.status)
    );
    let stored::Session {
        review_id,
        status,
        rounds,
        completion,
        head,
        ..
    } = session;
    let done = Completed {
        review_id,
        status,
        rounds: rounds.len(),
        completion,
        head,
    };
    Ok(ToolAnswer::new(object(wire::value(&done)), text))
}

fn response_schema() -> Value {
    let texts = json!({"type": "array", "items": {"type": "string"}});
    json!({"anyOf": [{"type": "string", "maxLength": TEXT}, {"type": "object", "properties": {
        "addressed": texts, "explanations": {"type": "array", "items": {"type": "object", "properties": {
            "finding": {"type": "string"}, "text": {"type": "string"}}}},
        "modified_files": texts, "questions": texts, "text": {"type": "string"}}}]})
}

fn source_schema() -> Value {
    json!({"anyOf": [{"type": "string", "enum": SOURCES}, {"type": "object", "properties": {
        "kind": {"type": "string", "enum": SOURCES},
        "base": {"type": "string", "description": "for changes and branch: the base revision"},
        "head": {"type": "string", "description": "for branch: the revision to review; default HEAD"},
        "commit": {"type": "string", "description": "commit: which"},
        "untracked": {"type": "boolean", "description": "unstaged: new files too"},
        "files": {"type": "array", "items": {"type": "string"}, "description": "Only these paths or globs"}},
        "required": ["kind"], "additionalProperties": false}]})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_is_a_word_or_an_object() {
        for (value, meant) in [
            (json!("changes"), Source::Changes { base: None }),
            (json!("staged"), Source::Staged),
            (
                json!({"kind": "unstaged", "untracked": true}),
                Source::Unstaged { untracked: true },
            ),
            (
                json!({"kind": "changes", "base": "main"}),
                Source::Changes {
                    base: Some("main".to_owned()),
                },
            ),
            (
                json!({"kind": "commit", "commit": "HEAD"}),
                Source::Commit {
                    rev: "HEAD".to_owned(),
                    parent: None,
                },
            ),
            (
                json!({"kind": "branch", "head": null}),
                Source::Branch {
                    head: None,
                    base: None,
                },
            ),
        ] {
            assert_eq!(source(&value).unwrap().0, meant, "{value}");
        }
        let files = source(&json!({"kind": "staged", "files": ["src/*.rs"]}))
            .unwrap()
            .1;
        assert_eq!(files, ["src/*.rs"]);
        for bad in [
            json!("patch"),
            json!("commit"),
            json!({}),
            json!({"kind": "staged", "base": "main"}),
            json!({"kind": "commit", "commit": "--output=x"}),
            json!({"kind": "changes", "base": 5}),
            json!({"kind": "unstaged", "untracked": "yes"}),
            json!({"kind": "staged", "files": ["../x"]}),
            json!({"kind": "staged", "files": [1]}),
        ] {
            assert!(
                source(&bad).unwrap_err().message.starts_with("source"),
                "{bad}"
            );
        }
    }
}
