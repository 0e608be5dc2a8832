//! `policy import`: converts the JSON configuration of older tools to a policy file.
//!
//! ```json
//! { "review_storage_path": ".reviews", "ignored_files": ["*.generated.ts"], "test_command": "npm test",
//!   "severity_thresholds": { "block_on": ["critical", "major"], "warn_on": ["minor"] } }
//! ```

use super::keys::{self, Trust};
use super::value::{PolicyValue, closest, quote};
use super::{Policy, PolicyFile};
use crate::error::{Error, Result};
use crate::untrusted::Inert;
use serde_json::Value as Json;

/// A converted configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Imported {
    /// A policy file with comments.
    pub toml: String,
    /// Keys that were not imported, for display.
    pub left_out: Vec<String>,
}

/// Old name, new key.
const KEYS: [(&str, &str); 5] = [
    ("ignored_files", "ignore"),
    ("severity_thresholds.block_on", "block_on"),
    ("severity_thresholds.warn_on", "warn_on"),
    ("review_storage_path", "history.path"),
    ("test_command", "tests.command"),
];

/// Converts a JSON configuration.
///
/// # Errors
///
/// Usage: the file is not a JSON object, or a known key has a value that is invalid in a policy.
pub fn import(file: &PolicyFile) -> Result<Imported> {
    let name = &file.name;
    let json: Json = serde_json::from_slice(&file.bytes).map_err(|e| {
        Error::usage(format!("malformed JSON in {name}:{}", e.line())).caused_by(&e)
    })?;
    let Json::Object(top) = &json else {
        return Err(Error::usage(format!("{name} must be a JSON object")));
    };
    let mut flat: Vec<(String, &Json)> = Vec::new();
    for (key, value) in top {
        match (key.as_str(), value) {
            ("severity_thresholds", Json::Object(inner)) => {
                flat.extend(inner.iter().map(|(k, v)| (format!("{key}.{k}"), v)));
            }
            _ => flat.push((key.clone(), value)),
        }
    }
    let mut left_out = Vec::new();
    for (key, _) in flat
        .iter()
        .filter(|(k, _)| KEYS.iter().all(|(old, _)| old != k))
    {
        let hint = closest(key, KEYS.iter().map(|(old, _)| *old))
            .map(|k| format!(" (did you mean {k:?}?)"));
        left_out.push(format!("unknown key {key:?}{}", hint.unwrap_or_default()));
    }
    let default = Policy::default();
    let mut lines: Vec<(&str, String)> = Vec::new();
    for (old, new) in KEYS {
        let Some((_, value)) = flat.iter().find(|(k, _)| k == old) else {
            continue;
        };
        let Some(key) = keys::find(new) else { continue };
        let value = convert(old, value, name)?;
        let parsed = toml::de::DeValue::parse(&value).map_err(|e| {
            Error::usage(format!("cannot write {old:?} in {name} as TOML")).caused_by(&e)
        })?;
        let value = key.kind.read(&parsed).map_err(|c| {
            let e = Error::usage(format!("{old:?} in {name} {}", c.text));
            match c.hint {
                Some(h) => e.hint(h),
                None => e,
            }
        })?;
        let (table, short) = new.split_once('.').unwrap_or(("", new));
        let mut line = format!("{short} = {}", value.to_toml());
        if key.trust == Trust::Operator && value != (key.get)(&default) {
            line.push_str("  # operator only: needs `claude-reviewer policy trust`");
        }
        lines.push((table, line));
        if new == "tests.command" {
            let run = PolicyValue::Flag(false).to_toml();
            lines.push((
                table,
                format!("run = {run}  # true runs the tests in every review; AUTO_RUN_TESTS=true runs them once"),
            ));
        }
    }
    let mut toml = format!("# Imported from {}.\n", Inert::new(name));
    for l in &left_out {
        toml.push_str(&format!("# Not imported: {}.\n", Inert::new(l)));
    }
    toml.push_str(&format!("version = {}\n", keys::VERSION));
    let mut table = "";
    for (t, line) in lines {
        if t != table {
            table = t;
            toml.push_str(&format!("\n[{t}]\n"));
        }
        toml.push_str(&line);
        toml.push('\n');
    }
    Ok(Imported { toml, left_out })
}

