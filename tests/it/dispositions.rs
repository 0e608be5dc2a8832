//! Decisions of people on findings: what they change in later reviews, and what they never do.

use crate::loopback::{Server, finding};
use crate::support::{Repo, Run};
use serde_json::{Value, json};

const SHARED: &str = ".claude-reviewer/dispositions.toml";
const OWN: &str = ".reviews/dispositions.toml";
const CODE: &str = "def run(url):\n    return requests.get(url, verify=False)\n";

/// Returns a repository with a staged finding of a rule, reviewed and stored.
fn reviewed() -> Repo {
    let repo = Repo::new();
    repo.stage("README", "Sums.\n").commit("seed");
    repo.stage("web/run.py", CODE);
    let report = repo.review_json(&["staged"], 1);
    assert_eq!(report["findings"].as_array().unwrap().len(), 1, "{report}");
    repo
}

/// Reviews what is staged and returns verdict, disposition of the first finding, and the count.
fn staged(repo: &Repo) -> (String, String, u64) {
    let run = repo.reviewer(&["review", "staged", "--format", "json"]).run_any();
    let report: Value = serde_json::from_str(&run.stdout).unwrap();
    let text = |v: &Value| v.as_str().unwrap_or_default().to_owned();
    let first = text(&report["findings"][0]["disposition"]);
    (text(&report["verdict"]), first, report["summary"]["dispositioned"].as_u64().unwrap())
}

fn state(verdict: &str, disposition: &str, n: u64) -> (String, String, u64) {
    (verdict.to_owned(), disposition.to_owned(), n)
}

fn findings(repo: &Repo, args: &[&str]) -> Value {
    let run = repo.reviewer(&[&["findings", "--format", "json"], args].concat()).run(0);
    serde_json::from_str(&run.stdout).unwrap()
}

fn decide(repo: &Repo, args: &[&str]) -> Run {
    repo.reviewer(args).run(0)
}

#[test]
fn a_rejected_finding_does_not_come_back_and_an_accepted_one_does() {
    let repo = reviewed();
    let said = decide(&repo, &["reject", "F1", "--reason", "a test server"]).stdout;
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(said.starts_with("rejected F1 (") && said.contains("at web/run.py:2"), "{said}");
    assert_eq!(staged(&repo), state("pass", "rejected", 1));
    let text = repo.reviewer(&["review", "staged"]).run(0).stdout;
    assert!(text.contains("1 dispositioned") && !text.contains("a test server"), "{text}");
    let text = repo.reviewer(&["review", "staged", "--show-dispositioned"]).run(0).stdout;
    assert!(text.contains("dispositioned: ") && text.contains("a test server (rejected by "), "{text}");
    decide(&repo, &["accept", "f1"]);
    assert_eq!(staged(&repo), state("block", "accepted", 0));
}

#[test]
fn dsp_01_a_decision_ends_when_the_lines_change_or_at_its_date() {
    let repo = reviewed();
    decide(&repo, &["reject", "F1"]);
    repo.stage("web/run.py", format!("import os\n\n\n{}", CODE.replace("    return", "        return")));
    assert_eq!(staged(&repo), state("pass", "rejected", 1), "moved and indented");
    // The fingerprint is that of the matched call; the rest of the line is not in it.
    repo.stage("web/run.py", CODE.replace("return requests", "yield requests"));
    assert_eq!(staged(&repo), state("block", "pending", 0), "another line");
    repo.stage("web/run.py", CODE);
    assert_eq!(staged(&repo), state("pass", "rejected", 1), "as it was");
    let file = std::fs::read_to_string(repo.path().join(OWN)).unwrap();
    repo.write(OWN, format!("{file}expires = \"2020-01-01\"\n"));
    assert_eq!(staged(&repo), state("block", "pending", 0), "expired");
}

#[test]
fn a_deferred_finding_expires_in_ninety_days_or_at_the_date() {
    let repo = reviewed();
    let said = decide(&repo, &["defer", "F1"]).stdout;
    let date = said.trim().rsplit(' ').next().unwrap().parse::<jiff::civil::Date>().unwrap();
    let today = jiff::Timestamp::now().to_zoned(jiff::tz::TimeZone::UTC).date();
    let days = (date - today).get_days();
    assert!((89..=90).contains(&days), "{said}");
    let said = decide(&repo, &["defer", "F1", "--until", "2999-12-31", "--owner", "The team"]).stdout;
    assert!(said.trim().ends_with("until 2999-12-31"), "{said}");
    let listed = findings(&repo, &["--status", "deferred"]);
    assert_eq!(listed["findings"][0]["decided"], json!({ "reason": "", "owner": "The team", "expires": "2999-12-31" }));
    for (args, message) in [
        (&["defer", "F1", "--until", "2001-01-01"][..], "--until 2001-01-01 is not in the future"),
        (&["defer", "F1", "--until", "tomorrow"], "expected a date such as 2026-01-31"),
        (&["accept", "F1", "--until", "2999-01-01"], "unexpected argument '--until'"),
    ] {
        let run = repo.reviewer(args).run(2);
        assert!(run.stderr.contains(message), "{args:?}: {}", run.stderr);
    }
}

#[test]
fn another_secret_on_the_line_is_pending() {
    let repo = Repo::new();
    repo.stage("README", "Keys.\n").commit("seed");
    repo.stage("app/keys.ini", crate::support::line_with_key());
    let first = repo.review_json(&["staged"], 1);
    decide(&repo, &["reject", "F1", "--reason", "revoked", "--share"]);
    let (verdict, ..) = staged(&repo);
    assert_eq!(verdict, "pass");
    repo.stage("app/keys.ini", crate::support::line_with_another_key());
    let again = repo.review_json(&["staged"], 1);
    assert_eq!(first["findings"][0]["fingerprint"], again["findings"][0]["fingerprint"], "both are masked alike");
    assert_eq!(again["findings"][0]["disposition"], "pending");
    for file in [SHARED, OWN] {
        let text = std::fs::read_to_string(repo.path().join(file)).unwrap();
        for line in [crate::support::line_with_key(), crate::support::line_with_another_key()] {
            assert!(!text.contains(line.trim().rsplit(' ').next().unwrap()), "{file}: {text}");
        }
    }
}

#[test]
fn a_critical_finding_is_not_rejected_without_a_reason() {
    let repo = Repo::new();
    repo.stage("README", "Keys.\n").commit("seed");
    repo.stage("app/keys.ini", crate::support::line_with_key());
    let report = repo.review_json(&["staged"], 1);
    assert_eq!(report["findings"][0]["severity"], "critical");
    for reason in [&[][..], &["--reason", "  "]] {
        let run = repo.reviewer(&[&["reject", "F1"], reason].concat()).run(2);
        assert!(run.stderr.contains("F1 is critical and is not rejected without a reason"), "{}", run.stderr);
    }
    assert!(!repo.path().join(OWN).exists());
    decide(&repo, &["reject", "F1", "--reason", "revoked"]);
    assert_eq!(staged(&repo), state("pass", "rejected", 1));
    // Nor by hand.
    let text = std::fs::read_to_string(repo.path().join(OWN)).unwrap();
    repo.write(OWN, text.replace("reason = \"revoked\"", "reason = \"\""));
    assert_eq!(staged(&repo), state("block", "pending", 0));
}

