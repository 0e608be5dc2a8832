//! Tests of receipts without real keys: a script replaces ssh-keygen, and a file with a made-up
//! signature replaces a key. `tests/third-party/receipts.test` uses real ones.

use crate::loopback::{Request, Server};
use crate::support::{Repo, Reviewer, Run, reviewer};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Signs with the content of the key's file, finds the single principal of a line, and accepts
/// every signature unless the line reserves the key for git.
const SSH_KEYGEN: &str = r#"#!/bin/sh
while [ $# -gt 0 ]; do
    case $1 in
        -Y) what=$2 ;;
        -f) file=$2 ;;
    esac
    shift 2
done
case $what in
    sign) cat >/dev/null && cat "$file" ;;
    find-principals) cut -d ' ' -f 1 "$file" ;;
    verify)
        cat >/dev/null
        if grep -q 'namespaces="git"' "$file"; then
            echo "$file:1: key is not permitted for use in signature namespace \"claude-reviewer\"" >&2
            exit 255
        fi
        ;;
esac
"#;

const REVIEW: [&str; 6] = [
    "review",
    "branch",
    "--base",
    "origin/main",
    "--gate",
    "--no-save",
];
const VERIFY: [&str; 3] = ["verify-receipt", "--base", "origin/main"];

/// A project whose base requires a model and lists the signers, a shared bare repository, and
/// clones.
pub struct Project {
    pub repo: Repo,
    pub server: Server,
}

/// Returns the public half of a made-up key, which begins with its type.
fn public(name: &str) -> Vec<u8> {
    [&b"\0\0\0\x0bssh-ed25519"[..], name.as_bytes()].concat()
}

impl Project {
    /// `signers` has the lines, with `KEY` for Alice's key and `OTHER` for one that signs nothing.
    pub fn new(signers: &[&str]) -> Self {
        let server = Server::start(|r: &Request| r.review(&[]));
        let repo = Repo::new();
        let lines: Vec<_> = signers
            .iter()
            .map(|l| {
                format!(
                    "'{}'",
                    l.replace("OTHER", &STANDARD.encode(public("carol")))
                        .replace("KEY", &STANDARD.encode(public("alice")))
                )
            })
            .collect();
        let policy = format!(
            "{}[receipt]\nsigners = [{}]\n",
            server.policy("openai"),
            lines.join(", ")
        );
        repo.stage(".claude-reviewer.toml", policy)
            .stage("a.py", "def one():\n    return 1\n");
        repo.commit("base");
        let project = Self { repo, server };
        std::fs::create_dir_all(project.place("bin")).unwrap();
        let program = project.place("bin/ssh-keygen");
        std::fs::write(&program, SSH_KEYGEN).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        for name in ["alice", "bob"] {
            let key = public(name);
            let length = u32::try_from(key.len()).unwrap().to_be_bytes();
            let text =
                STANDARD.encode([&b"SSHSIG\0\0\0\x01"[..], &length, &key, b"the rest"].concat());
            let signature =
                format!("-----BEGIN SSH SIGNATURE-----\n{text}\n-----END SSH SIGNATURE-----\n");
            std::fs::write(project.place(name), signature).unwrap();
        }
        let remote = project.place("remote.git");
        project.repo.git(&[
            "init",
            "-q",
            "--bare",
            "-b",
            "main",
            remote.to_str().unwrap(),
        ]);
        project
            .repo
            .git(&["push", "-q", remote.to_str().unwrap(), "main"]);
        project
    }

    pub fn place(&self, name: &str) -> PathBuf {
        self.repo.outside().join(name)
    }

    /// Clones the shared repository, with a branch of that name that changes a file.
    pub fn desk(&self, name: &str, file: &str, text: &str) -> PathBuf {
        let dir = self.clone(name);
        self.git(&dir, &["checkout", "-q", "-b", name]);
        std::fs::write(dir.join(file), text).unwrap();
        self.git(&dir, &["add", "-A"]);
        self.git(&dir, &["commit", "-q", "-m", "a change"]);
        self.git(&dir, &["push", "-q", "origin", name]);
        dir
    }

