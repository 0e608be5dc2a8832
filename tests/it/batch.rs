//! Tests of `--batch`: the requests of a review go to a provider together, and a run that ends
//! loses none of them.

mod cancel;
mod lost;
mod vendor;

use crate::loopback::{Reply, Server, finding};
use crate::support::{Repo, Reviewer, Run, files_below, until};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use vendor::{Batch, CHAT, Kind, Outcome, RESPONSES, Script, Vendor, answer};

/// Returns a key that is made up, assembled here so that the sources contain none.
fn key() -> String {
    format!("sk-{}", "0".repeat(20))
}

/// A committed repository of three files, one request each, whose user configured a provider.
struct Audit {
    repo: Repo,
    vendor: Vendor,
}

impl Audit {
    fn new(kind: Kind, script: Script) -> Self {
        Self::with(kind, script, "", "")
    }

    /// Creates an audit with more keys of `[review]` and of the backend.
    fn with(kind: Kind, script: Script, review: &str, backend: &str) -> Self {
        let vendor = Vendor::start(kind, script);
        let repo = Repo::new();
        for n in 0..3 {
            repo.stage(
                &format!("src/a{n}.py"),
                format!("def f(items):\n    return items[{n}]\n"),
            );
        }
        repo.commit("files");
        let audit = Self { repo, vendor };
        let api = if kind == RESPONSES {
            "api = \"responses\"\n"
        } else {
            ""
        };
        let policy = audit.vendor.server.policy(audit.vendor.name());
        let policy = policy.replace("[review]\n", &format!("[review]\nmax_files = 1\n{review}"));
        audit.configure(&format!("{policy}{api}retry_delay = \"2ms\"\n{backend}"));
        audit
    }

    /// Writes the user's configuration.
    fn configure(&self, policy: &str) {
        let file = self.repo.home().join(".config/claude-reviewer/config.toml");
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, policy).unwrap();
    }

    /// Prepares a review of the tree in batches.
    fn reviewer(&self, args: &[&str]) -> Reviewer {
        let fixed = ["review", "tree", "--batch", "--format", "json"];
        self.repo
            .reviewer(&[&fixed[..], args].concat())
            .env("ANTHROPIC_API_KEY", key())
            .env("OPENAI_API_KEY", key())
    }

    #[track_caller]
    fn report(&self, args: &[&str], code: i32) -> Value {
        self.reviewer(args).run(code).json()
    }

    /// Starts a review without waiting for it.
    fn start(&self) -> Child {
        let mut command = self.reviewer(&[]).command();
        command.stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().unwrap()
    }

    /// Returns the records of batches in the state folder.
    fn records(&self) -> Vec<PathBuf> {
        let folder = self
            .repo
            .home()
            .join(".local/state/claude-reviewer/batches");
        let mut files = files_below(&folder);
        files.retain(|f| f.extension().is_some_and(|e| e == "json"));
        files
    }

    /// Removes what the provider returned for an earlier run, except the batches.
    fn forget_answers(&self) {
        let _ = std::fs::remove_dir_all(self.repo.home().join(".cache"));
    }
}

/// Returns the reasons of the parts that were not reviewed, by file.
fn failed(report: &Value) -> Vec<(String, String)> {
    let list = report["coverage"]["failed"].as_array().unwrap();
    list.iter()
        .map(|f| {
            let file = f["file"].as_str().unwrap_or_default().to_owned();
            (file, f["reason"].as_str().unwrap().to_owned())
        })
        .collect()
}

/// Returns the notes of a report as one text.
fn notes(report: &Value) -> String {
    report["notes"].to_string()
}

/// Returns a script whose answers report a finding in the second file.
fn with_finding() -> Script {
    Script {
        result: Box::new(|batch: &Batch, i| {
            let found = finding("src/a1.py", 2, "    return items[1]");
            Outcome::Answer(answer(&batch.lines[i].request, &[found]))
        }),
        ..Script::default()
    }
}

/// Returns a script with this outcome for the request about the first file.
fn with_outcome(outcome: fn() -> Outcome) -> Script {
    Script {
        result: Box::new(move |batch: &Batch, i| {
            let request = &batch.lines[i].request;
            match request.files() == ["src/a0.py"] {
                true => outcome(),
                false => Outcome::Answer(answer(request, &[])),
            }
        }),
        ..Script::default()
    }
}

