//! Which findings on code of the file count as new.

use super::super::layout::tests::{changed, renamed};
use crate::finding::{Finding, Severity};
use crate::policy::RuleProfile;

/// Returns the severities of the findings of a rule in the change of a file.
fn severities(path: &str, rule: &str, old: &str, new: &str) -> Vec<Severity> {
    changed(RuleProfile::Audit, path, old, new)
        .into_iter()
        .filter(|finding| finding.rule_id() == rule)
        .map(|finding| finding.severity())
        .collect()
}

const RULE: &str = "go-tls-verify-off";
const TLS: &str = "\treturn &tls.Config{InsecureSkipVerify: true}\n";

/// Returns a file of Go with two functions of given bodies.
fn go(first: &str, second: &str) -> String {
    format!(
        "package a\n\nfunc one() *tls.Config {{\n{first}}}\n\nfunc two() *tls.Config {{\n{second}}}\n"
    )
}

/// A body that is longer than the others, so that a comparison moves the others.
const LONG: &str = "\ta()\n\tb()\n\tc()\n\td()\n\te()\n\tf()\n\treturn nil\n";

#[test]
fn a_function_that_moves_within_a_file_is_a_suggestion() {
    let old = go(TLS, LONG);
    let function = format!("func one() *tls.Config {{\n{TLS}}}\n\n");
    let rest = old.replace(&function, "");
    let new = format!("{rest}\n{}", function.trim_end());
    assert_eq!(severities("a.go", RULE, "", &old), [Severity::Major]);
    assert_eq!(severities("a.go", RULE, &old, &new), [Severity::Suggestion]);
}

#[test]
fn a_line_that_leaves_one_function_covers_none_in_another_function() {
    let old = go(TLS, "\treturn nil\n");
    let new = go("\treturn nil\n", TLS);
    assert_eq!(severities("a.go", RULE, &old, &new), [Severity::Major]);
    let old = go(&format!("\tx()\n{TLS}"), "\treturn nil\n");
    let decoy = format!("/*\nfunc one() *tls.Config {{\n\t*/\n\tx()\n{TLS}");
    let new = go("\treturn nil\n", &decoy);
    let found = severities("a.go", RULE, &old, &new);
    assert_eq!(found, [Severity::Major], "a function in a comment");
}

#[test]
fn a_finding_without_the_condition_around_it_is_new() {
    let guarded = format!("\tif dev {{\n\t{TLS}\t}}\n\treturn nil\n");
    let bare = format!("{TLS}\treturn nil\n");
    let (old, new) = (go(&guarded, LONG), go(&bare, LONG));
    assert_eq!(severities("a.go", RULE, &old, &new), [Severity::Major]);
    let guarded = TLS
        .replace("return", "if dev { use(")
        .replace("}\n", "}) }\n");
    let bare = TLS.replace("return", "use(").replace("}\n", "})\n");
    let (old, new) = (go(&guarded, LONG), go(&bare, LONG));
    assert_eq!(severities("a.go", RULE, &old, &new), [Severity::Major]);
}

#[test]
fn one_more_finding_than_before_keeps_its_severity() {
    let old = go(TLS, "\treturn nil\n");
    let new = go(&format!("\tlog.Print(1)\n{TLS}"), TLS);
    let found = severities("a.go", RULE, &old, &new);
    assert!(found.contains(&Severity::Major), "{found:?}");
}

#[test]
fn other_code_with_the_same_weakness_keeps_its_severity() {
    let old = go(TLS, "\treturn nil\n");
    let new = go(
        "\treturn nil\n",
        "\treturn &tls.Config{ServerName: bank, InsecureSkipVerify: true}\n",
    );
    assert_eq!(severities("a.go", RULE, &old, &new), [Severity::Major]);
}

#[test]
fn a_finding_that_a_comment_suppressed_is_new_without_the_comment() {
    let suppressed = TLS.replace(
        '\n',
        " // claude-reviewer: ignore[go-tls-verify-off] test server\n",
    );
    let (old, new) = (go(&suppressed, "\treturn nil\n"), go("\treturn nil\n", TLS));
    let found = severities("a.go", RULE, &old, &new);
    assert_eq!(found, [Severity::Major]);
}

