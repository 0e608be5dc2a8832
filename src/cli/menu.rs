//! The menu that the program opens in a terminal when it gets no command.

use super::history::request;
use super::screen::{self, Event, Screen};
use super::triage::pull_of;
use super::{Context, pr, signals};
use crate::background::Station;
use crate::diff::ObjectId;
use crate::error::{ExitStatus, Result};
use crate::forge::ListedPull;
use crate::git::Repo;
use crate::history::{SessionId, Store};
use crate::hooks::shim;
use crate::policy::{FILE_NAME, RulesPolicy};
use crate::review::StoreLocation;
use crate::rounds;
use crate::rounds::decide::{Here, list};
use crate::rules::RuleSet;
use crate::stop::Stop;
use crate::triage::key::{KeyPress, Typed};
use crate::triage::menu::{
    Background, Latest, MenuEffect, MenuEvent, MenuSituation, MenuState, Outside, Pull, Repository,
    Stored, step, view,
};
use crate::wire::Disposition;
use crate::wire::background::{BackgroundEnd, Last, Queue};
use crate::wire::stored::{Overview, Status};
use crate::wire::{SourceKind, Verdict};
use std::path::Path;

/// Maximum number of older open reviews in the menu.
const MOST_OPEN: usize = 5;
/// Stored reviews that are searched for open ones, at most.
const MOST_SEARCHED: usize = 30;

/// Returns true if the menu can be shown.
pub(super) fn is_possible() -> bool {
    crate::env::Env::of_process().is_ok_and(|env| screen::is_possible(&env))
}

pub(super) fn run(context: &Context) -> Result<ExitStatus> {
    let found = look(context);
    screen::with(context, |screen| work(context, screen, found))
}

fn work(context: &Context, screen: &mut Screen, found: MenuSituation) -> Result<ExitStatus> {
    let mut state = MenuState::new(found, screen.size());
    loop {
        screen.show(view::draw(&state, screen.theme));
        let mut inputs = match screen.next() {
            Event::Typed(Typed::Key(key)) => vec![MenuEvent::Key(key)],
            Event::Typed(Typed::Paste(_)) => Vec::new(),
            Event::Resized => vec![MenuEvent::Resize(screen.size())],
            Event::Suspend => vec![MenuEvent::Key(KeyPress::Ctrl('z'))],
            Event::Continued => vec![MenuEvent::Key(KeyPress::Ctrl('l'))],
            Event::Ended(ended) => return Ok(ended.exit()),
        };
        while let Some(input) = inputs.pop() {
            let (next, effects) = step(state, input);
            state = next;
            for effect in effects {
                match effect {
                    MenuEffect::Quit(leave) => return Ok(screen::exit(leave)),
                    MenuEffect::Suspend => screen.suspend()?,
                    MenuEffect::Redraw => screen.forget(),
                    MenuEffect::Look => {
                        inputs.push(MenuEvent::Found(Box::new(look(context)), None));
                    }
                    MenuEffect::Pulls(remote) => inputs.push(pulls(context, screen, remote)?),
                    MenuEffect::Run(words, topic) => {
                        if let Err(ended) = screen.command(&words)? {
                            return Ok(ended.exit());
                        }
                        inputs.push(MenuEvent::Found(Box::new(look(context)), Some(topic)));
                    }
                }
                inputs.push(MenuEvent::Resize(screen.size()));
            }
        }
    }
}

/// Asks the forge of a remote for its open pull requests. Ctrl-C ends the request.
fn pulls(context: &Context, screen: &mut Screen, remote: String) -> Result<MenuEvent> {
    let stop = Stop::default();
    let title = format!(
        "{} pr list --remote {}",
        crate::NAME,
        crate::shell::quoted(&remote)
    );
    let listed = screen.aside(&title, || {
        signals::heard(&stop, || pr::open_pulls(context, Some(&remote), &stop))
    })?;
    Ok(match listed {
        Err(e) => {
            let hints: Vec<String> = e.hints.iter().map(|h| format!(" ({h})")).collect();
            MenuEvent::Problem(format!("{}{}", e.on_one_line(), hints.concat()))
        }
        Ok((_, listed, _)) => MenuEvent::Pulls {
            remote,
            all: listed.into_iter().map(pull).collect(),
        },
    })
}

fn pull(listed: ListedPull) -> Pull {
    let ListedPull {
        number,
        title,
        author,
        is_draft,
        head,
        base,
        ..
    } = listed;
    Pull {
        number,
        title,
        author,
        is_draft,
        head,
        base,
    }
}

