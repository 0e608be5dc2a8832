//! Tests of the symbols, by language.

use super::*;

fn symbols(path: &str, text: &str) -> Symbols {
    Symbols::read(&RepoPath::from(path), text.as_bytes()).unwrap()
}

/// Returns definitions as `kind name first-last signature`.
fn definitions(path: &str, text: &str) -> Vec<String> {
    let symbols = symbols(path, text);
    let shown = symbols.definitions.iter().map(|d| {
        let kind = format!("{:?}", d.kind).to_lowercase();
        format!(
            "{kind} {} {}-{} {}",
            d.name,
            d.lines.start(),
            d.lines.end(),
            d.signature.end()
        )
    });
    shown.collect()
}

fn uses(path: &str, text: &str, usage: Usage) -> Vec<String> {
    let symbols = symbols(path, text);
    symbols
        .uses
        .into_iter()
        .filter(|u| u.usage == usage)
        .map(|u| format!("{} {}", u.name, u.line))
        .collect()
}

#[test]
fn every_kind_of_node_is_one_of_the_grammar() {
    let all = grammar::all();
    for grammar in all {
        // Languages of a family share one table: C lacks kinds that only C++ has.
        let relatives = all.iter().filter(|g| g.family == grammar.family);
        let lacking: Vec<Vec<&str>> = relatives.map(grammar::Grammar::unknown_kinds).collect();
        let unknown: Vec<&str> = grammar
            .unknown_kinds()
            .into_iter()
            .filter(|kind| lacking.iter().all(|l| l.contains(kind)))
            .collect();
        assert_eq!(unknown, [""; 0], "{}", grammar.family);
    }
}

#[test]
fn definitions_have_their_lines_in_every_language() {
    let cases: &[(&str, &str, &[&str])] = &[
        (
            "a.py",
            "@cached\nclass A(B):\n    @property\n    def f(\n        self,\n    ):\n        return 1\n\n\nasync def g():\n    pass\n",
            &["type A 1-7 2", "function f 3-7 6", "function g 10-11 10"],
        ),
        (
            "a.js",
            "exports.load = function load(a) {\n  return a\n}\nconst f = async (x) => {\n  go(x)\n}\nclass A {\n  run() {\n    x()\n  }\n}\nmodule.exports = { go: function () {\n} }\n",
            &[
                "function load 1-3 1",
                "function f 4-6 4",
                "type A 7-11 7",
                "function run 8-10 8",
                "function go 12-13 12",
            ],
        ),
        (
            "a.test.ts",
            "describe('a', () => {\n  it.only(\"b c\", async () => {\n    run()\n  })\n})\nexport interface T { a(): void }\nexport type U = T\n",
            &[
                "test a 1-5 1",
                "test b c 2-4 2",
                "type T 6-6 6",
                "function a 6-6 6",
                "type U 7-7 7",
            ],
        ),
        (
            "a.tsx",
            "export default function App() {\n  return <Menu x={1} />\n}\n",
            &["function App 1-3 1"],
        ),
        (
            "a.go",
            "package a\n\ntype S struct {\n\tx int\n}\n\nfunc (s *S) Do(\n\tx int,\n) error {\n\treturn nil\n}\n",
            &["type S 3-5 3", "function Do 7-11 9"],
        ),
        (
            "A.java",
            "class A {\n    @Override\n    public int f(int x)\n    {\n        return g(x);\n    }\n    record R(int a) {}\n}\n",
            &["type A 1-8 1", "function f 2-6 3", "type R 7-7 7"],
        ),
        (
            "a.kt",
            "class A(val x: Int) {\n    fun f(): Int {\n        return g(x)\n    }\n    companion object {\n        fun of() = A(1)\n    }\n}\nobject O\n",
            &[
                "type A 1-8 1",
                "function f 2-4 2",
                "function of 6-6 6",
                "type O 9-9 9",
            ],
        ),
        (
            "a.rb",
            "module M\n  class A\n    def self.go(x)\n      x.run\n    end\n    def ok? = true\n  end\nend\n",
            &[
                "group M 1-8 1",
                "type A 2-7 2",
                "function go 3-5 3",
                "function ok? 6-6 6",
            ],
        ),
        (
            "a.php",
            "<?php\nfinal class A {\n    public static function go(int $x): int\n    {\n        return f($x);\n    }\n}\n",
            &["type A 2-7 2", "function go 3-6 3"],
        ),
        (
            "a.rs",
            "#[derive(Debug)]\nstruct A;\n\nimpl A {\n    #[must_use]\n    fn go(\n        &self,\n    ) -> u8 {\n        1\n    }\n}\n",
            &["type A 1-2 2", "group A 4-11 4", "function go 5-10 8"],
        ),
        (
            "a.c",
            "struct p { int x; };\n\nstatic struct p *\nmake(int a)\n{\n\treturn f(a);\n}\n",
            &["type p 1-1 1", "function make 3-7 4"],
        ),
        (
            "a.cpp",
            "namespace n {\ntemplate <typename T>\nclass B {\n  void f() { g(); }\n};\nvoid B<int>::h() {\n}\n}\n",
            &[
                "group n 1-8 1",
                "type B 2-5 3",
                "function f 4-4 4",
                "function h 6-7 6",
            ],
        ),
        (
            "a.cs",
            "namespace N {\n  class A {\n    public A(int x) { }\n    public async Task<int> Go(string s) {\n      return await X(s);\n    }\n  }\n}\n",
            &[
                "group N 1-8 1",
                "type A 2-7 2",
                "function A 3-3 3",
                "function Go 4-6 4",
            ],
        ),
        (
            "a.sh",
            "go() {\n  echo x\n}\nfunction b {\n  go\n}\n",
            &["function go 1-3 1", "function b 4-6 4"],
        ),
    ];
    for (path, text, expected) in cases {
        assert_eq!(definitions(path, text), *expected, "{path}");
    }
}

