//! Tests of which flows of a change are reported, where, and how much they weigh.

mod checked;
mod elsewhere;

use super::*;
use crate::diff::{Attribute, Body, ChangeKind, Entry, FileChange, FileMode, RepoPath, Side};
use crate::finding::{Finding, Severity};
use crate::policy::RulesPolicy;
use crate::rules::scan::layout::tests::renamed;
use crate::rules::{RuleSet, Scope};

const SOURCE: &str = "    name = request.args[\"name\"]\n";
const QUERY: &str = "    query = \"SELECT * FROM users WHERE name = '\" + name + \"'\"\n";
const SINK: &str = "    cursor.execute(query)\n";

/// Returns a handler of Flask with these lines.
fn handler(lines: &[&str]) -> String {
    [
        "from flask import request\n\n@app.route(\"/\")\ndef show():\n",
        &lines.concat(),
    ]
    .concat()
}

/// Scans the change between two versions of a file.
fn scan_at(path: &str, old: Option<&str>, new: &str) -> Vec<Finding> {
    scan_with(path, old, new, &[])
}

/// Does the same with rules of a team: the names and contents of their files.
fn scan_with(path: &str, old: Option<&str>, new: &str, team: &[(String, String)]) -> Vec<Finding> {
    let side = Side {
        path: RepoPath::from(path),
        mode: FileMode::Regular,
        id: None,
    };
    let kind = if old.is_some() {
        ChangeKind::Modified
    } else {
        ChangeKind::Added
    };
    let (before, after) = (
        old.map(|text| text.as_bytes().to_vec()),
        new.as_bytes().to_vec(),
    );
    let body = Body::of_file(&side.path, before, Some(after), Attribute::Unset);
    let file = FileChange {
        entry: Entry {
            kind,
            old: old.map(|_| side.clone()),
            new: Some(side),
        },
        body,
    };
    let rules = RuleSet::new(&RulesPolicy::default(), team).unwrap();
    let mut out = Vec::new();
    rules.scan(&file, Scope::All, &mut out);
    out
}

fn scan(old: Option<&str>, new: &str) -> Vec<Finding> {
    scan_at("app/views.py", old, new)
}

fn path_of(f: &Finding) -> Vec<String> {
    f.flow()
        .iter()
        .map(|s| format!("{} {} {}", s.role.name(), s.line, s.quote))
        .collect()
}

fn place(f: &Finding) -> (String, Option<u32>) {
    (f.rule_id().to_owned(), f.lines().map(|l| l.first.get()))
}

fn places(found: &[Finding]) -> Vec<(String, Option<u32>)> {
    found.iter().map(place).collect()
}

fn sql(line: u32) -> (String, Option<u32>) {
    ("sql-injection-flow".to_owned(), Some(line))
}

#[test]
fn a_flow_in_new_lines_is_reported_at_its_sink_with_its_path() {
    let found = scan(None, &handler(&[SOURCE, QUERY, SINK]));
    assert_eq!(places(&found), [sql(7)]);
    let f = &found[0];
    assert_eq!(
        (f.severity(), f.confidence(), f.cwe()),
        (Severity::Critical, Confidence::High, Some(89))
    );
    assert_eq!(f.quote(), "cursor.execute(query)");
    let steps = path_of(f);
    assert!(
        steps[0].starts_with("source 5 ") && steps[0].contains("request.args"),
        "{steps:?}"
    );
    assert!(
        steps.last().unwrap().starts_with("sink 7 ")
            && steps.last().unwrap().contains("execute(query)"),
        "{steps:?}"
    );
}

#[test]
fn a_changed_source_or_step_completes_a_flow_into_an_old_sink() {
    let new = handler(&[SOURCE, QUERY, SINK]);
    let old = handler(&["    name = \"ada\"\n", QUERY, SINK]);
    assert_eq!(places(&scan(Some(&old), &new)), [sql(5)]);
    let old = handler(&[
        SOURCE,
        "    query = escape_sql(\"SELECT 1\")\n    query = request.x\n",
        SINK,
    ]);
    assert_eq!(places(&scan(Some(&old), &new)).first(), Some(&sql(6)));
}

