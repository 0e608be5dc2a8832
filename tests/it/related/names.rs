//! Tests of names that an import renames, functions of scripts that a script reads, and files that
//! are missing from a clone.

use super::{Project, filler};
use crate::support::reviewer;

/// A file with a definition, and one that renames it: path, import, the function before and after,
/// its path.
struct Renamed {
    library: (&'static str, &'static str),
    path: &'static str,
    head: &'static str,
    old: &'static str,
    new: &'static str,
    name: &'static str,
    alias: &'static str,
}

const RENAMED: [Renamed; 7] = [
    Renamed {
        library: (
            "lib/store.py",
            "def load(path, strict=False):\n    return path\n",
        ),
        path: "app/main.py",
        head: "from lib.store import load as read_config\n\n\n",
        old: "def main():\n    pass\n",
        new: "def main():\n    return read_config('a')\n",
        name: "load",
        alias: "read_config",
    },
    Renamed {
        library: (
            "lib/store.js",
            "export function load(path, strict) {\n  return path\n}\n",
        ),
        path: "app/main.ts",
        head: "import { load as readConfig } from '../lib/store'\n\n",
        old: "export function main() {\n}\n",
        new: "export function main() {\n  return readConfig('a')\n}\n",
        name: "load",
        alias: "readConfig",
    },
    Renamed {
        library: (
            "lib/store.js",
            "exports.load = function load(path, strict) {\n  return path\n}\n",
        ),
        path: "app/main.js",
        head: "const { load: readConfig } = require('../lib/store')\n\n",
        old: "function main() {\n}\n",
        new: "function main() {\n  return readConfig('a')\n}\n",
        name: "load",
        alias: "readConfig",
    },
    Renamed {
        library: (
            "src/store.rs",
            "pub fn load(path: &str, strict: bool) -> u8 {\n    1\n}\n",
        ),
        path: "src/main.rs",
        head: "use store::load as read_config;\n\n",
        old: "fn run() {\n}\n",
        new: "fn run() {\n    read_config(\"a\", true);\n}\n",
        name: "load",
        alias: "read_config",
    },
    Renamed {
        library: (
            "lib/Store.kt",
            "package lib\n\nfun load(path: String): Int {\n    return 1\n}\n",
        ),
        path: "app/Main.kt",
        head: "package app\n\nimport lib.load as readConfig\n\n",
        old: "fun main() {\n}\n",
        new: "fun main() {\n    readConfig(\"a\")\n}\n",
        name: "load",
        alias: "readConfig",
    },
    Renamed {
        library: (
            "Lib/Store.php",
            "<?php\nnamespace Lib;\nclass Store {\n    public int $limit = 3;\n}\n",
        ),
        path: "app/main.php",
        head: "<?php\nuse Lib\\Store as Config;\n\n",
        old: "function run() {\n}\n",
        new: "function run() {\n    return new Config();\n}\n",
        name: "Store",
        alias: "Config",
    },
    Renamed {
        library: (
            "store/store.go",
            "package store\n\nfunc Load(path string) int {\n\treturn 1\n}\n",
        ),
        path: "app/main.go",
        head: "package app\n\nimport st \"example.org/x/store\"\n\n",
        old: "func Run() int {\n\treturn 0\n}\n",
        new: "func Run() int {\n\treturn st.Load(\"a\")\n}\n",
        name: "Load",
        alias: "",
    },
];

impl Renamed {
    fn imported(&self) -> String {
        if self.alias.is_empty() {
            String::new()
        } else {
            format!(" (imported as {})", self.alias)
        }
    }
}

#[test]
fn definitions_of_names_that_an_import_renames_are_shown() {
    for case in RENAMED {
        let project = Project::new();
        project.repo.stage(case.library.0, case.library.1);
        project
            .repo
            .stage(case.path, format!("{}{}", case.head, case.old))
            .commit("one");
        project
            .repo
            .stage(case.path, format!("{}{}", case.head, case.new));
        let prompt = project.prompt();
        let heading = format!(": definition of {}{}\n", case.name, case.imported());
        assert!(
            prompt.contains(&heading) && prompt.contains(case.library.0),
            "{}: {prompt}",
            case.path
        );
    }
}

