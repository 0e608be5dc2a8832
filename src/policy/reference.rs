//! Generates `docs/configuration-reference.md` from the table of keys, and compares it with the
//! file.

use super::keys::{self, BACKEND, GUIDELINE, PATH, PolicyKey, TABLES, Trust, VERSION, Weaker};
use super::kind::ValueKind;
use super::schema::{BACKENDS, GUIDELINES, PATHS};
use super::value::PolicyValue;
use super::{Backend, BackendKind, PRESETS, PathRule, Policy, SettingOrigin};
use crate::env::Env;
use crate::finding::Severity;
use crate::request::Overrides;
use std::collections::HashSet;
use std::path::Path;

/// Everything before the keys. The page explains its own terms, so that it can be read without
/// `configuration.md`.
const INTRODUCTION: &str = "\
# Configuration reference

This page lists every key of the policy file `.claude-reviewer.toml`. [Configuration](configuration.md) explains where \
the file is, which layer applies, and how trust works. A test generates this page from the table of keys: \
`UPDATE=1 cargo test --lib docs_` rewrites it.

An environment variable overrides both policy files, and a flag overrides the variable. Each key has one of these \
trust levels:

| set in | meaning |
|---|---|
| any file | The project's file overrides your own file. |
| your file first | Your own file overrides the project's file. |
| operator only | Your own file overrides the project's file. The project's file needs [trust](configuration.md#trust). |

*Weaker if* names the change of a value that the rule `policy-weakened` reports. `[[path]]` and `[[guideline]]` \
entries are compared as a whole: an entry with lower thresholds, and a removed or changed guideline, are weaker.

Severities are `critical`, `major`, `minor` and `suggestion`. Names of other tools are accepted: `blocker` is \
critical; `high`, `error` and `risk` are major; `medium`, `low`, `warning` and `issue` are minor; `info`, `nit` and \
`note` are suggestions. [Path patterns](configuration.md#path-patterns) read like lines of `.gitignore`. A list has \
at most 1,000 entries.
";

/// A section of the page: one table of the policy file.
struct ReferenceSection {
    /// The header in the file, such as `[review]`; empty for the top level.
    header: String,
    about: &'static str,
    keys: Vec<ReferenceKey>,
}

/// A key on the page.
struct ReferenceKey {
    /// The full name, which is also the heading.
    name: String,
    about: &'static str,
    kind: ValueKind,
    trust: Trust,
    weaker: Weaker,
    default: PolicyValue,
    is_required: bool,
}

fn entries<T>(
    table: &str,
    keys: &'static [PolicyKey<T>],
    defaults: &T,
    required: &[&str],
) -> Vec<ReferenceKey> {
    keys.iter()
        .map(|k| ReferenceKey {
            name: keys::full(table, k.name),
            about: k.about,
            kind: k.kind,
            trust: k.trust,
            weaker: k.weaker,
            default: (k.get)(defaults),
            is_required: required.contains(&k.name),
        })
        .collect()
}

/// Lists the tables in the order of the page.
fn sections() -> Vec<ReferenceSection> {
    let policy = Policy::default();
    let mut sections = Vec::new();
    for table in TABLES {
        let header = if table.name.is_empty() {
            String::new()
        } else {
            format!("[{}]", table.name)
        };
        sections.push(ReferenceSection {
            header,
            about: table.about,
            keys: entries(table.name, table.keys, &policy, &[]),
        });
        if table.name == "review" {
            let keys = entries("backend.NAME", BACKEND, &Backend::new("-"), &[]);
            sections.push(ReferenceSection {
                header: "[backend.NAME]".to_owned(),
                about: BACKENDS,
                keys,
            });
        }
        if table.name == "rules" {
            let origin = SettingOrigin::default();
            let rule = PathRule {
                glob: Vec::new(),
                block_on: None,
                warn_on: None,
                min_confidence: None,
                origin,
            };
            let keys = entries("path", PATH, &rule, &["glob"]);
            sections.push(ReferenceSection {
                header: "[[path]]".to_owned(),
                about: PATHS,
                keys,
            });
            let guideline = super::Guideline {
                glob: Vec::new(),
                text: String::new(),
                origin: SettingOrigin::default(),
            };
            let keys = entries("guideline", GUIDELINE, &guideline, &["glob", "text"]);
            sections.push(ReferenceSection {
                header: "[[guideline]]".to_owned(),
                about: GUIDELINES,
                keys,
            });
        }
    }
    sections
}

/// Returns the page.
fn page() -> String {
    let sections = sections();
    let mut text = INTRODUCTION.to_owned();
    text.push_str("\n## Index\n\n| table | keys |\n|---|---|\n| | [`version`](#version) |\n");
    for section in &sections {
        let links = section
            .keys
            .iter()
            .map(|e| format!("[`{}`](#{})", short(&e.name), anchor(&e.name)));
        let links: Vec<String> = links.collect();
        let name = if section.header.is_empty() {
            String::new()
        } else {
            format!("`{}`", section.header)
        };
        text.push_str(&format!("| {name} | {} |\n", links.join(", ")));
    }
    for section in &sections {
        if section.header.is_empty() {
            text.push_str(&format!(
                "\n## Top level\n\n{}\n\n{}",
                section.about,
                version()
            ));
        } else {
            text.push_str(&format!("\n## `{}`\n\n{}\n", section.header, section.about));
        }
        if section.header == "[backend.NAME]" {
            text.push_str(&built_in());
        }
        for entry in &section.keys {
            text.push_str(&describe(entry));
        }
    }
    text
}

/// Describes the backends that need no table.
fn built_in() -> String {
    let mut text =
        "\nThese backends are built in, and each is named after its kind:\n\n| name | backend |\n|---|---|\n"
            .to_owned();
    for kind in BackendKind::ALL {
        text.push_str(&format!("| `{}` | {} |\n", kind.name(), kind.about()));
    }
    text.push_str(
        "\nSo are these presets of kind `openai`. They need no table, and a table with the name of a preset overrides \
         single keys:\n\n| name | `base_url` | variable with the key |\n|---|---|---|\n",
    );
    for preset in PRESETS {
        let variable = preset
            .key_variable
            .map_or_else(|| "none".to_owned(), |v| format!("`{v}`"));
        text.push_str(&format!(
            "| `{}` | `{}` | {variable} |\n",
            preset.name, preset.base_url
        ));
    }
    text
}

/// Describes `version`, which the parser checks before it uses the table of keys.
fn version() -> String {
    format!(
        "### `version`\n\nVersion of the format.\n\n- Type: `{VERSION}`\n- Default: `{VERSION}`\n- Set in: any file\n"
    )
}

fn describe(entry: &ReferenceKey) -> String {
    let mut lines = vec![format!("Type: {}", type_of(entry.kind))];
    lines.push(match &entry.default {
        _ if entry.is_required => "Required".to_owned(),
        PolicyValue::Unset => "Default: not set".to_owned(),
        value => format!("Default: `{}`", value.to_toml()),
    });
    lines.push(format!("Set in: {}", trust(entry.trust)));
    lines.extend(keys::flag_of(&entry.name).map(|flag| format!("Flag: `{flag}`")));
    if let Some(variables) = keys::variables_of(&entry.name) {
        let names: Vec<String> = variables.names.iter().map(|n| format!("`{n}`")).collect();
        let kinds: Vec<String> = variables
            .kinds
            .iter()
            .map(|k: &BackendKind| format!("`{}`", k.name()))
            .collect();
        let of = if kinds.is_empty() {
            String::new()
        } else {
            format!(" (kind {})", kinds.join(" or "))
        };
        lines.push(format!("Environment: {}{of}", names.join(", else ")));
    }
    lines.extend(weaker(entry.weaker).map(|w| format!("Weaker if {w}")));
    let list: String = lines.iter().map(|l| format!("- {l}\n")).collect();
    format!("\n### `{}`\n\n{}\n\n{list}", entry.name, entry.about)
}

/// Returns the type of a key, with the names of a choice as code.
fn type_of(kind: ValueKind) -> String {
    match kind {
        ValueKind::Choice(names) => names
            .iter()
            .map(|n| format!("`\"{n}\"`"))
            .collect::<Vec<_>>()
            .join(", "),
        ValueKind::Severities => "a list of severities".to_owned(),
        kind => kind.expects(),
    }
}

fn trust(trust: Trust) -> &'static str {
    match trust {
        Trust::Open => "any file",
        Trust::Personal => "your file first",
        Trust::Operator => "operator only",
        Trust::OperatorUnlessLoopback => "operator only, except for an address of this machine",
        Trust::Narrows => "any file, but the project's file can only remove entries of your list",
    }
}

fn weaker(weaker: Weaker) -> Option<String> {
    let text = match weaker {
        Weaker::Never => return None,
        Weaker::EntryRemoved => "an entry is removed",
        Weaker::BlocksLess => "a severity no longer blocks",
        Weaker::WarnsLess => "a severity neither warns nor blocks any longer",
        Weaker::EntryAdded => "an entry is added",
        Weaker::MatchesMore => "a pattern matches files that were reviewed before",
        Weaker::Lower => "the value is lower",
        Weaker::Longer(_) => "the value is higher",
        Weaker::Later(names) => {
            let steps: Vec<String> = names.iter().map(|n| format!("`{n}`")).collect();
            return Some(format!(
                "the value moves to the right: {}",
                steps.join(", ")
            ));
        }
        Weaker::CoversLess => "the list changes from empty to a selection, or an entry is removed",
        Weaker::RuleSeverityLower => "a severity is lower",
        Weaker::Different => "the value is different",
    };
    Some(text.to_owned())
}

/// Returns the name of a key within its table.
fn short(full: &str) -> &str {
    full.rsplit('.').next().unwrap_or(full)
}

/// Returns the anchor that GitHub and mdBook derive from a heading.
fn anchor(heading: &str) -> String {
    heading
        .to_lowercase()
        .chars()
        .filter(|c| c.is_alphanumeric() || matches!(c, '_' | '-'))
        .collect()
}

#[test]
fn docs_the_configuration_reference() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/configuration-reference.md");
    let page = page();
    if Env::of_process().unwrap().var("UPDATE").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        kept == page,
        "{} is out of date: UPDATE=1 cargo test --lib docs_",
        path.display()
    );
}

