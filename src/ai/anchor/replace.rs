//! Validates code that a model suggests as a replacement for lines.

use super::lines::{ChunkLines, EntryRange};
use super::text::fence_body;
use crate::rules::RuleSet;

/// Lines of a replacement, at most.
const MAX_LINES: usize = 200;

/// Returns the replacement without a code fence and a final newline. Returns `None` if it cannot be
/// applied: it changes nothing, has another indentation, is incomplete, or contains text that is in
/// the prompt but not in the file.
pub(super) fn applicable(
    rules: &RuleSet,
    lines: &ChunkLines<'_>,
    target: EntryRange,
    replacement: &str,
) -> Option<String> {
    let text = fence_body(replacement).unwrap_or(replacement);
    let text = text.trim_end_matches(['\n', '\r']);
    let new: Vec<&str> = text.lines().collect();
    let entries: Vec<_> = lines.entries[target.first..=target.last]
        .iter()
        .filter(|e| e.number().is_some())
        .collect();
    let change = lines.file(entries.first()?.file).change.text()?;
    // Compare with the content of the file: the text sent to the model may be redacted or
    // truncated.
    let old: Vec<&str> = entries
        .iter()
        .map(|e| {
            change
                .new
                .line(e.shown.new?)
                .and_then(|l| std::str::from_utf8(l).ok())
        })
        .collect::<Option<_>>()?;
    let is_code = new.iter().any(|l| !l.trim().is_empty()) || new.is_empty();
    if new.len() > MAX_LINES || !is_code || trimmed(&old).eq(trimmed(&new)) {
        return None;
    }
    // A placeholder, an escape or a mask exists only in the prompt; in the file it would break the
    // code.
    let is_masked = matches!(rules.mask(text.as_bytes()), std::borrow::Cow::Owned(_));
    let is_escaped =
        adds(text, &old, "\\u{") && entries.iter().any(|e| e.shown.text.contains("\\u{"));
    if is_masked || is_escaped || adds(text, &old, "<secret:") {
        return None;
    }
    let cut = entries
        .iter()
        .zip(&old)
        .any(|(e, old)| e.shown.text.len() < old.len() && !e.shown.text.contains("<secret:"));
    if cut || new.iter().any(|l| is_elision(l)) || is_diff(&new, &old) {
        return None;
    }
    let fits = indent(&old) == indent(&new)
        && balance(&old) == balance(&new)
        && !repeats(lines, target, change, &new);
    fits.then(|| new.join("\n"))
}

/// Returns true if a text contains a mark that the replaced lines do not contain.
fn adds(text: &str, old: &[&str], mark: &str) -> bool {
    text.contains(mark) && !old.iter().any(|l| l.contains(mark))
}

fn trimmed<'a>(lines: &'a [&str]) -> impl Iterator<Item = &'a str> {
    lines.iter().map(|l| l.trim_end())
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
    let bare = line
        .trim()
        .trim_start_matches(['/', '#', '-', '*', '<', '!', ';', '%'])
        .trim();
    let bare = bare.trim_end_matches("-->").trim_end_matches("*/").trim();
    let dots = bare.starts_with("...") || bare.starts_with('…');
    let is_comment = bare.len() < line.trim().len();
    dots && (is_comment || bare.trim_matches(['.', '…', ' ']).is_empty() && line.trim() != "...")
}

/// Returns true if the text is part of a diff, or has line numbers in front.
fn is_diff(new: &[&str], old: &[&str]) -> bool {
    let mut filled = new.iter().filter(|l| !l.trim().is_empty());
    filled.clone().all(|l| is_marked(l)) && !new.is_empty() && !old.iter().any(|l| is_marked(l))
        || new.iter().any(|l| l.starts_with("@@ "))
        || filled.all(|l| {
            l.trim_start()
                .split_once([' ', '|'])
                .is_some_and(|(n, _)| n.parse::<u32>().is_ok())
        })
}

/// Returns true if a line has a diff marker.
fn is_marked(line: &str) -> bool {
    line.starts_with(['+', '-']) || line.starts_with("@@")
}

/// Returns true if the text repeats the line before or after the target, which would duplicate it.
fn repeats(
    lines: &ChunkLines<'_>,
    target: EntryRange,
    change: &crate::diff::TextChange,
    new: &[&str],
) -> bool {
    let (first, last) = (&lines.entries[target.first], &lines.entries[target.last]);
    let before = first
        .number()
        .and_then(|n| telling_line(change, n.checked_sub(1)?));
    let after = last
        .number()
        .and_then(|n| telling_line(change, n.saturating_add(1)));
    before.is_some() && new.first().map(|l| l.trim()) == before
        || after.is_some() && new.last().map(|l| l.trim()) == after
}

/// Returns a line on the new side without surrounding white space, or `None` if it is too short to
/// be a repetition.
fn telling_line(change: &crate::diff::TextChange, number: u32) -> Option<&str> {
    let text = std::str::from_utf8(change.new.line(crate::diff::LineNo::new(number)?)?)
        .ok()?
        .trim();
    (text.chars().filter(|c| c.is_alphanumeric()).count() > 3).then_some(text)
}
