//! Determines which imported modules belong to packages of other projects, from the files and
//! manifests of the tree. Pure.
//!
//! In doubt, a module belongs to the repository, and the names that it exports are searched for in
//! the tree.

use crate::diff::RepoPath;
use crate::symbols;
use serde_json::Value;
use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap, HashSet};

/// Manifests that are read, at most.
const MOST: usize = 200;
/// Bytes of a manifest, at most.
const MOST_BYTES: usize = 256 << 10;
/// First components of Java packages, which are top-level domains.
const DOMAINS: [&str; 14] = [
    "app", "ch", "cn", "co", "com", "de", "dev", "edu", "eu", "fr", "io", "me", "net", "org",
];
/// Words that mark lines of a Gradle file as naming packages of the project itself.
const OWN_LINES: [&str; 5] = [
    "group",
    "namespace",
    "applicationId",
    "mainClass",
    "package",
];

/// The packages of the tree and of other projects.
#[derive(Debug, Default)]
pub(super) struct PackageIndex {
    /// Names of folders, and names of files up to the first dot.
    parts: HashSet<Vec<u8>>,
    /// Folders with Java or Kotlin files.
    packages: BTreeSet<Vec<u8>>,
    node: Packages,
    rust: Packages,
    /// Names of Python projects.
    python: HashSet<String>,
    /// Paths of Python files without `.py`, and their folders, relative to the root of the tree.
    /// Empty string if the root is a package itself.
    modules: HashSet<Vec<u8>>,
    /// Text of manifests that map Python packages to folders.
    mappings: String,
    /// Prefixes of PHP namespaces. `None` if any namespace can belong to the tree.
    namespaces: Option<Vec<String>>,
    /// Lines of Gradle files that can name dependencies.
    gradle: String,
    /// Go modules of the tree.
    go: Vec<String>,
    /// Folders with Go files.
    go_folders: BTreeSet<Vec<u8>>,
    known: RefCell<HashMap<(Family, String), bool>>,
}

/// Package names of the tree and of other projects.
#[derive(Debug, Default)]
struct Packages {
    own: HashSet<String>,
    foreign: HashSet<String>,
}

impl Packages {
    fn is_foreign(&self, name: &str) -> bool {
        self.foreign.contains(name) && !self.own.contains(name)
    }
}

/// Languages with the same module resolution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Family {
    C,
    Go,
    Java,
    Kotlin,
    Node,
    Php,
    Python,
    Rust,
}

impl Family {
    fn of(path: &RepoPath) -> Option<Self> {
        let name = path.file_name();
        let end = memchr::memrchr(b'.', name).map(|dot| &name[dot + 1..])?;
        Some(match end {
            b"c" | b"h" | b"cc" | b"cpp" | b"cxx" | b"hpp" | b"hh" | b"hxx" | b"ipp" | b"inl" => {
                Self::C
            }
            b"go" => Self::Go,
            b"java" => Self::Java,
            b"kt" | b"kts" => Self::Kotlin,
            b"js" | b"jsx" | b"mjs" | b"cjs" | b"ts" | b"tsx" | b"mts" | b"cts" => Self::Node,
            b"php" => Self::Php,
            b"py" | b"pyi" => Self::Python,
            b"rs" => Self::Rust,
            _ => return None,
        })
    }
}

impl PackageIndex {
    /// Reads the manifests of a tree. `read` returns the content of a file.
    pub(super) fn new(
        paths: &[RepoPath],
        mut read: impl FnMut(&RepoPath) -> Option<Vec<u8>>,
    ) -> Self {
        let mut project = Self::default();
        for path in paths {
            project.add_path(path);
        }
        for path in paths.iter().filter(|path| is_manifest(path)).take(MOST) {
            if let Some(text) = read(path).filter(|text| text.len() <= MOST_BYTES) {
                project.add_manifest(path, &String::from_utf8_lossy(&text));
            }
        }
        project
    }

