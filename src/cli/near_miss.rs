//! Finds the command that a user meant whose arguments the parser refused: `review --staged`, `review main..feature`.

use std::path::Path;

/// The sources of `review`, which users also write as top-level commands.
const SOURCES: &[&str] = &["staged", "unstaged", "commit", "branch", "changes", "patch", "code"];

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

/// Commands of other programs of the field, and the command here.
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

/// Flags that users write for a source of `review`, and whether a value follows that the source takes.
const FLAGS: &[(&str, &str, Takes)] = &[
    ("--staged", "staged", Takes::Nothing),
    ("--cached", "staged", Takes::Nothing),
    ("--index", "staged", Takes::Nothing),
    ("--unstaged", "unstaged", Takes::Nothing),
    ("--worktree", "changes", Takes::Nothing),
    ("--untracked", "unstaged", Takes::Flag),
    ("--changes", "changes", Takes::Nothing),
    ("--base", "branch", Takes::Option),
    ("--against", "branch", Takes::Base),
    ("--branch", "branch", Takes::Value),
    ("--head", "branch", Takes::Value),
    ("--commit", "commit", Takes::Value),
    ("--rev", "commit", Takes::Value),
    ("--range", "commit", Takes::Value),
    ("--patch", "patch", Takes::Value),
    ("--diff", "patch", Takes::Value),
    ("--file", "code", Takes::Value),
    ("--pr", "pr", Takes::Value),
    ("--mr", "pr", Takes::Value),
    ("--stdin", "patch", Takes::Nothing),
];

/// What becomes of a flag and of the argument behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Takes {
    /// The flag becomes the source.
    Nothing,
    /// The source has the flag.
    Flag,
    /// The source has the flag with its value.
    Option,
    /// The value is the source's argument.
    Value,
    /// The value is that of the source's `--base`.
    Base,
}

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
pub(super) trait Surroundings {
    /// Returns true if the path names a file.
    fn is_file(&self, path: &Path) -> bool;
    /// Returns true if the path names a directory.
    fn is_dir(&self, path: &Path) -> bool;
    /// Returns true if the name is one of a commit.
    fn is_revision(&self, name: &str) -> bool;
}

/// Returns the commands that the user likely meant, best first; empty if there is none.
///
/// `args` are the arguments without the program's name, `refused` the one that the parser did not take.
pub(super) fn commands(args: &[String], refused: &str, around: &dyn Surroundings) -> Vec<String> {
    let flag = refused.split('=').next().unwrap_or(refused);
    let Some(at) = args.iter().position(|a| a == refused || a.split('=').next() == Some(flag)) else {
        return Vec::new();
    };
    let (before, after) = (&args[..at], &args[at + 1..]);
    // Within another subcommand, a source of a review is not what the user means.
    if before.iter().any(|a| SUBCOMMANDS.contains(&a.as_str())) {
        return Vec::new();
    }
    let is_review = before.iter().any(|a| a == "review");
    let no_source = !before.iter().chain(after).any(|a| SOURCES.contains(&a.as_str()) || a == "pr");
    let meant = if flag.starts_with("--") {
        match no_source {
            true => of_flag(args, at, around),
            false => Vec::new(),
        }
    } else if is_review {
        match no_source {
            true => of_source(refused, around),
            false => Vec::new(),
        }
    } else {
        return top_level(before, refused, after, around);
    };
    let Some(review) = before.iter().position(|a| a == "review") else {
        return meant.into_iter().map(|m| line(before, &["review".to_owned()], &m.words, m.rest(after))).collect();
    };
    let (global, between) = (&before[..review], &before[review + 1..]);
    meant
        .into_iter()
        .map(|m| {
            let rest: Vec<String> = between.iter().chain(m.rest(after)).cloned().collect();
            line(global, &["review".to_owned()], &m.words, &rest)
        })
        .collect()
}

/// A source of `review` with its arguments, and how many of the arguments behind the refused one it used.
struct Meant {
    words: Vec<String>,
    used: usize,
}

impl Meant {
    fn new(words: &[&str]) -> Self {
        Self { words: words.iter().map(|w| (*w).to_owned()).collect(), used: 0 }
    }

    fn rest<'a>(&self, after: &'a [String]) -> &'a [String] {
        &after[self.used.min(after.len())..]
    }
}

