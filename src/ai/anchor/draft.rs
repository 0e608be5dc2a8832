//! Drafts a finding from a claim and its position in the change.

use super::cite::{self, Citation};
use super::lines::ChunkLines;
use super::path::{self, ChangedPaths};
use super::place::{self, ClaimPosition, StatedPosition};
use super::quote::Quote;
use super::replace::{self, Target};
use super::tied::{self, Relation};
use super::{Anchored, ClaimCandidate, Context, Quoted, also, seal, text};
use crate::ai::claim::{Claim, RequirementClaim, ViolationClaim};
use crate::ai::material::{Document, Shown};
use crate::diff::{LineNo, TextChange};
use crate::finding::{self, Also, Category, Draft, Evidence, LineSpan, Location, Severity};
use crate::rules::RuleSet;
use std::collections::HashMap;

/// Characters of a quote, at most.
const QUOTE: usize = 400;
/// Line numbers that a note lists, at most.
const LISTED: usize = 8;

/// Anchors the claims of one reply.
#[derive(Debug)]
pub(super) struct Drafter<'a> {
    cx: Context<'a>,
    names: ChangedPaths<'a>,
    /// Lines of the chunk.
    lines: ChunkLines<'a>,
    /// Lines of the chunk plus those of another file of the group that a claim names, by the
    /// position of that file.
    further: HashMap<usize, ChunkLines<'a>>,
    budget: also::Budget,
}

/// A design violation or a missing requirement.
#[derive(Debug)]
pub(super) struct Documented<'c> {
    category: Category,
    severity: &'c str,
    title: &'c str,
    message: &'c str,
    suggestion: Option<&'c str>,
    reference: Option<&'c str>,
}

impl<'c> Documented<'c> {
    pub(super) fn of_violation(v: &'c ViolationClaim) -> Self {
        Self {
            category: Category::Architecture,
            severity: &v.impact,
            title: &v.issue,
            message: &v.description,
            suggestion: v.recommendation.as_deref(),
            reference: v.reference.as_deref(),
        }
    }

    pub(super) fn of_missing(m: &'c RequirementClaim) -> Self {
        Self {
            category: Category::MissingRequirement,
            severity: &m.severity,
            title: "",
            message: &m.requirement,
            suggestion: None,
            reference: m.reference.as_deref(),
        }
    }
}

impl<'a> Drafter<'a> {
    pub(super) fn new(cx: Context<'a>) -> Self {
        let names = ChangedPaths::new(&cx.group.files);
        Self {
            cx,
            names,
            lines: ChunkLines::new(cx.group, cx.chunk, None),
            further: HashMap::new(),
            budget: also::Budget::default(),
        }
    }

    /// Anchors one claim.
    pub(super) fn anchor(&mut self, claim: &Claim) -> Anchored {
        let rules = self.cx.rules;
        let title = text::title(rules, &claim.title, &claim.message);
        if title.is_empty() {
            return Anchored::Dropped {
                claim: String::new(),
                why: "it says nothing",
            };
        }
        let said_file = claim
            .file
            .as_deref()
            .map(str::trim)
            .filter(|f| !is_nothing(f));
        let (file, line_in_path) = match said_file {
            None => (None, None),
            Some(named) => match self.names.find(named) {
                Some(found) => (Some(found), path::strip_number(named).1),
                None => {
                    if let Some(candidate) = self.tied(claim, &title, named) {
                        return Anchored::Candidate(Box::new(candidate));
                    }
                    let line = claim.line.map(|n| format!(":{n}")).unwrap_or_default();
                    let about = format!(
                        "about `{}{line}`, which is not part of the change: ",
                        text::cut(named, 200)
                    );
                    let text = remark(rules, &format!("{about}{title}"), claim);
                    return Anchored::Remark {
                        file: None,
                        line: None,
                        text,
                    };
                }
            },
        };
        let line = line_number(claim.line).or(line_in_path);
        let quote = claim.quote.as_deref().and_then(Quote::new);
        let said = StatedPosition {
            file,
            line,
            further: line_number(claim.end_line)
                .zip(line)
                .map_or(0, |(end, first)| end.saturating_sub(first)),
            quote: quote.as_ref(),
            was_read: file
                .zip(line.and_then(LineNo::new))
                .is_some_and(|(file, n)| {
                    tied::was_read(&self.cx, self.cx.group.files[file].path(), n)
                }),
        };
        let place = place::find(self.lines_with(file), said);
        if let ClaimPosition::Unchanged { file, .. } = &place
            && let Some(candidate) =
                self.tied(claim, &title, &self.cx.group.files[*file].path().to_wire())
        {
            return Anchored::Candidate(Box::new(candidate));
        }
        let place = place::or_numbered(self.lines_with(file), said, place);
        match place {
            ClaimPosition::Nowhere(why) => {
                let named = said_file
                    .map(|f| format!("{}: ", text::cut(f, 200)))
                    .unwrap_or_default();
                Anchored::Dropped {
                    claim: text::clean(rules, &format!("{named}{title}"), text::TITLE),
                    why,
                }
            }
            ClaimPosition::Unchanged { file, line } => {
                let path = self.cx.group.files[file].path().clone();
                Anchored::Remark {
                    file: Some(path),
                    line,
                    text: remark(rules, &title, claim),
                }
            }
            _ => Anchored::Candidate(Box::new(self.candidate(claim, title, &place, said, None))),
        }
    }

