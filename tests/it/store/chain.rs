//! What the hash chain promises: an edit to a stored round is found, and named.

use super::kit::{Yard, append, closing, create, day, full_session, id};
use claude_reviewer::history::{Checked, SessionId};
use claude_reviewer::wire::stored::{Seal, Status};
use std::collections::BTreeSet;

/// What somebody does to a session's folder.
type Harm = fn(&std::path::Path);

fn check(yard: &Yard, session: &SessionId) -> Checked {
    yard.store().verify(Some(session), None).unwrap().remove(0)
}

/// A session of two rounds with an answer and a closing, and its files.
fn session() -> (Yard, SessionId, Vec<String>) {
    let yard = Yard::new();
    let session = full_session(&yard.store());
    let prefix = format!("sessions/{session}/");
    let files: Vec<_> = yard.files().iter().filter_map(|f| f.strip_prefix(&prefix).map(str::to_owned)).collect();
    assert_eq!(files.len(), 9);
    (yard, session, files)
}

#[test]
fn what_was_not_edited_is_found_whole() {
    let (yard, session, _) = session();
    let checked = check(&yard, &session);
    assert_eq!((checked.edits.len(), checked.rounds), (0, 2));
    assert_eq!(checked.head, Some(yard.store().session(&session).unwrap().head));
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
            // The version of a closing is sealed by nothing: a greater one is a newer program's, and refused as that.
            let newer = checked.newer.as_ref().is_some_and(|why| file == "complete.json" && why.starts_with(&file));
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
        for edited in [format!("{text}\n"), text.replacen("\": ", "\":  ", 1), text.trim_end().to_owned()] {
            std::fs::write(&path, edited).unwrap();
            assert!(check(&yard, &session).edits.iter().any(|e| e.file == *file), "{file}");
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
    let text = std::fs::read_to_string(&path).unwrap().replace("nothing blocks", "all is well");
    std::fs::write(&path, text).unwrap();
    let edits = check(&yard, &session).edits;
    let [edit] = edits.as_slice() else { panic!("{edits:?}") };
    assert_eq!((edit.round, edit.file.as_str()), (Some(2), "round-2/review.json"));
    assert_eq!(edit.why, "it was modified");
}

#[test]
fn files_that_come_or_go_are_found() {
    let cases: [(&str, Harm); 8] = [
        ("round-1/response.json", |s| std::fs::remove_file(s.join("round-1/response.json")).unwrap()),
        ("round-2/changes.diff", |s| std::fs::remove_file(s.join("round-2/changes.diff")).unwrap()),
        ("changes.diff", |s| std::fs::remove_file(s.join("changes.diff")).unwrap()),
        ("round-2/seal.json", |s| std::fs::remove_file(s.join("round-2/seal.json")).unwrap()),
        ("notes.txt", |s| std::fs::write(s.join("notes.txt"), "").unwrap()),
        ("round-1/notes.txt", |s| std::fs::write(s.join("round-1/notes.txt"), "").unwrap()),
        ("round-1", |s| std::fs::remove_dir_all(s.join("round-1")).unwrap()),
        ("round-3", |s| std::fs::create_dir(s.join("round-4")).unwrap()),
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
    store.append(&session, day(10), 1, &super::kit::change(""), None, &|n| super::kit::review(&name, n, 0)).unwrap();
    let answer = serde_json::to_vec(&super::kit::response(&name, 1)).unwrap();
    std::fs::write(yard.path("sessions/2026-01-10-001/round-1/response.json"), answer).unwrap();
    let edits = check(&yard, &session).edits;
    assert!(edits.iter().any(|e| e.file == "round-1/response.json" && e.why.contains("was not there")), "{edits:?}");
}

#[test]
fn a_noted_head_is_found_again_however_the_session_went_on() {
    let yard = Yard::new();
    let store = yard.store();
    let first = create(&store, day(10), 0).unwrap();
    let second = append(&store, &first.id, day(10)).unwrap();
    let approved = store.complete(&first.id, closing(Status::Approved), false).unwrap().head;
    let merged = store.complete(&first.id, closing(Status::Merged), false).unwrap().head;
    let heads = [first.head.as_str(), &second.head, &approved, &merged];
    assert_eq!(heads.iter().collect::<BTreeSet<_>>().len(), 4);
    for head in heads {
        assert_eq!(store.verify(Some(&first.id), Some(head)).unwrap()[0].edits, []);
        let upper = head.to_uppercase();
        assert_eq!(store.verify(Some(&first.id), Some(&upper)).unwrap()[0].edits, []);
    }
    assert_eq!(store.verify(Some(&first.id), None).unwrap()[0].head.as_deref(), Some(merged.as_str()));
}

#[test]
fn a_session_that_was_written_anew_as_a_whole_lacks_the_noted_head() {
    let yard = Yard::new();
    let noted = create(&yard.store(), day(10), 1).unwrap().head;
    // Another store with a review that passes: its seals are right in themselves.
    let other = Yard::new();
    create(&other.store(), day(10), 0).unwrap();
    std::fs::remove_dir_all(yard.path("sessions/2026-01-10-001")).unwrap();
    std::fs::rename(other.path("sessions/2026-01-10-001"), yard.path("sessions/2026-01-10-001")).unwrap();
    let session = id("2026-01-10-001");
    assert_eq!(check(&yard, &session).edits, []);
    let edits = yard.store().verify(Some(&session), Some(&noted)).unwrap().remove(0).edits;
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
