//! Searches the tree for the definitions of used names, and for calls and tests of changed ones.

use super::constants;
use super::head::head;
use super::paths::{distance, imports, is_imported, names_file, stem};
use super::project::PackageIndex;
use super::touched::{ChangedDefinition, Need, Reach, Touched, Used, is_distinct, joined, owner};
use super::{Beyond, Excerpt, MAX_UNREAD, UnreadFiles, Why, lines_of};
use crate::ai::material::Group;
use crate::ai::tree::{self, Tree};
use crate::diff::RepoPath;
use crate::error::Error;
use crate::rules;
use crate::symbols::{self, Definition, Kind, Symbols, Usage, Use};
use aho_corasick::AhoCorasick;
use std::cell::OnceCell;
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
/// Call sites of one name, at most.
const MAX_CALLS: usize = 10;
/// Uncertain uses of one name, at most.
const MAX_LOOSE: usize = 3;
/// Tests of one name, at most.
const MAX_TESTS: usize = 3;
/// Overrides of one method, at most.
const MAX_OVERRIDES: usize = 10;
/// Definitions of one name, at most. A name with more is too common to know which definition is
/// meant.
const MAX_DEFINITIONS: usize = 3;
/// Lines before and after a call.
const NEAR_CALL: u32 = 3;
/// Lines of a function that is included in full around a call, at most.
const CALLER_LINES: u32 = 12;
/// Lines of a test, at most.
const TEST_LINES: u32 = 25;

/// A definition or a use that the search found.
struct SearchHit {
    path: RepoPath,
    /// Line ranges in order, not overlapping.
    lines: Vec<RangeInclusive<u32>>,
    /// Alias that an import gives to the name; empty if it has none.
    alias: String,
    /// Function that contains a use, or type that an override is a member of.
    inside: String,
    /// Signature of a function definition.
    signature: Option<RangeInclusive<u32>>,
    /// Type that a definition is a member of; empty if it has none.
    owner: String,
    /// Modules that the qualifier of a use belongs to.
    qualified: Option<BTreeSet<String>>,
    /// True for a use that refers to a definition in the same file.
    is_own: bool,
    /// Line of the use, or first line of the definition.
    line: u32,
    is_test: bool,
    /// Kind of the use. A use outside functions is also a [`Usage::Mention`].
    usage: Usage,
    file: Rc<SourceNames>,
}

impl SearchHit {
    /// Returns true if a use of the name of a changed definition is uncertain, because the name is
    /// common.
    fn is_loose(&self, changed: &ChangedDefinition) -> bool {
        let is_mention = self.usage == Usage::Mention && changed.reach == Reach::Everywhere;
        changed.reach == Reach::Owner || is_mention && !is_distinct(&changed.name)
    }

    /// Returns true if a use likely refers to the changed definition in the file `own`. If its name
    /// has many `definitions`, only nearby uses likely refer to this one.
    fn may_refer_to(
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
}

/// Names in a file that help to resolve its uses.
#[derive(Default)]
struct SourceNames {
    imports: BTreeSet<String>,
    /// As in [`Symbols`].
    standard: BTreeSet<String>,
    /// As in [`Symbols`], for the changed names.
    modules: HashMap<String, BTreeSet<String>>,
    /// Owners of changed members that the file mentions.
    owners: HashSet<String>,
}

impl SourceNames {
    /// Returns true if a name in this file likely refers to the definition in a changed file.
    fn may_mean(&self, changed: &ChangedDefinition, own: &RepoPath) -> bool {
        self.imports.contains(&changed.name)
            || self.owners.contains(&changed.owner)
            || changed.owner.is_empty() && self.imports.contains(&stem(own))
    }

