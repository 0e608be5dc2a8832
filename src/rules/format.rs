//! The file format of rules: what stands in `src/rules/catalog/*.toml` and in a team's own rule files.
//!
//! Shared with the build script, which turns the catalogue into static tables; so nothing here may use
//! the rest of the crate.

use serde::Deserialize;

/// A rule file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct File {
    #[serde(default)]
    pub(crate) rule: Vec<Rule>,
}

/// A rule as it is written.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Rule {
    /// Lower-case words joined by `-`; unique.
    pub(crate) id: String,
    pub(crate) title: String,
    /// `bug`, `security`, …: see `finding::Category`.
    pub(crate) category: String,
    /// `critical`, `major`, `minor`, `suggestion`.
    pub(crate) severity: String,
    /// `low`, `medium`, `high`.
    #[serde(default = "medium")]
    pub(crate) confidence: String,
    /// Languages it looks at; empty: every file. Names of `rules::language`.
    #[serde(default)]
    pub(crate) languages: Vec<String>,
    /// Globs: only these paths. One without `/` is matched against the file name.
    #[serde(default)]
    pub(crate) paths: Vec<String>,
    /// Globs: never these paths.
    #[serde(default)]
    pub(crate) not_paths: Vec<String>,
    /// Globs: on these paths a finding weighs less, as it does where a rule with `in_tests = false` is in doubt
    /// whether the file is a test: `critical` and `major` become `minor`, `minor` becomes `suggestion`.
    #[serde(default)]
    pub(crate) weak_paths: Vec<String>,
    /// Whether files that hold tests, fixtures or examples are looked at too.
    #[serde(default = "yes")]
    pub(crate) in_tests: bool,
    /// Whether bundles are looked at too: minified files and libraries that were copied whole, by name and content.
    #[serde(default = "yes")]
    pub(crate) in_bundles: bool,
    /// Where the first byte of a match must stand: `code` (not in comments or strings), `code-or-string` (not in
    /// comments), `string`, `comment`, `any`. In a language whose comments are not known, everything is code.
    #[serde(default = "any")]
    pub(crate) place: String,
    /// At least one must stand (ASCII case folded) within the line, or the pattern is not tried. Each at least 4
    /// bytes.
    #[serde(default)]
    pub(crate) literals: Vec<String>,
    /// What matches, on one line, bytes, ASCII classes unless `(?u)`. The group `secret`, where there is one,
    /// is what `checks` look at and what is masked. Case counts unless `(?i)`.
    #[serde(default)]
    pub(crate) pattern: String,
    /// Code instead of a pattern: one of [`MATCHERS`]. Not for a team's own rules.
    #[serde(default)]
    pub(crate) matcher: Option<String>,
    /// A statement that matches one of these is not a finding. Of a rule for secrets, only the secret itself is
    /// compared: what is beside it excuses nothing.
    #[serde(default)]
    pub(crate) not_pattern: Vec<String>,
    /// Values that cannot do harm in a call, such as a number: what matches is blanked before `pattern` is matched.
    /// Only that value is exempt, not those beside it.
    #[serde(default)]
    pub(crate) harmless: Vec<String>,
    /// Not a finding where one of these matches the lines right above (at most six) or the start of the line: a
    /// condition that leaves the choice to whoever configures the program.
    #[serde(default)]
    pub(crate) guarded_by: Vec<String>,
    /// The new side of the file must match all of these somewhere (where it is known as a whole).
    #[serde(default)]
    pub(crate) file_has: Vec<String>,
    /// The new side of the file must match none of these (where it is known as a whole).
    #[serde(default)]
    pub(crate) file_lacks: Vec<String>,
    /// Only of rules for secrets: the block around a match (the innermost brackets, or the lines up to an empty one)
    /// must match all of these. The secret is replaced by the byte 1 there.
    #[serde(default)]
    pub(crate) near_has: Vec<String>,
    /// The same for what must not match.
    #[serde(default)]
    pub(crate) near_lacks: Vec<String>,
    /// One of these must stand in the line, to the letter, or the pattern is not even compiled: a sign such as `=`
    /// that every match has. For rules whose literals are everyday words.
    #[serde(default)]
    pub(crate) line_has: Vec<String>,
    /// Named checks of the `secret` group (or the whole match), all of which must pass: `entropy:BITS`,
    /// `not-reference`, and those of `rules::secret`.
    #[serde(default)]
    pub(crate) checks: Vec<String>,
    /// The rule finds exposed secrets: it runs over every commit of a branch, its matches are masked
    /// everywhere, and decoded views (base64, percent, `\u`) are searched too.
    #[serde(default)]
    pub(crate) secret: bool,
    /// Decoded views are searched too, as they are for secrets.
    #[serde(default)]
    pub(crate) decoded: bool,
    /// The value in the matched call decides: one that comes from outside (`rules::origin`) has the rule's severity
    /// and confidence, one of unknown origin is a suggestion of low confidence.
    #[serde(default)]
    pub(crate) judges_origin: bool,
    /// What is wrong here, for the one who reads the finding.
    pub(crate) message: String,
    /// Why it matters, at more length, for `rules explain`.
    #[serde(default)]
    pub(crate) why: Option<String>,
    #[serde(default)]
    pub(crate) suggestion: Option<String>,
    #[serde(default)]
    pub(crate) cwe: Option<u32>,
    #[serde(default)]
    pub(crate) references: Vec<String>,
    /// Code that `rules explain` shows. Templates are expanded as in samples.
    #[serde(default)]
    pub(crate) bad: Option<String>,
    #[serde(default)]
    pub(crate) good: Option<String>,
    #[serde(default, rename = "sample")]
    pub(crate) samples: Vec<Sample>,
}