#[test]
fn a_critical_finding_keeps_its_severity_wherever_it_moves() {
    let eval = "import os\nfrom flask import request\n\ndef a():\n    os.system('ls ' + request.args['a'])\n\ndef b():\n    x = 1\n    y = 2\n    z = 3\n    return x + y + z\n";
    let moved = "import os\nfrom flask import request\n\ndef b():\n    x = 1\n    y = 2\n    z = 3\n    return x + y + z\n\ndef a():\n    os.system('ls ' + request.args['a'])\n";
    let is_critical = |old: &str, new: &str| {
        let found = changed(RuleProfile::Audit, "a.py", old, new);
        found.iter().any(|f| f.severity() == Severity::Critical)
    };
    assert!(is_critical("", eval));
    assert!(is_critical(eval, moved));
}

/// Returns lines of Go that call functions with other names than those of another prefix.
fn calls(prefix: &str, count: u32) -> String {
    (0..count).map(|i| format!("\t{prefix}{i}()\n")).collect()
}

#[test]
fn a_finding_far_below_the_start_of_its_function_is_new_wherever_it_moves() {
    for (count, expected) in [(100, Severity::Suggestion), (1_100, Severity::Major)] {
        let one = format!("func one() *tls.Config {{\n{}{TLS}}}\n", calls("a", count));
        let two = format!("func two() {{\n{}}}\n", calls("b", 2 * count));
        let old = format!("package a\n\n{one}\n{two}");
        let new = format!("package a\n\n{two}\n{one}");
        assert_eq!(severities("a.go", RULE, &old, &new), [expected], "{count}");
    }
}

// Each finding was compared with each removed one, and searched all lines of the function for
// both: hours for a function of some thousand lines.
#[test]
fn the_findings_of_a_function_are_compared_in_linear_time() {
    let body = |host: &str| -> String {
        let line =
            |i| format!("\tuse(&tls.Config{{ServerName: {host}{i}, InsecureSkipVerify: true}})\n");
        (0..900).map(line).collect()
    };
    let file = |host: &str| format!("package a\n\nfunc one() {{\n{}}}\n", body(host));
    let found = severities("a.go", RULE, &file("old"), &file("new"));
    assert_eq!(found, [Severity::Major; 900]);
}

#[test]
fn an_edit_in_place_keeps_the_severity() {
    let line = "\treturn &tls.Config{ServerName: host, InsecureSkipVerify: true}\n";
    let edited = line.replace("ServerName: host", "ServerName: bank");
    let old = go(line, "\treturn nil\n");
    let found = severities("a.go", RULE, &old, &go(&edited, "\treturn nil\n"));
    assert_eq!(found, [Severity::Major]);
    let line = "ANSIBLE_HOST_KEY_CHECKING=False ansible-playbook a.yml\n";
    let edited = line.replace(" a.yml", " b.yml");
    let found = severities("deploy.sh", "ansible-host-key-check-off", line, &edited);
    assert_eq!(found, [Severity::Minor]);
}

/// Asserts the severity of the only finding of a rule in a change.
#[track_caller]
fn assert_one(path: &str, rule: &str, (old, new): (&str, &str), expected: Severity) {
    assert_ne!(
        severities(path, rule, "", new),
        [Severity::Suggestion],
        "{new}"
    );
    assert_eq!(severities(path, rule, old, new), [expected], "{old}{new}");
}

const SESSION: &str = "python-tls-verify-off";

/// Returns a function of Python with a session whose lines have more indentation.
fn python(lines: &[&str]) -> String {
    let lines: String = lines.iter().map(|line| format!("    {line}\n")).collect();
    format!("import requests\nDEBUG = read()\n\ndef run(session, host):\n{lines}")
}

