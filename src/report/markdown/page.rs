//! A review as a Markdown page of bounded size: the verdict, then the files that were not reviewed,
//! the findings, and the rest.

use super::Flavor;
use super::block::{BlockOptions, block, brief, clipped_line, icon, item};
use crate::diff::RepoPath;
use crate::finding::Finding;
use crate::report::finding_text::{self, worst_first};
use crate::report::source_words::SourceWords;
use crate::report::words;
use crate::report::{self, counted, totals};
use crate::review::Review;
use crate::text::{first_bytes, plural};
use crate::untrusted::{Inert, clipped, code, markdown, markup, prose};
use crate::verdict::Verdict;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// Bytes reserved for the line that counts the omitted findings.
const RESERVE: usize = 240;
/// Bytes of a path, at most.
const PATH: usize = 300;

/// The amount of detail of a page.
#[derive(Clone, Copy, Debug)]
pub(in crate::report) struct Detail<'h> {
    flavor: Flavor,
    bound: usize,
    /// Entries of a list, at most.
    most: usize,
    /// Bytes of each text of a finding, at most.
    prose: usize,
    /// The page includes opinions, notes, skipped files and usage.
    all: bool,
    /// The details of findings are folded.
    folded: bool,
    hidden: &'h Withheld,
}

/// Findings that a page does not list. The verdict and its counts include them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Withheld {
    pub fingerprints: BTreeSet<String>,
    /// Note on the page about these findings; may be empty.
    pub note: String,
}

impl Withheld {
    const NONE: &'static Self = &Self {
        fingerprints: BTreeSet::new(),
        note: String::new(),
    };

    fn shows(&self, f: &Finding) -> bool {
        !self.fingerprints.contains(f.fingerprint().as_str())
    }
}

impl<'h> Detail<'h> {
    /// Returns the detail of a pull request comment.
    pub(in crate::report) fn comment(flavor: Flavor, bound: usize) -> Self {
        Self {
            flavor,
            bound,
            most: 10,
            prose: 1_500,
            all: false,
            folded: true,
            hidden: Withheld::NONE,
        }
    }

    /// Returns the detail of a page that does not list some findings.
    pub(in crate::report) fn without(self, hidden: &'h Withheld) -> Self {
        Self { hidden, ..self }
    }

    /// Returns the detail of a job summary.
    pub(in crate::report) fn summary(bound: usize) -> Self {
        let hidden = Withheld::NONE;
        Self {
            flavor: Flavor::Github,
            bound,
            most: 200,
            prose: 4_000,
            all: true,
            folded: false,
            hidden,
        }
    }
}

/// Returns the page, in at most `detail.bound` bytes.
pub(in crate::report) fn page(review: &Review, detail: &Detail<'_>) -> String {
    let head = head(review);
    let Some(room) = detail.bound.checked_sub(head.len() + RESERVE) else {
        return first_bytes(&head, detail.bound).to_owned();
    };
    let missing = unreviewed(review, detail, room / 4);
    let tail = tail(review, detail, room / 3);
    let findings = findings(review, detail, room - missing.len() - tail.len());
    let parts = [head, missing, findings, tail];
    let mut out = parts
        .iter()
        .filter(|p| !p.is_empty())
        .map(|p| p.trim_end())
        .collect::<Vec<_>>()
        .join("\n\n");
    out.push('\n');
    out
}

/// Returns the heading with the verdict, and its reason.
fn head(review: &Review) -> String {
    let (word, text) = words::verdict(review);
    let mut out = format!(
        "## {}: {word}\n\n{}.",
        crate::NAME,
        markdown(&capital(&text))
    );
    if review.verdict == Verdict::Block && !review.coverage.is_complete() {
        out.push_str(&format!(
            " The review is incomplete: {}.",
            words::missing(review)
        ));
    }
    if let Some(why) = words::let_through(review) {
        out.push_str(&format!("\n\n{}.", capital(&markdown(&why))));
    }
    let found = totals(review);
    if found.iter().any(|(_, n)| *n > 0) {
        let blocking = report::blocking(review);
        let names: Vec<_> = found
            .iter()
            .map(|(s, _)| format!("{} {}", icon(*s), s.name()))
            .collect();
        out.push_str(&format!(
            "\n\n| | {} |\n|---|---:|---:|---:|---:|\n",
            names.join(" | ")
        ));
        out.push_str(&row("found", &found));
        out.push_str(&row("blocking", &blocking));
    }
    out
}

/// Returns a row of the table of findings.
fn row(name: &str, of: &[(crate::finding::Severity, usize)]) -> String {
    let cells: Vec<_> = of.iter().map(|(_, n)| n.to_string()).collect();
    format!("| {name} | {} |\n", cells.join(" | "))
}

