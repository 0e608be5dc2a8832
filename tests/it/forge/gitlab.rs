//! Tests of merge requests of GitLab, in a project of a subgroup.

use super::lab::{FORK, Lab, PROJECT};
use crate::loopback::{Reply, Server, finding};
use crate::support::{Repo, Reviewer, line_with_another_key, line_with_key};
use serde_json::{Value, json};
use std::path::PathBuf;

/// A clone without the merge request, and the server that has it.
pub struct World {
    pub repo: Repo,
    pub lab: Lab,
    base: String,
    pub head: String,
    /// Content of the file at the head.
    content: String,
}

impl World {
    /// Creates the project with merge request 12: a key in `app.conf`.
    pub fn new() -> Self {
        let repo = Repo::new();
        repo.stage("app.conf", "a = 1\nb = 2\nc = 3\n");
        let base = repo.commit("first");
        let bare = repo.outside().join("p.git");
        std::fs::create_dir_all(repo.outside()).unwrap();
        repo.git(&["clone", "-q", "--bare", ".", bare.to_str().unwrap()]);
        let lab = Lab::start(bare);
        lab.serve(&repo);
        let mut world = Self {
            repo,
            lab,
            head: String::new(),
            base,
            content: String::new(),
        };
        world.push(&with_key());
        world.lab.with(|s| {
            let lines = [(1, Some(1)), (2, None), (3, Some(2)), (4, Some(3))];
            s.shown = lines.map(|(new, old)| ("app.conf", new, old)).to_vec();
        });
        world
    }

    fn bare(&self) -> PathBuf {
        self.repo.outside().join("p.git")
    }

    /// Pushes another version of the merge request, without keeping it in the clone.
    fn push(&mut self, content: &str) {
        self.push_with(content, &[]);
    }

    /// Pushes another version with additional files.
    pub fn push_with(&mut self, content: &str, more: &[(&str, &str)]) {
        let repo = &self.repo;
        let files = [&[("app.conf", content)], more].concat();
        self.head = repo.commit_elsewhere(
            &self.base,
            &files,
            &self.bare(),
            "refs/merge-requests/12/head",
        );
        let pull = pull(12, &self.base, &self.head);
        let commit = json!({ "id": self.head, "message": "change the settings\n\nwhy" });
        self.lab
            .with(|s| (s.pulls, s.commits) = (vec![pull], vec![commit]));
        let before = std::mem::replace(&mut self.content, content.to_owned());
        self.lab.follow(&before, content);
    }

    pub fn reviewer(&self, args: &[&str]) -> Reviewer {
        self.repo
            .reviewer(args)
            .env("GITLAB_TOKEN", &self.lab.token)
    }

    pub fn post(&self, more: &[&str]) -> Reviewer {
        let args = ["review", "pr", "12", "--post", "comments,summary,status"];
        self.reviewer(&[&args[..], more].concat())
    }

    /// Returns the writes of a first run.
    fn everything(&self) -> [String; 3] {
        let status = format!("POST projects/{PROJECT}/statuses/{}", self.head);
        [
            status,
            "POST discussions".to_owned(),
            "POST notes".to_owned(),
        ]
    }
}

fn with_key() -> String {
    format!("a = 1\n{}b = 2\nc = 3\n", line_with_key())
}

fn pull(number: u64, base: &str, head: &str) -> Value {
    json!({
        "id": 1000 + number, "iid": number, "title": "Change the settings", "description": "Because.",
        "state": "opened", "draft": false, "work_in_progress": false, "sha": head,
        "web_url": format!("https://forge.example/g/sub/p/-/merge_requests/{number}"),
        "author": { "id": 3, "username": "author" }, "updated_at": "2024-01-01T00:00:00.000Z",
        "target_branch": "main", "source_branch": "feature",
        "source_project_id": PROJECT, "target_project_id": PROJECT, "head_pipeline": null,
        "diff_refs": { "base_sha": base, "start_sha": base, "head_sha": head },
    })
}

