//! Tests of the scan of a file.

use super::*;
use crate::diff::{RepoPath, code};
use crate::policy::{RuleProfile, RulesPolicy};

const TEAM: &str = r#"
    [[rule]]
    id = "team-key"
    title = "t"
    category = "security"
    severity = "major"
    literals = ["teamkey_"]
    pattern = '\bteamkey_(?P<secret>[a-z]{20})\b'
    secret = true
    message = "m"
    [[rule]]
    id = "team-call"
    title = "t"
    category = "bug"
    severity = "major"
    literals = ["forbidden("]
    pattern = 'forbidden\('
    place = "code"
    message = "m"
"#;

fn scan(path: &str, text: &str) -> Vec<Finding> {
    let rules = RuleSet::new(
        &RulesPolicy::default(),
        &[("t.toml".to_owned(), TEAM.to_owned())],
    )
    .unwrap();
    let mut out = scan_with(&rules, path, text.as_bytes());
    out.retain(|f| f.rule_id().starts_with("team-"));
    out
}

fn scan_with(rules: &RuleSet, path: &str, text: &[u8]) -> Vec<Finding> {
    let mut out = Vec::new();
    rules.scan(
        &code::added(RepoPath::from(path), text.to_vec()),
        Scope::All,
        &mut out,
    );
    out
}

fn place(f: &Finding) -> (u32, (u32, u32)) {
    let lines = f.lines().unwrap();
    (lines.first.get(), lines.columns.unwrap())
}

#[test]
fn a_quote_never_shows_a_part_of_a_secret_that_it_cuts() {
    let key = format!("teamkey_{}", "abcdefghijklmnopqrst");
    // The first secret ends where the quote of the call begins, and the second starts where it
    // ends.
    for pad in 90..130 {
        let line = format!(
            "{}{key}{}forbidden(x){}{key}{}\n",
            " ".repeat(500),
            " ".repeat(pad),
            " ".repeat(pad),
            " ".repeat(500)
        );
        for f in scan("a.py", &line) {
            let shown = f.quote().replace("teamkey_", "").replace("abcd", "");
            assert!(
                !shown.contains("ef") && !shown.contains("st"),
                "{pad}: {}",
                f.quote()
            );
        }
    }
}

#[test]
fn findings_stand_where_the_text_does() {
    let key = format!("teamkey_{}", "abcdefghijklmnopqrst");
    let found = scan(
        "a.py",
        &format!("x\r\n# forbidden(\nf = 'é', forbidden({key})\n"),
    );
    let places: Vec<_> = found.iter().map(|f| (f.rule_id(), place(f))).collect();
    assert_eq!(
        places,
        [("team-call", (3, (10, 20))), ("team-key", (3, (28, 48)))]
    );
}

#[test]
fn bytes_that_are_no_text_hide_nothing_in_a_known_language() {
    fn is_found(path: &str, parts: &[&[u8]]) -> bool {
        let rules = RuleSet::new(&RulesPolicy::default(), &[]).unwrap();
        scan_with(&rules, path, &parts.concat())
            .iter()
            .any(|f| f.rule_id() == "bidi-control")
    }
    let trick =
        "if (role !== 'user\u{202e} \u{2066}// only admins\u{2069} \u{2066}') { grant(); } // "
            .as_bytes();
    let script: [&[u8]; 3] = [b"// plain\n", trick, &[0xff; 20]];
    assert!(is_found("src/a.js", &script));
    let mark = "\u{202e}".as_bytes();
    for n in 14..=17 {
        assert!(
            is_found(
                "src/a.c",
                &[b"/* ", &[0xe0; 17][..n], mark, b" } if (admin) { */"]
            ),
            "{n}"
        );
    }
    assert!(is_found(
        "bin/tool",
        &[b"#!/usr/bin/env node\n", trick, &[0xff; 20]]
    ));
    // An inventory of Sphinx is compressed data that no program executes.
    let data: [&[u8]; 4] = [
        b"# Sphinx inventory version 2\n",
        &[0xff; 20],
        mark,
        &[0xfe; 20],
    ];
    assert!(!is_found("docs/objects.inv", &data));
    assert!(is_found(
        "docs/objects.inv",
        &[b"# Sphinx inventory version 2\nuser", mark, b" name"]
    ));
}