#[test]
fn a_finding_on_another_line_than_its_sink_names_the_line_of_the_sink() {
    let new = handler(&[SOURCE, QUERY, SINK]);
    let old = handler(&["    name = \"ada\"\n", QUERY, SINK]);
    let found = scan(Some(&old), &new);
    let message = found[0].message();
    assert!(message.contains(" on line 7"), "{message}");
    let found = scan(None, &new);
    let message = found[0].message();
    assert!(!message.contains(" on line "), "{message}");
}

#[test]
fn a_redirect_back_to_the_page_of_the_user_is_a_suggestion() {
    fn severity_of(source: &str) -> Severity {
        let text = format!("<?php\n$to = {source};\nheader('Location: ' . $to);\n");
        let found = scan_at("src/a.php", None, &text);
        let flow = found.iter().find(|f| f.rule_id() == "open-redirect-flow");
        flow.unwrap_or_else(|| panic!("{found:?}")).severity()
    }
    assert_eq!(
        severity_of("$_SERVER['HTTP_REFERER']"),
        Severity::Suggestion
    );
    for source in ["$_SERVER['HTTP_X_NEXT']", "$_GET['referer']"] {
        assert_eq!(severity_of(source), Severity::Major, "{source}");
    }
}

#[test]
fn a_step_by_another_name_completes_a_flow() {
    fn express(names: &str, step: &str) -> String {
        format!(
            "{names}\nconst app = require('express')();\napp.get('/a', (req, res) => {{\n  const host = req.query.host;\n{step}}});\n"
        )
    }
    for names in [
        "const { exec: run } = require('child_process');",
        "import { exec as run } from 'child_process';",
        "const run = require('child_process').exec;",
        "function run(c) { require('child_process').exec('ping ' + c); }",
    ] {
        let (old, new) = (express(names, ""), express(names, "  run(host);\n"));
        let found = scan_at("src/a.js", Some(&old), &new);
        assert!(
            found.iter().any(|f| f.severity() == Severity::Critical),
            "{names}: {found:?}"
        );
    }
    let helper = "import os\nfrom flask import request\n\ndef ping(host):\n    os.system(\"ping \" + host)\n\n";
    let view = |step: &str| {
        format!("{helper}def view():\n    host = request.args[\"h\"]\n{step}    return 1\n")
    };
    let found = scan_at("src/a.py", Some(&view("")), &view("    ping(host)\n"));
    assert_eq!(
        places(&found),
        [("command-injection-flow".to_owned(), Some(9))]
    );
}

#[test]
fn more_flows_than_are_listed_do_not_make_a_line_harmless() {
    let line = "User.where(\"name = '#{params[:name]}'\")";
    let copy = format!("{line} # claude-reviewer: ignore[ruby-sql-interpolation] a copy\n");
    let found = scan_at(
        "app/a.rb",
        None,
        &format!("{}\n{line}\n", copy.repeat(1_001)),
    );
    let last = found.iter().find(|f| place(f).1 == Some(1_003)).unwrap();
    assert_eq!(
        (last.severity(), last.suppressed.is_none()),
        (Severity::Critical, true)
    );
}

#[test]
fn a_removed_check_exposes_a_flow_of_old_lines() {
    let new = handler(&[SOURCE, QUERY, SINK]);
    let old = handler(&[SOURCE, "    name = int(name)\n", QUERY, SINK]);
    let found = scan(Some(&old), &new);
    assert_eq!(places(&found), [("sql-injection-flow".to_owned(), None)]);
    assert!(
        found[0].message().contains("removes"),
        "{}",
        found[0].message()
    );
    assert_eq!(found[0].quote(), "cursor.execute(query)");
}

