//! Tests of commands for team rules: `rules new`, and `list`, `explain` and `test` with rules of
//! the repository.

use crate::support::Repo;
use serde_json::Value;

const RULES: &str = ".claude-reviewer/rules";

/// A rule without its message, one with an unknown key, and one without an ID.
const BROKEN: &str = "[[rule]]\nid = \"no-sleep\"\ntitle = \"t\"\ncategory = \"bug\"\nseverity = \"minor\"\n\
    plaec = \"code\"\nliterals = [\"sleep\"]\npattern = \"sleep\"\n\n[[rule]]\ntitle = \"t\"\nmessage = \"m\"\n";

/// Creates a repository whose rules folder has the template of `rules new`.
fn with_template() -> Repo {
    let repo = Repo::new();
    let run = repo.reviewer(&["rules", "new", "no-retired-calls"]).run(0);
    assert_eq!(
        run.stdout.lines().next(),
        Some("wrote .claude-reviewer/rules/no-retired-calls.toml")
    );
    repo
}

#[test]
fn the_template_of_a_new_rule_passes_its_test_and_finds_its_sample() {
    let repo = with_template();
    let run = repo.reviewer(&["rules", "test", RULES]).run(0);
    assert_eq!(run.stdout, "1 rule, 2 samples: ok\n");
    // The rule file itself contains the sample that the rule matches, and is not a finding of it.
    repo.git(&["add", RULES]);
    repo.stage("a.py", "x = retired_call(1)\n");
    let report = repo.review_json(&["staged", "--no-save"], 0);
    let found: Vec<_> = report["findings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|f| (&f["rule_id"], &f["file"]))
        .collect();
    assert_eq!(
        found,
        [(&Value::from("no-retired-calls"), &Value::from("a.py"))]
    );
}

#[test]
fn a_rule_file_is_still_checked_by_built_in_rules() {
    let repo = with_template();
    let file = format!("{RULES}/no-retired-calls.toml");
    let text = std::fs::read_to_string(repo.path().join(&file)).unwrap();
    let key = crate::support::line_with_key();
    repo.stage(&file, format!("{text}# {}", key));
    let report = repo.review_json(&["staged", "--no-save"], 1);
    assert_eq!(report["findings"][0]["file"], file.as_str());
    // A file elsewhere in the form of a rule file is scanned by all rules.
    repo.git(&["reset", "-q"]);
    repo.stage("other/no-retired-calls.py", "x = retired_call(1)\n");
    let report = repo.review_json(&["staged", "--no-save"], 0);
    assert_eq!(report["findings"][0]["rule_id"], "no-retired-calls");
}

#[test]
fn a_new_rule_overwrites_nothing_and_needs_a_free_id() {
    let repo = with_template();
    let file = repo.path().join(RULES).join("no-retired-calls.toml");
    std::fs::write(&file, "# mine\n").unwrap();
    for (id, error, hint) in [
        (
            "no-retired-calls",
            "no-retired-calls.toml already exists",
            "choose another ID",
        ),
        (
            "No Sleep",
            "invalid rule ID \"No Sleep\"",
            "claude-reviewer rules new no-sleep",
        ),
        ("../x", "invalid rule ID", "claude-reviewer rules new x"),
        (
            "conflict-marker",
            "belongs to a built-in rule",
            "claude-reviewer rules new team-conflict-marker",
        ),
    ] {
        let run = repo.reviewer(&["rules", "new", id]).run(2);
        assert!(
            run.stderr.contains(error) && run.stderr.contains(&format!("hint: {hint}")),
            "{id}: {}",
            run.stderr
        );
    }
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "# mine\n");
    repo.reviewer(&["rules", "new", "elsewhere", "--dir", "lint/rules"])
        .run(0);
    assert!(repo.path().join("lint/rules/elsewhere.toml").is_file());
}

#[test]
fn a_new_rule_is_not_written_through_a_link() {
    let repo = Repo::new();
    std::fs::create_dir(repo.outside()).unwrap();
    std::os::unix::fs::symlink(repo.outside(), repo.path().join("lnk")).unwrap();
    for folder in ["lnk", "lnk/deep"] {
        repo.write(
            ".claude-reviewer.toml",
            format!("version = 1\n[rules]\npaths = [\"{folder}\"]\n"),
        );
        let run = repo.reviewer(&["rules", "new", "no-sleep"]).run(2);
        assert!(
            run.stderr.contains("lnk is a symbolic link"),
            "{folder}: {}",
            run.stderr
        );
    }
    assert_eq!(std::fs::read_dir(repo.outside()).unwrap().count(), 0);
}

