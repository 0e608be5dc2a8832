//! File format of rules, for `src/rules/catalog/*.toml` and for the rule files of a team.
//!
//! The build script includes this file to turn the catalogue into static tables. Nothing here may
//! use the rest of the crate.

use serde::Deserialize;
use std::fmt;

/// A rule as its file states it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Rule {
    /// Lower-case words joined by `-`; unique.
    pub(crate) id: String,
    pub(crate) title: String,
    /// A name of `finding::Category`, such as `bug`.
    pub(crate) category: String,
    /// `critical`, `major`, `minor`, `suggestion`.
    pub(crate) severity: String,
    /// `low`, `medium`, `high`.
    #[serde(default = "medium")]
    pub(crate) confidence: String,
    /// Languages of the files that the rule checks, by names of [`LANGUAGES`]. Empty: every file.
    #[serde(default)]
    pub(crate) languages: Vec<String>,
    /// Globs of the only paths that the rule checks. A glob without `/` is matched against the file
    /// name.
    #[serde(default)]
    pub(crate) paths: Vec<String>,
    /// Globs of paths that the rule skips.
    #[serde(default)]
    pub(crate) not_paths: Vec<String>,
    /// Globs of paths where a finding has a lower severity: `critical` and `major` become `minor`,
    /// `minor` becomes `suggestion`. A rule with `in_tests = false` lowers it too if the path only
    /// suggests a test.
    #[serde(default)]
    pub(crate) weak_paths: Vec<String>,
    /// False: the rule skips tests, fixtures and examples.
    #[serde(default = "yes")]
    pub(crate) in_tests: bool,
    /// False: the rule skips minified files and copied libraries, known by name and content.
    #[serde(default = "yes")]
    pub(crate) in_bundles: bool,
    /// Where a match starts: `code` (not in comments or strings), `code-or-string` (not in
    /// comments), `string`, `comment`, `any`. In a language whose comments are unknown, everything
    /// is code.
    #[serde(default = "any")]
    pub(crate) place: String,
    /// The pattern runs only on lines that contain one of these, in any ASCII case. Each has at
    /// least 4 bytes.
    #[serde(default)]
    pub(crate) literals: Vec<String>,
    /// Expression over the bytes of one line. Classes are ASCII unless `(?u)`; case counts unless
    /// `(?i)`. The group `secret`, if any, is the part that `checks` read and that is masked.
    #[serde(default)]
    pub(crate) pattern: String,
    /// Code instead of a pattern: one of [`MATCHERS`]. Not for team rules.
    #[serde(default)]
    pub(crate) matcher: Option<String>,
    /// The condition of a built-in structural rule, in ast-grep's YAML: `rule`, `constraints`,
    /// `utils`, `transform`, `fix`. It is compiled once for each of `languages`. One of `literals`
    /// is in the code of each match, on a line that `pattern` matches if there is one.
    #[serde(default)]
    pub(crate) tree: String,
    /// The profile of the policy in which the rule runs: one of [`PROFILES`].
    #[serde(default = "default_profile")]
    pub(crate) profile: String,
    /// The severity in the profile `audit`, if it is another one.
    #[serde(default)]
    pub(crate) audit_severity: Option<String>,
    /// Exempts a statement that matches one of these. In a secret rule, only the secret is
    /// compared, because an author controls the text beside it.
    #[serde(default)]
    pub(crate) not_pattern: Vec<String>,
    /// Harmless values in a call, such as a number. They are blanked before `pattern` is matched,
    /// so only the value is exempt and not its neighbours.
    #[serde(default)]
    pub(crate) harmless: Vec<String>,
    /// Exempts a match if one of these matches in the six lines above it or in the start of its
    /// line. Comments do not count for built-in rules.
    #[serde(default)]
    pub(crate) guarded_by: Vec<String>,
    /// Makes a match a suggestion if one of these matches the condition of a block around it, such
    /// as `if config.insecure`. Comments do not count.
    #[serde(default)]
    pub(crate) weak_if: Vec<String>,
    /// All of these must match in the new file, if the whole file is known.
    #[serde(default)]
    pub(crate) file_has: Vec<String>,
    /// None of these may match in the new file, if the whole file is known.
    #[serde(default)]
    pub(crate) file_lacks: Vec<String>,
    /// All of these must match the block around a match. Rules for secrets: the innermost brackets,
    /// or the lines up to an empty one, with the secret replaced by the byte 1. Other rules: the
    /// innermost braces or the mapping of YAML, with the line that names it, without comments and
    /// indentation.
    #[serde(default)]
    pub(crate) near_has: Vec<String>,
    /// None of these may match that block.
    #[serde(default)]
    pub(crate) near_lacks: Vec<String>,
    /// The pattern is compiled only if a line contains one of these exactly, such as `=`. For rules
    /// whose literals are everyday words.
    #[serde(default)]
    pub(crate) line_has: Vec<String>,
    /// Named checks that the `secret` group, or the whole match, must pass: `entropy:BITS`,
    /// `not-reference`, and the checks of `rules::secret`.
    #[serde(default)]
    pub(crate) checks: Vec<String>,
    /// The rule finds exposed secrets. It runs over every commit of a branch, masks its matches
    /// everywhere, and searches decoded views (base64, percent, `\u`).
    #[serde(default)]
    pub(crate) secret: bool,
    /// The rule searches decoded views too.
    #[serde(default)]
    pub(crate) decoded: bool,
    /// A match whose value comes from outside the program (`rules::origin`) has the rule's severity
    /// and confidence. A match with a value of unknown origin is a suggestion of low confidence.
    #[serde(default)]
    pub(crate) judges_origin: bool,
    /// States the problem, for the reader of a finding.
    pub(crate) message: String,
    /// Explains why the problem matters, for `rules explain`.
    #[serde(default)]
    pub(crate) why: Option<String>,
    #[serde(default)]
    pub(crate) suggestion: Option<String>,
    /// Replacements in the lines of a match, where they are certain. All are applied in order. The
    /// result is offered unless `pattern` still matches it.
    #[serde(default, rename = "fix")]
    pub(crate) fixes: Vec<Fix>,
    #[serde(default)]
    pub(crate) cwe: Option<u32>,
    #[serde(default)]
    pub(crate) references: Vec<String>,
    /// Example code for `rules explain`. Templates are expanded as in samples.
    #[serde(default)]
    pub(crate) bad: Option<String>,
    #[serde(default)]
    pub(crate) good: Option<String>,
    #[serde(default, rename = "sample")]
    pub(crate) samples: Vec<Sample>,
}

