//! Masks secrets in file names: a report names the file without them.

use crate::diff::RepoPath;
use crate::finding::{Evidence, Finding};
use crate::policy::RulesPolicy;
use crate::review::Review;
use crate::rules::RuleSet;
use serde_json::Value;
use std::collections::BTreeSet;
use std::io::{self, Write};

/// The secrets in file names, each in the forms that a format may write, with its mask.
#[derive(Debug, Default)]
pub(crate) struct SecretNames {
    replaced: Vec<(Vec<u8>, Vec<u8>)>,
}

impl SecretNames {
    /// Finds the secrets in the file names of a review.
    pub(crate) fn of(review: &Review) -> Self {
        Self::of_paths(paths(review))
    }

    /// Finds the secrets in paths.
    fn of_paths(paths: BTreeSet<&RepoPath>) -> Self {
        // Independent of the policy: names are compared between rounds, and the policy can change
        // between two rounds.
        let Ok(rules) = RuleSet::new(&RulesPolicy::default(), &[]) else {
            return Self::default();
        };
        let mut out = Self::default();
        for path in paths {
            for secret in rules.secrets(path.as_bytes()) {
                out.add(&path.as_bytes()[secret.span.clone()], secret.kept());
            }
        }
        // The longest first, because one secret can be part of another.
        out.replaced
            .sort_by_key(|(secret, _)| std::cmp::Reverse(secret.len()));
        out.replaced.dedup();
        out
    }

    /// Finds the secrets in the file names of findings.
    pub(super) fn of_findings(findings: &[Finding]) -> Self {
        Self::of_paths(paths_of(findings))
    }

    fn add(&mut self, secret: &[u8], kept: usize) {
        let kept = if secret.len() >= 16 { kept } else { 0 };
        let mask = [&secret[..kept], &vec![b'*'; secret.len() - kept][..]].concat();
        let (mut address, mut page) = (Vec::new(), Vec::new());
        for b in secret {
            match b {
                b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' | b'/' => {
                    address.push(*b);
                }
                b => address.extend(format!("%{b:02X}").bytes()),
            }
            match b {
                b'&' => page.extend(b"&amp;"),
                b'<' => page.extend(b"&lt;"),
                b'>' => page.extend(b"&gt;"),
                b => page.push(*b),
            }
        }
        for written in BTreeSet::from([secret.to_vec(), address, page]) {
            self.replaced.push((written, mask.clone()));
        }
    }

    /// Masks the secrets in every text of a value.
    pub(crate) fn mask(&self, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.masked(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.mask(item)),
            Value::Object(members) => members.values_mut().for_each(|member| self.mask(member)),
            _ => {}
        }
    }

    /// Returns a text with the secrets masked.
    pub(crate) fn masked(&self, text: &str) -> String {
        let mut out = text.as_bytes().to_vec();
        for (secret, mask) in &self.replaced {
            out = replaced(&out, secret, mask);
        }
        String::from_utf8_lossy(&out).into_owned()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.replaced.is_empty()
    }

    /// Writes a report with the secrets masked.
    pub(super) fn write(&self, report: &[u8], out: &mut dyn Write) -> io::Result<()> {
        let mut text = report.to_vec();
        for (secret, mask) in &self.replaced {
            text = replaced(&text, secret, mask);
        }
        out.write_all(&text)
    }
}

/// Replaces each occurrence of a secret by its mask.
fn replaced(text: &[u8], secret: &[u8], mask: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut from = 0;
    for at in memchr::memmem::find_iter(text, secret) {
        out.extend_from_slice(&text[from..at]);
        out.extend_from_slice(mask);
        from = at + secret.len();
    }
    out.extend_from_slice(&text[from..]);
    out
}

/// Returns every path that a report can name.
fn paths(review: &Review) -> BTreeSet<&RepoPath> {
    let coverage = &review.coverage;
    let mut out = paths_of(&review.findings);
    out.extend(review.notes.iter().filter_map(|n| n.file.as_ref()));
    out.extend(review.first_change.iter().map(|l| &l.file));
    out.extend(coverage.skipped.iter().map(|(path, _)| path));
    out.extend(coverage.failed.iter().filter_map(|f| f.file.as_ref()));
    out
}

/// Returns every path that findings name.
fn paths_of(findings: &[Finding]) -> BTreeSet<&RepoPath> {
    let evidence = findings.iter().flat_map(Finding::evidence);
    let files = findings.iter().filter_map(Finding::file);
    files.chain(evidence.filter_map(read)).collect()
}

/// Returns the file that a model read as evidence.
fn read(evidence: &Evidence) -> Option<&RepoPath> {
    match evidence {
        Evidence::Read { path, .. } => Some(path),
        _ => None,
    }
}