    /// Returns true if a name in this file refers to the standard library and not to a changed
    /// file.
    fn means_standard(&self, name: &str, own: &RepoPath) -> bool {
        self.standard.contains(name) && !names_file(&self.imports, own)
    }
}

/// Hits of the search, by name.
#[derive(Default)]
struct Hits {
    definitions: HashMap<String, Vec<SearchHit>>,
    uses: HashMap<String, Vec<SearchHit>>,
    /// Functions that are members of a type and have the name of a changed one.
    members: HashMap<String, Vec<SearchHit>>,
    /// Types that a type extends or implements.
    bases: HashMap<String, BTreeSet<String>>,
    /// True if uses are missing: a file has more than [`MAX_HITS`], or the search reached a limit.
    is_cut: bool,
    unread: UnreadFiles,
}

impl Hits {
    /// Returns the types that extend or implement a type, directly or indirectly.
    fn subtypes(&self, base: &str) -> HashSet<String> {
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

/// Results of the search for the prompt.
pub(super) struct FoundCode {
    pub(super) excerpts: Vec<Excerpt>,
    pub(super) beyond: Vec<Beyond>,
    pub(super) is_cut: bool,
    pub(super) unread: UnreadFiles,
}

/// The names that are searched for.
struct WantedNames<'t> {
    changed: HashSet<&'t str>,
    /// Types that changed names are members of.
    owners: HashSet<&'t str>,
    /// Functions and types whose definitions are searched for.
    used: HashSet<&'t str>,
    constants: HashSet<&'t str>,
    /// Identifiers of added lines.
    words: HashSet<&'t str>,
}

impl<'t> WantedNames<'t> {
    fn of(touched: &'t [Touched]) -> Self {
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

/// Finds definitions, uses and tests.
pub(super) fn find(group: &Group, touched: &[Touched], tree: &Tree<'_>) -> FoundCode {
    let wanted = WantedNames::of(touched);
    let hits = search(group, &wanted, tree);
    let mut builder = Builder {
        group,
        tree,
        wanted,
        excerpts: Vec::new(),
        beyond: Vec::new(),
        shown: HashMap::new(),
        project: OnceCell::new(),
    };
    for (file, touched) in touched.iter().enumerate() {
        builder.own(file, touched);
        for used in &touched.used {
            match used.need {
                Need::Use => builder.definition(Why::Definition, file, used, &hits),
                Need::Owner => builder.definition(Why::Owner, file, used, &hits),
                Need::Constant => builder.constant(file, used, touched, &hits),
                Need::Nearby => builder.definition(Why::Nearby, file, used, &hits),
            }
        }
        // A new file cannot break existing uses, and its own uses are in its chunk.
        let is_new = group.files[file].change.entry.old.is_none();
        for changed in touched.changed.iter().filter(|_| !is_new) {
            builder.overrides(file, changed, &hits);
            builder.uses(file, changed, &hits);
        }
    }
    let Builder {
        excerpts, beyond, ..
    } = builder;
    FoundCode {
        excerpts,
        beyond,
        is_cut: hits.is_cut,
        unread: hits.unread,
    }
}

/// Reads the files that may use or define the names, the nearest to the change first.
fn search(group: &Group, wanted: &WantedNames<'_>, tree: &Tree<'_>) -> Hits {
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

fn collect(
    path: &RepoPath,
    text: &[u8],
    symbols: &Symbols,
    wanted: &WantedNames<'_>,
    hits: &mut Hits,
) {
    let is_test = rules::is_test_path(path.as_bytes());
    let text = String::from_utf8_lossy(text);
    let lines: Vec<&str> = text.lines().collect();
    let file = Rc::new(SourceNames {
        imports: symbols.imports.clone(),
        standard: symbols.standard.clone(),
        modules: modules(symbols, wanted),
        owners: owners(symbols, wanted),
    });
    let origin = HitOrigin {
        path,
        is_test,
        file,
    };
    for name in &wanted.constants {
        for lines in constants::find(&text, name) {
            let hit = origin.definition(*lines.start(), vec![lines]);
            hits.definitions
                .entry((*name).to_owned())
                .or_default()
                .push(hit);
        }
    }
    let WantedNames {
        changed,
        used,
        words,
        ..
    } = wanted;
    for d in symbols
        .definitions
        .iter()
        .filter(|d| matches!(d.kind, Kind::Function | Kind::Type) && !d.is_local)
    {
        if used.contains(d.name.as_str()) || changed.contains(d.name.as_str()) {
            let hit = origin.definition(
                *d.lines.start(),
                head(d, &symbols.definitions, &lines, words),
            );
            let signature = (d.kind == Kind::Function).then(|| d.signature.clone());
            let owner = owner(symbols, d);
            hits.definitions
                .entry(d.name.clone())
                .or_default()
                .push(SearchHit {
                    signature,
                    owner,
                    ..hit
                });
        }
        let owner = if d.kind == Kind::Function {
            owner(symbols, d)
        } else {
            String::new()
        };
        if !owner.is_empty() && changed.contains(d.name.as_str()) {
            let hit = origin.definition(
                *d.lines.start(),
                head(d, &symbols.definitions, &lines, words),
            );
            hits.members
                .entry(d.name.clone())
                .or_default()
                .push(SearchHit {
                    inside: owner,
                    ..hit
                });
        }
    }
    for d in symbols.definitions.iter().filter(|d| !d.bases.is_empty()) {
        hits.bases
            .entry(d.name.clone())
            .or_default()
            .extend(d.bases.iter().cloned());
    }
    let uses = symbols.uses.iter().chain(&symbols.mentions);
    let mut uses: Vec<&Use> = uses
        .filter(|u| is_changed(&u.name, symbols, changed))
        .collect();
    hits.is_cut |= uses.len() > MAX_HITS;
    uses.truncate(MAX_HITS);
    uses.retain(|u| !symbols.is_local(path, u));
    for u in uses {
        let function = symbols.function_at(u.line);
        let name = symbols.original(&u.name);
        let hit = SearchHit {
            path: path.clone(),
            lines: vec![call(u.line, function, is_test)],
            alias: if name == u.name {
                String::new()
            } else {
                u.name.clone()
            },
            inside: function.map(|f| f.name.clone()).unwrap_or_default(),
            signature: None,
            owner: String::new(),
            qualified: symbols.modules_of(path, u),
            is_own: is_own(path, symbols, u),
            line: u.line,
            is_test,
            usage: if u.usage == Usage::Type && function.is_none() {
                Usage::Mention
            } else {
                u.usage
            },
            file: origin.file.clone(),
        };
        hits.uses.entry(name.to_owned()).or_default().push(hit);
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

struct Builder<'g, 't, 'r> {
    group: &'g Group,
    tree: &'t Tree<'r>,
    wanted: WantedNames<'g>,
    excerpts: Vec<Excerpt>,
    beyond: Vec<Beyond>,
    /// Positions in `excerpts`, by the changed file that they are about, their path and their first
    /// line.
    shown: HashMap<(usize, RepoPath, u32), usize>,
    /// Packages of the tree, read when they are first needed.
    project: OnceCell<PackageIndex>,
}

/// The subject of an excerpt.
struct ExcerptSubject<'n> {
    why: Why,
    file: usize,
    hunks: RangeInclusive<usize>,
    name: &'n str,
    /// As in [`Excerpt`].
    alias: &'n str,
}

impl Builder<'_, '_, '_> {
    /// Returns true if a file imports a name only from packages of other projects, so that the tree
    /// does not define it.
    fn is_foreign(&self, file: &RepoPath, modules: Option<&BTreeSet<String>>) -> bool {
        modules.is_some() && self.project().are_foreign(file, modules)
    }

    /// Returns true if each use of a name is qualified by a module or type of another project:
    /// `requests.get()`.
    fn is_of_others(&self, file: usize, used: &Used) -> bool {
        let file = &self.group.files[file];
        let Some(symbols) = file
            .symbols
            .new
            .as_deref()
            .filter(|_| !used.sites.is_empty())
        else {
            return false;
        };
        used.sites.iter().all(|site| {
            self.is_foreign(file.path(), symbols.modules_of(file.path(), site).as_ref())
        })
    }

    fn project(&self) -> &PackageIndex {
        self.project.get_or_init(|| {
            let paths = self.tree.paths().unwrap_or_default();
            PackageIndex::new(paths, |path| self.tree.bytes(path).ok())
        })
    }

    /// Adds the definitions in the file itself that its change uses.
    fn own(&mut self, file: usize, touched: &Touched) {
        let path = self.group.files[file].path().clone();
        let Ok(text) = self.tree.text(&path) else {
            return;
        };
        let lines: Vec<&str> = text.lines().collect();
        // A name that is imported under an alias is defined elsewhere.
        let used = touched
            .used
            .iter()
            .filter(|used| used.alias.is_empty() && !self.is_of_others(file, used));
        for used in used.collect::<Vec<_>>() {
            let is_nearby = used.need == Need::Nearby;
            let same = touched.own.iter().filter(|d| d.name == used.name);
            let same =
                same.filter(|d| d.kind == Kind::Function || d.kind == Kind::Type && !is_nearby);
            let why = match used.need {
                Need::Owner => Why::Owner,
                Need::Nearby => Why::Nearby,
                Need::Use | Need::Constant => Why::DefinitionHere,
            };
            for d in same.take(MAX_DEFINITIONS) {
                let shown = match is_nearby {
                    true => vec![d.signature.clone()],
                    false => head(d, &touched.own, &lines, &self.wanted.words),
                };
                let about = ExcerptSubject {
                    why,
                    file,
                    hunks: used.hunks.clone(),
                    name: &used.name,
                    alias: "",
                };
                self.push(&about, &path, &shown, "");
            }
        }
    }

    /// Adds the definition of a constant: in the file itself, or else the nearest ones.
    fn constant(&mut self, file: usize, used: &Used, touched: &Touched, hits: &Hits) {
        let own = self.group.files[file].path();
        let here = hits
            .definitions
            .get(&used.name)
            .into_iter()
            .flatten()
            .filter(|hit| hit.path == *own);
        let here: Vec<&SearchHit> = here.collect();
        if here.is_empty() || !used.alias.is_empty() {
            return self.definition(Why::Definition, file, used, hits);
        }
        let hidden = here
            .iter()
            .filter(|hit| !touched.spans.iter().any(|s| s.lines.contains(&hit.line)));
        for hit in hidden.take(MAX_DEFINITIONS) {
            let hunks = used.hunks.clone();
            let about = ExcerptSubject {
                why: Why::DefinitionHere,
                file,
                hunks,
                name: &used.name,
                alias: "",
            };
            self.push(&about, &hit.path, &hit.lines, "");
        }
    }

    /// Adds the definitions of a used name, if there are few. Of several, prefers those in files
    /// that the changed file imports.
    fn definition(&mut self, why: Why, file: usize, used: &Used, hits: &Hits) {
        let own = self.group.files[file].path();
        let Some(all) = hits
            .definitions
            .get(&used.name)
            .filter(|_| !self.is_of_others(file, used))
        else {
            return;
        };
        let is_renamed = !used.alias.is_empty();
        if !is_renamed && all.iter().any(|hit| hit.path == *own) {
            return;
        }
        let all = all
            .iter()
            .filter(|hit| symbols::share_names(own, &hit.path));
        // For calls in unchanged lines only, functions are enough.
        let mut all: Vec<&SearchHit> = all
            .filter(|hit| why != Why::Nearby || hit.signature.is_some())
            .collect();
        // Production code does not call tests.
        let may_be_test = rules::is_test_path(own.as_bytes()) && all.iter().all(|hit| hit.is_test);
        all.retain(|hit| may_be_test || !hit.is_test);
        all.sort_by_key(|hit| distance(own, &hit.path));
        if let Some(symbols) = &self.group.files[file].symbols.new {
            if all.len() > 1 && all.iter().any(|hit| is_imported(&hit.path, symbols)) {
                all.retain(|hit| is_imported(&hit.path, symbols));
            }
            if is_renamed {
                all.retain(|hit| hit.path != *own && imports(symbols, &hit.path));
            }
            if symbols.standard.contains(&used.name) {
                all.retain(|hit| imports(symbols, &hit.path));
            }
            if self.is_foreign(own, symbols.modules.get(used.in_file())) {
                return;
            }
            let types = types_before(symbols, used);
            if all.iter().any(|hit| types.contains(hit.owner.as_str())) {
                all.retain(|hit| types.contains(hit.owner.as_str()));
            }
        }
        if all.len() > MAX_DEFINITIONS {
            // Of many definitions, prefer those in the same folder.
            all.retain(|hit| distance(own, &hit.path) == 0);
        }
        if all.len() > MAX_DEFINITIONS {
            return;
        }
        for hit in all {
            let about = ExcerptSubject {
                why,
                file,
                hunks: used.hunks.clone(),
                name: &used.name,
                alias: &used.alias,
            };
            match hit.signature.as_ref().filter(|_| why == Why::Nearby) {
                Some(signature) => {
                    self.push(&about, &hit.path, std::slice::from_ref(signature), "")
                }
                None => self.push(&about, &hit.path, &hit.lines, ""),
            }
        }
    }

    /// Adds the methods of subtypes with the name of a changed method. Types are compared by name.
    fn overrides(&mut self, file: usize, changed: &ChangedDefinition, hits: &Hits) {
        let Some(all) = hits
            .members
            .get(&changed.name)
            .filter(|_| !changed.owner.is_empty())
        else {
            return;
        };
        let own = self.group.files[file].path().clone();
        let subtypes = hits.subtypes(&changed.owner);
        let all = all
            .iter()
            .filter(|hit| subtypes.contains(&hit.inside) && symbols::share_names(&own, &hit.path));
        let mut found: Vec<&SearchHit> = all.filter(|hit| !self.is_in_hunk(hit)).collect();
        found.sort_by_cached_key(|hit| {
            (
                hit.is_test,
                distance(&own, &hit.path),
                hit.path.clone(),
                hit.line,
            )
        });
        for hit in found.iter().take(MAX_OVERRIDES) {
            let hunks = changed.hunks.clone();
            let about = ExcerptSubject {
                why: Why::Override,
                file,
                hunks,
                name: &changed.name,
                alias: "",
            };
            self.push(&about, &hit.path, &hit.lines, &hit.inside);
        }
        let count = found.len().saturating_sub(MAX_OVERRIDES);
        self.leave(file, changed, Why::Override, count);
    }

    /// Records the number of omitted excerpts for a changed name.
    fn leave(&mut self, file: usize, changed: &ChangedDefinition, why: Why, count: usize) {
        if count > 0 {
            let (name, hunks) = (changed.name.clone(), changed.hunks.clone());
            self.beyond.push(Beyond {
                file,
                hunks,
                name,
                why,
                count,
            });
        }
    }

    /// Adds the uses and tests of a changed name.
    fn uses(&mut self, file: usize, changed: &ChangedDefinition, hits: &Hits) {
        let own = self.group.files[file].path().clone();
        let Some(all) = hits.uses.get(&changed.name) else {
            return;
        };
        let definitions = hits.definitions.get(&changed.name).map_or(0, Vec::len);
        let all: Vec<&SearchHit> = all
            .iter()
            .filter(|hit| symbols::share_names(&own, &hit.path))
            .filter(|hit| hit.may_refer_to(changed, &own, definitions))
            .filter(|hit| hit.path == own || !hit.file.means_standard(&changed.name, &own))
            .filter(|hit| {
                hit.path == own || !self.is_foreign(&hit.path, hit.file.modules.get(&changed.name))
            })
            .filter(|hit| !self.is_foreign(&hit.path, hit.qualified.as_ref()))
            .filter(|hit| hit.path == own || !hit.is_own)
            // Production code does not call tests.
            .filter(|hit| hit.is_test || !rules::is_test_path(own.as_bytes()))
            .collect();
        for (are_tests, most) in [(false, MAX_CALLS), (true, MAX_TESTS)] {
            let hits = self.ranked(
                &own,
                changed,
                all.iter()
                    .copied()
                    .filter(|h| h.is_test == are_tests)
                    .collect(),
            );
            let (loose, sure): (Vec<&SearchHit>, Vec<&SearchHit>) =
                hits.into_iter().partition(|hit| hit.is_loose(changed));
            let kept = sure.len().min(most);
            let few = loose.into_iter().take(MAX_LOOSE.min(most - kept));
            for hit in sure[..kept].iter().copied().chain(few) {
                let why = match are_tests {
                    true => Why::Test,
                    false if changed.breaks && !hit.is_loose(changed) => Why::CallOfNew,
                    false => Why::Call,
                };
                let hunks = changed.hunks.clone();
                let about = ExcerptSubject {
                    why,
                    file,
                    hunks,
                    name: &changed.name,
                    alias: &hit.alias,
                };
                self.push(&about, &hit.path, &hit.lines, &hit.inside);
            }
            // Do not count lines in hunks, because they are part of the change.
            let count = sure[kept..]
                .iter()
                .filter(|hit| !self.is_in_hunk(hit))
                .count();
            self.leave(
                file,
                changed,
                if are_tests { Why::Test } else { Why::Call },
                count,
            );
        }
    }

    /// Sorts uses. First come those outside hunks, then tests with the name in their own name,
    /// calls, uses in files that import the name, and the nearest. One use of each file comes
    /// before the second ones.
    fn ranked<'h>(
        &self,
        own: &RepoPath,
        changed: &ChangedDefinition,
        mut hits: Vec<&'h SearchHit>,
    ) -> Vec<&'h SearchHit> {
        let name = plain(&changed.name);
        hits.sort_by_cached_key(|hit| {
            let is_named = hit.is_test && plain(&hit.inside).contains(&name);
            let is_likely = hit.path == *own || hit.file.may_mean(changed, own);
            let rank = (
                self.is_in_hunk(hit),
                !is_named,
                hit.usage == Usage::Mention,
                !is_likely,
            );
            (rank, distance(own, &hit.path), hit.path.clone(), hit.line)
        });
        let mut seen = HashSet::new();
        hits.retain(|hit| seen.insert((&hit.path, hit.line)));
        let (best, rest): (Vec<&SearchHit>, Vec<&SearchHit>) = hits
            .into_iter()
            .partition(|hit| hit.usage != Usage::Mention && !self.is_in_hunk(hit));
        let mut ranked = one_a_file_first(best.into_iter());
        ranked.extend(one_a_file_first(rest.into_iter()));
        ranked
    }

