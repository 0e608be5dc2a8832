//! Merges candidates into findings, and determines their confidence from the evidence.
//!
//! Merging hides nothing: a message that says something different is appended to the merged one. A
//! claim never lowers a finding of a rule. A claim that repeats such a finding is omitted only if
//! the rule's severity is at least as high.

use super::same::Words;
use super::{ClaimCandidate, Quoted};
use crate::diff::{ObjectId, RepoPath};
use crate::finding::{
    self, Category, Confidence, Draft, Evidence, Finding, LineSpan, Location, Origin, Proof,
    Reproduction, Severity,
};
use crate::rules::RuleSet;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Similarity from which two texts of different backends about the same lines count as equal.
const ALIKE: f64 = 0.35;
/// The same for two texts of one backend, which reported them separately.
const ALIKE_OF_ONE: f64 = 0.6;
/// Characters of a merged message, at most.
const MESSAGE: usize = 12_000;

/// Weaknesses that are always critical: injections, by CWE number.
const INJECTION: [u32; 10] = [74, 77, 78, 79, 89, 94, 95, 502, 611, 918];
/// The same for exposed secrets.
const SECRET: [u32; 3] = [798, 522, 321];

/// Merged findings, with the claims that are not reported as findings.
#[derive(Debug, Default)]
pub struct Sealed {
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

impl Sealed {
    /// Adds echoes and disputes to the findings of rules. This changes neither their severity and
    /// confidence nor the verdict.
    pub fn tell(&self, found: &mut [Finding]) {
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
}

/// Merges candidates into findings. `found` holds the findings of rules in the same change, before
/// or after they were arranged.
pub fn seal(candidates: Vec<ClaimCandidate>, found: &[Finding], rules: &RuleSet) -> Sealed {
    let mut candidates = candidates;
    // The order of the answers must not affect the findings.
    candidates.sort_by(|a, b| key(a).cmp(&key(b)));
    let by_rules: Vec<(usize, &Finding, Words)> = found
        .iter()
        .enumerate()
        .filter(|(_, f)| *f.origin() == Origin::Rules)
        .map(|(i, f)| (i, f, Words::of(&[f.title(), f.message()])))
        .collect();
    let mut sealed = Sealed::default();
    for ((_, file), looked) in places(candidates) {
        let there: Vec<_> = by_rules
            .iter()
            .filter(|(_, f, _)| f.file() == file.as_ref())
            .collect();
        for cluster in clusters(looked) {
            finish(cluster, &there, rules, &mut sealed);
        }
    }
    sealed
}

/// Sorts candidates, and returns groups of positions of claims that one backend made repeatedly,
/// under several lenses or in two chunks. The best claim of each group comes first.
pub fn alike(candidates: &mut [ClaimCandidate]) -> Vec<Vec<usize>> {
    candidates.sort_by(|a, b| key(a).cmp(&key(b)));
    let mut all: Vec<Vec<usize>> = Vec::new();
    for cluster in places(candidates.to_vec()).into_values().flat_map(clusters) {
        let mut voices: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for looked in &cluster {
            voices
                .entry(&looked.candidate.backend)
                .or_default()
                .push(looked.order);
        }
        all.extend(voices.into_values());
    }
    all
}

/// Groups candidates by the file that they are about, and numbers them.
fn places(
    candidates: Vec<ClaimCandidate>,
) -> BTreeMap<(usize, Option<RepoPath>), Vec<WordedCandidate>> {
    let mut places: BTreeMap<_, Vec<WordedCandidate>> = BTreeMap::new();
    for (order, candidate) in candidates.into_iter().enumerate() {
        let file = candidate.draft.location.as_ref().map(|l| l.file.clone());
        places
            .entry((candidate.group, file))
            .or_default()
            .push(WordedCandidate::new(candidate, order));
    }
    places
}

fn key(c: &ClaimCandidate) -> impl Ord + '_ {
    let d = &c.draft;
    (
        c.group,
        d.location.as_ref(),
        Reverse(d.severity),
        &d.rule_id,
        &d.title,
        &d.message,
        &c.backend,
    )
}

/// A candidate with its words.
#[derive(Debug)]
struct WordedCandidate {
    candidate: ClaimCandidate,
    words: Words,
    order: usize,
}

impl WordedCandidate {
    fn new(candidate: ClaimCandidate, order: usize) -> Self {
        let words = Words::of(&[&candidate.draft.title, &candidate.draft.message]);
        Self {
            candidate,
            words,
            order,
        }
    }

