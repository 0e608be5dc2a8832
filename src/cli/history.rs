//! `history`: lists, shows, checks and removes stored reviews.

mod page;

use super::Context;
use super::format::{self, Format};
use super::stdout::{print, write};
use super::style::style;
use crate::error::{Error, ExitStatus, Result};
use crate::git::Repo;
use crate::history::{SessionId, Store};
use crate::report::{self, ReportFormat};
use crate::request::{ReviewRequest, Source};
use crate::review::{Record, StoreLocation};
use crate::rounds::{self, recall};
use crate::text::plural;
use crate::untrusted::Inert;
use crate::wire;
use crate::wire::stored::{History, STORED_VERSION, Session};
use std::io::Write as _;

/// Arguments of `history`.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(super) struct HistoryArgs {
    #[command(subcommand)]
    command: Option<HistoryCommand>,
    /// Review to show: an ID, or `latest`
    #[arg(value_name = "REVIEW_ID")]
    id: Option<String>,
    /// Number of reviews to list, newest first
    #[arg(long, value_name = "N", default_value_t = 5)]
    limit: usize,
    /// Output format
    #[arg(long, default_value = "human", value_parser = Format::parser("Text", "Versioned JSON"))]
    format: Format,
}

#[derive(Debug, clap::Subcommand)]
enum HistoryCommand {
    /// Show a round of a stored review in any report format
    Show {
        /// Review ID, or `latest`
        #[arg(value_name = "REVIEW_ID")]
        id: String,
        /// Round to show [default: the last]
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
        round: Option<u32>,
        /// Format of the report
        #[arg(long, value_name = "FORMAT", default_value = "human", value_parser = format::report())]
        format: ReportFormat,
    },
    /// Detect edits of stored reviews, and print the head of the hash chain
    #[command(
        after_help = "A head is a hash of the whole session. Each review records the heads of earlier reviews, so \
        the command detects a review that was removed from the middle and one that was cut short before the next \
        began. The oldest reviews may be missing, because pruning removes them. To detect a cut of the newest review \
        or a rewritten store, keep a head outside of the store, for example in a pull request.\n\n\
        Exit codes:\n  0  no modifications detected\n  1  edited, missing or damaged reviews, which the output \
        lists\n  2  review not found\n  3  a newer version wrote a review that this version cannot verify"
    )]
    Verify {
        /// Review ID, or `latest` [default: all reviews]
        #[arg(value_name = "REVIEW_ID")]
        id: Option<String>,
        /// Head that the review must contain
        #[arg(long, value_name = "HASH", requires = "id", value_parser = head)]
        head: Option<String>,
    },
    /// Remove old or damaged reviews
    #[command(
        after_help = "Unreadable reviews are moved to the folder .corrupt of the store. `history` lists them and \
        `history verify` fails until --damaged removes them; while the newest review is damaged, `latest` is an \
        error. The reason of the damage stays recorded."
    )]
    Prune {
        /// Number of newest reviews to keep; removes open reviews too
        #[arg(long, value_name = "N", required_unless_present = "damaged")]
        keep: Option<usize>,
        /// Remove damaged reviews
        #[arg(long)]
        damaged: bool,
    },
}

fn head(text: &str) -> std::result::Result<String, String> {
    if text.len() == 64 && text.bytes().all(|b| b.is_ascii_hexdigit()) {
        return Ok(text.to_owned());
    }
    Err("a head has 64 hexadecimal digits".to_owned())
}

pub(super) fn run(context: &Context, args: &HistoryArgs) -> Result<ExitStatus> {
    match &args.command {
        None => match &args.id {
            None => list(context, args.limit, args.format),
            Some(id) => session(context, id, args.format),
        },
        Some(HistoryCommand::Show { id, round, format }) => show(context, id, *round, *format),
        Some(HistoryCommand::Verify { id, head }) => {
            verify(context, id.as_deref(), head.as_deref())
        }
        Some(HistoryCommand::Prune { keep, damaged }) => prune(context, *keep, *damaged),
    }
}

/// Creates a request that only locates the store.
pub(super) fn request(context: &Context) -> ReviewRequest {
    ReviewRequest {
        config: context.global.config.clone(),
        ..ReviewRequest::new(Source::Auto, context.dir.clone())
    }
}

/// Opens the store, if it exists.
pub(super) fn store(context: &Context) -> Result<(StoreLocation, Option<Store>)> {
    rounds::open(&request(context), &context.env)
}

/// Finds a stored review by its id, or the newest by `latest`.
pub(super) fn find(context: &Context, name: &str) -> Result<(Store, SessionId, Session)> {
    let id = rounds::named(name, &request(context), &context.env)?;
    let (_, store) = store(context)?;
    let store = store.ok_or_else(|| unknown(id))?;
    let session = store.session(&id)?;
    Ok((store, id, session))
}

fn unknown(id: SessionId) -> Error {
    Error::usage(format!("review {id} not found"))
        .hint("list stored reviews: claude-reviewer history")
}

