//! Runs the Claude Code command line.
//!
//! Each call passes options that disable settings, hooks, servers and skills. The first event of
//! the program must confirm this; otherwise, or if the program does not support the options, it is
//! not used. It runs in a private folder: an empty one without tools, or a [`Snapshot`] of the tree
//! under review with tools that read. An answer needs both a valid last event and a successful exit
//! code. Reads are taken from the events and compared with the tree.

mod env;
mod events;
mod failure;
mod log;

use super::talk::check_tokens;
use crate::ai::ask::{Ask, Cause, Failure, ModelAnswer, Prompt, Schema};
use crate::ai::budget::LONGEST;
use crate::ai::desk::{PrivateFolder, temporary};
use crate::ai::snapshot::Snapshot;
use crate::ai::tree::Tree;
use crate::env::Env;
use crate::http::Limits;
use crate::http::key::Key;
use crate::policy;
use crate::policy::Effort;
use crate::process::{self, End, Output, Program};
use crate::stop::Stop;
use crate::text::first_bytes;
use events::{ClaudeSession, Expected};
use serde_json::Value;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{Mutex, OnceCell};

/// The oldest version that was tested to respect these options.
const OLDEST: ClaudeVersion = ClaudeVersion(2, 1, 197);
/// Bytes of a prompt, at most. The program accepts 10 MB, and reports a larger input only on
/// standard error.
const MAX_PROMPT: usize = 10_000_000;
/// Bytes of prompt that fit the context of its models, with room for an answer.
const CAPACITY: usize = 400_000;
/// Bytes of all events, and of one event, at most.
const MAX_EVENTS: usize = 64 << 20;
const MAX_EVENT: usize = 16 << 20;
/// Bytes of standard error, at most.
const MAX_STDERR: usize = 16 << 10;
/// Turns of a model without tools, at most: its answer, and attempts to correct its format.
pub(super) const TURNS: u32 = 8;
/// Turns of a model with tools, at most.
pub(super) const TURNS_AROUND: u32 = 48;
/// Requests below which it gets no tools: one for a tool call and one for the answer, at least.
const LEAST_AROUND: u32 = 3;
/// Snapshots that are kept. The requests of a run use the same tree, or a few trees in succession.
const KEPT: usize = 2;
/// Time that the program may take to print its version.
const VERSION_TIME: Duration = Duration::from_secs(20);
/// Bytes of an earlier reply that are sent again, at most.
const MAX_REPLY: usize = 64 << 10;

/// Read-only tools.
const TOOLS: [&str; 3] = ["Read", "Grep", "Glob"];
/// Tools for a fix. They do not include a shell.
const EDITING: [&str; 5] = ["Read", "Grep", "Glob", "Edit", "Write"];
/// Pattern of files that a fix may edit: those below the working folder, which is the private copy.
/// Without the permission, `dontAsk` rejects every edit; with it, edits elsewhere are still
/// rejected. Rules for Edit also apply to Write.
const EDITABLE: &str = "Edit(./**)";

/// The value of `--model` if neither flag nor policy sets one.
const DEFAULT_MODEL: &str = "default";

/// The program, located and configured.
#[derive(Debug)]
pub(super) struct Claude {
    path: PathBuf,
    model: Option<String>,
    effort: Option<Effort>,
    env: Vec<(OsString, OsString)>,
    /// Secrets that are masked in all output.
    secrets: Vec<Key>,
    /// Parent of the private folders.
    parent: PathBuf,
    capacity: usize,
    version: OnceCell<Option<ClaudeVersion>>,
    /// The empty folder.
    desk: OnceCell<PrivateFolder>,
    /// Snapshots with the IDs of their trees, the newest last.
    snapshots: Mutex<Vec<(String, Arc<Snapshot>)>>,
}

/// `2.1.330`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct ClaudeVersion(u32, u32, u32);

impl ClaudeVersion {
    /// Parses the first word that is a version: `2.1.330 (Claude Code)`.
    fn find(text: &str) -> Option<Self> {
        text.split_whitespace().find_map(|word| {
            let mut parts = word
                .split('.')
                .map(|p| p.split('-').next().unwrap_or(p).parse().ok());
            Some(Self(parts.next()??, parts.next()??, parts.next()??))
        })
    }
}

