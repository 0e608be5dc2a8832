//! The role of a file, by its path: part of the program, a test, or in doubt.
//!
//! The author of a change chooses its paths, so a name counts only if it is a convention. No name
//! counts below a build tool's source root for the program. A name that packages and services also
//! have (`spec`, `samples`, `TestFoo`) leaves doubt, which lowers the severity of a finding but
//! does not drop it.

/// The role of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum FileRole {
    Program,
    /// A test, an example or a part of the program.
    Doubt,
    /// A test, a fixture, an example or a benchmark.
    Test,
}

/// Folders of tests anywhere outside a source root of [`source_root`].
const TESTS: &[&str] = &[
    "tests",
    "unittest",
    "unittests",
    "unit_test",
    "unit_tests",
    "__tests__",
    "__test__",
    "__fixtures__",
    "__mocks__",
    "__snapshots__",
    "testdata",
    "test-data",
    "test_data",
    "testutil",
    "testutils",
    "fixtures",
    "cypress",
    "benches",
];
/// Folders of tests, unless they are below [`SOURCES`].
const TESTS_ASIDE: &[&str] = &["test", "e2e", "itest", "mocks", "goldens"];
/// Folders of tests at the top, which may also contain tests elsewhere.
const TESTS_AT_TOP: &[&str] = &["spec", "specs", "testing", "mock", "fixture", "regress"];
/// Folders of examples and measurements at the top, and possibly elsewhere.
const EXAMPLES: &[&str] = &["examples", "samples", "demos", "benchmarks"];
/// Names of such folders that packages also have. They count only at the top.
const EXAMPLE: &[&str] = &["example", "sample", "demo", "benchmark", "bench", "corpus"];
/// Folders of the program.
const SOURCES: &[&str] = &["src", "app", "lib", "pkg", "internal", "cmd"];
/// Folders that contain packages, each with its own top.
const WORKSPACES: &[&str] = &[
    "packages", "crates", "libs", "apps", "modules", "plugins", "projects", "gems", "engines",
];
/// Extensions of program text. Files with other extensions are data and prose.
const PROGRAM: &[&str] = &[
    "py", "pyw", "pyx", "js", "mjs", "cjs", "jsx", "ts", "mts", "cts", "tsx", "vue", "svelte",
    "go", "java", "jsp", "kt", "kts", "scala", "groovy", "rb", "rake", "erb", "php", "phtml",
    "inc", "rs", "c", "h", "cc", "cpp", "cxx", "hpp", "hh", "cs", "cshtml", "vb", "fs", "sh",
    "bash", "zsh", "ps1", "psm1", "bat", "cmd", "pl", "pm", "t", "lua", "dart", "ex", "exs",
    "swift", "m", "mm", "hs", "clj", "r", "sql", "tf",
];
const SCRIPT: &[&str] = &[
    "js", "mjs", "cjs", "jsx", "ts", "mts", "cts", "tsx", "vue", "svelte",
];
const JVM: &[&str] = &["java", "kt", "scala", "groovy"];

/// Returns the role of the file with a path.
pub(crate) fn of(path: &[u8]) -> FileRole {
    let path = String::from_utf8_lossy(path);
    let mut folders: Vec<&str> = path.split('/').collect();
    let name = folders.pop().unwrap_or_default();
    // Below the root, names of packages and classes are arbitrary.
    let root = source_root(&folders);
    let counted = root.unwrap_or(folders.len());
    let by_folder = (0..counted)
        .map(|i| folder(&folders, i, name, root.is_some()))
        .max()
        .unwrap_or(FileRole::Program);
    match root {
        None if by_folder != FileRole::Test => by_folder.max(by_name(&folders, name)),
        _ => by_folder,
    }
}

/// Returns true if a path is that of a test, a fixture, an example or a benchmark.
pub(crate) fn is_test_path(path: &[u8]) -> bool {
    of(path) == FileRole::Test
}

