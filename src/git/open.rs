//! Discovers and opens a repository, with git's own safety checks.

use super::{Repo, guard, refs};
use crate::env::Env;
use crate::error::{Error, Result};
use crate::shell;
use gix::discover::upwards;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Bytes of an object, at most; larger ones are reported and not reviewed.
const MAX_OBJECT: usize = 1 << 30;

/// Opens the repository that contains `dir`. See [`Repo::open`].
pub(super) fn open(dir: &Path, env: &Env) -> Result<Repo> {
    open_with(dir, env, &options())
}

/// Opens a repository with another list of shallow commits than its own: the file that git calls
/// `shallow`. If the file does not exist, the history is complete. See [`super::Fetched`].
pub(super) fn open_cut_off_at(dir: &Path, env: &Env, shallow: &Path) -> Result<Repo> {
    let Some(shallow) = shallow.to_str() else {
        return Err(Error::usage(format!(
            "the path {} is not UTF-8",
            shallow.display()
        )));
    };
    open_with(
        dir,
        env,
        &overridden([format!("gitoxide.core.shallowFile={shallow}")]),
    )
}

fn open_with(dir: &Path, env: &Env, options: &gix::open::Options) -> Result<Repo> {
    let dir = env.dir.join(dir);
    let named = env.os("GIT_DIR").map(|d| dir.join(d));
    let home = env.os("HOME").map(Path::new);
    match &named {
        Some(path) => guard::check_git_dir(path, home)?,
        None => guard::check_upwards(&dir, home)?,
    }
    let mut repo = match &named {
        Some(path) => {
            gix::ThreadSafeRepository::open_opts(path, options.clone().open_path_as_is(true))
                .map_err(|e| not_a_repository(path).caused_by(&e))?
                .to_thread_local()
        }
        None => discover(&dir, env, options)?,
    };
    if repo.git_dir_trust() != gix::sec::Trust::Full {
        return Err(foreign(repo.workdir().unwrap_or(repo.git_dir())));
    }
    if let Some(top) = worktree_of_env(&dir, env, named.is_some(), &repo) {
        repo.set_workdir(top.clone()).map_err(|e| {
            Error::usage(format!("cannot read the worktree {}", top.display())).caused_by(&e)
        })?;
    }
    let worktree = repo.workdir().map(|w| normal(&dir.join(w)));
    let index_path = match env.os("GIT_INDEX_FILE") {
        // As git does: relative to the top of the worktree, where its hooks run.
        Some(path) => worktree.as_deref().unwrap_or(&dir).join(path),
        None => repo.git_dir().join("index"),
    };
    let refs = refs::Refs::of(&repo, env, worktree.as_deref())?;
    Ok(Repo {
        sync: repo.into_sync(),
        worktree,
        index_path,
        index: OnceLock::new(),
        head: OnceLock::new(),
        refs,
    })
}

/// Opens the repository that contains `dir`, if there is one. See [`Repo::find`].
pub(super) fn find(dir: &Path, env: &Env) -> Result<Option<Repo>> {
    // Only a missing repository is not an error. A damaged one, or one of another user, is not
    // missing.
    let from = env.dir.join(dir);
    match open(dir, env) {
        Err(_)
            if env.os("GIT_DIR").is_none()
                && !super::real(&from)
                    .ancestors()
                    .any(|a| a.join(".git").symlink_metadata().is_ok()) =>
        {
            Ok(None)
        }
        other => other.map(Some),
    }
}

/// Returns the options with which every repository is opened.
fn options() -> gix::open::Options {
    overridden([])
}

fn overridden(further: impl IntoIterator<Item = String>) -> gix::open::Options {
    let always = [
        // Replacement objects would let a local reference decide which content is reviewed.
        "core.useReplaceRefs=false".to_owned(),
        // An object's declared size is not trusted beyond this.
        format!("gitoxide.objects.allocLimit={MAX_OBJECT}"),
    ];
    gix::open::Options::default().config_overrides(always.into_iter().chain(further))
}

