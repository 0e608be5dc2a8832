//! The file names in a patch: with and without prefixes, quoted, with timestamps.

use super::HeaderFault;
use crate::diff::RepoPath;
use crate::diff::unified::unquote;

/// The names of the two sides, without the patch's prefixes.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct NamePair {
    pub(super) old: Vec<u8>,
    pub(super) new: Vec<u8>,
}

impl NamePair {
    fn same(name: &[u8]) -> Self {
        Self {
            old: name.to_vec(),
            new: name.to_vec(),
        }
    }
}

/// Git's prefixes of names: `a/` and `b/`; with `diff.mnemonicPrefix` those of commit, index,
/// worktree, object, and of `--no-index`.
const PREFIXES: &[u8] = b"abciwo12";

/// Splits a `diff --git` line into its two names, which are the same except for the prefix.
///
/// Git does not mark where the first name ends. Returns `None` if the line is ambiguous.
pub(super) fn pair_of_git_line(names: &[u8]) -> Option<NamePair> {
    if let Some((old, used)) = unquote(names) {
        let rest = names[used..].strip_prefix(b" ")?;
        let new = match unquote(rest) {
            Some((new, used)) if used == rest.len() => new,
            Some(_) => return None,
            None => rest.to_vec(),
        };
        return without_prefix(&old, &new);
    }
    if let Some(at) = memchr::memmem::find(names, b" \"") {
        let (new, used) = unquote(&names[at + 1..])?;
        return if at + 1 + used == names.len() {
            without_prefix(&names[..at], &new)
        } else {
            None
        };
    }
    let middle = names.len() / 2;
    if names.get(middle) == Some(&b' ') && names[..middle] == names[middle + 1..] {
        return Some(NamePair::same(&names[..middle]));
    }
    // The parts after the first slash on both sides of a blank must be equal. As the blank moves
    // right, the first name grows and the second shrinks, so they have the same length at most
    // once.
    let first = memchr::memchr(b'/', names)?;
    let mut next = first;
    for at in memchr::memchr_iter(b' ', names).filter(|at| *at > first) {
        if next < at {
            next = at + memchr::memchr(b'/', &names[at..])?;
        }
        let (old, new) = (&names[first + 1..at], &names[next + 1..]);
        if old.len() == new.len() {
            return (old == new && !new.is_empty()).then(|| NamePair::same(new));
        }
    }
    None
}

/// Removes the first component of two names that differ only in it.
fn without_prefix(old: &[u8], new: &[u8]) -> Option<NamePair> {
    if old == new {
        return Some(NamePair::same(new));
    }
    let (_, old) = split_first(old)?;
    let (_, new) = split_first(new)?;
    (old == new && !new.is_empty()).then(|| NamePair::same(new))
}

fn split_first(name: &[u8]) -> Option<(&[u8], &[u8])> {
    let at = memchr::memchr(b'/', name)?;
    Some((&name[..at], &name[at + 1..]))
}

/// Returns the names of the `---` and `+++` lines, from the text after the marks.
pub(super) fn pair_of_names(old: &[u8], new: &[u8]) -> NamePair {
    let (old, new) = (name(old), name(new));
    match (is_null(&old), is_null(&new)) {
        (true, _) => return NamePair::same(if has_prefix(&new) { &new[2..] } else { &new }),
        (_, true) => return NamePair::same(if has_prefix(&old) { &old[2..] } else { &old }),
        _ => {}
    }
    if old == new {
        return NamePair::same(&new);
    }
    if has_prefix(&old) && has_prefix(&new) && old[0] != new[0] {
        return NamePair::same(&new[2..]);
    }
    // Two trees, `old/src/a.c` and `new/src/a.c`: use the common end of the names.
    let common = old
        .iter()
        .rev()
        .zip(new.iter().rev())
        .take_while(|(a, b)| a == b)
        .count();
    let tail = &new[new.len() - common..];
    let whole = [&old, &new].iter().any(|n| n.len() == common);
    match split_first(tail) {
        _ if whole && !tail.is_empty() => NamePair::same(tail),
        Some((_, rest)) if !rest.is_empty() => NamePair::same(rest),
        _ => NamePair::same(&new),
    }
}

