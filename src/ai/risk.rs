//! Estimates which files of a tree are worth a model's time first. Pure.
//!
//! The estimate decides the order of requests and nothing else: a file that no rule of this page
//! knows is asked about later, and not left out.

use crate::diff::RepoPath;
use crate::rules::{self, FlowWords};

/// Parts of a tree that are asked about in separate requests, the riskiest first. The band of a file
/// depends on its name and content alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum RiskBand {
    /// Where data comes in, or trust is decided: handlers, parsers, authentication, workflows.
    Entry,
    /// Other program text.
    Code,
    /// Settings, texts and data.
    Other,
    /// Tests and their data, and code that another project or a program wrote.
    #[default]
    Last,
}

impl RiskBand {
    /// All bands, the riskiest first.
    pub const ALL: [Self; 4] = [Self::Entry, Self::Code, Self::Other, Self::Last];
}

/// The risk of a file. A higher score is asked about first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileRisk {
    pub band: RiskBand,
    pub score: u32,
}

/// The facts about a file of a tree that its risk is computed from.
#[derive(Clone, Copy, Debug)]
pub struct FileFacts<'f> {
    pub path: &'f RepoPath,
    /// The content; empty if it is not known.
    pub text: &'f [u8],
    /// Commits of the last year that changed the file.
    pub commits: u32,
    /// Points of the findings of the rules in the file, and of findings of stored reviews; see
    /// [`FINDING`].
    pub findings: u32,
}

/// Points of a finding that does not block.
pub const FINDING: u32 = 10;
/// Points of a finding that blocks.
pub const BLOCKING_FINDING: u32 = 25;

/// Points from which a file is in the band [`RiskBand::Entry`].
const ENTRY: u32 = 25;
/// Points for the words of the tables of the data flow: a source, a sink.
const SOURCE: u32 = 25;
const SINK: u32 = 15;
/// Points for a program that starts in the file.
const MAIN: u32 = 15;
/// Points for each doubling of the commits, and of the size in KiB, and the most of each.
const DOUBLING: u32 = 6;
const MOST_COMMITS: u32 = 36;
const SIZE_DOUBLING: u32 = 2;
const MOST_SIZE: u32 = 16;
/// Most points for findings.
const MOST_FINDINGS: u32 = 50;
/// Bytes of a file that are searched for the start of a program.
const START: usize = 64 << 10;

/// Words of names with the points of a file that has one of them.
struct RiskWords {
    points: u32,
    words: &'static [&'static str],
}

/// Words of file names and folders, in lower case and in the singular.
const WORDS: &[RiskWords] = &[
    // Who a caller is, and what that caller may do.
    RiskWords {
        points: 40,
        words: &[
            "auth",
            "authn",
            "authz",
            "authentication",
            "authorization",
            "login",
            "logon",
            "oauth",
            "oidc",
            "saml",
            "sso",
            "jwt",
            "session",
            "permission",
            "acl",
            "rbac",
            "password",
            "passwd",
            "credential",
            "csrf",
            "cors",
            "token",
        ],
    },
    // Requests of others.
    RiskWords {
        points: 35,
        words: &[
            "route",
            "router",
            "routing",
            "handler",
            "controller",
            "endpoint",
            "api",
            "rpc",
            "grpc",
            "graphql",
            "resolver",
            "webhook",
            "middleware",
            "servlet",
            "view",
            "upload",
            "request",
            "rest",
            "http",
            "websocket",
        ],
    },
    // Data of others, turned into values.
    RiskWords {
        points: 30,
        words: &[
            "parser",
            "parse",
            "deserialize",
            "deserializer",
            "deserialization",
            "unmarshal",
            "decode",
            "decoder",
            "pickle",
            "yaml",
            "xml",
            "protocol",
            "wire",
            "unpack",
            "archive",
        ],
    },
    RiskWords {
        points: 30,
        words: &[
            "crypto",
            "cryptography",
            "cipher",
            "encrypt",
            "encryption",
            "decrypt",
            "signature",
            "signing",
            "hash",
            "hmac",
            "tls",
            "ssl",
            "cert",
            "certificate",
            "secret",
            "key",
        ],
    },
    // Programs and queries of others.
    RiskWords {
        points: 25,
        words: &[
            "exec",
            "shell",
            "command",
            "subprocess",
            "process",
            "sandbox",
            "sql",
            "query",
            "db",
            "database",
            "migration",
            "template",
            "proxy",
            "redirect",
            "payment",
            "billing",
            "checkout",
            "admin",
        ],
    },
];

/// Words of file names without their extensions that start programs.
const MAINS: &[&str] = &[
    "main",
    "__main__",
    "app",
    "server",
    "cli",
    "manage",
    "wsgi",
    "asgi",
    "index",
    "program",
    "daemon",
    "worker",
    "entrypoint",
    "startup",
];

