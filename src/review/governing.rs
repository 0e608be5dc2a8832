//! Selects the policy of a review, and reports how the change weakens it.

pub(super) mod team;
mod tip;

use super::scan::Scanned;
use super::source::{ChangePart, PartContent, Resolved};
use super::{Note, PolicyInfo, decided};
use crate::diff::{FileMode, LineNo, RepoPath};
use crate::disposition::{self, SHARED};
use crate::env::Env;
use crate::error::{Error, Kind, Result};
use crate::git::{Change, Reader, Repo, State};
use crate::policy::{self, Loaded, Policy, PolicyFile, ProjectFile, Sources, Weakening};
use crate::request::{Authority, ReviewRequest};
use crate::rules::{RuleSet, Scope};
use crate::text::shortened;
use tip::TargetTip;

/// The policy of a review, with its team rules.
#[derive(Debug)]
pub(super) struct Governing {
    pub(super) policy: Policy,
    pub(super) info: PolicyInfo,
    /// Name and content of each rule file.
    pub(super) team_rules: Vec<(String, String)>,
    /// The state whose documents speak for the team; `None` outside a repository.
    pub(super) state: Option<State>,
}

/// Loads the policy that applies: the one of the worktree, of HEAD or of the merge base; the one at
/// the tip of the target branch if that is stricter; or the file that the user named.
///
/// # Errors
///
/// Usage: a policy is malformed, at the tip too, or, in gate mode, references that are pushed
/// together have bases with different policies.
pub(super) fn load(
    request: &ReviewRequest,
    env: &Env,
    resolved: &Resolved,
    notes: &mut Vec<Note>,
) -> Result<Governing> {
    let (repo, base) = (resolved.repo.as_ref(), &resolved.base);
    let user = PolicyFile::user(env)?;
    let mut state = match (repo, request.authority) {
        (None, _) => None,
        // A bare repository has no worktree.
        (Some(repo), Authority::Worktree) if repo.worktree().is_some() => Some(State::Worktree),
        (Some(repo), Authority::Worktree | Authority::Head) => {
            repo.head()?.map(|id| repo.state_of(id)).transpose()?
        }
        (Some(_), Authority::Base) => Some(base.clone()),
    };
    let mut reader = repo.map(Repo::reader);
    let project = match (&request.config, &state, repo, reader.as_mut()) {
        (Some(path), ..) => Some(ProjectFile::from_flag(path, &request.dir)?),
        (None, Some(state), Some(repo), Some(reader)) => {
            project_file(request, state, repo, reader, env)?
        }
        _ => None,
    };
    if let (Authority::Base, None, Some(reader)) =
        (request.authority, &request.config, reader.as_mut())
    {
        let path = RepoPath::from(policy::FILE_NAME);
        let ruling = reader.read(base, &path, policy::MAX_BYTES)?;
        for other in &resolved.other_bases {
            if reader.read(other, &path, policy::MAX_BYTES)? != ruling {
                return Err(Error::usage(
                    "the references that are pushed have different policies at their bases",
                )
                .hint("push them one at a time"));
            }
        }
    }
    let mut sources = Sources {
        user: user.as_ref(),
        project: project.as_ref(),
        env,
        overrides: &request.overrides,
    };
    let tip = match (repo, reader.as_mut()) {
        (Some(repo), Some(reader)) => TargetTip::of(request, resolved, repo, reader, &sources)?,
        _ => None,
    };
    let before = sources;
    let (mut loaded, mut decides) = (None, None);
    if let (Some(tip), Some(reader)) = (&tip, reader.as_mut()) {
        if tip.has_the_same_file() {
            loaded = Some(policy::load(&sources)?);
        }
        let rules = loaded.as_ref().map(|l: &Loaded| &l.policy.rules);
        decides = tip
            .decides(base, project.as_ref(), rules, reader)?
            .map(|why| (tip, why));
    }
    let at_tip = decides
        .as_ref()
        .and_then(|(tip, _)| tip.project(project.as_ref()));
    if let Some((tip, why)) = &decides {
        state = Some(tip.state.clone());
        notes.push(Note::general("policy", why));
        if request.config.is_none() {
            (sources.project, loaded) = (at_tip.as_ref(), None);
        }
    }
    let Loaded {
        mut policy,
        notes: said,
    } = loaded.map_or_else(|| policy::load(&sources), Ok)?;
    if let Some(tip) = &tip
        && let Some(now) = tip.signers()
    {
        // A signer must be on both lists: the one at the merge base may be out of date, and a
        // signer who is new at the tip was not accepted where the change branched off.
        let before = policy::load(&before)
            .map(|l| l.policy.receipt.signers)
            .unwrap_or_default();
        policy.receipt.signers = before
            .iter()
            .filter(|line| now.contains(line))
            .cloned()
            .collect();
        let gone = before.len() - policy.receipt.signers.len();
        if gone > 0 {
            let (tip, of) = (tip.id.short(), before.len());
            let text =
                format!("{tip} no longer names {gone} of the {of} signers of the merge base");
            notes.push(Note::general("policy", text));
        }
    }
    notes.extend(said.into_iter().map(|n| {
        let file = sources
            .project
            .filter(|_| n.line.is_some())
            .map(|_| RepoPath::from(policy::FILE_NAME));
        Note {
            file,
            line: n.line.and_then(LineNo::new),
            text: n.text,
            origin: "policy".to_owned(),
        }
    }));
    let team_rules = match (&state, reader.as_mut()) {
        (Some(state), Some(reader)) => match (&decides, team::rules(&policy, state, reader)) {
            (Some((tip, _)), Err(e)) => return Err(at(tip.name(), e)),
            (_, rules) => rules?,
        },
        _ => Vec::new(),
    };
    let info = PolicyInfo {
        origin: policy.origin_label().to_owned(),
        hash: policy.hash(),
    };
    Ok(Governing {
        policy,
        info,
        team_rules,
        state,
    })
}

