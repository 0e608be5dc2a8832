//! Tests of the boundary around the program: what it sees, which versions and programs are refused,
//! and keys in its messages.

use super::{Fake, NONCE};
use crate::support::Repo;
use claude_reviewer::ai::ask::Cause;
use claude_reviewer::ai::backend::{Backend, Pool};
use claude_reviewer::env::Env;
use claude_reviewer::policy;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

#[test]
fn cli_08_the_program_sees_nothing_of_ours() {
    let mut fake = Fake::new(
        "heard\nenv >\"$here/env\"\nprintf '%s\\n' \"$@\" >\"$here/args\"\npwd -P >\"$here/dir\"\nls -A >\"$here/files\"\nls -l /proc/self/fd >\"$here/fds\"\nready\nresult \"{\\\"nonce\\\":\\\"$nonce\\\"}\"",
    );
    let canaries = [
        "AWS_ACCESS_KEY_ID",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_SESSION_TOKEN",
        "AZURE_CLIENT_SECRET",
        "BITBUCKET_TOKEN",
        "CARGO_REGISTRY_TOKEN",
        "CI_JOB_TOKEN",
        "CLAUDE_CODE_SSE_PORT",
        "DATABASE_URL",
        "DOCKER_AUTH_CONFIG",
        "GEMINI_API_KEY",
        "GH_TOKEN",
        "GITHUB_TOKEN",
        "GITLAB_TOKEN",
        "GIT_DIR",
        "GIT_INDEX_FILE",
        "GOOGLE_APPLICATION_CREDENTIALS",
        "HF_TOKEN",
        "KUBECONFIG",
        "NODE_OPTIONS",
        "NPM_TOKEN",
        "OPENAI_API_KEY",
        "PGPASSWORD",
        "SSH_AUTH_SOCK",
        "VAULT_TOKEN",
    ];
    fake.vars = canaries
        .iter()
        .map(|name| ((*name).to_owned(), "canary".to_owned()))
        .collect();
    fake.vars
        .push(("ANTHROPIC_API_KEY".to_owned(), "its own".to_owned()));
    fake.budget = Some(0.5);
    let left_open = std::fs::File::open("/").unwrap();
    rustix::io::fcntl_setfd(&left_open, rustix::io::FdFlags::empty()).unwrap();
    fake.ask().unwrap();
    let env = fake.wrote("env");
    let mut names: Vec<_> = env
        .lines()
        .filter_map(|l| Some(l.split_once('=')?.0))
        .collect();
    names.retain(|n| !["PWD", "_", "SHLVL", "OLDPWD"].contains(n));
    names.sort_unstable();
    let allowed = [
        "ANTHROPIC_API_KEY",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC",
        "CLAUDE_CODE_MAX_RETRIES",
        "DISABLE_AUTOUPDATER",
        "HOME",
        "PATH",
        "TEMP",
        "TMP",
        "TMPDIR",
    ];
    assert_eq!(names, allowed);
    assert!(!env.contains("canary"));
    let args = fake.wrote("args");
    assert!(
        !args.contains("let x = 1") && !args.contains(NONCE) && !args.contains("Be brief"),
        "{args}"
    );
    let args: Vec<_> = args.lines().collect();
    for pair in [
        ["--output-format", "stream-json"],
        ["--model", "m"],
        ["--system-prompt", "You review changes."],
        ["--tools", ""],
        ["--permission-mode", "dontAsk"],
        ["--json-schema", "{\"type\":\"object\"}"],
        ["--max-turns", "8"],
        ["--max-budget-usd", "0.5000"],
    ] {
        assert!(
            args.windows(2).any(|w| w == pair),
            "{pair:?} is not in {args:?}"
        );
    }
    for flag in [
        "-p",
        "--verbose",
        "--setting-sources=",
        "--strict-mcp-config",
        "--disable-slash-commands",
        "--no-session-persistence",
    ] {
        assert!(args.contains(&flag), "{flag} is not in {args:?}");
    }
    for flag in [
        "--allowedTools",
        "--dangerously-skip-permissions",
        "--bare",
        "--add-dir",
    ] {
        assert!(!args.contains(&flag), "{flag} is in {args:?}");
    }
    assert!(
        Path::new(fake.wrote("dir").trim())
            .starts_with(fake.dir.path().canonicalize().unwrap().join("tmp"))
    );
    assert_eq!(fake.wrote("files"), "");
    assert!(
        !fake.wrote("fds").lines().any(|l| l.ends_with("-> /")),
        "{}",
        fake.wrote("fds")
    );
    let stdin = fake.wrote("stdin");
    let (form, stdin) = stdin.split_once("\n\n").unwrap();
    assert!(
        form.starts_with("Answer with exactly one call of StructuredOutput"),
        "{form}"
    );
    assert!(
        stdin.starts_with("# CLAUDE.md\nBe brief.\n\nfile: a.rs\n1 +let x = 1;\n\nReview it.\n"),
        "{stdin}"
    );
    assert!(stdin.ends_with(&format!("\nnonce: {NONCE}\n")));
}

