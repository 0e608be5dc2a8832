//! Tests of `review tree` with backends: which parts are asked about first, what a budget leaves
//! out, and how an audit continues.

use crate::loopback::{Reply, Request, Says, Server};
use crate::support::{Repo, files_below, until};
use serde_json::Value;
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};

/// A committed repository, and a server that reviews it: one file in each request, one request at a
/// time.
struct Audit {
    server: Server,
    repo: Repo,
}

/// Returns the content of a file with a value.
fn content_of(file: &str, value: u32) -> String {
    format!("# The file {file}.\nvalue = {value}\n")
}

impl Audit {
    /// Commits these files, each with a line of its own.
    fn new(files: &[&str]) -> Self {
        Self::answering(files, |r| r.review(&[]))
    }

    fn answering(
        files: &[&str],
        answer: impl Fn(&Request) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let server = Server::start(answer);
        let repo = Repo::new();
        let policy = server
            .policy("openai")
            .replace(
                "version = 1\n",
                "version = 1\nignore = [\".claude-reviewer.toml\"]\n",
            )
            .replace("[review]\n", "[review]\nmax_files = 1\njobs = 1\n");
        repo.stage(".claude-reviewer.toml", policy);
        for file in files {
            repo.stage(file, content_of(file, 1));
        }
        repo.commit("files");
        Self { server, repo }
    }

    /// Returns the files of the requests since `first`, in order, one for each request.
    fn asked_since(&self, first: usize) -> Vec<String> {
        let requests = self.server.questions();
        requests[first..].iter().flat_map(Request::files).collect()
    }

    fn count(&self) -> usize {
        self.server.questions().len()
    }

    /// Reviews the tree and returns the report.
    fn report(&self, args: &[&str], code: i32) -> Value {
        self.repo
            .reviewer(&[&["review", "tree", "--format", "json"], args].concat())
            .run(code)
            .json()
    }

    /// Starts a review of the tree that prints nothing.
    fn start(&self, args: &[&str]) -> Child {
        self.repo
            .reviewer(&[&["review", "tree"], args].concat())
            .command()
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap()
    }
}

/// Returns the files of the failures of a report, with their reasons.
fn failures(report: &Value) -> Vec<(String, String)> {
    let failed = report["coverage"]["failed"].as_array().unwrap();
    failed
        .iter()
        .map(|f| {
            let text = |key: &str| f[key].as_str().unwrap_or_default().to_owned();
            (text("file"), text("reason"))
        })
        .collect()
}

/// Returns the texts of the notes of a report, one a line.
fn notes(report: &Value) -> String {
    let notes = report["notes"].as_array().unwrap();
    let texts: Vec<&str> = notes.iter().filter_map(|n| n["text"].as_str()).collect();
    texts.join("\n")
}

#[test]
fn the_files_of_an_audit_are_asked_about_in_the_order_of_their_risk() {
    let audit = Audit::new(&[
        "a/colour.py",
        "docs/guide.md",
        "src/auth.py",
        "src/main.py",
        "tests/test_auth.py",
    ]);
    audit.report(&[], 0);
    assert_eq!(
        audit.asked_since(0),
        [
            "src/auth.py",
            "src/main.py",
            "a/colour.py",
            "docs/guide.md",
            "tests/test_auth.py"
        ]
    );
}

#[test]
fn a_file_that_changed_in_the_last_year_is_asked_about_before_one_that_did_not() {
    let audit = Audit::new(&["a/first.py", "b/second.py", "c/third.py"]);
    for n in 2..6 {
        audit
            .repo
            .stage("c/third.py", content_of("c/third.py", n))
            .commit("change");
    }
    audit
        .repo
        .stage("b/second.py", content_of("b/second.py", 2))
        .commit("change");
    for args in [
        &["--no-cache"][..],
        &["--no-cache", "--index"],
        &["--no-cache", "--rev", "HEAD"],
    ] {
        let before = audit.count();
        audit.report(args, 0);
        assert_eq!(
            audit.asked_since(before),
            ["c/third.py", "b/second.py", "a/first.py"],
            "{args:?}"
        );
    }
}

#[test]
fn a_file_with_a_finding_is_asked_about_before_one_without() {
    let audit = Audit::new(&["a/first.txt", "b/second.txt"]);
    audit
        .repo
        .stage("a/first.txt", "fine\n")
        .stage(
            "b/second.txt",
            "<<<<<<< HEAD\na\n=======\nb\n>>>>>>> other\n",
        )
        .commit("a conflict");
    audit.report(&[], 1);
    assert_eq!(audit.asked_since(0), ["b/second.txt", "a/first.txt"]);
}

