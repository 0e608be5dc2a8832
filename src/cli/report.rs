//! `report`: works on reports that reviews wrote. `report merge` joins the shards of a review, or the
//! reviews of several repositories.

use super::review::{Options, Printed, refuse_shared_targets, report_target, write_printed};
use super::{Context, format};
use crate::bounded;
use crate::env::Env;
use crate::error::{Error, ExitStatus, Result};
use crate::report::fleet::{self, Fleet, FleetMember};
use crate::report::{self, ReportFormat, json};
use crate::review::Review;
use crate::rounds::shards::{self, GivenReport};
use crate::wire;
use std::collections::{HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::io::{IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};

/// Bytes of a report, at most. The report of a shard has the change, which is at most 16 MiB, and
/// the code of at most 11,000 findings.
const MOST_BYTES: u64 = 512 << 20;

/// Arguments of `report`.
#[derive(Debug, clap::Args)]
pub(super) struct ReportArgs {
    #[command(subcommand)]
    command: ReportCommand,
}

#[derive(Debug, clap::Subcommand)]
enum ReportCommand {
    /// Merge the JSON reports of shards, or of several repositories
    #[command(
        after_help = "Reports of shards (`--shard I/N`) are merged to the report that a single run would have \
        written. A shard that is missing, given twice or of another review makes the merged review incomplete.\n\n\
        Reports of whole reviews are of a repository each, with the name of the file. NAME=FILE sets another name; \
        reports of shards with one name are of one repository. Several repositories are shown together in the formats \
        human, json, sarif, summary, junit, dotenv and html.\n\n\
        Exit codes: those of `review`, for the worst of the reports."
    )]
    Merge(Box<MergeArgs>),
}

/// Arguments of `report merge`.
#[derive(Debug, clap::Args)]
struct MergeArgs {
    /// JSON reports to merge, each as FILE or NAME=FILE; - for standard input
    #[arg(value_name = "FILE", required = true)]
    reports: Vec<OsString>,
    /// Format of the report on standard output
    #[arg(long, default_value = "human", value_name = "FORMAT", value_parser = format::report())]
    format: ReportFormat,
    /// Write the report to a file instead of standard output
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Write another report; repeat for more
    #[arg(long, value_name = "FORMAT=FILE", value_parser = report_target)]
    report: Vec<(ReportFormat, PathBuf)>,
}

pub(super) fn run(context: &Context, args: &ReportArgs) -> Result<ExitStatus> {
    let ReportCommand::Merge(args) = &args.command;
    merge(context, args)
}

/// Merges the reports, and writes the result.
fn merge(context: &Context, args: &MergeArgs) -> Result<ExitStatus> {
    let options = Options::of_reports(args.format, args.output.clone(), args.report.clone());
    refuse_shared_targets(context, &options)?;
    let inputs = inputs(&args.reports)?;
    let mut groups = Vec::new();
    for input in inputs {
        let given = GivenReport::parse(&input.shown, &input.read(context)?)?;
        add(&mut groups, input, given);
    }
    match <[ReportGroup; 1]>::try_from(groups) {
        Ok([one]) => one_review(context, &options, one),
        Err(groups) => several(context, (args, &options), groups),
    }
}

/// A report to read.
struct ReportInput {
    /// The name that the user gave to the repository.
    name: Option<String>,
    /// `None`: standard input.
    path: Option<PathBuf>,
    /// The file as the user gave it.
    shown: String,
}

