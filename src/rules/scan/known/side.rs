//! The code of a finding and where it is, in a form that layout does not change.

use super::spelling::{Spelling, closing, is_of_word};
use crate::diff::{LineEdit, Text, TextChange, trim_line_end};
use crate::finding::{Category, Finding};
use crate::rules::catalog::{Matcher, Rule};
use crate::rules::language::Languages;
use crate::rules::lexer::Place;
use std::ops::Range;

/// Lines above and below a finding that are searched for the blocks around it, at most. A large
/// file can have thousands of findings in one block.
const REACH: usize = 1000;
/// Blocks around a finding, at most. Each branch of a chain of conditions is one.
const HEADS_MAX: usize = 40;
/// Lines of a statement, at most. A statement that is longer has functions as arguments.
const STATEMENT_MAX: usize = 40;
/// Bytes of a line that is compared, at most. A longer one is written by a tool.
const LINE_MAX: usize = 4096;
/// Rules that judge what is called and where the result goes, and no argument of the call.
const CALLEES: &[&str] = &["weak-random-call"];
/// Words that start a block which runs its code under a condition, several times or as it is. Code
/// that moves into such a block runs no more often than before.
const CONTROL: &[&[u8]] = &[
    b"if",
    b"else",
    b"elif",
    b"elsif",
    b"elseif",
    b"unless",
    b"for",
    b"foreach",
    b"while",
    b"until",
    b"loop",
    b"switch",
    b"match",
    b"select",
    b"case",
    b"when",
    b"default",
    b"try",
    b"do",
    b"begin",
    b"with",
    b"using",
    b"lock",
    b"synchronized",
    b"catch",
    b"except",
    b"rescue",
    b"finally",
    b"ensure",
];
/// Words of blocks that belong to a block above them with the same indentation.
const CONTINUED: &[&[u8]] = &[
    b"else", b"elif", b"elsif", b"elseif", b"catch", b"except", b"rescue", b"finally", b"ensure",
];
/// Marks of a condition within a line.
const CONDITIONS: &[&[u8]] = &[
    b"if", b"unless", b"and", b"or", b"not", b"while", b"until", b"for", b"case", b"when", b"else",
];

/// One side of a change, with what is not code in it.
pub(super) struct CodeSide<'t> {
    spelling: Spelling<'t>,
    whole: &'t [u8],
    /// All lines without their ends, in bytes of the text.
    lines: Vec<Range<usize>>,
    /// Bytes of white space at the start of each line. `None`: the line is blank.
    indentations: Vec<Option<usize>>,
    languages: Languages,
    edits: Vec<&'t LineEdit>,
    is_old: bool,
}

/// A block around a finding, by the statement that opens it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct BlockHead(Vec<u8>);

/// The state of the search for the blocks around a finding, from the innermost one on.
struct HeadSearch {
    /// Bytes of indentation that the next head has less of.
    level: usize,
    sought: SoughtHead,
    /// The lines from the end of the block that was found last on.
    below: Range<usize>,
}

/// The head that a search needs next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SoughtHead {
    /// A line with less indentation.
    Outside,
    /// The line above a bracket that stands alone.
    OfBracket,
    /// The `if` or `try` of an `else` or `catch`, with the same indentation.
    OfContinued,
}

/// The code that a rule judges, and where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CodeInPlace {
    /// The whole statement for rules about security: its other parts decide what the match does.
    /// For other structural rules, the matched node.
    pub(super) code: Vec<u8>,
    /// The text of the statement before and after `code`.
    frame: (Vec<u8>, Vec<u8>),
    /// The blocks around the statement, the outermost one first.
    heads: Vec<BlockHead>,
    /// The edit of the change, by its index.
    edit: Option<usize>,
    /// The nearest lines above and below that are not blank.
    neighbours: (Vec<u8>, Vec<u8>),
}

