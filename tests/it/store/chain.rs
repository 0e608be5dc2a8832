//! Tests of the hash chain: an edit to a stored round is found, and the file is named.

use super::kit::{Yard, append, closing, create, day, fix, fixed_session, id};
use claude_reviewer::history::{Checked, Progress, SessionId};
use claude_reviewer::wire::fixing::{Fixes, StoredFix};
use claude_reviewer::wire::stored::{Seal, Status};
use std::collections::BTreeSet;

/// A modification of a session's folder.
type Harm = fn(&std::path::Path);

fn check(yard: &Yard, session: &SessionId) -> Checked {
    yard.store().verify(Some(session), None).unwrap().remove(0)
}

/// Creates a session of two rounds with a response, fixes and closings, and returns its files.
fn session() -> (Yard, SessionId, Vec<String>) {
    let yard = Yard::new();
    let session = fixed_session(&yard.store());
    let prefix = format!("sessions/{session}/");
    let files: Vec<_> = yard
        .files()
        .iter()
        .filter_map(|f| f.strip_prefix(&prefix).map(str::to_owned))
        .collect();
    assert_eq!(files.len(), 10);
    (yard, session, files)
}

#[test]
fn what_was_not_edited_is_found_whole() {
    let (yard, session, _) = session();
    let checked = check(&yard, &session);
    assert_eq!((checked.edits.len(), checked.rounds), (0, 2));
    assert_eq!(
        checked.head,
        Some(yard.store().session(&session).unwrap().head)
    );
}

#[test]
fn a_flipped_bit_in_any_byte_of_any_file_is_found_and_its_file_is_named() {
    let (yard, session, files) = session();
    for file in files {
        let path = yard.path(&format!("sessions/{session}")).join(&file);
        let text = std::fs::read(&path).unwrap();
        for at in 0..text.len() {
            let mut flipped = text.clone();
            flipped[at] ^= 1 << (at % 7);
            std::fs::write(&path, &flipped).unwrap();
            let checked = check(&yard, &session);
            let named = checked.edits.iter().any(|e| e.file == file);
            // The version of a closing or of fixes has no seal: a higher one counts as that of a
            // newer program, and is rejected.
            let is_alone = ["complete.json", "fixes.json"].contains(&file.as_str());
            let newer = checked
                .newer
                .as_ref()
                .is_some_and(|why| is_alone && why.starts_with(&file));
            let named = named || newer && text[at].is_ascii_digit() && flipped[at] > text[at];
            assert!(named, "byte {at} of {file}: {:?}", checked.edits);
        }
        std::fs::write(&path, &text).unwrap();
        assert_eq!(check(&yard, &session).edits, []);
    }
}

#[test]
fn white_space_that_changes_no_meaning_is_an_edit_too() {
    let (yard, session, files) = session();
    for file in files.iter().filter(|f| f.ends_with(".json")) {
        let path = yard.path(&format!("sessions/{session}")).join(file);
        let text = std::fs::read_to_string(&path).unwrap();
        for edited in [
            format!("{text}\n"),
            text.replacen("\": ", "\":  ", 1),
            text.trim_end().to_owned(),
        ] {
            std::fs::write(&path, edited).unwrap();
            assert!(
                check(&yard, &session).edits.iter().any(|e| e.file == *file),
                "{file}"
            );
        }
        std::fs::write(&path, &text).unwrap();
    }
}

#[test]
fn the_round_that_was_edited_is_named_and_no_other() {
    let yard = Yard::new();
    let session = create(&yard.store(), day(10), 0).unwrap().id;
    for _ in 0..3 {
        append(&yard.store(), &session, day(10)).unwrap();
    }
    let path = yard.path("sessions/2026-01-10-001/round-2/review.json");
    let text = std::fs::read_to_string(&path)
        .unwrap()
        .replace("nothing blocks", "all is well");
    std::fs::write(&path, text).unwrap();
    let edits = check(&yard, &session).edits;
    let [edit] = edits.as_slice() else {
        panic!("{edits:?}")
    };
    assert_eq!(
        (edit.round, edit.file.as_str()),
        (Some(2), "round-2/review.json")
    );
    assert_eq!(edit.why, "it was modified");
}

