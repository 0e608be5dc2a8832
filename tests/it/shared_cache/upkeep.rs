//! Tests of `cache stats`, `cache verify` and `cache prune`.

use super::{Fleet, blobs, key_of, key_pair, notes, now};
use claude_reviewer::ai::shared::EntryKey;
use claude_reviewer::ai::shared::entry::seal;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::Duration;

#[test]
fn the_cache_command_counts_checks_and_removes_entries() {
    let fleet = Fleet::new();
    let count = fleet.fill();
    let writer = fleet.machine("writer", &fleet.writing());
    let shown = writer.cache(&["stats", "--format", "json"], 0).json();
    assert_eq!(shown["schema_version"], json!(1));
    assert_eq!(shown["local"]["entries"], json!(count), "{shown}");
    assert_eq!(shown["shared"]["entries"], json!(count), "{shown}");
    assert_eq!(shown["shared"]["valid"], Value::Null, "{shown}");
    writer.cache(&["verify"], 0);
    let entries = fleet.entries();
    std::fs::write(&entries[0], "half").unwrap();
    std::fs::copy(&entries[1], &entries[2]).unwrap();
    let found = writer
        .cache(&["verify", "--shared", "--format", "json"], 1)
        .json();
    let defects = json!({"malformed": 1, "other_question": 1});
    assert_eq!(found["shared"]["defects"], defects, "{found}");
    assert_eq!(found["local"], Value::Null, "{found}");
    let text = writer.cache(&["prune"], 0).stdout;
    assert!(
        text.contains("malformed: 1") && text.contains("removed: 2"),
        "{text}"
    );
    assert_eq!(fleet.entries().len(), count - 2);
    // A reader with other signers removes nothing of theirs.
    let url = format!("url = \"file://{}\"\n", fleet.store.display());
    let other = format!("{url}signers = [\"{}\"]\n", key_pair(8).1);
    let stranger = fleet.machine("stranger", &other);
    stranger.cache(&["verify", "--shared"], 1);
    stranger.cache(&["prune", "--shared"], 0);
    assert_eq!(fleet.entries().len(), count - 2);
    // A file that the program did not write is counted by itself and not touched.
    let foreign = fleet.store.join("replies-1/notes.txt");
    std::fs::write(&foreign, "mine").unwrap();
    let shown = writer.cache(&["stats", "--format", "json"], 0).json();
    assert_eq!(shown["shared"]["foreign_names"], json!(1), "{shown}");
    assert_eq!(shown["shared"]["entries"], json!(count - 2), "{shown}");
    assert_eq!(shown["shared"]["is_truncated"], json!(false), "{shown}");
    writer.cache(&["prune", "--all"], 0);
    assert_eq!(fleet.entries(), [foreign]);
    let local = writer
        .cache(&["stats", "--local", "--format", "json"], 0)
        .json();
    assert_eq!(local["local"]["entries"], json!(0), "{local}");
    let without = fleet.machine("none", "timeout = \"3s\"\n");
    let run = without.cache(&["stats", "--shared"], 2);
    assert!(run.stderr.contains("no shared cache"), "{}", run.stderr);
}

#[test]
fn verify_names_the_signers_of_the_answers_that_count() {
    let fleet = Fleet::new();
    let count = fleet.fill();
    let reader = fleet.machine("reader", &fleet.reading());
    let path = &fleet.entries()[0];
    let entry: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let signer = EntryKey::from_seed(&[7; 32]).unwrap();
    let reply = entry["reply"].as_str().unwrap();
    let then: jiff::Timestamp = (jiff::Timestamp::now() - jiff::SignedDuration::from_hours(48))
        .round(jiff::Unit::Second)
        .unwrap();
    let sealed = seal(&key_of(path), "stub-1", reply, then.as_second(), &signer);
    std::fs::write(path, sealed).unwrap();
    let found = reader
        .cache(&["verify", "--shared", "--format", "json"], 0)
        .json();
    let expected = json!({"ci": {"valid": count, "oldest": then.to_string()}});
    assert_eq!(found["shared"]["signers"], expected, "{found}");
    let text = reader.cache(&["verify", "--shared"], 0).stdout;
    assert!(
        text.contains(&format!("signed by ci: {count}, the oldest on")),
        "{text}"
    );
    // A signed model that is not the one of the reply.
    let sealed = seal(&key_of(path), "better", reply, now(), &signer);
    std::fs::write(path, sealed).unwrap();
    let (asked, report) = reader.reviewed();
    assert_eq!(asked, 1, "{report}");
    assert!(
        notes(&report)[0].contains("1 truncated or malformed"),
        "{report}"
    );
}

