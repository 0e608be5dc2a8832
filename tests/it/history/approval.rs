//! Tests of the effect of a changed policy on a session: no blocking finding is approved because of
//! it.

use crate::support::{Repo, Run, line_with_key};
use serde_json::{Value, json};

const STRICT: &str = "version = 1\n";

/// Creates a repository whose policy is not part of the change, and a session whose first round
/// blocks.
fn blocked() -> Repo {
    let repo = Repo::new();
    repo.write(".git/info/exclude", ".claude-reviewer.toml\n")
        .write(".claude-reviewer.toml", STRICT);
    repo.stage("README.md", "# Sample\n").commit("first");
    repo.write("config.py", format!("a = 1\n{}", line_with_key()));
    repo.review(&["changes"], 1);
    repo
}

fn policy(repo: &Repo, text: &str) {
    repo.write(".claude-reviewer.toml", format!("{STRICT}{text}"));
}

/// Requests a further round and returns its stored form.
#[track_caller]
fn follow(repo: &Repo, code: i32) -> Value {
    repo.review(&["--follow-up", "latest"], code);
    let run = repo
        .reviewer(&["history", "latest", "--format", "json"])
        .run(0);
    let session: Value = serde_json::from_str(&run.stdout).unwrap();
    session["rounds"].as_array().unwrap().last().unwrap()["review"].clone()
}

fn approve(repo: &Repo, more: &[&str], code: i32) -> Run {
    repo.reviewer(&[&["complete", "latest", "--status", "approved"], more].concat())
        .run(code)
}

/// Expects that neither the advice nor the approval passes the session.
#[track_caller]
fn held(repo: &Repo, review: &Value, words: &str) {
    let advice = &review["advice"];
    assert!(
        advice["action"] == "fix" || advice["action"] == "ask_a_person",
        "{advice:#}"
    );
    let refused = approve(repo, &[], 2).stderr;
    for words in [
        words,
        "F1 of round 1 (aws-access-key-id at config.py:2)",
        "--force",
        "--follow-up",
    ] {
        assert!(refused.contains(words), "{words}: {refused}");
    }
    assert!(
        advice["text"]
            .as_str()
            .unwrap()
            .contains("F1 of round 1 (aws-access-key-id at config.py:2)"),
        "{advice:#}"
    );
}

#[test]
fn what_blocked_is_not_approved_because_the_policy_changed() {
    let changes = [
        ("block_on = []\n", "passes only because the policy changed"),
        (
            "[rules]\nseverity = { aws-access-key-id = \"minor\" }\n",
            "passes only because the policy changed",
        ),
        (
            "[[path]]\nglob = \"config.py\"\nblock_on = []\n",
            "passes only because the policy changed",
        ),
        (
            "[rules]\ndisable = [\"aws-access-key-id\"]\n",
            "did not check",
        ),
        ("ignore = [\"config.py\"]\n", "reviewed none of its files"),
    ];
    for (lenient, words) in changes {
        let repo = blocked();
        policy(&repo, lenient);
        // Another file changes too, so that the round reviews one.
        if words.contains("policy") || words.contains("check") {
            repo.write("other.py", "b = 2\n");
        }
        let review = follow(&repo, 0);
        assert!(
            review["verdict"] == "pass" || review["verdict"] == "warn",
            "{lenient}: {review:#}"
        );
        if words.contains("none") {
            assert_ne!(review["advice"]["action"], "complete", "{lenient}");
            assert!(approve(&repo, &[], 2).stderr.contains(words), "{lenient}");
            repo.write("other.py", "b = 2\n");
            held(&repo, &follow(&repo, 0), "did not check");
        } else {
            held(&repo, &review, words);
            // A further round under the same policy does not change that either.
            held(&repo, &follow(&repo, 0), words);
        }
        // With the old policy, the finding is shown again, and it can be fixed.
        policy(&repo, "");
        assert_eq!(follow(&repo, 1)["verdict"], "block", "{lenient}");
        repo.write("config.py", "a = 1\n");
        let review = follow(&repo, 0);
        assert_eq!(
            review["advice"]["action"], "complete",
            "{lenient}: {:#}",
            review["advice"]
        );
        approve(&repo, &[], 0);
    }
}

#[test]
fn a_line_that_is_touched_is_not_mended_while_its_rule_is_off() {
    let repo = blocked();
    policy(&repo, "[rules]\ndisable = [\"aws-access-key-id\"]\n");
    repo.write(
        "config.py",
        format!("a = 1\n{}  # touched\n", line_with_key().trim_end()),
    );
    let review = follow(&repo, 0);
    assert_eq!(
        (&review["since"]["fixed"], &review["since"]["unchecked"]),
        (&json!(0), &json!(1)),
        "{review:#}"
    );
    held(&repo, &review, "and the policy changed since");
}

#[test]
fn what_is_mended_under_a_changed_policy_is_approved() {
    let repo = blocked();
    policy(&repo, "block_on = []\n");
    repo.write("config.py", "a = 1\n");
    assert_eq!(follow(&repo, 0)["advice"]["action"], "complete");
    approve(&repo, &[], 0);
}

#[test]
fn what_a_person_waives_or_forces_is_recorded() {
    let repo = blocked();
    policy(&repo, "block_on = []\n");
    let review = follow(&repo, 0);
    let fingerprint = review["report"]["findings"][0]["fingerprint"]
        .as_str()
        .unwrap()
        .to_owned();
    let refused = approve(&repo, &[], 2).stderr;
    assert!(
        refused.contains(&format!("--waive {fingerprint}=REASON")),
        "{refused}"
    );
    // Follows the hint.
    repo.review(
        &[
            "--follow-up",
            "latest",
            "--waive",
            &format!("{fingerprint}=a sample of the documents"),
        ],
        0,
    );
    approve(&repo, &[], 0);

    let repo = blocked();
    policy(&repo, "block_on = []\n");
    follow(&repo, 0);
    approve(&repo, &["--force"], 0);
    let run = repo
        .reviewer(&["history", "latest", "--format", "json"])
        .run(0);
    let session: Value = serde_json::from_str(&run.stdout).unwrap();
    let entry = &session["completion"]["entries"][0];
    assert_eq!(
        (&entry["forced"], &entry["open"]),
        (&json!(true), &json!([fingerprint])),
        "{entry:#}"
    );
}

#[test]
fn a_round_that_could_look_at_no_file_approves_nothing_that_blocked() {
    let repo = blocked();
    repo.write("logo.bin", [0, 1, 2, 0, 255].repeat(40));
    std::fs::remove_file(repo.path().join("config.py")).unwrap();
    let review = follow(&repo, 0);
    assert_eq!(
        review["report"]["coverage"]["files_reviewed"], 0,
        "{:#}",
        review["report"]["coverage"]
    );
    assert_eq!(
        review["advice"]["action"], "ask_a_person",
        "{:#}",
        review["advice"]
    );
    let refused = approve(&repo, &[], 2).stderr;
    assert!(refused.contains("reviewed none of its files"), "{refused}");
    approve(&repo, &["--force"], 0);
}
