//! Tests of `review`, from the change to the exit code.

use crate::support::{Repo, line_with_another_key, line_with_key};

fn repo() -> Repo {
    let repo = Repo::new();
    repo.stage("README.md", "# A project\n");
    repo.commit("first");
    repo
}

#[track_caller]
fn last_line(stderr: &str) -> &str {
    stderr.trim_end().lines().last().unwrap_or_default()
}

#[test]
fn git_03_no_changes_is_said_and_passes() {
    let repo = repo();
    let run = repo.review(&["staged"], 0);
    assert!(
        run.stdout.contains("No changes to review"),
        "{}",
        run.stdout
    );
    let json = repo.review_json(&["staged"], 0);
    assert_eq!(json["outcome"], "nothing_to_review");
    assert_eq!(json["verdict"], "pass");
    assert!(json["assessment"].is_null(), "nothing was assessed");
}

#[test]
fn a_staged_key_blocks_and_the_same_change_without_it_passes() {
    let repo = repo();
    repo.stage("deploy.ini", line_with_key());
    let run = repo.review(&["staged"], 1);
    assert!(run.stdout.contains("deploy.ini"), "{}", run.stdout);
    assert!(
        !run.stdout
            .contains(line_with_key().trim().rsplit(' ').next().unwrap()),
        "the key is shown"
    );
    repo.stage("deploy.ini", "region = eu-west-1\n");
    repo.review(&["staged"], 0);
}

#[test]
fn git_10_what_is_staged_decides_in_both_directions() {
    let repo = repo();
    repo.stage("deploy.ini", line_with_key());
    repo.write("deploy.ini", "region = eu-west-1\n");
    repo.review(&["staged"], 1);
    repo.stage("deploy.ini", "region = eu-west-1\n");
    repo.write("deploy.ini", line_with_key());
    repo.review(&["staged"], 0);
    repo.review(&["unstaged"], 1);
}

#[test]
fn the_last_line_of_stderr_is_the_summary_for_every_end() {
    let repo = repo();
    repo.stage("deploy.ini", line_with_key());
    for (args, code, want) in [
        (
            &["staged"][..],
            1,
            "review: complete files=1/1 backend=rules findings=1 exit=1",
        ),
        (
            &["staged", "--exit-zero"],
            0,
            "review: complete files=1/1 backend=rules findings=1 exit=0",
        ),
        (
            &["staged", "--format", "sarif"],
            1,
            "review: complete files=1/1 backend=rules findings=1 exit=1",
        ),
        (
            &["commit", "nope"],
            2,
            "review: incomplete files=0/0 backend=none findings=0 exit=2",
        ),
    ] {
        let run = repo.review(args, code);
        assert_eq!(last_line(&run.stderr), want, "{args:?}");
    }
}

#[test]
fn a_named_backend_that_cannot_answer_makes_the_review_incomplete() {
    let repo = repo();
    repo.stage("a.txt", "fine\n");
    let json = repo.review_json(&["staged", "--backend", "claude"], 3);
    assert_eq!(json["outcome"], "incomplete");
    assert!(
        json["coverage"]["failed"][0]["reason"]
            .as_str()
            .unwrap()
            .contains("claude")
    );
    repo.review(
        &["staged", "--backend", "claude", "--on-incomplete", "warn"],
        0,
    );
    // A blocking finding takes precedence.
    repo.stage("deploy.ini", line_with_key());
    repo.review(&["staged", "--backend", "claude"], 1);
}

#[test]
fn offline_is_incomplete_where_policy_demands_a_backend() {
    let repo = repo();
    repo.write(
        ".claude-reviewer.toml",
        "version = 1\n[review]\nbackends = [\"claude\"]\n",
    );
    repo.stage("a.txt", "fine\n");
    repo.review(&["staged", "--offline"], 3);
    repo.review(&["staged", "--offline", "--on-incomplete", "warn"], 0);
}

