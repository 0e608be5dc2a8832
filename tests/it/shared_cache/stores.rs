//! A Redis server on loopback that works, hangs, trickles, or answers with errors and garbage.

use super::{Fleet, decided, key_pair, notes};
use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Behaviour of the server on a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mood {
    Works,
    /// Reads commands and never answers.
    Hangs,
    /// Sends one byte after the other, without an end.
    Trickles,
    /// Closes each connection after the first command.
    Closes,
    /// Finds nothing, and refuses to store anything.
    IsFull,
    /// Demands a password.
    Refuses,
    /// Accepts the password, and repeats it in the error of each later command.
    Echoes,
    /// Speaks another protocol.
    Garbage,
    /// Announces more bytes than anybody wants.
    Huge,
    /// Announces a list without an end.
    Endless,
    /// Works, but takes half a second to store an answer.
    StoresSlowly,
    /// Works, but the first of its keys has a value of another type.
    HasOddKey,
}

/// A running server.
struct RedisStub {
    port: u16,
    data: Arc<Mutex<BTreeMap<Vec<u8>, Vec<u8>>>>,
    connections: Arc<AtomicUsize>,
    /// Reads from a connection, each of at most 8 KiB.
    reads: Arc<AtomicUsize>,
}

impl RedisStub {
    /// Starts a server. Its threads end with the test program.
    fn start(mood: Mood) -> Self {
        Self::with(mood, Arc::default())
    }

    /// Starts a server with this data.
    fn with(mood: Mood, data: Arc<Mutex<BTreeMap<Vec<u8>, Vec<u8>>>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stub = Self {
            port: listener.local_addr().unwrap().port(),
            data,
            connections: Arc::default(),
            reads: Arc::default(),
        };
        let (data, connections) = (Arc::clone(&stub.data), Arc::clone(&stub.connections));
        let reads = Arc::clone(&stub.reads);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                connections.fetch_add(1, Ordering::SeqCst);
                let (data, reads) = (Arc::clone(&data), Arc::clone(&reads));
                std::thread::spawn(move || serve(stream, mood, &data, &reads));
            }
        });
        stub
    }

    /// Returns the lines of a policy that uses the server instead of a folder.
    fn instead_of(&self, fleet: &Fleet, lines: &str) -> String {
        let folder = format!("file://{}", fleet.store.display());
        lines.replace(&folder, &format!("redis://127.0.0.1:{}/1", self.port))
    }
}

/// Answers the commands of a connection until it ends.
fn serve(
    stream: TcpStream,
    mood: Mood,
    data: &Mutex<BTreeMap<Vec<u8>, Vec<u8>>>,
    reads: &AtomicUsize,
) {
    let mut out = stream.try_clone().unwrap();
    let mut input = BufReader::new(stream);
    let mut password = Vec::new();
    loop {
        reads.fetch_add(usize::from(input.buffer().is_empty()), Ordering::SeqCst);
        let Some(command) = read_command(&mut input) else {
            return;
        };
        let answer = match mood {
            Mood::Works => answer_of(&command, &mut data.lock().unwrap()),
            Mood::Hangs => continue,
            Mood::Trickles => {
                while out.write_all(b"+").is_ok() {
                    std::thread::sleep(Duration::from_millis(50));
                }
                return;
            }
            Mood::Closes => return,
            Mood::IsFull if command[0] == b"SET" => b"-OOM command not allowed\r\n".to_vec(),
            Mood::IsFull => answer_of(&command, &mut data.lock().unwrap()),
            Mood::Refuses => b"-NOAUTH Authentication required.\r\n".to_vec(),
            Mood::Echoes if command[0] == b"AUTH" => {
                password.clone_from(&command[1]);
                b"+OK\r\n".to_vec()
            }
            Mood::Echoes => [b"-ERR you said ".as_slice(), &password, b"\r\n"].concat(),
            Mood::Garbage => b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec(),
            Mood::Huge => b"$9999999999\r\n".to_vec(),
            Mood::Endless => b"*999999999\r\n:1\r\n".to_vec(),
            Mood::HasOddKey
                if matches!(command[0].as_slice(), b"GETRANGE" | b"STRLEN")
                    && data.lock().unwrap().keys().next() == Some(&command[1]) =>
            {
                b"-WRONGTYPE Operation against a key holding the wrong kind of value\r\n".to_vec()
            }
            Mood::StoresSlowly => {
                if command[0] == b"SET" && !command.iter().any(|word| word == b"NX") {
                    std::thread::sleep(Duration::from_millis(500));
                }
                answer_of(&command, &mut data.lock().unwrap())
            }
            Mood::HasOddKey => answer_of(&command, &mut data.lock().unwrap()),
        };
        if out.write_all(&answer).is_err() {
            return;
        }
    }
}

