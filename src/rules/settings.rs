//! Settings of Terraform resources whose default is insecure, or whose value is.
//!
//! `src/rules/knowledge/terraform` lists them by type of resource. A setting that a resource lacks
//! is reported on the line that opens the resource, and a wrong value on its own line. An expression
//! can have any value, so it is silent, and so are blocks that an expression makes (`dynamic`) and
//! calls of modules.

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

/// What a resource has at a path.
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
            add_lack(&mut lacks, expected);
        }
    }
    for lack in lacks {
        let (message, suggestion) = (lack.messages.join(" "), lack.suggestions.join(" "));
        sink.report((lack.rule, lack.cwe), block.line, (&message, &suggestion));
    }
}

/// Adds a setting to the others of its kind, so that a resource has one finding a kind.
fn add_lack(lacks: &mut Vec<Lack>, expected: &Expected) {
    let same = lacks
        .iter_mut()
        .find(|lack| lack.rule == expected.rule && lack.cwe == expected.cwe);
    match same {
        Some(lack) => {
            lack.messages.push(expected.message);
            lack.suggestions.push(expected.suggestion);
        }
        None => lacks.push(Lack {
            rule: expected.rule,
            cwe: expected.cwe,
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
        for owner in blocks_at(resource, around) {
            if !self.applies(resource, owner) {
                continue;
            }
            let found = occurrences(owner, name);
            out.extend(found.iter().filter_map(|found| self.wrong_line(found)));
        }
        // The strings of a list are on one line.
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
        let is_known = value != "null";
        is_known
            && (self.is_forbidden
                || is_in(self.bad)
                || (!self.good.is_empty() && !is_in(self.good)))
    }

    /// Returns true if a resource lacks the setting.
    fn is_lacking(&self, resource: &Block<'_>) -> bool {
        self.is_required
            && resource.is_complete
            && self.applies_to(resource)
            && occurrences(resource, self.path).is_empty()
    }

    /// Returns true if the conditions hold for a resource as a whole.
    fn applies_to(&self, resource: &Block<'_>) -> bool {
        let holds = |c: &ResourceCondition| c.holds((resource, c.path));
        let may_hold = |c: &ResourceCondition| c.may_hold((resource, c.path));
        self.when.iter().all(holds) && !self.unless.iter().any(may_hold)
    }

    /// Returns true if the conditions hold. Those on the settings beside it are about `owner`,
    /// because a resource can have several blocks with one name.
    fn applies(&self, resource: &Block<'_>, owner: &Block<'_>) -> bool {
        let (around, _) = self.split();
        let holds = |c: &ResourceCondition| c.holds(c.place(resource, owner, around));
        let may_hold = |c: &ResourceCondition| c.may_hold(c.place(resource, owner, around));
        self.when.iter().all(holds) && !self.unless.iter().any(may_hold)
    }
}

impl ResourceCondition {
    /// Returns the block that the condition is about, and the path in it: `owner`, which is at
    /// `around` in the resource, or the resource.
    fn place<'b, 't>(
        &self,
        resource: &'b Block<'t>,
        owner: &'b Block<'t>,
        around: &[&'static str],
    ) -> (&'b Block<'t>, &'static [&'static str]) {
        match self.path.strip_prefix(around) {
            Some(rest) if !rest.is_empty() => (owner, rest),
            _ => (resource, self.path),
        }
    }

    /// Returns true if a block certainly meets the condition on a path.
    fn holds(&self, (block, path): (&Block<'_>, &[&str])) -> bool {
        let found = occurrences(block, path);
        match self.value {
            None => !found.is_empty(),
            Some(value) => found.iter().any(|f| f.is_literal(value)),
        }
    }

    /// Returns true if a block meets the condition, or if an expression decides that.
    fn may_hold(&self, (block, path): (&Block<'_>, &[&str])) -> bool {
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
}

/// Returns true if a literal is `known`, in any case. A `*` at an end of `known` is any text, and
/// alone it is itself.
fn is_like(literal: &str, known: &str) -> bool {
    match (known.strip_prefix('*'), known.strip_suffix('*')) {
        (Some(end), None) => literal.ends_with(end),
        (None, Some(start)) => literal.starts_with(start),
        _ => literal.eq_ignore_ascii_case(known),
    }
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

/// Returns what a block has at a path, in the order of the text.
fn occurrences<'t>(block: &Block<'t>, path: &[&str]) -> Vec<SettingOccurrence<'t>> {
    let mut out = Vec::new();
    collect(block, path, &mut out);
    out
}

fn collect<'t>(block: &Block<'t>, path: &[&str], out: &mut Vec<SettingOccurrence<'t>>) {
    let Some((name, rest)) = path.split_first() else {
        return;
    };
    for part in &block.parts {
        match part {
            Part::Setting(s) if s.name == *name && rest.is_empty() && !s.literals.is_empty() => {
                out.extend(
                    s.literals
                        .iter()
                        .map(|l| SettingOccurrence::Literal(l, s.line)),
                );
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
    /// Reports a rule with its weakness, and texts: what is wrong, and what to do.
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
mod tests {
    use super::*;

    /// Returns the rules that a text breaks, with their lines.
    fn broken(text: &str) -> Vec<(&'static str, u32)> {
        let blocks = hcl::blocks(text);
        let mut out = Vec::new();
        for block in &blocks {
            let of_type = resource_type(block).and_then(expected_of);
            for i in of_type.unwrap_or_default() {
                let expected = &EXPECTED[usize::from(*i)];
                let wrong = expected.wrong_lines(block);
                out.extend(wrong.into_iter().map(|line| (expected.rule, line)));
                if expected.is_lacking(block) {
                    out.push((expected.rule, block.line));
                }
            }
        }
        out
    }

    #[test]
    fn types_are_in_the_order_that_the_search_needs() {
        assert!(BY_TYPE.is_sorted_by(|a, b| a.0 < b.0));
    }

    #[test]
    fn a_condition_on_a_neighbour_is_about_the_same_block() {
        let rule = |port: u32, open: u32| {
            let ingress = |p: u32, range: &str| {
                format!(
                    "  ingress {{\n    from_port = {p}\n    cidr_blocks = [\"{range}\"]\n  }}\n"
                )
            };
            let text = format!(
                "resource \"aws_security_group\" \"a\" {{\n{}{}}}\n",
                ingress(port, "10.0.0.0/8"),
                ingress(open, "0.0.0.0/0"),
            );
            broken(&text)
        };
        assert_eq!(rule(443, 80), [("terraform-exposed", 8)]);
        assert_eq!(rule(80, 443), []);
    }

    #[test]
    fn what_an_expression_decides_is_silent() {
        let text = |body: &str| format!("resource \"aws_ebs_volume\" \"a\" {{\n{body}\n}}\n");
        assert_eq!(
            broken(&text("size = 1")),
            [("terraform-encryption-missing", 1)]
        );
        assert_eq!(broken(&text("# encrypted = true")).len(), 1);
        for body in [
            "encrypted = var.e",
            "encrypted = null",
            "snapshot_id = \"s\"",
        ] {
            assert_eq!(broken(&text(body)), [], "{body}");
        }
        assert_eq!(
            broken("resource \"aws_ebs_volume\" \"a\" {\n  size = 1\n"),
            []
        );
        assert_eq!(broken("module \"aws_ebs_volume\" {\n  size = 1\n}\n"), []);
    }
}
