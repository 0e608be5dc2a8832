//! Tests of the tools of a model: exactly the reviewed tree, without secrets, within limits, and
//! recorded.

mod history;
mod secrets;

use crate::support::Repo;
use claude_reviewer::ai::tools::{Caps, SPECS, Session};
use claude_reviewer::ai::tree::Tree;
use claude_reviewer::diff::RepoPath;
use claude_reviewer::env::Env;
use claude_reviewer::git::{self, State};
use claude_reviewer::policy::RulesPolicy;
use claude_reviewer::rules::RuleSet;
use serde_json::{Value, json};

/// Opens the repository as the program does.
fn open(repo: &Repo) -> git::Repo {
    let env = Env::from_pairs(repo.path(), [("HOME", repo.home())]);
    git::Repo::open(&repo.path(), &env).unwrap()
}

fn rules() -> RuleSet {
    RuleSet::new(&RulesPolicy::default(), &[]).unwrap()
}

/// Returns the state of HEAD.
fn head(repo: &git::Repo) -> State {
    repo.state_of(repo.head().unwrap().unwrap()).unwrap()
}

/// Opens the tools on a state.
fn look<T>(repo: &Repo, state: fn(&git::Repo) -> State, then: impl FnOnce(&Tree<'_>) -> T) -> T {
    let (opened, rules) = (open(repo), rules());
    let tree = Tree::new(&opened, state(&opened), &rules);
    then(&tree)
}

/// Calls one tool in a separate session.
fn call(tree: &Tree<'_>, name: &str, arguments: &Value) -> String {
    Session::new(tree).call(name, arguments)
}

const STATES: [fn(&git::Repo) -> State; 3] = [head, |_| State::Index, |_| State::Worktree];

#[test]
fn each_state_shows_its_own_content_and_the_files_that_the_change_brings() {
    let repo = Repo::new();
    repo.stage("a.txt", "committed\n").commit("seed");
    repo.stage("a.txt", "staged\n")
        .stage("b.txt", "b\n")
        .write("a.txt", "written\n")
        .write("new.txt", "new\n");
    let text = |tree: &Tree<'_>, path: &str| {
        tree.text(&path.into())
            .map(|t| t.to_string())
            .unwrap_or_default()
    };
    for (state, content) in STATES
        .into_iter()
        .zip(["committed\n", "staged\n", "written\n"])
    {
        look(&repo, state, |tree| {
            assert_eq!(text(tree, "a.txt"), content);
            assert_eq!(text(tree, "new.txt"), "", "git does not track it");
        });
    }
    let (opened, rules) = (open(&repo), rules());
    let new = || [RepoPath::from("new.txt"), RepoPath::from("gone.txt")];
    let tree = Tree::new(&opened, State::Worktree, &rules).with_new(new());
    assert_eq!(text(&tree, "new.txt"), "new\n");
    assert_eq!(
        tree.paths().unwrap(),
        ["a.txt", "b.txt", "new.txt"].map(RepoPath::from)
    );
    let index = Tree::new(&opened, State::Index, &rules).with_new(new());
    assert_eq!(text(&index, "new.txt"), "");
}

#[test]
fn a_tree_is_named_by_its_content() {
    let repo = Repo::new();
    repo.stage("a.txt", "one\n").commit("seed");
    let ids = || STATES.map(|state| look(&repo, state, |tree| tree.id().unwrap().to_owned()));
    let before = ids();
    assert_eq!(before, ids());
    repo.write("a.txt", "two\n");
    let written = ids();
    assert_eq!(before[..2], written[..2]);
    assert_ne!(before[2], written[2]);
    // The same length, in the same second.
    repo.write("a.txt", "six\n");
    assert_ne!(written[2], ids()[2]);
    repo.git(&["add", "a.txt"]);
    assert_ne!(before[1], ids()[1]);
}