#[test]
fn a_waiver_lets_one_finding_through_and_is_recorded() {
    let repo = repo();
    repo.stage("deploy.ini", line_with_key());
    let json = repo.review_json(&["staged"], 1);
    let fingerprint = json["findings"][0]["fingerprint"]
        .as_str()
        .unwrap()
        .to_owned();
    let waived = repo.review_json(
        &["staged", "--waive", &format!("{fingerprint}=a made-up key")],
        0,
    );
    assert_eq!(waived["findings"][0]["blocking"], false);
    assert_eq!(waived["findings"][0]["waived"]["reason"], "a made-up key");
    assert!(
        !waived["findings"][0]["waived"]["actor"]
            .as_str()
            .unwrap()
            .is_empty()
    );
    // Another finding still blocks, and an unused waiver is reported.
    let other = repo.review_json(&["staged", "--waive", "0123456789abcdef=no such"], 1);
    assert!(
        other["notes"].to_string().contains("0123"),
        "{}",
        other["notes"]
    );
}

#[test]
fn files_limits_the_review_and_skips_what_did_not_change() {
    let repo = repo();
    repo.stage("deploy.ini", line_with_key());
    repo.stage("a.txt", "fine\n");
    repo.review(&["staged", "--files", "a.txt"], 0);
    repo.review(&["staged", "--files", "*.ini"], 1);
    let run = repo.review_json(&["staged", "--files", "a.txt", "README.md"], 0);
    assert_eq!(run["coverage"]["files_total"], 1);
    let notes = run["notes"].to_string();
    assert!(
        notes.contains("not part of the change: README.md"),
        "{notes}"
    );
}

#[test]
fn a_pattern_that_matches_no_file_at_all_is_an_error() {
    let repo = Repo::new();
    repo.stage("services/a/x.py", "a = 1\n");
    repo.stage("services/b/x.py", "b = 1\n");
    repo.commit("base");
    repo.git(&["checkout", "-q", "-b", "topic"]);
    repo.stage("services/b/x.py", "b = 2\n");
    repo.commit("change");
    let gate = |pattern: &str, code| {
        repo.review(
            &[
                "branch",
                "--base",
                "main",
                "--gate",
                "--no-save",
                "--files",
                pattern,
            ],
            code,
        )
    };
    gate("services/b/**", 0);
    // A part of the repository without changes.
    gate("services/a/**", 0);
    let run = gate("service/b/**", 2);
    assert!(
        run.stderr.contains("--files matches no file: service/b/**"),
        "{}",
        run.stderr
    );
    repo.review(
        &[
            "branch",
            "--base",
            "main",
            "--no-save",
            "--files",
            "service/b/**",
        ],
        2,
    );
}

#[test]
fn a_branch_shows_a_secret_that_was_added_and_removed_again() {
    let repo = repo();
    repo.git(&["checkout", "-q", "-b", "topic"]);
    repo.stage("deploy.ini", line_with_key());
    let added = repo.commit("add");
    repo.stage("deploy.ini", "region = eu-west-1\n");
    repo.commit("remove");
    let json = repo.review_json(&["branch", "--base", "main"], 1);
    assert_eq!(json["findings"][0]["commit"], added.as_str());
    // A finding in the net change is not repeated for the commit.
    repo.stage("other.ini", line_with_key());
    repo.commit("again");
    let json = repo.review_json(&["branch", "--base", "main"], 1);
    assert_eq!(json["findings"].as_array().unwrap().len(), 2, "{json:#}");
}

#[test]
fn a_range_reviews_each_commit_and_findings_carry_theirs() {
    let repo = repo();
    repo.stage("a.ini", line_with_key());
    let bad = repo.commit("add");
    repo.stage("b.txt", "fine\n");
    let good = repo.commit("fine");
    let json = repo.review_json(&["commit", &format!("{bad}^..{good}")], 1);
    let findings = json["findings"].as_array().unwrap();
    assert_eq!(findings.len(), 1);
    assert_eq!(findings[0]["commit"], bad.as_str());
    assert_eq!(json["coverage"]["files_total"], 2);
}

#[test]
fn alone_it_takes_what_is_staged_else_the_changes() {
    let repo = repo();
    repo.write("deploy.ini", line_with_key());
    let json = repo.review_json(&[], 1);
    assert_eq!(json["source"]["kind"], "changes");
    repo.stage("fine.txt", "fine\n");
    let json = repo.review_json(&[], 0);
    assert_eq!(json["source"]["kind"], "staged");
}

