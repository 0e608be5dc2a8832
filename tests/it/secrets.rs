//! Tests of exposed secrets: which ones block, which ones do not, and that no report repeats one.
//!
//! All keys are assembled here from random parts, so that the sources contain none.

mod values;

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
