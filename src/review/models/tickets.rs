//! Finds the tickets that a change refers to, and reads them if that is allowed.

use super::Asking;
use crate::ai::material::Document;
use crate::ci::{self, Event, EventKind, System};
use crate::context::{
    self, Allowed, ChangeTexts, GatherJob, Gathered, GatheredItem, Tracker, TrackerDesk,
    projects_of, reference,
};
use crate::diff::ObjectId;
use crate::git::Repo;
use crate::policy::ContextPolicy;
use crate::request::{Checkout, End, ReviewRequest, Source};
use crate::review::resolved::PartContent;
use regex::Regex;

/// Commits of the change whose messages are searched, and bytes of each message, at most.
const MAX_COMMITS: usize = 50;
const MAX_MESSAGE: usize = 4 << 10;
/// Commits of the base whose messages list the known projects, at most.
const MAX_BASE: usize = 300;

/// Reads the tickets that a change refers to.
pub(super) fn gather(asking: &Asking<'_>) -> Gathered {
    let policy = &asking.policy().context;
    let (world, repo) = (asking.prepared.world, asking.scan.repo);
    let mut out = Gathered::default();
    if policy.max_calls == 0 {
        return out;
    }
    let tracker = match tracker(asking) {
        Ok(tracker) => tracker,
        Err(why) => {
            out.notes.push(format!(
                "issues of the forge are not read: {}",
                crate::untrusted::Inert::new(why)
            ));
            None
        }
    };
    if policy.servers.is_empty() && tracker.is_none() && !policy.required {
        return out;
    }
    let event = if world.env.is_ci() {
        Some(ci::detect(world.env))
    } else {
        None
    };
    let texts = texts(
        asking,
        event.as_ref().and_then(|e| e.as_ref().ok()?.as_ref()),
    );
    let pattern = policy.pattern.as_deref().and_then(|p| Regex::new(p).ok());
    let allowed = allowed(policy, asking);
    let home = tracker.as_deref().map(Tracker::home);
    let references = reference::references(&texts, home, pattern.as_ref(), &allowed);
    if references.is_empty() {
        return out;
    }
    if let Some(why) = off(
        asking.prepared.request,
        event.as_ref().map(|e| e.as_ref().ok().map(Option::as_ref)),
    ) {
        out.notes.push(format!("tickets were not read: {why}"));
        return out;
    }
    let mut gathered = context::gather(&GatherJob {
        policy,
        rules: asking.scan.rules,
        env: world.env,
        top: repo.and_then(Repo::worktree),
        stop: world.stop,
        cache: asking.prepared.request.cache,
        now: world.now.as_second(),
        references: &references,
        allowed: &allowed,
        tracker: tracker.as_deref(),
    });
    gathered.notes.splice(0..0, out.notes);
    gathered
}

/// Returns a ticket as a document for models.
pub(super) fn document(item: &GatheredItem) -> Document {
    let GatheredItem {
        reference,
        title,
        source,
        text,
        ..
    } = item;
    Document {
        name: reference.clone(),
        text: format!("title: {title}\nsource: {source}\n\n{text}\n"),
        folder: Vec::new(),
    }
}

/// Opens the repository's issue tracker if its issues may be read: with a token, or for a pull
/// request, whose forge is contacted anyway.
fn tracker(asking: &Asking<'_>) -> Result<Option<Box<dyn Tracker>>, String> {
    let policy = asking.policy();
    let (Some(trackers), Some(repo), true) = (
        asking.prepared.world.trackers,
        asking.scan.repo,
        policy.context.issues,
    ) else {
        return Ok(None);
    };
    let remotes = remotes(repo, &asking.prepared.request.source);
    if remotes.is_empty() {
        return Ok(None);
    }
    let env = asking.prepared.world.env;
    let desk = TrackerDesk {
        policy: &policy.forge,
        env,
        top: repo.worktree(),
        remotes: &remotes,
    };
    let opened = trackers.open(&desk)?;
    let is_pull = asking.prepared.request.brief.naming.is_some();
    Ok(opened.filter(|t| t.home().has_issues && (is_pull || t.has_token())))
}

/// Returns the addresses of the remote that the change comes from.
fn remotes(repo: &Repo, source: &Source) -> Vec<String> {
    let names = repo.remotes();
    if let Source::Ends(ends) = source
        && !names.contains(&ends.remote)
    {
        return vec![ends.remote.clone()];
    }
    let name = match source {
        Source::Ends(ends) => ends.remote.clone(),
        _ if names.iter().any(|n| n == "origin") => "origin".to_owned(),
        _ if names.len() == 1 => names[0].clone(),
        _ => return Vec::new(),
    };
    repo.remote_urls(&name)
}

/// Returns why the tickets of a change are not read: its author may lack the access rights of this
/// run. `event`: `None` outside of CI; `Some(None)` if the event cannot be read; `Some(Some(None))`
/// if no known system runs the job.
fn off(request: &ReviewRequest, event: Option<Option<Option<&Event>>>) -> Option<&'static str> {
    if request.brief.naming.as_ref().is_some_and(|n| n.is_fork) {
        return Some("the pull request comes from a fork");
    }
    let event = match event {
        None => return None,
        Some(None) => return Some("the event of this job cannot be read"),
        Some(Some(None)) => {
            return Some("CI is set, and nothing says whether the change comes from a fork");
        }
        Some(Some(Some(event))) => event,
    };
    // Bitbucket does not run pipelines for pull requests of forks.
    let is_silent = event.is_fork.is_none()
        && event.kind == EventKind::Request
        && event.system != System::Bitbucket;
    match event.checkout {
        Checkout::Foreign => Some("this job has rights that the author of the change may lack"),
        Checkout::Own if event.is_fork == Some(true) => Some("the change comes from a fork"),
        Checkout::Own if is_silent => Some("nothing says whether the change comes from a fork"),
        Checkout::Own | Checkout::Reviewer => None,
    }
}

