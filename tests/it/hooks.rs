//! Tests of hooks in real repositories: installed by the binary, run by git.

use crate::support::{Repo, binary, reviewer};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Returns a file with an AWS key pair in its real format, generated so that the sources do not
/// contain it.
fn aws_key() -> String {
    let pick = |alphabet: &[u8], count: usize, mut state: u64| -> String {
        let mut next = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            alphabet[(state >> 33) as usize % alphabet.len()] as char
        };
        (0..count).map(|_| next()).collect()
    };
    let id = pick(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", 16, 7);
    let secret = pick(
        b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/",
        40,
        11,
    );
    format!("[default]\naws_access_key_id = AKIA{id}\naws_secret_access_key = {secret}\n")
}

const CLEAN: &str = "region = eu-central-1\n";

/// Creates a repository with one commit and both hooks.
fn hooked() -> Repo {
    let repo = Repo::new();
    repo.stage("README.md", "# A project\n").commit("first");
    repo.reviewer(&["install-hooks"]).run(0);
    repo
}

fn text(out: &Output) -> String {
    format!(
        "{}{}",
        String::from_utf8_lossy(&out.stdout),
        String::from_utf8_lossy(&out.stderr)
    )
}

#[track_caller]
fn stops(repo: &Repo, args: &[&str]) -> String {
    let head = || {
        repo.try_git(&["rev-parse", "-q", "--verify", "HEAD"])
            .stdout
    };
    let before = head();
    let out = repo.try_git(args);
    assert!(
        !out.status.success(),
        "git {args:?} went through:\n{}",
        text(&out)
    );
    assert_eq!(head(), before, "git {args:?} made a commit");
    text(&out)
}

#[track_caller]
fn passes(repo: &Repo, args: &[&str]) -> String {
    let out = repo.try_git(args);
    assert!(
        out.status.success(),
        "git {args:?} was stopped:\n{}",
        text(&out)
    );
    text(&out)
}

fn executable(path: &Path, content: impl AsRef<[u8]>) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

fn hook_path(repo: &Repo, hook: &str) -> PathBuf {
    repo.path().join(".git/hooks").join(hook)
}

#[test]
fn a_staged_aws_key_is_stopped_however_it_is_committed() {
    let repo = hooked();
    repo.stage("app.ini", CLEAN);
    passes(&repo, &["commit", "-q", "-m", "a clean file"]);

    repo.stage("app.ini", aws_key());
    let said = stops(&repo, &["commit", "-q", "-m", "plain"]);
    assert!(
        said.contains("app.ini") && said.contains("exit=1"),
        "{said}"
    );
    repo.git(&["reset", "-q"]);
    stops(&repo, &["commit", "-q", "-a", "-m", "all"]);
    stops(&repo, &["commit", "-q", "-m", "by path", "--", "app.ini"]);
    stops(
        &repo,
        &["commit", "-q", "-m", "added by path", "-i", "app.ini"],
    );
    let patch = repo.try_git(&["diff", "--quiet"]);
    assert_eq!(patch.status.code(), Some(1), "the worktree keeps the edit");

    repo.write("app.ini", "region = us-east-1\n");
    passes(&repo, &["commit", "-q", "-a", "-m", "without the key"]);
}

#[test]
fn a_partial_commit_is_judged_by_what_it_takes() {
    let repo = hooked();
    repo.stage("good.ini", CLEAN)
        .stage("bad.ini", CLEAN)
        .commit("both");
    repo.write("good.ini", "region = us-east-1\n")
        .stage("bad.ini", aws_key());
    passes(
        &repo,
        &["commit", "-q", "-m", "only the good one", "--", "good.ini"],
    );
    stops(&repo, &["commit", "-q", "-m", "the bad one"]);
}

#[test]
fn what_is_staged_decides_and_not_the_worktree() {
    let repo = hooked();
    repo.stage("app.ini", aws_key()).write("app.ini", CLEAN);
    stops(&repo, &["commit", "-q", "-m", "the key is staged"]);
    repo.stage("app.ini", CLEAN).write("app.ini", aws_key());
    passes(&repo, &["commit", "-q", "-m", "the key is not staged"]);
}

#[test]
fn the_first_commit_of_a_repository_is_reviewed_too() {
    let repo = Repo::new();
    repo.reviewer(&["install-hooks", "--pre-commit"]).run(0);
    repo.stage("app.ini", aws_key());
    let out = repo.try_git(&["commit", "-q", "-m", "root"]);
    assert!(!out.status.success(), "{}", text(&out));
    repo.stage("app.ini", CLEAN);
    passes(&repo, &["commit", "-q", "-m", "root"]);
}

