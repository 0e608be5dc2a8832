//! Tests of decisions of people on findings: their effect on later reviews, and its limits.

mod bound;
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
fn dsp_02_in_gate_mode_only_the_base_decides_and_a_new_entry_is_one_finding() {
    let repo = reviewed();
    repo.git(&["checkout", "-q", "-b", "topic"]);
    repo.stage("web/other.py", CODE).commit("add run");
    let branch = [
        "review", "branch", "--base", "main", "--gate", "--format", "json",
    ];
    let review =
        || -> Value { serde_json::from_str(&repo.reviewer(&branch).run_any().stdout).unwrap() };
    let rules = |report: &Value| -> Vec<String> {
        let all = report["findings"].as_array().unwrap();
        all.iter()
            .map(|f| {
                format!(
                    "{} {}",
                    f["rule_id"].as_str().unwrap(),
                    f["disposition"].as_str().unwrap()
                )
            })
            .collect()
    };
    let before = review();
    let [one, other] = &rules(&before)[..] else {
        panic!("{before}")
    };
    assert!(one.ends_with(" pending") && one == other, "{before}");
    // The person's own file never counts in gate mode.
    repo.reviewer(&["review", "branch", "--base", "main"])
        .run(1);
    decide(&repo, &["reject", "F1", "F2", "--share"]);
    assert_eq!(rules(&review()), rules(&before));
    // The file in the change does not count either.
    repo.git(&["add", SHARED]);
    repo.commit("reject both");
    let report = review();
    let weakened: Vec<_> = rules(&report)
        .into_iter()
        .filter(|r| r.starts_with("policy-weakened"))
        .collect();
    assert_eq!(weakened, ["policy-weakened pending"], "{report}");
    assert_eq!(
        rules(&report).iter().filter(|r| *r == one).count(),
        2,
        "{report}"
    );
    assert_eq!(report["verdict"], "block");
    // In a local review it counts, without a finding about the file.
    let desk = repo.review_json(&["branch", "--base", "main"], 0);
    assert_eq!(desk["summary"]["dispositioned"], 2, "{desk}");
    // Once it is merged, it counts for the next change.
    repo.git(&["checkout", "-q", "main"]);
    repo.git(&["checkout", "-q", "topic", "--", SHARED]);
    repo.commit("take the decisions");
    repo.git(&["checkout", "-q", "topic"]);
    repo.git(&["rebase", "-q", "main"]);
    let report = review();
    assert_eq!(
        (&report["verdict"], &report["summary"]["dispositioned"]),
        (&json!("pass"), &json!(2)),
        "{report}"
    );
}

#[test]
fn dsp_03_a_broken_file_is_an_error_with_its_line_and_dismisses_nothing() {
    for file in [SHARED, OWN] {
        let repo = reviewed();
        decide(&repo, &["reject", "F1", "--share"]);
        let text = std::fs::read_to_string(repo.path().join(file)).unwrap();
        let broken = text.replace("status = \"rejected\"", "status = \"dismissed\"");
        let line = broken
            .lines()
            .position(|l| l.starts_with("status"))
            .unwrap()
            + 1;
        repo.write(file, &broken);
        for args in [
            &["review", "staged"][..],
            &["accept", "F1", "--share"],
            &["findings"],
        ] {
            let run = repo.reviewer(args).run(2);
            let expected = format!("{file}:{line}: status must be accepted, rejected or deferred");
            assert!(run.stderr.contains(&expected), "{args:?}: {}", run.stderr);
        }
        assert_eq!(
            std::fs::read_to_string(repo.path().join(file)).unwrap(),
            broken,
            "the file stays"
        );
    }
}

/// Returns a repository whose shared file is malformed on `main` at this line, with `topic` checked
/// out.
fn broken_at_the_base() -> (Repo, String, usize) {
    let repo = reviewed();
    repo.git(&["branch", "-M", "main"]);
    decide(&repo, &["reject", "F1", "--share"]);
    let text = std::fs::read_to_string(repo.path().join(SHARED)).unwrap();
    let broken = text.replace("status = \"rejected\"", "status = \"dismissed\"");
    let line = broken
        .lines()
        .position(|l| l.starts_with("status"))
        .unwrap()
        + 1;
    repo.write(".reviews/dispositions.toml", "version = 1\n")
        .stage(SHARED, broken)
        .commit("base");
    repo.git(&["checkout", "-q", "-b", "topic"]);
    (repo, text, line)
}