fn list(context: &Context, limit: usize, shape: Format) -> Result<ExitStatus> {
    let (place, store) = store(context)?;
    let history = match store {
        Some(store) => store.list(limit)?,
        None => History {
            schema_version: STORED_VERSION,
            sessions: Vec::new(),
            damaged: Vec::new(),
        },
    };
    match shape {
        Format::Json => write(|out| wire::write(&history, out)),
        Format::Human => {
            for damaged in &history.damaged {
                let mut line = format!(
                    "warning: review {} cannot be read: {}",
                    damaged.review_id, damaged.why
                );
                if let Some(aside) = &damaged.moved_to {
                    line.push_str(&format!(
                        "; its remains are in {}/{aside}",
                        place.history.path
                    ));
                }
                eprint(&line);
            }
            if history.damaged.iter().any(|d| d.moved_to.is_some()) {
                eprint(
                    "hint: `claude-reviewer history prune --damaged` removes damaged reviews and records their removal",
                );
            }
            // A limit of 0 lists nothing, so do not print that there are no reviews.
            if limit == 0 {
                return Ok(ExitStatus::Pass);
            }
            let style = style(context, &context.env);
            print(&page::list(&history, &style, jiff::Timestamp::now()))
        }
    }
}

fn session(context: &Context, name: &str, shape: Format) -> Result<ExitStatus> {
    let (_, _, session) = find(context, name)?;
    match shape {
        Format::Json => write(|out| wire::write(&session, out)),
        Format::Human => print(&page::session(
            &session,
            &style(context, &context.env),
            jiff::Timestamp::now(),
        )),
    }
}

fn show(
    context: &Context,
    name: &str,
    round: Option<u32>,
    format: ReportFormat,
) -> Result<ExitStatus> {
    let (store, id, session) = find(context, name)?;
    let number = round.unwrap_or(u32::try_from(session.rounds.len()).unwrap_or(u32::MAX));
    let at = usize::try_from(number)
        .unwrap_or(usize::MAX)
        .saturating_sub(1);
    // The error for an unknown round lists the existing ones.
    let change = store.change(&id, number)?;
    let Some(round) = session.rounds.get(at) else {
        return Err(unknown(id));
    };
    if format == ReportFormat::Json {
        // Print it as stored, without conversion.
        return write(|out| wire::write(&round.review.report, out));
    }
    let mut review = recall::review(&round.review.report, &change);
    review.source.label.clone_from(&session.request.label);
    review.record = Some(Record {
        text: change,
        left_out: round.review.change.left_out.clone(),
    });
    // Formats for forges remove words of tickets, so the tickets must be known.
    let repo = Repo::find(&context.dir, &context.env)?;
    crate::context::recall(
        &mut review.context,
        &context.env,
        repo.as_ref().and_then(Repo::worktree),
    );
    let style = style(context, &context.env);
    write(|out| report::render(&review, format, &style, out))
}

fn verify(context: &Context, name: Option<&str>, noted: Option<&str>) -> Result<ExitStatus> {
    let id = name
        .map(|n| rounds::named(n, &request(context), &context.env))
        .transpose()?;
    let (_, store) = store(context)?;
    let checked = match (&store, id) {
        (Some(store), id) => store.verify(id.as_ref(), noted)?,
        (None, Some(id)) => return Err(unknown(id)),
        (None, None) => Vec::new(),
    };
    print(&page::checked(&checked, &style(context, &context.env)))?;
    if checked.iter().any(|c| !c.edits.is_empty()) {
        return Ok(ExitStatus::Block);
    }
    Ok(if checked.iter().any(|c| c.newer.is_some()) {
        ExitStatus::Incomplete
    } else {
        ExitStatus::Pass
    })
}

fn prune(context: &Context, keep: Option<usize>, damaged: bool) -> Result<ExitStatus> {
    let (_, store) = store(context)?;
    let now = jiff::Timestamp::now();
    let discarded = match &store {
        Some(store) if damaged => store.discard(now)?,
        _ => Vec::new(),
    };
    let pruned = match (&store, keep) {
        (Some(store), Some(keep)) => store.prune(keep, now)?,
        _ => Default::default(),
    };
    if context.global.quiet {
        return Ok(ExitStatus::Pass);
    }
    let mut text = String::new();
    if damaged {
        discarded.iter().for_each(|name| {
            text.push_str(&format!(
                "removed {}, which was damaged\n",
                Inert::new(name)
            ));
        });
        text.push_str(&format!(
            "{} removed\n",
            plural(discarded.len(), "damaged review")
        ));
    }
    if keep.is_none() {
        return print(&text);
    }
    text.extend(pruned.removed.iter().map(|id| format!("removed {id}\n")));
    text.push_str(&format!(
        "{} removed, {} kept\n",
        page::reviews(pruned.removed.len()),
        pruned.kept
    ));
    if pruned.swept > 0 {
        text.push_str(&format!(
            "{} left by broken runs removed\n",
            plural(pruned.swept, "file")
        ));
    }
    print(&text)
}

fn eprint(line: &str) {
    // A failure to write to standard error cannot be reported.
    let _ = std::io::stderr().write_all(format!("{}\n", Inert::new(line).guarded()).as_bytes());
}