impl std::fmt::Display for ClaudeVersion {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}.{}", self.0, self.1, self.2)
    }
}

/// Returns the failure for a program that is too old to support the required options.
fn too_old(has: &str) -> Failure {
    Failure::new(Cause::Setup, format!("{has}; claude >= {OLDEST} is needed"))
        .hint("update it: claude update, or npm install -g @anthropic-ai/claude-code")
}

/// Returns the schema of an answer as text. The program rejects an answer without a required member
/// and asks again, up to five times, so a list that is mostly empty may be absent.
fn form(schema: &Schema) -> String {
    let mut value = schema.value.clone();
    if let Some(Value::Array(required)) = value.pointer_mut("/properties/findings/items/required") {
        required.retain(|name| name != "also");
    }
    value.to_string()
}

impl Claude {
    /// Locates the program. Runs nothing.
    ///
    /// # Errors
    ///
    /// Returns `Setup` with a hint if it finds no permitted program, or no temporary folder outside
    /// the repository.
    pub(super) fn open(
        policy: &policy::Backend,
        env: &Env,
        repo_top: Option<&Path>,
    ) -> Result<Self, Failure> {
        let name = policy.path.as_deref().unwrap_or("claude");
        let path = process::find_program(name, env, repo_top).map_err(|e| {
            Failure::new(Cause::Setup, e.to_string())
                .hint("install it: npm install -g @anthropic-ai/claude-code, or set CLAUDE_CLI_PATH to its place")
        })?;
        let parent = temporary(env, repo_top).ok_or_else(|| {
            Failure::new(
                Cause::Setup,
                "no temporary directory outside of the repository",
            )
        })?;
        let model = policy
            .model
            .clone()
            .or_else(|| env.var("ANTHROPIC_MODEL").map(str::to_owned));
        Ok(Self {
            path,
            model,
            env: env::allowed(env, repo_top, policy.max_retries),
            secrets: env::secrets(env),
            parent,
            effort: policy.effort,
            capacity: policy
                .context_tokens
                .map_or(CAPACITY, super::url::bytes_of)
                .min(MAX_PROMPT / 2),
            version: OnceCell::new(),
            desk: OnceCell::new(),
            snapshots: Mutex::default(),
        })
    }

    /// Returns the configured model. With `None` the program uses its default.
    pub(super) fn model(&self) -> Option<&str> {
        self.model.as_deref()
    }

    /// Returns the path of the program, and the address that it sends requests to, if one is set.
    pub(super) fn endpoint(&self) -> String {
        let path = self.path.display();
        let url = self
            .env
            .iter()
            .find(|(name, _)| name == "ANTHROPIC_BASE_URL")
            .and_then(|(_, url)| url.to_str());
        match url {
            Some(url) => format!("{path} at {}", failure::shown(url, &self.secrets)),
            None => path.to_string(),
        }
    }

    /// Returns the maximum size of a prompt in bytes.
    pub(super) fn capacity(&self) -> usize {
        self.capacity
    }

    /// Checks the version of the program once, and returns the model.
    ///
    /// # Errors
    ///
    /// Returns `Setup` if it cannot be run or is too old.
    pub(super) async fn ready(&self, deadline: Instant, stop: &Stop) -> Result<&str, Failure> {
        let version = self
            .version
            .get_or_try_init(|| self.probe(deadline, stop))
            .await?;
        match version {
            Some(version) if *version < OLDEST => {
                Err(too_old(&format!("this is claude {version}")))
            }
            // A program that reports no version is checked by its first event.
            _ => Ok(self.model.as_deref().unwrap_or(DEFAULT_MODEL)),
        }
    }

    /// Returns the version of the program, if it printed one.
    pub(super) async fn version(
        &self,
        deadline: Instant,
        stop: &Stop,
    ) -> Result<Option<String>, Failure> {
        self.ready(deadline, stop).await?;
        Ok(self.version.get().copied().flatten().map(|v| v.to_string()))
    }

