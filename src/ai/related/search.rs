//! Searches the tree for the definitions of used names, and for uses and overrides of changed ones.

use super::common::is_distinct;
use super::constants;
use super::excerpt::{MAX_UNREAD, UnreadFiles};
use super::head::head;
use super::paths::{distance, names_file, stem};
use super::touched::{ChangedDefinition, Need, Reach, Touched, Used, owner};
use crate::ai::material::Group;
use crate::ai::tree::{self, Tree};
use crate::diff::RepoPath;
use crate::error::Error;
use crate::rules;
use crate::symbols::{self, Definition, Kind, Symbols, Usage, Use};
use aho_corasick::AhoCorasick;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::ops::RangeInclusive;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// Files that are searched for names, at most.
const MAX_SEARCHED: usize = 6_000;
/// Bytes that are searched, at most.
const MAX_BYTES: usize = 64 << 20;
/// Files that are parsed, at most.
const MAX_PARSED: usize = 300;
/// Bytes of the parsed files, at most.
const MAX_PARSED_BYTES: usize = 8 << 20;
/// Timeout of a search. The other limits are reached first, so that the prompt for a tree does not
/// depend on the load of the machine.
const TIME: Duration = Duration::from_secs(20);
/// Uses of changed names in one file that are evaluated, at most.
const MAX_HITS: usize = 500;
/// Definitions of one name, at most. A name with more is too common to know which definition is
/// meant.
pub(super) const MAX_DEFINITIONS: usize = 3;
/// Lines before and after a call.
const NEAR_CALL: u32 = 3;
/// Lines of a function that is included in full around a call, at most.
const CALLER_LINES: u32 = 12;
/// Lines of a test, at most.
const TEST_LINES: u32 = 25;

/// A definition or a use that the search found.
pub(super) struct SearchHit {
    pub(super) path: RepoPath,
    /// Line ranges in order, not overlapping.
    pub(super) lines: Vec<RangeInclusive<u32>>,
    /// Alias that an import gives to the name; empty if it has none.
    pub(super) alias: String,
    /// Function that contains a use, or type that an override is a member of.
    pub(super) inside: String,
    /// Signature of a function definition.
    pub(super) signature: Option<RangeInclusive<u32>>,
    /// Type that a definition is a member of; empty if it has none.
    pub(super) owner: String,
    /// Modules that the qualifier of a use belongs to.
    pub(super) qualified: Option<BTreeSet<String>>,
    /// True for a use that refers to a definition in the same file.
    pub(super) is_own: bool,
    /// Line of the use, or first line of the definition.
    pub(super) line: u32,
    pub(super) is_test: bool,
    /// Kind of the use. A use outside functions is also a [`Usage::Mention`].
    pub(super) usage: Usage,
    pub(super) file: Rc<SourceNames>,
}

impl SearchHit {
    /// Returns true if a use of the name of a changed definition is uncertain, because the name is
    /// common.
    pub(super) fn is_loose(&self, changed: &ChangedDefinition) -> bool {
        let is_mention = self.usage == Usage::Mention && changed.reach == Reach::Everywhere;
        changed.reach == Reach::Owner || is_mention && !is_distinct(&changed.name)
    }

    /// Returns true if a use likely refers to the changed definition in the file `own`. If its name
    /// has many `definitions`, only nearby uses likely refer to this one.
    pub(super) fn may_refer_to(
        &self,
        changed: &ChangedDefinition,
        own: &RepoPath,
        definitions: usize,
    ) -> bool {
        match changed.reach {
            Reach::Lines(first, last) => self.path == *own && (first..=last).contains(&self.line),
            Reach::Owner | Reach::Everywhere => {
                self.path == *own
                    || self.file.may_mean(changed, own)
                    || !self.is_loose(changed)
                        && (definitions <= MAX_DEFINITIONS || distance(own, &self.path) == 0)
            }
        }
    }
}

/// A file with hits.
struct HitOrigin<'p> {
    path: &'p RepoPath,
    is_test: bool,
    file: Rc<SourceNames>,
}

impl HitOrigin<'_> {
    /// Builds the hit for a definition that starts at a line.
    fn definition(&self, line: u32, lines: Vec<RangeInclusive<u32>>) -> SearchHit {
        SearchHit {
            path: self.path.clone(),
            lines,
            alias: String::new(),
            inside: String::new(),
            signature: None,
            owner: String::new(),
            qualified: None,
            is_own: false,
            line,
            is_test: self.is_test,
            usage: Usage::Mention,
            file: self.file.clone(),
        }
    }

    /// Builds the hit for a use in the file.
    fn usage(&self, symbols: &Symbols, site: &Use) -> SearchHit {
        let function = symbols.function_at(site.line);
        let is_renamed = symbols.original(&site.name) != site.name;
        SearchHit {
            path: self.path.clone(),
            lines: vec![call(site.line, function, self.is_test)],
            alias: if is_renamed {
                site.name.clone()
            } else {
                String::new()
            },
            inside: function.map(|f| f.name.clone()).unwrap_or_default(),
            signature: None,
            owner: String::new(),
            qualified: symbols.modules_of(self.path, site),
            is_own: is_own(self.path, symbols, site),
            line: site.line,
            is_test: self.is_test,
            usage: if site.usage == Usage::Type && function.is_none() {
                Usage::Mention
            } else {
                site.usage
            },
            file: self.file.clone(),
        }
    }
}

