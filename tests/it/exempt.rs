//! Tests of exemptions from findings: exempt values, suppressions, prose; and of the confidence of
//! rules.

use crate::support::{Repo, line_with_another_key, line_with_key};
use claude_reviewer::finding::{Confidence, Severity};
use claude_reviewer::rules::describe_all;
use serde_json::Value;

fn rules_of(report: &Value) -> Vec<(String, u64)> {
    let findings = report["findings"].as_array().unwrap();
    findings
        .iter()
        .map(|f| {
            (
                f["rule_id"].as_str().unwrap().to_owned(),
                f["line"].as_u64().unwrap_or(0),
            )
        })
        .collect()
}

/// Reviews one new file in gate mode and returns the findings that are minor or worse.
#[track_caller]
fn gate(path: &str, text: &str) -> Vec<Value> {
    let repo = Repo::new();
    repo.stage("README.md", "A project\n");
    repo.commit("base");
    repo.git(&["checkout", "-q", "-b", "t"]);
    repo.stage(path, text);
    repo.commit("change");
    gate_report(&repo)
}

/// Reviews the branch `t` in gate mode and returns the findings that are minor or worse.
fn gate_report(repo: &Repo) -> Vec<Value> {
    let args = [
        "review",
        "branch",
        "t",
        "--base",
        "main",
        "--gate",
        "--no-save",
        "--format",
        "json",
    ];
    let run = repo.reviewer(&args).run_any();
    let report: Value = serde_json::from_str(&run.stdout).unwrap();
    let findings = report["findings"].as_array().unwrap().clone();
    findings
        .into_iter()
        .filter(|f| f["severity"] != "suggestion")
        .collect()
}

fn alphanumeric(seed: u64, n: usize) -> String {
    const SIGNS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        char::from(SIGNS[(state >> 33) as usize % SIGNS.len()])
    };
    (0..n).map(|_| next()).collect()
}

/// Returns the key of the storage emulator, assembled here so that the sources do not contain it.
fn emulator_key() -> String {
    [
        "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsu",
        "Fq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==",
    ]
    .concat()
}

#[test]
fn hid_09_an_exempt_value_does_not_excuse_its_neighbours() {
    let account =
        |name: &str, key: &str| format!("AccountName={name};AccountKey={key};EndpointSuffix=x");
    let azure = format!("{}==", alphanumeric(1, 86));
    let google = |seed: u64| format!("AIzaSy{}", alphanumeric(seed, 33));
    let firebase =
        |key: &str| format!("{{ apiKey: \"{key}\", authDomain: \"app-1.firebaseapp.com\" }}");
    let stripe = ["sk_test_", "4eC39HqLyjWDarjtT1zdp7dc"].concat();
    let known = ["AKIA", "IOSFODNN7", "EXAMPLE"].concat();
    for (path, text, exempt) in [
        ("a.ini", account("devstoreaccount1", &emulator_key()), true),
        ("a.ini", account("corp", &emulator_key()), true),
        ("a.ini", account("devstoreaccount1", &azure), false),
        (
            "a.ini",
            format!(
                "{} {}",
                account("devstoreaccount1", &emulator_key()),
                account("corp", &azure)
            ),
            false,
        ),
        (
            "a.ini",
            format!(
                "{}\n{}",
                account("devstoreaccount1", &emulator_key()),
                account("corp", &azure)
            ),
            false,
        ),
        (
            "a.ini",
            format!(
                "Endpoint=sb://x;SharedAccessKey={}=;UseDevelopmentEmulator=true",
                alphanumeric(2, 43)
            ),
            false,
        ),
        (
            "src/a.ts",
            format!("const app = {};\n", firebase(&google(3))),
            true,
        ),
        (
            "src/a.ts",
            format!(
                "const app = {};\nconst maps = \"{}\";\n",
                firebase(&google(3)),
                google(4)
            ),
            false,
        ),
        (
            "src/a.ts",
            format!(
                "const app = {}; const maps = \"{}\";\n",
                firebase(&google(3)),
                google(4)
            ),
            false,
        ),
        (
            "src/a.ts",
            format!(
                "// app-1.firebaseapp.com authDomain\nconst maps = \"{}\";\n",
                google(4)
            ),
            false,
        ),
        (
            "src/firebase-maps.ts",
            format!("const maps = \"{}\";\n", google(4)),
            false,
        ),
        ("src/a.py", format!("KEY = \"{stripe}\"\n"), true),
        ("a.ini", format!("aws_access_key_id = {known}\n"), true),
        ("a.ini", format!("# {known}\n{}", line_with_key()), false),
        (
            "a.ini",
            format!("{} # not {known}\n", line_with_key().trim_end()),
            false,
        ),
    ] {
        let found = gate(path, &text);
        assert_eq!(found.is_empty(), exempt, "{path}: {text}\n{found:#?}");
    }
}

