//! `baseline`: adopts the gate on code that has findings.

use super::Context;
use super::decide::date;
use super::review::in_world;
use super::stdout::print;
use crate::disposition::{DecisionEntry, SHARED};
use crate::error::{ExitStatus, Result};
use crate::git::Repo;
use crate::review::{World, today};
use crate::rounds::baseline::{BaselineScope, check, create, prune};
use crate::stop::Stop;
use crate::untrusted::Inert;
use jiff::civil::Date;

/// Names in a list, at most.
const NAMES: usize = 50;

/// Arguments of `baseline`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "A baseline is a set of deferred entries in .claude-reviewer/dispositions.toml. Commit the file \
    together with the policy: in gate mode it counts once it is at the merge base."
)]
pub(super) struct BaselineArgs {
    #[command(subcommand)]
    command: BaselineCommand,
}

#[derive(Debug, clap::Subcommand)]
enum BaselineCommand {
    /// Defer the findings that the rules have in the files of the worktree
    Create {
        /// Patterns of files [default: all]
        #[arg(value_name = "GLOB")]
        files: Vec<String>,
        /// First day on which the findings are pending again [default: in 90 days]
        #[arg(long, value_name = "YYYY-MM-DD", value_parser = date)]
        until: Option<Date>,
    },
    /// List entries that no longer hold, and findings without an entry
    #[command(
        after_help = "Exit codes:\n  0  every entry holds, and every finding has one\n  1  otherwise"
    )]
    Check {
        /// Patterns of files [default: all]
        #[arg(value_name = "GLOB")]
        files: Vec<String>,
    },
    /// Remove entries that no longer hold
    Prune,
}

pub(super) fn run(context: &Context, args: &BaselineArgs) -> Result<ExitStatus> {
    let repo = Repo::open(&context.dir, &context.env)?;
    let stop = Stop::default();
    in_world(context, &stop, |world| act(context, args, &repo, world))
}

fn act(
    context: &Context,
    args: &BaselineArgs,
    repo: &Repo,
    world: &World<'_>,
) -> Result<ExitStatus> {
    match &args.command {
        BaselineCommand::Create { files, until } => {
            let added = create(&scope(context, files), repo, *until, world)?;
            let text = match added {
                0 => "no findings without an entry\n".to_owned(),
                n => format!(
                    "{n} {} deferred in {SHARED}; commit the file\n",
                    findings(n)
                ),
            };
            print(&text)
        }
        BaselineCommand::Check { files } => {
            let compared = check(&scope(context, files), repo, world)?;
            let mut text = format!(
                "{} {}\n",
                compared.holding,
                if compared.holding == 1 {
                    "entry holds"
                } else {
                    "entries hold"
                }
            );
            let day = today(world.now);
            let stale: Vec<String> = compared.stale.iter().map(|e| named(e, day)).collect();
            list("does not hold", stale.iter(), &mut text);
            list("has no entry", compared.uncovered.iter(), &mut text);
            print(&text)?;
            let is_good = compared.stale.is_empty() && compared.uncovered.is_empty();
            Ok(if is_good {
                ExitStatus::Pass
            } else {
                ExitStatus::Block
            })
        }
        BaselineCommand::Prune => {
            let removed = prune(&scope(context, &[]), repo, world)?;
            print(&format!("{removed} {} removed\n", entries(removed)))
        }
    }
}

/// Returns the files of the worktree that the command compares with the baseline.
fn scope(context: &Context, files: &[String]) -> BaselineScope {
    BaselineScope {
        dir: context.dir.clone(),
        config: context.global.config.clone(),
        files: files.to_vec(),
    }
}

fn findings(n: usize) -> &'static str {
    if n == 1 { "finding" } else { "findings" }
}

fn entries(n: usize) -> &'static str {
    if n == 1 { "entry" } else { "entries" }
}

/// Describes an entry that does not apply: its path, rule and line, and the reason.
fn named(entry: &DecisionEntry, day: Date) -> String {
    let path = entry.path.as_deref().unwrap_or("the whole change");
    let why = match entry.expires.filter(|_| entry.is_expired(day)) {
        Some(date) => format!("expired on {date}"),
        None => "not found any more, or in other lines".to_owned(),
    };
    format!(
        "{path} {}: {} ({why}; fingerprint {})",
        entry.rule, entry.line, entry.fingerprint
    )
}

fn list<'n>(what: &str, names: impl ExactSizeIterator<Item = &'n String>, text: &mut String) {
    let rest = names.len().saturating_sub(NAMES);
    for name in names.take(NAMES) {
        text.push_str(&format!("{what}: {}\n", Inert::new(name)));
    }
    if rest > 0 {
        text.push_str(&format!("{what}: {rest} more\n"));
    }
}