#[test]
fn a_finding_is_named_by_its_id_or_fingerprint_and_nothing_is_written_for_an_unknown_one() {
    let repo = reviewed();
    let report = repo.review_json(&["staged"], 1);
    let fingerprint = report["findings"][0]["fingerprint"].as_str().unwrap();
    for (args, message) in [
        (&["reject", "F1", "F2"][..], "has no finding \"F2\""),
        (&["reject", "0"], "has no finding \"0\""),
        (&["reject", "F1", "--session", "2020-01-01-001"], "2020-01-01-001"),
        (&["reject", "F1", "--session", "newest"], "invalid review ID"),
        (&["findings", "--status", "open"], "invalid value 'open'"),
    ] {
        let run = repo.reviewer(args).run(2);
        assert!(run.stderr.contains(message), "{args:?}: {}", run.stderr);
        assert!(!repo.path().join(OWN).exists(), "{args:?}");
    }
    decide(&repo, &["reject", &fingerprint[..8].to_uppercase()]);
    assert_eq!(staged(&repo), state("pass", "rejected", 1));
}

#[test]
fn a_finding_whose_lines_changed_since_the_review_is_not_decided_on() {
    let repo = reviewed();
    repo.stage("web/run.py", "def run(url):\n    return 1\n");
    let run = repo.reviewer(&["reject", "F1"]).run(2);
    assert!(run.stderr.contains("the lines of F1 at web/run.py:2 have changed since the review"), "{}", run.stderr);
    assert!(run.stderr.contains("hint: "), "{}", run.stderr);
}

#[test]
fn dsp_02_in_gate_mode_only_the_base_decides_and_a_new_entry_is_one_finding() {
    let repo = reviewed();
    repo.git(&["checkout", "-q", "-b", "topic"]);
    repo.stage("web/other.py", CODE).commit("add run");
    let branch = ["review", "branch", "--base", "main", "--gate", "--format", "json"];
    let review = || -> Value { serde_json::from_str(&repo.reviewer(&branch).run_any().stdout).unwrap() };
    let rules = |report: &Value| -> Vec<String> {
        let all = report["findings"].as_array().unwrap();
        all.iter()
            .map(|f| format!("{} {}", f["rule_id"].as_str().unwrap(), f["disposition"].as_str().unwrap()))
            .collect()
    };
    let before = review();
    let [one, other] = &rules(&before)[..] else { panic!("{before}") };
    assert!(one.ends_with(" pending") && one == other, "{before}");
    // The person's own file never counts there.
    repo.reviewer(&["review", "branch", "--base", "main"]).run(1);
    decide(&repo, &["reject", "F1", "F2", "--share"]);
    assert_eq!(rules(&review()), rules(&before));
    // Nor does that of the change.
    repo.git(&["add", SHARED]);
    repo.commit("reject both");
    let report = review();
    let weakened: Vec<_> = rules(&report).into_iter().filter(|r| r.starts_with("policy-weakened")).collect();
    assert_eq!(weakened, ["policy-weakened pending"], "{report}");
    assert_eq!(rules(&report).iter().filter(|r| *r == one).count(), 2, "{report}");
    assert_eq!(report["verdict"], "block");
    // At the desk it does, without a finding about the file.
    let desk = repo.review_json(&["branch", "--base", "main"], 0);
    assert_eq!(desk["summary"]["dispositioned"], 2, "{desk}");
    // Once it is merged, it counts for the next change.
    repo.git(&["checkout", "-q", "main"]);
    repo.git(&["checkout", "-q", "topic", "--", SHARED]);
    repo.commit("take the decisions");
    repo.git(&["checkout", "-q", "topic"]);
    repo.git(&["rebase", "-q", "main"]);
    let report = review();
    assert_eq!((&report["verdict"], &report["summary"]["dispositioned"]), (&json!("pass"), &json!(2)), "{report}");
}

#[test]
fn dsp_03_a_broken_file_is_an_error_with_its_line_and_dismisses_nothing() {
    for file in [SHARED, OWN] {
        let repo = reviewed();
        decide(&repo, &["reject", "F1", "--share"]);
        let text = std::fs::read_to_string(repo.path().join(file)).unwrap();
        let broken = text.replace("status = \"rejected\"", "status = \"dismissed\"");
        let line = broken.lines().position(|l| l.starts_with("status")).unwrap() + 1;
        repo.write(file, &broken);
        for args in [&["review", "staged"][..], &["accept", "F1", "--share"], &["findings"]] {
            let run = repo.reviewer(args).run(2);
            let expected = format!("{file}:{line}: status must be accepted, rejected or deferred");
            assert!(run.stderr.contains(&expected), "{args:?}: {}", run.stderr);
        }
        assert_eq!(std::fs::read_to_string(repo.path().join(file)).unwrap(), broken, "the file stays");
    }
}

#[test]
fn a_file_of_the_store_that_git_tracks_does_not_count() {
    let repo = reviewed();
    decide(&repo, &["reject", "F1"]);
    repo.git(&["add", "-f", OWN]);
    let report = repo.review_json(&["staged"], 1);
    assert_eq!(report["findings"][0]["disposition"], "pending", "{report}");
    assert!(report["notes"].to_string().contains(".reviews/dispositions.toml is tracked by git"), "{report}");
}

#[test]
fn a_link_in_the_place_of_the_shared_file_is_not_written_through() {
    let repo = reviewed();
    repo.write("../elsewhere.toml", "version = 1\n");
    std::fs::create_dir(repo.path().join(".claude-reviewer")).unwrap();
    std::os::unix::fs::symlink("../../elsewhere.toml", repo.path().join(SHARED)).unwrap();
    let run = repo.reviewer(&["reject", "F1", "--share"]).run(2);
    assert!(run.stderr.contains("is a symbolic link"), "{}", run.stderr);
    assert_eq!(std::fs::read_to_string(repo.path().join("../elsewhere.toml")).unwrap(), "version = 1\n");
    assert!(!repo.path().join(OWN).exists(), "nothing is recorded");
}

