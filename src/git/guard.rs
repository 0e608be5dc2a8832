//! Checks the repository's own files before gix opens them.
//!
//! gix opens `HEAD`, `config`, `packed-refs` and others with a plain `open`, which waits for a
//! writer where the file is a named pipe, and reads to the end, which a device may not have. Git
//! never creates such files, so the review ends with a usage error that names the path.

use crate::bounded;
use crate::error::{Error, Result};
use crate::shell;
use std::ffi::OsStr;
use std::fs::Metadata;
use std::path::{Path, PathBuf};

/// Files of the folder that belongs to one worktree: `.git` or `.git/worktrees/NAME`.
const OF_WORKTREE: &[&str] = &[
    "HEAD",
    "commondir",
    "gitdir",
    "config.worktree",
    "logs/HEAD",
    "info/sparse-checkout",
    "ORIG_HEAD",
    "FETCH_HEAD",
    "MERGE_HEAD",
];
/// Files of the folder that all worktrees share.
const SHARED: &[&str] = &[
    "HEAD",
    "config",
    "packed-refs",
    "shallow",
    "info/attributes",
    "info/exclude",
    "info/grafts",
    "objects/info/commit-graph",
    "objects/info/commit-graphs/commit-graph-chain",
];
/// Bytes of a file that contains the path of a folder or the name of a reference, at most. Git
/// writes one path.
const MAX_POINTER: u64 = 64 << 10;
/// Bytes of a configuration file, at most.
const MAX_CONFIG: u64 = 16 << 20;
/// Depth of object stores that borrow from each other, at most. Git follows 5.
const MAX_ALTERNATES: usize = 16;
/// Depth of configuration includes, at most. Git follows 10.
const MAX_INCLUDES: usize = 10;
/// Depth of symbolic references, at most. Git follows 5.
const MAX_LINKS: usize = 5;

/// Checks every folder in which the discovery that starts in `dir` may find a repository. `home` is
/// the value of `~` in a configuration file.
///
/// # Errors
///
/// Usage: a file that gix would open is a pipe, a socket, a device or too large.
pub(super) fn check_upwards(dir: &Path, home: Option<&Path>) -> Result<()> {
    let start = std::fs::canonicalize(dir).unwrap_or_else(|_| dir.to_owned());
    for folder in start.ancestors() {
        let dot_git = folder.join(".git");
        if dot_git.symlink_metadata().is_ok() {
            return check_git_dir(&dot_git, home);
        }
        // A bare repository, or a folder in one.
        if folder.join("HEAD").symlink_metadata().is_ok() {
            check_git_dir(folder, home)?;
        }
    }
    Ok(())
}

/// Checks the files that are read when a repository is opened. `path` is its folder, or a file that
/// contains its path.
///
/// # Errors
///
/// As [`check_upwards`].
pub(super) fn check_git_dir(path: &Path, home: Option<&Path>) -> Result<()> {
    check(path)?;
    let git_dir = match std::fs::metadata(path) {
        Ok(meta) if meta.is_file() => match pointed_to(path, b"gitdir:")? {
            Some(dir) => dir,
            None => return Ok(()),
        },
        // A folder with a worktree.
        _ if path.join(".git").symlink_metadata().is_ok() => {
            return check_git_dir(&path.join(".git"), home);
        }
        _ => path.to_owned(),
    };
    check_all(&git_dir, OF_WORKTREE)?;
    let common = pointed_to(&git_dir.join("commondir"), b"")?.unwrap_or_else(|| git_dir.clone());
    check_all(&common, SHARED)?;
    check_includes(&common.join("config"), home, MAX_INCLUDES)?;
    check_includes(&git_dir.join("config.worktree"), home, MAX_INCLUDES)?;
    check_objects(&common.join("objects"), MAX_ALTERNATES)?;
    check_head(&git_dir, &common)
}