#[test]
fn cli_09_a_program_that_is_too_old_is_never_asked_without_protection() {
    let refuses = Fake::new("echo \"error: unknown option '--setting-sources='\" >&2\nexit 1");
    let failure = refuses.fails(Cause::Setup, "claude >= 2.1.197 is needed");
    assert!(failure.hint.unwrap().contains("claude update"));
    assert_eq!(refuses.wrote("pids").lines().count(), 1, "it was run again");
    // Its version is checked before it is asked.
    let old = Fake::new("heard");
    old.write(&format!(
        "#!/bin/sh\necho '1.0.89 (Claude Code)'\ntouch {}/asked\n",
        old.dir.path().display()
    ));
    std::fs::write(old.dir.path().join("pids"), "").unwrap();
    old.fails(
        Cause::Setup,
        "this is claude 1.0.89; claude >= 2.1.197 is needed",
    );
}

#[test]
fn cli_09_a_program_that_says_it_runs_unprotected_is_ended() {
    let answer = "result \"{\\\"nonce\\\":\\\"$nonce\\\"}\"\nsleep 60";
    for (change, part) in [
        (
            "s/\"StructuredOutput\"/\"StructuredOutput\",\"Bash\"/",
            "a tool that it was not given: Bash",
        ),
        (
            "s/\"StructuredOutput\"/\"Read\"/",
            "a tool that it was not given: Read",
        ),
        ("s/\"tools\":[^]]*],//", "which tools it has"),
        (
            "s/\"mcp_servers\":\\[\\]/\"mcp_servers\":[{\"name\":\"x\"}]/",
            "servers that it was not given",
        ),
        ("s/dontAsk/default/", "permissions"),
        ("s/\"cwd\":\"[^\"]*\"/\"cwd\":\"\\/\"/", "folder"),
        ("s/2.1.330/2.0.1/", "claude >= 2.1.197 is needed"),
    ] {
        let start = Instant::now();
        Fake::new(&format!("heard\nready | sed '{change}'\n{answer}")).fails(Cause::Setup, part);
        assert!(start.elapsed() < Duration::from_secs(20), "{change}");
    }
}

#[test]
fn cli_10_a_program_of_the_repository_is_not_run() {
    let repo = Repo::new();
    let fake = Fake::good();
    let planted = repo.path().join("claude");
    repo.write(
        "claude",
        format!("#!/bin/sh\ntouch {}/executed\n", fake.dir.path().display()),
    );
    std::fs::set_permissions(&planted, std::fs::Permissions::from_mode(0o755)).unwrap();
    for (path, search) in [
        (None, format!(".:{}:/nowhere", repo.path().display())),
        (Some(planted.display().to_string()), "/usr/bin".to_owned()),
        (Some("./claude".to_owned()), "/usr/bin".to_owned()),
    ] {
        let env = Env::from_pairs(repo.path(), [("PATH", search), ("HOME", "/".to_owned())]);
        let policy = policy::Backend {
            path,
            ..fake.policy()
        };
        let failure =
            Backend::open(&policy, &env, Some(&repo.path()), &Pool::default()).unwrap_err();
        assert_eq!(failure.cause, Cause::Setup);
    }
    assert_eq!(fake.wrote("executed"), "");
    assert!(!fake.dir.path().join("executed").exists());
}

#[test]
fn sec_03_what_the_program_says_is_shown_without_keys() {
    let key = format!("{}-{}", "canary", "7f3d9a2b5c8e1f4a6b0d");
    let mut fake = Fake::new(
        "heard\necho \"the key $ANTHROPIC_API_KEY is bad $(printf '\\033')[2J\" >&2\nexit 1",
    );
    fake.vars = vec![("ANTHROPIC_API_KEY".to_owned(), key.clone())];
    let failure = fake.fails(Cause::Unreachable, "the key ***");
    assert!(
        !failure.message.contains(&key[..10]) && !failure.message.contains('\u{1b}'),
        "{failure:?}"
    );
}
