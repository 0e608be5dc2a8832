//! Determines the parts of a file that a change touches: the functions around its hunks, and the
//! names that it defines or uses.

mod surroundings;

use super::common::{COMMON, is_common, is_distinct};
use super::constants::is_constant;
use super::head::{CONSTRUCTORS, words};
use super::{Excerpt, Why, lines_of};
use crate::ai::material::Shown;
use crate::diff::{Hunk, LineKind, RepoPath, TextChange};
use crate::symbols::{Definition, Kind, Symbols, Usage, Use};
use std::collections::{BTreeSet, HashSet};
use std::ops::RangeInclusive;
use surroundings::{around, functions_around, signatures, spans};

/// Names that the change of one file uses, at most.
const MAX_USED: usize = 48;
/// Uses of one name whose qualifiers are evaluated, at most.
const MAX_SITES: usize = 50;
/// Names that only unchanged lines near the changed ones call, at most.
const MAX_NEARBY: usize = 24;
/// Bytes of a name that is searched for, at least.
const MIN_NAME: usize = 3;

/// The parts of a file that a change touches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Touched {
    /// Lines on the new side to include, in order and not overlapping.
    pub(super) spans: Vec<TouchedLines>,
    /// Lines of the spans that are signatures of the functions and tests around changed lines.
    pub(super) signatures: BTreeSet<u32>,
    /// Definitions that contain changed lines.
    pub(super) changed: Vec<ChangedDefinition>,
    /// Names whose definitions help to understand added lines.
    pub(super) used: Vec<Used>,
    /// Identifiers of added lines.
    pub(super) words: HashSet<String>,
    /// Definitions on the new side that [`Touched::spans`] does not contain.
    pub(super) own: Vec<Definition>,
}

/// Lines of the changed file itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TouchedLines {
    pub(super) file: usize,
    pub(super) hunks: RangeInclusive<usize>,
    pub(super) why: Why,
    pub(super) lines: RangeInclusive<u32>,
}

/// A changed definition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ChangedDefinition {
    pub(super) name: String,
    /// From the first hunk that changes it to the last one.
    pub(super) hunks: RangeInclusive<usize>,
    /// True if the definition is removed or its signature changes, so that callers may break.
    pub(super) breaks: bool,
    /// The uses that likely refer to this definition.
    pub(super) reach: Reach,
    /// Type that it is a member of; empty if it has none.
    pub(super) owner: String,
}

/// The scope in which uses of a changed name are searched for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    /// These lines of the file: the definition is inside a function.
    Lines(u32, u32),
    /// Uses in other files only if the file names the owner, because the name is common.
    Owner,
    Everywhere,
}

/// A name whose definition is searched for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Used {
    /// Name in the definition.
    pub(super) name: String,
    /// Alias that an import of the file gives to it; empty if it has none.
    pub(super) alias: String,
    /// From the first hunk that uses it to the last one.
    pub(super) hunks: RangeInclusive<usize>,
    pub(super) need: Need,
    /// Uses that can have a qualifier; empty if there are other uses.
    pub(super) sites: Vec<Use>,
}

/// The reason why a definition is searched for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Need {
    /// An added line calls it, or names it as a type.
    Use,
    /// A changed function belongs to it, or names it in its signature.
    Owner,
    /// An added line names it, and it is written as a constant.
    Constant,
    /// Only unchanged lines near the changed ones call it.
    Nearby,
}

impl Used {
    /// Builds the use of a name in a file with these symbols.
    fn of(symbols: &Symbols, name: &str, hunk: usize, need: Need) -> Self {
        let original = symbols.original(name);
        let alias = if original == name {
            String::new()
        } else {
            name.to_owned()
        };
        Self {
            name: original.to_owned(),
            alias,
            hunks: hunk..=hunk,
            need,
            sites: Vec::new(),
        }
    }

    /// Returns the name that the file uses for it.
    pub(super) fn in_file(&self) -> &str {
        if self.alias.is_empty() {
            &self.name
        } else {
            &self.alias
        }
    }
}

