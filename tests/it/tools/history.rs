//! The history of lines, through commits, merges and the worktree.

use super::{STATES, call, head, look};
use crate::support::Repo;
use claude_reviewer::ai::tree::Tree;
use claude_reviewer::git::State;
use serde_json::json;

/// Returns the dates and subjects of an answer of `history`, and the lines of its commits.
fn past(tree: &Tree<'_>, path: &str, first: u32, last: u32) -> Vec<String> {
    let shown = call(
        tree,
        "history",
        &json!({"path": path, "first": first, "last": last}),
    );
    let is_commit = |line: &&str| {
        line.split(' ')
            .next()
            .is_some_and(|id| id.len() >= 7 && id.bytes().all(|b| b.is_ascii_hexdigit()))
    };
    shown
        .lines()
        .skip(1)
        .map(|l| {
            if is_commit(&l) {
                l.split_once(' ').unwrap().1
            } else {
                l
            }
            .to_owned()
        })
        .collect()
}

#[test]
fn history_follows_lines_through_commits_merges_and_the_worktree() {
    let repo = Repo::new();
    let lines = |changed: &[(usize, &str)]| -> String {
        let line = |n: usize| {
            changed
                .iter()
                .find(|(at, _)| *at == n)
                .map_or(format!("line {n}"), |(_, text)| (*text).to_owned())
        };
        (1..=20).map(|n| line(n) + "\n").collect()
    };
    let dated = |date: &str, subject: &str| {
        let when = format!("{date}T12:00:00 +0000");
        let mut git = repo.git_command();
        git.args(["commit", "-q", "-m", subject])
            .env("GIT_AUTHOR_DATE", &when)
            .env("GIT_COMMITTER_DATE", &when);
        assert!(git.status().unwrap().success());
    };
    repo.stage("src/a.txt", lines(&[]));
    dated("2020-01-01", "Add the file");
    repo.stage("src/a.txt", lines(&[(5, "five")]));
    dated("2020-02-02", "Spell five");
    repo.git(&["checkout", "-q", "-b", "side"]);
    repo.stage("src/a.txt", lines(&[(5, "five"), (15, "fifteen")]));
    dated("2020-03-03", "Spell fifteen\n\nA body.");
    repo.git(&["checkout", "-q", "main"]);
    repo.stage("src/b.txt", "other\n");
    dated("2020-04-04", "Add another file");
    repo.git(&["merge", "-q", "--no-ff", "-m", "Merge side", "side"]);
    look(&repo, head, |tree| {
        let five = [
            "2020-02-02 Spell five",
            "-line 5",
            "+five",
            "2020-01-01 Add the file: brought the file, or renamed it",
        ];
        assert_eq!(past(tree, "src/a.txt", 4, 6), five);
        let fifteen = ["2020-03-03 Spell fifteen", "-line 15", "+fifteen"];
        assert_eq!(past(tree, "src/a.txt", 15, 15)[..3], fifteen);
        assert_eq!(past(tree, "src/a.txt", 10, 11), five[3..]);
        assert_eq!(past(tree, "src/a.txt", 1, 20).len(), 7);
        assert!(past(tree, "src/a.txt", 21, 22).is_empty(), "beyond the end");
    });
    // Two lines on top, one of them staged: the numbers are those of the reviewed state.
    repo.stage(
        "src/a.txt",
        format!("top\n{}", lines(&[(5, "five"), (15, "fifteen")])),
    );
    repo.write(
        "src/a.txt",
        format!("top\nmore\n{}", lines(&[(5, "five"), (15, "fifteen")])),
    );
    for (state, five) in [(STATES[1], 6), (STATES[2], 7)] {
        look(&repo, state, |tree| {
            assert_eq!(
                past(tree, "src/a.txt", five, five)[0],
                "2020-02-02 Spell five"
            );
            assert_eq!(
                past(tree, "src/a.txt", 1, 1),
                ["(no commit has these lines)"]
            );
        });
    }
    repo.stage("src/new.txt", "new\n");
    look(
        &repo,
        |_| State::Index,
        |tree| {
            assert_eq!(
                past(tree, "src/new.txt", 1, 1),
                ["(no commit has the file)"]
            );
        },
    );
}

#[test]
fn history_in_a_shallow_clone_ends_where_the_clone_does() {
    let origin = Repo::new();
    for text in ["one\n", "two\n", "three\n"] {
        origin.stage("a.txt", text).commit(text.trim());
    }
    let repo = Repo::new();
    let url = format!("file://{}", origin.path().display());
    repo.git(&["fetch", "-q", "--depth=1", &url, "HEAD"]);
    repo.git(&["checkout", "-q", "-B", "main", "FETCH_HEAD"]);
    look(&repo, head, |tree| {
        let [only] = &past(tree, "a.txt", 1, 1)[..] else {
            panic!("one line")
        };
        assert!(
            only.starts_with("(the history ends here: ") && only.contains("shallow"),
            "{only}"
        );
    });
}
