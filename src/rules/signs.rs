//! A quick search for text that a rule for secrets may report.
//!
//! It reads a part of a file without the rest. So it knows no false alarm of a rule, and decides
//! only whether the rules have to read the file. [`SecretSigns::None`] means that none of them
//! reports a line of the part, wherever it stands.

use super::catalog::{FILTER, Rule};
use super::leak::pair;
use super::walk::{self, Hay, Match, Scratch, Visitor};
use super::{RuleSet, decode, leak, secret};
use crate::diff;

/// Signs of a secret in a part of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SecretSigns {
    None,
    /// The pattern of a rule matches, and its match is judged by its line.
    Line,
    /// The pattern of a rule matches, and its match is judged by other lines too. A line far from
    /// the match can make a finding of it.
    File,
}

/// Bytes before a kind of a manifest that can contain its key.
const KIND_KEY: usize = 24;

/// Searches whole lines of a file for signs of secrets. `around`: the same lines with those that
/// are near. `wide`: the same lines with those that a row of joined literals can have.
pub(super) fn of(rules: &RuleSet, lines: &[u8], around: &[u8], wide: &[u8]) -> SecretSigns {
    if names_manifest(lines) {
        return SecretSigns::File;
    }
    let mut search = SignSearch {
        rules,
        signs: SecretSigns::None,
    };
    let mut scratch = Scratch::default();
    search.read(lines, &mut scratch);
    decode::views(around, |_, plain| search.read(plain, &mut scratch));
    // A secret may be split over string literals, only one of which is in these lines.
    if let Some(view) = leak::view::joined(wide, false) {
        search.read(&view.text, &mut scratch);
    }
    if search.signs < SecretSigns::File {
        // The line above can continue in the first one.
        for reading in diff::readings_of(around) {
            search.read(&reading, &mut scratch);
        }
    }
    if search.signs == SecretSigns::None && !pair::live_halves(around).is_empty() {
        search.signs = SecretSigns::Line;
    }
    search.signs
}

/// Returns true if a text may be part of the manifest of a Kubernetes Secret, whose values are
/// secrets because of their position.
fn names_manifest(text: &[u8]) -> bool {
    let mut kinds = memchr::memmem::find_iter(text, b"Secret");
    kinds.any(|at| {
        let before = &text[at.saturating_sub(KIND_KEY)..at];
        memchr::memmem::find(before, b"kind").is_some()
    }) || [&b"kubernetes_secret"[..], b"stringData"]
        .iter()
        .any(|word| memchr::memmem::find(text, word).is_some())
}

/// Collects the signs of a text.
struct SignSearch<'a> {
    rules: &'a RuleSet,
    signs: SecretSigns,
}

impl SignSearch<'_> {
    fn read(&mut self, text: &[u8], scratch: &mut Scratch) {
        let rules = self.rules;
        let hay = Hay::whole(text, b"");
        walk::walk(rules, &FILTER, hay, scratch, self);
        rules
            .team
            .with_filter(|f| walk::walk(rules, f, hay, scratch, self));
    }
}

impl Visitor for SignSearch<'_> {
    fn accepts(&mut self, rule: u16) -> bool {
        self.signs < SecretSigns::File
            && self.rules.rule(rule).secret
            && self.rules.is_enabled(rule)
    }

    fn matched(&mut self, rule: u16) -> bool {
        let signs = if is_judged_by_file(self.rules.rule(rule)) {
            SecretSigns::File
        } else {
            SecretSigns::Line
        };
        self.signs = self.signs.max(signs);
        false
    }

    fn found(&mut self, _found: &Match) -> bool {
        true
    }
}

/// Returns true if other lines than that of a match decide whether a rule reports it.
fn is_judged_by_file(rule: &Rule) -> bool {
    let conditions = [
        &rule.file_has,
        &rule.file_lacks,
        &rule.near_has,
        &rule.near_lacks,
        &rule.guarded_by,
        &rule.weak_if,
    ];
    conditions.iter().any(|list| !list.is_empty())
        || rule.checks.iter().any(|c| secret::is_for_key_headers(c))
}