const MARKER: &str = "# claude-reviewer: ignore[bidi-control] from the paper\n";

#[test]
fn hid_10_a_suppression_of_the_base_covers_only_lines_that_stay() {
    let bidi = "x = 'a\u{202e}b'  ;  y = f( 1 )\n";
    let other = "x = 'c\u{202e}d'\n";
    // So many lines stay that git treats a moved file as renamed.
    let rest: String = (0..40).map(|n| format!("value_{n} = {n}\n")).collect();
    let base = format!("import os\n{MARKER}{bidi}z = 1\n{rest}");
    for (name, text, found) in [
        (
            "the line below is replaced",
            format!("import os\n{MARKER}{other}z = 1\n"),
            true,
        ),
        (
            "a line is put between",
            format!("import os\n{MARKER}{other}{bidi}z = 1\n"),
            true,
        ),
        (
            "a line is added behind it",
            format!("import os\n{MARKER}{bidi}{other}z = 1\n"),
            true,
        ),
        (
            "the comment is copied",
            format!("import os\n{MARKER}{bidi}z = 1\n{MARKER}{other}"),
            true,
        ),
        (
            "comment and line are copied",
            format!("import os\n{MARKER}{bidi}z = 1\n{MARKER}{bidi}"),
            true,
        ),
        (
            "the value in the line changes",
            format!(
                "import os\n{MARKER}{}z = 1\n",
                bidi.replace("f( 1 )", "f( 2 )")
            ),
            true,
        ),
        (
            "white space in the string changes",
            format!("import os\n{MARKER}{}z = 1\n", bidi.replace("'a", "' a")),
            true,
        ),
        (
            "lines are added elsewhere",
            format!("import os\nimport re\n\n{MARKER}{bidi}z = 1\n"),
            false,
        ),
        (
            "both are set in",
            format!("import os\nif a:\n    {MARKER}    {bidi}z = 1\n"),
            false,
        ),
        (
            "white space between signs changes",
            format!(
                "import os\n{MARKER}{}z = 1\n",
                bidi.replace("f( 1 )", "f(1)")
            ),
            false,
        ),
        (
            "line ends change",
            format!("import os\n{MARKER}{bidi}z = 1\n{rest}").replace('\n', "\r\n"),
            false,
        ),
    ] {
        for moved in [false, true] {
            let text = if text.contains('\r') {
                text.clone()
            } else {
                format!("{text}{rest}")
            };
            if moved && text.contains('\r') {
                continue;
            }
            let repo = Repo::new();
            repo.stage("a.py", &base);
            let start = repo.commit("base");
            let mut path = "a.py";
            if moved {
                path = "b.py";
                repo.git(&["mv", "a.py", path]);
            }
            repo.stage(path, &text);
            repo.commit("change");
            let branch = ["branch", "--base", &start, "--no-save"];
            let report = repo.review_json(&[&branch[..], &["--gate"]].concat(), i32::from(found));
            let standing: Vec<_> = report["findings"]
                .as_array()
                .unwrap()
                .iter()
                .filter(|f| f["suppressed"].is_null())
                .collect();
            assert_eq!(
                standing.is_empty(),
                !found,
                "{name}, moved: {moved}: {standing:#?}"
            );
            if found && !name.contains("copied") && !name.contains("behind") {
                let notes = report["notes"].to_string();
                assert!(
                    notes.contains("which is new or changed since the base"),
                    "{name}: {notes}"
                );
                // Outside of gate mode, a comment of the base covers no more, and one that the
                // change adds counts.
                repo.review(&[&branch[..], &["--no-gate"]].concat(), 1);
            }
        }
    }
}

