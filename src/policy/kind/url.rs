//! URLs of servers.

use super::{Complaint, ValueKind, complaint};

/// The URL of a server.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::policy) struct Url {
    /// Without a trailing slash.
    pub(super) text: String,
    /// The host is this machine.
    pub(in crate::policy) loopback: bool,
}

impl Url {
    pub(in crate::policy) fn parse(s: &str) -> Result<Self, Complaint> {
        let s = s.trim();
        let Some((scheme, rest)) = s.split_once("://") else {
            return Err(bad_url("has no scheme"));
        };
        if s.len() > 2048
            || s.chars()
                .any(|c| c.is_control() || c.is_whitespace() || !c.is_ascii() || c == '\\')
        {
            return Err(bad_url("has invalid characters"));
        }
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        if authority.contains('@') {
            return Err(complaint("must not contain a user or a password")
                .hinted("set api_key_env or api_key_command instead"));
        }
        if rest.contains(['?', '#']) {
            return Err(bad_url("has a query or fragment"));
        }
        let (host, port) = if let Some(inner) = authority.strip_prefix('[') {
            match inner.split_once(']') {
                Some((h, p)) if h.parse::<std::net::Ipv6Addr>().is_ok() => {
                    (h, p.strip_prefix(':').unwrap_or(p))
                }
                _ => return Err(bad_url("has an invalid host")),
            }
        } else {
            authority.split_once(':').unwrap_or((authority, ""))
        };
        if host.is_empty() || !(port.is_empty() || port.parse::<u16>().is_ok()) {
            return Err(bad_url("has an invalid host or port"));
        }
        let loopback = host.eq_ignore_ascii_case("localhost")
            || host
                .parse::<std::net::IpAddr>()
                .is_ok_and(|a| a.is_loopback());
        match scheme.to_ascii_lowercase().as_str() {
            "https" => {}
            "http" if loopback => {}
            "http" => {
                return Err(complaint(
                    "must be an https URL: plain http sends code and keys unencrypted to another machine",
                )
                .hinted("write the URL with https://"));
            }
            _ => return Err(bad_url("has an unsupported scheme")),
        }
        Ok(Self {
            text: s.trim_end_matches('/').to_owned(),
            loopback,
        })
    }
}

fn bad_url(why: &str) -> Complaint {
    ValueKind::Url.unmet(&format!("this URL {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_https_or_of_this_machine_and_hold_no_password() {
        for (text, loopback) in [
            ("https://api.example.com/v1/", false),
            ("http://127.0.0.1:11434/v1", true),
            ("http://127.9.9.9", true),
            ("http://[::1]:80/", true),
            ("http://LOCALHOST:1", true),
            ("https://localhost.example.com", false),
            ("https://127.0.0.1.example.com", false),
        ] {
            assert_eq!(Url::parse(text).map(|u| u.loopback), Ok(loopback), "{text}");
        }
        for bad in [
            "api.example.com",
            "ftp://example.com",
            "http://example.com",
            "http://10.0.0.1",
            "http://127.0.0.1.evil.example",
            "http://localhost@evil.example",
            "http://evil.example\\@localhost",
            "http://localhost:80@evil.example/",
            "https://",
            "https://h:99999",
            "https://a b",
            "https://h/?key=1",
            "http://[::1",
        ] {
            assert!(Url::parse(bad).is_err(), "{bad}");
        }
    }
}
