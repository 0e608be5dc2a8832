//! `cache`: the entries of the user's cache of answers, and of the one that machines share.

use super::Context;
use super::format::Format;
use super::policy::PolicyFiles;
use crate::ai::cache::{Cache, LocalSurvey, LocalUpkeep};
use crate::ai::shared::upkeep::{self, CacheSurvey, UpkeepAction};
use crate::error::{Error, ExitStatus, Result};
use crate::git::Repo;
use crate::policy::{CachePolicy, Loaded};
use crate::untrusted::Inert;
use crate::wire::cache::{CACHE_VERSION, CacheCounts, CacheStatus, SharedCounts};
use std::io::{ErrorKind, Write as _};

/// Arguments of `cache`.
#[derive(Debug, clap::Args)]
pub(super) struct CacheArgs {
    #[command(subcommand)]
    command: CacheCommand,
}

#[derive(Debug, clap::Subcommand)]
enum CacheCommand {
    /// Count the cached answers and their size
    Stats(CacheScope),
    /// Read every cached answer, and report damaged, forged and old ones
    #[command(
        after_help = "Exit code 1: a cached answer is damaged or does not count. No review uses such an answer."
    )]
    Verify(CacheScope),
    /// Remove cached answers that no review uses
    Prune {
        #[command(flatten)]
        scope: CacheScope,
        /// Remove all cached answers
        #[arg(long)]
        all: bool,
    },
}

/// Which caches, and the format of the answer.
#[derive(Debug, clap::Args)]
struct CacheScope {
    /// Only the cache of this user
    #[arg(long, conflicts_with = "shared")]
    local: bool,
    /// Only the cache that machines share ([cache] url)
    #[arg(long)]
    shared: bool,
    /// Output format
    #[arg(long, default_value = "human", value_parser = Format::parser("Text", "Versioned JSON"))]
    format: Format,
}

/// Runs a subcommand.
pub(super) fn run(context: &Context, args: &CacheArgs) -> Result<ExitStatus> {
    let (scope, local, shared) = match &args.command {
        CacheCommand::Stats(scope) => (scope, LocalUpkeep::Count, UpkeepAction::Count),
        CacheCommand::Verify(scope) => (scope, LocalUpkeep::Verify, UpkeepAction::Verify),
        CacheCommand::Prune { scope, all: false } => {
            (scope, LocalUpkeep::Prune, UpkeepAction::Prune)
        }
        CacheCommand::Prune { scope, all: true } => {
            (scope, LocalUpkeep::Clear, UpkeepAction::Clear)
        }
    };
    let Loaded { policy, notes } = PolicyFiles::find(context, None)?.load(context)?;
    if matches!(scope.format, Format::Human) && !context.global.quiet {
        for note in &notes {
            write_note(&note.text);
        }
    }
    let policy = policy.cache;
    let status = CacheStatus {
        schema_version: CACHE_VERSION,
        local: match scope.shared {
            true => None,
            false => local_counts(context, local),
        },
        shared: match scope.local {
            true => None,
            false => shared_counts(context, &policy, scope.shared, shared)?,
        },
    };
    let text = match scope.format {
        Format::Human => human(&status, shared),
        Format::Json => status.to_text(),
    };
    write(&text)?;
    let is_bad = shared == UpkeepAction::Verify && has_defects(&status);
    Ok(match is_bad {
        true => ExitStatus::Block,
        false => ExitStatus::Pass,
    })
}

/// Surveys the user's cache; `None` if it does not exist.
fn local_counts(context: &Context, action: LocalUpkeep) -> Option<CacheCounts> {
    let repo = Repo::open(&context.dir, &context.env).ok();
    let top = repo.as_ref().and_then(Repo::worktree);
    let LocalSurvey {
        entries,
        bytes,
        valid,
        damaged,
        removed,
    } = Cache::open(&context.env, top)?.survey(action);
    let is_read = matches!(action, LocalUpkeep::Verify | LocalUpkeep::Prune);
    Some(CacheCounts {
        entries,
        bytes,
        valid: is_read.then_some(valid),
        defects: (damaged > 0)
            .then(|| ("damaged".to_owned(), damaged))
            .into_iter()
            .collect(),
        removed,
    })
}