#[test]
fn what_was_shown_is_on_record_line_by_line() {
    let repo = Repo::new();
    let lines: String = (1..=1000).map(|n| format!("line {n}\n")).collect();
    repo.stage("a.txt", &lines)
        .stage("b.rs", "use a;\nfn one() {\n}\nfn two() {\n}\n")
        .commit("seed");
    look(&repo, head, |tree| {
        let mut session = Session::new(tree);
        let mut said = String::new();
        for (name, arguments) in [
            (
                "read_lines",
                json!({"path": "a.txt", "first": 10, "last": 12}),
            ),
            (
                "read_lines",
                json!({"path": "a.txt", "first": 900, "last": 2000}),
            ),
            ("search", json!({"pattern": "^line 5[01]$|two", "glob": ""})),
            ("outline", json!({"path": "b.rs"})),
            (
                "read_lines",
                json!({"path": "a.txt", "first": 5000, "last": 6000}),
            ),
            ("list_files", json!({"glob": ""})),
        ] {
            said += &session.call(name, &arguments);
            said.push('\n');
        }
        let read: Vec<_> = session
            .into_read()
            .iter()
            .map(|r| (r.path.to_wire(), r.first.get(), r.last.get()))
            .collect();
        let expected = [
            ("a.txt", 10, 12),
            ("a.txt", 900, 1000),
            ("a.txt", 50, 51),
            ("b.rs", 4, 4),
            ("b.rs", 2, 2),
            ("b.rs", 4, 4),
        ];
        assert_eq!(
            read,
            expected.map(|(p, a, b)| (p.to_owned(), a, b)),
            "{said}"
        );
        assert!(
            said.contains("a.txt has only 1000 lines")
                || said.contains("`a.txt` has only 1000 lines"),
            "{said}"
        );
        assert!(said.contains("2 files:\na.txt\nb.rs"), "{said}");
    });
}

#[test]
fn what_does_not_fit_is_said_and_not_on_record() {
    let repo = Repo::new();
    let lines: String = (1..=900)
        .map(|n| format!("{n} {}\n", "x".repeat(40)))
        .collect();
    repo.stage("a.txt", &lines)
        .stage("long.txt", format!("{}\nend\n", "y".repeat(100_000)))
        .commit("seed");
    look(&repo, head, |tree| {
        let caps = Caps {
            calls: 3,
            bytes: 10_000,
            bytes_per_call: 4_000,
        };
        let mut session = Session::with_caps(tree, caps);
        let first = session.call(
            "read_lines",
            &json!({"path": "a.txt", "first": 1, "last": 900}),
        );
        assert!(first.len() <= 4_000, "{}", first.len());
        let last = first
            .lines()
            .rev()
            .nth(1)
            .unwrap()
            .split(':')
            .next()
            .unwrap()
            .parse::<u32>()
            .unwrap();
        assert!(
            first.ends_with(&format!(
                "ask again with first = {}, or for less)",
                last + 1
            )),
            "{first}"
        );
        let long = session.call(
            "read_lines",
            &json!({"path": "long.txt", "first": 1, "last": 2}),
        );
        assert!(
            long.len() <= 4_000 && long.contains("bytes more)\n2: end"),
            "{long}"
        );
        assert!(!session.is_over());
        let found = session.call("search", &json!({"pattern": "x", "glob": ""}));
        assert!(
            found.len() <= 4_000 && found.contains("more matches"),
            "{found}"
        );
        assert!(session.is_over());
        let over = session.call("list_files", &json!({"glob": ""}));
        assert!(over.contains("answer now"), "{over}");
        let read = session.into_read();
        assert_eq!((read[0].first.get(), read[0].last.get()), (1, last));
    });
    look(&repo, head, |tree| {
        let caps = Caps {
            calls: 1000,
            bytes: 10_000,
            bytes_per_call: 4_000,
        };
        let mut session = Session::with_caps(tree, caps);
        let mut total = 0;
        while !session.is_over() {
            total += session
                .call(
                    "read_lines",
                    &json!({"path": "a.txt", "first": 1, "last": 900}),
                )
                .len();
        }
        assert!((9_000..=10_000).contains(&total), "{total}");
    });
}

