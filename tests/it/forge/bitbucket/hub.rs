//! A local server with the API of either Bitbucket: it stores the written data, validates every
//! request, and serves the repositories.

use crate::forge::hub::{file_of, followed};
use crate::loopback::{Reply, Request, Server};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

/// The account of the token.
pub const ME: u64 = 7;

/// The API that the server speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Speech {
    /// Below a path, as companies install it, with a personal project.
    Server,
    Cloud,
}

impl Speech {
    pub fn api(self) -> &'static str {
        match self {
            Self::Server => "/stash/rest/api/1.0",
            Self::Cloud => "/2.0",
        }
    }

    pub fn clone_path(self) -> &'static str {
        match self {
            Self::Server => "/stash/scm/~me/r.git",
            Self::Cloud => "/t/r.git",
        }
    }

    pub fn page(self) -> &'static str {
        match self {
            Self::Server => "/stash/users/me/repos/r/pull-requests/12",
            Self::Cloud => "/t/r/pull-requests/12",
        }
    }

    /// Returns the position of a comment on an added line.
    pub fn place(self, path: &str, line: u64) -> Value {
        match self {
            Self::Server => json!({
                "path": path, "line": line, "lineType": "ADDED", "fileType": "TO", "diffType": "EFFECTIVE"
            }),
            Self::Cloud => json!({ "path": path, "to": line }),
        }
    }
}

/// A comment.
#[derive(Clone, Debug, PartialEq)]
pub struct Note {
    pub id: u64,
    pub text: String,
    pub author: u64,
    pub place: Option<Value>,
    pub version: u64,
    pub resolved: bool,
    /// The text was edited.
    pub is_edited: bool,
}

/// The state of the server.
#[derive(Default)]
pub struct State {
    pub base: String,
    pub head: String,
    pub is_fork: bool,
    /// Number of open pull requests.
    pub pulls: u64,
    pub notes: Vec<Note>,
    pub builds: Vec<Value>,
    /// Replies in the form of the API; `root` is the ID of the first comment.
    pub replies: Vec<Value>,
    /// Other events, newest first.
    pub events: Vec<Value>,
    /// Author, committer and message of the head.
    pub written: Value,
    /// Permissions of the repository, and of the project.
    pub grants: [Vec<Value>; 2],
    /// No line accepts comments.
    pub shows_nothing: bool,
    /// A server without resolvable conversations and without builds of projects.
    pub is_old: bool,
    /// Version of the comments in lists.
    pub listed_version: Option<u64>,
    /// Answers that replace the usual ones: method, a part of the path, number of times, the
    /// answer.
    pub instead: Vec<(&'static str, &'static str, usize, Reply)>,
    /// Problems of requests.
    pub wrong: Vec<String>,
    /// Requests that change something.
    pub writes: Vec<String>,
}

pub struct Hub {
    pub server: Server,
    pub speech: Speech,
    pub token: String,
    state: Arc<Mutex<State>>,
}

impl Hub {
    /// Starts a server with one project and a fork of it, whose repositories are in a folder.
    pub fn start(speech: Speech, token: String, folder: PathBuf) -> Self {
        let state = Arc::new(Mutex::new(State {
            pulls: 1,
            ..State::default()
        }));
        let (held, expected) = (Arc::clone(&state), authorization(&token));
        let server = Server::start(move |request| {
            let path = request.path.split('?').next().unwrap().to_owned();
            if let Some((project, file)) = path.split_once(".git/") {
                let is_fork = project.starts_with("/fork/");
                return file_of(
                    &folder.join(if is_fork { "fork.git" } else { "own.git" }),
                    file,
                );
            }
            let mut state = held.lock().unwrap();
            if request.header("authorization") != Some(&expected) {
                return Reply::json(
                    401,
                    &json!({ "errors": [{ "message": "Authentication failed" }] }),
                );
            }
            state
                .told(request)
                .unwrap_or_else(|| state.answer(speech, request, &path))
        });
        Self {
            server,
            speech,
            token,
            state,
        }
    }

    /// Returns the header that carries the token.
    pub fn authorization(&self) -> String {
        authorization(&self.token)
    }

    #[track_caller]
    pub fn with<T>(&self, look: impl FnOnce(&mut State) -> T) -> T {
        let mut state = self.state.lock().unwrap();
        assert!(state.wrong.is_empty(), "{:#?}", state.wrong);
        look(&mut state)
    }

