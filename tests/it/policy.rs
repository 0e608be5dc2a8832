//! Tests of `policy`: files, layers, trust, and which policy applies.

use crate::support::{Repo, Run, binary, reviewer};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::PathBuf;
use std::time::{Duration, Instant};

const FILE: &str = ".claude-reviewer.toml";

/// Writes the user's own policy file.
fn user_policy(repo: &Repo, text: &str) {
    let path = repo.home().join(".config/claude-reviewer/config.toml");
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

#[track_caller]
fn policy(repo: &Repo, args: &[&str], code: i32) -> Run {
    repo.reviewer(&[&["policy"], args].concat()).run(code)
}

#[track_caller]
fn shown(repo: &Repo, args: &[&str]) -> serde_json::Value {
    let run = policy(
        repo,
        &[&["show", "--origin", "--format", "json"], args].concat(),
        0,
    );
    serde_json::from_str(&run.stdout).unwrap()
}

/// Returns a value in the form of an AWS access key ID that does not exist.
fn secret() -> String {
    let letters = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
    let mut n = 0x9E37_79B9_u64;
    let tail: String = (0..16)
        .map(|_| {
            n = n
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            letters[(n >> 40) as usize % letters.len()] as char
        })
        .collect();
    ["AK", "IA", &tail].concat()
}

/// Runs until one run is fast enough: on a busy machine, a slow run proves nothing.
#[track_caller]
fn within(limit: Duration, what: &str, run: impl Fn() -> Run) -> Run {
    for _ in 0..5 {
        let start = Instant::now();
        let run = run();
        if start.elapsed() < limit {
            return run;
        }
    }
    panic!("{what} takes more than {limit:?}")
}

fn notes(report: &serde_json::Value) -> String {
    report["notes"].to_string()
}

/// A repository with one commit on `main`, checked out on `topic`.
fn with_base(policy: Option<&str>) -> Repo {
    let repo = Repo::new();
    repo.stage("a.txt", "a\n");
    if let Some(text) = policy {
        repo.stage(FILE, text);
    }
    repo.commit("base");
    repo.git(&["checkout", "-q", "-b", "topic"]);
    repo
}

#[test]
fn cfg_01_a_malformed_policy_is_a_usage_error_with_file_line_and_key() {
    let repo = Repo::new();
    repo.stage("a.txt", "a\n");
    for (text, message, hint) in [
        (
            "block_on = [\"critical\"\n[review]",
            "malformed TOML in .claude-reviewer.toml:2",
            "",
        ),
        (
            "version = 1\nblock-on = []",
            "unknown key \"block-on\" in .claude-reviewer.toml:2",
            "did you mean \"block_on\"?",
        ),
        (
            "\n[review]\njobs = \"4\"",
            "\"review.jobs\" in .claude-reviewer.toml:3 must be a whole number from 1 to 64, not a string",
            "",
        ),
        (
            "[review]\n\nignore = []",
            "unknown key \"review.ignore\" in .claude-reviewer.toml:3",
            "move \"ignore\" to the top level",
        ),
        (
            "timeout = \"2m\"",
            "unknown key \"timeout\" in .claude-reviewer.toml:1",
            "move \"timeout\" to [review]",
        ),
        (
            "[[path]]\nglob = \"x\"\nblock = []",
            "unknown key \"path.block\" in .claude-reviewer.toml:3",
            "did you mean \"block_on\"?",
        ),
        (
            "[[path]]\nblock_on = []",
            "[[path]] in .claude-reviewer.toml:1 has no glob",
            "",
        ),
        (
            "[path]\nglob = \"x\"",
            "\"path\" in .claude-reviewer.toml:1 must be a list of tables: [[path]]",
            "",
        ),
        (
            "review = 3",
            "\"review\" in .claude-reviewer.toml:1 must be a table: [review]",
            "",
        ),
        (
            "version = 2\nnew_key = 1",
            "\"version\" in .claude-reviewer.toml:1 is 2; this program supports version 1",
            "update claude-reviewer",
        ),
        (
            "version = \"1\"",
            "\"version\" in .claude-reviewer.toml:1 must be 1",
            "version = 1",
        ),
        (
            "block_on = [\n  \"critical\",\n  \"majr\",\n]",
            "\"block_on\" in .claude-reviewer.toml:3 has the unknown severity \"majr\"",
            "did you mean \"major\"?",
        ),
        (
            "ignore = [\"[\"]",
            "\"ignore\" in .claude-reviewer.toml:1 has an invalid pattern",
            "",
        ),
        (
            "[backend.local]\nbase_url = \"http://127.0.0.1:1\"",
            "\"backend.local.kind\" in .claude-reviewer.toml:1 is missing",
            "kind = \"openai\"",
        ),
    ] {
        repo.write(FILE, text);
        for args in [&["review", "staged"][..], &["policy", "show"]] {
            let run = repo.reviewer(args).run(2);
            assert!(
                run.stderr.contains(&format!("error: {message}")),
                "{text}: {}",
                run.stderr
            );
            assert!(run.stderr.contains(hint), "{text}: {}", run.stderr);
            assert!(run.stdout.is_empty(), "{}", run.stdout);
        }
    }
    repo.write(FILE, b"block_on = [\"critical\"]\n# \xff\n");
    let run = repo.review(&["staged"], 2);
    assert!(
        run.stderr.contains(".claude-reviewer.toml:2 is not UTF-8"),
        "{}",
        run.stderr
    );
}

#[test]
fn cfg_01_check_tells_every_problem_at_once() {
    let repo = Repo::new();
    repo.write(
        FILE,
        "block-on = []\n[review]\njobs = 0\n[reveiw]\nx = 1\n[backend.x]\napi_key = \"v\"\n",
    );
    let run = policy(&repo, &["check"], 2);
    for text in [
        "\"block-on\" in .claude-reviewer.toml:1",
        "\"review.jobs\" in .claude-reviewer.toml:3",
        "unknown key \"reveiw\" in .claude-reviewer.toml:4",
        "did you mean \"review\"?",
        "remove the key from the policy file",
    ] {
        assert!(run.stdout.contains(text), "{text}: {}", run.stdout);
    }
    let run = policy(&repo, &["show"], 2);
    assert!(
        run.stderr
            .contains("show the other 3 problems: claude-reviewer policy check"),
        "{}",
        run.stderr
    );
    // A single file anywhere.
    std::fs::write(repo.home().join("p.toml"), "on_incomplete = 'never'").unwrap();
    let run = policy(&repo, &["check", "../home/p.toml"], 2);
    assert!(
        run.stdout.contains(
            "\"on_incomplete\" in ../home/p.toml:1 must be \"fail\" or \"warn\", not \"never\""
        ),
        "{}",
        run.stdout
    );
}

#[test]
fn cfg_02_without_a_file_the_defaults_rule_and_say_so() {
    let repo = Repo::new();
    repo.stage("a.txt", "a\n");
    let report = repo.review_json(&["staged"], 0);
    assert_eq!(report["policy"]["origin"], "default");
    assert_eq!(report["policy"]["hash"].as_str().unwrap().len(), 16);
    let run = policy(&repo, &["show", "--origin"], 0);
    assert!(
        run.stdout.starts_with("# no policy file: defaults, hash "),
        "{}",
        run.stdout
    );
    // The columns fit the longest key and value.
    let line = run
        .stdout
        .lines()
        .find(|l| l.starts_with("on_incomplete "))
        .unwrap();
    assert_eq!(
        line.split_whitespace().collect::<Vec<_>>(),
        ["on_incomplete", "\"fail\"", "default"],
        "{}",
        run.stdout
    );
    assert!(
        policy(&repo, &["check"], 0)
            .stdout
            .contains("ok: no policy file: defaults")
    );
}

#[test]
fn cfg_03_each_layer_stands_above_the_one_before_and_origins_are_shown() {
    let repo = Repo::new();
    let at = |repo: &Repo, env: &[(&str, &str)], args: &[&str]| {
        let args = [&["policy", "show", "--origin", "--format", "json"], args].concat();
        let run = env
            .iter()
            .fold(repo.reviewer(&args), |r, (k, v)| r.env(k, v))
            .run(0);
        let json: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
        let origin = &json["origins"]["review.max_rounds"];
        (
            json["review"]["max_rounds"].as_u64().unwrap(),
            origin["place"].as_str().unwrap_or("-").to_owned(),
            origin["line"].as_u64(),
        )
    };
    assert_eq!(at(&repo, &[], &[]), (5, "-".to_owned(), None));
    user_policy(&repo, "[review]\nmax_rounds = 2\n");
    assert_eq!(
        at(&repo, &[], &[]),
        (
            2,
            "~/.config/claude-reviewer/config.toml".to_owned(),
            Some(2)
        )
    );
    repo.write(FILE, "\n\n[review]\nmax_rounds = 3\n");
    assert_eq!(at(&repo, &[], &[]), (3, FILE.to_owned(), Some(4)));
    repo.write("other.toml", "[review]\nmax_rounds = 6\n");
    assert_eq!(
        at(&repo, &[], &["--config", "other.toml"]),
        (6, "other.toml".to_owned(), Some(2))
    );
    assert_eq!(
        at(&repo, &[("MAX_REVIEW_ROUNDS", "4")], &[]),
        (4, "MAX_REVIEW_ROUNDS".to_owned(), None)
    );
    // XDG_CONFIG_HOME moves the user's file.
    let xdg = repo.home().join("xdg");
    std::fs::create_dir_all(xdg.join("claude-reviewer")).unwrap();
    std::fs::write(
        xdg.join("claude-reviewer/config.toml"),
        "[review]\njobs = 7\n",
    )
    .unwrap();
    let run = repo
        .reviewer(&["policy", "show", "--origin"])
        .env("XDG_CONFIG_HOME", &xdg)
        .run(0);
    assert!(
        run.stdout.lines().any(|l| l.starts_with("review.jobs")
            && l.contains("user ~/xdg/claude-reviewer/config.toml:2")),
        "{}",
        run.stdout
    );
}

#[test]
fn cfg_03_a_flag_stands_above_the_file_in_a_review() {
    let repo = Repo::new();
    repo.write(FILE, "block_on = []\nwarn_on = []\n");
    repo.stage("a.py", format!("key = '{}'\n", secret()));
    let report = repo.review_json(&["staged"], 0);
    assert_eq!(
        (&report["policy"]["origin"], &report["verdict"]),
        (&"worktree".into(), &"pass".into()),
        "{report:#}"
    );
    assert_eq!(
        repo.review_json(&["staged", "--block-on", "critical,major"], 1)["verdict"],
        "block"
    );
    std::fs::write(
        repo.home().join("strict.toml"),
        "block_on = ['critical', 'major', 'minor']\n",
    )
    .unwrap();
    let report = repo.review_json(&["staged", "--config", "../home/strict.toml"], 1);
    assert_eq!(report["policy"]["origin"], "flag");
}

#[test]
fn cfg_04_in_gate_mode_the_base_rules_and_the_change_is_reported() {
    let repo = with_base(Some("version = 1\nblock_on = ['critical', 'major']\n"));
    repo.stage(FILE, "version = 1\nblock_on = []\nwarn_on = []\n");
    repo.stage("a.py", format!("key = '{}'\n", secret()));
    repo.commit("weaken");
    let report = repo.review_json(&["branch", "--base", "main", "--gate"], 1);
    assert_eq!(report["verdict"], "block");
    assert!(
        report["policy"]["origin"]
            .as_str()
            .unwrap()
            .starts_with("base@"),
        "{}",
        report["policy"]
    );
    let weakened: Vec<_> = report["findings"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|f| f["rule_id"] == "policy-weakened")
        .collect();
    assert!(
        weakened.iter().any(|f| f["line"] == 2 && f["file"] == FILE),
        "{report:#}"
    );
    // On its own, the weaker policy blocks too, and a waiver passes it.
    repo.git(&["rm", "-q", "a.py"]);
    repo.commit("no secret");
    repo.git(&["reset", "-q", "--soft", "main"]);
    repo.commit("weaken only");
    let report = repo.review_json(&["branch", "--base", "main", "--gate"], 1);
    let findings = report["findings"].as_array().unwrap();
    assert!(
        findings.iter().all(|f| f["rule_id"] == "policy-weakened"),
        "{report:#}"
    );
    let waive: Vec<String> = findings
        .iter()
        .map(|f| {
            format!(
                "{}=agreed in the meeting",
                f["fingerprint"].as_str().unwrap()
            )
        })
        .collect();
    let run = repo
        .reviewer(&[
            "review", "branch", "--base", "main", "--gate", "--format", "json",
        ])
        .env("CLAUDE_REVIEWER_WAIVE", waive.join("\n"))
        .run(0);
    let report: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(
        report["findings"][0]["waived"]["reason"], "agreed in the meeting",
        "{report:#}"
    );
}

/// Returns the texts of `policy-weakened`, in the order of the report.
fn weakenings(report: &serde_json::Value) -> Vec<(String, String)> {
    let text = |f: &serde_json::Value, key: &str| f[key].as_str().unwrap_or_default().to_owned();
    let all = report["findings"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|f| f["rule_id"] == "policy-weakened");
    all.map(|f| (text(f, "file"), text(f, "quote"))).collect()
}

#[test]
fn cfg_04_a_first_policy_is_one_finding_in_gate_mode_and_none_at_the_desk() {
    let repo = with_base(None);
    let first = "version = 1\nblock_on = ['critical']\nwarn_on = []\nignore = ['vendor/**']\n";
    repo.stage(FILE, first);
    let staged = repo.review_json(&["staged", "--no-gate"], 0);
    assert_eq!(weakenings(&staged), []);
    repo.commit("adopt");
    let branch = ["branch", "--base", "main"];
    assert_eq!(
        weakenings(&repo.review_json(&[&branch[..], &["--no-gate"]].concat(), 0)),
        []
    );
    let report = repo.review_json(&[&branch[..], &["--gate"]].concat(), 1);
    let found = weakenings(&report);
    assert_eq!(found.len(), 1, "{report:#}");
    for part in [
        "block_on no longer includes major",
        "warn_on no longer includes minor",
        "ignore now matches vendor/**",
    ] {
        assert!(found[0].1.contains(part), "{part}: {found:?}");
    }
    let waive = format!(
        "{}=agreed",
        report["findings"][0]["fingerprint"].as_str().unwrap()
    );
    repo.review(&[&branch[..], &["--gate", "--waive", &waive]].concat(), 0);
    // The waiver applies to this policy, independent of the length of another one's list.
    let more = |n: usize| {
        let globs: Vec<String> = (0..n)
            .map(|i| format!("'a-long-name-of-a-folder-{i}/**'"))
            .collect();
        repo.stage(
            FILE,
            format!("version = 1\nignore = [{}]\n", globs.join(", ")),
        );
        repo.commit("more");
        let report = repo.review_json(&[&branch[..], &["--gate"]].concat(), 1);
        report["findings"][0]["fingerprint"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    assert_ne!(more(40), more(41));
    // A policy that is at least as strict as the defaults loosens nothing.
    repo.stage(FILE, "version = 1\nblock_on = ['minor']\n");
    repo.commit("strict");
    assert_eq!(
        weakenings(&repo.review_json(&[&branch[..], &["--gate"]].concat(), 0)),
        []
    );
    // With a policy at the base, a local review reports it.
    repo.stage(FILE, "version = 1\nblock_on = []\n");
    assert_eq!(
        weakenings(&repo.review_json(&["staged", "--no-gate"], 0)).len(),
        1
    );
}

#[test]
fn cfg_04_a_weaker_rule_of_the_team_is_reported() {
    const RULE: &str = "[[rule]]\nid = 'no-sleep'\ntitle = 'Sleep'\ncategory = 'performance'\nseverity = 'major'\n\
        languages = ['python']\nliterals = ['sleep(']\npattern = 'sleep'\nmessage = 'A handler must not sleep'\n";
    let (default, named) = (".claude-reviewer/rules/team.toml", "lint/team.toml");
    for (policy, file) in [
        (None, default),
        (Some("[rules]\npaths = ['lint/']\n"), named),
    ] {
        let repo = with_base(policy);
        repo.git(&["checkout", "-q", "main"]);
        repo.stage(file, RULE);
        repo.commit("rules");
        repo.git(&["checkout", "-q", "-B", "topic"]);
        let gate = |code: i32| {
            weakenings(&repo.review_json(&["branch", "--base", "main", "--gate"], code))
        };
        let one = |text: &str| vec![(file.to_owned(), text.to_owned())];
        // A new rule and a stricter one do not weaken anything.
        repo.stage(
            file,
            RULE.replace("'major'", "'critical'") + &RULE.replace("no-sleep", "no-nap"),
        );
        repo.commit("stricter");
        assert_eq!(gate(0), []);
        repo.stage(file, RULE.replace("'major'", "'suggestion'"));
        let lowered = repo.commit("lowered");
        let text =
            "rule no-sleep may let more through: severity is lowered from major to suggestion";
        assert_eq!(gate(1), one(text));
        repo.stage(
            file,
            RULE.replace("pattern = 'sleep'", "pattern = 'sleep_never'"),
        );
        repo.commit("narrowed");
        let text =
            "rule no-sleep may let more through: pattern changes from \"sleep\" to \"sleep_never\"";
        assert_eq!(gate(1), one(text));
        repo.git(&["rm", "-q", file]);
        repo.commit("deleted");
        assert_eq!(gate(1), one("rule no-sleep is removed"));
        // In a range, each commit is compared with the previous one.
        let report = repo.review_json(&["commit", "main..HEAD", "--gate"], 1);
        let texts: Vec<_> = weakenings(&report).into_iter().map(|(_, t)| t).collect();
        assert_eq!(texts.len(), 4, "{texts:?}");
        assert!(
            report["findings"]
                .as_array()
                .unwrap()
                .iter()
                .any(|f| f["commit"] == lowered.as_str()),
            "{report:#}"
        );
        // A file elsewhere is not a rule file.
        repo.git(&["reset", "-q", "--hard", "main"]);
        repo.stage("other/team.toml", RULE);
        repo.commit("elsewhere");
        repo.git(&["rm", "-q", "other/team.toml"]);
        repo.commit("gone");
        assert_eq!(
            weakenings(&repo.review_json(&["commit", "main..HEAD", "--gate"], 0)),
            []
        );
    }
}

#[test]
fn cfg_05_a_change_cannot_ignore_its_own_secret() {
    for (name, head, body) in [
        (
            "ignore",
            "ignore = ['*.py']\n",
            format!("key = '{}'\n", secret()),
        ),
        (
            "path",
            "[[path]]\nglob = '**'\nblock_on = []\nwarn_on = []\n",
            format!("key = '{}'\n", secret()),
        ),
        (
            "inline",
            "version = 1\n",
            format!(
                "key = '{}'  # claude-reviewer: ignore[aws-access-key-id] a sample\n",
                secret()
            ),
        ),
    ] {
        let repo = with_base(None);
        repo.stage(FILE, head);
        repo.stage("a.py", body);
        repo.commit("head");
        let report = repo.review_json(&["branch", "--base", "main", "--gate"], 1);
        let blocking = |f: &serde_json::Value| f["file"] == "a.py" && f["blocking"] == true;
        assert!(
            report["findings"].as_array().unwrap().iter().any(blocking),
            "{name}: {report:#}"
        );
    }
}

#[test]
fn cfg_06_a_project_file_cannot_choose_an_endpoint() {
    let repo = Repo::new();
    repo.stage("a.txt", "a\n");
    repo.write(FILE, "[review]\nbackends = ['far']\n[backend.far]\nkind = 'openai'\nbase_url = 'https://far.example/v1'\napi_key_env = 'AWS_SECRET_ACCESS_KEY'\n");
    let json = shown(&repo, &[]);
    assert_eq!(json["backend"]["far"]["base_url"], serde_json::Value::Null);
    assert_eq!(
        json["backend"]["far"]["api_key_env"],
        serde_json::Value::Null
    );
    let report = repo.review_json(&["staged"], 3);
    assert!(
        notes(&report)
            .contains("\\\"backend.far.base_url\\\" in .claude-reviewer.toml:5 is operator only"),
        "{report:#}"
    );
    // The key must never be sent over plain http.
    repo.write(
        FILE,
        "[backend.openai]\nbase_url = 'http://far.example/v1'\n",
    );
    let run = repo.review(&["staged"], 2);
    assert!(
        run.stderr.contains(
            "\"backend.openai.base_url\" in .claude-reviewer.toml:2 must be an https URL: plain http sends code and keys"
        ),
        "{}",
        run.stderr
    );
    // An address of this machine is accepted.
    repo.write(
        FILE,
        "[backend.local]\nkind = 'openai'\nbase_url = 'http://127.0.0.1:9/v1'\n",
    );
    assert_eq!(
        shown(&repo, &[])["backend"]["local"]["base_url"],
        "http://127.0.0.1:9/v1"
    );
}

#[test]
fn cfg_07_a_project_file_runs_and_writes_nothing() {
    let repo = Repo::new();
    repo.stage("a.txt", "a\n");
    let canary = repo.home().join("canary");
    let touch = format!("touch {}", canary.display());
    repo.write(FILE, format!("[tests]\ncommand = '{touch}'\nrun = true\n[history]\npath = 'stolen'\n[backend.claude]\npath = '/bin/false'\n"));
    let report = repo.review_json(&["staged"], 0);
    for key in [
        "tests.command",
        "tests.run",
        "history.path",
        "backend.claude.path",
    ] {
        assert!(
            notes(&report).contains(&format!("\\\"{key}\\\" in {FILE}")),
            "{key}: {report:#}"
        );
    }
    assert!(!canary.exists());
    assert!(!repo.path().join("stolen").exists());
    for path in ["../../x", "a/../../x", ".git/hooks"] {
        repo.write(FILE, format!("[history]\npath = '{path}'\n"));
        let run = repo.review(&["staged"], 2);
        assert!(
            run.stderr.contains(
                "\"history.path\" in .claude-reviewer.toml:2 must be a path inside the repository"
            ),
            "{}",
            run.stderr
        );
    }
}

#[test]
fn cfg_08_without_a_base_the_gate_is_closed() {
    let repo = with_base(None);
    repo.stage("b.txt", "b\n");
    repo.commit("head");
    for base in [
        "nope",
        "origin/main",
        "0123456789012345678901234567890123456789",
    ] {
        let run = repo.review(&["branch", "--base", base, "--gate"], 2);
        assert!(run.stderr.contains("error: "), "{}", run.stderr);
    }
}

#[test]
fn cfg_09_a_policy_that_is_no_plain_file_is_refused_at_once() {
    let repo = Repo::new();
    repo.stage("a.txt", "a\n");
    let path = repo.path().join(FILE);
    let outside = repo.home().join("p.toml");
    std::fs::write(&outside, "version = 1\n").unwrap();
    type Make<'a> = Box<dyn Fn() + 'a>;
    let set: [(&str, Make<'_>); 8] = [
        (
            "a link to /dev/zero",
            Box::new(|| symlink("/dev/zero", &path).unwrap()),
        ),
        (
            "a link to a file outside",
            Box::new(|| symlink(&outside, &path).unwrap()),
        ),
        (
            "a link to a file inside",
            Box::new(|| symlink("a.txt", &path).unwrap()),
        ),
        (
            "a link to nothing",
            Box::new(|| symlink("nowhere", &path).unwrap()),
        ),
        (
            "a FIFO",
            Box::new(|| {
                assert!(
                    std::process::Command::new("mkfifo")
                        .arg(&path)
                        .status()
                        .unwrap()
                        .success()
                )
            }),
        ),
        ("a folder", Box::new(|| std::fs::create_dir(&path).unwrap())),
        (
            "1 GB",
            Box::new(|| {
                std::fs::File::create(&path)
                    .unwrap()
                    .set_len(1 << 30)
                    .unwrap()
            }),
        ),
        (
            "an unreadable file",
            Box::new(|| {
                std::fs::write(&path, "version = 1\n").unwrap();
                std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o000)).unwrap();
            }),
        ),
    ];
    for (name, make) in set {
        make();
        if name == "an unreadable file" && std::fs::read(&path).is_ok() {
            continue; // The superuser can read anything.
        }
        for args in [
            &["review", "staged"][..],
            &["policy", "show"],
            &["review", "staged", "--config", FILE],
        ] {
            if name.starts_with("a link to a file") && args.contains(&"--config") {
                continue; // The operator's own choice.
            }
            let run = within(Duration::from_secs(1), name, || {
                repo.reviewer(args).run_any()
            });
            assert_eq!(run.code, 2, "{name} {args:?}: {}{}", run.stdout, run.stderr);
            assert!(run.stderr.contains(FILE), "{name}: {}", run.stderr);
        }
        if path.is_dir() {
            std::fs::remove_dir(&path).unwrap();
        } else {
            std::fs::remove_file(&path).unwrap();
        }
    }
}

#[test]
fn cfg_09_a_link_in_the_base_is_no_absence_of_a_policy() {
    let repo = Repo::new();
    repo.write("strict.toml", "block_on = ['minor']\n");
    symlink("strict.toml", repo.path().join(FILE)).unwrap();
    repo.git(&["add", "."]);
    repo.commit("base");
    repo.stage("b.txt", "b\n");
    repo.commit("head");
    for args in [
        &["review", "branch", "--base", "HEAD~1", "--gate"][..],
        &["policy", "show", "--at", "HEAD"],
    ] {
        let run = repo.reviewer(args).run(2);
        assert!(run.stderr.contains("is a symbolic link"), "{}", run.stderr);
    }
}

#[test]
fn cfg_09_a_policy_that_is_a_bomb_is_refused_at_once() {
    let repo = Repo::new();
    repo.stage("a.txt", "a\n");
    let many = |n: usize, of: fn(usize) -> String| (0..n).map(of).collect::<String>();
    for (name, text) in [
        ("deep lists", format!("ignore = {}", "[".repeat(1_000_000))),
        ("deep tables", format!("x = {}", "{a=".repeat(300_000))),
        (
            "a long dotted key",
            format!("{}x = 1", "a.".repeat(500_000)),
        ),
        ("many headers", many(90_000, |i| format!("[t{i}]\n"))),
        (
            "many entries of a list",
            many(60_000, |_| "[[path]]\n".to_owned()),
        ),
        (
            "many nested headers",
            many(2_000, |i| format!("[{}t]\n", "a.".repeat(i % 70))),
        ),
        (
            "a long list",
            format!("ignore = [{}]", "\"a\",".repeat(200_000)),
        ),
        (
            "many backends",
            many(30_000, |i| format!("[backend.b{i}]\nkind = 'openai'\n")),
        ),
        (
            "many severities",
            format!(
                "[rules.severity]\n{}",
                many(60_000, |i| format!("r{i} = 'major'\n"))
            ),
        ),
        (
            "many path rules",
            many(20_000, |i| {
                format!("[[path]]\nglob = 'x{i}*y'\nblock_on = []\n")
            }),
        ),
        (
            "costly patterns",
            format!(
                "ignore = [{}]",
                many(999, |i| format!("\"{}{i}\",", "{a,b}*".repeat(80)))
            ),
        ),
        (
            "a deep pattern",
            format!("ignore = [\"{}\"]", "{".repeat(500)),
        ),
        ("NUL bytes", "\0".repeat(1_000_000)),
    ] {
        repo.write(FILE, text);
        // An optimized build takes about a tenth of this.
        let run = within(Duration::from_secs(3), name, || repo.review(&["staged"], 2));
        assert!(run.stderr.len() < 10_000, "{name}: {}", run.stderr.len());
    }
}

#[test]
fn cfg_10_a_poor_environment_works_or_is_a_usage_error() {
    let repo = Repo::new();
    repo.stage("a.txt", "a\n");
    let bare = |args: &[&str], env: &[(&str, &[u8])]| {
        let mut c = std::process::Command::new(binary());
        c.env_clear().current_dir(repo.path()).args(args);
        for (k, v) in env {
            c.env(k, std::ffi::OsStr::from_bytes(v));
        }
        let out = c.output().unwrap();
        (
            out.status.code(),
            String::from_utf8_lossy(&out.stderr).into_owned(),
        )
    };
    let environments: [&[(&str, &[u8])]; 7] = [
        &[],
        &[("HOME", b"")],
        &[("HOME", b"relative")],
        &[("HOME", b"/nowhere"), ("XDG_CONFIG_HOME", b"relative")],
        &[("HOME", b"/\xff\xfe"), ("XDG_CONFIG_HOME", b"/\xff")],
        &[("HOME", b"/dev/null")],
        &[("UNRELATED", b"\xff\xfe")],
    ];
    for env in environments {
        for args in [
            &["review", "staged"][..],
            &["policy", "show", "--origin"],
            &["policy", "check"],
        ] {
            let (code, stderr) = bare(args, env);
            assert_eq!(code, Some(0), "{env:?} {args:?}: {stderr}");
        }
    }
    let (code, stderr) = bare(&["policy", "trust", "--list"], &[]);
    assert_eq!(code, Some(2));
    assert!(stderr.contains("set HOME or XDG_CONFIG_HOME"), "{stderr}");
    for (name, value) in [
        ("MAX_REVIEW_ROUNDS", &b"\xff"[..]),
        ("MAX_REVIEW_ROUNDS", b"lots"),
        ("CLAUDE_CLI_PATH", b"./claude"),
        ("AUTO_RUN_TESTS", b"perhaps"),
        ("CLAUDE_REVIEWER_WAIVE", b"nothing"),
        ("CLAUDE_REVIEWER_WAIVE", b"\xff"),
    ] {
        let (code, stderr) = bare(&["review", "staged"], &[(name, value)]);
        assert_eq!(code, Some(2), "{name}: {stderr}");
        assert!(
            stderr.contains("error: ") && (stderr.contains(name) || stderr.contains("waiver")),
            "{name}: {stderr}"
        );
    }
}

#[test]
fn trust_is_for_this_content_in_this_repository_and_this_user() {
    let repo = Repo::new();
    let text = "[tests]\ncommand = 'make test'\n";
    repo.write(FILE, text);
    let command = |repo: &Repo| shown(repo, &[])["tests"]["command"].clone();
    assert!(command(&repo).is_null());
    let run = policy(&repo, &["trust"], 0);
    assert!(
        run.stdout.contains("tests.command = \"make test\""),
        "{}",
        run.stdout
    );
    assert_eq!(command(&repo), "make test");

    // From a subfolder, and through a link to the worktree, it is the same worktree.
    std::fs::create_dir(repo.path().join("sub")).unwrap();
    let run = repo
        .reviewer(&["policy", "show"])
        .dir(repo.path().join("sub"))
        .run(0);
    assert!(run.stdout.contains("make test"), "{}", run.stdout);

    // One more byte ends the trust; the old content is still trusted.
    repo.write(FILE, format!("{text}#"));
    assert!(command(&repo).is_null());
    repo.write(FILE, text);
    assert_eq!(command(&repo), "make test");

    // Another repository with the same content is not trusted, and neither is another user.
    let other = Repo::new();
    other.write(FILE, text);
    let run = other
        .reviewer(&["policy", "show"])
        .env("HOME", repo.home())
        .run(0);
    assert!(!run.stdout.contains("make test"), "{}", run.stdout);
    assert!(
        run.stderr.contains("note: \"tests.command\""),
        "{}",
        run.stderr
    );
    let run = repo
        .reviewer(&["policy", "show"])
        .env("HOME", other.home())
        .run(0);
    assert!(!run.stdout.contains("make test"), "{}", run.stdout);

    assert!(
        policy(&repo, &["trust", "--list"], 0)
            .stdout
            .contains(repo.path().to_str().unwrap())
    );
    policy(&repo, &["trust", "--remove"], 0);
    assert!(command(&repo).is_null());
    assert_eq!(
        policy(&repo, &["trust", "--list"], 0).stdout,
        "no trusted policy files\n"
    );
    assert_eq!(
        policy(&repo, &["trust", "--remove"], 0).stdout,
        "no trust to remove in this repository\n"
    );
    repo.write(FILE, "block_on = []\n");
    assert!(
        policy(&repo, &["trust"], 0)
            .stdout
            .starts_with("no value in ")
    );
    repo.write(FILE, "unknown = 1\n");
    policy(&repo, &["trust"], 2);
}

#[test]
fn trust_is_stored_for_the_user_alone() {
    let repo = Repo::new();
    repo.write(FILE, "[tests]\ncommand = 'make test'\n");
    policy(&repo, &["trust"], 0);
    let dir = repo.home().join(".config/claude-reviewer/trusted");
    let mode = |p: &PathBuf| std::fs::symlink_metadata(p).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&dir), 0o700);
    let files: Vec<PathBuf> = std::fs::read_dir(&dir)
        .unwrap()
        .map(|e| e.unwrap().path())
        .collect();
    assert_eq!(files.len(), 1);
    assert_eq!(mode(&files[0]), 0o600);
    // A file that cannot be stored completely is not stored at all.
    std::fs::remove_dir_all(&dir).unwrap();
    std::fs::write(&dir, "a file in the way").unwrap();
    let run = policy(&repo, &["trust"], 2);
    assert!(
        run.stderr.contains("cannot store trust in"),
        "{}",
        run.stderr
    );
    assert!(shown(&repo, &[])["tests"]["command"].is_null());
}

