//! Tests of repositories that are not trusted: owned by another user, with programs in their
//! configuration, with names that look like options, or with a repository inside.

use super::rows::{BAD, GOOD, with_bad_staged};
use super::{open, patch, set_executable};
use crate::support::{Repo, reviewer};
use claude_reviewer::error::Kind;
use std::fs;
use std::path::{Path, PathBuf};

#[test]
fn git_13_a_repository_of_somebody_else_is_refused_with_gits_advice() {
    let repo = with_bad_staged();
    if rustix::process::geteuid().is_root() {
        chown(&repo.path(), 12345);
        let run = repo.review(&["staged"], 2);
        let dir = repo.path();
        assert!(run.stderr.contains("dubious ownership"), "{}", run.stderr);
        assert!(
            run.stderr
                .contains("git config --global --add safe.directory"),
            "{}",
            run.stderr
        );
        // The repository cannot permit itself.
        repo.git(&[
            "-c",
            &format!("safe.directory={}", dir.display()),
            "config",
            "safe.directory",
            "*",
        ]);
        chown(&repo.path(), 12345);
        repo.review(&["staged"], 2);
        // Its user can permit it.
        repo.git(&[
            "config",
            "--global",
            "--add",
            "safe.directory",
            dir.to_str().unwrap(),
        ]);
        repo.review(&["staged"], 1);
    } else {
        // The root folder belongs to another user.
        let run = repo
            .reviewer(&["review", "staged"])
            .env("GIT_DIR", repo.path().join(".git"))
            .env("GIT_WORK_TREE", "/");
        let run = run.run(2);
        assert!(run.stderr.contains("dubious ownership"), "{}", run.stderr);
    }
}

fn chown(path: &Path, to: u32) {
    std::os::unix::fs::lchown(path, Some(to), Some(to)).unwrap();
    if path.is_dir() && !path.is_symlink() {
        for entry in fs::read_dir(path).unwrap() {
            chown(&entry.unwrap().path(), to);
        }
    }
}

/// Sets every program in the configuration of a repository to one that leaves a trace.
pub(super) fn arm(repo: &Repo) -> PathBuf {
    let trace = repo.path().with_file_name("trace");
    let script = repo.path().with_file_name("canary");
    fs::write(
        &script,
        format!("#!/bin/sh\necho \"$0 $*\" >>'{}'\ncat\n", trace.display()),
    )
    .unwrap();
    set_executable(&script);
    let run = script.to_str().unwrap();
    for key in [
        "core.fsmonitor",
        "core.pager",
        "core.sshCommand",
        "core.editor",
        "core.gitProxy",
        "core.askPass",
        "diff.external",
        "diff.D.command",
        "diff.D.textconv",
        "filter.F.clean",
        "filter.F.smudge",
        "filter.F.process",
        "filter.lfs.process",
        "gpg.program",
        "gpg.ssh.program",
        "credential.helper",
        "pager.diff",
        "pager.log",
        "merge.M.driver",
        "uploadpack.packObjectsHook",
        "remote.origin.uploadpack",
        "alias.diff",
        "interactive.diffFilter",
        "sequence.editor",
        "core.alternateRefsCommand",
    ] {
        repo.git(&["config", key, run]);
    }
    repo.git(&["config", "filter.F.required", "true"]);
    repo.git(&["config", "log.showSignature", "true"]);
    let hooks = repo.path().with_file_name("hooks");
    fs::create_dir(&hooks).unwrap();
    for hook in [
        "pre-commit",
        "post-index-change",
        "fsmonitor-watchman",
        "reference-transaction",
        "post-checkout",
    ] {
        fs::copy(&script, hooks.join(hook)).unwrap();
    }
    repo.git(&["config", "core.hooksPath", hooks.to_str().unwrap()]);
    fs::remove_file(&trace).ok();
    trace
}

