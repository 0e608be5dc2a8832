//! Runs real programs: shell scripts that misbehave.

use super::*;
use std::fmt::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

/// A script in its own folder.
struct Script {
    dir: tempfile::TempDir,
    path: PathBuf,
}

impl Script {
    fn new(body: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("program");
        std::fs::write(&path, format!("#!/bin/sh\n{body}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        Self { dir, path }
    }

    fn program<'a>(
        &'a self,
        args: &'a [OsString],
        env: &'a [(OsString, OsString)],
        seconds: u64,
    ) -> Program<'a> {
        Program {
            path: &self.path,
            args,
            env,
            dir: self.dir.path(),
            stdin: b"",
            deadline: Instant::now() + Duration::from_secs(seconds),
            max_stdout: 1 << 20,
            max_stderr: 1000,
            max_memory: None,
        }
    }

    /// Reads numbers that the script wrote to a file.
    fn numbers(&self, file: &str) -> Vec<i32> {
        let text = std::fs::read_to_string(self.dir.path().join(file)).unwrap_or_default();
        text.split_whitespace()
            .map(|n| n.parse().unwrap())
            .collect()
    }
}

fn path() -> Vec<(OsString, OsString)> {
    vec![("PATH".into(), "/usr/bin:/bin".into())]
}

fn block_on<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
        .block_on(future)
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

/// Returns true if a process runs; a zombie does not.
fn lives(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"));
    match stat {
        Ok(stat) => !stat
            .rsplit(')')
            .next()
            .unwrap_or_default()
            .trim_start()
            .starts_with('Z'),
        Err(_) if Path::new("/proc/self").exists() => false,
        Err(_) => {
            rustix::process::test_kill_process(rustix::process::Pid::from_raw(pid).unwrap()).is_ok()
        }
    }
}

#[track_caller]
fn gone(pids: &[i32]) {
    assert!(!pids.is_empty(), "the script did not say who it is");
    for pid in pids {
        assert!(!lives(*pid), "{pid} still runs");
    }
}

#[test]
fn a_program_gets_what_it_is_given_and_its_streams_stay_apart() {
    let script = Script::new("cat; echo \"$1 $A\"; pwd; echo oops >&2; exit 3");
    let env = [path(), vec![("A".into(), "b c".into())]].concat();
    let args = ["x;y".into()];
    let out = block_on(run(
        &Program {
            stdin: b"in\n",
            ..script.program(&args, &env, 20)
        },
        &Stop::default(),
    ))
    .unwrap();
    let dir = script.dir.path().canonicalize().unwrap();
    assert_eq!(out.end, End::Exit(3));
    assert_eq!(
        text(&out.stdout),
        format!("in\nx;y b c\n{}\n", dir.display())
    );
    assert_eq!(text(&out.stderr), "oops\n");
}

#[test]
fn cli_08_nothing_is_inherited_but_what_is_listed() {
    // A descriptor that the caller left open, as a shell does with `exec 9>lock`.
    let left_open = std::fs::File::open("/").unwrap();
    rustix::io::fcntl_setfd(&left_open, rustix::io::FdFlags::empty()).unwrap();
    let script = Script::new(
        "env; echo ---; ls -l /dev/fd/ | grep -c -- '-> /$'; cat /proc/$$/stat 2>/dev/null",
    );
    let env = [path(), vec![("ONLY".into(), "this".into())]].concat();
    let out = block_on(run(&script.program(&[], &env, 20), &Stop::default())).unwrap();
    let (vars, rest) = text(&out.stdout).split_once("---\n").unwrap();
    // Variables that a shell sets itself.
    let mut names: Vec<_> = vars.lines().map(|l| l.split('=').next().unwrap()).collect();
    names.retain(|n| !["PWD", "_", "SHLVL", "OLDPWD"].contains(n));
    names.sort_unstable();
    assert_eq!(names, ["ONLY", "PATH"]);
    assert!(rest.starts_with("0\n"), "{rest}");
}

#[test]
fn cli_04_who_ignores_the_polite_signal_ends_with_the_group() {
    let script = Script::new(
        "trap '' TERM\n(trap '' TERM; echo $(exec sh -c 'echo $PPID') >>pids; while :; do sleep 1; done) &\necho $$ >>pids\nwhile :; do sleep 1; done",
    );
    let start = Instant::now();
    let out = block_on(run(&script.program(&[], &path(), 1), &Stop::default())).unwrap();
    assert_eq!(out.end, End::TimedOut);
    let took = start.elapsed();
    assert!(
        took >= Duration::from_secs(6) && took < Duration::from_secs(8),
        "{took:?}"
    );
    let pids = script.numbers("pids");
    assert_eq!(pids.len(), 2);
    gone(&pids);
}

