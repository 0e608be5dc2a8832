//! Tests of layers and trust.

use crate::diff::RepoPath;
use crate::env::Env;
use crate::error::Result;
use crate::finding::Severity::{self, Critical, Major, Minor, Suggestion};
use crate::policy::{
    Backend, BackendKind, Layer, Loaded, Policy, PolicyFile, ProjectFile, ProjectOrigin, Sources,
    load,
};
use crate::request::{Depth, Overrides};

#[derive(Default)]
struct PolicyCase<'a> {
    user: &'a str,
    project: &'a str,
    trusted: bool,
    named: bool,
    env: &'a [(&'a str, &'a str)],
    flags: Overrides,
}

impl PolicyCase<'_> {
    fn try_load(&self) -> Result<Loaded> {
        let user = file("~/.config/claude-reviewer/config.toml", self.user);
        let project = ProjectFile {
            from: if self.named {
                ProjectOrigin::Flag
            } else {
                ProjectOrigin::Worktree
            },
            file: file(".claude-reviewer.toml", self.project),
            trusted: self.trusted,
        };
        let env = Env::from_pairs("/".into(), self.env.iter().copied());
        load(&Sources {
            user: Some(&user),
            project: Some(&project),
            env: &env,
            overrides: &self.flags,
        })
    }
    #[track_caller]
    fn load(&self) -> Loaded {
        self.try_load().unwrap()
    }
    #[track_caller]
    fn fails(&self) -> String {
        let e = self.try_load().unwrap_err();
        [&[e.message][..], &e.hints].concat().join(" | ")
    }
    #[track_caller]
    fn backend(&self, name: &str) -> Backend {
        self.load().policy.backend(name).unwrap().clone()
    }
}

fn file(name: &str, text: &str) -> PolicyFile {
    PolicyFile {
        name: name.to_owned(),
        bytes: text.as_bytes().to_vec(),
    }
}

/// Returns `review.max_rounds`, and its origin.
fn rounds_of(case: &PolicyCase<'_>) -> (u32, String) {
    let p = case.load().policy;
    (
        p.review.max_rounds,
        p.origin_of("review.max_rounds").to_string(),
    )
}

/// Returns the severities that block and warn for a path.
fn thresholds_at(p: &Policy, path: &str) -> (Vec<Severity>, Vec<Severity>) {
    let t = p.thresholds(Some(&RepoPath::from(path)));
    (t.block_on, t.warn_on)
}

#[test]
fn a_file_that_was_named_for_the_run_decides_where_the_change_goes() {
    let user = "[backend.local]\nkind = 'openai'\nbase_url = 'https://one.example/v1'";
    let project = "[backend.local]\nkind = 'openai'\nbase_url = 'https://two.example/v1'";
    let mut case = PolicyCase {
        user,
        project,
        trusted: true,
        ..PolicyCase::default()
    };
    assert_eq!(
        case.backend("local").base_url.unwrap(),
        "https://one.example/v1"
    );
    case.named = true;
    assert_eq!(
        case.backend("local").base_url.unwrap(),
        "https://two.example/v1"
    );
}

#[test]
fn each_layer_stands_above_the_one_before() {
    let mut case = PolicyCase {
        user: "[review]\nmax_rounds = 2\njobs = 2",
        ..PolicyCase::default()
    };
    assert_eq!(
        rounds_of(&case),
        (2, "~/.config/claude-reviewer/config.toml:2".to_owned())
    );
    case.project = "\n[review]\nmax_rounds = 3";
    assert_eq!(rounds_of(&case), (3, ".claude-reviewer.toml:3".to_owned()));
    case.env = &[("MAX_REVIEW_ROUNDS", "4")];
    assert_eq!(rounds_of(&case), (4, "MAX_REVIEW_ROUNDS".to_owned()));
    case.flags = Overrides {
        jobs: Some(9),
        depth: Some(Depth::Thorough),
        ..Overrides::default()
    };
    let p = case.load().policy;
    assert_eq!(
        (p.review.jobs, p.origin_of("review.jobs").to_string()),
        (9, "--jobs".to_owned())
    );
    assert_eq!(p.origin_of("review.depth").layer, Layer::Flag);
    assert_eq!(p.origin_of("ignore").layer, Layer::Default);
}

#[test]
fn a_persons_list_cannot_widen_the_teams() {
    let case = PolicyCase {
        user: "ignore = ['*']",
        project: "ignore = ['vendor/']",
        ..PolicyCase::default()
    };
    let p = case.load().policy;
    assert!(p.ignores(&"vendor/a".into()));
    assert!(!p.ignores(&"src/a".into()));
}

