//! Selects the proxy of a request: `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY`, in
//! either case.
//!
//! Plain http is used only for this machine, and requests to this machine use no proxy.

use super::key::Key;
use super::{Cause, Failure};
use crate::env::Env;
use reqwest::{NoProxy, Proxy, Url};

/// Schemes of a proxy's address. With `socks4` and `socks5` this program resolves names, with the
/// others the proxy does.
const SCHEMES: [&str; 6] = ["http", "https", "socks4", "socks4a", "socks5", "socks5h"];

/// The proxy settings of the environment.
#[derive(Debug, Default)]
pub struct Proxies {
    https: Option<(&'static str, Url)>,
    http: Option<(&'static str, Url)>,
    /// Hosts without a proxy; this machine never uses one.
    direct: String,
    /// Passwords of the proxies, for masking.
    secrets: Vec<Key>,
}

impl Proxies {
    /// Reads the environment. The lower-case name of a variable wins, as in curl.
    ///
    /// # Errors
    ///
    /// `Setup`: a value is not a proxy address. A direct connection instead would break the user's
    /// intent.
    pub fn of(env: &Env) -> Result<Self, Failure> {
        let all = first_of(env, ["all_proxy", "ALL_PROXY"]);
        let direct = first_of(env, ["no_proxy", "NO_PROXY"]).map_or("", |(_, v)| v);
        let mut proxies = Self {
            https: first_of(env, ["https_proxy", "HTTPS_PROXY"])
                .or(all)
                .map(parse)
                .transpose()?,
            // As a CGI program, HTTP_PROXY in capitals could come from a request header (httpoxy).
            http: first_of(env, ["http_proxy", "HTTP_PROXY"])
                .filter(|(n, _)| *n == "http_proxy" || env.os("REQUEST_METHOD").is_none())
                .or(all)
                .map(parse)
                .transpose()?,
            direct: format!("{direct},localhost,127.0.0.0/8,::1"),
            secrets: Vec::new(),
        };
        if direct.split(',').any(|d| d.trim() == "*") {
            (proxies.https, proxies.http) = (None, None);
        }
        let used = [&proxies.https, &proxies.http];
        proxies.secrets = used
            .into_iter()
            .flatten()
            .filter_map(|(_, u)| u.password().and_then(Key::new))
            .collect();
        Ok(proxies)
    }

    /// Returns the proxies in the type of the client.
    pub(super) fn for_client(&self) -> Result<Vec<Proxy>, reqwest::Error> {
        let https = self
            .https
            .iter()
            .map(|(_, u)| Proxy::https(u.clone()).map(|p| self.with_exceptions(p)));
        let http = self
            .http
            .iter()
            .map(|(_, u)| Proxy::http(u.clone()).map(|p| self.with_exceptions(p)));
        https.chain(http).collect()
    }

    /// Returns a proxy that the hosts with a direct connection do not use.
    fn with_exceptions(&self, proxy: Proxy) -> Proxy {
        proxy.no_proxy(NoProxy::from_string(&self.direct))
    }

    /// Masks the passwords of proxies in a text.
    pub fn mask(&self, text: String) -> String {
        self.secrets
            .iter()
            .fold(text, |text, secret| secret.mask(&text))
    }

    /// Returns the variable with the proxy for https requests.
    pub fn variable(&self) -> &'static str {
        self.https.as_ref().map_or("HTTPS_PROXY", |(name, _)| name)
    }
}

/// Returns the first of two variables that is set, with its name.
fn first_of<'e>(env: &'e Env, names: [&'static str; 2]) -> Option<(&'static str, &'e str)> {
    names
        .into_iter()
        .find_map(|name| env.var(name).map(|value| (name, value.trim())))
}

/// Parses the address of a proxy; the default scheme is http.
fn parse((name, value): (&'static str, &str)) -> Result<(&'static str, Url), Failure> {
    let text = if value.contains("://") {
        value.to_owned()
    } else {
        format!("http://{value}")
    };
    match Url::parse(&text) {
        Ok(url) if SCHEMES.contains(&url.scheme()) && url.has_host() => Ok((name, url)),
        // The value may contain a password, so the message does not repeat it.
        _ => {
            let failure = Failure::new(Cause::Setup, format!("{name} is not a proxy address"));
            Err(failure.hint(format!(
                "set it to {}",
                SCHEMES.map(|s| format!("{s}://HOST:PORT")).join(" or ")
            )))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Proxies;
    use crate::env::Env;
    use std::path::PathBuf;

    fn of(vars: &[(&str, &str)]) -> Result<Proxies, crate::http::Failure> {
        Proxies::of(&Env::from_pairs(PathBuf::new(), vars.iter().copied()))
    }

    /// Returns the proxy for HTTPS, with the name of its variable.
    fn https(vars: &[(&str, &str)]) -> Option<(&'static str, String)> {
        of(vars)
            .unwrap()
            .https
            .map(|(name, url)| (name, url.to_string()))
    }

    fn proxy(name: &'static str, url: &str) -> Option<(&'static str, String)> {
        Some((name, url.to_owned()))
    }

    #[test]
    fn net_18_proxies_come_from_the_environment_in_either_case() {
        assert_eq!(https(&[]), None);
        assert_eq!(
            https(&[("HTTPS_PROXY", "p.example:3128")]),
            proxy("HTTPS_PROXY", "http://p.example:3128/")
        );
        assert_eq!(
            https(&[("HTTPS_PROXY", "http://a"), ("https_proxy", "http://b")]),
            proxy("https_proxy", "http://b/")
        );
        assert_eq!(
            https(&[("ALL_PROXY", "http://a"), ("HTTP_PROXY", "http://b")]),
            proxy("ALL_PROXY", "http://a/")
        );
        assert_eq!(
            https(&[("HTTPS_PROXY", "http://a"), ("NO_PROXY", "x, *")]),
            None
        );
        assert!(
            of(&[("HTTP_PROXY", "http://a"), ("REQUEST_METHOD", "GET")])
                .unwrap()
                .http
                .is_none()
        );
        assert_eq!(
            https(&[("ALL_PROXY", "socks5h://a:1")]),
            proxy("ALL_PROXY", "socks5h://a:1")
        );
    }

    #[test]
    fn net_18_no_password_of_a_proxy_is_shown() {
        let proxies = of(&[("HTTPS_PROXY", "http://user:hunter2-canary@p.example")]).unwrap();
        assert_eq!(
            proxies.mask("got hunter2-canary here".to_owned()),
            "got *** here"
        );
        let bad = of(&[("HTTPS_PROXY", "ftp://user:hunter2-canary@p.example")]).unwrap_err();
        assert!(!bad.message.contains("canary"), "{}", bad.message);
    }
}
