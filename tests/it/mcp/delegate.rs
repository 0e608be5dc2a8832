//! Tests of reviews by the calling agent: a plan, its answers, and their effect.

use super::client::Client;
use crate::loopback::{files_of, finding};
use crate::support::Repo;
use serde_json::{Value, json};

/// Creates a repository with a change of two files, and this policy at HEAD.
fn repo(policy: &str) -> Repo {
    let repo = Repo::new();
    repo.stage(".claude-reviewer.toml", format!("version = 1\n{policy}"))
        .commit("seed");
    repo.stage("src/rate.py", "def rate(n):\n    return 1 / n\n")
        .stage("src/other.py", "OTHER = 1\n");
    repo
}

fn staged() -> Value {
    json!({"source": "staged"})
}

fn plan(client: &mut Client) -> Value {
    client.content("review_plan", staged())
}

/// Returns an answer to a question about a part, with these findings.
fn answer(plan: &Value, question: &Value, findings: &[Value]) -> Value {
    let files = files_of(question["text"].as_str().unwrap());
    json!({
        "nonce": plan["plan_id"], "summary": "Read everything.", "files_reviewed": files, "not_reviewed": [],
        "findings": findings, "design_compliance": null, "missing_requirements": [],
    })
}

fn id(question: &Value) -> String {
    question["id"].as_str().unwrap().to_owned()
}

fn submission(plan: &Value, answers: &[(String, Value)]) -> Value {
    let answers: serde_json::Map<String, Value> = answers.iter().cloned().collect();
    json!({"source": "staged", "plan_id": plan["plan_id"], "answers": answers})
}

/// Submits answers. Returns the report, and with it the open questions.
fn submit(client: &mut Client, submission: Value) -> Value {
    let answer = client.content("submit_findings", submission);
    let mut report = answer["report"].clone();
    assert_eq!(answer["verdict"], report["verdict"]);
    report["open_questions"] = answer["open_questions"].clone();
    report
}

fn failures(report: &Value) -> String {
    report["coverage"]["failed"].to_string()
}

#[test]
fn the_calling_agent_answers_the_questions_and_the_policy_decides() {
    let repo = repo("");
    let mut client = Client::ready(&repo, &[]);
    let plan = plan(&mut client);
    let [question] = &plan["questions"].as_array().unwrap()[..] else {
        panic!("{plan:#}")
    };
    let text = question["text"].as_str().unwrap();
    assert!(
        text.contains("file: src/rate.py") && text.contains(plan["plan_id"].as_str().unwrap()),
        "{text}"
    );
    assert!(
        question["answer_schema"]["properties"]["findings"].is_object(),
        "{question:#}"
    );
    let claim = finding("src/rate.py", 2, "    return 1 / n");
    let answers = [(id(question), answer(&plan, question, &[claim]))];
    let report = submit(&mut client, submission(&plan, &answers));
    assert_eq!(report["verdict"], "block", "{report:#}");
    let found = &report["findings"][0];
    assert_eq!(
        (&found["file"], &found["line"]),
        (&json!("src/rate.py"), &json!(2))
    );
    assert_eq!(
        report["coverage"]["by_reviewer"]["agent:author"]["files_reviewed"], 2,
        "{report:#}"
    );
    assert!(
        report["notes"]
            .to_string()
            .contains("the author's own agent reviewed"),
        "{report:#}"
    );
    assert!(!repo.path().join(".reviews").exists());
    // A blocking claim is checked once more, as for every reviewer.
    let [open] = &report["open_questions"].as_array().unwrap()[..] else {
        panic!("{report:#}")
    };
    assert_eq!(open["is_about_a_claim"], true);
    let refuted = json!({"nonce": plan["plan_id"], "refuted": true, "reason": "n is never 0.", "quote": "def rate(n):"});
    let again = [answers[0].clone(), (id(open), refuted)];
    let report = submit(&mut client, submission(&plan, &again));
    assert_eq!(
        (&report["verdict"], &report["open_questions"]),
        (&json!("warn"), &json!([])),
        "{report:#}"
    );
    assert_eq!(
        report["findings"][0]["disputed"],
        "agent:author: n is never 0."
    );
    assert_eq!(client.close().code, Some(0));
}

