//! Tests of gate mode: the policy of the base applies, and a change that weakens it is reported.

use super::{FILE, secret, with_base};

#[test]
fn cfg_04_in_gate_mode_the_base_rules_and_the_change_is_reported() {
    let repo = with_base(Some("version = 1\nblock_on = ['critical', 'major']\n"));
    repo.stage(FILE, "version = 1\nblock_on = []\nwarn_on = []\n");
    repo.stage("a.py", format!("key = '{}'\n", secret()));
    repo.commit("weaken");
    let report = repo.review_json(&["branch", "--base", "main", "--gate"], 1);
    assert_eq!(report["verdict"], "block");
    assert!(
        report["policy"]["origin"]
            .as_str()
            .unwrap()
            .starts_with("base@"),
        "{}",
        report["policy"]
    );
    let weakened: Vec<_> = report["findings"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|f| f["rule_id"] == "policy-weakened")
        .collect();
    assert!(
        weakened.iter().any(|f| f["line"] == 2 && f["file"] == FILE),
        "{report:#}"
    );
    // On its own, the weaker policy blocks too, and a waiver passes it.
    repo.git(&["rm", "-q", "a.py"]);
    repo.commit("no secret");
    repo.git(&["reset", "-q", "--soft", "main"]);
    repo.commit("weaken only");
    let report = repo.review_json(&["branch", "--base", "main", "--gate"], 1);
    let findings = report["findings"].as_array().unwrap();
    assert!(
        findings.iter().all(|f| f["rule_id"] == "policy-weakened"),
        "{report:#}"
    );
    let waive: Vec<String> = findings
        .iter()
        .map(|f| {
            format!(
                "{}=agreed in the meeting",
                f["fingerprint"].as_str().unwrap()
            )
        })
        .collect();
    let run = repo
        .reviewer(&[
            "review", "branch", "--base", "main", "--gate", "--format", "json",
        ])
        .env("CLAUDE_REVIEWER_WAIVE", waive.join("\n"))
        .run(0);
    let report: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(
        report["findings"][0]["waived"]["reason"], "agreed in the meeting",
        "{report:#}"
    );
}

/// Returns the texts of `policy-weakened`, in the order of the report.
fn weakenings(report: &serde_json::Value) -> Vec<(String, String)> {
    let text = |f: &serde_json::Value, key: &str| f[key].as_str().unwrap_or_default().to_owned();
    let all = report["findings"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|f| f["rule_id"] == "policy-weakened");
    all.map(|f| (text(f, "file"), text(f, "quote"))).collect()
}

