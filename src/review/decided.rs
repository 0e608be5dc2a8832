//! Applies the stored decisions of people to the findings of a review.
//!
//! In gate mode, only the shared file at the merge base counts: a change cannot dismiss its own
//! findings. The author of a change chooses where it branches off, so a decision dismisses a
//! finding only if the tip of the target branch and each further merge base dismiss it too. In
//! other modes, the shared file comes from the same state as the policy, and the file in the store
//! counts too.

use super::governing::at;
use super::resolved::{BranchTip, ChangePart, PartContent};
use super::{Note, StoreLocation};
use crate::bounded;
use crate::diff::code::text_of;
use crate::diff::{ObjectId, RepoPath};
use crate::disposition::{
    DecidedContent, DecisionEntries, DecisionEntry, DispositionProblem, MAX_BYTES, Occurrence,
    SHARED, Sheet,
};
use crate::error::{self, Error, Result};
use crate::finding::{Finding, LineSpan};
use crate::git::{PathNode, Reader, Repo, State};
use crate::request::Authority;
use jiff::civil::Date;
use std::collections::HashMap;
use std::fs::File;
use std::io::ErrorKind;
use std::path::Path;

/// File name of a person's own decisions, in the folder of stored reviews.
pub(crate) const OWN: &str = "dispositions.toml";
/// File name of the decisions that agents propose, in the same folder as [`OWN`]. No review reads
/// it.
pub(crate) const PROPOSED: &str = "proposals.toml";
/// Bytes of a source file whose lines are compared, at most.
const MAX_SOURCE: usize = 64 << 20;
/// Bytes of contents that are compared in one batch, at most.
pub(crate) const BATCH: usize = 16 << 20;

/// The decisions of people that a review applies.
#[derive(Clone, Debug, Default)]
pub struct Decisions {
    pub(super) entries: DecisionEntries,
    /// Reviewed states, by the commit of the findings.
    pub(super) states: Vec<(Option<ObjectId>, State)>,
}

/// The base states of a change.
#[derive(Debug)]
pub(super) struct Bases<'a> {
    pub(super) base: &'a State,
    /// The bases of further references that are pushed at once.
    pub(super) others: &'a [State],
    /// Further merge bases, for criss-cross merges.
    pub(super) further: Vec<State>,
    /// The target branch of the change.
    pub(super) tip: Option<&'a BranchTip>,
    /// The parts of the change.
    pub(super) parts: &'a [ChangePart],
}

impl Bases<'_> {
    /// Returns true if the change edits the shared file, and the file can be read in every
    /// resulting state.
    fn is_repaired(&self, reader: &mut Reader<'_>) -> bool {
        let before = bytes_at(reader, self.base).ok();
        let changes = self.parts.iter().filter_map(ChangePart::change);
        let heads: Vec<&State> = changes.map(|change| &change.head).collect();
        !heads.is_empty()
            && heads
                .iter()
                .all(|head| shared(reader, head).is_ok() && bytes_at(reader, head).ok() != before)
    }

    /// Returns the name of the merge base.
    fn name(&self) -> String {
        self.base.commit().map_or_else(
            || "the base".to_owned(),
            |id| format!("the merge base {}", id.short()),
        )
    }

    /// Returns the error about an unreadable shared file in a base. If the change repairs the file,
    /// adds a note that no decision of the base counts, and returns no entries: otherwise such a
    /// change could never pass. `name` is the name of the base.
    fn unreadable(
        &self,
        name: &str,
        error: Error,
        reader: &mut Reader<'_>,
        notes: &mut Vec<Note>,
    ) -> Result<DecisionEntries> {
        let error = at(name, error);
        if error.kind == error::Kind::Usage && self.is_repaired(reader) {
            let text = format!(
                "no decision of the base counts, and the change repairs their file: {}",
                error.message
            );
            notes.push(Note::general("policy", text));
            return Ok(DecisionEntries::default());
        }
        Err(error.hint(format!(
            "correct or remove {SHARED} in this change, or merge a change that does so first"
        )))
    }
}

