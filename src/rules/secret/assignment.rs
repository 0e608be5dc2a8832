//! Values assigned to names: `password = "…"`, `API_KEY=…`, `token: …`, and passwords in addresses.
//!
//! The pattern of a rule finds the form. This module reads the name word by word, compares the form
//! with the kind of file, and judges the value. A name that only contains a word for a secret
//! (`token_url`, `password_hint`) and a placeholder value are not findings.

use super::name::{SecretKind, named, speaks_of_secret};
use super::written::{ValueForm, form};
use super::{SecretCandidate, checksum, encoded, host, placeholder, shape, words};

/// The required certainty of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bar {
    /// Code and configuration.
    Normal,
    /// Prose and local addresses, which often contain examples: only generated values count.
    Strict,
}

/// The forms of assignment in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AssignmentStyle {
    /// A value is a string literal.
    Code,
    /// A value may be unquoted, alone on its line.
    Config,
    /// A value may be unquoted, among others.
    Shell,
    /// Prose.
    Doc,
    /// Values are texts for people, digests, or styles.
    Never,
}

fn kind(path: &[u8]) -> AssignmentStyle {
    let path = String::from_utf8_lossy(path).to_ascii_lowercase();
    let name = path.rsplit('/').next().unwrap_or(&path);
    let ext = name.rsplit_once('.').map_or("", |(_, e)| e);
    const TEXTS: &[&str] = &[
        "/locales/",
        "/locale/",
        "/i18n/",
        "/lang/",
        "/langs/",
        "/translations/",
        "/translation/",
        "/l10n/",
    ];
    let slashed = format!("/{path}");
    if TEXTS.iter().any(|t| slashed.contains(t))
        || name.starts_with("messages")
        || name.contains(".min.")
    {
        return AssignmentStyle::Never;
    }
    #[rustfmt::skip]
    const PROSE: &[&str] = &[
        "md", "markdown", "rst", "adoc", "asciidoc", "mdx", "html", "htm", "tex", "ipynb", "org", "textile", "pod",
        "man", "txt",
    ];
    // In documentation of software, every key is invented.
    #[rustfmt::skip]
    const MANUALS: &[&str] = &[
        "/docs/", "/doc/", "/documentation/", "/guide/", "/guides/", "/site/", "/website/", "/content/", "/blog/",
        "/posts/", "/_posts/", "/tutorial/", "/tutorials/", "/manual/", "/book/", "/wiki/", "/reference/",
        "/handbook/", "/changelogs/",
    ];
    if PROSE.contains(&ext) && MANUALS.iter().any(|m| slashed.contains(m)) {
        return AssignmentStyle::Never;
    }
    if name.starts_with(".env")
        || name.ends_with(".env")
        || name.starts_with("dockerfile")
        || name == "containerfile"
    {
        return AssignmentStyle::Shell;
    }
    match ext {
        "sh" | "bash" | "zsh" | "fish" | "ksh" | "bat" | "cmd" | "dockerfile" | "mk" | "envrc" => {
            AssignmentStyle::Shell
        }
        "env" | "ini" | "cfg" | "conf" | "config" | "cnf" | "properties" | "props" | "yml"
        | "yaml" | "toml" | "tfvars" | "npmrc" | "netrc" | "pypirc" | "pgpass" | "credentials"
        | "secrets" | "secret" | "service" | "cred" | "creds" | "prefs" | "settings" | "local"
        | "prod" | "production" | "development" | "dev" | "staging" | "curlrc" | "s3cfg"
        | "boto" | "http" | "rest" | "txt" | "log" | "desktop" | "plist" | "ovpn" | "rdp"
        | "remmina" => AssignmentStyle::Config,
        "md" | "markdown" | "rst" | "adoc" | "asciidoc" | "mdx" | "html" | "htm" | "tex"
        | "ipynb" | "org" | "textile" | "pod" | "man" => AssignmentStyle::Doc,
        "lock" | "sum" | "svg" | "css" | "scss" | "less" | "sass" | "po" | "pot" | "xlf"
        | "xliff" | "strings" | "resx" | "arb" | "map" | "csv" | "tsv" | "snap" | "ftl"
        | "storyboard" | "xib" | "pbxproj" | "ics" | "pem" | "crt" | "cer" | "pub" | "asc"
        | "patch" | "diff" | "lockb" | "ambr" | "har" => AssignmentStyle::Never,
        _ if matches!(
            name,
            "package-lock.json"
                | "npm-shrinkwrap.json"
                | "pnpm-lock.yaml"
                | "composer.lock"
                | "cargo.lock"
        ) =>
        {
            AssignmentStyle::Never
        }
        "" if name == "jenkinsfile"
            || name == "vagrantfile"
            || name == "rakefile"
            || name == "gemfile" =>
        {
            AssignmentStyle::Code
        }
        "" if name == "readme" || name == "changelog" || name == "license" || name == "authors" => {
            AssignmentStyle::Doc
        }
        "" => AssignmentStyle::Config,
        _ => AssignmentStyle::Code,
    }
}

