//! Tests that the file of decisions keeps its comments, that one of several decisions applies, and
//! that lists show its state.

use super::{CODE, SHARED, decide, findings, reviewed, staged, state};
use crate::support::Repo;
use serde_json::json;

fn shared(repo: &Repo) -> String {
    std::fs::read_to_string(repo.path().join(SHARED)).unwrap()
}

#[test]
fn comments_of_people_stay_in_the_shared_file() {
    let repo = reviewed();
    decide(&repo, &["reject", "F1", "--reason", "a test", "--share"]);
    let text = shared(&repo);
    let commented = text
        .replace(
            "version = 1",
            "# Agreed in the team of the web.\nversion = 1",
        )
        .replace("[[disposition]]", "# Ada knows why.\n[[disposition]]")
        .replace(
            "status = \"rejected\"",
            "status = \"rejected\" # until the server moves",
        );
    repo.write(SHARED, format!("{commented}\n# The end.\n"));
    decide(&repo, &["defer", "F1", "--reason", "later", "--share"]);
    let after = shared(&repo);
    for comment in [
        "# Agreed in the team of the web.",
        "# Ada knows why.",
        "# until the server moves",
        "# The end.",
    ] {
        assert_eq!(after.matches(comment).count(), 1, "{comment}: {after}");
    }
    assert!(
        after.contains("# Ada knows why.\n# until the server moves\n[[disposition]]"),
        "{after}"
    );
    assert!(
        after.contains("status = \"deferred\"") && after.ends_with("\n# The end.\n"),
        "{after}"
    );
    // A baseline writes the same file.
    repo.write("more.py", CODE);
    repo.reviewer(&["baseline", "create"]).run(0);
    assert!(
        shared(&repo).contains("# Ada knows why.")
            && shared(&repo).matches("# The end.").count() == 1
    );
}

#[test]
fn an_entry_of_a_day_to_come_does_not_win_over_a_later_decision() {
    let repo = reviewed();
    decide(&repo, &["reject", "F1", "--reason", "a test", "--share"]);
    let text = shared(&repo);
    let created = text.lines().find(|l| l.starts_with("created = ")).unwrap();
    repo.write(SHARED, text.replace(created, "created = \"2999-01-01\""));
    assert_eq!(
        staged(&repo),
        state("pass", "rejected", 1),
        "it is the only one"
    );
    decide(&repo, &["accept", "F1"]);
    assert_eq!(staged(&repo), state("block", "accepted", 0));
}

#[test]
fn findings_that_are_waived_or_suppressed_are_not_pending() {
    let repo = Repo::new();
    repo.stage("README", "Sums.\n").commit("seed");
    let ignored = CODE.replace(
        "    return",
        "    # claude-reviewer: ignore[python-tls-verify-off] a test\n    return",
    );
    repo.stage("web/a.py", CODE).stage("web/b.py", ignored);
    let report = repo.review_json(&["staged"], 1);
    let all = report["findings"].as_array().unwrap();
    let open = all.iter().find(|f| f["suppressed"].is_null()).unwrap()["fingerprint"]
        .as_str()
        .unwrap();
    assert_eq!(
        findings(&repo, &["--status", "pending"])["findings"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
    repo.review_json(&["staged", "--waive", &format!("{open}=agreed")], 0);
    assert_eq!(
        findings(&repo, &["--status", "pending"])["findings"],
        json!([])
    );
    let text = repo.reviewer(&["findings"]).run(0).stdout;
    assert!(
        text.contains(" waived ") && !text.contains("pending"),
        "{text}"
    );
}

#[test]
fn a_check_of_the_baseline_names_the_path_the_rule_and_the_line() {
    let repo = Repo::new();
    repo.stage("old/a.py", CODE)
        .stage("README", "Sums.\n")
        .commit("seed");
    repo.reviewer(&["baseline", "create", "--until", "2999-01-01"])
        .run(0);
    repo.write("old/a.py", "x = 1\n");
    let said = repo.reviewer(&["baseline", "check"]).run(1).stdout;
    let line =
        "does not hold: old/a.py python-tls-verify-off: return requests.get(url, verify=False) (";
    assert!(
        said.contains(line) && said.contains("not found any more, or in other lines; fingerprint "),
        "{said}"
    );
    let expired = shared(&repo).replace("expires = \"2999-01-01\"", "expires = \"2026-01-01\"");
    repo.write(SHARED, expired);
    let said = repo.reviewer(&["baseline", "check"]).run(1).stdout;
    assert!(
        said.contains("(expired on 2026-01-01; fingerprint "),
        "{said}"
    );
}