#[test]
fn a_statement_that_an_edit_lays_out_anew_is_a_suggestion() {
    let old = python(&["a = 1", "session.verify = False", "b = 2"]);
    for lines in [
        &[
            "try:",
            "    session.verify = False",
            "finally:",
            "    done(a)",
        ][..],
        &["a = 3", "session.verify=False  # as before", "c = 2"],
        &[
            "for _ in host:",
            "    if host:",
            "        session.verify = False",
        ],
        &["other(a)", "session.verify =  False"],
    ] {
        let new = python(lines);
        assert_one("a.py", SESSION, (&old, &new), Severity::Suggestion);
    }
    let old = python(&["return requests.get(host, verify=False)"]);
    let new = python(&[
        "return requests.get(",
        "    host,",
        "    verify=False,",
        ")",
    ]);
    assert_one("a.py", SESSION, (&old, &new), Severity::Suggestion);
    assert_one("a.py", SESSION, (&new, &old), Severity::Suggestion);
}

#[test]
fn a_statement_is_new_if_a_part_of_it_differs() {
    let old = python(&[
        "return requests.get(",
        "    host,",
        "    verify=False,",
        ")",
    ]);
    let new = python(&["return requests.get(", "  bank,", "  verify=False,", ")"]);
    assert_one("a.py", SESSION, (&old, &new), Severity::Major);
    let old = python(&["session.verify = False"]);
    let new = python(&["bank.session.verify = False"]);
    assert_one("a.py", SESSION, (&old, &new), Severity::Major);
}

#[test]
fn a_statement_that_leaves_a_condition_is_new() {
    let bare = python(&["a = 1", "session.verify = False", "b = 3"]);
    for lines in [
        &["if DEBUG:", "    session.verify = False"][..],
        &[
            "if host:",
            "    a = 2",
            "else:",
            "    session.verify = False",
        ],
        &["while host:", "    session.verify = False"],
        &[
            "call(",
            "    a,",
            ")",
            "with local(host):",
            "    session.verify = False",
        ],
    ] {
        let old = python(lines);
        assert_one("a.py", SESSION, (&old, &bare), Severity::Major);
    }
    let old = python(&[
        "if a(host):",
        "    x = 1",
        "else:",
        "    session.verify = False",
    ]);
    let new = python(&[
        "if b(host):",
        "    x = 1",
        "else:",
        "     session.verify = False",
    ]);
    assert_one("a.py", SESSION, (&old, &new), Severity::Major);
}

#[test]
fn a_condition_in_front_of_its_bracket_or_in_a_directive_counts() {
    let rule = "csharp-tls-verify-off";
    let line = "handler.ServerCertificateCustomValidationCallback = HttpClientHandler.DangerousAcceptAnyServerCertificateValidator;";
    let file = |lines: &[&str]| {
        let lines: String = lines
            .iter()
            .map(|line| format!("        {line}\n"))
            .collect();
        format!("class A\n{{\n    void Run()\n    {{\n{lines}    }}\n}}\n")
    };
    let bare = file(&["a();", line, "b();"]);
    let dev = file(&["if (dev)", "{", &format!("    {line}"), "}"]);
    let other = file(&[
        "if (dev)",
        "{",
        "    c();",
        "}",
        "else",
        "{",
        &format!("    {line}"),
        "}",
    ]);
    let directive = file(&["#if DEBUG", &format!(" {line}"), "#endif"]);
    assert_one("A.cs", rule, ("", &bare), Severity::Major);
    for old in [&dev, &other, &directive] {
        let found = severities("A.cs", rule, old, &bare);
        assert_eq!(found, [Severity::Major], "{old}");
    }
    assert_one("A.cs", rule, (&bare, &other), Severity::Suggestion);
    let laid_out = dev
        .replace("if (dev)\n        {", "if (dev) {")
        .replace("  handler.", "handler.");
    assert_one("A.cs", rule, (&dev, &laid_out), Severity::Suggestion);
}

