//! The reviewed lines of a finding, from the stored change, and the search for them in a current
//! text. Secrets in a stored change are masked, so a masked byte equals every byte.

use super::region::changes;
use crate::diff::{FileChange, LineNo, RepoPath};
use crate::finding::Finding;
use crate::history::{SessionId, Store};
use crate::text::one_line;
use crate::wire;
use crate::wire::stored::Session;

/// Replaces each byte of a secret in a stored change.
pub(super) const MASK: u8 = b'*';

/// The files of a stored change, with their commits.
pub(super) type ReviewedFiles = Vec<(Option<String>, FileChange)>;

/// Returns the files of the last round; none if its change is unreadable.
pub(super) fn reviewed_files(store: &Store, session: &Session) -> ReviewedFiles {
    let round = u32::try_from(session.rounds.len()).unwrap_or(u32::MAX);
    let change = SessionId::parse(&session.review_id).and_then(|id| store.change(&id, round).ok());
    change.and_then(|text| changes(&text)).unwrap_or_default()
}

/// Returns the lines of a finding from the stored change, with secrets masked.
pub(super) fn lines(
    files: &ReviewedFiles,
    found: &wire::Finding,
    finding: &Finding,
) -> Option<Vec<Vec<u8>>> {
    let (path, span) = finding.file().zip(finding.lines())?;
    let text = &change_of(files, found, path)?.text()?.new;
    (span.first.get()..=span.last.get())
        .map(|number| text.line(LineNo::new(number)?).map(<[u8]>::to_vec))
        .collect()
}

/// Returns the last stored change of a file in the commit of a finding.
pub(super) fn change_of<'f>(
    files: &'f ReviewedFiles,
    found: &wire::Finding,
    path: &RepoPath,
) -> Option<&'f FileChange> {
    let mut changes = files
        .iter()
        .rev()
        .filter(|(commit, _)| *commit == found.commit)
        .map(|(_, change)| change);
    changes.find(|change| change.path() == path)
}

/// Finds reviewed lines in a file: at their old position, or else at the only other position that
/// has them.
pub(super) fn find(lines: &[&[u8]], reviewed: &[Vec<u8>], first: usize) -> Option<usize> {
    if is_at(lines, reviewed, first) {
        return Some(first);
    }
    let mut others = (0..lines.len()).filter(|at| is_at(lines, reviewed, *at));
    others.next().filter(|_| others.next().is_none())
}

/// Returns true if the reviewed lines are in a file from the line with index `at` on.
fn is_at(lines: &[&[u8]], reviewed: &[Vec<u8>], at: usize) -> bool {
    let there = lines.get(at..at + reviewed.len());
    there.is_some_and(|there| {
        there
            .iter()
            .zip(reviewed)
            .all(|(line, reviewed)| is_same(line, reviewed))
    })
}

/// Returns true if a text contains the reviewed lines anywhere. Ignores white space at both ends of
/// a line.
pub(super) fn has(text: &[u8], reviewed: &[Vec<u8>]) -> bool {
    let lines: Vec<&[u8]> = text
        .split(|b| *b == b'\n')
        .map(<[u8]>::trim_ascii)
        .collect();
    reviewed.is_empty()
        || lines.windows(reviewed.len()).any(|there| {
            there
                .iter()
                .zip(reviewed)
                .all(|(line, one)| is_same(line, one.trim_ascii()))
        })
}

/// Returns true if a line is the reviewed one, ignoring masked bytes.
fn is_same(line: &[u8], reviewed: &[u8]) -> bool {
    line.len() == reviewed.len()
        && line
            .iter()
            .zip(reviewed)
            .all(|(one, other)| one == other || *other == MASK)
}

/// Returns the lines of a text without line endings; a final line ending does not start another
/// line.
pub(super) fn text_lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let text = text.strip_suffix(b"\n").unwrap_or(text);
    text.split(|b| *b == b'\n')
        .map(|line| line.strip_suffix(b"\r").unwrap_or(line))
}

/// Returns true if lines contain a quote, ignoring white space and masked parts of the quote.
pub(super) fn contains(lines: &[u8], quote: &str) -> bool {
    let lines = one_line(&String::from_utf8_lossy(lines));
    // A long quote is truncated.
    let quote = one_line(quote.split(" …").next().unwrap_or_default());
    let mut rest = lines.as_str();
    quote
        .split("**")
        .map(|piece| piece.trim_matches('*'))
        .filter(|piece| !piece.is_empty())
        .all(|piece| {
            let found = rest.find(piece);
            rest = found.map_or("", |at| &rest[at + piece.len()..]);
            found.is_some()
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes_of(reviewed: &[&str]) -> Vec<Vec<u8>> {
        reviewed.iter().map(|l| l.as_bytes().to_vec()).collect()
    }

    fn at(text: &str, reviewed: &[&str], first: usize) -> Option<usize> {
        find(
            &text_lines(text.as_bytes()).collect::<Vec<_>>(),
            &bytes_of(reviewed),
            first,
        )
    }

    fn has(text: &str, reviewed: &[&str]) -> bool {
        super::has(text.as_bytes(), &bytes_of(reviewed))
    }

    #[test]
    fn lines_are_found_where_they_were_or_in_one_other_place() {
        assert_eq!(at("a\nb\na\n", &["a"], 2), Some(2));
        assert_eq!(at("a\nb\na\n", &["a"], 1), None, "two places");
        assert_eq!(at("x\na\r\nb\n", &["a", "b"], 0), Some(1));
        assert_eq!(at("a\n", &["a", "b"], 0), None);
        assert_eq!(at("key = 1234\n", &["key = ****"], 0), Some(0), "masked");
        assert_eq!(at("key = 12345\n", &["key = ****"], 0), None);
        assert_eq!(at("", &["a"], 7), None);
    }

    #[test]
    fn reviewed_lines_are_whole_lines() {
        assert!(
            has("x\n\ta\r\nb\n", &["  a", "b"]) && has("", &[]) && has("key = 12\n", &["key = **"])
        );
        for text in ["a = 1 if n else 0\n", "b\na = 1\n", ""] {
            assert!(
                !has(text, &["a = 1", "b"]) && !has(text, &["a ="]),
                "{text}"
            );
        }
    }
}
