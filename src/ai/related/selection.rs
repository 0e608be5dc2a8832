//! Selects the definitions, uses, overrides and tests of the names of a change that models get,
//! among the hits of the search.

use super::head::head;
use super::paths::{distance, imports, is_imported};
use super::project::PackageIndex;
use super::search::{Hits, MAX_DEFINITIONS, SearchHit, WantedNames, search};
use super::touched::{ChangedDefinition, Need, Touched, Used, joined};
use super::{Beyond, Excerpt, UnreadFiles, Why, lines_of};
use crate::ai::material::Group;
use crate::ai::tree::Tree;
use crate::diff::RepoPath;
use crate::rules;
use crate::symbols::{self, Kind, Symbols, Usage};
use std::cell::OnceCell;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::ops::RangeInclusive;

/// Results of the search for the prompt.
pub(super) struct FoundCode {
    pub(super) excerpts: Vec<Excerpt>,
    pub(super) beyond: Vec<Beyond>,
    pub(super) is_cut: bool,
    pub(super) unread: UnreadFiles,
}

/// Call sites of one name, at most.
const MAX_CALLS: usize = 10;

/// Uncertain uses of one name, at most.
const MAX_LOOSE: usize = 3;

/// Tests of one name, at most.
const MAX_TESTS: usize = 3;

/// Overrides of one method, at most.
const MAX_OVERRIDES: usize = 10;

/// Finds definitions, uses and tests.
pub(super) fn find(group: &Group, touched: &[Touched], tree: &Tree<'_>) -> FoundCode {
    let wanted = WantedNames::of(touched);
    let hits = search(group, &wanted, tree);
    let mut selection = ExcerptSelection {
        group,
        tree,
        wanted,
        excerpts: Vec::new(),
        beyond: Vec::new(),
        shown: HashMap::new(),
        project: OnceCell::new(),
    };
    for (file, touched) in touched.iter().enumerate() {
        selection.add_own(file, touched);
        for used in &touched.used {
            match used.need {
                Need::Use => selection.add_definition(Why::Definition, file, used, &hits),
                Need::Owner => selection.add_definition(Why::Owner, file, used, &hits),
                Need::Constant => selection.add_constant(file, used, touched, &hits),
                Need::Nearby => selection.add_definition(Why::Nearby, file, used, &hits),
            }
        }
        // A new file cannot break existing uses, and its own uses are in its chunk.
        let is_new = group.files[file].change.entry.old.is_none();
        for changed in touched.changed.iter().filter(|_| !is_new) {
            selection.add_overrides(file, changed, &hits);
            selection.add_uses(file, changed, &hits);
        }
    }
    let ExcerptSelection {
        excerpts, beyond, ..
    } = selection;
    FoundCode {
        excerpts,
        beyond,
        is_cut: hits.is_cut,
        unread: hits.unread,
    }
}

/// The excerpts for one change, as far as they are selected.
struct ExcerptSelection<'g, 't, 'r> {
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