/// Surveys the shared cache. `is_required`: it is an error if the policy has none.
fn shared_counts(
    context: &Context,
    policy: &CachePolicy,
    is_required: bool,
    action: UpkeepAction,
) -> Result<Option<SharedCounts>> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|e| Error::incomplete("cannot start").caused_by(&e))?;
    let surveyed = runtime.block_on(upkeep::survey(policy, &context.env, action));
    // A name lookup cannot be cancelled. Dropping the runtime would wait for it.
    runtime.shutdown_background();
    let url = policy.url.clone().unwrap_or_default();
    match surveyed {
        None if is_required => Err(Error::usage("the policy has no shared cache")
            .hint("set its store in your own configuration: [cache] url = \"file:///FOLDER\"")),
        None => Ok(None),
        Some(Err(why)) => {
            let error = Error::incomplete(format!(
                "cannot use the shared cache {}: {}",
                Inert::new(&url),
                Inert::new(&why)
            ));
            Err(error.hint("check the URL and the credentials, or look at this user's cache only: claude-reviewer cache stats --local"))
        }
        Some(Ok(survey)) => Ok(Some(counts_of(url, &survey, action))),
    }
}

/// Converts the survey of the shared cache.
fn counts_of(url: String, survey: &CacheSurvey, action: UpkeepAction) -> SharedCounts {
    let defects = survey.defects.iter();
    let is_read = matches!(action, UpkeepAction::Verify | UpkeepAction::Prune);
    SharedCounts {
        url,
        counts: CacheCounts {
            entries: survey.entries,
            bytes: survey.bytes,
            valid: is_read.then_some(survey.valid),
            defects: defects
                .map(|(defect, count)| (defect.name().to_owned(), *count))
                .collect(),
            removed: survey.removed,
        },
        leases: survey.leases,
    }
}

/// Returns true if an entry does not count.
fn has_defects(status: &CacheStatus) -> bool {
    let shared = status.shared.as_ref().map(|s| &s.counts);
    status
        .local
        .iter()
        .chain(shared)
        .any(|counts| !counts.defects.is_empty())
}

/// Returns one line for each cache, and one for each kind of defect.
fn human(status: &CacheStatus, action: UpkeepAction) -> String {
    let mut lines = Vec::new();
    match &status.local {
        Some(counts) => add_lines("local", counts, action, &mut lines),
        None if status.shared.is_none() => lines.push("no cache".to_owned()),
        None => {}
    }
    if let Some(shared) = &status.shared {
        let name = format!("shared {}", Inert::new(&shared.url));
        add_lines(&name, &shared.counts, action, &mut lines);
        if shared.leases > 0 {
            lines.push(format!("  leases: {}", shared.leases));
        }
    }
    lines.join("\n") + "\n"
}

/// Adds the lines of one cache.
fn add_lines(name: &str, counts: &CacheCounts, action: UpkeepAction, lines: &mut Vec<String>) {
    let kib = counts.bytes.div_ceil(1024);
    lines.push(format!("{name}: {} answers, {kib} KiB", counts.entries));
    if let Some(valid) = counts.valid {
        lines.push(format!("  valid: {valid}"));
    }
    for (defect, count) in &counts.defects {
        lines.push(format!("  {}: {count}", defect.replace('_', " ")));
    }
    if matches!(action, UpkeepAction::Prune | UpkeepAction::Clear) {
        lines.push(format!("  removed: {}", counts.removed));
    }
}

/// Writes a note about the policy to standard error.
fn write_note(text: &str) {
    let line = format!("note: {}\n", Inert::new(text));
    // An error of stderr cannot be reported anywhere.
    let _ = std::io::stderr().write_all(line.as_bytes());
}

/// Writes the answer to standard output.
fn write(text: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(e) if e.kind() != ErrorKind::BrokenPipe => {
            Err(Error::incomplete("cannot write standard output").caused_by(&e))
        }
        _ => Ok(()),
    }
}
