//! `fix`: lets a model fix findings in a private copy, verifies the result, and applies it after
//! approval.

mod ask;
mod flags;

use super::Context;
use super::patch;
use super::review::in_world;
use super::signals;
use super::stdout::print;
use crate::error::{Error, ExitStatus, Result};
use crate::process;
use crate::request::{Authority, ReviewRequest, Source};
use crate::review::World;
use crate::rounds;
use crate::rounds::fix::{Chosen, Ended, FixAsk, Fixing};
use crate::shell;
use crate::stop::Stop;
use crate::untrusted::Inert;
use crate::wire::fixing::{AttemptVerdict, FixOutcome};
use ask::{ApprovalAnswer, ApprovalSubject, ask};
use flags::Flags;
use std::io::{IsTerminal as _, Write as _};
use std::path::PathBuf;
use std::time::Duration;

/// Arguments of `fix`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "A model plans the fix and, after approval, executes the plan in a private copy of the worktree. The result is \
    reviewed as a follow-up: the findings must be gone, and nothing new may block. With tests.run, the project's tests must \
    pass in the sandbox. Only then the change is shown and, after approval, merged into the worktree. The index stays as it is.\n\n\
    A fix may not change what checks the code: policy, hooks, CI files, build scripts, configuration of tests, assertions. \
    --allow permits it for the files that you name.\n\n\
    Exit codes:\n  0  the fix was written, or you did not approve it\n  1  no attempt passed the verification; the worktree is \
    unchanged\n  2  usage error or conflict; the worktree is unchanged\n  3  a backend failed or a limit was reached; the worktree \
    is unchanged"
)]
pub(super) struct FixArgs {
    /// Findings: IDs such as F3, or the first digits of fingerprints [default: the accepted ones]
    #[arg(value_name = "FINDING")]
    findings: Vec<String>,
    /// Stored review that has the findings: an ID, or `latest`
    #[arg(long, value_name = "ID", default_value = "latest")]
    session: String,
    /// Ask this backend to plan and write the fix; repeat for more
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    backend: Vec<String>,
    /// Use this model instead of the policy's
    #[arg(long, value_name = "NAME")]
    model: Option<String>,
    /// Approve the plan and the change without asking
    #[arg(long, short = 'y')]
    yes: bool,
    /// Write the verified change to a patch file instead of the worktree
    #[arg(long, value_name = "FILE")]
    patch: Option<PathBuf>,
    /// Permit changes of these paths although they check the code; repeat for more
    #[arg(long, value_name = "PATH", num_args = 1)]
    allow: Vec<String>,
    /// Total time limit of the fix, such as 90s or 5m
    #[arg(long, value_name = "DURATION", value_parser = super::review::duration)]
    timeout: Option<Duration>,
    /// Total cost limit of the fix, in US dollars
    #[arg(long, value_name = "USD", value_parser = super::review::usd)]
    max_cost: Option<f64>,
    /// Total limit of input and output tokens
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    max_tokens: Option<u64>,
    /// Total limit of model requests
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    max_requests: Option<u32>,
}

pub(super) fn run(context: &Context, args: &FixArgs) -> Result<ExitStatus> {
    let has_person = std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
    if !args.yes && !has_person {
        let flags = Flags {
            yes: true,
            ..Flags::of(context, args)
        };
        let error = Error::usage("a fix needs approval, and standard input is not a terminal");
        return Err(error.hint_person(command(&args.findings, &args.session, &flags.words())));
    }
    if let Some(file) = &args.patch {
        // Check it before a model is paid.
        patch::check(&context.dir.join(file), &without_patch(context, args))?;
    }
    let stop = Stop::default();
    let result = signals::heard(&stop, || {
        Steps {
            context,
            args,
            stop: &stop,
        }
        .all()
    });
    match signals::ended(&stop) {
        Some(status) => {
            if let Err(e) = &result {
                super::print_error(e);
            }
            Ok(status)
        }
        None => result,
    }
}

/// Returns the command that the user ran, without its option for a patch.
fn without_patch(context: &Context, args: &FixArgs) -> String {
    let flags = Flags {
        patch: None,
        ..Flags::of(context, args)
    };
    command(&args.findings, &args.session, &flags.words())
}

