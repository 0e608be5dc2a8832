//! Records the lines that the tools of the program returned to the model.
//!
//! A line counts as read if the result of a tool contains its number and the same text as in the
//! tree. Neither a request nor the text of a file can forge an entry.

use super::word;
use crate::ai::ask::{Lookup, LookupSubject, Lookups, Read};
use crate::ai::snapshot::Snapshot;
use crate::ai::tree::Tree;
use crate::diff::{LineNo, RepoPath};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Lines that are recorded, at most.
const MAX_LINES: usize = 500_000;
/// Files that are recorded separately. With more, the answer depends on the whole tree.
const MAX_FILES: usize = 64;
/// Positions in a line of search results that are tried as the end of its path.
const MAX_TRIES: usize = 16;

/// The tool calls of one run.
#[derive(Debug)]
pub(super) struct Log<'a, 't> {
    snapshot: &'a Snapshot,
    tree: &'a Tree<'t>,
    /// Calls without a result yet, by ID: the tool and its path.
    open: HashMap<String, (LoggedTool, String)>,
    seen: BTreeMap<RepoPath, BTreeSet<u32>>,
    count: usize,
    /// Files that the model requested.
    files: BTreeSet<RepoPath>,
    /// True if the model made a request that no single file answers.
    is_wide: bool,
    /// True if a result contains instructions to the model.
    is_aimed: bool,
}

#[derive(Clone, Copy, Debug)]
enum LoggedTool {
    Read,
    Grep,
    /// Edits or creates a file.
    Edit,
}

/// Lines of the files that one result contains, as a cache.
#[derive(Default)]
struct TextsByPath(HashMap<RepoPath, Vec<String>>);

impl TextsByPath {
    /// Returns true if the file has this text at this line.
    fn has(&mut self, tree: &Tree<'_>, path: &RepoPath, number: u32, text: &str) -> bool {
        let lines = self
            .0
            .entry(path.clone())
            .or_insert_with(|| match tree.text(path) {
                Ok(text) => text.lines().map(str::to_owned).collect(),
                Err(_) => Vec::new(),
            });
        let line = number.checked_sub(1).and_then(|i| lines.get(i as usize));
        line.is_some_and(|line| line == text.strip_suffix('\r').unwrap_or(text))
    }
}

impl<'a, 't> Log<'a, 't> {
    pub(super) fn new(snapshot: &'a Snapshot, tree: &'a Tree<'t>) -> Self {
        Self {
            snapshot,
            tree,
            open: HashMap::new(),
            seen: BTreeMap::new(),
            count: 0,
            files: BTreeSet::new(),
            is_wide: false,
            is_aimed: false,
        }
    }

    /// Records a `tool_use` block.
    pub(super) fn called(&mut self, block: &Value) {
        let id = block.get("id").and_then(Value::as_str);
        let (tool, path) = match word(block, "name") {
            "Read" => (LoggedTool::Read, argument(block, "file_path")),
            "Grep" => (LoggedTool::Grep, argument(block, "path")),
            "Edit" | "Write" => {
                self.is_wide = true;
                if let (Some(id), Some(path)) = (id, argument(block, "file_path")) {
                    self.open
                        .insert(id.to_owned(), (LoggedTool::Edit, path.to_owned()));
                }
                return;
            }
            _ => {
                self.is_wide = true;
                return;
            }
        };
        match path.and_then(|path| self.snapshot.file(path)) {
            Some(file) => self.files.insert(file.clone()),
            None => std::mem::replace(&mut self.is_wide, true),
        };
        if let Some(id) = id {
            self.open
                .insert(id.to_owned(), (tool, path.unwrap_or_default().to_owned()));
        }
    }

    /// Records a `tool_result` block.
    pub(super) fn answered(&mut self, block: &Value) {
        let id = block
            .get("tool_use_id")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let text = match block.get("content") {
            Some(Value::String(text)) => text.clone(),
            Some(Value::Array(blocks)) => {
                let texts = blocks
                    .iter()
                    .filter_map(|block| block.get("text").and_then(Value::as_str));
                texts.collect::<Vec<_>>().join("\n")
            }
            _ => return,
        };
        self.is_aimed |= self.tree.has_orders(&text);
        let Some((tool, path)) = self.open.remove(id) else {
            return;
        };
        if block.get("is_error") == Some(&Value::Bool(true)) {
            if matches!(tool, LoggedTool::Edit) {
                self.refused(&path, &text);
            }
            return;
        }
        let mut texts = TextsByPath::default();
        let file = self.snapshot.file(&path).cloned();
        for line in text.split('\n') {
            match tool {
                LoggedTool::Read => {
                    let Some(file) = &file else { return };
                    if let Some((number, text)) = numbered(line, &['\t', '→']) {
                        self.add(&mut texts, file, number, text);
                    }
                }
                LoggedTool::Grep => self.found(&mut texts, file.as_ref(), line),
                LoggedTool::Edit => return,
            }
        }
    }