/// Reads a command; `None` at the end of the connection.
fn read_command(input: &mut BufReader<TcpStream>) -> Option<Vec<Vec<u8>>> {
    let count = read_number(input)?;
    (0..count)
        .map(|_| {
            let mut bytes = vec![0; read_number(input)? + 2];
            input.read_exact(&mut bytes).ok()?;
            bytes.truncate(bytes.len() - 2);
            Some(bytes)
        })
        .collect()
}

/// Reads a line with a number behind its first byte.
fn read_number(input: &mut BufReader<TcpStream>) -> Option<usize> {
    let mut line = String::new();
    input.read_line(&mut line).ok()?;
    line.trim().get(1..)?.parse().ok()
}

/// Executes a command.
fn answer_of(command: &[Vec<u8>], data: &mut BTreeMap<Vec<u8>, Vec<u8>>) -> Vec<u8> {
    let bulk = |bytes: &[u8]| [format!("${}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat();
    match command[0].as_slice() {
        b"GETRANGE" => bulk(data.get(&command[1]).map_or(b"", Vec::as_slice)),
        b"SET" if command.iter().any(|c| c == b"NX") && data.contains_key(&command[1]) => {
            b"$-1\r\n".to_vec()
        }
        b"SET" => {
            data.insert(command[1].clone(), command[2].clone());
            b"+OK\r\n".to_vec()
        }
        b"DEL" => format!(":{}\r\n", usize::from(data.remove(&command[1]).is_some())).into(),
        b"STRLEN" => format!(":{}\r\n", data.get(&command[1]).map_or(0, Vec::len)).into(),
        b"SCAN" => {
            let start = command[3].strip_suffix(b"*").unwrap();
            let keys: Vec<_> = data.keys().filter(|k| k.starts_with(start)).collect();
            let mut out = format!("*2\r\n$1\r\n0\r\n*{}\r\n", keys.len()).into_bytes();
            keys.iter().for_each(|key| out.extend(bulk(key)));
            out
        }
        _ => b"+OK\r\n".to_vec(),
    }
}

#[test]
fn a_redis_server_shares_answers_between_machines() {
    let fleet = Fleet::new();
    let redis = RedisStub::start(Mood::Works);
    let writing = redis.instead_of(&fleet, &fleet.writing());
    let count = fleet.machine("writer", &writing).asked();
    assert_eq!(redis.data.lock().unwrap().len(), count);
    let reading = redis.instead_of(&fleet, &fleet.reading());
    let reader = fleet.machine("reader", &reading);
    let (asked, report) = reader.reviewed();
    assert_eq!((asked, notes(&report)), (0, Vec::new()));
    reader.cache(&["verify", "--shared"], 0);
    let shown = reader
        .cache(&["stats", "--shared", "--format", "json"], 0)
        .json();
    assert_eq!(shown["shared"]["entries"], count, "{shown}");
    reader.cache(&["prune", "--shared", "--all"], 0);
    assert_eq!(redis.data.lock().unwrap().len(), 0);
}

#[test]
fn flt_02_a_key_of_another_type_is_a_defect_of_its_entry_which_prune_removes() {
    let fleet = Fleet::new();
    let filled = RedisStub::start(Mood::Works);
    let writing = filled.instead_of(&fleet, &fleet.writing());
    let count = fleet.machine("writer", &writing).asked();
    let redis = RedisStub::with(Mood::HasOddKey, Arc::clone(&filled.data));
    let reading = redis.instead_of(&fleet, &fleet.reading());
    let reader = fleet.machine("reader", &reading);
    let (asked, report) = reader.reviewed();
    assert_eq!(asked, 1, "{report}");
    assert!(notes(&report)[0].ends_with("ignored 1 stored answers: 1 unreadable"));
    let json = ["--shared", "--format", "json"];
    let shown = reader.cache(&[&["stats"], &json[..]].concat(), 0).json();
    assert_eq!(shown["shared"]["entries"], count, "{shown}");
    let found = reader.cache(&[&["verify"], &json[..]].concat(), 1).json();
    let expected = serde_json::json!({"unreadable": 1});
    assert_eq!(found["shared"]["defects"], expected, "{found}");
    assert_eq!(found["shared"]["valid"], count - 1, "{found}");
    // The stub takes the next key for the odd one once the first is gone.
    let pruned = reader.cache(&[&["prune"], &json[..]].concat(), 0).json();
    assert_eq!(pruned["shared"]["not_removed"], 0, "{pruned}");
    assert_ne!(pruned["shared"]["removed"], 0, "{pruned}");
    let removed = usize::try_from(pruned["shared"]["removed"].as_u64().unwrap()).unwrap();
    assert_eq!(redis.data.lock().unwrap().len(), count - removed);
}

#[test]
fn flt_03_answers_are_stored_while_models_are_asked_and_cost_no_time_of_the_store() {
    // All writes together take more than the timeout, and each takes less than a question.
    let parts = 10;
    let fleet = Fleet::of_files(parts, "jobs = 1\n", |r| {
        r.review(&[]).after(Duration::from_millis(600))
    });
    let redis = RedisStub::start(Mood::StoresSlowly);
    let lines = redis.instead_of(&fleet, &fleet.writing());
    let machine = fleet.machine("writer", &format!("{lines}timeout = \"3s\"\n"));
    let (asked, report) = machine.reviewed();
    assert!(asked >= parts, "{asked}");
    assert_eq!(notes(&report), [""; 0], "{report}");
    // Every answer, and no lease.
    assert_eq!(redis.data.lock().unwrap().len(), asked);
    let keys = redis.data.lock().unwrap();
    assert!(
        keys.keys()
            .all(|key| key.starts_with(b"claude-reviewer:replies-1/"))
    );
}

#[test]
fn the_sizes_of_many_keys_are_asked_for_together() {
    let fleet = Fleet::new();
    let redis = RedisStub::start(Mood::Works);
    let keys = 2_500_usize;
    for n in 0..keys {
        let key = format!("claude-reviewer:replies-1/{n:064x}");
        redis
            .data
            .lock()
            .unwrap()
            .insert(key.into_bytes(), vec![b'x'; 3]);
    }
    let foreign = b"claude-reviewer:replies-1/notes".to_vec();
    redis.data.lock().unwrap().insert(foreign, Vec::new());
    let reading = redis.instead_of(&fleet, &fleet.reading());
    let reader = fleet.machine("reader", &reading);
    let shown = reader
        .cache(&["stats", "--shared", "--format", "json"], 0)
        .json();
    let shared = &shown["shared"];
    assert_eq!(
        (&shared["entries"], &shared["bytes"]),
        (&keys.into(), &(3 * keys).into())
    );
    assert_eq!(shared["foreign_names"], 1, "{shown}");
    let reads = redis.reads.load(Ordering::SeqCst);
    assert!(reads < keys / 4, "{reads} reads for {keys} keys");
}

#[test]
fn flt_03_the_time_that_a_slow_server_costs_does_not_grow_with_the_parts_of_a_change() {
    let parts = 100;
    let lines = "jobs = 1\nmax_requests = 1000\n";
    let fleet = Fleet::of_files(parts, lines, |r| r.review(&[]));
    let bound = Duration::from_secs(60);
    for mood in [Mood::Hangs, Mood::Trickles] {
        let redis = RedisStub::start(mood);
        let lines = redis.instead_of(&fleet, &fleet.writing());
        let machine = fleet.machine(&format!("{mood:?}"), &format!("{lines}timeout = \"1s\"\n"));
        let began = std::time::Instant::now();
        let (asked, report) = machine.reviewed();
        let took = began.elapsed();
        assert!(asked >= parts, "{mood:?}: {asked}");
        assert!(notes(&report)[0].contains("too slow"), "{mood:?}: {report}");
        // Each part by itself would wait for the timeout of a second.
        assert!(took < bound, "{mood:?}: {took:?} for {asked} parts");
    }
}

#[test]
fn flt_03_a_server_that_is_slow_gone_or_hostile_changes_no_verdict_and_is_asked_once() {
    let fleet = Fleet::new();
    let (count, honest) = fleet.machine("lone", "timeout = \"3s\"\n").reviewed();
    for (mood, reason) in [
        (Mood::Hangs, "too slow"),
        (Mood::Trickles, "too slow"),
        (Mood::Closes, "closed the connection"),
        (Mood::IsFull, "OOM"),
        (Mood::Refuses, "NOAUTH"),
        (Mood::Garbage, "not from a Redis server"),
        (Mood::Huge, "sent more than"),
        (Mood::Endless, "sent more than"),
    ] {
        let redis = RedisStub::start(mood);
        let lines = redis.instead_of(&fleet, &fleet.writing());
        let machine = fleet.machine(&format!("{mood:?}"), &format!("{lines}timeout = \"1s\"\n"));
        let (asked, report) = machine.reviewed();
        assert_eq!(asked, count, "{mood:?}");
        assert_eq!(decided(&report), decided(&honest), "{mood:?}");
        let notes = notes(&report);
        assert_eq!(notes.len(), 1, "{mood:?}: {notes:?}");
        assert!(
            notes[0].contains("not asked any more"),
            "{mood:?}: {notes:?}"
        );
        assert!(notes[0].contains(reason), "{mood:?}: {notes:?}");
        let connections = redis.connections.load(Ordering::SeqCst);
        assert_eq!(connections, 1, "{mood:?}");
    }
}

#[test]
fn flt_03_a_server_that_is_gone_changes_no_verdict() {
    let fleet = Fleet::new();
    let port = crate::loopback::closed_port();
    let lines = format!(
        "url = \"redis://127.0.0.1:{port}\"\nsigners = [\"{}\"]\n",
        key_pair(7).1
    );
    let machine = fleet.machine("a", &lines);
    let (asked, report) = machine.reviewed();
    assert!(asked > 0);
    assert!(notes(&report)[0].contains("cannot connect"), "{report}");
    let run = machine.cache(&["stats", "--shared"], 3);
    assert!(
        run.stderr.contains("cannot use the shared cache"),
        "{}",
        run.stderr
    );
}

#[test]
fn sec_03_the_password_of_a_server_is_sent_to_it_and_shown_nowhere() {
    let fleet = Fleet::new();
    for (mood, reason) in [
        (Mood::Refuses, "refused the password"),
        (Mood::Echoes, "you said ***"),
    ] {
        let redis = RedisStub::start(mood);
        let lines = redis.instead_of(&fleet, &fleet.reading());
        let machine = fleet.machine(&format!("{mood:?}"), &lines);
        let run = crate::support::reviewer(
            &fleet.repo.path(),
            &machine.home,
            &["review", "staged", "--no-save", "-vv", "--format", "json"],
        )
        .env("REDISCLI_AUTH", "hunter2-canary")
        .run_any();
        let text = format!("{}{}", run.stdout, run.stderr);
        assert!(text.contains(reason), "{text}");
        assert!(!text.contains("canary"), "{text}");
    }
}