/// Returns true if a path is that of code that another project published, in a folder where package
/// managers or conventions put it. The author of a change chooses its paths, so security rules do
/// not ask.
pub(crate) fn is_vendored(path: &[u8]) -> bool {
    /// Folders of package managers, which nothing else is called.
    const INSTALLED: &[&str] = &[
        "node_modules",
        "bower_components",
        "jspm_packages",
        "site-packages",
        "dist-packages",
        "Pods",
        "Carthage",
    ];
    /// Folders of copies. They count only at the top, because a vendor is also a seller.
    const COPIED: &[&str] = &[
        "vendor",
        "vendors",
        "third_party",
        "third-party",
        "thirdparty",
        "3rdparty",
        "3rd-party",
        "3rd_party",
    ];
    /// Folders of files that a web server sends. Below them, vendors are those of libraries.
    const SERVED: &[&str] = &["assets", "static", "public", "wwwroot"];
    let path = String::from_utf8_lossy(path);
    let mut folders: Vec<&str> = path.split('/').collect();
    folders.pop();
    folders.iter().any(|f| INSTALLED.contains(f))
        || folders.first().is_some_and(|f| COPIED.contains(f))
        || folders
            .windows(2)
            .any(|pair| SERVED.contains(&pair[0]) && COPIED.contains(&pair[1]))
        // `go mod vendor` puts a module at its import path, which starts with a domain.
        || folders
            .windows(2)
            .any(|pair| pair[0] == "vendor" && pair[1].contains('.'))
        // Composer puts a package at `vendor/VENDOR/NAME`, and its code mostly in `src`.
        || folders
            .windows(4)
            .any(|parts| parts[0] == "vendor" && matches!(parts[3], "src" | "lib"))
}

/// Returns true if a path is that of data of tests, which no program executes even if it is program
/// text.
pub(crate) fn is_data_of_tests(path: &[u8]) -> bool {
    const DATA: &[&str] = &[
        "data",
        "testdata",
        "test-data",
        "test_data",
        "__snapshots__",
        "golden",
        "goldens",
    ];
    let path = String::from_utf8_lossy(path);
    path.match_indices('/').any(|(at, _)| {
        let folder = path[..at].rsplit('/').next();
        folder.is_some_and(|f| DATA.contains(&f))
            && is_test_path(format!("{}/data", &path[..at]).as_bytes())
    })
}

/// Returns true if a path is that of documentation: prose by its extension, or a file below `docs`.
pub(crate) fn is_documentation(path: &[u8]) -> bool {
    let path = String::from_utf8_lossy(path).to_ascii_lowercase();
    let folders = path.rsplit_once('/').map_or("", |(folders, _)| folders);
    is_prose(path.as_bytes()) || folders.split('/').any(|f| f == "docs")
}

/// Returns true if the extension of a path is that of a document for people.
pub(crate) fn is_prose(path: &[u8]) -> bool {
    let path = String::from_utf8_lossy(path).to_ascii_lowercase();
    matches!(extension(&path).as_str(), "md" | "mdx" | "rst" | "adoc")
}

/// Returns true if rules for secrets may skip a path, or judge it by less than the code of a program.
pub(crate) fn is_judged_leniently(path: &[u8]) -> bool {
    is_test_path(path) || is_vendored(path) || is_data_of_tests(path) || is_documentation(path)
}

/// Returns true if the extension of a path is that of program text.
pub(crate) fn is_program_text(path: &[u8]) -> bool {
    let path = String::from_utf8_lossy(path);
    PROGRAM.contains(&extension(&path).as_str())
}

/// Returns true if a path may be that of a test.
pub(crate) fn may_be_test(path: &[u8]) -> bool {
    of(path) != FileRole::Program
}

/// Returns the index of the last root under which a build tool searches only for the program:
/// `src/main`, `src/jvmMain`.
fn source_root(folders: &[&str]) -> Option<usize> {
    folders
        .windows(2)
        .rposition(|w| w[0] == "src" && is_main(w[1]))
}

/// Returns true if a folder below `src` has only the program: `main`, `jvmMain`.
fn is_main(folder: &str) -> bool {
    folder == "main"
        || folder
            .strip_suffix("Main")
            .is_some_and(|p| p.ends_with(|c: char| c.is_ascii_lowercase()))
}

/// Returns true if a name ends with a word that follows a lower-case letter or a digit: `Test` of
/// `FooTest`.
fn ends_with_word(name: &str, word: &str) -> bool {
    name.strip_suffix(word)
        .is_some_and(|p| p.ends_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit()))
}

