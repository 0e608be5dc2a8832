//! Runs the `git` program.
//!
//! Used only for work that cannot be done in process. The repository cannot choose the program: the
//! path is absolute and outside the repository, there is no shell, the environment has a few
//! variables, every configuration key for a program is overridden, and there is a time limit.

use crate::bounded;
use crate::env::Env;
use crate::error::{Error, Result};
use crate::log::millis;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Time limit of a call.
const DEADLINE: Duration = Duration::from_secs(30);
/// Bytes of an answer that are read.
const MAX_ANSWER: u64 = 64 << 20;

/// Environment variables that are passed on.
const PASSED: &[&str] = &[
    "HOME",
    "XDG_CONFIG_HOME",
    "TMPDIR",
    "USER",
    "LOGNAME",
    "SystemRoot",
    "USERPROFILE",
];

/// Environment variables that are set.
const SET: &[(&str, &str)] = &[
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_NO_LAZY_FETCH", "1"),
    ("GIT_NO_REPLACE_OBJECTS", "1"),
    ("GIT_PAGER", "cat"),
    ("LC_ALL", "C"),
];

/// Configuration that overrides the repository's.
const PINNED: &[&str] = &[
    "core.fsmonitor=false",
    "core.hooksPath=/dev/null",
    "core.attributesFile=/dev/null",
    "core.sshCommand=false",
    "core.pager=cat",
    "safe.bareRepository=explicit",
    "protocol.allow=never",
    "diff.external=",
    "core.quotePath=true",
    "diff.orderFile=/dev/null",
    "log.showSignature=false",
    "color.ui=never",
];

/// The `git` program and the arguments for one repository.
#[derive(Debug)]
pub(super) struct Program {
    path: PathBuf,
    git_dir: PathBuf,
    env: Vec<(OsString, OsString)>,
    /// `-c` values: the pinned ones, and one set for each filter driver.
    config: Vec<OsString>,
    hash: gix::hash::Kind,
}

impl Program {
    /// Finds git in `PATH`.
    ///
    /// # Errors
    /// Usage, if there is none outside the repository.
    pub(super) fn find(repo: &gix::Repository, env: &Env, worktree: Option<&Path>) -> Result<Self> {
        let git_dir = super::real(repo.git_dir());
        let mut inside: Vec<PathBuf> = worktree
            .into_iter()
            .chain([repo.common_dir()])
            .filter_map(|p| p.canonicalize().ok())
            .collect();
        inside.push(git_dir.clone());
        let path = locate(env, &inside).ok_or_else(|| {
            Error::usage(
                "git not found on PATH: this repository stores its references in a reftable",
            )
            .hint("install git 2.45 or newer, and add its folder to PATH")
        })?;
        let mut config: Vec<OsString> = PINNED.iter().map(OsString::from).collect();
        let snapshot = repo.config_snapshot();
        for section in snapshot
            .plumbing()
            .sections_by_name("filter")
            .into_iter()
            .flatten()
        {
            let Some(driver) = section.header().subsection_name() else {
                continue;
            };
            let Ok(driver) = std::str::from_utf8(driver) else {
                continue;
            };
            for key in ["clean=", "process=", "smudge=", "required=false"] {
                config.push(format!("filter.{driver}.{key}").into());
            }
        }
        let passed = PASSED
            .iter()
            .filter_map(|k| Some((OsString::from(k), env.os(k)?.clone())));
        let set = SET
            .iter()
            .map(|(k, v)| (OsString::from(k), OsString::from(v)));
        Ok(Self {
            path,
            git_dir,
            env: passed.chain(set).collect(),
            config,
            hash: repo.object_hash(),
        })
    }

