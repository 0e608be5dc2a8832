//! Tests of `post`, and of the effect of decisions on published reviews.

use super::World;
use serde_json::json;

/// Pull request 12 with two findings: a key in line 2 and Python input that is executed.
fn two_findings() -> World {
    let mut w = World::new();
    w.push_with(
        &format!("a = 1\n{}b = 2\nc = 3\n", crate::support::line_with_key()),
        &[("calc.py", "print(eval(input()))\n")],
    );
    w.hub.with(|s| s.shown.push(("calc.py".to_owned(), 1, 1)));
    w
}

/// Returns the ID of the finding in a file of the latest review.
fn id_in(w: &World, file: &str) -> String {
    let run = w.reviewer(&["findings", "--format", "json"]).run(0);
    let listed: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
    let found = listed["findings"]
        .as_array()
        .unwrap()
        .iter()
        .find(|f| f["file"] == file);
    found.unwrap()["id"].as_str().unwrap().to_owned()
}

#[test]
fn a_stored_review_is_posted_once_and_like_a_fresh_one() {
    let w = World::new();
    w.reviewer(&["review", "pr", "12"]).run(1);
    assert!(w.hub.writes().is_empty());
    let run = w.reviewer(&["post", "pr", "12"]).run(0);
    assert!(
        run.stderr
            .contains("posted: 1 new, the summary, the status"),
        "{}",
        run.stderr
    );
    for args in [
        &["post"][..],
        &["post", "latest"],
        &["post", "pr", "#12", "--all"],
    ] {
        let run = w.reviewer(args).run(0);
        assert!(
            run.stderr.contains("posted: nothing new"),
            "{args:?}: {}",
            run.stderr
        );
    }
    // A new review has the same result.
    w.hub.writes();
    let run = w.post(&[]).run(1);
    assert!(run.stderr.contains("posted: nothing new"), "{}", run.stderr);
    assert_eq!(w.hub.writes(), Vec::<String>::new());
}

#[test]
fn only_accepted_findings_are_posted_once_one_was_decided() {
    for (decide, accepted, new) in [
        (&["accept"][..], "app.conf", 1),
        (&["reject", "--reason", "a demo"], "app.conf", 0),
        (&["defer"], "app.conf", 0),
    ] {
        let w = two_findings();
        w.reviewer(&["review", "pr", "12"]).run(1);
        let id = id_in(&w, accepted);
        let args: Vec<&str> = [&decide[..1], &[&id], &decide[1..]].concat();
        w.reviewer(&args).run(0);
        let run = w.reviewer(&["post"]).run(0);
        assert!(
            run.stderr
                .contains("1 finding without a decision was not posted"),
            "{}",
            run.stderr
        );
        w.hub.with(|s| {
            assert_eq!(s.inline.len(), new, "{decide:?}");
            assert!(s.inline.iter().all(|c| c["path"] == "app.conf"));
            let summary = s.comments[0]["body"].as_str().unwrap();
            assert!(
                summary.contains("Findings not listed: 1 without a decision"),
                "{summary}"
            );
            assert!(!summary.contains("calc.py"), "{summary}");
            assert_eq!(
                summary.contains("app.conf"),
                decide[0] == "accept",
                "{summary}"
            );
            assert_eq!(s.statuses[0]["state"], "failure");
        });
        // The other one too.
        let run = w.reviewer(&["post", "--all"]).run(0);
        assert!(run.stderr.contains("1 new"), "{}", run.stderr);
        w.hub.with(|s| {
            assert_eq!(s.inline.len(), new + 1, "{decide:?}");
            assert!(s.inline.iter().any(|c| c["path"] == "calc.py"));
        });
    }
}

