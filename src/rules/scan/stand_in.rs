//! Values of credentials that installations for trials have.

use std::ops::Range;

/// Lines above and below a credential in which names are searched.
const LINES: usize = 8;
/// Lines above and below a credential in which the address of an account is searched.
const DEMO_LINES: usize = 3;
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

/// Returns true if a credential is a word with a number, and a line near it has an e-mail address
/// of a domain that RFC 2606 reserves for examples: no such account exists.
pub(super) fn is_of_demo_account(text: &[u8], secret: &Range<usize>) -> bool {
    const DOMAINS: [&[u8]; 4] = [
        b"@example.com",
        b"@example.org",
        b"@example.net",
        b"@example.local",
    ];
    if !is_word_with_number(&text[secret.clone()]) {
        return false;
    }
    let start = text[..secret.start].iter().rposition(|b| *b == b'\n');
    let start = start.map_or(0, |at| at + 1);
    let end = memchr::memchr(b'\n', &text[secret.end..]);
    let end = end.map_or(text.len(), |at| secret.end + at);
    let line = &text[start..end.min(start + LINE_MAX)];
    let near = lines_above(text, secret.start).take(DEMO_LINES);
    let near = near.chain(lines_below(text, secret.end).take(DEMO_LINES));
    near.chain(std::iter::once(line)).any(|line| {
        let domain = |domain: &&[u8]| memchr::memmem::find(line, domain).is_some();
        DOMAINS.iter().any(domain)
    })
}

/// Returns true for letters with up to four digits behind them: `spring2024`.
fn is_word_with_number(value: &[u8]) -> bool {
    let letters = value.iter().take_while(|b| b.is_ascii_alphabetic()).count();
    let digits = &value[letters..];
    (3..=12).contains(&letters) && digits.len() <= 4 && digits.iter().all(u8::is_ascii_digit)
}

/// Returns true if the connection string around a password names this machine as its server.
/// `secret`: bytes of the line.
pub(super) fn connects_to_this_machine(line: &[u8], secret: &Range<usize>) -> bool {
    // `source`: the end of `Data Source`.
    const KEYS: [&[u8]; 4] = [b"server", b"source", b"host", b"hostname"];
    let is_quote = |b: &u8| matches!(b, b'"' | b'\'' | b'`');
    let start = line[..secret.start].iter().rposition(is_quote);
    let end = line[secret.end..].iter().position(is_quote);
    let text = &line[start.map_or(0, |at| at + 1)..end.map_or(line.len(), |at| secret.end + at)];
    let text = text.to_ascii_lowercase();
    let mut hosts = memchr::memchr_iter(b'=', &text)
        .filter(|at| KEYS.contains(&last_word(&text[..*at])))
        .map(|at| text[at + 1..].trim_ascii_start())
        .peekable();
    hosts.peek().is_some() && hosts.all(is_this_machine)
}

/// Returns the last word of a text.
fn last_word(text: &[u8]) -> &[u8] {
    let text = text.trim_ascii_end();
    let length = text.iter().rev().take_while(|b| b.is_ascii_alphabetic());
    &text[text.len() - length.count()..]
}

/// Returns true if all URLs near a credential of a request are those of this machine.
pub(super) fn requests_this_machine(line: &[u8], secret: &Range<usize>) -> bool {
    let from = secret.start.saturating_sub(LINE_MAX);
    let near = &line[from..line.len().min(secret.end + LINE_MAX)];
    let mut hosts = memchr::memmem::find_iter(near, b"://")
        .map(|at| &near[at + 3..])
        .peekable();
    hosts.peek().is_some() && hosts.all(is_this_machine)
}

/// Returns true for a host of this machine, with or without a protocol, a port and a path.
fn is_this_machine(host: &[u8]) -> bool {
    const NAMES: [&[u8]; 5] = [b"localhost", b"127.0.0.1", b"[::1]", b"::1", b"(local)"];
    let host = host.strip_prefix(b"tcp:").unwrap_or(host);
    NAMES.iter().any(|name| {
        let rest = host.strip_prefix(*name);
        rest.is_some_and(|rest| {
            rest.first()
                .is_none_or(|b| matches!(b, b':' | b',' | b'/' | b'\\' | b'?' | b';' | b' '))
        })
    })
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

    /// Returns the severity of the findings about credentials in a new file.
    fn severity_in(path: &str, text: &str) -> Option<Severity> {
        changed(RuleProfile::Default, path, "", text)
            .into_iter()
            .map(|finding| finding.severity())
            .max()
    }

    #[test]
    fn a_word_beside_an_address_for_examples_is_a_suggestion() {
        let script = |mail: &str, password: &str| {
            format!("ADMIN_EMAIL=\"{mail}\"\nADMIN_PASSWORD=\"{password}\"\n")
        };
        for (mail, password, expected) in [
            ("root@example.com", "velvet482", Severity::Suggestion),
            ("root@example.org", "velvet9", Severity::Suggestion),
            ("root@example.com", "v3lvEt_4x82", Severity::Critical),
            ("root@velvet-shop.io", "velvet482", Severity::Critical),
            ("root@examples.com", "velvet482", Severity::Critical),
        ] {
            let found = severity_in("setup.sh", &script(mail, password));
            assert_eq!(found, Some(expected), "{mail} {password}");
        }
    }

    #[test]
    fn a_connection_to_this_machine_is_a_suggestion() {
        for (server, expected) in [
            ("127.0.0.1", Severity::Suggestion),
            ("tcp:127.0.0.1,5433", Severity::Suggestion),
            ("localhost", Severity::Suggestion),
            ("(local)\\\\SQL", Severity::Suggestion),
            ("localhost.corp.net", Severity::Critical),
            ("db.corp.net", Severity::Critical),
            ("127.0.0.1;Data Source=db.corp.net", Severity::Critical),
        ] {
            let line = format!(
                "{{\"Db\": \"Server={server};Database=app;User Id=app;Password=Xk-8shopW9e\"}}\n"
            );
            assert_eq!(severity_in("a.json", &line), Some(expected), "{server}");
        }
    }

    #[test]
    fn a_connection_that_is_the_default_of_a_variable_is_a_suggestion() {
        let line = |start: &str, end: &str| {
            format!("a:\n  - DB={start}Server=db.corp.net;User Id=app;Password=Xk-8shopW9e{end}\n")
        };
        let severity = |start, end| severity_in("a.yml", &line(start, end));
        assert_eq!(severity("${DB:-", "}"), Some(Severity::Suggestion));
        assert_eq!(severity("${DB}", ""), Some(Severity::Critical));
        assert_eq!(severity("", ""), Some(Severity::Critical));
    }

    #[test]
    fn a_request_to_this_machine_is_a_suggestion() {
        let key = "9f1c84e07ab35d2688c0be41d7a2f935";
        for (url, expected) in [
            ("http://localhost:5000/v1", Severity::Suggestion),
            ("http://127.0.0.1/v1", Severity::Suggestion),
            ("https://api.corp.net/v1", Severity::Critical),
            ("http://localhost.corp.net/v1", Severity::Critical),
        ] {
            let line = format!("curl {url} -H 'X-Api-Key: {key}'\n");
            assert_eq!(severity_in("run.sh", &line), Some(expected), "{url}");
        }
    }
}
