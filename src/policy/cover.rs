//! Proves relations of path patterns: that one matches only paths of another, or that two match no
//! common path.
//!
//! The proofs understand names, `*`, `**`, `?`, and `{a,b}` without nested braces. A pattern with
//! classes, or with more alternatives than [`MOST`], is only known to cover itself.

use super::glob;

/// Patterns that one pattern with alternatives may expand to, at most.
const MOST: usize = 64;
/// Tokens of all expansions of one pattern, at most.
const MOST_TOKENS: usize = 4096;

/// The remaining work for proofs. When it is used up, all proofs fail.
#[derive(Debug)]
pub(super) struct ProofBudget(usize);

/// The paths that a pattern matches.
#[derive(Clone, Debug)]
pub(super) struct Area {
    /// `None`: every path.
    pattern: Option<String>,
    /// `None`: the pattern is not understood.
    shapes: Option<Vec<GlobShape>>,
}

/// The parts of a path, between its slashes.
type GlobShape = Vec<GlobPart>;

#[derive(Clone, Debug, PartialEq, Eq)]
enum GlobPart {
    /// Any number of folders, including zero. Never the last part.
    Folders,
    /// One name, never empty.
    Name(Vec<GlobToken>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum GlobToken {
    Character(char),
    One,
    Many,
    /// Separates names; never part of a name.
    Slash,
    /// `**` as a whole component; never part of a name.
    Deep,
}

impl Default for ProofBudget {
    fn default() -> Self {
        Self(1 << 26)
    }
}

impl ProofBudget {
    /// Returns true if the work is used up.
    pub(super) fn is_spent(&self) -> bool {
        self.0 == 0
    }

    fn allows(&mut self, a: &Area, b: &Area) -> bool {
        match self.0.checked_sub(a.size() * b.size()) {
            Some(left) => self.0 = left,
            None => self.0 = 0,
        }
        self.0 > 0
    }
}

impl Area {
    pub(super) fn everything() -> Self {
        Self {
            pattern: None,
            shapes: None,
        }
    }

    pub(super) fn of(pattern: &str) -> Self {
        Self {
            pattern: Some(pattern.to_owned()),
            shapes: shapes(pattern),
        }
    }

    /// Returns true if the other area provably covers this one.
    pub(super) fn is_within(&self, other: &Self, budget: &mut ProofBudget) -> bool {
        self.is_within_any([other], budget)
    }

    /// Returns true if the other areas together provably cover this one.
    pub(super) fn is_within_any<'a>(
        &self,
        others: impl IntoIterator<Item = &'a Self> + Clone,
        budget: &mut ProofBudget,
    ) -> bool {
        if others
            .clone()
            .into_iter()
            .any(|o| o.pattern.is_none() || o.pattern == self.pattern)
        {
            return true;
        }
        let Some(shapes) = &self.shapes else {
            return false;
        };
        // Shapes that no area covers yet.
        let mut left: Vec<&GlobShape> = shapes.iter().collect();
        for other in others {
            if !budget.allows(self, other) {
                return false;
            }
            left.retain(|s| !other.shapes.iter().flatten().any(|o| includes(o, s)));
            if left.is_empty() {
                return true;
            }
        }
        false
    }

    /// Returns true if provably no path is in both areas.
    pub(super) fn is_apart_from(&self, other: &Self, budget: &mut ProofBudget) -> bool {
        let (Some(these), Some(those)) = (&self.shapes, &other.shapes) else {
            return false;
        };
        budget.allows(self, other) && these.iter().all(|a| those.iter().all(|b| are_apart(a, b)))
    }

    /// Returns the size of the area, for the budget of comparisons.
    fn size(&self) -> usize {
        1 + self
            .shapes
            .iter()
            .flatten()
            .flatten()
            .map(GlobPart::size)
            .sum::<usize>()
    }
}

impl GlobPart {
    /// Returns the size of the part, for the budget of comparisons.
    fn size(&self) -> usize {
        if let Self::Name(tokens) = self {
            tokens.len() + 1
        } else {
            1
        }
    }
}

/// Returns true if the wide shape matches every path of the narrow one. A wildcard of the narrow
/// shape must be covered by a wildcard of the wide one.
fn includes(wide: &[GlobPart], narrow: &[GlobPart]) -> bool {
    aligned(
        wide,
        narrow,
        |w| *w == GlobPart::Folders,
        |w, n| match (w, n) {
            (GlobPart::Name(w), GlobPart::Name(n)) => aligned(
                w,
                n,
                |w| *w == GlobToken::Many,
                |w, n| match (w, n) {
                    // `?` matches one byte of a character outside ASCII.
                    (GlobToken::One, GlobToken::Character(c)) => c.is_ascii(),
                    (GlobToken::One, GlobToken::One) => true,
                    (GlobToken::Character(w), GlobToken::Character(n)) => w == n,
                    _ => false,
                },
            ),
            _ => false,
        },
    )
}

/// Returns true if a pattern matches items in order: each pattern item takes one item, or any
/// number if it takes all.
fn aligned<T>(
    pattern: &[T],
    items: &[T],
    takes_all: impl Fn(&T) -> bool,
    takes: impl Fn(&T, &T) -> bool,
) -> bool {
    // For each number of items: whether the pattern so far matches exactly these.
    let mut so_far = vec![false; items.len() + 1];
    so_far[0] = true;
    for p in pattern {
        if takes_all(p) {
            let first = so_far.iter().position(|s| *s).unwrap_or(so_far.len());
            so_far[first..].fill(true);
        } else {
            for n in (0..items.len()).rev() {
                so_far[n + 1] = so_far[n] && takes(p, &items[n]);
            }
            so_far[0] = false;
        }
        if !so_far.contains(&true) {
            return false;
        }
    }
    so_far[items.len()]
}

/// Returns true if the shapes provably differ, in leading or trailing names.
fn are_apart(a: &[GlobPart], b: &[GlobPart]) -> bool {
    let mut top = a.iter().zip(b).map_while(both_names);
    let mut end = a.iter().rev().zip(b.iter().rev()).map_while(both_names);
    has_fixed_depth(a) && has_fixed_depth(b) && a.len() != b.len()
        || top.any(|(a, b)| names_differ(a, b))
        || end.any(|(a, b)| names_differ(a, b))
}

/// Returns the names of two parts; `None` if one of them is `**`.
fn both_names<'p>(
    (a, b): (&'p GlobPart, &'p GlobPart),
) -> Option<(&'p [GlobToken], &'p [GlobToken])> {
    match (a, b) {
        (GlobPart::Name(a), GlobPart::Name(b)) => Some((a, b)),
        _ => None,
    }
}

