//! Team rules: the format of the catalogue, read at run time.

mod export;
mod file;

pub(super) use export::{of_built_in, to_toml};
pub(super) use file::{FileProblem, Written};

use super::catalog::{self, Filter, Matcher, Rule, RuleFix, TextList};
use super::check;
use super::format::{self, RuleFault};
use super::language::Languages;
use super::lexer::Place;
use super::needs::Needs;
use super::prefilter::{Prefilter, Tables};
use super::structural::{self, StructuralRule};
use super::walk::RulePatterns;
use crate::error::Result;
use crate::finding::{Category, Confidence, Severity};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::OnceLock;

/// The rules of a team, with their own prefilter.
#[derive(Debug, Default)]
pub(super) struct Team {
    pub(super) rules: Vec<Rule>,
    /// The same rules in the form of their files.
    pub(super) written: Vec<Written>,
    pub(super) compiled: Vec<OnceLock<Option<RulePatterns>>>,
    /// The structural rules, with their positions among the rules.
    pub(super) structural: Vec<(usize, StructuralRule)>,
    tables: Option<Tables>,
    literals: Vec<Vec<u8>>,
    users: Vec<Vec<u16>>,
}

/// Limits, because a rule file belongs to the project and not to the operator: bytes of one
/// pattern, number of rules.
const PATTERN_MAX: usize = 4096;
const RULES_MAX: usize = 2000;

impl Team {
    /// Reads rule files, given as name and content.
    ///
    /// # Errors
    ///
    /// Usage: one error that lists every problem of every file.
    pub(super) fn parse(files: &[(String, String)]) -> Result<Self> {
        let mut team = Self::default();
        let mut problems = Vec::new();
        for (name, content) in files {
            let (written, mut found_here) = parse(name, content);
            for (one, structural) in written {
                match team.check(&one, structural.is_some()) {
                    Ok(rule) => team.add(one, rule, structural),
                    Err(faults) => found_here.extend(faults.iter().map(|f| one.problem(f))),
                }
            }
            found_here.sort_by_key(FileProblem::line);
            problems.extend(found_here);
        }
        if !problems.is_empty() {
            return Err(FileProblem::error(&problems));
        }
        team.index();
        Ok(team)
    }

    /// Returns the engine's rule for a written one, or all its errors.
    fn check(
        &self,
        written: &Written,
        is_structural: bool,
    ) -> std::result::Result<Rule, Vec<RuleFault>> {
        let rule = &written.rule;
        let mut faults = rule.faults();
        if !is_structural {
            let keys = [
                ("matcher", rule.matcher.is_some()),
                ("tree", !rule.tree.is_empty()),
            ];
            let set = keys.into_iter().filter(|(_, is_set)| *is_set);
            faults.extend(set.map(|(key, _)| RuleFault::new(key, "is for built-in rules only")));
        }
        if catalog::index_of(&rule.id).is_some() {
            faults.push(RuleFault::new("id", "is the id of a built-in rule"));
        }
        if let Some(other) = self.written.iter().find(|w| w.rule.id == rule.id) {
            faults.push(RuleFault::new(
                "id",
                format!("is already used at {}:{}", other.file, other.line),
            ));
        }
        if self.rules.len() == RULES_MAX {
            faults.push(RuleFault::new(
                "id",
                format!("exceeds the limit of {RULES_MAX} rules"),
            ));
        }
        // An invalid entropy is already among the errors.
        let checks = rule.checks.iter();
        let unknown = checks
            .filter(|c| !check::is_for_patterns(c) && !c.starts_with("entropy:") && !c.is_empty());
        faults.extend(unknown.map(|c| RuleFault::new("checks", format!("unknown check {c:?}"))));
        let patterns = if is_structural {
            Vec::new()
        } else {
            patterns(rule).to_vec()
        };
        let too_long = patterns
            .iter()
            .filter(|(_, list)| list.iter().any(|p| p.len() > PATTERN_MAX));
        faults
            .extend(too_long.map(|(key, _)| {
                RuleFault::new(key, format!("is longer than {PATTERN_MAX} bytes"))
            }));
        if !faults.is_empty() {
            return Err(faults);
        }
        let rule = convert(rule);
        if is_structural {
            return Ok(Rule {
                matcher: Matcher::Structural,
                ..rule
            });
        }
        RulePatterns::check(&rule).map_err(|(key, e)| vec![RuleFault::new(key, brief(&e))])?;
        Ok(rule)
    }

    fn add(&mut self, written: Written, rule: Rule, structural: Option<StructuralRule>) {
        self.structural
            .extend(structural.map(|structural| (self.rules.len(), structural)));
        self.rules.push(rule);
        self.written.push(written);
        self.compiled.push(OnceLock::new());
    }

    /// Builds the prefilter over the literals of all rules.
    fn index(&mut self) {
        let mut users: BTreeMap<Vec<u8>, Vec<u16>> = BTreeMap::new();
        for (i, written) in self.written.iter().enumerate() {
            let index = (catalog::RULES.len() + i) as u16;
            for literal in &written.rule.literals {
                let users = users
                    .entry(literal.to_ascii_lowercase().into_bytes())
                    .or_default();
                if users.last() != Some(&index) {
                    users.push(index);
                }
            }
        }
        (self.literals, self.users) = users.into_iter().unzip();
        if !self.literals.is_empty() {
            let literals: Vec<&[u8]> = self.literals.iter().map(Vec::as_slice).collect();
            self.tables = Some(Tables::new(&literals));
        }
    }