#[test]
fn the_reference_has_every_key_of_the_schema_with_one_anchor_each() {
    let page = page();
    let headings: Vec<&str> = page
        .lines()
        .filter_map(|l| l.strip_prefix("### `")?.strip_suffix('`'))
        .collect();
    let mut expected = vec!["version".to_owned()];
    let schema = super::schema::schema();
    for (name, value) in schema["properties"].as_object().unwrap() {
        let (prefix, table) = match name.as_str() {
            "backend" => ("backend.NAME", &value["additionalProperties"]),
            "path" | "guideline" => (name.as_str(), &value["items"]),
            _ => (name.as_str(), value),
        };
        match table.get("additionalProperties") {
            Some(more) if *more == false => {
                let names = table["properties"].as_object().unwrap().keys();
                expected.extend(names.map(|k| keys::full(prefix, k)));
            }
            _ if name != "version" => expected.push(name.clone()),
            _ => {}
        }
    }
    let mut sorted = headings.clone();
    sorted.sort_unstable();
    expected.sort();
    assert_eq!(sorted, expected);
    let sections = page.lines().filter_map(|l| l.strip_prefix("## "));
    let anchors: Vec<String> = headings
        .iter()
        .copied()
        .chain(sections)
        .map(anchor)
        .collect();
    assert_eq!(
        anchors.iter().collect::<HashSet<_>>().len(),
        anchors.len(),
        "{anchors:?}"
    );
    for link in page.split("](#").skip(1) {
        let target = link.split(')').next().unwrap();
        assert!(anchors.iter().any(|a| a == target), "#{target}");
    }
}

