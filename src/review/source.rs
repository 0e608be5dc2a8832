//! Resolves the source of a request to the states, commits and files that are reviewed.

use super::resolved::{ChangePart, Resolved, head_state};
use super::{Note, SourceKind, World, ends};
use crate::bounded;
use crate::diff::{self, RepoPath};
use crate::error::{Error, Result};
use crate::git::{HistoryScope, Repo, State};
use crate::request::{Authority, Hook, Input, PushRange, ReviewRequest, Source, TreeState};
use crate::rules::Scope;
use std::path::Path;
use std::sync::Arc;

/// Bytes of a patch or file on the command line, at most.
const MAX_INPUT: u64 = 1 << 30;

/// Resolves the source of a request.
///
/// # Errors
/// Usage: the source does not exist in the repository. Incomplete: it cannot be read or fetched.
pub(super) fn resolve(
    repo: Option<Arc<Repo>>,
    request: &ReviewRequest,
    world: &World<'_>,
) -> Result<Resolved> {
    match (&request.source, repo) {
        (Source::Patch(input), repo) => given(repo, request, SourceKind::Patch, vec![input]),
        (Source::Code(inputs), repo) => {
            given(repo, request, SourceKind::Code, inputs.iter().collect())
        }
        (Source::Ends(ends), Some(repo)) => {
            ends::resolve(repo, request, ends, world.env, world.stop)
        }
        (_, Some(repo)) => in_repository(request, repo),
        // Only patches and files can be outside of a repository.
        (_, None) => Err(Error::usage("this source is in no repository")),
    }
}

fn in_repository(request: &ReviewRequest, repo: Arc<Repo>) -> Result<Resolved> {
    match &request.source {
        Source::Staged => {
            let change = repo.staged()?;
            Resolved::one(repo, SourceKind::Staged, change, "the staged change".to_owned())
        }
        Source::Unstaged { untracked } => {
            let change = repo.unstaged(*untracked)?;
            Resolved::one(repo, SourceKind::Unstaged, change, "the unstaged change".to_owned())
        }
        Source::Auto => {
            let staged = repo.staged()?;
            if staged.entries.is_empty() {
                let (change, base) = repo.changes(None)?;
                return Resolved::one(repo, SourceKind::Changes, change, format!("the changes since {base}"));
            }
            Resolved::one(repo, SourceKind::Staged, staged, "the staged change".to_owned())
        }
        Source::Changes { base } => {
            let (change, base) = repo.changes(base.as_deref())?;
            Resolved::one(repo, SourceKind::Changes, change, format!("the changes since {base}"))
        }
        Source::Commit { rev, parent } => match rev.split_once("..") {
            Some((from, to)) if !to.starts_with('.') => {
                if parent.is_some() {
                    return Err(Error::usage("--parent goes with a single commit, not with a range"));
                }
                range(repo, from, to, request)
            }
            Some(_) => Err(Error::usage(format!("the range {rev} has three dots"))
                .hint_person(
                    "`commit A..B` reviews each commit of B that A lacks; `branch B --base A` reviews the net change",
                )
                .hint_agent("review_branch with branch B and base_branch A reviews the net change")),
            None => {
                let id = repo.resolve(rev)?;
                let change = repo.commit(id, *parent)?;
                let label = format!("commit {}", id.short());
                Resolved::one(repo, SourceKind::Commit, change, label)
            }
        },
        Source::Branch { head, base } => {
            let b = repo.branch(head.as_deref(), base.as_deref())?;
            let name = head.as_deref().unwrap_or("HEAD");
            // A local user sees that nothing was reviewed. A gate in a pipeline would let it pass,
            // so it is an error there.
            if request.authority == Authority::Base && b.commits.is_empty() {
                let error = Error::usage(format!("{name} has no commits that {} lacks", b.base_name));
                return Err(error
                    .hint_person("claude-reviewer review branch HEAD --base REV")
                    .hint_agent("call review_branch with another base_branch"));
            }
            let label = format!("{name} against {}", b.base_name);
            Ok(Resolved::of_branch(repo, label, b))
        }
        Source::History { range } => history(repo, range.as_deref()),
        Source::Push(ranges) => push(repo, ranges, request.hook),
        Source::Tree(state) => tree(repo, state),
        Source::Patch(_) | Source::Code(_) | Source::Ends(_) => {
            Err(Error::usage("this source is not read from the repository"))
        }
    }
}

