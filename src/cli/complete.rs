//! `complete`: closes a stored review.

use super::Context;
use super::history::store;
use super::stdout::print;
use crate::ai::context;
use crate::error::{Error, ExitStatus, Result};
use crate::history::Closing;
use crate::policy::RulesPolicy;
use crate::rounds;
use crate::rules::RuleSet;
use crate::untrusted::Inert;
use crate::wire::stored::Status;

/// Arguments of `complete`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Approval needs --force if the last round blocks or is incomplete, if an earlier blocking \
    finding passes only because the policy changed, or if the last round did not check it. The review then records \
    who approved it and which findings were open."
)]
pub(super) struct CompleteArgs {
    /// Review ID, or `latest`
    #[arg(value_name = "REVIEW_ID")]
    id: String,
    /// Final status
    #[arg(long, value_enum)]
    status: CompletionArg,
    /// Text to store with the review
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    notes: Option<String>,
    /// Approve despite blocking findings or an incomplete last round
    #[arg(long)]
    force: bool,
}

/// How a review can end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum CompletionArg {
    Approved,
    Abandoned,
    Merged,
}

pub(super) fn run(context: &Context, args: &CompleteArgs) -> Result<ExitStatus> {
    let request = super::history::request(context);
    let id = rounds::named(&args.id, &request, &context.env)?;
    let (place, store) = store(context)?;
    let store = store.ok_or_else(|| {
        Error::usage(format!("review {id} not found"))
            .hint("list stored reviews: claude-reviewer history")
    })?;
    let status = match args.status {
        CompletionArg::Approved => Status::Approved,
        CompletionArg::Abandoned => Status::Abandoned,
        CompletionArg::Merged => Status::Merged,
    };
    // All text of a person is redacted before it is stored.
    let rules = RuleSet::new(&RulesPolicy::default(), &[])?;
    let notes = args
        .notes
        .as_deref()
        .map(|text| context::summary(text, &rules))
        .filter(|n| !n.is_empty());
    let actor = context::summary(&place.actor, &rules);
    let closing = Closing {
        status,
        notes,
        actor,
        via: "cli",
        now: jiff::Timestamp::now(),
    };
    let session = store.complete(&id, closing, args.force)?;
    let mut text = String::new();
    if !context.global.quiet {
        let word = session.status.word().replace('_', " ");
        text = format!("review {id} is {word}\n");
        let open = session
            .completion
            .iter()
            .filter_map(|c| c.entries.last())
            .map(|e| e.open.len())
            .sum::<usize>();
        if open > 0 {
            text.push_str(&format!(
                "recorded as open: {open} {}\n",
                if open == 1 {
                    "finding that blocked"
                } else {
                    "findings that blocked"
                }
            ));
        }
        text.push_str(&format!("head {}\n", Inert::new(&session.head)));
    }
    print(&text)
}
