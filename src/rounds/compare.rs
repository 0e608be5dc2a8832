//! Determines the fate of earlier findings from code and fingerprints, never from a model's
//! statement. Pure, except that the caller's [`look::UnshownFiles`] reads files.
//!
//! Used in two steps: [`Comparison::carried`] returns the unresolved findings to add to the new
//! round, and [`Comparison::since`] compares the finished report with the earlier rounds.
//!
//! A finding is not fixed merely because it is not reported again. It is fixed if its lines, or the
//! adjacent ones, changed ([`silence`]) and its text is nowhere else ([`remains`]): [`trace`]
//! searches for it in the new lines of the change, [`look`] in the files that the change does not
//! show. If the text still exists, a model's finding is carried over to its new position
//! ([`carried`]). A rule's finding is unchecked then, that is, neither reported again nor fixed.
//! There is one exception: if the change shows the text in the file of the same name, and the same
//! rules read that file again, their silence proves that the finding is fixed.

mod alike;
mod carried;
pub mod look;
mod pair;
mod remains;
mod silence;
mod spans;
mod trace;

use super::cover::{Cover, same_base};
use super::recall::carried_from;
use super::region::{Alignment, LinePosition, MovedLines, RoundChange};
use super::replaced;
use crate::wire::stored::{ComparedFinding, Response, Review, Since, State};
use crate::wire::{Finding, Report};
use alike::EarlierFindings;
use carried::carried;
use look::UnshownFiles;
use pair::Pairs;
use silence::Silence;
use spans::Spans;
use std::cell::OnceCell;
use std::collections::HashMap;
use trace::ComparedTexts;

/// A stored round.
#[derive(Clone, Copy, Debug)]
pub struct Earlier<'a> {
    pub review: &'a Review,
    /// Coder's response to it.
    pub response: Option<&'a Response>,
    /// Its stored change.
    pub change: &'a [u8],
    /// How much of it the new change covers.
    pub cover: Cover,
}

impl Earlier<'_> {
    /// Returns true if the round reviewed an uncommitted change, and another one replaced it. Both
    /// rounds must have reviewed all files.
    pub(super) fn is_replaced(&self, now: &[u8], look: &dyn UnshownFiles) -> bool {
        let is_comparable =
            self.cover == Cover::Whole && replaced::is_uncommitted(self.review.report.source.kind);
        is_comparable
            && self.review.change.left_out.is_empty()
            && replaced::is_replaced(self.change, now, look)
    }
}

/// The change of the new round.
#[derive(Clone, Copy, Debug)]
pub struct Current<'a> {
    pub change: RoundChange<'a>,
    /// Source of the change, as in the report.
    pub source: &'a crate::wire::ReviewedSource,
    /// Access to files that the change does not show.
    pub look: &'a dyn UnshownFiles,
}

/// The comparison of earlier rounds with a new change.
#[derive(Debug)]
pub struct Comparison<'a> {
    rounds: Vec<AlignedRound<'a>>,
}

/// An earlier round, aligned with the new change.
#[derive(Debug)]
struct AlignedRound<'a> {
    earlier: Earlier<'a>,
    /// Alignment of its change with the new one.
    alignment: Alignment,
    look: &'a dyn UnshownFiles,
    /// Computed on demand: needed only before a finding is declared fixed.
    texts: OnceCell<ComparedTexts>,
    known: OnceCell<EarlierFindings>,
}

impl<'a> AlignedRound<'a> {
    /// Aligns an earlier round with the new change.
    fn new(earlier: Earlier<'a>, now: &Current<'a>) -> Self {
        let same_base = same_base(&earlier.review.report.source, now.source);
        let before = RoundChange {
            text: earlier.change,
            left_out: &earlier.review.change.left_out,
        };
        let alignment = Alignment::between(before, now.change, same_base);
        Self {
            earlier,
            alignment,
            look: now.look,
            texts: OnceCell::new(),
            known: OnceCell::new(),
        }
    }

