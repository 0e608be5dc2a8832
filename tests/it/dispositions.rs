//! Tests of decisions of people on findings: their effect on later reviews, and its limits.

mod baseline;
mod bound;
mod broken;
mod gate;
mod kept;
mod place;

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

/// Reviews the staged change and returns verdict, disposition of the first finding, and the count.
fn staged(repo: &Repo) -> (String, String, u64) {
    let run = repo
        .reviewer(&["review", "staged", "--format", "json"])
        .run_any();
    let report: Value = serde_json::from_str(&run.stdout).unwrap();
    let text = |v: &Value| v.as_str().unwrap_or_default().to_owned();
    let first = text(&report["findings"][0]["disposition"]);
    (
        text(&report["verdict"]),
        first,
        report["summary"]["dispositioned"].as_u64().unwrap(),
    )
}

fn state(verdict: &str, disposition: &str, n: u64) -> (String, String, u64) {
    (verdict.to_owned(), disposition.to_owned(), n)
}

fn findings(repo: &Repo, args: &[&str]) -> Value {
    let run = repo
        .reviewer(&[&["findings", "--format", "json"], args].concat())
        .run(0);
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
    assert!(
        said.starts_with("rejected F1 (") && said.contains("at web/run.py:2"),
        "{said}"
    );
    assert_eq!(staged(&repo), state("pass", "rejected", 1));
    let text = repo.reviewer(&["review", "staged"]).run(0).stdout;
    assert!(
        text.contains("1 dispositioned") && !text.contains("a test server"),
        "{text}"
    );
    let text = repo
        .reviewer(&["review", "staged", "--show-dispositioned"])
        .run(0)
        .stdout;
    assert!(
        text.contains("dispositioned: ") && text.contains("a test server (rejected by "),
        "{text}"
    );
    decide(&repo, &["accept", "f1"]);
    assert_eq!(staged(&repo), state("block", "accepted", 0));
}

