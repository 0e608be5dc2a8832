//! What became of the findings of earlier rounds, told by code and fingerprints, never by a model's word. Pure.
//!
//! Used in two steps: [`Comparison::carried`] names the findings that are to be added to the new round because
//! nothing answered them, and [`Comparison::since`] compares the finished report with what was known.
//!
//! That nobody repeats a finding mends nothing by itself. It is fixed where its lines, or those right beside them,
//! are other lines now, and where its text is nowhere else: [`trace`] looks for it among what is new in the change,
//! [`look`] in the files that the change does not show as they are. Where the text is still there, a model's finding
//! is carried over to where it stands now. A rule is believed about the file that it looked at before, by the same
//! name; elsewhere its finding is unchecked: not found again, and not mended either.

mod alike;
pub mod look;
mod pair;
mod trace;

use super::cover::{Cover, same_base};
use super::region::{Alignment, FileText, Kept, Line, Place, Side, Spot, lines};
use super::replaced;
use super::words::{is_start, names};
use crate::wire::stored::{Entry, Response, Review, Since, State};
use crate::wire::{Disposition, Finding, Outcome, Report, Severity, SourceKind};
use alike::Known;
use look::{Aside, Look};
use pair::{Pairs, Spans};
use std::cell::OnceCell;
use std::collections::HashMap;
use trace::{Passage, Texts};

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

impl Earlier<'_> {
    /// Returns true if the round was about a change without a commit, and another one took its place. All files of both were
    /// asked for.
    pub(super) fn is_replaced(&self, now: &[u8], look: &dyn Look) -> bool {
        let is_comparable = self.cover == Cover::Whole && replaced::is_uncommitted(self.review.report.source.kind);
        is_comparable && self.review.change.left_out.is_empty() && replaced::is_replaced(self.change, now, look)
    }
}

/// The change of the new round.
#[derive(Clone, Copy, Debug)]
pub struct Current<'a> {
    pub change: Side<'a>,
    /// Where it came from, as the report will say.
    pub source: &'a crate::wire::Source,
    /// What the change does not show.
    pub look: &'a dyn Look,
}

/// Earlier rounds beside a new change.
#[derive(Debug)]
pub struct Comparison<'a> {
    rounds: Vec<Round<'a>>,
    look: &'a dyn Look,
}

#[derive(Debug)]
struct Round<'a> {
    earlier: Earlier<'a>,
    /// From its change to the new one.
    alignment: Alignment,
    look: &'a dyn Look,
    /// Made when somebody asks: where nothing is about to be called fixed, nobody does.
    texts: OnceCell<Texts>,
    known: OnceCell<Known>,
}

impl Round<'_> {
    fn texts(&self) -> &Texts {
        self.texts.get_or_init(|| {
            let mut all = self.alignment.texts();
            // What was not asked for is in no change that is compared.
            let others = Side { text: self.look.left_out(), left_out: &[] };
            all.extend(Alignment::between(Side::default(), others, false).texts());
            Texts::new(all)
        })
    }
}