/// Returns a command that fixes findings of a session. `flags`: see [`Flags::words`].
fn command(findings: &[String], session: &str, flags: &[String]) -> String {
    let session = ["--session".to_owned(), session.to_owned()];
    let words = findings.iter().chain(&session).chain(flags);
    format!(
        "claude-reviewer fix {}",
        words
            .map(|w| shell::quoted(w))
            .collect::<Vec<_>>()
            .join(" ")
    )
}

/// The steps of one run.
struct Steps<'a> {
    context: &'a Context,
    args: &'a FixArgs,
    stop: &'a Stop,
}

impl Steps<'_> {
    fn all(&self) -> Result<ExitStatus> {
        let request = self.request();
        let session = rounds::named(&self.args.session, &request, &self.context.env)?;
        let ask = FixAsk {
            request,
            session,
            findings: self.args.findings.clone(),
            allowed: self.args.allow.clone(),
            flags: Flags::of(self.context, self.args).words(),
            via: "cli",
        };
        let mut fixing = self.in_world(|world| Fixing::open(ask, world))?;
        self.tell(&introduction(&fixing))?;
        self.in_world(|world| fixing.plan(world))?;
        if !self.is_plan_approved(&mut fixing)? {
            return self.declined(fixing, "the plan was not approved; nothing was changed\n");
        }
        let ended = self.in_world(|world| {
            fixing.execute(world, &mut |number, reasons| {
                self.report_failure(number, reasons);
            })
        })?;
        match ended {
            Ended::Interrupted => Err(Error::incomplete(
                "the fix was interrupted; the worktree is unchanged",
            )),
            Ended::Failed(verdict, reasons) => self.failed(&fixing, verdict, &reasons),
            Ended::Verified(notes) => {
                let notes: String = notes.iter().map(|n| shown(&format!("note: {n}"))).collect();
                let diff = shown(&fixing.shown_patch());
                self.tell(&format!("the fix is verified\n{notes}\n{diff}\n"))?;
                self.finish(fixing)
            }
        }
    }

    /// Reports why an attempt failed.
    fn report_failure(&self, number: u32, reasons: &[String]) {
        let text: String = reasons
            .iter()
            .map(|r| shown(&format!("attempt {number} failed: {r}")))
            .collect();
        clear_progress();
        // The result has the same text.
        let _ = self.tell(&text);
    }

    fn request(&self) -> ReviewRequest {
        let args = self.args;
        let mut request = ReviewRequest::new(Source::Auto, self.context.dir.clone());
        request.authority = Authority::Worktree;
        request.config.clone_from(&self.context.global.config);
        request.backends.clone_from(&args.backend);
        request.overrides.model.clone_from(&args.model);
        request.overrides.timeout = args.timeout;
        request.overrides.max_cost_usd = args.max_cost;
        request.overrides.max_tokens = args.max_tokens;
        request.overrides.max_requests = args.max_requests;
        request
    }

    fn in_world<T>(&self, work: impl FnOnce(&World<'_>) -> T) -> T {
        in_world(self.context, self.stop, work)
    }

    fn tell(&self, text: &str) -> Result<ExitStatus> {
        if self.context.global.quiet {
            Ok(ExitStatus::Pass)
        } else {
            print(text)
        }
    }

    /// Shows the plan and asks about it.
    fn is_plan_approved(&self, fixing: &mut Fixing) -> Result<bool> {
        self.tell(&plan(fixing))?;
        if self.args.yes {
            return Ok(true);
        }
        loop {
            match ask(ApprovalSubject::Plan, self.stop) {
                ApprovalAnswer::Yes => return Ok(true),
                ApprovalAnswer::No | ApprovalAnswer::Skip | ApprovalAnswer::Ended => {
                    return Ok(false);
                }
                ApprovalAnswer::Edit => match self.edit(fixing) {
                    // The model was paid for the plan, which can still be executed unchanged.
                    Err(e) if self.stop.signal().is_none() => super::print_error(&e),
                    _ => {}
                },
            }
        }
    }

    /// Opens the plan in the editor of the user.
    fn edit(&self, fixing: &mut Fixing) -> Result<()> {
        let mut file = tempfile::Builder::new()
            .prefix("plan-")
            .suffix(".md")
            .tempfile()
            .map_err(|e| unedited(&e))?;
        file.write_all(fixing.plan_text().as_bytes())
            .map_err(|e| unedited(&e))?;
        process::edit(file.path(), &self.context.env, Some(&self.context.dir))
            .map_err(|e| unedited(&e))?;
        let text = std::fs::read_to_string(file.path()).map_err(|e| unedited(&e))?;
        if text.trim().is_empty() {
            return self
                .tell("the edited plan is empty; the plan stays\n")
                .map(drop);
        }
        if text != fixing.plan_text() {
            fixing.set_plan(&text)?;
            self.tell(&plan(fixing))?;
        }
        Ok(())
    }

    /// Applies the verified change, or writes it as a patch.
    fn finish(&self, mut fixing: Fixing) -> Result<ExitStatus> {
        if let Some(file) = &self.args.patch {
            let file = self.context.dir.join(file);
            let written = patch::write(
                &file,
                &fixing.patch(),
                &without_patch(self.context, self.args),
            );
            written.map_err(|e| self.with_kept_patch(e, &fixing))?;
            fixing.end(FixOutcome::Patched)?;
            let command = Inert::new(patch::quoted(&file)).to_string();
            let file = Inert::new(file.display().to_string()).to_string();
            return self.tell(&format!(
                "wrote {file}; apply it with: git apply {command}\n"
            ));
        }
        if !self.args.yes && !matches!(ask(ApprovalSubject::Change, self.stop), ApprovalAnswer::Yes)
        {
            return self.declined(fixing, "the change was not applied\n");
        }
        if self.stop.signal().is_some() {
            fixing.end(FixOutcome::Interrupted)?;
            return Err(Error::incomplete(
                "the fix was interrupted; the worktree is unchanged",
            ));
        }
        let ids = ids(&fixing);
        let written = fixing.write().map_err(|e| self.with_patch(e, &fixing))?;
        let files = Inert::new(written.join(", "));
        self.tell(&format!(
            "fixed {ids} in {files}; {}\n",
            fixing.next_round()
        ))
    }

    /// Saves a conflicting change as a patch, so that paid work is not lost.
    fn with_patch(&self, mut error: Error, fixing: &Fixing) -> Error {
        if let Some(file) = self.kept(fixing) {
            error.hints.clear();
            // A three-way merge needs the base as a git object, and the base may be an uncommitted
            // state of the worktree.
            error = error.hint(format!(
                "merge it by hand; what does not apply is written to files *.rej: git -C {} apply --reject {}",
                patch::quoted(fixing.top()),
                patch::quoted(&file)
            ));
        }
        error
    }

    /// Adds the path of the saved patch to the error that the requested file could not be written.
    fn with_kept_patch(&self, error: Error, fixing: &Fixing) -> Error {
        match self.kept(fixing) {
            None => error,
            Some(file) => {
                let (top, file) = (patch::quoted(fixing.top()), patch::quoted(&file));
                error.hint(format!(
                    "the verified change was kept; to apply it: git -C {top} apply {file}"
                ))
            }
        }
    }

    /// Saves the verified change in the user's cache.
    fn kept(&self, fixing: &Fixing) -> Option<PathBuf> {
        let name = format!("fix-{}-{}", fixing.session(), fixing.stored().number);
        patch::keep(&name, &fixing.patch(), &self.context.env)
    }

    fn declined(&self, mut fixing: Fixing, text: &str) -> Result<ExitStatus> {
        let is_stopped = self.stop.signal().is_some();
        fixing.end(if is_stopped {
            FixOutcome::Interrupted
        } else {
            FixOutcome::Declined
        })?;
        self.tell(text)
    }

    /// Reports why there is no fix, and the next steps.
    fn failed(
        &self,
        fixing: &Fixing,
        verdict: AttemptVerdict,
        reasons: &[String],
    ) -> Result<ExitStatus> {
        let (session, ids) = (fixing.session(), ids(fixing));
        let why = reasons
            .first()
            .map(|r| r.lines().next().unwrap_or_default().to_owned())
            .unwrap_or_default();
        let message = format!("no fix of {ids} was verified, and the worktree is unchanged: {why}");
        let names: Vec<String> = fixing.findings().0.iter().map(|f| f.id.clone()).collect();
        let history = format!("see the attempts: claude-reviewer history {session}");
        let flags = Flags::of(self.context, self.args);
        let by_hand = format!("fix it by hand; {}", fixing.next_round());
        let error = match verdict {
            AttemptVerdict::Failed | AttemptVerdict::Unverified => {
                return Err(Error::incomplete(message)
                    .hint_person("check the backends: claude-reviewer doctor")
                    .hint_person(history));
            }
            AttemptVerdict::Forbidden if fixing.refused().is_empty() => Error::usage(message)
                .hint_person(by_hand)
                .hint_person(history),
            AttemptVerdict::Forbidden => {
                let allow = [flags.allow.as_slice(), fixing.refused()].concat();
                let command = command(
                    &names,
                    &session.to_string(),
                    &Flags { allow, ..flags }.words(),
                );
                Error::usage(message)
                    .hint_person(format!("to permit it: {command}"))
                    .hint_person(history)
            }
            AttemptVerdict::NoChange => {
                let other = Flags {
                    backend: vec!["NAME".to_owned()],
                    model: None,
                    ..flags
                };
                let other = command(&names, &session.to_string(), &other.words());
                let names = names.join(" ");
                let reject =
                    format!("claude-reviewer reject {names} --session {session} --reason TEXT");
                Error::usage(message)
                    .hint_person(format!("try another backend: {other}"))
                    .hint_person(format!("or {by_hand}"))
                    .hint_person(format!("or decide on the finding: {reject}"))
            }
            _ => Error::usage(message).hint_person(history),
        };
        super::print_error(&error);
        Ok(ExitStatus::Block)
    }
}