/// Returns true if a name begins with one of git's prefixes, such as `a/`.
fn has_prefix(name: &[u8]) -> bool {
    name.get(1) == Some(&b'/') && PREFIXES.contains(&name[0]) && name.len() > 2
}

/// Parses a name of a `---` or `+++` line: quoted, or up to the tab before the timestamp. Removes
/// the `./` that `diff -r . OTHER` adds.
fn name(label: &[u8]) -> Vec<u8> {
    let name = match unquote(label) {
        Some((name, _)) => name,
        None => label
            .split(|b| *b == b'\t')
            .next()
            .unwrap_or_default()
            .to_vec(),
    };
    let mut rest = &name[..];
    while let Some(below) = rest.strip_prefix(b"./") {
        rest = below;
    }
    rest.to_vec()
}

/// Returns true if a name stands for a missing file.
pub(super) fn is_null(label: &[u8]) -> bool {
    label.split(|b| *b == b'\t').next() == Some(b"/dev/null")
}

/// Returns true if a `---` or `+++` line means that its side does not exist: `/dev/null`, the epoch
/// of GNU diff, or the text of Subversion.
pub(super) fn is_nothing(line: &[u8]) -> bool {
    let Some(label) = line.get(4..) else {
        return false;
    };
    let stamp = label.splitn(2, |b| *b == b'\t').nth(1).unwrap_or_default();
    is_null(label)
        || stamp.starts_with(b"1970-01-01 ")
        || stamp.starts_with(b"1969-12-31 ")
        || stamp.starts_with(b"Thu Jan 01 00:00:00 1970")
        || stamp == b"(nonexistent)"
        || stamp == b"(revision 0)"
}

/// The message about an absolute name: it has no position in the repository.
const ABSOLUTE: &str = "file name is absolute, not relative to the repository";

/// Converts a name to a path. Rejects names that git does not store and `git apply` does not write.
pub(super) fn path(name: &[u8]) -> Result<RepoPath, HeaderFault> {
    if name.is_empty() || name.contains(&0) {
        return Err(HeaderFault::Name("file name is empty or contains a NUL"));
    }
    if name[0] == b'/' {
        return Err(HeaderFault::Name(ABSOLUTE));
    }
    stays(name)?;
    Ok(RepoPath::new(name))
}

/// Validates a name of a `---` or `+++` line. Ignores a leading `..`, as in `../old/x`, because it
/// may not be part of the common name of both lines; [`path`] rejects one that is.
pub(super) fn refuse_label(label: &[u8]) -> Result<(), HeaderFault> {
    let name = name(label);
    if is_null(label) {
        return Ok(());
    }
    if name.first() == Some(&b'/') {
        return Err(HeaderFault::Name(ABSOLUTE));
    }
    let mut rest = &name[..];
    while let Some(below) = rest.strip_prefix(b"../") {
        rest = below;
    }
    stays(rest)
}