/// Resolves all files of a state.
///
/// # Errors
/// Usage: the revision does not exist, the repository has no worktree, or paths are unmerged.
fn tree(repo: Arc<Repo>, state: &TreeState) -> Result<Resolved> {
    if let TreeState::Rev(rev) = state {
        let id = repo.resolve(rev)?;
        let state = repo.state_of(id)?;
        let change = repo.between(State::Empty, state.clone())?;
        let label = format!("the files of commit {}", id.short());
        return Ok(Resolved::of_tree(repo, change, state, label));
    }
    if repo.worktree().is_none() {
        let name = repo.git_dir().display().to_string();
        let error = Error::usage(format!("{name} is a bare repository: it has no worktree"));
        return Err(error
            .hint_person("name a revision: claude-reviewer review tree --rev HEAD")
            .hint_agent("ask the user for a clone with a worktree"));
    }
    let (change, of) = match state {
        TreeState::Worktree { untracked } => (repo.whole_worktree(*untracked)?, "worktree"),
        TreeState::Index | TreeState::Rev(_) => (repo.whole_index()?, "index"),
    };
    let head = head_state(&repo)?;
    let label = format!("the files of the {of}");
    Ok(Resolved::of_tree(repo, change, head, label))
}

/// Resolves each commit of a range. In gate mode, the net change is added: a merge counts only with
/// the paths that differ from every parent, so a merge that restores an older version of a file
/// adds nothing by itself.
fn range(repo: Arc<Repo>, from: &str, to: &str, request: &ReviewRequest) -> Result<Resolved> {
    let spec = format!("{from}..{to}");
    let [from, to] = [from, to].map(|end| if end.is_empty() { "HEAD" } else { end });
    let commits = repo.range(from, to)?;
    let (base_id, head_id) = (repo.resolve(from)?, repo.resolve(to)?);
    let (base, head) = (repo.state_of(base_id)?, repo.state_of(head_id)?);
    let count = commits.len();
    let label = format!(
        "{count} commit{} of {spec}",
        if count == 1 { "" } else { "s" }
    );
    let is_judged_as_whole = request.authority == Authority::Base && count > 0;
    let net = if is_judged_as_whole {
        repo.net(base_id, head_id)?
    } else {
        Vec::new()
    };
    let mut all = Resolved::empty(repo, SourceKind::Commit, label);
    all.set_ends(base, &head);
    let commits = commits.into_iter();
    all.parts
        .extend(commits.map(|id| ChangePart::commit(id, Scope::All)));
    all.parts.extend(net.into_iter().map(ChangePart::repeat));
    Ok(all)
}

/// Resolves a history, of which only the ends are known so far.
fn history(repo: Arc<Repo>, range: Option<&str>) -> Result<Resolved> {
    let (head, broken_head) = match (head_state(&repo), range) {
        (Ok(head), _) => (head, None),
        // The other references are searched. A range and the policy of a gate need HEAD or a name.
        (Err(e), None) => (State::Empty, Some(e.on_one_line())),
        (Err(e), Some(_)) => return Err(e),
    };
    let (scope, label) = match range {
        None => (HistoryScope::Everything, "the history".to_owned()),
        Some(range) => {
            let (from, to) = range
                .split_once("..")
                .filter(|(_, to)| !to.starts_with('.'))
                .ok_or_else(|| {
                    Error::usage(format!("invalid range {range:?}: expected A..B"))
                        .hint_person("search all commits: claude-reviewer review tree --history")
                })?;
            let [from, to] = [from, to].map(|end| if end.is_empty() { "HEAD" } else { end });
            let label = format!("the history of {range}");
            (HistoryScope::Commits(repo.range(from, to)?), label)
        }
    };
    let mut all = Resolved::empty(repo, SourceKind::Tree, label);
    // The policy is that of HEAD, and no state is the base of a history.
    all.set_ends(head.clone(), &head);
    (all.info.base, all.info.base_tree) = (None, None);
    all.history = Some(scope);
    all.broken_head = broken_head;
    all.info.is_history = true;
    Ok(all)
}

