//! The command line: clap types, one file for each subcommand, and the only place that prints
//! errors.

mod apply;
mod background;
mod baseline;
mod cache;
mod complete;
mod decide;
mod doctor;
mod editor;
mod fix;
mod format;
mod generate;
mod history;
mod hooks;
mod init;
mod menu;
mod near_miss;
mod patch;
mod policy;
mod post;
mod pr;
mod quick;
mod report;
mod review;
mod rules;
mod screen;
mod serve;
mod signals;
mod status;
mod stdout;
mod style;
mod triage;

use crate::env::Env;
use crate::error::{Error, ExitStatus};
use crate::git::Repo;
use crate::untrusted::Inert;
use clap::{CommandFactory as _, Parser, Subcommand};
use near_miss::Meant;
use near_miss::grammar::{CliPiece, Grammar, Values};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Reviews a git change and gates it.
#[derive(Debug, Parser)]
#[command(
    name = "claude-reviewer",
    version,
    about,
    max_term_width = 100,
    propagate_version = false
)]
pub struct Cli {
    #[command(flatten)]
    pub global: Global,
    #[command(subcommand)]
    command: CliCommand,
}

/// Heading of the options of every subcommand.
const GLOBAL: &str = "Global options";

/// Options of every subcommand.
#[derive(Clone, Debug, clap::Args)]
pub struct Global {
    /// Set when to use colors
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto", help_heading = GLOBAL)]
    pub color: ColorChoice,
    /// Print only findings and errors, and nothing if the exit code is 0
    #[arg(short, long, global = true, help_heading = GLOBAL)]
    pub quiet: bool,
    /// Print more details; -vv adds diagnostic events with times
    #[arg(short, long, global = true, action = clap::ArgAction::Count, help_heading = GLOBAL)]
    pub verbose: u8,
    /// Use this policy file instead of the project's
    #[arg(long, global = true, value_name = "FILE", help_heading = GLOBAL)]
    pub config: Option<PathBuf>,
    /// Run as if started in DIR
    #[arg(short = 'C', global = true, value_name = "DIR", help_heading = GLOBAL)]
    pub dir: Option<PathBuf>,
}

/// When to colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum ColorChoice {
    Auto,
    Always,
    Never,
}

#[derive(Debug, Subcommand)]
enum CliCommand {
    /// Review a change
    ///
    /// Without a command, reviews the staged changes. If nothing is staged, reviews all changes
    /// since the merge base with the upstream or default branch, including the worktree and
    /// untracked files.
    Review(Box<review::ReviewArgs>),
    /// List open pull requests
    Pr(pr::PrArgs),
    /// Publish a stored review of a pull request
    Post(post::PostArgs),
    /// Run the rules on a branch, and accept a signed receipt in place of model requests
    VerifyReceipt(Box<review::Verify>),
    /// Write a policy file, and offer git hooks and a CI file
    Init(init::InitArgs),
    /// Install or remove git hooks
    InstallHooks(hooks::InstallHooksArgs),
    /// Check, show, test and trust the policy
    Policy(policy::PolicyArgs),
    /// Check that the gate works on this machine
    Doctor(doctor::DoctorArgs),
    /// List, explain, write and test rules
    Rules(rules::RulesArgs),
    /// List, show, verify and remove stored reviews
    History(history::HistoryArgs),
    /// Merge reports of shards, or of several repositories
    Report(report::ReportArgs),
    /// Count, check and remove cached answers of models
    Cache(cache::CacheArgs),
    /// Close a stored review
    Complete(complete::CompleteArgs),
    /// Decide on the findings of a stored review, full-screen
    Triage(triage::TriageArgs),
    /// List the findings of a stored review with the decisions on them
    Findings(decide::Findings),
    /// Accept findings: they are right and will be fixed
    Accept(decide::Accept),
    /// Reject findings: they no longer count
    Reject(decide::Reject),
    /// Defer findings: they do not count until a date
    Defer(decide::Defer),
    /// Record decisions that an agent proposed
    Confirm(decide::Confirm),
    /// Show reviews in the background and batches, stop and cancel them
    Status(status::StatusArgs),
    /// Review what waits in the background
    #[command(hide = true, name = crate::background::COMMAND)]
    BackgroundJob(background::JobArgs),
    /// Write the replacements of findings into the worktree
    Apply(apply::ApplyArgs),
    /// Let a model fix findings, verify the result, and apply it
    Fix(Box<fix::FixArgs>),
    /// Adopt the gate on code that has findings
    Baseline(baseline::BaselineArgs),
    /// Serve coding agents over the Model Context Protocol
    ServeMcp(serve::ServeArgs),
    /// Print a completion script
    Completions(generate::Completions),
    /// Print the manual page
    Man,
    /// Choose what to do next
    #[command(hide = true)]
    Menu,
}