/// Checks the loose file of a reference with this full name, and of the references that it points
/// to.
///
/// # Errors
///
/// As [`check_upwards`].
pub(super) fn check_reference(repo: &gix::Repository, name: &str) -> Result<()> {
    let mut next = Some(name.to_owned()).filter(|name| stays_inside(name));
    for _ in 0..=MAX_LINKS {
        let Some(name) = next.take() else {
            return Ok(());
        };
        for dir in [repo.git_dir(), repo.common_dir()] {
            let file = dir.join(&name);
            check(&file)?;
            next = next.or(symbolic_target(&file)?);
        }
    }
    Ok(())
}

/// Checks the files of the references that the name in a revision may mean, and the log that `@{…}`
/// reads.
///
/// # Errors
///
/// As [`check_upwards`].
pub(super) fn check_revision(repo: &gix::Repository, revision: &str) -> Result<()> {
    let end = revision
        .find(['^', '~', ':', '@'])
        .unwrap_or(revision.len());
    let name = match &revision[..end] {
        "" => "HEAD",
        name => name,
    };
    // The order of git's rules for short names (gitrevisions).
    for prefix in ["", "refs/", "refs/tags/", "refs/heads/", "refs/remotes/"] {
        check_reference(repo, &format!("{prefix}{name}"))?;
        if revision.contains("@{") {
            check(&repo.common_dir().join(format!("logs/{prefix}{name}")))?;
        }
    }
    check_reference(repo, &format!("refs/remotes/{name}/HEAD"))
}

/// Checks the reference that HEAD points to.
fn check_head(git_dir: &Path, common: &Path) -> Result<()> {
    let mut file = git_dir.join("HEAD");
    for _ in 0..=MAX_LINKS {
        let Some(name) = symbolic_target(&file)? else {
            return Ok(());
        };
        file = common.join(name);
        check(&file)?;
    }
    Ok(())
}

fn check_all(dir: &Path, names: &[&str]) -> Result<()> {
    names.iter().try_for_each(|name| check(&dir.join(name)))
}

/// Checks an object store: its packs, the list of stores that it borrows from, and those stores.
fn check_objects(store: &Path, depth: usize) -> Result<()> {
    let packs = std::fs::read_dir(store.join("pack"));
    for entry in packs.into_iter().flatten().flatten() {
        // The directory entry has the type; only an entry that is not a regular file needs another
        // call.
        if !entry.file_type().is_ok_and(|t| t.is_file()) {
            check(&entry.path())?;
        }
    }
    let alternates = store.join("info/alternates");
    check(&alternates)?;
    let Some(text) = read(&alternates, MAX_CONFIG)? else {
        return Ok(());
    };
    let Some(depth) = depth.checked_sub(1) else {
        return Ok(());
    };
    let lines = text.split(|b| *b == b'\n').map(<[u8]>::trim_ascii_end);
    for line in lines.filter(|l| !l.is_empty() && !l.starts_with(b"#")) {
        if let Ok(other) = gix::path::from_byte_slice(line) {
            check_objects(&store.join(other), depth)?;
        }
    }
    Ok(())
}

/// Checks the files that a configuration file includes. gix reports syntax errors.
fn check_includes(config: &Path, home: Option<&Path>, depth: usize) -> Result<()> {
    check(config)?;
    let Some(text) = read(config, MAX_CONFIG)? else {
        return Ok(());
    };
    let Some(depth) = depth.checked_sub(1) else {
        return Ok(());
    };
    // The section name in any case: most files have no include and need no parsing.
    if !text.windows(7).any(|w| w.eq_ignore_ascii_case(b"include")) {
        return Ok(());
    }
    let Ok(file) = gix::config::File::from_bytes_no_includes(
        &text,
        gix::config::file::Metadata::default(),
        gix::config::file::init::Options::default(),
    ) else {
        return Ok(());
    };
    let sections = ["include", "includeIf"]
        .into_iter()
        .filter_map(|name| file.sections_by_name(name));
    for value in sections
        .flatten()
        .flat_map(|section| section.values("path"))
    {
        let Ok(named) = gix::path::from_byte_slice(&value) else {
            continue;
        };
        let path = match named.strip_prefix("~") {
            Ok(rest) => match home {
                Some(home) => home.join(rest),
                None => continue,
            },
            Err(_) => config.parent().unwrap_or(Path::new("")).join(named),
        };
        check_includes(&path, home, depth)?;
    }
    Ok(())
}

