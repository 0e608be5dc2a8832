//! Tests of the content that a decision is bound to: lines, copies of them, the base.

use super::*;

/// Returns the status of each finding of a review, as `file:line disposition`.
fn statuses(report: &Value) -> Vec<String> {
    let one = |f: &Value| {
        format!(
            "{}:{} {}",
            f["file"].as_str().unwrap(),
            f["line"],
            f["disposition"].as_str().unwrap()
        )
    };
    report["findings"]
        .as_array()
        .unwrap()
        .iter()
        .map(one)
        .collect()
}

fn gate(repo: &Repo, base: &str) -> Value {
    let args = [
        "review", "branch", "--base", base, "--gate", "--format", "json",
    ];
    serde_json::from_str(&repo.reviewer(&args).run_any().stdout).unwrap()
}

#[test]
fn dsp_01_in_gate_mode_a_decision_does_not_cover_another_copy_of_its_lines() {
    let decisions: [&[&str]; 2] = [
        &["reject", "F1", "--reason", "a demo", "--share"],
        &["baseline", "create"],
    ];
    for decision in decisions {
        let repo = Repo::new();
        repo.stage("README", "Sums.\n").commit("seed");
        repo.stage("web/run.py", CODE);
        repo.reviewer(&["review", "staged"]).run(1);
        decide(&repo, decision);
        repo.git(&["add", SHARED]);
        repo.commit("adopt");
        let new = CODE.replace("run", "serve");
        let indented = format!(
            "class Server:\n    {}",
            new.trim_end().replace('\n', "\n    ")
        );
        for (name, text, expected) in [
            ("above", format!("{new}\n\n{CODE}"), "web/run.py:2 pending"),
            ("below", format!("{CODE}\n\n{new}"), "web/run.py:6 pending"),
            (
                "indented, with other line ends",
                format!("{CODE}\n{indented}").replace('\n', "\r\n"),
                "",
            ),
            (
                "moved beside a copy",
                format!("import requests\n\n{new}\n    # moved\n{CODE}"),
                "web/run.py:4 pending",
            ),
        ] {
            repo.git(&["checkout", "-q", "-B", "topic", "main"]);
            repo.stage("web/run.py", text).commit(name);
            let report = gate(&repo, "main");
            let all = statuses(&report);
            assert!(
                !all.is_empty() && all.iter().all(|s| s.ends_with(" pending")),
                "{name}: {report}"
            );
            assert!(expected.is_empty() || all == [expected], "{name}: {all:?}");
            assert_eq!(report["verdict"], "block", "{name}");
        }
        // Only the line may move.
        repo.git(&["checkout", "-q", "-B", "topic", "main"]);
        repo.stage("web/run.py", format!("import requests\n\n{new}"))
            .commit("rename and move");
        assert_eq!(gate(&repo, "main")["verdict"], "pass");
    }
}

#[test]
fn dsp_01_a_decision_on_one_of_two_equal_lines_does_not_pass_to_the_other_one() {
    let repo = Repo::new();
    // A severity that policy sets holds for code that a change only moves, too.
    let policy = "[rules.severity]\npython-tls-verify-off = \"major\"\n";
    repo.stage("README", "Sums.\n")
        .stage(".claude-reviewer.toml", policy)
        .commit("seed");
    let other = CODE.replace("run", "serve");
    let both = format!("{CODE}{other}");
    repo.stage("web/run.py", &both);
    repo.review_json(&["staged"], 1);
    decide(&repo, &["reject", "F1"]);
    assert_eq!(
        statuses(&repo.review_json(&["staged"], 1)),
        ["web/run.py:2 rejected", "web/run.py:4 pending"]
    );
    // It is unknown which of them is left, even if it is the one with the decision.
    for one in [CODE, &other] {
        repo.stage("web/run.py", one);
        assert_eq!(
            statuses(&repo.review_json(&["staged"], 1)),
            ["web/run.py:2 pending"]
        );
    }
    repo.stage(
        "web/run.py",
        format!("{both}{}", CODE.replace("run", "third")),
    );
    assert_eq!(
        statuses(&repo.review_json(&["staged"], 1))
            .iter()
            .filter(|s| s.ends_with("pending"))
            .count(),
        3
    );
    // A change of only the second copy has one finding, the first of its kind in that change.
    repo.stage("web/run.py", &both).commit("both");
    repo.stage(
        "web/run.py",
        format!("{CODE}{}", other.replace("    return", "        return")),
    );
    assert_eq!(
        statuses(&repo.review_json(&["staged"], 1)),
        ["web/run.py:4 pending"]
    );
    repo.stage(
        "web/run.py",
        format!("{}{other}", CODE.replace("    return", "        return")),
    );
    assert_eq!(
        statuses(&repo.review_json(&["staged"], 0)),
        ["web/run.py:2 rejected"]
    );
}

