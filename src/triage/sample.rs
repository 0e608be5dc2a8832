//! A review for the tests of triage.

use super::{TriageItem, TriageSubject};
use crate::diff::{FileChange, ObjectId};
use crate::disposition::{DecisionEntry, Occurrence};
use crate::finding::Decision;
use crate::review::Record;
use crate::wire::{Category, Confidence, Disposition, Finding, Severity, Verdict};
use jiff::civil::{Date, date};

pub(super) const TODAY: Date = date(2026, 11, 24);

const CHANGE: &str = "\
diff --git a/src/app.py b/src/app.py
--- a/src/app.py
+++ b/src/app.py
@@ -1,7 +1,9 @@
 import yaml
 
 def load(path):
-    with open(path) as f:  # the old way
-        return yaml.safe_load(f)
+    # Loads the settings of a customer.
+    return yaml.unsafe_load(open(path))
+
+DEBUG = \"yes\"
 
 def main():
diff --git a/src/web.js b/src/web.js
--- a/src/web.js
+++ b/src/web.js
@@ -10,2 +10,3 @@ function show(user) {
   const name = user.name;
+  document.getElementById('who').innerHTML = name;
 }
";

/// Returns a finding for tests.
pub(super) fn finding(
    id: &str,
    file: Option<&str>,
    line: Option<u32>,
    severity: Severity,
    title: &str,
) -> Finding {
    Finding {
        id: id.to_owned(),
        fingerprint: format!("{:0>32}", id.trim_start_matches('F')),
        rule_id: "python-yaml-unsafe-load".to_owned(),
        origin: "rules".to_owned(),
        file: file.map(str::to_owned),
        line,
        end_line: line,
        column: None,
        commit: None,
        severity,
        category: Category::Security,
        confidence: Confidence::High,
        title: title.to_owned(),
        message:
            "The loader follows tags. An attacker who writes the document can call any function."
                .to_owned(),
        failure: None,
        suggestion: Some("Use a loader that makes plain values only.".to_owned()),
        replacement: None,
        quote: String::new(),
        cwe: Some(502),
        convention: None,
        also: Vec::new(),
        flow: Vec::new(),
        evidence: vec![
            "rule:python-yaml-unsafe-load".to_owned(),
            "quote".to_owned(),
        ],
        blocking: true,
        disputed: None,
        reproduction: None,
        waived: None,
        disposition: Disposition::Pending,
        decided: None,
        suppressed: None,
        references: vec!["https://cwe.mitre.org/data/definitions/502.html".to_owned()],
    }
}

/// Returns a finding without decisions.
pub(super) fn item(finding: Finding) -> TriageItem {
    TriageItem {
        finding,
        entry: None,
        proposal: None,
        is_applied: false,
    }
}

/// Returns an entry of a decision on a finding.
pub(super) fn entry(finding: &Finding, decision: Decision, reason: &str) -> DecisionEntry {
    DecisionEntry {
        fingerprint: finding.fingerprint.clone(),
        rule: finding.rule_id.clone(),
        path: finding.file.clone(),
        line: String::new(),
        digest: None,
        occurrence: Occurrence::ONLY,
        decision,
        reason: reason.to_owned(),
        owner: "Dana <dana@example.com>".to_owned(),
        created: TODAY,
        expires: None,
    }
}

/// Returns a review with four findings: F1 about the whole change, F2 and F3 (rejected) in a Python
/// file, F4 in a script, with a proposal.
pub(super) fn subject() -> TriageSubject {
    let whole = Finding {
        rule_id: "lockfile-drift".to_owned(),
        confidence: Confidence::Low,
        message: "The manifest changed and the lock file did not.".to_owned(),
        suggestion: None,
        blocking: false,
        cwe: None,
        references: Vec::new(),
        ..finding(
            "F1",
            None,
            None,
            Severity::Minor,
            "Lock file is out of date",
        )
    };
    let quote = "    return yaml.unsafe_load(open(path))".to_owned();
    let replacement = Some("    return yaml.safe_load(open(path))".to_owned());
    let app = Some("src/app.py");
    let unsafe_load = Finding {
        quote,
        replacement,
        ..finding(
            "F2",
            app,
            Some(5),
            Severity::Critical,
            "Unsafe YAML loader in Python",
        )
    };
    let debug = Finding {
        rule_id: "debug-left".to_owned(),
        message: "The switch is on in production.".to_owned(),
        quote: "DEBUG = \"yes\"".to_owned(),
        disposition: Disposition::Rejected,
        ..finding(
            "F3",
            app,
            Some(7),
            Severity::Suggestion,
            "Debug switch left on",
        )
    };
    let rejected = entry(&debug, Decision::Rejected, "read by the tests only");
    let html = Finding {
        rule_id: "ai-security".to_owned(),
        origin: "claude".to_owned(),
        confidence: Confidence::Medium,
        message: "The name of the user is written as markup.".to_owned(),
        failure: Some("a user named <img src=x onerror=alert(1)> runs a script".to_owned()),
        disputed: Some("the name is checked at sign-up".to_owned()),
        quote: "document.getElementById('who').innerHTML = name;".to_owned(),
        ..finding(
            "F4",
            Some("src/web.js"),
            Some(11),
            Severity::Major,
            "User name is written as markup",
        )
    };
    let proposal = entry(&html, Decision::Rejected, "names are escaped by the server");
    let items = vec![
        item(whole),
        item(unsafe_load),
        TriageItem {
            entry: Some(rejected),
            ..item(debug)
        },
        TriageItem {
            proposal: Some(proposal),
            ..item(html)
        },
    ];
    TriageSubject {
        id: "2026-11-24-001".to_owned(),
        label: "the staged change".to_owned(),
        pull: Some(12),
        round: 1,
        verdict: Verdict::Block,
        items,
        files: files(CHANGE),
        today: TODAY,
    }
}

/// Parses a change.
pub(super) fn files(change: &str) -> Vec<(Option<ObjectId>, FileChange)> {
    Record::read(change.as_bytes()).unwrap_or_default()
}