    /// Returns the texts of both changes, including files outside of the request.
    fn texts(&self) -> &ComparedTexts {
        self.texts.get_or_init(|| {
            let mut all = self.alignment.texts();
            // Files outside of the request are not in any compared change.
            let others = RoundChange {
                text: self.look.left_out(),
                left_out: &[],
            };
            all.extend(Alignment::between(RoundChange::default(), others, false).texts());
            ComparedTexts::new(all)
        })
    }
}

/// An open finding of an earlier round, with the alignment that maps its lines to the current ones.
#[derive(Clone, Copy, Debug)]
struct Open<'c> {
    finding: &'c Finding,
    round: &'c AlignedRound<'c>,
    /// Whether the last round's report has it, so that the response to that round may use its ID.
    is_of_last: bool,
}

/// The fate of a finding that is not reported any longer.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Fate {
    Fixed,
    Unchecked,
    /// A model's finding whose code still exists, so it remains open. `Some` is the position where
    /// its text was found. `None`: its lines are unchanged, and the alignment has their position.
    Carried(Option<MovedLines>),
}

/// A finding at the position of one that was fixed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Again {
    /// ID in the new report.
    pub id: String,
    pub file: String,
    pub line: Option<u32>,
    /// ID of the fixed finding, and the last round that had it.
    pub previous_id: String,
    pub round: u32,
}

