//! Selects the policy of a review.

pub(super) mod team;
mod tip;

use super::resolved::Resolved;
use super::{Note, PolicyInfo};
use crate::diff::{FileMode, LineNo, RepoPath};
use crate::env::Env;
use crate::error::{Error, Kind, Result};
use crate::git::{Reader, Repo, State};
use crate::policy::{self, Loaded, Policy, PolicyFile, ProjectFile, Sources};
use crate::request::{Authority, ReviewRequest};
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
    /// Notes about the selection and about ignored settings.
    pub(super) notes: Vec<Note>,
}

/// The policy of the worktree or of HEAD.
#[derive(Debug)]
pub(super) struct CheckoutPolicy {
    /// The state that the policy comes from; `None` outside a repository, or without a commit.
    state: Option<State>,
    /// True if there is a policy file of the project.
    has_project: bool,
    loaded: Loaded,
}

impl CheckoutPolicy {
    /// Loads the policy of the worktree or of HEAD, or the file that the user named.
    ///
    /// # Errors
    ///
    /// Usage: the policy is malformed.
    pub(super) fn load(request: &ReviewRequest, env: &Env, repo: Option<&Repo>) -> Result<Self> {
        let user = PolicyFile::user(env)?;
        let state = match (repo, request.authority) {
            (None, _) => None,
            // A bare repository has no worktree.
            (Some(repo), Authority::Worktree) if repo.worktree().is_some() => Some(State::Worktree),
            (Some(repo), _) => repo.head()?.map(|id| repo.state_of(id)).transpose()?,
        };
        let project = match (&request.config, &state, repo) {
            (Some(path), ..) => Some(ProjectFile::from_flag(path, &request.dir)?),
            (None, Some(state), Some(repo)) => {
                project_file(request, state, repo, &mut repo.reader(), env)?
            }
            _ => None,
        };
        let loaded = policy::load(&Sources {
            user: user.as_ref(),
            project: project.as_ref(),
            env,
            overrides: &request.overrides,
        })?;
        Ok(Self {
            state,
            has_project: project.is_some(),
            loaded,
        })
    }

    pub(super) fn policy(&self) -> &Policy {
        &self.loaded.policy
    }

    pub(super) fn into_policy(self) -> Policy {
        self.loaded.policy
    }
}

/// The policy that was selected, before its team rules are read.
struct Ruling {
    state: Option<State>,
    /// True if there is a policy file of the project.
    has_project: bool,
    loaded: Loaded,
    /// Notes about the selection.
    notes: Vec<Note>,
    /// Name of the tip of the target branch, if its policy or its team rules apply. With
    /// `--config`, only its team rules can apply.
    tip: Option<String>,
}

impl From<CheckoutPolicy> for Ruling {
    fn from(checkout: CheckoutPolicy) -> Self {
        Self {
            state: checkout.state,
            has_project: checkout.has_project,
            loaded: checkout.loaded,
            notes: Vec::new(),
            tip: None,
        }
    }
}

/// Selects the policy that applies: the one of the worktree, of HEAD or of the merge base; the one
/// at the tip of the target branch if that is stricter; or the file that the user named. `checkout`
/// is the policy of the worktree or of HEAD, if it was loaded before.
///
/// # Errors
///
/// Usage: a policy is malformed, at the tip too, or, in gate mode, references that are pushed
/// together have bases with different policies.
pub(super) fn govern(
    checkout: Option<CheckoutPolicy>,
    request: &ReviewRequest,
    env: &Env,
    resolved: &Resolved,
) -> Result<Governing> {
    let repo = resolved.repo.as_deref();
    let ruling = match (repo, checkout) {
        (Some(repo), _) if request.authority == Authority::Base => {
            at_base(request, env, resolved, repo)?
        }
        (_, Some(checkout)) => checkout.into(),
        (_, None) => CheckoutPolicy::load(request, env, repo)?.into(),
    };
    let Ruling {
        state,
        has_project,
        loaded: Loaded {
            policy,
            notes: said,
        },
        mut notes,
        tip,
    } = ruling;
    notes.extend(said.into_iter().map(|n| Note {
        file: (has_project && n.line.is_some()).then(|| RepoPath::from(policy::FILE_NAME)),
        line: n.line.and_then(LineNo::new),
        text: n.text,
        origin: "policy".to_owned(),
    }));
    let team_rules = match (&state, repo) {
        (Some(state), Some(repo)) => match (tip, team::rules(&policy, state, &mut repo.reader())) {
            (Some(tip), Err(e)) => return Err(at(&tip, e)),
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
        notes,
    })
}

