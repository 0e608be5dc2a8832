//! Which values are secrets: by what stands beside them, by their name and form, and by being a
//! placeholder as a whole.

use super::{ALNUM, github_token, password, text};
use crate::support::Repo;
use base64::Engine as _;

/// Reviews added files in gate mode; returns the rules of each file's findings, with their lines.
#[track_caller]
fn found_in(
    files: &[(String, String)],
    code: i32,
) -> std::collections::BTreeMap<String, Vec<(String, u64)>> {
    let repo = Repo::new();
    repo.stage("README.md", "seed\n").commit("seed");
    repo.git(&["checkout", "-q", "-b", "t"]);
    files.iter().for_each(|(path, content)| {
        repo.stage(path, content);
    });
    repo.commit("change");
    let report = repo.review_json(
        &["branch", "t", "--base", "main", "--gate", "--no-save"],
        code,
    );
    let mut out = std::collections::BTreeMap::new();
    for finding in report["findings"].as_array().unwrap() {
        let place = (
            finding["rule_id"].as_str().unwrap().to_owned(),
            finding["line"].as_u64().unwrap_or(0),
        );
        out.entry(finding["file"].as_str().unwrap().to_owned())
            .or_insert_with(Vec::new)
            .push(place);
    }
    out
}

fn web_token(claims: &str) -> String {
    let encode = |text: &str| base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(text);
    format!(
        "{}.{}.{}",
        encode(r#"{"alg":"HS256","typ":"JWT"}"#),
        encode(claims),
        text(31, ALNUM, 43)
    )
}

fn access_key_id(seed: u64) -> String {
    format!(
        "{}{}",
        "AKIAY",
        text(seed, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", 15)
    )
}

#[test]
fn lek_01_the_secret_half_beside_an_access_key_id_is_reported_on_its_line() {
    let half = |seed| text(seed, ALNUM, 40);
    let cases = [
        (
            "src/A.java",
            format!("f(\"{}\",\n  \"{}\");\n", access_key_id(1), half(41)),
            2,
        ),
        (
            "src/b.go",
            format!("var k = New(\"{}:{}\")\n", access_key_id(2), half(42)),
            1,
        ),
        (
            "keys.csv",
            format!(
                "Access key ID,Secret access key\n{},{}\n",
                access_key_id(3),
                half(43)
            ),
            2,
        ),
        (
            ".s3cfg",
            format!(
                "[default]\nid = {}\nx = 1\ny = 2\nz = {}\n",
                access_key_id(4),
                half(44)
            ),
            5,
        ),
        (
            "up.txt",
            format!("{}\n\n\n{}\n", half(45), access_key_id(5)),
            1,
        ),
    ];
    let files: Vec<_> = cases
        .iter()
        .map(|(path, content, _)| ((*path).to_owned(), content.clone()))
        .collect();
    let found = found_in(&files, 1);
    for (path, content, line) in &cases {
        let place = ("aws-secret-beside-key-id".to_owned(), *line);
        assert!(
            found.get(*path).is_some_and(|f| f.contains(&place)),
            "{path}: {:?}\n{content}",
            found.get(*path)
        );
    }
    let far = format!("id = {}\n1\n2\n3\nz = {}\n", access_key_id(6), half(46));
    let commit = format!(
        "id = {}\nrev = {}\n",
        access_key_id(7),
        text(47, "0123456789abcdef", 40)
    );
    let found = found_in(
        &[
            ("far.txt".to_owned(), far),
            ("commit.txt".to_owned(), commit),
        ],
        1,
    );
    assert!(
        found
            .values()
            .flatten()
            .all(|(rule, _)| rule == "aws-access-key-id"),
        "{found:?}"
    );
}

#[test]
fn lek_02_secrets_under_no_telling_name_are_reported() {
    let hex = text(51, "0123456789abcdef", 32);
    let uuid = format!(
        "{}-{}-4{}-9{}-{}",
        &hex[..8],
        &hex[8..12],
        &hex[12..15],
        &hex[15..18],
        &hex[18..30]
    );
    let digits = text(52, "123456789", 10);
    let encode = |text: &str| base64::engine::general_purpose::STANDARD.encode(text);
    let secret =
        |data: &str| format!("apiVersion: v1\nkind: Secret\nmetadata:\n  name: x\n{data}\n");
    let id = base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(text(53, "123456789", 18));
    let discord = format!("{id}.{}.{}", text(54, ALNUM, 6), text(55, ALNUM, 38));
    let cases = [
        (
            "jwt1.py",
            format!(
                "t = '{}'\n",
                web_token(r#"{"sub":"8c1f","iat":1700000000}"#)
            ),
            "json-web-token",
        ),
        (
            "jwt2.js",
            format!(
                "f('{}')\n",
                web_token(r#"{"user":"kowalski","admin":true}"#)
            ),
            "json-web-token",
        ),
        (
            "bot.js",
            format!(
                "fetch('https://api.telegram.org/bot{digits}:AA{}/x')\n",
                text(56, ALNUM, 33)
            ),
            "telegram-bot-address",
        ),
        (
            "k8s/a.yaml",
            secret(&format!(
                "data:\n  config: {}",
                encode(&text(57, ALNUM, 21))
            )),
            "kubernetes-secret-data",
        ),
        (
            "k8s/b.yaml",
            secret(&format!("stringData:\n  value: {}", text(58, ALNUM, 30))),
            "kubernetes-secret-data",
        ),
        (
            "k8s/c.yaml",
            format!(
                "\u{feff}{}",
                secret(&format!("data:\n  x: {}", encode(&text(59, ALNUM, 21))))
            ),
            "kubernetes-secret-data",
        ),
        (
            "a.sh",
            format!("curl -H 'Authorization: Api-Token {hex}' x\n"),
            "authorization-header",
        ),
        (
            "b.sh",
            format!("curl -H 'Token: {}' x\n", text(60, ALNUM, 32)),
            "hardcoded-credential-in-config",
        ),
        (
            "c.http",
            format!("Authorization: GenieKey {uuid}\n"),
            "authorization-header",
        ),
        (
            "NuGet.Config",
            format!(
                "<add key=\"ClearTextPassword\" value=\"{}\" />\n",
                password()
            ),
            "credential-in-xml",
        ),
        (
            "o.js",
            format!("const opsgenieKey = '{uuid}';\n"),
            "vendor-uuid-key",
        ),
        (
            "h.py",
            format!("HEROKU_API_KEY = '{uuid}'\n"),
            "heroku-api-key",
        ),
        (
            "d.py",
            format!("client.run('{discord}')\n"),
            "discord-bot-token",
        ),
        (
            "j.py",
            format!("k = 'AKIA' + '{}'\n", &access_key_id(8)[4..]),
            "aws-access-key-id",
        ),
        (
            "j.js",
            format!("const k = 'AKIA' +\n  '{}';\n", &access_key_id(9)[4..]),
            "aws-access-key-id",
        ),
        (
            "j.rb",
            format!("k = 'gh' \\\n  '{}'\n", &github_token()[2..]),
            "github-personal-token",
        ),
    ];
    let files: Vec<_> = cases
        .iter()
        .map(|(path, content, _)| ((*path).to_owned(), content.clone()))
        .collect();
    let found = found_in(&files, 1);
    for (path, content, rule) in &cases {
        let rules: Vec<_> = found
            .get(*path)
            .into_iter()
            .flatten()
            .map(|(rule, _)| rule.as_str())
            .collect();
        assert_eq!(rules, [*rule], "{path}: {content}");
    }
}

#[test]
fn what_manuals_show_and_what_names_no_secret_is_not_reported() {
    let hex = text(61, "0123456789abcdef", 32);
    let uuid = format!(
        "{}-{}-4{}-9{}-{}",
        &hex[..8],
        &hex[8..12],
        &hex[12..15],
        &hex[15..18],
        &hex[18..30]
    );
    let secret =
        |data: &str| format!("apiVersion: v1\nkind: Secret\nmetadata:\n  name: x\n{data}\n");
    let files = [
        (
            "jwt1.js",
            format!(
                "f('{}')\n",
                web_token(r#"{"sub":"1234567890","name":"John Doe","iat":1516239022}"#)
            ),
        ),
        (
            "jwt2.js",
            format!(
                "f('{}')\n",
                web_token(r#"{"iss":"supabase","role":"anon","exp":1983812996}"#)
            ),
        ),
        (
            "jwt3.js",
            format!("f('{}')\n", web_token(r#"{"foo":"bar","iat":1437018582}"#)),
        ),
        (
            "tests/jwt4.js",
            format!("f('{}')\n", web_token(r#"{"sub":"8c1f"}"#)),
        ),
        (
            "docs/jwt5.md",
            format!("    {}\n", web_token(r#"{"sub":"8c1f"}"#)),
        ),
        (
            "k8s/a.yaml",
            secret("data:\n  user: YWRtaW4=\n  host: ZGIuY29ycC5uZXQ=\n  value: Y2hhbmdlbWU="),
        ),
        (
            "k8s/b.yaml",
            secret(
                "stringData:\n  url: https://id.corp.net\n  region: eu-west-1\n  user: analytics01",
            ),
        ),
        (
            "k8s/c.yaml",
            secret("data:\n  a: {{ .Values.a | b64enc }}\n  b: ${B}"),
        ),
        (
            "bot.js",
            "fetch(`https://api.telegram.org/bot${token}/getMe`)\n".to_owned(),
        ),
        (
            "ids.yml",
            format!("opsgenie_team_id: {uuid}\nrequest_id: {uuid}\n"),
        ),
        (
            "tests/join.py",
            format!("k = 'AKIA' + '{}'\n", &access_key_id(10)[4..]),
        ),
    ];
    let files: Vec<_> = files
        .into_iter()
        .map(|(path, content)| (path.to_owned(), content))
        .collect();
    let found = found_in(&files, 0);
    assert!(found.is_empty(), "{found:?}");
}

#[test]
fn a_password_is_cleared_only_by_being_a_placeholder_as_a_whole() {
    let live = [
        "mySecret789",
        "Default#2019!",
        "Changeme-prod-8812",
        "exampleKey#77x",
        "Sample#2291",
        "Winter2024!x",
    ];
    let dead = [
        "changeme",
        "your-password-here",
        "<password>",
        "xxxxxx",
        "test",
        "example123",
        "secret123",
        "********",
    ];
    let files = |values: &[&str]| -> Vec<(String, String)> {
        let code = values
            .iter()
            .enumerate()
            .map(|(i, v)| (format!("src/c{i}.py"), format!("password = \"{v}\"\n")));
        let conf = values
            .iter()
            .enumerate()
            .map(|(i, v)| (format!("conf/c{i}.yml"), format!("password: {v}\n")));
        code.chain(conf).collect()
    };
    let found = found_in(&files(&live), 1);
    assert_eq!(found.len(), 2 * live.len(), "{found:?}");
    let found = found_in(&files(&dead), 0);
    assert!(found.is_empty(), "{found:?}");
}

#[test]
fn a_host_is_local_only_by_its_whole_name() {
    let files = |hosts: &[&str]| -> Vec<(String, String)> {
        let line = |host: &&str| format!("u = 'mysql://root:Winter2024!x@{host}/db'\n");
        hosts
            .iter()
            .enumerate()
            .map(|(i, host)| (format!("src/u{i}.rb"), line(host)))
            .collect()
    };
    let outside = [
        "mysql.prod.example",
        "mydb.corp.net",
        "mysqlprod",
        "host.corp.net",
        "db.svc.cluster.local",
    ];
    let found = found_in(&files(&outside), 1);
    assert_eq!(found.len(), outside.len(), "{found:?}");
    let near = [
        "localhost",
        "127.0.0.1",
        "[::1]:3306",
        "db",
        "my-postgres:5432",
        "host.docker.internal",
        "db.example.com",
    ];
    let found = found_in(&files(&near), 0);
    assert!(found.is_empty(), "{found:?}");
}
