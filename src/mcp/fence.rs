//! The paths that a client may name: every path in an argument must lie below a served folder,
//! after links, `..` and `.git` files are resolved.
//!
//! Paths are resolved before they are used. This module reads no contents, except the two small
//! files that identify a linked worktree. An error never reveals whether a path outside the served
//! folders exists.

use crate::ai::context::MAX_DOCUMENT;
use crate::ai::redact::is_sensitive;
use crate::bounded;
use crate::diff::RepoPath;
use crate::env::Env;
use crate::error::{Error, Result};
use crate::git::Repo;
use crate::hex;
use std::ffi::OsStr;
use std::path::{Component, Path, PathBuf};

/// Bytes of a path, at most.
const MOST: usize = 4096;
/// Bytes of a revision, at most.
const MOST_OF_A_REVISION: usize = 256;
/// Object folders (the repository's own and its alternates) of one repository, at most.
const MOST_OBJECT_FOLDERS: usize = 64;

/// The served folders; never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fence {
    /// Canonical paths. Relative paths of arguments start at the first one.
    roots: Vec<PathBuf>,
    /// The operator named the folder, or it is a repository. The folders of a client can only
    /// narrow it.
    is_bound: bool,
    /// The home folder. A client cannot widen the fence to it.
    home: Option<PathBuf>,
}

/// A validated working folder of a call. The repository around it, if any, lies inside the fence
/// and uses no objects from outside. Only a [`Fence`] creates one, and every repository that is
/// opened for a client goes through it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Served {
    dir: PathBuf,
    /// The top of the worktree; `None` outside a repository.
    top: Option<PathBuf>,
}

impl Served {
    /// Returns the working folder.
    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Returns true if the folder lies in a repository.
    pub(super) fn is_repository(&self) -> bool {
        self.top.is_some()
    }

    /// Returns the default working folder: the top of the worktree, or the folder itself outside a
    /// repository.
    pub(super) fn whole(self) -> Self {
        Self {
            dir: self.top.clone().unwrap_or(self.dir),
            ..self
        }
    }
}

impl Fence {
    /// Serves `root`; without it, the repository around `dir`; without a repository, `dir` itself.
    ///
    /// # Errors
    ///
    /// The folder is not a directory.
    pub(super) fn new(root: Option<&Path>, dir: &Path, env: &Env) -> Result<Self> {
        let bound = root
            .map(|r| dir.join(r))
            .or_else(|| worktree_around(dir, env));
        let is_bound = bound.is_some();
        let path = bound.unwrap_or_else(|| dir.to_owned());
        let root = path.canonicalize().ok().filter(|p| p.is_dir());
        let root = root.ok_or_else(|| {
            Error::usage(format!("cannot serve {}: not a directory", path.display()))
        })?;
        let home = env
            .os("HOME")
            .map(PathBuf::from)
            .and_then(|h| h.canonicalize().ok());
        Ok(Self {
            roots: vec![root],
            is_bound,
            home,
        })
    }

    /// Returns the fence for the folders that a client names. They narrow a folder that the
    /// operator named, or a repository. Otherwise they replace the folder. Folders that do not
    /// exist are ignored.
    ///
    /// # Errors
    ///
    /// None of the folders is allowed: they do not lie below the served folder, or, where they
    /// replace it, they contain the home folder.
    pub(super) fn narrowed(&self, uris: &[String]) -> Result<Self> {
        let theirs: Vec<PathBuf> = uris.iter().filter_map(|u| folder_of(u)).collect();
        if theirs.is_empty() {
            return Err(Error::usage("the client has no folder open that is there")
                .hint("open a folder in the client; a folder on this machine, by its whole path"));
        }
        let mut roots: Vec<PathBuf> = Vec::new();
        for root in theirs {
            let kept = match self.is_bound {
                false => Some(root).filter(|r| !self.is_too_wide(r)),
                true => self.roots.iter().find_map(|own| {
                    match (root.starts_with(own), own.starts_with(&root)) {
                        (true, _) => Some(root.clone()),
                        (_, true) => Some(own.clone()),
                        _ => None,
                    }
                }),
            };
            roots.extend(kept.filter(|k| !roots.contains(k)));
        }
        match roots.is_empty() {
            true if self.is_bound => Err(Error::usage(
                "none of the client's folders lies below the folder that is served",
            )
            .hint("the user can open another folder in the client, or have another one served (root of serve-mcp)")),
            true => Err(Error::usage("the client's folders are too wide to be served: the home folder lies in them")
                .hint(
                    "the user can open the folder of a project in the client, or have it served (root of serve-mcp)",
                )),
            false => Ok(Self { roots, ..self.clone() }),
        }
    }

