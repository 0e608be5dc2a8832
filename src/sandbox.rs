//! Runs code that a model wrote, isolated from the machine: without network access, without the
//! user's home, and with one private folder that it can write.
//!
//! The sandbox is bubblewrap, or the container command that the operator configures. Before any
//! code runs in it, a probe checks that commands start, that the network is off, and that files
//! outside of the private folder cannot be written. Without a sandbox, such code is never run.

use crate::env::Env;
use crate::process::{End, Output, Program, find_program, run};
use crate::stop::Stop;
use crate::untrusted::Inert;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Variables for toolchains, package folders and the language. None contains a credential.
pub const TOOLCHAIN: &[&str] = &[
    "PATH",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "TZ",
    "CARGO_HOME",
    "RUSTUP_HOME",
    "RUSTUP_TOOLCHAIN",
    "GOPATH",
    "GOROOT",
    "GOMODCACHE",
    "GOFLAGS",
    "JAVA_HOME",
    "GRADLE_USER_HOME",
    "MAVEN_HOME",
    "NVM_DIR",
    "NODE_PATH",
    "PNPM_HOME",
    "PYENV_ROOT",
    "VIRTUAL_ENV",
    "CONDA_PREFIX",
    "GEM_HOME",
    "RBENV_ROOT",
    "DOTNET_ROOT",
];
/// Variables that a container program needs to find its engine.
const ENGINE: &[&str] = &[
    "PATH",
    "HOME",
    "XDG_RUNTIME_DIR",
    "DOCKER_HOST",
    "DOCKER_CONTEXT",
    "DOCKER_CONFIG",
    "CONTAINER_HOST",
];

/// System folders that bubblewrap shows: programs and libraries.
const SYSTEM: &[&str] = &[
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/opt",
    "/nix/store",
    "/gnu/store",
    "/run/current-system",
];
/// Files of `/etc` that programs need. Machine configuration can contain credentials, so the rest
/// is hidden.
const ETC: &[&str] = &[
    "/etc/alternatives",
    "/etc/group",
    "/etc/hosts",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/localtime",
    "/etc/mime.types",
    "/etc/nsswitch.conf",
    "/etc/passwd",
    "/etc/protocols",
    "/etc/services",
    "/etc/ssl/certs",
];

/// Path of the private folder in bubblewrap.
const TREE: &str = "/tree";
/// The placeholder for the private folder in a container command.
const PLACEHOLDER: &str = "{tree}";
/// Memory of all processes together, at most.
const MAX_MEMORY: u64 = 4 << 30;
/// Bytes of a file that a process writes, at most.
const MAX_FILE: u64 = 1 << 30;
/// Bytes that are kept of each output stream, at most.
const MAX_OUTPUT: usize = 1 << 20;
/// Time limit of the probe. A container engine may have to start first.
const PROBE_TIME: Duration = Duration::from_secs(60);
/// Exit codes of the probe.
const READY: i32 = 42;
const HAS_NETWORK: i32 = 43;
const WRITES_OUTSIDE: i32 = 44;
/// Exit code of timeout(1).
const TIMED_OUT: i32 = 124;

/// Searches for network routes and for a writable root folder. POSIX shell without other programs.
const PROBE: &str = r#"
lines=0
while read -r line; do lines=$((lines + 1)); done 2>/dev/null </proc/net/route
[ "$lines" -le 1 ] || exit 43
while read -r line; do case $line in *" lo") ;; *) exit 43 ;; esac; done 2>/dev/null </proc/net/ipv6_route
for folder in / /usr /etc; do
    if (: >"$folder/.claude-reviewer-probe") 2>/dev/null; then
        rm -f "$folder/.claude-reviewer-probe"
        exit 44
    fi
done
exit 42
"#;

