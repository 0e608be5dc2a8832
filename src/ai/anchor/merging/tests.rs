//! Tests of merging several claims, and of claims that repeat findings of rules.

use super::*;
use crate::ai::anchor::PositionCertainty;
use crate::ai::anchor::tests::{ClaimCase, claim};
use crate::ai::claim::Claim;
use crate::finding::Severity;
use crate::rules::Scope;

fn case() -> ClaimCase {
    let old = "import os\n\n\ndef run(name):\n    pass\n";
    let new = "import os\nimport sqlite3\n\n\ndef run(name):\n    db = sqlite3.connect(PATH)\n    db.execute(\"select * from t where n = '\" + name + \"'\")\n    return db.last[name]\n";
    ClaimCase::new(&[("app/run.py", old, new)])
}

const QUERY: &str = "db.execute(\"select * from t where n = '\" + name + \"'\")";

fn injection() -> Claim {
    Claim {
        title: "SQL injection".to_owned(),
        message: "The name is concatenated into the query unchecked.".to_owned(),
        category: "security".to_owned(),
        cwe: Some(89),
        ..claim("app/run.py", 7, QUERY)
    }
}

fn by(case: &ClaimCase, backend: &str, claim: Claim) -> ClaimCandidate {
    ClaimCandidate {
        backend: backend.to_owned(),
        ..case.candidate(claim)
    }
}

fn reading(case: &ClaimCase, backend: &str, claim: Claim) -> ClaimCandidate {
    let candidate = by(case, backend, claim);
    let location = candidate.draft.location.clone().unwrap();
    let line = location.lines.unwrap().first;
    let evidence = vec![Evidence::Read {
        path: location.file,
        first: line,
        last: line,
    }];
    ClaimCandidate {
        evidence,
        ..candidate
    }
}

/// Formats findings: severity, confidence, origin, evidence.
fn listed(merged: &MergedClaims) -> Vec<String> {
    let lines = merged.findings.iter().map(|f| {
        let evidence = f.evidence().iter().map(word).collect::<Vec<_>>().join("+");
        format!(
            "{} {} {} {evidence}",
            f.severity(),
            f.confidence().name(),
            f.origin().name()
        )
        .trim()
        .to_owned()
    });
    lines.collect()
}

fn word(e: &Evidence) -> String {
    match e {
        Evidence::Carried { round } => format!("carried:{round}"),
        Evidence::Quote => "quote".to_owned(),
        Evidence::Reproduced => "reproduced".to_owned(),
        Evidence::Rule(id) => format!("rule:{id}"),
        Evidence::Read { .. } => "read".to_owned(),
        Evidence::Backend(name) => name.clone(),
    }
}

/// Returns the claim of a bug on the last line.
fn bug(quote: &str) -> Claim {
    claim("app/run.py", 8, quote)
}

/// Formats the only finding of a candidate.
fn one(case: &ClaimCase, candidate: ClaimCandidate) -> String {
    listed(&merge_claims(vec![candidate], &[], &case.rules)).remove(0)
}

/// Formats the findings of two candidates.
fn both(case: &ClaimCase, a: ClaimCandidate, b: ClaimCandidate) -> Vec<String> {
    listed(&merge_claims(vec![a, b], &[], &case.rules))
}

#[test]
fn confidence_follows_from_the_evidence_by_the_table() {
    let case = case();
    let exact = "return db.last[name]";
    assert_eq!(
        one(&case, by(&case, "a", bug(exact))),
        "major medium a quote"
    );
    assert_eq!(
        one(&case, reading(&case, "a", bug(exact))),
        "major high a quote+read"
    );
    // A loose match has low confidence, whatever other evidence exists.
    assert_eq!(one(&case, by(&case, "a", bug(""))), "major low a");
    assert_eq!(
        one(&case, by(&case, "a", bug("return db.newest[name]"))),
        "major low a"
    );
    assert_eq!(
        one(&case, reading(&case, "a", bug("return db.newest[name]"))),
        "major low a read"
    );
    assert_eq!(
        one(&case, by(&case, "a", bug("db.last[name]"))),
        "major medium a quote"
    );
    let numbered = ClaimCandidate {
        certainty: PositionCertainty::Likely,
        ..by(&case, "a", bug(exact))
    };
    assert_eq!(one(&case, numbered), "major medium a quote");
    let numbered = ClaimCandidate {
        certainty: PositionCertainty::Likely,
        ..reading(&case, "a", bug(exact))
    };
    assert_eq!(one(&case, numbered), "major medium a quote+read");
    assert_eq!(
        both(
            &case,
            by(&case, "a", bug(exact)),
            by(&case, "b", bug(exact))
        ),
        ["major high a quote+b"]
    );
    assert_eq!(
        both(&case, by(&case, "a", bug("")), by(&case, "b", bug(""))),
        ["major low a b"]
    );
    // Two claims of the same backend do not count as agreement.
    assert_eq!(
        both(
            &case,
            by(&case, "a", bug(exact)),
            by(&case, "a", bug(exact))
        ),
        ["major medium a quote"]
    );
}

