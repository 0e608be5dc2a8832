//! The git folders of a repository: where they lie, and which objects they borrow.

use super::{Fence, MOST};
use std::ffi::OsStr;
use std::io::Read as _;
use std::path::{Path, PathBuf};

/// Object folders (the repository's own and its alternates) of one repository, at most.
const MOST_OBJECT_FOLDERS: usize = 64;

/// The canonical git folders of a repository.
#[derive(Debug)]
pub(super) struct Owned {
    /// The git folder of the worktree.
    pub(super) dir: PathBuf,
    /// The git folder that all worktrees share.
    pub(super) common: PathBuf,
}

impl Fence {
    /// Returns the git folders of a repository if its `.git` is a folder inside the fence that uses
    /// no objects from outside, or the file of a linked worktree that the main repository has
    /// registered. Otherwise `None`.
    pub(super) fn owned(&self, top: &Path) -> Option<Owned> {
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
}

/// Returns true if a folder has the entries of a bare repository.
pub(super) fn is_bare(folder: &Path) -> bool {
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

/// Reads a small file; does not follow a link.
fn small_file(path: &Path) -> Option<String> {
    use rustix::fs::{Mode, OFlags};
    let flags =
        OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    let file = std::fs::File::from(rustix::fs::open(path, flags, Mode::empty()).ok()?);
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    let mut text = String::new();
    file.take(MOST as u64 + 64).read_to_string(&mut text).ok()?;
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::super::tests::TestFolders;
    use super::*;
    use crate::env::Env;
    use std::os::unix::fs::symlink;

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
}