#[test]
fn uses_of_a_changed_name_by_that_of_an_import_are_shown() {
    for case in RENAMED {
        let project = Project::new();
        project.repo.stage(case.library.0, case.library.1);
        project
            .repo
            .stage(case.path, format!("{}{}", case.head, case.new))
            .commit("one");
        let changed = case
            .library
            .1
            .replace("1\n", "2\n")
            .replace("return path", "return path + 1");
        project
            .repo
            .stage(case.library.0, changed.replace("limit = 3", "limit = 4"));
        let prompt = project.prompt();
        let heading = format!(": use of {}{} in ", case.name, case.imported());
        assert!(prompt.contains(&heading), "{}: {prompt}", case.path);
        let call = case.new.lines().nth(1).unwrap().trim();
        assert!(prompt.contains(call), "{}: {prompt}", case.path);
    }
}

#[test]
fn a_definition_in_a_file_that_is_not_imported_is_not_taken_for_a_renamed_one() {
    let project = Project::new();
    project
        .repo
        .stage("util/http.py", "def fetch_all(url):\n    return url\n");
    let head = "from requests import fetch_all as read_all\n\n\n";
    project
        .repo
        .stage("app/main.py", format!("{head}def main():\n    pass\n"))
        .commit("one");
    project.repo.stage(
        "app/main.py",
        format!("{head}def main():\n    return read_all('a')\n"),
    );
    let prompt = project.prompt();
    assert!(!prompt.contains("util/http.py"), "{prompt}");
}

#[test]
fn a_member_with_a_common_name_is_used_where_code_names_its_type() {
    let project = Project::new();
    let writer = |body: &str| format!("class PagerWriter:\n    def flush(self):\n        {body}\n");
    project.repo.stage("app/pager.py", writer("pass"));
    project.repo.stage(
        "app/a.py",
        "import sys\n\n\ndef one():\n    # as PagerWriter does\n    sys.stdout.flush()\n",
    );
    project.repo.stage(
        "app/b.py",
        "from app.pager import PagerWriter\n\n\ndef two():\n    PagerWriter().flush()\n",
    );
    project.repo.commit("one");
    project.repo.stage("app/pager.py", writer("return 1"));
    let prompt = project.prompt();
    assert!(
        prompt.contains("app/b.py:4-5: use of flush in two"),
        "{prompt}"
    );
    assert!(!prompt.contains("app/a.py"), "{prompt}");
}

#[test]
fn what_is_shown_as_a_definition_is_not_shown_as_a_signature_too() {
    let project = Project::new();
    project
        .repo
        .stage("app/store.py", "def load_all(path):\n    return [path]\n");
    project
        .repo
        .stage("app/main.py", "def main():\n    x = 1\n    load_all(x)\n");
    project
        .repo
        .stage("tests/test_main.py", "def test_main():\n    pass\n")
        .commit("one");
    project
        .repo
        .stage("app/main.py", "def main():\n    x = 2\n    load_all(x)\n");
    project.repo.stage(
        "tests/test_main.py",
        "def test_main():\n    assert load_all(1)\n",
    );
    let prompt = project.prompt();
    assert!(
        prompt.contains(
            "app/store.py:1-2: definition of load_all\n1 def load_all(path):\n2     return"
        ),
        "{prompt}"
    );
    assert!(!prompt.contains("signature of load_all"), "{prompt}");
}