#[test]
fn two_backends_that_say_the_same_make_one_finding() {
    let case = case();
    let other = Claim {
        title: "User input reaches the SQL query".to_owned(),
        message: "`name` comes from the caller, and a quote in it ends the string.".to_owned(),
        cwe: None,
        severity: "critical".to_owned(),
        failure: Some("name = \"' or 1 = 1 --\" returns every row".to_owned()),
        ..injection()
    };
    let merged = merge_claims(
        vec![by(&case, "b", other), by(&case, "a", injection())],
        &[],
        &case.rules,
    );
    assert_eq!(listed(&merged), ["critical high b quote+a"]);
    let finding = &merged.findings[0];
    assert!(
        finding
            .message()
            .contains("a says: SQL injection: The name is concatenated"),
        "{}",
        finding.message()
    );
    assert_eq!(
        (finding.cwe(), finding.failure().is_some()),
        (Some(89), true)
    );
}

#[test]
fn two_problems_on_one_line_stay_two() {
    let case = case();
    let leak = Claim {
        title: "The cursor is never closed".to_owned(),
        message: "Every call keeps a cursor open until the process ends.".to_owned(),
        ..claim("app/run.py", 7, QUERY)
    };
    let merged = merge_claims(
        vec![by(&case, "a", leak.clone()), by(&case, "a", injection())],
        &[],
        &case.rules,
    );
    assert_eq!(merged.findings.len(), 2);
    // The same holds for one category. They are still two findings after the report is arranged.
    let bug = Claim {
        category: "bug".into(),
        cwe: None,
        ..injection()
    };
    let merged = merge_claims(
        vec![by(&case, "a", leak), by(&case, "a", bug)],
        &[],
        &case.rules,
    );
    let arranged = crate::finding::arrange(merged.findings);
    assert_eq!(arranged.len(), 2);
    assert_ne!(arranged[0].fingerprint(), arranged[1].fingerprint());
}

#[test]
fn the_order_of_answers_changes_nothing() {
    let case = case();
    let [b, a, c] = [
        by(&case, "b", injection()),
        by(&case, "a", injection()),
        by(&case, "c", claim("app/run.py", 6, "")),
    ];
    let first = listed(&merge_claims(
        vec![b.clone(), a.clone(), c.clone()],
        &[],
        &case.rules,
    ));
    assert_eq!(
        listed(&merge_claims(
            vec![c.clone(), a.clone(), b.clone()],
            &[],
            &case.rules
        )),
        first
    );
    assert_eq!(
        listed(&merge_claims(vec![a, c, b], &[], &case.rules)),
        first
    );
}

#[test]
fn a_listed_weakness_is_critical_from_confidence_medium_up() {
    let case = case();
    for cwe in [74, 77, 78, 79, 89, 94, 95, 502, 611, 918, 798, 522, 321] {
        assert_eq!(
            merged_weakness(&case, QUERY, cwe),
            (Severity::Critical, 1),
            "{cwe}"
        );
    }
    assert_eq!(merged_weakness(&case, QUERY, 476), (Severity::Minor, 0));
    assert_eq!(
        merged_weakness(&case, "database.run(", 89),
        (Severity::Minor, 0),
        "low confidence raises nothing"
    );
}

/// Returns the severity of the finding of a minor claim with a weakness, and the number of notes.
fn merged_weakness(case: &ClaimCase, quote: &str, cwe: i64) -> (Severity, usize) {
    let claim = Claim {
        cwe: Some(cwe),
        severity: "minor".into(),
        quote: Some(quote.into()),
        ..injection()
    };
    let merged = merge_claims(vec![by(case, "a", claim)], &[], &case.rules);
    (merged.findings[0].severity(), merged.notes.len())
}