#[test]
fn a_rejected_finding_is_resolved_with_its_reason_and_stays_quiet() {
    let w = two_findings();
    w.post(&[]).run(1);
    w.hub.with(|s| assert_eq!(s.inline.len(), 2));
    let key = crate::support::line_with_another_key();
    let secret = key.trim().rsplit(' ').next().unwrap();
    let reason = format!("see {secret} <img src=x> @someone {}", "long ".repeat(100));
    w.reviewer(&["reject", &id_in(&w, "app.conf"), "--reason", &reason])
        .run(0);
    w.reviewer(&["accept", &id_in(&w, "calc.py")]).run(0);
    let run = w.reviewer(&["post"]).run(0);
    assert!(run.stderr.contains("1 resolved"), "{}", run.stderr);
    w.hub.with(|s| {
        let rejected = s.inline.iter().find(|c| c["path"] == "app.conf").unwrap();
        let body = rejected["body"].as_str().unwrap();
        assert!(body.starts_with("**Rejected:** still found at "), "{body}");
        assert!(
            body.len() < 700 && !body.contains("<img") && !body.contains(" @someone"),
            "{body}"
        );
        assert_eq!(s.resolved, [rejected["id"].as_u64().unwrap()]);
    });
    assert!(!w.hub.server.saw(secret));
    // A later review uses the same selection, and adds no message.
    w.hub.writes();
    let run = w.post(&[]).run(1);
    assert!(run.stderr.contains("posted: nothing new"), "{}", run.stderr);
    // In gate mode, decisions of this machine do not count.
    let run = w.post(&["--gate"]).run(1);
    assert!(
        run.stderr.contains("posted: 1 changed, the summary"),
        "{}",
        run.stderr
    );
    w.hub.with(|s| {
        assert!(
            s.inline
                .iter()
                .all(|c| !c["body"].as_str().unwrap().contains("Rejected")),
            "{:?}",
            s.inline
        );
    });
}

#[test]
fn without_the_gate_the_status_follows_the_decisions() {
    let w = World::new();
    w.reviewer(&["review", "pr", "12", "--no-gate"]).run(1);
    w.reviewer(&["reject", "F1", "--reason", "a demo"]).run(0);
    w.reviewer(&["post"]).run(0);
    w.hub.with(|s| {
        assert_eq!(
            (s.statuses[0]["state"].clone(), s.inline.len()),
            (json!("success"), 0)
        );
    });
    // A finding that counts again is not judged here: its threshold is not stored.
    w.reviewer(&["review", "pr", "12", "--no-gate"]).run(0);
    w.reviewer(&["accept", "F1"]).run(0);
    let run = w.reviewer(&["post"]).run(2);
    assert!(
        run.stderr.contains("counts again") && run.stderr.contains("claude-reviewer review pr 12"),
        "{}",
        run.stderr
    );
}

#[test]
fn a_dry_run_says_what_it_would_write_and_writes_nothing() {
    let mut w = two_findings();
    w.reviewer(&["review", "pr", "12"]).run(1);
    let run = w.reviewer(&["post", "--dry-run"]).run(0);
    let lines: Vec<&str> = run.stdout.lines().collect();
    assert_eq!(lines.len(), 4, "{}", run.stdout);
    assert!(
        lines
            .iter()
            .any(|l| l.starts_with("comment  app.conf:2  critical ")),
        "{}",
        run.stdout
    );
    assert!(
        lines
            .iter()
            .any(|l| l.starts_with("comment  calc.py:1  critical python-eval-input")),
        "{}",
        run.stdout
    );
    assert!(lines.contains(&"summary  new"), "{}", run.stdout);
    assert!(
        lines.contains(&"status   claude-reviewer-main: 2 of 2 findings block"),
        "{}",
        run.stdout
    );
    assert!(w.hub.writes().is_empty());
    w.reviewer(&["post"]).run(0);
    let run = w.reviewer(&["post", "--dry-run"]).run(0);
    assert_eq!(run.stdout, "nothing new to post\n");
    w.push("a = 1\nb = 3\nc = 3\n");
    w.reviewer(&["review", "pr", "12"]).run(0);
    w.hub.writes();
    let run = w
        .reviewer(&["post", "--dry-run", "--parts", "comments"])
        .run(0);
    assert!(
        run.stdout.lines().all(|l| l.starts_with("resolve  ")) && run.stdout.lines().count() == 2,
        "{}",
        run.stdout
    );
    assert!(w.hub.writes().is_empty());
}