#[test]
fn hid_10_outside_of_gate_mode_a_comment_that_is_written_anew_counts() {
    let marker = "# claude-reviewer: ignore[aws-access-key-id] a documented sample\n";
    let repo = Repo::new();
    repo.stage("a.ini", format!("{marker}{}", line_with_key()));
    let base = repo.commit("base");
    repo.stage(
        "a.ini",
        format!(
            "{}{}",
            marker.replace("sample", "sample of 2024"),
            line_with_another_key()
        ),
    );
    repo.commit("next");
    repo.review(&["branch", "--base", &base, "--no-save", "--no-gate"], 0);
    repo.review(&["branch", "--base", &base, "--no-save", "--gate"], 1);
}

/// Texts with hidden Unicode, and the rule that reports each.
const HIDDEN: &[(&str, &str)] = &[
    ("a \u{2066}b: 1\n", "bidi-control"),
    ("a: b\u{2069}c\n", "bidi-control"),
    ("s: \"a \u{2067}b\u{2069} c\"\n", "bidi-control"),
    ("s: \"a \u{2068}b\u{2069} c\"\n", "bidi-control"),
    (
        "role: \"user\u{202e} \u{2066}// admins only\u{2069} \u{2066}\"\n",
        "bidi-control",
    ),
    ("ad\u{200b}min: true\n", "zero-width-characters"),
    ("x: \"ad\u{200d}min\"\n", "zero-width-characters"),
    ("x: \"admin\u{2060}\"\n", "zero-width-characters"),
    ("\u{430}dmin: true\n", "mixed-script-name"),
    ("x: \"p\u{430}ypal.com\"\n", "mixed-script-name"),
];

#[test]
fn hid_11_hidden_unicode_is_found_in_every_file_that_is_not_prose_or_a_translation() {
    let repo = Repo::new();
    repo.stage("README.md", "A project\n");
    repo.commit("base");
    repo.git(&["checkout", "-q", "-b", "t"]);
    let mut cases = Vec::new();
    for path in [
        ".github/workflows/ci.yml",
        "package.json",
        "pyproject.toml",
        "index.html",
        "src/App.vue",
        "src/App.svelte",
        "contracts/Token.sol",
        "src/main.zig",
        "CMakeLists.txt",
        "cmake/a.cmake",
        "templates/a.j2",
        "templates/a.erb",
        "a.tf",
        "Makefile",
        "Dockerfile",
        "a.properties",
        ".env",
        "a.nim",
        "a.v",
        "a.proto",
        "a.sql",
        "a.py",
        "requirements.txt",
        "values.yaml",
        "a.unknown",
        "script",
    ] {
        // One folder for each text, so that all files have the same name in one review.
        for (i, (text, rule)) in HIDDEN.iter().enumerate() {
            let path = format!("case-{i}/{path}");
            repo.write(&path, text);
            cases.push((path, text, *rule));
        }
    }
    repo.git(&["add", "-f", "."]);
    repo.commit("change");
    let found = gate_report(&repo);
    for (path, text, rule) in cases {
        let is_it = |f: &Value| f["file"] == *path && f["rule_id"] == rule;
        assert!(found.iter().any(is_it), "{path}: {text:?}");
    }
}

