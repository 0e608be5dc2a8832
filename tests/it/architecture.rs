//! Checks the invariants of `ARCHITECTURE.md` against the sources: which code is absent from which
//! modules.

mod imports;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// The modules in dependency order: a module imports only those before it.
const ORDER: &[&str] = &[
    "hex",
    "shell",
    "text",
    "bounded",
    "untrusted",
    "env",
    "error",
    "log",
    "stop",
    "process",
    "sandbox",
    "progress",
    "http",
    "diff",
    "finding",
    "request",
    "ci",
    "policy",
    "disposition",
    "symbols",
    "git",
    "state_folder",
    "hooks",
    "rules",
    "verdict",
    "ai",
    "context",
    "review",
    "wire",
    "report",
    "history",
    "rounds",
    "triage",
    "background",
    "forge",
    "receipt",
    "judge",
    "counsel",
    "doctor",
    "mcp",
    "cli",
    "main",
];

/// A source file of the program: its path below `src`, its text, and its code.
struct Source {
    path: String,
    text: String,
    /// The text without comments, literals and test modules, with the same lines.
    code: String,
}

impl Source {
    /// Returns the module of the file: the first part of its path.
    fn module(&self) -> &str {
        let first = self.path.split('/').next().unwrap_or_default();
        first.strip_suffix(".rs").unwrap_or(first)
    }

    /// Returns true if the file is one of these, or is in one of these folders (`report` is
    /// `report.rs` and everything in `report/`).
    fn is_in(&self, places: &[&str]) -> bool {
        places.iter().any(|p| {
            let rest = self.path.strip_prefix(p);
            rest.is_some_and(|r| r == ".rs" || r.starts_with('/'))
        })
    }
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Lists the files of a folder, recursively.
fn walk(dir: &Path, files: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(dir) else {
        return;
    };
    for entry in entries {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        match path.is_dir() {
            _ if ["target", ".git", ".reviews", "node_modules", "__pycache__"]
                .contains(&name.as_str()) => {}
            true => walk(&path, files),
            false => files.push(path),
        }
    }
}

fn files(dir: &str, ends: &str) -> Vec<PathBuf> {
    let mut files = Vec::new();
    walk(&root().join(dir), &mut files);
    files.retain(|f| f.to_string_lossy().ends_with(ends));
    files.sort();
    files
}

fn shown(path: &Path) -> String {
    path.strip_prefix(root())
        .unwrap()
        .to_string_lossy()
        .replace('\\', "/")
}

/// Returns all source files of the program, which are read once for all tests.
fn sources() -> &'static [Source] {
    static SOURCES: LazyLock<Vec<Source>> = LazyLock::new(|| {
        files("src", ".rs")
            .iter()
            .map(|path| {
                let text = std::fs::read_to_string(path).unwrap();
                let code = without_tests(&code_of(&text));
                Source {
                    path: shown(path)["src/".len()..].to_owned(),
                    text,
                    code,
                }
            })
            .collect()
    });
    assert!(SOURCES.len() > 20, "the sources were not found");
    &SOURCES
}

/// Blanks comments and the content of literals.
fn code_of(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = bytes.to_vec();
    let blank = |out: &mut Vec<u8>, from: usize, to: usize| {
        for b in &mut out[from..to] {
            if *b != b'\n' {
                *b = b' ';
            }
        }
    };
    let find = |from: usize, what: &str| {
        text[from..]
            .find(what)
            .map_or(text.len(), |i| from + i + what.len())
    };
    let mut i = 0;
    while i < bytes.len() {
        let rest = &bytes[i..];
        let starts_word = i == 0 || !(bytes[i - 1].is_ascii_alphanumeric() || bytes[i - 1] == b'_');
        let end = if rest.starts_with(b"//") {
            text[i..].find('\n').map_or(text.len(), |n| i + n)
        } else if rest.starts_with(b"/*") {
            find(i, "*/")
        } else if (starts_word || bytes[i - 1] == b'b') && raw_hashes(rest).is_some() {
            let hashes = raw_hashes(rest).unwrap();
            find(i + hashes + 2, &format!("\"{}", "#".repeat(hashes)))
        } else if rest[0] == b'"' {
            string_end(bytes, i)
        } else if rest[0] == b'\'' {
            char_end(bytes, i)
        } else {
            i
        };
        blank(&mut out, i, end);
        i = end.max(i + 1);
    }
    String::from_utf8(out).unwrap()
}

/// Returns the number of hashes of a raw string that starts here.
fn raw_hashes(rest: &[u8]) -> Option<usize> {
    let rest = rest.strip_prefix(b"r")?;
    let hashes = rest.iter().take_while(|&&b| b == b'#').count();
    (rest.get(hashes) == Some(&b'"')).then_some(hashes)
}