    fn clone(&self, name: &str) -> PathBuf {
        let (remote, dir) = (self.place("remote.git"), self.place(name));
        self.repo.git(&[
            "clone",
            "-q",
            remote.to_str().unwrap(),
            dir.to_str().unwrap(),
        ]);
        self.git(&dir, &["config", "user.name", "A U Thor"]);
        self.git(&dir, &["config", "user.email", "author@example.com"]);
        dir
    }

    #[track_caller]
    fn git(&self, dir: &Path, args: &[&str]) {
        self.repo
            .git(&[&["-C", dir.to_str().unwrap()], args].concat());
    }

    fn run(&self, dir: &Path, args: &[&str]) -> Reviewer {
        let path = std::env::var("PATH").unwrap();
        reviewer(dir, &self.repo.home(), args)
            .env("PATH", format!("{}:{path}", self.place("bin").display()))
            .env("OPENAI_API_KEY", "unused")
    }

    #[track_caller]
    pub fn sign(&self, dir: &Path, key: &str, further: &[&str], code: i32) -> Run {
        let args = [&REVIEW[..], &["--receipt"], further].concat();
        self.run(dir, &args)
            .env("CLAUDE_REVIEWER_RECEIPT_KEY", self.place(key))
            .run(code)
    }
}

/// Returns all output of a run on one line.
fn said(run: &Run) -> String {
    let words = run
        .stdout
        .split_whitespace()
        .chain(run.stderr.split_whitespace());
    words.collect::<Vec<_>>().join(" ")
}

#[test]
fn what_no_model_has_anything_to_see_of_gets_no_receipt_and_needs_none() {
    let project = Project::new(&["alice@example.com ssh-ed25519 KEY"]);
    let dir = project.desk("topic", "new.png", "\u{89}PNG\r\n\u{1a}\n\0\0\0\0");
    project.git(&dir, &["mv", "a.py", "b.py"]);
    std::fs::write(dir.join("__init__.py"), "").unwrap();
    std::fs::write(
        dir.join("package-lock.json"),
        "{\n  \"lockfileVersion\": 3\n}\n",
    )
    .unwrap();
    project.git(&dir, &["add", "-A"]);
    project.git(&dir, &["update-index", "--chmod=+x", "b.py"]);
    project.git(&dir, &["commit", "-q", "-m", "names and modes"]);

    let run = project.sign(&dir, "alice", &[], 0);
    assert!(
        run.stderr
            .contains("receipt: not needed: the change has nothing for models to review"),
        "{}",
        said(&run)
    );
    assert!(
        project
            .repo
            .try_git(&[
                "-C",
                dir.to_str().unwrap(),
                "show-ref",
                "refs/notes/claude-reviewer"
            ])
            .stdout
            .is_empty()
    );
    let run = project.run(&dir, &VERIFY).run(0);
    assert!(said(&run).contains("not needed"), "{}", said(&run));
    project
        .run(&dir, &[&REVIEW[..], &["--offline"]].concat())
        .run(0);
    assert_eq!(project.server.connections(), 0);

    // With one more line of code, a model must review.
    std::fs::write(dir.join("b.py"), "def one():\n    return 2\n").unwrap();
    project.git(&dir, &["commit", "-q", "-am", "code"]);
    project.run(&dir, &VERIFY).run(3);
    project
        .run(&dir, &[&REVIEW[..], &["--offline"]].concat())
        .run(3);
    assert_eq!(project.server.connections(), 0);
}

