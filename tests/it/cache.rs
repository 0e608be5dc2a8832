//! Tests of cached replies: they are found only for the same question, and trusted only if they
//! belong to the user.

use crate::loopback::{Reply, Says, Server, finding};
use crate::support::Repo;
use claude_reviewer::ai::ask::{Lookup, LookupSubject, Manifest, Nonce, Prompt, Read, Schema};
use claude_reviewer::ai::cache::{Cache, CachedQuestion, KeptReply, ReplyKey};
use claude_reviewer::diff::{LineNo, RepoPath};
use claude_reviewer::env::Env;
use claude_reviewer::request::Depth;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

fn env(repo: &Repo) -> Env {
    Env::from_pairs(repo.path(), [("HOME", repo.home())])
}

fn folder(repo: &Repo) -> PathBuf {
    repo.home().join(".cache/claude-reviewer/replies-1")
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let mut all: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|e| e.unwrap().path())
        .collect();
    all.sort();
    all
}

fn nonce(n: u8) -> Nonce {
    Nonce::new([n; 16])
}

fn prompt(nonce: &Nonce, chunk: &str) -> Prompt {
    Prompt {
        system: "review",
        context: "context".to_owned(),
        manifest: Manifest::default(),
        chunk: format!("<{0}>{chunk}</{0}>", nonce.as_str()),
        task: format!("nonce: {}", nonce.as_str()),
        nonce: nonce.clone(),
    }
}

fn key(nonce: &Nonce, chunk: &str) -> ReplyKey {
    let schema = Schema {
        name: "review",
        value: serde_json::json!({"type": "object"}),
    };
    let prompt = prompt(nonce, chunk);
    ReplyKey::of(&question(&prompt, &schema))
}

fn question<'a>(prompt: &'a Prompt, schema: &'a Schema) -> CachedQuestion<'a> {
    CachedQuestion {
        prompt,
        schema,
        kind: "openai",
        endpoint: "http://127.0.0.1:1/v1",
        model: "m",
        effort: "",
        depth: Depth::Quick,
        has_tools: false,
    }
}

fn reply(nonce: &Nonce) -> KeptReply {
    let line = |n| LineNo::new(n).unwrap();
    KeptReply {
        text: format!("{{\"nonce\": \"{}\", \"findings\": []}}", nonce.as_str()),
        read: vec![Read {
            path: RepoPath::new(b"caf\xe9".as_slice()),
            first: line(1),
            last: line(9),
        }],
        lookups: [
            LookupSubject::Call {
                name: "search".to_owned(),
                arguments: serde_json::json!({"pattern": "x\u{e9}"}),
            },
            LookupSubject::File(RepoPath::new(b"caf\xe9".as_slice())),
            LookupSubject::Tree,
        ]
        .map(|subject| Lookup {
            subject,
            digest: [7; 32],
        })
        .into(),
        tree: Some("1f".to_owned()),
        model: "m-2".to_owned(),
    }
}

#[test]
fn a_reply_is_found_again_by_a_run_with_another_nonce() {
    let repo = Repo::new();
    let (first, second) = (nonce(1), nonce(2));
    Cache::open(&env(&repo), None)
        .unwrap()
        .put(&key(&first, "a"), &first, &reply(&first));
    let cache = Cache::open(&env(&repo), Some(&repo.path())).unwrap();
    assert_eq!(cache.get(&key(&second, "a"), &second), Some(reply(&second)));
    assert_eq!(cache.get(&key(&second, "b"), &second), None);
    let kept = std::fs::read_to_string(&entries(&folder(&repo))[0]).unwrap();
    assert!(!kept.contains(first.as_str()), "{kept}");
}

#[test]
fn everything_that_was_asked_is_part_of_the_key() {
    let nonce = nonce(1);
    let schema = Schema {
        name: "review",
        value: serde_json::json!({"type": "object"}),
    };
    let other_schema = Schema {
        name: "review",
        value: serde_json::json!({"type": "array"}),
    };
    let base = prompt(&nonce, "a");
    let prompts = [
        Prompt {
            system: "judge",
            ..base.clone()
        },
        Prompt {
            context: "contex".to_owned(),
            chunk: format!("t{}", base.chunk),
            ..base.clone()
        },
        Prompt {
            context: String::new(),
            ..base.clone()
        },
        Prompt {
            chunk: base.chunk.replace(nonce.as_str(), "gap"),
            ..base.clone()
        },
        Prompt {
            task: format!("look hard\n{}", base.task),
            ..base.clone()
        },
    ];
    let mut keys: Vec<ReplyKey> = prompts
        .iter()
        .map(|p| ReplyKey::of(&question(p, &schema)))
        .collect();
    let of = |change: fn(&mut CachedQuestion<'_>)| {
        let mut question = question(&base, &schema);
        change(&mut question);
        ReplyKey::of(&question)
    };
    keys.extend([
        of(|_| {}),
        of(|q| q.kind = "google"),
        of(|q| q.endpoint = "http://127.0.0.1:2/v1"),
        of(|q| q.model = "n"),
        of(|q| q.depth = Depth::Thorough),
        of(|q| q.has_tools = true),
        ReplyKey::of(&question(&base, &other_schema)),
    ]);
    for (i, one) in keys.iter().enumerate() {
        assert!(keys[i + 1..].iter().all(|other| other != one), "{i}");
    }
    assert_eq!(of(|_| {}), of(|_| {}));
}

