//! Groups related files by their names alone: a source and its test, a header and its
//! implementation, the translations of one message file, a migration and its model.

use crate::ai::material::Shown;
use std::collections::BTreeMap;

/// Groups related files. The groups are in the order of the change, by their first files.
pub(super) fn clusters(files: &[Shown]) -> Vec<Vec<usize>> {
    let names: Vec<FileNameParts> = files
        .iter()
        .map(|f| FileNameParts::of(f.path().as_bytes()))
        .collect();
    let mut union = Union((0..files.len()).collect());
    let mut keys: BTreeMap<String, usize> = BTreeMap::new();
    for (i, name) in names.iter().enumerate() {
        for key in name.translation.iter().chain(&name.unit) {
            let first = *keys.entry(key.clone()).or_insert(i);
            union.join(first, i);
        }
    }
    sources_and_tests(&names, &mut union);
    migrations(&names, &mut union);
    let mut out: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for i in 0..files.len() {
        out.entry(union.root(i)).or_default().push(i);
    }
    out.into_values().collect()
}

/// Properties of a file, derived from its path.
struct FileNameParts {
    /// Folders, in lower case, without the file name.
    folders: Vec<String>,
    /// File name in lower case, without extension and test markers.
    stem: String,
    extension: String,
    is_test: bool,
    /// Key that the translations of one file share.
    translation: Option<String>,
    /// Key that a header and its implementation share.
    unit: Option<String>,
    is_migration: bool,
    /// Words of the file name.
    words: Vec<String>,
}

impl FileNameParts {
    fn of(path: &[u8]) -> Self {
        let original = String::from_utf8_lossy(path).into_owned();
        let path = original.to_ascii_lowercase();
        let (folder, file) = path.rsplit_once('/').unwrap_or(("", &path));
        let folders: Vec<String> = folder
            .split('/')
            .filter(|f| !f.is_empty())
            .map(str::to_owned)
            .collect();
        let (stem, extension) = file.split_once('.').unwrap_or((file, ""));
        let (stem, extension) = if stem.is_empty() {
            (file, "")
        } else {
            (stem, extension)
        };
        let tested = tested(stem, original.rsplit('/').next().unwrap_or_default());
        let marked = extension
            .split('.')
            .any(|p| matches!(p, "test" | "tests" | "spec" | "e2e"));
        let in_folder = folders.iter().any(|f| {
            matches!(
                f.as_str(),
                "test" | "tests" | "__tests__" | "spec" | "specs"
            )
        });
        let extension = extension.rsplit('.').next().unwrap_or_default().to_owned();
        let headers = [
            "h", "hh", "hpp", "hxx", "c", "cc", "cpp", "cxx", "m", "mm", "inl", "ipp",
        ];
        let unit = headers.contains(&extension.as_str()).then(|| {
            let folders = folders.iter().map(String::as_str);
            let folders =
                folders.filter(|f| !matches!(*f, "include" | "inc" | "src" | "source" | "lib"));
            format!("unit {} {stem}", folders.collect::<Vec<_>>().join("/"))
        });
        let is_migration = folders
            .iter()
            .any(|f| matches!(f.as_str(), "migrations" | "migration" | "migrate"));
        let words = stem
            .split(|c: char| !c.is_alphabetic())
            .filter(|w| w.len() > 2)
            .map(singular)
            .collect();
        Self {
            translation: translation(&folders, file),
            is_test: tested.is_some() || marked || in_folder,
            stem: tested.unwrap_or_else(|| stem.to_owned()),
            folders,
            extension,
            unit,
            is_migration,
            words,
        }
    }

    /// Returns the language and the folders that a source and its test have in common: folders such
    /// as `src` and `tests` are omitted.
    fn home(&self) -> (&str, Vec<&str>) {
        const APART: &[&str] = &[
            "test",
            "tests",
            "__tests__",
            "spec",
            "specs",
            "src",
            "source",
            "lib",
            "main",
        ];
        let folders = self
            .folders
            .iter()
            .map(String::as_str)
            .filter(|f| !APART.contains(f));
        (family(&self.extension), folders.collect())
    }

