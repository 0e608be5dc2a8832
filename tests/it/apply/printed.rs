//! The commands that a review prints beside a replacement lead to the reviewed lines.

use super::*;

/// Returns the command that a report prints next to a replacement.
fn printed(run: &Run) -> String {
    let (_, rest) = run
        .stdout
        .split_once("replace with:  (")
        .unwrap_or_else(|| panic!("{}", run.stdout));
    rest.split_once(')').unwrap().0.to_owned()
}

/// Runs a printed command: an optional checkout, then a command of this program.
fn follow(repo: &Repo, command: &str) -> Run {
    let own = match command.strip_prefix("git checkout ") {
        Some(rest) => {
            let (commit, own) = rest.split_once(" && ").unwrap();
            repo.git(&["checkout", "-q", commit]);
            own
        }
        None => command,
    };
    let args: Vec<&str> = own.split(' ').collect();
    assert_eq!(args[0], "claude-reviewer");
    repo.reviewer(&args[1..]).run(0)
}

#[test]
fn the_printed_command_checks_out_the_reviewed_commit_if_the_worktree_has_another_one() {
    let (repo, head) = with_topic();
    let run = repo
        .reviewer(&["review", "branch", "topic", "--base", "main"])
        .run(1);
    let command = printed(&run);
    assert_eq!(
        command,
        format!("git checkout {head} && claude-reviewer apply F1")
    );
    // Without the checkout, the error suggests it.
    let before = files(&repo.path());
    let refused = apply(&repo, &["F1"], 2);
    assert!(
        refused.stderr.contains("load.py is not in the worktree"),
        "{}",
        refused.stderr
    );
    let hint = format!("git checkout {head} && claude-reviewer apply F1 --session ");
    assert!(refused.stderr.contains(&hint), "{}", refused.stderr);
    let all = apply(&repo, &["--all-safe"], 0).stdout;
    assert!(
        all.contains("left out F1: ")
            && all.contains(&format!(
                "hint: the reviewed commit is not checked out: git checkout {head}"
            )),
        "{all}"
    );
    assert!(files(&repo.path()) == before);
    assert!(follow(&repo, &command).stdout.starts_with("applied F1\n"));
    assert!(text(&repo, "load.py").contains("yaml.safe_load"));
}

#[test]
fn the_printed_command_needs_no_checkout_if_the_worktree_has_the_lines() {
    let (repo, _) = with_topic();
    repo.git(&["checkout", "-q", "topic"]);
    repo.stage("other.py", "x = 1\n").commit("go on");
    for args in [
        &["review", "commit", "HEAD~1"][..],
        &["review", "branch", "topic", "--base", "main"],
    ] {
        let command = printed(&repo.reviewer(args).run(1));
        assert_eq!(command, "claude-reviewer apply F1", "{args:?}");
    }
    assert!(
        follow(&repo, "claude-reviewer apply F1")
            .stdout
            .starts_with("applied F1\n")
    );
}

#[test]
fn the_command_beside_a_replacement_of_an_older_review_names_it() {
    let (repo, _) = with_topic();
    repo.git(&["checkout", "-q", "topic"]);
    repo.reviewer(&["review", "branch", "topic", "--base", "main"])
        .run(1);
    let id = repo
        .reviewer(&["history", "latest", "--format", "json"])
        .run(0)
        .json()["review_id"]
        .as_str()
        .unwrap()
        .to_owned();
    repo.reviewer(&["review", "commit", "main"]).run(0);
    let shown = repo.reviewer(&["history", "show", &id]).run(0);
    assert_eq!(
        printed(&shown),
        format!("claude-reviewer apply F1 --session {id}")
    );
    assert!(
        follow(&repo, &printed(&shown))
            .stdout
            .starts_with("applied F1\n")
    );
}
