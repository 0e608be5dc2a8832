//! `triage`: decisions on the findings of a stored review in a full-screen terminal program.

use super::decide::OpenedReview;
use super::history::{find, request};
use super::screen::{self, Ended, Event, Screen};
use super::{Context, Global, apply, editor};
use crate::diff::{ObjectId, RepoPath};
use crate::error::{Error, ExitStatus, Result};
use crate::finding::Decision;
use crate::history::SessionId;
use crate::process::{End, find_program};
use crate::review::Record;
use crate::rounds::decide::{
    ChosenDecision, Confirmation, Decided, confirm, decide, list, still_shared,
};
use crate::rounds::{self, undo};
use crate::triage::key::{KeyPress, Typed};
use crate::triage::state::{DecisionOrder, Notice, TriageEffect, TriageState};
use crate::triage::step::{TriageEvent, step};
use crate::triage::{TriageItem, TriageSubject, view};
use crate::wire::SourceKind;
use std::path::{Component, Path};

/// Sessions that are searched for the newest of a pull request, at most.
const MOST_SESSIONS: usize = 1_000;
/// Prefix of the label of a stored review of a pull request.
const PULL: &str = "pull request #";

/// Arguments of `triage`.
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "claude-reviewer triage [REVIEW_ID | latest | pr N] [--share]",
    after_help = "Each decision is stored at once. Press ? for the keys.\n\nOutside of a terminal, use: findings, accept, \
    reject, defer, confirm, apply."
)]
pub(super) struct TriageArgs {
    /// Stored review: an ID, `latest`, or `pr N` for the newest review of a pull request
    #[arg(value_name = "REVIEW_ID", num_args = 0..=2)]
    review: Vec<String>,
    /// Write decisions to .claude-reviewer/dispositions.toml too; in triage, S changes it
    #[arg(long)]
    share: bool,
}

pub(super) fn run(context: &Context, args: &TriageArgs) -> Result<ExitStatus> {
    let words: Vec<&str> = args.review.iter().map(String::as_str).collect();
    let id = match words[..] {
        [] => named(context, "latest")?,
        ["pr"] => {
            return Err(
                Error::usage("triage pr needs a number").hint("claude-reviewer triage pr 12")
            );
        }
        ["pr", number] => of_pull(context, number)?,
        [name] => named(context, name)?,
        [_, extra, ..] => {
            let error = Error::usage(format!("unexpected argument {extra:?}"));
            return Err(error.hint("claude-reviewer triage latest"));
        }
    };
    if !screen::is_possible(&context.env) {
        let error = Error::usage("triage needs a terminal with a keyboard that can place text");
        return Err(error
            .hint(format!("list the findings: claude-reviewer findings {id}"))
            .hint(format!(
                "decide: claude-reviewer accept F1 --session {id}, or reject, or defer"
            ))
            .hint(format!(
                "write a replacement: claude-reviewer apply F1 --session {id}"
            )));
    }
    let mut desk = TriageDesk::open(context, id)?;
    let subject = desk.subject()?;
    let (exit, has_shared) = screen::with(context, |screen| {
        let state = TriageState::new(subject, screen.size()).sharing(args.share);
        desk.work(screen, state)
    })?;
    match exit {
        ExitStatus::Pass if has_shared => super::decide::committed(),
        exit => Ok(exit),
    }
}

fn named(context: &Context, name: &str) -> Result<SessionId> {
    rounds::named(name, &request(context), &context.env)
}

/// Finds the newest stored review of a pull request.
fn of_pull(context: &Context, number: &str) -> Result<SessionId> {
    let wanted: u64 = number.trim_start_matches('#').parse().map_err(|_| {
        Error::usage(format!("{number:?} is not the number of a pull request"))
            .hint("claude-reviewer triage pr 12")
    })?;
    let (_, store) = rounds::open(&request(context), &context.env)?;
    let sessions = store
        .map(|s| s.list(MOST_SESSIONS))
        .transpose()?
        .map(|h| h.sessions)
        .unwrap_or_default();
    let found = sessions
        .iter()
        .find(|s| pull_of(s.source.kind, &s.label) == Some(wanted));
    found
        .and_then(|s| SessionId::parse(&s.review_id))
        .ok_or_else(|| {
            Error::usage(format!("no review of pull request #{wanted} is stored"))
                .hint(format!("claude-reviewer review pr {wanted}"))
        })
}