/// Selects the policy in gate mode: that of the merge base, or of the tip of the target branch if
/// that is stricter.
fn at_base(request: &ReviewRequest, env: &Env, resolved: &Resolved, repo: &Repo) -> Result<Ruling> {
    let base = &resolved.base;
    let user = PolicyFile::user(env)?;
    let mut state = base.clone();
    let mut reader = repo.reader();
    let project = match &request.config {
        Some(path) => Some(ProjectFile::from_flag(path, &request.dir)?),
        None => project_file(request, base, repo, &mut reader, env)?,
    };
    if request.config.is_none() {
        refuse_different_bases(resolved, &mut reader)?;
    }
    let sources = Sources {
        user: user.as_ref(),
        project: project.as_ref(),
        env,
        overrides: &request.overrides,
    };
    let Some(tip) = TargetTip::of(request, resolved, repo, &mut reader, &sources)? else {
        return Ok(Ruling {
            state: Some(state),
            has_project: project.is_some(),
            loaded: policy::load(&sources)?,
            notes: Vec::new(),
            tip: None,
        });
    };
    // A different file at the merge base is loaded only if it applies: if it is malformed, a review
    // under the policy of the tip must not fail.
    let mut loaded = match tip.has_the_same_file() {
        true => Some(policy::load(&sources)?),
        false => None,
    };
    let rules = loaded.as_ref().map(|l: &Loaded| &l.policy.rules);
    let decides = tip.decides(base, project.as_ref(), rules, &mut reader)?;
    let at_tip = decides.as_ref().and_then(|_| tip.project(project.as_ref()));
    let mut notes = Vec::new();
    let mut chosen = sources;
    if let Some(why) = &decides {
        state = tip.state.clone();
        notes.push(Note::general("policy", why));
        if request.config.is_none() {
            (chosen.project, loaded) = (at_tip.as_ref(), None);
        }
    }
    let mut loaded = loaded.map_or_else(|| policy::load(&chosen), Ok)?;
    notes.extend(common_signers(&tip, &sources, &mut loaded.policy));
    Ok(Ruling {
        state: Some(state),
        has_project: chosen.project.is_some(),
        loaded,
        notes,
        tip: decides.map(|_| tip.name().to_owned()),
    })
}

/// Rejects references that are pushed together from bases with different policies.
fn refuse_different_bases(resolved: &Resolved, reader: &mut Reader<'_>) -> Result<()> {
    let path = RepoPath::from(policy::FILE_NAME);
    let bytes = reader.read(&resolved.base, &path, policy::MAX_BYTES)?;
    for other in &resolved.other_bases {
        if reader.read(other, &path, policy::MAX_BYTES)? != bytes {
            let error = Error::usage(
                "the references that are pushed have different policies at their bases",
            );
            return Err(error.hint("push them one at a time"));
        }
    }
    Ok(())
}

/// Keeps only the signers that the merge base and the tip both name: the list at the merge base may
/// be out of date, and a signer who is new at the tip was not accepted where the change branched
/// off. Returns a note about signers that the tip no longer names. `base` has the policy of the
/// merge base.
fn common_signers(tip: &TargetTip, base: &Sources<'_>, policy: &mut Policy) -> Option<Note> {
    let now = tip.signers()?;
    let before = policy::load(base)
        .map(|l| l.policy.receipt.signers)
        .unwrap_or_default();
    policy.receipt.signers = before
        .iter()
        .filter(|line| now.contains(line))
        .cloned()
        .collect();
    let gone = before.len() - policy.receipt.signers.len();
    if gone == 0 {
        return None;
    }
    let (tip, of) = (tip.id.short(), before.len());
    let text = format!("{tip} no longer names {gone} of the {of} signers of the merge base");
    Some(Note::general("policy", text))
}

/// Rejects a backend of the request that the policy does not define.
///
/// # Errors
///
/// Usage, with the names that the policy defines.
pub(super) fn refuse_unknown_backends(request: &ReviewRequest, policy: &Policy) -> Result<()> {
    let unknown = request
        .backends
        .iter()
        .find(|name| policy.backend(name).is_none());
    let Some(name) = unknown else { return Ok(()) };
    let known: Vec<_> = policy.backends.iter().map(|b| b.name.as_str()).collect();
    let error = Error::usage(format!("unknown backend {name}"));
    Err(error.hint(format!("policy knows {}", known.join(", "))))
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
