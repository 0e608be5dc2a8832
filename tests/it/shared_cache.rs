//! Tests of the cache that machines share: what a store holds decides nothing, and a store that
//! fails costs little.

mod stores;
mod upkeep;

use crate::judge;
use crate::loopback::{Reply, Request, Server, finding};
use crate::support::{Repo, Reviewer, Run, mkfifo, reviewer};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use claude_reviewer::ai::cache::ReplyKey;
use claude_reviewer::ai::shared::EntryKey;
use claude_reviewer::ai::shared::entry::{Lease, seal, seal_lease};
use ring::signature::{Ed25519KeyPair, KeyPair as _};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Returns a private key file of OpenSSH for a seed, and the line of its signer.
fn key_pair(seed: u8) -> (String, String) {
    let put = |out: &mut Vec<u8>, bytes: &[u8]| {
        out.extend(u32::try_from(bytes.len()).unwrap().to_be_bytes());
        out.extend(bytes);
    };
    let seed = [seed; 32];
    let pair = Ed25519KeyPair::from_seed_unchecked(&seed).unwrap();
    let public = pair.public_key().as_ref();
    let (mut blob, mut all) = (Vec::new(), b"openssh-key-v1\0".to_vec());
    put(&mut blob, b"ssh-ed25519");
    put(&mut blob, public);
    let mut private = vec![9, 9, 9, 9, 9, 9, 9, 9];
    put(&mut private, b"ssh-ed25519");
    put(&mut private, public);
    put(&mut private, &[&seed[..], public].concat());
    put(&mut private, b"");
    for part in [b"none".as_slice(), b"none", b""] {
        put(&mut all, part);
    }
    all.extend(1_u32.to_be_bytes());
    put(&mut all, &blob);
    put(&mut all, &private);
    let [begin, end] = ["BEGIN", "END"].map(|word| format!("-----{word} OPENSSH PRIVATE KEY-----"));
    (
        format!("{begin}\n{}\n{end}\n", STANDARD.encode(all)),
        format!("ci ssh-ed25519 {}", STANDARD.encode(blob)),
    )
}

/// A repository with a staged change of several files, a model server, and machines that review it.
struct Fleet {
    repo: Repo,
    server: Server,
    store: PathBuf,
}

/// A machine: a home folder with its own cache and policy.
struct Machine<'f> {
    fleet: &'f Fleet,
    home: PathBuf,
}

impl Fleet {
    /// Creates a fleet with a change of three files, whose model answers with the handler.
    fn with(handler: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> Self {
        Self::of_files(3, "", handler)
    }

    /// Creates a fleet with a change of this number of files, each of which is a part of its own.
    /// `lines` are further lines of the policy's `[review]`.
    fn of_files(
        files: usize,
        lines: &str,
        handler: impl Fn(&Request) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let (repo, server) = (Repo::new(), Server::start(handler));
        let policy = server.policy("openai");
        repo.stage(
            ".claude-reviewer.toml",
            policy.replace("[review]\n", &format!("[review]\nmax_files = 1\n{lines}")),
        )
        .commit("seed");
        for n in 0..files {
            repo.stage(&format!("src/a{n}.py"), format!("total = items[{n}]\n"));
        }
        let store = repo.outside().join("store");
        std::fs::create_dir_all(&store).unwrap();
        Self {
            repo,
            server,
            store,
        }
    }

    /// Creates a fleet whose model finds a problem in one file.
    fn new() -> Self {
        Self::with(|r| r.review(&[finding("src/a1.py", 1, "total = items[1]")]))
    }

    /// Returns a machine whose policy has these lines in `[cache]`.
    fn machine(&self, name: &str, lines: &str) -> Machine<'_> {
        let home = self.repo.outside().join(name);
        let config = home.join(".config/claude-reviewer");
        std::fs::create_dir_all(&config).unwrap();
        std::fs::write(config.join("config.toml"), format!("[cache]\n{lines}")).unwrap();
        Machine { fleet: self, home }
    }