/// Parses the arguments `FILE`, `NAME=FILE` and `-`. A path that starts with `.` or `/` has no name,
/// so that each file can be named.
///
/// # Errors
///
/// Usage: standard input is given twice, or a name or file is empty.
fn inputs(given: &[OsString]) -> Result<Vec<ReportInput>> {
    let mut all = Vec::new();
    for argument in given {
        let (name, file) = match named(argument) {
            Some((name, file)) => (Some(name.to_owned()), OsStr::new(file)),
            None => (None, argument.as_os_str()),
        };
        if file.is_empty() || name.as_deref() == Some("") {
            let argument = argument.to_string_lossy();
            return Err(Error::usage(format!("invalid report {argument:?}"))
                .hint("give FILE or NAME=FILE; a file whose name has `=` is ./FILE"));
        }
        all.push(ReportInput {
            name,
            path: (file != "-").then(|| PathBuf::from(file)),
            shown: match file == "-" {
                true => "standard input".to_owned(),
                false => file.to_string_lossy().into_owned(),
            },
        });
    }
    if all.iter().filter(|i| i.path.is_none()).count() > 1 {
        return Err(Error::usage("standard input can be read only once")
            .hint("write the reports to files, and name these"));
    }
    Ok(all)
}

/// Splits `NAME=FILE`; `None` for other arguments.
fn named(argument: &OsStr) -> Option<(&str, &str)> {
    let text = argument.to_str()?;
    if text.starts_with(['.', '/']) {
        return None;
    }
    text.split_once('=')
}

impl ReportInput {
    /// Reads the report.
    ///
    /// # Errors
    ///
    /// Usage: it cannot be read, or is too large.
    fn read(&self, context: &Context) -> Result<Vec<u8>> {
        let unread = |e: &std::io::Error| {
            Error::usage(format!("cannot read the report {}", self.shown)).caused_by(e)
        };
        let bytes = match &self.path {
            None => bounded::whole(std::io::stdin().lock(), MOST_BYTES),
            Some(path) => std::fs::File::open(context.dir.join(path))
                .and_then(|file| bounded::whole(file, MOST_BYTES)),
        };
        bytes.map_err(|e| unread(&e))?.ok_or_else(|| {
            Error::usage(format!(
                "cannot read the report {}: it has more than {} MiB",
                self.shown,
                MOST_BYTES >> 20
            ))
        })
    }

    /// Returns the name of the file without its folder and its ending.
    fn stem(&self) -> String {
        let stem = self.path.as_deref().and_then(Path::file_stem);
        stem.map_or_else(|| self.shown.clone(), |s| s.to_string_lossy().into_owned())
    }

    /// Returns the path without its ending, for files that share their name.
    fn long_name(&self) -> String {
        let text = self.shown.strip_prefix("./").unwrap_or(&self.shown);
        text.strip_suffix(".json").unwrap_or(text).to_owned()
    }
}

/// The reports of one repository.
struct ReportGroup {
    /// The first report of the group, which names it if the user did not.
    first: ReportInput,
    reports: Vec<GivenReport>,
    /// The group has the reports of shards without a name.
    is_unnamed_shards: bool,
}

/// Adds a report to the group with its name. Shards without a name are of one review; a whole review
/// without a name is a group by itself.
fn add(groups: &mut Vec<ReportGroup>, input: ReportInput, given: GivenReport) {
    let is_unnamed_shards = input.name.is_none() && given.report.shard.is_some();
    let known = groups.iter_mut().find(|g| match &input.name {
        Some(_) => g.first.name == input.name,
        None => is_unnamed_shards && g.is_unnamed_shards,
    });
    match known {
        Some(group) => group.reports.push(given),
        None => groups.push(ReportGroup {
            first: input,
            reports: vec![given],
            is_unnamed_shards,
        }),
    }
}

impl ReportGroup {
    /// Returns the review of the group, and its report if it was given as a whole.
    ///
    /// # Errors
    ///
    /// Usage: two reports of whole reviews have one name; shards that cannot be merged.
    fn review(self, env: &Env) -> Result<(Review, Option<wire::Report>)> {
        let (mut review, report) = if self.reports.iter().any(|g| g.report.shard.is_some()) {
            (shards::merge(self.reports)?, None)
        } else {
            let name = self.first.name.as_deref().unwrap_or_default();
            let report = single(self.reports, name)?;
            (shards::whole(&report), Some(report))
        };
        // Formats for forges remove words of tickets, so the tickets must be known.
        crate::context::recall(&mut review.context, env, None);
        Ok((review, report))
    }
}