#[test]
fn a_persons_own_file_is_trusted_and_may_be_a_link() {
    let repo = Repo::new();
    user_policy(&repo, "[tests]\ncommand = 'mine'\n");
    assert_eq!(shown(&repo, &[])["tests"]["command"], "mine");
    let config = repo.home().join(".config/claude-reviewer/config.toml");
    std::fs::rename(&config, repo.home().join("dotfile.toml")).unwrap();
    symlink(repo.home().join("dotfile.toml"), &config).unwrap();
    assert_eq!(shown(&repo, &[])["tests"]["command"], "mine");
    std::fs::remove_file(&config).unwrap();
    symlink("/dev/zero", &config).unwrap();
    let run = policy(&repo, &["show"], 2);
    assert!(
        run.stderr.contains("config.toml is not a regular file"),
        "{}",
        run.stderr
    );
}

#[test]
fn outside_a_repository_the_persons_policy_is_shown_and_that_is_said() {
    let repo = Repo::new();
    user_policy(&repo, "[review]\njobs = 7\n");
    let run = reviewer(&repo.home(), &repo.home(), &["policy", "show"]).run(0);
    assert!(
        run.stdout
            .lines()
            .any(|l| l.starts_with("review.jobs") && l.ends_with(" 7")),
        "{}",
        run.stdout
    );
    assert!(
        run.stderr.starts_with("note: no project policy: "),
        "{}",
        run.stderr
    );
    let run = reviewer(&repo.home(), &repo.home(), &["policy", "trust"]).run(2);
    assert!(run.stderr.starts_with("error: "), "{}", run.stderr);
}

