//! Tests of pipes, sockets, devices and folders in place of a repository's own files: the review
//! ends, and never blocks.

use crate::support::{Repo, binary, mkfifo};
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Time after which a run counts as blocked. A watchdog, not a measurement: the machine may be
/// busy.
const PATIENCE: Duration = Duration::from_secs(60);

/// Runs a review and returns its exit code with standard error; panics if it does not end.
#[track_caller]
fn review(repo: &Repo, args: &[&str], what: &str) -> (i32, String) {
    let mut command = Command::new(binary());
    command
        .env_clear()
        .env("HOME", repo.home())
        .env("PATH", std::env::var_os("PATH").unwrap());
    command.args(["review"]).args(args).current_dir(repo.path());
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let started = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if started.elapsed() > PATIENCE {
            child.kill().unwrap();
            panic!("{what}: review {args:?} does not end");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let out = child.wait_with_output().unwrap();
    (
        out.status.code().unwrap_or(-1),
        String::from_utf8_lossy(&out.stderr).into_owned(),
    )
}

/// A function that creates an entry other than a regular file at a path.
type Put = fn(&Path);

const SPECIAL: [(&str, Put); 5] = [
    ("a pipe", |path| mkfifo(path)),
    ("a link to a pipe", |path| {
        let top = path.ancestors().find(|a| a.ends_with("repo")).unwrap();
        let pipe = top.with_file_name("pipe");
        mkfifo(&pipe);
        symlink(pipe, path).unwrap();
    }),
    ("a socket", |path| drop(UnixListener::bind(path).unwrap())),
    ("an endless device", |path| {
        symlink("/dev/zero", path).unwrap();
    }),
    ("a terminal", |path| symlink("/dev/tty", path).unwrap()),
];

/// Creates a repository with a branch `topic` that is one commit ahead of `main`, and a staged
/// change.
fn sample() -> Repo {
    let repo = Repo::new();
    repo.stage("a.txt", "a\n")
        .stage("policy/a.txt", "a\n")
        .commit("first");
    repo.git(&["checkout", "-q", "-b", "topic"]);
    repo.stage("b.txt", "b\n").commit("second");
    repo.stage("c.txt", "c\n");
    repo.write("a.txt", "other\n");
    repo
}

/// Moves the entry at a path away.
fn clear(path: &Path) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    if path.symlink_metadata().is_ok() {
        std::fs::rename(path, path.with_extension("moved")).unwrap();
    }
}

const COMMANDS: [&[&str]; 3] = [
    &["staged", "--no-save"],
    &["unstaged", "--untracked", "--no-save"],
    &["branch", "topic", "--base", "main", "--gate", "--no-save"],
];

#[test]
fn slo_03_special_files_that_every_review_reads_are_errors() {
    for name in [
        "HEAD",
        "config",
        "packed-refs",
        "objects/info/alternates",
        "shallow",
        "commondir",
        "info/attributes",
        "info/exclude",
        "refs/heads/topic",
        "objects/pack/pack-1.idx",
        "objects/info/commit-graph",
    ] {
        for (kind, put) in SPECIAL {
            let repo = sample();
            let path = repo.path().join(".git").join(name);
            clear(&path);
            put(&path);
            for args in COMMANDS {
                let what = format!("{kind} at .git/{name}");
                let (code, stderr) = review(&repo, args, &what);
                assert!(matches!(code, 2 | 3), "{what}, {args:?}: {code}\n{stderr}");
                assert!(stderr.contains(name), "{what}, {args:?}: {stderr}");
            }
        }
    }
}

