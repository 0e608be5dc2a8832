//! Tests of the positions of comments, and of reviews that must not be posted: for another base, or
//! for a part of the change.

use super::World;
use crate::loopback::{Reply, Server, finding};
use crate::support::{line_with_another_key, line_with_key, until};
use serde_json::{Value, json};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Returns line and text of every comment on lines.
fn comments(w: &World) -> Vec<(Value, String)> {
    let comment = |c: &Value| (c["line"].clone(), c["body"].as_str().unwrap().to_owned());
    w.hub.with(|s| s.inline.iter().map(comment).collect())
}

#[test]
fn a_review_against_another_base_is_not_posted() {
    let w = World::new();
    let mut before = w.hub.with(|s| s.pulls[0].clone());
    // The target is a branch with another policy during the review, and main afterwards.
    before["base"]["ref"] = json!("lax");
    w.hub.with(|s| {
        s.instead
            .push(("GET", "/pulls/12", 1, Reply::json(200, &before)));
    });
    let run = w.post(&["--require-post", "--exit-zero"]).run(3);
    assert!(
        run.stderr
            .contains("now targets main, but was reviewed against lax"),
        "{}",
        run.stderr
    );
    assert!(w.hub.writes().is_empty());
}

#[test]
fn ci_08_a_comment_that_its_line_took_along_is_kept() {
    let mut w = World::new();
    w.post(&[]).run(1);
    w.push(&format!("z = 0\na = 1\n{}b = 2\nc = 3\n", line_with_key()));
    w.post(&["--require-post"]).run(1);
    let all = comments(&w);
    assert_eq!((all.len(), &all[0].0), (1, &json!(3)));
    assert!(!all[0].1.contains("on other lines"), "{all:?}");
}

#[test]
fn what_is_new_on_another_line_is_not_hidden_by_what_a_person_closed() {
    let mut w = World::new();
    w.post(&[]).run(1);
    let id = w.hub.with(|s| s.inline[0]["id"].as_u64().unwrap());
    w.hub.with(|s| s.resolved.push(id));
    // That key is removed, and another one is added elsewhere: masked, they are equal.
    w.push(&format!("{}a = 1\nb = 2\nc = 3\n", line_with_another_key()));
    w.post(&["--require-post"]).run(1);
    let all = comments(&w);
    assert_eq!(
        (all.len(), &all[0].0, &all[1].0),
        (2, &Value::Null, &json!(1))
    );
    assert!(
        all[0].1.contains("on other lines") && !all[1].1.contains("on other lines"),
        "{all:?}"
    );
    w.hub.writes();
    w.post(&["--require-post"]).run(1);
    assert_eq!(w.hub.writes(), Vec::<String>::new());
}

#[test]
fn every_one_of_two_alike_has_a_comment_on_its_own_line() {
    let mut w = World::new();
    w.post(&[]).run(1);
    w.push(&format!(
        "{key}a = 1\n{key}b = 2\nc = 3\n",
        key = line_with_key()
    ));
    w.post(&["--require-post"]).run(1);
    let all = comments(&w);
    let mut live: Vec<_> = all
        .iter()
        .filter(|c| !c.1.contains("on other lines"))
        .map(|c| c.0.clone())
        .collect();
    live.sort_by_key(Value::as_u64);
    assert_eq!(live, [json!(1), json!(3)], "{all:?}");
    w.hub.writes();
    w.post(&["--require-post"]).run(1);
    assert_eq!(w.hub.writes(), Vec::<String>::new());
}

#[test]
fn what_is_waived_or_suppressed_is_not_said_to_be_gone() {
    let w = World::new();
    w.post(&[]).run(1);
    let text = comments(&w)[0].1.clone();
    let fingerprint = text
        .split("finding=")
        .nth(1)
        .unwrap()
        .split(' ')
        .next()
        .unwrap()
        .to_owned();
    w.post(&["--waive", &format!("{fingerprint}=a test key")])
        .run(0);
    let all = comments(&w);
    assert!(
        all[0].1.contains("**Waived:**") && !all[0].1.contains("not found any more"),
        "{all:?}"
    );
    w.hub.with(|s| assert_eq!(s.resolved.len(), 1));
    // On the same line, it is reopened.
    w.post(&[]).run(1);
    assert_eq!(comments(&w), [(json!(2), text)]);
    w.hub.with(|s| assert!(s.resolved.is_empty()));
}

