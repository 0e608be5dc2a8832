//! Path patterns of the policy and of `--files`.
//!
//! They read like lines of `.gitignore`, without negation:
//!
//! | pattern | matches |
//! |---|---|
//! | `*.lock` | by name, at any depth: a pattern without `/` is not anchored |
//! | `/Makefile`, `docs/*.md` | from the top of the repository; `*` and `?` stay within one folder |
//! | `vendor`, `vendor/`, `services/payments` | the folder and everything below it |
//! | `src/**/gen/**`, `**/*.pb.go` | `**` crosses folders |
//! | `*.{png,svg}`, `[a-c]*.txt`, `\*` | alternatives, classes, and a literal character after `\` |

use crate::diff::RepoPath;
use globset::{Candidate, GlobBuilder, GlobSet, GlobSetBuilder};

/// The longest pattern that is accepted, in bytes.
pub const MAX_PATTERN: usize = 512;

/// Compiled patterns. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Globs {
    /// Chunks of patterns, because one automaton has a size limit.
    sets: Vec<Set>,
}

#[derive(Clone, Debug)]
struct Set {
    set: GlobSet,
    /// Index of the caller's pattern, per compiled pattern.
    of: Vec<usize>,
}

impl Globs {
    /// Compiles patterns.
    ///
    /// # Errors
    ///
    /// The reason why the first invalid pattern is invalid: a lowercase fragment that quotes it.
    pub fn new<S: AsRef<str>>(patterns: &[S]) -> Result<Self, String> {
        let mut globs = Vec::new();
        for (i, p) in patterns.iter().enumerate() {
            globs.extend(compile(p.as_ref())?.into_iter().map(|g| (i, g)));
        }
        let mut sets = Vec::new();
        for chunk in globs.chunks(64) {
            build(chunk, &mut sets)?;
        }
        Ok(Self { sets })
    }

    /// Returns true if any pattern matches.
    pub fn matches(&self, path: &RepoPath) -> bool {
        let candidate = Candidate::from_bytes(path.as_bytes());
        self.sets
            .iter()
            .any(|s| s.set.is_match_candidate(&candidate))
    }

    /// Returns the positions of the patterns that match, ascending, each once.
    pub fn matching(&self, path: &RepoPath) -> Vec<usize> {
        let candidate = Candidate::from_bytes(path.as_bytes());
        let mut found: Vec<usize> = self
            .sets
            .iter()
            .flat_map(|s| {
                s.set
                    .matches_candidate(&candidate)
                    .into_iter()
                    .map(|i| s.of[i])
            })
            .collect();
        found.sort_unstable();
        found.dedup();
        found
    }
}

/// Compiles patterns into one automaton, or into several if one would be too large.
fn build(globs: &[(usize, globset::Glob)], sets: &mut Vec<Set>) -> Result<(), String> {
    let mut builder = GlobSetBuilder::new();
    for (_, glob) in globs {
        builder.add(glob.clone());
    }
    match (builder.build(), globs.len()) {
        (Ok(set), _) => sets.push(Set {
            set,
            of: globs.iter().map(|(i, _)| *i).collect(),
        }),
        (Err(e), 0 | 1) => return Err(e.kind().to_string()),
        (Err(_), n) => {
            build(&globs[..n / 2], sets)?;
            build(&globs[n / 2..], sets)?;
        }
    }
    Ok(())
}

/// Validates a pattern without compiling an automaton.
///
/// # Errors
///
/// A lowercase fragment.
pub fn check(pattern: &str) -> Result<(), String> {
    compile(pattern).map(|_| ())
}

/// Turns a pattern into one or two of globset's.
fn compile(pattern: &str) -> Result<Vec<globset::Glob>, String> {
    forms(pattern)?
        .iter()
        .map(|f| {
            GlobBuilder::new(f)
                .literal_separator(true)
                .backslash_escape(true)
                .build()
                .map_err(|e| invalid(pattern, &e.kind().to_string()))
        })
        .collect()
}

/// Translates a pattern into one or two globset patterns, anchored at the top of the repository.
pub(super) fn forms(pattern: &str) -> Result<Vec<String>, String> {
    if pattern.trim().is_empty() || pattern == "/" {
        return Err(invalid(pattern, "empty pattern"));
    }
    if pattern.len() > MAX_PATTERN {
        return Err(format!(
            "pattern of {} bytes; the limit is {MAX_PATTERN}",
            pattern.len()
        ));
    }
    if pattern.starts_with('!') {
        return Err(invalid(pattern, "negated patterns are not supported"));
    }
    if pattern.split('/').any(|part| part == "..") {
        return Err(invalid(pattern, "pattern leads out of the repository"));
    }
    let body = pattern.trim_start_matches("./");
    let folder = body.ends_with('/');
    let body = body.trim_end_matches('/');
    let anchored = body.contains('/');
    let body = body.trim_start_matches('/');
    let body = if anchored || body == "**" {
        body.to_owned()
    } else {
        format!("**/{body}")
    };
    // A plain last component may be a folder. Then the pattern matches everything in it.
    let last = body.rsplit('/').next().unwrap_or(&body);
    let plain = !last.contains(['*', '?', '[', '{', '\\']);
    let mut forms = Vec::with_capacity(2);
    if folder || plain {
        forms.push(format!("{body}/**"));
    }
    if !folder {
        forms.push(body);
    }
    Ok(forms)
}

