//! Anchors claims about unchanged lines that the model saw to the changed line that they depend on.
//!
//! A change can break code that it does not touch. Such a claim is about the change only if
//! something connects the two: the unchanged line names a definition that the change touches, the
//! change calls the definition that contains the unchanged line, or both are in one file.

use super::also::SentLine;
use super::lines::{ChunkLines, LineEntry};
use super::text::identifiers;
use super::{Context, PositionCertainty, path, refer};
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

/// The connection of the unchanged line with the file.
#[derive(Clone, Debug, PartialEq, Eq)]
enum By {
    /// The unchanged line names a definition that the change touches. The flag is true if no other
    /// definition can be meant.
    Changed(String, bool),
    /// Changed lines of these hunks name the definition that contains the unchanged line.
    Used(String, RangeInclusive<usize>),
    /// Both are in one file.
    File,
}

/// Returns the relation of an unchanged line to the change. Returns `None` if there is none, or if
/// the model saw the line neither through a tool nor as related code.
pub(super) fn relation(cx: &Context<'_>, line: &SentLine) -> Option<Relation> {
    let (related, number) = (&cx.group.related, line.number.get());
    let path = path::text(&line.file);
    let mut of_file = related.excerpts.iter().filter(|e| e.path == path);
    let excerpt = of_file.find(|e| e.lines.iter().any(|(n, _)| *n == number));
    if excerpt.is_none() && !was_read(cx, &line.file, line.number) {
        return None;
    }
    if let Some(n) = refer::changed(cx, line) {
        return Some(Relation {
            file: n.file,
            by: By::Changed(n.name, n.is_certain),
        });
    }
    if let Some(e) = excerpt {
        return Some(Relation {
            file: e.file,
            by: By::Used(name_in_change(e).to_owned(), e.hunks.clone()),
        });
    }
    let own = cx.group.files.iter().position(|f| *f.path() == line.file)?;
    Some(Relation {
        file: own,
        by: By::File,
    })
}

/// Returns the name that changed lines use for the subject of an excerpt.
fn name_in_change(e: &Excerpt) -> &str {
    let is_use = matches!(e.why, Why::Call | Why::CallOfNew | Why::Test);
    if is_use || e.alias.is_empty() {
        &e.name
    } else {
        &e.alias
    }
}

/// Returns true if the model read a line with a tool.
pub(super) fn was_read(cx: &Context<'_>, file: &RepoPath, number: LineNo) -> bool {
    cx.read
        .iter()
        .any(|r| r.path == *file && (r.first..=r.last).contains(&number))
}

/// Finds the changed line that an unchanged line depends on. The result is
/// [`PositionCertainty::Likely`] if a name connects the two. It is [`PositionCertainty::Doubtful`]
/// if the changed line is only the nearest, or several unchanged lines match the quote. `lines` must
/// contain the file of the relation.
pub(super) fn changed_line(
    lines: &ChunkLines<'_>,
    relation: &Relation,
    line: &SentLine,
) -> Option<(usize, PositionCertainty)> {
    let (entry, certainty) = related_line(lines, relation, line)?;
    Some((entry, certainty.doubtful_unless(line.is_certain)))
}

fn related_line(
    lines: &ChunkLines<'_>,
    relation: &Relation,
    line: &SentLine,
) -> Option<(usize, PositionCertainty)> {
    let file = relation.file;
    match &relation.by {
        By::Changed(name, is_certain) => {
            let (entry, certainty) = line_of_definition(lines, file, name)?;
            Some((entry, certainty.doubtful_unless(*is_certain)))
        }
        By::Used(name, hunks) => {
            let near = lines
                .of_file(file)
                .filter(|(_, e)| e.is_added() && hunks.contains(&e.hunk));
            let mut near = near.peekable();
            let first = near.peek().map(|(entry, _)| *entry);
            let mut named = near
                .filter(|(_, e)| has(e.text, name))
                .map(|(entry, _)| entry);
            match (named.next(), named.next()) {
                (Some(only), None) => Some((only, PositionCertainty::Likely)),
                (Some(first), Some(_)) => Some((first, PositionCertainty::Doubtful)),
                _ => first.map(|entry| (entry, PositionCertainty::Doubtful)),
            }
        }
        By::File => {
            let own = line.number.get();
            let added = lines.of_file(file).filter(|(_, e)| e.is_added());
            added
                .min_by_key(|(_, e)| e.distance(own))
                .map(|(entry, _)| (entry, PositionCertainty::Doubtful))
        }
    }
}

/// Returns true if a text has a name as a word.
fn has(text: &str, name: &str) -> bool {
    identifiers(text).any(|word| word == name)
}

/// Finds the changed line that represents a definition which the change touches.
///
/// It is the changed line that contains the signature of the function or type, or else its first
/// changed line. Another line with the name can be a comment or a call, and the first line can be
/// an attribute. Without such a function or type, it is the first added line with the name, or a
/// line of a hunk with the name in its label.
fn line_of_definition(
    lines: &ChunkLines<'_>,
    file: usize,
    name: &str,
) -> Option<(usize, PositionCertainty)> {
    let shown = lines.file(file);
    let changed: Vec<(usize, &LineEntry<'_>)> = lines
        .of_file(file)
        .filter(|(_, e)| e.shown.kind != LineKind::Context)
        .collect();
    let added: Vec<(usize, &LineEntry<'_>)> = changed
        .iter()
        .copied()
        .filter(|(_, e)| e.is_added())
        .collect();
    if shown.symbols.new.is_some() || shown.symbols.old.is_some() {
        let new = definitions(shown.symbols.new.as_deref(), name);
        let old = definitions(shown.symbols.old.as_deref(), name);
        let is_one = new.len().max(old.len()) == 1;
        let entry = added
            .iter()
            .find(|(_, e)| within(&new, e.shown.new, |d| &d.signature) && has(e.text, name))
            .or_else(|| {
                added
                    .iter()
                    .find(|(_, e)| within(&new, e.shown.new, |d| &d.lines))
            })
            .or_else(|| {
                changed
                    .iter()
                    .find(|(_, e)| within(&old, e.shown.old, |d| &d.lines))
            });
        if let Some((entry, _)) = entry {
            let certainty = PositionCertainty::Likely.doubtful_unless(is_one);
            return Some((*entry, certainty));
        }
    }
    let named = added
        .iter()
        .chain(&changed)
        .find(|(_, e)| has(e.text, name));
    let by_name = named.or_else(|| {
        added.iter().find(|(_, e)| {
            shown
                .hunks
                .get(e.hunk)
                .is_some_and(|h| has(&h.section, name))
        })
    });
    if let Some((entry, _)) = by_name {
        return Some((*entry, PositionCertainty::Likely));
    }
    changed
        .first()
        .map(|(entry, _)| (*entry, PositionCertainty::Doubtful))
}

/// Returns the functions and types of a name.
fn definitions<'s>(symbols: Option<&'s Symbols>, name: &str) -> Vec<&'s Definition> {
    let all = symbols.into_iter().flat_map(|s| &s.definitions);
    all.filter(|d| d.name == name && d.kind != Kind::Test)
        .collect()
}

/// Returns true if the lines of one of the definitions, or of the selected part, contain a number.
fn within(
    all: &[&Definition],
    number: Option<LineNo>,
    part: fn(&Definition) -> &RangeInclusive<u32>,
) -> bool {
    number.is_some_and(|n| all.iter().any(|d| part(d).contains(&n.get())))
}
