//! GitHub workflows that an untrusted author can control.
//!
//! Reads the whole new file by lines and indentation, but only the parts of a workflow that rules
//! need: triggers, and the keys of each step. A finding is reported only if an added line is part
//! of its cause.
//!
//! GitHub's documentation lists the values that untrusted authors control:
//! <https://docs.github.com/en/actions/concepts/security/script-injections>.

mod action;
mod command;
mod expression;
mod head;

use super::at_line;
use crate::diff::{LineNo, RepoPath, TextChange, trim_line_end};
use crate::rules::MARK;
use crate::rules::pins::is_workflow;
use crate::rules::report::Reporter;
use command::{ScriptCommand, bare_words, git_call, revision_of_file, split_commands, takes_in};
use expression::{expressions, untrusted};
use head::{Fetched, FetchedHeads, Head, HeadCheckout, TAKES_HEAD, local_name, refuses_forks};
use std::collections::HashSet;
use std::ops::Range;

/// Triggers that run with the base repository's rights on actions of untrusted users.
const PRIVILEGED: &[&str] = &[
    "pull_request_target",
    "workflow_run",
    "issue_comment",
    "issues",
    "discussion",
    "discussion_comment",
    "fork",
    "watch",
    "gollum",
    "pull_request_comment",
];
/// Checks a workflow or an action.
pub(super) fn scan(path: &RepoPath, text: &TextChange, out: &mut Reporter<'_>) {
    if !is_workflow(path.as_bytes()) {
        return;
    }
    let Some(whole) = text.new.whole() else {
        return;
    };
    let fresh: HashSet<u32> = super::added(text).map(|l| l.number.get()).collect();
    let file = Workflow::read(whole, &fresh);
    file.permissions(path, out);
    file.checkouts(path, out);
    for step in file.steps() {
        file.scripts(path, &step, out);
    }
    file.actions(path, out);
}

/// A line of YAML.
#[derive(Clone, Copy, Debug)]
struct YamlLine<'a> {
    number: LineNo,
    /// Columns before the first character, including a leading `- `.
    indent: usize,
    /// True if a `- ` starts here.
    item: bool,
    /// Key of `key: value`. Empty for other lines.
    key: &'a str,
    value: &'a str,
    text: &'a str,
    /// True if the change adds the line.
    fresh: bool,
    /// True if the line is part of a block scalar (`|`, `>`), so that it has no structure.
    scalar: bool,
}

/// A workflow, line by line.
#[derive(Debug)]
struct Workflow<'a> {
    lines: Vec<YamlLine<'a>>,
    triggers: Vec<WorkflowTrigger<'a>>,
}

/// An event that starts a workflow.
#[derive(Clone, Copy, Debug)]
struct WorkflowTrigger<'a> {
    name: &'a str,
    /// The line that names it.
    line: YamlLine<'a>,
}

impl<'a> Workflow<'a> {
    fn read(whole: &'a [u8], fresh: &HashSet<u32>) -> Self {
        let mut lines = Vec::new();
        // Indentation of the key that opened a block scalar.
        let mut scalar: Option<usize> = None;
        for (bytes, n) in whole.split_inclusive(|b| *b == b'\n').zip(1u32..) {
            let Some(number) = LineNo::new(n) else {
                continue;
            };
            let bytes = if n == 1 {
                bytes.strip_prefix(MARK).unwrap_or(bytes)
            } else {
                bytes
            };
            let text = std::str::from_utf8(trim_line_end(bytes)).unwrap_or_default();
            let spaces = text.len() - text.trim_start_matches(' ').len();
            let blank = text.trim().is_empty();
            let in_scalar = scalar.is_some_and(|open| blank || spaces > open);
            if !in_scalar {
                scalar = None;
            }
            if blank || (!in_scalar && text.trim_start().starts_with('#')) {
                continue;
            }
            let mut line = YamlLine {
                number,
                indent: spaces,
                item: false,
                key: "",
                value: "",
                text,
                fresh: fresh.contains(&n),
                scalar: in_scalar,
            };
            if !in_scalar {
                let mut rest = &text[spaces..];
                while let Some(after) = rest.strip_prefix("- ") {
                    line.item = true;
                    let cut = after.trim_start_matches(' ');
                    line.indent += rest.len() - cut.len();
                    rest = cut;
                }
                if let Some((key, value)) = split_key(rest) {
                    line.key = key;
                    line.value = value;
                    if value.starts_with(['|', '>']) {
                        scalar = Some(line.indent);
                    }
                }
            }
            lines.push(line);
        }
        // Only these triggers are searched, once for each script, because a list of a million other
        // triggers must not be searched each time.
        let mut triggers = triggers(&lines);
        let mut seen = HashSet::new();
        triggers.retain(|t| PRIVILEGED.contains(&t.name) && seen.insert((t.name, t.line.fresh)));
        Self { lines, triggers }
    }

