//! Finds the files that checks run: named by CI files, hooks, package scripts, or the policy's test
//! command.

use super::{SHELLS, classes, paths};
use crate::diff::RepoPath;
use serde_json::Value as Json;
use std::collections::BTreeSet;

/// Bytes of a file that is searched for names, at most.
const MOST_BYTES: usize = 256 << 10;
/// Length of a chain of scripts that run each other, at most.
const DEPTH: usize = 3;
/// Programs that run a file.
const INTERPRETERS: &[&str] = &[
    "sh",
    "bash",
    "zsh",
    "dash",
    "ksh",
    "fish",
    "pwsh",
    "powershell",
    "source",
    ".",
    "node",
    "nodejs",
    "deno",
    "bun",
    "run",
    "tsx",
    "ts-node",
    "esno",
    "python",
    "python2",
    "python3",
    "py",
    "pypy3",
    "uv",
    "ruby",
    "perl",
    "php",
    "lua",
    "rscript",
    "groovy",
    "elixir",
    "julia",
    "swift",
    "exec",
    "env",
    "sudo",
    "time",
    "xargs",
    "command",
];
/// Keys of CI files whose value is a command.
const KEYS: &[&str] = &[
    "run:",
    "script:",
    "before_script:",
    "after_script:",
    "entry:",
    "command:",
    "cmd:",
    "exec:",
    "entrypoint:",
];
/// Parts of flags whose value is run or configures a check.
const FLAGS: &[&str] = &[
    "config", "require", "setup", "rcfile", "import", "loader", "preload", "-r", "-c", "-f",
];
/// Package scripts that start the program and check nothing.
const STARTS: &[&str] = &[
    "start",
    "dev",
    "serve",
    "develop",
    "watch",
    "preview",
    "storybook",
    "electron",
];

/// Reads a file of the tree.
pub(super) type ReadFile<'a> = &'a dyn Fn(&RepoPath) -> Option<Vec<u8>>;

/// Returns the files of a tree that checks run. `command` is the policy's test command.
pub(super) fn run_by_checks(
    tree: &BTreeSet<RepoPath>,
    read: ReadFile<'_>,
    command: Option<&str>,
) -> BTreeSet<RepoPath> {
    let mut texts: Vec<(String, String)> = command
        .map(|c| (String::new(), c.to_owned()))
        .into_iter()
        .collect();
    for path in tree {
        if let Some(text) = commands(path, read) {
            texts.push((folder(path), text));
        }
    }
    let mut out = BTreeSet::new();
    for _ in 0..DEPTH {
        let found: BTreeSet<RepoPath> = texts
            .iter()
            .flat_map(|(folder, text)| named(text, folder, tree))
            .collect();
        texts = found
            .iter()
            .filter(|p| !out.contains(*p))
            .filter_map(|p| Some((folder(p), text_of(p, read)?)))
            .collect();
        out.extend(found);
        if texts.is_empty() {
            break;
        }
    }
    out
}

/// Returns the commands in a file that names checks, or `None` for other files.
fn commands(path: &RepoPath, read: ReadFile<'_>) -> Option<String> {
    let name = String::from_utf8_lossy(path.file_name()).to_lowercase();
    if matches!(
        name.as_str(),
        "package.json" | "composer.json" | "deno.json"
    ) {
        let json: Json = serde_json::from_str(&text_of(path, read)?).ok()?;
        let scripts = ["scripts", "tasks"]
            .iter()
            .filter_map(|key| json.get(key)?.as_object());
        let checks = scripts
            .flatten()
            .filter(|(key, _)| !STARTS.iter().any(|s| key.split(':').next() == Some(*s)));
        return Some(
            checks
                .map(|(_, value)| strings(value))
                .collect::<Vec<_>>()
                .join("\n"),
        );
    }
    let names_checks =
        paths::class(path, &[]).is_some_and(|class| matches!(class, classes::CI | classes::HOOK));
    if names_checks {
        text_of(path, read)
    } else {
        None
    }
}

/// Returns the strings of a value, one per line.
fn strings(value: &Json) -> String {
    match value {
        Json::String(text) => text.clone(),
        Json::Array(all) => all.iter().map(strings).collect::<Vec<_>>().join("\n"),
        Json::Object(all) => all.values().map(strings).collect::<Vec<_>>().join("\n"),
        _ => String::new(),
    }
}

/// Returns the text of a file, or `None` if it is missing or too long.
fn text_of(path: &RepoPath, read: ReadFile<'_>) -> Option<String> {
    let bytes = read(path).filter(|bytes| bytes.len() <= MOST_BYTES)?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// Returns the folder of a path.
fn folder(path: &RepoPath) -> String {
    let path = String::from_utf8_lossy(path.as_bytes()).into_owned();
    path.rsplit_once('/')
        .map(|(folder, _)| folder.to_owned())
        .unwrap_or_default()
}

/// Returns the files that commands run. Their paths are relative to the top or to the folder of the
/// file.
fn named(text: &str, folder: &str, tree: &BTreeSet<RepoPath>) -> Vec<RepoPath> {
    let mut out = Vec::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split(is_between).filter(|w| !w.is_empty()).collect();
        for (i, word) in words.iter().enumerate() {
            let before = &words[..i];
            let found = candidates(word, folder, before)
                .into_iter()
                .find(|c| tree.contains(c));
            out.extend(found.filter(|path| is_run(word, before, path)));
        }
    }
    out
}