fn string_end(bytes: &[u8], start: usize) -> usize {
    let mut i = start + 1;
    while i < bytes.len() {
        match bytes[i] {
            b'\\' => i += 2,
            b'"' => return i + 1,
            _ => i += 1,
        }
    }
    bytes.len()
}

/// Returns the end of a character literal, or the start again for a lifetime.
fn char_end(bytes: &[u8], start: usize) -> usize {
    let closing = match bytes.get(start + 1) {
        Some(b'\\') => bytes[start + 3..]
            .iter()
            .position(|&b| b == b'\'')
            .map(|n| start + 3 + n),
        _ => (2..=5)
            .map(|n| start + n)
            .find(|&n| bytes.get(n) == Some(&b'\'')),
    };
    let lifetime = |end: usize| {
        let inside = &bytes[start + 1..end];
        inside.len() > 1 && inside[0] != b'\\' && inside.is_ascii()
    };
    match closing {
        Some(end) if !lifetime(end) => end + 1,
        _ => start,
    }
}

/// Blanks every item after `#[cfg(test)]`.
fn without_tests(code: &str) -> String {
    let mut out = code.to_owned();
    while let Some(start) = out.find("#[cfg(test)]") {
        let mut depth = 0;
        let mut end = out.len();
        for (i, b) in out.bytes().enumerate().skip(start + "#[cfg(test)]".len()) {
            match b {
                b'{' => depth += 1,
                b'}' => depth -= 1,
                b';' if depth == 0 => {}
                _ => continue,
            }
            if depth == 0 {
                end = i + 1;
                break;
            }
        }
        let blank: String = out[start..end]
            .chars()
            .map(|c| if c == '\n' { '\n' } else { ' ' })
            .collect();
        out.replace_range(start..end, &blank);
    }
    out
}

/// Returns true if a line of code contains this path or word as a whole.
fn names(line: &str, word: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(word).any(|(i, _)| {
        let before = line[..i].chars().next_back();
        let after = line[i + word.len()..].chars().next();
        let in_a_longer_word =
            before.is_some_and(is_part) || word.ends_with(is_part) && after.is_some_and(is_part);
        !in_a_longer_word
    })
}