impl CodeInPlace {
    /// Returns true if code that was in the removed lines (`self`) covers the same added code: it
    /// ran under no condition and in no function that the added code is not in. `is_exact`: the
    /// blocks around the two are the same.
    pub(super) fn covers(&self, new: &Self, is_exact: bool) -> bool {
        let are_blocks_known = if is_exact {
            self.heads == new.heads
        } else {
            is_within_same(&self.heads, &new.heads)
        };
        // Blocks of one name can be several, and a variable can have another value below.
        let is_in_place =
            self.edit.is_some() && self.edit == new.edit || self.neighbours == new.neighbours;
        are_blocks_known && is_in_place && has_same_conditions(&self.frame, &new.frame)
    }
}

impl<'t> CodeSide<'t> {
    /// Returns a side that is known as a whole.
    pub(super) fn new(path: &[u8], change: &'t TextChange, is_old: bool) -> Option<Self> {
        let text: &Text = if is_old { &change.old } else { &change.new };
        let whole = text.whole()?;
        let mut lines = Vec::new();
        let mut start = 0;
        for line in whole.split_inclusive(|b| *b == b'\n') {
            lines.push(start..start + trim_line_end(line).len());
            start += line.len();
        }
        let of_line = |line: &Range<usize>| {
            let mut bytes = whole.get(line.clone())?.iter();
            bytes.position(|b| !b.is_ascii_whitespace())
        };
        Some(Self {
            spelling: Spelling::new(path, whole),
            whole,
            indentations: lines.iter().map(of_line).collect(),
            lines,
            languages: Languages::of(path, b""),
            edits: change.hunks.iter().flat_map(|hunk| &hunk.edits).collect(),
            is_old,
        })
    }

    /// Returns the code of a finding and its place. `None`: the finding has no lines, or the blocks
    /// around it are not known: one of them seems to start in a string, where an author can write
    /// anything, or starts more than [`REACH`] lines above, or there are more than [`HEADS_MAX`].
    pub(super) fn code_of(&self, rule: &Rule, finding: &Finding) -> Option<CodeInPlace> {
        let span = finding.lines()?;
        let first = span.first.get().checked_sub(1)? as usize;
        let of_finding = first..(span.last.get() as usize).min(self.lines.len());
        let lines = self.statement(of_finding.clone())?;
        let mut heads = self.heads(lines.clone())?;
        // A file of C# has its namespace around it or at its start.
        if self.languages.any_of(&["csharp"]) {
            heads.retain(|head| !head.0.starts_with(b"namespace "));
        }
        let columns = span.columns.filter(|_| of_finding.len() == 1);
        let columns = columns.and_then(|(from, to)| {
            let line = self.lines.get(first)?;
            let at = |column: u32| (line.start + column as usize).min(line.end);
            Some(at(from)..at(to))
        });
        let statement = self.bytes(&lines);
        let matched = columns.clone().filter(|_| judges_match(rule));
        let (code, frame) = if let Some(matched) = matched {
            let before = self.spelling.of(statement.start..matched.start);
            let after = self.spelling.of(matched.end..statement.end);
            (self.spelling.of(matched), (before, after))
        } else {
            let code = if CALLEES.contains(&rule.id.as_ref()) {
                self.without_arguments(statement, columns)
            } else {
                self.spelling.of(statement)
            };
            let divided = self.spelling.divide(code);
            heads.extend(divided.guards.into_iter().map(BlockHead));
            (divided.code, (Vec::new(), Vec::new()))
        };
        Some(CodeInPlace {
            code,
            frame,
            heads,
            edit: self.edit_of(first),
            neighbours: self.neighbours(&lines),
        })
    }

    /// Returns the nearest lines above and below some lines that are not blank. Empty: there is
    /// none.
    fn neighbours(&self, lines: &Range<usize>) -> (Vec<u8>, Vec<u8>) {
        let is_full = |at: &usize| self.indentation(*at).is_some();
        let mut above = (lines.start.saturating_sub(REACH)..lines.start).rev();
        let mut below = lines.end..self.lines.len().min(lines.end + REACH);
        let lines = (above.find(is_full), below.find(is_full));
        (self.start_of(lines.0), self.start_of(lines.1))
    }

