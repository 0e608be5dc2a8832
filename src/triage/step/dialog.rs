//! Keys while a dialog is open: an input, the filter, the help, or a question.

use super::super::filter;
use super::super::key::KeyPress;
use super::super::prompt::{Prompt, PromptAnswer, Purpose};
use super::super::scroll;
use super::super::state::{Mode, TriageEffect, TriageState};
use super::super::view;
use super::action::decision;
use crate::finding::Decision;

/// Handles a key of an input: a search, a reason or a date.
pub(super) fn prompt(state: &mut TriageState, key: KeyPress) -> Vec<TriageEffect> {
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
            state.mode = Mode::Browse;
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
pub(super) fn follow_search(state: &mut TriageState) {
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

/// Values of the filter that a page key moves by.
const FILTER_PAGE: usize = 10;

/// Handles a key of the filter.
pub(super) fn choose(state: &mut TriageState, at: usize, key: KeyPress) -> Vec<TriageEffect> {
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

/// Handles a key of the help.
pub(super) fn help(state: &mut TriageState, top: usize, key: KeyPress) -> Vec<TriageEffect> {
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

/// Handles the answer to a question before an effect.
pub(super) fn ask(state: &mut TriageState, key: KeyPress) -> Vec<TriageEffect> {
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