#[test]
fn who_heeds_the_polite_signal_is_not_waited_for_longer() {
    let script =
        Script::new("echo $$ >pids\ntrap 'echo bye; exit 0' TERM\nwhile :; do sleep 0.1; done");
    let start = Instant::now();
    let out = block_on(run(&script.program(&[], &path(), 1), &Stop::default())).unwrap();
    assert_eq!((out.end, text(&out.stdout)), (End::TimedOut, "bye\n"));
    assert!(start.elapsed() < Duration::from_secs(5));
    gone(&script.numbers("pids"));
}

#[test]
fn a_stopped_run_ends_the_program_within_two_seconds() {
    let script = Script::new("trap '' TERM INT\necho $$ >pids\nwhile :; do sleep 1; done");
    let stop = Stop::default();
    let env = path();
    let program = script.program(&[], &env, 60);
    let (out, start) = block_on(async {
        let ctrl_c = async {
            while script.numbers("pids").is_empty() {
                sleep(LOOK).await;
            }
            stop.now(Signal::Interrupt);
            Instant::now()
        };
        tokio::join!(run(&program, &stop), ctrl_c)
    });
    assert_eq!(out.unwrap().end, End::Stopped(Signal::Interrupt));
    assert!(
        start.elapsed() < Duration::from_secs(2),
        "{:?}",
        start.elapsed()
    );
    gone(&script.numbers("pids"));
    // A stopped run starts no program.
    std::fs::remove_file(script.dir.path().join("pids")).unwrap();
    let again = block_on(run(&program, &stop)).unwrap();
    assert_eq!(again.end, End::Stopped(Signal::Interrupt));
    assert!(script.numbers("pids").is_empty());
}

#[test]
fn a_run_that_is_dropped_takes_the_group_with_it() {
    let script =
        Script::new("(echo $(exec sh -c 'echo $PPID') >>pids; sleep 60) &\necho $$ >>pids\nwait");
    let stop = Stop::default();
    let env = path();
    let program = script.program(&[], &env, 60);
    block_on(async {
        tokio::select! {
            _ = run(&program, &stop) => panic!("it ended"),
            () = async { while script.numbers("pids").len() < 2 { sleep(LOOK).await; } } => {}
        }
        sleep(Duration::from_millis(200)).await;
    });
    gone(&script.numbers("pids"));
}

#[test]
fn a_child_that_is_left_behind_with_the_pipe_is_ended() {
    let script = Script::new(
        "(echo $(exec sh -c 'echo $PPID') >>pids; exec sleep 60) &\nsleep 0.2\necho done",
    );
    let start = Instant::now();
    let out = block_on(run(&script.program(&[], &path(), 30), &Stop::default())).unwrap();
    assert_eq!((out.end, text(&out.stdout)), (End::Exit(0), "done\n"));
    assert!(start.elapsed() < Duration::from_secs(10));
    gone(&script.numbers("pids"));
}

#[test]
fn cli_04_who_leaves_the_group_with_the_pipe_is_not_waited_for() {
    // util-linux has it; on other systems the test is skipped.
    if !Path::new("/usr/bin/setsid").exists() {
        return;
    }
    let script = Script::new(
        "setsid sh -c 'echo $$ >pids; exec sleep 30' &\nwhile [ ! -s pids ]; do sleep 0.1; done\necho done",
    );
    let start = Instant::now();
    let out = block_on(run(&script.program(&[], &path(), 20), &Stop::default())).unwrap();
    assert_eq!((out.end, text(&out.stdout)), (End::Exit(0), "done\n"));
    assert!(start.elapsed() < Duration::from_secs(10));
    for pid in script.numbers("pids") {
        rustix::process::kill_process(
            rustix::process::Pid::from_raw(pid).unwrap(),
            rustix::process::Signal::KILL,
        )
        .unwrap();
    }
}

#[test]
fn cli_05_a_flood_on_standard_error_is_read_and_forgotten() {
    let script =
        Script::new("head -c 1000000000 /dev/zero >&2; echo 'the last words' >&2; echo out");
    let out = block_on(run(&script.program(&[], &path(), 60), &Stop::default())).unwrap();
    assert_eq!((out.end, text(&out.stdout)), (End::Exit(0), "out\n"));
    assert_eq!(out.stderr.len(), 1000);
    assert!(out.stderr.ends_with(b"the last words\n"));
}

#[test]
fn a_flood_on_standard_output_ends_the_program() {
    let script = Script::new("echo $$ >pids\nexec cat /dev/zero");
    let out = block_on(run(&script.program(&[], &path(), 60), &Stop::default())).unwrap();
    assert_eq!(out.end, End::TooMuch);
    assert!(out.stdout.len() <= 1 << 20);
    gone(&script.numbers("pids"));
}