#[test]
fn path_rules_change_thresholds_key_by_key_and_the_last_wins() {
    let case = PolicyCase {
        project: "[[path]]\nglob = 'services/**'\nblock_on = ['critical']\nwarn_on = ['major']\n\
                  [[path]]\nglob = ['services/pay', 'billing/']\nblock_on = ['minor', 'major', 'critical']\n",
        ..PolicyCase::default()
    };
    let p = case.load().policy;
    assert_eq!(
        thresholds_at(&p, "src/a.rs"),
        (vec![Critical, Major], vec![Minor])
    );
    assert_eq!(
        thresholds_at(&p, "services/a.rs"),
        (vec![Critical], vec![Major])
    );
    assert_eq!(
        thresholds_at(&p, "services/pay/a.rs"),
        (vec![Critical, Major, Minor], vec![Major])
    );
    assert_eq!(
        thresholds_at(&p, "billing/a.rs"),
        (vec![Critical, Major, Minor], vec![Minor])
    );
    assert_eq!(p.thresholds(None).block_on, [Critical, Major]);
}

#[test]
fn a_path_rule_cannot_undo_a_threshold_of_a_higher_layer() {
    let lax = "[[path]]\nglob = '**'\nblock_on = []";
    let team = PolicyCase {
        user: lax,
        project: "block_on = ['critical', 'major']",
        ..PolicyCase::default()
    }
    .load()
    .policy;
    assert_eq!(
        team.thresholds(Some(&"a".into())).block_on,
        [Critical, Major]
    );
    let flags = Overrides {
        block_on: Some(vec![Suggestion, Critical]),
        ..Overrides::default()
    };
    let flag = PolicyCase {
        project: lax,
        flags,
        ..PolicyCase::default()
    }
    .load()
    .policy;
    assert_eq!(
        flag.thresholds(Some(&"a".into())).block_on,
        [Critical, Suggestion]
    );
}

#[test]
fn operator_only_keys_of_an_untrusted_file_are_refused_and_named() {
    let text = "[tests]\ncommand = 'make'\nrun = true\n[history]\npath = 'elsewhere'\n[forge]\ngithub_api = 'https://g.example'\n\
                [backend.claude]\npath = '/tmp/claude'\n[backend.far]\nkind = 'openai'\nbase_url = 'https://far.example/v1'\n\
                [backend.anthropic]\napi_key_env = 'OTHER'\n[backend.google]\napi_key_command = 'cat key'\n";
    let Loaded { policy: p, notes } = PolicyCase {
        project: text,
        ..PolicyCase::default()
    }
    .load();
    assert_eq!(
        (
            p.tests.command.as_deref(),
            p.tests.run,
            p.history.path.as_str()
        ),
        (None, false, ".reviews")
    );
    assert_eq!(p.forge.github_api, None);
    for (name, key) in [
        ("claude", "path"),
        ("far", "base_url"),
        ("anthropic", "api_key_env"),
        ("google", "api_key_command"),
    ] {
        let b = p.backend(name).unwrap();
        assert_eq!(b.withheld, Some(format!("backend.{name}.{key}")));
        assert_eq!(
            (&b.path, &b.base_url, &b.api_key_env, &b.api_key_command),
            (&None, &None, &None, &None)
        );
    }
    let lines: Vec<_> = notes.iter().map(|n| n.line.unwrap()).collect();
    assert_eq!(lines, [2, 3, 5, 7, 9, 12, 14, 16]);
    assert!(
        notes[0]
            .text
            .contains("\"tests.command\" in .claude-reviewer.toml:2 is operator only"),
        "{notes:?}"
    );
    assert!(
        notes[0].text.contains("claude-reviewer policy trust"),
        "{notes:?}"
    );

    let Loaded { policy: p, notes } = PolicyCase {
        project: text,
        trusted: true,
        ..PolicyCase::default()
    }
    .load();
    assert_eq!(notes, []);
    assert_eq!(
        (
            p.tests.command.as_deref(),
            p.tests.run,
            p.history.path.as_str()
        ),
        (Some("make"), true, "elsewhere")
    );
    assert!(p.backends.iter().all(|b| b.withheld.is_none()));
    assert_eq!(
        p.backend("far").unwrap().base_url.as_deref(),
        Some("https://far.example/v1")
    );
}

#[test]
fn an_operator_only_value_that_changes_nothing_needs_no_trust() {
    let text = "[history]\npath = './.reviews/'\n[tests]\nrun = false\n[backend.claude]\npath = 'claude'\n\
                [backend.anthropic]\napi_key_env = 'ANTHROPIC_API_KEY'\n";
    let loaded = PolicyCase {
        project: text,
        ..PolicyCase::default()
    }
    .load();
    assert_eq!(loaded.notes, []);
    assert!(loaded.policy.backends.iter().all(|b| b.withheld.is_none()));
}

#[test]
fn a_persons_own_operator_values_stand_above_the_projects() {
    let mut case = PolicyCase {
        user: "[backend.claude]\npath = '/opt/claude'\n[review]\nmax_cost_usd = 0.5",
        project: "[backend.claude]\npath = '/tmp/claude'\n[review]\nmax_cost_usd = 50",
        ..PolicyCase::default()
    };
    for trusted in [false, true] {
        case.trusted = trusted;
        let Loaded { policy: p, notes } = case.load();
        assert_eq!(
            p.backend("claude").unwrap().path.as_deref(),
            Some("/opt/claude")
        );
        assert_eq!(p.backend("claude").unwrap().withheld, None);
        assert_eq!(p.review.max_cost_usd, 0.5);
        assert_eq!(notes, []);
    }
    case.user = "";
    case.trusted = false;
    for variable in ["CLAUDE_CLI_PATH", "PATH_TO_CLAUDE"] {
        let env = [(variable, "/usr/bin/claude")];
        let Loaded { policy: p, notes } = PolicyCase {
            env: &env,
            project: case.project,
            ..PolicyCase::default()
        }
        .load();
        assert_eq!(
            p.backend("claude").unwrap().path.as_deref(),
            Some("/usr/bin/claude")
        );
        assert_eq!(
            (notes, &p.backend("claude").unwrap().withheld),
            (vec![], &None)
        );
    }
}