/// A finding of an earlier round, with the way to where its lines are now.
#[derive(Clone, Copy, Debug)]
struct Open<'c> {
    finding: &'c Finding,
    round: &'c Round<'c>,
    /// The last round's report has it: its id is one that the answer to that round may name.
    is_of_last: bool,
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
    pub fn new(earlier: &[Earlier<'a>], now: &Current<'a>) -> Self {
        let round = |e: &Earlier<'a>| {
            let same_base = same_base(&e.review.report.source, now.source);
            let before = Side { text: e.change, left_out: &e.review.change.left_out };
            let alignment = Alignment::between(before, now.change, same_base);
            Round { earlier: *e, alignment, look: now.look, texts: OnceCell::new(), known: OnceCell::new() }
        };
        Self { rounds: earlier.iter().map(round).collect(), look: now.look }
    }

    /// Returns the findings of models that no backend repeated though it looked again at code that did not change:
    /// placed where the lines are now, to be added to the new round. `response` is the coder's answer to the round
    /// before.
    pub fn carried(&self, now: &Report, response: Option<&Response>) -> Vec<Finding> {
        let open = self.open();
        let pairs = Pairs::of(&open, &now.findings);
        let left = pairs.left().map(|i| open[i]);
        let stands = |o: &Open<'_>| match self.fate(o, now) {
            Fate::Carried(spot) => carried(o, spot, response),
            Fate::Fixed | Fate::Unchecked => None,
        };
        left.filter_map(|o| stands(&o)).collect()
    }

    /// Returns what became of every finding that was open, and what every finding of the new round is. `now` is the
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
                Fate::Unchecked | Fate::Carried(_) => State::Unchecked,
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
        let fresh: Vec<&Entry> = since.entries.iter().filter(is_fresh).collect();
        if fresh.is_empty() {
            return Vec::new();
        }
        let mended: Vec<_> = self.mended().collect();
        let mut places: HashMap<String, Vec<(u32, u32, usize)>> = HashMap::new();
        for (i, (round, before)) in mended.iter().enumerate() {
            if let Some(Place::At(spot)) = alike::place(before, &round.alignment) {
                let end = spot.lines.end.max(spot.lines.start.saturating_add(1));
                places.entry(spot.file).or_default().push((spot.lines.start, end, i));
            }
        }
        let places: HashMap<String, Spans> = places.into_iter().map(|(file, all)| (file, Spans::new(all))).collect();
        let found: HashMap<&str, &Finding> = now.findings.iter().map(|f| (&*f.id, f)).collect();
        let again = fresh.into_iter().filter_map(|e| {
            let f = found.get(e.id.as_deref()?).filter(|f| counts(f))?;
            let at = places.get(f.file.as_deref()?)?.touching(&alike::lines(f)?).min()?;
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

    /// Returns what is to be answered: the findings of the last round, and those of earlier ones that nobody has
    /// looked at since.
    fn open(&self) -> Vec<Open<'_>> {
        let Some((last, before)) = self.rounds.split_last() else { return Vec::new() };
        let of_last = |finding| {
            let round = self.shown_in(finding, before).unwrap_or(last);
            Open { finding, round, is_of_last: true }
        };
        let mut out: Vec<Open<'_>> = last.earlier.review.report.findings.iter().map(of_last).collect();
        let unchecked = last.earlier.review.since.iter().flat_map(|s| &s.entries);
        let mut known: HashMap<(&str, &str), Open<'_>> = HashMap::new();
        let unchecked: Vec<&Entry> = unchecked.filter(|e| e.state == State::Unchecked).collect();
        for round in before.iter().filter(|_| !unchecked.is_empty()) {
            // The last round that has it, and the first of those that it has.
            let all = round.earlier.review.report.findings.iter().rev();
            known.extend(
                all.map(|finding| {
                    ((&*finding.fingerprint, &*finding.title), Open { finding, round, is_of_last: false })
                }),
            );
        }
        out.extend(unchecked.iter().filter_map(|e| known.get(&(&*e.fingerprint, &*e.title))));
        out
    }

    /// Returns the last of some rounds whose change has the lines of a finding that was carried over, where that of
    /// the last round has not: its file was kept out of it.
    fn shown_in<'c>(&self, f: &Finding, before: &'c [Round<'c>]) -> Option<&'c Round<'c>> {
        let file = f.file.as_deref().filter(|_| is_carried(f))?;
        let has = |r: &Round<'_>| r.alignment.had(f.commit.as_deref(), file);
        let is_it = |o: &Finding| o.title == f.title && o.file == f.file && o.line == f.line && o.quote == f.quote;
        if self.rounds.last().is_some_and(has) {
            return None;
        }
        before.iter().rev().find(|r| has(r) && r.earlier.review.report.findings.iter().any(is_it))
    }

    /// Returns the findings that an earlier round had mended, each with the last round that had it.
    fn mended(&self) -> impl Iterator<Item = (&Round<'_>, &Finding)> {
        self.rounds.windows(2).flat_map(|two| {
            let [before, after] = two else { return Vec::new() };
            let entries = after.earlier.review.since.iter().flat_map(|s| &s.entries);
            let fixed = entries.filter(|e| e.state == State::Fixed);
            let all = before.earlier.review.report.findings.iter().rev().filter(|f| counts(f));
            let known: HashMap<&str, &Finding> = all.map(|f| (&*f.fingerprint, f)).collect();
            fixed.filter_map(|e| known.get(&*e.fingerprint)).map(|f| (before, *f)).collect()
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
            let may_be = r.known.get_or_init(|| Known::of(all, &r.alignment)).like(f);
            may_be.into_iter().filter_map(|i| all.get(i)).find(|b| alike::is_same(f, b, &r.alignment))
        })
    }

    /// Returns what a finding is that no open one became.
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

    /// Returns what became of an open finding that is not found any more.
    fn fate(&self, open: &Open<'_>, now: &Report) -> Fate {
        match self.silence(open, now) {
            Fate::Fixed => self.still_there(open, now).unwrap_or_else(|| {
                // A rule looked at the file itself. What a model's silence means is told by lines that are known.
                let f = open.finding;
                let is_unknown = f.file.as_deref().is_some_and(|p| open.round.alignment.lacks(f.commit.as_deref(), p));
                if is_unknown && !alike::is_rule(f) { Fate::Unchecked } else { Fate::Fixed }
            }),
            other => other,
        }
    }

    /// Returns what the silence about an open finding means, going by its place alone.
    fn silence(&self, open: &Open<'_>, now: &Report) -> Fate {
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
        // What is said of a change as a whole is said of all its files: where one was left out, nobody can tell.
        let is_left_out = |path: &str| cover == Cover::Given || !self.look.selects(path);
        if f.file.is_none() && !alignment.has_all(is_left_out) {
            return Fate::Unchecked;
        }
        if !is_shown {
            // Where everything that differs is shown, its file does not differ any more.
            let is_gone = cover == Cover::Whole && file.is_none_or(|f| self.look.selects(f));
            return if is_gone { Fate::Fixed } else { Fate::Unchecked };
        }
        let asked = is_rule || now.usage.iter().any(|u| u.backend == f.origin);
        if !asked {
            // Nobody is asked about a file that has no changed line left: what was found in one is gone with it.
            let is_whole = matches!(&place, Some(Place::At(spot)) if spot.kept == Kept::Whole);
            let is_bare = file.is_some_and(|file| alignment.is_bare(file));
            let is_gone = is_bare && !is_whole && cover == Cover::Whole && file.is_none_or(|f| self.look.selects(f));
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
                false => Fate::Carried(None),
                // Elsewhere in the file something changed that the rule looks at, too; or the rule is off.
                true if rule_is_silent() && differs() == Some(true) => Fate::Fixed,
                true => Fate::Unchecked,
            },
            Some(Place::At(spot)) if spot.kept == Kept::Lines && is_rule && !looked_again => Fate::Unchecked,
            Some(Place::At(_)) => Fate::Fixed,
            // Of a file, or of the change, as a whole.
            None => match differs() {
                Some(true) => Fate::Fixed,
                Some(false) if !is_rule => Fate::Carried(None),
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

    /// Looks for the text of a finding that is about to be called fixed; `None`: it is nowhere.
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
                Some(Place::At(spot)) => spot.lines,
                _ => 0..0,
            };
            // A rule that looks at another name, or is another rule now, says nothing of what stands beside the lines.
            let is_believed = |name: &str, file: &FileText| {
                is_rule && name == path && self.same_rules(open, now) && trace::is_as_introduced(text, file)
            };
            let all = own.and_then(|own| Some((texts.file(own)?, texts.in_place(passage, own, &spot, is_rule)?)));
            let elsewhere = || {
                let found = texts.elsewhere(passage, own, &spot)?;
                Some((texts.file(found.file)?, found.lines))
            };
            let found = all.or_else(elsewhere).and_then(|(file, lines)| Some((file, file.path.as_deref()?, lines)));
            if let Some((file, name, lines)) = found.filter(|(file, name, _)| !is_believed(name, file)) {
                let asked = now.usage.iter().any(|u| u.backend == f.origin) && looked_at(now, Some(name), false);
                if is_rule || !asked || !self.look.selects(name) {
                    return Some(Fate::Unchecked);
                }
                let commit = file.commit.clone();
                return Some(Fate::Carried(Some(Spot { file: name.to_owned(), commit, lines, kept: Kept::Whole })));
            }
        }
        let file = alignment.path(f.commit.as_deref(), path).unwrap_or(path);
        self.beside_the_change(open, file, passage.as_ref())
    }

    /// Looks for the text of a finding in a file that the change does not show as it is.
    fn beside_the_change(&self, open: &Open<'_>, file: &str, text: Option<&Passage<'_>>) -> Option<Fate> {
        let (f, round) = (open.finding, open.round);
        let shown = round.alignment.text_now(file).and_then(|at| round.texts().file(at));
        let (now, base, aside) = match self.look.file(file, shown.is_some_and(|s| s.path.is_some())) {
            Aside::Nothing => return None,
            Aside::Unreadable => return Some(Fate::Unchecked),
            Aside::Text { now, base, aside } => (lines(&now), lines(&base), aside),
        };
        let same = |a: &[Line], b: &[Line]| a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.folded == b.folded);
        let is_as_shown = match shown.filter(|s| s.path.is_some()) {
            // No line is known of it, which says nothing of those that it has.
            Some(shown) if shown.now.is_empty() => now.is_empty() || same(&now, &base),
            Some(shown) => trace::stand_in(&shown.now, &now),
            None => same(&now, &base),
        };
        if is_as_shown {
            return None;
        }
        // Put where nothing of it is published, in the sight of everybody: that is what to do with a secret.
        if aside == look::Standing::Ignored && self.look.is_secret(f) {
            return None;
        }
        let Some(text) = text else { return Some(Fate::Unchecked) };
        let places = text.places(&now);
        if places.len() <= text.places(&base).len() {
            return None;
        }
        let nearest = places.into_iter().min_by_key(|at| now[*at].number.abs_diff(f.line.unwrap_or(0)))?;
        if alike::is_rule(f) || aside != look::Standing::Hidden {
            return Some(Fate::Unchecked);
        }
        let found = text.numbers(&now, nearest);
        let commit = None;
        Some(Fate::Carried(Some(Spot { file: file.to_owned(), commit, lines: found, kept: Kept::Whole })))
    }

    fn same_rules(&self, open: &Open<'_>, now: &Report) -> bool {
        open.round.earlier.review.report.tool.rules_hash == now.tool.rules_hash
    }
}