    /// Returns the lines of a policy that reads the store.
    fn reading(&self) -> String {
        let url = format!("file://{}", self.store.display());
        format!("url = \"{url}\"\nsigners = [\"{}\"]\n", key_pair(7).1)
    }

    /// Returns the lines of a policy that reads and writes the store.
    fn writing(&self) -> String {
        let key = self.repo.outside().join("cache-key");
        std::fs::write(&key, key_pair(7).0).unwrap();
        let command = format!("cat {}", key.display());
        format!(
            "{}write = true\nsign_key_command = \"{command}\"\n",
            self.reading()
        )
    }

    /// Returns the entries of the store, sorted.
    fn entries(&self) -> Vec<PathBuf> {
        blobs(&self.store.join("replies-1"))
    }

    /// Fills the store with the answers to all questions; returns their number.
    fn fill(&self) -> usize {
        let asked = self.machine("writer", &self.writing()).asked();
        assert_eq!(self.entries().len(), asked);
        assert!(asked >= 3, "the change has several parts: {asked}");
        asked
    }
}

impl Machine<'_> {
    /// Reviews the staged change.
    fn review(&self) -> Run {
        self.prepared().run_any()
    }

    /// Prepares a review of the staged change.
    fn prepared(&self) -> Reviewer {
        let args = ["review", "staged", "--no-save", "--format", "json"];
        reviewer(&self.fleet.repo.path(), &self.home, &args)
    }

    /// Reviews the staged change, which a finding of the model blocks or not as ever. Returns the
    /// number of questions to the model.
    fn asked(&self) -> usize {
        self.reviewed().0
    }

    /// Reviews the staged change; returns the number of questions, and the report.
    fn reviewed(&self) -> (usize, Value) {
        let before = self.fleet.server.questions().len();
        let run = self.review();
        assert!([0, 1].contains(&run.code), "{}\n{}", run.stdout, run.stderr);
        (self.fleet.server.questions().len() - before, run.json())
    }

    /// Runs `cache …` and expects an exit code.
    fn cache(&self, args: &[&str], code: i32) -> Run {
        let args = [&["cache"], args].concat();
        reviewer(&self.fleet.repo.path(), &self.home, &args).run(code)
    }
}

/// Runs reviews at the same time; returns their exit codes.
fn at_once(reviews: impl IntoIterator<Item = Reviewer>) -> Vec<i32> {
    let runs: Vec<_> = reviews
        .into_iter()
        .map(|review| std::thread::spawn(move || review.run_any().code))
        .collect();
    runs.into_iter().map(|run| run.join().unwrap()).collect()
}

/// Returns the files of a folder, sorted.
fn blobs(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut all: Vec<_> = entries.map(|e| e.unwrap().path()).collect();
    all.sort();
    all
}

/// Returns the notes of a report about the shared cache.
fn notes(report: &Value) -> Vec<String> {
    let text = |note: &Value| {
        note["message"]
            .as_str()
            .or(note["text"].as_str())
            .map(str::to_owned)
    };
    let all = report["notes"].as_array().unwrap();
    all.iter()
        .filter_map(text)
        .filter(|text| text.contains("shared cache"))
        .collect()
}

/// Returns what a review decided: the verdict and the findings.
fn decided(report: &Value) -> Value {
    json!([report["verdict"], report["summary"], report["findings"]])
}

/// Returns the key of an entry, by its name.
fn key_of(entry: &Path) -> ReplyKey {
    ReplyKey::from_hex(entry.file_name().unwrap().to_str().unwrap()).unwrap()
}

/// Returns the time in seconds since 1970.
fn now() -> i64 {
    jiff::Timestamp::now().as_second()
}

