//! `pr`, `review pr` and `--post`: pull requests of forges.

use super::Context;
use super::format::Format;
use super::policy::PolicyFiles;
use crate::ci::{self, Event, EventChange};
use crate::diff::ObjectId;
use crate::env::Env;
use crate::error::{Error, ExitStatus, Result};
use crate::forge::address::number_of;
use crate::forge::lines::ShownLines;
use crate::forge::publish::Parts;
use crate::forge::{Forge, Hosts, ListedPull, Operator, Posted, PublishRequest, PullRequest, Site};
use crate::git::Repo;
use crate::policy::{self, Policy, Sources};
use crate::request::{Checkout, End, Ends, Fetching, Naming, OnBlock, Overrides, Source};
use crate::review::Review;
use crate::rounds::selection::Selection;
use crate::rules::RuleSet;
use crate::stop::Stop;
use crate::untrusted::Inert;
use crate::wire::pulls::{PULLS_VERSION, Pull, Pulls};
use crate::wire::stored::PullName;
use std::io::Write as _;

/// Bytes of the author's description in a prompt, at most.
const MOST_OF_A_BRIEF: usize = 24 << 10;

/// Pull requests of the forge that a remote is from.
#[derive(Debug, clap::Args)]
pub(super) struct PrArgs {
    #[command(subcommand)]
    command: PrCommand,
}

#[derive(Debug, clap::Subcommand)]
enum PrCommand {
    /// List the open pull requests
    List {
        /// Remote of the forge [default: origin]
        #[arg(long, value_name = "NAME")]
        remote: Option<String>,
        /// Output format
        #[arg(
            long,
            default_value = "human",
            value_parser = Format::parser("One line for each pull request", "Versioned JSON")
        )]
        format: Format,
    },
}

/// A part of a review that can be published.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum PostPart {
    /// Comments on changed lines
    Comments,
    /// One summary comment, updated by each run
    Summary,
    /// Commit status of the head commit
    Status,
}

/// A pull request at a forge.
pub(super) struct FoundPull {
    forge: Forge,
    pull: PullRequest,
    /// Name of a remote, or an address.
    remote: String,
}

/// The forges that the command line can reach.
struct ForgeDesk<'a> {
    context: &'a Context,
    repo: Repo,
    policy: Policy,
}

pub(super) fn run(context: &Context, args: &PrArgs) -> Result<ExitStatus> {
    let PrCommand::List { remote, format } = &args.command;
    let (forge, pulls, more) = open_pulls(context, remote.as_deref(), &Stop::default())?;
    let mut text = String::new();
    match format {
        Format::Json => {
            let pulls = pulls.iter().map(|p| Pull {
                number: p.number,
                title: p.title.clone(),
                url: p.url.clone(),
                author: p.author.clone(),
                is_draft: p.is_draft,
                base: p.base.clone(),
                head: p.head.clone(),
                updated: p.updated.clone(),
            });
            let list = Pulls {
                schema_version: PULLS_VERSION,
                forge: forge.site().host.name(),
                project: forge.site().project.to_string(),
                pulls: pulls.collect(),
                more,
            };
            text = serde_json::to_string_pretty(&list)
                .map_err(|_| Error::incomplete("the list cannot be written"))?;
            text.push('\n');
        }
        Format::Human => {
            let stored = stored(context, forge.site());
            pulls
                .iter()
                .for_each(|p| text.push_str(&listed(p, &stored)));
            if pulls.is_empty() {
                text.push_str("no pull request is open\n");
            }
            if more {
                text.push_str(&format!("and more: the newest {} are shown\n", pulls.len()));
            }
            let new = pulls
                .iter()
                .find(|p| stored.iter().all(|(number, _)| *number != p.number));
            if let Some(p) = new.or(pulls.first()).filter(|_| !context.global.quiet) {
                let of = remote
                    .as_ref()
                    .map(|name| format!(" --remote {name}"))
                    .unwrap_or_default();
                text.push_str(
                    &Inert::new(format!("next: claude-reviewer review pr {}{of}", p.number))
                        .to_string(),
                );
                text.push('\n');
            }
        }
    }
    match std::io::stdout().lock().write_all(text.as_bytes()) {
        Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Error::incomplete("the list cannot be written to standard output").caused_by(&e))
        }
        _ => Ok(ExitStatus::Pass),
    }
}

