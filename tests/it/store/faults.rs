//! STO-01, STO-02, STO-03, STO-13, STO-14: the k-th file operation fails, for every k.

use super::kit::{Yard, append, closing, create, day, whole};
use claude_reviewer::error::{Kind, Result};
use claude_reviewer::history::{Act, Faults, Options, Store};
use claude_reviewer::wire::stored::Status;
use rustix::io::Errno;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

/// The operations that fail.
#[derive(Clone, Copy, PartialEq)]
enum When {
    /// Only the k-th.
    Once,
    /// The k-th and all later ones that change something.
    FromThenOn,
}

fn changes(act: Act) -> bool {
    !matches!(
        act,
        Act::Open | Act::Look | Act::List | Act::Read | Act::Lock
    )
}

/// Makes operations fail, counted from 1; the flag is set when one did.
fn failing(k: usize, when: When, errno: Errno) -> (Options, Arc<AtomicBool>) {
    let (count, hit) = (AtomicUsize::new(0), Arc::new(AtomicBool::new(false)));
    let told = hit.clone();
    let faults = Faults::new(move |step| {
        let n = count.fetch_add(1, Ordering::SeqCst) + 1;
        if n == k || when == When::FromThenOn && n > k && changes(step.act) {
            told.store(true, Ordering::SeqCst);
            return Err(io::Error::from(errno));
        }
        Ok(())
    });
    (
        Options {
            faults,
            patience: Duration::from_secs(1),
        },
        hit,
    )
}

/// Makes every operation of a kind fail.
fn all_fail(which: impl Fn(Act, &str) -> bool + Send + Sync + 'static, errno: Errno) -> Options {
    let faults = Faults::new(move |step| {
        if which(step.act, step.name) {
            Err(errno.into())
        } else {
            Ok(())
        }
    });
    Options {
        faults,
        patience: Duration::from_secs(1),
    }
}

/// Returns the number of stored sessions, rounds, responses, closings.
fn extent(store: &Store) -> [usize; 4] {
    let sessions = whole(store);
    let rounds = || sessions.iter().flat_map(|s| &s.rounds);
    [
        sessions.len(),
        rounds().count(),
        rounds().filter(|r| r.response.is_some()).count(),
        sessions
            .iter()
            .filter_map(|s| s.completion.as_ref())
            .map(|c| c.entries.len())
            .sum(),
    ]
}

/// Performs an action with each operation failing in turn: its result must match the stored state.
fn fails_everywhere(act: impl Fn(&Store) -> Result<()>, expected: [usize; 4]) {
    for when in [When::Once, When::FromThenOn] {
        for k in 1.. {
            let yard = Yard::new();
            create(&yard.store(), day(10), 0).unwrap();
            let before = extent(&yard.store());
            let (options, hit) = failing(k, when, Errno::IO);
            let done = Store::open_with(&yard.place(), &options).and_then(|store| act(&store));
            let after = extent(&yard.store());
            match &done {
                Ok(()) => assert_eq!(after, expected, "{k}"),
                // If all later operations fail, the last rename cannot be undone.
                Err(_) if when == When::FromThenOn && after == expected => {}
                Err(e) => assert_eq!(after, before, "{k}: {e:?}"),
            }
            act(&yard.store()).unwrap();
            let again = extent(&yard.store());
            assert!(
                again != before && again[0] <= expected[0] + 1,
                "{k}: {again:?}"
            );
            if !hit.load(Ordering::SeqCst) {
                done.unwrap();
                assert!(k > 20, "only {k} operations");
                break;
            }
        }
    }
}

#[test]
fn sto_01_whichever_step_fails_a_new_session_is_told_as_it_is() {
    fails_everywhere(|store| create(store, day(20), 1).map(drop), [2, 2, 0, 0]);
}

#[test]
fn sto_01_whichever_step_fails_a_round_is_told_as_it_is() {
    let add = |store: &Store| append(store, &super::kit::id("2026-01-10-001"), day(20)).map(drop);
    fails_everywhere(add, [1, 2, 1, 0]);
}

