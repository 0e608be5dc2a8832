//! Tests of the rows of the reliability contract about git states, through the binary.

use super::untrusted::arm;
use super::{open, patch, set_executable, symlink};
use crate::support::{Repo, Reviewer, Run, binary, reviewer};
use std::fs;
use std::path::{Path, PathBuf};

/// A line that blocks.
pub(super) const BAD: &str = "x = eval(input())\n";
pub(super) const GOOD: &str = "x = 1\n";

/// Returns the findings of a report, as `file:line`.
fn found(report: &serde_json::Value) -> Vec<String> {
    let findings = report["findings"].as_array().unwrap();
    findings
        .iter()
        .map(|f| format!("{}:{}", f["file"].as_str().unwrap_or("-"), f["line"]))
        .collect()
}

fn json(run: &Run) -> serde_json::Value {
    serde_json::from_str(&run.stdout)
        .unwrap_or_else(|e| panic!("no JSON: {e}\n{}\n{}", run.stdout, run.stderr))
}

/// Creates a repository whose newest commit is clean, with a bad line staged on top.
pub(super) fn with_bad_staged() -> Repo {
    let repo = Repo::new();
    repo.stage("a.py", GOOD).commit("first");
    repo.stage("a.py", format!("{GOOD}{BAD}"));
    repo
}

/// Writes a hook that reviews the staged change, and stores the report.
fn hook(repo: &Repo, hooks: &Path) {
    fs::create_dir_all(hooks).unwrap();
    let report = repo.path().with_file_name("report.json");
    let text = format!(
        "#!/bin/sh\nexec '{}' review staged --format json >'{}'\n",
        binary(),
        report.display()
    );
    fs::write(hooks.join("pre-commit"), text).unwrap();
    set_executable(&hooks.join("pre-commit"));
}

/// Commits with the hook. Returns whether that succeeded, and the hook's report.
fn commit(repo: &Repo, args: &[&str]) -> (bool, serde_json::Value) {
    let out = repo.try_git(&[&["commit", "-q", "-m", "m"], args].concat());
    let report = fs::read(repo.path().with_file_name("report.json"))
        .unwrap_or_else(|_| panic!("no report: {}", String::from_utf8_lossy(&out.stderr)));
    (
        out.status.success(),
        serde_json::from_slice(&report).unwrap(),
    )
}

#[test]
fn git_01_outside_of_a_repository_is_a_usage_error() {
    let repo = Repo::new();
    fs::create_dir(repo.outside()).unwrap();
    let run = reviewer(&repo.outside(), &repo.home(), &["review", "staged"]).run(2);
    assert!(
        run.stderr.contains(repo.outside().to_str().unwrap()),
        "{}",
        run.stderr
    );
    assert!(!repo.outside().join(".reviews").exists());
}

#[test]
fn git_02_an_unborn_head_is_the_empty_tree() {
    let repo = Repo::new();
    repo.stage("ok.py", GOOD);
    repo.review(&["staged"], 0);
    repo.stage("bad.py", BAD);
    assert_eq!(found(&repo.review_json(&["staged"], 1)), ["bad.py:1"]);
    // All sources with changes.
    assert_eq!(found(&repo.review_json(&["changes"], 1)), ["bad.py:1"]);
}

#[test]
fn git_03_no_changes_is_nothing_to_review() {
    let repo = Repo::new();
    repo.stage("a.py", GOOD).commit("first");
    let report = repo.review_json(&["staged"], 0);
    assert_eq!(report["outcome"], "nothing_to_review");
    let run = repo.review(&["staged"], 0);
    assert!(
        run.stdout.contains("No changes to review") || run.stdout.contains("no changes to review"),
        "{}",
        run.stdout
    );
}

#[test]
fn git_04_an_unknown_base_never_passes() {
    let repo = with_bad_staged();
    for args in [
        &["branch", "--base", "nope"][..],
        &["commit", "nope"],
        &["commit", "nope..HEAD"],
        &["changes", "--base", "nope"],
    ] {
        let run = repo.review(args, 2);
        assert!(
            run.stderr.contains("unknown revision nope"),
            "{args:?}: {}",
            run.stderr
        );
    }
}