/// Reads the decisions that apply to a review: from the bases in gate mode, else from `state` and
/// from the store in `place`.
///
/// # Errors
/// Usage: a file is malformed (the message has the line), is not a regular file, or is too large.
pub(super) fn load(
    (repo, authority): (Option<&Repo>, Authority),
    bases: &Bases<'_>,
    state: Option<&State>,
    place: Option<&StoreLocation>,
    notes: &mut Vec<Note>,
) -> Result<DecisionEntries> {
    let Some(repo) = repo else {
        return Ok(DecisionEntries::default());
    };
    let mut reader = repo.reader();
    if authority == Authority::Base {
        let shared = match bytes_at(&mut reader, bases.base) {
            Ok(shared) => shared,
            Err(e) => return bases.unreadable(&bases.name(), e, &mut reader, notes),
        };
        for other in bases.others {
            if bytes_at(&mut reader, other)? != shared {
                let text = format!(
                    "{SHARED} differs between the bases of the pushed references and is not used"
                );
                notes.push(Note::general("policy", text));
                return Ok(DecisionEntries::default());
            }
        }
        let all = match shared.map(|bytes| read(SHARED, &bytes)).transpose() {
            Ok(all) => bound_to_content(all.unwrap_or_default()),
            Err(e) => return bases.unreadable(&bases.name(), e, &mut reader, notes),
        };
        return agreed(all, repo, &mut reader, bases, notes);
    }
    let own = place
        .map(|place| own(&mut reader, place, notes))
        .transpose()?
        .unwrap_or_default();
    let shared = state
        .map(|state| shared(&mut reader, state))
        .transpose()?
        .unwrap_or_default();
    Ok(joined(own, shared))
}

/// Returns the entries that count in gate mode. An entry without a digest is not bound to content,
/// so it would dismiss the same finding in every later change.
fn bound_to_content(mut entries: Vec<DecisionEntry>) -> DecisionEntries {
    entries.retain(|entry| entry.digest.is_some());
    DecisionEntries::new(entries)
}

/// Keeps only the decisions that the further merge bases and the tip have too.
fn agreed(
    mut all: DecisionEntries,
    repo: &Repo,
    reader: &mut Reader<'_>,
    bases: &Bases<'_>,
    notes: &mut Vec<Note>,
) -> Result<DecisionEntries> {
    let mut versions = Vec::new();
    for further in bases.further.iter().filter(|state| *state != bases.base) {
        let name = further
            .commit()
            .map_or_else(String::new, |id| format!("the merge base {}", id.short()));
        versions.push((name, further.clone()));
    }
    if let Some(tip) = bases.tip.filter(|tip| bases.base.commit() != Some(tip.id)) {
        versions.push((
            format!("{} ({})", tip.name, tip.id.short()),
            repo.state_of(tip.id)?,
        ));
    }
    for (name, state) in versions {
        let other = match shared(reader, &state) {
            Ok(other) => bound_to_content(other),
            Err(e) => return bases.unreadable(&name, e, reader, notes),
        };
        let missing = all.missing_from(&other).count();
        if missing > 0 {
            let text = format!(
                "{name} lacks {missing} of the decisions at the merge base, which are not used"
            );
            notes.push(Note::general("policy", text));
        }
        all = all.agreed_by(other);
    }
    Ok(all)
}

/// Merges a person's own decisions with the shared ones. Of two decisions of the same day, the
/// person's own wins, so that a person can withdraw a shared decision locally.
pub(crate) fn joined(own: Vec<DecisionEntry>, shared: Vec<DecisionEntry>) -> DecisionEntries {
    DecisionEntries::new(own.into_iter().chain(shared))
}

/// Reads the shared file of a state.
///
/// # Errors
/// Usage: the file is malformed or too large.
pub(crate) fn shared(reader: &mut Reader<'_>, state: &State) -> Result<Vec<DecisionEntry>> {
    Ok(bytes_at(reader, state)?
        .map(|bytes| read(SHARED, &bytes))
        .transpose()?
        .unwrap_or_default())
}

