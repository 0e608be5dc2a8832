//! Tests of the state machine: tables of keys and results.

use super::super::TriageItem;
use super::super::filter::ListRow;
use super::super::sample::{TODAY, entry, finding, item, subject};
use super::super::state::DecisionOrder;
use super::*;
use crate::wire::Severity;

const SIZE: Size = Size {
    width: 100,
    height: 30,
};

fn start() -> TriageState {
    TriageState::new(subject(), SIZE)
}

/// Presses keys in the notation of the help.
fn press_all(mut state: TriageState, keys: &str) -> (TriageState, Vec<TriageEffect>) {
    let mut effects = Vec::new();
    for key in keys.split(' ') {
        let key = match key {
            "Enter" => KeyPress::Enter,
            "Esc" => KeyPress::Esc,
            "Tab" => KeyPress::Tab,
            "BackTab" => KeyPress::BackTab,
            "Space" => KeyPress::Char(' '),
            "Down" => KeyPress::Down,
            "Up" => KeyPress::Up,
            "PageDown" => KeyPress::PageDown,
            "Backspace" => KeyPress::Backspace,
            "Ctrl-C" => KeyPress::Ctrl('c'),
            "Ctrl-L" => KeyPress::Ctrl('l'),
            "Ctrl-U" => KeyPress::Ctrl('u'),
            "Ctrl-Z" => KeyPress::Ctrl('z'),
            key => KeyPress::Char(key.chars().next().unwrap()),
        };
        let (next, more) = step(state, TriageEvent::Key(key));
        state = next;
        effects.extend(more);
    }
    (state, effects)
}

fn id(state: &TriageState) -> &str {
    state.item().map_or("-", |item| &item.finding.id)
}

fn order(
    ids: &[&str],
    decision: Decision,
    reason: Option<&str>,
    until: Option<&str>,
) -> TriageEffect {
    TriageEffect::Decide(DecisionOrder {
        findings: ids
            .iter()
            .map(|id| format!("{:0>32}", id.trim_start_matches('F')))
            .collect(),
        decision,
        reason: reason.map(str::to_owned),
        until: until.map(|date| date.parse().unwrap()),
        is_shared: false,
    })
}

/// Records the decisions of an effect, as the edge does.
fn record(state: TriageState, effect: &TriageEffect) -> TriageState {
    let TriageEffect::Decide(order) = effect else {
        panic!("{effect:?}")
    };
    let decided = order.findings.iter().map(|fingerprint| {
        let all = &state.subject.items;
        let found = all
            .iter()
            .find(|i| i.finding.fingerprint == *fingerprint)
            .unwrap();
        (
            fingerprint.clone(),
            entry(
                &found.finding,
                order.decision,
                order.reason.as_deref().unwrap_or_default(),
            ),
        )
    });
    let decided = decided.collect();
    step(
        state,
        TriageEvent::Decided {
            decided,
            before: Held::default(),
            shared: Vec::new(),
        },
    )
    .0
}

#[test]
fn another_decision_in_the_shared_file_is_named() {
    assert!(
        message_about_shared(&["F2"])
            .ends_with("the shared file still has F2 as rejected: S, and decide again")
    );
    assert!(
        message_about_shared(&["F2", "F3"])
            .ends_with("the shared file still has F2 as rejected and 1 more: S, and decide again")
    );
    assert!(!message_about_shared(&[]).contains("shared"));
}

/// Returns the message after a decision, if the shared file still rejects these findings.
fn message_about_shared(ids: &[&str]) -> String {
    let shared = ids
        .iter()
        .map(|id| ((*id).to_owned(), Decision::Rejected))
        .collect();
    let decided = TriageEvent::Decided {
        decided: Vec::new(),
        before: Held::default(),
        shared,
    };
    step(start(), decided).0.message.unwrap().text
}

fn statuses(state: &TriageState) -> Vec<Disposition> {
    state
        .subject
        .items
        .iter()
        .map(|i| i.finding.disposition)
        .collect()
}

