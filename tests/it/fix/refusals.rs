//! Tests of errors of a fix before it pays a model, and of their hints.

use super::{BAD, CODE, Case, GOOD, container, create, edit, has_tool_answers};
use crate::loopback::{Reply, Request};
use serde_json::json;

/// Returns the command of the first hint that contains a text.
fn hint<'r>(stderr: &'r str, with: &str) -> &'r str {
    let line = stderr
        .lines()
        .filter_map(|line| line.strip_prefix("hint: "))
        .find(|line| line.contains(with));
    let line = line.unwrap_or_else(|| panic!("no hint with {with}: {stderr}"));
    line.rsplit_once(": ").map_or(line, |(_, command)| command)
}

/// Runs the command of a hint.
fn run(case: &Case, command: &str) -> crate::support::Run {
    let words: Vec<&str> = command.split(' ').collect();
    assert_eq!(words[0], "claude-reviewer", "{command}");
    case.repo.reviewer(&words[1..]).run_any()
}

#[test]
fn a_finding_that_is_fixed_already_is_refused_before_a_model_is_asked() {
    let case = Case::new(vec![vec![edit("a.py", BAD, GOOD)]]);
    case.repo.write("a.py", CODE.replace(BAD, GOOD));
    let before = case.server.questions().len();
    let refused = case.refused(
        &["F1"],
        2,
        "the lines of F1 at a.py:5 have changed since the review",
    );
    case.refused(
        &[],
        2,
        "the lines of F1 at a.py:5 have changed since the review",
    );
    assert_eq!(case.server.questions().len(), before, "nothing was asked");
    // The command in the hint includes the edit, which is not staged.
    let round = run(&case, hint(&refused.stderr, "review changes"));
    assert!(
        round.code == 0 && round.stderr.contains("1 fixed"),
        "{}\n{}",
        round.stdout,
        round.stderr
    );
    let before = case.server.questions().len();
    case.refused(&["F1"], 2, "F1 is fixed, as the last round of review ");
    assert_eq!(case.server.questions().len(), before, "nothing was asked");
}

#[test]
fn a_finding_of_a_rule_that_is_fixed_already_is_refused_and_the_others_are_named() {
    let code = format!("{CODE}print(eval(input()))\n");
    let case = Case::with(
        &code,
        vec![vec![edit("a.py", BAD, GOOD)]],
        "",
        Box::new(|_| None),
    );
    let id = |title: &str| {
        let all = case
            .repo
            .reviewer(&["findings", "--format", "json"])
            .run(0)
            .json();
        let found = all["findings"]
            .as_array()
            .unwrap()
            .iter()
            .find(|f| f["rule_id"].as_str().unwrap().contains(title));
        found.unwrap()["id"].as_str().unwrap().to_owned()
    };
    let (rule, claim) = (id("eval"), id("ai-"));
    case.repo
        .write("a.py", code.replace("print(eval(input()))\n", ""));
    let before = case.server.questions().len();
    let refused = case.refused(
        &[&rule, &claim],
        2,
        &format!("{rule} is already fixed in the worktree"),
    );
    assert_eq!(case.server.questions().len(), before, "nothing was asked");
    let command = hint(&refused.stderr, "to fix the others").to_owned();
    assert!(
        command.starts_with(&format!("claude-reviewer fix {claim} --session ")),
        "{command}"
    );
    // Without names, the option is omitted.
    let fixed = case.fix(&[]);
    let note = format!("note: left out: {rule} is already fixed in the worktree");
    assert!(
        fixed.code == 0 && fixed.stdout.contains(&note),
        "{}\n{}",
        fixed.stdout,
        fixed.stderr
    );
    // The next round includes the fix, which is not staged.
    let next = fixed
        .stdout
        .lines()
        .find_map(|l| l.split_once("to store the next round: "))
        .unwrap()
        .1;
    let round = run(&case, next);
    assert!(round.stderr.contains("2 fixed"), "{next}: {}", round.stderr);
}

#[test]
fn a_commit_that_is_not_checked_out_is_refused_before_a_model_is_asked() {
    let case = Case::new(vec![vec![edit("a.py", BAD, GOOD)]]);
    case.repo.git(&["checkout", "-q", "-b", "topic"]);
    case.repo.commit("means");
    case.repo
        .reviewer(&["review", "branch", "--base", "main"])
        .run(1);
    case.repo.git(&["checkout", "-q", "main"]);
    let before = case.server.questions().len();
    let refused = case.refused(&["F1"], 2, "is not checked out");
    assert!(
        refused.stderr.contains("hint: git switch topic\n"),
        "{}",
        refused.stderr
    );
    assert_eq!(case.server.questions().len(), before, "nothing was asked");
    case.repo.git(&["switch", "-q", "topic"]);
    assert_eq!(case.fix(&["F1"]).code, 0);
}

