//! True claims about a change, told wrongly: what `benches/anchor.rs` measures and a test holds to.

use claude_reviewer::ai::anchor::{self, Anchored, Context};
use claude_reviewer::ai::ask::Read;
use claude_reviewer::ai::claim::{Claim, Reply};
use claude_reviewer::ai::material::{Group, Shown};
use claude_reviewer::ai::plan::Chunk;
use claude_reviewer::ai::related::Related;
use claude_reviewer::diff::{
    Attribute, Body, ChangeKind, Entry, FileChange, FileMode, LineKind, LineNo, RepoPath, Side,
};
use claude_reviewer::finding::Confidence;
use claude_reviewer::policy::Policy;
use claude_reviewer::rules::RuleSet;

/// How a claim is told wrongly.
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
    /// The end, behind an ellipsis.
    Tail,
    /// Without the spaces around operators.
    Operators,
    /// With typographic quotation marks, in back-ticks.
    Typographic,
    /// With another word in the place of one.
    WordChanged,
    Neighbour,
    Several,
}

impl Way {
    pub const ALL: [Self; 16] = [
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
        Self::Neighbour,
        Self::Several,
    ];

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
            Self::Neighbour => "a neighbouring file",
            Self::Several => "several of these",
        }
    }
}

/// What became of the claims told in one way.
#[derive(Clone, Copy, Debug, Default)]
pub struct Figures {
    /// Claims whose quote stands once in what was shown, and those of them that landed on the true line.
    pub unique: u32,
    pub landed: u32,
    /// Those that landed with confidence medium or high, of either kind: they can block.
    pub believed: u32,
    /// The other claims, and those that landed, that became remarks or were dropped, that point elsewhere.
    pub others: u32,
    pub others_landed: u32,
    pub unplaced: u32,
    /// Claims of either kind that point to a line that is not the true one, and those believed with confidence
    /// medium or high.
    pub elsewhere: u32,
    pub medium: u32,
    pub high: u32,
}

impl Figures {
    pub fn add(&mut self, o: &Self) {
        self.unique += o.unique;
        self.landed += o.landed;
        self.believed += o.believed;
        self.others += o.others;
        self.others_landed += o.others_landed;
        self.unplaced += o.unplaced;
        self.elsewhere += o.elsewhere;
        self.medium += o.medium;
        self.high += o.high;
    }
}