#[test]
fn every_format_carries_the_decision() {
    let repo = reviewed();
    decide(&repo, &["defer", "F1", "--reason", "not <now>", "--until", "2999-01-01", "--owner", "Ada"]);
    let format = |name: &str| repo.reviewer(&["review", "staged", "--format", name]).run(0).stdout;
    let sarif: Value = serde_json::from_str(&format("sarif")).unwrap();
    let result = &sarif["runs"][0]["results"][0];
    let suppressions = json!([{
        "kind": "external", "status": "accepted", "justification": "deferred by Ada until 2999-01-01: not <now>"
    }]);
    assert_eq!(result["suppressions"], suppressions, "{sarif}");
    let said = "deferred by Ada until 2999-01-01";
    assert!(format("html").contains(said) && format("junit").contains(said));
    assert!(format("markdown").contains("1 dispositioned"));
    decide(&repo, &["accept", "F1"]);
    let sarif: Value =
        serde_json::from_str(&repo.reviewer(&["review", "staged", "--format", "sarif"]).run(1).stdout).unwrap();
    assert_eq!(sarif["runs"][0]["results"][0]["suppressions"], json!([]), "an accepted finding counts");
}

#[test]
fn findings_lists_the_decisions_and_what_is_fixed() {
    let repo = Repo::new();
    repo.stage("README", "Sums.\n").commit("seed");
    repo.stage("a.py", CODE).stage("b.py", CODE).stage("c/d.py", CODE);
    repo.reviewer(&["review", "staged"]).run(1);
    decide(&repo, &["reject", "F1", "--reason", "a \u{1b}[31mred\u{1b}[0m word"]);
    repo.stage("b.py", "def run(url):\n    return 1\n");
    repo.reviewer(&["review", "staged", "--follow-up", "latest"]).run(1);
    let statuses = |args: &[&str]| -> Vec<String> {
        let listed = findings(&repo, args);
        let one = |f: &Value| format!("{} {}", f["file"].as_str().unwrap(), f["disposition"].as_str().unwrap());
        listed["findings"].as_array().unwrap().iter().map(one).collect()
    };
    assert_eq!(statuses(&[]), ["a.py rejected", "c/d.py pending", "b.py fixed"]);
    assert_eq!(statuses(&["--status", "fixed,rejected"]), ["a.py rejected", "b.py fixed"]);
    assert_eq!(statuses(&["--file", "c/**"]), ["c/d.py pending"]);
    assert_eq!(statuses(&["--severity", "suggestion"]), [""; 0]);
    let text = repo.reviewer(&["findings"]).run(0).stdout;
    assert!(text.contains("rejected") && text.contains("fixed") && !text.contains('\u{1b}'), "{text:?}");
}

#[test]
fn a_rejected_claim_of_a_model_does_not_come_back() {
    let server = Server::start(|r| r.review(&[finding("a.py", 1, "x = 1 / n")]));
    let repo = Repo::new();
    repo.stage(".claude-reviewer.toml", server.policy("openai")).commit("seed");
    repo.stage("a.py", "x = 1 / n\n");
    repo.reviewer(&["review", "staged"]).run(1);
    decide(&repo, &["reject", "F1", "--reason", "n is never 0"]);
    assert_eq!(staged(&repo), state("pass", "rejected", 1));
    let prompts: Vec<String> = server.questions().iter().map(|r| r.prompt()).filter(|p| p.contains("Review")).collect();
    let [first, second] = &prompts[..] else { panic!("{} questions", prompts.len()) };
    assert!(!first.contains("rejected before"), "{first}");
    let listed = crate::fences::only(second, "rejected before");
    assert_eq!(listed, "a.py: x = 1 / n (ai-bug): rejected before: n is never 0\n");
    assert!(second.contains("Do not report them again"), "{second}");
    // It is carried over to a follow-up.
    repo.stage("b.py", "y = 2\n");
    let report = repo.review_json(&["staged", "--follow-up", "latest"], 0);
    assert_eq!(report["findings"][0]["disposition"], "rejected", "{report}");
}

#[test]
fn a_rejected_claim_about_another_line_or_file_is_not_shown_to_the_model() {
    let server = Server::start(|r| r.review(&[finding("a.py", 1, "x = 1 / n")]));
    let repo = Repo::new();
    repo.stage(".claude-reviewer.toml", server.policy("openai")).commit("seed");
    repo.stage("a.py", "x = 1 / n\n");
    repo.reviewer(&["review", "staged"]).run(1);
    decide(&repo, &["reject", "F1"]);
    repo.stage("a.py", "x = 1 // n\n").stage("b.py", "x = 1 / n\n");
    repo.reviewer(&["review", "staged"]).run_any();
    assert!(!server.questions().last().unwrap().prompt().contains("rejected before"));
}

#[test]
fn a_baseline_defers_what_code_has_and_not_what_is_new() {
    let repo = Repo::new();
    repo.stage("old/a.py", CODE).stage("old/b.py", CODE).stage("README", "Sums.\n").commit("seed");
    let said = repo.reviewer(&["baseline", "create", "--until", "2999-01-01"]).run(0).stdout;
    assert_eq!(said, format!("2 findings deferred in {SHARED}; commit the file\n"));
    let again = std::fs::read_to_string(repo.path().join(SHARED)).unwrap();
    assert_eq!(repo.reviewer(&["baseline", "create"]).run(0).stdout, "no findings without an entry\n");
    assert_eq!(std::fs::read_to_string(repo.path().join(SHARED)).unwrap(), again, "the file stays");
    assert_eq!(repo.reviewer(&["baseline", "check"]).run(0).stdout, "2 entries hold\n");
    repo.git(&["add", SHARED]);
    repo.commit("adopt the gate");
    // A change beside the old code, and one that moves it, pass; new code does not.
    repo.git(&["checkout", "-q", "-b", "topic"]);
    let gate = |code: i32| {
        repo.review_json(&["branch", "--base", "main", "--gate"], code)["summary"]["dispositioned"].as_u64().unwrap()
    };
    repo.stage("old/a.py", format!("import requests\n\n\nif True:\n    {}", CODE.replace('\n', "\n    ")))
        .commit("indent");
    assert_eq!(gate(0), 1);
    repo.stage("new.py", CODE).commit("add");
    assert_eq!(gate(1), 1);
    // What is gone is listed, and pruned.
    repo.stage("old/b.py", "x = 1\n");
    let said = repo.reviewer(&["baseline", "check"]).run(1).stdout;
    assert!(said.starts_with("1 entry holds\ndoes not hold: ") && said.contains("has no entry: new.py:2 "), "{said}");
    assert_eq!(repo.reviewer(&["baseline", "prune"]).run(0).stdout, "1 entry removed\n");
    assert_eq!(repo.reviewer(&["baseline", "check", "old/**"]).run(0).stdout, "1 entry holds\n");
}