fn bytes_at(reader: &mut Reader<'_>, state: &State) -> Result<Option<Vec<u8>>> {
    let path = RepoPath::from(SHARED);
    let node = reader.node(state, &path);
    match node.map_err(|e| read_error(state, e).hint(format!("ls -ld {SHARED}")))? {
        PathNode::File => {
            let bytes = reader.read(state, &path, MAX_BYTES);
            bytes.map_err(|e| {
                read_error(state, e).hint(format!("if it is not readable: chmod u+r {SHARED}"))
            })
        }
        PathNode::Absent => {
            let (folder, _) = SHARED.rsplit_once('/').unwrap_or_default();
            match reader
                .node(state, &RepoPath::from(folder))
                .map_err(|e| read_error(state, e))?
            {
                PathNode::Link => Err(unfit(state, folder, "is a symbolic link")),
                _ => Ok(None),
            }
        }
        PathNode::Link => Err(unfit(state, SHARED, "is a symbolic link")),
        PathNode::Folder => Err(unfit(state, SHARED, "is a directory")),
        PathNode::Special => Err(unfit(state, SHARED, "is not a regular file")),
    }
}

/// Returns the error about the shared file that cannot be read: a usage error if the file of the
/// worktree is at fault.
fn read_error(state: &State, e: Error) -> Error {
    match (state, e.kind) {
        (State::Worktree, error::Kind::Incomplete) => {
            Error::usage(format!("{SHARED} cannot be read: {}", e.on_one_line()))
        }
        // An object that is missing from the clone makes the review incomplete.
        _ => e,
    }
}

/// Returns the error about an entry in a state that is not a regular shared file, or not a folder
/// for it.
fn unfit(state: &State, path: &str, what: &str) -> Error {
    let (whose, hint) = match state {
        State::Commit { commit, .. } => {
            let commit = commit.short();
            (
                format!(" in commit {commit}"),
                format!("find the commit that brought it: git log -1 {commit} -- {path}"),
            )
        }
        State::Index => (
            " in the index".to_owned(),
            format!("unstage it: git rm -r --cached {path}"),
        ),
        State::Worktree | State::Empty => {
            (String::new(), format!("move it away: mv {path} {path}.old"))
        }
    };
    Error::usage(format!(
        "{path} {what}{whose}; decisions are only read from a regular file"
    ))
    .hint(hint)
}

/// Reads a person's own decisions. A file that git tracks came with a commit, so it does not count.
pub(crate) fn own(
    reader: &mut Reader<'_>,
    place: &StoreLocation,
    notes: &mut Vec<Note>,
) -> Result<Vec<DecisionEntry>> {
    stored(OWN, reader, place, notes)
}

/// Reads the decisions that agents propose. A file that git tracks does not count.
pub(crate) fn proposed(
    reader: &mut Reader<'_>,
    place: &StoreLocation,
) -> Result<Vec<DecisionEntry>> {
    stored(PROPOSED, reader, place, &mut Vec::new())
}

fn stored(
    name: &str,
    reader: &mut Reader<'_>,
    place: &StoreLocation,
    notes: &mut Vec<Note>,
) -> Result<Vec<DecisionEntry>> {
    let path = place.folder().join(name);
    let shown = format!("{}/{name}", place.history.path);
    let Some(bytes) = own_bytes(&path, &shown)? else {
        return Ok(Vec::new());
    };
    let tracked = path
        .strip_prefix(&place.top)
        .ok()
        .and_then(Path::to_str)
        .map(RepoPath::from);
    if let Some(tracked) = tracked
        && reader.mode(&State::Index, &tracked)?.is_some()
    {
        notes.push(Note::general(
            "policy",
            format!("{shown} is tracked by git and is not used"),
        ));
        return Ok(Vec::new());
    }
    read(&shown, &bytes)
}

fn own_bytes(path: &Path, shown: &str) -> Result<Option<Vec<u8>>> {
    let away = format!("move it away: mv {shown} {shown}.old");
    match std::fs::symlink_metadata(path) {
        Ok(meta) if meta.is_dir() => return Err(unfit_file(shown, "is a directory").hint(away)),
        Ok(meta) if meta.is_symlink() => {
            return Err(unfit_file(shown, "is a symbolic link").hint(away));
        }
        Ok(meta) if !meta.is_file() => {
            return Err(unfit_file(shown, "is not a regular file").hint(away));
        }
        Ok(meta) if meta.len() > MAX_BYTES as u64 => {
            return Err(unfit_file(shown, "is too large").hint(away));
        }
        Ok(_) => {}
        Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        Err(e) => return Err(unfit_file(shown, "cannot be read").caused_by(&e)),
    }
    let read = File::open(path).and_then(|f| bounded::start(f, MAX_BYTES as u64));
    let bytes = read.map_err(|e| unfit_file(shown, "cannot be read").caused_by(&e))?;
    Ok(Some(bytes))
}