#[test]
fn braces_around_one_statement_are_layout() {
    let of = |body: &str| {
        format!("function nonce() {{\n  var text = '';\n  {body}\n  return text;\n}}\n")
    };
    let rule = "weak-random-call";
    let one = of(
        "for (var i = 0; i < 30; i++) text += chars.charAt(Math.floor(Math.random() * chars.length));",
    );
    let braces = of(
        "for (var i = 0; i < 30; i++) { text += chars.charAt(Math.floor(Math.random() * chars.length)); }",
    );
    let lines = of(
        "for (var i = 0; i < 30; i++) {\n    text += chars.charAt(Math.floor(Math.random() * chars.length));\n  }",
    );
    let out = of(
        "for (var i = 0; i < 30; i++) { more(); }\n  text += chars.charAt(Math.floor(Math.random() * chars.length));",
    );
    assert_one("a.js", rule, (&one, &braces), Severity::Suggestion);
    assert_one("a.js", rule, (&braces, &lines), Severity::Suggestion);
    assert_one("a.js", rule, (&lines, &out), Severity::Major);
    assert_one("a.js", rule, (&one, &out), Severity::Major);
}

#[test]
fn the_arguments_of_a_weak_generator_do_not_matter_but_its_use_does() {
    let of = |body: &str| {
        format!(
            "package a\n\nimport \"math/rand\"\n\nfunc Token() string {{\n\t{body}\n\treturn s\n}}\n"
        )
    };
    let old = of("x := rand.Intn(len(SYMBOLS))");
    let rule = "weak-random-call";
    assert_one(
        "a.go",
        rule,
        (&old, &of("x := rand.Intn(len(SYMBOLS) - 1)")),
        Severity::Suggestion,
    );
    assert_one(
        "a.go",
        rule,
        (&old, &of("token := rand.Intn(len(SYMBOLS))")),
        Severity::Major,
    );
    assert_one(
        "a.go",
        rule,
        (&old, &of("x := rand.Int63n(len(SYMBOLS))")),
        Severity::Major,
    );
}

#[test]
fn a_mistake_that_was_in_an_edited_line_is_a_suggestion() {
    let of = |condition: &str| {
        format!("<?php\nfunction f($a, $b) {{\n  if ({condition}) {{\n    g();\n  }}\n}}\n")
    };
    let rule = "php-position-as-boolean";
    let old = of("strpos($a, 'x')");
    for new in [of("strpos($a, 'x') && $b"), of("$b || strpos($a, \"x\")")] {
        let found = severities("a.php", rule, &old, &new);
        assert!(
            found.iter().all(|s| *s == Severity::Suggestion),
            "{new} {found:?}"
        );
    }
    assert_one(
        "a.php",
        rule,
        (&old, &of("strpos($a, 'y')")),
        Severity::Minor,
    );
    let guarded = of("$b && strpos($a, 'x')");
    assert_one("a.php", rule, (&guarded, &old), Severity::Minor);
}

#[test]
fn a_renamed_file_has_the_findings_of_its_old_path() {
    let line = "    session.verify = False\n";
    let (old, new) = (
        format!("import requests\ndef f(session):\n    a()\n{line}    b()\n"),
        format!("import requests\ndef f(session):\n  if a():\n    {line}  c()\n"),
    );
    let of = |path: &str| {
        let found = renamed(path, "src/b.py", &old, &new);
        let mut found = found.iter().filter(|finding| finding.rule_id() == SESSION);
        found.next().map(Finding::severity)
    };
    assert_eq!(of("src/a.py"), Some(Severity::Suggestion));
    assert_eq!(of("tests/test_a.py"), Some(Severity::Major));
}

#[test]
fn the_section_of_a_configuration_and_the_stage_of_a_build_count() {
    let rule = "pip-trusted-host";
    let of = |stages: [&str; 2]| {
        format!(
            "FROM python:3 AS dev\nRUN a\n{}FROM python:3\nRUN b\n{}",
            stages[0], stages[1]
        )
    };
    let line = "RUN pip install --trusted-host pypi.example.org a\n";
    let (old, new) = (of([line, ""]), of(["", line]));
    let before = severities("Dockerfile", rule, "", &new);
    assert_eq!(severities("Dockerfile", rule, &old, &new), before);
}

