//! Finds the forge of a remote or a page, the address of its API, and its token.
//!
//! The known hosts are the three public ones and those that the operator named: in `[forge]` of the
//! policy (operator-only keys) and in the variables that a CI system sets. The address of a remote
//! or a page is compared with them and selects one. Requests, and with them a token, go to the API
//! address of the selected host, never to an address from a remote or a page. Each token variable
//! belongs to one host, and no other host gets its token.

use super::address::{ForgeProject, HostAddress, Scheme, pull_of_page};
use super::client::Client;
use super::{ForgeKind, bitbucket, github, gitlab};
use crate::env::Env;
use crate::error::{Error, Result};
use crate::http;
use crate::http::key::{Key, KeySource};
use crate::http::{Failure, Pool, Proxies, Server, Setup, Url};
use crate::policy::ForgePolicy;
use std::path::Path;

/// Variable that contains the host for a `token_command`.
const HOST_VARIABLE: &str = "FORGE_HOST";
/// Retries of a request, at most.
const RETRIES: u32 = 3;

/// Forge settings of the operator.
#[derive(Clone, Copy, Debug)]
pub struct Operator<'a> {
    /// `[forge]` of the operator's policy, never the change's.
    pub policy: &'a ForgePolicy,
    pub env: &'a Env,
    /// Top folder of the repository under review: programs in it are never run.
    pub top: Option<&'a Path>,
}

/// The known hosts.
#[derive(Clone, Debug)]
pub struct Hosts {
    all: Vec<Host>,
    /// API addresses of the hosts that the policy names.
    of_policy: Vec<Url>,
    /// API addresses of the hosts that a CI system names.
    of_ci: Vec<Url>,
}

/// A forge: the addresses of its API, and of its pages and repositories.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    pub kind: ForgeKind,
    /// Address of the API.
    api: Url,
    /// Prefix of the addresses of its pages and repositories.
    web: Url,
    /// Other host names of its repositories.
    aliases: &'static [&'static str],
}

/// A project of a forge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site {
    pub host: Host,
    pub project: ForgeProject,
}

impl Hosts {
    /// Collects the hosts of the policy and of the CI system, and the public ones.
    ///
    /// # Errors
    ///
    /// A usage error for an invalid address, or for plain http to another machine.
    pub fn of(operator: &Operator<'_>) -> Result<Self> {
        let (policy, env) = (operator.policy, operator.env);
        let mut out = Self {
            all: Vec::new(),
            of_policy: Vec::new(),
            of_ci: Vec::new(),
        };
        let given: [(Option<&str>, &str, Maker); 3] = [
            (
                policy.github_api.as_deref(),
                setting(ForgeKind::Github),
                Host::github,
            ),
            (
                policy.gitlab_api.as_deref(),
                setting(ForgeKind::Gitlab),
                Host::gitlab,
            ),
            (
                policy.bitbucket_api.as_deref(),
                setting(ForgeKind::BitbucketServer),
                Host::bitbucket,
            ),
        ];
        for (text, place, maker) in given {
            if let Some(text) = text {
                let api = out.add(maker(&address(text, place)?));
                out.of_policy.push(api);
            }
        }
        let told: [(bool, &str, Maker); 2] = [
            (
                env.var("GITHUB_ACTIONS") == Some("true"),
                "GITHUB_API_URL",
                Host::github,
            ),
            (
                env.var("GITLAB_CI") == Some("true"),
                "CI_API_V4_URL",
                Host::gitlab,
            ),
        ];
        for (_, name, maker) in told.into_iter().filter(|(inside, ..)| *inside) {
            if let Some(text) = env.var(name) {
                let api = out.add(maker(&address(text, name)?));
                out.of_ci.push(api);
            }
        }
        for (text, maker) in PUBLIC {
            out.add(maker(&address(text, "the program")?));
        }
        Ok(out)
    }

    /// Adds a host unless it is known, and returns its API address.
    fn add(&mut self, host: Host) -> Url {
        let api = host.api.clone();
        if !self.all.iter().any(|h| h.api == api) {
            self.all.push(host);
        }
        api
    }

    /// Finds the project of a remote's address. Returns `None` if the host is unknown.
    pub fn site_of_remote(&self, text: &str) -> Option<Site> {
        let address = HostAddress::remote(text)?;
        self.all.iter().find_map(|host| {
            let path = host.below(&address)?;
            let project = ForgeProject::of_remote(host.kind, address.scheme, path)?;
            Some(Site {
                host: host.clone(),
                project,
            })
        })
    }

