//! Words that people write in place of a secret, and references that name a secret.

use super::shape;
use aho_corasick::AhoCorasick;
use std::sync::LazyLock;

/// Returns true if text fetches or names a value instead of containing it: a variable, a call, a
/// template, an address, a path, a type, a format.
pub(super) fn is_reference(text: &str) -> bool {
    #[rustfmt::skip]
    const STARTS: &[&str] = &[
        "$", "{", "<", "[", "%(", "%{", "%s", "#{", "@{", "@(", "!", "(", "../", "./", "~/", "/", "\\", "enc[",
        "enc(", "vault:", "arn:", "op://", "env:", "env.", "secret://", "secretref", "ssm:", "sops:", "file:",
        "http:", "https:", "kms:", "self.", "this.", "process.", "os.", "system.", "config.", "settings.", "env[",
        "local.", "module.", "data.", "secrets.", "vars.", "params.", "options.", "opts.", "args.", "props.",
        "state.", "req.", "request.", "res.", "ctx.", "user.", "new ", "function", "lambda", "data:", "urn:",
        "oauth:", "ssh-", "sha256", "sha512", "sha1", "md5", "$2", "$argon2", "pbkdf2", "bcrypt", "scrypt", "{ssha",
        "ecdsa-", "mfkwewyhkozizj0", "miibijanbgkqhkig9w0b", "miicijanbgkqhkig9w0b", "ls0tls1crudjtibdrvju",
        "ls0tls1crudjtibqvujm", "pk_", "pub_", "public", "aaaab3nza", "__", "@@", "b'", "r'", "base64:", "var.",
        "each.", "resource.", "get_", "get-", "fetch", "load", "read",
    ];
    #[rustfmt::skip]
    const INSIDE: &[&str] = &[
        "${", "{{", "}}", "#{", "%{", "$(", "<%", "%>", "%s", "%d", "%v", "{}", "{0}", "()", "->", "=>", "::",
        "getenv", "environ", "process.env", "://", "\\d", "\\w", "\\s", "[a-z", "[0-9", "[^", "(?", ".*", ".+", "&&",
        "||", "==", "!=", "</", "/>",
    ];
    let lower = text.to_ascii_lowercase();
    STARTS.iter().any(|s| lower.starts_with(s))
        || INSIDE.iter().any(|s| lower.contains(s))
        || (lower.contains('(') && lower.ends_with(')'))
        || (lower.contains('[') && lower.ends_with(']'))
        || is_access(text)
        || (lower.starts_with('%') && lower.ends_with('%'))
        || (lower.starts_with('*') && lower.ends_with('*'))
        || is_dotted(text)
        || is_address(text)
}

/// Returns true for `parts[1],` and `decode(raw).trim`: a name followed by an index or a call, and
/// at most one punctuation character.
fn is_access(text: &str) -> bool {
    let end = text
        .find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '.')))
        .unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    let close = match rest.as_bytes().first() {
        Some(b'[') => ']',
        Some(b'(') => ')',
        _ => return false,
    };
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && rest.split_once(close).is_some_and(|(_, after)| {
            after.is_empty() || after.starts_with(['.', ',', ';', ')', ']', '[', '('])
        })
}

/// Returns true for names joined by dots: `a.b.c`.
fn is_dotted(text: &str) -> bool {
    text.contains('.')
        && text.split('.').all(|part| {
            part.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
                && part
                    .bytes()
                    .all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
        })
        && shape::wordiness(text) > 0.45
}

/// Returns true for an IP address, a version, a date or time, a mail address, a host with a port.
fn is_address(text: &str) -> bool {
    let numeric = text
        .bytes()
        .all(|b| b.is_ascii_digit() || matches!(b, b'.' | b':' | b'-' | b'/' | b'T' | b'Z' | b'+'));
    let separated = text.bytes().any(|b| matches!(b, b'.' | b':' | b'-' | b'/'));
    let mail = text.split_once('@').is_some_and(|(name, host)| {
        !name.is_empty()
            && name
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-' | b'+'))
            && host.contains('.')
            && host
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-'))
            && host
                .rsplit('.')
                .next()
                .is_some_and(|t| t.len() >= 2 && t.bytes().all(|b| b.is_ascii_alphabetic()))
    });
    (numeric && separated) || mail
}