#[test]
fn keys_move_the_cursor_over_the_listed_findings() {
    for (keys, expected) in [
        ("j", "F2"),
        ("Down Down", "F3"),
        ("k", "F1"),
        ("G", "F4"),
        ("G g", "F1"),
        ("n", "F2"),
        ("n n", "F4"),
        ("n n n", "F1"),
        ("N", "F4"),
        ("PageDown", "F4"),
        ("j j j j j j", "F4"),
        ("s j", "F1"),
        ("1 j", "F2"),
        // In another pane the same keys scroll.
        ("Tab j j", "F1"),
        ("Tab Tab Tab j", "F2"),
        ("BackTab BackTab BackTab j", "F2"),
    ] {
        let (state, effects) = press_all(start(), keys);
        assert_eq!((id(&state), effects.len()), (expected, 0), "{keys}");
    }
}

#[test]
fn keys_ask_for_decisions() {
    use Decision::{Accepted, Deferred, Rejected};
    for (keys, expected) in [
        ("a", order(&["F1"], Accepted, None, None)),
        ("j a", order(&["F2"], Accepted, None, None)),
        ("r Enter", order(&["F1"], Rejected, None, None)),
        ("r n o Enter", order(&["F1"], Rejected, Some("no"), None)),
        (
            "j r Enter w Enter",
            order(&["F2"], Rejected, Some("w"), None),
        ),
        (
            "d Enter",
            order(&["F1"], Deferred, None, Some("2027-02-22")),
        ),
        (
            "d Ctrl-U 3 0 d Enter",
            order(&["F1"], Deferred, None, Some("2026-12-24")),
        ),
        (
            "d Ctrl-U x Enter Backspace 1 w Space o k Enter",
            order(&["F1"], Deferred, Some("ok"), Some("2026-12-01")),
        ),
        ("Space Space a", order(&["F1", "F2"], Accepted, None, None)),
        (
            "Space Space Space Esc a",
            order(&["F4"], Accepted, None, None),
        ),
        (
            "G c",
            TriageEffect::Confirm {
                findings: vec![format!("{:0>32}", 4)],
                is_shared: false,
            },
        ),
        ("q", TriageEffect::Quit(Leave::Done)),
        ("Ctrl-C", TriageEffect::Quit(Leave::Interrupted)),
        ("r Ctrl-C", TriageEffect::Quit(Leave::Interrupted)),
        ("Ctrl-Z", TriageEffect::Suspend),
        ("Ctrl-L", TriageEffect::Redraw),
        ("R", TriageEffect::Reload),
        (
            "j e",
            TriageEffect::Edit {
                file: "src/app.py".to_owned(),
                line: Some(5),
            },
        ),
        (
            "j o",
            TriageEffect::Edit {
                file: "src/app.py".to_owned(),
                line: Some(5),
            },
        ),
        ("j p Enter", TriageEffect::Apply(vec!["F2".to_owned()])),
        (
            "x Enter",
            TriageEffect::Run(
                ["fix", "F1", "--session", "2026-11-24-001"]
                    .map(str::to_owned)
                    .into(),
            ),
        ),
        (
            "P y",
            TriageEffect::Run(["post", "2026-11-24-001"].map(str::to_owned).into()),
        ),
    ] {
        let (_, effects) = press_all(start(), keys);
        assert_eq!(effects, [expected], "{keys}");
    }
}

/// Returns whether the decisions of effects are shared.
fn are_shared(effects: &[TriageEffect]) -> Vec<bool> {
    let shared = effects.iter().filter_map(|effect| match effect {
        TriageEffect::Decide(order) => Some(order.is_shared),
        TriageEffect::Confirm { is_shared, .. } => Some(*is_shared),
        _ => None,
    });
    shared.collect()
}

