//! Suggests a command for arguments that the parser rejected: `review --staged`,
//! `review main..feature`.

pub(super) mod grammar;
mod source;
mod vocabulary;

use crate::shell::quoted;
use grammar::{CliPiece, Grammar};
use source::{globs, of_pull, of_word, of_words, source};
use std::path::Path;
use vocabulary::{
    COMMANDS, Meaning, OF_SUBCOMMANDS, SOURCES, SUBCOMMANDS, foreign, is_source, meaning,
};

/// Questions about the directory in which the program runs.
pub(super) trait DirectoryQueries {
    /// Returns the directory.
    fn dir(&self) -> &Path;
    /// Returns true if the path names a file.
    fn is_file(&self, path: &Path) -> bool;
    /// Returns true if the path names a directory.
    fn is_dir(&self, path: &Path) -> bool;
    /// Returns true if the name is one of a commit.
    fn is_revision(&self, name: &str) -> bool;
    /// Returns true if the name is one of a local branch.
    fn is_branch(&self, name: &str) -> bool;
}

/// The suggestions for arguments that the parser rejected.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Meant {
    /// Commands that can be pasted into a shell, best first.
    pub(super) commands: Vec<String>,
    /// If there are no commands: the commands that have the rejected option.
    pub(super) owners: Vec<String>,
}

/// Finds suggestions for the arguments of a user.
///
/// `args` are the arguments without the program's name, `refused` is the one that the parser
/// rejected.
pub(super) fn meant(
    grammar: &Grammar,
    args: &[String],
    refused: &str,
    around: &dyn DirectoryQueries,
) -> Meant {
    let flag = refused.split('=').next().unwrap_or(refused);
    let is_flag = flag.starts_with('-') && flag != "-";
    let owners = match is_flag {
        true => grammar
            .commands_with(flag)
            .into_iter()
            .map(str::to_owned)
            .collect(),
        false => Vec::new(),
    };
    if is_flag && meaning(flag).is_none() {
        return Meant {
            owners,
            ..Meant::default()
        };
    }
    let request = CommandRequest::of(grammar.pieces(args, foreign));
    let commands: Vec<String> = request.commands(grammar, around);
    Meant {
        owners: if commands.is_empty() {
            owners
        } else {
            Vec::new()
        },
        commands,
    }
}

/// A source that a flag names, with its argument.
type NamedSource<'a> = (&'a str, Option<&'a str>);

/// A command line, split by the role of its parts.
struct CommandRequest {
    /// Options before the command.
    globals: Vec<String>,
    words: Vec<String>,
    /// Flags for a source, with their values.
    flags: Vec<(String, Option<String>)>,
    /// The other options, as written.
    options: Vec<(String, Vec<String>)>,
}

impl CommandRequest {
    fn of(pieces: Vec<CliPiece>) -> Self {
        let mut request = Self {
            globals: Vec::new(),
            words: Vec::new(),
            flags: Vec::new(),
            options: Vec::new(),
        };
        for piece in pieces {
            match piece {
                CliPiece::Word(word) => request.words.push(word),
                CliPiece::Option { name, value, .. } if meaning(&name).is_some() => {
                    request.flags.push((name, value));
                }
                CliPiece::Option { written, .. } if request.words.is_empty() => {
                    request.globals.extend(written);
                }
                CliPiece::Option { name, written, .. } => request.options.push((name, written)),
            }
        }
        request
    }