#[test]
fn functions_of_a_script_that_a_script_reads_are_shown() {
    for source in [
        "source lib/common.sh",
        ". \"$(dirname \"$0\")/lib/common.sh\"",
    ] {
        let project = Project::new();
        let common = "log_step() {\n  printf '%s\\n' \"$1\" >&2\n}\n";
        project
            .repo
            .stage("lib/common.sh", common)
            .stage("lib/other.sh", "deploy_all() {\n  true\n}\n");
        let head = format!("#!/bin/sh\n{source}\n\n");
        project
            .repo
            .stage("run.sh", format!("{head}main() {{\n  true\n}}\n"))
            .commit("one");
        project
            .repo
            .stage("run.sh", format!("{head}main() {{\n  log_step 'a'\n}}\n"));
        let prompt = project.prompt();
        assert!(
            prompt.contains("lib/common.sh:1-3: definition of log_step\n1 log_step() {\n"),
            "{prompt}"
        );
        assert!(!prompt.contains("deploy_all"), "{prompt}");
        // A change of the function shows the scripts that call it.
        project.repo.commit("two");
        project
            .repo
            .stage("lib/common.sh", common.replace(">&2", ""));
        let prompt = project.prompt();
        assert!(prompt.contains(": use of log_step in main\n"), "{prompt}");
    }
    // Without a script that it reads, each command is probably a program.
    let project = Project::new();
    project
        .repo
        .stage("lib/common.sh", "deploy_all() {\n  true\n}\n")
        .stage("run.sh", "#!/bin/sh\ntrue\n")
        .commit("one");
    project.repo.stage("run.sh", "#!/bin/sh\ndeploy_all\n");
    let prompt = project.prompt();
    assert!(!prompt.contains("lib/common.sh"), "{prompt}");
}

#[test]
fn files_that_a_partial_clone_does_not_have_are_named() {
    let project = Project::new();
    let caller = |i: usize| {
        format!("from src.a import charge\n\n\ndef show_{i}():\n    return charge({i})\n")
    };
    for i in 0..12 {
        project.repo.stage(&format!("web/view{i:02}.py"), caller(i));
    }
    let text = |body: &str| format!("def charge(total):\n{}    return {body}\n", filler("x", 5));
    project
        .repo
        .stage("src/a.py", text("total"))
        .stage("src/b.py", caller(99))
        .commit("one");
    project
        .repo
        .git(&["config", "uploadpack.allowFilter", "true"]);
    project
        .repo
        .git(&["config", "uploadpack.allowAnySHA1InWant", "true"]);
    let (from, to) = (
        format!("file://{}", project.repo.path().display()),
        project.repo.outside().join("clone"),
    );
    let dir = to.to_str().unwrap();
    project
        .repo
        .git(&["clone", "-q", "--filter=blob:none", "--sparse", &from, dir]);
    project
        .repo
        .git(&["-C", dir, "sparse-checkout", "set", "src"]);
    std::fs::write(to.join("src/a.py"), text("total + 1")).unwrap();
    project.repo.git(&["-C", dir, "add", "src/a.py"]);
    let objects = || project.repo.git(&["-C", dir, "count-objects", "-v"]);
    let before = objects();
    let run = reviewer(
        &to,
        &project.repo.home(),
        &["review", "staged", "--no-save"],
    )
    .run(0);
    assert_eq!(objects(), before, "nothing is fetched");
    let prompt = project.server.questions()[0].prompt();
    assert!(
        prompt.contains("src/b.py:") && prompt.contains("use of charge in show_99"),
        "{prompt}"
    );
    let files = "web/view00.py, web/view01.py, web/view02.py, web/view03.py, web/view04.py, web/view05.py, \
         web/view06.py, web/view07.py, web/view08.py, web/view09.py and 2 more";
    let listed =
        format!("(not searched for definitions and uses, since they could not be read: {files})\n");
    assert!(prompt.contains(&listed), "{prompt}");
    let report = run.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        report.contains("12 files were not searched for definitions and uses: web/view00.py, "),
        "{report}"
    );
    assert!(
        report.contains("missing from this partial clone"),
        "{report}"
    );
    // With all files, there is no note.
    project.repo.stage("src/a.py", text("total + 1"));
    let prompt = project.prompt();
    assert!(
        prompt.contains("use of charge in show_3") && !prompt.contains("could not be read"),
        "{prompt}"
    );
}

