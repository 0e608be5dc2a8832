//! The text of a new policy file. Pure.

use crate::policy::built_in_names;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Languages that a policy names; data and markup formats say nothing about a project.
const CODE: &[&str] = &[
    "c",
    "cpp",
    "csharp",
    "elixir",
    "go",
    "java",
    "javascript",
    "kotlin",
    "lua",
    "perl",
    "php",
    "python",
    "ruby",
    "rust",
    "scala",
    "shell",
    "swift",
    "typescript",
];

/// The command that usually runs the tests, by a file at the top of the repository.
const TESTS: &[(&str, &str)] = &[
    ("Cargo.toml", "cargo test"),
    ("go.mod", "go test ./..."),
    ("pyproject.toml", "python -m pytest"),
    ("setup.py", "python -m pytest"),
    ("package.json", "npm test"),
    ("pom.xml", "mvn --quiet test"),
    ("build.gradle", "./gradlew test"),
    ("build.gradle.kts", "./gradlew test"),
    ("Gemfile", "bundle exec rake test"),
    ("composer.json", "composer test"),
    ("mix.exs", "mix test"),
    ("Package.swift", "swift test"),
];

/// Folders that usually contain third-party or generated code.
const FOREIGN: &[&str] = &[
    "vendor",
    "third_party",
    "node_modules",
    "bower_components",
    "dist",
    "generated",
];

/// Folders that are listed, at most. With more, one pattern for each name covers them at any depth.
const MAX_FOREIGN: usize = 8;

/// An example of a guideline, by language.
const GUIDELINES: &[(&str, &str, &str)] = &[
    (
        "go",
        "**/*.go",
        "Wrap errors with the operation that failed.",
    ),
    (
        "java",
        "**/*.java",
        "Close resources with try-with-resources.",
    ),
    ("javascript", "**/*.js", "Do not build HTML from strings."),
    ("php", "**/*.php", "Use prepared statements for SQL."),
    ("python", "**/*.py", "Public functions have type hints."),
    ("ruby", "**/*.rb", "Do not interpolate values into SQL."),
    ("rust", "**/*.rs", "No unwrap outside of tests."),
    ("typescript", "**/*.ts", "No any in exported types."),
];

/// Properties of a repository that the new policy depends on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct RepositoryFacts {
    /// Programming languages, the most frequent first.
    pub(super) languages: Vec<&'static str>,
    /// The command that runs the tests.
    pub(super) tests: Option<&'static str>,
    /// Folders with third-party code, sorted. Their names need no escapes in TOML or in a pattern.
    pub(super) foreign: Vec<String>,
}

impl RepositoryFacts {
    /// Reads the names of the tracked files, with the languages of each.
    pub(super) fn of<'a>(files: impl Iterator<Item = (&'a str, Vec<&'static str>)>) -> Self {
        let (mut counts, mut foreign) = (BTreeMap::new(), std::collections::BTreeSet::new());
        let mut at_top = Vec::new();
        for (path, languages) in files {
            let Some((folder, _)) = path.rsplit_once('/') else {
                at_top.push(path);
                count(&languages, &mut counts);
                continue;
            };
            match foreign_folder(folder) {
                Some(folder) if is_plain(folder) => drop(foreign.insert(folder.to_owned())),
                Some(_) => {}
                None => count(&languages, &mut counts),
            }
        }
        let mut languages: Vec<(usize, &'static str)> =
            counts.into_iter().map(|(name, n)| (n, name)).collect();
        languages.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(b.1)));
        let tests = TESTS
            .iter()
            .find(|(file, _)| at_top.contains(file))
            .map(|(_, command)| *command);
        Self {
            languages: languages.into_iter().map(|(_, l)| l).collect(),
            tests,
            foreign: foreign.into_iter().collect(),
        }
    }

    /// Returns the policy file. Its values are the defaults, and its suggestions are in comments.
    pub(super) fn policy(&self) -> String {
        let mut out = format!(
            "# Policy of claude-reviewer{}.\n# All keys with their values: claude-reviewer policy show\n# Check this file: \
             claude-reviewer policy check\nversion = 1\n\n",
            self.of_languages()
        );
        let ignore = self.ignore();
        let (about, example) = match ignore.is_empty() {
            true => (
                "Files to leave out of the review, in the syntax of .gitignore.",
                "\"vendor/**\"".to_owned(),
            ),
            false => (
                "Files to leave out of the review. These folders may contain code of others.",
                ignore.join(", "),
            ),
        };
        // Writing to a string cannot fail.
        let _ = writeln!(out, "# {about}\n# ignore = [{example}]\n");
        out.push_str(
            "# Severities that block (exit code 1), and severities that warn (exit code 0).\n\
             block_on = [\"critical\", \"major\"]\nwarn_on = [\"minor\"]\n\n\
             [review]\n\
             # AI backends that review in addition to the rules. Without one, nothing leaves this machine.\n\
             # Names: ",
        );
        out.push_str(&built_in_names().collect::<Vec<_>>().join(", "));
        out.push_str(
            ".\n# backends = [\"claude\"]\n\n\
             [rules]\n\
             # Rules to turn off. List all rules: claude-reviewer rules list\n\
             # disable = [\"todo-comment\"]\n\n\
             [hooks]\n\
             # rules: fast, without a model. full: with the backends above. off: no review.\n\
             pre_commit = \"rules\"\npre_push = \"full\"\n\n",
        );
        let tests = self.tests.unwrap_or("make test");
        let _ = writeln!(
            out,
            "[tests]\n# The command that runs the tests of this project. Needs: claude-reviewer policy trust\n\
             # command = \"{tests}\"\n# true runs it in every review.\n# run = true\n"
        );
        let guideline = GUIDELINES
            .iter()
            .find(|(language, ..)| self.languages.contains(language));
        let (glob, text) = guideline
            .map_or(("**", "Comments say why, not what."), |(_, glob, text)| {
                (glob, text)
            });
        let _ = writeln!(
            out,
            "# An instruction for models. They also get CLAUDE.md and AGENTS.md.\n\
             # [[guideline]]\n# glob = \"{glob}\"\n# text = \"{text}\""
        );
        out
    }

    /// Returns the example patterns of `ignore`, quoted.
    fn ignore(&self) -> Vec<String> {
        if self.foreign.len() <= MAX_FOREIGN {
            return self.foreign.iter().map(|f| format!("\"{f}/**\"")).collect();
        }
        let used = FOREIGN.iter().filter(|name| {
            self.foreign
                .iter()
                .any(|f| f.rsplit('/').next() == Some(**name))
        });
        used.map(|name| format!("\"**/{name}/**\"")).collect()
    }

    /// Returns the languages for the first line: ` for Go and Python`.
    fn of_languages(&self) -> String {
        const NAMED: usize = 3;
        match self.languages.as_slice() {
            [] => String::new(),
            all => format!(
                " (found: {})",
                all.iter()
                    .take(NAMED)
                    .copied()
                    .collect::<Vec<_>>()
                    .join(", ")
            ),
        }
    }
}