#[test]
fn a_receipt_that_nobody_would_take_is_not_signed() {
    let project = Project::new(&["alice@example.com ssh-ed25519 KEY"]);
    let dir = project.desk("topic", "a.py", "def one():\n    return 2\n");
    let home = project.repo.home().join(".config/claude-reviewer");
    std::fs::create_dir_all(&home).unwrap();
    let own = format!(
        "[backend.own]\nkind = \"openai\"\nbase_url = \"{}\"\nmodel = \"m\"\n",
        project.server.url()
    );
    std::fs::write(home.join("config.toml"), format!("version = 1\n{own}")).unwrap();
    // The policy requires a review by openai.
    let run = project.sign(&dir, "alice", &["--backend", "own"], 2);
    assert!(
        run.stderr
            .contains("verification would reject it: openai did not review"),
        "{}",
        said(&run)
    );
    assert!(!run.stderr.contains("signed with"), "{}", said(&run));
    project.run(&dir, &VERIFY).run(3);
}

#[test]
fn a_receipt_holds_elsewhere_and_what_decides_otherwise_is_named() {
    let project = Project::new(&["alice@example.com ssh-ed25519 KEY"]);
    let dir = project.desk("topic", "a.py", "def one():\n    return 2\n");
    let config = project
        .repo
        .home()
        .join(".config/claude-reviewer/config.toml");
    std::fs::create_dir_all(config.parent().unwrap()).unwrap();
    // Settings of the signer that the project does not use.
    std::fs::write(
        &config,
        "version = 1\n[review]\njobs = 2\n[backend.local]\nkind = \"openai\"\nmodel = \"m\"\n",
    )
    .unwrap();
    let run = project.sign(&dir, "alice", &[], 0);
    assert!(
        run.stderr.contains("receipt: signed with"),
        "{}",
        said(&run)
    );
    let asked = project.server.questions().len();

    std::fs::remove_file(&config).unwrap();
    let run = project.run(&dir, &VERIFY).run(0);
    assert!(
        said(&run).contains("receipt signed by alice@example.com"),
        "{}",
        said(&run)
    );

    std::fs::write(&config, "version = 1\n[review]\ndepth = \"thorough\"\n").unwrap();
    let run = project
        .run(&dir, &[&VERIFY[..], &["--block-on", "critical"]].concat())
        .run(3);
    assert!(
        said(&run).contains("the policy differs in [review] depth, block_on"),
        "{}",
        said(&run)
    );
    assert!(!said(&run).contains("--offline"), "{}", said(&run));
    assert!(
        said(&run).contains("openai was not asked, and no receipt covers it"),
        "{}",
        said(&run)
    );
    assert_eq!(project.server.questions().len(), asked);
}

#[test]
fn a_key_on_two_lines_counts_by_the_one_that_lets_it_sign_receipts() {
    let project = Project::new(&[
        r#"alice@example.com namespaces="git" ssh-ed25519 KEY"#,
        "somebody@example.com ssh-ed25519 OTHER",
        r#"alice-reviews@example.com namespaces="claude-reviewer" ssh-ed25519 KEY"#,
    ]);
    let dir = project.desk("topic", "a.py", "def one():\n    return 2\n");
    project.sign(&dir, "alice", &[], 0);
    let run = project.run(&dir, &VERIFY).run(0);
    assert!(
        said(&run).contains("receipt signed by alice-reviews@example.com"),
        "{}",
        said(&run)
    );

    let project = Project::new(&[
        "somebody@example.com ssh-ed25519 OTHER",
        r#"alice@example.com namespaces="git" ssh-ed25519 KEY"#,
    ]);
    let dir = project.desk("topic", "a.py", "def one():\n    return 2\n");
    project.sign(&dir, "alice", &[], 0);
    let run = project.run(&dir, &VERIFY).run(3);
    assert!(
        said(&run).contains("(signer 2: key is not permitted for use"),
        "{}",
        said(&run)
    );
    project.sign(&dir, "bob", &[], 0);
    let run = project.run(&dir, &VERIFY).run(3);
    assert!(
        said(&run).contains("not signed by a signer of the policy"),
        "{}",
        said(&run)
    );
}

