//! The limits of a clone: truncated history, and objects that were omitted on purpose.

use super::{Branch, FileMode, Repo, State, gix_id, graph, names, own, tree};
use crate::diff::{ObjectId, RepoPath};
use crate::error::{Error, Result};
use std::collections::HashSet;

/// Whether two commits have a merge base that more history cannot change.
pub(super) enum Joined {
    /// The best common ancestors, at least one. Several if histories cross.
    At(Vec<ObjectId>),
    Never,
    /// The history that decides is truncated.
    Perhaps,
}

/// Finds the merge bases of two commits, and whether the history between is truncated.
pub(super) fn joined(repo: &Repo, one: ObjectId, other: ObjectId) -> Result<Joined> {
    let local = repo.local();
    let bases = graph::merge_bases(&local, one, &[other])?;
    let is_cut = cut_off(&local)?.is_some();
    if bases.is_empty() {
        return Ok(if is_cut {
            Joined::Perhaps
        } else {
            Joined::Never
        });
    }
    // The merge base is computed from all local objects, but the walk stops at the clone's shallow
    // commits. The two agree only if no shallow commit is between.
    for (tip, hidden) in [(one, other), (other, one)] {
        if is_cut && is_cut_off(&local, &graph::walk(&local, tip, &[hidden])?)? {
            return Ok(Joined::Perhaps);
        }
    }
    Ok(Joined::At(bases))
}

/// Returns true if a shallow clone omits parents of one of these commits.
///
/// # Errors
/// Incomplete: the list of shallow commits cannot be read.
pub(super) fn is_cut_off(local: &gix::Repository, commits: &[ObjectId]) -> Result<bool> {
    let cut = cut_off(local)?.unwrap_or_default();
    Ok(!cut.is_empty() && commits.iter().any(|id| cut.contains(&gix_id(id))))
}

/// Returns the commits whose parents a shallow clone omits.
pub(super) fn cut_off(local: &gix::Repository) -> Result<Option<Vec<gix::ObjectId>>> {
    let cut = local
        .shallow_commits()
        .map_err(|e| Error::incomplete("cannot read the list of shallow commits").caused_by(&e))?;
    Ok(cut.map(|cut| cut.iter().copied().collect()))
}

/// Returns true for a partial clone.
pub(super) fn is_partial(local: &gix::Repository) -> bool {
    let config = local.config_snapshot();
    let mut remotes = config
        .plumbing()
        .sections_by_name("remote")
        .into_iter()
        .flatten();
    config.string("extensions.partialClone").is_some()
        || remotes.any(|s| s.value("promisor").is_some_and(|v| v != "false"))
}

impl Repo {
    /// Returns true if the history between two commits and their merge base is complete.
    ///
    /// # Errors
    /// Incomplete: the history cannot be read.
    pub fn is_connected(&self, one: ObjectId, other: ObjectId) -> Result<bool> {
        Ok(!matches!(joined(self, one, other)?, Joined::Perhaps))
    }

    /// Returns true if the history is truncated somewhere.
    pub fn is_shallow(&self) -> bool {
        self.local().is_shallow().unwrap_or(false)
    }

    /// Returns true if objects were omitted on purpose, to be fetched on demand.
    pub fn is_partial(&self) -> bool {
        is_partial(&self.local())
    }

    /// Returns true if the clone has an object.
    pub fn has(&self, id: ObjectId) -> bool {
        let local = self.local();
        gix_id(&id).kind() == local.object_hash() && local.has_object(gix_id(&id))
    }

    /// Finds the only local commit whose ID begins with these digits. Returns `None` if there is
    /// none, or more than one.
    ///
    /// # Errors
    /// Incomplete: the objects cannot be listed.
    pub fn abbreviated(&self, digits: &str) -> Result<Option<ObjectId>> {
        let found = names::commits(&self.local(), digits)?;
        Ok(found.first().map(|id| own(id)).filter(|_| found.len() == 1))
    }

    /// Finds the only commit whose ID begins with these digits in the history of `tip`, including
    /// `tip`.
    ///
    /// # Errors
    /// Incomplete: the history cannot be read.
    pub fn abbreviated_in(&self, digits: &str, tip: ObjectId) -> Result<Option<ObjectId>> {
        let mut found = graph::walk(&self.local(), tip, &[])?;
        found.retain(|id| id.to_string().starts_with(digits));
        Ok(found.first().copied().filter(|_| found.len() == 1))
    }