#[test]
fn types_name_what_they_extend_in_every_language() {
    let cases: &[(&str, &str, &[&str])] = &[
        (
            "a.py",
            "class A(b.B, C[int], metaclass=M):\n    pass\nclass D:\n    pass\n",
            &["A: B C"],
        ),
        (
            "a.js",
            "class A extends b.B {\n}\nconst D = class extends C {\n}\n",
            &["A: B"],
        ),
        (
            "a.ts",
            "class A extends b.B<X> implements C, D<Y> {\n}\ninterface E extends F<X>, G {\n}\n",
            &["A: B C D", "E: F G"],
        ),
        ("a.tsx", "abstract class A extends B {\n}\n", &["A: B"]),
        (
            "A.java",
            "class A extends b.B<X> implements C, D<Y> {\n}\ninterface E extends F, G {\n}\nenum H implements I { X }\n",
            &["A: B C D", "E: F G", "H: I"],
        ),
        (
            "a.kt",
            "class A(x: Int) : B(x), c.C<X>, D by d {\n}\nobject E : F()\ninterface G : H\n",
            &["A: B C D", "E: F", "G: H"],
        ),
        (
            "a.rb",
            "class A < B\nend\nclass C < D::E\nend\nclass F\nend\n",
            &["A: B", "C: E"],
        ),
        (
            "a.php",
            "<?php\nclass A extends B implements C, \\X\\D {\n}\ninterface E extends F {\n}\n",
            &["A: B C D", "E: F"],
        ),
        (
            "a.cs",
            "class A : b.B<X>, C {\n}\nrecord D(int X) : E(X);\ninterface F : G {\n}\n",
            &["A: B C", "D: E", "F: G"],
        ),
        (
            "a.cpp",
            "class A : public n::B<X>, private C {\n};\nstruct D : E {\n};\n",
            &["A: B C", "D: E"],
        ),
        (
            "a.rs",
            "impl fmt::Display for A {\n}\nimpl B {\n}\n",
            &["A: Display"],
        ),
    ];
    for (path, text, expected) in cases {
        let found: Vec<String> = symbols(path, text)
            .definitions
            .iter()
            .filter(|d| !d.bases.is_empty())
            .map(|d| format!("{}: {}", d.name, d.bases.join(" ")))
            .collect();
        assert_eq!(found, *expected, "{path}");
    }
}

