//! Determines the fate of earlier findings from code and fingerprints, never from a model's
//! statement. Pure.
//!
//! Used in two steps: [`Comparison::carried`] returns the unresolved findings to add to the new
//! round, and [`Comparison::since`] compares the finished report with the earlier rounds.
//!
//! A finding is not fixed merely because it is not reported again. It is fixed if its lines, or the
//! adjacent ones, changed and its text is nowhere else: [`trace`] searches for it in the new lines
//! of the change, [`look`] in the files that the change does not show. If the text still exists, a
//! model's finding is carried over to its new position. A rule's silence counts only for the file
//! in which it reported the finding, under the same name; elsewhere the finding is unchecked, that
//! is, neither reported again nor fixed.

mod alike;
pub mod look;
mod pair;
mod spans;
mod trace;

use super::cover::{Cover, same_base};
use super::region::{
    Alignment, FoldedLine, LinePosition, MovedLines, Preserved, RoundChange, lines,
};
use super::replaced;
use super::words::{is_start, names};
use crate::text::{first_chars, one_line};
use crate::wire::stored::{ComparedFinding, Response, Review, Since, State};
use crate::wire::{Disposition, Finding, Outcome, Report, Severity, SourceKind};
use alike::EarlierFindings;
use look::{UnshownFile, UnshownFiles};
use pair::Pairs;
use spans::Spans;
use std::cell::OnceCell;
use std::collections::HashMap;
use trace::{ComparedTexts, Passage};

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
    look: &'a dyn UnshownFiles,
}

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
            look: now.look,
        }
    }

    /// Returns the findings of models that no backend repeated although it reviewed the unchanged
    /// code again, at their current positions, to be added to the new round. `response` is the
    /// coder's response to the previous round.
    pub fn carried(&self, now: &Report, response: Option<&Response>) -> Vec<Finding> {
        let open = self.open();
        let pairs = Pairs::of(&open, &now.findings);
        let left = pairs.left().map(|i| open[i]);
        left.filter_map(|o| match self.fate(&o, now) {
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
            let before = pairs.before(i).map(|o| open[o].finding);
            let state = match pairs.state(i) {
                Some(state) => state,
                None => self.fresh(f, now),
            };
            out.entries.push(entry(
                state,
                f,
                Some(f),
                before.or_else(|| self.gone_before(f, state)),
            ));
        }
        for o in pairs.left().map(|i| open[i]) {
            let state = match self.fate(&o, now) {
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
        let mended: Vec<_> = self.mended().collect();
        let mut places: HashMap<String, Vec<(u32, u32, usize)>> = HashMap::new();
        for (i, (round, before)) in mended.iter().enumerate() {
            if let Some(LinePosition::At(spot)) = alike::place(before, &round.alignment) {
                let end = spot.lines.end.max(spot.lines.start.saturating_add(1));
                places
                    .entry(spot.file)
                    .or_default()
                    .push((spot.lines.start, end, i));
            }
        }
        let places: HashMap<String, Spans> = places
            .into_iter()
            .map(|(file, all)| (file, Spans::new(all)))
            .collect();
        let found: HashMap<&str, &Finding> = now.findings.iter().map(|f| (&*f.id, f)).collect();
        let again = fresh.into_iter().filter_map(|e| {
            let f = found.get(e.id.as_deref()?).filter(|f| counts(f))?;
            let at = places
                .get(f.file.as_deref()?)?
                .touching(&alike::lines(f)?)
                .min()?;
            let (round, before) = mended.get(at)?;
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
        let file = f.file.as_deref().filter(|_| is_carried(f))?;
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

    /// Returns the findings that an earlier round fixed, each with the last round that had it.
    fn mended(&self) -> impl Iterator<Item = (&AlignedRound<'_>, &Finding)> {
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
                .filter(|f| counts(f));
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

    /// Returns the fate of an open finding that is not reported any longer.
    fn fate(&self, open: &Open<'_>, now: &Report) -> Fate {
        match self.silence(open, now) {
            Fate::Fixed => self.still_there(open, now).unwrap_or_else(|| {
                // A rule reads the file itself. A model's silence counts only if the lines are
                // known.
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
            }),
            other => other,
        }
    }

    /// Returns the fate of an open finding that is not reported any longer, judged by its position
    /// alone.
    fn silence(&self, open: &Open<'_>, now: &Report) -> Fate {
        let (f, alignment, cover) = (
            open.finding,
            &open.round.alignment,
            open.round.earlier.cover,
        );
        // The lines of a commit inside a branch are not in a change without the commits.
        let in_history = f.commit.is_some()
            && open.round.earlier.review.report.source.kind == SourceKind::Branch;
        let of_commits = matches!(now.source.kind, SourceKind::Branch | SourceKind::Commit);
        if now.outcome == Outcome::Cancelled || cover == Cover::Nothing || in_history && !of_commits
        {
            return Fate::Unchecked;
        }
        let is_rule = alike::is_rule(f);
        let place = alike::place(f, alignment);
        let file = match &place {
            Some(LinePosition::At(spot)) => Some(spot.file.as_str()),
            _ => {
                let path = f.file.as_deref();
                path.and_then(|p| alignment.path(f.commit.as_deref(), p))
                    .or(path)
            }
        };
        let shown = match file {
            Some(file) => alignment.shows(file),
            None => Some(true),
        };
        let Some(is_shown) = shown.filter(|_| looked_at(now, file, is_rule)) else {
            return Fate::Unchecked;
        };
        // A finding about the whole change concerns all its files. If some were left out, its state
        // is unknown.
        if f.file.is_none()
            && !alignment.has_all(|path| cover == Cover::Given || !self.look.selects(path))
        {
            return Fate::Unchecked;
        }
        if !is_shown {
            // If the change shows everything that differs, the file does not differ any longer.
            let is_gone = cover == Cover::Whole && file.is_none_or(|f| self.look.selects(f));
            return if is_gone {
                Fate::Fixed
            } else {
                Fate::Unchecked
            };
        }
        let asked = is_rule || now.usage.iter().any(|u| u.backend == f.origin);
        if !asked {
            // No model reviews a file without changed lines: a finding in one is gone with the
            // lines.
            let is_whole =
                matches!(&place, Some(LinePosition::At(spot)) if spot.kept == Preserved::Whole);
            let is_bare = file.is_some_and(|file| alignment.is_bare(file));
            let is_gone = is_bare
                && !is_whole
                && cover == Cover::Whole
                && file.is_none_or(|f| self.look.selects(f));
            return if is_gone {
                Fate::Fixed
            } else {
                Fate::Unchecked
            };
        }
        // Rules check the new lines of a change, which include all earlier new lines if both
        // changes have the same base.
        let looked_again = cover != Cover::Onward;
        match &place {
            Some(LinePosition::At(spot)) if spot.kept == Preserved::Whole => match is_rule {
                false => Fate::Carried(None),
                // The file changed elsewhere, and the rule read that too; otherwise the rule may be
                // off.
                true if looked_again
                    && self.same_rules(open, now)
                    && differs(f, file, alignment) == Some(true) =>
                {
                    Fate::Fixed
                }
                true => Fate::Unchecked,
            },
            Some(LinePosition::At(spot))
                if spot.kept == Preserved::Lines && is_rule && !looked_again =>
            {
                Fate::Unchecked
            }
            Some(LinePosition::At(_)) => Fate::Fixed,
            // About a file or the change as a whole.
            None => match differs(f, file, alignment) {
                Some(true) => Fate::Fixed,
                Some(false) if !is_rule => Fate::Carried(None),
                None if cover == Cover::Whole && (!is_rule || self.same_rules(open, now)) => {
                    Fate::Fixed
                }
                _ => Fate::Unchecked,
            },
            // Its position is unknown, but its file was reviewed again, or is deleted.
            Some(LinePosition::Gone | LinePosition::Unknown) => match looked_again {
                true if !is_rule || self.same_rules(open, now) => Fate::Fixed,
                false if file.is_some_and(|file| alignment.is_deleted(file)) => Fate::Fixed,
                _ => Fate::Unchecked,
            },
        }
    }

    /// Searches for the text of a finding before it is declared fixed. Returns `None` if the text
    /// is gone.
    fn still_there(&self, open: &Open<'_>, now: &Report) -> Option<Fate> {
        let (f, round) = (open.finding, open.round);
        let path = f.file.as_deref()?;
        let (alignment, texts) = (&round.alignment, round.texts());
        let own = alignment.text_of(f.commit.as_deref(), path);
        let text = own.and_then(|own| texts.file(own));
        let quote = trace::quote(&f.quote);
        let first = f.line.unwrap_or(0);
        let known = text.and_then(|t| Passage::of(&t.before, first, f.end_line.unwrap_or(first)));
        let passage = known.or_else(|| Passage::quoted(&quote).filter(|_| f.line.is_some()));
        let is_rule = alike::is_rule(f);
        if let Some(passage) = &passage {
            let spot = match alike::place(f, alignment) {
                Some(LinePosition::At(spot)) => spot.lines,
                _ => 0..0,
            };
            let all = own.and_then(|own| {
                Some((
                    texts.file(own)?,
                    texts.in_place(passage, own, &spot, is_rule)?,
                ))
            });
            let all = all.or_else(|| {
                let found = texts.elsewhere(passage, own, &spot)?;
                Some((texts.file(found.file)?, found.lines))
            });
            let found = all.and_then(|(file, lines)| Some((file, file.path.as_deref()?, lines)));
            // A rule that reads a file of another name, or that changed, does not prove that the
            // finding is gone.
            let found = found.filter(|(file, name, _)| {
                !(is_rule
                    && *name == path
                    && self.same_rules(open, now)
                    && trace::is_as_introduced(text, file))
            });
            if let Some((file, name, lines)) = found {
                let asked = now.usage.iter().any(|u| u.backend == f.origin)
                    && looked_at(now, Some(name), false);
                if is_rule || !asked || !self.look.selects(name) {
                    return Some(Fate::Unchecked);
                }
                let commit = file.commit.clone();
                return Some(Fate::Carried(Some(MovedLines {
                    file: name.to_owned(),
                    commit,
                    lines,
                    kept: Preserved::Whole,
                })));
            }
        }
        let file = alignment.path(f.commit.as_deref(), path).unwrap_or(path);
        self.beside_the_change(open, file, passage.as_ref())
    }

    /// Searches for the text of a finding in a file whose content the change does not show.
    fn beside_the_change(
        &self,
        open: &Open<'_>,
        file: &str,
        text: Option<&Passage<'_>>,
    ) -> Option<Fate> {
        let (f, round) = (open.finding, open.round);
        let shown = round
            .alignment
            .text_now(file)
            .and_then(|at| round.texts().file(at));
        let (now, base, aside) = match self
            .look
            .file(file, shown.is_some_and(|s| s.path.is_some()))
        {
            UnshownFile::Nothing => return None,
            UnshownFile::Unreadable => return Some(Fate::Unchecked),
            UnshownFile::Text { now, base, aside } => (lines(&now), lines(&base), aside),
        };
        let is_as_shown = match shown.filter(|s| s.path.is_some()) {
            // Without known lines, the change does not show whether the file has others.
            Some(shown) if shown.now.is_empty() => now.is_empty() || has_same_lines(&now, &base),
            Some(shown) => trace::stand_in(&shown.now, &now),
            None => has_same_lines(&now, &base),
        };
        if is_as_shown {
            return None;
        }
        // Moving a secret to a file that is visibly ignored and not published is a valid fix.
        if aside == look::Standing::Ignored && self.look.is_secret(f) {
            return None;
        }
        let Some(text) = text else {
            return Some(Fate::Unchecked);
        };
        let places = text.places(&now);
        if places.len() <= text.places(&base).len() {
            return None;
        }
        let nearest = places
            .into_iter()
            .min_by_key(|at| now[*at].number.abs_diff(f.line.unwrap_or(0)))?;
        if alike::is_rule(f) || aside != look::Standing::Hidden {
            return Some(Fate::Unchecked);
        }
        let found = text.numbers(&now, nearest);
        let commit = None;
        Some(Fate::Carried(Some(MovedLines {
            file: file.to_owned(),
            commit,
            lines: found,
            kept: Preserved::Whole,
        })))
    }

    fn same_rules(&self, open: &Open<'_>, now: &Report) -> bool {
        open.round.earlier.review.report.tool.rules_hash == now.tool.rules_hash
    }
}

/// The fate of a finding that is not reported any longer.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Fate {
    Fixed,
    Unchecked,
    /// Its code is unchanged, so it remains open. `Some` is the current position of its code.
    Carried(Option<MovedLines>),
}

/// Returns true if the current file of a finding differs from the earlier round, or any file for a
/// finding without one. Returns `None` if that is unknown.
fn differs(f: &Finding, file: Option<&str>, alignment: &Alignment) -> Option<bool> {
    match f.file.as_deref() {
        Some(_) => file.and_then(|file| alignment.file_differs(None, file)),
        None => alignment.differs(),
    }
}

/// Returns true if two texts have the same lines, ignoring white space.
fn has_same_lines(a: &[FoldedLine], b: &[FoldedLine]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.folded == b.folded)
}

fn counts(f: &Finding) -> bool {
    f.counts()
}

/// Returns true if a round checked a file in the way that the finding's source does; `None` is the
/// whole change.
fn looked_at(now: &Report, file: Option<&str>, is_rule: bool) -> bool {
    let c = &now.coverage;
    let failed = c.failed.iter().any(|f| match &f.file {
        // The failure of a backend is not a failure of the rules.
        None => !is_rule,
        Some(failed) => Some(failed.as_str()) == file,
    });
    let mut skips = c.skipped.iter().filter(|s| Some(s.file.as_str()) == file);
    !failed
        && !skips
            .any(|s| !is_rule || matches!(s.reason.as_str(), "ignored" | "binary" | "submodule"))
}

/// Returns true if a finding was carried over and not reported in its round.
fn is_carried(f: &Finding) -> bool {
    f.evidence.iter().any(|e| e.starts_with("carried:"))
}

/// Moves a finding to the current position of its lines.
fn carried(
    open: &Open<'_>,
    spot: Option<MovedLines>,
    response: Option<&Response>,
) -> Option<Finding> {
    let mut f = open.finding.clone();
    // A comment next to the lines suppresses a finding, so the suppression lasts only if the lines
    // and their neighbors are unchanged.
    let place = alike::place(&f, &open.round.alignment);
    if spot.is_some()
        || !matches!(&place, Some(LinePosition::At(spot)) if spot.kept == Preserved::Whole)
    {
        f.suppressed = None;
    }
    match spot.map(LinePosition::At).or(place) {
        Some(LinePosition::At(spot)) => {
            f.line = Some(spot.lines.start);
            f.end_line = f
                .end_line
                .map(|_| spot.lines.end.saturating_sub(1).max(spot.lines.start));
            f.file = Some(spot.file);
            f.commit = spot.commit.filter(|_| f.commit.is_some());
        }
        Some(LinePosition::Gone | LinePosition::Unknown) => return None,
        None => {
            let path = f
                .file
                .as_deref()
                .and_then(|p| open.round.alignment.path(f.commit.as_deref(), p));
            if let Some(path) = path {
                f.file = Some(path.to_owned());
            }
        }
    }
    // It must not appear as reported twice.
    if !is_carried(&f) {
        f.evidence
            .push(format!("carried:round-{}", open.round.earlier.review.round));
    }
    // Waivers are not inherited; they are applied again in each round.
    f.waived = None;
    (f.disposition, f.decided) = (Disposition::Pending, None);
    // A critical finding needs a code change, or a person's waiver: an explanation is not
    // sufficient.
    if f.disputed.is_none() && f.severity != Severity::Critical {
        f.disputed = response.and_then(|r| explained(open, r));
    }
    Some(f)
}

/// Returns the response's explanation of a finding that was not repeated after it.
///
/// IDs are per round: a finding of a round before the answered one is identified by its fingerprint
/// alone.
fn explained(open: &Open<'_>, response: &Response) -> Option<String> {
    /// Characters of an explanation that are kept.
    const MOST: usize = 300;
    let said = response.explanations.iter().find(|e| {
        e.finding
            .as_deref()
            .is_some_and(|name| match open.is_of_last {
                true => names(name, open.finding),
                false => is_start(name, open.finding),
            })
    })?;
    let text = one_line(&said.text);
    let text = first_chars(&text, MOST);
    Some(format!("not repeated after the explanation: {text}"))
}

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
