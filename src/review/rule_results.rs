//! The part of a review that always runs: the rules over the whole change, without network access.

use super::prepare::Prepared;
use super::record::RecordPiece;
use super::resolved::ChangePart;
use super::scan::RuleScan;
use super::{Note, Stat, blobs, weakened};
use crate::diff::{ObjectId, RepoPath};
use crate::finding::listing::{Counted, Floor, Unlisted, text_of};
use crate::finding::{Finding, Location, arrange};
use crate::rules::{self, Scope};
use crate::verdict::{Coverage, FailureCause};
use std::collections::HashSet;

/// Results of the rules.
pub(super) struct RuleResults {
    /// Arranged findings. Those that a waiver or a decision of a person dismisses are marked.
    pub(super) findings: Vec<Finding>,
    pub(super) unlisted: Unlisted,
    pub(super) coverage: Coverage,
    pub(super) stat: Stat,
    pub(super) first_change: Option<Location>,
    pub(super) notes: Vec<Note>,
    /// Files read from the worktree, with the IDs of their content.
    pub(super) seen: Vec<(RepoPath, ObjectId)>,
    /// The change as text, if a record is requested.
    pub(super) pieces: Vec<RecordPiece>,
}

/// Scans the change with the rules, and lists what they find.
pub(super) fn scan(prepared: &Prepared<'_>) -> RuleResults {
    let pass_on = |found: &[Finding]| prepared.stream(found);
    let scan = RuleScan {
        stream: prepared.is_streamed().then_some(&pass_on),
        ..prepared.rule_scan()
    };
    let parts = &prepared.resolved.parts;
    prepared.stream_start();
    let mut scanned = scan.run(parts);
    if let Some(scope) = &prepared.resolved.history {
        let head = scan.repo.and_then(|repo| repo.head().ok().flatten());
        let tree = head.and_then(|id| scan.repo?.tree_of(id).ok());
        blobs::scan_history(&scan, scope, tree, &mut scanned);
        // The search names HEAD too if it cannot be followed. The report shows a reason once.
        if let Some(why) = prepared.resolved.broken_head.clone() {
            scanned.coverage.fail(FailureCause::Other(why));
        }
    }
    if scan.is_for_the_whole() {
        if prepared.resolved.history.is_none() {
            scanned.notes.extend(unmatched_patterns(&scan, parts));
        }
        scanned.findings.extend(scan.gathered_elsewhere(parts));
    } else {
        scanned.findings.retain(|f| f.rule_id() != rules::GATHERED);
    }
    if let Some(repo) = scan
        .repo
        .filter(|_| scan.is_for_the_whole() && !scan.is_tree)
    {
        weakened::weakened(repo, parts, (scan.rules, scan.authority), &mut scanned);
    }
    let mut counted = std::mem::take(&mut scanned.counted);
    let findings = std::mem::take(&mut scanned.findings);
    let mut findings = without_repeats(findings, &mut counted, parts);
    // Findings of files with other thresholds than the change as a whole are not gathered.
    let of_all = scan.policy.thresholds(None);
    scan.rules.gather(
        &|f| scan.policy.thresholds(f.file()) == of_all,
        &mut findings,
    );
    Floor::default().cut(&mut findings, 0, |f| counted.push(scan.count(f, parts)));
    let findings = prepared.dismiss(arrange(findings));
    RuleResults {
        unlisted: Unlisted::of(&counted, &findings),
        findings,
        coverage: scanned.coverage,
        stat: scanned.stat,
        first_change: scanned.first_change,
        notes: scanned.notes,
        seen: scanned.seen,
        pieces: scanned.pieces,
    }
}

/// Returns a note about the patterns of `--files` that match no file of the change.
fn unmatched_patterns(scan: &RuleScan<'_>, parts: &[ChangePart]) -> Option<Note> {
    if scan.shard.is_some() {
        // The files of other shards were not scanned.
        parts.iter().for_each(|part| scan.files.match_change(part));
    }
    let unmatched: Vec<_> = scan.files.unmatched().collect();
    if unmatched.is_empty() {
        return None;
    }
    let (name, unmatched) = (scan.files.name(), unmatched.join(", "));
    let text = format!("{name}: not part of the change: {unmatched}");
    Some(Note::general("git", scan.rules.masked(&text)))
}

/// Drops findings that the commits inside a branch repeat: one finding is enough for a secret that
/// the net change shows, or that an earlier commit has. Findings are compared by their unmasked
/// text, so another secret with the same masked text is a separate finding.
fn without_repeats(
    findings: Vec<Finding>,
    counted: &mut Vec<Counted>,
    parts: &[ChangePart],
) -> Vec<Finding> {
    let findings = without_net_repeats(findings, parts);
    let inside: Vec<ObjectId> = parts
        .iter()
        .filter(|p| p.scope == Scope::Secrets)
        .filter_map(|p| p.commit)
        .collect();
    if inside.is_empty() {
        return findings;
    }
    let (mut commits, mut kept): (Vec<_>, Vec<_>) = findings
        .into_iter()
        .partition(|f| index_in(&inside, f).is_some());
    commits.sort_by_cached_key(|f| (index_in(&inside, f), f.suppressed.is_some()));
    let mut shown: HashSet<u64> = kept.iter().map(text_of).collect();
    shown.extend(counted.iter().filter(|c| !c.is_inside).map(Counted::text));
    kept.extend(commits.into_iter().filter(|f| shown.insert(text_of(f))));
    counted.retain(|c| !c.is_inside || shown.insert(c.text()));
    kept
}

/// Returns the index of the commit that has a finding.
fn index_in(commits: &[ObjectId], f: &Finding) -> Option<usize> {
    f.commit
        .and_then(|commit| commits.iter().position(|c| *c == commit))
}

/// Drops findings that the net change of a range repeats: each of its commits reports the same
/// findings for the lines that it adds.
fn without_net_repeats(mut findings: Vec<Finding>, parts: &[ChangePart]) -> Vec<Finding> {
    let is_range = parts.iter().any(|p| p.is_repeat)
        && parts.iter().all(|p| p.is_repeat || p.commit.is_some());
    if is_range {
        let shown: HashSet<_> = findings
            .iter()
            .filter(|f| f.commit.is_some())
            .map(text_key)
            .collect();
        findings.retain(|f| f.commit.is_some() || !shown.contains(&text_key(f)));
    }
    findings
}

/// Returns the rule, the file and the text of a finding: two commits that add the same line have
/// equal keys.
fn text_key(f: &Finding) -> (String, Option<RepoPath>, u64) {
    (f.rule_id().to_owned(), f.file().cloned(), f.identity)
}