    /// Anchors a claim about an unchanged line to the changed line that it depends on. Returns
    /// `None` if the file does not contain the quote, the model did not see the line, or nothing
    /// connects it to the change.
    fn tied(&mut self, claim: &Claim, title: &str, named: &str) -> Option<ClaimCandidate> {
        let cx = self.cx;
        let number = claim
            .line
            .and_then(|n| u32::try_from(n).ok())
            .or(path::strip_number(named).1);
        let quote = claim
            .quote
            .as_deref()
            .and_then(Quote::new)
            .filter(Quote::is_telling)?;
        let unchanged = also::find(&cx, &mut self.budget, named, number, &quote)?;
        let relation: Relation = tied::relation(&cx, &unchanged)?;
        let lines = self.lines_with(Some(relation.file));
        let (entry, quoted) = tied::changed_line(lines, &relation, &unchanged)?;
        let place = match lines.entries[entry].number() {
            Some(_) => ClaimPosition::Changed {
                first: entry,
                last: entry,
                quoted,
            },
            None => ClaimPosition::Removed {
                entry,
                at: lines.stand_in(entry),
                quoted,
            },
        };
        // The lines, columns and code of the claim refer to the unchanged line.
        let said = StatedPosition {
            file: Some(relation.file),
            line: None,
            further: 0,
            quote: None,
            was_read: false,
        };
        let claim = Claim {
            replacement: None,
            ..claim.clone()
        };
        Some(self.candidate(&claim, title.to_owned(), &place, said, Some(unchanged)))
    }

    /// Returns a candidate if the citation exists in a document, and a remark otherwise.
    pub(super) fn documented(&self, said: &Documented<'_>) -> Anchored {
        let rules = self.cx.rules;
        let title = text::title(rules, said.title, said.message);
        if title.is_empty() {
            return Anchored::Dropped {
                claim: String::new(),
                why: "it says nothing",
            };
        }
        let reference = said.reference.unwrap_or_default();
        let Some(place) = cited(&self.cx, reference, &[said.message], None) else {
            let why = match reference.trim() {
                "" => "cites no document: ".to_owned(),
                cites => format!(
                    "cites `{}`, which is not in the documents: ",
                    text::cut(cites, 200)
                ),
            };
            let all = [&why, &title, ": ", said.message.trim()].concat();
            return Anchored::Remark {
                file: None,
                line: None,
                text: text::clean(rules, &all, text::REMARK),
            };
        };
        let (severity, note) = severity(said.severity);
        // An existing heading is a verified citation, with or without a quote from it.
        let quoted = Quoted::Exactly;
        let draft = Draft {
            rule_id: rule_id(said.category),
            location: None,
            also: Vec::new(),
            flow: Vec::new(),
            severity,
            category: said.category,
            message: text::some(rules, Some(said.message), text::BODY)
                .unwrap_or_else(|| title.clone()),
            title,
            failure: None,
            suggestion: text::some(rules, said.suggestion, text::BODY),
            replacement: None,
            // The claim quotes no line of the change, so the cited section distinguishes one
            // finding from another.
            quote: place.label.clone(),
            cwe: None,
            convention: Some(place.label),
            references: Vec::new(),
        };
        Anchored::Candidate(Box::new(self.of_draft(
            draft,
            quoted,
            note.into_iter().collect(),
        )))
    }

    fn of_draft(&self, draft: Draft, quoted: Quoted, notes: Vec<String>) -> ClaimCandidate {
        let evidence = self.read(draft.location.as_ref());
        ClaimCandidate {
            draft,
            group: self.cx.chunk.group,
            commit: self.cx.group.commit,
            backend: self.cx.backend.to_owned(),
            quoted,
            evidence,
            disputed: None,
            reproduction: None,
            notes,
        }
    }

