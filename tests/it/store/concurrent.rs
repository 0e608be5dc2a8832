//! STO-04, STO-05: many processes at once.

use super::kill::CONFLICTS;
use super::kit::{Yard, append, child, closing, create, day, full_session, whole};
use claude_reviewer::history::{Act, Faults, Options};
use claude_reviewer::wire::stored::Status;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

#[test]
fn sto_04_sixteen_processes_store_sixteen_sessions() {
    let yard = Yard::new();
    // None of them finds a store: they create it at the same time.
    let children: Vec<_> = (0..16).map(|_| child("create", yard.top(), &[])).collect();
    for child in children {
        let out = child.wait_with_output().unwrap();
        assert!(
            out.status.success(),
            "{}",
            String::from_utf8_lossy(&out.stderr)
        );
    }
    let sessions = whole(&yard.store());
    let names: BTreeSet<_> = sessions.iter().map(|s| s.review_id.clone()).collect();
    let expected: BTreeSet<_> = (1..=16).map(|n| format!("2026-01-20-{n:03}")).collect();
    assert_eq!(names, expected);
    let latest: serde_json::Value =
        serde_json::from_slice(&std::fs::read(yard.path("latest.json")).unwrap()).unwrap();
    assert_eq!(latest["review_id"], "2026-01-20-016");
    assert!(
        !yard.files().iter().any(|f| f.starts_with("tmp/")),
        "nothing is left behind"
    );
}

/// Stores a round from several processes at once; returns how many succeeded, when all others
/// reported the conflict.
#[track_caller]
fn at_once(yard: &Yard, processes: usize, vars: &[(&str, &str)]) -> usize {
    let children: Vec<_> = (0..processes)
        .map(|_| child("append-at-once", yard.top(), vars))
        .collect();
    let outs: Vec<_> = children
        .into_iter()
        .map(|c| c.wait_with_output().unwrap())
        .collect();
    for out in &outs {
        assert!(
            matches!(out.status.code(), Some(0 | CONFLICTS)),
            "{}",
            String::from_utf8_lossy(&out.stderr)
        );
    }
    outs.iter().filter(|o| o.status.success()).count()
}

/// Expects a session with this number of rounds, each except the last with its response, and
/// nothing else.
#[track_caller]
fn expect_rounds(yard: &Yard, count: usize) {
    let session = &whole(&yard.store())[0];
    let rounds: Vec<_> = session
        .rounds
        .iter()
        .map(|r| r.review.round as usize)
        .collect();
    assert_eq!(rounds, (1..=count).collect::<Vec<_>>());
    let answered: Vec<_> = session
        .rounds
        .iter()
        .filter_map(|r| r.response.as_ref())
        .map(|r| r.round as usize)
        .collect();
    assert_eq!(answered, (1..count).collect::<Vec<_>>());
    assert!(
        !yard.files().iter().any(|f| f.starts_with("tmp/")),
        "nothing is left behind"
    );
}

#[test]
fn sto_05_of_several_rounds_at_once_each_is_the_next_one_or_told_to_be_overtaken() {
    for _ in 0..8 {
        let yard = Yard::new();
        create(&yard.store(), day(10), 0).unwrap();
        let stored = at_once(&yard, 4, &[]);
        assert!(stored > 0);
        expect_rounds(&yard, 1 + stored);
    }
}

#[test]
fn sto_05_of_several_rounds_that_follow_the_same_one_one_is_stored() {
    for after in ["1", "2"] {
        let yard = Yard::new();
        let id = create(&yard.store(), day(10), 0).unwrap().id;
        append(&yard.store(), &id, day(10)).unwrap();
        let stored = at_once(&yard, 4, &[("STORE_AFTER", after)]);
        assert_eq!(stored, usize::from(after == "2"));
        expect_rounds(&yard, 2 + stored);
    }
}

#[test]
fn readers_see_whole_sessions_while_others_write() {
    let yard = Yard::new();
    create(&yard.store(), day(20), 0).unwrap();
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for n in 0..60 {
                let store = yard.store();
                match n % 3 {
                    0 => drop(create(&store, day(20), 0).unwrap()),
                    1 => drop(append(&store, &store.latest().unwrap().unwrap(), day(20)).unwrap()),
                    _ => drop(store.prune(4, day(20)).unwrap()),
                }
            }
        });
        let reader = scope.spawn(|| {
            let mut seen = 0;
            while !done.load(std::sync::atomic::Ordering::SeqCst) {
                let history = yard.store().list(3).unwrap();
                assert!(history.damaged.is_empty(), "{:?}", history.damaged);
                for checked in yard.store().verify(None, None).unwrap() {
                    assert!(checked.edits.is_empty(), "{checked:?}");
                }
                seen += history.sessions.len();
            }
            seen
        });
        let wrote = writer.join();
        done.store(true, std::sync::atomic::Ordering::SeqCst);
        assert!(reader.join().unwrap() > 0);
        wrote.unwrap();
    });
}

