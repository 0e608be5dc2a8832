//! Resolves revisions to commits, and finds the commits that a change is compared with.

use super::graph::{Commit, merge_base, missing_history, walk};
use super::reach::{self, Joined};
use super::{Branch, Change, FileCommit, Repo, State, gix_id, names, own, refs, tree};
use crate::diff::ObjectId;
use crate::error::{Error, Result};
use crate::request::PushRange;
use std::collections::HashSet;

/// The flag before a base on the command line, for hints.
pub(super) const AS_BASE: &str = "--base ";

/// The most merge bases of a change. Histories that cross more often are not reviewed in parts.
const MAX_BASES: usize = 16;

/// Longer than any name that git allows in practice.
const MAX_REV: usize = 1024;

/// Resolves a revision to a commit. See [`Repo::resolve`].
///
/// `flag` is the flag before the revision on the command line, for hints: `--base `.
pub(super) fn resolve(repo: &Repo, rev: &str, flag: &str) -> Result<ObjectId> {
    check(rev)?;
    let local = repo.local();
    let places = names::places(repo, &local, rev)?;
    if names::is_ambiguous(&places) {
        return Err(names::ambiguous(rev, &places, flag));
    }
    // A full name without a reference is not resolved as a short name.
    let is_there = !rev.starts_with("refs/") || !places.is_empty();
    if is_there && let Some(id) = repo.refs.resolve(&local, rev)? {
        return Ok(own(&id));
    }
    if rev == "HEAD" {
        return Err(Error::usage("the repository has no commits")
            .hint_person("review the staged files: claude-reviewer review staged")
            .hint_agent("review the staged files with review_staged"));
    }
    let error = Error::usage(format!("unknown revision {rev}"));
    Err(match local.is_shallow() {
        Ok(true) => {
            error.hint("this is a shallow clone; fetch the full history: git fetch --unshallow")
        }
        _ => error.hint("list branches: git branch --all; list commits: git log --oneline"),
    })
}

/// Rejects text that cannot name one commit, before any other code parses it.
fn check(rev: &str) -> Result<()> {
    let shown: String = rev.chars().take(60).collect();
    let why = match rev {
        "" => "empty",
        _ if rev.len() > MAX_REV => "too long",
        _ if rev.starts_with('-') => "starts with a dash",
        _ if rev.chars().any(char::is_control) => "contains control characters",
        _ if rev.contains("..") || rev.starts_with('^') => {
            return Err(Error::usage(format!(
                "expected one commit, got the range {shown:?}"
            )));
        }
        _ => return Ok(()),
    };
    Err(Error::usage(format!("invalid revision {shown:?}: {why}")))
}

/// Compares a commit with a parent. See [`Repo::commit`].
pub(super) fn commit(repo: &gix::Repository, id: ObjectId, parent: Option<u32>) -> Result<Change> {
    let commit = Commit::read(repo, id)?;
    let count = commit.parents.len();
    let base = match (parent, commit.parents.first()) {
        (Some(0), _) => {
            return Err(Error::usage(
                "invalid parent 0: parents are numbered from 1",
            ));
        }
        (Some(n), _) => match commit.parents.get(n as usize - 1) {
            Some(p) => Some(*p),
            None => {
                let s = if count == 1 { "" } else { "s" };
                return Err(Error::usage(format!(
                    "parent {n} not found: commit {} has {count} parent{s}",
                    id.short()
                )));
            }
        },
        (None, first) => first.copied(),
    };
    let base = match base {
        None => State::Empty,
        Some(parent) => commit.parent(repo, parent)?,
    };
    tree::change(repo, base, commit.state())
}

/// Compares a commit with all its parents. See [`super::Reader::alone`].
pub(super) fn alone(repo: &gix::Repository, id: ObjectId) -> Result<Change> {
    let commit = Commit::read(repo, id)?;
    let [first, others @ ..] = commit.parents.as_slice() else {
        return self::commit(repo, id, None);
    };
    if others.is_empty() {
        return self::commit(repo, id, None);
    }
    let base = commit.parent(repo, *first)?;
    let mut pairs = commit.changes_since(repo, &base)?;
    for parent in others {
        if pairs.is_empty() {
            break;
        }
        let other = commit.changes_since(repo, &commit.parent(repo, *parent)?)?;
        let paths: HashSet<&[u8]> = other.iter().map(super::Pair::path).collect();
        pairs.retain(|p| paths.contains(p.path()));
    }
    Change::of_pairs(repo, pairs, base, commit.state(), None)
}