#[test]
fn no_text_of_a_team_rule_acts_on_a_terminal() {
    let repo = with_template();
    let file = format!("{RULES}/no-retired-calls.toml");
    let text = std::fs::read_to_string(repo.path().join(&file)).unwrap();
    repo.write(
        &file,
        text.replace(
            "no longer maintained",
            "gone\\u001b[2J \u{202e}txt \\U000e0041 \\\"q\\\"",
        ),
    );
    for format in ["human", "json", "toml"] {
        let out = repo
            .reviewer(&["rules", "explain", "no-retired-calls", "--format", format])
            .run(0)
            .stdout;
        assert!(
            !out.contains(['\u{1b}', '\u{202e}', '\u{e0041}']) && out.contains("gone"),
            "{format}: {out}"
        );
    }
    let toml = repo
        .reviewer(&["rules", "explain", "no-retired-calls", "--format", "toml"])
        .run(0)
        .stdout;
    let other = Repo::new();
    other.write(&file, toml);
    let json = |repo: &Repo| {
        repo.reviewer(&["rules", "explain", "no-retired-calls", "--format", "json"])
            .run(0)
            .stdout
    };
    let message = |repo: &Repo| {
        serde_json::from_str::<Value>(&json(repo)).unwrap()["rules"][0]["message"].clone()
    };
    assert_eq!(
        message(&other),
        message(&repo),
        "an escaped text is the same text"
    );
}

#[test]
fn the_policy_names_the_folder_of_a_new_rule() {
    let repo = Repo::new();
    repo.stage(
        ".claude-reviewer.toml",
        "version = 1\n[rules]\npaths = [\"ci/review\"]\n",
    );
    let run = repo.reviewer(&["rules", "new", "no-sleep"]).run(0);
    assert!(
        run.stdout.starts_with("wrote ci/review/no-sleep.toml\n"),
        "{}",
        run.stdout
    );
    assert!(
        run.stdout
            .contains("claude-reviewer rules test ci/review/no-sleep.toml"),
        "{}",
        run.stdout
    );
}

