//! Tests of reviews after commits: real commits, the real hook, and a model server on this machine.

mod ended;
mod hooks;
mod refused;
mod worktrees;

use crate::loopback::{Reply, Request, Says, Server};
use crate::support::{Repo, binary, eventually};
use serde_json::Value;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

/// Time limit of every wait, after which a test fails.
const PATIENCE: Duration = Duration::from_secs(90);

/// Delays answers until it is opened.
#[derive(Clone, Default)]
struct Gate(Arc<(Mutex<bool>, Condvar)>);

impl Gate {
    fn open(&self) {
        *self.0.0.lock().unwrap() = true;
        self.0.1.notify_all();
    }

    fn pass(&self) {
        let open = self.0.0.lock().unwrap();
        drop(
            self.0
                .1
                .wait_timeout_while(open, PATIENCE, |open| !*open)
                .unwrap(),
        );
    }
}

/// A developer's machine: a repository with hooks, a remote, a user configuration and a model.
struct Desk {
    server: Server,
    repo: Repo,
    gate: Gate,
}

/// Prices, so that the cost of a review is known.
const PRICE: &str = "price = { input = 1.0, cached = 1.0, output = 1.0 }\n";

impl Desk {
    /// Starts with a model that reports nothing.
    fn new() -> Self {
        Self::answering(|r| r.review(&[]))
    }

    /// Starts with a model that answers once the gate is open.
    fn gated() -> Self {
        let gate = Gate::default();
        let held = gate.clone();
        let handler = move |r: &Request| {
            held.pass();
            r.review(&[])
        };
        let mut desk = Self::answering(handler);
        desk.gate = gate;
        desk
    }

    fn answering(handler: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> Self {
        let desk = Self {
            server: Server::start(handler),
            repo: Repo::new(),
            gate: Gate::default(),
        };
        desk.configure("", PRICE);
        desk.repo
            .stage("README.md", "# A project\n")
            .commit("first");
        let remote = desk.repo.outside().join("remote.git");
        desk.repo
            .git(&["init", "-q", "--bare", remote.to_str().unwrap()]);
        desk.repo
            .git(&["remote", "add", "origin", remote.to_str().unwrap()]);
        desk.repo.git(&["push", "-q", "-u", "origin", "main"]);
        desk.repo.reviewer(&["install-hooks"]).run(0);
        desk
    }

    /// Writes the user's configuration.
    fn configure(&self, hooks: &str, backend: &str) {
        let policy = self
            .server
            .policy("openai")
            .replace("[review]\n", "[review]\nmax_files = 1\njobs = 1\n");
        let text = format!("{policy}{backend}[hooks]\npost_commit = \"background\"\n{hooks}");
        let file = self.repo.home().join(".config/claude-reviewer/config.toml");
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }

    /// Commits a file with the hooks, and returns the commit.
    #[track_caller]
    fn commit(&self, file: &str) -> String {
        let value = file.len();
        self.repo.stage(
            file,
            format!("def value():\n    return {value}  # of {file}\n"),
        );
        self.repo
            .git(&["commit", "-q", "-m", &format!("Add {file}")]);
        self.head()
    }

    /// Commits a file without hooks, and returns the commit. `--no-verify` runs the post-commit
    /// hook all the same.
    #[track_caller]
    fn commit_unseen(&self, file: &str, text: &str) -> String {
        self.repo.stage(file, text);
        self.repo
            .git(&["-c", "core.hooksPath=/dev/null", "commit", "-q", "-m", file]);
        self.head()
    }

    fn head(&self) -> String {
        self.repo.git(&["rev-parse", "HEAD"]).trim().to_owned()
    }

    #[track_caller]
    fn status(&self) -> Value {
        self.repo
            .reviewer(&["status", "--format", "json"])
            .run(0)
            .json()
    }

    /// Waits until a review is running.
    #[track_caller]
    fn running(&self) -> Value {
        eventually("a review runs", || {
            Some(self.status()["running"].clone()).filter(|r| !r.is_null())
        })
    }

    /// Waits until no review is running or about to start, and returns the status.
    #[track_caller]
    fn settled(&self) -> Value {
        eventually("the reviews end", || {
            let status = self.status();
            let is_due = !status["pending"].is_null() && status["pending"]["held"].is_null();
            Some(status.clone()).filter(|_| status["running"].is_null() && !is_due)
        })
    }

    /// Waits until a review is waiting for the model, and returns its process.
    #[track_caller]
    fn asking(&self) -> u64 {
        let pid = self.running()["pid"].as_u64().unwrap();
        eventually("the model is asked", || {
            Some(()).filter(|()| self.asked() > 0)
        });
        pid
    }

    fn asked(&self) -> usize {
        self.server.questions().len()
    }
}

impl Drop for Desk {
    fn drop(&mut self) {
        self.gate.open();
        self.repo.reviewer(&["status", "--stop"]).run_any();
    }
}

fn text(out: &Output) -> String {
    format!(
        "{}{}",
        String::from_utf8_lossy(&out.stdout),
        String::from_utf8_lossy(&out.stderr)
    )
}

/// Returns field N of `/proc/PID/stat`, numbered as in proc_pid_stat(5).
fn field(pid: u64, number: usize) -> i64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let (_, rest) = stat.rsplit_once(')').unwrap();
    rest.split_ascii_whitespace()
        .nth(number - 3)
        .unwrap()
        .parse()
        .unwrap()
}

