//! Tests of commands in replies on both Bitbuckets.

use super::LINE;
use crate::forge::bitbucket::hub::{Speech, State};
use crate::forge::bitbucket::{BOTH, World};
use serde_json::{Value, json};

/// 10:00, 11:00 and 12:00 on the first of January 2026.
const PUSHED: u64 = 1_767_261_600_000;
const AFTER: u64 = 1_767_265_200_000;
const LATER: u64 = 1_767_268_800_000;

/// Pull request 12 with one major finding, reviewed and posted, and a reply of an administrator.
fn talk(speech: Speech, body: &str) -> World {
    let mut w = World::new(speech);
    w.push_with("a = 1\nb = 2\nc = 3\n", &[("app.py", LINE)], false);
    super::allow(&w.repo);
    let head = w.head.clone();
    w.hub.with(|s| {
        let author = person(speech, 3, "author");
        s.written = match speech {
            Speech::Server => json!({ "author": author, "committer": author }),
            Speech::Cloud => {
                let by = json!({ "raw": "A <author@example.com>", "user": author });
                json!({ "author": by, "committer": by })
            }
        };
        if let Speech::Cloud = speech {
            s.events = vec![update(&head, "2026-01-01T10:00:00.000000+00:00")];
        }
        s.grants[0] = vec![grant(speech, 20, "mara")];
    });
    w.post(&[]).run(1);
    w.hub.with(|s| {
        let root = s.notes[0].id;
        s.replies = vec![match speech {
            Speech::Server => json!({
                "root": root, "id": 501, "version": 0, "text": body, "author": person(speech, 20, "mara"),
                "createdDate": AFTER, "updatedDate": AFTER, "comments": [],
            }),
            Speech::Cloud => json!({
                "id": 501, "content": { "raw": body }, "user": person(speech, 20, "mara"), "parent": { "id": root },
                "created_on": "2026-01-01T11:00:00.000000+00:00", "updated_on": "2026-01-01T11:00:00.000000+00:00",
                "deleted": false, "links": { "html": { "href": "https://bitbucket.example/c501" } },
            }),
        }];
    });
    w
}

fn person(speech: Speech, id: u64, name: &str) -> Value {
    match speech {
        Speech::Server => json!({
            "id": id, "name": name, "emailAddress": format!("{name}@example.com"), "active": true, "type": "NORMAL",
        }),
        Speech::Cloud => json!({ "uuid": format!("{{{id}}}"), "nickname": name, "type": "user" }),
    }
}

fn grant(speech: Speech, id: u64, name: &str) -> Value {
    let permission = if let Speech::Server = speech {
        "REPO_ADMIN"
    } else {
        "admin"
    };
    json!({ "permission": permission, "user": person(speech, id, name) })
}

