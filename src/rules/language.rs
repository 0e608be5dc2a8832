//! The languages of a file, by its path, its well-known name and its first line.

use super::MARK;
use super::format::LANGUAGES;

/// A set of languages, with one bit each in the order of [`LANGUAGES`]. A file can be in several: a
/// workflow is YAML too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Languages(u64);

impl Languages {
    pub(crate) const NONE: Self = Self(0);

    /// Takes the bits.
    pub(crate) const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    /// Returns the set of one language; `None` for an unknown name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        LANGUAGES
            .iter()
            .position(|l| *l == name)
            .map(|i| Self(1 << i))
    }

    pub(crate) fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns true if the sets share a language.
    pub(crate) fn overlaps(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Returns the set without the languages of another.
    #[must_use]
    pub(super) fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Returns true if the set has a language that the other lacks.
    pub(crate) fn goes_beyond(self, other: Self) -> bool {
        self.0 & !other.0 != 0
    }

    /// Returns true if one of the named languages is in the set.
    pub(crate) fn any_of(self, names: &[&str]) -> bool {
        self.names().any(|n| names.contains(&n))
    }

    /// Returns the set with another added.
    #[must_use]
    pub(crate) fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns the names.
    pub(crate) fn names(self) -> impl Iterator<Item = &'static str> {
        LANGUAGES
            .iter()
            .enumerate()
            .filter(move |(i, _)| self.0 >> i & 1 == 1)
            .map(|(_, n)| *n)
    }

    /// Returns every language as which a file can be read: by its whole name, by the start of its
    /// name, by its extension, by the extension below that of a template or a copy, and by its
    /// interpreter. Tools select a file by any of these, so none removes the rules of another:
    /// `Dockerfile.py` is a Dockerfile and Python.
    ///
    /// `start` is the first line of the file, or empty if it is unknown.
    pub(crate) fn of(path: &[u8], start: &[u8]) -> Self {
        let name = match memchr::memrchr(b'/', path) {
            Some(i) => &path[i + 1..],
            None => path,
        };
        let name = String::from_utf8_lossy(name).to_ascii_lowercase();
        // Qt keeps its translations in files of the same extension as TypeScript.
        if name.ends_with(".ts") && is_qt_translation(start) {
            return Self::of_names(&["xml"]);
        }
        let set =
            Self::of_name(&name).with(by_interpreter(start).map_or(Self::NONE, Self::of_names));
        let action = matches!(name.as_str(), "action.yml" | "action.yaml");
        let is_workflow = set.any_of(&["yaml"])
            && (is_in_folder(path, b".github/workflows/")
                || is_in_folder(path, b".github/actions/")
                || action);
        if is_workflow {
            return Self::named("github-workflow").map_or(set, |w| set.with(w));
        }
        set
    }

    /// Returns the languages of a file name in lower case.
    fn of_name(name: &str) -> Self {
        let mut set = Self::NONE;
        // Windows drops blanks and dots at the end of a name, and editors append `~` to the name of
        // a copy.
        let mut name = name.trim_end_matches([' ', '.', '~']);
        loop {
            if let Some(names) = by_name(name) {
                // A whole name makes the extension irrelevant: `CMakeLists.txt` is not prose.
                return set.with(Self::of_names(names));
            }
            set = set.with(by_prefix(name).map_or(Self::NONE, Self::of_names));
            let Some((stem, extension)) = name.rsplit_once('.') else {
                return set;
            };
            set = set.with(by_extension(extension).map_or(Self::NONE, Self::of_names));
            if !is_wrapper(extension) {
                return set;
            }
            name = stem;
        }
    }

    /// Returns the set of these languages, without unknown names.
    pub(super) fn of_names(names: &[&str]) -> Self {
        names
            .iter()
            .filter_map(|n| Self::named(n))
            .fold(Self::NONE, Self::with)
    }
}