/// Returns the states around a commit that changes a path. See [`super::Reader::touched`].
pub(super) fn touched(
    repo: &gix::Repository,
    id: ObjectId,
    path: &[u8],
) -> Result<Option<(State, State)>> {
    let commit = Commit::read(repo, id)?;
    let now = tree::find(repo, commit.tree, path)?;
    let mut base = None;
    for parent in &commit.parents {
        let parent = commit.parent(repo, *parent)?;
        let before = match parent.tree() {
            Some(tree) => tree::find(repo, gix_id(&tree), path)?,
            None => None,
        };
        if before == now {
            return Ok(None);
        }
        base.get_or_insert(parent);
    }
    let base = base.unwrap_or(State::Empty);
    Ok((base != State::Empty || now.is_some()).then(|| (base, commit.state())))
}

/// Finds the commit that introduced the version of a path. See [`super::Reader::last_edit`].
pub(super) fn last_edit(
    repo: &gix::Repository,
    from: ObjectId,
    path: &[u8],
    most: &mut u32,
) -> Result<Option<FileCommit>> {
    let mut at = from;
    while *most > 0 {
        *most -= 1;
        let commit = Commit::read(repo, at)?;
        let version = tree::find(repo, commit.tree, path)?;
        let (mut same, mut first) = (None, None);
        for parent in &commit.parents {
            let state = commit.parent(repo, *parent)?;
            let tree = state
                .tree()
                .map(|t| tree::find(repo, gix_id(&t), path))
                .transpose()?
                .flatten();
            if tree == version {
                same = Some(own(parent));
                break;
            }
            first.get_or_insert(state);
        }
        match same {
            Some(parent) => at = parent,
            None if version.is_none() => return Ok(None),
            None => {
                let before = first.unwrap_or(State::Empty);
                return Ok(Some(FileCommit {
                    commit: at,
                    seconds: commit.seconds,
                    before,
                    after: commit.state(),
                }));
            }
        }
    }
    Ok(None)
}

/// As [`walk`], for a review of each of these commits.
///
/// # Errors
/// Incomplete: a shallow clone omits some of these commits.
pub(super) fn whole_walk(
    repo: &gix::Repository,
    tip: ObjectId,
    hidden: &[ObjectId],
) -> Result<Vec<ObjectId>> {
    let commits = walk(repo, tip, hidden)?;
    match reach::is_cut_off(repo, &commits)? {
        true => Err(missing_history(
            repo,
            "commits under review are not in this shallow clone",
        )),
        false => Ok(commits),
    }
}

/// Returns the merge bases of a head and its base, best first; none if they have no common commit.
///
/// # Errors
/// Incomplete: a shallow clone omits commits that decide, or there are more than [`MAX_BASES`].
fn bases_of(repo: &Repo, head: ObjectId, tip: ObjectId, name: &str) -> Result<Vec<ObjectId>> {
    let local = repo.local();
    match reach::joined(repo, head, tip)? {
        Joined::At(bases) if bases.len() > MAX_BASES => Err(Error::incomplete(format!(
            "the head and {name} have {} merge bases, more than {MAX_BASES}",
            bases.len()
        ))
        .hint("merge the base branch into the head again")),
        Joined::At(bases) => Ok(bases),
        Joined::Never => Ok(Vec::new()),
        Joined::Perhaps => Err(match merge_base(&local, head, &[tip])? {
            None => missing_history(
                &local,
                &format!("this shallow clone has no merge base with {name}"),
            ),
            Some(_) => missing_history(
                &local,
                &format!("this shallow clone lacks commits between the head and {name}"),
            ),
        }),
    }
}

