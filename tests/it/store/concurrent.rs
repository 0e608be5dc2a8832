//! STO-04, STO-05: many processes at once.

use super::kit::{Yard, append, child, create, day, whole};
use std::collections::BTreeSet;

#[test]
fn sto_04_sixteen_processes_store_sixteen_sessions() {
    let yard = Yard::new();
    // None of them finds a store: they make it together.
    let children: Vec<_> = (0..16).map(|_| child("create", yard.top(), &[])).collect();
    for child in children {
        let out = child.wait_with_output().unwrap();
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    }
    let sessions = whole(&yard.store());
    let names: BTreeSet<_> = sessions.iter().map(|s| s.review_id.clone()).collect();
    let expected: BTreeSet<_> = (1..=16).map(|n| format!("2026-01-20-{n:03}")).collect();
    assert_eq!(names, expected);
    let latest: serde_json::Value = serde_json::from_slice(&std::fs::read(yard.path("latest.json")).unwrap()).unwrap();
    assert_eq!(latest["review_id"], "2026-01-20-016");
    assert!(!yard.files().iter().any(|f| f.starts_with("tmp/")), "nothing is left behind");
}

#[test]
fn sto_05_two_rounds_of_one_session_at_once_are_both_kept() {
    for _ in 0..8 {
        let yard = Yard::new();
        create(&yard.store(), day(10), 0).unwrap();
        let children: Vec<_> = (0..4).map(|_| child("append", yard.top(), &[])).collect();
        for child in children {
            let out = child.wait_with_output().unwrap();
            assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        }
        let session = &whole(&yard.store())[0];
        let rounds: Vec<_> = session.rounds.iter().map(|r| r.review.round).collect();
        assert_eq!(rounds, [1, 2, 3, 4, 5]);
        assert_eq!(session.rounds.iter().filter(|r| r.response.is_some()).count(), 4);
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
