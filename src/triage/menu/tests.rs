//! Tests of the menu: a table from situations to entries, and its keys.

use super::super::paper::Theme;
use super::super::view::text;
use super::*;

const SIZE: Size = Size {
    width: 100,
    height: 40,
};

fn stored(id: &str) -> Stored {
    Stored {
        id: id.to_owned(),
        label: "the staged change".to_owned(),
    }
}

fn latest(pending: usize, accepted: &[&str]) -> Latest {
    let accepted = accepted.iter().map(|id| (*id).to_owned()).collect();
    Latest {
        stored: stored("2026-11-24-001"),
        status: Status::NeedsChanges,
        pull: None,
        blocks: pending > 0,
        is_checked_out: false,
        is_without_worktree: true,
        pending,
        accepted,
        proposals: 0,
    }
}

fn ready() -> Repository {
    Repository {
        branch: Some("main".to_owned()),
        is_configured: true,
        has_hooks: true,
        ..Repository::default()
    }
}

fn commands(entries: &[MenuEntry]) -> Vec<String> {
    entries.iter().map(|e| e.command.join(" ")).collect()
}

fn around(repo: Option<Repository>) -> MenuSituation {
    MenuSituation {
        folder: "demo".to_owned(),
        repo,
        ..MenuSituation::default()
    }
}

#[test]
fn entries_follow_from_the_surroundings() {
    for (name, repo, expected) in [
        ("no repository", None, &["doctor", "--help"][..]),
        (
            "clean",
            Some(ready()),
            &["review commit HEAD", "doctor", "--help"],
        ),
        (
            "without a commit",
            Some(Repository {
                is_unborn: true,
                ..ready()
            }),
            &["doctor", "--help"],
        ),
        (
            "changes",
            Some(Repository {
                staged: 2,
                unstaged: 1,
                base: Some("origin/main".to_owned()),
                ..ready()
            }),
            &[
                "review staged",
                "review unstaged --untracked",
                "review branch",
                "doctor",
                "--help",
            ],
        ),
        (
            "new",
            Some(Repository {
                staged: 1,
                is_configured: false,
                has_hooks: false,
                ..ready()
            }),
            &["review staged", "init", "doctor", "--help"],
        ),
        (
            "without hooks",
            Some(Repository {
                staged: 1,
                has_hooks: false,
                ..ready()
            }),
            &["review staged", "install-hooks", "doctor", "--help"],
        ),
        (
            "pending",
            Some(Repository {
                staged: 1,
                latest: Some(latest(3, &[])),
                ..ready()
            }),
            &[
                "triage 2026-11-24-001",
                "review --follow-up 2026-11-24-001",
                "review staged",
                "history",
                "doctor",
                "--help",
            ],
        ),
        (
            "accepted",
            Some(Repository {
                staged: 1,
                latest: Some(latest(0, &["F1", "F3"])),
                ..ready()
            }),
            &[
                "fix F1 F3 --session 2026-11-24-001",
                "review --follow-up 2026-11-24-001",
                "review staged",
                "history",
                "doctor",
                "--help",
            ],
        ),
        (
            "accepted on a pull request",
            Some(Repository {
                latest: Some(Latest {
                    pull: Some(7),
                    ..latest(0, &["F1"])
                }),
                remotes: owned(&["origin"]),
                ..ready()
            }),
            &[
                "post 2026-11-24-001",
                "review pr 7 --remote origin",
                "review commit HEAD",
                "pr list --remote origin",
                "history",
                "doctor",
                "--help",
            ],
        ),
        (
            "accepted on a pull request that is checked out",
            Some(Repository {
                latest: Some(Latest {
                    pull: Some(7),
                    is_checked_out: true,
                    ..latest(0, &["F1"])
                }),
                remotes: owned(&["origin", "fork"]),
                ..ready()
            }),
            &[
                "post 2026-11-24-001",
                "fix F1 --session 2026-11-24-001",
                "review commit HEAD",
                "pr list --remote NAME",
                "history",
                "doctor",
                "--help",
            ],
        ),
        (
            "proposals",
            Some(Repository {
                staged: 1,
                latest: Some(Latest {
                    proposals: 2,
                    ..latest(2, &[])
                }),
                ..ready()
            }),
            &[
                "triage 2026-11-24-001",
                "triage 2026-11-24-001",
                "review --follow-up 2026-11-24-001",
                "review staged",
                "history",
                "doctor",
                "--help",
            ],
        ),
        (
            "decided",
            Some(Repository {
                staged: 1,
                latest: Some(latest(0, &[])),
                ..ready()
            }),
            &[
                "complete 2026-11-24-001 --status approved",
                "review staged",
                "history",
                "doctor",
                "--help",
            ],
        ),
        (
            "decided, and the last round blocks",
            Some(Repository {
                staged: 1,
                latest: Some(Latest {
                    blocks: true,
                    ..latest(0, &[])
                }),
                ..ready()
            }),
            &[
                "review --follow-up 2026-11-24-001",
                "review staged",
                "history",
                "doctor",
                "--help",
            ],
        ),
        (
            "edited, and the last round was of what is staged",
            Some(Repository {
                unstaged: 1,
                latest: Some(Latest {
                    blocks: true,
                    ..latest(0, &[])
                }),
                ..ready()
            }),
            &[
                "review changes --follow-up 2026-11-24-001",
                "review unstaged --untracked",
                "history",
                "doctor",
                "--help",
            ],
        ),
        (
            "closed",
            Some(Repository {
                staged: 1,
                latest: Some(Latest {
                    status: Status::Approved,
                    ..latest(0, &[])
                }),
                open: vec![stored("2026-11-20-002")],
                ..ready()
            }),
            &[
                "review staged",
                "triage 2026-11-20-002",
                "history",
                "doctor",
                "--help",
            ],
        ),
        (
            "several remotes",
            Some(Repository {
                remotes: owned(&["origin", "fork"]),
                ..ready()
            }),
            &[
                "review commit HEAD",
                "pr list --remote NAME",
                "doctor",
                "--help",
            ],
        ),
    ] {
        let entries = entries(&around(repo));
        assert_eq!(commands(&entries), expected, "{name}");
        assert!(
            entries
                .iter()
                .all(|e| !e.title.is_empty() && !e.about.is_empty()),
            "{name}"
        );
    }
}