/// Returns the error about a private file of decisions that cannot be used.
fn unfit_file(shown: &str, why: &str) -> Error {
    Error::usage(format!("{shown} {why}"))
}

/// Parses the entries of a file of decisions.
///
/// # Errors
/// Usage, with the line of the first problem. No entry of the file counts then.
pub(crate) fn read(name: &str, bytes: &[u8]) -> Result<Vec<DecisionEntry>> {
    Ok(sheet(name, bytes)?.entries)
}

/// Parses a file of decisions in a form that can be written back.
///
/// # Errors
/// Same as [`read`].
pub(crate) fn sheet(name: &str, bytes: &[u8]) -> Result<Sheet> {
    let text = std::str::from_utf8(bytes).map_err(|_| malformed(name, "the file is not UTF-8"))?;
    Sheet::parse(text).map_err(|DispositionProblem { line, message }| {
        let place = line.map_or_else(|| name.to_owned(), |line| format!("{name}:{line}"));
        malformed(&place, &message)
    })
}

/// Returns the error about a file of decisions that is invalid.
fn malformed(place: &str, message: &str) -> Error {
    Error::usage(format!("{place}: {message}")).hint(
        "correct the line, or restore the file: no finding is dismissed by a file with an error",
    )
}

/// Returns the reviewed state of each part, with the commit of its findings.
pub(super) fn states(repo: Option<&Repo>, parts: &[ChangePart]) -> Vec<(Option<ObjectId>, State)> {
    let states = parts.iter().filter_map(|part| match &part.content {
        PartContent::Change(change) => Some((part.commit, change.head.clone())),
        PartContent::Commit(id) => Some((part.commit, repo?.state_of(*id).ok()?)),
        PartContent::Given(_) => None,
    });
    states.collect()
}

/// Marks the findings that a decision dismisses, unless they are marked already.
pub(super) fn mark(
    decisions: &Decisions,
    findings: &mut [Finding],
    repo: Option<&Repo>,
    today: Date,
) {
    let Decisions { entries, states } = decisions;
    let Some(repo) = repo.filter(|_| !entries.is_empty()) else {
        return;
    };
    let mut texts = ReviewedTexts {
        reader: repo.reader(),
        states,
        known: HashMap::new(),
    };
    let mut batch = FindingBatch::default();
    for at in 0..findings.len() {
        let finding = &findings[at];
        if finding.disposition.is_some() || !entries.names(finding) {
            continue;
        }
        let content = match finding.file() {
            Some(path) => match texts.content(finding.commit, path, finding.lines()) {
                Some(content) => Some(content),
                // A finding whose content cannot be compared is not dismissed.
                None => continue,
            },
            None => None,
        };
        batch.push(at, content);
        if batch.bytes > BATCH {
            batch.mark(entries, findings, today);
        }
    }
    batch.mark(entries, findings, today);
}

/// Findings whose contents are compared in one batch. A comparison takes milliseconds, so the batch
/// uses all cores.
#[derive(Default)]
struct FindingBatch {
    all: Vec<(usize, Option<DecidedContent>)>,
    bytes: usize,
}

impl FindingBatch {
    fn push(&mut self, at: usize, content: Option<DecidedContent>) {
        self.bytes += content.as_ref().map_or(0, |c| c.text.len());
        self.all.push((at, content));
    }

    /// Marks the findings of the batch, and empties it.
    fn mark(&mut self, entries: &DecisionEntries, findings: &mut [Finding], today: Date) {
        let contents = self
            .all
            .iter()
            .filter_map(|(at, content)| Some((*at, content.as_ref()?)));
        let pairs: Vec<(&Finding, &DecidedContent)> = contents
            .map(|(at, content)| (&findings[at], content))
            .collect();
        entries.prepare(&pairs, today);
        for (at, content) in std::mem::take(&mut self.all) {
            findings[at].disposition = entries.of(&findings[at], content.as_ref(), today);
        }
        self.bytes = 0;
    }
}