#[test]
fn the_requests_of_a_tree_are_one_batch_and_its_answers_are_ordinary_answers() {
    for kind in [Kind::Anthropic, CHAT, RESPONSES] {
        let audit = Audit::new(kind, with_finding());
        let report = audit.report(&[], 1);
        let batches = audit.vendor.batches();
        // The second one refutes the claim.
        assert_eq!(batches.len(), 2, "{kind:?}");
        assert_eq!(batches[0].lines.len(), 3, "{kind:?}");
        assert!(
            batches[1].lines.iter().all(|l| l.request.is_refutation()),
            "{kind:?}"
        );
        assert_eq!(report["coverage"]["failed"], json!([]), "{kind:?}");
        let findings = report["findings"].as_array().unwrap();
        assert!(
            findings
                .iter()
                .any(|f| f["file"] == "src/a1.py" && f["line"] == 2)
        );
        let usage = &report["usage"][0];
        assert_eq!(usage["batch"], true, "{kind:?}");
        assert_eq!(usage["requests"], 4, "{kind:?}");
        assert_eq!(audit.records(), Vec::<PathBuf>::new(), "{kind:?}");
        // The answers are in the cache: another run asks nothing.
        let again = audit.report(&[], 1);
        assert_eq!(audit.vendor.batches().len(), 2, "{kind:?}");
        assert_eq!(again["usage"][0]["requests"], 0, "{kind:?}");
        assert_eq!(again["usage"][0].get("batch"), None, "{kind:?}");
    }
}

#[test]
fn a_run_that_is_killed_while_it_waits_is_continued_and_submits_nothing_twice() {
    for kind in [Kind::Anthropic, CHAT] {
        let script = Script {
            // The first run sees no end. The later one counts on from its looks.
            unfinished: 40,
            ..Script::default()
        };
        let audit = Audit::new(kind, script);
        let mut run = audit.start();
        until("the batch is polled", || audit.vendor.looks() >= 2);
        run.kill().unwrap();
        run.wait().unwrap();
        let records = audit.records();
        assert_eq!(records.len(), 1);
        let mode = std::fs::metadata(&records[0]).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let text = std::fs::read_to_string(&records[0]).unwrap();
        assert!(!text.contains(&key()) && !text.contains("items["), "{text}");
        let record: Value = serde_json::from_str(&text).unwrap();
        let sent = &audit.vendor.batches()[0];
        assert_eq!(record["batch_id"], sent.id.as_str());
        let recorded: BTreeSet<&str> = record["requests"]
            .as_array()
            .unwrap()
            .iter()
            .map(|r| r["custom_id"].as_str().unwrap())
            .collect();
        let submitted: BTreeSet<&str> = sent.lines.iter().map(|l| l.id.as_str()).collect();
        assert_eq!(recorded, submitted);
        let report = audit.report(&[], 0);
        assert_eq!(audit.vendor.batches().len(), 1, "{kind:?}");
        assert_eq!(report["coverage"]["failed"], json!([]), "{kind:?}");
        assert_eq!(report["usage"][0]["requests"], 3, "{kind:?}");
        assert_eq!(audit.records(), Vec::<PathBuf>::new(), "{kind:?}");
    }
}

#[test]
fn a_changed_tree_continues_the_batch_for_the_unchanged_files_and_submits_the_others() {
    let script = Script {
        unfinished: 40,
        ..Script::default()
    };
    let audit = Audit::new(Kind::Anthropic, script);
    let mut run = audit.start();
    until("the batch is polled", || audit.vendor.looks() >= 2);
    run.kill().unwrap();
    run.wait().unwrap();
    audit
        .repo
        .write("src/a2.py", "def f(items):\n    return items[-1]\n");
    let report = audit.report(&[], 0);
    let batches = audit.vendor.batches();
    assert_eq!(batches.len(), 2);
    assert_eq!(batches[1].lines.len(), 1);
    assert_eq!(batches[1].lines[0].request.files(), ["src/a2.py"]);
    assert_eq!(report["coverage"]["failed"], json!([]));
}