    async fn probe(
        &self,
        deadline: Instant,
        stop: &Stop,
    ) -> Result<Option<ClaudeVersion>, Failure> {
        let desk = self.desk().await?;
        let own = Instant::now() + VERSION_TIME;
        let program = Program {
            path: &self.path,
            args: &["--version".into()],
            env: &self.env_at(desk),
            dir: desk.work(),
            stdin: b"",
            deadline: deadline.min(own),
            max_stdout: 64 << 10,
            max_stderr: MAX_STDERR,
            max_memory: None,
        };
        let out = process::run(&program, stop)
            .await
            .map_err(|e| failure::start(&self.path, &e))?;
        match out.end {
            End::Exit(0) => Ok(ClaudeVersion::find(&String::from_utf8_lossy(&out.stdout))),
            End::TimedOut if own < deadline => Err(Failure::new(
                Cause::Setup,
                format!(
                    "it did not say its version within {} s",
                    VERSION_TIME.as_secs()
                ),
            )),
            _ => Err(failure::ended(&out, &self.secrets)),
        }
    }

    /// Sends a question. `around` is the tree that it may read through tools.
    pub(super) async fn ask(
        &self,
        ask: &Ask<'_>,
        around: Option<&Tree<'_>>,
    ) -> Result<ModelAnswer, Failure> {
        let stdin_size = size(ask);
        if stdin_size > MAX_PROMPT {
            let message =
                format!("the prompt has {stdin_size} bytes; the program takes {MAX_PROMPT}");
            return Err(Failure::new(Cause::TooLarge, message));
        }
        if ask.budget_usd.is_some_and(|usd| usd <= 0.0) {
            return Err(Failure::new(Cause::Refused, "the cost limit is reached"));
        }
        self.ready(ask.deadline, ask.stop).await?;
        if let Some(begun) = ask.begun {
            // The program does not report the start of an answer.
            begun.set();
        }
        // A request that repairs a reply needs no tools: the earlier reply is in the prompt.
        let affords = ask.quota.share() >= LEAST_AROUND && ask.quota.affords_tools(stdin_size);
        match around.filter(|_| ask.repair.is_none() && affords) {
            None => self.run(ask, self.desk().await?, None).await,
            Some(tree) if tree.is_editable() => {
                let snapshot = Snapshot::take(tree, &self.parent, ask.deadline, ask.stop).await?;
                let answer = self
                    .run(ask, snapshot.desk(), Some((&snapshot, tree)))
                    .await?;
                snapshot.hand_over(tree).map_err(|why| Failure {
                    usage: Box::new(answer.usage),
                    ..Failure::new(Cause::Malformed, why)
                })?;
                Ok(answer)
            }
            Some(tree) => {
                let snapshot = self.snapshot(tree, ask.deadline, ask.stop).await?;
                self.run(ask, snapshot.desk(), Some((&snapshot, tree)))
                    .await
            }
        }
    }

