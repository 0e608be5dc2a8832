//! The content that models may receive: the change with every secret replaced and every hidden
//! character visible.
//!
//! Plan, prompt and anchor all use these lines, so that a quote is compared with exactly the text
//! that was sent.

use super::kept::{PromptTreatment, sight};
use super::redact::{self, Sieve};
use super::related::excerpt::Related;
use super::section::Language;
use crate::diff::{
    FileChange, Hunk, HunkLine, LineKind, LineNo, ObjectId, RepoPath, Text, TextChange,
    trim_line_end,
};
use crate::git::State;
use crate::policy::Policy;
use crate::rules::RuleSet;
use crate::symbols::{Cache, Symbols};
use crate::verdict::Skip;
use std::ops::Range;
use std::sync::Arc;

/// Files of one comparison: the net change, or one commit of a range.
#[derive(Debug)]
pub struct Group {
    /// Commit of a range that the files belong to. It is recorded in findings.
    pub commit: Option<ObjectId>,
    /// The tree under review for tools; `None` for a patch or files outside a repository.
    pub tree: Option<State>,
    /// Commit messages of the change, oldest first, redacted.
    pub messages: Vec<String>,
    pub files: Vec<Shown>,
    /// Unchanged code that helps to judge the change.
    pub related: Related,
}

/// A changed file in the form that models receive.
#[derive(Debug)]
pub struct Shown {
    /// The change itself, unredacted. It is never rendered, only compared with.
    pub change: FileChange,
    /// Redacted path.
    pub name: String,
    /// Redacted path on the old side, if it differs.
    pub old_name: Option<String>,
    /// One entry for each hunk of the change, in order.
    pub hunks: Vec<ShownHunk>,
    /// Guidelines of the policy for this file, in order.
    pub guidelines: Vec<String>,
    /// Rule IDs of the secrets that were replaced, without duplicates, in order of appearance.
    pub redacted: Vec<String>,
    /// Added lines that were truncated, because they are longer than [`MAX_ADDED`] bytes. No model
    /// reviews the rest.
    pub cut: Vec<LineNo>,
    /// Definitions and uses on both sides.
    pub symbols: SideSymbols,
}

/// The symbols of both sides of a change. `None` if the content of the side is incomplete, or its
/// language has no grammar.
#[derive(Debug, Default)]
pub struct SideSymbols {
    pub old: Option<Arc<Symbols>>,
    pub new: Option<Arc<Symbols>>,
}

impl SideSymbols {
    fn of(change: &FileChange, known: &Cache) -> Self {
        let Some(text) = change.text() else {
            return Self::default();
        };
        let [old, new] =
            [&text.old, &text.new].map(|side| known.read(change.path(), side.whole()?));
        Self { old, new }
    }
}

/// A hunk in the form that models receive.
#[derive(Debug)]
pub struct ShownHunk {
    /// The enclosing function or heading, redacted; empty if there is none.
    pub section: String,
    pub lines: Vec<ShownLine>,
}

/// A line of a hunk in the form that models receive.
#[derive(Debug)]
pub struct ShownLine {
    pub kind: LineKind,
    pub old: Option<LineNo>,
    pub new: Option<LineNo>,
    /// Text without its line end, with secrets replaced and hidden characters as `\u{202e}`. At
    /// most [`MAX_LINE`] bytes, with a note if it is truncated. A longer added line is divided into
    /// several consecutive entries with the same number.
    pub text: String,
}

impl ShownLine {
    /// Builds the entry for a line, or for one piece of it.
    fn of(line: &HunkLine<'_>, text: String) -> Self {
        Self {
            kind: line.kind,
            old: line.old,
            new: line.new,
            text,
        }
    }
}

/// Bytes of a line, or of one piece of an added line, at most.
pub const MAX_LINE: usize = 2_000;
/// Bytes of all pieces of an added line, at most.
pub const MAX_ADDED: usize = 64 << 10;

impl Shown {
    /// Renders a changed file for models. Returns `None` if only names or modes changed.
    ///
    /// Scans both sides as a whole, because a secret may start outside a hunk. The time is linear
    /// in their size.
    ///
    /// # Errors
    ///
    /// Returns the reason why the file is excluded from prompts; see [`sight`].
    pub fn new(change: FileChange, rules: &RuleSet, policy: &Policy) -> Result<Option<Self>, Skip> {
        Self::marked(change, None, rules, policy, &Cache::default())
    }