impl TouchedLines {
    /// Returns the lines as an excerpt. Returns `None` if the range is outside the file.
    pub(super) fn excerpt(
        &self,
        path: &str,
        lines: &[&str],
        signatures: &BTreeSet<u32>,
    ) -> Option<Excerpt> {
        let first = signatures
            .iter()
            .copied()
            .filter(|line| self.lines.contains(line))
            .collect();
        let lines = lines_of(lines, &self.lines);
        (!lines.is_empty()).then(|| Excerpt {
            why: self.why,
            file: self.file,
            hunks: self.hunks.clone(),
            path: path.to_owned(),
            name: String::new(),
            alias: String::new(),
            inside: String::new(),
            lines,
            first,
        })
    }
}

impl Touched {
    /// Analyzes both sides of a change. `file` is the position of the file in the group. Returns an
    /// empty result if the file is not text or its content is incomplete. A new file has no spans,
    /// because its hunks contain everything.
    pub fn of(file: usize, shown: &Shown) -> Self {
        let change = &shown.change;
        let Some(text) = change.text() else {
            return Self::default();
        };
        let Some(new) = text.new.whole() else {
            return Self::default();
        };
        let path = change.path();
        let none = Symbols::default();
        let symbols = shown.symbols.new.as_deref().unwrap_or(&none);
        let edits: Vec<Edits> = text
            .hunks
            .iter()
            .map(|hunk| Edits::of(text, hunk))
            .collect();
        let is_new = change.entry.old.is_none();
        let spans = if is_new {
            Vec::new()
        } else {
            spans(file, new, symbols, &edits)
        };
        let old = shown.symbols.old.as_deref().unwrap_or(&none);
        let changed = if is_new {
            added(path, symbols)
        } else {
            changed(path, symbols, old, &edits)
        };
        let mut used = used(path, symbols, &edits);
        if !is_new {
            owners(symbols, &edits, &mut used);
        }
        let words = constants(text, symbols, &mut used);
        let signatures = if is_new {
            BTreeSet::new()
        } else {
            signatures(symbols, &edits)
        };
        if !is_new {
            nearby(path, symbols, &edits, &mut used);
        }
        let own = symbols
            .definitions
            .iter()
            .filter(|d| !spans.iter().any(|s| s.lines.contains(d.lines.start())));
        let own = own.filter(|_| !is_new).cloned().collect();
        Self {
            spans,
            signatures,
            changed,
            used,
            words,
            own,
        }
    }
}

/// The lines of a hunk.
#[derive(Default)]
struct Edits {
    /// Numbers on the new side.
    added: BTreeSet<u32>,
    /// Numbers on the old side.
    removed: BTreeSet<u32>,
    /// Lines on the new side next to removed ones, for hunks that only remove lines.
    beside: BTreeSet<u32>,
    /// Unchanged lines, by their numbers on the new side.
    context: BTreeSet<u32>,
}

impl Edits {
    fn of(text: &TextChange, hunk: &Hunk) -> Self {
        let mut edits = Self::default();
        let mut last = None;
        let mut follows = false;
        for line in text.lines(hunk) {
            let number = line.new.map(|n| n.get());
            match line.kind {
                LineKind::Added => edits.added.extend(number),
                LineKind::Removed => {
                    edits.removed.extend(line.old.map(|n| n.get()));
                    edits.beside.extend(last);
                    follows = true;
                    continue;
                }
                LineKind::Context => {
                    edits.context.extend(number);
                    edits.beside.extend(number.filter(|_| follows));
                }
            }
            (last, follows) = (number, false);
        }
        edits
    }

    /// Returns the lines on the new side that the hunk affects.
    fn places(&self) -> &BTreeSet<u32> {
        if self.added.is_empty() {
            &self.beside
        } else {
            &self.added
        }
    }
}