fn by_name(name: &str) -> Option<&'static [&'static str]> {
    Some(match name {
        "dockerfile" | "containerfile" => &["dockerfile"],
        "makefile" | "gnumakefile" | "kbuild" | "justfile" => &["make"],
        "gemfile" | "rakefile" | "vagrantfile" | "podfile" | "fastfile" | "brewfile"
        | "guardfile" | "capfile" => &["ruby"],
        "jenkinsfile" => &["groovy"],
        "pipfile" | "cargo.lock" | "poetry.lock" | "uv.lock" => &["toml"],
        "sconstruct" | "sconscript" | "wscript" | "build" | "build.bazel" | "workspace"
        | "tiltfile" => &["python"],
        "composer.lock" | "package-lock.json" | ".babelrc" | ".eslintrc" | ".prettierrc" => {
            &["json"]
        }
        "nginx.conf" => &["nginx"],
        "cmakelists.txt" => &[],
        ".bashrc" | ".bash_profile" | ".profile" | ".zshrc" | ".zprofile" | ".zshenv"
        | ".envrc" | "pkgbuild" => &["shell"],
        ".env" => &["env"],
        ".npmrc" | ".yarnrc" | ".pypirc" | ".netrc" | ".gitconfig" | ".editorconfig"
        | ".flaskenv" => &["ini"],
        "description" | "readme" | "license" | "copying" | "notice" | "changelog" | "authors" => {
            &["text"]
        }
        _ => return None,
    })
}

/// Returns the languages of names to which people append text: `Dockerfile.dev`, `.env.local`,
/// `Makefile-arm`.
fn by_prefix(name: &str) -> Option<&'static [&'static str]> {
    if name.starts_with(".env.") {
        return Some(&["env"]);
    }
    let end = name.find(['.', '-', '_'])?;
    // `dockerfile-parser.ts` is source code; `Dockerfile-alpine` is not.
    if !name[end..].starts_with('.') && name.contains('.') {
        return None;
    }
    Some(match &name[..end] {
        "dockerfile" | "containerfile" => &["dockerfile"],
        "makefile" | "gnumakefile" => &["make"],
        "jenkinsfile" => &["groovy"],
        "rakefile" | "vagrantfile" | "fastfile" => &["ruby"],
        _ => return None,
    })
}

/// Returns true if a file with this extension has the language of the text before the extension:
/// templates, parts that another file includes, and copies in the folder of the original.
fn is_wrapper(extension: &str) -> bool {
    matches!(
        extension,
        "erb"
            | "ejs"
            | "eex"
            | "j2"
            | "jinja"
            | "jinja2"
            | "twig"
            | "mustache"
            | "hbs"
            | "handlebars"
            | "liquid"
            | "mako"
            | "tmpl"
            | "tpl"
            | "template"
            | "gotmpl"
            | "tt"
            | "in"
            | "inc"
            | "part"
            | "dist"
            | "default"
            | "example"
            | "sample"
            | "bak"
            | "backup"
            | "bk"
            | "old"
            | "orig"
            | "save"
            | "new"
            | "copy"
            | "tmp"
            | "disabled"
            | "off"
            | "local"
            | "prod"
            | "production"
            | "dev"
            | "development"
            | "staging"
    )
}