#[test]
fn secrets_in_an_encoding_are_found_at_the_encoded_text() {
    use base64::Engine as _;
    let key = format!("x = teamkey_{}", "abcdefghijklmnopqrst");
    let encoded = base64::engine::general_purpose::STANDARD.encode(&key);
    let found = scan("a.yml", &format!("a: 1\ndata: {encoded}\n"));
    assert_eq!(found.len(), 1);
    assert_eq!(
        place(&found[0]),
        (2, (6, 6 + encoded.trim_end_matches('=').len() as u32))
    );
    assert!(
        !found[0].quote().contains(&encoded[8..20]),
        "{}",
        found[0].quote()
    );
    let escaped: String = key.bytes().map(|b| format!("\\x{b:02x}")).collect();
    assert_eq!(scan("a.py", &format!("s = '{escaped}'\n")).len(), 1);
}

#[test]
fn the_work_on_conflict_markers_grows_with_their_number_only() {
    // Every other line is added if `old` has text, and every line is added if it is empty.
    fn spent(rules: &RuleSet, n: usize, old: &str) -> std::time::Duration {
        let new = "<<<<<<< a\n=======\nx\n>>>>>>> b\n".repeat(n);
        let file = FileChange {
            body: crate::diff::Body::between(
                Some(old.repeat(n).into_bytes()),
                Some(new.into_bytes()),
                crate::diff::Attribute::Unset,
            ),
            ..code::added(RepoPath::from("a.py"), Vec::new())
        };
        let times = (0..3).map(|_| {
            let mut out = Vec::new();
            let start = std::time::Instant::now();
            rules.scan(&file, Scope::All, &mut out);
            assert_eq!(
                out.len(),
                n.min(super::super::report::FINDINGS_MAX as usize)
            );
            start.elapsed()
        });
        times.min().unwrap()
    }
    let rules = RuleSet::new(&RulesPolicy::default(), &[]).unwrap();
    for old in ["", "=======\nx\n"] {
        let (few, many) = (spent(&rules, 2500, old), spent(&rules, 40_000, old));
        // There are 16 times as many markers. Linear work takes 16 times as long, quadratic work
        // 256 times.
        assert!(many < few * 80, "{few:?} {many:?}");
    }
}

#[test]
fn rules_are_shared_between_threads() {
    fn shared<T: Sync + Send>() {}
    shared::<RuleSet>();
}

#[test]
fn a_flaw_with_request_data_is_reported_once() {
    fn go(call: &str) -> String {
        format!(
            "package a\n\nfunc h(r *http.Request, host string) {{\n\texec.Command(\"sh\", \"-c\", \"ping \"+{call}).Run()\n}}\n"
        )
    }
    fn set(severities: &str) -> RuleSet {
        let policy = crate::policy::RulesPolicy {
            severity: severities
                .split_whitespace()
                .map(|id| (id.to_owned(), Severity::Suggestion))
                .collect(),
            ..RulesPolicy::default()
        };
        RuleSet::new(&policy, &[]).unwrap()
    }
    fn ids(rules: &RuleSet, path: &str, text: &str) -> Vec<String> {
        scan_with(rules, path, text.as_bytes())
            .iter()
            .map(|f| f.rule_id().to_owned())
            .collect()
    }
    assert_eq!(
        ids(&set(""), "a.go", &go("r.FormValue(\"host\")")),
        ["go-command-request"]
    );
    assert_eq!(
        ids(&set(""), "a.go", &go("host")),
        ["go-shell-interpolation"]
    );
    assert_eq!(
        ids(&set(""), "a.rb", "system(\"ping #{params[:host]} out\")\n"),
        ["ruby-command-request"]
    );
    // A rule of lower severity replaces nothing.
    let found = ids(
        &set("go-command-request"),
        "a.go",
        &go("r.FormValue(\"host\")"),
    );
    assert_eq!(found, ["go-shell-interpolation"]);
}

