//! One finding as a card.

use super::code::HighlightedLine;
use super::markup::Markup;
use crate::finding::{Confidence, Evidence, Finding, Frame};
use crate::report::finding_text;
use crate::report::paint;
use crate::report::remedy;
use crate::report::source_words::SourceWords;
use crate::untrusted::{self, Inert};
use std::collections::HashMap;

/// Bytes of a line of a finding's own code, at most.
const MOST_OF_A_LINE: usize = 1_000;
/// Lines of a quote without a frame, at most.
const QUOTED: usize = 6;
/// Lines of a replacement, at most.
const REPLACED: usize = 60;

/// The position of a card, which decides whether it shows its own code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stand {
    /// Below its line.
    InPlace,
    /// At the top of its file, with its own code.
    OfFile,
    /// Outside of all files.
    OfChange,
}

/// The messages that a part of the page has shown, with the finding that showed each first.
pub(super) type ShownMessages<'r> = HashMap<(&'r str, Option<&'r str>), usize>;

/// Writes finding number `index` of the review. `origin` is the number of the reviewer that found
/// it.
pub(super) fn write<'r>(
    f: &'r Finding,
    (index, origin): (usize, usize),
    stand: Stand,
    said: &mut ShownMessages<'r>,
    words: &SourceWords,
    out: &mut Markup,
) {
    head(f, (index, origin), stand, out);
    decisions(f, out);
    if stand != Stand::InPlace {
        match &f.frame {
            Some(frame) => self::frame(f, frame, words, out),
            None => quote(f, out),
        }
    }
    let first = *said.entry((f.message(), f.suggestion())).or_insert(index);
    let is_news = first == index;
    if is_news {
        prose("", finding_text::body(f), out);
    } else {
        let first = first as u64 + 1;
        out.raw("<p class=again>Same as <a href=#F")
            .digits(first)
            .raw(">F")
            .digits(first)
            .raw("</a>.\n");
    }
    evidence(f, out);
    if let Some(suggestion) = f.suggestion().filter(|_| is_news) {
        prose("<b>Help</b> ", suggestion, out);
    }
    if let Some(replacement) = f.replacement() {
        self::replacement(f, replacement, out);
    }
    for r in f.references().iter().filter(|_| is_news) {
        out.raw("<p class=ref>");
        link(r, out);
        out.raw("</p>\n");
    }
    if f.blocking {
        way_out(f, out);
    }
    fingerprint(f, is_news, out);
    out.raw("</article>\n");
}

/// Writes the start of a finding: its title, and the line below it.
fn head(f: &Finding, (index, origin): (usize, usize), stand: Stand, out: &mut Markup) {
    let id = index as u64 + 1;
    out.raw("<article class=\"f ").raw(f.severity().name());
    out.raw(if f.counts() { "" } else { " aside" })
        .raw(if f.blocking { " blocks" } else { "" });
    out.raw("\" id=F")
        .digits(id)
        .raw(" tabindex=-1 data-o=")
        .digits(origin as u64);
    // A level below the heading of the section or of the file.
    let heading = if stand == Stand::OfChange {
        (">\n<h3>", "</h3>\n<p class=meta>")
    } else {
        (">\n<h4>", "</h4>\n<p class=meta>")
    };
    out.raw(heading.0);
    out.raw("<span class=sev>")
        .raw(f.severity().name())
        .raw("</span> ")
        .text(f.title());
    out.raw(heading.1);
    meta(f, stand, out);
    out.raw(" <a href=#F")
        .digits(id)
        .raw(">F")
        .digits(id)
        .raw("</a></p>\n");
}

/// Writes why a finding does not count, and who accepted it.
fn decisions(f: &Finding, out: &mut Markup) {
    if let Some(aside) = finding_text::aside(f) {
        out.raw("<p class=note><b>")
            .text(&aside.label)
            .raw("</b>: ")
            .text(aside.reason)
            .raw("</p>\n");
    }
    if let Some(text) = finding_text::accepted(f) {
        out.raw("<p class=note>").text(&text).raw("</p>\n");
    }
}

