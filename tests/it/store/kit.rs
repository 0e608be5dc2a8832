//! A store in a temporary folder, sample documents, and a function that runs a test's work in a
//! separate process.

use claude_reviewer::history::{Closing, Options, Progress, Saved, SessionId, Store};
use claude_reviewer::policy::HistoryPolicy;
use claude_reviewer::review::{Record, StoreLocation};
use claude_reviewer::wire::fixing::{Attempt, FixOutcome, StoredFix};
use claude_reviewer::wire::stored::{Response, Review, Session, Status, StoredRequest};
use jiff::Timestamp;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use tempfile::TempDir;

/// A folder for a store.
pub struct Yard {
    dir: TempDir,
}

impl Yard {
    pub fn new() -> Self {
        Self {
            dir: crate::support::temp_dir(),
        }
    }

    pub fn top(&self) -> &Path {
        self.dir.path()
    }

    /// Returns the path of an entry in the store.
    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(".reviews").join(name)
    }

    pub fn place(&self) -> StoreLocation {
        place(self.dir.path())
    }

    pub fn store(&self) -> Store {
        Store::open(&self.place()).unwrap()
    }

    pub fn store_with(&self, options: &Options) -> Store {
        Store::open_with(&self.place(), options).unwrap()
    }

    /// Returns the names of all files of the store, with their folders.
    pub fn files(&self) -> Vec<String> {
        let mut files = Vec::new();
        walk(&self.path(""), "", &mut files);
        files.sort();
        files
    }
}

fn walk(dir: &Path, prefix: &str, files: &mut Vec<String>) {
    let Ok(entries) = std::fs::read_dir(dir) else {
        return;
    };
    for entry in entries {
        let entry = entry.unwrap();
        let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
        match entry.file_type().unwrap().is_dir() {
            true => walk(&entry.path(), &format!("{name}/"), files),
            false => files.push(name),
        }
    }
}

pub fn place(top: &Path) -> StoreLocation {
    StoreLocation {
        top: top.to_owned(),
        history: HistoryPolicy {
            path: ".reviews".to_owned(),
            commit: false,
        },
        max_rounds: 5,
        actor: "A U Thor <author@example.com>".to_owned(),
        head: None,
        branch: None,
        remotes: Vec::new(),
    }
}

pub fn time(text: &str) -> Timestamp {
    text.parse().unwrap()
}

/// Returns noon of a day in January 2026.
pub fn day(n: u32) -> Timestamp {
    time(&format!("2026-01-{n:02}T12:00:00Z"))
}

pub fn id(name: &str) -> SessionId {
    SessionId::parse(name).unwrap()
}

pub fn change(text: &str) -> Record {
    Record {
        text: text.as_bytes().to_vec(),
        left_out: Vec::new(),
    }
}

/// Returns a request as JSON.
pub fn request_json(id: &str) -> Value {
    json!({
        "schema_version": 1, "review_id": id, "timestamp": "2026-01-31T12:00:00Z",
        "summary": "what was done", "relevant_docs": [], "focus_areas": [],
        "source": {"kind": "staged", "base": null, "head": null, "tree": null},
        "asked": {"rev": null, "untracked": false, "files": []},
        "label": "the staged change", "author": "A U Thor", "via": "cli",
        "tool": {"name": "claude-reviewer", "version": "0.1.0", "rules_hash": "0123"},
        "change": {"hash": "00", "bytes": 3, "left_out": []}
    })
}

/// Returns a review with this number of blocking findings as JSON.
pub fn review_json(id: &str, round: u32, blocking: usize) -> Value {
    let verdict = if blocking == 0 { "pass" } else { "block" };
    let finding = |n: usize| {
        json!({
            "id": format!("F{n}"), "fingerprint": format!("{n:016x}"), "rule_id": "made-up", "origin": "rules",
            "file": "a.py", "line": 1, "end_line": 1, "commit": null, "severity": "major", "category": "bug",
            "confidence": "high", "title": "a title", "message": "a message", "failure": null, "suggestion": null,
            "replacement": null, "quote": "x = 1", "cwe": null, "convention": null, "evidence": ["rule:made-up"],
            "blocking": true, "disputed": null, "waived": null, "disposition": "pending", "suppressed": null,
            "references": []
        })
    };
    let report = json!({
        "schema_version": 1, "tool": {"name": "claude-reviewer", "version": "0.1.0", "rules_hash": "0123"},
        "review_id": id, "round": round, "outcome": "reviewed", "timestamp": "2026-01-31T12:00:00Z",
        "source": {"kind": "staged", "base": null, "head": null, "tree": null},
        "verdict": verdict, "exit_code": i32::from(blocking > 0), "assessment": null,
        "summary": {"text": "", "critical": 0, "major": blocking, "minor": 0, "suggestion": 0, "suppressed": 0, "dropped": 0},
        "findings": (1..=blocking).map(finding).collect::<Vec<_>>(), "notes": [], "design_compliance": null,
        "missing_requirements": [], "opinions": [], "test_results": null,
        "coverage": {"files_total": 1, "files_reviewed": 1, "hunks_total": 1, "hunks_reviewed": 1, "cached": 0, "skipped": [], "failed": []},
        "usage": [], "policy": {"origin": "default", "hash": "00"}, "duration_ms": 1
    });
    json!({
        "schema_version": 1, "review_id": id, "timestamp": "2026-01-31T12:00:00Z",
        "status": if blocking == 0 { "in_progress" } else { "needs_changes" },
        "round": round, "outcome": "reviewed", "verdict": verdict, "design_compliance": null, "comments": [],
        "missing_requirements": [],
        "summary": {"design_violations": 0, "critical_issues": 0, "major_issues": blocking, "minor_issues": 0, "suggestions": 0},
        "test_results": null, "overall_assessment": null, "since": null,
        "advice": {"action": "complete", "text": "nothing blocks", "circling": []},
        "change": {"hash": "00", "bytes": 3, "left_out": []},
        "report": report
    })
}

