//! Selects and orders the listed findings. Pure.

use super::{TriageItem, TriageSubject, confidence, severity, status};
use crate::wire::{Confidence, Disposition, Severity};

const SEVERITIES: [Severity; 4] = [
    Severity::Critical,
    Severity::Major,
    Severity::Minor,
    Severity::Suggestion,
];
const CONFIDENCES: [Confidence; 3] = [Confidence::High, Confidence::Medium, Confidence::Low];
const STATUSES: [Disposition; 5] = [
    Disposition::Pending,
    Disposition::Accepted,
    Disposition::Rejected,
    Disposition::Deferred,
    Disposition::Fixed,
];

/// A value that a filter can select.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FilterChoice {
    Status(Disposition),
    /// With a decision that an agent proposes.
    Proposed,
    Severity(Severity),
    Confidence(Confidence),
    Origin(String),
    /// `None`: the whole change.
    File(Option<String>),
}

impl FilterChoice {
    /// Returns the name of the group that the value belongs to.
    pub fn group(&self) -> &'static str {
        match self {
            Self::Status(_) | Self::Proposed => "status",
            Self::Severity(_) => "severity",
            Self::Confidence(_) => "confidence",
            Self::Origin(_) => "origin",
            Self::File(_) => "file",
        }
    }

    /// Returns the text of the choice.
    pub fn name(&self) -> &str {
        match self {
            Self::Status(s) => status(*s),
            Self::Proposed => "proposed by an agent",
            Self::Severity(s) => severity(*s),
            Self::Confidence(c) => confidence(*c),
            Self::Origin(name) => name,
            Self::File(file) => file.as_deref().unwrap_or(WHOLE),
        }
    }

    /// Returns true if a finding has the value.
    fn is_of(&self, item: &TriageItem) -> bool {
        let f = &item.finding;
        match self {
            Self::Status(s) => item.has_status(*s),
            Self::Proposed => item.proposal.is_some(),
            Self::Severity(s) => f.severity == *s,
            Self::Confidence(c) => f.confidence == *c,
            Self::Origin(name) => f.origin == *name,
            Self::File(file) => f.file == *file,
        }
    }
}

/// The name of the group of findings without a file.
pub const WHOLE: &str = "the whole change";

/// The filter of the list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Values of one group are alternatives; groups restrict each other.
    pub chosen: Vec<FilterChoice>,
    /// Lower-case text that a finding must contain; empty for any.
    pub search: String,
}

impl Filter {
    /// Returns true if every finding is listed.
    pub fn is_empty(&self) -> bool {
        self.chosen.is_empty() && self.search.is_empty()
    }

    /// Chooses a value, or removes the choice.
    pub fn toggle(&mut self, choice: &FilterChoice) {
        match self.chosen.iter().position(|c| c == choice) {
            Some(at) => drop(self.chosen.remove(at)),
            None => self.chosen.push(choice.clone()),
        }
    }

    /// Returns true if the finding is listed.
    pub fn has(&self, item: &TriageItem) -> bool {
        let mut groups = self.chosen.iter().map(FilterChoice::group);
        groups.all(|group| {
            self.chosen
                .iter()
                .any(|c| c.group() == group && c.is_of(item))
        }) && (self.search.is_empty() || self.is_found(item))
    }

    /// Returns true if the search matches a finding.
    fn is_found(&self, item: &TriageItem) -> bool {
        let f = &item.finding;
        let texts = [
            Some(&f.id),
            Some(&f.rule_id),
            f.file.as_ref(),
            Some(&f.title),
            Some(&f.message),
            Some(&f.quote),
        ];
        texts
            .into_iter()
            .flatten()
            .any(|text| text.to_lowercase().contains(&self.search))
    }

