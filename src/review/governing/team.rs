//! Team rules: the files that the policy names, and how a change weakens them.

use super::super::resolved::{ChangePart, PartContent};
use crate::diff::{Entry, FileMode, RepoPath};
use crate::error::{Error, Result};
use crate::finding::Finding;
use crate::git::{Reader, Repo, State};
use crate::policy::{self, Layer, Policy};
use crate::rules::{self, RuleFile, RuleSet, RulesVersion};

/// Bytes of a rule file, at most.
const MAX_RULE_FILE: usize = 1 << 20;

/// Reads the rule files in the folders that the policy names, from the same state as the policy.
/// Returns name and content.
///
/// # Errors
///
/// Usage: a folder that the policy names has no rule file, or a rule file is a link or not UTF-8. A
/// missing rule must not go unnoticed.
pub(super) fn rules(
    policy: &Policy,
    state: &State,
    reader: &mut Reader<'_>,
) -> Result<Vec<(String, String)>> {
    let named = policy.origin_of("rules.paths").layer != Layer::Default;
    let mut files = Vec::new();
    for folder in &policy.rules.paths {
        let rule_files = names(std::slice::from_ref(folder), state, reader)?;
        if rule_files.is_empty()
            && (named || reader.mode(state, &folder_of(folder))? == Some(FileMode::Symlink))
        {
            let error = Error::usage(format!(
                "no rule file (*.toml, *.yml) in {folder}, which rules.paths names"
            ));
            return Err(error
                .hint_person(
                    "links are not followed; see the setting: claude-reviewer policy show --origin",
                )
                .hint_agent(
                    "links are not followed; tell the user that the policy needs to be fixed",
                ));
        }
        for file in rule_files {
            let name = file.to_wire();
            let Some(bytes) = reader.read(state, &file, MAX_RULE_FILE)? else {
                return Err(Error::usage(format!(
                    "rule file {name} is not a regular file"
                )));
            };
            let text = String::from_utf8(bytes)
                .map_err(|_| Error::usage(format!("rule file {name} is not UTF-8")))?;
            files.push((name, text));
        }
    }
    Ok(files)
}

/// Reads the rule files of the worktree, or of `HEAD` in a repository without one. Returns name and
/// content.
///
/// # Errors
///
/// Same as in a review of that state: a named folder without a rule file, or an unreadable rule
/// file.
pub(crate) fn team_rules(policy: &Policy, repo: &Repo) -> Result<Vec<(String, String)>> {
    let state = match (repo.worktree(), repo.head()?) {
        (Some(_), _) => State::Worktree,
        (None, Some(head)) => repo.state_of(head)?,
        (None, None) => return Ok(Vec::new()),
    };
    rules(policy, &state, &mut repo.reader())
}

/// Reads one version of the rule files; does not validate them.
pub(super) fn files(
    paths: &[String],
    state: &State,
    reader: &mut Reader<'_>,
) -> Result<Vec<RuleFile>> {
    let mut files = Vec::new();
    for path in names(paths, state, reader)? {
        let bytes = reader.read(state, &path, MAX_RULE_FILE)?;
        files.push(RuleFile {
            path,
            text: bytes.and_then(|b| String::from_utf8(b).ok()),
        });
    }
    Ok(files)
}

fn names(paths: &[String], state: &State, reader: &mut Reader<'_>) -> Result<Vec<RepoPath>> {
    let mut names = Vec::new();
    for folder in paths {
        let files = reader.list(state, &folder_of(folder))?;
        names.extend(files.into_iter().filter(is_rule_file));
    }
    Ok(names)
}

fn is_rule_file(path: &RepoPath) -> bool {
    matches!(path.extension(), Some(b"toml" | b"yml" | b"yaml"))
}

pub(super) fn folder_of(path: &str) -> RepoPath {
    RepoPath::from(path.trim_end_matches('/'))
}

/// Returns the rule folders in the project's policy of a state; empty if the policy cannot be read.
pub(in crate::review) fn folders(state: &State, reader: &mut Reader<'_>) -> Vec<RepoPath> {
    let policy = policy_of(state, reader).ok().flatten();
    policy
        .into_iter()
        .flat_map(|p| p.paths)
        .map(|p| folder_of(&p))
        .collect()
}

/// The ends of a part, and the rule files that differ between them.
struct RuleFileEnds {
    base: State,
    head: State,
    changed: Vec<RepoPath>,
}

/// Reports how a part weakens the team rules once it is merged. The caller sets the commit of the
/// findings.
pub(in crate::review) fn weakened(
    part: &ChangePart,
    repo: &Repo,
    reader: &mut Reader<'_>,
    rules: &RuleSet,
    out: &mut Vec<Finding>,
) -> Result<()> {
    let ends = match &part.content {
        PartContent::Change(change) => {
            let sides = change.entries.iter().flat_map(Entry::sides);
            let changed: Vec<_> = sides
                .map(|s| &s.path)
                .filter(|p| is_rule_file(p))
                .cloned()
                .collect();
            RuleFileEnds {
                base: change.base.clone(),
                head: change.head.clone(),
                changed,
            }
        }
        PartContent::Commit(id) => {
            let head = repo.state_of(*id)?;
            let Some(policy) = policy_of(&head, reader)? else {
                return Ok(());
            };
            let mut base = None;
            let mut changed = Vec::new();
            for folder in &policy.paths {
                let Some((before, _)) = reader.touched(*id, &folder_of(folder))? else {
                    continue;
                };
                for state in [&before, &head] {
                    for path in names(std::slice::from_ref(folder), state, reader)? {
                        if !changed.contains(&path) && reader.touched(*id, &path)?.is_some() {
                            changed.push(path);
                        }
                    }
                }
                base = Some(before);
            }
            let Some(base) = base else { return Ok(()) };
            RuleFileEnds {
                base,
                head,
                changed,
            }
        }
        PartContent::Given(_) => return Ok(()),
    };
    if ends.changed.is_empty() {
        return Ok(());
    }
    let before = policy_of(&ends.base, reader)?.unwrap_or_else(|| Policy::default().rules);
    // An unreadable new policy has its own finding.
    let Some(after) = policy_of(&ends.head, reader)? else {
        return Ok(());
    };
    // A folder that the policy no longer names has its own finding too.
    let kept: Vec<String> = before
        .paths
        .iter()
        .filter(|p| after.paths.iter().any(|q| folder_of(p) == folder_of(q)))
        .cloned()
        .collect();
    let old = files(&kept, &ends.base, reader)?;
    let new = files(&after.paths, &ends.head, reader)?;
    let (old, new) = (
        RulesVersion {
            files: &old,
            policy: &before,
        },
        RulesVersion {
            files: &new,
            policy: &after,
        },
    );
    for w in rules::weakened(old, new, &ends.changed) {
        rules.policy_weakened(&w.path, w.line, &w.text, out);
    }
    Ok(())
}

/// Returns the `rules` section of the project's policy in a state; `None` if it cannot be read.
fn policy_of(state: &State, reader: &mut Reader<'_>) -> Result<Option<policy::RulesPolicy>> {
    let bytes = reader.read(state, &RepoPath::from(policy::FILE_NAME), policy::MAX_BYTES)?;
    Ok(policy::rules_of(bytes.as_deref()))
}