#[test]
fn team_rules_are_listed_and_explained_with_their_place() {
    let repo = with_template();
    let table = repo.reviewer(&["rules", "list"]).run(0).stdout;
    let row = table
        .lines()
        .find(|l| l.starts_with("no-retired-calls "))
        .unwrap();
    assert!(
        row.ends_with("(.claude-reviewer/rules/no-retired-calls.toml:5)"),
        "{row}"
    );
    assert!(table.contains("(1 team rule)"), "{table}");
    let list = repo
        .reviewer(&["rules", "list", "--format", "json"])
        .run(0)
        .stdout;
    let list: Value = serde_json::from_str(&list).unwrap();
    let team: Vec<_> = list["rules"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|r| !r["origin"].is_null())
        .collect();
    assert_eq!(
        (team.len(), &team[0]["id"]),
        (1, &Value::from("no-retired-calls"))
    );

    let text = repo
        .reviewer(&["rules", "explain", "no-retired-calls"])
        .run(0)
        .stdout;
    for part in [
        "retired_call is no longer maintained",
        "Fix:",
        ".claude-reviewer/rules/no-retired-calls.toml:5",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let run = repo
        .reviewer(&["rules", "explain", "no-retired-call"])
        .run(2);
    assert!(
        run.stderr.contains("did you mean \"no-retired-calls\"?"),
        "{}",
        run.stderr
    );
    // The policy's severity applies.
    repo.write(
        ".claude-reviewer.toml",
        "version = 1\n[rules.severity]\nno-retired-calls = \"major\"\n",
    );
    let text = repo
        .reviewer(&["rules", "explain", "no-retired-calls"])
        .run(0)
        .stdout;
    assert!(text.starts_with("no-retired-calls (major, "), "{text}");
}

#[test]
fn a_rule_printed_as_toml_is_a_rule_file() {
    let repo = with_template();
    for (id, copy) in [
        ("no-retired-calls", "no-retired-calls"),
        ("python-flask-debug", "team-python-flask-debug"),
    ] {
        let toml = repo
            .reviewer(&["rules", "explain", id, "--format", "toml"])
            .run(0)
            .stdout;
        let other = Repo::new();
        other.write(&format!("{RULES}/copy.toml"), toml);
        let text = other.reviewer(&["rules", "explain", copy]).run(0).stdout;
        assert!(text.contains(".claude-reviewer/rules/copy.toml:"), "{text}");
    }
    let run = repo
        .reviewer(&["rules", "explain", "conflict-marker", "--format", "toml"])
        .run(2);
    assert!(
        run.stderr.contains("cannot print conflict-marker as TOML"),
        "{}",
        run.stderr
    );
}

#[test]
fn one_error_lists_every_problem_of_a_rule_file() {
    let repo = Repo::new();
    repo.stage("a.py", "x = 1\n")
        .stage(&format!("{RULES}/a.toml"), BROKEN);
    let expected = [
        "a.toml:1: rule \"no-sleep\": missing key `message`",
        "a.toml:6: rule \"no-sleep\": unknown key `plaec`, did you mean `place`?",
        "a.toml:10: missing key `id`",
        "a.toml:10: missing key `category`",
        "a.toml:10: missing key `severity`",
        "a.toml:10: missing key `literals`",
        "a.toml:10: missing key `pattern`",
    ];
    for args in [
        &["rules", "test", RULES][..],
        &["rules", "list"],
        &["review", "staged", "--no-save"],
    ] {
        let run = repo.reviewer(args).run(2);
        assert!(
            run.stderr.contains("7 problems in rule files"),
            "{args:?}: {}",
            run.stderr
        );
        for problem in expected {
            assert!(
                run.stderr.contains(problem),
                "{args:?}: {problem}: {}",
                run.stderr
            );
        }
    }
    // The explanation of a built-in rule does not depend on the team's files.
    repo.reviewer(&["rules", "explain", "conflict-marker"])
        .run(0);
}

#[test]
fn the_template_of_a_structural_rule_passes_its_test_and_its_fix_is_applied() {
    let repo = Repo::new();
    let file = format!("{RULES}/no-retired-calls.yml");
    let run = repo
        .reviewer(&["rules", "new", "no-retired-calls", "--structural"])
        .run(0);
    assert_eq!(
        run.stdout.lines().next(),
        Some(format!("wrote {file}").as_str())
    );
    assert_eq!(
        repo.reviewer(&["rules", "test", RULES]).run(0).stdout,
        "1 rule, 2 samples: ok\n"
    );
    assert_eq!(
        repo.reviewer(&["rules", "test", &file]).run(0).stdout,
        "1 rule, 2 samples: ok\n"
    );
    repo.git(&["add", RULES]);
    repo.stage("a.py", "x = 1\ny = retired_call(\n    x,\n)\n");
    repo.reviewer(&["review", "staged"]).run(0);
    let listed = repo.reviewer(&["findings"]).run(0).stdout;
    assert!(
        listed.contains("a.py:2  no-retired-calls: retired_call(x) is no longer maintained"),
        "{listed}"
    );
    repo.reviewer(&["apply", "F1"]).run(0);
    assert_eq!(
        std::fs::read_to_string(repo.path().join("a.py")).unwrap(),
        "x = 1\ny = new_call(x)\n"
    );
    let explained = repo
        .reviewer(&["rules", "explain", "no-retired-calls"])
        .run(0)
        .stdout;
    assert!(
        explained.contains(&format!("{file}:6")) && explained.contains("Call its replacement."),
        "{explained}"
    );
    let refused = repo
        .reviewer(&["rules", "explain", "no-retired-calls", "--format", "toml"])
        .run(2)
        .stderr;
    assert!(
        refused.contains("it is a structural rule")
            && refused.contains(&format!("hint: see {file}:6")),
        "{refused}"
    );
}

#[test]
fn gov_a_change_cannot_weaken_a_structural_rule_that_judges_it() {
    let repo = Repo::new();
    repo.reviewer(&["rules", "new", "no-retired-calls", "--structural"])
        .run(0);
    let file = format!("{RULES}/no-retired-calls.yml");
    let rule = std::fs::read_to_string(repo.path().join(&file))
        .unwrap()
        .replace("warning", "error");
    repo.stage(&file, &rule).commit("Add a rule");
    repo.git(&["checkout", "-q", "-b", "topic"]);
    for (name, weaker, what) in [
        ("removed", String::new(), "rule no-retired-calls is removed"),
        (
            "off",
            rule.replace("severity: error", "severity: off"),
            "rule no-retired-calls is removed",
        ),
        (
            "lowered",
            rule.replace("severity: error", "severity: info"),
            "severity is lowered from major to suggestion",
        ),
        (
            "narrowed",
            rule.replace("rule:\n", "rule:\n  inside: { kind: class_definition }\n"),
            "pattern changes",
        ),
        (
            "ignored",
            rule.replace("fix:", "ignores: ['a.py']\nfix:"),
            "not_paths now holds a.py",
        ),
        (
            "broken",
            rule.replace("language: python", "language: cobol"),
            "every gate that uses them stops",
        ),
    ] {
        repo.git(&["checkout", "-q", "-B", "topic", "main"]);
        repo.stage(&file, &weaker)
            .stage("a.py", "y = retired_call(1)\n")
            .commit(name);
        let report = repo.review_json(&["branch", "--base", "main", "--gate", "--no-save"], 1);
        let found = report["findings"].as_array().unwrap();
        let of = |rule: &str| {
            found
                .iter()
                .find(|f| f["rule_id"] == rule)
                .map(|f| f["message"].as_str().unwrap_or_default())
        };
        assert!(
            of("no-retired-calls").is_some(),
            "{name}: the base's rule judges: {report:#}"
        );
        assert!(
            of("policy-weakened").is_some_and(|m| m.contains(what)),
            "{name}: {report:#}"
        );
    }
}
