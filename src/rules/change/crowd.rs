//! Replaces findings that a mass change repeats for every file by one finding.

use crate::diff::{ObjectId, RepoPath};
use crate::finding::Finding;
use crate::rules::RuleSet;
use crate::rules::report::{Reporter, Sighting};
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;

/// The rule that reports every file of a recursive `chmod`.
pub(crate) const RULE: &str = "executable-bit";
/// Files of one change that are reported individually, at most.
const SINGLE: usize = 5;
/// Files whose names are listed if there are more.
const NAMED: usize = 3;

/// Replaces many findings about files by one finding about the change. `may` returns true if a
/// finding may be replaced: the thresholds of its file are the same as those of the change.
pub(in crate::rules) fn gather(
    rules: &RuleSet,
    may: &dyn Fn(&Finding) -> bool,
    findings: &mut Vec<Finding>,
) {
    let mut crowds: BTreeMap<Option<ObjectId>, Vec<RepoPath>> = BTreeMap::new();
    for f in findings.iter().filter(|f| may_be_joined(f, may)) {
        crowds
            .entry(f.commit)
            .or_default()
            .extend(f.file().cloned());
    }
    crowds.retain(|_, files| files.len() > SINGLE);
    findings.retain(|f| !(may_be_joined(f, may) && crowds.contains_key(&f.commit)));
    for (commit, mut files) in crowds {
        files.sort();
        let first = findings.len();
        about(rules, &files, findings);
        findings[first..].iter_mut().for_each(|f| f.commit = commit);
    }
}

/// Returns true if a finding of the rule is about a file, is reported, and may be left out.
fn may_be_joined(f: &Finding, may: &dyn Fn(&Finding) -> bool) -> bool {
    f.rule_id() == RULE && f.suppressed.is_none() && f.file().is_some() && may(f)
}

fn about(rules: &RuleSet, files: &[RepoPath], out: &mut Vec<Finding>) {
    let mut all = Sha256::new();
    for file in files {
        all.update(file.as_bytes());
        all.update([0]);
    }
    let some = files
        .iter()
        .take(NAMED)
        .map(|f| String::from_utf8_lossy(&rules.mask(f.as_bytes())).into_owned());
    let some = some.collect::<Vec<_>>().join(", ");
    let n = files.len();
    let detail = format!("so can {n} files, among them {some}");
    // The digest represents the names that are not shown, so that a waiver of these files does not
    // cover others.
    let quote = format!(
        "{n} files ({}): {some}",
        crate::hex::encode(&all.finalize()[..8])
    );
    let sighting = Sighting {
        quote: quote.as_bytes(),
        detail: Some(&detail),
        ..Sighting::default()
    };
    Reporter::new(rules, None, out).report(RULE, sighting);
}