#[test]
fn one_key_decides_whether_decisions_are_shared_and_they_are_not_at_first() {
    for (keys, expected) in [
        ("a", [false].as_slice()),
        ("S a", &[true]),
        ("S r Enter", &[true]),
        ("S d Enter", &[true]),
        ("G S c", &[true]),
        ("S S a", &[false]),
        ("a S a S a", &[false, true, false]),
        // In a prompt, the key is text.
        ("r S Enter a", &[false, false]),
    ] {
        assert_eq!(are_shared(&press_all(start(), keys).1), expected, "{keys}");
    }
    assert_eq!(
        are_shared(&press_all(start().sharing(true), "a S a").1),
        [true, false]
    );
    let (state, _) = press_all(start(), "S");
    assert!(
        state
            .message
            .unwrap()
            .text
            .contains(".claude-reviewer/dispositions.toml")
    );
    let (state, _) = press_all(start(), "S S");
    assert!(state.message.unwrap().text.contains("this machine only"));
}

#[test]
fn keys_that_cannot_act_say_why() {
    for (keys, why) in [
        ("c", "no agent proposes"),
        ("p", "no replacement"),
        ("e", "whole change"),
        ("u", "no decision to undo"),
        ("/ z z z Enter a", "no finding is listed"),
    ] {
        let (state, effects) = press_all(start(), keys);
        let message = state.message.unwrap();
        assert!(
            effects.is_empty() && message.is_error && message.text.contains(why),
            "{keys}: {message:?}"
        );
    }
    // Cancelling a question has no effect.
    for keys in ["r Esc", "d Esc", "j p Esc", "P n", "x q", "j r Enter Enter"] {
        assert_eq!(press_all(start(), keys).1, [], "{keys}");
    }
    let (state, _) = press_all(start(), "j r Enter");
    assert!(
        matches!(&state.mode, Mode::Prompt(p) if p.problem.as_ref().is_some_and(|w| w.contains("reason")))
    );
}

#[test]
fn a_fixed_finding_takes_no_decision() {
    let mut subject = subject();
    subject.items[0].finding.disposition = Disposition::Fixed;
    for key in ["a", "r", "d", "p", "x", "c"] {
        let (state, effects) =
            press_all(TriageState::new(subject.clone(), SIZE), &format!("g {key}"));
        assert!(
            effects.is_empty() && state.message.unwrap().text.contains("fixed already"),
            "{key}"
        );
    }
}

#[test]
fn a_decision_moves_on_to_the_next_pending_finding_and_can_be_undone() {
    let (state, effects) = press_all(start(), "a");
    let state = record(state, &effects[0]);
    assert_eq!(id(&state), "F2");
    assert_eq!(statuses(&state)[0], Disposition::Accepted);
    // F3 is rejected already.
    let (state, effects) = press_all(state, "r w Enter");
    let state = record(state, &effects[0]);
    assert_eq!(id(&state), "F4");
    assert!(state.item().unwrap().proposal.is_some());
    let (state, effects) = press_all(state, "a");
    let state = record(state, &effects[0]);
    assert!(
        state
            .message
            .as_ref()
            .unwrap()
            .text
            .contains("no finding is pending")
    );
    for (expected, at) in [
        (Disposition::Pending, 3),
        (Disposition::Pending, 1),
        (Disposition::Pending, 0),
    ] {
        assert!(state.can_undo());
        let (undoing, effects) = press_all(state.clone(), "u");
        assert_eq!(effects, [TriageEffect::Undo(Held::default())]);
        // After a failure, it can be undone again.
        assert!(undoing.can_undo());
        let _ = (expected, at);
    }
    let (state, _) = step(state, TriageEvent::Undone);
    assert_eq!(
        (id(&state), statuses(&state)[3]),
        ("F4", Disposition::Pending)
    );
    assert!(
        state.subject.items[3].proposal.is_some(),
        "the proposal is back"
    );
    let (state, _) = step(state, TriageEvent::Undone);
    let (state, _) = step(state, TriageEvent::Undone);
    assert_eq!(statuses(&state), statuses(&start()));
    assert!(!state.can_undo());
}

