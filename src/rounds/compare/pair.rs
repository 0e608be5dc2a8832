//! Which finding of the new round is which open one: the surest pairs first, each finding once.

use super::alike::{has_same_text, is_rule, is_same_trouble, likeness, lines, overlap, place};
use super::{Kept, Open, Place};
use crate::wire::Finding;
use crate::wire::stored::State;
use std::collections::HashMap;

/// The pairs.
#[derive(Debug)]
pub(super) struct Pairs {
    /// By open finding: what it is now.
    now: Vec<Option<usize>>,
    /// By finding of the new round: the open one, and what became of it.
    before: Vec<Option<(usize, State)>>,
}

/// An open finding with its place now.
struct Known<'c> {
    f: &'c Finding,
    /// The file as it is called now.
    file: Option<&'c str>,
    /// `None`: it has no lines.
    place: Option<Place>,
}

/// Where one is looked for.
#[derive(Clone, Copy, Debug)]
enum Reach {
    /// In its file, as that is called now.
    File,
    /// Anywhere, with the same text.
    Text,
}

impl Known<'_> {
    fn of<'c>(open: &'c Open<'c>) -> Known<'c> {
        let f = open.finding;
        let alignment = &open.round.alignment;
        let path = f.file.as_deref().map(|p| alignment.path(f.commit.as_deref(), p).unwrap_or(p));
        Known { f, file: path, place: place(f, alignment) }
    }

    fn is_in_file_of(&self, now: &Finding) -> bool {
        self.file == now.file.as_deref()
    }

    /// Tells whether a finding stands on the lines that this one has now.
    fn is_at(&self, now: &Finding, exactly: bool) -> bool {
        let (Some(Place::At(spot)), Some(lines)) = (&self.place, lines(now)) else { return false };
        let is_line = if exactly { lines.start == spot.lines.start } else { overlap(&lines, &spot.lines) };
        now.file.as_deref() == Some(spot.file.as_str()) && is_line
    }

    fn kept(&self) -> bool {
        matches!(&self.place, Some(Place::At(spot)) if spot.kept != Kept::Not)
    }
}

impl Pairs {
    /// Finds the pairs.
    pub(super) fn of(open: &[Open<'_>], now: &[Finding]) -> Self {
        let known: Vec<Known<'_>> = open.iter().map(Known::of).collect();
        let mut out = Self { now: vec![None; open.len()], before: vec![None; now.len()] };
        use State::{Moved, StillThere};
        // The same text on the same lines.
        out.take(&known, now, StillThere, Reach::File, |k, n| {
            (k.kept() && k.is_at(n, true) && stands_for(k.f, n)).then(|| likeness(k.f, n))
        });
        // The same text where its lines were replaced: only white space changed, or the like.
        out.take(&known, now, StillThere, Reach::File, |k, n| {
            (k.is_at(n, false) && stands_for(k.f, n)).then(|| likeness(k.f, n))
        });
        // The same fingerprint without lines: of a file, of the change.
        out.take(&known, now, StillThere, Reach::File, |k, n| {
            let is_whole = k.f.line.is_none() && n.line.is_none() && k.is_in_file_of(n);
            (is_whole && stands_for(k.f, n) && is_same_trouble(k.f, n)).then(|| likeness(k.f, n))
        });
        // Other words for the same unchanged lines.
        out.take(&known, now, StillThere, Reach::File, |k, n| {
            let same_kind = is_rule(k.f) == is_rule(n) && (!is_rule(n) || k.f.rule_id == n.rule_id);
            let bonus = if k.f.rule_id == n.rule_id { 100 } else { 0 };
            (k.kept() && same_kind && k.is_at(n, false) && is_as_grave(k.f, n)).then(|| bonus + likeness(k.f, n))
        });
        // Lines that were changed and have the same trouble.
        out.take(&known, now, StillThere, Reach::File, |k, n| {
            (k.is_at(n, false) && is_same_trouble(k.f, n) && is_as_grave(k.f, n)).then(|| likeness(k.f, n))
        });
        // The same fingerprint, or text, further away.
        out.take(&known, now, Moved, Reach::File, |k, n| {
            let same = k.f.fingerprint == n.fingerprint || k.is_in_file_of(n) && has_same_text(k.f, n);
            (same && is_as_grave(k.f, n) && k.f.line.is_some() && n.line.is_some()).then(|| near(k, n))
        });
        out.take(&known, now, Moved, Reach::Text, |k, n| {
            let moved = !k.kept() && k.f.file.is_some() && n.file.is_some() && n.line.is_some() == k.f.line.is_some();
            (moved && !k.f.quote.trim().is_empty() && stands_for(k.f, n)).then(|| likeness(k.f, n))
        });
        out
    }

    /// Pairs what is left and fits, the highest score first; what is equal, in order.
    fn take(
        &mut self,
        known: &[Known<'_>],
        now: &[Finding],
        state: State,
        reach: Reach,
        score: impl Fn(&Known<'_>, &Finding) -> Option<usize>,
    ) {
        // Not everything with everything: there may be thousands.
        let mut there: HashMap<(Option<&str>, String), Vec<usize>> = HashMap::new();
        let key = |file, f: &Finding| match reach {
            Reach::File => (file, String::new()),
            Reach::Text => {
                let words: Vec<_> = f.quote.split_whitespace().collect();
                (None, format!("{} {}", f.rule_id, words.join(" ")))
            }
        };
        for (i, n) in now.iter().enumerate().filter(|(i, _)| self.before[*i].is_none()) {
            there.entry(key(n.file.as_deref(), n)).or_default().push(i);
        }
        let mut all = Vec::new();
        for (o, k) in known.iter().enumerate().filter(|(o, _)| self.now[*o].is_none()) {
            for i in there.get(&key(k.file, k.f)).into_iter().flatten().copied() {
                all.extend(score(k, &now[i]).map(|score| (std::cmp::Reverse(score), o, i)));
            }
        }
        all.sort_unstable();
        for (_, o, i) in all {
            if self.now[o].is_none() && self.before[i].is_none() {
                self.now[o] = Some(i);
                self.before[i] = Some((o, state));
            }
        }
    }

    /// Returns the open finding that one of the new round was.
    pub(super) fn before(&self, now: usize) -> Option<usize> {
        self.before.get(now).copied().flatten().map(|(o, _)| o)
    }

    /// Returns what became of the open finding that one of the new round was; `None`: it was none.
    pub(super) fn state(&self, now: usize) -> Option<State> {
        self.before.get(now).copied().flatten().map(|(_, state)| state)
    }

    /// Returns the open findings that are not found any more.
    pub(super) fn left(&self) -> impl Iterator<Item = usize> {
        self.now.iter().enumerate().filter(|(_, n)| n.is_none()).map(|(o, _)| o)
    }
}

/// Tells whether one of the new round has the same text, and the weight, of an earlier one.
fn stands_for(before: &Finding, now: &Finding) -> bool {
    has_same_text(before, now) && is_as_grave(before, now)
}

/// Tells whether one of the new round may stand for an earlier one: what a model calls a trifle now is not what
/// blocked before, however much they quote the same line. A rule says the same of the same lines.
fn is_as_grave(before: &Finding, now: &Finding) -> bool {
    is_rule(now) || now.blocking || !before.blocking
}

/// Returns a score: the nearer the higher.
fn near(k: &Known<'_>, n: &Finding) -> usize {
    let from = match &k.place {
        Some(Place::At(spot)) => Some(spot.lines.start),
        _ => k.f.line,
    };
    let far = from.zip(n.line).map_or(u32::MAX, |(a, b)| a.abs_diff(b));
    (u32::MAX - far) as usize
}
