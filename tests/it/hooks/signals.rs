//! Tests of signals: a review that is interrupted, alone and within a commit.

use super::{CLEAN, aws_key, hooked, passes};
use crate::support::{Repo, binary, until};
use std::fs;
use std::os::unix::process::CommandExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// CPU time after which a review is in the middle of its work, in ticks of 10 ms. The reviews of
/// these tests take seconds.
const BUSY_TICKS: u64 = 3;

/// Starts a run in a process group of its own, and waits until the review in it is working.
fn started(command: &mut Command) -> Child {
    let child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()
        .unwrap();
    until("the review works", || {
        let reviews = reviews_of_group(child.id());
        reviews.iter().any(|review| review.ticks >= BUSY_TICKS)
    });
    child
}

/// A running review, by `/proc/PID/stat` (proc_pid_stat(5)).
struct RunningReview {
    pid: u32,
    /// `R`: running, `T`: stopped by a signal.
    state: String,
    /// CPU time, in ticks of 10 ms.
    ticks: u64,
}

/// Lists the processes of a group that run the tested program.
fn reviews_of_group(group: u32) -> Vec<RunningReview> {
    let entries = fs::read_dir("/proc").unwrap();
    let pids = entries.filter_map(|e| e.unwrap().file_name().to_str()?.parse().ok());
    pids.filter_map(|pid| review_of_group(pid, group)).collect()
}

/// Reads a process, or `None` if it has ended, is in another group, or runs another program.
fn review_of_group(pid: u32, group: u32) -> Option<RunningReview> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The second field, a name in parentheses, may have blanks.
    let fields: Vec<&str> = stat.rsplit_once(") ")?.1.split(' ').collect();
    let number = |field: usize| fields[field - 3].parse::<u64>().ok();
    let is_review = number(5)? == u64::from(group)
        && fs::read_link(format!("/proc/{pid}/exe")).ok()? == Path::new(binary());
    is_review.then_some(RunningReview {
        pid,
        state: fields[0].to_owned(),
        ticks: number(14)? + number(15)?,
    })
}

fn signal(name: &str, target: &str) {
    assert!(
        Command::new("kill")
            .args([&format!("-{name}"), "--", target])
            .status()
            .unwrap()
            .success()
    );
}

/// Waits for the end of a run after a signal. That it takes less than two seconds is what the tests
/// claim: the reviews take longer if they are not interrupted.
#[track_caller]
fn ended(child: Child) -> Output {
    let start = Instant::now();
    let out = child.wait_with_output().unwrap();
    assert!(
        start.elapsed() < Duration::from_secs(2),
        "took {:?} to end",
        start.elapsed()
    );
    out
}

/// Creates a staged change whose review takes seconds in a debug build.
fn busy() -> Repo {
    let repo = hooked();
    let line = "let total = items.iter().map(|i| i.price * i.count).sum::<u64>(); // running total of the order\n";
    for i in 0..8 {
        repo.write(&format!("src/part{i}.rs"), line.repeat(60_000));
    }
    repo.git(&["add", "."]);
    repo
}

fn leftovers(repo: &Repo) -> Vec<String> {
    let list = |dir: PathBuf| {
        fs::read_dir(dir)
            .unwrap()
            .map(|e| e.unwrap().file_name().into_string().unwrap())
    };
    let all = list(repo.path().join(".git")).chain(list(repo.path()));
    all.filter(|n| n.ends_with(".lock") || n.contains("claude-reviewer"))
        .collect()
}

#[test]
fn hok_03_a_signal_ends_a_review_at_once_and_leaves_nothing() {
    let repo = busy();
    let index = fs::read(repo.path().join(".git/index")).unwrap();
    for (name, number) in [("TERM", 15), ("HUP", 1), ("INT", 2)] {
        let child = started(
            Command::new(binary())
                .args(["review", "staged"])
                .current_dir(repo.path()),
        );
        signal(name, &child.id().to_string());
        let out = ended(child);
        let code = out.status.code();
        assert!(
            out.status.signal() == Some(number) || code == Some(128 + number),
            "{name}: {:?}",
            out.status
        );
        assert_eq!(leftovers(&repo), [""; 0]);
    }
    assert_eq!(fs::read(repo.path().join(".git/index")).unwrap(), index);
}

#[test]
fn hok_03_ctrl_c_twice_during_a_commit_leaves_no_commit_and_no_lock() {
    let repo = busy();
    let head = repo.git(&["rev-parse", "HEAD"]);
    let child = started(repo.git_command().args(["commit", "-q", "-m", "x"]));
    let group = format!("-{}", child.id());
    signal("INT", &group);
    // The second signal may find no process.
    let _ = Command::new("kill")
        .args(["-INT", "--", &group])
        .stderr(Stdio::null())
        .status();
    let out = ended(child);
    assert!(!out.status.success());
    assert_eq!(repo.git(&["rev-parse", "HEAD"]), head);
    assert_eq!(leftovers(&repo), [""; 0]);
    repo.git(&["reset", "-q"]);
    repo.stage("app.ini", CLEAN);
    passes(&repo, &["commit", "-q", "-m", "x"]);
}

#[test]
fn hok_03_a_stopped_review_goes_on() {
    let repo = hooked();
    repo.stage("app.ini", aws_key());
    repo.write(
        "big.rs",
        "let total = items.iter().sum::<u64>();\n".repeat(60_000),
    );
    repo.git(&["add", "."]);
    let child = started(
        Command::new(binary())
            .args(["review", "staged"])
            .current_dir(repo.path()),
    );
    let pid = child.id().to_string();
    signal("STOP", &pid);
    until("the review is stopped", || {
        let reviews = reviews_of_group(child.id());
        reviews
            .iter()
            .any(|r| r.pid == child.id() && r.state == "T")
    });
    signal("CONT", &pid);
    assert_eq!(child.wait_with_output().unwrap().status.code(), Some(1));
}