#[test]
fn files_that_a_sparse_checkout_left_out_are_searched() {
    for is_sparse_index in [false, true] {
        let project = Project::new();
        let text =
            |body: &str| format!("def charge(total):\n{}    return {body}\n", filler("x", 5));
        let caller = "from src.a import charge\n\n\ndef show_all():\n    return charge(1)\n";
        project
            .repo
            .stage("src/a.py", text("total"))
            .stage("web/view.py", caller)
            .commit("one");
        project.repo.git(&[
            "config",
            "index.sparse",
            if is_sparse_index { "true" } else { "false" },
        ]);
        project
            .repo
            .git(&["sparse-checkout", "set", "--cone", "src"]);
        assert!(!project.repo.path().join("web").exists());
        project.repo.write("src/a.py", text("total + 1"));
        project
            .repo
            .reviewer(&["review", "unstaged", "--no-save", "--no-cache"])
            .run(0);
        let prompt = project.server.questions()[0].prompt();
        assert!(
            prompt.contains("web/view.py:4-5: use of charge in show_all"),
            "{prompt}"
        );
    }
}

#[test]
fn the_type_before_a_name_decides_which_of_several_definitions_is_shown() {
    let project = Project::new();
    let store = |name: &str| {
        format!(
            "namespace N {{\n  class {name} {{\n    static int LoadAll(int a) {{ return 1; }}\n  }}\n}}\n"
        )
    };
    project
        .repo
        .stage("A.cs", store("Config"))
        .stage("B.cs", store("Other"));
    let text = |call: &str| format!("class Main {{\n  void Run() {{\n{call}  }}\n}}\n");
    project.repo.stage("Main.cs", text("")).commit("one");
    project
        .repo
        .stage("Main.cs", text("    Config.LoadAll(1);\n"));
    let prompt = project.prompt();
    assert!(
        prompt.contains("A.cs:") && !prompt.contains("B.cs:"),
        "{prompt}"
    );
    project
        .repo
        .stage("Main.cs", text("    Unknown.LoadAll(1);\n"));
    let prompt = project.prompt();
    assert!(
        prompt.contains("A.cs:") && prompt.contains("B.cs:"),
        "{prompt}"
    );
}

#[test]
fn a_use_in_a_file_that_defines_the_name_itself_is_not_one_of_another_file() {
    let project = Project::new();
    let app = |body: &str| {
        format!(
            "function createApp(a) {{\n  return {body}\n}}\n\nit('works', () => {{\n  createApp(1)\n}})\n"
        )
    };
    project
        .repo
        .stage("test/one.test.js", app("a"))
        .stage("test/two.test.js", app("a + 2"));
    project
        .repo
        .stage(
            "test/three.test.js",
            "const { createApp } = require('./one.test')\n\ncreateApp(3)\n",
        )
        .commit("one");
    project.repo.stage("test/one.test.js", app("a + 1"));
    let prompt = project.prompt();
    assert!(
        prompt.contains("test/three.test.js:") && !prompt.contains("test/two.test.js:"),
        "{prompt}"
    );
}

#[test]
fn a_parameter_with_the_name_of_a_changed_definition_is_no_use_of_it() {
    let project = Project::new();
    project
        .repo
        .stage("app/store.py", "def load_all(path):\n    return path\n");
    project
        .repo
        .stage("app/a.py", "def run(load_all):\n    return load_all(1)\n");
    project
        .repo
        .stage(
            "app/b.py",
            "from app.store import load_all\n\n\ndef go():\n    return load_all(1)\n",
        )
        .commit("one");
    project
        .repo
        .stage("app/store.py", "def load_all(path):\n    return path + 1\n");
    let prompt = project.prompt();
    assert!(
        prompt.contains("app/b.py:") && !prompt.contains("app/a.py:"),
        "{prompt}"
    );
}