/// Returns a text with its first ASCII letter in upper case.
fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |c| {
        c.to_ascii_uppercase().to_string() + chars.as_str()
    })
}

/// Returns the entries that fit into `room` bytes as a list, at most `most`, and the number of the
/// others.
fn list(items: impl ExactSizeIterator<Item = String>, most: usize, room: usize) -> String {
    let total = items.len();
    let mut out = String::new();
    let mut shown = 0;
    for item in items.take(most) {
        let item = if item.trim().is_empty() {
            "(no text)".to_owned()
        } else {
            item
        };
        if out.len() + item.len() + 40 > room {
            break;
        }
        out.push_str(&format!("- {item}\n"));
        shown += 1;
    }
    if shown < total {
        out.push_str(&format!("- and {} more\n", total - shown));
    }
    out
}

/// Returns the list of the parts that were not reviewed.
fn unreviewed(review: &Review, detail: &Detail<'_>, room: usize) -> String {
    let failed = &review.coverage.failed;
    if failed.is_empty() {
        return String::new();
    }
    let items = failed.iter().map(|f| match &f.file {
        Some(path) => format!("{}: {}", name(path), item(&f.reason())),
        None => item(&f.reason()),
    });
    format!(
        "**Not reviewed**\n\n{}",
        list(items, detail.most, room.saturating_sub(60))
    )
}

/// Returns a path as code, truncated.
fn name(path: &RepoPath) -> String {
    code(clipped(Inert::new(path.as_bytes()).as_str(), PATH).as_bytes())
}

/// Folds a part below its title, or puts a heading above it if the forge cannot fold.
fn fold(flavor: Flavor, open: bool, line: &Title<'_>, body: &str) -> String {
    let body = body.trim_end();
    match flavor {
        Flavor::Bitbucket => format!("### {}\n\n{body}\n", line.markdown()),
        Flavor::Github | Flavor::Gitlab => {
            let open = if open { " open" } else { "" };
            format!(
                "<details{open}><summary>{}</summary>\n\n{body}\n\n</details>\n",
                line.html()
            )
        }
    }
}

/// The title of a part: a path or a text, and a count.
struct Title<'a> {
    path: Option<&'a RepoPath>,
    words: String,
}

impl Title<'_> {
    fn html(&self) -> String {
        let path = self
            .path
            .map(|p| markup(&clipped(Inert::new(p.as_bytes()).as_str(), PATH)));
        path.map(|p| format!("<code>{p}</code>: "))
            .unwrap_or_default()
            + &self.words
    }

    fn markdown(&self) -> String {
        self.path
            .map(|p| format!("{}: ", name(p)))
            .unwrap_or_default()
            + &self.words
    }
}

/// Folds a part below a title without a path.
fn section(flavor: Flavor, words: String, body: &str) -> String {
    fold(flavor, false, &Title { path: None, words }, body)
}

/// Returns the findings that fit, worst first, grouped by file.
fn findings(review: &Review, detail: &Detail<'_>, room: usize) -> String {
    let all: Vec<&Finding> = worst_first(review)
        .into_iter()
        .filter(|f| detail.hidden.shows(f))
        .collect();
    let mut of_file: HashMap<Option<&RepoPath>, usize> = HashMap::new();
    for f in &all {
        *of_file.entry(f.file()).or_default() += 1;
    }
    let mut look = BlockOptions::listed(detail.flavor, detail.prose, detail.folded);
    look.marks_added = SourceWords::of(&review.source).marks_added;
    let mut said = HashSet::new();
    let mut places: HashMap<Option<&RepoPath>, usize> = HashMap::new();
    let mut files: Vec<(Vec<&Finding>, String)> = Vec::new();
    let (mut used, mut shown) = (0, 0);
    for f in &all {
        let around = if places.contains_key(&f.file()) {
            0
        } else {
            let total = of_file.get(&f.file()).copied().unwrap_or_default();
            let words = title(review, f.file(), 0, total) + " and some digits more";
            fold(
                detail.flavor,
                true,
                &Title {
                    path: f.file(),
                    words,
                },
                "",
            )
            .len()
        };
        let says = (f.file(), f.message(), f.suggestion());
        look.news = !said.contains(&says);
        let whole = block(f, &look);
        // A finding must not fill more than a quarter of the page.
        let text = if whole.len() <= room / 4 && used + around + whole.len() + 2 <= room {
            said.insert(says);
            whole
        } else {
            brief(f, true) + "\n"
        };
        if used + around + text.len() + 2 > room {
            break;
        }
        used += around + text.len() + 2;
        shown += 1;
        let at = *places.entry(f.file()).or_insert(files.len());
        if at == files.len() {
            files.push((Vec::new(), String::new()));
        }
        let (listed, body) = &mut files[at];
        listed.push(f);
        body.push_str(&text);
        body.push('\n');
    }
    let mut out = String::new();
    for (listed, body) in &files {
        let file = listed.first().and_then(|f| f.file());
        let words = title(
            review,
            file,
            listed.len(),
            of_file.get(&file).copied().unwrap_or_default(),
        );
        let open = listed.iter().any(|f| f.blocking);
        out.push_str(&fold(
            detail.flavor,
            open,
            &Title { path: file, words },
            body,
        ));
        out.push('\n');
    }
    if shown < all.len() {
        out.push_str(&format!(
            "**The worst {shown} of {} findings are shown; {} are left out.** `--format json` lists them all.\n",
            all.len(),
            all.len() - shown
        ));
    }
    out
}

