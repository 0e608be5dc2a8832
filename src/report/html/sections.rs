//! The sections of the page around the diff: coverage, skipped files, tests, models, notes.

use super::change::HtmlPage;
use super::diff::HtmlFiles;
use super::markup::{Markup, cut};
use crate::ai::{BackendUsage, Models};
use crate::diff::RepoPath;
use crate::finding::{Finding, Severity};
use crate::report::backends;
use crate::report::finding_text::{self, is_inside};
use crate::report::source_words::SourceWords;
use crate::report::words::{
    self, conventions, dollars, dropped_claims, elapsed, grouped, let_through, missing,
    other_missing, tests_word, zero_because,
};
use crate::review::Review;
use crate::verdict::{Outcome, TestOutcome, Verdict};
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

/// Names listed for one reason, and entries of the other lists, at most.
const NAMES: usize = 300;
/// Kinds of findings listed by their titles, at most.
const LISTED: usize = 50;
/// Positions listed for one kind, at most.
const PLACES: usize = 6;

/// Writes the facts of the review: the change, coverage, reviewers, policy, time, exit code.
pub(super) fn facts(review: &Review, out: &mut Markup) {
    out.raw(
        "<section class=facts aria-labelledby=facts><h2 id=facts>What was reviewed</h2>\n<dl>\n",
    );
    facts_of_change(review, out);
    facts_of_coverage(review, out);
    facts_of_run(review, out);
    out.raw("</dl>\n</section>\n");
}

/// Writes the repository, the branch, the label of the change, and its object IDs.
fn facts_of_change(review: &Review, out: &mut Markup) {
    let s = &review.source;
    if let Some(name) = super::repository(review) {
        fact(out, "Repository", |o| {
            o.text(name);
        });
    }
    if let Some(name) = super::branch(review) {
        fact(out, "Branch", |o| {
            o.text(name);
        });
    }
    if !s.label.is_empty() {
        fact(out, SourceWords::of(s).label, |o| {
            o.text(s.title().as_ref());
        });
    }
    for (name, id) in [
        ("Base", &s.base),
        ("Head", &s.head),
        ("Tree", &s.tree),
        ("Checked out", &s.checked_out),
    ] {
        if let Some(id) = id {
            fact(out, name, |o| {
                o.raw("<code>").text(id).raw("</code>");
            });
        }
    }
}

/// Writes how many files, hunks and lines were reviewed.
fn facts_of_coverage(review: &Review, out: &mut Markup) {
    let c = &review.coverage;
    fact(out, "Files reviewed", |o| {
        o.number(c.files_reviewed).raw(" of ").number(c.files_total);
    });
    if c.by_reviewer.len() > 1 {
        fact(out, "By reviewer", |o| {
            for (i, (name, share)) in c.by_reviewer.iter().enumerate() {
                o.raw(if i > 0 { ", " } else { "" }).text(name).raw(" ");
                o.number(share.files_reviewed)
                    .raw(" of ")
                    .number(share.files_total);
            }
        });
    }
    fact(out, "Hunks reviewed", |o| {
        o.number(c.hunks_reviewed).raw(" of ").number(c.hunks_total);
        if c.cached > 0 {
            o.raw(", ").number(c.cached).raw(" from the cache");
        }
    });
    let stat = review.stat;
    if SourceWords::of(&review.source).marks_added && stat.added + stat.removed > 0 {
        fact(out, "Lines", |o| {
            o.raw("<span class=add>+")
                .number(stat.added)
                .raw("</span> <span class=rem>−")
                .number(stat.removed);
            o.raw("</span>");
        });
    }
}

/// Writes who reviewed by which policy, where the review is stored, and how it ended.
fn facts_of_run(review: &Review, out: &mut Markup) {
    fact(out, "Reviewed by", |o| {
        o.text(backends(review).join(", "));
    });
    fact(out, "Policy", |o| {
        o.text(&review.policy.origin)
            .raw(" <code>")
            .text(&review.policy.hash)
            .raw("</code>");
    });
    fact(out, "Rule set", |o| {
        o.raw("<code>").text(&review.rules_hash).raw("</code>");
    });
    if let Some(session) = &review.session {
        fact(out, "Stored as", |o| {
            o.text(&session.id).raw(", round ").digits(session.round);
        });
    }
    let time = review
        .timestamp
        .strftime("%Y-%m-%d %H:%M:%S UTC")
        .to_string();
    fact(out, "When", |o| {
        o.raw("<time datetime=\"")
            .text(review.timestamp.to_string())
            .raw("\">")
            .text(&time);
        o.raw("</time>, took ").text(elapsed(review.duration));
    });
    fact(out, "Exit code", |o| {
        // The general meaning of code 0 is wrong if a flag or the policy made it 0.
        let why = zero_because(review).map(|cause| format!("because of {cause}"));
        o.digits(review.exit.code())
            .raw(": ")
            .inert(why.as_deref().unwrap_or_else(|| review.exit.meaning()));
    });
}