    /// Returns the triggers of a list that the workflow has.
    fn has_trigger(&self, of: &[&str]) -> bool {
        self.triggers.iter().any(|t| of.contains(&t.name))
    }

    /// Returns a trigger that opens a checkout to untrusted code and that the change adds.
    fn added_trigger(&self, checkout: &HeadCheckout) -> Option<&WorkflowTrigger<'a>> {
        self.triggers
            .iter()
            .find(|t| t.line.fresh && checkout.is_open_to(t.name))
    }

    /// Returns the lines of each step: an item of a `steps` list.
    fn steps(&self) -> Vec<Range<usize>> {
        let mut out: Vec<Range<usize>> = Vec::new();
        let mut list: Option<usize> = None;
        let mut current: Option<(usize, usize)> = None;
        for (i, line) in self.lines.iter().enumerate() {
            if line.scalar {
                continue;
            }
            let column = line.text.len() - line.text.trim_start_matches(' ').len();
            if let Some((start, at)) = current
                && (column < at
                    || (column == at && line.item)
                    || (column == at && !line.text[column..].starts_with('-')))
            {
                out.push(start..i);
                current = None;
            }
            if list.is_some_and(|l| column < l) {
                list = None;
            }
            if line.key == "steps" && line.value.is_empty() {
                list = Some(column);
            } else if current.is_none() && line.item && list.is_some_and(|l| column >= l) {
                current = Some((i, column));
            }
        }
        if let Some((start, _)) = current {
            out.push(start..self.lines.len());
        }
        out
    }

    fn permissions(&self, path: &RepoPath, out: &mut Reporter<'_>) {
        for line in self
            .lines
            .iter()
            .filter(|l| l.fresh && l.key == "permissions" && unquote(l.value) == "write-all")
        {
            at_line(
                out,
                "workflow-write-all",
                path,
                line.number,
                line.text.as_bytes(),
                None,
            );
        }
    }

    /// Reports checkouts of the head of a pull request under a trigger with the rights of the base.
    fn checkouts(&self, path: &RepoPath, out: &mut Reporter<'_>) {
        if !self.has_trigger(TAKES_HEAD) {
            return;
        }
        let mut fetched = FetchedHeads::default();
        let mut seen = 0;
        for step in self.steps() {
            // Steps of one job share its folder.
            if self.lines[seen..step.start]
                .iter()
                .any(|l| l.key == "steps" && !l.scalar)
            {
                fetched = FetchedHeads::default();
            }
            seen = step.start;
            let Some(found) = self.checkout(&step, &mut fetched) else {
                continue;
            };
            let Some(trigger) = self.triggers.iter().find(|t| found.is_open_to(t.name)) else {
                continue;
            };
            let lines = &self.lines[found.lines.clone()];
            let fresh = lines.iter().find(|l| l.fresh);
            let added = self.added_trigger(&found);
            if fresh.is_none() && !found.is_caused_elsewhere && added.is_none() {
                continue;
            }
            let Some(checkout) = lines.first() else {
                continue;
            };
            // An unchanged checkout is reported where the change adds the trigger.
            let (line, detail) = match (fresh, added) {
                (None, Some(added)) => (
                    &added.line,
                    format!(
                        "the trigger is `{}`, and line {} checks out the code",
                        added.name, checkout.number
                    ),
                ),
                _ => (
                    fresh.unwrap_or(checkout),
                    format!("the trigger is `{}`", trigger.name),
                ),
            };
            let id = "workflow-pull-request-target-checkout";
            at_line(
                out,
                id,
                path,
                line.number,
                line.text.as_bytes(),
                Some(&detail),
            );
        }
    }

    /// Returns the checkout if a step puts the head of a pull request into the folder of its job.
    /// Records heads that the step only fetches.
    fn checkout(&self, step: &Range<usize>, fetched: &mut FetchedHeads) -> Option<HeadCheckout> {
        let lines = &self.lines[step.clone()];
        let uses = lines
            .iter()
            .find(|l| l.key == "uses" && !l.scalar)
            .map_or("", |l| unquote(l.value));
        if uses.starts_with("actions/checkout@") {
            let consent = lines
                .iter()
                .find(|l| !l.scalar && l.key == "allow-unsafe-pr-checkout");
            let has_consent =
                consent.is_some_and(|l| !unquote(l.value).eq_ignore_ascii_case("false"));
            let refuses_forks = !has_consent && refuses_forks(uses);
            let is_caused_elsewhere = has_consent && consent.is_some_and(|l| l.fresh);
            return lines.iter().zip(step.clone()).find_map(|(l, i)| {
                let named = !l.scalar && matches!(l.key, "ref" | "repository");
                let head = self.counting(named.then(|| Head::named(l.value))??)?;
                Some(HeadCheckout {
                    head,
                    lines: i..i + 1,
                    is_caused_elsewhere,
                    refuses_forks,
                })
            });
        }
        for command in self.commands(step) {
            if command.text.contains("gh pr checkout") {
                return Some(HeadCheckout::by(&command, Head::Number));
            }
            let Some((verb, mut arguments)) = git_call(&command.text) else {
                continue;
            };
            let mut named = command.text.as_str();
            if matches!(verb, "show" | "cat-file") {
                // Only files of the head count.
                let says_no_more = verb == "cat-file"
                    && arguments.iter().any(|a| matches!(*a, "-e" | "-s" | "-t"));
                arguments = arguments
                    .into_iter()
                    .filter_map(revision_of_file)
                    .filter(|_| !says_no_more)
                    .collect();
                named = arguments
                    .iter()
                    .find(|a| Head::named(a).is_some())
                    .copied()
                    .unwrap_or_default();
            }
            let head = Head::named(named).and_then(|head| self.counting(head));
            if takes_in(verb, &arguments) {
                let own = head.map(|head| HeadCheckout::by(&command, head));
                if let Some(found) = own.or_else(|| fetched.checkout(&command, &arguments)) {
                    return Some(found);
                }
            } else if verb == "fetch"
                && let Some(head) = head
            {
                let fresh = self.lines[command.lines.clone()].iter().any(|l| l.fresh);
                let names = arguments
                    .iter()
                    .filter_map(|a| a.rsplit_once(':'))
                    .map(|(_, local)| local);
                for name in
                    std::iter::once("FETCH_HEAD").chain(names.filter(|n| !n.starts_with("//")))
                {
                    fetched.insert(local_name(name), Fetched { head, fresh });
                }
            }
        }
        None
    }

    /// Returns the head if the workflow has a trigger that provides a value for it.
    fn counting(&self, head: Head) -> Option<Head> {
        self.has_trigger(head.triggers()).then_some(head)
    }

    /// Returns the commands of a step's scripts.
    fn commands(&self, step: &Range<usize>) -> Vec<ScriptCommand> {
        let mut out = Vec::new();
        let mut text = String::new();
        let mut first = step.start;
        let shell = self.lines[step.clone()].iter().all(is_shell);
        let (mut inside, mut folded) = (false, false);
        for i in step.clone() {
            let line = &self.lines[i];
            if !line.scalar {
                split_commands(&std::mem::take(&mut text), &(first..i), &mut out);
                inside = matches!(line.key, "run" | "script");
                folded = line.value.starts_with('>');
            }
            let part = match (line.scalar, line.value.starts_with(['|', '>'])) {
                (true, _) => line.text.trim(),
                (false, false) => unquote(line.value),
                (false, true) => continue,
            };
            if !inside || part.starts_with('#') || (!shell && part.starts_with("//")) {
                continue;
            }
            if text.is_empty() {
                first = i;
            }
            let goes_on = part.strip_suffix('\\');
            text.push_str(goes_on.unwrap_or(part));
            text.push(' ');
            if goes_on.is_none() && !folded {
                split_commands(&std::mem::take(&mut text), &(first..i + 1), &mut out);
            }
        }
        split_commands(&text, &(first..step.end), &mut out);
        if !shell {
            for command in &mut out {
                command.text = bare_words(&command.text);
            }
        }
        out
    }

    /// Reports expressions with untrusted text inside a script.
    fn scripts(&self, path: &RepoPath, step: &Range<usize>, out: &mut Reporter<'_>) {
        let lines = &self.lines[step.clone()];
        let github_script = lines
            .iter()
            .any(|l| l.key == "uses" && unquote(l.value).starts_with("actions/github-script@"));
        let mut inside = false;
        for line in lines {
            if !line.scalar {
                inside = line.key == "run" || (github_script && line.key == "script");
            }
            if !inside || !line.fresh {
                continue;
            }
            let text = if line.scalar { line.text } else { line.value };
            if line.scalar && text.trim_start().starts_with('#') && !github_script {
                // An expression in a comment of the shell counts, because a line break in its value
                // ends the comment.
            }
            for expression in expressions(text) {
                let Some(context) = untrusted(expression) else {
                    continue;
                };
                let context = context.as_str();
                let id = match self.has_trigger(PRIVILEGED) {
                    true => "workflow-script-injection",
                    false => "workflow-untrusted-input",
                };
                at_line(
                    out,
                    id,
                    path,
                    line.number,
                    line.text.as_bytes(),
                    Some(&format!("`{context}`")),
                );
                break;
            }
        }
    }
}

