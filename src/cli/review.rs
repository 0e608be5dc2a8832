//! `review`: builds a request from flags, and prints reports.

mod args;
mod event;
mod output;
mod pull;

pub(super) use args::{ReviewArgs, Verify, command_with, duration, usd};

use super::{Context, background, pr, signals};
use crate::bounded;
use crate::error::{Error, ExitStatus, Result};
use crate::forge::Issues;
use crate::hooks::{self, Hook};
use crate::progress;
use crate::receipt::{self, Issued, Standing};
use crate::report::{self, ReportFormat};
use crate::request::{
    Authority, Brief, CacheUse, Depth, Input, OnBlock, OnIncomplete, Overrides, ReviewRequest,
    Source,
};
use crate::review::{self, Review, World};
use crate::rounds::response::GivenResponse;
use crate::rounds::{self, Ask, Done, Save};
use crate::stop::Stop;
use crate::untrusted::Inert;
use crate::wire::stored::Action;
use args::{DepthArg, OnIncompleteArg, Options, SourceArg};
use std::io::{IsTerminal as _, Write as _};
use std::path::Path;

/// Use of receipts in place of model requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ReceiptUse {
    /// No receipt is read.
    Own,
    /// Models are asked if no receipt is valid.
    ReceiptFirst,
    /// No model is asked.
    ReceiptOnly,
}

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

