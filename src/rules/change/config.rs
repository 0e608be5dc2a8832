//! Settings that make a reader's tools run commands, and submodules that change their origin.

use super::{added, at_line, removed};
use crate::diff::{RepoPath, TextChange};
use crate::rules::report::Reporter;
use std::collections::HashSet;

/// Reports `.gitmodules` that fetch without protection, or from a changed origin.
pub(super) fn submodules(path: &RepoPath, text: &TextChange, out: &mut Reporter<'_>) {
    let old: Vec<&str> = removed(text).filter_map(|l| url(l.text)).collect();
    let owners: HashSet<String> = old.iter().map(|o| owner(o)).collect();
    let gone = old.len();
    let mut came = 0;
    for line in added(text) {
        let Some(address) = url(line.text) else {
            continue;
        };
        came += 1;
        if address.starts_with("http://") || address.starts_with("git://") {
            at_line(
                out,
                "submodule-insecure-url",
                path,
                line.number,
                line.text,
                None,
            );
        } else if came <= gone && !owners.contains(&owner(address)) {
            let detail = format!("it was {}", old.get(came - 1).unwrap_or(&"another"));
            at_line(
                out,
                "submodule-url-changed",
                path,
                line.number,
                line.text,
                Some(&detail),
            );
        }
    }
}

/// Returns the address of a `url = …` line.
fn url(line: &[u8]) -> Option<&str> {
    let line = std::str::from_utf8(line).ok()?.trim();
    let rest = line.strip_prefix("url")?.trim_start();
    rest.strip_prefix('=').map(str::trim)
}

/// Returns host and owner of an address, in the same form for SSH and HTTPS.
fn owner(address: &str) -> String {
    let rest = address.split_once("://").map_or(address, |(_, r)| r);
    let rest = rest.split_once('@').map_or(rest, |(_, r)| r);
    let rest = rest.replacen(':', "/", 1);
    let mut parts = rest.split('/');
    format!(
        "{}/{}",
        parts.next().unwrap_or_default(),
        parts.next().unwrap_or_default()
    )
    .to_ascii_lowercase()
}

/// Reports settings of agents, editors and package managers that start programs automatically.
pub(super) fn scan(path: &RepoPath, text: &TextChange, out: &mut Reporter<'_>) {
    let Ok(full) = std::str::from_utf8(path.as_bytes()) else {
        return;
    };
    if is_any_of(
        full,
        &[
            ".claude/settings.json",
            ".claude/settings.local.json",
            ".mcp.json",
            ".cursor/mcp.json",
            ".vscode/mcp.json",
            ".gemini/settings.json",
        ],
    ) {
        for line in added(text).filter(|l| key(l.text) == Some("command")) {
            at_line(
                out,
                "config-runs-command",
                path,
                line.number,
                line.text,
                Some("a coding agent runs it"),
            );
        }
    } else if is_any_of(full, &[".vscode/tasks.json"]) {
        for line in
            added(text).filter(|l| key(l.text) == Some("runOn") && contains(l.text, "folderOpen"))
        {
            at_line(
                out,
                "config-runs-command",
                path,
                line.number,
                line.text,
                Some("the editor runs it when the folder is opened"),
            );
        }
    } else if is_any_of(
        full,
        &[".devcontainer/devcontainer.json", ".devcontainer.json"],
    ) {
        for line in added(text).filter(|l| key(l.text) == Some("initializeCommand")) {
            at_line(
                out,
                "config-runs-command",
                path,
                line.number,
                line.text,
                Some("it runs on the developer's own machine"),
            );
        }
    } else if is_any_of(full, &["package.json"]) {
        // A removed line with the same key means that the script is changed, not new.
        let gone: HashSet<&str> = removed(text).filter_map(|l| key(l.text)).collect();
        for line in added(text) {
            let name =
                key(line.text).filter(|k| matches!(*k, "preinstall" | "install" | "postinstall"));
            if name.is_some_and(|k| !gone.contains(k)) {
                at_line(
                    out,
                    "install-script-added",
                    path,
                    line.number,
                    line.text,
                    None,
                );
            }
        }
    }
}

/// Returns true if a path is one of `paths`, in the root of the repository or in another folder.
fn is_any_of(path: &str, paths: &[&str]) -> bool {
    paths
        .iter()
        .any(|p| path == *p || path.ends_with(&format!("/{p}")))
}

/// Returns the key of a JSON line `"key": …` whose value is on the same line.
pub(super) fn key(line: &[u8]) -> Option<&str> {
    let line = std::str::from_utf8(line)
        .ok()?
        .trim_start()
        .trim_start_matches(['{', ' ']);
    let (name, rest) = line.strip_prefix('"')?.split_once('"')?;
    let value = rest.trim_start().strip_prefix(':')?.trim();
    (!value.is_empty()).then_some(name)
}

fn contains(line: &[u8], what: &str) -> bool {
    memchr::memmem::find(line, what.as_bytes()).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_one_owner_are_the_same_in_every_spelling() {
        assert_eq!(
            owner("git@github.com:rust-lang/book.git"),
            owner("https://github.com/rust-lang/book")
        );
        assert_ne!(
            owner("https://github.com/rust-lang/book"),
            owner("https://github.com/someone/book")
        );
    }

    #[test]
    fn keys_of_json_lines_are_read() {
        assert_eq!(
            key(br#"  "postinstall": "node x.js","#),
            Some("postinstall")
        );
        assert_eq!(key(br#"  "scripts": {"#), Some("scripts"));
        assert_eq!(key(b"  postinstall: x"), None);
    }
}