/// Text that must, or must not, match.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Sample {
    /// Whether the rule must match.
    pub(crate) matches: bool,
    /// The file it stands in; its name decides the language.
    #[serde(default = "sample_path")]
    pub(crate) path: String,
    /// The lines. `${alnum:36}`, `${hex:32}`, … are replaced by made-up text of that form (`rules::sample`
    /// lists the forms), so that nothing key-shaped stands in the catalogue. For `matcher = "change"` a text that
    /// starts with `diff --git` is a patch.
    pub(crate) text: String,
    /// Other rules that may speak up on this text. Without it, a sample that must not match may raise no finding of
    /// any other rule at `minor` or above.
    #[serde(default)]
    pub(crate) also: Vec<String>,
}

/// The matchers that are code: `rules::unicode`, `rules::markers`, `rules::hidden`, `rules::change`.
pub(crate) const MATCHERS: &[&str] = &[
    "unicode-bidi",
    "unicode-tags",
    "unicode-variation",
    "unicode-zero-width",
    "unicode-mixed-script",
    "conflict-markers",
    "hidden-nul",
    "hidden-utf16",
    "aws-secret-half",
    "kubernetes-data",
    "change",
];

/// Where a match may stand.
pub(crate) const PLACES: &[&str] = &["any", "code", "code-or-string", "string", "comment"];

/// The least bytes of a literal: the prefilter looks at windows of four.
pub(crate) const LITERAL_MIN: usize = 4;

/// The languages that rules can name, in the order of their bits in `rules::language::Languages`.
pub(crate) const LANGUAGES: &[&str] = &[
    "python",
    "javascript",
    "typescript",
    "go",
    "java",
    "kotlin",
    "ruby",
    "php",
    "rust",
    "c",
    "cpp",
    "csharp",
    "shell",
    "dockerfile",
    "github-workflow",
    "yaml",
    "json",
    "toml",
    "html",
    "sql",
    "terraform",
    "xml",
    "properties",
    "make",
    "powershell",
    "swift",
    "scala",
    "perl",
    "lua",
    "dart",
    "elixir",
    "groovy",
    "css",
    "vue",
    "markdown",
    "text",
    "ini",
    "env",
    "objective-c",
    "r",
    "haskell",
    "clojure",
    "batch",
    "nginx",
    "graphql",
    "protobuf",
    "notebook",
];

