//! The page for several repositories: a table, and a section for each repository that folds.
//!
//! The page has no script. Its findings show their own code, because the changes of all
//! repositories would be too large for a page.

use super::card::{self, Stand};
use super::markup::Markup;
use super::{STYLE, hash, state};
use crate::diff::RepoPath;
use crate::finding::{Finding, Origin};
use crate::report::finding_text::{badness, worst};
use crate::report::fleet::members::{Fleet, FleetMember, saturating_sum};
use crate::report::source_words::SourceWords;
use crate::report::words;
use crate::verdict::Verdict;
use std::io::{self, Write};

/// Findings on the page, and of one repository, at most.
const FINDINGS: usize = 8_000;
const OF_ONE: usize = 200;
/// Entries of the other lists of one repository, at most.
const LISTED: usize = 50;
/// Repositories whose sections are open when the page is loaded, at most.
const OPEN: usize = 3;

/// Writes the page.
pub(in crate::report) fn render(fleet: &Fleet, out: &mut dyn Write) -> io::Result<()> {
    let mut m = Markup::default();
    head(fleet, &mut m);
    let class = class_of(fleet.verdict());
    m.raw(
        "<body>\n<a class=skip href=#main>Skip to the repositories</a>\n<header class=\"verdict ",
    );
    m.raw(class).raw("\">\n<h1>").raw(heading(fleet.verdict()));
    m.raw("</h1>\n<p class=said>").text(fleet.sentence());
    m.raw("</p>\n</header>\n<div class=page>\n<main id=main tabindex=-1>\n");
    let members = fleet.by_verdict();
    table(&members, &mut m);
    let mut shown = 0;
    for (number, member) in members.iter().enumerate() {
        section(member, number, &mut shown, &mut m);
    }
    m.raw("</main>\n</div>\n<footer><p>").text(crate::NAME);
    m.raw(
        " generated this page. It loads nothing from the network.</p></footer>\n</body>\n</html>\n",
    );
    out.write_all(m.as_str().as_bytes())
}

fn head(fleet: &Fleet, out: &mut Markup) {
    out.raw("<!DOCTYPE html>\n<html lang=en>\n<head>\n<meta charset=utf-8>\n");
    out.raw("<meta http-equiv=\"Content-Security-Policy\" content=\"default-src &#39;none&#39;; style-src ");
    out.text(hash(STYLE));
    out.raw("; base-uri &#39;none&#39;; form-action &#39;none&#39;\">\n");
    out.raw("<meta name=viewport content=\"width=device-width, initial-scale=1\">\n");
    out.raw("<meta name=referrer content=no-referrer>\n<meta name=color-scheme content=\"light dark\">\n");
    out.raw("<meta name=generator content=\"").text(crate::NAME);
    out.raw("\">\n<meta name=version content=\"");
    out.text(env!("CARGO_PKG_VERSION")).raw("\">\n<title>");
    out.raw(heading(fleet.verdict())).raw(": ");
    out.text(fleet.sentence()).raw("</title>\n<style>");
    out.raw(STYLE).raw("</style>\n</head>\n");
}

/// Returns the verdict as a heading.
fn heading(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Block => "Blocked",
        Verdict::Incomplete => "Incomplete",
        Verdict::Warn => "Passed with warnings",
        Verdict::Pass => "Passed",
    }
}

/// Returns the class that colours a verdict.
fn class_of(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Block => "bad",
        Verdict::Pass => "good",
        Verdict::Warn | Verdict::Incomplete => "open",
    }
}

/// Writes the table of all repositories, each with a link to its section.
fn table(members: &[&FleetMember], out: &mut Markup) {
    out.raw("<section aria-labelledby=repositories><h2 id=repositories>Repositories</h2>\n<div class=wide><table>\n");
    out.raw("<thead><tr><th scope=col>Repository<th scope=col>Verdict<th scope=col>Critical<th scope=col>Major");
    out.raw("<th scope=col>Minor<th scope=col>Suggestions<th scope=col>Blocking<th scope=col>Files reviewed</tr></thead>\n<tbody>\n");
    for (number, m) in members.iter().enumerate() {
        out.raw("<tr><th scope=row><a href=#r")
            .digits(number as u64 + 1);
        out.raw(">").text(&m.name).raw("</a><td>");
        out.raw(heading(m.review.verdict));
        for n in m.totals().into_iter().chain([m.blocking()]) {
            out.raw("<td>").number(n);
        }
        let c = &m.review.coverage;
        out.raw("<td>").number(c.files_reviewed).raw(" of ");
        out.number(c.files_total).raw("</tr>\n");
    }
    out.raw("</tbody></table></div>\n</section>\n");
}