/// Returns the title of a file with findings, to which [`Title`] adds the path.
fn title(review: &Review, file: Option<&RepoPath>, shown: usize, total: usize) -> String {
    let what = match file {
        Some(_) => String::new(),
        None => format!("{}: ", SourceWords::of(&review.source).whole_at_start),
    };
    let count = if shown == total {
        plural(total, "finding")
    } else {
        format!("{shown} of {total} findings")
    };
    format!("{what}{count}")
}

/// Returns the parts after the findings that fit.
fn tail(review: &Review, detail: &Detail<'_>, room: usize) -> String {
    let share = room / 8;
    let mut parts = vec![
        context(review),
        tests(review, detail, share),
        design(review, detail, share),
        set_aside(review, detail, share),
    ];
    if detail.all {
        parts.extend([
            opinions(review, detail, share),
            notes(review, detail, share),
            skipped(review, detail, share),
            dropped(review),
            usage(review),
        ]);
    }
    parts.push(if detail.hidden.note.is_empty() {
        String::new()
    } else {
        format!("{}\n", detail.hidden.note)
    });
    parts.push(footer(review));
    let mut out = String::new();
    for part in parts.iter().filter(|p| !p.is_empty()) {
        if out.len() + part.len() < room {
            out.push_str(part);
            out.push('\n');
        }
    }
    out
}

/// Returns the result of the project's tests.
fn tests(review: &Review, detail: &Detail<'_>, room: usize) -> String {
    let Some(t) = &review.tests else {
        return String::new();
    };
    let word = words::tests_word(t.outcome);
    let coverage = t
        .coverage
        .as_ref()
        .map(|c| format!(", coverage {}", item(c)))
        .unwrap_or_default();
    let failing = list(
        t.failing.iter().map(|n| code(clipped_line(n, PATH))),
        detail.most,
        room,
    );
    format!("**{word}**: {}{coverage}\n\n{failing}", item(&t.summary))
}

/// Returns the violations of the design and the missing requirements.
fn design(review: &Review, detail: &Detail<'_>, room: usize) -> String {
    let violations = review.models.compliance.iter().flat_map(|c| &c.violations);
    let violations = violations.map(|v| ("design", v.impact, &v.issue, v.reference.as_ref()));
    let missing = words::other_missing(review).into_iter();
    let missing = missing.map(|m| ("missing", m.severity, &m.requirement, m.reference.as_ref()));
    let items = violations
        .chain(missing)
        .map(|(what, severity, text, reference)| {
            let reference = reference
                .map(|r| format!(" ({})", code(clipped_line(r, PATH))))
                .unwrap_or_default();
            format!(
                "{what} ({severity}): {}{reference}",
                prose(&clipped_line(text, 600))
            )
        });
    let items: Vec<_> = items.collect();
    if items.is_empty() {
        return String::new();
    }
    format!(
        "**Design and requirements**\n\n{}",
        list(items.into_iter(), detail.most, room)
    )
}