/// Writes what supports a finding or contradicts it: the path of the data, other lines, how it
/// fails, the convention, the test and the dispute.
fn evidence(f: &Finding, out: &mut Markup) {
    if let Some(path) = finding_text::flow(f, finding_text::ARROW) {
        out.raw("<p><b>Data flow</b> <code>")
            .text(&path)
            .raw("</code></p>\n");
    }
    for also in finding_text::also(f) {
        out.raw("<p><b>Also</b> <code>")
            .text(&also)
            .raw("</code></p>\n");
    }
    if let Some(failure) = f.failure() {
        prose("<b>Fails when</b> ", failure, out);
    }
    if let Some(convention) = f.convention() {
        prose("<b>Convention</b> ", convention, out);
    }
    if let Some(shown) = finding_text::reproduction(f) {
        prose("<b>Reproduced</b> ", &shown, out);
    }
    if let Some(doubt) = &f.disputed {
        prose("<b>Disputed</b> ", doubt, out);
    }
}

/// Writes the fingerprint. `is_news` is false if the message is a reference to an earlier finding.
fn fingerprint(f: &Finding, is_news: bool, out: &mut Markup) {
    // A paragraph ends where the next one begins. A repeated message continues its paragraph.
    let is_plain =
        !is_news && f.failure().is_none() && f.convention().is_none() && f.disputed.is_none();
    let is_plain = is_plain
        && f.also().is_empty()
        && f.flow().is_empty()
        && f.replacement().is_none()
        && !f.blocking;
    out.raw(if is_plain { " " } else { "<p class=fp>" });
    out.raw("Fingerprint <code>")
        .text(f.fingerprint().as_str())
        .raw("</code>");
    if f.blocking {
        out.copy("Copy the fingerprint", f.fingerprint().as_str());
    }
    out.raw("</p>\n");
}

/// Writes how to dismiss a false positive: with a comment, or with a waiver if no comment can
/// suppress the finding.
fn way_out(f: &Finding, out: &mut Markup) {
    let (label, what, text) = match remedy::comment(f) {
        Some(comment) => (
            "False positive? Add above the line: ",
            "Copy the comment",
            comment,
        ),
        None => ("False positive? Pass ", "Copy the flag", remedy::waiver(f)),
    };
    out.raw("<p class=fp>")
        .raw(label)
        .raw("<code>")
        .text(&text)
        .raw("</code>")
        .copy(what, &text);
    out.raw("</p>\n");
}

/// Writes the line below the title: whether the finding blocks, its lines, rule, category, reviewer
/// and confidence.
fn meta(f: &Finding, stand: Stand, out: &mut Markup) {
    if f.blocking {
        out.raw("<strong>blocks</strong> · ");
    }
    if let Some(span) = f.lines() {
        let (first, last) = (span.first.get(), span.last.get());
        out.raw(if first == last { "line " } else { "lines " })
            .digits(first);
        if last > first {
            out.raw("–").digits(last);
        }
        out.raw(" · ");
    } else if stand == Stand::OfFile {
        out.raw("the file as a whole · ");
    }
    out.raw("<code>")
        .text(f.rule_id())
        .raw("</code> · ")
        .raw(f.category().name());
    if let Some(cwe) = f.cwe() {
        out.raw(" · CWE-").digits(cwe);
    }
    out.raw(" · found by ").text(f.origin().name());
    if let Some(round) = f.carried_from() {
        out.raw(" in round ")
            .digits(round)
            .raw("; its lines have not changed since");
    }
    let supports: Vec<String> = f.evidence().iter().filter_map(support).collect();
    if !supports.is_empty() {
        out.raw(", supported by ").text(supports.join(", "));
    }
    if f.confidence() != Confidence::High {
        out.raw(" · confidence ").raw(f.confidence().name());
    }
}

/// Returns an item of evidence in addition to the one that made the finding.
fn support(e: &Evidence) -> Option<String> {
    match e {
        Evidence::Rule(_) | Evidence::Carried { .. } => None,
        Evidence::Reproduced => Some("a failing test".to_owned()),
        Evidence::Quote => Some("its quote".to_owned()),
        Evidence::Read { path, first, last } => {
            Some(format!("a reading of {} {first}–{last}", path.to_wire()))
        }
        Evidence::Backend(name) => Some(name.clone()),
    }
}

/// Writes a paragraph of untrusted text after a label, unless the text is blank.
fn prose(label: &'static str, text: &str, out: &mut Markup) {
    if !text.trim().is_empty() {
        out.raw("<p>").raw(label).lines(text).raw("</p>\n");
    }
}

/// Writes a reference; as a link if it is a web address of characters that need no escaping.
pub(super) fn link(reference: &str, out: &mut Markup) {
    let on_the_web = reference
        .strip_prefix("https://")
        .or_else(|| reference.strip_prefix("http://"));
    if on_the_web.is_some_and(is_linkable) {
        out.raw("<a rel=\"noreferrer noopener\" href=\"")
            .text(reference)
            .raw("\">")
            .text(reference)
            .raw("</a>");
    } else {
        out.text(reference);
    }
}

