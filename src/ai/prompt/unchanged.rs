//! Unchanged lines around the hunks of a chunk, and in related code.

use std::collections::BTreeSet;
use std::fmt::Write as _;

/// Appends lines outside the hunks of a chunk, with an ellipsis in place of omitted lines. `added`
/// holds the numbers of lines that another part of the change adds.
pub(super) fn unchanged(lines: &[(u32, &str)], added: Option<&BTreeSet<u32>>, out: &mut String) {
    let mut expected = lines.first().map_or(0, |(number, _)| *number);
    for (number, text) in lines {
        if *number != expected {
            out.push_str("…\n");
        }
        let mark = if added.is_some_and(|a| a.contains(number)) {
            '+'
        } else {
            ' '
        };
        let _ = writeln!(out, "{number}{mark}{text}");
        expected = number + 1;
    }
}
