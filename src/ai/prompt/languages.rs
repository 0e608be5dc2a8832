//! Checklists of defects that are easy to overlook, by language.

use crate::ai::material::{Group, Shown};
use crate::ai::plan::Chunk;
use crate::diff::LineKind;
use serde::Deserialize;
use std::cmp::Reverse;
use std::fmt::Write as _;
use std::sync::LazyLock;

const LIST: &str = include_str!("languages.toml");
/// Languages in the checklist of one request, at most.
const MOST: usize = 2;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct LanguageList {
    language: Vec<ChecklistLanguage>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ChecklistLanguage {
    name: String,
    extensions: Vec<String>,
    /// Defects, on one line.
    defects: String,
}

fn languages() -> &'static [ChecklistLanguage] {
    static LANGUAGES: LazyLock<Vec<ChecklistLanguage>> = LazyLock::new(|| {
        toml::from_str(LIST).map_or(Vec::new(), |list: LanguageList| list.language)
    });
    &LANGUAGES
}

/// Appends a line for each of the main languages of the changed lines in a chunk.
pub(super) fn checklist(group: &Group, chunk: &Chunk, out: &mut String) {
    let mut counts: Vec<(usize, usize)> = Vec::new();
    for piece in &chunk.pieces {
        let file = &group.files[piece.file];
        let Some(language) = language_of(file) else {
            continue;
        };
        let lines = piece
            .hunks
            .iter()
            .flat_map(|p| &file.hunks[p.hunk].lines[p.lines.clone()]);
        let changed = lines.filter(|l| l.kind != LineKind::Context).count();
        match counts.iter_mut().find(|(known, _)| *known == language) {
            Some((_, sum)) => *sum += changed,
            None => counts.push((language, changed)),
        }
    }
    counts.sort_by_key(|(language, changed)| (Reverse(*changed), *language));
    for (language, _) in counts.into_iter().take(MOST) {
        let ChecklistLanguage { name, defects, .. } = &languages()[language];
        let _ = writeln!(out, "Easy to overlook in {name}: {defects}.");
    }
}

/// Returns the maximum bytes of a [`checklist`].
pub(super) fn longest() -> usize {
    MOST * languages()
        .iter()
        .map(|l| l.name.len() + l.defects.len() + 24)
        .max()
        .unwrap_or_default()
}

fn language_of(file: &Shown) -> Option<usize> {
    let path = file.path().as_bytes();
    let name = path.rsplit(|b| *b == b'/').next().unwrap_or(path);
    let dot = memchr::memrchr(b'.', name)?;
    let extension = &name[dot + 1..];
    languages().iter().position(|l| {
        l.extensions
            .iter()
            .any(|e| e.as_bytes().eq_ignore_ascii_case(extension))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn the_list_has_each_extension_once_and_short_lines() {
        let list: LanguageList = toml::from_str(LIST).unwrap();
        assert!(list.language.len() >= 12, "{}", list.language.len());
        let all: Vec<&String> = list.language.iter().flat_map(|l| &l.extensions).collect();
        assert_eq!(all.iter().collect::<HashSet<_>>().len(), all.len());
        for l in &list.language {
            assert!(
                (100..400).contains(&l.defects.len()) && !l.defects.contains('\n'),
                "{}",
                l.name
            );
            assert!(!l.defects.ends_with('.'), "{}", l.name);
        }
    }
}
