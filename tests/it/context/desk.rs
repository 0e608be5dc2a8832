//! A repository whose change refers to tickets, a loopback model, and an MCP server that is a shell
//! script.

use crate::loopback::{Reply, Request, Server};
use crate::support::{Repo, Reviewer};
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

/// Default reaction of the script to a call. Shell code; `$id` is the number of the request.
pub const REGULAR: &str = "answer";

pub struct Desk {
    pub repo: Repo,
    pub model: Server,
}

/// Answers like a model without findings.
pub fn calm(r: &Request) -> Reply {
    r.review(&[])
}

/// Answers like a model that reports a missing requirement.
pub fn misses(reference: &'static str) -> impl Fn(&Request) -> Reply + Send + Sync + 'static {
    move |r: &Request| {
        let mut answer = r.document(&[]);
        answer["missing_requirements"] = json!([{ "requirement": "The retries have no upper bound.", "reference": reference, "severity": "major" }]);
        r.text(&answer.to_string())
    }
}

impl Desk {
    /// Creates a repository whose base names the project PROJ, and whose branch has a commit with
    /// `message`.
    pub fn new(message: &str, model: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> Self {
        let repo = Repo::new();
        repo.stage("README.md", "# Sample\n");
        repo.commit("PROJ-1: first");
        repo.git(&["checkout", "-q", "-b", "topic"]);
        repo.stage("src/retry.py", "def limit():\n    return 7\n");
        repo.commit(message);
        std::fs::create_dir_all(repo.outside().join("tickets")).unwrap();
        Self {
            repo,
            model: Server::start(model),
        }
    }

    fn folder(&self) -> PathBuf {
        self.repo.outside()
    }

    /// Writes the script. `on_list` and `on_call` are shell code that runs for such a request.
    pub fn script(&self, on_list: &str, on_call: &str) -> PathBuf {
        let dir = self.folder();
        let dir = dir.display();
        let script = format!(
            r#"#!/bin/sh
dir='{dir}'
echo start >>"$dir/starts"
env | sed 's/=.*//' | sort >"$dir/env"
printf '%s\n' "$TICKET_TOKEN" >"$dir/token"
reply() {{ printf '{{"jsonrpc":"2.0","id":%s,"result":%s}}\n' "$id" "$1"; }}
refuse() {{ printf '{{"jsonrpc":"2.0","id":%s,"error":{{"code":-32602,"message":"%s"}}}}\n' "$id" "$1"; }}
tools() {{ reply '{{"tools":[{{"name":"jira_get_issue","inputSchema":{{"type":"object","properties":{{"issue_key":{{"type":"string"}}}}}}}},{{"name":"confluence_get_page","inputSchema":{{"type":"object"}}}},{{"name":"jira_delete_issue","inputSchema":{{"type":"object"}}}}]}}'; }}
answer() {{
    key=$(printf '%s' "$line" | sed -n 's/.*"\(issue_key\|page_id\|key\)":"\([^"]*\)".*/\2/p')
    if [ -f "$dir/tickets/$key" ]; then
        printf '{{"jsonrpc":"2.0","id":%s,"result":' "$id"; cat "$dir/tickets/$key"; printf '}}\n'
    else
        reply '{{"content":[{{"type":"text","text":"no such ticket"}}],"isError":true}}'
    fi
}}
while read -r line; do
    id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
    case $line in
    *'"method":"initialize"'*) reply '{{"protocolVersion":"2025-06-18","capabilities":{{"tools":{{}}}},"serverInfo":{{"name":"fake","version":"1"}}}}' ;;
    *'"method":"tools/list"'*) {on_list} ;;
    *'"method":"tools/call"'*) printf '%s\n' "$line" >>"$dir/calls"; {on_call} ;;
    esac
done
echo ended >>"$dir/ends"
"#
        );
        let path = self.folder().join("server");
        std::fs::write(&path, script).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    /// Writes a ticket that the script answers with.
    pub fn ticket(&self, key: &str, title: &str, description: &str) -> &Self {
        let ticket = json!({
            "key": key, "summary": title, "description": description, "status": { "name": "Open" }, "updated": "u1",
        });
        self.answer(
            key,
            &json!([{ "type": "text", "text": ticket.to_string() }]),
        )
    }

    /// Writes the content of an answer.
    pub fn answer(&self, key: &str, content: &Value) -> &Self {
        // Without line feeds: the script reads and writes lines.
        let text = json!({ "content": content }).to_string();
        std::fs::write(self.folder().join("tickets").join(key), text).unwrap();
        self
    }

    /// Writes the user's policy: the model, and `[context]` with the script as its server.
    pub fn policy(&self, context: &str) -> &Self {
        let path = self.script("tools", REGULAR);
        self.policy_with(&format!(
            "[context]\n{context}\n[context.servers.tickets]\ncommand = [{path:?}]\n"
        ))
    }

    /// Writes the user's policy with more tables.
    pub fn policy_with(&self, more: &str) -> &Self {
        let config = self.repo.home().join(".config/claude-reviewer");
        std::fs::create_dir_all(&config).unwrap();
        std::fs::write(
            config.join("config.toml"),
            self.model.policy("openai") + "context_tokens = 100000\n" + more,
        )
        .unwrap();
        self
    }

    pub fn reviewer(&self, args: &[&str]) -> Reviewer {
        let key = format!("sk-{}", "0".repeat(20));
        let args = [&["review", "branch", "--base", "main", "--no-save"], args].concat();
        self.repo.reviewer(&args).env("OPENAI_API_KEY", key)
    }

    #[track_caller]
    pub fn report(&self, code: i32) -> Value {
        self.reviewer(&["--format", "json"]).run(code).json()
    }

    /// Returns the lines of a file that the script wrote.
    pub fn log(&self, name: &str) -> Vec<String> {
        let text = std::fs::read_to_string(self.folder().join(name)).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// Returns the prompts that reached the model.
    pub fn prompts(&self) -> String {
        self.model
            .questions()
            .iter()
            .map(Request::prompt)
            .collect::<Vec<_>>()
            .join("\n")
    }
}

pub fn notes(report: &Value) -> String {
    let all = report["notes"].as_array().unwrap().iter();
    all.filter(|n| n["origin"] == "context")
        .map(|n| n["text"].as_str().unwrap())
        .collect::<Vec<_>>()
        .join("\n")
}
