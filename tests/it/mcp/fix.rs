//! Tests of the path from finding to fix over MCP: proposals, replacements, and whether a finding
//! is gone.

use super::client::{Client, text};
use crate::loopback::Server;
use crate::support::Repo;
use serde_json::{Value, json};

const CODE: &str =
    "import requests\n\n\ndef run(url):\n    return requests.get(url, verify=False)\n";
const FIXED: &str =
    "import requests\n\n\ndef run(url):\n    return requests.get(url, verify=True)\n";

/// Returns a repository with a finding in its change, reviewed over MCP, and the client.
fn reviewed() -> (Repo, Client) {
    let repo = Repo::new();
    repo.stage("README", "Sums.\n").commit("seed");
    repo.stage("web/run.py", CODE);
    let mut client = Client::ready(&repo, &[]);
    let review = client.content("request_review", json!({"summary": "fetch a page"}));
    assert_eq!(review["verdict"], "block", "{review}");
    (repo, client)
}

fn read(repo: &Repo, path: &str) -> String {
    std::fs::read_to_string(repo.path().join(path)).unwrap()
}

/// Reviews the staged change on the command line and returns verdict and disposition of the first
/// finding.
fn staged(repo: &Repo) -> (Value, Value) {
    let report = repo
        .reviewer(&["review", "staged", "--no-save", "--format", "json"])
        .run_any()
        .json();
    (
        report["verdict"].clone(),
        report["findings"][0]["disposition"].clone(),
    )
}

fn findings(repo: &Repo) -> Value {
    repo.reviewer(&["findings", "--format", "json"])
        .run(0)
        .json()
}

#[test]
fn a_proposal_changes_no_verdict_until_a_person_confirms_it() {
    let (repo, mut client) = reviewed();
    let proposal =
        json!({"findings": ["F1"], "decision": "reject", "reason": "a \u{1b}[31mtest server"});
    let answer = client.content("propose_disposition", proposal);
    assert_eq!(
        answer["proposals"][0]["disposition"], "rejected",
        "{answer}"
    );
    assert_eq!(staged(&repo), (json!("block"), json!("pending")));
    let review = client.content("request_review", json!({"summary": "again"}));
    assert_eq!(
        (
            &review["verdict"],
            &review["report"]["findings"][0]["disposition"]
        ),
        (&json!("block"), &json!("pending"))
    );
    // The user sees it, and that a model or an agent wrote it.
    let shown = repo.reviewer(&["findings"]).run(0).stdout;
    assert!(
        shown.contains("pending") && shown.contains("proposed: rejected by agent (MCP): a "),
        "{shown}"
    );
    assert!(
        !shown.contains('\u{1b}') && shown.contains("claude-reviewer confirm F1"),
        "{shown}"
    );
    assert_eq!(findings(&repo)["proposals"][0]["owner"], "agent (MCP)");
    // `policy test` shows its effect.
    let replay = |args: &[&str]| {
        repo.reviewer(&[&["policy", "test", "--format", "json"], args].concat())
            .run(0)
            .json()
    };
    assert_eq!(replay(&[])["flips"], 0);
    assert_eq!(
        replay(&["--proposals"])["rounds"][0]["would_be"]["verdict"],
        "pass"
    );
    let said = repo
        .reviewer(&["confirm", "F1", "--owner", "Dana"])
        .run(0)
        .stdout;
    assert!(
        said.starts_with("rejected F1 (python-tls-verify-off at web/run.py:5)"),
        "{said}"
    );
    assert_eq!(staged(&repo), (json!("pass"), json!("rejected")));
    let listed = findings(&repo);
    assert_eq!(listed["findings"][0]["decided"]["owner"], "Dana");
    assert_eq!(listed["proposals"], json!([]));
    assert_eq!(replay(&[])["rounds"][0]["would_be"]["verdict"], "pass");
    let run = repo.reviewer(&["confirm", "F1"]).run(2);
    assert!(
        run.stderr.contains("no decision is proposed on F1"),
        "{}",
        run.stderr
    );
    assert_eq!(client.close().stderr, "");
}