/// Fails with every position outside `places` whose code contains one of the words.
#[track_caller]
fn only(places: &[&str], words: &[&str]) {
    let mut wrong = Vec::new();
    for source in sources().iter().filter(|s| !s.is_in(places)) {
        // Most files contain none of the words, and are not read line by line.
        let words: Vec<_> = words.iter().filter(|w| source.code.contains(**w)).collect();
        if words.is_empty() {
            continue;
        }
        for (i, line) in source.code.lines().enumerate() {
            if words.iter().any(|w| names(line, w)) {
                wrong.push(format!("src/{}:{}: {}", source.path, i + 1, line.trim()));
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "only {places:?} may name {words:?}:\n{}",
        wrong.join("\n")
    );
}

#[test]
fn the_reader_of_sources_sees_code_only() {
    let text = "let a = \"gix\"; // gix\nlet b = 'g'; /* gix */ let c: &'gix str = r#\"\"gix\"#;\n#[cfg(test)]\nmod t { fn x() { gix } }\nstd::env::x(b\"\\\"gix\", b'\\'', '\\u{61}');";
    let code = without_tests(&code_of(text));
    assert_eq!(code.matches("gix").count(), 1, "{code}");
    assert!(
        code.contains("&'gix str") && code.contains("std::env::x("),
        "{code}"
    );
    assert_eq!(code.lines().count(), text.lines().count());
    assert!(names("use gix::x", "gix") && !names("use my_gix::x", "gix") && !names("gixy", "gix"));
}

#[test]
fn only_git_names_gix() {
    let crates: BTreeSet<_> = std::fs::read_to_string(root().join("Cargo.lock"))
        .unwrap()
        .lines()
        .filter_map(|l| {
            Some(
                l.strip_prefix("name = \"gix")?
                    .strip_suffix('"')?
                    .replace('-', "_"),
            )
        })
        .map(|rest| format!("gix{rest}"))
        .collect();
    assert!(crates.contains("gix"));
    only(
        &["git"],
        &crates.iter().map(String::as_str).collect::<Vec<_>>(),
    );
}

#[test]
fn only_the_sarif_report_names_its_types() {
    only(&["report/sarif"], &["serde_sarif"]);
    only(&["rules/structural"], &["ast_grep_core", "ast_grep_config"]);
}

#[test]
fn only_the_mcp_server_and_the_client_of_context_servers_name_the_sdk() {
    only(&["mcp", "context/server"], &["rmcp"]);
}

#[test]
fn only_triage_and_its_screen_name_the_terminal_library() {
    only(&["triage", "cli/screen"], &["ratatui", "crossterm"]);
}

#[test]
fn only_env_reads_the_environment() {
    let mut wrong = Vec::new();
    for source in sources().iter().filter(|s| !s.is_in(&["env"])) {
        for (i, line) in source.code.lines().enumerate() {
            // Constants of the target, and values that are read at compile time, are not the
            // environment.
            let line = line.replace("std::env::consts", "");
            if names(&line, "std::env") || names(&line, "env::var") || names(&line, "env::var_os") {
                wrong.push(format!("src/{}:{}: {}", source.path, i + 1, line.trim()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn only_http_opens_a_socket() {
    // Redis does not speak HTTP.
    only(&["http/resp"], &["TcpStream", "tokio::net"]);
    only(&["ai/shared/store/objects"], &["opendal"]);
    // A server on loopback, in a test of a feature that only unit tests reach.
    only(&["ai/shared/store/objects/tests"], &["TcpListener"]);
    let sockets = ["UdpSocket", "UnixStream", "UnixListener", "UnixDatagram"];
    only(&[], &sockets);
    only(&[], &["ToSocketAddrs", "rustix::net"]);
    only(&["http"], &["reqwest", "rustls", "hyper"]);
    only(
        &[
            "http",
            "ai/ask",
            "ai/backend",
            "ai/shared",
            "context",
            "forge",
        ],
        &["crate::http"],
    );
    let lock = std::fs::read_to_string(root().join("Cargo.lock")).unwrap();
    for name in ["ureq", "openssl", "native-tls", "curl", "aws-lc-sys"] {
        assert!(
            !lock.contains(&format!("name = \"{name}\"\n")),
            "{name} came in"
        );
    }
}

#[test]
fn programs_are_started_in_two_places() {
    only(
        &["git/program", "process"],
        &["process::Command", "Command::new"],
    );
}

#[test]
fn only_wire_types_are_written_out() {
    only(&["wire", "ai"], &["Serialize"]);
    only(
        &[
            "wire",
            "policy",
            "rules/format",
            "rules/eval/case",
            "rules/flow/format",
            "rules/settings/format",
            "rules/structural/language",
            "rules/team/file",
            "disposition/file",
            "ai",
        ],
        &["Deserialize"],
    );
}

#[test]
fn the_store_touches_files_in_one_place() {
    let calls = ["fs", "File", "OpenOptions", "tempfile"];
    for source in sources()
        .iter()
        .filter(|s| s.module() == "history" && !s.is_in(&["history/disk"]))
    {
        for (i, line) in source.code.lines().enumerate() {
            let named = calls.iter().any(|c| names(line, c));
            assert!(!named, "src/{}:{}: {}", source.path, i + 1, line.trim());
        }
    }
}

#[test]
fn stdout_belongs_to_the_command_line() {
    only(
        &["cli", "report", "mcp"],
        &["io::stdout", "stdout()", "println!", "print!"],
    );
}

#[test]
fn only_what_proves_a_finding_names_a_proof() {
    only(
        &["finding", "rules", "ai/anchor", "rounds/recall"],
        &["Proof"],
    );
}

#[test]
fn reports_name_the_command_and_not_the_package() {
    let wrong: Vec<_> = sources()
        .iter()
        .filter(|s| s.text.contains("CARGO_PKG_NAME"))
        .map(|s| &s.path)
        .collect();
    assert!(wrong.is_empty(), "use crate::NAME in {wrong:?}");
}

/// Returns the texts between the parentheses of all calls of a method.
fn arguments_of<'t>(text: &'t str, method: &str) -> Vec<&'t str> {
    let starts = text
        .match_indices(method)
        .map(|(at, found)| at + found.len());
    starts
        .map(|start| &text[start..start + call_end(&text[start..])])
        .collect()
}

/// Returns the position of the parenthesis that closes the one open at the start of a text.
fn call_end(text: &str) -> usize {
    let mut depth = 1;
    let end = text.char_indices().find(|(_, c)| {
        depth += i32::from(*c == '(') - i32::from(*c == ')');
        depth == 0
    });
    end.map_or(text.len(), |(at, _)| at)
}

/// `hint` is for people and agents. Agents call tools, so a command of this program must be a
/// `hint_person`, with a `hint_agent`.
#[test]
fn hints_for_people_and_agents_alike_name_no_command_and_no_flag_of_the_program() {
    let people = ["cli", "doctor", "receipt", "hooks"];
    for source in sources() {
        // Errors of backends are for the person who configured them.
        if people.contains(&source.module()) || source.path.starts_with("ai/backend") {
            continue;
        }
        for hint in arguments_of(&source.text, ".hint(") {
            let is_git = hint.contains("git ") || hint.contains("ls -ld");
            let has_flag = hint.contains(" --") || hint.contains("\"--");
            let is_command = hint.contains("claude-reviewer ") || hint.contains("NAME");
            assert!(
                !is_command && (is_git || !has_flag),
                "src/{}: {hint}",
                source.path
            );
        }
    }
}

#[test]
fn imports_point_downwards() {
    let rank = |module: &str| ORDER.iter().position(|m| *m == module);
    let mut wrong = Vec::new();
    for source in sources().iter().filter(|s| s.module() != "lib") {
        let own = rank(source.module())
            .unwrap_or_else(|| panic!("{} has no place in the order", source.module()));
        for (i, line) in source.code.lines().enumerate() {
            let paths = line
                .match_indices("crate::")
                .map(|(at, _)| &line[at + "crate::".len()..]);
            for path in paths {
                let module: String = path
                    .chars()
                    .take_while(|c| c.is_alphanumeric() || *c == '_')
                    .collect();
                if rank(&module).is_some_and(|theirs| theirs > own) {
                    wrong.push(format!(
                        "src/{}:{}: {} knows {module}",
                        source.path,
                        i + 1,
                        source.module()
                    ));
                }
            }
            if line.contains("crate::{") {
                wrong.push(format!(
                    "src/{}:{}: one module a line, please",
                    source.path,
                    i + 1
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn no_file_is_a_drawer() {
    for folder in ["src", "tests", "benches"] {
        for file in files(folder, ".rs") {
            let lines = std::fs::read_to_string(&file).unwrap().lines().count();
            assert!(lines <= 800, "{} has {lines} lines", shown(&file));
        }
    }
}

#[test]
fn every_file_says_what_it_owns() {
    for source in sources() {
        let first = source.text.lines().next().unwrap_or_default();
        assert!(
            first.starts_with("//! ") && first.len() > 12,
            "src/{} starts with {first:?}",
            source.path
        );
        assert!(
            !source.path.ends_with("/mod.rs"),
            "src/{} is called mod.rs",
            source.path
        );
    }
}

#[test]
fn no_lint_is_silenced_without_a_reason() {
    for folder in ["src", "tests", "benches"] {
        for file in files(folder, ".rs") {
            let code = code_of(&std::fs::read_to_string(&file).unwrap());
            for (i, line) in code.lines().enumerate() {
                let silent = line.contains("[allow(")
                    || line.contains("expect(clippy") && !code.contains("reason =");
                assert!(!silent, "{}:{}: {}", shown(&file), i + 1, line.trim());
            }
        }
    }
}

#[test]
fn nothing_is_left_to_be_written() {
    only(&[], &["todo!", "unimplemented!", "dbg!"]);
}

/// Returns every text file of the repository.
fn texts() -> impl Iterator<Item = (String, String)> {
    let mut all = Vec::new();
    walk(root(), &mut all);
    all.into_iter()
        .filter_map(|f| Some((shown(&f), std::fs::read_to_string(&f).ok()?)))
}

#[test]
fn no_text_names_a_folder_of_the_machine_it_was_written_on() {
    let places = ["work", "root", "farm"].map(|d| format!("/{d}/"));
    let paths = regex::Regex::new(&format!(r"(?:^|[\s'`(=:])(?:{})", places.join("|"))).unwrap();
    for (name, text) in texts() {
        for (i, line) in text.lines().enumerate() {
            // A quoted path in a test belongs to a made-up system and is harmless; an unquoted one
            // is not.
            assert!(!paths.is_match(line), "{name}:{}: {line}", i + 1);
        }
    }
}

#[test]
fn sec_08_nothing_shaped_like_a_key_is_committed() {
    let shapes = [
        r"\b(?:AKIA|ASIA)[A-Z2-7]{16}\b",
        r"\bgh[pousr]_[A-Za-z0-9]{36}\b",
        r"\bsk-ant-[a-z0-9]+-[A-Za-z0-9_-]{40,}",
        r"\bxox[baprs]-[0-9]{8,}-[A-Za-z0-9-]{10,}",
        r"-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\\rn]+[A-Za-z0-9+/=]{40}",
    ];
    let keys = regex::Regex::new(&shapes.join("|")).unwrap();
    for (name, text) in texts() {
        // A match without real entropy is a placeholder: one repeated letter, or Amazon's example.
        let varied = |hit: &str| hit.bytes().rev().take(16).collect::<BTreeSet<_>>().len() > 6;
        let hit = keys
            .find_iter(&text)
            .find(|hit| varied(hit.as_str()) && !hit.as_str().ends_with("EXAMPLE"));
        if let Some(hit) = hit {
            panic!(
                "{name} has something shaped like a key: {}…",
                &hit.as_str()[..8]
            );
        }
    }
}
