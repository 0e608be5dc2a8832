//! One finding in Markdown.

use super::Flavor;
use crate::finding::{Confidence, Finding, FrameLine, LineSpan, Severity, line_of};
use crate::report::finding_text::{self, applicable};
use crate::text::one_line;
use crate::untrusted::{Inert, clipped, code, fenced, markdown, prose};

/// Bytes of a title, at most.
const TITLE: usize = 300;
/// Bytes of a line of code, at most.
const CODE: usize = 160;
/// Bytes before the marked part in a truncated line.
const LEAD: usize = 40;
/// Lines above the comment's line that GitLab lets a suggestion replace.
const MAX_ABOVE: u32 = 100;

/// Options for the block of a finding.
pub(super) struct BlockOptions {
    flavor: Flavor,
    /// Bytes of each text, at most.
    prose: usize,
    /// No earlier finding of the file has the same message.
    pub(super) news: bool,
    /// The comment is on the lines of the finding: the code is not repeated, and a suggestion can
    /// be applied.
    beside: bool,
    /// Everything except the title is folded.
    folded: bool,
    /// Code marks the lines that the change adds.
    pub(super) marks_added: bool,
}

impl BlockOptions {
    /// Returns the options for a comment on the finding's lines.
    pub(super) fn inline(flavor: Flavor) -> Self {
        Self {
            flavor,
            prose: 4_000,
            news: true,
            beside: true,
            folded: false,
            marks_added: true,
        }
    }

    /// Returns the options for a page with other findings. Bitbucket cannot fold.
    pub(super) fn listed(flavor: Flavor, prose: usize, folded: bool) -> Self {
        Self {
            flavor,
            prose,
            news: true,
            beside: false,
            folded: folded && flavor != Flavor::Bitbucket,
            marks_added: true,
        }
    }
}

/// Returns the sign of a severity. The name is next to it: colour alone must not carry the meaning.
pub(super) fn icon(severity: Severity) -> &'static str {
    match severity {
        Severity::Critical => "⛔",
        Severity::Major => "🔴",
        Severity::Minor => "🟡",
        Severity::Suggestion => "🔵",
    }
}

/// Returns the line that names a finding, without a line end.
pub(super) fn brief(f: &Finding, with_lines: bool) -> String {
    let title = if f.title().trim().is_empty() {
        f.rule_id()
    } else {
        f.title()
    };
    let title = prose(&clipped_line(title, TITLE));
    let mut facts = Vec::new();
    match f.lines().filter(|_| with_lines).map(|l| (l.first, l.last)) {
        Some((first, last)) if first == last => facts.push(format!("line {first}")),
        Some((first, last)) => facts.push(format!("lines {first} to {last}")),
        None => {}
    }
    facts.push(code(clipped(f.rule_id(), 100).as_bytes()));
    if let Some(commit) = f.commit.filter(|_| with_lines) {
        facts.push(format!("in commit {}", code(commit.short())));
    }
    if f.origin().name() != "rules" {
        facts.push(format!(
            "found by {}",
            code(clipped(f.origin().name(), 100).as_bytes())
        ));
    }
    if f.confidence() == Confidence::Low {
        facts.push("confidence low".to_owned());
    }
    if f.blocking {
        facts.push("blocks".to_owned());
    }
    facts.retain(|f| !f.is_empty());
    format!(
        "{} **{}: {title}** ({})",
        icon(f.severity()),
        f.severity(),
        facts.join(", ")
    )
}

/// Returns a finding in paragraphs, with a line end.
pub(super) fn block(f: &Finding, look: &BlockOptions) -> String {
    let mut parts = Vec::new();
    if !look.beside {
        parts.extend(frame(f, look.marks_added));
    }
    if look.news && !finding_text::body(f).trim().is_empty() {
        parts.push(clipped_prose(finding_text::body(f), look.prose));
    }
    parts.extend(
        finding_text::flow(f, finding_text::ARROW)
            .map(|path| format!("**Data flow:** {}", code(path.as_bytes()))),
    );
    parts
        .extend(finding_text::also(f).map(|place| format!("**Also:** {}", code(place.as_bytes()))));
    let reproduced = finding_text::reproduction(f);
    let labelled = [
        ("Reproduced", reproduced.as_deref()),
        ("Fails when", f.failure()),
        ("Convention", f.convention()),
        ("Disputed", f.disputed.as_deref()),
        ("Help", f.suggestion().filter(|_| look.news)),
    ];
    parts.extend(labelled.into_iter().filter_map(|(label, text)| {
        let text = clipped_prose(text?, look.prose);
        Some(format!("**{label}:** {text}"))
    }));
    match suggestion(f, look) {
        Some(suggestion) => parts.push(suggestion),
        None => parts.extend(f.replacement().map(|code| replacement(code, look))),
    }
    let mut last = Vec::new();
    if let Some(cwe) = f.cwe() {
        last.push(format!(
            "[CWE-{cwe}](https://cwe.mitre.org/data/definitions/{cwe}.html)"
        ));
    }
    if f.blocking {
        last.push(format!("fingerprint `{}`", f.fingerprint()));
    }
    parts.push(last.join(", "));
    parts.retain(|p| !p.is_empty());
    let title = brief(f, !look.beside);
    let body = parts
        .iter()
        .map(|p| p.trim_end())
        .collect::<Vec<_>>()
        .join("\n\n");
    match body.is_empty() {
        true => format!("{title}\n"),
        false if look.folded => {
            format!("{title}\n\n<details><summary>Details</summary>\n\n{body}\n\n</details>\n")
        }
        false => format!("{title}\n\n{body}\n"),
    }
}