    /// Fails if the program is older than a version.
    pub(super) fn require(&self, least: (u32, u32), what: &str) -> Result<()> {
        let answer = self.run(&["version"])?;
        let text = String::from_utf8_lossy(&answer.stdout).trim().to_owned();
        let number = text.strip_prefix("git version ").unwrap_or(&text);
        let version = version(&text);
        if answer.ok && version >= least {
            return Ok(());
        }
        Err(Error::usage(format!(
            "git {number} ({}) does not support {what}",
            self.path.display()
        ))
        .hint(format!("install git {}.{} or newer", least.0, least.1)))
    }

    /// Returns the commit of a revision, or `None` if it does not exist.
    pub(super) fn commit(&self, rev: &str) -> Result<Option<gix::ObjectId>> {
        let answer = self.run(&[
            "rev-parse",
            "--verify",
            "--quiet",
            "--end-of-options",
            &format!("{rev}^{{commit}}"),
        ])?;
        Ok(if answer.ok {
            self.id(&answer.stdout)
        } else {
            None
        })
    }

    /// Returns the reference that a symbolic one points to.
    pub(super) fn symbolic(&self, name: &str) -> Result<Option<String>> {
        let answer = self.run(&["symbolic-ref", "--quiet", "--end-of-options", name])?;
        let name = String::from_utf8_lossy(&answer.stdout).trim().to_owned();
        Ok((answer.ok && !name.is_empty()).then_some(name))
    }

    /// Returns true if a reference with that full name exists, even if it cannot be read.
    pub(super) fn has_reference(&self, name: &str) -> Result<bool> {
        // Exit code 0: exists; 2: does not exist; others: the lookup failed.
        Ok(self
            .run(&["show-ref", "--exists", "--end-of-options", name])?
            .code
            != Some(2))
    }

    /// Returns the objects of the references below a prefix, following tags.
    pub(super) fn tips(&self, prefix: &str) -> Result<Vec<gix::ObjectId>> {
        let answer = self.run(&[
            "for-each-ref",
            "--format=%(objectname)",
            "--end-of-options",
            prefix,
        ])?;
        if !answer.ok {
            return Err(Error::incomplete("cannot list the references"));
        }
        Ok(answer
            .stdout
            .split(|b| *b == b'\n')
            .filter_map(|line| self.id(line))
            .collect())
    }

    /// Returns the references of these full names that exist, in the order of the names.
    pub(super) fn exact(&self, names: &[&str]) -> Result<Vec<(String, gix::ObjectId)>> {
        let args = [
            "for-each-ref",
            "--format=%(objectname) %(refname)",
            "--end-of-options",
        ];
        let answer = self.run(&[&args[..], names].concat())?;
        if !answer.ok {
            return Err(Error::incomplete("cannot list the references"));
        }
        let text = String::from_utf8_lossy(&answer.stdout);
        let all: Vec<(&str, &str)> = text.lines().filter_map(|l| l.split_once(' ')).collect();
        let found = names.iter().filter_map(|name| {
            let (id, _) = all.iter().find(|(_, n)| n == name)?;
            Some(((*name).to_owned(), self.id(id.as_bytes())?))
        });
        Ok(found.collect())
    }

    /// Sets a note of an object from a file.
    pub(super) fn set_note(
        &self,
        reference: &str,
        object: &str,
        file: &str,
        who: &(String, String),
    ) -> Result<()> {
        let (name, email) = (
            format!("user.name={}", who.0),
            format!("user.email={}", who.1),
        );
        let answer = self.run(&[
            "-c", &name, "-c", &email, "notes", "--ref", reference, "add", "--force", "--file",
            file, object,
        ])?;
        if answer.ok {
            return Ok(());
        }
        Err(
            Error::usage(format!("git failed to write {reference}")).hint(format!(
                "show the error of git: git notes --ref {reference} list"
            )),
        )
    }