/// Writes the name of a fact and its value.
fn fact(out: &mut Markup, name: &'static str, write: impl FnOnce(&mut Markup)) {
    out.raw("<div><dt>").raw(name).raw("</dt><dd>");
    write(out);
    out.raw("</dd></div>\n");
}

/// Lists the files that were not reviewed, with the reasons.
pub(super) fn coverage(review: &Review, out: &mut Markup) {
    let c = &review.coverage;
    if c.failed.is_empty() && c.skipped.is_empty() {
        return;
    }
    let kind = if c.failed.is_empty() {
        "quiet"
    } else {
        "lacking"
    };
    out.raw("<section class=\"list ")
        .raw(kind)
        .raw("\" aria-labelledby=unreviewed>");
    out.raw("<h2 id=unreviewed>Not reviewed</h2>\n<ul>\n");
    let whole = SourceWords::of(&review.source).whole;
    let mut failed: Vec<(String, Vec<Option<&RepoPath>>)> = Vec::new();
    let mut at: BTreeMap<String, usize> = BTreeMap::new();
    for f in &c.failed {
        let i = *at.entry(f.reason()).or_insert_with(|| {
            failed.push((f.reason(), Vec::new()));
            failed.len() - 1
        });
        failed[i].1.push(f.file.as_ref());
    }
    for (reason, paths) in failed.iter().take(NAMES) {
        out.raw("<li><b>").text(reason).raw("</b>: ");
        names(whole, paths.iter().copied(), out);
        out.raw("</li>\n");
    }
    more(failed.len(), NAMES, "reasons", out);
    let mut skipped: BTreeMap<&'static str, Vec<Option<&RepoPath>>> = BTreeMap::new();
    for (path, why) in &c.skipped {
        skipped.entry(why.name()).or_default().push(Some(path));
    }
    for (why, paths) in skipped {
        out.raw("<li>").raw(why).raw(", as the policy allows: ");
        names(whole, paths.into_iter(), out);
        out.raw("</li>\n");
    }
    out.raw("</ul>\n</section>\n");
}

/// Writes paths, `NAMES` at most, and the number of the others. `whole` stands for no path.
fn names<'a>(
    whole: &'static str,
    paths: impl ExactSizeIterator<Item = Option<&'a RepoPath>>,
    out: &mut Markup,
) {
    let all = paths.len();
    for (i, path) in paths.take(NAMES).enumerate() {
        out.raw(if i > 0 { ", " } else { "" });
        match path {
            Some(p) => out.raw("<code>").text(p.as_bytes()).raw("</code>"),
            None => out.raw(whole),
        };
    }
    if all > NAMES {
        out.raw(" and ").number(all - NAMES).raw(" more");
    }
}

/// Writes an entry with the number of entries that are not listed.
fn more(all: usize, most: usize, what: &'static str, out: &mut Markup) {
    if all > most {
        out.raw("<li>and ")
            .number(all - most)
            .raw(" more ")
            .raw(what)
            .raw("</li>\n");
    }
}

/// Lists the blocking findings with links to their positions.
pub(super) fn blocking(review: &Review, page: &HtmlPage<'_>, out: &mut Markup) {
    let mut all: Vec<(usize, &Finding)> = review
        .findings
        .iter()
        .enumerate()
        .filter(|(_, f)| f.blocking)
        .collect();
    if all.is_empty() {
        return;
    }
    all.sort_by_key(|(i, f)| (Reverse(f.severity()), *i));
    // Findings of one rule with one title are one entry.
    let mut kinds: Vec<Vec<(usize, &Finding)>> = Vec::new();
    let mut at: HashMap<(Severity, &str, &str), usize> = HashMap::new();
    for (i, f) in all {
        let kind = *at
            .entry((f.severity(), f.rule_id(), f.title()))
            .or_insert(kinds.len());
        match kinds.get_mut(kind) {
            Some(known) => known.push((i, f)),
            None => kinds.push(vec![(i, f)]),
        }
    }
    out.raw("<section class=\"list index\" aria-labelledby=blocking><h2 id=blocking>Blocking findings</h2>\n<ol>\n");
    for kind in kinds.iter().take(LISTED) {
        let Some((_, first)) = kind.first() else {
            continue;
        };
        out.raw("<li class=")
            .raw(first.severity().name())
            .raw("><span class=sev>")
            .raw(first.severity().name());
        out.raw("</span> ")
            .text(first.title())
            .raw(" <span class=at>");
        for (n, (i, f)) in kind.iter().take(PLACES).enumerate() {
            out.raw(if n > 0 { ", " } else { "" });
            place(*i, f, review, page, out);
        }
        if kind.len() > PLACES {
            out.raw(" and ").number(kind.len() - PLACES).raw(" more");
        }
        out.raw("</span></li>\n");
    }
    more(kinds.len(), LISTED, "that block", out);
    out.raw("</ol>\n</section>\n");
}

