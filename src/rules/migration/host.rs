//! Finds the SQL in strings of programs, and which parts of a migration undo it.

use std::collections::HashSet;
use std::ops::Range;

/// Documents without an end that are searched in a file, at most.
const MOST_OPEN: usize = 16;

/// Words that a string of SQL starts with.
const VERBS: [&str; 11] = [
    "create", "alter", "drop", "update", "delete", "truncate", "rename", "lock", "vacuum",
    "reindex", "cluster",
];

/// Names of the functions that undo a migration, and of those that apply it.
const UNDOES: [&str; 5] = ["down", "downgrade", "rollback", "undo", "reverse"];
const APPLIES: [&str; 5] = ["up", "upgrade", "change", "forwards", "safeup"];

/// Words that the line of a function starts with.
const HEADERS: [&str; 17] = [
    "def",
    "async",
    "exports",
    "module",
    "export",
    "public",
    "protected",
    "private",
    "function",
    "const",
    "static",
    "fun",
    "func",
    "override",
    "down",
    "up",
    "void",
];

/// A string of a program that starts with a word of SQL.
#[derive(Debug)]
pub(super) struct Embedded {
    /// The text of the string.
    pub(super) range: Range<usize>,
    /// Where the call starts that has the string as its first argument, or the string.
    pub(super) anchor: usize,
}

/// Returns the strings with SQL in a program that applies a migration.
pub(super) fn strings(text: &str, is_hash_comment: bool, is_python: bool) -> Vec<Embedded> {
    let bytes = text.as_bytes();
    let mut out = Vec::new();
    let mut open_tags = HashSet::new();
    let mut at = 0;
    let mut last: Option<Range<usize>> = None;
    while at < bytes.len() {
        let rest = &text[at..];
        if let Some(end) = comment(rest, is_hash_comment) {
            at += end;
            continue;
        }
        let Some((open, close)) = literal(rest, &mut open_tags) else {
            at += rest.chars().next().map_or(1, char::len_utf8);
            continue;
        };
        let (inner, end) = (at + open..at + close.start, at + close.end);
        let follows = last
            .as_ref()
            .is_some_and(|l| is_next_argument(&text[l.end..at]));
        let is_reverse = text[..at].trim_end().ends_with("reverse_sql=") || (is_python && follows);
        if !is_reverse && starts_with_verb(&text[inner.clone()]) {
            out.push(Embedded {
                range: inner,
                anchor: anchor(text, at),
            });
        }
        last = Some(at..end);
        at = end.max(at + 1);
    }
    let undone = undone(text);
    out.retain(|found| {
        let next = undone.partition_point(|range| range.end <= found.range.start);
        undone
            .get(next)
            .is_none_or(|range| found.range.start < range.start)
    });
    out
}

/// Returns true if a text between two strings makes the second one the next argument.
fn is_next_argument(between: &str) -> bool {
    between.trim() == ","
}

/// Returns true if a text starts with a word of SQL and goes on.
fn starts_with_verb(text: &str) -> bool {
    let text = text.trim_start();
    let word = text
        .split(|c: char| !c.is_ascii_alphabetic())
        .next()
        .unwrap_or_default();
    text[word.len()..].starts_with(char::is_whitespace)
        && VERBS.iter().any(|v| word.eq_ignore_ascii_case(v))
}

/// Returns the start of the call whose first argument starts at an offset, or the offset.
fn anchor(text: &str, at: usize) -> usize {
    let before = text[..at].trim_end_matches(['r', 'f', 'b', 'u']);
    let before = before.trim_end();
    let before = before.strip_suffix("sql=").map_or(before, str::trim_end);
    before
        .strip_suffix('(')
        .map_or(at, |before| before.trim_end().len().saturating_sub(1))
}

/// Returns the length of the comment at the start of a text.
fn comment(rest: &str, is_hash_comment: bool) -> Option<usize> {
    match rest.as_bytes() {
        [b'#', b'[', ..] => None,
        [b'#', ..] if is_hash_comment => Some(line_end(rest)),
        [b'/', b'/', ..] => Some(line_end(rest)),
        [b'/', b'*', ..] => Some(rest.find("*/").map_or(rest.len(), |n| n + 2)),
        _ => None,
    }
}

/// Returns the offset of the end of the first line.
fn line_end(text: &str) -> usize {
    text.find('\n').unwrap_or(text.len())
}

/// Returns the length of what opens a string at the start of a text, and the range of what closes
/// it.
fn literal<'t>(rest: &'t str, open_tags: &mut HashSet<&'t str>) -> Option<(usize, Range<usize>)> {
    let quote = rest.as_bytes().first().copied()?;
    if quote == b'<' {
        return heredoc(rest, open_tags);
    }
    if !matches!(quote, b'"' | b'\'' | b'`') {
        return None;
    }
    let triple = rest
        .get(..3)
        .filter(|t| t.bytes().all(|b| b == quote) && quote != b'`');
    if let Some(triple) = triple {
        let end = rest[3..].find(triple).map_or(rest.len(), |n| n + 3);
        return Some((3, end..(end + 3).min(rest.len())));
    }
    let mut bytes = rest.bytes().enumerate().skip(1);
    while let Some((i, b)) = bytes.next() {
        match b {
            b'\\' => {
                bytes.next();
            }
            b if b == quote => return Some((1, i..i + 1)),
            // Such a string does not go over lines: it is an apostrophe.
            b'\n' if quote == b'\'' => return Some((1, i..i)),
            _ => {}
        }
    }
    Some((1, rest.len()..rest.len()))
}

