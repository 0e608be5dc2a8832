//! `review pr` and `--post`: continues the stored review of a pull request, publishes, and suggests
//! the next commands.

use super::Options;
use super::request::on_block;
use crate::cli::{Context, pr};
use crate::error::{ExitStatus, Result};
use crate::git::Repo;
use crate::history::{SessionId, Store};
use crate::policy::RulesPolicy;
use crate::request::{OnIncomplete, ReviewRequest};
use crate::review::{Note, Review, SourceKind};
use crate::rounds::selection::{Person, Selection};
use crate::rounds::{self, Done, Predecessor};
use crate::rules::RuleSet;
use crate::stop::Stop;
use crate::untrusted::Inert;
use crate::wire::Report;
use crate::wire::stored::Session;
use std::collections::BTreeSet;
use std::io::IsTerminal as _;

/// Returns the session that the review of a pull request continues. A CI job, a receipt and a
/// review that is not stored never continue one.
pub(super) fn earlier(
    context: &Context,
    o: &Options,
    found: &pr::FoundPull,
    request: &ReviewRequest,
) -> Option<SessionId> {
    if o.no_save || o.receipt || context.env.is_ci() {
        return None;
    }
    // A store that cannot be read is reported when the review is stored.
    match rounds::earlier(&found.name(), request, &context.env).ok()? {
        Predecessor::None => None,
        Predecessor::Continued(id) => Some(id),
        Predecessor::Ended(why) => {
            super::eprint_line(&format!("note: a new review begins: {}", Inert::new(why)));
            None
        }
    }
}

/// Returns the command that reviews a pull request again.
fn again(context: &Context, found: &pr::FoundPull) -> String {
    let pull = found.name();
    match Repo::open(&context.dir, &context.env) {
        Ok(repo) => rounds::pull_command(&repo, &pull),
        Err(_) => format!("{} review pr {}", crate::NAME, pull.number),
    }
}

/// Publishes a review, and returns messages about it. A failure does not change the verdict, unless
/// `--require-post` is given.
pub(super) fn publish(
    context: &Context,
    o: &Options,
    pull: Option<&pr::FoundPull>,
    done: &mut Done,
    stop: &Stop,
) -> Vec<String> {
    let whole = o.files.is_empty() && o.follow_up.is_none();
    let selected = selection(context, o, done);
    let selection = selected.as_ref().cloned().unwrap_or_default();
    let again = pull.map(|found| again(context, found));
    let publication = pr::Publication {
        review: &done.review,
        parts: &o.post,
        whole,
        selection: &selection,
        again: again.as_deref(),
    };
    let (mut said, failed) = match pull {
        _ if stop.signal().is_some() => (Vec::new(), Some("the review was stopped".to_owned())),
        _ if let Err(e) = &selected => (Vec::new(), Some(e.on_one_line())),
        Some(pull) => publication.on(pull, stop),
        None => match pr::of_event(context, stop) {
            Ok(Some(pull)) => publication.on(&pull, stop),
            Ok(None) => {
                return vec!["note: not posted: this job is not about a pull request".to_owned()];
            }
            Err(e) => (Vec::new(), Some(e.on_one_line())),
        },
    };
    said.extend(publication.left_out());
    if let Some(why) = failed {
        if o.require_post {
            done.review.mark_incomplete(
                format!("the review could not be posted: {why}"),
                on_block(o),
            );
            // `--exit-zero` concerns findings, which precede this in the verdict.
            let review = &mut done.review;
            if review.exit == ExitStatus::Pass
                && review.judged_by.on_incomplete == OnIncomplete::Fail
            {
                review.exit = ExitStatus::Incomplete;
            }
        }
        said.push(format!("note: not posted: {why}"));
    }
    said
}

