//! STO-01, STO-10, STO-15: processes that are killed at any moment.

use super::kit::{
    Yard, append, append_after, child, closing, create, day, full_session, id, place, whole,
};
use crate::support::until;
use claude_reviewer::error::Kind;
use claude_reviewer::history::{Act, Faults, Options, Store};
use claude_reviewer::wire::stored::Status;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

const KILL: i32 = 9;
/// Exit code of a child whose round conflicts with another one.
pub const CONFLICTS: i32 = 7;
const CONFLICT: &str = "another round of 2026-01-10-001 was stored meanwhile";

/// Counts file operations and ends the process without warning before the k-th.
fn dies_at(k: usize) -> Options {
    let count = AtomicUsize::new(0);
    let faults = Faults::new(move |_| {
        if count.fetch_add(1, Ordering::SeqCst) + 1 == k {
            let _ = rustix::process::kill_process(
                rustix::process::getpid(),
                rustix::process::Signal::KILL,
            );
        }
        Ok(())
    });
    Options {
        faults,
        ..Options::default()
    }
}

/// Not a test of its own: the work that other tests run in a separate process.
#[test]
fn child_work() {
    let Ok(work) = std::env::var("STORE_CHILD") else {
        return;
    };
    let top = std::env::var("STORE_TOP").unwrap();
    let number = |name: &str| {
        std::env::var(name)
            .ok()
            .and_then(|v| v.parse::<usize>().ok())
    };
    let options = number("STORE_DIES_AT").map_or_else(Options::default, dies_at);
    if number("STORE_UMASK") == Some(0) {
        rustix::process::umask(rustix::fs::Mode::empty());
    }
    if let Some(bytes) = number("STORE_FILE_SIZE") {
        limit_file_size(bytes as u64);
    }
    let store = Store::open_with(&place(Path::new(&top)), &options);
    match work.as_str() {
        "create" => drop(create(&store.unwrap(), day(20), 0).unwrap()),
        "append" => drop(append(&store.unwrap(), &id("2026-01-10-001"), day(20)).unwrap()),
        "append-at-once" => {
            let (store, id) = (store.unwrap(), id("2026-01-10-001"));
            let after =
                number("STORE_AFTER").unwrap_or_else(|| store.session(&id).unwrap().rounds.len());
            if let Err(e) = append_after(&store, &id, day(20), after as u32) {
                assert_eq!(
                    (e.kind, e.message.as_str()),
                    (Kind::Incomplete, CONFLICT),
                    "{e:?}"
                );
                assert_eq!(
                    e.hints,
                    ["claude-reviewer review --follow-up 2026-01-10-001"]
                );
                #[expect(
                    clippy::exit,
                    reason = "a child of a test tells by its code how it ended"
                )]
                std::process::exit(CONFLICTS);
            }
        }
        "complete" => {
            drop(
                store
                    .unwrap()
                    .complete(&id("2026-01-10-001"), closing(Status::Approved), false)
                    .unwrap(),
            );
        }
        "prune" => drop(store.unwrap().prune(0, day(20)).unwrap()),
        "full" => drop(full_session(&store.unwrap())),
        "too-large" => {
            let text = store.and_then(|s| create(&s, day(20), 0)).unwrap_err();
            assert!(
                text.causes.join(" ").to_lowercase().contains("large"),
                "{text:?}"
            );
        }
        "hold" => hold(Path::new(&top)),
        other => panic!("unknown work {other}"),
    }
}

/// Makes every write past a size fail as on a full disk, without the accompanying signal.
fn limit_file_size(bytes: u64) {
    let limit = rustix::process::Rlimit {
        current: Some(bytes),
        maximum: Some(bytes),
    };
    rustix::process::setrlimit(rustix::process::Resource::Fsize, limit).unwrap();
}

/// Takes the lock of the store, signals that with a file, and sleeps until it is killed.
fn hold(top: &Path) {
    let told = top.join("held");
    let faults = Faults::new(move |step| {
        // Files are renamed only under the lock.
        if step.act == Act::Rename {
            std::fs::write(&told, "").unwrap();
            std::thread::sleep(Duration::from_secs(60));
        }
        Ok(())
    });
    let store = Store::find_with(
        &place(top),
        &Options {
            faults,
            ..Options::default()
        },
    )
    .unwrap()
    .unwrap();
    let _ = create(&store, day(20), 0);
}

/// Kills a process at every file operation of `work`, and checks the remaining state each time.
fn dies_everywhere(work: &str, prepare: impl Fn(&Store), look: impl Fn(&Store, bool)) {
    let mut deaths = 0;
    for k in 1.. {
        let yard = Yard::new();
        prepare(&yard.store());
        let out = child(work, yard.top(), &[("STORE_DIES_AT", &k.to_string())])
            .wait_with_output()
            .unwrap();
        let died = out.status.signal() == Some(KILL);
        assert!(
            died || out.status.success(),
            "{k}: {}",
            String::from_utf8_lossy(&out.stderr)
        );
        let found = Store::find(&yard.place()).unwrap().unwrap();
        look(&found, died);
        // The next run works, and all data is there afterwards.
        let before = whole(&found).len();
        create(&yard.store(), day(21), 0).unwrap();
        assert_eq!(whole(&yard.store()).len(), before + 1, "{work} at {k}");
        if !died {
            break;
        }
        deaths += 1;
    }
    assert!(deaths > 20, "{work} has only {deaths} file operations");
}

