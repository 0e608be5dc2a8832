//! The files of the change, line by line, with the findings below their lines.

use super::card::{self, ShownMessages, Stand};
use super::change::{FileSection, HtmlPage, rows};
use super::changed;
use super::code::HighlightedLine;
use super::markup::Markup;
use crate::diff::{
    Body, ChangeKind, FileMode, Hunk, HunkLine, LineKind, LineNo, TextChange, trim_line_end,
};
use crate::finding::{Finding, Origin};
use crate::report::paint::{self, Painted};
use crate::report::source_words::SourceWords;
use crate::review::Review;
use crate::text::plural;
use std::collections::HashMap;
use std::iter::Peekable;
use std::ops::Range;

/// Bytes of a line, on a page with few lines and on one with many, at most.
const LINE: usize = 2_000;
const LINE_OF_MANY: usize = 400;
/// Lines that the browser lays out together.
const BLOCK: usize = 40;
/// Bytes of code on a page, at most; further lines are counted.
const BYTES: usize = 24 << 20;

/// Writes the files.
pub(super) struct HtmlFiles<'r> {
    pub(super) review: &'r Review,
    pub(super) page: &'r HtmlPage<'r>,
    pub(super) origins: &'r [&'r Origin],
}

impl<'r> HtmlFiles<'r> {
    /// Writes file number `number` of the page.
    pub(super) fn write(&self, number: usize, out: &mut Markup) {
        let Some(file) = self.page.files.get(number) else {
            return;
        };
        out.raw("<section class=file id=file")
            .digits(number as u64 + 1);
        out.raw("><details open>\n<summary><h3>");
        head(file, out);
        if file.change.is_none() && self.page.without_lines.is_none() {
            out.raw(" <span class=tag>not in the stored change</span>");
        }
        out.raw("</summary>\n");
        let mut said = ShownMessages::new();
        for index in &file.loose {
            self.card(*index, Stand::OfFile, &mut said, out);
        }
        self.lines(file, &mut said, out);
        out.raw("</details></section>\n");
    }

    /// Writes a finding.
    pub(super) fn card(
        &self,
        index: usize,
        stand: Stand,
        said: &mut ShownMessages<'r>,
        out: &mut Markup,
    ) {
        let Some(f) = self.review.findings.get(index) else {
            return;
        };
        let origin = self
            .origins
            .iter()
            .position(|o| *o == f.origin())
            .unwrap_or_default();
        let words = SourceWords::of(&self.review.source);
        card::write(f, (index, origin), stand, said, words, out);
    }

    fn lines(&self, file: &FileSection<'r>, said: &mut ShownMessages<'r>, out: &mut Markup) {
        let text = match file.change.as_ref().map(|c| &c.body) {
            _ if file.is_left_out => {
                out.raw("<p class=none>The lines of this file were not stored: the file is too large, or its name says that it holds secrets.</p>\n");
                return;
            }
            None => return,
            Some(Body::Text(text)) if text.hidden.is_none() && !text.hunks.is_empty() => text,
            Some(Body::Text(_) | Body::Same) => {
                out.raw("<p class=none>No lines changed.</p>\n");
                return;
            }
            Some(Body::Binary(_)) => {
                out.raw("<p class=none>Binary file.</p>\n");
                return;
            }
            Some(Body::Submodule { .. }) => {
                out.raw("<p class=none>Submodule commit.</p>\n");
                return;
            }
        };
        let last = text.hunks.last().map_or(1, |h| {
            (h.old.start + h.old.count).max(h.new.start + h.new.count)
        });
        let digits = last.to_string().len();
        card::open(2 * digits + 1, out);
        let mut left_out = 0;
        for (at, hunk) in text.hunks.iter().enumerate() {
            let shown = file.shown.get(at).map_or(&[][..], Vec::as_slice);
            if shown.is_empty() || out.len() > BYTES {
                left_out += rows(hunk);
                continue;
            }
            gap(std::mem::take(&mut left_out), out);
            self.hunk(
                &Window {
                    file,
                    text,
                    at,
                    hunk,
                    shown,
                    digits,
                },
                said,
                out,
            );
        }
        gap(left_out, out);
        out.raw("</div>\n");
    }