    fn add_path(&mut self, path: &RepoPath) {
        let bytes = path.as_bytes();
        let mut parts = bytes.split(|b| *b == b'/');
        let file = parts.next_back().unwrap_or_default();
        let stem = file.split(|b| *b == b'.').next().unwrap_or_default();
        for part in parts.chain([stem]) {
            if !self.parts.contains(part) {
                self.parts.insert(part.to_vec());
            }
        }
        let folder = bytes[..bytes.len() - file.len()]
            .strip_suffix(b"/")
            .unwrap_or_default();
        match Family::of(path) {
            Some(Family::Java | Family::Kotlin) => drop(self.packages.insert(folder.to_vec())),
            Some(Family::Python) => self.add_module(bytes, folder, stem),
            Some(Family::Go) => drop(self.go_folders.insert(folder.to_vec())),
            _ => {}
        }
    }

    fn add_module(&mut self, path: &[u8], folder: &[u8], stem: &[u8]) {
        let end = path.len() - path.rsplit(|b| *b == b'.').next().unwrap_or_default().len();
        self.modules.insert(path[..end.saturating_sub(1)].to_vec());
        if stem == b"__init__" {
            self.modules.insert(folder.to_vec());
        }
        let ends = folder
            .iter()
            .enumerate()
            .filter(|(_, b)| **b == b'/')
            .map(|(at, _)| at);
        for end in ends.chain((!folder.is_empty()).then_some(folder.len())) {
            if !self.modules.contains(&folder[..end]) {
                self.modules.insert(folder[..end].to_vec());
            }
        }
    }

    fn add_manifest(&mut self, path: &RepoPath, text: &str) {
        match path.file_name() {
            b"package.json" => self.add_node(&serde_json::from_str(text).unwrap_or_default()),
            b"composer.json" => self.add_php(&serde_json::from_str(text).unwrap_or_default()),
            b"go.mod" => self.add_go(text),
            b"Cargo.toml" => self.add_rust(&toml::from_str(text).unwrap_or_default()),
            b"build.gradle" | b"build.gradle.kts" => self.add_gradle(text, &OWN_LINES),
            b"libs.versions.toml" => self.add_gradle(text, &[]),
            _ => self.add_python(text),
        }
    }

    fn add_node(&mut self, manifest: &Value) {
        self.node
            .own
            .extend(manifest["name"].as_str().map(str::to_owned));
        for table in [
            "dependencies",
            "devDependencies",
            "peerDependencies",
            "optionalDependencies",
        ] {
            for (name, version) in manifest[table].as_object().into_iter().flatten() {
                let version = version.as_str().unwrap_or_default();
                let is_own = ["file:", "link:", "portal:", "workspace:", "."]
                    .iter()
                    .any(|p| version.starts_with(p));
                let packages = if is_own {
                    &mut self.node.own
                } else {
                    &mut self.node.foreign
                };
                packages.insert(name.clone());
            }
        }
    }

    fn add_rust(&mut self, manifest: &toml::Table) {
        let names = ["package", "lib"]
            .into_iter()
            .filter_map(|table| manifest.get(table)?.get("name")?.as_str());
        self.rust.own.extend(names.map(crate_name));
        let targets = manifest.get("target").and_then(toml::Value::as_table);
        let targets = targets
            .into_iter()
            .flat_map(toml::Table::values)
            .filter_map(toml::Value::as_table);
        let workspace = manifest.get("workspace").and_then(toml::Value::as_table);
        for tables in [manifest].into_iter().chain(workspace).chain(targets) {
            for kind in ["dependencies", "dev-dependencies", "build-dependencies"] {
                for (name, value) in tables
                    .get(kind)
                    .and_then(toml::Value::as_table)
                    .into_iter()
                    .flatten()
                {
                    match (
                        value.get("path").is_some(),
                        value.get("workspace").is_some(),
                    ) {
                        (true, _) => self.rust.own.insert(crate_name(name)),
                        // The table of the workspace contains the source.
                        (false, true) => false,
                        (false, false) => self.rust.foreign.insert(crate_name(name)),
                    };
                }
            }
        }
    }