#[test]
fn git_14_no_program_of_the_repository_is_run() {
    let repo = Repo::new();
    repo.stage("a.py", GOOD)
        .stage("text.F", "one\n")
        .stage("img.bin", "a\0b")
        .commit("first");
    repo.stage(
        ".gitattributes",
        "*.py diff=D merge=M\n*.F filter=F\n*.bin diff=D filter=lfs\n",
    )
    .commit("second");
    repo.stage("a.py", BAD)
        .write("text.F", "two\n")
        .write("img.bin", "c\0d")
        .write("new.F", "new\n");
    let trace = arm(&repo);
    let index = fs::read(repo.path().join(".git/index")).unwrap();
    for (args, code) in [
        (&["review", "staged"][..], 1),
        (&["review", "unstaged", "--untracked"], 0),
        (&["review", "changes"], 1),
        (&["review", "changes", "--base", "HEAD~1"], 1),
        (&["review", "commit", "HEAD"], 0),
        (&["review", "commit", "HEAD~1..HEAD"], 0),
        (&["review", "branch", "--base", "HEAD~1"], 0),
        (&["review"], 1),
    ] {
        let run = repo.reviewer(args).run_any();
        // Attributes that hide files may have their own finding.
        assert!(
            run.code == code || (code == 0 && run.code == 1),
            "{args:?} {}: {}{}",
            run.code,
            run.stdout,
            run.stderr
        );
        assert!(
            !trace.exists(),
            "{args:?} ran {}",
            fs::read_to_string(&trace).unwrap()
        );
    }
    for args in [
        &["install-hooks"][..],
        &["policy", "check"],
        &["policy", "show"],
        &["rules", "list"],
    ] {
        repo.reviewer(args).run_any();
        assert!(
            !trace.exists(),
            "{args:?} ran {}",
            fs::read_to_string(&trace).unwrap()
        );
    }
    assert_eq!(fs::read(repo.path().join(".git/index")).unwrap(), index);
    // The canary is triggered when git itself runs.
    repo.try_git(&["status"]);
    assert!(trace.exists());
}

#[test]
fn git_14_a_filter_that_is_not_run_is_told() {
    let repo = Repo::new();
    repo.stage(".gitattributes", "*.big filter=F\n")
        .stage("a.big", "one\n")
        .commit("first");
    repo.write("a.big", "two\n");
    let trace = arm(&repo);
    let report = repo.review_json(&["unstaged"], 0);
    let notes = report["notes"].to_string();
    assert!(
        notes.contains("a.big") && notes.contains("filter F"),
        "{notes}"
    );
    assert!(!trace.exists());
}

#[test]
fn git_14_a_filter_that_is_not_run_is_told_of_new_files_too() {
    let repo = Repo::new();
    repo.stage(".gitattributes", "*.big filter=F\n")
        .stage("a.big", "one\n")
        .commit("first");
    repo.stage("a.big", "two\n").commit("second");
    repo.write("new.big", "new\n")
        .write("a.txt", "fine\n")
        .stage("meant.big", "meant\n");
    repo.git(&["reset", "-q", "meant.big"]);
    repo.git(&["add", "-N", "meant.big"]);
    repo.write("a.big", "three\n");
    let trace = arm(&repo);
    for args in [
        &["unstaged", "--untracked"][..],
        &["changes"],
        &["changes", "--base", "HEAD~1"],
    ] {
        let report = repo.review_json(args, 0);
        let notes: Vec<_> = report["notes"]
            .as_array()
            .unwrap()
            .iter()
            .map(|n| n["text"].as_str().unwrap())
            .collect();
        for file in ["a.big", "meant.big", "new.big"] {
            let of_file: Vec<_> = notes
                .iter()
                .filter(|n| n.starts_with(&format!("{file}: read without the filter F")))
                .collect();
            assert_eq!(of_file.len(), 1, "{args:?} {file}: {notes:?}");
        }
        assert_eq!(notes.len(), 3, "{args:?}: {notes:?}");
    }
    assert!(!trace.exists());
}

#[test]
fn a_new_file_that_is_not_in_its_encoding_is_read_as_it_is_and_told() {
    let repo = Repo::new();
    repo.stage(".gitattributes", "*.txt working-tree-encoding=UTF-16LE\n")
        .commit("first");
    repo.write("right.txt", b"a\0\n\0")
        .write("wrong.txt", b"\x00\xd8\x00\xd8\n\0");
    let notes = repo.review_json(&["changes"], 0)["notes"].to_string();
    assert!(
        notes.contains("wrong.txt: read without conversion") && !notes.contains("right.txt"),
        "{notes}"
    );
}