/// Returns the path in a file of one line, relative to the file's folder, or `None` if there is no
/// such file.
fn pointed_to(file: &Path, prefix: &[u8]) -> Result<Option<PathBuf>> {
    check(file)?;
    let Some(text) = read(file, MAX_POINTER)? else {
        return Ok(None);
    };
    let Some(name) = text.trim_ascii().strip_prefix(prefix) else {
        return Ok(None);
    };
    let Ok(name) = gix::path::from_byte_slice(name.trim_ascii_start()) else {
        return Ok(None);
    };
    Ok(Some(file.parent().unwrap_or(Path::new("")).join(name)))
}

/// Returns the name that a symbolic reference points to.
fn symbolic_target(file: &Path) -> Result<Option<String>> {
    let Some(text) = read(file, MAX_POINTER)? else {
        return Ok(None);
    };
    let Some(name) = text.trim_ascii_end().strip_prefix(b"ref: ") else {
        return Ok(None);
    };
    Ok(Some(String::from_utf8_lossy(name).into_owned()).filter(|name| stays_inside(name)))
}

/// Returns true if a reference name cannot escape the repository.
fn stays_inside(name: &str) -> bool {
    !name.starts_with('/') && !name.split('/').any(|part| part == "..")
}

/// Reads a checked file. Returns `None` if it is missing or cannot be read, which gix reports.
///
/// # Errors
///
/// Usage: the file is larger than `max` bytes.
fn read(path: &Path, max: u64) -> Result<Option<Vec<u8>>> {
    let Ok(file) = std::fs::File::open(path) else {
        return Ok(None);
    };
    let Ok(bytes) = bounded::whole(file, max) else {
        return Ok(None);
    };
    bytes.map(Some).ok_or_else(|| {
        Error::usage(format!(
            "{} is larger than {} KiB",
            path.display(),
            max >> 10
        ))
    })
}

/// Checks that a path is a regular file or a folder, or missing. Follows links.
fn check(path: &Path) -> Result<()> {
    let Ok(meta) = std::fs::metadata(path) else {
        return Ok(());
    };
    if is_harmless(&meta) {
        return Ok(());
    }
    let name = path
        .file_name()
        .unwrap_or(OsStr::new("it"))
        .to_string_lossy();
    let text = format!(
        "cannot read the repository: {} is {}",
        path.display(),
        kind(&meta)
    );
    Err(Error::usage(text).hint(format!(
        "replace {name} with a regular file: ls -l {}",
        shell::quoted(&path.to_string_lossy())
    )))
}

/// Returns true if reading the file ends: a regular file, a folder, or `/dev/null`.
pub(super) fn is_harmless(meta: &Metadata) -> bool {
    meta.is_file() || meta.is_dir() || is_null_device(meta)
}

/// Returns true for `/dev/null`, which configurations use to disable a file.
#[cfg(unix)]
fn is_null_device(meta: &Metadata) -> bool {
    use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
    meta.file_type().is_char_device()
        && std::fs::metadata("/dev/null").is_ok_and(|null| null.rdev() == meta.rdev())
}

#[cfg(not(unix))]
fn is_null_device(_meta: &Metadata) -> bool {
    false
}

#[cfg(unix)]
fn kind(meta: &Metadata) -> &'static str {
    use std::os::unix::fs::FileTypeExt as _;
    match meta.file_type() {
        t if t.is_fifo() => "a named pipe",
        t if t.is_socket() => "a socket",
        t if t.is_char_device() || t.is_block_device() => "a device",
        _ => "not a regular file",
    }
}

#[cfg(not(unix))]
fn kind(_meta: &Metadata) -> &'static str {
    "not a regular file"
}