/// Returns the role that the folder at an index suggests. `rooted`: a source root is below it, so
/// it may be a project's own name.
fn folder(folders: &[&str], i: usize, name: &str, rooted: bool) -> FileRole {
    let original = folders[i];
    let lower = original.to_ascii_lowercase();
    let lower = lower.as_str();
    let parent = i.checked_sub(1).map(|p| folders[p]);
    let top = is_top(folders, i);
    let inside = folders[..i].iter().any(|f| SOURCES.contains(f));
    if TESTS.contains(&lower)
        || ["-tests", "_tests", ".tests", ".test"]
            .iter()
            .any(|end| lower.ends_with(end))
    {
        return FileRole::Test;
    }
    // `MyAppTests`; of Gradle and Maven `src/test`, `src/jvmTest`, `src/testFixtures`,
    // `src/integration-test`.
    let source_set = parent == Some("src")
        && (matches!(lower, "test" | "itest" | "testfixtures")
            || ends_with_word(original, "Test")
            || lower.ends_with("-test"));
    if ends_with_word(original, "Tests") || source_set {
        return FileRole::Test;
    }
    // Recordings of requests that tests replay, such as those of VCR for Ruby.
    let is_recording = matches!(lower, "vcr" | "cassettes" | "vcr_cassettes")
        && parent.is_some_and(|p| matches!(p, "spec" | "test"));
    if is_recording && !is_program_text(name.as_bytes()) {
        return FileRole::Test;
    }
    if lower == "it" && parent == Some("src") {
        // `it` is also a country and a language: `src/it/poste/pagamenti`, `src/it/messages.ts`.
        let set = folders
            .get(i + 1)
            .is_some_and(|f| matches!(*f, "java" | "kotlin" | "scala" | "groovy" | "resources"));
        let project = folders[i + 1..].contains(&"src")
            || matches!(extension(name).as_str(), "xml" | "properties");
        return if set || project {
            FileRole::Test
        } else {
            FileRole::Program
        };
    }
    if TESTS_ASIDE.contains(&lower) || lower.ends_with("-e2e") || lower.ends_with("_e2e") {
        return test_or_doubt((top || !inside) && !(rooted && lower == "test"));
    }
    if TESTS_AT_TOP.contains(&lower) {
        return test_or_doubt(top || i == 1 && !inside);
    }
    if EXAMPLES.contains(&lower) {
        return test_or_doubt(top);
    }
    if EXAMPLE.contains(&lower) && (top || parent == Some("fuzz")) {
        return test_or_doubt(!rooted);
    }
    // The environment of developers (<https://containers.dev>), and not that of the program.
    if lower == ".devcontainer" && top {
        return FileRole::Doubt;
    }
    // The tests of Perl and of git: `t/basic.t`, `t/lib/Helper.pm`, `t/certs/ca.key`.
    if lower == "t" && top {
        let is_other = is_program_text(name.as_bytes())
            && !["t", "pl", "pm", "sh"].contains(&extension(name).as_str());
        return test_or_doubt(!is_other);
    }
    let doubt = lower.ends_with("-test")
        || lower.ends_with("_test")
        || lower == "snapshots"
        || (top && lower == "integration");
    if doubt {
        FileRole::Doubt
    } else {
        FileRole::Program
    }
}

/// Returns the role of a folder with a name of tests or examples. `is_confirmed`: its place
/// confirms the name.
fn test_or_doubt(is_confirmed: bool) -> FileRole {
    if is_confirmed {
        FileRole::Test
    } else {
        FileRole::Doubt
    }
}

/// Returns true if the folder at an index is at the top of the repository or of one of its
/// packages.
fn is_top(folders: &[&str], i: usize) -> bool {
    match i {
        0 => true,
        1 if matches!(folders[0], "docs" | "doc") => true,
        // `packages/a/examples`, `packages/@team/a/examples`.
        _ => {
            is_below_workspace(folders, i, 2)
                || (is_below_workspace(folders, i, 3) && folders[i - 2].starts_with('@'))
        }
    }
}

/// Returns true if the folder a number of levels above the one at an index holds packages.
fn is_below_workspace(folders: &[&str], i: usize, levels: usize) -> bool {
    i.checked_sub(levels)
        .is_some_and(|at| WORKSPACES.contains(&folders[at]))
}

fn extension(name: &str) -> String {
    name.rsplit_once('.')
        .map_or(String::new(), |(_, e)| e.to_ascii_lowercase())
}

/// A file's name in lower case, and its parts.
struct FileName<'n> {
    whole: &'n str,
    /// The part before the first dot.
    stem: &'n str,
    extension: &'n str,
}

impl FileName<'_> {
    fn is_one_of(&self, extensions: &[&str]) -> bool {
        extensions.contains(&self.extension)
    }

    fn has(&self, parts: &[&str]) -> bool {
        parts.iter().any(|p| self.whole.contains(p))
    }

    fn stem_ends(&self, ends: &[&str]) -> bool {
        ends.iter().any(|e| self.stem.ends_with(e))
    }
}