impl<'a> Comparison<'a> {
    /// Aligns the rounds of a session, oldest first, with the new change.
    pub fn new(earlier: &[Earlier<'a>], now: &Current<'a>) -> Self {
        Self {
            rounds: earlier.iter().map(|e| AlignedRound::new(*e, now)).collect(),
        }
    }

    /// Returns the findings of models that no backend repeated although it reviewed the unchanged
    /// code again, at their current positions, to be added to the new round. `response` is the
    /// coder's response to the previous round.
    pub fn carried(&self, now: &Report, response: Option<&Response>) -> Vec<Finding> {
        let open = self.open();
        let pairs = Pairs::of(&open, &now.findings);
        let left = pairs.left().map(|i| open[i]);
        left.filter_map(|o| match fate(&o, now) {
            Fate::Carried(spot) => carried(&o, spot, response),
            Fate::Fixed | Fate::Unchecked => None,
        })
        .collect()
    }

    /// Returns the state of every open finding and of every finding of the new round. `now` is the
    /// finished report, including carried findings.
    pub fn since(&self, now: &Report) -> Since {
        let open = self.open();
        let pairs = Pairs::of(&open, &now.findings);
        let mut out = Since {
            round: self.rounds.last().map_or(0, |r| r.earlier.review.round),
            ..Since::default()
        };
        for (i, f) in now.findings.iter().enumerate() {
            let (before, state) = match pairs.before(i) {
                Some((o, state)) => (Some(open[o].finding), state),
                None => {
                    let state = self.fresh(f, now);
                    (self.gone_before(f, state), state)
                }
            };
            out.entries.push(entry(state, f, Some(f), before));
        }
        for o in pairs.left().map(|i| open[i]) {
            let state = match fate(&o, now) {
                Fate::Fixed => State::Fixed,
                // A carried finding would be in the report. It is not, so its state is unknown.
                Fate::Unchecked | Fate::Carried(_) => State::Unchecked,
            };
            out.entries
                .push(entry(state, o.finding, None, Some(o.finding)));
        }
        for e in &out.entries {
            *match e.state {
                State::Fixed => &mut out.fixed,
                State::StillThere => &mut out.still_there,
                State::Moved => &mut out.moved,
                State::Reopened => &mut out.reopened,
                State::New => &mut out.new,
                State::IntroducedByFix => &mut out.introduced_by_fix,
                State::Unchecked => &mut out.unchecked,
            } += 1;
        }
        out
    }

    /// Returns the findings of the new round at positions where findings were fixed in earlier
    /// rounds.
    pub fn again(&self, now: &Report, since: &Since) -> Vec<Again> {
        let fresh: Vec<&ComparedFinding> = since
            .entries
            .iter()
            .filter(|e| {
                matches!(
                    e.state,
                    State::New | State::IntroducedByFix | State::Reopened
                )
            })
            .collect();
        if fresh.is_empty() {
            return Vec::new();
        }
        let fixed: Vec<_> = self.fixed_before().collect();
        let mut ranges = Vec::new();
        for (i, (round, before)) in fixed.iter().enumerate() {
            if let Some(LinePosition::At(spot)) = alike::current_position(before, &round.alignment)
            {
                let lines = spot.at_least_one();
                ranges.push((spot.file, lines, i));
            }
        }
        let fixed_lines = Spans::by_file(ranges);
        let found: HashMap<&str, &Finding> = now.findings.iter().map(|f| (&*f.id, f)).collect();
        let again = fresh.into_iter().filter_map(|e| {
            let f = found.get(e.id.as_deref()?).filter(|f| f.counts())?;
            let at = fixed_lines
                .get(f.file.as_deref()?)?
                .touching(&alike::lines(f)?)
                .min()?;
            let (round, before) = fixed.get(at)?;
            Some(Again {
                id: f.id.clone(),
                file: f.file.clone().unwrap_or_default(),
                line: f.line,
                previous_id: before.id.clone(),
                round: round.earlier.review.round,
            })
        });
        again.collect()
    }

    /// Returns the open findings: those of the last round, and earlier ones that were not checked
    /// since.
    fn open(&self) -> Vec<Open<'_>> {
        let Some((last, before)) = self.rounds.split_last() else {
            return Vec::new();
        };
        let of_last = last.earlier.review.report.findings.iter();
        let mut out: Vec<Open<'_>> = of_last
            .map(|finding| {
                let round = self.shown_in(finding, before).unwrap_or(last);
                Open {
                    finding,
                    round,
                    is_of_last: true,
                }
            })
            .collect();
        let unchecked = last.earlier.review.since.iter().flat_map(|s| &s.entries);
        let mut known: HashMap<(&str, &str), Open<'_>> = HashMap::new();
        let unchecked: Vec<&ComparedFinding> =
            unchecked.filter(|e| e.state == State::Unchecked).collect();
        for round in before.iter().filter(|_| !unchecked.is_empty()) {
            // The last round that has it, and its first finding with the key.
            let all = round.earlier.review.report.findings.iter().rev();
            known.extend(all.map(|finding| {
                (
                    (&*finding.fingerprint, &*finding.title),
                    Open {
                        finding,
                        round,
                        is_of_last: false,
                    },
                )
            }));
        }
        out.extend(
            unchecked
                .iter()
                .filter_map(|e| known.get(&(&*e.fingerprint, &*e.title))),
        );
        out
    }

