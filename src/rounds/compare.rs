//! What became of the findings of earlier rounds, told by code and fingerprints, never by a model's word. Pure.
//!
//! Used in two steps: [`Comparison::carried`] names the findings that are to be added to the new round because
//! nothing answered them, and [`Comparison::since`] compares the finished report with what was known.

mod alike;
mod pair;

use super::cover::{Cover, same_base};
use super::region::{Alignment, Kept, Place, Side};
use super::words::names;
use crate::wire::stored::{Entry, Response, Review, Since, State};
use crate::wire::{Finding, Outcome, Report, Severity, SourceKind};
use pair::Pairs;

/// A round that was stored.
#[derive(Clone, Copy, Debug)]
pub struct Earlier<'a> {
    pub review: &'a Review,
    /// What the coder answered to it.
    pub response: Option<&'a Response>,
    /// Its change, as it is stored.
    pub change: &'a [u8],
    /// What the new change shows of it.
    pub cover: Cover,
}

/// The change of the new round.
#[derive(Clone, Copy, Debug)]
pub struct Current<'a> {
    pub change: Side<'a>,
    /// Where it came from, as the report will say.
    pub source: &'a crate::wire::Source,
    /// Only some files were asked for: what is not in the change was perhaps not looked at.
    pub narrowed: bool,
}

/// Earlier rounds beside a new change.
#[derive(Debug)]
pub struct Comparison<'a> {
    rounds: Vec<Round<'a>>,
    narrowed: bool,
}

#[derive(Debug)]
struct Round<'a> {
    earlier: Earlier<'a>,
    /// From its change to the new one.
    alignment: Alignment,
}

/// A finding of an earlier round, with the way to where its lines are now.
#[derive(Clone, Copy, Debug)]
struct Open<'c> {
    finding: &'c Finding,
    round: &'c Round<'c>,
}

/// A finding that stands where another was mended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Again {
    /// In the new report.
    pub id: String,
    pub file: String,
    pub line: Option<u32>,
    /// What was mended there, and the last round that had it.
    pub previous_id: String,
    pub round: u32,
}

impl<'a> Comparison<'a> {
    /// Puts the rounds of a session, oldest first, beside the new change.
    pub fn new(earlier: &[Earlier<'a>], now: &Current<'_>) -> Self {
        let round = |e: &Earlier<'a>| {
            let same_base = same_base(&e.review.report.source, now.source);
            let before = Side { text: e.change, left_out: &e.review.change.left_out };
            Round { earlier: *e, alignment: Alignment::between(before, now.change, same_base) }
        };
        Self { rounds: earlier.iter().map(round).collect(), narrowed: now.narrowed }
    }

    /// Returns the findings of models that no backend repeated though it looked again at code that did not change:
    /// placed where the lines are now, to be added to the new round. `response` is the coder's answer to the round
    /// before.
    pub fn carried(&self, now: &Report, response: Option<&Response>) -> Vec<Finding> {
        let open = self.open();
        let pairs = Pairs::of(&open, &now.findings);
        let left = pairs.left().map(|i| open[i]);
        left.filter(|o| self.fate(o, now) == Fate::Carried).filter_map(|o| carried(&o, response)).collect()
    }

