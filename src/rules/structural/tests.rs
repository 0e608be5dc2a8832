//! Tests of structural rules: their matches, the matches that are findings, and invalid files.

use super::{MAX_WORK, ParsedText, StructuralRule, Work};
use crate::diff::{
    Attribute, Body, ChangeKind, Entry, FileChange, FileMode, RepoPath, Side, patch,
};
use crate::finding::{Finding, Severity};
use crate::policy::RulesPolicy;
use crate::rules::{RuleSet, Scope, test};

mod catalogue;

/// A rule with a fix, a note and metadata.
const RULE: &str = "\
id: no-bare-timeout
language: Python
severity: error
message: $CLIENT.get without a timeout
note: A server that never answers keeps the worker busy.
files: ['src/**/*.py']
ignores: ['src/tools/**']
url: https://docs.example/timeouts
metadata: { category: bug, cwe: 400, confidence: high, owner: team-a }
rule:
  pattern: $CLIENT.get($URL)
constraints:
  CLIENT: { regex: '^(requests|client)$' }
fix: $CLIENT.get($URL, timeout=10)
---
id: no-bare-timeout
valid:
  - requests.get(url, timeout=3)
  - cache.get(key)
invalid:
  - requests.get(url)
";

fn rules(files: &[(&str, &str)]) -> RuleSet {
    let files: Vec<_> = files
        .iter()
        .map(|(name, text)| ((*name).to_owned(), (*text).to_owned()))
        .collect();
    RuleSet::new(&RulesPolicy::default(), &files).unwrap_or_else(|e| panic!("{e:?}"))
}

/// Returns a change of a file, which `None` adds.
fn changed(path: &str, old: Option<&str>, new: &str) -> FileChange {
    let path = RepoPath::from(path);
    let (before, after) = (
        old.map(|text| text.as_bytes().to_vec()),
        new.as_bytes().to_vec(),
    );
    let body = Body::of_file(&path, before, Some(after), Attribute::Unset);
    let side = Side {
        path,
        mode: FileMode::Regular,
        id: None,
    };
    let kind = if old.is_some() {
        ChangeKind::Modified
    } else {
        ChangeKind::Added
    };
    FileChange {
        entry: Entry {
            kind,
            old: old.map(|_| side.clone()),
            new: Some(side),
        },
        body,
    }
}

/// Returns the findings of team rules in a change of a file.
fn found(rules: &RuleSet, path: &str, old: Option<&str>, new: &str) -> Vec<Finding> {
    scanned(rules, &changed(path, old, new))
}

fn scanned(rules: &RuleSet, change: &FileChange) -> Vec<Finding> {
    let mut out = Vec::new();
    rules.scan(change, Scope::All, &mut out);
    out.retain(|f| {
        rules
            .describe(f.rule_id())
            .is_some_and(|d| d.defined != crate::rules::RuleOrigin::BuiltIn)
    });
    out
}

fn lines(findings: &[Finding]) -> Vec<(u32, u32)> {
    findings
        .iter()
        .filter_map(Finding::lines)
        .map(|l| (l.first.get(), l.last.get()))
        .collect()
}

/// Returns the error of invalid files: its message, or its causes if it has several.
fn errors(files: &[(&str, &str)]) -> Vec<String> {
    let files: Vec<_> = files
        .iter()
        .map(|(name, text)| ((*name).to_owned(), (*text).to_owned()))
        .collect();
    let error = RuleSet::new(&RulesPolicy::default(), &files).unwrap_err();
    if error.causes.is_empty() {
        vec![error.message]
    } else {
        error.causes
    }
}