    /// Returns true if the file likely defines database models.
    fn is_model(&self) -> bool {
        const WORDS: &[&str] = &["model", "models", "entity", "entities", "schema", "schemas"];
        !self.is_migration
            && !self.is_test
            && self
                .folders
                .iter()
                .chain([&self.stem])
                .any(|name| WORDS.contains(&name.as_str()))
    }

    /// Returns the number of folders that two files share, from the end or from the start of their
    /// paths.
    fn nearness(&self, other: &Self) -> usize {
        let top = self
            .folders
            .iter()
            .zip(&other.folders)
            .take_while(|(a, b)| a == b)
            .count();
        let end = self
            .folders
            .iter()
            .rev()
            .zip(other.folders.iter().rev())
            .take_while(|(a, b)| a == b)
            .count();
        top.max(end) + usize::from(self.folders == other.folders)
    }
}

/// Returns the name of the subject of a test: `foo` for `test_foo`, `foo_test`, `FooTest`.
fn tested(stem: &str, original: &str) -> Option<String> {
    let without = ["test_", "test-"]
        .iter()
        .find_map(|p| stem.strip_prefix(p))
        .or_else(|| {
            ["_test", "_tests", "-test", "_spec", "-spec", "_unittest"]
                .iter()
                .find_map(|s| stem.strip_suffix(s))
        });
    without
        .map(str::to_owned)
        .or_else(|| tested_by_camel_case(original))
        .filter(|s| !s.is_empty())
}

/// Returns the name of the subject of a test in camel case, in lower case: `foo` for
/// `FooTest.java`.
fn tested_by_camel_case(file: &str) -> Option<String> {
    let stem = file.split('.').next()?;
    let stem = ["Tests", "Test", "Spec", "IT"]
        .iter()
        .find_map(|s| stem.strip_suffix(s))?;
    stem.ends_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit())
        .then(|| stem.to_ascii_lowercase())
}

/// Number of sources and tests of one name above which they are grouped by folder, without a search
/// for the nearest source.
const MANY: usize = 200;

/// Joins each test with the nearest source of the same name.
fn sources_and_tests(names: &[FileNameParts], union: &mut Union) {
    let mut by_stem: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (i, name) in names.iter().enumerate() {
        by_stem.entry(&name.stem).or_default().push(i);
    }
    for group in by_stem.values() {
        let (tests, sources): (Vec<usize>, Vec<usize>) =
            group.iter().copied().partition(|i| names[*i].is_test);
        if sources.len().min(tests.len()) > MANY {
            let mut by_folder: BTreeMap<(&str, Vec<&str>), usize> = BTreeMap::new();
            for source in &sources {
                by_folder.entry(names[*source].home()).or_insert(*source);
            }
            for test in tests {
                if let Some(source) = by_folder.get(&names[test].home()) {
                    union.join(*source, test);
                }
            }
            continue;
        }
        for test in tests {
            let test_name = &names[test];
            let alike = sources
                .iter()
                .filter(|s| family(&names[**s].extension) == family(&test_name.extension));
            if let Some(source) =
                alike.max_by_key(|s| (names[**s].nearness(test_name), std::cmp::Reverse(**s)))
            {
                union.join(*source, test);
            }
        }
    }
}

/// Returns a common name for the extensions of one language.
pub(super) fn family(extension: &str) -> &str {
    match extension {
        "ts" | "tsx" | "jsx" | "mjs" | "cjs" | "mts" | "cts" | "vue" | "svelte" => "js",
        "cc" | "cpp" | "cxx" | "h" | "hpp" | "hh" => "c",
        "kt" | "kts" | "scala" | "groovy" => "java",
        other => other,
    }
}

/// Joins each migration with the model that its name mentions, or with the models of its
/// application.
fn migrations(names: &[FileNameParts], union: &mut Union) {
    // The first model for each word, and for each folder.
    let (mut by_word, mut by_folder) = (
        BTreeMap::<&str, usize>::new(),
        BTreeMap::<&[String], usize>::new(),
    );
    for (i, model) in names.iter().enumerate().filter(|(_, n)| n.is_model()) {
        for word in &model.words {
            by_word.entry(word).or_insert(i);
        }
        by_folder.entry(&model.folders).or_insert(i);
    }
    for (i, migration) in names.iter().enumerate().filter(|(_, n)| n.is_migration) {
        let named = migration
            .words
            .iter()
            .filter_map(|w| by_word.get(w.as_str()))
            .min();
        // Django stores the migrations of an application next to its models.
        let model = named.or_else(|| {
            (1..migration.folders.len())
                .filter_map(|n| by_folder.get(&migration.folders[..n]))
                .min()
        });
        if let Some(model) = model {
            union.join(*model, i);
        }
    }
}

