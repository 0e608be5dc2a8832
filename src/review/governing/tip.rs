//! Whether the branch that a change goes to is stricter by now than where the change branched off. Who makes a change
//! chooses that place; the tip of the branch is nobody's choice.

use super::super::source::Resolved;
use super::{at, project_file, team};
use crate::diff::{ObjectId, RepoPath};
use crate::error::Result;
use crate::git::{Reader, Repo, State};
use crate::policy::{self, Policy, Project, RulesPolicy, Sources};
use crate::request::{Authority, ReviewRequest};
use crate::rules::{RuleSet, Version};

/// The tip of the branch, where it is another commit than the merge base.
#[derive(Debug)]
pub(super) struct Tip {
    pub(super) id: ObjectId,
    pub(super) state: State,
    /// For people: `main (1a2b3c4d5e6f)`.
    name: String,
    /// What its own file says; `None`: the file is that of the merge base, or none of them counts.
    other: Option<Other>,
}

#[derive(Debug)]
struct Other {
    project: Option<Project>,
    policy: Policy,
}

/// Why the tip decides.
enum Why {
    Stricter,
    Elsewhere,
}

impl Tip {
    /// Looks the tip up; `None` where nobody but the merge base can decide.
    ///
    /// # Errors
    ///
    /// Usage: its policy is malformed. Incomplete: it cannot be read.
    pub(super) fn of(
        request: &ReviewRequest,
        resolved: &Resolved,
        repo: &Repo,
        reader: &mut Reader<'_>,
        sources: &Sources<'_>,
    ) -> Result<Option<Self>> {
        let tip = resolved.tip.as_ref().filter(|tip| resolved.base.commit() != Some(tip.id));
        let (Authority::Base, Some(tip), []) = (request.authority, tip, &resolved.other_bases[..]) else {
            return Ok(None);
        };
        let short = tip.id.short();
        let name = if tip.name.contains(&short) { tip.name.clone() } else { format!("{} ({short})", tip.name) };
        let state = repo.state_of(tip.id)?;
        let path = RepoPath::from(policy::FILE_NAME);
        let mut other = None;
        if request.config.is_none() && !reader.is_same(&resolved.base, &state, &path)? {
            let read = project_file(request, &state, repo, reader, sources.env);
            let project = read.map_err(|e| at(&name, e))?;
            let policy = policy::load(&Sources { project: project.as_ref(), ..*sources })?.policy;
            other = Some(Other { project, policy });
        }
        Ok(Some(Self { id: tip.id, state, name, other }))
    }

    /// Returns true if the file of the tip is that of the merge base, or none of them counts.
    pub(super) fn has_the_same_file(&self) -> bool {
        self.other.is_none()
    }

    /// Decides whether the tip counts, and how the note says so. `base`: the merge base, with what its file says;
    /// `rules`: what the file says of rules that is the same at both.
    ///
    /// # Errors
    ///
    /// As [`Tip::of`].
    pub(super) fn decides(
        &self,
        base: &State,
        project: Option<&Project>,
        rules: Option<&RulesPolicy>,
        reader: &mut Reader<'_>,
    ) -> Result<Option<String>> {
        let why = match (&self.other, rules) {
            (Some(other), _) => self.compared(other, base, project, reader)?,
            (None, Some(rules)) => self.has_stricter_rules((rules, base), rules, reader)?.then_some(Why::Stricter),
            (None, None) => None,
        };
        let from = base.commit().map_or_else(String::new, |id| format!(" ({})", id.short()));
        Ok(why.map(|why| match why {
            Why::Stricter => {
                format!("{} is stricter than where this change branched off{from}, and decides", self.name)
            }
            Why::Elsewhere => format!(
                "{} says otherwise than where this change branched off{from} who is asked or where data goes, and \
                 decides",
                self.name
            ),
        }))
    }

    /// Compares two different files.
    fn compared(
        &self,
        other: &Other,
        base: &State,
        project: Option<&Project>,
        reader: &mut Reader<'_>,
    ) -> Result<Option<Why>> {
        let bytes = |p: Option<&Project>| p.map(|p| p.file.bytes.clone());
        let (now, before) = (bytes(other.project.as_ref()), bytes(project));
        let team = team::rules(&other.policy, &self.state, reader).map_err(|e| at(&self.name, e))?;
        let rules = RuleSet::new(&RulesPolicy::default(), &team).map_err(|e| at(&self.name, e))?;
        let weaker = policy::weakened(now.as_deref(), before.as_deref(), |id| rules.severity(id));
        // That there was no file yet is no weakness by itself.
        if weaker.iter().any(|w| before.is_some() || !w.key.is_empty()) {
            return Ok(Some(Why::Stricter));
        }
        // Where the old one cannot be read, it is weaker.
        let old = policy::rules_of(before.as_deref()).unwrap_or_default();
        if self.has_stricter_rules((&old, base), &other.policy.rules, reader)? {
            return Ok(Some(Why::Stricter));
        }
        Ok(policy::asks_otherwise(now.as_deref(), before.as_deref()).then_some(Why::Elsewhere))
    }

    /// Returns true if the team's rules find more at the tip.
    fn has_stricter_rules(
        &self,
        (old, base): (&RulesPolicy, &State),
        new: &RulesPolicy,
        reader: &mut Reader<'_>,
    ) -> Result<bool> {
        let mut same = old.paths == new.paths;
        for path in &new.paths {
            same = same && reader.is_same(base, &self.state, &team::folder_of(path))?;
        }
        if same {
            return Ok(false);
        }
        let now = team::files(&new.paths, &self.state, reader).map_err(|e| at(&self.name, e))?;
        let before = team::files(&old.paths, base, reader)?;
        let moved = now.iter().filter(|f| !before.contains(f)).chain(before.iter().filter(|f| !now.contains(f)));
        let changed: Vec<RepoPath> = moved.map(|f| f.path.clone()).collect();
        let (now, before) = (Version { files: &now, policy: new }, Version { files: &before, policy: old });
        Ok(!crate::rules::weakened(now, before, &changed).is_empty())
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Returns the file of the tip, given that of the merge base.
    pub(super) fn project(&self, before: Option<&Project>) -> Option<Project> {
        match &self.other {
            Some(other) => other.project.clone(),
            None => before.map(|p| Project::at_base(self.id, p.file.bytes.clone())),
        }
    }

    /// Returns whose receipts the tip takes, where it has a file of its own.
    pub(super) fn signers(&self) -> Option<&[String]> {
        self.other.as_ref().map(|o| &o.policy.receipt.signers[..])
    }
}