/// Words that are placeholders for a password if the value has no other content.
#[rustfmt::skip]
const STAND_INS: &[&str] = &[
    "password", "passwort", "passwd", "passphrase", "passcode", "pass", "pwd", "pw", "secret", "token", "apikey",
    "api", "key", "credential", "cred", "admin", "administrator", "root", "user", "username", "usr", "login", "guest",
    "test", "testing", "tester", "demo", "default", "change", "changeit", "example", "sample", "foo", "bar", "baz",
    "qux", "hello", "world", "abc", "abcd", "xyz", "qwerty", "asdf", "zxcv", "letmein", "welcome", "master", "super",
    "temp", "tmp", "dummy", "fake", "mock", "none", "null", "nil", "true", "false", "value", "string", "text",
    "hidden", "private", "public", "postgres", "postgresql", "mysql", "mariadb", "mongo", "mongodb", "redis",
    "rabbitmq", "rabbit", "sa", "oracle", "elastic", "minio", "minioadmin", "grafana", "keycloak", "docker",
    "vagrant", "jenkins", "gitlab", "wordpress", "drupal", "django", "rails", "laravel", "symfony", "spring",
    "airflow", "superset", "neo4j", "kafka", "ldap", "smtp", "database", "db", "dev", "develop", "local", "localhost",
    "prod", "stage", "staging", "my", "your", "the", "a", "some", "new", "old", "wrong", "bad", "good", "correct",
    "right", "invalid", "valid", "strong", "weak", "secure", "insecure", "another", "other", "same", "different",
    "one", "two", "first", "second", "random", "long", "short", "very", "safe", "unsafe", "empty", "required",
    "optional", "confirm", "enter", "please", "insert", "here", "replace", "set", "this", "is", "not", "for", "only",
    "and", "or", "with", "client", "server", "service", "account", "auth", "oauth", "bearer", "basic", "jwt",
    "session", "cookie", "hash", "salt", "encrypt", "sekret", "blank", "simple", "nopass", "nothing", "anything",
    "something", "whatever", "monkey", "dragon", "hunter", "trustno", "iloveyou", "sunshine", "princess", "football",
    "batman", "swordfish", "shhh", "utf", "sha", "base", "md", "aes", "rsa", "hmac", "pbkdf", "md5", "sha1", "sha256",
    "sha512", "base64", "utf8", "oauth2", "alice", "bob", "john", "doe", "jane", "app", "application", "web", "site",
    "develop", "develper", "player", "system", "manager", "owner", "email", "mail", "name", "field", "input", "label",
    "type", "id", "p", "x", "xx", "xxx", "s", "pa", "ss", "placeholder", "redacted", "masked", "foobar", "notreal",
    "deadbeef", "cafebabe", "lorem", "ipsum", "todo", "fixme", "undefined", "unused", "generated", "obfuscated",
    "encrypted", "unittest", "qwertyuiop", "asdfgh", "keyboard", "production", "yourself", "goes", "must", "should",
];

/// A word of [`STAND_INS`] in a value. The order is that of their removal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct StandIn {
    is_short: bool,
    word: usize,
    from: usize,
    to: usize,
}

/// Finds all [`STAND_INS`] at once.
static STAND_IN_SEARCH: LazyLock<Option<AhoCorasick>> =
    LazyLock::new(|| AhoCorasick::new(STAND_INS).ok());

fn stand_ins(text: &[u8]) -> impl Iterator<Item = StandIn> {
    let found = STAND_IN_SEARCH
        .iter()
        .flat_map(move |search| search.find_overlapping_iter(text));
    found.map(|m| StandIn {
        is_short: m.len() < 4,
        word: m.pattern().as_usize(),
        from: m.start(),
        to: m.end(),
    })
}