#[test]
fn a_match_has_the_message_of_its_rule_with_variables_and_the_fix() {
    let rules = rules(&[("r/a.yml", RULE)]);
    let found = found(
        &rules,
        "src/app/a.py",
        None,
        "import requests\n\nr = requests.get(\n    url)  # why\n",
    );
    let [finding] = &found[..] else {
        panic!("{found:?}")
    };
    assert_eq!(finding.title(), "requests.get without a timeout");
    assert_eq!(
        finding.message(),
        "A server that never answers keeps the worker busy."
    );
    assert_eq!(
        (finding.severity(), finding.cwe(), lines(&found)),
        (Severity::Major, Some(400), vec![(3, 4)])
    );
    assert_eq!(
        finding.replacement(),
        Some("r = requests.get(url, timeout=10)  # why")
    );
    assert_eq!(finding.category().name(), "bug");
    assert_eq!(finding.references(), ["https://docs.example/timeouts"]);
}

#[test]
fn paths_and_constraints_decide_where_a_rule_applies() {
    let rules = rules(&[("r/a.yml", RULE)]);
    let code = "r = requests.get(url)\n";
    assert_eq!(found(&rules, "src/app/a.py", None, code).len(), 1);
    for path in ["lib/a.py", "src/tools/a.py", "src/app/a.js"] {
        assert_eq!(lines(&found(&rules, path, None, code)), [], "{path}");
    }
    assert_eq!(
        lines(&found(&rules, "src/app/a.py", None, "r = cache.get(url)\n")),
        []
    );
}

#[test]
fn only_a_match_that_the_change_adds_is_a_finding() {
    let rules = rules(&[(
        "r/a.yaml",
        "id: no-empty-handler\nlanguage: ts\nseverity: warning\nmessage: empty handler\nrule:\n  kind: catch_clause\n  \
         not: { has: { kind: expression_statement, stopBy: end } }\n",
    )]);
    fn with(body: &str) -> String {
        format!("try {{\n  f();\n}} catch (e) {{\n{body}}}\n")
    }
    let (empty, full) = (with("  // later\n"), with("  log(e);\n"));
    assert_eq!(lines(&found(&rules, "a.ts", None, &empty)), [(3, 5)]);
    // The change removes the only statement: the match is around no added line, or around the
    // comment that it adds.
    assert_eq!(lines(&found(&rules, "a.ts", Some(&full), &empty)), [(4, 4)]);
    // The handler was empty before.
    assert_eq!(
        lines(&found(&rules, "a.ts", Some(&empty), &with("  // never\n"))),
        []
    );
    assert_eq!(
        lines(&found(
            &rules,
            "a.ts",
            Some(&empty),
            &format!("{empty}g();\n")
        )),
        []
    );
    // A copy of the handler is new.
    assert_eq!(
        lines(&found(
            &rules,
            "a.ts",
            Some(&empty),
            &format!("{empty}{empty}")
        )),
        [(8, 10)]
    );
}

#[test]
fn a_patch_is_matched_as_far_as_it_shows_the_file() {
    let rules = rules(&[("r/a.yml", RULE)]);
    let text = "diff --git a/src/a.py b/src/a.py\n--- a/src/a.py\n+++ b/src/a.py\n@@ -40,2 +40,3 @@\n def f(url):\n\
                +    x = client.get(url)\n     return x\n";
    let changes = patch::parse(text.as_bytes()).unwrap();
    let found: Vec<_> = changes
        .iter()
        .flat_map(|change| scanned(&rules, change))
        .collect();
    assert_eq!(lines(&found), [(41, 41)]);
}

