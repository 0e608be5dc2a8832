//! Judgements that fail, are stopped, or have nothing to judge: they have no verdict, and no earlier
//! report remains.

use super::{
    CODE, ask, changed, contract, criteria, is_about_criteria, judged, judged_as, model, page,
    report, stand, with_world,
};
use crate::loopback::{Reply, Server, Step};
use crate::mcp::client::Client;
use crate::support::{Repo, until};
use claude_reviewer::judge::{JudgeAsk, judge};
use claude_reviewer::stop::{Signal, Stop};
use claude_reviewer::wire::judge::{ErrorKind, JudgeVerdict, QuestionOutcome};
use serde_json::{Value, json};
use std::path::Path;
use std::time::Duration;

#[test]
fn an_earlier_report_never_stands_for_a_run_that_failed() {
    let stale = json!({ "task_id": "T-17", "verdict": "PASS" }).to_string();
    let down = Server::start(|_| Reply::json(400, &json!({ "error": { "message": "no" } })));
    let half = Server::start(|request| match is_about_criteria(request) {
        true => request.text("It looks fine to me."),
        false => request.review(&[]),
    });
    // A rejected request would be rejected again; an unreadable answer may be readable the next
    // time.
    let both = [
        (
            down.policy("openai"),
            false,
            ErrorKind::Backend,
            "A retry will not succeed",
        ),
        (
            half.policy("openai"),
            true,
            ErrorKind::ParseError,
            "A later retry may succeed",
        ),
    ];
    for (policy, retryable, kind, says) in both {
        let repo = changed(&policy, &contract());
        repo.write("_handoff/JUDGE_REPORT.json", &stale)
            .write("_handoff/JUDGE_REPORT.md", "PASS\n");
        let answer = judged(&repo);
        assert_eq!(
            (answer.success, answer.verdict, answer.outcome),
            (false, None, QuestionOutcome::Incomplete)
        );
        assert_eq!(answer.retryable, retryable);
        assert!(answer.error.is_some() && !answer.timed_out);
        assert_eq!(answer.error_kind, Some(kind));
        assert!(
            answer.summary.contains("Do not retry in a loop"),
            "{}",
            answer.summary
        );
        assert!(answer.summary.contains(says), "{}", answer.summary);
        let report = report(&repo);
        assert_eq!(
            (&report["verdict"], &report["success"]),
            (&Value::Null, &json!(false))
        );
        assert!(
            page(&repo).contains("No verdict.") && !page(&repo).contains("PASS"),
            "{}",
            page(&repo)
        );
    }
}

#[test]
fn a_contract_that_cannot_be_used_replaces_an_earlier_report() {
    for (text, why) in [
        ("{\"task_id\": \"T\"}", "no requirements"),
        ("{", "not valid JSON"),
        ("", "not valid JSON"),
    ] {
        let repo = changed("version = 1\n", &contract());
        repo.write("_handoff/TASK_CONTRACT.json", text);
        repo.write("_handoff/JUDGE_REPORT.json", "{\"verdict\": \"PASS\"}");
        let answer = judged(&repo);
        assert_eq!(
            (answer.success, answer.outcome, answer.retryable),
            (false, QuestionOutcome::Error, false)
        );
        assert!(
            answer.error.as_deref().unwrap().contains(why),
            "{:?}",
            answer.error
        );
        assert_eq!(answer.error_kind, Some(ErrorKind::ParseError));
        assert_eq!(
            (&report(&repo)["verdict"], &report(&repo)["error_kind"]),
            (&Value::Null, &json!("parse_error"))
        );
    }
    let repo = changed("version = 1\n", &contract());
    let missing = JudgeAsk {
        report_dir: "made/for/this".into(),
        ..JudgeAsk::new(repo.path(), "no.json".into())
    };
    let answer = judged_as(&repo, &missing);
    assert_eq!(
        (answer.outcome, answer.report_md_path),
        (QuestionOutcome::Error, None)
    );
    assert!(
        !repo.path().join("made").exists(),
        "nothing is made for a contract that is not there"
    );
}

#[test]
fn what_a_provider_writes_does_not_say_when_to_ask_again() {
    let said = "no such model; retry after 987654321 s";
    let down = Server::start(move |_| Reply::json(400, &json!({ "error": { "message": said } })));
    let repo = changed(&down.policy("openai"), &contract());
    let answer = judged(&repo);
    assert!(
        answer.error.as_deref().unwrap().contains("987654321"),
        "{:?}",
        answer.error
    );
    assert_eq!((answer.retryable, answer.retry_after_s), (false, None));

    // The question about the criteria fails for its own reasons.
    let limited = Server::start(|request| match is_about_criteria(request) {
        true => Reply::error_with(429, ("retry-after", "3600"), "rate_limit", "slow down"),
        false => request.review(&[]),
    });
    let answer = judged(&changed(&limited.policy("openai"), &contract()));
    assert_eq!(
        (answer.outcome, answer.retryable, answer.retry_after_s),
        (QuestionOutcome::Incomplete, true, Some(3600))
    );
}

#[test]
fn a_judgement_that_takes_too_long_says_so() {
    let server = Server::start(|_| Reply(vec![Step::Wait(Duration::from_secs(60))]));
    let repo = changed(&server.policy("openai"), &contract());
    let answer = judged_as(
        &repo,
        &JudgeAsk {
            timeout: Duration::from_secs(1),
            ..ask(&repo)
        },
    );
    assert_eq!(
        (answer.success, answer.verdict, answer.timed_out),
        (false, None, true)
    );
    assert!(
        answer
            .error
            .as_deref()
            .unwrap()
            .contains("the time was over (1 s)"),
        "{:?}",
        answer.error
    );
    assert!(answer.duration_ms < 30_000);
    assert_eq!(report(&repo)["timed_out"], true);
}