    fn push(
        &mut self,
        about: &ExcerptSubject<'_>,
        path: &RepoPath,
        lines: &[RangeInclusive<u32>],
        inside: &str,
    ) {
        let first = lines.first().map_or(0, |l| *l.start());
        let key = (about.file, path.clone(), first);
        if let Some(known) = self
            .shown
            .get(&key)
            .and_then(|at| self.excerpts.get_mut(*at))
        {
            known.hunks = joined(&known.hunks, &about.hunks);
            if about.why >= known.why {
                return;
            }
            let was_signature = known.why == Why::Nearby;
            known.why = about.why;
            known.inside = if inside == about.name {
                String::new()
            } else {
                inside.to_owned()
            };
            if was_signature && let Ok(text) = self.tree.text(path) {
                let all: Vec<&str> = text.lines().collect();
                known.lines = lines
                    .iter()
                    .flat_map(|range| lines_of(&all, range))
                    .collect();
            }
            return;
        }
        let Ok(text) = self.tree.text(path) else {
            return;
        };
        let all: Vec<&str> = text.lines().collect();
        let excerpt = Excerpt {
            why: about.why,
            file: about.file,
            hunks: about.hunks.clone(),
            path: self.tree.name(path),
            name: about.name.to_owned(),
            alias: about.alias.to_owned(),
            inside: if inside == about.name {
                String::new()
            } else {
                inside.to_owned()
            },
            lines: lines
                .iter()
                .flat_map(|range| lines_of(&all, range))
                .collect(),
            first: BTreeSet::new(),
        };
        if excerpt.lines.is_empty() {
            return;
        }
        let is_use = matches!(about.why, Why::Call | Why::CallOfNew);
        let at = is_use
            .then(|| self.extend(&excerpt, &all))
            .flatten()
            .unwrap_or_else(|| {
                self.excerpts.push(excerpt);
                self.excerpts.len() - 1
            });
        self.shown.insert(key, at);
    }