/// Returns true if all paths of a shape have the same number of parts.
fn has_fixed_depth(shape: &[GlobPart]) -> bool {
    shape.iter().all(|p| *p != GlobPart::Folders)
}

/// Returns true if two names provably differ, in leading or trailing characters.
fn names_differ(a: &[GlobToken], b: &[GlobToken]) -> bool {
    is_literal(a) && is_literal(b) && a != b
        || a.iter()
            .zip(b)
            .map_while(characters_differ)
            .any(|differ| differ)
        || a.iter()
            .rev()
            .zip(b.iter().rev())
            .map_while(characters_differ)
            .any(|differ| differ)
}

/// Returns true for a name without wildcards.
fn is_literal(name: &[GlobToken]) -> bool {
    name.iter().all(|t| matches!(t, GlobToken::Character(_)))
}

/// Returns whether two characters differ; `None` if one of them is a wildcard.
fn characters_differ((a, b): (&GlobToken, &GlobToken)) -> Option<bool> {
    match (a, b) {
        (GlobToken::Character(a), GlobToken::Character(b)) => Some(a != b),
        _ => None,
    }
}

/// Expands a pattern into shapes; `None` if a part of it is not understood.
fn shapes(pattern: &str) -> Option<Vec<GlobShape>> {
    let mut shapes = Vec::new();
    let mut count = 0;
    for form in glob::forms(pattern).ok()? {
        for tokens in expanded(&form)? {
            count += tokens.len();
            if shapes.len() >= MOST || count > MOST_TOKENS {
                return None;
            }
            shapes.push(shape(&tokens)?);
        }
    }
    Some(shapes)
}

