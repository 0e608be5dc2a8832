//! Parses files of structural rules: documents of YAML, each a rule or the samples of a rule.
//!
//! A document with `valid` or `invalid` has samples, as in ast-grep's test files
//! (<https://ast-grep.github.io/guide/test-rule.html>). `metadata` can have this program's
//! `category`, `severity`, `confidence` and `cwe`.

use super::StructuralRule;
use super::language::TreeLanguage;
use crate::rules::format::{self, Sample};
use crate::rules::team::{FileProblem, Written};
use ast_grep_config::{SerializableRuleConfig, Severity};
use serde_json::{Value, json};

/// Keys of a document with samples.
const SAMPLE_KEYS: &[&str] = &["id", "valid", "invalid"];
/// Keys of `metadata` that this program reads. Teams may use others.
const CATEGORY: &str = "category";
const SEVERITY: &str = "severity";
const CONFIDENCE: &str = "confidence";
const CWE: &str = "cwe";

/// Returns true if a rule file of that name has structural rules.
pub(in crate::rules) fn is_structural(name: &str) -> bool {
    name.ends_with(".yml") || name.ends_with(".yaml")
}

/// A document of a file.
#[derive(Clone, Copy)]
struct RuleDocument<'a> {
    /// The line of the file in which it starts, counted from 1.
    line: u32,
    text: &'a str,
}

/// The samples of a rule.
struct Samples {
    id: String,
    line: u32,
    valid: Vec<String>,
    invalid: Vec<String>,
}

struct DocumentReader<'a> {
    name: &'a str,
    rules: Vec<(Written, StructuralRule)>,
    /// IDs of rules with `severity: off`.
    off: Vec<String>,
    samples: Vec<Samples>,
    problems: Vec<FileProblem>,
}

/// Parses a file. Returns the rules that compile, and the problems of the others. A rule with
/// `severity: off` is left out.
pub(in crate::rules) fn parse(
    name: &str,
    content: &str,
) -> (Vec<(Written, StructuralRule)>, Vec<FileProblem>) {
    let mut reader = DocumentReader {
        name,
        rules: Vec::new(),
        off: Vec::new(),
        samples: Vec::new(),
        problems: Vec::new(),
    };
    for document in documents(content.strip_prefix('\u{feff}').unwrap_or(content)) {
        reader.document(document);
    }
    reader.join();
    (reader.rules, reader.problems)
}

/// Splits a file at its lines `---`.
fn documents(content: &str) -> Vec<RuleDocument<'_>> {
    let mut out = Vec::new();
    let (mut start, mut first, mut at, mut line) = (0, 1, 0, 1);
    for text in content.split_inclusive('\n') {
        at += text.len();
        line += 1;
        if text.starts_with("---") && text[3..].trim_start().is_empty() {
            out.push(RuleDocument {
                line: first,
                text: &content[start..at - text.len()],
            });
            (start, first) = (at, line);
        }
    }
    out.push(RuleDocument {
        line: first,
        text: &content[start..],
    });
    out
}

impl RuleDocument<'_> {
    /// Returns the line of the file that has a key of the document, or the first line of the
    /// document.
    fn line_of(&self, key: &str) -> u32 {
        let mut rests = self.text.lines().map(|line| line.strip_prefix(key));
        let at = rests.position(|rest| rest.is_some_and(|rest| rest.trim_start().starts_with(':')));
        let at = at.unwrap_or_default();
        self.line
            .saturating_add(u32::try_from(at).unwrap_or_default())
    }

    /// Returns the line of the file for a line of the document.
    fn line_at(&self, line: Option<u64>) -> u32 {
        let ahead = line
            .and_then(|line| u32::try_from(line).ok())
            .unwrap_or(1)
            .saturating_sub(1);
        self.line.saturating_add(ahead)
    }
}

