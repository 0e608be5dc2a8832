//! The code of a finding: the change around its lines, with syntax colours. Pure.

use crate::diff::{FileChange, Hunk, LineKind, ObjectId, TextChange, trim_line_end};
use crate::report::paint::{self, Painted};
use crate::wire::Finding;
use std::ops::Range;

/// Lines on each side of a finding that are shown, at most.
const AROUND: usize = 200;
/// Bytes of a line that are shown, at most.
const MOST: usize = 4_000;

/// The code of a finding.
#[derive(Clone, Debug, Default)]
pub struct FindingCode {
    pub rows: Vec<CodeRow>,
    /// Index of the first row of the finding.
    pub focus: usize,
    /// Source of the rows, if it is not the stored change.
    pub note: Option<&'static str>,
}

/// A row of code.
#[derive(Clone, Debug)]
pub enum CodeRow {
    /// Omitted lines.
    Gap,
    Line(CodeLine),
}

/// A line of code.
#[derive(Clone, Debug)]
pub struct CodeLine {
    /// Line number on the new side; `None` for a removed line.
    pub number: Option<u32>,
    pub kind: LineKind,
    /// True if the finding is about the line.
    pub is_marked: bool,
    pub text: Vec<u8>,
    pub paint: Vec<Painted>,
    /// The quoted part of the line, in bytes.
    pub quoted: Option<Range<usize>>,
}

/// Returns the code of a finding. Secrets in the lines are masked, as in the store.
pub fn code(finding: &Finding, files: &[(Option<ObjectId>, FileChange)]) -> FindingCode {
    let Some(file) = &finding.file else {
        return quote(finding, "the finding is about the whole change");
    };
    let found = files.iter().rev().find(|(commit, change)| {
        commit.map(|c| c.to_string()) == finding.commit && change.path().to_wire() == *file
    });
    match found.and_then(|(_, change)| change.text()) {
        Some(text) => change(finding, file, text),
        None => quote(finding, "the lines are not in the stored change"),
    }
}

/// Returns the hunks of a file, at most [`AROUND`] lines on each side of the finding.
fn change(finding: &Finding, file: &str, text: &TextChange) -> FindingCode {
    let mut all: Vec<CodeRow> = Vec::new();
    for hunk in &text.hunks {
        if !all.is_empty() {
            all.push(CodeRow::Gap);
        }
        all.extend(
            hunk_lines(finding, file, text, hunk)
                .into_iter()
                .map(CodeRow::Line),
        );
    }
    let marked = all
        .iter()
        .position(|r| matches!(r, CodeRow::Line(l) if l.is_marked));
    let ((Some(focus), _) | (None, Some(focus))) = (marked, finding.line.is_none().then_some(0))
    else {
        return quote(finding, "the lines are not in the stored change");
    };
    let from = focus.saturating_sub(AROUND);
    let to = (focus + AROUND).min(all.len());
    FindingCode {
        rows: all.drain(from..to).collect(),
        focus: focus - from,
        note: None,
    }
}

/// Returns the lines of a hunk, with those of the finding marked.
fn hunk_lines(finding: &Finding, file: &str, text: &TextChange, hunk: &Hunk) -> Vec<CodeLine> {
    let lines: Vec<_> = text.lines(hunk).collect();
    // Each side is coloured as a separate text: a removed quote must not open a string in the lines
    // after it.
    let [mut old, mut new] = [LineKind::Added, LineKind::Removed].map(|other| {
        let own = lines
            .iter()
            .filter(|l| l.kind != other)
            .map(|l| trim_line_end(l.text));
        paint::lines(file.as_bytes(), own).into_iter()
    });
    let mut out = Vec::with_capacity(lines.len());
    for line in &lines {
        let (before, after) = match line.kind {
            LineKind::Removed => (old.next(), None),
            LineKind::Added => (None, new.next()),
            LineKind::Context => (old.next(), new.next()),
        };
        let number = line.new.map(|n| n.get());
        let text = trim_line_end(line.text);
        let text = text[..text.len().min(MOST)].to_vec();
        let is_marked = number.is_some_and(|n| is_about(finding, n));
        let quoted = if is_marked {
            quoted(finding, &text)
        } else {
            None
        };
        let paint = after.or(before).unwrap_or_default();
        out.push(CodeLine {
            number,
            kind: line.kind,
            is_marked,
            text,
            paint,
            quoted,
        });
    }
    out
}

/// Returns true if a finding is about a line.
fn is_about(finding: &Finding, number: u32) -> bool {
    let Some(first) = finding.line else {
        return false;
    };
    (first..=finding.end_line.unwrap_or(first)).contains(&number)
}