/// Reads a document of Ruby (`<<~SQL`) or PHP (`<<<SQL`).
///
/// `open_tags`: the tags of documents without an end. Nothing after them ends one either, and the
/// search for many ends is bounded.
fn heredoc<'t>(rest: &'t str, open_tags: &mut HashSet<&'t str>) -> Option<(usize, Range<usize>)> {
    let tag = rest
        .strip_prefix("<<<")
        .or_else(|| rest.strip_prefix("<<~"))
        .or_else(|| rest.strip_prefix("<<-"))?;
    let tag = tag.trim_start_matches(['\'', '"', ' ']);
    let len = tag
        .bytes()
        .position(|b| !b.is_ascii_alphanumeric() && b != b'_')
        .unwrap_or(tag.len());
    let tag = tag
        .get(..len)
        .filter(|tag| tag.starts_with(|c: char| c.is_ascii_alphabetic()))?;
    if open_tags.len() >= MOST_OPEN || open_tags.contains(tag) {
        return None;
    }
    let open = rest.find('\n')? + 1;
    let mut start = open;
    for line in rest[open..].split_inclusive('\n') {
        if line
            .trim_start()
            .strip_prefix(tag)
            .is_some_and(|r| !r.starts_with(|c: char| c.is_ascii_alphanumeric()))
        {
            return Some((open, start..start + line.len()));
        }
        start += line.len();
    }
    open_tags.insert(tag);
    None
}

/// Returns the parts of a program that undo a migration.
fn undone(text: &str) -> Vec<Range<usize>> {
    let mut out: Vec<Range<usize>> = Vec::new();
    let mut open: Option<usize> = None;
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        for (at, undoes) in turns(line) {
            match (undoes, open) {
                (true, None) => open = Some(start + at),
                (false, Some(from)) => {
                    out.push(from..start + at);
                    open = None;
                }
                _ => {}
            }
        }
        start += line.len();
    }
    out.extend(open.map(|from| from..text.len()));
    out
}

/// Returns where a line starts a function that undoes (true) or applies (false) a migration.
fn turns(line: &str) -> Vec<(usize, bool)> {
    let mut out = Vec::new();
    let mut is_header = false;
    let mut at = 0;
    let first = line
        .find(|c: char| !c.is_whitespace() && c != '\u{feff}')
        .unwrap_or(line.len());
    let last_do = line.rfind(" do");
    for word in line.split(|c: char| !c.is_ascii_alphanumeric() && c != '_') {
        let (before, after) = (&line[..at], &line[at + word.len()..]);
        if at <= first {
            is_header = HEADERS.iter().any(|h| word.eq_ignore_ascii_case(h));
        }
        let is_block = before.ends_with('.') && after.trim_start().starts_with(['{', 'd']);
        let next = after.trim_start();
        let opens = next.is_empty()
            || next.starts_with(['(', ':', '='])
            || last_do >= Some(at + word.len());
        if is_block || (is_header && opens) {
            let lower = word.to_ascii_lowercase();
            if UNDOES.contains(&lower.as_str()) {
                out.push((at, true));
            } else if APPLIES.contains(&lower.as_str()) {
                out.push((at, false));
            }
        }
        at += word.len()
            + line[at + word.len()..]
                .chars()
                .next()
                .map_or(0, char::len_utf8);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str, is_python: bool) -> Vec<&str> {
        strings(text, true, is_python)
            .into_iter()
            .map(|e| text[e.range].trim())
            .collect()
    }

    #[test]
    fn strings_that_undo_a_migration_are_left_out() {
        let python = "def upgrade():\n    op.execute('UPDATE a SET b = 1')\n\ndef downgrade() -> None:\n    op.execute('DROP TABLE a')\n";
        assert_eq!(found(python, true), ["UPDATE a SET b = 1"]);
        let django = "RunSQL('CREATE INDEX i ON a (b)', 'DROP INDEX i')\nRunSQL(\n    \"DROP TABLE a\",\n    reverse_sql=\"CREATE TABLE a ()\")";
        assert_eq!(
            found(django, true),
            ["CREATE INDEX i ON a (b)", "DROP TABLE a"]
        );
        let ruby = "def change\n  reversible do |dir|\n    dir.up { execute 'DROP TABLE a' }\n    dir.down { execute 'CREATE TABLE a ()' }\n  end\nend";
        assert_eq!(found(ruby, false), ["DROP TABLE a"]);
        let script = "exports.down = (k) => k.raw('DROP TABLE a');\nexports.up = (k) => k.raw(`UPDATE a SET b = 1`);";
        assert_eq!(found(script, false), ["UPDATE a SET b = 1"]);
        let typed =
            "public async down(q: Q): Promise<void> {\n  await q.query(`DROP TABLE a`);\n}\n";
        assert_eq!(found(typed, false), [""; 0]);
    }

    #[test]
    fn documents_are_strings_and_comments_are_none() {
        let ruby =
            "def up\n  # execute 'DROP TABLE a'\n  execute <<~SQL\n    DROP TABLE b;\n  SQL\nend\n";
        assert_eq!(found(ruby, false), ["DROP TABLE b;"]);
        assert_eq!(
            found("x = \"\"\"\n  UPDATE a SET b = 1\n\"\"\"\n", true),
            ["UPDATE a SET b = 1"]
        );
        assert_eq!(
            found("puts 'update the table'\nx = 'Create'", false),
            ["update the table"]
        );
    }
}
