//! Parses the address of a fetch, and its protocol.

use crate::error::{Error, Result};
use crate::hex;
use base64::Engine as _;
use std::ffi::OsString;
use std::path::Path;

/// The most bytes of an address.
const MAX_ADDRESS: usize = 4096;

/// An address that may be fetched from.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct FetchAddress {
    pub(super) scheme: Scheme,
    /// The address for git, without a password.
    pub(super) url: String,
    /// The header that replaces a password in the address.
    pub(super) basic: Option<String>,
}

/// The protocol of a remote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scheme {
    Https,
    Http,
    Ssh,
    File,
}

impl Scheme {
    /// Returns the protocols that git may use, for `GIT_ALLOW_PROTOCOL`. The user's
    /// `url.….insteadOf` may replace one of the first two with the other.
    pub(super) fn allowed(self) -> &'static str {
        match self {
            Self::Https | Self::Ssh => "https:ssh",
            Self::Http => "http:https:ssh",
            Self::File => "file:https:ssh",
        }
    }
}

impl std::fmt::Debug for FetchAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FetchAddress")
            .field("scheme", &self.scheme)
            .field("url", &self.url)
            .finish_non_exhaustive()
    }
}

impl FetchAddress {
    /// Parses an address; a relative path starts at `top`.
    ///
    /// # Errors
    /// Usage: the protocol could run a program that the address names, or does not authenticate the
    /// server.
    pub(super) fn parse(text: &str, top: &Path) -> Result<Self> {
        if text.is_empty()
            || text.len() > MAX_ADDRESS
            || text.starts_with('-')
            || text.chars().any(char::is_control)
        {
            return Err(unsupported(text, "not an address"));
        }
        if let Some((helper, _)) = text.split_once("::")
            && is_scheme(helper)
        {
            return Err(unsupported(text, "the address names a program to run"));
        }
        if let Some((scheme, rest)) = text.split_once("://")
            && is_scheme(scheme)
        {
            let scheme = match scheme.to_ascii_lowercase().as_str() {
                "https" => Scheme::Https,
                "http" => Scheme::Http,
                "ssh" | "git+ssh" | "ssh+git" => Scheme::Ssh,
                "file" => Scheme::File,
                "git" => return Err(unsupported(text, "git:// does not authenticate the server")),
                _ => {
                    return Err(unsupported(
                        text,
                        "unsupported protocol; supported are https, ssh and file",
                    ));
                }
            };
            let (url, basic) = match scheme {
                Scheme::Https | Scheme::Http => split_password(text, rest),
                Scheme::Ssh | Scheme::File => (text.to_owned(), None),
            };
            return Ok(Self { scheme, url, basic });
        }
        let host = text
            .split_once(':')
            .map(|(host, _)| host)
            .filter(|h| !h.contains('/'));
        if let Some(host) = host.or_else(|| text.starts_with('[').then_some("[")) {
            return match host.rsplit('@').next().unwrap_or(host) {
                "" => Err(unsupported(text, "not an address")),
                h if h.starts_with('-') => Err(unsupported(text, "not an address")),
                _ => Ok(Self {
                    scheme: Scheme::Ssh,
                    url: text.to_owned(),
                    basic: None,
                }),
            };
        }
        let path = top.join(text);
        match path.to_str() {
            Some(path) => Ok(Self {
                scheme: Scheme::File,
                url: path.to_owned(),
                basic: None,
            }),
            None => Err(unsupported(text, "the path of the repository is not UTF-8")),
        }
    }
}

/// Returns the error for an address from which this program does not fetch.
fn unsupported(address: &str, why: &str) -> Error {
    let shown: String = without_password(address).chars().take(200).collect();
    Error::usage(format!("cannot fetch from {shown}: {why}"))
        .hint("use https://…, ssh://…, file://…, HOST:PATH or a path")
}

/// Returns true if a text can be the scheme of a URL, or the name of a remote helper.
fn is_scheme(text: &str) -> bool {
    !text.is_empty()
        && text
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"+.-_".contains(&b))
}