#[test]
fn hid_11_what_people_write_is_not_found() {
    for (path, text) in [
        (
            "a.py",
            "x = '👨\u{200d}👩\u{200d}👧 ❤\u{fe0f} 1\u{fe0f}\u{20e3}'\n",
        ),
        ("a.yml", "title: 'می\u{200c}خواهم API\u{200c}ها'\n"),
        (
            "index.html",
            "<p>क्\u{200d}ष word\u{200b} word\u{200b}</p>\n<wbr>&#8203;\n",
        ),
        (
            "tests/a.test.ts",
            "const s = \"Hello \u{2068}name\u{2069}!\";\nconst zero = '\u{200b}';\n",
        ),
        (
            "a.js",
            "const s = \"\\n\u{43e} себе\"; const t = '%s\u{43e}'; // \u{441}ode на русском\n",
        ),
        (
            "index.html",
            "<p>Cо страницы, PАCШИРЕНИЕ и USB-кабель</p>\n",
        ),
        (
            "locales/fa.json",
            "{\"a\": \"\u{202b}API\u{200c}ها\u{202c}\", \"ad\u{200b}min\": \"\u{2067}x\u{2069}\"}\n",
        ),
        (
            "config/locales/ar.yml",
            "ar:\n  a: \"\u{202b}مرحبا\u{202c} a\u{200b}b\"\n",
        ),
        (
            "po/he.po",
            "msgid \"a\"\nmsgstr \"\u{2067}שלום\u{2069} a\u{200e}b\"\n",
        ),
        (
            "app/src/main/res/values-ar/strings.xml",
            "<string name=\"a\">\u{202b}مرحبا\u{202c}</string>\n",
        ),
        (
            "src/locales/fa.ts",
            "export default { a: '\u{202b}مرحبا\u{202c} a\u{200b}b' };\n",
        ),
        (
            "README.md",
            "Hidden \u{2066}in prose\u{2069}, ad\u{200b}min, is_\u{430}dmin\n",
        ),
        (
            "tests/data/bidi.json",
            "[\"\u{202e}abc\", \"ad\u{200b}min\"]\n",
        ),
    ] {
        let found = gate(path, text);
        assert!(found.is_empty(), "{path}: {text:?}: {found:#?}");
    }
}

#[test]
fn an_injection_or_an_exposed_secret_is_critical_from_confidence_medium_up() {
    const CRITICAL: [u32; 13] = [74, 77, 78, 79, 89, 94, 95, 502, 611, 918, 798, 522, 321];
    for rule in describe_all().filter(|r| r.cwe.is_some_and(|c| CRITICAL.contains(&c))) {
        if rule.confidence >= Confidence::Medium {
            assert_eq!(rule.severity, Severity::Critical, "{}", rule.id);
        }
    }
    for (path, text, rule) in [
        (
            "src/a.py",
            "import yaml\nc = yaml.load(text)\n",
            "python-yaml-unsafe-load",
        ),
        (
            "src/a.js",
            "const s = require('node-serialize');\n",
            "js-deserialize-code",
        ),
        (
            "src/A.cs",
            "var v = new BinaryFormatter().Deserialize(s);\n",
            "csharp-unsafe-deserializer",
        ),
        (
            "src/main/java/A.java",
            "mapper.enableDefaultTyping();\n",
            "java-jackson-default-typing",
        ),
    ] {
        let found = gate(path, text);
        assert_eq!(
            (&found[0]["rule_id"], &found[0]["severity"]),
            (&rule.into(), &"critical".into()),
            "{found:#?}"
        );
    }
}