/// Adds the name of the commit to an error.
pub(super) fn at(name: &str, mut error: Error) -> Error {
    error.message = format!("at {name}: {}", error.message);
    if error.kind == Kind::Incomplete {
        error
            .hints
            .insert(0, "let the review fetch it: --fetch".to_owned());
    }
    error
}

/// Loads the policy of the worktree or of HEAD, without team rules and notes.
pub(super) fn policy_alone(request: &ReviewRequest, env: &Env, repo: &Repo) -> Result<Policy> {
    let user = PolicyFile::user(env)?;
    let state = match request.authority {
        Authority::Worktree if repo.worktree().is_some() => Some(State::Worktree),
        Authority::Worktree | Authority::Head | Authority::Base => {
            repo.head()?.map(|id| repo.state_of(id)).transpose()?
        }
    };
    let project = match (&request.config, &state) {
        (Some(path), _) => Some(ProjectFile::from_flag(path, &request.dir)?),
        (None, Some(state)) => project_file(request, state, repo, &mut repo.reader(), env)?,
        (None, None) => None,
    };
    let sources = Sources {
        user: user.as_ref(),
        project: project.as_ref(),
        env,
        overrides: &request.overrides,
    };
    Ok(policy::load(&sources)?.policy)
}

fn project_file(
    request: &ReviewRequest,
    state: &State,
    repo: &Repo,
    reader: &mut Reader<'_>,
    env: &Env,
) -> Result<Option<ProjectFile>> {
    if let (State::Worktree, Some(top)) = (state, repo.worktree()) {
        return ProjectFile::in_worktree(top, request.store_of.as_deref().unwrap_or(top), env);
    }
    let path = RepoPath::from(policy::FILE_NAME);
    let Some(bytes) = reader.read(state, &path, policy::MAX_BYTES)? else {
        return match reader.mode(state, &path)? {
            // Using no policy instead would be weaker than the intended one.
            Some(FileMode::Symlink) => Err(ProjectFile::linked(policy::FILE_NAME)),
            _ => Ok(None),
        };
    };
    Ok(Some(match (request.authority, state.commit()) {
        (Authority::Base, Some(base)) => ProjectFile::at_base(base, bytes),
        _ => ProjectFile::at_head(bytes, repo.worktree().unwrap_or(repo.git_dir()), env),
    }))
}

/// Notes of each kind about new instructions to models, at most.
pub(super) const MOST_TOLD: usize = 20;
/// Characters of one such note, at most.
const MOST_WORDS: usize = 400;