/// Returns the numbers of the pull requests of a project whose reviews are stored here, with the
/// newest review of each.
fn stored(context: &Context, site: &Site) -> Vec<(u64, String)> {
    const MOST: usize = 300;
    // The list of pull requests works without a store.
    let Ok((_, Some(store))) = super::history::store(context) else {
        return Vec::new();
    };
    let sessions = store
        .list(MOST)
        .map(|list| list.sessions)
        .unwrap_or_default();
    let (forge, project) = (site.host.name(), site.project.to_string());
    let own = sessions
        .into_iter()
        .filter_map(|s| Some((s.pull?, s.review_id)));
    let mut out: Vec<(u64, String)> = Vec::new();
    for (pull, id) in own.filter(|(p, _)| p.forge == forge && p.project == project) {
        if out.iter().all(|(number, _)| *number != pull.number) {
            out.push((pull.number, id));
        }
    }
    out
}

/// Returns the lines about a pull request of a list.
fn listed(p: &ListedPull, stored: &[(u64, String)]) -> String {
    let draft = if p.is_draft { " (draft)" } else { "" };
    let (title, author) = (Inert::new(&p.title), Inert::new(&p.author));
    let (head, base) = (Inert::new(&p.head), Inert::new(&p.base));
    let mut text = format!(
        "#{} {title}{draft}\n    {head} into {base}, by {author}\n",
        p.number
    );
    if let Some((number, id)) = stored.iter().find(|(number, _)| *number == p.number) {
        text.push_str(&format!(
            "    reviewed as {id}; to post it: claude-reviewer post pr {number}\n"
        ));
    }
    text
}

/// Lists the newest open pull requests at the forge of a remote. The flag is true if there are
/// more.
///
/// # Errors
/// Errors of [`find`].
pub(super) fn open_pulls(
    context: &Context,
    remote: Option<&str>,
    stop: &Stop,
) -> Result<(Forge, Vec<ListedPull>, bool)> {
    let desk = ForgeDesk::open(context)?;
    let hosts = desk.hosts()?;
    let (_, site) = desk.site(&hosts, remote)?;
    let forge = Forge::open(site, &hosts, &desk.operator())?;
    let (pulls, more) = forge.list(stop)?;
    Ok((forge, pulls, more))
}

/// Finds the pull request to review.
///
/// # Errors
///
/// Usage: no known forge can have it. Errors of [`Forge::read`].
pub(super) fn find(
    context: &Context,
    pull: &str,
    remote: Option<&str>,
    stop: &Stop,
) -> Result<FoundPull> {
    let desk = ForgeDesk::open(context)?;
    let hosts = desk.hosts()?;
    let (site, number, remote) = match number_of(pull) {
        Some(number) => {
            let (remote, site) = desk.site(&hosts, remote)?;
            (site, number, remote)
        }
        None => {
            let (site, number) = hosts.pull_of_page(pull).ok_or_else(|| {
                let shown: String = pull.chars().take(200).collect();
                Error::usage(format!(
                    "{shown} is neither a number nor the page of a pull request of a known host"
                ))
                .hint(format!(
                    "known are {}; [forge] of your own policy names others",
                    hosts.names().join(", ")
                ))
            })?;
            let remote = match remote {
                Some(name) => name.to_owned(),
                None => desk.remote_of(&hosts, &site),
            };
            (site, number, remote)
        }
    };
    let forge = Forge::open(site, &hosts, &desk.operator())?;
    let pull = forge.read(number, stop)?;
    Ok(FoundPull {
        forge,
        pull,
        remote,
    })
}

/// Finds the pull request of a CI job, to publish to; `None` if the job has none.
///
/// # Errors
///
/// Errors of [`find`]. The event cannot be read. Usage: the target branch of the request has
/// changed, so the review does not apply to it.
pub(super) fn of_event(context: &Context, stop: &Stop) -> Result<Option<FoundPull>> {
    let Some(Event {
        number: Some(number),
        target,
        ..
    }) = ci::detect(&context.env)?
    else {
        return Ok(None);
    };
    let found = find(context, &number.to_string(), None, stop)?;
    match target {
        Some(target) if target == found.pull.base.name => Ok(Some(found)),
        Some(target) => Err(Error::usage(format!(
            "pull request #{number} now targets {}, but was reviewed against {target}",
            found.pull.base.name
        ))),
        None => Err(Error::usage(format!(
            "the event does not say which branch pull request #{number} went to"
        ))),
    }
}

