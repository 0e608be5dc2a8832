//! The context that a model receives in addition to the change: the team's conventions, documents,
//! commit messages. It is redacted and limited, and omissions are stated.

use super::material::Document;
use super::redact;
use crate::bounded;
use crate::diff::{ObjectId, RepoPath};
use crate::git::{Change, Reader, State};
use crate::request::{Contract, Criterion};
use crate::rules::RuleSet;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Bytes of one conventions file in a prompt, and of all of them, at most.
const CONVENTIONS: usize = 32 << 10;
const ALL_CONVENTIONS: usize = 96 << 10;
/// Bytes of a conventions file that are read, at most.
const CONVENTIONS_READ: usize = 1 << 20;
/// Folders that are searched for conventions, at most.
const FOLDERS: usize = 2_000;
/// Bytes of a document, at most; a larger one is rejected.
pub const MAX_DOCUMENT: usize = 256 << 10;
/// Bytes of one commit message, bytes of all of them, and their number, at most.
const MESSAGE: usize = 4 << 10;
const ALL_MESSAGES: usize = 16 << 10;
const MESSAGES: usize = 50;

/// The documents that were found, and notes on the others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FoundDocuments {
    pub documents: Vec<Document>,
    /// Notes for the report.
    pub notes: Vec<String>,
    /// Names that were searched for, if no document was found.
    pub missing: Option<String>,
}

/// Finds the convention files for the changed files: each name, in each folder from the files up to
/// the root, nearest first. `state` must be trusted, so that the text is from the team and not from
/// the change.
pub fn conventions<'p>(
    reader: &mut Reader<'_>,
    state: &State,
    names: &[String],
    paths: impl IntoIterator<Item = &'p RepoPath>,
    rules: &RuleSet,
) -> FoundDocuments {
    let mut out = FoundDocuments::default();
    let mut room = ALL_CONVENTIONS;
    if names.is_empty() {
        return out;
    }
    for folder in folders(paths, &mut out.notes) {
        // A name that contains a folder refers to one file only.
        for name in names
            .iter()
            .filter(|n| folder.is_empty() || !n.contains('/'))
        {
            let path = match folder.is_empty() {
                true => RepoPath::from(name.as_str()),
                false => RepoPath::new([&folder, &b"/"[..], name.as_bytes()].concat()),
            };
            let shown = redact::path(rules, &path);
            if redact::is_sensitive(&path) {
                out.notes.push(format!(
                    "{shown} holds secrets by its name: not given to a model"
                ));
                continue;
            }
            let text = match reader.read(state, &path, CONVENTIONS_READ) {
                Ok(Some(bytes)) => redact::text(rules, &bytes).text,
                Ok(None) => continue,
                Err(e) => {
                    out.notes
                        .push(format!("{shown} was not given to a model: {}", e.message));
                    continue;
                }
            };
            // Skip the same text under another name, as for two programs.
            if text.trim().is_empty()
                || out
                    .documents
                    .iter()
                    .any(|d| d.folder == folder && d.text == text)
            {
                continue;
            }
            let (text, rest) = shortened(text, CONVENTIONS.min(room));
            if rest > 0 {
                out.notes.push(format!(
                    "of {shown}, the last {rest} bytes were not given to a model"
                ));
            }
            room -= text.len().min(room);
            if !text.is_empty() {
                out.documents.push(Document {
                    name: shown,
                    text,
                    folder: folder.clone(),
                });
            }
        }
    }
    if out.documents.is_empty() && out.notes.is_empty() {
        let missing = format!("no conventions file ({})", names.join(", "));
        out.notes.push(missing.clone());
        out.missing = Some(missing);
    }
    out
}

