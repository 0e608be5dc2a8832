//! Finds the forge of a remote or a page, the address of its API, and its token.
//!
//! The known hosts are the three public ones and those that the operator named: in `[forge]` of the
//! policy (operator-only keys) and in the variables that a CI system sets. The address of a remote
//! or a page is compared with them and selects one. Requests, and with them a token, go to the API
//! address of the selected host, never to an address from a remote or a page. Each token variable
//! belongs to one host, and no other host gets its token.

use super::SERVICES;
use super::address::{ForgeProject, HostAddress, without_git_suffix};
use super::client::Client;
use super::host::{Host, HostOrigin};
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
        for service in SERVICES {
            if let Some(text) = (service.address)(policy) {
                let api = out.add((service.host)(&address(text, service.setting)?));
                out.of_policy.push(api);
            }
        }
        for service in SERVICES {
            let Some((in_job, name)) = service.job_variables else {
                continue;
            };
            if env.var(in_job) == Some("true")
                && let Some(text) = env.var(name)
            {
                let api = out.add((service.host)(&address(text, name)?));
                out.of_ci.push(api);
            }
        }
        for service in SERVICES {
            out.add((service.host)(&address(service.public, "the program")?));
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
            let parts = without_git_suffix(host.below(&address)?)?;
            let project = host.forge.project_of_remote(address.scheme, parts)?;
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
            let parts = host.below(&address)?.iter().map(String::as_str);
            let (project, number) = host.forge.pull_of_page(&parts.collect::<Vec<_>>())?;
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

    /// Returns how a host became known.
    fn origin(&self, host: &Host) -> HostOrigin {
        let mut of_service = self
            .of_ci
            .iter()
            .filter_map(|api| self.host_at(api))
            .filter(|runs| runs.shares_service(host));
        HostOrigin {
            by_policy: self.of_policy.contains(&host.api),
            runs_job: of_service.next().map(|runs| runs.api == host.api),
            is_home: self.home(host) == Some(host),
        }
    }

    /// Returns the host whose API has an address.
    fn host_at(&self, api: &Url) -> Option<&Host> {
        self.all.iter().find(|host| host.api == *api)
    }

    /// Returns the first host of the same service that the operator named, or else the public one.
    fn home(&self, host: &Host) -> Option<&Host> {
        let named = self.of_policy.iter().chain(&self.of_ci);
        let mut named = named.filter_map(|api| self.host_at(api));
        let mut public = self.all.iter().rev();
        named
            .find(|other| other.shares_service(host))
            .or_else(|| public.find(|other| other.shares_service(host)))
    }
}

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

impl Site {
    /// Returns the address to fetch the project from if no remote has it.
    pub fn clone_url(&self) -> String {
        let path = self.host.forge.repository_path(&self.project);
        format!("{}{path}", self.host.web)
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
        let service = host.service;
        let job_token = service.job_token.filter(|job| job.variable == name);
        let secure = host.api.scheme() == "https";
        let server = Server::new(Setup {
            address: host.api.clone(),
            setting: service.setting,
            carries: job_token.map_or(service.token_header, |job| job.header),
            headers: service.headers,
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
        let server = if service.takes_pairs {
            server.taking_pairs()
        } else {
            server
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
    let origin = hosts.origin(host);
    let variables = (host.service.token_variables)(host, origin);
    if let Some(found) = token_of_variables(env, &variables)? {
        return Ok(found);
    }
    let alone = hosts.of_policy.len() == 1 && origin.by_policy;
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
    if origin.runs_job == Some(true)
        && let Some(job) = host.service.job_token
        && let Some(found) = token_of_variables(env, &[job.variable])?
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

#[cfg(test)]
mod tests;
