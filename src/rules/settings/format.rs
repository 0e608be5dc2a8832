//! File format of the tables in `src/rules/knowledge/terraform/*.toml`, and its checks.
//!
//! Only the build script includes this file. Nothing here may use the rest of the crate.

use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// The matcher of the rules that the entries name.
const MATCHER: &str = "settings";

/// A file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SettingsFile {
    setting: Vec<WrittenSetting>,
}

/// An entry.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenSetting {
    /// ID of the rule that reports it.
    rule: String,
    /// Types of resources.
    types: Vec<String>,
    /// Names of blocks and of the setting, with dots.
    path: String,
    /// Literals that are right.
    #[serde(default)]
    good: Vec<String>,
    /// Literals that are wrong.
    #[serde(default)]
    bad: Vec<String>,
    /// True if each literal and each block is wrong.
    #[serde(default)]
    forbidden: bool,
    /// True if a resource without the setting is reported.
    #[serde(default)]
    required: bool,
    /// Conditions `path`, or `path=value`, that must all hold.
    #[serde(default)]
    when: Vec<String>,
    /// Conditions of which none may hold.
    #[serde(default)]
    unless: Vec<String>,
    /// Types of resources that have the setting in place of this one.
    #[serde(default)]
    unless_file: Vec<String>,
    /// The weakness, if it differs from the rule's.
    cwe: Option<u32>,
    message: String,
    suggestion: String,
    /// The address of the documentation of the resource.
    docs: String,
}

/// Returns the tables of all files in a folder, as Rust source. `rules`: ID, matcher and weakness of
/// each rule.
pub(crate) fn tables(
    folder: &str,
    rules: &[(&str, Option<&str>, Option<u32>)],
) -> Result<String, Vec<String>> {
    let mut faults = Vec::new();
    let mut settings = Vec::new();
    for name in names(folder).map_err(|e| vec![format!("{folder}: {e}")])? {
        let read = std::fs::read_to_string(&name).map_err(|e| e.to_string());
        match read.and_then(|t| toml::from_str::<SettingsFile>(&t).map_err(|e| e.to_string())) {
            Ok(file) => settings.extend(file.setting),
            Err(e) => faults.push(format!("{}: {e}", name.display())),
        }
    }
    let mut by_type: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    let mut out = format!("static EXPECTED: [Expected; {}] = [\n", settings.len());
    for (i, setting) in settings.iter().enumerate() {
        let rule = rules.iter().find(|rule| rule.0 == setting.rule);
        let cwe = setting.cwe.or(rule.and_then(|rule| rule.2));
        if rule.is_none_or(|rule| rule.1 != Some(MATCHER)) || cwe.is_none() {
            faults.push(format!("{}: no rule for settings", setting.rule));
        }
        faults.extend(setting.fault());
        for name in &setting.types {
            by_type.entry(name).or_default().push(i);
        }
        setting.write(&mut out, cwe.unwrap_or_default());
    }
    out.push_str("];\n");
    let _ = writeln!(
        out,
        "static BY_TYPE: [(&str, &[u16]); {}] = [",
        by_type.len()
    );
    for (name, list) in &by_type {
        let _ = writeln!(out, "({name:?}, &{list:?}),");
    }
    out.push_str("];\n");
    if faults.is_empty() {
        Ok(out)
    } else {
        Err(faults)
    }
}

/// Returns the files of a folder, in the order of their names.
fn names(folder: &str) -> std::io::Result<Vec<std::path::PathBuf>> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        names.push(entry?.path());
    }
    names.sort();
    Ok(names)
}

impl WrittenSetting {
    fn fault(&self) -> Option<String> {
        let is_wrong = self.types.is_empty()
            || self.path.is_empty()
            || !self.docs.starts_with("https://")
            || [&self.message, &self.suggestion]
                .iter()
                .any(|text| !text.ends_with('.'))
            || (!self.required && !self.forbidden && self.good.is_empty() && self.bad.is_empty());
        is_wrong.then(|| format!("{:?} {}: the entry is not complete", self.types, self.path))
    }

    fn write(&self, out: &mut String, cwe: u32) {
        let _ = writeln!(
            out,
            "Expected {{ rule: {:?}, path: &{:?}, good: &{:?}, bad: &{:?}, is_forbidden: {}, is_required: {}, \
             when: &[{}], unless: &[{}], unless_file: &{:?}, cwe: {cwe}, message: {:?}, \
             suggestion: {:?} }},",
            self.rule,
            segments(&self.path),
            self.good,
            self.bad,
            self.forbidden,
            self.required,
            conditions(&self.when),
            conditions(&self.unless),
            self.unless_file,
            self.message,
            self.suggestion,
        );
    }
}

fn segments(path: &str) -> Vec<&str> {
    path.split('.').collect()
}

/// Returns conditions as Rust source.
fn conditions(written: &[String]) -> String {
    let all = written.iter().map(|text| condition(text));
    all.collect::<Vec<_>>().join(", ")
}

fn condition(text: &str) -> String {
    let (path, value) = match text.split_once('=') {
        Some((path, value)) => (path, format!("Some({value:?})")),
        None => (text, "None".to_owned()),
    };
    format!(
        "ResourceCondition {{ path: &{:?}, value: {value} }}",
        segments(path)
    )
}