    /// Returns true if a folder is the root of the file system, or if it is or contains the home
    /// folder.
    fn is_too_wide(&self, folder: &Path) -> bool {
        folder.parent().is_none() || self.home.as_ref().is_some_and(|h| h.starts_with(folder))
    }

    /// Returns the folder at which relative paths start.
    pub(super) fn root(&self) -> &Path {
        self.roots
            .first()
            .map_or(Path::new("/nonexistent"), PathBuf::as_path)
    }

    fn holds(&self, path: &Path) -> bool {
        self.roots.iter().any(|r| path.starts_with(r))
    }

    /// Resolves a path of an argument. Relative paths start at `from`.
    ///
    /// # Errors
    ///
    /// The path is invalid, is missing, or leads outside the fence.
    pub(super) fn path(&self, text: &str, from: &Path) -> Result<PathBuf> {
        let path = plain(text)?;
        let full = from
            .join(path)
            .canonicalize()
            .ok()
            .filter(|p| self.holds(p));
        full.ok_or_else(|| {
            Error::usage(format!(
                "{} is not below the folder that is served, or is not there",
                shown(text)
            ))
            .hint(format!("name something below {}", self.root().display()))
        })
    }

    /// Returns the default working folder: the repository around the first served folder, or that
    /// folder.
    ///
    /// # Errors
    ///
    /// There is a repository, and it leads outside the fence. Its configuration and its policy are
    /// not read.
    pub(super) fn home(&self, env: &Env) -> Result<Served> {
        // Search by file names only: opening a repository would read its alternates.
        match self
            .root()
            .ancestors()
            .any(|a| a.join(".git").symlink_metadata().is_ok() || is_bare(a))
        {
            true => self.repository(None, env).map(Served::whole),
            false => Ok(Served {
                dir: self.root().to_owned(),
                top: None,
            }),
        }
    }

    /// Finds the repository around a folder. Its worktree and its `.git` must lie inside the fence.
    ///
    /// # Errors
    ///
    /// There is no repository, or it leads outside the fence.
    pub(super) fn repository(&self, text: Option<&str>, env: &Env) -> Result<Served> {
        let dir = match text {
            Some(text) => self.path(text, self.root())?,
            None => self.root().to_owned(),
        };
        if !dir.is_dir() {
            return Err(
                Error::usage(format!("{} is not a directory", shown(text.unwrap_or("."))))
                    .hint("repository_path is the folder of a git repository"),
            );
        }
        if dir.ancestors().take_while(|a| self.holds(a)).any(is_bare) {
            return Err(Error::usage(format!(
                "{} lies in a bare repository",
                shown(text.unwrap_or("."))
            ))
            .hint("repository_path is the folder of a git repository that has a worktree"));
        }
        let around = dir
            .ancestors()
            .take_while(|a| self.holds(a))
            .find(|a| a.join(".git").symlink_metadata().is_ok());
        let Some(top) = around else {
            return Err(Error::usage(format!(
                "{} is not in a git repository that is served",
                shown(text.unwrap_or("."))
            ))
            .hint("repository_path is the folder of a git repository")
            .hint(
                "`git init` makes one; the user can have another folder served (root of serve-mcp)",
            ));
        };
        let owned = self.owned(top).ok_or_else(|| leads_out(top))?;
        // Open it from the named folder, as the review does.
        let repo = Repo::open(&dir, env)?;
        // The author of the repository controls `core.worktree`, so do not trust it.
        let real = repo.worktree().and_then(|w| w.canonicalize().ok());
        if real.as_deref() != Some(top) {
            return Err(Error::usage(format!(
                "the worktree of {} is another folder",
                top.display()
            ))
            .hint("`git config --unset core.worktree` in it"));
        }
        let opened = (
            repo.git_dir().canonicalize().ok(),
            repo.common_dir().canonicalize().ok(),
        );
        match opened == (Some(owned.dir), Some(owned.common)) {
            true => {
                let top = top.to_owned();
                Ok(Served {
                    dir,
                    top: Some(top),
                })
            }
            false => Err(leads_out(top)),
        }
    }