/// A replacement in the lines of a match.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Fix {
    /// Expression over the lines of the match. Every match of it is replaced; `^` and `$` match at
    /// line ends.
    pub(crate) find: String,
    /// The new text. `${1}` and `${name}` are groups of `find`. If all lines become empty, they are
    /// deleted, provided that they have whole statements.
    pub(crate) replace: String,
}

/// Text that must, or must not, match.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Sample {
    /// Whether the rule must match.
    pub(crate) matches: bool,
    /// Path of the file. Its name decides the language.
    #[serde(default = "sample_path")]
    pub(crate) path: String,
    /// The lines. `${alnum:36}`, `${hex:32}`, … are replaced by generated text of that form
    /// (`rules::sample` lists the forms), so that the catalogue contains nothing shaped like a key.
    /// A text that starts with `diff --git ` is a patch.
    pub(crate) text: String,
    /// The text with the rule's replacement for its first match.
    #[serde(default)]
    pub(crate) fixed: Option<String>,
    /// Other rules that may match this text. Without it, a sample that must not match fails if
    /// another rule of severity `minor` or above matches.
    #[serde(default)]
    pub(crate) also: Vec<String>,
}

/// Matchers that are code: `rules::unicode`, `rules::markers`, `rules::change` and others.
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
    "flow",
    "change",
    "migration",
    "markup",
    "settings",
    STRUCTURAL,
];

