//! The container command of the sandbox, and the folders that it shows.

use super::path::inside;
use super::{Complaint, ValueKind, complaint};

/// Checks a container command.
pub(super) fn check_command(words: &[String]) -> Result<(), Complaint> {
    let hint = "write [\"podman\", \"run\", \"--rm\", \"--network=none\", \"--volume={tree}:{tree}\", \"--workdir={tree}\", \"IMAGE\"]";
    let why = match words.split_first() {
        None => "it is empty",
        // A relative path would name a program of the repository under review.
        Some((program, _))
            if program.contains('/') && !std::path::Path::new(program).is_absolute() =>
        {
            "the program is a relative path"
        }
        Some((_, arguments)) if !arguments.iter().any(|a| a.contains("{tree}")) => {
            "{tree} is missing"
        }
        Some(_) => return Ok(()),
    };
    Err(ValueKind::Sandbox.unmet(why).hinted(hint))
}

/// Checks a folder that a sandbox shows. A relative one is inside the repository.
pub(super) fn folder(s: &str) -> Result<String, Complaint> {
    let is_free = s == "~" || s.starts_with("~/") || std::path::Path::new(s).is_absolute();
    match inside(s) {
        _ if is_free => Ok(s.to_owned()),
        Some(path) => Ok(path),
        None => Err(
            complaint(format!("has {s:?}, which is outside of the repository")).hinted(
                "write an absolute folder, a folder below ~/, or a folder of the repository",
            ),
        ),
    }
}