#[test]
fn check_knows_the_ids_of_rules() {
    let repo = Repo::new();
    repo.write(FILE, "[rules]\ndisable = ['aws-acces-key-id']\n");
    let run = policy(&repo, &["check"], 2);
    assert!(run.stderr.contains("aws-acces-key-id"), "{}", run.stderr);
    repo.write(
        FILE,
        "[rules]\ndisable = ['aws-access-key-id']\nseverity = { 'aws-access-key-id' = 'note' }\n",
    );
    policy(&repo, &["check"], 0);
}

#[test]
fn the_policy_of_a_commit_can_be_shown() {
    let repo = with_base(Some("block_on = ['critical']\n[tests]\ncommand = 'make'\n"));
    repo.write(FILE, "block_on = []\n");
    let json = shown(&repo, &["--at", "main"]);
    assert_eq!(json["block_on"], serde_json::json!(["critical"]));
    // As in gate mode: the base is trusted.
    assert_eq!(json["tests"]["command"], "make");
    policy(&repo, &["show", "--at", "nope"], 2);
    policy(&repo, &["check", "--at", "main"], 0);
}

#[test]
fn a_path_rule_decides_for_its_folder() {
    let repo = Repo::new();
    repo.write(FILE, "[[path]]\nglob = 'samples/'\nblock_on = []\n");
    let line = format!("key = '{}'\n", secret());
    repo.stage("samples/deep/a.py", &line);
    let report = repo.review_json(&["staged"], 0);
    // A finding that does not block still warns, because it is worse than `minor`.
    assert_eq!(report["verdict"], "warn", "{report:#}");
    repo.stage("src/a.py", &line);
    let report = repo.review_json(&["staged"], 1);
    let blocking: Vec<_> = report["findings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|f| {
            (
                f["file"].as_str().unwrap(),
                f["blocking"].as_bool().unwrap(),
            )
        })
        .collect();
    assert!(
        blocking.contains(&("samples/deep/a.py", false)) && blocking.contains(&("src/a.py", true)),
        "{blocking:?}"
    );
}