#[test]
fn a_suggestion_is_offered_on_just_the_lines_that_it_replaces() {
    let mut w = World::new();
    let asked = Arc::new(Mutex::new(finding("app.conf", 2, "b = f(1)")));
    let says = Arc::clone(&asked);
    let model = Server::start(move |request| request.review(&[says.lock().unwrap().clone()]));
    w.repo
        .stage(".claude-reviewer.toml", model.policy("openai"));
    w.base = w.repo.commit("ask a model");
    w.repo
        .git(&["push", "-q", w.bare().to_str().unwrap(), "main"]);
    w.push("a = 1\nb = f(1)\nd = f(2)\ne = f(3)\nc = 3\n");
    w.post(&["--no-cache"]).run(1);
    assert_eq!(comments(&w)[0].0, 2);
    // The same finding covers three lines now.
    {
        let mut finding = asked.lock().unwrap();
        finding["end_line"] = json!(4);
        finding["replacement"] = json!("b = g(1)\nd = g(2)\ne = g(3)");
    }
    w.post(&["--no-cache"]).run(1);
    let all = comments(&w);
    assert_eq!((all.len(), &all[1].0), (2, &json!(4)));
    assert!(
        all[0].1.contains("on other lines") && !all[0].1.contains("```suggestion"),
        "{all:?}"
    );
    assert!(all[1].1.contains("```suggestion"), "{all:?}");
    w.hub.with(|s| assert_eq!(s.inline[1]["start_line"], 2));
    // A comment on the last of them only shows the code.
    w.hub.with(|s| s.inline[1]["start_line"] = Value::Null);
    w.post(&["--no-cache"]).run(1);
    let all = comments(&w);
    assert_eq!(all.len(), 2);
    assert!(
        !all[1].1.contains("```suggestion") && all[1].1.contains("+ e = g(3)"),
        "{all:?}"
    );
}

#[test]
fn a_summary_is_about_the_whole_change_or_is_not_written() {
    let mut w = World::new();
    let content = w.content.clone();
    w.push_with(&content, &[("docs/a.md", "text\n")]);
    w.post(&[]).run(1);
    let before = w.hub.with(|s| s.comments.clone());
    w.hub.writes();
    let run = w.post(&["--require-post", "--files", "docs/*"]).run(3);
    assert!(
        run.stderr.contains("a summary is about all of it"),
        "{}",
        run.stderr
    );
    assert!(
        run.stderr.contains("a status is about all of it"),
        "{}",
        run.stderr
    );
    assert_eq!(w.hub.writes(), Vec::<String>::new());
    assert_eq!(w.hub.with(|s| s.comments.clone()), before);
}

#[test]
fn ci_07_what_must_be_posted_is_no_matter_of_findings_that_block() {
    let reply = Reply::json(
        403,
        &json!({ "message": "Resource not accessible by integration" }),
    );
    let w = World::new();
    w.hub
        .with(|s| s.instead.push(("POST", "/api/v3/", usize::MAX, reply)));
    w.post(&["--exit-zero"]).run(0);
    let run = w.post(&["--exit-zero", "--require-post"]).run(3);
    assert!(run.stderr.contains("exit=3"), "{}", run.stderr);
    w.post(&["--exit-zero", "--require-post", "--on-incomplete", "warn"])
        .run(0);
}

#[test]
fn ci_07_only_what_github_says_of_lines_puts_a_finding_elsewhere() {
    let w = World::new();
    let said = "user_id can only have one pending review per pull request";
    let body = json!({ "message": "Validation Failed", "errors": [{ "resource": "PullRequestReview", "code": "custom",
        "field": "user_id", "message": said }] });
    w.hub.with(|s| {
        s.instead
            .push(("POST", "/reviews", 1, Reply::json(422, &body)));
    });
    let run = w.post(&["--require-post", "--exit-zero"]).run(3);
    assert!(
        run.stderr.contains(said) && run.stderr.contains("1 of 1 comments on lines"),
        "{}",
        run.stderr
    );
}

#[test]
fn ci_07_what_blocks_and_stands_nowhere_on_the_page_is_a_failure() {
    let w = World::new();
    w.hub.with(|s| s.shown.clear());
    let words = [
        "review",
        "pr",
        "12",
        "--require-post",
        "--exit-zero",
        "--post",
    ];
    let run = w.reviewer(&[&words[..], &["comments"]].concat()).run(3);
    assert!(
        run.stderr.contains("no place on the page"),
        "{}",
        run.stderr
    );
    w.reviewer(&[&words[..], &["comments,summary"]].concat())
        .run(0);
}

