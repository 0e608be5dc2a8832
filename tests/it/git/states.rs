//! Tests of unusual indexes, worktrees and names.

use super::{git_patch, open, patch, paths, set_executable, symlink};
use crate::support::Repo;
use claude_reviewer::diff::{Body, ChangeKind, FileMode, Hidden, RepoPath};
use claude_reviewer::git::State;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;

#[track_caller]
fn equal_to_gits(repo: &Repo) {
    let r = open(repo);
    assert_eq!(
        patch(&r, &r.staged().unwrap()),
        git_patch(repo, &["diff", "--cached"]),
        "staged"
    );
    assert_eq!(
        patch(&r, &r.unstaged(false).unwrap()),
        git_patch(repo, &["diff"]),
        "unstaged"
    );
}

/// Creates many files in folders, with staged and unstaged changes.
fn many() -> Repo {
    let repo = Repo::new();
    for i in 0..40 {
        repo.write(&format!("d{}/s{}/f{i}.txt", i % 4, i % 3), format!("{i}\n"));
    }
    repo.git(&["add", "."]);
    repo.commit("first");
    repo.stage("d1/s1/f1.txt", "staged\n")
        .stage("d2/new", "new\n")
        .write("d3/s0/f3.txt", "not staged\n");
    repo.git(&["rm", "-q", "d0/s2/f8.txt"]);
    repo
}

#[test]
fn indexes_of_every_version_read_alike() {
    let repo = many();
    for version in ["2", "3", "4"] {
        repo.git(&["update-index", "--index-version", version]);
        equal_to_gits(&repo);
    }
}

#[test]
fn a_split_index_is_put_together() {
    let repo = many();
    repo.git(&["update-index", "--split-index"]);
    repo.stage("d1/s1/f13.txt", "also staged\n");
    assert!(fs::read_dir(repo.path().join(".git")).unwrap().any(|e| {
        e.unwrap()
            .file_name()
            .as_bytes()
            .starts_with(b"sharedindex")
    }));
    equal_to_gits(&repo);
}

#[test]
fn a_sparse_index_keeps_its_folders() {
    let repo = many();
    repo.git(&["commit", "-q", "-a", "-m", "second"]);
    repo.git(&["sparse-checkout", "set", "--cone", "--sparse-index", "d1"]);
    repo.stage("d1/s1/f1.txt", "again\n");
    equal_to_gits(&repo);
    let r = open(&repo);
    let mut reader = r.reader();
    let read = |reader: &mut claude_reviewer::git::Reader<'_>, path: &str| {
        reader.read(&State::Index, &path.into(), 100).unwrap()
    };
    assert_eq!(read(&mut reader, "d1/s1/f1.txt").unwrap(), b"again\n");
    // In a folder that the index has as one entry.
    assert_eq!(read(&mut reader, "d2/s2/f2.txt").unwrap(), b"2\n");
    assert_eq!(read(&mut reader, "d2/s2/none"), None);
}

#[test]
fn a_file_written_in_the_same_tick_as_the_index_is_read() {
    let repo = Repo::new();
    repo.stage("a", "one\n").commit("first");
    for i in 0..20 {
        repo.stage("a", format!("{i:04}\n"));
        // The same length, immediately after.
        repo.write("a", format!("{:04}\n", i + 1000));
        let r = open(&repo);
        assert_eq!(paths(&r.unstaged(false).unwrap()), ["a"]);
    }
}

#[test]
fn a_touched_file_is_not_changed() {
    let repo = Repo::new();
    repo.stage("a", "one\n").commit("first");
    let later = std::time::SystemTime::now() + std::time::Duration::from_secs(60);
    fs::File::open(repo.path().join("a"))
        .unwrap()
        .set_modified(later)
        .unwrap();
    let r = open(&repo);
    assert!(r.unstaged(true).unwrap().entries.is_empty());
}