#[test]
fn a_statement_within_a_long_chain_of_conditions_is_new() {
    let of = |branches: usize, indentation: &str| {
        let lines: String = (0..branches)
            .map(|i| format!("{indentation}elif a == {i}:\n{indentation}    s{i}.x = 1\n"))
            .collect();
        format!(
            "import requests\n\ndef f(s, a):\n{indentation}if a:\n{indentation}    b()\n{lines}{indentation}else:\n{indentation}    s.verify = False\n"
        )
    };
    for (branches, expected) in [(10, Severity::Suggestion), (100, Severity::Major)] {
        let (old, new) = (of(branches, "    "), of(branches, "  "));
        assert_one("a.py", SESSION, (&old, &new), expected);
    }
}

#[test]
fn a_guard_that_no_block_shows_counts() {
    let line = "session.verify = False";
    let laid_out = "session.verify  =  False";
    for (old, new) in [
        (&["if not DEBUG:", "    return", line][..], &[laid_out][..]),
        (&["if not DEBUG: return", line], &[laid_out]),
        (&["assert DEBUG", line], &[laid_out]),
    ] {
        let (old, new) = (python(old), python(new));
        assert_one("a.py", SESSION, (&old, &new), Severity::Major);
    }
    let old = python(&[line]).replace("def run", "@only_in_debug\ndef run");
    let new = python(&[laid_out]);
    assert_one("a.py", SESSION, (&old, &new), Severity::Major);
}

#[test]
fn a_statement_of_another_object_is_new() {
    let old = python(&[
        "s = session",
        "s.verify = False",
        "s.get(host)",
        "s = other(host)",
        "s.post(host)",
    ]);
    let new = python(&[
        "s = session",
        "s.get(host)",
        "s = other(host)",
        "s.verify = False",
        "s.post(host)",
    ]);
    assert_one("a.py", SESSION, (&old, &new), Severity::Major);
}

#[test]
fn indentation_alone_is_no_block_where_braces_are() {
    let rule = "csharp-tls-verify-off";
    let line = "handler.ServerCertificateCustomValidationCallback = HttpClientHandler.DangerousAcceptAnyServerCertificateValidator;";
    let spaced = line.replace(" = ", "  =  ");
    let file = |lines: &[&str]| {
        let lines: String = lines
            .iter()
            .map(|line| format!("        {line}\n"))
            .collect();
        format!("class A {{\n    void Run() {{\n{lines}    }}\n}}\n")
    };
    let inner = format!("    {line}");
    let spaced = format!("    {spaced}");
    let old = file(&["if (dev)", &inner]);
    for lines in [
        &["if (dev)", "    log();", &spaced][..],
        &["if (dev) {", "    log(); }", &spaced],
    ] {
        assert_one("A.cs", rule, (&old, &file(lines)), Severity::Major);
    }
    let old = file(&["switch (a) {", "case 1:", &inner, "    break;", "}"]);
    let new = file(&[
        "switch (a) {",
        "case 2:",
        "case 1:",
        &spaced,
        "    break;",
        "}",
    ]);
    assert_one("A.cs", rule, (&old, &new), Severity::Major);
}

#[test]
fn another_handler_of_exceptions_removes_no_guard() {
    let laid_out = ["session.verify  =  False", "try:", "    run()"];
    let old = [
        "session.verify = False",
        "try:",
        "    run()",
        "except ValueError:",
        "    log()",
    ];
    let new = [&laid_out[..], &["except OSError:", "    log()"]].concat();
    let (old, new) = (python(&old), python(&new));
    assert_one("a.py", SESSION, (&old, &new), Severity::Suggestion);
}

#[test]
fn brackets_of_a_parameter_and_separators_of_digits_are_layout() {
    let rule = "js-map-without-return";
    let file = |head: &str| format!("const all = {head} {{\n  post(url, a);\n}});\n");
    let old = file("names.map(name =>");
    let new = file("names\n  .map((name) =>");
    assert_one("a.js", rule, (&old, &new), Severity::Suggestion);
    for new in ["names.map((other) =>", "names.map((name, i) =>"] {
        assert_one("a.js", rule, (&old, &file(new)), Severity::Minor);
    }
    let rule = "ruby-insecure-random-secret";
    let file =
        |number: &str| format!("def a\n  self.verification_token = rand({number}).to_s\nend\n");
    let old = file("999999");
    assert_one("a.rb", rule, (&old, &file("999_999")), Severity::Suggestion);
    assert_one("a.rb", rule, (&old, &file("999_998")), Severity::Major);
}

