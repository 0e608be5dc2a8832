//! Turns the candidates of all replies into findings, and determines their confidence.
//!
//! 1. `cluster` groups the candidates that report the same problem.
//! 2. `merged` makes one claim of each group, with the evidence of all of them. Merging hides
//!    nothing: a message that says something different is appended to the merged one.
//! 3. The merged claim is compared with the findings of rules on the same lines. It becomes a
//!    [`Dispute`] of the first of them if its text speaks of a false positive and its severity is
//!    below major. It becomes an [`Echo`] of one that it repeats, if that one is at least as
//!    severe, or if a person dismissed it or set its severity. A claim never lowers a finding of a
//!    rule.
//! 4. All others become findings. Their confidence follows from the evidence, and from nothing that
//!    a model says about its own certainty:
//!
//! | the position | without other evidence | with other evidence |
//! |---|---|---|
//! | [`PositionCertainty::Certain`](super::PositionCertainty::Certain) | medium | high: another backend, a finding of a rule, or a tool call that read the lines |
//! | [`PositionCertainty::Likely`](super::PositionCertainty::Likely) | medium | high: another backend |
//! | [`PositionCertainty::Doubtful`](super::PositionCertainty::Doubtful) | low | low |
//!
//! A test that reproduces the problem makes each of them high.

mod cluster;
mod merged;

use super::ClaimCandidate;
use super::same::Words;
use crate::finding::{Confidence, Draft, Evidence, Finding, LineSpan, Location, Origin, Proof};
use crate::rules::RuleSet;
use cluster::{by_file, clusters, order};
use merged::MergedClaim;
pub(super) use merged::{severity, speaks_of_a_false_alarm};
use std::collections::BTreeMap;

/// Merged findings, with the claims that are not reported as findings.
#[derive(Debug, Default)]
pub struct MergedClaims {
    pub findings: Vec<Finding>,
    /// Position of the [`Group`](crate::ai::material::Group) of each finding.
    pub groups: Vec<usize>,
    /// Claims that repeat a finding of a rule.
    pub echoes: Vec<Echo>,
    /// Claims that call a finding of a rule a false positive.
    pub disputes: Vec<Dispute>,
    pub notes: Vec<Noted>,
}

/// A claim that repeats a rule's finding, and is not reported on its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Echo {
    /// Position of the rule's finding.
    pub rule: usize,
    pub backend: String,
    /// Title that the model gave it. Untrusted text.
    pub title: String,
}

/// A claim that a finding of a rule is a false positive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dispute {
    /// Position of the rule's finding.
    pub rule: usize,
    pub backend: String,
    /// Untrusted text.
    pub reason: String,
}

/// A message about how a claim was parsed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Noted {
    pub location: Option<Location>,
    pub backend: String,
    /// Untrusted text.
    pub text: String,
}

/// A finding of a rule, with its position in the list and its words.
struct RuleFinding<'f> {
    position: usize,
    finding: &'f Finding,
    words: Words,
}

impl MergedClaims {
    /// Adds echoes as evidence and disputes as remarks to the findings of rules. `found` must be
    /// the list that [`merge_claims`] got, in the same order. This changes neither severity and
    /// confidence nor the verdict.
    pub fn annotate_rule_findings(&self, found: &mut [Finding]) {
        for echo in &self.echoes {
            if let Some(finding) = found.get_mut(echo.rule) {
                finding.support(Evidence::Backend(echo.backend.clone()));
            }
        }
        for dispute in &self.disputes {
            if let Some(finding) = found.get_mut(dispute.rule)
                && finding.disputed.is_none()
            {
                finding.disputed = Some(format!("{}: {}", dispute.backend, dispute.reason));
            }
        }
    }

