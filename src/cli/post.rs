//! `post`: publishes a stored review of a pull request, without asking models or rules again.

use super::history::{find, store};
use super::pr::{self, PostPart, Publication};
use super::stdout::print;
use super::{Context, signals};
use crate::error::{Error, ExitStatus, Result};
use crate::finding::Origin;
use crate::git::Repo;
use crate::policy::RulesPolicy;
use crate::review::{Record, Review};
use crate::rounds::selection::{Person, Selection, settle};
use crate::rounds::{self, recall};
use crate::rules::RuleSet;
use crate::shell;
use crate::stop::Stop;
use crate::untrusted::Inert;
use crate::wire::Report;
use crate::wire::stored::{PullName, Session};
use std::io::Write as _;

/// Arguments of `post`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Once a finding of the review has a decision, only accepted findings are posted. Rejected and deferred \
    findings are never posted, and their earlier comments are resolved. The commit status follows the verdict of the \
    review."
)]
pub(super) struct PostArgs {
    /// Stored review: an ID, `latest`, or `pr NUMBER` for the newest review of a pull request
    #[arg(value_name = "REVIEW_ID|pr NUMBER", num_args = 0..=2)]
    pub(super) target: Vec<String>,
    /// Post findings without a decision too
    #[arg(long)]
    pub(super) all: bool,
    /// Print what would be written, and write nothing
    #[arg(long)]
    pub(super) dry_run: bool,
    /// Parts to post
    #[arg(
        long,
        value_name = "PART",
        num_args = 1..,
        value_delimiter = ',',
        value_enum,
        default_values = ["comments", "summary", "status"]
    )]
    pub(super) parts: Vec<PostPart>,
    /// Remote of the forge, with `pr NUMBER` [default: origin]
    #[arg(long, value_name = "NAME")]
    pub(super) remote: Option<String>,
}

pub(super) fn run(context: &Context, args: &PostArgs) -> Result<ExitStatus> {
    let stored = Stored::find(context, args)?;
    let (review, selection) = stored.selected(context, args)?;
    let whole = stored.session.request.asked.files.is_empty();
    let again = rounds::pull_command(&Repo::open(&context.dir, &context.env)?, &stored.pull);
    let publication = Publication {
        review: &review,
        parts: &args.parts,
        whole,
        selection: &selection,
        again: Some(&again),
    };
    let forge = pr::forge_of(context, &stored.pull)?;
    let stop = Stop::default();
    let number = stored.pull.number;
    if args.dry_run {
        let (lines, failed) = publication.order(&stored.pull.base, |order| {
            forge.preview(number, order, &stop)
        })?;
        let nothing = if lines.is_empty() {
            "nothing new to post\n"
        } else {
            ""
        };
        let text: String = lines
            .iter()
            .map(|line| format!("{}\n", Inert::new(line)))
            .collect();
        print(&format!("{text}{nothing}"))?;
        return Ok(ended(
            context,
            publication
                .left_out()
                .into_iter()
                .chain(withheld(&review))
                .collect(),
            &failed,
        ));
    }
    let posted = signals::heard(&stop, || {
        publication.order(&stored.pull.base, |order| {
            forge.publish(number, order, &stop)
        })
    })?;
    let mut said = pr::said(&posted);
    said.extend(publication.left_out());
    said.extend(withheld(&review));
    Ok(signals::ended(&stop).unwrap_or_else(|| ended(context, said, &posted.failed)))
}

/// Returns a note about texts that are not posted, because they may contain words of tickets.
fn withheld(review: &Review) -> Option<String> {
    let tickets = crate::report::unknown_tickets(review);
    let has_texts = review
        .findings
        .iter()
        .any(|f| matches!(f.origin(), Origin::Backend(_)));
    let names = tickets.join(", ");
    (has_texts && !tickets.is_empty()).then(|| {
        format!(
            "note: texts of findings were left out, because the text of {names} is not known on this machine any more"
        )
    })
}

/// Prints what was posted and what was not, on standard error.
fn ended(context: &Context, mut said: Vec<String>, failed: &[String]) -> ExitStatus {
    if context.global.quiet {
        said.clear();
    }
    said.extend(failed.iter().map(|why| format!("note: not posted: {why}")));
    let text: String = said
        .iter()
        .map(|line| format!("{}\n", Inert::new(line)))
        .collect();
    // A closed stderr leaves no way to report the error.
    let _ = std::io::stderr().write_all(text.as_bytes());
    if failed.is_empty() {
        ExitStatus::Pass
    } else {
        ExitStatus::Incomplete
    }
}