fn count(languages: &[&'static str], counts: &mut BTreeMap<&'static str, usize>) {
    for language in languages.iter().filter(|l| CODE.contains(l)) {
        *counts.entry(*language).or_default() += 1;
    }
}

/// Returns true if a path needs no escapes in the policy. A tracked path may contain any byte
/// except NUL, and a line break in it would end the comment: the rest of the name would be keys of
/// the policy, chosen by the author of a change.
fn is_plain(folder: &str) -> bool {
    folder
        .chars()
        .all(|c| c.is_alphanumeric() || matches!(c, '/' | '.' | '_' | '-' | '+' | '@'))
}

/// Returns the path down to the first folder that usually contains third-party code.
fn foreign_folder(folder: &str) -> Option<&str> {
    let mut end = 0;
    for part in folder.split('/') {
        end += part.len();
        if FOREIGN.contains(&part) {
            return Some(&folder[..end]);
        }
        end += 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn languages_tests_and_foreign_folders_come_from_names() {
        let files = [
            ("go.mod", vec![]),
            ("main.go", vec!["go"]),
            ("tools/gen.py", vec!["python"]),
            ("cmd/a.go", vec!["go"]),
            ("web/vendor/jquery.js", vec!["javascript"]),
            ("web/vendor/deep/x.js", vec!["javascript"]),
            ("README.md", vec!["markdown"]),
        ];
        let found = RepositoryFacts::of(files.into_iter());
        assert_eq!(found.languages, ["go", "python"]);
        assert_eq!(
            (found.tests, found.foreign.as_slice()),
            (Some("go test ./..."), &["web/vendor".to_owned()][..])
        );
        let text = found.policy();
        for part in [
            "found: go, python",
            "# ignore = [\"web/vendor/**\"]",
            "# command = \"go test ./...\"",
            "**/*.go",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }

    #[test]
    fn names_that_need_escapes_are_left_out_and_many_folders_become_one_pattern_for_each_name() {
        let hostile = [
            "x\ny = 1\n#/vendor/a",
            "a\"/vendor/a",
            "[a]/dist/a",
            "*/dist/a",
            "!a/dist/a",
            "a b\\/dist/a",
        ];
        let found = RepositoryFacts::of(hostile.into_iter().map(|path| (path, vec![])));
        assert!(found.foreign.is_empty(), "{:?}", found.foreign);
        let many: Vec<String> = (0..20)
            .map(|n| format!("p{n}/{}/a.js", ["dist", "vendor"][n % 2]))
            .collect();
        let found = RepositoryFacts::of(many.iter().map(|path| (path.as_str(), vec![])));
        assert_eq!(found.ignore(), ["\"**/vendor/**\"", "\"**/dist/**\""]);
    }
}