/// Returns the role that the file's own name suggests.
fn by_name(folders: &[&str], name: &str) -> FileRole {
    let lower = name.to_ascii_lowercase();
    let extension = extension(name);
    let stem = lower.split('.').next().unwrap_or(&lower);
    let file = FileName {
        whole: &lower,
        stem,
        extension: &extension,
    };
    let (code, script) = (file.is_one_of(PROGRAM), file.is_one_of(SCRIPT));
    let test = (script || !code || file.is_one_of(&["ps1", "sh"]))
        && file.has(&[".test.", ".tests."])
        || script && file.has(&[".spec.", ".cy.", ".e2e-spec."])
        || stem.starts_with("test_")
            && (!code || file.is_one_of(&["py", "rb", "c", "h", "cc", "cpp", "rs", "lua"]))
        || stem.starts_with("test-") && !code
        || file.stem_ends(&["_test", "_tests"])
        || file.stem_ends(&["_spec"]) && (script || file.is_one_of(&["rb", "lua"]))
        || file.stem_ends(&["-test", "-spec"]) && script
        || file.stem_ends(&["-test", "_fixture", "_example"]) && !code
        || file.has(&[".mock.", ".fixture.", ".example", ".sample", ".e2e."]) && !code
        || matches!(stem, "tests" | "conftest" | "testutil" | "testutils")
        || stem == "test" && (folders.is_empty() || extension == "rs")
        || file.is_one_of(&["snap"]);
    if test {
        return FileRole::Test;
    }
    let doubt = file.has(&[
        ".test.",
        ".tests.",
        ".spec.",
        ".mock.",
        ".fixture.",
        ".example.",
        ".sample.",
        ".e2e.",
    ]) || stem.starts_with("test_")
        || stem.starts_with("test-")
        || file.stem_ends(&["_spec", "-test", "-spec", "_fixture", "_example"])
        || code && file.stem_ends(&["_fixtures", "-fixtures"])
        || !code && !folders.ends_with(&[".github", "workflows"]) && is_named_example(stem)
        || stem == "test";
    let by_word = if doubt {
        FileRole::Doubt
    } else {
        FileRole::Program
    };
    by_word.max(by_class(name.split('.').next().unwrap_or(name), &extension))
}

/// Returns true if a word of a file's stem says that it is an example: `server-example`.
fn is_named_example(stem: &str) -> bool {
    stem.split(['-', '_'])
        .any(|word| matches!(word, "example" | "sample" | "dummy"))
}

