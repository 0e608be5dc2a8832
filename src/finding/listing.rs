//! Selects the findings that a report lists, and counts the others.
//!
//! A change can cause more findings than a person can read: 200,000 listed ones need gigabytes of
//! memory. So the worst ones are listed up to a limit, and the others are kept as a few numbers
//! each, from which duplicates are recognized. The verdict and all totals count both.

use super::{Finding, LineSpan, Severity};
use crate::diff::{LineNo, ObjectId, RepoPath};
use std::cmp::Reverse;
use std::collections::HashSet;
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher as _, Hash};
use std::sync::OnceLock;

/// Findings that a review lists, at most, without those that a comment suppresses.
pub const LISTED_MAX: usize = 10_000;
/// Suppressed findings that a review lists, at most.
pub const SUPPRESSED_MAX: usize = 1_000;

/// The effect of a finding on the verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    Suppressed,
    /// The finding counts, but neither blocks nor warns.
    Counts,
    Warns,
    Blocks,
}

/// A finding that is counted but not listed.
#[derive(Clone, Copy, Debug)]
pub struct Counted {
    /// Equal for findings of one rule at one position.
    place: u64,
    /// Equal for findings of one rule with the same text in a file.
    text: u64,
    /// Equal for findings of one rule that start on one line.
    line: u64,
    pub severity: Severity,
    pub effect: Effect,
    /// The finding is in one of several commits, and another part contains the net change.
    pub is_inside: bool,
}

/// Numbers of findings that are not listed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unlisted {
    /// Findings that count, by severity in the order of [`Severity::ALL`].
    pub counting: [usize; 4],
    /// Blocking ones among them.
    pub blocking: [usize; 4],
    /// Warning ones among them.
    pub warning: usize,
    pub suppressed: usize,
}

impl Unlisted {
    /// Returns the number of findings that count and are not listed.
    pub fn total(&self) -> usize {
        self.counting.iter().fold(0, |a, n| a.saturating_add(*n))
    }

    /// Returns the number of blocking findings that are not listed.
    pub fn total_blocking(&self) -> usize {
        self.blocking.iter().fold(0, |a, n| a.saturating_add(*n))
    }

    /// Counts findings, each once.
    pub(crate) fn of(counted: &[Counted], listed: &[Finding]) -> Self {
        let mut out = Self::default();
        if counted.is_empty() {
            return out;
        }
        let mut seen: HashSet<u64> = listed.iter().map(place_of).collect();
        for c in counted.iter().filter(|c| seen.insert(c.place)) {
            let severity = Severity::ALL
                .iter()
                .position(|s| *s == c.severity)
                .unwrap_or(0);
            match c.effect {
                Effect::Suppressed => {
                    out.suppressed += 1;
                    continue;
                }
                Effect::Counts => {}
                Effect::Warns => out.warning += 1,
                Effect::Blocks => out.blocking[severity] += 1,
            }
            out.counting[severity] += 1;
        }
        out
    }
}

impl Counted {
    /// Creates the entry for a finding that is not listed. `identity`: see [`Finding::identity`].
    pub(crate) fn new(
        rule: &str,
        file: Option<&RepoPath>,
        lines: Option<LineSpan>,
        identity: u64,
        severity: Severity,
        is_suppressed: bool,
    ) -> Self {
        Self {
            // Findings about a whole file are distinguished by their texts.
            place: hash((
                rule,
                file,
                lines.map(key_of),
                lines.is_none().then_some(identity),
            )),
            text: hash((rule, file, identity)),
            line: hash((rule, file, lines.map(|l| l.first))),
            severity,
            effect: if is_suppressed {
                Effect::Suppressed
            } else {
                Effect::Counts
            },
            is_inside: false,
        }
    }

    /// Creates the entry for a finding in a file, without its commit.
    pub(crate) fn of(f: &Finding) -> Self {
        let is_suppressed = f.suppressed.is_some();
        Self::new(
            f.rule_id(),
            f.file(),
            f.lines(),
            f.identity,
            f.severity(),
            is_suppressed,
        )
    }

    /// Sets the commit of the finding.
    #[must_use]
    pub(crate) fn in_commit(self, commit: Option<ObjectId>, is_inside: bool) -> Self {
        Self {
            place: in_commit(self.place, commit),
            is_inside,
            ..self
        }
    }

