//! Unchanged code that helps to judge a change: the functions around its hunks, the definitions of
//! the names that it uses, and the callers and tests of the definitions that it changes.
//!
//! Names are matched, not resolved. An excerpt states the name that it is about, and the model
//! judges whether it is the same. All texts come from [`Tree`], which replaces secrets and makes
//! hidden characters visible.

mod common;
mod constants;
pub(super) mod excerpt;
mod head;
mod paths;
mod project;
mod search;
mod selection;
mod touched;

use super::material::Group;
use super::tree::Tree;
use crate::text::first_bytes;
use std::ops::RangeInclusive;

pub use excerpt::{Bare, Beyond, Excerpt, Related, UnreadFiles, Why};
pub(super) use paths::{distance, imports, stem};
pub use touched::Touched;

/// Bytes of a line of an excerpt, at most.
const MAX_LINE: usize = 240;

/// Finds the related code for the change of a group. Reads the tree under review, within fixed
/// limits.
pub fn find(group: &Group, tree: &Tree<'_>) -> Related {
    let touched: Vec<Touched> = group
        .files
        .iter()
        .enumerate()
        .map(|(file, shown)| Touched::of(file, shown))
        .collect();
    let mut excerpts = Vec::new();
    for (file, touched) in group.files.iter().zip(&touched) {
        if let Ok(text) = tree.text(file.path()) {
            let lines: Vec<&str> = text.lines().collect();
            let spans = touched.spans.iter();
            excerpts.extend(
                spans.filter_map(|span| span.excerpt(&file.name, &lines, &touched.signatures)),
            );
        }
    }
    let selection::FoundCode {
        excerpts: found,
        beyond,
        is_cut,
        unread,
    } = selection::find(group, &touched, tree);
    excerpts.extend(found);
    let changed = touched
        .into_iter()
        .map(|t| t.changed.into_iter().map(|c| c.name).collect())
        .collect();
    let mut related = Related {
        changed,
        excerpts,
        beyond,
        is_cut,
        unread,
        bare: Vec::new(),
    };
    related.redact(tree);
    related
}

/// Length in bytes from which the description of a test may be truncated. A truncated secret would
/// not be recognized.
const WHOLE: usize = 100;

/// Redacts the name of a symbol, which can be any text, such as the description of a test.
fn label(tree: &Tree<'_>, name: &mut String) {
    let is_identifier = name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    *name = if is_identifier || name.len() < WHOLE {
        tree.label(name)
    } else {
        String::new()
    };
}

impl Related {
    /// Redacts names and makes hidden characters in them visible. The lines of excerpts are already
    /// redacted.
    fn redact(&mut self, tree: &Tree<'_>) {
        let excerpts = self
            .excerpts
            .iter_mut()
            .flat_map(|e| [&mut e.name, &mut e.alias, &mut e.inside]);
        let beyond = self.beyond.iter_mut().map(|b| &mut b.name);
        let changed = self.changed.iter_mut().flatten();
        excerpts
            .chain(beyond)
            .chain(changed)
            .for_each(|name| label(tree, name));
    }
}

/// Returns lines of a file with their numbers, each truncated to [`MAX_LINE`] bytes. Returns an
/// empty list if the range is outside the file.
fn lines_of(lines: &[&str], range: &RangeInclusive<u32>) -> Vec<(u32, String)> {
    let (first, last) = (*range.start() as usize, *range.end() as usize);
    let shown = lines
        .get(first.saturating_sub(1)..last.min(lines.len()))
        .unwrap_or_default();
    (*range.start()..)
        .zip(shown.iter().map(|line| cut(line)))
        .collect()
}

fn cut(line: &str) -> String {
    match line.len() > MAX_LINE {
        true => format!("{}…", first_bytes(line, MAX_LINE - 3)),
        false => line.to_owned(),
    }
}