    /// Tells what became of every finding that was open, and what every finding of the new round is. `now` is the
    /// finished report: what was carried over is in it.
    pub fn since(&self, now: &Report) -> Since {
        let open = self.open();
        let pairs = Pairs::of(&open, &now.findings);
        let mut out = Since { round: self.rounds.last().map_or(0, |r| r.earlier.review.round), ..Since::default() };
        for (i, f) in now.findings.iter().enumerate() {
            let before = pairs.before(i).map(|o| open[o].finding);
            let state = match pairs.state(i) {
                Some(state) => state,
                None => self.fresh(f, now),
            };
            out.entries.push(entry(state, f, Some(f), before.or_else(|| self.gone_before(f, state))));
        }
        for o in pairs.left().map(|i| open[i]) {
            let state = match self.fate(&o, now) {
                Fate::Fixed => State::Fixed,
                // Carried over it would be in the report: it was not, so nobody vouches for it.
                Fate::Unchecked | Fate::Carried => State::Unchecked,
            };
            out.entries.push(entry(state, o.finding, None, Some(o.finding)));
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

    /// Returns the findings of the new round that stand where others were mended in an earlier one.
    pub fn again(&self, now: &Report, since: &Since) -> Vec<Again> {
        let is_fresh = |e: &&Entry| matches!(e.state, State::New | State::IntroducedByFix | State::Reopened);
        let fresh = since.entries.iter().filter(is_fresh);
        fresh
            .filter_map(|e| {
                let f = now.findings.iter().find(|f| Some(&f.id) == e.id.as_ref()).filter(|f| counts(f))?;
                let (round, before) = self.mended().find(|(round, before)| stands_at(f, before, round))?;
                Some(Again {
                    id: f.id.clone(),
                    file: f.file.clone().unwrap_or_default(),
                    line: f.line,
                    previous_id: before.id.clone(),
                    round: round.earlier.review.round,
                })
            })
            .collect()
    }

    /// Returns what is to be answered: the findings of the last round, and those of earlier ones that nobody has
    /// looked at since.
    fn open(&self) -> Vec<Open<'_>> {
        let Some((last, before)) = self.rounds.split_last() else { return Vec::new() };
        let mut out: Vec<Open<'_>> =
            last.earlier.review.report.findings.iter().map(|finding| Open { finding, round: last }).collect();
        let unchecked = last.earlier.review.since.iter().flat_map(|s| &s.entries);
        for e in unchecked.filter(|e| e.state == State::Unchecked) {
            let known = before.iter().rev().find_map(|round| {
                let mut all = round.earlier.review.report.findings.iter();
                let finding = all.find(|f| f.fingerprint == e.fingerprint && f.title == e.title)?;
                Some(Open { finding, round })
            });
            out.extend(known);
        }
        out
    }

    /// Returns the findings that an earlier round had mended, each with the last round that had it.
    fn mended(&self) -> impl Iterator<Item = (&Round<'_>, &Finding)> {
        self.rounds.windows(2).flat_map(|two| {
            let [before, after] = two else { return Vec::new() };
            let entries = after.earlier.review.since.iter().flat_map(|s| &s.entries);
            let fixed = entries.filter(|e| e.state == State::Fixed);
            let all = &before.earlier.review.report.findings;
            fixed
                .filter_map(|e| all.iter().find(|f| f.fingerprint == e.fingerprint && counts(f)))
                .map(|f| (before, f))
                .collect()
        })
    }

    /// Finds what a reopened finding was before.
    fn gone_before(&self, f: &Finding, state: State) -> Option<&Finding> {
        if state != State::Reopened {
            return None;
        }
        let (_, rest) = self.rounds.split_last()?;
        rest.iter().rev().find_map(|r| {
            let all = &r.earlier.review.report.findings;
            all.iter().find(|b| alike::is_same(f, b, &r.alignment))
        })
    }

    /// Tells what a finding is that no open one became.
    fn fresh(&self, f: &Finding, now: &Report) -> State {
        if self.gone_before(f, State::Reopened).is_some() {
            return State::Reopened;
        }
        let Some(last) = self.rounds.last() else { return State::New };
        let (commit, alignment) = (f.commit.as_deref(), &last.alignment);
        let changed = match (f.file.as_deref(), f.line) {
            (Some(file), Some(line)) => alignment.is_new(commit, file, line, f.end_line.unwrap_or(line)),
            // The rules say the same of the same: it is the change that made it.
            (file, _) if alike::is_rule(f) && last.earlier.review.report.tool.rules_hash == now.tool.rules_hash => {
                file.map_or_else(|| alignment.differs(), |file| alignment.file_differs(commit, file))
            }
            (Some(file), None) => alignment.file_differs(commit, file),
            (None, _) => None,
        };
        if changed == Some(true) { State::IntroducedByFix } else { State::New }
    }

    /// Tells what became of an open finding that is not found any more.
    fn fate(&self, open: &Open<'_>, now: &Report) -> Fate {
        let (f, alignment, cover) = (open.finding, &open.round.alignment, open.round.earlier.cover);
        // What a commit inside a branch had is in no change that leaves the commits out.
        let in_history = f.commit.is_some() && open.round.earlier.review.report.source.kind == SourceKind::Branch;
        let of_commits = matches!(now.source.kind, SourceKind::Branch | SourceKind::Commit);
        if now.outcome == Outcome::Cancelled || cover == Cover::Nothing || in_history && !of_commits {
            return Fate::Unchecked;
        }
        let is_rule = alike::is_rule(f);
        let place = alike::place(f, alignment);
        let file = match &place {
            Some(Place::At(spot)) => Some(spot.file.as_str()),
            _ => {
                let path = f.file.as_deref();
                path.and_then(|p| alignment.path(f.commit.as_deref(), p)).or(path)
            }
        };
        let shown = match file {
            Some(file) => alignment.shows(file),
            None => Some(true),
        };
        let Some(is_shown) = shown.filter(|_| looked_at(now, file, is_rule)) else { return Fate::Unchecked };
        if !is_shown {
            // Where everything that differs is shown, its file does not differ any more.
            let is_gone = cover == Cover::Whole && !self.narrowed;
            return if is_gone { Fate::Fixed } else { Fate::Unchecked };
        }
        let asked = is_rule || now.usage.iter().any(|u| u.backend == f.origin);
        if !asked {
            // Nobody is asked about a file that has no changed line left: what was found in one is gone with it.
            let is_whole = matches!(&place, Some(Place::At(spot)) if spot.kept == Kept::Whole);
            let is_bare = file.is_some_and(|file| alignment.is_bare(file));
            let is_gone = is_bare && !is_whole && cover == Cover::Whole && !self.narrowed;
            return if is_gone { Fate::Fixed } else { Fate::Unchecked };
        }
        let differs = || match f.file.as_deref() {
            Some(_) => file.and_then(|file| alignment.file_differs(None, file)),
            None => alignment.differs(),
        };
        // Rules look at what is new in a change: at all that was new before where it starts from the same state.
        let looked_again = cover != Cover::Onward;
        let rule_is_silent = || looked_again && self.same_rules(open, now);
        match &place {
            Some(Place::At(spot)) if spot.kept == Kept::Whole => match is_rule {
                false => Fate::Carried,
                // Elsewhere in the file something changed that the rule looks at, too; or the rule is off.
                true if rule_is_silent() && differs() == Some(true) => Fate::Fixed,
                true => Fate::Unchecked,
            },
            Some(Place::At(spot)) if spot.kept == Kept::Lines && is_rule && !looked_again => Fate::Unchecked,
            Some(Place::At(_)) => Fate::Fixed,
            // Of a file, or of the change, as a whole.
            None => match differs() {
                Some(true) => Fate::Fixed,
                Some(false) if !is_rule => Fate::Carried,
                None if cover == Cover::Whole && (!is_rule || self.same_rules(open, now)) => Fate::Fixed,
                _ => Fate::Unchecked,
            },
            // Nobody can tell where it stood, but its file was looked at again, or is deleted.
            Some(Place::Gone | Place::Unknown) => match looked_again {
                true if !is_rule || self.same_rules(open, now) => Fate::Fixed,
                false if file.is_some_and(|file| alignment.is_deleted(file)) => Fate::Fixed,
                _ => Fate::Unchecked,
            },
        }
    }

    fn same_rules(&self, open: &Open<'_>, now: &Report) -> bool {
        open.round.earlier.review.report.tool.rules_hash == now.tool.rules_hash
    }
}

/// What became of a finding that is not found any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Fixed,
    Unchecked,
    /// Its code is as it was and was looked at: it stands until something answers it.
    Carried,
}