#[test]
fn a_removed_setting_of_an_unchanged_call_is_reported() {
    let go = "package a\n\nimport \"net/http\"\n\nfunc f(w http.ResponseWriter) {\n\thttp.SetCookie(w, &http.Cookie{\n\t\tName: \"id\",\n\t\tSecure: true,\n\t\tHttpOnly: true,\n\t})\n}\n";
    let python = "from flask import Flask, make_response\n\napp = Flask(__name__)\n\n@app.route(\"/\")\ndef f():\n    r = make_response(\"a\")\n    r.set_cookie(\n        \"session\",\n        \"b\",\n        httponly=True,\n        secure=True,\n    )\n    return r\n";
    for (path, text, line) in [
        ("a.go", go, "\t\tSecure: true,\n"),
        ("a.go", go, "\t\tHttpOnly: true,\n"),
        ("a.py", python, "        secure=True,\n"),
    ] {
        let found = scan_at(path, Some(text), &text.replace(line, ""));
        assert_eq!(
            places(&found),
            [("cookie-insecure-call".to_owned(), None)],
            "{line}"
        );
        assert!(
            found[0].message().contains("removes a protection"),
            "{}",
            found[0].message()
        );
    }
    let other = go.replace("\t\tName: \"id\",\n", "");
    assert_eq!(
        places(&scan_at("a.go", Some(go), &other)),
        [],
        "another setting"
    );
}

#[test]
fn a_change_beside_an_old_flow_reports_nothing() {
    let flow = handler(&[SOURCE, QUERY, SINK]);
    for (old, new) in [
        (
            format!("{flow}\ndef other():\n    pass\n"),
            format!("{flow}\ndef other():\n    return 1\n"),
        ),
        (
            format!("{flow}\ndef other():\n    x = int(y)\n"),
            format!("{flow}\ndef other():\n    pass\n"),
        ),
        (
            format!("{flow}\ndef other():\n    cursor.execute(\"SELECT 1\")\n"),
            format!("{flow}\ndef other():\n    cursor.execute(\"SELECT 2\")\n"),
        ),
        (flow.clone(), format!("# request.args\n\n{flow}")),
    ] {
        assert_eq!(places(&scan(Some(&old), &new)), [], "{new}");
    }
}

#[test]
fn an_edit_inside_of_an_old_call_adds_no_finding() {
    let old = "export function load() {\n  return new Promise(async (resolve) => {\n    const a = await get(1);\n    resolve(a);\n  });\n}\n";
    let new = old.replace("get(1)", "get(2)");
    let is_executor = |f: &Finding| f.rule_id() == "correctness-call";
    assert!(scan_at("src/a.js", None, old).iter().any(is_executor));
    assert!(!scan_at("src/a.js", Some(old), &new).iter().any(is_executor));
    let plain = old.replace("async (resolve)", "(resolve)");
    let made = scan_at("src/a.js", Some(&plain), &new);
    assert!(made.iter().any(is_executor), "its first line is added");
}

#[test]
fn an_option_that_an_old_call_gets_on_a_later_line_is_reported() {
    let old = "import requests\n\ndef load(url):\n    return requests.get(\n        url,\n        verify=CA,\n    )\n";
    let new = old.replace("verify=CA", "verify=False");
    let found = scan_at("app/a.py", Some(old), &new);
    assert!(
        found.iter().any(|f| f.severity() >= Severity::Minor),
        "{found:?}"
    );
}

#[test]
fn a_path_whose_ends_the_file_had_before_is_a_suggestion_unless_it_is_critical() {
    let go = |name: &str| {
        format!(
            "package a\n\nfunc show(w http.ResponseWriter, r *http.Request) {{\n\t{name} := r.URL.Query().Get(\"f\")\n\tload({name})\n}}\n\nfunc load({name} string) {{\n\tdata, _ := os.ReadFile({name})\n\tuse(data)\n}}\n"
        )
    };
    let of_path = |found: Vec<Finding>| -> Vec<Severity> {
        let found = found
            .iter()
            .filter(|f| f.rule_id() == "path-traversal-flow");
        found.map(Finding::severity).collect()
    };
    let old = go("name");
    let renamed = old.replace("load(name string)", "load(name  string)");
    assert_eq!(of_path(scan_at("a.go", None, &old)), [Severity::Major]);
    let found = of_path(scan_at("a.go", Some(&old), &renamed));
    assert!(
        found.iter().all(|s| *s == Severity::Suggestion),
        "{found:?}"
    );
    let other = of_path(scan_at("a.go", Some(&old), &go("path")));
    assert_eq!(other, [Severity::Major], "another source and sink");
    let edited = handler(&[SOURCE, &QUERY.replace("users", "people"), SINK]);
    let found = scan(Some(&handler(&[SOURCE, QUERY, SINK])), &edited);
    assert!(found.iter().any(|f| f.severity() == Severity::Critical));
}