fn singular(word: &str) -> String {
    match word.strip_suffix("ies") {
        Some(stem) => format!("{stem}y"),
        None => word
            .strip_suffix('s')
            .filter(|s| !s.ends_with('s'))
            .unwrap_or(word)
            .to_owned(),
    }
}

/// Returns a key that the translations of one file share: `locales/*.json`, `values-*/strings.xml`.
fn translation(folders: &[String], file: &str) -> Option<String> {
    const HOMES: &[&str] = &[
        "locale",
        "locales",
        "lang",
        "langs",
        "languages",
        "i18n",
        "l10n",
        "translations",
        "translation",
        "messages",
        "po",
    ];
    let (stem, extension) = file.split_once('.')?;
    let texts = [
        "json",
        "yml",
        "yaml",
        "po",
        "properties",
        "xlf",
        "arb",
        "strings",
        "xml",
        "php",
        "ftl",
        "toml",
        "ts",
        "js",
        "resx",
        "stringsdict",
    ];
    if !texts.contains(&extension.rsplit('.').next().unwrap_or_default()) {
        return None;
    }
    let at_home = folders.iter().any(|f| HOMES.contains(&f.as_str()));
    // One folder per language: `locales/de/app.json`, `de.lproj/Localizable.strings`,
    // `values-de/strings.xml`.
    for (i, folder) in folders.iter().enumerate() {
        let android = folder == "values" || folder.strip_prefix("values-").is_some_and(is_language);
        let apple = folder
            .strip_suffix(".lproj")
            .is_some_and(|l| l == "base" || is_language(l));
        let plain = at_home && is_language(folder);
        if android && extension == "xml" || apple || plain {
            let mut all = folders.to_vec();
            all[i] = "*".to_owned();
            return Some(translation_key(&all, file));
        }
    }
    // One file per language: `locales/de.json`, `messages_de.properties`, `app.de.yml`.
    if at_home && is_language(stem) {
        return Some(translation_key(folders, &format!("*.{extension}")));
    }
    if let Some((base, end)) = stem.split_once('_')
        && is_language(end)
        && matches!(extension, "properties" | "arb")
    {
        return Some(translation_key(folders, &format!("{base}.{extension}")));
    }
    if let Some((language, rest)) = extension.split_once('.')
        && is_language(language)
        && (at_home || matches!(rest, "xlf" | "resx" | "yml" | "yaml"))
    {
        return Some(translation_key(folders, &format!("{stem}.{rest}")));
    }
    (matches!(extension, "properties" | "arb" | "resx" | "xlf"))
        .then(|| translation_key(folders, file))
}

/// Builds the key of a translation from its path without the language.
fn translation_key(folders: &[String], file: &str) -> String {
    format!("text {} {file}", folders.join("/"))
}

/// Returns true if a word has the format of a language tag: `de`, `pt-br`, `zh_hans`.
fn is_language(word: &str) -> bool {
    let mut parts = word.split(['-', '_']);
    let tag = parts
        .next()
        .is_some_and(|p| (2..=3).contains(&p.len()) && p.bytes().all(|b| b.is_ascii_alphabetic()));
    tag && parts.clone().count() <= 2
        && parts.all(|p| (2..=4).contains(&p.len()) && p.bytes().all(|b| b.is_ascii_alphanumeric()))
}

/// Disjoint sets of files. The smallest position represents each set.
struct Union(Vec<usize>);

impl Union {
    fn root(&mut self, i: usize) -> usize {
        let mut at = i;
        while self.0[at] != at {
            self.0[at] = self.0[self.0[at]];
            at = self.0[at];
        }
        at
    }

    fn join(&mut self, a: usize, b: usize) {
        let (a, b) = (self.root(a), self.root(b));
        let (low, high) = (a.min(b), a.max(b));
        self.0[high] = low;
    }
}
