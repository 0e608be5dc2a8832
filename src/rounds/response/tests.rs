//! Tests of responses in all accepted formats.

use super::*;
use crate::policy::RulesPolicy;

fn explained(all: &[(Option<&str>, &str)]) -> Vec<Explanation> {
    all.iter()
        .map(|(f, t)| Explanation {
            finding: f.map(str::to_owned),
            text: (*t).to_owned(),
        })
        .collect()
}

fn strings(all: &[&str]) -> Vec<String> {
    all.iter().map(|s| (*s).to_owned()).collect()
}

const PRINT: &str = "0123456789abcdef0123456789abcdef";

#[test]
fn an_answer_is_read_from_json_in_whatever_form() {
    let whole = GivenResponse {
        addressed: strings(&["F1", "F3"]),
        explanations: explained(&[(Some("F2"), "it runs once")]),
        modified_files: strings(&["src/a.rs"]),
        questions: strings(&["why?"]),
        text: None,
    };
    for json in [
        r#"{"addressed": ["F1", "F3"], "explanations": [{"finding": "F2", "text": "it runs once"}], "modified_files": ["src/a.rs"], "questions": ["why?"]}"#,
        r#"{"addressed": "F1, F3", "explanations": {"F2": "it runs once"}, "modified_files": "src/a.rs", "questions": "why?"}"#,
        r#"{"Issues Addressed": [{"id": "F1"}, {"finding": "f3"}], "explanations": ["F2: it runs once"], "files-modified": [{"path": "src/a.rs"}], "questions": [{"question": "why?"}]}"#,
        r#"{"addressed": ["f1 f3"], "explanations": {"id": "F2", "reason": "it runs once"}, "modified_files": ["src/a.rs", "", null], "questions": "why?"}"#,
    ] {
        assert_eq!(GivenResponse::parse(json).unwrap(), whole, "{json}");
        let value: Value = serde_json::from_str(json).unwrap();
        assert_eq!(GivenResponse::from_json(&value).unwrap(), whole, "{json}");
    }
    assert!(
        GivenResponse::parse("{}").unwrap().is_empty()
            && GivenResponse::parse("null").unwrap().text.is_some()
    );
    assert!(GivenResponse::from_json(&Value::Null).unwrap().is_empty());
}

#[test]
fn what_was_done_is_kept_beside_the_name() {
    let given = GivenResponse::parse(
        r#"{"addressed": ["F1: the bound is inclusive now", "the typo", {"finding": "F4", "text": "renamed"}]}"#,
    );
    let given = given.unwrap();
    assert_eq!(given.addressed, ["F1", "the typo", "F4"]);
    assert_eq!(
        given.text.as_deref(),
        Some("F1: the bound is inclusive now\nF4: renamed")
    );
    let given = GivenResponse::parse(&format!(
        r#"{{"addressed": ["{PRINT}"], "explanations": [{{"fingerprint": "{PRINT}", "why": "x"}}]}}"#
    ));
    let given = given.unwrap();
    assert_eq!(
        (given.addressed, given.explanations),
        (strings(&[PRINT]), explained(&[(Some(PRINT), "x")]))
    );
}

#[test]
fn an_answer_is_read_from_the_markdown_that_coders_are_told_to_write() {
    let text = "## Review Response - Round 1\n\n### Issues Addressed\n- [x] F1: checked for null\n* F3, f4\n1. the typo in the name\n\n\
                ### Explanations\n- **F2**: the list is short,\n  it never grows\n- F5 - false alarm\n\nIn general this is legacy code.\n\n\
                ### Modified Files\n- `src/a.rs`\n- src/b.rs\n\n### Questions/Clarifications\nShould F2 be a map?\n";
    let given = GivenResponse::parse(text).unwrap();
    assert_eq!(given.addressed, ["F1", "F3", "F4", "the typo in the name"]);
    let expected = [
        (Some("F2"), "the list is short,\nit never grows"),
        (Some("F5"), "false alarm"),
        (None, "In general this is legacy code."),
    ];
    assert_eq!(given.explanations, explained(&expected));
    assert_eq!(given.modified_files, ["src/a.rs", "src/b.rs"]);
    assert_eq!(given.questions, ["Should F2 be a map?"]);
    assert_eq!(given.text.as_deref(), Some("F1: checked for null"));
    // The same, as text in a JSON value.
    assert_eq!(
        GivenResponse::from_json(&Value::String(text.to_owned())).unwrap(),
        given
    );
    assert_eq!(
        GivenResponse::parse(&serde_json::to_string(text).unwrap()).unwrap(),
        given
    );
    let none = "## Review Response - Round 2\n### Issues Addressed\nNone\n### Explanations\n- n/a\n### Modified Files\n-\n";
    assert!(
        GivenResponse::parse(none).unwrap().is_empty(),
        "{:?}",
        GivenResponse::parse(none)
    );
}