    fn commands(&self, grammar: &Grammar, around: &dyn DirectoryQueries) -> Vec<String> {
        let words: Vec<&str> = self.words.iter().map(String::as_str).collect();
        match words[..] {
            [] => self.reviews(&self.sources(&[], around)),
            ["review", source, ref rest @ ..] if is_source(source) => {
                self.of_named(grammar, source, rest, around)
            }
            ["review", ref rest @ ..] => self.reviews(&self.sources(rest, around)),
            ["pr", number, ..] if of_pull(number).is_some() => {
                self.reviews(&self.sources(&[number], around))
            }
            [command, word, ref rest @ ..] if SUBCOMMANDS.contains(&command) => {
                let found = OF_SUBCOMMANDS
                    .iter()
                    .find(|(name, other, _)| (*name, *other) == (command, word));
                found
                    .map(|(_, _, ours)| self.line(ours, rest))
                    .into_iter()
                    .collect()
            }
            [command] if SUBCOMMANDS.contains(&command) => Vec::new(),
            [source, ref rest @ ..] if SOURCES.contains(&source) => {
                self.of_named(grammar, source, rest, around)
            }
            [command, ref rest @ ..] => match COMMANDS.iter().find(|(name, _)| *name == command) {
                // `check src/a.txt` and `diff main..feature` have arguments that `review` would
                // reject too.
                Some((_, ["review"])) => match rest {
                    [] if self.flags.is_empty() => vec![self.line(&["review"], &[])],
                    [source, rest @ ..] if is_source(source) => {
                        self.of_named(grammar, source, rest, around)
                    }
                    _ => self.reviews(&self.sources(rest, around)),
                },
                Some((_, ours)) => vec![self.line(ours, rest)],
                None => self.reviews(&self.sources(&words, around)),
            },
        }
    }

    /// Returns true if the source has all the given flags.
    fn flags_fit(&self, grammar: &Grammar, source: &str) -> bool {
        self.flags
            .iter()
            .all(|(flag, _)| grammar.has(&format!("review {source}"), flag))
    }

    /// Returns commands for a source with its arguments and the words after them: paths limit the
    /// review, other flags select another source.
    fn of_named(
        &self,
        grammar: &Grammar,
        source: &str,
        rest: &[&str],
        around: &dyn DirectoryQueries,
    ) -> Vec<String> {
        let own = match source {
            "commit" | "pr" | "patch" | "branch" => 1,
            "code" => rest.len(),
            _ => 0,
        };
        let (arguments, extra) = rest.split_at(own.min(rest.len()));
        if !self.flags_fit(grammar, source) {
            let is_worktree = matches!(source, "staged" | "unstaged") && rest.is_empty();
            return match self.flags[..] {
                [(ref flag, _)] if is_worktree && flag == "--untracked" => {
                    vec![self.line(&["review", "unstaged", "--untracked"], &[])]
                }
                _ => Vec::new(),
            };
        }
        let Some(globs) = globs(extra, around) else {
            return Vec::new();
        };
        let words: Vec<&str> = ["review", source]
            .into_iter()
            .chain(arguments.iter().copied())
            .collect();
        let kept = self
            .flags
            .iter()
            .flat_map(|(flag, value)| std::iter::once(flag).chain(value));
        let kept: Vec<&str> = kept.chain(&globs).map(String::as_str).collect();
        vec![self.line(&words, &kept)]
    }

    /// Returns the sources that the flags and words mean, best first.
    fn sources(&self, words: &[&str], around: &dyn DirectoryQueries) -> Vec<Vec<String>> {
        let Some(named) = self.named_sources() else {
            return Vec::new();
        };
        let bases: Vec<Option<&str>> = self
            .flags
            .iter()
            .filter(|(flag, _)| meaning(flag) == Some(Meaning::Base))
            .map(|(_, value)| value.as_deref())
            .collect();
        match bases[..] {
            [] => without_base(&named, words, around),
            [base] => with_base(base, &named, words, around),
            _ => Vec::new(),
        }
    }