#[test]
fn what_is_ignored_is_counted() {
    let repo = Repo::new();
    repo.write(FILE, "ignore = ['vendor/', '*.gen.py']\n");
    for path in ["vendor/x/a.py", "src/b.gen.py"] {
        repo.stage(path, format!("key = '{}'\n", secret()));
    }
    repo.stage("src/c.py", "c = 1\n");
    let report = repo.review_json(&["staged"], 0);
    let skipped = report["coverage"]["skipped"].to_string();
    assert!(
        skipped.contains("vendor/x/a.py")
            && skipped.contains("src/b.gen.py")
            && skipped.contains("ignored"),
        "{skipped}"
    );
}

#[test]
fn a_named_backend_makes_the_review_incomplete_for_now() {
    let repo = Repo::new();
    repo.stage("a.txt", "a\n");
    repo.write(FILE, "[review]\nbackends = ['claude']\n");
    assert_eq!(repo.review_json(&["staged"], 3)["verdict"], "incomplete");
    repo.write(
        FILE,
        "on_incomplete = 'warn'\n[review]\nbackends = ['claude']\n",
    );
    assert_eq!(repo.review_json(&["staged"], 0)["verdict"], "incomplete");
}

#[test]
fn shown_toml_is_a_policy_file_with_the_same_values() {
    let repo = Repo::new();
    repo.write(FILE, "ignore = ['a b', \"tab\\there\"]\n[review]\nbackends = ['openai']\ntimeout = '90s'\n[[path]]\nglob = 'x'\nwarn_on = []\n[[guideline]]\nglob = '*.sql'\ntext = \"two\\nlines\"\n");
    let toml = policy(&repo, &["show", "--origin", "--format", "toml"], 0).stdout;
    let before = policy(&repo, &["show", "--format", "json"], 0).stdout;
    repo.write(FILE, toml);
    assert_eq!(
        policy(&repo, &["show", "--format", "json"], 0).stdout,
        before
    );
}