    /// Returns the start of a line, or an empty text without a line.
    fn start_of(&self, line: Option<usize>) -> Vec<u8> {
        let line = line.and_then(|at| self.lines.get(at));
        let start = line.map(|line| line.start..line.end.min(line.start + LINE_MAX));
        start
            .map(|start| self.spelling.of(start))
            .unwrap_or_default()
    }

    /// Returns a statement without the arguments of the call at some columns.
    fn without_arguments(&self, statement: Range<usize>, call: Option<Range<usize>>) -> Vec<u8> {
        let open = call.and_then(|call| {
            let name = self.whole.get(call.clone())?;
            Some(call.start + memchr::memchr(b'(', name)?)
        });
        let close = open.and_then(|open| closing(self.whole.get(..statement.end)?, open));
        match open.zip(close) {
            Some((open, close)) => {
                let mut code = self.spelling.of(statement.start..open + 1);
                code.extend(self.spelling.of(close..statement.end));
                code
            }
            None => self.spelling.of(statement),
        }
    }

    /// Returns the index of the edit that adds or removes a line.
    fn edit_of(&self, line: usize) -> Option<usize> {
        let number = u32::try_from(line).ok()?.checked_add(1)?;
        let side = |edit: &LineEdit| {
            let lines = if self.is_old { &edit.old } else { &edit.new };
            (lines.start, lines.start + lines.count)
        };
        let at = self.edits.partition_point(|edit| side(edit).1 <= number);
        self.edits
            .get(at)
            .is_some_and(|edit| side(edit).0 <= number)
            .then_some(at)
    }

    /// Returns the lines of the statement that has some lines: all brackets that they open or close
    /// are within it, and they are no single arguments of a call. `None`: it has too many lines.
    fn statement(&self, lines: Range<usize>) -> Option<Range<usize>> {
        let mut lines = self.balanced(lines)?;
        while let Some(head) = self.head_line(lines.start) {
            if !self.opens_arguments(head) {
                break;
            }
            match self.balanced(head..head + 1) {
                Some(whole) if whole.end >= lines.end => lines = whole,
                _ => break,
            }
        }
        Some(lines)
    }

    /// Returns the nearest line above with less indentation that is not blank.
    fn head_line(&self, line: usize) -> Option<usize> {
        let level = self.indentation(line)?;
        let mut above = (line.saturating_sub(STATEMENT_MAX)..line).rev();
        above.find(|at| self.indentation(*at).is_some_and(|of| of < level))
    }

    /// Returns true if a line ends within the arguments of a call or the elements of a list.
    fn opens_arguments(&self, line: usize) -> bool {
        let code = self.spelled(line..line + 1);
        let is_list = [&b"("[..], b"[", b"({", b"[{"]
            .iter()
            .any(|end| code.ends_with(end));
        is_list
            && self
                .lines
                .get(line)
                .is_some_and(|of| self.spelling.brackets(of.clone()).1 > 0)
    }

    /// Returns some lines with those above and below that have the other halves of their brackets.
    fn balanced(&self, lines: Range<usize>) -> Option<Range<usize>> {
        if !self.are_short(&lines) {
            return None;
        }
        let mut of = lines.clone();
        let (mut closed, mut open) = self.spelling.brackets(self.bytes(&lines));
        while closed > 0 {
            of.start = of.start.checked_sub(1)?;
            if !self.are_short(&(of.start..of.start + 1)) {
                return None;
            }
            let (more, above) = self.spelling.brackets(self.lines.get(of.start)?.clone());
            let met = above.min(closed);
            closed = more + closed - met;
            open += above - met;
            if of.len() > STATEMENT_MAX {
                return None;
            }
        }
        while open > 0 {
            if !self.are_short(&(of.end..of.end + 1)) {
                return None;
            }
            let (below, more) = self.spelling.brackets(self.lines.get(of.end)?.clone());
            let met = open.min(below);
            if below > met || of.len() >= STATEMENT_MAX {
                return None;
            }
            open = more + open - met;
            of.end += 1;
        }
        Some(of)
    }