    fn lines(&self) -> Option<LineSpan> {
        self.candidate.draft.location.as_ref().and_then(|l| l.lines)
    }

    fn is_refuted(&self) -> bool {
        self.candidate.disputed.is_some()
    }

    /// Returns the sort key of the candidate. The best comes first.
    fn rank(&self) -> impl Ord + use<> {
        let c = &self.candidate;
        (
            c.disputed.is_some(),
            Reverse(c.quoted),
            Reverse(c.draft.severity),
            self.order,
        )
    }
}

/// Groups candidates that report the same problem on the same lines.
fn clusters(mut looked: Vec<WordedCandidate>) -> Vec<Vec<WordedCandidate>> {
    looked.sort_by_key(|l| (l.lines().map(|s| (s.first, s.last)), l.order));
    let mut clusters: Vec<Vec<WordedCandidate>> = Vec::new();
    for new in looked {
        let best = clusters.iter().enumerate().filter_map(|(i, cluster)| {
            let likeness = cluster
                .iter()
                .filter_map(|old| same_problem(old, &new))
                .reduce(f64::max)?;
            Some((likeness, i))
        });
        match best.max_by(|a, b| a.0.total_cmp(&b.0).then(b.1.cmp(&a.1))) {
            Some((_, i)) => clusters[i].push(new),
            None => clusters.push(vec![new]),
        }
    }
    // Separate clusters can still be one problem that two backends describe in different words.
    let mut i = 0;
    while i < clusters.len() {
        let alike = (i + 1..clusters.len())
            .filter_map(|j| Some((same_line_and_kind(&clusters[i], &clusters[j])?, j)));
        match alike.max_by(|a, b| a.0.total_cmp(&b.0).then(b.1.cmp(&a.1))) {
            Some((_, j)) => {
                let other = clusters.remove(j);
                clusters[i].extend(other);
            }
            None => i += 1,
        }
    }
    for cluster in &mut clusters {
        cluster.sort_by_key(WordedCandidate::rank);
    }
    clusters
}

/// Returns the similarity of two candidates of one file, if they report the same problem on the
/// same lines.
fn same_problem(a: &WordedCandidate, b: &WordedCandidate) -> Option<f64> {
    let (one, other) = (&a.candidate, &b.candidate);
    let likeness = a.words.likeness(&b.words);
    let by_one = one.backend == other.backend;
    let alike = likeness >= if by_one { ALIKE_OF_ONE } else { ALIKE };
    let weakness = one.draft.cwe.is_some() && one.draft.cwe == other.draft.cwe;
    let same = match (a.lines(), b.lines()) {
        (Some(x), Some(y)) => overlap(x, y) && (weakness || alike),
        (None, None) => {
            alike
                && one.draft.category == other.draft.category
                && one.draft.quote == other.draft.quote
        }
        _ => false,
    };
    same.then_some(likeness)
}

/// Returns the similarity of two clusters of different backends, if both report the same category
/// on the same line with a matching quote.
fn same_line_and_kind(a: &[WordedCandidate], b: &[WordedCandidate]) -> Option<f64> {
    let pairs = a.iter().flat_map(|x| b.iter().map(move |y| (x, y)));
    if pairs
        .clone()
        .any(|(x, y)| x.candidate.backend == y.candidate.backend)
    {
        return None;
    }
    let fitting = pairs.filter(|(x, y)| is_same_line_and_kind(x, y));
    fitting
        .map(|(x, y)| x.words.likeness(&y.words))
        .reduce(f64::max)
}

/// Returns true if both candidates report the same category on the same line with a matching quote.
/// At most one of them names a weakness.
fn is_same_line_and_kind(x: &WordedCandidate, y: &WordedCandidate) -> bool {
    let (Some(own), Some(other)) = (x.lines(), y.lines()) else {
        return false;
    };
    let (c, d) = (&x.candidate, &y.candidate);
    own.first == other.first
        && c.draft.category == d.draft.category
        && (c.draft.cwe.is_none() || d.draft.cwe.is_none())
        && c.quoted >= Quoted::AsNumbered
        && d.quoted >= Quoted::AsNumbered
}

fn overlap(a: LineSpan, b: LineSpan) -> bool {
    a.first <= b.last && b.first <= a.last
}

/// Adds the finding of a cluster, unless it repeats a finding of a rule.
fn finish(
    cluster: Vec<WordedCandidate>,
    by_rules: &[&(usize, &Finding, Words)],
    rules: &RuleSet,
    sealed: &mut Sealed,
) {
    let Some(merged) = Merged::of(cluster) else {
        return;
    };
    let mut evidence = merged.evidence.clone();
    let mut has_rule = false;
    for (rule, finding, words) in by_rules {
        let at = finding.lines().zip(merged.lines());
        if finding.commit != merged.commit || !at.is_some_and(|(x, y)| overlap(x, y)) {
            continue;
        }
        if merged.says_it_is_a_false_alarm() {
            let reason = merged.draft.message.clone();
            sealed.disputes.push(Dispute {
                rule: *rule,
                backend: merged.backend.clone(),
                reason,
            });
            return;
        }
        let set_by_person = !finding.counts()
            || rules
                .severity(finding.rule_id())
                .is_some_and(|s| s != finding.severity());
        if merged.repeats(finding, words, rules)
            && (set_by_person || finding.severity() >= merged.severity(true))
        {
            let mut backends = vec![merged.backend.clone()];
            backends.extend(merged.others.iter().cloned());
            let title = &merged.draft.title;
            let echoes = backends.into_iter().map(|backend| Echo {
                rule: *rule,
                backend,
                title: title.clone(),
            });
            sealed.echoes.extend(echoes);
            return;
        }
        if finding.counts() && finding.category() == merged.draft.category {
            has_rule = true;
            evidence.push(Evidence::Rule(finding.rule_id().to_owned()));
        }
    }
    evidence.extend(merged.others.iter().cloned().map(Evidence::Backend));
    let mut deduped: Vec<Evidence> = Vec::new();
    for e in evidence {
        if !deduped.contains(&e) {
            deduped.push(e);
        }
    }
    let confidence = merged.confidence(has_rule);
    let severity = merged.severity(confidence >= Confidence::Medium);
    sealed
        .notes
        .extend(merged.notes.iter().map(|text| merged.note(text)));
    if severity > merged.draft.severity
        && let Some(cwe) = merged.draft.cwe
    {
        let note = format!(
            "CWE-{cwe} is always critical; the reply said {}",
            merged.draft.severity
        );
        sealed.notes.push(merged.note(&note));
    }
    let draft = Draft {
        severity,
        ..merged.draft
    };
    let mut finding = Finding::new(Proof::claim(&merged.backend, deduped, confidence), draft);
    finding.commit = merged.commit;
    finding.disputed = merged.disputed;
    finding.reproduction = merged.reproduction;
    sealed.findings.push(finding);
    sealed.groups.push(merged.group);
}

/// Several candidates merged into one.
#[derive(Debug)]
struct Merged {
    draft: Draft,
    group: usize,
    commit: Option<ObjectId>,
    /// Name of the backend whose text is used.
    backend: String,
    /// Other backends that report the same and were not refuted.
    others: Vec<String>,
    quoted: Quoted,
    /// Evidence from the quote and from tool calls.
    evidence: Vec<Evidence>,
    disputed: Option<String>,
    reproduction: Option<Reproduction>,
    notes: Vec<String>,
    words: Words,
}

impl Merged {
    /// Merges the candidates of a cluster. The text comes from the first, which is the best.
    fn of(cluster: Vec<WordedCandidate>) -> Option<Self> {
        // A refuted candidate supports nothing, unless all of them were refuted.
        let all_refuted = cluster.iter().all(WordedCandidate::is_refuted);
        let counting: Vec<&ClaimCandidate> = cluster
            .iter()
            .filter(|l| all_refuted || !l.is_refuted())
            .map(|l| &l.candidate)
            .collect();
        let quoted = counting.iter().map(|c| c.quoted).max()?;
        // A claim without a matching quote must not raise the severity of a claim with one.
        let has_quote = quoted >= Quoted::AsNumbered;
        let tied = counting
            .iter()
            .filter(|c| (c.quoted >= Quoted::AsNumbered) == has_quote);
        let severity = tied.map(|c| c.draft.severity).max()?;
        let mut evidence = Vec::new();
        if has_quote {
            evidence.push(Evidence::Quote);
        }
        evidence.extend(counting.iter().flat_map(|c| c.evidence.iter().cloned()));
        let reproduction = counting.iter().find_map(|c| c.reproduction.clone());
        if reproduction.is_some() {
            evidence.push(Evidence::Reproduced);
        }
        let mut looked = cluster.into_iter();
        let WordedCandidate {
            candidate: best,
            words,
            ..
        } = looked.next()?;
        let ClaimCandidate {
            draft,
            group,
            commit,
            backend,
            disputed,
            notes,
            ..
        } = best;
        let others = Vec::new();
        let mut merged = Self {
            draft,
            group,
            commit,
            backend,
            others,
            quoted,
            evidence,
            disputed,
            reproduction,
            notes,
            words,
        };
        for other in looked {
            merged.add(&other, all_refuted || !other.is_refuted());
        }
        merged.draft.severity = severity;
        Some(merged)
    }