#[test]
fn cfg_04_a_first_policy_is_one_finding_in_gate_mode_and_none_at_the_desk() {
    let repo = with_base(None);
    let first = "version = 1\nblock_on = ['critical']\nwarn_on = []\nignore = ['vendor/**']\n";
    repo.stage(FILE, first);
    let staged = repo.review_json(&["staged", "--no-gate"], 0);
    assert_eq!(weakenings(&staged), []);
    repo.commit("adopt");
    let branch = ["branch", "--base", "main"];
    assert_eq!(
        weakenings(&repo.review_json(&[&branch[..], &["--no-gate"]].concat(), 0)),
        []
    );
    let report = repo.review_json(&[&branch[..], &["--gate"]].concat(), 1);
    let found = weakenings(&report);
    assert_eq!(found.len(), 1, "{report:#}");
    for part in [
        "block_on no longer includes major",
        "warn_on no longer includes minor",
        "ignore now matches vendor/**",
    ] {
        assert!(found[0].1.contains(part), "{part}: {found:?}");
    }
    let waive = format!(
        "{}=agreed",
        report["findings"][0]["fingerprint"].as_str().unwrap()
    );
    repo.review(&[&branch[..], &["--gate", "--waive", &waive]].concat(), 0);
    // The waiver applies to this policy, independent of the length of another one's list.
    let more = |n: usize| {
        let globs: Vec<String> = (0..n)
            .map(|i| format!("'a-long-name-of-a-folder-{i}/**'"))
            .collect();
        repo.stage(
            FILE,
            format!("version = 1\nignore = [{}]\n", globs.join(", ")),
        );
        repo.commit("more");
        let report = repo.review_json(&[&branch[..], &["--gate"]].concat(), 1);
        report["findings"][0]["fingerprint"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    assert_ne!(more(40), more(41));
    // A policy that is at least as strict as the defaults loosens nothing.
    repo.stage(FILE, "version = 1\nblock_on = ['minor']\n");
    repo.commit("strict");
    assert_eq!(
        weakenings(&repo.review_json(&[&branch[..], &["--gate"]].concat(), 0)),
        []
    );
    // With a policy at the base, a local review reports it.
    repo.stage(FILE, "version = 1\nblock_on = []\n");
    assert_eq!(
        weakenings(&repo.review_json(&["staged", "--no-gate"], 0)).len(),
        1
    );
}

#[test]
fn cfg_04_a_weaker_rule_of_the_team_is_reported() {
    const RULE: &str = "[[rule]]\nid = 'no-sleep'\ntitle = 'Sleep'\ncategory = 'performance'\nseverity = 'major'\n\
        languages = ['python']\nliterals = ['sleep(']\npattern = 'sleep'\nmessage = 'A handler must not sleep'\n";
    let (default, named) = (".claude-reviewer/rules/team.toml", "lint/team.toml");
    for (policy, file) in [
        (None, default),
        (Some("[rules]\npaths = ['lint/']\n"), named),
    ] {
        let repo = with_base(policy);
        repo.git(&["checkout", "-q", "main"]);
        repo.stage(file, RULE);
        repo.commit("rules");
        repo.git(&["checkout", "-q", "-B", "topic"]);
        let gate = |code: i32| {
            weakenings(&repo.review_json(&["branch", "--base", "main", "--gate"], code))
        };
        let one = |text: &str| vec![(file.to_owned(), text.to_owned())];
        // A new rule and a stricter one do not weaken anything.
        repo.stage(
            file,
            RULE.replace("'major'", "'critical'") + &RULE.replace("no-sleep", "no-nap"),
        );
        repo.commit("stricter");
        assert_eq!(gate(0), []);
        repo.stage(file, RULE.replace("'major'", "'suggestion'"));
        let lowered = repo.commit("lowered");
        let text =
            "rule no-sleep may let more through: severity is lowered from major to suggestion";
        assert_eq!(gate(1), one(text));
        repo.stage(
            file,
            RULE.replace("pattern = 'sleep'", "pattern = 'sleep_never'"),
        );
        repo.commit("narrowed");
        let text =
            "rule no-sleep may let more through: pattern changes from \"sleep\" to \"sleep_never\"";
        assert_eq!(gate(1), one(text));
        repo.git(&["rm", "-q", file]);
        repo.commit("deleted");
        assert_eq!(gate(1), one("rule no-sleep is removed"));
        // In a range, each commit is compared with the previous one.
        let report = repo.review_json(&["commit", "main..HEAD", "--gate"], 1);
        let texts: Vec<_> = weakenings(&report).into_iter().map(|(_, t)| t).collect();
        assert_eq!(texts.len(), 4, "{texts:?}");
        assert!(
            report["findings"]
                .as_array()
                .unwrap()
                .iter()
                .any(|f| f["commit"] == lowered.as_str()),
            "{report:#}"
        );
        // A file elsewhere is not a rule file.
        repo.git(&["reset", "-q", "--hard", "main"]);
        repo.stage("other/team.toml", RULE);
        repo.commit("elsewhere");
        repo.git(&["rm", "-q", "other/team.toml"]);
        repo.commit("gone");
        assert_eq!(
            weakenings(&repo.review_json(&["commit", "main..HEAD", "--gate"], 0)),
            []
        );
    }
}

#[test]
fn cfg_05_a_change_cannot_ignore_its_own_secret() {
    for (name, head, body) in [
        (
            "ignore",
            "ignore = ['*.py']\n",
            format!("key = '{}'\n", secret()),
        ),
        (
            "path",
            "[[path]]\nglob = '**'\nblock_on = []\nwarn_on = []\n",
            format!("key = '{}'\n", secret()),
        ),
        (
            "inline",
            "version = 1\n",
            format!(
                "key = '{}'  # claude-reviewer: ignore[aws-access-key-id] a sample\n",
                secret()
            ),
        ),
    ] {
        let repo = with_base(None);
        repo.stage(FILE, head);
        repo.stage("a.py", body);
        repo.commit("head");
        let report = repo.review_json(&["branch", "--base", "main", "--gate"], 1);
        let blocking = |f: &serde_json::Value| f["file"] == "a.py" && f["blocking"] == true;
        assert!(
            report["findings"].as_array().unwrap().iter().any(blocking),
            "{name}: {report:#}"
        );
    }
}

#[test]
fn cfg_08_without_a_base_the_gate_is_closed() {
    let repo = with_base(None);
    repo.stage("b.txt", "b\n");
    repo.commit("head");
    for base in [
        "nope",
        "origin/main",
        "0123456789012345678901234567890123456789",
    ] {
        let run = repo.review(&["branch", "--base", base, "--gate"], 2);
        assert!(run.stderr.contains("error: "), "{}", run.stderr);
    }
}
