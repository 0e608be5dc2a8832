//! The baseline: deferred entries for the existing findings of the code, so that a gate reports
//! only new ones.

use super::decide::{Digests, changed_file, refuse_past, rewrite};
use crate::disposition::{DEFERRED_DAYS, DecisionEntries, DecisionEntry};
use crate::error::{Error, Result};
use crate::finding::{Decision, Finding};
use crate::git::{Repo, State};
use crate::policy::RulesPolicy;
use crate::request::{ReviewRequest, Source};
use crate::review::{self, Review, World, decided, today};
use crate::rules::RuleSet;
use jiff::civil::Date;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Reason of the entries that [`create`] adds.
const REASON: &str = "baseline";

/// The result of comparing existing entries with the current findings of the rules.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BaselineComparison {
    /// Number of entries that match a finding.
    pub holding: usize,
    /// Expired entries, and deferred ones whose finding is gone or whose lines changed.
    pub stale: Vec<DecisionEntry>,
    /// Findings that count and have no entry, as `path:line rule`.
    pub uncovered: Vec<String>,
}

/// The input of a baseline.
#[derive(Clone, Debug)]
pub struct BaselineScope {
    pub dir: PathBuf,
    pub config: Option<PathBuf>,
    /// Path patterns; empty for the whole tree.
    pub files: Vec<String>,
}

impl BaselineScope {
    /// Runs the rules on the files of the worktree. Uses no backend.
    fn review(&self, repo: &Repo, world: &World<'_>) -> Result<Review> {
        let base = Some(repo.empty_tree().to_string());
        let mut request = ReviewRequest::new(Source::Changes { base }, self.dir.clone());
        request.files.clone_from(&self.files);
        request.files_name = "GLOB";
        request.config.clone_from(&self.config);
        request.offline = true;
        let review = review::run(&request, world)?;
        if review.unlisted.total() > 0 {
            let text = format!(
                "{} findings are more than a report lists",
                review.unlisted.total() + review.findings.len()
            );
            return Err(Error::usage(text).hint_person(
                "make the baseline folder by folder: claude-reviewer baseline create 'src/**'",
            ));
        }
        Ok(review)
    }
}

/// Adds an entry to the shared file for each finding that counts and has none. Returns their
/// number.
///
/// # Errors
/// As a review; usage: the shared file is invalid, or there are too many findings. Incomplete: it
/// cannot be written.
pub fn create(
    scope: &BaselineScope,
    repo: &Repo,
    until: Option<Date>,
    world: &World<'_>,
) -> Result<usize> {
    let day = today(world.now);
    refuse_past(until, day)?;
    let review = scope.review(repo, world)?;
    let Some(place) = &review.place else {
        return Err(without_worktree(&scope.dir));
    };
    let expires = until.or_else(|| day.checked_add(jiff::Span::new().days(DEFERRED_DAYS)).ok());
    let mut reader = repo.reader();
    let known = decided::shared(&mut reader, &State::Worktree)?;
    let shared = DecisionEntries::new(known.iter().cloned());
    let mut digests = Digests::default();
    let mut open = Vec::new();
    for finding in review.findings.iter().filter(|f| is_open(f)) {
        let content = decided::content(&mut reader, &State::Worktree, finding);
        let content = content.filter(|content| shared.entry(finding, Some(content), day).is_none());
        open.extend(content.map(|content| (finding, content)));
    }
    let contents: Vec<_> = open
        .iter()
        .map(|(finding, content)| (path_of(finding), content))
        .collect();
    digests.prepare(&contents)?;
    let mut entries = Vec::new();
    for (finding, content) in &open {
        entries.push(DecisionEntry {
            fingerprint: finding.fingerprint().to_string(),
            rule: finding.rule_id().to_owned(),
            path: path_of(finding),
            line: finding
                .quote()
                .lines()
                .next()
                .unwrap_or_default()
                .trim()
                .chars()
                .take(200)
                .collect(),
            digest: Some(digests.of(path_of(finding), content)?),
            occurrence: content.occurrence,
            decision: Decision::Deferred,
            reason: REASON.to_owned(),
            owner: place.actor.clone(),
            created: day,
            expires,
        });
    }
    let mut added = entries.len();
    if added > 0 {
        rewrite(repo, &place.top, |name, before| {
            let mut all = changed_file(name, before, std::iter::empty())?;
            // Preserve a decision that a person recorded during the scan.
            let is_new = |e: &DecisionEntry| {
                all.entries
                    .iter()
                    .all(|other| other.fingerprint != e.fingerprint || known.contains(other))
            };
            entries.retain(is_new);
            added = entries.len();
            entries.into_iter().for_each(|entry| all.put(entry));
            Ok(all.render().into_bytes())
        })?;
    }
    Ok(added)
}

