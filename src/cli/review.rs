//! `review`: flags to a request, the request to a review, the review to reports and an exit code.

mod args;
mod event;
mod output;
mod pull;
mod receipts;
mod request;

pub(super) use args::{Options, ReviewArgs, Verify, command_with, duration, report_target, usd};
pub(super) use output::{Printed, refuse_shared_targets, write_printed};

use super::{Context, background, pr, signals};
use crate::error::{Error, ExitStatus, Result};
use crate::forge::Issues;
use crate::hooks::{self, Hook};
use crate::progress;
use crate::receipt;
use crate::report;
use crate::report::jsonl::JsonLinesPrinter;
use crate::request::Source;
use crate::review::{FindingSink, Review, World};
use crate::rounds::{self, Ask, Done};
use crate::stop::Stop;
use crate::untrusted::Inert;
use crate::wire::stored::Action;
use args::SourceArg;
use receipts::ReceiptUse;
use std::io::{IsTerminal as _, Write as _};

pub(super) fn run(context: &Context, args: &ReviewArgs) -> Result<ExitStatus> {
    guarded(
        context,
        args,
        if args.options.accept_receipt {
            ReceiptUse::ReceiptFirst
        } else {
            ReceiptUse::Own
        },
    )
}

pub(super) fn verify(context: &Context, args: Verify) -> Result<ExitStatus> {
    let Verify {
        head,
        base,
        fetch,
        format,
        output,
        report,
        block_on,
        waive,
    } = args;
    let options = Options {
        fetch,
        format,
        output,
        report,
        block_on,
        waive,
        ..Options::default()
    };
    guarded(
        context,
        &ReviewArgs {
            source: Some(SourceArg::Branch { head, base }),
            options,
        },
        ReceiptUse::ReceiptOnly,
    )
}

/// Runs the review, and prints an error with the summary line after it. A panic becomes an error.
fn guarded(context: &Context, args: &ReviewArgs, receipts: ReceiptUse) -> Result<ExitStatus> {
    let stop = Stop::default();
    let unwind = std::panic::AssertUnwindSafe(|| review(context, args, receipts, &stop));
    let result = std::panic::catch_unwind(unwind).unwrap_or_else(|_| {
        Err(Error::incomplete("an internal error stopped the review")
            .hint("report the lines above as a bug"))
    });
    if let Err(e) = &result {
        // The summary is the last line, so the error is printed here and not by `main`.
        super::print_error(e);
        let status = signals::ended(&stop).unwrap_or(e.status());
        eprint_line(&report::summary_of_error(status));
        return Ok(status);
    }
    result
}

/// Reviews, and writes the reports: flags to a request, the request to a review, the review to
/// reports and an exit code.
fn review(
    context: &Context,
    args: &ReviewArgs,
    receipts: ReceiptUse,
    stop: &Stop,
) -> Result<ExitStatus> {
    let o = &args.options;
    if args.source.is_none()
        && o.hook
            .is_some_and(|stage| stage.hook(&context.env) == Hook::PostCommit)
    {
        return Ok(background::after_commit(context));
    }
    if o.hook.is_some() && hooks::skipped(&context.env) {
        eprint_line("claude-reviewer: skipped, because CLAUDE_REVIEWER_SKIP is set");
        return Ok(ExitStatus::Pass);
    }
    output::refuse_shared_targets(context, o)?;
    request::refuse_forges_offline(args)?;
    let pull = find_pull(context, args, stop)?;
    let ask = ask(context, args, pull.as_ref())?;
    if let Some(review) = receipts::accepted(context, receipts, &ask.request, stop)? {
        return signals::heard(stop, || Ok(report_receipt(context, o, &ask, review, stop)));
    }
    let running = background::before_push(context, &ask.request);
    let printer = output::printer(o);
    // Lines of the report and a progress line would overwrite each other on one terminal.
    let is_shared = printer.is_some() && std::io::stdout().is_terminal();
    let is_quiet = context.global.quiet || is_shared;
    let mut done = in_world_with(context, is_quiet, stop, |world| {
        let world = World {
            findings: printer.as_ref().map(|p| p as &dyn FindingSink),
            ..*world
        };
        rounds::review_with(&ask, &world, |review: &mut Review| {
            pull::heed(context, o, pull.as_ref(), review, stop)
        })
    })?;
    background::after_push(running, &done.review);
    // Without models, the review of a change has no handler: a signal ends the process at once, and
    // a handler costs as much as scanning a file.
    let has_handler = matches!(
        ask.request.source,
        Source::Ends(_) | Source::Tree(_) | Source::History { .. }
    );
    let is_heard = !done.review.rules_only || has_handler || !o.post.is_empty() || o.receipt;
    let reports = (o, printer.as_ref());
    let mut finish = || finish(context, reports, &ask, pull.as_ref(), &mut done, stop);
    Ok(if is_heard {
        signals::heard(stop, finish)
    } else {
        finish()
    })
}

/// Finds the pull request under review: the one that the source names, or the one that the results
/// are published on, whose base the review must use.
fn find_pull(context: &Context, args: &ReviewArgs, stop: &Stop) -> Result<Option<pr::FoundPull>> {
    match &args.source {
        Some(SourceArg::Pr { pull, remote }) => {
            pr::find(context, pull, remote.as_deref(), stop).map(Some)
        }
        None
        | Some(SourceArg::Branch {
            head: None,
            base: None,
        }) if !args.options.post.is_empty() => pr::of_fork(context, stop),
        _ => Ok(None),
    }
}

