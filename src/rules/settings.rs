//! Settings of Terraform resources whose default is insecure, or whose value is.
//!
//! `src/rules/knowledge/terraform` lists them by type of resource. A setting that a resource lacks
//! is reported on the line that opens the resource, or on the line that sets it to `null`. A wrong
//! value is reported on its own line. An expression can have any value, so it is silent, and so are
//! blocks that an expression makes (`dynamic`) and calls of modules.

mod hcl;

use super::report::{Reporter, Sighting};
use super::role::{self, FileRole};
use crate::diff::{FileChange, LineNo, LineRange, RepoPath, TextChange};
use crate::finding::LineSpan;
use hcl::{Block, Part};
use std::collections::HashSet;

/// An entry of the tables.
#[derive(Debug)]
struct Expected {
    rule: &'static str,
    /// Names of blocks, and of the setting or block in them.
    path: &'static [&'static str],
    /// Literals that are right. If there are none, each is right that is not in `bad`.
    good: &'static [&'static str],
    /// Literals that are wrong.
    bad: &'static [&'static str],
    /// True if each literal and each block is wrong.
    is_forbidden: bool,
    /// True if a resource without it is reported.
    is_required: bool,
    /// All of these must hold for the resource.
    when: &'static [ResourceCondition],
    /// None of these may hold for the resource.
    unless: &'static [ResourceCondition],
    /// No resource of these types may be in the file, because it has the setting.
    unless_file: &'static [&'static str],
    cwe: u32,
    message: &'static str,
    suggestion: &'static str,
}

/// A condition on a resource.
#[derive(Debug)]
struct ResourceCondition {
    path: &'static [&'static str],
    /// A literal; `None`: the path exists.
    value: Option<&'static str>,
}

include!(concat!(env!("OUT_DIR"), "/settings.rs"));

#[cfg(test)]
thread_local! {
    /// How many parts of blocks this thread compared with a path.
    static PARTS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// A value or a block at a path of a resource.
#[derive(Debug, PartialEq, Eq)]
enum SettingOccurrence<'t> {
    /// A literal on a line.
    Literal(&'t str, u32),
    /// A block on a line.
    Block(u32),
    /// An expression, or a block that an expression makes.
    Unknown,
}

/// Settings of one kind that a resource lacks.
struct Lack {
    rule: &'static str,
    cwe: u32,
    line: u32,
    messages: Vec<&'static str>,
    suggestions: Vec<&'static str>,
}

/// Reports the resources of a Terraform file that the change adds.
pub(super) fn scan(file: &FileChange, out: &mut Reporter<'_>) {
    let path = file.path();
    let role = role::of(path.as_bytes());
    if !is_terraform(path) || role == FileRole::Test {
        return;
    }
    let Some(text) = file.text() else { return };
    let Some(whole) = text.new.whole().map(String::from_utf8_lossy) else {
        return;
    };
    let blocks = hcl::blocks(&whole);
    let types: HashSet<&str> = blocks.iter().filter_map(resource_type).collect();
    let sink = &mut FoundSettings {
        path,
        text,
        added: text
            .hunks
            .iter()
            .flat_map(|hunk| &hunk.edits)
            .map(|edit| &edit.new)
            .collect(),
        in_doubt: role == FileRole::Doubt,
        out,
    };
    for block in &blocks {
        if let Some(of_type) = resource_type(block).and_then(expected_of) {
            resource(block, of_type, &types, sink);
        }
    }
}

fn is_terraform(path: &RepoPath) -> bool {
    let path = path.as_bytes();
    path.ends_with(b".tf") || path.ends_with(b".tofu")
}

/// Returns the type of a resource.
fn resource_type<'t>(block: &Block<'t>) -> Option<&'t str> {
    let is_resource = block.name == "resource" && block.labels.len() == 2;
    is_resource.then(|| block.labels[0])
}

/// Returns the entries for a type of resource, by their indexes.
fn expected_of(name: &str) -> Option<&'static [u16]> {
    let at = BY_TYPE.binary_search_by(|entry| entry.0.cmp(name)).ok()?;
    Some(BY_TYPE[at].1)
}

/// Reports what a resource lacks, and its wrong values.
fn resource(
    block: &Block<'_>,
    of_type: &[u16],
    types: &HashSet<&str>,
    sink: &mut FoundSettings<'_, '_>,
) {
    let mut lacks: Vec<Lack> = Vec::new();
    for expected in of_type.iter().map(|i| &EXPECTED[usize::from(*i)]) {
        if expected.unless_file.iter().any(|t| types.contains(t)) {
            continue;
        }
        for line in expected.wrong_lines(block) {
            sink.report(
                (expected.rule, expected.cwe),
                line,
                (expected.message, expected.suggestion),
            );
        }
        if expected.is_lacking(block) {
            let line = expected.line_of_lack(block, sink);
            add_lack(&mut lacks, expected, line);
        }
    }
    for lack in lacks {
        let (message, suggestion) = (lack.messages.join(" "), lack.suggestions.join(" "));
        sink.report((lack.rule, lack.cwe), lack.line, (&message, &suggestion));
    }
}

