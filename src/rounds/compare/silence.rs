//! The meaning of silence: what it proves that the new round does not report an earlier finding. A
//! table over four facts, and the code that determines them.
//!
//! The table reads from top to bottom: what the round does not show, files that no model was asked
//! about, and then each position of the code.

use super::super::cover::Cover;
use super::super::region::{LinePosition, Preserved};
use super::{Open, alike};
use crate::wire::{Finding, Outcome, Report, SourceKind};

/// The current position of the code of a finding, and how much of it changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CodePosition {
    /// The change does not show the file.
    NotShown,
    /// The lines and those around them are unchanged.
    Unchanged,
    /// The lines and those around them are unchanged, and the file differs elsewhere. Determined
    /// only for findings of rules, which read the whole file.
    UnchangedInEditedFile,
    /// The lines are unchanged, and those around them are not.
    ChangedAround,
    /// Some of the lines changed.
    Changed,
    /// The position of the lines is unknown, or the change no longer includes the file under its
    /// name.
    Lost,
    /// As `Lost`, and the change deletes the file.
    Deleted,
    /// The finding has no lines. Its file differs, or any file if it is about the whole change.
    FileDiffers,
    /// The finding has no lines. Its file is unchanged, or all files are.
    FileUnchanged,
    /// The finding has no lines. Whether its file differs is unknown.
    FileUnknown,
}

/// Whether the source of a finding reviewed the file again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SourceAsked {
    Yes,
    /// The backend was not asked.
    No,
    /// The backend was not asked, and the change has no line of the file to ask about.
    NothingToAsk,
}

/// How much the new round shows of the state that the earlier round reviewed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ShownPart {
    /// Nothing that counts: the round was cancelled, reviewed something else, or left out the file.
    Nothing,
    /// See [`Cover::Onward`].
    Onward,
    /// See [`Cover::Given`].
    Given,
    /// See [`Cover::Whole`], and the file is not part of the request.
    WholeBesides,
    /// See [`Cover::Whole`], and the file is part of the request.
    Whole,
}

/// The source of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FindingSource {
    Model,
    /// A rule; the set of rules is the same in both rounds.
    Rule,
    /// A rule; another set of rules checked the new round, which may not have this rule.
    OtherRules,
}

/// What it means that a finding is not reported again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Silence {
    /// The finding is fixed, unless its text is found elsewhere.
    Fixed,
    /// The finding is open, because its code is unchanged.
    Open,
    /// The silence proves nothing.
    Unchecked,
}

