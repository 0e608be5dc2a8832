//! An MCP server that reads tickets or pages: how it is started and called, and which of its tools
//! may be called.
//!
//! The tools are selected here by name: two known ones, or the one that the operator names. The
//! server's description of a tool can only exclude it. Requests of the server (for a model, or for
//! input of a person) are declined.

use super::link::Link;
use super::pipe::Closed;
use super::program::Spawn;
use super::web;
use crate::env::Env;
use crate::http::key::{Key, KeySource};
use crate::http::{self, Pool, Proxies, Setup};
use crate::policy::{ContextServer, Reads, is_read_only};
use crate::process::find_program;
use crate::stop::Stop;
use crate::text::{one_line, shortened};
use crate::untrusted::Inert;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, ClientCapabilities, ClientConfig, Implementation,
    PaginatedRequestParams, Tool,
};
use rmcp::service::{RoleClient, RunningService, ServiceError};
use serde_json::{Map, Value};
use std::ffi::OsString;
use std::path::Path;
use std::time::{Duration, Instant};
use tokio::runtime::Builder;
use tokio::task::LocalSet;
use tokio::time::{sleep, timeout_at};

/// Restarts of a server, at most.
const RESTARTS: u32 = 3;
/// Pause between two starts.
const PAUSE: Duration = Duration::from_secs(1);
/// Pages of a list of tools, and tools in total, at most.
const MAX_PAGES: usize = 10;
const MAX_TOOLS: usize = 1_000;
/// Characters of a server's text in a message, at most.
const MAX_SHOWN: usize = 200;

/// A tool that may be called, its argument, and the source that it reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ServerCall {
    pub(super) tool: String,
    pub(super) argument: String,
    pub(super) reads: Reads,
    /// Name of the source in reports.
    pub(super) source: String,
}

/// The known tools, with the content that they read.
const KNOWN: [(&str, &str, Reads, &str); 2] = [
    ("jira_get_issue", "issue_key", Reads::Tickets, "jira"),
    ("confluence_get_page", "page_id", Reads::Pages, "confluence"),
];

/// The reason why a call failed. A lowercase fragment, masked and escaped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ToolFailure {
    pub(super) reason: String,
    /// The server will not answer again.
    pub(super) is_dead: bool,
}

/// The environment and the time limit of servers.
#[derive(Clone, Copy, Debug)]
pub(super) struct ServerEnvironment<'a> {
    pub(super) env: &'a Env,
    /// The top of the repository: no program inside of it is run.
    pub(super) top: Option<&'a Path>,
    pub(super) deadline: Instant,
    pub(super) stop: &'a Stop,
}

/// A configured server.
pub(super) struct ToolServer<'a> {
    pub(super) config: &'a ContextServer,
    around: ServerEnvironment<'a>,
    secrets: Vec<Key>,
    live: Option<Live>,
    restarts: u32,
    /// Reason why the last connection ended. Masked and escaped.
    last_end: Option<String>,
    dead: Option<String>,
}

/// A running server.
struct Live {
    client: RunningService<RoleClient, ClientConfig>,
    link: Link,
    tools: Vec<Tool>,
}

impl Live {
    /// Ends the connection, and returns why it ended.
    async fn end(self) -> Closed {
        let Self { client, link, .. } = self;
        let _ = client.cancel().await;
        link.closed().await
    }
}

impl<'a> ToolServer<'a> {
    pub(super) fn new(config: &'a ContextServer, around: ServerEnvironment<'a>) -> Self {
        let names = config.env.iter().chain(&config.token_env);
        let secrets = names
            .filter_map(|n| around.env.var(n))
            .filter(|v| v.len() >= 8)
            .filter_map(Key::new)
            .collect();
        Self {
            config,
            around,
            secrets,
            live: None,
            restarts: 0,
            last_end: None,
            dead: None,
        }
    }