/// Adds a setting to the others of its kind, so that a line has one finding a kind.
fn add_lack(lacks: &mut Vec<Lack>, expected: &Expected, line: u32) {
    let key = (expected.rule, expected.cwe, line);
    let same = lacks
        .iter_mut()
        .find(|lack| (lack.rule, lack.cwe, lack.line) == key);
    match same {
        Some(lack) => {
            lack.messages.push(expected.message);
            lack.suggestions.push(expected.suggestion);
        }
        None => lacks.push(Lack {
            rule: expected.rule,
            cwe: expected.cwe,
            line,
            messages: vec![expected.message],
            suggestions: vec![expected.suggestion],
        }),
    }
}

impl Expected {
    /// Returns the names of the blocks around the setting, and its own name.
    fn split(&self) -> (&'static [&'static str], &'static [&'static str]) {
        self.path.split_at(self.path.len().saturating_sub(1))
    }

    /// Returns the lines of wrong values in a resource.
    fn wrong_lines(&self, resource: &Block<'_>) -> Vec<u32> {
        let (around, name) = self.split();
        let mut out = Vec::new();
        // A resource can have many owners, so each condition is evaluated once on the resource, or
        // once on each owner.
        if !self.applies(resource, ResourceCondition::in_resource) {
            return out;
        }
        for owner in blocks_at(resource, around) {
            if self.applies(owner, ResourceCondition::in_owner) {
                let found = occurrences(owner, name);
                out.extend(found.iter().filter_map(|found| self.wrong_line(found)));
            }
        }
        // A line has one finding, even if several of its values are wrong.
        out.dedup();
        out
    }

    fn wrong_line(&self, found: &SettingOccurrence<'_>) -> Option<u32> {
        match found {
            SettingOccurrence::Literal(value, line) => self.is_wrong(value).then_some(*line),
            SettingOccurrence::Block(line) => self.is_forbidden.then_some(*line),
            SettingOccurrence::Unknown => None,
        }
    }

    fn is_wrong(&self, value: &str) -> bool {
        let is_in = |list: &[&str]| list.iter().any(|known| is_like(value, known));
        self.is_forbidden || is_in(self.bad) || (!self.good.is_empty() && !is_in(self.good))
    }

    /// Returns true if a resource lacks the setting.
    fn is_lacking(&self, resource: &Block<'_>) -> bool {
        self.is_required
            && resource.is_complete
            && self.applies(resource, |c, _| Some(c.path))
            && occurrences(resource, self.path).is_empty()
    }

    /// Returns the line to report if a resource lacks the setting: the one that opens the resource,
    /// or the one that sets it to `null`, if the change adds only that.
    fn line_of_lack(&self, resource: &Block<'_>, sink: &FoundSettings<'_, '_>) -> u32 {
        let is_added = |line: &u32| LineNo::new(*line).is_some_and(|line| sink.is_added(line));
        if is_added(&resource.line) {
            return resource.line;
        }
        let nulls = all_occurrences(resource, self.path);
        let mut lines = nulls.iter().filter_map(SettingOccurrence::line_of_null);
        lines.find(is_added).unwrap_or(resource.line)
    }

    /// Returns true if the conditions hold for which `path_in` returns a path in `block`.
    fn applies(&self, block: &Block<'_>, path_in: ConditionPath) -> bool {
        let (around, _) = self.split();
        let holds = |c: &ResourceCondition| path_in(c, around).is_none_or(|p| c.holds(block, p));
        let may_hold =
            |c: &ResourceCondition| path_in(c, around).is_some_and(|p| c.may_hold(block, p));
        self.when.iter().all(holds) && !self.unless.iter().any(may_hold)
    }
}