#[test]
fn a_baseline_of_some_files_leaves_the_others() {
    let repo = Repo::new();
    repo.stage("old/a.py", CODE).stage("web/b.py", CODE).commit("seed");
    repo.reviewer(&["baseline", "create", "web/**"]).run(0);
    let text = std::fs::read_to_string(repo.path().join(SHARED)).unwrap();
    assert!(text.contains("path = \"web/b.py\"") && !text.contains("old/a.py"), "{text}");
    // A decision of a person stays as it is.
    repo.stage("web/b.py", format!("{CODE}\n"));
    repo.stage("web/c.py", CODE);
    repo.reviewer(&["review", "staged"]).run(1);
    decide(&repo, &["reject", "F1", "--reason", "known", "--share"]);
    repo.reviewer(&["baseline", "create"]).run(0);
    let text = std::fs::read_to_string(repo.path().join(SHARED)).unwrap();
    assert_eq!(text.matches("[[disposition]]").count(), 3, "{text}");
    assert!(text.contains("reason = \"known\""), "{text}");
}

#[test]
#[cfg(unix)]
fn dsp_01_a_decision_on_a_whole_file_ends_when_the_file_changes() {
    use std::os::unix::fs::PermissionsExt as _;
    let repo = Repo::new();
    repo.stage("tool.py", "print(1)\n").commit("seed");
    let make_executable = || {
        let mode = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(repo.path().join("tool.py"), mode).unwrap();
        repo.git(&["add", "tool.py"]);
    };
    make_executable();
    let report: Value =
        serde_json::from_str(&repo.reviewer(&["review", "staged", "--format", "json"]).run_any().stdout).unwrap();
    let finding = &report["findings"][0];
    assert_eq!((&finding["rule_id"], &finding["line"]), (&json!("executable-bit"), &Value::Null), "{report}");
    decide(&repo, &["reject", "F1", "--reason", "it is a command"]);
    assert_eq!((staged(&repo).1, staged(&repo).2), ("rejected".to_owned(), 1));
    repo.write("tool.py", "print(2)\n");
    make_executable();
    assert_eq!((staged(&repo).1, staged(&repo).2), ("pending".to_owned(), 0), "the file changed");
}

#[test]
fn dsp_02_in_gate_mode_a_finding_about_the_whole_change_is_not_dismissed() {
    let server = Server::start(|r| match r.is_refutation() {
        true => r.verdict(false),
        false => {
            let mut document = r.document(&[]);
            document["missing_requirements"] = json!([{
                "requirement": "Requests have no timeout.", "severity": "major",
                "reference": "DESIGN.md#Limits: \"Every request has a timeout.\"",
            }]);
            r.text(&document.to_string())
        }
    });
    let repo = Repo::new();
    repo.stage("DESIGN.md", "# Limits\n\nEvery request has a timeout.\n");
    repo.stage(".claude-reviewer.toml", server.policy("openai")).commit("seed");
    repo.git(&["branch", "base"]);
    repo.git(&["checkout", "-q", "-b", "feature"]);
    repo.stage("run.py", "total = 1\n").commit("the change");
    let review = |more: &[&str]| {
        let args = [&["review", "branch", "--base", "base", "--doc", "DESIGN.md", "--format", "json"], more].concat();
        let report: Value = serde_json::from_str(&repo.reviewer(&args).run_any().stdout).unwrap();
        let finding = &report["findings"][0];
        assert_eq!((&finding["file"], &finding["category"]), (&Value::Null, &json!("missing-requirement")), "{report}");
        report["findings"][0]["disposition"].as_str().unwrap().to_owned()
    };
    assert_eq!(review(&[]), "pending");
    decide(&repo, &["reject", "F1", "--reason", "not here", "--share"]);
    assert_eq!(review(&[]), "rejected");
    let shared = std::fs::read_to_string(repo.path().join(SHARED)).unwrap();
    repo.git(&["checkout", "-q", "base"]);
    repo.stage(SHARED, shared).commit("decisions");
    repo.git(&["checkout", "-q", "feature"]);
    repo.git(&["merge", "-q", "--no-edit", "base"]);
    assert_eq!(review(&["--gate"]), "pending", "no content binds the entry to this change");
}

#[test]
fn a_decision_of_this_machine_takes_back_a_shared_one_of_the_same_day() {
    let repo = reviewed();
    decide(&repo, &["reject", "F1", "--reason", "first", "--share"]);
    assert_eq!(staged(&repo), state("pass", "rejected", 1));
    decide(&repo, &["accept", "F1", "--reason", "it is right"]);
    assert_eq!(staged(&repo), state("block", "accepted", 0));
    assert_eq!(findings(&repo, &[])["findings"][0]["decided"]["reason"], "it is right");
    decide(&repo, &["defer", "F1", "--until", "2999-01-01"]);
    assert_eq!(staged(&repo), state("pass", "deferred", 1));
}

#[test]
fn dsp_01_a_decision_holds_for_moved_lines_and_other_line_ends_and_not_for_a_renamed_file() {
    let repo = reviewed();
    decide(&repo, &["reject", "F1"]);
    let moved = format!("import requests\n\n\n{CODE}");
    for text in [moved.clone(), moved.replace('\n', "\r\n"), moved.replace("    ", "\t")] {
        repo.stage("web/run.py", text);
        assert_eq!(staged(&repo), state("pass", "rejected", 1));
    }
    repo.git(&["mv", "web/run.py", "web/fetch.py"]);
    assert_eq!(staged(&repo), state("block", "pending", 0));
}

#[test]
fn dsp_01_a_decision_on_one_of_two_equal_lines_leaves_the_other_one() {
    let repo = Repo::new();
    repo.stage("README", "Sums.\n").commit("seed");
    repo.stage("web/run.py", format!("{CODE}{CODE}"));
    repo.review_json(&["staged"], 1);
    decide(&repo, &["reject", "F1"]);
    let report = repo.review_json(&["staged"], 1);
    let all: Vec<_> = report["findings"].as_array().unwrap().iter().map(|f| f["disposition"].clone()).collect();
    assert_eq!(all, ["rejected", "pending"], "{report}");
}

#[test]
fn dsp_02_an_entry_that_a_change_widens_by_hand_is_one_finding() {
    let repo = reviewed();
    decide(&repo, &["defer", "F1", "--until", "2999-01-01", "--share"]);
    repo.git(&["add", SHARED]);
    repo.commit("adopt");
    let text = std::fs::read_to_string(repo.path().join(SHARED)).unwrap();
    let without =
        |key: &str| -> String { text.lines().filter(|l| !l.starts_with(key)).map(|l| format!("{l}\n")).collect() };
    let other = text.replace("fingerprint = \"", "fingerprint = \"0123456789abcdef0123456789abcdef\" # ");
    let changes = [
        ("a later day", text.replace("2999-", "3999-")),
        ("rejected", text.replace("\"deferred\"", "\"rejected\"")),
        ("no digest", without("digest")),
        ("another path", text.replace("path = \"web/run.py\"", "path = \"**\"")),
        ("another finding", other),
        ("not TOML", format!("{text}x =\n")),
        ("an unknown key", format!("{text}scope = \"all\"\n")),
        ("a second entry", format!("{text}{}", &text[text.find("\n[[").unwrap()..])),
        ("a newer version", text.replace("version = 1", "version = 2")),
        ("too large", format!("{text}#{}\n", "x".repeat(5 << 20))),
    ];
    for (name, changed) in changes {
        assert_ne!(changed, text, "{name}");
        repo.git(&["checkout", "-q", "-B", "topic", "main"]);
        repo.stage(SHARED, changed).commit(name);
        let report = repo.review_json(&["branch", "--base", "main", "--gate"], 1);
        let rules: Vec<_> = report["findings"].as_array().unwrap().iter().map(|f| f["rule_id"].clone()).collect();
        assert_eq!(rules, ["policy-weakened"], "{name}: {report}");
    }
    repo.git(&["checkout", "-q", "-B", "topic", "main"]);
    repo.stage(SHARED, text.replace("2999-", "2998-")).commit("a sooner day");
    repo.review_json(&["branch", "--base", "main", "--gate"], 0);
}

