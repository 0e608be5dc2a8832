//! References. Read in process if they are files. The `git` program is used only for repositories
//! that store them in a `reftable`.

use super::guard;
use super::program::Program;
use crate::env::Env;
use crate::error::{Error, Result};
use gix::objs::Kind;
use std::collections::HashSet;
use std::path::Path;

/// The method of reading the references of a repository.
#[derive(Debug)]
pub(super) enum Refs {
    Files,
    Program(Program),
}

/// The first git version that reads reftables.
const REFTABLE_SINCE: (u32, u32) = (2, 45);

/// Bytes of a tag, at most.
const TAG_MAX: u64 = 16 << 20;

impl Refs {
    pub(super) fn of(repo: &gix::Repository, env: &Env, worktree: Option<&Path>) -> Result<Self> {
        match repo.config_snapshot().string("extensions.refStorage") {
            None => Ok(Self::Files),
            Some(kind) if kind == "files" => Ok(Self::Files),
            Some(kind) if kind == "reftable" => {
                let program = Program::find(repo, env, worktree)?;
                program.require(REFTABLE_SINCE, "reftable references")?;
                Ok(Self::Program(program))
            }
            Some(kind) => Err(Error::usage(format!(
                "unsupported reference storage {kind}"
            ))),
        }
    }

    /// Returns the commit of HEAD, or `None` before the first commit.
    pub(super) fn head(&self, repo: &gix::Repository) -> Result<Option<gix::ObjectId>> {
        match self {
            Self::Files => {
                let head = repo.head().map_err(|e| unreadable_head(&e))?;
                if head.is_unborn() {
                    return Ok(None);
                }
                Ok(head
                    .try_into_peeled_id()
                    .map_err(|e| unreadable_head(&e))?
                    .map(gix::Id::detach))
            }
            Self::Program(git) => git.commit("HEAD"),
        }
    }

    /// Returns the commit of a revision, or `None` if it does not exist.
    pub(super) fn resolve(
        &self,
        repo: &gix::Repository,
        rev: &str,
    ) -> Result<Option<gix::ObjectId>> {
        let Self::Files = self else {
            let Self::Program(git) = self else {
                return Ok(None);
            };
            return git.commit(rev);
        };
        guard::check_revision(repo, rev)?;
        // gix resolves the short name of an earlier branch to a tag of the same name.
        if rev.starts_with("@{-")
            && let Ok(spec) = repo.rev_parse(gix::bstr::BStr::new(rev))
            && spec
                .first_reference()
                .is_some_and(|r| r.name.as_bstr().starts_with(b"refs/tags/"))
        {
            return Ok(None);
        }
        let id = match repo.rev_parse_single(gix::bstr::BStr::new(rev)) {
            Ok(id) => id,
            Err(e) if e.is_corrupted() => {
                return Err(Error::incomplete(format!("cannot read revision {rev}")).caused_by(&e));
            }
            Err(_) => return Ok(None),
        };
        peel(repo, id.detach(), rev).map(Some)
    }

    /// Returns the full name of the current branch (`refs/heads/…`), or `None` if HEAD is detached.
    pub(super) fn branch(&self, repo: &gix::Repository) -> Result<Option<String>> {
        match self {
            Self::Files => {
                let name = repo
                    .head_name()
                    .map_err(|e| Error::incomplete("cannot read HEAD").caused_by(&e))?;
                Ok(name.map(|n| n.as_bstr().to_string()))
            }
            Self::Program(git) => git.symbolic("HEAD"),
        }
    }

    /// Returns the commit of the reference with this full name. Returns `None` if it does not
    /// exist, or is symbolic and its target does not exist.
    ///
    /// # Errors
    /// Incomplete, if it exists and cannot be read, which differs from a missing one.
    pub(super) fn find(&self, repo: &gix::Repository, name: &str) -> Result<Option<gix::ObjectId>> {
        match self {
            Self::Files => match read(repo, name)? {
                Some(r) => target(repo, &r)?.map(|id| peel(repo, id, name)).transpose(),
                None => Ok(None),
            },
            Self::Program(git) => {
                // Git resolves an invalid full name as a short name.
                let found = git
                    .commit(name)?
                    .filter(|_| git.has_reference(name).unwrap_or(false));
                if found.is_none() && git.has_reference(name)? && git.symbolic(name)?.is_none() {
                    return Err(broken(name));
                }
                Ok(found)
            }
        }
    }

