//! Tests of both Bitbuckets: the real binary, and a server that speaks their APIs and validates
//! every request.

pub mod hub;

use super::World as Github;
use crate::loopback::{Reply, Server};
use crate::support::{Repo, Reviewer, line_with_another_key, line_with_key};
use hub::{Hub, ME, Note, Speech};
use serde_json::{Value, json};

pub const BOTH: [Speech; 2] = [Speech::Server, Speech::Cloud];

/// A clone without the pull request, and the server that has it.
pub struct World {
    pub repo: Repo,
    pub hub: Hub,
    base: String,
    pub head: String,
    /// Content of the file at the head.
    content: String,
}

impl World {
    pub fn new(speech: Speech) -> Self {
        Self::with_token(
            speech,
            format!("token-{:016x}", super::hub::fastrand_like(3)),
        )
    }

    /// Creates the project with pull request 12: a line with a key in `app.conf`.
    fn with_token(speech: Speech, token: String) -> Self {
        let repo = Repo::new();
        repo.stage("app.conf", "a = 1\nb = 2\nc = 3\n");
        let base = repo.commit("first");
        std::fs::create_dir_all(repo.outside()).unwrap();
        for name in ["own.git", "fork.git"] {
            repo.git(&[
                "clone",
                "-q",
                "--bare",
                ".",
                repo.outside().join(name).to_str().unwrap(),
            ]);
        }
        let hub = Hub::start(speech, token, repo.outside());
        let config = repo.home().join(".config/claude-reviewer");
        std::fs::create_dir_all(&config).unwrap();
        let text = format!(
            "version = 1\n[forge]\nbitbucket_api = \"{}{}\"\n",
            hub.server.url(),
            speech.api()
        );
        std::fs::write(config.join("config.toml"), text).unwrap();
        repo.git(&[
            "remote",
            "add",
            "origin",
            &format!("{}{}", hub.server.url(), speech.clone_path()),
        ]);
        let mut world = Self {
            repo,
            hub,
            base,
            head: String::new(),
            content: String::new(),
        };
        world.push(&format!("a = 1\n{}b = 2\nc = 3\n", line_with_key()), false);
        world
    }

    /// Pushes another version of the pull request, without keeping it in the clone.
    fn push(&mut self, content: &str, is_fork: bool) {
        self.push_with(content, &[], is_fork);
    }

    /// Pushes another version with additional files.
    pub fn push_with(&mut self, content: &str, more: &[(&str, &str)], is_fork: bool) {
        let repo = &self.repo;
        let bare = repo
            .outside()
            .join(if is_fork { "fork.git" } else { "own.git" });
        let to = match self.hub.speech {
            Speech::Server => "refs/pull-requests/12/from",
            Speech::Cloud => "refs/heads/feature",
        };
        let files = [&[("app.conf", content)], more].concat();
        self.head = repo.commit_elsewhere(&self.base, &files, &bare, to);
        let ends = (self.base.clone(), self.head.clone());
        self.hub
            .with(|s| (s.base, s.head, s.is_fork) = (ends.0, ends.1, is_fork));
        let before = std::mem::replace(&mut self.content, content.to_owned());
        self.hub.follow(&before, content);
    }

    pub fn reviewer(&self, args: &[&str]) -> Reviewer {
        self.repo.reviewer(args).env("BB_TOKEN", &self.hub.token)
    }

    pub fn post(&self, more: &[&str]) -> Reviewer {
        let args = ["review", "pr", "12", "--post", "comments,summary,status"];
        self.reviewer(&[&args[..], more].concat())
    }

    /// Returns all state that can be written.
    fn written(&self) -> (Vec<Note>, Vec<Value>) {
        self.hub.with(|s| (s.notes.clone(), s.builds.clone()))
    }
}

#[test]
fn a_pull_request_is_read_and_reviewed() {
    for speech in BOTH {
        let w = World::new(speech);
        let run = w
            .reviewer(&["review", "pr", "12", "--no-save", "--format", "json"])
            .run(1);
        let report: Value = serde_json::from_str(&run.stdout).unwrap();
        assert_eq!(
            (&report["source"]["head"], &report["source"]["base"]),
            (&json!(w.head), &json!(w.base))
        );
        assert_eq!(report["findings"][0]["file"], "app.conf");
        // The same with the address of its page.
        let page = format!("{}{}/overview", w.hub.server.url(), speech.page());
        let run = w.reviewer(&["review", "pr", &page, "--no-save"]).run(1);
        assert!(run.stdout.contains("pull request #12"), "{}", run.stdout);
        assert!(w.hub.writes().is_empty());
    }
}

