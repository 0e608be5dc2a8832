//! Values of credentials that installations for trials have.

use std::ops::Range;

/// Lines above and below a credential in which names are searched.
const LINES: usize = 8;
/// Bytes of a line that is read, at most. A longer one has many credentials or none.
pub(super) const LINE_MAX: usize = 400;
/// Ends of keys whose values are not secret.
const NAMES: &[&str] = &["user", "username", "db", "database", "dbname", "login"];

/// Returns true if a line near a credential gives the same value to a user or a database:
/// `POSTGRES_USER=shop` above `POSTGRES_PASSWORD=shop`. Who knows the name knows the password, so
/// it protects nothing that others can reach.
pub(super) fn is_name_near(text: &[u8], secret: &Range<usize>) -> bool {
    let value = &text[secret.clone()];
    lines_above(text, secret.start)
        .chain(lines_below(text, secret.end))
        .filter(|line| !is_comment(line))
        .any(|line| name_given(line).is_some_and(|name| name.eq_ignore_ascii_case(value)))
}

/// Returns true if a comment in the line above a credential says to replace it: `# CHANGE ME`.
pub(super) fn is_to_be_replaced(text: &[u8], secret: &Range<usize>) -> bool {
    const CALLS: [&[u8]; 4] = [
        b"replace me",
        b"change me",
        b"changeme",
        b"replace with your",
    ];
    let above = lines_above(text, secret.start).next().unwrap_or_default();
    let Some(words) = above.trim_ascii_start().strip_prefix(b"#") else {
        return false;
    };
    let words = words.trim_ascii_start().to_ascii_lowercase();
    CALLS.iter().any(|call| words.starts_with(call))
}

/// Returns true for a line that is a comment in configuration.
fn is_comment(line: &[u8]) -> bool {
    let first = line.trim_ascii_start().first();
    first.is_some_and(|b| matches!(b, b'#' | b'/' | b';' | b'*'))
}

/// Returns the lines above the one of a byte, the nearest one first.
fn lines_above(text: &[u8], at: usize) -> impl Iterator<Item = &[u8]> {
    let start = at.saturating_sub(LINES * LINE_MAX);
    text[start..at]
        .rsplit(|b| *b == b'\n')
        .skip(1)
        .take(LINES)
        .filter(|line| line.len() <= LINE_MAX)
}

/// Returns the lines below the one of a byte.
fn lines_below(text: &[u8], at: usize) -> impl Iterator<Item = &[u8]> {
    let end = text.len().min(at + LINES * LINE_MAX);
    text[at..end]
        .split(|b| *b == b'\n')
        .skip(1)
        .take(LINES)
        .filter(|line| line.len() <= LINE_MAX)
}

/// Returns the value that a line gives to a key for the name of a user or a database:
/// `- MYSQL_USER: "shop"`.
fn name_given(line: &[u8]) -> Option<&[u8]> {
    let is_mark =
        |b: &u8| b.is_ascii_whitespace() || matches!(b, b'"' | b'\'' | b'-' | b',' | b';');
    let at = line.iter().position(|b| matches!(b, b'=' | b':'))?;
    let key = trimmed(&line[..at], is_mark).to_ascii_lowercase();
    let key = std::str::from_utf8(&key).ok()?;
    let is_name = NAMES.iter().any(|name| {
        key.strip_suffix(name)
            .is_some_and(|rest| rest.is_empty() || rest.ends_with(['_', '-', '.']))
    });
    let value = trimmed(&line[at + 1..], is_mark);
    (is_name && !value.is_empty()).then_some(value)
}

/// Returns a text without such bytes at both ends.
fn trimmed(text: &[u8], is_mark: impl Fn(&u8) -> bool) -> &[u8] {
    let start = text.iter().position(|b| !is_mark(b)).unwrap_or(text.len());
    let end = text
        .iter()
        .rposition(|b| !is_mark(b))
        .map_or(start, |at| at + 1);
    &text[start..end]
}

#[cfg(test)]
mod tests {
    use crate::finding::Severity;
    use crate::policy::RuleProfile;
    use crate::rules::scan::layout::tests::changed;

    /// Returns the highest severity of a finding about a credential in a file of Compose.
    fn severity(lines: &str) -> Option<Severity> {
        let text = format!("services:\n  db:\n    image: mysql\n    environment:\n{lines}");
        changed(RuleProfile::Default, "deploy/compose.yml", "", &text)
            .into_iter()
            .filter(|finding| finding.rule_id().starts_with("hardcoded-credential"))
            .map(|finding| finding.severity())
            .max()
    }

    #[test]
    fn a_password_that_is_the_name_of_its_user_or_database_is_a_suggestion() {
        for lines in [
            "      - MYSQL_USER=xkshopw9e\n      - MYSQL_PASSWORD=xkshopw9e\n",
            "      - MYSQL_PASSWORD=xkshopw9e\n      - MYSQL_DATABASE=XkShopW9e\n",
            "      MYSQL_PASSWORD: 'xkshopw9e'\n      MYSQL_USER: xkshopw9e\n",
        ] {
            assert_eq!(severity(lines), Some(Severity::Suggestion), "{lines}");
        }
    }

    #[test]
    fn a_password_of_its_own_is_critical() {
        for lines in [
            "      - MYSQL_USER=shop\n      - MYSQL_PASSWORD=xkshopw9e\n",
            "      - MYSQL_SECRET=xkshopw9e\n      - MYSQL_PASSWORD=xkshopw9e\n",
            "      # user: xkshopw9e\n      - MYSQL_PASSWORD=xkshopw9e\n",
            "      - MYSQL_SUPERUSER=xkshopw9\n      - MYSQL_PASSWORD=xkshopw9e\n",
        ] {
            assert_eq!(severity(lines), Some(Severity::Critical), "{lines}");
        }
    }

    #[test]
    fn a_password_under_a_call_to_replace_it_is_a_suggestion() {
        let line = "      - MYSQL_PASSWORD=xkshopw9e\n";
        for (above, expected) in [
            (
                "      # REPLACE ME with a value of your own\n",
                Severity::Suggestion,
            ),
            ("      # change me\n", Severity::Suggestion),
            ("      # The password of the database\n", Severity::Critical),
            ("      # Do not change me\n", Severity::Critical),
            ("      - CHANGE_ME=a\n", Severity::Critical),
        ] {
            assert_eq!(
                severity(&format!("{above}{line}")),
                Some(expected),
                "{above}"
            );
        }
    }
}