/// Expands the alternatives of a globset pattern.
fn expanded(form: &str) -> Option<Vec<Vec<GlobToken>>> {
    let mut all = vec![Vec::new()];
    let mut rest = form.char_indices().peekable();
    while let Some((at, c)) = rest.next() {
        let alternatives = match c {
            '{' => {
                let inside = &form[at + 1..];
                let (alternatives, length) = alternatives(inside)?;
                while rest.next_if(|(i, _)| *i <= at + length).is_some() {}
                alternatives
            }
            '*' if form[at..].starts_with("**") => {
                let alone = form[..at].chars().next_back().is_none_or(|c| c == '/')
                    && form[at + 2..].chars().next().is_none_or(|c| c == '/');
                if !alone {
                    return None;
                }
                rest.next();
                vec![vec![GlobToken::Deep]]
            }
            c => vec![vec![plain(c, &mut rest)?]],
        };
        if all.len() * alternatives.len() > MOST {
            return None;
        }
        all = all
            .iter()
            .flat_map(|start| {
                alternatives
                    .iter()
                    .map(move |end: &Vec<GlobToken>| [&start[..], end].concat())
            })
            .collect();
        if all.iter().map(Vec::len).sum::<usize>() > MOST_TOKENS {
            return None;
        }
    }
    Some(all)
}

/// Parses the alternatives after an opening brace. Returns them and their length in bytes with the
/// closing brace.
fn alternatives(inside: &str) -> Option<(Vec<Vec<GlobToken>>, usize)> {
    let mut all = vec![Vec::new()];
    let mut rest = inside.char_indices().peekable();
    while let Some((at, c)) = rest.next() {
        match c {
            '}' if all.iter().any(Vec::is_empty) => return None,
            '}' => return Some((all, at + 1)),
            ',' => all.push(Vec::new()),
            '*' if inside[at..].starts_with("**") => return None,
            c => all.last_mut()?.push(plain(c, &mut rest)?),
        }
    }
    None
}

fn plain(c: char, rest: &mut impl Iterator<Item = (usize, char)>) -> Option<GlobToken> {
    Some(match c {
        '[' | ']' | '{' | '}' => return None,
        '*' => GlobToken::Many,
        '?' => GlobToken::One,
        '/' => GlobToken::Slash,
        '\\' => match rest.next()?.1 {
            '/' => return None,
            c => GlobToken::Character(c),
        },
        c => GlobToken::Character(c),
    })
}