#[test]
fn a_decision_of_a_person_ends_a_proposal() {
    let (repo, mut client) = reviewed();
    client.content(
        "propose_disposition",
        json!({"findings": ["F1"], "decision": "defer", "reason": "later"}),
    );
    repo.reviewer(&["accept", "F1"]).run(0);
    assert_eq!(findings(&repo)["proposals"], json!([]));
    let said = repo.reviewer(&["confirm", "--all"]).run(0).stdout;
    assert!(
        said.starts_with("no decision is proposed on a finding of review "),
        "{said}"
    );
    assert_eq!(staged(&repo), (json!("block"), json!("accepted")));
}

#[test]
fn dsp_01_a_proposal_ends_when_the_lines_change() {
    let (repo, mut client) = reviewed();
    client.content(
        "propose_disposition",
        json!({"findings": ["F1"], "decision": "reject", "reason": "a test"}),
    );
    repo.stage(
        "web/run.py",
        CODE.replace("return requests", "yield requests"),
    );
    assert_eq!(findings(&repo)["proposals"], json!([]));
    repo.reviewer(&["confirm", "F1"]).run(2);
    let refused = json!({"findings": ["F1"], "decision": "reject", "reason": "a test"});
    let said = client.refused("propose_disposition", refused);
    assert!(
        text(&said).contains("have changed since the review"),
        "{said}"
    );
}

#[test]
fn dsp_02_a_proposal_counts_nowhere_in_gate_mode() {
    let repo = Repo::new();
    repo.stage("README", "Sums.\n").commit("seed");
    repo.git(&["branch", "-M", "main"]);
    repo.git(&["checkout", "-q", "-b", "topic"]);
    repo.stage("web/run.py", CODE).commit("fetch");
    let mut client = Client::ready(&repo, &[]);
    client.content(
        "request_review",
        json!({"summary": "fetch", "source": "branch"}),
    );
    client.content(
        "propose_disposition",
        json!({"findings": ["F1"], "decision": "reject", "reason": "a test"}),
    );
    repo.reviewer(&["confirm", "--all"]).run(0);
    let report = repo.review_json(&["branch", "--base", "main", "--gate"], 1);
    assert_eq!(report["findings"][0]["disposition"], "pending", "{report}");
}

#[test]
fn what_cannot_be_proposed_is_refused_with_a_hint() {
    let (repo, mut client) = reviewed();
    for (change, message) in [
        (json!({"findings": ["F9"]}), "has no finding \"F9\""),
        (json!({"findings": []}), "findings is empty"),
        (json!({"reason": " "}), "reason is empty"),
        (
            json!({"until": "soon"}),
            "until: \"soon\" is not a date such as 2026-01-31",
        ),
        (json!({"until": "2001-01-01"}), "is not in the future"),
        (
            json!({"decision": "accept", "until": "2999-01-01"}),
            "until does not fit accept",
        ),
        (
            json!({"decision": "fix"}),
            "decision must be one of accept, reject, defer",
        ),
        (json!({"review_id": "2001-01-01-001"}), "not found"),
    ] {
        let mut arguments = json!({"findings": ["F1"], "decision": "reject", "reason": "r"});
        arguments
            .as_object_mut()
            .unwrap()
            .extend(change.as_object().unwrap().clone());
        let said = client.refused("propose_disposition", arguments);
        assert!(text(&said).contains(message), "{message}: {said}");
        assert!(
            !text(&said).contains("claude-reviewer") && !text(&said).contains("--"),
            "{message}: {said}"
        );
    }
    assert_eq!(findings(&repo)["proposals"], json!([]));
}

