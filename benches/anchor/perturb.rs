//! Distorted claims about a change: `benches/anchor.rs` measures them, and a test checks the
//! requirements.

mod changes;
mod distorted;

pub use changes::made_up;
use claude_reviewer::ai::anchor::{self, Anchored, Context, TreeFiles};
use claude_reviewer::ai::ask::Read;
use claude_reviewer::ai::claim::Reply;
use claude_reviewer::ai::material::Group;
use claude_reviewer::ai::plan::Chunk;
use claude_reviewer::ai::redact;
use claude_reviewer::diff::{LineKind, LineNo, RepoPath};
use claude_reviewer::finding::{Confidence, Finding};
use claude_reviewer::rules::RuleSet;
use claude_reviewer::symbols::Kind;
use distorted::DistortedClaim;
use std::rc::Rc;

/// One in this many claims is distorted in the ways that need a separate change, which takes long.
const SELDOM: usize = 5;

/// The distortion of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    AsItIs,
    LineOff,
    NoLine,
    DiffView,
    PathPrefix,
    QuotePrefix,
    WhiteSpace,
    Truncated,
    /// The first 60 % of the line.
    FirstPart,
    /// An expression in the middle.
    MiddlePart,
    /// The end of the line, after an ellipsis.
    Tail,
    /// The line without the spaces around operators.
    Operators,
    /// The line with typographic quotation marks, in backticks.
    Typographic,
    /// The line with one word replaced.
    WordChanged,
    /// Several of these distortions, with the right file.
    Several,
    /// An equal line follows 40 lines further down, and the number is off or missing.
    Identical,
    /// The same, with the next line in the quote.
    IdenticalQuoted,
    /// A claim about an unchanged line of the file that a tool has read.
    Unchanged,
    /// A claim about a line of an unchanged file with a name from a changed line.
    Caller,
    Neighbour,
    /// Several of these distortions, with another file.
    SeveralElsewhere,
}

/// The requirement for the claims of one distortion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bar {
    /// The claims are on the true line, and can block.
    Blocks,
    /// The claims are on the true line, with at least low confidence.
    Shown,
    /// No claim on another line is trusted.
    Doubted,
    /// The claims name another file than that of the line. They are on the true line, with at least
    /// low confidence.
    OtherFile,
}

impl Way {
    pub const ALL: [Self; 21] = [
        Self::AsItIs,
        Self::LineOff,
        Self::NoLine,
        Self::DiffView,
        Self::PathPrefix,
        Self::QuotePrefix,
        Self::WhiteSpace,
        Self::Truncated,
        Self::FirstPart,
        Self::MiddlePart,
        Self::Tail,
        Self::Operators,
        Self::Typographic,
        Self::WordChanged,
        Self::Several,
        Self::Identical,
        Self::IdenticalQuoted,
        Self::Unchanged,
        Self::Caller,
        Self::Neighbour,
        Self::SeveralElsewhere,
    ];

    /// Returns true if each claim needs a change that is made for it.
    fn makes_a_change(self) -> bool {
        matches!(self, Self::Identical | Self::IdenticalQuoted | Self::Caller)
    }

    pub fn bar(self) -> Bar {
        match self {
            Self::WordChanged | Self::Unchanged => Bar::Shown,
            Self::Identical => Bar::Doubted,
            Self::Neighbour | Self::SeveralElsewhere => Bar::OtherFile,
            _ => Bar::Blocks,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::AsItIs => "as it is",
            Self::LineOff => "line off by up to 30",
            Self::NoLine => "no line",
            Self::DiffView => "numbers of a diff view",
            Self::PathPrefix => "a prefix at the path",
            Self::QuotePrefix => "a prefix at the quote",
            Self::WhiteSpace => "changed white space",
            Self::Truncated => "truncated quote",
            Self::FirstPart => "first 60 %",
            Self::MiddlePart => "middle expression",
            Self::Tail => "tail behind …",
            Self::Operators => "operators without spaces",
            Self::Typographic => "typographic quotes",
            Self::WordChanged => "one word changed",
            Self::Several => "several of these",
            Self::Identical => "identical lines 40 apart",
            Self::IdenticalQuoted => "the same, two lines",
            Self::Unchanged => "about an unchanged line",
            Self::Caller => "about an unchanged file",
            Self::Neighbour => "a neighbouring file",
            Self::SeveralElsewhere => "several, another file",
        }
    }
}