/// Returns the folders that contain the files, up to the root (empty), the deepest first.
fn folders<'p>(
    paths: impl IntoIterator<Item = &'p RepoPath>,
    notes: &mut Vec<String>,
) -> Vec<Vec<u8>> {
    let mut all = BTreeSet::from([&b""[..]]);
    for path in paths {
        let path = path.as_bytes();
        let ends = memchr::memrchr_iter(b'/', path).map(|end| &path[..end]);
        // The parents of a known folder are also known.
        for folder in ends.take_while(|f| !all.contains(f)).collect::<Vec<_>>() {
            if all.len() < FOLDERS {
                all.insert(folder);
            }
        }
    }
    if all.len() == FOLDERS {
        notes.push(format!(
            "conventions were read from the first {FOLDERS} folders only"
        ));
    }
    let mut all: Vec<Vec<u8>> = all.into_iter().map(<[u8]>::to_vec).collect();
    all.sort_by_key(|f| {
        std::cmp::Reverse(if f.is_empty() {
            0
        } else {
            1 + memchr::memchr_iter(b'/', f).count()
        })
    });
    all
}

/// Reads documents that the user named. The notes list each rejected document with the reason.
///
/// `top` is the worktree of the repository: nothing outside it is read, not even through a symlink.
/// Without a repository, `dir` is used.
pub fn documents(
    named: &[PathBuf],
    dir: &Path,
    top: Option<&Path>,
    rules: &RuleSet,
) -> FoundDocuments {
    let mut out = FoundDocuments::default();
    for path in named {
        match document(path, dir, top.unwrap_or(dir), rules) {
            Ok(document) if out.documents.iter().any(|d| d.name == document.name) => {}
            Ok(document) => out.documents.push(document),
            Err(why) => {
                let name = redact::name(rules, path.as_os_str().as_encoded_bytes());
                out.notes
                    .push(format!("{name} was not given to a model: {why}"));
            }
        }
    }
    out
}

fn document(path: &Path, dir: &Path, top: &Path, rules: &RuleSet) -> Result<Document, String> {
    let Inside { path: own, bytes } = inside(path, dir, top)?;
    let text = redact::text(rules, &bytes).text;
    Ok(Document {
        name: redact::path(rules, &own),
        text,
        folder: Vec::new(),
    })
}

/// A text file that the user named, not redacted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inside {
    /// Path from the root of the permitted folder, with symlinks resolved.
    pub path: RepoPath,
    /// Content, including secrets; at most [`MAX_DOCUMENT`].
    pub bytes: Vec<u8>,
}

/// Reads a text file that the user named. Rejects files outside `top` (also through a symlink),
/// files in `.git`, and files whose name indicates secrets. `path` may be relative to `dir`.
///
/// # Errors
///
/// Returns the reason as a lowercase fragment without the file name.
pub fn inside(path: &Path, dir: &Path, top: &Path) -> Result<Inside, String> {
    let (full, own) = locate(path, dir, top)?;
    let bytes = read(&full)?;
    if memchr::memchr(0, &bytes).is_some()
        && !bytes.starts_with(b"\xff\xfe")
        && !bytes.starts_with(b"\xfe\xff")
    {
        return Err("not a text file".to_owned());
    }
    Ok(Inside { path: own, bytes })
}

/// Resolves a file that the user named, by the rules of [`inside`]: its full path, and its path
/// from `top`.
///
/// # Errors
///
/// As [`inside`], but without a check of the file type.
pub fn locate(path: &Path, dir: &Path, top: &Path) -> Result<(PathBuf, RepoPath), String> {
    let top = top.canonicalize().map_err(|e| unreadable(&e))?;
    let full = dir.join(path).canonicalize().map_err(|e| unreadable(&e))?;
    let Ok(inside) = full.strip_prefix(&top) else {
        return Err("outside of the repository".to_owned());
    };
    let bytes = inside.as_os_str().as_encoded_bytes();
    if bytes.is_empty() {
        return Err("it is a folder".to_owned());
    }
    let own = RepoPath::new(bytes.to_vec());
    let named = RepoPath::new(path.as_os_str().as_encoded_bytes().to_vec());
    if inside
        .components()
        .any(|c| c.as_os_str().eq_ignore_ascii_case(".git"))
    {
        return Err("it belongs to git".to_owned());
    }
    if redact::is_sensitive(&own) || redact::is_sensitive(&named) {
        return Err("it holds secrets by its name".to_owned());
    }
    Ok((full, own))
}