#[test]
fn a_path_of_a_test_that_becomes_a_part_of_the_program_is_new() {
    let old = "package a\n\nfunc show(w http.ResponseWriter, r *http.Request) {\n\tname := r.URL.Query().Get(\"f\")\n\tdata, _ := os.ReadFile(name)\n\tuse(data)\n}\n";
    let new = old.replace("os.ReadFile(name)", "os.ReadFile( name )");
    let of = |path: &str| {
        let found = renamed(path, "server/b.go", old, &new);
        let mut found = found.iter();
        found
            .find(|f| f.rule_id() == "path-traversal-flow")
            .map(Finding::severity)
    };
    assert_eq!(of("server/a.go"), Some(Severity::Suggestion));
    assert_eq!(of("server/a_test.go"), Some(Severity::Major));
}

#[test]
fn severity_and_confidence_follow_where_the_value_comes_from() {
    let argument = "import sys, sqlite3\n\ndef main(cursor):\n    query = \"SELECT \" + sys.argv[1]\n    cursor.execute(query)\n";
    let found = scan(None, argument);
    fn weight(f: &Finding) -> (Severity, Confidence) {
        (f.severity(), f.confidence())
    }
    let of_caller = (Severity::Suggestion, Confidence::Medium);
    assert!(found.iter().any(|f| weight(f) == of_caller), "{found:?}");
    let stored = "import java.nio.file.Files;\nimport java.nio.file.Path;\nimport org.springframework.jdbc.core.JdbcTemplate;\n\npublic class A {\n  private JdbcTemplate jdbcTemplate;\n\n  void f(Path file) throws Exception {\n    jdbcTemplate.execute(Files.readString(file));\n  }\n}\n";
    let found = scan_at("src/A.java", None, stored);
    assert!(
        found
            .iter()
            .any(|f| weight(f) == (Severity::Suggestion, Confidence::Medium)),
        "{found:?}"
    );
    let unknown = "def load(cursor, name):\n    query = \"SELECT * FROM t WHERE n = '\" + name + \"'\"\n    cursor.execute(query)\n";
    let found = scan(None, unknown);
    assert!(
        found
            .iter()
            .all(|f| weight(f) == (Severity::Suggestion, Confidence::Low)),
        "{found:?}"
    );
    let unknown = "def load(cursor, name):\n    query = \"SELECT * FROM \" + name\n    cursor.execute(query)\n";
    let found = scan(None, unknown);
    assert!(!found.is_empty());
    assert!(
        found
            .iter()
            .all(|f| weight(f) == (Severity::Suggestion, Confidence::Low)),
        "{found:?}"
    );
}

#[test]
fn a_test_is_not_searched_and_a_doubtful_path_weighs_less() {
    let text = handler(&[SOURCE, QUERY, SINK]);
    assert_eq!(places(&scan_at("tests/test_views.py", None, &text)), []);
    let doubt: Vec<_> = scan_at("app/spec/views.py", None, &text)
        .iter()
        .map(Finding::severity)
        .collect();
    assert!(doubt.iter().all(|s| *s <= Severity::Minor), "{doubt:?}");
}

#[test]
fn a_rule_of_single_lines_keeps_its_finding_and_takes_the_path() {
    let text = handler(&[SOURCE, "    os.system(\"ls \" + name)\n"]);
    let found = scan(None, &["import os\n", &text].concat());
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].severity(), Severity::Critical);
    assert!(!found[0].flow().is_empty());
}

