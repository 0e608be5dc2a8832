//! The commands of a script, and the calls of git among them.

use std::ops::Range;

/// A command of a script, and its lines.
#[derive(Debug)]
pub(super) struct ScriptCommand {
    /// Text without blanks inside of expressions, so that each expression is part of one word.
    pub(super) text: String,
    pub(super) lines: Range<usize>,
}

/// Splits a line of a shell at `;`, `|` and `&`, outside of expressions `${{ … }}`.
pub(super) fn split_commands(text: &str, lines: &Range<usize>, out: &mut Vec<ScriptCommand>) {
    let mut rest = text;
    let mut command = String::new();
    let mut inside = false;
    while let Some(c) = rest.chars().next() {
        let opens = !inside && rest.starts_with("${{");
        let closes = inside && rest.starts_with("}}");
        inside = (inside || opens) && !closes;
        match c {
            ';' | '|' | '&' if !inside => end_command(&mut command, lines, out),
            c if inside && c.is_whitespace() => {}
            c => command.push(c),
        }
        rest = &rest[c.len_utf8()..];
    }
    end_command(&mut command, lines, out);
}

/// Appends a command that has text, and clears it.
fn end_command(command: &mut String, lines: &Range<usize>, out: &mut Vec<ScriptCommand>) {
    if !command.trim().is_empty() {
        out.push(ScriptCommand {
            text: std::mem::take(command),
            lines: lines.clone(),
        });
    }
    command.clear();
}

/// Returns the verb of a call of git and its arguments.
pub(super) fn git_call(command: &str) -> Option<(&str, Vec<&str>)> {
    let mut words = command.split_whitespace();
    words.find(|w| w.trim_start_matches(['$', '(', '"', '\'', '`', '!']) == "git")?;
    let verb = loop {
        match words.next()? {
            "-C" | "-c" | "--git-dir" | "--work-tree" => drop(words.next()),
            option if option.starts_with('-') => {}
            verb => break verb,
        }
    };
    Some((verb, words.collect()))
}

/// Returns the words of a line of a program, including the words of its strings and calls:
/// ``exec(`git checkout x`)`` and `exec('git', ['checkout', 'x'])` become `exec git checkout x`.
pub(super) fn bare_words(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    let mut inside = false;
    while let Some(c) = rest.chars().next() {
        inside = (inside || rest.starts_with("${{")) && !rest.starts_with("}}");
        let parts = !inside && (c.is_whitespace() || "`'\"()[],".contains(c));
        match parts {
            true if out.ends_with(' ') => {}
            true => out.push(' '),
            false => out.push(c),
        }
        rest = &rest[c.len_utf8()..];
    }
    out
}

/// Returns the revision of an argument of the form `REV:path`, which names a file.
pub(super) fn revision_of_file(argument: &str) -> Option<&str> {
    let mut depth = 0usize;
    let colon = argument.find(|c| {
        match c {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ':' && depth == 0
    })?;
    let (revision, path) = (
        &argument[..colon],
        argument[colon + 1..].trim_matches(['"', '\'', ')', '`']),
    );
    (!revision.starts_with('-') && !path.is_empty()).then_some(revision)
}

/// Returns true if a call of git copies files of the state that it names into its folder, its index
/// or its output.
pub(super) fn takes_in(verb: &str, arguments: &[&str]) -> bool {
    match verb {
        "checkout" | "switch" | "merge" | "pull" | "rebase" | "cherry-pick" | "restore"
        | "clone" => true,
        "archive" | "read-tree" | "checkout-index" | "show" | "cat-file" => true,
        "reset" => arguments
            .iter()
            .any(|a| matches!(*a, "--hard" | "--merge" | "--keep")),
        "worktree" => arguments.contains(&"add"),
        _ => false,
    }
}
