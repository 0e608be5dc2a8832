//! End-to-end tests of replies of models: the rows about replies.
//!
//! `fixtures/replies` contains whole replies, in which `NONCE` stands for the nonce of the run.

#[path = "../../benches/anchor/perturb.rs"]
mod perturb;

use crate::loopback::{Request, Server, finding};
use crate::support::{Repo, line_with_key};
use perturb::{Bar, Figures, Way};
use serde_json::{Value, json};

const FLAW: &str = "fn half(n: u32) -> u32 {\n    n / (n - n)\n}\n";

fn fixture(name: &str) -> String {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("fixtures/replies")
        .join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// A repository with one staged file and a policy that asks the server.
fn staged(server: &Server) -> Repo {
    let repo = Repo::new();
    repo.stage("README.md", "# Sample\n");
    repo.stage("src/half.rs", "// Halves numbers.\n");
    repo.commit("first");
    repo.write(".claude-reviewer.toml", server.policy("openai"));
    repo.stage("src/half.rs", FLAW);
    repo
}

#[track_caller]
fn report(repo: &Repo, code: i32) -> Value {
    let args = ["review", "staged", "--format", "json", "--no-cache"];
    let run = repo
        .reviewer(&args)
        .env("OPENAI_API_KEY", "0000000000")
        .run(code);
    serde_json::from_str(&run.stdout)
        .unwrap_or_else(|e| panic!("no JSON: {e}\n{}\n{}", run.stdout, run.stderr))
}

/// Answers every question with a text, disputes nothing, and expects an exit code and a number of
/// questions about the change.
#[track_caller]
fn answered(
    text: impl Fn(&Request) -> String + Send + Sync + 'static,
    code: i32,
    questions: usize,
) -> Value {
    let server = Server::start(move |r: &Request| match r.is_refutation() {
        true => r.verdict(false),
        false => r.text(&text(r).replace("NONCE", &r.nonce())),
    });
    let report = report(&staged(&server), code);
    let about_the_change = server
        .questions()
        .iter()
        .filter(|r| !r.is_refutation())
        .count();
    assert_eq!(about_the_change, questions, "{report:#}");
    report
}

/// The same with a reply of `fixtures/replies`.
#[track_caller]
fn replied(name: &'static str, code: i32, questions: usize) -> Value {
    let text = fixture(name);
    let report = answered(move |_| text.clone(), code, questions);
    if code == 3 {
        let why = reasons(&report);
        assert!(
            why.contains("src/half.rs"),
            "{name}: the file is named: {why}"
        );
    }
    report
}

/// The same with one finding.
#[track_caller]
fn claimed(claim: Value, code: i32) -> Value {
    answered(
        move |r| r.document(std::slice::from_ref(&claim)).to_string(),
        code,
        1,
    )
}

fn with(mut claim: Value, members: Value) -> Value {
    if let (Value::Object(claim), Value::Object(members)) = (&mut claim, members) {
        claim.extend(members);
    }
    claim
}

fn half() -> Value {
    finding("src/half.rs", 2, "    n / (n - n)")
}

fn reasons(report: &Value) -> String {
    report["coverage"]["failed"].to_string()
}

fn notes(report: &Value) -> String {
    report["notes"].to_string()
}

#[test]
fn out_01_prose_is_asked_about_once_more_and_then_incomplete() {
    for name in [
        "prose.txt",
        "prose-before.txt",
        "prose-behind.txt",
        "list.json",
        "twice.json",
    ] {
        let report = replied(name, 3, 2);
        assert_eq!(report["verdict"], "incomplete", "{name}");
        assert_eq!(
            report["findings"],
            json!([]),
            "{name}: a reply that was refused leaves nothing behind"
        );
    }
}

#[test]
fn out_01_a_reply_that_was_mended_counts() {
    let (prose, valid) = (fixture("prose-before.txt"), fixture("valid.json"));
    let report = answered(
        move |r| {
            if r.number == 0 {
                prose.clone()
            } else {
                valid.clone()
            }
        },
        1,
        2,
    );
    assert_eq!(report["findings"][0]["title"], "divides by zero");
    // And one for the second check.
    assert_eq!(report["usage"][0]["requests"], 3);
}

#[test]
fn out_01_a_fence_and_thinking_in_front_are_taken_off() {
    for name in ["valid.json", "fenced.txt", "thinking.txt"] {
        let report = replied(name, 1, 1);
        assert_eq!(report["findings"][0]["line"], 2, "{name}");
    }
}

#[test]
fn out_02_depth_numbers_and_sizes_are_bounded() {
    let deep =
        |open: &str, close: &str| format!("{}{}", open.repeat(100_000), close.repeat(100_000));
    for (text, said) in [
        (
            format!("{{\"nonce\": \"NONCE\", \"findings\": {}}}", deep("[", "]")),
            "nesting",
        ),
        (deep("{\"a\":", "}"), "nesting"),
        (
            format!(
                "{{\"nonce\": \"NONCE\", \"findings\": [{}{{}}]}}",
                "{},".repeat(1_000_000)
            ),
            "more than",
        ),
        (
            format!(
                "{{\"nonce\": \"NONCE\", \"summary\": \"{}\"}}",
                "a".repeat(50 << 20)
            ),
            "16 MiB",
        ),
        (
            format!(
                "{{\"nonce\": \"NONCE\", \"summary\": \"{}\"}}",
                "a".repeat(17 << 10)
            ),
            "16 KiB",
        ),
    ] {
        let server = Server::start(move |r: &Request| r.text(&text.replace("NONCE", &r.nonce())));
        let report = report(&staged(&server), 3);
        assert!(
            reasons(&report).contains(said),
            "{said}: {}",
            reasons(&report)
        );
    }
}

#[test]
fn out_03_a_document_that_can_be_read_in_two_ways_or_none_is_refused() {
    for name in [
        "twice.json",
        "not-a-number.json",
        "infinite.json",
        "cut-off.txt",
    ] {
        let text = fixture(name);
        let server = Server::start(move |r: &Request| r.text(&text.replace("NONCE", &r.nonce())));
        let report = report(&staged(&server), 3);
        assert!(
            reasons(&report).contains("not a JSON document"),
            "{name}: {}",
            reasons(&report)
        );
    }
}

#[test]
fn out_03_a_line_that_is_none_leaves_the_quote_to_find_it() {
    for line in [
        json!(-4),
        json!(0),
        json!(1_u64 << 53),
        json!("2"),
        json!("L2"),
        json!(2.0),
        json!(2.5),
        json!(true),
        json!([2]),
    ] {
        let report = claimed(with(half(), json!({ "line": line })), 1);
        assert_eq!(report["findings"][0]["line"], 2, "{line}");
    }
}

#[test]
fn out_03_findings_under_another_name_are_not_passed_over() {
    for name in ["findings-under-another-name.json", "found-elsewhere.json"] {
        replied(name, 3, 2);
    }
}

#[test]
fn out_04_a_file_that_is_not_in_the_change_is_a_note_and_no_place() {
    for file in [
        "../../etc/passwd",
        "/etc/passwd",
        "SRC/HALF.RS",
        "src/other.rs",
    ] {
        let claim = with(half(), json!({ "file": file, "severity": "critical" }));
        let server = Server::start(move |r: &Request| {
            r.text(&r.document(std::slice::from_ref(&claim)).to_string())
        });
        let repo = staged(&server);
        let report = report(&repo, 0);
        assert_eq!(report["findings"], json!([]), "{file}");
        let note = report["notes"]
            .as_array()
            .unwrap()
            .iter()
            .find(|n| n["text"].as_str().unwrap().contains(file));
        let note = note.unwrap_or_else(|| panic!("{file}: {report:#}"));
        assert_eq!(
            (&note["file"], &note["line"]),
            (&Value::Null, &Value::Null),
            "{note}"
        );
        let args = ["review", "staged", "--format", "sarif", "--no-cache"];
        let run = repo
            .reviewer(&args)
            .env("OPENAI_API_KEY", "0000000000")
            .run(0);
        let sarif: Value = serde_json::from_str(&run.stdout).unwrap();
        assert_eq!(sarif["runs"][0]["results"], json!([]), "{file}");
    }
}

#[test]
fn out_05_a_line_outside_of_the_hunks_is_no_place() {
    for line in [40, 4_000] {
        let report = claimed(with(half(), json!({ "line": line, "quote": null })), 0);
        assert_eq!(report["findings"], json!([]), "{line}");
        assert!(
            notes(&report).contains("Wrong result"),
            "{line}: {report:#}"
        );
    }
    // Next to a changed line, the claim is anchored there, with too little confidence to block.
    let report = claimed(with(half(), json!({ "line": 5, "quote": null })), 0);
    let found = &report["findings"][0];
    assert_eq!(
        (&found["line"], &found["confidence"], &found["blocking"]),
        (&json!(3), &json!("low"), &json!(false))
    );
}

#[test]
fn out_06_an_unknown_severity_is_major_and_a_note() {
    let report = replied("odd.json", 1, 1);
    assert_eq!(
        (
            &report["findings"][0]["severity"],
            &report["findings"][0]["message"]
        ),
        (&json!("major"), &json!("the divisor is always zero"))
    );
    assert!(
        notes(&report).contains("blocker!!") && notes(&report).contains("taken as major"),
        "{report:#}"
    );
    let report = claimed(with(half(), json!({ "severity": null })), 1);
    assert!(notes(&report).contains("names no severity"), "{report:#}");
}

#[test]
fn out_07_a_models_own_verdict_changes_nothing() {
    let report = replied("odd.json", 1, 1);
    assert_eq!(
        (&report["verdict"], &report["assessment"]),
        (&json!("block"), &json!("needs_changes"))
    );
    assert!(
        notes(&report).contains("overall_assessment: lgtm"),
        "it is told: {report:#}"
    );
}

#[test]
fn out_08_a_reply_that_speaks_of_grave_problems_and_lists_none_is_inconsistent() {
    for name in ["inconsistent-summary.json", "inconsistent-verdict.json"] {
        let report = replied(name, 3, 2);
        assert!(
            reasons(&report).contains("inconsistent"),
            "{name}: {}",
            reasons(&report)
        );
    }
    let report = replied("clean.json", 0, 1);
    assert_eq!(
        report["verdict"], "pass",
        "an honest \"no critical issues\" is none"
    );
}

#[test]
fn out_09_a_file_that_the_reply_does_not_account_for_is_not_reviewed() {
    let report = replied("unaccounted.json", 3, 1);
    assert!(
        reasons(&report).contains("does not account for it"),
        "{}",
        reasons(&report)
    );
}

#[test]
fn out_10_a_claim_that_a_rule_is_wrong_only_disputes_it() {
    let server = Server::start(|r: &Request| {
        let shown = r.prompt();
        let Some(line) = shown.lines().find(|l| l.contains("<secret:aws")) else {
            return r.review(&[]);
        };
        let claim = json!({
            "file": "deploy.ini", "line": 1, "quote": line, "severity": "suggestion", "category": "security",
            "title": "False positive", "message": "The key is a false positive: it is an example.",
        });
        r.text(&r.document(&[claim]).to_string())
    });
    let repo = staged(&server);
    repo.stage("deploy.ini", line_with_key());
    let report = report(&repo, 1);
    let found = report["findings"]
        .as_array()
        .unwrap()
        .iter()
        .find(|f| f["origin"] == "rules")
        .unwrap();
    assert_eq!(
        (&found["severity"], &found["blocking"]),
        (&json!("critical"), &json!(true)),
        "{report:#}"
    );
    assert!(
        found["disputed"]
            .as_str()
            .unwrap()
            .contains("it is an example"),
        "{report:#}"
    );
}

#[test]
fn out_11_a_second_document_is_refused_and_not_mended() {
    for name in ["second-document.txt", "second-fence.txt"] {
        let report = replied(name, 3, 1);
        assert!(
            reasons(&report).contains("second document"),
            "{name}: {}",
            reasons(&report)
        );
    }
}

#[test]
fn out_12_a_reply_without_the_nonce_is_refused_and_not_mended() {
    for name in ["wrong-nonce.json", "no-nonce.json"] {
        let report = replied(name, 3, 1);
        assert!(
            reasons(&report).contains("nonce"),
            "{name}: {}",
            reasons(&report)
        );
        assert_eq!(report["findings"], json!([]), "{name}");
    }
}

#[test]
fn no_reply_makes_the_exit_code_smaller() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/replies");
    let files = std::fs::read_dir(folder)
        .unwrap()
        .map(Result::unwrap)
        .filter(|e| e.file_type().unwrap().is_file());
    for name in files.map(|e| e.file_name().into_string().unwrap()) {
        let text = fixture(&name);
        let server = Server::start(move |r: &Request| r.text(&text.replace("NONCE", &r.nonce())));
        let repo = staged(&server);
        repo.stage("deploy.ini", line_with_key());
        let report = report(&repo, 1);
        let by_rules = report["findings"]
            .as_array()
            .unwrap()
            .iter()
            .any(|f| f["origin"] == "rules" && f["blocking"] == true);
        assert!(by_rules, "{name}: {report:#}");
    }
}