    /// Returns true if the configuration permits a tool that reads this kind of content. Starts
    /// nothing.
    pub(super) fn may_read(&self, reads: Reads) -> bool {
        self.config.tool.is_none() || self.config.reads == reads
    }

    /// Finds the tool for a kind of content; starts the server if it is not running.
    ///
    /// # Errors
    /// The server cannot be started, or has no such tool.
    pub(super) async fn call_for(&mut self, reads: Reads) -> Result<ServerCall, ToolFailure> {
        let custom = self.config.tool.clone().zip(self.config.argument.clone());
        let candidates = match custom {
            Some((tool, argument)) => {
                vec![ServerCall {
                    tool,
                    argument,
                    reads: self.config.reads,
                    source: self.config.name.clone(),
                }]
            }
            None => KNOWN.iter().map(ServerCall::known).collect(),
        };
        let tools = self.tools().await?;
        let call = candidates
            .into_iter()
            .find(|c| c.reads == reads && tools.iter().any(|t| t.name == *c.tool));
        let wanted = match (&self.config.tool, reads) {
            (Some(tool), _) => tool.as_str(),
            (None, Reads::Tickets) => KNOWN[0].0,
            (None, Reads::Pages) => KNOWN[1].0,
        };
        let Some(call) = call else {
            return Err(self.alive(format!("it has no tool {wanted}")));
        };
        let tool = tools.iter().find(|t| t.name == *call.tool);
        match tool.and_then(|tool| unusable(tool, &call)) {
            Some(why) => Err(self.alive(format!("the tool {wanted} is not called: {why}"))),
            None => Ok(call),
        }
    }

    /// Calls a tool once; if the connection breaks, restarts the server and calls once more. Calls
    /// `admit` before every call.
    ///
    /// # Errors
    /// The server rejected the call or ended, or the time is up.
    pub(super) async fn call(
        &mut self,
        call: &ServerCall,
        value: &str,
        admit: &mut dyn FnMut() -> bool,
    ) -> Result<String, ToolFailure> {
        loop {
            self.tools().await?;
            let Some(live) = &self.live else {
                return Err(self.alive("it is not connected"));
            };
            if !admit() {
                return Err(self.alive("no call is left (max_calls)"));
            }
            let arguments =
                Map::from_iter([(call.argument.clone(), Value::String(value.to_owned()))]);
            let params = CallToolRequestParams::new(call.tool.clone()).with_arguments(arguments);
            let asked = self.bounded(live.client.call_tool_once(params)).await;
            match asked {
                Some(Ok(CallToolResponse::Complete(answer))) => {
                    return self.text(&serde_json::to_value(&answer).unwrap_or_default());
                }
                Some(Ok(_)) => return Err(self.alive("it asks for more than the key")),
                Some(Err(e)) if is_broken(&e) => self.broke().await?,
                Some(Err(e)) => return Err(self.alive(refusal(&e))),
                None => return Err(self.late().await),
            }
        }
    }

    /// Ends the server, if it runs.
    pub(super) async fn end(&mut self) {
        if let Some(live) = self.live.take() {
            live.end().await;
        }
    }

    /// Returns the tools of the server; starts it if it is not running.
    pub(super) async fn tools(&mut self) -> Result<Vec<Tool>, ToolFailure> {
        loop {
            if let Some(reason) = &self.dead {
                return Err(ToolFailure {
                    reason: reason.clone(),
                    is_dead: true,
                });
            }
            if let Some(live) = &self.live {
                return Ok(live.tools.clone());
            }
            match self.connect().await {
                Ok(live) => (self.live, self.last_end) = (Some(live), None),
                Err(Some(closed)) => self.count(closed).await?,
                Err(None) => return Err(self.late().await),
            }
        }
    }