#[test]
fn the_schema_in_the_repository_is_what_the_program_prints() {
    let kept = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("schemas/policy.schema.json");
    let home = tempfile::TempDir::new().unwrap();
    let printed = reviewer(home.path(), home.path(), &["policy", "schema"])
        .run(0)
        .stdout;
    assert_eq!(
        std::fs::read_to_string(kept).unwrap(),
        printed,
        "write it anew: claude-reviewer policy schema > schemas/policy.schema.json"
    );
}

#[test]
fn the_json_configuration_of_older_tools_is_imported() {
    let repo = Repo::new();
    let fixture = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/policy/import");
    let json = fixture.join("claude-reviewer.json");
    let run = policy(&repo, &["import", json.to_str().unwrap()], 0);
    let expected = std::fs::read_to_string(fixture.join("claude-reviewer.toml")).unwrap();
    let body = |t: &str| {
        t.lines()
            .skip(1)
            .map(|l| format!("{l}\n"))
            .collect::<String>()
    };
    assert_eq!(body(&run.stdout), body(&expected));
    assert!(
        run.stderr
            .contains("not imported: unknown key \"max_rounds\""),
        "{}",
        run.stderr
    );
    // From standard input, directly into the file.
    let piped = repo
        .reviewer(&["policy", "import", "-"])
        .stdin(std::fs::read(&json).unwrap())
        .run(0);
    repo.write(FILE, &piped.stdout);
    assert!(
        policy(&repo, &["check"], 0)
            .stdout
            .contains("note: \"tests.command\"")
    );
    policy(&repo, &["import", "missing.json"], 2);
}

