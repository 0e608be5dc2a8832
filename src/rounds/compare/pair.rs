//! Matches findings of the new round with open ones: most certain pairs first, each finding once.

use super::super::region::{LinePosition, Preserved};
use super::Open;
use super::alike::{
    current_position, has_same_text, is_rule, is_same_trouble, lines, overlap, shared, text_key,
    title_words,
};
use super::spans::Spans;
use crate::wire::Finding;
use crate::wire::stored::State;
use std::collections::{BTreeSet, HashMap};

/// Findings of the new round that are compared with one open finding in one step, at most; the
/// nearest take precedence.
const MOST: usize = 64;

/// The matched findings.
#[derive(Debug)]
pub(super) struct Pairs {
    /// By open finding: index of the matching new one.
    now: Vec<Option<usize>>,
    /// By new finding: index of the matching open one, and its state.
    before: Vec<Option<(usize, State)>>,
}

/// An open finding with its current position.
struct PlacedFinding<'c> {
    f: &'c Finding,
    /// Current path of the file.
    file: Option<&'c str>,
    /// `None` if it has no lines.
    place: Option<LinePosition>,
    text: String,
    words: BTreeSet<String>,
}

/// The findings that one step compares.
#[derive(Clone, Copy, Debug)]
enum Reach {
    /// Same text, at the current or the old first line.
    Line,
    /// On its current lines.
    Over,
    /// About the same whole file.
    Whole,
    /// Same text in its file, or same fingerprint.
    Text,
    /// Same text anywhere.
    Anywhere,
}

/// The findings of the new round, with values for repeated comparisons.
struct Fresh<'n> {
    all: &'n [Finding],
    words: Vec<BTreeSet<String>>,
    text: Vec<String>,
}

/// The unmatched findings of the new round, indexed for one step.
#[derive(Default)]
struct Index<'n> {
    by_lines: HashMap<&'n str, Spans>,
    by_key: HashMap<IndexKey<'n>, Vec<usize>>,
    by_fingerprint: HashMap<&'n str, Vec<usize>>,
}

/// A key of the index: the file, the line, and the text or the rule.
type IndexKey<'n> = (Option<&'n str>, Option<u32>, &'n str);

impl<'n> Index<'n> {
    /// Indexes the unmatched findings for one step.
    fn of(fresh: &'n Fresh<'n>, reach: Reach, is_free: impl Fn(usize) -> bool) -> Self {
        let mut out = Self::default();
        let mut ranges = Vec::new();
        for (i, n) in fresh.all.iter().enumerate().filter(|(i, _)| is_free(*i)) {
            let (file, text) = (n.file.as_deref(), fresh.text[i].as_str());
            let key = match (reach, file, lines(n)) {
                (Reach::Over, Some(file), Some(lines)) => {
                    ranges.push((file, lines, i));
                    continue;
                }
                (Reach::Over, ..) => continue,
                (Reach::Line, ..) => (file, n.line, text),
                (Reach::Whole, _, Some(_)) => continue,
                (Reach::Whole, _, None) => (file, None, n.rule_id.as_str()),
                (Reach::Text, ..) => {
                    out.by_fingerprint
                        .entry(&n.fingerprint)
                        .or_default()
                        .push(i);
                    (file, None, text)
                }
                (Reach::Anywhere, ..) => (None, None, text),
            };
            out.by_key.entry(key).or_default().push(i);
        }
        out.by_lines = Spans::by_file(ranges);
        for with_key in out.by_key.values_mut() {
            with_key.sort_by_key(|i| (fresh.all[*i].line, *i));
        }
        out
    }

    /// Returns the candidates for an open finding, the `nth` with its text.
    fn reached(
        &self,
        fresh: &Fresh<'_>,
        k: &PlacedFinding<'_>,
        reach: Reach,
        nth: usize,
    ) -> Vec<usize> {
        match reach {
            Reach::Line => self.with_key((k.file, k.f.line.map(|_| k.line()), &k.text), nth),
            Reach::Over => {
                let Some(LinePosition::At(spot)) = &k.place else {
                    return Vec::new();
                };
                // If none of the lines remain, only a finding that covers both lines around them is
                // at their position: one about the next line may be about other code.
                let all = self.by_lines.get(spot.file.as_str());
                let mut all: Vec<usize> = all
                    .into_iter()
                    .flat_map(|s| s.touching(&spot.lines))
                    .filter(|i| has_same_source(k.f, &fresh.all[*i]))
                    .collect();
                all.sort_unstable();
                rotated(&all, nth)
            }
            Reach::Whole => self.with_key((k.file, None, &k.f.rule_id), nth),
            Reach::Text => {
                let same = self.by_fingerprint.get(k.f.fingerprint.as_str());
                let mut out = same.map_or_else(Vec::new, |all| rotated(all, nth));
                if let Some(all) = self.by_key.get(&(k.file, None, &k.text)) {
                    let at = all.partition_point(|i| fresh.all[*i].line < Some(k.line()));
                    let near = at.saturating_sub(MOST / 2)..(at + MOST / 2).min(all.len());
                    out.extend(&all[near]);
                }
                out.sort_unstable();
                out.dedup();
                out
            }
            Reach::Anywhere => self.with_key((None, None, &k.text), nth),
        }
    }