    /// Finds the pull request of a page's address.
    pub fn pull_of_page(&self, text: &str) -> Option<(Site, u64)> {
        let address = HostAddress::page(text)?;
        self.all.iter().find_map(|host| {
            let (project, number) = pull_of_page(host.kind, host.below(&address)?)?;
            Some((
                Site {
                    host: host.clone(),
                    project,
                },
                number,
            ))
        })
    }

    /// Returns the names of the hosts, for hints.
    pub fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = self.all.iter().map(Host::name).collect();
        names.dedup();
        names
    }

    /// Returns the variables with a token for a host, preferred first. Each variable belongs to one
    /// host.
    fn variables(&self, host: &Host) -> Vec<&'static str> {
        match host.kind {
            // As the program `gh`: two variables for github.com and its subdomains, two for other
            // hosts. In a workflow the first two are for the server that runs it.
            ForgeKind::Github => {
                let runs = self.of_ci.iter().find(|api| {
                    self.all
                        .iter()
                        .any(|h| h.api == **api && h.kind == ForgeKind::Github)
                });
                let is_home = match runs {
                    Some(api) => *api == host.api,
                    None => host
                        .web
                        .host_str()
                        .is_some_and(|h| h == "github.com" || h.ends_with(".ghe.com")),
                };
                let mut names = Vec::new();
                if is_home {
                    names.extend(["GITHUB_TOKEN", "GH_TOKEN"]);
                }
                if self.of_policy.contains(&host.api) {
                    names.extend(["GH_ENTERPRISE_TOKEN", "GITHUB_ENTERPRISE_TOKEN"]);
                }
                names
            }
            kind if self.home(kind) != Some(host) => Vec::new(),
            ForgeKind::Gitlab => vec!["GITLAB_TOKEN"],
            ForgeKind::BitbucketServer | ForgeKind::BitbucketCloud => vec!["BB_TOKEN"],
        }
    }

    /// Returns the host that the token variable of a kind belongs to. A host that the operator
    /// named takes the variable from the public host.
    fn home(&self, kind: ForgeKind) -> Option<&Host> {
        let named = self.of_policy.iter().chain(&self.of_ci);
        let found = named
            .filter_map(|api| self.all.iter().find(|h| h.api == *api))
            .find(|h| h.kind.is_like(kind));
        found.or_else(|| self.all.iter().rev().find(|h| h.kind.is_like(kind)))
    }
}

/// Constructs a host from the address of its API.
type Maker = fn(&Url) -> Host;

/// The public forges.
const PUBLIC: [(&str, Maker); 3] = [
    ("https://api.github.com", Host::github),
    ("https://gitlab.com/api/v4", Host::gitlab),
    ("https://api.bitbucket.org/2.0", Host::bitbucket),
];

/// Parses the address of an API.
fn address(text: &str, setting: &str) -> Result<Url> {
    let mut url = Url::parse(text.trim()).map_err(|_| invalid_address(setting, "is not a URL"))?;
    match url.scheme() {
        "https" => {}
        "http" if http::is_local(&url) => {}
        "http" => {
            return Err(invalid_address(
                setting,
                "must not send a token over plain http to another machine",
            ));
        }
        _ => return Err(invalid_address(setting, "is not an HTTP URL")),
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(invalid_address(
            setting,
            "must not hold a name or a password",
        ));
    }
    url.set_query(None);
    url.set_fragment(None);
    Ok(url)
}

/// Returns the error for a setting with an address that cannot be used.
fn invalid_address(setting: &str, why: &str) -> Error {
    Error::usage(format!("{setting} {why}")).hint("use an https address")
}

/// Returns the address with another path.
fn with_path(url: &Url, path: &str) -> Url {
    let mut url = url.clone();
    url.set_path(path);
    url
}

/// Returns the part of the path that precedes an API's path.
fn before<'a>(url: &'a Url, api: &str) -> &'a str {
    let path = url.path().trim_end_matches('/');
    path.find(api)
        .filter(|at| matches!(path.as_bytes().get(at + api.len()), None | Some(b'/')))
        .map_or(path, |at| &path[..at])
}

