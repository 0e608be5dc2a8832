//! The file format of rules: what stands in `src/rules/catalog/*.toml` and in a team's own rule files.
//!
//! Shared with the build script, which turns the catalogue into static tables; so nothing here may use
//! the rest of the crate.

use serde::Deserialize;

/// A rule file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct File {
    pub rule: Vec<Rule>,
}

/// A rule as it is written.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// Lower-case words joined by `-`; unique.
    pub id: String,
    pub title: String,
    /// `bug`, `security`, …: see `finding::Category`.
    pub category: String,
    /// `critical`, `major`, `minor`, `suggestion`.
    pub severity: String,
    /// `low`, `medium`, `high`.
    #[serde(default = "medium")]
    pub confidence: String,
    /// Languages it looks at; empty: every file. Names of `rules::language`.
    #[serde(default)]
    pub languages: Vec<String>,
    /// Globs: only these paths.
    #[serde(default)]
    pub paths: Vec<String>,
    /// Globs: never these paths.
    #[serde(default)]
    pub not_paths: Vec<String>,
    /// Whether files that hold tests, fixtures or examples are looked at too.
    #[serde(default = "yes")]
    pub in_tests: bool,
    /// Where a match counts: `code` (not in comments or strings), `code-or-string` (not in comments),
    /// `comment`, `any`.
    #[serde(default = "any")]
    pub place: String,
    /// At least one must stand (ASCII case folded) within the line, or the pattern is not tried. Each at least 4
    /// bytes.
    pub literals: Vec<String>,
    /// What matches, on one line, bytes, ASCII classes unless `(?u)`. The group `secret`, where there is one,
    /// is what `checks` look at and what is masked.
    pub pattern: String,
    /// A line that matches one of these is no finding.
    #[serde(default)]
    pub not_pattern: Vec<String>,
    /// The new side of the file must match all of these somewhere (where it is known as a whole).
    #[serde(default)]
    pub file_has: Vec<String>,
    /// The new side of the file must match none of these.
    #[serde(default)]
    pub file_lacks: Vec<String>,
    /// Named checks of the `secret` group (or the whole match): see `rules::check`.
    #[serde(default)]
    pub checks: Vec<String>,
    /// The rule finds exposed secrets: it runs over every commit of a branch, its matches are masked
    /// everywhere, and decoded views (base64, percent, `\u`) are searched too.
    #[serde(default)]
    pub secret: bool,
    pub message: String,
    #[serde(default)]
    pub suggestion: Option<String>,
    #[serde(default)]
    pub cwe: Option<u32>,
    #[serde(default)]
    pub references: Vec<String>,
    /// Code that `rules explain` shows. Templates are expanded as in samples.
    #[serde(default)]
    pub bad: Option<String>,
    #[serde(default)]
    pub good: Option<String>,
    #[serde(default, rename = "sample")]
    pub samples: Vec<Sample>,
}

/// Text that must, or must not, match.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sample {
    /// Whether the rule must match.
    pub matches: bool,
    /// The file it stands in; its name decides the language.
    #[serde(default = "sample_path")]
    pub path: String,
    /// The lines. `${alnum:36}`, `${hex:32}`, `${upper:16}`, `${digits:12}`, `${base64:40}`, `${base62:..}` … are replaced by random
    /// text of that form, so that nothing key-shaped stands in the catalogue.
    pub text: String,
}

fn medium() -> String {
    "medium".to_owned()
}
fn any() -> String {
    "any".to_owned()
}
fn yes() -> bool {
    true
}
fn sample_path() -> String {
    "src/sample.txt".to_owned()
}
