//! Rounds of a session that review another source than the round before.

use super::*;

fn commit(repo: &Repo) {
    repo.git(&["add", "-A"]);
    repo.commit("more");
}

/// An action in a repository.
type Step = fn(&Repo);

type Way<'w> = dyn Fn(&Repo) + 'w;

/// Returns the first reviews of sessions, with the function that adds the key to the reviewed
/// state.
fn sessions() -> Vec<(&'static [&'static str], Step)> {
    vec![
        (&["changes"], |_| ()),
        (&["staged"], |r| drop(r.git(&["add", "-A"]))),
        (&["unstaged", "--untracked"], |_| ()),
        (&["unstaged"], |r| drop(r.git(&["add", "-AN"]))),
        (&["commit", "HEAD"], commit),
        (&["commit", "HEAD~1..HEAD"], commit),
        (&["branch", "HEAD", "--base", "HEAD~1"], commit),
    ]
}

#[test]
fn another_source_mends_nothing() {
    for (source, put) in sessions() {
        let others: &[&[&str]] = &[
            &["staged"],
            &["commit", "HEAD~1"],
            &["branch", "HEAD", "--base", "HEAD"],
            &["changes", "--base", "HEAD"],
            &["unstaged"],
        ];
        for other in others {
            let repo = plain();
            repo.write(
                "config.py",
                format!("a = 1\n{}", crate::support::line_with_key()),
            );
            put(&repo);
            let first = from(&repo, 1, source);
            assert_eq!(first["verdict"], "block", "{source:?}");
            let second = from(&repo, 2, other);
            let said = format!("{source:?} then {other:?}: {:#}", second["since"]);
            assert_eq!(second["since"]["fixed"], 0, "{said}");
            assert!(
                second["advice"]["action"] != "complete" && second["advice"]["action"] != "nothing",
                "{said}"
            );
            approve(&repo, 2);
            // The next round has it too.
            let third = from(&repo, 3, &[]);
            assert_eq!(
                (&third["verdict"], &third["since"]["still_there"]),
                (&json!("block"), &json!(1)),
                "{said}"
            );
        }
    }
}

#[test]
fn what_is_mended_is_fixed_wherever_it_went_meanwhile() {
    let mended = "a = 1\nb = 2\n";
    let ways: &[(&str, &Way<'_>)] = &[
        ("mended", &|r| {
            r.write("config.py", mended);
        }),
        ("mended and staged", &|r| {
            r.write("config.py", mended);
            r.git(&["add", "-A"]);
        }),
        ("mended and committed", &|r| {
            r.write("config.py", mended);
            commit(r);
        }),
        ("mended and amended", &|r| {
            r.write("config.py", mended);
            r.git(&["add", "-A"]);
            r.git(&["commit", "-q", "--amend", "-m", "again"]);
        }),
        ("renamed", &|r| {
            std::fs::remove_file(r.path().join("config.py")).unwrap();
            r.write("settings.py", mended);
            commit(r);
        }),
        ("deleted", &|r| {
            std::fs::remove_file(r.path().join("config.py")).unwrap();
            commit(r);
        }),
        ("reverted", &|r| {
            std::fs::remove_file(r.path().join("config.py")).unwrap();
            r.git(&["add", "-A"]);
        }),
        ("ignored", &|r| {
            r.git(&["rm", "-q", "--cached", "--ignore-unmatch", "config.py"]);
            r.write(".gitignore", "config.py\n");
            r.git(&["add", ".gitignore"]);
        }),
    ];
    let mut wrong = Vec::new();
    for (source, put) in sessions() {
        for (way, mend) in ways {
            let repo = plain();
            repo.write(
                "config.py",
                format!("a = 1\n{}", crate::support::line_with_key()),
            );
            let start = repo.git(&["rev-parse", "HEAD"]);
            put(&repo);
            assert_eq!(from(&repo, 1, source)["verdict"], "block", "{source:?}");
            mend(&repo);
            // The staged content is unchanged until the fixed file is staged. A branch keeps the
            // findings of all its commits.
            if source[0] == "staged" {
                repo.git(&["add", "-A"]);
            }
            if source[0] == "branch" {
                repo.git(&["reset", "-q", "--soft", start.trim()]);
                repo.git(&["add", "-A"]);
                repo.git(&["commit", "-q", "--allow-empty", "-m", "in one"]);
            }
            let second = from(&repo, 2, &[]);
            if (told(&second), &second["verdict"])
                != (vec!["fixed F1 -".to_owned()], &json!("pass"))
            {
                wrong.push(format!(
                    "{source:?}, {way}: {} {:?}",
                    second["report"]["source"],
                    told(&second)
                ));
                continue;
            }
            approve(&repo, 0);
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn what_begins_a_history_is_followed_from_nothing() {
    for source in [&["staged"][..], &["changes"], &["commit", "HEAD"]] {
        let repo = Repo::new();
        repo.write(".git/info/exclude", ".claude-reviewer.toml\n");
        repo.write(".claude-reviewer.toml", "version = 1\n");
        repo.write(
            "config.py",
            format!("a = 1\n{}", crate::support::line_with_key()),
        );
        repo.git(&["add", "-A"]);
        if source[0] == "commit" {
            repo.commit("first");
        }
        assert_eq!(from(&repo, 1, source)["verdict"], "block");
        if source[0] != "commit" {
            repo.commit("first");
        }
        assert_eq!(
            told(&from(&repo, 2, &[])),
            ["still_there F1 F1"],
            "{source:?}"
        );
        repo.write("config.py", "a = 1\n");
        commit(&repo);
        assert_eq!(told(&from(&repo, 3, &[])), ["fixed F1 -"], "{source:?}");
        approve(&repo, 0);
    }
}