impl FileRisk {
    /// Returns the risk of a file. Takes time linear in its name and the start of its content.
    pub fn of(facts: &FileFacts<'_>) -> Self {
        let path = facts.path.as_bytes();
        let by_name = points_of_name(path);
        let by_content = points_of_content(facts.path, facts.text);
        let fixed = by_name + by_content;
        let band = if is_last(path) {
            RiskBand::Last
        } else if fixed >= ENTRY {
            RiskBand::Entry
        } else if rules::is_program_text(path) {
            RiskBand::Code
        } else {
            RiskBand::Other
        };
        let commits = (DOUBLING * doublings(facts.commits)).min(MOST_COMMITS);
        let kib = u32::try_from(facts.text.len() >> 10).unwrap_or(u32::MAX);
        let size = (SIZE_DOUBLING * doublings(kib)).min(MOST_SIZE);
        let score = fixed + commits + size + facts.findings.min(MOST_FINDINGS);
        Self { band, score }
    }
}

/// Returns true for tests, their data, and code of other projects.
fn is_last(path: &[u8]) -> bool {
    rules::is_test_path(path) || rules::is_vendored(path) || rules::is_data_of_tests(path)
}

/// Returns how often 1 is doubled for `n` and one more: 0 for 0, 1 for 1, 2 for 3, 3 for 7.
fn doublings(n: u32) -> u32 {
    n.saturating_add(1).ilog2()
}

/// Returns the points of a path: the most that a word of it, or the kind of file, has.
fn points_of_name(path: &[u8]) -> u32 {
    let path = String::from_utf8_lossy(path);
    let (folders, name) = path.rsplit_once('/').unwrap_or(("", &path));
    let lower = name.to_ascii_lowercase();
    let (stem, extension) = lower.rsplit_once('.').unwrap_or((&lower, ""));
    if rules::is_documentation(path.as_bytes()) {
        return 0;
    }
    let words = words_of(folders)
        .chain(words_of(name.split('.').next().unwrap_or_default()))
        .map(singular);
    let by_word = words.filter_map(|word| points_of_word(&word)).max();
    let starts = MAINS.contains(&stem) || folders.split('/').any(|f| f == "cmd" || f == "bin");
    by_word
        .unwrap_or_default()
        .max(points_of_kind(folders, &lower, extension))
        .max(if starts { ENTRY } else { 0 })
}

/// Returns the points of a word of a name.
fn points_of_word(word: &str) -> Option<u32> {
    let found = WORDS.iter().find(|kind| kind.words.contains(&word));
    found.map(|kind| kind.points)
}

/// Returns the points of files that run or build things: workflows, images, scripts, migrations,
/// infrastructure. `name` is in lower case.
fn points_of_kind(folders: &str, name: &str, extension: &str) -> u32 {
    const PIPELINES: &[&str] = &[
        ".gitlab-ci.yml",
        "jenkinsfile",
        "azure-pipelines.yml",
        "bitbucket-pipelines.yml",
        ".travis.yml",
        "action.yml",
        "action.yaml",
        "cloudbuild.yaml",
    ];
    const FOLDERS: &[&str] = &[
        ".github/workflows",
        ".circleci",
        ".buildkite",
        ".forgejo/workflows",
    ];
    let is_pipeline = PIPELINES.contains(&name) || FOLDERS.iter().any(|f| folders.ends_with(f));
    let is_image = name.starts_with("dockerfile")
        || name.starts_with("containerfile")
        || name.starts_with("docker-compose")
        || name.ends_with(".dockerfile");
    let is_migration = folders
        .split('/')
        .any(|f| matches!(f, "migrations" | "migration" | "migrate"));
    let is_script = matches!(extension, "sh" | "bash" | "zsh" | "ps1" | "bat" | "cmd");
    let is_setup = matches!(extension, "tf" | "sql");
    match () {
        () if is_pipeline => 40,
        () if is_image => 30,
        () if is_migration || is_script || is_setup => ENTRY,
        () => 0,
    }
}

/// Returns the points of the content: for words of the tables of the data flow, and for the start of
/// a program. Prose names calls and starts no program.
fn points_of_content(path: &RepoPath, text: &[u8]) -> u32 {
    const STARTS: &[&[u8]] = &[
        b"fn main(",
        b"func main(",
        b"int main(",
        b"void main(",
        b"Main(string[]",
        b"__name__ ==",
    ];
    if rules::is_documentation(path.as_bytes()) {
        return 0;
    }
    let words = FlowWords::of(path, text);
    let start = &text[..text.len().min(START)];
    let is_main = start.starts_with(b"#!")
        || STARTS
            .iter()
            .any(|word| memchr::memmem::find(start, word).is_some());
    let mut points = 0;
    for (holds, value) in [
        (words.has_source, SOURCE),
        (words.has_sink, SINK),
        (is_main, MAIN),
    ] {
        points += if holds { value } else { 0 };
    }
    points
}

