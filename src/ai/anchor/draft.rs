//! Drafts a finding from a claim and its position in the change.

use super::cite::{self, Citation};
use super::lines::{ChunkLines, EntryRange};
use super::path::{self, ChangedPaths};
use super::position::{self, ClaimPosition, StatedPosition};
use super::quote::Quote;
use super::rating::{Rating, severity};
use super::replace;
use super::tied::{self, Relation};
use super::{Anchored, ClaimCandidate, Context, PositionCertainty, also, text};
use crate::ai::claim::{Claim, RequirementClaim, ViolationClaim};
use crate::ai::material::{Document, Shown};
use crate::diff::{LineNo, TextChange};
use crate::finding::{self, Also, Category, Draft, Evidence, LineSpan, Location};
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
        let title = text::title(self.cx.rules, &claim.title, &claim.message);
        if title.is_empty() {
            return Anchored::Dropped {
                claim: String::new(),
                why: "it says nothing",
            };
        }
        let named = claim.file.as_deref().map(str::trim);
        let named = named.filter(|name| !text::is_nothing(name));
        let file = named.and_then(|name| self.names.find(name));
        let quote = claim.quote.as_deref().and_then(Quote::new);
        let stated = self.stated(claim, named, file, quote.as_ref());
        if let (Some(name), None) = (named, file) {
            return self.outside_of_the_change(claim, &title, name, stated);
        }
        let position = position::find(self.lines_with(file), stated);
        if let ClaimPosition::Unchanged { file, .. } = &position {
            let path = self.cx.group.files[*file].path().to_wire();
            if let Some(candidate) = self.tied(claim, &title, &path, stated) {
                return Anchored::Candidate(Box::new(candidate));
            }
        }
        match position::or_numbered(self.lines_with(file), stated, position) {
            ClaimPosition::Nowhere(why) => {
                let file =
                    named.map_or(String::new(), |name| format!("{}: ", text::cut(name, 200)));
                Anchored::Dropped {
                    claim: text::clean(self.cx.rules, &format!("{file}{title}"), text::TITLE),
                    why,
                }
            }
            ClaimPosition::Unchanged { file, line } => Anchored::Remark {
                file: Some(self.cx.group.files[file].path().clone()),
                line,
                text: remark(self.cx.rules, &title, claim),
            },
            position => {
                let candidate = self.candidate(claim, title, &position, stated, None);
                Anchored::Candidate(Box::new(candidate))
            }
        }
    }

    /// Returns the position that a claim states. The line can also be part of the file name, as in
    /// `src/a.rs:12`.
    fn stated<'q>(
        &self,
        claim: &Claim,
        named: Option<&str>,
        file: Option<usize>,
        quote: Option<&'q Quote>,
    ) -> StatedPosition<'q> {
        let line = path::stated_line(claim.line, named.unwrap_or_default());
        let last = path::line_number(claim.end_line).zip(line);
        let numbered = file.zip(line.and_then(LineNo::new));
        StatedPosition {
            file,
            line,
            further: last.map_or(0, |(end, first)| end.saturating_sub(first)),
            quote,
            was_read: numbered.is_some_and(|(file, n)| {
                tied::was_read(&self.cx, self.cx.group.files[file].path(), n)
            }),
        }
    }

    /// Anchors a claim about a file that is not part of the change: to the changed line that its
    /// line depends on, or as a remark.
    fn outside_of_the_change(
        &mut self,
        claim: &Claim,
        title: &str,
        named: &str,
        stated: StatedPosition<'_>,
    ) -> Anchored {
        if let Some(candidate) = self.tied(claim, title, named, stated) {
            return Anchored::Candidate(Box::new(candidate));
        }
        let line = claim.line.map_or(String::new(), |n| format!(":{n}"));
        let subject = format!(
            "about `{}{line}`, which is not part of the change: {title}",
            text::cut(named, 200)
        );
        Anchored::Remark {
            file: None,
            line: None,
            text: remark(self.cx.rules, &subject, claim),
        }
    }

    /// Anchors a claim about an unchanged line to the changed line that it depends on. Returns
    /// `None` if the file does not contain the quote, the model did not see the line, or nothing
    /// connects it to the change.
    fn tied(
        &mut self,
        claim: &Claim,
        title: &str,
        named: &str,
        stated: StatedPosition<'_>,
    ) -> Option<ClaimCandidate> {
        let cx = self.cx;
        let quote = stated.quote.filter(|quote| quote.identifies_a_line())?;
        let unchanged = also::find(&cx, &mut self.budget, named, stated.line, quote)?;
        let relation: Relation = tied::relation(&cx, &unchanged)?;
        let lines = self.lines_with(Some(relation.file));
        let (entry, certainty) = tied::changed_line(lines, &relation, &unchanged)?;
        let position = match lines.entries[entry].number() {
            Some(_) => ClaimPosition::Changed {
                first: entry,
                last: entry,
                certainty,
            },
            None => ClaimPosition::Removed {
                entry,
                at: lines.stand_in(entry),
                certainty,
            },
        };
        // The line and the quote of the claim refer to the unchanged line.
        let stated = StatedPosition::of_file(relation.file);
        Some(self.candidate(claim, title.to_owned(), &position, stated, Some(unchanged)))
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
        let certainty = PositionCertainty::Certain;
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
            certainty,
            note.into_iter().collect(),
        )))
    }

    fn of_draft(
        &self,
        draft: Draft,
        certainty: PositionCertainty,
        notes: Vec<String>,
    ) -> ClaimCandidate {
        let evidence = self.read(draft.location.as_ref());
        ClaimCandidate {
            draft,
            group: self.cx.chunk.group,
            commit: self.cx.group.commit,
            backend: self.cx.backend.to_owned(),
            certainty,
            evidence,
            disputed: None,
            reproduction: None,
            notes,
        }
    }

    /// Returns the tool call with the smallest range that read the first line of the location.
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
        position: &ClaimPosition,
        stated: StatedPosition<'_>,
        unchanged: Option<also::SentLine>,
    ) -> ClaimCandidate {
        let cx = self.cx;
        let lines = self.lines_with(stated.file);
        let mut at = DraftPosition::new(lines, position, stated);
        let mut rating = Rating::of(cx.rules, claim);
        rating.notes.append(&mut at.notes);
        let convention = convention(&cx, claim, at.file, &mut rating);
        rating.raise_security(claim);
        // The code of a claim about an unchanged line cannot replace the line that is shown.
        let code = claim.replacement.as_deref();
        let code = code.filter(|code| unchanged.is_none() && !code.is_empty());
        // An invalid `end_line`, or one without a line, makes the range unknown: the code may
        // replace more lines than the first one.
        let has_range =
            stated.further > 0 || claim.end_line.is_none() || claim.end_line == claim.line;
        let replacement = code
            .zip(at.target.filter(|_| has_range))
            .and_then(|(code, target)| replace::applicable(cx.rules, lines, target, code));
        let suggestion = suggestion(&cx, claim, code.filter(|_| replacement.is_none()));
        let message = message(&cx, claim, &title, unchanged.as_ref(), at.more.as_deref());
        let draft = Draft {
            rule_id: rule_id(rating.category),
            also: self.also(claim, at.location.as_ref(), unchanged),
            location: at.location,
            flow: Vec::new(),
            severity: rating.severity,
            category: rating.category,
            title,
            message,
            failure: text::some(cx.rules, claim.failure.as_deref(), text::BODY),
            suggestion,
            replacement,
            quote: text::cut(at.quote, QUOTE),
            cwe: rating.cwe,
            convention,
            references: Vec::new(),
        };
        self.of_draft(draft, at.certainty, rating.notes)
    }

    /// Returns the further lines of a finding: the unchanged line that the claim is about, and each
    /// line that the claim states and that exists.
    fn also(
        &mut self,
        claim: &Claim,
        location: Option<&Location>,
        unchanged: Option<also::SentLine>,
    ) -> Vec<Also> {
        let own = location.and_then(|l| Some((&l.file, l.lines?.first)));
        let mut also: Vec<Also> = unchanged.map(also::SentLine::also).into_iter().collect();
        let checked = also::checked(&self.cx, &mut self.budget, &claim.also, own);
        finding::add_places(&mut also, &checked);
        also
    }
}

