//! Secrets, links, and files outside of the tree: no tool shows them.

use super::{STATES, call, head, look};
use crate::support::{Repo, line_with_key};
use claude_reviewer::ai::tree::Unread;
use claude_reviewer::diff::RepoPath;
use claude_reviewer::git::State;
use serde_json::json;

#[test]
fn sec_01_no_tool_shows_a_secret() {
    let repo = Repo::new();
    let line = line_with_key();
    let key = line.trim().rsplit(' ').next().unwrap().to_owned();
    repo.stage(
        "src/config.py",
        format!("def load():\n    {line}\nclass {key}:\n    pass\n"),
    );
    repo.stage(
        "src/wide.txt",
        format!("{line}{line}")
            .encode_utf16()
            .flat_map(u16::to_le_bytes)
            .collect::<Vec<_>>(),
    );
    repo.stage(&format!("keys/{key}.txt"), format!("{line}plain\n"));
    repo.commit("seed");
    for state in STATES {
        look(&repo, state, |tree| {
            let named = tree
                .paths()
                .unwrap()
                .iter()
                .find(|p| p.as_bytes().starts_with(b"keys/"))
                .unwrap()
                .to_wire();
            let calls = [
                (
                    "read_lines",
                    json!({"path": "src/config.py", "first": 1, "last": 9}),
                ),
                (
                    "read_lines",
                    json!({"path": "src/wide.txt", "first": 1, "last": 9}),
                ),
                ("read_lines", json!({"path": named, "first": 1, "last": 9})),
                ("outline", json!({"path": "src/config.py"})),
                ("definition", json!({"name": "load", "glob": ""})),
                ("definition", json!({"name": key, "glob": ""})),
                (
                    "references",
                    json!({"name": "aws_access_key_id", "glob": ""}),
                ),
                ("references", json!({"name": key, "glob": ""})),
                ("callers", json!({"name": key, "glob": ""})),
                ("search", json!({"pattern": "aws_access", "glob": ""})),
                ("search", json!({"pattern": "plain|class", "glob": ""})),
                ("list_files", json!({"glob": ""})),
                ("list_files", json!({"glob": "nothing/*"})),
                (
                    "history",
                    json!({"path": "src/config.py", "first": 1, "last": 9}),
                ),
                ("history", json!({"path": named, "first": 1, "last": 9})),
            ];
            for (tool, arguments) in calls {
                let shown = call(tree, tool, &arguments);
                assert!(!shown.contains(&key[4..]), "{tool} {arguments}: {shown}");
            }
            let shown = call(
                tree,
                "search",
                &json!({"pattern": "aws_access", "glob": ""}),
            );
            assert!(shown.contains("aws_access_key_id = <secret:"), "{shown}");
            // The tools do not even confirm a guess.
            let guess = call(
                tree,
                "search",
                &json!({"pattern": format!("{}.*", &key[..7]), "glob": ""}),
            );
            let wrong = call(tree, "search", &json!({"pattern": "AKIAZZZ.*", "glob": ""}));
            assert_eq!(guess, wrong);
        });
    }
}

#[test]
fn sec_01_history_shows_no_secret_of_an_earlier_version_or_message() {
    let repo = Repo::new();
    let line = line_with_key();
    let key = line.trim().rsplit(' ').next().unwrap().to_owned();
    repo.stage("src/config.py", format!("first = 1\n{line}last = 1\n"))
        .commit("seed");
    repo.stage("src/config.py", "first = 1\nkey = load()\nlast = 1\n")
        .commit(&format!("remove {key}"));
    for state in STATES {
        look(&repo, state, |tree| {
            let shown = call(
                tree,
                "history",
                &json!({"path": "src/config.py", "first": 1, "last": 3}),
            );
            assert!(!shown.contains(&key[4..]), "{shown}");
            assert!(
                shown.contains(" remove <secret:")
                    && shown.contains("\n-aws_access_key_id = <secret:"),
                "{shown}"
            );
        });
    }
}

