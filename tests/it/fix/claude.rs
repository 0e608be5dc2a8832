//! Tests of `fix` with the Claude Code command line, which is a shell script here.
//! `tests/third-party` tests the real one.

use super::{BAD, CODE, GOOD, state};
use crate::support::{Repo, Run};
use serde_json::Value;
use std::os::unix::fs::PermissionsExt as _;

/// Answers like a model that reports the division, plans, and then runs `EDITS` in its working
/// folder.
const SCRIPT: &str = r#"#!/bin/sh
here=$(dirname "$0")
case "$*" in --version) echo "2.1.330 (Claude Code)"; exit 0;; esac
cat >"$here/stdin"
nonce=$(sed -n 's/^nonce: //p' "$here/stdin" | tail -n 1)
tools=
case "$*" in *Read,Grep,Glob,Edit,Write*) tools='"Read","Edit","Write",' ;; esac
printf '{"type":"system","subtype":"init","cwd":"%s","tools":[%s"StructuredOutput"],"mcp_servers":[],"model":"claude-test","permissionMode":"dontAsk","claude_code_version":"2.1.330"}\n' "$(pwd -P)" "$tools"
result() {
    printf '{"type":"result","subtype":"success","is_error":false,"total_cost_usd":0.01,"usage":{"input_tokens":9000,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":40},"structured_output":%s}\n' "$1"
    exit 0
}
if grep -q "Plan how to fix the findings above" "$here/stdin"; then
    result "{\"nonce\":\"$nonce\",\"summary\":\"Guard the division.\",\"steps\":[{\"text\":\"Treat 0.\",\"files\":[\"a.py\"]}]}"
fi
if grep -q "in the private copy" "$here/stdin"; then
    printf '%s\n' "$@" >"$here/args"
    pwd -P >"$here/folder"
    EDITS
    result "{\"nonce\":\"$nonce\",\"summary\":\"Guarded it.\",\"problem\":null}"
fi
case "$*" in *refuted*) result "{\"nonce\":\"$nonce\",\"refuted\":false,\"reason\":\"It is right.\",\"quote\":null}" ;; esac
finding='{"file":"a.py","line":5,"end_line":null,"quote":"    x = sum(all) / n","severity":"major","category":"bug","cwe":null,"title":"Division by zero","message":"n may be 0.","failure":"n = 0","suggestion":"Check n.","replacement":null,"convention":null,"also":[]}'
if grep -q "if n else" "$here/stdin"; then finding=; fi
result "{\"nonce\":\"$nonce\",\"summary\":\"s\",\"files_reviewed\":[\"a.py\"],\"findings\":[$finding],\"design_compliance\":null,\"missing_requirements\":[],\"not_reviewed\":[]}"
"#;

/// Reviews with such a program, and fixes the finding with it.
fn fixed(edits: &str) -> (Repo, Run) {
    let repo = Repo::new();
    repo.stage("README", "Means.\n").commit("seed");
    std::fs::create_dir_all(repo.outside()).unwrap();
    let program = repo.outside().join("claude");
    std::fs::write(&program, SCRIPT.replace("EDITS", edits)).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let policy = format!(
        "version = 1\n[review]\nbackends = [\"claude\"]\n[backend.claude]\npath = {:?}\n",
        program.display()
    );
    repo.write("../home/.config/claude-reviewer/config.toml", policy);
    repo.stage("a.py", CODE);
    repo.reviewer(&["review", "staged"]).run(1);
    let before = state(&repo);
    let run = repo.reviewer(&["fix", "F1", "--yes"]).run_any();
    if run.code != 0 {
        assert!(state(&repo) == before, "{}", run.stderr);
    }
    (repo, run)
}