    /// Returns the blocks around some lines, the outermost one first: each starts at the nearest
    /// line above with less indentation than the one within it.
    fn heads(&self, lines: Range<usize>) -> Option<Vec<BlockHead>> {
        let has_directives = self.languages.any_of(&["c", "cpp", "csharp", "swift"]);
        let mut search = HeadSearch {
            level: self.indentation(lines.start)?,
            sought: SoughtHead::Outside,
            below: lines.end..self.lines.len().min(lines.end + REACH),
        };
        let mut ended = 0;
        let mut heads = Vec::new();
        let mut at = lines.start;
        let (mut inner, mut is_continued) = (lines.start, false);
        while at > 0 && (search.level > 0 || has_directives) {
            at -= 1;
            if lines.start - at > REACH {
                if search.level > 0 {
                    return None;
                }
                break;
            }
            if heads.len() > HEADS_MAX {
                return None;
            }
            let Some(of) = self.indentation(at) else {
                continue;
            };
            if has_directives && self.starts_with(at, b'#') {
                let line = self.line(at)?;
                heads.extend(condition_of_directive(line, &mut ended).map(BlockHead));
                continue;
            }
            if of >= search.level || self.is_comment(at) || self.is_label(self.line(at)?) {
                continue;
            }
            if self.starts_in_string(at) {
                return None;
            }
            let head = self.head(at);
            at = head.start;
            let block = self.head_of(head.clone(), of.min(self.indentation(at)?), &mut search);
            if let Some(block) = block {
                // The block of an `if` ends before its `else`.
                if !is_continued && !self.surrounds(&block, head, inner) {
                    return None;
                }
                is_continued = CONTINUED
                    .iter()
                    .any(|word| starts_with_word(&block.0, word));
                inner = at;
                heads.push(block);
            }
        }
        heads.extend(self.section(at));
        heads.reverse();
        Some(heads)
    }

    /// Returns false if the block that some lines open does not contain a line below, although the
    /// line has more indentation: its braces are closed, or it has none and the line is its second
    /// statement. The labels of a `switch` can be reached from the ones above them.
    fn surrounds(&self, block: &BlockHead, head: Range<usize>, line: usize) -> bool {
        // Python has no braces around blocks.
        if !self.spelling.is_free() || self.languages.any_of(&["python"]) {
            return true;
        }
        let labels: [&[u8]; 2] = [b"case", b"default"];
        if labels.iter().any(|word| starts_with_word(&block.0, word)) {
            return false;
        }
        let (lines, end) = (self.bytes(&(head.start..line)), head.end);
        match self.spelling.open_braces(lines) {
            Some(open) => open > 0,
            None => {
                !is_control(block) || (end..line).all(|between| self.indentation(between).is_none())
            }
        }
    }

    /// Returns the block that some lines open, and prepares the search for the next one. `None`:
    /// the lines have only a bracket. `level`: their indentation.
    fn head_of(
        &self,
        lines: Range<usize>,
        level: usize,
        search: &mut HeadSearch,
    ) -> Option<BlockHead> {
        let line = self.line(lines.start).unwrap_or_default();
        let code = head_code(&self.spelled(lines));
        if code.is_empty() {
            // The start of the block is in the line above its bracket. A bracket that closes
            // another block is between `else` and its condition, or ends the search at its level.
            if line.starts_with(b"{") {
                search.level = level + 1;
                search.sought = SoughtHead::OfBracket;
            } else if search.sought != SoughtHead::OfContinued {
                search.level = level;
                search.sought = SoughtHead::Outside;
            }
            return None;
        }
        let is_continued = CONTINUED.iter().any(|word| starts_with_word(&code, word));
        search.level = level + usize::from(is_continued);
        search.sought = if is_continued {
            SoughtHead::OfContinued
        } else {
            SoughtHead::Outside
        };
        Some(BlockHead(self.with_end(code, level, &mut search.below)))
    }

