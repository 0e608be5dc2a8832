//! Parses the address of a remote or of a pull request's page into a host and a path. Pure.
//!
//! An address is only compared with the known hosts; it never adds a host.

use crate::hex;

/// Parts of a path at most.
const MOST_PARTS: usize = 24;
/// Bytes of one part at most.
const MOST_OF_A_PART: usize = 255;

/// The protocol of a remote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    Http,
    Https,
    Ssh,
}

/// A host and a path on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostAddress {
    pub scheme: Scheme,
    /// Lowercase, without a trailing dot; an IPv6 address has no brackets.
    pub host: String,
    pub port: Option<u16>,
    /// Decoded; no part is empty, `.` or `..`.
    pub path: Vec<String>,
}

/// A project of a forge: `owner/name`, `group/sub/name`, `KEY/slug`, `~user/slug`.
#[derive(Clone, Debug)]
pub struct ForgeProject(Vec<String>);

impl HostAddress {
    /// Parses the address of a remote: `https://…`, `ssh://…`, or git's short form
    /// `user@host:path`. Returns `None` for a local path or another scheme: no known forge uses
    /// those.
    pub fn remote(text: &str) -> Option<Self> {
        let text = text.trim();
        match text.split_once("://") {
            Some((scheme, rest)) => Self::full(scheme, rest),
            None => Self::short(text),
        }
    }

    /// Parses the address of a page. The query and the fragment are ignored.
    pub fn page(text: &str) -> Option<Self> {
        let text = text.trim();
        let end = text.find(['?', '#']).unwrap_or(text.len());
        let (scheme, rest) = text[..end].split_once("://")?;
        Self::full(scheme, rest).filter(|a| a.scheme != Scheme::Ssh)
    }

    fn full(scheme: &str, rest: &str) -> Option<Self> {
        let scheme = match scheme.to_ascii_lowercase().as_str() {
            "https" => Scheme::Https,
            "http" => Scheme::Http,
            "ssh" | "git+ssh" | "ssh+git" => Scheme::Ssh,
            _ => return None,
        };
        let (authority, path) = rest.split_once('/')?;
        let (_, host) = authority.rsplit_once('@').unwrap_or(("", authority));
        let (host, port) = match host.strip_prefix('[') {
            Some(rest) => {
                let (host, port) = rest.split_once(']')?;
                (host, port.strip_prefix(':'))
            }
            None => host
                .split_once(':')
                .map_or((host, None), |(h, p)| (h, Some(p))),
        };
        // `host:/path` has a colon without a port.
        let port = port
            .filter(|p| !p.is_empty())
            .map(|p| p.parse().ok())
            .map_or(Some(None), |p| p.map(Some))?;
        Self::new(scheme, host, port, path, true)
    }

    /// Parses `user@host:path`, which git accepts as an address if no slash precedes the colon.
    fn short(text: &str) -> Option<Self> {
        let (host, path) = match text
            .strip_prefix('[')
            .or_else(|| text.split_once("@[").map(|(_, rest)| rest))
        {
            Some(rest) => rest.split_once("]:")?,
            None => {
                let (before, path) = text.split_once(':')?;
                (
                    before.rsplit_once('@').map_or(before, |(_, host)| host),
                    path,
                )
            }
        };
        // A remote helper's `name::address`, or a drive letter.
        if host.contains('/') || path.starts_with(':') || host.len() < 2 {
            return None;
        }
        Self::new(Scheme::Ssh, host, None, path, false)
    }

    fn new(
        scheme: Scheme,
        host: &str,
        port: Option<u16>,
        path: &str,
        encoded: bool,
    ) -> Option<Self> {
        let host = host.trim_end_matches('.').to_ascii_lowercase();
        if host.is_empty()
            || host.starts_with('-')
            || !host
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_' | b':'))
        {
            return None;
        }
        let mut parts = Vec::new();
        for part in path.split('/').filter(|p| !p.is_empty()) {
            let part = if encoded {
                decoded(part)?
            } else {
                part.to_owned()
            };
            let dots = part.chars().all(|c| c == '.');
            if dots
                || part.len() > MOST_OF_A_PART
                || part
                    .chars()
                    .any(|c| c.is_control() || c == '/' || c == '\\')
            {
                return None;
            }
            parts.push(part);
        }
        (!parts.is_empty() && parts.len() <= MOST_PARTS).then_some(Self {
            scheme,
            host,
            port,
            path: parts,
        })
    }
}

/// Decodes percent escapes such as `%41`.
pub(super) fn decoded(text: &str) -> Option<String> {
    String::from_utf8(hex::percent_decoded(text)?).ok()
}

impl ForgeProject {
    /// Returns the project with an owner and a name, or `None` if these are not two valid parts.
    pub(super) fn pair(parts: Vec<String>) -> Option<Self> {
        Self::new(parts).filter(|project| project.0.len() == 2)
    }

    /// Parses `owner/name` as the forge writes it.
    pub(super) fn pair_of(text: &str) -> Option<Self> {
        Self::pair(text.split('/').map(str::to_owned).collect())
    }

    /// Returns the project with a name below one or several groups.
    pub(super) fn nested(parts: Vec<String>) -> Option<Self> {
        Self::new(parts).filter(|project| project.0.len() >= 2)
    }

