//! Tests of what makes data harmless: types of responses, hosts, folders, fixed parts of names, and
//! checks below.

use super::{handler, scan_at};
use crate::finding::Severity;

/// Returns true if a new file has a flow of a rule above a suggestion.
fn has_severe(path: &str, rule: &str, code: &str) -> bool {
    scan_at(path, None, code)
        .iter()
        .any(|f| f.rule_id() == rule && f.severity() > Severity::Suggestion)
}

#[test]
fn a_redirect_whose_host_is_that_of_the_request_is_checked() {
    let page = |test: &str| {
        format!(
            "<?php\nfunction f($request) {{\n    $to = (string) ($_POST['to'] ?? '');\n    $parts = parse_url($to);\n    if ({test}) {{\n        header('Location: ' . $to);\n    }}\n}}\n"
        )
    };
    let known = [
        "isset($parts['host']) && $parts['host'] === $request->getUri()->getHost()",
        "$parts['host'] === $_SERVER['HTTP_HOST']",
        "$_SERVER['SERVER_NAME'] === $parts['host']",
    ];
    for test in known {
        assert!(
            !has_severe("a.php", "open-redirect-flow", &page(test)),
            "{test}"
        );
    }
    for test in [
        "isset($parts['host'])",
        "$parts['host'] === $_POST['host']",
        "$parts['host'] !== $_SERVER['HTTP_HOST']",
        "$parts[0] === $_SERVER['HTTP_HOST']",
        "$parts['host'] === $_POST['request.host']",
    ] {
        assert!(
            has_severe("a.php", "open-redirect-flow", &page(test)),
            "{test}"
        );
    }
}

#[test]
fn a_path_that_is_the_root_or_below_it_is_checked() {
    let server = |test: &str| {
        format!(
            "const fs = require('fs');\nconst path = require('path');\nconst root = path.resolve('public');\n\nfunction serve(req, res) {{\n  const file = path.resolve(root, req.query.file);\n  if ({test}) {{\n    res.writeHead(404).end();\n    return;\n  }}\n  res.end(fs.readFileSync(file));\n}}\nrequire('http').createServer(serve);\n"
        )
    };
    let found = |test: &str| has_severe("src/a.js", "path-traversal-flow", &server(test));
    assert!(!found(
        "file !== root && !file.startsWith(`${root}${path.sep}`)"
    ));
    assert!(!found(
        "file === '/' || (file !== root && !file.startsWith(root + path.sep))"
    ));
    assert!(found("file === root"));
    assert!(found("file !== root && file.startsWith(root + path.sep)"));
    assert!(found("file !== root && !req.query.admin"));
}

#[test]
fn a_name_of_an_attribute_with_a_fixed_part_leaves_little_to_choose() {
    for (name, is_severe) in [
        ("request.args['kind']", true),
        ("f\"{request.args['kind']}Form\"", false),
        ("'handle_' + request.args['kind']", false),
        ("f\"{request.args['kind']}_\"", true),
        ("f\"{request.args['kind']}stem\"", true),
        ("'exec' + request.args['kind']", true),
    ] {
        let code = handler(&[&format!("    return getattr(forms, {name})()\n")]);
        let code = format!("import forms\n{code}");
        assert_eq!(
            has_severe("app/a.py", "reflection-flow", &code),
            is_severe,
            "{name}"
        );
    }
}

#[test]
fn a_token_that_the_function_verifies_below_may_be_read_first() {
    let code = |below: &str| {
        format!(
            "package a\n\nimport \"github.com/golang-jwt/jwt/v5\"\n\nfunc claims(token string) (jwt.MapClaims, error) {{\n\tclaims := jwt.MapClaims{{}}\n\tt, _, err := jwt.NewParser().ParseUnverified(token, claims)\n\tif err != nil {{\n\t\treturn nil, err\n\t}}\n{below}\tuse(t)\n\treturn claims, nil\n}}\n\nfunc other(token string) {{\n\tjwt.Parse(token, key)\n}}\n"
        )
    };
    let found = |below: &str| has_severe("a.go", "jwt-unverified-call", &code(below));
    assert!(found(""));
    assert!(found("\tu, _ := url.Parse(address)\n"));
    assert!(found("\t// The gateway calls jwt.Parse(token) before.\n"));
    assert!(found("\tlog(\"jwt.Parse(token)\")\n"));
    assert!(found("\tu, _ := jwt.Parse(other, key)\n"));
    assert!(!found(
        "\tif _, err := jwt.ParseWithClaims(token, claims, keys.of(t)); err != nil {\n\t\treturn nil, err\n\t}\n"
    ));
    assert!(!found(
        "\tif err := jwk.ValidateTokenSignature(ctx, token, url); err != nil {\n\t\treturn nil, err\n\t}\n"
    ));
}

#[test]
fn a_record_with_a_host_is_not_checked_by_its_host() {
    let lines = [
        "    data = request.get_json()\n",
        "    if data[\"host\"] in (\"a.example\", \"b.example\"):\n",
        "        return requests.get(data[\"url\"]).text\n",
    ];
    let code = format!("import requests\n{}", handler(&lines));
    assert!(has_severe("app/a.py", "request-forgery-flow", &code));
}
