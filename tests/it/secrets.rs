//! Tests of exposed secrets: which ones block, which ones do not, and that no report repeats one.
//!
//! All keys are assembled here from random parts, so that the sources contain none.

use crate::support::{Repo, files_below};
use base64::Engine as _;

/// Generates text over an alphabet, deterministic for a seed.
fn text(seed: u64, alphabet: &str, length: usize) -> String {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as usize
    };
    let alphabet = alphabet.as_bytes();
    (0..length)
        .map(|_| char::from(alphabet[next() % alphabet.len()]))
        .collect()
}

const ALNUM: &str = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

fn aws_key() -> String {
    format!("AKIAY{}", text(3, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", 15))
}

/// Returns a token with GitHub's checksum: CRC-32 in six base-62 digits.
fn github_token() -> String {
    let body = text(5, ALNUM, 30);
    let mut sum = crc32fast::hash(body.as_bytes()) as usize;
    let mut digits = [0u8; 6];
    for d in digits.iter_mut().rev() {
        *d = ALNUM.as_bytes()[sum % 62];
        sum /= 62;
    }
    format!("ghp_{body}{}", String::from_utf8_lossy(&digits))
}

fn anthropic_key() -> String {
    format!("sk-ant-api03-{}AA", text(7, ALNUM, 93))
}

fn pem_body() -> Vec<String> {
    (0..4).map(|i| text(11 + i, ALNUM, 64)).collect()
}

fn pem() -> String {
    let kind = "RSA PRIVATE KEY";
    format!(
        "-----BEGIN {kind}-----\n{}\n-----END {kind}-----\n",
        pem_body().join("\n")
    )
}

fn password() -> String {
    format!(
        "k{}7",
        text(
            13,
            "abcdefghkmnpqrstuvwxyzABCDEFGHKMNPQRSTUVWXYZ23456789",
            14
        )
    )
}

/// Reviews one added file and returns the rules with findings.
#[track_caller]
fn rules_on(path: &str, content: &str, code: i32) -> Vec<String> {
    let repo = Repo::new();
    repo.stage("seed.txt", "seed\n").commit("seed");
    let report = repo
        .stage(path, content)
        .review_json(&["staged", "--offline", "--no-save"], code);
    let findings = report["findings"].as_array().unwrap();
    findings
        .iter()
        .map(|f| f["rule_id"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn sec_01_an_added_key_blocks_offline() {
    for (path, line, rule) in [
        (
            "src/aws.py",
            format!("key = \"{}\"\n", aws_key()),
            "aws-access-key-id",
        ),
        (
            "deploy.sh",
            format!("export GITHUB_TOKEN={}\n", github_token()),
            "github-personal-token",
        ),
        (
            ".env",
            format!("ANTHROPIC_API_KEY={}\n", anthropic_key()),
            "anthropic-api-key",
        ),
        ("keys/server.key", pem(), "private-key"),
    ] {
        let repo = Repo::new();
        repo.stage("seed.txt", "seed\n").commit("seed");
        let report = repo
            .stage(path, &line)
            .review_json(&["staged", "--offline", "--no-save"], 1);
        let finding = report["findings"]
            .as_array()
            .unwrap()
            .iter()
            .find(|f| f["rule_id"] == rule);
        let finding = finding.unwrap_or_else(|| panic!("{rule} is silent: {report:#}"));
        assert_eq!(finding["severity"], "critical", "{rule}");
        assert_eq!(finding["blocking"], true, "{rule}");
        assert_eq!(finding["line"], 1, "{rule}");
        assert_eq!(report["verdict"], "block");
    }
}

#[test]
fn sec_01_the_same_change_without_the_key_passes() {
    assert_eq!(
        rules_on("src/aws.py", "key = os.environ[\"AWS_ACCESS_KEY_ID\"]\n", 0),
        [""; 0]
    );
}

#[test]
fn sec_01_a_removed_key_does_not_block() {
    let repo = Repo::new();
    repo.stage("src/aws.py", format!("key = \"{}\"\n", aws_key()))
        .commit("seed");
    let report = repo
        .stage("src/aws.py", "key = None\n")
        .review_json(&["staged", "--offline", "--no-save"], 0);
    assert_eq!(report["findings"].as_array().unwrap().len(), 0);
}

#[test]
fn sec_05_references_to_secrets_are_not_flagged() {
    for (path, content) in [
        (
            "src/a.ts",
            "const token = process.env.GITHUB_TOKEN;\nconst pw = `${TOKEN}`;\nconst apiKey = config.get('api.key');\n",
        ),
        (
            "a.go",
            "package a\nvar token = os.Getenv(\"GITHUB_TOKEN\")\nvar secret = viper.GetString(\"auth.jwt.secret2\")\n",
        ),
        (
            "a.py",
            "password = os.environ[\"DB_PASSWORD\"]\nAPI_KEY = getenv('API_KEY', '')\nsecret_key = settings.SECRET_KEY\n",
        ),
        (
            "a.rb",
            "config.secret_key_base = ENV.fetch('SECRET_KEY_BASE')\npassword: Rails.application.credentials.db_password\n",
        ),
        (
            "A.java",
            "@Value(\"${app.jwt.secret}\") String jwtSecret;\nString password = System.getenv(\"DB_PASSWORD\");\n",
        ),
        (
            "docker-compose.yml",
            "environment:\n  - DB_PASSWORD=${DB_PASSWORD:?set it}\n  - API_TOKEN_FILE=/run/secrets/api_token\n",
        ),
        (
            ".github/workflows/ci.yml",
            "env:\n  TOKEN: ${{ secrets.GITHUB_TOKEN }}\n",
        ),
        (
            "main.tf",
            "password = var.db_password\ntoken    = data.vault_generic_secret.api.data[\"token\"]\n",
        ),
        (
            "run.sh",
            "curl -H \"Authorization: Bearer $TOKEN\" -u \"$USER:$PASSWORD\" https://api.corp.net\n",
        ),
        (
            "k8s/deploy.yaml",
            "env:\n- name: DB_PASSWORD\n  valueFrom:\n    secretKeyRef: {name: db-credentials-2024, key: password}\n",
        ),
    ] {
        assert_eq!(rules_on(path, content, 0), [""; 0], "{path}");
    }
}

#[test]
fn what_only_looks_like_a_secret_is_not_flagged() {
    let hex = |seed, n| text(seed, "0123456789abcdef", n);
    for (path, content) in [
        (".env.example", format!("DB_PASSWORD={}\nAPI_KEY=your-api-key\n", password())),
        ("package-lock.json", format!("\"integrity\": \"sha512-{}==\",\n", text(21, ALNUM, 86))),
        ("go.sum", format!("corp.net/x v1.0.0 h1:{}=\n", text(22, ALNUM, 43))),
        ("src/a.py", format!("COMMIT = \"{}\"\nsha256 = \"{}\"\n", hex(23, 40), hex(24, 64))),
        ("src/b.py", "request_id = \"3f2b8c1e-9a4d-4e7b-8c6f-1d2e3f4a5b6c\"\n".to_owned()),
        ("src/c.ts", "const labels = { password: 'Password', token: 'Access token', secret: 'Client secret' };\n".to_owned()),
        ("src/d.ts", "type Login = { password: string; token?: string };\nconst tokenUrl = 'https://id.corp.net/oauth2/token';\n".to_owned()),
        ("cert.pem", format!("-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n", pem_body().join("\n"))),
        ("id.pub", format!("ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABAQ{} me@corp\n", text(25, ALNUM, 300))),
        ("src/e.py", format!("GITHUB_TOKEN = \"ghp_{}\"\n", text(26, ALNUM, 36))),
        ("docs/use.md", "export AWS_ACCESS_KEY_ID=AKIAXXXXXXXXXXXXXXXX\ncurl -u user:password https://api.corp.net\n".to_owned()),
        ("tests/test_login.py", format!("def test_login():\n    login(password=\"{}\")\n", password())),
        ("src/f.css", "#password-field-a1b2c3d4 { color: #ff00aa; }\n".to_owned()),
    ] {
        assert_eq!(rules_on(path, &content, 0), [""; 0], "{path}");
    }
}

#[test]
fn a_secret_that_two_rules_see_is_one_finding() {
    let line = format!("github_token = \"{}\"\n", github_token());
    assert_eq!(rules_on("src/a.py", &line, 1), ["github-personal-token"]);
}

#[test]
fn sec_08_no_report_repeats_a_secret() {
    let (aws, github, password, basic) =
        (aws_key(), github_token(), password(), "deploy:gT7mQ2xVb9");
    let basic = base64::engine::general_purpose::STANDARD.encode(basic);
    let content = format!(
        "# settings\nkey = \"{aws}\"\ntoken = \"{github}\"; other = \"{aws}\"\ndb = \"postgres://app:{password}@db.corp.net/app\"\n\
         auth = \"Authorization: Basic {basic}\"\ndb_password = \"{password}\"\n"
    );
    let repo = Repo::new();
    repo.stage("seed.txt", "seed\n").commit("seed");
    repo.stage("src/settings.py", &content)
        .stage("keys/server.key", pem());
    let named = text(17, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", 15);
    repo.stage(
        &format!("dump/AKIAZ{named}.py"),
        "import os\nos.system(\"rm \" + input())\n",
    );
    let mut secrets = vec![aws, github, password, basic];
    secrets.extend(pem_body());
    for format in ["human", "json", "sarif"] {
        let run = repo.review(&["staged", "--offline", "--format", format], 1);
        for secret in &secrets {
            // The first characters may stay: they identify the kind.
            let tail = &secret[8..];
            assert!(
                !run.stdout.contains(tail),
                "{format} shows {secret}\n{}",
                run.stdout
            );
            assert!(
                !run.stderr.contains(tail),
                "stderr of {format} shows {secret}\n{}",
                run.stderr
            );
        }
    }
    // A report names the file so that a user can find it; stored files do not.
    secrets.push(format!("AKIAZ{named}"));
    let stored = files_below(&repo.path().join(".reviews"));
    assert!(!stored.is_empty());
    for file in stored {
        let stored = std::fs::read_to_string(&file).unwrap();
        for secret in &secrets {
            assert!(
                !stored.contains(&secret[8..]),
                "{} holds {secret}",
                file.display()
            );
        }
    }
}

#[test]
fn sec_08_a_file_whose_name_holds_a_key_is_the_same_file_in_the_next_round() {
    let repo = Repo::new();
    repo.stage("seed.txt", "seed\n").commit("seed");
    let (key, flaw) = (aws_key(), "import os\nos.system(\"rm \" + input())\n");
    let path = format!("dump/{key}.py");
    repo.stage(&path, flaw).review(&["staged"], 1);
    repo.stage(&path, format!("x = 1\n{flaw}"))
        .review(&["--follow-up", "latest"], 1);
    let session = |repo: &Repo| -> serde_json::Value {
        serde_json::from_str(
            &repo
                .reviewer(&["history", "latest", "--format", "json"])
                .run(0)
                .stdout,
        )
        .unwrap()
    };
    let since = &session(&repo)["rounds"][1]["review"]["since"];
    let (still, moved) = (
        since["still_there"].as_u64().unwrap(),
        since["moved"].as_u64().unwrap(),
    );
    assert!(
        still + moved > 0 && since["fixed"] == 0 && since["unchecked"] == 0,
        "{since:#}"
    );
    repo.stage(&path, "x = 1\n")
        .review(&["--follow-up", "latest"], 0);
    let since = &session(&repo)["rounds"][2]["review"]["since"];
    assert!(
        since["fixed"].as_u64().unwrap() > 0 && since["unchecked"] == 0,
        "{since:#}"
    );
    for file in files_below(&repo.path().join(".reviews")) {
        let stored = std::fs::read(&file).unwrap();
        assert!(
            !String::from_utf8_lossy(&stored).contains(&key[8..]),
            "{} holds {key}",
            file.display()
        );
        if file.ends_with("changes.diff") {
            assert_eq!(
                claude_reviewer::diff::patch::parse(&stored).unwrap().len(),
                1
            );
        }
    }
    repo.reviewer(&["history", "verify"]).run(0);
}

#[test]
fn sec_08_what_a_follow_up_would_repeat_is_not_stored_with_a_key_in_it() {
    let repo = Repo::new();
    repo.stage("seed.txt", "seed\n").commit("seed");
    repo.stage("a.py", "x = 1\n");
    let key = aws_key();
    // The pattern also matches a file, because one without a match would be rejected earlier.
    let glob = format!("{{{key}*,a.py}}");
    let run = repo.review(&["staged", "--files", &glob, "--files", "a.py"], 2);
    assert!(
        run.stderr.contains("a pattern of files") && run.stderr.contains("secret"),
        "{}",
        run.stderr
    );
    assert!(
        run.stderr.contains("--no-save") && !run.stderr.contains(&key[8..]),
        "{}",
        run.stderr
    );
    repo.git(&["branch", &key]);
    let run = repo.review(&["commit", &key], 2);
    assert!(
        run.stderr.contains("revision") && !run.stderr.contains(&key[8..]),
        "{}",
        run.stderr
    );
    for file in files_below(&repo.path().join(".reviews")) {
        let stored = std::fs::read_to_string(&file).unwrap();
        assert!(
            !stored.contains(&key[8..]),
            "{} holds {key}",
            file.display()
        );
    }
    repo.review(
        &["staged", "--no-save", "--files", &glob, "--files", "a.py"],
        0,
    );
    // The name of the checked-out branch is not an argument of the user.
    repo.git(&["checkout", "-q", "-b", &format!("work-{key}")]);
    repo.review(&["staged"], 0);
    for file in files_below(&repo.path().join(".reviews")) {
        let stored = std::fs::read_to_string(&file).unwrap();
        assert!(
            !stored.contains(&key[8..]),
            "{} holds {key}",
            file.display()
        );
    }
}

#[test]
fn sec_08_the_store_holds_no_secret_whoever_said_it() {
    let (removed, context, said, answered, noted) = (
        aws_key(),
        github_token(),
        anthropic_key(),
        password(),
        pem(),
    );
    let repo = Repo::new();
    repo.stage(
        "a.py",
        format!("old = \"{removed}\"\ntoken = \"{context}\"\nx = 1\n"),
    )
    .commit("seed");
    let env = format!("PLAIN_WORDS={}\n", text(11, ALNUM, 12));
    let flaw = "import os\nos.system(\"rm \" + input())\n";
    let named = format!("AKIAZ{}", text(19, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", 15));
    repo.stage("a.py", format!("token = \"{context}\"\nx = 2\n{flaw}"))
        .stage(".env", &env);
    repo.stage(&format!("{named}/b.py"), flaw)
        .stage(&format!("{named}.bin"), "\0\x01\0");
    repo.review(&["staged", "--files", &named, "--files", "*.py"], 2);
    repo.review(&["staged", "--summary", &format!("the key is {said}")], 1);
    let answer = format!("### Explanations\n- F1: db_password = \"{answered}\"\n");
    repo.reviewer(&["review", "--follow-up", "latest", "--response", "-"])
        .stdin(answer)
        .run(1);
    repo.reviewer(&[
        "complete",
        "latest",
        "--status",
        "abandoned",
        "--notes",
        &format!("it was {noted}"),
    ])
    .run(0);
    let files = files_below(&repo.path().join(".reviews"));
    assert!(
        files.iter().any(|f| f.ends_with("round-1/response.json")),
        "{files:?}"
    );
    let mut secrets = vec![
        removed,
        context,
        said,
        answered,
        env.trim().to_owned(),
        named,
    ];
    secrets.extend(pem_body());
    for file in files {
        let stored = std::fs::read_to_string(&file).unwrap();
        for secret in &secrets {
            assert!(
                !stored.contains(&secret[8..]),
                "{} holds {secret}\n{stored}",
                file.display()
            );
        }
    }
}

#[test]
fn sec_08_fingerprints_do_not_depend_on_the_secret() {
    let fingerprint = |password: &str| {
        let repo = Repo::new();
        repo.stage("seed.txt", "seed\n").commit("seed");
        repo.stage("a.py", format!("db_password = \"{password}\"\n"));
        let report = repo.review_json(&["staged", "--offline", "--no-save"], 1);
        report["findings"][0]["fingerprint"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    let (one, two) = (
        format!("kx{}7", &password()[..9]),
        format!("qz{}4", &password()[3..12]),
    );
    assert_eq!(fingerprint(&one), fingerprint(&two));
}

#[test]
fn what_a_key_service_encrypted_is_no_secret_and_the_same_name_with_a_token_is_one() {
    let block = "steps:\n- name: gcr.io/cloud-builders/npm\n  secretEnv: ['NPM_TOKEN']\nsecrets:\n- kmsKeyName: projects/p/locations/global/keyRings/r/cryptoKeys/k\n  secretEnv:\n    NPM_TOKEN: ";
    let sealed = [
        b"\x0a\x24\x00".to_vec(),
        text(21, ALNUM, 35).into(),
        vec![0x12, 52],
        text(22, ALNUM, 52).into(),
    ];
    let sealed = base64::engine::general_purpose::STANDARD.encode(sealed.concat());
    assert_eq!(
        rules_on("cloudbuild.yaml", &format!("{block}{sealed}\n"), 0),
        [""; 0]
    );
    for token in [
        text(23, ALNUM, 40),
        github_token(),
        format!("CiQA{}", text(24, ALNUM, 116)),
    ] {
        assert_ne!(
            rules_on("cloudbuild.yaml", &format!("{block}{token}\n"), 1),
            [""; 0],
            "{token}"
        );
    }
}

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
