//! Records decisions of a person on the findings of a stored review.

use super::apply;
use super::recall;
use super::region::changes;
use crate::diff::FileChange;
use crate::disposition::{
    self, DEFERRED_DAYS, DecidedContent, DecisionEntries, DecisionEntry, Digest, Occurrence,
    SHARED, Sheet,
};
use crate::env::Env;
use crate::error::{Error, Result};
use crate::finding::{Decision, Finding};
use crate::git::{Reader, Repo, State};
use crate::history::{SessionId, Store};
use crate::review::{StoreLocation, decided, remembered, today};
use crate::rules::RuleSet;
use crate::text::one_line;
use crate::wire;
use crate::wire::stored::{Session, State as Fate};
use jiff::civil::Date;
use std::collections::{HashMap, HashSet};
use std::fs::{File, TryLockError};
use std::io::{ErrorKind, Write as _};
use std::path::Path;
use std::time::{Duration, Instant};

/// Characters of a reason, at most.
const REASON: usize = 1_000;
/// Characters of the quoted line of an entry, at most.
const LINE: usize = 200;
/// Digits of a fingerprint prefix that names a finding of a session, at least.
const DIGITS: usize = 4;
/// Two masked bytes of a secret in a quote. Every secret has more than one byte.
const MASK: &str = "**";
/// Lock file for replacing the shared file; in the git folder.
const LOCK: &str = "claude-reviewer.lock";
/// Time to wait for another process that replaces it, and pause between attempts.
const PATIENCE: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(5);

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

/// A finding of a session, with the current decision on it.
#[derive(Clone, Debug)]
pub struct ListedFinding {
    /// The stored finding, with the current decision.
    pub finding: wire::Finding,
    /// Entry of the decision, to display.
    pub entry: Option<DecisionEntry>,
    /// Valid decision that an agent proposes.
    pub proposal: Option<DecisionEntry>,
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
        let all: Vec<wire::Finding> = listed.iter().map(|l| l.finding.clone()).collect();
        let wanted: Result<Vec<&wire::Finding>> = names
            .iter()
            .map(|name| select(&all, name, &session.review_id))
            .collect();
        let wanted = wanted?;
        listed.retain(|l| {
            wanted
                .iter()
                .any(|f| f.fingerprint == l.finding.fingerprint)
        });
        if let Some(l) = listed.iter().find(|l| l.proposal.is_none()) {
            return Err(
                Error::usage(format!("no decision is proposed on {}", l.finding.id)).hint_person(
                    format!(
                        "list the findings and the proposals: claude-reviewer findings {}",
                        session.review_id
                    ),
                ),
            );
        }
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
        let lines = lines(here.repo, &mut reader, &finding, &last.source);
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
        if decided
            .iter()
            .any(|(f, _)| f.fingerprint == found.fingerprint)
        {
            continue;
        }
        let reason = choice
            .reason
            .as_deref()
            .map(|text| clean(here.rules, text))
            .filter(|text| !text.is_empty());
        if reason.is_none()
            && choice.decision == Decision::Rejected
            && found.severity == wire::Severity::Critical
        {
            let error = Error::usage(format!(
                "{} is critical and is not rejected without a reason",
                found.id
            ));
            return Err(error
                .hint_person(format!(
                    "claude-reviewer reject {} --reason \"WHY\"",
                    found.id
                ))
                .hint_agent("give a reason"));
        }
        let finding = recall::findings(std::slice::from_ref(found), b"").pop();
        let finding =
            finding.ok_or_else(|| Error::usage(format!("{} cannot be read", found.id)))?;
        let content = match reviewed(
            here.repo,
            &mut reader,
            (found, &finding),
            (&last.source, &files),
        ) {
            ReviewedContent::None => None,
            ReviewedContent::Same(content) => Some(content),
            ReviewedContent::Changed => return Err(changed(found)),
            ReviewedContent::Unknown => return Err(unknown(found)),
        };
        let digest = content
            .as_ref()
            .map(|c| digests.of(found.file.clone(), c))
            .transpose()?;
        let owner = choice
            .owner
            .clone()
            .unwrap_or_else(|| here.place.actor.clone());
        let entry = DecisionEntry {
            fingerprint: found.fingerprint.clone(),
            rule: found.rule_id.clone(),
            path: found.file.as_deref().map(|path| clean(here.rules, path)),
            line: first_line(&found.quote),
            digest,
            occurrence: content.map_or(Occurrence::ONLY, |c| c.occurrence),
            decision: choice.decision,
            reason: reason.unwrap_or_default(),
            owner: clean(here.rules, &owner),
            created: day,
            expires,
        };
        decided.push((found.clone(), entry));
    }
    Ok(decided)
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

