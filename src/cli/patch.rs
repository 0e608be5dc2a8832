//! Writes patch files for the user; never replaces a file.

use crate::env::Env;
use crate::error::{Error, Result};
use crate::shell;
use std::fs::OpenOptions;
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

/// File names that are tried before a patch is given up.
const MOST_NAMES: u32 = 1000;

/// Checks that a patch file can be created. `command` is the command for the hint, without its
/// option `--patch`.
///
/// # Errors
/// Usage: the path exists, or its folder is missing or not writable.
pub(super) fn check(file: &Path, command: &str) -> Result<()> {
    if file.symlink_metadata().is_ok() {
        return Err(exists(file, command));
    }
    let folder = file
        .parent()
        .filter(|f| !f.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    if !folder.is_dir() {
        return Err(Error::usage(format!(
            "cannot write {}: its folder does not exist",
            file.display()
        ))
        .hint(format!("make the folder: mkdir -p {}", quoted(folder))));
    }
    // Permissions do not determine whether a file can be created, for example on a read-only file
    // system.
    match tempfile::Builder::new()
        .prefix(".claude-reviewer-")
        .tempfile_in(folder)
    {
        Ok(_) => Ok(()),
        Err(e) => {
            let error = Error::usage(format!("cannot write {}", file.display())).caused_by(&e);
            Err(error.hint(format!("choose another folder: {command} --patch FILE")))
        }
    }
}

/// Writes a new patch file. A link at the path counts as a file, even a broken one.
///
/// # Errors
/// Usage: the path exists. Incomplete: the file cannot be written.
pub(super) fn write(file: &Path, patch: &[u8], command: &str) -> Result<()> {
    let new = OpenOptions::new().write(true).create_new(true).open(file);
    new.and_then(|mut new| new.write_all(patch))
        .map_err(|e| match e.kind() {
            ErrorKind::AlreadyExists => exists(file, command),
            _ => Error::incomplete(format!("cannot write {}", file.display())).caused_by(&e),
        })
}

/// Saves a patch in the user's cache, readable only for the user, and returns its path; `None` if
/// it cannot be saved.
pub(super) fn keep(name: &str, patch: &[u8], env: &Env) -> Option<PathBuf> {
    let folder = env.cache_home()?.join("claude-reviewer");
    std::fs::create_dir_all(&folder).ok()?;
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    for number in 1..MOST_NAMES {
        // Sessions of other repositories have the same numbers.
        let file = folder.join(if number == 1 {
            format!("{name}.patch")
        } else {
            format!("{name}-{number}.patch")
        });
        match options.open(&file) {
            Ok(mut new) => return new.write_all(patch).is_ok().then_some(file),
            Err(e) if e.kind() == ErrorKind::AlreadyExists => {}
            Err(_) => return None,
        }
    }
    None
}

/// Quotes a path for a shell.
pub(super) fn quoted(path: &Path) -> String {
    shell::quoted(&path.display().to_string())
}

fn exists(file: &Path, command: &str) -> Error {
    let free = free(file).map(|free| format!("{command} --patch {}", quoted(&free)));
    let error = Error::usage(format!("{} exists and is not overwritten", file.display()));
    free.into_iter().fold(error, |error, hint| {
        error.hint(format!("choose another name: {hint}"))
    })
}

/// Returns an unused path in the same folder as a file.
fn free(file: &Path) -> Option<PathBuf> {
    let stem = file.file_stem()?.to_str()?;
    let end = file
        .extension()
        .and_then(|e| e.to_str())
        .map(|e| format!(".{e}"))
        .unwrap_or_default();
    let paths = (2..MOST_NAMES).map(|n| file.with_file_name(format!("{stem}-{n}{end}")));
    paths
        .into_iter()
        .find(|path| path.symlink_metadata().is_err())
}
