//! Git hooks: selection of the hook, its input from git, and its installation and removal.
//!
//! The hook file in the repository is a shim of a few lines ([`shim`]); all other logic is in the
//! binary. This module does not review: `review --hook` builds a request from the results of this
//! module.

pub mod install;
pub mod shim;

use crate::env::Env;
use crate::error::{Error, Result};
pub use crate::request::Hook;
use crate::request::PushRange;
use std::str::FromStr;

/// The variable that skips the review of a commit or a push.
pub const SKIP: &str = "CLAUDE_REVIEWER_SKIP";

/// The argument of `review --hook`: a git hook, or `auto` to detect the one that a hook manager
/// runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    Is(Hook),
    /// pre-commit and prek run one entry for all stages and distinguish them by variables.
    Auto,
}

impl Stage {
    /// Determines the hook. With `Auto`, a range of commits or a remote in the variables of
    /// pre-commit means a push.
    pub fn hook(self, env: &Env) -> Hook {
        match self {
            Self::Is(hook) => hook,
            Self::Auto if framework_range(env).is_some() => Hook::PrePush,
            Self::Auto => Hook::PreCommit,
        }
    }
}

impl FromStr for Stage {
    type Err = String;

    fn from_str(s: &str) -> std::result::Result<Self, String> {
        match s {
            "pre-commit" => Ok(Self::Is(Hook::PreCommit)),
            "pre-push" => Ok(Self::Is(Hook::PrePush)),
            "post-commit" => Ok(Self::Is(Hook::PostCommit)),
            "auto" => Ok(Self::Auto),
            _ => Err("a hook is pre-commit, pre-push, post-commit or auto".to_owned()),
        }
    }
}

/// Returns true if the user skips the review of this commit or push. `0` and `false` do not.
pub fn skipped(env: &Env) -> bool {
    env.os(SKIP).is_some_and(|v| v != "0" && v != "false")
}

/// Returns the references that are pushed, deletions included.
///
/// `args` are the arguments of the hook: name and address of the remote. `stdin` is git's input of
/// a pre-push hook, one line for each reference: `<local ref> <local id> <remote ref> <remote id>`
/// (githooks(5)). If it is empty, the variables of pre-commit are used: `PRE_COMMIT_FROM_REF` and
/// `PRE_COMMIT_TO_REF`, or only `PRE_COMMIT_LOCAL_BRANCH` if the whole history is pushed; these may
/// be names instead of IDs. Without either, nothing is pushed and the list is empty.
///
/// # Errors
/// A line that is not in git's format.
pub fn push_ranges(stdin: &[u8], args: &[String], env: &Env) -> Result<Vec<PushRange>> {
    let to = args.first().filter(|a| !a.is_empty());
    let mut ranges = Vec::new();
    for (i, line) in stdin.split(|&b| b == b'\n').enumerate() {
        let line = line.trim_ascii();
        if !line.is_empty() {
            ranges.push(push_line(line, to).ok_or_else(|| {
                Error::usage(format!(
                    "line {} of the pre-push input is not `ref id ref id`",
                    i + 1
                ))
                .hint("let git run the hook, or pass its input on unchanged")
            })?);
        }
    }
    if ranges.is_empty() {
        ranges.extend(framework_range(env));
    }
    Ok(ranges)
}

/// Parses a line from its end, because the local side may be an expression with spaces.
fn push_line(line: &[u8], to: Option<&String>) -> Option<PushRange> {
    let mut words = line.rsplitn(4, |&b| b == b' ');
    let (remote, name, local) = (words.next()?, words.next()?, words.next()?);
    words.next().filter(|w| !w.is_empty())?;
    if name.is_empty() || local.len() != remote.len() {
        return None;
    }
    Some(PushRange {
        local: object_id(local)?,
        remote: object_id(remote)?,
        name: lossy(name),
        to: to.cloned(),
    })
}