#[test]
fn temporary_files_are_not_answers_and_go_with_the_cache() {
    let fleet = Fleet::new();
    let count = fleet.fill();
    let writer = fleet.machine("writer", &fleet.writing());
    let local = writer.home.join(".cache/claude-reviewer/replies-1");
    let old = std::time::SystemTime::now() - Duration::from_secs(2 * 3600);
    let temporary = [
        fleet.store.join("replies-1/.tmp-0123456789abcdef-1f"),
        fleet.store.join("leases-1/.tmp-0123456789abcdef-1f"),
        local.join("tmp-0123456789abcdef-1f"),
    ];
    let lease = fleet.store.join("leases-1").join("e".repeat(64));
    std::fs::write(&lease, "new").unwrap();
    for path in &temporary {
        std::fs::write(path, "half").unwrap();
        let file = std::fs::File::options().write(true).open(path).unwrap();
        file.set_modified(old).unwrap();
    }
    let shown = writer.cache(&["stats", "--format", "json"], 0).json();
    for (cache, expected) in [("local", 1), ("shared", 2)] {
        assert_eq!(shown[cache]["entries"], json!(count), "{shown}");
        assert_eq!(shown[cache]["temporary_files"], json!(expected), "{shown}");
    }
    writer.cache(&["verify"], 0);
    let pruned = writer.cache(&["prune", "--format", "json"], 0).json();
    assert_eq!(pruned["local"]["removed"], json!(1), "{pruned}");
    // Two temporary files, and the lease.
    assert_eq!(pruned["shared"]["removed"], json!(3), "{pruned}");
    assert_eq!(blobs(&local).len() + fleet.entries().len(), 2 * count);
    assert!(temporary.iter().all(|path| !path.exists()));
    // A new one is that of a live process, except if all is removed.
    std::fs::write(&temporary[2], "half").unwrap();
    writer.cache(&["prune", "--local"], 0);
    assert!(temporary[2].exists());
    writer.cache(&["prune", "--local", "--all"], 0);
    assert_eq!(blobs(&local), [""; 0].map(PathBuf::from));
}

#[test]
fn prune_removes_local_copies_that_are_too_old_and_keeps_those_of_other_signers() {
    let fleet = Fleet::new();
    let count = fleet.fill();
    let reading = fleet.reading();
    let signer = EntryKey::from_seed(&[7; 32]).unwrap();
    for path in fleet.entries() {
        let entry: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        let (reply, then) = (entry["reply"].as_str().unwrap(), now() - 5 * 24 * 3600);
        std::fs::write(&path, seal(&key_of(&path), "stub-1", reply, then, &signer)).unwrap();
    }
    for (name, lines, removed) in [
        ("kept", reading.clone(), 0),
        ("other", reading.replace(&key_pair(7).1, &key_pair(8).1), 0),
        ("old", format!("{reading}max_age = \"4d\"\n"), count),
    ] {
        assert_eq!(fleet.machine(name, &reading).asked(), 0, "{name}");
        let machine = fleet.machine(name, &lines);
        let pruned = machine
            .cache(&["prune", "--local", "--format", "json"], 0)
            .json();
        assert_eq!(
            pruned["local"]["removed"],
            json!(removed),
            "{name}: {pruned}"
        );
        let left = machine
            .cache(&["stats", "--local", "--format", "json"], 0)
            .json();
        assert_eq!(left["local"]["entries"], json!(count - removed), "{name}");
    }
}

#[test]
fn counting_creates_no_cache() {
    let fleet = Fleet::new();
    let machine = fleet.machine("new", "timeout = \"3s\"\n");
    for args in [&["stats"][..], &["verify"], &["prune", "--all"]] {
        assert_eq!(machine.cache(args, 0).stdout, "no cache\n");
    }
    assert!(!machine.home.join(".cache").exists());
}
