//! Reviews that run after a commit, detached from it: their queue, their costs and their process.
//!
//! ```text
//! ~/.local/state/claude-reviewer/background/spending.json   costs by day, of all repositories
//!                                           …/REPOSITORY/queue.json    what runs, what waits, the last result
//!                                                        queue.lock    held for milliseconds while the queue changes
//!                                                        review.lock   held by the reviewing process until it ends
//!                                                        log           output of that process
//! ```
//!
//! The kernel releases `review.lock` with its process. A review whose lock is free is therefore
//! dead, whatever process has its ID now, and its commit waits again.

mod job;
mod queue;
mod spending;

pub use job::{ReviewJob, verdict_name, work};

use crate::ai::backend::{Backend, Pool};
use crate::ai::price;
use crate::diff::ObjectId;
use crate::env::Env;
use crate::error::{Error, Result};
use crate::git::Repo;
use crate::policy::Policy;
use crate::process::detached::{self, Detached, GroupEnding as Signalling};
use crate::state_folder::{MissingFolder, StateFolder, StatePurpose, absolute, name_of};
use crate::wire::background::{Covered, Push, Queue, ReviewOrder, Running, Spending};
use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The hidden subcommand that reviews the waiting commits of a folder.
pub const COMMAND: &str = "background-job";

/// The folder of background reviews.
const PURPOSE: StatePurpose = StatePurpose {
    folder: "background",
    content: "background reviews",
    hint: "set HOME, or [hooks] post_commit = \"off\"",
};
/// Bytes of a file that is read, at most.
const MAX_FILE: u64 = 1 << 20;

const QUEUE: &str = "queue.json";
const QUEUE_LOCK: &str = "queue.lock";
const REVIEW_LOCK: &str = "review.lock";
const SPENDING: &str = "spending.json";
const SPENDING_LOCK: &str = "spending.lock";
const LOG: &str = "log";

/// Interval at which the state of a running review is checked.
const LOOK: Duration = Duration::from_millis(25);
/// Time that a stopped review has to end its programs and close its store.
const STOPPING: Duration = Duration::from_secs(10);

/// Git variables that a job keeps: those that select the user's configuration files.
const KEPT_GIT: [&str; 3] = [
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_SYSTEM",
    "GIT_CONFIG_NOSYSTEM",
];

/// The background reviews of one repository, with all its worktrees.
#[derive(Debug)]
pub struct Station {
    home: StateFolder,
    folder: StateFolder,
}

/// A snapshot of the queue.
#[derive(Clone, Debug, PartialEq)]
pub struct View {
    pub queue: Queue,
    pub log: PathBuf,
}

/// Costs of today, of all repositories of the user.
#[derive(Clone, Debug, PartialEq)]
pub struct Today {
    /// `2026-01-31`, UTC.
    pub day: String,
    pub spent: f64,
    pub reserved: f64,
}

/// The result of a request to stop a review.
#[derive(Clone, Debug, PartialEq)]
pub enum Stopped {
    /// No review was running or waiting.
    Nothing,
    /// A waiting commit was removed; none was running.
    Waiting(String),
    /// The review of a commit ended.
    Running(String),
    /// The review of a commit had to be killed.
    Killed(String),
}

impl Station {
    /// Opens the station of a repository, and creates it if necessary.
    ///
    /// # Errors
    ///
    /// The user's state folder cannot be used.
    pub fn open(repo: &Repo, env: &Env) -> Result<Self> {
        Self::with(repo, env, MissingFolder::Create)?
            .ok_or_else(|| Error::incomplete("cannot create the folder of background reviews"))
    }

    /// Opens the station of a repository; `None` if it had no background review yet.
    ///
    /// # Errors
    ///
    /// As [`Station::open`].
    pub fn find(repo: &Repo, env: &Env) -> Result<Option<Self>> {
        Self::with(repo, env, MissingFolder::Absent)
    }

    fn with(repo: &Repo, env: &Env, missing: MissingFolder) -> Result<Option<Self>> {
        let name = name_of(repo);
        let Some(home) = StateFolder::home(env, repo.worktree(), &PURPOSE, missing)? else {
            return Ok(None);
        };
        let folder = home.below(&name, missing)?;
        Ok(folder.map(|folder| Self { home, folder }))
    }