/// A stored review of a pull request.
struct Stored {
    session: Session,
    pull: PullName,
    /// The change of the last round.
    change: Vec<u8>,
}

impl Stored {
    /// Finds the review that the arguments name.
    ///
    /// # Errors
    /// Usage: the review is not found, is not of a pull request, or its files were edited.
    fn find(context: &Context, args: &PostArgs) -> Result<Self> {
        let name = match args.target.as_slice() {
            [] => "latest".to_owned(),
            [id] if id != "pr" && args.remote.is_none() => id.clone(),
            [word, number] if word == "pr" => of_pull(context, number, args.remote.as_deref())?,
            _ => {
                return Err(Error::usage("invalid name of a review")
                    .hint("name a stored review: claude-reviewer post latest")
                    .hint("or a pull request: claude-reviewer post pr NUMBER"));
            }
        };
        let (store, id, session) = find(context, &name)?;
        if let Some(edited) = store.edited(&id)? {
            return Err(
                Error::usage(format!("cannot post the review {id}: {edited}"))
                    .hint(format!("claude-reviewer history verify {id}")),
            );
        }
        let Some(pull) = session.request.pull.clone() else {
            return Err(
                Error::usage(format!("the review {id} is not of a pull request"))
                    .hint("claude-reviewer pr list")
                    .hint("claude-reviewer review pr NUMBER"),
            );
        };
        let change = store.change(&id, session.rounds.last().map_or(1, |r| r.review.round))?;
        Ok(Self {
            session,
            pull,
            change,
        })
    }

    /// Returns the review of the last round, and the selection of findings to publish.
    fn selected(&self, context: &Context, args: &PostArgs) -> Result<(Review, Selection)> {
        let rules = RuleSet::new(&RulesPolicy::default(), &[])?;
        let repo = Repo::open(&context.dir, &context.env)?;
        let again = format!(
            "review it again: {}",
            rounds::pull_command(&repo, &self.pull)
        );
        let last = self.session.rounds.last().map(|r| &r.review);
        let last =
            last.ok_or_else(|| Error::usage("the review has no round").hint(again.clone()))?;
        let mut review = recall::review(&last.report, &self.change);
        review.source.label.clone_from(&self.session.request.label);
        // Words of tickets are removed from the texts, so the tickets must be known.
        crate::context::recall(&mut review.context, &context.env, repo.worktree());
        review.record = Some(Record {
            text: self.change.clone(),
            left_out: last.change.left_out.clone(),
        });
        let selection = Selection::of_review(&review, last.since.as_ref(), &rules);
        if context.env.is_ci() {
            return Ok((review, selection));
        }
        let (place, _) = store(context)?;
        let person = Person {
            repo: &repo,
            place: &place,
            rules: &rules,
            now: jiff::Timestamp::now(),
        };
        let reports: Vec<&Report> = self
            .session
            .rounds
            .iter()
            .map(|r| &r.review.report)
            .collect();
        let selection = selection.decided_by(&person, &reports, args.all)?;
        if !self.session.request.asked.gate {
            settle(&mut review, &selection, &again)?;
        }
        Ok((review, selection))
    }
}

/// Returns the ID of the newest review of a pull request of a remote's project.
fn of_pull(context: &Context, number: &str, remote: Option<&str>) -> Result<String> {
    let number = crate::forge::address::number_of(number).ok_or_else(|| {
        Error::usage(format!(
            "{} is not the number of a pull request",
            Inert::new(number)
        ))
        .hint("claude-reviewer pr list")
    })?;
    let (forge, project) = pr::project_of(context, remote)?;
    let id = match store(context)?.1 {
        Some(store) => rounds::newest(&store, |pull: &PullName| {
            pull.number == number && pull.forge == forge && pull.project == project
        })?,
        None => None,
    };
    let id = id.ok_or_else(|| {
        let of = remote
            .map(|name| format!(" --remote {}", shell::quoted(name)))
            .unwrap_or_default();
        Error::usage(format!("no review of pull request #{number} is stored"))
            .hint(format!("claude-reviewer review pr {number}{of}"))
    })?;
    Ok(id.to_string())
}
