//! From candidates to findings: what several looks found is merged, and what supports it decides how far it is
//! believed.
//!
//! Merging hides nothing: a text that says something else is kept behind the other. A rule's finding is never
//! lowered by a claim, and a claim that repeats one is only left out where the rule's says at least as much.

use super::same::Words;
use super::{Candidate, Quoted};
use crate::diff::{ObjectId, RepoPath};
use crate::finding::{
    self, Category, Confidence, Draft, Evidence, Finding, LineSpan, Location, Origin, Proof, Reproduction, Severity,
};
use crate::rules::RuleSet;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// How much two texts of different backends about the same lines share that mean the same.
const ALIKE: f64 = 0.35;
/// The same for two texts of one backend, which had them apart.
const ALIKE_OF_ONE: f64 = 0.6;
/// Characters of a message that was put together.
const MESSAGE: usize = 12_000;

/// Weaknesses that are critical wherever they are: injection, in the numbers of the CWE list.
const INJECTION: [u32; 10] = [74, 77, 78, 79, 89, 94, 95, 502, 611, 918];
/// The same for exposed secrets.
const SECRET: [u32; 3] = [798, 522, 321];

/// Findings, and what has to be said beside them.
#[derive(Debug, Default)]
pub struct Sealed {
    pub findings: Vec<Finding>,
    /// Of each finding, the position of its [`Group`](crate::ai::material::Group).
    pub groups: Vec<usize>,
    /// Claims that say what a rule found already.
    pub echoes: Vec<Echo>,
    /// Claims that hold a rule's finding for a false alarm.
    pub disputes: Vec<Dispute>,
    pub notes: Vec<Noted>,
}

/// A claim that repeats a rule's finding, and is not reported on its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Echo {
    /// Position of the rule's finding.
    pub rule: usize,
    pub backend: String,
    /// What the model called it. Foreign text.
    pub title: String,
}

/// A claim that a rule's finding is a false alarm.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dispute {
    /// Position of the rule's finding.
    pub rule: usize,
    pub backend: String,
    /// Foreign text.
    pub reason: String,
}

/// Something to say about how a claim was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Noted {
    pub location: Option<Location>,
    pub backend: String,
    /// Foreign text.
    pub text: String,
}

impl Sealed {
    /// Tells the rules' findings what models say of them. Neither severity nor confidence changes, nor the verdict.
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

/// Makes findings of candidates. `found` is what the rules found in the same change, before or after they were
/// arranged.
pub fn seal(candidates: Vec<Candidate>, found: &[Finding], rules: &RuleSet) -> Sealed {
    let mut candidates = candidates;
    // Whichever answered first: the same claims make the same findings.
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

/// Puts candidates in order and returns, by their positions, which of them one backend says repeatedly: under several
/// lenses, or in two chunks. The best comes first.
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

/// Sorts candidates by the file that they are about, and numbers them.
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

    /// The best comes first.
    fn rank(&self) -> impl Ord + use<> {
        let c = &self.candidate;
        (c.disputed.is_some(), Reverse(c.quoted), Reverse(c.draft.severity), self.order)
    }
}

/// Puts together what is about the same place and the same problem.
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
    // What is left apart may still be one thing that two backends put in other words.
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

/// Returns how much alike two candidates of one file are, if they state the same about the same lines.
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

/// Returns how much alike two clusters of different backends are, if both are about the same kind of problem on the same line,
/// with its text.
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

/// Makes the finding of a cluster, unless a rule's finding says it already.
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

/// What several looks say, as one.
#[derive(Debug)]
struct Merged {
    draft: Draft,
    group: usize,
    commit: Option<ObjectId>,
    /// Whose words these are.
    backend: String,
    /// The other backends that say so, too, and were not refuted.
    others: Vec<String>,
    quoted: Quoted,
    /// Quote and tool calls.
    evidence: Vec<Evidence>,
    disputed: Option<String>,
    reproduction: Option<Reproduction>,
    notes: Vec<String>,
    words: Words,
}

impl Merged {
    /// Merges; the best candidate comes first and lends its words.
    fn of(cluster: Vec<Looked>) -> Option<Self> {
        // What was refuted supports nothing, unless all of it was.
        let stands = |l: &Looked| l.candidate.disputed.is_none();
        let any_stands = cluster.iter().any(stands);
        let counts = |l: &Looked| stands(l) || !any_stands;
        let quoted = cluster.iter().filter(|l| counts(l)).map(|l| l.candidate.quoted).max()?;
        // Nor does a claim that is tied to its place loosely make one worse that is tied to it well.
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

    /// Follows from the evidence alone: the table of the design.
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

    /// Returns the severity; that of a listed weakness, where the claim is `sure`.
    fn severity(&self, sure: bool) -> Severity {
        severity(&self.draft, sure)
    }

    fn is_about_a_secret(&self) -> bool {
        let named = ["secret", "credential", "password", "passwd", "token", "key", "api_key"];
        let exposed = ["hardcod", "hard", "leak", "commit", "committ", "expos", "embedd", "plaintext", "plain"];
        let by_words = self.words.has_any(&named) && self.words.has_any(&exposed);
        self.draft.cwe.map_or(self.draft.category == Category::Security && by_words, |c| SECRET.contains(&c))
    }

    /// Returns true if a rule's finding on the same lines is about the same problem.
    fn repeats(&self, finding: &Finding, words: &Words, rules: &RuleSet) -> bool {
        let weakness = self.draft.cwe.is_some() && self.draft.cwe == finding.cwe();
        let secret = || rules.describe(finding.rule_id()).is_some_and(|r| r.secret);
        let likeness = self.words.likeness(words);
        let conflict = self.draft.cwe.is_some() && finding.cwe().is_some() && !weakness;
        weakness
            || self.is_about_a_secret() && secret()
            || !conflict && finding.category() == self.draft.category && likeness >= ALIKE
    }

    /// Returns true if the claim is that something else is no problem.
    fn says_it_is_a_false_alarm(&self) -> bool {
        speaks_of_a_false_alarm(&self.draft.title, &self.draft.message) && self.severity(false) < Severity::Major
    }
}

/// Returns the severity of a draft; that of a listed weakness, where the claim is `sure`.
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
