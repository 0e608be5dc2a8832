//! Tests of the output on a terminal, and of the diagnostic events that are printed on request.

use crate::loopback::{Server, finding};
use crate::support::{Repo, Reviewer, line_with_key};
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::process::Stdio;
use std::time::Duration;

const BAD: &str = "a\n<<<<<<< HEAD\nb\n=======\nc\n>>>>>>> topic\n";

/// Runs the program with a pseudo-terminal as all three streams. Returns the exit code and all
/// output, with plain line ends.
fn on_terminal(reviewer: Reviewer) -> (i32, String) {
    typed(reviewer, "")
}

/// Runs the program on a pseudo-terminal with these lines as input.
pub fn typed(reviewer: Reviewer, input: &str) -> (i32, String) {
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    let controller = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&controller).unwrap();
    unlockpt(&controller).unwrap();
    let name = ptsname(&controller, Vec::new())
        .unwrap()
        .into_string()
        .unwrap();
    let open = || Stdio::from(File::options().read(true).write(true).open(&name).unwrap());
    let mut command = reviewer.command();
    command
        .env("TERM", "xterm-256color")
        .env_remove("CI")
        .stdin(open())
        .stdout(open())
        .stderr(open());
    let mut child = command.spawn().unwrap();
    // The command has copies of the terminal: the read below ends when the last one is closed.
    drop(command);
    let mut printed = Vec::new();
    let mut buffer = [0; 4096];
    let mut screen = File::from(controller);
    screen.write_all(input.as_bytes()).unwrap();
    // Linux reports EIO after the program has closed its side.
    while let Ok(n @ 1..) = screen.read(&mut buffer) {
        printed.extend_from_slice(&buffer[..n]);
    }
    let code = child.wait().unwrap().code().unwrap();
    (
        code,
        String::from_utf8(printed).unwrap().replace("\r\n", "\n"),
    )
}

fn review(repo: &Repo, args: &[&str]) -> (i32, String) {
    on_terminal(repo.reviewer(&[&["review", "staged", "--no-save"], args].concat()))
}

#[test]
fn a_terminal_shows_the_line_for_scripts_only_where_the_review_fails_or_v_is_given() {
    let repo = Repo::new();
    repo.stage("fine.txt", "fine\n");
    let (code, text) = review(&repo, &[]);
    assert!(
        code == 0 && text.contains("PASS") && !text.contains("review: complete"),
        "{text}"
    );
    let (code, text) = review(&repo, &["-v"]);
    assert!(code == 0 && text.trim_end().ends_with(" exit=0"), "{text}");
    repo.stage("merge.txt", BAD);
    let (code, text) = review(&repo, &[]);
    assert!(code == 1 && text.trim_end().ends_with(" exit=1"), "{text}");
    let (code, text) = on_terminal(repo.reviewer(&["review", "commit", "nope"]));
    assert!(code == 2 && text.trim_end().ends_with(" exit=2"), "{text}");
}

#[test]
fn quiet_prints_nothing_where_the_exit_code_is_0() {
    let repo = Repo::new();
    repo.stage("fine.txt", "fine\n");
    assert_eq!(review(&repo, &["-q"]), (0, String::new()));
    let run = repo.review(&["staged", "-q"], 0);
    assert_eq!((run.stdout.as_str(), run.stderr.as_str()), ("", ""));
    repo.stage("merge.txt", BAD);
    let (code, text) = review(&repo, &["-q"]);
    assert!(code == 1 && text.contains("merge.txt"), "{text}");
    let run = repo.review(&["staged", "-q", "--exit-zero"], 0);
    assert_eq!((run.stdout.as_str(), run.stderr.as_str()), ("", ""));
    // A program that requests a document gets it.
    let report = repo.review_json(&["staged", "-q", "--exit-zero"], 0);
    assert_eq!(report["verdict"], "block");
}