#[test]
fn flags_and_variables_of_the_reference_set_their_keys() {
    let overrides = Overrides {
        block_on: Some(vec![Severity::Minor]),
        warn_on: Some(Vec::new()),
        on_incomplete: Some(crate::request::OnIncomplete::Warn),
        focus: Some(Vec::new()),
        depth: Some(crate::request::Depth::Thorough),
        model: Some("m".to_owned()),
        jobs: Some(2),
        timeout: Some(std::time::Duration::from_secs(9)),
        max_cost_usd: Some(0.5),
        max_requests: Some(3),
        max_tokens: None,
    };
    // The review applies `--backend` itself.
    for (key, flag) in keys::FLAGS
        .iter()
        .filter(|(key, _)| *key != "review.backends")
    {
        assert_eq!(place_of(key, &Env::default(), &overrides), *flag);
    }
    for variables in keys::VARIABLES {
        for name in variables.names {
            let value = if variables.key == "tests.run" {
                "true"
            } else {
                "3"
            };
            let env = Env::from_pairs("/".into(), [(*name, value)]);
            assert_eq!(place_of(variables.key, &env, &Overrides::default()), *name);
        }
    }
}

/// Returns the flag or the variable that sets a key.
fn place_of(key: &str, env: &Env, overrides: &Overrides) -> String {
    let sources = super::Sources {
        user: None,
        project: None,
        env,
        overrides,
    };
    let policy = super::load(&sources).unwrap().policy;
    policy
        .origin_of(&key.replace("NAME", "claude"))
        .place
        .clone()
}
