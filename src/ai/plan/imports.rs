//! Joins the files of a tree that import each other, so that a model sees both in one request.
//!
//! Only a file that few others import is joined: one that half of the tree imports belongs to none
//! of them. Which files are joined depends on their names and contents alone.

use super::affinity::family;
use crate::ai::material::Shown;
use crate::diff::RepoPath;
use crate::symbols::{self, Symbols};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

/// Bytes of the files of a group whose imports are read, at most: the size of the cache of symbols,
/// so that the search for related code parses no file again.
const MOST_BYTES: usize = 24 << 20;
/// Files that import a file which is joined with one of them, at most.
const MOST_IMPORTERS: usize = 2;
/// Files that are joined, at most.
const MOST_FILES: usize = 8;
/// Files of one name that a module is compared with, at most.
const MOST_ALIKE: usize = 64;
/// Names of files that stand for their folder.
const FOLDER_FILES: [&str; 3] = ["index", "__init__", "mod"];

/// Joins clusters of files by imports. `band_of` returns the band of a file: only files of one band
/// are joined. The clusters stay in the order of their first files.
pub(super) fn join<B: PartialEq>(
    files: &[Shown],
    clusters: Vec<Vec<usize>>,
    (symbols, band_of): (&symbols::Cache, &dyn Fn(usize) -> B),
) -> Vec<Vec<usize>> {
    let importers = importers(files, symbols, band_of);
    let mut cluster_of: Vec<usize> = vec![0; files.len()];
    for (at, cluster) in clusters.iter().enumerate() {
        for file in cluster {
            cluster_of[*file] = at;
        }
    }
    let mut clusters = clusters;
    for (imported, importers) in importers {
        let Some(first) = importers
            .first()
            .filter(|_| importers.len() <= MOST_IMPORTERS)
        else {
            continue;
        };
        let (a, b) = (cluster_of[imported], cluster_of[*first]);
        if a == b || clusters[a].len() + clusters[b].len() > MOST_FILES {
            continue;
        }
        let (to, from) = (a.min(b), a.max(b));
        let moved = std::mem::take(&mut clusters[from]);
        for file in &moved {
            cluster_of[*file] = to;
        }
        clusters[to].extend(moved);
        clusters[to].sort_unstable();
    }
    clusters.retain(|cluster| !cluster.is_empty());
    clusters.sort_by_key(|cluster| cluster.first().copied());
    clusters
}

/// Returns the files that import each file, of the same band.
fn importers<B: PartialEq>(
    files: &[Shown],
    symbols: &symbols::Cache,
    band_of: &dyn Fn(usize) -> B,
) -> BTreeMap<usize, BTreeSet<usize>> {
    let index = ModuleIndex::of(files);
    let mut importers: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
    let mut bytes = 0;
    for (importer, file) in files.iter().enumerate() {
        if !symbols::is_supported(file.path()) {
            continue;
        }
        let text = file.change.text().map_or(&[][..], |text| text.new.known());
        bytes += text.len();
        if bytes > MOST_BYTES {
            break;
        }
        let Some(symbols): Option<Arc<Symbols>> = symbols.read(file.path(), text) else {
            continue;
        };
        let named = symbols.modules.values().chain(symbols.whole.values());
        let modules: BTreeSet<&String> = named.flatten().collect();
        for module in modules {
            let imported = index.find(file.path(), module);
            let imported = imported.filter(|i| *i != importer && band_of(*i) == band_of(importer));
            if let Some(imported) = imported {
                importers.entry(imported).or_default().insert(importer);
            }
        }
    }
    importers
}

/// The files of a tree by the names under which others import them.
struct ModuleIndex {
    /// Paths without extensions and without the name of a file that stands for its folder, with the
    /// extension, by their last part.
    by_name: HashMap<String, Vec<ModuleFile>>,
}

/// A file that can be imported.
struct ModuleFile {
    file: usize,
    stem: String,
    extension: String,
}

impl ModuleIndex {
    fn of(files: &[Shown]) -> Self {
        let mut by_name: HashMap<String, Vec<ModuleFile>> = HashMap::new();
        for (file, shown) in files.iter().enumerate() {
            let (stem, extension) = parts_of(shown.path());
            let name = stem.rsplit('/').next().unwrap_or_default().to_owned();
            by_name.entry(name).or_default().push(ModuleFile {
                file,
                stem,
                extension,
            });
        }
        Self { by_name }
    }

    /// Returns the file that a module of an import names, if it is certain: the only one of the same
    /// language whose path ends like the module.
    fn find(&self, importer: &RepoPath, module: &str) -> Option<usize> {
        let (folder, extension) = folder_and_extension(importer);
        if module.starts_with('.') {
            let path = relative(&folder, module)?;
            // `./a.test` names `a.test.ts`, and `./a.js` names `a.ts` in TypeScript.
            let name = path.rfind('/').map_or(0, |slash| slash + 1);
            let shorter = path[name..].rfind('.').map(|dot| &path[..name + dot]);
            let mut paths = [Some(path.as_str()), shorter].into_iter().flatten();
            return paths.find_map(|path| self.only(&extension, |stem| stem == path, path));
        }
        let path = module.replace('.', "/");
        // The last part of a module can be a name in the file.
        let outer = path.rsplit_once('/').map(|(outer, _)| outer);
        [Some(path.as_str()), outer]
            .into_iter()
            .flatten()
            .find_map(|path| {
                let tail = format!("/{path}");
                let is_long = path.contains('/');
                let matches = |stem: &str| {
                    // A single word can be a package of another project.
                    stem == path
                        || is_long && stem.ends_with(&tail)
                        || !is_long && stem.strip_suffix(&tail) == Some(folder.as_str())
                };
                self.only(&extension, matches, path)
            })
    }

