//! Refusals of a fix before it pays a model, and hints that can be run.

use super::{BAD, CODE, Case, GOOD, container, create, edit};

/// Returns the command of the first hint that has a text.
fn hint<'r>(stderr: &'r str, with: &str) -> &'r str {
    let line = stderr.lines().filter_map(|line| line.strip_prefix("hint: ")).find(|line| line.contains(with));
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
    let refused = case.refused(&["F1"], 2, "the lines of F1 at a.py:5 have changed since the review");
    case.refused(&[], 2, "the lines of F1 at a.py:5 have changed since the review");
    assert_eq!(case.server.questions().len(), before, "nothing was asked");
    // The command in the hint sees the edit, which is not staged.
    let round = run(&case, hint(&refused.stderr, "review changes"));
    assert!(round.code == 0 && round.stderr.contains("1 fixed"), "{}\n{}", round.stdout, round.stderr);
    let before = case.server.questions().len();
    case.refused(&["F1"], 2, "F1 is fixed, as the last round of review ");
    assert_eq!(case.server.questions().len(), before, "nothing was asked");
}

#[test]
fn a_finding_of_a_rule_that_is_fixed_already_is_refused_and_the_others_are_named() {
    let code = format!("{CODE}print(eval(input()))\n");
    let case = Case::with(&code, vec![vec![edit("a.py", BAD, GOOD)]], "", Box::new(|_| None));
    let id = |title: &str| {
        let all = case.repo.reviewer(&["findings", "--format", "json"]).run(0).json();
        let found = all["findings"].as_array().unwrap().iter().find(|f| f["rule_id"].as_str().unwrap().contains(title));
        found.unwrap()["id"].as_str().unwrap().to_owned()
    };
    let (rule, claim) = (id("eval"), id("ai-"));
    case.repo.write("a.py", code.replace("print(eval(input()))\n", ""));
    let before = case.server.questions().len();
    let refused = case.refused(&[&rule, &claim], 2, &format!("{rule} is already fixed in the worktree"));
    assert_eq!(case.server.questions().len(), before, "nothing was asked");
    let command = hint(&refused.stderr, "to fix the others").to_owned();
    assert!(command.starts_with(&format!("claude-reviewer fix {claim} --session ")), "{command}");
    // Without names it is left out.
    let fixed = case.fix(&[]);
    let note = format!("note: left out: {rule} is already fixed in the worktree");
    assert!(fixed.code == 0 && fixed.stdout.contains(&note), "{}\n{}", fixed.stdout, fixed.stderr);
    // The next round sees the fix, which is not staged.
    let next = fixed.stdout.lines().find_map(|l| l.split_once("to store the next round: ")).unwrap().1;
    let round = run(&case, next);
    assert!(round.stderr.contains("2 fixed"), "{next}: {}", round.stderr);
}

#[test]
fn a_commit_that_is_not_checked_out_is_refused_before_a_model_is_asked() {
    let case = Case::new(vec![vec![edit("a.py", BAD, GOOD)]]);
    case.repo.git(&["checkout", "-q", "-b", "topic"]);
    case.repo.commit("means");
    case.repo.reviewer(&["review", "branch", "--base", "main"]).run(1);
    case.repo.git(&["checkout", "-q", "main"]);
    let before = case.server.questions().len();
    let refused = case.refused(&["F1"], 2, "is not checked out");
    assert!(refused.stderr.contains("hint: git switch topic\n"), "{}", refused.stderr);
    assert_eq!(case.server.questions().len(), before, "nothing was asked");
    case.repo.git(&["switch", "-q", "topic"]);
    assert_eq!(case.fix(&["F1"]).code, 0);
}

#[test]
fn a_patch_that_cannot_be_written_is_refused_before_a_model_is_asked() {
    let case = Case::new(vec![vec![edit("a.py", BAD, GOOD)]]);
    let before = case.server.questions().len();
    let refused = case.refused(&["F1", "--patch", "out/x.patch"], 2, "its folder does not exist");
    assert!(refused.stderr.contains("hint: make the folder: mkdir -p "), "{}", refused.stderr);
    assert_eq!(case.server.questions().len(), before, "nothing was asked");
}

#[test]
fn tests_that_fail_without_output_are_named_by_their_exit_code() {
    let dir = tempfile::TempDir::new().unwrap();
    let broken = format!("{GOOD} + oops");
    let tests = container(dir.path(), "if grep -q oops a.py; then exit 3; fi");
    let case = Case::with(CODE, vec![vec![edit("a.py", BAD, &broken)]], &tests, Box::new(|_| None));
    case.refused(&["F1"], 1, "the worktree is unchanged: the tests fail: exit code 3, and no output\n");
}

#[test]
fn the_hints_of_a_failed_fix_can_be_run() {
    // A file that no review sees: no option permits it.
    let case = Case::new(vec![vec![edit("a.py", BAD, GOOD), create("out/b.py", "b = 1\n")]]);
    case.repo.stage(".gitignore", "out/\n");
    let refused = case.refused(&["F1"], 1, "out/b.py is ignored by git, so that no review sees it");
    assert!(!refused.stderr.contains("--allow"), "{}", refused.stderr);
    assert!(refused.stderr.contains("hint: fix it by hand; to store the next round: "), "{}", refused.stderr);
    // Several findings in one command.
    let code = format!("{CODE}print(eval(input()))\n");
    let case = Case::with(&code, vec![vec![]], "", Box::new(|_| None));
    let refused = case.refused(&["F1", "F2"], 1, "no fix of F1, F2 was verified");
    let command = hint(&refused.stderr, "or decide on the finding").replace("--reason TEXT", "--reason fine");
    let decided = run(&case, &command);
    assert!(decided.code == 0 && decided.stdout.lines().count() == 2, "{command}: {}", decided.stderr);
}