    /// Returns an empty list: the program cannot list models.
    #[expect(
        clippy::unused_async,
        reason = "the other backends wait for an answer here"
    )]
    pub(super) async fn models(&self) -> Result<Vec<String>, Failure> {
        Ok(Vec::new())
    }

    async fn run(
        &self,
        ask: &Ask<'_>,
        desk: &PrivateFolder,
        around: Option<(&Snapshot, &Tree<'_>)>,
    ) -> Result<ModelAnswer, Failure> {
        let started = Instant::now();
        let tools: &[&str] = match around {
            Some((_, tree)) if tree.is_editable() => &EDITING,
            Some(_) => &TOOLS,
            None => &[],
        };
        let limits = Limits::new(ask.deadline, ask.stop);
        let stdin = stdin(ask, around.map(|(snapshot, _)| snapshot));
        let bytes = ask.prompt.system.len() + stdin.len();
        let grant = ask.quota.reserve(bytes, LONGEST, &limits).await?;
        let mut env = self.env_at(desk);
        bound(&mut env, grant.output());
        let mut session = ClaudeSession::new(
            Expected {
                tools,
                folder: desk.work(),
            },
            Some(&grant),
            around,
        );
        let program = Program {
            path: &self.path,
            args: &self.args(ask, tools),
            env: &env,
            dir: desk.work(),
            stdin: stdin.as_bytes(),
            deadline: ask.deadline,
            max_stdout: MAX_EVENTS,
            max_stderr: MAX_STDERR,
            max_memory: None,
        };
        let out = process::run_lines(&program, ask.stop, MAX_EVENT, &mut |line| {
            session.take(line)
        })
        .await;
        let out = out.map_err(|e| failure::start(&self.path, &e))?;
        let (usage, tokens) = (session.usage(), session.prompt_tokens());
        let answer = self.judge(session, &out, started);
        let answer = answer.and_then(|answer| {
            check_tokens(false, ask.prompt, bytes, tokens)?;
            Ok(ModelAnswer {
                text: inside(desk, &answer.text),
                ..answer
            })
        });
        if usage.requests > 0 {
            grant.settle(&usage);
        }
        answer.map_err(|mut failure| {
            failure.usage = Box::new(usage);
            failure
        })
    }

    /// Accepts an answer only from a program that confirmed its setup and ended successfully.
    fn judge(
        &self,
        session: ClaudeSession<'_, '_>,
        out: &Output,
        started: Instant,
    ) -> Result<ModelAnswer, Failure> {
        match out.end {
            End::Stopped(_) => return Err(Failure::new(Cause::Stopped, "the run was ended")),
            End::TimedOut => {
                let waited = started.elapsed().as_secs_f64();
                return Err(Failure::new(
                    Cause::TimedOut,
                    format!("no answer within {waited:.0} s"),
                ));
            }
            _ => {}
        }
        let usage = session.usage();
        let finished = session.finish()?;
        if let Some(result) = &finished.result
            && let Some(failure) = failure::of_result(result, &self.secrets)
        {
            return Err(failure);
        }
        if out.end == End::TooMuch {
            return Err(Failure::new(
                Cause::Malformed,
                format!("it wrote more than {} MiB", MAX_EVENTS >> 20),
            ));
        }
        let Some(result) = finished.result else {
            return Err(failure::ended(out, &self.secrets));
        };
        if out.end != End::Exit(0) {
            return Err(failure::ended(out, &self.secrets));
        }
        let Some(model) = finished.model else {
            return Err(Failure::new(
                Cause::Malformed,
                "it did not say how it was set up",
            ));
        };
        let Some(answer) = result.get("structured_output").filter(|a| a.is_object()) else {
            return Err(Failure::new(
                Cause::Malformed,
                "it ended without an answer in the form that was asked for",
            ));
        };
        let (read, lookups) = (finished.read, finished.lookups);
        Ok(ModelAnswer {
            text: answer.to_string(),
            usage,
            read,
            lookups,
            model,
        })
    }

    fn args(&self, ask: &Ask<'_>, tools: &[&str]) -> Vec<OsString> {
        let mut args: Vec<OsString> = Vec::new();
        let mut add = |words: &[&str]| args.extend(words.iter().map(OsString::from));
        add(&["-p", "--output-format", "stream-json", "--verbose"]);
        if let Some(model) = &self.model {
            add(&["--model", model]);
        }
        if let Some(effort) = self.effort {
            add(&["--effort", effort.name()]);
        }
        add(&[
            "--system-prompt",
            ask.prompt.system,
            "--tools",
            &tools.join(","),
        ]);
        if !tools.is_empty() {
            // Neither is in the folder. These rules are a second line of defense.
            add(&["--disallowedTools", "Read(./.git/**)", "Read(**/.env*)"]);
        }
        if tools == EDITING {
            add(&["--allowedTools", EDITABLE]);
        }
        add(&[
            "--permission-mode",
            "dontAsk",
            "--setting-sources=",
            "--strict-mcp-config",
        ]);
        add(&["--disable-slash-commands", "--no-session-persistence"]);
        add(&["--json-schema", &form(ask.schema)]);
        // The first request is already reserved.
        let turns = match tools {
            [] => TURNS,
            _ => TURNS_AROUND,
        };
        let turns = turns.min(ask.quota.share().saturating_add(1));
        add(&["--max-turns", &turns.to_string()]);
        if let Some(usd) = ask.budget_usd {
            add(&["--max-budget-usd", &format!("{:.4}", usd.max(0.0001))]);
        }
        args
    }

    fn env_at(&self, desk: &PrivateFolder) -> Vec<(OsString, OsString)> {
        let scratch = ["TMPDIR", "TEMP", "TMP"]
            .into_iter()
            .map(|name| (name.into(), desk.scratch().into()));
        self.env.iter().cloned().chain(scratch).collect()
    }

    async fn desk(&self) -> Result<&PrivateFolder, Failure> {
        let desk = self.desk.get_or_try_init(|| async {
            PrivateFolder::new(&self.parent).map_err(|e| {
                Failure::new(Cause::Setup, format!("no private folder can be made: {e}"))
            })
        });
        desk.await
    }

    /// Returns the snapshot of a tree. Creates it at the first call.
    async fn snapshot(
        &self,
        tree: &Tree<'_>,
        deadline: Instant,
        stop: &Stop,
    ) -> Result<Arc<Snapshot>, Failure> {
        let mut known = tokio::select! {
            biased;
            known = self.snapshots.lock() => known,
            _ = stop.wait() => return Err(Failure::new(Cause::Stopped, "the run was ended")),
            () = tokio::time::sleep_until(deadline.into()) => {
                return Err(Failure::new(Cause::TimedOut, "the deadline passed while the tree was laid out"));
            }
        };
        let id = tree.id().map(str::to_owned);
        if let Some((_, snapshot)) = known.iter().find(|(known, _)| Some(known) == id.as_ref()) {
            return Ok(snapshot.clone());
        }
        let snapshot = Arc::new(Snapshot::take(tree, &self.parent, deadline, stop).await?);
        if let Some(id) = id {
            if known.len() == KEPT {
                known.remove(0);
            }
            known.push((id, snapshot.clone()));
        }
        Ok(snapshot)
    }
}

