//! Tests of the structural rules of the catalogue: the changes for which a file is parsed, and the
//! reports.

use super::{changed, lines, rules};
use crate::finding::{Finding, Severity};
use crate::policy::RulesPolicy;
use crate::rules::{RuleSet, Scope};

const ID: &str = "rust-guard-dropped-at-once";

/// Returns the findings of one rule of the catalogue in a change of a file.
fn found(rules: &RuleSet, path: &str, old: Option<&str>, new: &str) -> Vec<Finding> {
    let mut out = Vec::new();
    rules.scan(&changed(path, old, new), Scope::All, &mut out);
    out.retain(|f| f.rule_id() == ID);
    out
}

fn built_in() -> RuleSet {
    rules(&[])
}

/// A function with a lock over several lines, and `bytes` bytes of comments between its call and
/// the statement above.
fn code(binding: &str, field: &str, bytes: usize) -> String {
    let filler = "// filler\n".repeat(bytes / 10);
    format!(
        "fn f(&self) {{\n    let {binding} = self\n        .{field}\n{filler}        .lock()\n        .unwrap();\n}}\n"
    )
}

#[test]
fn an_added_line_completes_a_match_whose_literal_is_on_an_unchanged_line() {
    let (old, new) = (code("_guard", "state", 0), code("_", "state", 0));
    assert_eq!(
        lines(&found(&built_in(), "src/a.rs", Some(&old), &new)),
        [(2, 5)]
    );
    // The literal above the added line, and a gap between two added parts.
    let (old, new) = (code("_guard", "state", 20_000), code("_", "state", 20_000));
    let tail = "fn g() {}\n";
    assert_eq!(
        found(&built_in(), "src/a.rs", Some(&old), &format!("{new}{tail}")).len(),
        1
    );
    let open = "fn f(m: &M) {\n    let _ = m.lock().map(|x| {\n        x\n    });\n}\n";
    let closed = open.replace(
        "map(|x| {\n        x\n    })",
        "expect(\n        \"poisoned\",\n    )",
    );
    assert_eq!(
        lines(&found(&built_in(), "src/a.rs", Some(open), &closed)),
        [(2, 4)]
    );
}

#[test]
fn an_edit_inside_of_an_old_match_is_not_a_finding() {
    let (old, new) = (code("_", "state", 0), code("_", "other", 0));
    assert_eq!(lines(&found(&built_in(), "src/a.rs", Some(&old), &new)), []);
    assert_eq!(
        lines(&found(
            &built_in(),
            "src/a.rs",
            Some(&old),
            &format!("{old}fn g() {{}}\n")
        )),
        []
    );
}

#[test]
fn code_with_a_syntax_error_is_not_matched() {
    let text = code("_", "state", 0);
    assert_eq!(found(&built_in(), "src/a.rs", None, &text).len(), 1);
    assert_eq!(
        found(&built_in(), "src/a.rs", None, &format!("{text}fn g( {{\n")).len(),
        1,
        "an error elsewhere"
    );
    let broken = text.replace(".state", ".state[(");
    assert_eq!(lines(&found(&built_in(), "src/a.rs", None, &broken)), []);
}

#[test]
fn policy_and_comments_apply_as_to_other_rules() {
    let text = code("_", "state", 0);
    let policy = RulesPolicy {
        disable: vec![ID.to_owned()],
        ..RulesPolicy::default()
    };
    let disabled = RuleSet::new(&policy, &[]).unwrap();
    assert_eq!(lines(&found(&disabled, "src/a.rs", None, &text)), []);
    let severity = [(ID.to_owned(), Severity::Critical)].into_iter().collect();
    let raised = RuleSet::new(
        &RulesPolicy {
            severity,
            ..RulesPolicy::default()
        },
        &[],
    )
    .unwrap();
    assert_eq!(
        found(&raised, "src/a.rs", None, &text)[0].severity(),
        Severity::Critical
    );
    let comment = format!("    // claude-reviewer: ignore[{ID}] waits for the writer\n    let _ =");
    let suppressed = found(
        &built_in(),
        "src/a.rs",
        None,
        &text.replace("    let _ =", &comment),
    );
    assert!(suppressed.len() == 1 && suppressed[0].suppressed.is_some());
    assert_eq!(
        lines(&found(&built_in(), "tests/a.rs", None, &text)),
        [],
        "a rule for programs"
    );
    assert_eq!(
        lines(&found(&built_in(), "src/a.py", None, &text)),
        [],
        "another language"
    );
}

#[test]
fn a_fix_is_offered_unless_the_rule_still_matches() {
    let fixed = found(&built_in(), "src/a.rs", None, &code("_", "state", 0));
    assert_eq!(
        fixed[0].replacement(),
        Some("    let _guard = self\n        .state\n        .lock()\n        .unwrap();")
    );
    let two = "fn f(m: &M) {\n    let _ = m.lock().unwrap(); let _ = m.lock().unwrap();\n}\n";
    assert!(
        found(&built_in(), "src/a.rs", None, two)
            .iter()
            .all(|f| f.replacement().is_none()),
        "one of two"
    );
}
