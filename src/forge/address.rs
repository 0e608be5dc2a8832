//! Parses the address of a remote or of a pull request's page into a host and a path. Pure.
//!
//! An address is only compared with the known hosts; it never adds a host.

use super::ForgeKind;
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
    /// Parses a project from the path of a remote, relative to the prefix that all projects of the
    /// host share.
    pub fn of_remote(kind: ForgeKind, scheme: Scheme, path: &[String]) -> Option<Self> {
        let mut parts = path.to_vec();
        let last = parts.last_mut()?;
        if let Some(bare) = last.strip_suffix(".git") {
            *last = bare.to_owned();
        }
        if kind == ForgeKind::BitbucketServer && scheme != Scheme::Ssh {
            parts = match parts.iter().map(String::as_str).collect::<Vec<_>>()[..] {
                ["scm", key, slug] => vec![key.to_owned(), slug.to_owned()],
                ["projects", key, "repos", slug] => vec![key.to_owned(), slug.to_owned()],
                ["users", name, "repos", slug] => vec![format!("~{name}"), slug.to_owned()],
                _ => return None,
            };
        }
        Self::new(kind, parts)
    }

    /// Returns a project of these parts, or `None` if they are not valid for the forge.
    pub fn new(kind: ForgeKind, parts: Vec<String>) -> Option<Self> {
        let fits = match kind {
            ForgeKind::Gitlab => parts.len() >= 2,
            ForgeKind::Github | ForgeKind::BitbucketServer | ForgeKind::BitbucketCloud => {
                parts.len() == 2
            }
        };
        let is_valid = parts
            .iter()
            .all(|p| !p.is_empty() && p.len() <= MOST_OF_A_PART && !p.chars().all(|c| c == '.'));
        (fits && is_valid).then_some(Self(parts))
    }

    /// Parses `owner/name` as the forge writes it.
    pub fn parse(kind: ForgeKind, text: &str) -> Option<Self> {
        Self::new(kind, text.split('/').map(str::to_owned).collect())
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

/// Parses the project and number from the path of a pull request's page, relative to the prefix
/// that all pages of the host share.
pub fn pull_of_page(kind: ForgeKind, path: &[String]) -> Option<(ForgeProject, u64)> {
    let parts: Vec<&str> = path.iter().map(String::as_str).collect();
    let (project, number) = match kind {
        ForgeKind::Github => match parts[..] {
            [owner, name, "pull", number, ..] => (vec![owner.to_owned(), name.to_owned()], number),
            _ => return None,
        },
        ForgeKind::Gitlab => {
            let at = parts.iter().position(|p| *p == "merge_requests")?;
            let mut project = &parts[..at];
            if let [before @ .., "-"] = project {
                project = before;
            }
            (
                project.iter().map(|p| (*p).to_owned()).collect(),
                *parts.get(at + 1)?,
            )
        }
        ForgeKind::BitbucketServer => match parts[..] {
            ["projects", key, "repos", slug, "pull-requests", number, ..] => {
                (vec![key.to_owned(), slug.to_owned()], number)
            }
            ["users", name, "repos", slug, "pull-requests", number, ..] => {
                (vec![format!("~{name}"), slug.to_owned()], number)
            }
            _ => return None,
        },
        ForgeKind::BitbucketCloud => match parts[..] {
            [workspace, slug, "pull-requests", number, ..] => {
                (vec![workspace.to_owned(), slug.to_owned()], number)
            }
            _ => return None,
        },
    };
    Some((ForgeProject::new(kind, project)?, number_of(number)?))
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
    use super::{ForgeProject, HostAddress, Scheme, number_of, pull_of_page};
    use crate::forge::ForgeKind;

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
    fn projects_are_read_off_the_remotes_of_every_forge() {
        fn project(kind: ForgeKind, text: &str) -> Option<String> {
            let a = HostAddress::remote(text).unwrap();
            ForgeProject::of_remote(kind, a.scheme, &a.path).map(|p| p.to_string())
        }
        for (kind, text, expected) in [
            (ForgeKind::Github, "git@github.com:o/r.git", Some("o/r")),
            (
                ForgeKind::Github,
                "https://github.com/o/r.git.git",
                Some("o/r.git"),
            ),
            (ForgeKind::Github, "https://github.com/o", None),
            (ForgeKind::Github, "https://github.com/o/r/x", None),
            (
                ForgeKind::Gitlab,
                "git@gitlab.com:g/s1/s2/p.git",
                Some("g/s1/s2/p"),
            ),
            (ForgeKind::Gitlab, "git@gitlab.com:p.git", None),
            (
                ForgeKind::BitbucketServer,
                "https://bb.example/scm/proj/slug.git",
                Some("proj/slug"),
            ),
            (
                ForgeKind::BitbucketServer,
                "https://bb.example/scm/~me/slug.git",
                Some("~me/slug"),
            ),
            (
                ForgeKind::BitbucketServer,
                "ssh://git@bb.example:7999/proj/slug.git",
                Some("proj/slug"),
            ),
            (
                ForgeKind::BitbucketServer,
                "https://bb.example/proj/slug.git",
                None,
            ),
            (
                ForgeKind::BitbucketCloud,
                "git@bitbucket.org:team/repo.git",
                Some("team/repo"),
            ),
            (ForgeKind::Github, "https://github.com/o/.git", None),
        ] {
            assert_eq!(project(kind, text).as_deref(), expected, "{text}");
        }
        let upper = ForgeProject::parse(ForgeKind::BitbucketServer, "PROJ/slug").unwrap();
        assert_eq!(
            upper,
            ForgeProject::parse(ForgeKind::BitbucketServer, "proj/Slug").unwrap()
        );
        assert_eq!((upper.owner().as_str(), upper.name()), ("PROJ", "slug"));
    }

    #[test]
    fn pull_requests_are_read_off_their_pages() {
        fn pull(kind: ForgeKind, text: &str) -> Option<(String, u64)> {
            pull_of_page(kind, &HostAddress::page(text)?.path)
                .map(|(project, number)| (project.to_string(), number))
        }
        for (kind, text, expected) in [
            (
                ForgeKind::Github,
                "https://github.com/o/r/pull/12",
                Some(("o/r", 12)),
            ),
            (
                ForgeKind::Github,
                "https://github.com/o/r/pull/12/files?w=1#diff-1",
                Some(("o/r", 12)),
            ),
            (ForgeKind::Github, "https://github.com/o/r/issues/12", None),
            (ForgeKind::Github, "https://github.com/o/r/pull/0", None),
            (ForgeKind::Github, "https://github.com/o/r/pull/1x", None),
            (
                ForgeKind::Gitlab,
                "https://gitlab.com/g/s/p/-/merge_requests/7/diffs",
                Some(("g/s/p", 7)),
            ),
            (
                ForgeKind::Gitlab,
                "https://gitlab.com/g/p/merge_requests/7",
                Some(("g/p", 7)),
            ),
            (
                ForgeKind::Gitlab,
                "https://gitlab.com/-/merge_requests/7",
                None,
            ),
            (
                ForgeKind::BitbucketServer,
                "https://bb.example/projects/PROJ/repos/slug/pull-requests/3/overview",
                Some(("PROJ/slug", 3)),
            ),
            (
                ForgeKind::BitbucketServer,
                "https://bb.example/users/me/repos/slug/pull-requests/3",
                Some(("~me/slug", 3)),
            ),
            (
                ForgeKind::BitbucketCloud,
                "https://bitbucket.org/team/repo/pull-requests/9/x",
                Some(("team/repo", 9)),
            ),
            (ForgeKind::Github, "ssh://git@github.com/o/r/pull/12", None),
        ] {
            assert_eq!(
                pull(kind, text),
                expected.map(|(p, n)| (p.to_owned(), n)),
                "{text}"
            );
        }
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