/// Returns the net changes since these merge bases, without the paths that are identical in the tip
/// and the head.
fn since_further(
    repo: &gix::Repository,
    bases: &[ObjectId],
    tip: ObjectId,
    head: ObjectId,
) -> Result<Vec<Change>> {
    let mut changes = Vec::new();
    if bases.is_empty() {
        return Ok(changes);
    }
    let differing = compare_commits(repo, tip, head)?;
    let paths: HashSet<&[u8]> = differing.iter().map(super::Pair::path).collect();
    for base in bases {
        let mut pairs = compare_commits(repo, *base, head)?;
        pairs.retain(|p| paths.contains(p.path()));
        let (base, head) = (
            tree::state(repo, gix_id(base))?,
            tree::state(repo, gix_id(&head))?,
        );
        changes.push(Change::of_pairs(repo, pairs, base, head, None)?);
    }
    Ok(changes)
}

/// Returns the paths that differ between two commits.
fn compare_commits(
    repo: &gix::Repository,
    from: ObjectId,
    to: ObjectId,
) -> Result<Vec<super::Pair>> {
    let (from, to) = (
        tree::of_commit(repo, gix_id(&from))?,
        tree::of_commit(repo, gix_id(&to))?,
    );
    let mut pairs = Vec::new();
    tree::compare(repo, Some(from), Some(to), &mut Vec::new(), &mut pairs)?;
    Ok(pairs)
}

/// See [`Repo::net`].
pub(super) fn net(repo: &Repo, from: ObjectId, to: ObjectId) -> Result<Vec<Change>> {
    let bases = bases_of(repo, to, from, &from.short())?;
    let (first, further) = bases.split_first().unwrap_or((&from, &[]));
    let mut changes = vec![repo.between(repo.state_of(*first)?, repo.state_of(to)?)?];
    changes.extend(since_further(&repo.local(), further, from, to)?);
    Ok(changes)
}

/// A base that was chosen by default.
struct Start {
    /// Full name of the reference.
    name: String,
    id: ObjectId,
    /// Name to display, such as `upstream origin/main`.
    label: String,
}

/// Returns the default base of a branch: its upstream, or the default branch.
///
/// A branch whose upstream is its own copy on the remote is compared with the default branch:
/// pushed commits still need a review. `branch` is a full name, or `None` if the head is not a
/// branch.
fn default_base(
    repo: &Repo,
    local: &gix::Repository,
    branch: Option<&str>,
) -> Result<Option<Start>> {
    let mut upstream = None;
    let mut remote = None;
    if let Some(branch) = branch
        && let Ok(full) = gix::refs::FullName::try_from(branch)
    {
        let direction = gix::remote::Direction::Fetch;
        let name = local.branch_remote_tracking_ref_name(full.as_ref(), direction);
        upstream = name
            .and_then(std::result::Result::ok)
            .map(|n| n.as_bstr().to_string());
        remote = local
            .branch_remote_name(full.shorten(), direction)
            .map(|n| n.as_bstr().to_string());
    }
    let upstream = match upstream {
        Some(name) => repo.refs.find(local, &name)?.map(|id| Start {
            label: format!("upstream {}", short(&name)),
            id: own(&id),
            name,
        }),
        None => None,
    };
    let trunk = default_branch(repo, local, remote)?;
    Ok(match (upstream, trunk) {
        (Some(up), Some(trunk))
            if branch.is_some_and(|b| last_of_remote(&up.name) == last_of_head(b))
                && up.name != trunk.name =>
        {
            Some(trunk)
        }
        (Some(up), _) => Some(up),
        (None, trunk) => trunk,
    })
}

/// Finds the default branch.
fn default_branch(
    repo: &Repo,
    local: &gix::Repository,
    first: Option<String>,
) -> Result<Option<Start>> {
    let mut remotes: Vec<String> = first
        .into_iter()
        .chain(["origin".to_owned()])
        .chain(repo.remotes())
        .collect();
    remotes.retain(|r| r != ".");
    let mut names = Vec::new();
    for r in &remotes {
        names.extend(
            repo.refs
                .symbolic(local, &format!("refs/remotes/{r}/HEAD"))?,
        );
    }
    names.extend(
        remotes
            .iter()
            .flat_map(|r| ["main", "master"].map(|b| format!("refs/remotes/{r}/{b}"))),
    );
    names.extend(["main", "master"].map(|b| format!("refs/heads/{b}")));
    for name in names {
        if let Some(id) = repo.refs.find(local, &name)? {
            return Ok(Some(Start {
                label: format!("default branch {}", short(&name)),
                id: own(&id),
                name,
            }));
        }
    }
    Ok(None)
}

