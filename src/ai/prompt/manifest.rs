//! Lists the files of the whole change, so that a reviewer of one part knows what else changes.

use super::fence::fenced;
use crate::ai::ask::Manifest;
use crate::ai::kept::Kept;
use crate::ai::material::{Group, Shown};
use crate::ai::plan::Chunk;
use crate::ai::related::distance;
use std::fmt::Write as _;

/// Bytes of the list.
const MOST: usize = 4 << 10;
/// Names of one file's changed definitions.
const NAMES: usize = 8;

/// Bytes of it for the lines that count what is not listed.
const COUNTS: usize = 120;

/// Lists the change: each path with its added and removed lines and its changed definitions, the paths nearest to the
/// chunk first. Empty for a change of one file that the chunk shows whole.
pub(super) fn manifest(group: &Group, kept: &[Kept], chunk: &Chunk) -> Manifest {
    let is_alone = group.files.len() == 1 && kept.is_empty() && chunk.pieces.iter().all(|p| !p.split);
    if is_alone {
        return Manifest::default();
    }
    let own: Vec<usize> = chunk.pieces.iter().map(|p| p.file).collect();
    list(group, kept, &own)
}

/// Lists the change for a question about one of its files. Empty for a change of this file only.
pub(super) fn beside(group: &Group, kept: &[Kept], file: usize) -> Manifest {
    match group.files.len() == 1 && kept.is_empty() {
        true => Manifest::default(),
        false => list(group, kept, &[file]),
    }
}

/// Lists all files, those nearest to some of them first, within [`MOST`] bytes.
fn list(group: &Group, kept: &[Kept], own: &[usize]) -> Manifest {
    let (mut text, mut key) = (String::new(), String::new());
    let (mut more, mut more_kept) = (0, 0);
    for index in nearest(group, own) {
        let file = &group.files[index];
        let line = line(file, group.related.changed.get(index).map_or(&[], Vec::as_slice));
        // Numbers and definitions change with every edit elsewhere. The same paths are the same question.
        let _ = writeln!(key, "{}", file.name);
        match more == 0 && text.len() + line.len() + COUNTS <= MOST {
            true => text.push_str(&line),
            false => more += 1,
        }
    }
    if more > 0 {
        let _ = writeln!(text, "and {more} more files");
    }
    for file in kept {
        let line = format!("{} (not shown: {})\n", file.name, file.why.name());
        key.push_str(&line);
        match more_kept == 0 && text.len() + line.len() + COUNTS / 2 <= MOST {
            true => text.push_str(&line),
            false => more_kept += 1,
        }
    }
    if more_kept > 0 {
        let _ = writeln!(text, "and {more_kept} more that are not shown");
    }
    let mut out = String::new();
    fenced("files of the whole change", &text, &mut out);
    Manifest { text: out, key }
}

fn line(file: &Shown, changed: &[String]) -> String {
    let (mut added, mut removed) = (0, 0);
    for line in file.hunks.iter().flat_map(|h| &h.lines) {
        match line.kind {
            crate::diff::LineKind::Added => added += 1,
            crate::diff::LineKind::Removed => removed += 1,
            crate::diff::LineKind::Context => {}
        }
    }
    let names = changed.iter().take(NAMES).map(String::as_str).collect::<Vec<_>>().join(", ");
    let more = if changed.len() > NAMES { ", …" } else { "" };
    let names = if names.is_empty() { names } else { format!(": {names}{more}") };
    format!("{} +{added} -{removed}{names}\n", file.name)
}

/// Returns the positions of the files: some first, then the others by the number of folders between them and those.
fn nearest(group: &Group, own: &[usize]) -> Vec<usize> {
    let away = |file: &usize| {
        let path = group.files[*file].path();
        let distances = own.iter().map(|o| distance(group.files[*o].path(), path));
        (!own.contains(file), distances.min().unwrap_or(usize::MAX))
    };
    let mut files: Vec<usize> = (0..group.files.len()).collect();
    files.sort_by_cached_key(away);
    files
}