/// Clones with a depth, over the `file` protocol so that the depth is used.
fn shallow(repo: &Repo, depth: &str, branches: &[&str]) -> PathBuf {
    let to = repo.outside();
    let from = format!("file://{}", repo.path().display());
    let mut args = vec![
        "clone",
        "-q",
        "--depth",
        depth,
        "--no-single-branch",
        &from,
        to.to_str().unwrap(),
    ];
    args.extend(branches);
    repo.git(&args);
    to
}

#[test]
fn git_05_a_shallow_clone_without_the_merge_base_is_incomplete() {
    let repo = Repo::new();
    repo.stage("a.py", GOOD).commit("first");
    for i in 0..3 {
        repo.stage("main.py", format!("x = {i}\n")).commit("main");
    }
    repo.git(&["checkout", "-q", "-b", "feature", "HEAD~3"]);
    for i in 0..3 {
        repo.stage("feature.py", format!("x = {i}\n"))
            .commit("feature");
    }
    let clone = shallow(&repo, "1", &[]);
    let run = reviewer(
        &clone,
        &repo.home(),
        &["review", "branch", "--base", "origin/main"],
    )
    .run(3);
    assert!(
        run.stderr.contains("shallow") && run.stderr.contains("git fetch"),
        "{}",
        run.stderr
    );
    // The parent of the newest commit is missing, so it must not count as a first commit.
    let run = reviewer(&clone, &repo.home(), &["review", "commit", "HEAD"]).run(3);
    assert!(run.stderr.contains("fetch-depth"), "{}", run.stderr);
    // An unknown base is not replaced by HEAD either.
    repo.git(&[
        "-C",
        clone.to_str().unwrap(),
        "remote",
        "set-head",
        "origin",
        "main",
    ]);
    let run = reviewer(&clone, &repo.home(), &["review", "changes"]).run(3);
    assert!(
        run.stderr
            .contains("no merge base with default branch origin/main"),
        "{}",
        run.stderr
    );
    let full = reviewer(
        &repo.path(),
        &repo.home(),
        &["review", "branch", "--base", "main"],
    )
    .run(0);
    assert!(full.stderr.contains("complete"), "{}", full.stderr);
}

#[test]
fn git_06_every_kind_of_checkout_gives_the_same_review() {
    let repo = Repo::new();
    repo.stage("a.py", GOOD).commit("first");
    repo.stage("sub/b.py", BAD).commit("second");
    let at = |dir: &Path, vars: &[(&str, &str)]| {
        let args = ["review", "commit", "HEAD", "--format", "json"];
        let run = vars
            .iter()
            .fold(reviewer(dir, &repo.home(), &args), |r, (k, v)| r.env(k, v))
            .run(1);
        let mut report = json(&run);
        for key in ["timestamp", "duration_ms", "review_id"] {
            report.as_object_mut().unwrap().remove(key);
        }
        report
    };
    let plain = at(&repo.path(), &[]);
    assert_eq!(found(&plain), ["sub/b.py:1"]);
    assert_eq!(at(&repo.path().join("sub"), &[]), plain);
    repo.git(&["checkout", "-q", "--detach"]);
    assert_eq!(at(&repo.path(), &[]), plain);
    let tree = repo.path().with_file_name("tree");
    repo.git(&["worktree", "add", "-q", tree.to_str().unwrap()]);
    assert_eq!(at(&tree, &[]), plain);
    assert_eq!(at(&tree.join("sub"), &[]), plain);
    // The git folder of the repository is elsewhere, with a file in its place.
    let moved = repo.path().with_file_name("clone");
    let data = repo.path().with_file_name("data");
    let data = data.to_str().unwrap();
    repo.git(&[
        "clone",
        "-q",
        "--separate-git-dir",
        data,
        repo.path().to_str().unwrap(),
        moved.to_str().unwrap(),
    ]);
    assert_eq!(at(&moved, &[]), plain);
    assert_eq!(at(&moved, &[("GIT_DIR", data)]), plain);
    // The worktree of a submodule is a separate repository.
    let outer = Repo::new();
    outer.git(&[
        "-c",
        "protocol.file.allow=always",
        "submodule",
        "-q",
        "add",
        repo.path().to_str().unwrap(),
        "inner",
    ]);
    assert_eq!(at(&outer.path().join("inner"), &[]), plain);
    assert_eq!(at(&outer.path().join("inner/sub"), &[]), plain);
}