/// Rejects components that lead out of their folder, are empty, or belong to git.
fn stays(name: &[u8]) -> Result<(), HeaderFault> {
    for part in name.split(|b| *b == b'/') {
        match part {
            b".." => {
                return Err(HeaderFault::Name(
                    "file name with .. may lead out of the repository",
                ));
            }
            b"" | b"." => return Err(HeaderFault::Name("file name has an empty component or .")),
            part if is_dot_git(part) => {
                return Err(HeaderFault::Name(
                    "file name in .git, which contains git's own data",
                ));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Returns true if a component is `.git`, or a name that some file systems treat as `.git`: as in
/// git, on every system.
fn is_dot_git(part: &[u8]) -> bool {
    let end = part.iter().position(|b| *b == b':').unwrap_or(part.len());
    let end = part[..end]
        .iter()
        .rposition(|b| !matches!(b, b'.' | b' '))
        .map_or(0, |i| i + 1);
    [&b".git"[..], b"git~1"]
        .iter()
        .any(|git| part[..end].eq_ignore_ascii_case(git))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dif_06_tells_the_names_of_a_git_line_apart() {
        for (line, want) in [
            (&b"a/x.rs b/x.rs"[..], Some(&b"x.rs"[..])),
            (b"a/a b b/a b", Some(b"a b")),
            (b"a/x b/y b/x b/y", Some(b"x b/y")),
            (b"x.rs x.rs", Some(b"x.rs")),
            (b"src/x.rs src/x.rs", Some(b"src/x.rs")),
            (b"i/x w/x", Some(b"x")),
            (b"old/x new/x", Some(b"x")),
            (b"\"a/t\\tb\" \"b/t\\tb\"", Some(b"t\tb")),
            (
                b"\"a/caf\\303\\251\" \"b/caf\\303\\251\"",
                Some("café".as_bytes()),
            ),
            (b"a/x b/y", None),
            (b"a/x", None),
            (b"", None),
            (b"\"a/x\" ", None),
        ] {
            let got = pair_of_git_line(line).map(|p| p.new);
            assert_eq!(got.as_deref(), want, "{}", String::from_utf8_lossy(line));
        }
    }

    #[test]
    fn finds_the_name_that_two_labels_mean() {
        for (old, new, want) in [
            ("a/x.c", "b/x.c", "x.c"),
            ("x.c", "x.c", "x.c"),
            ("/dev/null", "b/x.c", "x.c"),
            ("a/x.c", "/dev/null", "x.c"),
            (
                "old/src/x.c\t2024-01-01 00:00:00",
                "new/src/x.c\t2024-01-02 00:00:00",
                "src/x.c",
            ),
            ("../old/x.c", "x.c", "x.c"),
            ("./x.c.orig", "./x.c", "x.c"),
            ("./src/x.c", "../new/src/x.c", "src/x.c"),
            ("x.c.orig", "x.c", "x.c"),
            ("x.c\t(revision 3)", "x.c\t(working copy)", "x.c"),
            ("a/dir/x", "b/other/x", "other/x"),
            ("i/with space", "w/with space\t", "with space"),
        ] {
            assert_eq!(
                String::from_utf8_lossy(&pair_of_names(old.as_bytes(), new.as_bytes()).new),
                want
            );
        }
    }

    #[test]
    fn a_name_stays_inside_the_tree() {
        for name in [
            "x",
            "a/x",
            "...",
            "..x/y..",
            ".github/x",
            ".gitignore",
            "a/.gitmodules",
            "git",
            "a b/.x",
            "git~2",
        ] {
            assert_eq!(path(name.as_bytes()), Ok(RepoPath::from(name)));
            assert_eq!(refuse_label(name.as_bytes()), Ok(()), "{name}");
        }
        for name in [
            "/etc/passwd",
            "../../x",
            "a/../../x",
            "a/../x",
            "..",
            "a/..",
            ".",
            "./x",
            "a/./x",
            "a//x",
            "a/",
            "//x",
            "",
            "a\0b",
            ".git/config",
            "a/.git/hooks/x",
            ".GIT/config",
            ".git",
            ".git./x",
            ".git /x",
            "GIT~1/x",
            ".git::$I/x",
        ] {
            assert!(path(name.as_bytes()).is_err(), "{name:?}");
        }
        for label in [
            "/etc/passwd",
            "b/../x",
            "../a/../x",
            "b//x",
            "b/./x",
            "b/.git/config",
            "\"b/../\\303\"",
            "/dev/null/x",
        ] {
            assert!(refuse_label(label.as_bytes()).is_err(), "{label:?}");
        }
        for label in [
            "/dev/null",
            "/dev/null\t1970",
            "../old/x",
            "./x",
            "././x\t2024",
            "b/x\t/etc/../x",
        ] {
            assert_eq!(refuse_label(label.as_bytes()), Ok(()), "{label:?}");
        }
    }
}
