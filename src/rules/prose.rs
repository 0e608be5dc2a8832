//! The purpose of a file's text: a program, prose, or a translation into other languages.
//!
//! Rules for hidden Unicode depend on it. Right-to-left controls and mixed names are normal in
//! prose and in translations, and reported everywhere else. A file of unknown type counts as a
//! program.

use super::language::Languages;

/// The purpose of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// Program text in a language whose strings and comments are known.
    Code,
    /// Data, configuration, templates, and every unknown type.
    Data,
    /// Program text that lists messages in other languages, so that its strings are a translation.
    Messages,
    Translation,
    Prose,
}

impl Purpose {
    /// Returns true for text in which names have meaning to a program.
    pub(super) fn is_strict(self) -> bool {
        matches!(self, Self::Code | Self::Data | Self::Messages)
    }
}

/// Languages without code, or in which the lexer does not detect strings.
const DATA: &[&str] = &[
    "html",
    "xml",
    "json",
    "yaml",
    "toml",
    "properties",
    "ini",
    "env",
    "css",
    "notebook",
    "sql",
    "dockerfile",
    "make",
    "nginx",
    "graphql",
    "markdown",
    "text",
    "vue",
    "batch",
];
/// Extensions of prose.
const PROSE: &[&str] = &[
    "md", "markdown", "mdown", "txt", "text", "rst", "adoc", "asciidoc", "asc", "org", "tex",
    "log", "textile", "pod", "man", "rtf",
];
/// Names of prose without an extension.
const PROSE_NAMES: &[&str] = &[
    "readme",
    "license",
    "licence",
    "copying",
    "notice",
    "changelog",
    "changes",
    "authors",
    "contributors",
    "news",
    "thanks",
    "description",
    "todo",
    "history",
];
/// Prefixes of `.txt` names that programs read.
const READ_BY_PROGRAMS: &[&str] = &[
    "cmakelists",
    "requirements",
    "constraints",
    "robots",
    "meson_options",
];
/// Extensions that only translations have.
const TRANSLATIONS: &[&str] = &[
    "po",
    "pot",
    "xlf",
    "xliff",
    "arb",
    "strings",
    "stringsdict",
    "xcstrings",
    "ftl",
    "resx",
    "resw",
    "lang",
    "lng",
    "tmx",
    "l20n",
];
/// Folders with translations.
const FOLDERS: &[&str] = &[
    "locale",
    "locales",
    "_locales",
    "i18n",
    "l10n",
    "lang",
    "langs",
    "language",
    "languages",
    "translation",
    "translations",
    "lc_messages",
    "nls",
    "intl",
    "localization",
    "localizations",
];
/// Extensions of data with translations in such folders.
const MESSAGE_DATA: &[&str] = &[
    "json",
    "json5",
    "jsonc",
    "yml",
    "yaml",
    "toml",
    "properties",
    "ini",
    "xml",
    "csv",
];
/// Names of configuration that such folders may also contain.
const CONFIGURATION: &[&str] = &[
    "package",
    "package-lock",
    "composer",
    "tsconfig",
    "jsconfig",
    "action",
    "project",
];
/// Codes of languages that are written from right to left.
const RIGHT_TO_LEFT: &[&str] = &[
    "ar", "fa", "he", "iw", "ur", "ps", "ku", "ckb", "sd", "ug", "yi", "dv", "arc", "azb", "pnb",
];

/// Returns the purpose of the text of a file.
pub(super) fn purpose(path: &[u8], languages: Languages) -> Purpose {
    let path = String::from_utf8_lossy(path).to_ascii_lowercase();
    let mut folders: Vec<&str> = path.split('/').collect();
    let name = folders.pop().unwrap_or_default();
    let (stem, extension) = name.rsplit_once('.').unwrap_or((name, ""));
    let is_code = !languages.is_empty() && !languages.any_of(DATA);
    if !folders.contains(&".github") && !CONFIGURATION.contains(&stem) {
        let is_data = MESSAGE_DATA.contains(&extension);
        let in_folder = folders
            .iter()
            .position(|f| FOLDERS.contains(f) || f.ends_with(".lproj"));
        // `res/values-fa/strings.xml`
        let android =
            extension == "xml" && folders.last().is_some_and(|f| f.starts_with("values-"));
        // `messages_fa.properties`, `app.fa.json`
        let end = stem.rsplit(['.', '_']).next().unwrap_or(stem);
        let right_to_left = is_data && (names_right_to_left(stem) || names_right_to_left(end));
        let by_extension = TRANSLATIONS.contains(&extension) && !is_code;
        if by_extension || android || right_to_left || (is_data && in_folder.is_some()) {
            return Purpose::Translation;
        }
        let named = in_folder.is_some_and(|at| {
            folders[at + 1..].iter().any(|f| is_locale(f))
                || is_locale(stem)
                || folders[at].ends_with(".lproj")
        });
        if is_code && named {
            return Purpose::Messages;
        }
    }
    // `requirements/dev.txt`
    let in_requirements = extension == "txt"
        && folders
            .last()
            .is_some_and(|f| matches!(*f, "requirements" | "constraints"));
    let read = in_requirements || READ_BY_PROGRAMS.iter().any(|n| name.starts_with(n));
    if !is_code && !read && (PROSE.contains(&extension) || PROSE_NAMES.contains(&name)) {
        return Purpose::Prose;
    }
    if is_code {
        Purpose::Code
    } else {
        Purpose::Data
    }
}

