//! `status` lists the batches of a repository and cancels them at their providers.

use super::lost::{kill_after_the_receipt, kill_before_the_receipt};
use super::vendor::{CHAT, Kind, RESPONSES, Script};
use super::{Audit, failed, key, notes};
use crate::support::{Run, until};
use serde_json::{Value, json};

/// Runs `status` with further arguments.
#[track_caller]
fn status(audit: &Audit, args: &[&str], code: i32) -> Run {
    let args = [&["status"], args].concat();
    let reviewer = audit.repo.reviewer(&args);
    let reviewer = reviewer.env("ANTHROPIC_API_KEY", key());
    reviewer.env("OPENAI_API_KEY", key()).run(code)
}

/// Returns a script whose batch never ends by itself and has one answer when it is canceled.
fn endless() -> Script {
    Script {
        unfinished: usize::MAX,
        answered_first: 1,
        ..Script::default()
    }
}

/// Kills a run that waits for its batch.
fn killed(audit: &Audit) {
    let mut run = audit.start();
    until("the batch is polled", || audit.vendor.looks() >= 1);
    run.kill().unwrap();
    run.wait().unwrap();
}

#[test]
fn a_batch_is_canceled_while_a_run_waits_for_it_and_its_answers_so_far_are_used_and_paid() {
    for kind in [Kind::Anthropic, CHAT, RESPONSES] {
        let price = "price = { input = 2.0, cached = 2.0, output = 10.0 }\n";
        let audit = Audit::with(kind, endless(), "", price);
        let run = audit.start();
        until("the batch is polled", || audit.vendor.looks() >= 1);
        let id = audit.vendor.batches()[0].id.clone();
        let canceled = status(&audit, &["--cancel-batch", &id], 0);
        assert!(
            canceled.stdout.contains(&format!(
                "batch {id} of {} is being canceled",
                audit.vendor.name()
            )),
            "{}",
            canceled.stdout
        );
        let out = run.wait_with_output().unwrap();
        assert_eq!(out.status.code(), Some(3), "{kind:?}");
        let report: Value = serde_json::from_slice(&out.stdout).unwrap();
        let reasons = failed(&report);
        assert_eq!(reasons.len(), 2, "{reasons:?}");
        assert!(
            reasons
                .iter()
                .all(|(_, why)| why.contains("the batch was canceled"))
        );
        // One answer of 100,000 tokens in and 1,000 out, at half the price.
        let usage = &report["usage"][0];
        let usd = usage["cost_usd"].as_f64().unwrap();
        assert!((usd - 0.105).abs() < 1e-9, "{usd}");
        assert_eq!(
            (&usage["requests"], &usage["failed"]),
            (&3.into(), &2.into())
        );
        // The answer is in the cache: only the canceled requests are submitted again.
        killed_with_lines(&audit, 2);
    }
}

/// Kills a further run after its submission, and checks the number of its requests.
fn killed_with_lines(audit: &Audit, lines: usize) {
    let mut run = audit.start();
    until("the next batch is submitted", || {
        audit.vendor.batches().len() == 2
    });
    run.kill().unwrap();
    run.wait().unwrap();
    assert_eq!(audit.vendor.batches()[1].lines.len(), lines);
}

#[test]
fn a_batch_of_a_run_that_has_ended_is_listed_and_canceled_and_the_next_run_uses_its_answers() {
    for kind in [Kind::Anthropic, CHAT] {
        let audit = Audit::new(kind, endless());
        killed(&audit);
        let id = audit.vendor.batches()[0].id.clone();
        let listed = status(&audit, &[], 0).stdout;
        let name = audit.vendor.name();
        assert!(
            listed.contains(&format!("batch: {id} of {name}, 3 requests, since 2"))
                && listed.contains(&format!("claude-reviewer status --cancel-batch {id}")),
            "{listed}"
        );
        let answer = status(&audit, &["--format", "json"], 0).json();
        assert_eq!(answer["batches"][0]["id"], id.as_str());
        assert_eq!(answer["batches"][0]["requests"], 3);
        status(&audit, &["--cancel-batch", "all"], 0);
        let report = audit.report(&[], 3);
        assert_eq!(failed(&report).len(), 2, "{kind:?}");
        assert_eq!(audit.vendor.batches().len(), 1);
        assert!(audit.records().is_empty());
        let listed = status(&audit, &[], 0).stdout;
        assert!(!listed.contains("batch:"), "{listed}");
    }
}

#[test]
fn a_batch_that_has_ended_cannot_be_canceled_and_the_answer_says_so() {
    for kind in [Kind::Anthropic, CHAT] {
        let script = Script {
            unfinished: 40,
            ..Script::default()
        };
        let audit = Audit::new(kind, script);
        killed(&audit);
        audit.vendor.end_all();
        let canceled = status(&audit, &["--cancel-batch", "all"], 0);
        assert!(canceled.stdout.contains("has ended"), "{}", canceled.stdout);
        let report = audit.report(&[], 0);
        assert_eq!(report["coverage"]["failed"], json!([]));
    }
}