#[test]
fn a_replacement_is_applied_and_the_finding_is_gone() {
    let (repo, mut client) = reviewed();
    let open = client.content("verify_fix", json!({"findings": ["F1"]}));
    assert_eq!(
        (&open["is_fixed"], &open["open"][0]["state"]),
        (&json!(false), &json!("still_there")),
        "{open}"
    );
    let answer = client.content("apply_finding", json!({"findings": ["F1"]}));
    assert_eq!(
        (
            &answer["applied"],
            &answer["gone"],
            &answer["new"],
            &answer["files"]
        ),
        (
            &json!(["F1"]),
            &json!(["F1"]),
            &json!([]),
            &json!(["web/run.py"])
        )
    );
    assert!(
        answer["patch"]
            .as_str()
            .unwrap()
            .contains("+    return requests.get(url, verify=True)\n"),
        "{answer}"
    );
    assert_eq!(read(&repo, "web/run.py"), FIXED);
    let done = client.content("verify_fix", json!({"findings": ["F1"]}));
    assert_eq!(
        (&done["is_fixed"], &done["fixed"], &done["new"]),
        (&json!(true), &json!(["F1"]), &json!([])),
        "{done}"
    );
    // Neither of them stored anything.
    let history = client.content("get_review_history", json!({"review_id": "latest"}));
    assert_eq!(history["rounds"].as_array().unwrap().len(), 1);
    let said = client.refused("apply_finding", json!({"findings": ["F1"]}));
    assert!(
        text(&said)
            .contains("F1 is not applied: its lines at web/run.py:5 have changed since the review"),
        "{said}"
    );
    assert_eq!(read(&repo, "web/run.py"), FIXED);
}

#[test]
fn an_edit_that_is_neither_staged_nor_committed_counts_as_a_fix() {
    for source in ["staged", "branch"] {
        let repo = Repo::new();
        repo.stage("README", "Sums.\n").commit("seed");
        repo.git(&["checkout", "-q", "-b", "topic"]);
        repo.stage("web/run.py", CODE);
        if source == "branch" {
            repo.commit("fetch");
        }
        let mut client = Client::ready(&repo, &[]);
        let source = if source == "branch" {
            json!({"kind": "branch", "base": "main"})
        } else {
            json!(source)
        };
        client.content(
            "request_review",
            json!({"summary": "fetch", "source": source}),
        );
        let open = client.content("verify_fix", json!({"findings": ["F1"]}));
        assert_eq!(open["is_fixed"], false, "{open}");
        repo.write("web/run.py", FIXED);
        let done = client.content("verify_fix", json!({"findings": ["F1"]}));
        assert_eq!(
            (&done["is_fixed"], &done["fixed"]),
            (&json!(true), &json!(["F1"])),
            "{source}: {done}"
        );
        let reviewed = done["reviewed"].as_str().unwrap();
        assert!(
            reviewed.starts_with("the current files of the worktree against "),
            "{reviewed}"
        );
        // The reviewed commit is not checked out, so missing lines do not prove a fix.
        if source != "staged" {
            repo.git(&["stash", "-q"]);
            repo.git(&["checkout", "-q", "main"]);
            let said = client.refused("verify_fix", json!({"findings": ["F1"]}));
            assert!(text(&said).contains("is not checked out"), "{said}");
            repo.git(&["checkout", "-q", "topic"]);
            let open = client.content("verify_fix", json!({"findings": ["F1"]}));
            assert_eq!(open["is_fixed"], false, "{open}");
            // An amended commit belongs to the same branch.
            repo.stage("web/run.py", FIXED)
                .git(&["commit", "-q", "--amend", "--no-edit"]);
            let done = client.content("verify_fix", json!({"findings": ["F1"]}));
            assert_eq!(done["is_fixed"], true, "{done}");
        }
    }
}

#[test]
fn a_fix_with_a_new_problem_is_not_verified() {
    let (repo, mut client) = reviewed();
    let worse = "import subprocess\n\n\ndef run(request):\n    subprocess.run(request.args['x'], shell=True)\n";
    repo.write("web/run.py", worse);
    let answer = client.content("verify_fix", json!({"findings": ["F1"]}));
    assert_eq!(
        (&answer["is_fixed"], &answer["fixed"]),
        (&json!(false), &json!(["F1"])),
        "{answer}"
    );
    assert_eq!(
        answer["new"][0]["rule_id"], "python-shell-request",
        "{answer}"
    );
}