#[test]
fn dsp_01_a_decision_ends_when_the_lines_change_or_at_its_date() {
    let repo = reviewed();
    decide(&repo, &["reject", "F1"]);
    repo.stage(
        "web/run.py",
        format!(
            "import os\n\n\n{}",
            CODE.replace("    return", "        return")
        ),
    );
    assert_eq!(
        staged(&repo),
        state("pass", "rejected", 1),
        "moved and indented"
    );
    // The fingerprint covers the matched call, not the rest of the line.
    repo.stage(
        "web/run.py",
        CODE.replace("return requests", "yield requests"),
    );
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
    let date = said
        .trim()
        .rsplit(' ')
        .next()
        .unwrap()
        .parse::<jiff::civil::Date>()
        .unwrap();
    let today = jiff::Timestamp::now()
        .to_zoned(jiff::tz::TimeZone::UTC)
        .date();
    let days = (date - today).get_days();
    assert!((89..=90).contains(&days), "{said}");
    let said = decide(
        &repo,
        &[
            "defer",
            "F1",
            "--until",
            "2999-12-31",
            "--owner",
            "The team",
        ],
    )
    .stdout;
    assert!(said.trim().ends_with("until 2999-12-31"), "{said}");
    let listed = findings(&repo, &["--status", "deferred"]);
    assert_eq!(
        listed["findings"][0]["decided"],
        json!({ "reason": "", "owner": "The team", "expires": "2999-12-31" })
    );
    for (args, message) in [
        (
            &["defer", "F1", "--until", "2001-01-01"][..],
            "2001-01-01 is not in the future",
        ),
        (
            &["defer", "F1", "--until", "tomorrow"],
            "expected a date such as 2026-01-31",
        ),
        (
            &["accept", "F1", "--until", "2999-01-01"],
            "unexpected argument '--until'",
        ),
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
    assert_eq!(
        first["findings"][0]["fingerprint"], again["findings"][0]["fingerprint"],
        "both are masked alike"
    );
    assert_eq!(again["findings"][0]["disposition"], "pending");
    for file in [SHARED, OWN] {
        let text = std::fs::read_to_string(repo.path().join(file)).unwrap();
        for line in [
            crate::support::line_with_key(),
            crate::support::line_with_another_key(),
        ] {
            assert!(
                !text.contains(line.trim().rsplit(' ').next().unwrap()),
                "{file}: {text}"
            );
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
        assert!(
            run.stderr
                .contains("F1 is critical and is not rejected without a reason"),
            "{}",
            run.stderr
        );
    }
    assert!(!repo.path().join(OWN).exists());
    decide(&repo, &["reject", "F1", "--reason", "revoked"]);
    assert_eq!(staged(&repo), state("pass", "rejected", 1));
    // Editing the file by hand has no effect either.
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
        (
            &["reject", "F1", "--session", "2020-01-01-001"],
            "2020-01-01-001",
        ),
        (
            &["reject", "F1", "--session", "newest"],
            "invalid review ID",
        ),
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
    assert!(
        run.stderr
            .contains("the lines of F1 at web/run.py:2 have changed since the review"),
        "{}",
        run.stderr
    );
    assert!(run.stderr.contains("hint: "), "{}", run.stderr);
}

#[test]
fn a_decision_in_the_store_says_that_the_shared_file_has_another_one() {
    let repo = reviewed();
    decide(
        &repo,
        &[
            "reject",
            "F1",
            "--reason",
            "a test server",
            "--owner",
            "Dana",
            "--share",
        ],
    );
    let same = decide(&repo, &["reject", "F1", "--reason", "fine"]).stdout;
    assert!(!same.contains("still"), "{same}");
    let said = decide(&repo, &["accept", "F1"]).stdout;
    let note = format!(
        "note: {SHARED} still rejects F1 (by Dana), and in gate mode only that file counts\n"
    );
    assert!(said.contains(&note), "{said}");
    let command = said
        .lines()
        .find_map(|l| l.strip_prefix("hint: to change it: claude-reviewer "))
        .unwrap();
    assert!(
        command.starts_with("accept F1 --session ") && command.ends_with(" --share"),
        "{command}"
    );
    let said = decide(&repo, &command.split(' ').collect::<Vec<_>>()).stdout;
    assert!(
        !said.contains("still") && said.contains("to share the decision"),
        "{said}"
    );
    assert!(
        std::fs::read_to_string(repo.path().join(SHARED))
            .unwrap()
            .contains("status = \"accepted\"")
    );
    // The lines of the shared decision have changed, so it is about other lines.
    decide(&repo, &["reject", "F1", "--share"]);
    repo.stage(
        "web/run.py",
        CODE.replace("return requests", "yield requests"),
    );
    repo.review_json(&["staged"], 1);
    let said = decide(&repo, &["accept", "F1"]).stdout;
    assert!(!said.contains("still"), "{said}");
}

#[test]
fn the_columns_of_findings_are_aligned() {
    let repo = Repo::new();
    repo.stage("README", "Sums.\n").commit("seed");
    repo.stage("web/run.py", CODE);
    let rule = repo.review_json(&["staged"], 1)["findings"][0]["rule_id"]
        .as_str()
        .unwrap()
        .to_owned();
    let ignored = CODE.replace(
        "False)",
        &format!("False)  # claude-reviewer: ignore[{rule}] a test server"),
    );
    repo.stage("web/other.py", ignored);
    repo.reviewer(&["review", "staged"]).run(1);
    let text = repo.reviewer(&["findings"]).run(0).stdout;
    let columns: Vec<usize> = text.lines().filter_map(|l| l.find("web/")).collect();
    assert!(
        text.contains(" suppressed  web/other.py") && text.contains(" pending     web/run.py"),
        "{text}"
    );
    assert!(columns.len() == 2 && columns[0] == columns[1], "{text}");
}

#[test]
fn a_file_of_the_store_that_git_tracks_does_not_count() {
    let repo = reviewed();
    decide(&repo, &["reject", "F1"]);
    repo.git(&["add", "-f", OWN]);
    let report = repo.review_json(&["staged"], 1);
    assert_eq!(report["findings"][0]["disposition"], "pending", "{report}");
    assert!(
        report["notes"]
            .to_string()
            .contains(".reviews/dispositions.toml is tracked by git"),
        "{report}"
    );
}

#[test]
fn a_link_in_the_place_of_the_shared_file_is_not_written_through() {
    let repo = reviewed();
    repo.write("../elsewhere.toml", "version = 1\n");
    std::fs::create_dir(repo.path().join(".claude-reviewer")).unwrap();
    std::os::unix::fs::symlink("../../elsewhere.toml", repo.path().join(SHARED)).unwrap();
    let run = repo.reviewer(&["reject", "F1", "--share"]).run(2);
    assert!(run.stderr.contains("is a symbolic link"), "{}", run.stderr);
    assert_eq!(
        std::fs::read_to_string(repo.path().join("../elsewhere.toml")).unwrap(),
        "version = 1\n"
    );
    assert!(!repo.path().join(OWN).exists(), "nothing is recorded");
}

#[test]
fn every_format_carries_the_decision() {
    let repo = reviewed();
    decide(
        &repo,
        &[
            "defer",
            "F1",
            "--reason",
            "not <now>",
            "--until",
            "2999-01-01",
            "--owner",
            "Ada",
        ],
    );
    let format = |name: &str| {
        repo.reviewer(&["review", "staged", "--format", name])
            .run(0)
            .stdout
    };
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
    let sarif: Value = serde_json::from_str(
        &repo
            .reviewer(&["review", "staged", "--format", "sarif"])
            .run(1)
            .stdout,
    )
    .unwrap();
    assert_eq!(
        sarif["runs"][0]["results"][0]["suppressions"],
        json!([]),
        "an accepted finding counts"
    );
}

#[test]
fn findings_lists_the_decisions_and_what_is_fixed() {
    let repo = Repo::new();
    repo.stage("README", "Sums.\n").commit("seed");
    repo.stage("a.py", CODE)
        .stage("b.py", CODE)
        .stage("c/d.py", CODE);
    repo.reviewer(&["review", "staged"]).run(1);
    decide(
        &repo,
        &["reject", "F1", "--reason", "a \u{1b}[31mred\u{1b}[0m word"],
    );
    repo.stage("b.py", "def run(url):\n    return 1\n");
    repo.reviewer(&["review", "staged", "--follow-up", "latest"])
        .run(1);
    let statuses = |args: &[&str]| -> Vec<String> {
        let listed = findings(&repo, args);
        let one = |f: &Value| {
            format!(
                "{} {}",
                f["file"].as_str().unwrap(),
                f["disposition"].as_str().unwrap()
            )
        };
        listed["findings"]
            .as_array()
            .unwrap()
            .iter()
            .map(one)
            .collect()
    };
    assert_eq!(
        statuses(&[]),
        ["a.py rejected", "c/d.py pending", "b.py fixed"]
    );
    assert_eq!(
        statuses(&["--status", "fixed,rejected"]),
        ["a.py rejected", "b.py fixed"]
    );
    assert_eq!(statuses(&["--file", "c/**"]), ["c/d.py pending"]);
    assert_eq!(statuses(&["--severity", "suggestion"]), [""; 0]);
    let text = repo.reviewer(&["findings"]).run(0).stdout;
    assert!(
        text.contains("rejected") && text.contains("fixed") && !text.contains('\u{1b}'),
        "{text:?}"
    );
}

#[test]
fn a_rejected_claim_of_a_model_does_not_come_back() {
    let server = Server::start(|r| r.review(&[finding("a.py", 1, "x = 1 / n")]));
    let repo = Repo::new();
    repo.stage(".claude-reviewer.toml", server.policy("openai"))
        .commit("seed");
    repo.stage("a.py", "x = 1 / n\n");
    repo.reviewer(&["review", "staged"]).run(1);
    decide(&repo, &["reject", "F1", "--reason", "n is never 0"]);
    assert_eq!(staged(&repo), state("pass", "rejected", 1));
    let prompts: Vec<String> = server
        .questions()
        .iter()
        .map(|r| r.prompt())
        .filter(|p| p.contains("Review"))
        .collect();
    let [first, second] = &prompts[..] else {
        panic!("{} questions", prompts.len())
    };
    assert!(!first.contains("rejected before"), "{first}");
    let listed = crate::fences::only(second, "rejected before");
    assert_eq!(
        listed,
        "a.py: x = 1 / n (ai-bug): rejected before: n is never 0\n"
    );
    assert!(second.contains("Do not report them again"), "{second}");
    // A follow-up keeps the decision.
    repo.stage("b.py", "y = 2\n");
    let report = repo.review_json(&["staged", "--follow-up", "latest"], 0);
    assert_eq!(report["findings"][0]["disposition"], "rejected", "{report}");
}

#[test]
fn a_rejected_claim_about_another_line_or_file_is_not_shown_to_the_model() {
    let server = Server::start(|r| r.review(&[finding("a.py", 1, "x = 1 / n")]));
    let repo = Repo::new();
    repo.stage(".claude-reviewer.toml", server.policy("openai"))
        .commit("seed");
    repo.stage("a.py", "x = 1 / n\n");
    repo.reviewer(&["review", "staged"]).run(1);
    decide(&repo, &["reject", "F1"]);
    repo.stage("a.py", "x = 1 // n\n")
        .stage("b.py", "x = 1 / n\n");
    repo.reviewer(&["review", "staged"]).run_any();
    assert!(
        !server
            .questions()
            .last()
            .unwrap()
            .prompt()
            .contains("rejected before")
    );
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
    let report: Value = serde_json::from_str(
        &repo
            .reviewer(&["review", "staged", "--format", "json"])
            .run_any()
            .stdout,
    )
    .unwrap();
    let finding = &report["findings"][0];
    assert_eq!(
        (&finding["rule_id"], &finding["line"]),
        (&json!("executable-bit"), &Value::Null),
        "{report}"
    );
    decide(&repo, &["reject", "F1", "--reason", "it is a command"]);
    assert_eq!(
        (staged(&repo).1, staged(&repo).2),
        ("rejected".to_owned(), 1)
    );
    repo.write("tool.py", "print(2)\n");
    make_executable();
    assert_eq!(
        (staged(&repo).1, staged(&repo).2),
        ("pending".to_owned(), 0),
        "the file changed"
    );
}

#[test]
fn a_decision_of_this_machine_takes_back_a_shared_one_of_the_same_day() {
    let repo = reviewed();
    decide(&repo, &["reject", "F1", "--reason", "first", "--share"]);
    assert_eq!(staged(&repo), state("pass", "rejected", 1));
    decide(&repo, &["accept", "F1", "--reason", "it is right"]);
    assert_eq!(staged(&repo), state("block", "accepted", 0));
    assert_eq!(
        findings(&repo, &[])["findings"][0]["decided"]["reason"],
        "it is right"
    );
    decide(&repo, &["defer", "F1", "--until", "2999-01-01"]);
    assert_eq!(staged(&repo), state("pass", "deferred", 1));
}

#[test]
fn dsp_01_a_decision_holds_for_moved_lines_and_other_line_ends_and_not_for_a_renamed_file() {
    let repo = reviewed();
    decide(&repo, &["reject", "F1"]);
    let moved = format!("import requests\n\n\n{CODE}");
    for text in [
        moved.clone(),
        moved.replace('\n', "\r\n"),
        moved.replace("    ", "\t"),
    ] {
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
    let findings = report["findings"].as_array().unwrap();
    // The second function has the name of the first, which is a finding of its own.
    let of_line = findings
        .iter()
        .filter(|f| f["rule_id"] == findings[0]["rule_id"]);
    let all: Vec<_> = of_line.map(|f| f["disposition"].clone()).collect();
    assert_eq!(all, ["rejected", "pending"], "{report}");
}