#[test]
fn a_batch_whose_id_was_lost_is_found_before_it_is_canceled() {
    let script = Script {
        withheld: 1,
        ..endless()
    };
    let audit = Audit::new(CHAT, script);
    kill_after_the_receipt(&audit);
    let listed = status(&audit, &[], 0).stdout;
    assert!(
        listed.contains("batch: without an ID of openai"),
        "{listed}"
    );
    status(&audit, &["--cancel-batch", "all"], 0);
    assert!(audit.vendor.batches()[0].canceled_at.is_some());
}

#[test]
fn a_batch_that_may_be_of_another_run_is_canceled_by_its_id_only() {
    let script = Script {
        withheld: 1,
        ..endless()
    };
    let audit = Audit::new(Kind::Anthropic, script);
    kill_after_the_receipt(&audit);
    let refused = status(&audit, &["--cancel-batch", "all"], 3);
    assert!(
        refused.stderr.contains("may be of another run")
            && refused
                .stderr
                .contains("claude-reviewer status --cancel-batch msgbatch_010"),
        "{}",
        refused.stderr
    );
    let token = token(&audit);
    let listed = status(&audit, &[], 0).stdout;
    assert!(
        listed.contains("batch: msgbatch_010 of anthropic, not confirmed, 3 requests")
            && listed.contains(&format!("claude-reviewer status --cancel-batch {token})")),
        "{listed}"
    );
    let answer = status(&audit, &["--format", "json"], 0).json();
    assert_eq!(answer["batches"][0]["is_unproven"], true);
    status(&audit, &["--cancel-batch", &token], 3);
    assert_eq!(audit.vendor.batches()[0].canceled_at, None);
    status(&audit, &["--cancel-batch", "msgbatch_010"], 0);
    assert!(audit.vendor.batches()[0].canceled_at.is_some());
}

/// Returns the name of the only record.
fn token(audit: &Audit) -> String {
    let records = audit.records();
    assert_eq!(records.len(), 1);
    records[0].file_stem().unwrap().to_str().unwrap().to_owned()
}

#[test]
fn a_run_names_the_record_of_a_batch_that_may_be_of_another_run() {
    let script = Script {
        withheld: 1,
        refused_results: 1,
        ..Script::default()
    };
    let audit = Audit::new(Kind::Anthropic, script);
    kill_after_the_receipt(&audit);
    let token = token(&audit);
    let notes = notes(&audit.report(&[], 3));
    assert!(
        notes.contains(&format!("claude-reviewer status --cancel-batch {token} to"))
            && !notes.contains("--cancel-batch msgbatch"),
        "{notes}"
    );
}

#[test]
fn a_batch_that_is_not_listed_keeps_its_record_when_it_is_canceled() {
    for kind in [Kind::Anthropic, CHAT] {
        let script = Script {
            dropped: 1,
            ..Script::default()
        };
        let audit = Audit::new(kind, script);
        kill_before_the_receipt(&audit);
        let token = token(&audit);
        let canceled = status(&audit, &["--cancel-batch", "all"], 0);
        assert!(
            canceled.stdout.contains(&format!(
                "the provider does not list the batch of 3 requests, record {token}: nothing was canceled"
            )),
            "{}",
            canceled.stdout
        );
        assert_eq!(audit.records().len(), 1);
    }
}

#[test]
fn each_batch_that_its_provider_does_not_know_is_named_and_the_command_fails() {
    for kind in [Kind::Anthropic, CHAT] {
        let audit = Audit::new(kind, endless());
        killed(&audit);
        let id = audit.vendor.batches()[0].id.clone();
        let file = &audit.records()[0];
        let mut other: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
        other["token"] = "f".repeat(32).into();
        other["batch_id"] = "second".into();
        other["created"] = (other["created"].as_i64().unwrap() + 1).into();
        let copy = file.with_file_name(format!("{}.json", "f".repeat(32)));
        std::fs::copy(file, &copy).unwrap();
        std::fs::write(&copy, other.to_string()).unwrap();
        audit.vendor.delete_all();
        let name = audit.vendor.name();
        let canceled = status(&audit, &["--cancel-batch", "all"], 3);
        let first = format!("cannot cancel batch {id} of {name}: the provider does not know it");
        let second = format!("cannot cancel batch second of {name}: the provider does not know it");
        assert!(canceled.stderr.contains(&first), "{}", canceled.stderr);
        assert!(canceled.stdout.contains(&second), "{}", canceled.stdout);
    }
}

#[test]
fn what_cannot_be_canceled_is_one_error_that_names_it() {
    let audit = Audit::new(Kind::Anthropic, endless());
    let none = status(&audit, &["--cancel-batch", "all"], 0);
    assert!(
        none.stdout.contains("no batch to cancel"),
        "{}",
        none.stdout
    );
    let unknown = status(&audit, &["--cancel-batch", "msgbatch_x"], 2);
    assert!(
        unknown
            .stderr
            .contains("this repository has no batch msgbatch_x")
            && unknown.stderr.contains("claude-reviewer status"),
        "{}",
        unknown.stderr
    );
    killed(&audit);
    audit.configure("version = 1\n");
    let gone = status(&audit, &["--cancel-batch", "all"], 3);
    assert!(
        gone.stderr
            .contains("no backend of the policy has the address of batch msgbatch_010"),
        "{}",
        gone.stderr
    );
    assert_eq!(audit.vendor.batches()[0].canceled_at, None);
}