impl FetchAddress {
    /// Returns true if a setting for `url` applies to this address, as git matches
    /// `http.<address>.…`: same scheme, host and port, and a path that begins with the same
    /// components. For ssh, the operator's `url.….insteadOf` may rewrite the address, so git has to
    /// match.
    pub(super) fn is_below(&self, url: &str) -> bool {
        match self.scheme {
            Scheme::Ssh => true,
            Scheme::File => false,
            Scheme::Https | Scheme::Http => match (parts(&self.url), parts(url)) {
                (Some((own, path)), Some((other, top))) => {
                    let top = top.trim_end_matches('/');
                    own == other
                        && path
                            .strip_prefix(top)
                            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
                }
                _ => false,
            },
        }
    }
}

/// Splits a web address into scheme, host and port in normal form, and the path.
fn parts(url: &str) -> Option<((String, String, u16), &str)> {
    let (scheme, rest) = url.split_once("://")?;
    let scheme = scheme.to_ascii_lowercase();
    let (host, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    let host = host.rsplit('@').next().unwrap_or(host).to_ascii_lowercase();
    let (name, port) = match host.rsplit_once(':') {
        Some((name, port)) if !port.ends_with(']') => (name.to_owned(), port.parse().ok()?),
        _ => (host, if scheme == "https" { 443 } else { 80 }),
    };
    Some(((scheme, name, port), path))
}

/// Removes a password from a web address, which would otherwise be visible on a command line.
fn split_password(text: &str, rest: &str) -> (String, Option<String>) {
    let host = rest.split('/').next().unwrap_or(rest);
    let Some((user, _)) = host.rsplit_once('@') else {
        return (text.to_owned(), None);
    };
    if !user.contains(':') {
        return (text.to_owned(), None);
    }
    let start = text.len() - rest.len();
    let url = format!("{}{}", &text[..start], &rest[user.len() + 1..]);
    let plain = hex::percent_decoded_leniently(user);
    let basic = base64::engine::general_purpose::STANDARD.encode(plain);
    (url, Some(format!("Authorization: Basic {basic}")))
}

/// Removes the text between `://` and `@` from every address in a text: it may contain a password.
pub(super) fn without_password(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("://") {
        let (before, after) = rest.split_at(at + 3);
        out.push_str(before);
        let host = after
            .find(|c: char| c == '/' || c.is_whitespace() || c == '\'' || c == '"')
            .unwrap_or(after.len());
        rest = match after[..host].rfind('@') {
            Some(at) => &after[at + 1..],
            None => after,
        };
    }
    out.push_str(rest);
    out
}

/// Returns true for an address of this machine.
pub(super) fn is_on_this_machine(url: &str) -> bool {
    let rest = url.strip_prefix("http://").unwrap_or(url);
    let host = rest.split('/').next().unwrap_or(rest);
    let (name, port) = match host.rsplit_once(':') {
        Some((name, port)) if !port.ends_with(']') => (name, port),
        _ => (host, "0"),
    };
    matches!(name, "localhost" | "127.0.0.1" | "[::1]") && port.parse::<u16>().is_ok()
}

/// Returns the folders of `PATH` that may contain programs: absolute folders outside the
/// repository.
pub(super) fn clean_path(path: &[std::path::PathBuf], inside: &[std::path::PathBuf]) -> OsString {
    let mut out = OsString::new();
    for dir in path.iter().filter(|d| d.is_absolute()) {
        let real = std::fs::canonicalize(dir).unwrap_or_else(|_| dir.clone());
        if inside.iter().any(|top| real.starts_with(top))
            || dir.as_os_str().as_encoded_bytes().contains(&b':')
        {
            continue;
        }
        if !out.is_empty() {
            out.push(":");
        }
        out.push(dir);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<FetchAddress> {
        FetchAddress::parse(text, Path::new("/top"))
    }

    #[test]
    fn addresses_that_git_speaks_to_itself_are_taken() {
        for (text, scheme, url) in [
            (
                "https://h.example/a/b.git",
                Scheme::Https,
                "https://h.example/a/b.git",
            ),
            ("HTTP://h.example/a", Scheme::Http, "HTTP://h.example/a"),
            (
                "ssh://git@h.example:22/a",
                Scheme::Ssh,
                "ssh://git@h.example:22/a",
            ),
            (
                "git@h.example:a/b.git",
                Scheme::Ssh,
                "git@h.example:a/b.git",
            ),
            ("[::1]:a", Scheme::Ssh, "[::1]:a"),
            ("file:///srv/a", Scheme::File, "file:///srv/a"),
            ("../a", Scheme::File, "/top/../a"),
            ("/srv/a:b", Scheme::File, "/srv/a:b"),
        ] {
            let a = parse(text).unwrap();
            assert_eq!((a.scheme, a.url.as_str()), (scheme, url), "{text}");
        }
    }

    #[test]
    fn addresses_that_name_a_program_are_refused() {
        for text in [
            "ext::sh -c 'touch x'",
            "fd::3",
            "-oProxyCommand=x",
            "git://h.example/a",
            "ftp://h.example/a",
            "-x@h:a",
            "",
            "a\nb",
            "x@-oProxyCommand=y:z",
        ] {
            assert!(parse(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_credential_counts_below_its_own_address_alone() {
        fn is_below(text: &str, url: &str) -> bool {
            parse(text).unwrap().is_below(url)
        }
        for (text, url) in [
            ("https://h.example/a/b.git", "https://h.example/"),
            ("https://h.example/a/b.git", "https://H.example:443"),
            ("https://me@h.example/a/b.git", "https://h.example/a/"),
            ("https://h.example/a", "https://h.example/a/"),
            ("http://[::1]:8080/a", "http://[::1]:8080/"),
            ("git@h.example:a/b.git", "https://h.example/"),
        ] {
            assert!(is_below(text, url), "{text} {url}");
        }
        for (text, url) in [
            ("https://h.example/a/b.git", "https://h.example/a/b"),
            ("https://h.example/a/b.git", "https://h.example.org/"),
            ("https://h.example.org/a", "https://h.example"),
            ("https://h.example@other.example/a", "https://h.example/"),
            ("https://h.example:8443/a", "https://h.example/"),
            ("http://h.example/a", "https://h.example/"),
            ("https://h.example/org2/a", "https://h.example/org/"),
            ("https://h.example/a", "h.example"),
            ("/srv/a", "https://h.example/"),
        ] {
            assert!(!is_below(text, url), "{text} {url}");
        }
    }

    #[test]
    fn a_proxy_is_on_this_machine_by_its_whole_name() {
        for url in [
            "http://localhost:29418/",
            "127.0.0.1:80",
            "http://[::1]:1",
            "http://[::1]/",
        ] {
            assert!(is_on_this_machine(url), "{url}");
        }
        for url in [
            "http://localhost.example:1/",
            "http://127.0.0.1@h/",
            "http://h/",
            "",
            "http://127.0.0.1:x@h/",
        ] {
            assert!(!is_on_this_machine(url), "{url}");
        }
    }

    #[test]
    fn a_password_leaves_the_address_and_every_message() {
        let word = ["s3", "cr%3At"].concat();
        let a = parse(&format!("https://me:{word}@h.example/a")).unwrap();
        assert_eq!(a.url, "https://h.example/a");
        let plain = base64::engine::general_purpose::STANDARD.encode("me:s3cr:t");
        assert_eq!(a.basic.unwrap(), format!("Authorization: Basic {plain}"));
        let said = without_password(&format!(
            "fatal: 'https://me:{word}@h.example/a' and http://x@y/ fail"
        ));
        assert_eq!(said, "fatal: 'https://h.example/a' and http://y/ fail");
        // A user name without a password is for a credential helper.
        assert_eq!(
            parse("https://me@h.example/a").unwrap().url,
            "https://me@h.example/a"
        );
    }
}
