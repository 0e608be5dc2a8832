//! Decides what a fix may not change: files that check the code. Pure; it examines the resulting
//! files, not a model's claims.
//!
//! A person can allow a path by name. Deleting or weakening a check is not a fix, so lines may be
//! added to tests, but no line with a check may be removed.

mod classes;
mod ends;
mod manifest;
mod named;
mod paths;
mod shadow;
mod tests_of;

use crate::diff::{self, RepoPath};
use crate::policy::glob::Globs;
use std::collections::BTreeSet;

/// A file that a fix changes or creates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangedFile {
    pub path: RepoPath,
    /// `None` if the fix creates the file.
    pub before: Option<Vec<u8>>,
    pub after: Vec<u8>,
}

/// A change that a fix may not make.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct GuardViolation {
    pub path: RepoPath,
    /// Predicate of the path, such as `is a CI file`.
    pub why: String,
}

/// Facts about the repository that the changed files do not show.
#[derive(Debug)]
pub struct Bounds<'a> {
    /// Path patterns that a person allows.
    pub allowed: &'a Globs,
    /// Files of the findings: a line of a test may change if a finding is about its file.
    pub of_findings: &'a BTreeSet<RepoPath>,
    pub around: &'a GuardContext,
}

/// Facts about the repository before the fix.
#[derive(Clone, Debug, Default)]
pub struct GuardContext {
    /// Folders of team rules and of stored reviews, and files of conventions, from the policy.
    pub of_policy: Vec<String>,
    /// Folder of hooks in git's configuration.
    pub of_hooks: Vec<String>,
    /// Files that CI files, hooks and package scripts run.
    pub run_by_checks: BTreeSet<RepoPath>,
    pub tree: BTreeSet<RepoPath>,
}

impl GuardContext {
    /// Finds the files that checks run. `command` is the policy's test command.
    #[must_use]
    pub fn with_scripts(
        mut self,
        read: &dyn Fn(&RepoPath) -> Option<Vec<u8>>,
        command: Option<&str>,
    ) -> Self {
        self.run_by_checks = named::run_by_checks(&self.tree, read, command);
        self
    }
}

/// Extensions of shell scripts, without the dot.
const SHELLS: &[&str] = &["sh", "bash", "zsh", "fish", "ps1", "bat", "cmd"];

/// Comments that disable checks, in lowercase.
const SUPPRESSIONS: &[&str] = &[
    "claude-reviewer: ignore",
    "claude-reviewer:ignore",
    "noqa",
    "nosec",
    "nosonar",
    "nosemgrep",
    "nolint",
    "eslint-disable",
    "biome-ignore",
    "tslint:disable",
    "jshint ignore",
    "@ts-ignore",
    "@ts-nocheck",
    "@ts-expect-error",
    "type: ignore",
    "pyright: ignore",
    "pylint: disable",
    "pylint:disable",
    "flake8:",
    "mypy: ignore",
    "pragma: no cover",
    "istanbul ignore",
    "c8 ignore",
    "v8 ignore",
    "rubocop:disable",
    "@suppresswarnings",
    "@suppress(",
    "suppressfbwarnings",
    "pragma warning disable",
    "pragma gcc diagnostic ignored",
    "pragma clang diagnostic ignored",
    "#[allow(",
    "#![allow(",
    "#[expect(",
    "#![expect(",
    "codeql[",
    "lgtm[",
    "gitleaks:allow",
    "pragma: allowlist",
    "trufflehog:ignore",
    "checkov:skip",
    "tfsec:ignore",
    "trivy:ignore",
    "hadolint ignore",
    "shellcheck disable",
    "phpcs:ignore",
    "phpcs:disable",
    "@phpstan-ignore",
    "psalm-suppress",
    "swiftlint:disable",
    "ktlint-disable",
    "detekt:",
    "prettier-ignore",
    "fmt: off",
    "bandit:",
    "snyk:",
];

/// Returns the forbidden changes of a fix, ordered by path.
pub fn violations(changes: &[ChangedFile], bounds: &Bounds<'_>) -> Vec<GuardViolation> {
    let mut out: Vec<GuardViolation> = changes
        .iter()
        .filter(|c| !bounds.allowed.matches(&c.path))
        .filter_map(|c| {
            Some(GuardViolation {
                path: c.path.clone(),
                why: violation(c, bounds)?,
            })
        })
        .collect();
    out.sort();
    out
}

/// Returns the reason why a model may change a path only with a person's consent, or `None` if it
/// may change it.
pub fn class_of(path: &RepoPath, around: &GuardContext) -> Option<&'static str> {
    if let Some(class) = paths::class(path, &around.of_policy) {
        Some(class)
    } else if paths::is_below(path, &around.of_hooks) {
        Some(classes::HOOK)
    } else if around.run_by_checks.contains(path) {
        Some("run by a CI file, a hook, or a script that checks the code")
    } else if around.tree.contains(path) {
        None
    } else {
        shadow::class(path, &around.tree)
    }
}

fn violation(change: &ChangedFile, bounds: &Bounds<'_>) -> Option<String> {
    if let Some(class) = class_of(&change.path, bounds.around) {
        return Some(format!("is {class}"));
    }
    let before = change.before.as_deref().unwrap_or_default();
    if change.before.is_some()
        && change.after.trim_ascii().is_empty()
        && !before.trim_ascii().is_empty()
    {
        return Some("loses all of its lines".to_owned());
    }
    if let Some(what) = manifest::changed(&change.path, before, &change.after) {
        return Some(format!("changes {what}"));
    }
    if let Some(comment) = suppression(before, &change.after) {
        return Some(format!("gains a comment that turns off a check: {comment}"));
    }
    if let Some(line) = ends::ends(&change.path, before, &change.after) {
        let line: String = String::from_utf8_lossy(line.trim_ascii())
            .chars()
            .take(80)
            .collect();
        return Some(format!(
            "gains a line that can end a test run with success, or skip tests: {line}"
        ));
    }
    tests_of::weakened(change, bounds.of_findings.contains(&change.path))
}

/// Returns the first comment that disables a check and that the new text has more often than the
/// old one.
fn suppression(before: &[u8], after: &[u8]) -> Option<&'static str> {
    let (before, after) = (lower(before), lower(after));
    SUPPRESSIONS
        .iter()
        .copied()
        .find(|s| after.matches(s).count() > before.matches(s).count())
}

fn lower(text: &[u8]) -> String {
    String::from_utf8_lossy(text).to_lowercase()
}

/// Returns the lines that only the new text has, by position.
fn added<'t>(before: &[u8], after: &'t [u8]) -> Vec<&'t [u8]> {
    let lines: Vec<&[u8]> = after.split(|b| *b == b'\n').collect();
    let ranges = diff::replaced(before, after)
        .into_iter()
        .map(|(_, to)| to.start as usize..to.end as usize);
    ranges
        .flat_map(|range| lines.get(range).unwrap_or_default().to_vec())
        .collect()
}

/// Returns the lines that only the old text has, by position.
fn removed<'t>(before: &'t [u8], after: &[u8]) -> Vec<&'t [u8]> {
    let lines: Vec<&[u8]> = before.split(|b| *b == b'\n').collect();
    let ranges = diff::replaced(before, after)
        .into_iter()
        .map(|(from, _)| from.start as usize..from.end as usize);
    ranges
        .flat_map(|range| lines.get(range).unwrap_or_default().to_vec())
        .collect()
}

#[cfg(test)]
mod tests;