#[test]
fn anything_else_is_free_text() {
    for text in [
        "I fixed everything.\nSee the last commit.",
        "[x] done with F1",
        "# Notes\nnothing under a known heading",
    ] {
        let given = GivenResponse::parse(text).unwrap();
        assert_eq!(
            (given.addressed.len(), given.explanations.len()),
            (0, 0),
            "{text}"
        );
        assert!(
            given.text.is_some_and(
                |t| t.contains(text.lines().last().unwrap().trim_start_matches("[x] "))
            ),
            "{text}"
        );
    }
}

#[test]
fn what_is_no_answer_is_refused_by_what_is_wrong() {
    for (text, says) in [
        ("{\"addressed\": [", "not valid JSON"),
        ("{\"addressed\": [[\"F1\"]]}", "a list in a list"),
        ("{\"questions\": true}", "true or false"),
    ] {
        let e = GivenResponse::parse(text).unwrap_err();
        assert!(
            e.message.contains(says) && !e.hints.is_empty(),
            "{text}: {e:?}"
        );
    }
    assert!(GivenResponse::from_json(&Value::Bool(true)).is_err());
    let large = "x".repeat(MOST + 1);
    assert!(
        GivenResponse::parse(&large)
            .unwrap_err()
            .message
            .contains("more than")
    );
    assert!(GivenResponse::from_json(&Value::String(large)).is_err());
}

#[test]
fn an_answer_is_bounded() {
    let many: Vec<String> = (0..1_000)
        .map(|n| format!("item {n} {}", "é".repeat(100)))
        .collect();
    let value = serde_json::json!({ "addressed": many, "explanations": many, "questions": many, "modified_files": many });
    let given = GivenResponse::from_json(&value).unwrap();
    let lists = [
        given.addressed.len(),
        given.explanations.len(),
        given.questions.len(),
        given.modified_files.len(),
    ];
    assert_eq!(lists, [ITEMS; 4]);
    let given = GivenResponse::from_json(
        &serde_json::json!({ "explanations": ["é".repeat(50_000)], "text": "é".repeat(50_000) }),
    )
    .unwrap();
    assert!(given.explanations[0].text.len() <= ITEM + 3 && given.text.unwrap().len() <= TEXT + 3);
}

#[test]
fn sec_08_secrets_of_an_answer_are_masked_before_they_are_stored() {
    let rules = RuleSet::new(&RulesPolicy::default(), &[]).unwrap();
    let secret = format!("{}{}", "AKIA", "Q3EGRNDLK5V2TW7A");
    let line = format!("aws_access_key_id = {secret}");
    let said = GivenResponse {
        addressed: vec![line.clone()],
        explanations: explained(&[(Some(&line), &line)]),
        modified_files: vec![line.clone()],
        questions: vec![line.clone()],
        text: Some(line),
    };
    let stored = said.stored("2026-01-31-001", 1, "2026-01-31T10:00:00Z", &rules);
    let json = serde_json::to_string(&stored).unwrap();
    let masked = String::from_utf8_lossy(&rules.mask(secret.as_bytes())).into_owned();
    assert_ne!(masked, secret, "the sample is a secret");
    assert!(!json.contains(&secret), "{json}");
    assert_eq!(
        (stored.round, stored.review_id.as_str()),
        (1, "2026-01-31-001")
    );
}

#[test]
fn what_has_no_known_name_is_kept_as_text() {
    let given = GivenResponse::from_json(
        &serde_json::json!({ "explanation": "it is meant so", "foo": [1] }),
    )
    .unwrap();
    let kept = format!("{given:?}");
    assert!(
        kept.contains("it is meant so") && kept.contains("foo: [1]"),
        "{kept}"
    );
}
