//! Renders a policy as text, TOML, JSON, and as input of its hash.

use super::keys::{BACKEND, GUIDELINE, PATH, PolicyKey, ReceiptBinding, TABLES, Trust, VERSION};
use super::value::{PolicyValue, bare_or_quoted};
use super::{Layer, Policy, SettingOrigin};
use crate::untrusted::{Inert, is_active};
use serde_json::{Map, Value as Json, json};
use std::collections::BTreeMap;

/// The hash of the default policy. Most runs show it, and computing it would take most of the time
/// of loading a policy without a file. A test compares it.
const DEFAULT_HASH: &str = "e86f23a85a5e056e";

/// The start of the headers of `[backend.NAME]`.
const BACKENDS: &str = "backend.";

/// One value of a policy.
struct PolicyRow<'a> {
    name: String,
    value: PolicyValue,
    origin: &'a SettingOrigin,
    trust: Trust,
    receipt: ReceiptBinding,
}

/// A table with its header without brackets, and its rows.
struct PolicySection<'a> {
    header: Header,
    rows: Vec<PolicyRow<'a>>,
}

enum Header {
    Top,
    Table(String),
    /// `[[path]]`, `[[guideline]]`.
    Entry(&'static str),
}

impl Policy {
    /// Returns the hash of all effective values: 16 hexadecimal digits. Origins do not count.
    pub fn hash(&self) -> String {
        if self.origins.is_empty() && self.paths.is_empty() && self.guidelines.is_empty() {
            return DEFAULT_HASH.to_owned();
        }
        self.fresh_hash()
    }

    /// Returns the values that receipts are bound to, as the table of keys says
    /// ([`ReceiptBinding`]); of backends, those that the policy asks. Each name (`block_on`,
    /// `[review] depth`, `[[guideline]] 2`) has a hash of its value: 16 hexadecimal digits.
    pub fn bound_by_receipts(&self) -> BTreeMap<String, String> {
        let asked: Vec<String> = self
            .review
            .backends
            .iter()
            .map(|name| backend(name))
            .collect();
        let mut entries: BTreeMap<&str, usize> = BTreeMap::new();
        let mut out = BTreeMap::new();
        for section in sections(self) {
            let rows = section.rows.iter().filter(|r| r.is_bound_by_receipts());
            match &section.header {
                Header::Top => out.extend(rows.map(|r| (r.name.clone(), short(&r.line())))),
                Header::Table(name) if name.starts_with(BACKENDS) && !asked.contains(name) => {}
                Header::Table(name) => {
                    out.extend(rows.map(|r| (format!("[{name}] {}", r.name), short(&r.line()))));
                }
                // The order of entries matters.
                Header::Entry(name) => {
                    let n = entries.entry(name).and_modify(|n| *n += 1).or_insert(1);
                    out.insert(
                        format!("[[{name}]] {n}"),
                        short(&rows.map(PolicyRow::line).collect::<String>()),
                    );
                }
            }
        }
        out
    }

    fn fresh_hash(&self) -> String {
        short(&self.to_toml(false))
    }

    /// Returns a policy file that sets every effective value; with `origins`, each line has a
    /// comment with the origin of its value.
    pub fn to_toml(&self, origins: bool) -> String {
        let mut text = format!("version = {VERSION}\n");
        for section in sections(self) {
            if section.rows.iter().all(|r| r.value == PolicyValue::Unset) {
                continue;
            }
            match &section.header {
                Header::Top => {}
                Header::Table(name) => text.push_str(&format!("\n[{name}]\n")),
                Header::Entry(name) => text.push_str(&format!("\n[[{name}]]\n")),
            }
            for row in section
                .rows
                .iter()
                .filter(|r| r.value != PolicyValue::Unset)
            {
                let line = format!("{} = {}", row.name, row.value.to_toml());
                if origins {
                    text.push_str(&format!("{line:<44} # {}\n", origin(row)));
                } else {
                    text.push_str(&line);
                    text.push('\n');
                }
            }
        }
        text
    }