fn kill(signal: &str, pid: u64) {
    assert!(
        Command::new("kill")
            .arg(signal)
            .arg(pid.to_string())
            .status()
            .unwrap()
            .success()
    );
}

/// Returns the folder of the background reviews of the only repository.
fn station(repo: &Repo) -> PathBuf {
    let home = repo.home().join(".local/state/claude-reviewer/background");
    let mut entries = fs::read_dir(home).unwrap().map(|e| e.unwrap().path());
    entries.find(|p| p.is_dir()).unwrap()
}

#[test]
fn a_commit_returns_at_once_and_is_reviewed_afterwards() {
    let desk = Desk::gated();
    // Both streams are read to their ends: the review must not keep them open.
    let commit = desk.commit("a.py");
    let running = desk.running();
    assert_eq!(running["order"]["commit"], commit.as_str());
    assert!(desk.status()["last"].is_null());
    desk.gate.open();
    let status = desk.settled();
    assert_eq!(status["last"]["commit"], commit.as_str(), "{status:#}");
    assert_eq!(status["last"]["ending"], "reviewed");
    assert_eq!(status["last"]["verdict"], "pass", "{status:#}");
    assert!(
        status["cost"]["spent_usd"].as_f64().unwrap() > 0.0,
        "{status:#}"
    );
    assert_eq!(status["cost"]["reserved_usd"], 0.0);
    let id = status["last"]["review_id"].as_str().unwrap();
    let run = desk.repo.reviewer(&["history", id]).run(0);
    assert!(
        run.stdout.contains(&format!("commit {}", &commit[..12])),
        "{}",
        run.stdout
    );
    let human = desk.repo.reviewer(&["status"]).run(0).stdout;
    assert!(
        human.contains("on, by openai")
            && human.contains(&format!("pass, 0.0011 USD, stored as {id}")),
        "{human}"
    );
}

#[test]
fn a_push_after_the_review_asks_nothing() {
    let desk = Desk::new();
    desk.commit("a.py");
    desk.settled();
    let asked = desk.asked();
    assert!(asked > 0);
    let out = desk.repo.try_git(&["push", "origin", "main"]);
    assert!(out.status.success(), "{}", text(&out));
    assert_eq!(desk.asked(), asked, "{}", text(&out));
}

#[test]
fn a_push_of_several_commits_asks_nothing_if_the_newest_was_reviewed() {
    let desk = Desk::new();
    for file in ["a.py", "b.py", "c.py"] {
        desk.commit(file);
        desk.settled();
    }
    let asked = desk.asked();
    let out = desk.repo.try_git(&["push", "origin", "main"]);
    assert!(out.status.success(), "{}", text(&out));
    assert_eq!(desk.asked(), asked);
}

#[test]
fn a_push_asks_only_about_the_commit_that_was_not_reviewed() {
    let desk = Desk::new();
    desk.commit_unseen("a.py", "A = 1\n");
    desk.commit("b.py");
    desk.settled();
    desk.commit_unseen("b.py", "B = 1\n");
    let before = desk.asked();
    let out = desk.repo.try_git(&["push", "origin", "main"]);
    assert!(out.status.success(), "{}", text(&out));
    let new: Vec<_> = desk.server.questions()[before..]
        .iter()
        .flat_map(Request::files)
        .collect();
    assert_eq!(new, ["b.py"]);
}

