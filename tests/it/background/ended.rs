//! Tests of reviews that are killed, told to end, or stopped by the user.

use super::*;

/// Kills the review that waits for an answer. Returns the status after its death: for a moment, a
/// killed process still holds its lock.
fn kill_review(desk: &Desk) -> Value {
    kill("-KILL", desk.asking());
    eventually("the review is dead", || {
        Some(desk.status()).filter(|status| status["running"].is_null())
    })
}

#[test]
fn without_a_remote_a_killed_review_and_quick_commits_lose_nothing() {
    let desk = Desk::gated();
    desk.repo.git(&["remote", "remove", "origin"]);
    desk.commit("a.py");
    kill_review(&desk);
    for file in ["b.py", "c.py", "d.py"] {
        desk.commit(file);
    }
    let last = desk.head();
    desk.gate.open();
    let status = desk.settled();
    assert_eq!(status["last"]["commit"], last.as_str(), "{status:#}");
    assert!(status["pending"].is_null(), "{status:#}");
    let files: Vec<_> = desk
        .server
        .questions()
        .iter()
        .flat_map(Request::files)
        .collect();
    for file in ["a.py", "b.py", "c.py", "d.py"] {
        assert!(
            files.iter().any(|asked| asked == file),
            "{file} is not in {files:?}"
        );
    }
}

#[test]
fn the_commit_of_a_killed_review_waits_again() {
    let desk = Desk::gated();
    let commit = desk.commit("a.py");
    let status = kill_review(&desk);
    assert_eq!(status["pending"]["order"]["commit"], commit.as_str());
    assert_eq!(status["pending"]["order"]["attempts"], 1);
    // Its possible cost stays reserved.
    assert!(
        status["cost"]["reserved_usd"].as_f64().unwrap() > 0.0,
        "{status:#}"
    );
    let human = desk.repo.reviewer(&["status"]).run(0).stdout;
    assert!(
        human.contains("its review ended before it was complete"),
        "{human}"
    );
    desk.gate.open();
    let run = desk.repo.reviewer(&["status", "--start"]).run(0);
    assert!(
        run.stdout
            .contains(&format!("started the review of {}", &commit[..12])),
        "{}",
        run.stdout
    );
    assert_eq!(desk.settled()["last"]["commit"], commit.as_str());
}

#[test]
fn the_next_commit_replaces_that_of_a_killed_review() {
    let desk = Desk::gated();
    desk.commit("a.py");
    kill_review(&desk);
    let commit = desk.commit("b.py");
    desk.gate.open();
    let status = desk.settled();
    assert_eq!(status["last"]["commit"], commit.as_str());
    let files: Vec<_> = desk
        .server
        .questions()
        .iter()
        .flat_map(Request::files)
        .collect();
    assert!(
        files.contains(&"a.py".to_owned()) && files.contains(&"b.py".to_owned()),
        "{files:?}"
    );
}

#[test]
fn a_push_after_a_killed_review_reviews_by_itself() {
    let desk = Desk::gated();
    desk.commit("a.py");
    kill_review(&desk);
    desk.gate.open();
    let out = desk.repo.try_git(&["push", "origin", "main"]);
    assert!(out.status.success(), "{}", text(&out));
    assert!(!text(&out).contains("waiting"), "{}", text(&out));
    let status = desk.status();
    assert!(
        status["pending"].is_null() && status["running"].is_null(),
        "the push reviewed it: {status:#}"
    );
}

#[test]
fn a_review_that_is_told_to_end_leaves_its_commit_to_the_next_one() {
    let desk = Desk::gated();
    let commit = desk.commit("a.py");
    kill("-TERM", desk.asking());
    let status = eventually("the review ends", || {
        Some(desk.status()).filter(|s| s["running"].is_null())
    });
    assert_eq!(
        status["pending"]["order"]["commit"],
        commit.as_str(),
        "{status:#}"
    );
}

#[test]
fn a_process_that_reuses_the_id_of_a_dead_review_is_neither_waited_for_nor_ended() {
    let desk = Desk::gated();
    desk.commit("a.py");
    kill_review(&desk);
    let mut other = Command::new("sleep").arg("120").spawn().unwrap();
    let file = station(&desk.repo).join("queue.json");
    let mut queue: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    let order = queue["waiting"]["order"].clone();
    queue["running"] = serde_json::json!({
        "order": order, "pid": other.id(), "birth": 1, "since": "2026-01-01T00:00:00Z", "is_stopping": false,
    });
    queue["waiting"] = Value::Null;
    fs::write(&file, queue.to_string()).unwrap();
    let run = desk
        .repo
        .reviewer(&["status", "--stop", "--format", "json"])
        .run(0);
    assert!(run.json()["running"].is_null(), "{}", run.stdout);
    assert!(
        other.try_wait().unwrap().is_none(),
        "a process that is not ours was ended"
    );
    other.kill().unwrap();
    other.wait().unwrap();
}

#[test]
fn a_review_can_be_stopped() {
    let desk = Desk::gated();
    let commit = desk.commit("a.py");
    let pid = desk.running()["pid"].as_u64().unwrap();
    desk.commit("b.py");
    let run = desk.repo.reviewer(&["status", "--stop"]).run(0);
    assert!(
        run.stdout
            .contains(&format!("stopped the review of {}", &commit[..12])),
        "{}",
        run.stdout
    );
    let status = desk.status();
    assert!(
        status["running"].is_null() && status["pending"].is_null(),
        "{status:#}"
    );
    assert_eq!(status["last"]["ending"], "stopped");
    assert!(!Path::new(&format!("/proc/{pid}")).exists() || field(pid, 22) != 0);
    let run = desk.repo.reviewer(&["status", "--stop"]).run(0);
    assert!(
        run.stdout.contains("nothing was running or waiting"),
        "{}",
        run.stdout
    );
}
