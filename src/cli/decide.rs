//! `accept`, `reject`, `defer`: decisions on the findings of a stored review. `confirm` records
//! decisions that an agent proposed. `findings` lists the findings.

use super::Context;
use super::format::Format;
use super::history::{find, request};
use super::stdout::{print, write};
use crate::diff::RepoPath;
use crate::disposition::DecisionEntry;
use crate::error::{Error, ExitStatus, Result};
use crate::finding::Decision;
use crate::git::Repo;
use crate::history::{SessionId, Store};
use crate::policy::RulesPolicy;
use crate::policy::glob::Globs;
use crate::review::StoreLocation;
use crate::rounds;
use crate::rounds::decide::{
    ChosenDecision, Confirmation, Decided, Here, ListedFinding, Overruled, confirm as confirm_all,
    decide, decision, list, still_shared,
};
use crate::rules::RuleSet;
use crate::shell;
use crate::untrusted::Inert;
use crate::wire::stored::Session;
use crate::wire::{self, Disposition};
use jiff::civil::Date;

const AFTER: &str = "A decision is about the lines as they are: if they change, or the decision expires, the finding is \
    pending again. It is stored on this machine, beside the reviews. --share also writes \
    .claude-reviewer/dispositions.toml, which is meant to be committed. In gate mode only that file counts, as it is at \
    the merge base.";

/// The arguments of all decisions.
#[derive(Debug, clap::Args)]
struct Common {
    /// Findings: IDs such as F3, or the first digits of fingerprints
    #[arg(value_name = "FINDING", required = true)]
    findings: Vec<String>,
    /// Stored review that has the findings: an ID, or `latest`
    #[arg(long, value_name = "ID", default_value = "latest")]
    session: String,
    /// Reason to record
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    reason: Option<String>,
    /// Who decided [default: the git identity]
    #[arg(long, value_name = "NAME")]
    owner: Option<String>,
    /// Write the decision to .claude-reviewer/dispositions.toml too
    #[arg(long)]
    share: bool,
}

/// Arguments of `accept`.
#[derive(Debug, clap::Args)]
#[command(after_help = "An accepted finding still counts: it is right, and someone will fix it.")]
pub(super) struct Accept {
    #[command(flatten)]
    common: Common,
}

/// Arguments of `reject`.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER)]
pub(super) struct Reject {
    #[command(flatten)]
    common: Common,
    /// First day on which the finding is pending again [default: none]
    #[arg(long, value_name = "YYYY-MM-DD", value_parser = date)]
    until: Option<Date>,
}

/// Arguments of `defer`.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER)]
pub(super) struct Defer {
    #[command(flatten)]
    common: Common,
    /// First day on which the finding is pending again [default: in 90 days]
    #[arg(long, value_name = "YYYY-MM-DD", value_parser = date)]
    until: Option<Date>,
}

/// Arguments of `confirm`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Agents propose decisions over MCP. A proposal changes no verdict until a person confirms it. To turn \
    one down, record another decision: accept, reject or defer."
)]
pub(super) struct Confirm {
    /// Findings: IDs such as F3, or the first digits of fingerprints
    #[arg(
        value_name = "FINDING",
        required_unless_present = "all",
        conflicts_with = "all"
    )]
    findings: Vec<String>,
    /// Confirm all proposals about the review
    #[arg(long)]
    all: bool,
    /// Stored review that has the findings: an ID, or `latest`
    #[arg(long, value_name = "ID", default_value = "latest")]
    session: String,
    /// Who decided [default: the git identity]
    #[arg(long, value_name = "NAME")]
    owner: Option<String>,
    /// Write the decisions to .claude-reviewer/dispositions.toml too
    #[arg(long)]
    share: bool,
}

