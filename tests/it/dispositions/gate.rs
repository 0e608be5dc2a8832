//! Decisions in gate mode: only those of the base count.

use super::*;

#[test]
fn dsp_02_in_gate_mode_only_the_base_decides_and_a_new_entry_is_one_finding() {
    let repo = reviewed();
    repo.git(&["checkout", "-q", "-b", "topic"]);
    repo.stage("web/other.py", CODE).commit("add run");
    let branch = [
        "review", "branch", "--base", "main", "--gate", "--format", "json",
    ];
    let review =
        || -> Value { serde_json::from_str(&repo.reviewer(&branch).run_any().stdout).unwrap() };
    let rules = |report: &Value| -> Vec<String> {
        let all = report["findings"].as_array().unwrap();
        all.iter()
            .map(|f| {
                format!(
                    "{} {}",
                    f["rule_id"].as_str().unwrap(),
                    f["disposition"].as_str().unwrap()
                )
            })
            .collect()
    };
    let before = review();
    let [one, other] = &rules(&before)[..] else {
        panic!("{before}")
    };
    assert!(one.ends_with(" pending") && one == other, "{before}");
    // The person's own file never counts in gate mode.
    repo.reviewer(&["review", "branch", "--base", "main"])
        .run(1);
    decide(&repo, &["reject", "F1", "F2", "--share"]);
    assert_eq!(rules(&review()), rules(&before));
    // The file in the change does not count either.
    repo.git(&["add", SHARED]);
    repo.commit("reject both");
    let report = review();
    let weakened: Vec<_> = rules(&report)
        .into_iter()
        .filter(|r| r.starts_with("policy-weakened"))
        .collect();
    assert_eq!(weakened, ["policy-weakened pending"], "{report}");
    assert_eq!(
        rules(&report).iter().filter(|r| *r == one).count(),
        2,
        "{report}"
    );
    assert_eq!(report["verdict"], "block");
    // In a local review it counts, without a finding about the file.
    let desk = repo.review_json(&["branch", "--base", "main"], 0);
    assert_eq!(desk["summary"]["dispositioned"], 2, "{desk}");
    // Once it is merged, it counts for the next change.
    repo.git(&["checkout", "-q", "main"]);
    repo.git(&["checkout", "-q", "topic", "--", SHARED]);
    repo.commit("take the decisions");
    repo.git(&["checkout", "-q", "topic"]);
    repo.git(&["rebase", "-q", "main"]);
    let report = review();
    assert_eq!(
        (&report["verdict"], &report["summary"]["dispositioned"]),
        (&json!("pass"), &json!(2)),
        "{report}"
    );
}

#[test]
fn dsp_02_in_gate_mode_a_finding_about_the_whole_change_is_not_dismissed() {
    let server = Server::start(|r| match r.is_refutation() {
        true => r.verdict(false),
        false => {
            let mut document = r.document(&[]);
            document["missing_requirements"] = json!([{
                "requirement": "Requests have no timeout.", "severity": "major",
                "reference": "DESIGN.md#Limits: \"Every request has a timeout.\"",
            }]);
            r.text(&document.to_string())
        }
    });
    let repo = Repo::new();
    repo.stage("DESIGN.md", "# Limits\n\nEvery request has a timeout.\n");
    repo.stage(".claude-reviewer.toml", server.policy("openai"))
        .commit("seed");
    repo.git(&["branch", "base"]);
    repo.git(&["checkout", "-q", "-b", "feature"]);
    repo.stage("run.py", "total = 1\n").commit("the change");
    let review = |more: &[&str]| {
        let args = [
            &[
                "review",
                "branch",
                "--base",
                "base",
                "--doc",
                "DESIGN.md",
                "--format",
                "json",
            ],
            more,
        ]
        .concat();
        let report: Value = serde_json::from_str(&repo.reviewer(&args).run_any().stdout).unwrap();
        let finding = &report["findings"][0];
        assert_eq!(
            (&finding["file"], &finding["category"]),
            (&Value::Null, &json!("missing-requirement")),
            "{report}"
        );
        report["findings"][0]["disposition"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    assert_eq!(review(&[]), "pending");
    decide(&repo, &["reject", "F1", "--reason", "not here", "--share"]);
    assert_eq!(review(&[]), "rejected");
    let shared = std::fs::read_to_string(repo.path().join(SHARED)).unwrap();
    repo.git(&["checkout", "-q", "base"]);
    repo.stage(SHARED, shared).commit("decisions");
    repo.git(&["checkout", "-q", "feature"]);
    repo.git(&["merge", "-q", "--no-edit", "base"]);
    assert_eq!(
        review(&["--gate"]),
        "pending",
        "no content binds the entry to this change"
    );
}

#[test]
fn dsp_02_an_entry_that_a_change_widens_by_hand_is_one_finding() {
    let repo = reviewed();
    decide(&repo, &["defer", "F1", "--until", "2999-01-01", "--share"]);
    repo.git(&["add", SHARED]);
    repo.commit("adopt");
    let text = std::fs::read_to_string(repo.path().join(SHARED)).unwrap();
    let without = |key: &str| -> String {
        text.lines()
            .filter(|l| !l.starts_with(key))
            .map(|l| format!("{l}\n"))
            .collect()
    };
    let other = text.replace(
        "fingerprint = \"",
        "fingerprint = \"0123456789abcdef0123456789abcdef\" # ",
    );
    let changes = [
        ("a later day", text.replace("2999-", "3999-")),
        ("rejected", text.replace("\"deferred\"", "\"rejected\"")),
        ("no digest", without("digest")),
        (
            "another path",
            text.replace("path = \"web/run.py\"", "path = \"**\""),
        ),
        ("another finding", other),
        ("not TOML", format!("{text}x =\n")),
        ("an unknown key", format!("{text}scope = \"all\"\n")),
        (
            "a second entry",
            format!("{text}{}", &text[text.find("\n[[").unwrap()..]),
        ),
        (
            "a newer version",
            text.replace("version = 1", "version = 2"),
        ),
        ("too large", format!("{text}#{}\n", "x".repeat(5 << 20))),
    ];
    for (name, changed) in changes {
        assert_ne!(changed, text, "{name}");
        repo.git(&["checkout", "-q", "-B", "topic", "main"]);
        repo.stage(SHARED, changed).commit(name);
        let report = repo.review_json(&["branch", "--base", "main", "--gate"], 1);
        let rules: Vec<_> = report["findings"]
            .as_array()
            .unwrap()
            .iter()
            .map(|f| f["rule_id"].clone())
            .collect();
        assert_eq!(rules, ["policy-weakened"], "{name}: {report}");
    }
    repo.git(&["checkout", "-q", "-B", "topic", "main"]);
    repo.stage(SHARED, text.replace("2999-", "2998-"))
        .commit("a sooner day");
    repo.review_json(&["branch", "--base", "main", "--gate"], 0);
}
