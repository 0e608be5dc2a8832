//! The depth of indentation of a text. The Python parser ends the process if it is too deep.

/// Levels of indentation that are parsed, at most. The Python parser has room for 510, and written
/// code has fewer than 30.
const MOST_LEVELS: usize = 400;

/// Returns true if a text has more levels of indentation than parsers support.
pub(crate) fn is_too_deep(text: &[u8]) -> bool {
    levels(text) > MOST_LEVELS
}

/// Returns the largest number of open levels of indentation. A lone backslash on a line adds its
/// indentation to the next line.
fn levels(text: &[u8]) -> usize {
    let (mut open, mut most, mut carried) = (Vec::new(), 0, 0);
    for line in text.split(|b| matches!(b, b'\n' | b'\r' | b'\x0c')) {
        let blanks = line
            .iter()
            .take_while(|b| matches!(b, b' ' | b'\t'))
            .count();
        let indent = carried
            + line[..blanks]
                .iter()
                .map(|b| if *b == b'\t' { 8 } else { 1 })
                .sum::<usize>();
        let is_continued = line[blanks..].trim_ascii() == b"\\";
        carried = if is_continued { indent } else { 0 };
        if is_continued || blanks == line.len() {
            continue;
        }
        while open.pop_if(|level| *level >= indent).is_some() {}
        open.push(indent);
        most = most.max(open.len());
    }
    most
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deep_indentation_is_not_parsed() {
        fn nested(levels: usize, between: &str) -> String {
            (0..levels)
                .map(|n| format!("{}if x:{between}\n", " ".repeat(n)))
                .collect()
        }
        assert_eq!(levels(nested(30, "").as_bytes()), 30);
        assert_eq!(levels(b"a:\n  b:\n\n    c\n  d\ne\n"), 3);
        assert!(
            !is_too_deep(nested(300, "").as_bytes()) && is_too_deep(nested(600, "").as_bytes())
        );
        // A backslash continues the indentation of its line.
        let carried = (0..600)
            .map(|n| format!("{}if x:\n", " \\\n".repeat(n)))
            .collect::<String>();
        assert_eq!(levels(carried.as_bytes()), 600);
    }
}
