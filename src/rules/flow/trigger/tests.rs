//! What has to be in a file before its data is followed.

use super::condition::needed_word;
use super::handler::is_parameter;
use super::*;

/// Returns true if a part of a file can contain a sink or a call of interest.
fn may_match(language: FlowLanguage, file: &str, part: &str) -> bool {
    let text = format!("{file}\n{part}");
    Trigger::new(language, text.as_bytes()).may_match(part.as_bytes())
}

#[test]
fn a_sink_that_gets_a_literal_does_not_count() {
    let python = "import os, subprocess, hashlib, re";
    for part in [
        "os.system(x)",
        "os.system('ls ' + x)",
        "os.system(f'ls {x}')",
        "os.system(\n",
        "run = os.system",
    ] {
        assert!(may_match(FlowLanguage::Python, python, part), "{part}");
    }
    assert!(!may_match(FlowLanguage::Python, python, "os.system('ls')"));
}

#[test]
fn a_call_counts_if_its_conditions_can_hold_for_a_literal() {
    let python = "import hashlib, re";
    assert!(may_match(
        FlowLanguage::Python,
        python,
        "re.compile(r'^(\\w+)+$')"
    ));
    assert!(!may_match(
        FlowLanguage::Python,
        python,
        "re.compile(r'^(\\w+)$')"
    ));
    assert!(may_match(
        FlowLanguage::JavaScript,
        "",
        "a.forEach(async (b) => {})"
    ));
    assert!(may_match(
        FlowLanguage::JavaScript,
        "async function f() {}",
        "a.forEach(\n"
    ));
    assert!(!may_match(
        FlowLanguage::JavaScript,
        "async function f() {}",
        "a.forEach((b) => {})"
    ));
}

#[test]
fn a_call_counts_if_the_file_names_the_option_that_makes_it_dangerous() {
    let update = "app.config.update(JSON_SORT_KEYS=x)";
    assert!(!may_match(FlowLanguage::Python, "", update));
    assert!(may_match(
        FlowLanguage::Python,
        "",
        "app.config.update(SESSION_COOKIE_SECURE=False)"
    ));
    assert!(may_match(
        FlowLanguage::Python,
        "options = {'SESSION_COOKIE_SECURE': False}",
        "a.config.update(**options)"
    ));
}

#[test]
fn the_member_of_a_value_is_not_a_function_without_a_receiver() {
    let express = "const session = require('express-session');";
    assert!(may_match(
        FlowLanguage::JavaScript,
        express,
        "app.use(session({ secret: 'a' }))"
    ));
    assert!(!may_match(
        FlowLanguage::JavaScript,
        "import { store } from './store';",
        "store.session({})"
    ));
}

#[test]
fn the_receiver_of_a_member_can_be_that_of_the_pattern() {
    let flask =
        "from flask import Flask\nimport subprocess\napp = Flask(__name__)\n# the application";
    assert!(may_match(
        FlowLanguage::Python,
        flask,
        "app.run(debug=True)"
    ));
    for part in [
        "application.run(debug=True)",
        "tool = application\ntool.run(debug=True)",
    ] {
        assert!(
            may_match(
                FlowLanguage::Python,
                "import subprocess, bottle\n# the application",
                part
            ),
            "{part}"
        );
    }
    assert!(!may_match(
        FlowLanguage::Python,
        "import tool\n# the application",
        "tool.run(debug=True)"
    ));
}

#[test]
fn words_of_comments_do_not_count() {
    let python = "import os";
    assert!(may_match(
        FlowLanguage::Python,
        python,
        "f()\nos.system(x)  # why"
    ));
    assert!(!may_match(
        FlowLanguage::Python,
        python,
        "f()\n    # os.system(x)"
    ));
    assert!(!may_match(
        FlowLanguage::JavaScript,
        "",
        "// before scripts exec (they commit)"
    ));
}

#[test]
fn a_base_and_a_callee_are_where_a_framework_is_used() {
    fn has(language: FlowLanguage, text: &str) -> bool {
        Trigger::new(language, text.as_bytes()).has_handler()
    }
    assert!(has(
        FlowLanguage::CSharp,
        "class A : Controller { public string B(string c) => c; }"
    ));
    assert!(!has(
        FlowLanguage::CSharp,
        "using Media.Controller.Library;\nclass A : Library { string B(string c) => c; }"
    ));
    assert!(has(
        FlowLanguage::JavaScript,
        "const app = express();\napp.get('/', f);"
    ));
    assert!(!has(
        FlowLanguage::JavaScript,
        "import { a } from './a';\nstore.get('/', f);"
    ));
}

#[test]
fn a_parameter_has_a_body_behind_its_parentheses() {
    fn has_parameter(text: &str) -> bool {
        is_parameter(text.as_bytes(), text.find("req").unwrap(), 3)
    }
    for text in [
        "app.get('/', (req, res) => {})",
        "req => req.body",
        "function f(a, { req }) {}",
        "handler(req: Request): void {}",
        "def view(self, req, *args):\n    pass",
        "def view(\n    req,\n):\n    pass",
        "view = lambda req: req.GET",
    ] {
        assert!(has_parameter(text), "{text}");
    }
    for text in ["f(req);", "const req = 1;", "# the req of a client\n"] {
        assert!(!has_parameter(text), "{text}");
    }
}

#[test]
fn the_needed_word_of_an_expression_is_in_every_match() {
    for (expression, word) in [
        ("^async\\b", Some("async")),
        ("^parseInt$", Some("parseInt")),
        ("^[^({]*\\.forEach\\(", Some("forEach")),
        ("abcd*e", Some("abc")),
        ("a|bcd", None),
        ("(?i)abc", None),
        ("[abc]+", None),
    ] {
        assert_eq!(needed_word(expression), word, "{expression}");
    }
}
