//! Tests of other entries in place of the file of decisions.

use super::*;

/// An entry in place of a file of decisions, with the text of the error.
type Strange = (&'static str, fn(&std::path::Path));

const STRANGE: [Strange; 4] = [
    ("is a directory", |path| {
        std::fs::create_dir(path).unwrap();
        std::fs::write(path.join("a.toml"), "version = 1\n").unwrap();
    }),
    ("is not a regular file", |path| {
        // Opening a pipe without a writer blocks.
        assert!(
            std::process::Command::new("mkfifo")
                .arg(path)
                .status()
                .unwrap()
                .success()
        );
    }),
    ("is not a regular file", |path| {
        drop(std::os::unix::net::UnixListener::bind(path).unwrap());
    }),
    ("is a symbolic link", |path| {
        std::os::unix::fs::symlink("nowhere.toml", path).unwrap();
    }),
];

#[test]
fn dsp_03_anything_but_a_file_in_its_place_is_an_error_and_keeps_no_command_waiting() {
    for file in [SHARED, OWN] {
        for (what, make) in STRANGE {
            let repo = reviewed();
            let path = repo.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            make(&path);
            let kind = path.symlink_metadata().unwrap().file_type();
            let commands: [&[&str]; 5] = [
                &["review", "staged"],
                &["review", "branch", "--base", "main"],
                &["findings"],
                &["reject", "F1", "--share"],
                &["baseline", "check"],
            ];
            for args in commands {
                // A person's own decisions are not part of a baseline.
                if file == OWN && args[0] == "baseline" {
                    continue;
                }
                let run = repo.reviewer(args).run_any();
                let is_error = matches!(run.code, 2 | 3);
                assert!(
                    is_error && run.stderr.contains(file),
                    "{what} {args:?}: {} {}",
                    run.code,
                    run.stderr
                );
                assert!(
                    run.stderr.contains("hint: "),
                    "{what} {args:?}: {}",
                    run.stderr
                );
                if args[0] != "reject" {
                    assert!(
                        run.code == 2 && run.stderr.contains(what),
                        "{what} {args:?}: {}",
                        run.stderr
                    );
                    assert!(
                        run.stderr.contains(&format!("mv {file} {file}.old")),
                        "{what} {args:?}: {}",
                        run.stderr
                    );
                }
            }
            assert_eq!(
                path.symlink_metadata().unwrap().file_type(),
                kind,
                "{what}: it stays"
            );
            std::fs::rename(&path, repo.path().join("moved")).unwrap();
            assert_eq!(staged(&repo).0, "block", "{what}: the hint leads out");
        }
    }
}

#[test]
fn dsp_03_a_link_in_the_place_of_the_folder_is_an_error() {
    let repo = reviewed();
    decide(&repo, &["reject", "F1", "--share"]);
    std::fs::remove_file(repo.path().join(OWN)).unwrap();
    std::fs::rename(
        repo.path().join(".claude-reviewer"),
        repo.path().join("elsewhere"),
    )
    .unwrap();
    std::os::unix::fs::symlink("elsewhere", repo.path().join(".claude-reviewer")).unwrap();
    let run = repo.reviewer(&["review", "staged"]).run(2);
    assert!(
        run.stderr.contains(".claude-reviewer is a symbolic link")
            && run
                .stderr
                .contains("mv .claude-reviewer .claude-reviewer.old"),
        "{}",
        run.stderr
    );
}

#[test]
fn dsp_03_a_file_that_cannot_be_read_is_an_error() {
    use std::os::unix::fs::PermissionsExt as _;
    if rustix::process::geteuid().is_root() {
        // The superuser ignores permissions.
        return;
    }
    let repo = reviewed();
    decide(&repo, &["reject", "F1", "--share"]);
    std::fs::remove_file(repo.path().join(OWN)).unwrap();
    std::fs::set_permissions(
        repo.path().join(SHARED),
        std::fs::Permissions::from_mode(0o000),
    )
    .unwrap();
    let run = repo.reviewer(&["review", "staged"]).run(2);
    assert!(
        run.stderr.contains(SHARED) && run.stderr.contains("chmod u+r"),
        "{}",
        run.stderr
    );
}

/// An entry in place of the file, and the function that creates it.
type Made = (&'static str, fn(&Repo));

#[test]
fn dsp_03_a_gate_does_not_pass_because_of_something_else_in_the_place_of_the_file() {
    let module = |repo: &Repo| {
        let head = repo.git(&["rev-parse", "HEAD"]).trim().to_owned();
        repo.git(&[
            "update-index",
            "--add",
            "--cacheinfo",
            &format!("160000,{head},{SHARED}"),
        ]);
    };
    let folder = |repo: &Repo| {
        repo.stage(&format!("{SHARED}/a.toml"), "version = 1\n");
    };
    let link = |repo: &Repo| {
        std::fs::create_dir_all(repo.path().join(".claude-reviewer")).unwrap();
        std::os::unix::fs::symlink("nowhere.toml", repo.path().join(SHARED)).unwrap();
        repo.git(&["add", SHARED]);
    };
    let makes: [Made; 3] = [
        ("is not a regular file", module),
        ("is a directory", folder),
        ("is a symbolic link", link),
    ];
    for (what, make) in makes {
        // At the base: an error.
        let repo = Repo::new();
        repo.stage("README", "demo\n").commit("seed");
        make(&repo);
        repo.commit("base");
        repo.git(&["checkout", "-q", "-b", "topic"]);
        repo.git(&["commit", "-q", "--allow-empty", "-m", "go on"]);
        repo.stage("note.txt", "x\n").commit("a clean change");
        let run = repo
            .reviewer(&["review", "branch", "--base", "main", "--gate"])
            .run(2);
        assert!(
            run.stderr.contains(&format!("{SHARED} {what} in commit ")),
            "{what}: {}",
            run.stderr
        );
        assert!(
            run.stderr.contains("hint: ") && run.stderr.contains("git log -1 "),
            "{what}: {}",
            run.stderr
        );
        // In the change: a finding.
        let repo = Repo::new();
        repo.stage("README", "demo\n").commit("seed");
        repo.git(&["checkout", "-q", "-b", "topic"]);
        make(&repo);
        repo.commit("change");
        let report = repo
            .reviewer(&[
                "review", "branch", "--base", "main", "--gate", "--format", "json",
            ])
            .run_any()
            .json();
        assert_ne!(report["verdict"], "pass", "{what}: {report}");
    }
}
