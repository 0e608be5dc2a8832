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
mod tests {
    use super::{Hosts, Operator, token};
    use crate::env::Env;
    use crate::policy::ForgePolicy;
    use std::path::PathBuf;

    /// Returns API, project and token variable of a remote's host under a policy and an
    /// environment.
    fn site(
        policy: &ForgePolicy,
        vars: &[(&str, &str)],
        remote: &str,
    ) -> Option<(String, String, String)> {
        let env = Env::from_pairs(PathBuf::new(), vars.iter().copied());
        let operator = Operator {
            policy,
            env: &env,
            top: None,
        };
        let hosts = Hosts::of(&operator).unwrap();
        let site = hosts.site_of_remote(remote)?;
        let (key, name) = token(&site.host, &hosts, &operator).unwrap();
        let name = if key.known().is_some() {
            name
        } else {
            format!("no {name}")
        };
        Some((site.host.api.to_string(), site.project.to_string(), name))
    }

    #[track_caller]
    fn is(found: Option<(String, String, String)>, api: &str, project: &str, token: &str) {
        let (found_api, found_project, found_token) = found.unwrap();
        assert_eq!(
            (
                found_api.as_str(),
                found_project.as_str(),
                found_token.as_str()
            ),
            (api, project, token)
        );
    }

    const ALL: [(&str, &str); 6] = [
        ("GITHUB_TOKEN", "a"),
        ("GH_TOKEN", "b"),
        ("GH_ENTERPRISE_TOKEN", "c"),
        ("GITLAB_TOKEN", "d"),
        ("BB_TOKEN", "e"),
        ("OTHER", "f"),
    ];

    #[test]
    fn public_forges_are_known() {
        fn of(remote: &str) -> Option<(String, String, String)> {
            site(&ForgePolicy::default(), &ALL, remote)
        }
        is(
            of("git@github.com:o/r.git"),
            "https://api.github.com/",
            "o/r",
            "GITHUB_TOKEN",
        );
        is(
            of("ssh://git@ssh.github.com:443/o/r.git"),
            "https://api.github.com/",
            "o/r",
            "GITHUB_TOKEN",
        );
        is(
            of("https://gitlab.com/g/s/p.git"),
            "https://gitlab.com/api/v4/",
            "g/s/p",
            "GITLAB_TOKEN",
        );
        is(
            of("git@bitbucket.org:t/r.git"),
            "https://api.bitbucket.org/2.0/",
            "t/r",
            "BB_TOKEN",
        );
        // As Bitbucket Pipelines clones: requests to the API still use https.
        is(
            of("http://bitbucket.org/t/r"),
            "https://api.bitbucket.org/2.0/",
            "t/r",
            "BB_TOKEN",
        );
        is(
            of("http://github.com:80/o/r.git"),
            "https://api.github.com/",
            "o/r",
            "GITHUB_TOKEN",
        );
        for unknown in [
            "https://github.com.evil.example/o/r",
            "https://evilgithub.com/o/r",
            "https://github.com:8443/o/r",
            "http://github.com:8080/o/r",
            "https://evil.example/github.com/o/r",
            "https://github.com@evil.example/o/r",
            "/srv/github.com/o/r",
        ] {
            assert_eq!(of(unknown), None, "{unknown}");
        }
    }

    #[test]
    fn a_forge_of_ones_own_is_what_the_operator_named() {
        let own = ForgePolicy {
            github_api: Some("https://ghe.example/api/v3".to_owned()),
            gitlab_api: Some("https://code.example:8443/git".to_owned()),
            bitbucket_api: Some("https://bb.example/stash/rest/api/1.0".to_owned()),
            token_command: None,
            comment_commands: false,
        };
        let of = |remote| site(&own, &ALL, remote);
        is(
            of("git@ghe.example:o/r"),
            "https://ghe.example/api/",
            "o/r",
            "GH_ENTERPRISE_TOKEN",
        );
        is(
            of("https://code.example:8443/git/g/p.git"),
            "https://code.example:8443/git/api/v4/",
            "g/p",
            "GITLAB_TOKEN",
        );
        is(
            of("ssh://git@code.example:22/g/p.git"),
            "https://code.example:8443/git/api/v4/",
            "g/p",
            "GITLAB_TOKEN",
        );
        is(
            of("https://bb.example/stash/scm/key/slug.git"),
            "https://bb.example/stash/rest/",
            "key/slug",
            "BB_TOKEN",
        );
        // Their tokens are for them alone, and tokens of the public forge stay there.
        is(
            of("git@github.com:o/r"),
            "https://api.github.com/",
            "o/r",
            "GITHUB_TOKEN",
        );
        is(
            of("git@gitlab.com:g/p"),
            "https://gitlab.com/api/v4/",
            "g/p",
            "no [forge] token_command",
        );
        is(
            of("git@bitbucket.org:t/r"),
            "https://api.bitbucket.org/2.0/",
            "t/r",
            "no [forge] token_command",
        );
        for unknown in [
            "https://code.example/git/g/p",
            "https://code.example:8443/g/p",
            "https://ghe.example.evil/o/r",
        ] {
            assert_eq!(of(unknown), None, "{unknown}");
        }
        let cloud = ForgePolicy {
            github_api: Some("https://api.corp.ghe.com".to_owned()),
            ..ForgePolicy::default()
        };
        is(
            site(&cloud, &ALL, "git@corp.ghe.com:o/r"),
            "https://api.corp.ghe.com/",
            "o/r",
            "GITHUB_TOKEN",
        );
    }