    /// Calls `f` with the filter, if there are any rules.
    pub(super) fn with_filter(&self, f: impl FnOnce(&Filter<'_>)) {
        let Some(tables) = &self.tables else { return };
        let literals: Vec<&[u8]> = self.literals.iter().map(Vec::as_slice).collect();
        let users: Vec<&[u16]> = self.users.iter().map(Vec::as_slice).collect();
        let Tables {
            bitmap,
            slots,
            candidates,
        } = tables;
        f(&Filter {
            prefilter: Prefilter {
                bitmap,
                slots,
                candidates,
                literals: &literals,
            },
            users: &users,
        });
    }
}

/// Returns the patterns of a rule by key.
fn patterns(rule: &format::Rule) -> [(&'static str, &[String]); 9] {
    [
        ("pattern", std::slice::from_ref(&rule.pattern)),
        ("not_pattern", &rule.not_pattern),
        ("harmless", &rule.harmless),
        ("guarded_by", &rule.guarded_by),
        ("weak_if", &rule.weak_if),
        ("file_has", &rule.file_has),
        ("file_lacks", &rule.file_lacks),
        ("near_has", &rule.near_has),
        ("near_lacks", &rule.near_lacks),
    ]
}

/// Parses a rule file, by its name: TOML, or YAML with structural rules.
fn parse(name: &str, content: &str) -> (Vec<(Written, Option<StructuralRule>)>, Vec<FileProblem>) {
    if structural::is_structural(name) {
        let (rules, problems) = structural::parse(name, content);
        return (
            rules
                .into_iter()
                .map(|(written, rule)| (written, Some(rule)))
                .collect(),
            problems,
        );
    }
    let (rules, problems) = file::parse(name, content);
    (
        rules.into_iter().map(|written| (written, None)).collect(),
        problems,
    )
}

/// Parses a rule file without checking the values of its rules.
///
/// # Errors
///
/// Usage: one error that lists every unknown key and every missing one.
pub(super) fn read(name: &str, content: &str) -> Result<Vec<format::Rule>> {
    let (written, problems) = parse(name, content);
    match problems.is_empty() {
        true => Ok(written.into_iter().map(|(w, _)| w.rule).collect()),
        false => Err(FileProblem::error(&problems)),
    }
}

/// Returns an expression's error in one line.
fn brief(e: &regex::Error) -> String {
    let text = e.to_string();
    let cause = text
        .lines()
        .rev()
        .find(|l| !l.trim().is_empty())
        .unwrap_or("is invalid");
    cause.trim_start_matches("error: ").to_owned()
}

/// Returns the engine's form of a written rule that has no errors.
pub(super) fn convert(r: &format::Rule) -> Rule {
    Rule {
        id: owned(&r.id),
        title: owned(&r.title),
        category: Category::parse(&r.category).unwrap_or(Category::BestPractice),
        severity: Severity::parse(&r.severity).unwrap_or(Severity::Major),
        confidence: Confidence::parse(&r.confidence).unwrap_or(Confidence::Medium),
        languages: r
            .languages
            .iter()
            .filter_map(|l| Languages::named(l))
            .fold(Languages::NONE, Languages::with),
        paths: owned_list(&r.paths),
        not_paths: owned_list(&r.not_paths),
        weak_paths: owned_list(&r.weak_paths),
        in_tests: r.in_tests,
        in_bundles: r.in_bundles,
        place: Place::parse(&r.place).unwrap_or(Place::Any),
        matcher: Matcher::Pattern,
        tree: owned(&r.tree),
        tree_languages: if r.tree.is_empty() {
            TextList::default()
        } else {
            owned_list(&r.languages)
        },
        is_audit: r.profile == format::AUDIT_PROFILE,
        audit_severity: r.audit_severity.as_deref().and_then(Severity::parse),
        pattern: owned(&r.pattern),
        needs: Needs::NONE,
        not_pattern: owned_list(&r.not_pattern),
        harmless: owned_list(&r.harmless),
        guarded_by: owned_list(&r.guarded_by),
        weak_if: owned_list(&r.weak_if),
        file_has: owned_list(&r.file_has),
        file_lacks: owned_list(&r.file_lacks),
        near_has: owned_list(&r.near_has),
        near_lacks: owned_list(&r.near_lacks),
        checks: owned_list(&r.checks),
        secret: r.secret,
        decoded: r.decoded,
        judges_origin: r.judges_origin,
        line_has: owned_list(&r.line_has),
        message: owned(&r.message),
        why: r.why.as_deref().map(owned),
        suggestion: r.suggestion.as_deref().map(owned),
        fixes: r
            .fixes
            .iter()
            .map(|f| RuleFix {
                find: owned(&f.find),
                replace: owned(&f.replace),
            })
            .collect(),
        cwe: r.cwe,
        references: owned_list(&r.references),
        bad: r.bad.as_deref().map(owned),
        good: r.good.as_deref().map(owned),
    }
}

fn owned(text: &str) -> Cow<'static, str> {
    Cow::Owned(text.to_owned())
}

fn owned_list(texts: &[String]) -> TextList {
    Cow::Owned(texts.iter().map(|text| owned(text)).collect())
}