#[test]
fn the_executable_bit_counts_only_where_git_trusts_it() {
    let repo = Repo::new();
    repo.stage("run.sh", "#!/bin/sh\n").commit("first");
    set_executable(&repo.path().join("run.sh"));
    equal_to_gits(&repo);
    let r = open(&repo);
    let change = r.unstaged(false).unwrap();
    assert_eq!(
        change.entries[0].new.as_ref().unwrap().mode,
        FileMode::Executable
    );
    assert!(matches!(
        r.reader().load(&change, 0).unwrap().body,
        Body::Same
    ));
    repo.git(&["config", "core.fileMode", "false"]);
    let r = open(&repo);
    assert!(r.unstaged(false).unwrap().entries.is_empty());
}

#[test]
fn unmerged_and_intended_entries_are_not_staged() {
    let repo = Repo::new();
    repo.stage("a", "one\n").commit("first");
    repo.write("later", "text\n");
    repo.git(&["add", "-N", "later"]);
    equal_to_gits(&repo);
    let r = open(&repo);
    assert!(r.staged().unwrap().entries.is_empty());
    assert_eq!(paths(&r.unstaged(false).unwrap()), ["later"]);
    // A rename that only the worktree has.
    fs::rename(repo.path().join("a"), repo.path().join("b")).unwrap();
    repo.git(&["add", "-N", "b"]);
    equal_to_gits(&repo);
}

#[test]
fn worktree_files_are_compared_as_git_would_store_them() {
    let repo = Repo::new();
    let utf16: Vec<u8> = [0xff, 0xfe]
        .into_iter()
        .chain("one\ntwo\n".encode_utf16().flat_map(u16::to_le_bytes))
        .collect();
    repo.stage(
        ".gitattributes",
        "*.txt text\n*.id ident\n*.u16 text working-tree-encoding=UTF-16\n*.crlf text eol=crlf\n*.raw -text\n",
    )
    .stage("a.txt", "one\r\ntwo\r\n")
    .stage("b.id", "$Id$\n")
    .stage("c.u16", &utf16)
    .stage("d.crlf", "one\r\n")
    .stage("e.raw", "one\r\n")
    .commit("first");
    // Rewritten like a checkout, with another time, so that every file has to be read.
    for f in ["a.txt", "b.id", "c.u16", "d.crlf", "e.raw"] {
        fs::remove_file(repo.path().join(f)).unwrap();
    }
    repo.git(&["checkout", "-q", "--", "."]);
    let later = std::time::SystemTime::now() + std::time::Duration::from_secs(60);
    for f in ["a.txt", "b.id", "c.u16", "d.crlf", "e.raw"] {
        fs::File::open(repo.path().join(f))
            .unwrap()
            .set_modified(later)
            .unwrap();
    }
    let r = open(&repo);
    assert_eq!(paths(&r.unstaged(false).unwrap()), [""; 0]);
    repo.write("a.txt", "one\r\n2\r\n")
        .write("b.id", "$Id: 123 $\nmore\n")
        .write("d.crlf", "2\r\n")
        .write("e.raw", "one\n");
    equal_to_gits(&repo);
    repo.git(&["config", "core.autocrlf", "true"]);
    equal_to_gits(&repo);
}

#[test]
fn dif_06_names_that_are_hard_to_write_come_through() {
    let repo = Repo::new();
    let hard: [&[u8]; 9] = [
        b"with space",
        b"tab\there",
        b"line\nbreak",
        b"quote\"d",
        b"back\\slash",
        b"esc\x1b[31m",
        b"a b/ b/c",
        b"caf\xe9.txt",
        "ü€🦀".as_bytes(),
    ];
    for name in hard {
        let path = repo.path().join(std::ffi::OsStr::from_bytes(name));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "text\n").unwrap();
    }
    let r = open(&repo);
    let mut untracked: Vec<_> = r
        .unstaged(true)
        .unwrap()
        .entries
        .iter()
        .map(|e| e.path().as_bytes().to_vec())
        .collect();
    let mut expected: Vec<_> = hard.iter().map(|n| n.to_vec()).collect();
    untracked.sort();
    expected.sort();
    assert_eq!(untracked, expected);
    repo.git(&["add", "."]);
    equal_to_gits(&repo);
    repo.commit("first");
    for name in hard {
        fs::write(
            repo.path().join(std::ffi::OsStr::from_bytes(name)),
            "changed\n",
        )
        .unwrap();
    }
    equal_to_gits(&repo);
}

