//! Tests of damage, full disks, and read-only folders, through the real binary.

use super::{history, json, listed, with_two_reviews};
use crate::support::{Repo, binary};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

#[test]
fn sto_06_damage_is_told_every_time_and_latest_is_refused_until_it_is_removed() {
    let (repo, first, second) = with_two_reviews();
    std::fs::write(
        repo.path()
            .join(format!(".reviews/sessions/{second}/request.json")),
        "{",
    )
    .unwrap();
    for _ in 0..3 {
        let run = history(&repo, &[], 0);
        assert!(
            run.stdout.contains(&first) && !run.stdout.contains(&second),
            "{}",
            run.stdout
        );
        for words in [
            format!("warning: review {second} cannot be read: "),
            format!("{second}/request.json: EOF"),
            format!("its remains are in .reviews/.corrupt/{second}"),
            "hint: `claude-reviewer history prune --damaged`".to_owned(),
        ] {
            assert!(run.stderr.contains(&words), "{words}: {}", run.stderr);
        }
        let damaged = json(&history(&repo, &["--format", "json"], 0))["damaged"].clone();
        assert_eq!(
            (damaged.as_array().map(Vec::len), &damaged[0]["review_id"]),
            (Some(1), &second.as_str().into())
        );
        for args in [
            &["history", "latest"][..],
            &["history", "verify", "latest"],
            &["complete", "latest", "--status", "merged"],
            &["review", "--follow-up", "latest"],
        ] {
            let told = repo.reviewer(args).run(2).stderr;
            assert!(
                told.contains(&format!("the latest review, {second}, is damaged")),
                "{args:?}: {told}"
            );
            assert!(
                told.contains("history prune --damaged") && told.contains(&first),
                "{args:?}: {told}"
            );
        }
        let told = repo.review(&["--follow-up", &second], 2).stderr;
        assert!(
            told.contains(&format!("review {second} is damaged")) && told.contains("request.json"),
            "{told}"
        );
        let told = history(&repo, &["verify"], 1).stdout;
        assert!(
            told.contains(&second)
                && told.contains("it was damaged, and put into .reviews/.corrupt"),
            "{told}"
        );
    }
    // Follows the hint.
    let run = history(&repo, &["prune", "--damaged"], 0);
    assert_eq!(
        run.stdout,
        format!("removed {second}, which was damaged\n1 damaged review removed\n")
    );
    assert_eq!(history(&repo, &[], 0).stderr, "");
    assert!(history(&repo, &["latest"], 0).stdout.contains(&first));
    let told = history(&repo, &["verify"], 0).stdout;
    assert!(
        told.contains(&format!("gone {second}  it was damaged, and removed on ")),
        "{told}"
    );
    assert!(
        history(&repo, &[&second], 2)
            .stderr
            .contains("it was damaged")
    );
    history(&repo, &["prune"], 2);
    assert_eq!(
        history(&repo, &["prune", "--damaged", "--keep", "5"], 0)
            .stdout
            .lines()
            .count(),
        2
    );
}

#[test]
fn sto_06_a_store_with_nothing_but_damage_does_not_say_that_it_is_empty() {
    let repo = Repo::new();
    repo.stage("a.py", "x = 1\n").review(&["staged"], 0);
    let id = listed(&repo).remove(0);
    std::fs::write(
        repo.path()
            .join(format!(".reviews/sessions/{id}/request.json")),
        "",
    )
    .unwrap();
    for _ in 0..2 {
        assert_eq!(
            history(&repo, &[], 0).stdout,
            "no review is stored here that can be read\n"
        );
    }
}

#[test]
fn a_session_that_was_removed_or_cut_off_is_named() {
    let (repo, first, second) = with_two_reviews();
    repo.stage("a.py", "x = 2\n");
    repo.review(&["staged"], 0);
    history(&repo, &["verify"], 0);
    let session = |id: &str| repo.path().join(format!(".reviews/sessions/{id}"));
    let away = repo.outside();
    std::fs::rename(session(&second), &away).unwrap();
    let told = history(&repo, &["verify"], 1).stdout;
    assert!(
        told.contains(&format!("EDITED {second}")) && told.contains("missing, but"),
        "{told}"
    );
    std::fs::rename(&away, session(&second)).unwrap();
    history(&repo, &["verify"], 0);

    repo.stage("a.py", "import yaml\ndoc = yaml.safe_load(text)\n");
    repo.review(&["--follow-up", &first], 0);
    repo.review(&["staged"], 0);
    history(&repo, &["verify"], 0);
    std::fs::remove_dir_all(session(&first).join("round-2")).unwrap();
    for args in [&["verify"][..], &["verify", &first]] {
        let told = history(&repo, args, 1).stdout;
        assert!(
            told.contains(&format!("EDITED {first}"))
                && told.contains("it was truncated or rewritten"),
            "{told}"
        );
    }
    let told = repo.review(&["--follow-up", &first], 2).stderr;
    assert!(
        told.contains("cannot be followed") && told.contains("truncated or rewritten"),
        "{told}"
    );
}