#[test]
fn a_review_of_another_head_is_not_posted_and_the_command_that_helps_is_named() {
    let mut w = World::new();
    w.reviewer(&["review", "pr", "12"]).run(1);
    w.push(&format!(
        "a = 1\n{}b = 4\nc = 3\n",
        crate::support::line_with_key()
    ));
    for args in [
        &["post"][..],
        &["post", "pr", "12", "--dry-run"],
        &["post", "--all"],
    ] {
        let run = w.reviewer(args).run(3);
        assert!(run.stderr.contains("its head is "), "{}", run.stderr);
        assert!(
            run.stderr.contains("claude-reviewer review pr 12"),
            "{}",
            run.stderr
        );
    }
    assert!(w.hub.writes().is_empty());
}

#[test]
fn what_cannot_be_posted_is_refused_with_the_next_command() {
    let w = World::new();
    let cases: [(&[&str], &str); 5] = [
        (&["post"], "claude-reviewer review"),
        (&["post", "pr", "12"], "claude-reviewer review pr 12"),
        (&["post", "pr", "x"], "claude-reviewer pr list"),
        (&["post", "2026-01-31-001"], "claude-reviewer history"),
        (&["post", "12", "13"], "claude-reviewer post latest"),
    ];
    for (args, hint) in cases {
        let run = w.reviewer(args).run(2);
        assert!(run.stderr.contains(hint), "{args:?}: {}", run.stderr);
    }
    w.repo.stage("new.py", "print(eval(input()))\n");
    w.reviewer(&["review", "staged"]).run(1);
    let run = w.reviewer(&["post"]).run(2);
    assert!(
        run.stderr.contains("is not of a pull request"),
        "{}",
        run.stderr
    );
    assert!(w.hub.writes().is_empty());
}

#[test]
fn a_later_review_of_a_pull_request_is_a_round_of_the_same_session() {
    let mut w = World::new();
    let first = w
        .reviewer(&["review", "pr", "12", "--format", "json"])
        .run(1);
    let first: serde_json::Value = serde_json::from_str(&first.stdout).unwrap();
    w.push("a = 1\nb = 3\nc = 3\n");
    let run = w
        .reviewer(&["review", "pr", "12", "--format", "json"])
        .run(0);
    let second: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(
        (&second["review_id"], &second["round"]),
        (&first["review_id"], &json!(2))
    );
    assert!(run.stderr.contains("round 2: 1 fixed"), "{}", run.stderr);
    let listed = w.reviewer(&["findings", "--status", "fixed"]).run(0);
    assert!(listed.stdout.contains("app.conf"), "{}", listed.stdout);
    // Another pull request, other files and another mode have separate sessions.
    for more in [&["--files", "*.conf"][..], &["--no-gate"]] {
        let run = w
            .reviewer(&[&["review", "pr", "12", "--format", "json"], more].concat())
            .run(0);
        let other: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
        assert_ne!(other["review_id"], first["review_id"], "{more:?}");
    }
}

#[test]
fn rounds_that_are_used_up_and_closed_sessions_begin_a_new_one() {
    let w = World::new();
    let id = |run: &crate::support::Run| {
        let report: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
        (
            report["review_id"].as_str().unwrap().to_owned(),
            report["round"].as_u64().unwrap(),
        )
    };
    let review = || {
        w.reviewer(&["review", "pr", "12", "--format", "json"])
            .run(1)
    };
    let (first, _) = id(&review());
    w.reviewer(&["complete", &first, "--status", "abandoned", "--force"])
        .run(0);
    let run = review();
    let (second, round) = id(&run);
    assert!(
        second != first && round == 1 && run.stderr.contains("a new review begins"),
        "{}",
        run.stderr
    );
    for _ in 0..4 {
        review();
    }
    let (third, round) = id(&review());
    assert!(third != second && round == 1, "{third} {round}");
}

#[test]
fn the_list_of_pull_requests_names_the_next_commands() {
    let w = World::new();
    let run = w.reviewer(&["pr", "list"]).run(0);
    assert!(
        run.stdout.ends_with("next: claude-reviewer review pr 12\n"),
        "{}",
        run.stdout
    );
    let first = w
        .reviewer(&["review", "pr", "12", "--format", "json"])
        .run(1)
        .json();
    let run = w.reviewer(&["pr", "list"]).run(0);
    let id = first["review_id"].as_str().unwrap();
    assert!(
        run.stdout.contains(&format!(
            "reviewed as {id}; to post it: claude-reviewer post pr 12"
        )),
        "{}",
        run.stdout
    );
    let run = w.reviewer(&["pr", "list", "--remote", "origin"]).run(0);
    assert!(
        run.stdout
            .ends_with("next: claude-reviewer review pr 12 --remote origin\n"),
        "{}",
        run.stdout
    );
    let run = w.reviewer(&["pr", "list", "--quiet"]).run(0);
    assert!(!run.stdout.contains("next:"), "{}", run.stdout);
}

