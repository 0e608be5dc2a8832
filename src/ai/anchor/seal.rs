//! Merges candidates into findings, and determines their confidence from the evidence.
//!
//! Merging hides nothing: a message that says something different is appended to the merged one. A claim never lowers a
//! finding of a rule. A claim that repeats such a finding is omitted only if the rule's severity is at least as high.

use super::same::Words;
use super::{Candidate, Quoted};
use crate::diff::{ObjectId, RepoPath};
use crate::finding::{
    self, Category, Confidence, Draft, Evidence, Finding, LineSpan, Location, Origin, Proof, Reproduction, Severity,
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
    /// Adds echoes and disputes to the findings of rules. This changes neither their severity and confidence nor the
    /// verdict.
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

/// Merges candidates into findings. `found` holds the findings of rules in the same change, before or after they were
/// arranged.
pub fn seal(candidates: Vec<Candidate>, found: &[Finding], rules: &RuleSet) -> Sealed {
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
        let there: Vec<_> = by_rules.iter().filter(|(_, f, _)| f.file() == file.as_ref()).collect();
        for cluster in clusters(looked) {
            finish(cluster, &there, rules, &mut sealed);
        }
    }
    sealed
}

/// Sorts candidates, and returns groups of positions of claims that one backend made repeatedly, under several lenses
/// or in two chunks. The best claim of each group comes first.
pub fn alike(candidates: &mut [Candidate]) -> Vec<Vec<usize>> {
    candidates.sort_by(|a, b| key(a).cmp(&key(b)));
    let mut all: Vec<Vec<usize>> = Vec::new();
    for cluster in places(candidates.to_vec()).into_values().flat_map(clusters) {
        let mut voices: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for looked in &cluster {
            voices.entry(&looked.candidate.backend).or_default().push(looked.order);
        }
        all.extend(voices.into_values());
    }
    all
}

/// Groups candidates by the file that they are about, and numbers them.
fn places(candidates: Vec<Candidate>) -> BTreeMap<(usize, Option<RepoPath>), Vec<Looked>> {
    let mut places: BTreeMap<_, Vec<Looked>> = BTreeMap::new();
    for (order, candidate) in candidates.into_iter().enumerate() {
        let file = candidate.draft.location.as_ref().map(|l| l.file.clone());
        places.entry((candidate.group, file)).or_default().push(Looked::new(candidate, order));
    }
    places
}

fn key(c: &Candidate) -> impl Ord + '_ {
    let d = &c.draft;
    (c.group, d.location.as_ref(), Reverse(d.severity), &d.rule_id, &d.title, &d.message, &c.backend)
}

/// A candidate with its words.
#[derive(Debug)]
struct Looked {
    candidate: Candidate,
    words: Words,
    order: usize,
}

impl Looked {
    fn new(candidate: Candidate, order: usize) -> Self {
        let words = Words::of(&[&candidate.draft.title, &candidate.draft.message]);
        Self { candidate, words, order }
    }

    fn lines(&self) -> Option<LineSpan> {
        self.candidate.draft.location.as_ref().and_then(|l| l.lines)
    }

    /// Returns the sort key of the candidate. The best comes first.
    fn rank(&self) -> impl Ord + use<> {
        let c = &self.candidate;
        (c.disputed.is_some(), Reverse(c.quoted), Reverse(c.draft.severity), self.order)
    }
}

/// Groups candidates that report the same problem on the same lines.
fn clusters(mut looked: Vec<Looked>) -> Vec<Vec<Looked>> {
    looked.sort_by_key(|l| (l.lines().map(|s| (s.first, s.last)), l.order));
    let mut clusters: Vec<Vec<Looked>> = Vec::new();
    for new in looked {
        let score = |cluster: &Vec<Looked>| cluster.iter().filter_map(|old| same_problem(old, &new)).reduce(f64::max);
        let best = clusters.iter().enumerate().filter_map(|(i, c)| Some((score(c)?, i)));
        match best.max_by(|a, b| a.0.total_cmp(&b.0).then(b.1.cmp(&a.1))) {
            Some((_, i)) => clusters[i].push(new),
            None => clusters.push(vec![new]),
        }
    }
    // Separate clusters can still be one problem that two backends describe in different words.
    let mut i = 0;
    while i < clusters.len() {
        let score = |j: usize| same_line_and_kind(&clusters[i], &clusters[j]).map(|s| (s, j));
        let best = (i + 1..clusters.len()).filter_map(score).max_by(|a, b| a.0.total_cmp(&b.0).then(b.1.cmp(&a.1)));
        match best {
            Some((_, j)) => {
                let other = clusters.remove(j);
                clusters[i].extend(other);
            }
            None => i += 1,
        }
    }
    for cluster in &mut clusters {
        cluster.sort_by_key(Looked::rank);
    }
    clusters
}

