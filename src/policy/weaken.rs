//! Reports how a change to the project's policy file weakens the policy.
//!
//! A policy is weaker if it lets a change pass that the old policy would have stopped, or if it
//! reviews less. The comparison has three parts:
//!
//! | part | compared by | file |
//! |---|---|---|
//! | every key of a table, such as `block_on` or `review.depth` | the rule of the key, `PolicyKey::weaker` | `value` |
//! | `[[path]]` entries | the thresholds that apply to each path | `path_rules` |
//! | `[[guideline]]` entries | their patterns and texts | `guidelines` |
//!
//! Both versions are loaded with all defaults filled in, and their effective values are compared.
//! Spelling, order of keys, and written-out defaults therefore make no difference.
//!
//! For most keys, the comparison reports only a difference that is known to be weaker. A key that
//! decides which programs run or where data goes (`Weaker::Different`) is reported for every other
//! value that is set. A pattern counts as covered by old patterns only if that is proven (see
//! `cover`), so a report about patterns can be unnecessary and is never missing.

mod guidelines;
mod path_rules;
#[cfg(test)]
mod tests;
mod value;

use super::keys::{self, BACKEND, PolicyKey, TABLES, Weaker};
use super::merge::{self, ParsedFile};
use super::parse::{ParsedPolicy, parse};
use super::value::PolicyValue;
use super::{
    Backend, FILE_NAME, Layer, Policy, PolicyFile, ProjectFile, ProjectOrigin, RulesPolicy,
};
use crate::finding::Severity;

/// One way in which a policy is weaker than before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Weakening {
    /// The full key (`block_on`, `backend.local.base_url`, `path`); empty: the file as a whole.
    pub key: String,
    /// The 1-based line in the new file; `None`: the old line was removed.
    pub line: Option<u32>,
    /// A lowercase fragment: `block_on no longer includes major`.
    pub text: String,
}

/// The two versions of a policy that are compared.
struct PolicyVersions<'a> {
    old: &'a Policy,
    new: &'a Policy,
    /// Returns the built-in severity of a rule; `None` for an unknown rule.
    built_in_severity: &'a dyn Fn(&str) -> Option<Severity>,
}

/// Compares two versions of the project's file; `None`: the file does not exist.
///
/// `built_in_severity` returns the built-in severity of a rule, if it is known. An invalid old
/// version counts as no file. An invalid new version counts as weaker: after the merge, every gate
/// would fail.
pub fn weakened(
    old: Option<&[u8]>,
    new: Option<&[u8]>,
    built_in_severity: impl Fn(&str) -> Option<Severity>,
) -> Vec<Weakening> {
    if old == new {
        return Vec::new();
    }
    let is_deleted = new.is_none();
    let old = policy_or_default(old);
    let new = match new.map(policy) {
        None => Policy::default(),
        Some(Ok(new)) => new,
        Some(Err(line)) => {
            let text = "the policy file is invalid, so every gate that uses it fails";
            return vec![Weakening::of_file(line, text)];
        }
    };
    let mut found = Vec::new();
    if is_deleted {
        found.push(Weakening::of_file(None, "the policy file is deleted"));
    }
    let versions = PolicyVersions {
        old: &old,
        new: &new,
        built_in_severity: &built_in_severity,
    };
    found.extend(versions.weaker_keys());
    found.extend(path_rules::weaker_path_rules(&old, &new));
    found.extend(guidelines::weaker_guidelines(&old, &new));
    found
}

/// Returns the instructions for models that the new version adds: new or longer guidelines, and
/// further documents. They do not weaken the policy by themselves. An invalid version has no
/// instructions.
pub fn new_instructions(old: Option<&[u8]>, new: Option<&[u8]>) -> Vec<Weakening> {
    guidelines::new_instructions(&policy_or_default(old), &policy_or_default(new))
}

/// Returns true if the new version sets a key that decides which programs run, where data goes, or
/// which model the enabled backends ask, and the old version does not set the same value.
/// `None`: the file does not exist. An invalid version sets nothing.
///
/// Which backends are enabled is not compared: [`weakened`] reports a removed one, in the direction
/// in which it is removed.
pub fn selects_other_programs_or_models(old: Option<&[u8]>, new: Option<&[u8]>) -> bool {
    let (old, new) = (policy_or_default(old), policy_or_default(new));
    TABLES
        .iter()
        .flat_map(|table| table.keys)
        .filter(|key| decides_programs_or_destinations(key))
        .any(|key| sets_other_value(key, &old, &new))
        || new
            .review
            .backends
            .iter()
            .filter_map(|name| new.backend(name))
            .any(|backend| is_other_backend(&backend_or_default(&old, &backend.name), backend))
}

