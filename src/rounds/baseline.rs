//! The baseline: deferred entries for the findings that code has already, so that a gate starts with what is new.

use super::decide::{Digests, changed_file, refuse_past, rewrite};
use crate::disposition::{DEFERRED_DAYS, Entries, Entry};
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

/// The reason of the entries that [`create`] makes.
const REASON: &str = "baseline";

/// What existing entries say beside what the rules find now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Compared {
    /// Entries that hold for a finding.
    pub holding: usize,
    /// Entries that have expired, and deferred ones whose finding is gone or about other lines.
    pub stale: Vec<Entry>,
    /// Findings that count and have no entry, as `path:line rule`.
    pub uncovered: Vec<String>,
}

/// What a baseline is made from.
#[derive(Clone, Debug)]
pub struct Scope {
    pub dir: PathBuf,
    pub config: Option<PathBuf>,
    /// Patterns of paths; empty: the whole tree.
    pub files: Vec<String>,
}

impl Scope {
    /// Runs the rules over the files of the worktree. No backend is asked.
    fn review(&self, repo: &Repo, world: &World<'_>) -> Result<Review> {
        let base = Some(repo.empty_tree().to_string());
        let mut request = ReviewRequest::new(Source::Changes { base }, self.dir.clone());
        request.files.clone_from(&self.files);
        request.files_name = "GLOB";
        request.config.clone_from(&self.config);
        request.offline = true;
        let review = review::run(&request, world)?;
        if review.unlisted.total() > 0 {
            let text =
                format!("{} findings are more than a report lists", review.unlisted.total() + review.findings.len());
            return Err(Error::usage(text)
                .hint_person("make the baseline folder by folder: claude-reviewer baseline create 'src/**'"));
        }
        Ok(review)
    }
}

/// Adds an entry to the shared file for each finding that counts and has none. Returns how many.
///
/// # Errors
/// Those of a review; usage: the shared file has an error, or there are too many findings. Incomplete: it cannot be written.
pub fn create(scope: &Scope, repo: &Repo, until: Option<Date>, world: &World<'_>) -> Result<usize> {
    let day = today(world.now);
    refuse_past(until, day)?;
    let review = scope.review(repo, world)?;
    let Some(place) = &review.place else { return Err(without_worktree(&scope.dir)) };
    let expires = until.or_else(|| day.checked_add(jiff::Span::new().days(DEFERRED_DAYS)).ok());
    let mut reader = repo.reader();
    let known = decided::shared(&mut reader, &State::Worktree)?;
    let shared = Entries::new(known.iter().cloned());
    let mut digests = Digests::default();
    let mut open = Vec::new();
    for finding in review.findings.iter().filter(|f| is_open(f)) {
        let content = decided::content(&mut reader, &State::Worktree, finding);
        let content = content.filter(|content| shared.entry(finding, Some(content), day).is_none());
        open.extend(content.map(|content| (finding, content)));
    }
    let path = |finding: &Finding| finding.file().map(|path| path.to_wire());
    let contents: Vec<_> = open.iter().map(|(finding, content)| (path(finding), content)).collect();
    digests.prepare(&contents)?;
    let mut entries = Vec::new();
    for (finding, content) in &open {
        entries.push(Entry {
            fingerprint: finding.fingerprint().to_string(),
            rule: finding.rule_id().to_owned(),
            path: finding.file().map(|path| path.to_wire()),
            line: finding.quote().lines().next().unwrap_or_default().trim().chars().take(200).collect(),
            digest: Some(digests.of(path(finding), content)?),
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
            // A decision of a person that was recorded during the scan stays.
            let is_new =
                |e: &Entry| all.entries.iter().all(|other| other.fingerprint != e.fingerprint || known.contains(other));
            entries.retain(is_new);
            added = entries.len();
            entries.into_iter().for_each(|entry| all.put(entry));
            Ok(all.render().into_bytes())
        })?;
    }
    Ok(added)
}

/// Compares the shared file with what the rules find now.
///
/// # Errors
/// As [`create`].
pub fn check(scope: &Scope, repo: &Repo, world: &World<'_>) -> Result<Compared> {
    let review = scope.review(repo, world)?;
    let mut reader = repo.reader();
    let entries = decided::shared(&mut reader, &State::Worktree)?;
    let all = Entries::new(entries.iter().cloned());
    let day = today(world.now);
    let mut holding = BTreeSet::new();
    let mut out = Compared::default();
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
        let is_gone = |e: &Entry| is_visible(e, &rules) && !holding.contains(&e.fingerprint);
        out.stale = entries.into_iter().filter(|e| e.is_expired(day) || is_gone(e)).collect();
    }
    Ok(out)
}

/// Returns true if a scan of the tree would find what an entry is about. It finds no claims of models, and not what rules
/// find by both sides of a change. A decision that a finding is wrong or right is not judged: that is for people.
fn is_visible(entry: &Entry, rules: &RuleSet) -> bool {
    let is_of_tree = entry.reason == REASON || !rules.is_about_change(&entry.rule);
    entry.decision == Decision::Deferred && !entry.is_claim() && is_of_tree
}

/// Removes entries that no longer hold from the shared file. Returns how many.
///
/// # Errors
/// As [`create`].
pub fn prune(scope: &Scope, repo: &Repo, world: &World<'_>) -> Result<usize> {
    let compared = check(scope, repo, world)?;
    let Some(top) = repo.worktree() else { return Err(without_worktree(&scope.dir)) };
    if !compared.stale.is_empty() {
        rewrite(repo, top, |name, before| {
            let mut all = changed_file(name, before, std::iter::empty())?;
            all.entries.retain(|e| !compared.stale.contains(e));
            Ok(all.render().into_bytes())
        })?;
    }
    Ok(compared.stale.len())
}

/// Returns true if nothing but a decision sets the finding aside. A person's own decisions do not count: the gate does not
/// read them.
fn is_open(finding: &Finding) -> bool {
    finding.waived.is_none() && finding.suppressed.is_none()
}

fn without_worktree(dir: &Path) -> Error {
    Error::usage(format!("{} has no worktree", dir.display())).hint("run this in a clone that has one")
}

fn name(finding: &Finding) -> String {
    let place = finding.file().map(|path| path.to_wire()).unwrap_or_default();
    let line = finding.lines().map(|l| format!(":{}", l.first)).unwrap_or_default();
    format!("{place}{line} {}", finding.rule_id())
}
