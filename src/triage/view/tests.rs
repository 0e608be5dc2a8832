//! Drawn screens as text: `fixtures/triage` has the screens. `UPDATE=1 cargo test --lib triage::`
//! rewrites them.

use super::super::key::KeyPress;
use super::super::sample::{files, finding, item, subject};
use super::super::state::Notice;
use super::super::step::{TriageEvent, step};
use super::*;
use crate::env::Env;
use std::path::Path;

const THEME: Theme = Theme {
    color: true,
    unicode: true,
};
const SIZES: [Size; 3] = [
    Size {
        width: 60,
        height: 18,
    },
    Size {
        width: 80,
        height: 24,
    },
    Size {
        width: 200,
        height: 50,
    },
];

fn press(state: TriageState, keys: &[KeyPress]) -> TriageState {
    keys.iter()
        .fold(state, |state, key| step(state, TriageEvent::Key(*key)).0)
}

fn sized(state: TriageState, size: Size) -> TriageState {
    step(state, TriageEvent::Resize(size)).0
}

/// Compares a screen with the recorded one.
#[track_caller]
fn compare(name: &str, buffer: &Buffer) {
    let actual = text(buffer);
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("fixtures/triage")
        .join(format!("{name}.txt"));
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    if actual != expected {
        let is_update = Env::of_process().unwrap().var("UPDATE") == Some("1");
        assert!(
            is_update,
            "{name} differs; UPDATE=1 cargo test --lib triage:: rewrites it\n{actual}"
        );
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, actual).unwrap();
    }
}

#[test]
fn screens_are_as_recorded() {
    let cursor = [KeyPress::Char('j')];
    for size in SIZES {
        let state = press(TriageState::new(subject(), size), &cursor);
        compare(&name("browse", size), &draw(&state, THEME));
        let proposal = press(state.clone(), &[KeyPress::Char('G'), KeyPress::Char('3')]);
        compare(&name("proposal", size), &draw(&proposal, THEME));
        compare(
            &name("reject", size),
            &draw(
                &press(state.clone(), &[KeyPress::Char('r'), KeyPress::Enter]),
                THEME,
            ),
        );
        compare(
            &name("filter", size),
            &draw(
                &press(state.clone(), &[KeyPress::Char('f'), KeyPress::Char(' ')]),
                THEME,
            ),
        );
        compare(
            &name("help", size),
            &draw(&press(state.clone(), &[KeyPress::Char('?')]), THEME),
        );
        compare(
            &name("apply", size),
            &draw(&press(state.clone(), &[KeyPress::Char('p')]), THEME),
        );
        let notice = Notice {
            title: "Not done".to_owned(),
            lines: vec![
                "error: the lines of F2 at src/app.py:5 have changed since the review".to_owned(),
            ],
            hints: vec![
                "review again, and decide on the new findings: claude-reviewer review".to_owned(),
            ],
        };
        compare(
            &name("notice", size),
            &draw(&step(state, TriageEvent::Notice(notice)).0, THEME),
        );
    }
}

/// Returns the name of the recorded screen.
fn name(what: &str, size: Size) -> String {
    format!("{what}-{}x{}", size.width, size.height)
}

#[test]
fn the_first_line_says_that_decisions_are_shared_at_every_size_and_over_a_message() {
    for size in SIZES {
        let state = TriageState::new(subject(), size);
        assert!(!first_line(&state).contains("sharing"), "{size:?}");
        let state = press(state, &[KeyPress::Char('S')]);
        assert!(
            state.message.is_some() && first_line(&state).contains("sharing  3 pending"),
            "{size:?}"
        );
        let state = press(state, &[KeyPress::Char('j')]);
        assert!(
            first_line(&state).contains("sharing  3 pending"),
            "{size:?}"
        );
        assert!(
            !first_line(&press(state, &[KeyPress::Char('S')])).contains("sharing"),
            "{size:?}"
        );
    }
}

fn first_line(state: &TriageState) -> String {
    text(&draw(state, THEME))
        .lines()
        .next()
        .unwrap_or_default()
        .to_owned()
}

#[test]
fn ascii_is_enough() {
    let theme = Theme {
        color: false,
        unicode: false,
    };
    for size in SIZES {
        let mut state = press(TriageState::new(subject(), size), &[KeyPress::Char('j')]);
        for key in ['r', 'f', '?', 'p', 'P', 'z'] {
            let drawn = text(&draw(&press(state.clone(), &[KeyPress::Char(key)]), theme));
            assert!(drawn.is_ascii(), "{key}:\n{drawn}");
        }
        state = press(state, &[KeyPress::Char('3')]);
        assert!(text(&draw(&state, theme)).is_ascii());
    }
}