    /// Returns the references of these full names that exist, and their objects.
    ///
    /// # Errors
    /// Incomplete, if one of them cannot be read.
    pub(super) fn exact(
        &self,
        repo: &gix::Repository,
        names: &[String],
    ) -> Result<Vec<(String, gix::ObjectId)>> {
        let mut found = Vec::new();
        match self {
            Self::Files => {
                for name in names {
                    let r = match read(repo, name) {
                        // A file in the git directory next to HEAD need not be a reference.
                        Err(_) if !name.starts_with("refs/") => None,
                        r => r?,
                    };
                    let id = r.map(|r| target(repo, &r)).transpose()?.flatten();
                    found.extend(id.map(|id| (name.clone(), id)));
                }
            }
            Self::Program(git) => {
                let names: Vec<&str> = names
                    .iter()
                    .map(String::as_str)
                    .filter(|n| n.starts_with("refs/") && gix::refs::FullName::try_from(*n).is_ok())
                    .collect();
                if !names.is_empty() {
                    found = git.exact(&names)?;
                }
            }
        }
        Ok(found)
    }

    /// Returns the reference that a symbolic one points to.
    ///
    /// # Errors
    /// Incomplete, if it cannot be read.
    pub(super) fn symbolic(&self, repo: &gix::Repository, name: &str) -> Result<Option<String>> {
        match self {
            Self::Files => {
                let found = read(repo, name)?;
                Ok(found.and_then(|r| r.target().try_name().map(|n| n.as_bstr().to_string())))
            }
            Self::Program(git) => git.symbolic(name),
        }
    }

    /// Returns the objects of HEAD and of all references, with tags followed. A reference that
    /// cannot be read hides no other one.
    pub(super) fn ends(&self, repo: &gix::Repository) -> RefEnds {
        let mut ends = RefEnds::default();
        let mut listed: Vec<(String, gix::ObjectId)> = Vec::new();
        match self {
            Self::Files => ends.list_files(repo, &mut listed),
            Self::Program(git) => match git.tips("refs/") {
                Ok(ids) => listed.extend(ids.into_iter().map(|id| (String::new(), id))),
                Err(e) => ends.broken.push(e.on_one_line()),
            },
        }
        let mut seen = HashSet::new();
        for (name, id) in listed {
            if seen.insert(id) {
                ends.follow(repo, &name, id);
            }
        }
        match self.head(repo) {
            Ok(head) => ends.commits.extend(head),
            Err(e) => ends.broken.push(e.on_one_line()),
        }
        ends.commits.sort_unstable();
        ends.commits.dedup();
        ends.others.sort_by_key(|other| other.id);
        ends.others.dedup_by_key(|other| other.id);
        ends
    }

    /// Returns the commits of the references below a prefix (`refs/remotes/`).
    ///
    /// # Errors
    /// Incomplete, if one of them cannot be read.
    pub(super) fn tips(&self, repo: &gix::Repository, prefix: &str) -> Result<Vec<gix::ObjectId>> {
        let mut tips = Vec::new();
        match self {
            Self::Files => {
                let platform = repo.references().map_err(|e| not_listed(&e))?;
                for r in platform
                    .prefixed(prefix.as_bytes())
                    .map_err(|e| not_listed(&e))?
                {
                    tips.extend(target(repo, &r.map_err(|e| not_listed(&e))?)?);
                }
            }
            Self::Program(git) => tips = git.tips(prefix)?,
        }
        tips.sort_unstable();
        tips.dedup();
        let mut commits = Vec::new();
        for id in tips {
            let object = repo
                .find_object(id)
                .map_err(|e| super::unreadable(repo, &id, Some(&e)))?;
            let end = object
                .peel_tags_to_end()
                .map_err(|e| super::unreadable(repo, &id, Some(&e)))?;
            if end.kind == gix::objs::Kind::Commit {
                commits.push(end.id);
            }
        }
        Ok(commits)
    }
}

/// The objects that the references of a repository lead to.
#[derive(Debug, Default)]
pub(super) struct RefEnds {
    pub(super) commits: Vec<gix::ObjectId>,
    /// Trees and blobs.
    pub(super) others: Vec<NamedObject>,
    /// Why a reference was not followed, one text each.
    pub(super) broken: Vec<String>,
}

/// A tree or blob that a reference names, directly or by a tag.
#[derive(Debug)]
pub(super) struct NamedObject {
    /// Full name of the reference; the ID of the object if the name is not known.
    pub(super) name: String,
    pub(super) id: gix::ObjectId,
    pub(super) is_blob: bool,
}

impl RefEnds {
    /// Lists the references that are stored in files, with the objects that they name.
    fn list_files(&mut self, repo: &gix::Repository, listed: &mut Vec<(String, gix::ObjectId)>) {
        let platform = repo.references();
        let all = platform
            .as_ref()
            .map_err(|e| not_listed(e).on_one_line())
            .and_then(|p| {
                p.prefixed(&b"refs/"[..])
                    .map_err(|e| not_listed(&e).on_one_line())
            });
        let all = match all {
            Ok(all) => all,
            Err(why) => return self.broken.push(why),
        };
        for reference in all {
            let reference = match reference {
                Ok(reference) => reference,
                Err(e) => {
                    self.broken.push(not_listed(&e).on_one_line());
                    continue;
                }
            };
            let name = reference.name().as_bstr().to_string();
            match target(repo, &reference) {
                Ok(id) => listed.extend(id.map(|id| (name, id))),
                Err(e) => self.broken.push(e.on_one_line()),
            }
        }
    }

