//! Reports the flows of data that a change completes: by adding a source, a sink or a step between
//! them, or by removing the code that made the value harmless.
//!
//! A file is parsed only if the changed lines have a word of the tables and the file has a word of
//! a sink.

use super::matches::{MARGIN, columns, quoted};
use super::{FileScan, RuleFit, address};
use crate::diff::{LineNo, TextChange};
use crate::finding::{Confidence, FlowRole, FlowStep, LineSpan, Severity};
use crate::rules::catalog::Matcher;
use crate::rules::flow::{
    self, AddedPart, Flow, FlowLanguage, FlowSubject, PathStep, Proof, StepRole, Trigger,
};
use crate::rules::language::Languages;
use crate::rules::line_ends::with_line_feeds;
use crate::rules::report::{self, Sighting, ValueOrigin};
use crate::rules::role::{self, FileRole};
use crate::rules::{MARK, elide, glob, parse};
use crate::text::one_line;
use earlier::{OldFlows, is_inside};
use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

pub(super) mod content_type;
mod earlier;
mod response;
mod sender;
mod sniffed;
mod weight;

/// The rule of each word of the tables: a kind of sink, or the `rule` of a structural call.
pub(in crate::rules) const RULES: &[(&str, &str)] = &[
    ("sql", "sql-injection-flow"),
    ("nosql", "nosql-injection-flow"),
    ("command", "command-injection-flow"),
    ("code", "code-injection-flow"),
    ("template", "template-injection-flow"),
    ("ldap", "ldap-injection-flow"),
    ("xpath", "xpath-injection-flow"),
    ("xquery", "xquery-injection-flow"),
    ("header", "header-injection-flow"),
    ("log", "log-injection-flow"),
    ("format", "format-string-flow"),
    ("html", "html-injection-flow"),
    ("path", "path-traversal-flow"),
    ("zipslip", "archive-path-flow"),
    ("url", "request-forgery-flow"),
    ("redirect", "open-redirect-flow"),
    ("deserialization", "deserialization-flow"),
    ("xml", "xml-entity-flow"),
    ("regex", "regex-injection-flow"),
    ("reflection", "reflection-flow"),
    ("mass-assignment", "mass-assignment-flow"),
    ("prototype", "prototype-pollution-flow"),
    ("trust", "trust-boundary-flow"),
    ("memory", "memory-size-flow"),
    ("email", "email-injection-flow"),
    ("csv", "csv-injection-flow"),
    ("cors", "cors-open-call"),
];

/// The rule of each word that structural calls name.
pub(in crate::rules) const CALLS: &[(&str, &str)] = &[
    ("weak-hash", "weak-hash-call"),
    ("weak-password-hash", "weak-password-hash-call"),
    ("weak-key", "weak-key-call"),
    ("weak-cipher", "weak-cipher-call"),
    ("weak-random", "weak-random-call"),
    ("tls", "tls-insecure-call"),
    ("cleartext", "cleartext-protocol-call"),
    ("cookie", "cookie-insecure-call"),
    ("csrf", "csrf-disabled-call"),
    ("cors", "cors-open-call"),
    ("jwt", "jwt-unverified-call"),
    ("timing", "timing-compare-call"),
    ("secret-compare", "timing-compare-call"),
    ("tempfile", "temporary-file-call"),
    ("filemode", "file-mode-call"),
    ("redos", "regex-backtracking-call"),
    ("integer", "buffer-overflow-call"),
    ("buffer", "buffer-overflow-call"),
    ("debug", "debug-enabled-call"),
    ("auth", "authentication-disabled-call"),
    ("clickjacking", "clickjacking-call"),
    ("session", "session-insecure-call"),
    ("xml", "xml-entity-call"),
    ("deserialization", "deserialization-call"),
    ("html", "template-escaping-call"),
    ("template-escaping", "template-escaping-call"),
    ("mass-assignment", "mass-assignment-call"),
    ("correctness", "correctness-call"),
];

/// Paths of scripts that build and release. The person who runs them chooses their arguments, so
/// only data of requests counts.
const SCRIPTS: &[&str] = &[
    "{scripts,script,ci,build,hack,hacking,devtools,docs,doc,benchmarks,benchmark,release,.github}/**",
];
/// Paths that may contain such scripts. A flow whose data is not from a request has less weight
/// there.
const TOOLS: &[&str] = &[
    "{tools,tool,bin,contrib}/**",
    "**/{scripts,script,ci,hack,devtools}/**",
    "*/{build,release,docs,doc}/**",
    "{setup,noxfile,fabfile,dodo,SConstruct,build}.py",
];

