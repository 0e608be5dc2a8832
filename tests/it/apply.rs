//! `apply` writes the replacements of findings into the worktree, or changes nothing.

mod pinned;
mod printed;

use crate::loopback::{Server, finding};
use crate::support::{Repo, Run, files_below};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

const CODE: &str = "import os\n\n\ndef mean(all, n):\n    x = sum(all) / n\n    return x\n\n\nlast = mean([], 0)\n";
const BAD: &str = "    x = sum(all) / n";
const GOOD: &str = "    x = sum(all) / n if n else 0";

/// A claim with a replacement for its lines.
fn claim(line: u32, end: Option<u32>, quote: &str, replacement: &str) -> Value {
    let mut claim = finding("a.py", line, quote);
    claim["end_line"] = json!(end);
    claim["replacement"] = json!(replacement);
    claim
}

/// Returns a repository with `code` staged as `a.py`, reviewed, and the server that made the
/// claims.
fn reviewed(code: &str, claims: Vec<Value>) -> (Repo, Server) {
    let server = Server::start(move |r| r.review(&claims));
    let repo = Repo::new();
    repo.stage(".claude-reviewer.toml", server.policy("openai"))
        .commit("seed");
    repo.stage("a.py", code);
    repo.reviewer(&["review", "staged"]).run_any();
    (repo, server)
}

fn text(repo: &Repo, path: &str) -> String {
    std::fs::read_to_string(repo.path().join(path)).unwrap()
}

fn apply(repo: &Repo, args: &[&str], code: i32) -> Run {
    repo.reviewer(&[&["apply"], args].concat()).run(code)
}

/// Returns all files of a worktree with their contents.
fn files(top: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let own = files_below(top)
        .into_iter()
        .filter(|file| !file.starts_with(top.join(".git")));
    let mut out: Vec<_> = own
        .map(|file| (file.clone(), std::fs::read(&file).unwrap_or_default()))
        .collect();
    out.sort();
    out
}

/// Runs `apply`, which must fail for this reason without changing a file.
#[track_caller]
fn refused(repo: &Repo, args: &[&str], reason: &str) {
    let before = files(&repo.path());
    let run = apply(repo, args, 2);
    assert!(run.stderr.contains(reason), "{}", run.stderr);
    assert!(
        files(&repo.path()) == before,
        "a file was changed: {}",
        run.stderr
    );
}

const LOAD: &str = "import yaml\n\nconfig = yaml.unsafe_load(open(\"config.yml\"))\n";

/// Returns a repository whose branch `topic` loads YAML unsafely, with `main` checked out, and the
/// head of the branch.
fn with_topic() -> (Repo, String) {
    let repo = Repo::new();
    repo.stage("README", "demo\n").commit("seed");
    repo.git(&["checkout", "-q", "-b", "topic"]);
    repo.stage("load.py", LOAD);
    let head = repo.commit("load");
    repo.git(&["checkout", "-q", "main"]);
    (repo, head.trim()[..12].to_owned())
}

#[test]
fn an_unknown_finding_is_refused_even_if_the_review_has_none() {
    let (repo, _server) = reviewed(CODE, Vec::new());
    refused(&repo, &["F9"], "F9");
}

#[test]
fn a_replacement_is_written_and_the_index_stays() {
    let (repo, _server) = reviewed(CODE, vec![claim(5, None, BAD, GOOD)]);
    let said = apply(&repo, &["F1"], 0).stdout;
    assert!(
        said.starts_with("applied F1\nnot checked: F1 is a claim of a model"),
        "{said}"
    );
    assert_eq!(text(&repo, "a.py"), CODE.replace(BAD, GOOD));
    assert_eq!(repo.git(&["show", ":a.py"]), CODE);
    // The lines have changed since the review.
    refused(
        &repo,
        &["F1"],
        "F1 is not applied: its lines at a.py:5 have changed since the review",
    );
}

#[test]
fn a_patch_is_shown_or_written_and_git_takes_it() {
    let (repo, _server) = reviewed(&CODE.replace('\n', "\r\n"), vec![claim(5, None, BAD, GOOD)]);
    let before = text(&repo, "a.py");
    let shown = apply(&repo, &["F1", "--dry-run"], 0).stdout;
    assert!(
        shown.contains(&format!("-{BAD}")) && shown.contains(&format!("+{GOOD}")),
        "{shown}"
    );
    let said = apply(&repo, &["F1", "--patch", "fix.patch"], 0).stdout;
    assert!(
        said.contains("git apply ") && said.trim_end().ends_with("fix.patch"),
        "{said}"
    );
    assert_eq!(text(&repo, "a.py"), before);
    repo.git(&["apply", "fix.patch"]);
    assert_eq!(
        text(&repo, "a.py"),
        CODE.replace(BAD, GOOD).replace('\n', "\r\n")
    );
}

