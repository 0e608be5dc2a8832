//! STO-07, STO-11: names of sessions, the file that points to the newest, and the store from git's
//! view.

use super::kit::{Yard, append, closing, create, day, id, time, whole};
use crate::support::Repo;
use claude_reviewer::history::{Options, Store};
use claude_reviewer::policy::HistoryPolicy;
use claude_reviewer::review::StoreLocation;
use claude_reviewer::wire::stored::{Latest, Status};

fn names(store: &Store) -> Vec<String> {
    let mut names: Vec<_> = whole(store).into_iter().map(|s| s.review_id).collect();
    names.reverse();
    names
}

fn latest(yard: &Yard) -> Option<Latest> {
    serde_json::from_slice(&std::fs::read(yard.path("latest.json")).ok()?).ok()
}

#[test]
fn a_session_lies_where_the_documents_say() {
    let yard = Yard::new();
    let id = super::kit::full_session(&yard.store());
    assert_eq!(id.to_string(), "2026-01-31-001");
    let expected = [
        ".gitignore",
        "latest.json",
        "lock",
        "sessions/2026-01-31-001/changes.diff",
        "sessions/2026-01-31-001/complete.json",
        "sessions/2026-01-31-001/request.json",
        "sessions/2026-01-31-001/round-1/response.json",
        "sessions/2026-01-31-001/round-1/review.json",
        "sessions/2026-01-31-001/round-1/seal.json",
        "sessions/2026-01-31-001/round-2/changes.diff",
        "sessions/2026-01-31-001/round-2/review.json",
        "sessions/2026-01-31-001/round-2/seal.json",
    ];
    assert_eq!(yard.files(), expected);
    let latest = latest(&yard).unwrap();
    assert_eq!(
        (latest.review_id.as_str(), latest.path.as_str()),
        ("2026-01-31-001", "sessions/2026-01-31-001")
    );
}

#[test]
fn what_is_stored_is_read_back() {
    let yard = Yard::new();
    let id = super::kit::full_session(&yard.store());
    let session = yard.store().session(&id).unwrap();
    assert_eq!(session.request, super::kit::request("2026-01-31-001"));
    assert_eq!(
        session.rounds[0].review,
        super::kit::review("2026-01-31-001", 1, 1)
    );
    assert_eq!(
        session.rounds[0].response,
        Some(super::kit::response("2026-01-31-001", 1))
    );
    assert_eq!(
        (session.status, session.rounds.len()),
        (Status::Approved, 2)
    );
    assert_eq!(session.head, session.completion.unwrap().entries[0].seal);
    assert_eq!(yard.store().change(&id, 1).unwrap(), b"+1\n");
    assert_eq!(yard.store().change(&id, 2).unwrap(), b"+2\n");
    for round in [0, 3, u32::MAX] {
        let error = yard.store().change(&id, round).unwrap_err();
        assert!(
            error.message.contains(&format!("has no round {round}")),
            "{error:?}"
        );
    }
}

#[test]
fn sto_11_sessions_of_one_second_are_numbered() {
    let yard = Yard::new();
    for _ in 0..12 {
        create(&yard.store(), day(10), 0).unwrap();
    }
    let expected: Vec<_> = (1..=12).map(|n| format!("2026-01-10-{n:03}")).collect();
    assert_eq!(names(&yard.store()), expected);
}

#[test]
fn sto_11_when_the_clock_goes_back_names_do_not() {
    let yard = Yard::new();
    for now in [
        "2026-03-29T00:59:59Z",
        "2026-03-28T23:00:00Z",
        "1970-01-01T00:00:00Z",
        "2026-03-29T01:00:01Z",
    ] {
        create(&yard.store(), time(now), 0).unwrap();
    }
    // If the pointer is lost too, the names themselves are enough.
    std::fs::remove_file(yard.path("latest.json")).unwrap();
    create(&yard.store(), time("2020-01-01T00:00:00Z"), 0).unwrap();
    create(&yard.store(), time("2026-03-30T00:00:00Z"), 0).unwrap();
    let days: Vec<_> = (1..=5)
        .map(|n| format!("2026-03-29-{n:03}"))
        .chain(["2026-03-30-001".to_owned()])
        .collect();
    assert_eq!(names(&yard.store()), days);
}

#[test]
fn sto_11_the_day_is_that_of_utc_and_years_do_not_end_in_2038() {
    let yard = Yard::new();
    for now in [
        "2026-03-29T01:30:00+02:00",
        "2038-01-19T03:14:08Z",
        "2106-02-07T06:28:16Z",
        "9999-12-30T22:00:00Z",
    ] {
        create(&yard.store(), time(now), 0).unwrap();
    }
    let expected = [
        "2026-03-28-001",
        "2038-01-19-001",
        "2106-02-07-001",
        "9999-12-30-001",
    ];
    assert_eq!(names(&yard.store()), expected);
}