#[test]
fn a_response_is_reported_for_the_round_whose_seal_covers_it() {
    const FILE: &str = "round-1/response.json";
    let edits: [Harm; 4] = [
        |path| std::fs::write(path, "{").unwrap(),
        |path| std::fs::write(path, "").unwrap(),
        |path| std::fs::remove_file(path).unwrap(),
        |path| {
            std::fs::remove_file(path).unwrap();
            std::fs::create_dir(path).unwrap();
        },
    ];
    for (n, edit) in edits.iter().enumerate() {
        let (yard, session, _) = session();
        edit(&yard.path(&format!("sessions/{session}/{FILE}")));
        let mut edits = check(&yard, &session).edits;
        edits.retain(|e| e.file == FILE);
        assert!(!edits.is_empty(), "edit {n}");
        assert!(
            edits.iter().all(|e| e.round == Some(2)),
            "edit {n}: {edits:?}"
        );
    }
}

#[test]
fn files_that_come_or_go_are_found() {
    let cases: [(&str, Harm); 8] = [
        ("round-1/response.json", |s| {
            std::fs::remove_file(s.join("round-1/response.json")).unwrap();
        }),
        ("round-2/changes.diff", |s| {
            std::fs::remove_file(s.join("round-2/changes.diff")).unwrap();
        }),
        ("changes.diff", |s| {
            std::fs::remove_file(s.join("changes.diff")).unwrap();
        }),
        ("round-2/seal.json", |s| {
            std::fs::remove_file(s.join("round-2/seal.json")).unwrap();
        }),
        ("notes.txt", |s| {
            std::fs::write(s.join("notes.txt"), "").unwrap();
        }),
        ("round-1/notes.txt", |s| {
            std::fs::write(s.join("round-1/notes.txt"), "").unwrap();
        }),
        ("round-1", |s| {
            std::fs::remove_dir_all(s.join("round-1")).unwrap();
        }),
        ("round-3", |s| {
            std::fs::create_dir(s.join("round-4")).unwrap();
        }),
    ];
    for (file, edit) in cases {
        let (yard, session, _) = session();
        edit(&yard.path(&format!("sessions/{session}")));
        let edits = check(&yard, &session).edits;
        assert!(edits.iter().any(|e| e.file == file), "{file}: {edits:?}");
    }
}

#[test]
fn an_answer_that_was_slipped_in_is_found() {
    let yard = Yard::new();
    let store = yard.store();
    let session = create(&store, day(10), 1).unwrap().id;
    let name = session.to_string();
    store
        .append(&session, day(10), 1, &super::kit::change(""), None, &|n| {
            super::kit::review(&name, n, 0)
        })
        .unwrap();
    let answer = serde_json::to_vec(&super::kit::response(&name, 1)).unwrap();
    std::fs::write(
        yard.path("sessions/2026-01-10-001/round-1/response.json"),
        answer,
    )
    .unwrap();
    let edits = check(&yard, &session).edits;
    assert!(
        edits
            .iter()
            .any(|e| e.file == "round-1/response.json" && e.why.contains("was not there")),
        "{edits:?}"
    );
}

#[test]
fn a_noted_head_is_found_again_however_the_session_went_on() {
    let yard = Yard::new();
    let store = yard.store();
    let first = create(&store, day(10), 0).unwrap();
    let second = append(&store, &first.id, day(10)).unwrap();
    let approved = store
        .complete(&first.id, closing(Status::Approved), false)
        .unwrap()
        .head;
    let merged = store
        .complete(&first.id, closing(Status::Merged), false)
        .unwrap()
        .head;
    let heads = [first.head.as_str(), &second.head, &approved, &merged];
    assert_eq!(heads.iter().collect::<BTreeSet<_>>().len(), 4);
    for head in heads {
        assert_eq!(
            store.verify(Some(&first.id), Some(head)).unwrap()[0].edits,
            []
        );
        let upper = head.to_uppercase();
        assert_eq!(
            store.verify(Some(&first.id), Some(&upper)).unwrap()[0].edits,
            []
        );
    }
    assert_eq!(
        store.verify(Some(&first.id), None).unwrap()[0]
            .head
            .as_deref(),
        Some(merged.as_str())
    );
}

#[test]
fn a_session_that_was_written_anew_as_a_whole_lacks_the_noted_head() {
    let yard = Yard::new();
    let noted = create(&yard.store(), day(10), 1).unwrap().head;
    // Another store with a passing review, whose seals are valid there.
    let other = Yard::new();
    create(&other.store(), day(10), 0).unwrap();
    std::fs::remove_dir_all(yard.path("sessions/2026-01-10-001")).unwrap();
    std::fs::rename(
        other.path("sessions/2026-01-10-001"),
        yard.path("sessions/2026-01-10-001"),
    )
    .unwrap();
    let session = id("2026-01-10-001");
    assert_eq!(check(&yard, &session).edits, []);
    let edits = yard
        .store()
        .verify(Some(&session), Some(&noted))
        .unwrap()
        .remove(0)
        .edits;
    assert!(edits[0].why.contains("never had the head"), "{edits:?}");
}

