//! Tests of the installation of hooks: what is chained, refused and removed.

use super::{CLEAN, aws_key, executable, hook_path, passes, stops, text};
use crate::support::{Repo, binary, reviewer};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

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
