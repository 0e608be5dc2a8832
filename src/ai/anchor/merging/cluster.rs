//! Groups the candidates that report the same problem on the same lines.

use super::overlap;
use crate::ai::anchor::same::Words;
use crate::ai::anchor::{ClaimCandidate, PositionCertainty};
use crate::diff::RepoPath;
use crate::finding::LineSpan;
use std::cmp::{Ordering, Reverse};
use std::collections::BTreeMap;

/// Similarity from which two texts of different backends about the same lines count as equal.
pub(super) const ALIKE: f64 = 0.35;
/// The same for two texts of one backend, which reported them separately.
pub(super) const ALIKE_OF_ONE: f64 = 0.6;

/// A candidate with its words.
#[derive(Debug)]
pub(super) struct WordedCandidate {
    pub(super) candidate: ClaimCandidate,
    pub(super) words: Words,
    /// Position in the sorted list of all candidates.
    pub(super) order: usize,
}

impl WordedCandidate {
    /// Collects the words of a candidate.
    fn new(candidate: ClaimCandidate, order: usize) -> Self {
        let words = Words::of(&[&candidate.draft.title, &candidate.draft.message]);
        Self {
            candidate,
            words,
            order,
        }
    }

    /// Returns the lines that it is about.
    fn lines(&self) -> Option<LineSpan> {
        self.candidate.draft.location.as_ref().and_then(|l| l.lines)
    }

    /// Returns true if a second request refuted it.
    pub(super) fn is_refuted(&self) -> bool {
        self.candidate.disputed.is_some()
    }

    /// Returns the sort key of the candidate. The best comes first.
    fn rank(&self) -> impl Ord + use<> {
        let c = &self.candidate;
        (
            c.disputed.is_some(),
            Reverse(c.certainty),
            Reverse(c.draft.severity),
            self.order,
        )
    }
}

/// Compares candidates by their content, so that their order does not depend on the order of the
/// answers.
pub(super) fn order(a: &ClaimCandidate, b: &ClaimCandidate) -> Ordering {
    key(a).cmp(&key(b))
}

/// Returns the key by which candidates are sorted.
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

/// Groups candidates by the file that they are about, and numbers them.
pub(super) fn by_file(
    candidates: Vec<ClaimCandidate>,
) -> BTreeMap<(usize, Option<RepoPath>), Vec<WordedCandidate>> {
    let mut by_file: BTreeMap<_, Vec<WordedCandidate>> = BTreeMap::new();
    for (order, candidate) in candidates.into_iter().enumerate() {
        let file = candidate.draft.location.as_ref().map(|l| l.file.clone());
        by_file
            .entry((candidate.group, file))
            .or_default()
            .push(WordedCandidate::new(candidate, order));
    }
    by_file
}

/// Groups candidates of one file that report the same problem on the same lines. The best candidate
/// of each group comes first.
pub(super) fn clusters(mut candidates: Vec<WordedCandidate>) -> Vec<Vec<WordedCandidate>> {
    candidates.sort_by_key(|c| (c.lines().map(|s| (s.first, s.last)), c.order));
    let mut clusters: Vec<Vec<WordedCandidate>> = Vec::new();
    for new in candidates {
        let alike = clusters.iter().enumerate().filter_map(|(i, cluster)| {
            let old = cluster.iter();
            let likeness = old
                .filter_map(|old| likeness_of_same_problem(old, &new))
                .reduce(f64::max)?;
            Some((likeness, i))
        });
        match most_alike(alike) {
            Some(i) => clusters[i].push(new),
            None => clusters.push(vec![new]),
        }
    }
    join_other_words(&mut clusters);
    for cluster in &mut clusters {
        cluster.sort_by_key(WordedCandidate::rank);
    }
    clusters
}

/// Joins clusters that are one problem which two backends describe in different words.
fn join_other_words(clusters: &mut Vec<Vec<WordedCandidate>>) {
    let mut i = 0;
    while i < clusters.len() {
        let alike = (i + 1..clusters.len()).filter_map(|j| {
            let likeness = likeness_of_same_line_and_kind(&clusters[i], &clusters[j])?;
            Some((likeness, j))
        });
        match most_alike(alike) {
            Some(j) => {
                let other = clusters.remove(j);
                clusters[i].extend(other);
            }
            None => i += 1,
        }
    }
}

/// Returns the position with the highest similarity, or the first of several.
fn most_alike(clusters: impl Iterator<Item = (f64, usize)>) -> Option<usize> {
    clusters
        .max_by(|a, b| a.0.total_cmp(&b.0).then(b.1.cmp(&a.1)))
        .map(|(_, position)| position)
}

/// Returns the similarity of two candidates of one file, if they report the same problem on the
/// same lines.
fn likeness_of_same_problem(a: &WordedCandidate, b: &WordedCandidate) -> Option<f64> {
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
fn likeness_of_same_line_and_kind(a: &[WordedCandidate], b: &[WordedCandidate]) -> Option<f64> {
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
        && c.certainty >= PositionCertainty::Likely
        && d.certainty >= PositionCertainty::Likely
}