    /// Starts the server and lists its tools; `Err(None)` if the time is up.
    async fn connect(&self) -> Result<Live, Option<Closed>> {
        let (link, pipe) = self.open().map_err(Some)?;
        let me = Implementation::new(crate::NAME, env!("CARGO_PKG_VERSION"));
        let info = ClientConfig::new(ClientCapabilities::default(), me);
        let client = match self.bounded(rmcp::serve_client(info, pipe)).await {
            Some(Ok(client)) => client,
            Some(Err(e)) => {
                let reason = shortened(&e.to_string(), MAX_SHOWN).into_owned();
                let closed = link.closed().await;
                let is_vague = closed.reason == "the connection was closed";
                return Err(Some(if is_vague {
                    Closed::new(reason, closed.is_passing)
                } else {
                    closed
                }));
            }
            None => return Err(None),
        };
        match self.bounded(list(&client)).await {
            Some(Ok(tools)) => Ok(Live {
                client,
                link,
                tools,
            }),
            Some(Err(e)) if is_broken(&e) => Err(Some(
                Live {
                    client,
                    link,
                    tools: Vec::new(),
                }
                .end()
                .await,
            )),
            Some(Err(e)) => {
                let _ = client.cancel().await;
                Err(Some(Closed::new(
                    format!("its tools cannot be listed: {}", refusal(&e)),
                    false,
                )))
            }
            None => Err(None),
        }
    }

    fn open(&self) -> Result<(Link, tokio::io::DuplexStream), Closed> {
        let ServerEnvironment {
            env,
            top,
            deadline,
            stop,
        } = self.around;
        match &self.config.url {
            Some(url) => {
                let (server, url) = self.web(url).map_err(|f| Closed::new(f.message, false))?;
                Ok(Link::web(server, url, deadline, stop.clone()))
            }
            None => {
                let (name, args) = self
                    .config
                    .command
                    .split_first()
                    .ok_or_else(|| Closed::new("it has no command", false))?;
                let path =
                    find_program(name, env, top).map_err(|e| Closed::new(e.to_string(), false))?;
                let named = ["PATH", "HOME"]
                    .into_iter()
                    .chain(self.config.env.iter().map(String::as_str));
                let vars = named
                    .filter_map(|n| Some((OsString::from(n), env.os(n)?.clone())))
                    .collect();
                // It does not run in the repository: a server must not read its settings from the
                // change.
                let dir = env
                    .os("HOME")
                    .map(std::path::PathBuf::from)
                    .filter(|d| d.is_dir());
                let dir = dir.unwrap_or_else(|| Path::new("/").to_owned());
                let args = args.iter().map(OsString::from).collect();
                Ok(Link::program(
                    Spawn {
                        path,
                        args,
                        env: vars,
                        dir,
                    },
                    deadline,
                    stop.clone(),
                ))
            }
        }
    }

    fn web(&self, url: &str) -> Result<(http::Server, http::Url), http::Failure> {
        let url = http::Url::parse(url).map_err(|_| bad_setup("its url is not a URL"))?;
        let key = match &self.config.token_env {
            None => KeySource::Keyless,
            Some(name) => match self.around.env.var(name) {
                None => return Err(bad_setup(&format!("{name} is not set"))),
                Some(value) => KeySource::Known(
                    Key::new(value)
                        .ok_or_else(|| bad_setup(&format!("{name} is not a valid token")))?,
                ),
            },
        };
        let is_secure = url.scheme() == "https";
        let server = http::Server::new(Setup {
            address: url.clone(),
            setting: "url",
            carries: ("authorization", "Bearer "),
            headers: web::HEADERS,
            key,
            max_retries: 0,
            retry_delay: http::retry::DELAY,
            is_patient: false,
            proxies: if is_secure {
                Proxies::of(self.around.env)?
            } else {
                Proxies::default()
            },
            pool: Pool::default(),
        });
        Ok((server, url))
    }

