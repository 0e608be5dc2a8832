//! Selects the part of the change on the page: files, lines, and the position of each finding.
//!
//! The number of lines is bounded. Lines around findings are selected first, starting with the
//! worst findings; then the rest of their files, then other files. Gaps state the number of omitted
//! lines.

use crate::diff::{Body, FileChange, Hunk, ObjectId, RepoPath, TextChange};
use crate::finding::{Finding, LineSpan};
use crate::report::finding_text::badness;
use crate::report::source_words::SourceWords;
use crate::review::{Record, Review};
use std::collections::HashMap;
use std::ops::Range;

/// Lines on a page, and lines of one file in addition to those around its findings, at most.
const LINES: usize = 24_000;
const LINES_OF_A_FILE: usize = 4_000;
/// Lines on each side of a finding that are selected before all others.
const AROUND: usize = 8;
/// Findings on a page, at most.
const FINDINGS: usize = 8_000;
/// Files without findings on a page, at most.
const FILES: usize = 2_000;

/// The content of the page.
#[derive(Debug)]
pub(super) struct HtmlPage<'r> {
    /// In the order of the change; files that are not in it last.
    pub(super) files: Vec<FileSection<'r>>,
    /// Findings about the change as a whole, by their index in the review.
    pub(super) whole: Vec<usize>,
    /// Reason why no lines are shown; `None` if lines are shown.
    pub(super) without_lines: Option<&'static str>,
    /// Findings that are not on the page.
    pub(super) findings_left_out: usize,
    /// Files without findings that are not on the page.
    pub(super) files_left_out: Vec<RepoPath>,
    /// Lines that are not on the page.
    pub(super) lines_left_out: usize,
    /// The page has so many lines that long ones are truncated.
    pub(super) is_large: bool,
}

/// The content of the page for one file.
#[derive(Debug)]
pub(super) struct FileSection<'r> {
    pub(super) commit: Option<ObjectId>,
    pub(super) path: RepoPath,
    /// `None` if the stored change does not have the file.
    pub(super) change: Option<FileChange>,
    /// The change names the file without its lines.
    pub(super) is_left_out: bool,
    /// Findings without a shown line. Their cards have their own code.
    pub(super) loose: Vec<usize>,
    /// Findings on shown lines.
    pub(super) placed: Vec<Placed>,
    /// The lines of each hunk that are shown, as ranges of rows.
    pub(super) shown: Vec<Vec<Range<usize>>>,
    findings: &'r [Finding],
}

/// A finding on lines of a hunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Placed {
    pub(super) finding: usize,
    pub(super) hunk: usize,
    /// The rows of the finding. Its card is below the last.
    pub(super) rows: Range<usize>,
}

impl<'r> HtmlPage<'r> {
    /// Selects the content of the page.
    pub(super) fn of(review: &'r Review) -> Self {
        let (changes, without_lines) = match &review.record {
            None => (Vec::new(), Some(SourceWords::of(&review.source).not_stored)),
            Some(r) => match Record::read(&r.text) {
                Some(changes) => (changes, None),
                None => (
                    Vec::new(),
                    Some("Cannot read the stored change. Each finding shows its own lines."),
                ),
            },
        };
        let left_out: &[String] = review.record.as_ref().map_or(&[], |r| &r.left_out);
        let mut files: Vec<FileSection<'r>> = changes
            .into_iter()
            .map(|(commit, change)| {
                let mut file = FileSection::new(commit, change.path().clone(), &review.findings);
                file.is_left_out = left_out.contains(&file.path.to_wire());
                file.shown = vec![Vec::new(); change.text().map_or(0, |t| t.hunks.len())];
                file.change = Some(change);
                file
            })
            .collect();
        let chosen = chosen(&review.findings);
        let whole = place(&review.findings, &chosen, &mut files);
        let files_left_out = thin_out(&mut files);
        let mut page = Self {
            files,
            whole,
            without_lines,
            findings_left_out: review.findings.len() - chosen.len(),
            files_left_out,
            lines_left_out: 0,
            is_large: false,
        };
        page.choose_lines(&review.findings);
        page
    }