    /// Returns the git folders of a repository if its `.git` is a folder inside the fence that uses
    /// no objects from outside, or the file of a linked worktree that the main repository has
    /// registered. Otherwise `None`.
    fn owned(&self, top: &Path) -> Option<Owned> {
        let real = top
            .join(".git")
            .canonicalize()
            .ok()
            .filter(|p| self.holds(p))?;
        let dir = match real.is_dir() {
            true => real,
            false => {
                let text = small_file(&real)?;
                let dir = top
                    .join(text.strip_prefix("gitdir:")?.trim())
                    .canonicalize()
                    .ok()?;
                if !self.holds(&dir) {
                    let registered = dir
                        .parent()
                        .is_some_and(|p| p.file_name() == Some(OsStr::new("worktrees")));
                    if !registered {
                        return None;
                    }
                    let back = small_file(&dir.join("gitdir"))
                        .and_then(|t| dir.join(t.trim()).canonicalize().ok());
                    if back.as_ref() != Some(&real) {
                        return None;
                    }
                    // The owner of the main repository controls its alternates, and no part of that
                    // repository lies inside the fence.
                    let common = common_of(&dir)?;
                    return Some(Owned { dir, common });
                }
                dir
            }
        };
        let common = common_of(&dir).filter(|c| self.holds(c))?;
        let own = ["refs", "packed-refs"]
            .iter()
            .all(|n| self.holds_entry(&common.join(n)));
        (own && self.holds_objects(&common.join("objects"))).then_some(Owned { dir, common })
    }

    /// Returns true if a path does not exist, or lies inside the fence after links are followed.
    fn holds_entry(&self, path: &Path) -> bool {
        match path.symlink_metadata() {
            Ok(_) => path.canonicalize().is_ok_and(|p| self.holds(&p)),
            Err(e) => e.kind() == std::io::ErrorKind::NotFound,
        }
    }

    /// Returns true if an object folder, the targets of the links in it, and all its alternates lie
    /// inside the fence. Returns false if any of them cannot be checked.
    fn holds_objects(&self, objects: &Path) -> bool {
        let mut waiting = vec![objects.to_owned()];
        let mut seen: Vec<PathBuf> = Vec::new();
        while let Some(next) = waiting.pop() {
            if next
                .symlink_metadata()
                .is_err_and(|e| e.kind() == std::io::ErrorKind::NotFound)
            {
                // Git skips an alternate that does not exist. Its parent must lie inside the fence
                // all the same.
                if next
                    .parent()
                    .and_then(|p| p.canonicalize().ok())
                    .is_some_and(|p| self.holds(&p))
                {
                    continue;
                }
                return false;
            }
            let Ok(folder) = next.canonicalize() else {
                return false;
            };
            if !self.holds(&folder) {
                return false;
            }
            if seen.contains(&folder) {
                continue;
            }
            let Some(borrowed) = self
                .holds_links(&folder)
                .then(|| alternates(&folder, objects))
                .flatten()
            else {
                return false;
            };
            seen.push(folder);
            if seen.len() + waiting.len() + borrowed.len() > MOST_OBJECT_FOLDERS {
                return false;
            }
            waiting.extend(borrowed);
        }
        true
    }

    /// Returns true if no link in an object folder, or one level below it, leads outside the fence.
    fn holds_links(&self, objects: &Path) -> bool {
        let Ok(entries) = objects.read_dir() else {
            return false;
        };
        entries.into_iter().all(|entry| {
            let Ok(entry) = entry else { return false };
            let path = entry.path();
            if !self.holds_entry(&path) {
                return false;
            }
            if !path.is_dir() {
                return true;
            }
            let Ok(below) = path.read_dir() else {
                return false;
            };
            below.into_iter().all(|e| {
                e.is_ok_and(|e| match e.file_type() {
                    Ok(kind) => !kind.is_symlink() || self.holds_entry(&e.path()),
                    Err(_) => false,
                })
            })
        })
    }