#[test]
fn sto_11_after_999_sessions_of_a_day_numbers_grow() {
    let yard = Yard::new();
    create(&yard.store(), day(10), 0).unwrap();
    let sessions = yard.path("sessions");
    std::fs::rename(
        sessions.join("2026-01-10-001"),
        sessions.join("2026-01-10-999"),
    )
    .unwrap();
    create(&yard.store(), day(10), 0).unwrap();
    assert_eq!(yard.store().latest().unwrap(), Some(id("2026-01-10-1000")));
}

#[test]
fn sto_07_a_pointer_that_is_missing_dangling_or_broken_is_made_again() {
    let broken = [
        None,
        Some("{\"schema_version\": 1"),
        Some(""),
        Some("[]"),
        Some("{\"schema_version\": 99}"),
    ];
    let dangling =
        r#"{"schema_version":1,"review_id":"2026-01-30-007","timestamp":"","path":"/etc"}"#;
    for text in broken.into_iter().chain([Some(dangling)]) {
        let yard = Yard::new();
        create(&yard.store(), day(10), 0).unwrap();
        create(&yard.store(), day(11), 0).unwrap();
        match text {
            None => std::fs::remove_file(yard.path("latest.json")).unwrap(),
            Some(text) => std::fs::write(yard.path("latest.json"), text).unwrap(),
        }
        assert_eq!(
            yard.store().latest().unwrap(),
            Some(id("2026-01-11-001")),
            "{text:?}"
        );
        create(&yard.store(), day(12), 0).unwrap();
        assert_eq!(
            latest(&yard).unwrap().review_id,
            "2026-01-12-001",
            "{text:?}"
        );
    }
}

#[test]
fn sto_07_a_pointer_that_is_older_than_the_sessions_is_not_believed() {
    let yard = Yard::new();
    create(&yard.store(), day(10), 0).unwrap();
    let old = std::fs::read(yard.path("latest.json")).unwrap();
    create(&yard.store(), day(25), 0).unwrap();
    // As after a crash between writing the session and the pointer.
    std::fs::write(yard.path("latest.json"), old).unwrap();
    let long_ago = std::fs::FileTimes::new().set_modified(std::time::UNIX_EPOCH);
    std::fs::File::open(yard.path("latest.json"))
        .unwrap()
        .set_times(long_ago)
        .unwrap();
    assert_eq!(yard.store().latest().unwrap(), Some(id("2026-01-25-001")));
    assert_eq!(
        create(&yard.store(), day(11), 0).unwrap().id,
        id("2026-01-25-002")
    );
}

#[test]
fn names_of_removed_sessions_are_not_given_again() {
    let yard = Yard::new();
    create(&yard.store(), day(10), 0).unwrap();
    create(&yard.store(), day(10), 0).unwrap();
    yard.store().prune(0, day(10)).unwrap();
    assert_eq!(yard.store().latest().unwrap(), None);
    assert_eq!(
        create(&yard.store(), day(10), 0).unwrap().id,
        id("2026-01-10-003")
    );
    std::fs::write(yard.path("sessions/2026-01-10-003/request.json"), "").unwrap();
    assert_eq!(yard.store().list(5).unwrap().damaged.len(), 1);
    assert_eq!(
        create(&yard.store(), day(10), 0).unwrap().id,
        id("2026-01-10-004")
    );
}

#[test]
fn pruning_keeps_the_newest_and_removes_what_broken_runs_left() {
    let yard = Yard::new();
    for n in 1..=6 {
        create(&yard.store(), day(n), 0).unwrap();
    }
    std::fs::create_dir_all(yard.path("tmp/new-1-ab/round-1")).unwrap();
    std::fs::write(yard.path("tmp/new-1-ab/round-1/review.json"), "{").unwrap();
    std::fs::write(yard.path("tmp/file-1-cd"), "{").unwrap();
    let now = jiff::Timestamp::now();
    // A recent file may still be in use.
    let pruned = yard.store().prune(2, now).unwrap();
    assert_eq!((pruned.removed.len(), pruned.kept, pruned.swept), (4, 2, 0));
    assert_eq!(names(&yard.store()), ["2026-01-05-001", "2026-01-06-001"]);
    let later = now
        .checked_add(jiff::SignedDuration::from_hours(2))
        .unwrap();
    let pruned = yard.store().prune(2, later).unwrap();
    assert_eq!((pruned.removed.len(), pruned.kept, pruned.swept), (0, 2, 2));
    assert!(!yard.files().iter().any(|f| f.starts_with("tmp/")));
}

