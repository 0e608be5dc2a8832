//! Tests of commands in replies on GitLab.

use super::LINE;
use crate::forge::gitlab::World;
use serde_json::{Value, json};

const PUSHED: &str = "2026-01-01T10:00:00.000Z";
const AFTER: &str = "2026-01-01T11:00:00.000Z";

/// Merge request 12 with one major finding, reviewed and posted, and a reply of a maintainer.
fn talk(body: &str) -> World {
    let mut w = World::new();
    w.push_with("a = 1\nb = 2\nc = 3\n", &[("app.py", LINE)]);
    super::allow(&w.repo);
    let head = w.head.clone();
    w.lab.with(|s| {
        s.shown.push(("app.py", 1, None));
        s.versions = vec![json!({ "id": 5, "head_commit_sha": head, "created_at": PUSHED })];
        let author = "author@example.com";
        s.commits[0] = json!({ "id": head, "message": "change", "author_email": author, "committer_email": author });
        s.accounts = vec![
            user(3, "author", 50, Some(author)),
            user(20, "mara", 40, Some("mara@example.com")),
            user(22, "dev", 30, None),
        ];
    });
    w.post(&[]).run(1);
    w.lab.with(|s| {
        let note = json!({
            "id": 501, "type": "DiffNote", "body": body, "system": false, "created_at": AFTER, "updated_at": AFTER,
            "author": { "id": 20, "username": "mara", "state": "active" },
        });
        s.discussions[0]["notes"].as_array_mut().unwrap().push(note);
    });
    w
}

fn user(id: u64, name: &str, level: u64, address: Option<&str>) -> Value {
    json!({ "id": id, "username": name, "state": "active", "bot": false, "access_level": level, "public_email": address })
}

fn report(w: &World, code: i32) -> (Value, Vec<String>) {
    super::outcome(
        &w.reviewer(&["review", "pr", "12", "--no-save", "--format", "json"])
            .run(code),
    )
}

#[track_caller]
fn is_refused(w: &World, why: &str) {
    let (waived, notes) = report(w, 1);
    assert_eq!(waived, Value::Null, "{why}");
    assert!(
        notes.len() == 1 && notes[0].contains(why),
        "{why}: {notes:#?}"
    );
}

#[test]
fn a_maintainer_of_gitlab_waives_a_finding_by_a_reply() {
    let w = talk("/reject a demo");
    let (waived, notes) = report(&w, 0);
    let link = "https://forge.example/g/sub/p/-/merge_requests/12#note_501";
    assert_eq!(
        (waived, notes),
        (
            json!({ "reason": "a demo", "actor": "@mara", "link": link }),
            Vec::new()
        )
    );
    for _ in 0..2 {
        w.post(&["--gate"]).run(0);
    }
    w.lab
        .with(|s| assert_eq!(s.notes(true)[0]["resolved"], false));
}

/// A change of the server's state.
type Change = fn(&mut super::super::lab::State);

#[test]
fn gitlab_refuses_what_others_refuse() {
    let cases: [(&str, Change); 11] = [
        ("role Maintainer or Owner", |s| {
            s.accounts[1]["access_level"] = json!(30);
        }),
        ("not a member", |s| {
            s.accounts[1]["access_level"] = Value::Null;
        }),
        ("role Maintainer or Owner", |s| {
            s.accounts[1]["state"] = json!("blocked");
        }),
        ("not written by a person", |s| {
            s.accounts[1]["bot"] = json!(true);
        }),
        ("not written by a person", |s| {
            drop(s.accounts[1].as_object_mut().unwrap().remove("bot"));
        }),
        ("an author of the change", |s| {
            s.commits[0]["committer_email"] = json!("mara@example.com");
        }),
        ("an author of the change", |s| {
            s.commits[0]["message"] = json!("x\n\nCo-authored-by: M <mara@example.com>");
        }),
        ("not all authors of the change are known", |s| {
            s.commits[0]["author_email"] = json!("x@example.com");
        }),
        ("it was edited", |s| {
            s.discussions[0]["notes"][1]["updated_at"] = json!("2026-01-01T11:00:00.001Z");
        }),
        ("has changed since", |s| {
            s.discussions[0]["notes"][0]["updated_at"] = json!(AFTER);
        }),
        ("older than the push of the head", |s| {
            s.versions[0]["created_at"] = json!(AFTER);
        }),
    ];
    for (why, change) in cases {
        let w = talk("/reject a demo");
        w.lab.with(change);
        is_refused(&w, why);
    }
    // The newest version has another head, or the list cannot be read: the reply names the head.
    let w = talk("/reject a demo");
    w.lab
        .with(|s| s.versions[0]["head_commit_sha"] = json!("1".repeat(40)));
    is_refused(&w, "name the full ID of the head");
    let head = w.head.clone();
    w.lab
        .with(|s| s.discussions[0]["notes"][1]["body"] = json!(format!("/reject {head} a demo")));
    assert_eq!(report(&w, 0).0["reason"], "a demo");
}

#[test]
fn private_addresses_that_gitlab_made_name_their_account() {
    let host = "127.0.0.1";
    let w = talk("/reject a demo");
    let set = |address: String| {
        w.lab.with(|s| {
            s.commits[0]["author_email"] = json!(address);
            s.commits[0]["committer_email"] = json!(address);
        });
    };
    set(format!("20-mara@users.noreply.{host}"));
    is_refused(&w, "an author of the change");
    set(format!("3-author@users.noreply.{host}"));
    assert_eq!(report(&w, 0).0["actor"], "@mara");
    // Addresses of another host do not identify an account.
    set("3-author@users.noreply.gitlab.com".to_owned());
    is_refused(&w, "not all authors of the change are known");
}