#[test]
fn a_comment_suppresses_a_flow_by_the_id_of_its_rule() {
    let comment =
        "    # claude-reviewer: ignore[sql-injection-flow] the name is checked by the proxy\n";
    let found = scan(None, &handler(&[SOURCE, QUERY, comment, SINK]));
    assert!(
        found.iter().all(|f| f.suppressed.is_some()) && found.len() == 1,
        "{found:?}"
    );
}

#[test]
fn a_comment_that_names_either_rule_of_a_joined_flaw_suppresses_it() {
    let sink = "    os.system(\"ls \" + request.args[\"name\"])\n";
    for (id, is_suppressed) in [
        ("command-injection-flow", true),
        ("python-shell-request", true),
        ("command-injection-flow, python-shell-request", true),
        ("sql-injection-flow", false),
    ] {
        let comment = format!("    # claude-reviewer: ignore[{id}] the proxy checks the name\n");
        let found = scan(None, &["import os\n", &handler(&[&comment, sink])].concat());
        let suppressed: Vec<_> = found.iter().map(|f| f.suppressed.is_some()).collect();
        assert_eq!(suppressed, [is_suppressed], "{id}: {found:?}");
    }
}

#[test]
fn one_memory_error_of_two_rules_is_one_finding() {
    let code = "#include <stdlib.h>\n#include <string.h>\n\nvoid copy(void)\n{\n    char to[16];\n    \
                char *name = getenv(\"NAME\");\n    strcpy(to, name);\n}\n";
    let found = scan_at("src/copy.c", None, code);
    let on_line: Vec<_> = found
        .iter()
        .filter(|f| f.lines().is_some_and(|l| l.first.get() == 8))
        .collect();
    assert_eq!(on_line.len(), 1, "{found:?}");
    let code = "#include <string.h>\n\nvoid f(char *p)\n{\n    memset(p, sizeof(*p), 0);\n}\n";
    assert_eq!(
        places(&scan_at("src/clear.c", None, code)),
        [("c-memset-swapped".to_owned(), Some(5))]
    );
}

#[test]
fn one_injection_of_two_rules_of_single_lines_is_one_finding() {
    let code = "class A {\n  void get(HttpServletRequest request) throws Exception {\n    \
                Runtime.getRuntime().exec(\"sh -c \" + request.getParameter(\"c\"));\n  }\n}\n";
    let found = scan_at("src/main/java/A.java", None, code);
    assert_eq!(found.len(), 1, "{found:?}");
    let code = code.replace(
        ");\n  }",
        "); // claude-reviewer: ignore[java-shell-interpolation] tool of the build\n  }",
    );
    let found = scan_at("src/main/java/A.java", None, &code);
    assert!(
        found.iter().all(|f| f.suppressed.is_some()) && found.len() == 1,
        "{found:?}"
    );
}

#[test]
fn a_call_has_its_own_texts_and_a_severity_that_is_not_above_the_one_of_its_rule() {
    let code = "#include <stdlib.h>\n\nvoid f(void)\n{\n    char *p = malloc(8);\n    free(p);\n    p[0] = 1;\n}\n";
    let found = scan_at("src/a.c", None, code);
    let f = found.iter().find(|f| f.cwe() == Some(416)).unwrap();
    assert!(
        f.title().contains("free") && f.message().contains("freed"),
        "{f:?}"
    );
    let code = "<?php\nphpinfo();\n";
    assert!(
        scan_at("public/a.php", None, code)
            .iter()
            .all(|f| f.severity() <= Severity::Minor)
    );
    let code = "services.Configure<IdentityOptions>(options =>\n{\n    options.Password.RequiredLength = 4;\n});\n";
    let found = scan_at("src/Startup.cs", None, code);
    let f = found
        .iter()
        .find(|f| f.rule_id() == "authentication-disabled-call")
        .unwrap();
    assert_eq!(f.severity(), Severity::Suggestion);
    assert!(
        f.message().contains("below 8") && f.suggestion().is_some_and(|s| s.contains("at least 8")),
        "{f:?}"
    );
}

