//! Links that give files which rules skip a path that rules check.
//!
//! The path of a file decides which rules check it: policy ignores some files, most rules skip
//! tests and examples, and the name determines the language. A link gives such a file a second
//! path, and a program that uses the link does not see the first one. The change of a link shows
//! only its text, so the link itself is reported.

use super::{Tree, folder};
use crate::diff::{Entry, FileMode, RepoPath};
use crate::finding::LineSpan;
use crate::rules::language::Languages;
use crate::rules::report::{Reporter, Sighting};
use crate::rules::role::{self, FileRole};

/// ID of the rule.
const RULE: &str = "symlink-to-unreviewed";
/// Consecutive links that are followed, at most, as on Linux.
const HOPS: usize = 40;
/// Bytes of a target that is followed, at most: the longest path of Linux.
const TARGET_MAX: usize = 4096;

/// Reports links that the change adds, and whose target is not reviewed as a file at the link's
/// path would be.
pub(super) fn scan_change(entries: &[Entry], tree: &Tree<'_>, out: &mut Reporter<'_>) {
    for (index, entry) in entries.iter().enumerate() {
        let Some(new) = entry
            .new
            .as_ref()
            .filter(|side| side.mode == FileMode::Symlink)
        else {
            continue;
        };
        // `None`: policy ignores the link itself.
        let Some(file) = (tree.load)(index) else {
            continue;
        };
        let written = file.text().and_then(|t| super::added(t).next());
        let target = match &written {
            Some(line) => Some(line.text.to_vec()),
            None => (tree.target)(&new.path),
        };
        let Some(target) = target.filter(|t| t.len() <= TARGET_MAX) else {
            continue;
        };
        if let Some(Hidden { why, may_be_read }) = hidden(&new.path, &target, tree) {
            let lines = written.map(|line| LineSpan {
                first: line.number,
                last: line.number,
                columns: None,
            });
            let in_doubt = may_be_read || role::is_documentation(new.path.as_bytes());
            let sighting = Sighting {
                file: Some(&new.path),
                lines,
                quote: &target,
                detail: Some(&why),
                in_doubt,
                ..Sighting::default()
            };
            out.report(RULE, sighting);
        }
    }
}

/// A target of a link that is not reviewed as a file at the link's path would be.
struct Hidden {
    why: String,
    /// True if the target's first line may name an interpreter, so that rules check it in the
    /// link's language.
    may_be_read: bool,
}

/// Returns the target of a link if it is not reviewed as a file at the link's path would be.
/// `None`: the rules read the target as a file.
fn hidden(link: &RepoPath, target: &[u8], tree: &Tree<'_>) -> Option<Hidden> {
    // Windows accepts both separators. On other systems, a backslash is part of a name.
    let other = memchr::memchr(b'\\', target).map(|_| {
        target
            .iter()
            .map(|b| if *b == b'\\' { b'/' } else { *b })
            .collect()
    });
    let spellings: [Option<Vec<u8>>; 2] = [Some(target.to_vec()), other];
    spellings.iter().flatten().find_map(|t| {
        let end = resolve(link, t, tree)?;
        hidden_at(link.as_bytes(), &end, tree)
    })
}

/// Resolves a link and every link on its path. `None`: the path leaves the repository or does not
/// end.
fn resolve(link: &RepoPath, target: &[u8], tree: &Tree<'_>) -> Option<Vec<u8>> {
    let mut at: Vec<Vec<u8>> = parts_from_end(
        folder(link.as_bytes())
            .strip_suffix(b"/")
            .unwrap_or_default(),
    );
    at.reverse();
    at.retain(|part| !part.is_empty());
    let mut left = parts_from_end(target);
    let mut hops = 0;
    if target.starts_with(b"/") {
        return None;
    }
    while let Some(part) = left.pop() {
        match part.as_slice() {
            b"" | b"." => continue,
            b".." => {
                at.pop()?;
                continue;
            }
            _ => at.push(part),
        }
        let Some(next) = (tree.target)(&RepoPath::new(at.join(&b'/'))) else {
            continue;
        };
        hops += 1;
        if hops > HOPS || next.starts_with(b"/") || next.len() > TARGET_MAX {
            return None;
        }
        at.pop();
        left.extend(parts_from_end(&next));
    }
    Some(at.join(&b'/'))
}

