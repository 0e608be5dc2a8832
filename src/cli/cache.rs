//! `cache`: the entries of the user's cache of answers, and of the one that machines share.

use super::Context;
use super::format::Format;
use super::policy::PolicyFiles;
use super::stdout::{eprint, print};
use crate::ai::cache::Cache;
use crate::ai::shared::upkeep::{self, CacheSurvey, SignerEntries, UpkeepAction};
use crate::error::{Error, ExitStatus, Result};
use crate::git::Repo;
use crate::policy::{CachePolicy, Loaded};
use crate::untrusted::Inert;
use crate::wire::cache::{CACHE_VERSION, CacheCounts, CacheStatus, SharedCounts, SignerCounts};
use jiff::Timestamp;

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
    /// Read every cached answer, and report damaged ones; of shared answers, forged and old ones too
    #[command(
        after_help = "Exit code 1: an answer is damaged, or a shared one does not count. No review uses \
        such an answer. The signature and the age of copies in this user's cache are checked whenever a \
        review reads them. Exit code 3: there are more answers than one run reads."
    )]
    Verify(CacheScope),
    /// Remove cached answers that no review uses, stale temporary files, and leases
    #[command(
        after_help = "Uses [cache] max_age and signers of the current policy, also for copies of shared \
        answers in this user's cache. Keeps answers of signers that the policy does not list."
    )]
    Prune {
        #[command(flatten)]
        scope: CacheScope,
        /// Remove all cached answers, temporary files and leases
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
    let (scope, action) = match &args.command {
        CacheCommand::Stats(scope) => (scope, UpkeepAction::Count),
        CacheCommand::Verify(scope) => (scope, UpkeepAction::Verify),
        CacheCommand::Prune { scope, all: false } => (scope, UpkeepAction::Prune),
        CacheCommand::Prune { scope, all: true } => (scope, UpkeepAction::Clear),
    };
    let Loaded { policy, notes } = PolicyFiles::find(context, None)?.load(context)?;
    if matches!(scope.format, Format::Human) && !context.global.quiet {
        for note in &notes {
            eprint(&format!("note: {}\n", Inert::new(&note.text)));
        }
    }
    let policy = policy.cache;
    let status = CacheStatus {
        schema_version: CACHE_VERSION,
        local: match scope.shared {
            true => None,
            false => local_counts(context, &policy, action),
        },
        shared: match scope.local {
            true => None,
            false => shared_counts(context, &policy, scope.shared, action)?,
        },
    };
    let text = match scope.format {
        Format::Human => human(&status, action),
        Format::Json => status.to_text(),
    };
    print(&text)?;
    Ok(match action {
        UpkeepAction::Verify => verified(&status),
        _ => ExitStatus::Pass,
    })
}

/// Surveys the user's cache; `None` if it does not exist.
fn local_counts(
    context: &Context,
    policy: &CachePolicy,
    action: UpkeepAction,
) -> Option<CacheCounts> {
    let repo = Repo::open(&context.dir, &context.env).ok();
    let top = repo.as_ref().and_then(Repo::worktree);
    let cache = Cache::open_existing(&context.env, top)?;
    let survey = upkeep::survey_local(&cache, policy, action);
    Some(counts_of(&survey, action))
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
        Some(Ok(survey)) => Ok(Some(SharedCounts {
            url,
            counts: counts_of(&survey, action),
            leases: survey.leases,
            signers: survey.signers.iter().map(signer_counts).collect(),
        })),
    }
}

/// Converts the survey of a cache.
fn counts_of(survey: &CacheSurvey, action: UpkeepAction) -> CacheCounts {
    let defects = survey.defects.iter();
    CacheCounts {
        entries: survey.entries,
        bytes: survey.bytes,
        valid: action.reads().then_some(survey.valid),
        defects: defects
            .map(|(defect, count)| (defect.name().to_owned(), *count))
            .collect(),
        temporary_files: survey.temporary,
        foreign_names: survey.foreign,
        is_truncated: survey.is_truncated,
        removed: survey.removed,
        not_removed: survey.unremoved,
    }
}

/// Converts the entries of a signer.
fn signer_counts((name, entries): (&String, &SignerEntries)) -> (String, SignerCounts) {
    let oldest = Timestamp::from_second(entries.oldest).unwrap_or_default();
    let counts = SignerCounts {
        valid: entries.count,
        oldest: oldest.to_string(),
    };
    (name.clone(), counts)
}

/// Returns the exit status of `verify`: an entry does not count, or not all were read.
fn verified(status: &CacheStatus) -> ExitStatus {
    let shared = status.shared.as_ref().map(|s| &s.counts);
    let all: Vec<&CacheCounts> = status.local.iter().chain(shared).collect();
    if all.iter().any(|counts| !counts.defects.is_empty()) {
        return ExitStatus::Block;
    }
    match all.iter().any(|counts| counts.is_truncated) {
        true => ExitStatus::Incomplete,
        false => ExitStatus::Pass,
    }
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
        for (signer, counts) in &shared.signers {
            let (signer, valid) = (Inert::new(signer), counts.valid);
            lines.push(format!(
                "  signed by {signer}: {valid}, the oldest on {}",
                counts.oldest
            ));
        }
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
    for (what, count) in [
        ("temporary files", counts.temporary_files),
        ("other files, not counted", counts.foreign_names),
    ] {
        if count > 0 {
            lines.push(format!("  {what}: {count}"));
        }
    }
    if action.removes() {
        lines.push(format!("  removed: {}", counts.removed));
    }
    if counts.not_removed > 0 {
        lines.push(format!("  could not be removed: {}", counts.not_removed));
    }
    if counts.is_truncated {
        let hint = match action.removes() {
            true => "; run the command again for the rest",
            false => "",
        };
        lines.push(format!("  incomplete: there are more answers{hint}"));
    }
}
