//! STO-08, STO-09: links, pipes and files of other users in place of the store or of its parts.

use super::kit::{Yard, create, day, full_session, id};
use claude_reviewer::history::Store;
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::time::{Duration, Instant};

/// Expects that neither a write nor a read follows the entry at `.reviews`, and that both report it
/// in time.
#[track_caller]
fn refused(yard: &Yard, words: &str) {
    let started = Instant::now();
    let write = Store::open(&yard.place()).map(drop).unwrap_err();
    let read = Store::find(&yard.place()).map(drop).unwrap_err();
    assert!(started.elapsed() < Duration::from_secs(1));
    for error in [write, read] {
        assert!(error.causes.join(" ").contains(words), "{error:?}");
        assert!(!error.hints.is_empty());
    }
}

#[test]
fn sto_08_a_store_that_is_a_link_is_refused_and_its_target_stays_as_it_was() {
    let (yard, other) = (Yard::new(), Yard::new());
    symlink(other.top(), yard.path("")).unwrap_err();
    symlink(other.top(), yard.top().join(".reviews")).unwrap();
    refused(&yard, ".reviews is a symbolic link");
    assert_eq!(std::fs::read_dir(other.top()).unwrap().count(), 0);
}

#[test]
fn sto_08_a_link_on_the_way_to_the_store_is_refused() {
    let (yard, other) = (Yard::new(), Yard::new());
    symlink(other.top(), yard.top().join("var")).unwrap();
    let mut place = yard.place();
    place.history.path = "var/reviews".to_owned();
    let error = Store::open(&place).unwrap_err();
    assert!(
        error.causes.join(" ").contains("var is a symbolic link"),
        "{error:?}"
    );
    assert_eq!(std::fs::read_dir(other.top()).unwrap().count(), 0);
}

#[test]
fn sto_08_folders_of_the_store_that_are_links_are_refused() {
    for name in ["sessions", "tmp"] {
        let (yard, other) = (Yard::new(), Yard::new());
        std::fs::create_dir(yard.path("")).unwrap();
        symlink(other.top(), yard.path(name)).unwrap();
        let error = Store::open(&yard.place()).unwrap_err();
        assert!(
            error.causes.join(" ").contains("is a symbolic link"),
            "{name}: {error:?}"
        );
        assert_eq!(std::fs::read_dir(other.top()).unwrap().count(), 0, "{name}");
    }
}

#[test]
fn sto_08_a_session_that_is_a_link_is_refused_and_stays() {
    let (yard, other) = (Yard::new(), Yard::new());
    let real = full_session(&other.store());
    create(&yard.store(), day(10), 0).unwrap();
    symlink(
        other.path("sessions/2026-01-31-001"),
        yard.path("sessions/2026-01-31-001"),
    )
    .unwrap();
    let before = other.files();
    let store = yard.store();
    let error = store.session(&real).unwrap_err();
    assert!(
        error
            .causes
            .join(" ")
            .contains("sessions/2026-01-31-001 is a symbolic link"),
        "{error:?}"
    );
    assert!(super::kit::append(&store, &real, day(31)).is_err());
    assert!(
        store
            .complete(
                &real,
                super::kit::closing(claude_reviewer::wire::stored::Status::Merged),
                true
            )
            .is_err()
    );
    assert!(store.change(&real, 1).is_err());
    let history = store.list(5).unwrap();
    assert_eq!((history.sessions.len(), history.damaged.len()), (1, 1));
    assert_eq!(history.damaged[0].moved_to, None);
    let checked = store.verify(Some(&real), None).unwrap();
    assert!(
        checked[0].edits[0].why.contains("symbolic link"),
        "{checked:?}"
    );
    // Its name is taken, and removing it removes only the link.
    assert_eq!(create(&store, day(31), 0).unwrap().id, id("2026-01-31-002"));
    store.prune(0, day(31)).unwrap();
    assert_eq!(other.files(), before);
    assert!(
        yard.path("sessions/2026-01-31-001")
            .symlink_metadata()
            .is_err()
    );
}

#[test]
fn sto_08_a_file_that_is_a_link_is_neither_read_nor_written_through() {
    for name in [
        "request.json",
        "changes.diff",
        "round-1/review.json",
        "round-1/seal.json",
        "complete.json",
    ] {
        let yard = Yard::new();
        let session = full_session(&yard.store());
        let path = yard.path("sessions/2026-01-31-001").join(name);
        let target = yard.top().join("target");
        std::fs::rename(&path, &target).unwrap();
        let content = std::fs::read(&target).unwrap();
        symlink(&target, &path).unwrap();
        let store = yard.store();
        if name == "changes.diff" {
            assert!(store.change(&session, 1).is_err());
        } else {
            let error = store.session(&session).unwrap_err();
            assert!(
                error.causes.join(" ").contains("is a symbolic link"),
                "{name}: {error:?}"
            );
            // The listing reads only the last round.
            let damaged = store.list(5).unwrap().damaged;
            assert_eq!(
                damaged.len(),
                usize::from(!name.starts_with("round-1")),
                "{name}"
            );
            assert!(damaged.iter().all(|d| d.moved_to.is_none()));
        }
        assert!(
            !store.verify(Some(&session), None).unwrap()[0]
                .edits
                .is_empty(),
            "{name}"
        );
        assert_eq!(std::fs::read(&target).unwrap(), content, "{name}");
    }
}