/// Sets limits, then runs the command `$1`: `$2` KiB of data, `$3` blocks of 512 bytes in a file,
/// `$4` seconds. Skips a limit that the shell does not support. `timeout` ends a container whose
/// client was killed.
const LIMITED: &str = r#"
ulimit -c 0 2>/dev/null
ulimit -d "$2" 2>/dev/null
ulimit -f "$3" 2>/dev/null
if command -v timeout >/dev/null 2>&1; then exec timeout -k 5 "$4" sh -c "$1"; fi
exec sh -c "$1"
"#;

/// The operator's settings for the sandbox.
#[derive(Clone, Copy, Debug)]
pub struct Settings<'a> {
    /// A container program and its arguments, with `{tree}` for the private folder; empty for
    /// bubblewrap.
    pub command: &'a [String],
    /// Additional folders that bubblewrap shows read-only: absolute, below `~/`, or inside the
    /// worktree.
    pub paths: &'a [String],
    /// The reviewed worktree.
    pub top: Option<&'a Path>,
}

/// A sandbox that passed its probe.
#[derive(Debug)]
pub struct Sandbox {
    kind: SandboxKind,
    environment: Vec<(OsString, OsString)>,
}

#[derive(Debug)]
enum SandboxKind {
    Bubblewrap {
        program: PathBuf,
        /// The user's home, which is hidden even inside a shown folder.
        home: Option<PathBuf>,
        /// Folders to show in addition to those of the system, with their paths outside and inside.
        shown: Vec<(PathBuf, PathBuf)>,
    },
    Container {
        program: PathBuf,
        arguments: Vec<String>,
    },
}

/// The private folder of a run, and one for temporary files. Both are writable in the sandbox.
#[derive(Clone, Copy, Debug)]
pub struct Folders<'a> {
    pub tree: &'a Path,
    pub scratch: &'a Path,
}

impl Sandbox {
    /// Finds the sandbox and probes it in a private folder.
    ///
    /// # Errors
    /// One line: the program is missing, does not start, or does not isolate.
    pub async fn open(
        settings: &Settings<'_>,
        env: &Env,
        folders: Folders<'_>,
        stop: &Stop,
    ) -> Result<Self, String> {
        let kind = match settings.command.split_first() {
            None => {
                let program =
                    find_program("bwrap", env, settings.top).map_err(|e| e.to_string())?;
                let home = env
                    .os("HOME")
                    .map(PathBuf::from)
                    .and_then(|home| home.canonicalize().ok());
                SandboxKind::Bubblewrap {
                    program,
                    home,
                    shown: shown(settings, env)?,
                }
            }
            Some((program, arguments)) => {
                let program =
                    find_program(program, env, settings.top).map_err(|e| e.to_string())?;
                SandboxKind::Container {
                    program,
                    arguments: arguments.to_vec(),
                }
            }
        };
        let environment = match kind {
            SandboxKind::Bubblewrap { .. } => inner_environment(env),
            SandboxKind::Container { .. } => variables(ENGINE, env),
        };
        let sandbox = Self { kind, environment };
        let deadline = Instant::now() + PROBE_TIME;
        let output = sandbox
            .start(&["-c".into(), PROBE.into()], folders, deadline, stop)
            .await;
        let output = output.map_err(|e| format!("{} does not start: {e}", sandbox.name()))?;
        match output.end {
            End::Exit(READY) => Ok(sandbox),
            End::Exit(HAS_NETWORK) => {
                Err(format!("{} does not turn off the network", sandbox.name()))
            }
            End::Exit(WRITES_OUTSIDE) => {
                Err(format!("{} has writable system folders", sandbox.name()))
            }
            end => {
                let said = String::from_utf8_lossy(&output.stderr);
                let said = Inert::new(said.lines().next().unwrap_or_default());
                Err(format!(
                    "{} does not start a command ({}): {said}",
                    sandbox.name(),
                    described(end)
                ))
            }
        }
    }