/// Returns the error about a plan that the editor cannot change.
fn unedited(e: &std::io::Error) -> Error {
    Error::incomplete("the plan was not edited, and stays as it is")
        .caused_by(e)
        .hint("set EDITOR to a program that waits, such as: export EDITOR=nano")
}

fn ids(fixing: &Fixing) -> String {
    fixing
        .findings()
        .0
        .iter()
        .map(|f| f.id.clone())
        .collect::<Vec<_>>()
        .join(", ")
}

/// Lists the findings to fix, and how they were selected.
fn introduction(fixing: &Fixing) -> String {
    let (findings, chosen) = fixing.findings();
    let mut text = format!("review {}\n", fixing.session());
    match chosen {
        Chosen::Named => {}
        Chosen::Accepted => text.push_str("fixing the accepted findings\n"),
        Chosen::Blocking => {
            text.push_str("nothing was decided yet; fixing the findings that block\n");
        }
    }
    for f in findings {
        let line = f.line.map(|line| format!(":{line}")).unwrap_or_default();
        let place = f
            .file
            .as_ref()
            .map(|file| format!(" at {file}{line}"))
            .unwrap_or_default();
        text.push_str(&shown(&format!(
            "{} {}: {}{place}",
            f.id, f.rule_id, f.title
        )));
    }
    text.extend(
        fixing
            .left_out()
            .iter()
            .map(|why| shown(&format!("note: left out: {why}"))),
    );
    text
}

/// Returns the plan for the user, with the limits of the change.
fn plan(fixing: &Fixing) -> String {
    let stored = fixing.stored();
    let backend = stored
        .plan
        .as_ref()
        .map(|p| p.backend.as_str())
        .unwrap_or_default();
    let mut text = shown(&format!(
        "\nplan by {backend}: {}",
        fixing.plan_text().trim_end()
    ));
    let files = stored
        .plan
        .iter()
        .flat_map(|p| &p.steps)
        .flat_map(|s| &s.files)
        .map(String::as_str);
    for (path, class) in fixing.forbidden(files) {
        text.push_str(&shown(&format!(
            "note: {path} is {class}; to permit a change: --allow {path}"
        )));
    }
    text.push('\n');
    text
}

/// Removes the progress line, which is drawn again below the next output.
fn clear_progress() {
    if std::io::stderr().is_terminal() {
        // If this fails, the line stays visible, which is harmless.
        let _ = std::io::stderr().write_all(b"\r\x1b[2K");
    }
}

/// Returns untrusted lines for a terminal.
fn shown(text: &str) -> String {
    Inert::lines(text).map(|line| format!("{line}\n")).collect()
}
