//! A local GitLab server: it stores the written data, validates every request against GitLab's
//! documentation, and serves the repository.

use super::hub::{fastrand_like, file_of, followed};
use crate::loopback::{Reply, Request, Server};
use crate::support::Repo;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

/// The account of the token.
const ME: (&str, u64) = ("project_1_bot", 7);
/// ID of the project, and of its fork.
pub const PROJECT: u64 = 1;
pub const FORK: u64 = 2;

/// The state of the server.
#[derive(Default)]
pub struct State {
    pub pulls: Vec<Value>,
    /// Newest first, as in GitLab.
    pub commits: Vec<Value>,
    pub discussions: Vec<Value>,
    /// Statuses of all projects, oldest first.
    pub statuses: Vec<Value>,
    /// Lines of the diff: path, new side, old side.
    pub shown: Vec<(&'static str, u64, Option<u64>)>,
    /// Answers that replace the usual ones: method, a part of the path, number of times, the
    /// answer.
    pub instead: Vec<(&'static str, &'static str, usize, Reply)>,
    /// Accounts with their entries as members, users and search results.
    pub accounts: Vec<Value>,
    /// Versions of the merge request, newest first.
    pub versions: Vec<Value>,
    /// The role of the account may comment, but not resolve.
    pub cannot_resolve: bool,
    /// Links to further pages have a number; otherwise an address.
    pub numbers_pages: bool,
    /// Pages have the requested size instead of two items.
    pub keeps_sizes: bool,
    /// Problems of requests.
    pub wrong: Vec<String>,
    /// Requests that change something, as `METHOD path` below the merge request or the API.
    pub writes: Vec<String>,
    next: u64,
}

pub struct Lab {
    pub server: Server,
    pub state: Arc<Mutex<State>>,
    pub token: String,
    /// The token of a job, which may only read merge requests.
    pub job_token: String,
}

impl Lab {
    /// Starts a server with the project `g/sub/p`, whose repository is bare.
    pub fn start(bare: PathBuf) -> Self {
        let token = format!("token-{:016x}{:016x}", fastrand_like(1), fastrand_like(2));
        let job_token = format!("job-{:016x}{:016x}", fastrand_like(3), fastrand_like(4));
        let state = Arc::new(Mutex::new(State {
            next: 100,
            ..State::default()
        }));
        let (held, expected) = (Arc::clone(&state), (token.clone(), job_token.clone()));
        let server = Server::start(move |request| {
            let path = request.path.split('?').next().unwrap().to_owned();
            if let Some(file) = path.strip_prefix("/g/sub/p.git/") {
                return file_of(&bare, file);
            }
            let mut state = held.lock().unwrap();
            if let Some(reply) = state.told(request) {
                return reply;
            }
            let is_of_job = request.header("job-token") == Some(&expected.1);
            let parts: Vec<&str> = path.trim_start_matches('/').split('/').collect();
            let for_jobs = matches!(parts.as_slice(), ["api", "v4", "projects", _, "merge_requests", rest @ ..] if rest.len() <= 1);
            if request.header("private-token") != Some(&expected.0)
                && !(is_of_job && for_jobs && request.method == "GET")
            {
                return Reply::json(401, &json!({ "message": "401 Unauthorized" }));
            }
            state.answer(request, &parts)
        });
        Self {
            server,
            state,
            token,
            job_token,
        }
    }

    /// Writes the user's configuration for this server, and adds its remote.
    pub fn serve(&self, repo: &Repo) {
        let config = repo.home().join(".config/claude-reviewer");
        std::fs::create_dir_all(&config).unwrap();
        let text = format!(
            "version = 1\n[forge]\ngitlab_api = \"{}/api/v4\"\n",
            self.server.url()
        );
        std::fs::write(config.join("config.toml"), text).unwrap();
        repo.git(&[
            "remote",
            "add",
            "origin",
            &format!("{}/g/sub/p.git", self.server.url()),
        ]);
    }

    #[track_caller]
    pub fn with<T>(&self, look: impl FnOnce(&mut State) -> T) -> T {
        let mut state = self.state.lock().unwrap();
        assert!(state.wrong.is_empty(), "{:#?}", state.wrong);
        look(&mut state)
    }