#[test]
fn a_patch_that_cannot_be_written_is_refused_before_a_model_is_asked() {
    let case = Case::new(vec![vec![edit("a.py", BAD, GOOD)]]);
    let before = case.server.questions().len();
    let refused = case.refused(
        &["F1", "--patch", "out/x.patch"],
        2,
        "its folder does not exist",
    );
    assert!(
        refused.stderr.contains("hint: make the folder: mkdir -p "),
        "{}",
        refused.stderr
    );
    assert_eq!(case.server.questions().len(), before, "nothing was asked");
}

#[test]
fn tests_that_fail_without_output_are_named_by_their_exit_code() {
    let dir = crate::support::temp_dir();
    let broken = format!("{GOOD} + oops");
    let tests = container(dir.path(), "if grep -q oops a.py; then exit 3; fi");
    let case = Case::with(
        CODE,
        vec![vec![edit("a.py", BAD, &broken)]],
        &tests,
        Box::new(|_| None),
    );
    case.refused(
        &["F1"],
        1,
        "the worktree is unchanged: the tests fail: exit code 3, and no output\n",
    );
}

#[test]
fn the_hints_of_a_failed_fix_can_be_run() {
    // A file that no review includes: no option permits it.
    let case = Case::new(vec![vec![
        edit("a.py", BAD, GOOD),
        create("out/b.py", "b = 1\n"),
    ]]);
    case.repo.stage(".gitignore", "out/\n");
    let refused = case.refused(
        &["F1"],
        1,
        "out/b.py is ignored by git, so that no review sees it",
    );
    assert!(!refused.stderr.contains("--allow"), "{}", refused.stderr);
    assert!(
        refused
            .stderr
            .contains("hint: fix it by hand; to store the next round: "),
        "{}",
        refused.stderr
    );
    // Several findings in one command.
    let code = format!("{CODE}print(eval(input()))\n");
    let case = Case::with(&code, vec![vec![]], "", Box::new(|_| None));
    let refused = case.refused(&["F1", "F2"], 1, "no fix of F1, F2 was verified");
    let command =
        hint(&refused.stderr, "or decide on the finding").replace("--reason TEXT", "--reason fine");
    let decided = run(&case, &command);
    assert!(
        decided.code == 0 && decided.stdout.lines().count() == 2,
        "{command}: {}",
        decided.stderr
    );
}

#[test]
fn the_hints_of_a_failed_fix_keep_the_flags_of_the_user() {
    let case = Case::new(vec![vec![
        edit("a.py", BAD, GOOD),
        create("Makefile", "all:\n"),
    ]]);
    let flags = [
        "F1",
        "--backend",
        "openai",
        "--max-requests",
        "30",
        "--patch",
        "x.patch",
    ];
    let refused = case.refused(&flags, 1, "Makefile is a build script");
    let command = hint(&refused.stderr, "to permit it").to_owned();
    let end = " --backend openai --allow Makefile --max-requests 30 --patch x.patch --yes";
    assert!(command.ends_with(end), "{command}");
    let again = run(&case, &command);
    assert_eq!(
        (again.code, case.text("a.py").as_str()),
        (0, CODE),
        "{}",
        again.stderr
    );
    assert!(
        case.text("x.patch").contains("+all:"),
        "the hint wrote the patch"
    );
    // Without a terminal and without --yes.
    let asked = case
        .repo
        .reviewer(&["fix", "F1", "--allow", "a b", "--timeout", "90s"])
        .run(2);
    let command =
        "hint: claude-reviewer fix F1 --session latest --allow 'a b' --timeout 1m30s --yes\n";
    assert!(asked.stderr.contains(command), "{}", asked.stderr);
    // Remaining findings.
    let code = format!("{CODE}print(eval(input()))\n");
    let case = Case::with(
        &code,
        vec![vec![edit("a.py", BAD, GOOD)]],
        "",
        Box::new(|_| None),
    );
    case.repo
        .write("a.py", code.replace("print(eval(input()))\n", ""));
    let refused = case.refused(
        &["F1", "F2", "--backend", "openai"],
        2,
        "is already fixed in the worktree",
    );
    let command = hint(&refused.stderr, "to fix the others").to_owned();
    assert!(command.ends_with(" --backend openai --yes"), "{command}");
    assert_eq!(run(&case, &command).code, 0, "{command}");
}