#[test]
fn git_07_unmerged_paths_are_a_usage_error() {
    let repo = Repo::new();
    repo.stage("a.py", GOOD).commit("first");
    repo.git(&["checkout", "-q", "-b", "other"]);
    repo.stage("a.py", "x = 2\n").commit("other");
    repo.git(&["checkout", "-q", "main"]);
    repo.stage("a.py", "x = 3\n").commit("main");
    assert!(!repo.try_git(&["merge", "-q", "other"]).status.success());
    for source in ["staged", "unstaged", "changes"] {
        let run = repo.review(&[source], 2);
        assert!(
            run.stderr.contains("unmerged paths: a.py"),
            "{source}: {}",
            run.stderr
        );
    }
}

#[test]
fn git_07_staged_conflict_markers_block() {
    let repo = Repo::new();
    repo.stage("a.py", GOOD).commit("first");
    repo.stage(
        "a.py",
        format!(
            "{} ours\nx = 2\n{}\nx = 3\n{} theirs\n",
            "<".repeat(7),
            "=".repeat(7),
            ">".repeat(7)
        ),
    );
    repo.review(&["staged"], 1);
}

#[test]
fn git_08_commit_all_reviews_the_real_index() {
    let repo = Repo::new();
    repo.stage("a.py", GOOD).stage("b.py", GOOD).commit("first");
    hook(&repo, &repo.path().join(".git/hooks"));
    repo.write("a.py", "x = 2\n");
    let (done, report) = commit(&repo, &["-a"]);
    assert!(done);
    assert_eq!(report["coverage"]["files_total"], 1);
    repo.write("a.py", BAD);
    let (done, report) = commit(&repo, &["-a"]);
    assert!(!done);
    assert_eq!(found(&report), ["a.py:1"]);
    // Nothing is staged in the plain index, so a review of it would be empty.
    assert_eq!(repo.git(&["diff", "--cached", "--name-only"]), "");
}

#[test]
fn git_08_a_hook_of_a_linked_worktree_reviews_that_worktree() {
    let repo = Repo::new();
    repo.stage("a.py", GOOD).commit("first");
    hook(&repo, &repo.path().join(".git/hooks"));
    let tree = repo.path().with_file_name("tree");
    repo.git(&["worktree", "add", "-q", tree.to_str().unwrap()]);
    // The main worktree has another staged change.
    repo.stage("other.py", GOOD);
    fs::write(tree.join("a.py"), BAD).unwrap();
    let dir = tree.to_str().unwrap();
    let out = repo.try_git(&["-C", dir, "commit", "-q", "-a", "-m", "m"]);
    assert!(!out.status.success());
    let report = fs::read(repo.path().with_file_name("report.json")).unwrap();
    assert_eq!(found(&serde_json::from_slice(&report).unwrap()), ["a.py:1"]);
}

#[test]
fn git_08_a_hook_of_a_submodule_reviews_the_submodule() {
    let inner = Repo::new();
    inner.stage("a.py", GOOD).commit("first");
    let repo = Repo::new();
    let url = inner.path();
    repo.git(&[
        "-c",
        "protocol.file.allow=always",
        "submodule",
        "-q",
        "add",
        url.to_str().unwrap(),
        "sub",
    ]);
    hook(&repo, &repo.path().join(".git/modules/sub/hooks"));
    fs::write(repo.path().join("sub/a.py"), BAD).unwrap();
    let out = repo.try_git(&["-C", "sub", "commit", "-q", "-a", "-m", "m"]);
    assert!(!out.status.success());
    let report = fs::read(repo.path().with_file_name("report.json")).unwrap();
    assert_eq!(found(&serde_json::from_slice(&report).unwrap()), ["a.py:1"]);
}

