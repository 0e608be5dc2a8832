//! Batches whose submission a run did not survive: the next run finds them at the provider.

use super::vendor::{CHAT, Kind, Script};
use super::{Audit, failed, notes};
use crate::support::until;
use serde_json::{Value, json};
use std::path::PathBuf;

/// Kills a run with SIGKILL after the provider has accepted its submission and before it has
/// answered.
pub(super) fn kill_after_the_receipt(audit: &Audit) {
    let mut run = audit.start();
    until("the batch is submitted", || {
        audit.vendor.batches().len() == 1
    });
    run.kill().unwrap();
    run.wait().unwrap();
    let records = audit.records();
    assert_eq!(records.len(), 1);
    let record: Value = serde_json::from_slice(&std::fs::read(&records[0]).unwrap()).unwrap();
    assert_eq!(record["batch_id"], Value::Null);
}

/// Returns an audit whose first run was killed after the provider had accepted its batch.
fn with_a_lost_batch(kind: Kind) -> Audit {
    let script = Script {
        withheld: 1,
        ..Script::default()
    };
    let audit = Audit::new(kind, script);
    kill_after_the_receipt(&audit);
    audit
}

/// Kills a run while its submission is on the way to a provider that does not accept it.
pub(super) fn kill_before_the_receipt(audit: &Audit) {
    let mut run = audit.start();
    until("the submission is sent", || {
        let requests = audit.vendor.server.requests();
        let is_sent = |path: &str| path.ends_with("/batches");
        requests
            .iter()
            .any(|r| r.method == "POST" && is_sent(&r.path))
    });
    run.kill().unwrap();
    run.wait().unwrap();
    assert_eq!(audit.records().len(), 1);
}

/// Returns the content of the first record.
fn record(audit: &Audit) -> Value {
    serde_json::from_slice(&std::fs::read(&audit.records()[0]).unwrap()).unwrap()
}

/// Returns the lines of the first batch.
fn lines(audit: &Audit) -> Vec<super::vendor::Line> {
    audit.vendor.batches()[0].lines.clone()
}

#[test]
fn a_kill_between_the_receipt_of_a_submission_and_its_record_loses_no_batch_and_pays_once() {
    for kind in [Kind::Anthropic, CHAT] {
        for has_ended in [false, true] {
            let audit = with_a_lost_batch(kind);
            if has_ended {
                audit.vendor.end_all();
            }
            let report = audit.report(&[], 0);
            assert_eq!(audit.vendor.batches().len(), 1, "{kind:?} {has_ended}");
            assert_eq!(report["coverage"]["failed"], json!([]));
            assert_eq!(report["usage"][0]["requests"], 3);
            assert_eq!(audit.records(), Vec::<PathBuf>::new());
        }
    }
}

#[test]
fn a_submission_that_did_not_arrive_is_submitted_by_the_next_run_with_a_note() {
    for kind in [Kind::Anthropic, CHAT] {
        let script = Script {
            dropped: 1,
            ..Script::default()
        };
        let audit = Audit::new(kind, script);
        kill_before_the_receipt(&audit);
        let report = audit.report(&[], 0);
        assert_eq!(audit.vendor.batches().len(), 1, "{kind:?}");
        let notes = notes(&report);
        assert!(
            notes.contains("the provider does not list it") && !notes.contains("paid twice"),
            "{notes}"
        );
        assert_eq!(audit.records(), Vec::<PathBuf>::new());
    }
}

#[test]
fn the_record_of_an_earlier_version_is_continued() {
    let audit = with_a_lost_batch(CHAT);
    let file = &audit.records()[0];
    let mut record: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    let fields = record.as_object_mut().unwrap();
    assert!(fields.remove("backend").is_some() && fields.remove("is_unproven").is_some());
    std::fs::write(file, record.to_string()).unwrap();
    audit.report(&[], 0);
    assert_eq!(audit.vendor.batches().len(), 1);
}