/// Finds the pull request of a fork whose workflow triggered this one: GitHub's event does not name
/// it. `None` if the job has another trigger, or if the event has the number.
///
/// # Errors
///
/// Errors of [`find`]. Usage: no open request has the commit as its head.
pub(super) fn of_fork(context: &Context, stop: &Stop) -> Result<Option<FoundPull>> {
    if !context.env.is_ci() {
        return Ok(None);
    }
    let Some(Event {
        fork_head: Some(head),
        change:
            EventChange::Between {
                head: End::Id { id, .. },
                ..
            },
        ..
    }) = ci::detect(&context.env)?
    else {
        return Ok(None);
    };
    let Some(id) = ObjectId::from_hex(&id) else {
        return Ok(None);
    };
    let desk = ForgeDesk::open(context)?;
    let hosts = desk.hosts()?;
    let (remote, site) = desk.site(&hosts, None)?;
    let forge = Forge::open(site, &hosts, &desk.operator())?;
    let number = forge.number_of_head(&head, id, stop)?.ok_or_else(|| {
        Error::usage(format!(
            "no open pull request from {head} has {} for its head",
            id.short()
        ))
        .hint("it was updated or closed: its next run is reviewed separately")
    })?;
    let pull = forge.read(number, stop)?;
    if pull.head.id != id {
        return Err(Error::usage(format!(
            "pull request #{number} has moved on from {}",
            id.short()
        )));
    }
    Ok(Some(FoundPull {
        forge,
        pull,
        remote,
    }))
}

impl ForgeDesk<'_> {
    fn open(context: &Context) -> Result<ForgeDesk<'_>> {
        let repo = Repo::open(&context.dir, &context.env)?;
        let files = PolicyFiles::find(context, None)?;
        let overrides = Overrides::default();
        let sources = Sources {
            user: files.user.as_ref(),
            // In a pipeline, the file is part of the change, which must not decide where data is
            // sent.
            project: files
                .project
                .as_ref()
                .filter(|_| !context.env.is_ci() || context.global.config.is_some()),
            env: &context.env,
            overrides: &overrides,
        };
        let policy = policy::load(&sources)?.policy;
        Ok(ForgeDesk {
            context,
            repo,
            policy,
        })
    }

    fn operator(&self) -> Operator<'_> {
        Operator {
            policy: &self.policy.forge,
            env: &self.context.env,
            top: self.repo.worktree(),
        }
    }

    fn hosts(&self) -> Result<Hosts> {
        Hosts::of(&self.operator())
    }

    /// Finds the project of a remote.
    fn site_of(&self, hosts: &Hosts, remote: &str) -> Option<Site> {
        self.repo
            .remote_urls(remote)
            .iter()
            .find_map(|url| hosts.site_of_remote(url))
    }

    /// Selects the remote and its project: the named one, `origin`, or the only one.
    fn site(&self, hosts: &Hosts, named: Option<&str>) -> Result<(String, Site)> {
        let names = self.repo.remotes();
        let name = match (named, names.as_slice()) {
            (Some(name), _) => name.to_owned(),
            (None, all) if all.iter().any(|n| n == "origin") => "origin".to_owned(),
            (None, [one]) => one.clone(),
            (None, []) => {
                return Err(Error::usage("the repository has no remote")
                    .hint("git remote add origin ADDRESS"));
            }
            (None, all) => {
                let error = Error::usage(format!("there are several remotes: {}", all.join(", ")));
                return Err(error.hint("name one: --remote NAME"));
            }
        };
        if !names.contains(&name) {
            return Err(Error::usage(format!("remote {name} not found"))
                .hint(format!("there are {}", names.join(", "))));
        }
        let site = self.site_of(hosts, &name).ok_or_else(|| {
            Error::usage(format!("the remote {name} is of no forge that is known")).hint(format!(
                "known are {}; [forge] of your own policy names others",
                hosts.names().join(", ")
            ))
        })?;
        Ok((name, site))
    }

    /// Returns the remote of a project, or the project's address if no remote belongs to it.
    fn remote_of(&self, hosts: &Hosts, site: &Site) -> String {
        let names = self.repo.remotes();
        let remote = names
            .into_iter()
            .find(|name| self.site_of(hosts, name).is_some_and(|s| s == *site));
        remote.unwrap_or_else(|| site.clone_url())
    }
}

