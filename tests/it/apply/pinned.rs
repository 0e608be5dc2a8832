//! The tag of an action in a workflow is replaced by a commit.

use super::{apply, text};
use crate::support::Repo;

/// Returns the replacements of unpinned actions in the staged change, by line.
fn pins(repo: &Repo) -> Vec<Option<String>> {
    let report = repo
        .reviewer(&["review", "staged", "--format", "json"])
        .run_any()
        .json();
    let rules = ["workflow-unpinned-action", "workflow-action-on-branch"];
    let all = report["findings"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|f| rules.iter().any(|r| f["rule_id"] == *r));
    all.map(|f| f["replacement"].as_str().map(str::to_owned))
        .collect()
}

fn workflow(uses: &[&str]) -> String {
    let steps: String = uses
        .iter()
        .map(|u| format!("      - uses: {u}\n"))
        .collect();
    format!(
        "on: push\npermissions: {{}}\njobs:\n  a:\n    runs-on: ubuntu-latest\n    steps:\n{steps}"
    )
}

#[test]
fn the_tag_of_an_action_is_replaced_by_the_commit_that_a_workflow_of_the_base_uses() {
    let (one, two) = ("1".repeat(40), "2".repeat(40));
    let repo = Repo::new();
    let known = [
        format!("someone/deploy@{one} # v1.2.0"),
        format!("twice/used@{one} # v1"),
        format!("twice/used@{two} # v1"),
    ];
    repo.stage(
        ".github/workflows/old.yml",
        workflow(&known.each_ref().map(String::as_str)),
    )
    .commit("seed");
    // The change's own comment about a tag is not trusted.
    let own = format!("evil/action@{two} # v1");
    repo.stage(".github/workflows/evil.yml", workflow(&[&own]));
    repo.stage(
        ".github/workflows/new.yml",
        workflow(&[
            "someone/deploy@v1",
            "Someone/Deploy/sub@v1.2 # ships it",
            "evil/action@v1",
            "twice/used@v1",
            "un/known@v1",
        ]),
    );
    let first = format!("      - uses: someone/deploy@{one} # v1.2.0");
    let second = format!("      - uses: Someone/Deploy/sub@{one} # v1.2.0 ships it");
    assert_eq!(
        pins(&repo),
        [Some(first.clone()), Some(second.clone()), None, None, None]
    );
    let said = apply(&repo, &["--all-safe"], 0).stdout;
    assert!(
        said.contains("applied ") && said.contains("gone: "),
        "{said}"
    );
    let written = text(&repo, ".github/workflows/new.yml");
    assert!(
        written.contains(&first) && written.contains(&second) && written.contains("evil/action@v1"),
        "{written}"
    );
}

#[test]
fn the_tag_of_an_action_is_replaced_by_the_commit_of_a_clone_of_it() {
    let tool = Repo::new();
    tool.stage("action.yml", "name: tool\n");
    let commit = tool.commit("tool").trim().to_owned();
    tool.git(&["tag", "-a", "v2", "-m", "version 2"]);
    let repo = Repo::new();
    repo.stage("README", "demo\n");
    repo.git(&[
        "-c",
        "protocol.file.allow=always",
        "submodule",
        "add",
        "-q",
        tool.path().to_str().unwrap(),
        "libs/tool",
    ]);
    let own = repo.commit("seed").trim().to_owned();
    repo.git(&[
        "-C",
        "libs/tool",
        "remote",
        "set-url",
        "origin",
        "https://github.com/Third/Tool.git",
    ]);
    repo.git(&["remote", "add", "origin", "git@github.com:Own/Action.git"]);
    repo.git(&["tag", "v3"]);
    let uses = [
        "third/tool@v2",
        "own/action@v3",
        "third/tool@v3",
        "third/tool@main",
    ];
    repo.stage(".github/workflows/new.yml", workflow(&uses));
    let pinned = |action: &str, commit: &str, tag: &str| {
        Some(format!("      - uses: {action}@{commit} # {tag}"))
    };
    let expected = [
        pinned("third/tool", &commit, "v2"),
        pinned("own/action", &own, "v3"),
        None,
        None,
    ];
    assert_eq!(pins(&repo), expected);
    // The same name on another host is another project.
    repo.git(&[
        "-C",
        "libs/tool",
        "remote",
        "set-url",
        "origin",
        "https://example.org/third/tool.git",
    ]);
    assert_eq!(pins(&repo)[0], None);
}

/// Returns the severities of branches of actions in the staged change.
fn severities_of_branches(repo: &Repo) -> Vec<String> {
    let review = repo.reviewer(&["review", "staged", "--format", "json", "--no-save"]);
    let report = review.run_any().json();
    let all = report["findings"].as_array().unwrap().iter();
    all.filter(|f| f["rule_id"] == "workflow-action-on-branch")
        .map(|f| f["severity"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn a_branch_in_place_of_the_only_pin_is_no_habit_of_the_workflow() {
    let path = ".github/workflows/a.yml";
    let repo = Repo::new();
    let pin = format!("some-org/scan@{}", "1".repeat(40));
    repo.stage(path, workflow(&[&pin])).commit("seed");
    repo.stage(path, workflow(&["some-org/scan@main"]));
    assert_eq!(severities_of_branches(&repo), ["minor"]);
    let repo = Repo::new();
    repo.stage(path, workflow(&["some-org/build@main"]))
        .commit("seed");
    repo.stage(
        path,
        workflow(&["some-org/build@main", "some-org/scan@main"]),
    );
    assert_eq!(severities_of_branches(&repo), ["suggestion"]);
}

#[test]
fn the_owner_of_a_fork_is_not_the_owner_of_the_repository() {
    let pin = format!("other/action@{}", "1".repeat(40));
    for (remote, expected) in [
        ("origin", "suggestion"),
        ("upstream", "suggestion"),
        ("fork", "minor"),
    ] {
        let repo = Repo::new();
        repo.git(&["remote", "add", remote, "https://github.com/Some-Org/x.git"]);
        repo.stage(
            ".github/workflows/a.yml",
            workflow(&[&pin, "some-org/scan@main"]),
        );
        assert_eq!(severities_of_branches(&repo), [expected], "{remote}");
    }
}
