//! Tests with both ends named in CI: the event still determines the trust, and an empty change is
//! never a pass.

use crate::support::Repo;

fn repo() -> Repo {
    let repo = Repo::new();
    repo.stage("a.py", "x = 1\n").commit("first");
    repo
}

#[test]
fn ci_03_a_range_with_nothing_in_it_is_no_pass_in_ci_though_both_ends_are_named() {
    let repo = repo();
    let branch = ["review", "branch", "HEAD", "--base", "HEAD", "--no-save"];
    repo.reviewer(&branch).run(0);
    for further in [&[][..], &["--fetch"]] {
        let run = repo
            .reviewer(&[&branch[..], further].concat())
            .env("CI", "true")
            .run(2);
        assert!(run.stderr.contains("has no commits that"), "{}", run.stderr);
    }
}

#[test]
fn ci_03_who_gates_in_a_system_that_nobody_knows_passes_nothing_either() {
    let repo = repo();
    repo.git(&[
        "remote",
        "add",
        "origin",
        &repo.path().display().to_string(),
    ]);
    for source in [
        &["review", "branch"][..],
        &["review", "branch", "HEAD", "--base", "HEAD"],
    ] {
        for further in [&[][..], &["--fetch"]] {
            if source.len() == 2 && !further.is_empty() {
                continue;
            }
            let args = [source, &["--no-save"], further].concat();
            repo.reviewer(&args).run(0);
            let run = repo.reviewer(&[&args[..], &["--gate"]].concat()).run(2);
            assert!(run.stderr.contains("has no commits that"), "{}", run.stderr);
        }
    }
}

#[test]
fn ci_05_a_stranger_is_one_though_both_ends_are_named_and_so_is_who_comments() {
    let repo = repo();
    repo.stage("a.py", "x = 2\n").commit("second");
    let event = repo.outside().with_extension("json");
    for (name, payload) in [
        (
            "pull_request_target",
            r#"{"pull_request": {"number": 1, "head": {"sha": "0"}, "base": {"sha": "0"}}}"#,
        ),
        ("issue_comment", r#"{"action": "created"}"#),
    ] {
        std::fs::write(&event, payload).unwrap();
        let args = [
            "review",
            "branch",
            "HEAD",
            "--base",
            "HEAD~1",
            "--no-save",
            "--no-gate",
        ];
        let reviewer = repo
            .reviewer(&args)
            .env("GITHUB_ACTIONS", "true")
            .env("GITHUB_EVENT_NAME", name);
        let run = reviewer.env("GITHUB_EVENT_PATH", &event).run(2);
        assert!(run.stderr.contains("--no-gate lets"), "{}", run.stderr);
    }
}