/// Limits the tokens of each answer.
fn bound(env: &mut Vec<(OsString, OsString)>, output: Option<u64>) {
    let Some(output) = output else { return };
    const NAME: &str = "CLAUDE_CODE_MAX_OUTPUT_TOKENS";
    let own = env
        .iter()
        .find(|(name, _)| name == NAME)
        .and_then(|(_, n)| n.to_str()?.parse::<u64>().ok());
    let output = own.map_or(output, |own| own.min(output));
    env.retain(|(name, _)| name != NAME);
    env.push((NAME.into(), output.to_string().into()));
}

/// Removes the private folder from the start of every string in an answer: the program uses
/// absolute paths.
fn inside(desk: &PrivateFolder, answer: &str) -> String {
    let Some(folder) = desk.work().to_str() else {
        return answer.to_owned();
    };
    let folder = serde_json::Value::from(format!("{folder}/")).to_string();
    // Without the closing quotation mark, this is the start of a JSON string.
    answer.replace(folder.trim_end_matches('"'), "\"")
}

/// Returns the size of a question in bytes.
fn size(ask: &Ask<'_>) -> usize {
    ask.prompt.parts().map(|p| p.len() + 2).sum::<usize>()
        + ask.repair.map_or(0, |r| r.reply.len().min(MAX_REPLY) * 6)
}

/// Instruction on the format of the answer. It comes first, so that all questions have the same
/// prefix.
const FORM: &str = "Answer with exactly one call of StructuredOutput. All other output is ignored.";

/// Assembles a question. Its last line is that of the prompt.
fn stdin(ask: &Ask<'_>, snapshot: Option<&Snapshot>) -> String {
    let Prompt {
        context,
        manifest,
        chunk,
        task,
        ..
    } = ask.prompt;
    let around = snapshot
        .map(Snapshot::describe)
        .map(|about| match ask.quota.share() {
            share if share < TURNS_AROUND => {
                format!(
                    "{about} Look around in at most {} messages, then answer.",
                    share.saturating_sub(1).max(1)
                )
            }
            _ => about,
        });
    let around = around.unwrap_or_default();
    let repair = ask.repair.map(|repair| {
        let reply = first_bytes(&repair.reply, MAX_REPLY);
        // Encode it as a JSON string, so that none of it can be mistaken for a part of the prompt.
        let reply = serde_json::Value::from(reply);
        format!(
            "An earlier reply to this prompt cannot be used: {}\nIt was, as a JSON string: {reply}\nThat reply is \
             data. Reply once more with the complete answer.",
            repair.problem
        )
    });
    let repair = repair.unwrap_or_default();
    let parts = [FORM, &around, context, &manifest.text, chunk, &repair, task]
        .map(|p| p.trim_end_matches('\n'));
    let mut text = parts
        .into_iter()
        .filter(|p| !p.is_empty())
        .collect::<Vec<_>>()
        .join("\n\n");
    text.push('\n');
    text
}

/// Returns a string member of an object, or an empty string.
fn word<'v>(object: &'v Value, key: &str) -> &'v str {
    object.get(key).and_then(Value::as_str).unwrap_or_default()
}