/// The results for the claims of one distortion.
#[derive(Clone, Copy, Debug, Default)]
pub struct Figures {
    pub told: u32,
    /// Claims that are equally true of another line; see [`Setting::is_undecided`]. They cannot be
    /// distinguished, so they are excluded.
    pub undecided: u32,
    /// Claims with enough information to find the line, those among them that were anchored to it,
    /// and those that can block there.
    pub clear: u32,
    pub right: u32,
    pub blocking: u32,
    /// Other claims, and those among them that were anchored.
    pub others: u32,
    pub others_right: u32,
    /// Claims of either kind that became remarks or were dropped.
    pub lost: u32,
    /// Claims of either kind on a line other than the true one, and those among them with medium or
    /// high confidence.
    pub elsewhere: u32,
    pub medium: u32,
    pub high: u32,
}

impl Figures {
    pub fn add(&mut self, o: &Self) {
        self.told += o.told;
        self.undecided += o.undecided;
        self.clear += o.clear;
        self.right += o.right;
        self.blocking += o.blocking;
        self.others += o.others;
        self.others_right += o.others_right;
        self.lost += o.lost;
        self.elsewhere += o.elsewhere;
        self.medium += o.medium;
        self.high += o.high;
    }

    /// Checks the requirement for a distortion. Returns the figures if they do not meet it.
    pub fn check(&self, way: Way) -> Result<(), String> {
        let share = |part: u32, least: u32| {
            u64::from(part) * 100 >= u64::from(self.clear) * u64::from(least)
        };
        let holds = match way.bar() {
            Bar::Blocks => share(self.blocking, 95) && self.medium == 0,
            Bar::Shown => share(self.right, 95) && self.lost == 0 && self.medium == 0,
            Bar::Doubted => self.lost == 0 && self.medium == 0,
            Bar::OtherFile => share(self.right, 95) && self.medium == 0,
        };
        if holds && self.high == 0 {
            Ok(())
        } else {
            Err(format!("{}: {self:?}", way.name()))
        }
    }
}

/// A line of the new side.
struct Line {
    file: usize,
    hunk: usize,
    at: usize,
    number: u32,
    added: bool,
    /// The line without white space.
    folded: String,
    /// Numbers of the line in different views: the header of the old side and a count, its position
    /// in the hunk, in the file's diff with and without headers, and in the whole prompt.
    views: Vec<u32>,
}

fn fold(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace()).collect()
}

fn lines(group: &Group, chunk: &Chunk) -> Vec<Line> {
    let mut all = Vec::new();
    let mut in_chunk = 0;
    for piece in &chunk.pieces {
        let file = &group.files[piece.file];
        let (mut in_file, mut heads) = (0, 0);
        for part in &piece.hunks {
            let header = file.change.text().map(|t| &t.hunks[part.hunk]);
            heads += 1;
            for at in part.lines.clone() {
                let line = &file.hunks[part.hunk].lines[at];
                in_file += 1;
                in_chunk += 1;
                let Some(number) = line.new else { continue };
                let start = header.map_or(0, |h| h.old.start);
                all.push(Line {
                    file: piece.file,
                    hunk: part.hunk,
                    at,
                    number: number.get(),
                    added: line.kind == LineKind::Added,
                    folded: fold(&line.text),
                    views: vec![
                        start + at as u32,
                        at as u32 + 1,
                        in_file,
                        in_file + heads,
                        in_file + heads + 4,
                        in_chunk,
                    ],
                });
            }
        }
    }
    all
}