    /// Returns the tool call that read the first line of the location with the smallest range.
    fn read(&self, location: Option<&Location>) -> Vec<Evidence> {
        let Some((path, lines)) = location.and_then(|l| Some((&l.file, l.lines?))) else {
            return Vec::new();
        };
        let of_file = self.cx.read.iter().filter(|r| r.path == *path);
        let covering = of_file.filter(|r| (r.first..=r.last).contains(&lines.first));
        let closest = covering.min_by_key(|r| (r.last.get() - r.first.get(), r.first));
        let evidence = closest.map(|r| Evidence::Read {
            path: r.path.clone(),
            first: r.first,
            last: r.last,
        });
        evidence.into_iter().collect()
    }

    fn lines_with(&mut self, file: Option<usize>) -> &ChunkLines<'a> {
        let Some(file) = file.filter(|f| !self.cx.chunk.pieces.iter().any(|p| p.file == *f)) else {
            return &self.lines;
        };
        let cx = self.cx;
        self.further
            .entry(file)
            .or_insert_with(|| ChunkLines::new(cx.group, cx.chunk, Some(file)))
    }

    /// Builds a candidate from an anchored claim. `unchanged` is the unchanged line that the claim
    /// is about, if any.
    fn candidate(
        &mut self,
        claim: &Claim,
        title: String,
        place: &ClaimPosition,
        said: StatedPosition<'_>,
        unchanged: Option<also::SentLine>,
    ) -> ClaimCandidate {
        let cx = self.cx;
        let rules = cx.rules;
        let lines = self.lines_with(said.file);
        let (mut severity, note) = severity(&claim.severity);
        let mut notes: Vec<String> = note.into_iter().collect();
        let (category, note) = category(&claim.category);
        notes.extend(note);
        notes.extend(
            claim
                .notes
                .iter()
                .map(|n| text::clean(rules, n, text::TITLE)),
        );
        let mut at = DraftPosition::new(lines, place, said);
        notes.append(&mut at.notes);
        let mut message =
            text::some(rules, Some(&claim.message), text::BODY).unwrap_or_else(|| title.clone());
        if let Some(line) = &unchanged {
            // A path can contain a secret, and the message is sent back to a model.
            let place = format!(
                "{}:{}",
                text::clean(rules, &line.file.to_wire(), text::TITLE),
                line.number
            );
            message = format!(
                "{message}\n\nThis is about unchanged code at {place}, which the change affects."
            );
        }
        if let Some(more) = at.more {
            message = format!("{message}\n\n{more}");
        }
        let mut suggestion = text::some(rules, claim.suggestion.as_deref(), text::BODY);
        let given = claim.replacement.as_deref().filter(|r| !r.is_empty());
        let target = at.target.filter(|_| {
            said.further > 0 || claim.end_line.is_none() || claim.end_line == claim.line
        });
        let replacement = given.and_then(|r| replace::applicable(rules, lines, target?, r));
        if let (None, Some(code)) = (&replacement, text::some(rules, given, text::BODY)) {
            // The code cannot replace the lines, but it can still explain the fix.
            suggestion =
                Some(suggestion.map_or_else(|| code.clone(), |s| format!("{s}\n\n{code}")));
        }
        let convention = match claim
            .convention
            .as_deref()
            .map(str::trim)
            .filter(|c| !is_nothing(c))
        {
            None => None,
            Some(said) => {
                let found = cited(&cx, said, &[&claim.message], at.file);
                if !found.as_ref().is_some_and(|c| c.quoted) {
                    severity = lower(severity);
                    notes.push(match &found {
                        Some(c) => format!("cites {} without a quote from it; one severity lower", c.label),
                        None => {
                            let said = text::clean(rules, said, text::TITLE);
                            format!("cites `{said}`, which is not in the conventions; one severity lower")
                        }
                    });
                }
                found.map(|c| c.label)
            }
        };
        let cwe = claim
            .cwe
            .and_then(|n| u32::try_from(n).ok())
            .filter(|n| *n > 0);
        let doubts = seal::speaks_of_a_false_alarm(&claim.title, &claim.message);
        if category == Category::Security && cwe.is_none() && !doubts {
            // Without the number the weakness cannot be looked up, and omitting it must not lower
            // the severity. A claim that calls a rule's finding a false positive is not about a
            // weakness.
            severity = severity.max(Severity::Major);
            notes.push("security claim without a CWE number; at least major".to_owned());
        }
        let also = {
            let own = at
                .location
                .as_ref()
                .and_then(|l| Some((&l.file, l.lines?.first)));
            let mut also: Vec<Also> = unchanged.map(also::SentLine::also).into_iter().collect();
            finding::add_places(
                &mut also,
                &also::checked(&cx, &mut self.budget, &claim.also, own),
            );
            also
        };
        let draft = Draft {
            rule_id: rule_id(category),
            location: at.location,
            also,
            flow: Vec::new(),
            severity,
            category,
            title,
            message,
            failure: text::some(rules, claim.failure.as_deref(), text::BODY),
            suggestion,
            replacement,
            quote: text::cut(at.quote, QUOTE),
            cwe,
            convention,
            references: Vec::new(),
        };
        self.of_draft(draft, at.quoted, notes)
    }
}