/// Returns true if the file is not a manual, in which keys are invented, and not a list of texts or
/// digests.
pub(super) fn outside_manuals(c: &SecretCandidate<'_>) -> bool {
    kind(c.path) != AssignmentStyle::Never
}

/// Returns true if the line is not a documentation comment, which shows usage.
pub(super) fn outside_doc_comments(c: &SecretCandidate<'_>) -> bool {
    kind(c.path) != AssignmentStyle::Code || !is_shown(c.line)
}

/// Returns true if the line is a comment that shows example code instead of disabled code:
/// indented, or part of a documentation comment.
fn is_shown(line: &[u8]) -> bool {
    let line = line.trim_ascii_start();
    let rest = if line.starts_with(b"///")
        || line.starts_with(b"//!")
        || line.starts_with(b"* ")
        || line.starts_with(b"/**")
    {
        return true;
    } else if let Some(rest) = line
        .strip_prefix(b"//")
        .or_else(|| line.strip_prefix(b"--"))
        .or_else(|| line.strip_prefix(b"#"))
    {
        rest
    } else {
        return false;
    };
    rest.starts_with(b"  ")
        || rest.starts_with(b"\t")
        || rest.starts_with(b" >>>")
        || rest.starts_with(b" $ ")
        || rest.starts_with(b" e.g")
}

/// Checks `name = "value"`, `name: "value"`, `name("value")`, `"name", "value"`,
/// `<name>value</name>`.
pub(super) fn quoted(c: &SecretCandidate<'_>) -> bool {
    let kind = kind(c.path);
    let (Some(value), Some(named)) = (c.text(), named(c.head())) else {
        return false;
    };
    if is_between_literals(value) || is_selector(c.head(), value) {
        return false;
    }
    if kind == AssignmentStyle::Never || (kind == AssignmentStyle::Code && is_shown(c.line)) {
        return false;
    }
    let bar = match form(c) {
        ValueForm::Asked => return false,
        ValueForm::Pair if is_name(value) => return false,
        ValueForm::Listed => Bar::Strict,
        _ if kind == AssignmentStyle::Doc => Bar::Strict,
        _ => Bar::Normal,
    };
    is_live(named, value, bar, c)
}

/// Returns true for code between two literals, where the quote before it ends a text such as
/// `"Password: "`.
fn is_between_literals(value: &str) -> bool {
    value.starts_with([',', ')', ';', '+', ']', '}', '&', '|', '?']) && value.contains(['=', '('])
}

/// Returns true if a value selects elements of a page by an ID, a class or an attribute:
/// `$("#new-password").val()`.
fn is_selector(head: &[u8], value: &str) -> bool {
    const CALLS: &[&[u8]] = &[
        b"$(",
        b"jQuery(",
        b".querySelector(",
        b".querySelectorAll(",
        b".getElementById(",
    ];
    let before = head.trim_ascii_end();
    let call = before
        .strip_suffix(b"\"")
        .or_else(|| before.strip_suffix(b"'"))
        .unwrap_or(before);
    let is_call = CALLS.iter().any(|name| call.ends_with(name));
    let is_id = call.ends_with(b"ById(") || value.starts_with(['#', '.', '[']);
    is_call
        && is_id
        && value
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"-_#.[]=:~^$*>+,()".contains(&b))
}

/// Returns true if a value is itself the name of a secret: `v3PrivPass`.
fn is_name(value: &str) -> bool {
    let plain = value
        .bytes()
        .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.'));
    let digits = value.bytes().filter(u8::is_ascii_digit).count();
    plain && digits <= 2 && shape::wordiness(value) > 0.6 && speaks_of_secret(value.as_bytes())
}

