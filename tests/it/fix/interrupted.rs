//! A fix that is interrupted or killed changes nothing, and leaves no copy.

use super::*;

#[test]
fn dsp_05_an_interrupted_fix_changes_nothing_and_is_stored() {
    for (signal, code) in [("INT", 130), ("TERM", 143)] {
        let also = |r: &Request| {
            r.prompt().contains("in the private copy").then(|| {
                Reply(vec![crate::loopback::Step::Wait(
                    std::time::Duration::from_secs(30),
                )])
            })
        };
        let case = Case::with(CODE, vec![vec![]], "", Box::new(also));
        let before = state(&case.repo);
        let tmp = case.repo.outside().join("tmp");
        std::fs::create_dir_all(&tmp).unwrap();
        let mut command = case
            .repo
            .reviewer(&["fix", "F1", "--yes"])
            .env("TMPDIR", &tmp)
            .command();
        command
            .stdin(std::process::Stdio::null())
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped());
        let child = command.spawn().unwrap();
        while !case
            .server
            .questions()
            .iter()
            .any(|r| r.prompt().contains("in the private copy"))
        {
            std::thread::yield_now();
        }
        assert!(
            std::process::Command::new("kill")
                .args([&format!("-{signal}"), &child.id().to_string()])
                .status()
                .unwrap()
                .success()
        );
        let out = child.wait_with_output().unwrap();
        let stderr = String::from_utf8_lossy(&out.stderr).into_owned();
        assert_eq!(out.status.code(), Some(code), "{stderr}");
        assert!(stderr.contains("the worktree is unchanged"), "{stderr}");
        assert!(state(&case.repo) == before);
        assert_eq!(left(&case.repo), Vec::<PathBuf>::new());
        assert_eq!(case.verdicts(), ["interrupted"]);
        assert_eq!(case.stored()[0]["outcome"], json!("interrupted"));
    }
}

/// Starts a fix with a known folder for temporary files.
fn start(case: &Case, out: std::process::Stdio) -> std::process::Child {
    let tmp = case.repo.outside().join("tmp");
    std::fs::create_dir_all(&tmp).unwrap();
    let mut command = case
        .repo
        .reviewer(&["fix", "F1", "--yes"])
        .env("TMPDIR", &tmp)
        .command();
    command
        .stdin(std::process::Stdio::null())
        .stdout(out)
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap()
}

fn signal(child: &std::process::Child, signal: rustix::process::Signal) {
    // It may have ended already.
    let _ = rustix::process::kill_process(rustix::process::Pid::from_child(child), signal);
}

/// Returns a full pipe. It is never read while both ends are kept open.
fn full_pipe() -> (std::io::PipeReader, std::io::PipeWriter) {
    use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
    use std::io::Write as _;
    let (reader, mut writer) = std::io::pipe().unwrap();
    let flags = fcntl_getfl(&writer).unwrap();
    fcntl_setfl(&writer, flags | OFlags::NONBLOCK).unwrap();
    while writer.write(b"x").is_ok() {}
    fcntl_setfl(&writer, flags).unwrap();
    (reader, writer)
}

#[test]
fn dsp_05_a_second_signal_ends_a_fix_that_hangs_and_removes_its_copy() {
    let case = Case::new(vec![vec![edit("a.py", BAD, GOOD)]]);
    let before = state(&case.repo);
    // The program blocks when it prints the findings to fix, after the copy was made.
    let (_reader, writer) = full_pipe();
    let mut child = start(&case, writer.into());
    while left(&case.repo).is_empty() {
        std::thread::yield_now();
    }
    let status = loop {
        signal(&child, rustix::process::Signal::INT);
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        std::thread::yield_now();
    };
    assert_eq!(status.code(), Some(130));
    assert_eq!(left(&case.repo), Vec::<PathBuf>::new(), "the copy is left");
    assert!(state(&case.repo) == before, "the repository was changed");
}

#[test]
fn dsp_05_the_copy_of_a_killed_fix_is_removed_by_the_next_one() {
    let also = |r: &Request| {
        let is_attempt = r.prompt().contains("in the private copy");
        is_attempt.then(|| {
            Reply(vec![crate::loopback::Step::Wait(
                std::time::Duration::from_secs(30),
            )])
        })
    };
    let case = Case::with(CODE, vec![vec![]], "", Box::new(also));
    let before = state(&case.repo);
    let mut child = start(&case, std::process::Stdio::null());
    while !case
        .server
        .questions()
        .iter()
        .any(|r| r.prompt().contains("in the private copy"))
    {
        std::thread::yield_now();
    }
    signal(&child, rustix::process::Signal::KILL);
    assert_eq!(child.wait().unwrap().code(), None);
    let copies = left(&case.repo);
    assert!(!copies.is_empty(), "nothing could be removed");
    assert!(state(&case.repo) == before, "the repository was changed");
    assert_eq!(case.verdicts(), ["interrupted"], "the attempt is stored");
    // The copy of a running process stays: it belongs to another fix.
    let mut other = start(&case, std::process::Stdio::null());
    while case
        .server
        .questions()
        .iter()
        .filter(|r| r.prompt().contains("in the private copy"))
        .count()
        < 2
    {
        std::thread::yield_now();
    }
    let living = left(&case.repo);
    assert!(
        !living.is_empty() && living.iter().all(|path| !copies.contains(path)),
        "{copies:?} {living:?}"
    );
    let mut third = start(&case, std::process::Stdio::null());
    while case
        .server
        .questions()
        .iter()
        .filter(|r| r.prompt().contains("in the private copy"))
        .count()
        < 3
    {
        std::thread::yield_now();
    }
    let now = left(&case.repo);
    assert!(
        living.iter().all(|path| now.contains(path)),
        "{living:?} {now:?}"
    );
    for child in [&mut other, &mut third] {
        signal(child, rustix::process::Signal::TERM);
        assert_eq!(child.wait().unwrap().code(), Some(143));
    }
    assert_eq!(left(&case.repo), Vec::<PathBuf>::new());
}