#[test]
fn every_valid_fixture_is_accepted_and_every_invalid_one_refused() {
    let dir = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/policy");
    let home = tempfile::TempDir::new().unwrap();
    for (folder, code) in [("valid", 0), ("invalid", 2)] {
        let mut count = 0;
        for entry in std::fs::read_dir(dir.join(folder)).unwrap() {
            let path = entry.unwrap().path();
            let run = reviewer(
                home.path(),
                home.path(),
                &["policy", "check", path.to_str().unwrap()],
            )
            .run(code);
            if code == 2 {
                // The first line of the file has the expected result.
                let text = std::fs::read_to_string(&path).unwrap();
                let expected = text.lines().next().unwrap().trim_start_matches("# ");
                assert!(
                    run.stdout.contains(expected),
                    "{}: {expected}\n{}",
                    path.display(),
                    run.stdout
                );
            }
            count += 1;
        }
        assert!(count >= 2, "{folder}");
    }
}

#[test]
fn foreign_text_of_a_policy_is_inert_on_the_terminal() {
    let repo = Repo::new();
    repo.write(
        FILE,
        "\"\\u001b[31m\" = 1\nignore = [\"\\u001b]0;x\\u0007\"]\n",
    );
    for args in [&["check"][..], &["show"]] {
        let run = policy(&repo, args, 2);
        assert!(
            !run.stdout.contains('\u{1b}') && !run.stderr.contains('\u{1b}'),
            "{}{}",
            run.stdout,
            run.stderr
        );
    }
    repo.write(
        FILE,
        "ignore = [\"\\u001b]0;x\\u0007\\u202e\\U000E0041\"]\n",
    );
    assert_eq!(
        shown(&repo, &[])["ignore"][0],
        "\u{1b}]0;x\u{7}\u{202e}\u{e0041}"
    );
    for args in [
        &["show"][..],
        &["show", "--format", "toml"],
        &["show", "--format", "json"],
        &["check"],
    ] {
        let run = policy(&repo, args, 0);
        assert!(
            !run.stdout.contains(['\u{1b}', '\u{202e}', '\u{7}']),
            "{}",
            run.stdout
        );
    }
}
