//! One claim made of several candidates, with the evidence of all of them.

use super::cluster::{ALIKE, ALIKE_OF_ONE, WordedCandidate};
use super::{Noted, overlap};
use crate::ai::anchor::same::Words;
use crate::ai::anchor::{ClaimCandidate, PositionCertainty, text};
use crate::diff::ObjectId;
use crate::finding::{
    self, Category, Confidence, Draft, Evidence, Finding, LineSpan, Reproduction, Severity,
};
use crate::rules::RuleSet;

/// Characters of a merged message, at most.
const MESSAGE: usize = 12_000;

/// Weaknesses that are always critical: injections, by CWE number.
const INJECTION: [u32; 10] = [74, 77, 78, 79, 89, 94, 95, 502, 611, 918];
/// The same for exposed secrets.
const SECRET: [u32; 3] = [798, 522, 321];

/// Several candidates merged into one.
#[derive(Debug)]
pub(super) struct MergedClaim {
    pub(super) draft: Draft,
    /// Position of its [`Group`](crate::ai::material::Group).
    pub(super) group: usize,
    pub(super) commit: Option<ObjectId>,
    /// Name of the backend whose text is used.
    pub(super) backend: String,
    /// Other backends that report the same and were not refuted.
    pub(super) others: Vec<String>,
    /// The best certainty among the candidates that count.
    certainty: PositionCertainty,
    /// Evidence from the quote and from tool calls.
    pub(super) evidence: Vec<Evidence>,
    /// Reason why a second request refuted the best candidate.
    pub(super) disputed: Option<String>,
    pub(super) reproduction: Option<Reproduction>,
    pub(super) notes: Vec<String>,
    /// Words of the best candidate.
    words: Words,
}

impl MergedClaim {
    /// Merges the candidates of a cluster. The text comes from the first, which is the best.
    /// Returns `None` for an empty cluster.
    ///
    /// A refuted candidate supports nothing, unless all of them were refuted.
    pub(super) fn of(cluster: Vec<WordedCandidate>) -> Option<Self> {
        let all_refuted = cluster.iter().all(WordedCandidate::is_refuted);
        let counting: Vec<&ClaimCandidate> = cluster
            .iter()
            .filter(|worded| all_refuted || !worded.is_refuted())
            .map(|worded| &worded.candidate)
            .collect();
        let certainty = counting.iter().map(|c| c.certainty).max()?;
        let severity = highest_severity(&counting, certainty)?;
        let reproduction = counting.iter().find_map(|c| c.reproduction.clone());
        let mut evidence = Vec::new();
        evidence.extend(is_likely(certainty).then_some(Evidence::Quote));
        evidence.extend(counting.iter().flat_map(|c| c.evidence.iter().cloned()));
        evidence.extend(reproduction.is_some().then_some(Evidence::Reproduced));
        let mut candidates = cluster.into_iter();
        let best = candidates.next()?;
        let ClaimCandidate {
            draft,
            group,
            commit,
            backend,
            disputed,
            notes,
            ..
        } = best.candidate;
        let mut merged = Self {
            draft,
            group,
            commit,
            backend,
            others: Vec::new(),
            certainty,
            evidence,
            disputed,
            reproduction,
            notes,
            words: best.words,
        };
        for other in candidates {
            merged.add(&other, all_refuted || !other.is_refuted());
        }
        merged.draft.severity = severity;
        Some(merged)
    }

    /// Adds another candidate. If it does not count, only its text and its notes are added.
    fn add(&mut self, other: &WordedCandidate, counts: bool) {
        let theirs = &other.candidate;
        let is_of_other_backend = theirs.backend != self.backend;
        if is_of_other_backend && counts && !self.others.contains(&theirs.backend) {
            self.others.push(theirs.backend.clone());
        }
        if self.words.likeness(&other.words) < ALIKE_OF_ONE {
            self.append_message(theirs, is_of_other_backend);
        }
        let (own, draft) = (&mut self.draft, &theirs.draft);
        if counts {
            finding::add_places(&mut own.also, &draft.also);
        }
        if counts && (is_likely(theirs.certainty) || !is_likely(self.certainty)) {
            own.cwe = own.cwe.or(draft.cwe);
        }
        own.failure = own.failure.take().or_else(|| draft.failure.clone());
        own.suggestion = own.suggestion.take().or_else(|| draft.suggestion.clone());
        own.convention = own.convention.take().or_else(|| draft.convention.clone());
        if own.location == draft.location {
            own.replacement = own.replacement.take().or_else(|| draft.replacement.clone());
        }
        for note in &theirs.notes {
            if !self.notes.contains(note) {
                self.notes.push(note.clone());
            }
        }
    }

