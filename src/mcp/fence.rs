//! The paths that a client may name: every path in an argument must lie below a served folder,
//! after links, `..` and `.git` files are resolved.
//!
//! Paths are resolved before they are used. This module reads no contents, except the two small
//! files that identify a linked worktree. An error never reveals whether a path outside the served
//! folders exists.
//!
//! The rows MCP-06, MCP-07 and MCP-09 of the behaviour contract need this module. The SDK only
//! transports the client's roots: it resolves and checks no path.

mod argument;
mod storage;

use crate::ai::context::MAX_DOCUMENT;
use crate::ai::redact::is_sensitive;
use crate::diff::RepoPath;
use crate::env::Env;
use crate::error::{Error, Result};
use crate::git::Repo;
pub(super) use argument::revision;
use argument::{folder_of, plain};
use std::path::{Component, Path, PathBuf};
use storage::is_bare;

/// Bytes of a path, at most.
const MOST: usize = 4096;

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

fn shown(text: &str) -> String {
    super::args::shown(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    /// A temporary folder with the folders `in`, which is served, and `out`.
    pub(super) struct TestFolders {
        dir: tempfile::TempDir,
    }

    impl TestFolders {
        pub(super) fn new() -> Self {
            let dir = tempfile::tempdir().unwrap();
            for folder in ["in/a/b", "out", "in/.git"] {
                std::fs::create_dir_all(dir.path().join(folder)).unwrap();
            }
            std::fs::write(dir.path().join("out/secret.md"), "x").unwrap();
            std::fs::write(dir.path().join("in/a/doc.md"), "x").unwrap();
            Self { dir }
        }

        pub(super) fn path(&self, below: &str) -> PathBuf {
            self.dir.path().canonicalize().unwrap().join(below)
        }

        fn uri(&self, below: &str) -> String {
            format!("file://{}", self.path(below).display())
        }

        pub(super) fn fence(&self) -> Fence {
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