/// A position in the change, in the terms of a finding.
#[derive(Debug)]
struct DraftPosition<'a> {
    file: Option<&'a Shown>,
    location: Option<Location>,
    quoted: Quoted,
    /// The line, in the form that the model received.
    quote: &'a str,
    /// Lines that a replacement replaces.
    target: Option<Target>,
    /// Text that is appended to the message.
    more: Option<String>,
    notes: Vec<String>,
}

impl<'a> DraftPosition<'a> {
    fn new(lines: &ChunkLines<'a>, place: &ClaimPosition, said: StatedPosition<'_>) -> Self {
        let mut at = Self {
            file: None,
            location: None,
            quoted: Quoted::Loosely,
            quote: "",
            target: None,
            more: None,
            notes: Vec::new(),
        };
        match place {
            ClaimPosition::Changed {
                first,
                last,
                quoted,
            } => {
                let entry = lines.entries[*first];
                at.set_file(lines.file(entry.file), span(lines, *first, *last, said));
                at.quoted = *quoted;
                at.quote = entry.text;
                let from = entry.number().unwrap_or_default();
                let to = lines.entries[*last].number().unwrap_or_default();
                let as_named = to.saturating_sub(from) == said.further;
                let sure = *quoted >= Quoted::AsNumbered && as_named;
                at.target = sure.then_some(Target {
                    first: *first,
                    last: *last,
                });
                if said.file.is_some_and(|f| f != entry.file) {
                    at.notes.push(
                        "the reply names another file than the one that has the quote".to_owned(),
                    );
                }
            }
            ClaimPosition::Removed {
                entry,
                at: stand_in,
                quoted,
            } => {
                let removed = lines.entries[*entry];
                let line = stand_in.and_then(|i| lines.entries[i].shown.new);
                let line = line.map(|n| LineSpan {
                    first: n,
                    last: n,
                    columns: None,
                });
                at.set_file(lines.file(removed.file), line);
                at.quoted = *quoted;
                at.quote = removed.text;
                let old = removed.old().map(|n| format!(" {n}")).unwrap_or_default();
                at.more = Some(format!(
                    "This is about the deleted line{old}; shown is the nearest one that is left."
                ));
            }
            ClaimPosition::OneOf(alike) => {
                if let Some(first) = alike.first().map(|i| lines.entries[*i]) {
                    at.set_file(lines.file(first.file), None);
                    at.quote = first.text;
                }
                let numbers = alike.iter().filter_map(|i| lines.entries[*i].number());
                let listed: Vec<String> = numbers.take(LISTED).map(|n| n.to_string()).collect();
                let more = if alike.len() > LISTED { ", …" } else { "" };
                at.more = Some(format!(
                    "The quoted line occurs in several places: {}{more}.",
                    listed.join(", ")
                ));
            }
            ClaimPosition::File(file) => at.set_file(lines.file(*file), None),
            ClaimPosition::Change | ClaimPosition::Unchanged { .. } | ClaimPosition::Nowhere(_) => {
            }
        }
        at
    }

    fn set_file(&mut self, file: &'a Shown, lines: Option<LineSpan>) {
        self.file = Some(file);
        self.location = Some(Location {
            file: file.path().clone(),
            lines,
        });
    }
}

/// Returns the text of a remark: its subject and the message of the claim.
fn remark(rules: &RuleSet, subject: &str, claim: &Claim) -> String {
    let said = [subject, ": ", claim.message.trim()].concat();
    text::clean(rules, said.trim_end_matches([':', ' ']), text::REMARK)
}

/// Returns a number of a claim as a line number. Returns `None` if it cannot be one.
fn line_number(n: Option<i64>) -> Option<u32> {
    u32::try_from(n?).ok().filter(|n| *n > 0)
}