#[test]
fn a_budget_of_requests_leaves_out_the_least_risky_files_and_lists_them() {
    let audit = Audit::new(&[
        "a/colour.py",
        "src/auth.py",
        "src/main.py",
        "tests/test_auth.py",
    ]);
    let report = audit.report(&["--max-requests", "2"], 3);
    assert_eq!(audit.asked_since(0), ["src/auth.py", "src/main.py"]);
    let reason = "not all of it was asked about: max_requests = 2";
    assert_eq!(
        failures(&report),
        [
            ("a/colour.py".to_owned(), reason.to_owned()),
            ("tests/test_auth.py".to_owned(), reason.to_owned()),
        ]
    );
    let text = notes(&report);
    assert!(
        text.contains(
            "2 files by max_requests = 2; continue: claude-reviewer review tree --resume"
        ),
        "{text}"
    );
    let human = audit
        .repo
        .reviewer(&["review", "tree", "--no-cache", "--max-requests", "2"])
        .run(3);
    let words: Vec<&str> = human.stdout.split_whitespace().collect();
    let text = words.join(" ");
    for shown in [
        "not reviewed: a/colour.py, tests/test_auth.py: not all of it",
        "2 files by max_requests = 2; continue: claude-reviewer review tree --resume",
    ] {
        assert!(text.contains(shown), "{text}");
    }
}

#[test]
fn a_budget_of_dollars_leaves_out_the_least_risky_files() {
    let files = ["a/colour.py", "src/auth.py", "tests/test_auth.py"];
    let audit = Audit::answering(&files, |r| {
        r.answer(&Says {
            text: r.document(&[]).to_string(),
            tokens: (11_000, 0, 500),
            ..Says::default()
        })
    });
    let policy = std::fs::read_to_string(audit.repo.path().join(".claude-reviewer.toml")).unwrap();
    let price = "price = { input = 1000, cached = 1000, output = 1000 }\n";
    audit
        .repo
        .stage(".claude-reviewer.toml", format!("{policy}{price}"))
        .commit("a price");
    let report = audit.report(&["--max-cost", "12"], 3);
    assert_eq!(audit.asked_since(0), ["src/auth.py"]);
    let reason = "not all of it was asked about: max_cost_usd = 12";
    assert_eq!(
        failures(&report),
        [
            ("a/colour.py".to_owned(), reason.to_owned()),
            ("tests/test_auth.py".to_owned(), reason.to_owned()),
        ]
    );
    let text = notes(&report);
    assert!(
        text.contains("2 files by max_cost_usd = 12; continue: "),
        "{text}"
    );
}

#[test]
fn an_audit_that_is_resumed_asks_only_the_rest_and_reports_all() {
    for cache in [&["--no-cache"][..], &[]] {
        for depth in ["quick", "thorough"] {
            let lenses = if depth == "quick" { 1 } else { 4 };
            let audit = Audit::new(&[
                "src/auth.py",
                "src/main.py",
                "src/plain.py",
                "tests/test_auth.py",
            ]);
            let limit = (2 * lenses * 5_usize).div_ceil(4).to_string();
            let args = [&["--depth", depth], cache].concat();
            let first = if depth == "quick" { "2" } else { &limit };
            let report = audit.report(&[&args[..], &["--max-requests", first]].concat(), 3);
            assert_eq!(failures(&report).len(), 2, "{depth} {report}");
            let before = audit.count();
            assert_eq!(before, 2 * lenses, "{depth} {cache:?}");
            // A smaller budget than before: answers that are there do not count.
            let report = audit.report(
                &[&args[..], &["--resume", "--max-requests", first]].concat(),
                0,
            );
            assert!(failures(&report).is_empty(), "{report}");
            assert_eq!(audit.count(), 4 * lenses, "{depth} {cache:?}");
            let mut rest = audit.asked_since(before);
            rest.dedup();
            assert_eq!(
                rest,
                ["src/plain.py", "tests/test_auth.py"],
                "{depth} {cache:?}"
            );
            assert_eq!(
                report["coverage"]["by_reviewer"]["openai"]["files_reviewed"],
                4
            );
            let run = audit.repo.reviewer(&["review", "tree", "--resume"]).run(2);
            assert!(run.stderr.contains("no unfinished audit"), "{}", run.stderr);
        }
    }
}

