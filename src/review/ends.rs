//! Resolves a change from its base and head: finds or fetches both, and connects their histories.

use super::governing::team;
use super::resolved::Resolved;
use super::{Note, SourceKind};
use crate::diff::ObjectId;
use crate::env::Env;
use crate::error::{Error, Kind, Result};
use crate::git::names::{self, NameMeaning};
use crate::git::{Branch, Fetched, Repo};
use crate::request::{Checkout, End, Ends, Fetch, Fetching, ReviewRequest};
use crate::stop::Stop;
use std::sync::Arc;

/// Resolves both ends of a change and the commits between them.
///
/// # Errors
/// Usage: an end is unknown or not in the clone, or there are no commits between the ends and the
/// request does not allow that. Incomplete: an end cannot be fetched, or the base is gone and has
/// no substitute.
pub(super) fn resolve(
    repo: Arc<Repo>,
    request: &ReviewRequest,
    ends: &Ends,
    env: &Env,
    stop: &Stop,
) -> Result<Resolved> {
    let mut search = EndSearch {
        ends,
        request,
        env,
        stop,
        repo,
        fetched: None,
    };
    let head = search.head()?;
    let base = search.base()?;
    match base {
        Some(base) => search.connect(head, base)?,
        None => search.reach_the_beginning(head)?,
    }
    search.complete(head, base)?;
    let branch = search.between(head, base)?;
    let EndSearch {
        mut repo, fetched, ..
    } = search;
    if let Some(fetched) = &fetched {
        repo = Arc::new(fetched.open()?);
    }
    let notes = notes(&repo, ends, head, fetched.is_some())?;
    let label = format!(
        "{}: {} against {}",
        ends.label,
        head.short(),
        branch.base_name
    );
    let nothing = branch.commits.is_empty();
    if nothing && ends.may_be_empty.is_none() {
        let error = Error::usage(format!(
            "{}: {} has no commits that {} lacks",
            ends.label,
            head.short(),
            branch.base_name
        ));
        return Err(error.hint_person("claude-reviewer review branch HEAD --base REV"));
    }
    let mut all = Resolved::of_branch(repo, label, branch);
    if ends.is_pull {
        all.info.kind = SourceKind::Pr;
    }
    all.notes.extend(notes);
    if let Some(who) = ends.may_be_empty.as_ref().filter(|_| nothing) {
        all.parts.clear();
        all.notes
            .push(Note::general("git", format!("NOTHING WAS REVIEWED: {who}")));
    }
    all.fetched = fetched;
    Ok(all)
}

struct EndSearch<'a> {
    ends: &'a Ends,
    request: &'a ReviewRequest,
    env: &'a Env,
    stop: &'a Stop,
    repo: Arc<Repo>,
    fetched: Option<Fetched>,
}