#[test]
fn hok_01_an_existing_hook_runs_first_and_comes_back_byte_for_byte() {
    let repo = Repo::new();
    repo.stage("README.md", "# A project\n").commit("first");
    let hook = hook_path(&repo, "pre-commit");
    let theirs = b"#!/bin/sh\necho theirs: $# \"$1\"\nexit ${THEIRS:-0}\n# \xff\xfe no text\n";
    executable(&hook, theirs);
    fs::set_permissions(&hook, fs::Permissions::from_mode(0o750)).unwrap();

    let run = repo.reviewer(&["install-hooks", "--pre-commit"]).run(0);
    assert!(
        run.stdout
            .contains("runs first, kept as .git/hooks/pre-commit.chained"),
        "{}",
        run.stdout
    );
    assert!(
        run.stdout.contains("CLAUDE_REVIEWER_SKIP=1"),
        "{}",
        run.stdout
    );
    repo.stage("app.ini", aws_key());
    let said = stops(&repo, &["commit", "-q", "-m", "x"]);
    assert!(
        said.contains("theirs: 0") && said.contains("exit=1"),
        "{said}"
    );

    repo.stage("app.ini", CLEAN);
    let out = repo
        .git_command()
        .args(["commit", "-q", "-m", "x"])
        .env("THEIRS", "7")
        .output()
        .unwrap();
    assert!(
        !out.status.success() && !text(&out).contains("exit="),
        "{}",
        text(&out)
    );
    passes(&repo, &["commit", "-q", "-m", "x"]);

    repo.reviewer(&["install-hooks", "--uninstall"]).run(0);
    assert_eq!(fs::read(&hook).unwrap(), theirs);
    assert_eq!(
        fs::metadata(&hook).unwrap().permissions().mode() & 0o7777,
        0o750
    );
    let left: Vec<_> = fs::read_dir(hook.parent().unwrap())
        .unwrap()
        .map(|e| e.unwrap().file_name())
        .filter(|n| !n.to_string_lossy().ends_with(".sample"))
        .collect();
    assert_eq!(left, ["pre-commit"]);
}

#[test]
fn hok_01_what_an_existing_hook_stages_is_reviewed() {
    let repo = Repo::new();
    repo.stage("app.ini", CLEAN).commit("first");
    repo.write("generated.ini", aws_key());
    executable(
        &hook_path(&repo, "pre-commit"),
        "#!/bin/sh\ngit add generated.ini\n",
    );
    repo.reviewer(&["install-hooks"]).run(0);
    repo.stage("app.ini", "region = us-east-1\n");
    assert!(stops(&repo, &["commit", "-q", "-m", "x"]).contains("generated.ini"));
}

#[test]
fn hok_01_a_hook_that_git_would_not_run_is_not_run_by_the_shim() {
    let repo = Repo::new();
    let hook = hook_path(&repo, "pre-commit");
    fs::create_dir_all(hook.parent().unwrap()).unwrap();
    fs::write(&hook, "#!/bin/sh\nexit 9\n").unwrap();
    fs::set_permissions(&hook, fs::Permissions::from_mode(0o644)).unwrap();
    repo.reviewer(&["install-hooks"]).run(0);
    repo.stage("app.ini", CLEAN);
    passes(&repo, &["commit", "-q", "-m", "x"]);
    repo.reviewer(&["install-hooks", "--uninstall"]).run(0);
    assert_eq!(
        fs::metadata(&hook).unwrap().permissions().mode() & 0o777,
        0o644
    );
}

#[test]
fn hok_01_the_hooks_path_of_the_repository_is_honoured() {
    let repo = Repo::new();
    repo.git(&["config", "core.hooksPath", "tools/hooks"]);
    let run = repo
        .reviewer(&["install-hooks"])
        .dir(repo.write("deep/er/x", "").path().join("deep/er"))
        .run(0);
    assert!(
        run.stdout.contains("installed tools/hooks/pre-commit\n"),
        "{}",
        run.stdout
    );
    assert!(!hook_path(&repo, "pre-commit").exists());
    // The folder may be committed, so the shim has no path of this machine: it finds the program
    // through PATH.
    let shim = fs::read_to_string(repo.path().join("tools/hooks/pre-commit")).unwrap();
    assert!(!shim.contains(binary()), "{shim}");
    repo.stage("app.ini", aws_key());
    let path = std::env::join_paths(
        std::env::split_paths(&std::env::var_os("PATH").unwrap())
            .chain([Path::new(binary()).parent().unwrap().to_owned()]),
    )
    .unwrap();
    let out = repo
        .git_command()
        .args(["commit", "-q", "-m", "x"])
        .env("PATH", path)
        .output()
        .unwrap();
    assert!(
        !out.status.success() && text(&out).contains("exit=1"),
        "{}",
        text(&out)
    );
}

#[test]
fn hok_01_a_global_hooks_path_is_refused_with_advice() {
    let repo = Repo::new();
    let shared = repo.home().join("hooks");
    repo.git(&[
        "config",
        "--global",
        "core.hooksPath",
        shared.to_str().unwrap(),
    ]);
    let run = repo.reviewer(&["install-hooks"]).run(2);
    assert!(
        run.stderr.contains("error: core.hooksPath is "),
        "{}",
        run.stderr
    );
    assert!(
        run.stderr
            .contains("hint: use separate hooks for this repository: git config --local"),
        "{}",
        run.stderr
    );
    assert!(!shared.exists() && !hook_path(&repo, "pre-commit").exists());

    let advice = run
        .stderr
        .lines()
        .find_map(|l| l.split_once("for this repository: "))
        .unwrap()
        .1;
    let out = Command::new("sh")
        .args(["-c", advice])
        .current_dir(repo.path())
        .output()
        .unwrap();
    assert!(out.status.success(), "{}", text(&out));
    repo.reviewer(&["install-hooks"]).run(0);
    repo.stage("app.ini", aws_key());
    stops(&repo, &["commit", "-q", "-m", "x"]);
}

