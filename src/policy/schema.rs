//! The JSON schema of the policy file, for editors.
//!
//! It uses draft 7, the newest that the TOML plug-ins of common editors support. It is generated
//! from the table of keys. `schemas/policy.schema.json` is a copy.

use super::keys::{
    self, BACKEND, GUIDELINE, PATH, PolicyKey, TABLES, Trust, VERSION, is_valid_for,
};
use super::kind::{TOOLS, ValueKind};
use super::value::PolicyValue;
use super::{
    Backend, BackendKind, FILE_NAME, Guideline, PRESETS, PathRule, Policy, SettingOrigin, preset,
};
use crate::finding::{Category, Severity};
use serde_json::{Map, Value as Json, json};

/// Description of `[[path]]`.
pub(super) const PATHS: &str = "Thresholds for a part of the repository. If several entries match a path, the last one \
                                counts, key by key.";
/// Description of `[[guideline]]`.
pub(super) const GUIDELINES: &str = "Instructions for models that review matching files.";
/// Description of `[backend.NAME]`.
pub(super) const BACKENDS: &str = "Backends that can review in addition to the rules. List their names in \
                                   review.backends.";

/// Returns the schema.
pub fn schema() -> Json {
    let policy = Policy::default();
    let mut top = Map::new();
    top.insert(
        "version".to_owned(),
        json!({ "description": "Version of the format.", "const": VERSION, "default": VERSION }),
    );
    for table in TABLES {
        let properties = properties(table.name, table.keys, Some(&policy), |_| true);
        if table.name.is_empty() {
            top.extend(properties);
        } else {
            top.insert(table.name.to_owned(), object(table.about, properties, &[]));
        }
    }
    top.insert("backend".to_owned(), backends());
    let rule = PathRule {
        glob: Vec::new(),
        block_on: None,
        warn_on: None,
        min_confidence: None,
        origin: SettingOrigin::default(),
    };
    top.insert(
        "path".to_owned(),
        entries(
            PATHS,
            properties("path", PATH, Some(&rule), |_| true),
            &["glob"],
        ),
    );
    top.insert(
        "guideline".to_owned(),
        entries(
            GUIDELINES,
            properties("guideline", GUIDELINE, None::<&Guideline>, |_| true),
            &["glob", "text"],
        ),
    );
    let mut schema = object(
        "Policy of claude-reviewer. The project's file is at the top of the repository; your own file is \
         ~/.config/claude-reviewer/config.toml. Operator-only keys in the project's file have no effect until \
         `claude-reviewer policy trust`.",
        top,
        &[],
    );
    if let Json::Object(o) = &mut schema {
        o.insert(
            "$schema".to_owned(),
            json!("http://json-schema.org/draft-07/schema#"),
        );
        o.insert("title".to_owned(), json!(FILE_NAME));
    }
    schema
}

/// Returns the schema as text, as in `schemas/policy.schema.json`.
pub fn text() -> String {
    format!("{:#}\n", schema())
}

fn backends() -> Json {
    let mut known = Map::new();
    for kind in BackendKind::ALL {
        known.insert(
            kind.name().to_owned(),
            object(kind.about(), built_in_properties(kind.name(), kind), &[]),
        );
    }
    for preset in PRESETS {
        let properties = built_in_properties(preset.name, BackendKind::OpenAi);
        known.insert(
            preset.name.to_owned(),
            object(preset.about, properties, &[]),
        );
    }
    let custom = properties("backend.NAME", BACKEND, Some(&Backend::new("-")), |_| true);
    let other = object("A custom backend.", custom, &[]);
    json!({
        "description": BACKENDS,
        "type": "object",
        "properties": known,
        "additionalProperties": other,
        "propertyNames": { "pattern": "^[a-z0-9_-]{1,64}$", "not": { "const": "rules" } },
    })
}

/// Describes the keys of a backend that needs no table. Its kind is known.
fn built_in_properties(name: &str, kind: BackendKind) -> Map<String, Json> {
    let backend = Backend::new(name);
    properties("backend.NAME", BACKEND, Some(&backend), |key| {
        key != "kind" && is_valid_for(key, kind)
    })
}

