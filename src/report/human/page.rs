//! Lines for a terminal: coloured spans, wrapping, and the final escaping before output.

use crate::diff::RepoPath;
use crate::report::source_words::SourceWords;
use crate::report::{self, finding_text};
use crate::review::Review;
use crate::untrusted::{self, Inert};
use crate::verdict::Verdict;
use anstyle::{AnsiColor, Style};
use std::borrow::Cow;
use std::io::{self, Write};
use std::path::Path;
use std::rc::Rc;
use unicode_width::UnicodeWidthChar as _;

pub(super) const PLAIN: Style = Style::new();
pub(super) const BOLD: Style = Style::new().bold();
pub(super) const DIM: Style = Style::new().dimmed();
pub(super) const RED: Style = AnsiColor::Red.on_default().bold();
pub(super) const YELLOW: Style = AnsiColor::Yellow.on_default().bold();
pub(super) const GREEN: Style = AnsiColor::Green.on_default().bold();
pub(super) const CYAN: Style = AnsiColor::Cyan.on_default();
pub(super) const BLUE: Style = AnsiColor::BrightBlue.on_default();
pub(super) const ADDED: Style = AnsiColor::Green.on_default();
pub(super) const ESCAPED: Style = AnsiColor::Magenta.on_default().bold();

/// The signs of the report.
#[derive(Debug)]
pub(super) struct Glyphs {
    pub(super) bar: &'static str,
    pub(super) rule: &'static str,
    pub(super) ellipsis: &'static str,
    /// Separator between the steps of a path.
    pub(super) arrow: &'static str,
    pub(super) caret: &'static str,
    pub(super) blocking: &'static str,
    pub(super) warning: &'static str,
    pub(super) hint: &'static str,
    pass: &'static str,
    stop: &'static str,
    unsure: &'static str,
}

const ASCII: Glyphs = Glyphs {
    bar: "|",
    rule: "-",
    ellipsis: "...",
    arrow: " -> ",
    caret: "^",
    blocking: "x",
    warning: "!",
    hint: "-",
    // ASCII output uses words instead of signs.
    pass: "",
    stop: "",
    unsure: "",
};

const UNICODE: Glyphs = Glyphs {
    bar: "│",
    rule: "─",
    ellipsis: "…",
    arrow: finding_text::ARROW,
    caret: "^",
    blocking: "✖",
    warning: "▲",
    hint: "•",
    pass: "✔",
    stop: "✖",
    unsure: "▲",
};

/// The output of the report.
pub(super) struct HumanPage<'a> {
    out: &'a mut dyn Write,
    pub(super) style: report::Style,
    /// The top of the worktree, for links to files.
    top: Option<&'a Path>,
    pub(super) glyphs: &'static Glyphs,
    pub(super) words: &'static SourceWords,
    /// The last line was empty, or no line is written yet.
    blank: bool,
}

/// A line under construction.
#[derive(Clone, Debug, Default)]
pub(super) struct StyledLine(Vec<StyledSpan>);

/// A part of a line with one style.
#[derive(Clone, Debug)]
struct StyledSpan {
    style: Style,
    text: Inert,
    link: Option<Link>,
    /// A path with its line is divided only if it is wider than the page: terminals recognize it
    /// only in one piece. It is never shortened.
    is_whole: bool,
}

/// The target of a hyperlink.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Link(Rc<str>);

impl Link {
    /// Terminals ignore longer targets, or show the sequence as text.
    const LONGEST: usize = 2_000;

    /// Validates a target; `None` if it is too long or has a byte that could end the escape
    /// sequence or start another.
    pub(super) fn new(target: &str) -> Option<Self> {
        if target.len() > Self::LONGEST {
            return None;
        }
        let is_safe = target
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"-._~/:?#&=%+@".contains(&b));
        is_safe.then(|| Self(target.into()))
    }
}

impl StyledLine {
    pub(super) fn new() -> Self {
        Self::default()
    }

    /// Appends text.
    #[must_use]
    pub(super) fn put(self, style: Style, text: impl Into<Inert>) -> Self {
        self.linked(style, text, None)
    }

    /// Appends text that a terminal may show as a link.
    #[must_use]
    pub(super) fn linked(self, style: Style, text: impl Into<Inert>, link: Option<Link>) -> Self {
        self.push(style, text.into(), link, false)
    }

    /// Appends text that is not divided at its spaces, such as a path with a line.
    #[must_use]
    pub(super) fn whole(self, style: Style, text: impl Into<Inert>, link: Option<Link>) -> Self {
        self.push(style, text.into(), link, true)
    }