/// Returns the line range of a position, and the columns of the quote if it is one line.
fn span(
    lines: &ChunkLines<'_>,
    first: usize,
    last: usize,
    said: StatedPosition<'_>,
) -> Option<LineSpan> {
    let (first, last) = (&lines.entries[first], &lines.entries[last]);
    let (from, to) = (first.shown.new?, last.shown.new?);
    let change = lines.file(first.file).change.text().filter(|_| from == to);
    let columns = change
        .zip(said.quote)
        .and_then(|(change, quote)| columns(change, from, first.text, quote));
    Some(LineSpan {
        first: from,
        last: to,
        columns,
    })
}

/// Returns the columns of a quote in a line. Returns `None` if the model received other text for
/// the line, or the quote occurs in it twice.
fn columns(change: &TextChange, line: LineNo, shown: &str, quote: &Quote) -> Option<(u32, u32)> {
    let raw = std::str::from_utf8(change.new.line(line)?).ok()?;
    if raw.trim() != shown {
        return None;
    }
    let quoted = quote.only_line()?;
    let start = raw.find(quoted)?;
    if raw.rfind(quoted) != Some(start) {
        return None;
    }
    Some((
        u32::try_from(start).ok()?,
        u32::try_from(start + quoted.len()).ok()?,
    ))
}

/// Resolves a citation in all documents that the model received.
pub(super) fn cited(
    cx: &Context<'_>,
    reference: &str,
    said: &[&str],
    file: Option<&Shown>,
) -> Option<Citation> {
    if is_nothing(reference.trim()) {
        return None;
    }
    let guidelines = file
        .map(|f| f.guidelines.join("\n"))
        .filter(|g| !g.is_empty());
    let guidelines = guidelines.map(|text| Document {
        name: "guidelines".to_owned(),
        text,
        folder: Vec::new(),
    });
    let all = cx
        .conventions
        .iter()
        .chain(cx.documents)
        .chain(guidelines.as_ref());
    // If a ticket is named, only a quote from that ticket counts, so that another ticket cannot
    // support the claim. A heading alone is not a citation of a ticket.
    if let Some(ticket) = cx.tickets.iter().find(|t| cite::names(reference, t)) {
        return cite::find(reference, said, std::iter::once(ticket)).filter(|c| c.quoted);
    }
    cite::find(reference, said, all).or_else(|| {
        let found = cite::find(reference, said, cx.tickets.iter()).filter(|c| c.quoted);
        found.filter(|_| !cite::names_a_ticket(reference))
    })
}

/// Parses a severity. An unknown severity counts as major.
pub(super) fn severity(said: &str) -> (Severity, Option<String>) {
    match (Severity::parse(said), said.trim()) {
        (Some(severity), _) => (severity, None),
        (None, "") => (
            Severity::Major,
            Some("names no severity; taken as major".to_owned()),
        ),
        (None, said) => (
            Severity::Major,
            Some(format!(
                "severity `{}` is unknown; taken as major",
                text::cut(said, 40)
            )),
        ),
    }
}

/// Parses a category, including synonyms that models use.
fn category(said: &str) -> (Category, Option<String>) {
    let word = said.trim().to_ascii_lowercase().replace(['_', ' '], "-");
    let known = Category::parse(said).or(match word.as_str() {
        "" | "correctness" | "logic" | "logic-error" | "reliability" | "concurrency"
        | "error-handling" | "robustness" | "error" | "functionality" | "data-loss"
        | "resource-leak" => Some(Category::Bug),
        "vulnerability" | "vulnerabilities" | "injection" | "privacy" | "secret" | "secrets" => {
            Some(Category::Security)
        }
        "maintainability" | "readability" | "naming" | "formatting" | "documentation"
        | "convention" | "conventions" => Some(Category::Style),
        "efficiency" => Some(Category::Performance),
        "testing" | "test-coverage" => Some(Category::Test),
        "practice" | "code-quality" | "quality" => Some(Category::BestPractice),
        _ => None,
    });
    match known {
        Some(category) => (category, None),
        None => (
            Category::Bug,
            Some(format!(
                "category `{}` is unknown; taken as bug",
                text::cut(&word, 40)
            )),
        ),
    }
}

/// Returns the next lower severity.
fn lower(severity: Severity) -> Severity {
    match severity {
        Severity::Critical => Severity::Major,
        Severity::Major => Severity::Minor,
        Severity::Minor | Severity::Suggestion => Severity::Suggestion,
    }
}

/// Returns the rule ID of model findings of a category.
fn rule_id(category: Category) -> String {
    format!("ai-{category}")
}

/// Returns true if a text is a placeholder for an empty value.
fn is_nothing(text: &str) -> bool {
    matches!(
        text.to_ascii_lowercase().as_str(),
        "" | "null" | "none" | "n/a" | "-"
    )
}