/// Reads the state of the repository without network access. Unreadable parts are omitted, with the
/// reason.
fn look(context: &Context) -> MenuSituation {
    let folder = context
        .dir
        .file_name()
        .map(|n| n.to_string_lossy().into_owned())
        .unwrap_or_default();
    let mut out = MenuSituation {
        folder,
        ..MenuSituation::default()
    };
    let repo = match Repo::find(&context.dir, &context.env) {
        Ok(Some(repo)) if repo.worktree().is_some() => repo,
        Ok(Some(_)) => {
            out.outside = Outside::Bare;
            return out;
        }
        Ok(None) => return out,
        Err(e) => {
            out.outside = Outside::Unreadable(e.on_one_line(), e.hints);
            return out;
        }
    };
    let mut found = changes(&repo).unwrap_or_else(|e| {
        out.problem = Some(e.on_one_line());
        Repository::default()
    });
    if let Err(e) = stored(context, &repo, &mut found) {
        out.problem = Some(e.on_one_line());
    }
    match Station::find(&repo, &context.env)
        .and_then(|station| station.map(|s| s.view()).transpose())
    {
        Ok(view) => found.background = view.map(|v| background(v.queue)).unwrap_or_default(),
        Err(e) => out.problem = Some(e.on_one_line()),
    }
    out.repo = Some(found);
    out
}

/// Returns the state of the unfinished reviews after commits.
fn background(queue: Queue) -> Background {
    let failed = queue.last.filter(has_failed).map(|l| {
        let why = l.note.unwrap_or_else(|| l.ending.name().to_owned());
        (l.commit, why)
    });
    Background {
        running: queue.running.map(|r| r.order.commit),
        waiting: queue.waiting.map(|w| (w.order.commit, w.held)),
        failed,
    }
}

/// Returns true if a review ended without a result, and no person stopped it.
fn has_failed(last: &Last) -> bool {
    matches!(
        last.ending,
        BackgroundEnd::Failed | BackgroundEnd::TimedOut | BackgroundEnd::Abandoned
    )
}

/// Returns the changes in the repository, and its setup.
fn changes(repo: &Repo) -> Result<Repository> {
    let branch = repo.checked_out_branch()?;
    // Without a default base, a branch cannot be compared.
    let head = repo.head()?;
    let ahead = head
        .and_then(|_| repo.branch(None, None).ok())
        .filter(|b| !b.commits.is_empty());
    let top = repo.worktree();
    Ok(Repository {
        branch,
        is_unborn: head.is_none(),
        staged: repo.staged()?.entries.len(),
        unstaged: repo.unstaged(true)?.entries.len(),
        base: ahead.map(|b| b.base_name),
        remotes: repo.remotes(),
        latest: None,
        open: Vec::new(),
        is_configured: top.is_some_and(|top| top.join(FILE_NAME).exists()),
        has_hooks: repo.hooks().is_ok_and(|hooks| has_hook(&hooks.path)),
        background: Background::default(),
    })
}

fn has_hook(folder: &Path) -> bool {
    ["pre-commit", "pre-push"].iter().any(|name| {
        let hook = std::fs::read(folder.join(name));
        hook.is_ok_and(|hook| shim::version(&hook).is_some())
    })
}

/// Adds the stored reviews.
fn stored(context: &Context, repo: &Repo, found: &mut Repository) -> Result<()> {
    let (place, store) = rounds::open(&request(context), &context.env)?;
    let Some(store) = store else { return Ok(()) };
    let mut sessions = store.list(MOST_SEARCHED)?.sessions.into_iter();
    let Some(newest) = sessions.next() else {
        return Ok(());
    };
    found.latest = latest(context, repo, &place, &store, &newest)?;
    let open = sessions.filter(is_open).map(|s| Stored {
        id: s.review_id,
        label: s.label,
    });
    found.open = open.take(MOST_OPEN).collect();
    Ok(())
}

/// Returns true if a session is not completed, and its last round was not cancelled.
fn is_open(session: &Overview) -> bool {
    matches!(
        session.status,
        Status::InProgress | Status::NeedsChanges | Status::Incomplete
    )
}

/// Returns the newest review with the decisions that apply to it.
fn latest(
    context: &Context,
    repo: &Repo,
    place: &StoreLocation,
    store: &Store,
    newest: &Overview,
) -> Result<Option<Latest>> {
    let Some(id) = SessionId::parse(&newest.review_id) else {
        return Ok(None);
    };
    let session = store.session(&id)?;
    let rules = RuleSet::new(&RulesPolicy::default(), &[])?;
    let here = Here {
        repo,
        place,
        store,
        rules: &rules,
        env: &context.env,
        now: jiff::Timestamp::now(),
    };
    let listed = list(&here, &session)?;
    let accepted = listed
        .iter()
        .filter(|l| l.finding.disposition == Disposition::Accepted);
    let last = session.rounds.last().map(|r| &r.review);
    let reviewed = last
        .and_then(|r| r.report.source.head.as_deref())
        .and_then(ObjectId::from_hex);
    Ok(Some(Latest {
        stored: Stored {
            id: newest.review_id.clone(),
            label: newest.label.clone(),
        },
        status: newest.status,
        pull: pull_of(newest.source.kind, &newest.label),
        blocks: last.is_some_and(|r| r.verdict == Verdict::Block),
        is_checked_out: reviewed.is_some() && repo.head()? == reviewed,
        is_without_worktree: matches!(
            newest.source.kind,
            SourceKind::Staged | SourceKind::Branch | SourceKind::Commit
        ),
        pending: listed.iter().filter(|l| l.finding.is_pending()).count(),
        accepted: accepted.map(|l| l.finding.id.clone()).collect(),
        proposals: listed.iter().filter(|l| l.proposal.is_some()).count(),
    }))
}