#[test]
fn a_new_branch_is_reviewed_as_its_push_and_as_review_branch_do() {
    let desk = Desk::new();
    desk.repo.git(&["checkout", "-q", "-b", "topic"]);
    desk.commit("a.py");
    desk.commit("b.py");
    desk.settled();
    let asked = desk.asked();
    desk.repo.review(&["branch", "--base", "origin/main"], 0);
    assert_eq!(desk.asked(), asked);
    let out = desk.repo.try_git(&["push", "-u", "origin", "topic"]);
    assert!(out.status.success(), "{}", text(&out));
    assert_eq!(desk.asked(), asked);
}

#[test]
fn a_repository_without_a_remote_has_its_commits_reviewed_one_by_one() {
    let desk = Desk::new();
    desk.repo.git(&["remote", "remove", "origin"]);
    let commit = desk.commit("a.py");
    let status = desk.settled();
    assert_eq!(status["last"]["commit"], commit.as_str());
    desk.commit("b.py");
    desk.settled();
    let files: Vec<_> = desk
        .server
        .questions()
        .iter()
        .flat_map(Request::files)
        .collect();
    assert_eq!(files, ["a.py", "b.py"]);
}

#[test]
fn of_several_commits_the_one_that_runs_and_the_newest_are_reviewed() {
    let desk = Desk::gated();
    let first = desk.commit("a.py");
    assert_eq!(desk.running()["order"]["commit"], first.as_str());
    desk.commit("b.py");
    let last = desk.commit("c.py");
    assert_eq!(desk.status()["pending"]["order"]["commit"], last.as_str());
    desk.gate.open();
    let status = desk.settled();
    assert_eq!(status["last"]["commit"], last.as_str());
    assert_eq!(desk.server.most_in_flight(), 1);
    // The newest one covers the commits between.
    let files: Vec<_> = desk
        .server
        .questions()
        .iter()
        .flat_map(Request::files)
        .collect();
    assert!(
        ["a.py", "b.py", "c.py"]
            .iter()
            .all(|f| files.iter().any(|asked| asked == f)),
        "{files:?}"
    );
}

#[test]
fn commits_of_other_branches_wait_and_are_all_reviewed() {
    for has_remote in [true, false] {
        let desk = Desk::gated();
        if !has_remote {
            desk.repo.git(&["remote", "remove", "origin"]);
        }
        let first = desk.commit("a.py");
        assert_eq!(desk.running()["order"]["commit"], first.as_str());
        let second = desk.commit("b.py");
        desk.repo.git(&["checkout", "-q", "-b", "other", "HEAD~2"]);
        let third = desk.commit("c.py");
        let status = desk.status();
        assert_eq!(
            status["pending"]["order"]["commit"],
            second.as_str(),
            "{status:#}"
        );
        assert_eq!(
            status["pending_later"][0]["order"]["commit"],
            third.as_str(),
            "{status:#}"
        );
        let human = desk.repo.reviewer(&["status"]).run(0).stdout;
        assert!(
            human.contains(&second[..12]) && human.contains(&third[..12]),
            "{human}"
        );
        desk.gate.open();
        let status = desk.settled();
        assert_eq!(status["last"]["commit"], third.as_str());
        let files: Vec<_> = desk
            .server
            .questions()
            .iter()
            .flat_map(Request::files)
            .collect();
        assert!(
            ["a.py", "b.py", "c.py"]
                .iter()
                .all(|f| files.iter().any(|asked| asked == f)),
            "{files:?}"
        );
        assert_eq!(desk.server.most_in_flight(), 1);
    }
}

#[test]
fn an_amended_commit_replaces_the_one_that_waits() {
    let desk = Desk::gated();
    desk.commit("a.py");
    desk.running();
    desk.commit("b.py");
    desk.repo.stage("b.py", "AMENDED = 1\n");
    desk.repo.git(&["commit", "-q", "--amend", "--no-edit"]);
    let status = desk.status();
    assert_eq!(
        status["pending"]["order"]["commit"],
        desk.head().as_str(),
        "{status:#}"
    );
    assert!(status["pending_later"].is_null(), "{status:#}");
}