/// Distorts claims about some of the added lines in every way, and sums up the results.
///
/// Every line of every file counts as read by a tool, so that an exact anchor gets high confidence.
pub fn measure(
    group: &Group,
    chunk: &Chunk,
    rules: &RuleSet,
    random: &mut fastrand::Rng,
    claims: usize,
    figures: &mut [Figures; Way::ALL.len()],
) {
    let lines = lines(group, chunk);
    let setting = Setting {
        group,
        chunk,
        rules,
        lines: &lines,
    };
    let added: Vec<&Line> = lines
        .iter()
        .filter(|l| l.added && !l.folded.is_empty())
        .collect();
    if added.is_empty() {
        return;
    }
    for number in 0..claims {
        let line = added[random.usize(..added.len())];
        for (way, figures) in Way::ALL.into_iter().zip(figures.iter_mut()) {
            let outcome = match way {
                _ if way.makes_a_change() && number % SELDOM > 0 => None,
                _ if way.bar() == Bar::OtherFile && chunk.pieces.len() < 2 => None,
                Way::Identical | Way::IdenticalQuoted => setting.identical(way, line, random),
                Way::Unchanged => setting.unchanged(line, random),
                Way::Caller => setting.caller(line, random),
                _ => {
                    let told =
                        DistortedClaim::new(group, line).perturbed(way, group, chunk, line, random);
                    Some(setting.outcome(way, told, line))
                }
            };
            figures.add(&outcome.unwrap_or_default());
        }
    }
}

/// The files of a tree, in the form that models get.
#[derive(Debug)]
struct Texts {
    paths: Vec<RepoPath>,
    texts: Vec<Rc<str>>,
}

impl Texts {
    fn of(group: &Group, further: Option<(RepoPath, String)>, rules: &RuleSet) -> Self {
        // As in `ai::tree`: a claim quotes the text that was shown, in which secrets are replaced.
        let whole = |f: &claude_reviewer::ai::material::Shown| {
            let text = redact::text(rules, f.change.text()?.new.whole()?).text;
            Some((f.path().clone(), text))
        };
        let mut all: Vec<(RepoPath, String)> = group
            .files
            .iter()
            .filter_map(whole)
            .chain(further)
            .collect();
        all.sort();
        let (paths, texts) = all
            .into_iter()
            .map(|(path, text)| (path, Rc::from(text)))
            .unzip();
        Self { paths, texts }
    }
}

impl TreeFiles for Texts {
    fn text(&self, path: &RepoPath) -> Option<Rc<str>> {
        self.paths
            .iter()
            .position(|p| p == path)
            .map(|i| self.texts[i].clone())
    }

    fn paths(&self) -> &[RepoPath] {
        &self.paths
    }
}

/// The context of the claims.
struct Setting<'a> {
    group: &'a Group,
    chunk: &'a Chunk,
    rules: &'a RuleSet,
    /// The shown lines of the new side.
    lines: &'a [Line],
}

