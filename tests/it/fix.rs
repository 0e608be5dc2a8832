//! Tests of `fix`: a model fixes findings, or the worktree, the index and HEAD stay unmodified.

mod claude;
mod guard;
mod interrupted;
mod refusals;
mod sandboxed;
mod written;

use crate::loopback::{Reply, Request, Server, finding};
use crate::support::{Repo, Run, files_below};
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

const CODE: &str = "import os\n\n\ndef mean(all, n):\n    x = sum(all) / n\n    return x\n\n\nlast = mean([1], 1)\n";
const BAD: &str = "    x = sum(all) / n";
const GOOD: &str = "    x = sum(all) / n if n else 0";

/// The actions of a model in one attempt: calls of `edit` and `create`, all at once.
type Edits = Vec<Value>;

fn edit(path: &str, old: &str, new: &str) -> Value {
    json!({"name": "edit", "arguments": {"path": path, "old": old, "new": new}})
}

fn create(path: &str, text: &str) -> Value {
    json!({"name": "create", "arguments": {"path": path, "text": text}})
}

/// A reviewed repository, and a model that plans and makes these attempts; the last one is
/// repeated.
struct Case {
    repo: Repo,
    server: Server,
    /// Prompts of the attempts.
    prompts: Arc<Mutex<Vec<String>>>,
}

/// Additional behaviour of a model before it answers a request; `None` to answer as usual.
type Also = Box<dyn Fn(&Request) -> Option<Reply> + Send + Sync>;

impl Case {
    fn new(attempts: Vec<Edits>) -> Self {
        Self::with(CODE, attempts, "", Box::new(|_| None))
    }

    fn with(code: &str, attempts: Vec<Edits>, tests: &str, also: Also) -> Self {
        let prompts: Arc<Mutex<Vec<String>>> = Arc::default();
        let kept = Arc::clone(&prompts);
        let number = AtomicUsize::new(0);
        let server = Server::start(move |r| {
            if let Some(reply) = also(r) {
                return reply;
            }
            let prompt = r.prompt();
            let nonce = r.nonce();
            if prompt.contains("Plan how to fix the findings above.") {
                let steps = json!([{"text": "Treat an empty list.", "files": ["a.py"]}]);
                return r.text(
                    &json!({"nonce": nonce, "summary": "Guard the division.", "steps": steps})
                        .to_string(),
                );
            }
            if prompt.contains("in the private copy") {
                if has_tool_answers(r) {
                    let report = json!({"nonce": nonce, "summary": "Guarded the division.", "problem": null});
                    return r.text(&report.to_string());
                }
                kept.lock().unwrap().push(prompt);
                let n = number
                    .fetch_add(1, Ordering::SeqCst)
                    .min(attempts.len() - 1);
                if attempts[n].is_empty() {
                    let report =
                        json!({"nonce": nonce, "summary": "Nothing to do.", "problem": null});
                    return r.text(&report.to_string());
                }
                return calls(r, &attempts[n]);
            }
            // The claim is about a line that divides without a guard.
            let bad = prompt
                .lines()
                .any(|line| line.contains("/ n") && !line.contains("if n") && line.contains('+'));
            r.review(&if bad {
                vec![finding("a.py", 5, BAD)]
            } else {
                vec![]
            })
        });
        let repo = Repo::new();
        repo.stage("README", "Means.\n").commit("seed");
        let home = repo.home().join(".config/claude-reviewer/config.toml");
        std::fs::create_dir_all(home.parent().unwrap()).unwrap();
        std::fs::write(&home, format!("{}{tests}", server.policy("openai"))).unwrap();
        repo.stage("a.py", code);
        repo.reviewer(&["review", "staged"]).run(1);
        Self {
            repo,
            server,
            prompts,
        }
    }

    fn fix(&self, args: &[&str]) -> Run {
        let tmp = self.repo.outside().join("tmp");
        std::fs::create_dir_all(&tmp).unwrap();
        self.repo
            .reviewer(&[&["fix", "--yes"], args].concat())
            .env("TMPDIR", tmp)
            .run_any()
    }