    /// Returns the lines of the statement that opens a block and ends or starts at a line. Where a
    /// function is an argument of it, only the lines up to its body.
    fn head(&self, line: usize) -> Range<usize> {
        let of = line..line + 1;
        let (closed, _) = self.spelling.brackets(self.bytes(&of));
        let code = self.spelled(of.clone());
        let opens_block = matches!(code.last(), Some(b'{' | b':' | b'(' | b'[' | b'|'));
        if closed == 0 && opens_block {
            return of;
        }
        match self.balanced(of.clone()) {
            Some(whole) if !opens_block || whole.end == of.end => whole,
            _ => of,
        }
    }

    /// Returns the head of a block with what stands behind the end of the block: `} if dev`.
    fn with_end(&self, mut head: Vec<u8>, level: usize, below: &mut Range<usize>) -> Vec<u8> {
        let is_end = |at: &usize| self.indentation(*at).is_some_and(|of| of <= level);
        let end = below.clone().find(is_end);
        below.start = end.unwrap_or(below.end);
        let Some(end) = end.filter(|end| self.are_short(&(*end..*end + 1))) else {
            return head;
        };
        let code = self.spelled(end..end + 1);
        let word = code
            .strip_prefix(b"end")
            .filter(|rest| rest.first().is_none_or(|b| !is_of_word(*b)));
        let rest = word.unwrap_or_else(|| head_end(&code));
        let goes_on = CONTINUED
            .iter()
            .any(|word| starts_with_word(rest.trim_ascii(), word));
        if rest.len() < code.len() && !goes_on && rest.iter().any(|b| is_of_word(*b)) {
            head.push(b' ');
            head.extend(rest.trim_ascii());
        }
        head
    }

    /// Returns the section of a configuration or the stage of a build that has a line.
    fn section(&self, line: usize) -> Option<BlockHead> {
        if self.spelling.is_free() {
            return None;
        }
        let mut above = (line.saturating_sub(REACH)..line).rev();
        let at = above.find(|at| {
            let line = self.line(*at).unwrap_or_default();
            line.starts_with(b"[") && line.ends_with(b"]")
                || line
                    .get(..5)
                    .is_some_and(|word| word.eq_ignore_ascii_case(b"from "))
        })?;
        Some(BlockHead(self.spelled(at..at + 1)))
    }

    fn spelled(&self, lines: Range<usize>) -> Vec<u8> {
        self.spelling.of(self.bytes(&lines))
    }

    /// Returns the bytes from the start of the first of some lines to the end of the last one.
    fn bytes(&self, lines: &Range<usize>) -> Range<usize> {
        let start = self
            .lines
            .get(lines.start)
            .map_or(self.whole.len(), |l| l.start);
        let last = lines.end.checked_sub(1).and_then(|at| self.lines.get(at));
        start..last.map_or(start, |line| line.end).max(start)
    }

    /// Returns a line without white space around it. `None`: it is too long.
    fn line(&self, at: usize) -> Option<&'t [u8]> {
        let line = self.lines.get(at).filter(|line| line.len() <= LINE_MAX)?;
        Some(self.whole.get(line.clone())?.trim_ascii())
    }

    /// Returns the bytes of white space at the start of a line that is not blank.
    fn indentation(&self, at: usize) -> Option<usize> {
        self.indentations.get(at).copied().flatten()
    }

    /// Returns true if no line of a range is too long to be compared.
    fn are_short(&self, lines: &Range<usize>) -> bool {
        let lines = self.lines.get(lines.clone()).unwrap_or_default();
        lines.iter().all(|line| line.len() <= LINE_MAX)
    }

    /// Returns true if a byte is the first of a line that is not white space.
    fn starts_with(&self, at: usize, byte: u8) -> bool {
        let start = self.lines.get(at).zip(self.indentation(at));
        start.is_some_and(|(line, of)| self.whole.get(line.start + of) == Some(&byte))
    }

    fn place(&self, at: usize) -> Option<&(Range<usize>, Place)> {
        let start = self.lines.get(at)?.start + self.indentation(at)?;
        self.spelling.outside_at(start)
    }

    /// Returns true if the first word of a line is in a comment.
    fn is_comment(&self, at: usize) -> bool {
        matches!(self.place(at), Some((_, Place::Comment)))
    }

    /// Returns true if a line starts in a string of a line above.
    fn starts_in_string(&self, at: usize) -> bool {
        let start = self.lines.get(at).map_or(0, |line| line.start);
        matches!(self.place(at), Some((of, Place::String)) if of.start < start)
    }

    /// Returns true for a label of C, which can have less indentation than its function.
    fn is_label(&self, line: &[u8]) -> bool {
        const OF_BLOCKS: &[&[u8]] = &[b"default", b"public", b"private", b"protected", b"else"];
        self.languages.any_of(&["c", "cpp"])
            && line.strip_suffix(b":").is_some_and(|name| {
                name.iter().all(|b| is_of_word(*b)) && !OF_BLOCKS.contains(&name)
            })
    }
}