#[test]
fn the_profile_audit_adds_rules_and_raises_findings_of_unknown_origin() {
    use crate::finding::Confidence;
    use crate::policy::{RuleProfile, RulesPolicy};
    fn set(profile: RuleProfile, severity: &[(&str, Severity)]) -> RuleSet {
        let severity = severity
            .iter()
            .map(|(id, s)| ((*id).to_owned(), *s))
            .collect();
        RuleSet::new(
            &RulesPolicy {
                profile,
                severity,
                ..RulesPolicy::default()
            },
            &[],
        )
        .unwrap()
    }
    fn found(rules: &RuleSet, path: &str, text: &str) -> Vec<(String, Severity, Confidence)> {
        let found = scan_with(rules, path, text.as_bytes());
        found
            .iter()
            .map(|f| (f.rule_id().to_owned(), f.severity(), f.confidence()))
            .collect()
    }
    fn one(id: &str, severity: Severity) -> Vec<(String, Severity, Confidence)> {
        vec![(id.to_owned(), severity, Confidence::Medium)]
    }
    let (default, audit) = (set(RuleProfile::Default, &[]), set(RuleProfile::Audit, &[]));
    assert_ne!(default.hash(), audit.hash());
    assert_eq!(
        default.hash(),
        RuleSet::new(&RulesPolicy::default(), &[]).unwrap().hash()
    );

    let url = "URL = 'http://api.shop.com/'\n";
    assert_eq!(found(&default, "app/a.py", url), []);
    assert_eq!(
        found(&audit, "app/a.py", url),
        one("cleartext-url", Severity::Minor)
    );
    let major = set(RuleProfile::Audit, &[("cleartext-url", Severity::Major)]);
    assert_eq!(
        found(&major, "app/a.py", url),
        one("cleartext-url", Severity::Major)
    );

    let hash = "import hashlib\ndigest = hashlib.md5(data).hexdigest()\n";
    assert_eq!(
        found(&default, "app/a.py", hash),
        one("weak-hash-call", Severity::Suggestion)
    );
    assert_eq!(
        found(&audit, "app/a.py", hash),
        one("weak-hash-call", Severity::Minor)
    );
    let own = set(
        RuleProfile::Audit,
        &[("weak-hash-call", Severity::Suggestion)],
    );
    assert_eq!(
        found(&own, "app/a.py", hash),
        one("weak-hash-call", Severity::Suggestion)
    );

    // A value of unknown origin, on one line and followed through the function.
    let line = "package a\n\nfunc h(host string) {\n\texec.Command(\"sh\", \"-c\", \"ping \"+host).Run()\n}\n";
    let flow =
        "import os\n\ndef ping(host):\n    command = 'ping ' + host\n    os.system(command)\n";
    for (path, text) in [("app/a.go", line), ("app/a.py", flow)] {
        let [(id, severity, confidence)] = &found(&default, path, text)[..] else {
            panic!("{path}")
        };
        assert_eq!(*severity, Severity::Suggestion, "{id}");
        assert_ne!(*confidence, Confidence::High, "{id}");
        let raised = vec![(id.clone(), Severity::Minor, *confidence)];
        assert_eq!(found(&audit, path, text), raised, "the confidence stays");
    }
    let request = "import os\nfrom flask import request\n\ndef ping():\n    os.system('ping ' + request.args['host'])\n";
    assert_eq!(
        found(&audit, "app/a.py", request),
        found(&default, "app/a.py", request)
    );
}

/// Returns the severity of the finding of a rule in a new file, in the profile `audit`. Settings
/// that are written out have the weight of other weaknesses there.
fn severity_of(rule: &str, path: &str, text: &str) -> Option<Severity> {
    let policy = RulesPolicy {
        profile: RuleProfile::Audit,
        ..RulesPolicy::default()
    };
    let rules = RuleSet::new(&policy, &[]).unwrap();
    let found = scan_with(&rules, path, text.as_bytes());
    found
        .iter()
        .find(|f| f.rule_id() == rule)
        .map(Finding::severity)
}

