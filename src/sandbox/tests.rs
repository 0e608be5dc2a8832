//! The container command is a shell script here, so that no program is needed. `tests/third-party`
//! tests bubblewrap itself.

use super::*;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use tempfile::TempDir;

/// A container program that simulates its isolation by the exit code of the probe.
struct Fake {
    dir: TempDir,
    command: Vec<String>,
}

impl Fake {
    fn new(probe: i32) -> Self {
        let dir = TempDir::new().unwrap();
        let program = dir.path().join("container");
        let script = format!(
            "#!/bin/sh\n# $1: the tree, then sh -c SCRIPT …\ncase $4 in\n*route*) echo probed >&2; exit {probe} ;;\nesac\n\
             cd \"$1\" && shift && exec \"$@\"\n"
        );
        fs::write(&program, script).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        for folder in ["tree", "scratch"] {
            fs::create_dir(dir.path().join(folder)).unwrap();
        }
        let command = vec![program.to_str().unwrap().to_owned(), PLACEHOLDER.to_owned()];
        Self { dir, command }
    }

    /// Opens the sandbox and runs a command in it.
    fn run(&self, command: &str, time: Duration) -> Result<Output, String> {
        let (tree, scratch) = (
            self.dir.path().join("tree"),
            self.dir.path().join("scratch"),
        );
        let folders = Folders {
            tree: &tree,
            scratch: &scratch,
        };
        let env = Env::from_pairs(
            tree.clone(),
            [("PATH", "/usr/bin:/bin"), ("ANTHROPIC_API_KEY", "fake-key")],
        );
        let settings = Settings {
            command: &self.command,
            paths: &[],
            top: None,
        };
        let stop = Stop::default();
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap()
            .block_on(async {
                let sandbox = Sandbox::open(&settings, &env, folders, &stop).await?;
                sandbox
                    .run(command, folders, Instant::now() + time, &stop)
                    .await
                    .map_err(|e| e.to_string())
            })
    }
}

const LONG: Duration = Duration::from_secs(60);

#[test]
fn a_command_runs_in_the_private_folder_without_credentials() {
    let fake = Fake::new(READY);
    let output = fake.run("echo text > made; env; exit 7", LONG).unwrap();
    assert_eq!(output.end, End::Exit(7));
    assert!(!String::from_utf8_lossy(&output.stdout).contains("fake-key"));
    assert_eq!(
        fs::read_to_string(fake.dir.path().join("tree/made")).unwrap(),
        "text\n"
    );
}

#[test]
fn without_isolation_nothing_runs() {
    let cases = [
        (HAS_NETWORK, "container does not turn off the network"),
        (WRITES_OUTSIDE, "container has writable system folders"),
        (
            0,
            "container does not start a command (exit code 0): probed",
        ),
        (
            125,
            "container does not start a command (exit code 125): probed",
        ),
    ];
    for (code, expected) in cases {
        let fake = Fake::new(code);
        assert_eq!(fake.run("touch made", LONG).unwrap_err(), expected);
        assert!(!fake.dir.path().join("tree/made").exists(), "{code}");
    }
}

#[test]
fn a_sandbox_that_is_not_there_is_named() {
    let mut fake = Fake::new(READY);
    fake.command[0] = "no-such-container-program".to_owned();
    assert_eq!(
        fake.run("true", LONG).unwrap_err(),
        "no-such-container-program not found on PATH"
    );
}

#[test]
fn a_command_ends_at_its_deadline_or_with_too_large_a_file() {
    let fake = Fake::new(READY);
    let late = fake.run("sleep 30", Duration::from_secs(1)).unwrap().end;
    // The sandbox's `timeout` and our own deadline fire at about the same time.
    assert!(matches!(late, End::TimedOut | End::Exit(124)), "{late:?}");
    let written = fake.run("ulimit -f", LONG).unwrap().stdout;
    assert_eq!(
        String::from_utf8_lossy(&written).trim(),
        (MAX_FILE >> 9).to_string()
    );
}

#[test]
fn the_probe_is_posix_shell_that_ends_with_an_answer() {
    // On the machine itself, outside of a sandbox: the result must be one of the probe's exit
    // codes.
    let dir = TempDir::new().unwrap();
    let program = Program {
        path: Path::new("/bin/sh"),
        args: &["-c".into(), PROBE.into()],
        env: &[("PATH".into(), "/usr/bin:/bin".into())],
        dir: dir.path(),
        stdin: b"",
        deadline: Instant::now() + LONG,
        max_stdout: 1000,
        max_stderr: 1000,
        max_memory: None,
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let end = runtime
        .block_on(run(&program, &Stop::default()))
        .unwrap()
        .end;
    assert!(
        [READY, HAS_NETWORK, WRITES_OUTSIDE]
            .map(End::Exit)
            .contains(&end),
        "{end:?}"
    );
}

#[test]
fn bubblewrap_shows_the_system_the_private_folders_and_what_the_operator_names() {
    let dir = TempDir::new().unwrap();
    let top = dir.path().join("repo");
    fs::create_dir_all(top.join("node_modules")).unwrap();
    let paths = ["node_modules", "~/.cargo", "/srv/tools", "absent"].map(str::to_owned);
    let env = Env::from_pairs(top.clone(), [("HOME", "/home/ada")]);
    let settings = Settings {
        command: &[],
        paths: &paths,
        top: Some(&top),
    };
    let shown = shown(&settings, &env).unwrap();
    let real = top.canonicalize().unwrap().join("node_modules");
    let expected = [
        (real, PathBuf::from("/tree/node_modules")),
        (
            PathBuf::from("/home/ada/.cargo"),
            PathBuf::from("/home/ada/.cargo"),
        ),
        (PathBuf::from("/srv/tools"), PathBuf::from("/srv/tools")),
    ];
    assert_eq!(shown, expected);
    let folders = Folders {
        tree: dir.path(),
        scratch: dir.path(),
    };
    let args = bubblewrap(Some(Path::new("/opt/home/ada")), &shown, folders).unwrap();
    let args: Vec<&str> = args.iter().map(|a| a.to_str().unwrap()).collect();
    let text = args.join(" ");
    for part in [
        "--unshare-all",
        "--ro-bind-try /usr /usr",
        "--tmpfs /opt/home/ada",
        "--ro-bind-try /srv/tools /srv/tools",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let writable: Vec<&str> = args
        .windows(3)
        .filter(|w| w[0] == "--bind")
        .map(|w| w[2])
        .collect();
    assert_eq!(writable, ["/dev/shm", "/tmp", "/tree"]);
    assert!(text.ends_with("--remount-ro / --chdir /tree --"), "{text}");
}

#[test]
fn a_link_out_of_the_repository_is_not_shown() {
    let dir = TempDir::new().unwrap();
    let top = dir.path().join("repo");
    fs::create_dir_all(&top).unwrap();
    std::os::unix::fs::symlink("/etc", top.join("node_modules")).unwrap();
    let paths = ["node_modules".to_owned()];
    let settings = Settings {
        command: &[],
        paths: &paths,
        top: Some(&top),
    };
    let error = shown(&settings, &Env::default()).unwrap_err();
    assert_eq!(
        error,
        "node_modules of sandbox_paths leads out of the repository"
    );
}