#[test]
fn cli_06_a_program_need_not_read_what_it_is_fed() {
    let prompt = vec![b'x'; 8 << 20];
    for (body, end) in [
        ("exit 0", End::Exit(0)),
        ("exec 0<&-; sleep 0.3; exit 4", End::Exit(4)),
        ("sleep 60", End::TimedOut),
    ] {
        let script = Script::new(body);
        let env = path();
        let program = Program {
            stdin: &prompt,
            ..script.program(&[], &env, 2)
        };
        assert_eq!(
            block_on(run(&program, &Stop::default())).unwrap().end,
            end,
            "{body}"
        );
    }
    let script = Script::new("cat");
    let env = path();
    let program = Program {
        stdin: &prompt,
        max_stdout: 9 << 20,
        ..script.program(&[], &env, 30)
    };
    let out = block_on(run(&program, &Stop::default())).unwrap();
    assert!(out.end == End::Exit(0) && out.stdout == prompt);
}

#[test]
fn lines_come_whole_and_one_by_one() {
    let script = Script::new("printf 'a\\n\\nb'; sleep 0.2; printf 'c\\r\\nd'");
    let mut lines = String::new();
    let mut keep = |line: &[u8]| {
        write!(lines, "[{}]", text(line).escape_default()).unwrap();
        ControlFlow::Continue(())
    };
    let out = block_on(run_lines(
        &script.program(&[], &path(), 20),
        &Stop::default(),
        10,
        &mut keep,
    ))
    .unwrap();
    assert_eq!((out.end, lines.as_str()), (End::Exit(0), "[a][][bc\\r][d]"));
    for body in [
        "printf 'short\\nnot so short\\n'",
        "printf 'short\\nnot so short'",
    ] {
        let script = Script::new(body);
        let mut lines = Vec::new();
        let mut keep = |line: &[u8]| {
            lines.push(line.to_vec());
            ControlFlow::Continue(())
        };
        let out = block_on(run_lines(
            &script.program(&[], &path(), 20),
            &Stop::default(),
            10,
            &mut keep,
        ))
        .unwrap();
        assert_eq!(
            (out.end, lines),
            (End::TooMuch, vec![b"short".to_vec()]),
            "{body}"
        );
    }
}

#[test]
fn who_takes_the_lines_can_end_the_program() {
    let script = Script::new("echo $$ >pids\necho a\necho b\necho c\nsleep 60");
    let mut lines = 0;
    let mut take = |line: &[u8]| {
        lines += 1;
        if line == b"b" {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    };
    let out = block_on(run_lines(
        &script.program(&[], &path(), 30),
        &Stop::default(),
        10,
        &mut take,
    ))
    .unwrap();
    assert_eq!((out.end, lines), (End::Ended, 2));
    gone(&script.numbers("pids"));
}

#[test]
fn what_cannot_be_started_is_an_error_and_a_signal_is_an_end() {
    let script = Script::new("kill -9 $$");
    let env = path();
    let out = block_on(run(&script.program(&[], &env, 20), &Stop::default())).unwrap();
    assert_eq!(out.end, End::Signal(9));
    let nothing = script.dir.path().join("nothing");
    let program = Program {
        path: &nothing,
        ..script.program(&[], &env, 20)
    };
    let error = block_on(run(&program, &Stop::default())).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::NotFound);
    let late = block_on(run(&script.program(&[], &env, 0), &Stop::default())).unwrap();
    assert_eq!(late.end, End::TimedOut);
}

#[test]
fn neither_values_nor_the_input_are_shown() {
    let env = [("ANTHROPIC_API_KEY".into(), "canary".into())];
    let script = Script::new("");
    let program = Program {
        stdin: b"canary",
        ..script.program(&[], &env, 20)
    };
    let shown = format!("{program:?}");
    assert!(
        shown.contains("ANTHROPIC_API_KEY") && !shown.contains("canary"),
        "{shown}"
    );
}

#[test]
#[cfg(target_os = "linux")]
fn a_program_whose_descendants_use_too_much_memory_ends() {
    // `tail` keeps its output in memory, and no program reads it.
    let script = Script::new(
        "head -c 300000000 /dev/zero | tail -c 200000000 | sleep 20 & echo $! > pid; wait",
    );
    let env = path();
    let program = Program {
        max_memory: Some(64 << 20),
        ..script.program(&[], &env, 30)
    };
    let started = Instant::now();
    let output = block_on(run(&program, &Stop::default())).unwrap();
    assert_eq!(output.end, End::OutOfMemory);
    assert!(started.elapsed() < Duration::from_secs(15));
    assert!(!lives(script.numbers("pid")[0]), "the whole group ends");
    let enough = Program {
        max_memory: Some(1 << 30),
        ..program
    };
    let short = Script::new("head -c 300000000 /dev/zero | tail -c 200000000 > /dev/null");
    let program = Program {
        path: &short.path,
        dir: short.dir.path(),
        ..enough
    };
    assert_eq!(
        block_on(run(&program, &Stop::default())).unwrap().end,
        End::Exit(0)
    );
}