/// Returns what a flag means that names a source.
fn of_flag(args: &[String], at: usize, around: &dyn Surroundings) -> Vec<Meant> {
    let (flag, joined) = match args[at].split_once('=') {
        Some((flag, value)) => (flag, Some(value)),
        None => (args[at].as_str(), None),
    };
    let Some((_, source, takes)) = FLAGS.iter().find(|(name, _, _)| *name == flag) else { return Vec::new() };
    let next = args.get(at + 1).map(String::as_str).filter(|a| !a.starts_with('-') || *a == "-");
    let used = usize::from(joined.is_none() && next.is_some());
    let value = joined.or(next);
    match (takes, value) {
        (Takes::Nothing, _) => vec![Meant::new(&[source])],
        (Takes::Flag, _) => vec![Meant::new(&[source, flag])],
        (Takes::Option | Takes::Base, Some(v)) => vec![Meant { used, ..Meant::new(&[source, "--base", v]) }],
        (Takes::Value, Some(v)) if *source == "commit" && v.contains("..") => {
            of_source(v, around).into_iter().map(|m| Meant { used, ..m }).collect()
        }
        (Takes::Value, Some(v)) => vec![Meant { used, ..Meant::new(&[source, v]) }],
        (_, None) if *source == "branch" => vec![Meant::new(&[source])],
        // The source needs the missing value.
        (_, None) => Vec::new(),
    }
}

/// Returns what a word means that stands where `review` expects a source.
fn of_source(word: &str, around: &dyn Surroundings) -> Vec<Meant> {
    let path = Path::new(word);
    let is_patch = path.extension().is_some_and(|e| e == "patch" || e == "diff");
    if word == "-" || is_patch && around.is_file(path) {
        return vec![Meant::new(&["patch", word])];
    }
    if around.is_file(path) {
        return vec![Meant::new(&["code", word])];
    }
    if around.is_dir(path) {
        return vec![Meant::new(&["changes", "--files", &format!("{}/**", word.trim_end_matches('/'))])];
    }
    if let Some((_, source)) = WORDS.iter().find(|(name, _)| *name == word) {
        return vec![Meant::new(&[source])];
    }
    if word.starts_with("https://") || word.starts_with("http://") {
        return vec![Meant::new(&["pr", word])];
    }
    if let Some((base, head)) = word.split_once("...") {
        return vec![branch(base, head)];
    }
    if let Some((base, head)) = word.split_once("..") {
        return vec![Meant::new(&["commit", word]), branch(base, head)];
    }
    if around.is_revision(word) {
        return vec![Meant::new(&["commit", word])];
    }
    let number = word.strip_prefix('#').unwrap_or(word);
    match !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()) {
        true => vec![Meant::new(&["pr", number])],
        false => Vec::new(),
    }
}

/// Returns the review of a branch that a range of two names stands for; an end without a name is HEAD.
fn branch(base: &str, head: &str) -> Meant {
    let base = if base.is_empty() { "HEAD" } else { base };
    match head {
        "" | "HEAD" => Meant::new(&["branch", "--base", base]),
        _ => Meant::new(&["branch", head, "--base", base]),
    }
}

/// Returns what an unknown command means.
fn top_level(before: &[String], word: &str, after: &[String], around: &dyn Surroundings) -> Vec<String> {
    let review = ["review".to_owned()];
    if SOURCES.contains(&word) {
        return vec![line(before, &review, &[word.to_owned()], after)];
    }
    if let Some((_, command)) = COMMANDS.iter().find(|(name, _)| *name == word) {
        let words: Vec<String> = command.iter().map(|w| (*w).to_owned()).collect();
        // `check src/a.txt` and `diff main..feature` name what `review` would refuse, too.
        let source = after.first().filter(|_| words == review).filter(|a| !SOURCES.contains(&a.as_str()));
        let mut meant = match source {
            Some(source) if source.starts_with("--") => of_flag(after, 0, around),
            Some(source) => of_source(source, around),
            None => Vec::new(),
        };
        if meant.is_empty() {
            return vec![line(before, &words, &[], after)];
        }
        meant.iter_mut().for_each(|m| m.used += 1);
        return meant.into_iter().map(|m| line(before, &review, &m.words, m.rest(after))).collect();
    }
    of_source(word, around).into_iter().map(|m| line(before, &review, &m.words, after)).collect()
}

/// Joins a command that can be pasted into a shell.
fn line(global: &[String], command: &[String], source: &[String], rest: &[String]) -> String {
    let words = global.iter().chain(command).chain(source).chain(rest);
    let mut line = "claude-reviewer".to_owned();
    for word in words {
        line.push(' ');
        line.push_str(&quoted(word));
    }
    line
}