/// Returns the role that a class-like name suggests: `FooTest`, `FooTests`, `TestFoo`, `FooSpec`,
/// `FooIT`.
fn by_class(stem: &str, extension: &str) -> FileRole {
    const COMPILED: &[&str] = &[
        "kts", "cc", "cpp", "cxx", "c", "h", "hpp", "m", "mm", "swift", "hs", "dart",
    ];
    let jvm = JVM.contains(&extension);
    if ends_with_word(stem, "Tests") || ends_with_word(stem, "TestCase") {
        return FileRole::Test;
    }
    if ends_with_word(stem, "Test") {
        return if jvm || COMPILED.contains(&extension) {
            FileRole::Test
        } else {
            FileRole::Doubt
        };
    }
    if ends_with_word(stem, "Spec") || ends_with_word(stem, "Specs") {
        return match extension {
            "scala" | "groovy" | "hs" => FileRole::Test,
            _ if SCRIPT.contains(&extension) => FileRole::Test,
            // Templates of Kubernetes objects and queries of a domain also have such names.
            "java" | "cs" | "go" => FileRole::Program,
            _ => FileRole::Doubt,
        };
    }
    let doubt = stem
        .strip_prefix("Test")
        .is_some_and(|r| r.starts_with(|c: char| c.is_ascii_uppercase()))
        || (jvm && ends_with_word(stem, "IT"))
        || ends_with_word(stem, "Example")
        || ends_with_word(stem, "Fixture");
    if doubt {
        FileRole::Doubt
    } else {
        FileRole::Program
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(role: FileRole, paths: &[&str]) {
        for path in paths {
            assert_eq!(of(path.as_bytes()), role, "{path}");
        }
    }

    #[test]
    fn conventions_of_tests_and_examples_are_known() {
        all(
            FileRole::Test,
            &[
                "tests/a.py",
                "test/a.js",
                "spec/models/a.rb",
                "backend/spec/a.rb",
                "engines/pay/spec/support/a.rb",
                "src/foo_test.go",
                "a/FooTest.java",
                "src/components/Box.spec.tsx",
                "src/components/__tests__/Box.tsx",
                "app/tests/test_users.py",
                "shop/tests.py",
                "shop/test_a.py",
                "pkg/testdata/k.pem",
                "conftest.py",
                "app-tests/x.py",
                "src/Basket.UnitTests/Basket.cs",
                "MyAppTests/Login.swift",
                "src/test/java/it/poste/UserDao.java",
                "src/androidTest/java/a/B.kt",
                "src/integration-test/java/a/B.java",
                "src/it/java/a/B.java",
                "src/it/simple/src/main/java/A.java",
                "examples/shop/src/main/java/com/acme/A.java",
                "example/a.py",
                "docs/examples/a.py",
                "packages/core/examples/a.ts",
                "packages/@acme/core/demo/a.ts",
                "crates/core/benches/a.rs",
                "fuzz/corpus/a",
                ".env.example",
                "config/app.sample.yml",
                "src/snapshots/a.snap",
                "t/basic.t",
                "t/certs/ca.key",
                "t/lib/Helper.pm",
                "providers/pay/spec/vcr/create.yml",
            ],
        );
    }

    #[test]
    fn packages_and_services_are_the_program_whatever_they_are_called() {
        all(
            FileRole::Program,
            &[
                "src/main/java/it/poste/pagamenti/UserDao.java",
                "src/main/java/com/example/demo/UserDao.java",
                "src/main/java/com/acme/integration/UserDao.java",
                "src/main/java/com/acme/test/spec/UserDao.java",
                "src/main/java/com/acme/AuditIT.java",
                "src/main/java/com/acme/TestDrive.java",
                "server/src/main/kotlin/com/acme/SpeedTest.kt",
                "shared/src/commonMain/kotlin/test/A.kt",
                "src/integration/app.py",
                "src/it/poste/pagamenti/UserDao.java",
                "src/it/messages.ts",
                "com/example/demo/UserDao.java",
                "services/example/app.py",
                "services/demo/app.py",
                "app/it/a.php",
                "lib/corpus/reader.rb",
                "src/benchmark/a.py",
                "api/v1/PodSpec.java",
                "src/latest.py",
                "src/contest/a.py",
                "src/contests/a.py",
                "src/Testimony.java",
                "src/attestation.rs",
                "src/Submit.java",
                "protest.go",
                "app/Contest.java",
                "AUDIT.md",
                "app/t/page.tsx",
                "app/vcr/create.yml",
                "app/cassettes/list.json",
                "src/t/a.key",
            ],
        );
    }

    #[test]
    fn code_of_other_projects_and_data_of_tests_are_known_by_their_folders() {
        for path in [
            "node_modules/a/b.js",
            "web/node_modules/@a/b/c.test.js",
            "vendor/a/b.go",
            "env/site-packages/a.py",
        ] {
            assert!(is_vendored(path.as_bytes()), "{path}");
        }
        for path in [
            "src/vendor/models.py",
            "vendor.py",
            "app/third_party/login.py",
            "src/pods/a.go",
            "node_modules",
        ] {
            assert!(!is_vendored(path.as_bytes()), "{path}");
        }
        for path in [
            "tests/data/cases/a.py",
            "pkg/testdata/a.go",
            "a/tests/golden/b.js",
        ] {
            assert!(is_data_of_tests(path.as_bytes()), "{path}");
        }
        for path in [
            "src/data/a.py",
            "tests/fixtures/users.py",
            "tests/data.py",
            "data/test_a.json",
        ] {
            assert!(!is_data_of_tests(path.as_bytes()), "{path}");
        }
    }

    #[test]
    fn names_that_both_have_leave_a_doubt() {
        all(
            FileRole::Doubt,
            &[
                "src/test_app/spec/a.py",
                "src/examples/app.py",
                "sdk/python/samples/a.py",
                "lib/testing/a.rb",
                "cmd/test/main.go",
                "client/lib/e2e/keys.js",
                "integration/https.go",
                "services/speed-test/app.py",
                "src/TestDrive.cs",
                "app/Models/LabTest.php",
                "src/com/acme/AuditIT.java",
                "demo/src/main/java/com/example/demo/UserDao.java",
                "test/src/main/java/com/acme/Users.java",
                "src/UserExample.java",
                "routes/test.js",
                "src/settings.example.py",
                "src/test-results.ts",
                "internal/entity/session_fixtures.go",
                "t/app.py",
            ],
        );
    }
}