    /// Merges a commit of notes into a reference, line by line.
    pub(super) fn merge_notes(
        &self,
        reference: &str,
        commit: &str,
        who: &(String, String),
    ) -> Result<()> {
        let (name, email) = (
            format!("user.name={}", who.0),
            format!("user.email={}", who.1),
        );
        let config = ["-c", &name, "-c", &email];
        let merge = [
            "notes",
            "--ref",
            reference,
            "merge",
            "--quiet",
            "--strategy=cat_sort_uniq",
            commit,
        ];
        if self.run(&[&config[..], &merge[..]].concat())?.ok {
            return Ok(());
        }
        Err(Error::usage(format!(
            "git failed to merge {commit} into {reference}"
        )))
    }

    /// Parses a full object ID.
    fn id(&self, text: &[u8]) -> Option<gix::ObjectId> {
        gix::ObjectId::from_hex(text.trim_ascii())
            .ok()
            .filter(|id| id.kind() == self.hash)
    }

    fn run(&self, args: &[&str]) -> Result<GitOutput> {
        let mut command = Command::new(&self.path);
        command
            .env_clear()
            .envs(self.env.iter().map(|(k, v)| (k, v)));
        // Git finds its own parts relative to its executable, not in PATH.
        command
            .arg("--git-dir")
            .arg(&self.git_dir)
            .arg("--no-pager")
            .arg("--literal-pathspecs");
        for value in &self.config {
            command.arg("-c").arg(value);
        }
        command
            .args(args)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .current_dir("/");
        let mut child = command.spawn().map_err(|e| self.not_run(&e))?;
        let Some(pipe) = child.stdout.take() else {
            return Err(Error::incomplete("cannot read the output of git"));
        };
        let reader = std::thread::spawn(move || bounded::start(pipe, MAX_ANSWER));
        let start = Instant::now();
        let mut nap = Duration::from_micros(200);
        let status = loop {
            if let Some(status) = child.try_wait().map_err(|e| self.not_run(&e))? {
                break status;
            }
            if start.elapsed() > DEADLINE {
                // The process may have ended meanwhile.
                let _ = child.kill();
                let _ = child.wait();
                return Err(Error::incomplete(format!(
                    "git {} timed out after {DEADLINE:?}",
                    args.first().unwrap_or(&"")
                )));
            }
            std::thread::sleep(nap);
            nap = (nap * 2).min(Duration::from_millis(20));
        };
        let stdout = match reader.join() {
            Ok(read) => read.map_err(|e| self.not_run(&e))?,
            Err(_) => return Err(Error::incomplete("cannot read the output of git")),
        };
        tracing::debug!(
            command = args.first(),
            code = status.code(),
            ms = millis(start, Instant::now()),
            "git ended"
        );
        Ok(GitOutput {
            ok: status.success(),
            code: status.code(),
            stdout,
        })
    }

    /// Returns the error for a program that cannot be run, or whose output cannot be read.
    fn not_run(&self, e: &std::io::Error) -> Error {
        Error::usage(format!("cannot run {}", self.path.display())).caused_by(e)
    }
}

/// Finds git in the absolute folders of `PATH`, outside of the given folders.
pub(super) fn locate(env: &Env, inside: &[PathBuf]) -> Option<PathBuf> {
    let name = format!("git{}", std::env::consts::EXE_SUFFIX);
    env.path()
        .into_iter()
        .filter(|dir| dir.is_absolute())
        .filter_map(|dir| std::fs::canonicalize(dir).ok().map(|d| d.join(&name)))
        .find(|p| is_program(p) && !inside.iter().any(|top| p.starts_with(top)))
}

/// Parses `git version 2.45.1`; parts that cannot be parsed are 0.
pub(super) fn version(text: &str) -> (u32, u32) {
    let number = text.strip_prefix("git version ").unwrap_or(text);
    let mut parts = number.split('.').map(|p| p.parse::<u32>().unwrap_or(0));
    (parts.next().unwrap_or(0), parts.next().unwrap_or(0))
}

struct GitOutput {
    ok: bool,
    /// `None` if a signal ended the process.
    code: Option<i32>,
    stdout: Vec<u8>,
}

#[cfg(unix)]
fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    path.metadata()
        .is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_program(path: &Path) -> bool {
    path.is_file()
}