#[test]
fn new_files_in_place_of_tracked_ones_are_seen() {
    let repo = Repo::new();
    repo.stage("file", "1\n")
        .stage("folder/a", "1\n")
        .stage("linked/a", "1\n")
        .stage("same/a", "1\n")
        .commit("first");
    fs::remove_file(repo.path().join("file")).unwrap();
    fs::remove_dir_all(repo.path().join("folder")).unwrap();
    fs::remove_dir_all(repo.path().join("linked")).unwrap();
    repo.write("file/deep/inside", "2\n")
        .write("folder", "3\n")
        .write("same/b", "4\n");
    symlink("same", &repo.path().join("linked"));
    let r = open(&repo);
    for change in [r.unstaged(true).unwrap(), r.changes(None).unwrap().0] {
        let new: Vec<_> = change
            .entries
            .iter()
            .filter(|e| e.new.is_some())
            .map(|e| e.path().to_wire())
            .collect();
        assert_eq!(new, ["file/deep/inside", "folder", "linked", "same/b"]);
    }
}

#[test]
fn dif_05_submodules_are_their_commits() {
    let inner = Repo::new();
    inner.stage("a", "one\n").commit("first");
    let repo = Repo::new();
    repo.stage("x", "x\n").commit("first");
    repo.git(&[
        "-c",
        "protocol.file.allow=always",
        "submodule",
        "-q",
        "add",
        inner.path().to_str().unwrap(),
        "sub",
    ]);
    equal_to_gits(&repo);
    repo.commit("with a submodule");
    let sub = repo.path().join("sub");
    let in_sub = |args: &[&str]| repo.git(&[&["-C", sub.to_str().unwrap()], args].concat());
    // Changed inside, then committed inside, then staged.
    fs::write(sub.join("a"), "two\n").unwrap();
    equal_to_gits(&repo);
    let r = open(&repo);
    let change = r.unstaged(false).unwrap();
    assert!(matches!(
        r.reader().load(&change, 0).unwrap().body,
        Body::Submodule { dirty: true }
    ));
    in_sub(&["commit", "-q", "-a", "-m", "two"]);
    equal_to_gits(&repo);
    repo.git(&["add", "sub"]);
    equal_to_gits(&repo);
    repo.commit("bumped");
    // Submodules that `.gitmodules` marks as ignored are not ignored.
    repo.git(&["config", "-f", ".gitmodules", "submodule.sub.ignore", "all"]);
    fs::write(sub.join("a"), "three\n").unwrap();
    in_sub(&["commit", "-q", "-a", "-m", "three"]);
    let r = open(&repo);
    assert!(paths(&r.unstaged(false).unwrap()).contains(&"sub".to_owned()));
    // Untracked files inside do not make it dirty, and a folder that is not checked out is not a
    // change.
    repo.git(&["add", "-f", "sub", ".gitmodules"]);
    repo.commit("again");
    fs::write(sub.join("new"), "").unwrap();
    let r = open(&repo);
    assert_eq!(paths(&r.unstaged(false).unwrap()), [""; 0]);
    repo.git(&["submodule", "-q", "deinit", "-f", "sub"]);
    equal_to_gits(&repo);
}

