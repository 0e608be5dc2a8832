//! Reads the graph of commits: a commit with its parents, walks over the history, and merge bases.

use super::{State, gix_id, own, tree};
use crate::diff::ObjectId;
use crate::error::{Error, Result};
use gix::traverse::commit::simple::CommitTimeOrder;

/// Returns the IDs of a commit's parents, local or not.
pub(super) fn parents(repo: &gix::Repository, id: ObjectId) -> Result<Vec<gix::ObjectId>> {
    Ok(Commit::read(repo, id)?.parents)
}

/// The fields of a commit that are needed to compare it.
pub(super) struct Commit {
    id: ObjectId,
    pub(super) tree: gix::ObjectId,
    pub(super) parents: Vec<gix::ObjectId>,
    /// Time of the committer, in seconds since 1970.
    pub(super) seconds: i64,
}

impl Commit {
    /// Reads a commit.
    ///
    /// # Errors
    /// Incomplete: it is missing or malformed.
    pub(super) fn read(repo: &gix::Repository, id: ObjectId) -> Result<Self> {
        let commit = gix_id(&id);
        let mut buf = Vec::new();
        tree::load(repo, &commit, gix::objs::Kind::Commit, &mut buf)?;
        let iter = || gix::objs::CommitRefIter::from_bytes(&buf, repo.object_hash());
        let tree = iter()
            .tree_id()
            .map_err(|e| super::unreadable(repo, &commit, Some(&e)))?;
        // A commit with an invalid date is accepted.
        let seconds = iter()
            .committer()
            .ok()
            .and_then(|c| c.time().ok())
            .map_or(0, |time| time.seconds);
        Ok(Self {
            id,
            tree,
            parents: iter().parent_ids().collect(),
            seconds,
        })
    }

    /// Returns the state of the files in the commit.
    pub(super) fn state(&self) -> State {
        State::Commit {
            commit: self.id,
            tree: own(&self.tree),
        }
    }

    /// Returns the state of a parent. Fails if a shallow clone omits it: the commit is not a root
    /// commit.
    pub(super) fn parent(&self, repo: &gix::Repository, parent: gix::ObjectId) -> Result<State> {
        let shallow = repo.shallow_commits().ok().flatten();
        if shallow.is_some_and(|s| s.contains(&gix_id(&self.id))) && !repo.has_object(parent) {
            return Err(Error::incomplete(format!(
                "the parent of commit {} is not in this shallow clone",
                self.id.short()
            ))
            .hint("fetch one more commit: git fetch --deepen=1")
            .hint(
                "in CI, make the checkout fetch the full history (fetch-depth: 0, GIT_DEPTH: 0)",
            ));
        }
        tree::state(repo, parent)
    }

    /// Returns the paths that differ between a parent and the commit.
    pub(super) fn changes_since(
        &self,
        repo: &gix::Repository,
        parent: &State,
    ) -> Result<Vec<super::Pair>> {
        let mut pairs = Vec::new();
        let parent = parent.tree().map(|t| gix_id(&t));
        tree::compare(repo, parent, Some(self.tree), &mut Vec::new(), &mut pairs)?;
        Ok(pairs)
    }
}

/// Returns the commits reachable from `tip` and not from `hidden`, oldest first.
pub(super) fn walk(
    repo: &gix::Repository,
    tip: ObjectId,
    hidden: &[ObjectId],
) -> Result<Vec<ObjectId>> {
    let walk = repo
        .rev_walk([gix_id(&tip)])
        .with_hidden(hidden.iter().map(gix_id))
        .sorting(gix::revision::walk::Sorting::ByCommitTime(
            CommitTimeOrder::NewestFirst,
        ))
        .all()
        .map_err(|e| unreadable_history(repo, &e))?;
    let mut commits = Vec::new();
    for info in walk {
        commits.push(own(&info.map_err(|e| unreadable_history(repo, &e))?.id));
    }
    commits.reverse();
    Ok(commits)
}

/// Returns the error for a history that cannot be read.
fn unreadable_history(repo: &gix::Repository, e: &gix::Error) -> Error {
    missing_history(repo, "cannot read the history").caused_by(e)
}

/// Returns a commit and its ancestors, newest first, at most `most`; fewer if the history cannot be
/// read.
pub(super) fn newest(repo: &gix::Repository, tip: ObjectId, most: usize) -> Vec<ObjectId> {
    let walk = repo
        .rev_walk([gix_id(&tip)])
        .sorting(gix::revision::walk::Sorting::ByCommitTime(
            CommitTimeOrder::NewestFirst,
        ))
        .all();
    let commits = walk
        .into_iter()
        .flatten()
        .map_while(std::result::Result::ok);
    commits.take(most).map(|info| own(&info.id)).collect()
}

/// Returns the best common ancestor. See [`super::Repo::merge_base`].
pub(super) fn merge_base(
    repo: &gix::Repository,
    one: ObjectId,
    others: &[ObjectId],
) -> Result<Option<ObjectId>> {
    Ok(merge_bases(repo, one, others)?.first().copied())
}

/// Returns the best common ancestors: several if histories cross.
pub(super) fn merge_bases(
    repo: &gix::Repository,
    one: ObjectId,
    others: &[ObjectId],
) -> Result<Vec<ObjectId>> {
    if others.contains(&one) {
        return Ok(vec![one]);
    }
    let others: Vec<_> = others.iter().map(gix_id).collect();
    match repo.merge_bases_many(gix_id(&one), &others) {
        Ok(bases) => Ok(bases.iter().map(|id| own(id)).collect()),
        Err(e) => Err(missing_history(repo, "cannot find the merge base").caused_by(&e)),
    }
}

/// Returns the error for a history that lacks commits, with how to fetch them.
pub(super) fn missing_history(repo: &gix::Repository, what: &str) -> Error {
    let error = Error::incomplete(what);
    match repo.is_shallow() {
        Ok(true) => error
            .hint("this is a shallow clone; fetch the full history: git fetch --unshallow")
            .hint("in CI, make the checkout fetch the full history (fetch-depth: 0, GIT_DEPTH: 0)"),
        _ => error.hint("git fsck --full"),
    }
}