    /// Like [`Shown::new`], with the value of `linguist-generated` for the path in a trusted state,
    /// and the symbols that the run has cached.
    ///
    /// # Errors
    ///
    /// As [`Shown::new`].
    pub fn marked(
        change: FileChange,
        generated: Option<bool>,
        rules: &RuleSet,
        policy: &Policy,
        known: &Cache,
    ) -> Result<Option<Self>, Skip> {
        match sight(&change, rules, generated) {
            PromptTreatment::Kept(skip) => return Err(skip),
            PromptTreatment::Nothing => return Ok(None),
            PromptTreatment::Shown => {}
        }
        let mut redacted = Vec::new();
        let mut cut = Vec::new();
        let symbols = SideSymbols::of(&change, known);
        let hunks = match change.text() {
            Some(text) => {
                Renderer::new(&change, text, &symbols, rules).hunks(&mut redacted, &mut cut)
            }
            None => Vec::new(),
        };
        let guidelines = policy.guidelines_for(change.path());
        let guidelines = guidelines
            .map(|g| redact::text(rules, g.text.trim().as_bytes()).text)
            .collect();
        let name = redact::path(rules, change.path());
        let old = change
            .entry
            .old
            .as_ref()
            .filter(|old| old.path != *change.path());
        let old_name = old.map(|old| redact::path(rules, &old.path));
        Ok(Some(Self {
            change,
            name,
            old_name,
            hunks,
            guidelines,
            redacted,
            cut,
            symbols,
        }))
    }

    /// Returns the path on the new side, or on the old side for a deletion.
    pub fn path(&self) -> &RepoPath {
        self.change.path()
    }
}

/// A text in addition to the change: the team's conventions, a design document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Document {
    /// Name in citations: the path from the root of the repository, or the name that the user gave.
    pub name: String,
    /// Redacted text.
    pub text: String,
    /// Folder that it applies to (`CLAUDE.md` of a sub-project); empty for the whole repository.
    pub folder: Vec<u8>,
}

/// Renders the lines of a change, hunk by hunk.
struct Renderer<'t, 'r> {
    text: &'t TextChange,
    language: &'static Language,
    old: RenderedSide<'t, 'r>,
    new: RenderedSide<'t, 'r>,
    /// True if the line ends differ, so that they are included.
    ends_differ: bool,
}

/// One side of a change, with the secrets in its current run.
struct RenderedSide<'t, 'r> {
    rules: &'r RuleSet,
    text: &'t Text,
    /// The current run: the whole file, or a part that a patch contains.
    run: Option<(&'t [u8], Sieve<'t, 'r>)>,
    /// Position up to which sections were searched for, and the last section found.
    searched: usize,
    section: Option<Range<usize>>,
    /// Symbols of the whole file, if its language has a grammar.
    symbols: Option<&'t Symbols>,
    /// Line number at `searched`.
    line: u32,
}

impl<'t, 'r> RenderedSide<'t, 'r> {
    fn new(rules: &'r RuleSet, text: &'t Text, symbols: Option<&'t Symbols>) -> Self {
        Self {
            rules,
            text,
            run: None,
            searched: 0,
            section: None,
            symbols,
            line: 1,
        }
    }

    /// Makes the run that contains a part of the text the current one. Returns the position of the
    /// part in it.
    fn enter(&mut self, part: &'t [u8]) -> Option<usize> {
        let (run, at) = self.text.around(part)?;
        if self
            .run
            .as_ref()
            .is_none_or(|(known, _)| !std::ptr::eq(*known, run))
        {
            self.run = Some((run, Sieve::new(self.rules, run)));
            (self.searched, self.section, self.line) = (0, None, 1);
        }
        Some(at)
    }

    fn write(&mut self, part: &'t [u8], out: &mut String, kinds: &mut Vec<String>) {
        if let Some(at) = self.enter(part)
            && let Some((_, sieve)) = &self.run
        {
            sieve.write(at..at + part.len(), out, kinds);
        }
    }