/// Returns the similarity of two candidates of one file, if they report the same problem on the same lines.
fn same_problem(a: &Looked, b: &Looked) -> Option<f64> {
    let (one, other) = (&a.candidate, &b.candidate);
    let likeness = a.words.likeness(&b.words);
    let by_one = one.backend == other.backend;
    let alike = likeness >= if by_one { ALIKE_OF_ONE } else { ALIKE };
    let weakness = one.draft.cwe.is_some() && one.draft.cwe == other.draft.cwe;
    let same = match (a.lines(), b.lines()) {
        (Some(x), Some(y)) => overlap(x, y) && (weakness || alike),
        (None, None) => alike && one.draft.category == other.draft.category && one.draft.quote == other.draft.quote,
        _ => false,
    };
    same.then_some(likeness)
}

/// Returns the similarity of two clusters of different backends, if both report the same category on the same line with
/// a matching quote.
fn same_line_and_kind(a: &[Looked], b: &[Looked]) -> Option<f64> {
    let backends = |of: &[Looked]| of.iter().map(|l| l.candidate.backend.clone()).collect::<Vec<_>>();
    let theirs = backends(b);
    if backends(a).iter().any(|n| theirs.contains(n)) {
        return None;
    }
    let fits = |x: &Looked, y: &Looked| {
        let (c, d) = (&x.candidate, &y.candidate);
        let kinds = c.draft.category == d.draft.category;
        let weaknesses = c.draft.cwe.is_none() || d.draft.cwe.is_none();
        let sure = c.quoted >= Quoted::AsNumbered && d.quoted >= Quoted::AsNumbered;
        let first = |l: &Looked| l.lines().map(|s| s.first);
        first(x).is_some() && first(x) == first(y) && kinds && weaknesses && sure
    };
    let pairs = a.iter().flat_map(|x| b.iter().map(move |y| (x, y)));
    pairs.filter(|(x, y)| fits(x, y)).map(|(x, y)| x.words.likeness(&y.words)).reduce(f64::max)
}

fn overlap(a: LineSpan, b: LineSpan) -> bool {
    a.first <= b.last && b.first <= a.last
}

