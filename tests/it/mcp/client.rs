//! A raw client: JSON-RPC lines over the pipes of the real binary. Every line on its standard
//! output must be a message of the protocol.

#![expect(
    clippy::needless_pass_by_value,
    reason = "callers write their JSON in place"
)]

use crate::support::{Repo, binary};
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// Time limit of any answer; a generous bound.
const PATIENCE: Duration = Duration::from_secs(60);

/// A running server and its client.
pub struct Client {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<Value>,
    stderr: Option<std::thread::JoinHandle<String>>,
    next: i64,
    /// Other messages than the awaited answers.
    pub aside: Vec<Value>,
}

/// The end of a server.
pub struct End {
    pub code: Option<i32>,
    pub took: Duration,
    pub stderr: String,
    /// The remaining output.
    pub rest: Vec<Value>,
}

impl Client {
    /// Starts `serve-mcp` in a repository, with additional arguments.
    pub fn start(repo: &Repo, args: &[&str]) -> Self {
        Self::start_in(repo, &repo.path(), args, &[])
    }

    /// Starts it in a folder, with additional variables.
    pub fn start_in(
        repo: &Repo,
        dir: &std::path::Path,
        args: &[&str],
        env: &[(&str, &str)],
    ) -> Self {
        let mut command = Command::new(binary());
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", repo.home());
        command
            .env("LC_ALL", "C")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .envs(env.iter().copied());
        command.current_dir(dir).arg("serve-mcp").args(args);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (tell, lines) = channel();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || {
            for line in stdout.lines() {
                let Ok(line) = line else { return };
                let message: Value =
                    serde_json::from_str(&line).unwrap_or_else(|e| panic!("no JSON: {e}: {line}"));
                let alone = std::slice::from_ref(&message);
                let all = message.as_array().map_or(alone, Vec::as_slice);
                assert!(all.iter().all(|m| m["jsonrpc"] == "2.0"), "{line}");
                if tell.send(message).is_err() {
                    return;
                }
            }
        });
        let mut errors = child.stderr.take().unwrap();
        let stderr = std::thread::spawn(move || {
            let mut text = String::new();
            let _ = errors.read_to_string(&mut text);
            text
        });
        let stdin = child.stdin.take();
        Self {
            child,
            stdin,
            lines,
            stderr: Some(stderr),
            next: 0,
            aside: Vec::new(),
        }
    }

    /// Starts it and performs the handshake of the second newest protocol version.
    pub fn ready(repo: &Repo, args: &[&str]) -> Self {
        let mut client = Self::start(repo, args);
        client.shake_hands(json!({}));
        client
    }

    /// Performs the handshake with these capabilities; returns the server's description of itself.
    pub fn shake_hands(&mut self, capabilities: Value) -> Value {
        let hello = json!({"protocolVersion": "2025-11-25", "capabilities": capabilities,
            "clientInfo": {"name": "test", "version": "1"}});
        let answer = self.request("initialize", hello);
        self.notify("notifications/initialized", json!({}));
        answer["result"].clone()
    }

    /// Returns the process ID of the server.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends raw bytes.
    pub fn raw(&mut self, bytes: &[u8]) {
        let pipe = self.stdin.as_mut().unwrap();
        pipe.write_all(bytes).and_then(|()| pipe.flush()).unwrap();
    }

    /// Sends a message.
    pub fn send(&mut self, message: &Value) {
        self.raw(format!("{message}\n").as_bytes());
    }

    pub fn notify(&mut self, method: &str, params: Value) {
        self.send(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    /// Sends a request and returns its ID.
    pub fn ask(&mut self, method: &str, params: Value) -> i64 {
        self.next += 1;
        let id = self.next;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        id
    }

    /// Returns the next message, if one arrives in time.
    pub fn next_within(&mut self, time: Duration) -> Option<Value> {
        self.lines.recv_timeout(time).ok()
    }

    /// Waits for the answer to a request; stores other messages in `aside`.
    #[track_caller]
    pub fn answer(&mut self, id: impl Into<Value>) -> Value {
        let id = id.into();
        if let Some(at) = self
            .aside
            .iter()
            .position(|m| m["id"] == id && m.get("method").is_none())
        {
            return self.aside.remove(at);
        }
        let until = Instant::now() + PATIENCE;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let message = self
                .next_within(left)
                .unwrap_or_else(|| panic!("no answer to {id}; {:?}", self.aside));
            if message["id"] == id && message.get("method").is_none() {
                return message;
            }
            self.aside.push(message);
        }
    }

    /// Sends a request and waits for its answer.
    #[track_caller]
    pub fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.ask(method, params);
        self.answer(id)
    }

    /// Calls a tool and returns its result; fails on a protocol error.
    #[track_caller]
    pub fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let answer = self.request("tools/call", json!({"name": tool, "arguments": arguments}));
        assert!(answer.get("error").is_none(), "{tool}: {answer}");
        assert!(
            answer["result"]["structuredContent"].is_object(),
            "{tool}: {answer}"
        );
        answer["result"].clone()
    }

    /// Calls a tool that must succeed; returns the structured content.
    #[track_caller]
    pub fn content(&mut self, tool: &str, arguments: Value) -> Value {
        let result = self.call(tool, arguments);
        assert_ne!(result["isError"], true, "{tool}: {result}");
        result["structuredContent"].clone()
    }

    /// Calls a tool that must return an error; returns the result.
    #[track_caller]
    pub fn refused(&mut self, tool: &str, arguments: Value) -> Value {
        let result = self.call(tool, arguments);
        assert_eq!(result["isError"], true, "{tool}: {result}");
        assert_eq!(result["structuredContent"]["outcome"], "error", "{result}");
        result
    }

    /// Closes standard input and waits for the end.
    pub fn close(mut self) -> End {
        let began = Instant::now();
        drop(self.stdin.take());
        self.end(began)
    }

    /// Waits for the end.
    pub fn end(&mut self, began: Instant) -> End {
        let until = began + PATIENCE;
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(Instant::now() < until, "the server does not end");
            std::thread::sleep(Duration::from_millis(10));
        };
        let took = began.elapsed();
        let rest = self.lines.iter().collect();
        let stderr = self
            .stderr
            .take()
            .map(|t| t.join().unwrap())
            .unwrap_or_default();
        End {
            code: status.code(),
            took,
            stderr,
            rest,
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // Only if it still runs.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns the text of a result.
pub fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap()
}
