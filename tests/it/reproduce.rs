//! Tests of the tests that a model writes to prove its claims. The sandbox is a shell script here;
//! `tests/third-party` tests bubblewrap.

use crate::loopback::{Server, finding};
use crate::support::Repo;
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt as _;

const CODE: &str = "add() {\n    echo $(($1 - $2))\n}\n";
const TEST: &str = ". ./src/add.sh\n[ \"$(add 1 2)\" = 3 ]\n";

/// Returns the answer of a model that proves its claim, which tests modify.
fn proof() -> Value {
    json!({
        "reason": "One and two are three.",
        "files": [{ "path": "check.sh", "text": TEST }],
        "command": "sh check.sh",
        "fix": [{ "path": "src/add.sh", "old": "$1 - $2", "new": "$1 + $2" }],
    })
}

/// A repository with a staged defect, and a model that claims it and answers with a test.
struct Case {
    server: Server,
    repo: Repo,
}

impl Case {
    fn new(answer: Value) -> Self {
        let server = Server::start(move |r| {
            if !asks_for_a_test(&r.prompt()) {
                return r.review(&[finding("src/add.sh", 2, "    echo $(($1 - $2))")]);
            }
            let mut answer = answer.clone();
            answer["nonce"] = json!(r.nonce());
            r.text(&answer.to_string())
        });
        let repo = Repo::new();
        repo.stage("README", "Sums.\n").commit("seed");
        let container = repo.outside().join("container");
        // The first argument is the private folder. The probe is answered like by a real sandbox.
        let script = "#!/bin/sh\ncase $4 in *ipv6_route*) exit 42 ;; esac\ncd \"$1\" && shift && exec \"$@\"\n";
        std::fs::create_dir_all(repo.outside()).unwrap();
        std::fs::write(&container, script).unwrap();
        std::fs::set_permissions(&container, std::fs::Permissions::from_mode(0o755)).unwrap();
        let tests = format!(
            "[tests]\nreproduce = true\nsandbox = [{:?}, \"{{tree}}\"]\n",
            container.display()
        );
        let case = Self { server, repo };
        case.policy(&tests);
        case.repo.stage("src/add.sh", CODE);
        case
    }

    /// Writes the operator's policy.
    fn policy(&self, tests: &str) {
        let text = self.server.policy("openai") + tests;
        self.repo
            .write("../home/.config/claude-reviewer/config.toml", text);
    }

    /// Reviews the staged change. Returns the report and the number of requests for a test.
    fn review(&self, args: &[&str], environment: &[(&str, &str)]) -> (Value, usize) {
        let args = [
            &["review", "staged", "--format", "json", "--no-cache"],
            args,
        ]
        .concat();
        let before = self.server.questions().len();
        let run = environment
            .iter()
            .fold(self.repo.reviewer(&args), |run, (name, value)| {
                run.env(name, value)
            })
            .run_any();
        let asked = self.server.questions();
        let tests = asked[before..]
            .iter()
            .filter(|r| asks_for_a_test(&r.prompt()))
            .count();
        (serde_json::from_str(&run.stdout).unwrap(), tests)
    }
}

fn asks_for_a_test(prompt: &str) -> bool {
    prompt.contains("Write the test for the claim above")
}

#[test]
fn a_claim_whose_test_fails_on_the_change_and_passes_with_the_fix_is_of_high_confidence() {
    let case = Case::new(proof());
    let (report, asked) = case.review(&[], &[]);
    let found = &report["findings"][0];
    assert_eq!(
        (asked, &found["confidence"]),
        (1, &json!("high")),
        "{report}"
    );
    assert_eq!(found["evidence"], json!(["quote", "reproduced"]));
    let shown =
        json!({ "command": "sh check.sh", "files": [{ "path": "check.sh", "text": TEST }] });
    assert_eq!(found["reproduction"], shown);
    assert_eq!(
        case.repo.git(&["status", "--porcelain"]),
        "A  src/add.sh\n",
        "nothing is left in the worktree"
    );
    let text = case.repo.reviewer(&["review", "staged"]).run(1).stdout;
    assert!(
        text.contains(
            "reproduced: a test in check.sh fails, and passes with a fix; run: sh check.sh"
        ),
        "{text}"
    );
}

#[test]
fn a_stored_reproduction_is_shown_again() {
    let case = Case::new(proof());
    case.review(&[], &[]);
    let text = case
        .repo
        .reviewer(&["history", "show", "latest"])
        .run_any()
        .stdout;
    assert!(
        text.contains("reproduced: a test in check.sh fails"),
        "{text}"
    );
}

