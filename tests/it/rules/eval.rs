//! `rules eval`: measures the rules on labelled cases.

use crate::support::reviewer;
use serde_json::Value;

/// Makes a case of a labelled set.
fn labelled(id: &str, code: &str, expected: &[u32], safe: &[u32]) -> String {
    serde_json::json!({
        "id": id, "language": "python", "framework": "requests", "category": "tls", "cwe": 295,
        "file": "app/client.py", "code": code, "expected": expected, "safe": safe,
    })
    .to_string()
}

#[test]
fn rules_eval_measures_labelled_cases() {
    let dir = crate::support::temp_dir();
    let off = "import requests\nrequests.get(u, verify=False)\nrequests.get(u, verify=True)\n";
    let cases = [
        labelled("tls-1", off, &[2], &[3]),
        labelled("tls-2", off, &[3], &[2]),
    ]
    .join("\n");
    std::fs::create_dir(dir.path().join("set")).unwrap();
    std::fs::write(dir.path().join("set/a.jsonl"), cases).unwrap();
    std::fs::write(dir.path().join("set/notes.txt"), "no case").unwrap();
    let eval = |args: &[&str], code: i32| {
        let all = [&["rules", "eval"], args].concat();
        let run = reviewer(dir.path(), dir.path(), &all).run(code);
        (run.stdout, run.stderr)
    };
    let (text, _) = eval(&["set", "--misses", "--false-alarms"], 0);
    let last = text.lines().last().unwrap();
    assert_eq!(
        last,
        "2 cases: 1 of 2 expected lines found (50.0%), 1 with at least medium confidence (50.0%), 1 with any severity (50.0%); 1 of 2 safe lines flagged (50.0%)"
    );
    assert!(
        text.contains("  set/a.jsonl:2 tls-2 line 3: requests.get(u, verify=True)\n"),
        "{text}"
    );
    assert!(
        text.contains("tls-2 line 2 (python-tls-verify-off): requests.get(u, verify=False)\n"),
        "{text}"
    );
    let (json, _) = eval(&["set/a.jsonl", "--format", "json"], 0);
    let report: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(report["total"]["found"], 1);
    assert_eq!(report["by_rule"]["python-tls-verify-off"]["flagged"], 1);
    assert_eq!(report["by_category"]["tls"]["safe"], 2);
    assert_eq!(report["cases"][0]["findings"][0]["line"], 2);
}

/// The rules, the tables and the lowering of each language are measured together. The shares are a
/// little below those of `docs/benchmarks.md`, so that a rule can be corrected without a change
/// here, and a broken language cannot.
#[test]
fn the_labelled_cases_of_the_project_are_found_and_their_safe_lines_are_not_flagged() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let home = crate::support::temp_dir();
    let run = reviewer(
        root,
        home.path(),
        &["rules", "eval", "fixtures/rules", "--format", "json"],
    )
    .run(0);
    let report: Value = serde_json::from_str(&run.stdout).unwrap();
    let share = |of: &Value, part: &str, whole: &str| {
        let count = |key: &str| of[key].as_f64().unwrap();
        if count(whole) == 0.0 {
            0.0
        } else {
            count(part) / count(whole)
        }
    };
    let total = &report["total"];
    assert!(
        share(total, "certain", "expected") > 0.92
            && share(total, "seen", "expected") > 0.98
            && share(total, "flagged", "safe") < 0.002,
        "{total}"
    );
    let languages = report["by_language"].as_object().unwrap();
    // Most findings in configurations are about settings, which are suggestions.
    let count = |part: &str| {
        let code = languages
            .iter()
            .filter(|(name, _)| !["yaml", "terraform", "dockerfile"].contains(&name.as_str()));
        code.map(|(_, of)| of[part].as_f64().unwrap()).sum::<f64>()
    };
    assert!(count("found") / count("expected") > 0.7, "{languages:?}");
    let large = || {
        languages
            .iter()
            .filter(|(_, of)| of["expected"].as_u64().unwrap() >= 80)
    };
    assert!(large().count() >= 10, "{languages:?}");
    for (name, of) in large() {
        let found = match name.as_str() {
            "yaml" => 0.3,
            "terraform" => 0.25,
            _ => 0.66,
        };
        assert!(
            share(of, "found", "expected") > found
                && share(of, "certain", "expected") > 0.88
                && share(of, "flagged", "safe") < 0.01,
            "{name}: {of}"
        );
    }
    // Data that is validated is a promise about false alarms.
    for list in ["misses", "false_alarms"] {
        let ids = report[list]
            .as_array()
            .unwrap()
            .iter()
            .map(|of| of["id"].as_str().unwrap());
        let validated: Vec<_> = ids.filter(|id| id.starts_with("validated-")).collect();
        assert!(validated.is_empty(), "{list}: {validated:?}");
    }
}

#[test]
fn rules_eval_names_the_file_and_line_of_an_invalid_case() {
    let dir = crate::support::temp_dir();
    let good = labelled("a", "x = 1\n", &[1], &[]);
    let write = |text: &str| std::fs::write(dir.path().join("a.jsonl"), text).unwrap();
    let error = || {
        reviewer(dir.path(), dir.path(), &["rules", "eval", "."])
            .run(2)
            .stderr
    };
    assert!(error().contains("no case in ."), "{}", error());
    for (bad, why) in [
        ("{\"id\": 1".to_owned(), "invalid type"),
        ("not JSON".to_owned(), "expected"),
        (
            good.replace("\"safe\":[]", "\"other\":[]"),
            "missing field `safe`",
        ),
        (
            labelled("b", "x = 1\n", &[1], &[7]),
            "safe: line 7 is outside of the code, which has 1 lines",
        ),
    ] {
        write(&format!("{good}\n\n{bad}\n"));
        let text = error();
        assert!(
            text.starts_with("error: ./a.jsonl:3: invalid case: ") && text.contains(why),
            "{text}"
        );
        assert!(text.contains("hint: each line is a JSON object"), "{text}");
    }
}