#[test]
fn rounds_cannot_be_taken_from_another_session() {
    let (yard, session, _) = session();
    let path = yard.path(&format!("sessions/{session}/round-2/seal.json"));
    let mut seal: Seal = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    seal.previous = Some("0".repeat(64));
    std::fs::write(&path, serde_json::to_vec(&seal).unwrap()).unwrap();
    assert!(!check(&yard, &session).edits.is_empty());
}

#[test]
fn the_head_can_be_computed_by_hand() {
    use sha2::Digest as _;
    let yard = Yard::new();
    let saved = create(&yard.store(), day(10), 0).unwrap();
    let mut hash = sha2::Sha256::new();
    for file in ["request.json", "changes.diff", "round-1/review.json"] {
        let bytes = std::fs::read(yard.path("sessions/2026-01-10-001").join(file)).unwrap();
        hash.update(format!("{file}\n{}\n", bytes.len()));
        hash.update(bytes);
    }
    let hex: String = hash.finalize().iter().map(|b| format!("{b:02x}")).collect();
    assert_eq!(saved.head, hex);
}

/// Replaces the fixes of a session with changed ones, and leaves their seal unchanged.
fn change_fixes(yard: &Yard, session: &SessionId, change: impl Fn(&mut Fixes)) {
    let path = yard.path(&format!("sessions/{session}/fixes.json"));
    let mut fixes: Fixes = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    change(&mut fixes);
    let mut text = Vec::new();
    claude_reviewer::wire::write(&fixes, &mut text).unwrap();
    std::fs::write(path, text).unwrap();
}

fn edits(yard: &Yard, session: &SessionId) -> Vec<String> {
    check(yard, session)
        .edits
        .into_iter()
        .map(|e| format!("{}: {}", e.file, e.why))
        .collect()
}

#[test]
fn fixes_rounds_and_closings_form_one_chain() {
    let (yard, session, _) = session();
    let store = yard.store();
    let stored = store.session(&session).unwrap();
    assert_eq!(edits(&yard, &session), [""; 0]);
    let text = std::fs::read(yard.path(&format!("sessions/{session}/fixes.json"))).unwrap();
    let links = serde_json::from_slice::<Fixes>(&text).unwrap().links;
    assert_eq!(
        links
            .iter()
            .map(|l| (l.number, l.ended))
            .collect::<Vec<_>>(),
        [(1, false), (1, true), (2, true)]
    );
    let [first, second] = &stored.rounds[..] else {
        panic!()
    };
    assert_eq!(links[0].previous, first.seal.head);
    assert_eq!(
        second.seal.previous.as_ref(),
        Some(&links[0].seal),
        "a round continues a fix"
    );
    assert_eq!(links[1].previous, second.seal.head);
    let entries = stored.completion.unwrap().entries;
    assert_eq!(
        links[2].previous, entries[0].seal,
        "a fix continues a closing"
    );
    assert_eq!(stored.head, entries[1].seal, "a closing continues a fix");
    for head in links
        .iter()
        .map(|l| &l.seal)
        .chain([&entries[0].seal, &entries[1].seal])
    {
        assert_eq!(
            store.verify(Some(&session), Some(head)).unwrap()[0].edits,
            [],
            "{head}"
        );
    }
}

#[test]
fn a_fix_that_was_modified_is_named() {
    type Change = fn(&mut Fixes);
    let cases: [(&str, Change); 7] = [
        ("fix 1 was modified", |f| {
            f.fixes[0].attempts[0].patch.push('x');
        }),
        ("fix 2 was modified", |f| f.fixes[1].findings.clear()),
        ("fix 1 is missing", |f| drop(f.fixes.remove(0))),
        ("fix 2 is missing", |f| f.fixes.truncate(1)),
        ("its links do not continue the chain", |f| {
            f.links[2].previous = "0".repeat(64);
        }),
        ("fix 1 was modified", |f| drop(f.links.remove(1))),
        ("the link of fix 1 was modified", |f| {
            f.links[0].ended = true;
        }),
    ];
    for (why, change) in cases {
        let (yard, session, _) = session();
        change_fixes(&yard, &session, change);
        let found = edits(&yard, &session);
        assert!(
            found.contains(&format!("fixes.json: {why}")),
            "{why}: {found:?}"
        );
        assert!(yard.store().edited(&session).unwrap().is_some());
    }
}