    /// Opens the station with a name from the arguments of a job.
    ///
    /// # Errors
    ///
    /// Usage: the name is invalid or unknown.
    pub fn named(name: &str, env: &Env) -> Result<Self> {
        if name.is_empty() || !name.bytes().all(|b| b.is_ascii_hexdigit()) {
            return Err(unknown_station(name));
        }
        let home = StateFolder::home(env, None, &PURPOSE, MissingFolder::Absent)?
            .ok_or_else(|| unknown_station(name))?;
        let folder = home
            .below(name, MissingFolder::Absent)?
            .ok_or_else(|| unknown_station(name))?;
        Ok(Self { home, folder })
    }

    /// Adds a commit and starts a process for it, unless a running one will take it next.
    ///
    /// # Errors
    ///
    /// The queue cannot be written; the program cannot be started.
    pub fn submit(&self, repo: &Repo, order: ReviewOrder, env: &Env) -> Result<()> {
        let new = order.clone();
        self.change(|queue, _| queue::submit(queue, order, &|old| covered(repo, &new, old)))?;
        self.launch(env)
    }

    /// Starts the review of the waiting commits, also of those that were held. Returns the next
    /// commit, if there is one.
    ///
    /// # Errors
    ///
    /// Same as [`Station::submit`].
    pub fn resume(&self, env: &Env) -> Result<Option<String>> {
        let waiting = self.change(|queue, _| queue::resume(queue))?;
        if waiting.is_some() {
            self.launch(env)?;
        }
        Ok(waiting)
    }

    /// Returns the running and the waiting commits. The commit of a dead process waits again.
    ///
    /// # Errors
    ///
    /// The queue cannot be read.
    pub fn view(&self) -> Result<View> {
        let queue = self.change(|queue, _| queue.clone())?;
        Ok(View {
            queue,
            log: self.folder.path().join(LOG),
        })
    }

    /// Removes commits that a push has reviewed.
    ///
    /// # Errors
    ///
    /// The queue cannot be written.
    pub fn pushed(&self, commits: &[String]) -> Result<()> {
        self.change(|queue, _| queue::pushed(queue, commits))
    }

    /// Waits until a review has ended, for at most the given time. Returns true if it has ended.
    ///
    /// # Errors
    ///
    /// The queue cannot be read.
    pub fn wait_for(&self, commit: &str, most: Duration) -> Result<bool> {
        let until = Instant::now() + most;
        loop {
            let queue = self.view()?.queue;
            if queue.running.is_none_or(|r| r.order.commit != commit) {
                return Ok(true);
            }
            if Instant::now() >= until {
                return Ok(false);
            }
            std::thread::sleep(LOOK);
        }
    }

    /// Stops the running review, and removes the waiting commits.
    ///
    /// # Errors
    ///
    /// The queue cannot be written; the process is not the one that took the commit, or cannot be
    /// signalled.
    pub fn stop(&self) -> Result<Stopped> {
        let (running, waiting) = self.change(|queue, _| {
            let waiting = queue.waiting.as_ref().map(|w| w.order.commit.clone());
            queue::stop(queue);
            (queue.running.clone(), waiting)
        })?;
        let Some(running) = running else {
            return Ok(waiting.map_or(Stopped::Nothing, Stopped::Waiting));
        };
        let commit = running.order.commit.clone();
        self.signal(&running, Signalling::Politely)?;
        if self.wait_for(&commit, STOPPING)? {
            return Ok(Stopped::Running(commit));
        }
        self.signal(&running, Signalling::AtOnce)?;
        self.wait_for(&commit, STOPPING)?;
        Ok(Stopped::Killed(commit))
    }

    /// Signals the process group of a review if the process is still the one that took the commit.
    fn signal(&self, running: &Running, how: Signalling) -> Result<()> {
        let Running { pid, birth, .. } = running;
        // The lock proves that the review is alive, and the start time proves that the process ID
        // was not reused.
        let is_alive = self.folder.try_lock(REVIEW_LOCK)?.is_none();
        if !is_alive {
            return Ok(());
        }
        if detached::birth(*pid) != *birth {
            let error = format!("process {pid} is not the background review that was started");
            return Err(Error::usage(error)
                .hint_person("wait until the review ends: claude-reviewer status"));
        }
        match detached::end_group(*pid, how) {
            // The process ended between the two calls.
            Err(e) if e.raw_os_error() == Some(rustix::io::Errno::SRCH.raw_os_error()) => Ok(()),
            Err(e) => Err(Error::incomplete(format!("cannot stop process {pid}")).caused_by(&e)),
            Ok(()) => Ok(()),
        }
    }

    /// Returns the costs of a day.
    ///
    /// # Errors
    ///
    /// The ledger cannot be read.
    pub fn today(&self, now: jiff::Timestamp) -> Result<Today> {
        let day = day_of(now);
        let (spent, reserved) = spending::of(&self.ledger()?, &day);
        Ok(Today {
            day,
            spent,
            reserved,
        })
    }

