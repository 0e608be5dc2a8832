//! Reads issues for the context of a review ([`crate::context`]).

use super::{Forge, Hosts, Operator, Site};
use crate::context::{Home, Ticket, Tracker, TrackerDesk, Trackers, WantedIssue};
use crate::env::Env;
use crate::error::Error;
use crate::http::Limits;
use crate::policy::ForgePolicy;
use std::path::PathBuf;

/// The issues of the known forges.
#[derive(Debug)]
pub struct Issues;

/// The issues of one forge.
#[derive(Debug)]
struct OpenedIssues {
    home: Home,
    forge: Forge,
    hosts: Hosts,
    policy: ForgePolicy,
    env: Env,
    top: Option<PathBuf>,
}

impl Trackers for Issues {
    fn open(&self, desk: &TrackerDesk<'_>) -> Result<Option<Box<dyn Tracker>>, String> {
        let operator = Operator {
            policy: desk.policy,
            env: desk.env,
            top: desk.top,
        };
        let hosts = Hosts::of(&operator).map_err(|e| reason(&e))?;
        let Some(site) = desk
            .remotes
            .iter()
            .find_map(|url| hosts.site_of_remote(url))
        else {
            return Ok(None);
        };
        let home = home(&site);
        let forge = Forge::open(site, &hosts, &operator).map_err(|e| reason(&e))?;
        let (policy, env, top) = (
            desk.policy.clone(),
            desk.env.clone(),
            desk.top.map(PathBuf::from),
        );
        Ok(Some(Box::new(OpenedIssues {
            home,
            forge,
            hosts,
            policy,
            env,
            top,
        })))
    }
}

impl Tracker for OpenedIssues {
    fn home(&self) -> &Home {
        &self.home
    }

    fn has_token(&self) -> bool {
        !self.forge.client.is_keyless()
    }

    fn read(&self, wanted: &WantedIssue<'_>) -> Result<Option<Ticket>, String> {
        let Some(project) = wanted.project else {
            return self.forge.issue(wanted).map_err(|e| reason(&e));
        };
        let host = self.forge.site.host.clone();
        let parts = project.split('/').map(str::to_owned).collect();
        let project =
            (host.forge.project(parts)).ok_or_else(|| format!("{project} is not a project"))?;
        let operator = Operator {
            policy: &self.policy,
            env: &self.env,
            top: self.top.as_deref(),
        };
        let forge =
            Forge::open(Site { host, project }, &self.hosts, &operator).map_err(|e| reason(&e))?;
        forge.issue(wanted).map_err(|e| reason(&e))
    }
}

/// Returns the project for references to its issues.
fn home(site: &Site) -> Home {
    Home {
        forge: site.host.service.name,
        web: site.host.web.to_string(),
        project: site.project.to_string(),
        has_issues: site.host.forge.has_issues(),
    }
}

/// Formats an error on one line, with its hints.
fn reason(error: &Error) -> String {
    let hints: Vec<String> = error.hints.iter().map(|h| format!(" ({h})")).collect();
    format!("{}{}", error.on_one_line(), hints.concat())
}

impl Forge {
    /// Reads an issue. Returns `None` if the number is that of a pull request.
    ///
    /// # Errors
    ///
    /// As [`Forge::list`].
    fn issue(&self, wanted: &WantedIssue<'_>) -> crate::error::Result<Option<Ticket>> {
        let number = wanted.number;
        let what = format!("issue #{number} cannot be read");
        self.with_limits(
            Limits::new(wanted.deadline, wanted.stop),
            &what,
            |session| self.api().issue(session, number),
        )
    }
}