    /// Finds the section of a hunk. `part` holds its lines, and `about` is the offset of its first
    /// changed line.
    fn section(&mut self, part: &'t [u8], about: u32, language: &Language) -> String {
        let mut out = String::new();
        let Some(at) = self.enter(part) else {
            return out;
        };
        let Some((run, sieve)) = &self.run else {
            return out;
        };
        // The lines above the previous hunk are already searched.
        let fresh = self.searched.min(at)..at;
        self.line += memchr::memchr_iter(b'\n', &run[fresh.clone()]).count() as u32;
        self.searched = at;
        // If no definition contains the hunk, use git's default rule in every language.
        let language = if self.symbols.is_some() {
            Language::any()
        } else {
            language
        };
        self.section = language.find(run, fresh).or(self.section.take());
        let scope = self
            .symbols
            .and_then(|s| s.heading_of(self.line, self.line + about));
        if let Some(section) = scope.or_else(|| self.section.clone()) {
            sieve.write(section, &mut out, &mut Vec::new());
        }
        out
    }
}

impl<'t, 'r> Renderer<'t, 'r> {
    fn new(
        change: &FileChange,
        text: &'t TextChange,
        symbols: &'t SideSymbols,
        rules: &'r RuleSet,
    ) -> Self {
        let mut ends = text
            .added()
            .chain(text.removed())
            .map(|b| first_line(b.text).ends_with(b"\r\n"));
        let first = ends.next();
        Self {
            text,
            language: Language::of(change.path()),
            ends_differ: ends.any(|end| Some(end) != first),
            old: RenderedSide::new(rules, &text.old, symbols.old.as_deref()),
            new: RenderedSide::new(rules, &text.new, symbols.new.as_deref()),
        }
    }

    fn hunks(mut self, redacted: &mut Vec<String>, cut: &mut Vec<LineNo>) -> Vec<ShownHunk> {
        self.text
            .hunks
            .iter()
            .map(|hunk| self.hunk(hunk, redacted, cut))
            .collect()
    }

    fn hunk(
        &mut self,
        hunk: &'t Hunk,
        redacted: &mut Vec<String>,
        cut: &mut Vec<LineNo>,
    ) -> ShownHunk {
        // Use the old side for a hunk that only deletes, and the new side otherwise.
        let (side, lines) = if hunk.new.count > 0 {
            (&mut self.new, &hunk.new)
        } else {
            (&mut self.old, &hunk.old)
        };
        let section = match side.text.whole() {
            Some(_) => side.section(
                side.text.slice(lines),
                first_change(self.text, hunk),
                self.language,
            ),
            None => redact::text(side.rules, &hunk.section).text,
        };
        let mut lines = Vec::new();
        for line in self.text.lines(hunk) {
            if !self.line(&line, redacted, &mut lines) {
                cut.extend(line.new);
            }
        }
        ShownHunk { section, lines }
    }

    /// Appends a line. Returns false if an added line was truncated.
    fn line(
        &mut self,
        line: &HunkLine<'t>,
        redacted: &mut Vec<String>,
        out: &mut Vec<ShownLine>,
    ) -> bool {
        let bytes = trim_line_end(line.text);
        let side = if line.kind == LineKind::Removed {
            &mut self.old
        } else {
            &mut self.new
        };
        let mut text = String::with_capacity(bytes.len());
        side.write(bytes, &mut text, redacted);
        let is_added = line.kind == LineKind::Added;
        let is_whole =
            !shorten(&mut text, if is_added { MAX_ADDED } else { MAX_LINE }) || !is_added;
        if self.ends_differ && line.kind != LineKind::Context && line.text.ends_with(b"\r\n") {
            text.push_str("\\u{d}");
        }
        let mut rest = &text[..];
        while is_added && rest.len() > MAX_LINE {
            let (piece, after) = rest.split_at(piece_end(rest));
            out.push(ShownLine::of(line, piece.to_owned()));
            rest = after;
        }
        out.push(ShownLine::of(
            line,
            if rest.len() == text.len() {
                text
            } else {
                rest.to_owned()
            },
        ));
        is_whole
    }
}

/// Returns the number of lines between the start of a hunk and its first change: an added line, or
/// the line before a removed one.
fn first_change(text: &TextChange, hunk: &Hunk) -> u32 {
    let mut before = 0;
    let mut is_removal = false;
    for line in text.lines(hunk) {
        match line.kind {
            LineKind::Added => return before,
            LineKind::Removed => is_removal = true,
            LineKind::Context if is_removal => break,
            LineKind::Context => before += 1,
        }
    }
    before.saturating_sub(1)
}

fn first_line(text: &[u8]) -> &[u8] {
    memchr::memchr(b'\n', text).map_or(text, |i| &text[..=i])
}

/// Truncates a line that is longer than `most` bytes, and appends a note. Returns true if it was
/// truncated.
fn shorten(text: &mut String, most: usize) -> bool {
    const ROOM: usize = 40;
    let is_long = text.len() > most;
    if is_long {
        let end = text.floor_char_boundary(most - ROOM);
        let rest = text.len() - end;
        text.truncate(end);
        text.push_str(&format!("… [{rest} more bytes]"));
    }
    is_long
}

/// Returns the end of the first piece of a long line, preferably at the end of a word.
fn piece_end(text: &str) -> usize {
    const NEAR: usize = 200;
    let most = text.floor_char_boundary(MAX_LINE);
    let near = text.floor_char_boundary(most - NEAR);
    let word = text[near..most].rfind(|c: char| c.is_ascii_whitespace() || matches!(c, ';' | ','));
    word.map_or(most, |i| near + i + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diff::{Attribute, Body, ChangeKind, Entry, FileMode, Side as DiffSide, patch};
    use crate::policy::RulesPolicy;
    use crate::rules::secret::generate::generate;

    fn rules() -> RuleSet {
        RuleSet::new(&RulesPolicy::default(), &[]).unwrap()
    }

    fn made(name: &str) -> String {
        let mut state = 7_u32;
        generate(name, &mut |below| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) % below
        })
        .unwrap()
    }

