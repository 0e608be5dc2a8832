//! Tests of names that belong to the standard library or to a package of another project: they do
//! not refer to definitions of the repository.

use super::Project;

#[test]
fn a_name_of_the_standard_library_is_not_one_of_the_repository() {
    let cases = [
        (
            "py",
            (
                "class Pathway:\n    def up(self):\n        pass\n",
                "x = Pathway(N)\n",
            ),
            ("from pathlib import Pathway", "from lib.own import Pathway"),
        ),
        (
            "ts",
            (
                "export class Pathway {\n  up() {}\n}\n",
                "x = new Pathway(N)\n",
            ),
            (
                "import { Pathway } from 'node:path'",
                "import { Pathway } from './own'",
            ),
        ),
        (
            "js",
            ("class Pathway {\n  up() {}\n}\n", "x = new Pathway(N)\n"),
            (
                "const { Pathway } = require('fs')",
                "const { Pathway } = require('./own')",
            ),
        ),
        (
            "rs",
            (
                "pub struct Pathway {\n    up: u8,\n}\n",
                "fn f(x: Pathway) -> u8 {\n    N\n}\n",
            ),
            ("use std::path::Pathway;", "use crate::own::Pathway;"),
        ),
        (
            "kt",
            (
                "class Pathway {\n    val up = 1\n}\n",
                "val x = Pathway(N)\n",
            ),
            ("import java.nio.Pathway", "import lib.own.Pathway"),
        ),
    ];
    for (extension, (library, used), (standard, own)) in cases {
        for (import, is_shown) in [(standard, false), (own, true)] {
            let project = Project::new();
            let (path, definition) = (
                format!("lib/main.{extension}"),
                format!("lib/own.{extension}"),
            );
            let text = |n: &str| format!("{import}\n\n{}", used.replace('N', n));
            project
                .repo
                .stage(&definition, library)
                .stage(&path, text("1"))
                .commit("one");
            project.repo.stage(&path, text("2"));
            let prompt = project.prompt();
            let shown = prompt.contains(&format!("{definition}:1-"));
            assert_eq!(shown, is_shown, "{import}: {prompt}");
            // In the other direction: a change of the definition shows its uses.
            project.repo.commit("two");
            project
                .repo
                .stage(&definition, library.replace("up", "down"));
            let prompt = project.prompt();
            assert!(
                is_shown || !prompt.contains(&format!("{path}:")),
                "{import}: {prompt}"
            );
        }
    }
}

#[test]
fn a_name_of_a_package_of_another_project_is_not_one_of_the_repository() {
    let node = r#"{"name": "app", "dependencies": {"path-kit": "^1"}}"#;
    let cases = [
        (
            "py",
            (
                "class Pathway:\n    def up(self):\n        pass\n",
                "x = Pathway(N)\n",
            ),
            (
                "from pathkit.core import Pathway",
                "from lib.own import Pathway",
            ),
            ("pyproject.toml", "[project]\nname = \"app\"\n"),
        ),
        (
            "ts",
            (
                "export class Pathway {\n  up() {}\n}\n",
                "x = new Pathway(N)\n",
            ),
            (
                "import { Pathway } from 'path-kit/core'",
                "import { Pathway } from '@/own'",
            ),
            ("package.json", node),
        ),
        (
            "js",
            ("class Pathway {\n  up() {}\n}\n", "x = new Pathway(N)\n"),
            (
                "const { Pathway } = require('path-kit')",
                "const { Pathway } = require('./own')",
            ),
            ("package.json", node),
        ),
        (
            "rs",
            (
                "pub struct Pathway {\n    up: u8,\n}\n",
                "fn f(x: Pathway) -> u8 {\n    N\n}\n",
            ),
            ("use path_kit::Pathway;", "use app::own::Pathway;"),
            (
                "Cargo.toml",
                "[package]\nname = \"app\"\n[dependencies]\npath-kit = \"1\"\n",
            ),
        ),
        (
            "php",
            (
                "<?php\nclass Pathway {\n  function up() {}\n}\n",
                "class Way extends Base {\n  public $way;\n  function f() { return new Pathway(N); }\n}\n",
            ),
            ("<?php\nuse PathKit\\Pathway;", "<?php\nuse App\\Pathway;"),
            (
                "composer.json",
                r#"{"autoload": {"psr-4": {"App\\": "lib/"}}}"#,
            ),
        ),
    ];
    for (extension, (library, used), (foreign, own), (manifest, text_of_manifest)) in cases {
        for (import, is_shown) in [(foreign, false), (own, true)] {
            let project = Project::new();
            let (path, definition) = (
                format!("lib/main.{extension}"),
                format!("lib/own.{extension}"),
            );
            let text = |n: &str| format!("{import}\n\n{}", used.replace('N', n));
            project.repo.stage(manifest, text_of_manifest);
            project
                .repo
                .stage(&definition, library)
                .stage(&path, text("1"))
                .commit("one");
            project.repo.stage(&path, text("2"));
            let prompt = project.prompt();
            let shown = prompt.contains(&format!("{definition}:"));
            assert_eq!(shown, is_shown, "{import}: {prompt}");
            // In the other direction: a change of the definition shows its uses.
            project.repo.commit("two");
            project
                .repo
                .stage(&definition, library.replace("up", "down"));
            let prompt = project.prompt();
            assert!(
                is_shown || !prompt.contains(&format!("{path}:")),
                "{import}: {prompt}"
            );
        }
    }
}