#[test]
fn a_closed_session_gets_no_further_round() {
    let yard = Yard::new();
    let id = super::kit::full_session(&yard.store());
    let error = append(&yard.store(), &id, day(31)).unwrap_err();
    assert!(
        error.message.contains("is closed: it was approved"),
        "{error:?}"
    );
    assert_eq!(yard.store().session(&id).unwrap().rounds.len(), 2);
}

#[test]
fn approving_what_blocks_takes_force_and_is_recorded() {
    let yard = Yard::new();
    let id = create(&yard.store(), day(10), 2).unwrap().id;
    let error = yard
        .store()
        .complete(&id, closing(Status::Approved), false)
        .unwrap_err();
    assert!(error.message.contains("2 findings block"), "{error:?}");
    assert!(error.hints.join(" ").contains("--force"), "{error:?}");
    assert!(yard.store().session(&id).unwrap().completion.is_none());

    let session = yard
        .store()
        .complete(&id, closing(Status::Approved), true)
        .unwrap();
    let entry = &session.completion.unwrap().entries[0];
    assert!(entry.forced);
    assert_eq!(entry.open, ["0000000000000001", "0000000000000002"]);
    assert_eq!(entry.head, session.rounds[0].seal.head);
}

#[test]
fn approving_what_was_not_all_reviewed_takes_force() {
    for (outcome, verdict, words) in [
        ("incomplete", "incomplete", "its last round is incomplete"),
        ("cancelled", "pass", "its last round was broken off"),
    ] {
        let yard = Yard::new();
        let saved = yard
            .store()
            .create(day(10), &super::kit::change(""), &|id| {
                let mut review = super::kit::review_json(&id.to_string(), 1, 0);
                review["outcome"] = outcome.into();
                review["verdict"] = verdict.into();
                (
                    super::kit::request(&id.to_string()),
                    serde_json::from_value(review).unwrap(),
                )
            });
        let id = saved.unwrap().id;
        let error = yard
            .store()
            .complete(&id, closing(Status::Approved), false)
            .unwrap_err();
        assert!(error.message.contains(words), "{error:?}");
        let session = yard
            .store()
            .complete(&id, closing(Status::Abandoned), false)
            .unwrap();
        assert_eq!(session.status, Status::Abandoned);
        assert!(!session.completion.unwrap().entries[0].forced);
    }
}

#[test]
fn a_session_can_be_closed_again_and_the_same_word_twice_is_one() {
    let yard = Yard::new();
    let id = create(&yard.store(), day(10), 0).unwrap().id;
    for _ in 0..2 {
        yard.store()
            .complete(&id, closing(Status::Approved), false)
            .unwrap();
    }
    let session = yard
        .store()
        .complete(&id, closing(Status::Merged), false)
        .unwrap();
    let words: Vec<_> = session
        .completion
        .unwrap()
        .entries
        .iter()
        .map(|e| e.status)
        .collect();
    assert_eq!(words, [Status::Approved, Status::Merged]);
    assert_eq!(session.status, Status::Merged);
    assert_eq!(whole(&yard.store()).len(), 1);
}

#[test]
fn git_does_not_see_a_store_unless_it_is_to_be_committed() {
    let repo = Repo::new();
    let mut place = StoreLocation {
        top: repo.path(),
        ..super::kit::place(&repo.path())
    };
    create(&Store::open(&place).unwrap(), day(10), 0).unwrap();
    assert_eq!(repo.git(&["status", "--porcelain", "-uall"]), "");
    place.history = HistoryPolicy {
        commit: true,
        ..place.history
    };
    create(&Store::open(&place).unwrap(), day(10), 0).unwrap();
    let seen = repo.git(&["status", "--porcelain", "-uall"]);
    assert!(
        seen.contains("sessions/2026-01-10-002/round-1/review.json"),
        "{seen}"
    );
    assert!(
        !["lock", "latest", "tmp"]
            .iter()
            .any(|own| seen.contains(own)),
        "{seen}"
    );
    // A file that a user wrote there is not changed.
    std::fs::write(repo.path().join(".reviews/.gitignore"), "# mine\n").unwrap();
    drop(Store::open_with(&place, &Options::default()).unwrap());
    assert_eq!(
        std::fs::read_to_string(repo.path().join(".reviews/.gitignore")).unwrap(),
        "# mine\n"
    );
}