#[test]
fn the_fingerprint_does_not_depend_on_the_other_lines_of_the_path() {
    let one = scan(None, &handler(&[SOURCE, QUERY, SINK]));
    let source = "    name = request.form.get(\"name\")\n";
    let other = scan(None, &handler(&["    print(1)\n", source, QUERY, SINK]));
    assert_ne!(path_of(&one[0]), path_of(&other[0]));
    assert_eq!(one[0].fingerprint(), other[0].fingerprint());
}

#[test]
fn a_step_shows_no_secret() {
    let key = crate::rules::expand("ghp_${alnum:36}", "flow");
    let source = format!("    name = request.args.get(\"name\", \"{key}\")\n");
    let found = scan(None, &handler(&[&source, QUERY, SINK]));
    let f = found
        .iter()
        .find(|f| f.rule_id() == "sql-injection-flow")
        .unwrap();
    assert!(
        path_of(f).iter().all(|s| !s.contains(&key)),
        "{:?}",
        path_of(f)
    );
}

#[test]
fn a_script_of_a_page_is_read_where_it_is() {
    let page =
        b"<template>\n  <p>{{ x }}</p>\n</template>\n<script setup>\nconst a = 1;\n</script>\n";
    let text = scripts(page);
    assert_eq!(text.len(), page.len());
    let text = String::from_utf8(text).unwrap();
    assert_eq!(
        text.lines().map(str::trim).collect::<Vec<_>>(),
        ["", "", "", "", "const a = 1;", ""]
    );
}

#[test]
fn every_word_has_a_rule_and_every_rule_a_word() {
    for kind in flow::SinkKind::ALL {
        assert!(
            rule_of_subject(FlowSubject::Flow(*kind)).is_some(),
            "{}",
            kind.name()
        );
    }
    for word in flow::call_words() {
        assert!(rule_of_subject(FlowSubject::Rule(word)).is_some(), "{word}");
    }
    let known: Vec<&str> = catalogue().map(|r| &*r.id).collect();
    for (word, id) in RULES.iter().chain(CALLS) {
        assert!(known.contains(id), "{word}: {id}");
    }
    for id in known {
        assert!(words_of(id).next().is_some(), "{id}");
    }
}

#[test]
fn carriage_returns_alone_end_lines_of_a_flow() {
    // git shows such a file as one line.
    let text = handler(&[SOURCE, QUERY, SINK]).replace('\n', "\r");
    let found = scan(None, &text);
    assert_eq!(places(&found), [sql(1)]);
    assert_eq!(found[0].quote(), "cursor.execute(query)");
}

/// A route of Express whose handler runs a program with a part of the path.
const ROUTE: &str = "const { exec } = require('child_process');\nconst app = require('express')();\napp.get('/a/:id(\\\\d+)', (req, res) => {\n  exec('report ' + req.params.id);\n});\n";

/// Returns the severity of the finding that names request data, and its message.
fn of_route(code: &str) -> (Severity, String) {
    let found = scan_at("src/a.js", None, code);
    let f = found
        .iter()
        .find(|f| f.rule_id() == "js-command-request")
        .unwrap();
    (f.severity(), f.message().to_owned())
}

#[test]
fn data_that_the_route_validates_is_a_suggestion_that_says_so() {
    let (severity, message) = of_route(ROUTE);
    assert_eq!(severity, Severity::Suggestion);
    assert!(
        message.contains("validates or replaces the value"),
        "{message}"
    );
    let open = ROUTE.replace("(\\\\d+)", "");
    assert_ne!(open, ROUTE);
    assert_eq!(of_route(&open).0, Severity::Critical);
    // Another part of the same route is not validated.
    assert_eq!(
        of_route(&ROUTE.replace("params.id", "params.name")).0,
        Severity::Critical
    );
}

#[test]
fn code_that_cannot_run_does_not_prove_that_its_data_is_harmless() {
    let dead = ROUTE.replace("=> {\n", "=> {\n  return;\n");
    assert_ne!(dead, ROUTE);
    assert_eq!(of_route(&dead).0, Severity::Critical);
}