#[test]
fn an_agent_gets_the_findings_and_what_it_may_not_change_without_a_backend() {
    let (repo, mut client) = reviewed();
    let plan = client.content("plan_fix", json!({"findings": ["F1"]}));
    assert_eq!(
        (&plan["plan"], &plan["no_plan"]),
        (&Value::Null, &json!("the policy names no backend")),
        "{plan}"
    );
    let found = &plan["findings"][0];
    assert_eq!(
        (&found["id"], &found["file"], &found["line"]),
        (&json!("F1"), &json!("web/run.py"), &json!(5))
    );
    assert!(
        found["code"]
            .as_str()
            .unwrap()
            .contains("5     return requests.get(url, verify=False)"),
        "{found}"
    );
    assert!(
        found["replacement"]
            .as_str()
            .unwrap()
            .contains("verify=True")
            && plan["rules"].is_string(),
        "{found}"
    );
    assert_eq!(read(&repo, "web/run.py"), CODE);
    let said = client.refused("plan_fix", json!({"findings": ["F9"]}));
    assert!(text(&said).contains("has no finding \"F9\""), "{said}");
}

#[test]
fn an_agent_gets_the_plan_of_the_backend_and_it_is_stored() {
    let server = Server::start(|r| {
        if r.prompt().contains("Plan how to fix the findings above.") {
            let steps =
                json!([{"text": "Check certificates.", "files": ["web/run.py", "Makefile"]}]);
            return r.text(
                &json!({"nonce": r.nonce(), "summary": "Verify.", "steps": steps}).to_string(),
            );
        }
        r.review(&[])
    });
    let repo = Repo::new();
    repo.stage(".claude-reviewer.toml", server.policy("openai"))
        .commit("seed");
    repo.stage("web/run.py", CODE);
    let mut client = Client::ready(&repo, &[]);
    client.content("request_review", json!({"summary": "fetch a page"}));
    let plan = client.content("plan_fix", json!({"findings": ["F1"]}));
    assert_eq!(
        (&plan["plan"]["summary"], &plan["no_plan"]),
        (&json!("Verify."), &Value::Null),
        "{plan}"
    );
    assert_eq!(
        plan["forbidden"],
        json!([{"file": "Makefile", "why": "a build script"}])
    );
    let stored = client.content("get_review_history", json!({"review_id": "latest"}));
    assert_eq!(
        (&stored["fixes"][0]["via"], &stored["fixes"][0]["outcome"]),
        (&json!("mcp"), &json!("planned"))
    );
}

#[test]
fn an_error_names_the_tool_to_call_and_its_arguments() {
    let (repo, mut client) = reviewed();
    let id =
        client.content("get_review_history", json!({"review_id": "latest"}))["review_id"].clone();
    let id = id.as_str().unwrap().to_owned();
    for tool in [
        "plan_fix",
        "verify_fix",
        "apply_finding",
        "propose_disposition",
    ] {
        let mut arguments = json!({"findings": ["F9"]});
        if tool == "propose_disposition" {
            arguments = json!({"findings": ["F9"], "decision": "reject", "reason": "r"});
        }
        let said = client.refused(tool, arguments);
        let hint =
            format!("call get_review_history with review_id {id}, and name findings by their id");
        assert!(text(&said).contains(&hint), "{tool}: {said}");
        assert!(!text(&said).contains("claude-reviewer"), "{tool}: {said}");
    }
    repo.stage(
        "web/run.py",
        CODE.replace("return requests", "yield requests"),
    );
    for (tool, arguments, hint) in [
        (
            "apply_finding",
            json!({"findings": ["F1"]}),
            "call request_review, and apply a finding of the new round",
        ),
        (
            "propose_disposition",
            json!({"findings": ["F1"], "decision": "reject", "reason": "r"}),
            "call request_review, and propose a decision on the new findings",
        ),
        (
            "plan_fix",
            json!({"findings": ["F1"]}),
            "call request_review with previous_review_id",
        ),
        (
            "verify_fix",
            json!({"findings": ["F1"], "review_id": "2001-01-01-001"}),
            "call get_review_history",
        ),
    ] {
        let said = client.refused(tool, arguments);
        assert!(
            text(&said).contains(hint) && !text(&said).contains("claude-reviewer"),
            "{tool}: {said}"
        );
    }
}