#[test]
fn comments_before_the_first_statement_are_no_part_of_a_signature() {
    for (path, text, expected) in [
        (
            "a.py",
            "def f(\n    a,\n):\n    # one\n    # two\n    return a\n",
            "function f 1-6 3",
        ),
        (
            "a.py",
            "def f(a) -> int:\n\n    # one\n    return a\n",
            "function f 1-4 1",
        ),
        (
            "A.java",
            "class A {\n    int f()\n    // one\n    {\n        return 1;\n    }\n}\n",
            "function f 2-6 2",
        ),
        ("a.rb", "def f(a)\n  # one\n  a\nend\n", "function f 1-4 1"),
        (
            "a.c",
            "int\nf(int a)\n/* one */\n{\n\treturn a;\n}\n",
            "function f 1-6 2",
        ),
    ] {
        assert!(
            definitions(path, text).contains(&expected.to_owned()),
            "{path}: {:?}",
            definitions(path, text)
        );
    }
}

#[test]
fn the_scope_of_a_qualified_definition_is_known() {
    let text = "int Store::load(int a) {\n}\nFoo& n::Store::get() {\n}\nint free(int a) {\n}\n";
    let symbols = symbols("a.cpp", text);
    let found: Vec<(&str, &str)> = symbols
        .definitions
        .iter()
        .map(|d| (d.name.as_str(), d.scope.as_str()))
        .collect();
    assert_eq!(found, [("load", "Store"), ("get", "Store"), ("free", "")]);
}

#[test]
fn calls_have_the_last_part_of_their_name() {
    for (path, text, expected) in [
        (
            "a.py",
            "x = a.b.load(c(1))\nA()\n",
            &["load 1", "c 1", "A 2"][..],
        ),
        (
            "a.js",
            "a.b.load(c(1))\nnew A()\nthis.x()\nf``\n",
            &["load 1", "c 1", "A 2", "x 3", "f 4"],
        ),
        (
            "a.go",
            "package a\nfunc f() { a.Load(c(1)) }\n",
            &["Load 2", "c 2"],
        ),
        (
            "A.java",
            "class A { void f() { a.b.load(c(1)); new B<C>(); } }\n",
            &["load 1", "c 1", "B 1"],
        ),
        ("a.kt", "fun f() { a.b.load(c(1)) }\n", &["load 1", "c 1"]),
        (
            "a.rb",
            "a.b.load(c(1))\nrun x\n",
            &["load 1", "b 1", "c 1", "run 2"],
        ),
        (
            "a.php",
            "<?php $a->b->load(c(1)); A::go(); new B();\n",
            &["load 1", "c 1", "go 1", "B 1"],
        ),
        (
            "a.rs",
            "fn f() { a.b.load(c::d(1)); x!(); g::<T>(); }\n",
            &["load 1", "d 1", "x 1", "g 1"],
        ),
        (
            "a.cpp",
            "void f() { a->load(n::c(1)); new B(); t<int>(1); }\n",
            &["load 1", "c 1", "B 1", "t 1"],
        ),
        (
            "a.cs",
            "class A { void F() { a.b.Load(C(1)); new B(); } }\n",
            &["Load 1", "C 1", "B 1"],
        ),
        ("a.sh", "go a | sort\n", &["go 1", "sort 1"]),
    ] {
        assert_eq!(uses(path, text, Usage::Call), expected, "{path}");
    }
}

#[test]
fn names_that_an_import_renames_are_known_with_their_own() {
    for (path, text, expected) in [
        (
            "a.py",
            "from x.y import load as read_config, go\nimport numpy as np\n",
            &["np numpy", "read_config load"][..],
        ),
        (
            "a.js",
            "import { load as readConfig, go, default as b } from './x'\n",
            &["b default", "readConfig load"],
        ),
        (
            "b.js",
            "const { load: readConfig, go } = require('./x')\nconst a = require('./y').save\n",
            &["a save", "readConfig load"],
        ),
        (
            "c.js",
            "const { load: own } = x()\nconst b = y.save\nconst { c: d } = await import('./z')\n",
            &["d c"],
        ),
        (
            "a.ts",
            "import type { Load as Config } from './x'\n",
            &["Config Load"],
        ),
        (
            "a.tsx",
            "import { Menu as Item } from './x'\n",
            &["Item Menu"],
        ),
        ("a.go", "package a\nimport st \"x/store\"\n", &[]),
        ("A.java", "import a.b.Load;\n", &[]),
        (
            "a.kt",
            "import a.b.load as readConfig\nimport a.c.go\n",
            &["readConfig load"],
        ),
        (
            "a.rs",
            "use a::{b::load as read_config, c};\nuse d as e;\n",
            &["e d", "read_config load"],
        ),
        (
            "a.php",
            "<?php\nuse A\\B as C;\nuse function D\\{load as readConfig, go};\n",
            &["C B", "readConfig load"],
        ),
        (
            "a.cs",
            "using Config = App.Settings;\nusing App;\n",
            &["Config Settings"],
        ),
    ] {
        let found: Vec<String> = symbols(path, text)
            .renamed
            .iter()
            .map(|(a, b)| format!("{a} {b}"))
            .collect();
        assert_eq!(found, expected, "{path}");
    }
}

