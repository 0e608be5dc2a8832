//! What SARIF says of each rule that found something.

use super::bag;
use crate::finding::{Category, Confidence, Finding, Severity};
use crate::untrusted::{self, markdown};
use serde_json::json;
use serde_sarif::sarif;
use std::collections::BTreeMap;

/// Returns the descriptors of the rules behind some findings, by id.
pub(super) fn of(findings: &[&Finding]) -> Vec<sarif::ReportingDescriptor> {
    let mut worst: BTreeMap<&str, &Finding> = BTreeMap::new();
    for f in findings {
        let known = worst.entry(f.rule_id()).or_insert(f);
        if f.severity() > known.severity() {
            *known = f;
        }
    }
    worst.into_values().map(descriptor).collect()
}

fn descriptor(f: &Finding) -> sarif::ReportingDescriptor {
    let mut d = sarif::ReportingDescriptor::builder().id(f.rule_id()).build();
    d.name = Some(pascal(f.rule_id()));
    d.short_description = Some(text(untrusted::plain(f.title())));
    d.full_description = Some(text(untrusted::plain(if f.message().is_empty() { f.title() } else { f.message() })));
    d.help = Some(help(f));
    d.help_uri = f.references().iter().find(|r| r.starts_with("https://")).map(|r| untrusted::plain(r));
    d.default_configuration =
        Some(sarif::ReportingConfiguration { level: Some(json!(super::level(f.severity()))), ..Default::default() });
    let mut tags = vec![f.category().name().to_owned()];
    if let Some(cwe) = f.cwe() {
        tags.push(format!("external/cwe/cwe-{cwe:03}"));
    }
    let precision = match f.confidence() {
        Confidence::High => "high",
        Confidence::Medium => "medium",
        Confidence::Low => "low",
    };
    let problem = match f.severity() {
        Severity::Critical | Severity::Major => "error",
        Severity::Minor => "warning",
        Severity::Suggestion => "recommendation",
    };
    let mut facts = vec![("precision", json!(precision)), ("problem.severity", json!(problem))];
    if f.category() == Category::Security {
        facts.push(("security-severity", json!(score(f.severity()))));
    }
    d.properties = Some(bag(Some(tags), facts));
    d
}

/// Returns the score that GitHub turns into critical (9 up), high (7), medium (4), low.
fn score(severity: Severity) -> &'static str {
    match severity {
        Severity::Critical => "9.5",
        Severity::Major => "8.0",
        Severity::Minor => "5.0",
        Severity::Suggestion => "2.0",
    }
}

fn help(f: &Finding) -> sarif::MultiformatMessageString {
    let mut plain = untrusted::plain(if f.message().is_empty() { f.title() } else { f.message() });
    let mut rich = markdown(if f.message().is_empty() { f.title() } else { f.message() });
    if let Some(suggestion) = f.suggestion() {
        plain.push_str(&format!("\n\nHelp: {}", untrusted::plain(suggestion)));
        rich.push_str(&format!("\n\n**Help:** {}", markdown(suggestion)));
    }
    if let Some(cwe) = f.cwe() {
        plain.push_str(&format!("\n\nCWE-{cwe}"));
        rich.push_str(&format!("\n\n[CWE-{cwe}](https://cwe.mitre.org/data/definitions/{cwe}.html)"));
    }
    for r in f.references() {
        plain.push_str(&format!("\n{}", untrusted::plain(r)));
        rich.push_str(&format!("\n\n{}", markdown(r)));
    }
    let mut help = text(plain);
    help.markdown = Some(rich);
    help
}

fn text(text: String) -> sarif::MultiformatMessageString {
    sarif::MultiformatMessageString::builder().text(text).build()
}

/// Returns `AwsAccessKeyId` for `aws-access-key-id`: SARIF wants names of rules in that form.
fn pascal(id: &str) -> String {
    id.split(|c: char| !c.is_ascii_alphanumeric())
        .flat_map(|word| {
            let mut chars = word.chars();
            chars.next().map(|c| c.to_ascii_uppercase()).into_iter().chain(chars)
        })
        .collect()
}