/// The matcher of structural rules (`rules::structural`).
pub(crate) const STRUCTURAL: &str = "structural";

/// A name in the `languages` of a structural rule that is for TypeScript with JSX alone.
/// `typescript` includes it.
pub(crate) const TSX: &str = "tsx";

/// Values of `profile`. A rule of `audit` does not run by default.
pub(crate) const PROFILES: &[&str] = &[DEFAULT_PROFILE, AUDIT_PROFILE];
pub(crate) const DEFAULT_PROFILE: &str = "default";
pub(crate) const AUDIT_PROFILE: &str = "audit";

/// Values of `place`.
pub(crate) const PLACES: &[&str] = &["any", "code", "code-or-string", "string", "comment"];

/// The least bytes of a literal, because the prefilter compares windows of four bytes.
pub(crate) const LITERAL_MIN: usize = 4;

/// Languages that rules can name, in the order of their bits in `rules::language::Languages`.
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
    "solidity",
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

/// One problem of a rule, under the key that has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RuleFault {
    pub(crate) key: &'static str,
    /// A lowercase fragment that follows the key.
    pub(crate) text: String,
}

impl RuleFault {
    pub(crate) fn new(key: &'static str, text: impl Into<String>) -> Self {
        Self {
            key,
            text: text.into(),
        }
    }
}

impl fmt::Display for RuleFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.key, self.text)
    }
}

/// Returns true if the text is lower-case words joined by `-`, of at most 64 bytes.
pub(crate) fn is_id(text: &str) -> bool {
    text.len() <= 64 && text.split('-').all(is_lower_word)
}

fn is_lower_word(text: &str) -> bool {
    !text.is_empty()
        && text
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
}

impl Rule {
    /// Returns every problem of the rule. Does not compile patterns or check samples.
    pub(crate) fn faults(&self) -> Vec<RuleFault> {
        let mut out = Vec::new();
        if !is_id(&self.id) {
            out.push(RuleFault::new(
                "id",
                format!(
                    "{:?} is not lower-case words joined by `-`, up to 64 bytes",
                    self.id
                ),
            ));
        }
        for (key, text) in [("title", &self.title), ("message", &self.message)] {
            if text.trim().is_empty() {
                out.push(RuleFault::new(key, "is empty"));
            }
        }
        for (key, value, known) in [
            ("category", &self.category, CATEGORIES),
            ("severity", &self.severity, SEVERITIES),
            ("confidence", &self.confidence, CONFIDENCES),
            ("place", &self.place, PLACES),
            ("profile", &self.profile, PROFILES),
        ] {
            out.extend(unknown(key, value, known));
        }
        out.extend(
            self.audit_severity
                .as_ref()
                .and_then(|s| unknown("audit_severity", s, SEVERITIES)),
        );
        let languages = self
            .languages
            .iter()
            .filter(|l| l.as_str() != TSX || self.tree.is_empty());
        out.extend(languages.filter_map(|l| unknown("languages", l, LANGUAGES)));
        out.extend(self.checks.iter().filter_map(|c| check_fault(c)));
        out.extend(self.literals.iter().filter_map(|l| literal_fault(l)));
        out.extend(self.matcher_faults());
        out
    }

    fn matcher_faults(&self) -> Vec<RuleFault> {
        if !self.tree.is_empty() {
            return self.tree_faults();
        }
        let Some(matcher) = &self.matcher else {
            let literals = missing("literals", self.literals.is_empty());
            return literals
                .into_iter()
                .chain(missing("pattern", self.pattern.is_empty()))
                .collect();
        };
        // The pattern of a team's structural rule is its condition.
        let has_pattern = !self.pattern.is_empty() && matcher != STRUCTURAL;
        let both = has_pattern || !self.literals.is_empty();
        let excludes = both.then(|| RuleFault::new("matcher", "excludes `pattern` and `literals`"));
        let tree = missing("tree", matcher == STRUCTURAL && self.pattern.is_empty());
        unknown("matcher", matcher, MATCHERS)
            .into_iter()
            .chain(excludes)
            .chain(tree)
            .collect()
    }