/// Names in a file that help to resolve its uses.
#[derive(Default)]
pub(super) struct SourceNames {
    imports: BTreeSet<String>,
    /// As in [`Symbols`].
    standard: BTreeSet<String>,
    /// As in [`Symbols`], for the changed names.
    pub(super) modules: HashMap<String, BTreeSet<String>>,
    /// Owners of changed members that the file mentions.
    owners: HashSet<String>,
}

impl SourceNames {
    /// Returns true if a name in this file likely refers to the definition in a changed file.
    pub(super) fn may_mean(&self, changed: &ChangedDefinition, own: &RepoPath) -> bool {
        self.imports.contains(&changed.name)
            || self.owners.contains(&changed.owner)
            || changed.owner.is_empty() && self.imports.contains(&stem(own))
    }

    /// Returns true if a name in this file refers to the standard library and not to a changed
    /// file.
    pub(super) fn means_standard(&self, name: &str, own: &RepoPath) -> bool {
        self.standard.contains(name) && !names_file(&self.imports, own)
    }
}

/// Hits of the search, by name.
#[derive(Default)]
pub(super) struct Hits {
    pub(super) definitions: HashMap<String, Vec<SearchHit>>,
    pub(super) uses: HashMap<String, Vec<SearchHit>>,
    /// Functions that are members of a type and have the name of a changed one.
    pub(super) members: HashMap<String, Vec<SearchHit>>,
    /// Types that a type extends or implements.
    bases: HashMap<String, BTreeSet<String>>,
    /// True if uses are missing: a file has more than [`MAX_HITS`], or the search reached a limit.
    pub(super) is_cut: bool,
    pub(super) unread: UnreadFiles,
}

impl Hits {
    /// Returns the types that extend or implement a type, directly or indirectly.
    pub(super) fn subtypes(&self, base: &str) -> HashSet<String> {
        let mut known = HashSet::from([base.to_owned()]);
        loop {
            let new = self.bases.iter().filter(|(name, bases)| {
                !known.contains(*name) && bases.iter().any(|base| known.contains(base))
            });
            let new: Vec<String> = new.map(|(name, _)| name.clone()).collect();
            if new.is_empty() {
                known.remove(base);
                return known;
            }
            known.extend(new);
        }
    }
}

/// The names that are searched for.
pub(super) struct WantedNames<'t> {
    changed: HashSet<&'t str>,
    /// Types that changed names are members of.
    owners: HashSet<&'t str>,
    /// Functions and types whose definitions are searched for.
    used: HashSet<&'t str>,
    constants: HashSet<&'t str>,
    /// Identifiers of added lines.
    pub(super) words: HashSet<&'t str>,
}

impl<'t> WantedNames<'t> {
    pub(super) fn of(touched: &'t [Touched]) -> Self {
        let used = touched.iter().flat_map(|t| &t.used);
        let (constants, used): (Vec<&Used>, Vec<&Used>) =
            used.partition(|u| u.need == Need::Constant);
        Self {
            changed: touched
                .iter()
                .flat_map(|t| &t.changed)
                .map(|c| c.name.as_str())
                .collect(),
            owners: touched
                .iter()
                .flat_map(|t| &t.changed)
                .map(|c| c.owner.as_str())
                .filter(|o| !o.is_empty())
                .collect(),
            used: used.into_iter().map(|u| u.name.as_str()).collect(),
            constants: constants.into_iter().map(|u| u.name.as_str()).collect(),
            words: touched
                .iter()
                .flat_map(|t| &t.words)
                .map(String::as_str)
                .collect(),
        }
    }

    fn names(&self) -> Vec<&'t str> {
        let mut names: Vec<&str> = self
            .changed
            .iter()
            .chain(&self.used)
            .chain(&self.constants)
            .copied()
            .collect();
        names.sort_unstable();
        names.dedup();
        names
    }
}

