//! Values assigned to names: `password = "…"`, `API_KEY=…`, `token: …`, and passwords in addresses.
//!
//! The pattern of a rule finds the form. This module reads the name word by word, compares the form
//! with the kind of file, and judges the value. A name that only contains a word for a secret
//! (`token_url`, `password_hint`) and a placeholder value are not findings.

use super::credential::{Bar, is_password, is_token, opens_nothing};
use super::name::{SecretKind, named, speaks_of_secret};
use super::written::{ValueForm, form};
use super::{SecretCandidate, encoded, host, shape};

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
    if is_open_call(value) || value.starts_with(['*', '&', '|', '>', '@', '`', '#', '"', '\'']) {
        return false;
    }
    // In prose, the query of an address has a rule of its own.
    if kind == AssignmentStyle::Doc && is_in_address(c.head()) {
        return false;
    }
    is_live(named, value, bar, c)
}

/// Returns true if a value is a call that continues on the next line: `decode(`,
/// `base64.b64decode(`. A random password can end with a parenthesis too.
fn is_open_call(value: &str) -> bool {
    let Some(name) = value.strip_suffix('(') else {
        return false;
    };
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b':');
    // The usual encodings and hash functions have digits in their names.
    let words = ["base64", "b64", "sha256", "sha512", "utf8"]
        .iter()
        .fold(name.to_owned(), |rest, word| rest.replace(word, ""));
    let digits = words.bytes().filter(u8::is_ascii_digit).count();
    name.bytes().all(is_plain) && digits <= 2 && shape::wordiness(&words) > 0.6
}

/// Returns true if the last word of a text contains the start of the address of a page.
fn is_in_address(head: &[u8]) -> bool {
    let start = head
        .iter()
        .rposition(u8::is_ascii_whitespace)
        .map_or(0, |at| at + 1);
    memchr::memmem::find(&head[start..], b"://").is_some()
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
    fn a_password_that_ends_like_a_call_is_a_password() {
        for (value, expected) in [
            ("kX9vQ2mLp7Rtz4W(", true),
            ("base64decode(", false),
            ("crypto.createHash(", false),
        ] {
            let line = format!("DB_PASSWORD={value}");
            let found = bare(&candidate(".env", &line, value));
            assert_eq!(found, expected, "{value}");
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