#[test]
fn dsp_01_decisions_on_all_equal_lines_hold_for_each_of_them_and_for_fewer() {
    let repo = Repo::new();
    let names = ["one", "two", "three"];
    let code =
        |names: &[&str]| -> String { names.iter().map(|name| CODE.replace("run", name)).collect() };
    repo.stage("web/run.py", code(&names)).commit("seed");
    decide(&repo, &["baseline", "create"]);
    let text = std::fs::read_to_string(repo.path().join(SHARED)).unwrap();
    assert!(
        ["1 of 3", "2 of 3", "3 of 3"]
            .iter()
            .all(|o| text.contains(&format!("occurrence = \"{o}\""))),
        "{text}"
    );
    repo.git(&["add", SHARED]);
    repo.commit("adopt");
    for (left, dispositioned) in [
        (&names[..], 1),
        (&names[1..], 1),
        (&names[2..], 1),
        (&["two", "one"][..], 1),
    ] {
        repo.git(&["checkout", "-q", "-B", "topic", "main"]);
        let text = code(left);
        let (first, last) = text.rsplit_once("    return").unwrap();
        repo.stage("web/run.py", format!("{first}        return{last}"))
            .commit("change the last one");
        let report = gate(&repo, "main");
        assert_eq!(
            (&report["verdict"], &report["summary"]["dispositioned"]),
            (&json!("pass"), &json!(dispositioned))
        );
    }
    // All entries stay: they apply together.
    repo.stage("web/run.py", code(&names[1..]));
    assert_eq!(
        repo.reviewer(&["baseline", "check"]).run(0).stdout,
        "3 entries hold\n"
    );
    repo.git(&["checkout", "-q", "-f", "-B", "topic", "main"]);
    repo.stage("web/run.py", code(&["one", "two", "three", "four"]))
        .commit("a fourth one");
    assert_eq!(gate(&repo, "main")["verdict"], "block");
}

#[test]
fn dsp_02_an_entry_about_another_occurrence_covers_more() {
    let repo = Repo::new();
    repo.stage("web/run.py", format!("{CODE}{CODE}"))
        .commit("seed");
    decide(&repo, &["baseline", "create"]);
    repo.git(&["add", SHARED]);
    repo.commit("adopt");
    let text = std::fs::read_to_string(repo.path().join(SHARED)).unwrap();
    let without = text
        .lines()
        .filter(|l| !l.starts_with("occurrence"))
        .map(|l| format!("{l}\n"))
        .collect();
    for changed in [
        text.replace("1 of 2", "1 of 3"),
        text.replace("2 of 2", "1 of 2"),
        without,
    ] {
        repo.git(&["checkout", "-q", "-B", "topic", "main"]);
        repo.stage(SHARED, changed).commit("edit");
        let report = gate(&repo, "main");
        assert_eq!(
            report["findings"][0]["rule_id"], "policy-weakened",
            "{report}"
        );
    }
    repo.git(&["checkout", "-q", "-B", "topic", "main"]);
    for bad in ["3 of 2", "0 of 1", "all"] {
        repo.write(SHARED, text.replace("1 of 2", bad));
        let line = text.lines().position(|l| l.contains("1 of 2")).unwrap() + 1;
        let run = repo.reviewer(&["review", "staged"]).run(2);
        assert!(
            run.stderr
                .contains(&format!("{SHARED}:{line}: occurrence must be two numbers")),
            "{}",
            run.stderr
        );
    }
}