    fn add(&mut self, other: &WordedCandidate, counts: bool) {
        let theirs = &other.candidate;
        let is_another = theirs.backend != self.backend;
        if is_another && counts && !self.others.contains(&theirs.backend) {
            self.others.push(theirs.backend.clone());
        }
        let (own, draft) = (&mut self.draft, &theirs.draft);
        if self.words.likeness(&other.words) < ALIKE_OF_ONE {
            let who = if is_another {
                format!("{} says", theirs.backend)
            } else {
                "Also".to_owned()
            };
            let more = format!(
                "{}\n\n{who}: {}: {}",
                own.message, draft.title, draft.message
            );
            own.message = super::text::cut(&more, MESSAGE);
        }
        if counts {
            finding::add_places(&mut own.also, &draft.also);
        }
        let same_lines = own.location == draft.location;
        if counts && (theirs.quoted >= Quoted::AsNumbered || self.quoted < Quoted::AsNumbered) {
            own.cwe = own.cwe.or(draft.cwe);
        }
        own.failure = own.failure.take().or_else(|| draft.failure.clone());
        own.suggestion = own.suggestion.take().or_else(|| draft.suggestion.clone());
        own.convention = own.convention.take().or_else(|| draft.convention.clone());
        if same_lines {
            own.replacement = own.replacement.take().or_else(|| draft.replacement.clone());
        }
        for note in &theirs.notes {
            if !self.notes.contains(note) {
                self.notes.push(note.clone());
            }
        }
    }

