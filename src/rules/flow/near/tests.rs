//! Tests of the selection of functions and classes.

use super::super::{FlowLanguage, lower, start};
use super::{Entries, has_statement};
use crate::rules::parse;
use std::ops::Range;

/// Returns the names of the functions and classes that run for the lines of a text that contain a
/// word. `None`: all of them.
fn running(language: FlowLanguage, text: &str, word: &str) -> Option<Vec<String>> {
    let tree = parse::tree(&language.grammar(text.as_bytes()), text.as_bytes()).unwrap();
    let module = lower::module(language, tree.root_node(), text.as_bytes());
    let entries = super::entries(
        language,
        &module,
        text.as_bytes(),
        &lines_with(text, word),
        &start::prepared(language, &module, text.as_bytes()).nested,
    )?;
    Some(names(&module, &entries))
}

/// Returns the bytes of the lines that contain a word.
fn lines_with(text: &str, word: &str) -> Vec<Range<usize>> {
    let mut at = 0;
    let mut out = Vec::new();
    for line in text.split_inclusive('\n') {
        if line.contains(word) {
            out.push(at..at + line.len());
        }
        at += line.len();
    }
    out
}

/// Returns the names of entries, in order of the file.
fn names(module: &super::Module, entries: &Entries) -> Vec<String> {
    let functions = module.functions.iter().zip(&entries.functions);
    let classes = module.classes.iter().zip(&entries.classes);
    let names = functions
        .filter_map(|(f, is)| is.then_some(f.name)?)
        .chain(classes.filter_map(|(c, is)| is.then_some(c.name)?));
    names.map(|name| module.word(name).to_owned()).collect()
}

#[test]
fn functions_that_reach_an_added_line_run() {
    let text = with_others_of(
        FlowLanguage::C,
        "void sink(char *c) {\n  system(c); /* new */\n}\n\
         void middle(char *c) {\n  sink(c);\n}\n\
         int main(int argc, char **argv) {\n  middle(argv[1]);\n}\n\
         void callee(char *c) {\n  puts(c);\n}\n",
    );
    assert_eq!(
        running(FlowLanguage::C, &text, "new").unwrap(),
        ["sink", "middle", "main"]
    );
    assert_eq!(running(FlowLanguage::C, &text, "puts").unwrap(), ["callee"]);
}

#[test]
fn a_name_in_a_text_or_a_table_counts_as_a_call() {
    let text = with_others_of(
        FlowLanguage::C,
        "static void run(char *c) {\n  system(c); /* new */\n}\n\
         void set(struct t *t) {\n  t->hook = run;\n}\n\
         void by_name(struct t *t) {\n  add(t, \"run\");\n}\n",
    );
    assert_eq!(
        running(FlowLanguage::C, &text, "new").unwrap(),
        ["run", "set", "by_name"]
    );
}

#[test]
fn the_classes_that_a_running_function_uses_run() {
    let text = "import os\n\nclass Store:\n    def put(self, x):\n        self.x = x\n\n\
                class Other:\n    def a(self):\n        return 1\n\n\
                def use(store: Store):\n    os.system(store.x)  # new\n\n"
        .to_owned()
        + &(0..9)
            .map(|n| format!("def f{n}(a):\n    b = a + 1\n    c = b * 2\n    return b + c\n\n"))
            .collect::<String>();
    assert_eq!(
        running(FlowLanguage::Python, &text, "new").unwrap(),
        ["use", "Store"]
    );
}

#[test]
fn a_statement_of_the_file_runs_everything() {
    let text = "import os\nNAME = os.environ['A']  # new\n\ndef f():\n    os.system(NAME)\n";
    assert_eq!(running(FlowLanguage::Python, text, "new"), None);
    assert!(has_statement(FlowLanguage::JavaScript, b"const a = f();\n"));
    assert!(has_statement(FlowLanguage::Cpp, b"std::string a = f();\n"));
    assert!(!has_statement(
        FlowLanguage::Go,
        b"import \"os\"\n\n}\n// a\n"
    ));
    assert!(!has_statement(FlowLanguage::C, b"static int limit = 4;\n"));
}

/// Returns true if a flow of the whole file passes a line with `new`. If one does, the run of what
/// reaches the line must say so.
fn passes(language: FlowLanguage, text: &str) -> bool {
    let bytes = text.as_bytes();
    let tree = parse::tree(&language.grammar(bytes), bytes).unwrap();
    let module = lower::module(language, tree.root_node(), bytes);
    let added = lines_with(text, "new");
    let whole = start::run(language, &module, bytes).flows;
    let passes = whole
        .iter()
        .flat_map(|flow| &flow.steps)
        .any(|step| step.added_part(&added).is_some());
    let near = start::run_near(language, &module, bytes, &added);
    assert!(!passes || near.is_none(), "{text}");
    passes
}