#[test]
fn a_merge_request_of_gitlab_is_reviewed_without_being_checked_out() {
    let w = World::new();
    let state = || {
        [
            w.repo.git(&["for-each-ref"]),
            w.repo.git(&["status", "--porcelain"]),
        ]
    };
    let before = state();
    let run = w
        .reviewer(&["review", "pr", "12", "--no-save", "--format", "json"])
        .run(1);
    let report: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(
        (&report["source"]["head"], &report["source"]["base"]),
        (&json!(w.head), &json!(w.base))
    );
    assert_eq!(report["findings"][0]["file"], "app.conf");
    assert_eq!(state(), before);
    assert!(w.lab.writes().is_empty());
    let page = format!("{}/g/sub/p/-/merge_requests/12/diffs", w.lab.server.url());
    let run = w.reviewer(&["review", "pr", &page, "--no-save"]).run(1);
    assert!(run.stdout.contains("pull request #12"), "{}", run.stdout);
}

#[test]
fn all_pages_of_gitlab_are_listed_by_number_or_by_address() {
    let w = World::new();
    let ids = (w.base.clone(), w.head.clone());
    w.lab
        .with(|s| s.pulls = (1..=5).map(|n| pull(n, &ids.0, &ids.1)).collect());
    w.lab.with(|s| s.pulls[1]["draft"] = json!(true));
    for numbers_pages in [true, false] {
        w.lab.with(|s| s.numbers_pages = numbers_pages);
        let run = w.reviewer(&["pr", "list", "--format", "json"]).run(0);
        let list: Value = serde_json::from_str(&run.stdout).unwrap();
        let drafts: Vec<_> = list["pulls"]
            .as_array()
            .unwrap()
            .iter()
            .map(|p| p["is_draft"] == true)
            .collect();
        assert_eq!(drafts, [false, true, false, false, false]);
        assert_eq!(
            (&list["project"], &list["more"]),
            (&json!("g/sub/p"), &json!(false))
        );
    }
    // An address on another host is not followed.
    let other = Server::start(|_| Reply::json(200, &json!([])));
    let next = format!(
        "<{}/api/v4/projects/1/merge_requests?page=2>; rel=\"next\"",
        other.url()
    );
    let reply = Reply::with(
        200,
        &[("content-type", "application/json"), ("link", &next)],
        b"[]",
    );
    w.lab
        .with(|s| s.instead.push(("GET", "/merge_requests?", 1, reply)));
    let run = w.reviewer(&["pr", "list"]).run(3);
    assert!(run.stderr.contains("on another server"), "{}", run.stderr);
    assert_eq!(other.connections(), 0);
}

#[test]
fn ci_08_a_second_run_writes_nothing_to_gitlab() {
    let w = World::new();
    w.lab
        .with(|s| (0..5).for_each(|n| s.say(&format!("remark {n}"), n % 2 == 0)));
    let run = w.post(&[]).run(1);
    assert!(
        run.stderr
            .contains("posted: 1 new, the summary, the status"),
        "{}",
        run.stderr
    );
    assert_eq!(w.lab.writes(), w.everything());
    let (discussions, statuses) = w.lab.with(|s| (s.discussions.clone(), s.statuses.clone()));
    assert_eq!((discussions.len(), statuses.len()), (7, 1));
    assert_eq!(
        [
            &statuses[0]["status"],
            &statuses[0]["name"],
            &statuses[0]["ref"]
        ],
        [
            &json!("failed"),
            &json!("claude-reviewer-main"),
            &json!("feature")
        ]
    );
    // No secret is posted, and nothing in a note is a quick action.
    let key = line_with_key();
    assert!(!w.lab.server.saw(key.trim().rsplit(' ').next().unwrap()));
    for note in w.lab.with(|s| [s.notes(true), s.notes(false)].concat()) {
        assert!(
            !note["body"]
                .as_str()
                .unwrap()
                .lines()
                .any(|l| l.starts_with('/')),
            "{note}"
        );
    }

    let run = w.post(&[]).run(1);
    assert!(run.stderr.contains("posted: nothing new"), "{}", run.stderr);
    assert_eq!(w.lab.writes(), Vec::<String>::new());
    assert_eq!(
        w.lab.with(|s| (s.discussions.clone(), s.statuses.clone())),
        (discussions, statuses)
    );
}