/// Waives the findings that replies of maintainers waive, if the policy of the review allows it.
///
/// # Errors
/// None: a reply that cannot be read waives nothing, and becomes a note of the review.
pub(super) fn heed(
    context: &Context,
    o: &Options,
    pull: Option<&pr::FoundPull>,
    review: &mut Review,
    stop: &Stop,
) -> Result<()> {
    if !review.judged_by.forge.comment_commands || review.source.kind != SourceKind::Pr {
        return Ok(());
    }
    if o.offline {
        review
            .notes
            .push(Note::general("forge", "replies were not read: --offline"));
        return Ok(());
    }
    let rules = RuleSet::new(&RulesPolicy::default(), &[])?;
    let on_block = on_block(o);
    match pull {
        Some(found) => found.heed(review, on_block, &rules, stop),
        None => match pr::of_event(context, stop) {
            Ok(Some(found)) => found.heed(review, on_block, &rules, stop),
            Ok(None) => {}
            Err(e) => review.notes.push(Note::general(
                "forge",
                format!("replies were not read: {}", e.on_one_line()),
            )),
        },
    }
    Ok(())
}

/// Selects the findings to publish: in CI and with `--gate` all that count, elsewhere those that
/// the user's decisions select.
fn selection(context: &Context, o: &Options, done: &Done) -> Result<Selection> {
    let rules = RuleSet::new(&RulesPolicy::default(), &[])?;
    let selection = Selection::of_review(&done.review, done.stored.since.as_ref(), &rules);
    let Some(place) = done
        .review
        .place
        .as_ref()
        .filter(|_| !context.env.is_ci() && !o.gate)
    else {
        return Ok(selection);
    };
    let session = session(done)?;
    let rounds = session
        .iter()
        .flat_map(|s| &s.rounds)
        .map(|r| &r.review.report);
    let mut reports: Vec<&Report> = rounds.collect();
    if reports.is_empty() {
        reports.push(&done.stored.report);
    }
    let repo = Repo::open(&context.dir, &context.env)?;
    let person = Person {
        repo: &repo,
        place,
        rules: &rules,
        now: jiff::Timestamp::now(),
    };
    selection.decided_by(&person, &reports, o.all)
}

/// Returns lines about findings that block although the person rejected or deferred them, because
/// gate mode does not use the decisions of this machine.
pub(super) fn overruled(
    context: &Context,
    o: &Options,
    found: &pr::FoundPull,
    done: &Done,
) -> Vec<String> {
    let Ok(selection) = selection(context, o, done) else {
        return Vec::new();
    };
    let overruled = done
        .review
        .findings
        .iter()
        .filter(|f| f.blocking && selection.sets_aside(f).is_some());
    let overruled: BTreeSet<&str> = overruled.map(|f| f.fingerprint().as_str()).collect();
    if overruled.is_empty() || context.global.quiet {
        return Vec::new();
    }
    let listed = done
        .stored
        .report
        .findings
        .iter()
        .filter(|f| overruled.contains(f.fingerprint.as_str()));
    let ids: Vec<&str> = listed.map(|f| f.id.as_str()).collect();
    let (is, verb) = if ids.len() == 1 {
        ("is", "blocks")
    } else {
        ("are", "block")
    };
    vec![
        format!(
            "note: {} {is} rejected or deferred on this machine and {verb}: gate mode uses decisions of the base only",
            ids.join(", ")
        ),
        format!(
            "hint: to use the decisions of this machine: {} --no-gate",
            again(context, found)
        ),
    ]
}

/// Reads the session that the review is stored in; `None`: it is not stored.
fn session(done: &Done) -> Result<Option<Session>> {
    let (Some(place), Some(session)) = (&done.review.place, &done.review.session) else {
        return Ok(None);
    };
    let Some(id) = SessionId::parse(&session.id) else {
        return Ok(None);
    };
    Store::find(place)?
        .map(|store| store.session(&id))
        .transpose()
}

/// Returns the next commands after the review of a pull request, for a person at a terminal.
pub(super) fn next(
    context: &Context,
    o: &Options,
    found: &pr::FoundPull,
    done: &Done,
) -> Vec<String> {
    let is_asked =
        std::io::stderr().is_terminal() && !context.global.quiet && done.review.session.is_some();
    if !is_asked || done.review.findings.is_empty() || o.hook.is_some() {
        return Vec::new();
    }
    let number = found.name().number;
    vec![
        format!("hint: decide on the findings: claude-reviewer triage pr {number}"),
        format!("hint: post them: claude-reviewer post pr {number}"),
    ]
}
