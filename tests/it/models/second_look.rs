//! The second look at claims: which ones a model is asked to dispute, and what the answer changes.

use super::{claim, report, staged};
use crate::loopback::{Request, Server, finding};
use crate::support::Repo;
use serde_json::{Value, json};

#[test]
fn at_depth_thorough_a_claim_that_is_refuted_is_disputed_and_does_not_block() {
    let server = Server::start(|r: &Request| {
        if r.prompt().contains("\"refuted\"") || r.json().to_string().contains("refuted") {
            let quote = "    n / (n - n)";
            let reason = "the divisor is never zero";
            let answer =
                json!({"nonce": r.nonce(), "refuted": true, "reason": reason, "quote": quote});
            return r.text(&answer.to_string());
        }
        r.review(&[claim()])
    });
    let repo = staged(&server, "openai", "depth = \"thorough\"\n");
    let report = report(&repo, &["staged"], 0);
    let f = &report["findings"][0];
    assert_eq!(
        report["findings"].as_array().unwrap().len(),
        1,
        "{report:#}"
    );
    assert_eq!(f["disputed"], "openai: the divisor is never zero", "{f:#}");
    assert_eq!(
        (&f["blocking"], &report["verdict"]),
        (&json!(false), &json!("warn")),
        "{report:#}"
    );
}

#[test]
fn out_10_what_a_rule_found_stays_when_a_model_doubts_it() {
    let server = Server::start(|r: &Request| {
        if r.json().to_string().contains("refuted") {
            let quote = "r = requests.get(url, verify=False)";
            let answer = json!({"nonce": r.nonce(), "refuted": true, "reason": "a false positive", "quote": quote});
            return r.text(&answer.to_string());
        }
        r.review(&[])
    });
    let repo = staged(&server, "openai", "depth = \"thorough\"\n");
    repo.stage(
        "a.py",
        "import requests\nr = requests.get(url, verify=False)\n",
    );
    let report = report(&repo, &["staged"], 1);
    let f = &report["findings"][0];
    assert_eq!(
        (&f["origin"], &f["blocking"]),
        (&json!("rules"), &json!(true)),
        "{report:#}"
    );
    assert_eq!(f["disputed"], "openai: a false positive");
}

/// Returns true if the request asks to dispute one claim, with or without a prescribed form of the
/// answer.
fn puts_back(r: &Request) -> bool {
    r.prompt().contains("You verify one claim")
}

#[test]
fn a_claim_of_every_lens_is_put_back_once_and_the_verdict_holds_for_all_of_them() {
    let server = Server::start(|r: &Request| {
        if puts_back(r) {
            r.verdict(true)
        } else {
            r.review(&[claim()])
        }
    });
    let repo = staged(&server, "openai", "depth = \"thorough\"\n");
    let report = report(&repo, &["staged"], 0);
    assert_eq!(
        server.questions().iter().filter(|r| puts_back(r)).count(),
        1,
        "{report:#}"
    );
    assert_eq!(report["findings"][0]["blocking"], false, "{report:#}");
}

#[test]
fn some_requests_are_kept_for_the_second_look_and_what_was_not_had_is_named() {
    let server = Server::start(|r: &Request| {
        if puts_back(r) {
            r.verdict(false)
        } else {
            r.review(&[claim()])
        }
    });
    let repo = staged(
        &server,
        "openai",
        "depth = \"thorough\"\nmax_files = 1\nmax_requests = 12\n",
    );
    repo.stage("web/other.py", "def f(x):\n    return x\n");
    repo.stage("web/third.py", "def g(x):\n    return x\n");
    report(&repo, &["staged"], 1);
    let asked = server.questions();
    // With 4 lenses, 2 requests each, which omits one file, and at least 2 requests in reserve.
    assert_eq!(
        (asked.len(), asked.iter().filter(|r| puts_back(r)).count()),
        (9, 1)
    );

    let repo = staged(
        &server,
        "openai",
        "depth = \"thorough\"\nmax_requests = 4\n",
    );
    let report = report(&repo, &["staged"], 1);
    let note = report["notes"]
        .as_array()
        .unwrap()
        .iter()
        .find(|n| n.to_string().contains("a second look"))
        .unwrap();
    assert_eq!(
        (&note["file"], &note["line"]),
        (&json!("src/half.rs"), &json!(2)),
        "{report:#}"
    );
}

#[test]
fn mod_02_depth_quick_takes_a_second_look_at_claims_that_would_block() {
    for (severity, refuted, code, requests) in [
        ("major", false, 1, 2),
        ("major", true, 0, 2),
        ("minor", false, 0, 1),
        ("suggestion", false, 0, 1),
    ] {
        let server = Server::start(move |r| {
            if r.is_refutation() {
                return r.verdict(refuted);
            }
            let mut claim = finding("src/a.py", 2, "    return total / count");
            claim["severity"] = json!(severity);
            r.review(&[claim])
        });
        let repo = Repo::new();
        repo.stage(".claude-reviewer.toml", server.policy("openai"))
            .commit("seed");
        repo.stage(
            "src/a.py",
            "def mean(total, count):\n    return total / count\n",
        );
        let run = repo
            .reviewer(&["review", "staged", "--format", "json", "--no-save"])
            .run(code);
        let report: Value = serde_json::from_str(&run.stdout).unwrap();
        assert_eq!(server.questions().len(), requests, "{severity}: {report:#}");
        assert_eq!(report["findings"][0]["severity"], severity);
        assert_eq!(
            report["findings"][0]["disputed"].is_null(),
            !refuted,
            "{report:#}"
        );
    }
}