#[test]
fn a_submission_whose_answer_was_lost_is_found_by_its_metadata() {
    let script = Script {
        submitted: Some(
            Reply::raw(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n".to_vec())
                .then(crate::loopback::Step::Close),
        ),
        ..Script::default()
    };
    let audit = Audit::new(CHAT, script);
    let report = audit.report(&[], 0);
    assert_eq!(audit.vendor.batches().len(), 1);
    assert_eq!(report["coverage"]["failed"], json!([]));
}

/// A function that makes the result of a request.
type MakeOutcome = fn() -> Outcome;

#[test]
fn a_request_that_failed_in_the_batch_is_one_failed_part_and_the_others_count() {
    let cases: [(MakeOutcome, &str); 4] = [
        (
            || Outcome::Error("invalid_request_error", "wrong \u{1b}[31m shape"),
            "wrong",
        ),
        (|| Outcome::Expired, "expired"),
        (|| Outcome::Canceled, "canceled"),
        (|| Outcome::Missing, "no result"),
    ];
    for kind in [Kind::Anthropic, CHAT, RESPONSES] {
        for (outcome, reason) in cases {
            let audit = Audit::new(kind, with_outcome(outcome));
            let report = audit.report(&[], 3);
            let failed = failed(&report);
            assert_eq!(failed.len(), 1, "{kind:?} {reason}: {report:#}");
            assert_eq!(failed[0].0, "src/a0.py");
            assert!(failed[0].1.contains(reason), "{kind:?}: {failed:?}");
            assert!(!failed[0].1.contains('\u{1b}'));
            let usage = &report["usage"][0];
            assert_eq!(
                (&usage["requests"], &usage["failed"]),
                (&3.into(), &1.into())
            );
            // The failed part is submitted again by the next run, and only that.
            audit.report(&[], 3);
            let batches = audit.vendor.batches();
            assert_eq!((batches.len(), batches[1].lines.len()), (2, 1));
        }
    }
}

#[test]
fn an_openai_batch_that_expired_or_was_cancelled_counts_with_the_results_it_has() {
    for ended in ["expired", "cancelled"] {
        let script = Script {
            ended,
            ..with_outcome(|| Outcome::Expired)
        };
        let audit = Audit::new(CHAT, script);
        let failed = failed(&audit.report(&[], 3));
        assert_eq!(failed.len(), 1, "{failed:?}");
        assert_eq!(failed[0].0, "src/a0.py");
    }
    let script = Script {
        ended: "failed",
        ..Script::default()
    };
    let failed = failed(&Audit::new(CHAT, script).report(&[], 3));
    assert_eq!(failed.len(), 3);
    assert!(
        failed.iter().all(
            |(_, why)| why.contains("rejected the batch: line 1 is") && !why.contains('\u{1b}')
        ),
        "{failed:?}"
    );
}

#[test]
fn hostile_results_make_their_parts_fail_and_nothing_else() {
    type Change = fn(&Batch, String) -> Vec<u8>;
    let cases: [(&str, Change, usize, &str); 6] = [
        (
            "each result twice",
            |_, lines| format!("{lines}{lines}").into_bytes(),
            3,
            "several results",
        ),
        (
            "results of other requests",
            |batch, lines| {
                let first = &batch.lines[0].id;
                lines.replace(first, "foreign").into_bytes()
            },
            1,
            "no result",
        ),
        (
            "rubbish between the lines",
            |_, lines| format!("\u{0}rubbish\n[]\n{{\n\n{lines}null").into_bytes(),
            0,
            "",
        ),
        ("no results", |_, _| Vec::new(), 3, "no result"),
        (
            "bytes that are not text",
            |_, _| vec![0xff; 1000],
            3,
            "no result",
        ),
        ("an endless line", |_, _| vec![b'x'; 12 << 20], 3, "exceed"),
    ];
    for kind in [Kind::Anthropic, CHAT] {
        for (what, results, count, reason) in &cases {
            let script = Script {
                results: Box::new(*results),
                ..Script::default()
            };
            let audit = Audit::new(kind, script);
            let code = if *count == 0 { 0 } else { 3 };
            let report = audit.report(&[], code);
            let failed = failed(&report);
            assert_eq!(failed.len(), *count, "{kind:?} {what}: {failed:?}");
            assert!(
                failed.iter().all(|(_, why)| why.contains(reason)),
                "{kind:?} {what}: {failed:?}"
            );
        }
    }
}

#[test]
fn the_key_goes_to_no_other_host_than_that_of_the_backend() {
    let other = Server::start(|_| Reply::json(200, &json!({})));
    let script = Script {
        results_url: Some(format!("{}/v1/messages/batches/x/results", other.url())),
        ..Script::default()
    };
    let audit = Audit::new(Kind::Anthropic, script);
    let report = audit.report(&[], 0);
    assert_eq!(report["coverage"]["failed"], json!([]));
    assert_eq!(other.connections(), 0);
}

#[test]
fn an_id_that_would_change_the_address_is_rejected() {
    for id in ["../../x", "a/b", "a?b", ""] {
        let script = Script {
            submitted: Some(Reply::json(
                200,
                &json!({ "id": id, "type": "message_batch", "processing_status": "in_progress" }),
            )),
            ..Script::default()
        };
        let audit = Audit::new(Kind::Anthropic, script);
        let failed = failed(&audit.report(&[], 3));
        assert!(
            failed.len() == 3 && failed.iter().all(|(_, why)| why.contains("no valid ID")),
            "{failed:?}"
        );
        assert_eq!(audit.vendor.looks(), 0);
    }
}

#[test]
fn a_batch_costs_half_and_the_report_says_so() {
    let price = "price = { input = 2.0, cached = 2.0, output = 10.0 }\n";
    let audit = Audit::with(Kind::Anthropic, Script::default(), "", price);
    let report = audit.report(&[], 0);
    let usage = &report["usage"][0];
    // 300,000 tokens in and 3,000 out.
    assert_eq!(usage["input_tokens"], 300_000);
    let usd = usage["cost_usd"].as_f64().unwrap();
    assert!((usd - 0.315).abs() < 1e-9, "{usd}");
    audit.forget_answers();
    let args = ["review", "tree", "--batch"];
    let run = audit
        .repo
        .reviewer(&args)
        .env("ANTHROPIC_API_KEY", key())
        .run(0);
    assert!(
        run.stdout.contains("$0.32 (batch)") || run.stdout.contains("$0.31 (batch)"),
        "{}",
        run.stdout
    );
}

#[test]
fn the_budget_holds_for_the_half_price() {
    let price = "price = { input = 2.0, cached = 2.0, output = 10.0 }\n";
    // Each request reserves its prompt and up to 16,000 tokens of answer: at half the price $0.08.
    let audit = Audit::with(
        Kind::Anthropic,
        Script::default(),
        "max_cost_usd = 0.3\n",
        price,
    );
    audit.report(&[], 0);
    assert_eq!(audit.vendor.batches()[0].lines.len(), 3);
    // A request that does not fit beside the others waits for their end.
    let audit = Audit::with(
        Kind::Anthropic,
        Script::default(),
        "max_cost_usd = 0.11\n",
        price,
    );
    let report = audit.report(&[], 3);
    let batches = audit.vendor.batches();
    assert!(batches[0].lines.len() < 3, "{report:#}");
    let limit = "max_cost_usd = 0.11";
    assert!(
        failed(&report).iter().any(|(_, why)| why.contains(limit)),
        "{report:#}"
    );
}

#[test]
fn an_interrupted_run_says_that_the_batch_goes_on_and_the_next_one_continues_it() {
    let script = Script {
        unfinished: 40,
        ..Script::default()
    };
    let audit = Audit::new(CHAT, script);
    let run = audit.start();
    until("the batch is polled", || audit.vendor.looks() >= 2);
    let pid = rustix::process::Pid::from_child(&run);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let out = run.wait_with_output().unwrap();
    assert_eq!(out.status.code(), Some(130));
    let run = Run {
        code: 130,
        stdout: String::from_utf8(out.stdout).unwrap(),
        stderr: String::from_utf8(out.stderr).unwrap(),
    };
    let report = run.json();
    assert_eq!(report["verdict"], "incomplete");
    let notes = notes(&report);
    assert!(
        notes.contains("batch batch_0 of openai is not finished"),
        "{notes}"
    );
    assert!(notes.contains("--batch again"), "{notes}");
    audit.report(&[], 0);
    assert_eq!(audit.vendor.batches().len(), 1);
}

#[test]
fn at_the_deadline_the_review_is_incomplete_and_the_batch_is_kept() {
    let script = Script {
        unfinished: usize::MAX,
        ..Script::default()
    };
    let audit = Audit::new(Kind::Anthropic, script);
    let report = audit.report(&["--timeout", "2s"], 3);
    let failed = failed(&report);
    assert!(
        failed.len() == 3
            && failed
                .iter()
                .all(|(_, why)| why.contains("run the same command again")),
        "{failed:?}"
    );
    let notes = report["notes"].to_string();
    assert!(
        notes.contains("claude-reviewer review tree --batch --resume"),
        "{notes}"
    );
    assert_eq!(audit.records().len(), 1);
}

#[test]
fn results_that_the_provider_refuses_once_are_read_by_the_next_run() {
    let script = Script {
        refused_results: 1,
        ..Script::default()
    };
    let audit = Audit::new(Kind::Anthropic, script);
    let report = audit.report(&[], 3);
    assert_eq!(failed(&report).len(), 3, "{report:#}");
    let notes = report["notes"].to_string();
    assert!(notes.contains("its results were not read"), "{notes}");
    assert_eq!(audit.records().len(), 1);
    audit.report(&[], 0);
    assert_eq!(audit.vendor.batches().len(), 1);
    assert_eq!(audit.records(), Vec::<PathBuf>::new());
}

#[test]
fn two_runs_do_not_wait_for_the_same_batches_at_once() {
    let script = Script {
        unfinished: usize::MAX,
        ..Script::default()
    };
    let audit = Audit::new(CHAT, script);
    let mut run = audit.start();
    until("the batch is polled", || audit.vendor.looks() >= 1);
    let report = audit.report(&[], 3);
    let reasons = failed(&report);
    assert!(
        reasons.len() == 3
            && reasons
                .iter()
                .all(|(_, why)| why.contains("another run waits for batches")),
        "{reasons:?}"
    );
    run.kill().unwrap();
    run.wait().unwrap();
    assert_eq!(audit.vendor.batches().len(), 1);
}

#[test]
fn a_server_that_fails_for_a_while_is_asked_again_after_the_pause_it_names() {
    let script = Script {
        busy: 6,
        ..Script::default()
    };
    let audit = Audit::new(Kind::Anthropic, script);
    let report = audit.report(&[], 0);
    assert_eq!(report["coverage"]["failed"], json!([]));
    assert_eq!(audit.vendor.batches().len(), 1);
}

#[test]
fn what_cannot_be_in_a_batch_is_a_usage_error() {
    let audit = Audit::new(Kind::Anthropic, Script::default());
    audit.repo.stage("src/new.py", "x = 1\n");
    for source in [
        &["review", "staged", "--batch"][..],
        &["review", "--batch"],
        &["review", "changes", "--batch"],
        &["review", "tree", "--history", "--batch"],
    ] {
        let run = audit.repo.reviewer(source).run(2);
        assert!(run.stderr.contains("--batch needs"), "{}", run.stderr);
        assert!(run.stderr.contains("claude-reviewer review tree --batch"));
    }
    for (name, kind) in [
        ("google", "google"),
        ("claude", "claude"),
        ("openrouter", "openai"),
    ] {
        let args = ["review", "tree", "--batch", "--backend", name];
        let run = audit.repo.reviewer(&args).run(2);
        let text = format!("backend {name} has no batch interface");
        assert!(run.stderr.contains(&text), "{kind}: {}", run.stderr);
        assert!(
            run.stderr.contains("kinds anthropic and openai"),
            "{}",
            run.stderr
        );
    }
    audit.configure("version = 1\n");
    let run = audit.repo.reviewer(&["review", "tree", "--batch"]).run(2);
    assert!(
        run.stderr.contains("--batch is for models"),
        "{}",
        run.stderr
    );
    assert_eq!(audit.vendor.server.requests().len(), 0);
}

#[test]
fn a_thorough_batch_offers_no_tools_and_each_lens_is_in_the_first_batch() {
    let audit = Audit::with(CHAT, Script::default(), "depth = \"thorough\"\n", "");
    audit.report(&[], 0);
    let first = &audit.vendor.batches()[0];
    assert!(first.lines.len() > 3, "{}", first.lines.len());
    for line in &first.lines {
        assert_eq!(line.request.json().get("tools"), None);
    }
    assert_eq!(audit.records(), Vec::<PathBuf>::new());
}
