//! Claims that repeat an added line with one distortion.

use super::{Line, Way, text};
use claude_reviewer::ai::claim::Claim;
use claude_reviewer::ai::material::Group;
use claude_reviewer::ai::plan::Chunk;

/// Characters and tokens of a part of a line that identify the line, at least.
const PART: (usize, usize) = (8, 2);

/// A distorted claim.
pub(super) struct DistortedClaim {
    pub(super) file: String,
    /// Position of the file in the group.
    pub(super) at: usize,
    pub(super) line: Option<i64>,
    pub(super) quote: String,
    /// The part of the line that is in the quote.
    pub(super) kept: String,
    pub(super) is_whole: bool,
}

impl DistortedClaim {
    /// Returns the undistorted claim about a line.
    pub(super) fn new(group: &Group, line: &Line) -> Self {
        let text = text(group, line);
        Self {
            file: group.files[line.file].name.clone(),
            at: line.file,
            line: Some(i64::from(line.number)),
            quote: text.to_owned(),
            kept: text.to_owned(),
            is_whole: true,
        }
    }

    /// Distorts the claim in one way.
    pub(super) fn perturbed(
        mut self,
        way: Way,
        group: &Group,
        chunk: &Chunk,
        line: &Line,
        random: &mut fastrand::Rng,
    ) -> Self {
        match way {
            Way::AsItIs => {}
            Way::LineOff => {
                self.line = Some((i64::from(line.number) + random.i64(-30..=30)).max(1));
            }
            Way::NoLine => self.line = None,
            Way::DiffView => {
                self.line = Some(i64::from(line.views[random.usize(..line.views.len())]));
            }
            Way::PathPrefix => self
                .file
                .insert_str(0, ["a/", "b/", "./"][random.usize(..3)]),
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
                let dots = ["", "…", "..."][random.usize(..3)];
                self.is_whole = keep == whole.len() && dots.is_empty();
                self.quote = format!("{}{dots}", self.kept);
            }
            Way::FirstPart => self.cut_to(0, 60),
            Way::MiddlePart => self.cut_to(20, 80),
            Way::Tail => {
                self.cut_to(40, 100);
                self.quote.insert(0, '…');
                // A quote with an ellipsis counts as a part, even if nothing is missing.
                self.is_whole = false;
            }
            Way::Operators => {
                // A leading `-` is a list item, not an operator.
                let start =
                    self.quote.len() - self.quote.trim_start().trim_start_matches("- ").len();
                let mut rest = self.quote.split_off(start);
                for operator in ["=", "==", "+", "-", "*", "<", ">", ":=", "!=", "&&", "||"] {
                    rest = rest.replace(&format!(" {operator} "), operator);
                }
                self.quote.push_str(&rest);
            }
            Way::Typographic => {
                let quote = self.quote.trim().replace('"', "”").replace('\'', "’");
                self.quote = format!("`{quote}`");
            }
            Way::WordChanged => {
                let words: Vec<&str> = self
                    .quote
                    .split(|c: char| !c.is_alphanumeric())
                    .filter(|w| w.len() > 2)
                    .collect();
                if let Some(word) =
                    (!words.is_empty()).then(|| words[random.usize(..words.len())].to_owned())
                {
                    self.quote = self.quote.replacen(&word, "another", 1);
                }
            }
            Way::Neighbour => {
                let others: Vec<usize> = chunk
                    .pieces
                    .iter()
                    .map(|p| p.file)
                    .filter(|f| *f != line.file)
                    .collect();
                if !others.is_empty() {
                    self.at = others[random.usize(..others.len())];
                    self.file = group.files[self.at].name.clone();
                }
            }
            Way::Identical | Way::IdenticalQuoted | Way::Unchanged | Way::Caller => {}
            Way::Several | Way::SeveralElsewhere => {
                let number = [Way::LineOff, Way::DiffView, Way::NoLine][random.usize(..3)];
                let path = match way {
                    Way::SeveralElsewhere => Way::Neighbour,
                    _ => [Way::PathPrefix, Way::AsItIs][random.usize(..2)],
                };
                let quote = [Way::QuotePrefix, Way::WhiteSpace, Way::Truncated][random.usize(..3)];
                for way in [number, path, quote] {
                    self = self.perturbed(way, group, chunk, line, random);
                }
            }
        }
        self
    }

    /// Returns the claimed line number, if it is one.
    pub(super) fn number(&self) -> Option<u32> {
        self.line.and_then(|n| u32::try_from(n).ok())
    }

    /// Returns true if the quote matches a line. Both are without white space.
    pub(super) fn fits(&self, line: &str, kept: &str) -> bool {
        if self.is_whole {
            line == kept
        } else {
            line.contains(kept)
        }
    }

    /// Keeps a part of the quote, by percentages of its characters.
    fn cut_to(&mut self, from: usize, to: usize) {
        let whole: Vec<char> = self.quote.trim().chars().collect();
        let (from, to) = (whole.len() * from / 100, (whole.len() * to).div_ceil(100));
        self.kept = whole[from..to].iter().collect();
        self.is_whole = self.kept.chars().count() == whole.len();
        self.quote.clone_from(&self.kept);
    }

    /// Returns true if a part of a line is long enough to identify the line.
    pub(super) fn is_long(&self) -> bool {
        let kept = self.kept.split_whitespace().collect::<Vec<_>>().join(" ");
        let (mut tokens, mut previous) = (0, ' ');
        for c in kept.chars() {
            let kind = if c.is_alphanumeric() || c == '_' {
                'a'
            } else {
                c
            };
            tokens += usize::from(kind != ' ' && kind != previous);
            previous = kind;
        }
        kept.chars().count() >= PART.0 && tokens >= PART.1
    }

    /// Returns the claim in the form of a reply.
    pub(super) fn claim(self) -> Claim {
        Claim {
            file: Some(self.file),
            line: self.line,
            quote: Some(self.quote),
            severity: "major".to_owned(),
            category: "bug".to_owned(),
            title: "A true claim".to_owned(),
            message: "It is so.".to_owned(),
            ..Claim::default()
        }
    }
}
