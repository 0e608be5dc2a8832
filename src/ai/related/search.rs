//! Searches the tree for the definitions of used names, and for the calls and tests of changed ones.

use super::constants;
use super::head::head;
use super::touched::{Changed, Need, Touched, Used};
use super::{Excerpt, Why, lines_of};
use crate::ai::material::Group;
use crate::ai::tree::Tree;
use crate::diff::RepoPath;
use crate::rules;
use crate::symbols::{self, Definition, Kind, Symbols, Usage};
use aho_corasick::AhoCorasick;
use std::collections::{HashMap, HashSet};
use std::ops::RangeInclusive;
use std::time::{Duration, Instant};

/// Files that are searched for names.
const MAX_SEARCHED: usize = 6_000;
/// Bytes that are searched.
const MAX_BYTES: usize = 64 << 20;
/// Files that are parsed.
const MAX_PARSED: usize = 300;
/// The longest time of a search.
const TIME: Duration = Duration::from_secs(4);
/// Uses of changed names in one file that are looked at.
const MAX_HITS: usize = 500;
/// Call sites of one name.
const MAX_CALLS: usize = 10;
/// Tests of one name.
const MAX_TESTS: usize = 3;
/// A name with more definitions is too common: none of them is known to be the right one.
const MAX_DEFINITIONS: usize = 3;
/// Lines before and after a call.
const NEAR_CALL: u32 = 3;
/// A function with no more lines is shown whole around a call.
const CALLER_LINES: u32 = 12;
/// Lines that are shown of a test.
const TEST_LINES: u32 = 25;

/// A definition or a call that the search found.
struct Hit {
    path: RepoPath,
    /// In order, not overlapping.
    lines: Vec<RangeInclusive<u32>>,
    /// The function that contains a call.
    inside: String,
    /// The line of the call, or the first line of the definition.
    line: u32,
    is_test: bool,
}

/// What the search found, by name.
#[derive(Default)]
struct Hits {
    definitions: HashMap<String, Vec<Hit>>,
    calls: HashMap<String, Vec<Hit>>,
}

/// The names of a change.
struct Wanted<'t> {
    changed: HashSet<&'t str>,
    /// Functions and types whose definitions are looked up.
    used: HashSet<&'t str>,
    constants: HashSet<&'t str>,
    /// The identifiers of added lines.
    words: HashSet<&'t str>,
}

impl<'t> Wanted<'t> {
    fn of(touched: &'t [Touched]) -> Self {
        let used = |is_constant: bool| {
            let used = touched.iter().flat_map(|t| &t.used).filter(|u| (u.need == Need::Constant) == is_constant);
            used.map(|u| u.name.as_str()).collect()
        };
        Self {
            changed: touched.iter().flat_map(|t| &t.changed).map(|c| c.name.as_str()).collect(),
            used: used(false),
            constants: used(true),
            words: touched.iter().flat_map(|t| &t.words).map(String::as_str).collect(),
        }
    }

    fn names(&self) -> Vec<&'t str> {
        let mut names: Vec<&str> = self.changed.iter().chain(&self.used).chain(&self.constants).copied().collect();
        names.sort_unstable();
        names.dedup();
        names
    }
}

/// Finds definitions, calls and tests.
pub(super) fn find(group: &Group, touched: &[Touched], tree: &Tree<'_>) -> Vec<Excerpt> {
    let wanted = Wanted::of(touched);
    let hits = search(group, &wanted, tree);
    let mut builder = Builder { group, tree, wanted, excerpts: Vec::new(), shown: HashSet::new() };
    for (file, touched) in touched.iter().enumerate() {
        builder.own(file, touched);
        for used in &touched.used {
            match used.need {
                Need::Use => builder.definition(Why::Definition, file, used, &hits),
                Need::Owner => builder.definition(Why::Owner, file, used, &hits),
                Need::Constant => builder.constant(file, used, touched, &hits),
            }
        }
        for changed in &touched.changed {
            builder.calls(file, changed, &hits);
        }
    }
    builder.excerpts
}