#[test]
fn dsp_03_a_link_in_the_place_of_the_shared_file_is_an_error_and_dismisses_nothing() {
    let repo = reviewed();
    decide(&repo, &["reject", "F1", "--share"]);
    std::fs::remove_file(repo.path().join(OWN)).unwrap();
    std::fs::rename(repo.path().join(SHARED), repo.path().join("decisions.toml")).unwrap();
    std::os::unix::fs::symlink("../decisions.toml", repo.path().join(SHARED)).unwrap();
    let run = repo.reviewer(&["review", "staged"]).run(2);
    assert!(run.stderr.contains(&format!("{SHARED} is a symbolic link")), "{}", run.stderr);
    // In gate mode, the change that brings the link is a finding, and the base that has it is an error.
    repo.git(&["checkout", "-q", "-b", "topic"]);
    repo.git(&["add", SHARED, "decisions.toml"]);
    repo.git(&["rm", "-q", "--cached", "web/run.py"]);
    repo.commit("link");
    let report = repo.review_json(&["branch", "--base", "main", "--gate"], 1);
    assert!(report["findings"].to_string().contains("policy-weakened"), "{report}");
    repo.stage("web/run.py", CODE).commit("code");
    let run = repo.reviewer(&["review", "branch", "--base", "HEAD~1", "--gate"]).run(2);
    assert!(run.stderr.contains("is a symbolic link"), "{}", run.stderr);
}

#[test]
fn a_baseline_is_about_the_shared_file_and_not_about_decisions_of_one_person() {
    let repo = reviewed();
    decide(&repo, &["reject", "F1"]);
    let said = repo.reviewer(&["baseline", "check"]).run(1).stdout;
    assert!(said.contains("has no entry: web/run.py:2 "), "{said}");
    let said = repo.reviewer(&["baseline", "create"]).run(0).stdout;
    assert_eq!(said, format!("1 finding deferred in {SHARED}; commit the file\n"));
    repo.reviewer(&["baseline", "check"]).run(0);
}

#[test]
fn a_baseline_does_not_replace_the_decision_that_a_finding_is_right() {
    let repo = reviewed();
    decide(&repo, &["accept", "F1", "--share"]);
    assert_eq!(repo.reviewer(&["baseline", "create"]).run(0).stdout, "no findings without an entry\n");
    assert!(std::fs::read_to_string(repo.path().join(SHARED)).unwrap().contains("\"accepted\""));
}

#[test]
fn a_baseline_is_not_made_until_a_day_that_has_passed() {
    let repo = reviewed();
    let run = repo.reviewer(&["baseline", "create", "--until", "2020-01-01"]).run(2);
    assert!(run.stderr.contains("--until 2020-01-01 is not in the future"), "{}", run.stderr);
    assert!(!repo.path().join(SHARED).exists());
}

/// Returns the status of each finding of a review, as `file:line disposition`.
fn statuses(report: &Value) -> Vec<String> {
    let one =
        |f: &Value| format!("{}:{} {}", f["file"].as_str().unwrap(), f["line"], f["disposition"].as_str().unwrap());
    report["findings"].as_array().unwrap().iter().map(one).collect()
}

fn gate(repo: &Repo, base: &str) -> Value {
    let args = ["review", "branch", "--base", base, "--gate", "--format", "json"];
    serde_json::from_str(&repo.reviewer(&args).run_any().stdout).unwrap()
}

#[test]
fn dsp_01_in_gate_mode_a_decision_does_not_cover_another_copy_of_its_lines() {
    let decisions: [&[&str]; 2] = [&["reject", "F1", "--reason", "a demo", "--share"], &["baseline", "create"]];
    for decision in decisions {
        let repo = Repo::new();
        repo.stage("README", "Sums.\n").commit("seed");
        repo.stage("web/run.py", CODE);
        repo.reviewer(&["review", "staged"]).run(1);
        decide(&repo, decision);
        repo.git(&["add", SHARED]);
        repo.commit("adopt");
        let new = CODE.replace("run", "serve");
        let indented = format!("class Server:\n    {}", new.trim_end().replace('\n', "\n    "));
        for (name, text, expected) in [
            ("above", format!("{new}\n\n{CODE}"), "web/run.py:2 pending"),
            ("below", format!("{CODE}\n\n{new}"), "web/run.py:6 pending"),
            ("indented, with other line ends", format!("{CODE}\n{indented}").replace('\n', "\r\n"), ""),
            ("moved beside a copy", format!("import requests\n\n{new}\n    # moved\n{CODE}"), "web/run.py:4 pending"),
        ] {
            repo.git(&["checkout", "-q", "-B", "topic", "main"]);
            repo.stage("web/run.py", text).commit(name);
            let report = gate(&repo, "main");
            let all = statuses(&report);
            assert!(!all.is_empty() && all.iter().all(|s| s.ends_with(" pending")), "{name}: {report}");
            assert!(expected.is_empty() || all == [expected], "{name}: {all:?}");
            assert_eq!(report["verdict"], "block", "{name}");
        }
        // The line alone may move.
        repo.git(&["checkout", "-q", "-B", "topic", "main"]);
        repo.stage("web/run.py", format!("import requests\n\n{new}")).commit("rename and move");
        assert_eq!(gate(&repo, "main")["verdict"], "pass");
    }
}