#[test]
fn a_call_that_makes_no_sense_is_answered_with_what_to_do() {
    let repo = Repo::new();
    repo.stage("src/parser.rs", "fn parse() {}\n")
        .stage("empty", "")
        .stage("bin.png", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0".as_slice());
    repo.commit("seed");
    look(&repo, head, |tree| {
        for (name, arguments, answer) in [
            (
                "delete",
                json!({}),
                "available: read_lines, search, list_files, outline",
            ),
            ("read_lines", json!([1]), "one JSON object"),
            ("read_lines", json!({"first": 1}), "path is missing"),
            ("read_lines", json!({"path": 3}), "path must be a string"),
            (
                "read_lines",
                json!({"path": "src/parser.rs", "first": [], "last": 2}),
                "first must be a line number",
            ),
            (
                "read_lines",
                json!({"path": "lib/parser.rs", "first": 1, "last": 2}),
                "did you mean src/parser.rs?",
            ),
            (
                "read_lines",
                json!({"path": "empty", "first": 1, "last": 2}),
                "is empty",
            ),
            (
                "read_lines",
                json!({"path": "bin.png", "first": 1, "last": 2}),
                "not a text file",
            ),
            (
                "read_lines",
                json!({"path": "src", "first": 1, "last": 2}),
                "text file `src` not found",
            ),
            ("search", json!({"pattern": ""}), "pattern is missing"),
            (
                "search",
                json!({"pattern": "x".repeat(2000)}),
                "longer than",
            ),
            (
                "search",
                json!({"pattern": "x", "glob": "*.zig"}),
                "no file matches the glob",
            ),
            ("search", json!({"pattern": "x", "glob": "[z"}), "malformed"),
            ("outline", json!({"path": "empty"}), "no outline"),
        ] {
            let said = call(tree, name, &arguments);
            assert!(said.contains(answer), "{name} {arguments}: {said}");
        }
        // Similar arguments are accepted.
        for arguments in [
            json!({"path": "src/parser.rs", "first": 1, "last": 1}),
            json!({"path": "./src/parser.rs", "first": "1", "last": null}),
            json!({"path": "b/src/parser.rs", "first": 0, "last": 99}),
            json!("{\"path\": \"src/parser.rs\", \"first\": 9, \"last\": 1}"),
        ] {
            let said = call(tree, "read_lines", &arguments);
            assert_eq!(
                said, "src/parser.rs, lines 1 to 1 of 1:\n1: fn parse() {}",
                "{arguments}"
            );
        }
    });
}

#[test]
fn a_pattern_that_is_no_expression_is_searched_as_it_stands() {
    let repo = Repo::new();
    repo.stage("a.c", "int a = f(x[\n\nint b = g(y);\n")
        .commit("seed");
    look(&repo, head, |tree| {
        let said = call(tree, "search", &json!({"pattern": "f(x[", "glob": ""}));
        assert!(
            said.contains("searched as plain text") && said.contains("\n1: int a = f(x["),
            "{said}"
        );
        // No pattern is slow or too large: expressions are linear and bounded.
        for pattern in ["(x+x+)+y", "(?:a{1000}){1000}", "(?=b)int"] {
            let said = call(tree, "search", &json!({"pattern": pattern, "glob": ""}));
            assert!(said.contains("no line matches"), "{pattern}: {said}");
        }
        for (pattern, line) in [
            ("^int b", 3),
            (r"\Aint b", 3),
            ("(?i)INT B", 3),
            (r";\z", 3),
            ("y\\);$", 3),
        ] {
            let said = call(tree, "search", &json!({"pattern": pattern, "glob": "*.c"}));
            assert!(
                said.contains(&format!("a.c:\n{line}: int")),
                "{pattern}: {said}"
            );
        }
    });
}

#[test]
fn a_name_that_is_no_text_can_be_asked_for_as_it_is_shown() {
    use std::os::unix::ffi::OsStrExt as _;
    let repo = Repo::new();
    let name = std::ffi::OsStr::from_bytes(b"caf\xe9\n.txt");
    std::fs::write(repo.path().join(name), "x\n").unwrap();
    repo.git(&["add", "."]);
    repo.commit("seed");
    look(&repo, head, |tree| {
        let listed = call(tree, "list_files", &json!({"glob": ""}));
        let shown = listed.lines().nth(1).unwrap();
        assert_eq!(listed.lines().count(), 2, "{listed}");
        let said = call(
            tree,
            "read_lines",
            &json!({"path": shown, "first": 1, "last": 2}),
        );
        assert!(said.ends_with("\n1: x"), "{said}");
    });
}

#[test]
fn many_files_are_counted_by_folder() {
    let repo = Repo::new();
    for n in 0..150 {
        repo.write(&format!("src/a/{n}.rs"), "x\n")
            .write(&format!("src/b/c/{n}.rs"), "x\n");
    }
    repo.write("README.md", "x\n");
    repo.git(&["add", "."]);
    repo.commit("seed");
    look(&repo, head, |tree| {
        let all = call(tree, "list_files", &json!({"glob": ""}));
        assert_eq!(
            all,
            "301 files:\nREADME.md\nsrc/a/ (150 files)\nsrc/b/ (150 files)"
        );
        for glob in ["src/a", "src/a/", "src/a/*.rs", "./src/a"] {
            let some = call(tree, "list_files", &json!({ "glob": glob }));
            assert!(
                some.starts_with("150 files:\nsrc/a/0.rs\n"),
                "{glob}: {some}"
            );
        }
    });
}

#[test]
fn the_schema_of_each_tool_is_strict() {
    assert_eq!(SPECS.len(), 9);
    for spec in SPECS {
        let schema = spec.schema();
        let names: Vec<_> = schema["properties"]
            .as_object()
            .unwrap()
            .keys()
            .cloned()
            .collect();
        let required: Vec<String> = serde_json::from_value(schema["required"].clone()).unwrap();
        assert_eq!(names, required);
        assert_eq!(schema["additionalProperties"], json!(false));
        for property in schema["properties"].as_object().unwrap().values() {
            assert!(["string", "integer"].contains(&property["type"].as_str().unwrap()));
        }
    }
}

/// Creates a repository with a function that two others call, one of them in another file.
fn called() -> Repo {
    let repo = Repo::new();
    repo.stage("lib/store.py", "class Store:\n    def load(self, path):\n        return open(path)\n\n\ndef reload(store):\n    # load it again\n    return store.load('b')\n");
    repo.stage(
        "app/main.py",
        "from lib.store import Store\n\n\ndef main():\n    preload()\n    return Store().load('a')\n",
    );
    repo.stage("app/main.js", "function load () {}\n\nload()\n");
    repo.stage("notes.txt", "load\n").commit("seed");
    repo
}

#[test]
fn definitions_references_and_callers_of_a_name_are_found_with_their_functions() {
    look(&called(), head, |tree| {
        let ask = |tool: &str, name: &str, glob: &str| {
            call(tree, tool, &json!({ "name": name, "glob": glob }))
        };
        for name in ["load", "Store.load", "store::load()", "`load`"] {
            let shown = ask("definition", name, "*.py");
            let body = "lib/store.py:\n2:     def load(self, path):\n3:         return open(path)\n(1 definition shown)";
            assert_eq!(shown, body, "{name}");
        }
        assert!(ask("definition", "load", "").contains("app/main.js:\n1: function load () {}"));
        let callers = "app/main.py in main:\n6:     return Store().load('a')\nlib/store.py in reload:\n8:     return store.load('b')\n(2 calls shown)";
        assert_eq!(ask("callers", "load", "**/*.py"), callers);
        let references = ask("references", "load", "lib");
        let lines = "lib/store.py in load:\n2:     def load(self, path):\nlib/store.py in reload:\n7:     # load it again\n8:     return store.load('b')\n(3 lines shown)";
        assert_eq!(references, lines);
        assert_eq!(ask("callers", "nothing", ""), "(no call found)");
        for (name, glob, why) in [
            ("", "", "one identifier"),
            ("a b -", "", "one identifier"),
            ("load", "*.txt", "use search"),
        ] {
            let shown = ask("definition", name, glob);
            assert!(shown.contains(why), "{name}: {shown}");
        }
    });
}

#[test]
fn lines_that_the_tools_about_names_show_are_on_record() {
    look(&called(), head, |tree| {
        let mut session = Session::new(tree);
        session.call("callers", &json!({ "name": "load", "glob": "app" }));
        let read: Vec<_> = session
            .into_read()
            .iter()
            .map(|r| (r.path.to_wire(), r.first.get(), r.last.get()))
            .collect();
        assert_eq!(
            read,
            [
                ("app/main.js".to_owned(), 3, 3),
                ("app/main.py".to_owned(), 6, 6)
            ]
        );
    });
}

#[test]
fn a_name_with_many_uses_fills_one_answer_and_says_what_is_left_out() {
    let repo = Repo::new();
    let text = "def f():\n".to_owned() + &"    g()\n".repeat(500);
    repo.stage("a.py", text).commit("seed");
    look(&repo, head, |tree| {
        let shown = call(tree, "callers", &json!({ "name": "g", "glob": "" }));
        assert!(
            shown.ends_with("(120 calls shown; 380 more: give a glob)"),
            "{shown}"
        );
    });
}