#[test]
fn git_09_a_partial_commit_reviews_only_its_paths() {
    let repo = Repo::new();
    repo.stage("one.py", GOOD)
        .stage("two.py", GOOD)
        .commit("first");
    hook(&repo, &repo.path().join(".git/hooks"));
    repo.write("one.py", "x = 2\n").stage("two.py", BAD);
    let (done, report) = commit(&repo, &["--", "one.py"]);
    assert!(done);
    assert_eq!(report["coverage"]["files_total"], 1);
    let (done, report) = commit(&repo, &["--", "two.py"]);
    assert!(!done);
    assert_eq!(found(&report), ["two.py:1"]);
}

#[test]
fn git_10_staged_bytes_are_reviewed_not_the_worktrees() {
    let repo = Repo::new();
    repo.stage("a.py", GOOD).commit("first");
    repo.stage("a.py", format!("{GOOD}{BAD}"))
        .write("a.py", GOOD);
    assert_eq!(found(&repo.review_json(&["staged"], 1)), ["a.py:2"]);
    repo.stage("a.py", "x = 2\n").write("a.py", BAD);
    assert_eq!(found(&repo.review_json(&["staged"], 0)), [""; 0]);
    assert_eq!(found(&repo.review_json(&["unstaged"], 1)), ["a.py:1"]);
}

#[test]
fn git_11_a_lock_that_somebody_holds_does_not_matter() {
    let repo = with_bad_staged();
    let lock = repo.path().join(".git/index.lock");
    fs::write(&lock, "").unwrap();
    let index = fs::read(repo.path().join(".git/index")).unwrap();
    for source in ["staged", "changes"] {
        assert_eq!(
            found(&repo.review_json(&[source], 1)),
            ["a.py:2"],
            "{source}"
        );
    }
    assert_eq!(fs::read(&lock).unwrap(), b"");
    assert_eq!(fs::read(repo.path().join(".git/index")).unwrap(), index);
}

#[test]
fn git_12_a_corrupt_object_is_incomplete() {
    let repo = Repo::new();
    repo.stage("a.py", GOOD).commit("first");
    repo.stage("a.py", "x = 2\n")
        .stage("b.py", GOOD)
        .commit("second");
    let id = repo.git(&["rev-parse", "HEAD:a.py"]);
    let object = repo
        .path()
        .join(format!(".git/objects/{}/{}", &id[..2], id[2..].trim()));
    fs::remove_file(&object).unwrap();
    let review = |args: &[&str]| repo.review(args, 3);
    assert!(review(&["commit", "HEAD"]).stderr.contains("incomplete"));
    for garbage in [&b"\x1b[31mgarbage"[..], b"", b"\x78\x01\x4b"] {
        fs::write(&object, garbage).unwrap();
        for args in [
            &["commit", "HEAD"][..],
            &["commit", "HEAD~1..HEAD"],
            &["branch", "--base", "HEAD~1"],
        ] {
            let run = review(args);
            assert!(!run.stderr.contains('\x1b') && !run.stdout.contains('\x1b'));
        }
    }
    // An unreadable tree is not an empty one.
    let tree = repo.git(&["rev-parse", "HEAD^{tree}"]);
    let object = repo
        .path()
        .join(format!(".git/objects/{}/{}", &tree[..2], tree[2..].trim()));
    fs::remove_file(&object).unwrap();
    fs::write(&object, "garbage").unwrap();
    review(&["commit", "HEAD"]);
    repo.stage("c.py", GOOD);
    review(&["staged"]);
}

#[test]
fn a_file_that_is_too_large_leaves_the_rest_reviewed() {
    let repo = Repo::new();
    repo.stage("a.py", GOOD)
        .stage("huge", "1\n")
        .stage("gone", "2\n")
        .commit("first");
    repo.write("a.py", BAD);
    fs::remove_file(repo.path().join("gone")).unwrap();
    // Sparse files, which take no space.
    for name in ["huge", "huge and new"] {
        fs::File::create(repo.path().join(name))
            .unwrap()
            .set_len((1 << 30) + 1)
            .unwrap();
    }
    let report = repo.review_json(&["unstaged", "--untracked"], 1);
    assert_eq!(found(&report), ["a.py:1"]);
    let failed = report["coverage"]["failed"].to_string();
    assert!(
        failed.contains("huge and new is larger than 1024 MiB")
            && failed.contains("huge is larger"),
        "{failed}"
    );
    repo.write("a.py", GOOD);
    repo.review(&["unstaged"], 3);
}

