//! Resolves paths from models to files of the change.

use crate::ai::material::Shown;
use crate::diff::RepoPath;
use crate::hex;
use std::borrow::Cow;

/// The paths of the changed files, with the positions of the files.
#[derive(Debug)]
pub(crate) struct ChangedPaths<'a> {
    /// Paths on the new side; for a deleted file, on the old side.
    own: Vec<(Cow<'a, str>, usize)>,
    /// Paths before a rename.
    old: Vec<(Cow<'a, str>, usize)>,
}

impl<'a> ChangedPaths<'a> {
    pub(crate) fn new(files: impl IntoIterator<Item = &'a Shown>) -> Self {
        let (mut own, mut old) = (Vec::new(), Vec::new());
        for (i, file) in files.into_iter().enumerate() {
            own.push((text(file.path()), i));
            own.push((Cow::Borrowed(file.name.as_str()), i));
            old.extend(
                file.change
                    .entry
                    .old
                    .as_ref()
                    .map(|side| (text(&side.path), i)),
            );
            old.extend(
                file.old_name
                    .as_deref()
                    .map(|name| (Cow::Borrowed(name), i)),
            );
        }
        // A change of file type is a deletion and an addition of one path; prefer the addition.
        own.reverse();
        Self { own, old }
    }

    /// Finds the file that a text names, however the model spells the path.
    ///
    /// The exact path wins. Otherwise quotes, line numbers, `a/`, `b/`, `./`, backslashes, percent
    /// encoding and a URL scheme are removed, and the text names a file when exactly one changed
    /// path ends like it: `a.rs` for `src/a.rs`, `/tmp/x/src/a.rs` for `src/a.rs`. A path with
    /// `..`, another case, or several matches names no file.
    pub(crate) fn find(&self, named: &str) -> Option<usize> {
        find(named, &self.own).or_else(|| find(named, &self.old))
    }
}

/// Returns a path as text. A path that is not valid UTF-8 is returned in git's quoted form.
pub(super) fn text(path: &RepoPath) -> Cow<'_, str> {
    std::str::from_utf8(path.as_bytes()).map_or_else(|_| Cow::Owned(path.to_wire()), Cow::Borrowed)
}