/// A line of the new side.
struct Line {
    file: usize,
    hunk: usize,
    at: usize,
    number: u32,
    added: bool,
    /// Without any white space.
    folded: String,
    /// Numbers that views of a diff give it: the old side's header and a count, its place in the hunk, in the
    /// file's diff with and without headers, in everything that is shown.
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

/// Tells claims about some of the added lines in every way, and adds up what becomes of them.
///
/// Every line of every file counts as read by a tool, so that whatever is anchored exactly gets confidence high.
pub fn measure(
    group: &Group,
    chunk: &Chunk,
    rules: &RuleSet,
    random: &mut fastrand::Rng,
    claims: usize,
    figures: &mut [Figures; Way::ALL.len()],
) {
    let lines = lines(group, chunk);
    let added: Vec<&Line> = lines.iter().filter(|l| l.added && !l.folded.is_empty()).collect();
    if added.is_empty() {
        return;
    }
    let last = LineNo::new(u32::MAX).unwrap_or(LineNo::FIRST);
    let read: Vec<Read> =
        group.files.iter().map(|f| Read { path: f.path().clone(), first: LineNo::FIRST, last }).collect();
    let context = Context {
        group,
        chunk,
        conventions: &[],
        documents: &[],
        tickets: &[],
        read: &read,
        backend: "bench",
        rules,
        tree: None,
    };
    for _ in 0..claims {
        let line = added[random.usize(..added.len())];
        for (way, figures) in Way::ALL.into_iter().zip(figures.iter_mut()) {
            let told = Told::new(group, line).perturbed(way, group, chunk, line, random);
            figures.add(&told.outcome(&lines, line, &context));
        }
    }
}

/// Makes up a change of a few files whose lines are often alike.
pub fn made_up(random: &mut fastrand::Rng, rules: &RuleSet) -> Group {
    let word = |random: &mut fastrand::Rng| {
        ["index", "buffer", "count", "entry", "limit", "parser", "offset", "handle", "reader", "cache"]
            [random.usize(..10)]
    };
    let line = |random: &mut fastrand::Rng| match random.usize(..10) {
        0 => "    }\n".to_owned(),
        1 => "        return None;\n".to_owned(),
        2 => format!("    {}.push({});\n", word(random), word(random)),
        3 => format!("    if {} > {} {{\n", word(random), random.usize(..1_000)),
        n => format!(
            "    let {}_{} = {}({}, {});\n",
            word(random),
            random.usize(..10_000),
            word(random),
            word(random),
            n
        ),
    };
    let mut files = Vec::new();
    for number in 0..random.usize(2..6) {
        let old: Vec<String> = (0..random.usize(20..300)).map(|_| line(random)).collect();
        let mut new = old.clone();
        for _ in 0..random.usize(2..10) {
            let at = random.usize(..=new.len());
            let end = (at + random.usize(..4)).min(new.len());
            let added: Vec<String> = (0..random.usize(1..8)).map(|_| line(random)).collect();
            new.splice(at..end, added);
        }
        let path = RepoPath::new(format!("src/part_{number}/{}.rs", word(random)));
        let side = || Some(Side { path: path.clone(), mode: FileMode::Regular, id: None });
        let content = |lines: &[String]| Some(lines.concat().into_bytes());
        let change = FileChange {
            entry: Entry { kind: ChangeKind::Modified, old: side(), new: side() },
            body: Body::between(content(&old), content(&new), Attribute::Unset),
        };
        files.extend(Shown::new(change, rules, &Policy::default()).ok().flatten());
    }
    Group { commit: None, tree: None, messages: Vec::new(), files, related: Related::default() }
}

/// A claim as it is told.
struct Told {
    file: String,
    line: Option<i64>,
    quote: String,
    /// What of the line is in the quote.
    kept: String,
    is_whole: bool,
}

impl Told {
    fn new(group: &Group, line: &Line) -> Self {
        let text = &group.files[line.file].hunks[line.hunk].lines[line.at].text;
        Self {
            file: group.files[line.file].name.clone(),
            line: Some(i64::from(line.number)),
            quote: text.clone(),
            kept: text.clone(),
            is_whole: true,
        }
    }