    /// Adds a merged claim: as a dispute or an echo of a rule's finding, or as a finding.
    /// `by_rules` holds the findings of rules in the same file.
    fn add(&mut self, merged: MergedClaim, by_rules: &[&RuleFinding<'_>], rules: &RuleSet) {
        let mut supporting = Vec::new();
        let same_lines = by_rules
            .iter()
            .filter(|by_rule| merged.is_on_lines_of(by_rule.finding));
        for RuleFinding {
            position,
            finding,
            words,
        } in same_lines
        {
            // The text does not name the finding that it disputes, so the first one on the same
            // lines is taken.
            if merged.says_it_is_a_false_alarm() {
                self.disputes.push(Dispute {
                    rule: *position,
                    backend: merged.backend.clone(),
                    reason: merged.draft.message.clone(),
                });
                return;
            }
            if merged.repeats(finding, words, rules)
                && (is_severity_set_by_a_person(finding, rules)
                    || finding.severity() >= merged.severity(true))
            {
                let backends = std::iter::once(&merged.backend).chain(&merged.others);
                self.echoes.extend(backends.map(|backend| Echo {
                    rule: *position,
                    backend: backend.clone(),
                    title: merged.draft.title.clone(),
                }));
                return;
            }
            if finding.counts() && finding.category() == merged.draft.category {
                supporting.push(Evidence::Rule(finding.rule_id().to_owned()));
            }
        }
        self.add_finding(merged, supporting);
    }

    /// Adds the finding of a merged claim that findings of rules support with this evidence.
    fn add_finding(&mut self, merged: MergedClaim, supporting: Vec<Evidence>) {
        let confidence = merged.confidence(!supporting.is_empty());
        let severity = merged.severity(confidence >= Confidence::Medium);
        let notes = merged.notes.iter().map(|text| merged.note(text));
        self.notes.extend(notes);
        if severity > merged.draft.severity
            && let Some(cwe) = merged.draft.cwe
        {
            let note = format!(
                "CWE-{cwe} is always critical; the reply said {}",
                merged.draft.severity
            );
            self.notes.push(merged.note(&note));
        }
        let backends = merged.others.into_iter().map(Evidence::Backend);
        let evidence = merged.evidence.into_iter().chain(supporting);
        let proof = Proof::claim(
            &merged.backend,
            without_duplicates(evidence.chain(backends)),
            confidence,
        );
        let draft = Draft {
            severity,
            ..merged.draft
        };
        let mut finding = Finding::new(proof, draft);
        finding.commit = merged.commit;
        finding.disputed = merged.disputed;
        finding.reproduction = merged.reproduction;
        self.findings.push(finding);
        self.groups.push(merged.group);
    }
}

/// Merges candidates into findings. `found` holds the findings of rules in the same change, before
/// or after they were arranged.
pub fn merge_claims(
    mut candidates: Vec<ClaimCandidate>,
    found: &[Finding],
    rules: &RuleSet,
) -> MergedClaims {
    // The order of the answers must not affect the findings.
    candidates.sort_by(order);
    let by_rules: Vec<RuleFinding<'_>> = found
        .iter()
        .enumerate()
        .filter(|(_, finding)| *finding.origin() == Origin::Rules)
        .map(|(position, finding)| RuleFinding {
            position,
            finding,
            words: Words::of(&[finding.title(), finding.message()]),
        })
        .collect();
    let mut all = MergedClaims::default();
    for ((_, file), candidates) in by_file(candidates) {
        let in_file: Vec<&RuleFinding<'_>> = by_rules
            .iter()
            .filter(|by_rule| by_rule.finding.file() == file.as_ref())
            .collect();
        for merged in clusters(candidates).into_iter().filter_map(MergedClaim::of) {
            all.add(merged, &in_file, rules);
        }
    }
    all
}

/// Sorts candidates, and returns groups of positions of claims that one backend made repeatedly,
/// under several lenses or in two chunks. The best claim of each group comes first.
pub fn alike(candidates: &mut [ClaimCandidate]) -> Vec<Vec<usize>> {
    candidates.sort_by(order);
    let mut all: Vec<Vec<usize>> = Vec::new();
    for cluster in by_file(candidates.to_vec())
        .into_values()
        .flat_map(clusters)
    {
        let mut by_backend: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for worded in &cluster {
            by_backend
                .entry(&worded.candidate.backend)
                .or_default()
                .push(worded.order);
        }
        all.extend(by_backend.into_values());
    }
    all
}

/// Returns true if a person decided how severe a finding of a rule is: it does not count, or the
/// policy sets another severity than the rule.
fn is_severity_set_by_a_person(finding: &Finding, rules: &RuleSet) -> bool {
    !finding.counts()
        || rules
            .severity(finding.rule_id())
            .is_some_and(|s| s != finding.severity())
}

/// Returns the evidence in order, each piece once.
fn without_duplicates(evidence: impl Iterator<Item = Evidence>) -> Vec<Evidence> {
    let mut out: Vec<Evidence> = Vec::new();
    for e in evidence {
        if !out.contains(&e) {
            out.push(e);
        }
    }
    out
}

/// Returns true if two line ranges have a line in common.
fn overlap(a: LineSpan, b: LineSpan) -> bool {
    a.first <= b.last && b.first <= a.last
}

#[cfg(test)]
mod tests;