/// Returns the message of a finding: that of the claim, or its title, and where else it applies.
/// `more` is a sentence about the position.
fn message(
    cx: &Context<'_>,
    claim: &Claim,
    title: &str,
    unchanged: Option<&also::SentLine>,
    more: Option<&str>,
) -> String {
    let mut message =
        text::some(cx.rules, Some(&claim.message), text::BODY).unwrap_or_else(|| title.to_owned());
    if let Some(line) = unchanged {
        // A path can contain a secret, and the message is sent back to a model.
        let place = format!(
            "{}:{}",
            text::clean(cx.rules, &line.file.to_wire(), text::TITLE),
            line.number
        );
        message = format!(
            "{message}\n\nThis is about unchanged code at {place}, which the change affects."
        );
    }
    match more {
        Some(more) => format!("{message}\n\n{more}"),
        None => message,
    }
}

/// Returns the suggestion of a claim. `code` is the code that cannot replace the lines. It is
/// appended, because it can still explain the fix.
fn suggestion(cx: &Context<'_>, claim: &Claim, code: Option<&str>) -> Option<String> {
    let suggestion = text::some(cx.rules, claim.suggestion.as_deref(), text::BODY);
    match (suggestion, text::some(cx.rules, code, text::BODY)) {
        (Some(suggestion), Some(code)) => Some(format!("{suggestion}\n\n{code}")),
        (suggestion, code) => suggestion.or(code),
    }
}