/// Returns the path of a condition in a block, if the condition is about that block. The second
/// argument has the names of the blocks around the setting.
type ConditionPath = fn(&ResourceCondition, &[&'static str]) -> Option<&'static [&'static str]>;

impl ResourceCondition {
    /// Returns the path in the owner of the setting, if the condition is about a setting of that owner:
    /// a resource can have several blocks with one name.
    fn in_owner(&self, around: &[&'static str]) -> Option<&'static [&'static str]> {
        let rest = self.path.strip_prefix(around)?;
        (!rest.is_empty()).then_some(rest)
    }

    /// Returns the path in the resource, if the condition is not about the owner of the setting.
    fn in_resource(&self, around: &[&'static str]) -> Option<&'static [&'static str]> {
        self.in_owner(around).is_none().then_some(self.path)
    }

    /// Returns true if a block certainly meets the condition on a path.
    fn holds(&self, block: &Block<'_>, path: &[&str]) -> bool {
        let found = occurrences(block, path);
        match self.value {
            None => !found.is_empty(),
            Some(value) => found.iter().any(|f| f.is_literal(value)),
        }
    }

    /// Returns true if a block meets the condition, or if an expression decides that.
    fn may_hold(&self, block: &Block<'_>, path: &[&str]) -> bool {
        let found = occurrences(block, path);
        match self.value {
            None => !found.is_empty(),
            Some(value) => found
                .iter()
                .any(|f| *f == SettingOccurrence::Unknown || f.is_literal(value)),
        }
    }
}

impl SettingOccurrence<'_> {
    fn is_literal(&self, value: &str) -> bool {
        matches!(self, Self::Literal(literal, _) if is_like(literal, value))
    }

    /// Returns the line, if the value is `null`.
    fn line_of_null(&self) -> Option<u32> {
        match self {
            Self::Literal("null", line) => Some(*line),
            _ => None,
        }
    }
}

/// Returns true if a literal is `known`, in any case. A `*` at an end of `known` is any text, and
/// alone it is itself.
fn is_like(literal: &str, known: &str) -> bool {
    let (part, text) = match (known.strip_prefix('*'), known.strip_suffix('*')) {
        (Some(end), None) => (end_of(literal, end.len()), end),
        (None, Some(start)) => (literal.get(..start.len()), start),
        _ => (Some(literal), known),
    };
    part.is_some_and(|part| part.eq_ignore_ascii_case(text))
}

/// Returns the last bytes of a text, if there are so many and they do not start inside a character.
fn end_of(text: &str, length: usize) -> Option<&str> {
    text.get(text.len().checked_sub(length)?..)
}

/// Returns the blocks at a path.
fn blocks_at<'b, 't>(block: &'b Block<'t>, path: &[&str]) -> Vec<&'b Block<'t>> {
    let mut found = vec![block];
    for name in path {
        let parts = found.into_iter().flat_map(|b| &b.parts);
        found = parts.filter_map(|part| named(part, name)).collect();
    }
    found
}

fn named<'b, 't>(part: &'b Part<'t>, name: &str) -> Option<&'b Block<'t>> {
    match part {
        Part::Block(block) if block.name == name => Some(block),
        _ => None,
    }
}

/// Returns what a block has at a path, in the order of the text. A setting that is `null` is left
/// out, as Terraform does.
fn occurrences<'t>(block: &Block<'t>, path: &[&str]) -> Vec<SettingOccurrence<'t>> {
    let mut out = all_occurrences(block, path);
    out.retain(|found| found.line_of_null().is_none());
    out
}

/// Returns what a block has at a path, with the settings that are `null`.
fn all_occurrences<'t>(block: &Block<'t>, path: &[&str]) -> Vec<SettingOccurrence<'t>> {
    let mut out = Vec::new();
    collect(block, path, &mut out);
    out
}

fn collect<'t>(block: &Block<'t>, path: &[&str], out: &mut Vec<SettingOccurrence<'t>>) {
    let Some((name, rest)) = path.split_first() else {
        return;
    };
    for part in &block.parts {
        #[cfg(test)]
        PARTS.set(PARTS.get() + 1);
        match part {
            Part::Setting(s) if s.name == *name && rest.is_empty() && !s.literals.is_empty() => {
                let literals = s.literals.iter();
                out.extend(literals.map(|l| SettingOccurrence::Literal(l.text, l.line)));
            }
            Part::Setting(s) if s.name == *name => out.push(SettingOccurrence::Unknown),
            Part::Block(b) if b.name == *name && rest.is_empty() => {
                out.push(SettingOccurrence::Block(b.line));
            }
            Part::Block(b) if b.name == *name => collect(b, rest, out),
            Part::Block(b) if b.name == "dynamic" && b.labels.contains(name) => {
                out.push(SettingOccurrence::Unknown);
            }
            _ => {}
        }
    }
}

/// Reports findings on added lines of a file.
struct FoundSettings<'a, 'r> {
    path: &'a RepoPath,
    text: &'a TextChange,
    /// The added lines, in order.
    added: Vec<&'a LineRange>,
    in_doubt: bool,
    out: &'a mut Reporter<'r>,
}

impl FoundSettings<'_, '_> {
    /// Reports a rule with its weakness, a message and a suggestion, if the change adds the line.
    fn report(&mut self, (rule, cwe): (&str, u32), line: u32, texts: (&str, &str)) {
        let Some(line) = LineNo::new(line) else {
            return;
        };
        if !self.is_added(line) {
            return;
        }
        let sighting = Sighting {
            file: Some(self.path),
            lines: Some(LineSpan {
                first: line,
                last: line,
                columns: None,
            }),
            quote: self.text.new.line(line).unwrap_or_default().trim_ascii(),
            in_doubt: self.in_doubt,
            cwe: Some(cwe),
            message: Some(texts.0),
            suggestion: Some(texts.1),
            ..Sighting::default()
        };
        self.out.report(rule, sighting);
    }

    fn is_added(&self, line: LineNo) -> bool {
        let next = self
            .added
            .partition_point(|new| new.start + new.count <= line.get());
        self.added
            .get(next)
            .is_some_and(|new| new.start <= line.get())
    }
}

#[cfg(test)]
mod tests;
