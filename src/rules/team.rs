//! A team's own rules: the catalogue's format, read at run time.

use super::catalog::{self, Filter, List, Matcher, Rule};
use super::check;
use super::format;
use super::language::Languages;
use super::lexer::Place;
use super::prefilter::{Prefilter, Tables};
use super::walk::Compiled;
use crate::error::{Error, Result};
use crate::finding::{Category, Confidence, Severity};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::OnceLock;

/// The rules of a team, with their own prefilter.
#[derive(Debug, Default)]
pub(super) struct Team {
    pub(super) rules: Vec<Rule>,
    pub(super) compiled: Vec<OnceLock<Option<Compiled>>>,
    tables: Option<Tables>,
    literals: Vec<Vec<u8>>,
    users: Vec<Vec<u16>>,
}

/// The most bytes of one pattern, and the most rules: a rule file is the project's, not the operator's.
const PATTERN_MAX: usize = 4096;
const RULES_MAX: usize = 2000;

impl Team {
    /// Reads rule files, given as name and content.
    pub(super) fn parse(files: &[(String, String)]) -> Result<Self> {
        let mut team = Self::default();
        let mut literals: BTreeMap<Vec<u8>, Vec<u16>> = BTreeMap::new();
        for (name, content) in files {
            for written in read(name, content)? {
                let fault = |what: String| {
                    Error::usage(format!("{name}: rule {:?}: {what}", written.id))
                        .hint_person("`claude-reviewer rules explain ID` shows a built-in rule of the same format")
                        .hint_agent("ask the user to fix this rule")
                };
                let faults = written.faults();
                if let Some(first) = faults.into_iter().next() {
                    return Err(fault(first));
                }
                if written.matcher.is_some() {
                    return Err(fault("matcher: is for built-in rules only".to_owned()));
                }
                if catalog::RULES.iter().any(|r| r.id == written.id) {
                    return Err(fault("id: is the name of a built-in rule".to_owned()));
                }
                if team.rules.iter().any(|r| r.id == written.id) {
                    return Err(fault("id: is used twice".to_owned()));
                }
                if team.rules.len() == RULES_MAX {
                    return Err(fault(format!("id: only {RULES_MAX} rules are allowed")));
                }
                if let Some(unknown) = written.checks.iter().find(|c| !check::is_known(c)) {
                    return Err(fault(format!("checks: unknown check {unknown:?}")));
                }
                let patterns = [
                    &written.not_pattern,
                    &written.harmless,
                    &written.guarded_by,
                    &written.file_has,
                    &written.file_lacks,
                    &written.near_has,
                    &written.near_lacks,
                ]
                .into_iter()
                .flatten();
                if patterns.chain([&written.pattern]).any(|p| p.len() > PATTERN_MAX) {
                    return Err(fault(format!("pattern: is longer than {PATTERN_MAX} bytes")));
                }
                let index = (catalog::RULES.len() + team.rules.len()) as u16;
                for l in &written.literals {
                    let users = literals.entry(l.to_ascii_lowercase().into_bytes()).or_default();
                    if users.last() != Some(&index) {
                        users.push(index);
                    }
                }
                let rule = convert(&written);
                Compiled::check(&rule).map_err(|(key, e)| fault(format!("{key}: {}", brief(&e))))?;
                team.rules.push(rule);
                team.compiled.push(OnceLock::new());
            }
        }
        (team.literals, team.users) = literals.into_iter().unzip();
        if !team.literals.is_empty() {
            let literals: Vec<&[u8]> = team.literals.iter().map(Vec::as_slice).collect();
            team.tables = Some(Tables::new(&literals));
        }
        Ok(team)
    }

    /// Gives `f` the filter, where there are any rules.
    pub(super) fn with_filter(&self, f: impl FnOnce(&Filter<'_>)) {
        let Some(tables) = &self.tables else { return };
        let literals: Vec<&[u8]> = self.literals.iter().map(Vec::as_slice).collect();
        let users: Vec<&[u16]> = self.users.iter().map(Vec::as_slice).collect();
        let Tables { bitmap, slots, candidates } = tables;
        f(&Filter { prefilter: Prefilter { bitmap, slots, candidates, literals: &literals }, users: &users });
    }
}

/// Parses a rule file.
pub(super) fn read(name: &str, content: &str) -> Result<Vec<format::Rule>> {
    let file: format::File = toml::from_str(content).map_err(|e| {
        let line = e.span().map_or(1, |s| {
            content.as_bytes()[..s.start.min(content.len())].iter().filter(|b| **b == b'\n').count() + 1
        });
        Error::usage(format!("{name} line {line}: {}", e.message()))
    })?;
    Ok(file.rule)
}

/// An expression's error in one line.
fn brief(e: &regex::Error) -> String {
    let text = e.to_string();
    text.lines().rev().find(|l| !l.trim().is_empty()).unwrap_or("is wrong").trim_start_matches("error: ").to_owned()
}

/// Makes the engine's rule of a written one that has no faults.
pub(super) fn convert(r: &format::Rule) -> Rule {
    let text = |s: &String| Cow::Owned(s.clone());
    let list = |l: &[String]| -> List { Cow::Owned(l.iter().map(text).collect()) };
    Rule {
        id: text(&r.id),
        title: text(&r.title),
        category: Category::parse(&r.category).unwrap_or(Category::BestPractice),
        severity: Severity::parse(&r.severity).unwrap_or(Severity::Major),
        confidence: Confidence::parse(&r.confidence).unwrap_or(Confidence::Medium),
        languages: r.languages.iter().filter_map(|l| Languages::named(l)).fold(Languages::NONE, Languages::with),
        paths: list(&r.paths),
        not_paths: list(&r.not_paths),
        weak_paths: list(&r.weak_paths),
        in_tests: r.in_tests,
        in_bundles: r.in_bundles,
        place: Place::parse(&r.place).unwrap_or(Place::Any),
        matcher: Matcher::Pattern,
        pattern: text(&r.pattern),
        not_pattern: list(&r.not_pattern),
        harmless: list(&r.harmless),
        guarded_by: list(&r.guarded_by),
        file_has: list(&r.file_has),
        file_lacks: list(&r.file_lacks),
        near_has: list(&r.near_has),
        near_lacks: list(&r.near_lacks),
        checks: list(&r.checks),
        secret: r.secret,
        decoded: r.decoded,
        judges_origin: r.judges_origin,
        line_has: list(&r.line_has),
        message: text(&r.message),
        why: r.why.as_ref().map(text),
        suggestion: r.suggestion.as_ref().map(text),
        cwe: r.cwe,
        references: list(&r.references),
        bad: r.bad.as_ref().map(text),
        good: r.good.as_ref().map(text),
    }
}