/// Quotes a word for a POSIX shell where it needs that.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,@%+^~".contains(c);
    // A tilde is plain behind the first character only.
    if !word.is_empty() && !word.starts_with('~') && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Folder;

    impl Surroundings for Folder {
        fn is_file(&self, path: &Path) -> bool {
            ["src/a.txt", "my file.rs", "fix.patch", "x.diff"].iter().any(|f| Path::new(f) == path)
        }
        fn is_dir(&self, path: &Path) -> bool {
            path == Path::new("src") || path == Path::new("src/")
        }
        fn is_revision(&self, name: &str) -> bool {
            ["HEAD", "HEAD~1", "main", "v1.2"].contains(&name)
        }
    }

    fn meant(args: &[&str], refused: &str) -> Vec<String> {
        let args: Vec<String> = args.iter().map(|a| (*a).to_owned()).collect();
        let lines = commands(&args, refused, &Folder);
        lines.into_iter().map(|l| l.trim_start_matches("claude-reviewer ").to_owned()).collect()
    }

    #[test]
    fn a_flag_for_a_source_becomes_the_source() {
        for (args, refused, expected) in [
            (&["review", "--staged"][..], "--staged", "review staged"),
            (&["review", "--cached", "--format", "json"], "--cached", "review staged --format json"),
            (&["-q", "review", "--offline", "--staged"], "--staged", "-q review staged --offline"),
            (&["--staged"], "--staged", "review staged"),
            (&["review", "--base", "main"], "--base", "review branch --base main"),
            (&["review", "--base=main", "--gate"], "--base", "review branch --base main --gate"),
            (&["review", "--base"], "--base", "review branch"),
            (&["review", "--against", "main"], "--against", "review branch --base main"),
            (&["review", "--commit", "HEAD~1"], "--commit", "review commit HEAD~1"),
            (&["review", "--range", "a...b"], "--range", "review branch b --base a"),
            (&["review", "--pr", "7"], "--pr", "review pr 7"),
            (&["review", "--untracked"], "--untracked", "review unstaged --untracked"),
            (&["review", "--diff", "x.diff"], "--diff", "review patch x.diff"),
        ] {
            assert_eq!(meant(args, refused), [expected], "{args:?}");
        }
        assert!(meant(&["review", "--commit"], "--commit").is_empty());
        // In another subcommand, and with a source, the flag is a mistake of another kind.
        assert!(meant(&["policy", "show", "--base", "main"], "--base").is_empty());
        assert!(meant(&["rules", "check"], "check").is_empty());
        assert!(meant(&["review", "staged", "--base", "main"], "--base").is_empty());
        assert!(meant(&["review", "--formt", "json"], "--formt").is_empty());
    }

    #[test]
    fn a_word_for_a_source_becomes_the_source() {
        for (args, expected) in [
            (
                &["review", "main..feature"][..],
                &["review commit main..feature", "review branch feature --base main"][..],
            ),
            (&["review", "main...feature"], &["review branch feature --base main"]),
            (&["review", "main..."], &["review branch --base main"]),
            (&["review", "v1.2..HEAD"], &["review commit v1.2..HEAD", "review branch --base v1.2"]),
            (&["review", "src/a.txt"], &["review code src/a.txt"]),
            (&["review", "my file.rs"], &["review code 'my file.rs'"]),
            (&["review", "src/"], &["review changes --files 'src/**'"]),
            (&["review", "fix.patch"], &["review patch fix.patch"]),
            (&["review", "-"], &["review patch -"]),
            (&["review", "HEAD~1", "--depth", "quick"], &["review commit HEAD~1 --depth quick"]),
            (&["review", "main"], &["review commit main"]),
            (&["review", "cached"], &["review staged"]),
            (&["review", "#12"], &["review pr 12"]),
            (&["review", "https://git.example/x/pull/3"], &["review pr https://git.example/x/pull/3"]),
        ] {
            assert_eq!(meant(args, args[1]), expected, "{args:?}");
        }
        assert!(meant(&["review", "stagd"], "stagd").is_empty());
        assert!(meant(&["review", "staged", "main"], "main").is_empty());
    }

    #[test]
    fn a_command_of_another_program_becomes_ours() {
        for (args, expected) in [
            (&["staged"][..], "review staged"),
            (&["-C", "dir", "staged", "-v"], "-C dir review staged -v"),
            (&["commit", "HEAD"], "review commit HEAD"),
            (&["check"], "review"),
            (&["check", "--staged"], "review staged"),
            (&["scan", "src/a.txt"], "review code src/a.txt"),
            (&["lint", "--format", "json"], "review --format json"),
            (&["diff", "main...feature"], "review branch feature --base main"),
            (&["run", "staged"], "review staged"),
            (&["install"], "install-hooks"),
            (&["mcp"], "serve-mcp"),
            (&["explain", "todo-comment"], "rules explain todo-comment"),
            (&["src/a.txt"], "review code src/a.txt"),
        ] {
            let refused = args.iter().find(|a| !a.starts_with('-') && **a != "dir").unwrap();
            assert_eq!(meant(args, refused), [expected], "{args:?}");
        }
        assert!(meant(&["reviw"], "reviw").is_empty());
    }

    #[test]
    fn words_are_quoted_for_a_shell() {
        for (word, expected) in
            [("a b", "'a b'"), ("it's", "'it'\\''s'"), ("", "''"), ("$(x)", "'$(x)'"), ("~x", "'~x'")]
        {
            assert_eq!(quoted(word), expected);
        }
        assert_eq!(quoted("HEAD~2"), "HEAD~2");
    }
}