fn owned(names: &[&str]) -> Vec<String> {
    names.iter().map(|n| (*n).to_owned()).collect()
}

/// Returns the entry about reviews after commits.
fn of(background: Background) -> Option<MenuEntry> {
    let all = entries(&around(Some(Repository {
        background,
        ..ready()
    })));
    all.into_iter().find(|e| e.topic == Topic::Background)
}

#[test]
fn reviews_in_the_background_that_are_not_done_lead_to_their_status() {
    let held = Some("max_cost_per_day = 1 is used up".to_owned());
    for (background, title, about) in [
        (
            Background {
                running: Some("a".repeat(40)),
                ..Background::default()
            },
            "Background review: running",
            "reviews commit aaaaaaaaaaaa",
        ),
        (
            Background {
                waiting: Some(("b".repeat(40), None)),
                ..Background::default()
            },
            "Background review: waiting",
            "commit bbbbbbbbbbbb waits",
        ),
        (
            Background {
                waiting: Some(("b".repeat(40), held)),
                ..Background::default()
            },
            "Background review: waiting",
            "commit bbbbbbbbbbbb waits: max_cost_per_day = 1 is used up",
        ),
        (
            Background {
                failed: Some(("c".repeat(40), "timed out".to_owned())),
                ..Background::default()
            },
            "Background review: failed",
            "commit cccccccccccc: timed out",
        ),
        (
            Background {
                running: Some("a".repeat(40)),
                waiting: Some(("b".repeat(40), None)),
                failed: Some(("c".repeat(40), "timed out".to_owned())),
            },
            "Background review: running, waiting, failed",
            "reviews commit aaaaaaaaaaaa; commit bbbbbbbbbbbb waits; commit cccccccccccc: timed out",
        ),
    ] {
        let entry = of(background).unwrap();
        assert_eq!((entry.title.as_str(), entry.about.as_str()), (title, about));
        assert_eq!(
            (entry.command, entry.act),
            (vec!["status".to_owned()], Act::Run)
        );
    }
    assert_eq!(of(Background::default()), None);
}

