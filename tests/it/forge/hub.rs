//! A local GitHub server: it stores the written data, validates every request, and serves the
//! repository.

use crate::loopback::{Reply, Request, Server};
use crate::support::Repo;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

/// The account of the token.
const ME: (&str, u64) = ("robot[bot]", 7);

/// The state of the server.
#[derive(Default)]
pub struct State {
    pub pulls: Vec<Value>,
    pub commits: Vec<Value>,
    /// Comments on lines.
    pub inline: Vec<Value>,
    pub comments: Vec<Value>,
    /// Newest first.
    pub statuses: Vec<Value>,
    /// IDs of comments with resolved conversations.
    pub resolved: Vec<u64>,
    /// Lines that accept comments: path, first, last.
    pub shown: Vec<(String, u64, u64)>,
    /// Answers that replace the usual ones: method, a part of the path, number of times, the
    /// answer.
    pub instead: Vec<(&'static str, &'static str, usize, Reply)>,
    /// Replies: `thread` is the ID of the first comment, the other fields are those of GraphQL.
    pub replies: Vec<Value>,
    /// The commits of the pull request in GraphQL form, and its author.
    pub written_by: Vec<Value>,
    pub opened_by: Value,
    /// Roles by login, with the ID of the account.
    pub roles: Vec<(&'static str, u64, &'static str)>,
    /// The newest activity of the branch.
    pub activity: Vec<Value>,
    /// The token may comment, but not resolve conversations.
    pub cannot_resolve: bool,
    /// Problems of requests.
    pub wrong: Vec<String>,
    /// Requests that change something, as `METHOD path`.
    pub writes: Vec<String>,
    next: u64,
}

pub struct Hub {
    pub server: Server,
    pub state: Arc<Mutex<State>>,
    pub token: String,
}

impl Hub {
    /// Starts a server with the project `o/r`, whose repository is bare.
    pub fn start(bare: PathBuf) -> Self {
        let token = format!("token-{:016x}{:016x}", fastrand_like(1), fastrand_like(2));
        let state = Arc::new(Mutex::new(State {
            next: 100,
            ..State::default()
        }));
        let (held, expected) = (Arc::clone(&state), format!("Bearer {token}"));
        let server = Server::start(move |request| {
            let path = request.path.split('?').next().unwrap().to_owned();
            if let Some(file) = path.strip_prefix("/o/r.git/") {
                return file_of(&bare, file);
            }
            let mut state = held.lock().unwrap();
            if let Some(reply) = state.told(request) {
                return reply;
            }
            if request.header("authorization") != Some(&expected) {
                return Reply::json(401, &json!({ "message": "Bad credentials" }));
            }
            state.answer(request, &path)
        });
        Self {
            server,
            state,
            token,
        }
    }

    /// Writes the user's configuration for this server, and adds its remote.
    pub fn serve(&self, repo: &Repo) {
        let config = repo.home().join(".config/claude-reviewer");
        std::fs::create_dir_all(&config).unwrap();
        let text = format!(
            "version = 1\n[forge]\ngithub_api = \"{}/api/v3\"\n",
            self.server.url()
        );
        std::fs::write(config.join("config.toml"), text).unwrap();
        repo.git(&[
            "remote",
            "add",
            "origin",
            &format!("{}/o/r.git", self.server.url()),
        ]);
    }

    #[track_caller]
    pub fn with<T>(&self, look: impl FnOnce(&mut State) -> T) -> T {
        let mut state = self.state.lock().unwrap();
        assert!(state.wrong.is_empty(), "{:#?}", state.wrong);
        look(&mut state)
    }

    /// Moves all comments from one version of the file to the next, as GitHub does after a push.
    pub fn follow(&self, old: &str, new: &str) {
        self.with(|s| {
            for comment in &mut s.inline {
                let at = |n: &Value| n.as_u64().and_then(|n| followed(old, new, n));
                let last = at(&comment["line"]);
                let first = if comment["start_line"].is_u64() {
                    at(&comment["start_line"])
                } else {
                    None
                };
                let is_lost = last.is_none() || comment["start_line"].is_u64() && first.is_none();
                comment["line"] = json!(last.filter(|_| !is_lost));
                comment["start_line"] = json!(first.filter(|_| !is_lost));
            }
        });
    }

    /// Returns the writes since the last call.
    #[track_caller]
    pub fn writes(&self) -> Vec<String> {
        self.with(|s| std::mem::take(&mut s.writes))
    }
}