    /// Moves all comments from one version of the file to the next, as both products do after a
    /// push.
    pub fn follow(&self, old: &str, new: &str) {
        let name = if self.speech == Speech::Server {
            "line"
        } else {
            "to"
        };
        self.with(|s| {
            for place in s.notes.iter_mut().filter_map(|n| n.place.as_mut()) {
                match place[name]
                    .as_u64()
                    .and_then(|line| followed(old, new, line))
                {
                    Some(line) => place[name] = json!(line),
                    None if self.speech == Speech::Server => place["orphaned"] = json!(true),
                    None => place["outdated"] = json!(true),
                }
            }
        });
    }

    /// Returns the writes since the last call.
    #[track_caller]
    pub fn writes(&self) -> Vec<String> {
        self.with(|s| std::mem::take(&mut s.writes))
    }
}

fn authorization(token: &str) -> String {
    match token.contains(':') {
        true => format!("Basic {}", STANDARD.encode(token)),
        false => format!("Bearer {token}"),
    }
}

fn ok(value: &Value) -> Option<Reply> {
    Some(Reply::json(200, value))
}

fn fails(status: u16, message: &str) -> Option<Reply> {
    // One product has a list of errors, the other a single one.
    let body = json!({ "errors": [{ "context": null, "message": message }], "error": { "message": message } });
    Some(Reply::json(status, &body))
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

    fn answer(&mut self, speech: Speech, request: &Request, path: &str) -> Reply {
        let parts: Vec<&str> = path.trim_start_matches('/').split('/').collect();
        let reply = match (speech, parts.as_slice()) {
            (Speech::Server, ["stash", "rest", rest @ ..]) => self.server(request, rest),
            (Speech::Cloud, ["2.0", rest @ ..]) => self.cloud(request, rest),
            _ => None,
        };
        reply.unwrap_or_else(|| {
            self.wrong
                .push(format!("{} {}", request.method, request.path));
            Reply::json(404, &json!({ "errors": [{ "message": "Not Found" }] }))
        })
    }

    fn server(&mut self, request: &Request, rest: &[&str]) -> Option<Reply> {
        let method = request.method.as_str();
        let project = match rest {
            ["api", "1.0", "application-properties"] => {
                let headers = [
                    ("content-type", "application/json"),
                    ("x-ausername", "robot%40ci+1"),
                    ("x-auserid", "7"),
                ];
                return Some(Reply::with(200, &headers, b"{\"version\":\"8.0.0\"}"));
            }
            ["build-status", "1.0", "commits", id] if *id == self.head => {
                return self.old_builds(request);
            }
            ["api", "1.0", "projects", "~me", "permissions", "users"] => {
                return ok(&json!({ "isLastPage": true, "values": self.grants[1] }));
            }
            ["api", "1.0", "projects", "~me", "repos", "r", project @ ..] => project,
            _ => return None,
        };
        match (method, project) {
            ("GET", ["pull-requests"]) => {
                self.query(
                    request,
                    &[("state", "OPEN"), ("order", "NEWEST"), ("limit", "100")],
                );
                let start = number(request, "start");
                let values: Vec<Value> = (start..self.pulls.min(start + 2))
                    .map(|n| self.server_pull(12 + n))
                    .collect();
                let is_last = start + 2 >= self.pulls;
                ok(
                    &json!({ "values": values, "isLastPage": is_last, "nextPageStart": if is_last { Value::Null } else { json!(start + 2) } }),
                )
            }
            ("GET", ["pull-requests", "12"]) => ok(&self.server_pull(12)),
            ("GET", ["permissions", "users"]) => {
                self.query(request, &[("filter", "mara")]);
                ok(&json!({ "isLastPage": true, "values": self.grants[0] }))
            }
            ("GET", ["pull-requests", "12", "commits"]) => {
                let mut commit = json!({ "id": self.head, "message": "change the settings" });
                merge(&mut commit, &self.written);
                ok(&json!({ "isLastPage": true, "values": [commit] }))
            }
            ("GET", ["pull-requests", "12", "activities"]) => {
                let mut values: Vec<Value> = self
                    .notes
                    .iter()
                    .rev()
                    .map(|note| self.activity(note))
                    .collect();
                values.splice(0..0, self.events.iter().cloned());
                values.push(
                    json!({ "id": 1, "action": "OPENED", "createdDate": 1_767_261_600_000_u64 }),
                );
                ok(&json!({ "isLastPage": true, "values": values }))
            }
            ("POST", ["pull-requests", "12", "comments"]) => {
                let body = request.json();
                self.keys(&body, &["text"], &["anchor"]);
                let anchor = body.get("anchor").cloned();
                if let Some(anchor) = &anchor {
                    self.keys(
                        anchor,
                        &["path", "line", "lineType", "fileType", "diffType"],
                        &["srcPath", "multilineMarker"],
                    );
                    if self.shows_nothing {
                        return fails(409, "The line is not part of the diff");
                    }
                }
                self.note(&body["text"], anchor)
            }
            ("GET", ["pull-requests", "12", "comments", id]) => {
                let note = self.notes.iter().find(|n| n.id.to_string() == **id)?;
                ok(&self.comment(note))
            }
            ("PUT", ["pull-requests", "12", "comments", id]) => {
                let body = request.json();
                self.keys(&body, &["version"], &["text", "threadResolved"]);
                self.change(id, |note| {
                    if body["version"] != note.version {
                        return fails(409, "You are attempting to modify a comment based on out-of-date information");
                    }
                    if let Some(text) = body["text"].as_str() {
                        note.is_edited = true;
                        note.text = text.to_owned();
                    }
                    note.resolved = body["threadResolved"].as_bool().unwrap_or(note.resolved);
                    note.version += 1;
                    ok(&json!({ "version": note.version }))
                })
            }
            (_, ["commits", id, "builds"]) if *id == self.head => match method {
                _ if self.is_old => fails(404, "null for uri"),
                "GET" => {
                    self.query(request, &[("key", "claude-reviewer-main")]);
                    self.builds
                        .iter()
                        .rev()
                        .find(|b| b["of"] == self.head)
                        .map_or_else(|| fails(404, "no build"), ok)
                }
                _ => self.build(&request.json(), &[], Reply::with(204, &[], b"")),
            },
            _ => None,
        }
    }

    fn old_builds(&mut self, request: &Request) -> Option<Reply> {
        if !self.is_old {
            // A newer server has them too, but returns nothing here.
            return ok(&json!({ "isLastPage": true, "values": [] }));
        }
        match request.method.as_str() {
            "GET" => {
                let values: Vec<_> = self
                    .builds
                    .iter()
                    .filter(|b| b["of"] == self.head)
                    .cloned()
                    .collect();
                ok(&json!({ "isLastPage": true, "values": values }))
            }
            _ => self.build(&request.json(), &[], Reply::with(204, &[], b"")),
        }
    }

    fn server_pull(&self, number: u64) -> Value {
        let end = |branch: &str, id: &str, repository: u64| {
            json!({
                "id": format!("refs/heads/{branch}"), "displayId": branch, "latestCommit": id,
                "repository": { "id": repository, "slug": "r", "project": { "key": "~ME", "type": "PERSONAL" } },
            })
        };
        json!({
            "id": number, "version": 3, "title": "Change the settings", "state": "OPEN", "open": true, "draft": true,
            "author": { "user": { "name": "author", "id": 3 } }, "updatedDate": 1_700_000_000_000_u64,
            "fromRef": end("feature", &self.head, 1 + u64::from(self.is_fork)), "toRef": end("main", &self.base, 1),
            "links": { "self": [{ "href": format!("https://forge.example/users/me/repos/r/pull-requests/{number}") }] },
        })
    }

    fn activity(&self, note: &Note) -> Value {
        let mut comment = self.comment(note);
        if let Some(version) = self.listed_version {
            comment["version"] = json!(version);
        }
        let mut activity =
            json!({ "action": "COMMENTED", "commentAction": "ADDED", "comment": comment });
        if let Some(place) = &note.place {
            activity["commentAnchor"] = place.clone();
        }
        activity
    }

    fn comment(&self, note: &Note) -> Value {
        let name = if note.author == ME {
            "robot@ci 1"
        } else {
            "other"
        };
        let replies: Vec<&Value> = self
            .replies
            .iter()
            .filter(|r| r["root"] == note.id)
            .collect();
        let changed = if note.is_edited {
            1_767_270_600_000_u64
        } else {
            1_767_263_400_000
        };
        let mut comment = json!({
            "id": note.id, "version": note.version, "text": note.text, "state": "OPEN", "severity": "NORMAL",
            "author": { "name": name, "id": note.author }, "comments": replies,
            "createdDate": 1_767_263_400_000_u64, "updatedDate": changed,
        });
        if !self.is_old {
            comment["threadResolved"] = json!(note.resolved);
        }
        comment
    }

    fn cloud(&mut self, request: &Request, rest: &[&str]) -> Option<Reply> {
        let method = request.method.as_str();
        let project = match rest {
            ["user"] => return ok(&account(ME)),
            ["workspaces", "t", "permissions", "repositories", "r"] => {
                self.query(request, &[("q", "user.uuid%3D%22%7B20%7D%22")]);
                return ok(&json!({ "values": self.grants[0] }));
            }
            ["repositories", "t", "r", project @ ..] => project,
            _ => return None,
        };
        match (method, project) {
            ("GET", ["pullrequests"]) => {
                self.query(
                    request,
                    &[
                        ("state", "OPEN"),
                        ("sort", "-created_on"),
                        ("pagelen", "50"),
                    ],
                );
                let page = number(request, "page").max(1);
                let first = (page - 1) * 2;
                let values: Vec<Value> = (first..self.pulls.min(first + 2))
                    .map(|n| self.cloud_pull(12 + n))
                    .collect();
                let mut list = json!({ "pagelen": 2, "values": values });
                if first + 2 < self.pulls {
                    let host = request.header("host").unwrap();
                    list["next"] = json!(format!(
                        "http://{host}/2.0/repositories/t/r/pullrequests?state=OPEN&sort=-created_on&pagelen=50&page={}",
                        page + 1
                    ));
                }
                ok(&list)
            }
            ("GET", ["pullrequests", "12"]) => ok(&self.cloud_pull(12)),
            ("GET", ["pullrequests", "12", "activity"]) => ok(&json!({ "values": self.events })),
            ("GET", ["pullrequests", "12", "commits"]) => {
                let mut commit = json!({ "hash": self.head, "message": "change the settings" });
                merge(&mut commit, &self.written);
                ok(&json!({ "values": [commit] }))
            }
            ("GET", ["commit", short]) if self.base.starts_with(short) => {
                ok(&json!({ "hash": self.base }))
            }
            ("GET", ["pullrequests", "12", "comments"]) => {
                let mut values: Vec<Value> = self.notes.iter().map(cloud_comment).collect();
                values.extend(self.replies.iter().cloned());
                // A deleted comment stays in the list.
                values.push(json!({ "id": 1, "deleted": true, "content": { "raw": "" }, "user": account(ME) }));
                ok(&json!({ "values": values }))
            }
            ("POST", ["pullrequests", "12", "comments"]) => {
                let body = request.json();
                self.keys(&body, &["content"], &["inline"]);
                self.keys(&body["content"], &["raw"], &[]);
                let inline = body.get("inline").cloned();
                if let Some(inline) = &inline {
                    self.keys(inline, &["path", "to"], &["start_to"]);
                    if self.shows_nothing {
                        return fails(400, "inline.to: not a line of the diff");
                    }
                }
                self.note(&body["content"]["raw"], inline)
            }
            ("PUT", ["pullrequests", "12", "comments", id]) => {
                let body = request.json();
                self.keys(&body, &["content"], &[]);
                self.change(id, |note| {
                    note.is_edited = true;
                    note.text = body["content"]["raw"].as_str()?.to_owned();
                    ok(&json!({ "id": note.id }))
                })
            }
            ("POST" | "DELETE", ["pullrequests", "12", "comments", id, "resolve"]) => {
                self.change(id, |note| {
                    let resolved = method == "POST";
                    if std::mem::replace(&mut note.resolved, resolved) == resolved {
                        return fails(409, "it is so already");
                    }
                    Some(if resolved {
                        Reply::json(200, &json!({}))
                    } else {
                        Reply::with(204, &[], b"")
                    })
                })
            }
            ("GET", ["commit", id, "statuses", "build", "claude-reviewer-main"])
                if *id == self.head =>
            {
                self.builds
                    .iter()
                    .rev()
                    .find(|b| b["of"] == self.head)
                    .map_or_else(|| fails(404, "no build"), ok)
            }
            ("POST", ["commit", id, "statuses", "build"]) if *id == self.head => {
                let body = request.json();
                if body["refname"] != "feature" {
                    self.wrong.push(format!("refname: {body}"));
                }
                self.build(&body, &["refname"], Reply::json(201, &json!({})))
            }
            _ => None,
        }
    }

    fn cloud_pull(&self, number: u64) -> Value {
        let end = |branch: &str, id: &str, project: &str| {
            json!({
                "branch": { "name": branch }, "commit": { "hash": &id[..12] }, "repository": { "full_name": project },
            })
        };
        json!({
            "id": number, "title": "Change the settings", "description": "Because.", "state": "OPEN", "draft": true,
            "author": { "nickname": "author", "display_name": "A. U. Thor", "uuid": "{3}" },
            "source": end("feature", &self.head, if self.is_fork { "fork/r" } else { "t/r" }),
            "destination": end("main", &self.base, "t/r"), "updated_on": "2024-01-01T00:00:00+00:00",
            "links": { "html": { "href": format!("https://bitbucket.example/t/r/pull-requests/{number}") } },
        })
    }

    /// Records missing parameters of a query.
    fn query(&mut self, request: &Request, needed: &[(&str, &str)]) {
        let query = request.path.split_once('?').map_or("", |(_, query)| query);
        for (name, value) in needed {
            if !query.split('&').any(|p| p == format!("{name}={value}")) {
                self.wrong
                    .push(format!("{} lacks {name}={value}", request.path));
            }
        }
    }

    /// Records missing and unknown members of a body.
    fn keys(&mut self, body: &Value, needed: &[&str], allowed: &[&str]) {
        let Some(object) = body.as_object() else {
            return self.wrong.push(format!("no object: {body}"));
        };
        let missing = needed
            .iter()
            .filter(|k| !object.contains_key(**k))
            .map(|k| format!("lacks {k}: {body}"));
        let known = |k: &str| needed.contains(&k) || allowed.contains(&k);
        let strange = object
            .keys()
            .filter(|k| !known(k))
            .map(|k| format!("has {k}: {body}"));
        self.wrong
            .extend(missing.chain(strange).collect::<Vec<_>>());
    }

    fn note(&mut self, text: &Value, place: Option<Value>) -> Option<Reply> {
        let text = text.as_str()?.to_owned();
        if text.len() > 32_768 {
            return fails(400, "too long");
        }
        self.writes.push("POST comments".to_owned());
        let id = 100 + self.notes.len() as u64;
        self.notes.push(Note {
            id,
            text,
            author: ME,
            place,
            version: 0,
            resolved: false,
            is_edited: false,
        });
        Some(Reply::json(201, &json!({ "id": id })))
    }

    fn change(
        &mut self,
        id: &str,
        change: impl FnOnce(&mut Note) -> Option<Reply>,
    ) -> Option<Reply> {
        self.writes.push(format!("change {id}"));
        let note = self.notes.iter_mut().find(|n| n.id.to_string() == id)?;
        if note.author != ME {
            self.wrong
                .push(format!("another's comment {id} was changed"));
            return None;
        }
        change(note)
    }

    fn build(&mut self, body: &Value, more: &[&str], reply: Reply) -> Option<Reply> {
        let needed = [&["key", "name", "state", "description", "url"], more].concat();
        self.keys(body, &needed, &[]);
        if !body["url"]
            .as_str()
            .is_some_and(|url| url.starts_with("https://"))
        {
            return fails(400, "url must be an address");
        }
        self.writes.push("POST build".to_owned());
        let mut build = body.clone();
        build["of"] = json!(self.head);
        self.builds.push(build);
        Some(reply)
    }
}

