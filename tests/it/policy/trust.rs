//! Tests of trust: which operator-only values of a project's file apply, and for whom.

use super::{FILE, notes, policy, shown, user_policy};
use crate::support::Repo;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::PathBuf;

#[test]
fn cfg_06_a_project_file_cannot_choose_an_endpoint() {
    let repo = Repo::new();
    repo.stage("a.txt", "a\n");
    repo.write(FILE, "[review]\nbackends = ['far']\n[backend.far]\nkind = 'openai'\nbase_url = 'https://far.example/v1'\napi_key_env = 'AWS_SECRET_ACCESS_KEY'\n");
    let json = shown(&repo, &[]);
    assert_eq!(json["backend"]["far"]["base_url"], serde_json::Value::Null);
    assert_eq!(
        json["backend"]["far"]["api_key_env"],
        serde_json::Value::Null
    );
    let report = repo.review_json(&["staged"], 3);
    assert!(
        notes(&report)
            .contains("\\\"backend.far.base_url\\\" in .claude-reviewer.toml:5 is operator only"),
        "{report:#}"
    );
    // The key must never be sent over plain http.
    repo.write(
        FILE,
        "[backend.openai]\nbase_url = 'http://far.example/v1'\n",
    );
    let run = repo.review(&["staged"], 2);
    assert!(
        run.stderr.contains(
            "\"backend.openai.base_url\" in .claude-reviewer.toml:2 must be an https URL: plain http sends code and keys"
        ),
        "{}",
        run.stderr
    );
    // An address of this machine is accepted.
    repo.write(
        FILE,
        "[backend.local]\nkind = 'openai'\nbase_url = 'http://127.0.0.1:9/v1'\n",
    );
    assert_eq!(
        shown(&repo, &[])["backend"]["local"]["base_url"],
        "http://127.0.0.1:9/v1"
    );
}

#[test]
fn cfg_07_a_project_file_runs_and_writes_nothing() {
    let repo = Repo::new();
    repo.stage("a.txt", "a\n");
    let canary = repo.home().join("canary");
    let touch = format!("touch {}", canary.display());
    repo.write(FILE, format!("[tests]\ncommand = '{touch}'\nrun = true\n[history]\npath = 'stolen'\n[backend.claude]\npath = '/bin/false'\n"));
    let report = repo.review_json(&["staged"], 0);
    for key in [
        "tests.command",
        "tests.run",
        "history.path",
        "backend.claude.path",
    ] {
        assert!(
            notes(&report).contains(&format!("\\\"{key}\\\" in {FILE}")),
            "{key}: {report:#}"
        );
    }
    assert!(!canary.exists());
    assert!(!repo.path().join("stolen").exists());
    for path in ["../../x", "a/../../x", ".git/hooks"] {
        repo.write(FILE, format!("[history]\npath = '{path}'\n"));
        let run = repo.review(&["staged"], 2);
        assert!(
            run.stderr.contains(
                "\"history.path\" in .claude-reviewer.toml:2 must be a path inside the repository"
            ),
            "{}",
            run.stderr
        );
    }
}

#[test]
fn trust_is_for_this_content_in_this_repository_and_this_user() {
    let repo = Repo::new();
    let text = "[tests]\ncommand = 'make test'\n";
    repo.write(FILE, text);
    let command = |repo: &Repo| shown(repo, &[])["tests"]["command"].clone();
    assert!(command(&repo).is_null());
    let run = policy(&repo, &["trust"], 0);
    assert!(
        run.stdout.contains("tests.command = \"make test\""),
        "{}",
        run.stdout
    );
    assert_eq!(command(&repo), "make test");

    // From a subfolder, and through a link to the worktree, it is the same worktree.
    std::fs::create_dir(repo.path().join("sub")).unwrap();
    let run = repo
        .reviewer(&["policy", "show"])
        .dir(repo.path().join("sub"))
        .run(0);
    assert!(run.stdout.contains("make test"), "{}", run.stdout);

    // One more byte ends the trust; the old content is still trusted.
    repo.write(FILE, format!("{text}#"));
    assert!(command(&repo).is_null());
    repo.write(FILE, text);
    assert_eq!(command(&repo), "make test");

    // Another repository with the same content is not trusted, and neither is another user.
    let other = Repo::new();
    other.write(FILE, text);
    let run = other
        .reviewer(&["policy", "show"])
        .env("HOME", repo.home())
        .run(0);
    assert!(!run.stdout.contains("make test"), "{}", run.stdout);
    assert!(
        run.stderr.contains("note: \"tests.command\""),
        "{}",
        run.stderr
    );
    let run = repo
        .reviewer(&["policy", "show"])
        .env("HOME", other.home())
        .run(0);
    assert!(!run.stdout.contains("make test"), "{}", run.stdout);

    assert!(
        policy(&repo, &["trust", "--list"], 0)
            .stdout
            .contains(repo.path().to_str().unwrap())
    );
    policy(&repo, &["trust", "--remove"], 0);
    assert!(command(&repo).is_null());
    assert_eq!(
        policy(&repo, &["trust", "--list"], 0).stdout,
        "no trusted policy files\n"
    );
    assert_eq!(
        policy(&repo, &["trust", "--remove"], 0).stdout,
        "no trust to remove in this repository\n"
    );
    repo.write(FILE, "block_on = []\n");
    assert!(
        policy(&repo, &["trust"], 0)
            .stdout
            .starts_with("no value in ")
    );
    repo.write(FILE, "unknown = 1\n");
    policy(&repo, &["trust"], 2);
}

#[test]
fn trust_is_stored_for_the_user_alone() {
    let repo = Repo::new();
    repo.write(FILE, "[tests]\ncommand = 'make test'\n");
    policy(&repo, &["trust"], 0);
    let dir = repo.home().join(".config/claude-reviewer/trusted");
    let mode = |p: &PathBuf| std::fs::symlink_metadata(p).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&dir), 0o700);
    let files: Vec<PathBuf> = std::fs::read_dir(&dir)
        .unwrap()
        .map(|e| e.unwrap().path())
        .collect();
    assert_eq!(files.len(), 1);
    assert_eq!(mode(&files[0]), 0o600);
    // A file that cannot be stored completely is not stored at all.
    std::fs::remove_dir_all(&dir).unwrap();
    std::fs::write(&dir, "a file in the way").unwrap();
    let run = policy(&repo, &["trust"], 2);
    assert!(
        run.stderr.contains("cannot store trust in"),
        "{}",
        run.stderr
    );
    assert!(shown(&repo, &[])["tests"]["command"].is_null());
}

#[test]
fn a_persons_own_file_is_trusted_and_may_be_a_link() {
    let repo = Repo::new();
    user_policy(&repo, "[tests]\ncommand = 'mine'\n");
    assert_eq!(shown(&repo, &[])["tests"]["command"], "mine");
    let config = repo.home().join(".config/claude-reviewer/config.toml");
    std::fs::rename(&config, repo.home().join("dotfile.toml")).unwrap();
    symlink(repo.home().join("dotfile.toml"), &config).unwrap();
    assert_eq!(shown(&repo, &[])["tests"]["command"], "mine");
    std::fs::remove_file(&config).unwrap();
    symlink("/dev/zero", &config).unwrap();
    let run = policy(&repo, &["show"], 2);
    assert!(
        run.stderr.contains("config.toml is not a regular file"),
        "{}",
        run.stderr
    );
}
