//! Installs shims into a repository's hooks folder and removes them.
//!
//! An existing hook is renamed to `<hook>.chained`. The shim runs it first, and removing the shim
//! renames it back. If a shim would affect other repositories, or a hook manager would overwrite
//! it, nothing is written and the error names the alternative.

mod managers;
#[cfg(test)]
mod tests;

use self::managers::{refuse_husky, refuse_lefthook};
use super::{Hook, shim};
use crate::error::{Error, Result};
use crate::git::{ConfigScope, HooksDir};
use std::fs;
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

/// The command that makes git use the repository's own hooks folder.
const OWN_HOOKS: &str = "git config --local core.hooksPath \"$(git rev-parse --path-format=absolute --git-common-dir)/hooks\"";

/// The folders that an installation needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookPlace {
    /// The folder in which git searches hooks, and the configuration that sets it.
    pub hooks: HooksDir,
    /// The top of the worktree.
    pub worktree: PathBuf,
    /// The git folder that all worktrees of the repository share.
    pub common: PathBuf,
}

/// The result for one hook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HookOutcome {
    /// A new shim was written.
    Installed {
        hook: PathBuf,
        kept: Option<PathBuf>,
    },
    /// A shim was replaced: an older one, or one for another path of the binary.
    Replaced { hook: PathBuf },
    /// The shim was already installed.
    Current { hook: PathBuf },
    /// The shim was removed; `restored`: the previous hook was renamed back.
    Removed { hook: PathBuf, restored: bool },
    /// No shim was found.
    Absent { hook: PathBuf },
}

/// The content of the path of a hook.
#[derive(Debug, PartialEq, Eq)]
enum HookFile {
    Nothing,
    Shim(u32),
    /// A hook of another origin; its text, or empty if it could not be read.
    Other(Vec<u8>),
}

/// A hook that can be installed, after all checks.
#[derive(Debug)]
struct InstallStep {
    path: PathBuf,
    /// New name of an existing hook.
    keep_as: Option<PathBuf>,
    /// An existing hook that an earlier shim has renamed already.
    kept: Option<PathBuf>,
    was: Was,
}

#[derive(Debug, PartialEq, Eq)]
enum Was {
    New,
    Old,
    Same,
}

/// Installs hooks: all of them, or none if there is a reason against one.
///
/// `program` is the absolute path of the binary. A shim inside the worktree does not contain it,
/// because others may share the file.
///
/// # Errors
/// The folder is shared with other repositories; a hook manager owns the hooks; a hook cannot be
/// chained; the folder is not writable.
pub fn install(place: &HookPlace, hooks: &[Hook], program: &Path) -> Result<Vec<HookOutcome>> {
    refuse_shared(place)?;
    let in_worktree = !resolved(&place.hooks.path).starts_with(resolved(&place.common));
    let program = if in_worktree {
        Vec::new()
    } else {
        sh_path(program)
    };
    let mut steps = Vec::new();
    for &hook in hooks {
        let text = shim::text(hook, &program);
        steps.push((plan(place, hook, hooks, &text)?, text));
    }
    fs::create_dir_all(&place.hooks.path).map_err(|e| failed("made", &place.hooks.path, &e))?;
    steps
        .into_iter()
        .map(|(step, text)| apply(step, &text))
        .collect()
}

/// Removes hooks from the repository's own folder, and from the one that git uses now unless it is
/// shared.
///
/// # Errors
/// A hook cannot be read, removed or renamed.
pub fn uninstall(place: &HookPlace, hooks: &[Hook]) -> Result<Vec<HookOutcome>> {
    let own = place.common.join("hooks");
    let mut dirs = vec![&own];
    if !same(&own, &place.hooks.path) && refuse_shared(place).is_ok() {
        dirs.push(&place.hooks.path);
    }
    let mut outcomes = Vec::new();
    for &hook in hooks {
        let mut gone = Vec::new();
        for dir in &dirs {
            gone.extend(remove(dir, hook)?);
        }
        if gone.is_empty() {
            gone.push(HookOutcome::Absent {
                hook: place.hooks.path.join(hook.name()),
            });
        }
        outcomes.append(&mut gone);
    }
    Ok(outcomes)
}

/// Returns true if a folder has the shim of a hook, also if pre-commit runs it.
pub fn is_installed(dir: &Path, hook: Hook) -> bool {
    let path = below_pre_commit(dir, hook)
        .ok()
        .flatten()
        .unwrap_or_else(|| dir.join(hook.name()));
    matches!(look(&path), Ok(HookFile::Shim(_)))
}