#[test]
fn a_patch_file_is_never_written_over_another_file() {
    let (repo, _server) = reviewed(CODE, vec![claim(5, None, BAD, GOOD)]);
    std::fs::write(repo.path().join("mine.patch"), "mine").unwrap();
    std::os::unix::fs::symlink("nowhere", repo.path().join("link.patch")).unwrap();
    for (args, name, free) in [
        (&["F1"][..], "mine.patch", "mine-2.patch"),
        (&["F1"], "link.patch", "link-2.patch"),
        (&["--all-safe"], "mine.patch", "mine-3.patch"),
    ] {
        let run = apply(&repo, &[args, &["--patch", name]].concat(), 2);
        assert!(
            run.stderr
                .contains(&format!("{name} exists and is not overwritten")),
            "{}",
            run.stderr
        );
        let (_, hint) = run
            .stderr
            .split_once("hint: choose another name: claude-reviewer ")
            .unwrap();
        let words: Vec<&str> = hint.split_whitespace().collect();
        let run = repo.reviewer(&words).run(0);
        assert!(run.stdout.contains(free), "{}", run.stdout);
    }
    assert_eq!(text(&repo, "mine.patch"), "mine");
    assert!(!repo.path().join("nowhere").exists());
}

#[test]
fn sec_01_a_dry_run_shows_no_secret_of_the_lines_around_a_replacement() {
    let key = crate::support::line_with_key();
    let secret = key.rsplit(' ').next().unwrap().trim().to_owned();
    let (repo, _server) = reviewed(
        &CODE.replacen("\n\n", &format!("\n{key}"), 1),
        vec![claim(5, None, BAD, GOOD)],
    );
    let all = repo
        .reviewer(&["findings", "--format", "json"])
        .run(0)
        .json();
    let is_claim = |f: &&serde_json::Value| f["origin"] == "openai";
    let id = all["findings"]
        .as_array()
        .unwrap()
        .iter()
        .find(is_claim)
        .unwrap()["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let shown = apply(&repo, &[&id, "--dry-run"], 0).stdout;
    assert!(
        shown.contains("***") && shown.contains(GOOD) && !shown.contains(&secret),
        "{shown}"
    );
}

#[test]
fn several_replacements_of_one_file_are_written_at_once() {
    let claims = vec![
        claim(1, Some(2), "import os", "import sys\nimport os\n"),
        claim(5, None, BAD, GOOD),
        claim(
            9,
            None,
            "last = mean([], 0)",
            "if __name__ == '__main__':\n    print(mean([], 0))",
        ),
    ];
    let (repo, _server) = reviewed(CODE, claims);
    let said = apply(&repo, &["--all-safe"], 0).stdout;
    assert!(said.starts_with("applied F1, F2, F3\n"), "{said}");
    let expected = CODE
        .replace(BAD, GOOD)
        .replace("last = ", "if __name__ == '__main__':\n    print(")
        .replace("0)\n", "0))\n");
    assert_eq!(
        text(&repo, "a.py"),
        expected.replacen("import os\n\n", "import sys\nimport os\n", 1)
    );
}

#[test]
fn lines_that_moved_are_replaced_where_they_are() {
    let (repo, _server) = reviewed(CODE, vec![claim(5, None, BAD, GOOD)]);
    repo.write("a.py", format!("# Means.\n\n{CODE}"));
    apply(&repo, &["F1"], 0);
    assert_eq!(
        text(&repo, "a.py"),
        format!("# Means.\n\n{}", CODE.replace(BAD, GOOD))
    );
}

#[cfg(unix)]
#[test]
fn a_program_stays_executable() {
    use std::os::unix::fs::PermissionsExt as _;
    let (repo, _server) = reviewed(CODE, vec![claim(5, None, BAD, GOOD)]);
    let file = repo.path().join("a.py");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
    apply(&repo, &["F1"], 0);
    assert_eq!(
        std::fs::metadata(&file).unwrap().permissions().mode() & 0o777,
        0o755
    );
}

#[test]
fn dsp_04_lines_that_changed_are_not_replaced() {
    let (repo, _server) = reviewed(CODE, vec![claim(5, None, BAD, GOOD)]);
    let reason = "its lines at a.py:5 have changed since the review";
    for changed in [
        CODE.replace("sum(all) / n", "sum(all) // n"),
        CODE.replace(BAD, ""),
        // The reviewed line occurs twice, but at neither position of the review.
        format!("{BAD}\n{BAD}\n{}", CODE.replace(BAD, "    pass")),
        String::new(),
    ] {
        repo.write("a.py", &changed);
        refused(&repo, &["F1"], reason);
        let said = apply(&repo, &["--all-safe"], 0).stdout;
        assert_eq!(said, format!("left out F1: {reason}\nnothing to apply\n"));
        assert_eq!(text(&repo, "a.py"), changed);
    }
    std::fs::remove_file(repo.path().join("a.py")).unwrap();
    refused(&repo, &["F1"], "a.py is not in the worktree");
}

#[test]
fn dsp_04_nothing_is_applied_if_one_finding_cannot_be() {
    let claims = vec![
        claim(1, None, "import os", "import sys"),
        claim(5, None, BAD, GOOD),
    ];
    let (repo, _server) = reviewed(CODE, claims);
    repo.write("a.py", CODE.replace("/ n", "/ m"));
    refused(
        &repo,
        &["F1", "F2"],
        "F2 is not applied: its lines at a.py:5 have changed since the review",
    );
    let said = apply(&repo, &["--all-safe"], 0).stdout;
    assert!(
        said.starts_with("left out F2: ") && said.contains("\napplied F1\n"),
        "{said}"
    );
    assert_eq!(
        text(&repo, "a.py"),
        CODE.replace("/ n", "/ m")
            .replace("import os", "import sys")
    );
}

#[test]
fn dsp_04_findings_about_the_same_lines_are_not_applied_together() {
    let first = claim(
        4,
        Some(5),
        &format!("def mean(all, n):\n{BAD}"),
        "def mean(all, n):\n    x = 0",
    );
    let mut second = claim(5, Some(6), &format!("{BAD}\n    return x"), "    return 0");
    second["category"] = json!("performance");
    second["title"] = json!("Sum of everything");
    second["message"] = json!("The loop reads all of it.");
    let claims = vec![first, second];
    let (repo, _server) = reviewed(CODE, claims);
    let listed = repo
        .reviewer(&["findings", "--format", "json"])
        .run(0)
        .json();
    assert_eq!(listed["findings"].as_array().unwrap().len(), 2, "{listed}");
    refused(
        &repo,
        &["F1", "F2"],
        "F2 is not applied: F1 is about the same lines",
    );
}

#[test]
fn dsp_04_a_file_with_a_conflict_or_unsaved_changes_stays() {
    let (repo, _server) = reviewed(CODE, vec![claim(5, None, BAD, GOOD)]);
    repo.write(
        "a.py",
        format!("{CODE}<<<<<<< ours\nx = 1\n=======\nx = 2\n>>>>>>> theirs\n"),
    );
    refused(&repo, &["F1"], "a.py has an unresolved conflict");
    repo.write("a.py", CODE);
    let mut swap = [b"b0VIM 9.1".as_slice(), &[0; 4087]].concat();
    swap[1007] = 0x55;
    repo.write(".a.py.swp", &swap);
    refused(&repo, &["F1"], "an editor has unsaved changes of a.py");
    swap[1007] = 0;
    repo.write(".a.py.swp", &swap);
    #[cfg(unix)]
    {
        let lock = repo.path().join(".#a.py");
        std::os::unix::fs::symlink("someone@machine.4711:1", &lock).unwrap();
        refused(&repo, &["F1"], "an editor has unsaved changes of a.py");
        std::fs::remove_file(lock).unwrap();
    }
    apply(&repo, &["F1"], 0);
}

#[cfg(unix)]
#[test]
fn dsp_04_nothing_is_written_through_a_link() {
    let (repo, _server) = reviewed(CODE, vec![claim(5, None, BAD, GOOD)]);
    let outside = repo.home().join("target.py");
    std::fs::write(&outside, CODE).unwrap();
    let file = repo.path().join("a.py");
    std::fs::remove_file(&file).unwrap();
    std::os::unix::fs::symlink(&outside, &file).unwrap();
    refused(&repo, &["F1"], "a.py is a symbolic link, or behind one");
    assert_eq!(std::fs::read_to_string(&outside).unwrap(), CODE);
}

#[test]
fn dsp_04_a_masked_secret_and_hidden_characters_are_not_written() {
    let key = format!(
        "{}  # key of the platform team",
        crate::support::line_with_key().trim_end()
    );
    let masked = format!(
        "aws_access_key_id = AKIA{}  # the key of the platform team",
        "*".repeat(16)
    );
    let claims = vec![
        claim(1, None, "import os", "import os  # \u{202e}so"),
        claim(3, None, "# key of the platform team", &masked),
    ];
    let (repo, _server) = reviewed(&format!("import os\n\n{key}\n"), claims);
    let listed = repo
        .reviewer(&["findings", "--format", "json"])
        .run(0)
        .json();
    let named = |at: u32| {
        let all = listed["findings"].as_array().unwrap();
        let one = all
            .iter()
            .find(|f| f["line"] == at && f["replacement"].is_string())
            .unwrap();
        one["id"].as_str().unwrap().to_owned()
    };
    refused(&repo, &[&named(1)], "its replacement has hidden characters");
    refused(
        &repo,
        &[&named(3)],
        "its lines have a secret, which its replacement has masked",
    );
}

#[test]
fn what_cannot_be_applied_is_an_error_with_a_command() {
    let (repo, _server) = reviewed(CODE, vec![finding("a.py", 5, BAD)]);
    for (args, message) in [
        (&["F1"][..], "F1 is not applied: it has no replacement"),
        (&["F7"], "has no finding \"F7\""),
        (&["F1", "--session", "2001-01-01-000"], "2001-01-01-000"),
    ] {
        refused(&repo, args, message);
    }
    for args in [
        &[][..],
        &["F1", "--all-safe"],
        &["F1", "--dry-run", "--patch", "x"],
    ] {
        apply(&repo, args, 2);
    }
    assert_eq!(
        apply(&repo, &["--all-safe"], 0).stdout,
        "nothing to apply\n"
    );
}

#[test]
fn a_refusal_names_what_helps() {
    let mut without = claim(5, None, BAD, GOOD);
    without["replacement"] = Value::Null;
    let (repo, _server) = reviewed(CODE, vec![without]);
    refused(&repo, &["F1"], "F1 is not applied: it has no replacement");
    let said = apply(&repo, &["F1"], 2).stderr;
    assert!(
        said.contains("hint: ") && said.contains("claude-reviewer fix F1"),
        "{said}"
    );
    assert!(!said.contains("review again"), "{said}");
    // Without a finding, the error lists both possibilities.
    let said = apply(&repo, &[], 2).stderr;
    assert!(
        said.contains("claude-reviewer findings")
            && said.contains("claude-reviewer apply --all-safe"),
        "{said}"
    );
}

#[test]
fn a_file_that_is_not_in_utf_8_is_refused_for_that_reason() {
    let utf_16 = |text: &str| -> Vec<u8> {
        std::iter::once(0xfeff)
            .chain(text.encode_utf16())
            .flat_map(u16::to_le_bytes)
            .collect()
    };
    let code = "import yaml\nconfig = yaml.unsafe_load(open(\"config.yml\"))\n";
    let repo = Repo::new();
    repo.stage("README", "Sums.\n").commit("seed");
    repo.stage("a.py", utf_16(code));
    let report = repo.review_json(&["staged"], 1);
    let found = report["findings"]
        .as_array()
        .unwrap()
        .iter()
        .find(|f| !f["replacement"].is_null());
    let id = found.unwrap_or_else(|| panic!("{report}"))["id"]
        .as_str()
        .unwrap();
    refused(
        &repo,
        &[id],
        &format!("{id} is not applied: a.py is not in UTF-8"),
    );
    assert!(!apply(&repo, &[id], 2).stderr.contains("review again"));
    // A finding whose lines changed since fails for the other reason.
    repo.write("a.py", utf_16(&code.replace("unsafe_load", "safe_load")));
    refused(
        &repo,
        &[id],
        &format!("{id} is not applied: its lines at a.py:2 have changed since the review"),
    );
}

/// An edit of a branch.
type Edit<'e> = &'e dyn Fn(&Repo);

#[test]
fn dsp_04_a_file_that_git_lists_as_unmerged_is_refused_with_or_without_markers() {
    let claims = || vec![claim(5, None, BAD, GOOD)];
    let change = |repo: &Repo, branch: &str, change: &dyn Fn(&Repo)| {
        repo.git(&["checkout", "-q", "-f", "-B", branch, "main"]);
        change(repo);
        repo.git(&["add", "-u"]);
        repo.commit(branch);
    };
    let edit = |with: &'static str| {
        move |repo: &Repo| {
            repo.write("a.py", CODE.replace("import os", with));
        }
    };
    let remove = |repo: &Repo| std::fs::remove_file(repo.path().join("a.py")).unwrap();
    let ours = edit("import io");
    let cases: [(&str, Edit<'_>, &str); 3] = [
        ("both edited", &edit("import sys"), "* -text\n"),
        (
            "both edited, with longer markers",
            &edit("import sys"),
            "*.py conflict-marker-size=20\n",
        ),
        ("they deleted it", &remove, "* -text\n"),
    ];
    for (name, theirs, attributes) in cases {
        let (repo, _server) = reviewed(CODE, claims());
        repo.stage(".gitattributes", attributes).commit("code");
        change(&repo, "theirs", theirs);
        change(&repo, "ours", &ours);
        assert!(
            !repo.try_git(&["merge", "-q", "theirs"]).status.success(),
            "{name}"
        );
        assert!(repo.git(&["ls-files", "-u"]).contains("a.py"), "{name}");
        refused(
            &repo,
            &["F1"],
            "F1 is not applied: a.py has an unresolved conflict",
        );
        // The markers are gone, but git still lists the file as unmerged.
        repo.write("a.py", CODE);
        refused(
            &repo,
            &["F1"],
            "F1 is not applied: a.py has an unresolved conflict",
        );
        assert!(
            apply(&repo, &["F1"], 2).stderr.contains("git status"),
            "{name}"
        );
        let left_out = apply(&repo, &["--all-safe"], 0).stdout;
        assert_eq!(text(&repo, "a.py"), CODE, "{name}: {left_out}");
        repo.git(&["add", "a.py"]);
        apply(&repo, &["F1"], 0);
        assert_eq!(text(&repo, "a.py"), CODE.replace(BAD, GOOD), "{name}");
    }
}

#[test]
fn options_and_names_that_do_not_fit_are_refused_with_what_helps() {
    let (repo, _) = with_topic();
    repo.git(&["checkout", "-q", "topic"]);
    repo.reviewer(&["review", "branch", "topic", "--base", "main"])
        .run(1);
    let both = repo
        .reviewer(&["apply", "F1", "--dry-run", "--patch", "x.patch"])
        .run(2)
        .stderr;
    assert!(
        both.contains("'--dry-run' cannot be used with '--patch <FILE>'"),
        "{both}"
    );
    assert!(!both.contains("this is an option of"), "{both}");
    let missing = apply(&repo, &["F1", "--patch", "out/x.patch"], 2).stderr;
    assert!(
        missing.contains("its folder does not exist\nhint: make the folder: mkdir -p "),
        "{missing}"
    );
    let unknown = repo.reviewer(&["accept", "f16"]).run(2).stderr;
    assert!(
        unknown.contains("has no finding \"F16\"; its only finding is F1"),
        "{unknown}"
    );
    let joined = repo.reviewer(&["accept", "F1,F2"]).run(2).stderr;
    assert!(
        joined.contains("hint: separate names with spaces: F1 F2\n"),
        "{joined}"
    );
}

#[test]
fn the_next_round_after_a_replacement_of_a_claim_sees_it() {
    let (repo, _server) = reviewed(CODE, vec![claim(5, None, BAD, GOOD)]);
    let said = apply(&repo, &["F1"], 0).stdout;
    let next = said
        .lines()
        .find_map(|l| l.split_once("to store the next round: "))
        .unwrap()
        .1;
    assert!(
        next.starts_with("claude-reviewer review changes --follow-up "),
        "{next}"
    );
    // The replacement is not staged, and the round reviews it. This model makes the same claim
    // about every text.
    let words: Vec<&str> = next.split(' ').skip(1).collect();
    let round = repo.reviewer(&words).run(1);
    assert!(
        round.stdout.contains(GOOD.trim()) && round.stderr.contains("round 2: "),
        "{}",
        round.stdout
    );
}