/// Searches for a repository in a folder and its parents.
fn discover(dir: &Path, env: &Env, options: &gix::open::Options) -> Result<gix::Repository> {
    let across = env
        .var("GIT_DISCOVERY_ACROSS_FILESYSTEM")
        .is_some_and(|v| matches!(v, "1" | "true" | "yes" | "on"));
    let search = upwards::Options {
        match_ceiling_dir_or_error: false,
        cross_fs: across,
        ..Default::default()
    };
    let trust = gix::sec::trust::Mapping {
        full: options.clone(),
        reduced: options.clone(),
    };
    let repo = gix::ThreadSafeRepository::discover_opts(dir, search.apply_environment(), trust)
        .map_err(|e| not_a_repository(dir).caused_by(e.probable_cause()))?
        .to_thread_local();
    // A bare repository inside of a clone may have been committed there, with its configuration. As
    // with git's `safe.bareRepository=explicit`, it must be named. A repository behind a `.git`
    // file is elsewhere: it never contains the folder in which the search started.
    let git_dir = repo.git_dir();
    if !is_inside_dot_git(git_dir) && super::real(dir).starts_with(super::real(git_dir)) {
        return Err(Error::usage(format!(
            "found the bare repository {}, which is used only if GIT_DIR names it",
            git_dir.display()
        ))
        .hint_person(format!(
            "if you trust it, name it: GIT_DIR={} claude-reviewer …",
            shell::quoted(&git_dir.to_string_lossy())
        ))
        .hint_agent("use a repository with a worktree"));
    }
    Ok(repo)
}

/// Returns true if a folder is a `.git`, or the part of one that belongs to a worktree or
/// submodule.
fn is_inside_dot_git(git_dir: &Path) -> bool {
    if git_dir.file_name().is_some_and(|n| n == ".git") {
        return true;
    }
    let parts: Vec<_> = git_dir.components().map(|c| c.as_os_str()).collect();
    parts
        .windows(2)
        .any(|w| w[0] == ".git" && (w[1] == "worktrees" || w[1] == "modules"))
}

/// Returns the worktree that the environment specifies: `GIT_WORK_TREE`, or the current folder if
/// only `GIT_DIR` is set, as in git.
fn worktree_of_env(dir: &Path, env: &Env, named: bool, repo: &gix::Repository) -> Option<PathBuf> {
    if let Some(top) = env.os("GIT_WORK_TREE") {
        return Some(dir.join(top));
    }
    let config = repo.config_snapshot();
    let bare = config.boolean("core.bare").unwrap_or(false);
    (named && !bare && config.string("core.worktree").is_none()).then(|| dir.to_owned())
}

fn normal(path: &Path) -> PathBuf {
    gix::path::normalize(path.into(), Path::new("/"))
        .map_or_else(|| path.to_owned(), |p| p.into_owned())
}

fn not_a_repository(path: &Path) -> Error {
    Error::usage(format!("{} is not in a git repository", path.display()))
}

/// Returns the error that git prints for a repository of another user.
fn foreign(path: &Path) -> Error {
    Error::usage(format!(
        "detected dubious ownership in repository at '{}'",
        path.display()
    ))
    .hint_person(format!(
        "git config --global --add safe.directory {}",
        shell::quoted(&path.to_string_lossy())
    ))
    .hint_agent("ask the user to trust this repository: git's safe.directory")
}

/// Opens the repository of a submodule's worktree, or returns `None` if it is not checked out.
pub(super) fn nested(top: &Path) -> Result<Option<Repo>> {
    let path = top.join(".git");
    if path.symlink_metadata().is_err() {
        return Ok(None);
    }
    guard::check_git_dir(&path, None)?;
    // In a hook, the environment describes the outer repository.
    let mut permissions = gix::open::Permissions::default();
    permissions.env.git_prefix = gix::sec::Permission::Deny;
    let repo = gix::ThreadSafeRepository::open_opts(
        &path,
        options().open_path_as_is(true).permissions(permissions),
    )
    .map_err(|e| not_a_repository(top).caused_by(&e))?
    .to_thread_local();
    if repo.git_dir_trust() != gix::sec::Trust::Full {
        return Err(foreign(top));
    }
    let refs = refs::Refs::of(&repo, &Env::default(), Some(top))?;
    let index_path = repo.git_dir().join("index");
    let worktree = Some(top.to_owned());
    Ok(Some(Repo {
        sync: repo.into_sync(),
        worktree,
        index_path,
        index: OnceLock::new(),
        head: OnceLock::new(),
        refs,
    }))
}