#[test]
fn ci_07_the_status_is_set_whatever_becomes_of_the_comments() {
    let w = World::new();
    let stale = json!({ "state": "success", "context": "claude-reviewer-main", "description": "nothing found",
        "creator": { "login": "robot[bot]", "id": 7 } });
    let refusal = Reply::json(
        403,
        &json!({ "message": "Resource not accessible by integration" }),
    );
    w.hub.with(|s| {
        s.statuses.push(stale);
        s.instead
            .push(("GET", "/issues/12/comments", usize::MAX, refusal));
    });
    let run = w.post(&["--require-post", "--exit-zero"]).run(3);
    assert!(
        run.stderr.contains("posted: the status") && run.stderr.contains("not posted: comments"),
        "{}",
        run.stderr
    );
    w.hub
        .with(|s| assert_eq!(s.statuses[0]["state"], "failure"));
}

#[test]
fn a_file_that_holds_secrets_by_its_name_has_comments_on_its_lines() {
    let mut w = World::new();
    let text = format!("A=1\n{}", line_with_key());
    w.push_with("a = 1\nb = 3\nc = 3\n", &[(".env", &text)]);
    w.hub.with(|s| s.shown.push((".env".to_owned(), 1, 2)));
    let words = ["review", "pr", "12", "--post", "comments", "--require-post"];
    w.reviewer(&words).run(1);
    let of = |w: &World| {
        w.hub.with(|s| {
            s.inline
                .iter()
                .map(|c| (c["path"].clone(), c["line"].clone()))
                .collect::<Vec<_>>()
        })
    };
    assert!(of(&w).contains(&(json!(".env"), json!(2))), "{:?}", of(&w));
    let before = of(&w);
    w.reviewer(&words).run(1);
    assert_eq!(of(&w), before);
    let key = line_with_key();
    assert!(!w.hub.server.saw(key.trim().rsplit(' ').next().unwrap()));
}

#[test]
fn no_forge_is_asked_offline() {
    let w = World::new();
    for (words, named) in [
        (&["review", "pr", "12", "--offline"][..], "review pr"),
        (
            &["review", "pr", "12", "--offline", "--post", "status"][..],
            "--post",
        ),
        (
            &[
                "review",
                "branch",
                "--base",
                "main",
                "--offline",
                "--post",
                "status",
            ][..],
            "--post",
        ),
    ] {
        let run = w.reviewer(words).env("CI", "true").run(2);
        assert!(
            run.stderr.contains("--offline opens no socket") && run.stderr.contains(named),
            "{}",
            run.stderr
        );
    }
    assert_eq!(w.hub.server.connections(), 0);
}

#[test]
fn a_project_that_was_renamed_is_told_by_its_new_path() {
    let w = World::new();
    let to = format!("{}/api/v3/repositories/1/pulls/12", w.hub.server.url());
    let moved = Reply::with(
        301,
        &[("location", &to), ("content-type", "application/json")],
        b"{}",
    );
    w.hub
        .with(|s| s.instead.push(("GET", "/repos/o/r/", usize::MAX, moved)));
    let run = w.reviewer(&["review", "pr", "12"]).run(2);
    let said = run.stderr.contains("/api/v3/repositories/1/pulls/12")
        && run.stderr.contains("git remote set-url");
    assert!(said && !run.stderr.contains("github_api"), "{}", run.stderr);
}

#[test]
fn a_signal_ends_what_is_being_posted() {
    for (name, code, is_twice) in [
        ("INT", 130, false),
        ("TERM", 143, false),
        ("INT", 130, true),
    ] {
        let w = World::new();
        let slow = Reply::json(201, &json!({ "id": 1 })).after(Duration::from_secs(60));
        w.hub
            .with(|s| s.instead.push(("POST", "/issues/12/comments", 1, slow)));
        let mut command = w.post(&["--require-post"]).command();
        let child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        until("a comment is posted", || {
            w.hub
                .server
                .requests()
                .iter()
                .any(|r| r.method == "POST" && r.path.ends_with("/issues/12/comments"))
        });
        let told = Instant::now();
        for _ in 0..=usize::from(is_twice) {
            let kill = Command::new("kill")
                .args([&format!("-{name}"), "--", &child.id().to_string()])
                .status();
            assert!(kill.unwrap().success() || is_twice);
        }
        let out = child.wait_with_output().unwrap();
        let stderr = String::from_utf8_lossy(&out.stderr);
        assert_eq!(out.status.code(), Some(code), "{stderr}");
        // The claim: the run ends after the signal, and not with the time limit of its requests.
        assert!(told.elapsed() < Duration::from_secs(20), "{stderr}");
        assert!(
            stderr.contains("not posted: the summary: the run was stopped"),
            "{stderr}"
        );
        assert!(stderr.contains(&format!("exit={code}")), "{stderr}");
        // The comments on the previous commit stay.
        w.hub
            .with(|s| assert_eq!((s.statuses.len(), s.inline.len()), (1, 1)));
    }
}