#[test]
fn hints_name_the_remote_where_there_are_several() {
    let mut w = World::new();
    w.repo.git(&["remote", "rename", "origin", "upstream"]);
    w.repo.git(&[
        "remote",
        "add",
        "origin",
        "https://forge.example/me/fork.git",
    ]);
    w.reviewer(&["review", "pr", "12", "--remote", "upstream"])
        .run(1);
    let command = "claude-reviewer review pr 12 --remote upstream";
    let stored = w
        .reviewer(&["history", "latest", "--format", "json"])
        .run(0)
        .stdout;
    assert!(
        stored.contains(&format!("review the pull request again: {command}")),
        "{stored}"
    );
    let refused = w
        .reviewer(&["complete", "latest", "--status", "approved"])
        .run(2)
        .stderr;
    assert!(
        refused.contains(&format!("review again: {command}\n")),
        "{refused}"
    );
    w.push("a = 1\nb = 2\n");
    let run = w.reviewer(&["post"]).run(3);
    assert!(
        run.stderr
            .contains(&format!("review it again: {command}\n")),
        "{}",
        run.stderr
    );
    w.reviewer(&["review", "pr", "12", "--remote", "upstream"])
        .run_any();
    let run = w
        .reviewer(&["post", "pr", "13", "--remote", "upstream"])
        .run(2);
    assert!(
        run.stderr
            .contains("hint: claude-reviewer review pr 13 --remote upstream\n"),
        "{}",
        run.stderr
    );
}

#[test]
fn a_person_at_a_terminal_is_told_how_to_go_on() {
    let w = World::new();
    let (_, text) = crate::terminal::typed(w.reviewer(&["review", "pr", "12"]), "");
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for command in ["claude-reviewer triage pr 12", "claude-reviewer post pr 12"] {
        assert!(text.contains(command), "{text}");
    }
    for more in ["--no-save", "--quiet"] {
        let (_, text) = crate::terminal::typed(w.reviewer(&["review", "pr", "12", more]), "");
        assert!(!text.contains("claude-reviewer post"), "{text}");
    }
    let run = w.reviewer(&["review", "pr", "12"]).run(1);
    assert!(
        !run.stderr.contains("claude-reviewer post"),
        "{}",
        run.stderr
    );
}

/// The rounds of a stored review on another forge: `push` replaces the change, `state` returns
/// whether the conversation is resolved, and the text of its first comment.
fn rounds_on<W>(
    w: &mut W,
    run: impl Fn(&W, &[&str], i32) -> crate::support::Run,
    push: impl Fn(&mut W, &str),
    state: impl Fn(&W) -> Vec<(bool, String)>,
) {
    run(w, &["review", "pr", "12"], 1);
    let posted = run(w, &["post", "pr", "12"], 0);
    assert!(
        posted
            .stderr
            .contains("posted: 1 new, the summary, the status"),
        "{}",
        posted.stderr
    );
    run(w, &["reject", "F1", "--reason", "a demo"], 0);
    let posted = run(w, &["post", "pr", "12"], 0);
    assert!(posted.stderr.contains("1 resolved"), "{}", posted.stderr);
    let after = state(w);
    assert!(
        after.len() == 1 && after[0].0 && after[0].1.contains("**Rejected:**"),
        "{after:?}"
    );
    let quiet = run(w, &["review", "pr", "12", "--post", "comments"], 1);
    assert!(
        quiet.stderr.contains("posted: nothing new"),
        "{}",
        quiet.stderr
    );
    // Accepted, it is posted again; fixed, it is resolved.
    run(w, &["accept", "F1"], 0);
    run(w, &["post", "pr", "12"], 0);
    let after = state(w);
    assert!(
        after.len() == 1 && !after[0].0 && !after[0].1.contains("Rejected"),
        "{after:?}"
    );
    push(w, "a = 1\nb = 3\nc = 3\n");
    let again = run(w, &["review", "pr", "12"], 0);
    assert!(again.stderr.contains("1 fixed"), "{}", again.stderr);
    let posted = run(w, &["post", "pr", "12"], 0);
    assert!(
        posted
            .stderr
            .contains("1 resolved, the summary, the status"),
        "{}",
        posted.stderr
    );
    let after = state(w);
    assert!(
        after.len() == 1 && after[0].0 && after[0].1.contains("**Resolved:**"),
        "{after:?}"
    );
    let posted = run(w, &["post", "pr", "12", "--dry-run"], 0);
    assert_eq!(posted.stdout, "nothing new to post\n");
}