const CATEGORIES: &[&str] = &[
    "bug",
    "security",
    "performance",
    "style",
    "architecture",
    "design",
    "missing-requirement",
    "best-practice",
    "test",
];
const SEVERITIES: &[&str] = &["critical", "major", "minor", "suggestion"];
const CONFIDENCES: &[&str] = &["low", "medium", "high"];

impl Rule {
    /// Returns what is wrong with the rule, each as `key: what`. Patterns and samples are not looked at.
    pub(crate) fn faults(&self) -> Vec<String> {
        let mut out = Vec::new();
        let one_of = |out: &mut Vec<String>, key: &str, value: &str, known: &[&str]| {
            if !known.contains(&value) {
                out.push(format!("{key}: {value:?} is not one of {}", known.join(", ")));
            }
        };
        let word = |w: &str| !w.is_empty() && w.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
        if self.id.len() > 64 || !self.id.split('-').all(word) {
            out.push(format!("id: {:?} is not lower-case words joined by `-`", self.id));
        }
        if self.title.trim().is_empty() {
            out.push("title: is empty".to_owned());
        }
        if self.message.trim().is_empty() {
            out.push("message: is empty".to_owned());
        }
        one_of(&mut out, "category", &self.category, CATEGORIES);
        one_of(&mut out, "severity", &self.severity, SEVERITIES);
        one_of(&mut out, "confidence", &self.confidence, CONFIDENCES);
        one_of(&mut out, "place", &self.place, PLACES);
        for l in &self.languages {
            one_of(&mut out, "languages", l, LANGUAGES);
        }
        let judges_block = !self.near_has.is_empty() || !self.near_lacks.is_empty();
        if judges_block && !self.secret {
            out.push("near_has, near_lacks: only for rules with `secret = true`".to_owned());
        }
        for c in &self.checks {
            let bits = c.strip_prefix("entropy:").map(str::parse::<f32>);
            if c.is_empty() || bits.is_some_and(|b| !b.is_ok_and(|b| (0.0..=8.0).contains(&b))) {
                out.push(format!("checks: unknown check {c:?}; entropy takes 0 to 8 bits: \"entropy:3.5\""));
            }
        }
        for l in &self.literals {
            if l.len() < LITERAL_MIN || l.len() > 255 {
                out.push(format!("literals: {l:?} is not 4 to 255 bytes long"));
            }
            if l.contains(['\n', '\r']) {
                out.push(format!("literals: {l:?} spans lines"));
            }
        }
        match &self.matcher {
            Some(m) => {
                one_of(&mut out, "matcher", m, MATCHERS);
                if !self.pattern.is_empty() || !self.literals.is_empty() {
                    out.push("matcher: excludes `pattern` and `literals`".to_owned());
                }
            }
            None => {
                if self.literals.is_empty() {
                    out.push("literals: at least one is needed".to_owned());
                }
                if self.pattern.is_empty() {
                    out.push("pattern: is missing".to_owned());
                }
            }
        }
        out
    }

    /// Returns what is wrong with the samples.
    pub(crate) fn sample_faults(&self) -> Vec<String> {
        let mut out = Vec::new();
        for s in &self.samples {
            if s.text.trim().is_empty() {
                out.push("sample: has no text".to_owned());
            }
        }
        for (matches, what) in [(true, "must match"), (false, "must not match")] {
            if self.matcher.as_deref() != Some("change") && !self.samples.iter().any(|s| s.matches == matches) {
                out.push(format!("no sample that {what} (`matches = {matches}`)"));
            }
        }
        out
    }
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