#[test]
fn a_damaged_entry_is_a_miss_and_removed() {
    let repo = Repo::new();
    let nonce = nonce(1);
    let cache = Cache::open(&env(&repo), None).unwrap();
    let (one, other) = (key(&nonce, "a"), key(&nonce, "b"));
    let fresh = || {
        cache.put(&one, &nonce, &reply(&nonce));
        entries(&folder(&repo))[0].clone()
    };
    let path = fresh();
    let whole = std::fs::read(&path).unwrap();
    // Every flipped bit, every missing byte.
    for at in 0..whole.len() {
        let mut flipped = whole.clone();
        flipped[at] ^= 1 << (at % 8);
        for bytes in [flipped.as_slice(), &whole[..at]] {
            std::fs::write(fresh(), bytes).unwrap();
            assert_eq!(
                cache.get(&one, &nonce),
                None,
                "{at}: {}",
                String::from_utf8_lossy(bytes)
            );
            assert!(!path.exists(), "{at}");
        }
    }
    // A complete reply to another question.
    cache.put(&other, &nonce, &reply(&nonce));
    let stranger = entries(&folder(&repo))[0].clone();
    std::fs::rename(&stranger, &path).unwrap();
    assert_eq!(cache.get(&one, &nonce), None);
    // Not a regular file.
    std::fs::create_dir(&path).unwrap();
    assert_eq!(cache.get(&one, &nonce), None);
    cache.put(&one, &nonce, &reply(&nonce));
    assert_eq!(cache.get(&one, &nonce), None);
    std::fs::remove_dir(&path).unwrap();
    crate::support::mkfifo(&path);
    assert_eq!(cache.get(&one, &nonce), None);
    assert!(!path.exists());
    fresh();
    assert_eq!(cache.get(&one, &nonce), Some(reply(&nonce)));
}

#[test]
fn an_entry_that_others_could_have_written_is_not_believed() {
    let repo = Repo::new();
    let nonce = nonce(1);
    let cache = Cache::open(&env(&repo), None).unwrap();
    let one = key(&nonce, "a");
    let plant = || {
        cache.put(&one, &nonce, &reply(&nonce));
        entries(&folder(&repo))[0].clone()
    };
    std::fs::set_permissions(plant(), std::fs::Permissions::from_mode(0o644)).unwrap();
    assert_eq!(cache.get(&one, &nonce), None);
    let path = plant();
    let elsewhere = repo.home().join("planted");
    std::fs::rename(&path, &elsewhere).unwrap();
    symlink(&elsewhere, &path).unwrap();
    assert_eq!(cache.get(&one, &nonce), None);
    assert!(elsewhere.exists());
}

#[test]
fn sto_08_a_folder_that_is_a_link_open_to_others_or_under_review_is_no_cache() {
    let repo = Repo::new();
    let mine = folder(&repo);
    assert!(Cache::open(&env(&repo), None).is_some());
    // Other users have access to the folder, or to its parent.
    for (dir, mode) in [
        (mine.clone(), 0o770),
        (mine.clone(), 0o755),
        (mine.parent().unwrap().to_owned(), 0o777),
    ] {
        std::fs::set_permissions(&dir, std::fs::Permissions::from_mode(mode)).unwrap();
        assert!(
            Cache::open(&env(&repo), None).is_none(),
            "{} {mode:o}",
            dir.display()
        );
        std::fs::set_permissions(&dir, std::fs::Permissions::from_mode(0o700)).unwrap();
        assert!(Cache::open(&env(&repo), None).is_some());
    }
    // A link.
    let moved = repo.home().join("moved");
    for dir in [mine.clone(), mine.parent().unwrap().to_owned()] {
        std::fs::rename(&dir, &moved).unwrap();
        symlink(&moved, &dir).unwrap();
        assert!(Cache::open(&env(&repo), None).is_none());
        std::fs::remove_file(&dir).unwrap();
        std::fs::rename(&moved, &dir).unwrap();
    }
    // A file, then a pipe.
    std::fs::rename(&mine, &moved).unwrap();
    std::fs::write(&mine, "").unwrap();
    assert!(Cache::open(&env(&repo), None).is_none());
    std::fs::remove_file(&mine).unwrap();
    crate::support::mkfifo(&mine);
    assert!(Cache::open(&env(&repo), None).is_none());
    // Inside the repository, where the change could supply it, by any path.
    let inside = repo.path().join("cache");
    std::fs::create_dir(&inside).unwrap();
    symlink(&inside, repo.home().join("alias")).unwrap();
    for named in [
        inside,
        repo.home().join("alias"),
        repo.home().join("../repo/cache"),
    ] {
        let env = Env::from_pairs(repo.path(), [("XDG_CACHE_HOME", named)]);
        assert!(Cache::open(&env, Some(&repo.path())).is_none());
        assert!(Cache::open(&env, None).is_some());
    }
}

