//! Builds the request from the flags of `review`.

use super::args::{DepthArg, OnIncompleteArg, Options, ReviewArgs, SourceArg};
use super::event::{self, NamedChange};
use crate::cli::{Context, pr};
use crate::error::{Error, Result};
use crate::hooks::{self, Hook};
use crate::report::ReportFormat;
use crate::request::{
    Authority, Brief, CacheUse, Depth, Input, OnBlock, OnIncomplete, Overrides, ReviewRequest,
    Source, TreeState,
};
use crate::review;
use crate::rounds::Save;
use crate::rounds::response::{self, GivenResponse};
use std::io::Read as _;
use std::path::Path;
use std::time::Duration;

/// Time limit of a review in batches, if none is given: that of a batch at the providers.
const BATCH_TIMEOUT: Duration = Duration::from_secs(24 * 3600);

/// Builds the request for a review. `pull` is the pull request under review, if there is one.
///
/// # Errors
///
/// Usage: flags that exclude each other; in CI, an event that does not name a change.
pub(super) fn request(
    context: &Context,
    args: &ReviewArgs,
    pull: Option<&pr::FoundPull>,
) -> Result<ReviewRequest> {
    let o = &args.options;
    let hook = o.hook.map(|stage| stage.hook(&context.env));
    refuse_shard(args)?;
    refuse_batch(args, hook)?;
    refuse_stored_parts(args)?;
    refuse_post_without_pull(context, args, pull)?;
    refuse_fetch(args, hook)?;
    let NamedChange { source, summary } = change(context, args, pull, hook)?;
    let is_gate = match (o.gate, o.no_gate) {
        (true, _) => true,
        (_, true) => false,
        _ => context.env.is_ci() || pull.is_some(),
    };
    let authority = if is_gate {
        Authority::Base
    } else {
        Authority::Worktree
    };
    let naming = pull.map(pr::FoundPull::naming);
    Ok(ReviewRequest {
        source,
        dir: context.dir.clone(),
        files: selected_files(args)?,
        files_name: match &args.source {
            Some(SourceArg::Tree { paths, .. }) if !paths.is_empty() => "PATH",
            _ => "--files",
        },
        shard: o.shard,
        authority,
        config: context.global.config.clone(),
        overrides: overrides(o),
        waivers: o.waive.clone(),
        offline: o.offline,
        backends: o.backend.clone(),
        brief: Brief {
            summary: o.summary.clone().or(summary),
            documents: o.doc.clone(),
            naming,
            ..Brief::default()
        },
        cache: if o.no_cache {
            CacheUse::Refused
        } else {
            CacheUse::Allowed
        },
        resume: is_resumed(args),
        past_findings: Vec::new(),
        debug_prompts: o.debug_prompts.as_ref().map(|f| context.dir.join(f)),
        // The text of a whole tree is not recorded: its size has no bound.
        record: needs_record(o) && !matches!(args.source, Some(SourceArg::Tree { .. })),
        hook,
        is_audit: false,
        model_flags: model_flags(args),
        on_block: on_block(o),
        store_of: None,
        is_batch: o.batch,
    })
}

/// Returns true if the review continues an unfinished audit.
fn is_resumed(args: &ReviewArgs) -> bool {
    matches!(args.source, Some(SourceArg::Tree { resume: true, .. }))
}

/// Returns the values that replace those of the policy.
fn overrides(o: &Options) -> Overrides {
    Overrides {
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
        timeout: o.timeout.or(o.batch.then_some(BATCH_TIMEOUT)),
        max_cost_usd: o.max_cost,
        max_requests: o.max_requests,
        max_tokens: o.max_tokens,
    }
}

/// Returns true if the change is recorded as text: an HTML page contains it, a receipt covers it,
/// and a comment shows its lines.
fn needs_record(o: &Options) -> bool {
    let mut formats = o.report.iter().map(|(format, _)| format).chain([&o.format]);
    o.receipt || !o.post.is_empty() || formats.any(|f| *f == ReportFormat::Html)
}

/// Returns the effect of blocking findings on the exit code.
pub(super) fn on_block(o: &Options) -> OnBlock {
    if o.exit_zero {
        OnBlock::ExitZero
    } else {
        OnBlock::Fail
    }
}

/// Returns whether the review is stored. A tree and a shard are not: a follow-up compares a change
/// with its earlier round, and a tree has no change, and a shard only a part of one.
pub(super) fn save(args: &ReviewArgs) -> Save {
    let o = &args.options;
    let is_stored = !is_partial_or_tree(args);
    match (o.no_save || !is_stored, o.require_history) {
        (true, _) => Save::No,
        (_, true) => Save::Required,
        _ => Save::Yes,
    }
}

/// Returns true if the review is of a tree or of a shard.
fn is_partial_or_tree(args: &ReviewArgs) -> bool {
    args.options.shard.is_some() || matches!(args.source, Some(SourceArg::Tree { .. }))
}