#[test]
fn a_loopback_endpoint_of_an_untrusted_file_gets_no_key() {
    let text = "[backend.openai]\nbase_url = 'http://127.0.0.1:11434/v1/'";
    let mut case = PolicyCase {
        project: text,
        ..PolicyCase::default()
    };
    let b = case.backend("openai");
    assert_eq!(
        (b.base_url.as_deref(), b.keyless),
        (Some("http://127.0.0.1:11434/v1"), true)
    );
    // The user's key is for the user's endpoint.
    case.user = "[backend.openai]\napi_key_env = 'MINE'";
    assert!(case.backend("openai").keyless);
    case.trusted = true;
    assert!(!case.backend("openai").keyless);
    case.trusted = false;
    case.user = "[backend.openai]\nbase_url = 'https://mine.example'";
    let b = case.backend("openai");
    assert_eq!(
        (b.base_url.as_deref(), b.keyless),
        (Some("https://mine.example"), false)
    );
    // With a named key, the endpoint is no longer keyless.
    let text = "[backend.openai]\nbase_url = 'http://127.0.0.1:1'\napi_key_env = 'OPENAI_API_KEY'";
    let withheld = PolicyCase {
        project: text,
        ..PolicyCase::default()
    }
    .backend("openai")
    .withheld;
    assert_eq!(withheld.as_deref(), Some("backend.openai.api_key_env"));
}

#[test]
fn models_come_from_the_file_the_environment_and_the_flag() {
    let mut case = PolicyCase {
        project: "[backend.claude]\nmodel = 'a'\n[backend.x]\nkind = 'anthropic'\n[backend.openai]\nmodel = 'b'",
        ..PolicyCase::default()
    };
    assert_eq!(case.backend("claude").model.as_deref(), Some("a"));
    case.env = &[("REVIEW_MODEL", "env")];
    assert_eq!(case.backend("claude").model.as_deref(), Some("env"));
    assert_eq!(case.backend("x").model.as_deref(), Some("env"));
    assert_eq!(case.backend("openai").model.as_deref(), Some("b"));
    case.flags.model = Some("flag".to_owned());
    assert_eq!(case.backend("openai").model.as_deref(), Some("flag"));
    assert_eq!(
        case.load().policy.backend("x").unwrap().kind,
        Some(BackendKind::Anthropic)
    );
}

#[test]
fn what_only_the_whole_policy_shows_is_refused_with_its_place() {
    for (project, expected) in [
        (
            "[review]\nbackends = ['cluade']",
            "names the unknown backend \"cluade\" | did you mean \"claude\"?",
        ),
        (
            "[review]\nbackends = ['mine']",
            "\"review.backends\" in .claude-reviewer.toml:2 names the unknown backend",
        ),
        (
            "version = 1\n[backend.mine]\nmodel = 'x'",
            "\"backend.mine.kind\" in .claude-reviewer.toml:2 is missing",
        ),
        (
            "[backend.openai]\npath = 'claude'",
            "is not valid for a backend of kind \"openai\"",
        ),
        (
            "[backend.claude]\napi_key_env = 'X'",
            "is not valid for a backend of kind \"claude\"",
        ),
        (
            "[backend.claude]\nkind = 'openai'",
            "must be \"claude\" for the built-in backend of this name",
        ),
    ] {
        let e = PolicyCase {
            project,
            trusted: true,
            ..PolicyCase::default()
        }
        .fails();
        assert!(e.contains(expected), "{project}: {e}");
    }
    // A team may name a backend that each person defines.
    let user = "[backend.mine]\nkind = 'openai'\nbase_url = 'https://m.example'";
    PolicyCase {
        user,
        project: "[review]\nbackends = ['mine']",
        ..PolicyCase::default()
    }
    .load();
}

#[test]
fn bad_variables_are_refused_by_name() {
    for (name, value) in [
        ("MAX_REVIEW_ROUNDS", "many"),
        ("MAX_REVIEW_ROUNDS", "0"),
        ("AUTO_RUN_TESTS", "maybe"),
        ("CLAUDE_CLI_PATH", "./claude"),
    ] {
        let e = PolicyCase {
            env: &[(name, value)],
            ..PolicyCase::default()
        }
        .fails();
        assert!(e.contains(name), "{e}");
    }
    assert!(
        PolicyCase {
            env: &[("AUTO_RUN_TESTS", "TRUE")],
            ..PolicyCase::default()
        }
        .load()
        .policy
        .tests
        .run
    );
}
