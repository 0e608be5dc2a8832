//! Writes prompts to a file that only its owner can read, for debugging.

use super::ask::Ask;
use crate::error::{Error, Result};
use crate::shell;
use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::sync::Mutex;

/// The file that `--debug-prompts` names.
#[derive(Debug)]
pub struct Prompts(Mutex<File>);

impl Prompts {
    /// Opens or creates the file, accessible only to the owner.
    ///
    /// # Errors
    ///
    /// Returns a usage error if it cannot be created, is not a regular file, or is readable by
    /// others.
    pub fn open(path: &Path) -> Result<Self> {
        let mut options = File::options();
        options.append(true).create(true);
        #[cfg(unix)]
        {
            use std::os::unix::fs::OpenOptionsExt as _;
            options.mode(0o600).custom_flags(NO_WAIT);
        }
        let file = options
            .open(path)
            .map_err(|e| unusable(path, "it cannot be written").caused_by(&e))?;
        let meta = file
            .metadata()
            .map_err(|e| unusable(path, "cannot read its metadata").caused_by(&e))?;
        if !meta.is_file() {
            return Err(unusable(path, "not a regular file"));
        }
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            if meta.permissions().mode() & 0o077 != 0 {
                return Err(unusable(path, "others may read it").hint(format!(
                    "chmod 600 {}",
                    shell::quoted(&path.to_string_lossy())
                )));
            }
        }
        Ok(Self(Mutex::new(file)))
    }

    /// Appends a question as it is sent. A write error does not affect the review.
    pub(super) fn append(&self, backend: &str, ask: &Ask<'_>) {
        let p = ask.prompt;
        let mut text = format!(
            "=== {backend}\n--- system\n{}\n--- context\n{}\n",
            p.system, p.context
        );
        text.push_str(&format!(
            "--- chunk\n{}{}\n--- task\n{}\n",
            p.manifest.text, p.chunk, p.task
        ));
        if let Some(repair) = ask.repair {
            text.push_str(&format!(
                "--- repair ({})\n{}\n",
                repair.problem, repair.reply
            ));
        }
        if let Ok(mut file) = self.0.lock() {
            let _ = file.write_all(text.as_bytes());
        }
    }
}

/// Builds the error of a file that prompts cannot be appended to.
fn unusable(path: &Path, why: &str) -> Error {
    Error::usage(format!("--debug-prompts {}: {why}", path.display()))
}

/// Opens a pipe without waiting for a reader.
#[cfg(unix)]
const NO_WAIT: i32 = rustix::fs::OFlags::NONBLOCK.bits() as i32;
