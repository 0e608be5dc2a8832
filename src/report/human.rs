//! The report for people: findings by file with the code around them, the files that were not
//! reviewed, the verdict.
//!
//! The verdict comes last, where a reader of a terminal starts. The number of findings is bounded:
//! the worst are shown in full, the others in one line for each rule of a file, and omitted ones
//! are counted.

mod frame;
mod models;
mod page;

use self::page::{BLUE, BOLD, CYAN, DIM, GREEN, HumanPage, PLAIN, RED, StyledLine, YELLOW, elide};
use super::finding_text::{self, badness};
use super::words;
use super::{Style, remedy};
use crate::diff::RepoPath;
use crate::finding::{Confidence, Finding, Severity, column};
use crate::review::Review;
use crate::text::{listed, plural};
use crate::untrusted::{self, Inert};
use crate::verdict::{Outcome, Verdict};
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::io::{self, Write};

/// Findings shown with their code, at most.
const IN_FULL: usize = 40;
/// Findings of one rule in one file shown with their code, at most.
const OF_A_KIND: usize = 3;
/// Lines for findings that are shown without code, at most.
const BRIEF: usize = 100;
/// Notes shown, at most.
const NOTES: usize = 20;
/// Names listed for one reason of not being reviewed, and findings listed next to the verdict, at
/// most.
const NAMES: usize = 10;
/// Findings that fit on one screen. With more, the blocking ones are listed again next to the
/// verdict.
const FEW: usize = 10;

/// The frame around the findings of a file.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FileFrame {
    /// A line with the file name above.
    Heading,
    /// Workflow commands that fold the findings in the log of GitHub Actions.
    Group,
}

/// Writes the report for people.
pub fn render(review: &Review, style: &Style, out: &mut dyn Write) -> io::Result<()> {
    let mut buffer = io::BufWriter::new(out);
    let mut page = HumanPage::new(review, style, &mut buffer);
    findings(&mut page, review, FileFrame::Heading)?;
    after(&mut page, review)?;
    buffer.flush()
}

/// Writes the findings, with one group of the GitHub Actions log for each file.
pub(super) fn groups(review: &Review, style: &Style, out: &mut dyn Write) -> io::Result<()> {
    findings(
        &mut HumanPage::new(review, style, out),
        review,
        FileFrame::Group,
    )
}

/// Writes the part after the findings.
pub(super) fn rest(review: &Review, style: &Style, out: &mut dyn Write) -> io::Result<()> {
    after(&mut HumanPage::new(review, style, out), review)
}

/// Writes what follows the findings: the parts that were not reviewed, notes, and the verdict.
fn after(page: &mut HumanPage<'_>, review: &Review) -> io::Result<()> {
    if page.style.quiet {
        return if review.verdict == Verdict::Incomplete {
            failed(page, review)
        } else {
            Ok(())
        };
    }
    set_aside(page, review)?;
    models::write(page, review)?;
    context(page, review)?;
    notes(page, review)?;
    failed(page, review)?;
    skipped(page, review)?;
    verdict(page, review)
}

/// Returns the style of a severity.
fn accent(severity: Severity) -> anstyle::Style {
    match severity {
        Severity::Critical => RED,
        Severity::Major => YELLOW,
        Severity::Minor => CYAN,
        Severity::Suggestion => BLUE,
    }
}

