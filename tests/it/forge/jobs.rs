//! Tests of jobs of a CI system that publish the review of a pull request.

use super::World;
use serde_json::json;

#[test]
fn a_job_for_a_pull_request_publishes_what_its_branch_review_says() {
    let w = World::new();
    // Without configuration, the workflow's own variables name the server, and its token is for
    // that server.
    std::fs::remove_dir_all(w.repo.home().join(".config")).unwrap();
    let event = w.repo.home().join("event.json");
    let pull = w.hub.with(|s| s.pulls[0].clone());
    std::fs::write(
        &event,
        json!({ "number": 12, "pull_request": pull }).to_string(),
    )
    .unwrap();
    let job = |name: &str| {
        w.repo
            .reviewer(&[
                "review",
                "branch",
                "--fetch",
                "--no-save",
                "--post",
                "comments,status",
                "--require-post",
            ])
            .env("CI", "true")
            .env("GITHUB_ACTIONS", "true")
            .env("GITHUB_EVENT_NAME", name)
            .env("GITHUB_EVENT_PATH", &event)
            .env("GITHUB_API_URL", format!("{}/api/v3", w.hub.server.url()))
            .env("GITHUB_TOKEN", &w.hub.token)
    };
    let run = job("pull_request").run(1);
    assert!(
        run.stderr.contains("posted: 1 new, the status"),
        "{}",
        run.stderr
    );
    w.hub.writes();
    let run = job("pull_request").run(1);
    assert!(run.stderr.contains("posted: nothing new"), "{}", run.stderr);
    assert!(w.hub.writes().is_empty());
    // A push has no pull request, which is not an error.
    let push = json!({ "ref": "refs/heads/main", "before": w.base, "after": w.head, "repository": { "default_branch": "main" } });
    std::fs::write(&event, push.to_string()).unwrap();
    w.repo.git(&[
        "fetch",
        "-q",
        w.bare().to_str().unwrap(),
        "refs/pull/12/head",
    ]);
    let run = job("push").run(1);
    assert!(
        run.stderr.contains("not about a pull request"),
        "{}",
        run.stderr
    );
    // Outside of CI, there is nothing to publish to.
    let run = w
        .repo
        .reviewer(&["review", "branch", "--base", "main", "--post", "summary"])
        .run(2);
    assert!(
        run.stderr.contains("--post needs a pull request"),
        "{}",
        run.stderr
    );
}

#[test]
fn a_job_after_the_workflow_of_a_fork_finds_the_pull_request_and_publishes_to_no_other() {
    let w = World::new();
    std::fs::remove_dir_all(w.repo.home().join(".config")).unwrap();
    let (event, head) = (w.repo.home().join("event.json"), w.head.clone());
    let run = json!({
        "workflow_run": {
            "event": "pull_request", "head_sha": head, "head_branch": "feature", "pull_requests": [],
            "head_repository": { "full_name": "stranger/r", "owner": { "login": "stranger" } },
        },
        "repository": { "full_name": "o/r", "default_branch": "main" },
    });
    std::fs::write(&event, run.to_string()).unwrap();
    let words = [
        "review",
        "branch",
        "--fetch",
        "--no-save",
        "--post",
        "comments,status",
        "--require-post",
    ];
    let with = |more: &[&str], code| {
        w.repo
            .reviewer(&[&words[..], more].concat())
            .env("CI", "true")
            .env("GITHUB_ACTIONS", "true")
            .env("GITHUB_EVENT_NAME", "workflow_run")
            .env("GITHUB_EVENT_PATH", &event)
            .env("GITHUB_API_URL", format!("{}/api/v3", w.hub.server.url()))
            .env("GITHUB_TOKEN", &w.hub.token)
            .run(code)
    };
    let job = |code| with(&[], code);
    // One of another branch with the same name, and one for an earlier commit: neither matches.
    w.hub
        .with(|s| s.pulls[0]["head"]["label"] = json!("another:feature"));
    let told = job(2);
    assert!(
        told.stderr
            .contains("no open pull request from stranger:feature"),
        "{}",
        told.stderr
    );
    w.hub.with(|s| {
        s.pulls[0]["head"]["label"] = json!("stranger:feature");
        s.pulls[0]["head"]["sha"] = json!(w.base);
    });
    job(2);
    assert!(w.hub.writes().is_empty());
    w.hub.with(|s| s.pulls[0]["head"]["sha"] = json!(head));
    let told = with(&["--no-gate"], 2);
    assert!(
        told.stderr.contains("--no-gate lets a stranger's change"),
        "{}",
        told.stderr
    );
    assert!(w.hub.writes().is_empty());
    let told = job(1);
    assert!(told.stdout.contains("pull request #12"), "{}", told.stdout);
    assert!(
        told.stderr.contains("posted: 1 new, the status"),
        "{}",
        told.stderr
    );
    // Two requests have the same head, so the right one is unknown.
    w.hub.writes();
    w.hub.with(|s| s.pulls.push(s.pulls[0].clone()));
    let told = job(2);
    assert!(
        told.stderr.contains("several pull requests"),
        "{}",
        told.stderr
    );
    assert!(w.hub.writes().is_empty());
}

#[test]
fn what_is_pointed_at_another_branch_meanwhile_gets_no_verdict_of_the_old_one() {
    let w = World::new();
    std::fs::remove_dir_all(w.repo.home().join(".config")).unwrap();
    let event = w.repo.home().join("event.json");
    let pull = w.hub.with(|s| s.pulls[0].clone());
    std::fs::write(
        &event,
        json!({ "number": 12, "pull_request": pull }).to_string(),
    )
    .unwrap();
    w.hub.with(|s| s.pulls[0]["base"]["ref"] = json!("release"));
    // A malformed policy in the change does not prevent publishing.
    w.repo.write(".claude-reviewer.toml", "version = ");
    let run = w
        .repo
        .reviewer(&[
            "review",
            "branch",
            "--fetch",
            "--no-save",
            "--post",
            "status",
        ])
        .env("CI", "true")
        .env("GITHUB_ACTIONS", "true")
        .env("GITHUB_EVENT_NAME", "pull_request")
        .env("GITHUB_EVENT_PATH", &event)
        .env("GITHUB_API_URL", format!("{}/api/v3", w.hub.server.url()))
        .env("GITHUB_TOKEN", &w.hub.token)
        .run(1);
    assert!(
        run.stderr
            .contains("now targets release, but was reviewed against main"),
        "{}",
        run.stderr
    );
    assert!(w.hub.writes().is_empty());
}
