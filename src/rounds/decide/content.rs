//! The content that a decision is about: the lines of a finding as they were reviewed.

use super::super::reviewed::{self, ReviewedFiles, change_of, contains};
use crate::diff::ObjectId;
use crate::disposition::{DecidedContent, DecisionEntries, DecisionEntry};
use crate::finding::Finding;
use crate::git::{Reader, Repo, State};
use crate::review::decided;
use crate::wire;
use jiff::civil::Date;

/// Two masked bytes of a secret in a quote. Every secret has more than one byte.
const MASK: &str = "**";

/// The content of a finding in the reviewed state.
pub(super) enum ReviewedContent {
    /// The finding is about the whole change.
    None,
    /// The lines of the finding, or its whole file.
    Same(DecidedContent),
    /// No state has the reviewed lines.
    Changed,
    /// The file changed, and the lines contain a secret, which the store does not have.
    Unknown,
}

impl ReviewedContent {
    /// Returns the content, if the finding has one and it is as reviewed.
    pub(super) fn content(&self) -> Option<&DecidedContent> {
        match self {
            Self::Same(content) => Some(content),
            Self::None | Self::Changed | Self::Unknown => None,
        }
    }

    /// Returns the entry that is valid for a finding on a day; none if its lines are not as
    /// reviewed.
    pub(super) fn entry<'e>(
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

/// Reads the reviewed content of a finding: a decision must not cover code that the person has not
/// seen.
pub(super) fn reviewed(
    repo: &Repo,
    reader: &mut Reader<'_>,
    (found, finding): (&wire::Finding, &Finding),
    (source, files): (&wire::ReviewedSource, &ReviewedFiles),
) -> ReviewedContent {
    let Some(path) = finding.file() else {
        return ReviewedContent::None;
    };
    let head = source.head.as_deref().and_then(ObjectId::from_hex);
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
    let stored = change_of(files, found, path).and_then(|change| change.entry.new.as_ref()?.id);
    let lines = reviewed::lines(files, found, finding);
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

/// Reads the content of a finding: in the reviewed state, or else in the worktree or the index.
/// Lines that differ only in a secret count as the same: the digest of an entry decides whether it
/// matches them.
pub(super) fn current(
    repo: &Repo,
    reader: &mut Reader<'_>,
    finding: &Finding,
    source: &wire::ReviewedSource,
) -> ReviewedContent {
    if finding.file().is_none() {
        return ReviewedContent::None;
    }
    let head = source.head.as_deref().and_then(ObjectId::from_hex);
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