#[test]
fn dsp_01_a_decision_on_one_of_two_equal_lines_does_not_pass_to_the_other_one() {
    let repo = Repo::new();
    repo.stage("README", "Sums.\n").commit("seed");
    let other = CODE.replace("run", "serve");
    let both = format!("{CODE}{other}");
    repo.stage("web/run.py", &both);
    repo.review_json(&["staged"], 1);
    decide(&repo, &["reject", "F1"]);
    assert_eq!(statuses(&repo.review_json(&["staged"], 1)), ["web/run.py:2 rejected", "web/run.py:4 pending"]);
    // Which of them is left is unknown, also where it is the one that was decided on.
    for one in [CODE, &other] {
        repo.stage("web/run.py", one);
        assert_eq!(statuses(&repo.review_json(&["staged"], 1)), ["web/run.py:2 pending"]);
    }
    repo.stage("web/run.py", format!("{both}{}", CODE.replace("run", "third")));
    assert_eq!(statuses(&repo.review_json(&["staged"], 1)).iter().filter(|s| s.ends_with("pending")).count(), 3);
    // A change of the second one alone has one finding, which is the first of its kind in that change.
    repo.stage("web/run.py", &both).commit("both");
    repo.stage("web/run.py", format!("{CODE}{}", other.replace("    return", "        return")));
    assert_eq!(statuses(&repo.review_json(&["staged"], 1)), ["web/run.py:4 pending"]);
    repo.stage("web/run.py", format!("{}{other}", CODE.replace("    return", "        return")));
    assert_eq!(statuses(&repo.review_json(&["staged"], 0)), ["web/run.py:2 rejected"]);
}

#[test]
fn dsp_01_decisions_on_all_equal_lines_hold_for_each_of_them_and_for_fewer() {
    let repo = Repo::new();
    let names = ["one", "two", "three"];
    let code = |names: &[&str]| -> String { names.iter().map(|name| CODE.replace("run", name)).collect() };
    repo.stage("web/run.py", code(&names)).commit("seed");
    decide(&repo, &["baseline", "create"]);
    let text = std::fs::read_to_string(repo.path().join(SHARED)).unwrap();
    assert!(["1 of 3", "2 of 3", "3 of 3"].iter().all(|o| text.contains(&format!("occurrence = \"{o}\""))), "{text}");
    repo.git(&["add", SHARED]);
    repo.commit("adopt");
    for (left, dispositioned) in [(&names[..], 1), (&names[1..], 1), (&names[2..], 1), (&["two", "one"][..], 1)] {
        repo.git(&["checkout", "-q", "-B", "topic", "main"]);
        let text = code(left);
        let (first, last) = text.rsplit_once("    return").unwrap();
        repo.stage("web/run.py", format!("{first}        return{last}")).commit("change the last one");
        let report = gate(&repo, "main");
        assert_eq!((&report["verdict"], &report["summary"]["dispositioned"]), (&json!("pass"), &json!(dispositioned)));
    }
    // All entries stay: they hold together.
    repo.stage("web/run.py", code(&names[1..]));
    assert_eq!(repo.reviewer(&["baseline", "check"]).run(0).stdout, "3 entries hold\n");
    repo.git(&["checkout", "-q", "-f", "-B", "topic", "main"]);
    repo.stage("web/run.py", code(&["one", "two", "three", "four"])).commit("a fourth one");
    assert_eq!(gate(&repo, "main")["verdict"], "block");
}

#[test]
fn dsp_02_an_entry_about_another_occurrence_covers_more() {
    let repo = Repo::new();
    repo.stage("web/run.py", format!("{CODE}{CODE}")).commit("seed");
    decide(&repo, &["baseline", "create"]);
    repo.git(&["add", SHARED]);
    repo.commit("adopt");
    let text = std::fs::read_to_string(repo.path().join(SHARED)).unwrap();
    let without = text.lines().filter(|l| !l.starts_with("occurrence")).map(|l| format!("{l}\n")).collect();
    for changed in [text.replace("1 of 2", "1 of 3"), text.replace("2 of 2", "1 of 2"), without] {
        repo.git(&["checkout", "-q", "-B", "topic", "main"]);
        repo.stage(SHARED, changed).commit("edit");
        let report = gate(&repo, "main");
        assert_eq!(report["findings"][0]["rule_id"], "policy-weakened", "{report}");
    }
    repo.git(&["checkout", "-q", "-B", "topic", "main"]);
    for bad in ["3 of 2", "0 of 1", "all"] {
        repo.write(SHARED, text.replace("1 of 2", bad));
        let line = text.lines().position(|l| l.contains("1 of 2")).unwrap() + 1;
        let run = repo.reviewer(&["review", "staged"]).run(2);
        assert!(run.stderr.contains(&format!("{SHARED}:{line}: occurrence must be two numbers")), "{}", run.stderr);
    }
}

#[test]
fn a_decision_is_not_recorded_on_another_secret_than_the_reviewed_one() {
    let (one, other) = (crate::support::line_with_key(), crate::support::line_with_another_key());
    assert_eq!(one.len(), other.len());
    let around = |key: &str| format!("[prod]\n{key}[end]\n");
    for command in [&["reject", "F1", "--reason", "revoked"][..], &["defer", "F1"], &["accept", "F1"]] {
        for (name, staged, worktree, code) in [
            ("staged and in the worktree", around(&other), around(&other), 2),
            ("another one is staged", around(&other), around(&one), 0),
            ("another one is in the worktree", around(&one), around(&other), 0),
            ("another line of the file", around(&one).replace("end", "last"), around(&one).replace("end", "last"), 2),
        ] {
            let repo = Repo::new();
            repo.stage("README", "Keys.\n").commit("seed");
            repo.stage("app/keys.ini", around(&one));
            repo.review_json(&["staged"], 1);
            repo.stage("app/keys.ini", staged).write("app/keys.ini", worktree);
            let run = repo.reviewer(command).run(code);
            assert_eq!(repo.path().join(OWN).exists(), code == 0, "{name}");
            if code == 2 {
                assert!(run.stderr.contains("app/keys.ini has changed since the review"), "{name}: {}", run.stderr);
                assert!(run.stderr.contains("hint: review again"), "{name}: {}", run.stderr);
            } else if command[0] == "reject" {
                repo.stage("app/keys.ini", around(&other));
                assert_eq!(self::staged(&repo).1, "pending", "{name}");
                repo.stage("app/keys.ini", around(&one));
                assert_eq!(self::staged(&repo).1, "rejected", "{name}");
            }
        }
    }
}

#[test]
fn a_decision_is_not_recorded_on_lines_that_differ_beside_the_quote() {
    let repo = reviewed();
    repo.stage("web/run.py", CODE.replace("return requests", "yield requests"));
    let run = repo.reviewer(&["reject", "F1"]).run(2);
    assert!(run.stderr.contains("the lines of F1 at web/run.py:2 have changed since the review"), "{}", run.stderr);
    // Another line of the file makes no difference where nothing is masked.
    repo.stage("web/run.py", format!("{CODE}\n\nlast = 1\n"));
    decide(&repo, &["reject", "F1"]);
}