fn counts(f: &Finding) -> bool {
    f.suppressed.is_none() && f.waived.is_none()
}

/// Tells whether a round looked at a file as whoever found something in it does; `None` is the whole change.
fn looked_at(now: &Report, file: Option<&str>, is_rule: bool) -> bool {
    let c = &now.coverage;
    // What a backend could not do is no failure of the rules.
    let whole = |f: &crate::wire::Failed| f.file.is_none() && !is_rule;
    let failed = c.failed.iter().any(|f| whole(f) || f.file.is_some() && f.file.as_deref() == file);
    let unread = |reason: &str| !is_rule || matches!(reason, "ignored" | "binary" | "submodule");
    let skipped = c.skipped.iter().any(|s| Some(s.file.as_str()) == file && unread(&s.reason));
    !failed && !skipped
}

/// Tells whether a finding stands where one of an earlier round stood.
fn stands_at(f: &Finding, before: &Finding, round: &Round<'_>) -> bool {
    let Some(Place::At(spot)) = alike::place(before, &round.alignment) else { return false };
    let Some(line) = f.line.filter(|_| f.file.as_deref() == Some(spot.file.as_str())) else { return false };
    let last = f.end_line.unwrap_or(line);
    line < spot.lines.end.max(spot.lines.start + 1) && spot.lines.start <= last
}

/// Puts a finding where its lines are now.
fn carried(open: &Open<'_>, response: Option<&Response>) -> Option<Finding> {
    let mut f = open.finding.clone();
    match alike::place(&f, &open.round.alignment) {
        Some(Place::At(spot)) => {
            f.line = Some(spot.lines.start);
            f.end_line = f.end_line.map(|_| spot.lines.end.saturating_sub(1).max(spot.lines.start));
            f.file = Some(spot.file);
            f.commit = spot.commit.filter(|_| f.commit.is_some());
        }
        Some(Place::Gone | Place::Unknown) => return None,
        None => {
            let path = f.file.as_deref().and_then(|p| open.round.alignment.path(f.commit.as_deref(), p));
            if let Some(path) = path {
                f.file = Some(path.to_owned());
            }
        }
    }
    // Nobody is to believe that it was found twice.
    if !f.evidence.iter().any(|e| e.starts_with("carried:")) {
        f.evidence.push(format!("carried:round-{}", open.round.earlier.review.round));
    }
    // Who let it through does so again, or not.
    f.waived = None;
    // What is critical takes changed code, or a person's waiver: silence after an explanation is too little.
    if f.disputed.is_none() && f.severity != Severity::Critical {
        f.disputed = response.and_then(|r| explained(open.finding, r));
    }
    Some(f)
}

/// Returns what a coder's answer says of a finding that was not repeated after it.
fn explained(f: &Finding, response: &Response) -> Option<String> {
    /// Characters of an explanation that are told.
    const MOST: usize = 300;
    let said = response.explanations.iter().find(|e| e.finding.as_deref().is_some_and(|name| names(name, f)))?;
    let text = said.text.split_whitespace().collect::<Vec<_>>().join(" ");
    let text: String = text.chars().take(MOST).collect();
    Some(format!("not repeated after the explanation: {text}"))
}

fn entry(state: State, f: &Finding, now: Option<&Finding>, before: Option<&Finding>) -> Entry {
    Entry {
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
