//! Arguments of `review` and `verify-receipt`.

use crate::cli::{format, pr};
use crate::error::ExitStatus;
use crate::finding::{Category, Severity};
use crate::hooks;
use crate::policy;
use crate::report::ReportFormat;
use crate::request::Shard;
use clap::{Args as _, Command as CommandParser, Subcommand as _, ValueEnum};
use std::path::PathBuf;
use std::time::Duration;

/// Headings of the help.
const SOURCE: &str = "Source";
const AI: &str = "AI";
const POLICY: &str = "Policy";
const OUTPUT: &str = "Output";
const PULLS: &str = "Pull requests";
const HISTORY: &str = "History";

/// Arguments of `review`.
#[derive(Debug, clap::Args)]
#[command(after_help = short_end(), after_long_help = exit_codes())]
pub(in crate::cli) struct ReviewArgs {
    #[command(subcommand)]
    pub(super) source: Option<SourceArg>,
    #[command(flatten)]
    pub(super) options: Options,
}

/// Returns the command `review` with only the named source, or without sources if none has the name.
///
/// The command is [`ReviewArgs`] without its help: an argument or a setting of the parser that is
/// added there must be added here too.
pub(in crate::cli) fn command_with(source: Option<&str>) -> CommandParser {
    let command = Options::augment_args(CommandParser::new("review"));
    let Some(name) = source.filter(|name| !name.starts_with('-')) else {
        return command;
    };
    let sources = SourceArg::augment_subcommands(CommandParser::new("sources"));
    match sources.find_subcommand(name) {
        Some(source) => command.subcommand(source.clone()),
        None => command,
    }
}

/// Returns the table of exit codes for the help.
fn exit_codes() -> String {
    let rows = ExitStatus::ALL.map(|s| format!("\n  {}  {}", s.code(), s.meaning()));
    format!("Exit codes:{}", rows.concat())
}

/// Returns the end of the short help.
fn short_end() -> String {
    format!("{}\n\n`--help` lists all options.", exit_codes())
}

#[derive(Debug, clap::Subcommand)]
pub(super) enum SourceArg {
    /// Review staged changes: HEAD against the index
    Staged,
    /// Review unstaged changes: the index against the worktree
    Unstaged {
        /// Include untracked files
        #[arg(long, help_heading = SOURCE)]
        untracked: bool,
    },
    /// Review a commit against its first parent, or each commit of A..B
    Commit {
        /// Commit, or range A..B
        #[arg(value_name = "REV|A..B")]
        rev: String,
        /// Compare with this parent of a merge, counted from 1
        #[arg(long, value_name = "N", help_heading = SOURCE, value_parser = clap::value_parser!(u32).range(1..))]
        parent: Option<u32>,
    },
    /// Review a branch against its merge base, and check each of its commits for secrets
    Branch {
        /// Branch or commit to review [default: HEAD]
        head: Option<String>,
        /// Branch or commit to compare with [default: the upstream, or origin/HEAD]
        #[arg(long, value_name = "REV", help_heading = SOURCE)]
        base: Option<String>,
    },
    /// Review a pull request without a checkout, with the policy of its base
    Pr {
        /// URL of its page, or its number
        #[arg(value_name = "URL|NUMBER")]
        pull: String,
        /// Remote of the forge to fetch from [default: origin, or the remote that matches the URL]
        #[arg(long, value_name = "NAME", help_heading = SOURCE)]
        remote: Option<String>,
    },
    /// Review all changes of the worktree since a base, including untracked files
    Changes {
        /// Commit to compare with [default: the merge base with the upstream or default branch]
        #[arg(long, value_name = "REV", help_heading = SOURCE)]
        base: Option<String>,
    },
    /// Review every tracked file of the worktree as if it were new: an audit, not a gate
    Tree {
        /// Files, folders or globs, relative to the current folder [default: all files]
        #[arg(value_name = "PATH")]
        paths: Vec<String>,
        /// Review the files of this revision
        #[arg(long, value_name = "REV", conflicts_with_all = ["index", "untracked"], help_heading = SOURCE)]
        rev: Option<String>,
        /// Review the files of the index
        #[arg(long, conflicts_with = "untracked", help_heading = SOURCE)]
        index: bool,
        /// Include untracked files
        #[arg(long, help_heading = SOURCE)]
        untracked: bool,
        /// Search every version of every file for secrets: each blob that a reference reaches, or
        /// that a commit of A..B introduced
        #[arg(
            long,
            value_name = "A..B",
            num_args = 0..=1,
            require_equals = true,
            conflicts_with_all = ["rev", "index", "untracked"],
            help_heading = SOURCE
        )]
        history: Option<Option<String>>,
        /// Continue the last unfinished audit of the same state: ask models only what has no answer
        #[arg(long, conflicts_with = "history", help_heading = SOURCE)]
        resume: bool,
    },
    /// Review a unified diff from a file or standard input
    Patch {
        /// File, or - for standard input
        #[arg(default_value = "-")]
        file: PathBuf,
    },
    /// Review whole files or standard input, with every line as added
    Code {
        /// Files, or - for standard input
        #[arg(id = "inputs", default_value = "-", value_name = "FILE")]
        files: Vec<PathBuf>,
    },
}

