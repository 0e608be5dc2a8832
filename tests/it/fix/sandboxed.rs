//! The project's tests verify a fix, in a sandbox.

use super::*;

#[test]
fn dsp_05_a_fix_that_breaks_the_tests_changes_nothing() {
    let dir = crate::support::temp_dir();
    let broken = format!("{GOOD} + oops");
    // Each run logs its folder.
    let log = dir.path().join("log");
    let command = format!(
        "echo \"${{IN_SANDBOX:-outside}}\" >>{}; if grep -q oops a.py; then echo it broke; exit 1; fi",
        log.display()
    );
    let tests = container(dir.path(), &command);
    let case = Case::with(
        CODE,
        vec![vec![edit("a.py", BAD, &broken)]],
        &tests,
        Box::new(|_| None),
    );
    assert_eq!(
        std::fs::read_to_string(&log).unwrap(),
        "outside\n",
        "a review runs the tests of the person's own code"
    );
    case.refused(&["F1"], 1, "the tests fail");
    assert_eq!(case.verdicts(), ["tests_failed"; 3]);
    assert_eq!(
        std::fs::read_to_string(&log).unwrap(),
        "outside\n1\n1\n1\n",
        "code of a model runs in the sandbox alone"
    );
    assert!(case.prompts.lock().unwrap()[1].contains("it broke"));
    let case = Case::with(
        CODE,
        vec![vec![edit("a.py", BAD, GOOD)]],
        &tests,
        Box::new(|_| None),
    );
    let run = case.fix(&["F1"]);
    assert!(
        run.code == 0 && !run.stdout.contains("the tests did not run"),
        "{}\n{}",
        run.stdout,
        run.stderr
    );
}

#[test]
fn dsp_05_a_fix_cannot_end_the_tests_as_if_they_could_not_run() {
    let dir = crate::support::temp_dir();
    let broken = format!("{GOOD} + oops");
    for (end, reason) in [
        ("exit 127", "cannot be run in the sandbox (exit code 127)"),
        ("exit 126", "cannot be run in the sandbox (exit code 126)"),
        ("head -c 3000000 /dev/zero", "they wrote too much output"),
        ("kill -9 $$", "the tests fail"),
    ] {
        // Without the fix the tests pass, so the fix causes the failure.
        let tests = container(dir.path(), &format!("if grep -q oops a.py; then {end}; fi"));
        let case = Case::with(
            CODE,
            vec![vec![edit("a.py", BAD, &broken)]],
            &tests,
            Box::new(|_| None),
        );
        case.refused(&["F1"], 1, "the tests fail");
        assert_eq!(case.verdicts(), ["tests_failed"; 3], "{end}");
        assert!(case.prompts.lock().unwrap()[1].contains(reason), "{end}");
    }
    // A sandbox without the test program is not a fault of the fix.
    let tests = container(dir.path(), "no-such-test-program");
    let case = Case::with(
        CODE,
        vec![vec![edit("a.py", BAD, GOOD)]],
        &tests,
        Box::new(|_| None),
    );
    let run = case.fix(&["F1"]);
    assert_eq!(run.code, 0, "{}\n{}", run.stdout, run.stderr);
    let note =
        "note: the tests did not run: the command cannot be run in the sandbox (exit code 127)";
    assert!(run.stdout.contains(note), "{}", run.stdout);
}

#[test]
fn without_a_sandbox_the_tests_of_a_fix_do_not_run() {
    let tests = "[tests]\nrun = true\ncommand = \"true\"\nsandbox = [\"no-such-container-program\", \"{tree}\"]\n";
    let case = Case::with(
        CODE,
        vec![vec![edit("a.py", BAD, GOOD)]],
        tests,
        Box::new(|_| None),
    );
    let run = case.fix(&["F1"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(
        run.stdout
            .contains("note: the tests did not run: no-such-container-program not found"),
        "{}",
        run.stdout
    );
}
