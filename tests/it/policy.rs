//! Tests of `policy`: files, layers, trust, and which policy applies.

mod files;
mod gate;
mod trust;

use crate::support::{Repo, Run, reviewer};

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
    let home = crate::support::temp_dir();
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