#[test]
fn a_lost_batch_is_found_on_a_later_page_of_the_list() {
    for kind in [Kind::Anthropic, CHAT] {
        let script = Script {
            withheld: 1,
            page: 2,
            ..Script::default()
        };
        let audit = Audit::new(kind, script);
        kill_after_the_receipt(&audit);
        let lines = lines(&audit);
        for name in ["foreign_a", "foreign_b", "foreign_c", "foreign_d"] {
            audit.vendor.add_foreign(name, &lines[..2], false);
        }
        audit.report(&[], 0);
        assert_eq!(audit.vendor.batches().len(), 5, "{kind:?}");
    }
}

#[test]
fn results_show_which_of_several_ended_batches_is_the_lost_one() {
    let audit = with_a_lost_batch(Kind::Anthropic);
    let lines = lines(&audit);
    audit.vendor.add_foreign("foreign_a", &lines, false);
    audit.vendor.add_foreign("foreign_b", &lines, false);
    audit.vendor.end_all();
    let report = audit.report(&[], 0);
    assert_eq!(audit.vendor.batches().len(), 3);
    assert_eq!(report["coverage"]["failed"], json!([]));
}

#[test]
fn several_matching_batches_without_results_are_one_error_with_a_hint_and_nothing_is_paid_twice() {
    let script = Script {
        withheld: 1,
        unfinished: 40,
        ..Script::default()
    };
    let audit = Audit::new(Kind::Anthropic, script);
    kill_after_the_receipt(&audit);
    audit.vendor.add_foreign("foreign_a", &lines(&audit), false);
    let before = audit.vendor.server.requests().len();
    let report = audit.report(&[], 3);
    // The list is read once, and not for each request.
    assert_eq!(audit.vendor.server.requests().len(), before + 1);
    let record = audit.records()[0].display().to_string();
    for (_, why) in failed(&report) {
        let names = why.contains("foreign_a") && why.contains("msgbatch_010");
        assert!(
            names && why.contains("2 batches of 3 requests can each be"),
            "{why}"
        );
        assert!(why.contains(&format!("rm {record}")), "{why}");
    }
    assert_eq!(failed(&report).len(), 3);
    assert_eq!(audit.vendor.batches().len(), 2);
    audit.vendor.end_all();
    audit.report(&[], 0);
    assert_eq!(audit.vendor.batches().len(), 2);
    assert_eq!(audit.records(), Vec::<PathBuf>::new());
}

#[test]
fn a_batch_that_turns_out_to_be_of_another_run_is_given_up_and_the_next_run_submits() {
    let script = Script {
        dropped: 1,
        ..Script::default()
    };
    let other = Audit::new(Kind::Anthropic, Script::default());
    other.report(&[], 0);
    let audit = Audit::new(Kind::Anthropic, script);
    kill_before_the_receipt(&audit);
    audit.vendor.add_foreign("foreign_a", &lines(&other), false);
    let report = audit.report(&[], 3);
    let reasons = failed(&report);
    assert!(
        reasons.len() == 3
            && reasons
                .iter()
                .all(|(_, why)| { why.contains("foreign_a of anthropic has other requests") }),
        "{reasons:?}"
    );
    assert_eq!(audit.vendor.batches().len(), 1);
    audit.report(&[], 0);
    assert_eq!(audit.vendor.batches().len(), 2);
}

#[test]
fn a_list_that_cannot_be_read_is_one_error_with_a_hint_and_the_next_run_asks_again() {
    for kind in [Kind::Anthropic, CHAT] {
        let script = Script {
            withheld: 1,
            unlisted: 1,
            ..Script::default()
        };
        let audit = Audit::new(kind, script);
        kill_after_the_receipt(&audit);
        let report = audit.report(&[], 3);
        let reasons = failed(&report);
        assert!(
            reasons.len() == 3
                && reasons.iter().all(|(_, why)| {
                    why.contains("it is not known whether the batch exists") && why.contains("rm ")
                }),
            "{reasons:?}"
        );
        assert_eq!(audit.vendor.batches().len(), 1, "{kind:?}");
        audit.report(&[], 0);
        assert_eq!(audit.vendor.batches().len(), 1, "{kind:?}");
    }
}