#[test]
fn git_18_a_partial_clone_is_incomplete_and_fetches_nothing() {
    let repo = Repo::new();
    repo.stage("a.py", GOOD)
        .stage("b.py", "y = 1\n")
        .commit("first");
    repo.stage("a.py", "x = 2\n").commit("second");
    repo.git(&["config", "uploadpack.allowFilter", "true"]);
    let to = repo.outside();
    let from = format!("file://{}", repo.path().display());
    repo.git(&[
        "clone",
        "-q",
        "--filter=blob:none",
        &from,
        to.to_str().unwrap(),
    ]);
    let objects = || repo.git(&["-C", to.to_str().unwrap(), "count-objects", "-v"]);
    let before = objects();
    // The newest version is checked out, the older one was never fetched.
    let run = reviewer(&to, &repo.home(), &["review", "commit", "HEAD"]).run(3);
    assert!(
        run.stdout.contains("from this partial"),
        "{}{}",
        run.stdout,
        run.stderr
    );
    assert_eq!(objects(), before);
    fs::write(to.join("b.py"), BAD).unwrap();
    let run = reviewer(
        &to,
        &repo.home(),
        &["review", "unstaged", "--format", "json"],
    )
    .run(1);
    assert_eq!(found(&json(&run)), ["b.py:1"]);
}

#[test]
fn git_19_sha256_repositories_work() {
    let repo = Repo::init(&["--object-format=sha256"]);
    repo.stage("a.py", GOOD).commit("first");
    repo.stage("a.py", format!("{GOOD}{BAD}"))
        .write("b.py", GOOD);
    for source in [&["staged"][..], &["changes"]] {
        assert_eq!(found(&repo.review_json(source, 1)), ["a.py:2"]);
    }
    let id = repo.commit("second");
    assert_eq!(id.len(), 64);
    let report = repo.review_json(&["commit", &id], 1);
    assert_eq!(report["source"]["head"], id.as_str());
    let r = open(&repo);
    let change = r.commit(r.resolve("HEAD").unwrap(), None).unwrap();
    assert_eq!(
        patch(&r, &change),
        super::git_patch(&repo, &["diff", "HEAD~1", "HEAD"])
    );
}

#[test]
fn git_19_pushes_of_sha256_repositories_are_reviewed() {
    let repo = Repo::init(&["--object-format=sha256"]);
    repo.stage("a.py", GOOD).commit("first");
    let id = repo.stage("a.py", format!("{GOOD}{BAD}")).commit("second");
    let push = |vars: &[(&str, &str)], stdin: &str, code: i32| {
        let mut run = repo
            .reviewer(&["review", "--hook", "pre-push", "--format", "json"])
            .stdin(stdin);
        for (key, value) in vars {
            run = run.env(key, value);
        }
        json(&run.run(code))
    };
    // The first push of a history, in the variables of pre-commit.
    let first = [
        ("PRE_COMMIT_LOCAL_BRANCH", "refs/heads/main"),
        ("PRE_COMMIT_REMOTE_BRANCH", "refs/heads/main"),
    ];
    assert_eq!(found(&push(&first, "", 1)), ["a.py:2"]);
    let none = "0".repeat(64);
    assert_eq!(
        found(&push(
            &[],
            &format!("refs/heads/main {id} refs/heads/main {none}\n"),
            1
        )),
        ["a.py:2"]
    );
    let deletion = push(&[], &format!("(delete) {none} refs/heads/main {id}\n"), 0);
    assert_eq!(deletion["outcome"], "nothing_to_review");
}

/// Creates a repository with a reftable; `None` if this git does not support it.
fn reftable() -> Repo {
    let repo = Repo::init(&["--ref-format=reftable"]);
    repo.stage("a.py", GOOD).commit("first");
    repo.git(&["checkout", "-q", "-b", "feature"]);
    repo.stage("a.py", format!("{GOOD}{BAD}")).commit("second");
    repo
}

