//! Recognizes the hook managers husky and lefthook, which write the hooks of a repository
//! themselves: an installation is refused with the entry for their configuration.

use super::{HookFile, HookPlace, OWN_HOOKS, contains, exists, line};
use crate::error::{Error, Result};
use crate::hooks::Hook;

/// Rejects a folder of husky, which husky generates again at every `npm install`.
pub(super) fn refuse_husky(place: &HookPlace, hooks: &[Hook]) -> Result<()> {
    let (dir, usual) = (&place.hooks.path, place.worktree.join(".husky"));
    let folder = if dir.ends_with("_") && exists(&dir.join("h")) {
        dir.parent().unwrap_or(dir)
    } else if exists(&dir.join("_/husky.sh")) {
        dir
    } else if place.hooks.configured.is_none() && usual.is_dir() {
        // husky is not installed in this clone yet. Its installation will set another folder.
        &usual
    } else {
        return Ok(());
    };
    let folder = folder.strip_prefix(&place.worktree).unwrap_or(folder);
    let advice = hooks.iter().map(|hook| {
        format!(
            "let husky run it: echo '{}' >> {}",
            line(*hook),
            folder.join(hook.name()).display()
        )
    });
    let error = Error::usage("husky runs the hooks of this repository, and would overwrite others");
    let error = advice.fold(error, Error::hint);
    Err(match place.hooks.configured {
        None => error.hint(format!("or keep husky out of this clone: {OWN_HOOKS}")),
        Some(_) => error,
    })
}

/// Rejects a hook of lefthook, which lefthook writes again whenever its configuration changes.
pub(super) fn refuse_lefthook(place: &HookPlace, hooks: &[Hook], found: &HookFile) -> Result<()> {
    let by_lefthook = matches!(found, HookFile::Other(text) if contains(text, b"lefthook"));
    let configuration = ["lefthook", ".lefthook", ".config/lefthook"]
        .iter()
        .flat_map(|stem| {
            ["yml", "yaml", "toml", "json", "jsonc"].map(|ext| format!("{stem}.{ext}"))
        })
        .find(|name| exists(&place.worktree.join(name)));
    if !by_lefthook && configuration.is_none() {
        return Ok(());
    }
    let file = configuration.as_deref().unwrap_or("lefthook.yml");
    let error =
        Error::usage("lefthook runs the hooks of this repository, and would overwrite others");
    Err(hooks
        .iter()
        .map(|hook| lefthook_entry(*hook, file))
        .fold(error, Error::hint))
}

/// Returns the hint to add an entry to the configuration of lefthook: a line for an existing file,
/// or a command that appends to it.
fn lefthook_entry(hook: Hook, file: &str) -> String {
    let name = hook.name();
    let (run, has_input) = match hook {
        Hook::PreCommit | Hook::PostCommit => (line(hook), false),
        Hook::PrePush => (
            format!("claude-reviewer review --hook {name} --hook-args {{1}} {{2}}"),
            true,
        ),
    };
    let rest = |text: &'static str| if has_input { text } else { "" };
    match file.rsplit('.').next() {
        // A separate table at the end: a dotted key fails if the file already has a table of the
        // hook.
        Some("toml") => format!(
            "let lefthook run it: printf '%s\\n' '' '[{name}.commands.claude-reviewer]' 'run = \"{run}\"'{} >> {file}",
            rest(" 'use_stdin = true'")
        ),
        Some("json" | "jsonc") => format!(
            "let lefthook run it; in {file}, below {name}, commands, add: \
             \"claude-reviewer\": {{ \"run\": \"{run}\"{} }}",
            rest(", \"use_stdin\": true")
        ),
        _ => format!(
            "let lefthook run it; in {file}, below {name}, commands, add: claude-reviewer: {{ run: '{run}'{} }}",
            rest(", use_stdin: true")
        ),
    }
}