#[test]
fn the_program_edits_its_own_folder_and_has_no_shell() {
    let (repo, run) = fixed("sed -i 's|/ n$|/ n if n else 0|' a.py");
    assert_eq!(run.code, 0, "{}\n{}", run.stdout, run.stderr);
    assert_eq!(
        std::fs::read_to_string(repo.path().join("a.py")).unwrap(),
        CODE.replace(BAD, GOOD)
    );
    let args = std::fs::read_to_string(repo.outside().join("args")).unwrap();
    let args: Vec<&str> = args.lines().collect();
    let after = |flag: &str| args[args.iter().position(|a| *a == flag).unwrap() + 1];
    assert_eq!(
        (after("--tools"), after("--allowedTools")),
        ("Read,Grep,Glob,Edit,Write", "Edit(./**)")
    );
    assert_eq!(after("--permission-mode"), "dontAsk");
    assert!(
        !args
            .iter()
            .any(|a| a.contains("dangerously") || a.contains("Bash")),
        "{args:?}"
    );
    let folder = std::fs::read_to_string(repo.outside().join("folder")).unwrap();
    let folder = std::path::Path::new(folder.trim());
    assert!(
        !folder.starts_with(repo.path()) && !folder.exists(),
        "the private copy is gone: {}",
        folder.display()
    );
}

#[test]
fn dsp_05_what_the_program_leaves_besides_plain_files_is_refused() {
    for (edits, reason) in [
        ("ln -s /etc/hostname b.py", "not a plain file"),
        ("rm README", "the model deleted README"),
        ("mkdir .git; echo x >.git/config", "cannot be created"),
        ("mkfifo b.py", "not a plain file"),
        ("printf '\\000\\377' >b.py", "is not a text"),
        ("echo x >.env", "cannot be created"),
        (":", "the model changed no file"),
    ] {
        let (repo, run) = fixed(edits);
        assert!(
            matches!(run.code, 1 | 3) && run.stderr.contains(reason),
            "{edits}: {}",
            run.stderr
        );
        let stored = repo
            .reviewer(&["history", "latest", "--format", "json"])
            .run(0)
            .json();
        let attempts: Vec<Value> = stored["fixes"][0]["attempts"].as_array().unwrap().clone();
        assert_eq!(attempts.len(), 3, "{edits}");
    }
}

#[test]
fn an_edit_that_the_program_refuses_is_named_with_its_file_and_reason_and_told_to_the_next_attempt()
{
    // The first attempt is rejected: the text does not occur, and a file outside of the folder must
    // not be edited.
    let edits = r#"cp "$here/stdin" "$here/attempt"
    work=$(pwd -P)
    call() { printf '{"type":"assistant","message":{"role":"assistant","content":[{"type":"tool_use","id":"%s","name":"%s","input":{"file_path":"%s"}}]}}\n' "$1" "$2" "$3"; }
    fails() { printf '{"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"%s","is_error":true,"content":"%s"}]}}\n' "$1" "$2"; }
    if [ -e "$here/again" ]; then
        sed -i 's|/ n$|/ n if n else 0|' a.py
    else
        touch "$here/again"
        call t1 Edit "$work/a.py"
        fails t1 "<tool_use_error>String to replace not found in $work/a.py</tool_use_error>"
        call t2 Write /etc/hostname
        fails t2 "Permission to use Write has been denied"
    fi"#;
    let (repo, run) = fixed(edits);
    assert_eq!(run.code, 0, "{}\n{}", run.stdout, run.stderr);
    let first = "attempt 1 failed: the model changed no file; refused: edit of `a.py`: String to replace not found in a.py";
    assert!(run.stdout.contains(first), "{}", run.stdout);
    assert!(
        run.stdout
            .contains("refused: edit of `/etc/hostname`: Permission to use Write has been denied"),
        "{}",
        run.stdout
    );
    let prompt = std::fs::read_to_string(repo.outside().join("attempt")).unwrap();
    assert!(
        prompt.contains("edit of `a.py`: String to replace not found in a.py"),
        "{prompt}"
    );
    let folder = std::fs::read_to_string(repo.outside().join("folder")).unwrap();
    assert!(
        !run.stdout.contains(folder.trim()) && !prompt.contains("tool_use_error"),
        "{}",
        run.stdout
    );
}
