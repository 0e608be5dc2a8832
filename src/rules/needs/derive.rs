//! Derives the texts that every match of a pattern contains. The build script uses it.

use super::token::is_token;
use regex_syntax::ParserBuilder;
use regex_syntax::hir::{Class, Hir, HirKind};

/// Texts of a group, at most.
const TEXTS: usize = 24;
/// Groups that are kept, at most: the ones with the longest texts.
const GROUPS: usize = 5;
/// If more single bytes than this are possible, most lines have one of them.
const BYTES: usize = 4;

/// Texts in lowercase, of which a match contains at least one.
pub(super) type TextGroup = Vec<Vec<u8>>;

/// Returns the groups of a pattern: every match has a text of each, in order. An invalid pattern
/// has none.
pub(super) fn needs(pattern: &str) -> Vec<TextGroup> {
    let parser = ParserBuilder::new()
        .unicode(false)
        .utf8(false)
        .build()
        .parse(pattern);
    let groups = parser.map_or_else(|_| Vec::new(), |hir| of(&hir));
    let mut best: Vec<(usize, TextGroup)> = groups
        .into_iter()
        .enumerate()
        .filter(|(_, g)| worth(g) > 1 || g.len() <= BYTES)
        .collect();
    best.sort_by(|(_, a), (_, b)| (worth(b), a.len()).cmp(&(worth(a), b.len())));
    best.truncate(GROUPS);
    best.sort_by_key(|(position, _)| *position);
    best.into_iter().map(|(_, group)| group).collect()
}

/// Returns the number of consecutive bytes of tokens in every match, at least: 40 for
/// `key=[0-9a-f]{40}`. See [`is_token`].
pub(super) fn run(pattern: &str) -> usize {
    let parser = ParserBuilder::new()
        .unicode(false)
        .utf8(false)
        .build()
        .parse(pattern);
    parser.map_or(0, |hir| token_len(&hir).unwrap_or_else(|| longest(&hir)))
}

/// Returns the minimum length of the matches of an expression if they consist only of bytes of
/// tokens.
fn token_len(hir: &Hir) -> Option<usize> {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => Some(0),
        HirKind::Literal(literal) => literal
            .0
            .iter()
            .all(|b| is_token(*b))
            .then_some(literal.0.len()),
        HirKind::Class(Class::Bytes(class)) => class
            .ranges()
            .iter()
            .all(|r| (r.start()..=r.end()).all(is_token))
            .then_some(1),
        HirKind::Class(Class::Unicode(class)) => {
            let mut chars = class
                .ranges()
                .iter()
                .flat_map(|r| r.start()..=r.end().min('\u{ff}'));
            chars
                .all(|c| u8::try_from(c).map_or(true, is_token))
                .then_some(1)
        }
        HirKind::Capture(capture) => token_len(&capture.sub),
        HirKind::Repetition(repetition) => {
            Some(token_len(&repetition.sub)? * repetition.min as usize)
        }
        HirKind::Concat(parts) => parts.iter().map(token_len).sum(),
        HirKind::Alternation(branches) => branches
            .iter()
            .map(token_len)
            .collect::<Option<Vec<usize>>>()?
            .into_iter()
            .min(),
    }
}

/// Returns the length of the longest run of bytes of tokens that every match has.
fn longest(hir: &Hir) -> usize {
    match hir.kind() {
        HirKind::Capture(capture) => longest(&capture.sub),
        HirKind::Repetition(repetition) if repetition.min > 0 => longest(&repetition.sub),
        HirKind::Alternation(branches) => branches
            .iter()
            .map(|branch| token_len(branch).unwrap_or_else(|| longest(branch)))
            .min()
            .unwrap_or(0),
        HirKind::Concat(parts) => {
            let (mut most, mut open) = (0, 0);
            for part in parts {
                match token_len(part) {
                    Some(len) => open += len,
                    None => (most, open) = (most.max(open).max(longest(part)), 0),
                }
            }
            most.max(open)
        }
        _ => 0,
    }
}

/// Returns the length of the shortest text of a group.
fn worth(group: &TextGroup) -> usize {
    group.iter().map(Vec::len).min().unwrap_or(0)
}

/// Returns the groups of an expression in the order of their texts in a match. The texts do not
/// overlap.
fn of(hir: &Hir) -> Vec<TextGroup> {
    match hir.kind() {
        HirKind::Capture(capture) => of(&capture.sub),
        HirKind::Repetition(repetition) if repetition.min > 0 => of(&repetition.sub),
        HirKind::Concat(parts) => of_sequence(parts),
        HirKind::Alternation(branches) => of_alternatives(branches).into_iter().collect(),
        _ => whole(hir)
            .filter(|group| worth(group) > 0)
            .into_iter()
            .collect(),
    }
}

/// Joins neighbours whose texts are all known, and collects the needs of each other part.
fn of_sequence(parts: &[Hir]) -> Vec<TextGroup> {
    let mut out = Vec::new();
    let mut run: TextGroup = vec![Vec::new()];
    for part in parts {
        if let Some(joined) = whole(part).and_then(|texts| product(&run, &texts)) {
            run = joined;
            continue;
        }
        out.push(std::mem::replace(&mut run, vec![Vec::new()]));
        match whole(part) {
            Some(texts) => run = texts,
            None => out.extend(of(part)),
        }
    }
    out.push(run);
    out.retain(|group| worth(group) > 0);
    out
}

