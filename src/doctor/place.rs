//! Checks the environment of the program: git, the repository and its hooks, the cache, the policy.

use super::{CheckSection, CheckState, DoctorCheck, Patient};
use crate::ai::cache::Cache;
use crate::background::{self, Station, View};
use crate::bounded;
use crate::finding::Severity;
use crate::git::Repo;
use crate::hooks::{Hook, install, shim};
use crate::policy::{HookMode, PostCommit};
use crate::process::{self, End, Program};
use crate::rules;
use crate::sandbox::{Sandbox, Settings};
use crate::stop::Stop;
use crate::wire::background::Waiting;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Time limit for `git --version`.
const GIT_TIME: Duration = Duration::from_secs(10);
/// Bytes of a hook that are read, at most.
const HOOK_HEAD: u64 = 4096;

pub(super) fn tools(patient: &Patient<'_>) -> CheckSection {
    let mut section = CheckSection::new("environment");
    section.checks.push(repository(patient));
    section.checks.push(git(patient));
    if let Some(repo) = patient.repo {
        section.checks.push(hooks(repo, patient));
    }
    section.checks.push(cache(patient));
    if let Some(repo) = patient
        .repo
        .filter(|_| patient.policy.hooks.post_commit == PostCommit::Background)
    {
        section.checks.push(background(repo, patient));
    }
    if patient.policy.tests.reproduce {
        section.checks.push(sandbox(patient));
    }
    section
}

/// Checks the sandbox for tests that a model writes. Without a sandbox, reviews work and do not run
/// such tests.
fn sandbox(patient: &Patient<'_>) -> DoctorCheck {
    let tests = &patient.policy.tests;
    let top = patient.repo.and_then(Repo::worktree);
    let settings = Settings {
        command: &tests.sandbox,
        paths: &tests.sandbox_paths,
        top,
    };
    match Sandbox::check(&settings, patient.env) {
        Ok(name) => DoctorCheck::good(
            "sandbox",
            format!("{name}: no network, system folders are read-only"),
        ),
        Err(why) => DoctorCheck {
            hint: Some("install bubblewrap, or set sandbox in [tests]".to_owned()),
            ..DoctorCheck::new(
                "sandbox",
                CheckState::Doubtful,
                format!("{why}; tests of models do not run"),
            )
        },
    }
}

fn repository(patient: &Patient<'_>) -> DoctorCheck {
    let Some(repo) = patient.repo else {
        let text = format!(
            "no git repository in {}: only patches and files can be reviewed",
            patient.dir.display()
        );
        return DoctorCheck::told("repository", text);
    };
    let at = repo.worktree().unwrap_or_else(|| repo.git_dir()).display();
    match repo.head() {
        Ok(Some(head)) => {
            DoctorCheck::good("repository", format!("{at}, HEAD is {}", head.short()))
        }
        Ok(None) => DoctorCheck::good("repository", format!("{at}, no commits yet")),
        Err(e) => DoctorCheck {
            hint: e.hints.first().cloned(),
            ..DoctorCheck::bad("repository", format!("{at}: {}", e.message))
        },
    }
}

/// Checks for git, which runs the hooks and reads reftables. Reviews do not need it for reading
/// repositories.
fn git(patient: &Patient<'_>) -> DoctorCheck {
    let top = patient.repo.and_then(Repo::worktree);
    match process::find_program("git", patient.env, top) {
        Err(why) => DoctorCheck::told(
            "git",
            format!("{why}; needed for hooks and for reftable repositories"),
        ),
        Ok(path) => match git_version(&path) {
            Some(version) => DoctorCheck::good("git", format!("{version}, {}", path.display())),
            None => DoctorCheck::new(
                "git",
                CheckState::Doubtful,
                format!("cannot read the version of {}", path.display()),
            ),
        },
    }
}

fn git_version(path: &Path) -> Option<String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .ok()?;
    let (args, dir): ([OsString; 1], PathBuf) = (["--version".into()], "/".into());
    let program = Program {
        path,
        args: &args,
        env: &[],
        dir: &dir,
        stdin: &[],
        deadline: Instant::now() + GIT_TIME,
        max_stdout: 4096,
        max_stderr: 0,
        max_memory: None,
    };
    let out = runtime
        .block_on(process::run(&program, &Stop::default()))
        .ok()?;
    let text = String::from_utf8_lossy(&out.stdout);
    let version = text.trim().strip_prefix("git version ")?;
    (out.end == End::Exit(0)).then(|| version.to_owned())
}

fn hooks(repo: &Repo, patient: &Patient<'_>) -> DoctorCheck {
    let dir = match repo.hooks() {
        Ok(dir) => dir.path,
        Err(e) => return DoctorCheck::new("hooks", CheckState::Doubtful, e.message),
    };
    let policy = patient.policy.hooks;
    let modes = [
        (Hook::PreCommit, mode_name(policy.pre_commit)),
        (Hook::PrePush, mode_name(policy.pre_push)),
        (Hook::PostCommit, policy.post_commit.name()),
    ];
    let ours: Vec<String> = modes
        .into_iter()
        .filter(|(hook, _)| is_ours(&dir.join(hook.name())))
        .map(|(hook, mode)| format!("{} ({mode})", hook.name()))
        .collect();
    if ours.is_empty() {
        return DoctorCheck::told("hooks", "not installed here: claude-reviewer install-hooks");
    }
    DoctorCheck::good("hooks", format!("{} in {}", ours.join(", "), dir.display()))
}