/// The environment of a subcommand.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) env: Env,
    pub(crate) global: Global,
    /// `-C DIR`, or the current folder.
    pub(crate) dir: PathBuf,
}

/// Runs the program.
pub fn main() -> ExitCode {
    let args = crate::env::arguments();
    let quick = quick::parse(args.get(1..).unwrap_or_default());
    let cli = match quick.map_or_else(|| Cli::try_parse_from(&args), Ok) {
        Ok(cli) => cli,
        Err(e) if is_without_command(&e) && menu::is_possible() => match with_menu() {
            Ok(cli) => cli,
            Err(_) => return ExitCode::from(refuse(&e).code()),
        },
        Err(e) => {
            // clap prints help and version to stdout (exit 0), errors to stderr (exit 2).
            let status = if e.use_stderr() {
                refuse(&e)
            } else {
                // A closed stdout leaves no way to report the error.
                let _ = e.print();
                ExitStatus::Pass
            };
            return ExitCode::from(status.code());
        }
    };
    ExitCode::from(match run(cli) {
        Ok(status) => status.code(),
        Err(e) => {
            print_error(&e);
            e.status().code()
        }
    })
}

/// Returns true if only the command is missing from the arguments.
fn is_without_command(e: &clap::Error) -> bool {
    use clap::error::ErrorKind;
    matches!(
        e.kind(),
        ErrorKind::MissingSubcommand | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
    )
}

/// Parses the arguments with `menu` as the command.
fn with_menu() -> Result<Cli, clap::Error> {
    let args = crate::env::arguments();
    // `pr` alone lacks its own subcommand, and `menu` is not one of those.
    Cli::try_parse_from(args.into_iter().chain(["menu".into()]))
}

fn run(cli: Cli) -> Result<ExitStatus, Error> {
    let env = Env::of_process()
        .map_err(|e| Error::usage("cannot read the current folder").caused_by(&e))?;
    let dir = match &cli.global.dir {
        Some(d) => env.dir.join(d),
        None => env.dir.clone(),
    };
    crate::log::start(&env, cli.global.verbose)?;
    let context = Context {
        env,
        global: cli.global,
        dir,
    };
    match cli.command {
        CliCommand::Review(args) => review::run(&context, &args),
        CliCommand::Pr(args) => pr::run(&context, &args),
        CliCommand::Post(args) => post::run(&context, &args),
        CliCommand::VerifyReceipt(args) => review::verify(&context, *args),
        CliCommand::Init(args) => init::run(&context, &args),
        CliCommand::InstallHooks(args) => hooks::run(&context, &args),
        CliCommand::Policy(args) => policy::run(&context, &args),
        CliCommand::Doctor(args) => doctor::run(&context, &args),
        CliCommand::Rules(args) => rules::run(&context, &args),
        CliCommand::History(args) => history::run(&context, &args),
        CliCommand::Report(args) => report::run(&context, &args),
        CliCommand::Cache(args) => cache::run(&context, &args),
        CliCommand::Complete(args) => complete::run(&context, &args),
        CliCommand::Triage(args) => triage::run(&context, &args),
        CliCommand::Findings(args) => decide::findings(&context, &args),
        CliCommand::Accept(args) => decide::accept(&context, &args),
        CliCommand::Reject(args) => decide::reject(&context, &args),
        CliCommand::Defer(args) => decide::defer(&context, &args),
        CliCommand::Confirm(args) => decide::confirm(&context, &args),
        CliCommand::Status(args) => status::run(&context, &args),
        CliCommand::BackgroundJob(args) => background::job(&context, &args),
        CliCommand::Apply(args) => apply::run(&context, &args),
        CliCommand::Fix(args) => fix::run(&context, &args),
        CliCommand::Baseline(args) => baseline::run(&context, &args),
        CliCommand::ServeMcp(args) => serve::run(&context, &args),
        CliCommand::Completions(args) => generate::completions(&args),
        CliCommand::Man => generate::man(),
        CliCommand::Menu => menu::run(&context),
    }
}