    fn text(&self, path: &str) -> String {
        std::fs::read_to_string(self.repo.path().join(path)).unwrap()
    }

    /// Returns the stored fixes.
    fn stored(&self) -> Value {
        self.repo
            .reviewer(&["history", "latest", "--format", "json"])
            .run(0)
            .json()["fixes"]
            .clone()
    }

    /// Returns the verdicts of the attempts of the last fix.
    fn verdicts(&self) -> Vec<String> {
        let stored = self.stored();
        let last = stored.as_array().unwrap().last().unwrap().clone();
        let all = last["attempts"].as_array().unwrap().clone();
        all.iter()
            .map(|a| a["verdict"].as_str().unwrap().to_owned())
            .collect()
    }

    /// Runs `fix`, which must fail with this message and leave everything unmodified.
    #[track_caller]
    fn refused(&self, args: &[&str], code: i32, reason: &str) -> Run {
        let before = state(&self.repo);
        let run = self.fix(args);
        assert_eq!(run.code, code, "{}\n{}", run.stdout, run.stderr);
        assert!(
            run.stderr.contains(reason),
            "{}\n{}",
            run.stdout,
            run.stderr
        );
        assert!(run.stderr.contains("hint: "), "{}", run.stderr);
        assert!(
            state(&self.repo) == before,
            "the repository was changed: {}",
            run.stderr
        );
        assert_eq!(
            left(&self.repo),
            Vec::<PathBuf>::new(),
            "temporary files are left"
        );
        run
    }
}

/// Returns true if a request contains results of tools.
fn has_tool_answers(r: &Request) -> bool {
    r.json()["messages"]
        .as_array()
        .unwrap()
        .iter()
        .any(|m| m["role"] == "tool")
}

/// Answers with calls of tools.
fn calls(r: &Request, edits: &[Value]) -> Reply {
    let calls: Vec<(&str, Value)> = edits
        .iter()
        .map(|e| (e["name"].as_str().unwrap(), e["arguments"].clone()))
        .collect();
    r.calls(&calls)
}

/// A file with its content and its mode.
type FileState = (PathBuf, Vec<u8>, u32);

/// Returns the worktree, the index and HEAD.
fn state(repo: &Repo) -> (Vec<FileState>, Vec<u8>, String) {
    let top = repo.path();
    let is_own = |file: &PathBuf| {
        !file.starts_with(top.join(".git")) && !file.starts_with(top.join(".reviews"))
    };
    let mode = |file: &Path| {
        std::fs::metadata(file)
            .map(|m| m.permissions().mode())
            .unwrap_or_default()
    };
    let own = files_below(&top).into_iter().filter(is_own);
    let mut files: Vec<_> = own
        .map(|f| (f.clone(), std::fs::read(&f).unwrap_or_default(), mode(&f)))
        .collect();
    files.sort();
    let index = std::fs::read(top.join(".git/index")).unwrap();
    (files, index, repo.git(&["rev-parse", "HEAD"]))
}

/// Returns the private folders that were left in the folder for temporary files.
fn left(repo: &Repo) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(repo.outside().join("tmp"))
        .into_iter()
        .flatten()
        .flatten();
    entries.map(|e| e.path()).collect()
}