/// Returns the number of the pull request that a stored review is about.
pub(super) fn pull_of(kind: SourceKind, label: &str) -> Option<u64> {
    let digits = label
        .strip_prefix(PULL)
        .filter(|_| kind == SourceKind::Pr)?;
    digits
        .split(|c: char| !c.is_ascii_digit())
        .next()?
        .parse()
        .ok()
}

/// A stored review that is being triaged.
struct TriageDesk<'a> {
    context: &'a Context,
    id: SessionId,
    opened: OpenedReview,
}

impl<'a> TriageDesk<'a> {
    fn open(context: &'a Context, id: SessionId) -> Result<Self> {
        Ok(Self {
            context,
            id,
            opened: OpenedReview::new(context, &id.to_string())?,
        })
    }

    /// Returns the review in the form that triage shows.
    fn subject(&self) -> Result<TriageSubject> {
        let OpenedReview { session, store, .. } = &self.opened;
        let last = session.rounds.last().map(|r| &r.review);
        let last = last.ok_or_else(|| Error::usage(format!("review {} has no round", self.id)))?;
        let number = u32::try_from(session.rounds.len()).unwrap_or(u32::MAX);
        let change = store.change(&self.id, number)?;
        let here = self.opened.here(self.context);
        let listed = list(&here, session)?.into_iter();
        let items = listed.map(|l| TriageItem {
            finding: l.finding,
            entry: l.entry,
            proposal: l.proposal,
            is_applied: false,
        });
        Ok(TriageSubject {
            id: self.id.to_string(),
            label: session.request.label.clone(),
            pull: session.request.pull.as_ref().map(|pull| pull.number),
            round: last.round,
            verdict: last.verdict,
            items: items.collect(),
            // If the change cannot be read, triage shows the quotes of its findings.
            files: Record::read(&change).unwrap_or_default(),
            today: crate::review::today(here.now),
        })
    }

    /// Handles keys and effects until the user leaves. Returns the exit code, and whether decisions
    /// were shared.
    fn work(&mut self, screen: &mut Screen, mut state: TriageState) -> Result<(ExitStatus, bool)> {
        loop {
            screen.show(view::draw(&state, screen.theme));
            let input = match screen.next() {
                Event::Typed(Typed::Key(key)) => TriageEvent::Key(key),
                Event::Typed(Typed::Paste(text)) => TriageEvent::Paste(text),
                Event::Resized => TriageEvent::Resize(screen.size()),
                Event::Suspend => TriageEvent::Key(KeyPress::Ctrl('z')),
                Event::Continued => TriageEvent::Key(KeyPress::Ctrl('l')),
                Event::Ended(ended) => return Ok((ended.exit(), state.has_shared())),
            };
            let mut inputs = vec![input];
            while let Some(input) = inputs.pop() {
                let (next, effects) = step(state, input);
                state = next;
                for effect in effects {
                    match self.effect(screen, effect)? {
                        Next::Inputs(more) => inputs.extend(more),
                        Next::Leave(exit) => return Ok((exit, state.has_shared())),
                    }
                }
            }
        }
    }