    fn shown(path: &str, old: &str, new: &str) -> Shown {
        let side = Some(DiffSide {
            path: RepoPath::from(path),
            mode: FileMode::Regular,
            id: None,
        });
        let change = FileChange {
            entry: Entry {
                kind: ChangeKind::Modified,
                old: side.clone(),
                new: side,
            },
            body: Body::between(
                Some(old.as_bytes().to_vec()),
                Some(new.as_bytes().to_vec()),
                Attribute::Unset,
            ),
        };
        Shown::new(change, &rules(), &Policy::default())
            .unwrap()
            .unwrap()
    }

    fn lines(hunk: &ShownHunk) -> Vec<String> {
        let lines = hunk.lines.iter();
        lines
            .map(|l| {
                format!(
                    "{:?} {} {}",
                    l.kind,
                    l.new.map_or(String::new(), |n| n.to_string()),
                    l.text
                )
            })
            .collect()
    }

    #[test]
    fn lines_carry_the_numbers_of_the_new_side() {
        let old = "fn a() {\n    one();\n    two();\n}\n";
        let s = shown("a.rs", old, &old.replace("two", "three"));
        assert_eq!(
            lines(&s.hunks[0]),
            [
                "Context 1 fn a() {",
                "Context 2     one();",
                "Removed      two();",
                "Added 3     three();",
                "Context 4 }"
            ]
        );
    }

    #[test]
    fn each_hunk_knows_its_section() {
        let mut old = String::new();
        for n in 0..3 {
            let body: String = (0..20).map(|i| format!("    f{n}({i});\n")).collect();
            old.push_str(&format!("fn f{n}() {{\n{body}}}\n"));
        }
        let new = old
            .replace("f1(15)", "g")
            .replace("f1(2)", "g")
            .replace("f2(15)", "g");
        let s = shown("a.rs", &old, &new);
        let sections: Vec<_> = s.hunks.iter().map(|h| h.section.as_str()).collect();
        // The first hunk starts in `f0`, and its first changed line is in `f1`.
        assert_eq!(sections, ["fn f1() {", "fn f1() {", "fn f2() {"]);
    }

    #[test]
    fn sec_01_a_secret_that_starts_outside_of_the_hunk_is_replaced() {
        let kind = ["RSA PRIVATE", " KEY"].concat();
        let key = (0..12).map(|_| made("pem-body")).collect::<Vec<_>>();
        let old = format!(
            "a\n-----BEGIN {kind}-----\n{}\n-----END {kind}-----\nb\n",
            key.join("\n")
        );
        let new = old.replacen(&key[6], &key[6].chars().rev().collect::<String>(), 100);
        let s = shown("notes.txt", &old, &new);
        assert!(
            s.hunks
                .iter()
                .flat_map(|h| &h.lines)
                .all(|l| !l.text.contains(&key[6][..12]))
        );
        assert!(
            s.hunks
                .iter()
                .flat_map(|h| &h.lines)
                .any(|l| l.text == "<secret:private-key:64>")
        );
        assert_eq!(s.redacted, ["private-key"]);
    }