/// Writes the position of a finding, with a link to it.
fn place(index: usize, f: &Finding, review: &Review, page: &HtmlPage<'_>, out: &mut Markup) {
    let is_shown = page.shows(index);
    if is_shown {
        out.raw("<a href=#F").digits(index as u64 + 1).raw(">");
    }
    match f.file() {
        Some(path) => out.text(path.as_bytes()),
        None => out.raw(SourceWords::of(&review.source).whole),
    };
    if let Some(span) = f.lines() {
        out.raw(":").digits(span.first.get());
    }
    if let Some(commit) = f.commit.filter(|c| is_inside(Some(*c), review)) {
        out.raw(" in commit ").text(commit.short());
    }
    out.raw(if is_shown { "</a>" } else { "" });
}

/// Writes the findings about the change as a whole.
pub(super) fn whole<'r>(files: &HtmlFiles<'r>, page: &'r HtmlPage<'r>, out: &mut Markup) {
    if page.whole.is_empty() {
        return;
    }
    out.raw("<section class=file aria-labelledby=whole><h2 id=whole>");
    out.raw(SourceWords::of(&files.review.source).whole_at_start)
        .raw("</h2>\n");
    let mut said = Default::default();
    for index in &page.whole {
        files.card(*index, super::card::Stand::OfChange, &mut said, out);
    }
    out.raw("</section>\n");
}

/// Lists the findings that do not count, with the reasons.
pub(super) fn set_aside(review: &Review, page: &HtmlPage<'_>, out: &mut Markup) {
    let all: Vec<(usize, &Finding)> = review
        .findings
        .iter()
        .enumerate()
        .filter(|(_, f)| !f.counts())
        .collect();
    if all.is_empty() {
        return;
    }
    out.raw(
        "<section class=\"list index\" aria-labelledby=aside><h2 id=aside>Not counted</h2>\n<ul>\n",
    );
    for (i, f) in all.iter().take(NAMES) {
        out.raw("<li class=")
            .raw(f.severity().name())
            .raw("><span class=sev>")
            .raw(f.severity().name());
        out.raw("</span> ").text(f.title()).raw(" <span class=at>");
        place(*i, f, review, page, out);
        out.raw("</span>");
        if let Some(aside) = finding_text::aside(f) {
            out.raw("<br><b>")
                .text(&aside.label)
                .raw("</b>: ")
                .text(aside.reason);
        }
        out.raw("</li>\n");
    }
    more(all.len(), NAMES, "findings", out);
    out.raw("</ul>\n</section>\n");
}

/// Writes the result of the project's tests.
pub(super) fn tests(review: &Review, out: &mut Markup) {
    let Some(t) = &review.tests else { return };
    let kind = if t.outcome == TestOutcome::Passed {
        "quiet"
    } else {
        "lacking"
    };
    out.raw("<section class=\"list ")
        .raw(kind)
        .raw("\" aria-labelledby=tests><h2 id=tests>");
    out.raw(tests_word(t.outcome))
        .raw("</h2>\n<p>")
        .text(&t.summary);
    if let Some(coverage) = &t.coverage {
        out.raw(", coverage ").text(coverage);
    }
    out.raw("</p>\n");
    if !t.failing.is_empty() {
        out.raw("<ul>\n");
        for name in t.failing.iter().take(NAMES) {
            out.raw("<li><code>").text(name).raw("</code></li>\n");
        }
        more(t.failing.len(), NAMES, "tests", out);
        out.raw("</ul>\n");
    }
    out.raw("</section>\n");
}