#[test]
fn a_chain_of_checks_counts_only_if_the_route_rejects_errors() {
    fn with(chain: &str, code: &str) -> Severity {
        let route = ROUTE
            .replace("(\\\\d+)', (", &format!("', {chain}, ("))
            .replace("=> {\n", &format!("=> {{\n{code}"));
        assert_ne!(route, ROUTE);
        of_route(&route).0
    }
    let check = "  if (!validationResult(req).isEmpty()) return res.sendStatus(400);\n";
    assert_eq!(with("param('id').isInt()", check), Severity::Suggestion);
    assert_eq!(
        with("[param('id').isInt(), validate]", ""),
        Severity::Suggestion
    );
    assert_eq!(with("param('id').isInt()", ""), Severity::Critical);
    assert_eq!(with("param('name').isInt()", check), Severity::Critical);
    assert_eq!(with("param('id').trim()", check), Severity::Critical);
    assert_eq!(with("query('id').isInt()", check), Severity::Critical);
}

#[test]
fn a_rule_of_a_team_keeps_its_severity() {
    let team = "[[rule]]\nid = \"no-exec-request\"\ntitle = \"Program in a handler\"\ncategory = \"security\"\nseverity = \"major\"\nlanguages = [\"javascript\"]\nliterals = [\"exec(\"]\npattern = 'exec\\('\nmessage = \"Handlers run no programs\"\n";
    let found = scan_with(
        "src/a.js",
        None,
        ROUTE,
        &[("team.toml".to_owned(), team.to_owned())],
    );
    let f = found
        .iter()
        .find(|f| f.rule_id() == "no-exec-request")
        .unwrap();
    assert_eq!(f.severity(), Severity::Major);
}

/// Returns the finding of a rule in a new file.
fn only(path: &str, code: &str, rule: &str) -> Finding {
    let found = scan_at(path, None, code);
    let mut of_rule = found.into_iter().filter(|f| f.rule_id() == rule);
    of_rule.next().unwrap_or_else(|| panic!("{path}: {code}"))
}

#[test]
fn data_of_the_person_who_runs_the_program_weighs_less_and_has_no_attacker() {
    fn python(variable: &str) -> String {
        format!("import os\n\nname = os.environ[\"{variable}\"]\nos.system(\"convert \" + name)\n")
    }
    let own = only("app/a.py", &python("IMAGE"), "command-injection-flow");
    assert_eq!(own.severity(), Severity::Minor);
    assert!(
        own.message().contains("person who runs the program")
            && !own.message().contains("attacker"),
        "{}",
        own.message()
    );
    // Servers set these variables to text of others.
    for variable in ["SSH_ORIGINAL_COMMAND", "GITHUB_HEAD_REF", "HTTP_USER_AGENT"] {
        let found = only("app/a.py", &python(variable), "command-injection-flow");
        assert!(found.severity() >= Severity::Major, "{variable}: {found:?}");
    }
    let lines =
        "import os\n\nname = os.environ[\n    \"HTTP_HOST\"\n]\nos.system(\"convert \" + name)\n";
    let found = only("app/a.py", lines, "command-injection-flow");
    assert!(found.severity() >= Severity::Major, "{found:?}");
    let c = "#include <stdio.h>\n#include <stdlib.h>\n\nint main(int argc, char **argv)\n{\n    char line[99];\n    snprintf(line, sizeof line, \"ls %s\", argv[1]);\n    return system(line);\n}\n";
    let found = only("src/a.c", c, "command-injection-flow");
    assert!(found.severity() >= Severity::Major, "{found:?}");
}