#[test]
fn commits_of_a_rebase_are_not_reviewed() {
    let desk = Desk::new();
    for file in ["a.py", "b.py", "c.py"] {
        desk.commit_unseen(file, "X = 1\n");
    }
    desk.repo.git(&["checkout", "-q", "-b", "other", "HEAD~3"]);
    desk.commit_unseen("d.py", "X = 1\n");
    desk.repo.git(&["checkout", "-q", "main"]);
    for args in [
        &["rebase", "-q", "other"][..],
        &["rebase", "-q", "-f", "--root"],
        &["rebase", "-q", "--exec", "true", "HEAD~2"],
    ] {
        desk.repo.git(args);
        let status = desk.status();
        assert!(
            status["running"].is_null() && status["pending"].is_null() && status["last"].is_null(),
            "{status:#}"
        );
    }
    assert_eq!(desk.asked(), 0);
    let commit = desk.commit("e.py");
    assert_eq!(
        desk.settled()["last"]["commit"],
        commit.as_str(),
        "after the rebase"
    );
}

#[test]
fn commits_of_a_cherry_pick_or_a_bisect_are_not_reviewed() {
    let desk = Desk::new();
    desk.repo.git(&["checkout", "-q", "-b", "other"]);
    for file in ["a.py", "b.py"] {
        desk.commit_unseen(file, "X = 1\n");
    }
    desk.repo.git(&["checkout", "-q", "main"]);
    let nothing = |what: &str| {
        let status = desk.status();
        assert!(
            status["running"].is_null() && status["pending"].is_null(),
            "{what}: {status:#}"
        );
    };
    desk.repo.git(&["cherry-pick", "other~1"]);
    nothing("one commit");
    desk.repo.git(&["reset", "-q", "--hard", "HEAD~1"]);
    desk.repo.git(&["cherry-pick", "other~1", "other"]);
    nothing("two commits");
    desk.repo.git(&["bisect", "start"]);
    desk.commit("c.py");
    nothing("a bisect");
    desk.repo.git(&["bisect", "reset", "main"]);
    assert_eq!(desk.asked(), 0);
}

#[test]
fn a_merge_that_is_complete_is_reviewed() {
    let desk = Desk::new();
    desk.repo.git(&["checkout", "-q", "-b", "other"]);
    desk.commit_unseen("a.py", "A = 1\n");
    desk.repo.git(&["checkout", "-q", "main"]);
    desk.commit_unseen("b.py", "B = 1\n");
    desk.repo
        .git(&["merge", "-q", "--no-ff", "--no-commit", "other"]);
    desk.repo.git(&["commit", "-q", "-m", "merge"]);
    let head = desk.head();
    assert_eq!(desk.settled()["last"]["commit"], head.as_str());
}

#[test]
fn an_amended_commit_is_reviewed_in_its_new_form() {
    let desk = Desk::new();
    desk.commit("a.py");
    desk.settled();
    desk.repo.stage("a.py", "AMENDED = 1\n");
    desk.repo.git(&["commit", "-q", "--amend", "--no-edit"]);
    let head = desk.head();
    let status = desk.settled();
    assert_eq!(status["last"]["commit"], head.as_str(), "{status:#}");
    assert!(
        desk.server
            .questions()
            .last()
            .unwrap()
            .prompt()
            .contains("AMENDED")
    );
}

#[test]
fn the_commit_is_reviewed_and_not_the_worktree() {
    let desk = Desk::new();
    desk.repo
        .stage("a.py", "COMMITTED = 1\n")
        .write("a.py", "NOT_STAGED = 1\n")
        .write("new.py", "UNTRACKED = 1\n");
    desk.repo.git(&["commit", "-q", "-m", "a"]);
    desk.settled();
    assert!(desk.server.saw("COMMITTED"));
    assert!(!desk.server.saw("NOT_STAGED") && !desk.server.saw("UNTRACKED"));
}

#[test]
fn the_review_is_detached_and_gets_no_variable_of_the_commit() {
    let desk = Desk::gated();
    desk.commit("a.py");
    let pid = desk.running()["pid"].as_u64().unwrap();
    // Fields: 6 session, 7 terminal, 19 nice.
    assert_eq!(
        (field(pid, 6), field(pid, 7), field(pid, 19)),
        (i64::try_from(pid).unwrap(), 0, 19)
    );
    let environ = fs::read(format!("/proc/{pid}/environ")).unwrap();
    let environ = String::from_utf8_lossy(&environ).into_owned();
    let git: Vec<_> = environ
        .split('\0')
        .filter(|v| v.starts_with("GIT_"))
        .collect();
    assert_eq!(git, ["GIT_CONFIG_NOSYSTEM=1"]);
    let link = |name: &str| fs::read_link(format!("/proc/{pid}/{name}")).unwrap();
    assert_eq!(link("fd/0"), Path::new("/dev/null"));
    let log = PathBuf::from(desk.status()["log"].as_str().unwrap());
    assert_eq!((link("fd/1"), link("fd/2")), (log.clone(), log.clone()));
    assert_eq!(
        link("cwd"),
        log.parent().unwrap(),
        "no worktree is kept busy"
    );
    assert_eq!(
        fs::metadata(&log).unwrap().permissions().mode() & 0o777,
        0o600
    );
    desk.gate.open();
    desk.settled();
    let text = fs::read_to_string(log).unwrap();
    assert!(text.contains("reviewed pass after "), "{text}");
}