/// A file that uses names of another project with a module or type before them, in a repository
/// that defines the same names.
struct Qualified {
    path: &'static str,
    manifest: (&'static str, &'static str),
    head: &'static str,
    /// The statement that the change adds to the function.
    call: &'static str,
    function: (&'static str, &'static str),
    /// The file that defines the names.
    own: (&'static str, &'static str),
}

const QUALIFIED: [Qualified; 8] = [
    Qualified {
        path: "app/main.py",
        manifest: ("pyproject.toml", "[project]\nname = \"app\"\n"),
        head: "import requests\nimport numpy as np\n\n\n",
        call: "    return requests.fetch(np.norms(1))\n",
        function: ("def main():\n    x = 1\n", ""),
        own: (
            "app/util.py",
            "def fetch(url):\n    return url\n\n\ndef norms(x):\n    return x\n",
        ),
    },
    Qualified {
        path: "app/main.js",
        manifest: (
            "package.json",
            "{\"name\": \"app\", \"dependencies\": {\"axios\": \"1\"}}\n",
        ),
        head: "const axios = require('axios')\nconst fs = require('fs')\n\n",
        call: "  return axios.fetch(fs.norms(1))\n",
        function: ("function main() {\n", "}\n"),
        own: (
            "app/tools.js",
            "exports.fetch = function (url) {\n}\n\nexports.norms = function (x) {\n}\n",
        ),
    },
    Qualified {
        path: "app/main.ts",
        manifest: (
            "package.json",
            "{\"name\": \"app\", \"dependencies\": {\"axios\": \"1\", \"ky\": \"1\"}}\n",
        ),
        head: "import axios from 'axios'\nimport * as ky from 'ky'\n\n",
        call: "  return axios.fetch(ky.norms(1))\n",
        function: ("export function main() {\n", "}\n"),
        own: (
            "app/tools.ts",
            "export function fetch(url) {\n}\n\nexport function norms(x) {\n}\n",
        ),
    },
    Qualified {
        path: "app/main.go",
        manifest: ("go.mod", "module example.org/app\n\ngo 1.22\n"),
        head: "package app\n\nimport (\n\t\"net/http\"\n\n\tm \"github.com/gorilla/mux/v2\"\n)\n\n",
        call: "\thttp.Fetch(m.Norms(1))\n",
        function: ("func Main() {\n", "}\n"),
        own: (
            "util/util.go",
            "package util\n\nfunc Fetch(url string) {\n}\n\nfunc Norms(x int) {\n}\n",
        ),
    },
    Qualified {
        path: "src/main.rs",
        manifest: (
            "Cargo.toml",
            "[package]\nname = \"app\"\n[dependencies]\nureq = \"1\"\n",
        ),
        head: "use std::cmp;\n\n",
        call: "    ureq::fetch(cmp::norms(1));\n",
        function: ("fn main() {\n", "}\n"),
        own: (
            "src/util.rs",
            "pub fn fetch(url: &str) {\n}\n\npub fn norms(x: u8) {\n}\n",
        ),
    },
    Qualified {
        path: "src/org/acme/app/Main.java",
        manifest: ("pom.xml", "<project/>\n"),
        head: "package org.acme.app;\n\nimport org.other.Client;\nimport org.other.Maths;\n\n",
        call: "        Client.fetch(Maths.norms(1));\n",
        function: ("class Main {\n    void main() {\n", "    }\n}\n"),
        own: (
            "src/org/acme/app/Util.java",
            "package org.acme.app;\n\nclass Util {\n    static void fetch(int x) {\n    }\n\n    static int norms(int x) {\n        return x;\n    }\n}\n",
        ),
    },
    Qualified {
        path: "app/main.php",
        manifest: (
            "composer.json",
            "{\"autoload\": {\"psr-4\": {\"App\\\\\": \"app/\"}}}\n",
        ),
        head: "<?php\nnamespace App;\n\nuse Other\\Client;\nuse Other\\Maths;\n\n",
        call: "    Client::fetch(Maths::norms(1));\n",
        function: ("function main() {\n", "}\n"),
        own: (
            "app/Util.php",
            "<?php\nnamespace App;\n\nclass Util {\n    static function fetch($x) {\n    }\n\n    static function norms($x) {\n    }\n}\n",
        ),
    },
    Qualified {
        path: "src/main.cpp",
        manifest: ("CMakeLists.txt", "project(app)\n"),
        head: "#include <vector>\n\n",
        call: "  std::fetch(std::norms(1));\n",
        function: ("void run() {\n", "}\n"),
        own: (
            "src/util.cpp",
            "void fetch(int x) {\n}\n\nint norms(int x) {\n  return x;\n}\n",
        ),
    },
];

