//! Values that are a password or a token in use. Only the value is judged, not its name or its file.

use super::{checksum, jwt, placeholder, shape, words};

/// The required certainty of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bar {
    /// Code and configuration.
    Normal,
    /// Prose and local addresses, which often contain examples: only generated values count.
    Strict,
}

/// Returns true if a value has the form of a token with a wrong checksum, is a web token that
/// grants no access, or is a key that its issuer publishes.
pub(super) fn opens_nothing(value: &str) -> bool {
    is_forged(value) || is_published(value)
}

/// Returns true if a value has the form of a key that every visitor of a page receives and that
/// only identifies the page's owner. Sources: Mapbox (public tokens start with `pk.`), Datadog
/// (client tokens with `pub`), PostHog (project keys), Supabase (publishable keys). Public keys of
/// SSH start with the length and the name of their kind in base64 (RFC 4253, section 6.6).
fn is_published(value: &str) -> bool {
    const SSH: &[&[u8]] = &[
        b"AAAAB3NzaC1yc2E",
        b"AAAAC3NzaC1lZDI1NTE5",
        b"AAAAE2VjZHNhLXNoYTItbmlzdH",
        b"AAAAGnNrLXNzaC1lZDI1NTE5",
        b"AAAAInNrLWVjZHNhLXNoYTItbmlzdH",
    ];
    let value = value.as_bytes();
    let is_ssh = SSH.iter().any(|start| value.starts_with(start));
    is_ssh
        || value
            .strip_prefix(b"pk.eyJ")
            .is_some_and(|r| r.iter().filter(|b| **b == b'.').count() == 1)
        || value
            .strip_prefix(b"pub")
            .is_some_and(|r| r.len() == 32 && r.iter().all(u8::is_ascii_hexdigit))
        || value
            .strip_prefix(b"phc_")
            .is_some_and(|r| r.len() >= 40 && r.iter().all(u8::is_ascii_alphanumeric))
        || value.starts_with(b"sb_publishable_")
}

/// See [`opens_nothing`].
fn is_forged(value: &str) -> bool {
    let b = value.as_bytes();
    let github = b.len() == 40 && b.starts_with(b"gh") && b[3] == b'_' && b"pousr".contains(&b[2]);
    let npm = b.len() == 40 && b.starts_with(b"npm_");
    let grafana = b.len() == 46 && b.starts_with(b"glsa_");
    let stellar =
        b.len() == 56 && b[0] == b'S' && b.iter().all(|c| matches!(c, b'A'..=b'Z' | b'2'..=b'7'));
    ((github || npm) && !checksum::crc32_base62(b))
        || (grafana && !checksum::grafana(b))
        || (stellar && !checksum::stellar(b))
        || jwt::jwt(b).is_some_and(|j| !j.is_credential() && !j.is_service_role())
}

/// Returns true if a value is a password in use.
pub(super) fn is_password(value: &str, bar: Bar) -> bool {
    let n = value.len();
    if !(6..=128).contains(&n) || !value.bytes().all(|b| b.is_ascii_graphic()) {
        return false;
    }
    if words::is_sample(value)
        || words::is_reference(value)
        || shape::is_uuid(value)
        || is_file(value)
        || is_number_like(value)
    {
        return false;
    }
    let lower = value.bytes().filter(u8::is_ascii_lowercase).count();
    let upper = value.bytes().filter(u8::is_ascii_uppercase).count();
    let digits = value.bytes().filter(u8::is_ascii_digit).count();
    let joiners = value
        .bytes()
        .filter(|b| matches!(b, b'_' | b'-' | b'.' | b'/' | b':' | b','))
        .count();
    let letters = lower + upper;
    let signs = n - letters - digits - joiners;
    if letters == 0 && signs == 0 {
        return bar == Bar::Normal
            && digits >= 6
            && shape::longest_sequence(value.as_bytes()) < 4
            && shape::longest_run(value.as_bytes()) < 4
            && shape::entropy(value.as_bytes()) > 2.3
            && words::substance(value) >= 6;
    }
    if shape::longest_run(value.as_bytes()) >= 5 || shape::longest_sequence(value.as_bytes()) >= 6 {
        return false;
    }
    let wordy = shape::wordiness(value);
    // `UNSET-PASSWORD!`, `required|string|max:255`: names and rules, not passwords.
    let names_itself = [
        "password", "passwd", "secret", "token", "string", "required", "null",
    ];
    let plain = value.to_ascii_lowercase();
    if wordy > 0.6
        && (digits == 0 || value.contains('|'))
        && names_itself.iter().any(|n| plain.contains(n))
    {
        return false;
    }
    // `pm-27086-update-apis`, `AUTH_TOKEN_2`: words of one case joined to a name, with a number
    // among them.
    let mixed = lower > 0 && upper > 0 && digits >= 3;
    if joiners >= 2 && signs == 0 && wordy > 0.55 && !mixed && !words::is_numbered_stand_in(value) {
        return false;
    }
    if bar == Bar::Strict {
        let classes = [lower, upper, digits, signs]
            .iter()
            .filter(|c| **c > 0)
            .count();
        return n >= 10 && wordy < 0.4 && classes >= 3 && shape::entropy(value.as_bytes()) >= 3.0;
    }
    if digits == 0 && signs == 0 {
        // A value of letters alone is a word or a name, unless no language has such a word.
        let mixed = lower >= 2 && upper >= 2 && n >= 8 && shape::entropy(value.as_bytes()) >= 2.7;
        return wordy < 0.25 && (mixed || (n >= 10 && shape::entropy(value.as_bytes()) >= 3.0));
    }
    // `utf-8-encoding`, `step2_name`: a name with a number in it.
    !(signs == 0 && digits <= 2 && joiners > 0 && wordy > 0.6)
        && !(signs > 0 && digits == 0 && upper == 0 && wordy > 0.7)
}

