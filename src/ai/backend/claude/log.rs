//! What the program's tools really showed to the model.
//!
//! A line counts as read when a tool's answer holds its number and its text as they stand in the tree: neither what
//! was asked for nor what a file says about itself can make one.

use crate::ai::ask::{Lookup, Lookups, Read, Subject};
use crate::ai::snapshot::Snapshot;
use crate::ai::tree::Tree;
use crate::diff::{LineNo, RepoPath};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Lines that are kept at most.
const MAX_LINES: usize = 500_000;
/// Files that are looked up one by one. Of more, the answer depends on the whole tree.
const MAX_FILES: usize = 64;
/// Places of a line of search results that are tried as the end of its path.
const MAX_TRIES: usize = 16;

/// The tool calls of one run.
#[derive(Debug)]
pub(super) struct Log<'a, 't> {
    snapshot: &'a Snapshot,
    tree: &'a Tree<'t>,
    /// Calls that were not answered yet: the tool and the path that it was given.
    open: HashMap<String, (Tool, String)>,
    seen: BTreeMap<RepoPath, BTreeSet<u32>>,
    count: usize,
    /// Files whose text the model asked for.
    files: BTreeSet<RepoPath>,
    /// It asked for something that no single file answers.
    is_wide: bool,
    /// A result is aimed at the model.
    is_aimed: bool,
}

#[derive(Clone, Copy, Debug)]
enum Tool {
    Read,
    Grep,
    /// It edits or creates a file.
    Edit,
}

/// Lines of the files that one answer speaks of.
#[derive(Default)]
struct Texts(HashMap<RepoPath, Vec<String>>);

impl Texts {
    /// Returns true if a line of a file is this one.
    fn has(&mut self, tree: &Tree<'_>, path: &RepoPath, number: u32, text: &str) -> bool {
        let lines = self.0.entry(path.clone()).or_insert_with(|| match tree.text(path) {
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

    /// Takes a `tool_use` block.
    pub(super) fn called(&mut self, block: &Value) {
        let word = |key: &str| block.get(key).and_then(Value::as_str);
        let input = |key: &str| block.get("input").and_then(|i| i.get(key)).and_then(Value::as_str);
        let (tool, path) = match word("name") {
            Some("Read") => (Tool::Read, input("file_path")),
            Some("Grep") => (Tool::Grep, input("path")),
            Some("Edit" | "Write") => {
                self.is_wide = true;
                if let (Some(id), Some(path)) = (word("id"), input("file_path")) {
                    self.open.insert(id.to_owned(), (Tool::Edit, path.to_owned()));
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
        if let Some(id) = word("id") {
            self.open.insert(id.to_owned(), (tool, path.unwrap_or_default().to_owned()));
        }
    }

    /// Takes a `tool_result` block.
    pub(super) fn answered(&mut self, block: &Value) {
        let id = block.get("tool_use_id").and_then(Value::as_str).unwrap_or_default();
        let part = |block: &Value| block.get("text").and_then(Value::as_str).map(str::to_owned);
        let text = match block.get("content") {
            Some(Value::String(text)) => text.clone(),
            Some(Value::Array(blocks)) => blocks.iter().filter_map(part).collect::<Vec<_>>().join("\n"),
            _ => return,
        };
        self.is_aimed |= self.tree.has_orders(&text);
        let Some((tool, path)) = self.open.remove(id) else { return };
        if block.get("is_error") == Some(&Value::Bool(true)) {
            if matches!(tool, Tool::Edit) {
                self.refused(&path, &text);
            }
            return;
        }
        let mut texts = Texts::default();
        let file = self.snapshot.file(&path).cloned();
        for line in text.split('\n') {
            match tool {
                Tool::Read => {
                    let Some(file) = &file else { return };
                    if let Some((number, text)) = numbered(line, &['\t', '→']) {
                        self.add(&mut texts, file, number, text);
                    }
                }
                Tool::Grep => self.found(&mut texts, file.as_ref(), line),
                Tool::Edit => return,
            }
        }
    }

    /// Takes an edit that the program refused. `path`: as the model wrote it; its own folder is not named.
    fn refused(&self, path: &str, why: &str) {
        let work = self.snapshot.desk().work().display().to_string();
        let inside = path.strip_prefix(&work).map_or(path, |rest| rest.trim_start_matches('/'));
        let why = why.replace("<tool_use_error>", "").replace("</tool_use_error>", "").replace(&format!("{work}/"), "");
        let name = self.tree.name(&RepoPath::from(inside));
        self.tree.refuse(inside, &format!("edit of `{name}`: {}", why.trim()));
    }

    /// Takes a line of search results: `path:number:text`, with `-` around what is only context, and without a path
    /// where one file was searched.
    fn found(&mut self, texts: &mut Texts, file: Option<&RepoPath>, line: &str) {
        if let (Some(file), Some((number, text))) = (file, numbered(line, &[':', '-'])) {
            self.add(texts, file, number, text);
            return;
        }
        // The path may itself have such signs in it, and the text may pretend to be another file's: it has to be
        // that line of that file.
        for (i, sign) in line.match_indices([':', '-']).take(MAX_TRIES) {
            let Some(path) = self.snapshot.file(&line[..i]).cloned() else { continue };
            let signs = [sign.chars().next().unwrap_or(':')];
            if let Some((number, text)) = numbered(&line[i + 1..], &signs)
                && self.add(texts, &path, number, text)
            {
                return;
            }
        }
    }

    fn add(&mut self, texts: &mut Texts, path: &RepoPath, number: u32, text: &str) -> bool {
        let is = self.count < MAX_LINES && texts.has(self.tree, path, number, text);
        if is && self.seen.entry(path.clone()).or_default().insert(number) {
            self.count += 1;
        }
        is
    }

    /// Returns what was looked up: files, or the whole tree if the model searched it.
    fn lookups(&self) -> Lookups {
        let is_wide = self.is_wide || self.files.len() > MAX_FILES;
        let files = || self.files.iter().cloned().map(Subject::File).collect();
        let subjects: Vec<Subject> = if is_wide { vec![Subject::Tree] } else { files() };
        let all: Option<Vec<Lookup>> = subjects.into_iter().map(|s| Lookup::in_tree(self.tree, s)).collect();
        let is_unfit = self.is_aimed || self.tree.is_editable() || all.is_none();
        Lookups { all: all.unwrap_or_default(), is_unfit }
    }

    /// Returns the ranges of lines that were shown, by path, and what was looked up.
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
                Some(Read { path: path.clone(), first: LineNo::new(first)?, last: LineNo::new(last)? })
            }));
        }
        (all, lookups)
    }
}

/// Takes the number off a line: spaces, digits, one of the signs.
fn numbered<'t>(line: &'t str, signs: &[char]) -> Option<(u32, &'t str)> {
    let line = line.trim_start_matches(' ');
    let end = line.find(|c: char| !c.is_ascii_digit())?;
    let rest = &line[end..];
    let sign = rest.chars().next().filter(|c| signs.contains(c))?;
    Some((line[..end].parse().ok()?, &rest[sign.len_utf8()..]))
}