#[test]
fn changes_take_index_and_worktree_together() {
    let repo = Repo::new();
    repo.stage("same", "1\n")
        .stage("staged", "1\n")
        .stage("both", "1\n")
        .stage("back", "1\n")
        .stage("gone", "1\n")
        .stage("kept", "1\n")
        .commit("first");
    repo.stage("staged", "2\n")
        .stage("both", "2\n")
        .write("both", "3\n")
        .stage("back", "2\n")
        .write("back", "1\n");
    repo.stage("added", "1\n")
        .stage("came and went", "1\n")
        .write("untracked", "1\n");
    fs::remove_file(repo.path().join("came and went")).unwrap();
    repo.git(&["rm", "-q", "gone"]);
    repo.git(&["rm", "-q", "--cached", "kept"]);
    let r = open(&repo);
    let (change, label) = r.changes(None).unwrap();
    assert_eq!(label, "HEAD");
    let all: Vec<_> = change
        .entries
        .iter()
        .map(|e| (e.path().to_wire(), e.kind))
        .collect();
    let expected = [
        ("added", ChangeKind::Added),
        ("both", ChangeKind::Modified),
        ("gone", ChangeKind::Deleted),
        ("staged", ChangeKind::Modified),
        ("untracked", ChangeKind::Added),
    ];
    // `gone` and one of the new files are equal, which is a rename, as in git.
    let renamed = all
        .iter()
        .any(|(_, k)| matches!(k, ChangeKind::Renamed { .. }));
    if !renamed {
        assert_eq!(all, expected.map(|(p, k)| (p.to_owned(), k)));
    }
    let mut reader = r.reader();
    let both = change
        .entries
        .iter()
        .position(|e| e.path().as_bytes() == b"both")
        .unwrap();
    let file = reader.load(&change, both).unwrap();
    assert_eq!(file.text().unwrap().new.whole().unwrap(), b"3\n");
    // Reading it twice gives the same result.
    assert_eq!(
        reader
            .load(&change, both)
            .unwrap()
            .text()
            .unwrap()
            .new
            .whole()
            .unwrap(),
        b"3\n"
    );
}

#[test]
fn a_file_that_changes_during_the_review_is_told() {
    let repo = Repo::new();
    repo.stage("a", "one\n").commit("first");
    repo.write("a", "two\n");
    let r = open(&repo);
    let change = r.unstaged(false).unwrap();
    let mut reader = r.reader();
    reader.load(&change, 0).unwrap();
    repo.write("a", "three\n");
    let e = reader.load(&change, 0).unwrap_err();
    assert!(e.message.contains("changed during the review"), "{e}");
    fs::remove_file(repo.path().join("a")).unwrap();
    assert!(reader.load(&change, 0).is_err());
}

#[test]
fn dif_01_an_attribute_hides_nothing() {
    let repo = Repo::new();
    repo.stage("a.py", "x = 1\n").commit("first");
    repo.stage(
        ".gitattributes",
        "[attr]hide -diff\n*.py hide\n/deep/** binary\n",
    )
    .stage("a.py", "x = 2\n")
    .stage("deep/er/b.txt", "text\n")
    .stage("c.txt", "c\n");
    repo.stage("other/.gitattributes", "*.py diff\n")
        .stage("other/d.py", "x = 3\n");
    let hidden = |state: &str| {
        let r = open(&repo);
        let change = match state {
            "staged" => r.staged().unwrap(),
            "commit" => r.commit(r.resolve("HEAD").unwrap(), None).unwrap(),
            _ => r.changes(Some("HEAD")).unwrap().0,
        };
        let mut reader = r.reader();
        let mut out = Vec::new();
        for i in 0..change.entries.len() {
            let f = reader.load(&change, i).unwrap();
            out.push((f.path().to_wire(), f.text().unwrap().hidden));
        }
        out
    };
    let expected = [
        (".gitattributes", None),
        ("a.py", Some(Hidden::Attribute)),
        ("c.txt", None),
        ("deep/er/b.txt", Some(Hidden::Attribute)),
        ("other/.gitattributes", None),
        ("other/d.py", None),
    ]
    .map(|(p, h)| (p.to_owned(), h));
    assert_eq!(hidden("staged"), expected);
    assert_eq!(hidden("changes"), expected);
    repo.commit("second");
    assert_eq!(hidden("commit"), expected);
}