/// Lists the findings of the last round of a session with the valid decisions, and earlier findings
/// that are fixed.
///
/// # Errors
/// Usage: a file of decisions is invalid.
pub fn list(here: &Here<'_>, session: &Session) -> Result<Vec<ListedFinding>> {
    let Some(last) = session.rounds.last() else {
        return Ok(Vec::new());
    };
    remembered::recall(here.env, here.repo.worktree(), here.now);
    let mut all = held(here.repo, here.place, &last.review.report, today(here.now))?;
    remembered::save(here.env, here.repo.worktree());
    let fixed = last
        .review
        .since
        .iter()
        .flat_map(|s| &s.entries)
        .filter(|e| e.state == Fate::Fixed);
    for entry in fixed {
        let mut earlier = session
            .rounds
            .iter()
            .rev()
            .skip(1)
            .flat_map(|r| &r.review.report.findings);
        if let Some(found) = earlier.find(|f| f.fingerprint == entry.fingerprint) {
            let finding = wire::Finding {
                disposition: wire::Disposition::Fixed,
                decided: None,
                ..found.clone()
            };
            all.push(ListedFinding {
                finding,
                entry: None,
                proposal: None,
            });
        }
    }
    Ok(all)
}

/// Lists the findings of a report with the decisions that are valid on a day.
///
/// # Errors
/// As [`list`].
pub fn held(
    repo: &Repo,
    place: &StoreLocation,
    report: &wire::Report,
    day: Date,
) -> Result<Vec<ListedFinding>> {
    let mut reader = repo.reader();
    let shared = decided::shared(&mut reader, &State::Worktree)?;
    let own = decided::own(&mut reader, place, &mut Vec::new())?;
    let entries = decided::joined(own, shared);
    let proposals = DecisionEntries::new(decided::proposed(&mut reader, place)?);
    let held = HeldDecisions {
        entries: &entries,
        proposals: &proposals,
        day,
    };
    let mut all = Vec::new();
    let mut batch: Vec<ListedCandidate<'_>> = Vec::new();
    let mut bytes = 0;
    for found in &report.findings {
        let Some(finding) = recall::findings(std::slice::from_ref(found), b"").pop() else {
            continue;
        };
        let is_named = entries.names(&finding) || proposals.names(&finding);
        let lines = if is_named {
            lines(repo, &mut reader, &finding, &report.source)
        } else {
            ReviewedContent::Changed
        };
        bytes += lines.content().map_or(0, |content| content.text.len());
        batch.push(ListedCandidate {
            found,
            finding,
            lines,
        });
        if bytes > decided::BATCH {
            all.extend(held.listed(&batch));
            batch.clear();
            bytes = 0;
        }
    }
    all.extend(held.listed(&batch));
    Ok(all)
}

/// A finding with its content.
struct ListedCandidate<'r> {
    found: &'r wire::Finding,
    finding: Finding,
    lines: ReviewedContent,
}

/// The decisions and proposals that are valid on a day.
struct HeldDecisions<'e> {
    entries: &'e DecisionEntries,
    proposals: &'e DecisionEntries,
    day: Date,
}