    /// Moves all notes from one version of the file to the next, as GitLab does after a push: a
    /// note on a deleted line stays on the old diff.
    pub fn follow(&self, old: &str, new: &str) {
        self.with(|s| {
            let refs = s.pulls[0]["diff_refs"].clone();
            for discussion in &mut s.discussions {
                let position = &mut discussion["notes"][0]["position"];
                let Some(line) = position["new_line"].as_u64() else {
                    continue;
                };
                if let Some(line) = followed(old, new, line) {
                    position["new_line"] = json!(line);
                    ["base_sha", "start_sha", "head_sha"]
                        .iter()
                        .for_each(|k| position[*k] = refs[*k].clone());
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

impl State {
    fn told(&mut self, request: &Request) -> Option<Reply> {
        let fits = |(method, part, times, _): &&mut (&str, &str, usize, Reply)| {
            *times > 0 && request.method == *method && request.path.contains(*part)
        };
        let (_, _, times, reply) = self.instead.iter_mut().find(fits)?;
        *times -= 1;
        Some(reply.clone())
    }

    fn answer(&mut self, request: &Request, parts: &[&str]) -> Reply {
        if request.header("accept") != Some("application/json") {
            self.wrong
                .push(format!("accept is {:?}", request.header("accept")));
        }
        let (method, body) = (request.method.as_str(), request.json());
        let reply = match (method, parts) {
            ("GET", ["api", "v4", "user"]) => {
                Some(Reply::json(200, &json!({ "id": ME.1, "username": ME.0 })))
            }
            // The path with its subgroup is one component.
            (
                _,
                [
                    "api",
                    "v4",
                    "projects",
                    "g%2Fsub%2Fp",
                    "merge_requests",
                    rest @ ..,
                ],
            ) => {
                if method != "GET" {
                    self.writes
                        .push(format!("{method} {}", rest[1..].join("/")));
                }
                self.pull(method, rest, &body, request)
            }
            ("GET", ["api", "v4", "projects", "2"]) => Some(Reply::json(
                200,
                &json!({ "id": FORK, "path_with_namespace": "someone/p" }),
            )),
            ("GET", ["api", "v4", "projects", "g%2Fsub%2Fp", "members", "all", id]) => {
                let member = |a: &&Value| is(&a["id"], id) && a["access_level"].is_u64();
                let missing = || Reply::json(404, &json!({ "message": "404 Not found" }));
                Some(
                    self.accounts
                        .iter()
                        .find(member)
                        .map_or_else(missing, |a| Reply::json(200, a)),
                )
            }
            ("GET", ["api", "v4", "users", id]) => self
                .accounts
                .iter()
                .find(|a| is(&a["id"], id))
                .map(|a| Reply::json(200, a)),
            ("GET", ["api", "v4", "users"]) => {
                let text = request.path.replace("%40", "@");
                let fits = |a: &&Value| {
                    a["public_email"]
                        .as_str()
                        .is_some_and(|m| text.contains(&format!("search={m}&")))
                };
                Some(Reply::json(
                    200,
                    &json!(self.accounts.iter().filter(fits).collect::<Vec<_>>()),
                ))
            }
            (
                "GET",
                [
                    "api",
                    "v4",
                    "projects",
                    id,
                    "repository",
                    "commits",
                    sha,
                    "statuses",
                ],
            ) => {
                let own = self
                    .statuses
                    .iter()
                    .filter(|s| is(&s["project"], id) && s["sha"] == **sha);
                Some(Reply::json(200, &json!(own.collect::<Vec<_>>())))
            }
            ("POST", ["api", "v4", "projects", id @ ("1" | "2"), "statuses", sha]) => {
                self.writes
                    .push(format!("POST projects/{id}/statuses/{sha}"));
                self.status(id.parse().unwrap(), sha, &body)
            }
            _ => None,
        };
        reply.unwrap_or_else(|| {
            self.wrong
                .push(format!("{} {}", request.method, request.path));
            Reply::json(404, &json!({ "message": "404 Not Found" }))
        })
    }

    fn pull(
        &mut self,
        method: &str,
        rest: &[&str],
        body: &Value,
        request: &Request,
    ) -> Option<Reply> {
        match (method, rest) {
            ("GET", []) => {
                self.query(request, "state", "opened");
                let pulls = self.pulls.clone();
                self.page(request, &pulls)
            }
            ("GET", [n]) => {
                let pull = self.pulls.iter().find(|p| is(&p["iid"], n));
                let missing = || Reply::json(404, &json!({ "message": "404 Not found" }));
                Some(pull.map_or_else(missing, |p| Reply::json(200, p)))
            }
            ("GET", [_, "commits"]) => {
                let commits = self.commits.clone();
                self.page(request, &commits)
            }
            ("GET", ["12", "versions"]) => {
                let versions = self.versions.clone();
                self.page(request, &versions)
            }
            ("GET", ["12", "discussions"]) => {
                let discussions = self.discussions.clone();
                self.page(request, &discussions)
            }
            ("POST", ["12", "discussions"]) => {
                self.keys(body, &["body", "position"], &[]);
                if !self.is_shown(&body["position"]) {
                    return Some(no_line());
                }
                let mut discussion = self.discussion("DiffNote", &body["body"], false);
                discussion["notes"][0]["position"] = body["position"].clone();
                self.discussions.push(discussion.clone());
                Some(Reply::json(201, &discussion))
            }
            ("POST", ["12", "notes"]) => {
                self.keys(body, &["body"], &[]);
                let discussion = self.discussion("", &body["body"], true);
                self.discussions.push(discussion.clone());
                Some(Reply::json(201, &discussion["notes"][0]))
            }
            ("PUT", ["12", "notes", id]) => self.edit(None, id, body),
            ("PUT", ["12", "discussions", thread, "notes", id]) => {
                self.edit(Some(thread), id, body)
            }
            ("PUT", ["12", "discussions", thread]) => {
                self.keys(body, &["resolved"], &[]);
                if self.cannot_resolve {
                    return Some(Reply::json(403, &json!({ "message": "403 Forbidden" })));
                }
                let discussion = self.discussions.iter_mut().find(|d| d["id"] == **thread)?;
                discussion["notes"][0]["resolved"] = json!(body["resolved"].as_bool()?);
                Some(Reply::json(200, discussion))
            }
            _ => None,
        }
    }

    fn edit(&mut self, thread: Option<&str>, id: &str, body: &Value) -> Option<Reply> {
        self.keys(body, &["body"], &[]);
        let fits =
            |d: &&mut Value| thread.is_none_or(|t| d["id"] == *t) && is(&d["notes"][0]["id"], id);
        let note = &mut self.discussions.iter_mut().find(fits)?["notes"][0];
        if note["author"]["id"] != ME.1 {
            self.wrong.push(format!("another's note {id} was changed"));
            return None;
        }
        note["body"] = body["body"].clone();
        note["updated_at"] = json!("2026-01-01T12:30:00.000Z");
        Some(Reply::json(200, note))
    }

    fn status(&mut self, project: u64, sha: &str, body: &Value) -> Option<Reply> {
        self.keys(
            body,
            &["state", "name", "description"],
            &["ref", "pipeline_id"],
        );
        if !matches!(
            body["state"].as_str(),
            Some("pending" | "running" | "success" | "failed" | "canceled" | "skipped")
        ) {
            self.wrong.push(format!("state {}", body["state"]));
        }
        // Without either, GitLab selects any branch that has the commit.
        if body["ref"].is_null() == body["pipeline_id"].is_null() {
            self.wrong
                .push(format!("neither or both of ref and pipeline: {body}"));
        }
        self.next += 1;
        let pipeline = body["pipeline_id"].as_u64().unwrap_or(900);
        self.statuses.push(json!({
            "id": self.next, "project": project, "sha": sha, "status": body["state"], "name": body["name"],
            "description": body["description"], "ref": body["ref"], "pipeline_id": pipeline,
            "author": { "id": ME.1, "username": ME.0 },
        }));
        Some(Reply::json(201, self.statuses.last()?))
    }

    fn query(&mut self, request: &Request, name: &str, expected: &str) {
        let query = request.path.split_once('?').map_or("", |(_, q)| q);
        if !query.split('&').any(|p| p == format!("{name}={expected}")) {
            self.wrong.push(format!("query {query}"));
        }
    }

    /// Answers with a page.
    fn page(&mut self, request: &Request, items: &[Value]) -> Option<Reply> {
        let (path, query) = request.path.split_once('?')?;
        let asked = query
            .split('&')
            .find_map(|p| p.strip_prefix("per_page="))
            .map_or(0, |n| n.parse().unwrap());
        if asked != 100 && !(self.keeps_sizes && [10, 1].contains(&asked)) {
            self.wrong.push(format!("query {query}"));
        }
        let size = if self.keeps_sizes { asked } else { 2 };
        let page = query
            .split('&')
            .find_map(|p| p.strip_prefix("page="))
            .map_or(1, |p| p.parse::<usize>().unwrap());
        let body = json!(
            items
                .iter()
                .skip((page - 1) * size)
                .take(size)
                .collect::<Vec<_>>()
        )
        .to_string();
        let is_last = items.len() <= page * size;
        let mut headers = vec![("content-type", "application/json")];
        let number = if is_last {
            String::new()
        } else {
            (page + 1).to_string()
        };
        let host = request.header("host").unwrap();
        // The address that a server returns if its external URL is misconfigured.
        let host = if self.numbers_pages {
            "gitlab.internal.example"
        } else {
            host
        };
        let rest: String = query
            .split('&')
            .filter(|p| !p.starts_with("page="))
            .map(|p| format!("{p}&"))
            .collect();
        let next = format!(
            "<http://{host}{path}?{rest}page={}>; rel=\"next\"",
            page + 1
        );
        if self.numbers_pages {
            headers.push(("x-next-page", &number));
        }
        if !is_last {
            headers.push(("link", &next));
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

    /// Returns true if a position is in the diff; both sides of the line must be right.
    fn is_shown(&mut self, position: &Value) -> bool {
        let needed = [
            "position_type",
            "base_sha",
            "start_sha",
            "head_sha",
            "old_path",
            "new_path",
            "new_line",
        ];
        self.keys(position, &needed, &["old_line", "line_range"]);
        let refs = self
            .pulls
            .iter()
            .find(|p| p["iid"] == 12)
            .map(|p| p["diff_refs"].clone())
            .unwrap_or_default();
        let right = ["base_sha", "start_sha", "head_sha"]
            .iter()
            .all(|k| position[*k] == refs[*k]);
        if !right || position["position_type"] != "text" {
            self.wrong
                .push(format!("a position of another diff: {position}"));
        }
        self.shown.iter().any(|(path, new, old)| {
            position["new_path"] == **path
                && position["new_line"] == *new
                && position["old_line"].as_u64() == *old
        })
    }

    fn discussion(&mut self, kind: &str, body: &Value, alone: bool) -> Value {
        self.next += 1;
        let mut note = json!({
            "id": self.next, "type": if kind.is_empty() { Value::Null } else { json!(kind) }, "body": body,
            "author": { "id": ME.1, "username": ME.0 }, "system": false, "resolvable": !alone,
            "created_at": "2026-01-01T10:30:00.000Z", "updated_at": "2026-01-01T10:30:00.000Z",
        });
        if !alone {
            note["resolved"] = json!(false);
        }
        json!({ "id": format!("d{:039}", self.next), "individual_note": alone, "notes": [note] })
    }

    /// Adds a note of a user, or one of GitLab itself.
    pub fn say(&mut self, body: &str, system: bool) {
        let mut discussion = self.discussion("", &json!(body), true);
        discussion["notes"][0]["system"] = json!(system);
        discussion["notes"][0]["author"] = json!({ "id": 3, "username": "author" });
        self.discussions.push(discussion);
    }

    /// Returns the first notes of the discussions on lines, or of the others.
    pub fn notes(&self, on_lines: bool) -> Vec<Value> {
        let notes = self.discussions.iter().map(|d| d["notes"][0].clone());
        notes
            .filter(|n| (n["type"] == "DiffNote") == on_lines)
            .collect()
    }
}

/// Returns true if a number equals the one in an address.
fn is(number: &Value, text: &str) -> bool {
    text.parse().is_ok_and(|n: u64| number.as_u64() == Some(n))
}

/// Returns GitLab's answer for a line that is not in its diff.
pub fn no_line() -> Reply {
    let said =
        "400 Bad request - Note {:line_code=>[\"can't be blank\", \"must be a valid line code\"]}";
    Reply::json(400, &json!({ "message": said }))
}