/// Returns true if a web address without its scheme starts with a host, and all its characters need
/// no escaping.
fn is_linkable(address: &str) -> bool {
    let is_harmless = address
        .bytes()
        .all(|c| c.is_ascii_alphanumeric() || b"-._~:/?#@!$&()*+,;=%".contains(&c));
    is_harmless && address.starts_with(|c: char| c.is_ascii_alphanumeric())
}

/// Writes the code that replaces the lines of a finding.
fn replacement(f: &Finding, text: &str, out: &mut Markup) {
    if text.is_empty() {
        out.raw("<p><b>Delete these lines</b></p>\n");
        return;
    }
    out.raw("<p><b>Replace with</b>");
    // A reader must not paste characters that the page cannot show.
    if !untrusted::has_active(text) {
        out.copy("Copy the replacement", text);
    }
    out.raw("</p>\n<div class=\"d w0\" translate=no>");
    let path = f.file().map_or(&[][..], |p| p.as_bytes());
    let painted = paint::lines(path, text.lines().take(REPLACED).map(str::as_bytes));
    let mut lines = text.lines();
    for (line, paint) in lines.by_ref().take(REPLACED).zip(&painted) {
        out.raw("<ins>");
        HighlightedLine {
            text: line.as_bytes(),
            paint,
            most: MOST_OF_A_LINE,
            ..HighlightedLine::default()
        }
        .write(out);
        out.raw("\n</ins>");
    }
    let more = lines.count();
    if more > 0 {
        out.raw("<div class=gap>")
            .number(more)
            .raw(" more lines</div>");
    }
    out.raw("</div>\n");
}

/// Writes the lines around a finding, with its own lines marked.
fn frame(f: &Finding, frame: &Frame, words: &SourceWords, out: &mut Markup) {
    let Some(span) = f.lines() else { return };
    let end = frame.first.get() as usize + frame.lines.len();
    let width = end.to_string().len();
    open(width, out);
    let path = f.file().map_or(&[][..], |p| p.as_bytes());
    let painted = paint::lines(path, frame.lines.iter().map(|l| &l.text[..]));
    for (i, line) in frame.lines.iter().enumerate() {
        let paint = painted.get(i).map_or(&[][..], Vec::as_slice);
        let number = frame.first.plus(u32::try_from(i).unwrap_or(u32::MAX));
        let is_marked = span.first <= number && number <= span.last;
        let tag = if line.added && words.marks_added {
            ("<ins", "\n</ins>")
        } else {
            ("<div", "\n</div>")
        };
        out.raw(tag.0).raw(if is_marked { " class=m" } else { "" });
        out.raw(" data-n=\"")
            .inert(&format!("{:>width$}", number.get()))
            .raw("\">");
        let mark = span
            .columns
            .filter(|_| number == span.first)
            .and_then(|(start, end)| {
                let start = (start as usize).checked_sub(line.skipped as usize)?;
                Some((start, (end as usize).saturating_sub(line.skipped as usize)))
            });
        let skipped = line.skipped as usize;
        HighlightedLine {
            text: &line.text,
            skipped,
            mark,
            words: &[],
            paint,
            most: MOST_OF_A_LINE,
        }
        .write(out);
        out.raw(tag.1);
    }
    if end <= span.last.get() as usize {
        out.raw("<div class=gap>to line ")
            .digits(span.last.get())
            .raw("</div>");
    }
    out.raw("</div>\n");
}

/// Opens a block of code with a number column of this width.
pub(super) fn open(width: usize, out: &mut Markup) {
    out.raw("<div class=\"d w")
        .digits(width as u64)
        .raw("\" translate=no>");
}

/// Writes the quote of a finding that has no frame.
fn quote(f: &Finding, out: &mut Markup) {
    if f.quote().trim().is_empty() {
        return;
    }
    out.raw("<div class=\"d w0\" translate=no>");
    for line in Inert::lines(f.quote()).take(QUOTED) {
        out.raw("<div>");
        HighlightedLine {
            text: line.as_str().as_bytes(),
            most: MOST_OF_A_LINE,
            ..HighlightedLine::default()
        }
        .write(out);
        out.raw("\n</div>");
    }
    out.raw("</div>\n");
}
