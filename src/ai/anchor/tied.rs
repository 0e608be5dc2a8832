//! Claims about unchanged lines that the model saw: tied to the changed line that they depend on.
//!
//! A change can break code that it does not touch. Such a claim is about the change only if something connects the two:
//! the unchanged line names a definition that the change touches, the change calls the definition that contains the
//! unchanged line, or both are in one file.

use super::also::Line;
use super::lines::{Entry, Lines};
use super::text::identifiers;
use super::{Context, Quoted, path};
use crate::ai::related::Excerpt;
use crate::diff::{LineKind, LineNo, RepoPath};
use crate::symbols;
use std::ops::RangeInclusive;

/// Bytes of a name that connects two lines, at least.
const NAME: usize = 3;

/// What connects an unchanged line to a file of the change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Relation {
    /// Position in [`Group::files`](crate::ai::material::Group).
    pub(super) file: usize,
    by: By,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum By {
    /// The unchanged line names a definition that the change touches.
    Changed(String),
    /// Changed lines of these hunks name the definition that contains the unchanged line.
    Used(String, RangeInclusive<usize>),
    /// Both are in one file.
    File,
}

/// Returns the relation of an unchanged line to the change. `None`: there is none, or the model did not see the line,
/// neither as the result of a tool nor as related code.
pub(super) fn relation(cx: &Context<'_>, line: &Line) -> Option<Relation> {
    let (related, number) = (&cx.group.related, line.number.get());
    let path = path::text(&line.file);
    let shows = |e: &&Excerpt| e.path == path && e.lines.iter().any(|(n, _)| *n == number);
    let excerpt = related.excerpts.iter().find(shows);
    if excerpt.is_none() && !was_read(cx, &line.file, line.number) {
        return None;
    }
    let is_named = |name: &&String| name.len() >= NAME && identifiers(&line.text).any(|word| word == *name);
    let touched = |(file, names): (usize, &Vec<String>)| {
        let may_share = symbols::share_names(cx.group.files.get(file)?.path(), &line.file);
        let name = names.iter().find(is_named).filter(|_| may_share)?;
        Some(Relation { file, by: By::Changed(name.clone()) })
    };
    let used = |e: &Excerpt| Relation { file: e.file, by: By::Used(e.name.clone(), e.hunks.clone()) };
    let own = || cx.group.files.iter().position(|f| *f.path() == line.file);
    let by_name = related.changed.iter().enumerate().find_map(touched);
    by_name.or_else(|| excerpt.map(used)).or_else(|| Some(Relation { file: own()?, by: By::File }))
}

/// Tells whether the model read a line with a tool.
pub(super) fn was_read(cx: &Context<'_>, file: &RepoPath, number: LineNo) -> bool {
    cx.read.iter().any(|r| r.path == *file && (r.first..=r.last).contains(&number))
}

/// Finds the changed line that an unchanged one depends on, and how certain that is: [`Quoted::AsNumbered`] if a name
/// connects them, [`Quoted::Loosely`] if it is only the nearest or the unchanged line is one of several that have the
/// quote. `lines` has the file of the relation.
pub(super) fn changed_line(lines: &Lines<'_>, relation: &Relation, line: &Line) -> Option<(usize, Quoted)> {
    let (entry, quoted) = related_line(lines, relation, line)?;
    Some((entry, if line.is_certain { quoted } else { Quoted::Loosely }))
}

fn related_line(lines: &Lines<'_>, relation: &Relation, line: &Line) -> Option<(usize, Quoted)> {
    let changed = || lines.of_file(relation.file).filter(|(_, e)| e.shown.kind != LineKind::Context);
    let added = || changed().filter(|(_, e)| e.shown.kind == LineKind::Added);
    let has = |text: &str, name: &str| identifiers(text).any(|word| word == name);
    let section = |e: &Entry<'_>| lines.file(relation.file).hunks.get(e.hunk).map_or("", |h| h.section.as_str());
    match &relation.by {
        By::Changed(name) => {
            let named = added().chain(changed()).find(|(_, e)| has(e.text, name));
            let by_name = named.or_else(|| added().find(|(_, e)| has(section(e), name)));
            let sure = by_name.map(|(entry, _)| (entry, Quoted::AsNumbered));
            sure.or_else(|| changed().next().map(|(entry, _)| (entry, Quoted::Loosely)))
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
