//! The state of triage: the review, the cursor, the list, and the dialog on the screen. Pure.

use super::filter::{self, Filter, ListRow, Sort};
use super::prompt::Prompt;
use super::scroll;
use super::{Size, TriageItem, TriageSubject};
use crate::finding::Decision;
use crate::rounds::undo::Held;
use jiff::civil::Date;
use std::collections::BTreeSet;

/// A part of the screen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pane {
    #[default]
    Findings,
    Code,
    Details,
}

impl Pane {
    /// All panes in the order of their keys.
    pub const ALL: [Self; 3] = [Self::Findings, Self::Code, Self::Details];
}

/// An effect for the edge to perform.
#[derive(Clone, Debug, PartialEq)]
pub enum TriageEffect {
    Decide(DecisionOrder),
    /// Records proposed decisions, by fingerprint.
    Confirm {
        findings: Vec<String>,
        is_shared: bool,
    },
    Undo(Held),
    /// Writes replacements, by ID.
    Apply(Vec<String>),
    /// Runs a command of this program, and reads the review again.
    Run(Vec<String>),
    /// Opens a file in the editor.
    Edit {
        file: String,
        line: Option<u32>,
    },
    /// Reads the review again.
    Reload,
    /// Draws the whole screen again.
    Redraw,
    /// Stops the program until it is continued.
    Suspend,
    Quit(Leave),
}

/// A decision to record.
#[derive(Clone, Debug, PartialEq)]
pub struct DecisionOrder {
    /// Fingerprints.
    pub findings: Vec<String>,
    pub decision: Decision,
    pub reason: Option<String>,
    pub until: Option<Date>,
    /// Also write the decision to the shared file of the repository.
    pub is_shared: bool,
}

/// The reason why the program ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leave {
    Done,
    /// Ctrl-C.
    Interrupted,
}

/// A message about a finished action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    pub text: String,
    pub is_error: bool,
}

impl Message {
    /// Reports a success.
    pub fn good(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            is_error: false,
        }
    }

    /// Reports a failure.
    pub fn bad(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            is_error: true,
        }
    }
}

/// A text that the user closes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    pub title: String,
    pub lines: Vec<String>,
    /// Next steps, shown last.
    pub hints: Vec<String>,
}

/// The current meaning of the keys.
#[derive(Clone, Debug, PartialEq)]
pub enum Mode {
    Browse,
    Prompt(Prompt),
    /// Selects filter values; has the index of the value under the cursor.
    Filter(usize),
    /// Shows the help; has the first visible row.
    Help(usize),
    /// Asks before an effect. Shows the equivalent command.
    Ask {
        title: String,
        command: Vec<String>,
        effect: TriageEffect,
    },
    Notice(Notice),
}

/// A decision that can be undone.
#[derive(Clone, Debug)]
pub(super) struct Undoable {
    pub(super) held: Held,
    /// The earlier findings, by index.
    pub(super) items: Vec<(usize, TriageItem)>,
    /// The earlier position of the cursor.
    pub(super) current: Option<usize>,
}

/// State of triage.
#[derive(Clone, Debug)]
pub struct TriageState {
    pub subject: TriageSubject,
    pub size: Size,
    pub mode: Mode,
    pub focus: Pane,
    /// The pane that a small terminal shows below the findings.
    pub lower: Pane,
    pub is_zoomed: bool,
    /// Index of the finding under the cursor; `None` if no finding is listed.
    pub current: Option<usize>,
    pub marked: BTreeSet<usize>,
    pub filter: Filter,
    pub sort: Sort,
    /// First visible row of the code; `None` to keep the finding visible.
    pub code_top: Option<usize>,
    /// First visible column of the code.
    pub code_left: usize,
    pub details_top: usize,
    pub message: Option<Message>,
    /// True if decisions are also written to the shared file of the repository.
    pub is_sharing: bool,
    /// Decisions that can be undone, newest last.
    pub(super) undo: Vec<Undoable>,
    /// True if decisions that can no longer be undone were shared.
    pub(super) has_shared_before: bool,
}