impl DocumentReader<'_> {
    fn document(&mut self, document: RuleDocument<'_>) {
        let value = match ast_grep_config::from_str::<Value>(document.text) {
            Ok(Value::Null) => return,
            Ok(value) => value,
            Err(e) => {
                let line = document.line_at(e.location().map(|l| l.line()));
                return self.problem(
                    line,
                    None,
                    format!("invalid YAML: {}", first_line(&e.to_string())),
                );
            }
        };
        let Value::Object(keys) = &value else {
            return self.problem(
                document.line,
                None,
                "a rule must be a mapping of keys".to_owned(),
            );
        };
        let id = keys.get("id").and_then(Value::as_str).unwrap_or_default();
        if id.is_empty() {
            return self.problem(document.line, None, "missing key `id`".to_owned());
        }
        if keys.contains_key("valid") || keys.contains_key("invalid") {
            return self.samples(document, id, keys);
        }
        match ast_grep_config::from_str::<SerializableRuleConfig<TreeLanguage>>(document.text) {
            Ok(config) => self.rule(document, &value, config),
            Err(e) => {
                let line = document.line_at(e.location().map(|l| l.line()));
                self.problem(line, Some(id), first_line(&e.to_string()));
            }
        }
    }

    fn rule(
        &mut self,
        document: RuleDocument<'_>,
        value: &Value,
        config: SerializableRuleConfig<TreeLanguage>,
    ) {
        if config.severity == Severity::Off {
            return self.off.push(config.id);
        }
        let (id, language) = (config.id.clone(), config.language);
        let severity = severity(&config.severity);
        let rule = match StructuralRule::new(config, document.text) {
            Ok(rule) => rule,
            Err(text) => return self.problem(document.line_of("rule"), Some(&id), text),
        };
        match written(value, &id, language, severity) {
            Ok(written) => {
                let lines = [
                    ("id", "id"),
                    ("title", "message"),
                    ("message", "message"),
                    ("category", "metadata"),
                    ("severity", "metadata"),
                    ("confidence", "metadata"),
                ];
                let lines = lines
                    .map(|(key, of)| (key.to_owned(), document.line_of(of)))
                    .to_vec();
                let line = document.line_of("id");
                self.rules
                    .push((Written::new(self.name, line, lines, written), rule));
            }
            Err((key, text)) => {
                self.problem(document.line_of(key), Some(&id), format!("{key}: {text}"));
            }
        }
    }

    fn samples(
        &mut self,
        document: RuleDocument<'_>,
        id: &str,
        keys: &serde_json::Map<String, Value>,
    ) {
        for key in keys
            .keys()
            .filter(|key| !SAMPLE_KEYS.contains(&key.as_str()))
        {
            let text =
                format!("unknown key `{key}` beside samples, expected `id`, `valid` or `invalid`");
            self.problem(document.line_of(key), Some(id), text);
        }
        let mut read = |key: &str| match texts(keys.get(key)) {
            Some(texts) => texts,
            None => {
                self.problem(
                    document.line_of(key),
                    Some(id),
                    format!("{key}: must be a list of texts"),
                );
                Vec::new()
            }
        };
        let (valid, invalid) = (read("valid"), read("invalid"));
        self.samples.push(Samples {
            id: id.to_owned(),
            line: document.line,
            valid,
            invalid,
        });
    }

    /// Adds the samples to their rules.
    fn join(&mut self) {
        for samples in std::mem::take(&mut self.samples) {
            let Some((rule, of)) = self
                .rules
                .iter_mut()
                .find(|(rule, _)| rule.rule.id == samples.id)
            else {
                // A rule with a problem, or a document that cannot be read, has its own line in the
                // error.
                if !self.off.contains(&samples.id)
                    && !self.problems.iter().any(|p| p.may_be_about(&samples.id))
                {
                    let text = "has samples and no rule in this file".to_owned();
                    self.problem(samples.line, Some(&samples.id), text);
                }
                continue;
            };
            let path = sample_path(&rule.rule.paths, of.language());
            let invalid = samples.invalid.into_iter().map(|text| (true, text));
            let texts = invalid.chain(samples.valid.into_iter().map(|text| (false, text)));
            rule.rule
                .samples
                .extend(texts.map(|(matches, text)| Sample {
                    matches,
                    path: path.clone(),
                    text,
                    fixed: None,
                    also: Vec::new(),
                }));
        }
    }

    fn problem(&mut self, line: u32, rule: Option<&str>, text: String) {
        self.problems
            .push(FileProblem::new(self.name, line, rule, text));
    }
}

/// Maps a severity of ast-grep to one of this program.
fn severity(severity: &Severity) -> &'static str {
    match severity {
        Severity::Error => "major",
        Severity::Warning => "minor",
        Severity::Info | Severity::Hint | Severity::Off => "suggestion",
    }
}