impl ExcerptSelection<'_, '_, '_> {
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
    fn add_own(&mut self, file: usize, touched: &Touched) {
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
    fn add_constant(&mut self, file: usize, used: &Used, touched: &Touched, hits: &Hits) {
        let own = self.group.files[file].path();
        let here = hits
            .definitions
            .get(&used.name)
            .into_iter()
            .flatten()
            .filter(|hit| hit.path == *own);
        let here: Vec<&SearchHit> = here.collect();
        if here.is_empty() || !used.alias.is_empty() {
            return self.add_definition(Why::Definition, file, used, hits);
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

    /// Adds the definitions of a used name, if there are few.
    fn add_definition(&mut self, why: Why, file: usize, used: &Used, hits: &Hits) {
        for hit in self.likely_definitions(why, file, used, hits) {
            let about = ExcerptSubject {
                why,
                file,
                hunks: used.hunks.clone(),
                name: &used.name,
                alias: &used.alias,
            };
            match hit.signature.as_ref().filter(|_| why == Why::Nearby) {
                Some(signature) => {
                    self.push(&about, &hit.path, std::slice::from_ref(signature), "");
                }
                None => self.push(&about, &hit.path, &hit.lines, ""),
            }
        }
    }

    /// Returns the definitions that a used name likely refers to, the nearest first. Of several,
    /// prefers those in files that the changed file imports. Returns none if the file itself or
    /// another project defines the name, or if there are too many.
    fn likely_definitions<'h>(
        &self,
        why: Why,
        file: usize,
        used: &Used,
        hits: &'h Hits,
    ) -> Vec<&'h SearchHit> {
        let own = self.group.files[file].path();
        let symbols = self.group.files[file].symbols.new.as_deref();
        let all = hits.definitions.get(&used.name);
        let Some(all) = all.filter(|_| !self.is_of_others(file, used)) else {
            return Vec::new();
        };
        let is_own = used.alias.is_empty() && all.iter().any(|hit| hit.path == *own);
        let modules = symbols.and_then(|symbols| symbols.modules.get(used.in_file()));
        if is_own || self.is_foreign(own, modules) {
            return Vec::new();
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
        if let Some(symbols) = symbols {
            retain_imported(&mut all, own, symbols, used);
        }
        if all.len() > MAX_DEFINITIONS {
            // Of many definitions, prefer those in the same folder.
            all.retain(|hit| distance(own, &hit.path) == 0);
        }
        if all.len() > MAX_DEFINITIONS {
            return Vec::new();
        }
        all
    }

    /// Adds the methods of subtypes with the name of a changed method. Types are compared by name.
    fn add_overrides(&mut self, file: usize, changed: &ChangedDefinition, hits: &Hits) {
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
        self.record_omitted(file, changed, Why::Override, count);
    }

    /// Records the number of omitted excerpts for a changed name.
    fn record_omitted(&mut self, file: usize, changed: &ChangedDefinition, why: Why, count: usize) {
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
    fn add_uses(&mut self, file: usize, changed: &ChangedDefinition, hits: &Hits) {
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
            self.record_omitted(
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

    /// Adds an excerpt, or merges it into the one that starts at the same line.
    fn push(
        &mut self,
        about: &ExcerptSubject<'_>,
        path: &RepoPath,
        lines: &[RangeInclusive<u32>],
        inside: &str,
    ) {
        // A function does not contain itself.
        let inside = if inside == about.name { "" } else { inside };
        let first = lines.first().map_or(0, |l| *l.start());
        let key = (about.file, path.clone(), first);
        if let Some(at) = self.shown.get(&key).copied() {
            return self.merge(at, about, path, lines, inside);
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
            inside: inside.to_owned(),
            lines: lines_of_ranges(&all, lines),
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

    /// Merges a subject into the excerpt that starts at the same line. The more useful reason
    /// decides. An excerpt that was only a signature gets all lines.
    fn merge(
        &mut self,
        at: usize,
        about: &ExcerptSubject<'_>,
        path: &RepoPath,
        lines: &[RangeInclusive<u32>],
        inside: &str,
    ) {
        let Some(known) = self.excerpts.get_mut(at) else {
            return;
        };
        known.hunks = joined(&known.hunks, &about.hunks);
        if about.why >= known.why {
            return;
        }
        let was_signature = known.why == Why::Nearby;
        known.why = about.why;
        known.inside = inside.to_owned();
        if was_signature && let Ok(text) = self.tree.text(path) {
            let all: Vec<&str> = text.lines().collect();
            known.lines = lines_of_ranges(&all, lines);
        }
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

/// Removes the definitions that a used name of the file `own` does not refer to, as far as its
/// imports and the types before the name tell.
fn retain_imported(all: &mut Vec<&SearchHit>, own: &RepoPath, symbols: &Symbols, used: &Used) {
    if all.len() > 1 && all.iter().any(|hit| is_imported(&hit.path, symbols)) {
        all.retain(|hit| is_imported(&hit.path, symbols));
    }
    if !used.alias.is_empty() {
        all.retain(|hit| hit.path != *own && imports(symbols, &hit.path));
    }
    if symbols.standard.contains(&used.name) {
        all.retain(|hit| imports(symbols, &hit.path));
    }
    let types = types_before(symbols, used);
    if all.iter().any(|hit| types.contains(hit.owner.as_str())) {
        all.retain(|hit| types.contains(hit.owner.as_str()));
    }
}

/// Returns the lines of several ranges of a file, with their numbers.
fn lines_of_ranges(lines: &[&str], ranges: &[RangeInclusive<u32>]) -> Vec<(u32, String)> {
    ranges
        .iter()
        .flat_map(|range| lines_of(lines, range))
        .collect()
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
            first.push(hit);
        } else {
            rest.push(hit);
        }
    }
    first.extend(rest);
    first
}