#[test]
fn hok_01_a_hooks_path_outside_the_repository_is_refused() {
    let repo = Repo::new();
    fs::create_dir(repo.outside()).unwrap();
    repo.git(&["config", "core.hooksPath", repo.outside().to_str().unwrap()]);
    let run = repo.reviewer(&["install-hooks"]).run(2);
    assert!(
        run.stderr.contains("is outside of this repository"),
        "{}",
        run.stderr
    );
    assert_eq!(fs::read_dir(repo.outside()).unwrap().count(), 0);
}

#[test]
fn hok_01_a_hooks_folder_that_is_a_link_to_elsewhere_is_refused() {
    let repo = Repo::new();
    fs::create_dir(repo.outside()).unwrap();
    fs::remove_dir_all(repo.path().join(".git/hooks")).unwrap();
    std::os::unix::fs::symlink(repo.outside(), repo.path().join(".git/hooks")).unwrap();
    let run = repo.reviewer(&["install-hooks"]).run(2);
    assert!(
        run.stderr.contains("is outside of this repository"),
        "{}",
        run.stderr
    );
    assert_eq!(fs::read_dir(repo.outside()).unwrap().count(), 0);
}

#[test]
fn hok_01_a_linked_worktree_shares_the_hooks_of_its_repository() {
    let repo = Repo::new();
    repo.stage("README.md", "# A project\n").commit("first");
    let linked = repo.outside();
    repo.git(&["worktree", "add", "-q", linked.to_str().unwrap()]);
    reviewer(&linked, &repo.home(), &["install-hooks"]).run(0);
    assert!(hook_path(&repo, "pre-commit").exists());
    fs::write(linked.join("app.ini"), aws_key()).unwrap();
    let in_linked = |args: &[&str]| {
        repo.git_command()
            .current_dir(&linked)
            .args(args)
            .output()
            .unwrap()
    };
    in_linked(&["add", "app.ini"]);
    let out = in_linked(&["commit", "-q", "-m", "x"]);
    assert!(
        !out.status.success() && text(&out).contains("app.ini"),
        "{}",
        text(&out)
    );
    fs::write(linked.join("app.ini"), CLEAN).unwrap();
    let out = in_linked(&["commit", "-q", "-a", "-m", "x"]);
    assert!(out.status.success(), "{}", text(&out));
}

#[test]
fn hok_01_the_advice_for_a_toml_file_of_lefthook_fits_below_its_tables() {
    let repo = Repo::new();
    let own = "[pre-commit]\nparallel = true\n\n[pre-push.commands.own]\nrun = \"true\"\n";
    repo.write("lefthook.toml", own);
    let run = repo.reviewer(&["install-hooks"]).run(2);
    let commands: Vec<&str> = run
        .stderr
        .lines()
        .filter_map(|l| l.strip_prefix("hint: let lefthook run it: "))
        .collect();
    assert_eq!(commands.len(), 2, "{}", run.stderr);
    for command in commands {
        let status = std::process::Command::new("sh")
            .args(["-c", command])
            .current_dir(repo.path())
            .status()
            .unwrap();
        assert!(status.success(), "{command}");
    }
    let text = fs::read_to_string(repo.path().join("lefthook.toml")).unwrap();
    let parsed: toml::Table = text.parse().unwrap_or_else(|e| panic!("{e}: {text}"));
    let commit = &parsed["pre-commit"]["commands"]["claude-reviewer"];
    assert_eq!(
        commit["run"].as_str(),
        Some("claude-reviewer review --hook pre-commit")
    );
    let push = &parsed["pre-push"]["commands"]["claude-reviewer"];
    assert_eq!(
        push["run"].as_str(),
        Some("claude-reviewer review --hook pre-push --hook-args {1} {2}")
    );
    assert_eq!(push["use_stdin"].as_bool(), Some(true));
    assert_eq!(
        parsed["pre-push"]["commands"]["own"]["run"].as_str(),
        Some("true")
    );
}

#[test]
fn hok_01_husky_and_lefthook_are_left_alone_with_advice() {
    let repo = Repo::new();
    repo.write(".husky/_/h", "generated")
        .write(".husky/_/pre-commit", "generated");
    repo.git(&["config", "core.hooksPath", ".husky/_"]);
    let run = repo.reviewer(&["install-hooks"]).run(2);
    for line in [
        "--hook pre-commit' >> .husky/pre-commit",
        "--hook-args \"$@\"' >> .husky/pre-push",
    ] {
        assert!(run.stderr.contains(line), "{line}: {}", run.stderr);
    }
    assert_eq!(
        fs::read_to_string(repo.path().join(".husky/_/pre-commit")).unwrap(),
        "generated"
    );

    let repo = Repo::new();
    repo.write("lefthook.yml", "pre-commit: {}\n");
    let run = repo.reviewer(&["install-hooks", "--pre-push"]).run(2);
    assert!(
        run.stderr
            .contains("in lefthook.yml, below pre-push, commands, add: claude-reviewer:"),
        "{}",
        run.stderr
    );
    assert!(!hook_path(&repo, "pre-push").exists());
}

