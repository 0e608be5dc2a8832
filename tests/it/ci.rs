//! Tests of reviews in CI: the objects that are fetched, and the events of the CI systems.

mod events;
mod fetch;
mod gate;
mod http;
mod named;
mod pushes;

use crate::support::{Repo, Reviewer, Run, line_with_key, reviewer};
use serde_json::{Value, json};
use std::path::PathBuf;

/// A forge with `main`, and a branch `topic` with the open pull request 7 and its merge commit, as
/// GitHub creates it.
struct Forge {
    repo: Repo,
    base: String,
    fork: String,
    head: String,
    merge: String,
}

impl Forge {
    /// Opens a request with two commits that have the files of `first` and `second`; `policy` is
    /// the one on `main`.
    fn new(policy: &str, first: &[(&str, &str)], second: &[(&str, &str)]) -> Self {
        let repo = Repo::new();
        repo.stage("a.txt", "one\n");
        if !policy.is_empty() {
            repo.stage(".claude-reviewer.toml", policy);
        }
        let fork = repo.commit("one");
        repo.git(&["checkout", "-q", "-b", "topic"]);
        for files in [first, second] {
            for (path, text) in files {
                repo.stage(path, text);
            }
            repo.commit("work");
        }
        let head = repo.git(&["rev-parse", "HEAD"]).trim().to_owned();
        repo.git(&["checkout", "-q", "main"]);
        for i in 0..3 {
            repo.stage("other.txt", format!("{i}\n"))
                .commit("main goes on");
        }
        let base = repo.git(&["rev-parse", "HEAD"]).trim().to_owned();
        repo.git(&["checkout", "-q", "--detach", "main"]);
        repo.git(&[
            "merge",
            "-q",
            "--no-ff",
            "-m",
            "Merge topic into main",
            "topic",
        ]);
        let merge = repo.git(&["rev-parse", "HEAD"]).trim().to_owned();
        repo.git(&["update-ref", "refs/pull/7/head", &head]);
        repo.git(&["update-ref", "refs/pull/7/merge", &merge]);
        repo.git(&["checkout", "-q", "main"]);
        Self {
            repo,
            base,
            fork,
            head,
            merge,
        }
    }

    /// Opens a request without a key. `bad` opens one whose second commit removed the key of the
    /// first.
    fn good() -> Self {
        Self::new("", &[("b.txt", "fine\n")], &[("b.txt", "better\n")])
    }

    fn bad() -> Self {
        Self::new("", &[("b.txt", &line_with_key())], &[("b.txt", "better\n")])
    }

    /// Returns the first commit of the request.
    fn first(&self) -> String {
        self.repo
            .git(&["rev-parse", &format!("{}~1", self.head)])
            .trim()
            .to_owned()
    }

    /// Checks out a single commit without a branch, as runners do.
    fn job(&self, commit: &str) -> Job {
        let dir = crate::support::temp_dir();
        std::fs::create_dir(dir.path().join("home")).unwrap();
        std::fs::create_dir(dir.path().join("repo")).unwrap();
        let job = Job {
            dir,
            vars: vec![("CI".to_owned(), "true".to_owned())],
        };
        job.git(&["init", "-q"]);
        job.git(&[
            "remote",
            "add",
            "origin",
            &format!("file://{}", self.repo.path().display()),
        ]);
        job.git(&["fetch", "-q", "--no-tags", "--depth=1", "origin", commit]);
        job.git(&["checkout", "-q", "--force", "--detach", commit]);
        job
    }

    /// Returns the payload of pull request 7.
    fn request(&self) -> Value {
        let side = |sha: &str, branch: &str| json!({"sha": sha, "ref": branch, "repo": {"full_name": "team/repo"}});
        json!({
            "action": "synchronize", "number": 7,
            "pull_request": {
                "number": 7, "title": "Add b", "body": "It was missing.",
                "head": side(&self.head, "topic"), "base": side(&self.base, "main"),
            },
            "repository": {"full_name": "team/repo", "default_branch": "main"},
        })
    }

    fn push(&self, name: &str, before: &str, after: &str) -> Value {
        json!({
            "ref": name, "before": before, "after": after, "created": before == ZEROS, "deleted": after == ZEROS,
            "forced": false, "commits": [], "repository": {"full_name": "team/repo", "default_branch": "main"},
        })
    }
}

const ZEROS: &str = "0000000000000000000000000000000000000000";

/// A job on a runner.
struct Job {
    dir: tempfile::TempDir,
    vars: Vec<(String, String)>,
}

impl Job {
    fn path(&self) -> PathBuf {
        self.dir.path().join("repo")
    }

    fn git(&self, args: &[&str]) -> String {
        let mut c = std::process::Command::new(crate::support::git_program());
        c.env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", self.dir.path().join("home"));
        c.env("GIT_CONFIG_NOSYSTEM", "1")
            .current_dir(self.path())
            .args(args);
        let out = c.output().unwrap();
        assert!(
            out.status.success(),
            "git {args:?}: {}",
            String::from_utf8_lossy(&out.stderr)
        );
        String::from_utf8_lossy(&out.stdout).trim().to_owned()
    }

    fn var(mut self, name: &str, value: &str) -> Self {
        self.vars.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Sets the variables of a job that GitHub started.
    fn on(self, name: &str, payload: &Value) -> Self {
        let file = self.dir.path().join("event.json");
        std::fs::write(&file, payload.to_string()).unwrap();
        let file = file.display().to_string();
        self.var("GITHUB_ACTIONS", "true")
            .var("GITHUB_EVENT_NAME", name)
            .var("GITHUB_EVENT_PATH", &file)
    }

    fn reviewer(&self, args: &[&str]) -> Reviewer {
        let args = [&["review"], args].concat();
        let mut r = reviewer(&self.path(), &self.dir.path().join("home"), &args);
        for (name, value) in &self.vars {
            r = r.env(name, value);
        }
        r
    }

    #[track_caller]
    fn run(&self, args: &[&str], code: i32) -> Run {
        self.reviewer(args).run(code)
    }

    #[track_caller]
    fn report(&self, args: &[&str], code: i32) -> Value {
        let run = self.run(&[args, &["--format", "json"]].concat(), code);
        serde_json::from_str(&run.stdout)
            .unwrap_or_else(|e| panic!("no JSON: {e}\n{}\n{}", run.stdout, run.stderr))
    }
}

/// Returns the notes of a report.
fn notes(report: &Value) -> String {
    report["notes"].to_string()
}
