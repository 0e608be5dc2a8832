//! Actions of triage on findings: decisions, replacements, fixes, posting and undoing.

use super::super::prompt::Prompt;
use super::super::state::{DecisionOrder, Message, Mode, TriageEffect, TriageState};
use crate::finding::Decision;
use crate::wire::Severity;
use jiff::civil::Date;

/// Performs an action on the marked findings, or on the one under the cursor.
pub(super) fn act(state: &mut TriageState, key: char) -> Vec<TriageEffect> {
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

/// Returns the effect that records a decision on findings.
pub(super) fn decision(
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

/// Returns the effect that confirms the proposals on findings.
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

/// Asks before the replacements of findings are written.
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

/// Asks before a model fixes findings.
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

/// Asks before the review is posted on its pull request.
pub(super) fn post(state: &mut TriageState) -> Vec<TriageEffect> {
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

/// Returns the words of a command of this program.
fn command(name: &str, ids: &[String], rest: &[&str]) -> Vec<String> {
    std::iter::once(name)
        .chain(ids.iter().map(String::as_str))
        .chain(rest.iter().copied())
        .map(str::to_owned)
        .collect()
}

/// Returns the effect that opens the file of a finding in the editor.
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

/// Returns the effect that undoes the newest decision.
pub(super) fn undo(state: &mut TriageState) -> Vec<TriageEffect> {
    match state.undo.last() {
        Some(last) => vec![TriageEffect::Undo(last.held.clone())],
        None => {
            state.message = Some(Message::bad("no decision to undo since triage was opened"));
            Vec::new()
        }
    }
}
