//! Tests of fetching from real remotes: over files, and over ssh that a script simulates.

use crate::support::{Repo, until};
use claude_reviewer::env::Env;
use claude_reviewer::error::Result;
use claude_reviewer::git::{self, Fetched};
use claude_reviewer::request::{Credential, Fetch};
use claude_reviewer::stop::{Signal, Stop};
use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// A remote with a history of `n` commits on `main`, and a branch `topic` of two commits that
/// starts at the commit with that number.
pub struct Remote {
    pub repo: Repo,
    pub topic: String,
    pub fork: String,
}

pub fn remote(n: usize, fork: usize) -> Remote {
    let repo = Repo::new();
    repo.git(&["config", "uploadpack.allowFilter", "true"]);
    import(&repo, &line("main", "main.txt", n, None));
    let id = |rev: &str| repo.git(&["rev-parse", rev]).trim().to_owned();
    let fork = id(&format!("main~{}", n - fork));
    import(&repo, &line("topic", "topic.txt", 2, Some(&fork)));
    repo.git(&["reset", "-q", "--hard"]);
    let topic = id("topic");
    Remote { repo, topic, fork }
}

/// Returns commits on a branch for `git fast-import`, each with another version of one file: one
/// process for all.
fn line(branch: &str, file: &str, commits: usize, from: Option<&str>) -> String {
    let mut out = String::new();
    for i in 1..=commits {
        let message = format!("{branch} {i}");
        let who = format!("A U Thor <author@example.com> {} +0000", 1_700_000_000 + i);
        out += &format!(
            "commit refs/heads/{branch}\ncommitter {who}\ndata {}\n{message}\n",
            message.len()
        );
        if let (1, Some(from)) = (i, from) {
            out += &format!("from {from}\n");
        }
        out += &format!(
            "M 100644 inline {file}\ndata {}\n{message}\n",
            message.len()
        );
    }
    out
}