    fn perturbed(mut self, way: Way, group: &Group, chunk: &Chunk, line: &Line, random: &mut fastrand::Rng) -> Self {
        match way {
            Way::AsItIs => {}
            Way::LineOff => self.line = Some((i64::from(line.number) + random.i64(-30..=30)).max(1)),
            Way::NoLine => self.line = None,
            Way::DiffView => self.line = Some(i64::from(line.views[random.usize(..line.views.len())])),
            Way::PathPrefix => self.file.insert_str(0, ["a/", "b/", "./"][random.usize(..3)]),
            Way::QuotePrefix => {
                let n = line.number;
                let prefix = match random.usize(..5) {
                    0 => "+".to_owned(),
                    1 => "+ ".to_owned(),
                    2 => format!("{n}+"),
                    3 => format!("{n} | "),
                    _ => format!("{n}: "),
                };
                self.quote.insert_str(0, &prefix);
            }
            Way::WhiteSpace => {
                self.quote = match random.usize(..3) {
                    0 => self.quote.trim().replace(' ', "  "),
                    1 => self.quote.trim().replace(' ', "\t"),
                    _ => self.quote.trim().replace(", ", ",").replace(" = ", "="),
                };
            }
            Way::Truncated => {
                let whole: Vec<char> = self.quote.trim().chars().collect();
                let keep = (whole.len() * random.usize(50..95)).div_ceil(100).max(1);
                self.kept = whole[..keep].iter().collect();
                self.is_whole = keep == whole.len();
                let dots = ["", "…", "..."][random.usize(..3)];
                self.quote = format!("{}{dots}", self.kept);
            }
            Way::FirstPart => self.cut_to(0, 60),
            Way::MiddlePart => self.cut_to(20, 80),
            Way::Tail => {
                self.cut_to(40, 100);
                self.quote.insert(0, '…');
            }
            Way::Operators => {
                for operator in ["=", "==", "+", "-", "*", "<", ">", ":=", "!=", "&&", "||"] {
                    self.quote = self.quote.replace(&format!(" {operator} "), operator);
                }
            }
            Way::Typographic => {
                let quote = self.quote.trim().replace('"', "”").replace('\'', "’");
                self.quote = format!("`{quote}`");
            }
            Way::WordChanged => {
                let words: Vec<&str> =
                    self.quote.split(|c: char| !c.is_alphanumeric()).filter(|w| w.len() > 2).collect();
                if let Some(word) = (!words.is_empty()).then(|| words[random.usize(..words.len())].to_owned()) {
                    self.quote = self.quote.replacen(&word, "another", 1);
                }
            }
            Way::Neighbour => {
                let others: Vec<usize> = chunk.pieces.iter().map(|p| p.file).filter(|f| *f != line.file).collect();
                if !others.is_empty() {
                    self.file = group.files[others[random.usize(..others.len())]].name.clone();
                }
            }
            Way::Several => {
                let number = [Way::LineOff, Way::DiffView, Way::NoLine][random.usize(..3)];
                let path = [Way::PathPrefix, Way::Neighbour, Way::AsItIs][random.usize(..3)];
                let quote = [Way::QuotePrefix, Way::WhiteSpace, Way::Truncated][random.usize(..3)];
                for way in [number, path, quote] {
                    self = self.perturbed(way, group, chunk, line, random);
                }
            }
        }
        self
    }

    /// Keeps a part of the quote, in percent of its characters.
    fn cut_to(&mut self, from: usize, to: usize) {
        let whole: Vec<char> = self.quote.trim().chars().collect();
        let (from, to) = (whole.len() * from / 100, (whole.len() * to).div_ceil(100));
        self.kept = whole[from..to].iter().collect();
        self.is_whole = self.kept.chars().count() == whole.len();
        self.quote.clone_from(&self.kept);
    }

    fn outcome(self, lines: &[Line], truth: &Line, context: &Context<'_>) -> Figures {
        let kept = fold(&self.kept);
        let fits = |l: &&Line| if self.is_whole { l.folded == kept } else { l.folded.contains(&kept) };
        let unique = lines.iter().filter(fits).count() == 1;
        let claim = Claim {
            file: Some(self.file),
            line: self.line,
            quote: Some(self.quote),
            severity: "major".to_owned(),
            category: "bug".to_owned(),
            title: "A true claim".to_owned(),
            message: "It is so.".to_owned(),
            ..Claim::default()
        };
        let reply = Reply { findings: vec![claim], ..Reply::default() };
        let mut figures = Figures { unique: u32::from(unique), others: u32::from(!unique), ..Figures::default() };
        for anchored in anchor::claims(&reply, context) {
            let Anchored::Candidate(candidate) = anchored else {
                figures.unplaced += 1;
                continue;
            };
            let sealed = anchor::seal(vec![*candidate], &[], context.rules);
            let Some(finding) = sealed.findings.first() else { continue };
            let own = context.group.files[truth.file].path();
            let number = finding.lines().map(|l| l.first.get());
            if finding.file() == Some(own) && number == Some(truth.number) {
                figures.landed += u32::from(unique);
                figures.believed += u32::from(finding.confidence() >= Confidence::Medium);
                figures.others_landed += u32::from(!unique);
            } else if number.is_none() {
                // The file, and the lines that it may be.
                figures.unplaced += 1;
            } else {
                figures.elsewhere += 1;
                figures.medium += u32::from(finding.confidence() == Confidence::Medium);
                figures.high += u32::from(finding.confidence() == Confidence::High);
            }
        }
        figures
    }
}