#[test]
fn an_answer_of_one_machine_serves_another_which_keeps_it() {
    let fleet = Fleet::new();
    let count = fleet.fill();
    let reader = fleet.machine("reader", &fleet.reading());
    let (asked, report) = reader.reviewed();
    assert_eq!(asked, 0, "{report}");
    assert_eq!(notes(&report), [""; 0]);
    assert_eq!(report["usage"][0]["from_cache"], json!(count), "{report}");
    assert_eq!(report["usage"][0]["requests"], json!(0), "{report}");
    let lone = fleet.machine("lone", "timeout = \"3s\"\n");
    let (asked, alone) = lone.reviewed();
    assert_eq!((asked, decided(&alone)), (count, decided(&report)));
    // The reader has its own copies now.
    std::fs::remove_dir_all(&fleet.store).unwrap();
    let (asked, report) = reader.reviewed();
    assert_eq!((asked, notes(&report)), (0, Vec::new()));
}

#[test]
fn flt_02_a_local_copy_counts_only_as_long_as_its_signer_and_its_age_do() {
    let fleet = Fleet::new();
    let count = fleet.fill();
    let signer = EntryKey::from_seed(&[7; 32]).unwrap();
    for path in fleet.entries() {
        let entry: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        let (reply, then) = (entry["reply"].as_str().unwrap(), now() - 5 * 24 * 3600);
        std::fs::write(&path, seal(&key_of(&path), "stub-1", reply, then, &signer)).unwrap();
    }
    let reading = fleet.reading();
    let other = reading.replace(&key_pair(7).1, &key_pair(8).1);
    // Each machine has its copies before the store loses its entries.
    let policies = [
        ("kept", reading.clone(), 0),
        ("removed-signer", other, count),
        (
            "no-signers",
            reading.replace(&format!("\"{}\"", key_pair(7).1), ""),
            count,
        ),
        ("too-old", format!("{reading}max_age = \"4d\"\n"), count),
        ("no-store", "timeout = \"3s\"\n".to_owned(), count),
    ];
    for (name, ..) in &policies {
        assert_eq!(fleet.machine(name, &reading).asked(), 0, "{name}");
    }
    for path in fleet.entries() {
        std::fs::remove_file(path).unwrap();
    }
    for (name, lines, expected) in &policies {
        let machine = fleet.machine(name, lines);
        machine.cache(&["verify", "--local"], 0);
        assert_eq!(machine.asked(), *expected, "{name}");
    }
}

#[test]
fn an_incomplete_answer_is_not_stored_and_its_lease_is_given_back() {
    let fleet = Fleet::with(|r| {
        let mut document = r.document(&[]);
        document["files_reviewed"] = json!([]);
        r.text(&document.to_string())
    });
    let run = fleet.machine("writer", &fleet.writing()).review();
    let report = run.json();
    assert!(
        report.to_string().contains("does not account for it"),
        "{report}"
    );
    assert_eq!(fleet.entries().len(), 0, "{report}");
    assert!(fleet.store.join("leases-1").is_dir());
    assert_eq!(blobs(&fleet.store.join("leases-1")).len(), 0, "{report}");
}

#[test]
fn flt_02_a_link_at_a_folder_of_the_store_leads_nowhere() {
    let fleet = Fleet::new();
    let count = fleet.fill();
    let elsewhere = fleet.repo.outside().join("elsewhere");
    for folder in ["replies-1", "leases-1"] {
        let inside = fleet.store.join(folder);
        std::fs::rename(&inside, &elsewhere).unwrap();
        std::fs::write(elsewhere.join("0".repeat(64)), "mine").unwrap();
        std::os::unix::fs::symlink(&elsewhere, &inside).unwrap();
        let before = blobs(&elsewhere);
        let writer = fleet.machine(folder, &fleet.writing());
        let (asked, report) = writer.reviewed();
        assert_eq!(asked, count, "{folder}");
        assert!(notes(&report)[0].contains("not asked any more"), "{report}");
        writer.cache(&["prune", "--shared", "--all"], 3);
        assert_eq!(blobs(&elsewhere), before, "{folder}");
        std::fs::remove_file(&inside).unwrap();
        std::fs::remove_dir_all(&elsewhere).unwrap();
    }
}