#[test]
fn a_choice_of_the_settings_makes_a_finding_a_suggestion_and_a_comment_does_not() {
    const GO: &str = "cfg := &tls.Config{InsecureSkipVerify: true}";
    const PHP: &str = "curl_setopt($ch, CURLOPT_SSL_VERIFYPEER, false);";
    for (rule, path, text, expected) in [
        ("go-tls-verify-off", "a.go", format!("package a\n\nfunc f() {{\n\tif c.Insecure {{\n\t\t{GO}\n\t}}\n}}"), Severity::Suggestion),
        ("go-tls-verify-off", "a.go", format!("package a\n\nfunc f() {{\n\tif c.Insecure {{\n\t}}\n\t{GO}\n}}"), Severity::Major),
        ("go-tls-verify-off", "a.go", format!("package a\n\nfunc f() {{\n\t// if c.Insecure {{\n\t{GO}\n}}"), Severity::Major),
        ("go-tls-verify-off", "a.go", format!("package a\n\nfunc f() {{\n\tif c.Fast {{\n\t\t{GO}\n\t}}\n}}"), Severity::Major),
        ("go-tls-verify-off", "vendor/example.com/db/dsn.go", format!("package a\n\nfunc f() {{\n\t{GO}\n}}"), Severity::Suggestion),
        ("php-tls-verify-off", "a.php", format!("<?php\nif (!$this->verifyPeer) {{\n    {PHP}\n}}"), Severity::Suggestion),
        ("php-tls-verify-off", "a.php", format!("<?php\n/* if (insecure) */ {PHP}"), Severity::Major),
        ("js-tls-verify-off", "a.ts", "const t = url.get('rejectUnauthorized') === 'false'\n  ? { rejectUnauthorized: false }\n  : {};".to_owned(), Severity::Suggestion),
        ("python-tls-verify-off", "a.py", "import requests\nif insecure:\n    s.verify = False\n".to_owned(), Severity::Suggestion),
        ("python-tls-verify-off", "a.py", "import requests\nif insecure:\n    pass\ns.verify = False\n".to_owned(), Severity::Major),
    ] {
        assert_eq!(severity_of(rule, path, &text), Some(expected), "{path}: {text}");
    }
}

#[test]
fn passwords_of_developers_are_suggestions_and_tokens_of_an_issuer_are_not() {
    const IN_CONFIG: &str = "hardcoded-credential-in-config";
    let password = crate::rules::sample::expand("${password:16}", "of developers");
    let token = crate::rules::sample::expand("${alnum:36}", "of developers");
    for (path, text, expected) in [
        (
            "src/main/resources/application.yml",
            format!("  password: {password}"),
            Severity::Critical,
        ),
        (
            "src/main/resources/application-dev.yml",
            format!("  password: {password}"),
            Severity::Suggestion,
        ),
        (
            "deploy/.env.development",
            format!("DB_PASSWORD={password}"),
            Severity::Suggestion,
        ),
        (
            "deploy/app.properties",
            format!("db.password=${{DB_PASSWORD:{password}}}"),
            Severity::Suggestion,
        ),
        (
            "deploy/app.properties",
            format!("x=${{A}} db.password={password}"),
            Severity::Critical,
        ),
        (
            "deploy/shop.yml",
            "  - shop.jwt.secretKey=shop-e2e-jwt-secret-key-2024".to_owned(),
            Severity::Suggestion,
        ),
        (
            "deploy/shop.yml",
            format!("  - shop.jwt.secretKey={token}"),
            Severity::Critical,
        ),
    ] {
        assert_eq!(
            severity_of(IN_CONFIG, path, &text),
            Some(expected),
            "{path}: {text}"
        );
    }
}

#[test]
fn a_conflict_below_a_continued_command_is_reported_at_its_line() {
    let rules = RuleSet::new(&RulesPolicy::default(), &[]).unwrap();
    let text = "# Start\n\n```\ndocker run \\\n  -p 80:80 \\\n  shop\n```\n\n- a\n<<<<<<< HEAD\n- b\n=======\n- c\n>>>>>>> topic\n";
    let found = scan_with(&rules, "README.md", text.as_bytes());
    let lines: Vec<(u32, (u32, u32))> = found
        .iter()
        .filter(|f| f.rule_id() == "conflict-marker")
        .map(place)
        .collect();
    assert_eq!(lines.iter().map(|l| l.0).collect::<Vec<_>>(), [10]);
}
