//! Suggests a command for arguments that the parser rejected: `review --staged`,
//! `review main..feature`.

pub(super) mod grammar;

use crate::shell::quoted;
use grammar::{CliPiece, Grammar, Values};
use std::path::{Component, Path};

/// The sources of `review`, which users also write as top-level commands.
const SOURCES: &[&str] = &[
    "staged", "unstaged", "commit", "branch", "changes", "patch", "code",
];

/// Subcommands that take other arguments than a review.
const SUBCOMMANDS: &[&str] = &[
    "pr",
    "verify-receipt",
    "init",
    "install-hooks",
    "policy",
    "doctor",
    "rules",
    "history",
    "complete",
    "serve-mcp",
    "completions",
    "man",
    "help",
];

/// Commands of similar programs, and the equivalent command here.
const COMMANDS: &[(&str, &[&str])] = &[
    ("check", &["review"]),
    ("scan", &["review"]),
    ("diff", &["review"]),
    ("lint", &["review"]),
    ("run", &["review"]),
    ("audit", &["review"]),
    ("gate", &["review"]),
    ("install", &["install-hooks"]),
    ("install-hook", &["install-hooks"]),
    ("hooks", &["install-hooks"]),
    ("hook", &["install-hooks"]),
    ("uninstall", &["install-hooks", "--uninstall"]),
    ("mcp", &["serve-mcp"]),
    ("serve", &["serve-mcp"]),
    ("server", &["serve-mcp"]),
    ("explain", &["rules", "explain"]),
    ("list", &["rules", "list"]),
    ("rule", &["rules"]),
    ("config", &["policy", "show"]),
    ("prs", &["pr", "list"]),
    ("completion", &["completions"]),
];