    /// Returns the path of a document that a backend may get: a regular file inside the fence,
    /// within the size limit, not a file of git, and without the name of a file of secrets.
    ///
    /// # Errors
    ///
    /// The reason why the document is rejected.
    pub(super) fn document(&self, text: &str, from: &Path) -> Result<PathBuf> {
        let full = self.path(text, from)?;
        let inside = self
            .roots
            .iter()
            .find_map(|r| full.strip_prefix(r).ok())
            .unwrap_or(&full);
        if inside
            .components()
            .any(|c| matches!(c, Component::Normal(n) if n.eq_ignore_ascii_case(".git")))
        {
            return Err(rejected(text, "belongs to git"));
        }
        let named = RepoPath::new(text.as_bytes().to_vec());
        if is_sensitive(&RepoPath::new(
            inside.as_os_str().as_encoded_bytes().to_vec(),
        )) || is_sensitive(&named)
        {
            return Err(rejected(text, "holds secrets by its name"));
        }
        match full.symlink_metadata() {
            Ok(about) if !about.is_file() => Err(rejected(text, "is not a regular file")),
            Ok(about) if about.len() > MAX_DOCUMENT as u64 => Err(rejected(
                text,
                &format!("is larger than {} KiB", MAX_DOCUMENT >> 10),
            )),
            Ok(_) => Ok(full),
            Err(_) => Err(rejected(text, "cannot be read")),
        }
    }
}

/// Returns the top of the worktree around a folder.
fn worktree_around(dir: &Path, env: &Env) -> Option<PathBuf> {
    let top = Repo::find(dir, env)
        .ok()
        .flatten()?
        .worktree()?
        .canonicalize()
        .ok()?;
    // Ignore a `core.worktree` that does not contain `dir`: a repository's configuration must not
    // choose the served folder.
    dir.canonicalize().ok()?.starts_with(&top).then_some(top)
}

/// Returns the error for a repository with git folders outside the fence.
fn leads_out(top: &Path) -> Error {
    Error::usage(format!(
        "the .git of {} leads out of the folder that is served",
        top.display()
    ))
    .hint("the user can have the folder served that holds both (root of serve-mcp)")
}

/// Returns the error for a document that a backend may not get.
fn rejected(text: &str, why: &str) -> Error {
    Error::usage(format!("{} {why}", shown(text)))
}

/// The canonical git folders of a repository.
#[derive(Debug)]
struct Owned {
    /// The git folder of the worktree.
    dir: PathBuf,
    /// The git folder that all worktrees share.
    common: PathBuf,
}

/// Returns true if a folder has the entries of a bare repository.
fn is_bare(folder: &Path) -> bool {
    ["HEAD", "objects", "refs"]
        .iter()
        .all(|n| folder.join(n).symlink_metadata().is_ok())
}

/// Returns the git folder that all worktrees of a repository share; `None` if its `commondir` file
/// is not plain.
fn common_of(dir: &Path) -> Option<PathBuf> {
    let file = dir.join("commondir");
    if file
        .symlink_metadata()
        .is_err_and(|e| e.kind() == std::io::ErrorKind::NotFound)
    {
        return Some(dir.to_owned());
    }
    let text = small_file(&file)?;
    let line = text.strip_suffix('\n').unwrap_or(&text);
    let is_plain = line == line.trim() && !line.is_empty() && !line.chars().any(char::is_control);
    is_plain
        .then(|| dir.join(line).canonicalize().ok())
        .flatten()
}

/// Returns the alternates of an object folder. `None` if the list is too long or has lines other
/// than plain paths: a comment or quotes could hide a path from one reader and show it to another.
///
/// Each relative path is resolved in two ways: from `folder`, as git does, and from `first`, the
/// repository's own object folder, as gix does.
fn alternates(folder: &Path, first: &Path) -> Option<Vec<PathBuf>> {
    let file = folder.join("info/alternates");
    if file
        .symlink_metadata()
        .is_err_and(|e| e.kind() == std::io::ErrorKind::NotFound)
    {
        return Some(Vec::new());
    }
    let text = small_file(&file).filter(|t| t.len() <= MOST)?;
    let mut all = Vec::new();
    for line in text.split('\n').filter(|l| !l.is_empty()) {
        if line != line.trim() || line.starts_with(['#', '"']) || line.chars().any(char::is_control)
        {
            return None;
        }
        all.extend([folder.join(line), first.join(line)]);
    }
    all.sort();
    all.dedup();
    Some(all)
}

