//! A host of a forge, and the service that it belongs to: how the operator names its hosts, and
//! which tokens they get.

use super::address::{HostAddress, Scheme};
use super::api::ForgeApi;
use super::mark::MarkForm;
use crate::http::Url;
use crate::policy::ForgePolicy;
use crate::report::markdown::Flavor;

/// A header, and the prefix of its value.
pub(super) type TokenHeader = (&'static str, &'static str);

/// What all hosts of a service have in common. Bitbucket Cloud and Data Center are one service with
/// two APIs.
#[derive(Debug)]
pub(super) struct ForgeService {
    /// Name of the service in references to issues: `github`.
    pub(super) name: &'static str,
    /// Policy key with the address of an API, for messages: `[forge] github_api`.
    pub(super) setting: &'static str,
    /// Returns the value of that key.
    pub(super) address: fn(&ForgePolicy) -> Option<&str>,
    /// For a service that runs CI jobs: the variable that is `true` in a job, and the variable with
    /// the address of the API of the server that runs it.
    pub(super) job_variables: Option<(&'static str, &'static str)>,
    /// Address of the API of the public host.
    pub(super) public: &'static str,
    /// Returns the host of an API's address, which may be written in several ways.
    pub(super) host: fn(&Url) -> Host,
    /// Returns the variables with a token for a host, preferred first. Each variable belongs to one
    /// host, and no other host gets its token.
    pub(super) token_variables: fn(&Host, HostOrigin) -> Vec<&'static str>,
    /// Header for the token.
    pub(super) token_header: TokenHeader,
    /// The token that each job of the service's CI has.
    pub(super) job_token: Option<JobToken>,
    /// Whether a token may be a user name and a password (`NAME:PASSWORD`).
    pub(super) takes_pairs: bool,
    /// Headers of every request; names in lower case.
    pub(super) headers: &'static [(&'static str, &'static str)],
    /// Markdown flavor of its comments.
    pub(super) flavor: Flavor,
    /// Notation for marks in comments, which its pages do not display.
    pub(super) mark_form: MarkForm,
}

/// The token that each job of a CI system has. Its rights are few, so any configured token takes
/// precedence.
#[derive(Clone, Copy, Debug)]
pub(super) struct JobToken {
    pub(super) variable: &'static str,
    pub(super) header: TokenHeader,
}

/// How a host became known.
#[derive(Clone, Copy, Debug)]
pub(super) struct HostOrigin {
    /// The policy names it.
    pub(super) by_policy: bool,
    /// Whether it runs the current CI job; `None` if no host of its service runs it.
    pub(super) runs_job: Option<bool>,
    /// Whether it is the first host of its service that the operator named, or else the public one.
    pub(super) is_home: bool,
}

/// A host: the addresses of its API, and of its pages and repositories.
#[derive(Clone, Debug)]
pub struct Host {
    pub(super) service: &'static ForgeService,
    /// The implementation of its API.
    pub(super) forge: &'static dyn ForgeApi,
    /// Address of the API.
    pub(super) api: Url,
    /// Prefix of the addresses of its pages and repositories.
    pub(super) web: Url,
    /// Other host names of its repositories.
    pub(super) aliases: &'static [&'static str],
}

/// Compares the service and the addresses. The address of the API determines the implementation.
impl PartialEq for Host {
    fn eq(&self, other: &Self) -> bool {
        self.shares_service(other) && self.api == other.api && self.web == other.web
    }
}

impl Eq for Host {}

impl Host {
    /// Returns true if both hosts are of one service, such as GitHub.
    pub(super) fn shares_service(&self, other: &Self) -> bool {
        self.service.name == other.service.name
    }

    /// Returns the host name, with the port if it is not the default: `github.com`,
    /// `bb.example:8443`.
    pub fn name(&self) -> String {
        let host = self.web.host_str().unwrap_or_default();
        self.web
            .port()
            .map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
    }

    /// Returns the path of an address relative to this host, or `None` if the address belongs to
    /// another host.
    ///
    /// Port and path prefix must match for http. They are ignored for ssh, where another server
    /// program answers.
    pub(super) fn below<'a>(&self, address: &'a HostAddress) -> Option<&'a [String]> {
        let own = self
            .web
            .host_str()
            .unwrap_or_default()
            .trim_start_matches('[')
            .trim_end_matches(']');
        if address.host != own && !self.aliases.contains(&address.host.as_str()) {
            return None;
        }
        let usual = match address.scheme {
            Scheme::Ssh => return Some(&address.path),
            Scheme::Http => 80,
            Scheme::Https => 443,
        };
        // Bitbucket Pipelines clones over http through its own proxy. The name of a public host is
        // sufficient: requests go to the API over https in any case.
        let is_public = !self.aliases.is_empty();
        let is_plain =
            address.scheme == Scheme::Http && is_public && matches!(address.port, None | Some(80));
        if !is_plain && address.port.unwrap_or(usual) != self.web.port_or_known_default()? {
            return None;
        }
        let folder: Vec<&str> = self
            .web
            .path()
            .split('/')
            .filter(|p| !p.is_empty())
            .collect();
        let inside = address.path.len() > folder.len()
            && address.path.iter().zip(&folder).all(|(a, b)| a == b);
        inside.then(|| &address.path[folder.len()..])
    }
}

/// Returns the address with another path.
pub(super) fn with_path(url: &Url, path: &str) -> Url {
    let mut url = url.clone();
    url.set_path(path);
    url
}

/// Returns the address with another host name.
pub(super) fn with_host(url: &Url, host: &str) -> Url {
    let mut url = url.clone();
    // The name is a part of a valid name, or fixed, so it is valid.
    let _ = url.set_host(Some(host));
    url
}

/// Returns the part of the path that precedes an API's path.
pub(super) fn before<'a>(url: &'a Url, api: &str) -> &'a str {
    let path = url.path().trim_end_matches('/');
    path.find(api)
        .filter(|at| matches!(path.as_bytes().get(at + api.len()), None | Some(b'/')))
        .map_or(path, |at| &path[..at])
}
