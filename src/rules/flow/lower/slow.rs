//! Regular expressions that can take exponential time.

/// Returns true if a regular expression can take exponential time: `(a+)+$`.
pub(super) fn is_slow(pattern: &str) -> bool {
    let bytes = pattern.as_bytes();
    let mut open = Vec::new();
    let mut i = 0;
    let mut in_class = false;
    while let Some(b) = bytes.get(i) {
        match b {
            b'\\' => i += 1,
            b'[' => in_class = true,
            b']' => in_class = false,
            b'(' if !in_class => open.push(i),
            b')' if !in_class => {
                let Some(start) = open.pop() else {
                    return false;
                };
                let body = pattern.get(start + 1..i).unwrap_or_default();
                let rest = pattern.get(i + 1..).unwrap_or_default();
                if rest.starts_with(['+', '*']) && rest.len() > 1 && is_ambiguous(body) {
                    return true;
                }
            }
            _ => {}
        }
        i += 1;
    }
    false
}

/// Returns true if the body of a repeated group consists of optional atoms and at most one repeated
/// atom.
fn is_ambiguous(body: &str) -> bool {
    let body = body.strip_prefix("?:").unwrap_or(body);
    if body.starts_with('?') {
        return false;
    }
    let chars: Vec<char> = body.chars().collect();
    let (mut i, mut is_repeated, mut has_star) = (0, false, false);
    while let Some(c) = chars.get(i) {
        match c {
            '\\' => i += 2,
            '[' => i = class_end(&chars, i),
            '(' | '|' | ')' | '^' | '$' | '{' => return false,
            _ => i += 1,
        }
        match chars.get(i) {
            Some('+') => {
                // Two atoms that must match separate the repetitions.
                if is_repeated {
                    return false;
                }
                is_repeated = true;
                i += 1;
            }
            Some('*') => {
                has_star = true;
                i += 1;
            }
            Some('?') => i += 1,
            _ => return false,
        }
    }
    is_repeated || has_star
}

fn class_end(chars: &[char], start: usize) -> usize {
    let mut i = start + 1;
    while let Some(c) = chars.get(i) {
        match c {
            '\\' => i += 1,
            ']' => return i + 1,
            _ => {}
        }
        i += 1;
    }
    i
}

#[cfg(test)]
mod tests {
    use super::is_slow;

    #[test]
    fn repeated_groups_of_atoms_that_may_be_missing_are_slow() {
        for slow in [
            r"^(a+)+$",
            r"^(\w+\s?)*$",
            r"^(\s*\w*\s*)*$",
            r"^(?:[a-z]+-?)+!",
            r"(\d*)*x",
        ] {
            assert!(is_slow(slow), "{slow}");
        }
        for fast in [
            r"^[a-z]+(?:-[a-z]+)*$",
            r"^(a+b+)+$",
            r"^(a?)+$",
            r"(\w+\s)*$",
            r"^(\w+\s?)*",
            r"(a|b)+$",
        ] {
            assert!(!is_slow(fast), "{fast}");
        }
    }
}