    fn lines(&self) -> Option<LineSpan> {
        self.draft.location.as_ref().and_then(|l| l.lines)
    }

    /// Returns a note about the claim, with its title in front.
    fn note(&self, text: &str) -> Noted {
        Noted {
            location: self.draft.location.clone(),
            backend: self.backend.clone(),
            text: format!("{}: {text}", self.draft.title),
        }
    }

    /// Returns the confidence, which depends only on the evidence.
    fn confidence(&self, has_rule: bool) -> Confidence {
        let agreed = !self.others.is_empty();
        let was_read = self
            .evidence
            .iter()
            .any(|e| matches!(e, Evidence::Read { .. }));
        match self.quoted {
            _ if self.reproduction.is_some() => Confidence::High,
            Quoted::Loosely => Confidence::Low,
            Quoted::AsNumbered if agreed => Confidence::High,
            Quoted::AsNumbered => Confidence::Medium,
            Quoted::Exactly if agreed || was_read || has_rule => Confidence::High,
            Quoted::Exactly => Confidence::Medium,
        }
    }

    /// Returns the severity. A listed weakness is critical if the claim is `sure`.
    fn severity(&self, sure: bool) -> Severity {
        severity(&self.draft, sure)
    }

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
    fn repeats(&self, finding: &Finding, words: &Words, rules: &RuleSet) -> bool {
        let weakness = self.draft.cwe.is_some() && self.draft.cwe == finding.cwe();
        let likeness = self.words.likeness(words);
        let conflict = self.draft.cwe.is_some() && finding.cwe().is_some() && !weakness;
        weakness
            || self.is_about_a_secret()
                && rules.describe(finding.rule_id()).is_some_and(|r| r.secret)
            || !conflict && finding.category() == self.draft.category && likeness >= ALIKE
    }

    /// Returns true if the claim calls something a false positive.
    fn says_it_is_a_false_alarm(&self) -> bool {
        speaks_of_a_false_alarm(&self.draft.title, &self.draft.message)
            && self.severity(false) < Severity::Major
    }
}

/// Returns the severity of a draft. A listed weakness is critical if the claim is `sure`.
pub(super) fn severity(draft: &Draft, sure: bool) -> Severity {
    let is_listed = draft
        .cwe
        .is_some_and(|c| INJECTION.contains(&c) || SECRET.contains(&c));
    if is_listed && sure {
        Severity::Critical
    } else {
        draft.severity
    }
}

/// Returns true if a claim calls something a false positive.
pub(super) fn speaks_of_a_false_alarm(title: &str, message: &str) -> bool {
    let text = format!("{title} {message}").to_lowercase();
    text.contains("false positive") || text.contains("false alarm")
}

#[cfg(test)]
mod tests;