/// Splits `key: value`; `None` for anything else.
fn split_key(text: &str) -> Option<(&str, &str)> {
    let (key, value) = match text.split_once(": ") {
        Some((k, v)) => (k, v),
        None => (text.trim_end().strip_suffix(':')?, ""),
    };
    let key = unquote(key.trim());
    let plain = !key.is_empty()
        && key
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.'));
    plain.then_some((key, value.trim()))
}

fn unquote(text: &str) -> &str {
    let text = text.trim();
    between(text, '"')
        .or_else(|| between(text, '\''))
        .unwrap_or(text)
}

/// Returns the text between two quotes that start and end it.
fn between(text: &str, quote: char) -> Option<&str> {
    text.strip_prefix(quote).and_then(|t| t.strip_suffix(quote))
}

/// Returns the triggers under `on`.
fn triggers<'a>(lines: &[YamlLine<'a>]) -> Vec<WorkflowTrigger<'a>> {
    let Some(at) = lines
        .iter()
        .position(|l| l.indent == 0 && !l.scalar && matches!(l.key, "on" | "true"))
    else {
        return Vec::new();
    };
    let on = lines[at];
    if !on.value.is_empty() && !on.value.starts_with('#') {
        let list = on.value.split(" #").next().unwrap_or(on.value);
        let names = list
            .split(['[', ']', '{', '}', ',', ' '])
            .map(|t| unquote(t.trim_end_matches(':')));
        return names
            .filter(|t| !t.is_empty())
            .map(|name| WorkflowTrigger { name, line: on })
            .collect();
    }
    let below = lines[at + 1..]
        .iter()
        .take_while(|l| l.scalar || l.indent > 0 || l.item);
    let Some(first) = below.clone().next() else {
        return Vec::new();
    };
    let column = first.indent;
    below
        .filter(|l| !l.scalar && l.indent == column)
        .map(|l| {
            let name = match l.key {
                "" => unquote(l.text.trim().trim_start_matches("- ").trim_end_matches(':')),
                key => key,
            };
            WorkflowTrigger { name, line: *l }
        })
        .collect()
}

/// Returns true if a shell runs the scripts of a step with this line, so that a command starts with
/// its name.
fn is_shell(line: &YamlLine<'_>) -> bool {
    const OTHERS: &[&str] = &["python", "python3", "node", "perl", "ruby", "deno", "bun"];
    let value = unquote(line.value);
    match line.key {
        "uses" => !value.contains("/github-script@"),
        "shell" => !value
            .split_whitespace()
            .next()
            .is_some_and(|name| OTHERS.contains(&name)),
        _ => true,
    }
}
