//! Paths as models write them, found again among the files of the change.

use crate::diff::RepoPath;

/// Finds the file that a text names: as it was shown, behind `a/`, `b/` or `./`, in quotes of any kind, with a line
/// number behind it, or by as much of its end as no other file has.
///
/// A path that is absolute, climbs out with `..`, or differs in case names no file of the change.
pub(crate) fn find<'a>(named: &str, files: impl Iterator<Item = &'a RepoPath> + Clone) -> Option<&'a RepoPath> {
    let exactly = |path: &str| {
        files.clone().find(|f| match std::str::from_utf8(f.as_bytes()) {
            Ok(own) => own == path,
            // A name that is no UTF-8 was shown in git's quoted form.
            Err(_) => f.to_wire() == path,
        })
    };
    let trimmed = named.trim();
    if let Some(file) = exactly(named).or_else(|| exactly(trimmed)) {
        return Some(file);
    }
    let bare = trimmed.trim_matches(['`', '"', '\'', '*']).trim();
    let without_number = strip_number(bare).0;
    for path in [bare, without_number] {
        let mut path = path;
        if let Some(file) = exactly(path) {
            return Some(file);
        }
        for prefix in ["a/", "b/"] {
            if let Some(file) = path.strip_prefix(prefix).and_then(exactly) {
                return Some(file);
            }
        }
        while let Some(rest) = path.strip_prefix("./") {
            path = rest;
            if let Some(file) = exactly(path) {
                return Some(file);
            }
        }
    }
    let end = without_number.trim_start_matches("./");
    if end.is_empty() || end.starts_with('/') || end.split('/').any(|part| part == ".." || part.is_empty()) {
        return None;
    }
    let mut ending = files.filter(|f| {
        let before = f.as_bytes().strip_suffix(end.as_bytes());
        before.is_some_and(|b| b.ends_with(b"/"))
    });
    let first = ending.next()?;
    ending.all(|f| f == first).then_some(first)
}

/// Cuts `:12`, `:12:5`, `:12-14` or `#L12` off the end of a path, and returns the line.
pub(super) fn strip_number(path: &str) -> (&str, Option<u32>) {
    let is_number = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'-' | b':' | b'L'));
    let at = path.find(':').into_iter().chain(path.find("#L")).find(|at| is_number(&path[at + 1..]));
    match at {
        Some(at) if at > 0 => {
            let digits = path[at + 1..].trim_start_matches('L');
            let end = digits.bytes().position(|b| !b.is_ascii_digit()).unwrap_or(digits.len());
            (&path[..at], digits[..end].parse().ok())
        }
        _ => (path, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_found_however_it_is_written() {
        let files: Vec<RepoPath> = ["src/a.rs", "src/ab/lib.rs", "x/lib.rs", "a/b.py", "b.py", "dir/with:12"]
            .map(RepoPath::from)
            .into_iter()
            .chain([RepoPath::new(b"caf\xe9.txt".to_vec())])
            .collect();
        let find = |named: &str| find(named, files.iter()).map(RepoPath::to_wire);
        for (named, found) in [
            ("src/a.rs", "src/a.rs"),
            ("a/src/a.rs", "src/a.rs"),
            ("b/src/a.rs", "src/a.rs"),
            ("./src/a.rs", "src/a.rs"),
            ("././src/a.rs", "src/a.rs"),
            (" `src/a.rs` ", "src/a.rs"),
            ("\"src/a.rs\"", "src/a.rs"),
            ("src/a.rs:12", "src/a.rs"),
            ("src/a.rs:12:5", "src/a.rs"),
            ("src/a.rs:12-14", "src/a.rs"),
            ("src/a.rs#L12", "src/a.rs"),
            ("a.rs", "src/a.rs"),
            ("ab/lib.rs", "src/ab/lib.rs"),
            // As it is before as it could be.
            ("a/b.py", "a/b.py"),
            ("b.py", "b.py"),
            ("dir/with:12", "dir/with:12"),
            ("\"caf\\351.txt\"", "\"caf\\351.txt\""),
        ] {
            assert_eq!(find(named).as_deref(), Some(found), "{named}");
        }
    }

    #[test]
    fn what_is_no_file_of_the_change_is_not_taken_for_one() {
        let files: Vec<RepoPath> = ["src/a.rs", "src/ab/lib.rs", "x/lib.rs", "etc/passwd"].map(RepoPath::from).into();
        for named in [
            "SRC/A.rs",
            "src/A.rs",
            "/src/a.rs",
            "/etc/passwd",
            "../../etc/passwd",
            "../src/a.rs",
            "src/../src/a.rs",
            "lib.rs",
            "b.rs",
            "",
            ".",
            "/",
            "rs",
            "src",
            "src/",
            "src//a.rs",
            "null",
        ] {
            assert_eq!(find(named, files.iter()), None, "{named}");
        }
    }
}