#[test]
fn sto_01_whichever_step_fails_a_closing_is_told_as_it_is() {
    let close = |store: &Store| {
        let id = super::kit::id("2026-01-10-001");
        store
            .complete(&id, closing(Status::Merged), false)
            .map(drop)
    };
    for k in 1.. {
        let yard = Yard::new();
        create(&yard.store(), day(10), 0).unwrap();
        let (options, hit) = failing(k, When::Once, Errno::IO);
        let done = Store::open_with(&yard.place(), &options).and_then(|store| close(&store));
        let closings = extent(&yard.store())[3];
        // A file that replaced another one stays, although the folder may not be on the disk yet.
        assert!(closings == 1 || done.is_err(), "{k}: {done:?}");
        close(&yard.store()).unwrap();
        assert_eq!(extent(&yard.store()), [1, 1, 0, 1], "{k}");
        if !hit.load(Ordering::SeqCst) {
            break;
        }
    }
}

#[test]
fn sto_01_a_failing_disk_is_not_taken_for_damage() {
    for k in 1.. {
        let yard = Yard::new();
        let id = super::kit::full_session(&yard.store());
        let (options, hit) = failing(k, When::Once, Errno::IO);
        if let Ok(Some(store)) = Store::find_with(&yard.place(), &options) {
            let _ = store.list(5);
            let _ = store.session(&id);
            let _ = store.change(&id, 2);
            let _ = store.latest();
            let _ = store.verify(None, None);
        }
        assert!(!yard.path(".corrupt").exists(), "{k}");
        assert_eq!(extent(&yard.store()), [1, 2, 1, 1], "{k}");
        if !hit.load(Ordering::SeqCst) {
            break;
        }
    }
}

#[test]
fn sto_02_a_full_disk_is_told_with_what_to_do() {
    let yard = Yard::new();
    create(&yard.store(), day(10), 0).unwrap();
    let files = yard.files();
    let options = all_fail(|act, _| act == Act::Write, Errno::NOSPC);
    let error = create(&yard.store_with(&options), day(20), 0).unwrap_err();
    assert_eq!(error.kind, Kind::Incomplete);
    assert_eq!(error.message, "the review was not stored");
    assert!(
        error.causes.join(" ").contains("No space left"),
        "{error:?}"
    );
    assert!(
        error
            .hints
            .join(" ")
            .contains("claude-reviewer history prune"),
        "{error:?}"
    );
    assert_eq!(yard.files(), files, "nothing is left of it");
}

#[test]
fn sto_03_a_store_that_may_not_be_written_can_be_read() {
    for errno in [Errno::ROFS, Errno::ACCESS] {
        let yard = Yard::new();
        let id = super::kit::full_session(&yard.store());
        let frozen = all_fail(|act, _| changes(act), errno);
        let error = create(&yard.store_with(&frozen), day(20), 0).unwrap_err();
        assert_eq!(error.kind, Kind::Incomplete);
        assert!(
            error.hints.join(" ").contains("[history] path"),
            "{error:?}"
        );
        let store = Store::find_with(&yard.place(), &frozen).unwrap().unwrap();
        assert_eq!(extent(&store), [1, 2, 1, 1]);
        assert_eq!(store.change(&id, 1).unwrap(), b"+1\n");
        // Without an existing store, none is created.
        let empty = Yard::new();
        assert!(Store::open_with(&empty.place(), &frozen).is_err());
        assert_eq!(empty.files(), Vec::<String>::new());
    }
}

#[test]
fn sto_03_what_is_damaged_in_a_store_that_may_not_be_written_stays_where_it_is() {
    let yard = Yard::new();
    create(&yard.store(), day(10), 0).unwrap();
    std::fs::write(yard.path("sessions/2026-01-10-001/request.json"), "{").unwrap();
    let frozen = all_fail(|act, _| changes(act), Errno::ROFS);
    let history = Store::find_with(&yard.place(), &frozen)
        .unwrap()
        .unwrap()
        .list(5)
        .unwrap();
    assert_eq!(history.damaged.len(), 1);
    assert_eq!(history.damaged[0].moved_to, None);
    assert!(yard.path("sessions/2026-01-10-001/request.json").exists());
}