    /// Returns the candidates with a key.
    fn with_key(&self, key: IndexKey<'_>, nth: usize) -> Vec<usize> {
        self.by_key
            .get(&key)
            .map_or_else(Vec::new, |all| rotated(all, nth))
    }
}

/// Returns true if models reported both findings, or the same rule did.
fn has_same_source(before: &Finding, now: &Finding) -> bool {
    is_rule(before) == is_rule(now) && (!is_rule(now) || before.rule_id == now.rule_id)
}

/// Returns at most [`MOST`] candidates from the `nth` on, wrapping around, so that equal findings
/// get different candidates.
fn rotated(all: &[usize], nth: usize) -> Vec<usize> {
    if all.len() <= MOST {
        return all.to_vec();
    }
    let from = nth % all.len();
    all[from..]
        .iter()
        .chain(&all[..from])
        .take(MOST)
        .copied()
        .collect()
}

impl PlacedFinding<'_> {
    /// Finds the current position of an open finding.
    fn of<'c>(open: &'c Open<'c>) -> PlacedFinding<'c> {
        let f = open.finding;
        let alignment = &open.round.alignment;
        let path = f
            .file
            .as_deref()
            .map(|p| alignment.path(f.commit.as_deref(), p).unwrap_or(p));
        // A deleted file has no current position.
        let is_deleted = path.is_some_and(|p| alignment.is_deleted(p));
        let place = current_position(f, alignment).map(|place| {
            if is_deleted {
                LinePosition::Gone
            } else {
                place
            }
        });
        PlacedFinding {
            f,
            file: path,
            place,
            text: text_key(f),
            words: title_words(f),
        }
    }

    /// Returns its current first line, or else the old one.
    fn line(&self) -> u32 {
        match &self.place {
            Some(LinePosition::At(spot)) => spot.lines.start,
            _ => self.f.line.unwrap_or(0),
        }
    }

    /// Returns true if a finding of the new round is in the current file of this one.
    fn is_in_file_of(&self, now: &Finding) -> bool {
        self.file == now.file.as_deref()
    }

    /// Returns true if a finding is on the current lines of this one.
    fn is_at(&self, now: &Finding, exactly: bool) -> bool {
        let (Some(LinePosition::At(spot)), Some(lines)) = (&self.place, lines(now)) else {
            return false;
        };
        let is_line = if exactly {
            lines.start == spot.lines.start
        } else {
            overlap(&lines, &spot.lines)
        };
        now.file.as_deref() == Some(spot.file.as_str()) && is_line
    }

    /// Returns true if a finding is on the old lines of this one, in a file that the change does
    /// not show.
    fn is_beside(&self, now: &Finding) -> bool {
        let is_unknown = matches!(
            &self.place,
            Some(LinePosition::Gone | LinePosition::Unknown)
        );
        is_unknown && self.f.file == now.file && self.f.line == now.line
    }

    /// Returns true if a finding on other lines has the same fingerprint, or the same text in the
    /// same file.
    fn may_have_moved_to(&self, now: &Finding) -> bool {
        let same = self.f.fingerprint == now.fingerprint
            || self.is_in_file_of(now) && has_same_text(self.f, now);
        same && is_as_grave(self.f, now) && self.f.line.is_some() && now.line.is_some()
    }

    /// Returns true if the lines of the finding are unchanged at their current position.
    fn kept(&self) -> bool {
        matches!(&self.place, Some(LinePosition::At(spot)) if spot.kept != Preserved::Not)
    }
}

