//! Tests of commands in replies on GitHub: which ones waive a finding, and which ones are rejected.

mod bitbucket;
mod gitlab;

use super::World;
use crate::support::{Repo, Run, line_with_key};
use serde_json::{Value, json};

/// The line with the finding, which is not critical.
const LINE: &str = "requests.get(url, verify=False)\n";
/// Time at which the head was pushed, and times before and after.
const PUSHED: &str = "2026-01-01T10:00:00Z";
const BEFORE: &str = "2026-01-01T09:59:59Z";
const AFTER: &str = "2026-01-01T11:00:00Z";

/// Pull request 12 with one major finding, reviewed and posted, and replies that are accepted.
struct Talk {
    w: World,
}

impl Talk {
    fn new() -> Self {
        Self::with(LINE)
    }

    /// Posts the review of a Python file.
    fn with(text: &str) -> Self {
        let mut w = World::new();
        w.push_with("a = 1\nb = 2\nc = 3\n", &[("app.py", text)]);
        allow(&w.repo);
        let head = w.head.clone();
        w.hub.with(|s| {
            s.shown.push(("app.py".to_owned(), 1, 9));
            s.opened_by = json!({ "login": "author", "databaseId": 3 });
            s.written_by = vec![commit(
                &head,
                &[json!({ "login": "author", "databaseId": 3 })],
            )];
            s.activity =
                vec![json!({ "ref": "refs/heads/feature", "after": head, "timestamp": PUSHED })];
            s.roles = vec![
                ("mara", 20, "maintain"),
                ("root", 21, "admin"),
                ("will", 22, "write"),
                ("author", 3, "admin"),
            ];
        });
        w.post(&[]).run(1);
        w.hub.writes();
        Self { w }
    }

    /// Writes a reply of a maintainer to the first comment.
    fn reply(&self, body: &str) -> &Self {
        self.reply_by(body, |_| {})
    }

    fn reply_by(&self, body: &str, change: impl FnOnce(&mut Value)) -> &Self {
        self.w.hub.with(|s| {
            let mut reply = json!({
                "thread": s.inline[0]["id"], "body": body, "url": "https://forge.example/r5", "createdAt": AFTER,
                "lastEditedAt": null, "author": { "__typename": "User", "login": "mara", "databaseId": 20 },
            });
            change(&mut reply);
            s.replies.push(reply);
        });
        self
    }

    fn review(&self, code: i32) -> Run {
        self.w
            .reviewer(&["review", "pr", "12", "--no-save"])
            .run(code)
    }

    /// Reviews, and returns the waiver of the first finding and the notes about replies.
    fn report(&self, code: i32) -> (Value, Vec<String>) {
        outcome(
            &self
                .w
                .reviewer(&["review", "pr", "12", "--no-save", "--format", "json"])
                .run(code),
        )
    }

    /// Checks that nothing is waived, and that the only note contains these words.
    #[track_caller]
    fn is_refused(&self, why: &str) {
        let (waived, notes) = self.report(1);
        assert_eq!(waived, Value::Null, "{why}");
        assert!(
            notes.len() == 1 && notes[0].contains(why),
            "{why}: {notes:#?}"
        );
    }
}

/// Enables commands in the user's configuration, whose last table is `[forge]`.
fn allow(repo: &Repo) {
    let config = repo.home().join(".config/claude-reviewer/config.toml");
    let before = std::fs::read_to_string(&config).unwrap();
    std::fs::write(&config, format!("{before}comment_commands = true\n")).unwrap();
}

/// Returns the waiver of the first finding, and the notes about replies.
fn outcome(run: &Run) -> (Value, Vec<String>) {
    let report = run.json();
    let notes = report["notes"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|n| n["origin"] == "forge");
    (
        report["findings"][0]["waived"].clone(),
        notes
            .map(|n| n["text"].as_str().unwrap().to_owned())
            .collect(),
    )
}

/// Returns a commit whose authors and committer have these accounts.
fn commit(id: &str, users: &[Value]) -> Value {
    let authors: Vec<Value> = users.iter().map(|user| json!({ "user": user })).collect();
    let committer = json!({ "email": "a@example.com", "user": users[0] });
    let authors = json!({ "pageInfo": { "hasNextPage": false }, "nodes": authors });
    json!({ "oid": id, "authors": authors, "committer": committer })
}