#[test]
fn the_head_of_a_fork_is_fetched_from_where_it_lies() {
    let mut w = World::new(Speech::Cloud);
    w.push(&format!("a = 1\n{}b = 4\nc = 3\n", line_with_key()), true);
    let run = w
        .reviewer(&["review", "pr", "12", "--no-save", "--format", "json"])
        .run(1);
    let report: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(report["source"]["head"], *w.head);
    assert!(
        w.hub
            .server
            .requests()
            .iter()
            .any(|r| r.path.starts_with("/fork/r.git/"))
    );
}

#[test]
fn all_pages_of_the_open_pull_requests_are_listed() {
    for speech in BOTH {
        let w = World::new(speech);
        w.hub.with(|s| s.pulls = 5);
        let run = w.reviewer(&["pr", "list", "--format", "json"]).run(0);
        let list: Value = serde_json::from_str(&run.stdout).unwrap();
        let numbers: Vec<_> = list["pulls"]
            .as_array()
            .unwrap()
            .iter()
            .map(|p| p["number"].as_u64().unwrap())
            .collect();
        assert_eq!(numbers, [12, 13, 14, 15, 16]);
        let pull = &list["pulls"][0];
        assert_eq!(
            (&pull["author"], &pull["head"], &pull["base"]),
            (&json!("author"), &json!("feature"), &json!("main"))
        );
        assert_eq!(
            (&pull["is_draft"], &list["more"]),
            (&json!(true), &json!(false))
        );
        let run = w
            .repo
            .reviewer(&["pr", "list"])
            .env("BB_TOKEN", "wrong")
            .run(2);
        assert!(
            run.stderr.contains("check the token in BB_TOKEN"),
            "{}",
            run.stderr
        );
    }
}

#[test]
fn no_page_of_a_list_leads_the_token_elsewhere() {
    let w = World::new(Speech::Cloud);
    let other = Server::start(|_| Reply::json(200, &json!({ "values": [] })));
    let page = json!({ "values": [{ "id": 1 }], "next": format!("{}/2.0/repositories/t/r/pullrequests", other.url()) });
    w.hub.with(|s| {
        s.instead
            .push(("GET", "/pullrequests?", 1, Reply::json(200, &page)));
    });
    let run = w.reviewer(&["pr", "list"]).run(3);
    assert!(run.stderr.contains("on another server"), "{}", run.stderr);
    assert_eq!(other.connections(), 0);
    // A circular list of a server ends too.
    let w = World::new(Speech::Server);
    let page = json!({ "values": [], "isLastPage": false, "nextPageStart": 0 });
    w.hub.with(|s| {
        s.instead
            .push(("GET", "/pull-requests?", 1, Reply::json(200, &page)));
    });
    let run = w.reviewer(&["pr", "list"]).run(3);
    assert!(run.stderr.contains("nextPageStart"), "{}", run.stderr);
}

#[test]
fn a_list_that_is_no_object_is_an_error_that_names_what_it_lacks() {
    for (speech, address) in [
        (Speech::Cloud, "/pullrequests?"),
        (Speech::Server, "/pull-requests?"),
    ] {
        for answer in [
            json!([]),
            json!(true),
            json!("x"),
            json!(null),
            json!({ "values": 1 }),
        ] {
            let w = World::new(speech);
            w.hub.with(|s| {
                s.instead
                    .push(("GET", address, 1, Reply::json(200, &answer)));
            });
            let run = w.reviewer(&["pr", "list"]).run(3);
            assert!(
                run.stderr.contains("lacks values"),
                "{answer}: {}",
                run.stderr
            );
        }
    }
}

#[test]
fn ci_08_a_second_run_writes_nothing() {
    for speech in BOTH {
        let w = World::new(speech);
        let run = w.post(&[]).run(1);
        assert!(
            run.stderr
                .contains("posted: 1 new, the summary, the status"),
            "{}",
            run.stderr
        );
        assert_eq!(
            w.hub.writes(),
            ["POST build", "POST comments", "POST comments"]
        );
        let (notes, builds) = w.written();
        assert_eq!((notes.len(), builds.len()), (2, 1));
        assert_eq!(
            notes[0].place.as_ref().unwrap(),
            &speech.place("app.conf", 2)
        );
        assert_eq!(notes[1].place, None);
        assert_eq!(
            (&builds[0]["key"], &builds[0]["state"]),
            (&json!("claude-reviewer-main"), &json!("FAILED"))
        );
        // Neither shows this form of a mark, and one of them shows HTML as text.
        for note in &notes {
            let last = note.text.lines().next_back().unwrap();
            assert!(
                last.starts_with("[//]: # (") && last.ends_with(')'),
                "{last}"
            );
            assert!(!note.text.contains("<!--"), "{}", note.text);
        }
        let run = w.post(&[]).run(1);
        assert!(run.stderr.contains("posted: nothing new"), "{}", run.stderr);
        assert_eq!(w.hub.writes(), Vec::<String>::new());
        assert_eq!(w.written(), (notes, builds));
    }
}

