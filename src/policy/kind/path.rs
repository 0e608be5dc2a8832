//! Paths inside the repository.

/// Returns the normalized path if it is inside the repository.
pub(super) fn inside(s: &str) -> Option<String> {
    let path = s.trim_start_matches("./").trim_end_matches('/');
    let plain = !path.contains(['\\', '\0']) && !path.chars().any(char::is_control);
    let drive = path.as_bytes().get(1) == Some(&b':');
    (plain && !drive && path.len() <= 1024 && !path.split('/').any(is_forbidden_part))
        .then(|| path.to_owned())
}

/// Returns true for a part of a path that leaves the repository, is redundant, or is the folder of
/// git.
fn is_forbidden_part(part: &str) -> bool {
    part.is_empty() || part == ".." || part == "." || part.eq_ignore_ascii_case(".git")
}