    /// Describes the filter in a few words.
    pub fn label(&self) -> String {
        let mut parts: Vec<String> = Vec::new();
        for group in ["status", "severity", "confidence", "origin", "file"] {
            let names: Vec<&str> = self
                .chosen
                .iter()
                .filter(|c| c.group() == group)
                .map(FilterChoice::name)
                .collect();
            if !names.is_empty() {
                parts.push(names.join(", "));
            }
        }
        if !self.search.is_empty() {
            parts.push(format!("\"{}\"", self.search));
        }
        parts.join(" · ")
    }
}

/// Returns the values that occur in the findings of a review, with their counts.
pub fn choices(subject: &TriageSubject) -> Vec<(FilterChoice, usize)> {
    let mut all: Vec<FilterChoice> = STATUSES.map(FilterChoice::Status).into();
    all.push(FilterChoice::Proposed);
    all.extend(SEVERITIES.map(FilterChoice::Severity));
    all.extend(CONFIDENCES.map(FilterChoice::Confidence));
    let mut origins: Vec<&String> = subject.items.iter().map(|i| &i.finding.origin).collect();
    origins.sort();
    origins.dedup();
    all.extend(origins.into_iter().cloned().map(FilterChoice::Origin));
    let mut files: Vec<&Option<String>> = subject.items.iter().map(|i| &i.finding.file).collect();
    files.sort();
    files.dedup();
    all.extend(files.into_iter().cloned().map(FilterChoice::File));
    let counted = all.into_iter().map(|choice| {
        let n = subject.items.iter().filter(|i| choice.is_of(i)).count();
        (choice, n)
    });
    counted.filter(|(_, n)| *n > 0).collect()
}

/// The order of the list. Findings of a file stay together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sort {
    #[default]
    Place,
    Severity,
    Confidence,
    Status,
}

impl Sort {
    /// Returns the name of the order.
    pub fn name(self) -> &'static str {
        match self {
            Self::Place => "place",
            Self::Severity => "severity",
            Self::Confidence => "confidence",
            Self::Status => "status",
        }
    }

    /// Returns the order after this one; after the last one, the first.
    #[must_use]
    pub fn next(self) -> Self {
        match self {
            Self::Place => Self::Severity,
            Self::Severity => Self::Confidence,
            Self::Confidence => Self::Status,
            Self::Status => Self::Place,
        }
    }

    /// Returns the rank of a finding: the lowest comes first.
    fn rank(self, item: &TriageItem) -> usize {
        let f = &item.finding;
        let rank = match self {
            Self::Place => Some(0),
            Self::Severity => SEVERITIES.iter().position(|s| *s == f.severity),
            Self::Confidence => CONFIDENCES.iter().position(|c| *c == f.confidence),
            Self::Status => STATUSES.iter().position(|s| *s == f.disposition),
        };
        rank.unwrap_or(usize::MAX)
    }
}

/// A row of the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListRow {
    /// A file with the number of its listed findings, and of the pending ones among them.
    File {
        name: Option<String>,
        all: usize,
        pending: usize,
    },
    /// A finding, by its index.
    Item(usize),
}

