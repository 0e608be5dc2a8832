//! Writes a rule as a rule file, for a team that starts from an existing rule.

use super::Written;
use crate::rules::catalog::{self, Matcher, Rule, RuleFix, TextList};
use crate::rules::format;
use crate::untrusted;
use std::fmt::Write as _;
use toml::Value;

/// Prefix of the ID of a copy: a team rule cannot have the ID of a built-in rule.
const PREFIX: &str = "team-";
/// Longest ID that leaves room for the prefix within the limit of 64 bytes.
const ID_MAX: usize = 64 - PREFIX.len();

/// Returns the built-in rule with an index as the text of a rule file. `None`: a team rule cannot
/// express it, because its matcher is code.
pub(in crate::rules) fn of_built_in(index: usize) -> Option<String> {
    let rule = catalog::RULES
        .get(index)
        .filter(|r| r.matcher == Matcher::Pattern)?;
    let mut out = format!(
        "# Copy of the built-in rule {}. A team rule needs an id of its own.\n",
        rule.id
    );
    if rule.id.len() > ID_MAX {
        out.push_str("# The id is cut to fit the limit of 64 bytes.\n");
    }
    out.push_str(
        "# Samples are not part of the program: add one [[rule.sample]] that must match and one that must not.\n",
    );
    write_rule(&mut out, &written(rule, index));
    Some(out)
}

/// Returns a team rule as the text of a rule file, with its samples.
pub(in crate::rules) fn to_toml(written: &Written) -> String {
    let mut out = String::new();
    write_rule(&mut out, &written.rule);
    out
}

/// Returns a built-in rule in the form of a rule file.
fn written(rule: &Rule, index: usize) -> format::Rule {
    let id: String = rule.id.chars().take(ID_MAX).collect();
    format::Rule {
        id: format!("{PREFIX}{}", id.trim_end_matches('-')),
        title: rule.title.clone().into_owned(),
        category: rule.category.name().to_owned(),
        severity: rule.severity.name().to_owned(),
        confidence: rule.confidence.name().to_owned(),
        languages: rule.languages.names().map(str::to_owned).collect(),
        paths: owned(&rule.paths),
        not_paths: owned(&rule.not_paths),
        weak_paths: owned(&rule.weak_paths),
        in_tests: rule.in_tests,
        in_bundles: rule.in_bundles,
        place: rule.place.name().to_owned(),
        literals: literals(index),
        pattern: rule.pattern.clone().into_owned(),
        matcher: None,
        tree: String::new(),
        profile: rule.profile().to_owned(),
        audit_severity: rule.audit_severity.map(|s| s.name().to_owned()),
        not_pattern: owned(&rule.not_pattern),
        harmless: owned(&rule.harmless),
        guarded_by: owned(&rule.guarded_by),
        weak_if: owned(&rule.weak_if),
        file_has: owned(&rule.file_has),
        file_lacks: owned(&rule.file_lacks),
        near_has: owned(&rule.near_has),
        near_lacks: owned(&rule.near_lacks),
        line_has: owned(&rule.line_has),
        checks: owned(&rule.checks),
        secret: rule.secret,
        decoded: rule.decoded,
        judges_origin: rule.judges_origin,
        message: rule.message.clone().into_owned(),
        why: rule.why.as_deref().map(str::to_owned),
        suggestion: rule.suggestion.as_deref().map(str::to_owned),
        fixes: rule.fixes.iter().map(fix).collect(),
        cwe: rule.cwe,
        references: owned(&rule.references),
        bad: rule.bad.as_deref().map(str::to_owned),
        good: rule.good.as_deref().map(str::to_owned),
        samples: Vec::new(),
    }
}

/// Returns the texts of a list as a file has them.
fn owned(list: &TextList) -> Vec<String> {
    list.iter().map(|t| t.clone().into_owned()).collect()
}

fn fix(fix: &RuleFix) -> format::Fix {
    format::Fix {
        find: fix.find.clone().into_owned(),
        replace: fix.replace.clone().into_owned(),
    }
}

/// Returns the literals of a built-in rule, in lower case as the prefilter has them.
fn literals(index: usize) -> Vec<String> {
    let filter = &catalog::FILTER;
    let used = filter.prefilter.literals.iter().zip(filter.users);
    let own = used.filter(|(_, users)| users.iter().any(|u| usize::from(*u) == index));
    own.map(|(literal, _)| String::from_utf8_lossy(literal).into_owned())
        .collect()
}