#[test]
fn mcp_11_a_cancelled_judgement_has_no_verdict() {
    let server = Server::start(|_| Reply(vec![Step::Wait(Duration::from_secs(60))]));
    let repo = changed(&server.policy("openai"), &contract());
    let stop = Stop::default();
    let later = stop.clone();
    // Only after the model was asked.
    let answer = std::thread::scope(|s| {
        s.spawn(|| {
            until("the model is asked", || !server.requests().is_empty());
            later.now(Signal::Interrupt);
        });
        with_world(&repo, &stop, |world| judge(&ask(&repo), world).unwrap())
    });
    assert!(!server.requests().is_empty());
    assert_eq!(
        (answer.verdict, answer.outcome),
        (None, QuestionOutcome::Cancelled)
    );
    assert_eq!(report(&repo)["outcome"], "cancelled");
}

#[test]
fn nothing_to_judge_is_no_pass() {
    let repo = Repo::new();
    let mut contract = contract();
    contract["changed_files"] = json!(["src/gone.rs"]);
    repo.stage("_handoff/TASK_CONTRACT.json", contract.to_string());
    repo.commit("the task alone");
    repo.commit("nothing");
    let answer = judged(&repo);
    assert_eq!(
        (answer.success, answer.verdict, answer.outcome),
        (false, None, QuestionOutcome::NothingToReview)
    );
}

#[test]
fn mcp_06_a_report_folder_or_contract_outside_of_the_root_is_refused() {
    let repo = changed("version = 1\n", &contract());
    std::fs::create_dir(repo.outside()).unwrap();
    std::fs::write(repo.outside().join("C.json"), contract().to_string()).unwrap();
    std::os::unix::fs::symlink(repo.outside(), repo.path().join("link")).unwrap();
    std::os::unix::fs::symlink(repo.outside().join("C.json"), repo.path().join("C.json")).unwrap();
    let outside = repo.outside();
    let dirs: [&Path; 7] = [
        Path::new("../../x"),
        Path::new("../outside"),
        &outside,
        Path::new("link"),
        Path::new("link/deeper"),
        Path::new(".git"),
        Path::new("_handoff/../../outside"),
    ];
    for dir in dirs {
        let ask = JudgeAsk {
            report_dir: dir.to_owned(),
            ..ask(&repo)
        };
        let refused = with_world(&repo, &Stop::default(), |world| judge(&ask, world));
        assert!(refused.is_err(), "{}", dir.display());
    }
    for contract in [
        "C.json",
        "../outside/C.json",
        "/proc/self/environ",
        ".git/config",
        "_handoff",
    ] {
        let ask = JudgeAsk {
            contract: contract.into(),
            ..ask(&repo)
        };
        let answer = judged_as(&repo, &ask);
        assert_eq!(answer.outcome, QuestionOutcome::Error, "{contract}");
    }
    assert_eq!(
        std::fs::read_dir(repo.outside()).unwrap().count(),
        1,
        "nothing was written there"
    );
    assert!(!repo.path().join(".git/JUDGE_REPORT.json").exists());
}

#[test]
fn while_a_judgement_runs_no_earlier_verdict_stands() {
    let repo = Repo::new();
    let (path, stale) = (
        repo.path().join("_handoff/JUDGE_REPORT.json"),
        "{\"verdict\": \"PASS\"}",
    );
    let server = Server::start(move |request| {
        let report: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        assert_eq!(
            (&report["verdict"], &report["success"]),
            (&Value::Null, &json!(false)),
            "killed now, it says so"
        );
        match is_about_criteria(request) {
            true => criteria(request, &[stand("AC1", "met", Some("names.sort();"))]),
            false => request.review(&[]),
        }
    });
    repo.stage(".claude-reviewer.toml", server.policy("openai"));
    repo.commit("first");
    repo.write("src/names.rs", CODE)
        .write("_handoff/TASK_CONTRACT.json", contract().to_string());
    repo.write("_handoff/JUDGE_REPORT.json", stale);
    assert_eq!(judged(&repo).verdict, Some(JudgeVerdict::Pass));
}

#[test]
fn what_a_limit_keeps_from_being_asked_leaves_no_verdict() {
    let server = model(vec![stand("AC1", "met", Some("names.sort();"))], vec![]);
    let policy = server
        .policy("openai")
        .replace("[review]\n", "[review]\nmax_requests = 1\n");
    let repo = changed(&policy, &contract());
    let answer = judged(&repo);
    assert_eq!(
        (answer.verdict, answer.outcome),
        (None, QuestionOutcome::Incomplete)
    );
    assert!(
        answer.error.as_deref().unwrap().contains("max_requests"),
        "{:?}",
        answer.error
    );
}

#[test]
fn mcp_11_a_judgement_that_the_client_cancels_is_recorded_as_that() {
    let server = Server::start(|_| Reply(vec![Step::Wait(Duration::from_secs(60))]));
    let repo = changed(&server.policy("openai"), &contract());
    let mut client = Client::ready(&repo, &[]);
    let arguments = json!({ "contract_path": "_handoff/TASK_CONTRACT.json" });
    let id = client.ask(
        "tools/call",
        json!({ "name": "claude_judge_review", "arguments": arguments }),
    );
    until("the model is asked", || !server.questions().is_empty());
    client.notify("notifications/cancelled", json!({ "requestId": id }));
    until("the judgement is cancelled", || {
        report(&repo)["outcome"] == "cancelled"
    });
    assert_eq!(report(&repo)["verdict"], Value::Null);
    assert_eq!(client.close().code, Some(0));
}