fn by_extension(extension: &str) -> Option<&'static [&'static str]> {
    Some(match extension {
        "py" | "pyw" | "pyi" | "pyx" | "pyt" | "wsgi" | "bzl" | "star" => &["python"],
        "js" | "mjs" | "cjs" | "jsx" | "es6" | "jsm" => &["javascript"],
        "ts" | "mts" | "cts" | "tsx" => &["typescript"],
        "vue" | "svelte" | "astro" => &["vue", "javascript", "typescript", "html"],
        "go" => &["go"],
        "java" => &["java"],
        "jsp" | "jspx" | "jspf" => &["java", "html"],
        "kt" | "kts" => &["kotlin"],
        "rb" | "rake" | "gemspec" | "podspec" | "thor" | "jbuilder" | "ru" => &["ruby"],
        "erb" => &["ruby", "html"],
        "php" | "phtml" | "php3" | "php4" | "php5" | "php7" | "php8" | "pht" | "phps" | "inc" => {
            &["php"]
        }
        "rs" => &["rust"],
        "c" => &["c"],
        "h" => &["c", "cpp"],
        "cc" | "cpp" | "cxx" | "c++" | "hpp" | "hh" | "hxx" | "ipp" | "inl" | "cu" | "cuh"
        | "ino" => &["cpp"],
        "m" | "mm" => &["objective-c"],
        "cs" | "csx" => &["csharp"],
        "cshtml" | "razor" => &["csharp", "html"],
        "sh" | "bash" | "zsh" | "ksh" | "csh" | "fish" | "command" | "bats" => &["shell"],
        "dockerfile" | "containerfile" => &["dockerfile"],
        "yml" | "yaml" => &["yaml"],
        "json" | "jsonc" | "json5" | "webmanifest" | "har" => &["json"],
        "ipynb" => &["notebook", "json"],
        "toml" => &["toml"],
        "html" | "htm" | "xhtml" | "ejs" | "hbs" | "handlebars" | "mustache" | "jinja"
        | "jinja2" | "j2" | "twig" => &["html"],
        "sql" | "psql" | "pgsql" | "ddl" => &["sql"],
        "tf" | "tfvars" | "hcl" | "tofu" => &["terraform"],
        "xml" | "xsd" | "xsl" | "xslt" | "plist" | "csproj" | "props" | "targets" | "config"
        | "pom" | "wsdl" | "svg" => &["xml"],
        "properties" => &["properties"],
        "ini" | "cfg" | "conf" | "cnf" | "npmrc" | "yarnrc" | "pypirc" | "netrc" | "gitconfig" => {
            &["ini"]
        }
        "env" => &["env"],
        "mk" | "mak" => &["make"],
        "ps1" | "psm1" | "psd1" => &["powershell"],
        "bat" | "cmd" => &["batch"],
        "swift" => &["swift"],
        "scala" | "sc" | "sbt" => &["scala"],
        "pl" | "pm" | "t" => &["perl"],
        "lua" => &["lua"],
        "dart" => &["dart"],
        "ex" | "exs" => &["elixir"],
        "groovy" | "gradle" => &["groovy"],
        "css" | "scss" | "sass" | "less" => &["css"],
        "md" | "markdown" | "mdx" | "mdown" => &["markdown"],
        "txt" | "rst" | "adoc" | "asciidoc" | "asc" | "org" | "tex" | "text" | "log" => &["text"],
        "r" => &["r"],
        "hs" | "lhs" => &["haskell"],
        "clj" | "cljs" | "cljc" | "edn" => &["clojure"],
        "nginx" => &["nginx"],
        "graphql" | "gql" => &["graphql"],
        "proto" => &["protobuf"],
        "sol" => &["solidity"],
        _ => return None,
    })
}

/// Returns true if a path is in a folder at the top of the repository or further down. `folder`
/// ends with a slash.
fn is_in_folder(path: &[u8], folder: &[u8]) -> bool {
    path.starts_with(folder) || memchr::memmem::find(path, &[b"/", folder].concat()).is_some()
}

/// Returns true if a text begins as a file of translations of Qt does. No TypeScript begins so: `tsc`
/// reads `<?xml >0;` as code, but not the rest of the declaration.
fn is_qt_translation(start: &[u8]) -> bool {
    let start = start.strip_prefix(MARK).unwrap_or(start);
    let Some(rest) = start.strip_prefix(b"<?xml version=\"1.0\"") else {
        return false;
    };
    let rest = rest
        .strip_prefix(b" encoding=\"utf-8\"")
        .unwrap_or(rest)
        .strip_prefix(b"?>");
    rest.is_some_and(|rest| rest.trim_ascii_start().starts_with(b"<!DOCTYPE TS>"))
}