#[test]
fn a_maintainer_waives_a_finding_of_the_head_by_a_reply() {
    let t = Talk::new();
    t.review(1);
    t.reply("I looked.\n\n/reject only a test server\n");
    let (waived, notes) = t.report(0);
    let expected = json!({ "reason": "only a test server", "actor": "@mara", "link": "https://forge.example/r5" });
    assert_eq!((waived, notes), (expected, Vec::new()));
    let run = t.review(0);
    let words = run.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        words.contains("only a test server (waived by @mara, https://forge.example/r5)"),
        "{words}"
    );
    let page =
        t.w.reviewer(&["review", "pr", "12", "--no-save", "--format", "html"])
            .run(0);
    assert!(
        page.stdout.contains("https://forge.example/r5"),
        "{}",
        page.stdout
    );
    // The comment is not changed, so the reply counts the next time too.
    for _ in 0..2 {
        t.w.post(&["--gate"]).run(0);
    }
    t.w.hub.with(|s| {
        assert_eq!(
            (s.resolved.len(), &s.statuses[0]["state"]),
            (0, &json!("success"))
        );
        let summary = s.comments[0]["body"].as_str().unwrap();
        assert!(
            summary.contains("waived by")
                && summary.contains("mara")
                && !summary.contains(" @mara"),
            "{summary}"
        );
    });
}

#[test]
fn a_finding_is_deferred_and_accepted_by_replies_and_the_newest_counts() {
    let t = Talk::new();
    t.reply("/defer 2999-01-31 with the next release");
    let (waived, _) = t.report(0);
    assert_eq!(
        waived["reason"],
        "deferred until 2999-01-31: with the next release"
    );
    t.reply_by("/accept", |r| {
        r["createdAt"] = json!("2026-01-01T11:30:00Z");
        r["author"] = json!({ "__typename": "User", "login": "root", "databaseId": 21 });
    });
    let (waived, notes) = t.report(1);
    assert_eq!(waived, Value::Null);
    assert!(
        notes.len() == 1 && notes[0].starts_with("@root accepted the finding"),
        "{notes:?}"
    );
    t.reply_by("/reject after all", |r| {
        r["createdAt"] = json!("2026-01-01T11:31:00Z");
    });
    assert_eq!(t.report(0).0["reason"], "after all");
}