impl Host {
    /// Accepts `https://api.github.com`, `https://HOST/api/v3` and `https://api.NAME.ghe.com`. On
    /// GitHub Enterprise Server, REST and GraphQL are both below `/api`.
    fn github(api: &Url) -> Self {
        let host = api.host_str().unwrap_or_default();
        let (api, web) = match host.strip_prefix("api.") {
            Some(bare) if api.path() == "/" => {
                let mut web = with_path(api, "/");
                let _ = web.set_host(Some(bare));
                (with_path(api, "/"), web)
            }
            _ => {
                let prefix = before(api, "/api").to_owned();
                (
                    with_path(api, &format!("{prefix}/api/")),
                    with_path(api, &format!("{prefix}/")),
                )
            }
        };
        let aliases: &[&str] = if web.host_str() == Some("github.com") {
            &["ssh.github.com", "www.github.com"]
        } else {
            &[]
        };
        Self {
            kind: ForgeKind::Github,
            api,
            web,
            aliases,
        }
    }

    /// Accepts `https://HOST/api/v4`, with a path prefix if GitLab is installed below one.
    fn gitlab(api: &Url) -> Self {
        let prefix = before(api, "/api/v4").to_owned();
        let web = with_path(api, &format!("{prefix}/"));
        let aliases: &[&str] = if web.host_str() == Some("gitlab.com") {
            &["altssh.gitlab.com"]
        } else {
            &[]
        };
        let api = with_path(api, &format!("{prefix}/api/v4/"));
        Self {
            kind: ForgeKind::Gitlab,
            api,
            web,
            aliases,
        }
    }

    /// Accepts `https://HOST/rest/api/1.0`, and `https://api.bitbucket.org/2.0` for Bitbucket
    /// Cloud. An address of another host that ends with `/2.0` is a proxy for Bitbucket Cloud.
    fn bitbucket(api: &Url) -> Self {
        if matches!(api.host_str(), Some("api.bitbucket.org" | "bitbucket.org")) {
            let mut web = with_path(api, "/");
            let _ = web.set_host(Some("bitbucket.org"));
            let mut api = with_path(api, "/2.0/");
            let _ = api.set_host(Some("api.bitbucket.org"));
            let aliases = &["altssh.bitbucket.org", "www.bitbucket.org"];
            return Self {
                kind: ForgeKind::BitbucketCloud,
                api,
                web,
                aliases,
            };
        }
        if let Some(prefix) = api.path().trim_end_matches('/').strip_suffix("/2.0") {
            let (web, api) = (
                with_path(api, &format!("{prefix}/")),
                with_path(api, &format!("{prefix}/2.0/")),
            );
            return Self {
                kind: ForgeKind::BitbucketCloud,
                api,
                web,
                aliases: &[],
            };
        }
        let prefix = before(api, "/rest").to_owned();
        let web = with_path(api, &format!("{prefix}/"));
        // Not all of its APIs are below the same version.
        let api = with_path(api, &format!("{prefix}/rest/"));
        Self {
            kind: ForgeKind::BitbucketServer,
            api,
            web,
            aliases: &[],
        }
    }

    /// Returns the host name, with the port if it is not the default: `github.com`,
    /// `bb.example:8443`.
    pub fn name(&self) -> String {
        let host = self.web.host_str().unwrap_or_default();
        self.web
            .port()
            .map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
    }

    /// Returns the prefix of the addresses of its repositories.
    pub(super) fn web(&self) -> &str {
        self.web.as_str()
    }

    /// Returns the path prefix of requests; ends with a slash.
    pub(super) fn api_path(&self) -> &str {
        self.api.path()
    }

    /// Returns the path of an address relative to this host, or `None` if the address belongs to
    /// another host.
    ///
    /// Port and path prefix must match for http. They are ignored for ssh, where another server
    /// program answers.
    fn below<'a>(&self, address: &'a HostAddress) -> Option<&'a [String]> {
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

impl Site {
    /// Returns the address to fetch the project from if no remote has it.
    pub fn clone_url(&self) -> String {
        let below = match self.host.kind {
            ForgeKind::BitbucketServer => format!("scm/{}.git", self.project),
            ForgeKind::Github | ForgeKind::Gitlab | ForgeKind::BitbucketCloud => {
                format!("{}.git", self.project)
            }
        };
        format!("{}{below}", self.host.web)
    }