    /// Returns all values with their full keys; with `origins`, also their origins and trust.
    pub fn to_text(&self, origins: bool) -> String {
        let mut lines = Vec::new();
        let mut counts = BTreeMap::new();
        for section in sections(self) {
            let prefix = match &section.header {
                Header::Top => String::new(),
                Header::Table(name) => format!("{name}."),
                Header::Entry(name) => {
                    let n = counts.entry(*name).and_modify(|n| *n += 1).or_insert(1);
                    format!("{name}[{n}].")
                }
            };
            for row in section.rows {
                let value = if row.value == PolicyValue::Unset {
                    "-".to_owned()
                } else {
                    row.value.to_toml()
                };
                lines.push((
                    format!("{prefix}{}", row.name),
                    value,
                    origin(&row),
                    row.trust,
                ));
            }
        }
        let (names, values) = (
            width(lines.iter().map(|l| &l.0)),
            width(lines.iter().map(|l| &l.1)),
        );
        let mut text = String::new();
        for (name, value, origin, trust) in &lines {
            let line = if origins {
                let only = if trust.is_operator() {
                    "  (operator only)"
                } else {
                    ""
                };
                format!("{name:<names$}  {value:<values$}  {origin}{only}")
            } else {
                format!("{name:<names$}  {value}")
            };
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }

    /// Returns the policy as JSON with the structure of the file; with `origins`, the member
    /// `origins` has the origin of each value that is not a default, by full key.
    pub fn to_json(&self, origins: bool) -> Json {
        let mut top = Map::new();
        let mut places = Map::new();
        top.insert("version".to_owned(), json!(VERSION));
        for section in sections(self) {
            let (name, entry) = match &section.header {
                Header::Top => (String::new(), false),
                Header::Table(name) => (name.clone(), false),
                Header::Entry(name) => ((*name).to_owned(), true),
            };
            let mut table = Map::new();
            for row in section.rows {
                let index = top.get(&name).and_then(Json::as_array).map_or(0, Vec::len);
                let full = match (entry, name.is_empty()) {
                    (true, _) => format!("{name}[{index}].{}", row.name),
                    (false, true) => row.name.clone(),
                    (false, false) => format!("{name}.{}", row.name),
                };
                if row.origin.layer != Layer::Default {
                    let place = &row.origin;
                    let line = place.line.map_or(Json::Null, Json::from);
                    places.insert(
                        full,
                        json!({ "layer": place.layer.name(), "place": place.place, "line": line }),
                    );
                }
                table.insert(row.name, row.value.to_json());
            }
            match name.split_once('.') {
                _ if name.is_empty() => top.extend(table),
                Some((outer, inner)) => {
                    if let Json::Object(o) = top.entry(outer).or_insert_with(|| json!({})) {
                        o.insert(inner.to_owned(), Json::Object(table));
                    }
                }
                None if entry => {
                    if let Json::Array(a) = top.entry(name).or_insert_with(|| json!([])) {
                        a.push(Json::Object(table));
                    }
                }
                None => {
                    top.insert(name, Json::Object(table));
                }
            }
        }
        if origins {
            top.insert("origins".to_owned(), Json::Object(places));
        }
        Json::Object(top)
    }
}

/// Returns indented JSON with escaped terminal control characters.
pub fn json_text(json: &Json) -> String {
    let mut text = String::new();
    for c in format!("{json:#}\n").chars() {
        if c == '\n' || !is_active(c) {
            text.push(c);
        } else {
            // Such a character is inside a string: JSON does not allow it elsewhere.
            for unit in c.encode_utf16(&mut [0; 2]) {
                text.push_str(&format!("\\u{unit:04x}"));
            }
        }
    }
    text
}

impl Layer {
    /// Returns the name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::User => "user",
            Self::Project => "project",
            Self::Environment => "environment",
            Self::Flag => "flag",
        }
    }
}