    /// Selects the lines. A finding whose lines are not selected shows its own code.
    fn choose_lines(&mut self, findings: &[Finding]) {
        let all: usize = self.files.iter().map(FileSection::rows).sum();
        let mut room = LINES;
        self.is_large = all > LINES / 4;
        let mut by_rank: Vec<(usize, usize)> = Vec::new();
        for (i, file) in self.files.iter().enumerate() {
            by_rank.extend((0..file.placed.len()).map(|p| (i, p)));
        }
        by_rank.sort_by_key(|(i, p)| badness(&findings[self.files[*i].placed[*p].finding]));
        for (i, p) in by_rank {
            let file = &mut self.files[i];
            let Placed { hunk, rows, .. } = file.placed[p].clone();
            let most = file.rows_of(hunk);
            // For a finding over many lines, its first and last lines are enough.
            let end = (rows.end.min(rows.start + 2 * AROUND) + AROUND).min(most);
            let last =
                rows.end.saturating_sub(AROUND).max(rows.start)..(rows.end + AROUND).min(most);
            for window in [rows.start.saturating_sub(AROUND)..end, last] {
                file.show(hunk, window, &mut room);
            }
        }
        for with_findings in [true, false] {
            for file in &mut self.files {
                if file.findings().next().is_some() != with_findings {
                    continue;
                }
                let mut own = room.min(LINES_OF_A_FILE);
                let before = own;
                for hunk in 0..file.shown.len() {
                    let rows = file.rows_of(hunk);
                    file.show(hunk, 0..rows, &mut own);
                }
                room -= before - own;
            }
        }
        for file in &mut self.files {
            file.loosen();
        }
        let shown: usize = self.files.iter().map(FileSection::rows_shown).sum();
        self.lines_left_out = all - shown;
    }

    /// Returns true if a finding is on the page, so that links to it work.
    pub(super) fn shows(&self, finding: usize) -> bool {
        self.whole.contains(&finding)
            || self.files.iter().any(|f| {
                f.loose.contains(&finding) || f.placed.iter().any(|p| p.finding == finding)
            })
    }
}

impl<'r> FileSection<'r> {
    fn new(commit: Option<ObjectId>, path: RepoPath, findings: &'r [Finding]) -> Self {
        Self {
            commit,
            path,
            change: None,
            is_left_out: false,
            loose: Vec::new(),
            placed: Vec::new(),
            shown: Vec::new(),
            findings,
        }
    }

    /// Returns the text change, if there are lines to show.
    pub(super) fn text(&self) -> Option<&TextChange> {
        match &self.change.as_ref()?.body {
            Body::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the findings of the file, in the order of the page.
    pub(super) fn findings(&self) -> impl Iterator<Item = &'r Finding> {
        let all = self.findings;
        self.loose
            .iter()
            .copied()
            .chain(self.placed.iter().map(|p| p.finding))
            .map(move |i| &all[i])
    }

    /// Returns a finding of the review.
    pub(super) fn finding(&self, index: usize) -> &'r Finding {
        &self.findings[index]
    }

    fn rows_of(&self, hunk: usize) -> usize {
        self.text().and_then(|t| t.hunks.get(hunk)).map_or(0, rows)
    }

    /// Returns the number of rows of all hunks.
    pub(super) fn rows(&self) -> usize {
        (0..self.shown.len()).map(|h| self.rows_of(h)).sum()
    }

    fn rows_shown(&self) -> usize {
        self.shown.iter().flatten().map(Range::len).sum()
    }

    /// Selects rows of a hunk, from the first one on, within the remaining room.
    fn show(&mut self, hunk: usize, rows: Range<usize>, room: &mut usize) {
        let Some(shown) = self.shown.get_mut(hunk) else {
            return;
        };
        let mut at = rows.start;
        while at < rows.end && *room > 0 {
            // The first range that ends after `at`.
            let next = shown.partition_point(|r| r.end <= at);
            match shown.get(next) {
                Some(r) if r.start <= at => at = r.end,
                after => {
                    let end = after
                        .map_or(rows.end, |r| r.start.min(rows.end))
                        .min(at + *room);
                    *room -= end - at;
                    shown.insert(next, at..end);
                    at = end;
                }
            }
        }
        shown.dedup_by(|b, a| {
            let touch = a.end == b.start;
            if touch {
                a.end = b.end;
            }
            touch
        });
    }