/// Returns the projects whose tickets may be read.
fn allowed(policy: &ContextPolicy, asking: &Asking<'_>) -> Allowed {
    let allowed = Allowed::listed(&policy.projects);
    let allowed = if policy.pattern.is_some() {
        allowed.with_pattern()
    } else {
        allowed
    };
    if allowed.is_listed() || policy.servers.is_empty() {
        return allowed;
    }
    let base = asking.prepared.resolved.base.commit();
    match (asking.scan.repo, base) {
        (Some(repo), Some(base)) => {
            let mut reader = repo.reader();
            let ids = reader.history(base, MAX_BASE);
            let messages = ids
                .iter()
                .filter_map(|id| reader.message(*id, MAX_MESSAGE).ok());
            let messages: Vec<String> = messages
                .map(|m| String::from_utf8_lossy(&m).into_owned())
                .collect();
            allowed.with_base(projects_of(&messages))
        }
        _ => allowed,
    }
}

/// Collects the names and texts of a change.
fn texts(asking: &Asking<'_>, event: Option<&Event>) -> ChangeTexts {
    let (request, repo) = (asking.prepared.request, asking.scan.repo);
    let mut texts = match (&request.brief.naming, event) {
        (Some(naming), _) => ChangeTexts {
            branch: naming.branch.clone(),
            title: naming.title.clone(),
            description: naming.description.clone(),
            own: Some(naming.number),
            ..ChangeTexts::default()
        },
        (None, Some(event)) => of_event(event),
        (None, None) => ChangeTexts {
            branch: branch(request, repo).unwrap_or_default(),
            ..ChangeTexts::default()
        },
    };
    // A summary on the command line is added to the description at the forge.
    if let (Some(summary), None) = (&request.brief.summary, &request.brief.naming) {
        texts.description = format!("{summary}\n{}", texts.description);
    }
    texts.messages = messages(asking);
    texts
}

fn of_event(event: &Event) -> ChangeTexts {
    let pushed = event
        .target
        .clone()
        .filter(|_| event.kind == EventKind::Push);
    ChangeTexts {
        branch: event.branch.clone().or(pushed).unwrap_or_default(),
        title: event.title.clone().unwrap_or_default(),
        description: event.description.clone().unwrap_or_default(),
        own: event.number,
        ..ChangeTexts::default()
    }
}

/// Returns the name of the reviewed branch, on a developer's machine.
fn branch(request: &ReviewRequest, repo: Option<&Repo>) -> Option<String> {
    match &request.source {
        Source::Branch {
            head: Some(head), ..
        } if head != "HEAD" => Some(short_name(head)),
        Source::Push(ranges) => ranges.first().map(|r| short_name(&r.name)),
        Source::Ends(ends) => match &ends.head {
            End::Branch(name) => Some(short_name(name)),
            End::Rev(rev) if rev != "HEAD" => Some(short_name(rev)),
            End::Rev(_) => checked_out(repo),
            End::Id { .. } | End::Short { .. } | End::Nothing => None,
        },
        Source::Commit { .. }
        | Source::Patch(_)
        | Source::Code(_)
        | Source::Tree(_)
        | Source::History { .. } => None,
        Source::Staged
        | Source::Unstaged { .. }
        | Source::Changes { .. }
        | Source::Branch { .. }
        | Source::Auto => checked_out(repo),
    }
}

/// Returns the name of a branch without the prefix of its reference.
fn short_name(branch: &str) -> String {
    branch
        .strip_prefix("refs/heads/")
        .unwrap_or(branch)
        .to_owned()
}

/// Returns the branch that is checked out.
fn checked_out(repo: Option<&Repo>) -> Option<String> {
    repo?.checked_out_branch().ok().flatten()
}

/// Returns the messages of the reviewed commits, newest first.
fn messages(asking: &Asking<'_>) -> Vec<String> {
    let Some(repo) = asking.scan.repo else {
        return Vec::new();
    };
    let mut reader = repo.reader();
    let mut ids: Vec<ObjectId> = Vec::new();
    for part in asking
        .prepared
        .resolved
        .parts
        .iter()
        .filter(|p| !p.is_repeat)
    {
        match &part.content {
            PartContent::Commit(id) => ids.push(*id),
            PartContent::Change(change) => match part.commit {
                Some(id) => ids.push(id),
                None => ids.extend(
                    reader
                        .between(&change.base, &change.head)
                        .unwrap_or_default(),
                ),
            },
            PartContent::Given(_) => {}
        }
    }
    // Parts are in the order of the history.
    ids.reverse();
    ids.dedup();
    let messages = ids
        .iter()
        .take(MAX_COMMITS)
        .filter_map(|id| reader.message(*id, MAX_MESSAGE).ok());
    messages
        .map(|m| String::from_utf8_lossy(&m).into_owned())
        .collect()
}