#[test]
fn a_hook_that_passes_prints_one_line() {
    let repo = Repo::new();
    repo.stage("fine.txt", "fine\n");
    let hook = |args: &[&str]| {
        on_terminal(repo.reviewer(&[&["review", "--hook", "pre-commit"], args].concat()))
    };
    let (code, text) = hook(&[]);
    assert!(
        code == 0 && text.starts_with("claude-reviewer: PASS"),
        "{text}"
    );
    assert_eq!(text.lines().count(), 1, "{text}");
    assert_eq!(hook(&["-q"]), (0, String::new()));
}

#[test]
fn events_show_phases_and_skipped_files_on_request() {
    let repo = Repo::new();
    repo.write(
        ".claude-reviewer.toml",
        "version = 1\nignore = [\"vendor/**\"]\n",
    )
    .stage("fine.txt", "fine\n");
    repo.stage("vendor/\u{1b}]0;x.txt", line_with_key());
    let silent = repo.review(&["staged", "--no-save", "-v"], 0);
    assert!(!silent.stderr.contains("phase"), "{}", silent.stderr);
    let run = repo.review(&["staged", "--no-save", "-vv"], 0);
    for part in ["DEBUG", "phase=\"scan\"", " ms=", "skipped", "vendor/"] {
        assert!(run.stderr.contains(part), "{part}: {}", run.stderr);
    }
    assert!(
        !run.stderr.contains(['\u{1b}', '\u{7}']),
        "{:?}",
        run.stderr
    );
    assert!(
        !run.stderr.contains(line_with_key().trim_end()),
        "{}",
        run.stderr
    );
    // Events never appear in the report.
    assert_eq!(
        run.stdout.lines().filter(|l| l.contains("DEBUG")).count(),
        0,
        "{}",
        run.stdout
    );
}

#[test]
fn the_log_variable_selects_modules_and_refuses_other_words() {
    let repo = Repo::new();
    repo.stage("fine.txt", "fine\n");
    let run = |filter: &str, code| {
        repo.reviewer(&["review", "staged", "--no-save"])
            .env("CLAUDE_REVIEWER_LOG", filter)
            .run(code)
            .stderr
    };
    assert!(run("debug", 0).contains("phase=\"scan\""));
    assert!(!run("http=trace", 0).contains("phase="));
    let refused = run("loud", 2);
    assert!(
        refused.contains("invalid CLAUDE_REVIEWER_LOG=loud") && refused.contains("\nhint: "),
        "{refused}"
    );
}

#[test]
fn findings_are_shown_before_every_question_is_answered() {
    // The first part is answered at once, the other one after the lines were drawn.
    let server = Server::start(|r| {
        let slow = r.files().iter().any(|f| f == "src/b.py");
        let reply = r.review(&[finding("src/a.py", 2, "    return 1 / n")]);
        if slow {
            reply.after(Duration::from_secs(2))
        } else {
            reply
        }
    });
    let repo = Repo::new();
    let policy = server
        .policy("openai")
        .replace("[review]\n", "[review]\nmax_files = 1\n");
    repo.stage(".claude-reviewer.toml", policy).commit("seed");
    repo.stage("src/a.py", "def rate(n):\n    return 1 / n\n")
        .stage("src/b.py", "B = 1\n")
        .stage("merge.txt", BAD);
    let (code, text) = review(&repo, &[]);
    assert_eq!(code, 1, "{text}");
    let at = |words: &str| {
        text.find(words)
            .unwrap_or_else(|| panic!("no {words:?} in {text}"))
    };
    let report = at("BLOCK");
    assert!(at("merge.txt:2: ") < report, "{text}");
    assert!(
        at("src/a.py:2: major Wrong result (openai, unconfirmed)") < report,
        "{text}"
    );
    assert_eq!(text.matches("unconfirmed").count(), 1, "{text}");
    // Without a terminal, only the report is printed.
    let run = repo.review(&["staged", "--no-cache"], 1);
    assert!(!format!("{}{}", run.stdout, run.stderr).contains("unconfirmed"));
}