#[test]
fn all_rounds_are_posted_to_gitlab() {
    let mut w = super::gitlab::World::new();
    let state = |w: &super::gitlab::World| {
        let notes = w.lab.with(|s| s.notes(true));
        notes
            .iter()
            .map(|n| {
                (
                    n["resolved"] == true,
                    n["body"].as_str().unwrap().to_owned(),
                )
            })
            .collect()
    };
    rounds_on(
        &mut w,
        |w, args, code| w.reviewer(args).run(code),
        |w, text| w.push_with(text, &[]),
        state,
    );
}

#[test]
fn all_rounds_are_posted_to_both_bitbuckets() {
    use super::bitbucket::{BOTH, World};
    for speech in BOTH {
        let mut w = World::new(speech);
        let state = |w: &World| {
            let notes = w.hub.with(|s| s.notes.clone());
            notes
                .iter()
                .filter(|n| n.place.is_some())
                .map(|n| (n.resolved, n.text.clone()))
                .collect()
        };
        rounds_on(
            &mut w,
            |w, args, code| w.reviewer(args).run(code),
            |w, text| w.push_with(text, &[], false),
            state,
        );
    }
}

#[test]
fn a_decision_that_is_older_than_the_session_selects_nothing_and_still_keeps_a_finding_back() {
    for (decide, new) in [("accept", "2 new"), ("reject", "1 new")] {
        let w = two_findings();
        w.reviewer(&["review", "pr", "12"]).run(1);
        w.reviewer(&[decide, &id_in(&w, "app.conf"), "--reason", "a demo"])
            .run(0);
        let file = w.repo.path().join(".reviews/dispositions.toml");
        let text = std::fs::read_to_string(&file).unwrap();
        let at = text.find("created = \"").unwrap() + "created = \"".len();
        std::fs::write(
            &file,
            format!("{}2020-01-01{}", &text[..at], &text[at + 10..]),
        )
        .unwrap();
        let run = w.reviewer(&["post"]).run(0);
        assert!(
            run.stderr.contains(new) && !run.stderr.contains("without a decision"),
            "{decide}: {}",
            run.stderr
        );
    }
}

#[test]
fn a_follow_up_of_the_worktree_is_no_round_of_a_pull_request() {
    let w = World::new();
    w.reviewer(&["review", "pr", "12"]).run(1);
    for args in [
        &["review", "--follow-up", "latest"][..],
        &["review", "changes", "--follow-up", "latest"],
    ] {
        let refused = w.reviewer(args).run(2).stderr;
        assert!(
            refused.contains("is of pull request #12"),
            "{args:?}: {refused}"
        );
        assert!(
            refused.contains("review the pull request again: claude-reviewer review pr 12\n"),
            "{refused}"
        );
    }
    // The posted session is still the one that is continued.
    w.reviewer(&["post", "pr", "12"]).run(0);
    let next = w.reviewer(&["review", "pr", "12"]).run(1);
    let again = "push them and review the pull request again: claude-reviewer review pr 12";
    assert!(
        next.stderr.contains("round 2: ") && next.stderr.contains(again),
        "{}",
        next.stderr
    );
    let closed = w
        .reviewer(&["complete", "latest", "--status", "approved"])
        .run(2)
        .stderr;
    assert!(
        closed.contains("review again: claude-reviewer review pr 12\n"),
        "{closed}"
    );
}