#[test]
fn sto_06_a_session_that_a_newer_program_closed_is_refused_by_its_version() {
    let (repo, first, _) = with_two_reviews();
    repo.reviewer(&["complete", &first, "--status", "merged"])
        .run(0);
    let path = repo
        .path()
        .join(format!(".reviews/sessions/{first}/complete.json"));
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(
        &path,
        text.replacen("\"schema_version\": 1", "\"schema_version\": 3", 1),
    )
    .unwrap();
    for args in [&["verify"][..], &["verify", &first]] {
        let told = history(&repo, args, 3).stdout;
        assert!(
            told.contains(&format!("NEWER {first}")) && !told.contains("EDITED"),
            "{told}"
        );
        assert!(
            told.contains("complete.json: its schema_version is 3"),
            "{told}"
        );
    }
    for args in [
        &["history", &first][..],
        &["complete", &first, "--status", "approved"],
        &["review", "--follow-up", &first],
    ] {
        let told = repo.reviewer(args).run(2).stderr;
        assert!(
            told.contains("was written by a newer claude-reviewer") && told.contains(&first),
            "{args:?}: {told}"
        );
    }
}

/// Runs the binary as a user to whom permissions apply, unlike the superuser.
struct Bound {
    repo: Repo,
    program: PathBuf,
    /// A user other than the one who runs the tests.
    user: Option<u32>,
}

impl Bound {
    fn new(content: &str) -> Self {
        let repo = Repo::new();
        repo.stage("a.py", content);
        let (mut program, mut user) = (PathBuf::from(binary()), None);
        if rustix::process::geteuid().is_root() {
            // The folder of the tests need not be accessible to others.
            user = Some(54_321);
            program = repo.path().parent().unwrap().join("program");
            // In another process: other children of this one may inherit a file that it has open
            // for writing, which then cannot be executed.
            assert!(
                Command::new("cp")
                    .arg(binary())
                    .arg(&program)
                    .status()
                    .unwrap()
                    .success()
            );
            std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
            std::fs::set_permissions(
                repo.path().parent().unwrap(),
                std::fs::Permissions::from_mode(0o755),
            )
            .unwrap();
            give(repo.path().parent().unwrap(), 54_321);
        }
        Self {
            repo,
            program,
            user,
        }
    }

    fn run(&self, args: &[&str]) -> Output {
        let mut command = Command::new(&self.program);
        command
            .args(args)
            .current_dir(self.repo.path())
            .env_clear()
            .env("HOME", self.repo.home());
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        if let Some(user) = self.user {
            command.uid(user).gid(user);
        }
        command.output().unwrap()
    }

    fn mode(&self, path: &str, mode: u32) {
        std::fs::set_permissions(
            self.repo.path().join(path),
            std::fs::Permissions::from_mode(mode),
        )
        .unwrap();
    }
}

/// Gives a folder and everything in it to a user.
fn give(path: &Path, user: u32) {
    std::os::unix::fs::lchown(path, Some(user), Some(user)).unwrap();
    if path.symlink_metadata().unwrap().is_dir() {
        std::fs::read_dir(path)
            .unwrap()
            .for_each(|e| give(&e.unwrap().path(), user));
    }
}

/// Lists the names of stored sessions.
fn stored(repo: &Repo) -> Vec<String> {
    let Ok(folder) = std::fs::read_dir(repo.path().join(".reviews/sessions")) else {
        return Vec::new();
    };
    let mut all: Vec<_> = folder
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .collect();
    all.sort();
    all
}

#[test]
fn sto_03_in_a_folder_that_may_not_be_written_the_verdict_stands() {
    for (content, code) in [("x = 1\n", 0), ("import yaml\ndoc = yaml.load(text)\n", 1)] {
        // The worktree of the store; the store; its content.
        for closed in [
            &["."][..],
            &[".reviews"],
            &[".reviews/sessions"],
            &[".reviews/tmp"],
        ] {
            let bound = Bound::new(content);
            let mut before = Vec::new();
            if closed[0] != "." {
                assert_eq!(bound.run(&["review", "staged"]).status.code(), Some(code));
                before = stored(&bound.repo);
                assert_eq!(before.len(), 1);
            }
            closed.iter().for_each(|path| bound.mode(path, 0o500));
            let out = bound.run(&["review", "staged"]);
            let told = String::from_utf8_lossy(&out.stderr).into_owned();
            // The store itself is made writable for its owner again; folders in it are not.
            let heals = closed[0] == ".reviews";
            if !heals {
                assert_eq!(out.status.code(), Some(code), "{closed:?}: {told}");
                assert!(
                    told.contains("history not saved") && told.contains("denied"),
                    "{closed:?}: {told}"
                );
                let out = bound.run(&["review", "staged", "--require-history"]);
                assert_eq!(
                    out.status.code(),
                    Some(if code == 1 { 1 } else { 3 }),
                    "{closed:?}"
                );
                assert_eq!(stored(&bound.repo), before, "{closed:?}");
            }
            if closed[0] != "." {
                // The stored reviews are still readable.
                let out = bound.run(&["history", "latest"]);
                assert_eq!(
                    out.status.code(),
                    Some(0),
                    "{closed:?}: {}",
                    String::from_utf8_lossy(&out.stderr)
                );
                assert_eq!(
                    bound.run(&["history", "verify"]).status.code(),
                    Some(0),
                    "{closed:?}"
                );
            }
            closed.iter().for_each(|path| bound.mode(path, 0o700));
            assert_eq!(bound.run(&["review", "staged"]).status.code(), Some(code));
            assert!(
                stored(&bound.repo).len() > before.len(),
                "{closed:?}: the next run works"
            );
        }
    }
}

