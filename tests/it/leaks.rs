//! Tests that secrets never leave: no part of them is in a request, a report, the history, the
//! terminal or a log.

use crate::loopback::{Request, Server};
use crate::mcp::client::{Client, text as shown_by};
use crate::support::{Repo, Run, files_below};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use claude_reviewer::ai::tools::Session;
use claude_reviewer::ai::tree::Tree;
use claude_reviewer::env::Env;
use claude_reviewer::git;
use claude_reviewer::policy::RulesPolicy;
use claude_reviewer::rules::RuleSet;
use serde_json::json;

const ALNUM: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
const FORMATS: [&str; 12] = [
    "human", "json", "jsonl", "sarif", "github", "summary", "markdown", "gitlab", "rdjson",
    "junit", "dotenv", "html",
];

/// Generates a text of random characters, deterministic for a seed.
fn text(seed: u64, signs: &str, count: usize) -> String {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut next = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        char::from(signs.as_bytes()[(state >> 33) as usize % signs.len()])
    };
    (0..count).map(|_| next()).collect()
}

/// A file with secrets.
struct Leak {
    path: String,
    content: String,
    secrets: Vec<String>,
}

impl Leak {
    fn new(path: &str, content: impl Into<String>, secrets: &[&str]) -> Self {
        Self {
            path: path.to_owned(),
            content: content.into(),
            secrets: secrets.iter().map(|s| (*s).to_owned()).collect(),
        }
    }
}

/// Checks that no eight consecutive characters of a secret, past its public prefix, are in a text.
#[track_caller]
fn assert_gone(shown: &str, leaks: &[Leak], what: &str) {
    for Leak {
        path,
        content,
        secrets,
    } in leaks
    {
        for secret in secrets {
            let start = if secret.len() > 16 { 4 } else { 0 };
            for at in start..=secret.len() - 8 {
                let part = &secret[at..at + 8];
                assert!(
                    !shown.contains(part),
                    "{what} holds {part:?} of {secret} in {path}:\n{content}"
                );
            }
        }
    }
}

#[track_caller]
fn assert_run_is_clean(run: &Run, leaks: &[Leak], what: &str) {
    assert_gone(&run.stdout, leaks, &format!("standard output of {what}"));
    assert_gone(&run.stderr, leaks, &format!("standard error of {what}"));
}

/// Commits the files to a branch `t`: as added files, and as files of the base with another changed
/// line. Their contents are also in a document of the project and in the commit message.
fn repository(leaks: &[Leak]) -> Repo {
    let repo = Repo::new();
    repo.stage("README.md", "# Sample\n");
    for Leak { path, content, .. } in leaks {
        repo.stage(&format!("was/{path}"), format!("{content}\n\nlast = 1\n"));
    }
    let all: Vec<&str> = leaks.iter().map(|l| l.content.as_str()).collect();
    repo.stage(
        "CLAUDE.md",
        format!("# Style\n\nUse these:\n\n{}\n", all.join("\n\n\n\n\n")),
    );
    repo.commit("first");
    repo.git(&["checkout", "-q", "-b", "t"]);
    for Leak { path, content, .. } in leaks {
        repo.stage(path, content);
        repo.stage(&format!("was/{path}"), format!("{content}\n\nlast = 2\n"));
    }
    repo.commit(&format!("second\n\n{}", all.join("\n\n\n\n\n")));
    repo
}