#[test]
fn sto_01_killed_at_every_step_a_new_session_is_there_or_not() {
    let old = |store: &Store| drop(create(store, day(10), 1).unwrap());
    dies_everywhere("create", old, |store, died| {
        let sessions = whole(store);
        assert!(
            sessions.len() == 2 || died && sessions.len() == 1,
            "{}",
            sessions.len()
        );
    });
}

#[test]
fn sto_01_killed_at_every_step_a_round_is_there_with_its_answer_or_neither_is() {
    let old = |store: &Store| drop(create(store, day(10), 1).unwrap());
    dies_everywhere("append", old, |store, died| {
        let session = &whole(store)[0];
        match session.rounds.as_slice() {
            [one] => assert!(died && one.response.is_none()),
            [one, two] => assert!(one.response.is_some() && two.response.is_none()),
            more => panic!("{} rounds", more.len()),
        }
    });
}

#[test]
fn sto_01_killed_at_every_step_a_session_is_open_or_closed() {
    let old = |store: &Store| drop(create(store, day(10), 0).unwrap());
    dies_everywhere("complete", old, |store, died| {
        let session = &whole(store)[0];
        let closed = session.completion.is_some();
        assert_eq!(session.status == Status::Approved, closed);
        assert!(closed || died);
    });
}

#[test]
fn sto_01_killed_at_every_step_pruning_removes_whole_sessions() {
    let old = |store: &Store| {
        create(store, day(9), 0).unwrap();
        create(store, day(10), 0).unwrap();
    };
    dies_everywhere("prune", old, |store, died| {
        let left = whole(store).len();
        assert!(left == 0 || died, "{left} sessions are left");
    });
}

#[test]
fn sto_10_a_lock_whose_holder_died_is_taken_and_a_living_holder_is_named() {
    let yard = Yard::new();
    drop(yard.store());
    let mut holder = child("hold", yard.top(), &[]);
    until("the lock is held", || yard.top().join("held").exists());
    let impatient = Options {
        patience: Duration::from_millis(100),
        ..Options::default()
    };
    let error = create(&yard.store_with(&impatient), day(20), 0).unwrap_err();
    let told = error.causes.join(" ");
    assert!(told.contains(&format!("process {}", holder.id())), "{told}");
    assert!(!error.hints.is_empty());
    // A reader does not wait.
    assert_eq!(whole(&yard.store()).len(), 0);

    holder.kill().unwrap();
    holder.wait().unwrap();
    create(&yard.store_with(&impatient), day(20), 0).unwrap();
    assert_eq!(whole(&yard.store()).len(), 1);
}

#[test]
fn sto_02_a_file_that_cannot_grow_is_an_error_and_leaves_nothing() {
    let yard = Yard::new();
    create(&yard.store(), day(10), 0).unwrap();
    let before = yard.files();
    for bytes in [0, 2, 100, 700] {
        // The shell ignores the signal of the limit, so that the write fails instead.
        let exe = std::env::current_exe().unwrap();
        let out = std::process::Command::new("sh")
            .args([
                "-c",
                "trap '' XFSZ; exec \"$0\" store::kill::child_work --exact --nocapture",
            ])
            .arg(exe)
            .env("STORE_CHILD", "too-large")
            .env("STORE_TOP", yard.top())
            .env("STORE_FILE_SIZE", bytes.to_string())
            .stdout(std::process::Stdio::null())
            .output()
            .unwrap();
        assert!(
            out.status.success(),
            "{bytes}: {}",
            String::from_utf8_lossy(&out.stderr)
        );
        assert_eq!(yard.files(), before, "{bytes}");
    }
    assert_eq!(whole(&yard.store()).len(), 1);
}

#[test]
fn sto_15_without_a_umask_files_are_0600_and_folders_0700() {
    let yard = Yard::new();
    // A shared folder that is writable for all users.
    std::fs::set_permissions(yard.top(), std::fs::Permissions::from_mode(0o1777)).unwrap();
    let out = child("full", yard.top(), &[("STORE_UMASK", "0")])
        .wait_with_output()
        .unwrap();
    assert!(
        out.status.success(),
        "{}",
        String::from_utf8_lossy(&out.stderr)
    );
    let mut seen = 0;
    let mut folders = vec![yard.path("")];
    while let Some(folder) = folders.pop() {
        let mode = |p: &Path| std::fs::symlink_metadata(p).unwrap().permissions().mode() & 0o7777;
        assert_eq!(mode(&folder), 0o700, "{}", folder.display());
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                assert_eq!(mode(&path), 0o600, "{}", path.display());
                seen += 1;
            }
        }
    }
    assert!(seen > 10, "{seen}");
}

#[test]
fn sto_15_a_folder_that_was_open_to_others_is_closed() {
    let yard = Yard::new();
    std::fs::create_dir(yard.path("")).unwrap();
    std::fs::set_permissions(yard.path(""), std::fs::Permissions::from_mode(0o777)).unwrap();
    create(&yard.store(), day(10), 0).unwrap();
    assert_eq!(
        std::fs::metadata(yard.path(""))
            .unwrap()
            .permissions()
            .mode()
            & 0o777,
        0o700
    );
}
