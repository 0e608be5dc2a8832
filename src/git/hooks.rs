//! Finds the folder of a repository's hooks.

use super::Repo;
use crate::error::{Error, Result};
use std::path::PathBuf;

/// The folder of a repository's hooks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HooksDir {
    /// Absolute. Need not exist.
    pub path: PathBuf,
    /// Configuration that sets it (`core.hooksPath`); `None` if it is the repository's default.
    pub configured: Option<ConfigScope>,
    /// Whether the folder is in the worktree or in the repository's own data. Otherwise other
    /// repositories may use it too.
    pub inside: bool,
}

/// The configuration file of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConfigScope {
    System,
    /// The user's configuration.
    Global,
    Local,
    /// The configuration of one worktree.
    Worktree,
    /// The command line or the environment.
    Command,
}

pub(super) fn find(repo: &Repo) -> Result<HooksDir> {
    let local = repo.local();
    let common = local.common_dir().to_owned();
    let config = local.config_snapshot();
    let Ok((_, section)) = config.plumbing().raw_value_with_section("core.hooksPath") else {
        let path = common.join("hooks");
        return Ok(HooksDir {
            inside: lies_inside(repo, &common, &path),
            path,
            configured: None,
        });
    };
    use gix::config::Source as S;
    let scope = match section.meta().source {
        S::GitInstallation | S::System => ConfigScope::System,
        S::Git | S::User => ConfigScope::Global,
        S::Local => ConfigScope::Local,
        S::Worktree => ConfigScope::Worktree,
        S::Env | S::Cli | S::Api | S::EnvOverride => ConfigScope::Command,
    };
    let path = config
        .trusted_path("core.hooksPath")
        .map_err(|e| Error::usage("cannot read core.hooksPath").caused_by(&e))?
        .unwrap_or_default();
    if path.as_os_str().is_empty() {
        // Git would run /pre-commit, so a hook in any other folder never runs.
        let flag = match scope {
            ConfigScope::System => " --system",
            ConfigScope::Global => " --global",
            ConfigScope::Worktree => " --worktree",
            ConfigScope::Local => "",
            ConfigScope::Command => {
                return Err(Error::usage(
                    "core.hooksPath is empty for this command, so git runs no hooks",
                )
                .hint("unset GIT_CONFIG_* in the environment, then run install-hooks again"));
            }
        };
        return Err(Error::usage(
            "core.hooksPath is empty, so git runs no hooks in this repository",
        )
        .hint(format!("git config{flag} --unset core.hooksPath")));
    }
    // Git resolves a relative path in the folder where hooks run: the top of the worktree.
    let top = repo.worktree().unwrap_or(&common);
    let path = top.join(path);
    Ok(HooksDir {
        inside: lies_inside(repo, &common, &path),
        path,
        configured: Some(scope),
    })
}

/// Returns true if a path is in the repository, following links: the folder `hooks` may itself be a
/// link.
fn lies_inside(repo: &Repo, common: &std::path::Path, path: &std::path::Path) -> bool {
    let lies_in = super::real(deepest(path));
    let folders = [Some(super::real(common)), repo.worktree().map(super::real)];
    folders
        .into_iter()
        .flatten()
        .any(|d| lies_in.starts_with(d))
}

/// Returns the deepest part of a path that exists.
fn deepest(path: &std::path::Path) -> &std::path::Path {
    path.ancestors().find(|p| p.exists()).unwrap_or(path)
}