#[test]
fn hok_01_outside_a_repository_and_in_a_bare_one_nothing_is_installed() {
    let repo = Repo::new();
    reviewer(&repo.home(), &repo.home(), &["install-hooks"]).run(2);
    repo.git(&["init", "-q", "--bare", repo.outside().to_str().unwrap()]);
    reviewer(&repo.outside(), &repo.home(), &["install-hooks"]).run(2);
    assert!(!repo.outside().join("hooks/pre-commit").exists());
}

#[test]
fn hok_07_a_submodule_has_hooks_of_its_own() {
    let other = Repo::new();
    other.stage("app.ini", CLEAN).commit("first");
    let repo = Repo::new();
    let url = other.path();
    repo.git(&[
        "-c",
        "protocol.file.allow=always",
        "submodule",
        "--quiet",
        "add",
        url.to_str().unwrap(),
        "inner",
    ]);
    repo.commit("with a submodule");
    let inner = repo.path().join("inner");
    reviewer(&inner, &repo.home(), &["install-hooks"]).run(0);
    assert!(
        repo.path()
            .join(".git/modules/inner/hooks/pre-commit")
            .is_file()
    );
    assert!(!hook_path(&repo, "pre-commit").exists());
    fs::write(inner.join("app.ini"), aws_key()).unwrap();
    let commit = || {
        repo.git_command()
            .args(["-C", "inner", "commit", "-q", "-a", "-m", "x"])
            .output()
            .unwrap()
    };
    let out = commit();
    assert!(
        !out.status.success() && text(&out).contains("files=1/1"),
        "{}",
        text(&out)
    );
    fs::write(inner.join("app.ini"), "region = us-east-1\n").unwrap();
    assert!(commit().status.success());
}

#[test]
fn policy_says_what_each_hook_demands() {
    let repo = hooked();
    repo.git(&["init", "-q", "--bare", repo.outside().to_str().unwrap()]);
    repo.git(&["remote", "add", "origin", repo.outside().to_str().unwrap()]);
    repo.stage(
        ".claude-reviewer.toml",
        "version = 1\n[review]\nbackends = [\"claude\"]\n",
    );
    passes(
        &repo,
        &["commit", "-q", "-m", "the rules are enough for a commit"],
    );
    let said = stops(&repo, &["push", "-q", "origin", "main"]);
    assert!(said.contains("exit=3"), "a push wants the backend: {said}");

    repo.stage(
        ".claude-reviewer.toml",
        "version = 1\n[hooks]\npre_commit = \"off\"\npre_push = \"rules\"\n",
    );
    repo.stage("app.ini", aws_key());
    let said = passes(&repo, &["commit", "-q", "-m", "not asked"]);
    assert!(said.contains("nothing was reviewed"), "{said}");
    assert!(stops(&repo, &["push", "-q", "origin", "main"]).contains("app.ini"));
}

/// Starts a run and waits until it is working.
fn started(command: &mut Command) -> Child {
    let child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()
        .unwrap();
    std::thread::sleep(Duration::from_millis(60));
    child
}

fn signal(name: &str, target: &str) {
    assert!(
        Command::new("kill")
            .args([&format!("-{name}"), "--", target])
            .status()
            .unwrap()
            .success()
    );
}

#[track_caller]
fn ended(child: Child) -> Output {
    let start = Instant::now();
    let out = child.wait_with_output().unwrap();
    assert!(
        start.elapsed() < Duration::from_secs(2),
        "took {:?} to end",
        start.elapsed()
    );
    out
}

/// Creates a staged change whose review takes seconds in a debug build.
fn busy() -> Repo {
    let repo = hooked();
    let line = "let total = items.iter().map(|i| i.price * i.count).sum::<u64>(); // running total of the order\n";
    for i in 0..8 {
        repo.write(&format!("src/part{i}.rs"), line.repeat(60_000));
    }
    repo.git(&["add", "."]);
    repo
}

fn leftovers(repo: &Repo) -> Vec<String> {
    let list = |dir: PathBuf| {
        fs::read_dir(dir)
            .unwrap()
            .map(|e| e.unwrap().file_name().into_string().unwrap())
    };
    let all = list(repo.path().join(".git")).chain(list(repo.path()));
    all.filter(|n| n.ends_with(".lock") || n.contains("claude-reviewer"))
        .collect()
}

#[test]
fn hok_03_a_signal_ends_a_review_at_once_and_leaves_nothing() {
    let repo = busy();
    let index = fs::read(repo.path().join(".git/index")).unwrap();
    for (name, number) in [("TERM", 15), ("HUP", 1), ("INT", 2)] {
        let child = started(
            Command::new(binary())
                .args(["review", "staged"])
                .current_dir(repo.path()),
        );
        signal(name, &child.id().to_string());
        let out = ended(child);
        let code = out.status.code();
        assert!(
            out.status.signal() == Some(number) || code == Some(128 + number),
            "{name}: {:?}",
            out.status
        );
        assert_eq!(leftovers(&repo), [""; 0]);
    }
    assert_eq!(fs::read(repo.path().join(".git/index")).unwrap(), index);
}

