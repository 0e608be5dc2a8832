//! Tests of triage and the menu on a real pseudo-terminal: decisions, signals, sizes, editors and
//! hostile text.

mod pty;

use crate::support::{Repo, binary};
use pty::{How, Pty};
use rustix::process::Signal;
use std::os::unix::fs::PermissionsExt as _;

const UNSAFE: &str = "import yaml\n\n\ndef load(path):\n    return yaml.unsafe_load(open(path))\n\n\nprint(eval(input()))\n";

/// Creates a repository with a stored review that has two findings in one file.
fn reviewed() -> Repo {
    let repo = Repo::new();
    repo.stage("README", "demo\n").commit("seed");
    repo.stage("app.py", UNSAFE);
    repo.review(&["staged", "-q"], 1);
    repo
}

fn statuses(repo: &Repo) -> Vec<String> {
    let listed = repo
        .reviewer(&["findings", "--format", "json"])
        .run(0)
        .json();
    let all = listed["findings"].as_array().unwrap();
    all.iter()
        .map(|f| f["disposition"].as_str().unwrap().to_owned())
        .collect()
}

/// Opens triage and waits until it is drawn.
fn open(repo: &Repo) -> Pty {
    let mut pty = Pty::start(repo.reviewer(&["triage"]), (80, 24));
    pty.until("1 Findings 2");
    pty
}

#[test]
fn dsp_06_each_decision_is_stored_before_the_next_key() {
    let repo = reviewed();
    let mut pty = open(&repo);
    pty.send("a").until("accepted F1");
    pty.send("rnot reachable\r").until("rejected F2");
    // The program cannot clean up.
    pty.signal(Signal::KILL);
    assert_eq!(pty.end(), How::Signal(Signal::KILL.as_raw()));
    assert_eq!(statuses(&repo), ["accepted", "rejected"]);
    // The next start continues from that state.
    let mut pty = open(&repo);
    pty.until("1 accepted").until("1 rejected").send("q");
    assert_eq!(pty.end(), How::Exit(0));
}

/// An action of the user or of the system on the program.
type Action = Box<dyn Fn(&mut Pty)>;

#[test]
fn dsp_06_the_terminal_is_restored_however_triage_ends() {
    let repo = reviewed();
    let signal = |signal: Signal| {
        move |pty: &mut Pty| {
            pty.signal(signal);
        }
    };
    let key = |key: &'static str| {
        move |pty: &mut Pty| {
            pty.send(key);
        }
    };
    let ends: [(&str, Action, i32); 6] = [
        ("q", Box::new(key("q")), 0),
        ("Ctrl-C", Box::new(key("\u{3}")), 130),
        ("Ctrl-C in a prompt", Box::new(key("r\u{3}")), 130),
        ("SIGINT", Box::new(signal(Signal::INT)), 130),
        ("SIGTERM", Box::new(signal(Signal::TERM)), 143),
        ("SIGHUP", Box::new(signal(Signal::HUP)), 143),
    ];
    for (name, act, code) in ends {
        let mut pty = open(&repo);
        assert!(pty.is_raw() && pty.is_alternate(), "{name}");
        act(&mut pty);
        assert_eq!(pty.end(), How::Exit(code), "{name}");
        assert!(
            !pty.is_raw() && !pty.is_alternate() && pty.has_cursor(),
            "{name}"
        );
    }
    assert_eq!(statuses(&repo), ["pending", "pending"]);
}

#[test]
fn dsp_06_decisions_are_kept_however_triage_ends_on_this_machine_and_in_the_shared_file() {
    for (name, end, code) in [
        ("Ctrl-C", None, How::Exit(130)),
        ("SIGTERM", Some(Signal::TERM), How::Exit(143)),
        ("SIGHUP", Some(Signal::HUP), How::Exit(143)),
        (
            "SIGKILL",
            Some(Signal::KILL),
            How::Signal(Signal::KILL.as_raw()),
        ),
    ] {
        let repo = reviewed();
        let mut pty = Pty::start(repo.reviewer(&["triage", "--share"]), (80, 24));
        pty.until("1 Findings 2")
            .send("a")
            .until("accepted F1, shared")
            .send("rnot reach");
        match end {
            Some(signal) => pty.signal(signal),
            None => pty.send("\u{3}"),
        };
        assert_eq!(pty.end(), code, "{name}");
        assert_eq!(
            statuses(&repo),
            ["accepted", "pending"],
            "{name}: no half-typed decision is recorded"
        );
        assert_eq!(shared(&repo), ["accepted"], "{name}");
    }
}