#[test]
fn sto_13_a_file_system_without_locks_is_told_and_nothing_is_written() {
    for errno in [Errno::NOLCK, Errno::OPNOTSUPP] {
        let yard = Yard::new();
        create(&yard.store(), day(10), 0).unwrap();
        let files = yard.files();
        let options = all_fail(|act, _| act == Act::Lock, errno);
        let error = create(&yard.store_with(&options), day(20), 0).unwrap_err();
        assert!(
            error.causes.join(" ").contains("cannot lock .reviews/lock"),
            "{error:?}"
        );
        assert!(error.hints.join(" ").contains("has no locks"), "{error:?}");
        assert_eq!(yard.files(), files);
    }
}

#[test]
fn sto_13_a_signal_in_between_is_no_failure() {
    let yard = Yard::new();
    let odd = AtomicUsize::new(0);
    let interrupted = move |_: Act, _: &str| odd.fetch_add(1, Ordering::SeqCst).is_multiple_of(2);
    let store = yard.store_with(&all_fail(interrupted, Errno::INTR));
    super::kit::full_session(&store);
    assert_eq!(extent(&yard.store()), [1, 2, 1, 1]);
}

#[test]
fn sto_13_a_rename_across_file_systems_is_told_and_leaves_nothing() {
    let yard = Yard::new();
    let id = create(&yard.store(), day(10), 0).unwrap().id;
    let files = yard.files();
    let store = yard.store_with(&all_fail(|act, _| act == Act::Rename, Errno::XDEV));
    for error in [
        create(&store, day(20), 0).unwrap_err(),
        append(&store, &id, day(20)).unwrap_err(),
    ] {
        assert!(
            error.hints.join(" ").contains("one file system"),
            "{error:?}"
        );
    }
    assert_eq!(yard.files(), files);
    assert_eq!(extent(&yard.store()), [1, 1, 0, 0]);
}

/// Makes fsync fail for names that contain this part.
fn unsynced(part: &'static str) -> Options {
    let is = move |step: &str| {
        step.rsplit('/')
            .next()
            .is_some_and(|name| name.starts_with(part))
    };
    all_fail(move |act, step| act == Act::Sync && is(step), Errno::IO)
}

#[test]
fn sto_14_a_session_that_did_not_reach_the_disk_is_not_called_stored() {
    for part in [
        "changes.diff",
        "request.json",
        "review.json",
        "seal.json",
        "round-1",
        "new-",
        "sessions",
    ] {
        let yard = Yard::new();
        create(&yard.store(), day(10), 0).unwrap();
        let files = yard.files();
        let error = create(&yard.store_with(&unsynced(part)), day(20), 0).unwrap_err();
        assert_eq!(
            (error.kind, error.message.as_str()),
            (Kind::Incomplete, "the review was not stored"),
            "{part}"
        );
        assert!(
            error.causes.join(" ").contains("cannot write to the disk"),
            "{error:?}"
        );
        assert_eq!(yard.files(), files, "{part}");
        assert_eq!(extent(&yard.store()), [1, 1, 0, 0], "{part}");
    }
}

#[test]
fn sto_14_a_round_that_did_not_reach_the_disk_is_not_called_stored() {
    for part in [
        "changes.diff",
        "review.json",
        "seal.json",
        "new-",
        "answer-",
        "round-1",
        "2026-01-10-001",
    ] {
        let yard = Yard::new();
        let id = create(&yard.store(), day(10), 0).unwrap().id;
        let files = yard.files();
        let error = append(&yard.store_with(&unsynced(part)), &id, day(20)).unwrap_err();
        assert_eq!(
            error.message, "the review was not stored as a round of 2026-01-10-001",
            "{part}"
        );
        assert_eq!(yard.files(), files, "{part}");
        assert_eq!(extent(&yard.store()), [1, 1, 0, 0], "{part}");
    }
}