/// Returns the short name of a reference, to display.
fn short(name: &str) -> &str {
    name.strip_prefix("refs/heads/")
        .or_else(|| name.strip_prefix("refs/remotes/"))
        .unwrap_or(name)
}

fn last_of_head(name: &str) -> &str {
    name.strip_prefix("refs/heads/").unwrap_or(name)
}

/// Returns the branch part of `refs/remotes/REMOTE/BRANCH`, or of a local branch.
fn last_of_remote(name: &str) -> &str {
    match name.strip_prefix("refs/remotes/") {
        Some(rest) => rest.split_once('/').map_or(rest, |(_, branch)| branch),
        None => last_of_head(name),
    }
}

/// See [`Repo::changes`].
pub(super) fn changes(repo: &Repo, base: Option<&str>) -> Result<(Change, String)> {
    if let Some(base) = base {
        if base == repo.empty_tree().to_string() {
            return Ok((
                repo.against_worktree(State::Empty)?,
                "the beginning".to_owned(),
            ));
        }
        let state = repo.state_of(resolve(repo, base, AS_BASE)?)?;
        return Ok((repo.against_worktree(state)?, base.to_owned()));
    }
    let Some(head) = repo.head()? else {
        return Ok((
            repo.against_worktree(State::Empty)?,
            "the beginning".to_owned(),
        ));
    };
    let local = repo.local();
    let branch = repo.refs.branch(&local)?;
    let base = default_base(repo, &local, branch.as_deref())?.filter(|d| {
        branch
            .as_deref()
            .is_none_or(|b| last_of_remote(&d.name) != last_of_head(b))
    });
    let (from, label) = match base {
        None => (head, "HEAD".to_owned()),
        Some(base) => match merge_base(&local, head, &[base.id])? {
            Some(common) => (common, format!("the merge base with {}", base.label)),
            None if local.is_shallow().unwrap_or(false) => {
                let what = format!("this shallow clone has no merge base with {}", base.label);
                return Err(missing_history(&local, &what));
            }
            None => (
                head,
                format!("HEAD, which has no commit in common with {}", base.label),
            ),
        },
    };
    let change = repo.against_worktree(repo.state_of(from)?)?;
    if !change.entries.is_empty() {
        return Ok((change, label));
    }
    Ok((
        repo.commit(head, None)?,
        "the parent of HEAD, because there is no other change".to_owned(),
    ))
}

/// Returns the full name of the local branch that a revision names, or `None` for any other
/// revision.
fn branch_named(repo: &Repo, local: &gix::Repository, rev: &str) -> Result<Option<String>> {
    if matches!(rev, "HEAD" | "@") {
        return repo.refs.branch(local);
    }
    // In the order in which git resolves a short name.
    let names = [
        rev.to_owned(),
        format!("refs/{rev}"),
        format!("refs/tags/{rev}"),
        format!("refs/heads/{rev}"),
    ];
    for name in names.into_iter().filter(|n| n.starts_with("refs/")) {
        if repo.refs.find(local, &name)?.is_some() {
            return Ok(Some(name).filter(|n| n.starts_with("refs/heads/")));
        }
    }
    Ok(None)
}

/// See [`Repo::branch`].
pub(super) fn branch(repo: &Repo, head: Option<&str>, base: Option<&str>) -> Result<Branch> {
    let rev = head.unwrap_or("HEAD");
    let head = resolve(repo, rev, "")?;
    let local = repo.local();
    let (base, name) = match base {
        Some(name) => (resolve(repo, name, AS_BASE)?, name.to_owned()),
        None => {
            let branch = branch_named(repo, &local, rev)?;
            let found = default_base(repo, &local, branch.as_deref())?.ok_or_else(|| {
                Error::usage(
                    "no base found: the branch has no upstream, and there is no default branch",
                )
                .hint_person("name a base: --base REV")
                .hint_agent("name a base in base_branch, or in base of source")
            })?;
            (found.id, found.label)
        }
    };
    let bases = bases_of(repo, head, base, &name)?;
    let [common, further @ ..] = bases.as_slice() else {
        return Err(Error::usage(format!(
            "the head and {name} have no commit in common"
        )));
    };
    Ok(Branch {
        change: repo.between(repo.state_of(*common)?, repo.state_of(head)?)?,
        further: since_further(&local, further, base, head)?,
        merge_base: *common,
        tip: Some(base),
        head,
        base_name: name,
        commits: whole_walk(&local, head, &[base])?,
    })
}

