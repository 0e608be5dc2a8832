//! The state machine of triage: from keys and results to the next state and effects. Pure.

mod action;
mod dialog;
mod result;

use super::filter::FilterChoice;
use super::key::KeyPress;
use super::prompt::Prompt;
use super::scroll;
use super::state::{Leave, Message, Mode, Notice, Pane, TriageEffect, TriageState};
use super::view;
use super::{Size, TriageSubject};
use crate::disposition::{DecisionEntry, SHARED};
use crate::finding::Decision;
use crate::rounds::undo::Held;
use crate::wire::Disposition;
use action::{act, post, undo};
use dialog::{ask, choose, follow_search, help, prompt};
use result::{applied, decided_on, loaded, undone};

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

/// Handles a key by the current mode.
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

/// Handles a key while no dialog is open.
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
                .toggle(&FilterChoice::Status(Disposition::Pending));
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

/// Scrolls a pane by some rows. The list of findings scrolls with its cursor.
fn scroll_pane(state: &mut TriageState, pane: Pane, by: isize) {
    let (top, most) = view::extent(state, pane);
    let to = scroll::moved(top, by, most);
    match pane {
        Pane::Code => state.code_top = Some(to),
        Pane::Details => state.details_top = to,
        Pane::Findings => {}
    }
}

/// Moves the focus to a pane, and shows that pane on a small terminal.
fn focus(state: &mut TriageState, pane: Pane) {
    state.focus = pane;
    if pane != Pane::Findings {
        state.lower = pane;
    }
}

/// Moves the focus forward by some panes.
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

/// Moves to the next or previous pending finding, or says that there is none.
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

#[cfg(test)]
mod tests;