    /// Appends the title and the message of another candidate to the message.
    fn append_message(&mut self, other: &ClaimCandidate, is_of_other_backend: bool) {
        let who = if is_of_other_backend {
            format!("{} says", other.backend)
        } else {
            "Also".to_owned()
        };
        let (own, theirs) = (&mut self.draft, &other.draft);
        let both = format!(
            "{}\n\n{who}: {}: {}",
            own.message, theirs.title, theirs.message
        );
        own.message = text::cut(&both, MESSAGE);
    }

    /// Returns true if a finding is about the same lines of the same commit.
    pub(super) fn is_on_lines_of(&self, finding: &Finding) -> bool {
        let both = finding.lines().zip(self.lines());
        finding.commit == self.commit && both.is_some_and(|(theirs, own)| overlap(theirs, own))
    }

    /// Returns the lines that it is about.
    fn lines(&self) -> Option<LineSpan> {
        self.draft.location.as_ref().and_then(|l| l.lines)
    }

    /// Returns a note about the claim, with its title in front.
    pub(super) fn note(&self, text: &str) -> Noted {
        Noted {
            location: self.draft.location.clone(),
            backend: self.backend.clone(),
            text: format!("{}: {text}", self.draft.title),
        }
    }

    /// Returns the confidence, which depends only on the evidence; see [`merging`](super).
    /// `has_rule` is true if a finding of a rule supports the claim.
    pub(super) fn confidence(&self, has_rule: bool) -> Confidence {
        let is_agreed = !self.others.is_empty();
        let mut evidence = self.evidence.iter();
        let was_read = evidence.any(|e| matches!(e, Evidence::Read { .. }));
        let is_supported = match self.certainty {
            _ if self.reproduction.is_some() => return Confidence::High,
            PositionCertainty::Doubtful => return Confidence::Low,
            PositionCertainty::Likely => is_agreed,
            PositionCertainty::Certain => is_agreed || was_read || has_rule,
        };
        if is_supported {
            Confidence::High
        } else {
            Confidence::Medium
        }
    }

    /// Returns the severity. A listed weakness is critical if the claim is `sure`.
    pub(super) fn severity(&self, sure: bool) -> Severity {
        severity(&self.draft, sure)
    }

    /// Returns true if it reports a secret in the code, by its weakness or by its words.
    fn is_about_a_secret(&self) -> bool {
        let named = [
            "secret",
            "credential",
            "password",
            "passwd",
            "token",
            "key",
            "api_key",
        ];
        let exposed = [
            "hardcod",
            "hard",
            "leak",
            "commit",
            "committ",
            "expos",
            "embedd",
            "plaintext",
            "plain",
        ];
        let by_words = self.words.has_any(&named) && self.words.has_any(&exposed);
        self.draft
            .cwe
            .map_or(self.draft.category == Category::Security && by_words, |c| {
                SECRET.contains(&c)
            })
    }

    /// Returns true if a finding of a rule on the same lines reports the same problem.
    pub(super) fn repeats(&self, finding: &Finding, words: &Words, rules: &RuleSet) -> bool {
        let weakness = self.draft.cwe.is_some() && self.draft.cwe == finding.cwe();
        let likeness = self.words.likeness(words);
        let conflict = self.draft.cwe.is_some() && finding.cwe().is_some() && !weakness;
        weakness
            || self.is_about_a_secret()
                && rules.describe(finding.rule_id()).is_some_and(|r| r.secret)
            || !conflict && finding.category() == self.draft.category && likeness >= ALIKE
    }

    /// Returns true if the text of the claim speaks of a false positive, and its severity is below
    /// major.
    pub(super) fn says_it_is_a_false_alarm(&self) -> bool {
        speaks_of_a_false_alarm(&self.draft.title, &self.draft.message)
            && self.severity(false) < Severity::Major
    }
}

/// Returns true if the position of a claim is at least likely.
fn is_likely(certainty: PositionCertainty) -> bool {
    certainty >= PositionCertainty::Likely
}

/// Returns the highest severity of the candidates. If the position of the best of them is at least
/// likely, only those with such a position count: a claim with a doubtful one must not raise the
/// severity.
fn highest_severity(candidates: &[&ClaimCandidate], best: PositionCertainty) -> Option<Severity> {
    let equals = candidates
        .iter()
        .filter(|c| is_likely(c.certainty) == is_likely(best));
    equals.map(|c| c.draft.severity).max()
}

/// Returns the severity of a draft. A listed weakness is critical if the claim is `sure`.
pub(in crate::ai::anchor) fn severity(draft: &Draft, sure: bool) -> Severity {
    let is_listed = draft
        .cwe
        .is_some_and(|c| INJECTION.contains(&c) || SECRET.contains(&c));
    if is_listed && sure {
        Severity::Critical
    } else {
        draft.severity
    }
}

/// Returns true if the title or the message of a claim has the words "false positive" or "false
/// alarm". They need not be about a finding of a rule.
pub(in crate::ai::anchor) fn speaks_of_a_false_alarm(title: &str, message: &str) -> bool {
    let text = format!("{title} {message}").to_lowercase();
    text.contains("false positive") || text.contains("false alarm")
}