/// Arguments of `findings`.
#[derive(Debug, clap::Args)]
pub(super) struct Findings {
    /// Stored review: an ID, or `latest`
    #[arg(value_name = "REVIEW_ID", default_value = "latest")]
    session: String,
    /// Only findings with this status
    #[arg(long, value_name = "STATUS", value_enum, value_delimiter = ',')]
    status: Vec<StatusArg>,
    /// Only findings of this severity
    #[arg(long, value_name = "SEVERITY", value_enum, value_delimiter = ',')]
    severity: Vec<SeverityArg>,
    /// Only findings in files that match the pattern
    #[arg(long, value_name = "GLOB")]
    file: Vec<String>,
    /// Output format
    #[arg(long, default_value = "human", value_parser = Format::parser("Text", "Versioned JSON"))]
    format: Format,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum StatusArg {
    /// No decision holds
    Pending,
    Accepted,
    Rejected,
    Deferred,
    /// Found in an earlier round and fixed since
    Fixed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum SeverityArg {
    Critical,
    Major,
    Minor,
    Suggestion,
}

pub(super) fn date(text: &str) -> std::result::Result<Date, String> {
    text.parse()
        .map_err(|_| "expected a date such as 2026-01-31".to_owned())
}

pub(super) fn accept(context: &Context, args: &Accept) -> Result<ExitStatus> {
    record(context, &args.common, Decision::Accepted, None)
}

pub(super) fn reject(context: &Context, args: &Reject) -> Result<ExitStatus> {
    record(context, &args.common, Decision::Rejected, args.until)
}

pub(super) fn defer(context: &Context, args: &Defer) -> Result<ExitStatus> {
    record(context, &args.common, Decision::Deferred, args.until)
}

/// A stored review with its environment.
pub(super) struct OpenedReview {
    id: SessionId,
    pub(super) session: Session,
    pub(super) store: Store,
    pub(super) place: StoreLocation,
    repo: Repo,
    rules: RuleSet,
}

impl OpenedReview {
    pub(super) fn new(context: &Context, name: &str) -> Result<Self> {
        let (store, id, session) = find(context, name)?;
        let (place, _) = rounds::open(&request(context), &context.env)?;
        let repo = Repo::open(&context.dir, &context.env)?;
        let rules = RuleSet::new(&RulesPolicy::default(), &[])?;
        Ok(Self {
            id,
            session,
            store,
            place,
            repo,
            rules,
        })
    }

    pub(super) fn here<'a>(&'a self, context: &'a Context) -> Here<'a> {
        let Self {
            store,
            place,
            repo,
            rules,
            ..
        } = self;
        Here {
            repo,
            place,
            store,
            rules,
            env: &context.env,
            now: jiff::Timestamp::now(),
        }
    }
}

fn record(
    context: &Context,
    common: &Common,
    decision: Decision,
    until: Option<Date>,
) -> Result<ExitStatus> {
    let opened = OpenedReview::new(context, &common.session)?;
    let choice = ChosenDecision {
        findings: common.findings.clone(),
        decision,
        reason: common.reason.clone(),
        until,
        owner: common.owner.clone(),
        share: common.share,
    };
    let decided = decide(&opened.here(context), &opened.session, &choice)?;
    recorded(context, &opened, &decided, common.share)
}

pub(super) fn confirm(context: &Context, args: &Confirm) -> Result<ExitStatus> {
    let opened = OpenedReview::new(context, &args.session)?;
    let choice = Confirmation {
        owner: args.owner.clone(),
        share: args.share,
    };
    let decided = confirm_all(
        &opened.here(context),
        &opened.session,
        &args.findings,
        &choice,
    )?;
    if decided.is_empty() && !context.global.quiet {
        return print(&format!(
            "no decision is proposed on a finding of review {}\n",
            opened.id
        ));
    }
    recorded(context, &opened, &decided, args.share)
}

/// Prints recorded decisions.
fn recorded(
    context: &Context,
    opened: &OpenedReview,
    decided: &[Decided],
    is_shared: bool,
) -> Result<ExitStatus> {
    if context.global.quiet {
        return Ok(ExitStatus::Pass);
    }
    let mut text = String::new();
    for (finding, entry) in decided {
        let until = entry
            .expires
            .map(|date| format!(" until {date}"))
            .unwrap_or_default();
        let name = Inert::new(format!(
            "{} ({}{})",
            finding.id,
            finding.rule_id,
            at(finding)
        ));
        text.push_str(&format!("{} {name}{until}\n", entry.decision.name()));
    }
    match is_shared {
        true => text.push_str(&to_commit()),
        false => {
            let overruled = still_shared(&opened.here(context), &opened.session, decided)?;
            text.extend(overruled.iter().map(|o| still_there(o, &opened.id)));
        }
    }
    print(&text)
}

/// Reports that the shared file still has another decision, and the command that changes it.
fn still_there(overruled: &Overruled, session: &SessionId) -> String {
    let Overruled { id, own, shared } = overruled;
    let mut words = vec!["claude-reviewer", verb(own.decision), id, "--session"];
    let session = session.to_string();
    let until = own.expires.map(|date| date.to_string());
    words.push(&session);
    if let (Some(until), true) = (&until, own.decision != Decision::Accepted) {
        words.extend(["--until", until]);
    }
    if !own.reason.is_empty() {
        words.extend(["--reason", &own.reason]);
    }
    words.push("--share");
    let command = words
        .into_iter()
        .map(shell::quoted)
        .collect::<Vec<_>>()
        .join(" ");
    let there = format!(
        "{} still {}s {id} (by {})",
        crate::disposition::SHARED,
        verb(shared.decision),
        shared.owner
    );
    let lines = [
        format!("note: {there}, and in gate mode only that file counts"),
        format!("hint: to change it: {command}"),
    ];
    lines
        .iter()
        .map(|line| format!("{}\n", Inert::new(line)))
        .collect()
}

/// Returns the command that records a decision.
fn verb(decision: Decision) -> &'static str {
    match decision {
        Decision::Accepted => "accept",
        Decision::Rejected => "reject",
        Decision::Deferred => "defer",
    }
}

/// Prints the commands that share the decisions with others.
pub(super) fn committed() -> Result<ExitStatus> {
    print(&to_commit())
}

fn to_commit() -> String {
    format!(
        "commit {} to share the decision\n",
        crate::disposition::SHARED
    )
}

/// Returns ` at FILE:LINE` of a finding.
fn at(finding: &wire::Finding) -> String {
    match (&finding.file, finding.line) {
        (Some(file), Some(line)) => format!(" at {file}:{line}"),
        (Some(file), None) => format!(" in {file}"),
        (None, _) => String::new(),
    }
}

pub(super) fn findings(context: &Context, args: &Findings) -> Result<ExitStatus> {
    let opened = OpenedReview::new(context, &args.session)?;
    let globs = Globs::new(&args.file).map_err(|e| Error::usage(format!("--file: {e}")))?;
    let mut all = list(&opened.here(context), &opened.session)?;
    all.retain(|l| is_wanted(l, args, &globs));
    if args.format == Format::Json {
        let proposals = all.iter().filter_map(proposal).collect();
        let findings = all.into_iter().map(|l| l.finding).collect();
        let (schema_version, review_id) = (wire::SCHEMA_VERSION, opened.id.to_string());
        let listed = wire::Findings {
            schema_version,
            review_id,
            findings,
            proposals,
        };
        return write(|out| wire::write(&listed, out));
    }
    let mut text = String::new();
    // The columns of a list fit their longest entries.
    let width = all
        .iter()
        .map(|l| status(&l.finding).len())
        .fold(STATUS, usize::max);
    let id_width = all.iter().map(|l| l.finding.id.len()).fold(ID, usize::max);
    for ListedFinding {
        finding: f,
        entry,
        proposal,
    } in &all
    {
        let status = status(f);
        let id = if f.disposition == Disposition::Fixed {
            "-"
        } else {
            &f.id
        };
        let place = match (&f.file, f.line) {
            (Some(file), Some(line)) => format!("{file}:{line}  "),
            (Some(file), None) => format!("{file}  "),
            (None, _) => String::new(),
        };
        let line = format!(
            "{id:<id_width$} {:<10} {status:<width$}  {place}{}: {}",
            severity(f.severity),
            f.rule_id,
            f.title
        );
        text.push_str(&format!("{}\n", Inert::new(line)));
        if let Some(entry) = entry {
            text.push_str(&format!("     {}\n", Inert::new(explained(entry))));
        }
        if let Some(entry) = proposal {
            let line = format!("proposed: {} {}", entry.decision.name(), explained(entry));
            let command = format!("claude-reviewer confirm {} --session {}", f.id, opened.id);
            text.push_str(&format!(
                "     {}\n     to record it: {}\n",
                Inert::new(line),
                Inert::new(command)
            ));
        }
    }
    if all.is_empty() && !context.global.quiet {
        text.push_str(&format!("no such findings in review {}\n", opened.id));
    }
    print(&text)
}

/// Characters of the columns of IDs and of statuses, at least.
const ID: usize = 4;
const STATUS: usize = 8;

/// Describes a decision: its author, end date and reason.
fn explained(entry: &DecisionEntry) -> String {
    let until = entry
        .expires
        .map(|date| format!(" until {date}"))
        .unwrap_or_default();
    let reason = if entry.reason.is_empty() {
        String::new()
    } else {
        format!(": {}", entry.reason)
    };
    format!("by {}{until}{reason}", entry.owner)
}

fn proposal(listed: &ListedFinding) -> Option<wire::Proposal> {
    let entry = listed.proposal.as_ref()?;
    Some(wire::Proposal {
        id: listed.finding.id.clone(),
        fingerprint: listed.finding.fingerprint.clone(),
        disposition: entry.decision.into(),
        decided: decision(entry),
    })
}

fn is_wanted(listed: &ListedFinding, args: &Findings, globs: &Globs) -> bool {
    let f = &listed.finding;
    let is_status = args.status.is_empty() || args.status.iter().any(|s| has_status(f, *s));
    let is_severity =
        args.severity.is_empty() || args.severity.iter().any(|s| of(*s) == f.severity);
    let is_file = args.file.is_empty()
        || f.file
            .as_deref()
            .is_some_and(|p| globs.matches(&RepoPath::from(p)));
    is_status && is_severity && is_file
}

/// Returns true if a finding has a status. A finding that is suppressed or waived needs no
/// decision.
fn has_status(finding: &wire::Finding, status: StatusArg) -> bool {
    match status {
        StatusArg::Pending => finding.is_pending(),
        other => disposition(other) == finding.disposition,
    }
}

fn disposition(status: StatusArg) -> Disposition {
    match status {
        StatusArg::Pending => Disposition::Pending,
        StatusArg::Accepted => Disposition::Accepted,
        StatusArg::Rejected => Disposition::Rejected,
        StatusArg::Deferred => Disposition::Deferred,
        StatusArg::Fixed => Disposition::Fixed,
    }
}

fn status(finding: &wire::Finding) -> &'static str {
    match finding.disposition {
        Disposition::Pending if finding.waived.is_some() => "waived",
        Disposition::Pending if finding.suppressed.is_some() => "suppressed",
        Disposition::Pending => "pending",
        Disposition::Accepted => "accepted",
        Disposition::Rejected => "rejected",
        Disposition::Deferred => "deferred",
        Disposition::Fixed => "fixed",
    }
}

fn of(severity: SeverityArg) -> wire::Severity {
    match severity {
        SeverityArg::Critical => wire::Severity::Critical,
        SeverityArg::Major => wire::Severity::Major,
        SeverityArg::Minor => wire::Severity::Minor,
        SeverityArg::Suggestion => wire::Severity::Suggestion,
    }
}

fn severity(severity: wire::Severity) -> &'static str {
    match severity {
        wire::Severity::Critical => "critical",
        wire::Severity::Major => "major",
        wire::Severity::Minor => "minor",
        wire::Severity::Suggestion => "suggestion",
    }
}