#[test]
fn decisions_that_are_shared_at_once_are_all_recorded() {
    let repo = Repo::new();
    repo.stage("README", "Sums.\n").commit("seed");
    for i in 0..8 {
        repo.stage(&format!("web/run{i}.py"), CODE);
    }
    repo.reviewer(&["review", "staged"]).run(1);
    let start = |i: usize| {
        let name = format!("F{}", i + 1);
        let args: &[&str] = if i == 7 { &["baseline", "create"] } else { &["reject", &name, "--share"] };
        repo.reviewer(args).command().stdout(std::process::Stdio::null()).spawn().unwrap()
    };
    let running: Vec<_> = (0..8).map(start).collect();
    for mut one in running {
        assert!(one.wait().unwrap().success());
    }
    let text = std::fs::read_to_string(repo.path().join(SHARED)).unwrap();
    assert_eq!(text.matches("[[disposition]]").count(), 8, "{text}");
    assert_eq!(text.matches("\"rejected\"").count(), 7, "{text}");
    let own = std::fs::read_to_string(repo.path().join(OWN)).unwrap();
    assert_eq!(own.matches("[[disposition]]").count(), 7, "{own}");
}

#[test]
fn pruning_a_baseline_keeps_decisions_that_a_scan_of_the_tree_cannot_check() {
    let repo = Repo::new();
    let test = "def test_sum():\n    assert 1 + 1 == 2\n\n\ndef test_more():\n    assert 2 + 2 == 4\n";
    repo.stage("tests/test_sum.py", test).stage("old.py", CODE).commit("seed");
    decide(&repo, &["baseline", "create", "--until", "2999-01-01"]);
    repo.git(&["checkout", "-q", "-b", "topic"]);
    repo.git(&["rm", "-q", "tests/test_sum.py"]);
    repo.stage("new.py", CODE.replace("run", "serve"));
    let report: Value =
        serde_json::from_str(&repo.reviewer(&["review", "staged", "--format", "json"]).run_any().stdout).unwrap();
    let id = |rule: &str| {
        let all = report["findings"].as_array().unwrap();
        let found = all.iter().find(|f| f["rule_id"] == rule || f["file"] == rule);
        found.unwrap_or_else(|| panic!("{rule}: {report}"))["id"].as_str().unwrap().to_owned()
    };
    decide(&repo, &["defer", &id("test-deleted"), "--until", "2999-01-01", "--reason", "moved", "--share"]);
    decide(&repo, &["reject", &id("new.py"), "--reason", "a test server", "--share"]);
    // What is rejected goes, what is in the baseline goes, and what the tree cannot show stays.
    repo.stage("new.py", "x = 1\n").stage("old.py", "x = 1\n");
    let said = repo.reviewer(&["baseline", "check"]).run(1).stdout;
    assert_eq!(said.matches("does not hold: ").count(), 1, "{said}");
    assert_eq!(repo.reviewer(&["baseline", "prune"]).run(0).stdout, "1 entry removed\n");
    let text = std::fs::read_to_string(repo.path().join(SHARED)).unwrap();
    assert!(text.contains("test-deleted") && text.contains("a test server") && !text.contains("old.py"), "{text}");
    // An entry that has expired holds for nothing, whatever its rule.
    repo.write(SHARED, text.replace("2999-01-01", "2020-01-01"));
    assert_eq!(repo.reviewer(&["baseline", "prune"]).run(0).stdout, "1 entry removed\n");
    let text = std::fs::read_to_string(repo.path().join(SHARED)).unwrap();
    assert!(!text.contains("test-deleted") && text.contains("a test server"), "{text}");
}

#[test]
fn dsp_02_an_entry_that_the_tip_of_the_base_revoked_does_not_open_the_gate() {
    let repo = Repo::new();
    repo.stage("README", "Sums.\n").commit("seed");
    repo.stage("web/run.py", CODE);
    repo.reviewer(&["review", "staged"]).run(1);
    decide(&repo, &["reject", "F1", "--share"]);
    let text = std::fs::read_to_string(repo.path().join(SHARED)).unwrap();
    repo.git(&["rm", "-q", "--cached", "web/run.py"]);
    repo.stage(SHARED, &text).commit("decide");
    repo.git(&["checkout", "-q", "-b", "topic"]);
    repo.stage("web/run.py", CODE).commit("the change");
    assert_eq!(gate(&repo, "main")["verdict"], "pass");
    let other = |from: &str, to: &str| text.replace(from, to);
    let head = text.split("\n[[").next().unwrap().to_owned();
    for (name, at_tip, verdict) in [
        ("kept", format!("{text}# a comment\n"), "pass"),
        ("removed", head, "block"),
        ("accepted", other("\"rejected\"", "\"accepted\""), "block"),
        ("expired", format!("{text}expires = \"2020-01-01\"\n"), "block"),
        ("for a day that is to come", format!("{text}expires = \"2999-01-01\"\n"), "pass"),
        ("about other lines", other("digest = \"scrypt:13:", "digest = \"scrypt:12:"), "block"),
        (
            "about another finding",
            other("fingerprint = \"", "fingerprint = \"0123456789abcdef0123456789abcdef\" # "),
            "block",
        ),
    ] {
        repo.git(&["checkout", "-q", "-f", "-B", "tip", "main"]);
        repo.stage(SHARED, at_tip).commit(name);
        repo.git(&["checkout", "-q", "-f", "topic"]);
        let report = gate(&repo, "tip");
        assert_eq!(report["verdict"], verdict, "{name}: {report}");
    }
    repo.git(&["checkout", "-q", "-f", "-B", "tip", "main"]);
    repo.git(&["rm", "-q", SHARED]);
    repo.commit("drop the file");
    repo.git(&["checkout", "-q", "-f", "topic"]);
    let report = gate(&repo, "tip");
    assert_eq!(report["verdict"], "block", "{report}");
    assert!(report["notes"].to_string().contains("lacks 1 of the decisions at the merge base"), "{report}");
}

#[test]
fn dsp_02_with_two_merge_bases_an_entry_of_one_does_not_open_the_gate() {
    let repo = Repo::new();
    repo.stage("README", "Sums.\n").commit("seed");
    repo.stage("web/run.py", CODE);
    repo.reviewer(&["review", "staged"]).run(1);
    decide(&repo, &["reject", "F1", "--share"]);
    let text = std::fs::read_to_string(repo.path().join(SHARED)).unwrap();
    repo.git(&["rm", "-q", "--cached", "web/run.py"]);
    std::fs::remove_file(repo.path().join("web/run.py")).unwrap();
    for decides in ["one", "other"] {
        // Two branches that were merged into each other have two merge bases; one of them has the entry.
        repo.git(&["checkout", "-q", "-f", "-B", "one", "main"]);
        repo.stage("one.txt", format!("{decides}\n"));
        if decides == "one" {
            repo.stage(SHARED, &text);
        }
        repo.commit("one");
        repo.git(&["checkout", "-q", "-f", "-B", "other", "main"]);
        repo.stage("other.txt", format!("{decides}\n"));
        if decides == "other" {
            repo.stage(SHARED, &text);
        }
        repo.commit("other");
        repo.git(&["checkout", "-q", "-f", "-B", "base", "one"]);
        repo.git(&["merge", "-q", "--no-edit", "other"]);
        repo.git(&["checkout", "-q", "-f", "-B", "topic", "other"]);
        repo.git(&["merge", "-q", "--no-edit", "one"]);
        repo.stage("web/run.py", CODE).commit("the change");
        assert_eq!(repo.git(&["merge-base", "--all", "topic", "base"]).lines().count(), 2);
        let report = gate(&repo, "base");
        assert_eq!(report["verdict"], "block", "{decides}: {report}");
        assert_eq!(report["summary"]["dispositioned"], 0, "{decides}: {report}");
    }
}