#[test]
fn escape_ends_zoom_marks_search_and_filter_in_turn() {
    let (state, _) = press_all(start(), "t / m Enter Space z");
    assert!(state.is_zoomed && !state.marked.is_empty() && state.filter.search == "m");
    let (state, _) = press_all(state, "Esc");
    assert!(!state.is_zoomed && !state.marked.is_empty());
    let (state, _) = press_all(state, "Esc");
    assert!(state.marked.is_empty() && state.filter.search == "m");
    let (state, _) = press_all(state, "Esc");
    assert!(state.filter.search.is_empty() && !state.filter.chosen.is_empty());
    let (state, effects) = press_all(state, "Esc Esc");
    assert!(state.filter.is_empty() && effects.is_empty());
}

#[test]
fn a_search_follows_the_keys_and_escape_brings_the_last_one_back() {
    let (state, _) = press_all(start(), "/ y a m l");
    assert_eq!((id(&state), state.filter.search.as_str()), ("F2", "yaml"));
    let (state, _) = press_all(state, "Enter / x");
    assert_eq!(state.filter.search, "yamlx");
    assert_eq!(state.current, None);
    let (state, _) = press_all(state, "Esc");
    assert_eq!((id(&state), state.filter.search.as_str()), ("F2", "yaml"));
}

#[test]
fn the_filter_is_chosen_from_values_that_exist() {
    // The first value is the status `pending`.
    let (state, _) = press_all(start(), "f Space Esc");
    assert_eq!(
        state.filter.chosen,
        [FilterChoice::Status(Disposition::Pending)]
    );
    assert_eq!(
        state
            .rows()
            .iter()
            .filter(|r| matches!(r, ListRow::Item(_)))
            .count(),
        3
    );
    let (state, _) = press_all(state, "f c G Enter Esc");
    assert_eq!(
        state.filter.chosen,
        [FilterChoice::File(Some("src/web.js".to_owned()))]
    );
    assert_eq!(id(&state), "F4");
}

#[test]
fn help_and_notices_are_closed_by_escape_and_do_not_act() {
    let (state, effects) = press_all(start(), "? a r d");
    assert!(matches!(state.mode, Mode::Help(_)) && effects.is_empty());
    let (state, _) = press_all(state, "Esc");
    assert_eq!(state.mode, Mode::Browse);
    let notice = Notice {
        title: "Not done".to_owned(),
        lines: vec!["x".to_owned()],
        hints: Vec::new(),
    };
    let (state, _) = step(state, TriageEvent::Notice(notice));
    let (state, effects) = press_all(state, "a");
    assert!(matches!(state.mode, Mode::Notice(_)) && effects.is_empty());
    assert_eq!(press_all(state, "Esc").0.mode, Mode::Browse);
}

#[test]
fn dsp_06_nobody_decides_on_a_terminal_that_is_too_small() {
    let (state, _) = step(
        start(),
        TriageEvent::Resize(Size {
            width: 30,
            height: 5,
        }),
    );
    for keys in ["a", "r x Enter", "d Enter", "j", "P y"] {
        let (next, effects) = press_all(state.clone(), keys);
        assert!(
            effects.is_empty() && next.mode == Mode::Browse && id(&next) == "F1",
            "{keys}"
        );
    }
    assert_eq!(
        press_all(state.clone(), "q").1,
        [TriageEffect::Quit(Leave::Done)]
    );
    let (state, _) = step(state, TriageEvent::Resize(SIZE));
    assert_eq!(press_all(state, "a").1.len(), 1);
}

#[test]
fn pasted_text_goes_into_a_prompt_and_nowhere_else() {
    let (state, effects) = step(start(), TriageEvent::Paste("a\nr\nq".to_owned()));
    assert!(effects.is_empty() && statuses(&state) == statuses(&start()));
    let (state, _) = press_all(state, "r");
    let (state, _) = step(state, TriageEvent::Paste("two\nlines\n".to_owned()));
    assert_eq!(
        press_all(state, "Enter").1,
        [order(&["F1"], Decision::Rejected, Some("two lines"), None)]
    );
}