#[test]
fn a_refused_edit_is_named_with_its_file_and_reason_and_told_to_the_next_attempt() {
    let other = edit("a.py", "    y = 1\n", "    y = 2\n");
    for (refused_edit, reason) in [
        (
            other.clone(),
            "edit of `a.py`: old does not occur in `a.py`",
        ),
        (
            edit("a.py", "all", "every"),
            "edit of `a.py`: old occurs 2 times in `a.py`",
        ),
        (
            edit("b.py", "x", "y"),
            "edit of `b.py`: text file `b.py` not found in the tree under review",
        ),
        (
            create(".env", "A=1\n"),
            "create of `.env`: `.env` cannot be created",
        ),
        (
            create("../x.py", "x = 1\n"),
            "create of `../x.py`: `../x.py` is outside of the tree under review",
        ),
    ] {
        let case = Case::new(vec![vec![refused_edit], vec![edit("a.py", BAD, GOOD)]]);
        let run = case.fix(&["F1"]);
        assert_eq!(run.code, 0, "{reason}: {}", run.stderr);
        let shown = format!("attempt 1 failed: the model changed no file; refused: {reason}");
        assert!(run.stdout.contains(&shown), "{reason}: {}", run.stdout);
        assert_eq!(case.verdicts(), ["no_change", "verified"]);
        assert!(case.prompts.lock().unwrap()[1].contains(reason), "{reason}");
    }
    let case = Case::new(vec![vec![other.clone()]]);
    let run = case.refused(
        &["F1"],
        1,
        "the model changed no file; refused: edit of `a.py`: old does not occur",
    );
    assert!(
        run.stderr
            .contains("hint: or fix it by hand; to store the next round: "),
        "{}",
        run.stderr
    );
    // Together with other changes.
    let case = Case::new(vec![vec![
        edit("a.py", "import os\n", "import sys\n"),
        edit("b.py", "x", "y"),
    ]]);
    let run = case.refused(&["F1"], 1, "F1 is still there");
    assert!(
        run.stdout
            .contains("attempt 1 failed: refused: edit of `b.py`: text file"),
        "{}",
        run.stdout
    );
    // An edit that succeeds later is not listed.
    let case = Case::new(vec![vec![
        other,
        edit("a.py", "import os\n", "import sys\n"),
    ]]);
    let run = case.refused(&["F1"], 1, "F1 is still there");
    assert!(!run.stdout.contains("refused: "), "{}", run.stdout);
}

#[test]
fn a_problem_that_the_model_reports_is_shown_and_told_to_the_next_attempt() {
    let says = |r: &Request| {
        let report = json!({"nonce": r.nonce(), "summary": "None.", "problem": "The list\nis made elsewhere."});
        (r.prompt().contains("in the private copy") && !has_tool_answers(r))
            .then(|| r.text(&report.to_string()))
    };
    let case = Case::with(CODE, vec![vec![]], "", Box::new(says));
    let words = "the model changed no file; it reports: The list is made elsewhere.";
    let run = case.refused(&["F1"], 1, words);
    assert!(
        run.stdout.contains(&format!("attempt 3 failed: {words}")),
        "{}",
        run.stdout
    );
    let asked = case.server.questions();
    let last = asked
        .iter()
        .rfind(|r| r.prompt().contains("in the private copy"))
        .unwrap();
    assert!(last.prompt().contains(words), "{}", last.prompt());
}

#[test]
fn a_key_that_a_server_refuses_ends_a_fix_at_once() {
    for status in [401, 403] {
        let says = move |r: &Request| {
            r.prompt()
                .contains("in the private copy")
                .then(|| Reply::error(status, "auth", "the key has expired"))
        };
        let case = Case::with(CODE, vec![vec![]], "", Box::new(says));
        let run = case.refused(
            &["F1"],
            3,
            &format!("the worktree is unchanged: openai: {status} "),
        );
        assert!(
            run.stderr
                .contains("hint: check the backends: claude-reviewer doctor"),
            "{}",
            run.stderr
        );
        assert_eq!(case.verdicts(), ["failed"]);
        let asked = case.server.questions();
        assert_eq!(
            asked
                .iter()
                .filter(|r| r.prompt().contains("in the private copy"))
                .count(),
            1
        );
    }
    // An invalid answer may be a valid one the next time.
    let says = |r: &Request| {
        r.prompt()
            .contains("in the private copy")
            .then(|| r.text("nothing of the format"))
    };
    let case = Case::with(CODE, vec![vec![]], "", Box::new(says));
    case.refused(&["F1"], 3, "the worktree is unchanged: openai: ");
    assert_eq!(case.verdicts(), ["failed"; 3]);
}