fn update(head: &str, date: &str) -> Value {
    json!({ "update": { "date": date, "source": { "commit": { "hash": &head[..12] } } } })
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
fn an_administrator_of_bitbucket_waives_a_finding_by_a_reply() {
    for speech in BOTH {
        let w = talk(speech, "/reject a demo");
        let (waived, notes) = report(&w, 0);
        assert_eq!(
            (&waived["reason"], &waived["actor"]),
            (&json!("a demo"), &json!("@mara")),
            "{notes:?}"
        );
        assert!(
            waived["link"].as_str().unwrap().ends_with("501"),
            "{waived}"
        );
        for _ in 0..2 {
            w.post(&["--gate"]).run(0);
        }
        w.hub
            .with(|s| assert!(!s.notes[0].resolved && !s.notes[0].is_edited));
    }
}

/// A change of the server's state; the flag is true for Bitbucket Cloud.
type Change = fn(&mut State, bool);

#[test]
fn bitbucket_refuses_what_others_refuse() {
    let both: [(&str, Change); 7] = [
        ("administer the repository", |s, _| s.grants[0].clear()),
        ("administer the repository", |s, is_cloud| {
            s.grants[0][0]["permission"] = json!(if is_cloud { "write" } else { "REPO_WRITE" });
        }),
        ("not written by a person", |s, is_cloud| {
            let field = if is_cloud { "user" } else { "author" };
            s.replies[0][field]["type"] = json!(if is_cloud { "app_user" } else { "SERVICE" });
        }),
        ("it was edited", |s, is_cloud| match is_cloud {
            true => s.replies[0]["updated_on"] = json!("2026-01-01T11:00:01.000000+00:00"),
            false => s.replies[0]["version"] = json!(1),
        }),
        ("an author of the change", |s, is_cloud| {
            let mara = person(
                if is_cloud {
                    Speech::Cloud
                } else {
                    Speech::Server
                },
                20,
                "mara",
            );
            s.written["committer"] = if is_cloud {
                json!({ "raw": "M <m@x>", "user": mara })
            } else {
                mara
            };
        }),
        ("not all authors of the change are known", |s, is_cloud| {
            let unknown = if is_cloud {
                json!({ "raw": "M <m@x>" })
            } else {
                json!({ "name": "M", "emailAddress": "m@x" })
            };
            s.written["author"] = unknown;
        }),
        ("not all authors of the change are known", |s, _| {
            s.written["message"] = json!("x\n\nCo-authored-by: M <m@example.com>");
        }),
    ];
    for speech in BOTH {
        for (why, change) in both {
            let w = talk(speech, "/reject a demo");
            w.hub.with(|s| change(s, matches!(speech, Speech::Cloud)));
            is_refused(&w, why);
        }
        // A co-author with a known account elsewhere among the commits counts as an author.
        let w = talk(speech, "/reject a demo");
        w.hub
            .with(|s| s.written["message"] = json!("x\n\nCo-authored-by: A <author@example.com>"));
        assert_eq!(report(&w, 0).0["actor"], "@mara");
    }
}

#[test]
fn only_a_reply_about_this_head_counts_on_bitbucket() {
    // Data Center: the newest event that moved the source; events that moved the target do not
    // count.
    let w = talk(Speech::Server, "/reject a demo");
    let (head, other) = (w.head.clone(), "1".repeat(40));
    let moved = |from: &str, before: &str, at: u64| json!({ "action": "RESCOPED", "fromHash": from, "previousFromHash": before, "createdDate": at });
    w.hub.with(|s| s.events = vec![moved(&head, &other, LATER)]);
    is_refused(&w, "older than the push of the head");
    w.hub
        .with(|s| s.events = vec![moved(&head, &head, LATER), moved(&head, &other, PUSHED)]);
    assert_eq!(report(&w, 0).0["actor"], "@mara");
    w.hub
        .with(|s| s.events = vec![moved(&other, &head, PUSHED)]);
    is_refused(&w, "name the full ID of the head");
    // Cloud: the oldest of the consecutive updates with this head.
    let w = talk(Speech::Cloud, "/reject a demo");
    let (early, late) = (
        "2026-01-01T10:00:00.000000+00:00",
        "2026-01-01T11:30:00.000000+00:00",
    );
    w.hub
        .with(|s| s.events = vec![update(&w.head, late), update(&w.head, early)]);
    assert_eq!(report(&w, 0).0["actor"], "@mara");
    w.hub
        .with(|s| s.events = vec![update(&w.head, late), update(&other, early)]);
    is_refused(&w, "older than the push of the head");
    w.hub.with(|s| {
        s.events = vec![
            update(&w.head, late),
            update(&other, early),
            update(&w.head, early),
        ];
    });
    is_refused(&w, "older than the push of the head");
    for events in [Vec::new(), vec![update(&other, early)]] {
        w.hub.with(|s| s.events = events);
        is_refused(&w, "name the full ID of the head");
    }
}

#[test]
fn a_project_administrator_of_data_center_counts_and_groups_do_not() {
    let w = talk(Speech::Server, "/reject a demo");
    w.hub.with(|s| {
        s.grants[1] = std::mem::take(&mut s.grants[0]);
        s.grants[1][0]["permission"] = json!("PROJECT_ADMIN");
    });
    assert_eq!(report(&w, 0).0["actor"], "@mara");
    w.hub
        .with(|s| s.grants[1][0]["permission"] = json!("PROJECT_WRITE"));
    is_refused(&w, "administer the repository");
}