/// Writes the section of a repository. `shown` is the number of findings on the page so far.
fn section(member: &FleetMember, number: usize, shown: &mut usize, out: &mut Markup) {
    let id = number as u64 + 1;
    let review = &member.review;
    let is_open = number < OPEN && review.verdict != Verdict::Pass;
    out.raw("<section class=file id=r").digits(id);
    out.raw(" tabindex=-1 aria-labelledby=n").digits(id);
    out.raw("><details");
    out.raw(if is_open { " open" } else { "" });
    out.raw("><summary><h3 id=n").digits(id).raw(">");
    out.text(&member.name).raw("</h3><span class=tag>");
    out.raw(heading(review.verdict))
        .raw("</span><span class=st>");
    let findings = saturating_sum(member.totals().into_iter());
    out.number(findings).raw(" findings</span></summary>\n");
    facts(member, out);
    coverage(member, out);
    let room = OF_ONE.min(FINDINGS - *shown);
    let kept = worst_by_file(worst(&review.findings, room));
    cards(&kept, *shown, SourceWords::of(&review.source), out);
    *shown += kept.len();
    let left = review.findings.len() - kept.len();
    if left > 0 {
        out.raw("<p class=none>").number(left);
        out.raw(" more findings are in the report of the repository.</p>\n");
    }
    if let Some(text) = words::unlisted(review) {
        out.raw("<p class=none>").text(&text).raw("</p>\n");
    }
    notes(member, out);
    out.raw("</details></section>\n");
}

/// Writes what was reviewed, by which policy, and how the review ended.
fn facts(member: &FleetMember, out: &mut Markup) {
    let review = &member.review;
    let (_, text) = words::verdict(review);
    out.raw("<div class=\"f aside\"><p class=")
        .raw(state(review))
        .raw(">");
    out.text(&text)
        .raw("</p>\n<p class=meta>")
        .raw(review.source.kind.name());
    for (name, id) in [
        (" · base ", &review.source.base),
        (" · head ", &review.source.head),
        (" · tree ", &review.source.tree),
        (" · checked out ", &review.source.checked_out),
    ] {
        if let Some(id) = id {
            out.raw(name).raw("<code>").text(id).raw("</code>");
        }
    }
    out.raw(" · policy ").text(&review.policy.origin);
    out.raw(" <code>").text(&review.policy.hash);
    out.raw("</code> · exit code ").digits(review.exit.code());
    out.raw(" · ").text(review.timestamp.to_string());
    out.raw("</p></div>\n");
}

/// Writes the parts that were not reviewed, and how many files the policy skips.
fn coverage(member: &FleetMember, out: &mut Markup) {
    let c = &member.review.coverage;
    if c.failed.is_empty() && c.skipped.is_empty() {
        return;
    }
    let words = SourceWords::of(&member.review.source);
    out.raw("<div class=\"list ");
    out.raw(if c.failed.is_empty() {
        "quiet"
    } else {
        "lacking"
    });
    out.raw("\"><p>Not reviewed</p><ul>\n");
    for f in c.failed.iter().take(LISTED) {
        out.raw("<li><b>").text(f.reason()).raw("</b>: ");
        match &f.file {
            Some(path) => out
                .raw("<code>")
                .text(path.as_bytes())
                .raw("</code></li>\n"),
            None => out.raw(words.whole).raw("</li>\n"),
        };
    }
    more(c.failed.len(), " more parts", out);
    if !c.skipped.is_empty() {
        out.raw("<li>").number(c.skipped.len());
        out.raw(" skipped, as the policy allows</li>\n");
    }
    out.raw("</ul></div>\n");
}

/// Writes the number of entries that are not listed.
fn more(all: usize, what: &'static str, out: &mut Markup) {
    if all > LISTED {
        out.raw("<li>and ").number(all - LISTED).raw(what);
        out.raw("</li>\n");
    }
}

/// Sorts findings that are sorted by file: the files by their worst findings, and the findings of a
/// file, worst first. Equal ones keep their order.
fn worst_by_file(mut kept: Vec<&Finding>) -> Vec<&Finding> {
    let mut files: Vec<Vec<&Finding>> = Vec::new();
    for group in kept.chunk_by_mut(|a, b| a.file() == b.file()) {
        group.sort_by_key(|f| badness(f));
        files.push(group.to_vec());
    }
    files.sort_by_key(|group| group.first().map(|f| badness(f)));
    files.concat()
}

/// Writes findings by file. `first` is the number of findings before them on the page.
fn cards(kept: &[&Finding], first: usize, words: &SourceWords, out: &mut Markup) {
    let mut origins: Vec<&Origin> = Vec::new();
    let mut said = Default::default();
    let mut file: Option<Option<&RepoPath>> = None;
    for (i, f) in kept.iter().enumerate() {
        if file != Some(f.file()) {
            file = Some(f.file());
            out.raw("<p class=none>");
            match f.file() {
                Some(path) => out
                    .raw("<code class=p>")
                    .text(path.as_bytes())
                    .raw("</code>"),
                None => out.raw(words.whole_at_start),
            };
            out.raw("</p>\n");
        }
        if !origins.contains(&f.origin()) {
            origins.push(f.origin());
        }
        let origin = origins.iter().position(|o| *o == f.origin());
        let stand = match f.file() {
            Some(_) => Stand::OfFile,
            None => Stand::OfChange,
        };
        let place = (first + i, origin.unwrap_or_default());
        card::write(f, place, stand, &mut said, words, out);
    }
}

fn notes(member: &FleetMember, out: &mut Markup) {
    let notes = &member.review.notes;
    if notes.is_empty() {
        return;
    }
    out.raw("<div class=\"list quiet\"><p>Notes</p><ul>\n");
    for n in notes.iter().take(LISTED) {
        out.raw("<li>").lines(&n.text);
        out.raw(" <span class=at>")
            .text(&n.origin)
            .raw("</span></li>\n");
    }
    more(notes.len(), " more notes", out);
    out.raw("</ul></div>\n");
}