impl HeldDecisions<'_> {
    /// Lists findings with the valid decisions. Computes their digests in one batch.
    fn listed(&self, batch: &[ListedCandidate<'_>]) -> Vec<ListedFinding> {
        let pairs: Vec<(&Finding, &DecidedContent)> = batch
            .iter()
            .filter_map(|c| Some((&c.finding, c.lines.content()?)))
            .collect();
        self.entries.prepare(&pairs, self.day);
        self.proposals.prepare(&pairs, self.day);
        batch.iter().map(|candidate| self.one(candidate)).collect()
    }

    fn one(&self, candidate: &ListedCandidate<'_>) -> ListedFinding {
        let ListedCandidate {
            found,
            finding,
            lines,
        } = candidate;
        let holds = lines.entry(finding, self.entries, self.day).cloned();
        let proposal = lines.entry(finding, self.proposals, self.day).cloned();
        let mut listed = (*found).clone();
        listed.disposition = holds
            .as_ref()
            .map_or(wire::Disposition::Pending, |e| e.decision.into());
        listed.decided = holds.as_ref().map(decision);
        ListedFinding {
            finding: listed,
            entry: holds,
            proposal,
        }
    }
}

/// Converts an entry for reports.
pub fn decision(entry: &DecisionEntry) -> wire::Decided {
    wire::Decided {
        reason: entry.reason.clone(),
        owner: entry.owner.clone(),
        expires: entry.expires.map(|date| date.to_string()),
    }
}

/// Finds a finding by its ID or by a prefix of its fingerprint.
///
/// # Errors
/// Usage: no finding, or several.
pub fn select<'f>(
    findings: &'f [wire::Finding],
    name: &str,
    review: &str,
) -> Result<&'f wire::Finding> {
    // An ID can look like a prefix of a fingerprint.
    if let Some(one) = findings.iter().find(|f| f.id.eq_ignore_ascii_case(name)) {
        return Ok(one);
    }
    let is_prefix = name.len() >= DIGITS && name.bytes().all(|b| b.is_ascii_hexdigit());
    let lower = name.to_ascii_lowercase();
    let mut found = findings
        .iter()
        .filter(|f| is_prefix && f.fingerprint.starts_with(&lower));
    match (found.next(), found.next()) {
        (Some(one), None) => Ok(one),
        (None, _) => Err(with_hints(unknown_name(findings, name, review), review)),
        (Some(_), Some(_)) => Err(with_hints(
            Error::usage(format!("{name} names several findings of review {review}")),
            review,
        )),
    }
}

/// Adds the commands that list the names of findings.
fn with_hints(error: Error, review: &str) -> Error {
    error
        .hint_person(format!(
            "list the findings: claude-reviewer findings {review}"
        ))
        .hint_agent(format!(
            "call get_review_history with review_id {review}, and name findings by their id"
        ))
}

/// Returns the error for a name that matches no finding.
fn unknown_name(findings: &[wire::Finding], name: &str, review: &str) -> Error {
    let separated: Vec<&str> = name
        .split([',', ';'])
        .map(str::trim)
        .filter(|n| !n.is_empty())
        .collect();
    if separated.len() > 1 {
        let error = Error::usage(format!("{name:?} is not the name of one finding"));
        return error
            .hint_person(format!(
                "separate names with spaces: {}",
                separated.join(" ")
            ))
            .hint_agent("pass each name as its own item of findings");
    }
    let number = name
        .strip_prefix(['f', 'F'])
        .filter(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()));
    let shown = number.map_or_else(|| format!("{name:?}"), |number| format!("\"F{number}\""));
    let known = match findings {
        [] => " and no finding at all".to_owned(),
        [one] => format!("; its only finding is {}", one.id),
        [first, .., last] => format!("; it has {} to {}", first.id, last.id),
    };
    let digits = match number {
        Some(_) if name.len() < DIGITS => {
            format!(" (the first digits of a fingerprint are at least {DIGITS})")
        }
        _ => String::new(),
    };
    Error::usage(format!(
        "review {review} has no finding {shown}{known}{digits}"
    ))
}