#[test]
fn a_secret_that_was_there_exposes_nothing_new() {
    let (rule, key) = ("hardcoded-credential", "q7Rk2mXv9TzLw4Bn8sYd");
    let line = |name: &str, value: &str| format!("{name}_password = \"{value}\"\n");
    let old = line("db", key);
    let two = format!("{}{}", line("db", key), line("mail", key));
    for (new, expected) in [
        (line("database", key), Severity::Suggestion),
        (format!("if 1:\n    {old}"), Severity::Suggestion),
        (line("db", "q7Rk2mXv9TzLw4Bn8sYe"), Severity::Critical),
        (line("db", &key[..18]), Severity::Critical),
    ] {
        assert_one("a.py", rule, (&old, &new), expected);
    }
    let found = changed(
        RuleProfile::Default,
        "a.py",
        &old,
        &two.replace("db_", "x_"),
    );
    let mut copied: Vec<Severity> = found.iter().map(Finding::severity).collect();
    copied.sort_unstable();
    assert_eq!(copied, [Severity::Suggestion, Severity::Critical]);
    // No rule reported the old line.
    let name = format!("cache_name = \"{key}\"\n");
    assert_one("a.py", rule, (&name, &old), Severity::Critical);
    let longer = line("db", &format!("{key}Zz7"));
    assert_one(
        "a.py",
        rule,
        (&longer, &line("db", key)),
        Severity::Critical,
    );
}

#[test]
fn a_namespace_is_no_condition() {
    let rule = "csharp-tls-verify-off";
    let line = "handler.ServerCertificateCustomValidationCallback = HttpClientHandler.DangerousAcceptAnyServerCertificateValidator;";
    let class = |space: &str| {
        format!(
            "{space}class A\n{space}{{\n{space}    void Run()\n{space}    {{\n{space}        {line}\n{space}    }}\n{space}}}\n"
        )
    };
    let old = format!("namespace A\n{{\n{}}}\n", class("    "));
    let new = format!("namespace A;\n\n{}", class(""));
    assert_one("A.cs", rule, (&old, &new), Severity::Suggestion);
}

#[test]
fn another_kind_of_quotes_removes_no_guard() {
    let old = python(&[
        "if not ok: raise ValueError('no')",
        "requests.get(host, verify=False)",
    ]);
    let new = python(&[
        "if not ok: raise ValueError(\"no\")",
        "requests.get(",
        "    host,",
        "    verify=False,",
        ")",
    ]);
    assert_one(
        "a.py",
        "python-tls-verify-off",
        (&old, &new),
        Severity::Suggestion,
    );
    let new = new.replace("raise ValueError(\"no\")", "log(\"no\")");
    assert_one(
        "a.py",
        "python-tls-verify-off",
        (&old, &new),
        Severity::Major,
    );
}

#[test]
fn a_download_that_is_piped_to_a_shell_is_known_with_other_arguments() {
    let step = |command: &str| format!("jobs:\n  lint:\n    commands:\n      - {command}\n");
    let rule = "configured-pipe-to-shell";
    let of = |address: &str, rest: &str| {
        step(&format!("curl -sfL https://{address}/install.sh | {rest}"))
    };
    let old = of("get.example.org", "bash -s -- -b bin v1.2");
    for rest in ["bash -s -- -b bin v1.3", "sh -s -- -b bin v1.2"] {
        let new = of("get.example.org", rest);
        assert_eq!(
            severities(".semaphore/ci.yml", rule, &old, &new),
            [Severity::Suggestion],
            "{rest}"
        );
    }
    let other = of("get.example.com", "bash -s -- -b bin v1.2");
    assert_eq!(
        severities(".semaphore/ci.yml", rule, &old, &other),
        [Severity::Minor]
    );
}