/// Returns the words of names in lower case: `user_auth/TokenStore` has `user`, `auth`, `token` and
/// `store`.
fn words_of(names: &str) -> impl Iterator<Item = String> + '_ {
    let parts = names.split(|c: char| !c.is_ascii_alphanumeric());
    parts.flat_map(|part| {
        let mut words: Vec<String> = Vec::new();
        let mut was_lower = false;
        for c in part.chars() {
            if words.is_empty() || (c.is_ascii_uppercase() && was_lower) {
                words.push(String::new());
            }
            was_lower = !c.is_ascii_uppercase();
            if let Some(word) = words.last_mut() {
                word.push(c.to_ascii_lowercase());
            }
        }
        words
    })
}

/// Returns a word without the `s` of a plural.
fn singular(word: String) -> String {
    match word.strip_suffix('s') {
        Some(stem) if stem.len() > 2 && !stem.ends_with('s') => stem.to_owned(),
        _ => word,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the risk of a file without commits and findings.
    fn risk(path: &str, text: &str) -> FileRisk {
        risk_of(path, text, 0, 0)
    }

    fn risk_of(path: &str, text: &str, commits: u32, findings: u32) -> FileRisk {
        FileRisk::of(&FileFacts {
            path: &RepoPath::from(path),
            text: text.as_bytes(),
            commits,
            findings,
        })
    }

    #[test]
    fn entry_points_are_known_by_their_names() {
        for path in [
            "src/main.rs",
            "cmd/tool/run.go",
            "app/routes.py",
            "src/UserController.java",
            "lib/requestParser.js",
            "src/auth/check.rs",
            "pkg/crypto/seal.go",
            "src/deserialize.rs",
            ".github/workflows/ci.yml",
            ".gitlab-ci.yml",
            "Dockerfile",
            "deploy/Dockerfile.worker",
            "scripts/release.sh",
            "db/migrations/0001_users.sql",
            "infra/main.tf",
        ] {
            assert_eq!(risk(path, "").band, RiskBand::Entry, "{path}");
        }
    }

    #[test]
    fn entry_points_are_known_by_their_contents() {
        for (path, text) in [
            ("lib/a.py", "import flask\nx = flask.request.args['x']\n"),
            (
                "lib/a.rs",
                "/// Starts.\nfn main() {}\nuse std::process::Command;\n",
            ),
        ] {
            let plain = risk(path, "x = 1\n");
            assert_eq!(plain.band, RiskBand::Code, "{path}");
            assert!(risk(path, text).score > plain.score, "{path}");
        }
        assert_eq!(
            risk("lib/a.py", "import flask\nx = flask.request.args['x']\n").band,
            RiskBand::Entry
        );
    }

    #[test]
    fn tests_and_code_of_others_come_last_whatever_they_handle() {
        for path in [
            "tests/auth.py",
            "src/login_test.go",
            "vendor/lib/parser.go",
            "node_modules/x/index.js",
            "public/bower_components/x/auth.js",
            "tests/data/request.json",
        ] {
            assert_eq!(risk(path, "fn main() {}").band, RiskBand::Last, "{path}");
        }
    }

    #[test]
    fn prose_about_entry_points_is_not_one() {
        for path in ["docs/auth.md", "README.md", "docs/api/login.rst"] {
            assert_eq!(
                risk(path, "#!/bin/sh\nfn main(\n").band,
                RiskBand::Other,
                "{path}"
            );
        }
        assert_eq!(risk("src/colour.py", "x = 1\n").band, RiskBand::Code);
        assert_eq!(risk("settings.toml", "x = 1\n").band, RiskBand::Other);
    }

    #[test]
    fn commits_size_and_findings_raise_the_score_and_never_the_band() {
        let plain = risk("src/colour.py", "x = 1\n");
        let long = "x = 1\n".repeat(2000);
        for more in [
            risk_of("src/colour.py", "x = 1\n", 1, 0),
            risk_of("src/colour.py", "x = 1\n", 0, FINDING),
            risk("src/colour.py", &long),
        ] {
            assert!(more.score > plain.score);
            assert_eq!(more.band, plain.band);
        }
        let busy = risk_of("src/colour.py", "x = 1\n", 1000, 0);
        assert!(busy.score > risk_of("src/colour.py", "x = 1\n", 10, 0).score);
        let most = risk_of("src/colour.py", "", u32::MAX, u32::MAX);
        assert_eq!(most.score, MOST_COMMITS + MOST_FINDINGS);
    }

    #[test]
    fn names_are_divided_into_words() {
        let words: Vec<String> = words_of("user_auth/TokenStore-v2/HTTPServer").collect();
        assert_eq!(
            words,
            ["user", "auth", "token", "store", "v2", "httpserver"]
        );
        assert_eq!(singular("routes".to_owned()), "route");
        assert_eq!(singular("access".to_owned()), "access");
    }
}