/// Creates a lost batch, an unfinished one of the same size, and a record of another repository of
/// the same user that waits for the latter. Returns the file of that record.
fn with_a_batch_of_another_record(is_unproven: bool) -> (Audit, PathBuf) {
    let audit = with_a_lost_batch(Kind::Anthropic);
    audit.vendor.add_foreign("foreign_a", &lines(&audit), false);
    let file = &audit.records()[0];
    let mut record = record(&audit);
    record["batch_id"] = "foreign_a".into();
    record["is_unproven"] = is_unproven.into();
    record["token"] = "f".repeat(32).into();
    let other = file.parent().unwrap().with_file_name("0".repeat(24));
    std::fs::create_dir(&other).unwrap();
    let private = std::os::unix::fs::PermissionsExt::from_mode(0o700);
    std::fs::set_permissions(&other, private).unwrap();
    let copy = other.join(format!("{}.json", "f".repeat(32)));
    std::fs::copy(file, &copy).unwrap();
    std::fs::write(&copy, record.to_string()).unwrap();
    (audit, copy)
}

#[test]
fn a_batch_that_another_record_has_is_not_taken_for_the_lost_one() {
    let (audit, copy) = with_a_batch_of_another_record(false);
    audit.report(&[], 0);
    assert_eq!(audit.vendor.batches().len(), 2);
    assert!(copy.exists());
}

#[test]
fn a_batch_that_another_record_only_may_have_can_be_the_lost_one() {
    let (audit, _) = with_a_batch_of_another_record(true);
    let report = audit.report(&[], 3);
    let reasons = failed(&report);
    assert!(
        reasons.len() == 3 && { reasons.iter() }
            .all(|(_, why)| why.contains("2 batches of 3 requests can each")),
        "{reasons:?}"
    );
    assert_eq!(audit.vendor.batches().len(), 2);
}

#[test]
fn of_many_ended_batches_those_nearest_to_the_record_are_read() {
    let audit = with_a_lost_batch(Kind::Anthropic);
    let lines = lines(&audit);
    for n in 0..40 {
        audit
            .vendor
            .add_foreign(&format!("foreign_{n}"), &lines, true);
    }
    audit.vendor.end_all();
    audit.vendor.postpone_foreign(600);
    audit.report(&[], 0);
    assert_eq!(audit.vendor.batches().len(), 41);
}

#[test]
fn a_run_that_ended_before_the_upload_of_the_file_was_recorded_submitted_no_batch() {
    let script = Script {
        dropped: 1,
        ..Script::default()
    };
    let audit = Audit::new(CHAT, script);
    kill_before_the_receipt(&audit);
    let mut record = record(&audit);
    record["file_id"] = Value::Null;
    std::fs::write(&audit.records()[0], record.to_string()).unwrap();
    audit.report(&[], 0);
    let requests = audit.vendor.server.requests();
    let is_list = |path: &str| path.starts_with("/v1/batches?");
    assert!(!requests.iter().any(|r| is_list(&r.path)));
    assert_eq!(audit.vendor.batches().len(), 1);
    assert_eq!(audit.records(), Vec::<PathBuf>::new());
}

#[test]
fn a_lost_batch_that_is_not_found_keeps_the_records_of_the_used_ones() {
    let audit = with_a_lost_batch(Kind::Anthropic);
    let lines = lines(&audit);
    // The lost batch has one request, and two unfinished ones can each be it.
    let mut record = record(&audit);
    record["requests"].as_array_mut().unwrap().truncate(1);
    std::fs::write(&audit.records()[0], record.to_string()).unwrap();
    audit.vendor.add_foreign("foreign_a", &lines[..1], false);
    audit.vendor.add_foreign("foreign_b", &lines[..1], false);
    let report = audit.report(&[], 3);
    assert_eq!(failed(&report).len(), 1, "{report:#}");
    assert_eq!(audit.vendor.batches()[3].lines.len(), 2);
    assert_eq!(audit.records().len(), 2);
}