/// Reads a regular file. The file is opened without blocking and its type is checked first, so that
/// a pipe does not block.
fn read(path: &Path) -> Result<Vec<u8>, String> {
    use rustix::fs::{Mode, OFlags};
    let flags =
        OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    let file = rustix::fs::open(path, flags, Mode::empty())
        .map_err(|e| format!("it cannot be read: {e}"))?;
    let file = std::fs::File::from(file);
    let about = file
        .metadata()
        .map_err(|e| format!("it cannot be read: {e}"))?;
    if !about.is_file() {
        return Err("not a regular file".to_owned());
    }
    bounded::whole(file, MAX_DOCUMENT as u64)
        .map_err(|e| format!("it cannot be read: {e}"))?
        .ok_or_else(|| format!("it is larger than {} KiB", MAX_DOCUMENT >> 10))
}

/// Formats the error of a file or folder that does not exist or cannot be read.
fn unreadable(e: &std::io::Error) -> String {
    match e.kind() {
        std::io::ErrorKind::NotFound => "file not found".to_owned(),
        _ => format!("it cannot be read: {e}"),
    }
}

/// Returns the commit messages of a change, oldest first: the message of `commit`, or of the
/// commits between the ends of the change. Skips messages that cannot be read, because they are not
/// part of the change.
pub fn messages(
    reader: &mut Reader<'_>,
    change: &Change,
    commit: Option<ObjectId>,
    rules: &RuleSet,
) -> Vec<String> {
    let commits = match commit {
        Some(id) => vec![id],
        None => reader
            .between(&change.base, &change.head)
            .unwrap_or_default(),
    };
    let mut room = ALL_MESSAGES;
    let mut out = Vec::new();
    // Prefer the newest, which describe the current state of the change best.
    for id in commits.iter().rev().take(MESSAGES) {
        let Ok(bytes) = reader.message(*id, MESSAGE * 4) else {
            continue;
        };
        let text = redact::text(rules, bytes.trim_ascii()).text;
        let (text, rest) = shortened(text, MESSAGE.min(room));
        if text.is_empty() {
            break;
        }
        room -= text.len().min(room);
        let more = if rest > 0 {
            format!("\n[{rest} more bytes]")
        } else {
            String::new()
        };
        // Omit the ID, so that an amended commit with the same message does not change the prompt.
        out.push(format!("commit:\n{text}{more}"));
    }
    let left = commits.len() - out.len();
    if left > 0 && !out.is_empty() {
        out.push(format!("[{left} earlier commits]"));
    }
    out.reverse();
    out
}

/// Returns the author's description of the change, redacted and truncated.
pub fn summary(text: &str, rules: &RuleSet) -> String {
    let (text, rest) = shortened(
        redact::text(rules, text.trim().as_bytes()).text,
        ALL_MESSAGES,
    );
    if rest > 0 {
        format!("{text}\n[{rest} more bytes]")
    } else {
        text
    }
}

/// Returns a contract as a document that can be cited: `contract#Requirement R1`.
pub fn contract(contract: &Contract, rules: &RuleSet) -> Document {
    let text = redact::text(rules, contract.text.as_bytes()).text;
    Document {
        name: "contract".to_owned(),
        text,
        folder: Vec::new(),
    }
}

/// Returns the criteria of a contract, redacted.
pub fn criteria(contract: &Contract, rules: &RuleSet) -> Vec<Criterion> {
    let criteria = contract.criteria.iter();
    criteria
        .map(|c| Criterion {
            id: c.id.clone(),
            text: redact::text(rules, c.text.as_bytes()).text,
        })
        .collect()
}

/// Truncates a text at the end of a line, or else of a character. Also returns the number of
/// omitted bytes.
pub(super) fn shortened(mut text: String, most: usize) -> (String, usize) {
    if text.len() <= most {
        return (text, 0);
    }
    let end = text.floor_char_boundary(most);
    let end = text[..end]
        .rfind('\n')
        .filter(|at| *at * 2 > end)
        .map_or(end, |at| at + 1);
    let rest = text.len() - end;
    text.truncate(end);
    (text, rest)
}
