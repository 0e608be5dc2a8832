//! Finds the changed words of a line.

use std::ops::Range;

/// Bytes of a line that is compared by words, at most.
const LONGEST: usize = 1_000;
/// Pairs of words that are compared, at most.
const PAIRS: usize = 20_000;

/// The byte ranges that only the old line has, and those that only the new one has.
pub(super) type ChangedWords = (Vec<Range<usize>>, Vec<Range<usize>>);

/// Compares a removed line with the added one that replaces it.
///
/// `None` if they have too little in common for marks to help, or are too long.
pub(super) fn changed(old: &[u8], new: &[u8]) -> Option<ChangedWords> {
    if old.len() > LONGEST || new.len() > LONGEST {
        return None;
    }
    let (a, b) = (words(old), words(new));
    let old: Vec<&[u8]> = a.iter().map(|r| &old[r.clone()]).collect();
    let new: Vec<&[u8]> = b.iter().map(|r| &new[r.clone()]).collect();
    let head = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
    let tail = old[head..]
        .iter()
        .rev()
        .zip(new[head..].iter().rev())
        .take_while(|(a, b)| a == b)
        .count();
    let (rows, columns) = (a.len() - head - tail, b.len() - head - tail);
    let mut kept = [vec![false; a.len()], vec![false; b.len()]];
    for side in &mut kept {
        let end = side.len() - tail;
        side[..head].fill(true);
        side[end..].fill(true);
    }
    if rows * columns <= PAIRS {
        for (i, j) in common(rows, columns, |i, j| old[head + i] == new[head + j]) {
            kept[0][head + i] = true;
            kept[1][head + j] = true;
        }
    }
    let ((alike, removed), (_, added)) = (solid(&old, &kept[0]), solid(&new, &kept[1]));
    // Lines that are mostly different read better without marks.
    if alike * 4 < removed.max(added) {
        return None;
    }
    Some((gone(&a, &kept[0]), gone(&b, &kept[1])))
}

/// Returns the number of bytes of the kept words and of the others, without white space.
fn solid(words: &[&[u8]], kept: &[bool]) -> (usize, usize) {
    let (mut alike, mut differing) = (0, 0);
    for (word, kept) in words.iter().zip(kept) {
        let bytes = word.iter().filter(|b| !b.is_ascii_whitespace()).count();
        *(if *kept { &mut alike } else { &mut differing }) += bytes;
    }
    (alike, differing)
}

/// Returns the class of a byte: of a word, a space, or a single other character.
fn class(b: u8) -> u8 {
    match b {
        b'_' | 0x80.. => 1,
        _ if b.is_ascii_alphanumeric() => 1,
        b' ' | b'\t' => 2,
        _ => 0,
    }
}

/// Splits a line into words, runs of spaces, and single other characters.
fn words(text: &[u8]) -> Vec<Range<usize>> {
    let mut out: Vec<Range<usize>> = Vec::new();
    for (i, b) in text.iter().enumerate() {
        match out.last_mut() {
            Some(last) if class(*b) != 0 && class(text[last.start]) == class(*b) => {
                last.end = i + 1;
            }
            _ => out.push(i..i + 1),
        }
    }
    out
}

/// Returns the pairs of the longest common subsequence.
fn common(rows: usize, columns: usize, same: impl Fn(usize, usize) -> bool) -> Vec<(usize, usize)> {
    let width = columns + 1;
    let mut best = vec![0_u32; (rows + 1) * width];
    for i in (0..rows).rev() {
        for j in (0..columns).rev() {
            best[i * width + j] = match same(i, j) {
                true => best[(i + 1) * width + j + 1] + 1,
                false => best[(i + 1) * width + j].max(best[i * width + j + 1]),
            };
        }
    }
    let (mut i, mut j) = (0, 0);
    let mut out = Vec::new();
    while i < rows && j < columns {
        if same(i, j) {
            out.push((i, j));
            (i, j) = (i + 1, j + 1);
        } else if best[(i + 1) * width + j] >= best[i * width + j + 1] {
            i += 1;
        } else {
            j += 1;
        }
    }
    out
}

/// Returns the ranges of words that are not kept; a single space between two of them is included.
fn gone(words: &[Range<usize>], kept: &[bool]) -> Vec<Range<usize>> {
    let mut out: Vec<Range<usize>> = Vec::new();
    for (r, _) in words.iter().zip(kept).filter(|(_, kept)| !**kept) {
        match out.last_mut() {
            Some(last) if last.end + 1 >= r.start => last.end = r.end,
            _ => out.push(r.clone()),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marked(old: &str, new: &str) -> Option<(String, String)> {
        changed(old.as_bytes(), new.as_bytes())
            .map(|(a, b)| (bracketed(old, &a), bracketed(new, &b)))
    }

    /// Puts brackets around ranges of a text.
    fn bracketed(text: &str, ranges: &[Range<usize>]) -> String {
        let mut out = text.to_owned();
        for r in ranges.iter().rev() {
            out.insert(r.end, ']');
            out.insert(r.start, '[');
        }
        out
    }

    #[test]
    fn the_words_that_changed_are_marked() {
        for (old, new, a, b) in [
            ("let x = 1;", "let x = 2;", "let x = [1];", "let x = [2];"),
            (
                "return sum(items)",
                "return sum(items) / len(items)",
                "return sum(items)",
                "return sum(items)[ / len(items)]",
            ),
            ("f(a, b)", "f(a, c, b)", "f(a, b)", "f(a, [c, ]b)"),
            ("größe = 1", "größen = 1", "[größe] = 1", "[größen] = 1"),
            (
                "a = old.name",
                "a = new.title",
                "a = [old].[name]",
                "a = [new].[title]",
            ),
        ] {
            let (x, y) = marked(old, new).unwrap();
            // Ranges with one character between them are merged.
            assert_eq!(
                (x.replace("].[", "."), y.replace("].[", ".")),
                (a.replace("].[", "."), b.replace("].[", "."))
            );
        }
    }

    #[test]
    fn other_lines_are_not_marked() {
        assert_eq!(marked("if (ready) {", "return Err(why);"), None);
        assert_eq!(marked(&"a ".repeat(600), "a"), None);
    }
}