#[test]
fn hok_03_ctrl_c_twice_during_a_commit_leaves_no_commit_and_no_lock() {
    let repo = busy();
    let head = repo.git(&["rev-parse", "HEAD"]);
    let child = started(repo.git_command().args(["commit", "-q", "-m", "x"]));
    let group = format!("-{}", child.id());
    signal("INT", &group);
    // The second signal may find no process.
    let _ = Command::new("kill")
        .args(["-INT", "--", &group])
        .stderr(Stdio::null())
        .status();
    let out = ended(child);
    assert!(!out.status.success());
    assert_eq!(repo.git(&["rev-parse", "HEAD"]), head);
    assert_eq!(leftovers(&repo), [""; 0]);
    repo.git(&["reset", "-q"]);
    repo.stage("app.ini", CLEAN);
    passes(&repo, &["commit", "-q", "-m", "x"]);
}

#[test]
fn hok_03_a_stopped_review_goes_on() {
    let repo = hooked();
    repo.stage("app.ini", aws_key());
    repo.write(
        "big.rs",
        "let total = items.iter().sum::<u64>();\n".repeat(60_000),
    );
    repo.git(&["add", "."]);
    let child = started(
        Command::new(binary())
            .args(["review", "staged"])
            .current_dir(repo.path()),
    );
    let pid = child.id().to_string();
    signal("STOP", &pid);
    std::thread::sleep(Duration::from_millis(100));
    signal("CONT", &pid);
    assert_eq!(child.wait_with_output().unwrap().status.code(), Some(1));
}

#[test]
fn hok_04_works_without_terminal_input_and_path() {
    let repo = hooked();
    let git = std::env::split_paths(&std::env::var_os("PATH").unwrap())
        .find(|d| d.join("git").is_file())
        .unwrap();
    let path = std::env::join_paths([git, "/usr/bin".into(), "/bin".into()]).unwrap();
    let commit = || {
        let mut c = Command::new("/bin/sh");
        c.args(["-c", "exec setsid -w git commit -q -m x <&- 2>&1"])
            .current_dir(repo.path())
            .env_clear()
            .envs(
                repo.git_command()
                    .get_envs()
                    .filter_map(|(k, v)| Some((k, v?))),
            )
            .env("PATH", &path)
            .stdin(Stdio::null());
        c.output().unwrap()
    };
    repo.stage("app.ini", aws_key());
    let out = commit();
    assert!(
        !out.status.success() && text(&out).contains("exit=1"),
        "{}",
        text(&out)
    );
    repo.stage("app.ini", CLEAN);
    let out = commit();
    assert!(out.status.success(), "{}", text(&out));
}

#[test]
fn hok_05_amend_and_fixup_are_judged_by_what_they_add() {
    let repo = hooked();
    repo.stage("old.ini", aws_key())
        .commit("a key from before the hook");
    repo.stage("new.ini", CLEAN);
    passes(&repo, &["commit", "-q", "--amend", "--no-edit"]);
    repo.stage("new.ini", aws_key());
    stops(&repo, &["commit", "-q", "--amend", "--no-edit"]);
    stops(&repo, &["commit", "-q", "--fixup", "HEAD"]);
    repo.stage("new.ini", CLEAN).git(&["rm", "-q", "old.ini"]);
    passes(&repo, &["commit", "-q", "--amend", "--no-edit"]);
}

#[test]
fn hok_05_a_merge_is_judged_by_its_resolution() {
    let repo = hooked();
    repo.stage("app.ini", "a = 1\n").commit("base");
    repo.git(&["checkout", "-q", "-b", "side"]);
    repo.stage("app.ini", "a = 2\n")
        .stage("side.ini", CLEAN)
        .commit("side");
    repo.git(&["checkout", "-q", "main"]);
    repo.stage("app.ini", "a = 3\n").commit("main");
    assert!(!repo.try_git(&["merge", "-q", "side"]).status.success());
    let said = stops(&repo, &["commit", "-q", "-a", "-m", "with markers"]);
    assert!(said.contains("app.ini"), "{said}");
    repo.git(&["reset", "-q", "--merge"]);
    assert!(!repo.try_git(&["merge", "-q", "side"]).status.success());
    repo.stage("app.ini", aws_key());
    stops(&repo, &["commit", "-q", "-m", "a key in the resolution"]);
    repo.stage("app.ini", "a = 4\n");
    passes(&repo, &["commit", "-q", "-m", "resolved"]);
    assert_eq!(
        repo.git(&["rev-list", "--parents", "-1", "HEAD"])
            .split_whitespace()
            .count(),
        3
    );
}

