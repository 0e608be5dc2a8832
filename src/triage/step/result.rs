//! Results of effects: recorded and undone decisions, written replacements, a review that was read
//! again.

use super::super::TriageSubject;
use super::super::state::{Message, Mode, Notice, TriageState, Undoable};
use crate::disposition::DecisionEntry;
use crate::finding::Decision;
use crate::rounds::undo::Held;

/// Handles recorded decisions, and moves to the next pending finding.
pub(super) fn decided_on(
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

/// Handles an undone decision: restores its findings and the cursor.
pub(super) fn undone(state: &mut TriageState) {
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

/// Handles written replacements. Several notes are shown until the user closes them.
pub(super) fn applied(state: &mut TriageState, ids: &[String], notes: Vec<String>) {
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
pub(super) fn loaded(state: &mut TriageState, subject: TriageSubject) {
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
