//! The edits that an author can make around a line without changing its effect.

use super::super::corpus::MAGIC;
use super::super::random::Random;
use super::lab::File;
use super::seed::Seed;
use claude_reviewer::request::Authority;

/// A change of a file around the line of its finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Edit {
    /// Comment lines of the language, or blank ones, above all others.
    LinesAbove(usize),
    LinesBelow(usize),
    /// The lines become the body of a function.
    Wrap,
    /// This number of blanks before each line; tabs for an odd number.
    Indent(usize),
    TrailingBlanks(usize),
    /// A comment of this number of bytes after the line.
    LongComment(usize),
    /// A comment after the line that repeats a word of it.
    DecoyComment {
        word: String,
        count: usize,
    },
    /// Statements before the line, on the same line, that are strings with a word of it.
    DecoyStatements {
        word: String,
        count: usize,
    },
    /// A value that rules exempt, in a comment after the line.
    ExemptNeighbour(usize),
    /// Comments above with a value that rules exempt, or with the line itself.
    DroppedDecoys(usize),
    /// The same line above, each time with a suppression that counts in a local review.
    SuppressedDecoys(usize),
    /// A suppression of the rule in the base, directly above the new line.
    OldSuppression,
    /// The base contains everything except the line.
    Grown,
    /// The file is renamed out of this folder.
    MovedFrom(&'static str),
    LineEnds(&'static str),
    /// NUL bytes on separate lines, or at the ends of lines.
    Nuls {
        place: usize,
        count: usize,
    },
    /// A line of bytes of all values except punctuation, above the others.
    JunkAbove {
        size: usize,
        seed: u64,
    },
    /// Bytes of all values below.
    JunkBelow {
        size: usize,
        seed: u64,
    },
    /// The first bytes of another format, on a separate line.
    Magic(&'static str),
    Mark,
    /// A line that is not UTF-8.
    NotUtf8,
    /// UTF-16 or UTF-32, with this number of lone surrogates on separate lines.
    Wide {
        encoding: Wide,
        marked: bool,
        surrogates: usize,
    },
    /// A name that also belongs to a second language.
    TwoNames(&'static str),
    /// An unknown name.
    OddName(&'static str),
    Attributes {
        pattern: &'static str,
        attributes: &'static str,
        old: bool,
    },
    Executable,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wide {
    Utf16Le,
    Utf16Be,
    Utf32Le,
    Utf32Be,
}

/// Returns values from documentation, assembled here so that the sources contain no text in the
/// form of a key.
fn exempt(index: usize) -> String {
    match index {
        0 => ["AKIA", "IOSFODNN7EXAMPLE"].concat(),
        1 => ["devstore", "account1"].concat(),
        2 => "https://demo.firebaseapp.com".to_owned(),
        3 => ["wJalrXUtnFEMI/K7MDENG/", "bPxRfiCYEXAMPLEKEY"].concat(),
        4 => "https://example.com".to_owned(),
        _ => "changeme".to_owned(),
    }
}
const EXEMPT: usize = 6;

const FORMS: &[&str] = &[
    "Dockerfile.",
    "Containerfile.",
    "Makefile.",
    "Jenkinsfile.",
    "makefile.",
    ".env.",
    ".env.prod.",
    "containerfile.dev.",
];
/// Unknown names; from [`TEXT_NAMES`] on, names of formats that are not text. In those, only
/// secrets with a distinctive form are searched.
const NAMES: &[&str] = &[
    "blob",
    ".hidden",
    "a b.unknown",
    "caf\u{e9}",
    "LICENSE",
    "data.bin",
    "picture.png",
    "x.dat",
];
const TEXT_NAMES: usize = 5;
const PATTERNS: &[&str] = &[
    "*", "**", "*.*", "?*", "[!.]*", "**/*", "{name}", "{name?}", "/{path}", "*.{ext}",
];
const ATTRIBUTES: &[&str] = &[
    "-diff",
    "binary",
    "-text -diff",
    "hide",
    "hide-again",
    "diff=none",
    "-text",
    "text=auto eol=crlf",
    "ident",
    "filter=none",
    "linguist-generated",
    "linguist-vendored",
    "merge=binary",
    "working-tree-encoding=UTF-16LE",
    "working-tree-encoding=UTF-16",
    "working-tree-encoding=ISO-8859-1",
    "working-tree-encoding=IBM037",
    "working-tree-encoding=UTF-7",
    "working-tree-encoding=no-such-encoding",
];

/// Macros that the attributes above use; git reads them only from the top of the repository.
pub const MACROS: &str = "[attr]hide -diff\n[attr]hide-again hide -text\n";
/// The policy of every repository.
pub const POLICY: &str = "ignore = [\"**/ignored/**\"]\n";

impl Edit {
    /// Draws an edit that does not change the effect of this sample; `None` if the drawn one does
    /// not suit the sample.
    pub fn draw(random: &mut Random, seed: &Seed) -> Option<Self> {
        let syntax = seed.syntax();
        let tokens = seed.tokens();
        // A comment inside a key's text would change the text.
        let trailing = syntax.trailing && !seed.rule.contains("private-key");
        let many = |random: &mut Random| *random.pick(&[1, 20, 257, 300]);
        let edit = match random.below(27) {
            0 => Self::LinesAbove(*random.pick(&[1, 7, 300])),
            1 => Self::LinesBelow(*random.pick(&[1, 7, 300])),
            // A conflict marker starts its line.
            2 | 3 if seed.rule == "conflict-marker" => return None,
            2 => syntax.function.map(|_| Self::Wrap)?,
            3 if syntax.indents => Self::Indent(*random.pick(&[1, 4, 1_100])),
            4 => Self::TrailingBlanks(*random.pick(&[1, 1_100, 17_000])),
            5 if trailing => Self::LongComment(*random.pick(&[100, 1_100, 5_000, 17_000])),
            6 if trailing && !tokens.is_empty() => Self::DecoyComment {
                word: random.pick(&tokens).clone(),
                count: many(random),
            },
            7 if syntax.statement.is_some() && !tokens.is_empty() && is_at_start(seed) => {
                Self::DecoyStatements {
                    word: random.pick(&tokens).clone(),
                    count: many(random),
                }
            }
            8 if trailing => Self::ExemptNeighbour(random.below(EXEMPT)),
            9 if syntax.comment.is_some() && random.one_in(8) => Self::DroppedDecoys(1_001),
            9 if syntax.comment.is_some() => Self::DroppedDecoys(*random.pick(&[1, 30])),
            10 if syntax.trailing && random.one_in(8) => Self::SuppressedDecoys(1_001),
            10 if syntax.trailing => Self::SuppressedDecoys(*random.pick(&[1, 30])),
            11 if syntax.comment.is_some() => Self::OldSuppression,
            12 => Self::Grown,
            13 => Self::MovedFrom("ignored"),
            14 if !is_test(seed) => Self::MovedFrom("tests"),
            // Git ends the lines of these files only with line feeds, so another line end makes
            // another file.
            15 if ["conflict-marker", "attributes-hide-text"].contains(&seed.rule.as_str()) => {
                Self::LineEnds("\r\n")
            }
            15 => Self::LineEnds(random.word(&["\r\n", "\r"])),
            16 => Self::Nuls {
                place: random.below(4),
                count: *random.pick(&[1, 3, 5_000]),
            },
            17 => Self::JunkAbove {
                size: *random.pick(&[9, 600, 9_000]),
                seed: random.below(1 << 30) as u64,
            },
            18 => Self::JunkBelow {
                size: *random.pick(&[9, 600, 9_000]),
                seed: random.below(1 << 30) as u64,
            },
            19 => Self::Magic(random.pick(MAGIC).0),
            20 => Self::Mark,
            21 => Self::NotUtf8,
            22 => Self::Wide {
                encoding: *random.pick(&[
                    Wide::Utf16Le,
                    Wide::Utf16Be,
                    Wide::Utf32Le,
                    Wide::Utf32Be,
                ]),
                marked: random.one_in(2),
                surrogates: *random.pick(&[0, 0, 1, 40]),
            },
            23 if !seed.extension().is_empty() && !seed.by_name => {
                Self::TwoNames(random.word(FORMS))
            }
            24 if seed.distinct => Self::OddName(random.word(if seed.marked {
                NAMES
            } else {
                &NAMES[..TEXT_NAMES]
            })),
            25 if !seed.by_name => Self::Attributes {
                pattern: random.word(PATTERNS),
                attributes: random.word(ATTRIBUTES),
                old: random.one_in(3),
            },
            26 => Self::Executable,
            _ => return None,
        };
        Some(edit)
    }

    /// Returns the name of the class; a case has at most one edit of each class.
    pub fn class(&self) -> &'static str {
        match self {
            Self::LinesAbove(_) => "lines-above",
            Self::LinesBelow(_) => "lines-below",
            Self::Wrap => "wrap",
            Self::Indent(_) => "indent",
            Self::TrailingBlanks(_) => "trailing-blanks",
            Self::LongComment(_) => "long-comment",
            Self::DecoyComment { .. } => "decoy-comment",
            Self::DecoyStatements { .. } => "decoy-statements",
            Self::ExemptNeighbour(_) => "exempt-neighbour",
            Self::DroppedDecoys(_) => "dropped-decoys",
            Self::SuppressedDecoys(_) => "suppressed-decoys",
            Self::OldSuppression => "old-suppression",
            Self::Grown => "grown",
            Self::MovedFrom(_) => "moved",
            Self::LineEnds(_) => "line-ends",
            Self::Nuls { .. } => "nuls",
            Self::JunkAbove { .. } => "junk-above",
            Self::JunkBelow { .. } => "junk-below",
            Self::Magic(_) => "magic",
            Self::Mark => "mark",
            Self::NotUtf8 => "not-utf8",
            Self::Wide { .. } => "wide",
            Self::TwoNames(_) => "two-names",
            Self::OddName(_) => "odd-name",
            Self::Attributes { .. } => "attributes",
            Self::Executable => "executable",
        }
    }

    /// Returns the order in which the edit is applied, independent of the order in which the edits
    /// were drawn.
    fn stage(&self) -> u8 {
        match self {
            Self::DecoyComment { .. }
            | Self::ExemptNeighbour(_)
            | Self::LongComment(_)
            | Self::TrailingBlanks(_) => 0,
            Self::DecoyStatements { .. } => 1,
            Self::SuppressedDecoys(_) | Self::OldSuppression => 2,
            Self::Wrap | Self::Indent(_) => 3,
            Self::DroppedDecoys(_) | Self::LinesAbove(_) | Self::LinesBelow(_) => 4,
            Self::LineEnds(_) => 5,
            Self::Nuls { .. } | Self::NotUtf8 | Self::JunkBelow { .. } | Self::JunkAbove { .. } => {
                6
            }
            Self::Magic(_) => 7,
            Self::Mark | Self::Wide { .. } => 8,
            Self::TwoNames(_) | Self::OddName(_) => 9,
            Self::Attributes { .. } | Self::Executable | Self::Grown | Self::MovedFrom(_) => 10,
        }
    }

    /// Returns true if the two edits cannot be combined, or undo each other.
    fn clashes(&self, other: &Self) -> bool {
        let writes_bytes = |e: &Self| {
            matches!(
                e,
                Self::Nuls { .. } | Self::NotUtf8 | Self::JunkAbove { .. } | Self::JunkBelow { .. }
            )
        };
        let starts_file = |e: &Self| matches!(e, Self::Magic(_) | Self::Mark | Self::Wide { .. });
        let names_base =
            |e: &Self| matches!(e, Self::Grown | Self::MovedFrom(_) | Self::OldSuppression);
        let is_wide = |e: &Self| matches!(e, Self::Wide { .. });
        let both = |is: &dyn Fn(&Self) -> bool| is(self) && is(other);
        self.class() == other.class()
            || both(&starts_file)
            || both(&|e| matches!(e, Self::Grown | Self::MovedFrom(_) | Self::SuppressedDecoys(_)))
            || both(&|e| matches!(e, Self::OldSuppression | Self::Grown | Self::SuppressedDecoys(_)))
            || both(&|e| matches!(e, Self::TwoNames(_) | Self::OddName(_)))
            || both(&|e| is_wide(e) || writes_bytes(e)) && (is_wide(self) || is_wide(other))
            // In a file of one line, a suppression covers everything.
            || both(&|e| matches!(e, Self::LineEnds("\r") | Self::SuppressedDecoys(_) | Self::OldSuppression))
            // In a local review, a suppression counts for the lines of a file, not for one that
            // moved.
            || (matches!(self, Self::SuppressedDecoys(_)) && names_base(other))
            || (matches!(other, Self::SuppressedDecoys(_)) && names_base(self))
    }
}

/// Returns true if the sample's own path is that of a test, so that a move out of a test folder has
/// no effect.
fn is_test(seed: &Seed) -> bool {
    seed.path.contains("test") || seed.path.contains("spec")
}

/// Returns true if another statement may precede the line: the line is the only one, and not a
/// comment, an attribute or a statement that must begin its line.
fn is_at_start(seed: &Seed) -> bool {
    let begins = |word: &&str| seed.text.trim_start().starts_with(*word);
    seed.text.lines().count() == 1 && !["#", "//", "[", "@", "assert"].iter().any(begins)
}

/// A file during its edits.
struct Draft {
    lines: Vec<Vec<u8>>,
    /// Index of the line of the finding.
    at: usize,
    line_end: &'static str,
    /// Bytes before the first line and after the last one.
    above: Vec<u8>,
    below: Vec<u8>,
}

/// A sample with edits, and the required result of the review.
#[derive(Clone, Debug)]
pub struct Case {
    pub seed: Seed,
    pub edits: Vec<Edit>,
    pub base: Vec<File>,
    pub head: Vec<File>,
    /// Path of the file with the line.
    pub path: String,
    /// The 1-based lines on which the finding may be.
    pub line: u32,
    pub authority: Authority,
}

impl Case {
    /// Draws a sample and one to four edits.
    pub fn draw(random: &mut Random, seeds: &[Seed], folder: &str) -> Self {
        let seed = random.pick(seeds);
        let mut edits: Vec<Edit> = Vec::new();
        let count = 1 + random.below(4);
        for _ in 0..40 {
            if edits.len() == count {
                break;
            }
            let Some(edit) = Edit::draw(random, seed) else {
                continue;
            };
            if !edits.iter().any(|e| e.clashes(&edit) || edit.clashes(e)) {
                edits.push(edit);
            }
        }
        Self::of(seed, &edits, folder)
    }

    /// Applies the edits to the sample, in a separate folder.
    pub fn of(seed: &Seed, edits: &[Edit], folder: &str) -> Self {
        let mut edits = edits.to_vec();
        edits.sort_by_key(Edit::stage);
        let lines = seed
            .text
            .split_inclusive('\n')
            .map(|l| l.trim_end_matches('\n').as_bytes().to_vec());
        let mut draft = Draft {
            lines: lines.collect(),
            at: seed.line as usize - 1,
            line_end: "\n",
            above: Vec::new(),
            below: Vec::new(),
        };
        for edit in &edits {
            draft.apply(edit, seed);
        }
        let mut case = Self {
            path: format!("{folder}/{}", seed.path),
            line: draft.line(),
            seed: seed.clone(),
            base: Vec::new(),
            head: Vec::new(),
            authority: Authority::Base,
            edits: Vec::new(),
        };
        for edit in &edits {
            case.rename(edit, folder);
        }
        case.commit(&draft, &edits, folder);
        case.edits = edits;
        case
    }

    fn rename(&mut self, edit: &Edit, folder: &str) {
        let dir = self
            .path
            .rfind('/')
            .map_or(folder, |i| &self.path[..i])
            .to_owned();
        match edit {
            Edit::TwoNames(form) => self.path = format!("{dir}/{form}{}", self.seed.extension()),
            Edit::OddName(name) => self.path = format!("{dir}/{name}"),
            _ => {}
        }
    }

    /// Creates the files of both sides.
    fn commit(&mut self, draft: &Draft, edits: &[Edit], folder: &str) {
        let wide = edits
            .iter()
            .find(|e| matches!(e, Edit::Wide { .. } | Edit::Mark));
        let content = encode(draft.bytes(None), wide);
        let without = encode(draft.bytes(Some(draft.at)), wide);
        let file = |path: &str, content: &[u8]| File {
            path: path.to_owned(),
            content: content.to_vec(),
            executable: edits.contains(&Edit::Executable),
        };
        self.head.push(file(&self.path, &content));
        let below = self.path[folder.len() + 1..].to_owned();
        let has_old = edits
            .iter()
            .any(|e| matches!(e, Edit::Grown | Edit::OldSuppression));
        for edit in edits {
            match edit {
                Edit::MovedFrom(dir) => {
                    let old = if has_old { &without } else { &content };
                    self.base
                        .push(file(&format!("{folder}/{dir}/{below}"), old));
                }
                Edit::Attributes {
                    pattern,
                    attributes,
                    old,
                } => {
                    let name = below.rsplit('/').next().unwrap_or_default();
                    // A character of the name, replaced by git's wildcard `?`.
                    let any = name
                        .char_indices()
                        .map(|(i, c)| if i == 1 { '?' } else { c })
                        .collect::<String>();
                    let ext = name.rsplit('.').next().unwrap_or_default();
                    let pattern = pattern.replace("{name}", name).replace("{name?}", &any);
                    let pattern = pattern.replace("{path}", &below).replace("{ext}", ext);
                    let line = format!("\"{pattern}\" {attributes}\n");
                    let attributes = file(&format!("{folder}/.gitattributes"), line.as_bytes());
                    let attributes = File {
                        executable: false,
                        ..attributes
                    };
                    self.head.push(attributes.clone());
                    if *old {
                        self.base.push(attributes);
                    }
                }
                Edit::SuppressedDecoys(_) => self.authority = Authority::Worktree,
                _ => {}
            }
        }
        if has_old && !edits.iter().any(|e| matches!(e, Edit::MovedFrom(_))) {
            self.base.push(file(&self.path, &without));
        }
    }
}

impl Draft {
    fn apply(&mut self, edit: &Edit, seed: &Seed) {
        let syntax = seed.syntax();
        let comment = syntax.comment.unwrap_or_default();
        let this = self.at;
        match edit {
            Edit::LinesAbove(n) => {
                let note = if syntax.comment.is_some() {
                    format!("{comment}a note")
                } else {
                    String::new()
                };
                let from = self.first();
                self.insert(from, vec![note.into_bytes(); *n]);
            }
            Edit::LinesBelow(n) => self.lines.extend(vec![Vec::new(); *n]),
            Edit::Wrap => {
                let (open, close) = syntax.function.unwrap_or_default();
                self.lines
                    .iter_mut()
                    .for_each(|l| drop(l.splice(0..0, *b"    ")));
                self.lines.push(close.into());
                let from = self.first();
                self.insert(from, vec![open.into()]);
            }
            Edit::Indent(n) => {
                let blanks = if n % 2 == 1 {
                    "\t".repeat(*n)
                } else {
                    " ".repeat(*n)
                };
                self.lines
                    .iter_mut()
                    .for_each(|l| drop(l.splice(0..0, blanks.bytes())));
            }
            Edit::TrailingBlanks(n) => self.lines[this].extend(" ".repeat(*n).bytes()),
            Edit::LongComment(n) => {
                self.lines[this].extend(format!(" {comment}{}", "word ".repeat(n / 5)).bytes());
            }
            Edit::DecoyComment { word, count } => {
                self.lines[this]
                    .extend(format!(" {comment}{}", format!("{word} ").repeat(*count)).bytes());
            }
            Edit::DecoyStatements { word, count } => {
                let (open, close) = syntax.statement.unwrap_or_default();
                let decoys = format!("{open}{word}{close}").repeat(*count);
                self.lines[this].splice(0..0, decoys.bytes());
            }
            Edit::ExemptNeighbour(i) => {
                self.lines[this].extend(format!(" {comment}see {}", exempt(*i)).bytes());
            }
            Edit::DroppedDecoys(n) => {
                let decoy = match seed.secret {
                    true => format!("{comment}for example {}", exempt(0)).into_bytes(),
                    false => [comment.as_bytes(), &self.lines[this]].concat(),
                };
                let from = self.first();
                self.insert(from, vec![decoy; *n]);
            }
            Edit::SuppressedDecoys(n) => {
                let directive = format!(" {comment}claude-reviewer: ignore[{}] known", seed.rule);
                let decoy = [&self.lines[this][..], directive.as_bytes()].concat();
                let mut decoys = vec![decoy; *n];
                decoys.push(Vec::new());
                self.insert(this, decoys);
            }
            Edit::OldSuppression => {
                let directive = format!("{comment}claude-reviewer: ignore[{}] known", seed.rule);
                self.insert(this, vec![directive.into_bytes()]);
            }
            Edit::LineEnds(end) => self.line_end = end,
            Edit::Nuls { place, count } => {
                let nuls = vec![0; *count];
                match place {
                    0 => self.above.extend([&nuls[..], b"\n"].concat()),
                    1 => self.below.extend(nuls),
                    2 => self.lines[this].extend([b" ", &nuls[..nuls.len().min(3)]].concat()),
                    _ => self.lines.iter_mut().for_each(|l| l.push(0)),
                }
            }
            Edit::JunkAbove { size, seed } => {
                let mut junk = Random::of_case(*seed, 0).bytes(*size);
                junk.retain(|b| !super::super::check::is_syntax(*b));
                junk.push(b'\n');
                self.above.extend(junk);
            }
            Edit::JunkBelow { size, seed } => {
                self.below.extend(Random::of_case(*seed, 1).bytes(*size));
            }
            Edit::Magic(name) => {
                let magic = MAGIC
                    .iter()
                    .find(|(n, _)| n == name)
                    .map_or(&[][..], |(_, bytes)| bytes);
                self.above.splice(0..0, [magic, b"\n"].concat());
            }
            Edit::NotUtf8 => self.below.extend(b"\xff\xfe\xfd \xc3(\n"),
            _ => {}
        }
    }

    /// Returns the index of the first line before which another may be inserted.
    fn first(&self) -> usize {
        let first = &self.lines[0];
        usize::from(first.starts_with(b"#!") || first.starts_with(b"<?"))
    }

    fn insert(&mut self, index: usize, lines: Vec<Vec<u8>>) {
        if index <= self.at {
            self.at += lines.len();
        }
        self.lines.splice(index..index, lines);
    }

    /// Returns the 1-based number of the line of the finding.
    fn line(&self) -> u32 {
        let above = self.above.iter().filter(|b| **b == b'\n').count();
        let in_end = self.line_end.bytes().filter(|b| *b == b'\n').count();
        (above + self.at * in_end) as u32 + 1
    }

    /// Returns the file without one of its lines.
    fn bytes(&self, left_out: Option<usize>) -> Vec<u8> {
        let mut out = self.above.clone();
        for (_, line) in self
            .lines
            .iter()
            .enumerate()
            .filter(|(i, _)| Some(*i) != left_out)
        {
            out.extend_from_slice(line);
            out.extend_from_slice(self.line_end.as_bytes());
        }
        out.extend_from_slice(&self.below);
        out
    }
}

/// Encodes text as the edit requires.
pub fn encode(text: Vec<u8>, edit: Option<&Edit>) -> Vec<u8> {
    let (encoding, marked, surrogates) = match edit {
        Some(Edit::Mark) => return [b"\xef\xbb\xbf", &text[..]].concat(),
        Some(Edit::Wide {
            encoding,
            marked,
            surrogates,
        }) => (*encoding, *marked, *surrogates),
        _ => return text,
    };
    let text = String::from_utf8_lossy(&text).into_owned();
    let mark = if marked { "\u{feff}" } else { "" };
    let mut out = Vec::new();
    let unit = |out: &mut Vec<u8>, c: char| match encoding {
        Wide::Utf16Le => c
            .encode_utf16(&mut [0; 2])
            .iter()
            .for_each(|u| out.extend(u.to_le_bytes())),
        Wide::Utf16Be => c
            .encode_utf16(&mut [0; 2])
            .iter()
            .for_each(|u| out.extend(u.to_be_bytes())),
        Wide::Utf32Le => out.extend(u32::from(c).to_le_bytes()),
        Wide::Utf32Be => out.extend(u32::from(c).to_be_bytes()),
    };
    mark.chars()
        .chain(text.chars())
        .for_each(|c| unit(&mut out, c));
    for _ in 0..surrogates {
        match encoding {
            Wide::Utf16Le => out.extend(0xd801u16.to_le_bytes()),
            Wide::Utf16Be => out.extend(0xd801u16.to_be_bytes()),
            Wide::Utf32Le => out.extend(0xd801u32.to_le_bytes()),
            Wide::Utf32Be => out.extend(0xd801u32.to_be_bytes()),
        }
        unit(&mut out, '\n');
    }
    out
}