impl EndSearch<'_> {
    fn head(&mut self) -> Result<ObjectId> {
        let end = &self.ends.head;
        self.find(end)?.ok_or_else(|| self.missing("the head", end))
    }

    /// Returns the base or its substitute; `None` if everything is new.
    fn base(&mut self) -> Result<Option<ObjectId>> {
        if self.ends.base == End::Nothing {
            return Ok(None);
        }
        if let Some(id) = self.find(&self.ends.base)? {
            return Ok(Some(id));
        }
        let missing = self.missing("the base", &self.ends.base);
        // A commit that is missing from a shallow clone may still exist. An abbreviated ID names
        // the same commit in full.
        let is_gone = self.fetched.is_some() || !self.repo.is_shallow();
        match self
            .ends
            .instead
            .as_ref()
            .filter(|end| is_gone || matches!(end, End::Short { .. }))
        {
            Some(instead) => self.find(instead)?.map(Some).ok_or(missing),
            None => Err(missing),
        }
    }

    /// Finds an end in the clone or, if the request allows it, at the remote.
    fn find(&mut self, end: &End) -> Result<Option<ObjectId>> {
        // A remote-tracking branch may be stale, or an earlier job may have written it.
        let ask_first = matches!(end, End::Branch(_)) && self.ends.fetching == Fetching::Missing;
        if let End::Rev(rev) = end
            && self.ends.fetching == Fetching::Missing
            && names::is_short(rev)
        {
            return self.typed(rev);
        }
        if !ask_first && let Some(id) = self.here(end)? {
            return Ok(Some(id));
        }
        let (remote, names) = match end {
            End::Id { id, under } => (id.clone(), under.iter().cloned().collect()),
            End::Short {
                id,
                under: Some(under),
            } => return self.fetch_short(id, under),
            End::Short { under: None, .. } => return Ok(None),
            End::Branch(name) => (format!("refs/heads/{name}"), Vec::new()),
            End::Rev(rev) if ObjectId::from_hex(rev).is_some() => (rev.clone(), Vec::new()),
            End::Rev(rev) if rev.starts_with("refs/") => {
                let own = rev.strip_prefix(&format!("refs/remotes/{}/", self.ends.remote));
                (
                    own.map_or_else(|| rev.clone(), |name| format!("refs/heads/{name}")),
                    Vec::new(),
                )
            }
            // Only the clone can resolve a suffix such as `~2`.
            End::Rev(rev) => return self.repo.resolve(rev).map(Some),
            End::Nothing => return Ok(None),
        };
        let Some(fetched) = self.remote()? else {
            return Ok(None);
        };
        if let Some(id) = fetched.also(&remote)? {
            return Ok(Some(id));
        }
        for name in names {
            let Some(tip) = fetched.also(&name)? else {
                continue;
            };
            match end {
                // The reference may have moved on and still contain the commit.
                End::Id { id, .. } => {
                    let repo = fetched.open()?;
                    if let Some(id) = ObjectId::from_hex(id).filter(|id| repo.has(*id)) {
                        return Ok(Some(id));
                    }
                }
                _ => return Ok(Some(tip)),
            }
        }
        Ok(None)
    }

    /// Resolves a short name that a user typed, where the remote can be asked.
    ///
    /// A name with the remote's prefix is a branch of the remote, never a tag that another person
    /// pushed under that name. Without the prefix, a tag must be the only reference with this name,
    /// both in the clone and at the remote.
    fn typed(&mut self, rev: &str) -> Result<Option<ObjectId>> {
        let places = self.repo.places(rev)?;
        let is_ambiguous = names::is_ambiguous(&places);
        let flag = self.flag(rev);
        let here = if is_ambiguous {
            None
        } else {
            self.here(&End::Rev(rev.to_owned()))?
        };
        let is_tag = !places.is_empty() && places.iter().all(|p| p.name.starts_with("refs/tags/"));
        let own = rev.strip_prefix(&format!("{}/", self.ends.remote));
        if here.is_some() && !is_tag {
            return Ok(here);
        }
        if is_ambiguous && own.is_none() {
            return Err(names::ambiguous(rev, &places, flag));
        }
        let name = own.unwrap_or(rev);
        let (branch, tag) = (format!("refs/heads/{name}"), format!("refs/tags/{name}"));
        let remote = self.ends.remote.clone();
        // A user who means the local tag can name it in full, which needs no access to the remote.
        let in_full = is_tag.then(|| format!("name it in full: {flag}refs/tags/{rev}"));
        let fetched = self
            .remote()
            .map_err(|e| with_full_name(e, in_full.as_deref()))?;
        let Some(fetched) = fetched else {
            return Ok(here);
        };
        let there = fetched
            .also(&branch)
            .map_err(|e| with_full_name(e, in_full.as_deref()))?;
        if is_ambiguous && there.is_none() {
            return Err(names::ambiguous(rev, &places, flag));
        }
        let other = match (own, here) {
            // Only the branch can be meant.
            (Some(_), _) if there.is_some() => return Ok(there),
            (Some(_), Some(_)) => {
                let error = Error::usage(format!("{rev} is a tag, and no branch of {remote}"));
                return Err(error.hint(format!("name it in full: {flag}refs/tags/{rev}")));
            }
            (None, Some(here)) => Some(here),
            (_, None) => fetched.also(&tag)?,
        };
        match (there, other) {
            (Some(there), Some(other)) if there != other => {
                let both = [
                    NameMeaning {
                        name: branch,
                        id: there,
                    },
                    NameMeaning {
                        name: tag,
                        id: other,
                    },
                ];
                Err(names::ambiguous(rev, &both, flag))
            }
            (there, other) => Ok(there.or(other)),
        }
    }

    /// Returns the option that precedes the revision on the command line, for hints.
    fn flag(&self, rev: &str) -> &'static str {
        match &self.ends.base {
            End::Rev(base) if base == rev => "--base ",
            _ => "",
        }
    }

    /// Finds the only commit that starts with an abbreviated ID in the history of a reference of
    /// the remote.
    fn fetch_short(&mut self, id: &str, under: &str) -> Result<Option<ObjectId>> {
        let Some(fetched) = self.remote()? else {
            return Ok(None);
        };
        match fetched.also(under)? {
            Some(tip) => fetched.open()?.abbreviated_in(id, tip),
            None => Ok(None),
        }
    }

    /// Finds an end in the clone.
    fn here(&self, end: &End) -> Result<Option<ObjectId>> {
        match end {
            End::Id { id, .. } => match ObjectId::from_hex(id).filter(|id| self.repo.has(*id)) {
                Some(_) => if_present(self.repo.resolve(id)),
                None => Ok(None),
            },
            End::Short { id, .. } => self.repo.abbreviated(id),
            End::Branch(name) => if_present(
                self.repo
                    .resolve(&format!("refs/remotes/{}/{name}", self.ends.remote)),
            ),
            End::Rev(rev) => {
                let places = self.repo.places(rev)?;
                if names::is_ambiguous(&places) {
                    return Err(names::ambiguous(rev, &places, self.flag(rev)));
                }
                match self.ends.fetching {
                    Fetching::Never => self.repo.resolve(rev).map(Some),
                    _ => if_present(self.repo.resolve(rev)),
                }
            }
            End::Nothing => Ok(None),
        }
    }

    /// Returns the fetched repository, if fetching is allowed.
    fn remote(&mut self) -> Result<Option<&mut Fetched>> {
        if self.ends.fetching == Fetching::Never {
            return Ok(None);
        }
        if self.fetched.is_none() {
            let fetch = Fetch {
                remote: self.ends.remote.clone(),
                tips: Vec::new(),
                credential: self.ends.credential.clone(),
            };
            self.fetched = Some(
                self.repo
                    .fetch(&self.request.dir, self.env, &fetch, self.stop)?,
            );
        }
        Ok(self.fetched.as_mut())
    }

    /// Fetches history until the two ends are connected.
    fn connect(&mut self, head: ObjectId, base: ObjectId) -> Result<()> {
        if self.view()?.is_connected(head, base)? {
            return Ok(());
        }
        if let Some(fetched) = self.remote()? {
            fetched.connect(head, base)?;
        }
        Ok(())
    }

    /// Fetches history to its beginning.
    fn reach_the_beginning(&mut self, head: ObjectId) -> Result<()> {
        if self.repo.is_shallow()
            && let Some(fetched) = self.remote()?
        {
            fetched.whole(head)?;
        }
        Ok(())
    }

    /// Returns the repository with all fetched objects.
    fn view(&self) -> Result<Arc<Repo>> {
        match &self.fetched {
            Some(fetched) => fetched.open().map(Arc::new),
            None => Ok(Arc::clone(&self.repo)),
        }
    }

    fn between(&self, head: ObjectId, base: Option<ObjectId>) -> Result<Branch> {
        let repo = self.view()?;
        let found = match base {
            Some(base) => repo.branch(Some(&head.to_string()), Some(&base.to_string())),
            None => repo.from_the_beginning(head),
        };
        let mut branch = found.map_err(|e| match self.ends.fetching {
            Fetching::Never if e.kind == Kind::Incomplete => {
                with_hint_first(e, "let the review fetch it: --fetch")
            }
            _ => e,
        })?;
        let Some(base) = base else { return Ok(branch) };
        branch.base_name = match &self.ends.base {
            End::Branch(name) => format!("{name} ({})", base.short()),
            End::Rev(rev) => rev.clone(),
            End::Id { .. } | End::Short { .. } | End::Nothing => base.short(),
        };
        Ok(branch)
    }

    /// Fetches the objects of the change that a partial clone lacks.
    fn complete(&mut self, head: ObjectId, base: Option<ObjectId>) -> Result<()> {
        if self.ends.fetching == Fetching::Never || !self.repo.is_partial() {
            return Ok(());
        }
        let lacking = self.view()?.lacking(head, base)?;
        self.objects(&lacking)?;
        let Some(base) = base else { return Ok(()) };
        // The policies are in the clone now. They name the folders of team rules, whose files may
        // be missing.
        let repo = self.view()?;
        let mut lacking = Vec::new();
        for commit in repo.merge_base(head, base)?.into_iter().chain([base]) {
            let folders = team::folders(&repo.state_of(commit)?, &mut repo.reader());
            lacking.extend(repo.lacking_in(commit, &folders)?);
        }
        lacking.sort();
        lacking.dedup();
        self.objects(&lacking)
    }

    fn objects(&mut self, lacking: &[ObjectId]) -> Result<()> {
        if lacking.is_empty() {
            return Ok(());
        }
        match self.remote()? {
            Some(fetched) => fetched.objects(lacking),
            None => Ok(()),
        }
    }

    fn missing(&self, what: &str, end: &End) -> Error {
        let name = match end {
            End::Id { id, .. } | End::Short { id, .. } => id.chars().take(12).collect(),
            End::Branch(name) => format!("the branch {name} of {}", self.ends.remote),
            End::Rev(rev) => rev.clone(),
            End::Nothing => "nothing".to_owned(),
        };
        let label = &self.ends.label;
        match self.fetched.is_some() {
            true => {
                let text = format!(
                    "{label}: {what}, {name}, is neither here nor at {}",
                    self.ends.remote
                );
                match end {
                    // The user typed the revision, so this is a usage error.
                    End::Rev(_) => {
                        Error::usage(text).hint("list the references of the remote: git ls-remote")
                    }
                    _ => Error::incomplete(text)
                        .hint_person("claude-reviewer review branch HEAD --base REV"),
                }
            }
            false => Error::usage(format!("{label}: {what}, {name}, is not in this clone"))
                .hint_person("let the review fetch it: --fetch")
                .hint(
                    "or let the checkout fetch all of the history (fetch-depth: 0, GIT_DEPTH: 0)",
                ),
        }
    }
}