pub fn request(id: &str) -> StoredRequest {
    serde_json::from_value(request_json(id)).unwrap()
}

pub fn review(id: &str, round: u32, blocking: usize) -> Review {
    serde_json::from_value(review_json(id, round, blocking)).unwrap()
}

pub fn response(id: &str, round: u32) -> Response {
    Response {
        schema_version: 1,
        review_id: id.to_owned(),
        round,
        timestamp: "2026-01-31T12:00:00Z".to_owned(),
        addressed: vec!["F1".to_owned()],
        text: Some("mended".to_owned()),
        ..Response::default()
    }
}

/// Stores a session whose first round has this number of blocking findings.
pub fn create(
    store: &Store,
    now: Timestamp,
    blocking: usize,
) -> claude_reviewer::error::Result<Saved> {
    store.create(now, &change("+1\n"), &|id| {
        let id = id.to_string();
        (request(&id), review(&id, 1, blocking))
    })
}

/// Stores a further round, with a response to the previous one.
pub fn append(
    store: &Store,
    id: &SessionId,
    now: Timestamp,
) -> claude_reviewer::error::Result<Saved> {
    append_after(store, id, now, store.session(id)?.rounds.len() as u32)
}

/// Stores the round after this one, with a response to it.
pub fn append_after(
    store: &Store,
    id: &SessionId,
    now: Timestamp,
    last: u32,
) -> claude_reviewer::error::Result<Saved> {
    let name = id.to_string();
    store.append(
        id,
        now,
        last,
        &change("+2\n"),
        Some(response(&name, last)),
        &|round| review(&name, round, 0),
    )
}

pub fn closing(status: Status) -> Closing {
    Closing {
        status,
        notes: None,
        actor: "A U Thor".to_owned(),
        via: "cli",
        now: day(31),
    }
}

/// Stores a session with two rounds, a response between them and a closing: every kind of file.
pub fn full_session(store: &Store) -> SessionId {
    let id = create(store, day(31), 1).unwrap().id;
    append(store, &id, day(31)).unwrap();
    store
        .complete(&id, closing(Status::Approved), false)
        .unwrap();
    id
}

/// Returns a fix with a number of attempts.
pub fn fix(attempts: u32) -> StoredFix {
    let attempt = |n| Attempt {
        attempt_number: n,
        cost: Some(0.1 + 0.2),
        patch: "+x\n".to_owned(),
        ..Attempt::default()
    };
    let attempts = (1..=attempts).map(attempt).collect();
    StoredFix {
        attempts,
        findings: vec!["F1".to_owned()],
        ..StoredFix::new("cli", Vec::new(), day(31))
    }
}

/// Stores a session like [`full_session`], with fixes: one that ends in the second round, and one
/// after the closing.
pub fn fixed_session(store: &Store) -> SessionId {
    let id = create(store, day(31), 1).unwrap().id;
    let first = store.record_fix(&id, fix(0), Progress::Open).unwrap();
    append(store, &id, day(31)).unwrap();
    let ended = StoredFix {
        attempts: fix(2).attempts,
        outcome: FixOutcome::Applied,
        ..first
    };
    store.record_fix(&id, ended, Progress::Ended).unwrap();
    store
        .complete(&id, closing(Status::Approved), false)
        .unwrap();
    store.record_fix(&id, fix(1), Progress::Ended).unwrap();
    store.complete(&id, closing(Status::Merged), false).unwrap();
    id
}

/// Expects that all sessions are unmodified, and returns them, newest first.
#[track_caller]
pub fn whole(store: &Store) -> Vec<Session> {
    let history = store.list(1000).unwrap();
    assert!(history.damaged.is_empty(), "{:?}", history.damaged);
    for checked in store.verify(None, None).unwrap() {
        assert!(checked.edits.is_empty(), "{checked:?}");
    }
    let sessions: Vec<_> = history
        .sessions
        .iter()
        .map(|s| store.session(&id(&s.review_id)).unwrap())
        .collect();
    let newest = history.sessions.first().map(|s| id(&s.review_id));
    assert_eq!(store.latest().unwrap(), newest);
    sessions
}

/// Starts this test program again for one of the cases of `kill::child_work`.
pub fn child(work: &str, top: &Path, vars: &[(&str, &str)]) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args([
            "store::kill::child_work",
            "--exact",
            "--nocapture",
            "--test-threads=1",
        ])
        .env("STORE_CHILD", work)
        .env("STORE_TOP", top)
        .envs(vars.iter().copied())
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap()
}