/// Returns the bytes that an attacker writes in place of entry number `usize` of all entries.
type Attack = fn(&[Vec<u8>], usize) -> Vec<u8>;

#[test]
fn flt_02_no_entry_that_an_attacker_can_write_changes_a_verdict() {
    let fleet = Fleet::new();
    let count = fleet.fill();
    let entries = fleet.entries();
    let genuine: Vec<Vec<u8>> = entries.iter().map(|e| std::fs::read(e).unwrap()).collect();
    let (_, honest) = fleet.machine("lone", "timeout = \"3s\"\n").reviewed();
    let attacks: [(&str, &str, Attack); 7] = [
        (
            "forged",
            "by a signer that the policy does not list",
            |all, i| {
                let forger = EntryKey::from_seed(&[8; 32]).unwrap();
                let entry: Value = serde_json::from_slice(&all[i]).unwrap();
                let key = ReplyKey::from_hex(entry["key"].as_str().unwrap()).unwrap();
                seal(
                    &key,
                    "stub-1",
                    entry["reply"].as_str().unwrap(),
                    now(),
                    &forger,
                )
            },
        ),
        ("edited", "with a wrong signature", |all, i| {
            let text = String::from_utf8(all[i].clone()).unwrap();
            text.replace("Looked", "Never looked").into_bytes()
        }),
        ("replayed", "copied from another question", |all, i| {
            all[(i + 1) % all.len()].clone()
        }),
        ("stale", "older than max_age", |all, i| {
            let signer = EntryKey::from_seed(&[7; 32]).unwrap();
            let entry: Value = serde_json::from_slice(&all[i]).unwrap();
            let key = ReplyKey::from_hex(entry["key"].as_str().unwrap()).unwrap();
            let then = now() - 15 * 24 * 3600;
            seal(
                &key,
                "stub-1",
                entry["reply"].as_str().unwrap(),
                then,
                &signer,
            )
        }),
        ("truncated", "truncated or malformed", |all, i| {
            all[i][..all[i].len() / 2].to_vec()
        }),
        ("empty", "truncated or malformed", |_, _| Vec::new()),
        ("oversize", "larger than max_entry_kib", |_, _| {
            vec![b'x'; 300 << 10]
        }),
    ];
    for (name, reason, attack) in attacks {
        for (i, entry) in entries.iter().enumerate() {
            std::fs::write(entry, attack(&genuine, i)).unwrap();
        }
        let (asked, report) = fleet.machine(name, &fleet.reading()).reviewed();
        assert_eq!(asked, count, "{name}");
        assert_eq!(decided(&report), decided(&honest), "{name}");
        let notes = notes(&report);
        assert_eq!(notes.len(), 1, "{name}: {notes:?}");
        let expected = format!("ignored {count} stored answers: {count} {reason}");
        assert!(notes[0].contains(&expected), "{name}: {notes:?}");
    }
}