/// Returns the number of characters of a value that remain after removing placeholder words (also
/// in leet spelling), counts and years.
pub(crate) fn substance(value: &str) -> usize {
    let lower: Vec<u8> = value.bytes().map(|b| b.to_ascii_lowercase()).collect();
    let plain: Vec<u8> = lower.iter().map(|b| unleet(*b)).collect();
    let mut gone = vec![false; lower.len()];
    let mut found: Vec<StandIn> = stand_ins(&lower).chain(stand_ins(&plain)).collect();
    found.sort_unstable();
    for StandIn {
        is_short, from, to, ..
    } in found
    {
        // A short word counts only if it is separate: between ends, digits, punctuation and removed
        // words.
        let alone = !is_short
            || (from
                .checked_sub(1)
                .is_none_or(|b| gone[b] || !lower[b].is_ascii_alphabetic())
                && lower
                    .get(to)
                    .is_none_or(|b| gone[to] || !b.is_ascii_alphabetic()));
        if alone {
            gone[from..to].fill(true);
        }
    }
    // Counts: 123, 321, 111; years.
    let mut i = 0;
    while i < lower.len() {
        let run = lower[i..].iter().take_while(|b| b.is_ascii_digit()).count();
        let digits = &lower[i..i + run];
        let year = run == 4 && matches!(&digits[..2], b"19" | b"20");
        let at_an_end = i == 0 || i + run == lower.len();
        let counted = run <= 2 && at_an_end
            || shape::longest_sequence(digits) == run
            || shape::longest_run(digits) == run
            || shape::period(digits).is_some();
        if run > 0 && (year || counted) {
            gone[i..i + run].fill(true);
        }
        i += run.max(1);
    }
    lower
        .iter()
        .zip(&gone)
        .filter(|(b, gone)| !**gone && !matches!(b, b'_' | b'-' | b'.' | b'!' | b' '))
        .count()
}

/// Returns true if a whole text is filler: one or two characters repeated, also after a prefix of
/// an issuer.
pub(crate) fn is_filler(text: &str) -> bool {
    let bytes = text.as_bytes();
    let end = bytes.len().saturating_sub(bytes.len() / 2);
    let mut signs: Vec<u8> = bytes[bytes.len() - end..]
        .iter()
        .map(u8::to_ascii_lowercase)
        .collect();
    signs.sort_unstable();
    signs.dedup();
    signs.len() <= 2 || shape::period(&bytes[bytes.len() / 4..]).is_some_and(|p| p <= 4)
}

/// Returns true if a whole value is a placeholder: only words for one, and a count.
///
/// A word for a placeholder in it does not suffice: `mySecret789` and `Default#2019!` have other
/// content.
pub(crate) fn is_stand_in(value: &str) -> bool {
    is_stand_in_word(value) || (substance(value) < 4 && !has_own_part(value))
}

/// Returns true if a value is one placeholder word, also in leet spelling: `p@55w0rd`.
fn is_stand_in_word(value: &str) -> bool {
    let plain: Vec<u8> = value
        .bytes()
        .map(|b| unleet(b.to_ascii_lowercase()))
        .collect();
    STAND_INS.iter().any(|word| word.as_bytes() == plain)
}

/// Returns true if a value has a number that is not a count (`789`), or a punctuation character and
/// a year (`#2019`) or number (`#77`).
fn has_own_part(value: &str) -> bool {
    let typed = has_typed_sign(value);
    value.split(|c: char| !c.is_ascii_digit()).any(|number| {
        let digits = number.as_bytes();
        let counts = matches!(digits.first(), Some(b'0' | b'1'))
            && shape::longest_sequence(digits) == digits.len();
        let down = digits.windows(2).all(|d| d[1] < d[0]) && digits.last() <= Some(&b'1');
        let year = digits.len() == 4 && (digits.starts_with(b"19") || digits.starts_with(b"20"));
        let repeats = shape::longest_run(digits) == digits.len();
        let repeats = repeats && (!typed || matches!(digits.first(), Some(b'0' | b'1')));
        let least = if typed { 2 } else { 3 };
        digits.len() >= least && !counts && !down && !repeats && (!year || typed)
    })
}