#[test]
fn sto_03_no_home_or_one_that_cannot_be_written_is_no_cache_and_no_error() {
    let repo = Repo::new();
    let none: [(&str, &str); 0] = [];
    for vars in [
        none.to_vec(),
        vec![("HOME", "")],
        vec![("HOME", "relative")],
        vec![("HOME", "/proc/nothing")],
    ] {
        assert!(
            Cache::open(&Env::from_pairs(repo.path(), vars.clone()), None).is_none(),
            "{vars:?}"
        );
    }
    let env = Env::from_pairs(repo.path(), [("XDG_CACHE_HOME", "/dev/null")]);
    assert!(Cache::open(&env, None).is_none());
}

#[test]
fn sto_15_entries_are_closed_to_others() {
    let repo = Repo::new();
    let nonce = nonce(1);
    Cache::open(&env(&repo), None)
        .unwrap()
        .put(&key(&nonce, "a"), &nonce, &reply(&nonce));
    let mode = |p: &Path| std::fs::metadata(p).unwrap().mode() & 0o7777;
    assert_eq!(mode(&folder(&repo)), 0o700);
    assert_eq!(mode(folder(&repo).parent().unwrap()), 0o700);
    assert_eq!(mode(&entries(&folder(&repo))[0]), 0o600);
}

#[test]
fn the_oldest_go_when_there_is_too_much() {
    let repo = Repo::new();
    let nonce = nonce(1);
    let big = KeptReply {
        text: "x".repeat(900_000),
        ..reply(&nonce)
    };
    let cache = Cache::open(&env(&repo), None).unwrap();
    let total = || {
        entries(&folder(&repo))
            .iter()
            .map(|p| std::fs::metadata(p).unwrap().len())
            .sum::<u64>()
    };
    for n in 0..100u32 {
        let one = key(&nonce, &n.to_string());
        cache.put(&one, &nonce, &big);
        // Times that differ by a second.
        let newest = entries(&folder(&repo))
            .into_iter()
            .max_by_key(|p| std::fs::metadata(p).unwrap().modified().unwrap());
        let file = std::fs::File::options()
            .write(true)
            .open(newest.unwrap())
            .unwrap();
        file.set_modified(
            std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_700_000_000 + u64::from(n)),
        )
        .unwrap();
    }
    // It was just used, so it is not among the oldest.
    assert!(cache.get(&key(&nonce, "3"), &nonce).is_some());
    std::fs::write(folder(&repo).join("tmp-stale"), "half").unwrap();
    let stale = std::fs::File::options()
        .write(true)
        .open(folder(&repo).join("tmp-stale"))
        .unwrap();
    stale
        .set_modified(std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_600_000_000))
        .unwrap();
    // The next run checks.
    let cache = Cache::open(&env(&repo), None).unwrap();
    cache.put(&key(&nonce, "new"), &nonce, &reply(&nonce));
    assert!(total() <= 64 << 20, "{}", total());
    assert!(total() > 40 << 20, "{}", total());
    assert!(!folder(&repo).join("tmp-stale").exists());
    for (chunk, there) in [("0", false), ("3", true), ("99", true), ("new", true)] {
        assert_eq!(
            cache.get(&key(&nonce, chunk), &nonce).is_some(),
            there,
            "{chunk}"
        );
    }
    // An entry that is too large is not stored.
    let huge = KeptReply {
        text: "x".repeat(2 << 20),
        ..reply(&nonce)
    };
    cache.put(&key(&nonce, "huge"), &nonce, &huge);
    assert_eq!(cache.get(&key(&nonce, "huge"), &nonce), None);
}