#[test]
fn hok_05_rebase_and_cherry_pick_go_through() {
    let repo = hooked();
    repo.git(&["checkout", "-q", "-b", "topic"]);
    repo.stage("one.ini", CLEAN);
    passes(&repo, &["commit", "-q", "-m", "one"]);
    repo.stage("two.ini", CLEAN);
    passes(&repo, &["commit", "-q", "-m", "two"]);
    repo.stage("one.ini", "region = us-east-1\n");
    passes(&repo, &["commit", "-q", "--fixup", "HEAD~1"]);
    let rebase = |todo: &str| {
        let mut c = repo.git_command();
        c.args([
            "rebase",
            "-q",
            "-i",
            "--autosquash",
            "--force-rebase",
            "main",
        ])
        .env("GIT_SEQUENCE_EDITOR", todo)
        .env("GIT_EDITOR", "true")
        .output()
        .unwrap()
    };
    let out = rebase("sed -i '2s/^pick/reword/'");
    assert!(out.status.success(), "{}", text(&out));
    let out = rebase("sed -i '1s/^pick/edit/'");
    assert!(out.status.success(), "{}", text(&out));
    repo.stage("one.ini", aws_key());
    stops(&repo, &["commit", "-q", "--amend", "--no-edit"]);
    repo.stage("one.ini", "region = us-west-2\n");
    passes(&repo, &["commit", "-q", "--amend", "--no-edit"]);
    passes(&repo, &["rebase", "--continue"]);
    repo.git(&["checkout", "-q", "main"]);
    passes(&repo, &["cherry-pick", "topic~1"]);
    passes(&repo, &["cherry-pick", "--no-commit", "topic"]);
    passes(&repo, &["commit", "-q", "-m", "picked"]);
}

#[test]
fn hok_05_both_ways_around_the_review_work_and_one_says_so() {
    let repo = Repo::new();
    repo.stage("README.md", "# A project\n").commit("first");
    executable(
        &hook_path(&repo, "pre-commit"),
        "#!/bin/sh\necho theirs ran\n",
    );
    repo.reviewer(&["install-hooks"]).run(0);
    repo.stage("app.ini", aws_key());
    let skip = |value: &str| {
        repo.git_command()
            .args(["commit", "-q", "-m", "x"])
            .env("CLAUDE_REVIEWER_SKIP", value)
            .output()
            .unwrap()
    };
    assert!(!skip("0").status.success());
    let out = skip("1");
    let said = text(&out);
    assert!(out.status.success(), "{said}");
    assert!(
        said.contains("theirs ran") && said.contains("CLAUDE_REVIEWER_SKIP"),
        "{said}"
    );
    repo.stage("more.ini", aws_key());
    passes(&repo, &["commit", "-q", "--no-verify", "-m", "x"]);
    let help = repo.reviewer(&["install-hooks", "--help"]).run(0).stdout;
    assert!(
        help.contains("CLAUDE_REVIEWER_SKIP=1") && help.contains("--no-verify"),
        "{help}"
    );
}

/// A hooked repository with an empty remote.
fn with_remote() -> Repo {
    let repo = hooked();
    repo.git(&["init", "-q", "--bare", repo.outside().to_str().unwrap()]);
    repo.git(&["remote", "add", "origin", repo.outside().to_str().unwrap()]);
    passes(&repo, &["push", "-q", "origin", "main"]);
    repo
}

fn remote_refs(repo: &Repo) -> String {
    repo.git(&["ls-remote", "origin"])
}

#[test]
fn hok_06_a_new_branch_is_stopped_even_where_a_later_commit_removes_the_key() {
    let repo = with_remote();
    repo.git(&["checkout", "-q", "-b", "topic"]);
    repo.stage("app.ini", aws_key()).commit("in");
    let added = repo.git(&["rev-parse", "--short=7", "HEAD"]);
    repo.stage("app.ini", CLEAN).commit("out");
    let said = stops(&repo, &["push", "-q", "origin", "topic"]);
    assert!(
        said.contains("app.ini") && said.contains(added.trim()),
        "{said}"
    );
    assert!(!remote_refs(&repo).contains("topic"));
}

#[test]
fn hok_06_a_clean_branch_passes_and_what_the_remote_has_is_not_asked_again() {
    let repo = Repo::new();
    repo.stage("old.ini", aws_key())
        .commit("a key from before the hook");
    repo.git(&["init", "-q", "--bare", repo.outside().to_str().unwrap()]);
    repo.git(&["remote", "add", "origin", repo.outside().to_str().unwrap()]);
    repo.git(&["push", "-q", "origin", "main"]);
    repo.reviewer(&["install-hooks", "--pre-push"]).run(0);
    repo.stage("new.ini", CLEAN).commit("clean");
    passes(&repo, &["push", "-q", "origin", "main"]);
    passes(&repo, &["push", "-q", "origin", "main:refs/heads/other"]);
    assert!(passes(&repo, &["push", "origin", "main"]).contains("up-to-date"));
}

#[test]
fn hok_06_a_second_remote_has_nothing_of_the_first() {
    let repo = Repo::new();
    repo.stage("old.ini", aws_key())
        .commit("for the first remote only");
    for name in ["first", "second"] {
        let path = repo.home().join(name);
        repo.git(&["init", "-q", "--bare", path.to_str().unwrap()]);
        repo.git(&["remote", "add", name, path.to_str().unwrap()]);
    }
    repo.git(&["push", "-q", "first", "main"]);
    repo.reviewer(&["install-hooks", "--pre-push"]).run(0);
    assert!(stops(&repo, &["push", "-q", "second", "main"]).contains("old.ini"));
}

#[test]
fn hok_06_a_deletion_passes() {
    let repo = with_remote();
    repo.git(&[
        "push",
        "-q",
        "--no-verify",
        "origin",
        "main:refs/heads/gone",
    ]);
    passes(&repo, &["push", "-q", "origin", ":gone"]);
    assert!(!remote_refs(&repo).contains("gone"));
}