fn import(repo: &Repo, stream: &str) {
    use std::io::Write as _;
    let mut git = repo.git_command();
    let mut git = git
        .args(["fast-import", "--quiet"])
        .stdin(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    git.stdin
        .take()
        .unwrap()
        .write_all(stream.as_bytes())
        .unwrap();
    assert!(git.wait().unwrap().success());
}

/// A clone of the remote, with its environment.
pub struct Clone {
    pub dir: tempfile::TempDir,
    env: Vec<(String, String)>,
}

impl Clone {
    pub fn of(remote: &Remote, args: &[&str]) -> Self {
        let dir = crate::support::temp_dir();
        std::fs::create_dir(dir.path().join("home")).unwrap();
        let url = format!("file://{}", remote.repo.path().display());
        let to = dir.path().join("clone").display().to_string();
        remote
            .repo
            .git(&[&["clone", "-q", "--no-tags"], args, &[&url, &to]].concat());
        let env = vec![
            ("PATH".to_owned(), std::env::var("PATH").unwrap()),
            (
                "HOME".to_owned(),
                dir.path().join("home").display().to_string(),
            ),
            ("GIT_CONFIG_NOSYSTEM".to_owned(), "1".to_owned()),
        ];
        Self { dir, env }
    }

    pub fn path(&self) -> PathBuf {
        self.dir.path().join("clone")
    }

    pub fn set(&mut self, key: &str, value: impl Into<String>) {
        self.env.retain(|(k, _)| k != key);
        self.env.push((key.to_owned(), value.into()));
    }

    pub fn git(&self, args: &[&str]) -> String {
        let mut c = std::process::Command::new(crate::support::git_program());
        c.env_clear()
            .envs(self.env.iter().map(|(k, v)| (k, v)))
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

    pub fn try_fetch(&self, fetch: &Fetch, stop: &Stop) -> Result<Fetched> {
        let env = Env::from_pairs(self.path(), self.env.clone());
        git::Repo::open(&self.path(), &env)?.fetch(&self.path(), &env, fetch, stop)
    }

    pub fn fetch(&self, remote: &str, tips: &[&str]) -> Result<Fetched> {
        self.try_fetch(&wanted(remote, tips), &Stop::default())
    }

    /// Returns all files of the clone except its objects.
    fn state(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut out = BTreeMap::new();
        let mut folders = vec![self.path()];
        while let Some(dir) = folders.pop() {
            for entry in std::fs::read_dir(dir).unwrap().flatten() {
                let path = entry.path();
                match entry.file_type().unwrap().is_dir() {
                    true if path.ends_with(".git/objects") => {}
                    true => {
                        out.insert(path.clone(), Vec::new());
                        folders.push(path);
                    }
                    false => drop(out.insert(path.clone(), std::fs::read(&path).unwrap())),
                }
            }
        }
        out
    }
}

pub fn wanted(remote: &str, tips: &[&str]) -> Fetch {
    Fetch {
        remote: remote.to_owned(),
        tips: tips.iter().map(|t| (*t).to_owned()).collect(),
        credential: None,
    }
}

pub fn script(path: &Path, text: &str) {
    std::fs::write(path, text).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn a_fetch_adds_objects_and_nothing_else() {
    let remote = remote(5, 3);
    let clone = Clone::of(&remote, &["--single-branch"]);
    let before = clone.state();
    let fetched = clone
        .fetch("origin", &["refs/heads/topic", &remote.fork])
        .unwrap();
    assert_eq!(
        fetched
            .ids()
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>(),
        [&*remote.topic, &*remote.fork]
    );
    let repo = fetched.open().unwrap();
    let base = repo
        .merge_base(fetched.ids()[0], repo.head().unwrap().unwrap())
        .unwrap()
        .unwrap();
    assert_eq!(base.to_string(), remote.fork);
    fetched.remove().unwrap();
    assert_eq!(before, clone.state());
    assert_eq!(clone.git(&["cat-file", "-t", &remote.topic]), "commit");
}

#[test]
fn a_shallow_clone_stays_as_shallow_as_it_was() {
    let remote = remote(300, 100);
    let clone = Clone::of(&remote, &["--depth=1", "--single-branch"]);
    let before = clone.state();
    let mut fetched = clone.fetch("origin", &["refs/heads/topic"]).unwrap();
    let (topic, head) = (
        fetched.ids()[0],
        fetched.open().unwrap().head().unwrap().unwrap(),
    );
    assert!(!fetched.open().unwrap().is_connected(topic, head).unwrap());
    let base = fetched.connect(topic, head).unwrap().unwrap();
    assert_eq!(base.to_string(), remote.fork);
    let repo = fetched.open().unwrap();
    assert_eq!(
        repo.branch(Some(&topic.to_string()), Some(&head.to_string()))
            .unwrap()
            .commits
            .len(),
        2
    );
    drop(fetched);
    assert_eq!(before, clone.state());
    assert_eq!(clone.git(&["rev-list", "--count", "HEAD"]), "1");
    clone.git(&["fsck", "--no-dangling"]);
    clone.git(&["gc", "-q"]);
}

#[test]
fn more_history_is_fetched_where_it_could_move_the_merge_base() {
    // main: 1 - 2 - … - 100, from which `late` branches off; `main` merges it again. Cut off at 64
    // commits, the first-parent chain alone would make an older commit the merge base.
    let server = Repo::new();
    import(&server, &line("main", "a", 100, None));
    import(&server, &line("side", "s", 80, Some("refs/heads/main^0")));
    import(&server, &line("topic", "t", 1, Some("refs/heads/side^0")));
    let tip_of_side = server.git(&["rev-parse", "side"]).trim().to_owned();
    server.git(&["reset", "-q", "--hard"]);
    server.git(&["merge", "-q", "--no-ff", "-m", "merge", &tip_of_side]);
    import(
        &server,
        &line("main", "after", 70, Some("refs/heads/main^0")),
    );
    let remote = Remote {
        repo: server,
        topic: String::new(),
        fork: String::new(),
    };
    let clone = Clone::of(&remote, &["--depth=1"]);
    let mut fetched = clone
        .fetch("origin", &["refs/heads/topic", "refs/heads/main"])
        .unwrap();
    let [topic, main] = fetched.ids() else {
        panic!("two tips")
    };
    let (topic, main) = (*topic, *main);
    assert_eq!(
        fetched.connect(topic, main).unwrap().unwrap().to_string(),
        tip_of_side
    );
}

#[test]
fn what_the_remote_does_not_have_is_told_apart_from_what_went_wrong() {
    let remote = remote(2, 1);
    let clone = Clone::of(&remote, &["--single-branch"]);
    let e = clone.fetch("origin", &["refs/heads/nope"]).unwrap_err();
    assert!(
        e.message.contains("refs/heads/nope") && e.message.contains("origin"),
        "{e:?}"
    );
    let mut fetched = clone.fetch("origin", &["refs/heads/topic"]).unwrap();
    assert_eq!(fetched.also(&"12".repeat(20)).unwrap(), None);
    assert_eq!(fetched.also("refs/heads/nope").unwrap(), None);
    assert_eq!(
        fetched.also("refs/heads/main").unwrap(),
        fetched.open().unwrap().head().unwrap()
    );
    drop(fetched);
    std::fs::remove_dir_all(remote.repo.path()).unwrap();
    assert!(
        clone
            .fetch("origin", &["refs/heads/topic"])
            .unwrap_err()
            .message
            .contains("cannot fetch")
    );
}

#[test]
fn only_full_names_ids_and_plain_addresses_are_fetched() {
    let remote = remote(1, 1);
    let clone = Clone::of(&remote, &[]);
    let marker = clone.dir.path().join("ran");
    let ext = format!("ext::touch {}", marker.display());
    for tip in [
        "topic",
        "--upload-pack=x",
        "+refs/heads/a:refs/heads/b",
        "refs/heads/*",
        "-x",
        "",
        "00",
    ] {
        assert!(clone.fetch("origin", &[tip]).is_err(), "{tip}");
    }
    for from in [
        &*ext,
        "--upload-pack=touch x",
        "nope",
        "git://127.0.0.1/x",
        "-x/y",
    ] {
        let e = clone.fetch(from, &["refs/heads/topic"]).unwrap_err();
        assert_eq!(e.kind, claude_reviewer::error::Kind::Usage, "{from}: {e:?}");
    }
    clone.git(&["config", "remote.origin.url", &ext]);
    clone.git(&["config", "protocol.ext.allow", "always"]);
    assert!(clone.fetch("origin", &["refs/heads/topic"]).is_err());
    assert!(!marker.exists());
}

#[test]
fn git_14_a_fetch_runs_nothing_that_the_repository_configures() {
    let remote = remote(3, 1);
    let mut clone = Clone::of(&remote, &["--single-branch"]);
    let marker = clone.dir.path().join("ran");
    let evil = clone.path().join(".git/evil");
    script(
        &evil,
        &format!(
            "#!/bin/sh\necho \"$0 $*\" >> {}\nexit 1\n",
            marker.display()
        ),
    );
    let evil = evil.display().to_string();
    for hook in [
        "reference-transaction",
        "post-merge",
        "post-checkout",
        "pre-auto-gc",
        "fsmonitor-watchman",
    ] {
        std::fs::copy(&evil, clone.path().join(".git/hooks").join(hook)).unwrap();
    }
    let url = clone.git(&["config", "remote.origin.url"]);
    for (key, value) in [
        ("core.sshCommand", evil.clone()),
        ("core.gitProxy", evil.clone()),
        ("core.askPass", evil.clone()),
        ("core.fsmonitor", evil.clone()),
        ("core.alternateRefsCommand", evil.clone()),
        (
            "core.hooksPath",
            clone.path().join(".git/hooks").display().to_string(),
        ),
        ("core.pager", evil.clone()),
        ("credential.helper", format!("!{evil}")),
        ("remote.origin.uploadpack", evil.clone()),
        ("remote.origin.vcs", "ext".to_owned()),
        ("remote.claude-reviewer.uploadpack", evil.clone()),
        ("remote.claude-reviewer.url", format!("ext::{evil}")),
        ("url.ext::sh -c evil% .insteadOf", url),
        ("uploadpack.packObjectsHook", evil.clone()),
        ("protocol.ext.allow", "always".to_owned()),
        ("protocol.allow", "always".to_owned()),
        ("http.proxy", "http://127.0.0.1:1".to_owned()),
        ("gc.auto", "1".to_owned()),
        ("fetch.recurseSubmodules", "true".to_owned()),
        ("transfer.fsckObjects", "true".to_owned()),
        ("fetch.fsck.skipList", evil.clone()),
    ] {
        clone.git(&["config", key, &value]);
    }
    // A program in the repository that would be found by its name.
    let path = format!(
        "{}:.:{}",
        clone.path().display(),
        std::env::var("PATH").unwrap()
    );
    for name in ["git", "ssh", "git-remote-https", "git-upload-pack"] {
        std::fs::copy(&evil, clone.path().join(name)).unwrap();
    }
    clone.set("PATH", path);
    let before = clone.state();
    let fetched = clone.fetch("origin", &["refs/heads/topic"]).unwrap();
    assert_eq!(fetched.ids()[0].to_string(), remote.topic);
    drop(fetched);
    // Remotes that need a password or ssh: git does not prompt, and ends.
    for from in ["ssh://127.0.0.1:1/x", "https://127.0.0.1:1/x"] {
        assert!(clone.fetch(from, &["refs/heads/topic"]).is_err());
    }
    assert_eq!(before, clone.state());
    let ran = std::fs::read_to_string(&marker).unwrap_or_default();
    assert!(ran.is_empty(), "{ran}");
}

#[test]
fn ssh_is_the_operators_and_asks_nothing() {
    let remote = remote(2, 1);
    let mut clone = Clone::of(&remote, &["--single-branch"]);
    let (bin, seen) = (clone.dir.path().join("bin"), clone.dir.path().join("seen"));
    std::fs::create_dir(&bin).unwrap();
    // Simulates the ssh of a server: runs the last argument.
    let text = format!(
        "#!/bin/sh\necho \"$0 $*\" >> {}\nfor last; do :; done\neval \"$last\"\n",
        seen.display()
    );
    script(&bin.join("ssh"), &text);
    script(&bin.join("other"), &text);
    clone.set(
        "PATH",
        format!("{}:{}", bin.display(), std::env::var("PATH").unwrap()),
    );
    clone.git(&["config", "core.sshCommand", "false"]);
    clone.git(&[
        "remote",
        "set-url",
        "origin",
        &format!("me@host.invalid:{}", remote.repo.path().display()),
    ]);
    let fetched = clone.fetch("origin", &["refs/heads/topic"]).unwrap();
    assert_eq!(fetched.ids()[0].to_string(), remote.topic);
    let said = std::fs::read_to_string(&seen).unwrap();
    assert!(
        said.contains("-oBatchMode=yes") && said.contains("me@host.invalid"),
        "{said}"
    );
    clone.set("GIT_SSH_COMMAND", bin.join("other").display().to_string());
    drop(clone.fetch("origin", &["refs/heads/main"]).unwrap());
    assert!(
        std::fs::read_to_string(&seen).unwrap().contains("other"),
        "the operator's command was not run"
    );
}

#[test]
fn a_stopped_fetch_ends_at_once_and_leaves_nothing() {
    let remote = remote(1, 1);
    let mut clone = Clone::of(&remote, &[]);
    let bin = clone.dir.path().join("bin");
    std::fs::create_dir(&bin).unwrap();
    let connects = clone.dir.path().join("connects");
    script(
        &bin.join("ssh"),
        &format!("#!/bin/sh\n: >'{}'\nsleep 600\n", connects.display()),
    );
    clone.set(
        "PATH",
        format!("{}:{}", bin.display(), std::env::var("PATH").unwrap()),
    );
    let before = clone.state();
    let stop = Stop::default();
    let teller = stop.clone();
    let teller = std::thread::spawn(move || {
        until("the transport is started", || connects.exists());
        teller.now(Signal::Interrupt);
    });
    let start = Instant::now();
    let e = clone
        .try_fetch(
            &wanted("ssh://host.invalid/x", &["refs/heads/topic"]),
            &stop,
        )
        .unwrap_err();
    teller.join().unwrap();
    assert!(e.message.contains("interrupted"), "{e:?}");
    // The claim: it does not wait for the transport, which sleeps for ten minutes.
    assert!(start.elapsed() < Duration::from_secs(20));
    assert_eq!(before, clone.state());
}

#[test]
fn git_18_a_partial_clone_gets_the_objects_that_it_is_asked_for() {
    let remote = remote(3, 2);
    let clone = Clone::of(&remote, &["--filter=blob:none", "--no-checkout"]);
    let blob = remote
        .repo
        .git(&["rev-parse", "main:main.txt"])
        .trim()
        .to_owned();
    let mut fetched = clone.fetch("origin", &["refs/heads/topic"]).unwrap();
    let id = claude_reviewer::diff::ObjectId::from_hex(&blob).unwrap();
    assert!(!fetched.open().unwrap().has(id));
    fetched.objects(&[id]).unwrap();
    assert!(fetched.open().unwrap().has(id));
    drop(fetched);
    clone.git(&["fsck"]);
}

#[test]
fn sha_256_and_linked_worktrees_are_fetched_into() {
    let server = Repo::init(&["--object-format=sha256"]);
    server.stage("a", "1\n").commit("one");
    server.git(&["branch", "topic"]);
    let remote = Remote {
        repo: server,
        topic: String::new(),
        fork: String::new(),
    };
    let clone = Clone::of(&remote, &["--single-branch"]);
    let linked = clone.dir.path().join("linked");
    clone.git(&["worktree", "add", "-q", &linked.display().to_string()]);
    let env = Env::from_pairs(linked.clone(), clone.env);
    let repo = git::Repo::open(&linked, &env).unwrap();
    let fetched = repo
        .fetch(
            &linked,
            &env,
            &wanted("origin", &["refs/heads/topic"]),
            &Stop::default(),
        )
        .unwrap();
    assert_eq!(fetched.ids()[0].to_string().len(), 64);
}

#[test]
fn a_credential_is_refused_where_it_could_be_more_than_a_line() {
    let remote = remote(1, 1);
    let clone = Clone::of(&remote, &[]);
    let mut fetch = wanted("origin", &["refs/heads/topic"]);
    fetch.credential = Some(Credential {
        url: "https://h.example/".to_owned(),
        header: "A: b\nC: d".to_owned().into(),
    });
    assert!(
        clone
            .try_fetch(&fetch, &Stop::default())
            .unwrap_err()
            .message
            .contains("control characters")
    );
}