/// Writes a string or a list of strings as TOML.
fn convert(key: &str, value: &Json, name: &str) -> Result<String> {
    match value {
        Json::String(s) => Ok(quote(s)),
        Json::Array(items) => {
            let items: Option<Vec<String>> = items.iter().map(|i| i.as_str().map(quote)).collect();
            Ok(format!(
                "[{}]",
                items.ok_or_else(|| no_strings(key, name))?.join(", ")
            ))
        }
        _ => Err(no_strings(key, name)),
    }
}

/// Returns the error for a value that is neither a string nor a list of strings.
fn no_strings(key: &str, name: &str) -> Error {
    Error::usage(format!(
        "{key:?} in {name} must be a string or a list of strings"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn import_text(json: &str) -> Result<Imported> {
        import(&PolicyFile {
            name: ".claude-reviewer.json".to_owned(),
            bytes: json.as_bytes().to_vec(),
        })
    }

    #[test]
    fn the_documented_file_becomes_a_policy() {
        let imported = import_text(
            r#"{ "review_storage_path": ".reviews", "ignored_files": ["*.generated.ts", "*.test.ts"],
                 "test_command": "npm test", "severity_thresholds": { "block_on": ["critical", "major"], "warn_on": ["minor"] } }"#,
        )
        .unwrap();
        assert_eq!(
            imported.toml,
            "# Imported from .claude-reviewer.json.\nversion = 1\nignore = [\"*.generated.ts\", \"*.test.ts\"]\n\
             block_on = [\"critical\", \"major\"]\nwarn_on = [\"minor\"]\n\n[history]\npath = \".reviews\"\n\n[tests]\n\
             command = \"npm test\"  # operator only: needs `claude-reviewer policy trust`\n\
             run = false  # true runs the tests in every review; AUTO_RUN_TESTS=true runs them once\n"
        );
        assert_eq!(imported.left_out, [""; 0]);
    }

    #[test]
    fn unknown_keys_are_named_in_the_file_and_to_the_caller() {
        let imported = import_text(
            "{ \"ignoredFiles\": [], \"a\\nb\": 1, \"severity_thresholds\": { \"fail\": [] } }",
        )
        .unwrap();
        assert_eq!(imported.left_out.len(), 3);
        assert!(
            imported.toml.contains(
                "# Not imported: unknown key \"ignoredFiles\" (did you mean \"ignored_files\"?).\n"
            ),
            "{}",
            imported.toml
        );
        assert!(
            imported
                .toml
                .lines()
                .all(|l| l.starts_with('#') || l == "version = 1"),
            "{}",
            imported.toml
        );
    }

    #[test]
    fn values_that_a_policy_cannot_hold_are_refused_by_name() {
        for (json, text) in [
            ("[]", "must be a JSON object"),
            ("{", "malformed JSON in .claude-reviewer.json:1"),
            (
                r#"{"test_command": 1}"#,
                "\"test_command\" in .claude-reviewer.json must be a string",
            ),
            (
                r#"{"review_storage_path": "../../x"}"#,
                "must be a path inside the repository",
            ),
            (
                r#"{"ignored_files": ["!a"]}"#,
                "negated patterns are not supported",
            ),
            (
                r#"{"severity_thresholds": {"block_on": ["fatal"]}}"#,
                "unknown severity \"fatal\"",
            ),
            (r#"{"severity_thresholds": 3}"#, "\"severity_thresholds\""),
        ] {
            match import_text(json) {
                Err(e) => assert!(e.message.contains(text), "{json}: {}", e.message),
                Ok(i) => assert!(i.left_out.iter().any(|l| l.contains(text)), "{json}: {i:?}"),
            }
        }
    }
}