/// Returns true if a rule judges the node that it matches, and no use of it: a mistake is one
/// wherever its value goes. What a call that is dangerous does depends on the statement around it.
fn judges_match(rule: &Rule) -> bool {
    rule.matcher == Matcher::Structural && rule.category != Category::Security
}

/// Returns the condition of a directive such as `#ifdef DEBUG` around lines below it. `ended`: the
/// number of directives that end below this one.
fn condition_of_directive(line: &[u8], ended: &mut usize) -> Option<Vec<u8>> {
    let word = line.strip_prefix(b"#")?.trim_ascii_start();
    if word.starts_with(b"endif") {
        *ended += 1;
    } else if word.starts_with(b"if") && *ended > 0 {
        *ended -= 1;
    } else if *ended == 0 && (word.starts_with(b"if") || word.starts_with(b"el")) {
        return Some(line.to_vec());
    }
    None
}

/// Returns the start of a block without what belongs to its form: brackets, and words such as
/// `then`.
fn head_code(code: &[u8]) -> Vec<u8> {
    let mut rest = head_end(code).trim_ascii();
    for end in [&b"{"[..], b":", b" then", b" do", b";"] {
        rest = rest.strip_suffix(end).unwrap_or(rest).trim_ascii();
    }
    rest.to_vec()
}

/// Returns a line behind the brackets that it closes first.
fn head_end(code: &[u8]) -> &[u8] {
    let closers = code
        .iter()
        .take_while(|b| matches!(b, b'}' | b')' | b']' | b' ' | b';' | b','))
        .count();
    &code[closers..]
}

fn starts_with_word(code: &[u8], word: &[u8]) -> bool {
    code.strip_prefix(word)
        .is_some_and(|rest| rest.first().is_none_or(|b| !is_of_word(*b)))
}

/// Returns true if the new blocks are the old ones, within more blocks that add conditions, or
/// without a `try` of the old ones.
fn is_within_same(old: &[BlockHead], new: &[BlockHead]) -> bool {
    let mut new = new.iter();
    for head in old {
        loop {
            match new.as_slice().first() {
                Some(next) if next == head => {
                    new.next();
                    break;
                }
                _ if starts_with_word(&head.0, b"try") => break,
                Some(more) if is_control(more) => {
                    new.next();
                }
                _ => return false,
            }
        }
    }
    new.all(is_control)
}

fn is_control(head: &BlockHead) -> bool {
    CONTROL.iter().any(|word| starts_with_word(&head.0, word))
}

/// Returns true if no condition beside a match was removed: the text on each side of it is the
/// same, or the old one had no condition.
fn has_same_conditions(old: &(Vec<u8>, Vec<u8>), new: &(Vec<u8>, Vec<u8>)) -> bool {
    [(&old.0, &new.0), (&old.1, &new.1)]
        .into_iter()
        .all(|(old, new)| old == new || !has_condition(old))
}

fn has_condition(code: &[u8]) -> bool {
    let has_operator = code.contains(&b'?')
        || [&b"&&"[..], b"||"]
            .iter()
            .any(|mark| memchr::memmem::find(code, mark).is_some());
    let mut words = code.split(|b| !is_of_word(*b));
    has_operator || words.any(|word| CONDITIONS.contains(&word))
}