/// The content of a finding in the reviewed state.
enum ReviewedContent {
    /// The finding is about the whole change.
    None,
    /// The lines of the finding, or its whole file.
    Same(DecidedContent),
    Changed,
    /// The file changed, and the lines contain a secret, which the store does not have.
    Unknown,
}

impl ReviewedContent {
    fn content(&self) -> Option<&DecidedContent> {
        match self {
            Self::Same(content) => Some(content),
            Self::None | Self::Changed | Self::Unknown => None,
        }
    }

    /// Returns the entry that is valid for a finding on a day; none if its lines are not as
    /// reviewed.
    fn entry<'e>(
        &self,
        finding: &Finding,
        entries: &'e DecisionEntries,
        day: Date,
    ) -> Option<&'e DecisionEntry> {
        match self {
            Self::None => entries.entry(finding, None, day),
            Self::Same(content) => entries.entry(finding, Some(content), day),
            Self::Changed | Self::Unknown => None,
        }
    }
}

/// The files of a stored change, with their commits.
pub(super) type ReviewedFiles = Vec<(Option<String>, FileChange)>;

/// Returns the files of the last round; none if its change is unreadable.
pub(super) fn reviewed_files(store: &Store, session: &Session) -> ReviewedFiles {
    let round = u32::try_from(session.rounds.len()).unwrap_or(u32::MAX);
    let change = SessionId::parse(&session.review_id).and_then(|id| store.change(&id, round).ok());
    change.and_then(|text| changes(&text)).unwrap_or_default()
}

/// Reads the reviewed content of a finding: a decision must not cover code that the person has not
/// seen.
fn reviewed(
    repo: &Repo,
    reader: &mut Reader<'_>,
    (found, finding): (&wire::Finding, &Finding),
    (source, files): (&wire::ReviewedSource, &ReviewedFiles),
) -> ReviewedContent {
    let Some(path) = finding.file() else {
        return ReviewedContent::None;
    };
    let head = source
        .head
        .as_deref()
        .and_then(crate::diff::ObjectId::from_hex);
    if let Some(state) = finding
        .commit
        .or(head)
        .and_then(|commit| repo.state_of(commit).ok())
    {
        let content = decided::content(reader, &state, finding);
        if let Some(content) = content.filter(|c| is_quoted(c, finding)) {
            return ReviewedContent::Same(content);
        }
    }
    let stored =
        apply::change_of(files, found, path).and_then(|change| change.entry.new.as_ref()?.id);
    let lines = apply::reviewed(files, found, finding);
    let mut out = ReviewedContent::Changed;
    let first = (source.kind == wire::SourceKind::Staged).then_some(State::Index);
    for state in first.into_iter().chain([State::Worktree, State::Index]) {
        let content = decided::content(reader, &state, finding).filter(|c| is_quoted(c, finding));
        let Some(content) = content else { continue };
        let id = reader.blob(&state, path).ok().flatten();
        let is_same = match (&lines, stored) {
            (_, Some(stored)) if Some(stored) == id => true,
            (Some(lines), _) => is_text(&content, lines),
            (None, Some(_)) => false,
            // Neither is stored: only the quote can be compared.
            (None, None) => !finding.quote().contains(MASK),
        };
        if is_same {
            return ReviewedContent::Same(content);
        }
        if finding.lines().is_some() && lines.as_deref().is_none_or(has_secret) {
            out = ReviewedContent::Unknown;
        }
    }
    out
}

/// Returns true if a secret in lines of a stored change is masked.
fn has_secret(lines: &[Vec<u8>]) -> bool {
    lines
        .iter()
        .any(|l| l.windows(2).any(|w| w == MASK.as_bytes()))
}