    /// Follows tags from the object of a reference. Reads no object except for tags.
    fn follow(&mut self, repo: &gix::Repository, name: &str, id: gix::ObjectId) {
        let (end, kind) = match end_of_tags(repo, id) {
            Ok(end) => end,
            Err(e) => {
                let named = if name.is_empty() { "a reference" } else { name };
                return self.broken.push(format!("{named}: {}", e.on_one_line()));
            }
        };
        if kind == Kind::Commit {
            self.commits.push(end);
        } else {
            self.others.push(NamedObject {
                name: match name {
                    "" => end.to_string(),
                    name => name.to_owned(),
                },
                id: end,
                is_blob: kind == Kind::Blob,
            });
        }
    }
}

/// Returns the object to which a chain of tags leads, and its type: that of a commit, a tree or a
/// blob.
///
/// # Errors
/// Incomplete: an object is missing or unreadable, or a tag is larger than [`TAG_MAX`].
fn end_of_tags(repo: &gix::Repository, id: gix::ObjectId) -> Result<(gix::ObjectId, Kind)> {
    let mut id = id;
    loop {
        let header = repo
            .find_header(id)
            .map_err(|e| super::unreadable(repo, &id, Some(&e)))?;
        if header.kind() != Kind::Tag {
            return Ok((id, header.kind()));
        }
        if header.size() > TAG_MAX {
            return Err(Error::incomplete(format!("tag {id} is larger than 16 MiB")));
        }
        let tag = repo
            .find_object(id)
            .map_err(|e| super::unreadable(repo, &id, Some(&e)))?;
        id = gix::objs::TagRefIter::from_bytes(&tag.data, repo.object_hash())
            .target_id()
            .map_err(|e| super::unreadable(repo, &id, Some(&e)))?;
    }
}

/// Returns the error for a HEAD that cannot be read.
fn unreadable_head(e: &gix::Error) -> Error {
    Error::incomplete("cannot read HEAD").caused_by(e)
}

/// Returns the error for references that cannot be listed.
fn not_listed(e: &gix::Error) -> Error {
    Error::incomplete("cannot list the references")
        .caused_by(e)
        .hint("git fsck --full")
}

/// Depth of symbolic references, at most; as git.
const MAX_LINKS: usize = 5;

/// Reads the reference with this full name. Returns `None` if it does not exist, or the name is
/// invalid.
fn read<'r>(repo: &'r gix::Repository, name: &str) -> Result<Option<gix::Reference<'r>>> {
    let Ok(full) = gix::refs::FullName::try_from(name) else {
        return Ok(None);
    };
    guard::check_reference(repo, name)?;
    let found = repo
        .try_find_reference(full.as_ref().as_partial_name())
        .map_err(|e| broken(name).caused_by(&e))?;
    // gix resolves an invalid full name as a short name.
    Ok(found.filter(|r| r.name().as_bstr() == name))
}

/// Returns the object of a reference, or `None` if its target does not exist.
fn target(repo: &gix::Repository, r: &gix::Reference<'_>) -> Result<Option<gix::ObjectId>> {
    let name = r.name().as_bstr().to_string();
    let mut target = r.target().into_owned();
    for _ in 0..=MAX_LINKS {
        match target {
            gix::refs::Target::Object(id) => return Ok(Some(id)),
            gix::refs::Target::Symbolic(next) => match read(repo, &next.as_bstr().to_string())? {
                Some(r) => target = r.target().into_owned(),
                None => return Ok(None),
            },
        }
    }
    Err(broken(&name))
}

fn broken(name: &str) -> Error {
    Error::incomplete(format!("cannot read reference {name}")).hint("git fsck --full")
}

/// Follows tags to the commit.
pub(super) fn peel(repo: &gix::Repository, id: gix::ObjectId, name: &str) -> Result<gix::ObjectId> {
    let object = repo
        .find_object(id)
        .map_err(|e| super::unreadable(repo, &id, Some(&e)))?;
    let end = object
        .peel_tags_to_end()
        .map_err(|e| super::unreadable(repo, &id, Some(&e)))?;
    match end.kind {
        gix::objs::Kind::Commit => Ok(end.id),
        kind => Err(Error::usage(format!("{name} is a {kind}, not a commit"))),
    }
}
