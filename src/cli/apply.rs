//! `apply`: writes the replacements of findings into the worktree.

use super::Context;
use super::history::{find, request};
use super::patch;
use super::review::in_world;
use super::stdout::print;
use crate::error::{Error, ExitStatus, Result};
use crate::git::Repo;
use crate::history::{SessionId, Store};
use crate::request::{ReviewRequest, Source};
use crate::review::{self, StoreLocation};
use crate::rounds;
use crate::rounds::apply::{Edits, FindingsToApply, Reviewed, Target, effect, plan};
use crate::rounds::worktree::next_round;
use crate::shell;
use crate::stop::Stop;
use crate::untrusted::Inert;
use crate::wire;
use crate::wire::stored::Session;
use std::path::PathBuf;

/// Arguments of `apply`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Lines are replaced only if they are as they were reviewed. Nothing is written if one of the named \
    findings cannot be applied. The index stays as it is. Afterwards the rules run on the changed files."
)]
pub(super) struct ApplyArgs {
    /// Findings: IDs such as F3, or the first digits of fingerprints
    #[arg(value_name = "FINDING", conflicts_with = "all_safe")]
    findings: Vec<String>,
    /// Apply every finding of at least medium confidence that has a replacement
    #[arg(long)]
    all_safe: bool,
    /// Stored review that has the findings: an ID, or `latest`
    #[arg(long, value_name = "ID", default_value = "latest")]
    session: String,
    /// Print the patch and write nothing
    #[arg(long)]
    dry_run: bool,
    /// Write the patch to a file instead of the worktree
    #[arg(long, value_name = "FILE", conflicts_with = "dry_run")]
    patch: Option<PathBuf>,
}

pub(super) fn run(context: &Context, args: &ApplyArgs) -> Result<ExitStatus> {
    if args.findings.is_empty() && !args.all_safe {
        return Err(Error::usage("no finding is named")
            .hint("name findings of the list: claude-reviewer findings")
            .hint("or apply every safe replacement: claude-reviewer apply --all-safe"));
    }
    if let Some(file) = &args.patch {
        patch::check(&context.dir.join(file), &command(args))?;
    }
    let (store, id, session) = find(context, &args.session)?;
    let last = Last::read(context, &store, (id, &session))?;
    let (place, report, reviewed) = (&last.place, last.report, last.reviewed());
    let wanted = if args.all_safe {
        FindingsToApply::AllSafe
    } else {
        FindingsToApply::Named(args.findings.clone())
    };
    let edits = plan(&target(context, place)?, &reviewed, &wanted)?;
    let mut text = String::new();
    for (id, why) in &edits.left_out {
        text.push_str(&format!("left out {id}: {}\n", Inert::new(why)));
    }
    if let Some(commit) = reviewed
        .elsewhere(None)
        .filter(|_| !edits.left_out.is_empty())
    {
        text.push_str(&format!(
            "hint: the reviewed commit is not checked out: git checkout {commit}\n"
        ));
    }
    if edits.is_empty() {
        text.push_str("nothing to apply\n");
        return print(&text);
    }
    if args.dry_run {
        let lines: Vec<String> = edits
            .shown_patch()?
            .lines()
            .map(|l| Inert::new(l).to_string())
            .collect();
        return print(&format!("{text}{}\n", lines.join("\n")));
    }
    if let Some(file) = &args.patch {
        let file = context.dir.join(file);
        patch::write(&file, &edits.patch(), &command(args))?;
        let shown = Inert::new(file.display().to_string()).to_string();
        text.push_str(&format!(
            "wrote {shown}; apply it with: git apply {}\n",
            Inert::new(patch::quoted(&file))
        ));
        return print(&text);
    }
    edits.write()?;
    text.push_str(&format!("applied {}\n", edits.applied.join(", ")));
    text.push_str(&checked(context, &edits, (&session, &report.findings)));
    print(&text)
}

/// Returns the command without its option for a patch.
fn command(args: &ApplyArgs) -> String {
    let names = if args.all_safe {
        vec!["--all-safe".to_owned()]
    } else {
        args.findings.clone()
    };
    let words = [names, vec!["--session".to_owned(), args.session.clone()]].concat();
    format!(
        "claude-reviewer apply {}",
        words
            .iter()
            .map(|w| shell::quoted(w))
            .collect::<Vec<_>>()
            .join(" ")
    )
}

