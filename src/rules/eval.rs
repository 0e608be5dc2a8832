//! Measures the rules on labelled cases: which expected lines they find, and which safe lines they
//! flag.
//!
//! Each case is scanned as a new file, so every line is added. A line counts as found if a finding
//! on it is above `suggestion`, has at least medium confidence, and is about the weakness of the
//! case.

mod case;

use super::scan::{flow, join};
use super::{RuleSet, Scope};
use crate::diff::{RepoPath, code};
use crate::finding::{Category, Confidence, Finding, Severity};
pub use case::{Case, read};
use std::collections::BTreeMap;

/// A finding in a case.
#[derive(Clone, Debug)]
pub struct EvalHit {
    pub rule: String,
    pub first: u32,
    pub last: u32,
    pub severity: Severity,
    pub confidence: Confidence,
    /// True if the finding is about the weakness of the case.
    pub fits: bool,
}

/// The result of a labelled line.
#[derive(Clone, Debug)]
pub struct Label {
    /// Index of the case.
    pub case: usize,
    pub line: u32,
    pub is_expected: bool,
    /// Rules that count on the line: for an expected line, the rules that find it; for a safe line,
    /// the rules that flag it.
    pub rules: Vec<String>,
    /// True if a finding of at least medium confidence and of any severity is about the weakness on
    /// the line.
    pub is_certain: bool,
    /// True if a finding of any severity and confidence is about the weakness on the line.
    pub is_seen: bool,
}

/// The results of all cases.
#[derive(Clone, Debug, Default)]
pub struct Evaluation {
    pub labels: Vec<Label>,
    /// By case.
    pub hits: Vec<Vec<EvalHit>>,
}

/// Sums of labelled lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    pub expected: usize,
    pub found: usize,
    /// Expected lines with a finding of at least medium confidence and of any severity.
    pub certain: usize,
    /// Expected lines with a finding of any severity and confidence.
    pub seen: usize,
    pub safe: usize,
    pub flagged: usize,
}

impl EvalHit {
    /// Returns true if the finding is more than a suggestion.
    pub fn is_above_suggestion(&self) -> bool {
        self.severity > Severity::Suggestion
    }

    fn covers(&self, line: u32) -> bool {
        (self.first..=self.last).contains(&line)
    }
}

impl Tally {
    fn add(&mut self, label: &Label) {
        if label.is_expected {
            self.expected += 1;
            self.found += usize::from(!label.rules.is_empty());
            self.certain += usize::from(label.is_certain);
            self.seen += usize::from(label.is_seen);
        } else {
            self.safe += 1;
            self.flagged += usize::from(!label.rules.is_empty());
        }
    }
}

/// Scans every case.
pub fn measure(rules: &RuleSet, cases: &[Case]) -> Evaluation {
    let mut out = Evaluation::default();
    for (index, case) in cases.iter().enumerate() {
        let hits = hits(rules, case);
        let labels = case
            .expected
            .iter()
            .map(|n| (*n, true))
            .chain(case.safe.iter().map(|n| (*n, false)));
        out.labels
            .extend(labels.map(|(line, is_expected)| label(index, line, is_expected, &hits)));
        out.hits.push(hits);
    }
    out
}

fn label(case: usize, line: u32, is_expected: bool, hits: &[EvalHit]) -> Label {
    let on_line: Vec<&EvalHit> = hits.iter().filter(|h| h.covers(line)).collect();
    let mut rules: Vec<String> = on_line
        .iter()
        .filter(|h| {
            h.is_above_suggestion() && (!is_expected || (h.fits && h.confidence > Confidence::Low))
        })
        .map(|h| h.rule.clone())
        .collect();
    rules.sort();
    rules.dedup();
    Label {
        case,
        line,
        is_expected,
        rules,
        is_certain: on_line
            .iter()
            .any(|h| h.fits && h.confidence > Confidence::Low),
        is_seen: on_line.iter().any(|h| h.fits),
    }
}

fn hits(rules: &RuleSet, case: &Case) -> Vec<EvalHit> {
    let change = code::added(
        RepoPath::from(case.file.as_str()),
        case.code.as_bytes().to_vec(),
    );
    let mut found = Vec::new();
    rules.scan(&change, Scope::All, &mut found);
    found
        .iter()
        .filter(|f| f.suppressed.is_none())
        .filter_map(|f| hit(f, case))
        .collect()
}

fn hit(f: &Finding, case: &Case) -> Option<EvalHit> {
    let lines = f.lines()?;
    Some(EvalHit {
        rule: f.rule_id().to_owned(),
        first: lines.first.get(),
        last: lines.last.get(),
        severity: f.severity(),
        confidence: f.confidence(),
        fits: fits(f, case),
    })
}