#[test]
fn hok_06_tags_are_followed_to_their_commits() {
    let repo = with_remote();
    repo.git(&["checkout", "-q", "--detach"]);
    repo.stage("app.ini", aws_key()).commit("tagged only");
    repo.git(&["tag", "light"]);
    repo.git(&["tag", "-a", "-m", "heavy", "heavy"]);
    for tag in ["light", "heavy"] {
        assert!(
            stops(&repo, &["push", "-q", "origin", tag]).contains("app.ini"),
            "{tag}"
        );
    }
    repo.git(&["tag", "clean", "main"]);
    passes(&repo, &["push", "-q", "origin", "clean"]);
}

#[test]
fn hok_06_a_forced_push_is_judged_from_where_the_histories_part() {
    let repo = with_remote();
    repo.stage("one.ini", CLEAN).commit("one");
    passes(&repo, &["push", "-q", "origin", "main"]);
    repo.git(&["reset", "-q", "--hard", "HEAD~1"]);
    repo.stage("two.ini", CLEAN).commit("two");
    passes(&repo, &["push", "-q", "--force", "origin", "main"]);
    repo.git(&["reset", "-q", "--hard", "HEAD~1"]);
    repo.stage("three.ini", aws_key()).commit("three");
    assert!(stops(&repo, &["push", "-q", "--force", "origin", "main"]).contains("three.ini"));
}

#[test]
fn hok_06_one_bad_reference_among_several_stops_them_all() {
    let repo = with_remote();
    repo.stage("good.ini", CLEAN).commit("good");
    repo.git(&["checkout", "-q", "-b", "bad"]);
    repo.stage("bad.ini", aws_key()).commit("bad");
    repo.git(&[
        "push",
        "-q",
        "--no-verify",
        "origin",
        "main~1:refs/heads/gone",
    ]);
    let before = remote_refs(&repo);
    assert!(stops(&repo, &["push", "-q", "origin", "main", "bad", ":gone"]).contains("bad.ini"));
    assert_eq!(remote_refs(&repo), before);
    passes(&repo, &["push", "-q", "origin", "main", ":gone"]);
}

#[test]
fn hok_06_a_kept_hook_gets_the_same_arguments_and_input() {
    let repo = Repo::new();
    repo.stage("README.md", "# A project\n").commit("first");
    repo.git(&["init", "-q", "--bare", repo.outside().to_str().unwrap()]);
    repo.git(&["remote", "add", "origin", repo.outside().to_str().unwrap()]);
    let record = repo.home().join("record");
    let theirs = format!(
        "#!/bin/sh\nprintf '%s\\n' \"$@\" > '{0}'\ncat >> '{0}'\n",
        record.display()
    );
    executable(&hook_path(&repo, "pre-push"), theirs);
    repo.git(&["push", "-q", "origin", "main:refs/heads/plain"]);
    let plain = fs::read_to_string(&record).unwrap();
    repo.reviewer(&["install-hooks", "--pre-push"]).run(0);
    let said = passes(&repo, &["push", "origin", "main:refs/heads/chain"]);
    assert!(said.contains("exit=0"), "{said}");
    assert_eq!(
        fs::read_to_string(&record).unwrap(),
        plain.replace("plain", "chain")
    );
    passes(&repo, &["push", "origin", "main:refs/heads/chain"]);
    let nothing = fs::read_to_string(&record).unwrap();
    assert_eq!(
        nothing.lines().count(),
        2,
        "no line where nothing is pushed: {nothing}"
    );
}

#[test]
fn hok_06_the_range_of_pre_commit_is_understood() {
    let repo = hooked();
    repo.stage("app.ini", aws_key()).commit("bad");
    let push = |from: &str, to: &str, code: i32| {
        let run = repo.reviewer(&["review", "--hook", "auto"]);
        run.env("PRE_COMMIT", "1")
            .env("PRE_COMMIT_FROM_REF", from)
            .env("PRE_COMMIT_TO_REF", to)
            .run(code)
    };
    push("HEAD~1", "HEAD", 1);
    push(
        repo.git(&["rev-parse", "main~1"]).trim(),
        repo.git(&["rev-parse", "main"]).trim(),
        1,
    );
    push("HEAD", "HEAD", 0);
    push("nope", "HEAD", 2);
    let whole = repo.reviewer(&["review", "--hook", "auto"]);
    whole
        .env("PRE_COMMIT", "1")
        .env("PRE_COMMIT_LOCAL_BRANCH", "refs/heads/main")
        .run(1);
}

#[test]
fn hok_06_the_password_in_an_address_is_not_shown() {
    let repo = hooked();
    let word = ["hunter", "2222"].concat();
    let url = format!("https://me:{word}@example.com/x.git");
    repo.git(&["remote", "add", "there", &url]);
    repo.git(&["update-ref", "refs/remotes/there/main", "HEAD"]);
    let base = repo.git(&["rev-parse", "HEAD"]);
    repo.stage("app.ini", CLEAN).commit("more");
    let line = format!(
        "refs/heads/main {} refs/heads/new {}\n",
        repo.git(&["rev-parse", "HEAD"]).trim(),
        "0".repeat(40)
    );
    for format in ["human", "json"] {
        let args = [
            "review",
            "--hook",
            "pre-push",
            "--format",
            format,
            "-v",
            "--hook-args",
            &url,
            &url,
        ];
        let run = repo.reviewer(&args).stdin(line.clone()).run(0);
        assert!(
            !run.stdout.contains(&word) && !run.stderr.contains(&word),
            "{}{}",
            run.stdout,
            run.stderr
        );
        assert!(
            run.stderr.contains("files=1/1"),
            "measured from {base}: {}",
            run.stderr
        );
    }
}