    /// Performs an effect, and returns its result.
    fn effect(&mut self, screen: &mut Screen, effect: TriageEffect) -> Result<Next> {
        let done = match effect {
            TriageEffect::Quit(leave) => return Ok(Next::Leave(screen::exit(leave))),
            TriageEffect::Suspend => {
                screen.suspend()?;
                Ok(TriageEvent::Resize(screen.size()))
            }
            TriageEffect::Redraw => {
                screen.forget();
                Ok(TriageEvent::Resize(screen.size()))
            }
            TriageEffect::Decide(order) => self.decide(order),
            TriageEffect::Confirm {
                findings,
                is_shared,
            } => self.confirm(&findings, is_shared),
            TriageEffect::Undo(held) => {
                undo::restore(&self.opened.here(self.context), &held).map(|()| TriageEvent::Undone)
            }
            TriageEffect::Apply(ids) => self.apply(ids),
            TriageEffect::Reload => self.reload(),
            TriageEffect::Edit { file, line } => return self.edit(screen, &file, line),
            TriageEffect::Run(words) => {
                if let Err(ended) = screen.command(&words)? {
                    return Ok(Next::Leave(ended.exit()));
                }
                return Ok(self.again(screen));
            }
        };
        Ok(Next::Inputs(vec![
            done.unwrap_or_else(|e| TriageEvent::Notice(notice(&e))),
        ]))
    }

    /// Reads the review again after another program had the terminal.
    fn again(&mut self, screen: &Screen) -> Next {
        let loaded = self
            .reload()
            .unwrap_or_else(|e| TriageEvent::Notice(notice(&e)));
        // Inputs are taken from the end.
        Next::Inputs(vec![loaded, TriageEvent::Resize(screen.size())])
    }

    fn decide(&self, order: DecisionOrder) -> Result<TriageEvent> {
        let DecisionOrder {
            findings,
            decision,
            reason,
            until,
            is_shared,
        } = order;
        let here = self.opened.here(self.context);
        let before = undo::held(&here, findings.clone(), is_shared)?;
        let choice = ChosenDecision {
            findings,
            decision,
            reason,
            until,
            owner: None,
            share: is_shared,
        };
        let decided = decide(&here, &self.opened.session, &choice)?;
        let shared = self.shared_otherwise(&decided, is_shared);
        Ok(TriageEvent::Decided {
            decided: by_fingerprint(decided),
            before,
            shared,
        })
    }

    fn confirm(&self, findings: &[String], is_shared: bool) -> Result<TriageEvent> {
        let here = self.opened.here(self.context);
        let before = undo::held(&here, findings.to_vec(), is_shared)?;
        let decided = confirm(
            &here,
            &self.opened.session,
            findings,
            &Confirmation {
                owner: None,
                share: is_shared,
            },
        )?;
        let shared = self.shared_otherwise(&decided, is_shared);
        Ok(TriageEvent::Decided {
            decided: by_fingerprint(decided),
            before,
            shared,
        })
    }

    /// Returns the findings on which the shared file has another decision. In a file with an error,
    /// no decision counts.
    fn shared_otherwise(&self, decided: &[Decided], is_shared: bool) -> Vec<(String, Decision)> {
        if is_shared {
            return Vec::new();
        }
        let overruled = still_shared(
            &self.opened.here(self.context),
            &self.opened.session,
            decided,
        );
        overruled
            .unwrap_or_default()
            .into_iter()
            .map(|o| (o.id, o.shared.decision))
            .collect()
    }

    fn apply(&self, ids: Vec<String>) -> Result<TriageEvent> {
        // Progress would be drawn over the screen.
        let global = Global {
            quiet: true,
            ..self.context.global.clone()
        };
        let context = Context {
            env: self.context.env.clone(),
            global,
            dir: self.context.dir.clone(),
        };
        let (store, id, session) = find(&context, &self.id.to_string())?;
        let notes = apply::named(&context, (&store, id, &session), ids.clone())?;
        Ok(TriageEvent::Applied { ids, notes })
    }

    fn reload(&mut self) -> Result<TriageEvent> {
        self.opened = OpenedReview::new(self.context, &self.id.to_string())?;
        Ok(TriageEvent::Loaded(Box::new(self.subject()?)))
    }

    /// Returns the hint about a file that is missing from the worktree.
    fn checkout(&self) -> String {
        let source = self
            .opened
            .session
            .rounds
            .last()
            .map(|r| &r.review.report.source);
        let head = source.and_then(|s| ObjectId::from_hex(s.head.as_deref()?));
        match head {
            Some(commit) => format!(
                "check out the reviewed commit: git checkout {}",
                commit.short()
            ),
            None => "review again: claude-reviewer review".to_owned(),
        }
    }