/// Returns untrusted text as prose, truncated.
fn clipped_prose(text: &str, most: usize) -> String {
    prose(clipped(text.trim(), most).trim())
}

/// Returns untrusted text on one line, truncated; not escaped.
pub(super) fn clipped_line(text: &str, most: usize) -> String {
    clipped(&one_line(text), most).into_owned()
}

/// Returns the replacement of a finding as a block of code.
fn replacement(code: &str, look: &BlockOptions) -> String {
    match code.is_empty() {
        true => "Delete these lines.".to_owned(),
        false => format!("Replace with:\n\n{}", added(&clipped(code, look.prose))),
    }
}

/// Returns the block for a suggestion that the forge can apply.
fn suggestion(f: &Finding, look: &BlockOptions) -> Option<String> {
    let text = applicable(f).filter(|_| look.beside)?;
    let LineSpan { first, last, .. } = f.lines()?;
    let above = last.get() - first.get();
    let info = match look.flavor {
        Flavor::Github => "suggestion".to_owned(),
        // Parsers that support only fences of three backticks would run quick actions in a longer
        // fence.
        Flavor::Gitlab if above <= MAX_ABOVE && !text.lines().any(is_quick_action) => {
            format!("suggestion:-{above}+0")
        }
        Flavor::Bitbucket if above == 0 => "suggestion".to_owned(),
        Flavor::Gitlab | Flavor::Bitbucket => return None,
    };
    Some(fenced(&info, text))
}

/// Returns true if GitLab would run a line as a quick action.
fn is_quick_action(line: &str) -> bool {
    line.trim_start()
        .strip_prefix('/')
        .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_alphabetic()))
}

/// Returns code with a sign before each line, so that no line is at the start of a Markdown line.
pub(in crate::report) fn added(text: &str) -> String {
    let lines: Vec<_> = Inert::lines(text).map(|l| format!("+ {l}")).collect();
    fenced("", &lines.join("\n"))
}

/// Returns the lines around a finding, with numbers; without a frame, its quote. Added lines are
/// marked if `marks_added` is true.
fn frame(f: &Finding, marks_added: bool) -> Option<String> {
    let (Some(frame), Some(span)) = (&f.frame, f.lines()) else {
        let lines = f.quote().lines().take(4).map(|l| {
            let line = FrameLine {
                text: l.as_bytes().to_vec(),
                skipped: 0,
                added: false,
            };
            format!("| {}", cut(&line, 0))
        });
        let lines: Vec<_> = lines.collect();
        return (!lines.is_empty()).then(|| fenced("", &lines.join("\n")));
    };
    let digits = (frame.first.get() as usize + frame.lines.len())
        .to_string()
        .len();
    let mut rows = Vec::new();
    for (number, line) in (frame.first.get()..).zip(&frame.lines) {
        let marked = (span.first.get()..=span.last.get()).contains(&number);
        let start = span
            .columns
            .filter(|_| number == span.first.get())
            .map_or(0, |(start, _)| start);
        let text = cut(line, start);
        let (mark, sign) = (
            if marked { '>' } else { ' ' },
            if line.added && marks_added { '+' } else { ' ' },
        );
        rows.push(
            format!("{mark} {number:>digits$} {sign} {text}")
                .trim_end()
                .to_owned(),
        );
    }
    if line_of(frame, span.last.get()).is_none() {
        rows.push(format!("> {:>digits$}", "..."));
    }
    Some(fenced("", &rows.join("\n")))
}

/// Returns the part of a line that contains the byte `at` of the whole line.
fn cut(line: &FrameLine, at: u32) -> String {
    let at = at.saturating_sub(line.skipped) as usize;
    let start = if line.skipped > 0 { "..." } else { "" };
    let line = &line.text[..];
    if line.len() <= CODE {
        return format!("{start}{}", Inert::new(line));
    }
    let from = boundary(line, at.saturating_sub(LEAD).min(line.len()));
    let from = if from <= LEAD { 0 } else { from };
    let to = boundary(line, (from + CODE).min(line.len()));
    let (before, after) = (
        if from > 0 { "..." } else { start },
        if to < line.len() { "..." } else { "" },
    );
    format!("{before}{}{after}", Inert::new(&line[from..to]))
}

/// Returns the position of the first character of a line at or after a byte.
fn boundary(line: &[u8], at: usize) -> usize {
    (at..line.len())
        .find(|i| line[*i] & 0xc0 != 0x80)
        .unwrap_or(line.len())
}

/// Returns an untrusted line as the text of a list item.
pub(in crate::report) fn item(text: &str) -> String {
    markdown(&clipped_line(text, 600))
}
