//! Path globs of rules. They are simple enough to need no compilation.
//!
//! `*` and `?` stay within a component, `**` crosses components, `[a-z]` and `[!a-z]` are sets,
//! `{a,b}` are alternatives. A glob without `/` is matched against the file name, any other against
//! the whole path.

/// Returns true if a path matches a glob.
pub(crate) fn matches(glob: &str, path: &[u8]) -> bool {
    let glob = glob.as_bytes();
    if glob.contains(&b'/') {
        return component_wise(glob, path);
    }
    let name = match memchr::memrchr(b'/', path) {
        Some(i) => &path[i + 1..],
        None => path,
    };
    component_wise(glob, name)
}

/// Expands the first `{a,b}` and matches each alternative with the rest.
fn component_wise(glob: &[u8], path: &[u8]) -> bool {
    if !may_end(glob, path) {
        return false;
    }
    if let Some(open) = memchr::memchr(b'{', glob)
        && let Some(close) = memchr::memchr(b'}', &glob[open..]).map(|c| open + c)
    {
        return glob[open + 1..close]
            .split(|b| *b == b',')
            .any(|alternative| {
                let expanded = [&glob[..open], alternative, &glob[close + 1..]].concat();
                component_wise(&expanded, path)
            });
    }
    wild(glob, path)
}

/// Returns false if the literal end of a glob, or each of the alternatives that end it, differs from
/// the end of a path. Most globs of rules end with an extension, so this saves the expansion.
fn may_end(glob: &[u8], path: &[u8]) -> bool {
    match glob.split_last() {
        Some((b'}', rest)) => {
            let open = memchr::memrchr(b'{', rest).map_or(rest.len(), |at| at + 1);
            // Another brace ends the alternatives before the last one, which is a literal.
            let is_unclear = open == rest.len() || rest[open..].contains(&b'}');
            let mut ends = rest[open..].split(|b| *b == b',');
            is_unclear || ends.any(|end| path.ends_with(literal_end(end)))
        }
        _ => path.ends_with(literal_end(glob)),
    }
}

/// Returns the bytes of a glob behind its last special one. `**/` can match nothing, also not the
/// slash.
fn literal_end(glob: &[u8]) -> &[u8] {
    let special = glob.iter().rposition(|b| b"*?[]{},!/".contains(b));
    &glob[special.map_or(0, |at| at + 1)..]
}

/// Matches without braces, by backtracking over the last `*` and the last `**` only. The time is
/// linear in the path, times the number of stars.
fn wild(glob: &[u8], path: &[u8]) -> bool {
    let (mut g, mut p) = (0, 0);
    // The position after the star to return to on a mismatch, and the first byte that the star has
    // not consumed.
    let mut star: Option<(usize, usize)> = None;
    let mut deep: Option<(usize, usize)> = None;
    loop {
        if glob[g..].starts_with(b"**") {
            g += 2;
            // `**/` also matches an empty text.
            if glob.get(g) == Some(&b'/') {
                g += 1;
            }
            deep = Some((g, p));
            star = None;
            continue;
        }
        if glob.get(g) == Some(&b'*') {
            g += 1;
            star = Some((g, p));
            continue;
        }
        if p == path.len() && g == glob.len() {
            return true;
        }
        if p < path.len()
            && let Some(next) = one(glob, g, path[p])
        {
            g = next;
            p += 1;
            continue;
        }
        match (&mut star, &mut deep) {
            (Some((back, eaten)), _) if *eaten < path.len() && path[*eaten] != b'/' => {
                *eaten += 1;
                (g, p) = (*back, *eaten);
            }
            (_, Some((back, eaten))) if *eaten < path.len() => {
                // After `**/`, only the start of a component can match.
                let bounded = *back > 0 && glob[*back - 1] == b'/';
                *eaten = match memchr::memchr(b'/', &path[*eaten..]) {
                    Some(i) if bounded => *eaten + i + 1,
                    None if bounded => return false,
                    _ => *eaten + 1,
                };
                star = None;
                (g, p) = (*back, *eaten);
            }
            _ => return false,
        }
    }
}

/// Matches one byte against the glob's next element, and returns where the element ends.
fn one(glob: &[u8], g: usize, byte: u8) -> Option<usize> {
    match *glob.get(g)? {
        b'?' => (byte != b'/').then_some(g + 1),
        b'[' => {
            let end = g + 2 + memchr::memchr(b']', glob.get(g + 2..)?)?;
            let set = &glob[g + 1..end];
            let (negated, set) = match set {
                [b'!' | b'^', rest @ ..] => (true, rest),
                set => (false, set),
            };
            let mut inside = false;
            let mut i = 0;
            while i < set.len() {
                if i + 2 < set.len() && set[i + 1] == b'-' {
                    inside |= (set[i]..=set[i + 2]).contains(&byte);
                    i += 3;
                } else {
                    inside |= set[i] == byte;
                    i += 1;
                }
            }
            (inside != negated && byte != b'/').then_some(end + 1)
        }
        literal => (literal == byte).then_some(g + 1),
    }
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn matches_as_people_expect() {
        for (glob, path, expected) in [
            ("*.py", "a/b/c.py", true),
            ("**/.npmrc", ".npmrc", true),
            ("**/{a,b}.{yml,yaml}", "b.yaml", true),
            ("**/{a,b}.{yml,yaml}", "b.yamls", false),
            ("**/x.{y,}", "a/x.", true),
            ("a.[!b]", "a.b", false),
            ("a{b}c}", "abc}", true),
            ("*.py", "c.pyc", false),
            ("Dockerfile*", "x/Dockerfile.dev", true),
            ("src/*.rs", "src/a.rs", true),
            ("src/*.rs", "src/a/b.rs", false),
            ("**/test/**", "a/test/b/c", true),
            ("**/test/**", "test/c", true),
            ("**/test/**", "contest/c", false),
            ("src/**/x.rs", "src/x.rs", true),
            ("src/**/x.rs", "src/a/b/x.rs", true),
            ("src/**", "src/a/b", true),
            ("src/**", "srcs/a", false),
            (
                ".github/workflows/*.{yml,yaml}",
                ".github/workflows/ci.yaml",
                true,
            ),
            (
                ".github/workflows/*.{yml,yaml}",
                ".github/workflows/sub/ci.yaml",
                false,
            ),
            ("[a-c]?.txt", "bx.txt", true),
            ("[!a-c]?.txt", "bx.txt", false),
            ("**/*.min.*", "a/b.min.js", true),
            ("**/*.min.*", "b.min.js", true),
            ("a/*/c*d/e", "a/b/cxxd/e", true),
            ("a/*/c*d/e", "a/b/x/cxxd/e", false),
        ] {
            assert_eq!(matches(glob, path.as_bytes()), expected, "{glob} {path}");
        }
    }

    #[test]
    fn many_stars_do_not_explode() {
        let glob = "**/*a".repeat(12);
        assert!(!matches(&glob, "a/".repeat(2000).as_bytes()));
    }
}