#[test]
fn dsp_03_a_file_that_is_broken_at_the_merge_base_is_an_error_that_names_commit_and_line() {
    let (repo, _, line) = broken_at_the_base();
    let base = repo
        .git(&["rev-parse", "--short=7", "main"])
        .trim()
        .to_owned();
    repo.stage("note.txt", "x\n").commit("another change");
    let run = repo
        .reviewer(&["review", "branch", "--base", "main", "--gate"])
        .run(2);
    let expected = format!("{SHARED}:{line}: status must be accepted, rejected or deferred");
    assert!(run.stderr.contains(&expected), "{}", run.stderr);
    let commit = run
        .stderr
        .split_once("at the merge base ")
        .unwrap()
        .1
        .split(':')
        .next()
        .unwrap();
    assert!(
        commit.starts_with(&base) || base.starts_with(commit),
        "{base}: {}",
        run.stderr
    );
    assert!(
        run.stderr.contains("hint: correct or remove"),
        "{}",
        run.stderr
    );
}

#[test]
fn dsp_03_a_change_that_repairs_the_file_of_the_base_passes_and_its_entries_do_not_count() {
    let gate = [
        "review", "branch", "--base", "main", "--gate", "--format", "json",
    ];
    let note = |report: &Value| {
        report["notes"]
            .to_string()
            .contains("no decision of the base counts")
    };
    // Without entries, the change passes.
    let (repo, _, line) = broken_at_the_base();
    repo.git(&["rm", "-q", SHARED]);
    repo.commit("remove the decisions");
    let report = repo.reviewer(&gate).run(0).json();
    assert!(report["verdict"] == "pass" && note(&report), "{report}");
    assert!(
        report["notes"]
            .to_string()
            .contains(&format!("{SHARED}:{line}")),
        "{report}"
    );
    // With entries, these are new, and a person must waive them.
    let (repo, text, _) = broken_at_the_base();
    repo.stage(SHARED, &text).commit("repair the decisions");
    let report = repo.reviewer(&gate).run_any().json();
    assert!(
        note(&report) && report["findings"][0]["rule_id"] == "policy-weakened",
        "{report}"
    );
    assert_ne!(report["verdict"], "pass", "{report}");
    // The repaired file does not dismiss other findings of the change.
    let moved = format!("import os\n\n\n{CODE}");
    repo.stage("web/other.py", moved).commit("fetch");
    let report = repo.reviewer(&gate).run(1).json();
    let all = report["findings"].as_array().unwrap();
    assert!(
        all.iter().all(|f| f["disposition"] == "pending") && all.len() == 2,
        "{report}"
    );
    // A file that is still malformed repairs nothing.
    let (repo, text, _) = broken_at_the_base();
    repo.stage(SHARED, text.replace("rejected", "gone"))
        .commit("try to repair");
    repo.reviewer(&gate).run(2);
}