    /// Records an edit that the program rejected. `path` is the path from the model; the message
    /// omits the private folder.
    fn refused(&self, path: &str, why: &str) {
        let work = self.snapshot.desk().work().display().to_string();
        let inside = path
            .strip_prefix(&work)
            .map_or(path, |rest| rest.trim_start_matches('/'));
        let why = why
            .replace("<tool_use_error>", "")
            .replace("</tool_use_error>", "")
            .replace(&format!("{work}/"), "");
        let name = self.tree.name(&RepoPath::from(inside));
        self.tree
            .refuse(inside, &format!("edit of `{name}`: {}", why.trim()));
    }

    /// Parses a line of search results: `path:number:text`, with `-` as separator for context
    /// lines, and without a path if one file was searched.
    fn found(&mut self, texts: &mut TextsByPath, file: Option<&RepoPath>, line: &str) {
        if let (Some(file), Some((number, text))) = (file, numbered(line, &[':', '-'])) {
            self.add(texts, file, number, text);
            return;
        }
        // The path itself can contain these separators, and the text can imitate a result from
        // another file. Accept only a position where the tree has this text at this line of this
        // file.
        for (i, sign) in line.match_indices([':', '-']).take(MAX_TRIES) {
            let Some(path) = self.snapshot.file(&line[..i]).cloned() else {
                continue;
            };
            let signs = [sign.chars().next().unwrap_or(':')];
            if let Some((number, text)) = numbered(&line[i + 1..], &signs)
                && self.add(texts, &path, number, text)
            {
                return;
            }
        }
    }

    fn add(&mut self, texts: &mut TextsByPath, path: &RepoPath, number: u32, text: &str) -> bool {
        let is = self.count < MAX_LINES && texts.has(self.tree, path, number, text);
        if is && self.seen.entry(path.clone()).or_default().insert(number) {
            self.count += 1;
        }
        is
    }

    /// Returns the lookups of the model: files, or the whole tree if it searched that.
    fn lookups(&self) -> Lookups {
        let is_wide = self.is_wide || self.files.len() > MAX_FILES;
        let subjects: Vec<LookupSubject> = if is_wide {
            vec![LookupSubject::Tree]
        } else {
            self.files
                .iter()
                .cloned()
                .map(LookupSubject::File)
                .collect()
        };
        let all: Option<Vec<Lookup>> = subjects
            .into_iter()
            .map(|s| Lookup::in_tree(self.tree, s))
            .collect();
        let is_unfit = self.is_aimed || self.tree.is_editable() || all.is_none();
        Lookups {
            all: all.unwrap_or_default(),
            is_unfit,
        }
    }

    /// Returns the line ranges that the model read, by path, and its lookups.
    pub(super) fn finish(self) -> (Vec<Read>, Lookups) {
        let lookups = self.lookups();
        let mut all = Vec::new();
        for (path, lines) in self.seen {
            let mut ranges: Vec<(u32, u32)> = Vec::new();
            for line in lines {
                match ranges.last_mut() {
                    Some((_, last)) if *last + 1 == line => *last = line,
                    _ => ranges.push((line, line)),
                }
            }
            all.extend(ranges.into_iter().filter_map(|(first, last)| {
                Some(Read {
                    path: path.clone(),
                    first: LineNo::new(first)?,
                    last: LineNo::new(last)?,
                })
            }));
        }
        (all, lookups)
    }
}

/// Splits the line number off a line: spaces, digits, one of the separators.
fn numbered<'t>(line: &'t str, signs: &[char]) -> Option<(u32, &'t str)> {
    let line = line.trim_start_matches(' ');
    let end = line.find(|c: char| !c.is_ascii_digit())?;
    let rest = &line[end..];
    let sign = rest.chars().next().filter(|c| signs.contains(c))?;
    Some((line[..end].parse().ok()?, &rest[sign.len_utf8()..]))
}

/// Returns a string argument of a tool call.
fn argument<'v>(block: &'v Value, key: &str) -> Option<&'v str> {
    block
        .get("input")
        .and_then(|input| input.get(key))
        .and_then(Value::as_str)
}
