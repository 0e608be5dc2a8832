//! Lists the files of the whole change, so that a reviewer of one part knows what else changes.

use super::fence::fenced;
use crate::ai::ask::Manifest;
use crate::ai::kept::Kept;
use crate::ai::material::{Group, Shown};
use crate::ai::plan::Chunk;
use std::fmt::Write as _;

/// Bytes of the list.
const MOST: usize = 4 << 10;
/// Names of one file's changed definitions.
const NAMES: usize = 8;

/// Lists the change: each path with its added and removed lines and its changed definitions, the paths nearest to the
/// chunk first. Empty for a change of one file that the chunk shows whole.
pub(super) fn manifest(group: &Group, kept: &[Kept], chunk: &Chunk) -> Manifest {
    let is_alone = group.files.len() == 1 && kept.is_empty() && chunk.pieces.iter().all(|p| !p.split);
    if is_alone {
        return Manifest::default();
    }
    let (mut text, mut key) = (String::new(), String::new());
    let files = nearest(group, chunk);
    let mut listed = 0;
    for index in &files {
        let file = &group.files[*index];
        let line = line(file, group.related.changed.get(*index).map_or(&[], Vec::as_slice));
        if text.len() + line.len() > MOST {
            break;
        }
        text.push_str(&line);
        // Numbers and definitions change with every edit elsewhere. The same paths are the same question.
        let _ = writeln!(key, "{}", file.name);
        listed += 1;
    }
    let rest = &files[listed..];
    if !rest.is_empty() {
        let _ = writeln!(text, "and {} more files", rest.len());
        rest.iter().for_each(|index| {
            let _ = writeln!(key, "{}", group.files[*index].name);
        });
    }
    for file in kept {
        let line = format!("{} (not shown: {})\n", file.name, file.why.name());
        if text.len() + line.len() <= MOST + 512 {
            text.push_str(&line);
        }
        key.push_str(&line);
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

/// Returns the positions of the files: those of the chunk, those of the same folders, the others.
fn nearest(group: &Group, chunk: &Chunk) -> Vec<usize> {
    let folder = |file: usize| {
        let path = group.files[file].path().as_bytes();
        &path[..memchr::memrchr(b'/', path).unwrap_or(0)]
    };
    let rank = |file: &usize| {
        let is_own = |p: &crate::ai::plan::Piece| p.file == *file;
        let is_near = |p: &crate::ai::plan::Piece| folder(p.file) == folder(*file);
        match (chunk.pieces.iter().any(is_own), chunk.pieces.iter().any(is_near)) {
            (true, _) => 0,
            (false, true) => 1,
            (false, false) => 2,
        }
    };
    let mut files: Vec<usize> = (0..group.files.len()).collect();
    files.sort_by_key(rank);
    files
}