/// Writes the replacements of named findings into the worktree. Returns the result as lines of
/// text.
///
/// # Errors
/// Errors of [`plan`] and [`Edits::write`].
pub(super) fn named(
    context: &Context,
    (store, id, session): (&Store, SessionId, &Session),
    findings: Vec<String>,
) -> Result<Vec<String>> {
    let last = Last::read(context, store, (id, session))?;
    let (place, report, reviewed) = (&last.place, last.report, last.reviewed());
    let edits = plan(
        &target(context, place)?,
        &reviewed,
        &FindingsToApply::Named(findings),
    )?;
    edits.write()?;
    let mut lines = vec![format!("applied {}", edits.applied.join(", "))];
    lines.extend(
        checked(context, &edits, (session, &report.findings))
            .lines()
            .map(str::to_owned),
    );
    Ok(lines)
}

/// The last round of a stored review, and the folder that its replacements are written to.
struct Last<'s> {
    id: String,
    report: &'s wire::Report,
    change: Vec<u8>,
    place: StoreLocation,
}

impl<'s> Last<'s> {
    /// Reads the last round.
    ///
    /// # Errors
    /// Usage: the review has no round. Errors of the store and of the repository.
    fn read(
        context: &Context,
        store: &Store,
        (id, session): (SessionId, &'s Session),
    ) -> Result<Self> {
        let (place, _) = rounds::open(&request(context), &context.env)?;
        let last = session.rounds.last().map(|r| &r.review.report);
        let report = last.ok_or_else(|| Error::usage(format!("review {id} has no round")))?;
        let change = store.change(&id, u32::try_from(session.rounds.len()).unwrap_or(u32::MAX))?;
        Ok(Self {
            id: id.to_string(),
            report,
            change,
            place,
        })
    }

    fn reviewed(&self) -> Reviewed<'_> {
        Reviewed {
            id: &self.id,
            findings: &self.report.findings,
            change: &self.change,
            head: self.report.source.head.as_deref(),
            checked_out: self.place.head.as_deref(),
        }
    }
}

fn target(context: &Context, place: &StoreLocation) -> Result<Target> {
    Target::of(&Repo::open(&context.dir, &context.env)?, &place.top)
}

/// Runs the rules on the changed files, and reports which of their findings are gone and which are
/// new.
fn checked(
    context: &Context,
    edits: &Edits,
    (session, before): (&Session, &[wire::Finding]),
) -> String {
    let mut request = ReviewRequest::new(Source::Changes { base: None }, context.dir.clone());
    request.config.clone_from(&context.global.config);
    request.offline = true;
    let stop = Stop::default();
    let review = match in_world(context, &stop, |world| review::run(&request, world)) {
        Ok(review) => review,
        Err(e) => return format!("the result was not checked: {}\n", Inert::new(e.message)),
    };
    let effect = effect(edits, before, &review);
    let mut lines: Vec<String> = Vec::new();
    lines.extend(
        effect
            .gone
            .iter()
            .map(|id| format!("gone: {id} ({})", rule_of(before, id))),
    );
    lines.extend(
        effect
            .still_there
            .iter()
            .map(|id| format!("still there: {id} ({})", rule_of(before, id))),
    );
    let repo = Repo::open(&context.dir, &context.env);
    let next = repo.map_or_else(
        |e| Inert::new(e.message).to_string(),
        |repo| next_round(session, &repo),
    );
    lines.extend(
        effect
            .unchecked
            .iter()
            .map(|id| format!("not checked: {id} is a claim of a model; {next}")),
    );
    lines.extend(effect.new.iter().map(|what| format!("new: {what}")));
    lines
        .iter()
        .map(|line| format!("{}\n", Inert::new(line)))
        .collect()
}

/// Returns the ID of the rule of a finding; empty if the finding is not in the list.
fn rule_of<'f>(findings: &'f [wire::Finding], id: &str) -> &'f str {
    findings
        .iter()
        .find(|f| f.id == id)
        .map(|f| f.rule_id.as_str())
        .unwrap_or_default()
}
