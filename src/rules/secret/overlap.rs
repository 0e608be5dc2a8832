//! Joins matches of several rules for one secret into one finding. Of the rules that match the same
//! text, the rule with the most knowledge reports it. If that rule knows that the text is harmless,
//! no rule reports it.

use crate::finding::{Confidence, Severity};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Rules that identify a secret by the name to which it is assigned.
const BY_NAME: &[&str] = &["hardcoded-credential", "hardcoded-credential-in-config"];
/// Rules that identify a secret by its position.
const BY_PLACE: &[&str] = &[
    "authorization-header",
    "password-argument",
    "token-signing-secret",
    "credential-in-dockerfile",
    "credential-in-xml",
    "credential-in-query",
    "password-on-command-line",
];

/// The knowledge of a rule that identifies the issuer of its secrets.
const ISSUER: u32 = 2;

/// Position of a text that an issuer-specific rule matches but does not report: the number of lines
/// before it, and bytes in its line.
pub(crate) type Spared = (u32, (u32, u32));

/// A match of a rule for secrets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SecretClaim {
    /// The number of lines before it.
    pub(crate) line: u32,
    /// Bytes in its line.
    pub(crate) columns: (u32, u32),
    pub(crate) confidence: Confidence,
    pub(crate) knowledge: u32,
    pub(crate) severity: Severity,
}

/// Returns a rule's knowledge of its secrets: by their name, by their position, or by their issuer.
pub(crate) fn knowledge(rule: &str) -> u32 {
    match rule {
        id if BY_NAME.contains(&id) => 0,
        id if BY_PLACE.contains(&id) => 1,
        _ => ISSUER,
    }
}

/// Returns true if a rule identifies the issuer of its secrets.
pub(crate) fn knows_issuer(rule: &str) -> bool {
    knowledge(rule) == ISSUER
}

/// Returns true for each reported claim: of the claims that overlap in a line, only the best.
///
/// The order is: higher confidence, then a rule that identifies the issuer, then the higher
/// severity, then the longer text. A rule with less knowledge does not report texts in `spared`.
/// Takes n log n steps for n claims.
pub(crate) fn kept(claims: &[SecretClaim], mut spared: Vec<Spared>) -> Vec<bool> {
    if claims.len() < 2 && spared.is_empty() {
        return vec![true; claims.len()];
    }
    spared.sort_unstable();
    let spared = joined(&spared);
    let mut order: Vec<usize> = (0..claims.len())
        .filter(|i| claims[*i].knowledge >= ISSUER || !overlaps(&spared, &claims[*i]))
        .collect();
    order.sort_by_key(|i| {
        let c = &claims[*i];
        let rank = (
            c.confidence,
            c.knowledge,
            c.severity,
            c.columns.1 - c.columns.0,
        );
        (c.line, Reverse(rank), *i)
    });
    let mut out = vec![false; claims.len()];
    for line in order.chunk_by(|a, b| claims[*a].line == claims[*b].line) {
        // The taken claims do not overlap, so a claim can overlap only the last one that starts
        // before its end.
        let mut taken: BTreeMap<u32, u32> = BTreeMap::new();
        for i in line {
            let (start, end) = claims[*i].columns;
            let before = taken.range(..end.max(start + 1)).next_back();
            if before.is_none_or(|(_, taken_end)| *taken_end <= start) {
                taken.insert(start, end);
                out[*i] = true;
            }
        }
    }
    out
}

/// Joins sorted texts that overlap.
fn joined(spared: &[Spared]) -> Vec<Spared> {
    let mut out: Vec<Spared> = Vec::with_capacity(spared.len());
    for (line, (start, end)) in spared {
        match out.last_mut() {
            Some((l, (_, last))) if l == line && start < last => *last = (*last).max(*end),
            _ => out.push((*line, (*start, *end))),
        }
    }
    out
}

/// Returns true if one of several sorted texts, which do not overlap each other, overlaps a claim.
fn overlaps(texts: &[Spared], claim: &SecretClaim) -> bool {
    let (start, end) = claim.columns;
    let i = texts.partition_point(|(line, (_, e))| (*line, *e) <= (claim.line, start));
    texts
        .get(i)
        .is_some_and(|(line, (s, _))| *line == claim.line && *s < end)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(rule: &str, line: u32, columns: (u32, u32), confidence: Confidence) -> SecretClaim {
        SecretClaim {
            line,
            columns,
            confidence,
            knowledge: knowledge(rule),
            severity: Severity::Critical,
        }
    }

    #[test]
    fn keeps_the_rule_that_knows_most() {
        let claims = [
            claim("hardcoded-credential", 1, (4, 40), Confidence::Medium),
            claim("github-personal-token", 1, (4, 40), Confidence::High),
            claim("npm-token", 1, (50, 90), Confidence::High),
            claim("hardcoded-credential", 2, (4, 40), Confidence::Medium),
            claim("vercel-token", 2, (4, 28), Confidence::Medium),
        ];
        assert_eq!(kept(&claims, Vec::new()), [false, true, true, false, true]);
    }

    #[test]
    fn the_best_of_many_that_overlap_is_found_wherever_it_stands() {
        let mut claims: Vec<SecretClaim> = (0..500)
            .map(|i| claim("npm-token", 1, (i * 20, i * 20 + 15), Confidence::High))
            .collect();
        claims.push(claim(
            "hardcoded-credential",
            1,
            (3, 12),
            Confidence::Medium,
        ));
        claims.push(claim(
            "hardcoded-credential",
            1,
            (15, 20),
            Confidence::Medium,
        ));
        let kept = kept(&claims, Vec::new());
        assert!(kept[..500].iter().all(|k| *k));
        assert_eq!(kept[500..], [false, true]);
    }

    #[test]
    fn what_the_rule_of_the_issuer_spares_is_no_finding_of_one_that_knows_less() {
        let claims = [
            claim("hardcoded-credential", 1, (4, 40), Confidence::Medium),
            claim("authorization-header", 2, (4, 40), Confidence::High),
            claim("npm-token", 2, (50, 90), Confidence::High),
            claim("hardcoded-credential", 3, (4, 40), Confidence::Medium),
        ];
        let spared = vec![(2, (10, 20)), (1, (4, 40)), (2, (60, 70)), (3, (40, 50))];
        assert_eq!(kept(&claims, spared), [false, false, true, true]);
        assert_eq!(kept(&claims, vec![(4, (0, 100))]), [true; 4]);
        // Every one of many texts on a line counts.
        let many = (0..200)
            .map(|i| (3, (100 + i * 10, 105 + i * 10)))
            .chain([(3, (30, 35))])
            .collect();
        assert_eq!(kept(&claims, many), [true, true, true, false]);
    }
}