/// Writes the models' results on the design, the requirements and the acceptance criteria.
pub(super) fn design(review: &Review, out: &mut Markup) {
    let models = &review.models;
    if let Some(c) = &models.compliance {
        out.raw("<section class=list aria-labelledby=design><h2 id=design>Design</h2>\n<p>");
        out.raw(SourceWords::of(&review.source).subject);
        out.raw(if c.follows {
            " follows the documents."
        } else {
            " does not follow the documents."
        });
        out.raw("</p>\n");
        if !c.violations.is_empty() {
            out.raw("<ul>\n");
            for v in c.violations.iter().take(NAMES) {
                graded(v.impact, &v.issue, v.reference.as_deref(), out);
                for text in [Some(&v.description), v.recommendation.as_ref()]
                    .into_iter()
                    .flatten()
                {
                    out.raw("<br>").lines(text);
                }
                out.raw("</li>\n");
            }
            more(c.violations.len(), NAMES, "violations", out);
            out.raw("</ul>\n");
        }
        out.raw("</section>\n");
    }
    let missing = other_missing(review);
    if !missing.is_empty() {
        out.raw("<section class=list aria-labelledby=missing><h2 id=missing>Missing requirements</h2>\n<ul>\n");
        for m in missing.iter().take(NAMES) {
            graded(m.severity, &m.requirement, m.reference.as_deref(), out);
            out.raw("</li>\n");
        }
        more(missing.len(), NAMES, "requirements", out);
        out.raw("</ul>\n</section>\n");
    }
    if !models.criteria.is_empty() {
        out.raw("<section class=list aria-labelledby=criteria><h2 id=criteria>Acceptance criteria</h2>\n<ul>\n");
        for c in models.criteria.iter().take(NAMES) {
            out.raw("<li><b>").text(&c.id).raw("</b> ");
            out.raw(match c.met {
                Some(true) => "met",
                Some(false) => "not met",
                None => "undecided",
            });
            out.raw("<br>").lines(&c.reason);
            if let Some(e) = &c.evidence {
                out.raw("<br><code>").text(e.file.as_bytes());
                if let Some(line) = e.line {
                    out.raw(":").digits(line.get());
                }
                out.raw("</code> <code>").text(&e.quote).raw("</code>");
            }
            out.raw("</li>\n");
        }
        more(models.criteria.len(), NAMES, "criteria", out);
        out.raw("</ul>\n</section>\n");
    }
}

/// Writes an entry with a severity, a text and the reference to a document.
fn graded(severity: Severity, text: &str, reference: Option<&str>, out: &mut Markup) {
    out.raw("<li class=")
        .raw(severity.name())
        .raw("><span class=sev>")
        .raw(severity.name())
        .raw("</span> ");
    out.raw("<b>").text(text).raw("</b>");
    if let Some(r) = reference {
        out.raw(" <span class=at>").text(r).raw("</span>");
    }
}

/// Writes the tickets and pages that models saw.
pub(super) fn context(review: &Review, out: &mut Markup) {
    if review.context.is_empty() {
        return;
    }
    out.raw(
        "<section class=\"list quiet\" aria-labelledby=context><h2 id=context>Context</h2>\n<ul>\n",
    );
    for text in words::context(review) {
        out.raw("<li>").text(&text).raw("</li>\n");
    }
    out.raw("</ul>\n</section>\n");
}

/// Writes the notes.
pub(super) fn notes(review: &Review, out: &mut Markup) {
    if review.notes.is_empty() {
        return;
    }
    out.raw("<section class=\"list quiet\" aria-labelledby=notes><h2 id=notes>Notes</h2>\n<ul>\n");
    for n in review.notes.iter().take(NAMES) {
        out.raw("<li>");
        if let Some(file) = &n.file {
            out.raw("<code>").text(file.as_bytes());
            if let Some(line) = n.line {
                out.raw(":").digits(line.get());
            }
            out.raw("</code> ");
        }
        out.lines(&n.text)
            .raw(" <span class=at>")
            .text(&n.origin)
            .raw("</span></li>\n");
    }
    more(review.notes.len(), NAMES, "notes", out);
    out.raw("</ul>\n</section>\n");
}