/// Checks that commits are reviewed in the background as the policy configures.
fn background(repo: &Repo, patient: &Patient<'_>) -> DoctorCheck {
    const NAME: &str = "background";
    if !repo
        .hooks()
        .is_ok_and(|hooks| install::is_installed(&hooks.path, Hook::PostCommit))
    {
        let text = "no post-commit hook is installed: commits are not reviewed in the background";
        return DoctorCheck::new(NAME, CheckState::Doubtful, text)
            .hint("claude-reviewer install-hooks");
    }
    if patient.policy.review.backends.is_empty() {
        let text = "no backend is configured: commits are not reviewed in the background";
        return DoctorCheck::new(NAME, CheckState::Doubtful, text).hint("set [review] backends");
    }
    let top = repo.worktree().unwrap_or(patient.dir);
    if let Some(why) = background::unpriced(patient.policy, patient.env, top) {
        let text = format!("commits are not reviewed in the background: {why}");
        return DoctorCheck::new(NAME, CheckState::Doubtful, text);
    }
    let view = match Station::find(repo, patient.env).and_then(|s| s.map(|s| s.view()).transpose())
    {
        Ok(view) => view,
        Err(e) => {
            let check = DoctorCheck::new(NAME, CheckState::Doubtful, e.on_one_line());
            return DoctorCheck {
                hint: e.hints.first().cloned(),
                ..check
            };
        }
    };
    let Some(View { queue, .. }) = view else {
        return DoctorCheck::good(NAME, "on, no review yet");
    };
    match (queue.running, queue.waiting) {
        (Some(running), _) => DoctorCheck::good(
            NAME,
            format!("reviewing commit {}", short(&running.order.commit)),
        ),
        (None, Some(Waiting { order, held: None })) => {
            DoctorCheck::told(NAME, format!("commit {} waits", short(&order.commit)))
                .hint("claude-reviewer status --start")
        }
        (
            None,
            Some(Waiting {
                order,
                held: Some(why),
            }),
        ) => {
            let text = format!("commit {} waits: {why}", short(&order.commit));
            DoctorCheck::new(NAME, CheckState::Doubtful, text)
                .hint("claude-reviewer status --start")
        }
        (None, None) => DoctorCheck::good(NAME, "on, nothing waits"),
    }
}

/// Returns the first characters of a commit ID.
fn short(commit: &str) -> &str {
    commit.get(..12).unwrap_or(commit)
}

fn mode_name(mode: HookMode) -> &'static str {
    match mode {
        HookMode::Rules => "rules",
        HookMode::Full => "full",
        HookMode::Off => "off",
    }
}

fn is_ours(path: &Path) -> bool {
    // Opening a pipe would block.
    let is_file = std::fs::metadata(path).is_ok_and(|m| m.is_file());
    is_file
        && std::fs::File::open(path)
            .and_then(|f| bounded::start(f, HOOK_HEAD))
            .is_ok_and(|head| shim::version(&head).is_some())
}

fn cache(patient: &Patient<'_>) -> DoctorCheck {
    let Some(home) = patient.env.cache_home() else {
        return DoctorCheck::told(
            "cache",
            "not available: neither XDG_CACHE_HOME nor HOME is set to a folder",
        );
    };
    let shown = home.join("claude-reviewer");
    match Cache::open(patient.env, patient.repo.and_then(Repo::worktree)) {
        Some(_) => DoctorCheck::good("cache", shown.display()),
        None => {
            let text = format!("not available: cannot use {}", shown.display());
            DoctorCheck::new("cache", CheckState::Doubtful, text)
                .hint("use a folder outside of the repository that only you can read and write (chmod 700)")
        }
    }
}

pub(super) fn policy(patient: &Patient<'_>) -> CheckSection {
    let mut section = CheckSection::new("policy");
    let policy = patient.policy;
    let add = &mut section.checks;
    add.push(DoctorCheck::good(
        "files",
        format!("{}, hash {}", patient.policy_files, policy.hash()),
    ));
    for note in patient.policy_notes {
        add.push(
            DoctorCheck::new("refused", CheckState::Doubtful, note)
                .hint("claude-reviewer policy trust"),
        );
    }
    for doubt in policy.doubts() {
        add.push(DoctorCheck::new("policy", CheckState::Doubtful, doubt));
    }
    let gate = format!(
        "blocks on {}, warns on {}",
        named(&policy.block_on),
        named(&policy.warn_on)
    );
    add.push(DoctorCheck::good("gate", gate));
    let all = rules::describe_all().count();
    let active = match policy.rules.disable.len() {
        0 => format!("{all} built-in rules"),
        off => format!("{all} built-in rules, {off} disabled"),
    };
    let top = patient.repo.and_then(Repo::worktree);
    let own: Vec<_> = policy
        .rules
        .paths
        .iter()
        .filter(|p| top.is_some_and(|t| t.join(p).exists()))
        .cloned()
        .collect();
    let own = if own.is_empty() {
        String::new()
    } else {
        format!(", and team rules in {}", own.join(", "))
    };
    add.push(DoctorCheck::good("rules", format!("{active}{own}")));
    let asked = &policy.review.backends;
    add.push(match (asked.is_empty(), patient.backends.is_empty()) {
        (true, true) => DoctorCheck::told("models", "no backend configured, only rules run").hint(
            "to add one, set backends = [\"claude\"] under [review], or pass --backend claude",
        ),
        (_, false) => DoctorCheck::good(
            "models",
            format!("{} (from --backend)", patient.backends.join(", ")),
        ),
        _ => DoctorCheck::good("models", asked.join(", ")),
    });
    section
}

/// Returns the names of severities.
fn named(severities: &[Severity]) -> String {
    match severities {
        [] => "no severity".to_owned(),
        list => list.iter().map(|s| s.name()).collect::<Vec<_>>().join(", "),
    }
}