    /// Returns the only file that matches, by the last part of `path`.
    fn only(&self, extension: &str, matches: impl Fn(&str) -> bool, path: &str) -> Option<usize> {
        let name = path.rsplit('/').next()?;
        let alike = self.by_name.get(name).filter(|a| a.len() <= MOST_ALIKE)?;
        let mut found = alike
            .iter()
            .filter(|f| family(&f.extension) == family(extension) && matches(&f.stem));
        let first = found.next()?;
        found.next().is_none().then_some(first.file)
    }
}

/// Returns the path of a file without its last extension, and without a name that stands for its
/// folder; and that extension. `a.ts`, `a.test.ts` and `a.d.ts` are different modules.
fn parts_of(path: &RepoPath) -> (String, String) {
    let path = String::from_utf8_lossy(path.as_bytes()).into_owned();
    let start = path.rfind('/').map_or(0, |slash| slash + 1);
    let dot = path[start..]
        .rfind('.')
        .map_or(path.len(), |dot| start + dot);
    let extension = path[dot..].trim_start_matches('.').to_owned();
    let stem = &path[..dot];
    let stem = match stem.rsplit_once('/') {
        Some((folder, name)) if FOLDER_FILES.contains(&name) => folder,
        _ => stem,
    };
    (stem.to_owned(), extension)
}

/// Returns the folder of a file and its extension.
fn folder_and_extension(path: &RepoPath) -> (String, String) {
    let (_, extension) = parts_of(path);
    let path = String::from_utf8_lossy(path.as_bytes()).into_owned();
    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
    (folder.to_owned(), extension)
}

/// Returns the path that a relative module names: `./config` and `../lib/a.js` of JavaScript,
/// `.config` and `..lib.a` of Python. An extension stays. `None` if it is outside of the tree.
fn relative(folder: &str, module: &str) -> Option<String> {
    let dots = module.bytes().take_while(|b| *b == b'.').count();
    let is_path = module[dots..].starts_with('/');
    let rest = match is_path {
        true => module.to_owned(),
        false => format!(
            "{}{}",
            "../".repeat(dots - 1),
            module[dots..].replace('.', "/")
        ),
    };
    let mut parts: Vec<&str> = folder.split('/').filter(|p| !p.is_empty()).collect();
    for part in rest.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            part => parts.push(part),
        }
    }
    Some(parts.join("/")).filter(|path| !path.is_empty())
}

#[cfg(test)]
mod tests {
    use super::super::tests::file;
    use super::*;

    #[test]
    fn a_relative_module_is_a_path_below_the_tree() {
        for (folder, module, path) in [
            ("src/app", "./config", Some("src/app/config")),
            ("src/app", "../lib/a.js", Some("src/lib/a.js")),
            ("src/app", "../..", None),
            ("src/app/x", "../..", Some("src")),
            ("src/app", ".config", Some("src/app/config")),
            ("src/app", "..lib.a", Some("src/lib/a")),
            ("", "./a", Some("a")),
            ("", "../a", None),
            ("src", "...a.b", None),
        ] {
            assert_eq!(relative(folder, module).as_deref(), path, "{module}");
        }
    }

    #[test]
    fn a_file_that_stands_for_its_folder_is_imported_by_the_folder() {
        let parts = |path: &str| parts_of(&RepoPath::from(path));
        let expected = |stem: &str, extension: &str| (stem.to_owned(), extension.to_owned());
        assert_eq!(parts("src/app/index.ts"), expected("src/app", "ts"));
        assert_eq!(parts("lib/app/__init__.py"), expected("lib/app", "py"));
        assert_eq!(parts("src/app.test.ts"), expected("src/app.test", "ts"));
        assert_eq!(parts("src/index.test.ts"), expected("src/index.test", "ts"));
        assert_eq!(parts("src/Makefile"), expected("src/Makefile", ""));
    }

    #[test]
    fn a_module_names_one_of_the_files_whose_names_differ_after_the_first_dot() {
        let paths = ["a.d.ts", "a.test.ts", "a.ts", "b.ts"];
        let files = paths.map(|path| file(path, &[1]));
        let index = ModuleIndex::of(&files);
        for (module, path) in [
            ("./a", Some("a.ts")),
            ("./a.js", Some("a.ts")),
            ("./a.test", Some("a.test.ts")),
            ("./a.test.js", Some("a.test.ts")),
            ("./b.test", Some("b.ts")),
            ("./c", None),
        ] {
            let found = index.find(&RepoPath::from("b.ts"), module);
            assert_eq!(found.map(|file| paths[file]), path, "{module}");
        }
    }
}