#[test]
fn a_value_of_unknown_origin_is_a_suggestion_and_one_of_a_request_is_critical() {
    let repo = Repo::new();
    let cases = [
        (
            "src/a.py",
            "def f(cur, name):\n    cur.execute(f\"SELECT * FROM u WHERE n = '{name}'\")\n",
            "suggestion",
        ),
        (
            "src/b.py",
            "def f(cur):\n    n = request.args['n']\n    cur.execute(f\"SELECT * FROM u WHERE n = '{n}'\")\n",
            "critical",
        ),
        (
            "src/c.js",
            "db.query(`SELECT * FROM u WHERE n = '${name}'`);\n",
            "suggestion",
        ),
        (
            "src/d.js",
            "db.query(`SELECT * FROM u WHERE n = '${req.query.name}'`);\n",
            "critical",
        ),
        (
            "src/e.go",
            "rows, err := db.Query(\"SELECT a FROM t WHERE n = '\" + name + \"'\")\n",
            "suggestion",
        ),
        (
            "src/f.php",
            "<?php\n$r = $db->query(\"SELECT * FROM t WHERE n = '$name'\");\n",
            "suggestion",
        ),
        (
            "src/g.php",
            "<?php\n$name = $_GET['n'];\n$r = $db->query(\"SELECT * FROM t WHERE n = '$name'\");\n",
            "critical",
        ),
        (
            "src/h.py",
            "import os\nos.system('convert ' + path)\n",
            "suggestion",
        ),
        (
            "src/i.py",
            "import os, sys\npath = sys.argv[1]\nos.system('convert ' + path)\n",
            "critical",
        ),
        (
            "src/j.py",
            "import subprocess\nsubprocess.run(command, shell=True)\n",
            "suggestion",
        ),
        (
            "src/k.py",
            "import subprocess\ncommand = request.args['c']\nsubprocess.run(command + ' -v', shell=True)\n",
            "critical",
        ),
        (
            "src/l.py",
            "import pickle\nvalue = pickle.loads(blob)\n",
            "suggestion",
        ),
        (
            "src/m.py",
            "import pickle\nblob = request.get_data()\nvalue = pickle.loads(blob)\n",
            "critical",
        ),
        ("src/n.py", "value = eval(formula)\n", "suggestion"),
        (
            "src/o.py",
            "formula = request.args['f']\nvalue = eval(formula)\n",
            "critical",
        ),
        ("src/p.js", "box.innerHTML = html;\n", "suggestion"),
        (
            "src/q.js",
            "const name = new URLSearchParams(location.search).get('n');\nbox.innerHTML = 'Hello ' + name;\n",
            "critical",
        ),
        (
            "src/r.js",
            "const run = new Function(code);\n",
            "suggestion",
        ),
        (
            "src/s.js",
            "const cp = require('child_process');\ncp.exec(command);\n",
            "suggestion",
        ),
        (
            "src/t.js",
            "const cp = require('child_process');\nconst command = req.query.c;\ncp.exec(command);\n",
            "critical",
        ),
        (
            "src/u.php",
            "<?php\n$cart = unserialize($row['cart']);\n",
            "suggestion",
        ),
        (
            "src/v.php",
            "<?php\n$text = $_COOKIE['cart'];\n$cart = unserialize($text);\n",
            "critical",
        ),
        ("src/w.rb", "state = Marshal.load(blob)\n", "suggestion"),
        (
            "src/x.rb",
            "blob = cookies[:state]\nstate = Marshal.load(blob)\n",
            "critical",
        ),
    ];
    for (path, text, _) in cases {
        repo.stage(path, text);
    }
    let report = repo.review_json(&["staged", "--no-save"], 1);
    for (path, text, severity) in cases {
        let found = report["findings"]
            .as_array()
            .unwrap()
            .iter()
            .find(|f| f["file"] == path);
        let found = found.unwrap_or_else(|| panic!("{text}: {report:#}"));
        assert_eq!(found["severity"], severity, "{text}");
        assert_eq!(
            found["confidence"] == "low",
            severity == "suggestion",
            "{text}: {found:#}"
        );
        assert_eq!(found["blocking"], severity == "critical", "{text}");
    }
    // The policy can still set the severity of a rule.
    repo.write(
        ".claude-reviewer.toml",
        "[rules]\nseverity = { \"js-sql-interpolation\" = \"major\" }\n",
    );
    let report = repo.review_json(&["staged", "--no-save"], 1);
    let named = report["findings"]
        .as_array()
        .unwrap()
        .iter()
        .find(|f| f["file"] == "src/c.js")
        .unwrap();
    assert_eq!(
        (&named["severity"], &named["confidence"]),
        (&"major".into(), &"low".into())
    );
}