/// A gate that holds the answers to all requests but the first ones.
#[derive(Default)]
struct Gate {
    is_open: Mutex<bool>,
    opened: Condvar,
}

impl Gate {
    fn wait(&self) {
        let mut is_open = self.is_open.lock().unwrap();
        while !*is_open {
            is_open = self.opened.wait(is_open).unwrap();
        }
    }

    fn open(&self) {
        *self.is_open.lock().unwrap() = true;
        self.opened.notify_all();
    }
}

#[test]
fn an_audit_that_was_killed_loses_only_the_request_in_flight() {
    let gate = Arc::new(Gate::default());
    let (held, is_held) = (Arc::clone(&gate), Arc::new(AtomicBool::new(false)));
    let (tell, asked) = (Arc::clone(&is_held), AtomicUsize::new(0));
    let audit = Audit::answering(
        &[
            "src/auth.py",
            "src/main.py",
            "src/plain.py",
            "tests/test_auth.py",
        ],
        move |r| {
            if r.method == "POST" && asked.fetch_add(1, Ordering::SeqCst) == 2 {
                tell.store(true, Ordering::SeqCst);
                held.wait();
            }
            r.review(&[])
        },
    );
    let mut child = audit.start(&["--no-cache"]);
    until("the third request is in flight", || {
        is_held.load(Ordering::SeqCst)
    });
    child.kill().unwrap();
    child.wait().unwrap();
    gate.open();
    let before = audit.count();
    assert_eq!(before, 3);
    let report = audit.report(&["--no-cache", "--resume"], 0);
    assert_eq!(
        audit.asked_since(before),
        ["src/plain.py", "tests/test_auth.py"]
    );
    assert_eq!(
        report["coverage"]["by_reviewer"]["openai"]["files_reviewed"],
        4
    );
}

#[test]
fn an_unfinished_audit_is_mentioned_and_not_used_without_resume() {
    let audit = Audit::new(&["src/auth.py", "src/main.py"]);
    audit.report(&["--no-cache", "--max-requests", "1"], 3);
    let before = audit.count();
    let report = audit.report(&["--no-cache"], 0);
    assert_eq!(audit.count(), before + 2);
    let text = notes(&report);
    assert!(
        text.contains("an unfinished audit of the same state has 1 answer"),
        "{text}"
    );
    let report = audit.report(&["--no-cache"], 0);
    assert!(!notes(&report).contains("unfinished audit"));
}

#[test]
fn an_audit_of_another_state_is_an_error_that_names_what_differs() {
    let audit = Audit::new(&["src/auth.py", "src/main.py"]);
    let resume = |args: &[&str]| {
        let args = [&["review", "tree", "--resume"], args].concat();
        audit.repo.reviewer(&args).run(2).stderr
    };
    let nothing = resume(&[]);
    assert!(
        nothing.contains("no unfinished audit of this repository to resume"),
        "{nothing}"
    );
    assert!(
        nothing.contains("start anew: claude-reviewer review tree\n"),
        "{nothing}"
    );
    audit.report(&["--max-requests", "1"], 3);
    let before = audit.count();
    for (args, words, what) in [
        (
            &["--index"][..],
            "--index",
            "changed since then: the kind of tree\n",
        ),
        (
            &["src/auth.py"],
            "src/auth.py",
            "changed since then: the files and the selected paths\n",
        ),
        (
            &["--depth", "thorough"],
            "--depth thorough",
            "changed since then: the policy\n",
        ),
        (
            &["--summary", "a task"],
            "--summary 'a task'",
            "changed since then: the options\n",
        ),
        (&["--shard", "1/2"], "--shard 1/2", "no unfinished audit"),
    ] {
        let error = resume(args);
        assert!(error.contains(what), "{args:?}: {error}");
        let command = format!("start anew: claude-reviewer review tree {words}\n");
        assert!(error.contains(&command), "{command}: {error}");
    }
    audit.repo.write("src/auth.py", "value = 2\n");
    assert!(resume(&[]).contains("changed since then: the files\n"));
    assert_eq!(audit.count(), before, "an error sends no request");
    // The state excludes the limits.
    audit
        .repo
        .write("src/auth.py", "# The file src/auth.py.\nvalue = 1\n");
    audit.report(
        &[
            "--resume",
            "--timeout",
            "90s",
            "--max-cost",
            "7",
            "--jobs",
            "2",
        ],
        0,
    );
    assert_eq!(audit.count(), before + 1);
}

