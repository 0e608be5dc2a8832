//! Descriptors of the rules that have findings.

use super::bag;
use crate::finding::{Category, Confidence, Finding, Origin, Severity};
use crate::rules::about::about;
use crate::rules::doc_url;
use crate::untrusted::{self, markdown};
use serde_json::json;
use serde_sarif::sarif;
use std::collections::BTreeMap;

/// Returns the descriptors of the rules of some findings, by ID.
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

/// The help for findings of models.
const CLAIM: &str = "A model reported this finding. Its claim was anchored to the change by the line that it quotes. The \
confidence and the evidence of the finding show how well that worked and what else supports it.";

/// Returns the description of the rule of a finding.
fn descriptor(f: &Finding) -> sarif::ReportingDescriptor {
    let mut d = sarif::ReportingDescriptor::builder()
        .id(f.rule_id())
        .build();
    d.name = Some(pascal(f.rule_id()));
    if *f.origin() == Origin::Rules {
        d.short_description = Some(text(sentence(f.title())));
        d.full_description = Some(text(sentence(if f.message().is_empty() {
            f.title()
        } else {
            f.message()
        })));
        d.help = Some(help(f));
    } else {
        // The claims of a category have different texts.
        d.short_description = Some(text(format!(
            "A model reports: {}.",
            f.category().name().replace('-', " ")
        )));
        d.full_description = Some(text(CLAIM.to_owned()));
        d.help = Some(text(CLAIM.to_owned()));
    }
    d.help_uri = help_uri(f);
    d.default_configuration = Some(sarif::ReportingConfiguration {
        level: Some(json!(super::level(f.severity()))),
        ..Default::default()
    });
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
    let mut facts = vec![
        ("precision", json!(precision)),
        ("problem.severity", json!(problem)),
    ];
    if f.category() == Category::Security {
        facts.push(("security-severity", json!(score(f.severity()))));
    }
    d.properties = Some(bag(Some(tags), facts));
    d
}

/// Returns the address of the rule in the documentation, or its first reference.
fn help_uri(f: &Finding) -> Option<String> {
    let documented = doc_url(f.rule_id()).filter(|_| *f.origin() == Origin::Rules);
    documented.or_else(|| {
        f.references()
            .iter()
            .find(|r| r.starts_with("https://"))
            .map(|r| untrusted::plain(r))
    })
}

/// Returns the score that GitHub maps to critical (from 9), high (7), medium (4), low.
fn score(severity: Severity) -> &'static str {
    match severity {
        Severity::Critical => "9.5",
        Severity::Major => "8.0",
        Severity::Minor => "5.0",
        Severity::Suggestion => "2.0",
    }
}

/// Returns the help of a rule, as text and as Markdown.
fn help(f: &Finding) -> sarif::MultiformatMessageString {
    let about = about(f.rule_id());
    let message = if f.message().is_empty() {
        f.title()
    } else {
        f.message()
    };
    let mut plain = sentence(message);
    let mut rich = if about.is_some() {
        sentence(message)
    } else {
        markdown(message)
    };
    if let Some(why) = about.and_then(|a| a.why) {
        plain.push_str(&format!("\n\n{}", untrusted::plain(why)));
        rich.push_str(&format!("\n\n{why}"));
    }
    if let Some(suggestion) = f.suggestion() {
        plain.push_str(&format!("\n\nHelp: {}", sentence(suggestion)));
        let shown = if about.is_some() {
            sentence(suggestion)
        } else {
            markdown(suggestion)
        };
        rich.push_str(&format!("\n\n**Help:** {shown}"));
    }
    let code = [
        ("Instead of", about.and_then(|a| a.bad)),
        ("write", about.and_then(|a| a.good)),
    ];
    for (label, code) in code
        .iter()
        .filter_map(|(label, code)| Some((label, (*code)?)))
    {
        plain.push_str(&format!("\n\n{label}:\n{}", untrusted::plain(code)));
        rich.push_str(&format!("\n\n{label}\n\n{}", fenced(code)));
    }
    if let Some(cwe) = f.cwe() {
        plain.push_str(&format!("\n\nCWE-{cwe}"));
        rich.push_str(&format!(
            "\n\n[CWE-{cwe}](https://cwe.mitre.org/data/definitions/{cwe}.html)"
        ));
    }
    for r in f.references() {
        plain.push_str(&format!("\n{}", untrusted::plain(r)));
        let address = r.starts_with("https://")
            && r.bytes()
                .all(|b| b.is_ascii_graphic() && !b"<>".contains(&b));
        rich.push_str(&if address {
            format!("\n\n<{r}>")
        } else {
            format!("\n\n{}", markdown(r))
        });
    }
    let mut help = text(plain);
    help.markdown = Some(rich);
    help
}

/// Puts code between fences that are longer than any run of backticks in the code.
fn fenced(code: &str) -> String {
    let longest = code.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}\n{}\n{fence}", code.trim_end())
}

/// Converts a fragment to a sentence, as SARIF expects.
pub(super) fn sentence(fragment: &str) -> String {
    let text = untrusted::plain(fragment.trim());
    let word = text.split(' ').next().unwrap_or_default();
    let capital = word.bytes().all(|b| b.is_ascii_lowercase());
    let mut out = match text.get(..1).filter(|_| capital) {
        Some(first) => first.to_ascii_uppercase() + &text[1..],
        None => text,
    };
    if !out.is_empty() && !out.ends_with(['.', '!', '?', ':']) {
        out.push('.');
    }
    out
}

/// Returns a message of plain text.
fn text(text: String) -> sarif::MultiformatMessageString {
    sarif::MultiformatMessageString::builder()
        .text(text)
        .build()
}

/// Returns `AwsAccessKeyId` for `aws-access-key-id`, the form of rule names in SARIF.
fn pascal(id: &str) -> String {
    id.split(|c: char| !c.is_ascii_alphanumeric())
        .flat_map(|word| {
            let mut chars = word.chars();
            chars
                .next()
                .map(|c| c.to_ascii_uppercase())
                .into_iter()
                .chain(chars)
        })
        .collect()
}