#[test]
fn a_call_with_request_data_is_one_finding() {
    for (path, text, rule) in [
        (
            "src/a.py",
            "os.system('ls ' + request.args['d'])\n",
            "python-shell-request",
        ),
        (
            "src/a.py",
            "subprocess.run(request.args['c'], shell=True)\n",
            "python-shell-request",
        ),
        (
            "src/a.py",
            "total = eval(request.args['f'])\n",
            "python-eval-input",
        ),
        (
            "src/a.py",
            "job = pickle.loads(request.get_data())\n",
            "python-deserialize-input",
        ),
        (
            "src/a.js",
            "const total = eval(req.query.formula);\n",
            "js-eval-input",
        ),
        (
            "src/a.js",
            "const cp = require('child_process');\ncp.exec('ls ' + req.query.d);\n",
            "js-command-request",
        ),
        ("src/a.js", "box.innerHTML = location.hash;\n", "js-dom-xss"),
        (
            "src/a.php",
            "<?php\n$cart = unserialize($_COOKIE['cart']);\n",
            "php-unserialize-request",
        ),
        (
            "src/a.rb",
            "state = Marshal.load(cookies[:state])\n",
            "ruby-deserialize-request",
        ),
    ] {
        let repo = Repo::new();
        repo.stage(path, text);
        let report = repo.review_json(&["staged", "--no-save"], 1);
        let found: Vec<_> = rules_of(&report).into_iter().map(|(id, _)| id).collect();
        assert_eq!(found, [rule], "{path}: {text}");
    }
}

#[test]
fn numbers_constants_and_placeholders_are_not_found() {
    for (path, text) in [
        (
            "src/a.py",
            "cur.execute(\"SELECT * FROM t WHERE id = %d\" % int(x))\n",
        ),
        (
            "src/a.py",
            "cur.execute(f\"SELECT * FROM t WHERE id = {int(x)} LIMIT {len(rows)}\")\n",
        ),
        (
            "src/a.py",
            "cur.execute(\"SELECT * FROM t WHERE id = \" + str(int(x)))\n",
        ),
        (
            "src/a.py",
            "cur.execute(f\"SELECT * FROM t WHERE kind = {KIND_ADMIN}\")\n",
        ),
        (
            "src/a.go",
            "rows, err := db.Query(\"SELECT a FROM t WHERE id = \" + strconv.Itoa(id))\n",
        ),
        (
            "src/a.go",
            "rows, err := db.Query(fmt.Sprintf(\"SELECT a FROM t WHERE id = %d\", id))\n",
        ),
        (
            "src/main/java/A.java",
            "s.executeQuery(\"SELECT a FROM t WHERE id = \" + Integer.parseInt(x));\n",
        ),
        (
            "src/a.js",
            "db.query(\"SELECT a FROM t WHERE id = \" + parseInt(x, 10));\n",
        ),
        (
            "src/a.php",
            "<?php\n$db->query(\"SELECT a FROM t WHERE id = \" . (int) $_GET['id']);\n",
        ),
        ("src/a.rb", "User.where(\"id = #{params[:id].to_i}\")\n"),
        (
            "src/A.cs",
            "var c = new SqlCommand(\"SELECT a FROM t WHERE id = \" + int.Parse(x), db);\n",
        ),
        (
            "src/a.rs",
            "fs::set_permissions(&tmp, Permissions::from_mode(0o666))?;\n",
        ),
        (
            "src/a.php",
            "<?php\ncurl_setopt($c, CURLOPT_SSL_VERIFYPEER, $this->options['verify'] ? true : false);\n",
        ),
        (
            "src/a.php",
            "<?php\ncurl_setopt($c, CURLOPT_SSL_VERIFYPEER, $verify);\n",
        ),
        (
            "a.env",
            "GITLAB_TOKEN=glptt-40characteralphanumericstring\n",
        ),
        (
            "a.env",
            "OP_SERVICE_ACCOUNT_TOKEN=ops_eyJxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\n",
        ),
    ] {
        let repo = Repo::new();
        repo.stage(path, text);
        let report = repo.review_json(&["staged", "--no-save"], 0);
        assert_eq!(rules_of(&report), [], "{path}: {text}");
    }
}
