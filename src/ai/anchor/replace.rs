//! Validates code that a model suggests as a replacement for lines.

use super::lines::Lines;
use crate::rules::RuleSet;

/// Lines of a replacement, at most.
const MAX_LINES: usize = 200;

/// The lines that a replacement replaces: positions of the first and the last entry.
#[derive(Clone, Copy, Debug)]
pub(super) struct Target {
    pub(super) first: usize,
    pub(super) last: usize,
}

/// Returns the replacement without a code fence and a final newline. Returns `None` if it cannot be applied: it changes
/// nothing, has another indentation, is incomplete, or contains text that is in the prompt but not in the file.
pub(super) fn applicable(rules: &RuleSet, lines: &Lines<'_>, target: Target, replacement: &str) -> Option<String> {
    let text = unfenced(replacement);
    let new: Vec<&str> = text.lines().collect();
    let entries: Vec<_> = lines.entries[target.first..=target.last].iter().filter(|e| e.number().is_some()).collect();
    let change = lines.file(entries.first()?.file).change.text()?;
    // Compare with the content of the file: the text sent to the model may be redacted or truncated.
    let old: Vec<&str> = entries
        .iter()
        .map(|e| change.new.line(e.shown.new?).and_then(|l| std::str::from_utf8(l).ok()))
        .collect::<Option<_>>()?;
    let is_code = new.iter().any(|l| !l.trim().is_empty()) || new.is_empty();
    if new.len() > MAX_LINES || !is_code || trimmed(&old).eq(trimmed(&new)) {
        return None;
    }
    // A placeholder, an escape or a mask exists only in the prompt; in the file it would break the code.
    let is_masked = matches!(rules.mask(text.as_bytes()), std::borrow::Cow::Owned(_));
    let shows = |mark: &str| text.contains(mark) && !old.iter().any(|l| l.contains(mark));
    if is_masked || shows("<secret:") || shows("\\u{") && entries.iter().any(|e| e.shown.text.contains("\\u{")) {
        return None;
    }
    let cut =
        entries.iter().zip(&old).any(|(e, old)| e.shown.text.len() < old.len() && !e.shown.text.contains("<secret:"));
    if cut || new.iter().any(|l| is_elision(l)) || is_diff(&new, &old) {
        return None;
    }
    let fits = indent(&old) == indent(&new) && balance(&old) == balance(&new) && !repeats(lines, target, change, &new);
    fits.then(|| new.join("\n"))
}

fn trimmed<'a>(lines: &'a [&str]) -> impl Iterator<Item = &'a str> {
    lines.iter().map(|l| l.trim_end())
}

fn unfenced(text: &str) -> &str {
    let bare = text.trim();
    match bare.strip_prefix("```").and_then(|t| t.strip_suffix("```")).and_then(|t| t.split_once('\n')) {
        Some((_, body)) => body.trim_end_matches(['\n', '\r']),
        None => text.trim_end_matches(['\n', '\r']),
    }
}

/// Returns the indentation of the first line that is not blank.
fn indent<'a>(lines: &[&'a str]) -> Option<&'a str> {
    let first = lines.iter().find(|l| !l.trim().is_empty())?;
    Some(&first[..first.len() - first.trim_start().len()])
}

/// Returns the number of unclosed brackets of each kind.
fn balance(lines: &[&str]) -> [i64; 3] {
    let mut open = [0; 3];
    for c in lines.iter().flat_map(|l| l.chars()) {
        match c {
            '(' => open[0] += 1,
            ')' => open[0] -= 1,
            '[' => open[1] += 1,
            ']' => open[1] -= 1,
            '{' => open[2] += 1,
            '}' => open[2] -= 1,
            _ => {}
        }
    }
    open
}

/// Returns true if a line represents omitted code.
fn is_elision(line: &str) -> bool {
    let bare = line.trim().trim_start_matches(['/', '#', '-', '*', '<', '!', ';', '%']).trim();
    let bare = bare.trim_end_matches("-->").trim_end_matches("*/").trim();
    let dots = bare.starts_with("...") || bare.starts_with('…');
    let is_comment = bare.len() < line.trim().len();
    dots && (is_comment || bare.trim_matches(['.', '…', ' ']).is_empty() && line.trim() != "...")
}

/// Returns true if the text is part of a diff, or has line numbers in front.
fn is_diff(new: &[&str], old: &[&str]) -> bool {
    let marked = |l: &str| l.starts_with(['+', '-']) || l.starts_with("@@");
    let filled = || new.iter().filter(|l| !l.trim().is_empty());
    filled().all(|l| marked(l)) && !new.is_empty() && !old.iter().any(|l| marked(l))
        || new.iter().any(|l| l.starts_with("@@ "))
        || filled().all(|l| l.trim_start().split_once([' ', '|']).is_some_and(|(n, _)| n.parse::<u32>().is_ok()))
}

/// Returns true if the text repeats the line before or after the target, which would duplicate it.
fn repeats(lines: &Lines<'_>, target: Target, change: &crate::diff::TextChange, new: &[&str]) -> bool {
    let number = |i: usize| lines.entries[i].number();
    let line = |n: Option<u32>| {
        let text = n.and_then(crate::diff::LineNo::new).and_then(|n| change.new.line(n))?;
        std::str::from_utf8(text).ok().map(str::trim).filter(|t| t.chars().filter(|c| c.is_alphanumeric()).count() > 3)
    };
    let before = line(number(target.first).and_then(|n| n.checked_sub(1)));
    let after = line(number(target.last).map(|n| n.saturating_add(1)));
    let edge = |text: Option<&&str>, other: Option<&str>| other.is_some() && text.map(|t| t.trim()) == other;
    edge(new.first(), before) || edge(new.last(), after)
}