impl PolicyRow<'_> {
    /// Returns true if receipts are bound to the value. A value that is not set decides nothing.
    fn is_bound_by_receipts(&self) -> bool {
        self.receipt == ReceiptBinding::Bound && self.value != PolicyValue::Unset
    }

    /// Returns the row as a line of TOML.
    fn line(&self) -> String {
        format!("{} = {}\n", self.name, self.value.to_toml())
    }
}

/// Returns the characters of the longest text, at most 40.
fn width<'t>(texts: impl Iterator<Item = &'t String>) -> usize {
    texts
        .map(|text| text.chars().count())
        .max()
        .unwrap_or(0)
        .min(40)
}

/// Returns the header of a backend's table.
fn backend(name: &str) -> String {
    format!("{BACKENDS}{}", bare_or_quoted(name))
}

/// Returns the first 16 hexadecimal digits of the hash of a text.
fn short(text: &str) -> String {
    let mut digest = super::trust::sha256(text.as_bytes());
    digest.truncate(16);
    digest
}

fn origin(row: &PolicyRow<'_>) -> String {
    match row.origin.layer {
        Layer::Default => "default".to_owned(),
        layer => format!("{} {}", layer.name(), Inert::new(row.origin.to_string())),
    }
}

/// Returns the sections of a policy in the order of the documentation, without backends that are
/// neither listed nor set.
fn sections(policy: &Policy) -> Vec<PolicySection<'_>> {
    let mut sections = Vec::new();
    for table in TABLES {
        let rows = rows(table.keys, policy, |key| {
            policy.origin_of(&super::keys::full(table.name, key))
        });
        let header = if table.name.is_empty() {
            Header::Top
        } else {
            Header::Table(table.name.to_owned())
        };
        sections.push(PolicySection { header, rows });
        if table.name == "review" {
            for b in &policy.backends {
                let mut keys = BACKEND
                    .iter()
                    .map(|k| format!("backend.{}.{}", b.name, k.name));
                let is_set = keys.any(|key| policy.layer_of(&key) != Layer::Default);
                if is_set || policy.review.backends.contains(&b.name) {
                    let rows = self::rows(BACKEND, b, |key| {
                        policy.origin_of(&format!("backend.{}.{key}", b.name))
                    });
                    sections.push(PolicySection {
                        header: Header::Table(backend(&b.name)),
                        rows,
                    });
                }
            }
        }
        if table.name == "rules" {
            for p in &policy.paths {
                sections.push(PolicySection {
                    header: Header::Entry("path"),
                    rows: self::rows(PATH, p, |_| &p.origin),
                });
            }
            for g in &policy.guidelines {
                let rows = self::rows(GUIDELINE, g, |_| &g.origin);
                sections.push(PolicySection {
                    header: Header::Entry("guideline"),
                    rows,
                });
            }
        }
    }
    sections
}