/// Returns what it means that a finding is not reported again.
fn meaning(
    position: CodePosition,
    asked: SourceAsked,
    shown: ShownPart,
    source: FindingSource,
) -> Silence {
    use CodePosition::{
        Changed, ChangedAround, Deleted, FileDiffers, FileUnchanged, FileUnknown, Lost, NotShown,
        Unchanged, UnchangedInEditedFile,
    };
    use FindingSource::{Model, OtherRules, Rule};
    use ShownPart::{Given, Nothing, Onward, Whole, WholeBesides};
    use Silence::{Fixed, Open, Unchecked};
    use SourceAsked::{No, NothingToAsk, Yes};
    match (position, asked, shown, source) {
        // The round would not have reported the finding.
        (_, _, Nothing, _) => Unchecked,

        // The change shows every file that differs from the base: the file equals the base again.
        (NotShown, _, Whole, _) => Fixed,
        // The change does not show every file that differs.
        (NotShown, _, Onward | Given | WholeBesides, _) => Unchecked,

        // No line of the file differs from the base, and the lines of the finding still exist: no
        // model was asked about them.
        (Unchanged | UnchangedInEditedFile, NothingToAsk, Whole, _) => Unchecked,
        // No line of the file differs from the base, so the finding is gone with its lines.
        (
            ChangedAround | Changed | Lost | Deleted | FileDiffers | FileUnchanged | FileUnknown,
            NothingToAsk,
            Whole,
            _,
        ) => Fixed,
        // The lines of the file may be outside of what the change shows.
        (_, NothingToAsk, Onward | Given | WholeBesides, _) => Unchecked,
        // A backend that was not asked could not repeat its finding.
        (_, No, _, _) => Unchecked,

        // A model may omit what it reported before: only a change of the code fixes a finding.
        (Unchanged | UnchangedInEditedFile, Yes, _, Model) => Open,
        // The rule read the rest of the file too, which differs.
        (UnchangedInEditedFile, Yes, Given | WholeBesides | Whole, Rule) => Fixed,
        // Rules report only new lines, and the change may not have these.
        (UnchangedInEditedFile, Yes, Onward, Rule) => Unchecked,
        // Rules are deterministic: if the file is the same, the rule is off, or suppressed.
        (Unchanged, Yes, _, Rule) => Unchecked,
        // The new set of rules may not have the rule.
        (Unchanged | UnchangedInEditedFile, Yes, _, OtherRules) => Unchecked,

        // A change next to the lines can be a fix, such as a check above them.
        (ChangedAround, Yes, _, Model) => Fixed,
        (ChangedAround, Yes, Given | WholeBesides | Whole, Rule | OtherRules) => Fixed,
        // Rules report only new lines, and these are not new in the change.
        (ChangedAround, Yes, Onward, Rule | OtherRules) => Unchecked,
        // The lines changed, whatever the rest of the change shows.
        (Changed, Yes, _, _) => Fixed,

        // The file was reviewed again, and neither a model nor the rule reports it.
        (Lost | Deleted, Yes, Given | WholeBesides | Whole, Model | Rule) => Fixed,
        // The new set of rules may not have the rule.
        (Lost | Deleted, Yes, Given | WholeBesides | Whole, OtherRules) => Unchecked,
        // The change starts after the reviewed state, and deletes the file.
        (Deleted, Yes, Onward, _) => Fixed,
        // The change may not have the lines.
        (Lost, Yes, Onward, _) => Unchecked,

        // The file, or the change as a whole, is not as reviewed.
        (FileDiffers, Yes, _, _) => Fixed,
        // As for unchanged lines.
        (FileUnchanged, Yes, _, Model) => Open,
        (FileUnchanged, Yes, _, Rule | OtherRules) => Unchecked,
        // The whole change was reviewed again, and neither a model nor the rule reports it.
        (FileUnknown, Yes, WholeBesides | Whole, Model | Rule) => Fixed,
        (FileUnknown, Yes, WholeBesides | Whole, OtherRules) => Unchecked,
        // A part of a change does not show what became of a file.
        (FileUnknown, Yes, Onward | Given, _) => Unchecked,
    }
}

/// Returns what it means that the new round does not report an open finding.
pub(super) fn silence(open: &Open<'_>, now: &Report) -> Silence {
    let (f, alignment) = (open.finding, &open.round.alignment);
    let lines = alike::current_position(f, alignment);
    let file = match &lines {
        Some(LinePosition::At(spot)) => Some(spot.file.as_str()),
        _ => {
            let path = f.file.as_deref();
            path.and_then(|p| alignment.path(f.commit.as_deref(), p))
                .or(path)
        }
    };
    meaning(
        position(open, lines.as_ref(), file),
        asked(open, file, now),
        shown_part(open, file, now),
        source(open, now),
    )
}

/// Returns how much the new round shows of a finding. `file` is the current path of its file.
fn shown_part(open: &Open<'_>, file: Option<&str>, now: &Report) -> ShownPart {
    let (f, round) = (open.finding, open.round);
    let (alignment, cover) = (&round.alignment, round.earlier.cover);
    // The lines of a commit inside a branch are not in a change without the commits.
    let in_history =
        f.commit.is_some() && round.earlier.review.report.source.kind == SourceKind::Branch;
    let of_commits = matches!(now.source.kind, SourceKind::Branch | SourceKind::Commit);
    let is_comparable = now.outcome != Outcome::Cancelled && (!in_history || of_commits);
    let is_readable = file.is_none_or(|file| alignment.shows(file).is_some());
    if !is_comparable || !is_readable || !is_checked(now, file, alike::is_rule(f)) {
        return ShownPart::Nothing;
    }
    // A finding about the whole change concerns all its files. If some were left out, its state
    // is unknown.
    if f.file.is_none()
        && !alignment.has_all(|path| cover == Cover::Given || !round.look.selects(path))
    {
        return ShownPart::Nothing;
    }
    match cover {
        Cover::Nothing => ShownPart::Nothing,
        Cover::Onward => ShownPart::Onward,
        Cover::Given => ShownPart::Given,
        Cover::Whole if file.is_none_or(|f| round.look.selects(f)) => ShownPart::Whole,
        Cover::Whole => ShownPart::WholeBesides,
    }
}