/// Returns the convention that a claim cites, if it exists. A claim that cites one that does not
/// exist, or cites one without a quote from it, is rated one severity lower.
fn convention(
    cx: &Context<'_>,
    claim: &Claim,
    file: Option<&Shown>,
    rating: &mut Rating,
) -> Option<String> {
    let reference = claim.convention.as_deref().map(str::trim);
    let reference = reference.filter(|reference| !text::is_nothing(reference))?;
    let found = cited(cx, reference, &[&claim.message], file);
    match &found {
        Some(citation) if citation.quoted => {}
        Some(citation) => {
            rating.lower(&format!("cites {} without a quote from it", citation.label));
        }
        None => {
            let reference = text::clean(cx.rules, reference, text::TITLE);
            rating.lower(&format!(
                "cites `{reference}`, which is not in the conventions"
            ));
        }
    }
    found.map(|citation| citation.label)
}

/// A position in the change, in the terms of a finding.
#[derive(Debug)]
struct DraftPosition<'a> {
    file: Option<&'a Shown>,
    location: Option<Location>,
    certainty: PositionCertainty,
    /// The line, in the form that the model received.
    quote: &'a str,
    /// Lines that a replacement replaces.
    target: Option<EntryRange>,
    /// Text that is appended to the message.
    more: Option<String>,
    notes: Vec<String>,
}

impl<'a> DraftPosition<'a> {
    /// Converts a position. A position without a line has neither a quote nor a target.
    fn new(lines: &ChunkLines<'a>, position: &ClaimPosition, stated: StatedPosition<'_>) -> Self {
        let mut at = Self {
            file: None,
            location: None,
            certainty: PositionCertainty::Doubtful,
            quote: "",
            target: None,
            more: None,
            notes: Vec::new(),
        };
        match position {
            ClaimPosition::Changed {
                first,
                last,
                certainty,
            } => {
                at.certainty = *certainty;
                at.set_changed(lines, *first, *last, stated);
            }
            ClaimPosition::Removed {
                entry,
                at: stand_in,
                certainty,
            } => {
                at.certainty = *certainty;
                at.set_removed(lines, *entry, *stand_in);
            }
            ClaimPosition::OneOf(alike) => at.set_one_of(lines, alike),
            ClaimPosition::File(file) => at.set_file(lines.file(*file), None),
            ClaimPosition::Change | ClaimPosition::Unchanged { .. } | ClaimPosition::Nowhere(_) => {
            }
        }
        at
    }

    /// Sets changed lines. They can be replaced if they are those that the claim names.
    fn set_changed(
        &mut self,
        lines: &ChunkLines<'a>,
        first: usize,
        last: usize,
        stated: StatedPosition<'_>,
    ) {
        let entry = lines.entries[first];
        self.set_file(lines.file(entry.file), span(lines, first, last, stated));
        self.quote = entry.text;
        let from = entry.number().unwrap_or_default();
        let to = lines.entries[last].number().unwrap_or_default();
        let is_as_named = to.saturating_sub(from) == stated.further;
        let is_sure = self.certainty >= PositionCertainty::Likely && is_as_named;
        self.target = is_sure.then_some(EntryRange { first, last });
        if stated.file.is_some_and(|f| f != entry.file) {
            self.notes
                .push("the reply names another file than the one that has the quote".to_owned());
        }
    }

    /// Sets a removed line, which is shown at the line that represents it.
    fn set_removed(&mut self, lines: &ChunkLines<'a>, entry: usize, stand_in: Option<usize>) {
        let removed = lines.entries[entry];
        let line = stand_in.and_then(|i| lines.entries[i].shown.new);
        let line = line.map(|n| LineSpan {
            first: n,
            last: n,
            columns: None,
        });
        self.set_file(lines.file(removed.file), line);
        self.quote = removed.text;
        let old = removed.old().map(|n| format!(" {n}")).unwrap_or_default();
        self.more = Some(format!(
            "This is about the deleted line{old}; shown is the nearest one that is left."
        ));
    }

    /// Sets the file of several equal lines, and lists their numbers.
    fn set_one_of(&mut self, lines: &ChunkLines<'a>, alike: &[usize]) {
        if let Some(first) = alike.first().map(|i| lines.entries[*i]) {
            self.set_file(lines.file(first.file), None);
            self.quote = first.text;
        }
        let numbers = alike.iter().filter_map(|i| lines.entries[*i].number());
        let listed: Vec<String> = numbers.take(LISTED).map(|n| n.to_string()).collect();
        let more = if alike.len() > LISTED { ", …" } else { "" };
        self.more = Some(format!(
            "The quoted line occurs in several places: {}{more}.",
            listed.join(", ")
        ));
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

/// Returns the line range of a position, and the columns of the quote if it is one line.
fn span(
    lines: &ChunkLines<'_>,
    first: usize,
    last: usize,
    stated: StatedPosition<'_>,
) -> Option<LineSpan> {
    let (first, last) = (&lines.entries[first], &lines.entries[last]);
    let (from, to) = (first.shown.new?, last.shown.new?);
    let change = lines.file(first.file).change.text().filter(|_| from == to);
    let columns = change
        .zip(stated.quote)
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
    if text::is_nothing(reference.trim()) {
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

/// Returns the rule ID of model findings of a category.
fn rule_id(category: Category) -> String {
    format!("ai-{category}")
}