    #[test]
    fn sec_01_context_removed_lines_and_sections_are_redacted() {
        let (one, two) = (made("aws-key-id:AKIA"), made("github-token:ghp"));
        let filler = "    x();\n".repeat(8);
        let old = format!("def f(k=\"{one}\"):\n{filler}    a = \"{two}\"\n    b\n    c\n");
        let s = shown("a.py", &old, &old.replace("    a = ", "    b = "));
        let all = format!("{s:?}");
        let shown_text: String = s.hunks.iter().flat_map(lines).collect();
        assert!(!shown_text.contains(&two[4..]), "{shown_text}");
        assert_eq!(
            s.hunks[0].section,
            "def f(k=\"<secret:aws-access-key-id:20>\"):"
        );
        assert!(all.contains("redacted"));
    }

    #[test]
    fn a_patch_shows_its_own_sections_and_hides_keys_without_a_header() {
        let key = made("pem-body");
        let end = ["-----END RSA PRIVATE", " KEY-----"].concat();
        let text = format!(
            "--- a/x.rs\n+++ b/x.rs\n@@ -10,2 +10,3 @@ fn outer()\n {key}\n+{key}\n {end}\n@@ -30 +31 @@ fn next()\n-a\n+b\n"
        );
        let change = patch::parse(text.as_bytes()).unwrap().remove(0);
        let s = Shown::new(change, &rules(), &Policy::default())
            .unwrap()
            .unwrap();
        assert_eq!(s.hunks[0].section, "fn outer()");
        assert_eq!(s.hunks[1].section, "fn next()");
        assert_eq!(
            lines(&s.hunks[0])[..2],
            [
                "Context 10 <secret:private-key:64>",
                "Added 11 <secret:private-key:64>"
            ]
        );
        assert_eq!(lines(&s.hunks[1]), ["Removed  a", "Added 31 b"]);
    }

    #[test]
    fn a_change_of_line_ends_is_visible() {
        let s = shown("a.txt", "a\nb\n", "a\r\nb\r\n");
        assert_eq!(lines(&s.hunks[0])[2], "Added 1 a\\u{d}");
        let s = shown("a.txt", "a\r\nb\r\n", "a\r\nc\r\n");
        assert_eq!(lines(&s.hunks[0])[2], "Added 2 c");
    }

    #[test]
    fn long_lines_beside_the_change_are_cut_and_say_so() {
        let long = "é".repeat(5_000);
        let s = shown(
            "a.txt",
            &format!("{long}\n{long}b\nx\n"),
            &format!("{long}\ny\n"),
        );
        for line in s.hunks[0]
            .lines
            .iter()
            .filter(|l| l.kind != LineKind::Added && l.text != "x")
        {
            assert!(
                line.text.len() <= MAX_LINE && line.text.ends_with("more bytes]"),
                "{}",
                line.text
            );
        }
        assert!(s.cut.is_empty());
    }

    #[test]
    fn a_long_added_line_is_shown_whole_in_pieces_of_the_same_number() {
        for unit in ["é", "call(1); ", "x"] {
            let long = unit.repeat(20_000 / unit.len());
            let s = shown("a.txt", "a\nz\n", &format!("a\n{long}\nb\nz\n"));
            let pieces: Vec<&ShownLine> = s.hunks[0]
                .lines
                .iter()
                .filter(|l| l.new == LineNo::new(2))
                .collect();
            assert!(
                pieces.len() > 9
                    && pieces
                        .iter()
                        .all(|l| l.text.len() <= MAX_LINE && l.kind == LineKind::Added)
            );
            assert_eq!(
                pieces.iter().map(|l| l.text.as_str()).collect::<String>(),
                long
            );
            assert_eq!(s.hunks[0].lines.last().unwrap().new, LineNo::new(4));
            assert!(s.cut.is_empty());
        }
    }

    #[test]
    fn what_is_beyond_the_bound_of_an_added_line_is_recorded() {
        let s = shown(
            "a.txt",
            "a\n",
            &format!("a\n{}\nb\n{}\n", "x ".repeat(40_000), "y".repeat(MAX_ADDED)),
        );
        assert_eq!(s.cut, [LineNo::new(2).unwrap()]);
        let last = s.hunks[0]
            .lines
            .iter()
            .rfind(|l| l.new == LineNo::new(2))
            .unwrap();
        assert!(last.text.ends_with(" more bytes]"), "{}", last.text);
    }

    #[test]
    fn inj_07_hidden_characters_are_visible() {
        let s = shown("a.py", "x = 1\n", "x = 1 \u{e0068}\u{e0069}\u{202e}\n");
        assert_eq!(
            s.hunks[0].lines[1].text,
            "x = 1 \\u{e0068}\\u{e0069}\\u{202e}"
        );
    }
}