/// Adds the finding of a cluster, unless it repeats a finding of a rule.
fn finish(cluster: Vec<Looked>, by_rules: &[&(usize, &Finding, Words)], rules: &RuleSet, sealed: &mut Sealed) {
    let Some(merged) = Merged::of(cluster) else { return };
    let mut evidence = merged.evidence.clone();
    let mut has_rule = false;
    for (rule, finding, words) in by_rules {
        let at = finding.lines().zip(merged.lines());
        if finding.commit != merged.commit || !at.is_some_and(|(x, y)| overlap(x, y)) {
            continue;
        }
        if merged.says_it_is_a_false_alarm() {
            let reason = merged.draft.message.clone();
            sealed.disputes.push(Dispute { rule: *rule, backend: merged.backend.clone(), reason });
            return;
        }
        let set_by_person =
            !finding.counts() || rules.severity(finding.rule_id()).is_some_and(|s| s != finding.severity());
        if merged.repeats(finding, words, rules) && (set_by_person || finding.severity() >= merged.severity(true)) {
            let mut backends = vec![merged.backend.clone()];
            backends.extend(merged.others.iter().cloned());
            let title = merged.draft.title.clone();
            let echo = |backend| Echo { rule: *rule, backend, title: title.clone() };
            sealed.echoes.extend(backends.into_iter().map(echo));
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
    let location = merged.draft.location.clone();
    let note = |text: String| Noted {
        location: location.clone(),
        backend: merged.backend.clone(),
        text: format!("{}: {text}", merged.draft.title),
    };
    sealed.notes.extend(merged.notes.iter().cloned().map(note));
    if severity > merged.draft.severity
        && let Some(cwe) = merged.draft.cwe
    {
        sealed.notes.push(note(format!("CWE-{cwe} is always critical; the reply said {}", merged.draft.severity)));
    }
    let draft = Draft { severity, ..merged.draft };
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
    fn of(cluster: Vec<Looked>) -> Option<Self> {
        // A refuted candidate supports nothing, unless all of them were refuted.
        let stands = |l: &Looked| l.candidate.disputed.is_none();
        let any_stands = cluster.iter().any(stands);
        let counts = |l: &Looked| stands(l) || !any_stands;
        let quoted = cluster.iter().filter(|l| counts(l)).map(|l| l.candidate.quoted).max()?;
        // A claim without a matching quote must not raise the severity of a claim with one.
        let ties =
            |l: &Looked| counts(l) && (l.candidate.quoted >= Quoted::AsNumbered) == (quoted >= Quoted::AsNumbered);
        let severity = cluster.iter().filter(|l| ties(l)).map(|l| l.candidate.draft.severity).max()?;
        let mut evidence = Vec::new();
        if quoted >= Quoted::AsNumbered {
            evidence.push(Evidence::Quote);
        }
        evidence.extend(cluster.iter().filter(|l| counts(l)).flat_map(|l| l.candidate.evidence.iter().cloned()));
        let reproduction = cluster.iter().filter(|l| counts(l)).find_map(|l| l.candidate.reproduction.clone());
        if reproduction.is_some() {
            evidence.push(Evidence::Reproduced);
        }
        let mut looked = cluster.into_iter();
        let Looked { candidate: best, words, .. } = looked.next()?;
        let Candidate { draft, group, commit, backend, disputed, notes, .. } = best;
        let others = Vec::new();
        let mut merged =
            Self { draft, group, commit, backend, others, quoted, evidence, disputed, reproduction, notes, words };
        for other in looked {
            merged.add(&other, counts(&other));
        }
        merged.draft.severity = severity;
        Some(merged)
    }

    fn add(&mut self, other: &Looked, counts: bool) {
        let theirs = &other.candidate;
        let is_another = theirs.backend != self.backend;
        if is_another && counts && !self.others.contains(&theirs.backend) {
            self.others.push(theirs.backend.clone());
        }
        let (own, draft) = (&mut self.draft, &theirs.draft);
        if self.words.likeness(&other.words) < ALIKE_OF_ONE {
            let who = if is_another { format!("{} says", theirs.backend) } else { "Also".to_owned() };
            let more = format!("{}\n\n{who}: {}: {}", own.message, draft.title, draft.message);
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

    /// Returns the confidence, which depends only on the evidence.
    fn confidence(&self, has_rule: bool) -> Confidence {
        let agreed = !self.others.is_empty();
        let was_read = self.evidence.iter().any(|e| matches!(e, Evidence::Read { .. }));
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
        let named = ["secret", "credential", "password", "passwd", "token", "key", "api_key"];
        let exposed = ["hardcod", "hard", "leak", "commit", "committ", "expos", "embedd", "plaintext", "plain"];
        let by_words = self.words.has_any(&named) && self.words.has_any(&exposed);
        self.draft.cwe.map_or(self.draft.category == Category::Security && by_words, |c| SECRET.contains(&c))
    }

    /// Returns true if a finding of a rule on the same lines reports the same problem.
    fn repeats(&self, finding: &Finding, words: &Words, rules: &RuleSet) -> bool {
        let weakness = self.draft.cwe.is_some() && self.draft.cwe == finding.cwe();
        let secret = || rules.describe(finding.rule_id()).is_some_and(|r| r.secret);
        let likeness = self.words.likeness(words);
        let conflict = self.draft.cwe.is_some() && finding.cwe().is_some() && !weakness;
        weakness
            || self.is_about_a_secret() && secret()
            || !conflict && finding.category() == self.draft.category && likeness >= ALIKE
    }

    /// Returns true if the claim calls something a false positive.
    fn says_it_is_a_false_alarm(&self) -> bool {
        speaks_of_a_false_alarm(&self.draft.title, &self.draft.message) && self.severity(false) < Severity::Major
    }
}

/// Returns the severity of a draft. A listed weakness is critical if the claim is `sure`.
pub(super) fn severity(draft: &Draft, sure: bool) -> Severity {
    let is_listed = draft.cwe.is_some_and(|c| INJECTION.contains(&c) || SECRET.contains(&c));
    if is_listed && sure { Severity::Critical } else { draft.severity }
}

/// Returns true if a claim calls something a false positive.
pub(super) fn speaks_of_a_false_alarm(title: &str, message: &str) -> bool {
    let text = format!("{title} {message}").to_lowercase();
    text.contains("false positive") || text.contains("false alarm")
}

#[cfg(test)]
mod tests;
