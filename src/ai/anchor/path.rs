//! Paths as models write them, found again among the files of the change.

use crate::ai::material::Shown;
use crate::diff::RepoPath;
use std::borrow::Cow;

/// What the files of a change are called, and which file that is.
#[derive(Debug)]
pub(crate) struct Names<'a> {
    /// On the new side, or where the file was before it was deleted.
    own: Vec<(Cow<'a, str>, usize)>,
    /// Before a file was renamed.
    old: Vec<(Cow<'a, str>, usize)>,
}

impl<'a> Names<'a> {
    pub(crate) fn new(files: impl IntoIterator<Item = &'a Shown>) -> Self {
        let (mut own, mut old) = (Vec::new(), Vec::new());
        for (i, file) in files.into_iter().enumerate() {
            own.push((path(file.path()), i));
            own.push((Cow::Borrowed(file.name.as_str()), i));
            old.extend(file.change.entry.old.as_ref().map(|side| (path(&side.path), i)));
            old.extend(file.old_name.as_deref().map(|name| (Cow::Borrowed(name), i)));
        }
        // Of a change of type, a deletion and an addition of one path, the addition is meant.
        own.reverse();
        Self { own, old }
    }

    /// Finds the file that a text names: as it was shown, behind `a/`, `b/` or `./`, in quotes of any kind, with a line
    /// number behind it, or by as much of its end as no other file has.
    ///
    /// A path that is absolute, climbs out with `..`, or differs in case names no file of the change.
    pub(crate) fn find(&self, named: &str) -> Option<usize> {
        find(named, &self.own).or_else(|| find(named, &self.old))
    }
}

/// Returns a path as text; a name that is no UTF-8 in git's quoted form.
fn path(path: &RepoPath) -> Cow<'_, str> {
    std::str::from_utf8(path.as_bytes()).map_or_else(|_| Cow::Owned(path.to_wire()), Cow::Borrowed)
}

fn find(named: &str, files: &[(Cow<'_, str>, usize)]) -> Option<usize> {
    let exactly = |path: &str| files.iter().find(|(own, _)| own == path).map(|(_, i)| *i);
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
    let ends = |(own, _): &&(Cow<'_, str>, usize)| own.strip_suffix(end).is_some_and(|before| before.ends_with('/'));
    let mut ending = files.iter().filter(ends);
    let (first, file) = ending.next()?;
    ending.all(|(own, i)| own == first || i == file).then_some(*file)
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
        let names: Vec<_> = files.iter().enumerate().map(|(i, f)| (path(f), i)).collect();
        let find = |named: &str| find(named, &names).map(|i| files[i].to_wire());
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
        let files = ["src/a.rs", "src/ab/lib.rs", "x/lib.rs", "etc/passwd"].map(RepoPath::from);
        let names: Vec<_> = files.iter().enumerate().map(|(i, f)| (path(f), i)).collect();
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
            assert_eq!(find(named, &names), None, "{named}");
        }
    }
}