    fn add_php(&mut self, manifest: &Value) {
        let mut prefixes = Vec::new();
        for autoload in [&manifest["autoload"], &manifest["autoload-dev"]] {
            if autoload.get("classmap").is_some() || autoload.get("psr-0").is_some() {
                // Any namespace is possible, whatever later manifests contain.
                prefixes.push(String::new());
            }
            let names = autoload["psr-4"].as_object().into_iter().flatten();
            prefixes.extend(names.map(|(name, _)| name.to_ascii_lowercase()));
        }
        if !prefixes.is_empty() {
            self.namespaces.get_or_insert_default().extend(prefixes);
        }
    }

    /// Adds the module of a `go.mod`, and the modules that it replaces with local folders.
    fn add_go(&mut self, text: &str) {
        for line in text.lines().map(str::trim) {
            if let Some(module) = line.strip_prefix("module ") {
                self.go.push(module.trim().trim_matches('"').to_owned());
            }
            if let Some((module, _)) = line
                .split_once("=>")
                .filter(|(_, to)| to.trim().starts_with('.'))
            {
                let module = module.trim().trim_start_matches("replace ").trim();
                self.go
                    .extend(module.split_whitespace().next().map(str::to_owned));
            }
        }
    }

    fn add_gradle(&mut self, text: &str, own: &[&str]) {
        for line in text
            .lines()
            .filter(|line| !own.iter().any(|word| line.contains(word)))
        {
            self.gradle.push_str(line);
            self.gradle.push('\n');
        }
    }

    /// Parses `pyproject.toml`, `setup.py` or `setup.cfg`.
    fn add_python(&mut self, text: &str) {
        for line in text.lines() {
            let line = line.trim_start().strip_prefix("name").map(str::trim_start);
            if let Some(value) = line.and_then(|line| line.strip_prefix('=')) {
                let value = value.trim_matches(|c: char| !c.is_alphanumeric());
                self.python
                    .insert(value.to_ascii_lowercase().replace(['-', '.'], "_"));
            }
        }
        if ["package_dir", "package-dir", "packages = [{", "from ="]
            .iter()
            .any(|word| text.contains(word))
        {
            self.mappings.push_str(text);
        }
    }

    /// Returns true if all modules from which a file imports a name belong to other projects.
    pub(super) fn are_foreign(&self, file: &RepoPath, modules: Option<&BTreeSet<String>>) -> bool {
        let (Some(family), Some(modules)) = (Family::of(file), modules) else {
            return false;
        };
        !modules.is_empty() && modules.iter().all(|module| self.is_foreign(family, module))
    }

    fn is_foreign(&self, family: Family, module: &str) -> bool {
        let key = (family, module.to_owned());
        if let Some(known) = self.known.borrow().get(&key) {
            return *known;
        }
        let is_foreign = match family {
            Family::C => module == "std",
            Family::Go => self.is_foreign_go(module),
            Family::Python => self.is_foreign_python(module),
            Family::Node => self.is_foreign_node(module),
            Family::Rust => {
                let is_standard = matches!(module, "std" | "core" | "alloc");
                !self.has_part(module) && (is_standard || self.rust.is_foreign(module))
            }
            Family::Php => self.is_foreign_php(module),
            Family::Java => self.is_foreign_java(module),
            Family::Kotlin => self.is_foreign_kotlin(module),
        };
        self.known.borrow_mut().insert(key, is_foreign);
        is_foreign
    }

    fn has_part(&self, name: &str) -> bool {
        self.parts.contains(name.as_bytes())
    }

    /// Returns true if the tree contains nothing with the name of a package, in any folder.
    fn is_foreign_python(&self, module: &str) -> bool {
        let top = module.split('.').next().unwrap_or_default();
        let is_own = self.python.contains(&top.to_ascii_lowercase()) || self.mappings.contains(top);
        !top.is_empty() && !self.has_part(top) && !is_own && !self.has_rest(module)
    }

    /// Returns true if the root of the tree can be a folder inside the package, as in an Ansible
    /// collection.
    fn has_rest(&self, module: &str) -> bool {
        let mut rest = module;
        while let Some((_, after)) = rest.split_once('.') {
            if self.modules.contains(after.replace('.', "/").as_bytes()) {
                return true;
            }
            rest = after;
        }
        self.modules.contains(&b""[..])
    }