#[test]
fn a_decision_is_not_recorded_on_another_secret_than_the_reviewed_one() {
    let (one, other) = (
        crate::support::line_with_key(),
        crate::support::line_with_another_key(),
    );
    assert_eq!(one.len(), other.len());
    let around = |key: &str| format!("[prod]\n{key}[end]\n");
    for command in [
        &["reject", "F1", "--reason", "revoked"][..],
        &["defer", "F1"],
        &["accept", "F1"],
    ] {
        for (name, staged, worktree, code) in [
            (
                "staged and in the worktree",
                around(&other),
                around(&other),
                2,
            ),
            ("another one is staged", around(&other), around(&one), 0),
            (
                "another one is in the worktree",
                around(&one),
                around(&other),
                0,
            ),
            (
                "another line of the file",
                around(&one).replace("end", "last"),
                around(&one).replace("end", "last"),
                2,
            ),
        ] {
            let repo = Repo::new();
            repo.stage("README", "Keys.\n").commit("seed");
            repo.stage("app/keys.ini", around(&one));
            repo.review_json(&["staged"], 1);
            repo.stage("app/keys.ini", staged)
                .write("app/keys.ini", worktree);
            let run = repo.reviewer(command).run(code);
            assert_eq!(repo.path().join(OWN).exists(), code == 0, "{name}");
            if code == 2 {
                assert!(
                    run.stderr
                        .contains("app/keys.ini has changed since the review"),
                    "{name}: {}",
                    run.stderr
                );
                assert!(
                    run.stderr.contains("hint: review again"),
                    "{name}: {}",
                    run.stderr
                );
            } else if command[0] == "reject" {
                repo.stage("app/keys.ini", around(&other));
                assert_eq!(self::staged(&repo).1, "pending", "{name}");
                repo.stage("app/keys.ini", around(&one));
                assert_eq!(self::staged(&repo).1, "rejected", "{name}");
            }
        }
    }
}

#[test]
fn a_decision_is_not_recorded_on_lines_that_differ_beside_the_quote() {
    let repo = reviewed();
    repo.stage(
        "web/run.py",
        CODE.replace("return requests", "yield requests"),
    );
    let run = repo.reviewer(&["reject", "F1"]).run(2);
    assert!(
        run.stderr
            .contains("the lines of F1 at web/run.py:2 have changed since the review"),
        "{}",
        run.stderr
    );
    // A change of another line has no effect if nothing is masked.
    repo.stage("web/run.py", format!("{CODE}\n\nlast = 1\n"));
    decide(&repo, &["reject", "F1"]);
}

#[test]
fn decisions_that_are_shared_at_once_are_all_recorded() {
    let repo = Repo::new();
    repo.stage("README", "Sums.\n").commit("seed");
    for i in 0..8 {
        repo.stage(&format!("web/run{i}.py"), CODE);
    }
    repo.reviewer(&["review", "staged"]).run(1);
    let start = |i: usize| {
        let name = format!("F{}", i + 1);
        let args: &[&str] = if i == 7 {
            &["baseline", "create"]
        } else {
            &["reject", &name, "--share"]
        };
        repo.reviewer(args)
            .command()
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap()
    };
    let running: Vec<_> = (0..8).map(start).collect();
    for mut one in running {
        assert!(one.wait().unwrap().success());
    }
    let text = std::fs::read_to_string(repo.path().join(SHARED)).unwrap();
    assert_eq!(text.matches("[[disposition]]").count(), 8, "{text}");
    assert_eq!(text.matches("\"rejected\"").count(), 7, "{text}");
    let own = std::fs::read_to_string(repo.path().join(OWN)).unwrap();
    assert_eq!(own.matches("[[disposition]]").count(), 7, "{own}");
}