/// Bytes of the code of a step that are kept, at most.
const STEP_MAX: usize = 200;
/// Bytes of a step that are read to get that code, at most: white space is folded.
const STEP_READ: usize = 600;

/// The result of the analysis of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Followed {
    /// The analysis was not needed, or the grammar could not read the whole file.
    Not,
    /// A limit ended the analysis.
    Partly,
    Whole(JudgedPart),
}

/// The part of a file about which the absence of a flow proves something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct JudgedPart {
    pub(super) language: FlowLanguage,
    /// The analysis read the scripts of a page, and not its markup.
    pub(super) of_script: bool,
    /// Lines on which a sink starts that can run.
    pub(super) sinks: BTreeSet<LineNo>,
}

/// Reason why a flow is a suggestion.
const EARLIER: &str = "the file had this path before the change";

/// Position at which a flow is reported.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Anchor {
    /// A part of an added line, in bytes of the text.
    Line(Range<usize>),
    /// No added line belongs to the flow: the change removes the code that made the value harmless.
    File,
}

/// Returns the rule that reports a subject.
pub(in crate::rules) fn rule_of_subject(subject: FlowSubject) -> Option<&'static str> {
    let table = if matches!(subject, FlowSubject::Rule(_)) {
        CALLS
    } else {
        RULES
    };
    table
        .iter()
        .find(|(word, _)| *word == word_of(subject))
        .map(|(_, id)| *id)
}

/// Returns the word by which the tables name a subject.
fn word_of(subject: FlowSubject) -> &'static str {
    match subject {
        FlowSubject::Flow(kind) => kind.name(),
        FlowSubject::Rule(word) => word,
    }
}

/// Returns the title of a finding whose data is not from a request. `None`: the title of the rule
/// applies.
fn title(of_rule: &str, origin: ValueOrigin) -> Option<String> {
    let data = match origin {
        ValueOrigin::Local => "data from outside",
        ValueOrigin::Caller => "a value of the caller",
        ValueOrigin::Unknown => "a variable",
        ValueOrigin::Outside | ValueOrigin::Doubtful => return None,
    };
    of_rule
        .contains(REQUEST_DATA)
        .then(|| of_rule.replace(REQUEST_DATA, data))
}

/// Returns the first sentence of a message, with its full stop.
fn first_sentence(message: &str) -> &str {
    message.find(". ").map_or(message, |end| &message[..=end])
}

/// The name of the source in the titles of rules of data flow.
const REQUEST_DATA: &str = "request data";