/// Prints the parser's error about arguments, and the command that the user likely meant. Control
/// characters of the arguments are printed as escapes.
fn refuse(e: &clap::Error) -> ExitStatus {
    let args = crate::env::arguments();
    let shown: Vec<String> = args
        .iter()
        .map(|a| Inert::new(a.as_encoded_bytes()).to_string())
        .collect();
    let is_clean = args.iter().zip(&shown).all(|(a, s)| a == s.as_str());
    let status = ExitStatus::Usage;
    let meant = if is_clean {
        meant(e, &shown)
    } else {
        Meant::default()
    };
    use std::io::Write as _;
    // A closed stderr leaves no way to report the error.
    let hints = hints(&meant);
    let _ = if !hints.is_empty() {
        // The parser's own tips compare letters: for `--base` they suggest `--backend`.
        let text = e.render().to_string();
        let first = text.lines().next().unwrap_or_default();
        std::io::stderr().write_all(format!("{first}\n{hints}").as_bytes())
    } else if is_clean {
        e.print()
    } else if let Err(same) = Cli::try_parse_from(&shown)
        && same.kind() == e.kind()
    {
        // The parser's own message is safe if the arguments have no control characters.
        same.print()
    } else {
        let text: Vec<_> = e
            .render()
            .to_string()
            .lines()
            .map(|l| format!("{}\n", Inert::new(l).guarded()))
            .collect();
        std::io::stderr().write_all(text.concat().as_bytes())
    };
    if is_review(&args) {
        let _ = writeln!(
            std::io::stderr(),
            "{}",
            crate::report::summary_of_error(status)
        );
    }
    status
}

/// Returns the hints, one line each, with line ends.
fn hints(meant: &Meant) -> String {
    if let [others @ .., last] = &meant.owners[..] {
        let first: Vec<_> = others.iter().map(|name| quoted_command(name)).collect();
        let and = if first.is_empty() { "" } else { " and " };
        return format!(
            "hint: this is an option of {}{and}{}\n",
            first.join(", "),
            quoted_command(last)
        );
    }
    meant
        .commands
        .iter()
        .map(|command| format!("hint: {command}\n"))
        .collect()
}

/// Returns a command of the program in backquotes.
fn quoted_command(name: &str) -> String {
    format!("`claude-reviewer {name}`")
}

/// Finds what the user likely meant.
fn meant(e: &clap::Error, args: &[String]) -> Meant {
    use clap::error::{ContextKind, ContextValue, ErrorKind};
    // The command has both options. The message states which of them conflict.
    if e.kind() == ErrorKind::ArgumentConflict {
        return Meant::default();
    }
    let refused = [ContextKind::InvalidArg, ContextKind::InvalidSubcommand]
        .into_iter()
        .find_map(|kind| {
            let Some(ContextValue::String(refused)) = e.get(kind) else {
                return None;
            };
            Some(refused)
        });
    let (Some(refused), Ok(env)) = (refused, Env::of_process()) else {
        return Meant::default();
    };
    let args = args.get(1..).unwrap_or_default();
    let grammar = Grammar::of(&Cli::command());
    let chosen = grammar
        .pieces(args, |_| Values::None)
        .into_iter()
        .find_map(|piece| match piece {
            CliPiece::Option { name, value, .. } if name == "-C" => value,
            _ => None,
        });
    let dir = chosen.map_or_else(|| env.dir.clone(), |d| env.dir.join(d));
    near_miss::meant(&grammar, args, refused, &WorkingFolder { dir, env })
}

/// The directory in which the program runs.
struct WorkingFolder {
    dir: PathBuf,
    env: Env,
}

impl near_miss::DirectoryQueries for WorkingFolder {
    fn dir(&self) -> &Path {
        &self.dir
    }

    fn is_file(&self, path: &Path) -> bool {
        self.dir.join(path).is_file()
    }

    fn is_dir(&self, path: &Path) -> bool {
        self.dir.join(path).is_dir()
    }

    fn is_revision(&self, name: &str) -> bool {
        Repo::open(&self.dir, &self.env)
            .and_then(|repo| repo.resolve(name))
            .is_ok()
    }

    fn is_branch(&self, name: &str) -> bool {
        self.is_revision(&format!("refs/heads/{name}"))
    }
}

/// Returns true if the arguments, which may be invalid, select the subcommand `review`.
fn is_review(args: &[OsString]) -> bool {
    let args: Vec<String> = args
        .iter()
        .skip(1)
        .map(|a| a.to_string_lossy().into_owned())
        .collect();
    let pieces = Grammar::of(&Cli::command()).pieces(&args, |_| Values::None);
    let first = pieces.iter().find_map(|piece| match piece {
        CliPiece::Word(word) => Some(word.as_str()),
        CliPiece::Option { .. } => None,
    });
    first == Some("review")
}

/// The only place that prints errors. The objects in a message are untrusted: their control
/// characters are escaped.
fn print_error(e: &Error) {
    let causes = e.causes.iter().map(|cause| ("caused by", cause));
    let hints = e.hints.iter().map(|hint| ("hint", hint));
    let lines = std::iter::once(("error", &e.message))
        .chain(causes)
        .chain(hints);
    let text: String = lines
        .map(|(kind, what)| format!("{kind}: {}\n", Inert::new(what)))
        .collect();
    use std::io::Write as _;
    // A failure to write to standard error cannot be reported.
    let _ = std::io::stderr().write_all(text.as_bytes());
}
