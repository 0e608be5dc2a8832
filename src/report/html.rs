//! The report as one HTML page: the verdict, the coverage, and the change with its findings.
//!
//! The page is self-contained. Its content security policy names its one script and its one style
//! sheet by hash, and allows no request. Everything that was reviewed is escaped text.

mod card;
mod change;
mod changed;
mod code;
mod diff;
mod fleet;
mod markup;
mod sections;

#[cfg(test)]
mod tests;

pub(super) use fleet::render as render_fleet;

use super::counts;
use super::finding_text::is_inside;
use super::source_words::SourceWords;
use super::words::verdict;
use crate::finding::{Origin, Severity};
use crate::review::{Review, SourceKind};
use crate::text::plural;
use crate::verdict::{Outcome, Verdict};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use change::HtmlPage;
use diff::HtmlFiles;
use markup::Markup;
use sha2::{Digest as _, Sha256};
use std::io::{self, Write};

const STYLE: &str = include_str!("html/page.css");
const SCRIPT: &str = include_str!("html/page.js");
/// Files listed in the sidebar.
const LISTED: usize = 1_500;

/// Writes the page.
pub fn render(review: &Review, out: &mut dyn Write) -> io::Result<()> {
    let page = HtmlPage::of(review);
    let mut origins: Vec<&Origin> = Vec::new();
    for f in &review.findings {
        if !origins.contains(&f.origin()) {
            origins.push(f.origin());
        }
    }
    let mut body = Markup::default();
    self::body(review, &page, &origins, &mut body);
    let mut m = Markup::default();
    head(review, &mut m);
    out.write_all(m.as_str().as_bytes())?;
    out.write_all(body.as_str().as_bytes())
}

/// Returns the source expression of the content security policy that allows one script or style.
fn hash(text: &str) -> String {
    format!("'sha256-{}'", STANDARD.encode(Sha256::digest(text)))
}

/// Removes the style, the script and their hashes from a page, so that a recorded page does not
/// contain them.
#[cfg(test)]
pub(super) fn bare(page: &str) -> String {
    let page = page
        .replace(&format!("<style>{STYLE}"), "<style>")
        .replace(&format!("<script>{SCRIPT}"), "<script>");
    let [style, script] = [STYLE, SCRIPT].map(|text| hash(text).replace('\'', "&#39;"));
    page.replace(&style, "STYLE").replace(&script, "SCRIPT")
}

fn head(review: &Review, out: &mut Markup) {
    let (word, text) = said(review);
    out.raw("<!DOCTYPE html>\n<html lang=en>\n<head>\n<meta charset=utf-8>\n");
    out.raw("<meta http-equiv=\"Content-Security-Policy\" content=\"default-src &#39;none&#39;; script-src ");
    out.text(hash(SCRIPT)).raw("; style-src ").text(hash(STYLE));
    out.raw("; img-src data:; base-uri &#39;none&#39;; form-action &#39;none&#39;\">\n");
    out.raw("<meta name=viewport content=\"width=device-width, initial-scale=1\">\n");
    out.raw("<meta name=referrer content=no-referrer>\n<meta name=color-scheme content=\"light dark\">\n");
    out.raw("<meta name=generator content=\"")
        .text(crate::NAME)
        .raw("\">\n");
    out.raw("<meta name=version content=\"")
        .text(env!("CARGO_PKG_VERSION"))
        .raw("\">\n<link rel=icon href=\"");
    out.raw(match state(review) {
        "good" => "data:image/svg+xml,%3Csvg xmlns=%27http://www.w3.org/2000/svg%27 viewBox=%270 0 8 8%27%3E%3Ccircle cx=%274%27 cy=%274%27 r=%274%27 fill=%27%231a7f37%27/%3E%3C/svg%3E",
        "bad" => "data:image/svg+xml,%3Csvg xmlns=%27http://www.w3.org/2000/svg%27 viewBox=%270 0 8 8%27%3E%3Ccircle cx=%274%27 cy=%274%27 r=%274%27 fill=%27%23cf222e%27/%3E%3C/svg%3E",
        _ => "data:image/svg+xml,%3Csvg xmlns=%27http://www.w3.org/2000/svg%27 viewBox=%270 0 8 8%27%3E%3Ccircle cx=%274%27 cy=%274%27 r=%274%27 fill=%27%239a6700%27/%3E%3C/svg%3E",
    });
    out.raw("\">\n<title>")
        .text(&word)
        .raw(": ")
        .text(sections::short(&text));
    let title = review.source.title();
    for part in [repository(review), branch(review), Some(title.as_ref())]
        .into_iter()
        .flatten()
    {
        if !part.is_empty() {
            out.raw(" – ").text(sections::short(part));
        }
    }
    out.raw("</title>\n<style>")
        .raw(STYLE)
        .raw("</style>\n<script>")
        .raw(SCRIPT)
        .raw("</script>\n</head>\n");
}

