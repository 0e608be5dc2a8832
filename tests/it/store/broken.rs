//! STO-06: damaged files.

use super::kit::{Yard, change, closing, create, day, full_session, id, review};
use claude_reviewer::error::Kind;
use claude_reviewer::wire::stored::{History, Status};

/// A modification of a session's folder.
type Harm = fn(&std::path::Path);

const FILES: [&str; 5] = [
    "request.json",
    "round-1/review.json",
    "round-1/response.json",
    "round-2/seal.json",
    "complete.json",
];

/// Creates a store with a session whose file has this content, and an older valid one.
fn with(file: &str, content: &[u8]) -> Yard {
    let yard = Yard::new();
    create(&yard.store(), day(10), 0).unwrap();
    full_session(&yard.store());
    std::fs::write(yard.path("sessions/2026-01-31-001").join(file), content).unwrap();
    yard
}

fn listed(history: &History) -> Vec<&str> {
    history
        .sessions
        .iter()
        .map(|s| s.review_id.as_str())
        .collect()
}

#[test]
fn sto_06_a_damaged_session_is_told_and_put_aside_and_the_others_are_listed() {
    let zeros = [0_u8; 300];
    let broken: [(&str, &[u8]); 7] = [
        ("empty", b""),
        (
            "truncated",
            b"{\"schema_version\": 1, \"review_id\": \"2026-",
        ),
        ("zero-filled", &zeros),
        (
            "of another schema",
            b"{\"schema_version\": 1, \"other\": true}",
        ),
        ("of no version", b"{\"review_id\": \"2026-01-31-001\"}"),
        ("of a strange version", b"{\"schema_version\": \"1\"}"),
        (
            "no UTF-8",
            b"{\"schema_version\": 1, \"review_id\": \"\xff\"}",
        ),
    ];
    for file in FILES {
        for (what, content) in broken {
            let yard = with(file, content);
            let error = yard.store().session(&id("2026-01-31-001")).unwrap_err();
            assert_eq!(error.kind, Kind::Usage, "{file} {what}");
            assert!(error.causes.join(" ").contains(file), "{what}: {error:?}");
            assert!(
                error
                    .hints
                    .join(" ")
                    .contains(".reviews/.corrupt/2026-01-31-001"),
                "{file} {what}: {error:?}"
            );
            assert_eq!(
                std::fs::read(yard.path(".corrupt/2026-01-31-001").join(file)).unwrap(),
                content
            );
            // A second call reports where the session was moved.
            let error = yard.store().session(&id("2026-01-31-001")).unwrap_err();
            assert!(
                error.hints.join(" ").contains(".corrupt"),
                "{file} {what}: {error:?}"
            );
            assert_eq!(
                listed(&yard.store().list(5).unwrap()),
                ["2026-01-10-001"],
                "{file} {what}"
            );
            assert!(
                yard.store()
                    .verify(None, None)
                    .unwrap()
                    .iter()
                    .any(|c| c.id == "2026-01-31-001" && !c.edits.is_empty())
            );
        }
    }
}

#[test]
fn sto_06_who_closes_or_continues_a_damaged_session_puts_it_aside() {
    for file in FILES {
        for closes in [true, false] {
            let yard = with(file, b"{\"schema_version\": 1, \"review_id\": \"2026-");
            let (store, name) = (yard.store(), id("2026-01-31-001"));
            let error = if closes {
                store
                    .complete(&name, closing(Status::Abandoned), false)
                    .unwrap_err()
            } else {
                let write = |round: u32| review("2026-01-31-001", round, 0);
                store
                    .append(&name, day(31), 2, &change("+2\n"), None, &write)
                    .unwrap_err()
            };
            assert_eq!(error.kind, Kind::Usage, "{file}");
            assert!(error.causes.join(" ").contains(file), "{error:?}");
            assert!(
                error
                    .hints
                    .join(" ")
                    .contains(".reviews/.corrupt/2026-01-31-001"),
                "{file} {closes}: {error:?}"
            );
            assert!(
                yard.path(".corrupt/2026-01-31-001").join(file).exists()
                    && !yard.path("sessions/2026-01-31-001").exists()
            );
            create(&store, day(31), 0).unwrap();
        }
    }
}