#[test]
fn whole_files_and_standard_input_are_reviewed_without_a_repository() {
    let repo = Repo::new();
    let folder = repo.outside();
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(
        folder.join("deploy.ini"),
        format!("x = 1\n{}", line_with_key()),
    )
    .unwrap();
    let run = repo
        .reviewer(&["review", "code", "deploy.ini", "--format", "json"])
        .dir(&folder)
        .run(1);
    let json: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(json["findings"][0]["line"], 2);
    repo.reviewer(&["review", "code", "-"])
        .dir(&folder)
        .stdin(line_with_key())
        .run(1);
    repo.reviewer(&["review", "code", "-"])
        .dir(&folder)
        .stdin("fine\n")
        .run(0);
    repo.reviewer(&["review", "code", "absent.rs"])
        .dir(&folder)
        .run(2);
}

#[test]
fn several_reports_come_from_one_run() {
    let repo = repo();
    repo.stage("deploy.ini", line_with_key());
    repo.review(
        &[
            "staged",
            "--report",
            "json=out.json",
            "--report",
            "sarif=out.sarif",
            "--output",
            "out.txt",
        ],
        1,
    );
    for (file, what) in [
        ("out.json", "\"schema_version\""),
        ("out.sarif", "\"2.1.0\""),
        ("out.txt", "deploy.ini"),
    ] {
        let text = std::fs::read_to_string(repo.path().join(file)).unwrap();
        assert!(text.contains(what), "{file}: {text}");
    }
}