/// Returns the name of the repository: that of the folder with its worktree. `None` for a review
/// without one.
fn repository(review: &Review) -> Option<&str> {
    if let Some(name) = &review.source.repository {
        return Some(name);
    }
    review.place.as_ref()?.top.file_name()?.to_str()
}

/// Returns the branch that is checked out, if its worktree or index is reviewed.
pub(super) fn branch(review: &Review) -> Option<&str> {
    let is_local = matches!(
        review.source.kind,
        SourceKind::Staged | SourceKind::Unstaged | SourceKind::Changes
    );
    review
        .place
        .as_ref()
        .filter(|_| is_local)?
        .branch
        .as_deref()
}

/// Returns the class that colours the verdict.
fn state(review: &Review) -> &'static str {
    match (review.outcome, review.verdict) {
        // An incomplete review or a warning is never green.
        (Outcome::Cancelled | Outcome::NothingToReview, _)
        | (_, Verdict::Incomplete | Verdict::Warn) => "open",
        (_, Verdict::Block) => "bad",
        (_, Verdict::Pass) => "good",
    }
}

/// Returns the verdict as a heading, and its reason.
fn said(review: &Review) -> (String, String) {
    let (word, text) = verdict(review);
    let word = match word {
        "BLOCK" => "Blocked".to_owned(),
        "PASS" => "Passed".to_owned(),
        "WARN" => "Passed with warnings".to_owned(),
        word => format!("{}{}", &word[..1], word[1..].to_ascii_lowercase()),
    };
    (word, text)
}

fn body<'r>(
    review: &'r Review,
    page: &'r HtmlPage<'r>,
    origins: &'r [&'r Origin],
    out: &mut Markup,
) {
    let (word, text) = said(review);
    out.raw("<body>\n<a class=skip href=#main>Skip to the review</a>\n");
    out.raw("<header class=\"verdict ")
        .raw(state(review))
        .raw("\">\n<h1>")
        .text(&word)
        .raw("</h1>\n<p class=said>");
    out.text(&text).raw("</p>\n");
    if let Some(text) = sections::besides(review) {
        out.raw("<p class=besides>").text(&text).raw("</p>\n");
    }
    out.raw("</header>\n");
    if !review.findings.is_empty() || !page.files.is_empty() {
        bar(review, origins, out);
    }
    out.raw("<div class=page>\n");
    let has_files = page.files.len() > 1;
    if has_files {
        nav(review, page, out);
    }
    out.raw("<main id=main tabindex=-1>\n");
    sections::facts(review, out);
    sections::coverage(review, out);
    sections::tests(review, out);
    sections::blocking(review, page, out);
    sections::design(review, out);
    let files = HtmlFiles {
        review,
        page,
        origins,
    };
    sections::whole(&files, page, out);
    let is_something = review.outcome != Outcome::NothingToReview;
    if !page.files.is_empty() || page.without_lines.is_some() && is_something {
        out.raw("<section aria-labelledby=change><h2 id=change>");
        out.raw(SourceWords::of(&review.source).heading)
            .raw("</h2>\n");
        if let Some(why) = page.without_lines {
            out.raw("<p class=hint>").raw(why).raw("</p>\n");
        }
        out.raw("<p class=nothing role=status hidden>No finding matches the filters.</p>\n");
        for number in 0..page.files.len() {
            files.write(number, out);
        }
        out.raw("</section>\n");
    }
    sections::left_out(page, out);
    sections::set_aside(review, page, out);
    sections::context(review, out);
    sections::notes(review, out);
    sections::models(review, out);
    out.raw("</main>\n</div>\n<footer><p>").text(crate::NAME);
    out.raw(" generated this page. It loads nothing from the network.</p></footer>\n");
    out.raw(include_str!("html/help.html"))
        .raw("</body>\n</html>\n");
}