    fn hunk(&self, w: &Window<'_, 'r>, said: &mut ShownMessages<'r>, out: &mut Markup) {
        let most = if self.page.is_large {
            LINE_OF_MANY
        } else {
            LINE
        };
        out.raw("<div class=h>@@ −");
        range(w.hunk.old.start, w.hunk.old.count, out);
        out.raw(" +");
        range(w.hunk.new.start, w.hunk.new.count, out);
        out.raw(" @@ ").text(w.text.section(w.hunk)).raw("</div>");
        let words = changed_words(w);
        let paint = if self.page.is_large {
            Vec::new()
        } else {
            paint(w)
        };
        let mut placed = w.file.placed.iter().filter(|p| p.hunk == w.at).peekable();
        let marked = marked(w);
        let shows_ends = has_both_ends(w);
        let mut lines = w.text.lines(w.hunk);
        let (mut row, mut block) = (0, 0);
        for range in w.shown {
            gap(range.start - row, out);
            let skipped = range.start - row;
            for (i, line) in lines.by_ref().skip(skipped).take(range.len()).enumerate() {
                row = range.start + i;
                if block == 0 {
                    let until = placed
                        .peek()
                        .map_or(range.end, |p| p.rows.end.clamp(row + 1, range.end));
                    // A few lines are laid out faster than they are deferred.
                    out.raw(if until - row < BLOCK / 4 {
                        "<div class=\"b few\">"
                    } else {
                        "<div class=b>"
                    });
                }
                let look = RowStyle {
                    mark: marked.get(&row).copied(),
                    words: words.get(&row).map_or(&[], Vec::as_slice),
                    paint: paint.get(row).map_or(&[], Vec::as_slice),
                    most,
                    digits: w.digits,
                    shows_ends,
                };
                self::row(&line, &look, out);
                block += 1;
                let has_cards = placed.peek().is_some_and(|p| p.rows.end == row + 1);
                if has_cards || block == BLOCK {
                    out.raw("</div>\n");
                    block = 0;
                }
                while let Some(p) = placed.next_if(|p| p.rows.end == row + 1) {
                    self.card(p.finding, Stand::InPlace, said, out);
                }
            }
            row = range.end;
            if block > 0 {
                out.raw("</div>\n");
                block = 0;
            }
        }
        gap(rows(w.hunk) - row, out);
    }
}

/// A hunk, and its shown rows.
struct Window<'w, 'r> {
    file: &'w FileSection<'r>,
    text: &'w TextChange,
    /// Its number in the file.
    at: usize,
    hunk: &'w Hunk,
    shown: &'w [Range<usize>],
    /// Digits of the largest line number.
    digits: usize,
}

impl Window<'_, '_> {
    fn shows(&self, row: usize) -> bool {
        self.shown.iter().any(|r| r.contains(&row))
    }
}

/// The style of a row.
struct RowStyle<'a> {
    /// A finding is on this row: on these bytes, or on the whole row.
    mark: Option<Option<(u32, u32)>>,
    words: &'a [Range<usize>],
    paint: &'a [Painted],
    most: usize,
    digits: usize,
    /// Show a carriage return at the end.
    shows_ends: bool,
}