    /// Appends a span.
    fn push(mut self, style: Style, text: Inert, link: Option<Link>, is_whole: bool) -> Self {
        self.0.push(StyledSpan {
            style,
            text,
            link,
            is_whole,
        });
        self
    }

    /// Appends spaces.
    #[must_use]
    pub(super) fn space(self, n: usize) -> Self {
        self.put(PLAIN, Inert::new(" ".repeat(n)))
    }

    pub(super) fn width(&self) -> usize {
        self.0
            .iter()
            .map(|span| untrusted::width(span.text.as_str()))
            .sum()
    }
}

impl Glyphs {
    /// Returns the sign before a verdict; empty for ASCII output.
    pub(super) fn sign(&self, verdict: Verdict) -> &'static str {
        match verdict {
            Verdict::Pass => self.pass,
            Verdict::Block => self.stop,
            Verdict::Warn | Verdict::Incomplete => self.unsure,
        }
    }
}

impl<'a> HumanPage<'a> {
    pub(super) fn new(review: &'a Review, style: &report::Style, out: &'a mut dyn Write) -> Self {
        let style = report::Style {
            width: style.width.max(20),
            ..style.clone()
        };
        let glyphs = if style.unicode { &UNICODE } else { &ASCII };
        let top = review.place.as_ref().map(|p| p.top.as_path());
        Self {
            out,
            style,
            top,
            glyphs,
            words: SourceWords::of(&review.source),
            blank: true,
        }
    }

    /// Returns the link to a file of the worktree.
    pub(super) fn file_link(&self, path: &RepoPath) -> Option<Link> {
        let links = self.style.links.as_ref()?;
        // Only absolute paths with `/` make a file URL.
        let top = self.top?.to_str().filter(|top| top.starts_with('/'))?;
        let (host, top) = (
            untrusted::uri(links.host.as_bytes()),
            untrusted::uri(top.as_bytes()),
        );
        Link::new(&format!(
            "file://{host}/{top}/{}",
            untrusted::uri(path.as_bytes())
        ))
    }

    /// Returns the link to the page about a rule.
    pub(super) fn rule_link(&self, id: &str) -> Option<Link> {
        self.style.links.as_ref()?;
        Link::new(&crate::rules::doc_url(id)?)
    }

    /// Returns the number of columns for prose: very long lines are hard to read.
    pub(super) fn prose(&self) -> usize {
        self.style.width.min(100)
    }

    /// Writes an empty line, unless the last line is empty.
    pub(super) fn gap(&mut self) -> io::Result<()> {
        if !self.blank {
            self.out.write_all(b"\n")?;
        }
        self.blank = true;
        Ok(())
    }

    /// Writes a line without wrapping.
    pub(super) fn line(&mut self, line: &StyledLine) -> io::Result<()> {
        let mut text = String::new();
        let last = line
            .0
            .iter()
            .rposition(|span| !span.text.as_str().trim_end_matches(' ').is_empty());
        let ink = last.map_or(0, |i| i + 1);
        for (i, span) in line.0[..ink].iter().enumerate() {
            // A space in the last column makes some terminals start a new line.
            let shown = span.text.as_str();
            self.paint(
                span,
                if i + 1 == ink {
                    shown.trim_end_matches(' ')
                } else {
                    shown
                },
                &mut text,
            );
        }
        self.blank = false;
        writeln!(self.out, "{}", untrusted::guard_line(&text))
    }

    /// Appends a part of a line with its colour and its link.
    fn paint(&self, span: &StyledSpan, shown: &str, out: &mut String) {
        let link = span
            .link
            .as_ref()
            .filter(|_| self.style.links.is_some() && !shown.is_empty());
        if let Some(Link(target)) = link {
            out.push_str(&format!("\x1b]8;;{target}\x1b\\"));
        }
        if self.style.color && span.style != PLAIN && !shown.is_empty() {
            out.push_str(&format!(
                "{}{shown}{}",
                span.style.render(),
                span.style.render_reset()
            ));
        } else {
            out.push_str(shown);
        }
        if link.is_some() {
            out.push_str("\x1b]8;;\x1b\\");
        }
    }

    /// Writes a workflow command, the only line that may start with colons.
    pub(super) fn command(&mut self, name: &'static str, data: &str) -> io::Result<()> {
        self.blank = true;
        writeln!(self.out, "::{name}::{}", untrusted::data(data))
    }