#[test]
fn sec_06_no_link_is_followed() {
    let repo = Repo::new();
    std::fs::create_dir(repo.outside()).unwrap();
    std::fs::write(repo.outside().join("credentials"), "treasure\n").unwrap();
    repo.stage("a.txt", "one\n")
        .stage("dir/b.txt", "two\n")
        .stage("c.txt", "three\n");
    std::os::unix::fs::symlink(repo.outside().join("credentials"), repo.path().join("link"))
        .unwrap();
    repo.git(&["add", "link"]);
    repo.commit("seed");
    // Tracked files and a folder that were replaced by links out of the tree.
    for name in ["a.txt", "dir/b.txt", "c.txt"] {
        std::fs::remove_file(repo.path().join(name)).unwrap();
    }
    std::fs::remove_dir_all(repo.path().join("dir")).unwrap();
    std::os::unix::fs::symlink(
        repo.outside().join("credentials"),
        repo.path().join("a.txt"),
    )
    .unwrap();
    std::fs::write(repo.outside().join("b.txt"), "treasure\n").unwrap();
    std::os::unix::fs::symlink(repo.outside(), repo.path().join("dir")).unwrap();
    // And a pipe without a writer.
    crate::support::mkfifo(repo.path().join("c.txt"));
    for state in STATES {
        look(&repo, state, |tree| {
            for path in ["link", "a.txt", "dir/b.txt", "c.txt", "dir/credentials"] {
                let shown = call(
                    tree,
                    "read_lines",
                    &json!({"path": path, "first": 1, "last": 9}),
                );
                assert!(!shown.contains("treasure"), "{path}: {shown}");
            }
            let shown = call(tree, "search", &json!({"pattern": "treasure", "glob": ""}));
            assert!(!shown.contains("1: "), "{shown}");
        });
    }
    look(
        &repo,
        |_| State::Worktree,
        |tree| assert!(tree.paths().unwrap().is_empty(), "{:?}", tree.paths()),
    );
}

#[test]
fn sec_07_a_file_of_credentials_is_refused_by_its_name() {
    let repo = Repo::new();
    repo.stage(".env", "A=treasure\n")
        .stage("x/server.pem", "treasure\n")
        .stage("a.txt", "plain\n");
    repo.commit("seed");
    for state in STATES {
        look(&repo, state, |tree| {
            assert_eq!(tree.paths().unwrap(), [RepoPath::from("a.txt")]);
            assert!(matches!(tree.text(&".env".into()), Err(Unread::Sensitive)));
            for path in [".env", "x/server.pem", "./.env", "b/.env"] {
                let shown = call(
                    tree,
                    "read_lines",
                    &json!({"path": path, "first": 1, "last": 2}),
                );
                assert!(
                    shown.contains("may contain credentials") && !shown.contains("treasure"),
                    "{shown}"
                );
            }
            let shown = call(
                tree,
                "search",
                &json!({"pattern": "treasure", "glob": ".env"}),
            );
            assert!(!shown.contains("1: "), "{shown}");
        });
    }
}

#[test]
fn nothing_outside_of_the_tree_is_named() {
    let repo = Repo::new();
    repo.stage("a.txt", "plain\n").commit("seed");
    repo.write(".gitignore", "ignored.txt\n")
        .write("ignored.txt", "treasure\n")
        .write("scratch.txt", "treasure\n");
    for state in STATES {
        look(&repo, state, |tree| {
            for path in [
                "/etc/passwd",
                "../outside",
                "a/../../x",
                "~/.ssh/config",
                ".git/config",
                "ignored.txt",
                "scratch.txt",
            ] {
                let shown = call(
                    tree,
                    "read_lines",
                    &json!({"path": path, "first": 1, "last": 2}),
                );
                assert!(!shown.contains("1: "), "{path}: {shown}");
                let shown = call(tree, "outline", &json!({ "path": path }));
                assert!(!shown.contains("1: "), "{path}: {shown}");
            }
            for glob in ["/etc/*", "../*", "scratch.txt", "*.txt"] {
                let shown = call(
                    tree,
                    "search",
                    &json!({"pattern": "treasure|root", "glob": glob}),
                );
                assert!(!shown.contains("1: "), "{glob}: {shown}");
            }
        });
    }
}

#[test]
fn inj_07_what_hides_is_shown() {
    let repo = Repo::new();
    repo.stage("a.txt", "plain \u{202e}x\u{200b} \u{1b}[2J end\r\nnext\n")
        .stage("n\u{202e}ame.txt", "x\n")
        .commit("seed");
    look(&repo, head, |tree| {
        let said = call(
            tree,
            "read_lines",
            &json!({"path": "a.txt", "first": 1, "last": 2}),
        );
        assert_eq!(
            said,
            "a.txt, lines 1 to 2 of 2:\n1: plain \\u{202e}x\\u{200b} \\u{1b}[2J end\n2: next"
        );
        let said = call(
            tree,
            "search",
            &json!({"pattern": r"\\u\{202e\}", "glob": ""}),
        );
        assert!(said.contains("a.txt:\n1: plain"), "{said}");
        // It is found by its shown name.
        let said = call(tree, "list_files", &json!({"glob": ""}));
        assert!(said.contains("n\\u{202e}ame.txt"), "{said}");
        let said = call(
            tree,
            "read_lines",
            &json!({"path": "n\\u{202e}ame.txt", "first": 1, "last": 2}),
        );
        assert!(said.ends_with("\n1: x"), "{said}");
    });
}