/// Returns a commit that was resolved; `None` if the clone does not have it.
fn if_present(found: Result<ObjectId>) -> Result<Option<ObjectId>> {
    match found {
        Ok(id) => Ok(Some(id)),
        Err(e) if e.kind == Kind::Usage => Ok(None),
        Err(e) => Err(e),
    }
}

fn with_hint_first(mut error: Error, hint: &str) -> Error {
    error.hints.insert(0, hint.to_owned());
    error
}

/// Adds the hint to name a tag in full, if there is one.
fn with_full_name(error: Error, hint: Option<&str>) -> Error {
    match hint {
        Some(hint) => with_hint_first(error, hint),
        None => error,
    }
}

/// Notes the differences between the reviewed state and the checked-out one.
fn notes(repo: &Repo, ends: &Ends, head: ObjectId, fetched: bool) -> Result<Vec<Note>> {
    let mut notes = Vec::new();
    let out = repo.head()?;
    if fetched {
        notes.push(Note::general(
            "git",
            format!("missing objects were fetched from {}", ends.remote),
        ));
    }
    let Some(out) = out else { return Ok(notes) };
    // HEAD must reach the reviewed head, so that the worktree contains its commits.
    let has_head =
        out == head || repo.has(out) && repo.merge_base(out, head).is_ok_and(|b| b == Some(head));
    if ends.checkout == Checkout::Foreign && has_head && repo.worktree().is_some() {
        let text = "the worktree has the files of the change, in a job that has rights of its own: nothing of it is run \
                    by this review, but other steps may; check out the base instead";
        notes.push(Note::general("git", text));
    }
    if out != head {
        let text = format!(
            "{} is reviewed; {} is checked out",
            head.short(),
            out.short()
        );
        notes.push(Note::general("git", text));
    }
    Ok(notes)
}