/// Reads the files that may use or define the names, the nearest to the change first.
pub(super) fn search(group: &Group, wanted: &WantedNames<'_>, tree: &Tree<'_>) -> Hits {
    let mut hits = Hits::default();
    let names = wanted.names();
    let Ok(finder) = AhoCorasick::new(&names) else {
        return hits;
    };
    let Ok(paths) = tree.paths() else { return hits };
    if names.is_empty() {
        return hits;
    }
    let end = Instant::now() + TIME;
    let (mut bytes, mut parsed, mut parsed_bytes) = (0, 0, 0);
    let (near, is_cut) = nearest(group, paths);
    hits.is_cut = is_cut;
    for path in near {
        let is_full = bytes > MAX_BYTES || parsed >= MAX_PARSED || parsed_bytes > MAX_PARSED_BYTES;
        if is_full || Instant::now() > end {
            hits.is_cut = true;
            break;
        }
        let text = match tree.bytes(path) {
            Ok(text) => text,
            Err(tree::Unread::Failed(e)) => {
                hits.unread.add(path, tree, &e);
                continue;
            }
            Err(_) => continue,
        };
        bytes += text.len();
        if !mentions(&finder, &text) {
            continue;
        }
        if let Some(symbols) = known(group, path, &text) {
            collect(path, &text, symbols, wanted, &mut hits);
        } else if let Some(symbols) = tree.symbols(path, &text) {
            parsed += 1;
            parsed_bytes += text.len();
            collect(path, &text, &symbols, wanted, &mut hits);
        }
    }
    hits
}

impl UnreadFiles {
    fn add(&mut self, path: &RepoPath, tree: &Tree<'_>, why: &Error) {
        if self.count == 0 {
            self.reason.clone_from(&why.message);
        }
        self.count += 1;
        if self.names.len() < MAX_UNREAD {
            self.names.push(tree.name(path));
        }
    }
}

/// Returns the symbols of a changed file, if `text` is its content.
fn known<'g>(group: &'g Group, path: &RepoPath, text: &[u8]) -> Option<&'g Symbols> {
    let file = group.files.iter().find(|f| f.path() == path)?;
    let is_same = file.change.text()?.new.whole() == Some(text);
    file.symbols.new.as_deref().filter(|_| is_same)
}

/// Returns the files in which names of the change can occur, the nearest first, and true if more
/// files were omitted.
fn nearest<'p>(group: &Group, paths: &'p [RepoPath]) -> (Vec<&'p RepoPath>, bool) {
    let changed: Vec<&RepoPath> = group.files.iter().map(|f| f.path()).collect();
    let mut near: Vec<(usize, &RepoPath)> = paths
        .iter()
        .filter(|path| changed.iter().any(|c| symbols::share_names(c, path)))
        .map(|path| {
            (
                changed
                    .iter()
                    .map(|c| distance(c, path))
                    .min()
                    .unwrap_or(usize::MAX),
                path,
            )
        })
        .collect();
    near.sort();
    let is_cut = near.len() > MAX_SEARCHED;
    (
        near.into_iter()
            .take(MAX_SEARCHED)
            .map(|(_, path)| path)
            .collect(),
        is_cut,
    )
}

/// Returns true if one of the names occurs as a whole word.
fn mentions(finder: &AhoCorasick, text: &[u8]) -> bool {
    finder.find_overlapping_iter(text).any(|m| {
        !is_of_word(m.start().checked_sub(1).and_then(|i| text.get(i)))
            && !is_of_word(text.get(m.end()))
    })
}

/// Returns true if a byte next to a name continues the name.
fn is_of_word(byte: Option<&u8>) -> bool {
    byte.is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'_')
}

/// Adds the hits of one file.
fn collect(
    path: &RepoPath,
    text: &[u8],
    symbols: &Symbols,
    wanted: &WantedNames<'_>,
    hits: &mut Hits,
) {
    let text = String::from_utf8_lossy(text);
    let origin = HitOrigin {
        path,
        is_test: rules::is_test_path(path.as_bytes()),
        file: Rc::new(SourceNames {
            imports: symbols.imports.clone(),
            standard: symbols.standard.clone(),
            modules: modules(symbols, wanted),
            owners: owners(symbols, wanted),
        }),
    };
    collect_constants(&origin, &text, wanted, hits);
    collect_definitions(&origin, &text, symbols, wanted, hits);
    collect_uses(&origin, symbols, wanted, hits);
}

/// Adds the definitions of constants in one file.
fn collect_constants(
    origin: &HitOrigin<'_>,
    text: &str,
    wanted: &WantedNames<'_>,
    hits: &mut Hits,
) {
    for name in &wanted.constants {
        for lines in constants::find(text, name) {
            let hit = origin.definition(*lines.start(), vec![lines]);
            hits.definitions
                .entry((*name).to_owned())
                .or_default()
                .push(hit);
        }
    }
}

