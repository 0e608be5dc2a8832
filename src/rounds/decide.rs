//! Records decisions of a person on the findings of a stored review.

mod content;
mod digests;
mod list;
mod shared;

pub use list::{ListedFinding, decision, held, list};

pub(super) use digests::Digests;
pub(super) use shared::rewrite;

use super::named::select;
use super::recall;
use super::reviewed::{ReviewedFiles, reviewed_files};
use crate::disposition::{
    DEFERRED_DAYS, DecidedContent, DecisionEntries, DecisionEntry, Occurrence, Sheet,
};
use crate::env::Env;
use crate::error::{Error, Result};
use crate::finding::Decision;
use crate::git::{Reader, Repo, State};
use crate::history::Store;
use crate::review::{StoreLocation, decided, today};
use crate::rules::RuleSet;
use crate::text::one_line;
use crate::wire;
use crate::wire::stored::Session;
use content::{ReviewedContent, current, reviewed};
use jiff::civil::Date;
use shared::share;
use std::collections::HashSet;

/// Characters of a reason, at most.
const REASON: usize = 1_000;
/// Characters of the quoted line of an entry, at most.
const LINE: usize = 200;

/// A decision on findings.
#[derive(Clone, Debug)]
pub struct ChosenDecision {
    /// IDs such as `F3`, or prefixes of fingerprints.
    pub findings: Vec<String>,
    pub decision: Decision,
    pub reason: Option<String>,
    /// First day on which the decision no longer applies.
    pub until: Option<Date>,
    /// `None` for the user of the program.
    pub owner: Option<String>,
    /// Whether to add it to the shared file of the repository too.
    pub share: bool,
}

/// The repository and the store of a decision.
#[derive(Clone, Copy, Debug)]
pub struct Here<'a> {
    pub repo: &'a Repo,
    pub place: &'a StoreLocation,
    pub store: &'a Store,
    pub rules: &'a RuleSet,
    pub env: &'a Env,
    pub now: jiff::Timestamp,
}

/// A finding with a decision on it.
pub type Decided = (wire::Finding, DecisionEntry);

/// Records a decision of a person, and removes proposals on its findings. Writes nothing if a
/// finding is unknown or its lines have changed. Returns the findings with their entries.
///
/// # Errors
/// Usage: an unknown finding, lines that changed since the review, rejecting a critical finding
/// without a reason, a date in the past, an invalid file of decisions. Incomplete: a file cannot be
/// written.
pub fn decide(here: &Here<'_>, session: &Session, choice: &ChosenDecision) -> Result<Vec<Decided>> {
    let decided = entries(here, session, choice)?;
    record(here, &decided, choice.share)?;
    Ok(decided)
}

/// Records a decision that an agent proposes. It takes effect only after a person confirms it.
///
/// # Errors
/// As [`decide`].
pub fn propose(
    here: &Here<'_>,
    session: &Session,
    choice: &ChosenDecision,
) -> Result<Vec<Decided>> {
    let decided = entries(here, session, choice)?;
    let name = shown(here, decided::PROPOSED);
    here.store.propose(|before| {
        Ok(changed_file(&name, before, entries_of(&decided))?
            .render()
            .into_bytes())
    })?;
    Ok(decided)
}

/// Records decisions that were proposed on findings. `names` is as in [`ChosenDecision::findings`];
/// if empty, confirms all proposals on the last round.
///
/// # Errors
/// As [`decide`]; usage: no decision is proposed on a finding.
pub fn confirm(
    here: &Here<'_>,
    session: &Session,
    names: &[String],
    choice: &Confirmation,
) -> Result<Vec<Decided>> {
    let mut listed = list(here, session)?;
    if !names.is_empty() {
        listed = proposed_on(listed, names, &session.review_id)?;
    }
    let owner = choice
        .owner
        .clone()
        .unwrap_or_else(|| here.place.actor.clone());
    let decided: Vec<Decided> = listed
        .into_iter()
        .filter_map(|l| {
            let entry = DecisionEntry {
                owner: clean(here.rules, &owner),
                created: today(here.now),
                ..l.proposal?
            };
            Some((l.finding, entry))
        })
        .collect();
    if !decided.is_empty() {
        record(here, &decided, choice.share)?;
    }
    Ok(decided)
}

/// Returns the named findings.
///
/// # Errors
/// Usage: a finding is unknown, or no decision is proposed on it.
fn proposed_on(
    listed: Vec<ListedFinding>,
    names: &[String],
    review: &str,
) -> Result<Vec<ListedFinding>> {
    let all: Vec<wire::Finding> = listed.iter().map(|l| l.finding.clone()).collect();
    let wanted: Result<Vec<&wire::Finding>> = names
        .iter()
        .map(|name| select(&all, name, review))
        .collect();
    let wanted: HashSet<&str> = wanted?
        .into_iter()
        .map(|f| f.fingerprint.as_str())
        .collect();
    let named: Vec<ListedFinding> = listed
        .into_iter()
        .filter(|l| wanted.contains(l.finding.fingerprint.as_str()))
        .collect();
    match named.iter().find(|l| l.proposal.is_none()) {
        None => Ok(named),
        Some(l) => Err(
            Error::usage(format!("no decision is proposed on {}", l.finding.id)).hint_person(
                format!("list the findings and the proposals: claude-reviewer findings {review}"),
            ),
        ),
    }
}

