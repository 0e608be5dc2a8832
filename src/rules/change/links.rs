//! Links that put files which rules leave out under a path that they read.
//!
//! A path decides who looks at a file: policy leaves some out, most rules are silent about tests and examples, and the
//! name says which language the rules read. A link gives such a file a second path, and a program that uses it does not
//! see the first one. The text of the link is all that its change shows, so the link itself is reported.

use super::{Tree, folder};
use crate::diff::{Entry, FileMode, RepoPath};
use crate::finding::LineSpan;
use crate::rules::language::Languages;
use crate::rules::report::{Reporter, Sighting};
use crate::rules::role::{self, Role};

/// The id of the rule.
const RULE: &str = "symlink-to-unreviewed";
/// Links that are followed one after the other, as Linux does.
const HOPS: usize = 40;
/// The longest target that is followed, in bytes: the longest path of Linux.
const TARGET_MAX: usize = 4096;

/// Reports links that the change brings, and whose target is not reviewed as the link's own path would be.
pub(super) fn scan_change(entries: &[Entry], tree: &Tree<'_>, out: &mut Reporter<'_>) {
    for (index, entry) in entries.iter().enumerate() {
        let Some(new) = entry.new.as_ref().filter(|side| side.mode == FileMode::Symlink) else { continue };
        // `None` where policy leaves out the link itself.
        let Some(file) = (tree.load)(index) else { continue };
        let written = file.text().and_then(|t| super::added(t).next());
        let target = match &written {
            Some(line) => Some(line.text.to_vec()),
            None => (tree.target)(&new.path),
        };
        let Some(target) = target.filter(|t| t.len() <= TARGET_MAX) else { continue };
        if let Some(Hidden { why, may_be_read }) = hidden(&new.path, &target, tree) {
            let lines = written.map(|line| LineSpan { first: line.number, last: line.number, columns: None });
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

/// What a link leads to that is not reviewed as the link's path would be.
struct Hidden {
    why: String,
    /// The target's first line may name an interpreter, so that the rules read it in the link's language.
    may_be_read: bool,
}

/// Returns what a link leads to that is not reviewed as the link's path would be; `None` where there is nothing.
fn hidden(link: &RepoPath, target: &[u8], tree: &Tree<'_>) -> Option<Hidden> {
    // Windows takes either separator; elsewhere a backslash is part of a name.
    let other =
        memchr::memchr(b'\\', target).map(|_| target.iter().map(|b| if *b == b'\\' { b'/' } else { *b }).collect());
    let spellings: [Option<Vec<u8>>; 2] = [Some(target.to_vec()), other];
    spellings.iter().flatten().find_map(|t| {
        let end = resolve(link, t, tree)?;
        hidden_at(link.as_bytes(), &end, tree)
    })
}

/// Follows a link and every link on its way; `None` where that leaves the repository or does not end.
fn resolve(link: &RepoPath, target: &[u8], tree: &Tree<'_>) -> Option<Vec<u8>> {
    let parts = |path: &[u8]| -> Vec<Vec<u8>> { path.split(|b| *b == b'/').rev().map(<[u8]>::to_vec).collect() };
    let mut at: Vec<Vec<u8>> = parts(folder(link.as_bytes()).strip_suffix(b"/").unwrap_or_default());
    at.reverse();
    at.retain(|part| !part.is_empty());
    let mut left = parts(target);
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
        let Some(next) = (tree.target)(&RepoPath::new(at.join(&b'/'))) else { continue };
        hops += 1;
        if hops > HOPS || next.starts_with(b"/") || next.len() > TARGET_MAX {
            return None;
        }
        at.pop();
        left.extend(parts(&next));
    }
    Some(at.join(&b'/'))
}

/// Returns the language that a link's name stands for and its target's does not; `None` where rules read the target as
/// they would read the link.
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

/// As [`hidden`], for a resolved target.
fn hidden_at(link: &[u8], end: &[u8], tree: &Tree<'_>) -> Option<Hidden> {
    let below = |top: &[u8], rest: &[u8]| if top.is_empty() { rest.to_vec() } else { [top, b"/", rest].concat() };
    let at_end = RepoPath::new(end.to_vec());
    let is_file = !end.is_empty() && (tree.exists)(&at_end);
    let (list, more) = if is_file { (Vec::new(), false) } else { (tree.below)(&at_end) };
    let as_file = || (end.to_vec(), link.to_vec());
    let by_name = match (is_file, list.is_empty()) {
        (true, _) => vec![as_file()],
        (false, false) => Vec::new(),
        // What is not there yet can become a file or a folder.
        (false, true) => vec![as_file(), (below(end, b"x"), below(link, b"x"))],
    };
    let inside = list.iter().filter_map(|file| {
        let rest =
            if end.is_empty() { file.as_bytes() } else { file.as_bytes().strip_prefix(end)?.strip_prefix(b"/")? };
        Some((file.as_bytes().to_vec(), below(link, rest)))
    });
    let found = by_name.into_iter().filter(|(file, _)| !file.is_empty()).chain(inside).find_map(|(file, via)| {
        let shown = || String::from_utf8_lossy(file.strip_suffix(b"/x").unwrap_or(&file)).into_owned();
        let (target, path) = (RepoPath::new(file.clone()), RepoPath::new(via));
        if (tree.ignores)(&target) && !(tree.ignores)(&path) {
            let why = format!("{} is left out of reviews by the policy", shown());
            return Some(Hidden { why, may_be_read: false });
        }
        let is_test = role::of(target.as_bytes()) == Role::Test && role::of(path.as_bytes()) == Role::Program;
        if is_test {
            let why = format!("{} is a test or an example by its path, where most rules are silent", shown());
            return Some(Hidden { why, may_be_read: false });
        }
        let language = other_language(path.as_bytes(), target.as_bytes())?;
        let why = format!("the rules do not read {} as {language}", shown());
        Some(Hidden { why, may_be_read: Languages::of(target.as_bytes(), b"").is_empty() })
    });
    let too_many =
        || more.then(|| Hidden { why: "it leads to more files than can be listed".to_owned(), may_be_read: false });
    found.or_else(too_many)
}