/// Adds the definitions of functions and types in one file, the members with the name of a changed
/// one, and the base types.
fn collect_definitions(
    origin: &HitOrigin<'_>,
    text: &str,
    symbols: &Symbols,
    wanted: &WantedNames<'_>,
    hits: &mut Hits,
) {
    let lines: Vec<&str> = text.lines().collect();
    for d in symbols
        .definitions
        .iter()
        .filter(|d| matches!(d.kind, Kind::Function | Kind::Type) && !d.is_local)
    {
        let name = d.name.as_str();
        let is_changed = wanted.changed.contains(name);
        if !is_changed && !wanted.used.contains(name) {
            continue;
        }
        let is_function = d.kind == Kind::Function;
        let shown = head(d, &symbols.definitions, &lines, &wanted.words);
        let owner = owner(symbols, d);
        if is_function && is_changed && !owner.is_empty() {
            let hit = origin.definition(*d.lines.start(), shown.clone());
            hits.members
                .entry(d.name.clone())
                .or_default()
                .push(SearchHit {
                    inside: owner.clone(),
                    ..hit
                });
        }
        let hit = origin.definition(*d.lines.start(), shown);
        hits.definitions
            .entry(d.name.clone())
            .or_default()
            .push(SearchHit {
                signature: is_function.then(|| d.signature.clone()),
                owner,
                ..hit
            });
    }
    for d in symbols.definitions.iter().filter(|d| !d.bases.is_empty()) {
        hits.bases
            .entry(d.name.clone())
            .or_default()
            .extend(d.bases.iter().cloned());
    }
}

/// Adds the uses of changed names in one file, at most [`MAX_HITS`].
fn collect_uses(
    origin: &HitOrigin<'_>,
    symbols: &Symbols,
    wanted: &WantedNames<'_>,
    hits: &mut Hits,
) {
    let uses = symbols.uses.iter().chain(&symbols.mentions);
    let mut uses: Vec<&Use> = uses
        .filter(|u| is_changed(&u.name, symbols, &wanted.changed))
        .collect();
    hits.is_cut |= uses.len() > MAX_HITS;
    uses.truncate(MAX_HITS);
    uses.retain(|u| !symbols.is_local(origin.path, u));
    for u in uses {
        let name = symbols.original(&u.name).to_owned();
        hits.uses
            .entry(name)
            .or_default()
            .push(origin.usage(symbols, u));
    }
}

/// Returns true if a name in a file can refer to a changed name. A name that the file imports under
/// an alias can also be a definition in this file.
fn is_changed(name: &str, symbols: &Symbols, changed: &HashSet<&str>) -> bool {
    let original = symbols.original(name);
    changed.contains(original)
        && (original != name
            || symbols.renamed.values().all(|n| n != name)
            || symbols.definitions.iter().all(|d| d.name != name))
}

/// Returns true if a use refers to a function or type of its own file, in a language where names of
/// other files need an import.
fn is_own(path: &RepoPath, symbols: &Symbols, symbol: &Use) -> bool {
    symbols::has_own_names(path)
        && symbol.qualifier.is_empty()
        && symbols
            .defined_for(&symbol.name, symbol.line)
            .any(|d| owner(symbols, d).is_empty())
}

/// Returns the modules from which a file imports changed names.
fn modules(symbols: &Symbols, wanted: &WantedNames<'_>) -> HashMap<String, BTreeSet<String>> {
    let names = wanted
        .changed
        .iter()
        .filter_map(|name| Some((name, symbols.modules.get(*name)?)));
    names
        .map(|(name, modules)| ((*name).to_owned(), modules.clone()))
        .collect()
}

/// Returns the owners of changed members that the code of a file names, ignoring comments.
fn owners(symbols: &Symbols, wanted: &WantedNames<'_>) -> HashSet<String> {
    let uses = symbols
        .uses
        .iter()
        .chain(&symbols.mentions)
        .map(|u| symbols.original(&u.name));
    let imports = symbols.imports.iter().map(String::as_str);
    let bases = symbols
        .definitions
        .iter()
        .flat_map(|d| d.bases.iter().map(String::as_str).chain([d.name.as_str()]));
    uses.chain(imports)
        .chain(bases)
        .filter(|name| wanted.owners.contains(name))
        .map(str::to_owned)
        .collect()
}

/// Returns the lines to include for a call: its surroundings, its short caller, or its test.
fn call(line: u32, function: Option<&Definition>, is_test: bool) -> RangeInclusive<u32> {
    let whole = function.map_or(1..=u32::MAX, |f| f.lines.clone());
    let near = if is_test { TEST_LINES / 2 } else { NEAR_CALL };
    match function {
        Some(test) if is_test && test.lines.end() - test.lines.start() < TEST_LINES => {
            test.lines.clone()
        }
        Some(caller) if caller.lines.end() - caller.lines.start() < CALLER_LINES => {
            caller.lines.clone()
        }
        _ => line.saturating_sub(near).max(*whole.start())..=(line + near).min(*whole.end()),
    }
}