/// Returns true if a value seems generated, under a name that does not suggest a secret.
pub(super) fn is_generated(value: &str) -> bool {
    !opens_nothing(value) && (is_password(value, Bar::Strict) || is_generated_key(value))
}

/// Returns true if a value is a generated key, and neither an identifier nor a placeholder.
fn is_generated_key(value: &str) -> bool {
    is_token(value, Bar::Strict) && !shape::is_uuid(value) && !placeholder::is_placeholder(value)
}

/// Returns true if a value is a generated key.
pub(super) fn is_token(value: &str, bar: Bar) -> bool {
    let n = value.len();
    let shaped = value.bytes().all(|b| {
        b.is_ascii_alphanumeric()
            || matches!(
                b,
                b'+' | b'/' | b'=' | b'_' | b'-' | b'.' | b'~' | b':' | b'|'
            )
    });
    if !(16..=512).contains(&n) || !shaped {
        return false;
    }
    if words::is_reference(value)
        || is_file(value)
        || is_number_like(value)
        || !shape::is_random(value)
    {
        return false;
    }
    let digits = value.bytes().filter(u8::is_ascii_digit).count();
    let upper = value.bytes().any(|b| b.is_ascii_uppercase());
    let lower = value.bytes().any(|b| b.is_ascii_lowercase());
    if digits == n || !(upper || lower) || words::substance(value) < 8 {
        return false;
    }
    // Groups joined by punctuation are names, unless the groups themselves are random.
    let wordy = shape::wordiness(value);
    let limit = if bar == Bar::Strict { 0.3 } else { 0.45 };
    if wordy >= limit {
        return false;
    }
    digits >= 2
        || (upper && lower && n >= 20 && wordy < 0.25 && shape::entropy(value.as_bytes()) >= 3.5)
}

/// Returns true for a file name, a media type or a package.
fn is_file(value: &str) -> bool {
    #[rustfmt::skip]
    const ENDS: &[&str] = &[
        ".json", ".yaml", ".yml", ".xml", ".html", ".js", ".ts", ".py", ".go", ".java", ".rb", ".php", ".txt", ".key",
        ".pem", ".crt", ".com", ".org", ".net", ".io", ".md", ".cfg", ".ini", ".conf", ".env", ".jks", ".p12", ".pfx",
        ".css", ".png", ".svg", ".vue", ".tsx", ".jsx", ".sh", ".sql", ".cer", ".token", ".password", ".secret",
        ".local", ".dev", ".rs", ".toml", ".kt", ".cs", ".log",
    ];
    let lower = value.to_ascii_lowercase();
    ENDS.iter().any(|e| lower.ends_with(e))
}

/// Returns true for a number with a unit or a separator, a colour or a version.
fn is_number_like(value: &str) -> bool {
    let v = value.trim_start_matches(['v', 'V', '+', '-', '#']);
    let digits = v.bytes().filter(u8::is_ascii_digit).count();
    let signs = v
        .bytes()
        .filter(|b| matches!(b, b'.' | b',' | b'_' | b'-' | b':' | b'x'))
        .count();
    let hex = v.starts_with("0x") && v.len() <= 18;
    let colour = value.starts_with('#') && v.len() <= 8 && v.bytes().all(|b| b.is_ascii_hexdigit());
    hex || colour
        || (digits > 0 && digits + signs + 2 >= v.len() && signs > 0)
        || is_version(v)
        || is_migration(value)
}