/// Reviews the branch with a model and all formats: no part of a secret is in the requests, the
/// streams, the reports, the history or the cache.
#[track_caller]
fn assert_review_is_clean(repo: &Repo, leaks: &[Leak]) {
    let server = Server::start(|r: &Request| r.review(&[]));
    repo.write(".git/info/exclude", ".claude-reviewer.toml\n");
    repo.write(".claude-reviewer.toml", server.policy("openai"));
    let out = repo.outside();
    std::fs::create_dir_all(&out).unwrap();
    let reports: Vec<String> = FORMATS
        .map(|f| format!("{f}={}", out.join(f).display()))
        .to_vec();
    let summary = leaks
        .iter()
        .map(|l| l.content.as_str())
        .collect::<Vec<_>>()
        .join("\n\n\n\n\n");
    let mut args = vec![
        "-vvv",
        "review",
        "branch",
        "t",
        "--base",
        "main",
        "--summary",
        &summary,
    ];
    reports.iter().for_each(|r| args.extend(["--report", r]));
    let run = repo
        .reviewer(&args)
        .env("OPENAI_API_KEY", format!("sk-{}", "0".repeat(20)))
        .run_any();
    assert!(matches!(run.code, 0 | 1 | 3), "{}", run.stderr);
    assert!(!server.questions().is_empty(), "{}", run.stderr);
    for request in server.requests() {
        assert_gone(
            &String::from_utf8_lossy(&request.body),
            leaks,
            "the request",
        );
    }
    assert_run_is_clean(&run, leaks, "the review");
    let stored = files_below(&repo.path().join(".reviews"));
    assert!(
        stored.iter().any(|f| f.ends_with("changes.diff")),
        "{stored:?}"
    );
    let beside = [repo.home().join(".cache"), out]
        .into_iter()
        .flat_map(|d| files_below(&d));
    for file in stored.into_iter().chain(beside) {
        let shown = std::fs::read(&file).unwrap();
        assert_gone(
            &String::from_utf8_lossy(&shown),
            leaks,
            &file.display().to_string(),
        );
    }
}

/// Calls every tool of a model, at the tip of the branch.
#[track_caller]
fn assert_tools_are_clean(repo: &Repo, leaks: &[Leak]) {
    let env = Env::from_pairs(repo.path(), [("HOME", repo.home())]);
    let opened = git::Repo::open(&repo.path(), &env).unwrap();
    let rules = RuleSet::new(&RulesPolicy::default(), &[]).unwrap();
    let tree = Tree::new(
        &opened,
        opened.state_of(opened.head().unwrap().unwrap()).unwrap(),
        &rules,
    );
    let mut calls = vec![
        ("list_files", json!({"glob": ""})),
        ("search", json!({"pattern": ".", "glob": ""})),
    ];
    for Leak { path, .. } in leaks {
        // Single lines are requested too: the text that identifies a secret may be outside of them.
        for (first, last) in [(1, 60), (2, 2), (3, 3)] {
            calls.push((
                "read_lines",
                json!({"path": path, "first": first, "last": last}),
            ));
        }
        calls.push(("outline", json!({"path": path})));
        calls.push(("diff_of", json!({"path": path})));
        calls.push(("history", json!({"path": path, "first": 1, "last": 60})));
    }
    for (tool, arguments) in calls {
        let shown = Session::new(&tree).call(tool, &arguments);
        assert_gone(&shown, leaks, &format!("{tool} {arguments}"));
    }
}

/// Reviews over MCP, with an answer and with an error.
#[track_caller]
fn assert_mcp_is_clean(repo: &Repo, leaks: &[Leak]) {
    let mut client = Client::ready(repo, &[]);
    let branch = json!({"branch": "t", "base_branch": "main"});
    let mut results = vec![client.call("review_branch", branch)];
    for Leak { path, content, .. } in leaks {
        let code = json!({"code": content, "file_path": path});
        results.push(client.call("review_code", code));
    }
    for result in results {
        assert_gone(shown_by(&result), leaks, "an answer of MCP");
        assert_gone(&result.to_string(), leaks, "an answer of MCP");
    }
}

#[track_caller]
fn assert_nothing_leaves(leaks: &[Leak]) {
    let repo = repository(leaks);
    assert_tools_are_clean(&repo, leaks);
    assert_mcp_is_clean(&repo, leaks);
    assert_review_is_clean(&repo, leaks);
}

