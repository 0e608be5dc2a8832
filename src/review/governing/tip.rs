//! Checks whether the policy at the tip of the target branch is stricter than the one at the merge
//! base. The author of a change chooses the merge base, but cannot choose the tip of the target
//! branch.

use super::super::resolved::Resolved;
use super::{at, project_file, team};
use crate::diff::{ObjectId, RepoPath};
use crate::error::Result;
use crate::git::{Reader, Repo, State};
use crate::policy::{self, Policy, ProjectFile, RulesPolicy, Sources};
use crate::request::{Authority, ReviewRequest};
use crate::rules::{RuleSet, RulesVersion};

/// The tip of the target branch, if it differs from the merge base.
#[derive(Debug)]
pub(super) struct TargetTip {
    pub(super) id: ObjectId,
    pub(super) state: State,
    /// Display name: `main (1a2b3c4d5e6f)`.
    name: String,
    /// The policy at the tip. `None` if its file equals that of the merge base, or if no project
    /// file counts.
    other: Option<Other>,
}

#[derive(Debug)]
struct Other {
    project: Option<ProjectFile>,
    policy: Policy,
}

/// The reason why the policy of the tip applies.
enum TipReason {
    /// Its policy or its team rules are stricter than those of the merge base.
    Stricter,
    /// It selects other models, programs or destinations of data than the merge base.
    Elsewhere,
}

impl TargetTip {
    /// Reads the policy at the tip; `None` if only the policy of the merge base can apply.
    ///
    /// # Errors
    ///
    /// Usage: the policy is malformed. Incomplete: it cannot be read.
    pub(super) fn of(
        request: &ReviewRequest,
        resolved: &Resolved,
        repo: &Repo,
        reader: &mut Reader<'_>,
        sources: &Sources<'_>,
    ) -> Result<Option<Self>> {
        let tip = resolved
            .tip
            .as_ref()
            .filter(|tip| resolved.base.commit() != Some(tip.id));
        let (Authority::Base, Some(tip), []) = (request.authority, tip, &resolved.other_bases[..])
        else {
            return Ok(None);
        };
        let short = tip.id.short();
        let name = if tip.name.contains(&short) {
            tip.name.clone()
        } else {
            format!("{} ({short})", tip.name)
        };
        let state = repo.state_of(tip.id)?;
        let path = RepoPath::from(policy::FILE_NAME);
        let mut other = None;
        if request.config.is_none() && !reader.is_same(&resolved.base, &state, &path)? {
            let read = project_file(request, &state, repo, reader, sources.env);
            let project = read.map_err(|e| at(&name, e))?;
            let policy = policy::load(&Sources {
                project: project.as_ref(),
                ..*sources
            })?
            .policy;
            other = Some(Other { project, policy });
        }
        Ok(Some(Self {
            id: tip.id,
            state,
            name,
            other,
        }))
    }

    /// Returns true if the tip and the merge base have the same policy file, or if no project file
    /// counts.
    pub(super) fn has_the_same_file(&self) -> bool {
        self.other.is_none()
    }

    /// Returns the text of the note if the policy of the tip applies. `base` and `project` are the
    /// merge base and its file; `rules` is the `rules` section if the file is the same at both, and
    /// `None` otherwise.
    ///
    /// # Errors
    ///
    /// Same as [`TargetTip::of`].
    pub(super) fn decides(
        &self,
        base: &State,
        project: Option<&ProjectFile>,
        rules: Option<&RulesPolicy>,
        reader: &mut Reader<'_>,
    ) -> Result<Option<String>> {
        let why = match (&self.other, rules) {
            (Some(other), _) => self.compared(other, base, project, reader)?,
            (None, Some(rules)) => self
                .has_stricter_rules((rules, base), rules, reader)?
                .then_some(TipReason::Stricter),
            (None, None) => None,
        };
        let from = base
            .commit()
            .map_or_else(String::new, |id| format!(" ({})", id.short()));
        Ok(why.map(|why| match why {
            TipReason::Stricter => {
                format!("{} is stricter than where this change branched off{from}, and decides", self.name)
            }
            TipReason::Elsewhere => format!(
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
        project: Option<&ProjectFile>,
        reader: &mut Reader<'_>,
    ) -> Result<Option<TipReason>> {
        let now = other.project.as_ref().map(|p| p.file.bytes.clone());
        let before = project.map(|p| p.file.bytes.clone());
        let team =
            team::rules(&other.policy, &self.state, reader).map_err(|e| at(&self.name, e))?;
        let rules = RuleSet::new(&RulesPolicy::default(), &team).map_err(|e| at(&self.name, e))?;
        // Asks what going back from the tip to the merge base would weaken. If it would weaken
        // anything, the tip is stricter.
        let weaker = policy::weakened(now.as_deref(), before.as_deref(), |id| rules.severity(id));
        // A missing file at the merge base alone does not make the tip stricter.
        if weaker.iter().any(|w| before.is_some() || !w.key.is_empty()) {
            return Ok(Some(TipReason::Stricter));
        }
        // If the old policy cannot be read, it counts as weaker.
        let old = policy::rules_of(before.as_deref()).unwrap_or_default();
        if self.has_stricter_rules((&old, base), &other.policy.rules, reader)? {
            return Ok(Some(TipReason::Stricter));
        }
        Ok(
            policy::selects_other_programs_or_models(before.as_deref(), now.as_deref())
                .then_some(TipReason::Elsewhere),
        )
    }

    /// Returns true if the team rules at the tip report more.
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
        let moved = now
            .iter()
            .filter(|f| !before.contains(f))
            .chain(before.iter().filter(|f| !now.contains(f)));
        let changed: Vec<RepoPath> = moved.map(|f| f.path.clone()).collect();
        let (now, before) = (
            RulesVersion {
                files: &now,
                policy: new,
            },
            RulesVersion {
                files: &before,
                policy: old,
            },
        );
        // As for the policy: the tip is the old version of this comparison.
        Ok(!crate::rules::weakened(now, before, &changed).is_empty())
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Returns the project file of the tip, given that of the merge base.
    pub(super) fn project(&self, before: Option<&ProjectFile>) -> Option<ProjectFile> {
        match &self.other {
            Some(other) => other.project.clone(),
            None => before.map(|p| ProjectFile::at_base(self.id, p.file.bytes.clone())),
        }
    }

    /// Returns the signers whose receipts the tip accepts, if it has its own file.
    pub(super) fn signers(&self) -> Option<&[String]> {
        self.other.as_ref().map(|o| &o.policy.receipt.signers[..])
    }
}