    /// Waits for work; `None` if the time is up or the run is stopped.
    async fn bounded<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            _ = self.around.stop.wait() => None,
            done = timeout_at(self.around.deadline.into(), work) => done.ok(),
        }
    }

    /// Handles a broken connection.
    async fn broke(&mut self) -> Result<(), ToolFailure> {
        let closed = match self.live.take() {
            Some(live) => live.end().await,
            None => Closed::new("the connection was closed", true),
        };
        self.count(closed).await
    }

    /// Waits before the next start, if another one is allowed.
    async fn count(&mut self, closed: Closed) -> Result<(), ToolFailure> {
        let reason = self.shown(&closed.reason);
        self.last_end = Some(reason.clone());
        if closed.is_passing && self.restarts < RESTARTS {
            self.restarts += 1;
            tracing::debug!(server = %Inert::new(&self.config.name), restart = self.restarts, "context server ended");
            match self.bounded(sleep(PAUSE)).await {
                Some(()) => return Ok(()),
                None if self.around.stop.signal().is_some() => return Err(self.late().await),
                // Report the end of the connection, not the time limit of the restart.
                None => self.restarts -= 1,
            }
        }
        let reason = self.with_restarts(&reason);
        self.dead = Some(reason.clone());
        Err(ToolFailure {
            reason,
            is_dead: true,
        })
    }

    fn with_restarts(&self, reason: &str) -> String {
        match self.restarts {
            0 => reason.to_owned(),
            1 => format!("{reason} (1 restart)"),
            n => format!("{reason} ({n} restarts)"),
        }
    }

    /// Ends a server for which no time is left. If it ended by itself before, the reason mentions
    /// that.
    async fn late(&mut self) -> ToolFailure {
        let reason = match (self.around.stop.signal(), &self.last_end) {
            (Some(_), _) => "the run was stopped".to_owned(),
            (None, Some(end)) => format!(
                "{}; then no answer within [context] timeout",
                self.with_restarts(end)
            ),
            (None, None) => "no answer within [context] timeout".to_owned(),
        };
        self.dead = Some(reason.clone());
        self.end().await;
        ToolFailure {
            reason,
            is_dead: true,
        }
    }

    fn alive(&self, reason: impl AsRef<str>) -> ToolFailure {
        ToolFailure {
            reason: self.shown(reason.as_ref()),
            is_dead: false,
        }
    }

    /// Returns untrusted text for display: masked, escaped, on one line and short.
    fn shown(&self, text: &str) -> String {
        let text = one_line(text);
        let masked = self.secrets.iter().fold(text, |text, key| key.mask(&text));
        shortened(Inert::new(masked).as_str(), MAX_SHOWN).into_owned()
    }

    /// Returns the text of an answer.
    fn text(&self, answer: &Value) -> Result<String, ToolFailure> {
        let blocks = answer["content"].as_array().into_iter().flatten();
        let texts = blocks
            .filter(|b| b["type"] == "text")
            .filter_map(|b| b["text"].as_str());
        let mut text = texts.collect::<Vec<_>>().join("\n");
        if text.trim().is_empty()
            && answer
                .get("structuredContent")
                .is_some_and(Value::is_object)
        {
            text = answer["structuredContent"].to_string();
        }
        if answer["isError"] == true {
            return Err(self.alive(format!("refused: {text}")));
        }
        match text.trim() {
            "" => Err(self.alive("the answer has no text")),
            _ => Ok(text),
        }
    }
}

impl ServerCall {
    fn known((tool, argument, reads, source): &(&str, &str, Reads, &str)) -> Self {
        Self {
            tool: (*tool).to_owned(),
            argument: (*argument).to_owned(),
            reads: *reads,
            source: (*source).to_owned(),
        }
    }
}

/// Returns the failure of a server that is not configured correctly.
fn bad_setup(message: &str) -> http::Failure {
    http::Failure::new(http::Cause::Setup, message)
}