    /// Parses `group/name` or `group/subgroup/name` as the forge writes it.
    pub(super) fn nested_of(text: &str) -> Option<Self> {
        Self::nested(text.split('/').map(str::to_owned).collect())
    }

    /// Returns a project of any number of parts, or `None` if one of them is not valid.
    fn new(parts: Vec<String>) -> Option<Self> {
        let is_valid = parts
            .iter()
            .all(|p| !p.is_empty() && p.len() <= MOST_OF_A_PART && !p.chars().all(|c| c == '.'));
        is_valid.then_some(Self(parts))
    }

    /// Returns all parts but the last: the owner, group or key.
    pub fn owner(&self) -> String {
        self.0[..self.0.len() - 1].join("/")
    }

    /// Returns the last part.
    pub fn name(&self) -> &str {
        self.0.last().map_or("", String::as_str)
    }
}

/// Compares without case: no forge distinguishes projects by the case of their names.
impl PartialEq for ForgeProject {
    fn eq(&self, other: &Self) -> bool {
        self.0.join("/").to_lowercase() == other.0.join("/").to_lowercase()
    }
}

impl Eq for ForgeProject {}

impl std::fmt::Display for ForgeProject {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0.join("/"))
    }
}

/// Returns the path of a remote without `.git` at its end, or `None` if it has no parts.
pub(super) fn without_git_suffix(path: &[String]) -> Option<Vec<String>> {
    let mut parts = path.to_vec();
    let last = parts.last_mut()?;
    if let Some(bare) = last.strip_suffix(".git") {
        *last = bare.to_owned();
    }
    Some(parts)
}

/// Parses the number of a pull request: `12`, `#12`, or GitLab's `!12`.
pub fn number_of(text: &str) -> Option<u64> {
    let digits = text.strip_prefix(['#', '!']).unwrap_or(text);
    let is_number =
        !digits.is_empty() && digits.len() <= 18 && digits.bytes().all(|b| b.is_ascii_digit());
    digits.parse().ok().filter(|n| is_number && *n > 0)
}

#[cfg(test)]
mod tests {
    use super::{HostAddress, Scheme, number_of};

    fn remote(text: &str) -> Option<(Scheme, String, Option<u16>, String)> {
        HostAddress::remote(text).map(|a| (a.scheme, a.host, a.port, a.path.join("/")))
    }

    #[test]
    fn every_way_to_write_a_remote_is_read() {
        for (text, scheme, host, port, path) in [
            (
                "https://github.com/o/r.git",
                Scheme::Https,
                "github.com",
                None,
                "o/r.git",
            ),
            (
                "https://user:word@GitHub.com:443/o/r/",
                Scheme::Https,
                "github.com",
                Some(443),
                "o/r",
            ),
            (
                "http://127.0.0.1:8080/o/r",
                Scheme::Http,
                "127.0.0.1",
                Some(8080),
                "o/r",
            ),
            (
                "ssh://git@gitlab.example:2222/g/s/p.git",
                Scheme::Ssh,
                "gitlab.example",
                Some(2222),
                "g/s/p.git",
            ),
            (
                "ssh://git@bb.example:7999/~me/slug.git",
                Scheme::Ssh,
                "bb.example",
                Some(7999),
                "~me/slug.git",
            ),
            (
                "git@github.com:o/r.git",
                Scheme::Ssh,
                "github.com",
                None,
                "o/r.git",
            ),
            (
                "github.com:/o/r.git",
                Scheme::Ssh,
                "github.com",
                None,
                "o/r.git",
            ),
            (
                "org-1@ssh.example.:g/p",
                Scheme::Ssh,
                "ssh.example",
                None,
                "g/p",
            ),
            ("git@[::1]:o/r", Scheme::Ssh, "::1", None, "o/r"),
            (
                "https://[::1]:8443/o/r",
                Scheme::Https,
                "::1",
                Some(8443),
                "o/r",
            ),
            (
                "https://bb.example/scm/%7Eme/slug.git",
                Scheme::Https,
                "bb.example",
                None,
                "scm/~me/slug.git",
            ),
        ] {
            assert_eq!(
                remote(text),
                Some((scheme, host.to_owned(), port, path.to_owned())),
                "{text}"
            );
        }
    }

    #[test]
    fn what_is_no_address_of_a_forge_is_none() {
        for text in [
            "/srv/git/o/r.git",
            "../r.git",
            "./a:b/c",
            "file:///srv/o/r.git",
            "git://github.com/o/r.git",
            "ext::sh -c x",
            "C:\\repos\\r",
            "https://github.com",
            "https://github.com/",
            "https://github.com/../r",
            "https://github.com/o/%2e%2e",
            "https://github.com/o/a%2fb",
            "https://github.com/o/%zz",
            "https://github.com/o/r%00",
            "https://-oProxyCommand=x/o/r",
            "https://git hub.com/o/r",
            "https://github.com:99999/o/r",
            "",
        ] {
            assert_eq!(remote(text), None, "{text}");
        }
        assert!(HostAddress::remote(&format!("https://h/{}", "a/".repeat(30))).is_none());
    }

    #[test]
    fn numbers_are_read_as_people_write_them() {
        assert_eq!(["12", "#12", "!12"].map(number_of), [Some(12); 3]);
        assert_eq!(
            [
                "0",
                "",
                "#",
                "-1",
                "1.5",
                "99999999999999999999",
                "+3",
                "##1"
            ]
            .map(number_of),
            [None; 8]
        );
    }
}