impl<'a> FileScan<'a> {
    /// Follows the data of the file, and reports what the change completes.
    pub(super) fn flows(&mut self, change: &'a TextChange) -> Followed {
        let path = self.file.path().as_bytes();
        let Some(language) = language_of(path, self.reporter.languages()) else {
            return Followed::Not;
        };
        if !self.is_followed(change) {
            return Followed::Not;
        }
        let (text, base) = readable(self.reporter.languages(), change.new.known());
        let added = added(change);
        let old_path = self.file.entry.old.as_ref().map(|old| old.path.as_bytes());
        let has_same_role = old_path.is_none_or(|old| role::of(old) <= self.role());
        let old = OldFlows::new(language, self.reporter.languages(), change, has_same_role);
        let of_text = moved_back(&added, base);
        // Without a protection, flows of unchanged lines can be new.
        let is_near = !old.lose_protection();
        let parts = is_near.then(|| self.reaching(change)).flatten();
        let near = is_near.then_some(AddedPart {
            added: &of_text,
            parts: parts.as_deref(),
        });
        let mut analysis = flow::analyse_parsed(language, &text, self.parse.as_ref(), near);
        shift(&mut analysis.flows, base);
        let mut found: BTreeMap<(u16, Option<usize>), (&Flow, Anchor)> = BTreeMap::new();
        let (mut completed, rest): (Vec<_>, Vec<_>) = analysis
            .flows
            .iter()
            .map(|f| (f, anchor(&added, change, f)))
            .partition(|(_, anchor)| anchor.is_some());
        let is_earlier = |f: &Flow| old.has_as_many(&analysis.flows, f);
        completed.retain(|(f, _)| !is_inside(&added, f) || !is_earlier(f));
        let rest = rest.into_iter().map(|(f, _)| f).collect();
        let exposed = old.exposed(rest);
        completed.extend(
            exposed
                .into_iter()
                .map(|f| (f, Some(anchor_between(&added, f)))),
        );
        let is_script = SCRIPTS.iter().any(|g| glob::matches(g, path));
        completed.retain(|(f, _)| f.proof == Proof::Request || !is_script);
        for (f, anchor) in completed {
            let rule = rule_of_subject(f.subject).and_then(|id| self.reporter.rules.index_of(id));
            let (Some(rule), Some(anchor)) = (rule.filter(|r| self.reports(*r)), anchor) else {
                continue;
            };
            let at = match &anchor {
                Anchor::Line(span) => Some(line_around(change.new.known(), span.start).start),
                Anchor::File => None,
            };
            let known = found
                .entry((rule, at))
                .or_insert_with(|| (f, anchor.clone()));
            if rank(f) > rank(known.0) {
                *known = (f, anchor);
            }
        }
        for ((rule, _), (f, anchor)) in found {
            let is_earlier = old.has_ends_of(&analysis.flows, f);
            self.report_flow(change, rule, f, (&anchor, is_earlier));
        }
        match (analysis.is_complete, analysis.is_readable) {
            (true, true) => Followed::Whole(JudgedPart {
                language,
                of_script: self.reporter.languages().any_of(&["vue"]),
                sinks: analysis
                    .judged
                    .iter()
                    .filter_map(|at| change.new.line_number(at + base))
                    .collect(),
            }),
            (true, false) => Followed::Not,
            (false, _) => Followed::Partly,
        }
    }

    /// Returns the parts of the file through which data can reach its added lines, in bytes of the
    /// text that the grammar reads. `None`: the whole file.
    pub(super) fn reaching(&mut self, change: &TextChange) -> Option<Vec<Range<usize>>> {
        let languages = self.reporter.languages();
        let of_file = self.reaching.get_or_init(|| {
            let (text, base) = readable(languages, change.new.whole()?);
            elide::reaching(languages, &text, &moved_back(&added(change), base))
        });
        of_file.clone()
    }

    /// Returns true if the data of the file is followed.
    pub(super) fn is_followed(&mut self, change: &TextChange) -> bool {
        if let Some(known) = self.is_followed {
            return known;
        }
        let language = language_of(self.file.path().as_bytes(), self.reporter.languages());
        let is_code = self.is_first && self.role() != FileRole::Test && !self.is_bundle();
        let is_followed =
            is_code && language.is_some_and(|language| is_worth_parsing(language, change));
        self.is_followed = Some(is_followed);
        is_followed
    }

    /// Returns true if a rule of data flow applies to the file.
    fn reports(&mut self, rule: u16) -> bool {
        use super::Visitor as _;
        self.reporter.rules.rule(rule).matcher == Matcher::Flow
            && self.accepts(rule)
            && self.fit_by_content(rule) == RuleFit::Reports
    }