/// Returns true if a content contains the quote of a finding. A finding without lines does not
/// quote its file.
fn is_quoted(content: &DecidedContent, finding: &Finding) -> bool {
    finding.lines().is_none() || contains(&content.text, finding.quote())
}

/// Returns true if a content has these lines, ignoring white space around them.
fn is_text(content: &DecidedContent, lines: &[Vec<u8>]) -> bool {
    let now: Vec<&[u8]> = content
        .text
        .split(|b| *b == b'\n')
        .map(<[u8]>::trim_ascii)
        .collect();
    now.len() == lines.len()
        && now
            .iter()
            .zip(lines)
            .all(|(now, line)| *now == line.trim_ascii())
}

/// Reads the content of a finding: in the reviewed state, or else in the worktree or the index.
/// Lines that differ only in a secret count as the same: the digest of an entry decides whether it
/// matches them.
fn lines(
    repo: &Repo,
    reader: &mut Reader<'_>,
    finding: &Finding,
    source: &wire::ReviewedSource,
) -> ReviewedContent {
    if finding.file().is_none() {
        return ReviewedContent::None;
    }
    let head = source
        .head
        .as_deref()
        .and_then(crate::diff::ObjectId::from_hex);
    let reviewed = match (finding.commit.or(head), source.kind) {
        (Some(commit), _) => repo.state_of(commit).ok(),
        (None, wire::SourceKind::Staged) => Some(State::Index),
        (None, _) => None,
    };
    for state in reviewed.into_iter().chain([State::Worktree, State::Index]) {
        let content = decided::content(reader, &state, finding);
        if let Some(content) = content.filter(|c| is_quoted(c, finding)) {
            return ReviewedContent::Same(content);
        }
    }
    ReviewedContent::Changed
}

/// Returns true if lines contain a quote, ignoring white space and masked parts of the quote.
pub(super) fn contains(lines: &[u8], quote: &str) -> bool {
    let lines = one_line(&String::from_utf8_lossy(lines));
    // A long quote is truncated.
    let quote = one_line(quote.split(" …").next().unwrap_or_default());
    let mut rest = lines.as_str();
    quote
        .split("**")
        .map(|piece| piece.trim_matches('*'))
        .filter(|piece| !piece.is_empty())
        .all(|piece| {
            let found = rest.find(piece);
            rest = found.map_or("", |at| &rest[at + piece.len()..]);
            found.is_some()
        })
}

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

/// Adds entries to the shared file of a worktree, and creates the file if it is missing.
pub(super) fn share(
    repo: &Repo,
    top: &Path,
    entries: impl Iterator<Item = DecisionEntry>,
) -> Result<()> {
    rewrite(repo, top, |name, before| {
        Ok(changed_file(name, before, entries)?.render().into_bytes())
    })
}

/// Replaces the shared file of a worktree. `change` gets its name and content, and returns the new
/// content. A lock serializes processes: otherwise the second writer would remove the entries of
/// the first.
pub(super) fn rewrite(
    repo: &Repo,
    top: &Path,
    change: impl FnOnce(&str, Option<Vec<u8>>) -> Result<Vec<u8>>,
) -> Result<()> {
    let _lock = lock(repo)?;
    let path = top.join(SHARED);
    let folder = path.parent().unwrap_or(top);
    for (place, name) in [
        (
            folder,
            SHARED.rsplit_once('/').map_or(SHARED, |(folder, _)| folder),
        ),
        (&*path, SHARED),
    ] {
        let why = match std::fs::symlink_metadata(place) {
            Ok(meta) if meta.is_symlink() => "is a symbolic link, or in one",
            // Opening a named pipe would block.
            Ok(meta) if place == path && !meta.is_file() => "is not a regular file",
            _ => continue,
        };
        return Err(Error::usage(format!("{SHARED} {why}"))
            .hint(format!("move it away: mv {name} {name}.old")));
    }
    let before = match std::fs::read(&path) {
        Ok(bytes) => Some(bytes),
        Err(e) if e.kind() == ErrorKind::NotFound => None,
        Err(e) => return Err(not_written(&e)),
    };
    let after = change(SHARED, before)?;
    replace(&path, folder, &after).map_err(|e| not_written(&e))
}