fn key_id(seed: u64) -> String {
    format!(
        "AKI{}{}",
        "AY",
        text(seed, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", 15)
    )
}

fn web_token(claims: &str) -> String {
    let encode = |text: &str| URL_SAFE_NO_PAD.encode(text);
    format!(
        "{}.{}.{}",
        encode(r#"{"alg":"HS256","typ":"JWT"}"#),
        encode(claims),
        text(2, ALNUM, 43)
    )
}

fn github_token(seed: u64) -> String {
    format!("{}{}", "ghp_", text(seed, ALNUM, 36))
}

#[test]
fn lek_01_no_half_of_a_key_pair_leaves_in_any_way() {
    let mut leaks = Vec::new();
    let mut add = |path: &str, seed: u64, make: &dyn Fn(&str, &str) -> String| {
        let (id, half) = (key_id(seed), text(seed + 40, ALNUM, 40));
        leaks.push(Leak::new(path, make(&id, &half), &[&id, &half]));
    };
    add("src/A.java", 11, &|id, half| {
        format!("class A {{\n  C c = new Basic(\"{id}\",\n      \"{half}\");\n}}\n")
    });
    add("src/a.py", 12, &|id, half| {
        format!("import boto3\ns = boto3.Session('{id}', '{half}')\n")
    });
    add("src/b.go", 13, &|id, half| {
        format!("package b\n\nvar k = New(\"{id}:{half}\")\n")
    });
    add("src/c.go", 14, &|id, half| {
        format!("package c\n\nvar k = NewStaticCredentials(\"{id}\", \"{half}\", \"\")\n")
    });
    add("aws/keys.csv", 15, &|id, half| {
        format!("Access key ID,Secret access key\n{id},{half}\n")
    });
    add("aws/.s3cfg", 16, &|id, half| {
        format!("[default]\nid = {id}\nx = 1\ny = 2\nz = {half}\n")
    });
    add("aws/next.txt", 17, &|id, half| format!("{id}\n{half}\n"));
    add("aws/above.txt", 18, &|id, half| format!("{half}\n\n{id}\n"));
    assert_nothing_leaves(&leaks);
}

#[test]
fn lek_02_no_token_leaves_in_any_way() {
    let jwt = web_token(r#"{"sub":"1234567890","n":"x"}"#);
    let telegram = format!("{}:AA{}", text(3, "123456789", 10), text(4, ALNUM, 33));
    let data = STANDARD.encode(text(5, ALNUM, 21));
    let value = text(20, ALNUM, 24);
    let joined = text(6, ALNUM, 36);
    let header = text(7, "0123456789abcdef", 32);
    let scheme = text(21, "0123456789abcdef", 32);
    let token = text(22, ALNUM, 32);
    let id = URL_SAFE_NO_PAD.encode(text(23, "123456789", 18));
    let discord = format!("{id}.{}.{}", text(24, ALNUM, 6), text(25, ALNUM, 38));
    let hex = text(26, "0123456789abcdef", 32);
    let uuid = format!(
        "{}-{}-4{}-9{}-{}",
        &hex[..8],
        &hex[8..12],
        &hex[12..15],
        &hex[15..18],
        &hex[18..30]
    );
    let wide_of = github_token(27);
    let wide: String = wide_of
        .chars()
        .map(|c| char::from_u32(u32::from(c) + 0xfee0).unwrap())
        .collect();
    let hidden_of = github_token(28);
    let hidden = format!("{}\u{200b}{}", &hidden_of[..20], &hidden_of[20..]);
    let named = key_id(8);
    let leaks = [
        Leak::new("src/t.js", format!("const a = \"{jwt}\";\n"), &[&jwt]),
        Leak::new(
            "src/bot.js",
            format!("fetch(\"https://api.telegram.org/bot{telegram}/x\");\n"),
            &[&telegram],
        ),
        Leak::new(
            "k8s/s.yaml",
            format!("kind: Secret\ndata:\n  config: {data}\n"),
            &[&data],
        ),
        Leak::new(
            "k8s/p.yaml",
            format!("kind: Secret\nstringData:\n  config: {value}\n"),
            &[&value],
        ),
        Leak::new(
            "src/j.py",
            format!(
                "t = (\"gh\" + \"p_{}\"\n     \"{}\")\n",
                &joined[..18],
                &joined[18..]
            ),
            &[&joined[..18], &joined[18..]],
        ),
        Leak::new(
            "src/h.sh",
            format!("curl -H 'Authorization: Api-Token {header}' x\n"),
            &[&header],
        ),
        Leak::new(
            "src/i.sh",
            format!("curl -H 'Authorization: Custom-Scheme {scheme}' x\n"),
            &[&scheme],
        ),
        Leak::new(
            "src/k.sh",
            format!("curl -H 'Token: {token}' x\n"),
            &[&token],
        ),
        Leak::new(
            "src/d.py",
            format!("client.start('{discord}')\n"),
            &[&discord],
        ),
        Leak::new(
            "src/o.js",
            format!("const opsgenieKey = '{uuid}';\n"),
            &[&uuid],
        ),
        Leak::new(
            "NuGet.Config",
            "<add key=\"ClearTextPassword\" value=\"kR8mm2pQx9#\" />\n",
            &["kR8mm2pQx9#"],
        ),
        Leak::new(
            "src/u.rb",
            "u = 'mysql://root:Winter2024!x@mysql.prod.example/db'\n",
            &["Winter2024!x"],
        ),
        Leak::new(
            "src/v.rb",
            "u = 'mysql://root:Autumn2023!y@localhost/db'\n",
            &["Autumn2023!y"],
        ),
        Leak::new("src/w.txt", format!("t = {wide}\n"), &[&wide_of]),
        Leak::new(
            "src/z.txt",
            format!("t = {hidden}\n"),
            &[&hidden_of[..20], &hidden_of[20..]],
        ),
        Leak::new(
            &format!("dump/{named}.py"),
            "import os\nos.system(\"rm \" + input())\n",
            &[&named],
        ),
    ];
    assert_nothing_leaves(&leaks);
}

#[test]
fn lek_02_no_error_message_repeats_a_secret() {
    let token = github_token(31);
    let leaks = [Leak::new("-", "-", &[&token])];
    let repo = Repo::new();
    repo.stage("a.py", "x = 1\n").commit("first");
    repo.stage("a.py", "x = 2\n");
    for pattern in [
        format!("{token}.txt"),
        format!("src/{token}/["),
        format!("**/{token}/*.py"),
    ] {
        for kind in ["json", "human"] {
            let run = repo.review(
                &["staged", "--no-save", "--files", &pattern, "--format", kind],
                2,
            );
            assert_run_is_clean(&run, &leaks, &format!("--files {pattern}"));
        }
    }
}

#[test]
fn lek_03_no_threshold_of_a_rule_keeps_a_secret_readable() {
    let seeded = |seed| text(seed, ALNUM, 20);
    let values = [
        "Xk9#vv2Lq8mP",
        "mySecret789",
        "Default#2019!",
        "Changeme-prod-8812",
        "exampleKey#77x",
        "zebra7x!k2",
    ];
    let [long, test, doc, last, bundle, weak] = values;
    let decoys: String = (0..600)
        .map(|i| format!("password = \"changeme\"; token{i} = \"xxxxxxxx\"; "))
        .collect();
    let token = github_token(33);
    let random = seeded(34);
    let line = format!(
        "const s = \"{}\"; const password = \"{long}\"; f(\"{}\");\n",
        "a ".repeat(900),
        "b ".repeat(900)
    );
    let leaks = [
        // The length of a line.
        Leak::new("src/long.js", line, &[long]),
        // The path: tests, manuals, bundles.
        Leak::new(
            "tests/fixtures/a.py",
            format!("password = \"{test}\"\n"),
            &[test],
        ),
        Leak::new(
            "docs/guide/a.md",
            format!("    db_password = \"{doc}\"\n"),
            &[doc],
        ),
        Leak::new(
            "dist/app.min.js",
            format!("var e={{password:\"{bundle}\"}};\n"),
            &[bundle],
        ),
        // The number of matches in a line.
        Leak::new(
            "src/decoys.js",
            format!("{decoys}password = \"{last}\";\n"),
            &[last],
        ),
        // Low entropy, and an invalid checksum.
        Leak::new("src/weak.py", format!("password = \"{weak}\"\n"), &[weak]),
        Leak::new("src/sum.py", format!("k = \"{token}\"\n"), &[&token]),
        // A language without rules.
        Leak::new(
            "src/a.unknown",
            format!("api_token: {random}\n"),
            &[&random],
        ),
    ];
    assert_nothing_leaves(&leaks);
}