    /// Reports a flow. `is_earlier`: the file had a flow from the same source to the same sink
    /// before the change. Such a flow is a suggestion, unless it is critical.
    fn report_flow(
        &mut self,
        change: &'a TextChange,
        rule: u16,
        f: &Flow,
        (anchor, is_earlier): (&Anchor, bool),
    ) {
        let known = change.new.known();
        let span = match anchor {
            Anchor::Line(span) => span.clone(),
            Anchor::File => f.sink().map_or(0..0, |s| s.start..s.end),
        };
        let line = line_around(known, span.start);
        let span = span.start.max(line.start)..span.end.min(line.end).max(span.start);
        let lines = change
            .new
            .line_number(span.start)
            .filter(|_| *anchor != Anchor::File);
        let more = f
            .sink()
            .map_or(0, |s| further_lines(known, span.start..s.end));
        let lines = lines.map(|n| LineSpan {
            first: n,
            last: n.plus(more),
            columns: Some(columns(&line, &span)),
        });
        let shown = quoted(&line, &span);
        let wide =
            shown.start.saturating_sub(MARGIN).max(line.start)..(shown.end + MARGIN).min(line.end);
        let flow: Vec<FlowStep> = f
            .steps
            .iter()
            .filter_map(|s| self.step(change, s))
            .collect();
        let is_call = matches!(f.subject, FlowSubject::Rule(_));
        let origin = match f.proof {
            Proof::Local | Proof::Request if f.confidence == flow::FlowCertainty::Low => {
                ValueOrigin::Doubtful
            }
            _ if is_call => ValueOrigin::Outside,
            Proof::Request
                if weight::is_of_caller_in_php(f, self.file.path().as_bytes(), known) =>
            {
                ValueOrigin::Caller
            }
            Proof::Request => ValueOrigin::Outside,
            Proof::Local if weight::is_of_caller(f, self.reporter.languages(), known) => {
                ValueOrigin::Caller
            }
            Proof::Local => ValueOrigin::Local,
            Proof::Unknown => ValueOrigin::Unknown,
        };
        let own = f
            .texts
            .title
            .unwrap_or(&self.reporter.rules.rule(rule).title);
        let title = title(own, origin).or(f.texts.title.map(str::to_owned));
        let mut detail = match origin {
            _ if is_call => f.sink_label.to_owned(),
            _ if f.source_label.is_empty() => String::new(),
            ValueOrigin::Unknown => String::new(),
            _ => format!("from {} to {}", f.source_label, f.sink_label),
        };
        let sink = f.sink().filter(|s| !(s.start..s.end).contains(&span.start));
        if let Some(n) = sink.and_then(|s| change.new.line_number(s.start))
            && lines.is_none_or(|l| l.first != n)
            && !is_call
        {
            detail = if detail.is_empty() {
                format!("reaches {} on line {n}", f.sink_label)
            } else {
                format!("{detail} on line {n}")
            };
        }
        if *anchor == Anchor::File {
            let more = "the change removes a protection";
            detail = if detail.is_empty() {
                more.to_owned()
            } else {
                format!("{detail}; {more}")
            };
        }
        let stated = f
            .texts
            .message
            .unwrap_or(&self.reporter.rules.rule(rule).message);
        let message = match origin {
            // The other sentences are about an attacker.
            ValueOrigin::Caller => Some(first_sentence(stated)),
            _ => f.texts.message,
        };
        let path = self.file.path().as_bytes();
        let is_tool = f.proof != Proof::Request && TOOLS.iter().any(|g| glob::matches(g, path));
        let in_doubt = is_tool || self.in_doubt(rule);
        let is_chosen = self.is_chosen_flow(rule, f, known);
        let languages = self.reporter.languages();
        let of_type = content_type::severity(f, languages, &mut self.conditions, (path, known));
        let is_known = is_earlier
            && report::weigh(self.reporter.rules, rule, in_doubt, origin) < Severity::Critical;
        if is_known {
            let separator = if detail.is_empty() { "" } else { "; " };
            detail = format!("{detail}{separator}{EARLIER}");
        }
        let sighting = Sighting {
            file: Some(self.file.path()),
            lines,
            quote: &known[wide.clone()],
            shown: Some((
                shown.start - wide.start,
                shown.end.min(wide.end) - wide.start,
            )),
            detail: (!detail.is_empty()).then_some(detail.as_str()),
            in_doubt,
            origin,
            flow: if is_call { &[] } else { &flow },
            cwe: f.cwe,
            confidence_max: Some(confidence(f)),
            title: title.as_deref(),
            message,
            suggestion: f.texts.suggestion,
            severity_max: [
                f.texts.severity_max,
                weight::severity_by_origin(
                    f,
                    origin,
                    (self.reporter.languages(), self.reporter.rules.profile),
                    known,
                ),
                is_known.then_some(Severity::Suggestion),
                weight::severity_by_gain(f, known),
                weight::severity_of_referrer(f, known),
                response::severity(f, self.reporter.languages(), known),
                sniffed::severity(f, self.reporter.languages(), known),
                is_chosen.then_some(Severity::Suggestion),
                of_type,
            ]
            .into_iter()
            .flatten()
            .min(),
            ..Sighting::default()
        };
        self.reporter.report_index(rule, sighting);
    }