/// Writes the controls. They are hidden until the script runs.
fn bar(review: &Review, origins: &[&Origin], out: &mut Markup) {
    out.raw("<div class=bar role=region aria-label=\"Filters and navigation\" hidden>\n");
    out.raw("<div class=chips role=group aria-label=\"Show severities\">\n");
    for (severity, n) in counts(review, |f| f.counts()) {
        if n > 0 {
            chip(severity.name(), n, out);
        }
    }
    let aside = review.findings.iter().filter(|f| !f.counts()).count();
    if aside > 0 {
        chip("not counted", aside, out);
    }
    out.raw("</div>\n");
    if origins.len() > 1 {
        out.raw("<label>Reviewer <select id=by><option value=\"\">all</option>");
        for (i, o) in origins.iter().enumerate() {
            out.raw("<option value=")
                .digits(i as u64)
                .raw(">")
                .text(o.name())
                .raw("</option>");
        }
        out.raw("</select></label>\n");
    }
    out.raw("<label>File <input id=path type=search size=14 autocomplete=off spellcheck=false></label>\n");
    out.raw("<label>Text <input id=words type=search size=14 autocomplete=off spellcheck=false></label>\n");
    out.raw("<label class=tick><input id=only type=checkbox> Only files with findings</label>\n");
    out.raw("<span class=move><button id=prev type=button title=\"k\">↑ Previous</button>");
    out.raw("<button id=next type=button title=\"j\">↓ Next</button>");
    out.raw("<output id=count aria-live=polite></output></span>\n");
    out.raw("<span class=tools><button id=fold type=button title=\"f\">Fold all</button>");
    out.raw("<button id=theme type=button title=\"t\">Theme: auto</button>");
    out.raw("<button id=help type=button title=\"?\" aria-haspopup=dialog>Keys</button></span>\n</div>\n");
}

fn chip(name: &'static str, n: usize, out: &mut Markup) {
    let class = if Severity::parse(name).is_some() {
        name
    } else {
        "aside"
    };
    out.raw("<button type=button aria-pressed=true class=\"chip ")
        .raw(class)
        .raw("\" data-s=")
        .raw(class)
        .raw(">");
    out.raw(name)
        .raw(" <span>")
        .number(n)
        .raw("</span></button>\n");
}

/// Writes the sidebar with the files.
fn nav(review: &Review, page: &HtmlPage<'_>, out: &mut Markup) {
    out.raw("<nav aria-labelledby=files><details open><summary><h2 id=files>");
    out.text(plural(page.files.len(), "file"))
        .raw("</h2></summary>\n<ul>\n");
    for (i, file) in page.files.iter().enumerate().take(LISTED) {
        let n = file.findings().count();
        out.raw("<li><a href=#file")
            .digits(i as u64 + 1)
            .raw("><span class=p>")
            .text(file.path.as_bytes());
        out.raw("</span>");
        if let Some(commit) = file.commit.filter(|c| is_inside(Some(*c), review)) {
            out.raw("<span class=c><span class=hide>commit </span>")
                .text(&commit.short()[..7])
                .raw("</span>");
        }
        if n > 0 {
            out.raw("<span class=\"n ")
                .raw(diff::worst(file).unwrap_or("aside"))
                .raw("\">")
                .number(n);
            out.raw("<span class=hide> ")
                .raw(if n == 1 { "finding" } else { "findings" })
                .raw("</span></span>");
        }
        out.raw("</a></li>\n");
    }
    if page.files.len() > LISTED {
        out.raw("<li>and ")
            .number(page.files.len() - LISTED)
            .raw(" more below</li>\n");
    }
    out.raw("</ul>\n</details></nav>\n");
}