/// Resolves the ranges of a push. A review after a commit has the range that a push would send.
/// Only its name in reports differs, so that models get the same questions.
fn push(repo: Arc<Repo>, ranges: &[PushRange], hook: Option<Hook>) -> Result<Resolved> {
    let mut branches = Vec::new();
    let mut deleted = Vec::new();
    for r in ranges {
        match repo.push(r)? {
            Some(b) => branches.push(b),
            None => deleted.push(r.name.clone()),
        }
    }
    let label = match (ranges, branches.as_slice(), hook) {
        (_, [one], Some(Hook::PostCommit)) => match one.commits.len() {
            0 | 1 => format!("commit {}", one.head.short()),
            n => format!(
                "commit {} and {} more that are not pushed",
                one.head.short(),
                n - 1
            ),
        },
        ([one], ..) => format!("the push to {}", one.name),
        (many, ..) => format!("the push of {} references", many.len()),
    };
    let mut all = Resolved::empty(repo, SourceKind::Branch, label);
    for b in branches {
        all.add_branch(b);
    }
    for name in deleted {
        all.notes.push(Note::general(
            "git",
            format!("{name} is deleted on the remote: nothing to review"),
        ));
    }
    Ok(all)
}

/// Resolves a patch or whole files. A repository around them supplies the policy, but is not
/// required.
fn given(
    repo: Option<Arc<Repo>>,
    request: &ReviewRequest,
    kind: SourceKind,
    inputs: Vec<&Input>,
) -> Result<Resolved> {
    let top = repo.as_deref().and_then(Repo::worktree);
    let mut files = Vec::new();
    let mut names = Vec::new();
    for input in inputs {
        let (name, bytes) = read_input(input, &request.dir)?;
        if kind == SourceKind::Patch {
            files.extend(
                diff::patch::parse(&bytes)
                    .map_err(|e| Error::usage(format!("{name}: {}", e.message)))?,
            );
        } else {
            files.push(diff::code::added(
                path_in(top, &request.dir, input, &name),
                bytes,
            ));
        }
        names.push(name);
    }
    let label = match names.as_slice() {
        [one] => format!("{} {one}", kind.name()),
        many => format!("{} files", many.len()),
    };
    let base = repo.as_deref().map_or(Ok(State::Empty), head_state)?;
    let mut all = Resolved::empty(repo, kind, label);
    all.base = base;
    all.parts.push(ChangePart::given(files));
    Ok(all)
}

/// Returns a file's path relative to the top of the worktree; outside a worktree, the path as
/// given.
fn path_in(top: Option<&Path>, dir: &Path, input: &Input, name: &str) -> RepoPath {
    let inside = path_below(top, dir, input).filter(|p| !p.is_empty());
    inside.map_or_else(|| RepoPath::from(name), RepoPath::new)
}

/// Returns a file's path relative to the top of the worktree; `None` if it is not in the worktree.
fn path_below(top: Option<&Path>, dir: &Path, input: &Input) -> Option<Vec<u8>> {
    let (Some(top), Input::File(path)) = (top, input) else {
        return None;
    };
    let (top, path) = (
        top.canonicalize().ok()?,
        dir.join(path).canonicalize().ok()?,
    );
    Some(
        path.strip_prefix(top)
            .ok()?
            .as_os_str()
            .as_encoded_bytes()
            .to_vec(),
    )
}

fn read_input(input: &Input, dir: &Path) -> Result<(String, Vec<u8>)> {
    let (name, read) = match input {
        Input::Text { name, text } => (name.clone(), bounded::whole(text.as_bytes(), MAX_INPUT)),
        Input::Stdin => (
            "<stdin>".to_owned(),
            bounded::whole(std::io::stdin().lock(), MAX_INPUT),
        ),
        Input::File(path) => {
            let name = path.to_string_lossy().into_owned();
            let full = dir.join(path);
            if !full.is_file() {
                return Err(Error::usage(format!(
                    "cannot read {name}: not a regular file"
                )));
            }
            let read = std::fs::File::open(&full).and_then(|f| bounded::whole(f, MAX_INPUT));
            (name, read)
        }
    };
    match read {
        Ok(Some(bytes)) => Ok((name, bytes)),
        Ok(None) => Err(Error::usage(format!(
            "{name} is larger than {} MiB",
            MAX_INPUT >> 20
        ))),
        Err(e) => Err(Error::usage(format!("{name} cannot be read")).caused_by(&e)),
    }
}