/// Returns the position of a line of one text in another one that differs in one place; `None` if
/// it is missing.
pub(super) fn followed(old: &str, new: &str, line: u64) -> Option<u64> {
    let (old, new): (Vec<_>, Vec<_>) = (old.lines().collect(), new.lines().collect());
    let above = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
    let most = old.len().min(new.len()) - above;
    let below = old
        .iter()
        .rev()
        .zip(new.iter().rev())
        .take(most)
        .take_while(|(a, b)| a == b)
        .count();
    let line = line as usize;
    match () {
        () if line <= above => Some(line as u64),
        () if line > old.len() - below => Some((line + new.len() - old.len()) as u64),
        () => None,
    }
}

/// Returns a number that no other run has; it may be guessable.
pub(super) fn fastrand_like(salt: u64) -> u64 {
    use std::hash::{BuildHasher as _, RandomState};
    RandomState::new().hash_one(salt)
}

/// Serves a file of a bare repository like any web server (git's "dumb" protocol).
pub(super) fn file_of(bare: &std::path::Path, file: &str) -> Reply {
    assert!(!file.contains(".."), "{file}");
    match std::fs::read(bare.join(file)) {
        Ok(bytes) => Reply::with(200, &[("content-type", "application/octet-stream")], &bytes),
        Err(_) => Reply::with(404, &[], b""),
    }
}

impl State {
    fn told(&mut self, request: &Request) -> Option<Reply> {
        let fits = |(method, part, times, _): &&mut (&str, &str, usize, Reply)| {
            *times > 0 && request.method == *method && request.path.contains(*part)
        };
        let (_, _, times, reply) = self.instead.iter_mut().find(fits)?;
        *times -= 1;
        Some(reply.clone())
    }

    fn answer(&mut self, request: &Request, path: &str) -> Reply {
        for (name, value) in [
            ("accept", "application/vnd.github+json"),
            ("x-github-api-version", "2022-11-28"),
        ] {
            if request.header(name) != Some(value) {
                self.wrong
                    .push(format!("{path}: {name} is {:?}", request.header(name)));
            }
        }
        if !request
            .header("user-agent")
            .is_some_and(|a| a.starts_with("claude-reviewer/"))
        {
            self.wrong.push(format!("{path}: no user-agent"));
        }
        let parts: Vec<&str> = path.trim_start_matches('/').split('/').collect();
        let body = request.json();
        let reply = match (request.method.as_str(), parts.as_slice()) {
            ("POST", ["api", "graphql"]) => self.graphql(&body),
            (method, ["api", "v3", "repos", "o", "r", rest @ ..]) => {
                if method != "GET" {
                    self.writes.push(format!("{method} {}", rest.join("/")));
                }
                self.rest(method, rest, &body, request)
            }
            _ => None,
        };
        reply.unwrap_or_else(|| {
            self.wrong
                .push(format!("{} {}", request.method, request.path));
            Reply::json(404, &json!({ "message": "Not Found" }))
        })
    }

