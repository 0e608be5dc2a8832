//! A repository builder with fixed dates and identity, and a runner with a scrubbed environment.

use claude_reviewer::report::ReportFormat;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::LazyLock;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// A real repository in a temporary folder.
pub struct Repo {
    dir: TempDir,
    clock: std::cell::Cell<u64>,
}

/// The end of a run of the binary.
pub struct Run {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

/// The settings of a run of the binary.
pub struct Reviewer {
    command: Command,
    stdin: Option<Vec<u8>>,
}

/// Returns the names of all formats of the report. A new format is tested like the others without
/// being named here.
pub fn report_formats() -> impl Iterator<Item = &'static str> {
    ReportFormat::ALL.into_iter().map(ReportFormat::name)
}

impl Repo {
    /// Creates an empty repository on branch `main`.
    pub fn new() -> Self {
        Self::init(&[])
    }

    /// Creates an empty repository with further `git init` arguments, such as
    /// `--object-format=sha256`.
    pub fn init(args: &[&str]) -> Self {
        let repo = Self {
            dir: temp_dir(),
            clock: 0.into(),
        };
        std::fs::create_dir(repo.home()).unwrap();
        std::fs::create_dir(repo.path()).unwrap();
        // Without the sample hooks of git, which no test needs.
        repo.git(&[&["init", "-q", "-b", "main", "--template="], args].concat());
        for folder in ["hooks", "info"] {
            let _ = std::fs::create_dir(repo.path().join(".git").join(folder));
        }
        repo
    }

    /// Returns the top of the worktree.
    pub fn path(&self) -> PathBuf {
        self.dir.path().join("repo")
    }

    /// Returns an unused folder next to the worktree.
    pub fn outside(&self) -> PathBuf {
        self.dir.path().join("outside")
    }

    /// Returns the home folder of both git and the binary.
    pub fn home(&self) -> PathBuf {
        self.dir.path().join("home")
    }

    /// Writes a file of the worktree, with its folders.
    pub fn write(&self, path: &str, content: impl AsRef<[u8]>) -> &Self {
        let path = self.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
        self
    }

    /// Writes a file and stages it.
    pub fn stage(&self, path: &str, content: impl AsRef<[u8]>) -> &Self {
        self.write(path, content);
        self.git(&["add", "-f", "--", path]);
        self
    }

    /// Commits the staged files and returns the commit ID. No hook runs.
    pub fn commit(&self, message: &str) -> String {
        // Without the maintenance that git starts in the background.
        self.git(&[
            "-c",
            "maintenance.auto=false",
            "commit",
            "-q",
            "--no-verify",
            "--allow-empty",
            "-m",
            message,
        ]);
        self.head()
    }

    /// Commits files on top of `base`, pushes the commit to a bare repository as `reference`, and
    /// deletes it here. So only the other repository has it, as a server has a pull request.
    /// Returns the commit ID.
    #[track_caller]
    pub fn commit_elsewhere(
        &self,
        base: &str,
        files: &[(&str, &str)],
        bare: &Path,
        reference: &str,
    ) -> String {
        let objects = self.path().join(".git/objects");
        let kept = files_below(&objects);
        let bare = bare.to_str().unwrap();
        self.git(&["checkout", "-q", "-b", "feature", base]);
        for (name, text) in files {
            self.stage(name, *text);
        }
        let head = self.commit("change the settings");
        self.git(&["push", "-q", "-f", bare, &format!("feature:{reference}")]);
        self.git(&["checkout", "-q", "main"]);
        self.git(&["branch", "-q", "-D", "feature"]);
        std::fs::remove_dir_all(self.path().join(".git/logs")).unwrap();
        for new in files_below(&objects)
            .iter()
            .filter(|path| !kept.contains(path))
        {
            std::fs::remove_file(new).unwrap();
        }
        self.git(&["--git-dir", bare, "update-server-info"]);
        let found = self.try_git(&["cat-file", "-e", &head]);
        assert!(!found.status.success(), "it is still here");
        head
    }

    /// Returns the commit ID of `HEAD`, from the file of its branch if there is one: that is faster
    /// than git.
    fn head(&self) -> String {
        let read = |name: &str| std::fs::read_to_string(self.path().join(".git").join(name));
        let branch = read("HEAD").ok();
        let branch = branch.as_deref().and_then(|h| h.strip_prefix("ref: "));
        match branch.and_then(|name| read(name.trim()).ok()) {
            Some(id) => {
                self.clock.set(self.clock.get() + 1);
                id.trim().to_owned()
            }
            None => self.git(&["rev-parse", "HEAD"]).trim().to_owned(),
        }
    }

