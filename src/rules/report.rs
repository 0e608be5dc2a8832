//! Makes findings of rules: severity as policy says, masked quotes, suppressions.

use super::RuleSet;
use super::catalog::Rule;
use crate::diff::RepoPath;
use crate::finding::{Draft, Finding, LineSpan, Location, Proof};

/// Where findings go.
#[derive(Debug)]
pub(super) struct Reporter<'a> {
    pub(super) rules: &'a RuleSet,
    pub(super) out: &'a mut Vec<Finding>,
}

/// What a rule saw, beside what stands in its catalogue entry.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sighting<'a> {
    /// `None`: the change as a whole.
    pub(super) file: Option<&'a RepoPath>,
    /// `None`: the file as a whole.
    pub(super) lines: Option<LineSpan>,
    /// The offending text; it is masked here.
    pub(super) quote: &'a [u8],
    /// Put behind the rule's message: what exactly was seen.
    pub(super) detail: Option<&'a str>,
}

/// The most bytes of a quote.
const QUOTE_MAX: usize = 400;

impl Reporter<'_> {
    /// Tells whether the rule of that id runs: whether it is worth looking.
    pub(super) fn wants(&self, id: &str) -> bool {
        self.rules.index_of(id).is_some_and(|i| self.rules.is_enabled(i))
    }

    /// Reports a sighting of the rule of that id, unless policy disabled the rule.
    pub(super) fn report(&mut self, id: &str, sighting: Sighting<'_>) {
        if let Some(index) = self.rules.index_of(id) {
            self.report_index(index, sighting);
        }
    }

    pub(super) fn report_index(&mut self, index: u16, sighting: Sighting<'_>) {
        if !self.rules.is_enabled(index) {
            return;
        }
        let rule = self.rules.rule(index);
        let finding = make(rule, self.rules, index, sighting);
        self.out.push(finding);
    }
}

fn make(rule: &Rule, rules: &RuleSet, index: u16, s: Sighting<'_>) -> Finding {
    let quote = rules.mask(&s.quote[..s.quote.len().min(QUOTE_MAX)]);
    let message = match s.detail {
        Some(d) => format!("{}: {d}", rule.message.trim_end().trim_end_matches('.')),
        None => rule.message.trim_end().to_owned(),
    };
    let draft = Draft {
        rule_id: rule.id.clone().into_owned(),
        location: s.file.map(|f| Location { file: f.clone(), lines: s.lines }),
        severity: rules.severity_of(index),
        category: rule.category,
        title: rule.title.clone().into_owned(),
        message,
        failure: None,
        suggestion: rule.suggestion.as_ref().map(|t| t.trim_end().to_owned()),
        replacement: None,
        quote: String::from_utf8_lossy(quote.trim_ascii()).into_owned(),
        cwe: rule.cwe,
        references: rule.references.iter().map(|r| r.clone().into_owned()).collect(),
    };
    Finding::new(Proof::rule(&rule.id, rule.confidence), draft)
}
