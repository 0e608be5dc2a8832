//! Determines which changed definition of a name an unchanged line uses, if there are several.
//!
//! The imports of the file and the qualifier before the name decide. If they do not, the claim gets low confidence:
//! types are not inferred.

use super::also::Line;
use super::text::identifiers;
use super::{Context, Files};
use crate::ai::related::{imports, stem};
use crate::diff::RepoPath;
use crate::symbols::{self, Symbols};
use std::sync::Arc;

/// Bytes of a name that connects two lines, at least.
const NAME: usize = 3;
/// Extensions of languages in which files of one folder use each other's names without an import.
const PACKAGED: [&str; 3] = [".go", ".java", ".kt"];

/// A changed definition that a line names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Named {
    /// Position in [`Group::files`](crate::ai::material::Group).
    pub(super) file: usize,
    pub(super) name: String,
    /// True if no other definition can be meant.
    pub(super) is_certain: bool,
}

/// Finds the changed definition that a line outside the changed lines names. Returns `None` if it names none.
pub(super) fn changed(cx: &Context<'_>, line: &Line) -> Option<Named> {
    let known = cx.group.files.iter().find(|f| *f.path() == line.file).and_then(|f| f.symbols.new.clone());
    let symbols = known.or_else(|| cx.tree.and_then(|tree: &dyn Files| tree.symbols(&line.file)));
    let symbols: Arc<Symbols> = symbols.unwrap_or_default();
    let named = |file: usize| {
        let names = cx.group.related.changed.get(file)?;
        let may_share = symbols::share_names(cx.group.files.get(file)?.path(), &line.file);
        let word = |name: &String| identifiers(&line.text).find(|word| symbols.original(word) == name);
        let found = names.iter().filter(|_| may_share).filter(|name| name.len() >= NAME);
        found.filter_map(|name| Some((file, name, word(name)?))).next()
    };
    let all: Vec<(usize, &String, &str)> = (0..cx.group.related.changed.len()).filter_map(named).collect();
    let (first, name, word) = *all.first()?;
    let files: Vec<usize> = all.iter().map(|(file, ..)| *file).collect();
    let path = |file: usize| cx.group.files[file].path();
    let usage = Usage { line, symbols: &symbols, word };
    let chosen = match all.iter().all(|(_, other, _)| *other == name) && !usage.is_local() {
        true => usage.meant(&files.iter().map(|file| path(*file)).collect::<Vec<_>>()),
        false => None,
    };
    Some(match chosen {
        Some(at) => Named { file: files[at], name: name.clone(), is_certain: true },
        None => Named { file: first, name: name.clone(), is_certain: false },
    })
}

/// The use of a name.
struct Usage<'u> {
    line: &'u Line,
    /// Symbols of the file of the line.
    symbols: &'u Symbols,
    /// The name in the line.
    word: &'u str,
}

impl Usage<'_> {
    /// Returns the position of the only file whose definition can be meant.
    fn meant(&self, files: &[&RepoPath]) -> Option<usize> {
        let only = |is_it: &dyn Fn(&RepoPath) -> bool| {
            let mut found = (0..files.len()).filter(|at| is_it(files[*at]));
            found.next().filter(|_| found.next().is_none())
        };
        let qualifier = self.qualifier();
        let is_qualifier = |path: &RepoPath| qualifier.is_some_and(|q| q == stem(path)) && imports(self.symbols, path);
        if let Some(at) = only(&is_qualifier) {
            return Some(at);
        }
        let is_own = |path: &RepoPath| *path == self.line.file;
        if self.is_defined_here() {
            return only(&is_own);
        }
        if files.len() == 1 {
            return Some(0);
        }
        let is_imported = |path: &RepoPath| self.symbols.imports.contains(&stem(path));
        if files.iter().any(|path| is_imported(path)) {
            return only(&is_imported);
        }
        if files.iter().any(|path| imports(self.symbols, path)) {
            return only(&|path: &RepoPath| imports(self.symbols, path));
        }
        let is_beside = |path: &RepoPath| folder(path) == folder(&self.line.file);
        let is_packaged = PACKAGED.iter().any(|end| self.line.file.as_bytes().ends_with(end.as_bytes()));
        if is_packaged { only(&is_beside) } else { None }
    }

    /// Returns true if the name is a parameter or local variable in the line.
    fn is_local(&self) -> bool {
        let number = self.line.number.get();
        let all = self.symbols.uses.iter().chain(&self.symbols.mentions);
        let mut here = all.filter(|u| u.line == number && u.name == self.word).peekable();
        match here.peek() {
            Some(_) => here.all(|u| self.symbols.is_local(&self.line.file, u)),
            // In a macro or a text, names are not parsed as uses.
            None => self.qualifier().is_none() && self.symbols.is_bound(self.word, number),
        }
    }

    /// Returns true if the file of the line also defines the name in a scope that the line can use.
    fn is_defined_here(&self) -> bool {
        self.symbols.defined_for(self.word, self.line.number.get()).next().is_some()
    }

    /// Returns the original name of the qualifier before the name: `store` in `store.load()`.
    fn qualifier(&self) -> Option<&str> {
        let at = self.line.text.match_indices(self.word).find_map(|(at, _)| {
            let before = &self.line.text[..at];
            ["::", "->", "."].iter().find_map(|mark| before.strip_suffix(mark))
        })?;
        let word = at.rsplit(|c: char| !(c.is_alphanumeric() || c == '_')).next()?;
        (!word.is_empty()).then(|| self.symbols.original(word))
    }
}

fn folder(path: &RepoPath) -> &[u8] {
    let path = path.as_bytes();
    path.iter().rposition(|b| *b == b'/').map_or(&[], |end| &path[..end])
}