fn guarded(context: &Context, args: &ReviewArgs, word: ReceiptUse) -> Result<ExitStatus> {
    let stop = Stop::default();
    let unwind = std::panic::AssertUnwindSafe(|| review(context, args, word, &stop));
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

fn review(
    context: &Context,
    args: &ReviewArgs,
    word: ReceiptUse,
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
    refuse_forges_offline(args)?;
    let pull = match &args.source {
        Some(SourceArg::Pr { pull, remote }) => {
            Some(pr::find(context, pull, remote.as_deref(), stop)?)
        }
        // A review that is published must use the base of the pull request that it is published to.
        None
        | Some(SourceArg::Branch {
            head: None,
            base: None,
        }) if !o.post.is_empty() => pr::of_fork(context, stop)?,
        _ => None,
    };
    let mut request = request(context, args, pull.as_ref())?;
    request.record |= !o.post.is_empty();
    if o.receipt {
        receipt::possible(&request, &context.env)?;
    }
    let follow_up = match o.follow_up.as_deref() {
        Some(name) => Some(rounds::named(name, &request, &context.env)?),
        None => pull
            .as_ref()
            .and_then(|found| pull::earlier(context, o, found, &request)),
    };
    let response = o
        .response
        .as_deref()
        .map(|file| response(context, file))
        .transpose()?;
    let save = match (o.no_save, o.require_history) {
        (true, _) => Save::No,
        (_, true) => Save::Required,
        _ => Save::Yes,
    };
    let via = request.hook.map_or("cli", Hook::name);
    let asked = request.clone();
    if word != ReceiptUse::Own {
        let (mut review, standing) =
            in_world(context, stop, |world| receipt::verify(&asked, world))?;
        match standing {
            Standing::Refused(reasons) if word == ReceiptUse::ReceiptFirst => {
                for why in reasons {
                    eprint_line(&format!("note: receipt: {}", Inert::new(why)));
                }
            }
            _ => {
                return signals::heard(stop, || {
                    let unwritten = output::write_reports(context, o, asked.authority, &review);
                    review.exit = signals::ended(stop)
                        .unwrap_or_else(|| output::after(review.exit, unwritten));
                    print_summary(context, o, &review);
                    Ok(review.exit)
                });
            }
        }
    }
    let running = background::before_push(context, &request);
    let name = pull.as_ref().map(pr::FoundPull::name);
    let ask = Ask {
        request,
        follow_up,
        response,
        save,
        pull: name,
        via,
    };
    let mut done = in_world(context, stop, |world| {
        rounds::review_with(&ask, world, |review: &mut Review| {
            pull::heed(context, o, pull.as_ref(), review, stop)
        })
    })?;
    background::after_push(running, &done.review);
    let is_heard = !done.review.rules_only
        || matches!(asked.source, Source::Ends(_))
        || !o.post.is_empty()
        || o.receipt;
    let mut rest = || {
        let mut said = match o.post.is_empty() {
            true => pull
                .as_ref()
                .map(|found| pull::next(context, o, found, &done))
                .unwrap_or_default(),
            false => pull::publish(context, o, pull.as_ref(), &mut done, stop),
        };
        said.extend(
            pull.iter()
                .flat_map(|found| pull::overruled(context, o, found, &done)),
        );
        done.review.exit = signals::ended(stop).unwrap_or(done.review.exit);
        let unwritten = output::write_reports(context, o, asked.authority, &done.review);
        tell(context, &done);
        said.iter()
            .for_each(|line| eprint_line(&Inert::new(line).to_string()));
        if o.receipt && stop.signal().is_none() {
            sign(context, &asked, &mut done, stop);
        }
        let exit = output::after(done.review.exit, unwritten);
        done.review.exit = signals::ended(stop).unwrap_or(exit);
        print_summary(context, o, &done.review);
        Ok(done.review.exit)
    };
    // Without models, there is no handler: a signal ends the process at once, and a handler costs
    // as much as scanning a file.
    if is_heard {
        signals::heard(stop, rest)
    } else {
        rest()
    }
}

/// Runs work that shows progress, and removes the progress line.
pub(super) fn in_world<T>(context: &Context, stop: &Stop, work: impl FnOnce(&World<'_>) -> T) -> T {
    let progress = progress::of(&context.env, context.global.quiet);
    let now = jiff::Timestamp::now();
    work(&World {
        env: &context.env,
        progress: progress.as_ref(),
        now,
        stop,
        script: None,
        agent: None,
        trackers: Some(&Issues),
    })
}

/// Rejects a source that needs a forge if `--offline` is given.
fn refuse_forges_offline(args: &ReviewArgs) -> Result<()> {
    let what = match &args.source {
        _ if !args.options.offline => return Ok(()),
        _ if !args.options.post.is_empty() => "--post publishes on a forge",
        Some(SourceArg::Pr { .. }) => "review pr reads the pull request from its forge",
        _ => return Ok(()),
    };
    Err(
        Error::usage(format!("--offline opens no socket, and {what}"))
            .hint("leave one of them out"),
    )
}

/// Signs a receipt, and reports its path or why there is none.
fn sign(context: &Context, asked: &ReviewRequest, done: &mut Done, stop: &Stop) {
    match receipt::issue(&done.review, asked, &context.env, stop) {
        Ok(Issued::Signed { key, apart }) => {
            let key = Inert::new(key.display().to_string());
            eprint_line(&format!(
                "receipt: signed with {key}, in {}",
                receipt::NOTES
            ));
            if let Some(why) = apart {
                eprint_line(&format!(
                    "note: receipt: the remote's receipts were not merged: {}",
                    Inert::new(why)
                ));
            }
            let [push, after] = receipt::recipe(asked);
            eprint_line(&format!("hint: {push}"));
            eprint_line(&format!("hint: if the push is rejected: {after}"));
        }
        Ok(Issued::NotNeeded(why)) => eprint_line(&format!("receipt: not needed: {why}")),
        Err(e) => {
            super::print_error(&e);
            // The requested receipt is missing. A worse exit code of the review stays.
            if done.review.exit == ExitStatus::Pass {
                done.review.exit = e.status();
            }
        }
    }
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

/// Reads the response to the findings of the previous round.
fn response(context: &Context, file: &Path) -> Result<GivenResponse> {
    let name = file.display();
    // One byte more than allowed, which the parser refuses.
    let limit = rounds::response::MOST as u64 + 1;
    let read = match file.as_os_str() == "-" {
        true => bounded::start(std::io::stdin().lock(), limit),
        false => {
            let path = context.dir.join(file);
            if !path.is_file() {
                return Err(Error::usage(format!(
                    "cannot read response file {name}: not a regular file"
                )));
            }
            std::fs::File::open(path).and_then(|f| bounded::start(f, limit))
        }
    };
    let bytes =
        read.map_err(|e| Error::usage(format!("cannot read response file {name}")).caused_by(&e))?;
    GivenResponse::parse(&String::from_utf8_lossy(&bytes))
}

fn request(
    context: &Context,
    args: &ReviewArgs,
    pull: Option<&pr::FoundPull>,
) -> Result<ReviewRequest> {
    let o = &args.options;
    let in_ci = context.env.is_ci()
        && matches!(args.source, None | Some(SourceArg::Branch { .. }))
        && o.hook.is_none();
    if !o.post.is_empty() && pull.is_none() && !in_ci {
        let error = Error::usage("--post needs a pull request");
        return Err(error.hint("claude-reviewer review pr NUMBER --post comments"));
    }
    let hook = o.hook.map(|stage| stage.hook(&context.env));
    let takes_fetch =
        matches!(args.source, None | Some(SourceArg::Branch { .. })) && hook.is_none();
    if o.fetch && !takes_fetch {
        return Err(Error::usage("--fetch needs `review branch`").hint("leave out --fetch"));
    }
    let mut by_author = None;
    let mut named = |head: Option<&str>, base: Option<&str>, plain: Source| -> Result<Source> {
        let Some(mut named) = event::of(context, o, head, base)? else {
            return Ok(plain);
        };
        if let Some(found) = pull {
            named = event::NamedChange {
                source: found.source(&context.env),
                summary: Some(found.brief()),
            };
        }
        by_author = named.summary;
        Ok(named.source)
    };
    let source = match (&args.source, hook) {
        (Some(_), Some(hook)) => {
            let error = Error::usage(format!(
                "the {} hook cannot be combined with a source",
                hook.name()
            ));
            return Err(error.hint("leave out --hook or the source"));
        }
        (None, Some(Hook::PrePush)) => Source::Push(hooks::push_ranges(
            &push_input()?,
            &o.hook_args,
            &context.env,
        )?),
        (None, Some(Hook::PreCommit | Hook::PostCommit)) => staged(context, &mut named)?,
        (None, None) => named(None, None, Source::Auto)?,
        (Some(source), None) => match source {
            SourceArg::Staged => staged(context, &mut named)?,
            SourceArg::Unstaged { untracked } => Source::Unstaged {
                untracked: *untracked,
            },
            SourceArg::Commit { rev, parent } => Source::Commit {
                rev: rev.clone(),
                parent: *parent,
            },
            SourceArg::Branch { head, base } => {
                let plain = Source::Branch {
                    head: head.clone(),
                    base: base.clone(),
                };
                named(head.as_deref(), base.as_deref(), plain)?
            }
            SourceArg::Pr { pull: name, .. } => {
                let found =
                    pull.ok_or_else(|| Error::usage(format!("cannot read pull request {name}")))?;
                by_author = Some(found.brief());
                found.source(&context.env)
            }
            SourceArg::Changes { base } => Source::Changes { base: base.clone() },
            SourceArg::Patch { file } => Source::Patch(input(file)),
            SourceArg::Code { files } => Source::Code(files.iter().map(|f| input(f)).collect()),
        },
    };
    let gate = match (o.gate, o.no_gate) {
        (true, _) => true,
        (_, true) => false,
        _ => context.env.is_ci() || pull.is_some(),
    };
    let naming = pull.map(pr::FoundPull::naming);
    Ok(ReviewRequest {
        source,
        dir: context.dir.clone(),
        files: o.files.clone(),
        files_name: "--files",
        authority: if gate {
            Authority::Base
        } else {
            Authority::Worktree
        },
        config: context.global.config.clone(),
        overrides: Overrides {
            block_on: o.block_on.clone(),
            warn_on: o.warn_on.clone(),
            on_incomplete: o.on_incomplete.map(|w| match w {
                OnIncompleteArg::Fail => OnIncomplete::Fail,
                OnIncompleteArg::Warn => OnIncomplete::Warn,
            }),
            focus: o.focus.clone(),
            depth: o.depth.map(|d| match d {
                DepthArg::Quick => Depth::Quick,
                DepthArg::Thorough => Depth::Thorough,
            }),
            model: o.model.clone(),
            jobs: o.jobs,
            timeout: o.timeout,
            max_cost_usd: o.max_cost,
            max_requests: None,
            max_tokens: o.max_tokens,
        },
        waivers: o.waive.clone(),
        offline: o.offline,
        backends: o.backend.clone(),
        brief: Brief {
            summary: o.summary.clone().or(by_author),
            documents: o.doc.clone(),
            naming,
            ..Brief::default()
        },
        cache: if o.no_cache {
            CacheUse::Refused
        } else {
            CacheUse::Allowed
        },
        debug_prompts: o.debug_prompts.as_ref().map(|f| context.dir.join(f)),
        // The HTML page contains the change, and a receipt covers it.
        record: o.receipt
            || o.report
                .iter()
                .map(|(format, _)| format)
                .chain([&o.format])
                .any(|f| *f == ReportFormat::Html),
        hook,
        is_audit: false,
        model_flags: model_flags(o),
        on_block: if o.exit_zero {
            OnBlock::ExitZero
        } else {
            OnBlock::Fail
        },
        store_of: None,
    })
}

/// Returns the input that a path names: standard input for `-`.
fn input(path: &Path) -> Input {
    if path.as_os_str() == "-" {
        Input::Stdin
    } else {
        Input::File(path.to_owned())
    }
}

/// Returns the source of `review staged` and of a pre-commit hook: the index. In a CI job with an
/// empty index, it is the change of the event, because `pre-commit run --all-files` would pass
/// without a review.
///
/// # Errors
/// Usage: the event of such a job does not name a change. Errors of opening a repository.
fn staged(
    context: &Context,
    named: &mut impl FnMut(Option<&str>, Option<&str>, Source) -> Result<Source>,
) -> Result<Source> {
    if context.env.is_ci() && review::is_nothing_staged(&context.dir, &context.env)? {
        return named(None, None, Source::Staged);
    }
    Ok(Source::Staged)
}

/// Returns the given flags that affect only models. A stored review also uses the summary.
fn model_flags(o: &Options) -> Vec<&'static str> {
    let flags = [
        ("--model", o.model.is_some()),
        ("--depth", o.depth.is_some()),
        ("--focus", o.focus.is_some()),
        ("--max-cost", o.max_cost.is_some()),
        ("--max-tokens", o.max_tokens.is_some()),
        ("--timeout", o.timeout.is_some()),
        ("--doc", !o.doc.is_empty()),
        ("--no-cache", o.no_cache),
        ("--debug-prompts", o.debug_prompts.is_some()),
        ("--summary", o.summary.is_some() && o.no_save),
    ];
    flags
        .into_iter()
        .filter(|(_, is_given)| *is_given)
        .map(|(flag, _)| flag)
        .collect()
}

/// Reads the input of a pre-push hook.
fn push_input() -> Result<Vec<u8>> {
    const MOST: u64 = 16 << 20;
    let read = bounded::whole(std::io::stdin().lock(), MOST)
        .map_err(|e| Error::usage("cannot read standard input").caused_by(&e))?;
    read.ok_or_else(|| {
        Error::usage("the pre-push input is larger than 16 MiB")
            .hint("push fewer references at a time")
    })
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
