//! What language a file is in: by path, by well-known name, by its first line.

use super::format::LANGUAGES;

/// A set of languages, a bit each in the order of [`LANGUAGES`]. A file can be in several: a workflow is YAML too.
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
        LANGUAGES.iter().position(|l| *l == name).map(|i| Self(1 << i))
    }

    pub(crate) fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Tells whether the sets share a language.
    pub(crate) fn overlaps(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Tells whether the set has a language that the other lacks.
    pub(crate) fn goes_beyond(self, other: Self) -> bool {
        self.0 & !other.0 != 0
    }

    /// Tells whether one of the named languages is in the set.
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
        LANGUAGES.iter().enumerate().filter(move |(i, _)| self.0 >> i & 1 == 1).map(|(_, n)| *n)
    }

    /// Tells what languages a file is in. `start` is its first line where that is known, else empty.
    pub(crate) fn of(path: &[u8], start: &[u8]) -> Self {
        let name = match memchr::memrchr(b'/', path) {
            Some(i) => &path[i + 1..],
            None => path,
        };
        let name = String::from_utf8_lossy(name).to_ascii_lowercase();
        let names: &[&str] = by_name(&name)
            .or_else(|| name.rsplit_once('.').and_then(|(_, e)| by_extension(e)))
            .or_else(|| by_interpreter(start))
            .unwrap_or(&[]);
        let set = names.iter().filter_map(|n| Self::named(n)).fold(Self::NONE, Self::with);
        let workflow =
            |dir: &[u8]| path.starts_with(dir) || memchr::memmem::find(path, &[b"/", dir].concat()).is_some();
        let action = matches!(name.as_str(), "action.yml" | "action.yaml");
        if set.any_of(&["yaml"]) && (workflow(b".github/workflows/") || workflow(b".github/actions/") || action) {
            return Self::named("github-workflow").map_or(set, |w| set.with(w));
        }
        set
    }
}

fn by_name(name: &str) -> Option<&'static [&'static str]> {
    Some(match name {
        "dockerfile" | "containerfile" => &["dockerfile"],
        "makefile" | "gnumakefile" | "kbuild" | "justfile" => &["make"],
        "gemfile" | "rakefile" | "vagrantfile" | "podfile" | "fastfile" | "brewfile" | "guardfile" | "capfile" => {
            &["ruby"]
        }
        "jenkinsfile" => &["groovy"],
        "pipfile" | "cargo.lock" | "poetry.lock" | "uv.lock" => &["toml"],
        "sconstruct" | "sconscript" | "wscript" | "build" | "build.bazel" | "workspace" | "tiltfile" => &["python"],
        "composer.lock" | "package-lock.json" | ".babelrc" | ".eslintrc" | ".prettierrc" => &["json"],
        "nginx.conf" => &["nginx"],
        "cmakelists.txt" => &[],
        ".bashrc" | ".bash_profile" | ".profile" | ".zshrc" | ".zprofile" | ".zshenv" | ".envrc" | "pkgbuild" => {
            &["shell"]
        }
        ".env" => &["env"],
        ".npmrc" | ".yarnrc" | ".pypirc" | ".netrc" | ".gitconfig" | ".editorconfig" | ".flaskenv" => &["ini"],
        "description" | "readme" | "license" | "copying" | "notice" | "changelog" | "authors" => &["text"],
        _ if name.starts_with(".env.") => &["env"],
        _ if name.starts_with("dockerfile.") || name.starts_with("containerfile.") => &["dockerfile"],
        _ if name.starts_with("makefile.") => &["make"],
        _ if name.starts_with("jenkinsfile.") => &["groovy"],
        _ => return None,
    })
}

fn by_extension(extension: &str) -> Option<&'static [&'static str]> {
    Some(match extension {
        "py" | "pyw" | "pyi" | "pyx" | "bzl" | "star" => &["python"],
        "js" | "mjs" | "cjs" | "jsx" | "es6" => &["javascript"],
        "ts" | "mts" | "cts" | "tsx" => &["typescript"],
        "vue" | "svelte" | "astro" => &["vue", "javascript", "typescript", "html"],
        "go" => &["go"],
        "java" | "jsp" | "jspx" => &["java"],
        "kt" | "kts" => &["kotlin"],
        "rb" | "rake" | "gemspec" | "erb" | "ru" => &["ruby"],
        "php" | "phtml" | "php3" | "php4" | "php5" | "php7" | "phps" | "inc" => &["php"],
        "rs" => &["rust"],
        "c" => &["c"],
        "h" => &["c", "cpp"],
        "cc" | "cpp" | "cxx" | "c++" | "hpp" | "hh" | "hxx" | "ipp" | "inl" | "cu" | "cuh" | "ino" => &["cpp"],
        "m" | "mm" => &["objective-c"],
        "cs" | "csx" | "cshtml" | "razor" => &["csharp"],
        "sh" | "bash" | "zsh" | "ksh" | "bats" => &["shell"],
        "dockerfile" | "containerfile" => &["dockerfile"],
        "yml" | "yaml" => &["yaml"],
        "json" | "jsonc" | "json5" | "webmanifest" | "har" => &["json"],
        "ipynb" => &["notebook", "json"],
        "toml" => &["toml"],
        "html" | "htm" | "xhtml" | "ejs" | "hbs" | "handlebars" | "mustache" | "jinja" | "jinja2" | "j2" | "twig" => {
            &["html"]
        }
        "sql" | "psql" | "pgsql" | "ddl" => &["sql"],
        "tf" | "tfvars" | "hcl" | "tofu" => &["terraform"],
        "xml" | "xsd" | "xsl" | "xslt" | "plist" | "csproj" | "props" | "targets" | "config" | "pom" | "wsdl"
        | "svg" => &["xml"],
        "properties" => &["properties"],
        "ini" | "cfg" | "conf" | "cnf" => &["ini"],
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
        _ => return None,
    })
}

/// Reads a `#!` line, with or without `env`.
fn by_interpreter(start: &[u8]) -> Option<&'static [&'static str]> {
    let line = start.strip_prefix(b"#!")?;
    let line = String::from_utf8_lossy(&line[..line.len().min(200)]);
    let line = line.lines().next()?;
    let mut words = line.split_whitespace().map(|w| w.rsplit('/').next().unwrap_or(w));
    let program = words.find(|w| *w != "env" && !w.starts_with('-') && !w.contains('='))?;
    let program = program.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    Some(match program {
        "sh" | "bash" | "zsh" | "dash" | "ksh" | "ash" | "busybox" => &["shell"],
        "python" | "pypy" => &["python"],
        "node" | "nodejs" | "bun" => &["javascript"],
        "deno" | "ts-node" | "tsx" => &["typescript"],
        "ruby" => &["ruby"],
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
            ("bin/tool", "#!/usr/bin/env python3\nimport os\n", "python"),
            ("bin/tool", "#!/bin/bash -e\n", "shell"),
            ("bin/tool", "#!/usr/bin/env -S FOO=1 node --x\n", "javascript"),
            ("bin/tool", "plain", ""),
            (".env.production", "", "env"),
            ("A.KT", "", "kotlin"),
        ] {
            let mut names: Vec<_> = Languages::of(path.as_bytes(), start.as_bytes()).names().collect();
            names.sort_unstable();
            assert_eq!(names.join(" "), expected, "{path}");
        }
    }
}
