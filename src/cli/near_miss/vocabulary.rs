//! Words and flags that users write, and what they mean here.

use super::grammar::Values;

/// The sources of `review`, which users also write as top-level commands.
pub(super) const SOURCES: &[&str] = &[
    "staged", "unstaged", "commit", "branch", "changes", "patch", "code", "tree",
];

/// Subcommands that take other arguments than a review.
pub(super) const SUBCOMMANDS: &[&str] = &[
    "pr",
    "verify-receipt",
    "init",
    "install-hooks",
    "policy",
    "doctor",
    "rules",
    "history",
    "complete",
    "report",
    "serve-mcp",
    "completions",
    "man",
    "help",
];

/// Commands of similar programs, and the equivalent command here.
pub(super) const COMMANDS: &[(&str, &[&str])] = &[
    ("check", &["review"]),
    ("scan", &["review"]),
    ("diff", &["review"]),
    ("lint", &["review"]),
    ("run", &["review"]),
    ("audit", &["review"]),
    ("gate", &["review"]),
    ("merge", &["report", "merge"]),
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
pub(super) enum Meaning {
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
pub(super) const FLAGS: &[(&str, Meaning)] = &[
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
pub(super) const OF_SUBCOMMANDS: &[(&str, &str, &[&str])] = &[
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
pub(super) const WORDS: &[(&str, &str)] = &[
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

pub(super) fn meaning(flag: &str) -> Option<Meaning> {
    FLAGS
        .iter()
        .find(|(name, _)| *name == flag)
        .map(|(_, meaning)| *meaning)
}

/// Returns the number of arguments that belong to a flag that no command has.
pub(super) fn foreign(flag: &str) -> Values {
    match meaning(flag) {
        Some(Meaning::Argument(_) | Meaning::Base) => Values::One,
        Some(Meaning::Source(_) | Meaning::Untracked) | None => Values::None,
    }
}

pub(super) fn is_source(word: &str) -> bool {
    SOURCES.contains(&word) || word == "pr"
}