/// Validates the text of a path.
fn plain(text: &str) -> Result<&Path> {
    let path = Path::new(text);
    let why = if text.is_empty() {
        "it is empty"
    } else if text.len() > MOST {
        "it is too long"
    } else if text.chars().any(char::is_control) {
        "it has control characters"
    } else if text.starts_with('~') {
        "~ is not expanded"
    } else if path.components().any(|c| c == Component::ParentDir) {
        "it goes up by .."
    } else {
        return Ok(path);
    };
    Err(Error::usage(format!(
        "{} is not an allowed path: {why}",
        shown(text)
    )))
}

/// Validates the text of a revision: not an option, a list, a range, or a path in a tree.
///
/// # Errors
///
/// The text is not a revision; the message has `name`, the name of the argument.
pub(super) fn revision<'t>(name: &str, text: &'t str) -> Result<&'t str> {
    let fine = !text.is_empty()
        && text.len() <= MOST_OF_A_REVISION
        && !text.starts_with('-')
        && !text.contains("..")
        && text
            .chars()
            .all(|c| c.is_alphanumeric() || "._/-@{}^~#+=".contains(c));
    if fine {
        return Ok(text);
    }
    Err(Error::usage(format!("{name} is not a revision: {}", shown(text)))
        .hint("give a commit id, a branch or a tag, as 1a2b3c4d, main or v1.2; to review a range, use review_branch"))
}

/// Returns the folder of a root's `file:` URI.
fn folder_of(uri: &str) -> Option<PathBuf> {
    let rest = uri.strip_prefix("file://")?;
    let path = rest.strip_prefix("localhost").unwrap_or(rest);
    let bytes = unescape(path.split(['?', '#']).next()?)?;
    let path = PathBuf::from(String::from_utf8(bytes).ok()?);
    path.is_absolute()
        .then(|| path.canonicalize().ok())
        .flatten()
        .filter(|p| p.is_dir())
}

/// Decodes the percent escapes of a URI; `None`: one is malformed, or the text has a NUL byte.
fn unescape(text: &str) -> Option<Vec<u8>> {
    hex::percent_decoded(text).filter(|bytes| !bytes.contains(&0))
}

/// Reads a small file; does not follow a link.
fn small_file(path: &Path) -> Option<String> {
    use rustix::fs::{Mode, OFlags};
    let flags =
        OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    let file = std::fs::File::from(rustix::fs::open(path, flags, Mode::empty()).ok()?);
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    String::from_utf8(bounded::start(file, MOST as u64 + 64).ok()?).ok()
}