/// Reads a `#!` line, with or without `env`.
fn by_interpreter(start: &[u8]) -> Option<&'static [&'static str]> {
    let line = start
        .strip_prefix(MARK)
        .unwrap_or(start)
        .strip_prefix(b"#!")?;
    let line = String::from_utf8_lossy(&line[..line.len().min(200)]);
    let line = line.lines().next()?;
    let mut words = line
        .split_whitespace()
        .map(|w| w.rsplit('/').next().unwrap_or(w));
    let program =
        words.find(|w| !matches!(*w, "env" | "sudo") && !w.starts_with('-') && !w.contains('='))?;
    let program = program.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    Some(match program {
        "sh" | "bash" | "zsh" | "dash" | "ksh" | "ash" | "busybox" | "bats" => &["shell"],
        "python" | "pypy" | "uv" | "jython" => &["python"],
        "node" | "nodejs" | "bun" | "zx" => &["javascript"],
        "deno" | "ts-node" | "tsx" => &["typescript"],
        "ruby" | "jruby" => &["ruby"],
        "php" => &["php"],
        "perl" => &["perl"],
        "pwsh" | "powershell" => &["powershell"],
        "lua" | "luajit" => &["lua"],
        "groovy" => &["groovy"],
        "Rscript" => &["r"],
        "make" => &["make"],
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_languages_by_name_extension_and_first_line() {
        for (path, start, expected) in [
            ("a/b.py", "", "python"),
            ("a/Dockerfile", "", "dockerfile"),
            ("Dockerfile.prod", "", "dockerfile"),
            (".github/workflows/ci.yml", "", "github-workflow yaml"),
            ("sub/action.yaml", "", "github-workflow yaml"),
            ("docs/ci.yml", "", "yaml"),
            ("x.h", "", "c cpp"),
            (
                "i18n/app_ru.ts",
                "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<!DOCTYPE TS>\n<TS>",
                "xml",
            ),
            (
                "i18n/app_ru.ts",
                "<?xml version=\"1.0\"?>\n<!DOCTYPE TS><TS>",
                "xml",
            ),
            ("app.ts", "<?xml >0;\neval(a);", "typescript"),
            ("app.ts", "<!DOCTYPE TS>0;\neval(a);", "typescript"),
            ("bin/tool", "#!/usr/bin/env python3\nimport os\n", "python"),
            ("bin/tool", "#!/bin/bash -e\n", "shell"),
            (
                "bin/tool",
                "#!/usr/bin/env -S FOO=1 node --x\n",
                "javascript",
            ),
            ("bin/tool", "plain", ""),
            ("Dockerfile.py", "", "dockerfile python"),
            ("Makefile.js", "", "javascript make"),
            ("Jenkinsfile.py", "", "groovy python"),
            ("JENKINSFILE.PY", "", "groovy python"),
            (".env.prod.py", "", "env python"),
            (".env.local", "", "env"),
            ("containerfile.ts", "", "dockerfile typescript"),
            ("Dockerfile.dev.php", "", "dockerfile php"),
            ("Dockerfile-alpine", "", "dockerfile"),
            ("Dockerfile-alpine.go", "", "go"),
            ("dockerfile-parser.ts", "", "typescript"),
            ("x.py.erb", "", "html python ruby"),
            ("x.php.inc", "", "php"),
            ("x.js.ejs", "", "html javascript"),
            ("deploy.sh.j2", "", "html shell"),
            ("nginx.conf.template", "", "nginx"),
            ("settings.py.bak", "", "python"),
            ("settings.py.local.bak", "", "python"),
            ("a.py.", "", "python"),
            ("a.py~", "", "python"),
            ("CMakeLists.txt", "", ""),
            ("Cargo.lock", "", "toml"),
            ("jquery.js.map", "", ""),
            ("build", "#!/bin/sh\n", "python shell"),
            ("notes.txt", "#!/usr/bin/env python3\n", "python text"),
            ("a.py", "#!/bin/sh\n", "python shell"),
            (
                "bin/tool",
                "\u{feff}#!/usr/bin/env -S uv run --script\n",
                "python",
            ),
            (".env.production", "", "env"),
            ("A.KT", "", "kotlin"),
        ] {
            let mut names: Vec<_> = Languages::of(path.as_bytes(), start.as_bytes())
                .names()
                .collect();
            names.sort_unstable();
            assert_eq!(names.join(" "), expected, "{path}");
        }
    }
}