/// Returns the rows of the list: files by their first finding in the order of `sort`, with their
/// findings.
pub fn rows(subject: &TriageSubject, filter: &Filter, sort: Sort) -> Vec<ListRow> {
    let items = &subject.items;
    let mut listed: Vec<usize> = (0..items.len())
        .filter(|i| filter.has(&items[*i]))
        .collect();
    listed.sort_by(|a, b| {
        let (left, right) = (&items[*a], &items[*b]);
        let by_place = (&left.finding.file, left.finding.line, a).cmp(&(
            &right.finding.file,
            right.finding.line,
            b,
        ));
        sort.rank(left).cmp(&sort.rank(right)).then(by_place)
    });
    let mut groups: Vec<(&Option<String>, Vec<usize>)> = Vec::new();
    let mut at = std::collections::HashMap::new();
    for i in listed {
        let file = &items[i].finding.file;
        let group = *at.entry(file).or_insert(groups.len());
        if group == groups.len() {
            groups.push((file, Vec::new()));
        }
        groups[group].1.push(i);
    }
    let mut out = Vec::new();
    for (file, group) in groups {
        let pending = group.iter().filter(|i| items[**i].is_pending()).count();
        out.push(ListRow::File {
            name: file.clone(),
            all: group.len(),
            pending,
        });
        out.extend(group.into_iter().map(ListRow::Item));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::sample::subject;
    use super::*;

    fn ids(subject: &TriageSubject, filter: &Filter, sort: Sort) -> Vec<String> {
        let names = rows(subject, filter, sort)
            .into_iter()
            .map(|row| match row {
                ListRow::File { name, all, pending } => {
                    format!("{} {all}/{pending}", name.as_deref().unwrap_or("-"))
                }
                ListRow::Item(i) => subject.items[i].finding.id.clone(),
            });
        names.collect()
    }

    #[test]
    fn findings_are_grouped_by_file_and_sorted() {
        let subject = subject();
        let all = Filter::default();
        assert_eq!(
            ids(&subject, &all, Sort::Place),
            [
                "- 1/1",
                "F1",
                "src/app.py 2/1",
                "F2",
                "F3",
                "src/web.js 1/1",
                "F4"
            ]
        );
        let by_severity = ids(&subject, &all, Sort::Severity);
        assert_eq!(
            by_severity,
            [
                "src/app.py 2/1",
                "F2",
                "F3",
                "src/web.js 1/1",
                "F4",
                "- 1/1",
                "F1"
            ]
        );
        let by_status = ids(&subject, &all, Sort::Status);
        assert_eq!(by_status[2..5], ["src/app.py 2/1", "F2", "F3"]);
        assert_eq!(Sort::Place.next().next().next().next(), Sort::Place);
    }

    #[test]
    fn values_of_a_group_are_alternatives_and_groups_restrict_each_other() {
        let subject = subject();
        for (chosen, search, expected) in [
            (
                vec![FilterChoice::Severity(Severity::Critical)],
                "",
                vec!["F2"],
            ),
            (
                vec![
                    FilterChoice::Severity(Severity::Critical),
                    FilterChoice::Severity(Severity::Major),
                ],
                "",
                vec!["F2", "F4"],
            ),
            (
                vec![
                    FilterChoice::Severity(Severity::Major),
                    FilterChoice::File(Some("src/app.py".to_owned())),
                ],
                "",
                vec![],
            ),
            (
                vec![FilterChoice::Status(Disposition::Rejected)],
                "",
                vec!["F3"],
            ),
            (vec![FilterChoice::Proposed], "", vec!["F4"]),
            (
                vec![
                    FilterChoice::Status(Disposition::Rejected),
                    FilterChoice::Proposed,
                ],
                "",
                vec!["F3", "F4"],
            ),
            (
                vec![FilterChoice::Origin("claude".to_owned())],
                "",
                vec!["F4"],
            ),
            (
                vec![FilterChoice::Confidence(Confidence::Low)],
                "",
                vec!["F1"],
            ),
            (vec![FilterChoice::File(None)], "", vec!["F1"]),
            (vec![], "YAML", vec![]),
            (vec![], "yaml", vec!["F2"]),
            (vec![], "web.js", vec!["F4"]),
        ] {
            let filter = Filter {
                chosen,
                search: search.to_owned(),
            };
            let mut found: Vec<&str> = subject
                .items
                .iter()
                .filter(|i| filter.has(i))
                .map(|i| i.finding.id.as_str())
                .collect();
            found.sort_unstable();
            assert_eq!(found, expected, "{filter:?}");
        }
    }

    #[test]
    fn only_values_that_findings_have_are_offered() {
        let names: Vec<String> = choices(&subject())
            .iter()
            .map(|(c, n)| format!("{} {} {n}", c.group(), c.name()))
            .collect();
        assert!(names.contains(&"status pending 3".to_owned()), "{names:?}");
        assert!(names.contains(&"file src/app.py 2".to_owned()), "{names:?}");
        assert!(!names.iter().any(|n| n.contains("deferred")), "{names:?}");
    }
}