#[test]
fn an_answer_is_needed_for_every_question_and_accounts_for_its_files() {
    let repo = repo("[review]\nmax_files = 1\n");
    let mut client = Client::ready(&repo, &[]);
    let plan = plan(&mut client);
    let [one, other] = &plan["questions"].as_array().unwrap()[..] else {
        panic!("{plan:#}")
    };
    let report = submit(
        &mut client,
        submission(&plan, &[(id(one), answer(&plan, one, &[]))]),
    );
    assert_eq!(report["verdict"], "incomplete", "{report:#}");
    assert_eq!(report["open_questions"][0]["id"], other["id"]);
    let mut empty = answer(&plan, other, &[]);
    empty["files_reviewed"] = json!([]);
    let mut stranger = answer(&plan, other, &[]);
    stranger["nonce"] = json!("0".repeat(32));
    for (bad, why) in [
        (empty, "does not account for it"),
        (stranger, "nonce"),
        (json!("Looks good."), "agent:author: "),
    ] {
        let answers = [(id(one), answer(&plan, one, &[])), (id(other), bad)];
        let report = submit(&mut client, submission(&plan, &answers));
        assert_eq!(report["verdict"], "incomplete", "{report:#}");
        assert!(failures(&report).contains(why), "{report:#}");
    }
    let both = [
        (id(one), answer(&plan, one, &[])),
        (id(other), answer(&plan, other, &[])),
    ];
    assert_eq!(
        client.content("submit_findings", submission(&plan, &both))["verdict"],
        "pass"
    );
    for bad in [json!({}), json!([]), json!("x")] {
        client.refused(
            "submit_findings",
            json!({"source": "staged", "plan_id": plan["plan_id"], "answers": bad}),
        );
    }
    client.refused(
        "submit_findings",
        json!({"source": "staged", "plan_id": "latest", "answers": {"a": {}}}),
    );
}

#[test]
fn an_answer_about_another_state_of_the_change_is_refused() {
    let repo = repo("");
    let mut client = Client::ready(&repo, &[]);
    let plan = plan(&mut client);
    let question = &plan["questions"][0];
    let submission = submission(&plan, &[(id(question), answer(&plan, question, &[]))]);
    assert_eq!(
        client.content("submit_findings", submission.clone())["verdict"],
        "pass"
    );
    repo.stage("src/other.py", "OTHER = 2\n");
    let refused = client.refused("submit_findings", submission);
    assert!(
        refused.to_string().contains("call review_plan again"),
        "{refused:#}"
    );
    // An answer to one question of a known plan.
    let plan = self::plan(&mut client);
    let one = json!({"source": "staged", "plan_id": plan["plan_id"], "question": plan["questions"][0]["id"]});
    assert_eq!(
        client.content("review_plan", one)["questions"],
        plan["questions"]
    );
    client.refused(
        "review_plan",
        json!({"source": "staged", "question": "0123456789abcdef"}),
    );
}

#[test]
fn the_authors_agent_stands_for_a_backend_only_where_the_operator_says_so() {
    let named = "[review]\nbackends = [\"local\"]\n[backend.local]\nkind = \"openai\"\nbase_url = \"http://127.0.0.1:9/v1\"\nmodel = \"m\"\n";
    for (project, user, verdict) in [
        (named.to_owned(), "", "incomplete"),
        // Without trust, a project cannot set this itself.
        (
            format!("{named}[mcp]\nagent_review = \"counts\"\n"),
            "",
            "incomplete",
        ),
        (
            named.to_owned(),
            "[mcp]\nagent_review = \"counts\"\n",
            "pass",
        ),
    ] {
        let repo = repo(&project);
        let folder = repo.home().join(".config/claude-reviewer");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("config.toml"), format!("version = 1\n{user}")).unwrap();
        let mut client = Client::ready(&repo, &[]);
        let plan = plan(&mut client);
        let question = &plan["questions"][0];
        let answers = [(id(question), answer(&plan, question, &[]))];
        let report = submit(&mut client, submission(&plan, &answers));
        assert_eq!(report["verdict"], verdict, "{user:?} {report:#}");
        let is_missing = failures(&report)
            .contains("backend local was not asked: the author's own agent reviewed");
        assert_eq!(is_missing, verdict == "incomplete", "{report:#}");
    }
}

#[test]
fn sec_01_a_plan_shows_no_secret() {
    let repo = repo("");
    let line = crate::support::line_with_key();
    let key = line.trim().rsplit(' ').next().unwrap().to_owned();
    repo.stage("src/config.py", line.as_str());
    let mut client = Client::ready(&repo, &[]);
    let plan = plan(&mut client);
    assert!(
        !plan.to_string().contains(&key[4..]) && plan.to_string().contains("<secret:"),
        "{plan:#}"
    );
}