/// Returns true for `fa`, `ar-eg`, `he_il`.
fn names_right_to_left(stem: &str) -> bool {
    let code = stem.split(['-', '_']).next().unwrap_or(stem);
    RIGHT_TO_LEFT.contains(&code) && is_locale(stem)
}

/// Returns true for the code of a language, with or without a script and a region: `fa`,
/// `zh-hans-cn`, `pt_br`.
fn is_locale(name: &str) -> bool {
    let mut parts = name.split(['-', '_']);
    parts
        .next()
        .is_some_and(|p| matches!(p.len(), 2 | 3) && p.bytes().all(|b| b.is_ascii_lowercase()))
        && parts.all(|p| matches!(p.len(), 2..=4) && p.bytes().all(|b| b.is_ascii_alphanumeric()))
}

/// Returns true for data of tests. Data of a Unicode library has many unusual characters, and no
/// program executes it.
pub(super) fn is_test_data(path: &[u8]) -> bool {
    const EXTENSIONS: &str = "json jsonl xml html htm svg yml yaml toml ini properties css csv tsv txt snap dat data \
        bin golden out expected input output result md";
    let path = String::from_utf8_lossy(path).to_ascii_lowercase();
    let name = path.rsplit('/').next().unwrap_or(&path);
    let extension = name.rsplit_once('.').map_or("", |(_, e)| e);
    EXTENSIONS.split_ascii_whitespace().any(|e| e == extension)
        && super::role::is_test_path(path.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_known_prose_and_translations_are_lenient() {
        for (expected, paths) in [
            (
                Purpose::Data,
                &[
                    ".github/workflows/ci.yml",
                    ".github/locales/fa.yml",
                    "package.json",
                    "locales/package.json",
                    "pyproject.toml",
                    "index.html",
                    "src/App.vue",
                    "src/App.svelte",
                    "src/main.zig",
                    "CMakeLists.txt",
                    "requirements-dev.txt",
                    "requirements/dev.txt",
                    "services/a/constraints/base.txt",
                    "templates/mail.j2",
                    "a.unknown",
                    "Makefile",
                    "no.yml",
                    "data.csv",
                ][..],
            ),
            (
                Purpose::Code,
                &[
                    "contracts/Token.sol",
                    "a.py",
                    "src/i18n/index.ts",
                    "src/lang/parser.rs",
                    "tool.sh",
                ],
            ),
            (
                Purpose::Messages,
                &[
                    "src/locales/fa.ts",
                    "lang/ar/messages.php",
                    "app/i18n/he-IL.js",
                ],
            ),
            (
                Purpose::Translation,
                &[
                    "locales/fa.json",
                    "src/i18n/he.yaml",
                    "config/locales/ar.yml",
                    "public/locales/ar/common.json",
                    "po/fa.po",
                    "app/src/main/res/values-ar/strings.xml",
                    "lib/app_fa.arb",
                    "Base.lproj/Localizable.strings",
                    "src/main/resources/messages_fa.properties",
                    "app.fa-IR.json",
                    "a.xliff",
                    "locales/ar/app.ftl",
                ],
            ),
            (
                Purpose::Prose,
                &["README.md", "docs/a.rst", "notes.txt", "LICENSE", "CHANGES"],
            ),
        ] {
            for path in paths {
                assert_eq!(
                    purpose(path.as_bytes(), Languages::of(path.as_bytes(), b"")),
                    expected,
                    "{path}"
                );
            }
        }
    }
}