/// Finds the quote of a finding on a line; `None` for a quote of the whole line, which needs no
/// mark.
fn quoted(finding: &Finding, text: &[u8]) -> Option<Range<usize>> {
    let quote = finding.quote.lines().next()?.trim().as_bytes();
    let at = memchr::memmem::find(text, quote).filter(|_| !quote.is_empty())?;
    (quote.len() < text.trim_ascii().len()).then_some(at..at + quote.len())
}

/// Returns the quote of a finding, for one whose lines are not in the change.
fn quote(finding: &Finding, note: &'static str) -> FindingCode {
    let lines: Vec<&str> = finding.quote.lines().collect();
    let path = finding.file.as_deref().unwrap_or_default();
    let painted = paint::lines(path.as_bytes(), lines.iter().map(|l| l.as_bytes()));
    let mut rows = Vec::new();
    for ((text, paint), i) in lines.iter().zip(painted).zip(0..) {
        let number = finding.line.map(|n| n.saturating_add(i));
        let (kind, text) = (LineKind::Context, text.as_bytes().to_vec());
        rows.push(CodeRow::Line(CodeLine {
            number,
            kind,
            is_marked: true,
            text,
            paint,
            quoted: None,
        }));
    }
    FindingCode {
        rows,
        focus: 0,
        note: Some(note),
    }
}

/// Returns the replacement of a finding as a diff: its lines removed, and the new ones added.
pub fn replacement(finding: &Finding, code: &FindingCode) -> Vec<CodeLine> {
    let Some(replacement) = &finding.replacement else {
        return Vec::new();
    };
    let path = finding.file.as_deref().unwrap_or_default().as_bytes();
    let marked = code.rows.iter().filter_map(|row| match row {
        CodeRow::Line(l) if l.is_marked => {
            Some(unnumbered(LineKind::Removed, &l.text, l.paint.clone()))
        }
        _ => None,
    });
    let mut out: Vec<CodeLine> = marked.collect();
    let lines: Vec<&[u8]> = replacement.lines().map(str::as_bytes).collect();
    let painted = paint::lines(path, lines.iter().copied());
    out.extend(
        lines
            .iter()
            .zip(painted)
            .map(|(text, paint)| unnumbered(LineKind::Added, text, paint)),
    );
    out
}

/// Returns a line of a replacement.
fn unnumbered(kind: LineKind, text: &[u8], paint: Vec<Painted>) -> CodeLine {
    CodeLine {
        number: None,
        kind,
        is_marked: false,
        text: text.to_vec(),
        paint,
        quoted: None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample::subject;
    use super::*;

    fn shown(code: &FindingCode) -> Vec<String> {
        let lines = code.rows.iter().map(|row| match row {
            CodeRow::Gap => "...".to_owned(),
            CodeRow::Line(l) => {
                let sign = match l.kind {
                    LineKind::Added => '+',
                    LineKind::Removed => '-',
                    LineKind::Context => ' ',
                };
                let mark = if l.is_marked { '>' } else { ' ' };
                let number = l.number.map(|n| n.to_string()).unwrap_or_default();
                format!("{mark}{number}{sign}{}", String::from_utf8_lossy(&l.text))
            }
        });
        lines.collect()
    }

    #[test]
    fn the_change_around_a_finding_is_shown_with_both_sides() {
        let subject = subject();
        let code = code(&subject.items[1].finding, &subject.files);
        let rows = shown(&code);
        assert!(rows.iter().any(|r| r.starts_with(" -")), "{rows:?}");
        assert!(rows[code.focus].starts_with('>'), "{rows:?}");
        assert!(code.note.is_none());
    }

    #[test]
    fn a_finding_outside_of_the_change_shows_its_quote() {
        let subject = subject();
        let mut finding = subject.items[1].finding.clone();
        finding.line = Some(9_999);
        finding.end_line = None;
        let code = code(&finding, &subject.files);
        assert_eq!(shown(&code), [format!(">9999 {}", finding.quote)]);
        assert!(code.note.is_some());
    }

    #[test]
    fn a_replacement_is_a_diff_of_the_lines() {
        let subject = subject();
        let finding = &subject.items[1].finding;
        let code = code(finding, &subject.files);
        let diff = replacement(finding, &code);
        let signs: Vec<LineKind> = diff.iter().map(|l| l.kind).collect();
        assert_eq!(signs, [LineKind::Removed, LineKind::Added]);
        assert_eq!(
            diff[1].text,
            finding.replacement.as_deref().unwrap().as_bytes()
        );
    }
}