/// Writes the findings that count, by file.
fn findings(page: &mut HumanPage<'_>, review: &Review, around: FileFrame) -> io::Result<()> {
    let mut counting: Vec<&Finding> = review.findings.iter().filter(|f| f.counts()).collect();
    for group in counting.chunk_by_mut(|a, b| a.file() == b.file()) {
        // A stable sort: findings of one severity stay in the order of their lines.
        group.sort_by_key(|f| badness(f));
    }
    let mut full = in_full(&counting, page.style.verbose).into_iter();
    let (mut brief_lines, mut unlisted) = (0, 0);
    for group in counting.chunk_by(|a, b| a.file() == b.file()) {
        let (whole, rest): (Vec<_>, Vec<_>) = group
            .iter()
            .copied()
            .zip(full.by_ref())
            .partition(|(_, in_full)| *in_full);
        if !whole.is_empty() {
            page.gap()?;
            match around {
                FileFrame::Heading => heading(page, group)?,
                FileFrame::Group => {
                    page.command(
                        "group",
                        &format!("{} ({})", name(page, group), plural(group.len(), "finding")),
                    )?;
                }
            }
        }
        let mut said: HashSet<(&str, Option<&str>)> = HashSet::new();
        for (f, _) in &whole {
            page.gap()?;
            finding(page, review, f, said.insert((f.message(), f.suggestion())))?;
        }
        if brief_lines >= BRIEF {
            unlisted += rest.len();
        } else if !rest.is_empty() {
            let mut kinds: BTreeMap<(Reverse<Severity>, &str), Vec<&Finding>> = BTreeMap::new();
            for (f, _) in rest {
                kinds
                    .entry((Reverse(f.severity()), f.rule_id()))
                    .or_default()
                    .push(f);
            }
            page.gap()?;
            for more in kinds.values() {
                brief_lines += 1;
                briefly(page, more, !whole.is_empty())?;
            }
        }
        if matches!(around, FileFrame::Group) && !whole.is_empty() {
            page.command("endgroup", "")?;
        }
    }
    if unlisted > 0 {
        page.gap()?;
        let text =
            format!("and {unlisted} more findings (-v lists all, and so does --format json)");
        page.wrapped(&StyledLine::new().put(BOLD, Inert::new(text)), 4)?;
    }
    Ok(())
}

/// Returns for each finding whether it is shown with its code: the worst ones, and few of a kind.
fn in_full(findings: &[&Finding], verbose: bool) -> Vec<bool> {
    if verbose {
        return vec![true; findings.len()];
    }
    let mut of_a_kind: HashMap<(Option<&RepoPath>, &str), usize> = HashMap::new();
    let mut chosen: Vec<usize> = (0..findings.len())
        .filter(|i| {
            let f = findings[*i];
            let n = of_a_kind.entry((f.file(), f.rule_id())).or_default();
            *n += 1;
            *n <= OF_A_KIND
        })
        .collect();
    chosen.sort_by_key(|i| (badness(findings[*i]), *i));
    let mut full = vec![false; findings.len()];
    for i in chosen.into_iter().take(IN_FULL) {
        full[i] = true;
    }
    full
}

/// Returns the name above the findings of a file.
fn name(page: &HumanPage<'_>, group: &[&Finding]) -> Inert {
    match group.first().and_then(|f| f.file()) {
        Some(path) => Inert::new(path.as_bytes()).guarded(),
        None => Inert::from(page.words.whole),
    }
}

/// Writes the line that opens a file.
fn heading(page: &mut HumanPage<'_>, group: &[&Finding]) -> io::Result<()> {
    let count = plural(group.len(), "finding");
    let width = page.prose();
    let room = width.saturating_sub(count.len() + 5);
    let name = elide(&name(page, group), room.max(8), page.glyphs.ellipsis);
    let fill = width.saturating_sub(untrusted::width(name.as_str()) + count.len() + 2);
    let rule = Inert::new(page.glyphs.rule.repeat(fill));
    page.line(
        &StyledLine::new()
            .put(BOLD, name)
            .space(1)
            .put(DIM, rule)
            .space(1)
            .put(DIM, Inert::new(count)),
    )
}