    fn rest(
        &mut self,
        method: &str,
        rest: &[&str],
        body: &Value,
        request: &Request,
    ) -> Option<Reply> {
        let list = |items: &[Value]| Some(Reply::json(200, &json!(items)));
        match (method, rest) {
            ("GET", ["pulls"]) => self.page(request),
            ("GET", ["pulls", n]) => {
                let pull = self
                    .pulls
                    .iter()
                    .find(|p| p["number"].as_u64() == n.parse().ok());
                Some(pull.map_or_else(
                    || Reply::json(404, &json!({ "message": "Not Found" })),
                    |p| Reply::json(200, p),
                ))
            }
            ("GET", ["pulls", _, "commits"]) => list(&self.commits),
            ("GET", ["pulls", _, "comments"]) => list(&self.inline),
            ("GET", ["issues", _, "comments"]) => list(&self.comments),
            ("GET", ["commits", _, "statuses"]) => list(&self.statuses),
            ("GET", ["activity"]) => {
                let query = request.path.split_once('?')?.1;
                if query != "ref=refs%2Fheads%2Ffeature&per_page=1&direction=desc" {
                    self.wrong.push(format!("query {query}"));
                }
                list(&self.activity)
            }
            ("GET", ["collaborators", login, "permission"]) => {
                let found = self.roles.iter().find(|(name, ..)| name == login);
                let missing = || Reply::json(404, &json!({ "message": "Not Found" }));
                Some(found.map_or_else(missing, |(login, id, role)| {
                    let permission = if *role == "admin" { "admin" } else { "write" };
                    let user = json!({ "login": login, "id": id });
                    Reply::json(
                        200,
                        &json!({ "permission": permission, "role_name": role, "user": user }),
                    )
                }))
            }
            ("POST", ["pulls", _, "reviews"]) => {
                self.keys(body, &["commit_id", "event", "body", "comments"], &[]);
                if body["event"] != "COMMENT" {
                    self.wrong.push(format!("event {}", body["event"]));
                }
                let comments = body["comments"].as_array().cloned().unwrap_or_default();
                if !comments.iter().all(|c| self.is_shown(c)) {
                    return Some(unprocessable());
                }
                comments
                    .iter()
                    .for_each(|c| self.comment(c, &["path", "body", "line", "side"]));
                Some(Reply::json(200, &json!({ "id": 1 })))
            }
            ("POST", ["pulls", _, "comments"]) => {
                if !self.is_shown(body) {
                    return Some(unprocessable());
                }
                self.comment(body, &["path", "body", "line", "side", "commit_id"]);
                Some(Reply::json(201, &json!({ "id": 1 })))
            }
            ("POST", ["issues", _, "comments"]) => {
                self.keys(body, &["body"], &[]);
                let comment = self.new_comment(&body["body"]);
                self.comments.push(comment);
                Some(Reply::json(201, &json!({ "id": 1 })))
            }
            ("PATCH", [kind @ ("pulls" | "issues"), "comments", id]) => {
                self.keys(body, &["body"], &[]);
                let all = if *kind == "pulls" {
                    &mut self.inline
                } else {
                    &mut self.comments
                };
                let comment = all
                    .iter_mut()
                    .find(|c| c["id"].as_u64() == id.parse().ok())?;
                if comment["user"]["id"] != ME.1 {
                    self.wrong
                        .push(format!("another's comment {id} was changed"));
                    return None;
                }
                comment["body"] = body["body"].clone();
                comment["edited"] = json!("2026-01-01T12:30:00Z");
                Some(Reply::json(200, comment))
            }
            ("POST", ["statuses", sha]) => {
                self.keys(body, &["state", "context", "description"], &[]);
                let mut status = body.clone();
                status["sha"] = json!(sha);
                status["creator"] = json!({ "login": ME.0, "id": ME.1 });
                self.statuses.insert(0, status);
                Some(Reply::json(201, &json!({ "id": 1 })))
            }
            _ => None,
        }
    }

    /// Answers with a page of two pull requests.
    fn page(&mut self, request: &Request) -> Option<Reply> {
        let query = request.path.split_once('?')?.1;
        let value = |name: &str| {
            query
                .split('&')
                .find_map(|p| p.strip_prefix(name)?.strip_prefix('='))
        };
        if value("state") != Some("open") || value("per_page") != Some("100") {
            self.wrong.push(format!("query {query}"));
        }
        if let Some(head) = value("head") {
            let of_head = |p: &&Value| {
                p["head"]["label"]
                    .as_str()
                    .is_some_and(|l| head == l.replace(':', "%3A"))
            };
            let items: Vec<&Value> = self.pulls.iter().filter(of_head).collect();
            return Some(Reply::json(200, &json!(items)));
        }
        let page: usize = value("page").map_or(1, |p| p.parse().unwrap());
        let items: Vec<Value> = self
            .pulls
            .iter()
            .skip((page - 1) * 2)
            .take(2)
            .cloned()
            .collect();
        let host = request.header("host").unwrap().to_owned();
        let next = format!(
            "<http://{host}/api/v3/repos/o/r/pulls?state=open&per_page=100&page={}>; rel=\"next\"",
            page + 1
        );
        let body = json!(items).to_string();
        let mut headers = vec![("content-type", "application/json")];
        if self.pulls.len() > page * 2 {
            headers.push(("link", next.as_str()));
        }
        Some(Reply::with(200, &headers, body.as_bytes()))
    }

    /// Records missing and unknown members of a body.
    fn keys(&mut self, body: &Value, needed: &[&str], allowed: &[&str]) {
        let Some(object) = body.as_object() else {
            return self.wrong.push(format!("no object: {body}"));
        };
        let missing = needed.iter().filter(|k| !object.contains_key(**k));
        let strange = object
            .keys()
            .filter(|k| !needed.contains(&k.as_str()) && !allowed.contains(&k.as_str()));
        let found: Vec<String> = missing
            .map(|k| format!("lacks {k}"))
            .chain(strange.map(|k| format!("has {k}")))
            .collect();
        self.wrong
            .extend(found.into_iter().map(|f| format!("{f}: {body}")));
    }

    fn is_shown(&self, comment: &Value) -> bool {
        let last = comment["line"].as_u64().unwrap_or_default();
        let first = comment["start_line"].as_u64().unwrap_or(last);
        self.shown
            .iter()
            .any(|(path, from, to)| comment["path"] == **path && *from <= first && last <= *to)
    }