/// Compares the shared file with the current findings of the rules.
///
/// # Errors
/// As [`create`].
pub fn check(scope: &BaselineScope, repo: &Repo, world: &World<'_>) -> Result<BaselineComparison> {
    let review = scope.review(repo, world)?;
    let mut reader = repo.reader();
    let entries = decided::shared(&mut reader, &State::Worktree)?;
    let all = DecisionEntries::new(entries.iter().cloned());
    let day = today(world.now);
    let mut holding = BTreeSet::new();
    let mut out = BaselineComparison::default();
    for finding in &review.findings {
        let content = decided::content(&mut reader, &State::Worktree, finding);
        let held = all.holding(finding, content.as_ref(), day);
        if held.is_empty() && is_open(finding) && finding.file().is_some() {
            out.uncovered.push(name(finding));
        }
        holding.extend(held.into_iter().map(|e| e.fingerprint.clone()));
    }
    out.holding = holding.len();
    if scope.files.is_empty() {
        let rules = RuleSet::new(&RulesPolicy::default(), &[])?;
        let stale = entries.into_iter().filter(|e| {
            e.is_expired(day) || is_visible(e, &rules) && !holding.contains(&e.fingerprint)
        });
        out.stale = stale.collect();
    }
    Ok(out)
}

/// Returns the path of a finding as in reports.
fn path_of(finding: &Finding) -> Option<String> {
    finding.file().map(|path| path.to_wire())
}

/// Returns true if a scan of the tree can find the finding of an entry. It finds no claims of
/// models, and no findings of rules that compare both sides of a change. Entries that accept or
/// reject a finding are not checked: that is for people.
fn is_visible(entry: &DecisionEntry, rules: &RuleSet) -> bool {
    let is_of_tree = entry.reason == REASON || !rules.is_about_change(&entry.rule);
    entry.decision == Decision::Deferred && !entry.is_claim() && is_of_tree
}

/// Removes invalid entries from the shared file. Returns their number.
///
/// # Errors
/// As [`create`].
pub fn prune(scope: &BaselineScope, repo: &Repo, world: &World<'_>) -> Result<usize> {
    let compared = check(scope, repo, world)?;
    let Some(top) = repo.worktree() else {
        return Err(without_worktree(&scope.dir));
    };
    if !compared.stale.is_empty() {
        rewrite(repo, top, |name, before| {
            let mut all = changed_file(name, before, std::iter::empty())?;
            all.entries.retain(|e| !compared.stale.contains(e));
            Ok(all.render().into_bytes())
        })?;
    }
    Ok(compared.stale.len())
}

/// Returns true if only a decision can hide the finding. A person's own decisions are ignored,
/// since the gate does not read them.
fn is_open(finding: &Finding) -> bool {
    finding.waived.is_none() && finding.suppressed.is_none()
}

/// Returns the error for a repository without a worktree.
fn without_worktree(dir: &Path) -> Error {
    Error::usage(format!("{} has no worktree", dir.display()))
        .hint("run this in a clone that has one")
}

/// Returns the name of a finding for messages.
fn name(finding: &Finding) -> String {
    let place = finding
        .file()
        .map(|path| path.to_wire())
        .unwrap_or_default();
    let line = finding
        .lines()
        .map(|l| format!(":{}", l.first))
        .unwrap_or_default();
    format!("{place}{line} {}", finding.rule_id())
}