#[test]
fn a_verified_fix_is_written_and_the_index_stays() {
    let case = Case::new(vec![vec![edit("a.py", BAD, GOOD)]]);
    let run = case.fix(&["F1"]);
    assert_eq!(run.code, 0, "{}\n{}", run.stdout, run.stderr);
    assert_eq!(case.text("a.py"), CODE.replace(BAD, GOOD));
    assert_eq!(case.repo.git(&["show", ":a.py"]), CODE);
    for part in [
        "plan by openai: Guard the division.",
        "1. Treat an empty list.",
        "the fix is verified",
        &format!("+{GOOD}"),
        "fixed F1 in a.py",
    ] {
        assert!(run.stdout.contains(part), "{part}: {}", run.stdout);
    }
    let stored = &case.stored()[0];
    assert_eq!(
        (&stored["outcome"], &stored["findings"]),
        (&json!("applied"), &json!(["F1"]))
    );
    let attempt = &stored["attempts"][0];
    assert_eq!(
        (&attempt["attempt_number"], &attempt["verdict"]),
        (&json!(1), &json!("verified"))
    );
    assert_eq!(attempt["execution_output"], json!("Guarded the division."));
    assert!(
        attempt["planning_output"]
            .as_str()
            .unwrap()
            .contains("Treat an empty list.")
    );
    assert!(
        attempt["requests"].as_u64().unwrap() >= 3 && attempt["tokens"].as_u64().unwrap() > 0,
        "{attempt}"
    );
    assert!(attempt["patch"].as_str().unwrap().contains(GOOD) && attempt["timestamp"].is_string());
    let page = case.repo.reviewer(&["history", "latest"]).run(0).stdout;
    assert!(
        page.contains("fix 1 of F1: applied") && page.contains("attempt 1"),
        "{page}"
    );
    case.repo.reviewer(&["history", "verify"]).run(0);
}

#[test]
fn the_record_of_a_fix_is_in_the_hash_chain_of_its_session() {
    let case = Case::new(vec![vec![edit("a.py", BAD, GOOD)]]);
    let head = |case: &Case| {
        let stored = case
            .repo
            .reviewer(&["history", "latest", "--format", "json"])
            .run(0)
            .json();
        (
            stored["head"].as_str().unwrap().to_owned(),
            stored["review_id"].as_str().unwrap().to_owned(),
        )
    };
    let (before, id) = head(&case);
    assert_eq!(case.fix(&["F1"]).code, 0);
    let (after, _) = head(&case);
    assert_ne!(before, after);
    for noted in [&before, &after] {
        case.repo
            .reviewer(&["history", "verify", "latest", "--head", noted])
            .run(0);
    }
    let path = format!(".reviews/sessions/{id}/fixes.json");
    let text = case.text(&path);
    case.repo.write(
        &path,
        text.replace("Guarded the division.", "Nothing was changed."),
    );
    let run = case.repo.reviewer(&["history", "verify"]).run(1);
    assert!(
        run.stdout.contains("fixes.json: fix 1 was modified"),
        "{}",
        run.stdout
    );
    case.repo.write(&path, text);
    case.repo.reviewer(&["history", "verify"]).run(0);
}

#[test]
fn what_failed_is_told_to_the_next_attempt() {
    let useless = vec![edit("a.py", "import os\n", "import sys\n")];
    let case = Case::new(vec![useless, vec![], vec![edit("a.py", BAD, GOOD)]]);
    let run = case.fix(&["F1"]);
    assert_eq!(run.code, 0, "{}\n{}", run.stdout, run.stderr);
    assert_eq!(case.verdicts(), ["rejected", "no_change", "verified"]);
    let prompts = case.prompts.lock().unwrap();
    assert!(
        prompts[1].contains("F1 is still there") && prompts[1].contains("+import sys"),
        "{}",
        prompts[1]
    );
    assert!(
        prompts[2].contains("the model changed no file"),
        "{}",
        prompts[2]
    );
    assert!(
        case.text("a.py").starts_with("import os\n"),
        "a failed attempt leaves nothing behind"
    );
}

#[test]
fn dsp_05_three_failed_attempts_change_nothing_and_are_stored() {
    let case = Case::new(vec![vec![edit("a.py", "import os\n", "import sys\n")]]);
    case.refused(
        &["F1"],
        1,
        "no fix of F1 was verified, and the worktree is unchanged: F1 is still there",
    );
    assert_eq!(case.verdicts(), ["rejected", "rejected", "rejected"]);
    assert_eq!(case.stored()[0]["outcome"], json!("failed"));
    let none = Case::new(vec![vec![]]);
    none.refused(&["F1"], 1, "the model changed no file");
    assert_eq!(none.verdicts(), ["no_change"; 3]);
}