    /// Returns true if a condition around a call leaves the choice to the settings of the program.
    fn is_chosen_flow(&mut self, rule: u16, f: &Flow, text: &[u8]) -> bool {
        let (Some(sink), Some(compiled)) = (f.sink(), self.reporter.rules.compiled(rule)) else {
            return false;
        };
        let path = self.file.path().as_bytes();
        self.conditions.is_chosen(compiled, path, text, sink.start)
    }

    /// Returns a step as reports show it.
    fn step(&self, change: &TextChange, step: &PathStep) -> Option<FlowStep> {
        let known = change.new.known();
        let end = step.end.min(step.start + STEP_READ);
        let masked = self.reporter.masked(known.get(step.start..end)?);
        let text = String::from_utf8_lossy(&masked);
        let mut quote = one_line(&text);
        if quote.len() > STEP_MAX || end < step.end {
            quote.truncate(quote.floor_char_boundary(STEP_MAX - "\u{2026}".len()));
            quote.push('\u{2026}');
        }
        let role = match step.role {
            StepRole::Source => FlowRole::Source,
            StepRole::Through => FlowRole::Through,
            StepRole::Sink => FlowRole::Sink,
        };
        Some(FlowStep {
            line: change.new.line_number(step.start)?,
            role,
            quote,
        })
    }
}

/// Returns the rank of a flow among several flows to one line: the best proof comes first, then the
/// shortest path.
fn rank(f: &Flow) -> (Proof, Confidence, Reverse<usize>) {
    (f.proof, confidence(f), Reverse(f.steps.len()))
}

fn confidence(f: &Flow) -> Confidence {
    match f.confidence {
        flow::FlowCertainty::Low => Confidence::Low,
        flow::FlowCertainty::Medium => Confidence::Medium,
        flow::FlowCertainty::High => Confidence::High,
    }
}

/// Returns the language whose grammar reads the file. `None`: no grammar does.
pub(in crate::rules) fn language_of(path: &[u8], languages: Languages) -> Option<FlowLanguage> {
    const BY_NAME: &[(&str, FlowLanguage)] = &[
        ("python", FlowLanguage::Python),
        ("typescript", FlowLanguage::TypeScript),
        ("javascript", FlowLanguage::JavaScript),
        ("java", FlowLanguage::Java),
        ("kotlin", FlowLanguage::Kotlin),
        ("go", FlowLanguage::Go),
        ("php", FlowLanguage::Php),
        ("ruby", FlowLanguage::Ruby),
        ("csharp", FlowLanguage::CSharp),
        ("cpp", FlowLanguage::Cpp),
        ("c", FlowLanguage::C),
    ];
    if languages.is_empty() || languages.any_of(&["notebook"]) {
        return None;
    }
    // Templates mix two languages. Of the templates, only the scripts of Vue and Svelte are read.
    if languages.any_of(&["html"]) && !languages.any_of(&["vue", "php"]) {
        return None;
    }
    let language = BY_NAME
        .iter()
        .find(|(name, _)| languages.any_of(&[*name]))
        .map(|(_, l)| *l)?;
    let is_tsx =
        language == FlowLanguage::TypeScript && path.to_ascii_lowercase().ends_with(b".tsx");
    Some(if is_tsx { FlowLanguage::Tsx } else { language })
}

/// Returns true if the change can complete a flow: it adds a sink or a call of interest, the file
/// has a source and a sink between which any changed line can be a step, or the change removes a
/// sanitizer in a file that has a sink.
fn is_worth_parsing(language: FlowLanguage, change: &TextChange) -> bool {
    // The analysis ends at once in such a file, with a note where the change has the name of a
    // sink.
    if !parse::is_bounded(change.new.known()) {
        return change
            .added()
            .any(|block| flow::has_sink(language, block.text));
    }
    let (mut size, new) = (0, Trigger::new(language, change.new.known()));
    for block in change.added() {
        size += block.text.len();
        if new.may_match(block.text) {
            return true;
        }
    }
    if size == change.new.size() {
        return false;
    }
    let old = Trigger::new(language, change.old.known());
    new.may_flow()
        || change.removed().any(|b| old.has_protection_in(b.text)) && new.may_match_file()
}

/// Returns the text that the grammar reads, and how many bytes of the file precede it.
fn readable(languages: Languages, text: &[u8]) -> (Cow<'_, [u8]>, usize) {
    let base = if text.starts_with(MARK) {
        MARK.len()
    } else {
        0
    };
    let text = with_line_feeds(&text[base..]);
    if languages.any_of(&["vue"]) {
        (Cow::Owned(scripts(&text)), base)
    } else {
        (text, base)
    }
}