#[test]
fn ci_08_what_is_gone_is_resolved_and_what_comes_back_on_another_line_is_new() {
    for speech in BOTH {
        let mut w = World::new(speech);
        w.post(&[]).run(1);
        w.push("a = 1\nb = 3\nc = 3\n", false);
        let run = w.post(&[]).run(0);
        assert!(
            run.stderr.contains("1 resolved") && !run.stderr.contains("not closed"),
            "{}",
            run.stderr
        );
        let (notes, builds) = w.written();
        assert_eq!(notes.len(), 2);
        assert!(
            notes[0].resolved && notes[0].text.contains("Resolved"),
            "{notes:?}"
        );
        assert_eq!(builds.last().unwrap()["state"], "SUCCESSFUL");
        w.hub.writes();
        w.post(&[]).run(0);
        assert_eq!(w.hub.writes(), Vec::<String>::new());

        w.push(&format!("a = 1\n{}b = 3\nc = 3\n", line_with_key()), false);
        w.post(&[]).run(1);
        let (notes, _) = w.written();
        assert_eq!(notes.len(), 3);
        assert!(
            notes[0].resolved && notes[0].text.contains("Resolved"),
            "{notes:?}"
        );
        assert!(
            !notes[2].resolved && !notes[2].text.contains("Resolved"),
            "{notes:?}"
        );
        w.hub.writes();
        w.post(&[]).run(1);
        assert_eq!(w.hub.writes(), Vec::<String>::new());
    }
}

#[test]
fn ci_08_a_comment_moves_with_its_line_and_is_replaced_where_that_is_another_one() {
    for speech in BOTH {
        let mut w = World::new(speech);
        w.post(&[]).run(1);
        w.push(
            &format!("z = 0\na = 1\n{}b = 2\nc = 3\n", line_with_key()),
            false,
        );
        w.post(&["--require-post"]).run(1);
        assert_eq!(w.written().0.len(), 2);
        w.hub.with(|s| s.notes[0].resolved = true);
        w.push(
            &format!("{}a = 1\nb = 2\nc = 3\n", line_with_another_key()),
            false,
        );
        w.post(&["--require-post"]).run(1);
        let (notes, _) = w.written();
        assert!(notes[0].text.contains("on other lines"), "{notes:?}");
        assert_eq!(
            (notes.len(), notes[2].place.as_ref().unwrap()),
            (3, &speech.place("app.conf", 1))
        );
        w.hub.writes();
        w.post(&["--require-post"]).run(1);
        assert_eq!(w.hub.writes(), Vec::<String>::new());
    }
}

#[test]
fn ci_08_an_old_server_that_cannot_resolve_says_so_in_the_text() {
    let mut w = World::new(Speech::Server);
    w.hub.with(|s| s.is_old = true);
    w.post(&["--require-post"]).run(1);
    // Builds of an old server belong only to the commit.
    w.hub.with(|s| assert_eq!(s.builds.len(), 1));
    w.hub.writes();
    w.post(&["--require-post"]).run(1);
    assert_eq!(w.hub.writes(), Vec::<String>::new());
    w.push("a = 1\nb = 3\nc = 3\n", false);
    w.post(&["--require-post"]).run(0);
    let (notes, _) = w.written();
    assert!(
        !notes[0].resolved && notes[0].text.contains("Resolved"),
        "{notes:?}"
    );
}

#[test]
fn ci_08_marks_of_others_count_for_nothing() {
    for speech in BOTH {
        let w = World::new(speech);
        w.post(&[]).run(1);
        w.hub
            .with(|s| s.notes.iter_mut().for_each(|n| n.author = ME + 1));
        w.hub.writes();
        w.post(&[]).run(1);
        assert_eq!(w.hub.writes(), ["POST comments", "POST comments"]);
        assert_eq!(w.written().0.len(), 4);
    }
}

#[test]
fn ci_08_a_comment_that_was_changed_meanwhile_is_read_once_more() {
    let mut w = World::new(Speech::Server);
    w.post(&[]).run(1);
    // The list returns stale versions.
    w.hub.with(|s| s.listed_version = Some(0));
    w.hub
        .with(|s| s.notes.iter_mut().for_each(|n| n.version = 4));
    w.push("a = 1\nb = 3\nc = 3\n", false);
    w.post(&["--require-post"]).run(0);
    let (notes, _) = w.written();
    assert!(
        notes[0].resolved && notes[0].text.contains("Resolved"),
        "{notes:?}"
    );
}

