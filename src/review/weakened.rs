//! Reports how a change weakens the policy, the team rules and the shared decisions that govern
//! later reviews.

use super::governing::team;
use super::resolved::{ChangePart, PartContent};
use super::scan::{MOST_TOLD, Scanned};
use super::{Note, decided};
use crate::diff::{Entry, LineNo, RepoPath};
use crate::disposition::{self, SHARED};
use crate::git::{Change, Reader, Repo, State};
use crate::policy::{self, Weakening};
use crate::request::Authority;
use crate::rules::{RuleSet, Scope};
use crate::text::shortened;
use crate::verdict::FailureCause;

/// Characters of a note about new instructions to models, at most.
const MOST_WORDS: usize = 400;

/// Reports how a change weakens the policy, the team rules and the shared decisions once it is
/// merged, as findings. In gate mode, new instructions for models become notes.
pub(super) fn weakened(
    repo: &Repo,
    parts: &[ChangePart],
    (rules, authority): (&RuleSet, Authority),
    out: &mut Scanned,
) {
    let mut reader = repo.reader();
    for part in parts.iter().filter(|p| p.scope == Scope::All) {
        let first = out.findings.len();
        if let Err(e) = team::weakened(part, repo, &mut reader, rules, &mut out.findings) {
            let cause = FailureCause::Other(format!("the team's rules: {}", e.message));
            out.coverage.fail(cause);
        }
        dispositions(part, authority, &mut reader, rules, out);
        policy_file(part, authority, &mut reader, rules, out);
        for f in &mut out.findings[first..] {
            f.commit = part.commit;
        }
    }
}

/// Reports how a change to the policy file weakens the policy.
fn policy_file(
    part: &ChangePart,
    authority: Authority,
    reader: &mut Reader<'_>,
    rules: &RuleSet,
    out: &mut Scanned,
) {
    let path = RepoPath::from(policy::FILE_NAME);
    let is_touched = |change: &Change| touches(change, policy::FILE_NAME);
    let Some((base, head)) = ends(part, &path, reader, is_touched) else {
        return;
    };
    let before = reader.read(&base, &path, policy::MAX_BYTES);
    let after = reader.read(&head, &path, policy::MAX_BYTES);
    let (before, after) = match (before, after) {
        (Ok(before), Ok(after)) => (before, after),
        (Err(e), _) | (_, Err(e)) => {
            let cause = FailureCause::Other(e.message);
            return out.coverage.fail_file(path, cause);
        }
    };
    if authority == Authority::Base {
        let new = policy::new_instructions(before.as_deref(), after.as_deref());
        out.notes
            .extend(new.into_iter().take(MOST_TOLD).map(|w| Note {
                file: Some(path.clone()),
                line: w.line.and_then(LineNo::new),
                text: shortened(&rules.masked(&w.text), MOST_WORDS).into_owned(),
                origin: "policy".to_owned(),
            }));
    }
    let mut all = policy::weakened(before.as_deref(), after.as_deref(), |id| rules.severity(id));
    if before.is_none() {
        // The first policy of a project. In a local review it is the developer's own choice.
        all = if rules.trusts_the_change() {
            Vec::new()
        } else {
            first_policy(&all)
        };
    }
    for w in all {
        let line = w.line.and_then(LineNo::new);
        rules.policy_weakened(&path, line, &w.text, &mut out.findings);
    }
}

/// Returns the states before and after a part, if it touches a path. `is_touched` returns true if a
/// change does.
fn ends(
    part: &ChangePart,
    path: &RepoPath,
    reader: &mut Reader<'_>,
    is_touched: impl Fn(&Change) -> bool,
) -> Option<(State, State)> {
    match &part.content {
        PartContent::Change(change) => {
            is_touched(change).then(|| (change.base.clone(), change.head.clone()))
        }
        // The scan has already reported what cannot be read.
        PartContent::Commit(id) => reader.touched(*id, path).ok().flatten(),
        PartContent::Given(_) => None,
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
    let Some((base, head)) = ends(part, &path, reader, is_about_dispositions) else {
        return;
    };
    // A file that cannot be read at the base dismisses nothing. In gate mode, `decided::load` has
    // already rejected such a file at a merge base, unless this change repairs it.
    let before = decided::shared(reader, &base).unwrap_or_default();
    let text = match decided::shared(reader, &head) {
        Ok(after) => disposition::weaker(&before, &after),
        Err(e) => Some(e.message),
    };
    if let Some(text) = text {
        rules.policy_weakened(&path, None, &rules.masked(&text), &mut out.findings);
    }
}

/// Returns true if a change touches the shared file of dispositions, a path below a folder of the
/// same name, or an entry in place of its folder.
fn is_about_dispositions(change: &Change) -> bool {
    let sides = change.entries.iter().flat_map(Entry::sides);
    let mut paths = sides.map(|side| &side.path);
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
    let mut sides = change.entries.iter().flat_map(Entry::sides);
    sides.any(|side| side.path.as_bytes() == file.as_bytes())
}