#[test]
fn outside_of_a_worktree_the_menu_says_what_to_do_and_offers_no_setup() {
    let theme = Theme {
        color: false,
        unicode: false,
    };
    let hint = "git config --global --add safe.directory /srv/demo".to_owned();
    let unreadable = Outside::Unreadable(
        "/srv/demo belongs to another user \x1b[2J".to_owned(),
        vec![hint],
    );
    for (outside, state, advice) in [
        (Outside::NoRepository, "not a git repository", "git init"),
        (
            Outside::Bare,
            "a bare repository",
            "git worktree add FOLDER",
        ),
        (
            unreadable,
            "the repository cannot be opened",
            "safe.directory",
        ),
    ] {
        let around = MenuSituation {
            folder: "demo".to_owned(),
            outside,
            ..MenuSituation::default()
        };
        assert_eq!(commands(&entries(&around)), ["doctor", "--help"]);
        for size in [
            SIZE,
            Size {
                width: 60,
                height: 18,
            },
        ] {
            let drawn = text(&view::draw(&MenuState::new(around.clone(), size), theme));
            let words = drawn.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(words.contains(state) && words.contains(advice), "{drawn}");
            assert!(
                words.contains("> 1 Check the installation")
                    && words.contains("$ claude-reviewer --help"),
                "{drawn}"
            );
            assert!(!drawn.contains('\x1b'), "{drawn}");
        }
        // The smallest terminal shows the selected entry.
        let drawn = text(&view::draw(&MenuState::new(around, Size::LEAST), theme));
        assert!(drawn.contains("> 1 Check the installation"), "{drawn}");
    }
}

#[test]
fn after_an_action_the_sensible_next_one_is_selected() {
    let pull = Latest {
        pull: Some(7),
        ..latest(0, &["F1"])
    };
    for (ran, entries, expected) in [
        (Topic::Review, entries_after(latest(2, &[])), Topic::Triage),
        (
            Topic::Review,
            entries_after(Latest {
                proposals: 1,
                ..latest(2, &[])
            }),
            Topic::Confirm,
        ),
        (
            Topic::Review,
            entries_after(latest(0, &[])),
            Topic::Complete,
        ),
        (
            Topic::FollowUp,
            entries_after(latest(1, &[])),
            Topic::Triage,
        ),
        (
            Topic::Pull,
            entries_after(Latest {
                pull: Some(7),
                ..latest(1, &[])
            }),
            Topic::Triage,
        ),
        (Topic::Triage, entries_after(latest(0, &["F1"])), Topic::Fix),
        (Topic::Triage, entries_after(pull.clone()), Topic::Post),
        (
            Topic::Triage,
            entries_after(latest(0, &[])),
            Topic::Complete,
        ),
        (
            Topic::Triage,
            entries_after(Latest {
                blocks: true,
                ..latest(0, &[])
            }),
            Topic::FollowUp,
        ),
        (
            Topic::Post,
            entries_after(Latest {
                is_checked_out: true,
                ..pull
            }),
            Topic::Fix,
        ),
        (
            Topic::Fix,
            entries_after(latest(0, &["F1"])),
            Topic::FollowUp,
        ),
        (
            Topic::Doctor,
            entries_after(latest(0, &["F1"])),
            Topic::Doctor,
        ),
        // The review ended in the meantime.
        (
            Topic::Background,
            entries_after(latest(1, &[])),
            Topic::Triage,
        ),
    ] {
        assert_eq!(
            entries[next(&entries, Some(ran))].topic,
            expected,
            "{ran:?}"
        );
    }
    assert_eq!(next(&entries_after(latest(1, &[])), None), 0);
}

/// Returns the entries for a change that is staged after a review.
fn entries_after(latest: Latest) -> Vec<MenuEntry> {
    entries(&around(Some(Repository {
        staged: 1,
        latest: Some(latest),
        ..ready()
    })))
}

fn press_all(mut state: MenuState, keys: &[KeyPress]) -> (MenuState, Vec<MenuEffect>) {
    let mut effects = Vec::new();
    for key in keys {
        let (next, more) = step(state, MenuEvent::Key(*key));
        state = next;
        effects.extend(more);
    }
    (state, effects)
}

fn run(command: &[&str], topic: Topic) -> MenuEffect {
    MenuEffect::Run(command.iter().map(|w| (*w).to_owned()).collect(), topic)
}