fn object_id(word: &[u8]) -> Option<String> {
    let right = matches!(word.len(), 40 | 64) && word.iter().all(u8::is_ascii_hexdigit);
    right.then(|| lossy(word).to_ascii_lowercase())
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Returns the range in the variables of pre-commit or prek.
fn framework_range(env: &Env) -> Option<PushRange> {
    let name = env
        .var("PRE_COMMIT_REMOTE_BRANCH")
        .or_else(|| env.var("PRE_COMMIT_TO_REF"))
        .unwrap_or("HEAD");
    let (local, remote) = match (env.var("PRE_COMMIT_FROM_REF"), env.var("PRE_COMMIT_TO_REF")) {
        (Some(from), Some(to)) => (to.to_owned(), from.to_owned()),
        // The first push of a history, which has no start. Zeros of any length stand for it.
        _ => (
            env.var("PRE_COMMIT_LOCAL_BRANCH")?.to_owned(),
            "0".repeat(40),
        ),
    };
    let to = env.var("PRE_COMMIT_REMOTE_NAME").map(str::to_owned);
    Some(PushRange {
        local,
        remote,
        name: name.to_owned(),
        to,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    fn env(pairs: &[(&str, &str)]) -> Env {
        Env::from_pairs(PathBuf::from("/"), pairs.iter().copied())
    }

    fn id(c: char) -> String {
        std::iter::repeat_n(c, 40).collect()
    }

    fn range(local: &str, remote: &str, name: &str) -> PushRange {
        PushRange {
            local: local.to_owned(),
            remote: remote.to_owned(),
            name: name.to_owned(),
            to: None,
        }
    }

    #[test]
    fn hok_06_reads_every_line_that_git_writes() {
        let (a, b, zero) = (id('a'), id('b'), id('0'));
        let stdin = format!(
            "refs/heads/main {a} refs/heads/main {b}\n\
             refs/heads/new {a} refs/heads/new {zero}\n\
             (delete) {zero} refs/heads/gone {b}\n\
             :/fix the bug {a} refs/tags/v1 {zero}\r\n\n"
        );
        assert_eq!(
            push_ranges(stdin.as_bytes(), &[], &env(&[])).unwrap(),
            [
                range(&a, &b, "refs/heads/main"),
                range(&a, &zero, "refs/heads/new"),
                range(&zero, &b, "refs/heads/gone"),
                range(&a, &zero, "refs/tags/v1"),
            ]
        );
    }

    #[test]
    fn hok_06_reads_sha256_ids_and_names_that_are_not_text() {
        let (a, b) = ("A".repeat(64), "0".repeat(64));
        let stdin = [b"x ", a.as_bytes(), b" refs/heads/\xff ", b.as_bytes()].concat();
        let got = push_ranges(&stdin, &[], &env(&[])).unwrap();
        assert_eq!(got, [range(&a.to_lowercase(), &b, "refs/heads/\u{fffd}")]);
    }

    #[test]
    fn hok_06_refuses_a_line_that_git_never_writes() {
        let (a, b) = (id('a'), id('b'));
        for line in [
            "hello".to_owned(),
            format!("{a} refs/heads/x {b}"),
            format!("refs/heads/x {a} refs/heads/x"),
            format!("refs/heads/x {a} refs/heads/x {b}0"),
            format!("refs/heads/x --output=/tmp/x refs/heads/x {b}"),
            format!("refs/heads/x {a} refs/heads/x {}", "b".repeat(64)),
            format!("refs/heads/x {a}  {b}"),
        ] {
            let error = push_ranges(format!("\n{line}\n").as_bytes(), &[], &env(&[])).unwrap_err();
            assert!(
                error.message.contains("line 2 of the pre-push input"),
                "{line}: {error}"
            );
        }
    }

    #[test]
    fn hok_06_takes_the_variables_of_pre_commit_only_without_input() {
        let vars = env(&[
            ("PRE_COMMIT_FROM_REF", "origin/main"),
            ("PRE_COMMIT_TO_REF", "HEAD"),
        ]);
        assert_eq!(
            push_ranges(b"", &[], &vars).unwrap(),
            [range("HEAD", "origin/main", "HEAD")]
        );
        let (a, b) = (id('a'), id('b'));
        let line = format!("r {a} refs/heads/r {b}\n");
        assert_eq!(
            push_ranges(line.as_bytes(), &[], &vars).unwrap(),
            [range(&a, &b, "refs/heads/r")]
        );
    }

    #[test]
    fn hok_06_a_first_push_through_pre_commit_starts_from_nothing() {
        let vars = env(&[
            ("PRE_COMMIT_LOCAL_BRANCH", "refs/heads/main"),
            ("PRE_COMMIT_REMOTE_BRANCH", "refs/heads/trunk"),
        ]);
        assert_eq!(
            push_ranges(b"", &[], &vars).unwrap(),
            [range("refs/heads/main", &id('0'), "refs/heads/trunk")]
        );
    }

    #[test]
    fn hok_06_the_remote_is_known_from_the_arguments_or_the_variables() {
        let args = ["backup".to_owned(), "ssh://backup/x".to_owned()];
        let line = format!("r {} r {}\n", id('a'), id('0'));
        assert_eq!(
            push_ranges(line.as_bytes(), &args, &env(&[])).unwrap()[0]
                .to
                .as_deref(),
            Some("backup")
        );
        let vars = env(&[
            ("PRE_COMMIT_LOCAL_BRANCH", "r"),
            ("PRE_COMMIT_REMOTE_NAME", "origin"),
        ]);
        assert_eq!(
            push_ranges(b"", &[], &vars).unwrap()[0].to.as_deref(),
            Some("origin")
        );
    }

    #[test]
    fn nothing_pushed_is_an_empty_list() {
        assert_eq!(
            push_ranges(b"", &[], &env(&[("PRE_COMMIT", "1")])).unwrap(),
            []
        );
    }

    #[test]
    fn auto_is_a_push_when_pre_commit_gives_a_range() {
        assert_eq!(
            Stage::Auto.hook(&env(&[("PRE_COMMIT", "1")])),
            Hook::PreCommit
        );
        let range = [("PRE_COMMIT_FROM_REF", "a"), ("PRE_COMMIT_TO_REF", "b")];
        assert_eq!(Stage::Auto.hook(&env(&range)), Hook::PrePush);
        assert_eq!(
            Stage::Is(Hook::PreCommit).hook(&env(&range)),
            Hook::PreCommit
        );
    }

    #[test]
    fn only_a_set_variable_skips() {
        for (value, expected) in [
            ("1", true),
            ("yes", true),
            ("0", false),
            ("false", false),
            ("", false),
        ] {
            assert_eq!(skipped(&env(&[(SKIP, value)])), expected, "{value:?}");
        }
        assert!(!skipped(&env(&[])));
    }
}