    /// Returns the sources that flags name, with their arguments, sorted and without repetitions.
    /// `None` if a flag lacks the value that the source needs.
    fn named_sources(&self) -> Option<Vec<NamedSource<'_>>> {
        let mut named = Vec::new();
        for (flag, value) in &self.flags {
            match (meaning(flag)?, value.as_deref()) {
                (Meaning::Base, _) => {}
                (Meaning::Source(source), _) => named.push((source, None)),
                (Meaning::Untracked, _) => named.push(("untracked", None)),
                (Meaning::Argument(source), Some(value)) => named.push((source, Some(value))),
                (Meaning::Argument(_), None) => return None,
            }
        }
        named.sort_unstable();
        named.dedup();
        Some(named)
    }

    /// Joins a command that can be pasted into a shell: global options, the command, its arguments,
    /// other options.
    fn line(&self, command: &[&str], arguments: &[&str]) -> String {
        let options = self
            .options
            .iter()
            .flat_map(|(_, written)| written)
            .map(String::as_str);
        let words = self
            .globals
            .iter()
            .map(String::as_str)
            .chain(command.iter().copied());
        let mut line = "claude-reviewer".to_owned();
        for word in words.chain(arguments.iter().copied()).chain(options) {
            line.push(' ');
            line.push_str(&quoted(word));
        }
        line
    }

    fn reviews(&self, sources: &[Vec<String>]) -> Vec<String> {
        sources.iter().map(|source| self.review(source)).collect()
    }

    /// Returns the command that reviews a source.
    fn review(&self, source: &[String]) -> String {
        let words: Vec<&str> = source.iter().map(String::as_str).collect();
        self.line(&["review"], &words)
    }
}