#[test]
fn a_pattern_of_a_baseline_that_matches_nothing_is_named_as_such() {
    let repo = reviewed();
    for command in ["create", "check"] {
        let run = repo.reviewer(&["baseline", command, "nope/**"]).run(2);
        assert!(run.stderr.contains("GLOB matches no file: nope/**"), "{}", run.stderr);
        assert!(!run.stderr.contains("--files"), "{}", run.stderr);
    }
}

/// Something in the place of a file of decisions, with the words of its error.
type Strange = (&'static str, fn(&std::path::Path));

const STRANGE: [Strange; 4] = [
    ("is a directory", |path| {
        std::fs::create_dir(path).unwrap();
        std::fs::write(path.join("a.toml"), "version = 1\n").unwrap();
    }),
    ("is not a regular file", |path| {
        // Opening a pipe without a writer waits for one.
        assert!(std::process::Command::new("mkfifo").arg(path).status().unwrap().success());
    }),
    ("is not a regular file", |path| drop(std::os::unix::net::UnixListener::bind(path).unwrap())),
    ("is a symbolic link", |path| std::os::unix::fs::symlink("nowhere.toml", path).unwrap()),
];

#[test]
fn dsp_03_anything_but_a_file_in_its_place_is_an_error_and_keeps_no_command_waiting() {
    for file in [SHARED, OWN] {
        for (what, make) in STRANGE {
            let repo = reviewed();
            let path = repo.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            make(&path);
            let kind = path.symlink_metadata().unwrap().file_type();
            let commands: [&[&str]; 5] = [
                &["review", "staged"],
                &["review", "branch", "--base", "main"],
                &["findings"],
                &["reject", "F1", "--share"],
                &["baseline", "check"],
            ];
            for args in commands {
                // Decisions of one person are no part of a baseline.
                if file == OWN && args[0] == "baseline" {
                    continue;
                }
                let run = repo.reviewer(args).run_any();
                let is_error = matches!(run.code, 2 | 3);
                assert!(is_error && run.stderr.contains(file), "{what} {args:?}: {} {}", run.code, run.stderr);
                assert!(run.stderr.contains("hint: "), "{what} {args:?}: {}", run.stderr);
                if args[0] != "reject" {
                    assert!(run.code == 2 && run.stderr.contains(what), "{what} {args:?}: {}", run.stderr);
                    assert!(run.stderr.contains(&format!("mv {file} {file}.old")), "{what} {args:?}: {}", run.stderr);
                }
            }
            assert_eq!(path.symlink_metadata().unwrap().file_type(), kind, "{what}: it stays");
            std::fs::rename(&path, repo.path().join("moved")).unwrap();
            assert_eq!(staged(&repo).0, "block", "{what}: the hint leads out");
        }
    }
}

#[test]
fn dsp_03_a_link_in_the_place_of_the_folder_is_an_error() {
    let repo = reviewed();
    decide(&repo, &["reject", "F1", "--share"]);
    std::fs::remove_file(repo.path().join(OWN)).unwrap();
    std::fs::rename(repo.path().join(".claude-reviewer"), repo.path().join("elsewhere")).unwrap();
    std::os::unix::fs::symlink("elsewhere", repo.path().join(".claude-reviewer")).unwrap();
    let run = repo.reviewer(&["review", "staged"]).run(2);
    assert!(
        run.stderr.contains(".claude-reviewer is a symbolic link")
            && run.stderr.contains("mv .claude-reviewer .claude-reviewer.old"),
        "{}",
        run.stderr
    );
}

#[test]
fn dsp_03_a_file_that_cannot_be_read_is_an_error() {
    use std::os::unix::fs::PermissionsExt as _;
    if rustix::process::geteuid().is_root() {
        // Nothing is closed to it.
        return;
    }
    let repo = reviewed();
    decide(&repo, &["reject", "F1", "--share"]);
    std::fs::remove_file(repo.path().join(OWN)).unwrap();
    std::fs::set_permissions(repo.path().join(SHARED), std::fs::Permissions::from_mode(0o000)).unwrap();
    let run = repo.reviewer(&["review", "staged"]).run(2);
    assert!(run.stderr.contains(SHARED) && run.stderr.contains("chmod u+r"), "{}", run.stderr);
}

#[test]
fn dsp_03_a_gate_does_not_pass_because_of_something_else_in_the_place_of_the_file() {
    let module = |repo: &Repo| {
        let head = repo.git(&["rev-parse", "HEAD"]).trim().to_owned();
        repo.git(&["update-index", "--add", "--cacheinfo", &format!("160000,{head},{SHARED}")]);
    };
    let folder = |repo: &Repo| {
        repo.stage(&format!("{SHARED}/a.toml"), "version = 1\n");
    };
    let link = |repo: &Repo| {
        std::fs::create_dir_all(repo.path().join(".claude-reviewer")).unwrap();
        std::os::unix::fs::symlink("nowhere.toml", repo.path().join(SHARED)).unwrap();
        repo.git(&["add", SHARED]);
    };
    let makes: [(&str, fn(&Repo)); 3] =
        [("is not a regular file", module), ("is a directory", folder), ("is a symbolic link", link)];
    for (what, make) in makes {
        // At the base: an error.
        let repo = Repo::new();
        repo.stage("README", "demo\n").commit("seed");
        make(&repo);
        repo.commit("base");
        repo.git(&["checkout", "-q", "-b", "topic"]);
        repo.git(&["commit", "-q", "--allow-empty", "-m", "go on"]);
        repo.stage("note.txt", "x\n").commit("a clean change");
        let run = repo.reviewer(&["review", "branch", "--base", "main", "--gate"]).run(2);
        assert!(run.stderr.contains(&format!("{SHARED} {what} in commit ")), "{what}: {}", run.stderr);
        assert!(run.stderr.contains("hint: ") && run.stderr.contains("git log -1 "), "{what}: {}", run.stderr);
        // In the change: a finding.
        let repo = Repo::new();
        repo.stage("README", "demo\n").commit("seed");
        repo.git(&["checkout", "-q", "-b", "topic"]);
        make(&repo);
        repo.commit("change");
        let report =
            repo.reviewer(&["review", "branch", "--base", "main", "--gate", "--format", "json"]).run_any().json();
        assert_ne!(report["verdict"], "pass", "{what}: {report}");
    }
}