#[test]
fn hok_06_input_that_git_never_writes_is_refused() {
    let repo = hooked();
    let run = repo
        .reviewer(&["review", "--hook", "pre-push"])
        .stdin("refs/heads/main --output=x refs/heads/main y\n");
    assert!(run.run(2).stderr.contains("line 1 of the pre-push input"));
    assert!(!repo.path().join("x").exists());
}

#[test]
fn hok_08_a_missing_binary_stops_the_commit_with_one_line() {
    let repo = Repo::new();
    repo.stage("README.md", "# A project\n").commit("first");
    let copy = repo.home().join("bin/claude-reviewer");
    fs::create_dir(copy.parent().unwrap()).unwrap();
    // In another process: a file that this process has open for writing is also open, for a moment,
    // in every child that another test starts, and cannot be executed.
    assert!(
        Command::new("cp")
            .arg(binary())
            .arg(&copy)
            .status()
            .unwrap()
            .success()
    );
    let out = Command::new(&copy)
        .arg("install-hooks")
        .current_dir(repo.path())
        .output()
        .unwrap();
    assert!(out.status.success(), "{}", text(&out));
    repo.stage("app.ini", CLEAN);
    passes(&repo, &["commit", "-q", "-m", "with the binary"]);
    fs::remove_file(&copy).unwrap();
    repo.stage("app.ini", "region = us-east-1\n");
    let said = stops(&repo, &["commit", "-q", "-m", "without"]);
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(
        said.contains("claude-reviewer is gone, so nothing was reviewed"),
        "{said}"
    );
    let skip = repo
        .git_command()
        .args(["commit", "-q", "-m", "x"])
        .env("CLAUDE_REVIEWER_SKIP", "1")
        .output()
        .unwrap();
    assert!(skip.status.success(), "{}", text(&skip));

    repo.git(&["init", "-q", "--bare", repo.outside().to_str().unwrap()]);
    let out = repo.try_git(&["push", "-q", repo.outside().to_str().unwrap(), "main"]);
    assert!(
        !out.status.success() && text(&out).contains("nothing was reviewed"),
        "{}",
        text(&out)
    );

    // It is found elsewhere in PATH; a program of that name in the repository is not used.
    executable(
        &repo.path().join("claude-reviewer"),
        "#!/bin/sh\ntouch planted\n",
    );
    repo.stage("app.ini", aws_key());
    let with_path = |dir: &Path| {
        let old = std::env::var_os("PATH").unwrap();
        let path = std::env::join_paths(
            [dir.to_owned()]
                .into_iter()
                .chain(std::env::split_paths(&old)),
        )
        .unwrap();
        repo.git_command()
            .args(["commit", "-q", "-m", "x"])
            .env("PATH", path)
            .output()
            .unwrap()
    };
    let out = with_path(Path::new("."));
    assert!(
        !out.status.success() && text(&out).contains("nothing was reviewed"),
        "{}",
        text(&out)
    );
    assert!(!repo.path().join("planted").exists());
    let out = with_path(Path::new(binary()).parent().unwrap());
    assert!(
        !out.status.success() && text(&out).contains("exit=1"),
        "{}",
        text(&out)
    );
}

#[test]
fn ci_10_a_reader_that_goes_away_changes_no_exit_code() {
    let repo = Repo::new();
    repo.stage("app.ini", aws_key());
    for format in ["human", "json", "sarif"] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let child = Command::new(binary())
            .args(["review", "staged", "--format", format])
            .current_dir(repo.path())
            .stdout(writer)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let out = child.wait_with_output().unwrap();
        assert_eq!(out.status.code(), Some(1), "{format}: {}", text(&out));
        assert!(!text(&out).contains("panicked"), "{}", text(&out));
    }
    for args in [
        &["completions", "bash"][..],
        &["man"],
        &["rules", "list"],
        &["--help"],
    ] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let (err_reader, err_writer) = std::io::pipe().unwrap();
        drop(err_reader);
        let mut command = Command::new(binary());
        let status = command
            .args(args)
            .current_dir(repo.path())
            .stdout(writer)
            .stderr(err_writer)
            .status()
            .unwrap();
        assert_eq!(status.code(), Some(0), "{args:?}");
    }
}

#[test]
fn an_empty_hooks_path_is_refused_for_git_would_run_nothing() {
    let repo = Repo::new();
    repo.git(&["config", "core.hooksPath", ""]);
    let run = repo.reviewer(&["install-hooks"]).run(2);
    assert!(
        run.stderr
            .contains("hint: git config --unset core.hooksPath\n"),
        "{}",
        run.stderr
    );
    assert_eq!(run.stdout, "");
    assert!(!repo.path().join("pre-commit").exists() && !hook_path(&repo, "pre-commit").exists());
    repo.git(&["config", "--unset", "core.hooksPath"]);
    repo.reviewer(&["install-hooks"]).run(0);
}