    /// Sets the effect of the finding on the verdict, unless it is suppressed.
    #[must_use]
    pub(crate) fn with_effect(self, effect: Effect) -> Self {
        if self.effect == Effect::Suppressed {
            self
        } else {
            Self { effect, ..self }
        }
    }

    /// Returns a key that is equal for findings of one rule that start on one line.
    pub(crate) fn on_line(&self) -> u64 {
        self.line
    }

    /// Returns these keys for each line of a finding.
    pub(crate) fn line_keys(f: &Finding) -> impl Iterator<Item = u64> {
        let lines = f.lines();
        let further = lines
            .into_iter()
            .flat_map(|l| l.first.get() + 1..=l.last.get())
            .filter_map(LineNo::new);
        let all = std::iter::once(lines.map(|l| l.first)).chain(further.map(Some));
        all.map(move |first| hash((f.rule_id(), f.file(), first)))
    }

    /// Returns a key that is equal for findings with the same text in any commit.
    pub(crate) fn text(&self) -> u64 {
        self.text
    }
}

/// Returns the key of [`Counted::text`] for a listed finding.
pub(crate) fn text_of(f: &Finding) -> u64 {
    hash((f.rule_id(), f.file(), f.identity))
}

fn place_of(f: &Finding) -> u64 {
    in_commit(Counted::of(f).place, f.commit)
}

fn in_commit(place: u64, commit: Option<ObjectId>) -> u64 {
    commit.map_or(place, |c| hash((place, c.as_bytes())))
}

fn key_of(lines: LineSpan) -> (u32, u32, Option<(u32, u32)>) {
    (lines.first.get(), lines.last.get(), lines.columns)
}

/// Hashes a value with a random key for this process.
pub(crate) fn hash(of: impl Hash) -> u64 {
    static KEY: OnceLock<RandomState> = OnceLock::new();
    KEY.get_or_init(RandomState::new).hash_one(of)
}

/// The rank of a finding: a smaller one is listed first.
type Rank = (Reverse<Severity>, Option<RepoPath>, Option<(u32, u32)>);

/// The rank that a further finding must precede to be listed, after the limit was reached.
#[derive(Clone, Debug, Default)]
pub struct Floor {
    counting: Option<Rank>,
    suppressed: Option<Rank>,
    /// Number of findings after the last cut.
    kept: usize,
}

impl Floor {
    /// Returns true if a finding may be listed. A rejected one would not stay in the list.
    pub(crate) fn admits(
        &self,
        is_suppressed: bool,
        severity: Severity,
        file: Option<&RepoPath>,
        lines: Option<LineSpan>,
    ) -> bool {
        let floor = if is_suppressed {
            &self.suppressed
        } else {
            &self.counting
        };
        let lines = lines.map(|l| (l.first.get(), l.last.get()));
        floor
            .as_ref()
            .is_none_or(|(s, f, l)| (Reverse(severity), file, lines) <= (*s, f.as_ref(), *l))
    }

    /// Removes all but the worst findings from index `from` on, if there are twice as many as the
    /// limit, and raises the floor. Passes the removed ones to `drop`. Findings about a whole file
    /// stay: a mass change has one for each file, and they are merged later.
    pub(crate) fn settle(
        &mut self,
        findings: &mut Vec<Finding>,
        from: usize,
        drop: impl FnMut(&Finding),
    ) {
        if findings.len() - from < self.kept + 2 * LISTED_MAX {
            return;
        }
        let (mut whole, rest): (Vec<_>, Vec<_>) =
            findings.drain(from..).partition(|f| f.lines().is_none());
        findings.append(&mut whole);
        let on_lines = findings.len();
        findings.extend(rest);
        self.cut(findings, on_lines, drop);
        self.kept = on_lines - from;
    }

