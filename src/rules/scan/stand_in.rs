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

/// Returns true if the connection string around a password is a text in quotes that names this
/// machine as its server. Each of its keys must be known, because many of them can name another
/// host. `secret`: bytes of the line.
pub(super) fn connects_to_this_machine(line: &[u8], secret: &Range<usize>) -> bool {
    const SERVERS: [&[u8]; 3] = [b"server", b"data source", b"host"];
    const OTHERS: [&[u8]; 22] = [
        b"database",
        b"initial catalog",
        b"user id",
        b"userid",
        b"uid",
        b"user",
        b"username",
        b"password",
        b"pwd",
        b"port",
        b"encrypt",
        b"trustservercertificate",
        b"trusted_connection",
        b"integrated security",
        b"persist security info",
        b"multipleactiveresultsets",
        b"connection timeout",
        b"connect timeout",
        b"application name",
        b"charset",
        b"sslmode",
        b"pooling",
    ];
    let Some(text) = quoted_around(line, secret) else {
        return false;
    };
    let text = text.to_ascii_lowercase();
    let mut servers = 0;
    for pair in text.split(|b| *b == b';').map(<[u8]>::trim_ascii) {
        let at = memchr::memchr(b'=', pair).unwrap_or(pair.len());
        let (key, value) = pair.split_at(at);
        let (key, value) = (key.trim_ascii(), value.strip_prefix(b"=").unwrap_or(value));
        if SERVERS.contains(&key) && is_this_machine(value.trim_ascii()) {
            servers += 1;
        } else if !pair.is_empty() && !OTHERS.contains(&key) {
            return false;
        }
    }
    servers == 1
}

/// Returns the text in double quotes around a part of a line, if it is short and nothing is joined
/// with it.
fn quoted_around<'t>(line: &'t [u8], part: &Range<usize>) -> Option<&'t [u8]> {
    let from = part.start.saturating_sub(LINE_MAX);
    let to = line.len().min(part.end + LINE_MAX);
    let start = from + memchr::memrchr(b'"', &line[from..part.start])? + 1;
    let end = part.end + memchr::memchr(b'"', &line[part.end..to])?;
    let text = &line[start..end];
    let is_plain = !text
        .iter()
        .any(|b| matches!(b, b'\'' | b'`' | b'\\' | b'{' | b'%' | b'$'));
    let before = line[from..start - 1].trim_ascii_end();
    let after = line[end + 1..].trim_ascii_start();
    let is_alone = matches!(before, [] | [.., b'=' | b':' | b',' | b'['])
        && !before.contains(&b';')
        && matches!(after, [] | [b',' | b';' | b')' | b'}' | b']', ..]);
    (is_plain && is_alone).then_some(text)
}

/// Returns true for the name of this machine, with or without a protocol and a port.
fn is_this_machine(host: &[u8]) -> bool {
    const NAMES: [&[u8]; 4] = [b"localhost", b"127.0.0.1", b"::1", b"(local)"];
    let host = host.strip_prefix(b"tcp:").unwrap_or(host);
    let mut parts = host.split(|b| *b == b',');
    let name = parts.next().unwrap_or_default();
    NAMES.contains(&name)
        && parts.all(|port| !port.is_empty() && port.iter().all(u8::is_ascii_digit))
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

    /// Returns the severity of the findings in a new file.
    fn severity_in(path: &str, text: &str) -> Option<Severity> {
        changed(RuleProfile::Default, path, "", text)
            .into_iter()
            .map(|finding| finding.severity())
            .max()
    }

    #[test]
    fn a_connection_to_this_machine_is_a_suggestion() {
        for (server, expected) in [
            ("Server=127.0.0.1", Severity::Suggestion),
            ("Server=tcp:127.0.0.1,5433", Severity::Suggestion),
            ("Data Source = localhost; Port=5432", Severity::Suggestion),
            ("Server=localhost.corp.net", Severity::Critical),
            ("Server=db.corp.net", Severity::Critical),
            ("Host=localhost,db.corp.net", Severity::Critical),
            (
                "Server=127.0.0.1;Data Source=db.corp.net",
                Severity::Critical,
            ),
            ("Host=localhost;hostaddr=203.0.113.9", Severity::Critical),
            (
                "Server=localhost;Failover Partner=db.corp.net",
                Severity::Critical,
            ),
        ] {
            let line =
                format!("{{\"Db\": \"{server};Database=app;User Id=app;Password=Xk-8shopW9e\"}}\n");
            assert_eq!(severity_in("a.json", &line), Some(expected), "{server}");
        }
        let text = "\"Server=localhost;User Id=app;Password=Xk-8shopW9e\"";
        for (path, line) in [
            // Code can join it with another text.
            ("A.cs", format!("var text = {text};\n")),
            (".env", format!("DB=Server=db.corp.net;Note={text}\n")),
            (
                "a.json",
                text.replace("Id=app", "Id=$APP")
                    .replace("\"S", "{\"a\": \"S")
                    + "}\n",
            ),
        ] {
            assert_eq!(severity_in(path, &line), Some(Severity::Critical), "{line}");
        }
    }

    #[test]
    fn a_connection_that_is_the_default_of_a_variable_is_a_suggestion() {
        for (start, end, expected) in [
            ("${DB:-", "}", Severity::Suggestion),
            ("${DB:-", "", Severity::Critical),
            ("${DB}", "", Severity::Critical),
            ("", "", Severity::Critical),
        ] {
            let line = format!(
                "a:\n  - DB={start}Server=db.corp.net;User Id=app;Password=Xk-8shopW9e{end}\n"
            );
            assert_eq!(severity_in("a.yml", &line), Some(expected), "{start}");
        }
        let code = "tag = \"${A:-\"; db_password = \"Xk8shopW9e\"; b = \"}\"\n";
        assert_eq!(severity_in("a.py", code), Some(Severity::Critical));
    }
}
