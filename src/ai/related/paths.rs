//! Compares paths of files with names in imports, and with each other.

use crate::diff::RepoPath;
use crate::symbols::Symbols;
use std::collections::BTreeSet;

/// Returns true if a file with these symbols can import definitions of another file: its imports
/// name that file, or one of its folders, which can re-export them.
pub(in crate::ai) fn imports(symbols: &Symbols, path: &RepoPath) -> bool {
    names_file(&symbols.imports, path)
}

/// Returns true if the imports contain the name of a file or of one of its folders.
pub(super) fn names_file(imports: &BTreeSet<String>, path: &RepoPath) -> bool {
    imports.contains(&stem(path))
        || folders(path)
            .into_iter()
            .any(|folder| imports.contains(String::from_utf8_lossy(folder).as_ref()))
}

/// Returns the name of a file in imports: its name without the extension, or the name of its
/// folder.
pub(in crate::ai) fn stem(path: &RepoPath) -> String {
    let name = String::from_utf8_lossy(path.file_name()).into_owned();
    let stem = name.split('.').next().unwrap_or_default();
    if !["index", "mod", "lib", "__init__"].contains(&stem) && !path.as_bytes().ends_with(b".go") {
        return stem.to_owned();
    }
    let folder = path
        .as_bytes()
        .rsplit(|b| *b == b'/')
        .nth(1)
        .unwrap_or(stem.as_bytes());
    String::from_utf8_lossy(folder).into_owned()
}

/// Returns true if an import of a file with these symbols contains the name of another file.
pub(super) fn is_imported(path: &RepoPath, symbols: &Symbols) -> bool {
    symbols.imports.contains(&stem(path))
}

/// Returns the number of folders between two files.
pub(in crate::ai) fn distance(one: &RepoPath, other: &RepoPath) -> usize {
    let (one, other) = (folders(one), folders(other));
    let common = one.iter().zip(&other).take_while(|(a, b)| a == b).count();
    one.len() + other.len() - 2 * common
}

/// Returns the names of the folders that contain a file, the outermost first.
fn folders(path: &RepoPath) -> Vec<&[u8]> {
    let mut parts: Vec<&[u8]> = path.as_bytes().split(|b| *b == b'/').collect();
    parts.pop();
    parts
}