/// Returns the error for a shared file that cannot be read or written.
fn not_written(e: &std::io::Error) -> Error {
    Error::incomplete(format!("{SHARED} cannot be written")).caused_by(e)
}

/// Replaces a file atomically, and creates its folder if it is missing.
fn replace(path: &Path, folder: &Path, content: &[u8]) -> std::io::Result<()> {
    std::fs::create_dir_all(folder)?;
    let mut file = tempfile::Builder::new();
    #[cfg(unix)]
    file.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o644));
    let mut file = file.tempfile_in(folder)?;
    file.write_all(content)?;
    file.as_file().sync_all()?;
    file.persist(path).map_err(|e| e.error)?;
    Ok(())
}

/// Takes the lock of the shared file. The system releases it when the file is closed or the process
/// ends.
fn lock(repo: &Repo) -> Result<File> {
    let path = repo.git_dir().join(LOCK);
    let file = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(&path);
    let file = file.map_err(|e| not_locked(&path, &e))?;
    let started = Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) if started.elapsed() < PATIENCE => {
                std::thread::sleep(PAUSE)
            }
            Err(TryLockError::WouldBlock) => {
                return Err(Error::incomplete(format!(
                    "{SHARED} is being written by another process"
                ))
                .hint("run the command again when the other process has ended"));
            }
            Err(TryLockError::Error(e)) => return Err(not_locked(&path, &e)),
        }
    }
}

/// Returns the error for a lock file that cannot be opened or locked.
fn not_locked(path: &Path, e: &std::io::Error) -> Error {
    Error::incomplete(format!("cannot lock {}", path.display())).caused_by(e)
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

/// Digests that are computed together. Equal texts of a file share one, so that one comparison
/// matches all of them.
#[derive(Debug, Default)]
pub(super) struct Digests {
    known: HashMap<(Option<String>, Vec<u8>), Digest>,
}

impl Digests {
    /// Computes the digests of contents on all cores.
    ///
    /// # Errors
    /// As [`Self::of`].
    pub(super) fn prepare(&mut self, contents: &[(Option<String>, &DecidedContent)]) -> Result<()> {
        let keys: HashSet<(Option<String>, Vec<u8>)> = contents
            .iter()
            .map(|(path, content)| (path.clone(), content.text.clone()))
            .collect();
        let keys: Vec<_> = keys
            .into_iter()
            .filter(|key| !self.known.contains_key(key))
            .collect();
        let salts: Result<Vec<[u8; 16]>> = keys.iter().map(|_| salt()).collect();
        let texts: Vec<(&[u8], [u8; 16])> = keys
            .iter()
            .map(|(_, text)| text.as_slice())
            .zip(salts?)
            .collect();
        let digests = disposition::of_all(&texts);
        self.known.extend(keys.into_iter().zip(digests));
        Ok(())
    }

    /// Returns the digest of a content.
    ///
    /// # Errors
    /// Incomplete: the system has no random numbers.
    pub(super) fn of(&mut self, path: Option<String>, content: &DecidedContent) -> Result<Digest> {
        let key = (path, content.text.clone());
        if let Some(digest) = self.known.get(&key) {
            return Ok(digest.clone());
        }
        let digest = Digest::of(&content.text, salt()?);
        self.known.insert(key, digest.clone());
        Ok(digest)
    }
}

fn salt() -> Result<[u8; 16]> {
    let mut salt = [0; 16];
    getrandom::fill(&mut salt).map_err(|e| Error::incomplete(format!("no random numbers: {e}")))?;
    Ok(salt)
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
