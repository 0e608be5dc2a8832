//! The state machine of triage: from keys and results to the next state and effects. Pure.

use super::filter::{self, Filter, FilterChoice, ListRow, Sort};
use super::key::KeyPress;
use super::prompt::{Prompt, PromptAnswer, Purpose};
use super::scroll;
use super::view;
use super::{Size, TriageItem, TriageSubject};
use crate::disposition::{DecisionEntry, SHARED};
use crate::finding::Decision;
use crate::rounds::undo::Held;
use crate::wire::Severity;
use jiff::civil::Date;
use std::collections::BTreeSet;

/// Values of the filter that a page key moves by.
const FILTER_PAGE: usize = 10;

/// A part of the screen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pane {
    #[default]
    Findings,
    Code,
    Details,
}

impl Pane {
    pub const ALL: [Self; 3] = [Self::Findings, Self::Code, Self::Details];
}

/// Events outside of the state machine, and results of effects.
#[derive(Clone, Debug)]
pub enum TriageEvent {
    Key(KeyPress),
    Paste(String),
    Resize(Size),
    /// Decisions were recorded. `before` has the decisions that they replace; `shared` has findings
    /// with another decision in the shared file, which applies in gate mode.
    Decided {
        decided: Vec<(String, DecisionEntry)>,
        before: Held,
        shared: Vec<(String, Decision)>,
    },
    /// The newest decision was undone.
    Undone,
    /// Replacements were written. `notes`: the effect on the findings.
    Applied {
        ids: Vec<String>,
        notes: Vec<String>,
    },
    /// The review was read again.
    Loaded(Box<TriageSubject>),
    /// An effect failed, or its message needs more than a line.
    Notice(Notice),
    Message(Message),
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
    pub fn good(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            is_error: false,
        }
    }

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
struct Undoable {
    held: Held,
    /// The earlier findings, by index.
    items: Vec<(usize, TriageItem)>,
    /// The earlier position of the cursor.
    current: Option<usize>,
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
    undo: Vec<Undoable>,
    /// True if decisions that can no longer be undone were shared.
    has_shared_before: bool,
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
    fn targets(&self) -> Vec<usize> {
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

    fn select(&mut self, to: Option<usize>) {
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
    fn settle(&mut self) {
        let listed = self.listed();
        if !self.current.is_some_and(|c| listed.contains(&c)) {
            self.select(listed.first().copied());
        }
    }

    /// Moves the cursor by some findings.
    fn go(&mut self, by: isize) {
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
    fn go_pending(&mut self, is_forward: bool) -> bool {
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

    fn names(&self, of: &[usize]) -> Vec<String> {
        of.iter()
            .map(|i| self.subject.items[*i].finding.id.clone())
            .collect()
    }

    fn fingerprints(&self, of: &[usize]) -> Vec<String> {
        of.iter()
            .map(|i| self.subject.items[*i].finding.fingerprint.clone())
            .collect()
    }
}

/// Returns the next state and the effects.
#[must_use]
pub fn step(mut state: TriageState, input: TriageEvent) -> (TriageState, Vec<TriageEffect>) {
    let effects = match input {
        TriageEvent::Resize(size) => {
            state.size = size;
            state.code_top = None;
            Vec::new()
        }
        TriageEvent::Key(key) => press(&mut state, key),
        TriageEvent::Paste(text) => {
            if let Mode::Prompt(prompt) = &mut state.mode {
                prompt.paste(&text);
                follow_search(&mut state);
            }
            Vec::new()
        }
        TriageEvent::Decided {
            decided,
            before,
            shared,
        } => {
            decided_on(&mut state, &decided, before, &shared);
            Vec::new()
        }
        TriageEvent::Undone => {
            undone(&mut state);
            Vec::new()
        }
        TriageEvent::Applied { ids, notes } => {
            applied(&mut state, &ids, notes);
            Vec::new()
        }
        TriageEvent::Loaded(subject) => {
            loaded(&mut state, *subject);
            Vec::new()
        }
        TriageEvent::Notice(notice) => {
            state.mode = Mode::Notice(notice);
            Vec::new()
        }
        TriageEvent::Message(message) => {
            state.message = Some(message);
            Vec::new()
        }
    };
    (state, effects)
}

fn press(state: &mut TriageState, key: KeyPress) -> Vec<TriageEffect> {
    match key {
        KeyPress::Ctrl('c') => return vec![TriageEffect::Quit(Leave::Interrupted)],
        KeyPress::Ctrl('z') => return vec![TriageEffect::Suspend],
        KeyPress::Ctrl('l') => return vec![TriageEffect::Redraw],
        // Findings that are not visible must not get decisions.
        _ if state.size.is_too_small() => {
            return if key == KeyPress::Char('q') {
                vec![TriageEffect::Quit(Leave::Done)]
            } else {
                Vec::new()
            };
        }
        _ => {}
    }
    state.message = None;
    match &state.mode {
        Mode::Browse => browse(state, key),
        Mode::Prompt(_) => prompt(state, key),
        Mode::Filter(at) => choose(state, *at, key),
        Mode::Help(top) => help(state, *top, key),
        Mode::Ask { .. } => ask(state, key),
        Mode::Notice(_) => {
            if matches!(
                key,
                KeyPress::Esc | KeyPress::Enter | KeyPress::Char('q' | ' ')
            ) {
                state.mode = Mode::Browse;
            }
            Vec::new()
        }
    }
}

fn browse(state: &mut TriageState, key: KeyPress) -> Vec<TriageEffect> {
    match key {
        KeyPress::Char('q') => return vec![TriageEffect::Quit(Leave::Done)],
        KeyPress::Char('?') => state.mode = Mode::Help(0),
        KeyPress::Esc => step_back(state),
        KeyPress::Tab => turn(state, 1),
        KeyPress::BackTab => turn(state, 2),
        KeyPress::Char('1') => focus(state, Pane::Findings),
        KeyPress::Char('2') => focus(state, Pane::Code),
        KeyPress::Char('3') => focus(state, Pane::Details),
        KeyPress::Char('z') => state.is_zoomed = !state.is_zoomed,
        KeyPress::Char('n') => find_pending(state, true),
        KeyPress::Char('N') => find_pending(state, false),
        KeyPress::Char('J') => scroll_pane(state, Pane::Code, 1),
        KeyPress::Char('K') => scroll_pane(state, Pane::Code, -1),
        KeyPress::Char('s') => {
            state.sort = state.sort.next();
            state.message = Some(Message::good(format!("sorted by {}", state.sort.name())));
        }
        KeyPress::Char('f') => state.mode = Mode::Filter(0),
        KeyPress::Char('t') => {
            state
                .filter
                .toggle(&FilterChoice::Status(crate::wire::Disposition::Pending));
            state.settle();
        }
        KeyPress::Char('/') => state.mode = Mode::Prompt(Prompt::search(&state.filter.search)),
        KeyPress::Char('R') => return vec![TriageEffect::Reload],
        KeyPress::Char('u') => return undo(state),
        KeyPress::Char('P') => return post(state),
        KeyPress::Char('S') => share(state),
        KeyPress::Char(c @ ('a' | 'r' | 'd' | 'c' | 'p' | 'x' | 'e' | 'o' | ' ')) => {
            return act(state, c);
        }
        _ => travel(state, key),
    }
    Vec::new()
}

/// Moves in the focused pane.
fn travel(state: &mut TriageState, key: KeyPress) {
    match key {
        KeyPress::Right | KeyPress::Char('l') => {
            return state.code_left = (state.code_left + 8).min(4_000);
        }
        KeyPress::Left | KeyPress::Char('h') => {
            return state.code_left = state.code_left.saturating_sub(8);
        }
        KeyPress::Enter => {
            return focus(
                state,
                if state.focus == Pane::Findings {
                    Pane::Code
                } else {
                    Pane::Findings
                },
            );
        }
        _ => {}
    }
    let Some(by) = scroll::rows(key, view::page(state)) else {
        return;
    };
    match state.focus {
        Pane::Findings => state.go(by),
        pane => scroll_pane(state, pane, by),
    }
}

fn scroll_pane(state: &mut TriageState, pane: Pane, by: isize) {
    let (top, most) = view::extent(state, pane);
    let to = scroll::moved(top, by, most);
    match pane {
        Pane::Code => state.code_top = Some(to),
        Pane::Details => state.details_top = to,
        Pane::Findings => {}
    }
}

fn focus(state: &mut TriageState, pane: Pane) {
    state.focus = pane;
    if pane != Pane::Findings {
        state.lower = pane;
    }
}

fn turn(state: &mut TriageState, by: usize) {
    let at = Pane::ALL
        .iter()
        .position(|p| *p == state.focus)
        .unwrap_or(0);
    focus(state, Pane::ALL[(at + by) % Pane::ALL.len()]);
}

/// Removes the newest restriction of the list.
fn step_back(state: &mut TriageState) {
    if state.is_zoomed {
        state.is_zoomed = false;
    } else if !state.marked.is_empty() {
        state.marked.clear();
    } else if !state.filter.search.is_empty() {
        state.filter.search.clear();
    } else if !state.filter.chosen.is_empty() {
        state.filter.chosen.clear();
    } else {
        state.focus = Pane::Findings;
    }
    state.settle();
}

fn find_pending(state: &mut TriageState, is_forward: bool) {
    if !state.go_pending(is_forward) {
        let is_filtered = !state.filter.is_empty();
        let text = if is_filtered {
            "no listed finding is pending; Esc ends the filter"
        } else {
            "no finding is pending"
        };
        state.message = Some(Message::good(text));
    }
}

/// Toggles whether the next decisions are shared.
fn share(state: &mut TriageState) {
    state.is_sharing = !state.is_sharing;
    let text = match state.is_sharing {
        true => format!("decisions are also written to {SHARED}"),
        false => "decisions are stored on this machine only".to_owned(),
    };
    state.message = Some(Message::good(text));
}

/// Performs an action on the marked findings, or on the one under the cursor.
fn act(state: &mut TriageState, key: char) -> Vec<TriageEffect> {
    let targets = state.targets();
    let Some(current) = state.current.filter(|_| !targets.is_empty()) else {
        state.message = Some(Message::bad("no finding is listed; Esc ends the filter"));
        return Vec::new();
    };
    match key {
        ' ' => {
            if !state.marked.remove(&current) {
                state.marked.insert(current);
            }
            state.go(1);
            return Vec::new();
        }
        'e' | 'o' => return edit(state, current),
        _ => {}
    }
    if let Some(fixed) = targets.iter().find(|i| state.subject.items[**i].is_fixed()) {
        let text = format!(
            "{} is fixed already",
            state.subject.items[*fixed].finding.title
        );
        state.message = Some(Message::bad(text));
        return Vec::new();
    }
    match key {
        'a' => return vec![decision(state, &targets, Decision::Accepted, None, None)],
        'r' => {
            let items = &state.subject.items;
            let needs_reason = targets
                .iter()
                .any(|i| items[*i].finding.severity == Severity::Critical);
            state.mode = Mode::Prompt(Prompt::reject(state.names(&targets), needs_reason));
        }
        'd' => state.mode = Mode::Prompt(Prompt::defer(state.names(&targets), state.subject.today)),
        'c' => return confirm(state, &targets),
        'p' => apply(state, &targets),
        _ => fix(state, &targets),
    }
    Vec::new()
}

fn decision(
    state: &TriageState,
    targets: &[usize],
    decision: Decision,
    reason: Option<String>,
    until: Option<Date>,
) -> TriageEffect {
    let findings = state.fingerprints(targets);
    TriageEffect::Decide(DecisionOrder {
        findings,
        decision,
        reason,
        until,
        is_shared: state.is_sharing,
    })
}

fn confirm(state: &mut TriageState, targets: &[usize]) -> Vec<TriageEffect> {
    let proposed: Vec<usize> = targets
        .iter()
        .copied()
        .filter(|i| state.subject.items[*i].proposal.is_some())
        .collect();
    if proposed.is_empty() {
        state.message = Some(Message::bad("no agent proposes a decision on this finding"));
        return Vec::new();
    }
    vec![TriageEffect::Confirm {
        findings: state.fingerprints(&proposed),
        is_shared: state.is_sharing,
    }]
}

fn apply(state: &mut TriageState, targets: &[usize]) {
    let without = targets
        .iter()
        .find(|i| state.subject.items[**i].finding.replacement.is_none());
    if let Some(i) = without {
        let id = &state.subject.items[*i].finding.id;
        state.message = Some(Message::bad(format!(
            "{id} has no replacement to apply; x lets a model fix it"
        )));
        return;
    }
    let ids = state.names(targets);
    let command = command("apply", &ids, &["--session", &state.subject.id]);
    let title = format!(
        "Write the replacement of {} into the worktree?",
        ids.join(", ")
    );
    state.mode = Mode::Ask {
        title,
        command,
        effect: TriageEffect::Apply(ids),
    };
}

fn fix(state: &mut TriageState, targets: &[usize]) {
    let ids = state.names(targets);
    let title = format!(
        "Let a model fix {}? It is asked, and its changes are shown first.",
        ids.join(", ")
    );
    let command = command("fix", &ids, &["--session", &state.subject.id]);
    state.mode = Mode::Ask {
        title,
        effect: TriageEffect::Run(command.clone()),
        command,
    };
}

fn post(state: &mut TriageState) -> Vec<TriageEffect> {
    if state.subject.pull.is_none() {
        let text = format!(
            "this review is not of a pull request; to post one: {} review pr NUMBER",
            crate::NAME
        );
        state.message = Some(Message::bad(text));
        return Vec::new();
    }
    let title = "Post this review on its pull request? This goes to the network.".to_owned();
    let command = vec!["post".to_owned(), state.subject.id.clone()];
    state.mode = Mode::Ask {
        title,
        effect: TriageEffect::Run(command.clone()),
        command,
    };
    Vec::new()
}

fn command(name: &str, ids: &[String], rest: &[&str]) -> Vec<String> {
    std::iter::once(name)
        .chain(ids.iter().map(String::as_str))
        .chain(rest.iter().copied())
        .map(str::to_owned)
        .collect()
}

fn edit(state: &mut TriageState, current: usize) -> Vec<TriageEffect> {
    let finding = &state.subject.items[current].finding;
    match &finding.file {
        Some(file) => vec![TriageEffect::Edit {
            file: file.clone(),
            line: finding.line,
        }],
        None => {
            state.message = Some(Message::bad(format!(
                "{} is about the whole change, not a file",
                finding.id
            )));
            Vec::new()
        }
    }
}

fn undo(state: &mut TriageState) -> Vec<TriageEffect> {
    match state.undo.last() {
        Some(last) => vec![TriageEffect::Undo(last.held.clone())],
        None => {
            state.message = Some(Message::bad("no decision to undo since triage was opened"));
            Vec::new()
        }
    }
}

fn prompt(state: &mut TriageState, key: KeyPress) -> Vec<TriageEffect> {
    let Mode::Prompt(prompt) = &mut state.mode else {
        return Vec::new();
    };
    let answer = prompt.press(key, state.subject.today);
    let purpose = prompt.purpose.clone();
    match (answer, purpose) {
        (PromptAnswer::Open, _) => follow_search(state),
        (PromptAnswer::Cancelled, Purpose::Search { before }) => {
            state.filter.search = before;
            state.mode = Mode::Browse;
            state.settle();
        }
        (PromptAnswer::Cancelled, _) | (PromptAnswer::Text(_), Purpose::Search { .. }) => {
            state.mode = Mode::Browse
        }
        (PromptAnswer::Text(reason), _) => {
            state.mode = Mode::Browse;
            let reason = Some(reason).filter(|r| !r.is_empty());
            return vec![decision(
                state,
                &state.targets(),
                Decision::Rejected,
                reason,
                None,
            )];
        }
        (PromptAnswer::Date(until, reason), _) => {
            state.mode = Mode::Browse;
            let reason = Some(reason).filter(|r| !r.is_empty());
            return vec![decision(
                state,
                &state.targets(),
                Decision::Deferred,
                reason,
                Some(until),
            )];
        }
    }
    Vec::new()
}

/// Searches for the current input.
fn follow_search(state: &mut TriageState) {
    if let Mode::Prompt(Prompt {
        purpose: Purpose::Search { .. },
        line,
        ..
    }) = &state.mode
    {
        state.filter.search = line.text().trim().to_lowercase();
        state.settle();
    }
}

fn choose(state: &mut TriageState, at: usize, key: KeyPress) -> Vec<TriageEffect> {
    let choices = filter::choices(&state.subject);
    let last = choices.len().saturating_sub(1);
    let at = match key {
        KeyPress::Char(' ') | KeyPress::Enter => {
            if let Some((choice, _)) = choices.get(at) {
                state.filter.toggle(choice);
            }
            at
        }
        KeyPress::Char('c') => {
            state.filter.chosen.clear();
            at
        }
        KeyPress::Esc | KeyPress::Char('q' | 'f') => {
            state.mode = Mode::Browse;
            state.settle();
            return Vec::new();
        }
        _ => scroll::rows(key, FILTER_PAGE).map_or(at, |by| scroll::moved(at, by, last)),
    };
    state.mode = Mode::Filter(at.min(last));
    state.settle();
    Vec::new()
}

fn help(state: &mut TriageState, top: usize, key: KeyPress) -> Vec<TriageEffect> {
    let most = view::help_rows(state.size).saturating_sub(view::help_room(state.size));
    if matches!(key, KeyPress::Esc | KeyPress::Char('?' | 'q')) {
        state.mode = Mode::Browse;
        return Vec::new();
    }
    let key = if key == KeyPress::Char(' ') {
        KeyPress::PageDown
    } else {
        key
    };
    let by = scroll::rows(key, view::help_room(state.size)).unwrap_or(0);
    state.mode = Mode::Help(scroll::moved(top, by, most));
    Vec::new()
}

fn ask(state: &mut TriageState, key: KeyPress) -> Vec<TriageEffect> {
    let Mode::Ask { effect, .. } = &state.mode else {
        return Vec::new();
    };
    let effect = effect.clone();
    match key {
        KeyPress::Enter | KeyPress::Char('y') => {
            state.mode = Mode::Browse;
            vec![effect]
        }
        KeyPress::Esc | KeyPress::Char('n' | 'q') => {
            state.mode = Mode::Browse;
            Vec::new()
        }
        _ => Vec::new(),
    }
}

/// Handles recorded decisions, and moves to the next pending finding.
fn decided_on(
    state: &mut TriageState,
    decided: &[(String, DecisionEntry)],
    before: Held,
    shared: &[(String, Decision)],
) {
    let mut items = Vec::new();
    let current = state.current;
    let mut said = Vec::new();
    for (fingerprint, entry) in decided {
        let at = state
            .subject
            .items
            .iter()
            .position(|i| i.finding.fingerprint == *fingerprint && !i.is_fixed());
        let Some(i) = at else { continue };
        items.push((i, state.subject.items[i].clone()));
        let item = &mut state.subject.items[i];
        item.finding.disposition = entry.decision.into();
        item.finding.decided = Some(crate::rounds::decide::decision(entry));
        item.entry = Some(entry.clone());
        item.proposal = None;
        let until = entry
            .expires
            .map(|date| format!(" until {date}"))
            .unwrap_or_default();
        said.push(format!(
            "{} {}{until}",
            entry.decision.name(),
            item.finding.id
        ));
    }
    let other = other_shared(shared);
    let shared = if before.is_shared() { ", shared" } else { "" };
    state.undo.push(Undoable {
        held: before,
        items,
        current,
    });
    state.marked.clear();
    let is_more = state.go_pending(true);
    state.settle();
    let rest = if is_more {
        ""
    } else {
        "; no finding is pending any more"
    };
    let said = if said.len() > 4 {
        format!("{} findings decided", said.len())
    } else {
        said.join(", ")
    };
    state.message = Some(match other {
        Some(other) => Message::bad(format!("{said}; {other}")),
        None => Message::good(format!("{said}{shared}{rest}  (u: undo)")),
    });
}

/// Describes the other decisions in the shared file; `None` if there are none.
fn other_shared(shared: &[(String, Decision)]) -> Option<String> {
    let (id, decision) = shared.first()?;
    let more = if shared.len() > 1 {
        format!(" and {} more", shared.len() - 1)
    } else {
        String::new()
    };
    Some(format!(
        "the shared file still has {id} as {}{more}: S, and decide again",
        decision.name()
    ))
}

fn undone(state: &mut TriageState) {
    let Some(last) = state.undo.pop() else { return };
    let names: Vec<String> = last
        .items
        .iter()
        .map(|(_, item)| item.finding.id.clone())
        .collect();
    for (i, item) in last.items {
        if let Some(own) = state.subject.items.get_mut(i) {
            *own = item;
        }
    }
    state.select(last.current);
    state.settle();
    state.message = Some(Message::good(format!("undone: {}", names.join(", "))));
}

fn applied(state: &mut TriageState, ids: &[String], notes: Vec<String>) {
    for item in &mut state.subject.items {
        item.is_applied |= ids.contains(&item.finding.id);
    }
    state.marked.clear();
    let [first, rest @ ..] = &notes[..] else {
        return;
    };
    if rest.len() > 1 {
        state.mode = Mode::Notice(Notice {
            title: "Applied".to_owned(),
            lines: notes,
            hints: Vec::new(),
        });
    } else {
        state.message = Some(Message::good(
            std::iter::once(first)
                .chain(rest)
                .cloned()
                .collect::<Vec<_>>()
                .join("; "),
        ));
    }
}

/// Handles a review that was read again. The cursor stays on its finding. Earlier decisions cannot
/// be undone any more, because another program may have changed them.
fn loaded(state: &mut TriageState, subject: TriageSubject) {
    let current = state.item().map(|item| item.finding.fingerprint.clone());
    let is_same = state.subject.round == subject.round;
    let applied: Vec<String> = state
        .subject
        .items
        .iter()
        .filter(|i| i.is_applied && is_same)
        .map(|i| i.finding.id.clone())
        .collect();
    state.subject = subject;
    for item in &mut state.subject.items {
        item.is_applied = applied.contains(&item.finding.id);
    }
    state.marked.clear();
    state.has_shared_before = state.has_shared();
    state.undo.clear();
    let at = state
        .subject
        .items
        .iter()
        .position(|i| Some(&i.finding.fingerprint) == current.as_ref());
    state.select(at);
    state.settle();
}

#[cfg(test)]
mod tests;