/// Appends a rule, without the keys that have their default.
fn write_rule(out: &mut String, rule: &format::Rule) {
    out.push_str("[[rule]]\n");
    for (key, value) in [
        ("id", &rule.id),
        ("title", &rule.title),
        ("category", &rule.category),
    ] {
        text(out, key, value);
    }
    text(out, "severity", &rule.severity);
    text(out, "confidence", &rule.confidence);
    list(out, "languages", &rule.languages);
    list(out, "paths", &rule.paths);
    list(out, "not_paths", &rule.not_paths);
    list(out, "weak_paths", &rule.weak_paths);
    flag(out, "in_tests", rule.in_tests, true);
    flag(out, "in_bundles", rule.in_bundles, true);
    if rule.profile != format::DEFAULT_PROFILE {
        text(out, "profile", &rule.profile);
    }
    optional(out, "audit_severity", rule.audit_severity.as_deref());
    text(out, "place", &rule.place);
    list(out, "literals", &rule.literals);
    text(out, "pattern", &rule.pattern);
    for (key, values) in [
        ("not_pattern", &rule.not_pattern),
        ("harmless", &rule.harmless),
        ("guarded_by", &rule.guarded_by),
        ("weak_if", &rule.weak_if),
        ("file_has", &rule.file_has),
        ("file_lacks", &rule.file_lacks),
        ("near_has", &rule.near_has),
        ("near_lacks", &rule.near_lacks),
        ("line_has", &rule.line_has),
        ("checks", &rule.checks),
    ] {
        list(out, key, values);
    }
    flag(out, "secret", rule.secret, false);
    flag(out, "decoded", rule.decoded, false);
    flag(out, "judges_origin", rule.judges_origin, false);
    text(out, "message", &rule.message);
    optional(out, "why", rule.why.as_deref());
    optional(out, "suggestion", rule.suggestion.as_deref());
    if let Some(cwe) = rule.cwe {
        line(out, "cwe", &Value::Integer(i64::from(cwe)));
    }
    list(out, "references", &rule.references);
    optional(out, "bad", rule.bad.as_deref());
    optional(out, "good", rule.good.as_deref());
    for fix in &rule.fixes {
        out.push_str("\n[[rule.fix]]\n");
        text(out, "find", &fix.find);
        text(out, "replace", &fix.replace);
    }
    for sample in &rule.samples {
        out.push_str("\n[[rule.sample]]\n");
        line(out, "matches", &Value::Boolean(sample.matches));
        text(out, "path", &sample.path);
        text(out, "text", &sample.text);
        optional(out, "fixed", sample.fixed.as_deref());
        list(out, "also", &sample.also);
    }
}

fn line(out: &mut String, key: &str, value: &Value) {
    // Writing to a string cannot fail.
    let _ = writeln!(out, "{key} = {}", shown(value));
}

/// Returns a value as TOML in which control and invisible characters are escapes.
fn shown(value: &Value) -> String {
    match value {
        Value::String(text) if text.contains(is_hidden) => {
            let mut out = String::from("\"");
            for c in text.chars() {
                match c {
                    '"' | '\\' => out.extend(['\\', c]),
                    c if untrusted::is_active(c) => {
                        out.push_str(&format!("\\U{:08X}", u32::from(c)));
                    }
                    c => out.push(c),
                }
            }
            out + "\""
        }
        Value::Array(all) => format!("[{}]", all.iter().map(shown).collect::<Vec<_>>().join(", ")),
        other => other.to_string(),
    }
}

/// Returns true for a character that a terminal does not show as it is.
fn is_hidden(c: char) -> bool {
    c != '\n' && c != '\t' && untrusted::is_active(c)
}

fn text(out: &mut String, key: &str, value: &str) {
    line(out, key, &Value::String(value.to_owned()));
}

fn optional(out: &mut String, key: &str, value: Option<&str>) {
    if let Some(value) = value {
        text(out, key, value);
    }
}

fn list(out: &mut String, key: &str, values: &[String]) {
    if !values.is_empty() {
        line(
            out,
            key,
            &Value::Array(values.iter().cloned().map(Value::String).collect()),
        );
    }
}

fn flag(out: &mut String, key: &str, value: bool, default: bool) {
    if value != default {
        line(out, key, &Value::Boolean(value));
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Team, convert};
    use super::*;

    #[test]
    fn a_copy_of_each_built_in_pattern_is_the_same_rule_under_another_id() {
        for (i, rule) in catalog::RULES.iter().enumerate() {
            let Some(text) = of_built_in(i) else {
                assert_ne!(rule.matcher, Matcher::Pattern, "{}", rule.id);
                continue;
            };
            let team = Team::parse(&[("a.toml".to_owned(), text.clone())]).unwrap();
            // The words that a line needs follow from the pattern. They are not derived for team
            // rules.
            let copy = Rule {
                id: rule.id.clone(),
                needs: rule.needs,
                ..team.rules[0].clone()
            };
            assert_eq!(format!("{copy:?}"), format!("{rule:?}"), "{text}");
            assert!(!team.written[0].rule.literals.is_empty(), "{text}");
            let again = to_toml(&team.written[0]);
            let back = Team::parse(&[("a.toml".to_owned(), again)]).unwrap();
            assert_eq!(
                format!("{:?}", convert(&back.written[0].rule)),
                format!("{:?}", team.rules[0])
            );
        }
    }
}
