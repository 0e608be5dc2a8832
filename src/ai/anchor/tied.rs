//! Anchors claims about unchanged lines that the model saw to the changed line that they depend on.
//!
//! A change can break code that it does not touch. Such a claim is about the change only if something connects the two:
//! the unchanged line names a definition that the change touches, the change calls the definition that contains the
//! unchanged line, or both are in one file.

use super::also::Line;
use super::lines::{Entry, Lines};
use super::text::identifiers;
use super::{Context, Quoted, path, refer};
use crate::ai::related::{Excerpt, Why};
use crate::diff::{LineKind, LineNo, RepoPath};
use crate::symbols::{Definition, Kind, Symbols};
use std::ops::RangeInclusive;

/// The connection of an unchanged line to a file of the change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Relation {
    /// Position in [`Group::files`](crate::ai::material::Group).
    pub(super) file: usize,
    by: By,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum By {
    /// The unchanged line names a definition that the change touches. The flag is true if no other definition can be
    /// meant.
    Changed(String, bool),
    /// Changed lines of these hunks name the definition that contains the unchanged line.
    Used(String, RangeInclusive<usize>),
    /// Both are in one file.
    File,
}

/// Returns the relation of an unchanged line to the change. Returns `None` if there is none, or if the model saw the
/// line neither through a tool nor as related code.
pub(super) fn relation(cx: &Context<'_>, line: &Line) -> Option<Relation> {
    let (related, number) = (&cx.group.related, line.number.get());
    let path = path::text(&line.file);
    let shows = |e: &&Excerpt| e.path == path && e.lines.iter().any(|(n, _)| *n == number);
    let excerpt = related.excerpts.iter().find(shows);
    if excerpt.is_none() && !was_read(cx, &line.file, line.number) {
        return None;
    }
    let used = |e: &Excerpt| Relation { file: e.file, by: By::Used(name_in_change(e).to_owned(), e.hunks.clone()) };
    let own = || cx.group.files.iter().position(|f| *f.path() == line.file);
    let by_name = refer::changed(cx, line);
    let by_name = by_name.map(|n| Relation { file: n.file, by: By::Changed(n.name, n.is_certain) });
    by_name.or_else(|| excerpt.map(used)).or_else(|| Some(Relation { file: own()?, by: By::File }))
}

/// Returns the name that changed lines use for the subject of an excerpt.
fn name_in_change(e: &Excerpt) -> &str {
    let is_use = matches!(e.why, Why::Call | Why::CallOfNew | Why::Test);
    if is_use || e.alias.is_empty() { &e.name } else { &e.alias }
}

/// Returns true if the model read a line with a tool.
pub(super) fn was_read(cx: &Context<'_>, file: &RepoPath, number: LineNo) -> bool {
    cx.read.iter().any(|r| r.path == *file && (r.first..=r.last).contains(&number))
}

/// Finds the changed line that an unchanged line depends on. The result is [`Quoted::AsNumbered`] if a name connects
/// the two. It is [`Quoted::Loosely`] if the changed line is only the nearest, or several unchanged lines match the
/// quote. `lines` must contain the file of the relation.
pub(super) fn changed_line(lines: &Lines<'_>, relation: &Relation, line: &Line) -> Option<(usize, Quoted)> {
    let (entry, quoted) = related_line(lines, relation, line)?;
    Some((entry, if line.is_certain { quoted } else { Quoted::Loosely }))
}

fn related_line(lines: &Lines<'_>, relation: &Relation, line: &Line) -> Option<(usize, Quoted)> {
    let changed = || lines.of_file(relation.file).filter(|(_, e)| e.shown.kind != LineKind::Context);
    let added = || changed().filter(|(_, e)| e.shown.kind == LineKind::Added);
    match &relation.by {
        By::Changed(name, is_certain) => {
            let (entry, quoted) = line_of_definition(lines, relation.file, name)?;
            Some((entry, if *is_certain { quoted } else { Quoted::Loosely }))
        }
        By::Used(name, hunks) => {
            let near = || added().filter(|(_, e)| hunks.contains(&e.hunk));
            let mut named = near().filter(|(_, e)| has(e.text, name)).map(|(entry, _)| entry);
            match (named.next(), named.next()) {
                (Some(only), None) => Some((only, Quoted::AsNumbered)),
                (Some(first), Some(_)) => Some((first, Quoted::Loosely)),
                _ => near().next().map(|(entry, _)| (entry, Quoted::Loosely)),
            }
        }
        By::File => {
            let own = line.number.get();
            let away = |e: &Entry<'_>| e.number().map_or(u32::MAX, |n| n.abs_diff(own));
            added().min_by_key(|(_, e)| away(e)).map(|(entry, _)| (entry, Quoted::Loosely))
        }
    }
}

/// Returns true if a text has a name as a word.
fn has(text: &str, name: &str) -> bool {
    identifiers(text).any(|word| word == name)
}

/// Finds the changed line that represents a definition which the change touches.
///
/// It is the changed line that contains the signature of the function or type, or else its first changed line. Another
/// line with the name can be a comment or a call, and the first line can be an attribute. Without such a function or
/// type, it is the first added line with the name, or a line of a hunk with the name in its label.
fn line_of_definition(lines: &Lines<'_>, file: usize, name: &str) -> Option<(usize, Quoted)> {
    let shown = lines.file(file);
    let changed = || lines.of_file(file).filter(|(_, e)| e.shown.kind != LineKind::Context);
    let added = || changed().filter(|(_, e)| e.shown.kind == LineKind::Added);
    let loosely = || changed().next().map(|(entry, _)| (entry, Quoted::Loosely));
    if shown.symbols.new.is_some() || shown.symbols.old.is_some() {
        let new = definitions(shown.symbols.new.as_deref(), name);
        let old = definitions(shown.symbols.old.as_deref(), name);
        let is_one = new.len().max(old.len()) == 1;
        let names_it = || added().find(|(_, e)| within(&new, e.shown.new, |d| &d.signature) && has(e.text, name));
        let in_new = || added().find(|(_, e)| within(&new, e.shown.new, |d| &d.lines));
        let in_old = || changed().find(|(_, e)| within(&old, e.shown.old, |d| &d.lines));
        if let Some((entry, _)) = names_it().or_else(in_new).or_else(in_old) {
            return Some((entry, if is_one { Quoted::AsNumbered } else { Quoted::Loosely }));
        }
    }
    let section = |e: &Entry<'_>| shown.hunks.get(e.hunk).map_or("", |h| h.section.as_str());
    let named = added().chain(changed()).find(|(_, e)| has(e.text, name));
    let by_name = named.or_else(|| added().find(|(_, e)| has(section(e), name)));
    by_name.map(|(entry, _)| (entry, Quoted::AsNumbered)).or_else(loosely)
}

/// Returns the functions and types of a name.
fn definitions<'s>(symbols: Option<&'s Symbols>, name: &str) -> Vec<&'s Definition> {
    let all = symbols.into_iter().flat_map(|s| &s.definitions);
    all.filter(|d| d.name == name && d.kind != Kind::Test).collect()
}

/// Returns true if the lines of one of the definitions, or of the selected part, contain a number.
fn within(all: &[&Definition], number: Option<LineNo>, part: fn(&Definition) -> &RangeInclusive<u32>) -> bool {
    number.is_some_and(|n| all.iter().any(|d| part(d).contains(&n.get())))
}