/// Returns the sign before the severity of a finding.
fn glyph(page: &HumanPage<'_>, f: &Finding) -> &'static str {
    match (f.blocking, f.severity()) {
        (true, _) => page.glyphs.blocking,
        (false, Severity::Suggestion) => page.glyphs.hint,
        (false, _) => page.glyphs.warning,
    }
}

/// Returns the position of a finding in the form that editors and terminals recognize:
/// `path:line:column`.
fn place(f: &Finding) -> Option<Inert> {
    let mut place = Inert::new(f.file()?.as_bytes()).as_str().to_owned();
    if let Some(lines) = f.lines() {
        place.push_str(&format!(":{}", lines.first));
        if let Some(column) = column(f) {
            place.push_str(&format!(":{column}"));
        }
    }
    Some(Inert::new(place))
}

/// Appends the position of a finding, linked to its file.
fn put_place(page: &HumanPage<'_>, line: StyledLine, f: &Finding) -> StyledLine {
    let Some(place) = place(f) else { return line };
    // The file in the worktree is not the version of an earlier commit.
    let link = f
        .file()
        .filter(|_| f.commit.is_none())
        .and_then(|path| page.file_link(path));
    line.whole(PLAIN, place, link)
}

/// Appends the ID of a finding's rule, linked to its documentation.
fn put_rule(page: &HumanPage<'_>, line: StyledLine, f: &Finding) -> StyledLine {
    line.linked(DIM, Inert::new(f.rule_id()), page.rule_link(f.rule_id()))
}

/// Writes a finding with its code. `news` is true if no earlier finding of this file has the same
/// message.
fn finding(page: &mut HumanPage<'_>, review: &Review, f: &Finding, news: bool) -> io::Result<()> {
    let id = finding_text::id(f, review);
    title_lines(page, f, id.as_deref())?;
    match f.frame {
        Some(_) => frame::write(page, f, accent(f.severity()))?,
        None => frame::quote(page, f)?,
    }
    if news {
        page.prose_block(StyledLine::new(), finding_text::body(f), 2)?;
    }
    evidence(page, f)?;
    if let Some(suggestion) = f.suggestion().filter(|_| news) {
        page.prose_block(StyledLine::new().put(GREEN, "help: "), suggestion, 2)?;
    }
    if let Some(code) = f.replacement() {
        let apply = id.map(|id| format!("  ({})", finding_text::apply(f, &id, review)));
        replacement(page, code, apply.unwrap_or_default())?;
    }
    if page.style.verbose {
        for r in f.references() {
            fact(page, (DIM, "see: "), (DIM, Inert::new(r)))?;
        }
    }
    if page.style.verbose || f.blocking {
        let text = format!("fingerprint: {}", f.fingerprint());
        page.wrapped(&StyledLine::new().space(2).put(DIM, Inert::new(text)), 4)?;
    }
    Ok(())
}

/// Writes the title of a finding, and below it its position, rule, ID, commit, reviewer and low
/// confidence.
fn title_lines(page: &mut HumanPage<'_>, f: &Finding, id: Option<&str>) -> io::Result<()> {
    let accent = accent(f.severity());
    let title = StyledLine::new()
        .put(accent, glyph(page, f))
        .space(1)
        .put(accent, f.severity().name())
        .space(2)
        .put(BOLD, Inert::new(f.title()));
    page.wrapped(&title, 2)?;
    let mut at = StyledLine::new().space(2);
    if f.file().is_some() {
        at = put_place(page, at, f).space(2);
    }
    at = put_rule(page, at, f);
    if let Some(id) = id {
        at = at.space(2).put(DIM, Inert::new(id));
    }
    if let Some(commit) = f.commit {
        at = at.put(DIM, Inert::new(format!("  in commit {}", commit.short())));
    }
    if f.origin().name() != "rules" {
        at = at
            .put(DIM, "  found by ")
            .put(DIM, Inert::new(f.origin().name()));
        if let Some(round) = f.carried_from() {
            let since = format!(" in round {round}; its lines have not changed since");
            at = at.put(DIM, Inert::new(since));
        }
    }
    if f.confidence() == Confidence::Low {
        at = at.put(DIM, "  confidence low");
    }
    page.wrapped(&at, 4)
}

/// Writes a label and a text, indented and wrapped.
fn fact(
    page: &mut HumanPage<'_>,
    (label_style, label): (anstyle::Style, &'static str),
    (style, text): (anstyle::Style, Inert),
) -> io::Result<()> {
    let line = StyledLine::new()
        .space(2)
        .put(label_style, label)
        .put(style, text);
    page.wrapped(&line, 4)
}

/// Writes what supports a finding or contradicts it: the path of the data, other lines, how it
/// fails, the convention, the decision, the test and the dispute.
fn evidence(page: &mut HumanPage<'_>, f: &Finding) -> io::Result<()> {
    if let Some(path) = finding_text::flow(f, page.glyphs.arrow) {
        fact(page, (BOLD, "data flow: "), (PLAIN, Inert::new(path)))?;
    }
    for also in f.also() {
        let place = format!("{}:{}", also.file.to_wire(), also.line);
        let quote = untrusted::clipped(&also.quote, finding_text::LINE);
        let line = StyledLine::new()
            .space(2)
            .put(BOLD, "also: ")
            .whole(PLAIN, Inert::new(place), None)
            .put(PLAIN, Inert::new(format!(": {quote}")));
        page.wrapped(&line, 4)?;
    }
    if let Some(failure) = f.failure() {
        page.prose_block(StyledLine::new().put(BOLD, "fails when: "), failure, 2)?;
    }
    if let Some(convention) = f.convention() {
        let cited = Inert::new(convention);
        fact(page, (BOLD, "convention: "), (PLAIN, cited))?;
    }
    if let Some(accepted) = finding_text::accepted(f) {
        page.prose_block(StyledLine::new().put(CYAN, "decided: "), &accepted, 2)?;
    }
    if let Some(shown) = finding_text::reproduction(f) {
        page.prose_block(StyledLine::new().put(BOLD, "reproduced: "), &shown, 2)?;
    }
    if let Some(doubt) = &f.disputed {
        page.prose_block(StyledLine::new().put(CYAN, "disputed: "), doubt, 2)?;
    }
    Ok(())
}

/// Writes the code that replaces the lines of a finding. `apply` is the command that applies it in
/// parentheses, or empty.
fn replacement(page: &mut HumanPage<'_>, code: &str, apply: String) -> io::Result<()> {
    let label = if code.is_empty() {
        "delete these lines"
    } else {
        "replace with:"
    };
    fact(page, (GREEN, label), (DIM, Inert::new(apply)))?;
    for line in Inert::lines(code) {
        page.wrapped(&StyledLine::new().space(4).put(PLAIN, line), 6)?;
    }
    Ok(())
}

/// Writes one line for findings of one rule in one file.
fn briefly(page: &mut HumanPage<'_>, findings: &[&Finding], more: bool) -> io::Result<()> {
    let Some(f) = findings.first() else {
        return Ok(());
    };
    let accent = accent(f.severity());
    let mut line = StyledLine::new()
        .put(accent, glyph(page, f))
        .space(1)
        .put(accent, f.severity().name())
        .space(2);
    if more {
        line = line.put(PLAIN, Inert::new(format!("{} more: ", findings.len())));
    } else if f.file().is_some() {
        line = put_place(page, line, f).put(PLAIN, ": ");
    }
    line = put_rule(page, line.put(BOLD, Inert::new(f.title())).space(2), f);
    let numbers: Vec<String> = findings
        .iter()
        .skip(usize::from(!more))
        .filter_map(|f| f.lines())
        .map(|l| l.first.to_string())
        .collect();
    if !numbers.is_empty() {
        let also = if more { "lines" } else { "also lines" };
        let end = if numbers.len() > NAMES { ", ..." } else { "" };
        let some = numbers[..numbers.len().min(NAMES)].join(", ");
        line = line.put(DIM, Inert::new(format!("  {also} {some}{end}")));
    }
    page.wrapped(&line, 4)
}

/// Writes waived findings, suppressed ones with `-v`, and rejected and deferred ones on request.
fn set_aside(page: &mut HumanPage<'_>, review: &Review) -> io::Result<()> {
    let mut first = true;
    for f in &review.findings {
        let (label, reason) = match (&f.waived, &f.suppressed, finding_text::aside(f)) {
            (Some(w), ..) if w.link.is_some() => {
                ("waived", format!("{} (waived by {})", w.reason, w.by()))
            }
            (Some(w), ..) => ("waived", format!("{} ({})", w.reason, w.actor)),
            (None, Some(s), _) if page.style.verbose => {
                ("suppressed", format!("{} ({})", s.reason, s.by))
            }
            (None, None, Some(aside)) if page.style.dispositioned => (
                "dispositioned",
                format!("{} ({})", aside.reason, aside.label),
            ),
            _ => continue,
        };
        if std::mem::take(&mut first) {
            page.gap()?;
        }
        let mut line = StyledLine::new()
            .put(CYAN, label)
            .put(PLAIN, ": ")
            .put(PLAIN, f.severity().name())
            .space(1);
        if f.file().is_some() {
            line = put_place(page, line, f).space(1);
        }
        let line = put_rule(page, line, f)
            .put(PLAIN, ": ")
            .put(PLAIN, Inert::new(reason));
        page.wrapped(&line, 4)?;
    }
    Ok(())
}

/// Writes the tickets and pages that models saw.
fn context(page: &mut HumanPage<'_>, review: &Review) -> io::Result<()> {
    if !review.context.is_empty() {
        page.gap()?;
    }
    for text in words::context(review) {
        page.wrapped(
            &StyledLine::new()
                .put(CYAN, "context: ")
                .put(PLAIN, Inert::new(text)),
            4,
        )?;
    }
    Ok(())
}

/// Writes the notes; all of them with `-v`.
fn notes(page: &mut HumanPage<'_>, review: &Review) -> io::Result<()> {
    if !review.notes.is_empty() {
        page.gap()?;
    }
    let most = if page.style.verbose {
        usize::MAX
    } else {
        NOTES
    };
    for n in review.notes.iter().take(most) {
        let mut line = StyledLine::new().put(CYAN, "note: ");
        if let Some(file) = &n.file {
            let mut place = Inert::new(file.as_bytes()).to_string();
            if let Some(number) = n.line {
                place.push_str(&format!(":{number}"));
            }
            line = line.whole(PLAIN, Inert::new(place), None).put(PLAIN, ": ");
        }
        let mut lines = Inert::lines(&n.text);
        page.wrapped(&line.put(PLAIN, lines.next().unwrap_or_default()), 4)?;
        for more in lines {
            page.wrapped(&StyledLine::new().space(4).put(PLAIN, more), 4)?;
        }
    }
    if review.notes.len() > most {
        let text = format!(
            "and {} more (-v lists all)",
            plural(review.notes.len() - most, "note")
        );
        page.wrapped(&StyledLine::new().put(CYAN, Inert::new(text)), 4)?;
    }
    Ok(())
}

/// Lists the files that could not be reviewed, one line for each reason.
fn failed(page: &mut HumanPage<'_>, review: &Review) -> io::Result<()> {
    let most = if page.style.verbose {
        usize::MAX
    } else {
        NAMES
    };
    let mut reasons: Vec<(String, Vec<&Option<RepoPath>>)> = Vec::new();
    for f in &review.coverage.failed {
        let reason = f.reason();
        match reasons.iter_mut().find(|(r, _)| *r == reason) {
            Some((_, paths)) => paths.push(&f.file),
            None => reasons.push((reason, vec![&f.file])),
        }
    }
    if !reasons.is_empty() {
        page.gap()?;
    }
    for (reason, paths) in reasons.iter().take(most) {
        let shown = paths.len().min(most);
        let names = paths[..shown].iter().map(|path| match path {
            Some(p) => Inert::new(p.as_bytes()).to_string(),
            None => page.words.whole.to_owned(),
        });
        let names = listed(&names.collect::<Vec<_>>(), paths.len());
        let line = StyledLine::new()
            .put(YELLOW, "not reviewed: ")
            .put(BOLD, Inert::new(names))
            .put(PLAIN, ": ")
            .put(PLAIN, Inert::new(reason));
        page.wrapped(&line, 4)?;
    }
    if reasons.len() > most {
        let text = format!(
            "not reviewed: and {} (-v lists all)",
            plural(reasons.len() - most, "more reason")
        );
        page.wrapped(&StyledLine::new().put(YELLOW, Inert::new(text)), 4)?;
    }
    Ok(())
}

/// Lists the files that the policy skips, by reason.
fn skipped(page: &mut HumanPage<'_>, review: &Review) -> io::Result<()> {
    let c = &review.coverage;
    let most = if page.style.verbose {
        usize::MAX
    } else {
        NAMES
    };
    let mut reasons: BTreeMap<&str, Vec<&RepoPath>> = BTreeMap::new();
    for (path, skip) in &c.skipped {
        reasons.entry(skip.name()).or_default().push(path);
    }
    if !reasons.is_empty() {
        page.gap()?;
    }
    for (reason, paths) in reasons {
        let shown = paths.len().min(most);
        let names: Vec<String> = paths[..shown]
            .iter()
            .map(|p| Inert::new(p.as_bytes()).to_string())
            .collect();
        let text = listed(&names, paths.len());
        let label = format!("not reviewed ({reason}): ");
        page.wrapped(
            &StyledLine::new()
                .put(DIM, Inert::new(label))
                .put(PLAIN, Inert::new(text)),
            4,
        )?;
    }
    if c.records > 0 && page.style.verbose {
        let text = format!(
            "{} of stored reviews, scanned for secrets only",
            plural(c.records, "file")
        );
        page.wrapped(
            &StyledLine::new()
                .put(DIM, "records: ")
                .put(PLAIN, Inert::new(text)),
            4,
        )?;
    }
    Ok(())
}

/// Writes the verdict, its basis, and what to do next.
fn verdict(page: &mut HumanPage<'_>, review: &Review) -> io::Result<()> {
    page.gap()?;
    if review.outcome == Outcome::NothingToReview {
        let text = match review.coverage.files_total {
            0 => words::nothing(review).to_owned(),
            _ => format!("Nothing to review: {}", words::left_out(review)),
        };
        let style = if review.coverage.files_total == 0 {
            BOLD
        } else {
            YELLOW
        };
        return page.wrapped(
            &StyledLine::new()
                .put(style, Inert::new(text))
                .put(DIM, label(review)),
            4,
        );
    }
    let (word, text) = words::verdict(review);
    let style = match word {
        "PASS" => GREEN,
        "BLOCK" => RED,
        _ => YELLOW,
    };
    let head = match page.glyphs.sign(review.verdict) {
        "" => StyledLine::new(),
        sign => StyledLine::new().put(style, sign).space(1),
    };
    page.wrapped(
        &head.put(style, word).space(2).put(BOLD, Inert::new(text)),
        2,
    )?;
    blocking(page, review)?;
    if review.verdict == Verdict::Block && !review.coverage.is_complete() {
        let line = StyledLine::new()
            .space(2)
            .put(YELLOW, "and incomplete: ")
            .put(PLAIN, Inert::new(words::missing(review)));
        page.wrapped(&line, 4)?;
    }
    if let Some(why) = words::let_through(review) {
        page.wrapped(&StyledLine::new().space(2).put(YELLOW, Inert::new(why)), 4)?;
    }
    page.wrapped(
        &StyledLine::new()
            .space(2)
            .put(DIM, Inert::new(words::basis(review))),
        4,
    )?;
    models::usage(page, &review.models)?;
    if review.verdict == Verdict::Block {
        ways_out(page, review)?;
    }
    if review.rules_only {
        let hint = "rules only: no model was asked (hint: pass --backend NAME, or set [review] backends in the policy)";
        page.wrapped(&StyledLine::new().space(2).put(DIM, hint), 4)?;
    }
    Ok(())
}

/// Writes how to dismiss a false positive: for the worst finding that a comment can suppress, and
/// for the worst one that needs a waiver.
fn ways_out(page: &mut HumanPage<'_>, review: &Review) -> io::Result<()> {
    let mut blocking: Vec<&Finding> = review.findings.iter().filter(|f| f.blocking).collect();
    blocking.sort_by_key(|f| badness(f));
    // Suppression comments in the change do not count in a gate.
    let in_ci = page.style.in_ci;
    let suppressible = blocking
        .iter()
        .filter(|_| !in_ci)
        .find_map(|f| Some((*f, remedy::comment(f)?)));
    let waivable = blocking
        .iter()
        .find(|f| in_ci || remedy::comment(f).is_none());
    if let Some((f, comment)) = suppressible {
        let hint = StyledLine::new().space(2).put(
            DIM,
            "hint: to suppress a false positive, add a comment above ",
        );
        let hint = put_place(page, hint, f).put(DIM, ":");
        page.wrapped(&hint, 4)?;
        page.wrapped(
            &StyledLine::new().space(4).put(PLAIN, Inert::new(comment)),
            4,
        )?;
    }
    if let Some(f) = waivable {
        let hint = StyledLine::new().space(2).put(DIM, "hint: to waive ");
        let hint = if f.file().is_some() {
            put_place(page, hint, f)
        } else {
            put_rule(page, hint, f)
        };
        page.wrapped(
            &hint
                .put(DIM, ", pass ")
                .put(PLAIN, Inert::new(remedy::waiver(f))),
            4,
        )?;
    }
    Ok(())
}

/// Lists the blocking findings again if the report shows many others.
fn blocking(page: &mut HumanPage<'_>, review: &Review) -> io::Result<()> {
    let counting = review.findings.iter().filter(|f| f.counts());
    let mut these: Vec<&Finding> = counting.clone().filter(|f| f.blocking).collect();
    let all = counting.count();
    if all <= FEW || these.len() == all {
        return Ok(());
    }
    these.sort_by_key(|f| badness(f));
    for f in these.iter().take(NAMES) {
        let mut line = StyledLine::new()
            .space(2)
            .put(accent(f.severity()), f.severity().name())
            .space(2);
        if f.file().is_some() {
            line = put_place(page, line, f).space(2);
        }
        line = put_rule(page, line, f);
        if let Some(commit) = f.commit {
            line = line.put(DIM, Inert::new(format!("  in commit {}", commit.short())));
        }
        page.wrapped(&line, 4)?;
    }
    match these.len().saturating_sub(NAMES) {
        0 => Ok(()),
        more => page.wrapped(
            &StyledLine::new()
                .space(2)
                .put(DIM, Inert::new(format!("and {more} more"))),
            4,
        ),
    }
}

/// Returns the label of the source in parentheses; empty if there is none.
fn label(review: &Review) -> Inert {
    if review.source.label.is_empty() {
        Inert::default()
    } else {
        Inert::new(format!(" ({})", review.source.title()))
    }
}