    /// Returns the newest earlier round whose change has the lines of a carried finding, if the
    /// last round's change lacks its file.
    fn shown_in<'c>(
        &self,
        f: &Finding,
        before: &'c [AlignedRound<'c>],
    ) -> Option<&'c AlignedRound<'c>> {
        let file = f.file.as_deref().filter(|_| carried_from(f).is_some())?;
        let commit = f.commit.as_deref();
        if self
            .rounds
            .last()
            .is_some_and(|r| r.alignment.had(commit, file))
        {
            return None;
        }
        before.iter().rev().find(|r| {
            let mut all = r.earlier.review.report.findings.iter();
            r.alignment.had(commit, file)
                && all.any(|o| {
                    o.title == f.title && o.file == f.file && o.line == f.line && o.quote == f.quote
                })
        })
    }

    /// Returns the findings that an earlier round found to be fixed, each with the last round that
    /// had it.
    fn fixed_before(&self) -> impl Iterator<Item = (&AlignedRound<'_>, &Finding)> {
        self.rounds.windows(2).flat_map(|two| {
            let [before, after] = two else {
                return Vec::new();
            };
            let entries = after.earlier.review.since.iter().flat_map(|s| &s.entries);
            let fixed = entries.filter(|e| e.state == State::Fixed);
            let all = before
                .earlier
                .review
                .report
                .findings
                .iter()
                .rev()
                .filter(|f| f.counts());
            let known: HashMap<&str, &Finding> = all.map(|f| (&*f.fingerprint, f)).collect();
            fixed
                .filter_map(|e| known.get(&*e.fingerprint))
                .map(|f| (before, *f))
                .collect()
        })
    }

    /// Finds the earlier finding of a reopened one.
    fn gone_before(&self, f: &Finding, state: State) -> Option<&Finding> {
        if state != State::Reopened {
            return None;
        }
        let (_, rest) = self.rounds.split_last()?;
        rest.iter().rev().find_map(|r| {
            let all = &r.earlier.review.report.findings;
            let may_be = r
                .known
                .get_or_init(|| EarlierFindings::of(all, &r.alignment))
                .like(f);
            may_be
                .into_iter()
                .filter_map(|i| all.get(i))
                .find(|b| alike::is_same(f, b, &r.alignment))
        })
    }

    /// Returns the state of a finding that matches no open one.
    fn fresh(&self, f: &Finding, now: &Report) -> State {
        if self.gone_before(f, State::Reopened).is_some() {
            return State::Reopened;
        }
        let Some(last) = self.rounds.last() else {
            return State::New;
        };
        let (commit, alignment) = (f.commit.as_deref(), &last.alignment);
        let changed = match (f.file.as_deref(), f.line) {
            (Some(file), Some(line)) => {
                alignment.is_new(commit, file, line, f.end_line.unwrap_or(line))
            }
            // Rules are deterministic: if they did not change, the change introduced the finding.
            (file, _)
                if alike::is_rule(f)
                    && last.earlier.review.report.tool.rules_hash == now.tool.rules_hash =>
            {
                file.map_or_else(
                    || alignment.differs(),
                    |file| alignment.file_differs(commit, file),
                )
            }
            (Some(file), None) => alignment.file_differs(commit, file),
            (None, _) => None,
        };
        if changed == Some(true) {
            State::IntroducedByFix
        } else {
            State::New
        }
    }
}

/// Returns the fate of an open finding that is not reported any longer.
fn fate(open: &Open<'_>, now: &Report) -> Fate {
    match silence::silence(open, now) {
        Silence::Unchecked => Fate::Unchecked,
        Silence::Open => Fate::Carried(None),
        Silence::Fixed => remains::remaining(open, now).unwrap_or_else(|| without_text(open)),
    }
}

/// Returns the fate of a finding whose text was not found. A rule reads the file itself. A model's
/// silence counts only if the lines are known.
fn without_text(open: &Open<'_>) -> Fate {
    let f = open.finding;
    let is_unknown = f
        .file
        .as_deref()
        .is_some_and(|p| open.round.alignment.lacks(f.commit.as_deref(), p));
    if is_unknown && !alike::is_rule(f) {
        Fate::Unchecked
    } else {
        Fate::Fixed
    }
}

/// Creates the entry of a finding: `now` in the new round, `before` in the earlier one.
fn entry(
    state: State,
    f: &Finding,
    now: Option<&Finding>,
    before: Option<&Finding>,
) -> ComparedFinding {
    ComparedFinding {
        state,
        fingerprint: f.fingerprint.clone(),
        id: now.map(|f| f.id.clone()),
        previous_id: before.map(|f| f.id.clone()),
        rule_id: f.rule_id.clone(),
        severity: f.severity,
        title: f.title.clone(),
        file: f.file.clone(),
        line: now.and_then(|f| f.line),
        previous_line: before.and_then(|f| f.line),
    }
}

#[cfg(test)]
mod tests;