/// Writes a line of a hunk with its numbers.
fn row(line: &HunkLine<'_>, look: &RowStyle<'_>, out: &mut Markup) {
    let (open, close) = match line.kind {
        LineKind::Added => ("<ins", "\n</ins>"),
        LineKind::Removed => ("<del", "\n</del>"),
        LineKind::Context => ("<div", "\n</div>"),
    };
    out.raw(open)
        .raw(if look.mark.is_some() { " class=m" } else { "" })
        .raw(" data-n=\"");
    let (old, new, digits) = (number(line.old), number(line.new), look.digits);
    out.inert(&format!("{old:>digits$} {new:>digits$}"))
        .raw("\">");
    let mark = look
        .mark
        .flatten()
        .map(|(start, end)| (start as usize, end as usize));
    let text = trim_line_end(line.text);
    HighlightedLine {
        text,
        skipped: 0,
        mark,
        words: look.words,
        paint: look.paint,
        most: look.most,
    }
    .write(out);
    if look.shows_ends && line.text.ends_with(b"\r\n") {
        out.raw("<i>\\r</i>");
    }
    if !line.text.ends_with(b"\n") {
        out.raw("<i class=x> (no line end)</i>");
    }
    out.raw(close);
}

/// Returns the digits of a line number, or an empty text for a side without the line.
fn number(n: Option<LineNo>) -> String {
    n.map_or_else(String::new, |n| n.get().to_string())
}

/// Writes a range as in the header of a hunk.
fn range(start: u32, count: u32, out: &mut Markup) {
    // Git gives an empty range the number of the line before it.
    out.digits(if count == 0 { start - 1 } else { start });
    if count != 1 {
        out.raw(",").digits(count);
    }
}

/// Writes how many rows are left out.
fn gap(rows: usize, out: &mut Markup) {
    if rows > 0 {
        out.raw("<div class=gap>")
            .number(rows)
            .raw(if rows == 1 { " line" } else { " lines" });
        out.raw(" not shown</div>\n");
    }
}

/// Returns the rows of findings, and their columns if known.
fn marked(w: &Window<'_, '_>) -> HashMap<usize, Option<(u32, u32)>> {
    let mut out = HashMap::new();
    for p in w.file.placed.iter().filter(|p| p.hunk == w.at) {
        let columns = w.file.finding(p.finding).lines().and_then(|s| s.columns);
        for row in p.rows.clone().take(1_000) {
            let own = columns.filter(|_| row == p.rows.start);
            let known: &mut Option<(u32, u32)> = out.entry(row).or_default();
            *known = known.or(own);
        }
    }
    out
}

/// Returns true if a hunk has both kinds of line ends, which look the same without a mark.
fn has_both_ends(w: &Window<'_, '_>) -> bool {
    let mut ends = w
        .text
        .lines(w.hunk)
        .filter(|l| l.text.ends_with(b"\n"))
        .map(|l| l.text.ends_with(b"\r\n"));
    ends.next()
        .is_some_and(|first| ends.any(|end| end != first))
}

/// Returns the syntax colours of the rows of a hunk. Each side is coloured as a separate text;
/// unchanged lines are part of the new side.
fn paint(w: &Window<'_, '_>) -> Vec<Vec<Painted>> {
    let all: Vec<HunkLine<'_>> = w.text.lines(w.hunk).collect();
    let path = w.file.path.as_bytes();
    let old = all
        .iter()
        .filter(|l| l.kind != LineKind::Added)
        .map(|l| trim_line_end(l.text));
    let new = all
        .iter()
        .filter(|l| l.kind != LineKind::Removed)
        .map(|l| trim_line_end(l.text));
    let (mut old, mut new) = (
        paint::lines(path, old).into_iter(),
        paint::lines(path, new).into_iter(),
    );
    let mut out = Vec::with_capacity(all.len());
    for line in &all {
        let of_old = if line.kind == LineKind::Added {
            None
        } else {
            old.next()
        };
        let of_new = if line.kind == LineKind::Removed {
            None
        } else {
            new.next()
        };
        out.push(of_new.or(of_old).unwrap_or_default());
    }
    out
}