/// Rejects options that need a stored review or a whole change, for a tree and for a shard.
fn refuse_stored_parts(args: &ReviewArgs) -> Result<()> {
    let o = &args.options;
    let flags = [
        ("--follow-up", o.follow_up.is_some()),
        ("--require-history", o.require_history),
        ("--receipt", o.receipt),
        ("--accept-receipt", o.accept_receipt),
        ("--post", !o.post.is_empty()),
    ];
    let given = flags.iter().find(|(_, is_given)| *is_given);
    let (Some((flag, _)), true) = (given, is_partial_or_tree(args)) else {
        return Ok(());
    };
    let what = match o.shard {
        Some(_) => "a shard is a part of a review",
        None => "`review tree` reviews no change",
    };
    let error = Error::usage(format!("{what}: it cannot be combined with {flag}"));
    Err(error.hint(format!("leave out {flag}")))
}

/// Rejects `--shard` for sources that cannot be divided.
fn refuse_shard(args: &ReviewArgs) -> Result<()> {
    let can_be_divided = matches!(
        args.source,
        Some(SourceArg::Tree { history: None, .. } | SourceArg::Branch { .. })
    );
    let is_history = matches!(
        args.source,
        Some(SourceArg::Tree {
            history: Some(_),
            ..
        })
    );
    match args.options.shard {
        Some(_) if is_history => {
            let error = Error::usage("--history cannot be combined with --shard");
            Err(error.hint("leave out --shard: a history is searched as a whole"))
        }
        Some(shard) if !can_be_divided => {
            let error = Error::usage("--shard needs `review tree` or `review branch`");
            Err(error.hint_person(format!("claude-reviewer review tree --shard {shard}")))
        }
        _ => Ok(()),
    }
}

/// Rejects `--batch` for sources that a person or a gate waits for.
fn refuse_batch(args: &ReviewArgs, hook: Option<Hook>) -> Result<()> {
    let can_wait = matches!(
        args.source,
        Some(
            SourceArg::Tree { history: None, .. }
                | SourceArg::Branch { .. }
                | SourceArg::Commit { .. }
        )
    );
    if !args.options.batch || can_wait && hook.is_none() {
        return Ok(());
    }
    let error = Error::usage(
        "--batch needs `review tree`, `review branch` or `review commit`: a batch can take a day",
    );
    Err(error.hint_person("claude-reviewer review tree --batch"))
}

/// Returns the patterns that limit the review: those of `--files`, or the paths of a tree.
fn selected_files(args: &ReviewArgs) -> Result<Vec<String>> {
    let globs = &args.options.files;
    match &args.source {
        Some(SourceArg::Tree { paths, .. }) if !paths.is_empty() && !globs.is_empty() => {
            let error = Error::usage("`review tree` takes either paths or --files, not both");
            Err(error.hint("name the paths before the options, and leave out --files"))
        }
        Some(SourceArg::Tree { paths, .. }) if !paths.is_empty() => Ok(paths.clone()),
        _ => Ok(globs.clone()),
    }
}

/// Rejects `--post` if no pull request is under review. In CI, the event can name one later.
fn refuse_post_without_pull(
    context: &Context,
    args: &ReviewArgs,
    pull: Option<&pr::FoundPull>,
) -> Result<()> {
    let o = &args.options;
    let in_ci = context.env.is_ci()
        && matches!(args.source, None | Some(SourceArg::Branch { .. }))
        && o.hook.is_none();
    if o.post.is_empty() || pull.is_some() || in_ci {
        return Ok(());
    }
    let error = Error::usage("--post needs a pull request");
    Err(error.hint("claude-reviewer review pr NUMBER --post comments"))
}

/// Rejects `--fetch` for sources whose commits are never fetched.
fn refuse_fetch(args: &ReviewArgs, hook: Option<Hook>) -> Result<()> {
    let takes_fetch =
        matches!(args.source, None | Some(SourceArg::Branch { .. })) && hook.is_none();
    if args.options.fetch && !takes_fetch {
        return Err(Error::usage("--fetch needs `review branch`").hint("leave out --fetch"));
    }
    Ok(())
}