#[test]
fn pruning_a_baseline_keeps_decisions_that_a_scan_of_the_tree_cannot_check() {
    let repo = Repo::new();
    let test =
        "def test_sum():\n    assert 1 + 1 == 2\n\n\ndef test_more():\n    assert 2 + 2 == 4\n";
    repo.stage("tests/test_sum.py", test)
        .stage("old.py", CODE)
        .commit("seed");
    decide(&repo, &["baseline", "create", "--until", "2999-01-01"]);
    repo.git(&["checkout", "-q", "-b", "topic"]);
    repo.git(&["rm", "-q", "tests/test_sum.py"]);
    repo.stage("new.py", CODE.replace("run", "serve"));
    let report: Value = serde_json::from_str(
        &repo
            .reviewer(&["review", "staged", "--format", "json"])
            .run_any()
            .stdout,
    )
    .unwrap();
    let id = |rule: &str| {
        let all = report["findings"].as_array().unwrap();
        let found = all
            .iter()
            .find(|f| f["rule_id"] == rule || f["file"] == rule);
        found.unwrap_or_else(|| panic!("{rule}: {report}"))["id"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    decide(
        &repo,
        &[
            "defer",
            &id("test-deleted"),
            "--until",
            "2999-01-01",
            "--reason",
            "moved",
            "--share",
        ],
    );
    decide(
        &repo,
        &[
            "reject",
            &id("new.py"),
            "--reason",
            "a test server",
            "--share",
        ],
    );
    // The code of the rejected entry and that of the baseline entry are gone. Only the baseline
    // entry is pruned: a person's decision stays, and the tree cannot prove anything about the
    // deleted test.
    repo.stage("new.py", "x = 1\n").stage("old.py", "x = 1\n");
    let said = repo.reviewer(&["baseline", "check"]).run(1).stdout;
    assert_eq!(said.matches("does not hold: ").count(), 1, "{said}");
    assert_eq!(
        repo.reviewer(&["baseline", "prune"]).run(0).stdout,
        "1 entry removed\n"
    );
    let text = std::fs::read_to_string(repo.path().join(SHARED)).unwrap();
    assert!(
        text.contains("test-deleted") && text.contains("a test server") && !text.contains("old.py"),
        "{text}"
    );
    // An expired entry never applies, for any rule.
    repo.write(SHARED, text.replace("2999-01-01", "2020-01-01"));
    assert_eq!(
        repo.reviewer(&["baseline", "prune"]).run(0).stdout,
        "1 entry removed\n"
    );
    let text = std::fs::read_to_string(repo.path().join(SHARED)).unwrap();
    assert!(
        !text.contains("test-deleted") && text.contains("a test server"),
        "{text}"
    );
}

/// Returns a repository whose only commit lacks `web/run.py`, and the shared file that rejects the
/// finding in it. Both files are in the worktree.
fn rejected() -> (Repo, String) {
    let repo = Repo::new();
    repo.stage("README", "Sums.\n").commit("seed");
    repo.stage("web/run.py", CODE);
    repo.reviewer(&["review", "staged"]).run(1);
    decide(&repo, &["reject", "F1", "--share"]);
    let text = std::fs::read_to_string(repo.path().join(SHARED)).unwrap();
    repo.git(&["rm", "-q", "--cached", "web/run.py"]);
    (repo, text)
}

#[test]
fn dsp_02_an_entry_that_the_tip_of_the_base_revoked_does_not_open_the_gate() {
    let (repo, text) = rejected();
    repo.stage(SHARED, &text).commit("decide");
    repo.git(&["checkout", "-q", "-b", "topic"]);
    repo.stage("web/run.py", CODE).commit("the change");
    assert_eq!(gate(&repo, "main")["verdict"], "pass");
    let other = |from: &str, to: &str| text.replace(from, to);
    let head = text.split("\n[[").next().unwrap().to_owned();
    for (name, at_tip, verdict) in [
        ("kept", format!("{text}# a comment\n"), "pass"),
        ("removed", head, "block"),
        ("accepted", other("\"rejected\"", "\"accepted\""), "block"),
        (
            "expired",
            format!("{text}expires = \"2020-01-01\"\n"),
            "block",
        ),
        (
            "for a day that is to come",
            format!("{text}expires = \"2999-01-01\"\n"),
            "pass",
        ),
        (
            "about other lines",
            other("digest = \"scrypt:13:", "digest = \"scrypt:12:"),
            "block",
        ),
        (
            "about another finding",
            other(
                "fingerprint = \"",
                "fingerprint = \"0123456789abcdef0123456789abcdef\" # ",
            ),
            "block",
        ),
    ] {
        repo.git(&["checkout", "-q", "-f", "-B", "tip", "main"]);
        repo.stage(SHARED, at_tip).commit(name);
        repo.git(&["checkout", "-q", "-f", "topic"]);
        let report = gate(&repo, "tip");
        assert_eq!(report["verdict"], verdict, "{name}: {report}");
    }
    repo.git(&["checkout", "-q", "-f", "-B", "tip", "main"]);
    repo.git(&["rm", "-q", SHARED]);
    repo.commit("drop the file");
    repo.git(&["checkout", "-q", "-f", "topic"]);
    let report = gate(&repo, "tip");
    assert_eq!(report["verdict"], "block", "{report}");
    assert!(
        report["notes"]
            .to_string()
            .contains("lacks 1 of the decisions at the merge base"),
        "{report}"
    );
}

#[test]
fn dsp_02_with_two_merge_bases_an_entry_of_one_does_not_open_the_gate() {
    let (repo, text) = rejected();
    std::fs::remove_file(repo.path().join("web/run.py")).unwrap();
    for decides in ["one", "other"] {
        // Two branches that were merged into each other have two merge bases; only one of them has
        // the entry.
        repo.git(&["checkout", "-q", "-f", "-B", "one", "main"]);
        repo.stage("one.txt", format!("{decides}\n"));
        if decides == "one" {
            repo.stage(SHARED, &text);
        }
        repo.commit("one");
        repo.git(&["checkout", "-q", "-f", "-B", "other", "main"]);
        repo.stage("other.txt", format!("{decides}\n"));
        if decides == "other" {
            repo.stage(SHARED, &text);
        }
        repo.commit("other");
        repo.git(&["checkout", "-q", "-f", "-B", "base", "one"]);
        repo.git(&["merge", "-q", "--no-edit", "other"]);
        repo.git(&["checkout", "-q", "-f", "-B", "topic", "other"]);
        repo.git(&["merge", "-q", "--no-edit", "one"]);
        repo.stage("web/run.py", CODE).commit("the change");
        assert_eq!(
            repo.git(&["merge-base", "--all", "topic", "base"])
                .lines()
                .count(),
            2
        );
        let report = gate(&repo, "base");
        assert_eq!(report["verdict"], "block", "{decides}: {report}");
        assert_eq!(report["summary"]["dispositioned"], 0, "{decides}: {report}");
    }
}

#[test]
fn a_pattern_of_a_baseline_that_matches_nothing_is_named_as_such() {
    let repo = reviewed();
    for command in ["create", "check"] {
        let run = repo.reviewer(&["baseline", command, "nope/**"]).run(2);
        assert!(
            run.stderr.contains("GLOB matches no file: nope/**"),
            "{}",
            run.stderr
        );
        assert!(!run.stderr.contains("--files"), "{}", run.stderr);
    }
}

/// Returns the files below a folder that contain a text.
fn files_with(folder: &std::path::Path, text: &str) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_path_buf()];
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            match path.is_dir() {
                true => open.push(path),
                false if std::fs::read_to_string(&path).is_ok_and(|all| all.contains(text)) => {
                    found.push(path);
                }
                false => {}
            }
        }
    }
    found
}