/// Returns the findings that do not count, with the reasons.
fn set_aside(review: &Review, detail: &Detail<'_>, room: usize) -> String {
    let all: Vec<&Finding> = review
        .findings
        .iter()
        .filter(|f| !f.counts() && detail.hidden.shows(f))
        .collect();
    if all.is_empty() {
        return String::new();
    }
    let items = all.iter().map(|f| {
        let (label, why) =
            finding_text::aside(f).map_or_else(Default::default, |a| (item(&a.label), a.reason));
        let place = f
            .file()
            .map(|p| format!(" in {}", name(p)))
            .unwrap_or_default();
        let line = f
            .lines()
            .map(|l| format!(" line {}", l.first))
            .unwrap_or_default();
        let commit = f
            .commit
            .map(|c| format!(" of commit {}", code(c.short())))
            .unwrap_or_default();
        let rule = code(clipped_line(f.rule_id(), 100));
        format!(
            "{} {rule}{place}{line}{commit}, {label}: {}",
            f.severity(),
            item(why)
        )
    });
    let waived = all.iter().filter(|f| f.waived.is_some()).count();
    let suppressed = all
        .iter()
        .filter(|f| f.waived.is_none() && f.suppressed.is_some())
        .count();
    let counts = [
        (waived, "waived"),
        (suppressed, "suppressed"),
        (all.len() - waived - suppressed, "dispositioned"),
    ];
    let words: Vec<String> = counts
        .iter()
        .filter(|(n, _)| *n > 0)
        .map(|(n, what)| format!("{n} {what}"))
        .collect();
    let words = words.join(", ");
    section(detail.flavor, words, &list(items, detail.most, room))
}

/// Lists the tickets and pages that models saw.
fn context(review: &Review) -> String {
    let items: Vec<String> = words::context(review)
        .iter()
        .map(|text| item(text))
        .collect();
    if items.is_empty() {
        String::new()
    } else {
        format!("Context: {}.\n", items.join(", "))
    }
}

/// Returns the remarks of models about parts of the change.
fn opinions(review: &Review, detail: &Detail<'_>, room: usize) -> String {
    let all = &review.models.opinions;
    if all.is_empty() {
        return String::new();
    }
    let items = all.iter().map(|o| {
        format!(
            "{}: {}",
            code(clipped_line(&o.backend, 100)),
            prose(&clipped_line(&o.text, 4_000))
        )
    });
    section(
        detail.flavor,
        "Opinions of the models".to_owned(),
        &list(items, detail.most, room),
    )
}

/// Returns the notes.
fn notes(review: &Review, detail: &Detail<'_>, room: usize) -> String {
    if review.notes.is_empty() {
        return String::new();
    }
    let items = review.notes.iter().map(|n| {
        let line = n.line.map(|l| format!(" line {l}")).unwrap_or_default();
        let place = n
            .file
            .as_ref()
            .map(|p| format!("{}{line}: ", name(p)))
            .unwrap_or_default();
        format!("{place}{}", prose(&clipped_line(&n.text, 600)))
    });
    section(
        detail.flavor,
        plural(review.notes.len(), "note"),
        &list(items, detail.most, room),
    )
}

/// Returns the files that were skipped, by reason.
fn skipped(review: &Review, detail: &Detail<'_>, room: usize) -> String {
    let all = &review.coverage.skipped;
    if all.is_empty() {
        return String::new();
    }
    let mut reasons: BTreeMap<&str, Vec<&RepoPath>> = BTreeMap::new();
    for (path, skip) in all {
        reasons.entry(skip.name()).or_default().push(path);
    }
    let items: Vec<_> = reasons
        .iter()
        .flat_map(|(why, paths)| paths.iter().map(move |p| format!("{why}: {}", name(p))))
        .collect();
    let words = format!("{} skipped by policy", plural(all.len(), "file"));
    section(
        detail.flavor,
        words,
        &list(items.into_iter(), detail.most, room),
    )
}

/// Returns the number of claims that could not be anchored.
fn dropped(review: &Review) -> String {
    match review.models.dropped.len() {
        0 => String::new(),
        _ => format!("{}.\n", words::dropped_claims(review)),
    }
}

/// Returns requests, tokens and cost by backend.
fn usage(review: &Review) -> String {
    let lines = review.models.usage.iter().map(|u| item(&words::spent(u)));
    list(lines, 20, 4_000)
}

/// Returns the basis of the review, its duration and its session, as the footer shows them.
pub(super) fn basis(review: &Review) -> String {
    item(&words::basis(review))
}

/// Returns the end of the page: the basis of the review, and how to dismiss a false positive.
fn footer(review: &Review) -> String {
    let mut out = basis(review);
    if let Some(missing) = words::conventions(review) {
        out.push_str(&format!(". {}", capital(&item(&missing))));
    }
    if review.rules_only {
        out.push_str(". Rules only: no model was asked");
    }
    out.push_str(".\n");
    let waits = report::blocking(review);
    if !counted(&waits).is_empty() {
        out.push_str(
            "\nFalse positive? Waive it with `--waive FINGERPRINT=REASON`. Outside of a gate, a comment \
             `claude-reviewer: ignore[RULE] reason` on the line suppresses it, too.\n",
        );
    }
    out
}