/// Returns a rule in the form of this program. The error has the key of the document and a text
/// that follows it.
fn written(
    value: &Value,
    id: &str,
    language: TreeLanguage,
    severity: &'static str,
) -> Result<format::Rule, (&'static str, String)> {
    let title = text_of(value, "message").unwrap_or_else(|| id.replace('-', " "));
    let cwe = match metadata(value, CWE) {
        None => None,
        Some(number) => match number.as_u64().and_then(|n| u32::try_from(n).ok()) {
            Some(number) => Some(number),
            None => return Err(("metadata", format!("{CWE} must be a number, such as 89"))),
        },
    };
    let fields = json!({
        "id": id,
        "message": text_of(value, "note").unwrap_or_else(|| title.clone()),
        "title": title,
        "category": metadata_text(value, CATEGORY, "best-practice"),
        "severity": metadata_text(value, SEVERITY, severity),
        "confidence": metadata_text(value, CONFIDENCE, "medium"),
        "languages": [language.own_name()],
        "paths": globs(value.get("files")).map_err(|text| ("files", text))?,
        "not_paths": globs(value.get("ignores")).map_err(|text| ("ignores", text))?,
        "matcher": format::STRUCTURAL,
        "pattern": condition(value),
        "cwe": cwe,
        "references": text_of(value, "url").into_iter().collect::<Vec<_>>(),
    });
    // The keys that are not here get the defaults of a rule file.
    serde_json::from_value(fields).map_err(|e| ("id", e.to_string()))
}

/// Returns the text of a key without blanks around it. `None`: it has none.
fn text_of(value: &Value, key: &str) -> Option<String> {
    value
        .get(key)
        .and_then(Value::as_str)
        .map(|t| t.trim().to_owned())
        .filter(|t| !t.is_empty())
}

/// Returns a value of the `metadata`, where a rule has the fields that ast-grep does not know.
fn metadata<'v>(value: &'v Value, key: &str) -> Option<&'v Value> {
    value.get("metadata").and_then(|m| m.get(key))
}

/// Returns a text of the `metadata`, or the default.
fn metadata_text(value: &Value, key: &str, default: &str) -> String {
    metadata(value, key)
        .and_then(Value::as_str)
        .unwrap_or(default)
        .to_owned()
}

/// Returns the parts of a rule that decide its matches, as JSON, to compare two versions of a rule.
fn condition(value: &Value) -> String {
    let parts = ["language", "rule", "constraints", "utils", "transform"];
    let parts = parts.map(|key| value.get(key).map(|part| (key.to_owned(), part.clone())));
    Value::Object(parts.into_iter().flatten().collect()).to_string()
}

/// Reads globs of paths.
fn globs(value: Option<&Value>) -> Result<Vec<String>, String> {
    let Some(value) = value else {
        return Ok(Vec::new());
    };
    let Some(texts) = texts(Some(value)) else {
        return Err("must be a list of globs; caseInsensitive is not supported".to_owned());
    };
    Ok(texts
        .into_iter()
        .map(|glob| glob.strip_prefix("./").map_or(glob.clone(), str::to_owned))
        .collect())
}

/// Returns the texts of a list; `None`: it is not a list of texts. A missing list is empty.
fn texts(value: Option<&Value>) -> Option<Vec<String>> {
    let Some(value) = value else {
        return Some(Vec::new());
    };
    value
        .as_array()?
        .iter()
        .map(|item| item.as_str().map(str::to_owned))
        .collect()
}

/// Returns the path of a sample: one that the first glob of the rule matches.
fn sample_path(globs: &[String], language: TreeLanguage) -> String {
    let extension = language.extension();
    let glob = globs
        .first()
        .map(|glob| glob.replace("**", "a").replace('*', "a"));
    match glob {
        Some(path)
            if path
                .rsplit('/')
                .next()
                .is_some_and(|name| name.contains('.')) =>
        {
            path
        }
        Some(path) => format!("{}/sample.{extension}", path.trim_end_matches('/')),
        None => format!("sample.{extension}"),
    }
}

fn first_line(text: &str) -> String {
    text.lines()
        .find(|line| !line.trim().is_empty())
        .unwrap_or_default()
        .trim()
        .to_owned()
}

/// Returns the line of the first error of a text that has documents of YAML, counted from 1.
/// `None`: it has none.
pub(in crate::rules) fn yaml_error_line(text: &str) -> Option<u32> {
    let error = ast_grep_config::from_multiple::<serde::de::IgnoredAny>(text).err()?;
    let line = error.location().map_or(u64::MAX, |at| at.line());
    Some(u32::try_from(line).unwrap_or(u32::MAX))
}