#[test]
fn hashes_of_decisions_are_kept_for_the_next_command_but_not_for_a_gate_or_in_ci() {
    let repo = reviewed();
    decide(&repo, &["reject", "F1", "--reason", "a test server"]);
    let cache = repo.outside().join("cache");
    std::fs::create_dir_all(&cache).unwrap();
    let kept = || files_with(&cache, "decisions 1 ");
    let with = |args: &[&str], ci: Option<&str>| {
        let command = repo.reviewer(args).env("XDG_CACHE_HOME", &cache);
        match ci {
            Some(ci) => command.env("CI", ci).run_any(),
            None => command.run_any(),
        }
    };
    with(&["review", "staged", "--gate"], None);
    with(&["findings"], Some("true"));
    assert!(kept().is_empty());
    let first = with(&["findings", "--status", "rejected"], None).stdout;
    let files = kept();
    assert_eq!(files.len(), 1, "{first}");
    let mode = std::os::unix::fs::PermissionsExt::mode(
        &std::fs::metadata(&files[0]).unwrap().permissions(),
    );
    assert_eq!(mode & 0o777, 0o600);
    let text = std::fs::read_to_string(&files[0]).unwrap();
    assert!(
        first.contains("rejected") && !text.contains("verify"),
        "{first} {text}"
    );
    let again = with(&["findings", "--status", "rejected"], None).stdout;
    assert_eq!(first, again);
    // A damaged cache entry is computed again.
    std::fs::write(&files[0], "claude-reviewer reply 2 00\n{}").unwrap();
    assert_eq!(
        with(&["findings", "--status", "rejected"], None).stdout,
        first
    );
}