#[test]
fn names_from_the_standard_library_are_known() {
    for (path, text, expected) in [
        (
            "a.py",
            "from pathlib import Path as P, PurePath\nfrom .pathlib import Own\nfrom paths import Other\n",
            "P Path PurePath",
        ),
        (
            "b.py",
            "from os.path import join\nfrom oslo.config import Config\nimport os\n",
            "join",
        ),
        (
            "a.js",
            "import { join as j } from 'node:path'\nimport { load } from './path'\n",
            "j join",
        ),
        (
            "b.js",
            "const { join, sep: s } = require('path')\nconst e = require('events').EventEmitter\n",
            "EventEmitter join sep",
        ),
        (
            "c.js",
            "const { join } = require('./path')\nconst { load } = require('paths')\nconst path = 'fs'\n",
            "",
        ),
        (
            "a.ts",
            "import { Stream } from \"stream\"\nimport { A } from \"stream-a\"\n",
            "Stream",
        ),
        (
            "A.java",
            "import java.util.List;\nimport javax.a.Own;\nimport javas.b.Other;\n",
            "List",
        ),
        (
            "a.kt",
            "import kotlin.io.path.Path\nimport app.Other\n",
            "Path",
        ),
        (
            "a.rs",
            "use std::{fs, path::Path as P};\nuse crate::path::Own;\n",
            "P Path fs path std",
        ),
    ] {
        let found: Vec<String> = symbols(path, text).standard.into_iter().collect();
        assert_eq!(found.join(" "), expected, "{path}");
    }
}

#[test]
fn the_modules_of_imported_names_are_known() {
    for (path, text, expected) in [
        (
            "a.py",
            "from requests.adapters import Retry as R, Pool\nfrom .own import Pool\nimport json\n",
            "Pool=.own|requests.adapters R=requests.adapters Retry=requests.adapters",
        ),
        (
            "a.ts",
            "import type { A, B as C } from '@acme/kit'\nimport d from \"./d\"\n",
            "A=@acme/kit B=@acme/kit C=@acme/kit d=./d",
        ),
        (
            "a.js",
            "const { join, sep: s } = require('lodash')\nconst e = require('./x').load\n",
            "join=lodash load=./x sep=lodash",
        ),
        (
            "A.java",
            "import org.junit.Test;\nimport static a.b.C.run;\nimport a.b.*;\n",
            "Test=org.junit.Test run=a.b.C.run",
        ),
        (
            "a.kt",
            "import io.ktor.server.Call as C\nimport app.Other\n",
            "C=io.ktor.server.Call Call=io.ktor.server.Call Other=app.Other",
        ),
        (
            "a.rs",
            "use serde::{de, ser::Map as M};\nuse crate::own::Own;\n",
            "M=serde Map=serde Own=crate crate=crate de=serde own=crate ser=serde serde=serde",
        ),
        (
            "a.php",
            "<?php\nuse App\\Models\\User;\nuse \\Monolog\\Logger as Log;\nuse A\\X, B\\Y;\n",
            "Log=Monolog\\Logger Logger=Monolog\\Logger User=App\\Models\\User",
        ),
        ("a.go", "package a\nimport st \"x/store\"\n", ""),
    ] {
        let modules = symbols(path, text).modules.into_iter();
        let shown = modules
            .map(|(name, all)| format!("{name}={}", all.into_iter().collect::<Vec<_>>().join("|")));
        assert_eq!(shown.collect::<Vec<_>>().join(" "), expected, "{path}");
    }
}

#[test]
fn a_package_that_an_import_renames_is_known_by_its_path() {
    let symbols = symbols(
        "a.go",
        "package a\nimport st \"x/store\"\nfunc f() { st.Load() }\n",
    );
    assert!(symbols.imports.contains("store"), "{:?}", symbols.imports);
    assert_eq!(
        (symbols.uses[0].name.as_str(), symbols.original("Load")),
        ("Load", "Load")
    );
}