fn shape(tokens: &[GlobToken]) -> Option<GlobShape> {
    let mut shape: GlobShape = Vec::new();
    for name in tokens.split(|t| *t == GlobToken::Slash) {
        match name {
            [] => return None,
            [GlobToken::Deep] if shape.last() == Some(&GlobPart::Folders) => {}
            [GlobToken::Deep] => shape.push(GlobPart::Folders),
            name if name.contains(&GlobToken::Deep) => return None,
            name => shape.push(GlobPart::Name(name.to_vec())),
        }
    }
    // A trailing `**` matches only paths below the folder.
    if shape.last() == Some(&GlobPart::Folders) {
        shape.push(GlobPart::Name(vec![GlobToken::Many]));
    }
    Some(shape)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diff::RepoPath;
    use crate::policy::glob::Globs;

    fn is_within(narrow: &str, wide: &str) -> bool {
        Area::of(narrow).is_within(&Area::of(wide), &mut ProofBudget::default())
    }

    #[test]
    fn what_is_narrower_is_proven_and_nothing_else() {
        let cases = [
            ("*.lock", "**/*.lock", true),
            ("vendor/", "vendor", true),
            ("vendor", "vendor/", false),
            ("vendor/**", "vendor/", true),
            ("vendor/**", "/vendor/x/", false),
            ("/vendor/**", "/vendor/", true),
            ("vendor/lib/**", "vendor/**", true),
            ("vendor/*.c", "vendor/**", true),
            ("vendor/**", "vendor/*.c", false),
            ("a/**/b/*.c", "a/**", true),
            ("a/b/c", "a/**/c", true),
            ("a/c", "a/**/c", true),
            ("*.m?", "*.*", true),
            ("*.m?", "*.md", false),
            ("*.md", "*.m?", true),
            ("*.m\u{e9}", "*.m?", false),
            ("*", "[!a]*", false),
            ("*", "?*", false),
            ("*.{png,svg}", "*.*", true),
            ("{a,b}/**", "{a,b,c}/**", true),
            ("{a,d}/**", "{a,b,c}/**", false),
            ("{a,{b,c}}/**", "{a,{b,c}}/**", true),
            ("{a,{b,c}}/**", "**", false),
            ("*.[mp][dy]", "**", false),
            (r"\*.c", "*.c", true),
            ("*.c", r"\*.c", false),
            ("a**", "a*", false),
        ];
        for (narrow, wide, expected) in cases {
            assert_eq!(is_within(narrow, wide), expected, "{narrow} in {wide}");
        }
    }

    #[test]
    fn what_is_apart_is_proven_and_nothing_else() {
        let cases = [
            ("docs/**", "src/**", true),
            ("*.md", "*.py", true),
            ("docs/**", "*.md", false),
            ("a/*.md", "a/b/*.md", true),
            ("a/x*", "a/y*", true),
            ("a/x*", "a/*y", false),
            ("/a/**/*.b", "/a/**/*.c", true),
            ("/a/**/b", "/a/**/c", false),
            ("[a]", "b", false),
        ];
        for (a, b, expected) in cases {
            for (a, b) in [(a, b), (b, a)] {
                let apart = Area::of(a).is_apart_from(&Area::of(b), &mut ProofBudget::default());
                assert_eq!(apart, expected, "{a}, {b}");
            }
        }
    }

    /// Returns every path of up to three names of up to two of these letters.
    fn paths() -> Vec<RepoPath> {
        let names: Vec<String> = ["a", "b", "*", "a.", "ab", "ba", "aa", "b*"]
            .iter()
            .map(|n| (*n).to_owned())
            .collect();
        let mut all = names.clone();
        for depth in 0..2 {
            let longer: Vec<String> = all
                .iter()
                .filter(|p| p.matches('/').count() == depth)
                .flat_map(|p| names.iter().map(move |n| format!("{p}/{n}")))
                .collect();
            all.extend(longer);
        }
        all.iter().map(|p| RepoPath::from(p.as_str())).collect()
    }

    /// Returns the next pseudorandom number below `n`.
    fn random(seed: &mut u64, n: usize) -> usize {
        *seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (*seed >> 33) as usize % n
    }

    #[test]
    fn what_is_proven_holds_for_every_path() {
        let pieces = [
            "a", "b", "*", "?", "/", "/**/", "**/", "/**", "{a,b}", "{a/b,*}", ".", "**", r"\*",
            "[!a]", "{,a}",
        ];
        let mut seed = 7_u64;
        let mut patterns: Vec<String> = Vec::new();
        while patterns.len() < 140 {
            let count = 1 + random(&mut seed, 4);
            let pattern: String = (0..count)
                .map(|_| pieces[random(&mut seed, pieces.len())])
                .collect();
            if glob::check(&pattern).is_ok() && !patterns.contains(&pattern) {
                patterns.push(pattern);
            }
        }
        let paths = paths();
        let matched: Vec<Vec<bool>> = patterns
            .iter()
            .map(|p| {
                let globs = Globs::new(&[p]).unwrap();
                paths.iter().map(|path| globs.matches(path)).collect()
            })
            .collect();
        let areas: Vec<Area> = patterns.iter().map(|p| Area::of(p)).collect();
        let (mut within, mut apart) = (0, 0);
        for (i, a) in areas.iter().enumerate() {
            for (j, b) in areas.iter().enumerate().filter(|(j, _)| *j != i) {
                let (of_a, of_b) = (&matched[i], &matched[j]);
                if a.is_within(b, &mut ProofBudget::default()) {
                    within += 1;
                    assert!(
                        of_a.iter().zip(of_b).all(|(a, b)| !a || *b),
                        "{} in {}",
                        patterns[i],
                        patterns[j]
                    );
                }
                if a.is_apart_from(b, &mut ProofBudget::default()) {
                    apart += 1;
                    assert!(
                        of_a.iter().zip(of_b).all(|(a, b)| !(*a && *b)),
                        "{} and {}",
                        patterns[i],
                        patterns[j]
                    );
                }
            }
        }
        assert!(within > 200 && apart > 200, "{within}, {apart}");
    }
}