/// Builds the review that the flags request, and the session that it continues.
fn ask(context: &Context, args: &ReviewArgs, pull: Option<&pr::FoundPull>) -> Result<Ask> {
    let o = &args.options;
    let request = request::request(context, args, pull)?;
    if o.receipt {
        receipt::possible(&request, &context.env)?;
    }
    let follow_up = match o.follow_up.as_deref() {
        Some(name) => Some(rounds::named(name, &request, &context.env)?),
        None => pull.and_then(|found| pull::earlier(context, o, found, &request)),
    };
    let response = o
        .response
        .as_deref()
        .map(|file| request::response(context, file))
        .transpose()?;
    Ok(Ask {
        follow_up,
        response,
        save: request::save(args),
        pull: pull.map(pr::FoundPull::name),
        via: request.hook.map_or("cli", Hook::name),
        request,
    })
}

/// Writes the reports of a review that asked no model because of a receipt, or because none may be
/// asked, and returns the exit code.
fn report_receipt(
    context: &Context,
    o: &Options,
    ask: &Ask,
    mut review: Review,
    stop: &Stop,
) -> ExitStatus {
    let unwritten = output::write_reports(context, (o, None), ask.request.authority, &review);
    review.exit = signals::ended(stop).unwrap_or_else(|| output::after(review.exit, unwritten));
    print_summary(context, o, &review);
    review.exit
}

/// Publishes the review, writes its reports, signs its receipt, and returns the exit code.
/// `printer` has printed a part of the report.
fn finish(
    context: &Context,
    (o, printer): (&Options, Option<&JsonLinesPrinter>),
    ask: &Ask,
    pull: Option<&pr::FoundPull>,
    done: &mut Done,
    stop: &Stop,
) -> ExitStatus {
    let mut messages = match o.post.is_empty() {
        true => pull
            .map(|found| pull::next(context, o, found, done))
            .unwrap_or_default(),
        false => pull::publish(context, o, pull, done, stop),
    };
    messages.extend(
        pull.iter()
            .flat_map(|found| pull::overruled(context, o, found, done)),
    );
    // Reports show the status, so a signal during the publication has to be in it before they are
    // written. A signal during the rest of this function sets it again below.
    done.review.exit = signals::ended(stop).unwrap_or(done.review.exit);
    let unwritten =
        output::write_reports(context, (o, printer), ask.request.authority, &done.review);
    tell(context, done);
    messages
        .iter()
        .for_each(|line| eprint_line(&Inert::new(line).to_string()));
    if o.receipt && stop.signal().is_none() {
        receipts::sign(context, &ask.request, done, stop);
    }
    let exit = output::after(done.review.exit, unwritten);
    done.review.exit = signals::ended(stop).unwrap_or(exit);
    print_summary(context, o, &done.review);
    done.review.exit
}

/// Runs work that shows progress, and removes the progress line.
pub(super) fn in_world<T>(context: &Context, stop: &Stop, work: impl FnOnce(&World<'_>) -> T) -> T {
    in_world_with(context, context.global.quiet, stop, work)
}

/// Runs work that shows progress unless `is_quiet`, and removes the progress line.
fn in_world_with<T>(
    context: &Context,
    is_quiet: bool,
    stop: &Stop,
    work: impl FnOnce(&World<'_>) -> T,
) -> T {
    let progress = progress::of(&context.env, is_quiet);
    let now = jiff::Timestamp::now();
    work(&World {
        env: &context.env,
        progress: progress.as_ref(),
        now,
        stop,
        script: None,
        agent: None,
        findings: None,
        trackers: Some(&Issues),
    })
}

/// Prints the state of earlier findings, and why the review was not stored.
fn tell(context: &Context, done: &Done) {
    if let (Some(since), false) = (&done.stored.since, context.global.quiet) {
        eprint_line(&format!(
            "round {}: {}, since round {}",
            done.stored.round,
            report::changes(since),
            since.round
        ));
        for why in &done.stored.advice.circling {
            eprint_line(&format!("round {}: {}", done.stored.round, Inert::new(why)));
        }
        eprint_line(&format!("advice: {}", Inert::new(&done.stored.advice.text)));
        if let (Action::Complete, Some(session)) = (done.stored.advice.action, &done.review.session)
        {
            eprint_line(&format!(
                "hint: claude-reviewer complete {} --status approved",
                session.id
            ));
        }
    }
    if let Some(why) = &done.unsaved {
        eprint_line(&format!("note: history not saved: {}", Inert::new(why)));
    }
}

/// Prints the last line of a review on standard error. On a terminal the report has the same
/// information, so this line for scripts is omitted there unless the review failed or `-v` is
/// given. A hook that lets a commit pass prints the verdict instead, because it printed no report.
fn print_summary(context: &Context, o: &Options, review: &Review) {
    let passed = review.exit == ExitStatus::Pass;
    if passed && context.global.quiet {
        return;
    }
    if !passed || context.global.verbose > 0 || !std::io::stderr().is_terminal() {
        eprint_line(&report::summary_line(review));
    } else if o.hook.is_some() && output::is_terse(o, review) {
        eprint_line(&report::verdict_line(review));
    }
}

fn eprint_line(line: &str) {
    let mut bytes = line.as_bytes().to_vec();
    bytes.push(b'\n');
    // A failure to write to standard error cannot be reported.
    let _ = std::io::stderr().write_all(&bytes);
}