/// Returns true if a character separates words.
fn is_between(c: char) -> bool {
    c.is_whitespace()
        || matches!(
            c,
            '"' | '\''
                | '`'
                | ';'
                | '|'
                | '&'
                | '('
                | ')'
                | '['
                | ']'
                | ','
                | '='
                | '{'
                | '}'
                | '<'
                | '>'
        )
}

/// Returns the paths that a word can mean.
fn candidates(word: &str, folder: &str, before: &[&str]) -> Vec<RepoPath> {
    let places = ["", folder].into_iter();
    if before.last() == Some(&"-m") {
        let module = word.replace('.', "/");
        let files = [format!("{module}.py"), format!("{module}/__main__.py")];
        return places
            .flat_map(|f| files.iter().map(move |m| joined(f, m)))
            .flatten()
            .collect();
    }
    // The checkout folder, as in `$GITHUB_WORKSPACE/run.sh`.
    let word = match word.split_once('/') {
        Some((first, rest)) if first.starts_with('$') => rest,
        _ => word,
    };
    places.filter_map(|f| joined(f, word)).collect()
}

/// Joins a relative path with a folder, or returns `None` if it leaves the top.
fn joined(folder: &str, path: &str) -> Option<RepoPath> {
    let mut parts: Vec<&str> = folder.split('/').filter(|p| !p.is_empty()).collect();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            _ => parts.push(part),
        }
    }
    (!parts.is_empty()).then(|| RepoPath::from(parts.join("/").as_str()))
}

/// Returns true if a word of a command runs a file, or configures a check with it.
fn is_run(word: &str, before: &[&str], path: &RepoPath) -> bool {
    let name = String::from_utf8_lossy(path.file_name()).to_lowercase();
    let extension = name.rsplit_once('.').map_or("", |(_, e)| e);
    let is_script = SHELLS.contains(&extension) || extension.is_empty() && word.contains('/');
    let program = before
        .iter()
        .rev()
        .find(|w| !w.starts_with('-'))
        .map(|w| w.rsplit('/').next().unwrap_or(w).to_lowercase());
    // An entry of a list can be another kind of path: `paths: [src/a.py]`, with one entry per line.
    let is_first = before.is_empty();
    let is_last_flag = before.last().is_some_and(|word| is_flag(word));
    is_script
        || word.starts_with("./")
        || is_last_flag
        || is_first
        || program.is_some_and(|name| is_program(&name))
}

/// Returns true if the next word of a command is a file to run, or to configure a check with.
fn is_flag(word: &str) -> bool {
    FLAGS.iter().any(|f| {
        if f.starts_with('-') {
            word == *f
        } else {
            word.starts_with("--") && word.contains(f)
        }
    })
}

/// Returns true if a program or a key of a file runs the files that follow it. Ignores the version
/// in a name.
fn is_program(name: &str) -> bool {
    let name = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    INTERPRETERS.contains(&name) || KEYS.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILES: &[(&str, &str)] = &[
        (
            "package.json",
            r#"{"scripts": {"test": "node tools/run.js && jest --config conf/j.json src/app.js", "lint": "./bin/lint",
               "start": "node src/server.js", "build": "tsc src/index.ts"}, "main": "src/main.js"}"#,
        ),
        (
            "web/package.json",
            r#"{"scripts": {"test": "mocha -r hooks.js", "check": "sh ../all.sh"}}"#,
        ),
        (
            ".github/workflows/ci.yml",
            "jobs:\n  a:\n    steps:\n      - run: python3 tools/check.py src/data.py\n      - run: |\n          dev/steps.sh\n          python -m qa.types\n          $GITHUB_WORKSPACE/last.sh\n    paths: [src/server.js]\n",
        ),
        (
            "dev/steps.sh",
            "#!/bin/sh\nsource dev/lib.sh\ncat README.md\n",
        ),
        ("tests.sh", "true\n"),
    ];
    const OTHERS: &[&str] = &[
        "tools/run.js",
        "conf/j.json",
        "src/app.js",
        "bin/lint",
        "src/server.js",
        "src/index.ts",
        "src/main.js",
        "web/hooks.js",
        "all.sh",
        "tools/check.py",
        "src/data.py",
        "qa/types.py",
        "last.sh",
        "dev/lib.sh",
        "README.md",
    ];

    fn read(path: &RepoPath) -> Option<Vec<u8>> {
        let found = FILES
            .iter()
            .find(|(name, _)| RepoPath::from(*name) == *path);
        Some(
            found
                .map(|(_, text)| text.as_bytes().to_vec())
                .unwrap_or_default(),
        )
    }

    #[test]
    fn files_that_ci_files_hooks_and_scripts_run_are_found() {
        let tree: BTreeSet<RepoPath> = FILES
            .iter()
            .map(|(path, _)| *path)
            .chain(OTHERS.iter().copied())
            .map(RepoPath::from)
            .collect();
        let found: Vec<String> = run_by_checks(&tree, &read, Some("sh tests.sh"))
            .iter()
            .map(RepoPath::to_wire)
            .collect();
        assert_eq!(
            found,
            [
                "all.sh",
                "bin/lint",
                "conf/j.json",
                "dev/lib.sh",
                "dev/steps.sh",
                "last.sh",
                "qa/types.py",
                "tests.sh",
                "tools/check.py",
                "tools/run.js",
                "web/hooks.js"
            ]
        );
    }
}