/// Resolves a path from a model to one of several paths; see [`ChangedPaths::find`].
pub(super) fn find(named: &str, files: &[(Cow<'_, str>, usize)]) -> Option<usize> {
    let trimmed = named.trim();
    if let Some(file) = find_exact(named, files).or_else(|| find_exact(trimmed, files)) {
        return Some(file);
    }
    let bare = trimmed.trim_matches(AROUND).trim();
    let without_number = strip_number(bare).0;
    for path in [bare, without_number] {
        if let Some(file) =
            find_exact(path, files).or_else(|| find_exact(without_dots(path), files))
        {
            return Some(file);
        }
        for prefix in ["a/", "b/"] {
            if let Some(file) = path
                .strip_prefix(prefix)
                .and_then(|rest| find_exact(rest, files))
            {
                return Some(file);
            }
        }
    }
    // A file name may contain a backslash or a percent sign, so try the text unchanged first.
    let respelled = respellings(without_number);
    let mut spellings = std::iter::once(without_number).chain(respelled.iter().map(String::as_str));
    // Reject the path if any spelling of it contains `..`.
    if spellings
        .clone()
        .any(|spelling| spelling.split(['/', '\\']).any(|part| part == ".."))
    {
        return None;
    }
    spellings.find_map(|spelling| by_end(spelling, files))
}

fn find_exact(path: &str, files: &[(Cow<'_, str>, usize)]) -> Option<usize> {
    files.iter().find(|(own, _)| own == path).map(|(_, i)| *i)
}

/// Characters that models put around a path.
const AROUND: [char; 10] = ['`', '"', '\'', '*', '<', '>', '(', ')', '[', ']'];

/// Removes every leading `./`.
fn without_dots(mut path: &str) -> &str {
    while let Some(rest) = path.strip_prefix("./") {
        path = rest.trim_start_matches('/');
    }
    path
}

/// Returns alternative spellings of a path: percent-decoded, with backslashes replaced by slashes,
/// or both.
fn respellings(path: &str) -> Vec<String> {
    let decoded = percent_decoded(path);
    let mut all: Vec<String> = with_slashes(path).into_iter().collect();
    if let Some(decoded) = decoded {
        all.extend(with_slashes(&decoded));
        all.push(decoded);
    }
    // Decoding may reveal a line number at the end, so strip it again.
    let unnumbered: Vec<String> = all.iter().map(|p| strip_number(p).0.to_owned()).collect();
    all.extend(unnumbered);
    all
}

/// Replaces the backslashes of a path by slashes. Returns `None` if it has none.
fn with_slashes(path: &str) -> Option<String> {
    path.contains('\\')
        .then(|| path.replace("\\\\", "/").replace('\\', "/"))
}

/// Percent-decodes a path. Returns `None` if it contains no escape or the result is not UTF-8.
fn percent_decoded(path: &str) -> Option<String> {
    let bytes = hex::percent_decoded_leniently(path);
    (bytes.len() < path.len())
        .then(|| String::from_utf8(bytes).ok())
        .flatten()
}

/// Finds the only changed path that ends with `named`, or that `named` ends with, in whole
/// components.
fn by_end(named: &str, files: &[(Cow<'_, str>, usize)]) -> Option<usize> {
    // For `file:///C:/x` or `https://host/x`, the host or the drive is only a longer prefix.
    let path = named.split_once("://").map_or(named, |(_, rest)| rest);
    let is_absolute = path.len() < named.len() || path.starts_with('/');
    let parts: Vec<&str> = path
        .split('/')
        .filter(|part| !matches!(*part, "" | "."))
        .collect();
    if parts.is_empty() || path.ends_with('/') || parts.contains(&"..") {
        return None;
    }
    let mut matching = files.iter().filter(|(own, _)| {
        let own: Vec<&str> = own.split('/').collect();
        parts.ends_with(&own) || (!is_absolute && own.ends_with(&parts))
    });
    let (first, file) = matching.next()?;
    matching
        .all(|(own, i)| own == first || i == file)
        .then_some(*file)
}

/// Returns the line that a claim states: its number, or the one at the end of the file name.
pub(super) fn stated_line(line: Option<i64>, named: &str) -> Option<u32> {
    line_number(line).or_else(|| strip_number(named.trim().trim_matches(AROUND)).1)
}

/// Returns a number of a claim as a line number. Returns `None` if it cannot be one.
pub(super) fn line_number(n: Option<i64>) -> Option<u32> {
    u32::try_from(n?).ok().filter(|n| *n > 0)
}

/// Removes `:12`, `:12:5`, `:12-14` or `#L12` from the end of a path, and returns the line number.
fn strip_number(path: &str) -> (&str, Option<u32>) {
    // Try each colon, because the first may belong to a drive letter.
    let marks = path.match_indices([':', '#']).map(|(at, _)| at);
    let at = marks.into_iter().find(|at| is_number(&path[at + 1..]));
    match at {
        Some(at) if at > 0 => {
            let digits = path[at + 1..].trim_start_matches('L');
            let end = digits
                .bytes()
                .position(|b| !b.is_ascii_digit())
                .unwrap_or(digits.len());
            (&path[..at], digits[..end].parse().ok())
        }
        _ => (path, None),
    }
}

/// Returns true if a text is the line number at the end of a path: `12`, `12:5`, `12-14` or `L12`.
fn is_number(text: &str) -> bool {
    let is_of_number = text
        .bytes()
        .all(|b| b.is_ascii_digit() || matches!(b, b'-' | b':' | b'L'));
    is_of_number && !text.is_empty() && !text.starts_with(':')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_found_however_it_is_written() {
        let files: Vec<RepoPath> = [
            "src/a.rs",
            "src/ab/lib.rs",
            "x/lib.rs",
            "a/b.py",
            "b.py",
            "dir/with:12",
        ]
        .map(RepoPath::from)
        .into_iter()
        .chain([RepoPath::new(b"caf\xe9.txt".to_vec())])
        .collect();
        let names: Vec<_> = files
            .iter()
            .enumerate()
            .map(|(i, f)| (text(f), i))
            .collect();
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
            ("src//a.rs", "src/a.rs"),
            // The unchanged text takes precedence over alternative spellings.
            ("a/b.py", "a/b.py"),
            ("b.py", "b.py"),
            ("dir/with:12", "dir/with:12"),
            ("\"caf\\351.txt\"", "\"caf\\351.txt\""),
        ] {
            assert_eq!(
                find(named, &names).map(|i| files[i].to_wire()).as_deref(),
                Some(found),
                "{named}"
            );
        }
    }

    #[test]
    fn mod_01_any_spelling_with_the_end_of_exactly_one_changed_path_names_it() {
        let files = [
            "src/a.py",
            "src/deep/b.py",
            "c d.py",
            "caf\u{e9}.py",
            "x/twin.py",
            "y/twin.py",
            "we\\ird.py",
        ]
        .map(RepoPath::from);
        let names: Vec<_> = files
            .iter()
            .enumerate()
            .map(|(i, f)| (text(f), i))
            .collect();
        for (named, found) in [
            ("/home/u/repo/src/a.py", "src/a.py"),
            ("/tmp/claude-reviewer-x1/tree/src/a.py", "src/a.py"),
            ("/src/a.py", "src/a.py"),
            ("repo/src/a.py", "src/a.py"),
            ("./repo/src/a.py", "src/a.py"),
            ("~/repo/src/a.py:12", "src/a.py"),
            ("src\\a.py", "src/a.py"),
            (".\\src\\a.py", "src/a.py"),
            ("src\\\\deep\\\\b.py", "src/deep/b.py"),
            ("C:\\dev\\repo\\src\\a.py", "src/a.py"),
            ("C:/dev/repo/src/a.py:3", "src/a.py"),
            ("\\\\server\\share\\src\\a.py", "src/a.py"),
            ("src%2Fa.py", "src/a.py"),
            ("src%5Ca.py", "src/a.py"),
            ("c%20d.py", "c d.py"),
            ("caf%C3%A9.py", "caf\u{e9}.py"),
            ("file:///home/u/repo/src/a.py", "src/a.py"),
            ("https://host/o/r/blob/main/src/a.py#L3", "src/a.py"),
            ("a/repo/src/a.py", "src/a.py"),
            ("src/./a.py", "src/a.py"),
            ("src//a.py", "src/a.py"),
            ("<src/a.py>", "src/a.py"),
            ("[src/a.py]", "src/a.py"),
            ("deep/b.py", "src/deep/b.py"),
            ("we\\ird.py", "we\\ird.py"),
            ("/r/y/twin.py", "y/twin.py"),
        ] {
            let position = files.iter().position(|f| *f == RepoPath::from(found));
            assert_eq!(find(named, &names), position, "{named}");
        }
        for named in [
            "/home/u/repo/../src/a.py",
            "..\\src\\a.py",
            "twin.py",
            "z/twin.py",
            "/twin.py",
            "SRC\\A.PY",
            "/home/u/repo/src",
            "a.pyc",
        ] {
            assert_eq!(find(named, &names), None, "{named}");
        }
        // The text ends with both paths.
        let both = ["a.py", "src/a.py"].map(RepoPath::from);
        let names: Vec<_> = both.iter().enumerate().map(|(i, f)| (text(f), i)).collect();
        assert_eq!(find("/repo/src/a.py", &names), None);
        assert_eq!(find("src/a.py", &names), Some(1));
    }

    #[test]
    fn what_is_no_file_of_the_change_is_not_taken_for_one() {
        let files = ["src/a.rs", "src/ab/lib.rs", "x/lib.rs", "etc/passwd"].map(RepoPath::from);
        let names: Vec<_> = files
            .iter()
            .enumerate()
            .map(|(i, f)| (text(f), i))
            .collect();
        for named in [
            "SRC/A.rs",
            "src/A.rs",
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
            "null",
            "/",
            "/a.rs",
            "file:///a.rs",
            "/ab/lib.rs",
            "C:\\dev\\lib.rs",
            "src\\..\\src\\a.rs",
            "src%2F..%2Fsrc%2Fa.rs",
            "%2e%2e/src/a.rs",
            "/repo/src/./../src/a.rs",
            "/home/x/src/a.rs/",
            "/home/x/mysrc/a.rs",
        ] {
            assert_eq!(find(named, &names), None, "{named}");
        }
    }
}