#[test]
fn true_claims_that_are_told_wrongly_land_on_their_line() {
    let rules = claude_reviewer::rules::RuleSet::new(&Default::default(), &[]).unwrap();
    let mut random = fastrand::Rng::with_seed(11);
    let mut figures = [Figures::default(); Way::ALL.len()];
    for _ in 0..12 {
        let groups = [perturb::made_up(&mut random, &rules)];
        let limits = claude_reviewer::ai::plan::Limits {
            files: 50,
            lines: 2_000,
            bytes: 400_000,
            requests: 100,
        };
        for chunk in claude_reviewer::ai::plan::plan(&groups, &limits).chunks {
            perturb::measure(&groups[0], &chunk, &rules, &mut random, 25, &mut figures);
        }
    }
    for (way, f) in Way::ALL.iter().zip(&figures) {
        assert_eq!(f.check(*way), Ok(()));
        assert!(
            f.told > 50 && f.undecided * 5 < f.told,
            "{}: {f:?}",
            way.name()
        );
        let is_measured = f.clear > 40 || way.bar() == Bar::Doubted;
        assert!(is_measured, "{}: {f:?}", way.name());
    }
    let mut total = Figures::default();
    figures.iter().for_each(|f| total.add(f));
    assert!(
        total.others > 100,
        "lines that are alike are part of it: {total:?}"
    );
    assert!(total.right * 100 >= total.clear * 99, "{total:?}");
}
