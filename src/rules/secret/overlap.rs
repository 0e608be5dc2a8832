//! One secret, one finding: of the rules that saw the same text, the one that knows most about it speaks, and where
//! that one knows the text to be harmless, nobody does.

use crate::diff::LineNo;
use crate::finding::{Finding, LineSpan};
use std::cmp::Reverse;

/// Rules that know a secret by the name it is assigned to.
const BY_NAME: &[&str] = &["hardcoded-credential", "hardcoded-credential-in-config"];
/// Rules that know a secret by where it stands.
const BY_PLACE: &[&str] = &[
    "authorization-header",
    "password-argument",
    "token-signing-secret",
    "credential-in-dockerfile",
    "credential-in-xml",
    "credential-in-query",
    "password-on-command-line",
];

/// The knowledge of a rule that knows who issues the secrets it finds.
pub(crate) const ISSUER: u32 = 2;

/// Where a text stands that a rule with the knowledge of its issuer lets be: the line, and bytes in it.
pub(crate) type Spared = (LineNo, (u32, u32));

/// Returns how much a rule knows of the secrets it finds: the name they are given, the place, or the issuer.
pub(crate) fn knowledge(rule: &str) -> u32 {
    match rule {
        id if BY_NAME.contains(&id) => 0,
        id if BY_PLACE.contains(&id) => 1,
        _ => ISSUER,
    }
}

/// The most of a line that one finding is compared with: a line with a thousand is no reason to compare a million
/// pairs.
const COMPARED: usize = 64;

/// Keeps, of the findings from `from` on that overlap in a line, the best one; `is_secret` tells by the id of a
/// rule whether it finds secrets, and others are left alone.
///
/// Better is: higher confidence, then a rule that knows the issuer, then the worse severity, then the longer text.
/// What is `spared` is no finding of a rule that knows less.
pub(crate) fn settle(
    findings: &mut Vec<Finding>,
    from: usize,
    mut spared: Vec<Spared>,
    is_secret: impl Fn(&str) -> bool,
) {
    spared.sort_unstable();
    let mut fresh: Vec<(usize, LineSpan, (u32, u32))> = findings
        .iter()
        .enumerate()
        .skip(from)
        .filter(|(_, f)| is_secret(f.rule_id()))
        .filter_map(|(i, f)| f.lines().and_then(|l| l.columns.map(|c| (i, l, c))))
        .collect();
    if fresh.len() < 2 && spared.is_empty() {
        return;
    }
    let rank = |i: usize, columns: (u32, u32)| {
        let f = &findings[i];
        (f.confidence(), knowledge(f.rule_id()), f.severity(), columns.1 - columns.0)
    };
    fresh.sort_by_key(|(i, l, c)| (l.first, Reverse(rank(*i, *c)), *i));
    let mut lost = vec![false; findings.len()];
    for (i, lines, (start, end)) in &fresh {
        let known = &spared[spared.partition_point(|(line, _)| *line < lines.first)..];
        let mut here = known.iter().take(COMPARED).take_while(|(line, _)| *line == lines.first);
        lost[*i] = knowledge(findings[*i].rule_id()) < ISSUER && here.any(|(_, (s, e))| s < end && start < e);
    }
    fresh.retain(|(i, _, _)| !lost[*i]);
    for line in fresh.chunk_by(|a, b| a.1.first == b.1.first) {
        let mut kept: Vec<(u32, u32)> = Vec::new();
        for (i, _, (start, end)) in line {
            if kept.iter().rev().take(COMPARED).any(|(s, e)| start < e && s < end) {
                lost[*i] = true;
            } else {
                kept.push((*start, *end));
            }
        }
    }
    let mut index = 0;
    findings.retain(|_| {
        index += 1;
        !lost[index - 1]
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diff::{LineNo, RepoPath};
    use crate::finding::{Category, Confidence, Draft, Location, Proof, Severity};

    fn finding(rule: &str, line: u32, columns: (u32, u32), confidence: Confidence) -> Finding {
        let line = LineNo::new(line).expect("a line");
        let lines = Some(LineSpan { first: line, last: line, columns: Some(columns) });
        let draft = Draft {
            rule_id: rule.to_owned(),
            location: Some(Location { file: RepoPath::from("a"), lines }),
            severity: Severity::Critical,
            category: Category::Security,
            title: String::new(),
            message: String::new(),
            failure: None,
            suggestion: None,
            replacement: None,
            quote: String::new(),
            cwe: None,
            convention: None,
            references: Vec::new(),
        };
        Finding::new(Proof::rule(rule, confidence), draft)
    }

    #[test]
    fn keeps_the_rule_that_knows_most() {
        let mut findings = vec![
            finding("other", 1, (0, 9), Confidence::Medium),
            finding("hardcoded-credential", 1, (4, 40), Confidence::Medium),
            finding("github-personal-token", 1, (4, 40), Confidence::High),
            finding("npm-token", 1, (50, 90), Confidence::High),
            finding("hardcoded-credential", 2, (4, 40), Confidence::Medium),
            finding("vercel-token", 2, (4, 28), Confidence::Medium),
        ];
        settle(&mut findings, 0, Vec::new(), |id| id != "other");
        let ids: Vec<_> = findings.iter().map(Finding::rule_id).collect();
        assert_eq!(ids, ["other", "github-personal-token", "npm-token", "vercel-token"]);
    }

    #[test]
    fn leaves_earlier_findings_alone() {
        let mut findings = vec![
            finding("npm-token", 1, (0, 9), Confidence::Medium),
            finding("npm-token", 1, (0, 9), Confidence::High),
        ];
        settle(&mut findings, 1, Vec::new(), |_| true);
        assert_eq!(findings.len(), 2);
    }

    #[test]
    fn what_the_rule_of_the_issuer_lets_be_is_no_finding_of_one_that_knows_less() {
        let all = || {
            vec![
                finding("hardcoded-credential", 1, (4, 40), Confidence::Medium),
                finding("authorization-header", 2, (4, 40), Confidence::High),
                finding("npm-token", 2, (50, 90), Confidence::High),
                finding("hardcoded-credential", 3, (4, 40), Confidence::Medium),
            ]
        };
        let left = |spared: &[(u32, (u32, u32))]| -> Vec<_> {
            let mut findings = all();
            let spared = spared.iter().map(|(n, c)| (LineNo::new(*n).expect("a line"), *c)).collect();
            settle(&mut findings, 0, spared, |_| true);
            findings.iter().filter_map(|f| f.lines().map(|l| (l.first.get(), f.rule_id().to_owned()))).collect()
        };
        let kept = |n: u32, id: &str| (n, id.to_owned());
        assert_eq!(
            left(&[(2, (10, 20)), (1, (4, 40)), (2, (60, 70)), (3, (40, 50))]),
            [kept(2, "npm-token"), kept(3, "hardcoded-credential")]
        );
        assert_eq!(left(&[(4, (0, 100))]).len(), 4);
    }
}