/// Checks `NAME=value` and `name: value` without quotes.
pub(super) fn bare(c: &SecretCandidate<'_>) -> bool {
    let kind = kind(c.path);
    let (Some(value), Some(named)) = (c.text(), named(c.head())) else {
        return false;
    };
    // `password=x,db=0`: settings in a row.
    let value = value.split([',', ';', '&']).next().unwrap_or(value);
    let tail = c.tail().trim_ascii();
    let alone =
        tail.is_empty() || matches!(tail[0], b'#' | b';' | b'\\') || tail.starts_with(b"//");
    let bar = match kind {
        AssignmentStyle::Config if alone => Bar::Normal,
        // Text that is masked without a known file may come from prose.
        AssignmentStyle::Config if c.path.is_empty() => Bar::Strict,
        AssignmentStyle::Shell => Bar::Normal,
        AssignmentStyle::Doc => Bar::Strict,
        _ => return false,
    };
    if value.starts_with(['*', '&', '|', '>', '@', '`', '#', '"', '\'']) {
        return false;
    }
    is_live(named, value, bar, c)
}

/// Checks a value after text that only precedes tokens, such as the name of a header.
pub(super) fn token(c: &SecretCandidate<'_>) -> bool {
    let kind = kind(c.path);
    let Some(value) = c.text() else { return false };
    if kind == AssignmentStyle::Never || (kind == AssignmentStyle::Code && is_shown(c.line)) {
        return false;
    }
    if opens_nothing(value) || encoded::is_encrypted(value) {
        return false;
    }
    is_token(
        value.trim_end_matches(['.', ',', ';']),
        if kind == AssignmentStyle::Doc {
            Bar::Strict
        } else {
            Bar::Normal
        },
    )
}

/// Checks `scheme://user:password@host`.
pub(super) fn url_password(c: &SecretCandidate<'_>) -> bool {
    let Some(value) = c.text() else { return false };
    if kind(c.path) == AssignmentStyle::Never {
        return false;
    }
    let tail = String::from_utf8_lossy(c.tail()).to_ascii_lowercase();
    let host = tail.trim_start_matches('@');
    let host = match host.strip_prefix('[') {
        Some(inner) => &host[..inner.find(']').map_or(host.len(), |i| i + 2)],
        None => {
            let end = host.find(|ch: char| !ch.is_ascii_alphanumeric() && !".-_".contains(ch));
            &host[..end.unwrap_or(host.len())]
        }
    };
    let head = String::from_utf8_lossy(c.head()).to_ascii_lowercase();
    let user = head
        .trim_end_matches(':')
        .rsplit("://")
        .next()
        .unwrap_or_default();
    if host.is_empty() || value.eq_ignore_ascii_case(user) || host::is_documented(host) {
        return false;
    }
    // A port followed by a name, as in `http://host:80@…`, is not a password.
    if value.bytes().all(|b| b.is_ascii_digit()) && value.len() < 6 {
        return false;
    }
    let bar = if host::is_local(host) || kind(c.path) == AssignmentStyle::Doc {
        Bar::Strict
    } else {
        Bar::Normal
    };
    is_password(value, bar)
}

/// Returns true if the value under such a name is a credential.
fn is_live(named: SecretKind, value: &str, bar: Bar, c: &SecretCandidate<'_>) -> bool {
    if opens_nothing(value) || encoded::hides_stand_in(value) || encoded::is_encrypted(value) {
        return false;
    }
    match named {
        SecretKind::Password => is_password(value, bar) || is_token(value, bar),
        SecretKind::Secret => {
            is_token(value, bar)
                || (value.len() >= 8 && is_password(value, bar) && shape::wordiness(value) < 0.75)
        }
        SecretKind::Token => {
            is_token(value, bar) && (!shape::is_uuid(value) || names_api_key(c.head()))
        }
    }
}

/// Returns true if a value has the form of a token with a wrong checksum, is a web token that
/// grants no access, or is a key that its issuer publishes.
fn opens_nothing(value: &str) -> bool {
    is_forged(value) || is_published(value)
}