#[test]
fn dsp_03_a_change_that_repairs_the_file_of_the_tip_passes_and_no_decision_counts() {
    let gate = [
        "review", "branch", "--base", "main", "--gate", "--format", "json",
    ];
    let (repo, _, _) = broken_at_the_base();
    // The change branched off before the file was malformed.
    repo.git(&["checkout", "-q", "-B", "topic", "main~1"]);
    repo.stage("README", "Other sums.\n").commit("words");
    let refused = repo.reviewer(&gate).run(2).stderr;
    assert!(refused.contains(SHARED), "{refused}");
    repo.stage(SHARED, "version = 1\n")
        .commit("repair the decisions");
    let report = repo.reviewer(&gate).run(0).json();
    assert!(
        report["notes"]
            .to_string()
            .contains("no decision of the base counts"),
        "{report}"
    );
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
fn a_baseline_defers_what_code_has_and_not_what_is_new() {
    let repo = Repo::new();
    repo.stage("old/a.py", CODE)
        .stage("old/b.py", CODE)
        .stage("README", "Sums.\n")
        .commit("seed");
    let said = repo
        .reviewer(&["baseline", "create", "--until", "2999-01-01"])
        .run(0)
        .stdout;
    assert_eq!(
        said,
        format!("2 findings deferred in {SHARED}; commit the file\n")
    );
    let again = std::fs::read_to_string(repo.path().join(SHARED)).unwrap();
    assert_eq!(
        repo.reviewer(&["baseline", "create"]).run(0).stdout,
        "no findings without an entry\n"
    );
    assert_eq!(
        std::fs::read_to_string(repo.path().join(SHARED)).unwrap(),
        again,
        "the file stays"
    );
    assert_eq!(
        repo.reviewer(&["baseline", "check"]).run(0).stdout,
        "2 entries hold\n"
    );
    repo.git(&["add", SHARED]);
    repo.commit("adopt the gate");
    // A change near the old code, and a move of it, pass; new code does not.
    repo.git(&["checkout", "-q", "-b", "topic"]);
    let gate = |code: i32| {
        repo.review_json(&["branch", "--base", "main", "--gate"], code)["summary"]["dispositioned"]
            .as_u64()
            .unwrap()
    };
    repo.stage(
        "old/a.py",
        format!(
            "import requests\n\n\nif True:\n    {}",
            CODE.replace('\n', "\n    ")
        ),
    )
    .commit("indent");
    assert_eq!(gate(0), 1);
    repo.stage("new.py", CODE).commit("add");
    assert_eq!(gate(1), 1);
    // Entries of missing code are listed, and pruned.
    repo.stage("old/b.py", "x = 1\n");
    let said = repo.reviewer(&["baseline", "check"]).run(1).stdout;
    assert!(
        said.starts_with("1 entry holds\ndoes not hold: ")
            && said.contains("has no entry: new.py:2 "),
        "{said}"
    );
    assert_eq!(
        repo.reviewer(&["baseline", "prune"]).run(0).stdout,
        "1 entry removed\n"
    );
    assert_eq!(
        repo.reviewer(&["baseline", "check", "old/**"])
            .run(0)
            .stdout,
        "1 entry holds\n"
    );
}

#[test]
fn a_baseline_of_some_files_leaves_the_others() {
    let repo = Repo::new();
    repo.stage("old/a.py", CODE)
        .stage("web/b.py", CODE)
        .commit("seed");
    repo.reviewer(&["baseline", "create", "web/**"]).run(0);
    let text = std::fs::read_to_string(repo.path().join(SHARED)).unwrap();
    assert!(
        text.contains("path = \"web/b.py\"") && !text.contains("old/a.py"),
        "{text}"
    );
    // A person's decision does not change.
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
    repo.stage(".claude-reviewer.toml", server.policy("openai"))
        .commit("seed");
    repo.git(&["branch", "base"]);
    repo.git(&["checkout", "-q", "-b", "feature"]);
    repo.stage("run.py", "total = 1\n").commit("the change");
    let review = |more: &[&str]| {
        let args = [
            &[
                "review",
                "branch",
                "--base",
                "base",
                "--doc",
                "DESIGN.md",
                "--format",
                "json",
            ],
            more,
        ]
        .concat();
        let report: Value = serde_json::from_str(&repo.reviewer(&args).run_any().stdout).unwrap();
        let finding = &report["findings"][0];
        assert_eq!(
            (&finding["file"], &finding["category"]),
            (&Value::Null, &json!("missing-requirement")),
            "{report}"
        );
        report["findings"][0]["disposition"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    assert_eq!(review(&[]), "pending");
    decide(&repo, &["reject", "F1", "--reason", "not here", "--share"]);
    assert_eq!(review(&[]), "rejected");
    let shared = std::fs::read_to_string(repo.path().join(SHARED)).unwrap();
    repo.git(&["checkout", "-q", "base"]);
    repo.stage(SHARED, shared).commit("decisions");
    repo.git(&["checkout", "-q", "feature"]);
    repo.git(&["merge", "-q", "--no-edit", "base"]);
    assert_eq!(
        review(&["--gate"]),
        "pending",
        "no content binds the entry to this change"
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

#[test]
fn dsp_02_an_entry_that_a_change_widens_by_hand_is_one_finding() {
    let repo = reviewed();
    decide(&repo, &["defer", "F1", "--until", "2999-01-01", "--share"]);
    repo.git(&["add", SHARED]);
    repo.commit("adopt");
    let text = std::fs::read_to_string(repo.path().join(SHARED)).unwrap();
    let without = |key: &str| -> String {
        text.lines()
            .filter(|l| !l.starts_with(key))
            .map(|l| format!("{l}\n"))
            .collect()
    };
    let other = text.replace(
        "fingerprint = \"",
        "fingerprint = \"0123456789abcdef0123456789abcdef\" # ",
    );
    let changes = [
        ("a later day", text.replace("2999-", "3999-")),
        ("rejected", text.replace("\"deferred\"", "\"rejected\"")),
        ("no digest", without("digest")),
        (
            "another path",
            text.replace("path = \"web/run.py\"", "path = \"**\""),
        ),
        ("another finding", other),
        ("not TOML", format!("{text}x =\n")),
        ("an unknown key", format!("{text}scope = \"all\"\n")),
        (
            "a second entry",
            format!("{text}{}", &text[text.find("\n[[").unwrap()..]),
        ),
        (
            "a newer version",
            text.replace("version = 1", "version = 2"),
        ),
        ("too large", format!("{text}#{}\n", "x".repeat(5 << 20))),
    ];
    for (name, changed) in changes {
        assert_ne!(changed, text, "{name}");
        repo.git(&["checkout", "-q", "-B", "topic", "main"]);
        repo.stage(SHARED, changed).commit(name);
        let report = repo.review_json(&["branch", "--base", "main", "--gate"], 1);
        let rules: Vec<_> = report["findings"]
            .as_array()
            .unwrap()
            .iter()
            .map(|f| f["rule_id"].clone())
            .collect();
        assert_eq!(rules, ["policy-weakened"], "{name}: {report}");
    }
    repo.git(&["checkout", "-q", "-B", "topic", "main"]);
    repo.stage(SHARED, text.replace("2999-", "2998-"))
        .commit("a sooner day");
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
    assert!(
        run.stderr.contains(&format!("{SHARED} is a symbolic link")),
        "{}",
        run.stderr
    );
    // In gate mode, a change that adds the link is a finding, and a base that has it is an error.
    repo.git(&["checkout", "-q", "-b", "topic"]);
    repo.git(&["add", SHARED, "decisions.toml"]);
    repo.git(&["rm", "-q", "--cached", "web/run.py"]);
    repo.commit("link");
    let report = repo.review_json(&["branch", "--base", "main", "--gate"], 1);
    assert!(
        report["findings"].to_string().contains("policy-weakened"),
        "{report}"
    );
    repo.stage("web/run.py", CODE).commit("code");
    let run = repo
        .reviewer(&["review", "branch", "--base", "HEAD~1", "--gate"])
        .run(2);
    assert!(run.stderr.contains("is a symbolic link"), "{}", run.stderr);
}

#[test]
fn a_baseline_is_about_the_shared_file_and_not_about_decisions_of_one_person() {
    let repo = reviewed();
    decide(&repo, &["reject", "F1"]);
    let said = repo.reviewer(&["baseline", "check"]).run(1).stdout;
    assert!(said.contains("has no entry: web/run.py:2 "), "{said}");
    let said = repo.reviewer(&["baseline", "create"]).run(0).stdout;
    assert_eq!(
        said,
        format!("1 finding deferred in {SHARED}; commit the file\n")
    );
    repo.reviewer(&["baseline", "check"]).run(0);
}

#[test]
fn a_baseline_does_not_replace_the_decision_that_a_finding_is_right() {
    let repo = reviewed();
    decide(&repo, &["accept", "F1", "--share"]);
    assert_eq!(
        repo.reviewer(&["baseline", "create"]).run(0).stdout,
        "no findings without an entry\n"
    );
    assert!(
        std::fs::read_to_string(repo.path().join(SHARED))
            .unwrap()
            .contains("\"accepted\"")
    );
}

#[test]
fn a_baseline_is_not_made_until_a_day_that_has_passed() {
    let repo = reviewed();
    let run = repo
        .reviewer(&["baseline", "create", "--until", "2020-01-01"])
        .run(2);
    assert!(
        run.stderr.contains("2020-01-01 is not in the future"),
        "{}",
        run.stderr
    );
    assert!(!repo.path().join(SHARED).exists());
}