#[test]
fn slo_03_special_files_that_a_review_may_read_never_keep_it_waiting() {
    for name in [
        ".git/index",
        ".git/logs/HEAD",
        ".git/logs/refs/heads/topic",
        ".git/refs/heads/main",
        ".git/refs/tags/x",
        ".git/refs/remotes/origin/HEAD",
        ".git/gitdir",
        ".git/ORIG_HEAD",
        ".git/info/sparse-checkout",
        ".gitattributes",
        ".gitignore",
        "policy/.gitattributes",
        "policy/.gitignore",
        ".claude-reviewer.toml",
        ".gitmodules",
        "a.txt",
        "new.txt",
    ] {
        for (kind, put) in SPECIAL.into_iter().take(4) {
            let repo = sample();
            let path = repo.path().join(name);
            clear(&path);
            put(&path);
            let further: [&[&str]; 3] = [
                &["commit", "HEAD@{0}", "--no-save"],
                &["commit", "x", "--no-save"],
                &["changes", "--no-save"],
            ];
            for args in COMMANDS.into_iter().chain(further) {
                let what = format!("{kind} at {name}");
                let (code, stderr) = review(&repo, args, &what);
                assert!(matches!(code, 0..=3), "{what}, {args:?}: {code}\n{stderr}");
                assert!(
                    !stderr.contains("internal error"),
                    "{what}, {args:?}: {stderr}"
                );
            }
        }
    }
}

#[test]
fn slo_03_a_special_file_in_the_place_of_the_repository_is_an_error() {
    for (kind, put) in SPECIAL {
        let repo = sample();
        let path = repo.path().join(".git");
        clear(&path);
        put(&path);
        for args in COMMANDS {
            let (code, stderr) = review(&repo, args, kind);
            assert_eq!(code, 2, "{kind}, {args:?}: {stderr}");
        }
    }
}

#[test]
fn slo_03_folders_in_the_place_of_files_end_the_review_or_mean_nothing() {
    for name in [
        "HEAD",
        "config",
        "packed-refs",
        "objects/info/alternates",
        "shallow",
        "commondir",
        "index",
        "refs/heads/topic",
    ] {
        let repo = sample();
        let path = repo.path().join(".git").join(name);
        clear(&path);
        std::fs::create_dir(&path).unwrap();
        for args in COMMANDS {
            let (code, stderr) = review(&repo, args, name);
            assert!(
                matches!(code, 0 | 2 | 3),
                "{name}, {args:?}: {code}\n{stderr}"
            );
            // Without HEAD there is no repository.
            if name == "HEAD" {
                assert_ne!(code, 0, "{name}, {args:?}: {stderr}");
            }
        }
    }
}

#[test]
fn slo_03_pipes_behind_pointers_are_found() {
    // A worktree whose files are in the main repository.
    let repo = sample();
    let other = repo.outside();
    repo.git(&[
        "worktree",
        "add",
        "-q",
        "-f",
        other.to_str().unwrap(),
        "main",
    ]);
    let head = repo.path().join(".git/worktrees/outside/HEAD");
    clear(&head);
    mkfifo(&head);
    let dir = other.to_str().unwrap();
    let (code, stderr) = review(
        &repo,
        &["-C", dir, "staged", "--no-save"],
        "HEAD of a worktree",
    );
    assert!(code == 2 && stderr.contains("HEAD"), "{code} {stderr}");

    // A configuration that includes another file.
    let repo = sample();
    let further = repo.home().join("further");
    mkfifo(&further);
    repo.git(&[
        "config",
        "--file",
        ".git/config",
        "include.path",
        "~/further",
    ]);
    let (code, stderr) = review(&repo, &["staged", "--no-save"], "included configuration");
    assert!(code == 2 && stderr.contains("further"), "{code} {stderr}");

    // An object store with an alternate whose list of alternates is a pipe.
    let repo = sample();
    let store = repo.outside();
    std::fs::create_dir_all(store.join("info")).unwrap();
    std::fs::write(
        repo.path().join(".git/objects/info/alternates"),
        format!("{}\n", store.display()),
    )
    .unwrap();
    mkfifo(store.join("info/alternates"));
    let (code, stderr) = review(&repo, &["staged", "--no-save"], "alternates of alternates");
    assert!(
        code == 2 && stderr.contains("alternates"),
        "{code} {stderr}"
    );
}

#[test]
fn slo_03_the_null_device_means_no_file() {
    let repo = sample();
    for name in ["info/exclude", "info/attributes"] {
        let path = repo.path().join(".git").join(name);
        clear(&path);
        symlink("/dev/null", path).unwrap();
    }
    repo.git(&["config", "core.excludesFile", "/dev/null"]);
    repo.git(&["config", "core.attributesFile", "/dev/null"]);
    for args in COMMANDS {
        let (code, stderr) = review(&repo, args, "the null device");
        assert_eq!(code, 0, "{args:?}: {stderr}");
    }
}