    #[test]
    fn both_bitbuckets_are_told_apart_by_the_address_of_their_api() {
        for (api, remote, expected, project) in [
            (
                "https://bb.example/",
                "https://bb.example/scm/~me/r.git",
                "https://bb.example/rest/",
                "~me/r",
            ),
            (
                "https://bb.example/x/rest/api/latest/",
                "ssh://git@bb.example:7999/k/r.git",
                "https://bb.example/x/rest/",
                "k/r",
            ),
            (
                "https://gate.example/bb/2.0",
                "https://gate.example/bb/t/r.git",
                "https://gate.example/bb/2.0/",
                "t/r",
            ),
            (
                "https://api.bitbucket.org/2.0/",
                "git@bitbucket.org:t/r.git",
                "https://api.bitbucket.org/2.0/",
                "t/r",
            ),
        ] {
            let policy = ForgePolicy {
                bitbucket_api: Some(api.to_owned()),
                ..ForgePolicy::default()
            };
            is(site(&policy, &ALL, remote), expected, project, "BB_TOKEN");
        }
    }

    #[test]
    fn in_a_workflow_the_usual_token_is_for_the_server_that_runs_it() {
        let none = ForgePolicy::default();
        let ci = [
            ("GITHUB_ACTIONS", "true"),
            ("GITHUB_API_URL", "https://ghe.example/api/v3"),
        ];
        let of = |remote| site(&none, &[&ALL[..], &ci].concat(), remote);
        is(
            of("https://ghe.example/o/r"),
            "https://ghe.example/api/",
            "o/r",
            "GITHUB_TOKEN",
        );
        is(
            of("https://github.com/o/r"),
            "https://api.github.com/",
            "o/r",
            "no [forge] token_command",
        );
        // The variable alone, outside of a workflow, does not add a host.
        assert_eq!(site(&none, &[ci[1]], "https://ghe.example/o/r"), None);
        let gitlab = [
            ("GITLAB_CI", "true"),
            ("CI_API_V4_URL", "https://gl.example/api/v4"),
            ("GITLAB_TOKEN", "x"),
        ];
        is(
            site(&none, &gitlab, "https://gl.example/g/p"),
            "https://gl.example/api/v4/",
            "g/p",
            "GITLAB_TOKEN",
        );
        is(
            site(&none, &gitlab, "https://gitlab.com/g/p"),
            "https://gitlab.com/api/v4/",
            "g/p",
            "no [forge] token_command",
        );
        // Without it the job's own token is used, on the server that issued it.
        let job = [gitlab[0], gitlab[1], ("CI_JOB_TOKEN", "y")];
        is(
            site(&none, &job, "https://gl.example/g/p"),
            "https://gl.example/api/v4/",
            "g/p",
            "CI_JOB_TOKEN",
        );
        is(
            site(&none, &job, "https://gitlab.com/g/p"),
            "https://gitlab.com/api/v4/",
            "g/p",
            "no [forge] token_command",
        );
        let outside = site(&none, &job[1..], "https://gitlab.com/g/p");
        is(
            outside,
            "https://gitlab.com/api/v4/",
            "g/p",
            "no GITLAB_TOKEN",
        );
    }

    #[test]
    fn a_command_gives_its_token_to_the_host_it_is_meant_for() {
        fn with(command: &str, gitlab: Option<&str>) -> ForgePolicy {
            ForgePolicy {
                gitlab_api: gitlab.map(str::to_owned),
                token_command: Some(command.to_owned()),
                ..ForgePolicy::default()
            }
        }
        fn is_used(policy: &ForgePolicy, remote: &str) -> bool {
            let env = Env::from_pairs(PathBuf::new(), [("PATH", "/usr/bin:/bin")]);
            let operator = Operator {
                policy,
                env: &env,
                top: None,
            };
            let hosts = Hosts::of(&operator).unwrap();
            let site = hosts.site_of_remote(remote).unwrap();
            !matches!(
                token(&site.host, &hosts, &operator).unwrap().0,
                crate::http::key::KeySource::Keyless
            )
        }
        let asks = with("keyring $FORGE_HOST", None);
        assert!(is_used(&asks, "git@github.com:o/r") && is_used(&asks, "git@gitlab.com:g/p"));
        let own = with("keyring gitlab", Some("https://gl.example/api/v4"));
        assert!(is_used(&own, "git@gl.example:g/p"));
        assert!(!is_used(&own, "git@github.com:o/r") && !is_used(&own, "git@gitlab.com:g/p"));
        assert!(!is_used(&with("keyring x", None), "git@github.com:o/r"));
    }

    #[test]
    fn an_address_that_would_show_a_token_to_the_network_is_refused() {
        let env = Env::default();
        for bad in [
            "http://ghe.example/api/v3",
            "ftp://ghe.example",
            "ghe.example",
            "https://u:p@ghe.example",
        ] {
            let policy = ForgePolicy {
                github_api: Some(bad.to_owned()),
                ..ForgePolicy::default()
            };
            assert!(
                Hosts::of(&Operator {
                    policy: &policy,
                    env: &env,
                    top: None
                })
                .is_err(),
                "{bad}"
            );
        }
        let policy = ForgePolicy {
            github_api: Some("http://127.0.0.1:1/api/v3".to_owned()),
            ..ForgePolicy::default()
        };
        assert!(
            Hosts::of(&Operator {
                policy: &policy,
                env: &env,
                top: None
            })
            .is_ok()
        );
    }
}