/// Rejects a folder that other repositories use too.
fn refuse_shared(place: &HookPlace) -> Result<()> {
    let dir = place.hooks.path.display();
    match place.hooks.configured {
        Some(ConfigScope::System | ConfigScope::Global) => Err(with_advice(Error::usage(format!(
            "core.hooksPath is {dir} for every repository of this user or machine"
        )))),
        Some(ConfigScope::Command) => Err(Error::usage(format!(
            "core.hooksPath is {dir} for this command only"
        ))
        .hint("run install-hooks without GIT_CONFIG_* in the environment")),
        _ if !place.hooks.inside => Err(with_advice(Error::usage(format!(
            "the hooks folder {dir} is outside of this repository"
        )))),
        None | Some(ConfigScope::Local | ConfigScope::Worktree) => Ok(()),
    }
}

/// Adds the ways to review in spite of a shared folder of hooks.
fn with_advice(e: Error) -> Error {
    e.hint(format!(
        "use separate hooks for this repository: {OWN_HOOKS}"
    ))
    .hint("or add this line to the shared hook: claude-reviewer review --hook pre-commit")
}

/// Decides how to install a hook, without changing anything. `hooks` lists all requested ones, for
/// the hint of an error.
fn plan(place: &HookPlace, hook: Hook, hooks: &[Hook], text: &[u8]) -> Result<InstallStep> {
    refuse_husky(place, hooks)?;
    let path = below_pre_commit(&place.hooks.path, hook)?
        .unwrap_or_else(|| place.hooks.path.join(hook.name()));
    let chained = suffixed(&path, shim::CHAINED);
    let kept = exists(&chained).then(|| chained.clone());
    let found = look(&path)?;
    refuse_lefthook(place, hooks, &found)?;
    match found {
        HookFile::Nothing => Ok(InstallStep { path, keep_as: None, kept, was: Was::New }),
        HookFile::Shim(version) if version > shim::VERSION => {
            Err(Error::usage(format!("{} was made by a newer claude-reviewer (hook version {version})", path.display()))
                .hint("update this claude-reviewer, or remove the hook with the newer one: claude-reviewer install-hooks --uninstall"))
        }
        HookFile::Shim(_) => {
            let current = fs::read(&path).is_ok_and(|t| t == text) && is_executable(&path);
            Ok(InstallStep { path, keep_as: None, kept, was: if current { Was::Same } else { Was::Old } })
        }
        HookFile::Other(_) if kept.is_some() => {
            Err(Error::usage(format!("both {} and {} contain a hook of another tool", path.display(), chained.display()))
                .hint("keep the one that counts under the first name and delete the other"))
        }
        HookFile::Other(was) => {
            if names_itself(&was) {
                return Err(Error::usage(format!("{} asks for its own name, so it cannot run under another one", path.display()))
                    .hint(format!("add this line to it instead: {}", line(hook))));
            }
            Ok(InstallStep { path, keep_as: Some(chained), kept: None, was: Was::New })
        }
    }
}

/// Performs a step: the shim is written completely to a temporary file before anything is renamed.
fn apply(step: InstallStep, text: &[u8]) -> Result<HookOutcome> {
    let InstallStep {
        path,
        keep_as,
        kept,
        was,
    } = step;
    if was == Was::Same {
        return Ok(HookOutcome::Current { hook: path });
    }
    let dir = path.parent().unwrap_or(Path::new("."));
    let mut file = tempfile::Builder::new()
        .prefix(".claude-reviewer-")
        .tempfile_in(dir)
        .map_err(|e| failed("written", &path, &e))?;
    file.write_all(text)
        .and_then(|()| make_executable(file.as_file()))
        .and_then(|()| file.as_file().sync_all())
        .map_err(|e| failed("written", &path, &e))?;
    if let Some(keep_as) = &keep_as {
        fs::rename(&path, keep_as).map_err(|e| failed("renamed", &path, &e))?;
    }
    if let Err(e) = file.persist(&path) {
        if let Some(keep_as) = &keep_as {
            // The previous hook must not be lost on a full disk. Report the first error.
            let _ = fs::rename(keep_as, &path);
        }
        return Err(failed("written", &path, &e.error));
    }
    Ok(match was {
        Was::Old => HookOutcome::Replaced { hook: path },
        Was::New | Was::Same => HookOutcome::Installed {
            hook: path,
            kept: keep_as.or(kept),
        },
    })
}