fn shown(text: &str) -> String {
    super::args::shown(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    struct TestFolders {
        dir: tempfile::TempDir,
    }

    impl TestFolders {
        fn new() -> Self {
            let dir = tempfile::tempdir().unwrap();
            for folder in ["in/a/b", "out", "in/.git"] {
                std::fs::create_dir_all(dir.path().join(folder)).unwrap();
            }
            std::fs::write(dir.path().join("out/secret.md"), "x").unwrap();
            std::fs::write(dir.path().join("in/a/doc.md"), "x").unwrap();
            Self { dir }
        }

        fn path(&self, below: &str) -> PathBuf {
            self.dir.path().canonicalize().unwrap().join(below)
        }

        fn uri(&self, below: &str) -> String {
            format!("file://{}", self.path(below).display())
        }

        fn fence(&self) -> Fence {
            Fence::new(Some(&self.path("in")), &self.path(""), &Env::default()).unwrap()
        }
    }

    #[test]
    fn mcp_06_a_path_stays_below_the_root() {
        let place = TestFolders::new();
        let fence = place.fence();
        symlink(place.path("out"), place.path("in/way")).unwrap();
        symlink(place.path("in/a"), place.path("in/inner")).unwrap();
        let absolute = place.path("in/a").display().to_string();
        for fine in ["a", "a/b", ".", "inner/b", absolute.as_str(), "./a/doc.md"] {
            assert!(fence.path(fine, fence.root()).is_ok(), "{fine}");
        }
        let outside = place.path("out").display().to_string();
        let long = "a/".repeat(600_000);
        let bad = [
            "",
            "/etc",
            "../out",
            "a/../../out",
            "a/..",
            "way",
            "way/secret.md",
            "~",
            "~root",
            "a\0b",
            "missing",
        ];
        for bad in bad.into_iter().chain([outside.as_str(), long.as_str()]) {
            let said = fence.path(bad, fence.root()).unwrap_err();
            assert!(said.message.len() < 300, "{}", said.message);
        }
        // Do not reveal whether a path outside the fence exists: both cases give the same error.
        let [existing, missing] = ["way/secret.md", "way/nothing.md"].map(|p| {
            fence
                .path(p, fence.root())
                .unwrap_err()
                .message
                .replace(p, "")
        });
        assert_eq!(existing, missing);
    }

    #[test]
    fn a_document_is_a_small_regular_file_and_no_secret() {
        let place = TestFolders::new();
        let fence = place.fence();
        for (name, size) in [
            (".env", 1),
            (".env.production", 1),
            ("id_rsa", 1),
            ("large.md", MAX_DOCUMENT + 1),
            (".git/config", 1),
        ] {
            std::fs::write(place.path(&format!("in/{name}")), vec![b'x'; size]).unwrap();
        }
        symlink(place.path("in/.env"), place.path("in/plain.md")).unwrap();
        symlink("/proc/self/environ", place.path("in/environ.md")).unwrap();
        let made = std::process::Command::new("mkfifo")
            .arg(place.path("in/pipe.md"))
            .status();
        assert!(made.unwrap().success());
        assert!(fence.document("a/doc.md", fence.root()).is_ok());
        for (name, why) in [
            (".env", "secrets"),
            (".env.production", "secrets"),
            ("id_rsa", "secrets"),
            ("plain.md", "secrets"),
            ("large.md", "larger than"),
            (".git/config", "belongs to git"),
            ("environ.md", "is not below"),
            ("/proc/self/environ", "is not below"),
            ("pipe.md", "not a regular file"),
            ("a", "not a regular file"),
        ] {
            let said = fence.document(name, fence.root()).unwrap_err().message;
            assert!(said.contains(why), "{name}: {said}");
        }
    }

    #[test]
    fn a_git_file_that_leads_out_counts_only_where_it_is_known_there() {
        let place = TestFolders::new();
        let fence = place.fence();
        let tree = place.path("in/tree");
        let admin = place.path("out/repo/.git/worktrees/tree");
        std::fs::create_dir_all(&tree).unwrap();
        std::fs::create_dir_all(&admin).unwrap();
        std::fs::write(tree.join(".git"), format!("gitdir: {}\n", admin.display())).unwrap();
        assert!(fence.owned(&tree).is_none());
        std::fs::write(
            admin.join("gitdir"),
            format!("{}\n", place.path("in/other/.git").display()),
        )
        .unwrap();
        assert!(fence.owned(&tree).is_none());
        std::fs::write(
            admin.join("gitdir"),
            format!("{}\n", tree.join(".git").display()),
        )
        .unwrap();
        assert!(fence.owned(&tree).is_some());
        std::fs::write(
            tree.join(".git"),
            format!("gitdir: {}\n", place.path("out/repo/.git").display()),
        )
        .unwrap();
        assert!(fence.owned(&tree).is_none());
        std::fs::remove_file(tree.join(".git")).unwrap();
        symlink(place.path("out/repo/.git"), tree.join(".git")).unwrap();
        assert!(fence.owned(&tree).is_none());
    }

    fn git(dir: &Path, args: &[&str]) {
        let mut git = std::process::Command::new("git");
        git.args(["-c", "user.name=n", "-c", "user.email=e@example.com", "-C"])
            .arg(dir)
            .args(args);
        assert!(git.status().unwrap().success(), "{args:?}");
    }

    /// Creates two repositories with one commit each: `in/plain` and `out/theirs`.
    fn with_repositories() -> (TestFolders, Fence, PathBuf) {
        let place = TestFolders::new();
        std::fs::remove_dir(place.path("in/.git")).unwrap();
        for name in ["in/plain", "out/theirs"] {
            git(&place.path(""), &["init", "-q", name]);
            git(
                &place.path(name),
                &["commit", "-q", "--allow-empty", "-m", "one"],
            );
        }
        let (fence, theirs) = (place.fence(), place.path("out/theirs/.git"));
        (place, fence, theirs)
    }

    fn refused(fence: &Fence, folder: &str) -> bool {
        match fence.repository(Some(folder), &Env::default()) {
            Ok(_) => false,
            Err(e) => {
                assert!(
                    e.message.contains("leads out of the folder that is served"),
                    "{}",
                    e.message
                );
                true
            }
        }
    }

    #[test]
    fn mcp_06_a_repository_borrows_nothing_from_outside() {
        type FolderPreparation = fn(&Path, &Path);
        let turns: [(&str, FolderPreparation); 10] = [
            ("alternates", |git, theirs| {
                std::fs::write(
                    git.join("objects/info/alternates"),
                    format!("{}/objects\n", theirs.display()),
                )
                .unwrap();
            }),
            ("relative alternates", |git, _| {
                let list = "../../../../out/theirs/.git/objects\n";
                std::fs::write(git.join("objects/info/alternates"), list).unwrap();
            }),
            ("alternates of alternates", |git, theirs| {
                std::fs::create_dir_all(git.join("more/info")).unwrap();
                std::fs::write(
                    git.join("more/info/alternates"),
                    format!("{}/objects", theirs.display()),
                )
                .unwrap();
                std::fs::write(git.join("objects/info/alternates"), "../more\n").unwrap();
            }),
            (
                "alternates of alternates that count from the first",
                |git, _| {
                    std::fs::create_dir_all(git.join("a/b/c/d/info")).unwrap();
                    // Resolved from the second folder, this path lies inside the fence; resolved
                    // from the first, outside.
                    std::fs::write(
                        git.join("a/b/c/d/info/alternates"),
                        "../../../../out/theirs/.git/objects\n",
                    )
                    .unwrap();
                    std::fs::create_dir_all(git.join("out/theirs/.git/objects")).unwrap();
                    std::fs::write(git.join("objects/info/alternates"), "../a/b/c/d\n").unwrap();
                },
            ),
            ("a quoted alternate", |git, _| {
                std::fs::write(git.join("objects/info/alternates"), "\"../objects\"\n").unwrap();
            }),
            ("a list too long to be read", |git, theirs| {
                let list = format!("{}{}/objects\n", "\n".repeat(2 * MOST), theirs.display());
                std::fs::write(git.join("objects/info/alternates"), list).unwrap();
            }),
            ("objects", |git, theirs| {
                std::fs::remove_dir_all(git.join("objects")).unwrap();
                symlink(theirs.join("objects"), git.join("objects")).unwrap();
            }),
            ("packs", |git, theirs| {
                std::fs::remove_dir_all(git.join("objects/pack")).unwrap();
                symlink(theirs.join("objects/pack"), git.join("objects/pack")).unwrap();
            }),
            ("common folder", |git, theirs| {
                std::fs::write(git.join("commondir"), format!("{}\n", theirs.display())).unwrap();
            }),
            ("references", |git, theirs| {
                std::fs::remove_dir_all(git.join("refs")).unwrap();
                symlink(theirs.join("refs"), git.join("refs")).unwrap();
            }),
        ];
        for (name, turn) in turns {
            let (place, fence, theirs) = with_repositories();
            assert!(!refused(&fence, "plain"), "{name}");
            turn(&place.path("in/plain/.git"), &theirs);
            assert!(refused(&fence, "plain"), "{name}");
            // A call without an argument has the same result.
            let own = Fence::new(
                Some(&place.path("in/plain")),
                &place.path(""),
                &Env::default(),
            )
            .unwrap();
            assert!(own.repository(None, &Env::default()).is_err(), "{name}");
        }
    }

    #[test]
    fn a_bare_repository_below_a_worktree_is_not_the_one_that_was_looked_at() {
        let (place, fence, theirs) = with_repositories();
        git(&place.path("in/plain"), &["init", "-q", "--bare", "bare"]);
        let objects = place.path("in/plain/bare/objects");
        std::fs::write(
            objects.join("info/alternates"),
            format!("{}/objects\n", theirs.display()),
        )
        .unwrap();
        assert!(
            fence
                .repository(Some("plain/bare"), &Env::default())
                .is_err()
        );
    }

    #[test]
    fn what_is_borrowed_inside_or_by_the_owner_of_a_linked_worktree_is_fine() {
        let (place, fence, theirs) = with_repositories();
        let inside = place.path("in");
        git(&inside, &["clone", "-q", "--shared", "plain", "shared"]);
        assert!(
            place
                .path("in/shared/.git/objects/info/alternates")
                .is_file()
        );
        assert!(!refused(&fence, "shared"));
        git(
            &place.path("in/plain"),
            &["worktree", "add", "-q", "../beside"],
        );
        assert!(!refused(&fence, "beside"));
        git(
            &place.path("out"),
            &["clone", "-q", "--shared", "theirs", "clone"],
        );
        let linked = place.path("in/linked").display().to_string();
        git(
            &place.path("out/clone"),
            &["worktree", "add", "-q", &linked],
        );
        assert!(!refused(&fence, "linked"));
        assert!(theirs.is_dir());
    }

    #[test]
    fn mcp_07_only_a_revision_is_one() {
        for fine in [
            "HEAD",
            "HEAD~2",
            "HEAD^",
            "main@{upstream}",
            "feature/x",
            "v1.2",
            "1a2b3c4d",
            "größe",
        ] {
            assert!(revision("commit_sha", fine).is_ok(), "{fine}");
        }
        let long = "a".repeat(MOST_OF_A_REVISION + 1);
        for bad in [
            "",
            "--output=/x",
            "-p",
            "HEAD;id",
            "HEAD id",
            "$(id)",
            "a..b",
            "HEAD:f",
            "a\nb",
            "`id`",
            "a\0",
            &long,
        ] {
            assert!(revision("commit_sha", bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn roots_of_a_client_narrow_what_the_operator_named() {
        let place = TestFolders::new();
        let fence = place.fence();
        assert_eq!(
            roots(&fence, &[place.uri("in/a")]).unwrap(),
            [place.path("in/a")]
        );
        assert_eq!(roots(&fence, &[place.uri("")]).unwrap(), [place.path("in")]);
        assert_eq!(
            roots(&fence, &["file:///".to_owned()]).unwrap(),
            [place.path("in")]
        );
        assert!(roots(&fence, &[place.uri("out")]).is_err());
        assert_eq!(
            roots(&fence, &[place.uri("in/%61"), place.uri("in/a")]).unwrap(),
            [place.path("in/a")]
        );
        for nothing in [
            "https://example.com/x",
            "file://relative",
            "file:///no/such/folder",
            "file://%zz",
            "x",
        ] {
            assert!(roots(&fence, &[nothing.to_owned()]).is_err(), "{nothing}");
            let two = [nothing.to_owned(), place.uri("in/a")];
            assert_eq!(
                roots(&fence, &two).unwrap(),
                [place.path("in/a")],
                "{nothing}"
            );
        }
        assert!(roots(&fence, &[]).is_err());
    }

    /// Returns the served folders after a client named its folders.
    fn roots(fence: &Fence, uris: &[String]) -> Result<Vec<PathBuf>> {
        fence.narrowed(uris).map(|f| f.roots)
    }

    #[test]
    fn roots_of_a_client_never_widen_a_repository_that_was_found() {
        let place = TestFolders::new();
        let git = std::process::Command::new("git")
            .args(["init", "-q"])
            .arg(place.path("in/a"))
            .status()
            .unwrap();
        assert!(git.success());
        let env = Env::from_pairs(
            place.path(""),
            [("HOME", place.path("out").into_os_string())],
        );
        let fence = Fence::new(None, &place.path("in/a/b"), &env).unwrap();
        assert_eq!(fence.roots, [place.path("in/a")]);
        for wide in ["file:///".to_owned(), place.uri(""), place.uri("in")] {
            assert_eq!(fence.narrowed(&[wide]).unwrap().roots, [place.path("in/a")]);
        }
        assert!(fence.narrowed(&[place.uri("out")]).is_err());
        assert_eq!(
            fence.narrowed(&[place.uri("in/a/b")]).unwrap().roots,
            [place.path("in/a/b")]
        );
    }

    #[test]
    fn where_nothing_was_named_or_found_a_client_may_not_open_everything() {
        let place = TestFolders::new();
        std::fs::create_dir_all(place.path("home/me/project")).unwrap();
        let env = Env::from_pairs(
            place.path(""),
            [("HOME", place.path("home/me").into_os_string())],
        );
        let fence = Fence::new(None, &place.path("out"), &env).unwrap();
        assert_eq!(
            fence
                .narrowed(&[place.uri("home/me/project")])
                .unwrap()
                .roots,
            [place.path("home/me/project")]
        );
        for wide in [
            "file:///".to_owned(),
            place.uri(""),
            place.uri("home"),
            place.uri("home/me"),
        ] {
            assert!(
                fence.narrowed(std::slice::from_ref(&wide)).is_err(),
                "{wide}"
            );
            let both = [wide, place.uri("in/a")];
            assert_eq!(fence.narrowed(&both).unwrap().roots, [place.path("in/a")]);
        }
    }
}