/// Returns why a pattern is invalid: a lowercase fragment that quotes it.
fn invalid(pattern: &str, why: &str) -> String {
    format!("{why}: {pattern:?}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn matches(pattern: &str, path: &str) -> bool {
        Globs::new(&[pattern])
            .unwrap()
            .matches(&RepoPath::from(path))
    }

    #[test]
    fn patterns_read_like_lines_of_gitignore() {
        let cases = [
            ("*.lock", "Cargo.lock", true),
            ("*.lock", "a/b/yarn.lock", true),
            ("*.lock", "a/b.lock/c", false),
            ("/Makefile", "Makefile", true),
            ("/Makefile", "sub/Makefile", false),
            ("docs/*.md", "docs/a.md", true),
            ("docs/*.md", "docs/deep/a.md", false),
            ("docs/*.md", "x/docs/a.md", false),
            ("vendor", "vendor/a/b.c", true),
            ("vendor", "third/vendor/b.c", true),
            ("vendor", "vendored/b.c", false),
            ("vendor/", "vendor/b.c", true),
            ("vendor/", "vendor", false),
            ("/vendor/", "third/vendor/b.c", false),
            ("vendor/**", "vendor/a/b.c", true),
            ("services/payments", "services/payments/src/a.rs", true),
            ("services/payments", "x/services/payments/a.rs", false),
            ("src/**/gen/**", "src/gen/a.rs", true),
            ("src/**/gen/**", "src/a/b/gen/c/d.rs", true),
            ("**/*.generated.*", "a.generated.ts", true),
            ("**/*.generated.*", "x/y/a.generated.ts", true),
            ("*.{png,svg}", "a/b.svg", true),
            ("[a-c]*.txt", "b1.txt", true),
            ("[a-c]*.txt", "d1.txt", false),
            ("src/*", "src/a.rs", true),
            ("src/*", "src/sub/a.rs", false),
            ("**", "any/thing", true),
            ("./a/b.rs", "a/b.rs", true),
            (r"\*.rs", "*.rs", true),
            (r"\*.rs", "a.rs", false),
            ("*.RS", "a.rs", false),
            (".env", "a/.env", true),
            ("*", "a/.hidden", true),
        ];
        for (pattern, path, expected) in cases {
            assert_eq!(matches(pattern, path), expected, "{pattern} on {path}");
        }
    }

    #[test]
    fn paths_that_are_not_utf8_are_matched_by_their_bytes() {
        let globs = Globs::new(&["*.c"]).unwrap();
        assert!(globs.matches(&RepoPath::new(&b"caf\xe9/\xff.c"[..])));
    }

    #[test]
    fn bad_patterns_are_named() {
        for (pattern, why) in [
            ("", "empty"),
            ("!a", "negated"),
            ("../a", "leads out"),
            ("a/../b", "leads out"),
            ("[", "unclosed"),
            ("{a", "unclosed"),
        ] {
            let e = Globs::new(&[pattern]).unwrap_err();
            assert!(e.contains(why), "{pattern}: {e}");
        }
        assert!(check(&"a".repeat(MAX_PATTERN + 1)).is_err());
    }

    #[test]
    fn every_pattern_that_passes_the_check_compiles() {
        for unit in [
            "{a,b}*",
            "*/**/",
            "[!a-z]?",
            "[а-яё]",
            "{日,本}?",
            "{a,{b,{c,d}}}*",
            "?",
            "[]-]*",
        ] {
            let pattern = unit.repeat((MAX_PATTERN - 3) / unit.len());
            let all: Vec<String> = (0..66).map(|i| format!("{pattern}{i}")).collect();
            assert!(all.iter().all(|p| check(p).is_ok()), "{unit}");
            let globs = Globs::new(&all)
                .map_err(|e| format!("{unit}: {e}"))
                .unwrap();
            assert_eq!(globs.matching(&RepoPath::from("a")), [0; 0]);
        }
    }

    #[test]
    fn positions_are_the_callers() {
        let patterns: Vec<String> = (0..200)
            .map(|i| format!("f{i}"))
            .chain(["*".to_owned()])
            .collect();
        let globs = Globs::new(&patterns).unwrap();
        assert_eq!(globs.matching(&RepoPath::from("a/f150/x")), [150, 200]);
    }
}
