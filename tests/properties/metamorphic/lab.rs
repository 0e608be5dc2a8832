//! Repositories of thousands of files, created by one `git fast-import`, and their review in
//! process.

use claude_reviewer::env::Env;
use claude_reviewer::progress::Silent;
use claude_reviewer::request::{Authority, ReviewRequest, Source};
use claude_reviewer::review::{self, Review, World};
use claude_reviewer::stop::Stop;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

/// A file of a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    pub path: String,
    pub content: Vec<u8>,
    pub executable: bool,
}

/// A minimal repository with the branches `main` and `t`.
pub struct Lab {
    dir: TempDir,
}

impl Lab {
    /// Creates a repository: `base` is the commit of `main`; that of `t` has exactly `head`
    /// instead.
    pub fn new(base: &[File], head: &[File]) -> Self {
        let mut stream = Vec::new();
        commit(&mut stream, "main", 1, base);
        commit(&mut stream, "t", 2, head);
        Self::import(&stream)
    }

    /// Creates a repository with `main`, and with a separate branch for each head: `t0`, `t1`, ….
    pub fn of_branches(base: &[File], heads: &[Vec<File>]) -> Self {
        let mut stream = Vec::new();
        commit(&mut stream, "main", 1, base);
        for (i, head) in heads.iter().enumerate() {
            commit(&mut stream, &format!("t{i}"), i + 2, head);
        }
        Self::import(&stream)
    }

    fn import(stream: &[u8]) -> Self {
        let lab = Self {
            dir: TempDir::new().unwrap(),
        };
        std::fs::create_dir(lab.home()).unwrap();
        std::fs::create_dir(lab.path()).unwrap();
        let git = |args: &[&str]| {
            let mut command = Command::new("git");
            command
                .env_clear()
                .env("PATH", std::env::var_os("PATH").unwrap_or_default());
            command
                .env("HOME", lab.home())
                .env("GIT_CONFIG_NOSYSTEM", "1")
                .current_dir(lab.path())
                .args(args);
            command
        };
        assert!(
            git(&["init", "-q", "-b", "main"])
                .status()
                .unwrap()
                .success()
        );
        let import = &["-c", "core.ignoreCase=false", "fast-import", "--quiet"];
        let mut child = git(import).stdin(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(stream).unwrap();
        assert!(child.wait().unwrap().success(), "git fast-import");
        lab
    }

    pub fn path(&self) -> PathBuf {
        self.dir.path().join("repo")
    }

    pub fn home(&self) -> PathBuf {
        self.dir.path().join("home")
    }

    /// Runs the program in the repository.
    pub fn run(&self, args: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_claude-reviewer"));
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command
            .env("HOME", self.home())
            .current_dir(self.path())
            .args(args)
            .stdin(Stdio::null());
        command.output().unwrap()
    }

    /// Reviews `t` against `main` in process, as `review branch t --base main` does.
    pub fn review(&self, authority: Authority) -> Review {
        let source = Source::Branch {
            head: Some("t".to_owned()),
            base: Some("main".to_owned()),
        };
        let request = ReviewRequest {
            authority,
            ..ReviewRequest::new(source, self.path())
        };
        let env = Env::from_pairs(self.path(), [("HOME", self.home())]);
        let (now, stop) = (jiff::Timestamp::UNIX_EPOCH, Stop::default());
        let world = World {
            env: &env,
            progress: &Silent,
            now,
            stop: &stop,
            script: None,
            agent: None,
            findings: None,
            trackers: None,
        };
        review::run(&request, &world).unwrap_or_else(|e| panic!("{e:?}"))
    }
}

/// Writes a commit of exactly these files for `git fast-import`. The first commit is the parent of
/// all others.
fn commit(stream: &mut Vec<u8>, branch: &str, number: usize, files: &[File]) {
    let date = 1_700_000_000 + number;
    let who = format!("committer A U Thor <author@example.com> {date} +0000");
    write!(
        stream,
        "commit refs/heads/{branch}\nmark :{number}\n{who}\ndata 1\nx\n"
    )
    .unwrap();
    if number > 1 {
        stream.extend_from_slice(b"from :1\n");
    }
    stream.extend_from_slice(b"deleteall\n");
    for file in files {
        let mode = if file.executable { "100755" } else { "100644" };
        write!(
            stream,
            "M {mode} inline {}\ndata {}\n",
            file.path,
            file.content.len()
        )
        .unwrap();
        stream.extend_from_slice(&file.content);
        stream.push(b'\n');
    }
    stream.push(b'\n');
}