#[test]
fn dsp_06_suspending_gives_the_terminal_back_and_continuing_takes_it() {
    let repo = reviewed();
    for how in ["Ctrl-Z", "SIGTSTP"] {
        let mut pty = open(&repo);
        if how == "Ctrl-Z" {
            pty.send("\u{1a}")
        } else {
            pty.signal(Signal::TSTP)
        };
        pty.wait_for_stop();
        assert!(!pty.is_raw(), "{how}");
        pty.until_left();
        pty.signal(Signal::CONT);
        pty.until("1 Findings 2");
        assert!(pty.is_raw(), "{how}");
        pty.send("q");
        assert_eq!(pty.end(), How::Exit(0), "{how}");
    }
}

#[test]
fn dsp_06_triage_ends_when_its_terminal_is_gone() {
    let repo = reviewed();
    let mut pty = open(&repo);
    pty.send("a").until("accepted F1");
    assert_eq!(pty.hang_up(), How::Exit(143));
    assert_eq!(statuses(&repo), ["accepted", "pending"]);
}

#[test]
fn dsp_06_a_terminal_that_is_too_small_says_so_and_goes_on_when_it_grows() {
    let repo = reviewed();
    let mut pty = open(&repo);
    pty.resize((30, 6)).until("40x10");
    // The key was handled when the program shows the next size that is too small.
    pty.send("a")
        .until_read()
        .resize((31, 6))
        .until("31x6")
        .resize((60, 18))
        .until("1 Findings 2");
    pty.send("a").until("accepted F1").send("q");
    assert_eq!(pty.end(), How::Exit(0));
    assert_eq!(statuses(&repo), ["accepted", "pending"]);
    let mut pty = Pty::start(repo.reviewer(&["triage"]), (12, 3));
    pty.until("12x3").send("q");
    assert_eq!(pty.end(), How::Exit(0));
}

#[test]
fn dsp_06_hostile_text_is_shown_and_not_obeyed() {
    let repo = Repo::new();
    repo.stage("README", "demo\n").commit("seed");
    let name = "a\u{1b}]0;owned\u{7}\u{202e}日本e\u{301}.py";
    let line = "print(eval(input()))  # \u{1b}[2J\u{1b}]52;c;b3du\u{7}\u{9b}31m \u{202e}\u{200b} 👩\u{200d}👧 \t x\n";
    repo.stage(name, line.repeat(3));
    repo.review(&["staged", "-q"], 1);
    for size in [(60, 18), (80, 24), (200, 50)] {
        // The test screen fails on every sequence that is not for drawing.
        let mut pty = Pty::start(repo.reviewer(&["triage"]), size);
        pty.until("1 Findings")
            .until("\\x1b[2J")
            .send("2")
            .send("3")
            .send("z")
            .until("Details F")
            .send("z");
        pty.send("f")
            .until("Filter")
            .send("\u{1b}")
            .until_gone("Filter");
        pty.send("?")
            .until("Keys")
            .send("\u{1b}")
            .until_gone("Keys")
            .send("q");
        assert_eq!(pty.end(), How::Exit(0));
    }
}

#[test]
fn triage_needs_a_terminal_and_a_stored_review() {
    let repo = reviewed();
    let run = repo.reviewer(&["triage"]).run(2);
    for part in [
        "needs a terminal",
        "claude-reviewer findings",
        "claude-reviewer accept",
        "claude-reviewer apply",
    ] {
        assert!(run.stderr.contains(part), "{part}: {}", run.stderr);
    }
    for (args, part) in [
        (&["triage", "2020-01-01-001"][..], "not found"),
        (&["triage", "nonsense"], "invalid review ID"),
        (&["triage", "pr", "9"], "claude-reviewer review pr 9"),
        (&["triage", "pr", "x"], "not the number"),
        (&["triage", "pr"], "needs a number"),
        (&["triage", "latest", "x"], "unexpected argument"),
    ] {
        let mut pty = Pty::start(repo.reviewer(args), (80, 24));
        assert_eq!(pty.end(), How::Exit(2), "{args:?}");
        assert!(pty.printed().contains(part), "{args:?}: {}", pty.printed());
        assert!(
            pty.printed().contains("hint: "),
            "{args:?}: {}",
            pty.printed()
        );
        assert!(!pty.printed().contains("\u{1b}[?1049h"), "{args:?}");
    }
    let mut pty = Pty::start(repo.reviewer(&["triage"]).env("TERM", "dumb"), (80, 24));
    assert_eq!(pty.end(), How::Exit(2));
    assert!(
        pty.printed().contains("claude-reviewer findings"),
        "{}",
        pty.printed()
    );
}

#[test]
fn a_review_without_findings_is_shown() {
    let repo = Repo::new();
    repo.stage("README", "demo\n");
    repo.review(&["staged", "-q"], 0);
    let mut pty = Pty::start(repo.reviewer(&["triage"]), (80, 24));
    pty.until("no findings")
        .send("a")
        .until("no finding is listed")
        .send("q");
    assert_eq!(pty.end(), How::Exit(0));
}