#[test]
fn without_colour_no_cell_has_one_and_the_cursor_is_still_seen() {
    let theme = Theme {
        color: false,
        unicode: true,
    };
    let buffer = draw(&TriageState::new(subject(), SIZES[1]), theme);
    let cells = buffer.content();
    assert!(
        cells
            .iter()
            .all(|c| c.fg == ratatui::style::Color::Reset && c.bg == ratatui::style::Color::Reset)
    );
    assert!(
        cells
            .iter()
            .any(|c| c.modifier.contains(Modifier::REVERSED))
    );
}

#[test]
fn dsp_06_a_terminal_of_any_size_is_drawn_on_and_a_tiny_one_says_so() {
    let state = press(
        TriageState::new(subject(), SIZES[1]),
        &[KeyPress::Char('j')],
    );
    for width in (0..70)
        .step_by(5)
        .chain([1, 39, 41, 99, 100, 101, 149, 150, 151, 400])
    {
        for height in (0..34).step_by(3).chain([1, 2, 10, 13, 14, 29, 31, 100]) {
            let size = Size { width, height };
            for key in ['z', 'f', '?', 'r', 'p', '3'] {
                let state = press(sized(state.clone(), size), &[KeyPress::Char(key)]);
                let buffer = draw(&state, THEME);
                assert_eq!((buffer.area.width, buffer.area.height), (width, height));
            }
        }
    }
    let tiny = text(&draw(
        &sized(
            state,
            Size {
                width: 39,
                height: 9,
            },
        ),
        THEME,
    ));
    assert!(tiny.contains("39x9") && tiny.contains("40x10"), "{tiny}");
}

#[test]
fn dsp_06_hostile_text_stays_in_its_pane_and_is_inert() {
    let hostile =
        "\x1b[2J\x1b]0;owned\x07\u{202e}gnp\u{200b}\t日本語e\u{301}👩\u{200d}👧\r\n##[error]x";
    let mut subject = subject();
    let mut found = finding("F2", Some(hostile), Some(1), Severity::Major, hostile);
    for text in [
        &mut found.message,
        &mut found.quote,
        &mut found.rule_id,
        &mut found.origin,
    ] {
        *text = hostile.to_owned();
    }
    found.failure = Some(hostile.to_owned());
    found.replacement = Some(hostile.to_owned());
    found.evidence = vec![hostile.to_owned()];
    found.references = vec![hostile.to_owned()];
    subject.items = vec![item(found)];
    subject.label = hostile.to_owned();
    subject.files = files(
        "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -0,0 +1,2 @@\n+\u{1b}[2J\u{9b}1m \u{202e} 日本\n+plain\n",
    );
    let mut hidden = subject.clone();
    hidden.items[0].finding.file = Some("x".to_owned());
    for subject in [subject, hidden] {
        for size in SIZES {
            for keys in [
                &[][..],
                &[KeyPress::Char('f')],
                &[KeyPress::Char('r')],
                &[KeyPress::Char('p')],
                &[KeyPress::Char('3'), KeyPress::Char('z')],
            ] {
                let buffer = draw(&press(TriageState::new(subject.clone(), size), keys), THEME);
                for cell in buffer.content() {
                    let symbol = cell.symbol();
                    assert!(
                        !symbol.chars().any(crate::untrusted::is_active),
                        "{symbol:?}"
                    );
                    assert!(crate::untrusted::width(symbol) <= 2, "{symbol:?}");
                }
                // Each line is as wide as the screen, so no text was shifted.
                let lines = text(&buffer);
                assert_eq!(lines.lines().count(), usize::from(size.height));
                assert!(
                    lines
                        .lines()
                        .all(|l| crate::untrusted::width(l) <= usize::from(size.width)),
                    "{lines}"
                );
            }
        }
    }
}

#[test]
fn a_long_list_keeps_the_cursor_in_sight() {
    let mut subject = subject();
    let items = (1..=500).map(|n| {
        let file = format!("dir/{}.py", n % 7);
        item(finding(
            &format!("F{n}"),
            Some(&file),
            Some(1),
            Severity::Minor,
            "Title",
        ))
    });
    subject.items = items.collect();
    let mut state = TriageState::new(subject, SIZES[1]);
    for _ in 0..3 {
        state = press(state, &[KeyPress::PageDown]);
        let buffer = draw(&state, THEME);
        let is_seen = buffer
            .content()
            .iter()
            .any(|c| c.modifier.contains(Modifier::REVERSED));
        assert!(is_seen, "{}", text(&buffer));
    }
    let last = press(state, &[KeyPress::Char('G')]);
    assert!(text(&draw(&last, THEME)).contains(&last.item().unwrap().finding.id));
}