/// The texts of changed files, read once.
struct ReviewedTexts<'a> {
    reader: Reader<'a>,
    states: &'a [(Option<ObjectId>, State)],
    known: HashMap<(Option<ObjectId>, RepoPath), Option<Vec<u8>>>,
}

impl ReviewedTexts<'_> {
    /// Returns the content of a finding in the reviewed state: its lines, or the whole file.
    fn content(
        &mut self,
        commit: Option<ObjectId>,
        path: &RepoPath,
        span: Option<LineSpan>,
    ) -> Option<DecidedContent> {
        let Some(span) = span else {
            let mut states = self.states.iter().filter(|(of, _)| *of == commit);
            return states
                .find_map(|(_, state)| file_at(&mut self.reader, state, path))
                .map(whole);
        };
        let key = (commit, path.clone());
        if !self.known.contains_key(&key) {
            let mut states = self.states.iter().filter(|(of, _)| *of == commit);
            let text = states.find_map(|(_, state)| text_at(&mut self.reader, state, path));
            self.known.insert(key.clone(), text);
        }
        self.known
            .get(&key)?
            .as_deref()
            .and_then(|text| lines(text, span))
    }
}

/// Returns true if the worktree lacks the lines of a finding with a replacement, and its HEAD is
/// not the reviewed commit.
pub(super) fn is_elsewhere(
    repo: Option<&Repo>,
    (place, head): (Option<&StoreLocation>, Option<&str>),
    findings: &[Finding],
) -> bool {
    let (Some(repo), Some(place)) = (repo, place) else {
        return false;
    };
    let checked_out = place.head.as_deref().and_then(ObjectId::from_hex);
    let head = head.and_then(ObjectId::from_hex);
    let mut reader = repo.reader();
    findings
        .iter()
        .filter(|f| f.replacement().is_some())
        .any(|f| {
            let commit = f
                .commit
                .or(head)
                .filter(|commit| Some(*commit) != checked_out);
            let reviewed = commit.and_then(|commit| repo.state_of(commit).ok());
            reviewed.is_some_and(|state| {
                content(&mut reader, &state, f) != content(&mut reader, &State::Worktree, f)
            })
        })
}

/// Returns the content that binds a decision on a finding in a state: the lines of the finding, or
/// its whole file. `None` if the content cannot be read, or if the finding is about the whole
/// change.
pub(crate) fn content(
    reader: &mut Reader<'_>,
    state: &State,
    finding: &Finding,
) -> Option<DecidedContent> {
    let path = finding.file()?;
    match finding.lines() {
        Some(span) => text_at(reader, state, path).and_then(|text| lines(&text, span)),
        None => file_at(reader, state, path).map(whole),
    }
}

/// Returns the bytes of a file in a state; empty if the file does not exist, `None` if it cannot be
/// read.
fn file_at(reader: &mut Reader<'_>, state: &State, path: &RepoPath) -> Option<Vec<u8>> {
    reader
        .read(state, path, MAX_SOURCE)
        .ok()
        .map(Option::unwrap_or_default)
}

/// Returns the text of a file in a state; `None` if it does not exist or is not text.
fn text_at(reader: &mut Reader<'_>, state: &State, path: &RepoPath) -> Option<Vec<u8>> {
    let bytes = reader.read(state, path, MAX_SOURCE).ok().flatten()?;
    text_of(path, bytes)
}

fn whole(text: Vec<u8>) -> DecidedContent {
    DecidedContent {
        text,
        occurrence: Occurrence::ONLY,
    }
}

/// Returns the lines of a span, both ends included; `None` if the text has fewer lines.
fn lines(text: &[u8], span: LineSpan) -> Option<DecidedContent> {
    let (first, last) = (span.first.get() as usize - 1, span.last.get() as usize);
    let all: Vec<&[u8]> = text.split(|b| *b == b'\n').collect();
    let text = all.get(first..last)?.join(&b'\n');
    Some(DecidedContent {
        text,
        occurrence: Occurrence::of(&all, first, last - first),
    })
}