/// Reads the files that may use or define the names, the nearest to the change first.
fn search(group: &Group, wanted: &Wanted<'_>, tree: &Tree<'_>) -> Hits {
    let mut hits = Hits::default();
    let names = wanted.names();
    let Ok(finder) = AhoCorasick::new(&names) else { return hits };
    let Ok(paths) = tree.paths() else { return hits };
    if names.is_empty() {
        return hits;
    }
    let end = Instant::now() + TIME;
    let (mut bytes, mut parsed) = (0, 0);
    for path in nearest(group, paths) {
        if bytes > MAX_BYTES || parsed >= MAX_PARSED || Instant::now() > end {
            break;
        }
        let Ok(text) = tree.bytes(path) else { continue };
        bytes += text.len();
        if !mentions(&finder, &text) {
            continue;
        }
        if let Some(symbols) = known(group, path, &text) {
            collect(path, &text, symbols, wanted, &mut hits);
        } else if let Some(symbols) = Symbols::read(path, &text) {
            parsed += 1;
            collect(path, &text, &symbols, wanted, &mut hits);
        }
    }
    hits
}

/// Returns the symbols of a changed file, if this is its text.
fn known<'g>(group: &'g Group, path: &RepoPath, text: &[u8]) -> Option<&'g Symbols> {
    let file = group.files.iter().find(|f| f.path() == path)?;
    let is_same = file.change.text()?.new.whole() == Some(text);
    file.symbols.new.as_ref().filter(|_| is_same)
}

/// Returns the files in which names of the change can occur, the nearest first.
fn nearest<'p>(group: &Group, paths: &'p [RepoPath]) -> Vec<&'p RepoPath> {
    let changed: Vec<&RepoPath> = group.files.iter().map(|f| f.path()).collect();
    let may_share = |path: &&RepoPath| changed.iter().any(|c| symbols::share_names(c, path));
    let mut near: Vec<(usize, &RepoPath)> = paths
        .iter()
        .filter(may_share)
        .map(|path| (changed.iter().map(|c| distance(c, path)).min().unwrap_or(usize::MAX), path))
        .collect();
    near.sort();
    near.into_iter().take(MAX_SEARCHED).map(|(_, path)| path).collect()
}

/// Counts the folders that are between two files.
fn distance(one: &RepoPath, other: &RepoPath) -> usize {
    let folders = |path: &RepoPath| {
        let mut parts: Vec<Vec<u8>> = path.as_bytes().split(|b| *b == b'/').map(<[u8]>::to_vec).collect();
        parts.pop();
        parts
    };
    let (one, other) = (folders(one), folders(other));
    let common = one.iter().zip(&other).take_while(|(a, b)| a == b).count();
    one.len() + other.len() - 2 * common
}

/// Returns true if one of the names occurs as a word.
fn mentions(finder: &AhoCorasick, text: &[u8]) -> bool {
    let is_word = |b: Option<&u8>| b.is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'_');
    finder
        .find_overlapping_iter(text)
        .any(|m| !is_word(m.start().checked_sub(1).and_then(|i| text.get(i))) && !is_word(text.get(m.end())))
}

fn collect(path: &RepoPath, text: &[u8], symbols: &Symbols, wanted: &Wanted<'_>, hits: &mut Hits) {
    let is_test = rules::is_test_path(path.as_bytes());
    let text = String::from_utf8_lossy(text);
    let lines: Vec<&str> = text.lines().collect();
    for name in &wanted.constants {
        for lines in constants::find(&text, name) {
            let line = *lines.start();
            let hit = Hit { path: path.clone(), lines: vec![lines], inside: String::new(), line, is_test };
            hits.definitions.entry((*name).to_owned()).or_default().push(hit);
        }
    }
    let Wanted { changed, used, words, .. } = wanted;
    for d in symbols.definitions.iter().filter(|d| matches!(d.kind, Kind::Function | Kind::Type)) {
        if used.contains(d.name.as_str()) || changed.contains(d.name.as_str()) {
            let hit = Hit {
                path: path.clone(),
                lines: head(d, &symbols.definitions, &lines, words),
                inside: String::new(),
                line: *d.lines.start(),
                is_test,
            };
            hits.definitions.entry(d.name.clone()).or_default().push(hit);
        }
    }
    for u in symbols.uses.iter().filter(|u| changed.contains(u.name.as_str())).take(MAX_HITS) {
        let function = symbols.function_at(u.line);
        // A type names itself in its own definition.
        if u.usage == Usage::Type && function.is_none() {
            continue;
        }
        let hit = Hit {
            path: path.clone(),
            lines: vec![call(u.line, function, is_test)],
            inside: function.map(|f| f.name.clone()).unwrap_or_default(),
            line: u.line,
            is_test,
        };
        hits.calls.entry(u.name.clone()).or_default().push(hit);
    }
}