    /// Detaches the findings whose last line is not selected.
    fn loosen(&mut self) {
        let shown = std::mem::take(&mut self.shown);
        let all = std::mem::take(&mut self.placed).into_iter();
        let (placed, hidden): (Vec<_>, Vec<_>) = all.partition(|p| {
            let last = p.rows.end.saturating_sub(1);
            shown
                .get(p.hunk)
                .is_some_and(|ranges| ranges.iter().any(|r| r.contains(&last)))
        });
        self.loose.extend(hidden.iter().map(|p| p.finding));
        self.loose.sort_unstable();
        self.placed = placed;
        self.placed
            .sort_by_key(|p| (p.hunk, p.rows.end, p.rows.start, p.finding));
        self.shown = shown;
    }
}

/// Returns the number of rows of a hunk.
pub(super) fn rows(hunk: &Hunk) -> usize {
    hunk.old.count as usize
        + hunk
            .edits
            .iter()
            .map(|e| e.new.count as usize)
            .sum::<usize>()
}

/// Returns the indices of the findings on the page, in order: all, or the worst of very many.
fn chosen(findings: &[Finding]) -> Vec<usize> {
    let mut all: Vec<usize> = (0..findings.len()).collect();
    if all.len() > FINDINGS {
        all.sort_by_key(|i| (badness(&findings[*i]), *i));
        all.truncate(FINDINGS);
        all.sort_unstable();
    }
    all
}

/// Assigns findings to their files, and adds files that the change does not have. Returns the
/// findings without a file.
fn place<'r>(
    findings: &'r [Finding],
    chosen: &[usize],
    files: &mut Vec<FileSection<'r>>,
) -> Vec<usize> {
    let mut by_path: HashMap<(Option<ObjectId>, RepoPath), Vec<usize>> = HashMap::new();
    for (i, file) in files.iter().enumerate() {
        by_path
            .entry((file.commit, file.path.clone()))
            .or_default()
            .push(i);
    }
    let mut whole = Vec::new();
    for &index in chosen {
        let f = &findings[index];
        let Some(path) = f.file() else {
            whole.push(index);
            continue;
        };
        let known = by_path.entry((f.commit, path.clone())).or_insert_with(|| {
            files.push(FileSection::new(f.commit, path.clone(), findings));
            vec![files.len() - 1]
        });
        let on_lines = f.lines().and_then(|span| {
            // If two branches of a push change the file, select the one that has the line.
            known
                .iter()
                .find_map(|i| Some((*i, locate(files[*i].text()?, span)?)))
        });
        match on_lines {
            Some((file, (hunk, rows))) => files[file].placed.push(Placed {
                finding: index,
                hunk,
                rows,
            }),
            None => {
                if let Some(first) = known.first() {
                    files[*first].loose.push(index);
                }
            }
        }
    }
    whole
}

/// Removes files without findings past a limit, and returns their names.
fn thin_out(files: &mut Vec<FileSection<'_>>) -> Vec<RepoPath> {
    let mut kept = 0;
    let mut names = Vec::new();
    files.retain(|f| {
        let has_findings = f.findings().next().is_some();
        let is_kept = has_findings || kept < FILES;
        kept += usize::from(!has_findings);
        if !is_kept {
            names.push(f.path.clone());
        }
        is_kept
    });
    names
}

/// Returns the hunk that contains the first line, and the rows of those lines that it contains.
fn locate(text: &TextChange, span: LineSpan) -> Option<(usize, Range<usize>)> {
    let first = span.first.get();
    let at = text
        .hunks
        .partition_point(|h| h.new.start.saturating_add(h.new.count) <= first);
    let hunk = text.hunks.get(at).filter(|h| h.new.start <= first)?;
    let last = span
        .last
        .get()
        .max(first)
        .min(hunk.new.start + hunk.new.count - 1);
    Some((at, row(hunk, first)..row(hunk, last) + 1))
}

/// Returns the row of a line of the new side. The hunk must contain the line.
fn row(hunk: &Hunk, line: u32) -> usize {
    let (mut row, mut at) = (0, hunk.new.start);
    for edit in &hunk.edits {
        if line < edit.new.start {
            break;
        }
        row += (edit.new.start - at) as usize + edit.old.count as usize;
        at = edit.new.start;
        if line < at + edit.new.count {
            break;
        }
        row += edit.new.count as usize;
        at += edit.new.count;
    }
    row + (line - at) as usize
}
