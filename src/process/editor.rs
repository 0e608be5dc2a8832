//! Opens the user's editor in the foreground.

use super::find::find_program;
use crate::env::Env;
use std::io;
use std::path::Path;
use std::process::{Command, ExitStatus};

/// The default editor.
const USUAL: &str = "vi";

/// Opens a file in the user's editor (`VISUAL`, `EDITOR`) and waits until it is closed. As in git,
/// a shell interprets the value, which may have arguments. `top` is the worktree, whose programs
/// are never run.
///
/// # Errors
/// There is no shell, or the editor does not start or fails.
pub fn edit(file: &Path, env: &Env, top: Option<&Path>) -> io::Result<()> {
    let shell = find_program("sh", env, top).map_err(|e| io::Error::other(e.to_string()))?;
    let editor = ["VISUAL", "EDITOR"]
        .into_iter()
        .find_map(|name| env.var(name))
        .unwrap_or(USUAL);
    let script = format!("{editor} \"$@\"");
    let status: ExitStatus = Command::new(shell)
        .args(["-c", &script, "editor"])
        .arg(file)
        .status()?;
    if status.success() {
        Ok(())
    } else {
        Err(io::Error::other(format!("{editor}: {status}")))
    }
}