/// Returns the forge that has the pull request of a stored review.
///
/// # Errors
/// Usage: no remote belongs to its project. Errors of [`Forge::open`].
pub(super) fn forge_of(context: &Context, pull: &PullName) -> Result<Forge> {
    let desk = ForgeDesk::open(context)?;
    let hosts = desk.hosts()?;
    let remotes = desk.repo.remotes();
    let mut sites = remotes.iter().filter_map(|name| desk.site_of(&hosts, name));
    let site = sites
        .find(|site| site.host.name() == pull.forge && site.project.to_string() == pull.project);
    let site = site.ok_or_else(|| {
        Error::usage(format!(
            "no remote is of the project {} at {}",
            pull.project, pull.forge
        ))
        .hint("git remote add NAME ADDRESS")
    })?;
    Forge::open(site, &hosts, &desk.operator())
}

/// Returns the host and the path of the project that a remote belongs to.
///
/// # Errors
/// Same as [`find`].
pub(super) fn project_of(context: &Context, remote: Option<&str>) -> Result<(String, String)> {
    let desk = ForgeDesk::open(context)?;
    let (_, site) = desk.site(&desk.hosts()?, remote)?;
    Ok((site.host.name(), site.project.to_string()))
}

impl FoundPull {
    /// Returns the name by which reviews of the pull request are stored.
    pub(super) fn name(&self) -> PullName {
        let site = self.forge.site();
        let (forge, project) = (site.host.name(), site.project.to_string());
        PullName {
            forge,
            project,
            number: self.pull.number,
            base: self.pull.base.name.clone(),
        }
    }

    /// Returns the source of the review: the base and head that the forge names. The clone may lack
    /// both.
    pub(super) fn source(&self, env: &Env) -> Source {
        let pull = &self.pull;
        let own = self.forge.site();
        // If the forge has no reference for the head in the target project, the head is fetched
        // from its own project.
        let elsewhere = pull
            .head
            .project
            .as_ref()
            .filter(|p| pull.head_refs.is_empty() && **p != own.project);
        let remote = elsewhere.map_or_else(
            || self.remote.clone(),
            |project| {
                Site {
                    host: own.host.clone(),
                    project: project.clone(),
                }
                .clone_url()
            },
        );
        // A configured remote has its own credentials.
        let credential = if remote.contains("://") {
            self.forge.credential()
        } else {
            None
        };
        let under = pull
            .head_refs
            .first()
            .cloned()
            .unwrap_or_else(|| format!("refs/heads/{}", pull.head.name));
        Source::Ends(Box::new(Ends {
            label: format!("pull request #{}", pull.number),
            is_pull: true,
            head: End::Id {
                id: pull.head.id.to_string(),
                under: Some(under),
            },
            base: End::Id {
                id: pull.base.id.to_string(),
                under: Some(format!("refs/heads/{}", pull.base.name)),
            },
            instead: None,
            may_be_empty: Some("the base has all of the pull request".to_owned()),
            remote,
            fetching: Fetching::Missing,
            credential,
            checkout: if env.is_ci() {
                Checkout::Foreign
            } else {
                Checkout::Reviewer
            },
        }))
    }

    /// Waives the findings of a review that replies of maintainers waive.
    pub(super) fn heed(
        &self,
        review: &mut Review,
        on_block: OnBlock,
        rules: &RuleSet,
        stop: &Stop,
    ) {
        self.forge.heed(&self.pull, review, on_block, rules, stop);
    }

    /// Returns the names and texts that are searched for tickets.
    pub(super) fn naming(&self) -> Naming {
        let pull = &self.pull;
        Naming {
            number: pull.number,
            branch: pull.head.name.clone(),
            title: pull.title.clone(),
            description: pull.description.clone(),
            is_fork: pull.is_fork,
        }
    }