/// Returns true if a value has the form of a key that every visitor of a page receives and that
/// only identifies the page's owner. Sources: Mapbox (public tokens start with `pk.`), Datadog
/// (client tokens with `pub`), PostHog (project keys), Supabase (publishable keys).
fn is_published(value: &str) -> bool {
    let value = value.as_bytes();
    value
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
        || encoded::jwt(b).is_some_and(|j| !j.is_credential() && !j.is_service_role())
}

fn names_api_key(head: &[u8]) -> bool {
    let head = String::from_utf8_lossy(head)
        .to_ascii_lowercase()
        .replace(['_', '-'], "");
    [
        "apikey",
        "accesskey",
        "secretkey",
        "authtoken",
        "accesstoken",
        "apitoken",
    ]
    .iter()
    .any(|n| head.contains(n))
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
fn is_token(value: &str, bar: Bar) -> bool {
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

    fn candidate<'a>(path: &'a str, line: &'a str, secret: &'a str) -> SecretCandidate<'a> {
        let at = line.rfind(secret).expect("the line holds the secret");
        SecretCandidate {
            secret: secret.as_bytes(),
            line: line.as_bytes(),
            at,
            after: b"",
            path: path.as_bytes(),
        }
    }

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

    #[test]
    fn holds_the_form_against_the_file() {
        let line = "password: xK9vvLq2";
        assert!(bare(&candidate("deploy/app.yml", line, "xK9vvLq2")));
        assert!(!bare(&candidate("src/app.ts", line, "xK9vvLq2")));
        assert!(!bare(&candidate("README.md", line, "xK9vvLq2")));
        let row = "password: Xk7vQ2mWp9Lr4TzN8sYb  region: a";
        assert!(bare(&candidate("README.md", row, "Xk7vQ2mWp9Lr4TzN8sYb")));
        assert!(
            bare(&candidate("", row, "Xk7vQ2mWp9Lr4TzN8sYb")),
            "findings are masked"
        );
        assert!(!bare(&candidate(
            "deploy/app.yml",
            row,
            "Xk7vQ2mWp9Lr4TzN8sYb"
        )));
        let line = "const password = 'xK9vvLq2';";
        assert!(quoted(&candidate("src/app.ts", line, "xK9vvLq2")));
        assert!(!quoted(&candidate("src/locales/de.ts", line, "xK9vvLq2")));
        assert!(!quoted(&candidate("yarn.lock", line, "xK9vvLq2")));
    }

    #[test]
    fn weighs_passwords_in_addresses() {
        let url = "postgres://app:xK9vvLq2@db.internal.net:5432/x";
        assert!(url_password(&candidate("a.py", url, "xK9vvLq2")));
        for host in [
            "mysql.prod.example",
            "mydb.corp.net",
            "mysqlprod",
            "localhost.corp.net",
            "db.prod.internal",
            "hostname.corp.net",
            "host.corp.net",
            "foo.corp.net",
            "db.svc.cluster.local",
            "myexample.com",
            "127.corp.net",
            "1.2.3.4",
            "[2001:db8::1]",
        ] {
            let line = format!("mysql://root:Winter2024!x@{host}/db");
            assert!(
                url_password(&candidate("a.rb", &line, "Winter2024!x")),
                "{line}"
            );
        }
        for host in [
            "localhost",
            "127.0.0.1",
            "127.0.1.1",
            "0.0.0.0",
            "[::1]",
            "db",
            "mysql",
            "my-postgres",
            "mydb",
            "redis-master-0",
            "host.docker.internal",
            "app.test",
            "db.local",
            "myhost.com",
            "your.domain.com",
            "foo.com",
            "db.example.com",
            "example",
        ] {
            let line = format!("mysql://root:Winter2024!x@{host}:3306/db");
            assert!(
                !url_password(&candidate("a.rb", &line, "Winter2024!x")),
                "{line}"
            );
        }
        for (line, secret) in [
            ("postgres://postgres:postgres@localhost/x", "postgres"),
            ("https://user:pass@host.org", "pass"),
            ("amqp://app:xK9vvLq2@localhost", "xK9vvLq2"),
            ("https://x:${TOKEN}@github.com", "${TOKEN}"),
            ("https://u:xK9vvLq2@example.com", "xK9vvLq2"),
        ] {
            assert!(!url_password(&candidate("a.py", line, secret)), "{line}");
        }
    }
}
