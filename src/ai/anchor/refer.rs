//! Determines which changed definition of a name an unchanged line uses, if there are several.
//!
//! The imports of the file and the qualifier before the name decide. If they do not, the claim gets
//! low confidence: types are not inferred.

use super::also::SentLine;
use super::text::identifiers;
use super::{Context, TreeFiles};
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
pub(super) struct NamedDefinition {
    /// Position in [`Group::files`](crate::ai::material::Group).
    pub(super) file: usize,
    pub(super) name: String,
    /// True if no other definition can be meant.
    pub(super) is_certain: bool,
}

/// Finds the changed definition that a line outside the changed lines names. Returns `None` if it
/// names none.
pub(super) fn changed(cx: &Context<'_>, line: &SentLine) -> Option<NamedDefinition> {
    let known = cx
        .group
        .files
        .iter()
        .find(|f| *f.path() == line.file)
        .and_then(|f| f.symbols.new.clone());
    let symbols = known.or_else(|| {
        cx.tree
            .and_then(|tree: &dyn TreeFiles| tree.symbols(&line.file))
    });
    let symbols: Arc<Symbols> = symbols.unwrap_or_default();
    let all = (0..cx.group.related.changed.len()).filter_map(|file| {
        let (name, word) = named_of_file(cx, file, line, &symbols)?;
        Some((file, name, word))
    });
    let all: Vec<(usize, &str, &str)> = all.collect();
    let (first, name, word) = *all.first()?;
    let files: Vec<usize> = all.iter().map(|(file, ..)| *file).collect();
    let usage = NameUse {
        line,
        symbols: &symbols,
        word,
    };
    let chosen = match all.iter().all(|(_, other, _)| *other == name) && !usage.is_local() {
        true => usage.meant(
            &files
                .iter()
                .map(|file| cx.group.files[*file].path())
                .collect::<Vec<_>>(),
        ),
        false => None,
    };
    Some(match chosen {
        Some(at) => NamedDefinition {
            file: files[at],
            name: name.to_owned(),
            is_certain: true,
        },
        None => NamedDefinition {
            file: first,
            name: name.to_owned(),
            is_certain: false,
        },
    })
}

/// Returns the first changed name of a file that a line contains, and the word of the line that
/// stands for it. `symbols` are those of the file of the line.
fn named_of_file<'n>(
    cx: &Context<'n>,
    file: usize,
    line: &'n SentLine,
    symbols: &Symbols,
) -> Option<(&'n str, &'n str)> {
    let names = cx.group.related.changed.get(file)?;
    if !symbols::share_names(cx.group.files.get(file)?.path(), &line.file) {
        return None;
    }
    names
        .iter()
        .filter(|name| name.len() >= NAME)
        .find_map(|name| {
            let word = identifiers(&line.text).find(|word| symbols.original(word) == name)?;
            Some((name.as_str(), word))
        })
}

/// The use of a name.
struct NameUse<'u> {
    line: &'u SentLine,
    /// Symbols of the file of the line.
    symbols: &'u Symbols,
    /// The name in the line.
    word: &'u str,
}

impl NameUse<'_> {
    /// Returns the position of the only file whose definition can be meant.
    fn meant(&self, files: &[&RepoPath]) -> Option<usize> {
        let qualifier = self.qualifier();
        let by_qualifier = only(files, |path| {
            qualifier.is_some_and(|q| q == stem(path)) && imports(self.symbols, path)
        });
        if by_qualifier.is_some() {
            return by_qualifier;
        }
        if self.is_defined_here() {
            return only(files, |path| *path == self.line.file);
        }
        if files.len() == 1 {
            return Some(0);
        }
        if files.iter().any(|path| self.is_imported(path)) {
            return only(files, |path| self.is_imported(path));
        }
        if files.iter().any(|path| imports(self.symbols, path)) {
            return only(files, |path| imports(self.symbols, path));
        }
        let is_packaged = PACKAGED
            .iter()
            .any(|end| self.line.file.as_bytes().ends_with(end.as_bytes()));
        if is_packaged {
            only(files, |path| folder(path) == folder(&self.line.file))
        } else {
            None
        }
    }

    /// Returns true if the file of the line imports something with the name of a file.
    fn is_imported(&self, path: &RepoPath) -> bool {
        self.symbols.imports.contains(&stem(path))
    }

    /// Returns true if the name is a parameter or local variable in the line.
    fn is_local(&self) -> bool {
        let number = self.line.number.get();
        let all = self.symbols.uses.iter().chain(&self.symbols.mentions);
        let mut here = all
            .filter(|u| u.line == number && u.name == self.word)
            .peekable();
        match here.peek() {
            Some(_) => here.all(|u| self.symbols.is_local(&self.line.file, u)),
            // In a macro or a text, names are not parsed as uses.
            None => self.qualifier().is_none() && self.symbols.is_bound(self.word, number),
        }
    }

    /// Returns true if the file of the line also defines the name in a scope that the line can use.
    fn is_defined_here(&self) -> bool {
        self.symbols
            .defined_for(self.word, self.line.number.get())
            .next()
            .is_some()
    }

    /// Returns the original name of the qualifier before the name: `store` in `store.load()`.
    fn qualifier(&self) -> Option<&str> {
        let at = self
            .line
            .text
            .match_indices(self.word)
            .find_map(|(at, _)| {
                let before = &self.line.text[..at];
                ["::", "->", "."]
                    .iter()
                    .find_map(|mark| before.strip_suffix(mark))
            })?;
        let word = at
            .rsplit(|c: char| !(c.is_alphanumeric() || c == '_'))
            .next()?;
        (!word.is_empty()).then(|| self.symbols.original(word))
    }
}

/// Returns the position of the only file that meets a condition. Returns `None` if there is not
/// exactly one.
fn only(files: &[&RepoPath], is_it: impl Fn(&RepoPath) -> bool) -> Option<usize> {
    let mut found = (0..files.len()).filter(|at| is_it(files[*at]));
    found.next().filter(|_| found.next().is_none())
}

fn folder(path: &RepoPath) -> &[u8] {
    let path = path.as_bytes();
    path.iter()
        .rposition(|b| *b == b'/')
        .map_or(&[], |end| &path[..end])
}
