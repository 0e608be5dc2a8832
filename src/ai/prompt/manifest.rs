//! Lists the files of the whole change, so that the review of one part can take the others into
//! account.

use super::fence::fenced;
use crate::ai::ask::Manifest;
use crate::ai::kept::ExcludedFile;
use crate::ai::material::{Group, Shown};
use crate::ai::plan::Chunk;
use crate::ai::related::distance;
use crate::diff::{LineKind, RepoPath};
use std::fmt::Write as _;

/// Bytes of the list, at most.
const MOST: usize = 4 << 10;
/// Changed definitions that are listed for one file, at most.
const NAMES: usize = 8;

/// Bytes of a line, at most. A longer line is only counted, and the following lines are still
/// listed.
const LONGEST: usize = MOST / 4;
/// Bytes of the list that are reserved for its fence and for the counts of omitted files.
const COUNTS: usize = 200;

/// Lists the change: each path with its added and removed lines and its changed definitions, the
/// paths nearest to the chunk first. Empty for a change of one file that is whole in the chunk.
pub(super) fn manifest(group: &Group, kept: &[ExcludedFile], chunk: &Chunk) -> Manifest {
    if is_alone(group, kept) && chunk.pieces.iter().all(|p| !p.split) {
        return Manifest::default();
    }
    let own: Vec<usize> = chunk.pieces.iter().map(|p| p.file).collect();
    list(group, kept, &own)
}

/// Lists the change for a question about one of its files. Empty for a change of this file only.
pub(super) fn beside(group: &Group, kept: &[ExcludedFile], file: usize) -> Manifest {
    match is_alone(group, kept) {
        true => Manifest::default(),
        false => list(group, kept, &[file]),
    }
}

/// Returns true if the change has only one file.
fn is_alone(group: &Group, kept: &[ExcludedFile]) -> bool {
    group.files.len() == 1 && kept.is_empty() && group.related.bare.is_empty()
}

/// A file of the list.
struct ManifestEntry<'g> {
    path: &'g RepoPath,
    /// Line with counts and definitions.
    line: String,
    /// Line without counts and definitions, which change with every edit elsewhere. Questions with
    /// the same key are the same.
    key: String,
    is_shown: bool,
}

/// Lists all files within [`MOST`] bytes, those nearest to `own` first.
fn list(group: &Group, kept: &[ExcludedFile], own: &[usize]) -> Manifest {
    let (mut text, mut key) = (String::new(), String::new());
    let (mut more, mut more_kept, mut is_full) = (0, 0, false);
    for entry in nearest(group, kept, own) {
        key.push_str(&entry.key);
        let is_short = entry.line.len() <= LONGEST;
        is_full |= is_short && text.len() + entry.line.len() + COUNTS > MOST;
        match (is_short && !is_full, entry.is_shown) {
            (true, _) => text.push_str(&entry.line),
            (false, true) => more += 1,
            (false, false) => more_kept += 1,
        }
    }
    if more > 0 {
        let _ = writeln!(text, "and {more} more files");
    }
    if more_kept > 0 {
        let _ = writeln!(text, "and {more_kept} more that are not shown");
    }
    let mut out = String::new();
    fenced("files of the whole change", &text, &mut out);
    Manifest { text: out, key }
}

/// Returns the entries of `own` files first, then the others by the number of folders between them
/// and those.
fn nearest<'g>(
    group: &'g Group,
    kept: &'g [ExcludedFile],
    own: &[usize],
) -> Vec<ManifestEntry<'g>> {
    let mut entries: Vec<(bool, ManifestEntry<'g>)> = Vec::new();
    for (index, file) in group.files.iter().enumerate() {
        let line = line(
            file,
            group.related.changed.get(index).map_or(&[], Vec::as_slice),
        );
        let key = format!("{}{}\n", file.name, renamed(file.old_name.as_deref()));
        entries.push((
            !own.contains(&index),
            ManifestEntry {
                path: file.path(),
                line,
                key,
                is_shown: true,
            },
        ));
    }
    for file in &group.related.bare {
        let line = format!("{} +0 -0{}\n", file.name, renamed(file.old_name.as_deref()));
        entries.push((
            true,
            ManifestEntry {
                path: &file.path,
                key: line.clone(),
                line,
                is_shown: true,
            },
        ));
    }
    for file in kept {
        let line = format!("{} (not shown: {})\n", file.name, file.why.name());
        entries.push((
            true,
            ManifestEntry {
                path: &file.path,
                key: line.clone(),
                line,
                is_shown: false,
            },
        ));
    }
    entries.sort_by_cached_key(|(is_other, entry)| {
        let away = own
            .iter()
            .map(|o| distance(group.files[*o].path(), entry.path))
            .min();
        (*is_other, away, !entry.is_shown)
    });
    entries.into_iter().map(|(_, entry)| entry).collect()
}

/// Formats the path before a rename.
fn renamed(old: Option<&str>) -> String {
    old.map_or(String::new(), |old| format!(" (renamed from {old})"))
}

fn line(file: &Shown, changed: &[String]) -> String {
    let (mut added, mut removed) = (0, 0);
    for line in file.hunks.iter().flat_map(|h| &h.lines) {
        match line.kind {
            LineKind::Added => added += 1,
            LineKind::Removed => removed += 1,
            LineKind::Context => {}
        }
    }
    let names = changed
        .iter()
        .take(NAMES)
        .map(String::as_str)
        .collect::<Vec<_>>()
        .join(", ");
    let more = if changed.len() > NAMES { ", …" } else { "" };
    let names = if names.is_empty() {
        names
    } else {
        format!(": {names}{more}")
    };
    format!(
        "{} +{added} -{removed}{}{names}\n",
        file.name,
        renamed(file.old_name.as_deref())
    )
}