/// Returns the lines to show of a call: those around it, or its test.
fn call(line: u32, function: Option<&Definition>, is_test: bool) -> RangeInclusive<u32> {
    let whole = function.map_or(1..=u32::MAX, |f| f.lines.clone());
    let near = |lines: u32| line.saturating_sub(lines).max(*whole.start())..=(line + lines).min(*whole.end());
    match function {
        Some(test) if is_test && test.lines.end() - test.lines.start() < TEST_LINES => test.lines.clone(),
        Some(caller) if caller.lines.end() - caller.lines.start() < CALLER_LINES => caller.lines.clone(),
        _ if is_test => near(TEST_LINES / 2),
        _ => near(NEAR_CALL),
    }
}

struct Builder<'g, 't, 'r> {
    group: &'g Group,
    tree: &'t Tree<'r>,
    wanted: Wanted<'g>,
    excerpts: Vec<Excerpt>,
    /// First lines of what is shown: an excerpt helps once.
    shown: HashSet<(RepoPath, u32)>,
}

impl Builder<'_, '_, '_> {
    /// Adds the definitions of the file itself that its change uses.
    fn own(&mut self, file: usize, touched: &Touched) {
        let path = self.group.files[file].path().clone();
        let Ok(text) = self.tree.text(&path) else { return };
        let lines: Vec<&str> = text.lines().collect();
        for used in &touched.used {
            let same: Vec<&Definition> = touched.own.iter().filter(|d| d.name == used.name).collect();
            let why = if used.need == Need::Owner { Why::Owner } else { Why::DefinitionHere };
            for d in same.into_iter().take(MAX_DEFINITIONS) {
                let hit = Hit {
                    path: path.clone(),
                    lines: head(d, &touched.own, &lines, &self.wanted.words),
                    inside: String::new(),
                    line: *d.lines.start(),
                    is_test: false,
                };
                self.push(why, file, used.hunk, &used.name, &hit);
            }
        }
    }

    /// Adds the definition of a constant: the one of the file itself, or else the nearest ones.
    fn constant(&mut self, file: usize, used: &Used, touched: &Touched, hits: &Hits) {
        let own = self.group.files[file].path();
        let here = hits.definitions.get(&used.name).into_iter().flatten().filter(|hit| hit.path == *own);
        let here: Vec<&Hit> = here.collect();
        if here.is_empty() {
            return self.definition(Why::Definition, file, used, hits);
        }
        let is_hidden = |hit: &&&Hit| !touched.spans.iter().any(|s| s.lines.contains(&hit.line));
        for hit in here.iter().filter(is_hidden).take(MAX_DEFINITIONS) {
            self.push(Why::DefinitionHere, file, used.hunk, &used.name, hit);
        }
    }

    /// Adds the definition of a used name, if there are few of that name.
    fn definition(&mut self, why: Why, file: usize, used: &Used, hits: &Hits) {
        let own = self.group.files[file].path();
        let Some(all) = hits.definitions.get(&used.name) else { return };
        if all.iter().any(|hit| hit.path == *own) {
            return;
        }
        let mut all: Vec<&Hit> = all.iter().filter(|hit| symbols::share_names(own, &hit.path)).collect();
        // Programs do not call tests.
        let may_be_test = rules::is_test_path(own.as_bytes()) && all.iter().all(|hit| hit.is_test);
        all.retain(|hit| may_be_test || !hit.is_test);
        all.sort_by_key(|hit| distance(own, &hit.path));
        if all.len() > MAX_DEFINITIONS {
            // Of many, those in the same folder are the likely ones.
            all.retain(|hit| distance(own, &hit.path) == 0);
        }
        if all.len() > MAX_DEFINITIONS {
            return;
        }
        for hit in all {
            self.push(why, file, used.hunk, &used.name, hit);
        }
    }

    /// Adds the calls and the tests of a changed name.
    fn calls(&mut self, file: usize, changed: &Changed, hits: &Hits) {
        let own = self.group.files[file].path().clone();
        let Some(all) = hits.calls.get(&changed.name) else { return };
        // Of a common name, only calls nearby are likely to mean this one.
        let is_common = hits.definitions.get(&changed.name).is_some_and(|d| d.len() > MAX_DEFINITIONS);
        let mut all: Vec<&Hit> = all
            .iter()
            .filter(|hit| symbols::share_names(&own, &hit.path))
            .filter(|hit| !is_common || distance(&own, &hit.path) == 0)
            // Programs do not call tests.
            .filter(|hit| hit.is_test || !rules::is_test_path(own.as_bytes()))
            .collect();
        all.sort_by_key(|hit| (distance(&own, &hit.path), hit.path.clone(), hit.line));
        let why = if changed.breaks { Why::CallOfNew } else { Why::Call };
        for (is_test, most, why) in [(false, MAX_CALLS, why), (true, MAX_TESTS, Why::Test)] {
            for hit in one_a_file_first(all.iter().copied().filter(|h| h.is_test == is_test)).into_iter().take(most) {
                self.push(why, file, changed.hunk, &changed.name, hit);
            }
        }
    }

    fn push(&mut self, why: Why, file: usize, hunk: usize, name: &str, hit: &Hit) {
        let first = hit.lines.first().map_or(0, |l| *l.start());
        if !self.shown.insert((hit.path.clone(), first)) || self.is_changed_line(hit) {
            return;
        }
        let Ok(text) = self.tree.text(&hit.path) else { return };
        let all: Vec<&str> = text.lines().collect();
        let excerpt = Excerpt {
            why,
            file,
            hunks: hunk..=hunk,
            path: self.tree.name(&hit.path),
            name: name.to_owned(),
            inside: if hit.inside == name { String::new() } else { hit.inside.clone() },
            lines: hit.lines.iter().flat_map(|range| lines_of(&all, range)).collect(),
        };
        let is_call = matches!(why, Why::Call | Why::CallOfNew);
        if excerpt.lines.is_empty() || is_call && self.extend(&excerpt, &all) {
            return;
        }
        self.excerpts.push(excerpt);
    }

    /// Adds the lines of a call to those of another one that is next to it in the same function. Returns true if there is
    /// such a call.
    fn extend(&mut self, new: &Excerpt, text: &[&str]) -> bool {
        let (first, last) = new.ends();
        let is_beside = |old: &&mut Excerpt| {
            let (start, end) = old.ends();
            let same = |e: &Excerpt| (e.why, e.file, e.path.clone(), e.inside.clone());
            same(old) == same(new) && first <= end + 1 && start <= last + 1
        };
        let Some(old) = self.excerpts.iter_mut().find(is_beside) else { return false };
        let (start, end) = old.ends();
        old.lines = lines_of(text, &(start.min(first)..=end.max(last)));
        old.hunks = *old.hunks.start().min(new.hunks.start())..=*old.hunks.end().max(new.hunks.end());
        if !old.name.split(", ").any(|known| known == new.name) {
            old.name = format!("{}, {}", old.name, new.name);
        }
        true
    }

    /// Returns true if a hunk shows the line already.
    fn is_changed_line(&self, hit: &Hit) -> bool {
        let file = self.group.files.iter().find(|f| *f.path() == hit.path);
        let mut lines = file.into_iter().flat_map(|f| &f.hunks).flat_map(|h| &h.lines);
        lines.any(|l| l.new.is_some_and(|n| n.get() == hit.line))
    }
}

/// Puts the first hit of each file before the second ones.
fn one_a_file_first<'h>(hits: impl Iterator<Item = &'h Hit>) -> Vec<&'h Hit> {
    let (mut first, mut rest) = (Vec::new(), Vec::new());
    let mut seen: HashSet<&RepoPath> = HashSet::new();
    for hit in hits {
        if seen.insert(&hit.path) { first.push(hit) } else { rest.push(hit) }
    }
    first.extend(rest);
    first
}