/// Returns the only report of a repository.
///
/// # Errors
///
/// Usage: several reports have the name.
fn single(reports: Vec<GivenReport>, name: &str) -> Result<wire::Report> {
    let mut reports = reports.into_iter();
    match (reports.next(), reports.next()) {
        (Some(one), None) => Ok(one.report),
        (Some(first), Some(second)) => Err(Error::usage(format!(
            "{} and {} have the name {name}, and are not shards",
            first.file, second.file,
        ))
        .hint("give each repository its own name: NAME=FILE")),
        (None, _) => Err(Error::usage("no report is given")),
    }
}

/// Writes the review of one group.
fn one_review(context: &Context, options: &Options, group: ReportGroup) -> Result<ExitStatus> {
    let (mut review, _) = group.review(&context.env)?;
    let exit = write_printed(
        context,
        options,
        &Printed {
            exit: review.exit,
            is_gate: review.merge_inputs.is_gate,
            render: &|format, style, out| report::render(&review, format, style, out),
            rest: None,
        },
    );
    review.exit = exit;
    end(context, exit, &report::summary_line(&review));
    Ok(exit)
}

/// Writes the reviews of several groups.
fn several(
    context: &Context,
    (args, options): (&MergeArgs, &Options),
    groups: Vec<ReportGroup>,
) -> Result<ExitStatus> {
    let further = args.report.iter().map(|(format, _)| *format);
    for format in further.chain([args.format]) {
        fleet::refuse_other_formats(format)?;
    }
    let names = names(&groups)?;
    let mut members = Vec::new();
    for (group, name) in groups.into_iter().zip(names) {
        let (review, given) = group.review(&context.env)?;
        members.push(FleetMember {
            name,
            report: given.unwrap_or_else(|| json::report(&review)),
            review,
        });
    }
    let fleet = Fleet { members };
    let exit = write_printed(
        context,
        options,
        &Printed {
            exit: fleet.exit(),
            is_gate: false,
            render: &|format, style, out| fleet::render(&fleet, format, style, out),
            rest: None,
        },
    );
    end(context, exit, &fleet::summary_line(&fleet, exit));
    Ok(exit)
}

/// Returns the names of the groups. Files that share a name are called by their paths.
///
/// # Errors
///
/// Usage: two groups have one name.
fn names(groups: &[ReportGroup]) -> Result<Vec<String>> {
    let short = |g: &ReportGroup| g.first.name.clone().unwrap_or_else(|| g.first.stem());
    let all: Vec<String> = groups.iter().map(short).collect();
    let mut times: HashMap<&str, usize> = HashMap::new();
    for name in &all {
        *times.entry(name).or_default() += 1;
    }
    let mut seen = HashSet::new();
    let mut names = Vec::new();
    for (g, short) in groups.iter().zip(&all) {
        let is_unique = times.get(short.as_str()) == Some(&1);
        let name = match is_unique || g.first.name.is_some() {
            true => short.clone(),
            false => g.first.long_name(),
        };
        if !seen.insert(name.clone()) {
            let file = &g.first.shown;
            let text = format!("{file} is a second repository with the name {name}");
            return Err(
                Error::usage(text).hint("name each repository once, with its own name: NAME=FILE")
            );
        }
        names.push(name);
    }
    Ok(names)
}

/// Prints the last line on standard error, as a review does.
fn end(context: &Context, exit: ExitStatus, line: &str) {
    let passed = exit == ExitStatus::Pass;
    if passed && context.global.quiet {
        return;
    }
    if !passed || context.global.verbose > 0 || !std::io::stderr().is_terminal() {
        // A failure to write to standard error cannot be reported.
        let _ = writeln!(std::io::stderr(), "{line}");
    }
}