#[test]
fn a_long_log_is_cut() {
    let desk = Desk::new();
    let log = PathBuf::from(desk.status()["log"].as_str().unwrap());
    fs::write(&log, "a line of an older version\n".repeat(40_000)).unwrap();
    fs::set_permissions(&log, fs::Permissions::from_mode(0o600)).unwrap();
    desk.commit("a.py");
    desk.settled();
    assert!(fs::metadata(&log).unwrap().len() < 200 << 10);
}

#[test]
fn a_backend_that_is_down_makes_an_incomplete_review_that_is_stored_and_not_repeated() {
    let desk = Desk::answering(|_| Reply::json(500, &serde_json::json!({ "error": "down" })));
    let commit = desk.commit("a.py");
    let status = desk.settled();
    assert_eq!(status["last"]["commit"], commit.as_str());
    assert_eq!(status["last"]["verdict"], "incomplete");
    assert!(status["last"]["review_id"].is_string(), "{status:#}");
    assert!(
        status["last"]["note"].as_str().unwrap().contains("500"),
        "{status:#}"
    );
    assert!(status["pending"].is_null());
    assert_eq!(status["cost"]["reserved_usd"], 0.0, "{status:#}");
    // One request and one retry.
    assert_eq!(desk.asked(), 2);
}

#[test]
fn a_store_that_cannot_be_written_loses_no_answer() {
    let desk = Desk::new();
    desk.repo.write(".reviews", "not a folder\n");
    desk.commit("a.py");
    let status = desk.settled();
    assert_eq!(status["last"]["verdict"], "pass", "{status:#}");
    assert!(status["last"]["review_id"].is_null());
    assert!(
        status["last"]["note"]
            .as_str()
            .unwrap()
            .starts_with("not stored: "),
        "{status:#}"
    );
    let asked = desk.asked();
    desk.repo.try_git(&["push", "origin", "main"]);
    assert_eq!(desk.asked(), asked);
}

#[test]
fn a_state_folder_that_cannot_be_used_does_not_stop_a_commit() {
    let desk = Desk::new();
    let state = desk.repo.home().join(".local/state");
    let _ = fs::remove_dir_all(&state);
    fs::create_dir_all(state.parent().unwrap()).unwrap();
    fs::write(&state, "").unwrap();
    desk.repo.stage("a.py", "A = 1\n");
    let out = desk.repo.try_git(&["commit", "-q", "-m", "a"]);
    assert!(out.status.success(), "{}", text(&out));
    assert!(
        text(&out).contains("note: the commit is not reviewed in the background: cannot create"),
        "{}",
        text(&out)
    );
    fs::remove_file(state).unwrap();
}

#[test]
fn a_push_waits_for_the_review_of_its_commit() {
    let desk = Desk::gated();
    desk.commit("a.py");
    desk.asking();
    let mut push = desk.repo.git_command();
    push.args(["push", "origin", "main"])
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let mut push = push.spawn().unwrap();
    let mut lines = BufReader::new(push.stderr.take().unwrap());
    let mut line = String::new();
    lines.read_line(&mut line).unwrap();
    assert!(
        line.starts_with("claude-reviewer: waiting up to 120 s for the background review of "),
        "{line}"
    );
    desk.gate.open();
    let mut rest = String::new();
    lines.read_to_string(&mut rest).unwrap();
    assert!(push.wait().unwrap().success(), "{rest}");
    assert_eq!(desk.asked(), 1, "{rest}");
}

#[test]
fn a_push_does_not_wait_for_the_review_of_another_commit() {
    let desk = Desk::gated();
    desk.commit("a.py");
    desk.running();
    desk.repo
        .git(&["push", "-q", "origin", "HEAD~1:refs/heads/old"]);
    assert!(!desk.status()["running"].is_null());
}