/// Between the added line and the sink are a variable, a table, an object or a statement of the
/// file.
#[test]
fn data_that_passes_statements_of_the_file_is_not_lost() {
    use FlowLanguage::{C, Go, JavaScript, Php, Python};
    let sink = "const { exec } = require('child_process');\n";
    let store = "class Store:\n    def load(self):\n        self.c = request.args['c']  # new\n\nstore = Store()\n\n@app.route('/')\ndef show():\n    store.load()\n    os.system(store.c)\n";
    let cases: &[(FlowLanguage, String)] = &[
        (JavaScript, format!("{sink}function run(req) {{ return req.query.c; /* new */ }}\nconst mid = (req) => run(req);\nfunction show(req, res) {{ exec(mid(req)); }}\n")),
        (JavaScript, format!("{sink}function run(req) {{ return req.query.c; /* new */ }}\nconst mid = run;\nfunction show(req, res) {{ exec(mid(req)); }}\n")),
        (JavaScript, format!("{sink}function run(req) {{ return req.query.c; /* new */ }}\nconst table = {{ mid(req) {{ return run(req); }} }};\nfunction show(req, res) {{ exec(table.mid(req)); }}\n")),
        (Python, format!("import os\nfrom flask import Flask, request\napp = Flask(__name__)\n\n{store}")),
        (Python, "import os\n\ndef setting(name):\n    return os.environ[name]  # new\n\nCMD = setting('CMD')\n\ndef main():\n    os.system(CMD)\n".to_owned()),
        (Python, "import os\n\ndef setting(name):\n    return os.environ[name]  # new\n\nmid = lambda: setting('CMD')\n\ndef main():\n    os.system(mid())\n".to_owned()),
        (Php, "<?php\nfunction run() { return $_GET['c']; /* new */ }\n$mid = function () { return run(); };\nfunction show() { global $mid; system($mid()); }\nsystem($mid());\n".to_owned()),
        (
            Go,
            "package main\n\nimport (\n\t\"net/http\"\n\t\"os/exec\"\n)\n\nfunc run(r *http.Request) string {\n\treturn r.FormValue(\"c\") // new\n}\n\nvar mid = func(r *http.Request) string { return run(r) }\n\nfunc show(w http.ResponseWriter, r *http.Request) {\n\texec.Command(\"sh\", \"-c\", mid(r)).Run()\n}\n".to_owned(),
        ),
        (C, "#include <stdlib.h>\nstatic char *run(char *c) {\n  return getenv(c); /* new */\n}\nstatic char *(*hook)(char *) = run;\nint main(void) {\n  system(hook(\"C\"));\n}\n".to_owned()),
    ];
    for (language, text) in cases {
        assert!(
            passes(*language, &with_others_of(*language, text)),
            "{text}"
        );
    }
}

/// Returns a text with functions that no other code names.
fn with_others_of(language: FlowLanguage, text: &str) -> String {
    let other = match language {
        FlowLanguage::C => {
            "int other_N(int a) { int b = a * 2; b += 3; b += 4; b += 5; return b; }\n"
        }
        FlowLanguage::Go => "func otherN(a int) int {\n\tb := a * 2\n\tb += 3\n\treturn b\n}\n",
        FlowLanguage::Python => "def other_N(a):\n    b = a * 2\n    c = b * 3\n    return c\n\n",
        _ => "function other_N(a) { let b = a * 2; b += 3; b += 4; return b; }\n",
    };
    let other = if language == FlowLanguage::Php {
        "function other_N($a) { $b = $a * 2; $b += 3; $b += 4; return $b; }\n"
    } else {
        other
    };
    (0..20).fold(text.to_owned(), |text, n| {
        text + &other.replace('N', &n.to_string())
    })
}

#[test]
fn a_function_that_passes_no_data_on_has_no_flows() {
    let text = with_others_of(
        FlowLanguage::C,
        "#include <stdlib.h>\n\
         static void go(char *c) {\n  system(c); /* new */\n}\n\
         int main(int argc, char **argv) {\n  go(argv[1]);\n}\n",
    );
    assert!(passes(FlowLanguage::C, &text));
    let bytes = text.as_bytes();
    let tree = parse::tree(&FlowLanguage::C.grammar(bytes), bytes).unwrap();
    let module = lower::module(FlowLanguage::C, tree.root_node(), bytes);
    let near = start::run_near(
        FlowLanguage::C,
        &module,
        bytes,
        &lines_with(&text, "other_3"),
    );
    assert_eq!(near.unwrap().flows, []);
}