#[test]
fn a_fix_that_was_stored_anew_after_its_end_is_an_edit_although_its_links_are_right() {
    let (yard, session, _) = session();
    let store = yard.store();
    let noted = store.session(&session).unwrap();
    let changed = StoredFix {
        findings: vec!["F9".to_owned()],
        ..noted.fixes[0].clone()
    };
    store
        .record_fix(&session, changed, Progress::Ended)
        .unwrap();
    let found = edits(&yard, &session);
    assert_eq!(
        found,
        ["fixes.json: fix 1 was stored again after it had ended"]
    );
}

#[test]
fn fixes_that_were_removed_are_missed_by_what_follows_or_by_a_noted_head() {
    let (yard, session, _) = session();
    std::fs::remove_file(yard.path(&format!("sessions/{session}/fixes.json"))).unwrap();
    let found = edits(&yard, &session);
    assert!(
        found.iter().any(|e| e.starts_with("round-2/seal.json: ")),
        "{found:?}"
    );

    let yard = Yard::new();
    let store = yard.store();
    let session = create(&store, day(10), 0).unwrap().id;
    store.record_fix(&session, fix(1), Progress::Ended).unwrap();
    let noted = store.session(&session).unwrap().head;
    assert_eq!(check(&yard, &session).head, Some(noted.clone()));
    // The newest session has its own head; so does the next one.
    let saved = std::fs::read(yard.path(&format!("sessions/{session}/fixes.json"))).unwrap();
    std::fs::remove_file(yard.path(&format!("sessions/{session}/fixes.json"))).unwrap();
    let edits = store
        .verify(Some(&session), Some(&noted))
        .unwrap()
        .remove(0)
        .edits;
    assert!(
        edits.iter().any(|e| e.why.contains("never had the head")),
        "{edits:?}"
    );
    std::fs::write(yard.path(&format!("sessions/{session}/fixes.json")), saved).unwrap();
    create(&store, day(11), 0).unwrap();
    std::fs::remove_file(yard.path(&format!("sessions/{session}/fixes.json"))).unwrap();
    assert!(
        !check(&yard, &session).edits.is_empty(),
        "a later session knows the head"
    );
}

#[test]
fn fixes_of_an_older_version_stay_readable_and_no_link_covers_them() {
    let yard = Yard::new();
    let store = yard.store();
    let session = create(&store, day(10), 0).unwrap().id;
    let head = store.session(&session).unwrap().head;
    let old = serde_json::json!({
        "schema_version": 1, "review_id": session.to_string(),
        "fixes": [serde_json::to_value(StoredFix { number: 1, ..fix(1) }).unwrap()],
    });
    std::fs::write(
        yard.path(&format!("sessions/{session}/fixes.json")),
        format!("{old:#}\n"),
    )
    .unwrap();
    let stored = store.session(&session).unwrap();
    assert_eq!((stored.fixes.len(), &stored.head), (1, &head));
    let checked = check(&yard, &session);
    assert_eq!(
        (checked.edits.len(), checked.unsealed),
        (0, vec!["fixes.json".to_owned()])
    );
    // A newer fix has a link.
    let number = store
        .record_fix(&session, fix(2), Progress::Ended)
        .unwrap()
        .number;
    assert_eq!(number, 2);
    let checked = check(&yard, &session);
    assert_eq!(
        (checked.edits.len(), checked.unsealed),
        (0, vec!["fixes.json, fix 1".to_owned()])
    );
    assert_ne!(store.session(&session).unwrap().head, head);
    change_fixes(&yard, &session, |f| f.fixes[1].via.push('x'));
    assert_eq!(edits(&yard, &session), ["fixes.json: fix 2 was modified"]);
}

#[test]
fn a_session_is_found_whole_while_fixes_are_stored() {
    let yard = Yard::new();
    let store = yard.store();
    let session = create(&store, day(10), 0).unwrap().id;
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let first = yard
                .store()
                .record_fix(&session, fix(0), Progress::Open)
                .unwrap();
            for n in 1..40 {
                let next = StoredFix {
                    attempts: fix(n % 5).attempts,
                    ..first.clone()
                };
                yard.store()
                    .record_fix(&session, next, Progress::Open)
                    .unwrap();
                if n % 13 == 0 {
                    append(&yard.store(), &session, day(10)).unwrap();
                }
            }
        });
        while !writer.is_finished() {
            assert_eq!(edits(&yard, &session), [""; 0]);
        }
    });
    assert_eq!(edits(&yard, &session), [""; 0]);
    assert_eq!(check(&yard, &session).rounds, 4);
}