    /// Returns true for an external dependency. Aliases of compilers and bundlers are not
    /// dependencies.
    fn is_foreign_node(&self, module: &str) -> bool {
        let mut parts = module.split('/');
        let first = parts.next().unwrap_or_default();
        match parts.next().filter(|_| first.starts_with('@')) {
            Some(second) => self.node.is_foreign(&format!("{first}/{second}")),
            // A bundler can resolve the name of a Node.js module to a folder of the tree.
            None if symbols::is_of_node(module) => {
                module.starts_with("node:") || !self.has_part(first)
            }
            None => self.node.is_foreign(first),
        }
    }

    /// Returns true for the standard library, and for modules whose source or copy is not in the
    /// tree.
    fn is_foreign_go(&self, module: &str) -> bool {
        !self.go.is_empty()
            && !module.starts_with('.')
            && !self.go.iter().any(|own| is_in_go_module(module, own))
            && !self
                .go_folders
                .iter()
                .any(|folder| ends_with(folder, module.as_bytes()))
    }

    fn is_foreign_php(&self, module: &str) -> bool {
        let Some(prefixes) = &self.namespaces else {
            return false;
        };
        let name = module.to_ascii_lowercase();
        let first = name.split('\\').next().unwrap_or_default();
        name.contains('\\')
            && !prefixes
                .iter()
                .any(|prefix| name.starts_with(prefix.as_str()))
            && !self
                .parts
                .iter()
                .any(|part| part.eq_ignore_ascii_case(first.as_bytes()))
    }

    /// Returns true if the folders of the tree have package names, and none has the name of this
    /// package.
    fn is_foreign_java(&self, module: &str) -> bool {
        let package = package_of(module);
        !package.is_empty()
            && self.packages.iter().any(|folder| has_domain(folder))
            && !self.has_package(&package)
    }

    /// Returns true if a build file names the group of a package, and no folder is named like a
    /// part of the package. Folders of Kotlin files can omit the first components of their
    /// packages.
    fn is_foreign_kotlin(&self, module: &str) -> bool {
        let package = package_of(module);
        let [first, second, ..] = package.as_slice() else {
            return false;
        };
        let is_named = [':', '.', '"', '\''].into_iter().any(|end| {
            ['"', '\''].into_iter().any(|quote| {
                self.gradle
                    .contains(&format!("{quote}{first}.{second}{end}"))
            })
        });
        is_named && (1..=package.len()).all(|n| !self.has_package(&package[package.len() - n..]))
    }

    /// Returns true if a folder with Java or Kotlin files ends with the components of a package.
    fn has_package(&self, package: &[&str]) -> bool {
        let path = package.join("/");
        self.packages
            .iter()
            .any(|folder| ends_with(folder, path.as_bytes()))
    }
}

/// Returns true if the path of a folder ends with these components.
fn ends_with(folder: &[u8], parts: &[u8]) -> bool {
    folder
        .strip_suffix(parts)
        .is_some_and(|rest| rest.is_empty() || rest.ends_with(b"/"))
}