impl Pairs {
    /// Computes the pairs.
    pub(super) fn of(open: &[Open<'_>], now: &[Finding]) -> Self {
        let known: Vec<PlacedFinding<'_>> = open.iter().map(PlacedFinding::of).collect();
        let fresh = Fresh {
            all: now,
            words: now.iter().map(title_words).collect(),
            text: now.iter().map(text_key).collect(),
        };
        let mut out = Self {
            now: vec![None; open.len()],
            before: vec![None; now.len()],
        };
        use State::{Moved, StillThere};
        // The same text on the same lines; or on the old lines, if the change does not show them.
        out.take(&known, &fresh, StillThere, Reach::Line, |k, n, like| {
            let is_there = k.kept() && k.is_at(n, true) || k.is_beside(n);
            (is_there && stands_for(k.f, n)).then_some(like)
        });
        // The same text on replaced lines, for example after a change of white space.
        out.take(&known, &fresh, StillThere, Reach::Over, |k, n, like| {
            (k.is_at(n, false) && stands_for(k.f, n)).then_some(like)
        });
        // The same text without lines: about a file or the change.
        out.take(&known, &fresh, StillThere, Reach::Whole, |k, n, like| {
            let is_whole = k.f.line.is_none() && n.line.is_none() && k.is_in_file_of(n);
            (is_whole && stands_for(k.f, n) && is_same_trouble(k.f, n, like)).then_some(like)
        });
        // Other words about the same unchanged lines.
        out.take(&known, &fresh, StillThere, Reach::Over, |k, n, like| {
            let bonus = if k.f.rule_id == n.rule_id { 100 } else { 0 };
            (k.kept() && k.is_at(n, false) && is_as_grave(k.f, n)).then_some(bonus + like)
        });
        // Changed lines with the same issue.
        out.take(&known, &fresh, StillThere, Reach::Over, |k, n, like| {
            (k.is_at(n, false) && is_same_trouble(k.f, n, like) && is_as_grave(k.f, n))
                .then_some(like)
        });
        // The same fingerprint or text further away: the nearest first, and equal ones in order.
        out.take(&known, &fresh, Moved, Reach::Text, |k, n, _| {
            k.may_have_moved_to(n).then(|| near(k, n))
        });
        // `Reach::Text` compares at most `MOST / 2` findings with the same text on each side of the
        // old position. Only with more findings in all can it have missed one.
        if now.len() > MOST / 2 {
            out.take(&known, &fresh, Moved, Reach::Anywhere, |k, n, _| {
                k.may_have_moved_to(n).then(|| near(k, n))
            });
        }
        // The same text in any file, unless the lines of the open finding are unchanged at their
        // current position.
        out.take(&known, &fresh, Moved, Reach::Anywhere, |k, n, like| {
            let moved = !k.kept()
                && k.f.file.is_some()
                && n.file.is_some()
                && n.line.is_some() == k.f.line.is_some();
            (moved && !k.f.quote.trim().is_empty() && stands_for(k.f, n)).then_some(like)
        });
        out
    }

    /// Matches unmatched findings, highest score first, and in order for equal scores. `score` gets
    /// the percentage of common words in the titles.
    fn take(
        &mut self,
        known: &[PlacedFinding<'_>],
        fresh: &Fresh<'_>,
        state: State,
        reach: Reach,
        score: impl Fn(&PlacedFinding<'_>, &Finding, usize) -> Option<usize>,
    ) {
        // Comparing all pairs would be too slow for thousands of findings.
        let index = Index::of(fresh, reach, |i| self.before[i].is_none());
        let mut all = Vec::new();
        let mut seen: HashMap<&str, usize> = HashMap::new();
        for (o, k) in known
            .iter()
            .enumerate()
            .filter(|(o, _)| self.now[*o].is_none())
        {
            let nth = seen.entry(&k.text).or_default();
            for i in index.reached(fresh, k, reach, *nth) {
                let like = shared(&k.words, &fresh.words[i]);
                all.extend(
                    score(k, &fresh.all[i], like).map(|score| (std::cmp::Reverse(score), o, i)),
                );
            }
            *nth += 1;
        }
        all.sort_unstable();
        for (_, o, i) in all {
            if self.now[o].is_none() && self.before[i].is_none() {
                self.now[o] = Some(i);
                self.before[i] = Some((o, state));
            }
        }
    }

    /// Returns the open finding that matches a new one, and the state of the new one.
    pub(super) fn before(&self, now: usize) -> Option<(usize, State)> {
        self.before.get(now).copied().flatten()
    }

    /// Returns the open findings without a match.
    pub(super) fn left(&self) -> impl Iterator<Item = usize> {
        self.now
            .iter()
            .enumerate()
            .filter(|(_, n)| n.is_none())
            .map(|(o, _)| o)
    }
}

/// Returns true if a new finding has the same text and at least the severity of an earlier one.
fn stands_for(before: &Finding, now: &Finding) -> bool {
    has_same_text(before, now) && is_as_grave(before, now)
}

/// Returns true if a new finding can replace an earlier one. A model's minor finding cannot replace
/// one that blocked, even with the same quote. A finding that no longer blocks because it was
/// explained or waived has its earlier severity. A rule's finding on the same lines is always the
/// same.
fn is_as_grave(before: &Finding, now: &Finding) -> bool {
    is_rule(now) || now.blocking || !before.blocking || now.severity as u8 <= before.severity as u8
}

/// Returns a score that is higher for nearer lines.
fn near(k: &PlacedFinding<'_>, n: &Finding) -> usize {
    let far = n.line.map_or(u32::MAX, |line| k.line().abs_diff(line));
    (u32::MAX - far) as usize
}