#[test]
fn ci_08_a_discussion_of_gitlab_is_resolved_and_what_comes_back_is_a_new_one() {
    let mut w = World::new();
    w.post(&[]).run(1);
    w.lab.writes();
    w.push("a = 1\nb = 3\nc = 3\n");
    let run = w.post(&[]).run(0);
    assert!(run.stderr.contains("1 resolved"), "{}", run.stderr);
    let writes = w.lab.writes();
    assert_eq!(writes.len(), 4, "{writes:?}");
    w.lab.with(|s| {
        let note = &s.notes(true)[0];
        assert!(
            note["body"].as_str().unwrap().contains("Resolved") && note["resolved"] == true,
            "{note}"
        );
        assert_eq!(
            (s.discussions.len(), &s.statuses[1]["status"]),
            (2, &json!("success"))
        );
    });
    w.post(&[]).run(0);
    assert_eq!(w.lab.writes(), Vec::<String>::new());

    w.push(&with_key());
    w.post(&[]).run(1);
    w.lab.with(|s| {
        let notes = s.notes(true);
        assert!(
            notes[0]["body"].as_str().unwrap().contains("Resolved") && notes[0]["resolved"] == true,
            "{notes:?}"
        );
        assert!(
            !notes[1]["body"].as_str().unwrap().contains("Resolved"),
            "{notes:?}"
        );
        assert_eq!((notes.len(), &notes[1]["resolved"]), (2, &json!(false)));
    });
    w.lab.writes();
    w.post(&[]).run(1);
    assert_eq!(w.lab.writes(), Vec::<String>::new());
}

#[test]
fn ci_08_a_note_moves_with_its_line_and_is_replaced_where_that_is_another_one() {
    let mut w = World::new();
    w.post(&[]).run(1);
    w.lab.writes();
    // GitLab moves the comment with its line.
    w.push(&format!("z = 0\n{}", with_key()));
    w.lab
        .with(|s| s.shown = vec![("app.conf", 1, None), ("app.conf", 3, None)]);
    w.post(&["--require-post"]).run(1);
    w.lab.with(|s| assert_eq!(s.notes(true).len(), 1));
    // A person has resolved it; that line is deleted, and another one is added.
    w.lab
        .with(|s| s.discussions[0]["notes"][0]["resolved"] = json!(true));
    w.push(&format!("{}a = 1\nb = 2\nc = 3\n", line_with_another_key()));
    w.post(&["--require-post"]).run(1);
    w.lab.with(|s| {
        let notes = s.notes(true);
        assert!(
            notes[0]["body"]
                .as_str()
                .unwrap()
                .contains("on other lines"),
            "{notes:?}"
        );
        assert_eq!(
            (notes.len(), &notes[1]["position"]["new_line"]),
            (2, &json!(1))
        );
    });
    w.lab.writes();
    w.post(&["--require-post"]).run(1);
    assert_eq!(w.lab.writes(), Vec::<String>::new());
}

#[test]
fn ci_07_large_notes_of_others_keep_nothing_from_being_posted() {
    let w = World::new();
    w.lab.with(|s| {
        s.keeps_sizes = true;
        let large = "x".repeat(1_000_000);
        (0..17).for_each(|_| s.say(&large, false));
        (0..3).for_each(|n| s.say(&format!("small {n}"), false));
    });
    let run = w.post(&["--require-post"]).run(1);
    assert!(
        run.stderr
            .contains("posted: 1 new, the summary, the status"),
        "{}",
        run.stderr
    );
    w.lab.writes();
    w.post(&["--require-post"]).run(1);
    assert_eq!(w.lab.writes(), Vec::<String>::new());
    // A note that is too large to read may belong to any account: known notes are updated, and
    // nothing is duplicated.
    w.lab.with(|s| {
        let large = "x".repeat(17 << 20);
        s.say(&large, false);
        s.discussions.rotate_right(1);
    });
    let run = w.post(&["--require-post"]).run(1);
    assert!(
        run.stderr.contains("too many comments to read them all"),
        "{}",
        run.stderr
    );
    assert_eq!(w.lab.writes(), Vec::<String>::new());
}

