//! Secrets that leave: nothing of them is in a request, a report, the history, the terminal or a log.

use crate::loopback::{Request, Server};
use crate::support::Repo;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use std::path::{Path, PathBuf};

const ALNUM: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
const FORMATS: [&str; 11] =
    ["human", "json", "sarif", "github", "summary", "markdown", "gitlab", "rdjson", "junit", "dotenv", "html"];

/// Makes a text of random signs, the same for the same seed.
fn text(seed: u64, signs: &str, count: usize) -> String {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        char::from(signs.as_bytes()[(state >> 33) as usize % signs.len()])
    };
    (0..count).map(|_| next()).collect()
}

fn files_below(dir: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(dir) else { return Vec::new() };
    let mut out = Vec::new();
    for path in entries.map(|e| e.unwrap().path()) {
        if path.is_dir() { out.extend(files_below(&path)) } else { out.push(path) }
    }
    out
}

/// No eight characters in a row of a secret, past its public prefix, are in a text.
#[track_caller]
fn assert_gone(shown: &str, secrets: &[String], what: &str) {
    for secret in secrets {
        for at in 4..=secret.len() - 8 {
            let part = &secret[at..at + 8];
            assert!(!shown.contains(part), "{what} holds {part:?} of {secret}");
        }
    }
}

#[test]
fn lek_01_lek_02_no_secret_leaves_in_any_way() {
    let server = Server::start(|r: &Request| r.review(&[]));
    let repo = Repo::new();
    repo.stage("README.md", "# Sample\n");
    let key = |seed| format!("AKI{}{}", "AY", text(seed, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", 15));
    let halves: Vec<String> = (0..6).map(|i| text(40 + i, ALNUM, 40)).collect();
    let jwt = {
        let head = URL_SAFE_NO_PAD.encode(r#"{"alg":"HS256","typ":"JWT"}"#);
        let claims = URL_SAFE_NO_PAD.encode(r#"{"sub":"1234567890","n":"x"}"#);
        format!("{head}.{claims}.{}", text(2, ALNUM, 43))
    };
    let telegram = format!("{}:AA{}", text(3, "123456789", 10), text(4, ALNUM, 33));
    let data = STANDARD.encode(text(5, ALNUM, 21));
    let joined = text(6, ALNUM, 36);
    let header = text(7, "0123456789abcdef", 32);
    let password = "Winter2024!xyz".to_owned();
    let named = key(8);
    let java =
        format!("class A {{\n  Object c = new BasicAWSCredentials(\"{}\",\n      \"{}\");\n}}\n", key(11), halves[0]);
    repo.stage("src/old.py", format!("k = ('{}', '{}')\nx = 1\ny = 2\n", key(12), halves[1])).commit("first");
    repo.write(".git/info/exclude", ".claude-reviewer.toml\n");
    repo.write(".claude-reviewer.toml", server.policy("openai"));
    repo.stage("src/A.java", java);
    repo.stage("src/old.py", "x = 1\ny = 3\n");
    repo.stage("aws/keys.csv", format!("Access key ID,Secret access key\n{},{}\n", key(13), halves[2]));
    repo.stage("src/b.go", format!("package b\n\nvar k = New(\"{}:{}\")\n", key(14), halves[3]));
    repo.stage("CLAUDE.md", format!("# Style\n\nUse {} and\n{}\n", key(15), halves[4]));
    repo.stage("src/t.js", format!("const a = \"{jwt}\";\nfetch(\"https://api.telegram.org/bot{telegram}/x\");\n"));
    repo.stage("k8s/s.yaml", format!("kind: Secret\ndata:\n  config: {data}\n"));
    repo.stage("src/j.py", format!("t = (\"gh\" + \"p_{}\"\n     \"{}\")\n", &joined[..18], &joined[18..]));
    repo.stage("src/h.sh", format!("curl -H 'Authorization: Api-Token {header}' x\n"));
    repo.stage("src/u.rb", format!("u = 'mysql://root:{password}@mysql.prod.example/db'\n"));
    repo.stage(&format!("dump/{named}.py"), "import os\nos.system(\"rm \" + input())\n");
    let summary = format!("uses {} with {}", key(16), halves[5]);
    let parts = [joined[..18].to_owned(), joined[18..].to_owned()];
    let mut secrets = vec![jwt, telegram, data, header, password, named];
    secrets.extend(parts);
    secrets.extend(halves);
    let out = repo.outside();
    std::fs::create_dir_all(&out).unwrap();
    let reports: Vec<String> = FORMATS.map(|f| format!("{f}={}", out.join(f).display())).to_vec();
    let mut args = vec!["-vvv", "review", "staged", "--summary", &summary];
    reports.iter().for_each(|r| args.extend(["--report", r]));
    let run = repo.reviewer(&args).env("OPENAI_API_KEY", format!("sk-{}", "0".repeat(20))).run(1);
    assert!(!server.questions().is_empty(), "{}", run.stderr);
    for request in server.requests() {
        assert_gone(&String::from_utf8_lossy(&request.body), &secrets, "the request");
    }
    assert_gone(&run.stdout, &secrets, "standard output");
    assert_gone(&run.stderr, &secrets, "standard error");
    let stored = files_below(&repo.path().join(".reviews"));
    assert!(stored.iter().any(|f| f.ends_with("changes.diff")), "{stored:?}");
    let beside = [repo.home().join(".cache"), out].into_iter().flat_map(|d| files_below(&d));
    for file in stored.into_iter().chain(beside) {
        let shown = std::fs::read(&file).unwrap();
        assert_gone(&String::from_utf8_lossy(&shown), &secrets, &file.display().to_string());
    }
}
