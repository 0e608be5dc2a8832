//! `install-hooks`: installs the review in git's hooks, or removes it.

use super::Context;
use super::policy::PolicyFiles;
use crate::error::{Error, ExitStatus};
use crate::git::Repo;
use crate::hooks::install::{self, HookOutcome, HookPlace};
use crate::hooks::{Hook, SKIP};
use crate::policy::PostCommit;
use crate::untrusted::Inert;
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// Install or remove git hooks.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Existing hooks are kept and run first. To skip the review once:\n  \
    CLAUDE_REVIEWER_SKIP=1 git commit    (or git push; other hooks still run)\n  \
    git commit --no-verify               (skips all hooks)"
)]
pub(super) struct InstallHooksArgs {
    /// Install or remove only the pre-commit hook
    #[arg(long)]
    pre_commit: bool,
    /// Install or remove only the pre-push hook
    #[arg(long)]
    pre_push: bool,
    /// Install or remove only the post-commit hook, which reviews in the background
    #[arg(long)]
    post_commit: bool,
    /// Remove the hooks and restore the previous ones
    #[arg(long)]
    uninstall: bool,
}

impl InstallHooksArgs {
    /// Returns the hooks that the flags name. Without a flag: the hooks that can stop git, and the
    /// post-commit hook if the policy uses it or all are removed.
    fn hooks(&self, post_commit: PostCommit) -> Vec<Hook> {
        if Hook::ALL.into_iter().any(|h| self.is_named(h)) {
            return Hook::ALL
                .into_iter()
                .filter(|h| self.is_named(*h))
                .collect();
        }
        let is_used = self.uninstall || post_commit == PostCommit::Background;
        Hook::ALL
            .into_iter()
            .filter(|h| *h != Hook::PostCommit || is_used)
            .collect()
    }

    /// Returns true if a flag names the hook.
    fn is_named(&self, hook: Hook) -> bool {
        match hook {
            Hook::PreCommit => self.pre_commit,
            Hook::PrePush => self.pre_push,
            Hook::PostCommit => self.post_commit,
        }
    }
}

pub(super) fn run(context: &Context, args: &InstallHooksArgs) -> Result<ExitStatus, Error> {
    let repo = Repo::open(&context.dir, &context.env)?;
    let place = place(&repo)?;
    let post_commit = if args.uninstall {
        PostCommit::Off
    } else {
        post_commit(context)
    };
    let hooks = args.hooks(post_commit);
    let outcomes = if args.uninstall {
        let mut outcomes = install::uninstall(&place, &hooks)?;
        // Do not mention this hook unless it is requested or installed.
        outcomes.retain(|o| {
            args.post_commit || !matches!(o, HookOutcome::Absent { hook } if hook.ends_with(Hook::PostCommit.name()))
        });
        outcomes
    } else {
        install::install(&place, &hooks, &program(context)?)?
    };
    if !context.global.quiet {
        print(&report(&outcomes, &place));
        if args.post_commit && !args.uninstall && post_commit == PostCommit::Off {
            print(
                "the post-commit hook does nothing until your configuration has [hooks] post_commit = \"background\"\n",
            );
        }
    }
    Ok(ExitStatus::Pass)
}

/// Returns the policy's setting for the post-commit hook. A review reports an unreadable policy.
fn post_commit(context: &Context) -> PostCommit {
    let files = PolicyFiles::find(context, None).and_then(|files| files.load(context));
    files.map_or(PostCommit::Off, |loaded| loaded.policy.hooks.post_commit)
}

/// Installs all hooks.
pub(super) fn install_all(context: &Context) -> Result<ExitStatus, Error> {
    run(
        context,
        &InstallHooksArgs {
            pre_commit: false,
            pre_push: false,
            post_commit: false,
            uninstall: false,
        },
    )
}

/// Returns the folder of the hooks.
fn place(repo: &Repo) -> Result<HookPlace, Error> {
    let Some(worktree) = repo.worktree() else {
        return Err(Error::usage("hooks do not run in a bare repository")
            .hint("run install-hooks in a worktree of it"));
    };
    Ok(HookPlace {
        hooks: repo.hooks()?,
        worktree: worktree.to_owned(),
        common: repo.common_dir(),
    })
}

/// Returns a path of this program that stays valid after an update: an entry of `PATH` that leads
/// to it, possibly a link, or its own path.
fn program(context: &Context) -> Result<PathBuf, Error> {
    let running = context
        .env
        .program()
        .map_err(|e| Error::usage("cannot find the path of this program").caused_by(&e))?;
    let real = std::fs::canonicalize(&running).unwrap_or_else(|_| running.clone());
    let name = format!("claude-reviewer{}", std::env::consts::EXE_SUFFIX);
    let in_path = context.env.path().into_iter().map(|dir| dir.join(&name));
    let found = in_path
        .into_iter()
        .find(|p| p.is_absolute() && std::fs::canonicalize(p).is_ok_and(|c| c == real));
    Ok(found.unwrap_or(running))
}

fn report(outcomes: &[HookOutcome], place: &HookPlace) -> String {
    let mut text = String::new();
    let mut installed = false;
    for outcome in outcomes {
        let line = match outcome {
            HookOutcome::Installed { hook, kept: None } => {
                format!("installed {}", shown(hook, place))
            }
            HookOutcome::Installed {
                hook,
                kept: Some(kept),
            } => {
                format!(
                    "installed {}; the existing hook runs first, kept as {}",
                    shown(hook, place),
                    shown(kept, place)
                )
            }
            HookOutcome::Replaced { hook } => format!("updated {}", shown(hook, place)),
            HookOutcome::Current { hook } => format!("{} is already installed", shown(hook, place)),
            HookOutcome::Removed {
                hook,
                restored: false,
            } => format!("removed {}", shown(hook, place)),
            HookOutcome::Removed {
                hook,
                restored: true,
            } => {
                format!("removed {}; restored the previous hook", shown(hook, place))
            }
            HookOutcome::Absent { hook } => format!("{} is not installed", shown(hook, place)),
        };
        installed |= matches!(
            outcome,
            HookOutcome::Installed { .. } | HookOutcome::Replaced { .. }
        );
        text.push_str(&line);
        text.push('\n');
    }
    if installed {
        text.push_str(&format!(
            "to skip the review once: {SKIP}=1 git commit, or git commit --no-verify\n"
        ));
    }
    text
}

/// Returns a path relative to the top of the worktree.
fn shown(path: &Path, place: &HookPlace) -> Inert {
    Inert::new(
        path.strip_prefix(&place.worktree)
            .unwrap_or(path)
            .to_string_lossy()
            .as_bytes(),
    )
}

fn print(text: &str) {
    // A closed stdout leaves no way to report the error.
    let _ = std::io::stdout().write_all(text.as_bytes());
}