#[test]
fn any_other_result_changes_nothing() {
    let change = |path: &str, value: Value| {
        let mut answer = proof();
        *answer.pointer_mut(path).unwrap() = value;
        answer
    };
    let cases = [
        ("passes on the change", change("/command", json!("true"))),
        (
            "fails with the fix, too",
            change("/command", json!("false")),
        ),
        (
            "is not found",
            change("/command", json!("no-such-program-here")),
        ),
        (
            "looks for the text of the fix",
            change("/command", json!("! grep -q ' - ' src/add.sh")),
        ),
        (
            "looks for it and names its file",
            change("/command", json!("! grep -q ' - ' src/add.sh # check.sh")),
        ),
        (
            "is ended by a time limit",
            change("/command", json!("exit 124")),
        ),
        (
            "has a fix that does not fit",
            change("/fix/0/old", json!("$1 * $2")),
        ),
        ("has a fix of nothing", change("/fix/0/old", json!(""))),
        (
            "has a fix of an unchanged file",
            change(
                "/fix/0",
                json!({ "path": "README", "old": "Sums.", "new": "Sum." }),
            ),
        ),
        (
            "fixes the test",
            change(
                "/fix/0",
                json!({ "path": "check.sh", "old": "= 3", "new": "= -1" }),
            ),
        ),
        (
            "replaces a file",
            change("/files/0/path", json!("src/add.sh")),
        ),
        (
            "leads out of the folder",
            change("/files/0/path", json!("../check.sh")),
        ),
        (
            "is an absolute path",
            change(
                "/files/0/path",
                json!("/tmp/claude-reviewer-escape/check.sh"),
            ),
        ),
        (
            "is too large",
            change(
                "/files/0/text",
                json!(format!("{TEST}#{}", "x".repeat(70_000))),
            ),
        ),
        (
            "has no files",
            json!({ "reason": "It cannot be tested.", "files": [], "command": "", "fix": [] }),
        ),
        ("is no answer", json!({ "reason": "Only words." })),
    ];
    for (name, answer) in cases {
        let case = Case::new(answer);
        let (report, _) = case.review(&[], &[]);
        let found = &report["findings"][0];
        let seen = (
            &found["confidence"],
            &found["reproduction"],
            &found["blocking"],
            &report["exit_code"],
        );
        let as_before = (&json!("medium"), &Value::Null, &json!(true), &json!(1));
        assert_eq!(seen, as_before, "a test that {name}: {report}");
    }
    assert!(!std::path::Path::new("/tmp/claude-reviewer-escape").exists());
}

#[test]
fn a_command_that_runs_all_tests_of_the_project_reproduces_a_claim() {
    let mut answer = proof();
    answer["command"] = json!("for t in *.sh; do [ ! -e \"$t\" ] || sh \"$t\" || exit 1; done");
    let (report, _) = Case::new(answer).review(&[], &[]);
    assert_eq!(
        report["findings"][0]["confidence"],
        json!("high"),
        "{report}"
    );
}

#[test]
fn what_the_first_run_leaves_behind_does_not_reach_the_second() {
    let mut answer = proof();
    answer["command"] = json!("[ -e left ] && exit 0; touch left; exit 1");
    let case = Case::new(answer);
    let (report, _) = case.review(&[], &[]);
    assert_eq!(
        report["findings"][0]["reproduction"],
        Value::Null,
        "{report}"
    );
}

#[test]
fn a_secret_in_a_test_is_masked_in_the_report() {
    let key = crate::support::line_with_key();
    let mut answer = proof();
    answer["files"][0]["text"] = json!(format!("# {key}{TEST}"));
    let case = Case::new(answer);
    let (report, _) = case.review(&[], &[]);
    let shown = report["findings"][0]["reproduction"].to_string();
    let secret = key.rsplit(' ').next().unwrap().trim();
    assert!(
        shown.contains("check.sh") && !shown.contains(secret),
        "{shown}"
    );
}

#[test]
fn nothing_runs_in_gate_mode_in_ci_or_without_the_operator() {
    let case = Case::new(proof());
    assert_eq!(case.review(&["--gate"], &[]).1, 0);
    assert_eq!(case.review(&[], &[("CI", "true")]).1, 0);
    let reproduce = "version = 1\n[tests]\nreproduce = true\n";
    case.policy("");
    case.repo.write(".claude-reviewer.toml", reproduce);
    let (report, asked) = case.review(&[], &[]);
    assert_eq!(asked, 0);
    assert!(
        report["notes"].to_string().contains("tests.reproduce"),
        "{report}"
    );
}

#[test]
fn without_a_sandbox_no_test_is_asked_for_and_a_note_says_so() {
    let case = Case::new(proof());
    case.policy(
        "[tests]\nreproduce = true\nsandbox = [\"no-such-container-program\", \"{tree}\"]\n",
    );
    let (report, asked) = case.review(&[], &[]);
    assert_eq!(
        (asked, &report["findings"][0]["confidence"]),
        (0, &json!("medium"))
    );
    let note = "no claim was tested: no-such-container-program not found on PATH";
    assert!(report["notes"].to_string().contains(note), "{report}");
    assert_eq!(report["exit_code"], json!(1));
}
