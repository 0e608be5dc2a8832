//! Bounds the work of a search for the blobs of a history.

use crate::git::packs::ObjectSet;
use std::sync::atomic::{AtomicBool, AtomicU64};

/// Visits of new entries at a path, at most, in addition to [`VISITS_EACH`] for each object. A few
/// small trees that contain each other many times have more paths than can be visited.
pub(in crate::git) const VISITS_MAX: u64 = 10_000_000;
/// Visits of new entries for each object of the repository, at most.
const VISITS_EACH: u64 = 32;
/// Compared entries that count as one visit. Each commit compares all entries of the folders that
/// it changes, so a long history of large folders has many more of them than new ones: git's own
/// repository has about a hundred for each object. Comparing is fast, and adds nothing to memory.
pub(super) const COMPARED_EACH: u64 = 128;
/// Visits after which a thread adds its count to the shared one, and checks if the search should end.
pub(in crate::git) const VISITS_STEP: u64 = 1024;
/// Compared entries after which it does so.
pub(super) const COMPARED_STEP: u64 = VISITS_STEP * 8;

/// The visits that all threads of a search have left.
pub(super) struct VisitBudget {
    /// Compared entries; a visit counts as [`COMPARED_EACH`] of them.
    pub(super) used: AtomicU64,
    /// Visits, at most.
    pub(super) max: u64,
    /// True if it was exceeded, and a thread has reported it.
    pub(super) is_exceeded: AtomicBool,
}

impl VisitBudget {
    pub(super) fn new(set: &ObjectSet) -> Self {
        Self {
            used: AtomicU64::new(0),
            max: VISITS_MAX + VISITS_EACH * set.len() as u64,
            is_exceeded: AtomicBool::new(false),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::*;
    use super::*;
    use crate::env::Env;
    use crate::git::Repo;
    use std::fmt::Write as _;
    use std::io::Write as _;
    use std::path::Path;
    use std::process::{Command, Stdio};

    /// Makes a repository without files in its worktree from a stream of `git fast-import`.
    fn repository(folder: &Path, stream: &str) -> Repo {
        let git = |args: &[&str]| {
            let mut command = Command::new("git");
            command.arg("-C").arg(folder).args(args);
            command.stdin(Stdio::piped()).stdout(Stdio::null());
            command.spawn().unwrap()
        };
        assert!(git(&["init", "-q", "-b", "main"]).wait().unwrap().success());
        let mut importer = git(&["fast-import", "--quiet", "--date-format=now"]);
        let mut input = importer.stdin.take().unwrap();
        input.write_all(stream.as_bytes()).unwrap();
        drop(input);
        assert!(importer.wait().unwrap().success());
        Repo::open(folder, &Env::default()).unwrap()
    }

    /// Returns the head of a commit in a stream.
    fn commit() -> &'static str {
        "commit refs/heads/main\ncommitter A <a@b.c> now\ndata 0\n"
    }

    /// Finds the blobs of a whole history with a budget of this many visits.
    fn lineage(repo: &Repo, max: u64) -> Lineage {
        let local = repo.local();
        let set = ObjectSet::open(&local).unwrap();
        let head = local.head_id().unwrap().detach();
        let mut lost = Vec::new();
        let commits =
            Commits::reachable(&local, &set, &[head], &HashSet::new(), &|| false, &mut lost);
        let search = HistorySearch {
            priority: &|_| PathPriority::Read(0),
            is_over: &|| false,
            threads: 1,
        };
        let mut budget = VisitBudget::new(&set);
        budget.max = max;
        LineageWalk::new(local, &set, search, &budget).run(&commits, &AtomicUsize::new(0))
    }

    #[test]
    fn a_long_history_of_a_large_folder_is_searched_completely() {
        let folder = tempfile::tempdir().unwrap();
        let mut stream = commit().to_owned();
        for file in 0..500 {
            let _ = write!(stream, "M 100644 inline {file:04}\ndata 4\n{file:04}\n");
        }
        for version in 0..100 {
            stream += commit();
            let _ = write!(stream, "M 100644 inline 0007\ndata 5\nv{version:04}\n");
        }
        let repo = repository(folder.path(), &stream);
        // 50,600 entries are compared, and 601 of them are new, at 500 paths.
        let found = lineage(&repo, 8_000);
        assert_eq!(found.lost, []);
        let blobs = found.origins.iter().filter(|o| o.is_some()).count();
        assert_eq!(blobs, 600);
        // The budget counts the paths.
        let lost = lineage(&repo, 2_000).lost;
        assert_eq!(lost.len(), 1, "{lost:?}");
    }

    #[test]
    fn git_12_trees_with_more_paths_than_can_be_visited_end_the_search() {
        let folder = tempfile::tempdir().unwrap();
        let mut stream = format!("{}M 100644 inline 0/0\ndata 1\nx\n", commit());
        // Each level has the level below ten times: 10^8 paths of one blob in nine trees.
        for _ in 0..8 {
            stream += commit();
            stream += "C \"0\" \"below\"\nD 0\n";
            for copy in 0..10 {
                let _ = writeln!(stream, "C \"below\" \"0/{copy}\"");
            }
            stream += "D below\n";
        }
        let repo = repository(folder.path(), &stream);
        let found = lineage(&repo, 100_000);
        assert_eq!(found.lost.len(), 1, "{:?}", found.lost);
        let why = &found.lost[0].why;
        assert!(why.contains("more than 100000 steps"), "{why}");
        assert!(found.paths.len() < 20_000, "{}", found.paths.len());
    }
}
