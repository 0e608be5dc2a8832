//! The start of a case: a sample of the rule catalogue that blocks in a separate file.

use claude_reviewer::rules::expand;
use std::path::Path;

/// A sample that a rule reports.
#[derive(Clone, Debug)]
pub struct Seed {
    pub rule: String,
    /// Path of the sample, below the folder of its case.
    pub path: String,
    pub text: String,
    /// 1-based line of the finding; 0 until the sample was reviewed.
    pub line: u32,
    /// The rule finds exposed secrets.
    pub secret: bool,
    /// The rule only checks files of certain names.
    pub by_name: bool,
    /// The secret has a vendor's prefix or a checksum, so it is recognized in any surroundings.
    pub distinct: bool,
    /// The secret is recognized on its own, without a name before it.
    pub marked: bool,
}

/// The syntax of a language for the texts that the cases add.
#[derive(Clone, Copy, Debug)]
pub struct Syntax {
    /// Start of a comment that extends to the end of the line.
    pub comment: Option<&'static str>,
    /// A comment may follow other text on its line.
    pub trailing: bool,
    /// Statements on one line, each a string literal: the texts before and after the literal.
    pub statement: Option<(&'static str, &'static str)>,
    /// The texts before and after a function's body.
    pub function: Option<(&'static str, &'static str)>,
    /// Blanks before a line have no meaning.
    pub indents: bool,
}

const NOTHING: Syntax = Syntax {
    comment: None,
    trailing: false,
    statement: None,
    function: None,
    indents: false,
};

impl Seed {
    /// Returns the text after the last dot of the file name, in lower case.
    pub fn extension(&self) -> String {
        let name = self.path.rsplit('/').next().unwrap_or_default();
        name.rsplit_once('.')
            .map_or("", |(_, e)| e)
            .to_ascii_lowercase()
    }

    /// Returns the syntax of the file's language for comments, statements and functions.
    pub fn syntax(&self) -> Syntax {
        let c_like = |function| Syntax {
            comment: Some("// "),
            trailing: true,
            statement: Some(("\"", "\"; ")),
            function: Some((function, "}")),
            indents: true,
        };
        let hash = Syntax {
            comment: Some("# "),
            trailing: true,
            ..NOTHING
        };
        match self.extension().as_str() {
            "c" | "h" | "cc" | "cpp" => c_like("void f(void) {"),
            "java" | "cs" => c_like("class B { void f() {"),
            "kt" | "scala" => c_like("fun f() {"),
            "js" | "jsx" | "mjs" | "cjs" | "ts" | "tsx" => c_like("function f() {"),
            "go" => c_like("func f() {"),
            "rs" => c_like("fn f() {"),
            "py" => Syntax {
                statement: Some(("\"", "\"; ")),
                function: Some(("def f():", "")),
                indents: true,
                ..hash
            },
            "rb" => Syntax {
                statement: Some(("\"", "\"; ")),
                function: Some(("def f", "end")),
                indents: true,
                ..hash
            },
            "sh" | "bash" => Syntax {
                statement: Some((": '", "'; ")),
                function: Some(("f() {", "}")),
                indents: true,
                ..hash
            },
            "ps1" | "pl" | "tf" => Syntax {
                indents: true,
                ..hash
            },
            "yml" | "yaml" => Syntax {
                indents: true,
                ..hash
            },
            "toml" => hash,
            // A `#` in the middle of a line is part of the value.
            "properties" | "env" | "ini" | "cfg" | "conf" => Syntax {
                trailing: false,
                ..hash
            },
            _ => NOTHING,
        }
    }

    /// Returns words of the line with the finding, which its rule may search for.
    pub fn tokens(&self) -> Vec<String> {
        let line = self
            .text
            .lines()
            .nth(self.line.saturating_sub(1) as usize)
            .unwrap_or_default();
        let words = line.split(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '_' | '-'));
        // The secret itself is not used as a decoy.
        let is_secret = |word: &str| {
            word.len() > 16 || word.len() > 7 && word.contains(|c: char| c.is_ascii_digit())
        };
        let short = |word: &str| {
            if is_secret(word) {
                word[..4].to_owned()
            } else {
                word.to_owned()
            }
        };
        let mut tokens: Vec<String> = words.filter(|w| w.len() >= 4).map(short).collect();
        tokens.dedup();
        tokens
    }
}

/// Rule files with secrets that are recognized on their own.
const DISTINCT: &[&str] = &[
    "ai",
    "cloud",
    "code-hosting",
    "messaging",
    "payment",
    "saas",
];

/// Reads every sample that a rule of the catalogue must report; the texts of templates are
/// deterministic for a `salt`.
pub fn read(salt: &str) -> Vec<Seed> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/rules/catalog");
    let mut files: Vec<_> = std::fs::read_dir(dir)
        .unwrap()
        .map(|e| e.unwrap().path())
        .collect();
    files.sort();
    let mut seeds = Vec::new();
    for file in files {
        let name = file.file_stem().unwrap().to_string_lossy().into_owned();
        let distinct = name
            .strip_prefix("secrets-")
            .is_some_and(|kind| DISTINCT.contains(&kind));
        let table: toml::Table = std::fs::read_to_string(&file).unwrap().parse().unwrap();
        for rule in table["rule"].as_array().unwrap() {
            seeds_of(rule.as_table().unwrap(), distinct, salt, &mut seeds);
        }
    }
    assert!(seeds.len() > 500, "{} samples", seeds.len());
    seeds
}

fn seeds_of(rule: &toml::Table, distinct: bool, salt: &str, seeds: &mut Vec<Seed>) {
    let text = |key: &str| {
        rule.get(key)
            .and_then(toml::Value::as_str)
            .unwrap_or_default()
    };
    let none = Vec::new();
    let list = |key: &str| {
        rule.get(key)
            .and_then(toml::Value::as_array)
            .unwrap_or(&none)
    };
    let secret = rule
        .get("secret")
        .and_then(toml::Value::as_bool)
        .unwrap_or(false);
    // Edits between the statements of a flow change the effect of the program: a copy of a `return`
    // makes the statement below it dead, and a copy of one line of a call is a syntax error. No
    // seeds until the edits keep programs whole. The same applies to conditions on the tree. A rule
    // of another profile does not run.
    if matches!(text("matcher"), "flow" | "structural") || text("profile") == "audit" {
        return;
    }
    let by_name = !list("paths").is_empty() || text("matcher") == "change";
    let anywhere = list("languages").is_empty() && list("paths").is_empty();
    for (i, sample) in list("sample").iter().enumerate() {
        let of = |key: &str| {
            sample
                .get(key)
                .and_then(toml::Value::as_str)
                .unwrap_or_default()
        };
        let template = of("text");
        if sample["matches"].as_bool() != Some(true) || template.starts_with("diff --git ") {
            continue;
        }
        seeds.push(Seed {
            rule: text("id").to_owned(),
            path: if of("path").is_empty() {
                "a.txt".to_owned()
            } else {
                of("path").to_owned()
            },
            text: expand(template, &format!("{salt} {} {i}", text("id"))),
            line: 0,
            secret,
            by_name,
            distinct: secret && distinct && anywhere,
            marked: text("confidence") == "high",
        });
    }
}