#[test]
fn a_reftable_is_read_through_the_git_program() {
    let repo = reftable();
    let trace = arm(&repo);
    assert_eq!(found(&repo.review_json(&["commit", "HEAD"], 1)), ["a.py:2"]);
    assert_eq!(
        found(&repo.review_json(&["branch", "--base", "main"], 1)),
        ["a.py:2"]
    );
    assert_eq!(found(&repo.review_json(&["branch"], 1)), ["a.py:2"]);
    repo.review(&["staged"], 0);
    repo.review(&["commit", "nope"], 2);
    assert!(!trace.exists(), "{}", fs::read_to_string(&trace).unwrap());
}

/// Creates a folder with one program.
fn folder_with(repo: &Repo, name: &str, program: &str, text: &str) -> PathBuf {
    let dir = repo.path().with_file_name(name);
    fs::create_dir_all(&dir).unwrap();
    fs::write(dir.join(program), text).unwrap();
    set_executable(&dir.join(program));
    dir
}

#[test]
fn git_20_a_missing_or_old_git_is_named_where_it_is_needed() {
    let repo = reftable();
    let run = |r: Reviewer, code| r.run(code).stderr;
    let none = repo.path().with_file_name("none");
    fs::create_dir(&none).unwrap();
    let said = run(repo.reviewer(&["review", "staged"]).env("PATH", &none), 2);
    assert!(
        said.contains("git not found on PATH") && said.contains("2.45"),
        "{said}"
    );
    let old = folder_with(&repo, "old", "git", "#!/bin/sh\necho git version 2.39.1\n");
    let said = run(repo.reviewer(&["review", "staged"]).env("PATH", &old), 2);
    assert!(said.contains("2.39.1") && said.contains("2.45"), "{said}");
    // A program in the repository, or one found through the current folder, is not used.
    let inside = folder_with(
        &repo,
        "repo/bin",
        "git",
        "#!/bin/sh\ntouch ran\necho git version 9.9.9\n",
    );
    for path in [inside.to_str().unwrap(), ".", "bin", ""] {
        run(repo.reviewer(&["review", "staged"]).env("PATH", path), 2);
        assert!(!repo.path().join("ran").exists());
    }
    // With references in files, git is not needed at all.
    let plain = with_bad_staged();
    plain
        .reviewer(&["review", "staged"])
        .env("PATH", &none)
        .run(1);
    plain
        .reviewer(&["review", "branch", "--base", "HEAD"])
        .env("PATH", &none)
        .run(0);
}

#[test]
fn a_link_in_place_of_a_folder_is_not_followed() {
    let repo = Repo::new();
    repo.stage("dir/a.py", GOOD).commit("first");
    fs::create_dir(repo.outside()).unwrap();
    fs::write(repo.outside().join("a.py"), BAD).unwrap();
    fs::remove_dir_all(repo.path().join("dir")).unwrap();
    symlink(repo.outside().to_str().unwrap(), &repo.path().join("dir"));
    // The link itself is a finding, because it leads out of the tree; its target is not read.
    let report = repo.review_json(&["unstaged", "--untracked"], 1);
    assert_eq!(found(&report), ["dir:1"]);
}

#[test]
fn dif_06_reports_name_the_right_file_whatever_it_is_called() {
    use std::os::unix::ffi::OsStrExt as _;
    let repo = Repo::new();
    let names: [(&[u8], &str); 7] = [
        (b"a b/ b/c.py", "a b/ b/c.py"),
        (b"caf\xe9.py", "\"caf\\351.py\""),
        (b"esc\x1b[31m.py", "esc\x1b[31m.py"),
        (b"line\nbreak.py", "line\nbreak.py"),
        (b"quote\".py", "quote\".py"),
        (b"tab\t.py", "tab\t.py"),
        ("\u{1f980}.py".as_bytes(), "\u{1f980}.py"),
    ];
    for (name, _) in names {
        let path = repo.path().join(std::ffi::OsStr::from_bytes(name));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, BAD).unwrap();
    }
    repo.git(&["add", "."]);
    let mut expected: Vec<String> = names.iter().map(|(_, wire)| format!("{wire}:1")).collect();
    let mut all = found(&repo.review_json(&["staged"], 1));
    expected.sort();
    all.sort();
    assert_eq!(all, expected);
    let run = repo.review(&["staged"], 1);
    assert!(
        !run.stdout.contains('\x1b') && !run.stderr.contains('\x1b'),
        "{}",
        run.stdout
    );
}