#[test]
fn a_shard_has_its_own_journal() {
    let audit = Audit::new(&[
        "src/auth.py",
        "src/main.py",
        "src/plain.py",
        "src/x.py",
        "src/y.py",
    ]);
    for shard in ["1/2", "2/2"] {
        audit.report(&["--shard", shard, "--max-requests", "1"], 3);
    }
    assert_eq!(audit.count(), 2);
    for shard in ["1/2", "2/2"] {
        audit.report(&["--shard", shard, "--resume"], 0);
    }
    let mut asked = audit.asked_since(0);
    asked.sort_unstable();
    assert_eq!(
        asked,
        [
            "src/auth.py",
            "src/main.py",
            "src/plain.py",
            "src/x.py",
            "src/y.py"
        ]
    );
}

#[test]
fn a_damaged_answer_is_asked_about_again_with_a_note() {
    let audit = Audit::new(&["src/auth.py", "src/main.py", "src/plain.py"]);
    audit.report(&["--no-cache", "--max-requests", "2"], 3);
    let state = audit
        .repo
        .home()
        .join(".local/state/claude-reviewer/audits-1");
    let answers: Vec<_> = files_below(&state)
        .into_iter()
        .filter(|f| f.parent().unwrap() != state)
        .collect();
    assert_eq!(answers.len(), 2);
    for file in files_below(&state) {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = file.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{}", file.display());
    }
    let mut text = std::fs::read(&answers[0]).unwrap();
    let end = text.len() - 2;
    text[end] ^= 1;
    std::fs::write(&answers[0], text).unwrap();
    let before = audit.count();
    let report = audit.report(&["--no-cache", "--resume"], 0);
    assert_eq!(audit.count(), before + 2);
    let text = notes(&report);
    assert!(
        text.contains("1 answer of the unfinished audit could not be read"),
        "{text}"
    );
    assert_eq!(files_below(&state), Vec::<std::path::PathBuf>::new());
}

#[test]
fn resume_is_for_audits_by_models() {
    let audit = Audit::new(&["src/auth.py"]);
    for (args, what) in [
        (&["--resume", "--history"][..], "--history"),
        (&["--resume", "--offline"], "no backend is asked"),
    ] {
        let run = audit
            .repo
            .reviewer(&[&["review", "tree"], args].concat())
            .run(2);
        assert!(run.stderr.contains(what), "{args:?}: {}", run.stderr);
    }
    let repo = Repo::new();
    repo.stage("a.txt", "a\n").commit("a file");
    let run = repo.reviewer(&["review", "tree", "--resume"]).run(2);
    assert!(
        run.stderr
            .contains("--resume is for models, and no backend is named"),
        "{}",
        run.stderr
    );
    assert_eq!(audit.count(), 0);
}

/// Returns an audit whose answers cost 11.5 US dollars each.
fn priced(files: &[&str]) -> Audit {
    let audit = Audit::answering(files, |r| {
        r.answer(&Says {
            text: r.document(&[]).to_string(),
            tokens: (11_000, 0, 500),
            ..Says::default()
        })
    });
    let policy = std::fs::read_to_string(audit.repo.path().join(".claude-reviewer.toml")).unwrap();
    let price = "price = { input = 1000, cached = 1000, output = 1000 }\n";
    audit
        .repo
        .stage(".claude-reviewer.toml", format!("{policy}{price}"))
        .commit("a price");
    audit
}

/// Returns the cost in a report, and the part of it that earlier runs had.
fn cost(report: &Value) -> (Option<f64>, Option<f64>) {
    let usage = &report["usage"][0];
    (usage["cost_usd"].as_f64(), usage["earlier_usd"].as_f64())
}