#[test]
fn dsp_05_a_finding_that_is_still_there_in_changed_lines_is_not_fixed() {
    // The model makes the same claim about the fixed line.
    let also = |r: &Request| {
        let is_review =
            !r.prompt().contains("in the private copy") && !r.prompt().contains("Plan how to fix");
        let other = "    x = (sum(all) / n)";
        (is_review && r.prompt().contains(&format!("+{other}")))
            .then(|| r.review(&[finding("a.py", 5, other)]))
    };
    let case = Case::with(
        CODE,
        vec![vec![edit("a.py", BAD, "    x = (sum(all) / n)")]],
        "",
        Box::new(also),
    );
    case.refused(&["F1"], 1, "F1 is still there");
    assert_eq!(case.verdicts(), ["rejected"; 3]);
}

#[test]
fn dsp_05_a_fix_that_brings_something_new_that_blocks_is_no_fix() {
    let new = format!("{GOOD}\n    eval(input())");
    let case = Case::new(vec![vec![edit("a.py", BAD, &new)]]);
    let run = case.refused(&["F1"], 1, "new and blocking");
    assert!(run.stdout.contains("attempt 3 failed"), "{}", run.stdout);
}

/// Writes a container command that runs its arguments, and returns the policy that uses it.
fn container(repo: &Path, command: &str) -> String {
    let container = repo.join("container");
    std::fs::create_dir_all(repo).unwrap();
    let script = "#!/bin/sh\ncase $4 in *ipv6_route*) exit 42 ;; esac\ncd \"$1\" && shift && IN_SANDBOX=1 exec \"$@\"\n";
    std::fs::write(&container, script).unwrap();
    std::fs::set_permissions(&container, std::fs::Permissions::from_mode(0o755)).unwrap();
    format!(
        "[tests]\nrun = true\non_failure = \"warn\"\ncommand = {command:?}\nsandbox = [{:?}, \"{{tree}}\"]\n",
        container.display()
    )
}

#[test]
fn sec_01_a_fix_shows_no_secret_of_the_lines_around_it() {
    let key = crate::support::line_with_key();
    let secret = key.rsplit(' ').next().unwrap().trim().to_owned();
    let code = CODE.replacen("\n\n", &format!("\n{key}"), 1);
    let fixed = vec![edit("a.py", BAD, GOOD)];
    let case = Case::with(&code, vec![fixed], "", Box::new(|_| None));
    let id = claim_id(&case);
    let run = case.fix(&[&id, "--patch", "raw.patch"]);
    assert!(
        run.code == 0 && run.stdout.contains("***") && !run.stdout.contains(&secret),
        "{}\n{}",
        run.stdout,
        run.stderr
    );
    assert!(!case.stored().to_string().contains(&secret));
    // The patch for git has all bytes.
    assert!(case.text("raw.patch").contains(&secret));
    // It has the old line, which the model would report again.
    std::fs::remove_file(case.repo.path().join("raw.patch")).unwrap();
    let run = case.fix(&[&id]);
    assert!(
        run.code == 0 && !run.stdout.contains(&secret),
        "{}\n{}",
        run.stdout,
        run.stderr
    );
    assert_eq!(case.text("a.py"), code.replace(BAD, GOOD));
}

#[test]
fn sec_01_a_secret_of_a_file_is_neither_sent_nor_lost() {
    let key = crate::support::line_with_key();
    let secret = key.rsplit(' ').next().unwrap().trim().to_owned();
    let code = format!("{CODE}{key}");
    let fixed = vec![edit("a.py", BAD, GOOD)];
    let case = Case::with(&code, vec![fixed], "", Box::new(|_| None));
    let id = claim_id(&case);
    let run = case.fix(&[&id]);
    assert_eq!(run.code, 0, "{}\n{}", run.stdout, run.stderr);
    assert_eq!(case.text("a.py"), code.replace(BAD, GOOD));
    let sent: String = case
        .server
        .questions()
        .iter()
        .map(|r| String::from_utf8_lossy(&r.body).into_owned())
        .collect();
    assert!(!sent.contains(&secret) && sent.contains("<secret:"));
    // An unknown placeholder is not written.
    let invented = vec![edit(
        "a.py",
        BAD,
        &format!("{GOOD}\n    y = '<secret:aws-access-key-id:99>'"),
    )];
    let case = Case::with(&code, vec![invented], "", Box::new(|_| None));
    case.refused(
        &[&claim_id(&case)],
        1,
        "placeholder of a secret that the file does not have",
    );
}