/// The meaning of a flag that users write in place of a source of `review`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Meaning {
    /// The source itself.
    Source(&'static str),
    /// A source that has this flag.
    Untracked,
    /// The value is the argument of the source.
    Argument(&'static str),
    /// The value is the base to compare with.
    Base,
}

/// Flags that users write in place of a source of `review`.
const FLAGS: &[(&str, Meaning)] = &[
    ("--staged", Meaning::Source("staged")),
    ("--cached", Meaning::Source("staged")),
    ("--index", Meaning::Source("staged")),
    ("--unstaged", Meaning::Source("unstaged")),
    ("--worktree", Meaning::Source("changes")),
    ("--changes", Meaning::Source("changes")),
    ("--stdin", Meaning::Source("patch")),
    ("--untracked", Meaning::Untracked),
    ("--base", Meaning::Base),
    ("--against", Meaning::Base),
    ("--branch", Meaning::Argument("branch")),
    ("--head", Meaning::Argument("branch")),
    ("--commit", Meaning::Argument("commit")),
    ("--rev", Meaning::Argument("commit")),
    ("--range", Meaning::Argument("commit")),
    ("--patch", Meaning::Argument("patch")),
    ("--diff", Meaning::Argument("patch")),
    ("--file", Meaning::Argument("code")),
    ("--pr", Meaning::Argument("pr")),
    ("--mr", Meaning::Argument("pr")),
];

/// Words that users write after a subcommand, and the correct command.
const OF_SUBCOMMANDS: &[(&str, &str, &[&str])] = &[
    ("rules", "check", &["rules", "test"]),
    ("rules", "validate", &["rules", "test"]),
    ("rules", "show", &["rules", "explain"]),
    ("rules", "add", &["rules", "new"]),
    ("rules", "create", &["rules", "new"]),
    ("policy", "validate", &["policy", "check"]),
    ("policy", "lint", &["policy", "check"]),
    ("policy", "print", &["policy", "show"]),
    ("policy", "init", &["init"]),
    ("history", "list", &["history"]),
    ("history", "ls", &["history"]),
    ("history", "log", &["history"]),
    ("pr", "review", &["review", "pr"]),
    ("pr", "ls", &["pr", "list"]),
];

/// Words for a source of `review`.
const WORDS: &[(&str, &str)] = &[
    ("cached", "staged"),
    ("index", "staged"),
    ("stage", "staged"),
    ("diff", "changes"),
    ("worktree", "changes"),
    ("working", "changes"),
    ("local", "changes"),
    ("all", "changes"),
    ("stdin", "patch"),
    ("mr", "pr"),
    ("pull", "pr"),
    ("files", "code"),
    ("file", "code"),
    ("commits", "commit"),
    ("range", "commit"),
];

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

fn meaning(flag: &str) -> Option<Meaning> {
    FLAGS
        .iter()
        .find(|(name, _)| *name == flag)
        .map(|(_, meaning)| *meaning)
}

/// Returns the number of arguments that belong to a flag that no command has.
fn foreign(flag: &str) -> Values {
    match meaning(flag) {
        Some(Meaning::Argument(_) | Meaning::Base) => Values::One,
        Some(Meaning::Source(_) | Meaning::Untracked) | None => Values::None,
    }
}

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
                    request.flags.push((name, value))
                }
                CliPiece::Option { written, .. } if request.words.is_empty() => {
                    request.globals.extend(written)
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
        let mut bases = Vec::new();
        let mut named: Vec<(&str, Option<&str>)> = Vec::new();
        for (flag, value) in &self.flags {
            match meaning(flag) {
                Some(Meaning::Base) => bases.push(value.as_deref()),
                Some(Meaning::Source(source)) => named.push((source, None)),
                Some(Meaning::Untracked) => named.push(("untracked", None)),
                // The source needs the missing value.
                Some(Meaning::Argument(source)) if value.is_some() => {
                    named.push((source, value.as_deref()))
                }
                Some(Meaning::Argument(_)) | None => return Vec::new(),
            }
        }
        let base: Vec<&str> = bases.iter().flatten().flat_map(|b| ["--base", b]).collect();
        named.sort_unstable();
        named.dedup();
        match (bases.len(), &named[..], words) {
            (1, [], words) => {
                let heads = words
                    .iter()
                    .filter(|w| !w.contains("..") && around.is_revision(w))
                    .count()
                    .min(1);
                let Some(globs) = globs(&words[heads..], around) else {
                    return Vec::new();
                };
                vec![source(&[&["branch"], &words[..heads], &base], &globs)]
            }
            (1, [("branch", Some(head))], words) => {
                let Some(globs) = globs(words, around) else {
                    return Vec::new();
                };
                vec![source(&[&["branch", head], &base], &globs)]
            }
            (1, [("changes" | "untracked", None)], []) => vec![source(&[&["changes"], &base], &[])],
            (0, [("commit", Some(range))], []) if range.contains("..") => of_word(range, around),
            (0, [("unstaged" | "untracked", None), ..], [])
                if named.iter().all(|(s, _)| s.starts_with("un")) =>
            {
                let untracked = named.iter().any(|(s, _)| *s == "untracked");
                vec![source(
                    &[
                        &["unstaged"],
                        if untracked { &["--untracked"] } else { &[] },
                    ],
                    &[],
                )]
            }
            (0, [(name, argument)], words) if *name != "untracked" => {
                let Some(globs) = globs(words, around) else {
                    return Vec::new();
                };
                vec![source(&[&[*name], argument.as_slice()], &globs)]
            }
            (0, [], words) => of_words(words, around),
            _ => Vec::new(),
        }
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

fn is_source(word: &str) -> bool {
    SOURCES.contains(&word) || word == "pr"
}

fn source(words: &[&[&str]], globs: &[String]) -> Vec<String> {
    words
        .iter()
        .flat_map(|w| w.iter())
        .map(|w| (*w).to_owned())
        .chain(globs.iter().cloned())
        .collect()
}

/// Returns the meaning of words in the position of a source of `review`.
fn of_words(words: &[&str], around: &dyn DirectoryQueries) -> Vec<Vec<String>> {
    match words {
        [] => Vec::new(),
        [word] => of_word(word, around),
        [base, head] if around.is_revision(base) && around.is_revision(head) => {
            vec![branch(base, head)]
        }
        [first, rest @ ..]
            if let Some((_, name)) = WORDS.iter().find(|(word, _)| word == first) =>
        {
            vec![source(&[&[*name], rest], &[])]
        }
        _ if words.iter().all(|w| around.is_file(Path::new(w))) => {
            vec![source(&[&["code"], words], &[])]
        }
        [first, paths @ ..] => {
            if let Some(globs) = globs(words, around) {
                return vec![source(&[&["changes"]], &globs)];
            }
            let Some(globs) = globs(paths, around) else {
                return Vec::new();
            };
            let mut found = of_word(first, around);
            found
                .iter_mut()
                .for_each(|source| source.extend_from_slice(&globs));
            found
        }
    }
}

/// Returns the meaning of a word in the position of a source of `review`.
fn of_word(word: &str, around: &dyn DirectoryQueries) -> Vec<Vec<String>> {
    let path = Path::new(word);
    let is_patch = path
        .extension()
        .is_some_and(|e| e == "patch" || e == "diff");
    if word == "-" || is_patch && around.is_file(path) {
        return vec![source(&[&["patch", word]], &[])];
    }
    if around.is_file(path) {
        return vec![source(&[&["code", word]], &[])];
    }
    if around.is_dir(path) {
        return globs(&[word], around)
            .map(|globs| source(&[&["changes"]], &globs))
            .into_iter()
            .collect();
    }
    if let Some((_, name)) = WORDS.iter().find(|(name, _)| *name == word) {
        return vec![source(&[&[*name]], &[])];
    }
    if let Some((base, head)) = word.split_once("...") {
        return vec![branch(base, head)];
    }
    if let Some((base, head)) = word.split_once("..") {
        return vec![source(&[&["commit", word]], &[]), branch(base, head)];
    }
    if around.is_branch(word) {
        return vec![
            source(&[&["branch", word]], &[]),
            source(&[&["commit", word]], &[]),
        ];
    }
    if around.is_revision(word) {
        return vec![source(&[&["commit", word]], &[])];
    }
    of_pull(word)
        .map(|pull| source(&[&["pr", pull]], &[]))
        .into_iter()
        .collect()
}

/// Returns the URL or the number of a pull request.
fn of_pull(word: &str) -> Option<&str> {
    let number = word.trim_start_matches(['#', '!']);
    match word.starts_with("https://") || word.starts_with("http://") {
        true => Some(word),
        false => {
            (!number.is_empty() && number.bytes().all(|b| b.is_ascii_digit())).then_some(number)
        }
    }
}

/// Returns the review of a branch for a range of two names; an empty end means HEAD.
fn branch(base: &str, head: &str) -> Vec<String> {
    let base = if base.is_empty() { "HEAD" } else { base };
    match head {
        "" | "HEAD" => source(&[&["branch", "--base", base]], &[]),
        _ => source(&[&["branch", head, "--base", base]], &[]),
    }
}

/// Returns the option that limits a review to files and directories; empty without paths, `None` if
/// a word is neither, or if no pattern matches it alone.
fn globs(paths: &[&str], around: &dyn DirectoryQueries) -> Option<Vec<String>> {
    let globs: Option<Vec<String>> = paths.iter().map(|path| glob(path, around)).collect();
    let option = (!paths.is_empty()).then(|| "--files".to_owned());
    Some(option.into_iter().chain(globs?).collect())
}

fn glob(word: &str, around: &dyn DirectoryQueries) -> Option<String> {
    let path = Path::new(word);
    let is_dir = around.is_dir(path);
    if !is_dir && !around.is_file(path) || word.contains(['*', '?', '[', ']', '{', '}', '\\', '!'])
    {
        return None;
    }
    let relative = if path.is_absolute() {
        path.strip_prefix(around.dir()).ok()?
    } else {
        path
    };
    let mut names = Vec::new();
    for component in relative.components() {
        match component {
            Component::Normal(name) => names.push(name.to_str()?),
            Component::CurDir => {}
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    if is_dir {
        names.push("**");
    }
    Some(names.join("/"))
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
                &["review unstaged"],
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
