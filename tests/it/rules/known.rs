//! Findings on code that the file had before the change: they do not block.

use crate::support::Repo;
use serde_json::Value;

/// Returns a module of Python whose function has some statements.
fn module(statements: &[&str]) -> String {
    let lines: String = statements
        .iter()
        .map(|statement| format!("    {statement}\n"))
        .collect();
    format!("import requests\n\n\ndef fetch(session, host):\n{lines}    return session.get(host)\n")
}

/// Returns the severities and messages of the findings about certificates in the newest commit.
#[track_caller]
fn of_certificates(repo: &Repo, code: i32) -> Vec<(String, String)> {
    let report = repo.review_json(&["commit", "HEAD"], code);
    let findings = report["findings"].as_array().unwrap().iter();
    let text = |finding: &Value, key: &str| finding[key].as_str().unwrap().to_owned();
    findings
        .filter(|finding| finding["rule_id"] == "python-tls-verify-off")
        .map(|finding| (text(finding, "severity"), text(finding, "message")))
        .collect()
}

/// Returns the severities and messages after a commit that replaces one module by another.
#[track_caller]
fn after(old: &str, new: &str, code: i32) -> Vec<(String, String)> {
    let repo = Repo::new();
    repo.stage("client.py", old).commit("old");
    repo.stage("client.py", new).commit("new");
    of_certificates(&repo, code)
}

fn severities(found: &[(String, String)]) -> Vec<&str> {
    found
        .iter()
        .map(|(severity, _)| severity.as_str())
        .collect()
}

#[test]
fn an_edited_line_with_a_weakness_that_was_there_before_does_not_block() {
    let old = module(&["session.verify = False"]);
    let new = module(&["if host:", "    session.verify=False  # self-signed"]);
    let found = after(&old, &new, 0);
    assert_eq!(severities(&found), ["suggestion"]);
    let why = "the file had this before the change";
    assert!(found[0].1.contains(why), "{found:?}");
}

#[test]
fn the_same_line_blocks_in_a_file_that_did_not_have_it() {
    let old = module(&["session.timeout = 5"]);
    let new = module(&["if host:", "    session.verify=False  # self-signed"]);
    assert_eq!(severities(&after(&old, &new, 1)), ["major"]);
    // Another file that had it does not count, and neither does an older commit.
    let repo = Repo::new();
    repo.stage("old.py", module(&["session.verify = False"]))
        .stage("client.py", &old)
        .commit("old");
    repo.stage("old.py", module(&["session.verify = True"]))
        .stage("client.py", &new)
        .commit("new");
    assert_eq!(severities(&of_certificates(&repo, 1)), ["major"]);
}

#[test]
fn of_two_copies_the_one_that_was_not_there_blocks() {
    let old = module(&["session.verify = False"]);
    let new = module(&[
        "if host:",
        "    session.verify = False",
        "else:",
        "    session.verify = False",
    ]);
    let found = after(&old, &new, 1);
    let mut severities = severities(&found);
    severities.sort_unstable();
    assert_eq!(severities, ["major", "suggestion"]);
}

#[test]
fn a_weakness_that_leaves_its_condition_blocks() {
    let old = module(&["if DEBUG:", "    session.verify = False"]);
    let new = module(&["session.verify = False"]);
    assert_eq!(severities(&after(&old, &new, 1)), ["major"]);
}

#[test]
fn a_renamed_file_is_compared_with_the_old_one() {
    let lines = ["a = host", "b = a", "c = b", "d = c", "e = d", "f = e"];
    let with = |line: &'static str| {
        let statements: Vec<&str> = lines.into_iter().chain([line]).collect();
        module(&statements)
    };
    for (path, code, expected) in [
        ("client.py", 0, "suggestion"),
        ("tests/test_client.py", 1, "major"),
    ] {
        let repo = Repo::new();
        repo.stage(path, with("session.verify = False"))
            .commit("old");
        repo.git(&["rm", "-q", path]);
        repo.stage("service.py", with("session.verify=False"))
            .commit("new");
        let found = of_certificates(&repo, code);
        assert_eq!(severities(&found), [expected], "{path}");
    }
}

/// Returns the severities and messages after a commit that changes two modules. The second one is
/// new.
#[track_caller]
fn after_two(
    old: (&str, &str),
    changed: &str,
    new: (&str, &str),
    code: i32,
) -> Vec<(String, String)> {
    let repo = Repo::new();
    repo.stage(old.0, old.1).commit("old");
    repo.stage(old.0, changed).stage(new.0, new.1).commit("new");
    of_certificates(&repo, code)
}

/// A function of a module that does not verify certificates, and another function.
const FETCH: &str = "import requests\n\n\ndef fetch(session, host):\n    session.verify = False\n    return session.get(host)\n";
const OTHER: &str = "def name(host):\n    return host.lower()\n";

#[test]
fn a_function_that_moves_to_another_file_does_not_block() {
    let (old, new) = (
        format!("{FETCH}\n\n{OTHER}"),
        format!("{FETCH}\n\nLIMIT = 5\n"),
    );
    let found = after_two(("client.py", &old), OTHER, ("fetch.py", &new), 0);
    assert_eq!(severities(&found), ["suggestion"]);
    let why = "another file of this change had this before";
    assert!(found[0].1.contains(why), "{found:?}");
}

#[test]
fn a_function_that_is_copied_to_another_file_blocks() {
    let old = format!("{FETCH}\n\n{OTHER}");
    let found = after_two(("client.py", &old), FETCH, ("fetch.py", FETCH), 1);
    assert_eq!(severities(&found), ["major"]);
}

#[test]
fn a_function_that_moves_without_its_guard_blocks() {
    let check = "    if host != \"localhost\":\n        raise ValueError(host)\n";
    let guarded = FETCH.replace("    session.verify", &format!("{check}    session.verify"));
    let old = format!("{guarded}\n\n{OTHER}");
    let found = after_two(("client.py", &old), OTHER, ("fetch.py", FETCH), 1);
    assert_eq!(severities(&found), ["major"]);
}

#[test]
fn code_of_a_test_that_moves_into_the_program_blocks() {
    let old = format!("{FETCH}\n\n{OTHER}");
    let found = after_two(("tests/client.py", &old), OTHER, ("fetch.py", FETCH), 1);
    assert_eq!(severities(&found), ["major"]);
}

#[test]
fn code_that_leaves_a_guarded_function_blocks() {
    let guard = "    if host != \"localhost\":\n        raise ValueError(host)\n";
    let guarded = FETCH.replace("    session.verify", &format!("{guard}    session.verify"));
    let changed = guarded.replace("    session.verify = False\n", "");
    let found = after_two(("client.py", &guarded), &changed, ("fetch.py", FETCH), 1);
    assert_eq!(severities(&found), ["major"]);
}

#[test]
fn one_function_that_moves_covers_one_new_copy() {
    let repo = Repo::new();
    repo.stage("client.py", format!("{FETCH}\n\n{OTHER}"))
        .commit("old");
    repo.stage("client.py", OTHER)
        .stage("a.py", FETCH)
        .stage("b.py", FETCH)
        .commit("new");
    let found = of_certificates(&repo, 1);
    let mut severities = severities(&found);
    severities.sort_unstable();
    assert_eq!(severities, ["major", "suggestion"]);
}