/// Returns why a listed tool is not called. The server's description of a tool can forbid a call,
/// but never allow one.
fn unusable(tool: &Tool, call: &ServerCall) -> Option<&'static str> {
    let hints = tool.annotations.as_ref();
    let schema = Value::Object((*tool.input_schema).clone());
    let takes = schema
        .get("properties")
        .and_then(Value::as_object)
        .is_none_or(|p| p.contains_key(&call.argument));
    match () {
        () if !is_read_only(&call.tool) => Some("its name does not say that it only reads"),
        () if hints.is_some_and(|h| h.read_only_hint == Some(false)) => {
            Some("the server says that it writes")
        }
        () if hints.is_some_and(|h| {
            h.destructive_hint == Some(true) && h.read_only_hint != Some(true)
        }) =>
        {
            Some("the server says that it destroys")
        }
        () if !takes => Some("it does not take the argument"),
        () => None,
    }
}

/// Lists the tools of a server, page by page.
async fn list(
    client: &RunningService<RoleClient, ClientConfig>,
) -> Result<Vec<Tool>, ServiceError> {
    let mut tools = Vec::new();
    let mut params: Option<PaginatedRequestParams> = None;
    for _ in 0..MAX_PAGES {
        let page = client.list_tools(params).await?;
        tools.extend(page.tools);
        match page.next_cursor {
            Some(cursor) if tools.len() < MAX_TOOLS => {
                params = Some(PaginatedRequestParams::default().with_cursor(Some(cursor)));
            }
            _ => break,
        }
    }
    tools.truncate(MAX_TOOLS);
    Ok(tools)
}

/// Returns true if the connection is lost.
fn is_broken(error: &ServiceError) -> bool {
    matches!(
        error,
        ServiceError::TransportClosed
            | ServiceError::TransportSend(_)
            | ServiceError::Cancelled { .. }
    )
}

fn refusal(error: &ServiceError) -> String {
    match error {
        ServiceError::McpError(e) => format!("refused: {} ({})", e.message, e.code.0),
        ServiceError::UnexpectedResponse => "the answer is not one to the call".to_owned(),
        other => other.to_string(),
    }
}

/// The result of checking a server, for `doctor`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Probe {
    pub name: String,
    /// Names of the tools that would be called, or the reason why there are none. Masked and
    /// escaped.
    pub outcome: Result<Vec<String>, String>,
}

/// Starts each server, lists its tools, and ends it. Calls no tool.
pub fn probe(
    servers: &[ContextServer],
    env: &Env,
    top: Option<&Path>,
    limit: Duration,
    stop: &Stop,
) -> Vec<Probe> {
    let work = async {
        let mut out = Vec::new();
        for config in servers {
            let around = ServerEnvironment {
                env,
                top,
                deadline: Instant::now() + limit,
                stop,
            };
            let mut server = ToolServer::new(config, around);
            out.push(Probe {
                name: config.name.clone(),
                outcome: probe_one(&mut server).await,
            });
            server.end().await;
        }
        out
    };
    on_a_runtime(work).unwrap_or_else(|why| {
        servers
            .iter()
            .map(|s| Probe {
                name: s.name.clone(),
                outcome: Err(why.clone()),
            })
            .collect()
    })
}

async fn probe_one(server: &mut ToolServer<'_>) -> Result<Vec<String>, String> {
    let mut usable = Vec::new();
    let mut why = None;
    for reads in [Reads::Tickets, Reads::Pages] {
        if !server.may_read(reads) {
            continue;
        }
        match server.call_for(reads).await {
            Ok(call) => usable.push(call.tool),
            Err(failed) if failed.is_dead => return Err(failed.reason),
            Err(failed) => why = why.or(Some(failed.reason)),
        }
    }
    match usable.is_empty() {
        true => Err(why.unwrap_or_else(|| "it has no tool that is known".to_owned())),
        false => Ok(usable),
    }
}

/// Runs work that may start local tasks, on its own runtime.
fn on_a_runtime<T>(work: impl Future<Output = T>) -> Result<T, String> {
    let runtime = Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|e| format!("no server can be asked: {e}"))?;
    let local = LocalSet::new();
    let done = local.block_on(&runtime, work);
    drop(local);
    runtime.shutdown_background();
    Ok(done)
}