/// Reports how a change weakens the policy and the team rules once it is merged.
pub(super) fn weakened(
    repo: &Repo,
    parts: &[ChangePart],
    (rules, authority): (&RuleSet, Authority),
    out: &mut Scanned,
) {
    let mut reader = repo.reader();
    let path = RepoPath::from(policy::FILE_NAME);
    for part in parts.iter().filter(|p| p.scope == Scope::All) {
        if let Err(e) = team::weakened(part, repo, &mut reader, rules, out) {
            out.coverage
                .failed
                .push((None, format!("the team's rules: {}", e.message)));
        }
        dispositions(part, authority, &mut reader, rules, out);
        let ends = match &part.content {
            PartContent::Change(change) if touches(change, policy::FILE_NAME) => {
                Some((change.base.clone(), change.head.clone()))
            }
            // The scan has already reported what cannot be read.
            PartContent::Commit(id) => reader.touched(*id, &path).ok().flatten(),
            PartContent::Change(_) | PartContent::Given(_) => None,
        };
        let Some((base, head)) = ends else { continue };
        let before = reader.read(&base, &path, policy::MAX_BYTES);
        let after = reader.read(&head, &path, policy::MAX_BYTES);
        match (before, after) {
            (Ok(before), Ok(after)) => {
                if authority == Authority::Base {
                    let told = policy::new_instructions(before.as_deref(), after.as_deref());
                    out.notes
                        .extend(told.into_iter().take(MOST_TOLD).map(|w| Note {
                            file: Some(path.clone()),
                            line: w.line.and_then(LineNo::new),
                            text: shortened(&rules.masked(&w.text), MOST_WORDS).into_owned(),
                            origin: "policy".to_owned(),
                        }));
                }
                let mut all =
                    policy::weakened(before.as_deref(), after.as_deref(), |id| rules.severity(id));
                if before.is_none() {
                    // The first policy of a project. In a local review it is the developer's own
                    // choice.
                    all = if rules.trusts_the_change() {
                        Vec::new()
                    } else {
                        first_policy(&all)
                    };
                }
                let first = out.findings.len();
                for w in all {
                    rules.policy_weakened(
                        &path,
                        w.line.and_then(LineNo::new),
                        &w.text,
                        &mut out.findings,
                    );
                }
                for f in &mut out.findings[first..] {
                    f.commit = part.commit;
                }
            }
            (Err(e), _) | (_, Err(e)) => out.coverage.failed.push((Some(path.clone()), e.message)),
        }
    }
}

/// Merges everything that a first policy loosens against the defaults into one weakening, because a
/// person accepts it as a whole.
fn first_policy(all: &[Weakening]) -> Vec<Weakening> {
    let texts: Vec<&str> = all.iter().map(|w| w.text.as_str()).collect();
    let line = all.iter().find_map(|w| w.line);
    let text = format!(
        "the first policy is looser than the defaults: {}",
        texts.join("; ")
    );
    if all.is_empty() {
        Vec::new()
    } else {
        vec![Weakening {
            key: String::new(),
            line,
            text,
        }]
    }
}

/// Reports what a change to the shared file of dispositions would dismiss once it is merged: one
/// finding for the file. In a local review it is the developer's own choice.
fn dispositions(
    part: &ChangePart,
    authority: Authority,
    reader: &mut Reader<'_>,
    rules: &RuleSet,
    out: &mut Scanned,
) {
    if authority == Authority::Worktree {
        return;
    }
    let path = RepoPath::from(SHARED);
    let ends = match &part.content {
        PartContent::Change(change) if is_about_dispositions(change) => {
            Some((change.base.clone(), change.head.clone()))
        }
        PartContent::Commit(id) => reader.touched(*id, &path).ok().flatten(),
        PartContent::Change(_) | PartContent::Given(_) => None,
    };
    let Some((base, head)) = ends else { return };
    // A file that cannot be read at the base dismisses nothing. Where that matters, the review has
    // already failed.
    let before = decided::shared(reader, &base).unwrap_or_default();
    let text = match decided::shared(reader, &head) {
        Ok(after) => disposition::weaker(&before, &after),
        Err(e) => Some(e.message),
    };
    let first = out.findings.len();
    if let Some(text) = text {
        rules.policy_weakened(&path, None, &rules.masked(&text), &mut out.findings);
    }
    for f in &mut out.findings[first..] {
        f.commit = part.commit;
    }
}

/// Returns true if a change touches the shared file of dispositions, a path below a folder of the
/// same name, or an entry in place of its folder.
fn is_about_dispositions(change: &Change) -> bool {
    let mut paths = change
        .entries
        .iter()
        .flat_map(|e| [&e.old, &e.new])
        .flatten()
        .map(|s| &s.path);
    let folder = SHARED.rsplit_once('/').map_or(SHARED, |(folder, _)| folder);
    touches(change, SHARED)
        || touches(change, folder)
        || paths.any(|p| {
            p.as_bytes()
                .strip_prefix(SHARED.as_bytes())
                .is_some_and(|rest| rest.starts_with(b"/"))
        })
}

fn touches(change: &Change, file: &str) -> bool {
    let mut sides = change
        .entries
        .iter()
        .flat_map(|e| [&e.old, &e.new])
        .flatten();
    sides.any(|side| side.path.as_bytes() == file.as_bytes())
}