#[test]
fn the_cost_of_a_resumed_audit_is_that_of_all_its_runs() {
    let files = ["src/auth.py", "src/main.py", "src/plain.py", "src/x.py"];
    let audit = priced(&files);
    let args = |more: &[&'static str]| [&["--max-cost", "1000"], more].concat();
    let report = audit.report(&args(&["--max-requests", "1"]), 3);
    assert_eq!(cost(&report), (Some(11.5), None));
    let report = audit.report(&args(&["--resume", "--max-requests", "2"]), 3);
    assert_eq!(cost(&report), (Some(34.5), Some(11.5)));
    let report = audit.report(&args(&["--resume"]), 0);
    assert_eq!(cost(&report), (Some(46.0), Some(34.5)));
    assert_eq!(audit.count(), 4);
    // The audit is complete. Answers from the cache cost nothing.
    let report = audit.report(&args(&[]), 0);
    assert_eq!(report["usage"][0]["from_cache"], 4);
    let (usd, earlier) = cost(&report);
    assert!(usd.is_none_or(|usd| usd == 0.0) && earlier.is_none());
}

#[test]
fn a_journal_of_an_earlier_version_is_continued_without_its_costs() {
    let audit = priced(&["src/auth.py", "src/main.py"]);
    audit.report(&["--max-cost", "1000", "--max-requests", "1"], 3);
    let state = audit
        .repo
        .home()
        .join(".local/state/claude-reviewer/audits-1");
    let mut costs = files_below(&state);
    costs.retain(|f| std::fs::read_to_string(f).unwrap().contains("11.5"));
    assert_eq!(costs.len(), 1);
    std::fs::remove_file(&costs[0]).unwrap();
    let report = audit.report(&["--max-cost", "1000", "--resume"], 0);
    assert_eq!(cost(&report), (Some(11.5), None));
    assert_eq!(audit.count(), 2);
}

#[test]
fn a_file_with_findings_in_stored_reviews_is_asked_about_before_one_without() {
    let audit = Audit::new(&["a/first.txt", "b/second.txt"]);
    let conflict = "<<<<<<< HEAD\na\n=======\nb\n>>>>>>> other\n";
    // Both files have the same commits.
    for (first, second) in [("one\n", conflict), ("two\n", "fine\n")] {
        let repo = &audit.repo;
        repo.stage("a/first.txt", first)
            .stage("b/second.txt", second)
            .commit("change");
        // Without its models, the review is incomplete.
        let code = if second == conflict { 1 } else { 3 };
        repo.reviewer(&["review", "commit", "HEAD", "--offline"])
            .run(code);
        if second == conflict {
            assert!(repo.path().join(".reviews").exists());
        }
    }
    audit.report(&["--no-cache"], 0);
    assert_eq!(audit.asked_since(0), ["b/second.txt", "a/first.txt"]);
    std::fs::remove_dir_all(audit.repo.path().join(".reviews")).unwrap();
    audit.report(&["--no-cache"], 0);
    assert_eq!(audit.asked_since(2), ["a/first.txt", "b/second.txt"]);
}

#[test]
fn a_file_and_the_one_that_imports_it_share_a_request() {
    let files = [
        "app/colour.py",
        "app/first.py",
        "app/second.py",
        "app/zebra.py",
    ];
    let audit = Audit::new(&files);
    let policy = std::fs::read_to_string(audit.repo.path().join(".claude-reviewer.toml")).unwrap();
    audit.repo.stage(
        ".claude-reviewer.toml",
        policy.replace("max_files = 1", "max_files = 2"),
    );
    audit.repo.commit("two files a request");
    let requests = |first: usize| -> Vec<Vec<String>> {
        audit.server.questions()[first..]
            .iter()
            .map(Request::files)
            .collect()
    };
    audit.report(&["--no-cache"], 0);
    let by_name = requests(0);
    let pair = vec!["app/colour.py".to_owned(), "app/zebra.py".to_owned()];
    assert!(!by_name.contains(&pair), "{by_name:?}");
    audit
        .repo
        .stage(
            "app/colour.py",
            "from app.zebra import stripes\n\nstripes(4)\n",
        )
        .commit("an import");
    audit.report(&["--no-cache"], 0);
    let by_import = requests(by_name.len());
    assert!(by_import.contains(&pair), "{by_import:?}");
    // A file that many import belongs to none of them.
    for file in ["app/first.py", "app/second.py"] {
        audit
            .repo
            .stage(file, "from app.zebra import stripes\n\nstripes(4)\n");
    }
    audit.repo.commit("more imports");
    audit.report(&["--no-cache"], 0);
    // The commits change the order of the requests, and not the requests.
    let sorted = |mut requests: Vec<Vec<String>>| {
        requests.sort_unstable();
        requests
    };
    let last = requests(by_name.len() + by_import.len());
    assert_eq!(sorted(last), sorted(by_name));
}