#[test]
fn every_language_matches_a_call_with_a_variable() {
    for (language, path, pattern, code) in [
        ("python", "a.py", "eval($X)", "y = eval(text)\n"),
        ("JavaScript", "a.js", "eval($X)", "const y = eval(text);\n"),
        (
            "js",
            "a.jsx",
            "eval($X)",
            "const y = <p>{eval(text)}</p>;\n",
        ),
        (
            "TypeScript",
            "a.ts",
            "eval($X)",
            "const y: string = eval(text);\n",
        ),
        (
            "Tsx",
            "a.tsx",
            "eval($X)",
            "const y = <p>{eval(text)}</p>;\n",
        ),
        (
            "go",
            "a.go",
            "panic($X)",
            "package a\n\nfunc f() { panic(text) }\n",
        ),
        (
            "java",
            "A.java",
            "System.exit($X)",
            "class A { void f() { System.exit(1); } }\n",
        ),
        (
            "kotlin",
            "a.kt",
            "exitProcess($X)",
            "fun f() { exitProcess(1) }\n",
        ),
        ("ruby", "a.rb", "eval($X)", "y = eval(text)\n"),
        ("php", "a.php", "eval($X)", "<?php\neval($text);\n"),
        ("rust", "a.rs", "drop($X)", "fn f() { drop(text); }\n"),
        ("c", "a.c", "gets($X);", "void f() { gets(text); }\n"),
        ("cpp", "a.cpp", "gets($X);", "void f() { gets(text); }\n"),
        (
            "csharp",
            "a.cs",
            "Exit($X)",
            "class A { void F() { Exit(1); } }\n",
        ),
        ("bash", "a.sh", "eval $X", "eval $text\n"),
    ] {
        let rule = format!(
            "id: a-call\nlanguage: {language}\nmessage: m\nrule: {{ pattern: '{pattern}' }}\n"
        );
        let rules = rules(&[("r/a.yml", &rule)]);
        assert_eq!(
            found(&rules, path, None, code).len(),
            1,
            "{language}: {code}"
        );
    }
}

#[test]
fn samples_are_tested() {
    fn run(text: &str) -> crate::rules::Report {
        test(&[("r/a.yml".to_owned(), text.to_owned())]).unwrap()
    }
    let report = run(RULE);
    assert_eq!(
        (report.rules, report.samples, report.failures),
        (1, 3, Vec::new())
    );
    let report = run(&RULE
        .replace("  - cache.get(key)", "  - client.get(key)")
        .replace("invalid:\n  - requests", "invalid:\n  - cache"));
    assert_eq!(
        report.failures,
        [
            "no-bare-timeout: sample 1 (src/a/a.py): must match and does not: cache.get(url)",
            "no-bare-timeout: sample 3 (src/a/a.py): must not match and does: client.get(key)",
        ]
    );
    let report = run(RULE.split("---").next().unwrap());
    assert_eq!(
        report.failures.len(),
        2,
        "a rule needs both kinds of samples: {:?}",
        report.failures
    );
}

#[test]
fn an_invalid_file_names_each_problem_with_its_line() {
    for (from, to, expected) in [
        (
            "language: Python",
            "language: Cobol",
            "r/a.yml:2: rule \"no-bare-timeout\": ",
        ),
        ("severity: error", "severity: fatal", "r/a.yml:"),
        ("rule:\n", "rulez: 1\nrule:\n", "r/a.yml:"),
        (
            "pattern: $CLIENT.get($URL)",
            "kind: no_such_kind",
            "r/a.yml:10: rule \"no-bare-timeout\": ",
        ),
        (
            "fix: $CLIENT",
            "fix: $OTHER",
            "r/a.yml:10: rule \"no-bare-timeout\": ",
        ),
        (
            "cwe: 400",
            "cwe: CWE-400",
            "r/a.yml:9: rule \"no-bare-timeout\": metadata: cwe must be a number, such as 89",
        ),
        (
            "category: bug",
            "category: bugs",
            "r/a.yml:9: rule \"no-bare-timeout\": category: ",
        ),
        (
            "files: ['src/**/*.py']",
            "files: [{ glob: 'a', caseInsensitive: true }]",
            "r/a.yml:6: rule \"no-bare-timeout\": files: ",
        ),
        (
            "id: no-bare-timeout\nvalid",
            "id: other\nvalid",
            "r/a.yml:16: rule \"other\": has samples and no rule in this file",
        ),
        (
            "invalid:\n  - requests.get(url)",
            "invalid: text",
            "r/a.yml:20: rule \"no-bare-timeout\": invalid: must be a list of texts",
        ),
        (
            "valid:\n",
            "valids: []\nvalid:\n",
            "r/a.yml:17: rule \"no-bare-timeout\": unknown key `valids` beside samples",
        ),
        (
            "rule:\n  pattern",
            "rule:\n pattern: [\n  pattern",
            "r/a.yml:",
        ),
    ] {
        let text = RULE.replacen(from, to, 1);
        assert_ne!(text, RULE, "{from}");
        let errors = errors(&[("r/a.yml", &text)]);
        assert!(
            errors.len() == 1 && errors[0].starts_with(expected),
            "{to}: {errors:?}"
        );
        assert!(!errors[0].contains('\n'), "{errors:?}");
    }
    assert_eq!(
        errors(&[("r/a.yml", "language: py\n")]),
        ["r/a.yml:1: missing key `id`"]
    );
    assert_eq!(
        errors(&[("r/a.yml", "- 1\n")]),
        ["r/a.yml:1: a rule must be a mapping of keys"]
    );
    let twice = errors(&[("r/a.yml", RULE), ("r/b.yml", RULE)]);
    assert_eq!(
        twice,
        ["r/b.yml:1: rule \"no-bare-timeout\": id: is already used at r/a.yml:1"]
    );
    let built_in = errors(&[(
        "r/a.yml",
        &RULE.replace("no-bare-timeout", "python-flask-debug"),
    )]);
    assert_eq!(
        built_in,
        ["r/a.yml:1: rule \"python-flask-debug\": id: is the id of a built-in rule"]
    );
}