#[test]
fn sto_08_links_in_place_of_the_files_of_the_store_are_not_followed() {
    let yard = Yard::new();
    let target = yard.top().join("target");
    std::fs::write(&target, "precious").unwrap();
    create(&yard.store(), day(10), 0).unwrap();
    std::fs::remove_file(yard.path("latest.json")).unwrap();
    symlink(&target, yard.path("latest.json")).unwrap();
    create(&yard.store(), day(11), 0).unwrap();
    assert!(
        yard.path("latest.json")
            .symlink_metadata()
            .unwrap()
            .is_file(),
        "it is replaced"
    );

    std::fs::remove_file(yard.path("lock")).unwrap();
    symlink(&target, yard.path("lock")).unwrap();
    let error = create(&yard.store(), day(12), 0).unwrap_err();
    assert!(
        error.causes.join(" ").contains("lock is a symbolic link"),
        "{error:?}"
    );

    std::fs::remove_file(yard.path(".gitignore")).unwrap();
    symlink(&target, yard.path(".gitignore")).unwrap();
    assert!(Store::open(&yard.place()).is_err());
    assert_eq!(std::fs::read_to_string(&target).unwrap(), "precious");
}

#[test]
fn sto_08_what_is_put_into_tmp_does_not_lead_out_when_it_is_swept() {
    let (yard, other) = (Yard::new(), Yard::new());
    create(&other.store(), day(10), 0).unwrap();
    let before = other.files();
    drop(yard.store());
    std::fs::create_dir(yard.path("tmp/old")).unwrap();
    symlink(other.path("sessions"), yard.path("tmp/old/link")).unwrap();
    symlink(other.path("sessions"), yard.path("tmp/link")).unwrap();
    let later = jiff::Timestamp::now()
        .checked_add(jiff::SignedDuration::from_hours(2))
        .unwrap();
    assert_eq!(yard.store().prune(5, later).unwrap().swept, 2);
    assert_eq!(other.files(), before);
}

#[test]
fn sto_09_a_store_that_is_no_folder_is_refused_at_once() {
    let yard = Yard::new();
    let path = yard.top().join(".reviews");
    std::fs::write(&path, "mine").unwrap();
    refused(&yard, ".reviews is a file");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "mine");

    std::fs::remove_file(&path).unwrap();
    crate::support::mkfifo(&path);
    refused(&yard, ".reviews is a pipe");

    std::fs::remove_file(&path).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(&path).unwrap();
    refused(&yard, ".reviews is a socket");

    // Only root can create a device; a link to one is a link.
    std::fs::remove_file(&path).unwrap();
    let made = std::process::Command::new("mknod")
        .arg(&path)
        .args(["c", "1", "5"])
        .output();
    if made.is_ok_and(|made| made.status.success()) {
        refused(&yard, ".reviews is a device");
    } else {
        symlink("/dev/zero", &path).unwrap();
        refused(&yard, ".reviews is a symbolic link");
    }
}

#[test]
fn sto_09_pipes_and_folders_in_place_of_files_do_not_stop_anything() {
    let files = [
        "request.json",
        "round-1/review.json",
        "round-1/seal.json",
        "round-1/response.json",
        "complete.json",
    ];
    for (name, folder) in files.iter().flat_map(|f| [(f, false), (f, true)]) {
        let yard = Yard::new();
        create(&yard.store(), day(10), 0).unwrap();
        let session = full_session(&yard.store());
        let path = yard.path("sessions/2026-01-31-001").join(name);
        std::fs::remove_file(&path).unwrap();
        if folder {
            std::fs::create_dir(&path).unwrap();
        } else {
            crate::support::mkfifo(&path);
        }
        let started = Instant::now();
        let history = yard.store().list(5).unwrap();
        assert!(
            history
                .sessions
                .iter()
                .any(|s| s.review_id == "2026-01-10-001"),
            "{name}"
        );
        assert!(yard.store().session(&session).is_err(), "{name}");
        assert!(
            !yard.store().verify(Some(&session), None).unwrap()[0]
                .edits
                .is_empty(),
            "{name}"
        );
        assert!(started.elapsed() < Duration::from_secs(1), "{name}");
    }
    for name in ["latest.json", "lock", ".gitignore"] {
        let yard = Yard::new();
        create(&yard.store(), day(10), 0).unwrap();
        std::fs::remove_file(yard.path(name)).unwrap();
        crate::support::mkfifo(yard.path(name));
        let started = Instant::now();
        let created = Store::open(&yard.place()).and_then(|s| create(&s, day(11), 0).map(drop));
        assert_eq!(
            created.is_ok(),
            name == "latest.json",
            "{name}: {created:?}"
        );
        assert_eq!(
            Store::find(&yard.place())
                .unwrap()
                .unwrap()
                .list(5)
                .unwrap()
                .damaged
                .len(),
            0
        );
        assert!(started.elapsed() < Duration::from_secs(1), "{name}");
    }
}

#[test]
fn sto_08_what_belongs_to_somebody_else_is_refused() {
    let yard = Yard::new();
    let session = full_session(&yard.store());
    let give_away = |name: &str| std::os::unix::fs::chown(yard.path(name), Some(12345), None);
    if give_away("sessions/2026-01-31-001/request.json").is_err() {
        eprintln!("skipped: only root can give a file away");
        return;
    }
    let error = yard.store().session(&session).unwrap_err();
    assert!(
        error
            .causes
            .join(" ")
            .contains("request.json is owned by user 12345"),
        "{error:?}"
    );
    give_away("sessions/2026-01-31-001").unwrap();
    assert!(
        yard.store()
            .session(&session)
            .unwrap_err()
            .causes
            .join(" ")
            .contains("owned by user 12345")
    );
    give_away("").unwrap();
    refused(&yard, ".reviews is owned by user 12345");
    assert_eq!(
        std::fs::metadata(yard.path("")).unwrap().uid(),
        12345,
        "nothing was taken over"
    );
}