fn rows<'a, T>(
    keys: &'static [PolicyKey<T>],
    of: &T,
    origin: impl Fn(&str) -> &'a SettingOrigin,
) -> Vec<PolicyRow<'a>> {
    keys.iter()
        .map(|k| PolicyRow {
            name: k.name.to_owned(),
            value: (k.get)(of),
            origin: origin(k.name),
            trust: k.trust,
            receipt: k.receipt,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use crate::env::Env;
    use crate::policy::{Policy, PolicyFile, ProjectFile, ProjectOrigin, Sources, load};
    use crate::request::Overrides;
    use std::collections::{BTreeMap, BTreeSet};

    fn policy_of(text: &str) -> Policy {
        let file = PolicyFile {
            name: "p.toml".to_owned(),
            bytes: text.as_bytes().to_vec(),
        };
        let project = ProjectFile {
            from: ProjectOrigin::Flag,
            file,
            trusted: true,
        };
        let env = Env::default();
        let sources = Sources {
            user: None,
            project: Some(&project),
            env: &env,
            overrides: &Overrides::default(),
        };
        load(&sources).unwrap().policy
    }

    fn judging(text: &str) -> BTreeMap<String, String> {
        policy_of(&format!("version = 1\n{text}")).bound_by_receipts()
    }

    /// Returns the names whose values differ in the policy of a text.
    fn differ(of: &BTreeMap<String, String>, text: &str) -> Vec<String> {
        let other = judging(text);
        let names = of
            .keys()
            .chain(other.keys())
            .filter(|k| of.get(*k) != other.get(*k))
            .cloned();
        names.collect::<BTreeSet<_>>().into_iter().collect()
    }

    #[test]
    fn the_hash_of_the_defaults_is_what_they_hash_to() {
        assert_eq!(super::DEFAULT_HASH, Policy::default().fresh_hash());
    }

    #[test]
    fn what_decides_is_named_and_what_a_machine_has_of_its_own_is_not_in_it() {
        let asked = "[review]\nbackends = [\"anthropic\"]\n";
        let of = judging(asked);
        let own = "[backend.local]\nkind = \"openai\"\nmodel = \"m\"\nbase_url = \"http://127.0.0.1:1/v1\"\n\
                   [backend.anthropic]\nmax_retries = 9\n[history]\ncommit = true\n[hooks]\npre_push = \"rules\"\n";
        assert_eq!(
            differ(&of, &format!("{asked}jobs = 7\n{own}")),
            Vec::<String>::new()
        );
        for (text, name) in [
            (format!("{asked}depth = \"thorough\"\n"), "[review] depth"),
            (format!("block_on = [\"critical\"]\n{asked}"), "block_on"),
            (
                format!("{asked}[backend.anthropic]\nmodel = \"another\"\n"),
                "[backend.anthropic] model",
            ),
            (
                format!("{asked}[[guideline]]\nglob = \"*\"\ntext = \"t\"\n"),
                "[[guideline]] 1",
            ),
        ] {
            assert_eq!(differ(&of, &text), [name]);
        }
        let text =
            "[review]\nbackends = [\"anthropic\", \"local\"]\n[backend.local]\nkind = \"openai\"\n";
        let mut both = differ(&of, text);
        both.sort();
        assert_eq!(both, ["[backend.local] kind", "[review] backends"]);
        assert!(of.values().all(|v| v.len() == 16));
    }

    #[test]
    fn what_is_shown_as_toml_loads_to_the_same_policy() {
        let text = r#"
            version = 1
            ignore = ["vendor/**", "a \"quoted\" name"]
            block_on = ["critical"]
            on_incomplete = "warn"
            [review]
            backends = ["local", "claude"]
            timeout = "90s"
            max_cost_usd = 0.5
            [backend.local]
            kind = "openai"
            base_url = "http://127.0.0.1:1/v1"
            price = { input = 1, output = 2.5 }
            [rules]
            severity = { "a-b" = "minor" }
            [[path]]
            glob = "x/**"
            min_confidence = "high"
            [[guideline]]
            glob = ["*.sql", "db/**"]
            text = "two\nlines"
            [mcp]
            tools = ["request_review"]
        "#;
        let policy = policy_of(text);
        let (plain, with) = (policy.to_toml(false), policy.to_toml(true));
        assert_eq!(policy_of(&plain).to_toml(false), plain);
        assert_eq!(policy_of(&with).to_toml(false), plain);
        assert_eq!(policy_of(&plain).hash(), policy.hash());
        assert_ne!(policy.hash(), Policy::default().hash());
        assert_eq!(Policy::default().hash().len(), 16);
        assert!(with.contains("# project p.toml:3"), "{with}");
        let json = policy.to_json(true);
        assert_eq!(json["backend"]["local"]["price"]["output"], 2.5);
        assert_eq!(json["path"][0]["glob"][0], "x/**");
        assert_eq!(json["origins"]["review.timeout"]["line"], 8);
        assert_eq!(json["origins"]["guideline[0].text"]["line"], 19);
    }
}