#[test]
fn sto_06_a_listing_tells_what_it_put_aside() {
    for file in [
        "request.json",
        "round-2/review.json",
        "round-2/seal.json",
        "complete.json",
    ] {
        let yard = with(file, b"{\"schema_version\": 1");
        let history = yard.store().list(5).unwrap();
        assert_eq!(listed(&history), ["2026-01-10-001"], "{file}");
        let [damaged] = history.damaged.as_slice() else {
            panic!("{file}: {:?}", history.damaged)
        };
        assert_eq!(damaged.review_id, "2026-01-31-001");
        assert!(damaged.why.contains(file), "{damaged:?}");
        assert_eq!(damaged.moved_to.as_deref(), Some(".corrupt/2026-01-31-001"));
    }
}

#[test]
fn sto_06_a_second_one_of_the_same_name_is_put_beside_the_first() {
    let yard = with("request.json", b"");
    yard.store().list(5).unwrap();
    std::fs::create_dir(yard.path("sessions/2026-01-31-001")).unwrap();
    let history = yard.store().list(5).unwrap();
    assert_eq!(
        history.damaged[0].moved_to.as_deref(),
        Some(".corrupt/2026-01-31-001.2")
    );
}

#[test]
fn sto_06_what_a_newer_program_wrote_is_refused_by_its_version_and_left_alone() {
    for file in FILES {
        let content = b"{\"schema_version\": 7, \"review_id\": {\"as\": \"nobody knows yet\"}}";
        let yard = with(file, content);
        let error = yard.store().session(&id("2026-01-31-001")).unwrap_err();
        let told = error.causes.join(" ");
        assert!(
            told.contains(file) && told.contains("schema_version is 7"),
            "{error:?}"
        );
        assert!(
            error.hints.join(" ").contains("update claude-reviewer"),
            "{error:?}"
        );
        let path = yard.path("sessions/2026-01-31-001").join(file);
        assert_eq!(std::fs::read(path).unwrap(), content);
        assert!(!yard.path(".corrupt").exists());
        // The listing reads no responses, and only the last round.
        let history = yard.store().list(5).unwrap();
        assert!(listed(&history).contains(&"2026-01-10-001"), "{file}");
        assert!(
            history.damaged.iter().all(|d| d.moved_to.is_none()),
            "{file}"
        );
    }
}

#[test]
fn sto_06_a_report_of_a_newer_program_is_refused_too() {
    let yard = Yard::new();
    full_session(&yard.store());
    let path = yard.path("sessions/2026-01-31-001/round-2/review.json");
    let mut review: serde_json::Value =
        serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    review["report"]["schema_version"] = 2.into();
    std::fs::write(&path, review.to_string()).unwrap();
    let error = yard.store().session(&id("2026-01-31-001")).unwrap_err();
    assert!(
        error.causes.join(" ").contains("schema_version is 2"),
        "{error:?}"
    );
    assert!(path.exists());
}

#[test]
fn fields_that_are_not_known_yet_are_no_damage() {
    let yard = Yard::new();
    let session = full_session(&yard.store());
    let path = yard.path("sessions/2026-01-31-001/request.json");
    let text =
        std::fs::read_to_string(&path)
            .unwrap()
            .replacen('{', "{\"later\": {\"deep\": [1]},", 1);
    std::fs::write(&path, text).unwrap();
    assert_eq!(
        yard.store().session(&session).unwrap().review_id,
        "2026-01-31-001"
    );
}

#[test]
fn sto_06_rounds_that_are_missing_or_stand_in_for_others_are_damage() {
    let cases: [(&str, Harm); 5] = [
        ("round-1 is gone", |s| {
            std::fs::remove_dir_all(s.join("round-1")).unwrap();
        }),
        ("round-2 is called round-3", |s| {
            std::fs::rename(s.join("round-2"), s.join("round-3")).unwrap();
        }),
        ("round-2 holds round 1", |s| {
            std::fs::copy(s.join("round-1/review.json"), s.join("round-2/review.json")).unwrap();
        }),
        ("a seal is gone", |s| {
            std::fs::remove_file(s.join("round-2/seal.json")).unwrap();
        }),
        ("it is another session's", |s| {
            let text = std::fs::read_to_string(s.join("request.json")).unwrap();
            std::fs::write(
                s.join("request.json"),
                text.replace("2026-01-31-001", "2026-01-31-002"),
            )
            .unwrap();
        }),
    ];
    for (what, harm) in cases {
        let yard = Yard::new();
        let session = full_session(&yard.store());
        harm(&yard.path("sessions/2026-01-31-001"));
        assert!(
            !yard.store().verify(Some(&session), None).unwrap()[0]
                .edits
                .is_empty(),
            "{what}"
        );
        assert!(yard.store().session(&session).is_err(), "{what}");
        assert!(yard.path(".corrupt/2026-01-31-001").exists(), "{what}");
    }
}