#[test]
fn flt_02_a_link_or_a_pipe_in_the_store_is_not_followed_and_costs_its_own_part_only() {
    let fleet = Fleet::new();
    let count = fleet.fill();
    let entries = fleet.entries();
    let elsewhere = fleet.repo.outside().join("elsewhere");
    std::fs::rename(&entries[0], &elsewhere).unwrap();
    let genuine = std::fs::read(&elsewhere).unwrap();
    for (name, make) in [
        (
            "link",
            (|at, to| std::os::unix::fs::symlink(to, at).unwrap()) as fn(&Path, &Path),
        ),
        ("pipe", |at, _| mkfifo(at)),
        ("folder", |at, _| std::fs::create_dir(at).unwrap()),
    ] {
        make(&entries[0], &elsewhere);
        let (asked, report) = fleet.machine(name, &fleet.reading()).reviewed();
        assert_eq!(asked, 1, "{name}: {report}");
        let expected = "shared cache: ignored 1 stored answers: 1 unreadable";
        assert_eq!(notes(&report), [expected], "{name}");
        let writer = fleet.machine("writer", &fleet.writing());
        let found = writer.cache(&["verify", "--shared", "--format", "json"], 1);
        assert_eq!(
            found.json()["shared"]["defects"],
            json!({"unreadable": 1}),
            "{name}"
        );
        let pruned = writer
            .cache(&["prune", "--shared", "--format", "json"], 0)
            .json();
        let shared = &pruned["shared"];
        // A folder stays: the program made none.
        let is_folder = usize::from(name == "folder");
        assert_eq!(shared["not_removed"], json!(is_folder), "{name}: {pruned}");
        assert_eq!(shared["removed"], json!(1 - is_folder), "{name}: {pruned}");
        assert_eq!(std::fs::read(&elsewhere).unwrap(), genuine, "{name}");
    }
    assert_eq!(fleet.entries().len(), count);
}

#[test]
fn only_a_run_with_write_and_a_key_of_the_policy_stores_answers() {
    let fleet = Fleet::new();
    let key = fleet.repo.outside().join("other-key");
    std::fs::write(&key, key_pair(8).0).unwrap();
    let with = |command: &str| {
        format!(
            "{}write = true\nsign_key_command = \"{command}\"\n",
            fleet.reading()
        )
    };
    let reading = fleet.reading();
    for (name, lines, reason) in [
        ("reader", reading.clone(), ""),
        (
            "keyless",
            format!("{reading}write = true\n"),
            "needs sign_key_command",
        ),
        (
            "foreign",
            with(&format!("cat {}", key.display())),
            "is not that of a signer",
        ),
        ("failing", with("exit 3"), "failed with exit code 3"),
        (
            "chatty",
            with("echo hello-canary"),
            "did not print a private key",
        ),
    ] {
        let (asked, report) = fleet.machine(name, &lines).reviewed();
        assert!(asked > 0, "{name}");
        assert_eq!(fleet.entries(), [""; 0].map(PathBuf::from), "{name}");
        let notes = notes(&report).join("\n");
        assert!(
            notes.contains(reason) && !notes.contains("canary"),
            "{name}: {notes}"
        );
        assert_eq!(notes.is_empty(), reason.is_empty(), "{name}: {notes}");
    }
    // No answer counts without signers, and the store is not even read.
    let url = format!("url = \"file://{}\"\n", fleet.store.display());
    let (_, report) = fleet.machine("open", &url).reviewed();
    assert!(
        notes(&report)[0].contains("[cache] signers is empty"),
        "{report}"
    );
}

#[test]
fn a_change_does_not_choose_the_store_of_its_answers() {
    let fleet = Fleet::new();
    let count = fleet.fill();
    let policy = fleet.server.policy("openai");
    let policy = policy.replace("[review]\n", "[review]\nmax_files = 1\n");
    fleet.repo.write(
        ".claude-reviewer.toml",
        format!("{policy}[cache]\n{}", fleet.reading()),
    );
    let victim = fleet.machine("victim", "timeout = \"3s\"\n");
    let (asked, report) = victim.reviewed();
    assert_eq!(asked, count, "{report}");
    assert!(report.to_string().contains("cache.url"), "{report}");
    let run = victim.cache(&["stats"], 0);
    assert!(run.stderr.contains("cache.url"), "{}", run.stderr);
}