fn object(about: &str, properties: impl Into<Json>, required: &[&str]) -> Json {
    let properties: Json = properties.into();
    let mut o = json!({
        "description": about, "type": "object", "properties": properties, "additionalProperties": false,
    });
    if !required.is_empty() {
        o["required"] = json!(required);
    }
    o
}

fn entries(about: &str, properties: Map<String, Json>, required: &[&str]) -> Json {
    json!({ "description": about, "type": "array", "items": object(about, properties, required) })
}

/// Describes keys that have the values of `defaults` if they are not set.
fn properties<T>(
    table: &str,
    keys: &'static [PolicyKey<T>],
    defaults: Option<&T>,
    fits: impl Fn(&str) -> bool,
) -> Map<String, Json> {
    keys.iter()
        .filter(|k| fits(k.name))
        .map(|k| {
            let mut o = k.kind.schema();
            o["description"] = json!(describe(table, k));
            let default = defaults.map_or(PolicyValue::Unset, |d| (k.get)(d));
            if default != PolicyValue::Unset && !matches!(k.kind, ValueKind::PatternOrPatterns) {
                o["default"] = default.to_json();
            }
            (k.name.to_owned(), o)
        })
        .collect()
}

/// Describes a key, with who may set it and what overrides it.
fn describe<T>(table: &str, key: &PolicyKey<T>) -> String {
    let full = keys::full(table, key.name);
    let mut text = key.about.to_owned();
    text.push_str(match key.trust {
        Trust::Open => "",
        Trust::Personal => " Your own file overrides the project's file.",
        Trust::Operator => " Operator only.",
        Trust::OperatorUnlessLoopback => " Operator only, except for an address of this machine.",
        Trust::Narrows => " The project's file can only remove entries of the user's list.",
    });
    let flag = keys::flag_of(&full).map(str::to_owned);
    let variables = keys::variables_of(&full).map(|v| v.names.join(" or "));
    let ways: Vec<String> = [flag, variables].into_iter().flatten().collect();
    if !ways.is_empty() {
        text.push_str(&format!(" Overridden by {}.", ways.join(" and ")));
    }
    text
}