    /// Returns the client for the host's API, with the host's token. Opens no connection and runs
    /// no program.
    pub(super) fn client(
        &self,
        hosts: &Hosts,
        operator: &Operator<'_>,
    ) -> std::result::Result<Client, Failure> {
        let host = &self.host;
        let (key, name) = token(host, hosts, operator)?;
        let (carries, headers) = match host.kind {
            ForgeKind::Github => (github::TOKEN, github::HEADERS),
            ForgeKind::Gitlab if name == gitlab::JOB_VARIABLE => {
                (gitlab::JOB_TOKEN, gitlab::HEADERS)
            }
            ForgeKind::Gitlab => (gitlab::TOKEN, gitlab::HEADERS),
            ForgeKind::BitbucketServer | ForgeKind::BitbucketCloud => {
                (bitbucket::TOKEN, bitbucket::HEADERS)
            }
        };
        let secure = host.api.scheme() == "https";
        let server = Server::new(Setup {
            address: host.api.clone(),
            setting: setting(host.kind),
            carries,
            headers,
            key,
            max_retries: RETRIES,
            retry_delay: http::retry::DELAY,
            is_patient: false,
            proxies: if secure {
                Proxies::of(operator.env)?
            } else {
                Proxies::default()
            },
            pool: Pool::default(),
        });
        let server = match host.kind {
            ForgeKind::Github | ForgeKind::Gitlab => server,
            // A user name and an app password, or a token that belongs to a user name.
            ForgeKind::BitbucketServer | ForgeKind::BitbucketCloud => server.taking_pairs(),
        };
        Ok(Client::new(server, host.api.clone(), name))
    }
}

/// Returns the token of a host, and the name of its setting for error messages.
fn token(
    host: &Host,
    hosts: &Hosts,
    operator: &Operator<'_>,
) -> std::result::Result<(KeySource, String), Failure> {
    let (policy, env) = (operator.policy, operator.env);
    let variables = hosts.variables(host);
    if let Some(found) = token_of_variables(env, &variables)? {
        return Ok(found);
    }
    let alone = hosts.of_policy.len() == 1 && hosts.of_policy.contains(&host.api);
    if let Some(line) = policy
        .token_command
        .as_deref()
        .filter(|line| line.contains(HOST_VARIABLE) || alone)
    {
        let others = env.vars().filter(|(name, _)| *name != HOST_VARIABLE);
        let vars = others.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let vars = vars.chain([(HOST_VARIABLE.into(), host.name().into())]);
        let told = Env::from_pairs(env.dir.clone(), vars);
        return Ok((
            KeySource::command("token_command", line, &told, operator.top)?,
            "[forge] token_command".to_owned(),
        ));
    }
    // A job of GitLab CI always has this token. Its rights are few, so any configured token takes
    // precedence.
    if host.kind == ForgeKind::Gitlab
        && hosts.of_ci.contains(&host.api)
        && let Some(found) = token_of_variables(env, &[gitlab::JOB_VARIABLE])?
    {
        return Ok(found);
    }
    let name = variables
        .first()
        .map_or("[forge] token_command", |name| name);
    Ok((KeySource::Keyless, name.to_owned()))
}

/// Returns the token of the first variable that is set, and the name of that variable.
fn token_of_variables(
    env: &Env,
    names: &[&str],
) -> std::result::Result<Option<(KeySource, String)>, Failure> {
    let Some((name, value)) = names.iter().find_map(|name| Some((*name, env.os(name)?))) else {
        return Ok(None);
    };
    let key = value.to_str().and_then(Key::new).ok_or_else(|| {
        let message = format!("the token in {name} has characters that no token has");
        Failure::new(http::Cause::Setup, message)
    })?;
    Ok(Some((KeySource::Known(key), name.to_owned())))
}

/// Returns the policy key for the address of an API.
fn setting(kind: ForgeKind) -> &'static str {
    match kind {
        ForgeKind::Github => "[forge] github_api",
        ForgeKind::Gitlab => "[forge] gitlab_api",
        ForgeKind::BitbucketServer | ForgeKind::BitbucketCloud => "[forge] bitbucket_api",
    }
}

impl ForgeKind {
    /// Returns true if both kinds share a token variable.
    fn is_like(self, other: Self) -> bool {
        let is_bitbucket = [self, other]
            .iter()
            .all(|k| matches!(k, Self::BitbucketServer | Self::BitbucketCloud));
        self == other || is_bitbucket
    }
}

#[cfg(test)]
mod tests;