/// Returns true if the path of a Go package is a module or is inside it.
fn is_in_go_module(package: &str, module: &str) -> bool {
    package
        .strip_prefix(module)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Returns true if a component of a folder is a top-level domain.
fn has_domain(folder: &[u8]) -> bool {
    folder
        .split(|b| *b == b'/')
        .any(|part| DOMAINS.iter().any(|domain| domain.as_bytes() == part))
}

/// Returns the package components in the qualified name of a class or member, by the usual
/// capitalization.
fn package_of(module: &str) -> Vec<&str> {
    let parts: Vec<&str> = module.split('.').collect();
    let class = parts
        .iter()
        .position(|part| part.starts_with(|c: char| c.is_uppercase()));
    let end = class.unwrap_or(parts.len().saturating_sub(1));
    parts[..end].to_vec()
}

/// Returns the name of a crate in code.
fn crate_name(name: &str) -> String {
    name.replace('-', "_")
}

fn is_manifest(path: &RepoPath) -> bool {
    const NAMES: [&[u8]; 10] = [
        b"go.mod",
        b"package.json",
        b"composer.json",
        b"Cargo.toml",
        b"build.gradle",
        b"build.gradle.kts",
        b"libs.versions.toml",
        b"pyproject.toml",
        b"setup.py",
        b"setup.cfg",
    ];
    NAMES.contains(&path.file_name())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the modules that are foreign to a file, in a tree with these files.
    fn foreign(files: &[(&str, &str)], file: &str, modules: &[&str]) -> Vec<String> {
        let mut paths: Vec<RepoPath> = files
            .iter()
            .map(|(path, _)| RepoPath::from(*path))
            .collect();
        paths.push(RepoPath::from(file));
        let project = PackageIndex::new(&paths, |path| {
            let (_, text) = files
                .iter()
                .find(|(p, _)| p.as_bytes() == path.as_bytes())?;
            Some(text.as_bytes().to_vec())
        });
        let modules = modules.iter().map(|module| (*module).to_owned());
        modules
            .filter(|module| {
                project.are_foreign(
                    &RepoPath::from(file),
                    Some(&BTreeSet::from([module.clone()])),
                )
            })
            .collect()
    }

    #[test]
    fn a_package_of_python_is_foreign_if_nothing_in_the_tree_has_its_name() {
        let files = [
            (
                "pyproject.toml",
                "[project]\nname = \"my-tool\"\ndependencies = [\"requests\"]\n",
            ),
            ("src/click/core.py", ""),
            ("scripts/helpers.py", ""),
            ("third_party/six/__init__.py", ""),
        ];
        let modules = [
            "requests",
            "requests.adapters",
            "click.core",
            "helpers",
            "six.moves",
            "my_tool.a",
            ".core",
            ".",
        ];
        assert_eq!(
            foreign(&files, "src/click/a.py", &modules),
            ["requests", "requests.adapters"]
        );
        let collection = [("plugins/module_utils/net.py", "")];
        let modules = [
            "ansible_collections.a.b.plugins.module_utils.net",
            "ansible.module_utils.basic",
            "x.plugins",
        ];
        assert_eq!(
            foreign(&collection, "plugins/a.py", &modules),
            ["ansible.module_utils.basic"]
        );
        assert_eq!(
            foreign(&[("__init__.py", "")], "a.py", &["tool", "yaml.nodes"]),
            [""; 0],
            "the top is a package"
        );
        let mapped = [
            (
                "setup.py",
                "setup(name='other', package_dir={'acme': 'lib'})\n",
            ),
            ("lib/a.py", ""),
        ];
        assert_eq!(
            foreign(&mapped, "lib/b.py", &["acme.a", "other", "yaml"]),
            ["yaml"]
        );
    }

    #[test]
    fn a_package_of_node_is_foreign_if_a_manifest_asks_for_it_from_elsewhere() {
        let files = [
            (
                "package.json",
                r#"{"name": "app", "workspaces": ["packages/*"], "dependencies": {"react": "^19"}}"#,
            ),
            (
                "packages/ui/package.json",
                r#"{"name": "@acme/ui", "devDependencies": {"@types/node": "1"}}"#,
            ),
            (
                "packages/web/package.json",
                r#"{"name": "web", "dependencies": {"@acme/ui": "1.0.0", "@acme/kit": "workspace:*", "local": "file:../x", "@scope/far": "2"}}"#,
            ),
        ];
        let modules = [
            "react",
            "react/jsx",
            "app",
            "@acme/ui",
            "@acme/kit",
            "local",
            "@scope/far/x",
            "@/store",
            "~/a",
            "./react",
            "src/react",
            "lodash",
        ];
        assert_eq!(
            foreign(&files, "packages/web/a.ts", &modules),
            ["react", "react/jsx", "@scope/far/x"]
        );
        assert_eq!(
            foreign(&[], "a.ts", &modules),
            [""; 0],
            "no manifest: in doubt"
        );
        assert_eq!(
            foreign(&[("package.json", "{broken")], "a.ts", &modules),
            [""; 0]
        );
    }

    #[test]
    fn a_package_of_go_is_foreign_if_no_module_and_no_folder_of_the_tree_has_it() {
        let files = [
            (
                "go.mod",
                "module example.com/acme/app/v2\n\nreplace (\n\texample.com/acme/kit v1.0.0 => ../kit\n)\n",
            ),
            ("store/store.go", ""),
            ("vendor/github.com/a/b/b.go", ""),
        ];
        let modules = [
            "net/http",
            "example.com/acme/app/v2/store",
            "example.com/acme/kit/a",
            "example.com/acme/other",
            "github.com/a/b",
            "github.com/gorilla/mux",
            "./own",
        ];
        let expected = [
            "net/http",
            "example.com/acme/other",
            "github.com/gorilla/mux",
        ];
        assert_eq!(foreign(&files, "main.go", &modules), expected);
        assert_eq!(
            foreign(&[], "main.go", &modules),
            [""; 0],
            "no manifest: in doubt"
        );
    }

    #[test]
    fn a_module_of_node_itself_is_foreign_unless_the_tree_has_its_name() {
        let files = [("src/util/a.ts", "")];
        let modules = [
            "fs",
            "fs/promises",
            "node:util",
            "util",
            "path-a",
            "util/types",
            "./fs",
        ];
        assert_eq!(
            foreign(&files, "a.ts", &modules),
            ["fs", "fs/promises", "node:util"]
        );
    }

    #[test]
    fn a_crate_is_foreign_if_it_is_a_dependency_without_a_path() {
        let root = "[workspace.dependencies]\nserde = \"1\"\nown-kit = { path = \"kit\" }\n";
        let member = "[package]\nname = \"my-app\"\n[dependencies]\nserde.workspace = true\nown-kit.workspace = true\n\
            log = \"0.4\"\nserde-json = { version = \"1\" }\n[target.'cfg(unix)'.dependencies]\nrustix = \"1\"\n";
        let files = [
            ("Cargo.toml", root),
            ("app/Cargo.toml", member),
            ("app/src/log.rs", ""),
        ];
        let modules = [
            "serde",
            "own_kit",
            "my_app",
            "log",
            "serde_json",
            "rustix",
            "crate",
            "self",
            "other",
            "std",
        ];
        assert_eq!(
            foreign(&files, "app/src/main.rs", &modules),
            ["serde", "serde_json", "rustix", "std"]
        );
    }

    #[test]
    fn a_namespace_of_php_is_foreign_if_no_prefix_of_the_tree_has_it() {
        let files = [
            (
                "composer.json",
                r#"{"autoload": {"psr-4": {"App\\": "app/"}}}"#,
            ),
            ("database/Seeds/A.php", ""),
        ];
        let modules = [
            "App\\Models\\User",
            "Monolog\\Logger",
            "Database\\Seeds\\A",
            "Closure",
        ];
        assert_eq!(foreign(&files, "app/A.php", &modules), ["Monolog\\Logger"]);
        let open = [(
            "composer.json",
            r#"{"autoload": {"psr-4": {"App\\": "app/"}, "classmap": ["lib"]}}"#,
        )];
        assert_eq!(foreign(&open, "app/A.php", &modules), [""; 0]);
    }

    #[test]
    fn a_package_of_java_is_foreign_if_no_folder_is_named_like_it() {
        let file = "src/main/java/org/acme/app/Main.java";
        let files = [("lib/src/org/acme/kit/Kit.java", "")];
        let modules = [
            "org.junit.Test",
            "org.acme.kit.Kit",
            "org.acme.app.Main.Inner",
            "org.acme.gone.A",
            "org.acme.kit.Kit.run",
        ];
        assert_eq!(
            foreign(&files, file, &modules),
            ["org.junit.Test", "org.acme.gone.A"]
        );
        assert_eq!(foreign(&[], "Main.java", &modules), [""; 0], "a flat tree");
    }

    #[test]
    fn a_package_of_kotlin_is_foreign_if_a_build_file_names_it_and_no_folder_does() {
        let gradle = "group = \"com.acme\"\ndependencies {\n    implementation(\"io.ktor:ktor-server:3.0\")\n}\n";
        let files = [("build.gradle.kts", gradle), ("src/util/A.kt", "")];
        let modules = [
            "io.ktor.server.Call",
            "com.acme.Main",
            "com.acme.util.A",
            "io.ktor.util.A",
            "org.other.B",
        ];
        assert_eq!(
            foreign(&files, "src/Main.kt", &modules),
            ["io.ktor.server.Call"]
        );
    }
}