    /// Removes all but the worst findings from index `from` on, and passes the removed ones to
    /// `drop`. Changes their order.
    pub(crate) fn cut(
        &mut self,
        findings: &mut Vec<Finding>,
        from: usize,
        mut drop: impl FnMut(&Finding),
    ) {
        if findings.len() - from <= LISTED_MAX.min(SUPPRESSED_MAX) {
            return;
        }
        let rest = findings.split_off(from);
        let (mut aside, mut counting): (Vec<_>, Vec<_>) =
            rest.into_iter().partition(|f| f.suppressed.is_some());
        cut_one(&mut counting, LISTED_MAX, &mut self.counting, &mut drop);
        cut_one(&mut aside, SUPPRESSED_MAX, &mut self.suppressed, &mut drop);
        findings.append(&mut counting);
        findings.append(&mut aside);
    }
}

fn cut_one(
    findings: &mut Vec<Finding>,
    most: usize,
    floor: &mut Option<Rank>,
    drop: &mut impl FnMut(&Finding),
) {
    if findings.len() <= most {
        return;
    }
    findings.sort_by(|a, b| {
        let severity = Reverse(a.severity()).cmp(&Reverse(b.severity()));
        severity.then_with(|| super::sort_key(a).cmp(&super::sort_key(b)))
    });
    findings[most..].iter().for_each(drop);
    findings.truncate(most);
    *floor = findings.last().map(|f| {
        let lines = f.lines().map(|l| (l.first.get(), l.last.get()));
        (Reverse(f.severity()), f.file().cloned(), lines)
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diff::LineNo;
    use crate::finding::{Category, Confidence, Draft, Location, Suppression};

    fn finding(severity: Severity, file: &str, line: u32) -> Finding {
        let lines = LineNo::new(line).map(|n| LineSpan {
            first: n,
            last: n,
            columns: None,
        });
        let draft = Draft {
            rule_id: "rule".to_owned(),
            location: Some(Location {
                file: RepoPath::from(file),
                lines,
            }),
            severity,
            category: Category::Bug,
            title: String::new(),
            message: String::new(),
            failure: None,
            suggestion: None,
            replacement: None,
            quote: String::new(),
            cwe: None,
            convention: None,
            also: Vec::new(),
            flow: Vec::new(),
            references: Vec::new(),
        };
        Finding::sample(draft, Confidence::High)
    }

    #[test]
    fn slo_02_the_worst_findings_are_listed_and_the_others_counted() {
        let mut findings = Vec::new();
        for n in 1..=LISTED_MAX as u32 {
            findings.push(finding(Severity::Minor, "a", n));
            findings.push(finding(Severity::Minor, "b", n));
        }
        findings.push(finding(Severity::Critical, "z", 1));
        let mut aside = finding(Severity::Critical, "s", 1);
        aside.suppressed = Some(Suppression {
            by: "inline",
            reason: "known".to_owned(),
        });
        findings.push(aside);
        let (mut floor, mut counted) = (Floor::default(), Vec::<Counted>::new());
        floor.cut(&mut findings, 0, |f| counted.push(Counted::of(f)));
        assert_eq!(findings.iter().filter(|f| f.counts()).count(), LISTED_MAX);
        assert!(
            findings
                .iter()
                .any(|f| f.severity() == Severity::Critical && f.counts())
        );
        assert!(
            findings.iter().any(|f| f.suppressed.is_some()),
            "a suppressed finding takes no other's place"
        );
        let unlisted = Unlisted::of(&counted, &findings);
        assert_eq!((unlisted.total(), unlisted.suppressed), (LISTED_MAX + 1, 0));
        // Only worse findings, or earlier ones, may still be listed.
        let b = RepoPath::from("b");
        assert!(!floor.admits(
            false,
            Severity::Minor,
            Some(&b),
            None.or(findings[0].lines())
        ));
        assert!(floor.admits(false, Severity::Major, Some(&b), findings[0].lines()));
        assert!(floor.admits(true, Severity::Minor, Some(&b), findings[0].lines()));
    }

    #[test]
    fn slo_02_what_is_found_twice_is_counted_once() {
        let listed = [finding(Severity::Minor, "a", 1)];
        let counted = [
            finding(Severity::Minor, "a", 1),
            finding(Severity::Minor, "a", 2),
        ];
        let twice: Vec<Counted> = counted.iter().chain(&counted).map(Counted::of).collect();
        assert_eq!(Unlisted::of(&twice, &listed).total(), 1);
    }
}