#[test]
fn an_expression_in_the_browser_and_answers_without_credentials_are_suggestions() {
    let table = include_str!("../../knowledge/javascript.toml");
    for label in weight::OF_BROWSER {
        assert!(table.contains(&format!("label = \"{label}\"")), "{label}");
    }
    let page = "const name = location.hash.slice(1);\nconst re = new RegExp('^' + name);\nlist.filter((n) => re.test(n));\n";
    let found = only("src/a.js", page, "regex-injection-flow");
    assert_eq!(found.severity(), Severity::Suggestion);
    let server = "const app = require('express')();\napp.get('/a', (req, res) => {\n  const re = new RegExp(req.query.name);\n  res.json(names.filter((n) => re.test(n)));\n});\n";
    let found = only("src/b.js", server, "regex-injection-flow");
    assert_eq!(found.severity(), Severity::Suggestion, "a slow expression");
    assert_eq!(found.confidence(), Confidence::Medium);
    let open = "<?php\nheader('Access-Control-Allow-Origin: *');\n";
    let found = only("src/a.php", open, "cors-open-call");
    assert_eq!(found.severity(), Severity::Suggestion);
    let granted = format!("{open}header('Access-Control-Allow-Credentials: true');\n");
    let found = only("src/a.php", &granted, "cors-open-call");
    assert!(found.severity() > Severity::Suggestion, "{found:?}");
}

#[test]
fn a_condition_that_says_nothing_about_the_text_is_no_check() {
    for (before, test) in [
        ("const cmd = req.query.cmd;", "cmd !== true"),
        ("const cmd = req.query.cmd;", "!(cmd === true)"),
        ("let cmd;", "!cmd && (cmd = req.query.cmd)"),
        ("let cmd;", "!cmd || (cmd = req.query.cmd)"),
    ] {
        let code = format!(
            "const {{ exec }} = require('child_process');\n\
             const app = require('express')();\n\
             app.get('/a', (req, res) => {{\n  {before}\n  if ({test}) exec(cmd);\n}});\n"
        );
        let found = scan_at("src/a.js", None, &code);
        assert!(
            found.iter().any(|f| f.severity() == Severity::Critical),
            "{test}: {found:?}"
        );
    }
}

#[test]
fn a_pause_is_no_secret_and_the_address_of_the_request_is_no_other_site() {
    let pause = "<?php\nclass TokenAuthenticator\n{\n    public function deny(): void\n    {\n        usleep(mt_rand(200000, 500000));\n        $token = mt_rand();\n    }\n}\n";
    let found = scan_at("src/TokenAuthenticator.php", None, pause);
    let weights: Vec<_> = found
        .iter()
        .filter(|f| f.rule_id().contains("random") && f.severity() > Severity::Suggestion)
        .filter_map(|f| f.lines().map(|lines| lines.first.get()))
        .collect();
    assert_eq!(weights, [7]);
    fn page(source: &str) -> String {
        format!(
            "const app = require('express')();\napp.get('/a', (req, res) => {{\n  res.redirect({source});\n}});\n"
        )
    }
    for (source, is_severe) in [
        ("req.originalUrl + '/'", false),
        ("req.query.originalUrl", true),
        ("req.query.next", true),
    ] {
        let found = scan_at("src/a.js", None, &page(source));
        let weight = found.iter().map(Finding::severity).max();
        assert_eq!(weight >= Some(Severity::Major), is_severe, "{source}");
    }
}

#[test]
fn names_in_archives_keep_their_weight() {
    let go = "package a\n\nimport (\n\t\"archive/zip\"\n\t\"os\"\n)\n\nfunc f(r *zip.ReadCloser, dir string) {\n\tfor _, f := range r.File {\n\t\tos.Create(dir + \"/\" + f.Name)\n\t}\n}\n";
    let found = scan_at("a.go", None, go);
    assert!(
        found.iter().any(|f| f.severity() >= Severity::Major),
        "{found:?}"
    );
}

#[test]
fn arguments_and_the_environment_of_php_are_not_headers() {
    for (entry, is_request) in [
        ("argv", false),
        ("APP_STORAGE_PATH", false),
        ("HTTP_X_DIR", true),
        ("REQUEST_URI", true),
        ("PATH_INFO", true),
        ("Storage_Path", true),
    ] {
        let code = format!("#!/usr/bin/php\n<?php\n$dir = $_SERVER['{entry}'];\nmkdir($dir);\n");
        let found = scan_at("src/make.php", None, &code);
        let is_severe = found
            .iter()
            .any(|f| f.rule_id() == "path-traversal-flow" && f.severity() > Severity::Suggestion);
        assert_eq!(is_severe, is_request, "{entry}");
    }
}
