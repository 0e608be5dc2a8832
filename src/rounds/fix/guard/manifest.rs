//! Package manifests: a fix may change their dependencies, but not scripts or settings of checks.

use crate::diff::RepoPath;
use serde_json::Value as Json;

/// Keys of `package.json`, `composer.json` and `deno.json` that neither run a program nor configure
/// a check.
const JSON_KEYS: &[&str] = &[
    "dependencies",
    "devDependencies",
    "peerDependencies",
    "optionalDependencies",
    "version",
    "description",
    "keywords",
    "author",
    "license",
    "homepage",
    "repository",
    "require",
    "require-dev",
    "imports",
    "exports",
    "main",
    "module",
    "types",
];
/// Tables of `Cargo.toml`, `pyproject.toml` and `Pipfile` with dependencies.
const TOML_KEYS: &[&str] = &[
    "dependencies",
    "dev-dependencies",
    "optional-dependencies",
    "dependency-groups",
    "packages",
    "dev-packages",
    "description",
    "version",
    "keywords",
];

/// Returns the forbidden change of a manifest, or `None` if there is none.
pub(super) fn changed(path: &RepoPath, before: &[u8], after: &[u8]) -> Option<&'static str> {
    let name = String::from_utf8_lossy(path.file_name()).to_lowercase();
    match name.as_str() {
        "package.json" | "composer.json" | "deno.json" | "deno.jsonc" => {
            is_changed(before, after, json_settings).then_some("scripts or settings of the package")
        }
        "cargo.toml" | "pyproject.toml" | "pipfile" => {
            is_changed(before, after, toml_settings).then_some("settings of the build or of checks")
        }
        _ => None,
    }
}

/// Parses a JSON manifest, without the keys that neither run a program nor configure a check.
fn json_settings(text: &[u8]) -> Option<Json> {
    serde_json::from_slice::<Json>(text).ok().map(without_data)
}

/// Parses a TOML manifest, without its dependencies.
fn toml_settings(text: &[u8]) -> Option<toml::Value> {
    let table: toml::Table = std::str::from_utf8(text).ok()?.parse().ok()?;
    Some(without_dependencies(toml::Value::Table(table)))
}

/// Returns true if the remaining content of a manifest differs, or cannot be parsed.
fn is_changed<T: PartialEq>(
    before: &[u8],
    after: &[u8],
    read: impl Fn(&[u8]) -> Option<T>,
) -> bool {
    match (read(before), read(after)) {
        (Some(before), Some(after)) => before != after,
        // A manifest that is new, or invalid before or after.
        _ => before != after,
    }
}

/// Returns a manifest without the keys of [`JSON_KEYS`].
fn without_data(mut value: Json) -> Json {
    if let Some(object) = value.as_object_mut() {
        JSON_KEYS.iter().for_each(|key| drop(object.remove(*key)));
    }
    value
}

/// Removes tables of dependencies, except those of build scripts, which run.
fn without_dependencies(mut value: toml::Value) -> toml::Value {
    if let Some(table) = value.as_table_mut() {
        TOML_KEYS.iter().for_each(|key| drop(table.remove(*key)));
        for name in [
            "project",
            "package",
            "workspace",
            "target",
            "tool",
            "poetry",
            "group",
        ] {
            if let Some(inner) = table.remove(name) {
                table.insert(name.to_owned(), without_nested(name, inner));
            }
        }
    }
    value
}

/// Removes dependencies from a table that may contain tables of them.
fn without_nested(name: &str, value: toml::Value) -> toml::Value {
    match value {
        // Each platform or group has tables of its own.
        toml::Value::Table(table) if matches!(name, "target" | "group") => toml::Value::Table(
            table
                .into_iter()
                .map(|(key, inner)| (key, without_dependencies(inner)))
                .collect(),
        ),
        toml::Value::Table(mut table) if name == "tool" => {
            if let Some(poetry) = table.remove("poetry") {
                table.insert("poetry".to_owned(), without_dependencies(poetry));
            }
            toml::Value::Table(table)
        }
        other => without_dependencies(other),
    }
}