#[test]
fn the_gate_takes_policy_from_the_base_and_reports_its_weakening() {
    let repo = repo();
    repo.stage(".claude-reviewer.toml", "version = 1\n");
    repo.commit("policy");
    repo.git(&["checkout", "-q", "-b", "topic"]);
    repo.stage(
        ".claude-reviewer.toml",
        "version = 1\nblock_on = []\nignore = [\"*.ini\"]\n",
    );
    repo.stage("deploy.ini", line_with_key());
    repo.commit("sneak");
    repo.review(&["branch", "--base", "main", "--no-gate"], 0);
    let json = repo.review_json(&["branch", "--base", "main", "--gate"], 1);
    let ids: Vec<_> = json["findings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|f| f["rule_id"].as_str().unwrap())
        .collect();
    assert!(ids.contains(&"policy-weakened"), "{ids:?}");
    assert!(ids.contains(&"aws-access-key-id"), "{ids:?}");
    assert!(
        json["policy"]["origin"]
            .as_str()
            .unwrap()
            .starts_with("base@"),
        "{}",
        json["policy"]
    );
}

#[test]
fn ci_gates_without_being_told() {
    let repo = repo();
    repo.git(&["checkout", "-q", "-b", "topic"]);
    repo.stage(".claude-reviewer.toml", "version = 1\nblock_on = []\n");
    repo.stage("deploy.ini", line_with_key());
    repo.commit("sneak");
    repo.reviewer(&["review", "branch", "--base", "main"])
        .env("CI", "true")
        .run(1);
}

#[test]
fn a_key_in_history_is_not_hidden_by_another_that_looks_the_same_masked() {
    let repo = repo();
    repo.git(&["checkout", "-q", "-b", "topic"]);
    repo.stage("deploy.ini", line_with_key());
    let leaked = repo.commit("first key");
    repo.stage("deploy.ini", line_with_another_key());
    repo.commit("second key");
    let json = repo.review_json(&["branch", "--base", "main"], 1);
    let commits: Vec<_> = json["findings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|f| f["commit"].as_str())
        .collect();
    assert!(
        commits.contains(&Some(leaked.as_str())) && commits.contains(&None),
        "{json:#}"
    );
    assert_eq!(commits.len(), 2, "{json:#}");
    // A suppression in the remaining file does not help either.
    repo.stage(
        "deploy.ini",
        format!(
            "# claude-reviewer: ignore[aws-access-key-id] sample\n{}",
            line_with_another_key()
        ),
    );
    repo.commit("suppressed");
    let json = repo.review_json(&["branch", "--base", "main"], 1);
    assert!(json.to_string().contains(&leaked), "{json:#}");
}

#[test]
fn a_secret_in_several_commits_is_said_once_with_the_first() {
    let repo = repo();
    repo.git(&["checkout", "-q", "-b", "topic"]);
    repo.stage("deploy.ini", line_with_key());
    let first = repo.commit("add");
    repo.git(&["rm", "-q", "deploy.ini"]);
    repo.commit("remove");
    repo.stage("deploy.ini", line_with_key());
    repo.commit("add again");
    repo.git(&["rm", "-q", "deploy.ini"]);
    repo.commit("remove again");
    let json = repo.review_json(&["branch", "--base", "main"], 1);
    assert_eq!(json["findings"].as_array().unwrap().len(), 1, "{json:#}");
    assert_eq!(json["findings"][0]["commit"], first.as_str());
}

#[test]
fn a_push_of_references_under_different_policies_is_refused_by_the_gate() {
    let repo = repo();
    repo.stage(
        ".claude-reviewer.toml",
        "version = 1\nblock_on = [\"minor\"]\n",
    );
    let base = repo.commit("policy");
    repo.stage("a.txt", "one\n");
    let one = repo.commit("one");
    repo.git(&["checkout", "-q", "--orphan", "other"]);
    repo.git(&["rm", "-q", "-rf", "."]);
    repo.stage("b.txt", "two\n");
    let two = repo.commit("two");
    let zero = "0".repeat(40);
    let lines = format!(
        "refs/heads/main {one} refs/heads/main {base}\nrefs/heads/other {two} refs/heads/other {zero}\n"
    );
    let push = |gate: &str, code| {
        repo.reviewer(&["review", "--hook", "pre-push", gate])
            .stdin(lines.clone())
            .run(code);
    };
    push("--gate", 2);
    push("--no-gate", 0);
}

#[test]
fn a_damaged_repository_around_a_file_is_no_absent_one() {
    let repo = repo();
    repo.write(
        ".claude-reviewer.toml",
        "version = 1\nblock_on = [\"minor\"]\n",
    );
    repo.write("a.py", "x = 1\n");
    repo.review(&["code", "a.py"], 0);
    repo.write(".git/config", "[core\n");
    repo.review(&["code", "a.py"], 2);
}

#[test]
fn a_file_is_judged_by_its_place_in_the_repository_however_it_is_named() {
    let repo = repo();
    repo.write(
        ".claude-reviewer.toml",
        "version = 1\n[[path]]\nglob = \"sub/**\"\nblock_on = []\n",
    );
    repo.write("sub/x.ini", line_with_key());
    let full = repo.path().join("sub/x.ini");
    repo.review(&["code", "sub/x.ini"], 0);
    repo.review(&["code", full.to_str().unwrap()], 0);
    repo.reviewer(&["review", "code", "x.ini"])
        .dir(repo.path().join("sub"))
        .run(0);
    repo.write("x.ini", line_with_key());
    repo.review(&["code", "x.ini"], 1);
}

#[test]
fn files_are_named_from_the_folder_the_user_stands_in() {
    let repo = repo();
    repo.stage("sub/deploy.ini", line_with_key());
    repo.reviewer(&["review", "staged", "--files", "deploy.ini"])
        .dir(repo.path().join("sub"))
        .run(1);
    repo.review(&["staged", "--files", "*.ini"], 1);
    repo.review(&["staged", "--files", "*.md"], 0);
    repo.review(&["staged", "--files", "*.toml"], 2);
}

#[test]
fn an_unknown_backend_is_a_usage_error() {
    let repo = repo();
    repo.stage("a.txt", "fine\n");
    let run = repo.review(&["staged", "--backend", "clade"], 2);
    assert!(run.stderr.contains("clade"), "{}", run.stderr);
}

#[test]
fn a_hook_and_a_source_do_not_go_together() {
    let repo = repo();
    repo.review(&["commit", "HEAD", "--hook", "pre-push"], 2);
}

#[cfg(unix)]
#[test]
fn a_report_keeps_the_mode_of_the_file_it_replaces_and_follows_a_link() {
    use std::os::unix::fs::PermissionsExt as _;
    let repo = repo();
    repo.stage("a.txt", "fine\n");
    let real = repo.write("real.json", "").path().join("real.json");
    std::fs::set_permissions(&real, std::fs::Permissions::from_mode(0o600)).unwrap();
    let link = repo.path().join("link.json");
    std::os::unix::fs::symlink("real.json", &link).unwrap();
    repo.review(&["staged", "--report", "json=link.json"], 0);
    assert!(link.symlink_metadata().unwrap().file_type().is_symlink());
    assert!(
        std::fs::read_to_string(&real)
            .unwrap()
            .contains("schema_version")
    );
    assert_eq!(real.metadata().unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn a_file_that_moves_out_of_an_ignored_folder_is_read_as_a_whole() {
    let repo = repo();
    repo.stage(
        ".claude-reviewer.toml",
        "version = 1\nignore = [\"vendor/**\"]\n",
    );
    repo.stage("vendor/deploy.ini", line_with_key());
    let base = repo.commit("vendored");
    repo.git(&["mv", "vendor/deploy.ini", "deploy.ini"]);
    repo.commit("move");
    let json = repo.review_json(&["branch", "--base", &base], 1);
    assert_eq!(json["findings"][0]["file"], "deploy.ini");
}

#[test]
fn a_file_that_a_move_makes_live_is_read_as_a_whole() {
    let repo = repo();
    let workflow = "on: pull_request_target\njobs:\n  a:\n    runs-on: x\n    steps:\n      - uses: actions/checkout@v4\n        with:\n          ref: ${{ github.event.pull_request.head.sha }}\n      - run: make\n";
    repo.stage("docs/ci.yml", workflow);
    let base = repo.commit("parked");
    std::fs::create_dir_all(repo.path().join(".github/workflows")).unwrap();
    repo.git(&["mv", "docs/ci.yml", ".github/workflows/ci.yml"]);
    repo.commit("arm");
    let json = repo.review_json(&["branch", "--base", &base], 1);
    assert_eq!(json["findings"][0]["file"], ".github/workflows/ci.yml");
    // A rename inside the folder of workflows does not make the lines new.
    repo.git(&[
        "mv",
        ".github/workflows/ci.yml",
        ".github/workflows/checks.yml",
    ]);
    repo.review(&["staged"], 0);
}

#[test]
fn rules_of_a_team_that_cannot_be_loaded_are_no_silence() {
    let repo = repo();
    repo.write(
        ".claude-reviewer.toml",
        "version = 1\n[rules]\npaths = [\"team\"]\n",
    );
    repo.stage("a.txt", "fine\n");
    let run = repo.review(&["staged"], 2);
    assert!(run.stderr.contains("team"), "{}", run.stderr);
    #[cfg(unix)]
    {
        repo.write("elsewhere.toml", "");
        std::fs::create_dir(repo.path().join("team")).unwrap();
        std::os::unix::fs::symlink("../elsewhere.toml", repo.path().join("team/rules.toml"))
            .unwrap();
        repo.review(&["staged"], 2);
    }
}

#[test]
fn a_gate_advises_no_comment_that_it_would_not_count() {
    let repo = repo();
    repo.stage("x.ini", line_with_key());
    let told = |args: &[&str]| {
        repo.review(&[&["staged", "--no-save"], args].concat(), 1)
            .stdout
    };
    // A comment cannot suppress a secret.
    assert!(
        !told(&[]).contains("ignore[") && told(&[]).contains("--waive "),
        "{}",
        told(&[])
    );
    repo.stage("x.ini", "")
        .stage("x.py", "import os\nos.system('rm ' + input())\n");
    let comment = "# claude-reviewer: ignore[python-shell-interpolation] reason";
    assert!(told(&[]).contains(comment), "{}", told(&[]));
    let gated = told(&["--gate"]);
    assert!(
        !gated.contains("ignore[") && gated.contains("--waive "),
        "{gated}"
    );
    assert!(gated.contains("fingerprint: "), "{gated}");
}

#[test]
fn what_surrounds_the_lines_of_a_patch_suppresses_nothing_in_the_gate() {
    let repo = repo();
    let patch = format!(
        "--- a/x.py\n+++ b/x.py\n@@ -1 +1,2 @@\n # claude-reviewer: ignore[aws-access-key-id] sample\n+{}",
        line_with_key()
    );
    repo.reviewer(&["review", "patch", "-", "--gate"])
        .stdin(patch)
        .run(1);
}

#[test]
fn a_suppression_of_the_base_holds_for_the_same_secret_inside_a_branch() {
    let repo = repo();
    let line = line_with_key();
    repo.stage(
        "deploy.ini",
        format!("# claude-reviewer: ignore[aws-access-key-id] a sample\n{line}"),
    );
    repo.commit("sample");
    repo.git(&["checkout", "-q", "-b", "topic"]);
    repo.stage(
        "deploy.ini",
        format!("# claude-reviewer: ignore[aws-access-key-id] a sample\n  {line}"),
    );
    repo.commit("set in");
    repo.stage("b.txt", "more\n");
    repo.commit("more");
    repo.review(&["branch", "--base", "main", "--gate"], 0);
}