/// What became of a finding that is not found any more.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Fate {
    Fixed,
    Unchecked,
    /// Its code is as it was: it stands until something answers it. `Some`: where its code is now.
    Carried(Option<Spot>),
}

fn counts(f: &Finding) -> bool {
    f.counts()
}

/// Returns true if a round looked at a file as whoever found something in it does; `None` is the whole change.
fn looked_at(now: &Report, file: Option<&str>, is_rule: bool) -> bool {
    let c = &now.coverage;
    // What a backend could not do is no failure of the rules.
    let whole = |f: &crate::wire::Failed| f.file.is_none() && !is_rule;
    let failed = c.failed.iter().any(|f| whole(f) || f.file.is_some() && f.file.as_deref() == file);
    let unread = |reason: &str| !is_rule || matches!(reason, "ignored" | "binary" | "submodule");
    let skipped = c.skipped.iter().any(|s| Some(s.file.as_str()) == file && unread(&s.reason));
    !failed && !skipped
}

/// Returns true if nobody found it in its round.
fn is_carried(f: &Finding) -> bool {
    f.evidence.iter().any(|e| e.starts_with("carried:"))
}

/// Puts a finding where its lines are now.
fn carried(open: &Open<'_>, spot: Option<Spot>, response: Option<&Response>) -> Option<Finding> {
    let mut f = open.finding.clone();
    // A comment beside the lines suppresses: it is there as long as the lines and what stands around them are.
    let is_beside = |place: Option<Place>| matches!(place, Some(Place::At(spot)) if spot.kept == Kept::Whole);
    if spot.is_some() || !is_beside(alike::place(&f, &open.round.alignment)) {
        f.suppressed = None;
    }
    match spot.map(Place::At).or_else(|| alike::place(&f, &open.round.alignment)) {
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
    if !is_carried(&f) {
        f.evidence.push(format!("carried:round-{}", open.round.earlier.review.round));
    }
    // Who let it through does so again, or not.
    f.waived = None;
    (f.disposition, f.decided) = (Disposition::Pending, None);
    // What is critical takes changed code, or a person's waiver: silence after an explanation is too little.
    if f.disputed.is_none() && f.severity != Severity::Critical {
        f.disputed = response.and_then(|r| explained(open, r));
    }
    Some(f)
}

/// Returns what a coder's answer says of a finding that was not repeated after it.
///
/// Ids begin anew in every round: a finding of a round before the answered one is named by its fingerprint alone.
fn explained(open: &Open<'_>, response: &Response) -> Option<String> {
    /// Characters of an explanation that are told.
    const MOST: usize = 300;
    let is_named = |name: &str| match open.is_of_last {
        true => names(name, open.finding),
        false => is_start(name, open.finding),
    };
    let said = response.explanations.iter().find(|e| e.finding.as_deref().is_some_and(is_named))?;
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