#[test]
fn scripts_that_a_shell_script_reads_are_its_imports() {
    let text = "source \"$(dirname \"$0\")/lib/common.sh\"\n. ./util.sh\n[ -f x ] && . \"${DIR}/env\"\necho a.sh\n";
    let imports: Vec<String> = symbols("a.sh", text).imports.into_iter().collect();
    assert_eq!(imports, ["common", "env", "util"]);
}

#[test]
fn a_chain_of_calls_has_each_call_on_its_line() {
    assert_eq!(
        uses("a.js", "app\n  .use(x)\n  .listen(1)\n", Usage::Call),
        ["use 2", "listen 3"]
    );
}

#[test]
fn the_innermost_function_encloses_a_line() {
    let symbols = symbols("a.py", "def f():\n    def g():\n        x\n    y\nz\n");
    let names = [3, 4, 5].map(|line| symbols.function_at(line).map(|d| d.name.as_str()));
    assert_eq!(names, [Some("g"), Some("f"), None]);
}

#[test]
fn broken_code_keeps_the_definitions_around_it() {
    let found = definitions("a.py", "def f():\n    x = (\n\ndef g():\n    return 1\n");
    assert!(
        found.iter().any(|d| d.starts_with("function g ")),
        "{found:?}"
    );
}

#[test]
fn hostile_files_end_in_time_and_without_a_crash() {
    for (path, unit) in [
        ("a.js", "(["),
        ("a.py", "f("),
        ("a.cpp", "a<"),
        ("a.rb", "%w["),
        ("a.sh", "$(("),
        ("a.rs", "{"),
    ] {
        let text = unit.repeat(100_000);
        // It is parsed or skipped, but does not crash.
        let _ = Symbols::read(&RepoPath::from(path), text.as_bytes());
    }
    let large = vec![b' '; MAX_BYTES + 1];
    assert_eq!(Symbols::read(&RepoPath::from("a.py"), &large), None);
}

#[test]
fn files_of_other_languages_have_no_symbols() {
    assert!(!is_supported(&RepoPath::from("a.md")) && is_supported(&RepoPath::from("src/A.KT")));
    fn share(a: &str, b: &str) -> bool {
        share_names(&RepoPath::from(a), &RepoPath::from(b))
    }
    assert!(
        share("a.ts", "b.js")
            && share("a.h", "b.c")
            && !share("a.py", "b.go")
            && !share("a.md", "b.md")
    );
}

#[test]
fn the_first_name_before_a_use_is_its_qualifier() {
    for (path, text, expected) in [
        (
            "a.py",
            "np.linalg.norm(x)\nf()\na().load()\nself.x.go()\nb[1].run()\n",
            "np.norm f load a self.go run",
        ),
        (
            "a.ts",
            "axios?.get(x)\naxios\n  .put(y)\nlet a: ns.Store = z\n",
            "axios.get axios.put ns.Store",
        ),
        ("a.js", "f(...args.all())\n", "f args.all"),
        (
            "a.go",
            "package a\nfunc f(r *http.Request) { mux.NewRouter() }\n",
            "http.Request mux.NewRouter",
        ),
        (
            "A.java",
            "class A { void f() { Assert.that(a.b().load()); } }\n",
            "Assert.that load a.b",
        ),
        (
            "a.rs",
            "fn f() { log.info(); log::info(a::B::c()); }\n",
            "info log.info a.c",
        ),
        (
            "a.php",
            "<?php Str::slug($a->load()); \\A\\B::go();\n",
            "Str.slug $a.load go",
        ),
        (
            "a.cpp",
            "void f() { std::sort(a->size()); ::g(); }\n",
            "std.sort a.size g",
        ),
        ("a.rb", "Faraday.get(@a&.b)\n", "Faraday.get Faraday @a.b"),
        (
            "a.cs",
            "class A { void F() { JsonConvert.To(1); } }\n",
            "JsonConvert.To",
        ),
    ] {
        let found: Vec<String> = symbols(path, text)
            .uses
            .into_iter()
            .map(|u| {
                if u.qualifier.is_empty() {
                    u.name
                } else {
                    format!("{}.{}", u.qualifier, u.name)
                }
            })
            .collect();
        assert_eq!(found.join(" "), expected, "{path}");
    }
}