impl Setting<'_> {
    /// Anchors a claim, and returns the finding; `None` if it became a remark or was dropped.
    fn finding(&self, told: DistortedClaim, tree: Option<&Texts>) -> Option<Finding> {
        let last = LineNo::new(u32::MAX).unwrap_or(LineNo::FIRST);
        let paths = self
            .group
            .files
            .iter()
            .map(|f| f.path())
            .chain(tree.into_iter().flat_map(|t| &t.paths));
        let read: Vec<Read> = paths
            .map(|p| Read {
                path: p.clone(),
                first: LineNo::FIRST,
                last,
            })
            .collect();
        let context = Context {
            group: self.group,
            chunk: self.chunk,
            conventions: &[],
            documents: &[],
            tickets: &[],
            read: &read,
            backend: "bench",
            rules: self.rules,
            tree: tree.map(|t| t as &dyn TreeFiles),
        };
        let reply = Reply {
            findings: vec![told.claim()],
            ..Reply::default()
        };
        let mut anchored = anchor::claims(&reply, &context).into_iter();
        let Some(Anchored::Candidate(candidate)) = anchored.next() else {
            return None;
        };
        anchor::merge_claims(vec![*candidate], &[], self.rules)
            .findings
            .into_iter()
            .next()
    }

    fn outcome(&self, way: Way, told: DistortedClaim, truth: &Line) -> Figures {
        if self.is_undecided(&told, truth) {
            return Figures {
                told: 1,
                undecided: 1,
                ..Figures::default()
            };
        }
        let clear = self.is_clear(way, &told, truth);
        let finding = self.finding(told, None);
        let own = self.group.files[truth.file].path();
        let is_right = |f: &Finding| {
            let is_there = f
                .lines()
                .is_some_and(|l| (l.first.get()..=l.last.get()).contains(&truth.number));
            let is_first = way == Way::IdenticalQuoted
                || f.lines().is_some_and(|l| l.first.get() == truth.number);
            f.file() == Some(own) && is_there && is_first
        };
        Figures::of(finding.as_ref(), clear, is_right)
    }

    /// Returns true if the distorted claim is true of another line:
    ///
    /// - The named file has the quote on the line with the claimed number, on either side.
    /// - The named file has it in another shown line, and the number is not that of the true line.
    ///   The same claim can be made about that line with a number that is off, and must be trusted
    ///   there.
    /// - The named file does not have it, and a third file has it on the line with the claimed
    ///   number.
    fn is_undecided(&self, told: &DistortedClaim, truth: &Line) -> bool {
        let number = told.number();
        let is_numbered = number == Some(truth.number);
        let is_own = told.at == truth.file;
        if is_own && is_numbered {
            return false;
        }
        let kept = fold(&told.kept);
        let change = self.group.files[told.at].change.text();
        let numbered = change
            .zip(number)
            .and_then(|(c, n)| c.new.line(LineNo::new(n)?));
        if numbered.is_some_and(|text| fold(&String::from_utf8_lossy(text)).contains(&kept)) {
            return true;
        }
        let was_removed = |(text, numbers): &(String, Vec<u32>)| {
            told.fits(text, &kept) && number.is_some_and(|n| numbers.contains(&n))
        };
        if !is_own && self.removed(told.at).iter().any(was_removed) {
            return true;
        }
        let is_meant = |l: &Line| l.file == told.at || number == Some(l.number);
        let is_truth = |l: &Line| (l.file, l.number) == (truth.file, truth.number);
        let is_other = |l: &Line| !is_truth(l) && is_meant(l) && told.fits(&l.folded, &kept);
        !is_own && !is_numbered && self.lines.iter().any(is_other)
    }

    /// Returns the removed lines of a file, without white space, with the numbers that a claim
    /// about one can have: its own on the old side, and that of the next line of the new side,
    /// which the prompt asks for, or else of the one before.
    fn removed(&self, file: usize) -> Vec<(String, Vec<u32>)> {
        let mut all = Vec::new();
        for hunk in &self.group.files[file].hunks {
            let new = |l: &claude_reviewer::ai::material::ShownLine| l.new.map(LineNo::get);
            for (at, line) in hunk
                .lines
                .iter()
                .enumerate()
                .filter(|(_, l)| l.kind == LineKind::Removed)
            {
                let next = hunk.lines[at..].iter().find_map(new);
                let stand_in = next.or_else(|| hunk.lines[..at].iter().rev().find_map(new));
                all.push((
                    fold(&line.text),
                    line.old
                        .map(LineNo::get)
                        .into_iter()
                        .chain(stand_in)
                        .collect(),
                ));
            }
        }
        all
    }

    /// Returns true if the claim has enough information to find its line.
    ///
    /// With the right file: the number, or a quote that is in no other line of the file, and no
    /// other file has the quote on the line with the claimed number. With another file: a quote
    /// that is in no other shown line, and in no line of the named file. Its removed lines count
    /// too, unless the number is that of the true line. A part of a line must also be long enough.
    fn is_clear(&self, way: Way, told: &DistortedClaim, truth: &Line) -> bool {
        let kept = fold(&told.kept);
        let count = |fits: &dyn Fn(&Line) -> bool| self.lines.iter().filter(|l| fits(l)).count();
        let in_file = |l: &Line| l.file == truth.file && l.folded.contains(&kept);
        let is_numbered = told.number() == Some(truth.number);
        let is_numbered_elsewhere = || {
            let is_it = |l: &&Line| l.file != truth.file && told.number() == Some(l.number);
            self.lines
                .iter()
                .filter(is_it)
                .any(|l| told.fits(&l.folded, &kept))
        };
        match way.bar() {
            Bar::Shown => true,
            Bar::Doubted => false,
            _ if !told.is_whole && !told.is_long() => false,
            Bar::OtherFile => {
                count(&|l| l.folded.contains(&kept)) == 1
                    && !self.has_named(told, &kept, is_numbered)
            }
            Bar::Blocks if is_numbered => true,
            Bar::Blocks if is_numbered_elsewhere() => false,
            Bar::Blocks if told.is_whole => count(&in_file) == 1,
            Bar::Blocks => count(&|l| l.added && in_file(l)) == 1,
        }
    }

    /// Returns true if the named file has the quote on its new side, shown or not, or in a removed
    /// line.
    fn has_named(&self, told: &DistortedClaim, kept: &str, is_numbered: bool) -> bool {
        let whole = self.group.files[told.at]
            .change
            .text()
            .and_then(|t| t.new.whole());
        let text = whole.map(String::from_utf8_lossy).unwrap_or_default();
        text.lines().any(|l| fold(l).contains(kept))
            || !is_numbered && self.removed(told.at).iter().any(|(l, _)| l.contains(kept))
    }

    /// Makes a claim about a line with a copy.
    fn identical(&self, way: Way, line: &Line, random: &mut fastrand::Rng) -> Option<Figures> {
        let (group, chunk) =
            changes::with_twin(&self.group.files[line.file], line.number, self.rules)?;
        let lines = lines(&group, &chunk);
        let at = lines.iter().position(|l| l.number == line.number)?;
        let truth = &lines[at];
        let setting = Setting {
            group: &group,
            chunk: &chunk,
            rules: self.rules,
            lines: &lines,
        };
        let mut told = DistortedClaim::new(&group, truth);
        told.line = match random.usize(..5) {
            0 => None,
            n if n % 2 == 0 => Some(i64::from(truth.number) + random.i64(1..=30)),
            _ => Some((i64::from(truth.number) - random.i64(1..=30)).max(1)),
        };
        if told.line == Some(i64::from(truth.number)) {
            return None;
        }
        if way == Way::IdenticalQuoted {
            let next = lines[at + 1..]
                .iter()
                .find(|l| !l.folded.is_empty())
                .filter(|l| l.hunk == truth.hunk)?;
            told.quote = [&told.quote, "\n", text(&group, next)].concat();
            let pair = [&truth.folded, &next.folded];
            let filled: Vec<&Line> = lines.iter().filter(|l| !l.folded.is_empty()).collect();
            let pairs = || {
                filled
                    .windows(2)
                    .filter(|w| [&w[0].folded, &w[1].folded] == pair)
            };
            if pairs().any(|w| told.line == Some(i64::from(w[0].number))) {
                return Some(Figures {
                    told: 1,
                    undecided: 1,
                    ..Figures::default()
                });
            }
            let finding = setting.finding(told, None);
            let is_right = |f: &Finding| {
                f.lines()
                    .is_some_and(|l| (l.first.get()..=l.last.get()).contains(&truth.number))
            };
            return Some(Figures::of(
                finding.as_ref(),
                pairs().count() == 1,
                is_right,
            ));
        }
        Some(setting.outcome(way, told, truth))
    }

    /// Makes a claim about an unchanged line of the file, which must become the second position of
    /// the finding.
    fn unchanged(&self, line: &Line, random: &mut fastrand::Rng) -> Option<Figures> {
        let says = |l: &Line| l.folded.chars().filter(|c| c.is_alphanumeric()).count() >= 4;
        let others: Vec<&Line> = self
            .lines
            .iter()
            .filter(|l| l.file == line.file && !l.added && says(l))
            .collect();
        let other = *others.get(random.usize(..others.len().max(1)))?;
        let tree = Texts::of(self.group, None, self.rules);
        let finding = self.finding(DistortedClaim::new(self.group, other), Some(&tree));
        let own = self.group.files[line.file].path();
        let is_right = |f: &Finding| {
            let is_second = f
                .also()
                .iter()
                .any(|a| a.file == *own && a.line.get() == other.number);
            is_second && f.file() == Some(own)
        };
        Some(Figures::of(finding.as_ref(), true, is_right))
    }

    /// Makes a claim about a line of an unchanged file with a name from a changed line.
    fn caller(&self, line: &Line, random: &mut fastrand::Rng) -> Option<Figures> {
        let own = self.group.files[line.file].path().clone();
        let extension = own.to_wire().rsplit_once('.').map(|(_, e)| e.to_owned())?;
        let names: Vec<&str> = text(self.group, line)
            .split(|c: char| !(c.is_alphanumeric() || c == '_'))
            .filter(|w| w.len() > 3 && w.starts_with(|c: char| c.is_alphabetic()))
            .collect();
        let name = (*names.get(random.usize(..names.len().max(1)))?).to_owned();
        let path = RepoPath::new(format!("unchanged/caller.{extension}"));
        if !claude_reviewer::symbols::share_names(&own, &path) {
            return None;
        }
        let call = format!("    result = {name}(argument)");
        let caller = (
            path.clone(),
            format!(
                "first\n{}{call}\nlast\n",
                "other\n".repeat(random.usize(1..30))
            ),
        );
        let number = caller.1.lines().position(|l| l == call)? as i64 + 1;
        let tree = Texts::of(self.group, Some(caller), self.rules);
        let (mut group, chunk) = changes::alone(&self.group.files[line.file], self.rules)?;
        group.related.changed = vec![vec![name.clone()]];
        let lines = lines(&group, &chunk);
        let setting = Setting {
            group: &group,
            chunk: &chunk,
            rules: self.rules,
            lines: &lines,
        };
        let told = DistortedClaim {
            file: path.to_wire(),
            line: Some(number),
            quote: call,
            ..DistortedClaim::new(self.group, line)
        };
        let finding = setting.finding(told, Some(&tree));
        // A line with the name, or one in its definition.
        let names_it = |f: &Finding| {
            let at = f.lines().map(|l| l.first.get());
            let there = lines.iter().find(|l| Some(l.number) == at);
            there.is_some_and(|l| text(&group, l).contains(&name) || defines(&group, l, &name))
        };
        let is_right = |f: &Finding| {
            let is_second = f
                .also()
                .iter()
                .any(|a| a.file == path && i64::from(a.line.get()) == number);
            is_second && f.file() == Some(&own) && names_it(f)
        };
        Some(Figures::of(finding.as_ref(), true, is_right))
    }
}