    /// Creates a git command with a fixed identity and a clock that advances by a second with each
    /// call.
    pub fn git_command(&self) -> Command {
        self.clock.set(self.clock.get() + 1);
        let date = format!("{} +0000", 1_700_000_000 + self.clock.get());
        let mut c = Command::new(git_program());
        scrub(&mut c, &self.home());
        c.current_dir(self.path())
            .env("GIT_AUTHOR_NAME", "A U Thor")
            .env("GIT_AUTHOR_EMAIL", "author@example.com")
            .env("GIT_COMMITTER_NAME", "C O Mitter")
            .env("GIT_COMMITTER_EMAIL", "committer@example.com")
            .env("GIT_AUTHOR_DATE", &date)
            .env("GIT_COMMITTER_DATE", &date);
        c
    }

    /// Runs git, expects success, returns its output.
    #[track_caller]
    pub fn git(&self, args: &[&str]) -> String {
        let out = self.git_command().args(args).output().unwrap();
        assert!(
            out.status.success(),
            "git {args:?}: {}",
            String::from_utf8_lossy(&out.stderr)
        );
        String::from_utf8_lossy(&out.stdout).into_owned()
    }

    /// Runs git and returns its result, also on failure.
    pub fn try_git(&self, args: &[&str]) -> Output {
        self.git_command().args(args).output().unwrap()
    }

    /// Prepares a run of the binary in the top of the worktree.
    pub fn reviewer(&self, args: &[&str]) -> Reviewer {
        reviewer(&self.path(), &self.home(), args)
    }

    /// Runs `review …` and expects an exit code.
    #[track_caller]
    pub fn review(&self, args: &[&str], code: i32) -> Run {
        self.reviewer(&[&["review"], args].concat()).run(code)
    }

    /// Runs `review … --format json`, expects an exit code and returns the report.
    #[track_caller]
    pub fn review_json(&self, args: &[&str], code: i32) -> serde_json::Value {
        self.review(&[args, &["--format", "json"]].concat(), code)
            .json()
    }
}

impl Run {
    /// Returns the JSON document on standard output.
    #[track_caller]
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|e| panic!("no JSON: {e}\n{}\n{}", self.stdout, self.stderr))
    }
}

/// Time limit of every wait, after which a test fails. A wait that ends does not take longer on an
/// idle machine.
const PATIENCE: Duration = Duration::from_secs(90);

/// Polls until there is a value.
#[track_caller]
pub fn eventually<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + PATIENCE;
    loop {
        if let Some(value) = look() {
            return value;
        }
        assert!(Instant::now() < end, "this did not happen: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Polls until a condition is true.
#[track_caller]
pub fn until(what: &str, mut is_true: impl FnMut() -> bool) {
    eventually(what, || is_true().then_some(()));
}

/// Returns the files below a folder; it follows links to folders.
pub fn files_below(dir: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(dir) else {
        return Vec::new();
    };
    let mut out = Vec::new();
    for path in entries.map(|e| e.unwrap().path()) {
        if path.is_dir() {
            out.extend(files_below(&path));
        } else {
            out.push(path);
        }
    }
    out
}

/// Creates a temporary folder that is removed on drop, in [`temp_root`].
pub fn temp_dir() -> TempDir {
    TempDir::new_in(temp_root()).unwrap()
}

/// Returns the folder for temporary files: `TMPDIR` if it is set, else a file system in memory if
/// the machine has one, else the default of the system. git and the stored reviews sync their
/// files, and on a busy disk the tests would wait for it most of their time.
fn temp_root() -> &'static Path {
    static ROOT: LazyLock<PathBuf> = LazyLock::new(|| {
        let memory = Path::new("/dev/shm");
        if std::env::var_os("TMPDIR").is_none() && is_suitable(memory) {
            memory.to_owned()
        } else {
            std::env::temp_dir()
        }
    });
    &ROOT
}

/// Returns true if programs can be written to and run from a file system, and it has 4 GiB left.
#[cfg(unix)]
fn is_suitable(folder: &Path) -> bool {
    use rustix::fs::StatVfsMountFlags;
    let unsuitable = StatVfsMountFlags::RDONLY | StatVfsMountFlags::NOEXEC;
    rustix::fs::statvfs(folder).is_ok_and(|state| {
        !state.f_flag.intersects(unsuitable)
            && state.f_bavail.saturating_mul(state.f_frsize) >= 4 << 30
            && tempfile::tempfile_in(folder).is_ok()
    })
}

/// Returns false: no such file system is known.
#[cfg(not(unix))]
fn is_suitable(_: &Path) -> bool {
    false
}

/// Prepares a run of the binary in any folder.
pub fn reviewer(dir: &Path, home: &Path, args: &[&str]) -> Reviewer {
    let mut command = Command::new(binary());
    scrub(&mut command, home);
    command.current_dir(dir).args(args);
    Reviewer {
        command,
        stdin: None,
    }
}

/// Returns the path of the binary under test.
pub fn binary() -> &'static str {
    env!("CARGO_BIN_EXE_claude-reviewer")
}