#[test]
fn a_loose_claim_makes_a_sure_one_no_worse() {
    let case = case();
    let sure = Claim {
        severity: "minor".into(),
        category: "bug".into(),
        cwe: None,
        ..injection()
    };
    let loose = Claim {
        severity: "critical".into(),
        quote: None,
        ..injection()
    };
    let merged = merge_claims(
        vec![by(&case, "a", sure), by(&case, "b", loose)],
        &[],
        &case.rules,
    );
    assert_eq!(merged.findings.len(), 1);
    assert_eq!(
        (merged.findings[0].severity(), merged.findings[0].cwe()),
        (Severity::Minor, None)
    );
}

#[test]
fn a_refuted_claim_is_disputed_unless_another_stands() {
    let case = case();
    let refuted = ClaimCandidate {
        disputed: Some("it is escaped".into()),
        ..by(&case, "a", injection())
    };
    let merged = merge_claims(vec![refuted.clone()], &[], &case.rules);
    assert_eq!(
        merged.findings[0].disputed.as_deref(),
        Some("it is escaped")
    );
    let merged = merge_claims(vec![refuted, by(&case, "b", injection())], &[], &case.rules);
    assert_eq!(
        listed(&merged),
        ["critical medium b quote"],
        "what is refuted supports nothing"
    );
    assert_eq!(merged.findings[0].disputed, None);
}

/// Returns the case, the findings of rules, and the line with the key.
fn with_a_key() -> (ClaimCase, Vec<Finding>, String) {
    let line = format!("aws_access_key_id = \"{}{}\"\n", "AKIA", "Q3EGRNDLK5V2TW7A");
    let case = ClaimCase::new(&[("conf.py", "a = 1\n", &format!("a = 1\n{line}"))]);
    let mut found = Vec::new();
    case.rules
        .scan(&case.group.files[0].change, Scope::All, &mut found);
    assert!(!found.is_empty());
    let shown = case.group.files[0].hunks[0].lines[1].text.clone();
    (case, found, shown)
}

#[test]
fn a_claim_that_repeats_a_rule_is_evidence_and_not_reported_twice() {
    let (case, mut found, shown) = with_a_key();
    assert!(shown.contains("<secret:"), "{shown}");
    let hardcoded = Claim {
        title: "Hard-coded credential".into(),
        message: "An access key stands in the code.".into(),
        category: "security".into(),
        ..claim("conf.py", 2, &shown)
    };
    let merged = merge_claims(vec![by(&case, "a", hardcoded)], &found, &case.rules);
    assert!(merged.findings.is_empty(), "{:?}", listed(&merged));
    assert_eq!(merged.echoes.len(), 1);
    let before = (
        found[0].severity(),
        found[0].confidence(),
        found[0].fingerprint().clone(),
    );
    merged.annotate_rule_findings(&mut found);
    assert!(found[0].evidence().contains(&Evidence::Backend("a".into())));
    assert_eq!(
        (
            found[0].severity(),
            found[0].confidence(),
            found[0].fingerprint().clone()
        ),
        before
    );
}

#[test]
fn a_rule_on_the_same_lines_is_evidence_for_another_problem_of_its_kind() {
    let (case, found, shown) = with_a_key();
    let other = Claim {
        title: "The file is readable by everybody".into(),
        message: "Nothing restricts who may open it.".into(),
        category: "security".into(),
        cwe: Some(732),
        ..claim("conf.py", 2, &shown)
    };
    let merged = merge_claims(vec![by(&case, "a", other)], &found, &case.rules);
    assert_eq!(
        listed(&merged),
        [format!("major high a quote+rule:{}", found[0].rule_id())]
    );
    let style = Claim {
        category: "style".into(),
        title: "Long line".into(),
        ..claim("conf.py", 2, &shown)
    };
    let merged = merge_claims(vec![by(&case, "a", style)], &found, &case.rules);
    assert_eq!(listed(&merged), ["major medium a quote"]);
}

#[test]
fn out_10_a_model_that_calls_a_rules_finding_false_only_disputes_it() {
    let (case, mut found, shown) = with_a_key();
    let doubt = Claim {
        title: "The secret finding is a false positive".into(),
        message: "This is a false positive: the key is an example.".into(),
        severity: "suggestion".into(),
        category: "security".into(),
        ..claim("conf.py", 2, &shown)
    };
    let merged = merge_claims(vec![by(&case, "a", doubt)], &found, &case.rules);
    assert!(merged.findings.is_empty());
    merged.annotate_rule_findings(&mut found);
    assert_eq!(
        found[0].disputed.as_deref(),
        Some("a: This is a false positive: the key is an example.")
    );
    assert!(found[0].counts());
}