/// Rejects a source that needs a forge if `--offline` is given.
pub(super) fn refuse_forges_offline(args: &ReviewArgs) -> Result<()> {
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

/// Returns the change that the source, the hook or the event of a CI job names, with the author's
/// description of it.
fn change(
    context: &Context,
    args: &ReviewArgs,
    pull: Option<&pr::FoundPull>,
    hook: Option<Hook>,
) -> Result<NamedChange> {
    let o = &args.options;
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
        (None, Some(Hook::PreCommit | Hook::PostCommit)) | (Some(SourceArg::Staged), None) => {
            return staged(context, o, pull);
        }
        (None, None) => return of_event(context, o, pull, (None, None), Source::Auto),
        (Some(SourceArg::Branch { head, base }), None) => {
            let plain = Source::Branch {
                head: head.clone(),
                base: base.clone(),
            };
            return of_event(context, o, pull, (head.as_deref(), base.as_deref()), plain);
        }
        (Some(SourceArg::Pr { pull: name, .. }), None) => {
            let found =
                pull.ok_or_else(|| Error::usage(format!("cannot read pull request {name}")))?;
            return Ok(of_pull(context, found));
        }
        (Some(SourceArg::Unstaged { untracked }), None) => Source::Unstaged {
            untracked: *untracked,
        },
        (Some(SourceArg::Commit { rev, parent }), None) => Source::Commit {
            rev: rev.clone(),
            parent: *parent,
        },
        (Some(SourceArg::Changes { base }), None) => Source::Changes { base: base.clone() },
        (
            Some(SourceArg::Tree {
                history: Some(range),
                ..
            }),
            None,
        ) => Source::History {
            range: range.clone(),
        },
        (
            Some(SourceArg::Tree {
                rev,
                index,
                untracked,
                ..
            }),
            None,
        ) => Source::Tree(match (rev, index) {
            (Some(rev), _) => TreeState::Rev(rev.clone()),
            (None, true) => TreeState::Index,
            (None, false) => TreeState::Worktree {
                untracked: *untracked,
            },
        }),
        (Some(SourceArg::Patch { file }), None) => Source::Patch(input(file)),
        (Some(SourceArg::Code { files }), None) => {
            Source::Code(files.iter().map(|f| input(f)).collect())
        }
    };
    Ok(NamedChange {
        source,
        summary: None,
    })
}

/// Returns the change of a pull request.
fn of_pull(context: &Context, found: &pr::FoundPull) -> NamedChange {
    NamedChange {
        source: found.source(&context.env),
        summary: Some(found.brief()),
    }
}

/// Returns the change between the given ends as the event of a CI job or a pull request defines it,
/// or else `plain`.
fn of_event(
    context: &Context,
    o: &Options,
    pull: Option<&pr::FoundPull>,
    (head, base): (Option<&str>, Option<&str>),
    plain: Source,
) -> Result<NamedChange> {
    Ok(match (event::of(context, o, head, base)?, pull) {
        (None, _) => NamedChange {
            source: plain,
            summary: None,
        },
        (Some(_), Some(found)) => of_pull(context, found),
        (Some(named), None) => named,
    })
}

/// Returns the source of `review staged` and of a pre-commit hook: the index. In a CI job with an
/// empty index, it is the change of the event, because `pre-commit run --all-files` would pass
/// without a review.
///
/// # Errors
/// Usage: the event of such a job does not name a change. Errors of opening a repository.
fn staged(context: &Context, o: &Options, pull: Option<&pr::FoundPull>) -> Result<NamedChange> {
    if context.env.is_ci() && review::is_nothing_staged(&context.dir, &context.env)? {
        return of_event(context, o, pull, (None, None), Source::Staged);
    }
    Ok(NamedChange {
        source: Source::Staged,
        summary: None,
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

/// Returns the given flags that affect only models. A stored review also uses the summary.
fn model_flags(args: &ReviewArgs) -> Vec<&'static str> {
    let o = &args.options;
    let flags = [
        ("--model", o.model.is_some()),
        ("--depth", o.depth.is_some()),
        ("--focus", o.focus.is_some()),
        ("--max-cost", o.max_cost.is_some()),
        ("--max-tokens", o.max_tokens.is_some()),
        ("--max-requests", o.max_requests.is_some()),
        ("--timeout", o.timeout.is_some()),
        ("--doc", !o.doc.is_empty()),
        ("--batch", o.batch),
        ("--no-cache", o.no_cache),
        ("--resume", is_resumed(args)),
        ("--debug-prompts", o.debug_prompts.is_some()),
        ("--summary", o.summary.is_some() && save(args) == Save::No),
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
    let mut bytes = Vec::new();
    let read = std::io::stdin()
        .lock()
        .take(MOST + 1)
        .read_to_end(&mut bytes);
    read.map_err(|e| Error::usage("cannot read standard input").caused_by(&e))?;
    if bytes.len() as u64 > MOST {
        return Err(Error::usage("the pre-push input is larger than 16 MiB")
            .hint("push fewer references at a time"));
    }
    Ok(bytes)
}

/// Reads the response to the findings of the previous round.
pub(super) fn response(context: &Context, file: &Path) -> Result<GivenResponse> {
    let name = file.display();
    let mut bytes = Vec::new();
    let limit = response::MOST as u64 + 1;
    let read = match file.as_os_str() == "-" {
        true => std::io::stdin().lock().take(limit).read_to_end(&mut bytes),
        false => {
            let path = context.dir.join(file);
            if !path.is_file() {
                return Err(Error::usage(format!(
                    "cannot read response file {name}: not a regular file"
                )));
            }
            std::fs::File::open(path).and_then(|f| f.take(limit).read_to_end(&mut bytes))
        }
    };
    read.map_err(|e| Error::usage(format!("cannot read response file {name}")).caused_by(&e))?;
    GivenResponse::parse(&String::from_utf8_lossy(&bytes))
}