#[test]
fn reading_a_file_never_follows_a_link_and_never_waits() {
    let repo = Repo::new();
    repo.stage("policy.toml", "version = 1\n")
        .stage("dir/file", "x\n")
        .commit("first");
    let secret = repo.path().with_file_name("secret");
    fs::write(&secret, "secret\n").unwrap();
    symlink(secret.to_str().unwrap(), &repo.path().join("link"));
    symlink("dir", &repo.path().join("linked dir"));
    repo.git(&["add", "link", "linked dir"]);
    repo.commit("links");
    let fifo = repo.path().join("fifo");
    crate::support::mkfifo(&fifo);
    let r = open(&repo);
    let head = r.state_of(r.head().unwrap().unwrap()).unwrap();
    let mut reader = r.reader();
    for state in [State::Worktree, State::Index, head] {
        let mut read = |path: &str, max| reader.read(&state, &RepoPath::from(path), max);
        assert_eq!(
            read("policy.toml", 100).unwrap().unwrap(),
            b"version = 1\n",
            "{state:?}"
        );
        assert_eq!(read("policy.toml", 12).unwrap().unwrap().len(), 12);
        assert!(
            read("policy.toml", 11)
                .unwrap_err()
                .message
                .contains("larger than 11 bytes")
        );
        for none in [
            "link",
            "linked dir/file",
            "fifo",
            "dir",
            "nothing",
            "../secret",
            "dir/../policy.toml",
            "policy.toml/x",
            "",
            "/etc/passwd",
        ] {
            assert_eq!(read(none, 100).unwrap(), None, "{state:?} {none}");
        }
    }
    symlink("/dev/zero", &repo.path().join("zero"));
    assert_eq!(
        r.reader()
            .read(&State::Worktree, &"zero".into(), 100)
            .unwrap(),
        None
    );
}

#[test]
fn a_pipe_in_the_place_of_the_index_is_told_and_not_waited_for() {
    use std::io::Read as _;
    let repo = Repo::new();
    repo.stage("a", "a\n").commit("first");
    let index = repo.path().join(".git/index");
    fs::remove_file(&index).unwrap();
    crate::support::mkfifo(&index);
    for source in ["staged", "unstaged", "changes"] {
        let mut program = std::process::Command::new(crate::support::binary());
        program
            .args(["review", source])
            .current_dir(repo.path())
            .env("HOME", repo.home());
        let mut child = program
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let started = std::time::Instant::now();
        let code = loop {
            if let Some(status) = child.try_wait().unwrap() {
                break status.code();
            }
            if started.elapsed() > std::time::Duration::from_secs(60) {
                child.kill().unwrap();
                panic!("review {source} waits for the pipe");
            }
            std::thread::sleep(std::time::Duration::from_millis(5));
        };
        let mut said = String::new();
        child
            .stderr
            .take()
            .unwrap()
            .read_to_string(&mut said)
            .unwrap();
        assert_eq!(code, Some(3), "{said}");
        assert!(
            said.contains(".git/index is not a regular file") && said.contains("git reset"),
            "{said}"
        );
    }
}

#[test]
fn two_threads_read_one_repository() {
    let repo = many();
    let r = open(&repo);
    let change = r.staged().unwrap();
    let alone = patch(&r, &change);
    std::thread::scope(|s| {
        let threads: Vec<_> = (0..2).map(|_| s.spawn(|| patch(&r, &change))).collect();
        for t in threads {
            assert_eq!(t.join().unwrap(), alone);
        }
    });
}

#[test]
fn a_repository_in_an_untracked_folder_is_told_of() {
    let repo = Repo::new();
    repo.stage("a", "a\n").commit("first");
    repo.git(&["init", "-q", "inner"]);
    repo.write("inner/secret.txt", "x\n");
    let r = open(&repo);
    let change = r.unstaged(true).unwrap();
    assert!(
        change.notes.iter().any(|n| n.contains("inner")),
        "{:?} {:?}",
        change.notes,
        paths(&change)
    );
}