#[test]
fn git_15_what_is_configured_about_diffs_changes_nothing() {
    let repo = super::one_of_everything();
    repo.write("kept.txt", "unstaged\n");
    let texts = || {
        let r = open(&repo);
        [
            r.staged().unwrap(),
            r.unstaged(true).unwrap(),
            r.changes(None).unwrap().0,
        ]
        .map(|c| patch(&r, &c))
    };
    let before = texts();
    assert!(before.iter().all(|t| !t.is_empty()));
    let order = repo.path().with_file_name("order");
    fs::write(&order, "*.sh\n*.txt\n").unwrap();
    for (key, value) in [
        ("diff.noprefix", "true"),
        ("diff.mnemonicPrefix", "true"),
        ("color.ui", "always"),
        ("core.quotePath", "false"),
        ("diff.renames", "copies"),
        ("diff.renameLimit", "1"),
        ("diff.algorithm", "patience"),
        ("diff.context", "0"),
        ("diff.interHunkContext", "9"),
        ("diff.orderFile", order.to_str().unwrap()),
        ("diff.ignoreSubmodules", "all"),
        ("diff.indentHeuristic", "false"),
        ("diff.relative", "true"),
        ("diff.suppressBlankEmpty", "true"),
        ("diff.wsErrorHighlight", "all"),
        ("diff.srcPrefix", "x/"),
        ("diff.submodule", "log"),
        ("diff.wordRegex", "."),
        ("core.abbrev", "4"),
    ] {
        repo.git(&["config", key, value]);
        assert_eq!(texts(), before, "{key}");
    }
    repo.git(&["config", "diff.renames", "false"]);
    assert_eq!(texts(), before);
}

#[test]
fn git_16_a_revision_cannot_be_an_option_or_a_command() {
    let repo = with_bad_staged();
    let file = repo.path().with_file_name("x");
    let long = "a".repeat(5000);
    for rev in [
        &format!("--output={}", file.display()),
        "-O",
        "-Ox",
        "--upload-pack=touch x",
        "a..b;id",
        "HEAD;id",
        "HEAD\nid",
        "$(id)",
        "",
        &long,
        "HEAD\0",
        "^HEAD",
        "HEAD...HEAD~1",
        "@{u",
        "HEAD^{blob}",
        "HEAD:a.py",
        ":a.py",
    ] {
        if !rev.contains('\0') {
            for args in [
                &["commit", "--", rev][..],
                &["branch", &format!("--base={rev}")],
                &["changes", &format!("--base={rev}")],
                &["branch", "--base", "HEAD", "--", rev],
            ] {
                repo.review(args, 2);
            }
        }
        let e = open(&repo).resolve(rev).unwrap_err();
        assert_eq!(e.kind, Kind::Usage, "{rev:?}");
        assert!(e.message.len() < 400, "{}", e.message);
    }
    assert!(!file.exists());
}

#[test]
fn git_17_an_embedded_bare_repository_is_not_used() {
    let repo = with_bad_staged();
    let bare = repo.path().join("fixtures/evil");
    fs::create_dir_all(&bare).unwrap();
    repo.git(&["init", "-q", "--bare", "fixtures/evil"]);
    let trace = repo.path().with_file_name("trace");
    let mut config = fs::read_to_string(bare.join("config")).unwrap();
    config = config.replace("bare = true", "bare = false\n\tworktree = .\n");
    config.push_str(&format!(
        "[core]\n\tfsmonitor = \"touch {}; false\"\n",
        trace.display()
    ));
    for text in [fs::read_to_string(bare.join("config")).unwrap(), config] {
        fs::write(bare.join("config"), text).unwrap();
        for dir in [bare.clone(), bare.join("refs")] {
            for args in [
                &["review", "staged"][..],
                &["review", "commit", "HEAD"],
                &["install-hooks"],
            ] {
                let run = reviewer(&dir, &repo.home(), args).run(2);
                assert!(run.stderr.contains("bare repository"), "{}", run.stderr);
            }
        }
    }
    assert!(!trace.exists());
    assert!(!bare.join("hooks/pre-commit").exists());
    // A user who names it accepts it.
    let named = repo.path().with_file_name("named.git");
    repo.git(&[
        "clone",
        "-q",
        "--bare",
        repo.path().to_str().unwrap(),
        named.to_str().unwrap(),
    ]);
    reviewer(&named, &repo.home(), &["review", "commit", "HEAD"]).run(2);
    reviewer(&named, &repo.home(), &["review", "commit", "HEAD"])
        .env("GIT_DIR", &named)
        .run(0);
}