/// Returns the definitions of a new file that other files can use.
fn added(path: &RepoPath, new: &Symbols) -> Vec<ChangedDefinition> {
    let mut found: Vec<ChangedDefinition> = Vec::new();
    for definition in new.definitions.iter().filter(|d| matters(d) && !d.is_local) {
        if let Some(name) = called_as(new, definition) {
            let reach = reach(path, &name);
            let owner = owner(new, definition);
            add_changed(
                ChangedDefinition {
                    name,
                    hunks: 0..=0,
                    breaks: false,
                    reach,
                    owner,
                },
                &mut found,
            );
        }
    }
    found.retain(|c| c.name.len() >= MIN_NAME);
    found
}

/// Returns the definitions that the change edits, adds to or removes.
fn changed(
    path: &RepoPath,
    new: &Symbols,
    old: &Symbols,
    edits: &[Edits],
) -> Vec<ChangedDefinition> {
    let mut found: Vec<ChangedDefinition> = Vec::new();
    for (hunk, edits) in edits.iter().enumerate() {
        for (symbols, lines, is_old) in [(new, edits.places(), false), (old, &edits.removed, true)]
        {
            for line in lines {
                if let Some(value) = changed_value(path, symbols, *line, hunk) {
                    add_changed(value, &mut found);
                }
                let Some(definition) = symbols.enclosing(*line).find(|d| matters(d)) else {
                    continue;
                };
                let Some(name) = called_as(symbols, definition) else {
                    continue;
                };
                let is_signature = definition.signature.contains(line);
                let is_gone = is_old && !new.definitions.iter().any(|d| d.name == definition.name);
                // A new definition has no callers that could break.
                let is_known = old.definitions.iter().any(|d| d.name == definition.name);
                let breaks = is_gone || is_signature && is_known;
                let reach = match definition.is_local {
                    // For a removed definition, the function around it is not known on the new
                    // side.
                    true if is_old => continue,
                    true => function_around(symbols, definition),
                    false => reach(path, &name),
                };
                let owner = owner(symbols, definition);
                add_changed(
                    ChangedDefinition {
                        name,
                        hunks: hunk..=hunk,
                        breaks,
                        reach,
                        owner,
                    },
                    &mut found,
                );
            }
        }
    }
    found.retain(|c| c.name.len() >= MIN_NAME);
    found
}

/// Adds a changed name, or merges it into the known entry.
fn add_changed(changed: ChangedDefinition, found: &mut Vec<ChangedDefinition>) {
    match found.iter_mut().find(|f| f.name == changed.name) {
        Some(known) => {
            known.breaks |= changed.breaks;
            known.hunks = joined(&known.hunks, &changed.hunks);
            if matches!(known.reach, Reach::Lines(..)) {
                known.reach = changed.reach;
            }
        }
        None => found.push(changed),
    }
}

/// Returns the constant, variable or field that a line outside functions initializes, or the field
/// that a line of a method assigns.
fn changed_value(
    path: &RepoPath,
    symbols: &Symbols,
    line: u32,
    hunk: usize,
) -> Option<ChangedDefinition> {
    let at = symbols.values.partition_point(|v| v.line < line);
    let mut on_line = symbols.values[at..]
        .iter()
        .take_while(|v| v.line == line)
        .peekable();
    let is_inside = on_line.peek().is_some() && symbols.function_at(line).is_some();
    let value = on_line.find(|v| v.is_member || !is_inside)?;
    let owner = symbols
        .enclosing(line)
        .find(|d| d.kind == Kind::Type)
        .map_or(String::new(), |d| d.name.clone());
    // Names of fields are often used for other things too.
    let reach = if is_distinct(&value.name) {
        reach(path, &value.name)
    } else {
        Reach::Owner
    };
    Some(ChangedDefinition {
        name: value.name.clone(),
        hunks: hunk..=hunk,
        breaks: false,
        reach,
        owner,
    })
}