/// Returns the valid shared decisions that contradict decisions recorded in the store alone. In
/// gate mode, only the shared ones count.
///
/// # Errors
/// Usage: the shared file is invalid.
pub fn still_shared(
    here: &Here<'_>,
    session: &Session,
    decided: &[Decided],
) -> Result<Vec<Overruled>> {
    let Some(last) = session.rounds.last().map(|r| &r.review.report) else {
        return Ok(Vec::new());
    };
    let mut reader = here.repo.reader();
    let shared = DecisionEntries::new(decided::shared(&mut reader, &State::Worktree)?);
    let day = today(here.now);
    let mut out = Vec::new();
    for (found, own) in decided {
        let finding = recall::findings(std::slice::from_ref(found), b"").pop();
        let Some(finding) = finding.filter(|f| shared.names(f)) else {
            continue;
        };
        let lines = current(here.repo, &mut reader, &finding, &last.source);
        let holds = lines.entry(&finding, &shared, day);
        if let Some(shared) = holds.filter(|shared| shared.decision != own.decision) {
            out.push(Overruled {
                id: found.id.clone(),
                own: own.clone(),
                shared: shared.clone(),
            });
        }
    }
    Ok(out)
}

/// A decision in the store, and a different one in the shared file.
#[derive(Clone, Debug)]
pub struct Overruled {
    pub id: String,
    pub own: DecisionEntry,
    pub shared: DecisionEntry,
}

/// The options of confirming proposals.
#[derive(Clone, Debug, Default)]
pub struct Confirmation {
    /// `None` for the user of the program.
    pub owner: Option<String>,
    /// Whether to add the decisions to the shared file of the repository too.
    pub share: bool,
}

/// Writes entries to the files of decisions, and removes their findings from the proposals.
fn record(here: &Here<'_>, decided: &[Decided], is_shared: bool) -> Result<()> {
    // An invalid file must prevent any write: read one file and write the other one first.
    decided::own(&mut here.repo.reader(), here.place, &mut Vec::new())?;
    if is_shared {
        share(here.repo, &here.place.top, entries_of(decided))?;
    }
    let name = shown(here, decided::OWN);
    here.store.decide(|before| {
        Ok(changed_file(&name, before, entries_of(decided))?
            .render()
            .into_bytes())
    })?;
    if !here.place.folder().join(decided::PROPOSED).exists() {
        return Ok(());
    }
    let name = shown(here, decided::PROPOSED);
    here.store.propose(|before| {
        let mut all = changed_file(&name, before, std::iter::empty())?;
        all.entries.retain(|e| {
            decided
                .iter()
                .all(|(_, entry)| entry.fingerprint != e.fingerprint)
        });
        Ok(all.render().into_bytes())
    })
}

/// Returns the entries of decisions.
fn entries_of(decided: &[Decided]) -> impl Iterator<Item = DecisionEntry> {
    decided.iter().map(|(_, entry)| entry.clone())
}

/// Returns the display path of a file of the store.
pub(super) fn shown(here: &Here<'_>, file: &str) -> String {
    format!("{}/{file}", here.place.history.path)
}

/// Creates the entries of a decision.
fn entries(here: &Here<'_>, session: &Session, choice: &ChosenDecision) -> Result<Vec<Decided>> {
    let day = today(here.now);
    refuse_past(choice.until, day)?;
    let expires = match (choice.decision, choice.until) {
        (Decision::Deferred, None) => day.checked_add(jiff::Span::new().days(DEFERRED_DAYS)).ok(),
        (_, until) => until,
    };
    let last = session.rounds.last().map(|r| &r.review.report);
    let last =
        last.ok_or_else(|| Error::usage(format!("review {} has no round", session.review_id)))?;
    let owner = choice.owner.as_deref().unwrap_or(&here.place.actor);
    let owner = clean(here.rules, owner);
    let files = reviewed_files(here.store, session);
    let mut reader = here.repo.reader();
    let mut decided: Vec<Decided> = Vec::new();
    let selected: Result<Vec<&wire::Finding>> = choice
        .findings
        .iter()
        .map(|name| select(&last.findings, name, &session.review_id))
        .collect();
    let mut digests = Digests::default();
    for found in selected? {
        let is_known = |(f, _): &Decided| f.fingerprint == found.fingerprint;
        if decided.iter().any(is_known) {
            continue;
        }
        let reason = reason(here.rules, choice, found)?;
        let content = decided_content(here.repo, &mut reader, found, (&last.source, &files))?;
        let digest = content
            .as_ref()
            .map(|c| digests.of(found.file.clone(), c))
            .transpose()?;
        let entry = DecisionEntry {
            fingerprint: found.fingerprint.clone(),
            rule: found.rule_id.clone(),
            path: found.file.as_deref().map(|path| clean(here.rules, path)),
            line: first_line(&found.quote),
            digest,
            occurrence: content.map_or(Occurrence::ONLY, |c| c.occurrence),
            decision: choice.decision,
            reason,
            owner: owner.clone(),
            created: day,
            expires,
        };
        decided.push((found.clone(), entry));
    }
    Ok(decided)
}