#[test]
fn a_review_that_was_read_again_keeps_the_cursor() {
    let (state, _) = press_all(start(), "G");
    let mut newer = subject();
    newer
        .items
        .insert(0, item(finding("F9", None, None, Severity::Major, "New")));
    let (state, _) = step(state, TriageEvent::Loaded(Box::new(newer)));
    assert_eq!(id(&state), "F4");
    assert!(!state.can_undo());
    let mut empty = subject();
    empty.items.clear();
    let (state, _) = step(state, TriageEvent::Loaded(Box::new(empty)));
    assert_eq!(id(&state), "-");
    for keys in [
        "j",
        "n",
        "a",
        "r",
        "Space",
        "e",
        "s",
        "f Space Esc",
        "t",
        "/ x Enter",
        "Tab j",
        "z",
        "J K",
    ] {
        assert!(press_all(state.clone(), keys).1.is_empty(), "{keys}");
    }
}

#[test]
fn an_applied_replacement_is_noted() {
    let notes = vec!["applied F2".to_owned(), "gone: F2".to_owned()];
    let (state, _) = step(
        start(),
        TriageEvent::Applied {
            ids: vec!["F2".to_owned()],
            notes,
        },
    );
    assert!(state.subject.items[1].is_applied);
    assert_eq!(state.message.as_ref().unwrap().text, "applied F2; gone: F2");
    assert_eq!(state.subject.today, TODAY);
}

#[test]
fn every_key_in_every_mode_leaves_a_state_that_can_be_drawn() {
    let theme = super::super::paper::Theme {
        color: true,
        unicode: true,
    };
    let keys: Vec<KeyPress> = (' '..='~')
        .map(KeyPress::Char)
        .chain([
            KeyPress::Enter,
            KeyPress::Esc,
            KeyPress::Tab,
            KeyPress::Up,
            KeyPress::Down,
        ])
        .collect();
    let mut seed = 3_u64;
    let mut state = start();
    for _ in 0..3_000 {
        seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let at = usize::try_from(seed >> 40).unwrap();
        let input = match at % 40 {
            0 => TriageEvent::Resize(Size {
                width: u16::try_from(at % 211).unwrap(),
                height: u16::try_from(at % 61).unwrap(),
            }),
            1 => TriageEvent::Undone,
            _ => TriageEvent::Key(keys[at % keys.len()]),
        };
        let (next, effects) = step(state, input);
        state = next;
        if let Some(effect @ TriageEffect::Decide(_)) = effects.first() {
            state = record(state, effect);
        }
        if at % 7 == 0 {
            let _ = view::draw(&state, theme);
        }
    }
}

#[test]
fn only_a_review_of_a_pull_request_is_posted() {
    let (state, effects) = press_all(start(), "P");
    assert!(effects.is_empty() && matches!(state.mode, Mode::Ask { .. }));
    let staged = TriageState::new(
        TriageSubject {
            pull: None,
            ..subject()
        },
        SIZE,
    );
    let (state, effects) = press_all(staged, "P");
    assert!(effects.is_empty() && matches!(state.mode, Mode::Browse));
    assert!(
        state
            .message
            .unwrap()
            .text
            .contains("claude-reviewer review pr NUMBER")
    );
}

#[test]
fn a_waived_finding_is_not_pending() {
    let mut all = subject();
    let waiver = crate::wire::Waiver {
        reason: "agreed".to_owned(),
        actor: "Dana".to_owned(),
        link: None,
    };
    let before = pending(&all);
    let open = all.items.iter().position(TriageItem::is_pending).unwrap();
    all.items[open].finding.waived = Some(waiver);
    assert_eq!(pending(&all), before - 1);
    assert!(!all.items[open].has_status(Disposition::Pending));
}

/// Returns the number of pending findings.
fn pending(subject: &TriageSubject) -> usize {
    subject.items.iter().filter(|i| i.is_pending()).count()
}