#[test]
fn sto_04_many_runs_at_once_see_whole_entries() {
    let repo = Repo::new();
    let env = env(&repo);
    std::thread::scope(|s| {
        for t in 0..8u8 {
            let env = &env;
            s.spawn(move || {
                let nonce = nonce(t);
                let cache = Cache::open(env, None).unwrap();
                for n in 0..50 {
                    let one = key(&nonce, &(n % 5).to_string());
                    cache.put(&one, &nonce, &reply(&nonce));
                    assert_eq!(cache.get(&one, &nonce), Some(reply(&nonce)));
                }
            });
        }
    });
    assert_eq!(entries(&folder(&repo)).len(), 5);
}

/// Reviews the staged change and returns the number of questions to the server.
fn asked(repo: &Repo, server: &Server, args: &[&str]) -> usize {
    let before = server.questions().len();
    let run = repo
        .reviewer(&[&["review", "staged"], args].concat())
        .run_any();
    assert!([0, 1].contains(&run.code), "{}\n{}", run.stdout, run.stderr);
    server.questions().len() - before
}

#[test]
fn what_did_not_change_is_asked_once_at_every_depth() {
    let repo = Repo::new();
    let server = Server::start(|r| {
        if r.method == "GET" {
            return Reply::json(200, &serde_json::json!({"data": [{"id": "only"}]}));
        }
        match r.prompt().contains("\"refuted\"") || r.json().to_string().contains("refuted") {
            true => r.text(
                &serde_json::json!({"nonce": r.nonce(), "refuted": false, "reason": "It holds."})
                    .to_string(),
            ),
            false => r.review(&[finding("src/a.py", 1, "total = items[len(items)]")]),
        }
    });
    // The policy names no model: the only one of the server's list is asked.
    repo.write(
        ".claude-reviewer.toml",
        server.policy("openai").replace("model = \"stub\"\n", ""),
    );
    repo.stage("src/b.py", "one = 1\n").commit("seed");
    repo.stage("src/a.py", "total = items[len(items)]\n");
    for depth in ["quick", "thorough"] {
        let args = ["--depth", depth];
        assert!(asked(&repo, &server, &args) > 0);
        assert_eq!(asked(&repo, &server, &args), 0, "{depth}");
    }
    let every_time = asked(&repo, &server, &["--no-cache"]);
    assert!(every_time > 0);
    assert_eq!(asked(&repo, &server, &["--no-cache"]), every_time);
    // After an edit, changed files are asked about again, and also questions that list other files.
    repo.stage("src/a.py", "total = items[len(items)]\nmore = 1\n");
    assert!(asked(&repo, &server, &[]) > 0);
    repo.git(&["rm", "-q", "--cached", "src/b.py"]);
    assert!(asked(&repo, &server, &["--depth", "thorough"]) > 0);
    // Without a home folder there is no cache, and no error.
    let before = server.questions().len();
    repo.reviewer(&["review", "staged"])
        .env("HOME", "/nowhere")
        .run(1);
    assert!(server.questions().len() > before);
}

#[test]
fn a_reply_of_a_model_that_the_server_replaced_stays_valid_and_both_are_named() {
    let model = std::sync::Arc::new(std::sync::Mutex::new("reviewer-1"));
    let listed = std::sync::Arc::clone(&model);
    let server = Server::start(move |r| {
        let model = *listed.lock().unwrap();
        if r.method == "GET" {
            return Reply::json(200, &serde_json::json!({"data": [{"id": model}]}));
        }
        let mut body = r.body_of(&Says {
            text: r.document(&[]).to_string(),
            ..Says::default()
        });
        body["model"] = serde_json::json!(model);
        Reply::json(200, &body)
    });
    let repo = Repo::new();
    let policy = server.policy("openai").replace("model = \"stub\"\n", "");
    repo.stage(
        ".claude-reviewer.toml",
        policy.replace("[review]\n", "[review]\nmax_files = 1\n"),
    )
    .commit("seed");
    repo.stage("src/a.py", "one = 1\n")
        .stage("src/b.py", "two = 2\n");
    let usage = || repo.review_json(&["staged", "--no-save"], 0)["usage"][0].clone();
    assert_eq!(usage()["model"], "reviewer-1");
    *model.lock().unwrap() = "reviewer-2";
    repo.stage("src/b.py", "two = 3\n");
    let usage = usage();
    let mut models: Vec<&str> = usage["model"].as_str().unwrap().split(", ").collect();
    models.sort_unstable();
    assert_eq!(
        (models, &usage["from_cache"]),
        (vec!["reviewer-1", "reviewer-2"], &serde_json::json!(1)),
        "{usage}"
    );
}