/// Returns the sources that flags and words mean together with a base. Without a value for the base,
/// `review branch` finds one.
fn with_base(
    base: Option<&str>,
    named: &[NamedSource<'_>],
    words: &[&str],
    around: &dyn DirectoryQueries,
) -> Vec<Vec<String>> {
    let option: Vec<&str> = base.into_iter().flat_map(|base| ["--base", base]).collect();
    let found = match (named, words) {
        ([], words) => {
            let heads = words
                .iter()
                .filter(|w| !w.contains("..") && around.is_revision(w))
                .count()
                .min(1);
            globs(&words[heads..], around)
                .map(|globs| source(&[&["branch"], &words[..heads], &option], &globs))
        }
        ([("branch", Some(head))], words) => {
            globs(words, around).map(|globs| source(&[&["branch", head], &option], &globs))
        }
        ([("changes" | "untracked", None)], []) => Some(source(&[&["changes"], &option], &[])),
        _ => None,
    };
    found.into_iter().collect()
}

/// Returns the sources that flags and words mean without a base.
fn without_base(
    named: &[NamedSource<'_>],
    words: &[&str],
    around: &dyn DirectoryQueries,
) -> Vec<Vec<String>> {
    match (named, words) {
        ([], words) => of_words(words, around),
        ([("commit", Some(range))], []) if range.contains("..") => of_word(range, around),
        ([("unstaged" | "untracked", None), ..], [])
            if named.iter().all(|(s, _)| s.starts_with("un")) =>
        {
            let has_untracked = named.iter().any(|(s, _)| *s == "untracked");
            let option: &[&str] = if has_untracked { &["--untracked"] } else { &[] };
            vec![source(&[&["unstaged"], option], &[])]
        }
        ([(name, argument)], words) if *name != "untracked" => globs(words, around)
            .map(|globs| source(&[&[*name], argument.as_slice()], &globs))
            .into_iter()
            .collect(),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct EmptyFolder;

    impl DirectoryQueries for EmptyFolder {
        fn dir(&self) -> &Path {
            Path::new("/repo")
        }
        fn is_file(&self, path: &Path) -> bool {
            let path = path.strip_prefix("/repo").unwrap_or(path);
            ["src/a.txt", "my file.rs", "fix.patch", "x.diff", "a[1].rs"]
                .iter()
                .any(|f| Path::new(f) == path)
        }
        fn is_dir(&self, path: &Path) -> bool {
            [
                ".",
                "..",
                "src",
                "./src",
                "/repo/src",
                "/elsewhere",
                "src/../lib",
            ]
            .iter()
            .any(|d| Path::new(d) == path)
        }
        fn is_revision(&self, name: &str) -> bool {
            ["HEAD", "HEAD~1", "v1.2"].contains(&name) || self.is_branch(name)
        }
        fn is_branch(&self, name: &str) -> bool {
            ["main", "feature"].contains(&name)
        }
    }

    fn found(line: &str, refused: &str) -> Meant {
        use clap::CommandFactory as _;
        let args: Vec<String> = line.split(' ').map(|a| a.replace('_', " ")).collect();
        let mut found = meant(
            &Grammar::of(&crate::cli::Cli::command()),
            &args,
            refused,
            &EmptyFolder,
        );
        for line in &mut found.commands {
            *line = line.trim_start_matches("claude-reviewer ").to_owned();
        }
        found
    }

    /// Checks lines and their suggested commands, both without the program's name.
    fn check(cases: &[(&str, &[&str])]) {
        for (line, expected) in cases {
            let words = line
                .split(' ')
                .filter(|w| *w != "review")
                .map(|a| a.replace('_', " "));
            let refused: Vec<String> = words.collect();
            let refused = refused
                .iter()
                .find(|w| meaning(w.split('=').next().unwrap()).is_some());
            assert_eq!(
                found(line, refused.map_or("word", String::as_str)).commands,
                *expected,
                "{line}"
            );
        }
    }

    #[test]
    fn a_flag_for_a_source_becomes_the_source() {
        check(&[
            ("review --staged", &["review staged"]),
            (
                "review --cached --format json",
                &["review staged --format json"],
            ),
            (
                "-q review --offline --staged",
                &["-q review staged --offline"],
            ),
            ("-qC dir review --staged", &["-qC dir review staged"]),
            ("--staged", &["review staged"]),
            (
                "review --summary staged --staged",
                &["review staged --summary staged"],
            ),
            ("review --base main", &["review branch --base main"]),
            (
                "review --base=main --gate",
                &["review branch --base main --gate"],
            ),
            (
                "review --base main --head feature",
                &["review branch feature --base main"],
            ),
            (
                "review --head feature --base main",
                &["review branch feature --base main"],
            ),
            (
                "review feature --base main",
                &["review branch feature --base main"],
            ),
            (
                "review --base main src",
                &["review branch --base main --files 'src/**'"],
            ),
            (
                "review --base main --worktree",
                &["review changes --base main"],
            ),
            (
                "review --base main --untracked",
                &["review changes --base main"],
            ),
            ("review --base", &["review branch"]),
            ("review --against main", &["review branch --base main"]),
            ("review --branch feature", &["review branch feature"]),
            ("review --commit HEAD~1", &["review commit HEAD~1"]),
            ("review --range a...b", &["review branch b --base a"]),
            ("review --pr 7", &["review pr 7"]),
            ("review --untracked", &["review unstaged --untracked"]),
            (
                "review --unstaged --untracked",
                &["review unstaged --untracked"],
            ),
            (
                "review staged --untracked",
                &["review unstaged --untracked"],
            ),
            (
                "review --staged src/a.txt",
                &["review staged --files src/a.txt"],
            ),
            ("review --diff x.diff", &["review patch x.diff"]),
            // The value is missing, or there are two sources.
            ("review --commit", &[]),
            ("review --staged --commit HEAD", &[]),
            ("review --base main --commit HEAD", &[]),
            ("review staged --base main", &[]),
            ("review pr 7 --base main", &[]),
            ("policy show --base main", &[]),
            ("review --formt json", &[]),
        ]);
    }

    #[test]
    fn a_word_for_a_source_becomes_the_source() {
        check(&[
            (
                "review main..feature",
                &[
                    "review commit main..feature",
                    "review branch feature --base main",
                ],
            ),
            (
                "review main...feature",
                &["review branch feature --base main"],
            ),
            ("review main...", &["review branch --base main"]),
            ("review ...feature", &["review branch feature --base HEAD"]),
            (
                "review v1.2..HEAD",
                &["review commit v1.2..HEAD", "review branch --base v1.2"],
            ),
            (
                "review main feature",
                &["review branch feature --base main"],
            ),
            ("review src/a.txt", &["review code src/a.txt"]),
            (
                "review src/a.txt my_file.rs",
                &["review code src/a.txt 'my file.rs'"],
            ),
            ("review my_file.rs", &["review code 'my file.rs'"]),
            ("review src/", &["review changes --files 'src/**'"]),
            (
                "review ./src src/a.txt",
                &["review changes --files 'src/**' src/a.txt"],
            ),
            ("review /repo/src", &["review changes --files 'src/**'"]),
            ("review .", &["review changes --files '**'"]),
            ("review fix.patch", &["review patch fix.patch"]),
            ("review -", &["review patch -"]),
            (
                "review HEAD~1 --depth quick",
                &["review commit HEAD~1 --depth quick"],
            ),
            ("review HEAD src", &["review commit HEAD --files 'src/**'"]),
            (
                "review commit HEAD src/a.txt",
                &["review commit HEAD --files src/a.txt"],
            ),
            (
                "review branch feature src --base main",
                &["review branch feature --base main --files 'src/**'"],
            ),
            ("review main", &["review branch main", "review commit main"]),
            ("review cached", &["review staged"]),
            ("review mr 7", &["review pr 7"]),
            ("review #12", &["review pr 12"]),
            (
                "review https://git.example/x/pull/3",
                &["review pr https://git.example/x/pull/3"],
            ),
            ("review stagd", &[]),
            ("review staged main", &[]),
            // Directories that no pattern relative to this directory can name.
            ("review ..", &[]),
            ("review /elsewhere", &[]),
            ("review src/../lib", &[]),
            ("review HEAD a[1].rs", &[]),
        ]);
    }

    #[test]
    fn a_command_of_another_program_becomes_ours() {
        check(&[
            ("staged", &["review staged"]),
            ("-C dir staged -v", &["-C dir review staged -v"]),
            ("commit HEAD", &["review commit HEAD"]),
            ("branch --base main", &["review branch --base main"]),
            ("check", &["review"]),
            ("check --staged", &["review staged"]),
            ("scan src/a.txt", &["review code src/a.txt"]),
            ("lint --format json", &["review --format json"]),
            (
                "diff main...feature",
                &["review branch feature --base main"],
            ),
            ("run staged", &["review staged"]),
            ("install", &["install-hooks"]),
            ("mcp", &["serve-mcp"]),
            ("explain todo-comment", &["rules explain todo-comment"]),
            ("src/a.txt", &["review code src/a.txt"]),
            ("pr 7", &["review pr 7"]),
            ("pr #7 --gate", &["review pr 7 --gate"]),
            ("rules check", &["rules test"]),
            ("rules show todo-comment", &["rules explain todo-comment"]),
            ("policy validate", &["policy check"]),
            ("reviw", &[]),
            ("rules chekc", &[]),
            ("pr", &[]),
        ]);
    }

    #[test]
    fn a_flag_of_other_commands_names_them() {
        for (line, refused, expected) in [
            (
                "review staged --base main",
                "--base",
                &["review branch", "review changes", "verify-receipt"][..],
            ),
            ("review staged --parent 2", "--parent", &["review commit"]),
            (
                "review pr 7 --untracked",
                "--untracked",
                &["review unstaged", "review tree"],
            ),
            ("review --formt json", "--formt", &[]),
            ("review staged main", "main", &[]),
        ] {
            assert_eq!(
                found(line, refused),
                Meant {
                    commands: Vec::new(),
                    owners: owned(expected)
                },
                "{line}"
            );
        }
    }

    fn owned(words: &[&str]) -> Vec<String> {
        words.iter().map(|w| (*w).to_owned()).collect()
    }
}
