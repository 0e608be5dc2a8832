//! Stored rounds for tests of comparisons.

use crate::diff::{
    Attribute, Body, ChangeKind, Entry, FileChange, FileMode, RepoPath, Side, unified,
};
use crate::report::{json, sample};
use crate::wire::stored::{
    Action, Advice, Response, Review, RoundTotals, Since, Status, StoredChange,
};
use crate::wire::{
    BackendUsage, Category, Confidence, Disposition, Finding, Outcome, Report, Severity, Verdict,
};
use std::collections::HashMap;

/// Returns a claim of the backend `m` at a line of `a.rs`.
pub(super) fn claim(line: u32, title: &str) -> Finding {
    Finding {
        id: String::new(),
        fingerprint: String::new(),
        rule_id: "ai-bug".to_owned(),
        origin: "m".to_owned(),
        file: Some("a.rs".to_owned()),
        line: Some(line),
        end_line: Some(line),
        column: None,
        commit: None,
        severity: Severity::Major,
        category: Category::Bug,
        confidence: Confidence::Medium,
        title: title.to_owned(),
        message: format!("{title}."),
        failure: None,
        suggestion: None,
        replacement: None,
        quote: format!("quote of {title}"),
        cwe: None,
        convention: None,
        also: Vec::new(),
        flow: Vec::new(),
        evidence: vec!["quote".to_owned()],
        blocking: true,
        disputed: None,
        reproduction: None,
        waived: None,
        disposition: Disposition::Pending,
        decided: None,
        suppressed: None,
        references: Vec::new(),
    }
}

/// Returns a finding of a rule at a line of `a.rs`.
pub(super) fn rule(id: &str, line: u32) -> Finding {
    let quote = format!("text of {id}");
    Finding {
        rule_id: id.to_owned(),
        origin: "rules".to_owned(),
        quote,
        ..claim(line, id)
    }
}

/// Returns a finished report of a round with the backend `m`, with IDs and fingerprints as in a
/// run.
pub(super) fn report(round: u32, mut findings: Vec<Finding>) -> Report {
    let mut seen: HashMap<String, usize> = HashMap::new();
    for (i, f) in findings.iter_mut().enumerate() {
        f.id = format!("F{}", i + 1);
        let words: Vec<_> = f.quote.split_whitespace().collect();
        let key = format!("{}|{:?}|{}", f.rule_id, f.file, words.join(" "));
        let ordinal = seen.entry(key.clone()).or_default();
        f.fingerprint = format!("{key}#{ordinal}");
        *ordinal += 1;
    }
    let blocks = findings.iter().any(|f| f.blocking);
    let usage = BackendUsage {
        backend: "m".to_owned(),
        model: "model".to_owned(),
        requests: 1,
        from_cache: 0,
        failed: 0,
        batch: false,
        earlier_usd: None,
        input_tokens: 0,
        cached_tokens: 0,
        output_tokens: 0,
        cost_usd: None,
        duration_ms: 0,
    };
    Report {
        round,
        findings,
        verdict: if blocks {
            Verdict::Block
        } else {
            Verdict::Pass
        },
        outcome: Outcome::Reviewed,
        usage: vec![usage],
        ..json::report(&sample::clean())
    }
}

/// Returns a round as it is stored.
pub(super) fn stored(report: Report, since: Option<Since>) -> Review {
    Review {
        schema_version: 1,
        review_id: "2026-01-31-001".to_owned(),
        timestamp: report.timestamp.clone(),
        status: Status::NeedsChanges,
        round: report.round,
        outcome: report.outcome,
        verdict: report.verdict,
        design_compliance: None,
        comments: Vec::new(),
        missing_requirements: Vec::new(),
        summary: RoundTotals::default(),
        test_results: None,
        overall_assessment: None,
        author_summary: None,
        since,
        advice: Advice {
            action: Action::Fix,
            text: String::new(),
            circling: Vec::new(),
        },
        change: StoredChange::default(),
        report,
    }
}

/// Returns a response that explains a finding.
pub(super) fn explains(finding: &str, text: &str) -> Response {
    let explanations = vec![crate::wire::stored::Explanation {
        finding: Some(finding.to_owned()),
        text: text.to_owned(),
    }];
    Response {
        explanations,
        ..Response::default()
    }
}

/// Returns the change of a file from one text to another; the file is new if `old` is empty.
pub(super) fn change(path: &str, old: &str, new: &str) -> Vec<u8> {
    if old == new {
        return Vec::new();
    }
    let side = Side {
        path: RepoPath::from(path),
        mode: FileMode::Regular,
        id: None,
    };
    let (kind, before, text) = match old {
        "" => (ChangeKind::Added, None, None),
        _ => (
            ChangeKind::Modified,
            Some(side.clone()),
            Some(old.as_bytes().to_vec()),
        ),
    };
    let body = Body::between(text, Some(new.as_bytes().to_vec()), Attribute::Unset);
    let mut out = Vec::new();
    unified::write(
        &FileChange {
            entry: Entry {
                kind,
                old: before,
                new: Some(side),
            },
            body,
        },
        &mut out,
    );
    out
}
