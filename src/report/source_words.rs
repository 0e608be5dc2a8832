//! The words of reports for what was reviewed: a change, the files of a state, or a history.
//!
//! All formats take them from here, so that the report of an audit does not speak of a change.

use crate::review::{SourceInfo, SourceKind};

/// The words for one kind of source.
#[derive(Debug)]
pub(super) struct SourceWords {
    /// The whole source: the place of a finding without a file.
    pub(super) whole: &'static str,
    /// As `whole`, at the start of a sentence.
    pub(super) whole_at_start: &'static str,
    /// A part of the source.
    pub(super) part: &'static str,
    /// Several parts of the source.
    pub(super) parts: &'static str,
    /// What blocking findings block, after a space; empty if there is nothing to block.
    pub(super) blocked: &'static str,
    /// The line to which a claim of a model is anchored.
    pub(super) line: &'static str,
    /// A unit of the coverage; its plural ends with s.
    pub(super) unit: &'static str,
    /// The reason for a verdict on nothing.
    pub(super) nothing: &'static str,
    /// As `nothing`, as a heading.
    pub(super) nothing_at_start: &'static str,
    /// Label of the name of the source on a page.
    pub(super) label: &'static str,
    /// Heading of the files on a page.
    pub(super) heading: &'static str,
    /// Why a page shows no files.
    pub(super) not_stored: &'static str,
    /// Starts a sentence about the documents.
    pub(super) subject: &'static str,
    /// Code marks the lines that the source adds. In an audit, it adds all of them.
    pub(super) marks_added: bool,
}

/// The words for a change. `--files` and code from standard input are read as changes, too.
const CHANGE: SourceWords = SourceWords {
    whole: "the change as a whole",
    whole_at_start: "The change as a whole",
    part: "a part of the change",
    parts: "parts of the change",
    blocked: " this change",
    line: "a line of the change",
    unit: "file",
    nothing: "no changes",
    nothing_at_start: "No changes to review",
    label: "Change",
    heading: "The change",
    not_stored: "The lines of this change were not stored. Each finding shows its own.",
    subject: "The change",
    marks_added: true,
};

/// The words for the files of a state.
const TREE: SourceWords = SourceWords {
    whole: "the files as a whole",
    whole_at_start: "The files as a whole",
    part: "a part of the files",
    parts: "parts of the files",
    blocked: "",
    line: "a line of the files",
    unit: "file",
    nothing: "no files",
    nothing_at_start: "No files to review",
    label: "Files",
    heading: "The files",
    not_stored: "The files are not stored. Each finding shows its own lines.",
    subject: "The code",
    marks_added: false,
};

/// The words for the versions of files in a history.
const HISTORY: SourceWords = SourceWords {
    whole: "the history as a whole",
    whole_at_start: "The history as a whole",
    part: "a part of the history",
    parts: "parts of the history",
    unit: "blob",
    nothing: "no blobs",
    nothing_at_start: "No blobs to review",
    label: "History",
    heading: "The history",
    not_stored: "The history is not stored. Each finding shows its own lines.",
    ..TREE
};

impl SourceWords {
    /// Returns the words for a source.
    pub(super) fn of(source: &SourceInfo) -> &'static Self {
        match source.kind {
            SourceKind::Tree if source.is_history => &HISTORY,
            SourceKind::Tree => &TREE,
            SourceKind::Staged
            | SourceKind::Unstaged
            | SourceKind::Changes
            | SourceKind::Commit
            | SourceKind::Branch
            | SourceKind::Patch
            | SourceKind::Code
            | SourceKind::Pr => &CHANGE,
        }
    }
}