/// Returns true if a backend asks another model, runs another program or sends data elsewhere than
/// it did in the old version.
fn is_other_backend(old: &Backend, new: &Backend) -> bool {
    BACKEND
        .iter()
        .filter(|key| decides_programs_or_destinations(key) || key.name == "model")
        .any(|key| sets_other_value(key, old, new))
}

/// Returns true for a key that decides which programs run or where data goes.
fn decides_programs_or_destinations<T>(key: &PolicyKey<T>) -> bool {
    matches!(key.weaker, Weaker::Different)
}

/// Returns true if the new version sets a key, and the old one has another value.
fn sets_other_value<T>(key: &PolicyKey<T>, old: &T, new: &T) -> bool {
    let value = (key.get)(new);
    value != PolicyValue::Unset && value != (key.get)(old)
}

/// Returns the `[rules]` of one version of the project's file; `None` if the version is invalid.
/// Without a file, these are the defaults.
pub fn rules_of(bytes: Option<&[u8]>) -> Option<RulesPolicy> {
    bytes
        .map_or_else(|| Some(Policy::default()), |b| policy(b).ok())
        .map(|p| p.rules)
}

/// Loads one version. A missing or invalid one has the default values.
fn policy_or_default(bytes: Option<&[u8]>) -> Policy {
    bytes.and_then(|b| policy(b).ok()).unwrap_or_default()
}

/// Loads one version as a trusted project file without any other layer. The error is the line of
/// the first problem.
fn policy(bytes: &[u8]) -> Result<Policy, Option<u32>> {
    let file = PolicyFile {
        name: FILE_NAME.to_owned(),
        bytes: bytes.to_vec(),
    };
    let parsed: ParsedPolicy =
        parse(&file, Layer::Project).map_err(|problems| problems.first().and_then(|p| p.line))?;
    let project = ProjectFile {
        from: ProjectOrigin::Worktree,
        file,
        trusted: true,
    };
    let read = ParsedFile {
        file: &project.file,
        parsed: &parsed,
    };
    Ok(merge::files(None, Some((&project, read))).finish().0)
}

/// Returns a backend by name; with default values if the policy does not define it.
fn backend_or_default(policy: &Policy, name: &str) -> Backend {
    policy
        .backend(name)
        .cloned()
        .unwrap_or_else(|| Backend::new(name))
}

impl Weakening {
    /// Creates a weakening of the file as a whole.
    fn of_file(line: Option<u32>, text: &str) -> Self {
        Self {
            key: String::new(),
            line,
            text: text.to_owned(),
        }
    }
}

impl PolicyVersions<'_> {
    /// Compares every key of every table, and of every backend of the new version. A backend that
    /// was removed is reported by `review.backends`, if it was enabled.
    fn weaker_keys(&self) -> Vec<Weakening> {
        let mut found = Vec::new();
        for table in TABLES {
            for key in table.keys {
                let full = keys::full(table.name, key.name);
                found.extend(self.weaker_key(key, &full, self.old, self.new));
            }
        }
        for backend in &self.new.backends {
            let old = backend_or_default(self.old, &backend.name);
            for key in BACKEND {
                let full = format!("backend.{}.{}", backend.name, key.name);
                found.extend(self.weaker_key(key, &full, &old, backend));
            }
        }
        found
    }

    /// Compares the values of one key in the old and the new version of its table.
    fn weaker_key<T>(&self, key: &PolicyKey<T>, full: &str, old: &T, new: &T) -> Vec<Weakening> {
        let (old, new) = ((key.get)(old), (key.get)(new));
        if old == new || self.is_default_of_depth(full) {
            return Vec::new();
        }
        let line = self.new.origin_of(full).line;
        value::descriptions(key.weaker, &old, &new, self)
            .into_iter()
            .map(|how| Weakening {
                key: full.to_owned(),
                line,
                text: format!("{full} {how}"),
            })
            .collect()
    }

    /// Returns true for `review.max_requests` if no version sets it. Its default depends on
    /// `review.depth`, and a change of the depth is reported by that key.
    fn is_default_of_depth(&self, full: &str) -> bool {
        full == "review.max_requests"
            && self.old.layer_of(full) == Layer::Default
            && self.new.layer_of(full) == Layer::Default
    }
}