    /// Writes a line, wrapped between words; indents the further lines by `indent` columns.
    pub(super) fn wrapped(&mut self, line: &StyledLine, indent: usize) -> io::Result<()> {
        let width = self.prose();
        let text: String = line.0.iter().map(|span| span.text.as_str()).collect();
        if line.width() <= width && matches!(untrusted::guard_line(&text), Cow::Borrowed(_)) {
            return self.line(line);
        }
        let mut row = StyledLine::new();
        let mut column = 0;
        for word in line.words() {
            let solid = word
                .iter()
                .map(|part| untrusted::width(part.text.as_str().trim_end()))
                .sum::<usize>();
            if column + solid > width && column > indent && solid <= width - indent {
                self.line(&std::mem::take(&mut row))?;
                row = row.space(indent);
                column = indent;
            }
            for StyledSpan {
                style, text, link, ..
            } in word
            {
                // Escaping at the start of a row takes columns, so it is done before the width is
                // measured.
                let mut rest = if row.is_blank() { text.guarded() } else { text };
                // A word that is wider than the page is split at its end.
                while column + untrusted::width(rest.as_str().trim_end()) > width {
                    let at = fit(rest.as_str(), width.saturating_sub(column));
                    if at == 0 && column <= indent {
                        break;
                    }
                    row = row.linked(style, rest.part(..at), link.clone());
                    self.line(&std::mem::take(&mut row))?;
                    row = row.space(indent);
                    column = indent;
                    rest = rest.part(at..).guarded();
                }
                column += untrusted::width(rest.as_str());
                row = row.linked(style, rest, link);
            }
        }
        self.line(&row)
    }

    /// Writes untrusted prose: each line wrapped and indented, the first one after a label.
    pub(super) fn prose_block(
        &mut self,
        label: StyledLine,
        text: &str,
        indent: usize,
    ) -> io::Result<()> {
        let mut head = Some(label);
        let plain = (!self.style.unicode && !text.is_ascii()).then(|| ascii(text));
        for line in Inert::lines(plain.as_deref().unwrap_or(text).trim_end()) {
            let start = match head.take() {
                Some(label) => StyledLine::new().space(indent).append(label),
                None => StyledLine::new().space(indent),
            };
            self.wrapped(&start.prose(&line), indent)?;
        }
        Ok(())
    }
}

impl StyledLine {
    fn is_blank(&self) -> bool {
        self.0
            .iter()
            .all(|span| span.text.as_str().trim().is_empty())
    }

    /// Returns the words with the space after them; a word may have parts of different colours.
    fn words(&self) -> Vec<Vec<StyledSpan>> {
        let mut words = vec![Vec::new()];
        for span in &self.0 {
            if span.is_whole {
                if let Some(word) = words.last_mut() {
                    word.push(span.clone());
                }
                continue;
            }
            let mut from = 0;
            for part in span.text.as_str().split_inclusive(' ') {
                let to = from + part.len();
                if let Some(word) = words.last_mut() {
                    word.push(StyledSpan {
                        text: span.text.part(from..to),
                        ..span.clone()
                    });
                }
                if part.ends_with(' ') {
                    words.push(Vec::new());
                }
                from = to;
            }
        }
        words
    }

    /// Appends prose; code between backticks is highlighted.
    fn prose(mut self, text: &Inert) -> Self {
        let parts: Vec<&str> = text.as_str().split('`').collect();
        // An odd number of backticks marks no code.
        if parts.len().is_multiple_of(2) {
            return self.put(PLAIN, text.clone());
        }
        for (i, part) in parts.into_iter().enumerate() {
            self = match i % 2 {
                0 => self.put(PLAIN, Inert::new(part)),
                _ => self.put(BOLD, Inert::new(format!("`{part}`"))),
            };
        }
        self
    }

    fn append(mut self, other: Self) -> Self {
        self.0.extend(other.0);
        self
    }
}

/// Replaces typographic signs with their ASCII equivalents; letters stay.
fn ascii(text: &str) -> String {
    text.replace('…', "...")
        .replace(['‘', '’'], "'")
        .replace(['“', '”'], "\"")
        .replace(['–', '—'], "-")
}

/// Returns the number of bytes of `text` that fit into `width` columns.
fn fit(text: &str, width: usize) -> usize {
    let mut used = 0;
    for (i, c) in text.char_indices() {
        used += c.width().unwrap_or(0);
        if used > width {
            return i;
        }
    }
    text.len()
}

/// Removes the middle of a text that is wider than `width`, and keeps its end, often a file name.
pub(super) fn elide(text: &Inert, width: usize, ellipsis: &'static str) -> Inert {
    let all = text.as_str();
    let total = untrusted::width(all);
    if total <= width {
        return text.clone();
    }
    let room = width.saturating_sub(untrusted::width(ellipsis));
    let head = fit(all, room / 3);
    let mut tail = all.len();
    let mut used = 0;
    for (i, c) in all.char_indices().rev() {
        used += c.width().unwrap_or(0);
        if used > room - room / 3 {
            break;
        }
        tail = i;
    }
    text.without(head, tail, ellipsis)
}