/// Returns the changed words of replaced lines, by row.
fn changed_words(w: &Window<'_, '_>) -> HashMap<usize, Vec<Range<usize>>> {
    let mut out = HashMap::new();
    let mut lines = w.text.lines(w.hunk).enumerate().peekable();
    while let Some((_, line)) = lines.peek() {
        if line.kind == LineKind::Context {
            lines.next();
            continue;
        }
        let removed = next_block(&mut lines, LineKind::Removed);
        let added = next_block(&mut lines, LineKind::Added);
        // Lines can be paired only if the counts are equal.
        if removed.len() != added.len() {
            continue;
        }
        for ((old_row, old), (new_row, new)) in removed.into_iter().zip(added) {
            if w.shows(old_row)
                && w.shows(new_row)
                && let Some((gone, come)) = changed::changed(old, new)
            {
                out.insert(old_row, gone);
                out.insert(new_row, come);
            }
        }
    }
    out
}

/// Takes the next lines of a kind, with their rows and without their line ends.
fn next_block<'l>(
    lines: &mut Peekable<impl Iterator<Item = (usize, HunkLine<'l>)>>,
    kind: LineKind,
) -> Vec<(usize, &'l [u8])> {
    let mut block = Vec::new();
    while let Some((row, line)) = lines.next_if(|(_, l)| l.kind == kind) {
        block.push((row, trim_line_end(line.text)));
    }
    block
}

/// Writes the heading of a file, after the opening `h3` tag.
fn head(file: &FileSection<'_>, out: &mut Markup) {
    out.text(file.path.as_bytes()).raw("</h3>");
    if let Some(change) = &file.change {
        let tag = match change.entry.kind {
            ChangeKind::Added => "new",
            ChangeKind::Deleted => "deleted",
            ChangeKind::Renamed { .. } => "renamed",
            ChangeKind::Copied { .. } => "copied",
            ChangeKind::Modified => "",
        };
        if !tag.is_empty() {
            out.raw(" <span class=tag>").raw(tag).raw("</span>");
        }
        if let (Some(old), ChangeKind::Renamed { similarity } | ChangeKind::Copied { similarity }) =
            (&change.entry.old, change.entry.kind)
        {
            out.raw(" <span class=from>from ").text(old.path.as_bytes());
            out.raw(" (").digits(similarity).raw("% similar)</span>");
        }
        if let (Some(old), Some(new)) = (&change.entry.old, &change.entry.new)
            && old.mode != new.mode
        {
            out.raw(" <span class=tag>")
                .raw(mode(old.mode))
                .raw(" → ")
                .raw(mode(new.mode))
                .raw("</span>");
        }
        if let Some(text) = change.text() {
            let (added, removed) = text.stat();
            out.raw(" <span class=st><span class=add>+")
                .number(added as usize);
            out.raw("</span> <span class=rem>−")
                .number(removed as usize)
                .raw("</span></span>");
        }
    }
    if let Some(commit) = file.commit {
        out.raw(" <span class=tag>commit ")
            .text(commit.short())
            .raw("</span>");
    }
    let n = file.findings().count();
    if n > 0 {
        let blocking = file.findings().filter(|f| f.blocking).count();
        out.raw(" <span class=\"n ")
            .raw(worst(file).unwrap_or("aside"))
            .raw("\">")
            .text(plural(n, "finding"));
        if blocking > 0 {
            out.raw(if blocking == n { "" } else { ", " });
            if blocking < n {
                out.number(blocking);
            }
            out.raw(if blocking == 1 { " blocks" } else { " block" });
        }
        out.raw("</span>");
    }
}

/// Returns the severity of the worst finding of a file that counts.
pub(super) fn worst(file: &FileSection<'_>) -> Option<&'static str> {
    file.findings()
        .filter(|f| f.counts())
        .map(Finding::severity)
        .max()
        .map(|s| s.name())
}

/// Returns the name of a file mode.
fn mode(mode: FileMode) -> &'static str {
    match mode {
        FileMode::Regular => "file",
        FileMode::Executable => "executable",
        FileMode::Symlink => "link",
        FileMode::Submodule => "submodule",
    }
}