/// Returns the best groups of all branches as one. `None`: a branch has no needs.
fn of_alternatives(branches: &[Hir]) -> Option<TextGroup> {
    let mut out = TextGroup::new();
    for branch in branches {
        let best = of(branch)
            .into_iter()
            .max_by_key(|g| (worth(g), usize::MAX - g.len()))?;
        out.extend(best);
        out.sort();
        out.dedup();
    }
    (out.len() <= TEXTS && worth(&out) > 0).then_some(out)
}

/// Returns all texts that an expression matches, in lowercase, if they are few. A lookaround has no
/// text.
fn whole(hir: &Hir) -> Option<TextGroup> {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => Some(vec![Vec::new()]),
        HirKind::Literal(literal) => Some(vec![literal.0.to_ascii_lowercase()]),
        HirKind::Class(class) => bytes(class),
        HirKind::Capture(capture) => whole(&capture.sub),
        HirKind::Repetition(repetition) if repetition.max == Some(1) => {
            let mut texts = whole(&repetition.sub)?;
            texts.extend((repetition.min == 0).then(Vec::new));
            distinct(texts)
        }
        HirKind::Repetition(_) => None,
        HirKind::Concat(parts) => parts.iter().try_fold(vec![Vec::new()], |texts, part| {
            product(&texts, &whole(part)?)
        }),
        HirKind::Alternation(branches) => {
            let all = branches
                .iter()
                .map(whole)
                .collect::<Option<Vec<TextGroup>>>()?;
            distinct(all.concat())
        }
    }
}

/// Returns the bytes of a class in lowercase, if they are few.
fn bytes(class: &Class) -> Option<TextGroup> {
    let ranges: Vec<(u32, u32)> = match class {
        Class::Bytes(c) => c
            .ranges()
            .iter()
            .map(|r| (u32::from(r.start()), u32::from(r.end())))
            .collect(),
        Class::Unicode(c) => c
            .ranges()
            .iter()
            .map(|r| (u32::from(r.start()), u32::from(r.end())))
            .collect(),
    };
    let count: u32 = ranges.iter().map(|(from, to)| to - from + 1).sum();
    if count as usize > 2 * BYTES {
        return None;
    }
    let chars = ranges.into_iter().flat_map(|(from, to)| from..=to);
    // In one kind of class, bytes above ASCII are bytes, and in the other kind they are characters.
    let texts = chars.map(|c| {
        u8::try_from(c)
            .ok()
            .filter(u8::is_ascii)
            .map(|b| vec![b.to_ascii_lowercase()])
    });
    distinct(texts.collect::<Option<TextGroup>>()?).filter(|texts| texts.len() <= BYTES)
}

/// Returns each text of the first group followed by each of the second, if they are few.
fn product(first: &TextGroup, second: &TextGroup) -> Option<TextGroup> {
    if first.len() * second.len() > TEXTS {
        return None;
    }
    distinct(
        first
            .iter()
            .flat_map(|a| {
                second
                    .iter()
                    .map(move |b| [a.as_slice(), b.as_slice()].concat())
            })
            .collect(),
    )
}

fn distinct(mut texts: TextGroup) -> Option<TextGroup> {
    texts.sort();
    texts.dedup();
    (texts.len() <= TEXTS).then_some(texts)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(pattern: &str) -> Vec<String> {
        let groups = needs(pattern).into_iter();
        groups
            .map(|g| {
                g.iter()
                    .map(|t| String::from_utf8_lossy(t).into_owned())
                    .collect::<Vec<_>>()
                    .join("|")
            })
            .collect()
    }

    #[test]
    fn what_every_match_has_is_needed() {
        assert_eq!(shown(r"\beval\s*\("), ["eval", "("]);
        assert_eq!(
            shown(r"(?i)pass(?:word|wd)?\s*[:=]"),
            ["pass|passwd|password", ":|="]
        );
        assert_eq!(shown(r"(?:a+b|cd*)e?x"), ["b|c", "ex|x"]);
        assert_eq!(shown(r"if\s*\(\s*\w+\("), ["if", "(", "("]);
        assert_eq!(
            shown(r"a\w+b\w+ccc\w+dd\w+e\w+ff\w+"),
            ["a", "b", "ccc", "dd", "ff"]
        );
        assert_eq!(shown(r"^\s*(?P<secret>gh[ps]_[0-9]{36})$"), ["ghp_|ghs_"]);
        assert_eq!(shown(r"[a-z]+x?"), Vec::<String>::new());
        assert_eq!(shown(r"(?:one)?(?:two|\d)three{2,}"), ["thre", "e"]);
        assert_eq!(shown(r"a(?:b|)c"), ["abc|ac"]);
    }

    #[test]
    fn the_longest_run_of_every_match_is_needed() {
        for (pattern, len) in [
            (r"\b(?P<secret>ATTA[0-9a-f]{64}[0-9A-F]{8})\b", 76),
            (
                r"(?:^|[^.])(?P<secret>[MN][\w-]{22,27}\.[\w-]{6}\.[\w-]{27,38})(?:\W|$)",
                27,
            ),
            (r"(?i)key\s*[:=]\s*[a-z]{12}(?:x|yy){2}", 14),
            (r"a{20}|b{10}", 10),
            (r"a{20}|.", 0),
            (r"(?:a{20})?b", 1),
            (r"[^a]{30}", 0),
            (r"\S{40}", 0),
        ] {
            assert_eq!(run(pattern), len, "{pattern}");
        }
    }
}