    fn comment(&mut self, body: &Value, needed: &[&str]) {
        self.keys(body, needed, &["start_line", "start_side"]);
        if body["side"] != "RIGHT"
            || body["start_line"].is_u64() && body["start_line"].as_u64() >= body["line"].as_u64()
        {
            self.wrong.push(format!("a place that is none: {body}"));
        }
        let mut comment = self.new_comment(&body["body"]);
        comment["path"] = body["path"].clone();
        comment["line"] = body["line"].clone();
        comment["start_line"] = body["start_line"].clone();
        comment["side"] = json!("RIGHT");
        self.inline.push(comment);
    }

    pub fn new_comment(&mut self, body: &Value) -> Value {
        self.next += 1;
        json!({ "id": self.next, "body": body, "user": { "login": ME.0, "id": ME.1, "type": "Bot" } })
    }

    /// Returns a conversation with the replies to a comment.
    fn conversation(&self, comment: &Value) -> Value {
        let actor = |user: &Value| {
            let kind = if user["id"] == ME.1 {
                &json!("Bot")
            } else {
                &user["type"]
            };
            json!({ "__typename": kind, "login": user["login"], "databaseId": user["id"] })
        };
        let root = json!({
            "body": comment["body"], "url": "https://forge.example/root", "createdAt": "2026-01-01T10:30:00Z",
            "lastEditedAt": comment["edited"], "author": actor(&comment["user"]),
        });
        let replies = self
            .replies
            .iter()
            .filter(|r| r["thread"] == comment["id"])
            .cloned();
        let nodes: Vec<Value> = [root].into_iter().chain(replies).collect();
        json!({ "comments": { "pageInfo": { "hasNextPage": false }, "nodes": nodes } })
    }

    fn graphql(&mut self, body: &Value) -> Option<Reply> {
        self.keys(body, &["query", "variables"], &[]);
        let query = body["query"].as_str()?;
        let data = if query.contains("viewer") {
            json!({ "viewer": { "login": ME.0, "databaseId": ME.1 } })
        } else if query.contains("lastEditedAt") {
            let threads: Vec<Value> = self.inline.iter().map(|c| self.conversation(c)).collect();
            let threads = json!({ "nodes": threads, "pageInfo": { "hasNextPage": false, "endCursor": null } });
            json!({ "repository": { "pullRequest": { "reviewThreads": threads } } })
        } else if query.contains("authors(") {
            let nodes: Vec<Value> = self
                .written_by
                .iter()
                .map(|c| json!({ "commit": c }))
                .collect();
            let info = json!({ "hasNextPage": false, "endCursor": null });
            let commits = json!({ "totalCount": nodes.len(), "pageInfo": info, "nodes": nodes });
            json!({ "repository": { "pullRequest": { "author": self.opened_by, "commits": commits } } })
        } else if query.contains("reviewThreads") {
            let v = &body["variables"];
            if v["owner"] != "o" || v["name"] != "r" || v["number"] != 12 {
                self.wrong.push(format!("variables {v}"));
            }
            let nodes: Vec<Value> = self
                .inline
                .iter()
                .map(|c| {
                    let id = c["id"].as_u64().unwrap();
                    let resolved = self.resolved.contains(&id);
                    json!({
                        "id": format!("T{id}"), "isResolved": resolved, "isOutdated": c["line"].is_null(),
                        "comments": { "nodes": [{ "databaseId": id }] },
                    })
                })
                .collect();
            let threads =
                json!({ "nodes": nodes, "pageInfo": { "hasNextPage": false, "endCursor": null } });
            json!({ "repository": { "pullRequest": { "reviewThreads": threads } } })
        } else if query.contains("esolveReviewThread") {
            if self.cannot_resolve {
                let error = json!({ "type": "FORBIDDEN", "message": "Resource not accessible by integration" });
                return Some(Reply::json(
                    200,
                    &json!({ "data": null, "errors": [error] }),
                ));
            }
            let id: u64 = body["variables"]["id"]
                .as_str()?
                .strip_prefix('T')?
                .parse()
                .ok()?;
            self.resolved.retain(|r| *r != id);
            if query.contains("{ resolveReviewThread") {
                self.resolved.push(id);
            }
            self.writes.push(format!("resolve {id}"));
            json!({ "done": { "thread": { "id": id } } })
        } else {
            return None;
        };
        Some(Reply::json(200, &json!({ "data": data })))
    }
}

fn unprocessable() -> Reply {
    Reply::json(
        422,
        &json!({ "message": "Unprocessable Entity", "errors": ["Line could not be resolved"] }),
    )
}