#[test]
fn replies_are_not_read_unless_the_operator_or_the_base_says_so() {
    let mut t = Talk::new();
    t.reply("/reject a demo");
    let config = t.w.repo.home().join(".config/claude-reviewer/config.toml");
    let text = std::fs::read_to_string(&config)
        .unwrap()
        .replace("comment_commands = true\n", "");
    std::fs::write(&config, &text).unwrap();
    let (waived, notes) = t.report(1);
    assert_eq!((waived, notes.len()), (Value::Null, 0));
    // The policy in the change has no effect, and setting the key there is a finding.
    let policy = "version = 1\n[forge]\ncomment_commands = true\n";
    t.w.push_with(
        "a = 1\nb = 2\nc = 3\n",
        &[("app.py", LINE), (".claude-reviewer.toml", policy)],
    );
    let run =
        t.w.reviewer(&["review", "pr", "12", "--no-save", "--format", "json"])
            .run(1);
    let report = run.json();
    let rules: Vec<_> = report["findings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|f| f["rule_id"].clone())
        .collect();
    assert!(rules.contains(&json!("policy-weakened")), "{rules:?}");
    assert!(
        report["findings"]
            .as_array()
            .unwrap()
            .iter()
            .all(|f| f["waived"].is_null())
    );
    // The policy of the base has an effect.
    t.w.repo.stage(".claude-reviewer.toml", policy);
    t.w.base = t.w.repo.commit("allow commands");
    t.w.repo
        .git(&["push", "-q", t.w.bare().to_str().unwrap(), "main"]);
    t.w.push_with("a = 1\nb = 2\nc = 3\n", &[("app.py", LINE)]);
    let head = t.w.head.clone();
    t.w.hub.with(|s| {
        s.written_by = vec![commit(
            &head,
            &[json!({ "login": "author", "databaseId": 3 })],
        )];
        s.activity[0]["after"] = json!(head);
    });
    assert_eq!(t.report(0).0["actor"], "@mara");
}

#[test]
fn who_has_no_rights_waives_nothing() {
    for (role, id, why) in [
        ("write", 20, "neither the role maintain nor admin"),
        ("triage", 20, "neither the role"),
        ("read", 20, "neither the role"),
        // A custom role may have any rights.
        ("maintainers", 20, "neither the role"),
        // The name belongs to another account now.
        ("admin", 99, "the rights of another account"),
    ] {
        let t = Talk::new();
        t.w.hub.with(|s| s.roles[0] = ("mara", id, role));
        t.reply("/reject a demo").is_refused(why);
    }
    let t = Talk::new();
    t.w.hub.with(|s| s.roles.clear());
    t.reply("/reject a demo")
        .is_refused("does not name the rights");
    // The reply does not count either if the rights are unknown.
    for status in [403, 500] {
        let t = Talk::new();
        let reply = crate::loopback::Reply::json(status, &json!({ "message": "no" }));
        t.w.hub
            .with(|s| s.instead.push(("GET", "/permission", 9, reply)));
        t.reply("/reject a demo").is_refused("cannot be read");
    }
}

#[test]
fn no_author_of_the_change_waives_a_finding() {
    let mara = json!({ "login": "mara", "databaseId": 20 });
    let author = json!({ "login": "author", "databaseId": 3 });
    let t = Talk::new();
    t.reply_by("/reject mine", |r| {
        r["author"] = json!({ "__typename": "User", "login": "author", "databaseId": 3 });
    });
    t.is_refused("is an author of the change");
    let t = Talk::new();
    t.w.hub.with(|s| s.opened_by = mara.clone());
    t.reply("/reject mine")
        .is_refused("is an author of the change");
    // Author, co-author and committer of any commit.
    for place in ["author", "co-author", "committer", "of an older commit"] {
        let t = Talk::new();
        let head = t.w.head.clone();
        let commits = match place {
            "author" => vec![commit(&head, std::slice::from_ref(&mara))],
            "co-author" => vec![commit(&head, &[author.clone(), mara.clone()])],
            "committer" => {
                let mut one = commit(&head, std::slice::from_ref(&author));
                one["committer"]["user"] = mara.clone();
                vec![one]
            }
            _ => {
                vec![
                    commit(&"1".repeat(40), std::slice::from_ref(&mara)),
                    commit(&head, std::slice::from_ref(&author)),
                ]
            }
        };
        t.w.hub.with(|s| s.written_by = commits);
        t.reply("/reject mine")
            .is_refused("is an author of the change");
    }
    // An unknown account could be any.
    for place in [
        "author",
        "co-author",
        "committer",
        "no head",
        "more authors",
        "opened",
    ] {
        let t = Talk::new();
        let head = t.w.head.clone();
        let mut one = commit(&head, &[author.clone(), author.clone()]);
        match place {
            "author" => one["authors"]["nodes"][0]["user"] = Value::Null,
            "co-author" => one["authors"]["nodes"][1]["user"] = Value::Null,
            "committer" => one["committer"]["user"] = Value::Null,
            "no head" => one["oid"] = json!("2".repeat(40)),
            "more authors" => one["authors"]["pageInfo"]["hasNextPage"] = json!(true),
            _ => t.w.hub.with(|s| s.opened_by = Value::Null),
        }
        t.w.hub.with(|s| s.written_by = vec![one]);
        t.reply("/reject a demo")
            .is_refused("not all authors of the change are known");
    }
    // GitHub commits for users who edit on its pages.
    let t = Talk::new();
    t.w.hub.with(|s| {
        s.written_by[0]["committer"] = json!({ "email": "noreply@github.com", "user": null });
    });
    t.reply("/reject a demo");
    assert_eq!(t.report(0).0["actor"], "@mara");
}

#[test]
fn only_a_reply_that_is_as_it_was_written_counts() {
    let t = Talk::new();
    t.reply_by("/reject a demo", |r| {
        r["lastEditedAt"] = json!("2026-01-01T11:00:01Z");
    })
    .is_refused("it was edited");
    let t = Talk::new();
    t.reply_by("/reject a demo", |r| {
        drop(r.as_object_mut().unwrap().remove("lastEditedAt"));
    })
    .is_refused("it was edited");
    // Our comment had another text when the reply was written.
    let t = Talk::new();
    t.w.hub
        .with(|s| s.inline[0]["edited"] = json!("2026-01-01T11:00:00Z"));
    t.reply("/reject a demo").is_refused("has changed since");
}

#[test]
fn only_a_reply_about_this_head_counts() {
    for written in [BEFORE, PUSHED] {
        let t = Talk::new();
        t.reply_by("/reject a demo", |r| r["createdAt"] = json!(written))
            .is_refused("older than the push of the head");
    }
    // The same head was pushed again after the reply.
    let t = Talk::new();
    t.w.hub
        .with(|s| s.activity[0]["timestamp"] = json!("2026-01-01T11:00:01Z"));
    t.reply("/reject a demo")
        .is_refused("older than the push of the head");
    // If GitHub does not report the time of the push, the reply must name the head.
    for change in [
        json!([]),
        json!([{ "ref": "refs/heads/feature", "after": "3".repeat(40), "timestamp": PUSHED }]),
    ] {
        let t = Talk::new();
        t.w.hub
            .with(|s| s.activity = change.as_array().unwrap().clone());
        t.reply("/reject a demo")
            .is_refused("name the full ID of the head");
        t.w.hub.with(|s| s.replies.clear());
        t.reply(&format!("/reject {} a demo", &t.w.head[..12]))
            .is_refused("name the full ID of the head");
        t.w.hub.with(|s| s.replies.clear());
        t.reply(&format!("/reject {} a demo", "4".repeat(40)))
            .is_refused("another commit than the head");
        t.w.hub.with(|s| s.replies.clear());
        t.reply_by(&format!("/reject {} a demo", t.w.head), |r| {
            r["createdAt"] = json!(BEFORE);
        });
        assert_eq!(t.report(0).0["reason"], "a demo");
    }
    // A new push invalidates the waiver.
    let mut t = Talk::new();
    t.reply("/reject a demo").review(0);
    t.w.push_with("a = 2\nb = 2\nc = 3\n", &[("app.py", LINE)]);
    let head = t.w.head.clone();
    t.w.hub.with(|s| {
        s.written_by[0]["oid"] = json!(head);
        s.activity[0] = json!({ "ref": "refs/heads/feature", "after": head, "timestamp": "2026-01-01T12:00:00Z" });
    });
    t.is_refused("older than the push of the head");
}

#[test]
fn only_a_reply_to_our_comment_on_the_finding_as_it_is_counts() {
    // A conversation that another account started with a copy of our comment.
    let t = Talk::new();
    t.w.hub.with(|s| {
        let mut copy = s.inline[0].clone();
        copy["id"] = json!(500);
        copy["user"] = json!({ "login": "will", "id": 22, "type": "User" });
        s.inline.push(copy);
    });
    t.reply_by("/reject a demo", |r| r["thread"] = json!(500))
        .is_refused("was written by another account");
    // Our comment, with the mark of another finding, with other text, or without text.
    for change in ["mark", "words", "no mark", "ended"] {
        let t = Talk::with(&format!("{LINE}requests.post(url, verify=False)\n"));
        t.w.hub.with(|s| {
            let other = s.inline[1]["body"]
                .as_str()
                .unwrap()
                .lines()
                .next_back()
                .unwrap()
                .to_owned();
            let body = s.inline[0]["body"].as_str().unwrap().to_owned();
            let (text, mark) = body.rsplit_once('\n').unwrap();
            s.inline[0]["body"] = json!(match change {
                "mark" => format!("{text}\n{other}"),
                "words" => format!("Please write /reject.\n\n{mark}"),
                "no mark" => text.to_owned(),
                _ => format!("{text}\n{}", mark.replace(" digest=", " ended digest=")),
            });
        });
        t.reply("/reject a demo");
        let why = match change {
            "mark" | "words" => "does not show the finding as it is now",
            "no mark" => "is not about a finding",
            _ => "no longer counts",
        };
        t.is_refused(why);
    }
    // A finding that no longer exists.
    let mut t = Talk::new();
    t.reply("/reject a demo");
    t.w.push_with(
        "a = 1\nb = 2\nc = 3\n",
        &[("app.py", "requests.put(other, verify=False)\n")],
    );
    t.is_refused("its finding was not found");
}

#[test]
fn critical_findings_bots_and_unclear_commands_are_refused() {
    let t = Talk::with(&line_with_key());
    t.reply("/reject a demo")
        .is_refused("a critical finding is not waived");
    for kind in ["Bot", "Mannequin", "EnterpriseUserAccount"] {
        let t = Talk::new();
        t.reply_by("/reject a demo", |r| {
            r["author"]["__typename"] = json!(kind);
        })
        .is_refused("not written by a person");
    }
    let t = Talk::new();
    t.reply_by("/reject a demo", |r| {
        r["author"]["login"] = json!("mara[bot]");
    })
    .is_refused("not written by a person");
    for (body, why) in [
        ("/reject", "no reason"),
        ("/reject a\n/accept", "several commands"),
        ("> /reject a demo", "quote or a code block"),
        ("```\n/reject a demo\n```", "quote or a code block"),
        ("/approve", "/approve is not a known command"),
        ("/defer 2020-01-31 old", "not in the future"),
        ("/defer soon", "names no date"),
    ] {
        Talk::new().reply(body).is_refused(why);
    }
    let t = Talk::new();
    t.reply("Why is that wrong?");
    let (waived, notes) = t.report(1);
    assert_eq!((waived, notes.len()), (Value::Null, 0));
}

#[test]
fn hostile_replies_are_inert_and_bounded() {
    let t = Talk::new();
    let key = line_with_key();
    let secret = key.trim().rsplit(' ').next().unwrap();
    t.reply(&format!(
        "/reject \u{1b}[31m <img src=x> ::error::x {secret} @someone {}",
        "long ".repeat(500)
    ));
    let run = t.review(0);
    assert!(
        !run.stdout.contains('\u{1b}') && !run.stdout.contains(secret),
        "{}",
        run.stdout
    );
    t.w.post(&["--gate"]).run(0);
    t.w.hub.with(|s| {
        let summary = s.comments[0]["body"].as_str().unwrap();
        assert!(
            !summary.contains("<img")
                && !summary.contains(secret)
                && !summary.contains(" @someone"),
            "{summary}"
        );
    });
    // Many replies of many accounts: few requests, few notes.
    let t = Talk::new();
    for n in 0..60 {
        t.reply_by("/reject a demo", |r| {
            r["author"] =
                json!({ "__typename": "User", "login": format!("u{n}"), "databaseId": 1000 + n });
        });
    }
    let before = t.w.hub.server.requests().len();
    let (waived, notes) = t.report(1);
    assert_eq!((waived, notes.len()), (Value::Null, 21));
    assert!(notes[20].contains("40 more replies"), "{notes:?}");
    let asked = t.w.hub.server.requests()[before..]
        .iter()
        .filter(|r| r.path.contains("/permission"))
        .count();
    assert_eq!(asked, 10);
}

#[test]
fn a_job_of_ci_heeds_replies_too() {
    let t = Talk::new();
    t.reply("/reject a demo");
    let event =
        t.w.hub
            .with(|s| json!({ "pull_request": s.pulls[0], "number": 12 }));
    let file = t.w.repo.outside().join("event.json");
    std::fs::write(&file, event.to_string()).unwrap();
    let run =
        t.w.reviewer(&[
            "review",
            "branch",
            "--gate",
            "--fetch",
            "--no-save",
            "--post",
            "status",
        ])
        .env("CI", "true")
        .env("GITHUB_ACTIONS", "true")
        .env("GITHUB_EVENT_NAME", "pull_request")
        .env("GITHUB_EVENT_PATH", &file)
        .env("GITHUB_API_URL", format!("{}/api/v3", t.w.hub.server.url()))
        .env("GITHUB_TOKEN", &t.w.hub.token)
        .run(0);
    assert!(
        run.stdout.contains("@mara"),
        "{}\n{}",
        run.stdout,
        run.stderr
    );
}