/// Writes opinions, dropped claims and usage of the models.
pub(super) fn models(review: &Review, out: &mut Markup) {
    let models = &review.models;
    if !models.opinions.is_empty() {
        out.raw("<section class=list aria-labelledby=opinions><h2 id=opinions>Opinions of the models</h2>\n");
        out.raw("<p class=hint>Opinions do not change the verdict.</p>\n<ul>\n");
        for o in models.opinions.iter().take(NAMES) {
            out.raw("<li><b>")
                .text(&o.backend)
                .raw("</b> ")
                .lines(&o.text)
                .raw("</li>\n");
        }
        more(models.opinions.len(), NAMES, "opinions", out);
        out.raw("</ul>\n</section>\n");
    }
    if !models.dropped.is_empty() {
        let n = models.dropped.len();
        out.raw(
            "<section class=\"list quiet\" aria-labelledby=dropped><h2 id=dropped>Dropped claims</h2>\n<p class=hint>",
        );
        out.text(dropped_claims(review)).raw(".</p>\n<ul>\n");
        for d in models.dropped.iter().take(NAMES) {
            out.raw("<li>")
                .lines(&d.claim)
                .raw(" <span class=at>")
                .text(&*d.why);
            if !d.backend.is_empty() {
                out.raw(" (").text(&d.backend).raw(")");
            }
            out.raw("</span></li>\n");
        }
        more(n, NAMES, "claims", out);
        out.raw("</ul>\n</section>\n");
    }
    usage(models, out);
}

/// Writes the table of requests, tokens and cost by backend.
fn usage(models: &Models, out: &mut Markup) {
    if models.usage.is_empty() && models.asked.is_empty() {
        return;
    }
    out.raw("<section class=list aria-labelledby=usage><h2 id=usage>Usage</h2>\n");
    out.raw("<div class=wide tabindex=0 role=group aria-label=\"Requests, tokens and cost\"><table><thead><tr><th scope=col>Backend");
    out.raw("<th scope=col>Model<th scope=col>Requests<th scope=col>Tokens in<th scope=col>Cached");
    out.raw("<th scope=col>Tokens out<th scope=col>Cost<th scope=col>Time</thead>\n<tbody>\n");
    for u in &models.usage {
        spent(u, out);
    }
    for name in models
        .asked
        .iter()
        .filter(|name| models.usage.iter().all(|u| u.backend != **name))
    {
        out.raw("<tr><th scope=row>")
            .text(name)
            .raw("<td colspan=7>not asked, or no reply\n");
    }
    out.raw("</tbody></table></div>\n</section>\n");
}

/// Writes the row of a backend.
fn spent(u: &BackendUsage, out: &mut Markup) {
    let s = &u.spent;
    out.raw("<tr><th scope=row>")
        .text(&u.backend)
        .raw("<td>")
        .text(&u.model);
    for n in [s.requests, s.input_tokens, s.cached_tokens, s.output_tokens] {
        out.raw("<td>").inert(&grouped(n));
    }
    out.raw("<td>");
    if let Some(usd) = s.cost_usd {
        out.inert(&dollars(usd));
    }
    if u.batch {
        out.raw(" (batch)");
    }
    if let Some(usd) = u.earlier_usd {
        out.raw(", ")
            .inert(&dollars(usd))
            .raw(" of it in earlier runs");
    }
    out.raw("<td>").text(elapsed(u.duration)).raw("\n");
}

/// Writes how many findings, lines and files the page omits.
pub(super) fn left_out(page: &HtmlPage<'_>, out: &mut Markup) {
    let bounded = page.lines_left_out + page.findings_left_out + page.files_left_out.len();
    if bounded == 0 {
        return;
    }
    out.raw("<section class=\"list quiet\" aria-labelledby=cut><h2 id=cut>Not on this page</h2>\n<ul>\n");
    if page.findings_left_out > 0 {
        out.raw("<li>").number(page.findings_left_out);
        out.raw(" findings. The page shows the worst; the JSON report has all of them.</li>\n");
    }
    if page.lines_left_out > 0 {
        out.raw("<li>").number(page.lines_left_out);
        out.raw(
            " lines. Lines around findings are shown first, then the rest of their files.</li>\n",
        );
    }
    if !page.files_left_out.is_empty() {
        out.raw("<li>")
            .number(page.files_left_out.len())
            .raw(" files without findings: ");
        // Only files are left out.
        names("", page.files_left_out.iter().map(Some), out);
        out.raw("</li>\n");
    }
    out.raw("</ul>\n</section>\n");
}

/// Returns the line below the headline.
pub(super) fn besides(review: &Review) -> Option<String> {
    if review.outcome == Outcome::NothingToReview {
        return None;
    }
    let incomplete = review.verdict == Verdict::Block && !review.coverage.is_complete();
    let parts = [
        incomplete.then(|| format!("and incomplete: {}", missing(review))),
        let_through(review),
        conventions(review),
        review
            .rules_only
            .then(|| "rules only: no model was asked".to_owned()),
    ];
    let text = parts.into_iter().flatten().collect::<Vec<_>>().join("; ");
    (!text.is_empty()).then_some(text)
}

/// Returns the start of a text, short enough for the title of the page.
pub(super) fn short(text: &str) -> &str {
    &text[..cut(text.as_bytes(), 80)]
}