/// Returns a page with everything but its scripts replaced by blanks, byte for byte.
fn scripts(page: &[u8]) -> Vec<u8> {
    let mut out: Vec<u8> = page
        .iter()
        .map(|b| if *b == b'\n' { b'\n' } else { b' ' })
        .collect();
    let mut from = 0;
    while let Some(open) = memchr::memmem::find(&page[from..], b"<script").map(|i| from + i) {
        let Some(start) = memchr::memchr(b'>', &page[open..]).map(|i| open + i + 1) else {
            break;
        };
        let end =
            memchr::memmem::find(&page[start..], b"</script").map_or(page.len(), |i| start + i);
        out[start..end].copy_from_slice(&page[start..end]);
        from = end;
    }
    out
}

/// Returns ranges that start some bytes earlier.
fn moved_back(ranges: &[Range<usize>], by: usize) -> Vec<Range<usize>> {
    ranges
        .iter()
        .map(|range| range.start.saturating_sub(by)..range.end.saturating_sub(by))
        .collect()
}

fn shift(flows: &mut [Flow], by: usize) {
    for step in flows.iter_mut().flat_map(|f| &mut f.steps) {
        step.start += by;
        step.end += by;
    }
}

/// Returns the ranges of the added lines, in bytes of the new text, in order.
fn added(change: &TextChange) -> Vec<Range<usize>> {
    let start = change.new.known().as_ptr() as usize;
    let lines = change.added().map(|b| address(b.text.as_ptr_range()));
    lines
        .map(|r| r.start.wrapping_sub(start)..r.end.wrapping_sub(start))
        .collect()
}

/// Returns the position at which a flow with a step on an added line is reported: its sink, or else
/// its last added step.
fn anchor(added: &[Range<usize>], change: &TextChange, f: &Flow) -> Option<Anchor> {
    let size = change.new.size();
    let mut steps = f.steps.iter().rev().filter(|s| s.end <= size);
    steps.find_map(|s| s.added_part(added)).map(Anchor::Line)
}

/// Returns the added lines between the first step and the sink that are nearest to the sink.
fn anchor_between(added: &[Range<usize>], f: &Flow) -> Anchor {
    let (Some(first), Some(sink)) = (f.steps.iter().map(|s| s.start).min(), f.sink()) else {
        return Anchor::File;
    };
    let before = added.partition_point(|b| b.end <= sink.start);
    let block = before
        .checked_sub(1)
        .and_then(|i| added.get(i))
        .filter(|b| b.start > first);
    block.map_or(Anchor::File, |b| Anchor::Line(b.clone()))
}

/// Returns the number of lines that a call covers after its first line, because a reader sees one
/// statement. Returns 0 if the call is too long.
fn further_lines(text: &[u8], call: Range<usize>) -> u32 {
    const MOST: usize = 8;
    let count = text
        .get(call)
        .map_or(0, |call| memchr::memchr_iter(b'\n', call).count());
    if count < MOST {
        u32::try_from(count).unwrap_or(0)
    } else {
        0
    }
}

/// Returns the line that contains a byte, without its line end.
pub(super) fn line_around(text: &[u8], at: usize) -> Range<usize> {
    let at = at.min(text.len());
    let start = memchr::memrchr2(b'\n', b'\r', &text[..at]).map_or(0, |i| i + 1);
    let end = memchr::memchr2(b'\n', b'\r', &text[at..]).map_or(text.len(), |i| at + i);
    start..end
}

/// Returns the words of the tables that a rule reports.
pub(in crate::rules) fn words_of(id: &str) -> impl Iterator<Item = &'static str> + use<'_> {
    RULES
        .iter()
        .chain(CALLS)
        .filter(move |(_, rule)| *rule == id)
        .map(|(word, _)| *word)
}

/// Returns the rules that report flows.
#[cfg(test)]
pub(in crate::rules) fn catalogue() -> impl Iterator<Item = &'static crate::rules::catalog::Rule> {
    crate::rules::catalog::RULES
        .iter()
        .filter(|r| r.matcher == Matcher::Flow)
}

#[cfg(test)]
mod tests;
