//! `list_files`: the files of the tree.

use super::argument;
use super::page::ResultPage;
use crate::ai::tree::Tree;
use crate::diff::RepoPath;
use crate::policy::glob::Globs;
use std::collections::BTreeMap;

/// Number of names above which folders are listed instead.
const MAX_NAMES: usize = 200;
/// Folders that are listed then, at most.
const MAX_FOLDERS: usize = 80;

pub(super) fn call(
    tree: &Tree<'_>,
    arguments: &serde_json::Value,
    mut page: ResultPage,
) -> Result<ResultPage, String> {
    let given = argument::string(arguments, "glob")?.trim();
    let found = matching(tree, given)?;
    let shown = argument::shown(tree, given);
    if found.is_empty() {
        return Err(match given {
            "" => "the tree under review has no files".to_owned(),
            _ => format!("no file matches {shown}; an empty glob lists everything"),
        });
    }
    let cut = if tree.is_cut() {
        "; the tree is too large to list completely"
    } else {
        ""
    };
    let title = format!("{}{cut}:", files(found.len()));
    let mut left = found.len();
    let mut fits = page.say(&title);
    if found.len() <= MAX_NAMES {
        for path in &found {
            fits = fits && page.say(&tree.name(path));
            left -= usize::from(fits);
        }
    } else {
        for (name, count) in folders(tree, &found) {
            let line = if name.ends_with('/') {
                format!("{name} ({})", files(count))
            } else {
                name
            };
            fits = fits && page.say(&line);
            left -= if fits { count } else { 0 };
        }
    }
    if left > 0 {
        page.close(&format!(
            "(no room for {}: name a folder or a narrower pattern)",
            files(left)
        ));
    }
    Ok(page)
}

fn files(n: usize) -> String {
    if n == 1 {
        "1 file".to_owned()
    } else {
        format!("{n} files")
    }
}

/// Returns the files that match a pattern or are in a folder. Returns all files for an empty
/// pattern.
pub(super) fn matching<'t>(tree: &'t Tree<'_>, given: &str) -> Result<Vec<&'t RepoPath>, String> {
    let pattern =
        argument::inside(given).map_err(|why| format!("{} {why}", argument::shown(tree, given)))?;
    let paths = tree.paths();
    let paths = paths.map_err(|e| {
        format!(
            "the tree cannot be listed: {}",
            crate::untrusted::Inert::new(e.message)
        )
    })?;
    if matches!(pattern, "" | "." | "/" | "*" | "**" | "**/*") {
        return Ok(paths.iter().collect());
    }
    // The name of a folder may contain characters with a meaning in patterns.
    let folder = [pattern.trim_end_matches('/').as_bytes(), b"/"].concat();
    let below: Vec<_> = paths
        .iter()
        .filter(|p| p.as_bytes().starts_with(&folder))
        .collect();
    if !below.is_empty() {
        return Ok(below);
    }
    let globs = Globs::new(&[pattern]).map_err(|e| {
        format!(
            "the glob {} is malformed: {e}",
            argument::shown(tree, given)
        )
    })?;
    Ok(paths
        .iter()
        .filter(|p| globs.matches(p) || p.as_bytes() == pattern.as_bytes())
        .collect())
}

/// Counts files by folder, below their common folder, as deep as the limit allows.
fn folders(tree: &Tree<'_>, found: &[&RepoPath]) -> BTreeMap<String, usize> {
    let common = common_folder(found);
    let mut best = at_depth(tree, found, common, 1);
    for depth in 2..6 {
        let deeper = at_depth(tree, found, common, depth);
        if deeper.len() > MAX_FOLDERS {
            break;
        }
        best = deeper;
    }
    best
}

fn at_depth(
    tree: &Tree<'_>,
    found: &[&RepoPath],
    common: usize,
    depth: usize,
) -> BTreeMap<String, usize> {
    let mut out = BTreeMap::new();
    for path in found {
        let bytes = path.as_bytes();
        let slashes = memchr::memchr_iter(b'/', &bytes[common..]);
        let end = slashes
            .take(depth)
            .enumerate()
            .last()
            .filter(|(n, _)| n + 1 == depth)
            .map(|(_, at)| common + at + 1);
        let name = tree.name(&RepoPath::new(&bytes[..end.unwrap_or(bytes.len())]));
        *out.entry(name).or_insert(0) += 1;
    }
    out
}

/// Returns the length of the folder that contains all paths, including its slash.
fn common_folder(found: &[&RepoPath]) -> usize {
    let (Some(first), Some(last)) = (found.first(), found.last()) else {
        return 0;
    };
    // In byte order, all paths share the common prefix of the first and the last.
    let same = first
        .as_bytes()
        .iter()
        .zip(last.as_bytes())
        .take_while(|(a, b)| a == b)
        .count();
    memchr::memrchr(b'/', &first.as_bytes()[..same]).map_or(0, |i| i + 1)
}
