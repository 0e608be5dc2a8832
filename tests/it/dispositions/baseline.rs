//! `baseline`: the findings of existing code are deferred in the shared file.

use super::*;

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