/// Returns the ID of the model's finding.
fn claim_id(case: &Case) -> String {
    let all = case
        .repo
        .reviewer(&["findings", "--format", "json"])
        .run(0)
        .json();
    let is_claim = |f: &&Value| f["origin"] == json!("openai");
    all["findings"]
        .as_array()
        .unwrap()
        .iter()
        .find(is_claim)
        .unwrap()["id"]
        .as_str()
        .unwrap()
        .to_owned()
}

#[test]
fn limits_hold_for_the_whole_fix() {
    let case = Case::new(vec![vec![edit("a.py", "import os\n", "import sys\n")]]);
    let before = case.server.questions().len();
    case.refused(&["F1", "--max-requests", "5"], 3, "max_requests = 5");
    assert!(case.server.questions().len() - before <= 5);
}

#[test]
fn inj_01_a_finding_that_gives_orders_is_data() {
    let case = Case::new(vec![vec![edit("a.py", BAD, GOOD)]]);
    case.fix(&["F1"]);
    let prompts = case.prompts.lock().unwrap();
    let fence = prompts[0].find(" findings>").unwrap();
    let end = prompts[0][fence..].find("</untrusted-").unwrap() + fence;
    assert!(
        prompts[0][fence..end].contains("F1 major"),
        "{}",
        prompts[0]
    );
}

#[test]
fn a_fix_needs_a_person_or_a_flag() {
    let case = Case::new(vec![vec![edit("a.py", BAD, GOOD)]]);
    let before = case.server.questions().len();
    let run = case.repo.reviewer(&["fix", "F1"]).run(2);
    assert!(
        run.stderr
            .contains("hint: claude-reviewer fix F1 --session latest --yes"),
        "{}",
        run.stderr
    );
    assert_eq!(case.server.questions().len(), before, "nothing was asked");
}

#[test]
fn accepted_findings_are_fixed_by_default_or_those_that_block() {
    let case = Case::new(vec![vec![edit("a.py", BAD, GOOD)]]);
    let run = case.fix(&[]);
    assert!(
        run.code == 0
            && run
                .stdout
                .contains("nothing was decided yet; fixing the findings that block"),
        "{}",
        run.stdout
    );
    let case = Case::new(vec![vec![edit("a.py", BAD, GOOD)]]);
    case.repo.reviewer(&["accept", "F1"]).run(0);
    let run = case.fix(&[]);
    assert!(
        run.code == 0 && run.stdout.contains("fixing the accepted findings"),
        "{}",
        run.stdout
    );
    let case = Case::new(vec![vec![edit("a.py", BAD, GOOD)]]);
    case.repo
        .reviewer(&["reject", "F1", "--reason", "fine"])
        .run(0);
    case.refused(&[], 2, "no accepted finding to fix");
}

#[test]
fn names_that_are_unknown_are_refused_before_a_model_is_asked() {
    let case = Case::new(vec![vec![edit("a.py", BAD, GOOD)]]);
    let before = case.server.questions().len();
    case.refused(&["F9"], 2, "has no finding \"F9\"");
    case.refused(
        &["F1", "--session", "2020-01-01-001"],
        2,
        "review 2020-01-01-001 not found",
    );
    case.refused(&["F1", "--session", "nonsense"], 2, "invalid review ID");
    case.refused(&["F1", "--backend", "nobody"], 2, "unknown backend nobody");
    assert_eq!(case.server.questions().len(), before);
    case.repo
        .reviewer(&["complete", "latest", "--status", "abandoned"])
        .run(0);
    case.refused(&["F1"], 2, "is closed");
}