#[test]
fn a_claim_that_is_worse_than_the_rule_it_repeats_is_kept() {
    let (case, mut found, shown) = with_a_key();
    found.truncate(1);
    let id = found[0].rule_id().to_owned();
    let cwe = found[0].cwe().map(i64::from);
    let mild = RuleSet::new(
        &crate::policy::RulesPolicy {
            severity: vec![(id, Severity::Suggestion)].into_iter().collect(),
            ..Default::default()
        },
        &[],
    )
    .unwrap();
    let hardcoded = Claim {
        category: "security".into(),
        cwe,
        title: "Key".into(),
        ..claim("conf.py", 2, &shown)
    };
    // The policy lowered the severity of the rule. A claim must not undo this decision of a person.
    let mut lowered = Vec::new();
    mild.scan(&case.group.files[0].change, Scope::All, &mut lowered);
    assert_eq!(lowered[0].severity(), Severity::Suggestion);
    let merged = merge_claims(vec![by(&case, "a", hardcoded)], &lowered, &mild);
    assert_eq!(
        (merged.findings.len(), merged.echoes.len()),
        (0, 1),
        "{:?}",
        listed(&merged)
    );
    // Here the severity of the rule is low by default, and the claim has a higher one.
    let rule = crate::rules::describe_all()
        .find(|r| r.severity <= Severity::Minor && r.cwe.is_some())
        .unwrap();
    let draft = Draft {
        rule_id: rule.id.into(),
        severity: rule.severity,
        cwe: rule.cwe,
        ..draft_of(&found[0])
    };
    let worse = Claim {
        cwe: rule.cwe.map(i64::from),
        title: "Worse".into(),
        ..claim("conf.py", 2, &shown)
    };
    let merged = merge_claims(
        vec![by(&case, "a", worse)],
        &[Finding::sample(draft, Confidence::High)],
        &case.rules,
    );
    assert_eq!((merged.findings.len(), merged.echoes.len()), (1, 0));
}

fn draft_of(finding: &Finding) -> Draft {
    Draft {
        rule_id: finding.rule_id().to_owned(),
        location: finding.location().cloned(),
        severity: finding.severity(),
        category: finding.category(),
        title: finding.title().to_owned(),
        message: finding.message().to_owned(),
        failure: None,
        suggestion: None,
        replacement: None,
        quote: finding.quote().to_owned(),
        cwe: finding.cwe(),
        convention: None,
        also: Vec::new(),
        flow: Vec::new(),
        references: Vec::new(),
    }
}

#[test]
fn the_same_claim_about_two_branches_of_a_push_stays_two() {
    // Neither group has a commit: each is a net change.
    let case = case();
    let candidates = [1, 0].map(|group| ClaimCandidate {
        group,
        ..by(&case, "a", injection())
    });
    let merged = merge_claims(candidates.into(), &[], &case.rules);
    assert_eq!(listed(&merged).len(), 2);
    assert_eq!(merged.groups, [0, 1]);
}

#[test]
fn what_one_backend_says_under_several_lenses_is_one_thing_to_ask_about() {
    let case = case();
    let leak = Claim {
        title: "The cursor is never closed".to_owned(),
        message: "Every call keeps a cursor open until the process ends.".to_owned(),
        ..claim("app/run.py", 7, QUERY)
    };
    let again = Claim {
        title: "SQL injection by name".to_owned(),
        ..injection()
    };
    let mut all = [
        by(&case, "a", injection()),
        by(&case, "b", injection()),
        by(&case, "a", leak),
        by(&case, "a", again),
    ];
    let same = alike(&mut all);
    let titles = same.iter().map(|same| {
        let mut titles: Vec<_> = same
            .iter()
            .map(|i| format!("{} {}", all[*i].backend, all[*i].draft.title))
            .collect();
        titles.sort();
        titles
    });
    let mut said: Vec<_> = titles.collect();
    said.sort();
    let both = vec![
        "a SQL injection".to_owned(),
        "a SQL injection by name".to_owned(),
    ];
    let expected = [
        both,
        vec!["a The cursor is never closed".to_owned()],
        vec!["b SQL injection".to_owned()],
    ];
    assert_eq!(said, expected);
}