#[test]
fn names_that_stand_for_whole_modules_are_known() {
    for (path, text, expected) in [
        (
            "a.py",
            "import requests, os.path\nimport numpy.linalg as la\nfrom a import b\n",
            "la=numpy.linalg os=os.path requests=requests",
        ),
        (
            "a.ts",
            "import axios, { get } from 'axios'\nimport * as fs from \"node:fs\"\nimport x = require('y')\n",
            "axios=axios fs=node:fs x=y",
        ),
        (
            "a.js",
            "const axios = require('axios')\nconst { a } = require('b')\nconst c = load('d')\nconst e = await import('f')\n",
            "axios=axios e=f",
        ),
        (
            "a.go",
            "package a\nimport (\n\t\"net/http\"\n\tm \"x.org/mux/v2\"\n\t\"x.org/chi/v5\"\n\t\"gopkg.in/yaml.v3\"\n\t\"x.org/go-redis\"\n)\nimport \"fmt\"\n",
            "chi=x.org/chi/v5 fmt=fmt http=net/http m=x.org/mux/v2 redis=x.org/go-redis yaml=gopkg.in/yaml.v3",
        ),
        ("A.java", "import org.junit.Test;\n", ""),
    ] {
        let whole = symbols(path, text).whole.into_iter();
        let shown = whole
            .map(|(name, all)| format!("{name}={}", all.into_iter().collect::<Vec<_>>().join("|")));
        assert_eq!(shown.collect::<Vec<_>>().join(" "), expected, "{path}");
    }
}

#[test]
fn parameters_and_local_variables_are_known_in_every_language() {
    for (path, text, expected) in [
        (
            "a.py",
            "def f(a, b=g, *c, d: T = h, **e):\n    i, self.j = k\n    for l in m:\n        with n as o:\n            pass\n    return lambda p: q\n",
            "a b c d e i l o p",
        ),
        (
            "a.js",
            "function f(a, { b, c: d = e }, ...g) {\n  const h = i, [j] = k\n  let l = require('m')\n  for (const n of o) x(p => q)\n}\n",
            "a b d g h j n p",
        ),
        (
            "a.ts",
            "const f = (a: T, b?: U) => {\n  try { } catch (c) { }\n}\n",
            "a b c",
        ),
        (
            "a.go",
            "package a\nfunc (r *R) F(a, b int, c ...T) (d error) {\n\te, f := g()\n\tvar h = i\n\tfor j, k := range l {\n\t}\n\treturn\n}\n",
            "a b c d e f h j k r",
        ),
        (
            "A.java",
            "class A {\n  int field = 1;\n  void f(@B(c) final D e) {\n    int g = h;\n    for (I j : k) { l(m -> n); }\n  }\n}\n",
            "e g j m",
        ),
        (
            "a.kt",
            "fun f(a: T, b: U = c) {\n  val d = e\n  g { h -> i }\n}\n",
            "a b d h",
        ),
        (
            "a.rb",
            "def f(a, b = c, d:)\n  e = g\n  h.each { |i| j }\nend\n",
            "a b d e i",
        ),
        (
            "a.rs",
            "fn f(a: T, (b, c): U) {\n    let Some(d) = e;\n    for g in h { i(|j| k); }\n}\n",
            "a b c d g j",
        ),
        (
            "a.cpp",
            "int f(int a, const T &b) {\n  auto c = d;\n  return [](int e) { return g; };\n}\n",
            "a b c e",
        ),
        (
            "a.cs",
            "class A {\n  int F(int a, T b = c) {\n    var d = e;\n    foreach (var g in h) { }\n  }\n}\n",
            "a b d g",
        ),
    ] {
        let found: BTreeSet<String> = symbols(path, text)
            .bindings
            .into_iter()
            .map(|b| b.name)
            .collect();
        assert_eq!(
            found.into_iter().collect::<Vec<_>>().join(" "),
            expected,
            "{path}"
        );
    }
}

#[test]
fn a_local_variable_is_known_within_its_function() {
    let text = "def f(load):\n    load()\n\n\ndef g():\n    load()\n    x.load()\n";
    let symbols = symbols("a.py", text);
    let path = RepoPath::from("a.py");
    let local: Vec<bool> = symbols
        .uses
        .iter()
        .map(|u| symbols.is_local(&path, u))
        .collect();
    assert_eq!(local, [true, false, false]);
}