    /// Takes the review lock and the next waiting commit; `None` if another process reviews, or if
    /// no commit is due.
    fn claim(&self, now: &str) -> Result<Option<(File, ReviewOrder)>> {
        let pid = std::process::id();
        let worker = queue::Worker {
            pid,
            birth: detached::birth(pid),
            now,
        };
        self.change(|queue, free| {
            // Checked under the queue lock: a process that ends checks there for further commits.
            let lock = free.filter(|_| queue::is_due(queue))?;
            queue::claim(queue, worker).map(|order| (lock, order))
        })
    }

    /// Ends the turn of this process: changes the queue and releases the review lock atomically.
    fn release(&self, lock: File, change: impl FnOnce(&mut Queue)) -> Result<bool> {
        self.change(|queue, _| {
            change(queue);
            drop(lock);
            queue::is_due(queue)
        })
    }

    /// Changes the queue under its lock. `change` gets the review lock if no process holds it.
    fn change<T>(&self, change: impl FnOnce(&mut Queue, Option<File>) -> T) -> Result<T> {
        let _lock = self.folder.lock(QUEUE_LOCK)?;
        let bytes = self.folder.read(QUEUE, MAX_FILE)?;
        // The file is replaced atomically, so only a damaged disk leaves an invalid one.
        let before: Option<Queue> = bytes.and_then(|b| serde_json::from_slice(&b).ok());
        let mut queue = before.clone().unwrap_or_else(queue::empty);
        let free = self.folder.try_lock(REVIEW_LOCK)?;
        if free.is_some() {
            queue::recover(&mut queue, &moment(jiff::Timestamp::now()));
        }
        let result = change(&mut queue, free);
        if before.as_ref() != Some(&queue) {
            self.folder.replace(QUEUE, &queue.to_bytes())?;
        }
        Ok(result)
    }

    fn ledger(&self) -> Result<Spending> {
        match self.home.read(SPENDING, MAX_FILE)? {
            None => Ok(spending::empty()),
            Some(bytes) => serde_json::from_slice(&bytes).map_err(|e| {
                let path = self.home.path().join(SPENDING);
                let error = Error::incomplete(format!("cannot read {}: {e}", path.display()));
                error.hint(format!("start a new one: rm {}", path.display()))
            }),
        }
    }

    fn spend<T>(&self, change: impl FnOnce(&mut Spending) -> T) -> Result<T> {
        let _lock = self.home.lock(SPENDING_LOCK)?;
        let mut ledger = self.ledger()?;
        let result = change(&mut ledger);
        self.home.replace(SPENDING, &ledger.to_bytes())?;
        Ok(result)
    }

    /// Starts a process that reviews the waiting commits.
    fn launch(&self, env: &Env) -> Result<()> {
        self.folder.trim(LOG)?;
        let log = self.folder.log(LOG)?;
        let path = env
            .program()
            .map_err(|e| Error::usage("cannot find the path of this program").caused_by(&e))?;
        let name = self.folder.path().file_name().unwrap_or_default();
        let args = [OsString::from(COMMAND), name.to_owned()];
        let vars = inherited(env);
        // It runs in its own folder, because it must not keep a worktree from being removed.
        let program = Detached {
            path: &path,
            args: &args,
            env: &vars,
            dir: self.folder.path(),
            log: &log,
        };
        detached::start(&program)
            .map_err(|e| Error::incomplete("cannot start a background review").caused_by(&e))
    }
}

/// Returns the error about the name of a station that does not exist.
fn unknown_station(name: &str) -> Error {
    Error::usage(format!("no background reviews are known as {name}"))
}

/// Returns the order to review the newest commit of a worktree; `None` before the first commit and
/// in a bare repository.
///
/// # Errors
///
/// The repository cannot be read.
pub fn order(repo: &Repo, now: jiff::Timestamp) -> Result<Option<ReviewOrder>> {
    let (Some(head), Some(worktree)) = (repo.head()?, repo.worktree()) else {
        return Ok(None);
    };
    let push = repo.push_target()?.map(|t| Push {
        remote: t.remote,
        reference: t.reference,
        known: t.known,
    });
    Ok(Some(ReviewOrder {
        commit: head.to_string(),
        worktree: text_of(&absolute(worktree))?,
        git_dir: text_of(&absolute(repo.git_dir()))?,
        push,
        since: moment(now),
        attempts: 0,
        branch: repo.checked_out_branch()?,
        from: None,
        covers: Vec::new(),
    }))
}