    /// Compares a head with the empty state: everything in it is new.
    ///
    /// # Errors
    /// Incomplete: the history is truncated before its first commit.
    pub fn from_the_beginning(&self, head: ObjectId) -> Result<Branch> {
        let local = self.local();
        let commits = graph::walk(&local, head, &[])?;
        if is_cut_off(&local, &commits)? {
            return Err(graph::missing_history(
                &local,
                "this shallow clone lacks the first commit of the history",
            ));
        }
        Ok(Branch {
            change: self.between(State::Empty, self.state_of(head)?)?,
            further: Vec::new(),
            merge_base: own(&local.object_hash().null()),
            tip: None,
            head,
            base_name: "nothing".to_owned(),
            commits,
        })
    }

    /// Returns the missing contents that a review of `head` would read: of the net change, of each
    /// commit, and of the files at the top of the trees of head, merge base and base, where
    /// policies and conventions are. `base` is the base to compare with; with `None`, everything is
    /// new.
    ///
    /// # Errors
    /// Incomplete: commits or trees are missing too.
    pub fn lacking(&self, head: ObjectId, base: Option<ObjectId>) -> Result<Vec<ObjectId>> {
        let local = self.local();
        let from = match base {
            Some(base) => graph::merge_base(&local, head, &[base])?,
            None => None,
        };
        let from_tree = from.map(|id| tree_of(&local, id)).transpose()?;
        let mut pairs = Vec::new();
        tree::compare(
            &local,
            from_tree,
            Some(tree_of(&local, head)?),
            &mut Vec::new(),
            &mut pairs,
        )?;
        let hidden: Vec<ObjectId> = base.into_iter().collect();
        for id in graph::walk(&local, head, &hidden)? {
            let parents = graph::parents(&local, id)?;
            let first = parents.first().copied().filter(|p| local.has_object(*p));
            let first = first.map(|p| tree::of_commit(&local, p)).transpose()?;
            tree::compare(
                &local,
                first,
                Some(tree_of(&local, id)?),
                &mut Vec::new(),
                &mut pairs,
            )?;
        }
        let halves = pairs.iter().flat_map(|p| [&p.old, &p.new]).flatten();
        let mut ids: Vec<gix::ObjectId> = halves
            .filter(|h| h.mode != FileMode::Submodule)
            .map(|h| h.id)
            .collect();
        // The policy on the base's tip, which may be newer than the merge base, may be stricter.
        let tip = base.map(|id| tree_of(&local, id)).transpose()?;
        for top in from_tree
            .into_iter()
            .chain([tree_of(&local, head)?])
            .chain(tip)
        {
            let object = local
                .find_object(top)
                .map_err(|e| super::unreadable(&local, &top, Some(&e)))?;
            let entries = gix::objs::TreeRefIter::from_bytes(&object.data, local.object_hash());
            ids.extend(
                entries
                    .flatten()
                    .filter(|e| e.mode.is_blob())
                    .map(|e| e.oid.to_owned()),
            );
        }
        let mut seen = HashSet::new();
        ids.retain(|id| seen.insert(*id) && !local.has_object(*id));
        Ok(ids.iter().map(|id| own(id)).collect())
    }

    /// Returns the missing files directly in these folders of a commit.
    ///
    /// # Errors
    /// Incomplete: commits or trees are missing.
    pub fn lacking_in(&self, commit: ObjectId, folders: &[RepoPath]) -> Result<Vec<ObjectId>> {
        let local = self.local();
        let top = tree::of_commit(&local, gix_id(&commit))?;
        let mut ids = Vec::new();
        for folder in folders {
            let Some((None, id)) = tree::find(&local, top, folder.as_bytes())? else {
                continue;
            };
            let mut buf = Vec::new();
            tree::load(&local, &id, gix::objs::Kind::Tree, &mut buf)?;
            let entries = gix::objs::TreeRefIter::from_bytes(&buf, local.object_hash());
            let blobs = entries
                .flatten()
                .filter(|e| e.mode.is_blob())
                .map(|e| e.oid.to_owned());
            ids.extend(blobs.filter(|id| !local.has_object(*id)).map(|id| own(&id)));
        }
        Ok(ids)
    }
}

/// Returns the tree of a commit.
fn tree_of(local: &gix::Repository, commit: ObjectId) -> Result<gix::ObjectId> {
    tree::of_commit(local, gix_id(&commit))
}