/// See [`Repo::push`].
pub(super) fn push(repo: &Repo, range: &PushRange) -> Result<Option<Branch>> {
    let local = repo.local();
    let (tip, remote) = (
        pushed_id(repo, &local, &range.local)?,
        pushed_id(repo, &local, &range.remote)?,
    );
    if tip.is_null() {
        return Ok(None);
    }
    let head = own(&refs::peel(&local, gix_id(&tip), &range.name)?);
    // The state of the remote, if its commit exists locally. A commit that was never fetched is
    // unknown.
    let known = match remote.is_null() || !local.has_object(gix_id(&remote)) {
        true => None,
        false => refs::peel(&local, gix_id(&remote), &range.name)
            .ok()
            .map(|id| own(&id)),
    };
    if let Some(known) = known
        && let [common, further @ ..] =
            bases_of(repo, head, known, &format!("{} on the remote", range.name))?.as_slice()
    {
        return Ok(Some(Branch {
            change: repo.between(repo.state_of(*common)?, repo.state_of(head)?)?,
            further: since_further(&local, further, known, head)?,
            merge_base: *common,
            tip: Some(known),
            head,
            base_name: format!("{} on the remote", range.name),
            commits: whole_walk(&local, head, &[known])?,
        }));
    }
    let name = range.to.as_ref().map(|to| remote_named(&local, to));
    let prefix = match &name {
        None => Some("refs/remotes/".to_owned()),
        Some(name) => name.as_ref().map(|name| format!("refs/remotes/{name}/")),
    };
    let tips = match prefix {
        Some(prefix) => repo
            .refs
            .tips(&local, &prefix)?
            .iter()
            .map(|id| own(id))
            .collect(),
        None => Vec::new(),
    };
    let common = if tips.is_empty() {
        None
    } else {
        merge_base(&local, head, &tips)?
    };
    let base = match common {
        Some(id) => repo.state_of(id)?,
        None => State::Empty,
    };
    Ok(Some(Branch {
        change: repo.between(base, repo.state_of(head)?)?,
        further: Vec::new(),
        merge_base: common.unwrap_or(own(&local.object_hash().null())),
        tip: None,
        head,
        // The remote's name, never its address, which may contain a password.
        base_name: match (name.flatten(), common) {
            (_, None) => "nothing, because no remote branch contains these commits".to_owned(),
            (Some(name), _) => format!("the known branches of {name}"),
            (None, _) => "the known branches of all remotes".to_owned(),
        },
        commits: whole_walk(&local, head, &tips)?,
    }))
}

/// Returns the commit of one end of a push: an ID from a hook, or a name from pre-commit's
/// variables.
///
/// Any number of zeros means none: the caller may not know the hash kind of the repository.
fn pushed_id(repo: &Repo, local: &gix::Repository, text: &str) -> Result<ObjectId> {
    match ObjectId::from_hex(text) {
        Some(id) if id.is_null() => Ok(own(&local.object_hash().null())),
        Some(id) if gix_id(&id).kind() == local.object_hash() => Ok(id),
        _ => resolve(repo, text, ""),
    }
}

/// Finds a remote by its name or its address.
fn remote_named(repo: &gix::Repository, to: &str) -> Option<String> {
    let config = repo.config_snapshot();
    let names = repo.remote_names();
    let named = names.iter().find(|n| **n == to);
    let found = named.or_else(|| {
        names.iter().find(|n| {
            ["url", "pushurl"].iter().any(|key| {
                config
                    .string(format!("remote.{n}.{key}").as_str())
                    .is_some_and(|url| url == to)
            })
        })
    });
    found.map(|n| n.to_string())
}