/// Returns true if a finding is about the weakness of a case.
fn fits(f: &Finding, case: &Case) -> bool {
    let by_rule = flow::words_of(f.rule_id()).any(|word| word == case.category);
    let by_weakness = f
        .cwe()
        .zip(case.cwe)
        .is_some_and(|(a, b)| join::is_same_weakness(a, b));
    let by_category = match case.category.as_str() {
        "correctness" => f.category() == Category::Bug,
        "performance" => f.category() == Category::Performance,
        "migration" => ["migration", "concurrent-index"]
            .iter()
            .any(|part| f.rule_id().contains(part)),
        _ => false,
    };
    by_rule || by_weakness || by_category
}

impl Evaluation {
    /// Returns the sums over all labelled lines.
    pub fn total(&self) -> Tally {
        let mut out = Tally::default();
        self.labels.iter().for_each(|l| out.add(l));
        out
    }

    /// Returns the sums by a property of the case.
    pub fn by<'c>(
        &self,
        cases: &'c [Case],
        key: impl Fn(&'c Case) -> &'c str,
    ) -> BTreeMap<&'c str, Tally> {
        let mut out: BTreeMap<&str, Tally> = BTreeMap::new();
        for label in &self.labels {
            out.entry(key(&cases[label.case])).or_default().add(label);
        }
        out
    }

    /// Returns for each rule how many expected lines it finds and how many safe lines it flags.
    pub fn by_rule(&self) -> BTreeMap<&str, (usize, usize)> {
        let mut out: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
        for label in &self.labels {
            for rule in &label.rules {
                let (found, flagged) = out.entry(rule).or_default();
                *(if label.is_expected { found } else { flagged }) += 1;
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::RulesPolicy;

    fn case(code: &str, expected: &[u32], safe: &[u32]) -> String {
        serde_json::json!({
            "id": "a", "language": "python", "category": "tls", "cwe": 295, "file": "app/a.py", "code": code,
            "expected": expected, "safe": safe,
        })
        .to_string()
    }

    #[test]
    fn a_line_is_found_flagged_or_neither() {
        let code = "import requests\nrequests.get(u, verify=False)\nrequests.get(u, verify=True)\nssl.x()\n";
        let text = [case(code, &[2, 4], &[3]), case(code, &[], &[2])].join("\n\n");
        let cases = read("a.jsonl", &text).unwrap();
        assert_eq!(
            cases.iter().map(|c| c.place.as_str()).collect::<Vec<_>>(),
            ["a.jsonl:1", "a.jsonl:3"]
        );
        let rules = RuleSet::new(&RulesPolicy::default(), &[]).unwrap();
        let evaluation = measure(&rules, &cases);
        assert_eq!(
            evaluation.total(),
            Tally {
                expected: 2,
                found: 1,
                certain: 1,
                seen: 1,
                safe: 2,
                flagged: 1
            }
        );
        assert_eq!(evaluation.by(&cases, |c| &c.language).len(), 1);
        assert_eq!(
            evaluation.by_rule().values().copied().collect::<Vec<_>>(),
            [(1, 1)]
        );
    }

    #[test]
    fn a_finding_about_another_weakness_does_not_find_a_line() {
        let code = "import requests\nrequests.get(u, verify=False)\n";
        let text = case(code, &[2], &[])
            .replace("295", "89")
            .replace("tls", "sql");
        let cases = read("a.jsonl", &text).unwrap();
        let rules = RuleSet::new(&RulesPolicy::default(), &[]).unwrap();
        assert_eq!(
            measure(&rules, &cases).total(),
            Tally {
                expected: 1,
                ..Tally::default()
            }
        );
    }

    #[test]
    fn an_invalid_case_is_named_with_its_line() {
        let good = case("x\n", &[1], &[]);
        for (bad, why) in [
            ("{", "EOF"),
            ("{\"id\": \"a\"}", "missing field `language`"),
            (
                &case("x\n", &[2], &[]),
                "expected: line 2 is outside of the code, which has 1 lines",
            ),
            (
                &case("x\n", &[], &[0]),
                "safe: line 0 is outside of the code",
            ),
            (&case("x\n", &[1], &[1]), "line 1 is both expected and safe"),
            (&case("", &[], &[]), "code is empty"),
        ] {
            let error = read("set.jsonl", &format!("{good}\n{bad}\n")).unwrap_err();
            assert!(
                error.message.starts_with("set.jsonl:2: invalid case: "),
                "{error}"
            );
            assert!(error.message.contains(why), "{error}");
        }
    }
}