/// Returns the path of git. The standard library starts a program by its path with `posix_spawn`,
/// and by its name and a changed `PATH` with `fork`, which copies the page tables of this process.
pub fn git_program() -> &'static Path {
    static GIT: LazyLock<PathBuf> = LazyLock::new(|| {
        let path = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&path)
            .map(|folder| folder.join(format!("git{}", std::env::consts::EXE_SUFFIX)))
            .find(|program| program.is_file())
            .unwrap_or_else(|| "git".into())
    });
    &GIT
}

/// Removes every inherited variable except `PATH`, and sets a home and a folder for temporary
/// files.
fn scrub(c: &mut Command, home: &Path) {
    let path = std::env::var_os("PATH").unwrap_or_default();
    c.env_clear()
        .env("PATH", path)
        .env("HOME", home)
        .env("TMPDIR", temp_root())
        .env("LC_ALL", "C")
        .env("GIT_CONFIG_NOSYSTEM", "1");
}

impl Reviewer {
    pub fn env(mut self, key: &str, value: impl AsRef<std::ffi::OsStr>) -> Self {
        self.command.env(key, value);
        self
    }

    pub fn dir(mut self, dir: impl AsRef<Path>) -> Self {
        self.command.current_dir(dir);
        self
    }

    pub fn stdin(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.stdin = Some(bytes.into());
        self
    }

    /// Returns the command, to be started in another way.
    pub fn command(self) -> Command {
        self.command
    }

    /// Runs and expects an exit code; prints both streams if it differs.
    #[track_caller]
    pub fn run(self, code: i32) -> Run {
        let run = self.run_any();
        assert_eq!(
            run.code, code,
            "exit code\n--- stdout\n{}\n--- stderr\n{}",
            run.stdout, run.stderr
        );
        run
    }

    /// Runs and returns the result, with any exit code.
    pub fn run_any(mut self) -> Run {
        self.command.stdout(Stdio::piped()).stderr(Stdio::piped());
        self.command.stdin(if self.stdin.is_some() {
            Stdio::piped()
        } else {
            Stdio::null()
        });
        let mut child = self.command.spawn().unwrap();
        let feeder = self.stdin.map(|bytes| {
            let mut pipe = child.stdin.take().unwrap();
            std::thread::spawn(move || {
                use std::io::Write as _;
                // The binary may stop reading early.
                let _ = pipe.write_all(&bytes);
            })
        });
        let out = child.wait_with_output().unwrap();
        if let Some(f) = feeder {
            f.join().unwrap();
        }
        Run {
            code: out.status.code().unwrap_or(-1),
            stdout: String::from_utf8_lossy(&out.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&out.stderr).into_owned(),
        }
    }
}

/// Returns a line with a made-up AWS access key ID, assembled here so that the sources contain no
/// key.
pub fn line_with_key() -> String {
    format!("aws_access_key_id = {}{}\n", "AKIA", "Q3EGRNDLK5V2TW7A")
}

/// Returns a line that differs from [`line_with_key`] only in the key.
pub fn line_with_another_key() -> String {
    format!("aws_access_key_id = {}{}\n", "AKIA", "V5TGWQ2LNB7RKX3D")
}

/// Creates a named pipe.
pub fn mkfifo(path: impl AsRef<std::path::Path>) {
    assert!(
        Command::new("mkfifo")
            .arg(path.as_ref())
            .status()
            .unwrap()
            .success()
    );
}
