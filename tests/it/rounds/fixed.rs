//! Tests of the condition for "fixed": the text of a finding is nowhere in the reviewed state.

use super::*;

/// A function with a defect in its third line.
const FUNCTION: &str = "fn mean(count: u32) -> u32 {\n    let sum = add(count);\n    total = count / (count - count);\n    \
                        report(total);\n    sum + total\n}\n";
const WRONG: &str = "    total = count / (count - count);";

/// Creates a repository with a file of steps in the first commit.
fn with_steps(policy: &str) -> Repo {
    let repo = repo(policy, "");
    repo.stage("src/a.rs", body(30, &[]));
    repo.commit("steps");
    repo
}

/// Returns the steps with the function after one of them.
fn steps(after: u32, function: &str) -> String {
    body(30, &[(after, function.trim_end_matches('\n'))])
}

/// Returns the state of the single finding after the second round, with its position.
fn place(stored: &Value) -> (Vec<String>, String, u64) {
    let f = &stored["report"]["findings"][0];
    (
        told(stored),
        f["file"].as_str().unwrap_or("-").to_owned(),
        f["line"].as_u64().unwrap_or(0),
    )
}

#[test]
fn a_model_that_falls_silent_about_the_same_text_mends_nothing() {
    let other = |text: &str| text.replace("    ", "\t\t");
    type Change<'c> = &'c dyn Fn(&Repo);
    let ways: &[(&str, Change<'_>, &str, &str, u64)] = &[
        (
            "indented anew",
            &|r| {
                r.write("src/a.rs", steps(10, &other(FUNCTION)));
            },
            "still_there",
            "src/a.rs",
            13,
        ),
        (
            "set apart by blank lines",
            &|r| {
                r.write(
                    "src/a.rs",
                    steps(10, &FUNCTION.replace(WRONG, &format!("\n{WRONG}\n"))),
                );
            },
            "still_there",
            "src/a.rs",
            14,
        ),
        (
            "moved within its file",
            &|r| {
                r.write("src/a.rs", steps(25, FUNCTION));
            },
            "moved",
            "src/a.rs",
            28,
        ),
        (
            "moved to another file",
            &|r| {
                r.write("src/a.rs", body(30, &[(3, "step_now();")]));
                r.write("src/b.rs", format!("use a;\n\n{FUNCTION}"));
            },
            "moved",
            "src/b.rs",
            5,
        ),
        (
            "moved to another file, and nothing is left of the change here",
            &|r| {
                r.write("src/a.rs", body(30, &[]));
                r.write("src/b.rs", other(FUNCTION));
            },
            "moved",
            "src/b.rs",
            3,
        ),
    ];
    for (way, change, state, file, line) in ways {
        let (server, says) = model();
        let repo = with_steps(&server.policy("openai"));
        repo.write("src/a.rs", steps(10, FUNCTION));
        *says.lock().unwrap() = vec![finding("src/a.rs", 13, WRONG)];
        round(&repo, 1, &[], 1);
        says.lock().unwrap().clear();
        change(&repo);
        let second = round(&repo, 2, &[], 1);
        let expected = (vec![format!("{state} F1 F1")], (*file).to_owned(), *line);
        assert_eq!(place(&second), expected, "{way}: {:#}", second["since"]);
        approve(&repo, 2);
        // Fixed at its new position.
        let text = std::fs::read_to_string(repo.path().join(file)).unwrap();
        repo.write(file, text.replace("(count - count)", "sum"));
        assert_eq!(told(&round(&repo, 3, &[], 0)), ["fixed F1 -"], "{way}");
        approve(&repo, 0);
    }
}

#[test]
fn other_code_around_the_same_text_is_an_answer() {
    let guarded = FUNCTION.replace(WRONG, &format!("    if count > 0 {{\n    {WRONG}\n    }}"));
    let checked = FUNCTION.replace(WRONG, &format!("    assert!(sum > 0);\n{WRONG}"));
    let ways: &[(&str, &str, String)] = &[
        (
            "a guard, and indented anew under it",
            "src/a.rs",
            steps(10, &guarded),
        ),
        ("a check above it", "src/a.rs", steps(10, &checked)),
        ("moved, and guarded there", "src/a.rs", steps(25, &guarded)),
        (
            "moved to another file, and checked there",
            "src/b.rs",
            checked.clone(),
        ),
        (
            "deleted",
            "src/a.rs",
            steps(10, &FUNCTION.replace(WRONG, "")),
        ),
        (
            "written anew",
            "src/a.rs",
            steps(10, &FUNCTION.replace("(count - count)", "sum")),
        ),
    ];
    for (way, file, text) in ways {
        let (server, says) = model();
        let repo = with_steps(&server.policy("openai"));
        repo.write("src/a.rs", steps(10, FUNCTION));
        *says.lock().unwrap() = vec![finding("src/a.rs", 13, WRONG)];
        round(&repo, 1, &[], 1);
        says.lock().unwrap().clear();
        repo.write("src/a.rs", body(30, &[(3, "step_now();")]));
        repo.write(file, text);
        let second = round(&repo, 2, &[], 0);
        assert_eq!(told(&second), ["fixed F1 -"], "{way}");
        approve(&repo, 0);
    }
}

/// A line that a rule for Python reports, and no rule for text files.
const EVAL: &str = "def run(request):\n    return eval(request.args['code'])\n";

#[test]
fn another_name_that_no_rule_looks_at_mends_nothing() {
    for new in ["run.txt", "run"] {
        let repo = plain();
        repo.write("run.py", EVAL);
        let first = round(&repo, 1, &[], 1);
        assert_eq!(
            first["report"]["findings"].as_array().unwrap().len(),
            1,
            "{first:#}"
        );
        std::fs::rename(repo.path().join("run.py"), repo.path().join(new)).unwrap();
        assert_eq!(told(&round(&repo, 2, &[], 0)), ["unchecked F1 -"], "{new}");
        approve(&repo, 2);
        // Moving a part of it to such a file does not fix it either.
        repo.write("run.py", "import run_now\n");
        assert_eq!(told(&round(&repo, 3, &[], 0)), ["unchecked F1 -"], "{new}");
        repo.write(new, EVAL.replace("eval", "int"));
        assert_eq!(told(&round(&repo, 4, &[], 0)), ["fixed F1 -"], "{new}");
        approve(&repo, 0);
    }
}

#[test]
fn what_git_was_told_not_to_look_at_is_not_mended() {
    let hide: &[(&str, &[&str], &str)] = &[
        (
            "assume-unchanged",
            &["update-index", "--assume-unchanged", "src/a.rs"],
            "",
        ),
        (
            "skip-worktree",
            &["update-index", "--skip-worktree", "src/a.rs"],
            "",
        ),
        ("info/exclude", &["status", "--short"], "src/new.rs"),
        (
            "rm --cached and info/exclude",
            &["rm", "-q", "--cached", "src/a.rs"],
            "src/a.rs",
        ),
    ];
    for (way, git, excluded) in hide {
        let file = if way.starts_with("info") {
            "src/new.rs"
        } else {
            "src/a.rs"
        };
        let (server, says) = model();
        let repo = with_steps(&server.policy("openai"));
        repo.write(file, steps(10, FUNCTION));
        *says.lock().unwrap() = vec![finding(file, 13, WRONG)];
        round(&repo, 1, &[], 1);
        says.lock().unwrap().clear();
        repo.git(git);
        repo.write(
            ".git/info/exclude",
            format!(".claude-reviewer.toml\n{excluded}\n"),
        );
        // In this round, and in the next one.
        for number in [2, 3] {
            let stored = round(&repo, number, &[], 1);
            let expected = (vec!["still_there F1 F1".to_owned()], file.to_owned(), 13);
            assert_eq!(place(&stored), expected, "{way}: {stored:#}");
            approve(&repo, 2);
        }
        // A fix that git does not notice is a fix all the same.
        repo.write(file, steps(10, &FUNCTION.replace("(count - count)", "sum")));
        assert_eq!(told(&round(&repo, 4, &[], 0)), ["fixed F1 -"], "{way}");
    }
}

#[test]
fn what_a_rule_found_is_not_mended_by_telling_git_not_to_look() {
    type Hide<'h> = &'h dyn Fn(&Repo);
    let hide: &[(&str, Hide<'_>)] = &[
        ("assume-unchanged", &|r| {
            r.git(&["update-index", "--assume-unchanged", "src/b.py"]);
        }),
        ("skip-worktree", &|r| {
            r.git(&["update-index", "--skip-worktree", "src/b.py"]);
        }),
        ("rm --cached and info/exclude", &|r| {
            r.git(&["rm", "-q", "--cached", "src/b.py"]);
            r.write(".git/info/exclude", ".claude-reviewer.toml\nsrc/b.py\n");
        }),
        ("rm --cached and .gitignore", &|r| {
            r.git(&["rm", "-q", "--cached", "src/b.py"]);
            r.stage(".gitignore", "src/b.py\n");
        }),
    ];
    for (way, hide) in hide {
        let repo = plain();
        repo.write("src/b.py", format!("b = 1\n{EVAL}"));
        round(&repo, 1, &[], 1);
        hide(&repo);
        assert_eq!(told(&round(&repo, 2, &[], 0)), ["unchecked F1 -"], "{way}");
        approve(&repo, 2);
    }
    // A secret in a file that a shared `.gitignore` excludes is in the right place; with a local
    // exclusion it is unchecked.
    for (file, states) in [
        (".gitignore", ["fixed F1 -"]),
        (".git/info/exclude", ["unchecked F1 -"]),
    ] {
        let repo = plain();
        repo.write(
            "config.py",
            format!("a = 1\n{}", crate::support::line_with_key()),
        );
        round(&repo, 1, &[], 1);
        repo.write(file, ".claude-reviewer.toml\nconfig.py\n");
        if file == ".gitignore" {
            repo.git(&["add", ".gitignore"]);
        }
        assert_eq!(told(&round(&repo, 2, &[], 0)), states, "{file}");
    }
}

#[test]
fn a_file_that_is_no_more_staged_is_not_mended() {
    let repo = plain();
    repo.stage("src/b.py", format!("b = 1\n{EVAL}"));
    repo.stage("src/c.py", "c = 1\n");
    assert_eq!(from(&repo, 1, &["staged"])["verdict"], "block");
    repo.git(&["reset", "-q", "src/b.py"]);
    assert_eq!(told(&from(&repo, 2, &["staged"])), ["unchecked F1 -"]);
    repo.write("src/b.py", "b = 1\n");
    assert_eq!(told(&from(&repo, 3, &["staged"])), ["fixed F1 -"]);
}

#[test]
fn what_lies_outside_of_what_was_asked_for_is_not_mended() {
    let put = |repo: &Repo| {
        repo.write("src/b.py", "b = 2\n");
        repo.write("docs/run.py", EVAL);
    };
    // Wider than the session, then its own scope again.
    let repo = plain();
    put(&repo);
    assert_eq!(
        round(&repo, 1, &["--files", "src/**"], 0)["verdict"],
        "pass"
    );
    round(&repo, 2, &["--files", "**"], 1);
    for number in [3, 4] {
        assert_eq!(told(&round(&repo, number, &[], 0)), ["unchecked F1 -"]);
        approve(&repo, 2);
    }
    assert_eq!(
        told(&round(&repo, 5, &["--files", "**"], 1)),
        ["still_there F1 F1"]
    );
    // Narrower, by the old name of the file, or where its text is gone.
    let ways: [&dyn Fn(&Repo); 2] = [
        &|r| std::fs::rename(r.path().join("docs/run.py"), r.path().join("docs/later.py")).unwrap(),
        &|r| {
            r.write("docs/run.py", "import later\n");
            r.write("docs/later.py", EVAL);
        },
    ];
    for way in ways {
        let repo = plain();
        put(&repo);
        round(&repo, 1, &[], 1);
        way(&repo);
        assert_eq!(
            told(&round(&repo, 2, &["--files", "docs/run.py"], 0)),
            ["unchecked F1 -"]
        );
        approve(&repo, 2);
        // A finding that is gone from the requested scope is fixed.
        std::fs::remove_file(repo.path().join("docs/later.py")).unwrap();
        repo.write("docs/run.py", "import later\n");
        assert_eq!(
            told(&round(&repo, 3, &["--files", "docs/run.py"], 0)),
            ["fixed F1 -"]
        );
    }
}

#[test]
fn a_branch_that_is_not_checked_out_is_not_followed_by_another_one() {
    let repo = Repo::new();
    repo.stage("README.md", "# Sample\n").commit("first");
    repo.git(&["checkout", "-q", "-b", "topic"]);
    repo.stage("load.py", "import yaml\nconfig = yaml.unsafe_load(text)\n")
        .commit("load");
    repo.reviewer(&["review", "branch", "--base", "main"])
        .run(1);
    repo.git(&["checkout", "-q", "-b", "other", "main"]);
    repo.stage("z.py", "z = 1\n").commit("other");
    for args in [
        &["review", "--follow-up", "latest"][..],
        &["review", "branch", "--follow-up", "latest"],
    ] {
        let refused = repo.reviewer(args).run(2).stderr;
        assert!(
            refused.contains("is of branch topic, which is not checked out"),
            "{args:?}: {refused}"
        );
        assert!(
            refused.contains("hint: git switch topic"),
            "{args:?}: {refused}"
        );
    }
    let stored = repo
        .reviewer(&["history", "latest", "--format", "json"])
        .run(0)
        .json();
    let id = stored["review_id"].as_str().unwrap().to_owned();
    let by_name = repo
        .reviewer(&["review", "branch", "topic", "--follow-up", &id])
        .run(1)
        .stderr;
    assert!(by_name.contains("1 still present"), "{by_name}");
    repo.reviewer(&["complete", &id, "--status", "approved"])
        .run(2);
    // A branch that continues the reviewed one can fix its findings.
    repo.git(&["checkout", "-q", "-b", "next", "topic"]);
    repo.stage("load.py", "import yaml\nconfig = yaml.safe_load(text)\n")
        .commit("fix");
    let fixed = repo.reviewer(&["review", "--follow-up", &id]).run(0).stderr;
    assert!(fixed.contains("1 fixed"), "{fixed}");
}

#[test]
fn no_kind_of_session_is_followed_on_a_branch_without_its_commits() {
    const FOLLOW_UPS: [&[&str]; 4] = [
        &[],
        &["changes"],
        &["branch", "--base", "main"],
        &["commit", "HEAD"],
    ];
    let begin: [(&[&str], bool); 4] = [
        (&["review", "branch", "--base", "main"], false),
        (&["review", "branch", "topic", "--base", "main"], false),
        (&["review", "commit", "HEAD"], false),
        (&["review", "commit", "HEAD"], true),
    ];
    for (args, is_detached) in begin {
        let repo = Repo::new();
        repo.stage("README.md", "# Sample\n").commit("first");
        repo.git(&["checkout", "-q", "-b", "topic"]);
        repo.stage("load.py", "import yaml\nconfig = yaml.unsafe_load(text)\n")
            .commit("load");
        if is_detached {
            repo.git(&["checkout", "-q", "--detach"]);
        }
        repo.reviewer(args).run(1);
        repo.git(&["checkout", "-q", "-b", "other", "main"]);
        repo.stage("z.py", "z = 1\n").commit("other");
        repo.stage("y.py", "y = 1\n");
        for follow_up in FOLLOW_UPS {
            let all = [&["review"][..], follow_up, &["--follow-up", "latest"]].concat();
            let refused = repo.reviewer(&all).run(2).stderr;
            assert!(
                refused.contains("not checked out"),
                "{args:?} {all:?}: {refused}"
            );
        }
    }
}

#[test]
fn a_staged_change_that_stayed_on_its_branch_is_not_followed_on_another_one() {
    let refused = |repo: &Repo| {
        for args in [
            &["review", "--follow-up", "latest"][..],
            &["review", "staged", "--follow-up", "latest"],
        ] {
            let refused = repo.reviewer(args).run(2).stderr;
            assert!(
                refused.contains("is of branch topic, which is not checked out"),
                "{args:?}: {refused}"
            );
            assert!(
                refused.contains("hint: git switch topic"),
                "{args:?}: {refused}"
            );
        }
    };
    let repo = Repo::new();
    repo.stage("README.md", "# Sample\n").commit("first");
    repo.git(&["checkout", "-q", "-b", "topic"]);
    repo.stage("load.py", "import yaml\nconfig = yaml.unsafe_load(text)\n");
    repo.reviewer(&["review", "staged"]).run(1);
    // Git keeps a staged change.
    repo.git(&["checkout", "-q", "-b", "next"]);
    let taken = repo
        .reviewer(&["review", "--follow-up", "latest"])
        .run(1)
        .stderr;
    assert!(taken.contains("1 still present"), "{taken}");
    repo.git(&["stash", "-q"]);
    refused(&repo);
    repo.git(&["checkout", "-q", "topic"]);
    repo.git(&["stash", "pop", "-q", "--index"]);
    repo.commit("load");
    repo.git(&["checkout", "-q", "main"]);
    repo.stage("z.py", "z = 1\n");
    refused(&repo);
    repo.git(&["reset", "-q", "--hard"]);
    repo.git(&["merge", "-q", "topic"]);
    repo.stage("load.py", "import yaml\nconfig = yaml.safe_load(text)\n");
    let fixed = repo
        .reviewer(&["review", "--follow-up", "latest"])
        .run(0)
        .stderr;
    assert!(fixed.contains("1 fixed"), "{fixed}");
}

#[test]
fn a_change_that_was_stashed_is_not_fixed_on_its_branch_or_on_another_one() {
    const BAD: &str = "import yaml\nconfig = yaml.unsafe_load(text)\n";
    let begin = |is_staged: bool, is_new: bool| {
        let repo = Repo::new();
        repo.stage("README.md", "# Sample\n");
        if !is_new {
            repo.stage("load.py", "import yaml\n");
        }
        repo.commit("first");
        repo.git(&["checkout", "-q", "-b", "topic"]);
        match is_staged {
            true => repo.stage("load.py", BAD),
            false => repo.write("load.py", BAD),
        };
        repo.reviewer(&["review", if is_staged { "staged" } else { "changes" }])
            .run(1);
        repo
    };
    for (is_staged, is_new) in [(true, true), (true, false), (false, true), (false, false)] {
        let repo = begin(is_staged, is_new);
        repo.git(&["stash", "-q", "--include-untracked"]);
        repo.write("other.py", "x = 1\n")
            .git(&["stash", "-q", "--include-untracked"]);
        for branch in ["topic", "next"] {
            if branch == "next" {
                repo.git(&["checkout", "-q", "-b", "next"]);
            }
            repo.stage("z.py", "z = 1\n");
            let refused = repo
                .reviewer(&["review", "--follow-up", "latest"])
                .run(2)
                .stderr;
            assert!(
                refused.contains("is not in the worktree: stash@{1} has it"),
                "{is_staged} {is_new}: {refused}"
            );
            assert!(
                refused.contains("hint: bring it back: git stash pop 'stash@{1}'\n"),
                "{refused}"
            );
        }
        repo.git(&["reset", "-q", "--hard"]);
        repo.git(&["stash", "pop", "-q", "--index", "stash@{1}"]);
        let again = repo
            .reviewer(&["review", "--follow-up", "latest"])
            .run(1)
            .stderr;
        assert!(again.contains("1 still present"), "{again}");
        // A fix of the file counts, independent of a stash.
        repo.git(&["stash", "-q", "--include-untracked"]);
        repo.stage("load.py", BAD.replace("unsafe_load", "safe_load"));
        let fixed = repo
            .reviewer(&["review", "--follow-up", "latest"])
            .run(0)
            .stderr;
        assert!(fixed.contains("1 fixed"), "{fixed}");
    }
    let repo = begin(true, false);
    repo.git(&["stash", "-q"]);
    repo.stage("z.py", "z = 1\n");
    let refused = repo
        .reviewer(&["review", "--follow-up", "latest"])
        .run(2)
        .stderr;
    assert!(
        refused.contains("git stash drop 'stash@{0}' discards all that this stash holds\n"),
        "{refused}"
    );
}

#[test]
fn a_change_that_another_one_replaced_is_not_fixed_and_not_approved() {
    const BAD: &str = "import yaml\nconfig = yaml.unsafe_load(text)\n";
    let repo = Repo::new();
    repo.stage("load.py", "import yaml\n").commit("first");
    repo.stage("load.py", BAD);
    repo.reviewer(&["review", "staged"]).run(1);
    // The change was moved to a patch file or to another worktree, or reverted.
    repo.git(&["reset", "-q", "--hard"]);
    repo.stage("z.py", "z = 1\n");
    let run = repo.reviewer(&["review", "--follow-up", "latest"]).run(0);
    let other = run.stdout + &run.stderr;
    assert!(
        other.contains("1 not checked") && !other.contains("1 fixed"),
        "{other}"
    );
    assert!(
        other.contains("it reviewed another change: that of F1"),
        "{other}"
    );
    assert!(
        other.contains("no file and no line of the change that was reviewed before is in this one"),
        "{other}"
    );
    let refused = repo
        .reviewer(&["complete", "latest", "--status", "approved"])
        .run(2)
        .stderr;
    assert!(
        refused.contains("its last round reviewed another change"),
        "{refused}"
    );
    // It was restored, and is fixed now.
    repo.stage("load.py", BAD);
    let again = repo
        .reviewer(&["review", "--follow-up", "latest"])
        .run(1)
        .stderr;
    assert!(!again.contains("1 fixed"), "{again}");
    repo.stage("load.py", BAD.replace("unsafe_load", "safe_load"));
    let fixed = repo
        .reviewer(&["review", "--follow-up", "latest"])
        .run(0)
        .stderr;
    assert!(fixed.contains("1 fixed"), "{fixed}");
    repo.reviewer(&["complete", "latest", "--status", "approved"])
        .run(0);
}

#[test]
fn a_change_that_was_taken_back_with_nothing_in_its_place_is_fixed() {
    let repo = Repo::new();
    repo.stage("load.py", "import yaml\n").commit("first");
    repo.stage("load.py", "import yaml\nconfig = yaml.unsafe_load(text)\n");
    repo.reviewer(&["review", "staged"]).run(1);
    repo.git(&["reset", "-q", "--hard"]);
    let fixed = repo
        .reviewer(&["review", "--follow-up", "latest"])
        .run(0)
        .stderr;
    assert!(fixed.contains("1 fixed"), "{fixed}");
}