    /// Opens a file of the worktree in the user's editor.
    fn edit(&mut self, screen: &mut Screen, file: &str, line: Option<u32>) -> Result<Next> {
        let env = &self.context.env;
        let top = self.opened.place.top.clone();
        let path = top.join(relative(file));
        if !is_inside(&relative(file)) || !path.is_file() {
            return Ok(editor_notice(
                format!("{file} is not a file of the worktree"),
                &self.checkout(),
            ));
        }
        let set = "choose a program: export EDITOR=vim";
        let Some((name, value)) = ["VISUAL", "EDITOR"]
            .into_iter()
            .find_map(|n| Some((n, env.var(n)?)))
        else {
            return Ok(editor_notice(
                "neither VISUAL nor EDITOR is set".to_owned(),
                set,
            ));
        };
        let shown = format!("{name}={value}");
        let Some(command) = editor::command(value, &path, line) else {
            return Ok(editor_notice(
                format!("{shown} does not name a program"),
                set,
            ));
        };
        let program = match find_program(&command.program, env, Some(&top)) {
            Ok(program) => program,
            Err(unfit) => return Ok(editor_notice(format!("{shown}: {unfit}"), set)),
        };
        let again = "run it in a shell to see why";
        Ok(match screen.editor(&program, &command.args, &top)? {
            Ok(End::Exit(0)) => self.again(screen),
            Ok(End::Stopped(signal)) => Next::Leave(Ended::Signal(signal).exit()),
            Ok(End::Exit(code)) => {
                editor_notice(format!("{shown} ended with exit code {code}"), again)
            }
            Ok(End::Signal(signal)) => {
                editor_notice(format!("{shown} was ended by signal {signal}"), again)
            }
            Ok(_) => editor_notice(format!("{shown} was stopped"), again),
            Err(e) => editor_notice(format!("{shown} cannot be started: {e}"), set),
        })
    }
}

/// Returns a notice about the editor.
fn editor_notice(problem: String, hint: &str) -> Next {
    let notice = Notice {
        title: "Editor".to_owned(),
        lines: vec![problem],
        hints: vec![hint.to_owned()],
    };
    Next::Inputs(vec![TriageEvent::Notice(notice)])
}

/// The result of an effect.
enum Next {
    /// Inputs, taken from the end.
    Inputs(Vec<TriageEvent>),
    Leave(ExitStatus),
}

/// Returns the path of a file in the form of the file system.
fn relative(file: &str) -> std::path::PathBuf {
    let path = RepoPath::from(file);
    Path::new(&*String::from_utf8_lossy(path.as_bytes())).to_owned()
}

fn is_inside(path: &Path) -> bool {
    path.components().all(|c| matches!(c, Component::Normal(_)))
}

fn by_fingerprint(decided: Vec<Decided>) -> Vec<(String, crate::disposition::DecisionEntry)> {
    decided
        .into_iter()
        .map(|(finding, entry)| (finding.fingerprint, entry))
        .collect()
}

/// Returns an error as a notice.
fn notice(e: &Error) -> Notice {
    let lines = std::iter::once(format!("error: {}", e.message));
    let causes = e.causes.iter().map(|c| format!("caused by: {c}"));
    Notice {
        title: "Not done".to_owned(),
        lines: lines.chain(causes).collect(),
        hints: e.hints.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_label_of_a_stored_review_names_its_pull_request() {
        assert_eq!(pull_of(SourceKind::Pr, "pull request #12"), Some(12));
        assert_eq!(
            pull_of(SourceKind::Pr, "pull request #12 of a fork"),
            Some(12)
        );
        assert_eq!(pull_of(SourceKind::Staged, "pull request #12"), None);
        assert_eq!(pull_of(SourceKind::Pr, "the staged change"), None);
    }

    #[test]
    fn only_files_of_the_worktree_are_opened() {
        for (path, expected) in [
            ("src/a.py", true),
            ("../a", false),
            ("/etc/passwd", false),
            ("a/../../b", false),
        ] {
            assert_eq!(is_inside(Path::new(path)), expected, "{path}");
        }
    }
}