fn reach(path: &RepoPath, name: &str) -> Reach {
    if is_common(path, name) {
        Reach::Owner
    } else {
        Reach::Everywhere
    }
}

/// Returns the lines of the outermost function around a definition.
fn function_around(symbols: &Symbols, definition: &Definition) -> Reach {
    let functions = functions_around(symbols, *definition.lines.start());
    let lines = functions
        .last()
        .map_or(&definition.lines, |outer| &outer.lines);
    Reach::Lines(*lines.start(), *lines.end())
}

/// Returns the type that a definition is a member of, or an empty string.
pub(super) fn owner(symbols: &Symbols, definition: &Definition) -> String {
    if !definition.scope.is_empty() {
        return definition.scope.clone();
    }
    let mut around = symbols.enclosing(*definition.lines.start());
    let outer =
        around.find(|d| matches!(d.kind, Kind::Type | Kind::Group) && d.lines != definition.lines);
    outer.map_or(String::new(), |d| d.name.clone())
}

/// Returns the range from the first to the last hunk of both ranges.
pub(super) fn joined(
    one: &RangeInclusive<usize>,
    other: &RangeInclusive<usize>,
) -> RangeInclusive<usize> {
    *one.start().min(other.start())..=*one.end().max(other.end())
}

fn matters(definition: &Definition) -> bool {
    matches!(definition.kind, Kind::Function | Kind::Type)
}

/// Returns the name that callers use for a definition. For a constructor, this is the name of its
/// type.
fn called_as(symbols: &Symbols, definition: &Definition) -> Option<String> {
    if !CONSTRUCTORS.contains(&definition.name.as_str()) {
        return Some(definition.name.clone());
    }
    let outer = symbols
        .enclosing(*definition.lines.start())
        .find(|d| matches!(d.kind, Kind::Type | Kind::Group))?;
    Some(outer.name.clone())
}

/// Returns the names that added lines use, in order.
fn used(path: &RepoPath, symbols: &Symbols, edits: &[Edits]) -> Vec<Used> {
    let mut out = Vec::new();
    for (hunk, edits) in edits.iter().enumerate() {
        let uses = symbols
            .uses
            .iter()
            .filter(|u| edits.added.contains(&u.line));
        for symbol in uses.filter(|u| is_looked_up(path, symbols, u)) {
            add_used(
                symbols,
                &symbol.name,
                Some(symbol),
                hunk,
                Need::Use,
                &mut out,
            );
        }
    }
    out
}

/// Returns true if the definition of a use is worth searching for. In a shell script each command
/// is a call, so the script must define the function or read another script.
fn is_looked_up(path: &RepoPath, symbols: &Symbols, symbol: &Use) -> bool {
    let is_shell = path.as_bytes().ends_with(b"sh") || path.as_bytes().ends_with(b".bats");
    // A constructor that is called by its own name belongs to another type: `super().__init__()`.
    let is_constructor = CONSTRUCTORS.contains(&symbol.name.as_str());
    let is_long =
        symbol.name.len() >= MIN_NAME && !is_common(path, &symbol.name) && !is_constructor;
    is_long
        && (symbol.usage == Usage::Type
            || !is_shell
            || !symbols.imports.is_empty()
            || symbols.definitions.iter().any(|d| d.name == symbol.name))
}

