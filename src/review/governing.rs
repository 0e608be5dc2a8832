//! Whose policy rules, and what the change does to it.

use super::scan::Scanned;
use super::source::{Content, Part};
use super::{Note, PolicyInfo};
use crate::diff::RepoPath;
use crate::env::Env;
use crate::error::{Error, Result};
use crate::git::{Change, Reader, Repo, State};
use crate::policy::{self, File, Loaded, Policy, Project, ProjectOrigin, Sources};
use crate::request::{Authority, Overrides, ReviewRequest};
use crate::rules::{RuleSet, Scope};

/// The most bytes that a rule file of a team may have.
const MAX_RULE_FILE: usize = 1 << 20;

/// The policy that rules a review, and the team's rules that go with it.
#[derive(Debug)]
pub(super) struct Governing {
    pub(super) policy: Policy,
    pub(super) info: PolicyInfo,
    /// Name and content of each file.
    pub(super) team_rules: Vec<(String, String)>,
}

/// Loads the policy that has the say: the worktree's, HEAD's or the base's; or the one that was named.
pub(super) fn load(
    request: &ReviewRequest,
    env: &Env,
    repo: Option<&Repo>,
    base: &State,
    notes: &mut Vec<Note>,
) -> Result<Governing> {
    let user = None::<File>;
    let state = match (repo, request.authority) {
        (None, _) => None,
        // A bare repository has no worktree to speak of.
        (Some(repo), Authority::Worktree) if repo.worktree().is_some() => Some(State::Worktree),
        (Some(repo), Authority::Worktree | Authority::Head) => repo.head()?.map(|id| repo.state_of(id)).transpose()?,
        (Some(_), Authority::Base) => Some(base.clone()),
    };
    let mut reader = repo.map(Repo::reader);
    let project = match (&request.config, &state, reader.as_mut()) {
        (Some(path), _, _) => Some(Project {
            from: ProjectOrigin::Flag,
            trusted: true,
            file: File {
                name: path.display().to_string(),
                bytes: std::fs::read(path)
                    .map_err(|e| Error::usage(format!("{} cannot be read", path.display())).caused_by(&e))?,
            },
        }),
        (None, Some(state), Some(reader)) => project_file(request.authority, state, reader, env)?,
        _ => None,
    };
    let sources = Sources { user: user.as_ref(), project: project.as_ref(), env, overrides: &request.overrides };
    let Loaded { policy, notes: said } = policy::load(&sources)?;
    notes.extend(said.into_iter().map(|n| {
        let file = project.as_ref().filter(|_| n.line.is_some()).map(|p| RepoPath::from(p.file.name.as_str()));
        let line = n.line.and_then(crate::diff::LineNo::new);
        Note { file, line, text: n.text, origin: "policy".to_owned() }
    }));
    let team_rules = match (&state, reader.as_mut()) {
        (Some(state), Some(reader)) => team_rules(&policy, state, reader)?,
        _ => Vec::new(),
    };
    let info = PolicyInfo { origin: policy.origin_label().to_owned(), hash: String::new() };
    Ok(Governing { policy, info, team_rules })
}

fn project_file(authority: Authority, state: &State, reader: &mut Reader<'_>, env: &Env) -> Result<Option<Project>> {
    let path = RepoPath::from(policy::FILE_NAME);
    let Some(bytes) = reader.read(state, &path, 1 << 20)? else { return Ok(None) };
    let from = match (authority, state.commit()) {
        (Authority::Base, Some(id)) => ProjectOrigin::Base(id),
        (Authority::Head, Some(_)) | (Authority::Worktree, Some(_)) => ProjectOrigin::Head,
        _ => ProjectOrigin::Worktree,
    };
    let trusted = matches!(from, ProjectOrigin::Base(_)) || env.var("NEVER").is_some();
    Ok(Some(Project { from, file: File { name: policy::FILE_NAME.to_owned(), bytes }, trusted }))
}

/// Reads the rule files in the folders that policy names, from the same state as the policy.
fn team_rules(policy: &Policy, state: &State, reader: &mut Reader<'_>) -> Result<Vec<(String, String)>> {
    let mut files = Vec::new();
    for folder in &policy.rules.paths {
        let folder = RepoPath::from(folder.trim_end_matches('/'));
        for path in reader.list(state, &folder)? {
            if path.extension() != Some(b"toml") {
                continue;
            }
            let name = path.to_wire();
            let bytes = reader.read(state, &path, MAX_RULE_FILE)?.unwrap_or_default();
            let text = String::from_utf8(bytes).map_err(|_| Error::usage(format!("{name} is not UTF-8")))?;
            files.push((name, text));
        }
    }
    Ok(files)
}

/// Reports what a change does to the policy that will rule once it is merged.
pub(super) fn weakened(repo: &Repo, parts: &[Part], env: &Env, rules: &RuleSet, out: &mut Scanned) {
    let mut reader = repo.reader();
    for part in parts.iter().filter(|p| p.scope == Scope::All) {
        let from_commit;
        let change = match &part.content {
            Content::Change(change) => change,
            Content::Commit(id) => match reader.commit(*id, None) {
                Ok(change) => {
                    from_commit = change;
                    &from_commit
                }
                // The scan has said so already.
                Err(_) => continue,
            },
            Content::Given(_) => continue,
        };
        if !touches_policy(change) {
            continue;
        }
        match (side(&change.base, &mut reader, env), side(&change.head, &mut reader, env)) {
            (Ok(before), Ok(after)) => {
                let _ = (before, after, rules);
            }
            // A policy that cannot be read will stop the next review; until then it is no policy at all.
            (_, Err(e)) => {
                let note = format!("{} after this change is not valid: {}", policy::FILE_NAME, e.message);
                out.notes.push(Note::general("policy", note));
            }
            (Err(_), Ok(_)) => {}
        }
    }
}

fn touches_policy(change: &Change) -> bool {
    let is_policy = |p: &RepoPath| p.as_bytes() == policy::FILE_NAME.as_bytes();
    change.entries.iter().any(|e| [&e.old, &e.new].into_iter().flatten().any(|s| is_policy(&s.path)))
}

/// Returns the project's policy at a state, as if nobody had set anything else.
fn side(state: &State, reader: &mut Reader<'_>, env: &Env) -> Result<Policy> {
    let path = RepoPath::from(policy::FILE_NAME);
    let project = reader.read(state, &path, 1 << 20)?.map(|bytes| Project {
        from: ProjectOrigin::Worktree,
        file: File { name: policy::FILE_NAME.to_owned(), bytes },
        trusted: true,
    });
    let bare = Env::from_pairs(env.dir.clone(), Vec::<(String, String)>::new());
    let overrides = Overrides::default();
    let sources = Sources { user: None, project: project.as_ref(), env: &bare, overrides: &overrides };
    policy::load(&sources).map(|l| l.policy)
}