#[test]
fn a_decision_on_lines_that_changed_is_refused_with_the_next_command() {
    let repo = reviewed();
    let mut pty = open(&repo);
    repo.stage("app.py", UNSAFE.replace("unsafe_load", "full_load"));
    pty.send("a")
        .until("have changed since the review")
        .until("claude-reviewer review")
        .send("\u{1b}")
        .until_gone("Not done");
    pty.send("q");
    assert_eq!(pty.end(), How::Exit(0));
}

#[test]
fn decisions_are_undone_and_proposals_confirmed() {
    let repo = reviewed();
    let mut pty = open(&repo);
    pty.send("a")
        .until("accepted F1")
        .send("u")
        .until("undone: F1");
    assert_eq!(statuses(&repo), ["pending", "pending"]);
    pty.send("d\u{15}soon\r").until("is not a date");
    pty.send("\u{15}2w\r")
        .until("deferred F1 until")
        .send("u")
        .until("undone: F1")
        .send("q");
    assert_eq!(pty.end(), How::Exit(0));
    assert_eq!(statuses(&repo), ["pending", "pending"]);
}

const SHARED: &str = ".claude-reviewer/dispositions.toml";

/// Returns the statuses in the shared file, with its number of entries.
fn shared(repo: &Repo) -> Vec<String> {
    let text = std::fs::read_to_string(repo.path().join(SHARED)).unwrap_or_default();
    text.lines()
        .filter_map(|l| l.strip_prefix("status = "))
        .map(|s| s.trim_matches('"').to_owned())
        .collect()
}

#[test]
fn decisions_are_shared_after_a_key_or_with_the_flag_and_an_undo_takes_the_shared_entry_back() {
    let repo = reviewed();
    let mut pty = open(&repo);
    pty.send("a").until("accepted F1  (u");
    assert_eq!(
        shared(&repo),
        [""; 0],
        "not shared unless a person wants it"
    );
    pty.send("u").until("undone: F1");
    pty.send("S")
        .until("sharing")
        .send("rnot reachable\r")
        .until("rejected F1, shared");
    assert_eq!(shared(&repo), ["rejected"]);
    assert_eq!(statuses(&repo), ["rejected", "pending"]);
    pty.send("a").until("accepted F2, shared");
    assert_eq!(shared(&repo).len(), 2);
    pty.send("u").until("undone: F2");
    assert_eq!(
        shared(&repo),
        ["rejected"],
        "the entry of the other finding stays"
    );
    pty.send("u").until("undone: F1");
    assert!(
        !repo.path().join(".claude-reviewer").exists(),
        "the file that the decisions made is gone"
    );
    assert_eq!(statuses(&repo), ["pending", "pending"]);
    pty.send("q");
    assert_eq!(pty.end(), How::Exit(0));
    assert!(
        !pty.printed().contains("to share the decision"),
        "nothing is left to commit"
    );

    let mut pty = Pty::start(repo.reviewer(&["triage", "--share"]), (80, 24));
    pty.until("sharing").send("a").until("accepted F1, shared");
    pty.send("S")
        .until_gone("sharing")
        .send("a")
        .until("accepted F2")
        .send("q");
    assert_eq!(pty.end(), How::Exit(0));
    assert!(
        pty.printed()
            .contains(&format!("commit {SHARED} to share the decision")),
        "{}",
        pty.printed()
    );
    assert_eq!(
        (shared(&repo), statuses(&repo)),
        (vec!["accepted".to_owned()], vec!["accepted".to_owned(); 2])
    );
}

#[test]
fn an_undo_restores_the_entry_that_a_shared_decision_replaced() {
    let repo = reviewed();
    repo.reviewer(&["defer", "F1", "--until", "2999-01-01", "--share"])
        .run(0);
    let before = std::fs::read_to_string(repo.path().join(SHARED)).unwrap();
    let mut pty = open(&repo);
    pty.send("gSa").until("accepted F1, shared");
    assert_eq!(shared(&repo), ["accepted"]);
    pty.send("u").until("undone: F1").send("q");
    assert_eq!(pty.end(), How::Exit(0));
    assert_eq!(
        std::fs::read_to_string(repo.path().join(SHARED)).unwrap(),
        before
    );
    assert_eq!(statuses(&repo), ["deferred", "pending"]);
}