/// Returns the current position of the code of a finding. `lines` is that of its lines, and `file`
/// the current path of its file.
fn position(open: &Open<'_>, lines: Option<&LinePosition>, file: Option<&str>) -> CodePosition {
    let (f, alignment) = (open.finding, &open.round.alignment);
    if file.is_some_and(|file| alignment.shows(file) != Some(true)) {
        return CodePosition::NotShown;
    }
    match lines {
        Some(LinePosition::At(spot)) => match spot.kept {
            Preserved::Whole if alike::is_rule(f) && differs(open, file) == Some(true) => {
                CodePosition::UnchangedInEditedFile
            }
            Preserved::Whole => CodePosition::Unchanged,
            Preserved::Lines => CodePosition::ChangedAround,
            Preserved::Not => CodePosition::Changed,
        },
        Some(LinePosition::Gone | LinePosition::Unknown) => {
            match file.is_some_and(|file| alignment.is_deleted(file)) {
                true => CodePosition::Deleted,
                false => CodePosition::Lost,
            }
        }
        None => match differs(open, file) {
            Some(true) => CodePosition::FileDiffers,
            Some(false) => CodePosition::FileUnchanged,
            None => CodePosition::FileUnknown,
        },
    }
}

/// Returns whether the source of a finding reviewed its file again. Rules always do. `file` is the
/// current path of the file.
fn asked(open: &Open<'_>, file: Option<&str>, now: &Report) -> SourceAsked {
    let f = open.finding;
    if alike::is_rule(f) || is_asked(f, now) {
        return SourceAsked::Yes;
    }
    match file.is_some_and(|file| open.round.alignment.is_bare(file)) {
        true => SourceAsked::NothingToAsk,
        false => SourceAsked::No,
    }
}

/// Returns the source of a finding.
fn source(open: &Open<'_>, now: &Report) -> FindingSource {
    match (alike::is_rule(open.finding), has_same_rules(open, now)) {
        (false, _) => FindingSource::Model,
        (true, true) => FindingSource::Rule,
        (true, false) => FindingSource::OtherRules,
    }
}

/// Returns true if the current file of a finding differs from the earlier round, or any file for a
/// finding without one. Returns `None` if that is unknown.
fn differs(open: &Open<'_>, file: Option<&str>) -> Option<bool> {
    let alignment = &open.round.alignment;
    match open.finding.file.as_deref() {
        Some(_) => file.and_then(|file| alignment.file_differs(None, file)),
        None => alignment.differs(),
    }
}

/// Returns true if the new round asked the backend that reported a finding.
pub(super) fn is_asked(f: &Finding, now: &Report) -> bool {
    now.usage.iter().any(|u| u.backend == f.origin)
}

/// Returns true if the same set of rules checked the new round.
pub(super) fn has_same_rules(open: &Open<'_>, now: &Report) -> bool {
    open.round.earlier.review.report.tool.rules_hash == now.tool.rules_hash
}

/// Returns true if a round checked a file in the way that the finding's source does; `None` is the
/// whole change.
pub(super) fn is_checked(now: &Report, file: Option<&str>, is_rule: bool) -> bool {
    let c = &now.coverage;
    let failed = c.failed.iter().any(|f| match &f.file {
        // The failure of a backend is not a failure of the rules.
        None => !is_rule,
        Some(failed) => Some(failed.as_str()) == file,
    });
    let mut skips = c.skipped.iter().filter(|s| Some(s.file.as_str()) == file);
    !failed
        && !skips
            .any(|s| !is_rule || matches!(s.reason.as_str(), "ignored" | "binary" | "submodule"))
}