    /// Merges the lines of a use into an adjacent excerpt of the same function. Returns the
    /// position of this excerpt, if there is one.
    fn extend(&mut self, new: &Excerpt, text: &[&str]) -> Option<usize> {
        let at = self.excerpts.iter().position(|old| is_beside(old, new))?;
        let old = &mut self.excerpts[at];
        let ((first, last), (start, end)) = (new.ends(), old.ends());
        old.lines = lines_of(text, &(start.min(first)..=end.max(last)));
        old.hunks = joined(&old.hunks, &new.hunks);
        if !old.name.split(", ").any(|known| known == new.name) {
            old.name = format!("{}, {}", old.name, new.name);
        }
        Some(at)
    }

    /// Returns true if a hunk contains the line.
    fn is_in_hunk(&self, hit: &SearchHit) -> bool {
        let file = self.group.files.iter().find(|f| *f.path() == hit.path);
        let mut lines = file
            .into_iter()
            .flat_map(|f| &f.hunks)
            .flat_map(|h| &h.lines);
        lines.any(|l| l.new.is_some_and(|n| n.get() == hit.line))
    }
}

/// Returns true if two excerpts of the same function overlap or are adjacent, and have the same
/// reason.
fn is_beside(one: &Excerpt, other: &Excerpt) -> bool {
    let ((start, end), (first, last)) = (one.ends(), other.ends());
    let is_same = (one.why, one.file) == (other.why, other.file)
        && (&one.path, &one.alias, &one.inside) == (&other.path, &other.alias, &other.inside);
    is_same && first <= end + 1 && start <= last + 1
}

/// Returns the original names of the types that qualify the uses of a name. Returns an empty set if
/// a use has no such qualifier.
fn types_before<'s>(symbols: &'s Symbols, used: &'s Used) -> BTreeSet<&'s str> {
    let are_types = used
        .sites
        .iter()
        .all(|site| site.qualifier.starts_with(|c: char| c.is_uppercase()));
    used.sites
        .iter()
        .filter(|_| are_types)
        .map(|site| symbols.original(&site.qualifier))
        .collect()
}

/// Returns a name in lower case and without punctuation, to compare the name of a test with its
/// subject.
fn plain(name: &str) -> String {
    name.chars()
        .filter(|c| c.is_alphanumeric())
        .flat_map(char::to_lowercase)
        .collect()
}

/// Moves the first hit of each file before the other hits.
fn one_a_file_first<'h>(hits: impl Iterator<Item = &'h SearchHit>) -> Vec<&'h SearchHit> {
    let (mut first, mut rest) = (Vec::new(), Vec::new());
    let mut seen: HashSet<&RepoPath> = HashSet::new();
    for hit in hits {
        if seen.insert(&hit.path) {
            first.push(hit)
        } else {
            rest.push(hit)
        }
    }
    first.extend(rest);
    first
}