/// Returns true if a value has a punctuation character that replaces no letter: `#`, or `@` and `$`
/// before a digit.
fn has_typed_sign(value: &str) -> bool {
    let bytes = value.as_bytes();
    bytes.iter().enumerate().any(|(i, b)| match b {
        b'#' | b'%' | b'^' | b'&' | b'*' | b'=' | b'~' | b'?' | b'+' => true,
        b'@' | b'$' => i > 0 && bytes.get(i + 1).is_some_and(u8::is_ascii_digit),
        _ => false,
    })
}

/// Returns true if a value is typical of a password in examples: a complete placeholder, a
/// truncated value, a request to the reader, or a word in lower case and a count.
///
/// For reports only: redaction hides the last three.
pub(super) fn is_sample(value: &str) -> bool {
    const CUT: [&str; 4] = ["...", "…", "***", "•••"];
    is_stand_in(value)
        || CUT.iter().any(|c| value.contains(c))
        || asks_reader(value)
        || ends_with_count(value)
}

/// Returns true if a value is a word and consecutive digits: `password123`.
fn ends_with_count(value: &str) -> bool {
    let number =
        value.trim_start_matches(|c: char| c.is_ascii_lowercase() || matches!(c, '_' | '-'));
    let length = number.len();
    let is_count = length > 0 && number.bytes().all(|b| b.is_ascii_digit());
    is_count && shape::longest_sequence(number.as_bytes()) == length && substance(value) < 4
}

/// Returns true if a value consists of placeholder words with their own number after them:
/// `changeme-prod-8812`.
pub(super) fn is_numbered_stand_in(value: &str) -> bool {
    let name = value.trim_end_matches(|c: char| c.is_ascii_digit());
    value.len() - name.len() >= 4 && substance(name) < 4 && has_own_part(value)
}

/// Returns true if a value consists of words that request the reader to replace it:
/// `your_password_2`, `put-password-here`.
fn asks_reader(value: &str) -> bool {
    const FIRST: [&str; 6] = ["your", "insert", "replace", "enter", "put", "change_me"];
    let lower = value.to_ascii_lowercase();
    let asks = FIRST.iter().any(|w| lower.starts_with(w)) || lower.ends_with("here");
    asks && shape::wordiness(value) > 0.45 && !has_typed_sign(value)
}

fn unleet(b: u8) -> u8 {
    match b {
        b'0' => b'o',
        b'1' | b'!' => b'i',
        b'3' => b'e',
        b'4' | b'@' => b'a',
        b'5' | b'$' => b's',
        b'7' | b'+' => b't',
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_references() {
        for text in [
            "${DB_PASSWORD}",
            "$TOKEN",
            "{{ secret }}",
            "<your-key>",
            "process.env.TOKEN",
            "os.environ['X']",
            "getenv(X)",
            "config.database.password",
            "https://example.com/token",
            "%s",
            "/run/secrets/db",
            "10.0.0.1:8080",
            "2024-01-01",
            "me@host.org",
            "arn:aws:secretsmanager:x",
            "ENC[AES256_GCM,data:x]",
            "$2b$12$abcdefgh",
            "!Ref Secret",
        ] {
            assert!(is_reference(text), "{text}");
        }
        for text in ["Xk7vQ2mWp9Lr4TzN", "tr0ub4dor&3", "P@55!word.9"] {
            assert!(!is_reference(text), "{text}");
        }
    }

    #[test]
    fn finds_nothing_behind_weak_stand_ins() {
        for text in [
            "password123",
            "admin",
            "P@ssw0rd!",
            "test1234",
            "mypassword1",
            "root",
            "postgres",
            "s3cret",
            "secret2024",
        ] {
            assert!(substance(text) < 4, "{text} {}", substance(text));
        }
        for text in ["Xk7vQ2mW", "tr0ub4dor&3", "kR8#mm2pQ", "zagreb77ko"] {
            assert!(substance(text) >= 4, "{text} {}", substance(text));
        }
        assert!(is_stand_in("p@55w0rd") && !is_stand_in("p@55w0rd#77"));
    }
}