#[test]
fn a_shared_decision_that_cannot_be_written_is_not_recorded() {
    let repo = reviewed();
    repo.write(SHARED, "version = 2\n");
    let mut pty = Pty::start(repo.reviewer(&["findings"]), (80, 24));
    assert_eq!(pty.end(), How::Exit(2));
    repo.write(SHARED, "version = 1\n");
    let mut pty = open(&repo);
    repo.write(SHARED, "version = 2\n");
    pty.send("Sa")
        .until("version 2 is not known")
        .until("hint: ")
        .send("\u{1b}")
        .until_gone("Not done");
    repo.write(SHARED, "version = 1\n");
    assert_eq!(statuses(&repo), ["pending", "pending"]);
    pty.send("q");
    assert_eq!(pty.end(), How::Exit(0));
}

#[test]
fn a_replacement_is_applied() {
    let repo = reviewed();
    let mut pty = open(&repo);
    pty.send("p")
        .until("claude-reviewer apply F1")
        .send("\r")
        .until("applied F1")
        .send("qq");
    assert_eq!(pty.end(), How::Exit(0));
    let text = std::fs::read_to_string(repo.path().join("app.py")).unwrap();
    assert!(text.contains("yaml.safe_load"), "{text}");
}

/// Creates an editor that records its arguments and ends with a code. Returns its path.
fn editor(repo: &Repo, code: i32) -> String {
    let folder = repo.outside();
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("vim");
    let seen = folder.join("seen");
    let text = format!(
        "#!/bin/sh\nprintf '%s\\n' \"$@\" >'{}'\nexit {code}\n",
        seen.display()
    );
    std::fs::write(&path, text).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path.display().to_string()
}

#[test]
fn the_editor_opens_the_line_and_its_failure_is_reported() {
    let repo = reviewed();
    let start = |editor: &str| {
        let mut pty = Pty::start(repo.reviewer(&["triage"]).env("EDITOR", editor), (80, 24));
        pty.until("1 Findings 2");
        pty
    };
    let mut pty = start(&format!("{} -n", editor(&repo, 0)));
    pty.send("e").until_entered(2, "1 Findings 2").send("q");
    assert_eq!(pty.end(), How::Exit(0));
    let seen = std::fs::read_to_string(repo.outside().join("seen")).unwrap();
    let file = repo.path().canonicalize().unwrap().join("app.py");
    assert_eq!(
        seen.lines().collect::<Vec<_>>(),
        ["-n", "+5", &file.display().to_string()]
    );

    let inside = repo.path().join("vim");
    std::fs::copy(repo.outside().join("vim"), &inside).unwrap();
    for (editor, why) in [
        (editor(&repo, 3), "exit code 3"),
        ("no-such-editor".to_owned(), "not found on PATH"),
        ("'unclosed".to_owned(), "does not name a program"),
        (inside.display().to_string(), "repository under review"),
    ] {
        let mut pty = start(&editor);
        pty.send("e")
            .until(why)
            .send("\u{1b}")
            .until_gone(why)
            .send("a")
            .until("accepted")
            .send("u")
            .until("undone")
            .send("q");
        assert_eq!(pty.end(), How::Exit(0), "{editor}");
    }
}

#[test]
fn the_menu_leads_from_a_change_to_its_triage() {
    let repo = Repo::new();
    repo.stage("README", "demo\n").commit("seed");
    repo.stage("app.py", UNSAFE);
    let mut pty = Pty::start(repo.reviewer(&[]), (100, 30));
    pty.until("▶ 1 Review staged changes")
        .until("$ claude-reviewer review staged")
        .send("\r");
    pty.until("press Enter to go on")
        .send("\r")
        .until("▶ 1 Triage 2 pending findings")
        .send("\r");
    pty.until("1 Findings 2")
        .send("a")
        .until("accepted F1")
        .send("q");
    // The accepted finding is next.
    pty.until("▶ 2 Fix 1 accepted finding").send("q");
    assert_eq!(pty.end(), How::Exit(0));
    assert!(!pty.is_raw() && !pty.is_alternate());
    assert_eq!(statuses(&repo), ["accepted", "pending"]);
}

#[test]
fn the_menu_works_without_a_repository_and_needs_a_terminal() {
    let repo = Repo::new();
    std::fs::create_dir(repo.outside()).unwrap();
    let mut pty = Pty::start(repo.reviewer(&[]).dir(repo.outside()), (80, 24));
    pty.until("not a git repository")
        .until("git init")
        .until("Check the installation")
        .send("\u{1b}");
    assert_eq!(pty.end(), How::Exit(0));
    let run = repo.reviewer(&[]).run(2);
    assert!(
        run.stderr.contains("Usage: ") && run.stdout.is_empty(),
        "{}{}",
        run.stdout,
        run.stderr
    );
    // All other errors are unchanged.
    let mut pty = Pty::start(repo.reviewer(&["pr"]), (80, 24));
    assert_eq!(pty.end(), How::Exit(2));
    assert!(std::path::Path::new(binary()).exists());
}
