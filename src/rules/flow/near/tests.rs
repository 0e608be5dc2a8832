//! Tests of the selection of functions and classes.

use super::super::shape::{CodeBlock, Stmt, StmtKind};
use super::super::{FlowLanguage, lower, start};
use super::{Entries, has_statement};
use crate::rules::parse;
use std::ops::Range;

/// Returns the names of the functions and classes that run for the lines of a text that contain a
/// word. `None`: all of them.
fn running(language: FlowLanguage, text: &str, word: &str) -> Option<Vec<String>> {
    let tree = parse::tree(&language.grammar(text.as_bytes()), text.as_bytes()).unwrap();
    let module = lower::module(language, tree.root_node(), text.as_bytes());
    let mut is_nested = vec![true; module.functions.len()];
    free(&module.body, &mut is_nested);
    for class in &module.classes {
        for id in &class.methods {
            is_nested[id.0 as usize] = false;
        }
    }
    let entries = super::entries(
        language,
        &module,
        text.as_bytes(),
        &lines_with(text, word),
        &is_nested,
    )?;
    Some(names(&module, &entries))
}

/// Marks the functions of a block of the file as free.
fn free(block: &CodeBlock, is_nested: &mut [bool]) {
    for Stmt { kind, .. } in block {
        match kind {
            StmtKind::Function(id) => is_nested[id.0 as usize] = false,
            StmtKind::Block(block) => free(block, is_nested),
            _ => {}
        }
    }
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

/// Returns a text with unrelated functions, so that the others are not most of it.
fn with_others(text: &str) -> String {
    let other = "int other_N(int a) { int b = a * 2; b += 3; b += 4; b += 5; b += 6; return b; }\n";
    (0..20).fold(text.to_owned(), |text, n| {
        text + &other.replace('N', &n.to_string())
    })
}

#[test]
fn functions_that_reach_an_added_line_run() {
    let text = with_others(
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
    let text = with_others(
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

#[test]
fn the_result_is_that_of_the_whole_file() {
    let text = with_others(
        "#include <stdlib.h>\n\
         static void go(char *c) {\n  system(c); /* new */\n}\n\
         int main(int argc, char **argv) {\n  go(argv[1]);\n}\n",
    );
    let text = text.as_bytes();
    let tree = parse::tree(&FlowLanguage::C.grammar(text), text).unwrap();
    let module = lower::module(FlowLanguage::C, tree.root_node(), text);
    let whole = start::run(FlowLanguage::C, &module, text).flows;
    assert!(!whole.is_empty());
    let word = |word| lines_with(std::str::from_utf8(text).unwrap(), word);
    let near = |word_of| start::run_near(FlowLanguage::C, &module, text, &word(word_of));
    // A flow passes the added line: all of the file has to run.
    assert!(near("new").is_none());
    // The function passes no data on.
    assert_eq!(near("other_3").unwrap().flows, []);
}