#[test]
fn whoever_signs_second_can_publish_too() {
    let project = Project::new(&["alice@example.com ssh-ed25519 KEY"]);
    let change = |n: u32| format!("def one():\n    return {n}\n");
    let hints = |run: &Run| -> Vec<String> {
        run.stderr
            .lines()
            .filter_map(|l| l.strip_prefix("hint: ").map(str::to_owned))
            .collect()
    };
    let shell = |dir: &Path, line: &str| {
        let mut command = Command::new("sh");
        let path = std::env::var("PATH").unwrap();
        command
            .args(["-c", line])
            .current_dir(dir)
            .env_clear()
            .env("PATH", path)
            .env("HOME", project.repo.home());
        command.output().unwrap().status.success()
    };
    let [one, two, three] =
        [("one", 2), ("two", 3), ("three", 4)].map(|(n, i)| project.desk(n, "a.py", &change(i)));
    let run = project.sign(&one, "alice", &[], 0);
    assert!(shell(&one, &hints(&run)[0]), "{}", said(&run));

    // Another clone without the notes of the first.
    let run = project.sign(&two, "alice", &[], 0);
    assert!(!shell(&two, &hints(&run)[0]));
    let after = hints(&run)[1].split_once(": ").unwrap().1.to_owned();
    assert!(shell(&two, &after), "{after}");

    // A third clone that starts with the notes of the others; and again, when all have notes.
    for dir in [&three, &one] {
        let run = project.sign(dir, "alice", &["--fetch"], 0);
        assert!(!run.stderr.contains("note: receipt"), "{}", said(&run));
        assert!(shell(dir, &hints(&run)[0]), "{}", said(&run));
    }
    // The same tree, signed in two clones: two lines of one note.
    let again = project.clone("again");
    project.git(&again, &["checkout", "-q", "one"]);
    let run = project.sign(&again, "bob", &[], 0);
    assert!(shell(&again, &after), "{}", said(&run));

    let fresh = project.clone("fresh");
    for name in ["one", "two", "three"] {
        let head = format!("origin/{name}");
        let run = project
            .run(
                &fresh,
                &["verify-receipt", &head, "--base", "origin/main", "--fetch"],
            )
            .run(0);
        assert!(
            said(&run).contains("receipt signed by alice@example.com"),
            "{}",
            said(&run)
        );
    }
    let note = project.repo.git(&[
        "-C",
        again.to_str().unwrap(),
        "notes",
        "--ref",
        "claude-reviewer",
        "show",
        "HEAD^{tree}",
    ]);
    assert_eq!(note.lines().count(), 2, "{note}");
}

#[test]
fn a_partial_clone_that_lacks_the_notes_says_how_they_come() {
    let project = Project::new(&["alice@example.com ssh-ed25519 KEY"]);
    let remote = project.place("remote.git");
    project.git(&remote, &["config", "uploadpack.allowFilter", "true"]);
    project.git(
        &remote,
        &["config", "uploadpack.allowAnySHA1InWant", "true"],
    );
    let desk = project.desk("topic", "a.py", "def one():\n    return 2\n");
    project.sign(&desk, "alice", &[], 0);
    project.git(
        &desk,
        &["push", "-q", "origin", "refs/notes/claude-reviewer"],
    );
    let (url, dir) = (
        format!("file://{}", remote.display()),
        project.place("less"),
    );
    let clone = [
        "clone",
        "-q",
        "--filter=blob:none",
        "-b",
        "topic",
        &url,
        dir.to_str().unwrap(),
    ];
    project.repo.git(&clone);
    // Checks out the base's files, which the rules read.
    project.git(&dir, &["checkout", "-q", "origin/main"]);
    project.git(&dir, &["checkout", "-q", "topic"]);
    project.git(
        &dir,
        &[
            "fetch",
            "-q",
            "origin",
            "refs/notes/claude-reviewer:refs/notes/claude-reviewer",
        ],
    );
    let run = project.run(&dir, &VERIFY).run(3);
    assert!(
        said(&run).contains("--fetch reads them from the remote"),
        "{}",
        said(&run)
    );
    let run = project
        .run(&dir, &[&VERIFY[..], &["--fetch"]].concat())
        .run(0);
    assert!(
        said(&run).contains("receipt signed by alice@example.com"),
        "{}",
        said(&run)
    );
}