impl ValueKind {
    /// Returns the schema of a value. It accepts more than [`ValueKind::read`] where a schema
    /// cannot express the bounds.
    fn schema(self) -> Json {
        let pattern =
            json!({ "type": "string", "pattern": "^[^!]", "maxLength": super::glob::MAX_PATTERN });
        match self {
            Self::Flag => json!({ "type": "boolean" }),
            Self::Count(min, max) => json!({ "type": "integer", "minimum": min, "maximum": max }),
            Self::Number(min, max) => json!({ "type": "number", "minimum": min, "maximum": max }),
            Self::Span(..) => json!({
                "type": "string",
                "pattern": r"^\s*(\d+\s*(d|h|min|m|sec|s|ms)\s*)+$",
                "examples": ["90s", "2m", "1h30m"],
            }),
            Self::Choice(names) => json!({ "enum": names }),
            Self::Severities => list(&severity()),
            Self::SeverityTable => json!({
                "type": "object",
                "additionalProperties": severity(),
                "propertyNames": { "pattern": "^[a-z0-9._/-]{1,128}$" },
            }),
            Self::Categories => {
                let plurals = [
                    "bugs",
                    "tests",
                    "missing_requirement",
                    "best_practices",
                    "best-practices",
                ];
                list(
                    &json!({ "enum": Category::ALL.iter().map(|c| c.name()).chain(plurals).collect::<Vec<_>>() }),
                )
            }
            Self::Patterns => list(&pattern),
            Self::PatternOrPatterns => json!({
                "anyOf": [pattern, { "type": "array", "items": pattern, "minItems": 1, "uniqueItems": true }],
                "examples": ["src/**", "*.sql", ["docs/", "*.md"]],
            }),
            Self::Files => {
                list(&json!({ "type": "string", "pattern": r"^(?!/)(?!.*(^|/)\.\.(/|$)).+$" }))
            }
            Self::Storage => json!({ "type": "string", "pattern": r"^(?!.*(^|/)\.\.(/|$)).+$" }),
            Self::BackendNames => list(&json!({
                "anyOf": [
                    { "enum": preset::built_in_names().collect::<Vec<_>>() },
                    { "type": "string", "pattern": "^[a-z0-9_-]{1,64}$" },
                ],
            })),
            Self::RuleIds => list(&json!({ "type": "string", "pattern": "^[a-z0-9._/-]{1,128}$" })),
            Self::Tools => list(&json!({ "enum": TOOLS })),
            Self::Sandbox | Self::Folders => list(&json!({ "type": "string", "minLength": 1 })),
            Self::Signers => {
                list(&json!({ "type": "string", "pattern": "(ssh-|ecdsa-sha2-|sk-)\\S+ \\S+" }))
            }
            Self::Line(max) | Self::Text(max) => {
                json!({ "type": "string", "minLength": 1, "maxLength": max })
            }
            Self::Program => {
                json!({ "type": "string", "pattern": "^(/.*|[^/]+)$", "examples": ["claude", "/usr/local/bin/claude"] })
            }
            Self::Variable => {
                json!({ "type": "string", "pattern": "^[A-Za-z_][A-Za-z0-9_]{0,127}$" })
            }
            Self::Url => json!({
                "type": "string",
                "pattern": "^https?://[^\\s@?#]+$",
                "examples": ["https://api.example.com/v1", "http://127.0.0.1:11434/v1"],
            }),
            Self::StoreUrl => json!({
                "type": "string",
                "pattern": "^(s3|gs|azblob|rediss?|file)://[^\\s@?#]+$",
                "examples": ["s3://bucket/reviews", "rediss://cache.example.com", "file:///var/cache/reviews"],
            }),
            Self::CacheSigners => {
                list(&json!({ "type": "string", "pattern": "^\\S+ +ssh-ed25519 +\\S+" }))
            }
            Self::Words => {
                json!({ "type": "array", "items": { "type": "string", "minLength": 1 }, "minItems": 1 })
            }
            Self::Variables => list(&Self::Variable.schema()),
            Self::Projects => {
                list(&json!({ "type": "string", "pattern": "^[A-Za-z0-9][A-Za-z0-9._~/-]*$" }))
            }
            Self::Pattern => {
                json!({ "type": "string", "minLength": 1, "maxLength": 512, "format": "regex" })
            }
            Self::Servers => {
                let keys =
                    super::kind::context::KEYS.map(|(name, kind)| (name.to_owned(), kind.schema()));
                let server = json!({
                    "type": "object",
                    "properties": serde_json::Map::from_iter(keys),
                    "additionalProperties": false,
                });
                json!({
                    "type": "object",
                    "additionalProperties": server,
                    "propertyNames": { "pattern": "^[a-z0-9_-]{1,64}$" },
                })
            }
            Self::Price => {
                let price = json!({ "type": "number", "minimum": 0, "maximum": 1_000_000 });
                json!({
                    "type": "object",
                    "properties": { "input": price, "cached": price, "output": price },
                    "additionalProperties": false,
                })
            }
        }
    }
}

/// Returns the schema of a list without duplicates.
fn list(items: &Json) -> Json {
    json!({ "type": "array", "items": items, "uniqueItems": true })
}

/// Returns the schema of a severity. Canonical names come first: editors offer them in this order.
fn severity() -> Json {
    let synonyms = [
        "blocker", "high", "error", "risk", "medium", "low", "warning", "issue", "info", "nit",
        "note",
    ];
    json!({ "enum": Severity::ALL.iter().map(|s| s.name()).chain(synonyms).collect::<Vec<_>>() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_has_a_description_and_a_type() {
        fn walk(name: &str, o: &Json) {
            assert!(
                o["description"]
                    .as_str()
                    .is_some_and(|d| d.len() > 10 && d.ends_with('.')),
                "{name}: {o}"
            );
            assert!(
                ["type", "enum", "const", "anyOf"]
                    .iter()
                    .any(|k| o.get(k).is_some()),
                "{name}"
            );
            for (key, inner) in o["properties"].as_object().into_iter().flatten() {
                if name.ends_with(".price") {
                    continue;
                }
                walk(&format!("{name}.{key}"), inner);
            }
        }
        walk("", &schema());
    }
}