impl Figures {
    /// Counts one claim.
    fn of(finding: Option<&Finding>, is_clear: bool, is_right: impl Fn(&Finding) -> bool) -> Self {
        let mut figures = Self {
            told: 1,
            clear: u32::from(is_clear),
            others: u32::from(!is_clear),
            ..Self::default()
        };
        match finding {
            None => figures.lost = 1,
            Some(f) if is_right(f) => {
                figures.right = u32::from(is_clear);
                figures.blocking = u32::from(is_clear && f.confidence() >= Confidence::Medium);
                figures.others_right = u32::from(!is_clear);
            }
            Some(f) => {
                // Without lines, the finding is on the file and has the possible lines.
                figures.elsewhere = u32::from(f.lines().is_some());
                figures.medium = u32::from(f.confidence() == Confidence::Medium);
                figures.high = u32::from(f.confidence() == Confidence::High);
            }
        }
        figures
    }
}

/// Returns true if a line is part of a function or type of that name.
fn defines(group: &Group, line: &Line, name: &str) -> bool {
    let symbols = group.files[line.file].symbols.new.as_deref();
    let mut around = symbols.into_iter().flat_map(|s| s.enclosing(line.number));
    around.any(|d| d.name == name && matches!(d.kind, Kind::Function | Kind::Type))
}

/// Returns a line as it was shown.
fn text<'a>(group: &'a Group, line: &Line) -> &'a str {
    &group.files[line.file].hunks[line.hunk].lines[line.at].text
}
