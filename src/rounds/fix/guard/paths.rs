//! Classifies paths of files that check the code.

use super::SHELLS;
use super::classes::{CI, CLASSES, Class, HOOK};
use crate::diff::RepoPath;

/// Extensions of configuration files. A tool that reads one of them often reads others too.
const CONFIGURATIONS: &[&str] = &[
    "yml",
    "yaml",
    "json",
    "jsonc",
    "json5",
    "toml",
    "ini",
    "cfg",
    "conf",
    "xml",
    "hcl",
    "kdl",
    "pkl",
    "cue",
    "star",
    "jsonnet",
    "neon",
    "dist",
    "rc",
    "properties",
];
/// Words in the name of a script that checks the code.
const CHECKS: &[&str] = &[
    "test",
    "tests",
    "ci",
    "lint",
    "check",
    "checks",
    "verify",
    "coverage",
    "precommit",
    "validate",
];
/// Names of folders with tools of a project.
const TOOLS: &[&str] = &[
    "scripts",
    "script",
    "tools",
    "tool",
    "bin",
    "dev",
    "devtools",
    "hack",
    "build",
    "etc",
    "contrib",
    "misc",
    "infra",
    "ops",
    "util",
    "utils",
    ".config",
    "config",
    "git",
    "make",
    "support",
    "automation",
    "devops",
    "deploy",
];

/// Returns the class of a path, to follow "is", or `None` if a fix may change it.
pub(super) fn class(path: &RepoPath, of_policy: &[String]) -> Option<&'static str> {
    if is_below(path, of_policy) {
        return Some("named by the policy of the review");
    }
    let path = String::from_utf8_lossy(path.as_bytes()).to_lowercase();
    let name = path.rsplit('/').next().unwrap_or(&path);
    if let Some(class) = of_folders(&path, name) {
        return Some(class);
    }
    // A file of this name in a subfolder often belongs to a task queue.
    if path == "tasks.py" {
        return Some("a build script");
    }
    CLASSES
        .iter()
        .find(|class| class.has(&path, name))
        .map(|class| class.name)
}

impl Class {
    /// Returns true if the class contains a path with this file name.
    fn has(&self, path: &str, name: &str) -> bool {
        path.split('/').any(|part| self.parts.contains(&part))
            || self.files.contains(&name)
            || self.bases.iter().any(|base| is_configuration(name, base))
            || self.starts.iter().any(|start| name.starts_with(start))
            || self.ends.iter().any(|end| name.ends_with(end))
            || self.starts.contains(&".claude-reviewer")
                && path.split('/').any(|p| p.starts_with(".claude-reviewer"))
    }
}

/// Returns true if a path equals an entry, is below one, or has the file name of an entry without a
/// folder.
pub(super) fn is_below(path: &RepoPath, entries: &[String]) -> bool {
    let path = String::from_utf8_lossy(path.as_bytes()).to_lowercase();
    entries.iter().any(|entry| {
        let entry = entry
            .trim_start_matches("./")
            .trim_end_matches('/')
            .to_lowercase();
        // The name of a conventions file applies in every folder.
        let is_named = !entry.contains('/') && path.rsplit('/').next() == Some(entry.as_str());
        !entry.is_empty() && (path == entry || is_named || path.starts_with(&format!("{entry}/")))
    })
}

/// Returns true if a file has the name of a tool's configuration, with a configuration extension or
/// none.
fn is_configuration(name: &str, base: &str) -> bool {
    match name.strip_prefix(base) {
        Some("") => true,
        Some(rest) => {
            rest.starts_with('.')
                && CONFIGURATIONS
                    .iter()
                    .any(|e| rest.rsplit('.').next() == Some(*e))
        }
        None => false,
    }
}

/// Returns the class of a path by ambiguous folder names: `ci`, `jenkins`, `hooks`, and folders
/// with tools.
fn of_folders(path: &str, name: &str) -> Option<&'static str> {
    let folders: Vec<&str> = path
        .split('/')
        .rev()
        .skip(1)
        .collect::<Vec<_>>()
        .into_iter()
        .rev()
        .collect();
    if has_tool_folder(
        &folders,
        &[
            "ci",
            "jenkins",
            ".jenkins",
            "ci-scripts",
            "ci_scripts",
            "cicd",
            "ci-cd",
        ],
    ) {
        return Some(CI);
    }
    let (stem, extension) = name.split_once('.').unwrap_or((name, ""));
    // A React hook, such as `useTitle.ts`.
    let is_react = name.starts_with("use")
        && matches!(
            extension,
            "ts" | "tsx" | "js" | "jsx" | "test.ts" | "test.tsx"
        );
    if has_tool_folder(&folders, &["hooks", "git-hooks"]) && !is_react || GIT_HOOKS.contains(&stem)
    {
        return Some(HOOK);
    }
    let is_tool_folder = folders.last().is_none_or(|folder| TOOLS.contains(folder));
    // A program may have no extension.
    let is_script = extension.is_empty() || SHELLS.contains(&extension);
    let is_check =
        is_tool_folder && is_script && stem.split(['-', '_']).any(|w| CHECKS.contains(&w));
    is_check.then_some("a script that checks the code")
}

/// Returns true if one of the folders has one of the names, and is at the top or below a folder
/// with tools.
fn has_tool_folder(folders: &[&str], names: &[&str]) -> bool {
    let parents = std::iter::once(None).chain(folders.iter().map(Some));
    folders.iter().zip(parents).any(|(folder, parent)| {
        names.contains(folder) && parent.is_none_or(|parent| TOOLS.contains(parent))
    })
}

/// Names of git hooks that a change may run.
const GIT_HOOKS: &[&str] = &[
    "pre-commit",
    "pre-push",
    "commit-msg",
    "prepare-commit-msg",
    "post-checkout",
    "post-commit",
    "post-merge",
    "post-rewrite",
    "pre-merge-commit",
    "pre-receive",
    "post-receive",
    "pre-rebase",
    "pre-applypatch",
    "applypatch-msg",
    "post-applypatch",
    "pre-auto-gc",
    "reference-transaction",
    "fsmonitor-watchman",
];