    /// Returns the problems of a built-in structural rule.
    fn tree_faults(&self) -> Vec<RuleFault> {
        let mut out = Vec::new();
        if self.matcher.as_deref() != Some(STRUCTURAL) {
            out.push(RuleFault::new(
                "tree",
                format!("needs `matcher = \"{STRUCTURAL}\"`"),
            ));
        }
        out.extend(missing("languages", self.languages.is_empty()));
        out.extend(missing("literals", self.literals.is_empty()));
        for (key, is_set) in [
            ("not_pattern", !self.not_pattern.is_empty()),
            ("harmless", !self.harmless.is_empty()),
            ("guarded_by", !self.guarded_by.is_empty()),
            ("weak_if", !self.weak_if.is_empty()),
            ("near_has", !self.near_has.is_empty()),
            ("near_lacks", !self.near_lacks.is_empty()),
            ("line_has", !self.line_has.is_empty()),
            ("secret", self.secret),
            ("decoded", self.decoded),
            ("judges_origin", self.judges_origin),
        ] {
            out.extend(is_set.then(|| RuleFault::new(key, "is not for structural rules")));
        }
        out
    }

    /// Returns every problem of the samples.
    pub(crate) fn sample_faults(&self) -> Vec<RuleFault> {
        let empty = self.samples.iter().filter(|s| s.text.trim().is_empty());
        let mut out: Vec<_> = empty
            .map(|_| RuleFault::new("sample", "`text` is empty"))
            .collect();
        if !self.fixes.is_empty() && self.samples.iter().all(|s| s.fixed.is_none()) {
            out.push(RuleFault::new(
                "fix",
                "no sample has `fixed`, the text with the replacement",
            ));
        }
        if self.matcher.as_deref() == Some("change") {
            return out;
        }
        for (matches, must) in [(true, "must match"), (false, "must not match")] {
            if !self.samples.iter().any(|s| s.matches == matches) {
                out.push(RuleFault::new(
                    "sample",
                    format!("no sample that {must} (`matches = {matches}`)"),
                ));
            }
        }
        out
    }
}

fn missing(key: &'static str, is_missing: bool) -> Option<RuleFault> {
    is_missing.then(|| RuleFault::new(key, "is missing"))
}

/// Reports a value that is not one of the known ones.
fn unknown(key: &'static str, value: &str, known: &[&str]) -> Option<RuleFault> {
    (!known.contains(&value)).then(|| {
        RuleFault::new(
            key,
            format!("expected one of {}, got {value:?}", known.join(", ")),
        )
    })
}

fn check_fault(check: &str) -> Option<RuleFault> {
    let bits = check.strip_prefix("entropy:").map(str::parse::<f32>);
    let is_wrong =
        check.is_empty() || bits.is_some_and(|b| !b.is_ok_and(|b| (0.0..=8.0).contains(&b)));
    is_wrong.then(|| {
        RuleFault::new(
            "checks",
            format!("invalid check {check:?}: entropy takes 0 to 8 bits, \"entropy:3.5\""),
        )
    })
}

fn literal_fault(literal: &str) -> Option<RuleFault> {
    if literal.len() < LITERAL_MIN || literal.len() > 255 {
        return Some(RuleFault::new(
            "literals",
            format!("{literal:?} is not 4 to 255 bytes long"),
        ));
    }
    literal
        .contains(['\n', '\r'])
        .then(|| RuleFault::new("literals", format!("{literal:?} contains a line break")))
}

fn medium() -> String {
    "medium".to_owned()
}
fn default_profile() -> String {
    DEFAULT_PROFILE.to_owned()
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