/// Returns the reason of a decision on a finding, for its entry; empty if there is none.
///
/// # Errors
/// Usage: a critical finding is rejected without a reason.
fn reason(rules: &RuleSet, choice: &ChosenDecision, found: &wire::Finding) -> Result<String> {
    let reason = clean(rules, choice.reason.as_deref().unwrap_or_default());
    let needs_reason =
        choice.decision == Decision::Rejected && found.severity == wire::Severity::Critical;
    if !reason.is_empty() || !needs_reason {
        return Ok(reason);
    }
    let id = &found.id;
    let error = Error::usage(format!(
        "{id} is critical and is not rejected without a reason"
    ));
    Err(error
        .hint_person(format!("claude-reviewer reject {id} --reason \"WHY\""))
        .hint_agent("give a reason"))
}

/// Reads the content that a decision on a finding is about, or `None` for the whole change.
///
/// # Errors
/// Usage: the content is not as reviewed, or that is unknown.
fn decided_content(
    repo: &Repo,
    reader: &mut Reader<'_>,
    found: &wire::Finding,
    stored: (&wire::ReviewedSource, &ReviewedFiles),
) -> Result<Option<DecidedContent>> {
    let finding = recall::findings(std::slice::from_ref(found), b"").pop();
    let finding = finding.ok_or_else(|| Error::usage(format!("{} cannot be read", found.id)))?;
    match reviewed(repo, reader, (found, &finding), stored) {
        ReviewedContent::None => Ok(None),
        ReviewedContent::Same(content) => Ok(Some(content)),
        ReviewedContent::Changed => Err(changed(found)),
        ReviewedContent::Unknown => Err(unknown(found)),
    }
}

/// Rejects a date that is not in the future.
pub(super) fn refuse_past(until: Option<Date>, today: Date) -> Result<()> {
    match until.filter(|date| *date <= today) {
        None => Ok(()),
        Some(date) => Err(Error::usage(format!("{date} is not in the future"))
            .hint_person("write a later date: --until YYYY-MM-DD")
            .hint_agent("set until to a later date, as YYYY-MM-DD")),
    }
}

/// Returns the error for a finding whose lines are not as reviewed.
fn changed(found: &wire::Finding) -> Error {
    let at = match (&found.file, found.line) {
        (Some(file), Some(line)) => format!(" at {file}:{line}"),
        _ => String::new(),
    };
    Error::usage(format!(
        "the lines of {}{at} have changed since the review",
        found.id
    ))
    .hint_person("review again, and decide on the new findings: claude-reviewer review")
    .hint_agent("call request_review, and propose a decision on the new findings")
}

/// Returns the error for a finding with a secret, whose lines the store does not have.
fn unknown(found: &wire::Finding) -> Error {
    let file = found.file.as_deref().unwrap_or_default();
    let why = format!(
        "{file} has changed since the review, and the store does not have the secret in the lines of"
    );
    Error::usage(format!(
        "{why} {}: whether they are as reviewed is unknown",
        found.id
    ))
    .hint_person("review again, and decide on the new findings: claude-reviewer review")
    .hint_agent("call request_review, and propose a decision on the new findings")
}

/// Returns a file with additional entries.
pub(super) fn changed_file(
    name: &str,
    before: Option<Vec<u8>>,
    entries: impl Iterator<Item = DecisionEntry>,
) -> Result<Sheet> {
    let mut all = before
        .map(|bytes| decided::sheet(name, &bytes))
        .transpose()?
        .unwrap_or_default();
    entries.for_each(|entry| all.put(entry));
    Ok(all)
}

/// Formats a person's text on one line, without secrets.
fn clean(rules: &RuleSet, text: &str) -> String {
    rules.masked(&one_line(text)).chars().take(REASON).collect()
}

/// Returns the first line of a quote, which is masked already.
fn first_line(quote: &str) -> String {
    quote
        .lines()
        .next()
        .unwrap_or_default()
        .trim()
        .chars()
        .take(LINE)
        .collect()
}