/// Removes a hook's shim from one folder; `None` if there is none.
fn remove(dir: &Path, hook: Hook) -> Result<Option<HookOutcome>> {
    let path = below_pre_commit(dir, hook)?.unwrap_or_else(|| dir.join(hook.name()));
    if !matches!(look(&path)?, HookFile::Shim(_)) {
        return Ok(None);
    }
    let chained = suffixed(&path, shim::CHAINED);
    let restored = exists(&chained);
    let done = if restored {
        fs::rename(&chained, &path)
    } else {
        fs::remove_file(&path)
    };
    done.map_err(|e| failed("removed", &path, &e))?;
    Ok(Some(HookOutcome::Removed {
        hook: path,
        restored,
    }))
}

/// Returns the path of the shim after a later `pre-commit install`, which renames an existing hook
/// to `<hook>.legacy` and runs it first.
fn below_pre_commit(dir: &Path, hook: Hook) -> Result<Option<PathBuf>> {
    let (top, legacy) = (
        dir.join(hook.name()),
        dir.join(format!("{}.legacy", hook.name())),
    );
    let below =
        matches!(look(&legacy)?, HookFile::Shim(_)) && matches!(look(&top)?, HookFile::Other(_));
    Ok(below.then_some(legacy))
}

/// Returns the line that replaces the shim in any other hook.
fn line(hook: Hook) -> String {
    match hook {
        Hook::PreCommit | Hook::PostCommit => {
            format!("claude-reviewer review --hook {}", hook.name())
        }
        Hook::PrePush => format!(
            "claude-reviewer review --hook {} --hook-args \"$@\"",
            hook.name()
        ),
    }
}

/// Returns true if a hook reads its own file name, as dispatchers for several hooks do.
fn names_itself(text: &[u8]) -> bool {
    text.split(|&b| b == b'\n').any(|l| {
        let own_path = [
            &b"$0"[..],
            b"${0}",
            b"argv[0]",
            b"__FILE__",
            b"__file__",
            b"PROGRAM_NAME",
        ];
        !l.trim_ascii_start().starts_with(b"#")
            && (contains(l, b"${0##*/}")
                || contains(l, b"basename") && own_path.iter().any(|p| contains(l, p)))
    })
}

fn look(path: &Path) -> Result<HookFile> {
    match fs::symlink_metadata(path) {
        Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(HookFile::Nothing);
        }
        Err(e) => return Err(failed("read", path, &e)),
        Ok(m) if m.is_dir() => {
            return Err(Error::usage(format!(
                "{} is a folder, not a hook",
                path.display()
            )));
        }
        // A link may lead anywhere, so it is kept as a link.
        Ok(m) if !m.is_file() || m.len() > 1 << 20 => return Ok(HookFile::Other(Vec::new())),
        Ok(_) => {}
    }
    let text = fs::read(path).map_err(|e| failed("read", path, &e))?;
    Ok(shim::version(&text).map_or(HookFile::Other(text), HookFile::Shim))
}

/// Returns true if an entry exists, even a dangling link.
fn exists(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok()
}

fn contains(text: &[u8], what: &[u8]) -> bool {
    memchr::memmem::find(text, what).is_some()
}

fn suffixed(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(suffix);
    PathBuf::from(name)
}

/// Resolves the links of the part of a path that exists.
fn resolved(path: &Path) -> PathBuf {
    for ancestor in path.ancestors() {
        if let (Ok(real), Ok(rest)) = (fs::canonicalize(ancestor), path.strip_prefix(ancestor)) {
            return if rest.as_os_str().is_empty() {
                real
            } else {
                real.join(rest)
            };
        }
    }
    path.to_owned()
}

fn same(a: &Path, b: &Path) -> bool {
    resolved(a) == resolved(b)
}

fn failed(what: &str, path: &Path, e: &std::io::Error) -> Error {
    Error::usage(format!("{} cannot be {what}", path.display())).caused_by(e)
}

#[cfg(unix)]
fn make_executable(file: &fs::File) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    file.set_permissions(fs::Permissions::from_mode(0o755))
}

#[cfg(not(unix))]
fn make_executable(_file: &fs::File) -> std::io::Result<()> {
    Ok(())
}

#[cfg(unix)]
fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    fs::metadata(path).is_ok_and(|m| m.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_executable(_path: &Path) -> bool {
    true
}

/// Returns a path in the form for sh.
#[cfg(unix)]
fn sh_path(path: &Path) -> Vec<u8> {
    use std::os::unix::ffi::OsStrExt as _;
    path.as_os_str().as_bytes().to_vec()
}

/// Returns a path in the form for the sh of Git for Windows.
#[cfg(not(unix))]
fn sh_path(path: &Path) -> Vec<u8> {
    path.to_string_lossy()
        .trim_start_matches(r"\\?\")
        .replace('\\', "/")
        .into_bytes()
}