impl Qualified {
    fn text(&self, call: &str) -> String {
        format!("{}{}{call}{}", self.head, self.function.0, self.function.1)
    }
}

#[test]
fn a_name_with_a_module_of_another_project_before_it_is_not_one_of_the_repository() {
    for case in &QUALIFIED {
        let project = Project::new();
        project
            .repo
            .stage(case.manifest.0, case.manifest.1)
            .stage(case.own.0, case.own.1);
        project.repo.stage(case.path, case.text("")).commit("one");
        project.repo.stage(case.path, case.text(case.call));
        let prompt = project.prompt();
        assert!(!prompt.contains(case.own.0), "{}: {prompt}", case.path);
        // Without a module, the same names are those of the repository.
        let bare = |call: &str| {
            [
                "requests.",
                "np.",
                "axios.",
                "fs.",
                "ky.",
                "http.",
                "m.",
                "ureq::",
                "cmp::",
                "Client.",
                "Maths.",
            ]
            .iter()
            .chain(&["Client::", "Maths::", "std::"])
            .fold(call.to_owned(), |call, module| call.replace(module, ""))
        };
        project.repo.stage(case.path, case.text(&bare(case.call)));
        let prompt = project.prompt();
        assert!(prompt.contains(case.own.0), "{}: {prompt}", case.path);
    }
}

#[test]
fn a_use_with_a_module_of_another_project_before_it_is_not_one_of_a_changed_definition() {
    for case in &QUALIFIED {
        let project = Project::new();
        project
            .repo
            .stage(case.manifest.0, case.manifest.1)
            .stage(case.own.0, case.own.1);
        project
            .repo
            .stage(case.path, case.text(case.call))
            .commit("one");
        project.repo.stage(
            case.own.0,
            case.own.1.replace("url", "link").replace('x', "y"),
        );
        let prompt = project.prompt();
        assert!(
            !prompt.contains(&format!("{}:", case.path)),
            "{}: {prompt}",
            case.path
        );
    }
}

#[test]
fn a_local_variable_before_a_name_is_not_a_module() {
    let project = Project::new();
    project
        .repo
        .stage("go.mod", "module example.org/app\n")
        .stage("util/util.go", "package util\n\nfunc Fetch() {\n}\n");
    let text = |call: &str| {
        format!("package app\n\nimport \"net/url\"\n\nfunc Main(url Link) {{\n{call}}}\n")
    };
    project.repo.stage("app/main.go", text("")).commit("one");
    project.repo.stage("app/main.go", text("\turl.Fetch()\n"));
    assert!(project.prompt().contains("util/util.go"));
}