#[derive(Debug, Default, clap::Args)]
pub(in crate::cli) struct Options {
    /// Review only files that match these globs
    #[arg(long, global = true, value_name = "GLOB", num_args = 1.., help_heading = SOURCE)]
    pub(super) files: Vec<String>,
    /// Review only part I of N of the files, for `review tree` and `review branch`
    #[arg(long, global = true, value_name = "I/N", value_parser = Shard::parse, help_heading = SOURCE, hide_short_help = true)]
    pub(super) shard: Option<Shard>,
    /// Fetch missing commits of the change
    ///
    /// For `review branch` and in CI. Adds git objects only: no branch, tag or configuration
    /// changes.
    #[arg(long, global = true, help_heading = SOURCE, hide_short_help = true)]
    pub(super) fetch: bool,
    /// Ask this backend instead of the policy's; repeat for more
    #[arg(long, global = true, value_name = "NAME", value_delimiter = ',', help_heading = AI)]
    pub(super) backend: Vec<String>,
    /// Use this model instead of the policy's
    #[arg(long, global = true, value_name = "NAME", help_heading = AI)]
    pub(super) model: Option<String>,
    /// Set how thoroughly models review
    #[arg(long, global = true, value_name = "DEPTH", help_heading = AI)]
    pub(super) depth: Option<DepthArg>,
    /// Run rules only, without network access
    #[arg(long, global = true, help_heading = AI)]
    pub(super) offline: bool,
    /// Ask models to look for these categories; repeat or separate with commas
    #[arg(
        long,
        global = true,
        value_name = "CATEGORY",
        num_args = 1..,
        value_delimiter = ',',
        value_parser = area,
        help_heading = AI,
        hide_short_help = true
    )]
    pub(super) focus: Option<Vec<Category>>,
    /// Describe the task and the change to models
    #[arg(
        long,
        global = true,
        value_name = "TEXT",
        allow_hyphen_values = true,
        help_heading = AI,
        hide_short_help = true
    )]
    pub(super) summary: Option<String>,
    /// Send models a design document that the change must follow; repeat for more
    #[arg(long, global = true, value_name = "FILE", help_heading = AI, hide_short_help = true)]
    pub(super) doc: Vec<PathBuf>,
    /// Total time limit for model requests, such as 90s or 5m
    #[arg(
        long,
        global = true,
        value_name = "DURATION",
        value_parser = duration,
        help_heading = AI,
        hide_short_help = true
    )]
    pub(super) timeout: Option<Duration>,
    /// Total cost limit for model requests, in US dollars
    #[arg(long, global = true, value_name = "USD", value_parser = usd, help_heading = AI, hide_short_help = true)]
    pub(super) max_cost: Option<f64>,
    /// Total limit of model requests
    #[arg(
        long,
        global = true,
        value_name = "N",
        value_parser = clap::value_parser!(u32).range(1..=10_000),
        help_heading = AI,
        hide_short_help = true
    )]
    pub(super) max_requests: Option<u32>,
    /// Total limit of input and output tokens
    #[arg(
        long,
        global = true,
        value_name = "N",
        value_parser = clap::value_parser!(u64).range(1..),
        help_heading = AI,
        hide_short_help = true
    )]
    pub(super) max_tokens: Option<u64>,
    /// Ignore cached answers of models
    #[arg(long, global = true, help_heading = AI, hide_short_help = true)]
    pub(super) no_cache: bool,
    /// Send the requests to models in batches, at half the price; the answers can take a day
    ///
    /// For `review tree`, `review branch` and `review commit` with backends of kind anthropic or
    /// openai. The same command continues a batch that an earlier run submitted. --timeout is 24h by
    /// default.
    #[arg(long, global = true, help_heading = AI, hide_short_help = true)]
    pub(super) batch: bool,
    /// Append every prompt to a file that only you can read
    #[arg(long, global = true, value_name = "FILE", help_heading = AI, hide_short_help = true)]
    pub(super) debug_prompts: Option<PathBuf>,
    /// Number of parallel file scans and model requests
    #[arg(
        long,
        global = true,
        value_name = "N",
        value_parser = clap::value_parser!(u32).range(1..=256),
        help_heading = AI,
        hide_short_help = true
    )]
    pub(super) jobs: Option<u32>,
    /// Severities that block the change
    #[arg(
        long,
        global = true,
        value_name = "SEVERITY",
        num_args = 1..,
        value_delimiter = ',',
        value_parser = severity,
        help_heading = POLICY
    )]
    pub(super) block_on: Option<Vec<Severity>>,
    /// Severities that warn
    #[arg(
        long,
        global = true,
        value_name = "SEVERITY",
        num_args = 1..,
        value_delimiter = ',',
        value_parser = severity,
        help_heading = POLICY,
        hide_short_help = true
    )]
    pub(super) warn_on: Option<Vec<Severity>>,
    /// List rejected and deferred findings in the text report
    #[arg(long, global = true, help_heading = OUTPUT, hide_short_help = true)]
    pub(super) show_dispositioned: bool,
    /// Exit 0 instead of 1 if findings block
    #[arg(long, global = true, help_heading = POLICY)]
    pub(super) exit_zero: bool,
    /// Set the exit code of an incomplete review
    #[arg(long, global = true, value_name = "ACTION", help_heading = POLICY, hide_short_help = true)]
    pub(super) on_incomplete: Option<OnIncompleteArg>,
    /// Ignore policy and suppressions of the change itself
    ///
    /// Takes the policy from the merge base, or from the base branch if that has become stricter,
    /// and suppressions from before the change. Default in CI and for pull requests.
    #[arg(long, global = true, overrides_with = "no_gate", help_heading = POLICY, hide_short_help = true)]
    pub(super) gate: bool,
    /// Use the policy of the worktree, also in CI
    #[arg(long, global = true, overrides_with = "gate", help_heading = POLICY, hide_short_help = true)]
    pub(super) no_gate: bool,
    /// Accept a finding with a reason, which the report records; repeat for more
    #[arg(long, global = true, value_name = "FINGERPRINT=REASON", help_heading = POLICY, hide_short_help = true)]
    pub(super) waive: Vec<String>,
    /// Sign a receipt of a complete review of commits, for `verify-receipt`; needs --gate
    #[arg(
        long,
        global = true,
        conflicts_with = "accept_receipt",
        help_heading = POLICY,
        hide_short_help = true
    )]
    pub(super) receipt: bool,
    /// Ask models only if no valid receipt covers the change
    #[arg(
        long,
        global = true,
        conflicts_with_all = ["post", "require_post", "require_history", "follow_up"],
        help_heading = POLICY,
        hide_short_help = true
    )]
    pub(super) accept_receipt: bool,
    /// Format of the report on standard output
    #[arg(
        long,
        global = true,
        default_value = "human",
        value_name = "FORMAT",
        value_parser = format::report(),
        help_heading = OUTPUT
    )]
    pub(super) format: ReportFormat,
    /// Write the report to a file instead of standard output
    #[arg(long, global = true, value_name = "FILE", help_heading = OUTPUT)]
    pub(super) output: Option<PathBuf>,
    /// Write another report; repeat for more
    #[arg(
        long,
        global = true,
        value_name = "FORMAT=FILE",
        value_parser = report_target,
        help_heading = OUTPUT,
        hide_short_help = true
    )]
    pub(super) report: Vec<(ReportFormat, PathBuf)>,
    /// Publish results on the pull request, with `review pr` or in its CI job
    #[arg(
        long,
        global = true,
        value_name = "PART",
        num_args = 1..,
        value_delimiter = ',',
        value_enum,
        help_heading = PULLS,
        hide_short_help = true
    )]
    pub(super) post: Vec<pr::PostPart>,
    /// Treat the review as incomplete if it cannot be published
    #[arg(long, global = true, requires = "post", help_heading = PULLS, hide_short_help = true)]
    pub(super) require_post: bool,
    /// Publish findings without a decision too, once some were decided
    #[arg(long, global = true, requires = "post", help_heading = PULLS, hide_short_help = true)]
    pub(super) all: bool,
    /// Continue a stored review with another round: its ID, or `latest`
    #[arg(long, global = true, value_name = "REVIEW_ID", help_heading = HISTORY)]
    pub(super) follow_up: Option<String>,
    /// Responses to the findings of the previous round: JSON or Markdown, - for standard input
    #[arg(
        long,
        global = true,
        value_name = "FILE",
        requires = "follow_up",
        help_heading = HISTORY,
        hide_short_help = true
    )]
    pub(super) response: Option<PathBuf>,
    /// Do not store the review
    #[arg(
        long,
        global = true,
        conflicts_with_all = ["require_history", "follow_up"],
        help_heading = HISTORY,
        hide_short_help = true
    )]
    pub(super) no_save: bool,
    /// Treat the review as incomplete if it cannot be stored
    #[arg(long, global = true, help_heading = HISTORY, hide_short_help = true)]
    pub(super) require_history: bool,
    /// Run as this hook
    #[arg(long, global = true, hide = true, value_name = "HOOK")]
    pub(super) hook: Option<hooks::Stage>,
    /// Arguments that git passes to the hook
    #[arg(long, global = true, hide = true, value_name = "ARG", num_args = 0.., allow_hyphen_values = true)]
    pub(super) hook_args: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum DepthArg {
    /// One pass over the change
    Quick,
    /// Several passes with access to other files, and a verification of the findings
    Thorough,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum OnIncompleteArg {
    /// Exit 3
    Fail,
    /// Print a warning and exit as a complete review
    Warn,
}

impl Options {
    /// Returns the options of a command that writes reports and reviews nothing.
    pub(in crate::cli) fn of_reports(
        format: ReportFormat,
        output: Option<PathBuf>,
        report: Vec<(ReportFormat, PathBuf)>,
    ) -> Self {
        Self {
            format,
            output,
            report,
            ..Self::default()
        }
    }
}

fn severity(s: &str) -> std::result::Result<Severity, String> {
    let names = Severity::ALL.map(Severity::name).join(", ");
    Severity::parse(s).ok_or_else(|| format!("expected one of {names}"))
}

fn area(s: &str) -> std::result::Result<Category, String> {
    let names = Category::ALL.map(Category::name).join(", ");
    Category::parse(s).ok_or_else(|| format!("expected one of {names}"))
}

pub(in crate::cli) fn duration(s: &str) -> std::result::Result<Duration, String> {
    policy::value::parse_duration(s)
        .filter(|d| !d.is_zero())
        .ok_or_else(|| "expected a duration, such as 90s, 5m or 1m30s".to_owned())
}

pub(in crate::cli) fn usd(s: &str) -> std::result::Result<f64, String> {
    s.parse()
        .ok()
        .filter(|n: &f64| n.is_finite() && *n >= 0.0)
        .ok_or_else(|| "expected an amount in dollars, such as 0.50".to_owned())
}

pub(in crate::cli) fn report_target(
    s: &str,
) -> std::result::Result<(ReportFormat, PathBuf), String> {
    let (format, file) = s
        .split_once('=')
        .filter(|(_, f)| !f.is_empty())
        .ok_or("expected FORMAT=FILE, such as sarif=out.sarif")?;
    Ok((ReportFormat::parse(format)?, PathBuf::from(file)))
}

/// Arguments of `verify-receipt`.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Verify {
    /// Branch or commit to verify [default: HEAD]
    pub(super) head: Option<String>,
    /// Branch or commit to compare with [default: the upstream, or origin/HEAD]
    #[arg(long, value_name = "REV", help_heading = SOURCE)]
    pub(super) base: Option<String>,
    /// Fetch missing commits of the change
    #[arg(long, help_heading = SOURCE)]
    pub(super) fetch: bool,
    /// Format of the report on standard output
    #[arg(
        long,
        default_value = "human",
        value_name = "FORMAT",
        value_parser = format::report(),
        help_heading = OUTPUT
    )]
    pub(super) format: ReportFormat,
    /// Write the report to a file instead of standard output
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    pub(super) output: Option<PathBuf>,
    /// Write another report; repeat for more
    #[arg(long, value_name = "FORMAT=FILE", value_parser = report_target, help_heading = OUTPUT)]
    pub(super) report: Vec<(ReportFormat, PathBuf)>,
    /// Severities that block the change
    #[arg(
        long,
        value_name = "SEVERITY",
        num_args = 1..,
        value_delimiter = ',',
        value_parser = severity,
        help_heading = POLICY
    )]
    pub(super) block_on: Option<Vec<Severity>>,
    /// Accept a finding with a reason, which the report records; repeat for more
    #[arg(long, value_name = "FINGERPRINT=REASON", help_heading = POLICY)]
    pub(super) waive: Vec<String>,
}
