//! Finds the definitions of constants in the text, because the grammars do not distinguish
//! constants from other assignments. Pure.

use std::ops::RangeInclusive;

/// Lines of a definition, at most.
const MAX_LINES: usize = 8;

/// Returns true if a name is written as a constant: `MAX_RETRIES`.
pub(super) fn is_constant(name: &str) -> bool {
    let letters = name.bytes().filter(u8::is_ascii_uppercase).count();
    name.len() >= 3
        && letters >= 2
        && name
            .bytes()
            .all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_')
        && !name.starts_with(|c: char| c.is_ascii_digit())
}

/// Returns the line ranges, counted from 1, of the definitions of a name in a text.
pub(super) fn find(text: &str, name: &str) -> Vec<RangeInclusive<u32>> {
    let lines: Vec<&str> = text.lines().collect();
    let defined = (0..lines.len()).filter(|i| defines(lines[*i], name));
    defined
        .map(|first| number(first)..=number(last(&lines, first)))
        .collect()
}

fn number(index: usize) -> u32 {
    u32::try_from(index + 1).unwrap_or(u32::MAX)
}

/// Returns the index of the last line of a definition: the line that closes the brackets that its
/// first line opens.
fn last(lines: &[&str], first: usize) -> usize {
    let mut depth = 0_i32;
    for (i, line) in lines[first..].iter().take(MAX_LINES).enumerate() {
        depth += line
            .bytes()
            .map(|b| i32::from(b"([{".contains(&b)) - i32::from(b")]}".contains(&b)))
            .sum::<i32>();
        if depth <= 0 {
            return first + i;
        }
    }
    (first + MAX_LINES - 1).min(lines.len() - 1)
}

/// Returns true if a line defines a name: an assignment with only modifiers and a type before the
/// name, or a macro.
fn defines(line: &str, name: &str) -> bool {
    for (at, _) in line.match_indices(name) {
        let (before, after) = (&line[..at], &line[at + name.len()..]);
        if before.ends_with(is_word) || after.starts_with(is_word) {
            continue;
        }
        if !before
            .chars()
            .all(|c| is_word(c) || c.is_whitespace() || "#<>[]*&:,?'".contains(c))
        {
            return false;
        }
        if before.trim_start().starts_with('#') {
            return before.trim_start().trim_start_matches('#').trim() == "define";
        }
        let rest = after.trim_start();
        let (head, value) = rest.split_once('=').unwrap_or((rest, ""));
        let is_type = head.is_empty()
            || head.starts_with(':')
            || head.starts_with('[')
            || head.starts_with(is_word);
        let is_plain = head.starts_with(':') || !head.contains(['(', '"', '!', '<']);
        return rest.contains('=') && is_type && is_plain && !value.starts_with(['=', '>', '~']);
    }
    false
}

/// Returns true if a character can be part of a name.
fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

#[cfg(test)]
mod tests {
    use super::{find, is_constant};

    #[test]
    fn constants_are_written_in_capitals() {
        for name in ["WIN", "MAX_RETRIES", "SHA256", "_CACHE"] {
            assert!(is_constant(name), "{name}");
        }
        for name in ["Win", "T", "ID", "X1_", "2FA", "max", "__"] {
            assert!(!is_constant(name), "{name}");
        }
    }

    #[test]
    fn assignments_and_macros_define_and_uses_do_not() {
        for line in [
            "WIN = sys.platform.startswith(\"win\")",
            "WIN: Final[bool] = True",
            "export const WIN = 3;",
            "  public static final int WIN = 3;",
            "pub const WIN: u32 = 3;",
            "static WIN: &[&str] = &[\"a\"];",
            "const WIN time.Duration = 3",
            "#define WIN 3",
            "#  define WIN(x) ((x) + 1)",
            "    WIN = 3,",
            "const char *WIN[] = { 0 };",
        ] {
            assert_eq!(find(line, "WIN"), [1..=1], "{line}");
        }
        for line in [
            "if WIN:",
            "if WIN == 3:",
            "x = WIN",
            "return WIN",
            "call(WIN=3)",
            "WINDOW = 3",
            "LAST_WIN = 3",
            "WIN.x = 3",
            "#ifdef WIN",
            "# WIN = 3 is the default",
            "from x import WIN",
            "match WIN => 3",
        ] {
            assert!(find(line, "WIN").is_empty(), "{line}");
        }
    }

    #[test]
    fn a_definition_ends_with_its_brackets_or_after_a_few_lines() {
        assert_eq!(find("a\nWIN = {\n  1,\n}\nb\n", "WIN"), [2..=4]);
        assert_eq!(
            find(&format!("WIN = [\n{}", "  1,\n".repeat(20)), "WIN"),
            [1..=8]
        );
        assert_eq!(find("WIN = [", "WIN"), [1..=1]);
    }
}