    /// Finds and probes the configured sandbox, for callers outside of a runtime. Returns the name
    /// of its program.
    ///
    /// # Errors
    /// Same as [`Self::open`], or the folder for the probe cannot be created.
    pub fn check(settings: &Settings<'_>, env: &Env) -> Result<String, String> {
        // The caller's thread may belong to a runtime.
        let opened = std::thread::scope(|s| s.spawn(|| Self::probe(settings, env)).join());
        let opened = opened.unwrap_or_else(|_| Err(io::Error::other("a thread panicked")));
        opened
            .map_err(|e| e.to_string())?
            .map(|sandbox| sandbox.name())
    }

    /// Opens the sandbox in a folder of its own, with a runtime of its own.
    fn probe(settings: &Settings<'_>, env: &Env) -> io::Result<Result<Self, String>> {
        let (tree, scratch) = (tempfile::tempdir()?, tempfile::tempdir()?);
        let folders = Folders {
            tree: tree.path(),
            scratch: scratch.path(),
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        Ok(runtime.block_on(Self::open(settings, env, folders, &Stop::default())))
    }

    /// Returns the name of the program.
    pub fn name(&self) -> String {
        let (SandboxKind::Bubblewrap { program, .. } | SandboxKind::Container { program, .. }) =
            &self.kind;
        program
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned()
    }

    /// Runs a shell command in the private folder, at most until the deadline.
    ///
    /// # Errors
    /// The sandbox does not start.
    pub async fn run(
        &self,
        command: &str,
        folders: Folders<'_>,
        deadline: Instant,
        stop: &Stop,
    ) -> io::Result<Output> {
        let seconds = deadline
            .saturating_duration_since(Instant::now())
            .as_secs()
            .max(1);
        let limits =
            [MAX_MEMORY >> 10, MAX_FILE >> 9, seconds].map(|n| OsString::from(n.to_string()));
        let mut words: Vec<OsString> = ["-c", LIMITED, "sh", command].map(OsString::from).to_vec();
        words.extend(limits);
        let mut output = self.start(&words, folders, deadline, stop).await?;
        // The inner limit has whole seconds, so it can be reached first.
        if output.end == End::Exit(TIMED_OUT) && Instant::now() + Duration::from_secs(2) > deadline
        {
            output.end = End::TimedOut;
        }
        Ok(output)
    }

    /// Runs `sh` with these arguments in the sandbox.
    async fn start(
        &self,
        words: &[OsString],
        folders: Folders<'_>,
        deadline: Instant,
        stop: &Stop,
    ) -> io::Result<Output> {
        let (path, mut args) = match &self.kind {
            SandboxKind::Bubblewrap {
                program,
                home,
                shown,
            } => (program, bubblewrap(home.as_deref(), shown, folders)?),
            SandboxKind::Container { program, arguments } => {
                (program, container(arguments, folders.tree))
            }
        };
        args.push("sh".into());
        args.extend(words.iter().cloned());
        let program = Program {
            path,
            args: &args,
            env: &self.environment,
            dir: folders.tree,
            stdin: b"",
            deadline,
            max_stdout: MAX_OUTPUT,
            max_stderr: MAX_OUTPUT,
            max_memory: Some(MAX_MEMORY),
        };
        run(&program, stop).await
    }
}

/// Describes the end of the probe.
fn described(end: End) -> String {
    match end {
        End::Exit(code) => format!("exit code {code}"),
        End::Signal(signal) => format!("ended by signal {signal}"),
        End::TimedOut => format!("not within {} seconds", PROBE_TIME.as_secs()),
        End::OutOfMemory => "out of memory".to_owned(),
        End::Stopped(_) | End::TooMuch | End::Ended => "stopped".to_owned(),
    }
}

/// Resolves the folders that the operator wants to show.
fn shown(settings: &Settings<'_>, env: &Env) -> Result<Vec<(PathBuf, PathBuf)>, String> {
    let home = env.os("HOME").map(PathBuf::from);
    let mut all = Vec::new();
    for path in settings.paths {
        let below_home = path
            .strip_prefix("~/")
            .and_then(|rest| home.as_ref().map(|home| home.join(rest)));
        let absolute = below_home.or_else(|| Some(PathBuf::from(path)).filter(|p| p.is_absolute()));
        match (absolute, settings.top) {
            (Some(place), _) => all.push((place.clone(), place)),
            (None, Some(top)) => {
                // The change could put a link there that leads out of the repository.
                let Ok(place) = top.join(path).canonicalize() else {
                    continue;
                };
                if !top.canonicalize().is_ok_and(|top| place.starts_with(top)) {
                    return Err(format!(
                        "{path} of sandbox_paths leads out of the repository"
                    ));
                }
                all.push((place, Path::new(TREE).join(path)));
            }
            (None, None) => {}
        }
    }
    Ok(all)
}

/// Returns the variables of the environment that are set.
fn variables(names: &[&str], env: &Env) -> Vec<(OsString, OsString)> {
    names
        .iter()
        .filter_map(|name| Some((OsString::from(name), env.os(name)?.clone())))
        .collect()
}

/// Returns the environment inside of bubblewrap, where the home is a folder for temporary files.
fn inner_environment(env: &Env) -> Vec<(OsString, OsString)> {
    let mut all = variables(TOOLCHAIN, env);
    all.extend(
        [
            ("HOME", "/tmp"),
            ("TMPDIR", "/tmp"),
            ("XDG_CACHE_HOME", "/tmp/.cache"),
        ]
        .map(|(n, v)| (n.into(), v.into())),
    );
    all
}

/// Returns the arguments of bubblewrap up to the command; see bwrap(1).
///
/// # Errors
/// The folder for shared memory cannot be created.
fn bubblewrap(
    home: Option<&Path>,
    shown: &[(PathBuf, PathBuf)],
    folders: Folders<'_>,
) -> io::Result<Vec<OsString>> {
    let shared_memory = folders.scratch.join("shm");
    std::fs::create_dir_all(&shared_memory)?;
    let mut args: Vec<OsString> = Vec::new();
    let mut add = |words: &[&dyn AsRef<std::ffi::OsStr>]| {
        args.extend(words.iter().map(|w| w.as_ref().to_owned()));
    };
    add(&[
        &"--unshare-all",
        &"--die-with-parent",
        &"--new-session",
        &"--cap-drop",
        &"ALL",
    ]);
    for folder in SYSTEM
        .iter()
        .chain(ETC)
        .map(PathBuf::from)
        .chain(java_settings())
    {
        add(&[&"--ro-bind-try", &folder, &folder]);
    }
    if let Some(home) = home.filter(|home| SYSTEM.iter().any(|folder| home.starts_with(folder))) {
        add(&[&"--tmpfs", &home]);
    }
    add(&[&"--proc", &"/proc", &"--dev", &"/dev"]);
    add(&[
        &"--bind",
        &shared_memory,
        &"/dev/shm",
        &"--remount-ro",
        &"/dev",
    ]);
    add(&[
        &"--bind",
        &folders.scratch,
        &"/tmp",
        &"--bind",
        &folders.tree,
        &TREE,
    ]);
    for (place, at) in shown {
        add(&[&"--ro-bind-try", place, at]);
    }
    add(&[&"--remount-ro", &"/", &"--chdir", &TREE, &"--"]);
    Ok(args)
}

/// Returns the configuration folders of Java runtimes, whose names contain the version.
fn java_settings() -> Vec<PathBuf> {
    let entries = std::fs::read_dir("/etc")
        .into_iter()
        .flatten()
        .flatten()
        .map(|e| e.path());
    let java = entries.filter(|path| {
        path.file_name()
            .is_some_and(|name| name.to_string_lossy().starts_with("java-"))
    });
    let mut all: Vec<PathBuf> = java.collect();
    all.sort();
    all
}

/// Returns the arguments of a container program with the path of the private folder.
fn container(arguments: &[String], tree: &Path) -> Vec<OsString> {
    let tree = tree.to_string_lossy();
    arguments
        .iter()
        .map(|a| a.replace(PLACEHOLDER, &tree).into())
        .collect()
}

#[cfg(test)]
mod tests;