#[test]
fn no_cache_and_a_change_of_the_question_pass_the_store_by() {
    let fleet = Fleet::new();
    let count = fleet.fill();
    let reader = fleet.machine("reader", &fleet.reading());
    let before = fleet.server.questions().len();
    let args = ["review", "staged", "--no-save", "--no-cache"];
    reviewer(&fleet.repo.path(), &reader.home, &args).run_any();
    assert_eq!(fleet.server.questions().len() - before, count);
    fleet.repo.stage("src/a0.py", "total = items[9]\n");
    let asked = reader.asked();
    assert!((1..=count).contains(&asked), "{asked}");
}

#[test]
fn an_answer_with_a_secret_in_it_is_not_shared() {
    for escaped in ["A", "\\u0041"] {
        let fleet = Fleet::with(move |r| {
            let mut document = r.document(&[]);
            document["summary"] = json!(crate::support::line_with_key());
            let text = document.to_string();
            r.text(&text.replacen(&["AK", "IA"].concat(), &format!("{escaped}KIA"), 1))
        });
        let writer = fleet.machine("writer", &fleet.writing());
        assert!(writer.asked() > 0);
        assert_eq!(fleet.entries().len(), 0, "{escaped}");
        // The lease was given back.
        assert_eq!(blobs(&fleet.store.join("leases-1")).len(), 0, "{escaped}");
    }
}

#[test]
fn two_runs_that_review_the_same_change_ask_each_part_once() {
    let fleet = Fleet::with(|r| r.review(&[]).after(Duration::from_millis(700)));
    // A busy machine is slow, which is not what this test is about.
    let writing = fleet.writing() + "timeout = \"30s\"\n";
    let codes = at_once(["a", "b"].map(|name| fleet.machine(name, &writing).prepared()));
    assert_eq!(codes, [0, 0]);
    assert_eq!(fleet.server.questions().len(), fleet.entries().len());
    assert_eq!(blobs(&fleet.store.join("leases-1")).len(), 0);
}

#[test]
fn sixteen_processes_share_a_folder_and_its_entries_stay_whole() {
    let fleet = Fleet::with(|r| r.review(&[]));
    // A busy machine is slow, which is not what this test is about.
    let writing = fleet.writing() + "timeout = \"30s\"\n";
    let machines = (0..16).map(|n| fleet.machine(&format!("m{n}"), &writing).prepared());
    let codes = at_once(machines);
    assert_eq!(codes, [0; 16]);
    let (asked, parts) = (fleet.server.questions().len(), fleet.entries().len());
    assert!(asked >= parts && asked < 16 * parts, "{asked} of {parts}");
    let reader = fleet.machine("reader", &fleet.reading());
    reader.cache(&["verify", "--shared"], 0);
    assert_eq!(reader.asked(), 0);
}

#[test]
fn flt_03_a_dead_holder_of_a_lease_and_a_forged_lease_hold_nobody_up_for_long() {
    let fleet = Fleet::new();
    let count = fleet.fill();
    let entries = fleet.entries();
    let leases = fleet.store.join("leases-1");
    let lease = Lease {
        holder: "dead".to_owned(),
        beat: 1,
    };
    // Leases of a run that just died, and leases by a key that the policy does not list.
    for (seed, name) in [(7, "dead"), (8, "forged")] {
        let signer = EntryKey::from_seed(&[seed; 32]).unwrap();
        for entry in &entries {
            let _ = std::fs::remove_file(entry);
            let sealed = seal_lease(&key_of(entry), &lease, now() + 1, &signer);
            std::fs::write(leases.join(entry.file_name().unwrap()), sealed).unwrap();
        }
        assert_eq!(
            fleet.machine(name, &fleet.writing()).asked(),
            count,
            "{name}"
        );
        assert_eq!(fleet.entries(), entries, "{name}");
        assert_eq!(blobs(&leases).len(), 0, "{name}");
    }
}