/// Returns how the review of a new commit covers that of an earlier one: both have the same push
/// target, and the new commit descends from the earlier one or amends it. A commit that cannot be
/// read is not covered.
fn covered(repo: &Repo, new: &ReviewOrder, old: &ReviewOrder) -> Option<Covered> {
    if old.worktree != new.worktree || push_target(old) != push_target(new) {
        return None;
    }
    let from = if old.commit == new.commit {
        old.from.clone()
    } else {
        let (first, second) = (
            repo.resolve(&old.commit).ok()?,
            repo.resolve(&new.commit).ok()?,
        );
        let is_ancestor = repo.merge_base(first, second).ok()? == Some(first);
        let is_amended = old.branch.is_some()
            && old.branch == new.branch
            && parent(repo, &old.commit) == parent(repo, &new.commit);
        match (is_ancestor, is_amended) {
            (true, _) if new.push.is_some() => None,
            // Without a parent commit, the range has no start: both commits are reviewed.
            (true, _) => Some(
                old.from
                    .clone()
                    .or_else(|| Some(parent(repo, &old.commit)?.to_string()))?,
            ),
            (false, true) => old.from.clone(),
            (false, false) => return None,
        }
    };
    Some(Covered {
        commit: old.commit.clone(),
        from,
    })
}

/// Returns the remote and the reference that the branch of a commit is pushed to.
fn push_target(order: &ReviewOrder) -> Option<(&str, &str)> {
    order
        .push
        .as_ref()
        .map(|p| (p.remote.as_str(), p.reference.as_str()))
}

/// Returns the first parent of a commit; `None` if it has none or cannot be read.
fn parent(repo: &Repo, commit: &str) -> Option<ObjectId> {
    repo.resolve(&format!("{commit}^")).ok()
}

/// Returns the first backend whose cost cannot be limited because its price is unknown, with the
/// key to set.
pub fn unpriced(policy: &Policy, env: &Env, top: &Path) -> Option<String> {
    let pool = Pool::default();
    policy.review.backends.iter().find_map(|name| {
        let configured = policy.backend(name)?;
        if configured.price.is_some() {
            return None;
        }
        // A backend that cannot be opened costs nothing, and the review reports it.
        let backend = Backend::open(configured, env, Some(top), &pool).ok()?;
        let model = backend.model().unwrap_or("its model");
        let is_known = backend.reports_cost()
            || backend.is_own() && price::listed(backend.kind(), model).is_some();
        (!is_known).then(|| format!("no price of {model} is known; set price in [backend.{name}]"))
    })
}

/// Returns the variables of a job: those of the hook, except the variables that git sets for hooks.
fn inherited(env: &Env) -> Vec<(OsString, OsString)> {
    let kept = env
        .vars()
        .filter(|(name, _)| is_kept(&name.to_string_lossy()));
    kept.map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

/// Returns true if a job keeps the variable of the hook.
fn is_kept(name: &str) -> bool {
    !name.starts_with("GIT_") || KEPT_GIT.contains(&name)
}

/// Returns a path as text.
///
/// # Errors
///
/// Usage: the path is not UTF-8.
fn text_of(path: &Path) -> Result<String> {
    path.to_str()
        .map(str::to_owned)
        .ok_or_else(|| not_text(path))
}

fn not_text(path: &Path) -> Error {
    Error::usage(format!(
        "cannot review in the background: the path {} is not UTF-8",
        path.display()
    ))
}

/// Returns a time as RFC 3339, in whole seconds, UTC.
fn moment(now: jiff::Timestamp) -> String {
    now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

fn day_of(now: jiff::Timestamp) -> String {
    now.to_zoned(jiff::tz::TimeZone::UTC).date().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_gets_no_variable_of_the_git_command_that_started_it() {
        let vars = [
            ("HOME", "/h"),
            ("GIT_DIR", "/r/.git"),
            ("GIT_INDEX_FILE", "/r/.git/index.lock"),
            ("GIT_AUTHOR_NAME", "x"),
            ("GIT_CONFIG_PARAMETERS", "'a.b=c'"),
            ("GIT_CONFIG_COUNT", "1"),
            ("GIT_CONFIG_GLOBAL", "/h/config"),
            ("SOME_KEY", "k"),
        ];
        let env = Env::from_pairs(PathBuf::from("/"), vars);
        let names: Vec<_> = inherited(&env).into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["HOME", "GIT_CONFIG_GLOBAL", "SOME_KEY"]);
    }
}