#[test]
fn a_rule_that_is_off_and_an_empty_file_have_no_rules() {
    for text in [
        RULE.replace("severity: error", "severity: off").as_str(),
        "",
        "---\n---\n# x\n",
    ] {
        assert_eq!(
            lines(&found(
                &rules(&[("r/a.yml", text)]),
                "src/a/a.py",
                None,
                "requests.get(url)\n"
            )),
            [],
            "{text}"
        );
    }
}

/// A rule that searches all code below a node would take quadratic time in nested code.
#[test]
fn the_work_on_nested_code_is_bounded() {
    fn is_exceeded(depth: usize, left: usize) -> bool {
        let text = "id: nested\nlanguage: python\nrule:\n  kind: parenthesized_expression\n  has: { kind: string, stopBy: end }\n";
        let rule = StructuralRule::new(ast_grep_config::from_str(text).unwrap(), text).unwrap();
        let code = format!("x = {}1{}\n", "(\n".repeat(depth), ")\n".repeat(depth));
        let mut work = Work {
            left,
            ..Work::new()
        };
        ParsedText::new(&code, rule.language(), true)
            .unwrap()
            .find(&[&rule], None, &mut work);
        work.is_exceeded()
    }
    assert!(!is_exceeded(100, 100_000));
    assert!(
        is_exceeded(1000, 100_000),
        "twice the depth is four times the work"
    );
    assert!(!is_exceeded(300, MAX_WORK));
}

/// Each node searches all of its siblings, and what is below them.
#[test]
fn the_time_for_nested_searches_is_bounded() {
    let text = "id: wide\nlanguage: python\nrule:\n  kind: expression_statement\n  inside:\n    kind: module\n    stopBy: end\n    has:\n      stopBy: end\n      kind: call\n      has: { stopBy: end, kind: string }\n";
    let rule = StructuralRule::new(ast_grep_config::from_str(text).unwrap(), text).unwrap();
    let code = "f(x)\n".repeat(20_000);
    let mut work = Work {
        end: std::time::Instant::now(),
        ..Work::new()
    };
    ParsedText::new(&code, rule.language(), true)
        .unwrap()
        .find(&[&rule], None, &mut work);
    assert!(work.is_exceeded(), "a time that is over ends the search");
}

#[test]
fn a_file_that_a_limit_excludes_is_reported() {
    let rules = rules(&[("r/a.yml", RULE)]);
    let partial = |text: &str| {
        rules
            .scan(
                &changed("src/a.py", None, text),
                Scope::All,
                &mut Vec::new(),
            )
            .is_tree_partial
    };
    assert!(!partial("y = 1\n"));
    assert!(partial(&"y = 1\n".repeat(200_000)));
    assert!(partial(&format!("y = [{}]\n", "1, ".repeat(10_000))));
}