    /// Returns the author's description of the change, as data for a model. Commit messages are
    /// read from the repository. They are not part of the questions about code, because then each
    /// push would ask all questions again.
    pub(super) fn brief(&self) -> String {
        let pull = &self.pull;
        let mut text = format!("Pull request #{}: {}\n", pull.number, pull.title);
        if !pull.description.trim().is_empty() {
            text.push_str(&format!("\n{}\n", pull.description.trim()));
        }
        text.truncate(text.floor_char_boundary(MOST_OF_A_BRIEF));
        text
    }
}

/// A review to publish.
pub(super) struct Publication<'a> {
    /// The review, with the change as text.
    pub(super) review: &'a Review,
    pub(super) parts: &'a [PostPart],
    /// True if the whole change was reviewed, not a selection of files.
    pub(super) whole: bool,
    pub(super) selection: &'a Selection,
    /// As in [`PublishRequest`].
    pub(super) again: Option<&'a str>,
}

impl Publication<'_> {
    /// Publishes the review. Returns the messages about it, and the error if a part was not
    /// published.
    pub(super) fn on(&self, found: &FoundPull, stop: &Stop) -> (Vec<String>, Option<String>) {
        let done = self.order(&found.pull.base.name, |order| {
            found.forge.publish(found.pull.number, order, stop)
        });
        match done {
            Ok(posted) if posted.failed.is_empty() => (said(&posted), None),
            Ok(posted) if posted.is_nothing() => (Vec::new(), Some(posted.failed.join("; "))),
            Ok(posted) => (said(&posted), Some(posted.failed.join("; "))),
            Err(e) => {
                let hints: Vec<String> = e.hints.iter().map(|h| format!(" ({h})")).collect();
                (
                    Vec::new(),
                    Some(format!("{}{}", e.on_one_line(), hints.concat())),
                )
            }
        }
    }

    /// Returns a note about findings that are not published because they have no decision.
    pub(super) fn left_out(&self) -> Option<String> {
        let pending = self
            .review
            .findings
            .iter()
            .filter(|f| self.selection.is_pending(f))
            .count();
        let findings = if pending == 1 {
            "1 finding without a decision was"
        } else {
            "findings without a decision were"
        };
        let count = if pending == 1 {
            String::new()
        } else {
            format!("{pending} ")
        };
        (pending > 0).then(|| {
            format!("note: {count}{findings} not posted: accept what is right, or pass --all")
        })
    }

    /// Builds the order to publish to a pull request with this target branch, and passes it to
    /// `give`.
    ///
    /// # Errors
    /// Incomplete: the change was not recorded. Errors of `give`.
    pub(super) fn order<T>(
        &self,
        base: &str,
        give: impl FnOnce(&PublishRequest<'_>) -> Result<T>,
    ) -> Result<T> {
        let lines = self
            .review
            .record
            .as_ref()
            .map(|r| ShownLines::of(r).and(&self.review.unrecorded));
        let lines = lines.ok_or_else(|| Error::incomplete("the change was not recorded"))?;
        let parts = Parts {
            comments: self.parts.contains(&PostPart::Comments),
            summary: self.parts.contains(&PostPart::Summary),
            status: self.parts.contains(&PostPart::Status),
        };
        let Self {
            review,
            whole,
            selection,
            again,
            ..
        } = *self;
        give(&PublishRequest {
            review,
            base,
            lines: &lines,
            parts,
            whole,
            selection,
            again,
        })
    }
}

/// Reports what was published.
pub(super) fn said(posted: &Posted) -> Vec<String> {
    let counts = [
        (posted.new, "new"),
        (posted.changed, "changed"),
        (posted.ended, "resolved"),
    ];
    let mut did: Vec<String> = counts
        .iter()
        .filter(|(n, _)| *n > 0)
        .map(|(n, what)| format!("{n} {what}"))
        .collect();
    did.extend(posted.summary.then(|| "the summary".to_owned()));
    did.extend(posted.status.then(|| "the status".to_owned()));
    let what = if did.is_empty() {
        "nothing new".to_owned()
    } else {
        did.join(", ")
    };
    let mut lines = vec![format!("posted: {what}")];
    if posted.elsewhere > 0 {
        lines.push(format!(
            "note: {} of the findings got no comment on a line",
            posted.elsewhere
        ));
    }
    lines.extend(posted.notes.iter().map(|note| format!("note: {note}")));
    lines
}
