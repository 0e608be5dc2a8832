//! A shared file that cannot be read dismisses nothing.

use super::*;

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