#[test]
fn a_suggestion_counts_from_the_line_that_its_note_stands_on() {
    let mut w = World::new();
    let quote = "b = f(1)";
    let suggested = json!({
        "end_line": 4, "replacement": "b = g(1)\nd = g(2)\ne = g(3)",
    });
    let asked = std::sync::Arc::new(std::sync::Mutex::new(finding("app.conf", 2, quote)));
    let says = std::sync::Arc::clone(&asked);
    let model = Server::start(move |request| request.review(&[says.lock().unwrap().clone()]));
    w.repo
        .stage(".claude-reviewer.toml", model.policy("openai"));
    w.base = w.repo.commit("ask a model");
    w.repo
        .git(&["push", "-q", w.bare().to_str().unwrap(), "main"]);
    w.push("a = 1\nb = f(1)\nd = f(2)\ne = f(3)\nc = 3\n");
    w.lab
        .with(|s| s.shown = vec![("app.conf", 2, None), ("app.conf", 4, None)]);
    w.post(&["--no-cache"]).run(1);
    w.lab
        .with(|s| assert_eq!(s.notes(true)[0]["position"]["new_line"], 2));
    for (key, value) in suggested.as_object().unwrap() {
        asked.lock().unwrap()[key] = value.clone();
    }
    w.post(&["--no-cache"]).run(1);
    w.lab.with(|s| {
        let notes = s.notes(true);
        let text = |i: usize| notes[i]["body"].as_str().unwrap();
        assert!(
            text(0).contains("on other lines") && !text(0).contains("suggestion"),
            "{notes:?}"
        );
        assert!(text(1).contains("```suggestion:-2+0"), "{notes:?}");
        assert_eq!(
            (notes.len(), &notes[1]["position"]["new_line"]),
            (2, &json!(4))
        );
    });
}

#[test]
fn ci_08_a_discussion_that_the_role_cannot_resolve_says_so_itself() {
    let mut w = World::new();
    w.lab.with(|s| s.cannot_resolve = true);
    w.post(&[]).run(1);
    w.push("a = 1\nb = 3\nc = 3\n");
    let run = w.post(&["--require-post"]).run(0);
    assert!(
        run.stderr
            .contains("conversations are not closed by this token"),
        "{}",
        run.stderr
    );
    w.lab.with(|s| {
        assert!(
            s.notes(true)[0]["body"]
                .as_str()
                .unwrap()
                .contains("Resolved")
        );
    });
}

#[test]
fn ci_08_marks_that_others_copied_count_for_nothing_on_gitlab() {
    let w = World::new();
    w.post(&[]).run(1);
    w.lab.writes();
    w.lab.with(|s| {
        for discussion in &mut s.discussions {
            // The same name in another case, and another ID.
            discussion["notes"][0]["author"] = json!({ "id": 8, "username": "Project_1_Bot" });
        }
        s.statuses[0]["author"] = json!({ "id": 8, "username": "other" });
    });
    w.post(&[]).run(1);
    assert_eq!(w.lab.writes(), w.everything());
    // They do not count either if GitLab recorded them as its own.
    w.lab.with(|s| {
        for discussion in &mut s.discussions {
            discussion["notes"][0]["author"] = json!({ "id": 7, "username": "project_1_bot" });
            discussion["notes"][0]["system"] = json!(true);
        }
    });
    w.post(&[]).run(1);
    assert_eq!(w.lab.writes(), w.everything()[1..]);
}

#[test]
fn ci_07_what_gitlab_refuses_is_told_and_changes_no_verdict() {
    let scope =
        json!({ "error": "insufficient_scope", "error_description": "needs higher privileges" });
    for (status, body, expected) in [
        (
            401,
            json!({ "message": "401 Unauthorized" }),
            "GITLAB_TOKEN",
        ),
        (403, scope, "may not do this"),
        (404, json!({ "message": "404 Not found" }), "404"),
        (422, json!({ "message": "Unprocessable" }), "422"),
        (
            500,
            json!({ "message": "500 Internal Server Error" }),
            "500",
        ),
    ] {
        let w = World::new();
        w.lab.with(|s| {
            s.instead
                .push(("POST", "/api/v4/", usize::MAX, Reply::json(status, &body)));
        });
        let run = w.post(&[]).run(1);
        assert!(
            run.stderr.contains("not posted") && run.stderr.contains(expected),
            "{status}: {}",
            run.stderr
        );
        assert!(!run.stderr.contains(&w.lab.token), "{}", run.stderr);
        // A request that creates something is not repeated if it may have succeeded.
        let tries = w
            .lab
            .server
            .requests()
            .iter()
            .filter(|r| r.method == "POST" && r.path.ends_with("/discussions"))
            .count();
        assert_eq!(tries, 1, "{status}");
    }
    let mut w = World::new();
    w.push("a = 1\nb = 3\nc = 3\n");
    w.lab.with(|s| {
        let reply = Reply::json(403, &json!({ "message": "403 Forbidden" }));
        s.instead.push(("POST", "/api/v4/", usize::MAX, reply));
    });
    w.post(&["--require-post"]).run(3);
}