impl TriageState {
    /// Starts with the first pending finding.
    pub fn new(subject: TriageSubject, size: Size) -> Self {
        let mut state = Self {
            subject,
            size,
            mode: Mode::Browse,
            focus: Pane::Findings,
            lower: Pane::Code,
            is_zoomed: false,
            current: None,
            marked: BTreeSet::new(),
            filter: Filter::default(),
            sort: Sort::default(),
            code_top: None,
            code_left: 0,
            details_top: 0,
            message: None,
            is_sharing: false,
            undo: Vec::new(),
            has_shared_before: false,
        };
        let listed = state.listed();
        state.current = listed
            .iter()
            .copied()
            .find(|i| state.subject.items[*i].is_pending())
            .or(listed.first().copied());
        state
    }

    /// Returns the rows of the list.
    pub fn rows(&self) -> Vec<ListRow> {
        filter::rows(&self.subject, &self.filter, self.sort)
    }

    /// Returns the finding under the cursor.
    pub fn item(&self) -> Option<&TriageItem> {
        self.subject.items.get(self.current?)
    }

    /// Returns the state with decisions shared, or not.
    #[must_use]
    pub fn sharing(self, is_sharing: bool) -> Self {
        Self { is_sharing, ..self }
    }

    /// Returns true if the shared file has decisions of this session that were not undone.
    pub fn has_shared(&self) -> bool {
        self.has_shared_before || self.undo.iter().any(|u| u.held.is_shared())
    }

    /// Returns true if a decision since the review was read can be undone.
    pub fn can_undo(&self) -> bool {
        !self.undo.is_empty()
    }

    /// Returns the listed findings in their order.
    fn listed(&self) -> Vec<usize> {
        let items = self.rows().into_iter().filter_map(|row| match row {
            ListRow::Item(i) => Some(i),
            ListRow::File { .. } => None,
        });
        items.collect()
    }

    /// Returns the findings of an action: the listed and marked ones, or the one under the cursor.
    pub(super) fn targets(&self) -> Vec<usize> {
        let marked: Vec<usize> = self
            .listed()
            .into_iter()
            .filter(|i| self.marked.contains(i))
            .collect();
        if marked.is_empty() {
            self.current.into_iter().collect()
        } else {
            marked
        }
    }

    /// Moves the cursor. The panes of another finding start at their first row.
    pub(super) fn select(&mut self, to: Option<usize>) {
        if self.current != to {
            (
                self.current,
                self.code_top,
                self.code_left,
                self.details_top,
            ) = (to, None, 0, 0);
        }
    }

    /// Moves the cursor to a listed finding if it is on none.
    pub(super) fn settle(&mut self) {
        let listed = self.listed();
        if !self.current.is_some_and(|c| listed.contains(&c)) {
            self.select(listed.first().copied());
        }
    }

    /// Moves the cursor by some findings.
    pub(super) fn go(&mut self, by: isize) {
        let listed = self.listed();
        let Some(last) = listed.len().checked_sub(1) else {
            return;
        };
        let at = listed
            .iter()
            .position(|i| Some(*i) == self.current)
            .unwrap_or(0);
        self.select(Some(listed[scroll::moved(at, by, last)]));
    }

    /// Moves to the next pending finding, and wraps around at the end of the list. Returns false if
    /// no finding is pending.
    pub(super) fn go_pending(&mut self, is_forward: bool) -> bool {
        let mut order = self.listed();
        if !is_forward {
            order.reverse();
        }
        let at = order
            .iter()
            .position(|i| Some(*i) == self.current)
            .map_or(0, |at| at + 1);
        let turn = at.min(order.len());
        order.rotate_left(turn);
        let next = order
            .into_iter()
            .find(|i| self.subject.items[*i].is_pending());
        if next.is_some() {
            self.select(next);
        }
        next.is_some()
    }

    /// Returns the IDs of findings.
    pub(super) fn names(&self, of: &[usize]) -> Vec<String> {
        of.iter()
            .map(|i| self.subject.items[*i].finding.id.clone())
            .collect()
    }

    /// Returns the fingerprints of findings.
    pub(super) fn fingerprints(&self, of: &[usize]) -> Vec<String> {
        of.iter()
            .map(|i| self.subject.items[*i].finding.fingerprint.clone())
            .collect()
    }
}