/// Returns the parts of a path, the last one first.
fn parts_from_end(path: &[u8]) -> Vec<Vec<u8>> {
    path.split(|b| *b == b'/')
        .rev()
        .map(<[u8]>::to_vec)
        .collect()
}

/// Returns the language of a link's name if it differs from that of its target. `None`: rules check
/// the target as they would check the link.
fn other_language(link: &[u8], target: &[u8]) -> Option<&'static str> {
    let (as_link, as_target) = (Languages::of(link, b""), Languages::of(target, b""));
    const SCRIPTS: &[&str] = &["javascript", "typescript"];
    let is_prose = as_link.any_of(&["text", "markdown"]);
    let are_scripts = as_link.any_of(SCRIPTS) && as_target.any_of(SCRIPTS);
    if is_prose || are_scripts || as_link.overlaps(as_target) {
        return None;
    }
    as_link.names().next()
}

/// Same as [`hidden`], for a resolved target.
fn hidden_at(link: &[u8], end: &[u8], tree: &Tree<'_>) -> Option<Hidden> {
    let at_end = RepoPath::new(end.to_vec());
    let is_file = !end.is_empty() && (tree.exists)(&at_end);
    let (list, more) = if is_file {
        (Vec::new(), false)
    } else {
        (tree.below)(&at_end)
    };
    let by_name = match (is_file, list.is_empty()) {
        (true, _) => vec![(end.to_vec(), link.to_vec())],
        (false, false) => Vec::new(),
        // A target that does not exist yet can become a file or a folder.
        (false, true) => vec![
            (end.to_vec(), link.to_vec()),
            (path_below(end, b"x"), path_below(link, b"x")),
        ],
    };
    let inside = list.iter().filter_map(|file| {
        let rest = if end.is_empty() {
            file.as_bytes()
        } else {
            file.as_bytes().strip_prefix(end)?.strip_prefix(b"/")?
        };
        Some((file.as_bytes().to_vec(), path_below(link, rest)))
    });
    let found = by_name
        .into_iter()
        .filter(|(file, _)| !file.is_empty())
        .chain(inside)
        .find_map(|(file, via)| {
            let (target, path) = (RepoPath::new(file.clone()), RepoPath::new(via));
            if (tree.ignores)(&target) && !(tree.ignores)(&path) {
                let why = format!("{} is left out of reviews by the policy", shown(&file));
                return Some(Hidden {
                    why,
                    may_be_read: false,
                });
            }
            let is_test = role::of(target.as_bytes()) == FileRole::Test
                && role::of(path.as_bytes()) == FileRole::Program;
            if is_test {
                let why = format!(
                    "{} is a test or an example by its path, where most rules are silent",
                    shown(&file)
                );
                return Some(Hidden {
                    why,
                    may_be_read: false,
                });
            }
            let language = other_language(path.as_bytes(), target.as_bytes())?;
            let why = format!("the rules do not read {} as {language}", shown(&file));
            Some(Hidden {
                why,
                may_be_read: Languages::of(target.as_bytes(), b"").is_empty(),
            })
        });
    let too_many = || {
        more.then(|| Hidden {
            why: "it leads to more files than can be listed".to_owned(),
            may_be_read: false,
        })
    };
    found.or_else(too_many)
}

/// Returns the path of a file in a folder. The root is empty.
fn path_below(folder: &[u8], rest: &[u8]) -> Vec<u8> {
    if folder.is_empty() {
        rest.to_vec()
    } else {
        [folder, b"/", rest].concat()
    }
}

/// Returns the text of a path without the name that stands for any file.
fn shown(file: &[u8]) -> String {
    String::from_utf8_lossy(file.strip_suffix(b"/x").unwrap_or(file)).into_owned()
}