#[test]
fn nothing_goes_to_the_network_before_its_entry_is_picked() {
    let repo = Repository {
        remotes: vec!["origin".to_owned(), "fork".to_owned()],
        ..ready()
    };
    let state = MenuState::new(around(Some(repo)), SIZE);
    let (state, effects) = press_all(state, &[KeyPress::Char('2'), KeyPress::Enter]);
    assert_eq!(effects, [], "the remotes are offered first");
    assert_eq!(
        commands(&state.list().unwrap().entries),
        ["pr list --remote origin", "pr list --remote fork"]
    );
    let (state, effects) = press_all(state, &[KeyPress::Down, KeyPress::Enter]);
    assert_eq!(effects, [MenuEffect::Pulls("fork".to_owned())]);
    let pull = Pull {
        number: 12,
        title: "Add \x1b[2J".to_owned(),
        author: "eve".to_owned(),
        is_draft: true,
        head: "topic".to_owned(),
        base: "main".to_owned(),
    };
    let (state, _) = step(
        state,
        MenuEvent::Pulls {
            remote: "fork".to_owned(),
            all: vec![pull],
        },
    );
    let drawn = text(&view::draw(
        &state,
        Theme {
            color: true,
            unicode: true,
        },
    ));
    assert!(
        drawn.contains("#12 Add \\x1b[2J") && drawn.contains("draft"),
        "{drawn}"
    );
    let (state, effects) = press_all(state, &[KeyPress::Enter]);
    assert_eq!(
        effects,
        [run(
            &["review", "pr", "12", "--remote", "fork"],
            Topic::Pull
        )]
    );
    // Escape goes back, and finally quits.
    let (_, effects) = press_all(state, &[KeyPress::Esc, KeyPress::Esc, KeyPress::Esc]);
    assert_eq!(effects, [MenuEffect::Quit(Leave::Done)]);
}

#[test]
fn keys_pick_entries() {
    let state = MenuState::new(
        around(Some(Repository {
            staged: 1,
            ..ready()
        })),
        SIZE,
    );
    let doctor = run(&["doctor"], Topic::Doctor);
    for (keys, expected) in [
        (
            &[KeyPress::Enter][..],
            run(&["review", "staged"], Topic::Review),
        ),
        (&[KeyPress::Char('j'), KeyPress::Enter], doctor.clone()),
        (&[KeyPress::Char('2'), KeyPress::Enter], doctor.clone()),
        (&[KeyPress::End, KeyPress::Up, KeyPress::Enter], doctor),
        (&[KeyPress::Char('?')], run(&["--help"], Topic::Help)),
        (&[KeyPress::Char('q')], MenuEffect::Quit(Leave::Done)),
        (&[KeyPress::Ctrl('c')], MenuEffect::Quit(Leave::Interrupted)),
        (&[KeyPress::Ctrl('z')], MenuEffect::Suspend),
        (&[KeyPress::Char('R')], MenuEffect::Look),
    ] {
        assert_eq!(press_all(state.clone(), keys).1, [expected], "{keys:?}");
    }
    let (tiny, _) = step(
        state,
        MenuEvent::Resize(Size {
            width: 10,
            height: 3,
        }),
    );
    assert_eq!(press_all(tiny, &[KeyPress::Enter]).1, []);
}

#[test]
fn the_menu_is_drawn_at_any_size_with_the_command_of_each_entry() {
    let repo = Repository {
        staged: 1,
        latest: Some(latest(3, &["F1"])),
        ..ready()
    };
    let theme = Theme {
        color: true,
        unicode: true,
    };
    for width in (0..70).step_by(5).chain([1, 39, 41, 200]) {
        for height in (0..34).step_by(3).chain([1, 2, 10, 11, 60]) {
            let state = MenuState::new(around(Some(repo.clone())), Size { width, height });
            let _ = view::draw(&state, theme);
        }
    }
    let drawn = text(&view::draw(
        &MenuState::new(around(Some(repo)), SIZE),
        theme,
    ));
    for part in [
        "$ claude-reviewer triage 2026-11-24-001",
        "$ claude-reviewer review staged",
        "▶ 1 Triage 3 pending findings",
    ] {
        assert!(drawn.contains(part), "{part}: {drawn}");
    }
}