#[test]
fn a_file_larger_than_any_that_is_written_is_not_read() {
    let yard = Yard::new();
    let session = full_session(&yard.store());
    let path = yard.path("sessions/2026-01-31-001/request.json");
    // A sparse file takes no space.
    std::fs::File::options()
        .write(true)
        .open(&path)
        .unwrap()
        .set_len(10 << 30)
        .unwrap();
    let error = yard.store().session(&session).unwrap_err();
    assert!(error.causes.join(" ").contains("larger than"), "{error:?}");
}

#[test]
fn decisions_larger_than_any_that_are_read_are_not_written() {
    let yard = Yard::new();
    let store = yard.store();
    let most = vec![b'#'; 4 << 20];
    store.decide(|_| Ok(most.clone())).unwrap();
    let larger = vec![b'#'; (4 << 20) + 1];
    for written in [
        store.decide(|_| Ok(larger.clone())),
        store.propose(|_| Ok(larger.clone())),
    ] {
        let causes = written.unwrap_err().causes.join(" ");
        assert!(
            causes.contains("s.toml would be larger than 4194304 bytes"),
            "{causes}"
        );
    }
    assert!(!yard.path("proposals.toml").exists());
    store.decide(|old| Ok(old.unwrap_or_default())).unwrap();
    assert_eq!(std::fs::read(yard.path("dispositions.toml")).unwrap(), most);
}

/// Pseudo-random numbers, deterministic for a seed (xorshift).
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % n as u64) as usize
    }
}

/// Damages a document in a typical way.
fn mutate(text: &[u8], dice: &mut Dice) -> Vec<u8> {
    let mut out = text.to_vec();
    for _ in 0..=dice.below(3) {
        let at = dice.below(out.len().max(1));
        let other = dice.below(out.len().max(1));
        match dice.below(8) {
            _ if out.is_empty() => out.push(b'{'),
            0 => out[at] = dice.below(256) as u8,
            1 => out[at] ^= 1 << dice.below(8),
            2 => out.truncate(at),
            3 => drop(out.remove(at)),
            4 => out.insert(at, b"{}[]\",:0-e\\\0"[dice.below(12)]),
            5 => {
                let piece = out[at.min(other)..at.max(other)].to_vec();
                out.splice(at..at, piece);
            }
            6 => drop(out.splice(at..at, [b'['; 400])),
            _ => {
                let words: [&[u8]; 6] = [
                    b"null",
                    b"-1",
                    b"1e999",
                    b"4294967296",
                    b"\"\\ud800\"",
                    b"true",
                ];
                let end = (at + dice.below(12)).min(out.len());
                out.splice(at..end, words[dice.below(6)].to_vec());
            }
        }
        out.truncate(1 << 20);
    }
    out
}

#[test]
fn no_content_of_a_file_makes_a_reader_panic() {
    let mut dice = Dice(0x2545_f491_4f6c_dd1d);
    let files = [
        "request.json",
        "round-1/review.json",
        "round-1/response.json",
        "round-2/seal.json",
        "complete.json",
    ];
    for file in files {
        let yard = Yard::new();
        let session = full_session(&yard.store());
        let store = yard.store();
        let path = yard.path("sessions/2026-01-31-001").join(file);
        let text = std::fs::read(&path).unwrap();
        let mut understood = 0;
        for _ in 0..300 {
            let folder = yard.path("sessions/2026-01-31-001");
            std::fs::write(&path, mutate(&text, &mut dice)).unwrap();
            let _ = store.verify(Some(&session), None).unwrap();
            let _ = store.list(3).unwrap();
            understood += usize::from(store.session(&session).is_ok());
            let aside = yard.path(".corrupt/2026-01-31-001");
            if aside.exists() {
                std::fs::rename(aside, folder).unwrap();
            }
        }
        assert!(understood < 300, "{file}: nothing was broken");
    }
}