fn account(id: u64) -> Value {
    // Any account can choose the same name.
    json!({ "uuid": format!("{{{id}}}"), "nickname": "robot", "display_name": "Robot", "type": "user" })
}

fn cloud_comment(note: &Note) -> Value {
    let mut comment = json!({
        "id": note.id, "content": { "raw": note.text, "markup": "markdown" }, "user": account(note.author),
        "created_on": "2026-01-01T10:30:00.000000+00:00",
        "updated_on": if note.is_edited { "2026-01-01T12:30:00.000000+00:00" } else { "2026-01-01T10:30:00.000000+00:00" },
        "deleted": false, "pending": false, "resolution": if note.resolved { json!({ "type": "x" }) } else { Value::Null },
    });
    if let Some(place) = &note.place {
        comment["inline"] = place.clone();
    }
    comment
}

/// Returns a number of the query; 0 if it is missing.
fn number(request: &Request, name: &str) -> u64 {
    let query = request.path.split_once('?').map_or("", |(_, query)| query);
    query
        .split('&')
        .find_map(|p| p.strip_prefix(name)?.strip_prefix('='))
        .map_or(0, |n| n.parse().unwrap())
}

/// Adds the fields of one object to another.
fn merge(into: &mut Value, from: &Value) {
    for (key, value) in from.as_object().into_iter().flatten() {
        into[key] = value.clone();
    }
}