/// Calls `f` before the given file operation of a store, counted from 0.
fn before(step: usize, f: impl Fn() + Send + Sync + 'static) -> (Options, Arc<AtomicUsize>) {
    let steps = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&steps);
    let faults = Faults::new(move |_| {
        if counted.fetch_add(1, Ordering::SeqCst) == step {
            f();
        }
        Ok(())
    });
    (
        Options {
            faults,
            ..Options::default()
        },
        steps,
    )
}

/// Returns options for a store that removes at most this number of files and folders.
fn tired(removals: usize) -> Options {
    let left = AtomicUsize::new(removals);
    let faults = Faults::new(move |step| {
        let over = || {
            left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| n.checked_sub(1))
                .is_err()
        };
        if step.act == Act::Remove && over() {
            Err(std::io::Error::other("killed"))
        } else {
            Ok(())
        }
    });
    Options {
        faults,
        ..Options::default()
    }
}

#[test]
fn a_reader_that_a_removal_overtakes_sees_the_whole_session_or_none() {
    for removals in [0, 1, 3, usize::MAX] {
        for step in 0.. {
            let yard = Yard::new();
            let id = full_session(&yard.store());
            let stored = yard.store().session(&id).unwrap();
            let place = yard.place();
            let (options, steps) = before(step, move || {
                let _ = claude_reviewer::history::Store::open_with(&place, &tired(removals))
                    .unwrap()
                    .prune(0, day(31));
            });
            let store = yard.store_with(&options);
            let opened = steps.load(Ordering::SeqCst);
            match store.session(&id) {
                Ok(session) => assert_eq!(session, stored, "step {step}"),
                Err(e) => assert_eq!(
                    e.message,
                    format!("review {id} not found"),
                    "step {step}: {e:?}"
                ),
            }
            let read = steps.load(Ordering::SeqCst);
            if step < opened {
                continue;
            }
            let reads: [fn(
                &claude_reviewer::history::Store,
                &claude_reviewer::wire::stored::Session,
            ); 2] = [
                |store, stored| {
                    let history = store.list(9).unwrap();
                    assert_eq!(history.damaged, []);
                    let seen: Vec<_> = history
                        .sessions
                        .iter()
                        .map(|s| (s.status, s.rounds, &s.head))
                        .collect();
                    assert!(
                        seen.is_empty() || seen == [(stored.status, 2, &stored.head)],
                        "{seen:?}"
                    );
                },
                |store, stored| {
                    for checked in store.verify(None, None).unwrap() {
                        assert_eq!(checked.edits, []);
                        assert_eq!(
                            (checked.rounds, checked.head.as_ref()),
                            (2, Some(&stored.head))
                        );
                    }
                },
            ];
            for read in reads {
                let yard = Yard::new();
                let id = full_session(&yard.store());
                let stored = yard.store().session(&id).unwrap();
                let place = yard.place();
                let (options, _) = before(step, move || {
                    let store =
                        claude_reviewer::history::Store::open_with(&place, &tired(removals))
                            .unwrap();
                    let _ = store.prune(0, day(31));
                });
                read(&yard.store_with(&options), &stored);
            }
            if step > read {
                break;
            }
        }
    }
}

#[test]
fn a_reader_that_a_round_and_a_closing_overtake_sees_one_state_of_the_session() {
    for step in 0.. {
        let yard = Yard::new();
        let id = create(&yard.store(), day(31), 1).unwrap().id;
        let place = yard.place();
        let (options, steps) = before(step, move || {
            let store = claude_reviewer::history::Store::open(&place).unwrap();
            append(&store, &id, day(31)).unwrap();
            store
                .complete(&id, closing(Status::Approved), false)
                .unwrap();
        });
        let store = yard.store_with(&options);
        for checked in store.verify(None, None).unwrap() {
            assert_eq!(checked.edits, [], "step {step}");
        }
        let verified = steps.load(Ordering::SeqCst);
        if step > verified {
            break;
        }
        for listed in [true, false] {
            let yard = Yard::new();
            let id = create(&yard.store(), day(31), 1).unwrap().id;
            let place = yard.place();
            let (options, _) = before(step, move || {
                let store = claude_reviewer::history::Store::open(&place).unwrap();
                append(&store, &id, day(31)).unwrap();
                store
                    .complete(&id, closing(Status::Approved), false)
                    .unwrap();
            });
            let store = yard.store_with(&options);
            let seen = if listed {
                let history = store.list(9).unwrap();
                assert_eq!(history.damaged, []);
                (history.sessions[0].status, history.sessions[0].rounds)
            } else {
                let session = store.session(&id).unwrap();
                (session.status, session.rounds.len() as u32)
            };
            let states = [
                (Status::NeedsChanges, 1),
                (Status::InProgress, 2),
                (Status::Approved, 2),
            ];
            assert!(states.contains(&seen), "step {step}: {seen:?}");
        }
    }
}