#[test]
fn ci_07_a_line_that_is_not_in_gitlabs_diff_is_in_the_summary() {
    let w = World::new();
    w.lab.with(|s| s.shown.clear());
    let run = w.post(&["--require-post"]).run(1);
    assert!(
        run.stderr.contains("posted: the summary, the status"),
        "{}",
        run.stderr
    );
    w.lab.with(|s| {
        assert_eq!((s.notes(true).len(), s.notes(false).len()), (0, 1));
        assert!(
            s.notes(false)[0]["body"]
                .as_str()
                .unwrap()
                .contains("app.conf")
        );
    });
}

#[test]
fn ci_07_gitlab_is_asked_again_when_it_says() {
    let w = World::new();
    let body =
        json!({ "message": { "error": "This endpoint has been requested too many times." } })
            .to_string();
    let headers = |after| [("content-type", "application/json"), ("retry-after", after)];
    let limited = |after| Reply::with(429, &headers(after), body.as_bytes());
    let conflict = Reply::json(
        409,
        &json!({ "message": "Another update to this commit status is in progress" }),
    );
    w.lab
        .with(|s| s.instead.push(("POST", "/12/notes", 1, limited("1"))));
    w.lab
        .with(|s| s.instead.push(("POST", "/statuses/", 1, conflict)));
    let run = w.post(&[]).run(1);
    assert!(
        run.stderr
            .contains("posted: 1 new, the summary, the status"),
        "{}",
        run.stderr
    );

    let w = World::new();
    w.lab
        .with(|s| s.instead.push(("POST", "/12/notes", 1, limited("3600"))));
    let run = w.post(&[]).run(1);
    assert!(run.stderr.contains("retry after 3600 s"), "{}", run.stderr);
}

#[test]
fn the_status_of_a_fork_goes_to_the_fork_and_that_of_a_pipeline_to_its_pipeline() {
    let w = World::new();
    w.lab
        .with(|s| s.pulls[0]["source_project_id"] = json!(FORK));
    w.post(&[]).run(1);
    let status = format!("POST projects/{FORK}/statuses/{}", w.head);
    assert_eq!(w.lab.writes()[0], status);
    w.post(&[]).run(1);
    assert!(w.lab.writes().is_empty());
    // A pipeline that has just started has no statuses yet.
    let pipeline = json!({ "id": 901, "project_id": PROJECT, "sha": w.head, "ref": "refs/merge-requests/12/head" });
    w.lab.with(|s| s.pulls[0]["head_pipeline"] = pipeline);
    w.post(&[]).run(1);
    assert_eq!(w.lab.writes(), w.everything()[..1]);
    assert_eq!(w.lab.with(|s| s.statuses[1]["pipeline_id"].clone()), 901);
    w.post(&[]).run(1);
    assert!(w.lab.writes().is_empty());
}

#[test]
fn ci_07_the_token_of_a_job_reads_and_cannot_post() {
    let w = World::new();
    let api = format!("{}/api/v4", w.lab.server.url());
    let in_job = |args: &[&str]| {
        let run = w
            .repo
            .reviewer(args)
            .env("GITLAB_CI", "true")
            .env("CI_API_V4_URL", &api);
        run.env("CI_JOB_TOKEN", &w.lab.job_token)
    };
    in_job(&["review", "pr", "12", "--no-save"]).run(1);
    let run = in_job(&["review", "pr", "12", "--post", "summary"]).run(1);
    assert!(
        run.stderr.contains("CI_JOB_TOKEN") && run.stderr.contains("set GITLAB_TOKEN"),
        "{}",
        run.stderr
    );
    assert!(w.lab.writes().is_empty());
    let run = in_job(&["review", "pr", "12", "--post", "summary"])
        .env("GITLAB_TOKEN", &w.lab.token)
        .run(1);
    assert!(run.stderr.contains("posted: the summary"), "{}", run.stderr);
}

#[test]
fn a_review_of_what_gitlab_has_not_compared_is_not_posted() {
    let w = World::new();
    w.lab.with(|s| s.pulls[0]["diff_refs"] = json!(null));
    let run = w.reviewer(&["review", "pr", "12"]).run(3);
    assert!(run.stderr.contains("not compared"), "{}", run.stderr);
    // Its diff is that of the previous head.
    let w = World::new();
    w.lab
        .with(|s| s.pulls[0]["diff_refs"]["head_sha"] = json!("5".repeat(40)));
    let run = w.post(&[]).run(1);
    assert!(
        run.stderr.contains("is not what was reviewed"),
        "{}",
        run.stderr
    );
    w.lab.with(|s| assert!(s.notes(true).is_empty()));
}