/// Returns true for numbers joined by dots with a stage: `1.0.0-rc2-final`,
/// `10.0.0-preview.7.25380.108`, `2.0.1.RELEASE`.
fn is_version(value: &str) -> bool {
    #[rustfmt::skip]
    const STAGES: &[&str] = &[
        "alpha", "beta", "rc", "preview", "pre", "final", "dev", "snapshot", "release", "canary", "next", "nightly",
        "build", "post", "milestone", "incubating", "a", "b", "m", "ga", "sp", "ci", "insiders",
    ];
    let value = value.trim_start_matches(['^', '~', '>', '<', '=', 'v']);
    let end = value
        .find(|c: char| !(c.is_ascii_digit() || c == '.'))
        .unwrap_or(value.len());
    let (numbers, stage) = value.split_at(end);
    let numbers = numbers.trim_end_matches('.');
    let counted = numbers.split('.').count() >= 2
        && numbers
            .split('.')
            .all(|n| (1..=5).contains(&n.len()) && n.bytes().all(|b| b.is_ascii_digit()));
    let plain = stage
        .bytes()
        .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'+'));
    let word = stage.trim_start_matches(['-', '.', '+', '_']);
    let word = &word[..word
        .find(|c: char| !c.is_ascii_alphabetic())
        .unwrap_or(word.len())];
    let rest = stage.trim_start_matches(|c: char| !c.is_ascii_digit());
    counted
        && plain
        && STAGES.iter().any(|s| word.eq_ignore_ascii_case(s))
        && (word.len() > 1 || rest.bytes().all(|b| b.is_ascii_digit() || b == b'.'))
}

/// Returns true for names of database migrations: `0002_auto_20160226_1747`,
/// `20160226174700_create_tokens`.
fn is_migration(value: &str) -> bool {
    value.split_once('_').is_some_and(|(number, name)| {
        matches!(number.len(), 3 | 4 | 14)
            && number.bytes().all(|b| b.is_ascii_digit())
            && name.starts_with(|c: char| c.is_ascii_lowercase())
            && name
                .bytes()
                .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
            && name
                .split(['_', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9'])
                .any(|w| shape::wordiness(w) > 0.9)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weighs_passwords() {
        for live in [
            "kR8#mm2pQ",
            "Tr0ub4dor&3",
            "zagreb77ko",
            "xK9vvLq2",
            "9f86d081884c7d65",
            "1.2xkQ9vv#Lq",
            "10.5a8Kd92kQ",
            "0042_kk9vqz1x",
            "kR8(m)2pQ",
            // These contain a word of a placeholder.
            "mySecret789",
            "Default#2019!",
            "Changeme-prod-8812",
            "exampleKey#77x",
            "Sample#2291",
            "Fake#9912z",
            "Winter2024!x",
            "Test-Server-4471",
            "changeme-prod-8812",
            "my-secret-pass-4471",
        ] {
            assert!(is_password(live, Bar::Normal), "{live}");
        }
        for dead in [
            "password",
            "changeme",
            "P@ssw0rd",
            "admin123",
            "123456",
            "secret",
            "your-password",
            "${PASSWORD}",
            "********",
            "string",
            "confirmPassword",
            "user_password",
            "current-password",
            "config.password",
            "Passwort",
            "1.2.3",
            "2024-05-06",
            "#ff00aa",
            "text/plain",
            "password.txt",
            "test@test.com",
            "Password:",
            "required",
            "<password>",
            "%s",
            "abcdef",
            "step2_name",
            "1.0.0-rc2-final",
            "10.0.0-preview.7.25380.108",
            "2.0.1.RELEASE",
            "1.0b2",
            "0001_initial",
            "0002_auto_20160226_1747",
            "20160226174700_create_tokens",
            "parts[1],",
            "decode(raw)[1]",
            "your-password-here",
            "your_password_8812",
            "put-your-password-here-2",
            "xxxxxx",
            "example123",
            "test1234",
            "password456",
            "change_me_2024",
            "Test@1234",
            "Admin#123",
            "Password2019!",
            "secret2024",
            "dummyPass99!",
            "fake_api_key_12345",
            "abc...xyz12#Q",
            "mock-token-abc123",
            "Your256BitSecretKeyHere",
            "password-reset-flow-2024",
            "db-password-2",
        ] {
            assert!(!is_password(dead, Bar::Normal), "{dead}");
        }
    }

    #[test]
    fn weighs_tokens() {
        for live in [
            "Xk7vQ2mWp9Lr4TzN8sYb",
            "9f86d081884c7d659a2feaa0c55ad015",
            "q83vEjRWeJCrze8BI0VniavN7wEjRWeJq83v",
        ] {
            assert!(is_token(live, Bar::Normal), "{live}");
        }
        for dead in [
            "your-api-key-goes-here",
            "xxxxxxxxxxxxxxxxxxxx",
            "00000000000000000000",
            "1234567890123456",
            "my_access_token_value",
            "abcdefghijklmnopqrstuvwxyz",
            "com.example.app.token",
            "https://host/oauth/token",
            "application/x-www-form-urlencoded",
        ] {
            assert!(!is_token(dead, Bar::Normal), "{dead}");
        }
    }
}