/// Adds functions that only unchanged lines of hunks and of the functions around changed lines
/// call, the nearest to a change first.
fn nearby(path: &RepoPath, symbols: &Symbols, edits: &[Edits], used: &mut Vec<Used>) {
    let known: HashSet<String> = used.iter().map(|u| u.in_file().to_owned()).collect();
    let mut found: Vec<(u32, usize, &Use)> = Vec::new();
    for (hunk, edits) in edits.iter().enumerate() {
        let mut lines = edits.context.clone();
        let shown: HashSet<RangeInclusive<u32>> = edits
            .places()
            .iter()
            .flat_map(|p| around(symbols, *p))
            .collect();
        lines.extend(shown.into_iter().flatten());
        let calls = symbols.uses.iter().filter(|u| u.usage == Usage::Call);
        let calls = calls.filter(|u| lines.contains(&u.line) && !edits.added.contains(&u.line));
        let calls = calls.filter(|u| !known.contains(&u.name));
        for call in calls.filter(|u| is_looked_up(path, symbols, u)) {
            let away = edits
                .places()
                .iter()
                .map(|place| place.abs_diff(call.line))
                .min()
                .unwrap_or(u32::MAX);
            found.push((away, hunk, call));
        }
    }
    found.sort_unstable_by_key(|(away, hunk, call)| (*away, *hunk, call.name.as_str()));
    let mut nearby: Vec<Used> = Vec::new();
    for (_, hunk, call) in found {
        add_to(
            symbols,
            (&call.name, Some(call)),
            hunk,
            Need::Nearby,
            (&mut nearby, MAX_NEARBY),
        );
    }
    used.extend(nearby);
}

/// Adds a name, or another hunk that uses it. `site` is the use, if it can have a qualifier.
fn add_used(
    symbols: &Symbols,
    name: &str,
    site: Option<&Use>,
    hunk: usize,
    need: Need,
    used: &mut Vec<Used>,
) {
    add_to(symbols, (name, site), hunk, need, (used, MAX_USED));
}

/// Adds a name to a list, up to a maximum number of names.
fn add_to(
    symbols: &Symbols,
    (name, site): (&str, Option<&Use>),
    hunk: usize,
    need: Need,
    (used, most): (&mut Vec<Used>, usize),
) {
    if let Some(known) = used.iter_mut().find(|u| u.in_file() == name) {
        known.hunks = joined(&known.hunks, &(hunk..=hunk));
        match site.filter(|_| (1..MAX_SITES).contains(&known.sites.len())) {
            Some(site) => known.sites.push(site.clone()),
            None => known.sites.clear(),
        }
    } else if used.len() < most {
        let sites = site.cloned().into_iter().collect();
        used.push(Used {
            sites,
            ..Used::of(symbols, name, hunk, need)
        });
    }
}

/// Adds the types that changed functions belong to, and the types in their signatures.
fn owners(symbols: &Symbols, edits: &[Edits], used: &mut Vec<Used>) {
    for (hunk, edits) in edits.iter().enumerate() {
        let functions: BTreeSet<(u32, u32)> = edits
            .places()
            .iter()
            .filter_map(|line| symbols.function_at(*line))
            .map(|f| (*f.signature.start(), *f.signature.end()))
            .collect();
        for (first, last) in functions {
            let outer = symbols
                .enclosing(first)
                .find(|d| matches!(d.kind, Kind::Type | Kind::Group) && *d.lines.start() < first)
                .map(|d| (d.name.as_str(), None));
            let types = symbols
                .uses
                .iter()
                .filter(|u| u.usage == Usage::Type && (first..=last).contains(&u.line));
            let named = types.map(|u| (u.name.as_str(), Some(u)));
            for (name, site) in outer.into_iter().chain(named) {
                if name.len() >= MIN_NAME && !COMMON.contains(&name) {
                    add_used(symbols, name, site, hunk, Need::Owner, used);
                }
            }
        }
    }
}

/// Adds the constants that added lines name. Returns all identifiers of added lines.
fn constants(text: &TextChange, symbols: &Symbols, used: &mut Vec<Used>) -> HashSet<String> {
    let mut all = HashSet::new();
    for (hunk, lines) in text.hunks.iter().enumerate() {
        for line in text
            .lines(lines)
            .filter(|line| line.kind == LineKind::Added)
        {
            let line = String::from_utf8_lossy(line.text);
            for word in words(&line).collect::<BTreeSet<_>>() {
                if !all.contains(word) {
                    all.insert(word.to_owned());
                }
                if is_constant(word) {
                    add_used(symbols, word, None, hunk, Need::Constant, used);
                }
            }
        }
    }
    all
}