#[test]
fn flt_03_a_folder_that_is_gone_or_full_changes_no_verdict() {
    let fleet = Fleet::new();
    let count = fleet.fill();
    let (_, honest) = fleet.machine("lone", "timeout = \"3s\"\n").reviewed();
    let url = format!("file://{}", fleet.store.display());
    let in_the_way = fleet.repo.outside().join("file");
    std::fs::write(&in_the_way, "").unwrap();
    for (name, folder) in [
        ("gone", "/nowhere/at/all".to_owned()),
        ("a-file", in_the_way.display().to_string()),
        ("read-only", "/proc/self".to_owned()),
    ] {
        let lines = fleet.writing().replace(&url, &format!("file://{folder}"));
        let (asked, report) = fleet.machine(name, &lines).reviewed();
        assert_eq!(asked, count, "{name}");
        assert_eq!(decided(&report), decided(&honest), "{name}");
        let notes = notes(&report);
        assert_eq!(notes.len(), 1, "{name}: {notes:?}");
        assert!(notes[0].contains("not asked any more"), "{name}: {notes:?}");
    }
}

#[test]
fn net_19_plain_redis_of_another_machine_is_a_usage_error() {
    let fleet = Fleet::new();
    let machine = fleet.machine("a", "url = \"redis://cache.example.com:6379\"\n");
    let run = machine.review();
    assert_eq!(run.code, 2, "{}", run.stderr);
    let text = run.stdout + &run.stderr;
    assert!(text.contains("cache.url"), "{text}");
    assert!(text.contains("rediss://"), "{text}");
    assert_eq!(fleet.server.requests().len(), 0);
}

#[test]
fn a_signer_with_a_shortened_key_is_an_error_of_the_policy() {
    let fleet = Fleet::new();
    let line = key_pair(7).1;
    let key = STANDARD.decode(line.rsplit(' ').next().unwrap()).unwrap();
    let short = format!("ci ssh-ed25519 {}", STANDARD.encode(&key[..50]));
    let run = fleet
        .machine("a", &fleet.reading().replace(&line, &short))
        .review();
    assert_eq!(run.code, 2, "{}", run.stderr);
    let text = run.stdout + &run.stderr;
    assert!(text.contains("not an Ed25519 key of 32 bytes"), "{text}");
}

#[test]
fn the_lease_of_an_incomplete_answer_about_criteria_is_given_back() {
    let fleet = Fleet::new();
    let mut contract = judge::contract();
    contract["acceptance_criteria"] = json!([
        { "id": "AC1", "text": "sorted returns the names in order" },
        { "id": "AC2", "text": "sorted takes the names by value" },
    ]);
    for (known, name) in [(1, "incomplete"), (2, "complete")] {
        let server = Server::start(move |request| {
            let stands: Vec<Value> = ["AC1", "AC2"][..known]
                .iter()
                .map(|id| judge::stand(id, "met", Some("names.sort();")))
                .collect();
            match judge::is_about_criteria(request) {
                true => judge::criteria(request, &stands),
                false => request.review(&[]),
            }
        });
        let repo = judge::changed(&server.policy("openai"), &contract);
        let store = repo.outside().join("store");
        std::fs::create_dir_all(&store).unwrap();
        let config = repo.home().join(".config/claude-reviewer");
        std::fs::create_dir_all(&config).unwrap();
        let lines = fleet.writing().replace(
            &fleet.store.display().to_string(),
            &store.display().to_string(),
        );
        std::fs::write(config.join("config.toml"), format!("[cache]\n{lines}")).unwrap();
        judge::judged(&repo);
        let questions = server.questions();
        let about = questions
            .iter()
            .filter(|q| judge::is_about_criteria(q))
            .count();
        assert!(about > 0 && questions.len() > about, "{name}");
        let others = questions.len() - about;
        let expected = others + usize::from(known == 2);
        assert_eq!(blobs(&store.join("replies-1")).len(), expected, "{name}");
        assert!(store.join("leases-1").is_dir(), "{name}");
        assert_eq!(blobs(&store.join("leases-1")).len(), 0, "{name}");
    }
}