#[test]
fn sto_12_among_50_000_sessions_the_newest_are_listed_and_stored_at_once() {
    let repo = Repo::new();
    repo.stage("a.py", "x = 1\n").review(&["staged"], 0);
    let newest = listed(&repo).remove(0);
    let sessions = repo.path().join(".reviews/sessions");
    // Only names: opening one of them would report damage.
    for n in 0..50_000 {
        let (day, number) = (n / 200, n % 200 + 1);
        let name = format!(
            "{:04}-{:02}-{:02}-{number:03}",
            2020 + day / 240,
            day / 20 % 12 + 1,
            day % 20 + 1
        );
        std::fs::create_dir(sessions.join(name)).unwrap();
    }
    let second = json(
        &repo
            .reviewer(&["review", "staged", "--format", "json"])
            .run(0),
    );
    let second = second["review_id"].as_str().unwrap().to_owned();
    assert!(second > newest, "{second}");
    let timed = |args: &[&str]| {
        let started = Instant::now();
        let run = history(&repo, args, 0);
        (run, started.elapsed())
    };
    // The goal for a release build is 20 ms. This is a debug build, and other tests run at the same
    // time.
    let (run, took) = timed(&["--limit", "2", "--format", "json"]);
    assert!(took < Duration::from_secs(5), "{took:?}");
    let listing = json(&run);
    let ids: Vec<_> = listing["sessions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|s| s["review_id"].clone())
        .collect();
    assert_eq!(
        (ids, &listing["damaged"]),
        (
            vec![second.as_str().into(), newest.as_str().into()],
            &serde_json::json!([])
        )
    );
    let (run, took) = timed(&["latest"]);
    assert!(
        run.stdout.contains(&second) && took < Duration::from_secs(5),
        "{took:?}: {}",
        run.stdout
    );
    assert!(
        !repo.path().join(".reviews/.corrupt").exists(),
        "none of the others was looked at"
    );
}

/// A library that makes fsync fail, built with the compiler that built the tests.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const FAILS: &str = "#![allow(unsafe_code)]
unsafe extern \"C\" { fn __errno_location() -> *mut i32; }
#[unsafe(no_mangle)]
pub extern \"C\" fn fsync(_: i32) -> i32 {
    unsafe { *__errno_location() = 5 };
    -1
}
";

#[test]
#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn sto_14_what_did_not_reach_the_disk_is_not_called_stored() {
    let yard = Repo::new();
    let (source, library) = (
        yard.home().join("fails.rs"),
        yard.home().join("libfails.so"),
    );
    std::fs::write(&source, FAILS).unwrap();
    let compiler = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let built = Command::new(compiler)
        .args([
            "--edition",
            "2024",
            "--crate-type",
            "cdylib",
            "-C",
            "panic=abort",
            "-o",
        ])
        .args([&library, &source])
        .output()
        .unwrap();
    assert!(
        built.status.success(),
        "{}",
        String::from_utf8_lossy(&built.stderr)
    );
    for (content, code) in [("x = 1\n", 0), ("import yaml\ndoc = yaml.load(text)\n", 1)] {
        let repo = Repo::new();
        repo.stage("a.py", content).review(&["staged"], code);
        let before = listed(&repo);
        let failing = |args: &[&str], code: i32| {
            repo.reviewer(args)
                .env("LD_PRELOAD", &library)
                .run(code)
                .stderr
        };
        for follow in [
            &["review", "staged"][..],
            &["review", "--follow-up", "latest"],
        ] {
            let told = failing(follow, code);
            assert!(
                told.contains("history not saved") && told.contains("cannot write to the disk"),
                "{follow:?}: {told}"
            );
            failing(
                &[follow, &["--require-history"]].concat(),
                if code == 1 { 1 } else { 3 },
            );
        }
        let told = failing(&["complete", "latest", "--status", "abandoned"], 3);
        assert!(
            told.contains("was not closed") && told.contains("cannot write to the disk"),
            "{told}"
        );
        assert_eq!(listed(&repo), before);
        let session = json(&history(&repo, &["latest", "--format", "json"], 0));
        assert_eq!(
            session["rounds"].as_array().unwrap().len(),
            1,
            "{session:#}"
        );
        history(&repo, &["verify"], 0);
    }
}