#[test]
fn ci_07_a_failure_to_post_is_told_and_changes_no_verdict() {
    for speech in BOTH {
        for (status, expected) in [
            (401, "BB_TOKEN"),
            (403, "may not do this"),
            (404, "404"),
            (500, "500"),
        ] {
            let w = World::new(speech);
            let reply = Reply::json(
                status,
                &json!({ "errors": [{ "context": null, "message": "not for you" }] }),
            );
            w.hub
                .with(|s| s.instead.push(("POST", "/", usize::MAX, reply)));
            let run = w.post(&[]).run(1);
            let said = run.stderr.contains("not posted") && run.stderr.contains(expected);
            assert!(
                said && run.stderr.contains("not for you"),
                "{status}: {}",
                run.stderr
            );
            assert!(!run.stderr.contains(&w.hub.token), "{}", run.stderr);
            // A request that creates something is not repeated if it may have succeeded.
            let requests = w.hub.server.requests();
            let sent = requests
                .iter()
                .filter(|r| r.method == "POST" && r.path.ends_with("/comments"));
            assert_eq!(sent.count(), 2, "{status}");
        }
    }
}

#[test]
fn ci_07_a_line_that_the_page_does_not_show_is_in_the_summary() {
    for speech in BOTH {
        let w = World::new(speech);
        w.hub.with(|s| s.shows_nothing = true);
        let run = w.post(&["--require-post"]).run(1);
        assert!(
            run.stderr.contains("posted: the summary, the status"),
            "{}",
            run.stderr
        );
        let (notes, _) = w.written();
        assert!(
            notes.len() == 1 && notes[0].text.contains("app.conf"),
            "{notes:?}"
        );
    }
}

#[test]
fn a_token_whose_owner_is_unknown_sets_the_status_and_writes_no_comment() {
    for (speech, part, reply) in [
        (
            Speech::Server,
            "/application-properties",
            Reply::json(200, &json!({ "version": "8.0.0" })),
        ),
        (
            Speech::Cloud,
            "/2.0/user",
            Reply::json(
                403,
                &json!({ "type": "error", "error": { "message": "no scope" } }),
            ),
        ),
    ] {
        let w = World::new(speech);
        w.hub
            .with(|s| s.instead.push(("GET", part, usize::MAX, reply)));
        let run = w.post(&[]).run(1);
        assert!(
            run.stderr.contains("not posted") && run.stderr.contains("BB_TOKEN"),
            "{}",
            run.stderr
        );
        assert!(run.stderr.contains("posted: the status"), "{}", run.stderr);
        assert!(
            speech == Speech::Server || run.stderr.contains("which may set the status alone"),
            "{}",
            run.stderr
        );
        assert_eq!(w.hub.writes(), ["POST build"]);
        // The status alone needs no name, not even the second time.
        let run = w
            .reviewer(&["review", "pr", "12", "--post", "status", "--require-post"])
            .run(1);
        assert!(run.stderr.contains("posted: nothing new"), "{}", run.stderr);
    }
}

#[test]
fn ci_07_what_is_refused_for_another_reason_than_its_place_is_a_failure() {
    for speech in BOTH {
        let w = World::new(speech);
        let body = json!({ "errors": [{ "message": "the repository is archived" }], "error": { "message": "archived" } });
        w.hub.with(|s| {
            s.instead
                .push(("POST", "/comments", 1, Reply::json(400, &body)));
        });
        let run = w.post(&["--require-post", "--exit-zero"]).run(3);
        assert!(
            run.stderr.contains("1 of 1 comments on lines") && run.stderr.contains("archived"),
            "{}",
            run.stderr
        );
    }
}

#[test]
fn sec_03_a_name_and_a_password_are_sent_as_such_and_never_shown() {
    for speech in BOTH {
        let secret = format!("{:016x}", super::hub::fastrand_like(4));
        let w = World::with_token(speech, format!("robot:{secret}"));
        let run = w.post(&[]).run(1);
        assert!(run.stderr.contains("posted: 1 new"), "{}", run.stderr);
        let header = w.hub.authorization();
        let sent = header.strip_prefix("Basic ").unwrap().to_owned();
        let reply = Reply::json(
            500,
            &json!({ "errors": [{ "message": format!("you sent {sent}") }] }),
        );
        w.hub
            .with(|s| s.instead.push(("GET", "/", usize::MAX, reply)));
        let run = w.reviewer(&["pr", "list"]).run(3);
        assert!(
            run.stderr.contains("you sent ***") && !run.stderr.contains(&sent),
            "{}",
            run.stderr
        );
    }
}

#[test]
fn the_token_of_one_forge_goes_to_no_other() {
    let github = Github::new();
    github
        .reviewer(&["pr", "list"])
        .env("BB_TOKEN", "token-of-bitbucket")
        .run(0);
    assert!(!github.hub.server.saw("token-of-bitbucket"));
}
